"""The settings of a leaderboard, checked when they are made."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Literal

from podium.analysis.leaderboard.inference import ErrorKind
from podium.analysis.leaderboard.interval_scheme import SamplingUnitOption, VoteWeightsOption
from podium.analysis.leaderboard.score_estimate import L2
from podium.core.errors import ParameterError
from podium.data.ids import Id

__all__ = ["LeaderboardSettings"]

ELO = 400 / math.log(10)  # points per unit of log odds: 400 points are odds of ten to one
CHOICES = {
    "model": ("bradley_terry", "thurstone"),
    "ties": ("half", "davidson", "rao_kupper", "ignore"),
    "errors": ("sandwich", "fisher"),
    "over": ("auto", "votes", "experts", "queries"),
    "vote_weights": ("auto", "frequency", "importance"),
    "scale": ("elo", "natural"),
    "judges": ("equal", "discounted"),
    "sides": ("ignore", "fit"),
}


@dataclass(frozen=True, kw_only=True)
class LeaderboardSettings:
    """Settings of a leaderboard.

    `errors` come from the sandwich estimator or from Fisher's information; with `bootstrap` rounds, from
    bootstrap resamples. All but Fisher's are over single votes, or over all votes of an expert or on a query,
    with Student's t for few of them (`over`; `auto`: over experts or queries if their votes vary more than
    independent ones). `vote_weights`: a vote of weight w is w votes (`frequency`), or one vote that counts w
    times, as with importance or inverse-probability weights (`importance`; `auto`: if some weight is not a
    whole number). `simultaneous` intervals hold jointly. Scores are natural (log odds) or on the Elo scale;
    their mean is `anchor` (default 0 or 1000), or, with `reference`, the score of that item, from which all
    intervals are then measured. With `judges="discounted"` correlated judges share one vote; `sides="fit"`
    estimates the advantage of being shown first. `top` is the k of the probability of being among the best k.
    """

    model: str = "bradley_terry"
    ties: str = "half"
    l2: float = L2
    errors: ErrorKind = "sandwich"
    bootstrap: int = 0
    over: SamplingUnitOption = "auto"
    vote_weights: VoteWeightsOption = "auto"
    seed: int = 0
    level: float = 0.95
    simultaneous: bool = False
    scale: Literal["elo", "natural"] = "elo"
    anchor: float | None = None
    reference: Id | None = None
    judges: Literal["equal", "discounted"] = "equal"
    sides: Literal["ignore", "fit"] = "ignore"
    top: int = 1

    def __post_init__(self) -> None:
        for name, kind in (("bootstrap", numbers.Integral), ("seed", numbers.Integral), ("top", numbers.Integral),
                           ("l2", numbers.Real), ("level", numbers.Real), ("anchor", numbers.Real)):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, kind) and not (name == "anchor" and value is None):
                what = "whole numbers" if kind is numbers.Integral else "numbers"
                raise ParameterError(f"{name} is {value!r}; accepted: {what}")
        for name, accepted in CHOICES.items():
            if getattr(self, name) not in accepted:
                raise ParameterError(f"{name} is {getattr(self, name)!r}; accepted: {', '.join(accepted)}")
        if not 0 < self.level < 1:
            raise ParameterError(f"level is {self.level}; accepted: numbers between 0 and 1, both excluded")
        if not 1e-9 <= self.l2 <= 1e6:
            raise ParameterError(f"l2 is {self.l2}; accepted: numbers from 1e-9 to 1e6")
        if self.bootstrap < 0 or self.bootstrap == 1:
            raise ParameterError(f"bootstrap is {self.bootstrap}; accepted: 0 (none), or 2 rounds or more")
        for name, least in (("top", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ParameterError(f"{name} is {getattr(self, name)}; accepted: whole numbers from {least}")
        if self.anchor is not None and not math.isfinite(self.anchor):
            raise ParameterError(f"the anchor is {self.anchor}; accepted: finite numbers")
        if self.scale == "elo" and self.model == "thurstone":
            raise ParameterError("the Elo scale needs log odds; use scale='natural' for thurstone")

    @property
    def factor(self) -> float:
        """Factor applied to natural scores."""
        return ELO if self.scale == "elo" else 1.0

    @property
    def origin_score(self) -> float:
        """Score of the mean, or of the reference."""
        return self.anchor if self.anchor is not None else 1000.0 if self.scale == "elo" else 0.0
