"""Annotators compared with each other: copies, side bias, speed. Shared with leaderboards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from podium.analysis.annotators.crowd_judgements import CrowdJudgements
from podium.analysis.leaderboard.judges import (
    Agreement,
    compute_agreement,
    estimate_bias_by_judge,
    find_one_sided_judges,
)
from podium.analysis.leaderboard.score_estimate import estimate_scores
from podium.analysis.leaderboard.tally import Tally
from podium.core.errors import InputError
from podium.core.params import suggest_names
from podium.data.ids import Id, Ids
from podium.data.index import ItemIndex
from podium.data.lists import Comparisons, Lists
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8
from podium.kernels.distributions import normal_cdf

__all__ = [
    "SideShares",
    "Speed",
    "compare_peers",
    "count_effective_judges",
    "measure_sides",
    "measure_speed",
]

ENOUGH_TIMES = 5  # timed judgements required to flag an annotator as fast or slow
FAR = 3.0  # robust standard deviations, in the logarithm of the median time
JudgementTimes = Mapping[Id, Sequence[float] | npt.NDArray[np.float64]]


class SideShares(NamedTuple):
    """Per annotator: share of votes for the item shown first, and a test given the items' strengths.

    NaN where the display order is unknown, or where the design confounds side and item.
    """

    share: F8
    p: F8
    one_sided: dict[Id, float]  # annotator -> share of votes for the item shown first


class Speed(NamedTuple):
    """Per annotator: median seconds per judgement (NaN: unknown), and robust deviations from the crowd."""

    median: F8
    deviation: F8  # NaN with too few times


def compare_peers(crowd: CrowdJudgements) -> Agreement | None:
    """The agreement of the annotators with each other; None if they share too little.

    Items are distinct per query, and a place in a list becomes a vote against the middle: pairs of one list are
    correlated, and counting them would make annotators who share five items look like copies.
    """
    p = crowd.preferences
    old, rows = p.index, p.lists.rows
    starts = old.starts + np.arange(len(old) + 1)
    slot = np.arange(crowd.slot_count) + old.query_of_slot  # the middle of a query follows its items
    index = ItemIndex(
        old.queries, starts, Ids(list(range(int(starts[-1])))), np.zeros(int(starts[-1]), np.int32)
    )
    query = np.concatenate((old.query_of_slot[p.lists.item], p.comparisons.query_of_row)).astype(np.int64)
    expert = np.concatenate((crowd.annotator_of_row, p.comparisons.expert))
    middle = starts[1:][query[:rows]] - 1
    item, up = slot[p.lists.item], crowd.row_values >= 0
    winner = np.concatenate((np.where(up, item, middle), slot[p.comparisons.winner]))
    loser = np.concatenate((np.where(up, middle, item), slot[p.comparisons.loser]))
    tie = np.concatenate((crowd.row_values == 0, p.comparisons.tie))
    weight = np.concatenate((np.ones(rows), p.comparisons.weight))
    known = p.comparisons.side
    side = np.concatenate(
        (np.zeros(rows, np.int32), np.zeros(len(p.comparisons), np.int32) if known is None else known)
    )
    order = np.lexsort((expert, query))
    who, won, lost = (c[order].astype(np.int32) for c in (expert, winner, loser))
    query_starts = np.searchsorted(query[order], np.arange(len(old) + 1))
    votes = Comparisons(query_starts, who, won, lost, tie[order], weight[order], side[order])
    tally = Tally.from_preferences(Preferences(index, p.experts, Lists.empty(len(old)), votes))
    return compute_agreement(tally, estimate_scores(tally.to_contests(), tolerance=1e-6))


def count_effective_judges(crowd: CrowdJudgements, agreement: Agreement | None) -> float:
    """Effective number of independent, equally busy judges (Kish's design effect)."""
    volume = crowd.judgements.astype(np.float64)
    spread = float((volume**2).sum())
    if not spread:
        return 0.0
    if agreement is not None:
        looked_at = volume[agreement.codes]
        spread += float(looked_at @ agreement.correlation @ looked_at - (looked_at**2).sum())
    return float(volume.sum() ** 2 / spread)


def measure_sides(crowd: CrowdJudgements) -> SideShares:
    """Share of votes for the item shown first, per annotator; an item is the same in all queries."""
    p, unknown = crowd.preferences, np.full(len(crowd), np.nan)
    if p.comparisons.side is None or not p.comparisons.side.any():
        return SideShares(unknown, unknown, {})
    tally = Tally.from_preferences(Preferences(p.index, p.experts, Lists.empty(len(p.index)), p.comparisons))
    e = estimate_scores(tally.to_contests(), tolerance=1e-6)
    effects = estimate_bias_by_judge(tally, e)
    share = np.array([f.first_share if f.is_known else np.nan for f in effects])
    tests = np.array([2 * normal_cdf(-abs(f.z)) if f.is_known else np.nan for f in effects])
    one_sided = {j.judge: j.first_share for j in find_one_sided_judges(tally, effects)}
    return SideShares(share, tests, one_sided)


def measure_speed(crowd: CrowdJudgements, times: JudgementTimes | None) -> Speed:
    """Median seconds per annotator, compared on the log scale."""
    experts = crowd.preferences.experts
    median = np.full(len(crowd), np.nan)
    count = np.zeros(len(crowd), np.int64)
    for who, seconds in (times or {}).items():
        code = experts.code_of(who)
        if code is None:
            raise InputError(
                f"there are times for {who!r}, who judged nothing; {suggest_names(str(who), map(str, experts))}"
            )
        given = np.asarray(seconds, np.float64)
        if given.ndim != 1 or not np.isfinite(given).all() or (given < 0).any():
            raise InputError(f"a time of {who!r} is not a number of seconds >= 0", remedy="leave it out")
        count[code] = len(given)
        median[code] = np.median(given) if len(given) else np.nan
    log = np.log(np.maximum(median, 1e-3))
    some = count >= ENOUGH_TIMES
    if not some.any():
        return Speed(median, np.full(len(crowd), np.nan))
    middle = np.median(log[some])
    spread = 1.4826 * np.median(np.abs(log[some] - middle))
    deviation = np.divide(log - middle, spread, out=np.zeros(len(crowd)), where=spread > 0)
    return Speed(median, np.where(some, deviation, np.nan))
