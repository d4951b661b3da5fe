"""Hypothesis strategies for every form of preference; needs the package hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.core.optional import require_module
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Form, Preferences

if TYPE_CHECKING:
    from hypothesis import strategies as st
else:
    st = require_module("hypothesis.strategies")

__all__ = [
    "answers",
    "comparisons",
    "ids",
    "labels",
    "preferences",
    "rankings",
    "ratings",
    "simple_ids",
    "top_k",
]

# strings of any characters but surrogates, which UTF-8 cannot encode
any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
simple_ids = st.text("abcdefgh0123-_.", min_size=1, max_size=5)


def ids() -> st.SearchStrategy[Id]:
    """Any id: text of any characters, or an integer."""
    return st.one_of(simple_ids, any_text, st.integers(-(2**31), 2**31))


def answers(item: st.SearchStrategy[Id] = simple_ids, *, max_items: int = 6) -> st.SearchStrategy[list[Id]]:
    """One list of distinct items, best first."""
    return st.lists(item, min_size=1, max_size=max_items, unique_by=lambda v: (type(v).__name__, v))


def _nested_answers(
    answer: st.SearchStrategy[Any], name: st.SearchStrategy[Id], queries: int, experts: int
) -> st.SearchStrategy[Any]:
    return st.dictionaries(
        name, st.dictionaries(name, answer, min_size=1, max_size=experts), min_size=1, max_size=queries
    )


def rankings(
    name: st.SearchStrategy[Id] = simple_ids, *, queries: int = 3, experts: int = 4
) -> st.SearchStrategy[Preferences]:
    """Partial rankings without ties."""
    return _nested_answers(answers(name), name, queries, experts).map(Preferences.from_lists)


def top_k(
    name: st.SearchStrategy[Id] = simple_ids, *, queries: int = 3, experts: int = 4
) -> st.SearchStrategy[Preferences]:
    """Top lists: unlisted items rank below listed ones."""
    nested = _nested_answers(answers(name), name, queries, experts)
    return nested.map(lambda n: Preferences.from_lists(n, unlisted="below"))


def ratings(
    name: st.SearchStrategy[Id] = simple_ids, *, queries: int = 3, experts: int = 4
) -> st.SearchStrategy[Preferences]:
    """Ratings on a short scale (hence with ties), or any finite scores."""
    score = st.one_of(st.integers(0, 4).map(float), st.floats(-1e6, 1e6, width=32))
    answer = st.dictionaries(name, score, min_size=1, max_size=6)
    return _nested_answers(answer, name, queries, experts).map(Preferences.from_lists)


@st.composite
def comparisons(
    draw: st.DrawFn, name: st.SearchStrategy[Id] = simple_ids, *, queries: int = 3, experts: int = 4
) -> Preferences:
    """Votes, some of them ties, with whole weights."""
    items = draw(st.lists(name, min_size=2, max_size=6, unique_by=lambda v: (type(v).__name__, v)))
    who = draw(st.lists(name, min_size=1, max_size=experts, unique_by=lambda v: (type(v).__name__, v)))
    where = draw(st.lists(name, min_size=1, max_size=queries, unique_by=lambda v: (type(v).__name__, v)))
    pair = st.lists(st.sampled_from(items), min_size=2, max_size=2, unique_by=lambda v: (type(v).__name__, v))
    vote = st.tuples(st.sampled_from(where), st.sampled_from(who), pair, st.booleans(), st.integers(1, 3))
    votes = draw(st.lists(vote, min_size=1, max_size=12))
    return Preferences.from_comparisons(
        [v[0] for v in votes],
        [v[1] for v in votes],
        [v[2][0] for v in votes],
        [v[2][1] for v in votes],
        tie=[v[3] for v in votes],
        weight=[float(v[4]) for v in votes],
    )


def preferences(
    accepts: frozenset[Form] = frozenset(Form), name: st.SearchStrategy[Id] = simple_ids
) -> st.SearchStrategy[Preferences]:
    """Preferences of any of these forms."""
    made = {Form.RANKING: rankings, Form.TOP_K: top_k, Form.RATING: ratings, Form.COMPARISON: comparisons}
    return st.one_of(*(made[f](name) for f in Form if f in accepts))


def labels(name: st.SearchStrategy[Id] = simple_ids, *, queries: int = 3) -> st.SearchStrategy[Labels]:
    """Grades from -1 to 4."""
    grades = st.dictionaries(name, st.integers(-1, 4).map(float), min_size=1, max_size=8)
    return st.dictionaries(name, grades, min_size=1, max_size=queries).map(Labels.from_dict)
