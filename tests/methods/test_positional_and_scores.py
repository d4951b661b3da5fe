"""Position and score methods against their plain twins."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium import fuse, make
from podium.methods.base import LIST_FORMS
from podium.methods.scores import NORMALIZERS
from podium.testing import strategies
from reference import positions as plain

METHODS = {
    "rrf": plain.rrf,
    "rrf(k=5)": lambda p, q, w: plain.rrf(p, q, w, 5),
    "rbc": plain.rbc,
    "isr": plain.isr,
    "log_isr": plain.log_isr,
    "mean_rank": plain.mean_rank,
    "mean_rank(missing='ignore')": lambda p, q, w: plain.mean_rank(p, q, w, "ignore"),
    "median_rank": plain.median_rank,
    "median_rank(missing='last')": lambda p, q, w: plain.median_rank(p, q, w, "last"),
    "median_rank(missing='ignore')": lambda p, q, w: plain.median_rank(p, q, w, "ignore"),
    "borda": plain.borda,
    "borda(missing='last')": lambda p, q, w: plain.borda(p, q, w, "last"),
    "borda(missing='ignore')": lambda p, q, w: plain.borda(p, q, w, "ignore"),
    "borda(reversed_lists=True)": lambda p, q, w: plain.borda(p, q, w, upside_down=True),
    "borda(missing='ignore', reversed_lists=True)": lambda p, q, w: plain.borda(p, q, w, "ignore", True),
    **{
        f"{name}(normalizer={how!r})": (lambda p, q, w, how=how, f=f: plain.comb(p, q, w, how, f))
        for name, f in plain.COMBINE.items()
        for how in NORMALIZERS
    },
    "dbsf": lambda p, q, w: plain.comb(p, q, w, "dbsf", plain.COMBINE["combsum"]),
    "dbsf(deviation='population')": lambda p, q, w: plain.comb(
        p, q, w, "dbsf_population", plain.COMBINE["combsum"]
    ),
}


@pytest.mark.parametrize("spec", METHODS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    preferences=strategies.preferences(LIST_FORMS),
    weights=st.lists(st.integers(0, 3), min_size=12, max_size=12),
)
def test_equals_its_definition(spec, preferences, weights):
    method = make(spec)
    by_expert = {e: float(w) for e, w in zip(preferences.experts, weights, strict=False)}
    if not method.tags.weighted or not any(by_expert.values()):
        by_expert = dict.fromkeys(preferences.experts, 1.0)
    if method.tags.weighted:
        method = make(spec, weights=by_expert)
    consensus = method.aggregate(preferences)
    for query in preferences.queries:
        expected = with_silent_last(
            METHODS[spec](preferences, query, by_expert), preferences, query, by_expert
        )
        scale = max(map(abs, expected.values()), default=1.0)
        for place in consensus[query]:
            want = expected[place.item]
            assert place.score == pytest.approx(want, rel=1e-9, abs=1e-9 * max(scale, 1.0)), (place, expected)


def with_silent_last(expected, preferences, query, weights):
    """Items without a score, and items nobody counted speaks of unless they are last anyhow, go below the others."""
    lowest = min((v for v in expected.values() if v is not None), default=1.0)
    known = {i: lowest - max(1.0, 1e-6 * abs(lowest)) if v is None else v for i, v in expected.items()}
    heard = {i for e, a in plain.answers(preferences, query).items() if weights[e] > 0 for i in a}
    silent = [known[i] for i in known if i not in heard]
    lowest = min((known[i] for i in known if i in heard), default=1.0)
    if silent and (max(silent) >= lowest or max(silent) > min(silent)):
        return {i: v if i in heard else lowest - max(1.0, 1e-6 * abs(lowest)) for i, v in known.items()}
    return known


def _qdrant_dbsf(lists):
    """The rule of Qdrant's `score_fusion.rs`: sample variance, 0.5 for one score or equal scores, plain sum."""
    total = {}
    for answer in lists:
        scores = list(answer.values())
        deviation = statistics.stdev(scores) if len(scores) > 1 else 0.0
        low, high = (statistics.fmean(scores) + side * 3 * deviation for side in (-1, 1))
        for item, score in answer.items():
            share = 0.5 if low == high else (score - low) / (high - low)
            total[item] = total.get(item, 0.0) + share
    return total


@pytest.mark.parametrize("seed", range(60))
def test_dbsf_gives_the_scores_of_qdrant(seed):
    random = np.random.default_rng(seed)
    lists = [
        {f"d{i}": float(x) for i, x in zip(random.permutation(12)[:n], random.gamma(2, s, n), strict=True)}
        for n, s in ((10, 8.0), (int(random.integers(2, 9)), 0.1), (3, 1.0))
    ]
    lists.append({"d1": 7.5})
    lists.append({"d2": 3.0, "d3": 3.0})
    found = fuse(lists, "dbsf")
    expected = _qdrant_dbsf(lists)
    assert found.ranking == sorted(expected, key=lambda i: (-expected[i], i))
    np.testing.assert_allclose(found.scores, [expected[i] for i in found.ranking], rtol=1e-12)


@pytest.mark.parametrize("normalizer", ["zscore", "max", "none"])
def test_scores_that_cancel_are_ties(normalizer):
    """Experts whose scores are those of others with the sign turned leave all items tied, whatever the rounding."""
    random = np.random.default_rng(1)
    for _ in range(50):
        scores = random.normal(size=(3, 5)) * 10.0 ** random.integers(-6, 6)
        answers = random.permutation(np.concatenate((scores, -scores)))
        lists = [dict(zip("abcde", answer, strict=True)) for answer in answers]
        found = fuse(lists, "combsum", normalizer=normalizer)
        assert found.ranking == list("abcde")
        assert all(found.tied)
