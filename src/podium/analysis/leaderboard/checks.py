"""Checks of a leaderboard as data, each with a verdict and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
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
    checks = [
        _check_connected(tally, e, silent),
        _check_won_and_lost(tally, e),
        _check_vote_counts(tally),
        _check_leader(tally, e),
        _check_convergence(e),
    ]
    checks += [
        _check_position_bias(tally, e),
        _check_one_sided_judges(tally, e),
        _check_dominant_judge(tally, e),
        _check_copies(agreement),
    ]
    return tuple(checks)


def _check_connected(tally: Tally, e: Estimate, silent: Sequence[Id]) -> LeaderboardCheck:
    parts: dict[int, list[int]] = {}
    for item, root in enumerate(e.solution.component.tolist()):
        parts.setdefault(root, []).append(item)
    groups = sorted(parts.values(), key=len, reverse=True)
    details: dict[str, Any] = {
        "groups": [[tally.items[i] for i in g] for g in groups],
        "never_played": list(silent),
    }
    note = f"; never compared, so excluded: {join_names(silent)}" if silent else ""
    if len(groups) > 1:
        words = "; ".join(join_names([tally.items[i] for i in g]) for g in groups[:SHOWN])
        text = f"{len(groups)} groups were never compared, so their scores are not comparable: {words}{note}"
        if _queries_stay_apart(tally, e):
            text += "; no query has items of two groups: build one leaderboard per query (--by query)"
        return LeaderboardCheck("connected", "warning", text, details)
    return LeaderboardCheck(
        "connected", "warning" if silent else "ok", f"all items are linked by comparisons{note}", details
    )


def _queries_stay_apart(tally: Tally, e: Estimate) -> bool:
    """Whether the groups come from different queries: several queries, each with the items of one group."""
    group = np.unique(np.stack((tally.query, e.solution.component[tally.first]), axis=1), axis=0)
    return 1 < len(np.unique(tally.query)) == len(group)


def _check_won_and_lost(tally: Tally, e: Estimate) -> LeaderboardCheck:
    wins, losses, ties = tally.count_by_item()
    groups = {
        "never lost": np.flatnonzero((losses == 0) & (ties == 0)),
        "never won": np.flatnonzero((wins == 0) & (ties == 0)),
    }
    other = np.flatnonzero(~e.core & ~np.isin(np.arange(len(e)), np.concatenate(list(groups.values()))))
    groups["never lost to the others as a group, or never beat them"] = other
    texts = [
        f"{what}: {join_names([tally.items[i] for i in which.tolist()])}"
        for what, which in groups.items()
        if len(which)
    ]
    details = {what: [tally.items[int(i)] for i in which] for what, which in groups.items()}
    if not texts:
        return LeaderboardCheck("won and lost", "ok", "chains of wins link all items", details)
    return LeaderboardCheck(
        "won and lost", "warning", "; ".join(texts) + "; only the prior bounds these scores", details
    )


def _check_vote_counts(tally: Tally) -> LeaderboardCheck:
    total = sum(tally.count_by_item())
    few = np.flatnonzero(np.asarray(total) < FEW)
    least, most = float(np.min(total)), float(np.max(total))
    details = {"votes": tally.votes, "least": least, "most": most, "few": [tally.items[int(i)] for i in few]}
    if len(few):
        text = f"fewer than {FEW} votes each: {join_names([tally.items[i] for i in few.tolist()])}"
        return LeaderboardCheck("enough votes", "warning", text, details)
    return LeaderboardCheck("enough votes", "ok", f"every item has {least:,.0f} votes or more", details)


def _check_leader(tally: Tally, e: Estimate) -> LeaderboardCheck:
    flip = votes_to_flip(e)
    if flip is None:
        return LeaderboardCheck(
            "leader", "unknown", "no number of votes between the two would change the leader"
        )
    first, second = tally.items[flip.leader], tally.items[flip.challenger]
    votes = f"{flip.votes:,} more vote{'' if flip.votes == 1 else 's'}"
    text = f"{votes} for {second} over {first} would change the leader"
    share = flip.votes / max(tally.votes, 1)
    verdict: CheckVerdict = "warning" if flip.votes <= 3 or share < 1e-4 else "ok"
    return LeaderboardCheck(
        "leader", verdict, text, {"votes": flip.votes, "leader": first, "challenger": second}
    )


def _check_convergence(e: Estimate) -> LeaderboardCheck:
    done, steps = bool(e.solution.converged[0]), int(e.solution.iterations[0])
    text = f"the fit converged in {steps} steps" if done else f"the fit stopped after {steps} steps"
    gradient = float(e.solution.gradient[0])
    return LeaderboardCheck(
        "converged", "ok" if done else "warning", text, {"iterations": steps, "gradient": gradient}
    )


def _check_position_bias(tally: Tally, e: Estimate) -> LeaderboardCheck:
    known = tally.side != 0
    if not known.any():
        return LeaderboardCheck("position", "unknown", "the data do not record which item was shown first")
    effect = estimate_position_bias(tally, e)
    if not effect.is_known and e.contests.side is None:
        return LeaderboardCheck("position", "unknown", TOGETHER, {"votes": effect.votes})
    bias, z, share = effect.advantage, effect.z, float(logistic(effect.advantage))
    details = {"advantage": bias, "z": z, "votes": effect.votes, "share_among_equals": share}
    text = (
        f"of equal items, the one shown first wins {share:.1%} (z = {z:{'.1f' if abs(z) < 1e6 else '.3g'}})"
    )
    if e.contests.side is not None:
        return LeaderboardCheck("position", "ok", f"{text}; the scores are corrected for this", details)
    if abs(z) > LEANING and abs(bias) > BIAS:
        return LeaderboardCheck(
            "position", "warning", f"{text}; randomize the order, or use sides=fit", details
        )
    return LeaderboardCheck("position", "ok", text, details)


def _check_one_sided_judges(tally: Tally, e: Estimate) -> LeaderboardCheck:
    if not (tally.side != 0).any():
        return LeaderboardCheck(
            "one-sided judges", "unknown", "the data do not record which item was shown first"
        )
    effects = estimate_bias_by_judge(tally, e)
    if not any(effect.is_known for effect in effects):
        return LeaderboardCheck("one-sided judges", "unknown", TOGETHER)
    judges = find_one_sided_judges(tally, effects)
    if not judges:
        return LeaderboardCheck("one-sided judges", "ok", "no judge favors one side")
    worst = [f"{j.judge} ({j.first_share:.0%} first of {j.votes:,.10g})" for j in judges]
    part = sum(j.votes for j in judges) / tally.votes
    text = f"judges who favor one side: {join_names(worst)}; {part:.1%} of the votes; exclude them"
    return LeaderboardCheck(
        "one-sided judges", "warning", text, {"judges": [j._asdict() for j in judges], "share": part}
    )


def _check_dominant_judge(tally: Tally, e: Estimate) -> LeaderboardCheck:
    if len(tally.experts) < 2:
        return LeaderboardCheck("one judge", "unknown", "there is only one judge")
    share = tally.count_by_expert() / (tally.won + tally.lost + tally.tied).sum()
    top = int(share.argmax())
    judge = tally.experts[top]
    details: dict[str, Any] = {
        "judge": judge,
        "share": float(share[top]),
        "effective": float(1 / (share**2).sum()),
    }
    text = f"the busiest of {len(share):,} judges, {judge}, cast {share[top]:.1%} of the votes"
    leader, other = tally.items[int(e.order[0])], _find_leader_without(tally, e, judge)
    details |= {"leader": leader, "leader_without": other}
    if other != leader:
        return LeaderboardCheck(
            "one judge", "warning", f"{text}; without this judge, {other} would lead", details
        )
    return LeaderboardCheck(
        "one judge",
        "warning" if share[top] > BIG else "ok",
        f"{text}; {leader} leads without this judge too",
        details,
    )


def _find_leader_without(tally: Tally, e: Estimate, judge: Id) -> Id:
    rest, _ = tally.without_experts([judge]).drop_unplayed_items()
    model = e.solution.model
    from podium.kernels.bootstrap import NAMES

    name, ties = NAMES[model.kind]
    met = rest.to_contests(sides=e.contests.side is not None)
    again = estimate_scores(met, model=name, ties=ties or ("half" if model.half else "ignore"), l2=model.l2)
    return rest.items[int(again.order[0])]


def _check_copies(agreement: Agreement | None) -> LeaderboardCheck:
    if agreement is None:
        return LeaderboardCheck("copies", "unknown", "too few comparisons have two or more judges")
    count = len(agreement.judges)
    details = {
        "judges": count,
        "effective": agreement.effective,
        "copies": [list(map(str, g)) for g in agreement.copies],
    }
    text = f"effective number of independent judges: {agreement.effective:.1f} of {count}"
    if agreement.copies:
        groups = "; ".join(join_names(g) for g in agreement.copies[:SHOWN])
        return LeaderboardCheck("copies", "warning", f"{text}; near-identical answers: {groups}", details)
    return LeaderboardCheck("copies", "warning" if agreement.effective < count / 2 else "ok", text, details)
