"""The same winners and rankings as pref_voting, where it is installed (the extra bench)."""

from __future__ import annotations

import os

import numpy as np
import pytest

from podium import Preferences, make

pytest.importorskip("pref_voting", reason="needs the extra bench: pip install 'podium-rank[bench]'")

CASES = int(os.environ.get("PODIUM_PARITY_CASES", "60"))
SEEDS = range(CASES)


def sample_profile(seed):
    """A few linear orders with counts, as both libraries read them."""
    from pref_voting.profiles import Profile

    random = np.random.default_rng(seed)
    items, ballots = int(random.integers(2, 7)), int(random.integers(1, 7))
    orders = [random.permutation(items).tolist() for _ in range(ballots)]
    counts = random.integers(1, 5, ballots).tolist()
    lists = {
        f"{n}-{c}": order
        for n, (order, count) in enumerate(zip(orders, counts, strict=True))
        for c in range(count)
    }
    return Preferences.from_lists({"q": lists}), Profile(orders, counts)


def tie_groups(spec, preferences):
    groups = {}
    for place in make(spec).aggregate(preferences)["q"]:
        groups.setdefault(place.score, []).append(place.item)
    return [sorted(g) for g in groups.values()]


def ranking_groups(ranking):
    """The tie groups of one of their rankings, best first."""
    return [sorted(int(c) for c in ranking.cands_at_rank(r)) for r in sorted(set(ranking.ranks))]


def rank_repeatedly(rule, profile):
    """Winners, then the winners among the rest, and so on."""
    groups, left = [], list(profile.candidates)
    while left:
        groups.append(sorted(int(c) for c in rule(profile, curr_cands=left)))
        left = [c for c in left if c not in groups[-1]]
    return groups


@pytest.mark.parametrize("seed", SEEDS)
def test_scoring_rules(seed):
    from pref_voting import scoring_methods as theirs

    preferences, profile = sample_profile(seed)
    assert tie_groups("scoring(points=borda)", preferences) == ranking_groups(theirs.borda_ranking(profile))
    assert tie_groups("scoring(points=plurality)", preferences) == ranking_groups(
        theirs.plurality_ranking(profile)
    )
    assert tie_groups("scoring(points=veto)", preferences) == ranking_groups(
        theirs.anti_plurality_ranking(profile)
    )
    assert tie_groups("scoring(points=dowdall)", preferences)[0] == sorted(theirs.dowdall(profile))
    for spec, points in (
        ("scoring(points=k_approval, k=2)", lambda number, rank: float(rank <= 2)),
        ("scoring(points=[5, 3, 3, 1])", lambda number, rank: (5, 3, 3, 1, 0, 0)[rank - 1]),
    ):
        assert tie_groups(spec, preferences)[0] == sorted(theirs.scoring_rule(profile, score=points))


@pytest.mark.parametrize("seed", SEEDS)
def test_instant_runoff(seed):
    from pref_voting import iterative_methods as theirs

    preferences, profile = sample_profile(seed)
    ours, expected = tie_groups("irv", preferences), ranking_groups(theirs.instant_runoff_ranking(profile))
    assert (
        ours[0]
        == expected[0]
        == sorted(int(c) for c in theirs.instant_runoff(profile, exit_on_majority=False))
    )
    # pref_voting leaves items tied that are eliminated in the same round
    assert [item for group in ours for item in group] == [
        item for group in expected for own in ours if set(own) <= set(group) for item in own
    ]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("strength", ["margin", "winning"])
def test_minimax(seed, strength):
    from pref_voting import margin_based_methods as theirs

    preferences, profile = sample_profile(seed)
    kind = {} if strength == "margin" else {"strength_function": profile.support}
    expected = rank_repeatedly(
        lambda p, curr_cands: theirs.minimax(p, curr_cands=curr_cands, **kind), profile
    )
    assert tie_groups(f"minimax(strength={strength})", preferences) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_split_cycle(seed):
    from pref_voting import margin_based_methods as theirs

    preferences, profile = sample_profile(seed)
    ours = tie_groups("split_cycle", preferences)
    assert ours[0] == sorted(int(c) for c in theirs.split_cycle(profile))
    defeats = set(theirs.split_cycle_defeat(profile).edges)
    groups, left = [], set(profile.candidates)
    while left:
        groups.append(sorted(int(c) for c in left if not any((d, c) in defeats for d in left)))
        left -= set(groups[-1])
    assert ours == groups


@pytest.mark.parametrize("seed", SEEDS)
def test_majority_judgment(seed):
    from pref_voting.grade_methods import majority_judgement
    from pref_voting.grade_profiles import GradeProfile

    random = np.random.default_rng(seed)
    items, voters = int(random.integers(2, 6)), int(random.integers(1, 9))
    rated = [{i: int(random.integers(0, 5)) for i in range(items)} for _ in range(voters)]
    profile = GradeProfile(rated, [0, 1, 2, 3, 4])
    preferences = Preferences.from_lists(
        {"q": {v: {i: float(g) for i, g in r.items()} for v, r in enumerate(rated)}}
    )
    left, expected = list(range(items)), []
    while left:
        expected.append(sorted(int(c) for c in majority_judgement(profile, curr_cands=left)))
        left = [c for c in left if c not in expected[-1]]
    assert tie_groups("majority_judgment", preferences) == expected
