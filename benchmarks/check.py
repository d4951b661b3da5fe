"""Does a peer give the ranking that Podium gives?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

Ranking = list[tuple[int, float]]  # item and score, best first


def same(own: Ranking, peer: Ranking, tolerance: float) -> str | None:
    """None when both hold the same items in the same order up to ties, else what differs.

    Scores may differ by a factor and a constant (Borda counts from 0 or from 1, in points or in shares).
    """
    mine, theirs = dict(own), dict(peer)
    if mine.keys() != theirs.keys():
        return f"{len(theirs)} items instead of {len(mine)}"
    ours = np.array([mine[item] for item, _ in peer])
    given = np.array([score for _, score in peer])
    spread = max(ours.max() - ours.min(), 1e-300)
    if np.max(np.diff(ours), initial=0.0) > tolerance * spread:
        return "another order"
    slope, offset = np.polyfit(given, ours, 1) if np.ptp(given) > 0 else (0.0, ours.mean())
    if np.abs(offset + slope * given - ours).max() > tolerance * spread:
        return "the same order from other scores"
    return None


def kendall(own: Ranking, peer: Ranking) -> float:
    """Kendall's tau-a of two rankings over the items both hold; ties of Podium's count as half."""
    mine = dict(own)
    s = np.array([mine[item] for item, _ in peer if item in mine])
    if len(s) < 2:
        return 1.0
    above = np.triu(np.sign(s[:, None] - s[None, :]), 1)
    return float(above.sum() / (len(s) * (len(s) - 1) / 2))


def compare(pairs: Iterable[tuple[Ranking, Ranking]], tolerance: float) -> str:
    """One verdict over many queries: "same", or the first difference and the mean Kendall tau."""
    pairs = list(pairs)
    found = [same(own, peer, tolerance) for own, peer in pairs]
    differing = [f for f in found if f is not None]
    if not differing:
        return "same"
    tau = float(np.mean([kendall(own, peer) for own, peer in pairs]))
    return f"differs in {len(differing)} of {len(found)} queries ({differing[0]}); Kendall tau {tau:.3f}"
