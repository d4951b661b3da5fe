"""Preferences as pairwise matrices, against the definition and on the real data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium import Preferences, formats
from podium.core.errors import InputError
from podium.data.building.subset import restrict_items
from podium.kernels import preference_svd
from podium.methods.learned.expert_matrices import (
    build_expert_matrices,
    build_group_table,
    find_unranked_cells,
)
from podium.testing import strategies
from reference import strengths as plain

TRANSFORMS = ["binary", "rank", "log"]
few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def said(preferences, query, experts):
    """Items, lists and votes of some experts (by code) on a query (by code)."""
    p, lists, votes = preferences, preferences.lists, preferences.comparisons
    items = range(int(p.index.starts[query]), int(p.index.starts[query + 1]))
    ballots = []
    for number in range(lists.query_starts[query], lists.query_starts[query + 1]):
        if lists.expert[number] in experts:
            rows = slice(lists.starts[number], lists.starts[number + 1])
            ballots.append(dict(zip(lists.item[rows].tolist(), lists.rank[rows].tolist(), strict=True)))
    pairs = [
        (int(votes.winner[v]), int(votes.loser[v]), 0.0 if votes.tie[v] else float(votes.weight[v]))
        for v in range(votes.query_starts[query], votes.query_starts[query + 1])
        if votes.expert[v] in experts
    ]
    return items, ballots, pairs


@pytest.mark.parametrize("transform", TRANSFORMS)
@few
@given(preferences=strategies.preferences(), data=st.data())
def test_one_matrix_a_query_and_group(transform, preferences, data):
    experts = len(preferences.experts)
    groups = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=experts, max_size=experts)))
    m, group = build_expert_matrices(preferences, transform, groups)
    absent = find_unranked_cells(preferences, groups, 3)
    by_pair = {(int(q), int(g)): at for at, (q, g) in enumerate(zip(m.query, group, strict=True))}
    assert list(by_pair) == sorted(by_pair)
    assert len(by_pair) == len(group)
    for query in range(len(preferences)):
        for number in range(3):
            members = {int(e) for e in np.flatnonzero(groups == number)}
            items, ballots, pairs = said(preferences, query, members)
            assert ((query, number) in by_pair) == bool(ballots or pairs)
            spoken = {i for b in ballots for i in b} | {i for pair in pairs for i in pair[:2]}
            assert [i for i in items if absent[i, number]] == [i for i in items if i not in spoken]
            if (query, number) in by_pair:
                below = preferences.unlisted == "below"
                expected = plain.matrix(items, ballots, pairs, transform, below)
                found = preference_svd.build_dense_matrix(m, by_pair[query, number])
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@few
@given(preferences=strategies.preferences())
def test_every_expert_by_itself(preferences):
    experts = np.arange(len(preferences.experts))
    for a, b in zip(
        build_expert_matrices(preferences, "log"),
        build_expert_matrices(preferences, "log", experts),
        strict=True,
    ):
        for x, y in zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]:
            np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(
        find_unranked_cells(preferences, None, len(experts)),
        find_unranked_cells(preferences, experts, len(experts)),
    )


def test_table_puts_values_at_their_slots():
    p = Preferences.from_lists({"q": {"x": ["a", "b"], "y": ["c", "a"]}, "r": {"y": ["b", "d"]}})
    grouped = build_expert_matrices(p, "binary")
    wins, _ = preference_svd.sum_rows_and_columns(grouped.matrices)
    assert p.index.items.tolist() == ["a", "b", "c", "b", "d"]
    assert build_group_table(grouped, wins, 2).tolist() == [[1, 0], [0, 0], [0, 1], [0, 1], [0, 0]]


def test_ratings_use_their_implied_ranks():
    p = Preferences.from_lists({"q": {"judge": {"a": 9.0, "b": 1.0, "c": 9.0, "d": 0.5}}})
    y = preference_svd.build_dense_matrix(build_expert_matrices(p, "rank").matrices, 0)  # ranks 1, 3, 1, 4
    np.testing.assert_allclose(y[0], [0, 2 / 4, 0, 3 / 4])
    np.testing.assert_allclose(y[1], [0, 0, 0, 1 / 4])
    assert not y[3].any()


@few
@given(preferences=strategies.preferences(), data=st.data())
def test_restricted(preferences, data):
    slots = len(preferences.index.items)
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=slots, max_size=slots)))
    left, old = restrict_items(preferences, keep), np.flatnonzero(keep)
    assert [preferences.index.items[int(i)] for i in old] == left.index.items.tolist()
    assert left.queries.tolist() == preferences.queries.tolist()
    everybody = set(range(len(preferences.experts)))
    for query in range(len(preferences)):
        items, ballots, pairs = said(left, query, everybody)
        _, all_ballots, all_pairs = said(preferences, query, everybody)
        kept = [{i: r for i, r in b.items() if keep[i]} for b in all_ballots]
        assert [{int(old[i]): r for i, r in b.items()} for b in ballots] == [b for b in kept if b]
        assert [(old[w], old[o], s) for w, o, s in pairs] == [
            v for v in all_pairs if keep[v[0]] and keep[v[1]]
        ]
        assert sorted(left.index.arrival[items.start : items.stop].tolist()) == list(range(len(items)))
    again = np.ones(slots, np.bool_)
    assert restrict_items(preferences, again) == preferences


def test_weights_of_votes_that_would_overflow():
    p = Preferences.from_comparisons(["q"] * 2, ["e"] * 2, ["a", "b"], ["b", "c"], weight=[1.0, 1e200])
    with pytest.raises(InputError, match=r"weight 1e\+200.*1e-60 to 1e\+60"):
        build_expert_matrices(p, "binary")


@pytest.fixture(scope="module")
def real(data_dir):
    return formats.read([data_dir / "mq2008-agg" / "A1.txt.gz"]).dataset().preferences


@pytest.mark.data
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_real_lists(real, transform, pooled):
    """Leading vectors as numpy's decomposition gives them, on lists with gaps, alone and pooled."""
    m = build_expert_matrices(
        real, transform, np.zeros(len(real.experts), np.int64) if pooled else None
    ).matrices
    found = preference_svd.compute_leading_vectors(m)
    assert found.converged
    for g in range(0, len(m.query), 9 if pooled else 97):
        y, mine = preference_svd.build_dense_matrix(m, g), slice(m.starts_out[g], m.starts_out[g + 1])
        left, values, right = np.linalg.svd(y)
        assert found.sigma[g] == pytest.approx(values[0], rel=1e-12, abs=1e-12)
        if values[0] > 0:
            np.testing.assert_allclose(found.u[mine], np.abs(left[:, 0]), atol=1e-8)
            np.testing.assert_allclose(found.v[mine], np.abs(right[0]), atol=1e-8)
