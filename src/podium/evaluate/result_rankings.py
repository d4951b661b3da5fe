"""Rankings to evaluate: of methods, of single experts, of judged items only; and their similarity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from podium.core.errors import ParameterError, PodiumError
from podium.data.consensus import Consensus, TieRule
from podium.data.dataset import Dataset
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8
from podium.methods.base import Aggregator
from podium.metrics.agreement import compute_rbos

__all__ = ["aggregate_dataset", "aggregate_methods", "compute_rbo_by_query", "expert_rankings", "judged_only"]


def aggregate_dataset(method: Aggregator, data: Dataset, ties: TieRule = "item") -> Consensus:
    """The consensus on a data set; features are given to methods that use them."""
    features = data.features if method.tags.uses_features else None
    return method.aggregate(data.preferences, features, ties=ties)


def aggregate_methods(
    methods: Iterable[tuple[str, Aggregator]], preferences: Preferences, features: Features | None = None
) -> tuple[dict[str, Consensus], dict[str, str]]:
    """Results by name, and why other methods have none; an error if no method has one.

    >>> from podium import make
    >>> p = Preferences.from_lists({"q": {"bm25": ["a", "b"], "dense": ["b", "c"]}})
    >>> results, left_out = aggregate_methods([("rrf", make("rrf")), ("svd", make("svd"))], p)
    >>> list(results), list(left_out)
    (['rrf'], ['svd'])
    """
    results: dict[str, Consensus] = {}
    failed: dict[str, PodiumError] = {}
    for name, method in methods:
        try:
            results[name] = method.aggregate(preferences, features if method.tags.uses_features else None)
        except PodiumError as error:
            failed[name] = error
    if not results and len(failed) == 1:
        raise next(iter(failed.values()))
    left_out = {name: str(error) for name, error in failed.items()}
    if not results:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise ParameterError(f"no method produced a result ({why})")
    return results, left_out


def expert_rankings(preferences: Preferences, expert: Id, *, ties: TieRule = "item") -> Consensus:
    """One expert's lists as a result: only the queries it answered and the items it listed.

    Scores determine the order if there are any, as in trec_eval; otherwise ranks do.

    >>> p = Preferences.from_lists({"q": {"bm25": ["a", "b"], "dense": ["c"]}, "r": {"dense": ["a"]}})
    >>> expert_rankings(p, "bm25").to_dict()
    {'q': {'a': 3.0, 'b': 2.0}}
    """
    lists, index = preferences.lists, preferences.index
    mine = np.flatnonzero(lists.expert == preferences.expert_code(expert))
    mine = mine[lists.lengths[mine] > 0]
    _, rows = segments.gather_segments(lists.starts, mine)
    rows = rows[np.argsort(lists.item[rows])]  # in the order of the slots
    listed = np.zeros(len(index.items), np.bool_)
    listed[lists.item[rows]] = True
    own, _ = index.keep(listed).select(lists.query_of_list[mine])
    scores = lists.fill_scores(index.sizes)[rows]
    return Consensus.from_scores(own, scores, ties=ties, tolerance=0.0, method=str(expert))


def judged_only(consensus: Consensus, labels: Labels) -> Consensus:
    """The ranking without items that have no grade (a "condensed list").

    >>> from podium import make
    >>> c = make("rrf").aggregate(Preferences.from_lists({"q": {"e": ["a", "b", "c"]}}))
    >>> judged_only(c, Labels.from_dict({"q": {"c": 1, "b": 0}})).ranking("q")
    ['b', 'c']
    """
    index = consensus.index
    keep = ~np.isnan(labels.align(index))
    own = index.keep(keep)
    scores = consensus.scores[keep]  # ties are already equal scores; no new ties may arise
    less = Consensus.from_scores(own, scores, ties=consensus.ties, tolerance=0.0)
    return replace(consensus, index=own, scores=less.scores, order=less.order, tied=less.tied)


def compute_rbo_by_query(a: Consensus, b: Consensus) -> F8:
    """RBO by query of two rankings of the same items; NaN for a query without items.

    >>> from podium import make
    >>> p = Preferences.from_lists({"q": {"x": ["a", "b"], "y": ["a", "c"]}})
    >>> compute_rbo_by_query(make("rrf").aggregate(p), make("borda").aggregate(p)).tolist()
    [1.0]
    """
    sizes = a.index.sizes
    filled = sizes > 0
    place = np.cumsum(filled) - 1
    first, second = (c.ranks.astype(np.int64) for c in (a, b))
    out = np.full(len(sizes), np.nan)
    out[filled] = compute_rbos(place[a.index.query_of_slot], first, second, sizes[filled], sizes[filled])
    return out
