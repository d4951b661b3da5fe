"""Checks of a leaderboard as data, each with a verdict and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from podium.analysis.leaderboard.judges import (
    Agreement,
    estimate_bias_by_judge,
    estimate_position_bias,
    find_one_sided_judges,
)
from podium.analysis.leaderboard.score_estimate import Estimate, estimate_scores, votes_to_flip
from podium.analysis.leaderboard.tally import Tally
from podium.core.text import join_names
from podium.data.ids import Id
from podium.kernels.bootstrap import NAMES
from podium.kernels.distributions import logistic

__all__ = ["LeaderboardCheck", "run_checks"]

CheckVerdict = Literal["ok", "warning", "unknown"]
SHOWN = 5  # groups per sentence
FEW = 30  # minimum votes for a meaningful place
BIG = 0.5  # a judge with this share of the votes is too influential
TOGETHER = "too few items were shown on both sides to separate side from item"
LEANING, BIAS = 3.0, 0.05  # minimum standard errors and log odds of a side effect


@dataclass(frozen=True)
class LeaderboardCheck:
    """One check: name, verdict, sentence and evidence."""

    name: str
    verdict: CheckVerdict
    text: str
    details: dict[str, Any] = field(default_factory=dict)


def run_checks(
    tally: Tally, e: Estimate, agreement: Agreement | None, silent: Sequence[Id] = ()
) -> tuple[LeaderboardCheck, ...]:
    """Run all checks."""
    return (
        *_check_comparisons(tally, e, silent),
        *_check_fit(tally, e),
        *_check_sides(tally, e),
        *_check_judges(tally, e, agreement),
    )


def _check_comparisons(tally: Tally, e: Estimate, silent: Sequence[Id]) -> Iterator[LeaderboardCheck]:
    """Whether the items are linked, bounded on both sides, and have enough votes."""
    parts: dict[int, list[Id]] = {}
    for item, root in zip(tally.items, e.solution.component.tolist(), strict=True):
        parts.setdefault(root, []).append(item)
    linked = sorted(parts.values(), key=len, reverse=True)
    details: dict[str, Any] = {"groups": linked, "never_played": list(silent)}
    note = f"; never compared, so excluded: {join_names(silent)}" if silent else ""
    text = f"all items are linked by comparisons{note}"
    if len(linked) > 1:
        words = "; ".join(map(join_names, linked[:SHOWN]))
        text = f"{len(linked)} groups were never compared, so their scores are not comparable: {words}{note}"
        # the groups come from different queries if there are several, each with the items of one group
        pairs = np.unique(np.stack((tally.query, e.solution.component[tally.first]), axis=1), axis=0)
        if 1 < len(np.unique(tally.query)) == len(pairs):
            text += "; no query has items of two groups: build one leaderboard per query (--by query)"
    yield LeaderboardCheck("connected", "warning" if len(linked) > 1 or silent else "ok", text, details)

    wins, losses, ties = tally.count_by_item()
    groups = {
        "never lost": np.flatnonzero((losses == 0) & (ties == 0)),
        "never won": np.flatnonzero((wins == 0) & (ties == 0)),
    }
    other = np.flatnonzero(~e.core & ~np.isin(np.arange(len(e)), np.concatenate(list(groups.values()))))
    groups["never lost to the others as a group, or never beat them"] = other
    details = {what: [tally.items[int(i)] for i in which] for what, which in groups.items()}
    texts = [f"{what}: {join_names(names)}" for what, names in details.items() if names]
    text = (
        "; ".join(texts) + "; only the prior bounds these scores"
        if texts
        else "chains of wins link all items"
    )
    yield LeaderboardCheck("won and lost", "warning" if texts else "ok", text, details)

    total = wins + losses + ties
    few = [tally.items[i] for i in np.flatnonzero(total < FEW).tolist()]
    least, most = float(total.min()), float(total.max())
    details = {"votes": tally.votes, "least": least, "most": most, "few": few}
    text = f"every item has {least:,.0f} votes or more"
    if few:
        text = f"fewer than {FEW} votes each: {join_names(few)}"
    yield LeaderboardCheck("enough votes", "warning" if few else "ok", text, details)


def _check_fit(tally: Tally, e: Estimate) -> Iterator[LeaderboardCheck]:
    """How few votes would change the leader, and whether the fit converged."""
    flip = votes_to_flip(e)
    if flip is None:
        text = "no number of votes between the two would change the leader"
        yield LeaderboardCheck("leader", "unknown", text)
    else:
        first, second = tally.items[flip.leader], tally.items[flip.challenger]
        votes = f"{flip.votes:,} more vote{'' if flip.votes == 1 else 's'}"
        text = f"{votes} for {second} over {first} would change the leader"
        share = flip.votes / max(tally.votes, 1)
        verdict: CheckVerdict = "warning" if flip.votes <= 3 or share < 1e-4 else "ok"
        details: dict[str, Any] = {"votes": flip.votes, "leader": first, "challenger": second}
        yield LeaderboardCheck("leader", verdict, text, details)
    done, steps = bool(e.solution.converged[0]), int(e.solution.iterations[0])
    text = f"the fit converged in {steps} steps" if done else f"the fit stopped after {steps} steps"
    details = {"iterations": steps, "gradient": float(e.solution.gradient[0])}
    yield LeaderboardCheck("converged", "ok" if done else "warning", text, details)


def _check_sides(tally: Tally, e: Estimate) -> Iterator[LeaderboardCheck]:
    """Whether the votes, or single judges, favor the item shown first."""
    if not tally.side.any():
        text = "the data do not record which item was shown first"
        yield LeaderboardCheck("position", "unknown", text)
        yield LeaderboardCheck("one-sided judges", "unknown", text)
        return
    effect = estimate_position_bias(tally, e)
    bias, z, share = effect.advantage, effect.z, float(logistic(effect.advantage))
    details = {"advantage": bias, "z": z, "votes": effect.votes, "share_among_equals": share}
    text = (
        f"of equal items, the one shown first wins {share:.1%} (z = {z:{'.1f' if abs(z) < 1e6 else '.3g'}})"
    )
    if e.contests.side is not None:
        yield LeaderboardCheck("position", "ok", f"{text}; the scores are corrected for this", details)
    elif not effect.is_known:
        yield LeaderboardCheck("position", "unknown", TOGETHER, {"votes": effect.votes})
    elif abs(z) > LEANING and abs(bias) > BIAS:
        text += "; randomize the order, or use sides=fit"
        yield LeaderboardCheck("position", "warning", text, details)
    else:
        yield LeaderboardCheck("position", "ok", text, details)

    effects = estimate_bias_by_judge(tally, e)
    if not any(effect.is_known for effect in effects):
        yield LeaderboardCheck("one-sided judges", "unknown", TOGETHER)
    elif judges := find_one_sided_judges(tally, effects):
        worst = [f"{j.judge} ({j.first_share:.0%} first of {j.votes:,.10g})" for j in judges]
        part = sum(j.votes for j in judges) / tally.votes
        text = f"judges who favor one side: {join_names(worst)}; {part:.1%} of the votes; exclude them"
        evidence = {"judges": [j._asdict() for j in judges], "share": part}
        yield LeaderboardCheck("one-sided judges", "warning", text, evidence)
    else:
        yield LeaderboardCheck("one-sided judges", "ok", "no judge favors one side")


def _check_judges(tally: Tally, e: Estimate, agreement: Agreement | None) -> Iterator[LeaderboardCheck]:
    """Whether one judge decides the leader, and whether judges copy each other."""
    if len(tally.experts) < 2:
        yield LeaderboardCheck("one judge", "unknown", "there is only one judge")
    else:
        share = tally.count_by_expert() / (tally.won + tally.lost + tally.tied).sum()
        top = int(share.argmax())
        judge, leader = tally.experts[top], tally.items[int(e.order[0])]
        text = f"the busiest of {len(share):,} judges, {judge}, cast {share[top]:.1%} of the votes"
        rest, _ = tally.without_experts([judge]).drop_unplayed_items()
        model = e.solution.model
        name, ties = NAMES[model.kind]
        met = rest.to_contests(sides=e.contests.side is not None)
        ties = ties or ("half" if model.half else "ignore")
        other = rest.items[int(estimate_scores(met, model=name, ties=ties, l2=model.l2).order[0])]
        details: dict[str, Any] = {"judge": judge, "share": float(share[top])}
        details |= {"effective": float(1 / (share**2).sum()), "leader": leader, "leader_without": other}
        if other != leader:
            text += f"; without this judge, {other} would lead"
        else:
            text += f"; {leader} leads without this judge too"
        doubtful = other != leader or share[top] > BIG
        yield LeaderboardCheck("one judge", "warning" if doubtful else "ok", text, details)

    if agreement is None:
        yield LeaderboardCheck("copies", "unknown", "too few comparisons have two or more judges")
        return
    count = len(agreement.judges)
    copies = [list(map(str, g)) for g in agreement.copies]
    details = {"judges": count, "effective": agreement.effective, "copies": copies}
    text = f"effective number of independent judges: {agreement.effective:.1f} of {count}"
    if copies:
        text += f"; near-identical answers: {'; '.join(join_names(g) for g in agreement.copies[:SHOWN])}"
    doubtful = bool(copies) or agreement.effective < count / 2
    yield LeaderboardCheck("copies", "warning" if doubtful else "ok", text, details)
