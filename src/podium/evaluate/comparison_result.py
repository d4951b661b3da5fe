"""The result of a comparison: rows, pairs, values by query, and the documents made from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from podium.core.errors import ParameterError
from podium.core.old_names import RenamedAttribute
from podium.core.params import suggest_names
from podium.core.results import Result, ViewBlock
from podium.core.tables import (
    Grid,
    format_csv,
    format_decimal,
    format_interval,
    format_latex,
    format_markdown,
    format_p_value,
    format_percent,
    render_block,
    render_page,
    replace_nonfinite,
)
from podium.core.text import format_count, join_names
from podium.data.ids import Id
from podium.evaluate.comparison_chart import draw_differences
from podium.evaluate.comparison_tables import INTERVALS, metric_grid
from podium.evaluate.evaluation import Evaluation, mean_of
from podium.evaluate.significance import NEAR, assess_pairs, holm
from podium.metrics.base import Metric, MetricSpec, parse, parse_all
from podium.metrics.binary import Judged

__all__ = ["Comparison", "ComparisonRow", "Pair", "QueryRow"]

UNDERRATED = "may be underrated"  # in the note on results with fewer judged items than others
UNEVEN = 0.1  # a larger difference of judged shares makes a comparison unreliable
FEW = 10  # with fewer queries, few differences are significant
NAMED = 4  # results named per sentence; the others are counted


@dataclass(frozen=True)
class ComparisonRow:
    """One result on one metric; the baseline's own rows have no difference."""

    name: str
    metric: str
    mean: float
    judged: float  # share of the evaluated places that have a grade; NaN if not measured
    difference: float | None = None
    low: float | None = None  # interval of the difference
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None  # corrected for all rows of the comparison
    wins: int | None = None  # queries where it beats the baseline
    ties: int | None = None
    losses: int | None = None


@dataclass(frozen=True)
class Pair:
    """Two results on one metric, higher mean first; p is corrected over all pairs of the metric."""

    better: str
    worse: str
    metric: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    wins: int  # queries where `better` is better
    ties: int
    losses: int


@dataclass(frozen=True)
class QueryRow:
    """All results on one query: `difference` is the value of `other` minus that of the baseline."""

    query: Id
    values: Mapping[str, float]  # by result; NaN if undefined
    judged: Mapping[str, float]  # by result: share of the evaluated places that have a grade
    other: str  # the requested result, or the one farthest from the baseline
    difference: float
    winner: str | None  # the best result; None if several are tied


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result[ComparisonRow]):
    """All rows, metric by metric, and the evaluations behind them."""

    baseline: str
    rows: tuple[ComparisonRow, ...]
    evaluations: Mapping[str, Evaluation]
    test: str
    level: float
    queries: int
    rounds: int = 10_000
    seed: int = 0
    left_out: Mapping[str, str] = field(default_factory=dict)  # method -> why it has no result
    remarks: tuple[str, ...] = ()  # remarks on the input, added to the notes

    facts = (
        "baseline",
        "test",
        "level",
        "queries",
        "rounds",
        "seed",
        "rows",
        "verdicts",
        "notes",
        "left_out",
    )
    chart = draw_differences
    verdict = RenamedAttribute("conclusion")

    def headline(self) -> str:
        """Number of results and queries, the baseline and the test."""
        what = f"{len(self.evaluations)} results on {self.queries:,} queries"
        return f"{what}, baseline {self.baseline!r}, {self.test} test"

    @property
    def title(self) -> str:
        """Number of results and queries."""
        return f"{len(self.evaluations)} results on {format_count(self.queries, 'query', 'queries')}"

    def row(self, name: str, metric: MetricSpec) -> ComparisonRow:
        """One row."""
        wanted = str(parse_all([metric])[0])
        for row in self.rows:
            if (row.name, row.metric) == (name, wanted):
                return row
        raise ParameterError(
            f"there is no row for {name!r} and {wanted}; {suggest_names(name, self.evaluations)}"
        )

    def __getitem__(self, name: str) -> tuple[ComparisonRow, ...]:
        if name not in self.evaluations:
            raise ParameterError(f"there is no result {name!r}; {suggest_names(name, self.evaluations)}")
        return tuple(row for row in self.rows if row.name == name)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Printed forms of the metrics, in row order."""
        return tuple(dict.fromkeys(row.metric for row in self.rows))

    def pairs(self, metric: MetricSpec | None = None) -> tuple[Pair, ...]:
        """All pairs of results on one metric (default: the first), best first, Holm-corrected."""
        chosen_metric = self._resolve_metric(metric)
        value = {name: e[chosen_metric] for name, e in self.evaluations.items()}
        means = {name: mean_of(values) for name, values in value.items()}
        best_first = sorted(means, key=lambda name: -means[name] if means[name] == means[name] else math.inf)
        named = [(a, b) for i, a in enumerate(best_first) for b in best_first[i + 1 :]]
        differences = np.array([value[a] - value[b] for a, b in named]).reshape(len(named), self.queries)
        how = {"test": self.test, "level": self.level, "rounds": self.rounds, "seed": self.seed}
        outcomes = assess_pairs(differences, **how)
        adjusted = holm([o.p for o in outcomes]).tolist()
        return tuple(
            Pair(a, b, str(chosen_metric), *o[:4], p_holm, *o[4:])
            for (a, b), o, p_holm in zip(named, outcomes, adjusted, strict=True)
        )

    def per_query(self, metric: MetricSpec | None = None, *, name: str | None = None) -> tuple[QueryRow, ...]:
        """One row per query, largest difference from the baseline first.

        The difference is that of result `name`, or of the result farthest from the baseline on that query.
        """
        chosen_metric, names = self._resolve_metric(metric), list(self.evaluations)
        others = [n for n in names if n != self.baseline] if name is None else [name]
        if name is not None and name not in self.evaluations:
            raise ParameterError(f"there is no result {name!r}; {suggest_names(name, names)}")
        if not others:
            raise ParameterError("there is only one result; give another to compare it with")
        judged, unknown = Judged(cutoff=chosen_metric.cutoff), [math.nan] * self.queries
        value = {n: e[chosen_metric].tolist() for n, e in self.evaluations.items()}
        shares = {
            n: e[judged].tolist() if judged in e.metrics else unknown for n, e in self.evaluations.items()
        }
        rows = []
        for i, query in enumerate(self.evaluations[names[0]].queries):
            mine = {n: value[n][i] for n in names}
            gaps = {n: mine[n] - mine[self.baseline] for n in others}
            other = max(others, key=lambda n: abs(gaps[n]) if gaps[n] == gaps[n] else -1.0)
            best = max((v for v in mine.values() if v == v), default=math.nan)
            top = [n for n, v in mine.items() if best - v <= NEAR]
            winner = top[0] if len(top) == 1 else None
            rows.append(QueryRow(query, mine, {n: shares[n][i] for n in names}, other, gaps[other], winner))
        return tuple(sorted(rows, key=lambda r: -abs(r.difference) if r.difference == r.difference else 1.0))

    def conclusion(self, metric: MetricSpec | None = None) -> str:
        """The conclusion about all results against the baseline, in one or two sentences."""
        name = str(self._resolve_metric(metric))
        rows = [r for r in self.rows if r.metric == name and r.difference is not None]
        if not rows:
            return f"{self.baseline} is the only result; there is nothing to compare it with."
        if self.queries < 2:
            return "There is only one query; no conclusion about others is possible."
        alpha = 1 - self.level
        shown = [r for r in rows if r.p_holm is not None and r.p_holm < alpha]
        sentences = []
        for word, wanted in (("better", 1), ("worse", -1)):
            group = [r for r in shown if (r.difference or 0.0) * wanted > 0]
            group.sort(key=lambda r: -abs(r.difference or 0.0))
            if group:
                gains = []
                for row in group:
                    span, p = format_interval(row.low, row.high), format_p_value(row.p_holm)
                    gain = f"{format_decimal(row.difference, sign=True)}{f' [{span}]' if span else ''}"
                    p_text = p.replace("<", "< ") if p.startswith("<") else f"= {p}"
                    gains.append(f"{row.name} ({gain}, p {p_text})")
                some = join_names(gains, NAMED, between="; ")
                sentences.append(f"{word.capitalize()} than {self.baseline} in {name}: {some}.")
        same = [r for r in rows if r.wins == r.losses == 0]
        open_ = [r for r in rows if r not in shown and r not in same]
        if open_:
            names = join_names([r.name for r in open_], NAMED)
            verb = "is" if len(open_) == 1 else "are"
            sentences.append(f"{names} {verb} statistically tied with {self.baseline}.")
        if same:
            names = join_names([r.name for r in same], NAMED)
            verb = "equals" if len(same) == 1 else "equal"
            sentences.append(f"{names} {verb} {self.baseline} on every query.")
        return " ".join(sentences)

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats: too few queries, too few judged items, methods that failed."""
        sentences = [f"{name} is left out: {reason}." for name, reason in self.left_out.items()]
        if self.queries == 1:
            sentences.append("Only one query: differences have neither interval nor test.")
        elif self.queries < FEW:
            sentences.append(f"Only {self.queries} queries: few differences can be significant.")
        for metric in self.metrics:
            sentences += _describe_judged_shares(self, metric)
        # one sentence per number of missing judged queries
        lacking: dict[int, list[str]] = {}
        for name, e in self.evaluations.items():
            lacking.setdefault(int((~e.has_result).sum()), []).append(name)
        for zero, names in lacking.items():
            if zero:
                who = f"{join_names(names, NAMED)} {'does' if len(names) == 1 else 'do'}"
                what = "query, which counts" if zero == 1 else "queries, which count"
                sentences.append(f"{who} not answer {zero:,} judged {what} as 0.")
        for m in self.metrics:
            n = max(e.count_undefined().get(m, 0) for e in self.evaluations.values())
            if n:
                sentences.append(
                    f"{m} is not defined on up to {n} of {self.queries} queries; these are excluded."
                )
        sentences += self.remarks
        return tuple(dict.fromkeys(sentences))

    def grid(self, metric: MetricSpec | None = None) -> Grid:
        """The results on one metric (default: the first), best first, with the judged share next to every figure."""
        return metric_grid(self, str(self._resolve_metric(metric)))

    def grids(self) -> list[Grid]:
        """One text table per metric."""
        return [metric_grid(self, metric) for metric in self.metrics]

    def blocks(self, further: Sequence[Grid] = ()) -> Iterator[ViewBlock]:
        """Tables and conclusions, further tables, notes."""
        for metric, grid in zip(self.metrics, self.grids(), strict=True):
            yield grid
            yield self.conclusion(metric)
        yield from further
        yield from self.notes
        yield self._describe_tests()

    def to_dict(self) -> dict[str, Any]:
        """Everything except the values by query, as plain values; None where a figure is undefined."""
        plain: dict[str, Any] = replace_nonfinite(super().to_dict())
        return plain

    def _compute_facts(self) -> dict[str, Any]:
        return {"verdicts": {m: self.conclusion(m) for m in self.metrics}}

    def to_markdown(self, further: Sequence[Grid] = ()) -> str:
        """Markdown: tables, conclusions and notes, followed by further tables."""
        out = []
        for metric, grid in zip(self.metrics, self.grids(), strict=True):
            out += [f"### {grid.title}", "", format_markdown(grid), "", self.conclusion(metric), ""]
        out += [f"- {note}" for note in self.notes] + ([""] if self.notes else [])
        for grid in further:
            out += [f"### {grid.title}", "", format_markdown(grid), ""]
        return "\n".join([*out, self._describe_tests()]) + "\n"

    def to_latex(self, further: Sequence[Grid] = ()) -> str:
        """LaTeX tables with booktabs rules; conclusions and notes as comments."""
        out = ["% needs \\usepackage{booktabs}"]
        for metric, grid in zip(self.metrics, self.grids(), strict=True):
            caption = f"{grid.title}. {self._describe_tests()}"
            out += [_format_comment(self.conclusion(metric)), format_latex(grid, caption=caption)]
        out += [format_latex(grid, caption=grid.title) for grid in further]
        return "\n".join([*out, *map(_format_comment, self.notes)]) + "\n"

    def to_csv(self) -> str:
        """One line per result and metric with all digits."""
        names = [f.name for f in fields(ComparisonRow)]
        return format_csv(names, ([getattr(row, name) for name in names] for row in self.rows))

    def to_html(self, further: Sequence[Grid] = (), *, page: bool = True) -> str:
        """An HTML page that needs no network, or only its body."""
        parts = [self._render(block) for block in self.blocks(further)]
        return render_page(self.title, *parts) if page else render_block(self.title, *parts)

    def _describe_tests(self) -> str:
        """What was tested, and how."""
        count = sum(r.p is not None for r in self.rows)
        return (
            f"Differences from {self.baseline} by query; "
            f"{100 * self.level:.6g} % intervals {INTERVALS[self.test]}; "
            f"paired {self.test} test, Holm-corrected over {count} test{'s' * (count != 1)}; "
            "judged: share of the evaluated places that have a grade."
        )

    def _resolve_metric(self, metric: MetricSpec | None) -> Metric:
        wanted = parse(self.metrics[0] if metric is None else metric)
        if str(wanted) not in self.metrics:
            raise ParameterError(f"{wanted} was not compared; there are {', '.join(self.metrics)}")
        return wanted


def _describe_judged_shares(comparison: Comparison, metric: str) -> list[str]:
    """Unjudged items count as not relevant, a disadvantage for results that were not judged."""
    cutoff = parse(metric).cutoff
    where = "in the ranking" if cutoff is None else f"in the top {cutoff}"
    shares = {r.name: r.judged for r in comparison.rows if r.metric == metric and math.isfinite(r.judged)}
    nothing = [name for name, share in shares.items() if share == 0]
    if nothing and len(nothing) == len(shares):
        return [f"No item {where} of any result is judged: the figures are meaningless."]
    sentences = [f"No item {where} of {name} is judged: its {metric} is meaningless." for name in nothing]
    left = {name: share for name, share in shares.items() if share > 0}
    if left and max(left.values()) - min(left.values()) > UNEVEN:
        low, high = min(left, key=lambda n: left[n]), max(left, key=lambda n: left[n])
        sentences.append(
            f"Judged {where}: {format_percent(left[low])} of {low}, "
            f"{format_percent(left[high])} of {high}; "
            f"unjudged items count as not relevant, so {low} {UNDERRATED}."
        )
    return sentences


def _format_comment(text: str) -> str:
    return "% " + " ".join(text.split())
