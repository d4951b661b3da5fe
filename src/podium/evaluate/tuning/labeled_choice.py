"""`auto` with labels: every method that fits the time budget, and the simplest that is not worse than the best.

The values of all candidates on held-out queries come from the table that `tune` uses, and so does the nested
estimate of the choice. What differs is the rule of the choice (one standard error, see `choose_simplest`), and
that a candidate has its default parameters: few labels cannot tell parameters apart. Nor can they tell some fifty
candidates apart, of which the best is often so by chance; so the choice without labels stays unless another one is
better by more than that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.core import registry
from podium.core.errors import ParameterError, check_type
from podium.core.progress import Progress, no_progress
from podium.core.settings import TuneSettings
from podium.core.tables import format_decimal
from podium.core.text import format_count, join_names
from podium.data.consensus import TieRule
from podium.data.dataset import Dataset
from podium.evaluate.method_screening import QUICK, estimate_steps
from podium.evaluate.tuning.nested_estimate import choose_simplest, estimate_nested
from podium.evaluate.tuning.result import Tuning
from podium.evaluate.tuning.score_table import ScoreTable, TuningTask, own_values
from podium.evaluate.tuning.search_space import QualityWeights, TuningConfig
from podium.evaluate.tuning.tuning_run import build_result, note_tuning, span_progress
from podium.kernels import dispatch
from podium.kernels.dispatch import I8
from podium.methods.automatic_choice import choose_method
from podium.methods.base import Aggregator
from podium.methods.learned.baseline_comparison import make_baseline
from podium.metrics.base import MetricSpec, parse

__all__ = ["BUDGET", "LabeledChoice", "choose_by_labels", "plan_candidates"]

BUDGET = 60.0  # seconds
FEW = 10  # judged queries below which labels estimate the choice, and do not make it
ADDED = 10  # queries without a difference, added to those on which the choice without labels has to be beaten
# there are so many other rules without labels that the best of them on a few queries is often so by chance
LEVELS = (
    "the choice without labels",
    "a rule with weights from the labels",
    "another rule without labels",
    "a model learned from the labels",
    "a combination of methods",
)
# methods that learn from labels, by what they learn; others count as models
LEARNED_LEVELS = dict.fromkeys(
    ("weighted_borda", "weighted_rrf", "weighted_cps", "weighted_kemeny", "position_probability"), 1
) | {"stack": 4}
WEIGHED = ("rrf", "rbc")  # rules that are also tried with weights by quality
# seconds per fit and million rows, measured by `python benchmarks/screening.py --learned`; UNKNOWN for others
FIT_SECONDS = {
    "crf": 4.5,
    "fused": 3.0,
    "position_probability": 0.3,
    "query_weighted": 12.0,
    "stack": 10.0,
    "svd": 1.6,
    "weighted_borda": 0.8,
    "weighted_cps": 1.7,
    "weighted_kemeny": 14.0,
    "weighted_rrf": 0.6,
}
UNKNOWN = 30.0
STEP_SECONDS = 1e-7  # of `estimate_steps`
PLANNED = 0.5  # share of the budget that estimates may fill: machines differ
STARTED = 0.75  # share after which no candidate is started, whatever was planned


@dataclass(frozen=True, eq=False)
class LabeledChoice:
    """The chosen method, fitted, with its held-out estimate, and the candidate that it was preferred to."""

    tuning: Tuning
    level: int  # of the chosen method, among LEVELS
    runner: str = ""  # the candidate with the largest mean, if it is another one
    gap: float = 0.0  # how much larger that mean is
    error: float = 0.0  # standard error of that difference
    few: int = 0  # number of judged queries, if too few to choose by

    @property
    def method(self) -> Aggregator:
        """The chosen method, fitted on all judged queries."""
        return self.tuning.best

    def describe_reason(self) -> str:
        """Why this method, in one clause with figures."""
        t = self.tuning
        if self.few:
            return (
                f"{format_count(self.few, 'judged query', 'judged queries')} cannot choose a method (10 can), so "
                "it was chosen without them"
            )
        tried = sum(not trial.failed for trial in t.trials)
        if tried == 1:
            return "the only candidate"
        if not self.level:
            return f"{LEVELS[0]}, since no other one of {tried} candidates is shown to be better on held-out queries"
        text = (
            f"the simplest of {tried} candidates that is not worse than the best of them on held-out queries"
        )
        return f"{text}, {LEVELS[self.level]}"

    def describe_loss(self) -> str:
        """What the choice gives up, in one sentence."""
        t = self.tuning
        if self.runner:
            text = f"It gives up {self.runner}, whose mean {t.metric} is higher by {format_decimal(self.gap)}, within"
            if self.level:
                return f"{text} one standard error ({format_decimal(self.error)})."
            times = 1 + ADDED / len(t.queries)
            return (
                f"{text} the {format_decimal(times * self.error)} that {len(t.queries):,} judged queries have to "
                f"show ({times:.2g} standard errors)."
            )
        late = [name for name, why in t.left_out.items() if "budget" in why]
        if late and not self.few:
            return f"It gives up nothing that was tried; {join_names(late, last='and')} did not fit the time budget."
        if self.few:
            return "It gives up what more labels would show."
        return "It gives up nothing that was tried: no candidate has a higher mean."


def choose_by_labels(
    dataset: Dataset,
    metric: MetricSpec = "ndcg@10",
    methods: Sequence[str] | None = None,
    *,
    learned: bool = True,
    budget: float | None = BUDGET,
    folds: int | None = None,
    seed: int = TuneSettings.seed,
    level: float = TuneSettings.level,
    rounds: int = TuneSettings.rounds,
    ties: TieRule = TuneSettings.ties,
    workers: int | None = None,
    progress: Progress = no_progress,
) -> LabeledChoice:
    """The simplest method that is not worse than the best on held-out queries, fitted on all judged queries.

    Candidates are all methods that read the input and fit the `budget` (seconds; None: no limit), with default
    parameters; those that use labels only if `learned`; with `methods`, only these. Which ones fit is estimated
    from the size of the data, so that the same input has the same candidates on every machine; where the clock
    stops earlier, a note reports it. The method that `choose_method` names without labels always takes part, and
    stays unless another one is better by 1 + 10 / n standard errors on n judged queries; below ten it stays anyway.

    >>> from podium.data.demo import demo
    >>> choice = choose_by_labels(demo(40), learned=False)
    >>> choice.level, choice.tuning.outcome() in ("better", "no difference")
    (0, True)
    """
    check_type(dataset, Dataset, "choose_by_labels", "give podium.Dataset(preferences, labels)")
    if budget is not None and not budget > 0:
        raise ParameterError(f"budget is {budget:g}; accepted: seconds above 0, or None for no limit")
    for name in methods or ():
        registry.aggregators.get(name)  # a misspelled name is no candidate
    begin, seconds = time.monotonic(), math.inf if budget is None else budget
    problem = TuningTask.from_dataset(dataset, parse(metric), ties, folds, seed)
    base = make_baseline(problem.data)
    unlabeled = choose_method(dataset.preferences).method
    few = len(problem) < FEW
    given = [] if few else methods
    configs, levels, left_out = plan_candidates(problem, base, unlabeled, learned, seconds, given)
    table = ScoreTable(problem, configs)
    table.stop_at = begin + STARTED * seconds
    threads = dispatch.count_threads() if workers is None else workers
    everything = np.arange(len(problem))
    table.compute_missing(
        range(len(configs)), everything, threads, span_progress(progress, 0.0, 0.9), optional=True
    )
    if 0 in table.failed:
        raise ParameterError(f"the baseline {base!r} cannot be computed: {table.failed[0]}")
    rows = np.array([r for r in range(table.config_limit) if r not in table.failed], np.int64)
    for row in range(table.config_limit, len(configs)):
        left_out[configs[row].method] = "not reached within the time budget; allow more time"
    left_out |= {configs[row].method: why for row, why in table.failed.items()}
    # with few labels the choice without labels is taken, whatever its mean
    choose = choose_simplest(levels[rows], ADDED)
    if few:
        choose = lambda values, counts: np.full(len(counts), len(values) - 1, np.int64)  # noqa: E731
    estimate = (
        estimate_nested(table, [rows] * problem.fold_count, repr(base), rounds, seed, choose)
        if len(problem) > 1
        else None
    )
    result = build_result(table, rows, estimate, repr(base), left_out, "auto", seed, level, budget, choose)
    progress(1, 1, "done")
    tuning = note_tuning(problem, result)
    own, experts = own_values(table)[rows], table.problem.data.preferences.experts.tolist()
    texts = [table.configs[row].describe(experts) for row in rows.tolist()]
    at, best = texts.index(tuning.config), int(np.argmax(np.round(own.mean(axis=1), 12)))
    chosen_level = int(levels[rows[at]])
    d = own[best] - own[at]
    if few or d.mean() <= 1e-12:
        return LabeledChoice(tuning, chosen_level, few=len(problem) if few else 0)
    # the candidate with the largest mean is another one
    error = float(d.std(ddof=1) / math.sqrt(len(d))) if len(d) > 1 else 0.0
    return LabeledChoice(tuning, chosen_level, texts[best], float(d.mean()), error)


def plan_candidates(
    problem: TuningTask,
    base: Aggregator,
    unlabeled: Aggregator,
    learned: bool,
    seconds: float,
    methods: Sequence[str] | None = None,
) -> tuple[list[TuningConfig], I8, dict[str, str]]:
    """The baseline, other configurations by rising level, the level of each, and the methods left out with the reason.

    The baseline and the choice without labels, which is a level of its own, take part whatever they cost, and so do
    those named in `methods`, without which all are considered.
    """
    whole, part = problem.data.preferences, problem.select_part(np.arange(len(problem))).preferences
    first = TuningConfig(base.name)
    configs = {first: _get_level(base.name), TuningConfig(unlabeled.name): 0}
    left_out: dict[str, str] = {}
    folds = problem.fold_count
    fits = folds * (folds + 1) // 2 + 1  # without each fold, without each pair of folds, and with all queries
    million = (part.lists.rows + len(part.comparisons)) / 1e6
    spent = 0.0
    every = registry.aggregators.all()
    names = sorted(
        (name for name in every if (not every[name].tags.dialect if methods is None else name in methods)),
        key=lambda name: (
            _get_level(name),
            FIT_SECONDS.get(name, UNKNOWN) * every[name].tags.supervised,
            name,
        ),
    )
    for name in names:
        tags = every[name].tags
        if TuningConfig(name) in configs or (tags.supervised and not learned):
            continue
        if refused := whole.forms - tags.accepts:
            left_out[name] = f"cannot read {', '.join(sorted(f.value for f in refused))} preferences"
            continue
        # to rank all queries once, and to fit and measure it on the judged ones
        cost = estimate_steps(tags, whole) * STEP_SECONDS
        if tags.supervised:
            cost += fits * million * FIT_SECONDS.get(name, UNKNOWN)
            allowed = PLANNED * seconds - spent
        else:
            cost += estimate_steps(tags, part) * STEP_SECONDS
            allowed = 2 * QUICK * STEP_SECONDS * max(1.0, seconds / BUDGET)
        if methods is None and cost > allowed:
            left_out[name] = f"about {cost:.2g} s do not fit the time budget; allow more time"
            continue
        spent += cost * tags.supervised
        configs[TuningConfig(name)] = _get_level(name)
    if methods is None and learned and len(problem.expert_values) > 1:
        configs |= {TuningConfig(name, (), QualityWeights()): 1 for name in WEIGHED}
    order = sorted(configs.items(), key=lambda pair: (pair[0] != first, pair[1]))
    return [config for config, _ in order], np.array([level for _, level in order]), left_out


def _get_level(name: str) -> int:
    """Among LEVELS, of any method but the choice without labels."""
    return LEARNED_LEVELS.get(name, 3) if registry.aggregators.get(name).tags.supervised else 2
