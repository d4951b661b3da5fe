"""Whether a leaderboard can be trusted: checks as data, each with a verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from podium.data.vocabulary import Id, Ids
from podium.evaluate.leaderboard.judges import (
    Agreement,
    shares,
    side_effect,
    side_effects_by_judge,
    sides_by_judge,
)
from podium.evaluate.leaderboard.tally import Tally
from podium.evaluate.uncertainty import Estimate, estimate, votes_to_flip

__all__ = ["Check", "trust"]

Verdict = Literal["ok", "warning", "unknown"]
SHOWN = 5  # names in a sentence
FEW = 30  # votes below which an item's place is guesswork
BIG = 0.5  # share of the votes that makes one judge too strong
TOGETHER = "items were not shown on both sides often enough to tell the side from the item"
LEANING, BIAS = 3.0, 0.05  # standard errors, and log odds, from which sides matter


@dataclass(frozen=True)
class Check:
    """One question, its answer, and what it rests on."""

    name: str
    verdict: Verdict
    text: str
    details: dict[str, Any] = field(default_factory=dict)


def trust(
    tally: Tally, e: Estimate, agreement: Agreement | None, silent: Sequence[Id] = ()
) -> tuple[Check, ...]:
    """All checks."""
    checks = [
        _connected(tally, e, silent),
        _won_and_lost(tally, e),
        _enough(tally),
        _leader(tally, e),
        _converged(e),
    ]
    checks += [_position(tally, e), _always_left(tally, e), _dominating(tally, e), _copies(agreement)]
    return tuple(checks)


def names(items: Ids | Sequence[Id], which: Sequence[int] | None = None) -> str:
    """A few names, and how many more there are."""
    chosen = list(items) if which is None else [items[int(i)] for i in which]
    more = f" and {len(chosen) - SHOWN} more" if len(chosen) > SHOWN else ""
    return ", ".join(map(str, chosen[:SHOWN])) + more


def _connected(tally: Tally, e: Estimate, silent: Sequence[Id]) -> Check:
    parts: dict[int, list[int]] = {}
    for item, root in enumerate(e.solution.component.tolist()):
        parts.setdefault(root, []).append(item)
    groups = sorted(parts.values(), key=len, reverse=True)
    details: dict[str, Any] = {
        "groups": [[tally.items[i] for i in g] for g in groups],
        "never_played": list(silent),
    }
    said = f"; never compared, so left out: {names(silent)}" if silent else ""
    if len(groups) > 1:
        words = "; ".join(names(tally.items, g) for g in groups[:SHOWN])
        text = f"{len(groups)} groups never met, so their scores cannot be compared: {words}{said}"
        if _queries_stay_apart(tally, e):
            text += "; no query has items of two groups: make one leaderboard per query (--by query)"
        return Check("connected", "warning", text, details)
    return Check(
        "connected", "warning" if silent else "ok", f"all items are linked by comparisons{said}", details
    )


def _queries_stay_apart(tally: Tally, e: Estimate) -> bool:
    """Whether the groups are those of different queries: several queries, and the items of each in one group."""
    group = np.unique(np.stack((tally.query, e.solution.component[tally.first]), axis=1), axis=0)
    return 1 < len(np.unique(tally.query)) == len(group)


def _won_and_lost(tally: Tally, e: Estimate) -> Check:
    wins, losses, ties = tally.by_item()
    found = {
        "never lost": np.flatnonzero((losses == 0) & (ties == 0)),
        "never won": np.flatnonzero((wins == 0) & (ties == 0)),
    }
    other = np.flatnonzero(e.loose & ~np.isin(np.arange(len(e)), np.concatenate(list(found.values()))))
    found["never lost to, or never beat, the others as a group"] = other
    texts = [f"{what}: {names(tally.items, which.tolist())}" for what, which in found.items() if len(which)]
    details = {what: [tally.items[int(i)] for i in which] for what, which in found.items()}
    if not texts:
        return Check("won and lost", "ok", "wins lead from every item to every other", details)
    return Check("won and lost", "warning", "; ".join(texts) + "; only the prior holds these scores", details)


def _enough(tally: Tally) -> Check:
    total = sum(tally.by_item())
    few = np.flatnonzero(np.asarray(total) < FEW)
    least, most = float(np.min(total)), float(np.max(total))
    details = {"votes": tally.votes, "least": least, "most": most, "few": [tally.items[int(i)] for i in few]}
    if len(few):
        text = f"fewer than {FEW} votes each: {names(tally.items, few.tolist())}"
        return Check("enough votes", "warning", text, details)
    return Check("enough votes", "ok", f"every item has {least:,.0f} votes or more", details)


def _leader(tally: Tally, e: Estimate) -> Check:
    flip = votes_to_flip(e)
    if flip is None:
        return Check("leader", "unknown", "nobody could overtake the leader by votes between the two")
    first, second = tally.items[flip.leader], tally.items[flip.challenger]
    text = f"{flip.votes:,} more vote{'' if flip.votes == 1 else 's'} for {second} over {first} would put it ahead"
    share = flip.votes / max(tally.votes, 1)
    verdict: Verdict = "warning" if flip.votes <= 3 or share < 1e-4 else "ok"
    return Check("leader", verdict, text, {"votes": flip.votes, "leader": first, "challenger": second})


def _converged(e: Estimate) -> Check:
    done, steps = bool(e.solution.converged[0]), int(e.solution.iterations[0])
    text = f"the fit has converged in {steps} steps" if done else f"the fit stopped after {steps} steps"
    gradient = float(e.solution.gradient[0])
    return Check("converged", "ok" if done else "warning", text, {"iterations": steps, "gradient": gradient})


def _position(tally: Tally, e: Estimate) -> Check:
    from scipy.special import expit

    known = tally.side != 0
    if not known.any():
        return Check("position", "unknown", "the data do not say which item was shown first")
    effect = side_effect(tally, e)
    if not effect.known and e.contests.side is None:
        return Check("position", "unknown", TOGETHER, {"votes": effect.votes})
    bias, z, share = effect.advantage, effect.z, float(expit(effect.advantage))
    details = {"advantage": bias, "z": z, "votes": effect.votes, "share_among_equals": share}
    text = (
        f"between equals the item shown first wins {share:.1%} (z = {z:{'.1f' if abs(z) < 1e6 else '.3g'}})"
    )
    if e.contests.side is not None:
        return Check("position", "ok", f"{text}; this is taken out of the scores", details)
    if abs(z) > LEANING and abs(bias) > BIAS:
        return Check("position", "warning", f"{text}; show items in random order, or fit the sides", details)
    return Check("position", "ok", text, details)


def _always_left(tally: Tally, e: Estimate) -> Check:
    if not (tally.side != 0).any():
        return Check("one-sided judges", "unknown", "the data do not say which item was shown first")
    found = sides_by_judge(tally, e)
    if not any(effect.known for effect in side_effects_by_judge(tally, e)):
        return Check("one-sided judges", "unknown", TOGETHER)
    if not found:
        return Check("one-sided judges", "ok", "no judge always votes for the same side")
    worst = [f"{j.judge} ({j.first_share:.0%} first of {j.votes:,.10g})" for j in found]
    part = sum(j.votes for j in found) / tally.votes
    text = f"judges who vote for one side: {names(worst)}; {part:.1%} of the votes; leave them out"
    return Check("one-sided judges", "warning", text, {"judges": [j._asdict() for j in found], "share": part})


def _dominating(tally: Tally, e: Estimate) -> Check:
    if len(tally.experts) < 2:
        return Check("one judge", "unknown", "the votes name one judge only")
    share = shares(tally)
    top = int(share.argmax())
    judge = tally.experts[top]
    details: dict[str, Any] = {
        "judge": judge,
        "share": float(share[top]),
        "effective": float(1 / (share**2).sum()),
    }
    text = f"the busiest of {len(share):,} judges, {judge}, cast {share[top]:.1%} of the votes"
    leader, other = tally.items[int(e.order[0])], _leader_without(tally, e, judge)
    details |= {"leader": leader, "leader_without": other}
    if other != leader:
        return Check("one judge", "warning", f"{text}; without this judge {other} would lead", details)
    return Check(
        "one judge",
        "warning" if share[top] > BIG else "ok",
        f"{text}; {leader} leads without it too",
        details,
    )


def _leader_without(tally: Tally, e: Estimate, judge: Id) -> Id:
    rest, _ = tally.without([judge]).played()
    model = e.solution.model
    from podium.kernels.bootstrap import NAMES

    name, ties = NAMES[model.kind]
    met = rest.contests(sides=e.contests.side is not None)
    again = estimate(met, model=name, ties=ties or ("half" if model.half else "ignore"), l2=model.l2)
    return rest.items[int(again.order[0])]


def _copies(agreement: Agreement | None) -> Check:
    if agreement is None:
        return Check("copies", "unknown", "too few comparisons were judged by two or more judges")
    count = len(agreement.judges)
    details = {
        "judges": count,
        "effective": agreement.effective,
        "copies": [list(map(str, g)) for g in agreement.copies],
    }
    text = f"{count} judges are worth {agreement.effective:.1f} independent ones"
    if agreement.copies:
        groups = "; ".join(names(g) for g in agreement.copies[:SHOWN])
        return Check("copies", "warning", f"{text}; these answer alike: {groups}", details)
    return Check("copies", "warning" if agreement.effective < count / 2 else "ok", text, details)
