"""Five checks of every voter: votes that favor one item, votes on one item, one side, copies, and bursts.

Each check gives a p-value per voter, corrected for everything that it tries on the voter (items, directions, other
voters), and a sentence about what is improbable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from podium.analysis.leaderboard.decisive_votes import DecisiveVotes, VoteChances
from podium.analysis.leaderboard.voter_tests import (
    WIDEST,
    SharedShifts,
    TrialGroups,
    compute_binomial_tail,
    compute_tails,
    estimate_level_spread,
    estimate_spread,
)
from podium.data.ids import Ids
from podium.kernels.dispatch import F8, I8
from podium.kernels.distributions import logistic, normal_cdf, normal_quantile, poisson_cdf
from podium.kernels.grouping import number_rows

__all__ = [
    "COMMON",
    "VoteTimes",
    "VoterCheck",
    "check_bursts",
    "check_copies",
    "check_favored_items",
    "check_one_item",
    "check_sides",
    "list_voter_items",
    "measure_item_groups",
    "measure_item_shares",
]

LEANING = 0.25  # largest p-value of the votes on an item for which their number is tested
UNUSUAL, COMMON = (
    0.05,
    0.2,
)  # if more than this share of voters has unusual pairs, pairs were not drawn at random
BOTH_SIDES = 0.1  # least share of appearances that the items have on their rarer side
SHARED = 10  # questions that two voters must share for a test of their answers alone
MEETINGS = 3  # ... and for a test of how many questions they share
MOST_MEETINGS = 5_000_000  # pairs of voters who answered the same question
NOTABLE = 2.0  # standard errors from which the agreement of two voters is tested exactly
GAPS = 5  # gaps between votes that a voter needs


@dataclass(frozen=True, eq=False)
class VoterCheck:
    """A check of all voters; `unknown` says why it could not be made."""

    name: str
    p: F8  # by voter; NaN where the voter's votes cannot be tested
    describe: Callable[[int], str]
    unknown: str = ""
    spread: float = 0.0  # estimated differences between honest voters, in log odds (bursts: normal scores)


class ItemGroups(NamedTuple):
    """The votes of each voter on each item: how many are for it, and how improbable that is."""

    voter: I8
    item: I8
    trials: F8
    wins: F8
    expected: F8
    upper: F8  # P(at least as many wins)
    lower: F8
    by_voter: I8  # number of items of each voter
    spread: float


class VoterItems(NamedTuple):
    """The items that each voter voted on, and how often."""

    voter: I8
    item: I8
    trials: F8


class ItemShares(NamedTuple):
    """How often each voter votes on each item, compared with the others."""

    by_voter: F8  # votes of the voter of each group
    share: F8  # of the item in the votes of the others
    tail: F8  # P(at least as many votes on the item)
    p: F8  # by voter: of its most unusual item, corrected for all items
    unusual: float  # share of the voters with a small p-value


class VoteTimes(NamedTuple):
    """When votes were cast, in seconds, by voter."""

    voter: I8
    seconds: F8


def _find_smallest(voters: int, voter: I8, p: F8) -> tuple[F8, I8]:
    """The smallest p-value of each voter's groups, and the group; NaN and -1 for a voter without groups."""
    smallest, at = np.full(voters, np.inf), np.full(voters, -1)
    if (np.diff(voter) >= 0).all():
        first = np.flatnonzero(np.diff(voter, prepend=-1))
        smallest[voter[first]] = np.minimum.reduceat(p, first) if len(first) else p
    else:
        np.minimum.at(smallest, voter, p)
    rows = np.flatnonzero(p == smallest[voter])[::-1]
    at[voter[rows]] = rows
    return np.where(at >= 0, smallest, np.nan), at


def measure_item_groups(votes: DecisiveVotes, chances: VoteChances) -> ItemGroups:
    """Compare the votes of each voter on each item with those that the other voters make expect."""
    size = len(votes.voter)
    both = np.concatenate((votes.voter, votes.voter))
    (voter, item), group = number_rows(both, np.concatenate((votes.winner, votes.loser)))
    trials = TrialGroups.from_labels(
        group, len(voter), np.concatenate((chances.logit, -chances.logit)), np.arange(2 * size) < size
    )
    information = trials.information
    others = np.maximum(chances.information[item] - chances.weights[voter] * information, 0.0)
    # the scores without the voter are estimates, and their error shifts the odds like a taste does
    error = 1 / np.maximum(others, WIDEST**-2)
    won = np.ones(size, np.bool_)
    spread = estimate_spread(SharedShifts(chances.logit, won, group[:size], group[size:], voter, error))
    tails = compute_tails(trials, np.minimum(np.sqrt(spread**2 + error), WIDEST))
    return ItemGroups(
        voter, item, trials.sizes.astype(np.float64), trials.successes, trials.expected, *tails,
        np.bincount(voter, minlength=votes.voters), spread,
    )  # fmt: skip


def check_favored_items(votes: DecisiveVotes, groups: ItemGroups, items: Ids) -> VoterCheck:
    """Whether a voter's votes on some item go to it, or against it, more often than the board makes expect."""
    smallest, at = _find_smallest(votes.voters, groups.voter, np.minimum(groups.upper, groups.lower))

    def describe(voter: int) -> str:
        k = int(at[voter])
        return (
            f"{groups.wins[k]:,.0f} of the {groups.trials[k]:,.0f} votes on {items[int(groups.item[k])]} are for it; "
            f"{groups.expected[k]:,.1f} are expected"
        )

    p = np.minimum(smallest * 2 * np.maximum(groups.by_voter, 1), 1.0)
    return VoterCheck("favored item", p, describe, spread=groups.spread)


def measure_item_shares(votes: DecisiveVotes, groups: ItemGroups | VoterItems, weights: F8) -> ItemShares:
    """How improbable is the number of votes of each voter on each item, if pairs are drawn alike for all voters.

    `weights` of the voters count their votes when the shares of the items are computed.
    """
    weight, counts = weights[groups.voter], votes.counts.astype(np.float64)
    by_voter = counts[groups.voter]
    shown = (
        np.bincount(groups.item, weight * groups.trials, votes.items)[groups.item] - weight * groups.trials
    )
    share = shown / np.maximum(weights @ counts - weight * by_voter, 1.0)
    tail = compute_binomial_tail(groups.trials, by_voter, share)
    # any item could have been shown most often, so the correction is for all items, not for those of the voter
    smallest, _ = _find_smallest(votes.voters, groups.voter, tail)
    p = np.where(counts > 1, np.minimum(smallest * votes.items, 1.0), np.nan)
    known = ~np.isnan(p)
    unusual = float((p[known] < UNUSUAL).mean()) if known.any() else 0.0
    return ItemShares(by_voter, share, tail, p, unusual)


def list_voter_items(votes: DecisiveVotes) -> VoterItems:
    """The items of each voter, with the number of votes."""
    both = np.concatenate((votes.voter, votes.voter))
    (voter, item), group = number_rows(both, np.concatenate((votes.winner, votes.loser)))
    return VoterItems(voter, item, np.bincount(group, minlength=len(voter)).astype(np.float64))


def check_one_item(votes: DecisiveVotes, groups: ItemGroups, items: Ids, weights: F8) -> VoterCheck:
    """Whether a voter votes on one item far more often than it is shown, and mostly for it, or against it.

    Only if pairs are drawn alike for all voters; if many voters see unusual pairs, they were assigned or chosen.
    """
    shares = measure_item_shares(votes, groups, weights)
    if shares.unusual > COMMON:
        text = f"{shares.unusual:.0%} of the voters see unusual pairs, so pairs were not drawn at random for each voter"
        return VoterCheck("one item", np.full(votes.voters, np.nan), str, text)
    leaning = np.minimum(groups.upper, groups.lower) <= LEANING
    # how often an item is shown does not depend on the votes on it, so the two probabilities multiply
    p, at = _find_smallest(votes.voters, groups.voter, np.where(leaning, shares.tail * LEANING, 1.0))

    def describe(voter: int) -> str:
        k = int(at[voter])
        return (
            f"{groups.trials[k]:,.0f} of {shares.by_voter[k]:,.0f} votes are on {items[int(groups.item[k])]}, which is "
            f"in {shares.share[k]:.1%} of the votes of others; {groups.wins[k]:,.0f} of them are for it"
        )

    return VoterCheck("one item", np.minimum(p * 2 * votes.items, 1.0), describe)


def check_sides(votes: DecisiveVotes, chances: VoteChances) -> VoterCheck:
    """Whether a voter votes for the side shown first (or second) more often than the others do."""
    rows = np.flatnonzero(votes.side)
    nothing = np.full(votes.voters, np.nan)
    if not len(rows):
        return VoterCheck("one side", nothing, str, "the data do not record which item was shown first")
    won = votes.side[rows] > 0
    first = np.bincount(np.where(won, votes.winner[rows], votes.loser[rows]), minlength=votes.items)
    second = np.bincount(np.where(won, votes.loser[rows], votes.winner[rows]), minlength=votes.items)
    if np.minimum(first, second).sum() < BOTH_SIDES * (first + second).sum():
        return VoterCheck("one side", nothing, str, "items are always shown on the same side")
    logit = np.where(won, chances.logit[rows], -chances.logit[rows])
    logit = logit + _fit_intercept(logit, won)
    trials = TrialGroups.from_labels(votes.voter[rows], votes.voters, logit, won)
    every = np.arange(votes.voters)
    spread = estimate_spread(SharedShifts(logit, won, votes.voter[rows], None, every, np.zeros(votes.voters)))
    tails = compute_tails(trials, np.full(votes.voters, spread))
    p = np.minimum(2 * np.minimum(tails.upper, tails.lower), 1.0)
    p[trials.sizes == 0] = np.nan
    wins, expected = trials.successes, trials.expected

    def describe(voter: int) -> str:
        return (
            f"{wins[voter]:,.0f} of {trials.sizes[voter]:,} votes are for the item shown first; "
            f"{expected[voter]:,.1f} are expected"
        )

    return VoterCheck("one side", p, describe, spread=spread)


def _fit_intercept(logit: F8, success: Any) -> float:
    """The shift of all log odds that makes the expected number of successes the observed one."""
    shift = 0.0
    for _ in range(20):
        chance = logistic(logit + shift)
        step = float((success - chance).sum() / max((chance * (1 - chance)).sum(), 1e-300))
        shift += float(np.clip(step, -1.0, 1.0))
        if abs(step) < 1e-9:
            break
    return shift


def check_copies(votes: DecisiveVotes, chances: VoteChances, voters: Ids) -> VoterCheck:
    """Whether two voters answer the same questions, and in the same way, more often than other two do."""
    (voter, question), cell = number_rows(votes.voter, votes.question)
    up = np.bincount(cell, np.where(votes.winner < votes.loser, 1.0, -1.0), len(voter))
    logit = np.zeros(len(voter))
    logit[cell] = np.where(votes.winner < votes.loser, chances.logit, -chances.logit)
    clear = np.flatnonzero(up != 0)
    one, two = (clear[rows] for rows in _list_meetings(question[clear]))
    low, high = np.minimum(voter[one], voter[two]), np.maximum(voter[one], voter[two])
    (first, second), pair = number_rows(low, high)
    kept = np.bincount(pair, minlength=len(first))[pair] >= MEETINGS
    if not kept.any():
        text = f"no two voters share {MEETINGS} questions"
        return VoterCheck("copies", np.full(votes.voters, np.nan), str, text)
    (first, second), pair = number_rows(low[kept], high[kept])
    one, two = one[kept], two[kept]
    chance = logistic((logit[one] + logit[two]) / 2)
    agreeing = np.clip(chance**2 + (1 - chance) ** 2, 1e-6, 1 - 1e-6)
    same, odds = up[one] * up[two] > 0, np.log(agreeing / (1 - agreeing))
    by_board = TrialGroups.from_labels(pair, len(first), odds, same)
    # questions differ, so honest voters may agree more than the board makes expect
    odds = odds + _fit_intercept(odds, same)
    trials = TrialGroups.from_labels(pair, len(first), odds, same)
    sizes, every = trials.sizes, np.arange(len(first))
    spread = estimate_spread(SharedShifts(odds, same, pair, None, every, np.zeros(len(first))))
    agreement = np.where(sizes >= SHARED, _test_agreement(trials, spread), 1.0)
    # if questions are drawn alike for all voters, two of them share few
    counts = np.bincount(voter, minlength=votes.voters).astype(np.float64)
    often = np.bincount(question) / len(question)
    meetings = counts[first] * counts[second] * float(often @ often)
    tail = _compute_poisson_tail(sizes, meetings)
    members = np.concatenate((first, second))
    partners = np.bincount(members, minlength=votes.voters)
    typical, _ = _find_smallest(votes.voters, members, np.concatenate((tail, tail)))
    assigned = float((typical * votes.voters < UNUSUAL).sum()) > COMMON * votes.voters
    together = np.ones(len(first))
    if not assigned:
        together = np.where(_test_agreement(by_board, 0.0) <= LEANING, tail * LEANING, 1.0)
    weighted = np.minimum(agreement * np.maximum(partners[first], partners[second]), together * votes.voters)
    p, at = _find_smallest(votes.voters, members, np.concatenate((weighted, weighted)))
    same_count, expected = trials.successes, (trials if assigned else by_board).expected

    def describe(who: int) -> str:
        k = int(at[who]) % len(first)
        other = int(second[k]) if int(first[k]) == who else int(first[k])
        shared = "" if assigned else f"{meetings[k]:,.2g} shared questions and "
        return (
            f"same answer as {voters[other]} to {same_count[k]:,.0f} of {sizes[k]:,} shared questions; "
            f"{shared}{expected[k]:,.1f} equal answers are expected"
        )

    return VoterCheck("copies", np.minimum(2 * p, 1.0), describe, spread=spread)


def _test_agreement(trials: TrialGroups, spread: float) -> F8:
    """P(at least as many equal answers), where there are notably many; 1 elsewhere."""
    information = np.maximum(trials.information, 1e-300)
    z = (trials.successes - trials.expected) / np.sqrt(information + (spread * information) ** 2)
    place = np.full(len(z), -1)
    tested = np.flatnonzero((z > NOTABLE) | ((z > 0) & (trials.sizes < SHARED)))
    place[tested] = np.arange(len(tested))
    group = np.repeat(place, trials.sizes)
    kept = group >= 0
    upper = np.ones(len(z))
    if len(tested):
        few = TrialGroups.from_labels(group[kept], len(tested), trials.logit[kept], trials.success[kept])
        upper[tested] = compute_tails(few, np.full(len(tested), spread)).upper
    return upper


def _compute_poisson_tail(count: I8, mean: F8) -> F8:
    """P(a Poisson variable is at least `count`); very small ones are bounded from above (Chernoff)."""
    tail = 1 - poisson_cdf(count - 1.0, mean)
    ratio = count / np.maximum(mean, 1e-300)
    bound = np.exp(np.minimum(count - mean - count * np.log(ratio), 0.0))
    return np.where((ratio > 1) & (tail < 1e-9), bound, np.maximum(tail, 1e-9))


def _list_meetings(question: I8) -> tuple[I8, I8]:
    """All pairs of rows with the same question, rare questions first, up to a number of pairs."""
    order = np.argsort(question, kind="stable")
    starts = np.flatnonzero(np.diff(question[order], prepend=-1))
    counts = np.diff(np.append(starts, len(question)))
    by_count = np.argsort(counts, kind="stable")
    pairs = counts[by_count] * (counts[by_count] - 1) // 2
    used = by_count[np.cumsum(pairs) <= MOST_MEETINGS]
    ones, twos = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for count in np.unique(counts[used]).tolist():
        if count < 2:
            continue
        begin = starts[used[counts[used] == count]]
        a, b = np.triu_indices(count, 1)
        ones.append(order[(begin[:, None] + a).ravel()])
        twos.append(order[(begin[:, None] + b).ravel()])
    return np.concatenate(ones), np.concatenate(twos)


def check_bursts(times: VoteTimes, voters: int) -> VoterCheck:
    """Whether a voter's votes follow each other faster than those of other voters do."""
    order = np.lexsort((times.seconds, times.voter))
    who, when = times.voter[order], times.seconds[order]
    inside = np.flatnonzero(np.diff(who) == 0)
    gap, owner = np.diff(when)[inside], who[inside]
    count = np.bincount(owner, minlength=voters).astype(np.float64)
    tested = count >= GAPS
    if tested.sum() < 2:
        text = f"fewer than two voters have {GAPS + 1} votes with times"
        return VoterCheck("bursts", np.full(voters, np.nan), str, text)
    # normal scores: quantiles of a normal distribution by the rank of each gap among all gaps
    ordered = np.sort(gap)
    middle = (np.searchsorted(ordered, gap) + np.searchsorted(ordered, gap, side="right")) / 2
    score = normal_quantile((middle + 0.5) / (len(gap) + 1))
    level = np.bincount(owner, score, voters) / np.maximum(count, 1.0)
    within = float(((score - level[owner]) ** 2).sum() / max(len(gap) - (count > 0).sum(), 1))
    within = max(within, 1e-12)  # 0 if all gaps are equal
    level -= np.median(level[tested])
    spread = estimate_level_spread(level[tested], count[tested] / within)
    p = np.full(voters, np.nan)
    p[tested] = normal_cdf(level[tested] / np.sqrt(spread**2 + within / count[tested]))
    ends = np.searchsorted(owner, np.arange(voters + 1))

    def describe(voter: int) -> str:
        own = gap[ends[voter] : ends[voter + 1]]
        return (
            f"{len(own) + 1:,} votes with a median of {np.median(own):,.3g} s between them; "
            f"{np.median(gap):,.3g} s for all voters"
        )

    return VoterCheck("bursts", p, describe, spread=spread)
