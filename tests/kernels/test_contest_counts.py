"""Contests counted and linked, against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from podium import Preferences
from podium.kernels import contest_counts, contest_scores, dispatch
from podium.methods.majority import collect_votes
from podium.testing import strategies
from reference import contests as plain
from reference.pairs import voices

few = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("way", ["default", "table", "rows"])
@few
@given(preferences=strategies.preferences())
def test_count_equals_its_definition(monkeypatch, way, preferences):
    monkeypatch.setattr(dispatch, "THREAD_WORK", 10**12 if way == "default" else 0)
    monkeypatch.setattr(contest_counts, "TABLE", 10**6 if way == "table" else 0)
    by_expert = {e: 0.5 * (n % 3) for n, e in enumerate(preferences.experts)}
    weights = np.array(list(by_expert.values()))
    found = contest_scores.count_contests(*collect_votes(preferences, weights))
    assert found.pair_starts[-1] == len(found.first)
    for q, query in enumerate(preferences.queries):
        items, said = voices(preferences, query, by_expert)
        base, rows = found.starts[q], range(found.pair_starts[q], found.pair_starts[q + 1])
        got = {
            (items[found.first[p] - base], items[found.second[p] - base]): (
                found.won[p],
                found.lost[p],
                found.tied[p],
            )
            for p in rows
        }
        expected = plain.count_contests(items, said)
        assert list(got) == list(expected)
        assert np.allclose(list(got.values()), list(expected.values()), rtol=1e-12)


def test_count_by_side():
    votes = collect_votes(_comparisons([("a", "b", False), ("b", "a", False), ("a", "b", True)]), np.ones(1))
    found = contest_scores.count_contests(*votes, side=np.array([1.0, 1.0, -1.0]))
    assert found.side.tolist() == [-1.0, 1.0]
    assert (found.won.tolist(), found.lost.tolist(), found.tied.tolist()) == ([0, 1], [1, 0], [1, 0])


def test_oriented_votes_do_not_depend_on_which_item_is_named_first():
    """Each vote counts for its winner, and the side shown first follows the lower item."""
    winner, loser = np.array([3, 1, 2, 1]), np.array([1, 3, 1, 2])
    tie, weight, side = np.array([False, False, True, True]), np.array([2.0, 0.5, 1.0, 1.0]), [1, -1, -1, 1]
    rows = contest_counts.orient_votes(winner, loser, tie, weight, side=np.array(side))
    for k in range(4):
        low = min(winner[k], loser[k])
        assert (rows.first[k], rows.second[k]) == (low, max(winner[k], loser[k]))
        assert rows.won[k] == (weight[k] if winner[k] == low and not tie[k] else 0)
        assert rows.lost[k] == (weight[k] if loser[k] == low and not tie[k] else 0)
        assert rows.tied[k] == (weight[k] if tie[k] else 0)
        assert rows.side[k] == (side[k] if winner[k] == low else -side[k])
    assert not rows.group.any()


def _comparisons(rows):
    winner, loser, tie = zip(*rows, strict=True)
    return Preferences.from_comparisons(["q"] * len(rows), ["j"] * len(rows), winner, loser, tie=tie)


@few
@given(preferences=strategies.preferences())
def test_components_are_mutual_reach(preferences):
    met = contest_scores.count_contests(*collect_votes(preferences, np.ones(len(preferences.experts))))
    slots = int(met.starts[-1])
    beats = np.eye(slots, dtype=bool)
    beats[met.first[met.won + met.tied > 0], met.second[met.won + met.tied > 0]] = True
    beats[met.second[met.lost + met.tied > 0], met.first[met.lost + met.tied > 0]] = True
    linked = beats | beats.T
    for _ in range(slots.bit_length() + 1):
        beats, linked = beats @ beats, linked @ linked
    found = contest_scores.find_components(met)
    assert found.strong.tolist() == (beats & beats.T).argmax(axis=1).tolist()
    assert found.weak.tolist() == linked.argmax(axis=1).tolist()
    for thread_work in (0, 10**12):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dispatch, "THREAD_WORK", thread_work)
            assert contest_scores.find_weak_components(met).tolist() == found.weak.tolist()
