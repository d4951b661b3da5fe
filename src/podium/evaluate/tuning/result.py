"""The result of tuning and its interpretation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from podium.core.errors import InputError
from podium.core.old_names import RenamedAttribute
from podium.core.results import Column, Result, ViewBlock, build_grid, show_field
from podium.core.tables import Grid, format_decimal, format_interval, format_p_value
from podium.core.text import format_count
from podium.data.ids import Id, Ids, id_order
from podium.evaluate.tuning.nested_estimate import TuningRow
from podium.kernels.dispatch import F8
from podium.methods.base import Aggregator
from podium.metrics.base import Metric

if TYPE_CHECKING:
    from podium.data.frames import FrameBackend

__all__ = ["Tuning", "TuningOutcome", "TuningTrial", "check_document"]

TuningOutcome = Literal["better", "worse", "no difference", "unknown"]
BEST = 5  # configurations in a table of the best
DOCUMENT = ("verdict", "sentence", "metric", "config", "baseline", "rows", "trials")  # keys of every document


@dataclass(frozen=True)
class TuningTrial:
    """One configuration. Its mean is over the queries it was selected on, so the best mean is optimistic."""

    method: str
    config: str  # as text
    mean: float  # cross-validated; NaN if not computable
    queries: int  # queries on which it was tried; successive halving drops some configurations early
    failed: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Tuning(Result[TuningRow]):
    """The best configuration, its value on held-out queries, and everything that was tried."""

    metric: Metric
    best: Aggregator  # ready to aggregate, and to save
    config: str  # as text
    baseline: str
    tuned: float  # mean on held-out queries, or on the training queries if none could be held out
    rows: tuple[TuningRow, ...]  # baseline, then best expert
    trials: tuple[TuningTrial, ...]  # best first
    chosen: tuple[str, ...]  # choice of the search without each fold
    left_out: Mapping[str, str]  # method -> why it was not tried
    queries: Ids
    values: Mapping[str, F8]  # by query, on held-out queries
    notes: tuple[str, ...]
    search: str
    folds: int
    seed: int
    level: float
    budget: float | None  # seconds after which no further configuration was started; None: no limit
    same: bool = False  # all configurations have the same values

    shown = 10
    facts = (
        "verdict", "sentence", "recommended", "metric", "best", "config", "weights", "baseline", "tuned", "held_out",
        "rows", "trials", "chosen", "left_out", "notes", "search", "folds", "seed", "level", "budget", "queries",
    )  # fmt: skip
    verdict, sentence = RenamedAttribute("outcome"), RenamedAttribute("conclusion")

    def headline(self) -> str:
        """The configuration, the outcome, the metric, and the number of trials."""
        return f"{self.config}: {self.outcome()}, {self.metric} {self.tuned:.4f}, {len(self.trials)} trials"

    @property
    def title(self) -> str:
        """The configuration."""
        return f"Tuning: {self.config}"

    def blocks(self) -> Iterator[ViewBlock]:
        """Conclusion and notes, the held-out values, the best configurations, the weights."""
        yield self.conclusion()
        yield from self.notes
        yield self.grid()
        yield self.trials_grid()
        if self.weights:
            yield self.weights_grid()

    def grid(self) -> Grid:
        """Table of the held-out value of the choice and of its rivals."""
        held = "on held-out queries" if self.folds > 1 else "on the query it was tuned on"
        columns: list[Column] = [
            (f"{self.metric} {held}", show_field("name")),
            ("mean", show_field("mean", format_decimal)),
            ("tuned is better by", lambda r: format_decimal(r.difference, sign=True)),
            (f"{self.level:.0%} interval", lambda r: format_interval(r.low, r.high)),
            ("p", show_field("p", format_p_value)),
        ]
        return build_grid(columns, (TuningRow("tuned", self.tuned), *self.rows))

    def trials_grid(self, *, queries: bool = False) -> Grid:
        """The best configurations, on request with the number of queries they were tried on."""
        columns: list[Column] = [
            ("best configurations", show_field("config")),
            (f"{self.metric} (optimistic: selected on it)", show_field("mean", format_decimal)),
        ]
        columns += [("queries", show_field("queries"))] if queries else []
        return build_grid(columns, [t for t in self.trials[:BEST] if not t.failed])

    @property
    def weights(self) -> dict[Id, float]:
        """Weights of the best configuration by expert, largest first; empty if it has none."""
        given = self.best.weights
        named = dict(given) if isinstance(given, Mapping) else {}
        return dict(sorted(named.items(), key=lambda pair: (-pair[1], id_order(pair[0]))))

    def weights_grid(self) -> Grid:
        """The weights as a table."""
        rows = tuple((str(expert), f"{weight:g}") for expert, weight in self.weights.items())
        return Grid(("expert", "weight in the best configuration"), rows)

    def outcome(self) -> TuningOutcome:
        """Whether the tuned configuration differs significantly from the baseline on held-out queries."""
        row = self.rows[0]
        if row.p is None or row.low is None or row.high is None or row.difference is None:
            return "unknown"
        if row.low <= 0 <= row.high or row.p > 1 - self.level:
            return "no difference"
        return "better" if row.difference > 0 else "worse"

    def conclusion(self) -> str:
        """The outcome in words, with its figures."""
        row, queries = self.rows[0], format_count(len(self.queries), "query", "queries")
        if len(self.trials) == 1:
            only = f"only {self.trials[0].config} was tried ({self.metric} {row.mean:.4f} on {queries})"
            return f"There is nothing to choose: {only}."
        if self.same:
            return (
                f"There is nothing to choose: all {len(self.trials)} configurations have the same {self.metric} on "
                f"every one of {queries} (mean {row.mean:.4f}). {_SAME}"
            )
        if row.difference is None or row.low is None or row.high is None:
            return (
                f"One judged query allows no estimate for others: {self.metric} {self.tuned:.4f} is the best "
                "of many trials on the query used for tuning and does not generalize. "
                f"Judge more queries, or use {self.baseline}."
            )
        bounded = math.isfinite(row.low) and math.isfinite(row.high)
        span = f"{self.level:.0%} interval {row.low:+.4f} .. {row.high:+.4f}, " if bounded else ""
        gain = f"{self.metric} {self.tuned:.4f} against {row.mean:.4f}, {row.difference:+.4f}"
        figures = f"{gain} ({span}{queries})"
        outcome = self.outcome()
        if outcome == "no difference":
            half = (row.high - row.low) / 2
            least = f"with {queries}, differences below about {half:.4f} are not detectable"
            none = f"{queries} are too few to detect any difference at {self.level:.0%}"
            return (
                f"Statistically tied with {self.baseline} on held-out queries: {figures}; "
                f"{least if bounded else none}. Use {self.baseline} unless you have other evidence."
            )
        if outcome == "worse":
            return f"Tuning hurts: {figures} on held-out queries. Use {self.baseline}."
        return f"Tuning helps: {figures} on held-out queries, compared with {self.baseline}."

    def recommendation(self) -> str:
        """The configuration to use: the tuned one only if it is significantly better."""
        return self.config if self.outcome() == "better" else self.baseline

    def _compute_facts(self) -> dict[str, Any]:
        return {
            "verdict": self.outcome(),
            "sentence": self.conclusion(),
            "recommended": self.recommendation(),
            "metric": str(self.metric),
            "best": repr(self.best),
            "weights": [{"expert": e, "weight": w} for e, w in self.weights.items()],
            "held_out": self.folds > 1,
            "queries": len(self.queries),
        }

    def to_frame(self, backend: FrameBackend = "pyarrow") -> Any:
        """A dataframe of values on held-out queries: one row per query, columns for tuned and its rivals."""
        from podium.data.frames import values_frame

        return values_frame(self.queries, dict(self.values), backend)


def check_document(found: Any, source: str) -> dict[str, Any]:
    """Read the output of `Tuning.to_dict` from a file; anything else is an error that describes the content.

    >>> check_document([1], "x")
    Traceback (most recent call last):
    podium.core.errors.InputError: x: this is a JSON array, not the result of tuning; ...
    """
    lacking = [key for key in DOCUMENT if not isinstance(found, Mapping) or key not in found]
    if not lacking and all(isinstance(found[key], list) for key in ("rows", "trials")):
        return dict(found)
    keys = [str(key)[:40] for key in found][:6] if isinstance(found, Mapping) else []
    kinds: dict[type, str] = {dict: "object", list: "array", str: "string", type(None): "null"}
    kind = kinds.get(type(found), "value")
    has = f" with {', '.join(keys)}{' ...' if len(found) > len(keys) else ''}" if keys else ""
    raise InputError(
        f"this is a JSON {kind}{has}, not the result of tuning",
        source=source,
        remedy="give the output of `podium tune --json`",
    )


_SAME = "Label items that the methods rank differently, or measure at a larger depth."
