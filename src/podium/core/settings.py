"""Settings of leaderboards, tuning and comparisons, declared once for the library, the command line and the service.

The options of the command line and the fields of requests are made from these annotations; `{default}` in a
help text stands for the default. This module imports nothing heavy, because `podium VERB --help` reads it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from podium.core.errors import Option, ParameterError
from podium.core.params import Flags, Range, check_settings

TieRule = Literal["item", "trec", "input"]
Unlisted = Literal["below", "unknown"]  # how an expert's unlisted items rank
TIES_HELP = "Order of tied items: by id, by descending id as in trec_eval, or as in the input."
QueryScope = Literal["judged", "all"]
Duplicates = Literal["error", "first", "best", "sum"]
Level = Annotated[float, Range(0, 1, open_low=True, open_high=True), Flags(shows_range=False),
                  "Confidence level of intervals and tests.  [default: {default}]"]  # fmt: skip
ELO = 400 / math.log(10)  # points per unit of log odds: 400 points are odds of ten to one


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

    model: Annotated[Literal["bradley_terry", "thurstone"], "The choice model.  [default: {default}]"] = (
        "bradley_terry"
    )
    ties: Annotated[
        Literal["half", "davidson", "rao_kupper", "ignore"],
        "A tie is half a win each, an outcome, or ignored.  [default: {default}]",
    ] = "half"
    l2: Annotated[
        float,
        Range(1e-9, 1e6),
        Flags(shows_range=False),
        "Weight of the ridge prior.  [default: as in bradley_terry]",
    ] = 0.001
    errors: Annotated[
        Literal["sandwich", "fisher"], "Estimator of the standard errors.  [default: {default}]"
    ] = "sandwich"
    bootstrap: Annotated[int, Range(0), Flags(metavar="N"), "Intervals from N bootstrap resamples."] = 0
    over: Annotated[
        Literal["auto", "votes", "experts", "queries"],
        "Sampling unit of the intervals; auto: experts or queries if votes within them are correlated."
        "  [default: {default}]",
    ] = "auto"
    vote_weights: Annotated[
        Literal["auto", "frequency", "importance"],
        "A vote of weight w is w votes (frequency) or one vote (importance; also for inverse-probability weights);"
        " auto: importance if weights are not integers.  [default: {default}]",
    ] = "auto"
    seed: Annotated[int, Range(0), "Random seed.  [default: {default}]"] = 0
    level: Level = 0.95
    simultaneous: Annotated[bool, "Simultaneous intervals: all hold jointly."] = False
    scale: Annotated[Literal["elo", "natural"], "Elo points, or log odds.  [default: {default}]"] = "elo"
    anchor: Annotated[float | None, "The mean score, or that of an item."] = None
    reference: Annotated[str | int | None, "The item whose score is the anchor."] = None
    judges: Annotated[
        Literal["equal", "discounted"],
        "discounted: correlated judges share one vote.  [default: {default}]",
    ] = "equal"
    sides: Annotated[Literal["ignore", "fit"], "fit: estimate the advantage of the first side."] = "ignore"
    top: Annotated[int, Range(1), "Show only the first K, with the probability of being among them."] = 1

    def __post_init__(self) -> None:
        if isinstance(self.bootstrap, int) and (self.bootstrap < 0 or self.bootstrap == 1):
            raise ParameterError(f"bootstrap is {self.bootstrap}; accepted: 0 (none), or 2 rounds or more")
        check_settings(LeaderboardSettings, vars(self))
        if self.anchor is not None and not math.isfinite(self.anchor):
            raise ParameterError(f"the anchor is {self.anchor}; accepted: finite numbers")
        if self.scale == "elo" and self.model == "thurstone":
            raise ParameterError(
                "the Elo scale needs log odds; use ",
                Option("scale", "natural", of="setting"),
                " for thurstone",
            )

    @property
    def factor(self) -> float:
        """Factor applied to natural scores."""
        return ELO if self.scale == "elo" else 1.0

    @property
    def origin_score(self) -> float:
        """Score of the mean, or of the reference."""
        return self.anchor if self.anchor is not None else 1000.0 if self.scale == "elo" else 0.0


@dataclass(frozen=True, kw_only=True)
class TuneSettings:
    """Settings of `podium.tune`."""

    supervised: Annotated[bool, "Without -m: include methods that learn from labels (slow)."] = False
    weights: Annotated[bool, "Also search expert weights."] = True
    search: Annotated[Literal["random", "grid", "halving"], "How configurations are chosen."] = "random"
    trials: Annotated[int, Range(1), "Configurations to try."] = 200
    folds: Annotated[int | None, Range(2), "Cross-validation folds.  [default: 5]"] = None
    baseline: Annotated[str | None, "The method to compare the result with.  [default: rrf]"] = None
    engine: Annotated[
        str | None,
        Flags("--for", metavar="ENGINE"),
        "Search only what this engine computes, in its formula; see podium deploy.",
    ] = None
    limit: Annotated[float, Range(0, open_low=True), "Without -m: maximum CPU seconds per configuration."] = (
        0.05
    )
    budget: Annotated[
        float | None,
        Range(0),
        Flags(metavar="SECONDS"),
        "Seconds for the search; after that, no new configuration starts; 0: no limit.",
    ] = 300.0
    ties: Annotated[TieRule, TIES_HELP] = "item"
    seed: Annotated[int, Range(0, 2**31 - 1), "Random seed."] = 0
    workers: Annotated[int | None, Range(1), "Threads.  [default: one per core]"] = None
    resume: Annotated[str | None, "Folder for intermediate results, to resume after an interruption."] = None
    level: Level = 0.95
    rounds: Annotated[int, Range(100), "Random signs of the paired test."] = 2_000


@dataclass(frozen=True, kw_only=True)
class CompareSettings:
    """Settings of `podium.compare`."""

    baseline: Annotated[
        str | None, "The method or run to compare the others with.  [default: the first method]"
    ] = None
    test: Annotated[
        Literal["t", "randomization", "wilcoxon"],
        "The paired test; the intervals of t and randomization agree with the test.",
    ] = "t"
    level: Level = 0.95
    rounds: Annotated[int, Range(1), "Random signs of the randomization test."] = 10_000
    seed: Annotated[int, Range(0), "Seed of the random signs."] = 0
