"""Kernels against plain loops, in one thread and in several."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.kernels import dispatch, grouping, ordering, segments
from reference import kernels as plain

quick = settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=["one thread", "threads"])
def path(request, monkeypatch):
    if request.param == "threads":
        monkeypatch.setattr(dispatch, "THREAD_WORK", 0)


@st.composite
def segmented(draw, values):
    lengths = draw(st.lists(st.integers(0, 40), min_size=1, max_size=5))
    starts = np.concatenate(([0], np.cumsum(lengths)))
    return starts, draw(st.lists(values, min_size=int(starts[-1]), max_size=int(starts[-1])))


SCORES = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e6, 1e6),
    st.sampled_from([0.1 + 0.2, 0.3, 0.3 + 1e-16, 1e300, -1e300, 1.7e308, -1.7e308, 5e-324]),
)


@quick
@given(segmented(SCORES), st.booleans())
def test_rank_order(path, data, keyed):
    starts, scores = data
    key = np.arange(len(scores), 0, -1, dtype=np.int32) if keyed else None
    snapped, order, tied = ordering.rank_order(np.array(scores, np.float64), starts, key)
    expected = plain.rank_order(scores, starts.tolist(), None if key is None else key.tolist())
    assert (snapped.tolist(), order.tolist(), tied.tolist()) == expected


def test_rank_order_of_a_crowd_and_an_outlier(path):
    """One outlier puts everything else in one bucket; many equal scores make one bucket too."""
    random = np.random.default_rng(0)
    scores = np.concatenate((random.normal(size=500), [1e12], np.ones(300), random.normal(size=200)))
    starts = np.array([0, 501, 1001])
    snapped, order, tied = ordering.rank_order(scores, starts)
    expected = plain.rank_order(scores.tolist(), starts.tolist())
    assert (snapped.tolist(), order.tolist(), tied.tolist()) == expected


@quick
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=60), st.booleans())
def test_number_pairs(path, rows, grouped):
    rows = sorted(rows, key=lambda r: r[0]) if grouped else rows
    group, value = np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], np.int64)
    found = grouping.number_pairs(group, value, 5, 7)
    assert tuple(f.tolist() for f in found) == plain.number_pairs(group.tolist(), value.tolist(), 5)


@quick
@given(segmented(st.integers(1, 9)))
def test_fractional_ranks(path, data):
    starts, ranks = data
    rank = np.array([r for a, b in itertools.pairwise(starts) for r in sorted(ranks[a:b])], np.int32)
    assert segments.fractional_ranks(starts, rank).tolist() == plain.fractional_ranks(
        starts.tolist(), rank.tolist()
    )


@quick
@given(segmented(st.integers(-3, 3).map(float)))
def test_competition_ranks(path, data):
    starts, values = data
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    value = np.array(values, np.float64)[np.lexsort((values, group))]
    assert segments.competition_ranks(group, value).tolist() == plain.competition_ranks(
        group.tolist(), value.tolist()
    )


@quick
@given(segmented(SCORES.filter(lambda v: abs(v) < 1e9)))
def test_statistics(path, data):
    starts, values = data
    value = np.array(values, np.float64)
    stats = segments.compute_list_statistics(starts, value)
    for i, (a, b) in enumerate(itertools.pairwise(starts)):
        here = value[a:b] if b > a else np.zeros(1)
        expected = (here.min(), here.max(), here.mean(), here.std())
        assert (stats.low[i], stats.high[i], stats.mean[i], stats.deviation[i]) == pytest.approx(
            expected, abs=1e-6
        )


@quick
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=30))
def test_first_repeat(path, rows):
    rows = sorted(rows, key=lambda r: r[0])
    group, slot = (np.array(c, np.int64) for c in zip(*rows, strict=True))
    expected = next((i for i, r in enumerate(rows) if r in rows[:i]), None)
    assert segments.find_first_repeat(group, slot) == expected
