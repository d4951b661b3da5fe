"""The inputs of a report, computed once: results, comparison, diagnosis, leaderboard, annotators."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from podium.analysis.annotators import Annotators, annotators
from podium.analysis.answer import Answer, find_answer
from podium.analysis.experts import Diagnosis, diagnose
from podium.analysis.leaderboard import Leaderboard, leaderboard
from podium.core.errors import ParameterError, PodiumError, capture_warnings
from podium.data.consensus import Consensus
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Form, Preferences
from podium.evaluate.comparison import Comparison, compare, usual_methods
from podium.evaluate.heldout_labels import HeldOutLabels, exclude_fitted_queries
from podium.evaluate.method_screening import MethodScreen, screen_methods
from podium.evaluate.metric_curves import Curve, curves
from podium.evaluate.result_rankings import aggregate_methods, compute_rbo_by_query, expert_rankings
from podium.evaluate.simultaneous_tests import Lead, compute_leads, estimate_choice_value
from podium.evaluate.tuning.labeled_choice import FEW
from podium.evaluate.unlisted_reading import warn_of_other_reading
from podium.kernels.dispatch import F8
from podium.methods.automatic_choice import choose_method
from podium.methods.base import Aggregator, make
from podium.metrics.base import MetricSpec, parse
from podium.reporting.vote_parts import VoteParts, VoteSources, collect_vote_parts

__all__ = ["ReportInputs", "ReportRequest", "choose_methods", "collect_inputs", "default_methods"]

EXPERTS = 150  # maximum number of experts for a diagnosis of each expert
WORK = 50_000_000  # maximum of experts x rows for the same
GRADES = 11  # distinct ratings up to which ratings count as judgements, not as engine scores
LEARN_QUERIES, LEARN_ROWS, LEARN_EXPERTS = 20, 400_000, 60  # limits for fitting a model for expert weights
DEPTHS = range(1, 11)
DRAWN = 8  # lines in a chart of curves


@dataclass(frozen=True, eq=False)
class ReportRequest:
    """What the report is to cover."""

    preferences: Preferences
    labels: Labels | None = None
    features: Features | None = None
    times: Mapping[Id, Any] | None = None
    methods: Mapping[str, Aggregator] = field(default_factory=dict)
    metrics: Sequence[MetricSpec] = ("ndcg@10", "map")
    queries: Sequence[Id] = ()
    learn: bool = True
    slow: Sequence[str] = ()  # methods skipped because they are slow on these data
    pairs: bool = True  # whether to compute annotators and leaderboards, whose cost is quadratic in the items
    vote_sources: VoteSources | None = None  # given: also check voters, slices and the panel of judges


@dataclass(frozen=True, eq=False)
class ReportInputs:
    """The computed parts; None where a part does not apply to the data."""

    request: ReportRequest
    results: Mapping[str, Consensus]  # by method
    comparison: Comparison | None = None
    lines: tuple[Curve, ...] = ()
    diagnosis: Diagnosis | None = None
    board: Leaderboard | None = None
    vote_parts: VoteParts | None = None
    crowd: Annotators | None = None
    weighers: Mapping[str, Aggregator] = field(default_factory=dict)  # models whose weights are shown
    shown_only: bool = False  # they were trained for the figure only
    run: str | None = None  # the comparison row of the best expert
    answer: Answer | None = None  # the choice among the methods, where they were not requested by name
    held_out: HeldOutLabels | None = None  # labeled queries that no model was fitted on
    warnings: tuple[str, ...] = ()  # issued while the parts were computed

    @property
    def preferences(self) -> Preferences:
        """The preferences of the request."""
        return self.request.preferences

    @property
    def has_judged_items(self) -> bool:
        """Whether label-based scores are meaningful: some item that a metric reads has a grade."""
        comparison = self.comparison
        return comparison is not None and any(r.judged > 0 for r in comparison.rows)

    @property
    def measured_methods(self) -> list[str]:
        """The methods with label-based scores."""
        known = {} if self.comparison is None else self.comparison.evaluations
        return [n for n in self.results if n in known]

    @property
    def best_method(self) -> str:
        """The method with the highest mean of the first metric; without labels, the first one."""
        if self.comparison is None or not self.has_judged_items or not self.measured_methods:
            return next(iter(self.results))
        metric = self.comparison.metrics[0]
        mean = {n: self.comparison.row(n, metric).mean for n in self.measured_methods}
        return max(mean, key=lambda n: mean[n] if mean[n] == mean[n] else -1.0)

    @property
    def leading_methods(self) -> list[str]:
        """The best few methods, which are drawn and analyzed per query."""
        measured = self.measured_methods
        return measured if self.comparison is None else _select_best(self.comparison, measured)

    @functools.cached_property
    def leads(self) -> tuple[Lead, ...]:
        """The lead of the best method over each other method and the best expert, with joint p-values."""
        assert self.comparison is not None
        c = self.comparison
        values = self._values_by_method(list(c.evaluations))
        return compute_leads(self.best_method, values, level=c.level, rounds=c.rounds, seed=c.seed)

    @functools.cached_property
    def expected_mean(self) -> float:
        """The expected mean on new queries when the best of these methods is chosen."""
        return estimate_choice_value(self._values_by_method(self.measured_methods))

    def _values_by_method(self, names: Sequence[str]) -> dict[str, F8]:
        assert self.comparison is not None
        return {n: self.comparison.evaluations[n][self.comparison.metrics[0]] for n in names}

    def compute_similarity(self) -> F8:
        """Mean RBO over all pairs of methods, per query; 1 for a single method."""
        pairs = list(combinations(self.results.values(), 2))
        similarities = [np.nan_to_num(compute_rbo_by_query(a, b), nan=1.0) for a, b in pairs]
        return np.mean(similarities, axis=0) if similarities else np.ones(len(self.preferences))


def default_methods(preferences: Preferences) -> dict[str, Aggregator]:
    """The method that `auto` names without labels, and a few well-known ones that can read these preferences."""
    wanted = usual_methods(preferences.forms)
    if is_crowd(preferences):
        wanted = ["crowdagg", "net_votes", "dawid_skene", "rrf", "borda", "copeland"]
    made = {name: make(name) for name in (choose_method(preferences).method.name, *wanted)}
    return {n: m for n, m in made.items() if preferences.forms <= m.tags.accepts}


def choose_methods(preferences: Preferences, labels: Labels | None = None) -> MethodScreen:
    """The default methods: with labels, all that are fast on these data; without, a few well-known ones."""
    first = default_methods(preferences)
    if labels is None or not _share_queries(preferences, labels):
        return MethodScreen(first, ())
    return screen_methods(preferences, first)


def is_crowd(preferences: Preferences) -> bool:
    """Whether the experts are annotators: several voters, or ratings on a short scale."""
    if len(preferences.experts) < 3:
        return False
    if Form.COMPARISON in preferences.forms:
        return True
    score = preferences.lists.score
    if score is None or np.isnan(score).any():
        return False
    return len(np.unique(score)) <= GRADES


def has_board(preferences: Preferences) -> bool:
    """Whether votes compare the same items repeatedly, so that one leaderboard makes sense."""
    index = preferences.index
    if Form.COMPARISON not in preferences.forms:
        return False
    return len(index) == 1 or len(set(index.items.tolist())) < 0.7 * len(index.items)


def collect_inputs(request: ReportRequest) -> ReportInputs:
    """Compute all parts; those without enough data are omitted, refusals become warnings."""
    if not len(request.preferences) or not request.preferences.forms:
        raise ParameterError("the preferences are empty; give lists or votes")
    p, labels = request.preferences, request.labels
    automatic = False
    with capture_warnings() as messages:
        if not request.methods:
            usual = choose_methods(p, labels)
            request = replace(request, methods=usual.methods, slow=usual.slow)
            automatic = True
        methods = request.methods
        results, left_out = aggregate_methods(methods.items(), p, request.features)
        request = replace(request, methods={name: methods[name] for name in results})
        notes = tuple(f"{name} is left out: {reason}" for name, reason in left_out.items())
        shared = labels if labels is not None and _share_queries(p, labels) else None
        diagnosis, rows = None, p.lists.rows + len(p.comparisons)
        # annotators have too few rows each for a diagnosis, and their own section
        if not is_crowd(p) and 1 < len(p.experts) <= EXPERTS and len(p.experts) * rows <= WORK:
            diagnosis = diagnose(p, shared, None, request.metrics[0])
        inputs = ReportInputs(request, results, diagnosis=diagnosis, warnings=notes)
        if shared is not None:
            inputs = _add_comparison(inputs, shared)
        if automatic and inputs.comparison is not None and inputs.comparison.queries >= FEW:
            # the same methods, ties and metric as in the comparison, so that both name the same winner
            find = functools.partial(
                find_answer, p, shared, metric=request.metrics[0], learned=False, ties="trec"
            )
            inputs = _try_part(inputs, "answer", functools.partial(find, methods=list(results), budget=None))
        if is_crowd(p) and request.pairs:
            consensus = results.get(choose_method(p).method.name)
            judge = functools.partial(annotators, p, consensus, labels=shared, times=request.times)
            inputs = _try_part(inputs, "crowd", judge)
        if has_board(p) and request.pairs:
            inputs = _try_part(inputs, "board", lambda: leaderboard(p))
        if inputs.board is not None and request.vote_sources is not None:
            board, sources = inputs.board, request.vote_sources
            inputs = _try_part(inputs, "vote_parts", lambda: collect_vote_parts(board, p, sources))
        inputs = _add_weight_models(inputs)
    return replace(inputs, warnings=tuple(dict.fromkeys((*inputs.warnings, *messages))))


def _try_part(inputs: ReportInputs, what: str, work: Any) -> ReportInputs:
    """Add one part, or the reason why it is missing."""
    try:
        return replace(inputs, **{what: work()})
    except PodiumError as error:
        return replace(inputs, warnings=(*inputs.warnings, str(error)))


def _share_queries(preferences: Preferences, labels: Labels) -> bool:
    return bool((labels.queries.codes_of(preferences.queries) >= 0).any())


def _add_comparison(inputs: ReportInputs, labels: Labels) -> ReportInputs:
    """Add the label-based comparison (with the best expert) and the curves, both on held-out queries."""
    held = exclude_fitted_queries(inputs.request.methods, labels)
    inputs, labels = replace(inputs, held_out=held), held.labels
    ranked = {
        n: c.with_ties("trec", single=True) for n, c in inputs.results.items() if n not in held.left_out
    }
    if not ranked:
        return inputs
    rows = dict(ranked)
    name = None
    experts = [r for r in (inputs.diagnosis.rows if inputs.diagnosis else ()) if r.value is not None]
    if experts and inputs.preferences.lists.rows:
        run = max(experts, key=lambda r: r.value or 0.0).expert
        name = f"best expert ({run})"
        rows[name] = expert_rankings(inputs.preferences, run).with_ties("trec", single=True)
    comparison = compare(rows, labels, inputs.request.metrics, baseline=name)
    doubt = warn_of_other_reading(
        comparison, inputs.preferences, inputs.request.methods, labels, features=inputs.request.features
    )
    inputs = replace(inputs, warnings=(*inputs.warnings, *filter(None, (doubt,))))
    first = parse(inputs.request.metrics[0])
    metric = first if first.cutoff_rule != "none" else parse("ndcg")
    drawn = _select_best(comparison, list(ranked), DRAWN - (name is not None))
    kept = {n: rows[n] for n in rows if n in drawn or n == name}
    return replace(inputs, comparison=comparison, lines=curves(kept, labels, metric, DEPTHS), run=name)


def _select_best(comparison: Comparison, names: Sequence[str], most: int = DRAWN) -> list[str]:
    """The best results by the first metric, in row order."""
    mean = {n: comparison.row(n, comparison.metrics[0]).mean for n in names}
    best = sorted(mean, key=lambda n: -mean[n] if mean[n] == mean[n] else np.inf)[:most]
    return [n for n in names if n in best]


def _add_weight_models(inputs: ReportInputs) -> ReportInputs:
    """Add models with expert weights: those requested, or one trained per half of the labeled queries."""
    from podium.analysis.figures import weight_table

    weighers = {}
    for name, method in inputs.request.methods.items():
        try:
            weight_table(method)
        except ParameterError:
            continue
        weighers[name] = method
    if weighers:
        return replace(inputs, weighers=weighers)
    p, labels = inputs.preferences, inputs.request.labels
    if labels is None or not inputs.request.learn or not inputs.has_judged_items or not p.lists.rows:
        return inputs
    few = p.lists.rows <= LEARN_ROWS and 2 <= len(p.experts) <= LEARN_EXPERTS
    known = [q for q, c in zip(p.queries, labels.queries.codes_of(p.queries) >= 0, strict=True) if c]
    if not few or len(known) < LEARN_QUERIES:
        return inputs
    halves = {"odd queries": known[::2], "even queries": known[1::2]}
    try:
        models = {n: make("crf").fit(p.select(q), labels) for n, q in halves.items()}
    except PodiumError as error:
        return replace(inputs, warnings=(*inputs.warnings, f"expert weights could not be learned: {error}"))
    return replace(inputs, weighers=models, shown_only=True)
