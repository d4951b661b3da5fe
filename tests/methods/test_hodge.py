"""Least-squares ranking against numpy's least squares, and its decomposition on flows whose parts are known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from podium import Preferences, make
from podium.data.preferences import Form
from podium.kernels.preference_svd import build_dense_matrix
from podium.methods.hodge import HodgeRank
from podium.methods.learned.expert_matrices import build_expert_matrices
from podium.testing.samples import iterate_samples


def votes(pairs, **more):
    n = len(pairs)
    return Preferences.from_comparisons(["q"] * n, ["e"] * n, *zip(*pairs, strict=True), **more)


def plain_tables(preferences, query, strength, weights):
    """Sums over the experts of net strengths and of weights, pair by pair."""
    one = preferences.select([query])
    grouped = build_expert_matrices(one, strength)
    size = len(one.index.items)
    net, total = np.zeros((2, size, size))
    for g, expert in enumerate(grouped.group):
        y, w = build_dense_matrix(grouped.matrices, g), weights[int(expert)]
        net += w * (y - y.T)
        lists, items = one.lists, set()
        for number in np.flatnonzero(lists.expert == expert):
            items |= set(lists.item[lists.starts[number] : lists.starts[number + 1]].tolist())
        listed = np.isin(np.arange(size), list(items))
        both = (
            listed[:, None] & listed
            if one.unlisted == "unknown"
            else (listed[:, None] | listed) & bool(items)
        )
        total += w * both * (1 - np.eye(size))
        mine = one.comparisons
        for k in np.flatnonzero(mine.expert == expert):
            a, c, weight = mine.winner[k], mine.loser[k], mine.weight[k]
            total[a, c] += w * weight
            total[c, a] += w * weight
    return net, total


@pytest.mark.parametrize("strength", ["binary", "rank", "log"])
@pytest.mark.parametrize("answers", list(iterate_samples(frozenset(Form), 1)), ids=lambda a: a.form.value)
def test_scores_are_numpys_least_squares(answers, strength) -> None:
    preferences = answers.to_preferences()
    weights = np.linspace(1, 2, len(preferences.experts))
    method = make("hodge", strength=strength, weights=weights.tolist())
    scores = method.aggregate(preferences).scores
    raw = method._compute_raw_outcome(preferences, weights, None).scores
    for query in preferences.queries:
        net, total = plain_tables(preferences, query, strength, weights)
        pairs = [(i, j) for i, j in itertools.combinations(range(len(net)), 2) if total[i, j] > 0]
        design, target = np.zeros((len(pairs), len(net))), np.zeros(len(pairs))
        for row, (i, j) in enumerate(pairs):
            root = np.sqrt(total[i, j])
            design[row, [i, j]] = root, -root
            target[row] = root * net[i, j] / total[i, j]
        expected = np.linalg.lstsq(design, target, rcond=None)[0]  # of smallest norm: mean 0 in each group
        np.testing.assert_allclose(raw[preferences.index.slots(query)], expected, atol=1e-9)
    assert np.isfinite(scores).all()


def test_full_lists_give_borda_counts() -> None:
    random = np.random.default_rng(0)
    p = Preferences.from_lists({"q": {e: random.permutation(list("abcdef")).tolist() for e in "xyz"}})
    scores, borda = (make(name).aggregate(p).to_dict()["q"] for name in ("hodge", "borda"))
    ratio = np.polyfit([borda[i] for i in "abcdef"], [scores[i] for i in "abcdef"], 1)
    assert [scores[i] for i in "abcdef"] == pytest.approx(np.polyval(ratio, [borda[i] for i in "abcdef"]))


def test_differences_of_scores_have_no_cyclic_part() -> None:
    p = Preferences.from_lists({"q": {"x": ["a", "b", "c", "d"], "y": ["a", "b", "c", "d"]}})
    found = make("hodge(strength=rank)").aggregate(p)
    assert found.diagnostics.notes == ("cyclic share 0.0%",)
    assert HodgeRank(strength="rank").decompose(p) == [("q", 1.0, 0.0, 0.0)]


def test_the_share_of_equal_strengths_on_one_order() -> None:
    """All strengths are 1: the least squares of their Borda scores leave (M - 2) / 3M."""
    for size in (3, 5, 9):
        p = Preferences.from_lists({"q": {"x": [f"i{k}" for k in range(size)]}})
        cyclic = 1 - HodgeRank(strength="binary").decompose(p)[0].consistent
        assert cyclic == pytest.approx((size - 2) / (3 * size))


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (["ab", "bc", "ca"], (0, 1, 0)),  # one triangle
        (["ab", "bc", "cd", "da"], (0, 0, 1)),  # a square without diagonals
        (["ab", "bc", "cd"], (1, 0, 0)),  # a path
        (["ab", "bc", "cd", "da", "ca"], None),  # a square with one diagonal: no longer cycle
    ],
)
def test_cycles_by_length(pairs, expected) -> None:
    shares = HodgeRank().decompose(votes(pairs))[0]
    if expected is None:
        assert shares.longer == pytest.approx(0, abs=1e-12)
        assert 0 < shares.triangles < 1
    else:
        assert shares[1:] == pytest.approx(expected, abs=1e-12)
    assert sum(shares[1:]) == pytest.approx(1)


def test_the_parts_are_orthogonal_projections() -> None:
    """Random votes: the three parts against projections onto bases of gradients, curls, and what is left."""
    random = np.random.default_rng(5)
    items = "abcdefg"
    pairs = ["".join(random.choice(list(items), 2, replace=False)) for _ in range(14)]
    table = next(HodgeRank()._build_tables(votes(pairs), np.ones(1)))
    first, second = np.nonzero(np.triu(table.weight, 1))
    root = np.sqrt(table.weight[first, second])
    flow, size = root * table.strength[first, second], len(table.weight)
    gradients = np.zeros((len(first), size))
    gradients[np.arange(len(first)), first], gradients[np.arange(len(first)), second] = root, -root
    curls = []
    for i, j, k in itertools.combinations(range(size), 3):
        if table.weight[i, j] and table.weight[j, k] and table.weight[i, k]:
            row = np.zeros(len(first))
            for a, b, sign in ((i, j, 1), (j, k, 1), (i, k, -1)):
                at = np.flatnonzero((first == a) & (second == b))[0]
                row[at] = sign / root[at]
            curls.append(row)
    basis = np.array(curls).T
    parts = [m @ np.linalg.pinv(m) @ flow for m in (gradients, basis)]
    assert abs(parts[0] @ parts[1]) < 1e-10
    expected = [float(p @ p / (flow @ flow)) for p in parts]
    assert HodgeRank().decompose(votes(pairs))[0][1:] == pytest.approx([*expected, 1 - sum(expected)])


def test_groups_without_comparisons_between_them_are_reported() -> None:
    found = make("hodge").aggregate(votes(["ab", "cd", "ce"]))
    assert "in 1 of 1 queries the compared items fall into groups" in found.diagnostics.notes[1]
    score = found.to_dict()["q"]
    assert score["a"] + score["b"] == pytest.approx(0)
    assert score["c"] + score["d"] + score["e"] == pytest.approx(0)


def test_no_preferences_and_ties() -> None:
    tied = votes(["ab"], tie=[True])
    assert HodgeRank().decompose(tied) == [("q", 0.0, 0.0, 0.0)]
    assert make("hodge").aggregate(tied).diagnostics.notes == ("cyclic share 0.0%",)
    many = "".join(chr(ord("a") + k) for k in range(26)) + "".join(chr(ord("A") + k) for k in range(26))
    shares = HodgeRank().decompose(votes([a + b for a, b in itertools.pairwise(many)] + [many[-1] + many[0]]))
    assert np.isnan(shares[0].triangles)
