"""How far each estimate of the annotators' quality moves it, and when the estimates have settled."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from podium.kernels.dispatch import F8

__all__ = ["QualitySteps"]

FULL_STEPS = 5  # estimates taken as they are before steps shrink as 1 / number of estimates
QUALITY_TOLERANCE = 1e-3  # of quality (0 .. 1), and of the mean place (0 .. 1) of an item


@dataclass(slots=True)
class QualitySteps:
    """Moves from one estimate to the next.

    The order of the consensus jumps where two items swap, so full steps often alternate between orders or wander
    among near-ties forever. Shrinking steps average over those orders and settle between them; an estimate that
    repeats the one before is taken in full, so that a stable order has the same answer with either.
    """

    shrinking: bool
    taken: int = 0
    settled: bool = False
    cycle: int = 0  # number of orders that full steps repeat, or 0
    seen: dict[bytes, int] = field(default_factory=dict)  # by estimate: when it was made last

    def move(self, quality: F8, level: F8, next_quality: F8, next_level: F8) -> tuple[F8, F8]:
        """Quality and levels after a step towards the next estimate; sets `settled` and `cycle`."""
        digest = hashlib.sha256(next_quality.tobytes() + next_level.tobytes()).digest()
        distance = self.taken - self.seen.get(digest, self.taken)
        self.seen[digest] = self.taken
        self.taken += 1
        if not self.shrinking:
            self.settled, self.cycle = distance == 1, distance if distance > 1 else 0
            return next_quality, next_level
        size = 1.0 if distance == 1 else min(1.0, FULL_STEPS / self.taken)
        by_quality, by_level = size * (next_quality - quality), size * (next_level - level)
        largest = max(
            float(np.abs(by_quality).max(initial=0.0)), float(np.abs(by_level).sum()) / max(1, len(level))
        )
        self.settled = largest <= (QUALITY_TOLERANCE if size < 1 else 0.0)
        return (next_quality, next_level) if size == 1 else (quality + by_quality, level + by_level)

    def restart(self) -> None:
        """Begin again with full steps and no memory."""
        self.taken, self.settled, self.cycle = 0, False, 0
        self.seen.clear()
