"""What a board advises: the next comparisons, and whether to go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.analysis.leaderboard.active_sampling import EQUAL, decide_stopping, find_next_pairs
from podium.core.tables import format_p_value
from podium.data.ids import Id

if TYPE_CHECKING:
    from podium.analysis.leaderboard.inference import Estimate
    from podium.analysis.leaderboard.tally import Tally
    from podium.core.settings import LeaderboardSettings
    from podium.kernels.dispatch import F8

__all__ = ["ComparisonAdvice", "Proposal"]

# Estimates beyond this multiple of the given votes are not reported: the difference is too uncertain.
FORESEEABLE = 100


@dataclass(frozen=True)
class Proposal:
    """A comparison to request: expected gain (nats), probability that `first` wins, and votes so far."""

    first: Id
    second: Id
    gain: float
    chance: float
    votes: float


class ComparisonAdvice:
    """The part of a board that proposes comparisons, from its scores, their covariance and the tests of all pairs."""

    # fields of some boards and properties of others
    if TYPE_CHECKING:

        @property
        def settings(self) -> LeaderboardSettings:
            """How the board was made."""

        @property
        def tally(self) -> Tally:
            """The counted votes."""

        @property
        def votes(self) -> float:
            """Number of votes, or their total weight."""

        @property
        def estimate(self) -> Estimate:
            """The scores, by number of the item."""

        @property
        def matrix(self) -> F8:
            """The covariance of the scores."""

        @property
        def draws(self) -> F8:
            """Scores by round."""

        @property
        def p(self) -> F8:
            """Corrected p-values of all pairs."""

        @property
        def degrees(self) -> F8:
            """Degrees of freedom by item."""

    def next(self, count: int = 10, *, top: int | None = None) -> list[Proposal]:
        """The comparisons with the largest expected gain, best first; with `top`, about the best `top` items.

        Only open pairs: none that the tests separate, and none that is practically equal.
        """
        candidates = find_next_pairs(
            self.estimate,
            self.matrix,
            count,
            p=self.p,
            level=self.settings.level,
            top=top,
            draws=self.draws,
            degrees=self.degrees,
        )
        items = self.tally.items
        return [Proposal(items[c.first], items[c.second], c.gain, c.chance, c.votes) for c in candidates]

    def stopping(self, *, top: int | None = None) -> tuple[bool, str]:
        """Whether to stop, and why, in words; until then there are comparisons to request."""
        decision = decide_stopping(
            self.estimate, self.matrix, p=self.p, level=self.settings.level, top=top, degrees=self.degrees
        )
        who = f"the best {top} from all others" if top else "all items from each other"
        level = f"{100 * self.settings.level:.6g}%"
        if decision.between is None:
            text = {
                "settled": f"stop: the votes separate {who} at {level}",
                "as good as equal": f"stop: the votes separate {who} at {level}, "
                f"except for practically equal pairs (each wins within {EQUAL:.0%} of one half)",
            }.get(decision.reason, f"stop: {decision.reason}")
            return decision.stop, text
        i, j = decision.between
        a, b = self.tally.items[i], self.tally.items[j]
        if decision.reason == "never met":
            return decision.stop, f"continue: {a} and {b} are in groups that were never compared"
        p = format_p_value(float(self.p[i, j]))
        shown = p if p.startswith("<") else f"= {p}"
        text = f"continue: the votes do not separate {a} and {b} at {level} (p {shown})"
        if (decision.votes or 0.0) > FORESEEABLE * self.votes:
            text += "; their scores are too close to estimate how many more votes are needed"
            return decision.stop, text
        return decision.stop, f"{text}; about {decision.votes:,.0f} more votes between them would"
