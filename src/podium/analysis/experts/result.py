"""The diagnosis of all experts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.analysis.experts import agreement_matrices, expert_effects, id_overlap, warnings_text
from podium.analysis.experts.chart import draw_agreement
from podium.core.errors import InputError, ParameterError, check_type
from podium.core.results import Column, Result, ViewBlock, build_grid, show_field
from podium.core.tables import Grid, format_decimal, format_interval, format_percent, replace_nonfinite
from podium.core.text import format_count
from podium.data.ids import Id, Ids
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.data.unlisted_rule import describe_unlisted_rule
from podium.evaluate.evaluation import mean_of
from podium.kernels.dispatch import B1, F8, I8
from podium.methods.base import Aggregator
from podium.metrics.base import MetricSpec, parse

if TYPE_CHECKING:
    from podium.data.features import Features

__all__ = ["CopyPair", "Diagnosis", "Expert", "diagnose"]

COPY_AGREEMENT = 0.95  # two experts are near-duplicates from this value on in both measures
REVERSED = -0.2  # below this median agreement with the others, a list may be reversed
EVIDENCE = 20  # with fewer pairs of items, agreement may be chance and no flag is set
MATRICES = {"agreement": ("", 2), "overlap": ("RBO (p = 0.9)", 2), "shared": ("queries that both answer", 0)}
DEPTH = 10  # places for the judged share when the metric has no cutoff


@dataclass(frozen=True)
class Expert:
    """One expert; None where a figure is undefined or was not requested (no labels, no other expert)."""

    expert: Id
    queries: int  # answered
    entries: int  # items listed, or votes
    length: float  # entries per answered query
    alone: float | None  # share of its items that no other expert lists (or votes on)
    # mean over the others: tau-b from -1 to 1, or for votes the share of agreeing pairs
    agreement: float | None
    overlap: float | None  # mean RBO with the others' lists
    judged: float | None  # share of its top places that have a grade
    value: float | None  # the metric of its own lists
    # metric of the full consensus minus that without this expert: positive means it helps
    effect: float | None
    low: float | None  # interval of the effect
    high: float | None
    p_holm: float | None  # p-value of no effect, corrected over all experts
    moved: float | None  # change of the consensus without it: 1 - RBO, 0 for none
    # of: no answers, unmatched ids, unjudged, all tied, reversed, copy, hurts, helps
    flags: tuple[str, ...]


@dataclass(frozen=True)
class CopyPair:
    """Two experts that are near-duplicates."""

    first: Id
    second: Id
    agreement: float
    overlap: float | None
    queries: int  # that both answer


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Result[Expert]):
    """Matrices have one row and column per expert, in the order of `experts`; NaN where nothing is shared."""

    experts: Ids
    rows: tuple[Expert, ...]  # in the order of `experts`
    measure: str  # what `agreement` holds: "tau-b", or "agreeing pairs" for votes
    agreement: F8
    overlap: F8 | None  # RBO of the lists, p = 0.9; None for votes
    shared: I8  # queries that both answer
    copies: tuple[CopyPair, ...]
    effective: float  # effective number of independent experts
    method: str  # of the consensus
    metric: str | None  # None without labels
    value: float | None  # metric of the full consensus
    judged_queries: int  # queries that have labels
    level: float  # of the intervals
    warnings: tuple[str, ...]  # sentences, most serious first
    fingerprint: str
    reading: str = ""  # how unlisted items were read; empty if every list is complete

    key, shown = "expert", 30
    facts = ("experts", "names", "agreement", "overlap", "shared", "copies", "effective", "method", "metric", "value",
             "judged_queries", "level", "measure", "fingerprint", "reading", "warnings")  # fmt: skip
    chart = draw_agreement

    def headline(self) -> str:
        """One line: number of experts, effective number, number of warnings."""
        words = format_count(len(self.warnings), "warning") if self.warnings else "no warnings"
        many = f"effective number of independent experts: {self.effective:.1f} of {len(self):,}"
        return f"{'1 expert' if len(self) == 1 else many}; {words}"

    @property
    def title(self) -> str:
        """The headline."""
        return self.headline()

    def grid(self) -> Grid:
        """One row per expert, largest effect first; without labels, highest agreement first."""
        two = partial(format_decimal, digits=2)
        columns: list[Column] = [
            ("queries", show_field("queries", "{:,}".format)),
            ("length", show_field("length", partial(format_decimal, digits=1))),
            ("alone", show_field("alone", format_percent)),
            (self.measure, show_field("agreement", two if self.measure == "tau-b" else format_percent)),
            ("RBO", show_field("overlap", two)),
            ("judged", show_field("judged", format_percent)),
            (str(self.metric), show_field("value", format_decimal)),
            ("effect", show_field("effect", partial(format_decimal, sign=True))),
            ("interval", lambda r: format_interval(r.low, r.high)),
            ("moved", show_field("moved", two)),
        ]
        first: Column = ("expert", show_field("expert"))
        last: Column = ("flags", show_field("flags", ", ".join))

        def sort_key(r: Expert) -> tuple[float, ...]:
            values = (r.effect, r.agreement)
            return tuple(-v if v is not None and math.isfinite(v) else math.inf for v in values)

        rows, optional = sorted(self.rows, key=sort_key), {name for name, _ in columns}
        return build_grid((first, *columns, last), rows, title=self.headline(), optional=optional)

    def matrix_grid(self, which: str = "agreement") -> Grid:
        """A matrix as text: `agreement`, `overlap` or `shared`; empty cells where two experts share nothing."""
        if which not in MATRICES:
            raise ParameterError(f"there is no matrix {which!r}; accepted: {', '.join(MATRICES)}")
        matrix = getattr(self, which)
        if matrix is None:
            raise ParameterError("votes have no RBO; accepted: agreement, shared")
        title, digits = MATRICES[which]
        if which == "agreement":
            title = "tau-b on common items" if self.measure == "tau-b" else "share of agreeing pairs"
        names = tuple(map(str, self.experts))
        lines = ((format_decimal(v, digits) for v in row) for row in matrix.tolist())
        rows = tuple((name, *line) for name, line in zip(names, lines, strict=True))
        return Grid(("", *names), rows, 1, title)

    def blocks(self) -> Iterator[ViewBlock]:
        """The warnings, the table of experts, and the matrices unless they are large."""
        if self.warnings:
            yield self.warnings
        yield replace(self.grid(), title="")
        if len(self) <= self.shown:
            yield self.matrix_grid("agreement")
            if self.overlap is not None:
                yield self.matrix_grid("overlap")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; None where a figure is undefined."""
        plain: dict[str, Any] = replace_nonfinite(super().to_dict())
        return plain

    def _compute_facts(self) -> dict[str, Any]:
        return {"experts": self.rows, "names": self.experts}

    def to_html(self) -> str:
        """A fragment of a page: warnings, the table of experts, the matrices."""
        return self._repr_html_()


def diagnose(
    preferences: Preferences,
    labels: Labels | None = None,
    method: str | Aggregator | None = None,
    metric: MetricSpec = "ndcg@10",
    *,
    features: Features | None = None,
    level: float = 0.95,
) -> Diagnosis:
    """Diagnose agreement, near-duplicates, coverage, effects on the consensus of `method`, and unmatched ids.

    The method defaults to rrf, or copeland for votes. It must not learn from labels, since it is applied once
    without each expert. Figures by labels require labels.

    >>> p = Preferences.from_lists({q: {"bm25": "abc", "copy": "abc", "odd": "cba"} for q in range(8)})
    >>> found = diagnose(p)
    >>> found.agreement.tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    >>> print(found.warnings[0])
    'odd' orders the items shared with the others mostly in reverse (median tau-b -1.00): is the list reversed?
    """
    check_type(preferences, Preferences, "diagnose", "give preferences and labels, not a data set of both")
    if not len(preferences.experts) or not preferences.forms:
        raise InputError("the preferences are empty", remedy="give lists or votes of experts")
    chosen, chosen_metric = expert_effects.resolve_method(method, preferences), parse(metric)
    chosen_metric.check_cutoff()
    rows = agreement_matrices.sort_list_rows(preferences)
    expert, slot = id_overlap.list_expert_items(preferences, rows)
    share, alone_ids, id_warnings = id_overlap.find_unmatched_experts(preferences, expert, slot)
    which = (
        np.zeros(0, np.int64) if labels is None else expert_effects.find_measured_queries(preferences, labels)
    )
    judged, unjudged, on_labels = (
        (0, np.zeros(len(preferences.experts), np.bool_), [])
        if labels is None
        else id_overlap.match_labels(preferences, labels, expert, slot)
    )
    usable = labels if len(which) else None
    nothing = np.full(len(preferences.experts), math.nan)
    own = expert_effects.SingleExpertScores(nothing, nothing)
    if usable is not None:
        depth = chosen_metric.cutoff or DEPTH
        own = expert_effects.measure_single_experts(preferences, usable, chosen_metric, depth, which)
    columns = _ExpertColumns(
        agreement_matrices.compare_lists(preferences, rows)
        if len(rows.slot)
        else agreement_matrices.compare_votes(preferences),
        "tau-b" if len(rows.slot) else "agreeing pairs",
        share,
        _find_all_tied(rows, len(preferences.experts)),
        alone_ids,
        unjudged,
        own,
        expert_effects.leave_one_out(preferences, usable, chosen, chosen_metric, which, features, level),
    )
    name = None if usable is None else str(chosen_metric)
    return _assemble_diagnosis(
        preferences, columns, repr(chosen), name, judged, level, [*on_labels, *id_warnings]
    )


class _ExpertColumns(NamedTuple):
    """Columns of the diagnosis, in the order of the experts."""

    matrix: agreement_matrices.AgreementMatrices
    measure: str
    share: F8
    tied: B1
    unmatched: B1
    unjudged: B1
    own: expert_effects.SingleExpertScores
    left: expert_effects.LeaveOneOutEffects

    @property
    def correlation(self) -> F8:
        """Agreement from -1 to 1."""
        return self.matrix.agreement if self.measure == "tau-b" else 2 * self.matrix.agreement - 1


def _find_all_tied(rows: agreement_matrices.ExpertListRows, experts: int) -> B1:
    """Experts with lists of two items or more, all of them fully tied."""
    first = np.cumsum(rows.length) - rows.length
    several = rows.length > 1
    if not len(rows.slot):
        return np.zeros(experts, np.bool_)
    flat = rows.score[first] == rows.score[first + rows.length - 1]
    lists = np.bincount(rows.expert[several], minlength=experts)
    same = np.bincount(rows.expert[several & flat], minlength=experts)
    tied: B1 = (lists > 0) & (lists == same)
    return tied


def _assemble_diagnosis(
    preferences: Preferences,
    c: _ExpertColumns,
    method: str,
    metric: str | None,
    judged: int,
    level: float,
    id_warnings: list[str],
) -> Diagnosis:
    experts = preferences.experts
    copies = _find_copies(experts, c)
    # the median correlation with the others
    correlation = np.where(c.matrix.evidence > 0, c.correlation, np.nan)
    np.fill_diagonal(correlation, np.nan)
    known = [row[~np.isnan(row)] for row in correlation]
    apart = np.array([float(np.median(row)) if len(row) else math.nan for row in known])
    apart[c.matrix.evidence.sum(axis=1) < EVIDENCE] = math.nan
    copied = {(type(e), e) for p in copies for e in (p.first, p.second)}
    silent = np.diag(c.matrix.shared) == 0
    sure = np.nan_to_num(c.left.p, nan=1.0) < 1 - level
    marks = {
        "no answers": silent,
        "unmatched ids": c.unmatched,
        "unjudged": c.unjudged,
        "all tied": c.tied,
        "reversed": np.nan_to_num(apart, nan=0.0) < REVERSED,
        "copy": np.array([(type(e), e) in copied for e in experts], np.bool_),
        "hurts": sure & (c.left.effect < 0),
        "helps": sure & (c.left.effect > 0),
    }
    flags = [[word for word, mark in marks.items() if mark[code]] for code in range(len(experts))]
    typical = _mean_with_others(c.matrix.agreement)
    nothing = np.full(len(experts), math.nan)
    overlap = nothing if c.matrix.overlap is None else _mean_with_others(c.matrix.overlap)
    return Diagnosis(
        experts,
        tuple(
            _build_row(preferences, c, code, flags[code], typical, overlap) for code in range(len(experts))
        ),
        c.measure,
        c.matrix.agreement,
        c.matrix.overlap,
        c.matrix.shared,
        copies,
        agreement_matrices.effective_number(c.correlation, preferences.active_experts),
        method,
        metric,
        _none_if_nan(c.left.value) if metric is not None else None,
        judged,
        level,
        (*id_warnings, *warnings_text.describe_warnings(experts, c, copies, apart, flags, metric)),
        preferences.fingerprint,
        describe_unlisted_rule(preferences),
    )


def _none_if_nan(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _build_row(
    preferences: Preferences, c: _ExpertColumns, code: int, flags: Sequence[str], typical: F8, overlap: F8
) -> Expert:
    lists, votes = preferences.lists, preferences.comparisons
    entries = int(lists.lengths[lists.expert == code].sum()) or int((votes.expert == code).sum())
    queries = int(c.matrix.shared[code, code])
    figures = {
        "alone": c.share,
        "agreement": typical,
        "overlap": overlap,
        **c.own._asdict(),
        **{name: getattr(c.left, name) for name in ("effect", "low", "high", "moved")},
        "p_holm": c.left.p,
    }
    known: dict[str, Any] = {name: _none_if_nan(column[code]) for name, column in figures.items()}
    length = entries / queries if queries else 0.0
    return Expert(preferences.experts[code], queries, entries, length, flags=tuple(flags), **known)


def _mean_with_others(matrix: F8) -> F8:
    return np.array([mean_of(np.delete(row, i)) for i, row in enumerate(matrix)])


def _find_copies(experts: Ids, c: _ExpertColumns) -> tuple[CopyPair, ...]:
    """Pairs that agree nearly everywhere; lists must also contain nearly the same items."""
    close = (np.nan_to_num(c.correlation, nan=-1.0) >= COPY_AGREEMENT) & (c.matrix.evidence >= EVIDENCE)
    if c.matrix.overlap is not None:
        close &= np.nan_to_num(c.matrix.overlap, nan=-1.0) >= COPY_AGREEMENT
    pairs = np.argwhere(np.triu(close, 1)).tolist()
    copies = [
        CopyPair(
            experts[a],
            experts[b],
            float(c.matrix.agreement[a, b]),
            None if c.matrix.overlap is None else float(c.matrix.overlap[a, b]),
            int(c.matrix.shared[a, b]),
        )
        for a, b in pairs
    ]
    return tuple(sorted(copies, key=lambda p: -p.agreement))
