"""Compiled kernels against their numpy references on random inputs of 0 to 5,000 rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from podium.data.ids import id_order
from podium.kernels import grouping, majority, ordering, pairwise_votes, plain_lists, segments
from reference import array_kernels as arrays
from reference import array_majority as matrices
from reference import positions
from reference.fuzz_inputs import sample_scores, sample_size, sample_starts, sample_votes


def assert_equal_bits(found, expected):
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two)
        assert np.asarray(one).tobytes() == np.asarray(two).tobytes()


def test_rank_order(random):
    rows = sample_size(random)
    starts, scores = sample_starts(random, rows), sample_scores(random, rows)
    key = random.permutation(rows).astype(np.int32) if random.random() < 0.5 else None
    magnitude = random.choice([0.0, 1e3])
    given, reused = scores.copy(), scores.copy()
    expected = arrays.rank_order(given, starts, key, magnitude=magnitude)
    assert_equal_bits(ordering.rank_order(scores, starts, key, magnitude=magnitude), expected)
    assert scores.tobytes() == given.tobytes()
    found = ordering.rank_order(reused, starts, key, magnitude=magnitude, overwrite=True)
    assert_equal_bits(found, expected)
    assert found[0] is reused


def test_sums_and_statistics_of_lists(random):
    rows, slots = sample_size(random), int(random.integers(1, 300))
    starts = sample_starts(random, rows)
    lists = len(starts) - 1
    query_starts = np.unique(np.append(random.integers(0, lists + 1, 3), [0, lists]))
    # the items of a query are its own, as threads write to separate slots
    query = np.repeat(np.arange(len(query_starts) - 1), np.diff(starts[query_starts]))
    item = (query * slots + random.integers(0, slots, rows)).astype(np.int32)
    total = slots * (len(query_starts) - 1)
    rank = random.integers(0, 50, rows).astype(np.int32)
    points, base, slope, value = (random.normal(size=n) for n in (50, lists, lists, rows))
    found = segments.sum_points(query_starts, starts, item, rank, points, base, total)
    assert_equal_bits([found], [arrays.sum_points(starts, item, rank, points, base, total)])
    for given in (value, None):
        found = segments.sum_affine(query_starts, starts, item, given, base, slope, total)
        assert_equal_bits([found], [arrays.sum_affine(starts, item, given, base, slope, total)])
    assert_equal_bits(
        segments.compute_list_statistics(starts, value), arrays.compute_list_statistics(starts, value)
    )


def test_ranks_and_repeats_in_lists(random):
    rows = sample_size(random)
    starts = sample_starts(random, rows)
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    rank = random.integers(1, 20, rows).astype(np.int32)
    rank = rank[np.lexsort((rank, group))]
    assert_equal_bits([segments.fractional_ranks(starts, rank)], [arrays.fractional_ranks(starts, rank)])
    if rows:
        slot = random.integers(0, random.choice([30, 10**6]), rows)
        assert segments.find_first_repeat(group, slot) == arrays.find_first_repeat(group, slot)


def test_number_pairs(random):
    rows, groups, width = (
        sample_size(random),
        int(random.integers(1, 30)),
        int(random.choice([3, 100, 10_000])),
    )
    group, value = random.integers(0, groups, rows), random.integers(0, width, rows)
    if random.random() < 0.5:
        group = np.sort(group)
    found = grouping.number_pairs(group, value, groups, width)
    assert_equal_bits(found, arrays.number_pairs(group, value, groups, width))


def test_vote_matrix(random):
    votes = sample_votes(random)
    for q in range(len(votes.slots) - 1):
        found = pairwise_votes.compute_vote_matrix(votes, q)
        assert_equal_bits([found], [matrices.compute_vote_matrix(votes, q)])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("condorcet", ()),
        ("copeland", ()),
        ("greedy", ()),
        ("schulze", (True,)),
        ("schulze", (False,)),
        ("ranked_pairs", ()),
        ("minimax", (True,)),
        ("minimax", (False,)),
        ("split_cycle", (True,)),
        ("split_cycle", (False,)),
    ],
)
def test_orders_by_majority(random, name, options):
    votes = sample_votes(random)
    found = majority.score_by_majority(getattr(majority, name), votes, 0.0, *options)
    for q, (a, b) in enumerate(itertools.pairwise(votes.slots)):
        if a < b:
            table = matrices.compute_vote_matrix(votes, q)
            assert found[a:b].tolist() == getattr(matrices, name)(table, *options).tolist()
            assert found[a:b].tolist() == getattr(majority, name)(table, *options).tolist()


def test_sums_over_plain_lists(random):
    ids = [int(i) if random.random() < 0.2 else f"d{i}" for i in random.permutation(500)]
    types = random.choice(["str", "int", "both"])
    ids = ids if types == "both" else [i for i in ids if type(i).__name__ == types]
    values = random.choice(
        [random.random(600), 1 / (60 + np.arange(600.0)), 1.0 + 1e-13 * random.integers(0, 4, 600)]
    )
    lists = [
        [ids[int(i)] for i in random.permutation(len(ids))[: int(random.integers(0, len(ids) + 1))]]
        for _ in range(int(random.integers(0, 6)))
    ]
    totals, expected = {}, {}
    for one in lists:
        found = plain_lists.add_points(totals, one, tuple(values.tolist()))
        assert found == sum({str: 1, int: 2}[kind] for kind in set(map(type, one)))
        for item, value in zip(one, values.tolist(), strict=False):
            expected[item] = expected.get(item, 0.0) + value
    assert totals == expected
    assert list(totals) == list(expected)
    assert plain_lists.add_points({}, ["a", 1.5], (1.0, 2.0)) == -1
    assert plain_lists.rank_totals(totals, 1e-12, id_order) == positions.rank_totals(expected, 1e-12)
    if types != "both":
        assert plain_lists.rank_totals(totals, 1e-12, None) == positions.rank_totals(expected, 1e-12)
