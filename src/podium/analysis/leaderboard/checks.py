"""Whether a leaderboard can be trusted: checks as data, each with a verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from podium.analysis.leaderboard.inference import Estimate, estimate_scores, votes_to_flip
from podium.analysis.leaderboard.judges import (
    Agreement,
    compute_vote_shares,
    estimate_bias_by_judge,
    estimate_position_bias,
    find_one_sided_judges,
)
from podium.analysis.leaderboard.tally import Tally
from podium.data.ids import Id, Ids

__all__ = ["LeaderboardCheck", "run_checks"]

CheckVerdict = Literal["ok", "warning", "unknown"]
SHOWN = 5  # names in a sentence
FEW = 30  # votes below which an item's place is guesswork
BIG = 0.5  # share of the votes that makes one judge too strong
TOGETHER = "items were not shown on both sides often enough to tell the side from the item"
LEANING, BIAS = 3.0, 0.05  # standard errors, and log odds, from which sides matter


@dataclass(frozen=True)
class LeaderboardCheck:
    """One question, its answer, and what it rests on."""

    name: str
    verdict: CheckVerdict
    text: str
    details: dict[str, Any] = field(default_factory=dict)


def run_checks(
    tally: Tally, e: Estimate, agreement: Agreement | None, silent: Sequence[Id] = ()
) -> tuple[LeaderboardCheck, ...]:
    """All checks."""
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


def join_names(items: Ids | Sequence[Id], which: Sequence[int] | None = None) -> str:
    """A few names, and how many more there are."""
    chosen = list(items) if which is None else [items[int(i)] for i in which]
    more = f" and {len(chosen) - SHOWN} more" if len(chosen) > SHOWN else ""
    return ", ".join(map(str, chosen[:SHOWN])) + more


def _check_connected(tally: Tally, e: Estimate, silent: Sequence[Id]) -> LeaderboardCheck:
    parts: dict[int, list[int]] = {}
    for item, root in enumerate(e.solution.component.tolist()):
        parts.setdefault(root, []).append(item)
    groups = sorted(parts.values(), key=len, reverse=True)
    details: dict[str, Any] = {
        "groups": [[tally.items[i] for i in g] for g in groups],
        "never_played": list(silent),
    }
    said = f"; never compared, so left out: {join_names(silent)}" if silent else ""
    if len(groups) > 1:
        words = "; ".join(join_names(tally.items, g) for g in groups[:SHOWN])
        text = f"{len(groups)} groups never met, so their scores cannot be compared: {words}{said}"
        if _queries_stay_apart(tally, e):
            text += "; no query has items of two groups: make one leaderboard per query (--by query)"
        return LeaderboardCheck("connected", "warning", text, details)
    return LeaderboardCheck(
        "connected", "warning" if silent else "ok", f"all items are linked by comparisons{said}", details
    )


def _queries_stay_apart(tally: Tally, e: Estimate) -> bool:
    """Whether the groups are those of different queries: several queries, and the items of each in one group."""
    group = np.unique(np.stack((tally.query, e.solution.component[tally.first]), axis=1), axis=0)
    return 1 < len(np.unique(tally.query)) == len(group)


def _check_won_and_lost(tally: Tally, e: Estimate) -> LeaderboardCheck:
    wins, losses, ties = tally.count_by_item()
    found = {
        "never lost": np.flatnonzero((losses == 0) & (ties == 0)),
        "never won": np.flatnonzero((wins == 0) & (ties == 0)),
    }
    other = np.flatnonzero(e.prior_only & ~np.isin(np.arange(len(e)), np.concatenate(list(found.values()))))
    found["never lost to, or never beat, the others as a group"] = other
    texts = [
        f"{what}: {join_names(tally.items, which.tolist())}" for what, which in found.items() if len(which)
    ]
    details = {what: [tally.items[int(i)] for i in which] for what, which in found.items()}
    if not texts:
        return LeaderboardCheck("won and lost", "ok", "wins lead from every item to every other", details)
    return LeaderboardCheck(
        "won and lost", "warning", "; ".join(texts) + "; only the prior holds these scores", details
    )


def _check_vote_counts(tally: Tally) -> LeaderboardCheck:
    total = sum(tally.count_by_item())
    few = np.flatnonzero(np.asarray(total) < FEW)
    least, most = float(np.min(total)), float(np.max(total))
    details = {"votes": tally.votes, "least": least, "most": most, "few": [tally.items[int(i)] for i in few]}
    if len(few):
        text = f"fewer than {FEW} votes each: {join_names(tally.items, few.tolist())}"
        return LeaderboardCheck("enough votes", "warning", text, details)
    return LeaderboardCheck("enough votes", "ok", f"every item has {least:,.0f} votes or more", details)


def _check_leader(tally: Tally, e: Estimate) -> LeaderboardCheck:
    flip = votes_to_flip(e)
    if flip is None:
        return LeaderboardCheck(
            "leader", "unknown", "nobody could overtake the leader by votes between the two"
        )
    first, second = tally.items[flip.leader], tally.items[flip.challenger]
    text = f"{flip.votes:,} more vote{'' if flip.votes == 1 else 's'} for {second} over {first} would put it ahead"
    share = flip.votes / max(tally.votes, 1)
    verdict: CheckVerdict = "warning" if flip.votes <= 3 or share < 1e-4 else "ok"
    return LeaderboardCheck(
        "leader", verdict, text, {"votes": flip.votes, "leader": first, "challenger": second}
    )


def _check_convergence(e: Estimate) -> LeaderboardCheck:
    done, steps = bool(e.solution.converged[0]), int(e.solution.iterations[0])
    text = f"the fit has converged in {steps} steps" if done else f"the fit stopped after {steps} steps"
    gradient = float(e.solution.gradient[0])
    return LeaderboardCheck(
        "converged", "ok" if done else "warning", text, {"iterations": steps, "gradient": gradient}
    )


def _check_position_bias(tally: Tally, e: Estimate) -> LeaderboardCheck:
    from scipy.special import expit

    known = tally.side != 0
    if not known.any():
        return LeaderboardCheck("position", "unknown", "the data do not say which item was shown first")
    effect = estimate_position_bias(tally, e)
    if not effect.is_known and e.contests.side is None:
        return LeaderboardCheck("position", "unknown", TOGETHER, {"votes": effect.votes})
    bias, z, share = effect.advantage, effect.z, float(expit(effect.advantage))
    details = {"advantage": bias, "z": z, "votes": effect.votes, "share_among_equals": share}
    text = (
        f"between equals the item shown first wins {share:.1%} (z = {z:{'.1f' if abs(z) < 1e6 else '.3g'}})"
    )
    if e.contests.side is not None:
        return LeaderboardCheck("position", "ok", f"{text}; this is taken out of the scores", details)
    if abs(z) > LEANING and abs(bias) > BIAS:
        return LeaderboardCheck(
            "position", "warning", f"{text}; show items in random order, or fit the sides", details
        )
    return LeaderboardCheck("position", "ok", text, details)


def _check_one_sided_judges(tally: Tally, e: Estimate) -> LeaderboardCheck:
    if not (tally.side != 0).any():
        return LeaderboardCheck(
            "one-sided judges", "unknown", "the data do not say which item was shown first"
        )
    found = find_one_sided_judges(tally, e)
    if not any(effect.is_known for effect in estimate_bias_by_judge(tally, e)):
        return LeaderboardCheck("one-sided judges", "unknown", TOGETHER)
    if not found:
        return LeaderboardCheck("one-sided judges", "ok", "no judge always votes for the same side")
    worst = [f"{j.judge} ({j.first_share:.0%} first of {j.votes:,.10g})" for j in found]
    part = sum(j.votes for j in found) / tally.votes
    text = f"judges who vote for one side: {join_names(worst)}; {part:.1%} of the votes; leave them out"
    return LeaderboardCheck(
        "one-sided judges", "warning", text, {"judges": [j._asdict() for j in found], "share": part}
    )


def _check_dominant_judge(tally: Tally, e: Estimate) -> LeaderboardCheck:
    if len(tally.experts) < 2:
        return LeaderboardCheck("one judge", "unknown", "the votes name one judge only")
    share = compute_vote_shares(tally)
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
            "one judge", "warning", f"{text}; without this judge {other} would lead", details
        )
    return LeaderboardCheck(
        "one judge",
        "warning" if share[top] > BIG else "ok",
        f"{text}; {leader} leads without it too",
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
        return LeaderboardCheck("copies", "unknown", "too few comparisons were judged by two or more judges")
    count = len(agreement.judges)
    details = {
        "judges": count,
        "effective": agreement.effective,
        "copies": [list(map(str, g)) for g in agreement.copies],
    }
    text = f"{count} judges are worth {agreement.effective:.1f} independent ones"
    if agreement.copies:
        groups = "; ".join(join_names(g) for g in agreement.copies[:SHOWN])
        return LeaderboardCheck("copies", "warning", f"{text}; these answer alike: {groups}", details)
    return LeaderboardCheck("copies", "warning" if agreement.effective < count / 2 else "ok", text, details)
