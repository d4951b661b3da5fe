"""The answer: which method to use on these data, how much better it is than one expert and than rrf, how sure that is.

`podium fuse`, `podium fit -m auto`, the report and the studio ask this one function, so that they agree.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from podium.core.errors import capture_warnings, check_type
from podium.core.progress import Progress, no_progress
from podium.core.results import Column, Result, ViewBlock, build_grid, show_field
from podium.core.tables import Grid, format_decimal, format_interval, format_p_value
from podium.core.text import format_count
from podium.data.consensus import TieRule
from podium.data.dataset import Dataset
from podium.data.features import Features
from podium.data.labels import Labels
from podium.data.preferences import Form, Preferences
from podium.evaluate.gain_check import GainCheck, check_tuning
from podium.evaluate.splits import find_labeled_queries
from podium.evaluate.tuning.labeled_choice import BUDGET, LabeledChoice, choose_by_labels
from podium.evaluate.tuning.nested_estimate import BEST_EXPERT, TuningRow
from podium.kernels.distributions import student_quantile
from podium.methods.automatic_choice import choose_method
from podium.methods.base import Aggregator
from podium.metrics.base import MetricSpec

__all__ = ["Answer", "AnswerCertainty", "find_answer", "suggest_improvements"]

AnswerCertainty = Literal["high", "moderate", "low", "unknown"]
SURE, LIKELY = 0.01, 0.05  # p-values below which the gain is certain, and likely
MEASURED = 5  # judged queries from which the mean gets an interval; below, it leaves the range of the metric
LABELED, ENOUGH = 20, 100  # judged queries that make a choice, and from which more of them change little
CORRECTION = (
    "the larger of the two p-values, so that it holds for both gains; every resample repeats the choice"
)


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Result[TuningRow]):
    """A method that is ready to use, the reason for it, and its gain on held-out queries where there are labels."""

    method: Aggregator  # fitted, ready to aggregate and to save
    config: str  # the method as text, with its weights in words
    reason: str
    loss: str  # what the choice gives up, a sentence
    certainty: AnswerCertainty
    explanation: str  # of the certainty, a sentence
    rows: tuple[
        TuningRow, ...
    ] = ()  # gain over the best expert and over rrf (votes: copeland), on held-out queries
    metric: str | None = None
    value: float | None = None  # mean on held-out queries
    low: float | None = None  # interval of that mean
    high: float | None = None
    level: float = 0.95
    p: float | None = None  # that the method is better than both of them
    correction: str = ""  # what `p` is corrected for
    queries: int = 0  # judged queries behind the figures
    candidates: int = 0
    left_out: Mapping[str, str] | None = None  # method -> why it was not tried
    notes: tuple[str, ...] = ()
    improvements: tuple[str, ...] = ()  # what would make the answer better
    gain_check: GainCheck | None = None  # whether it is at least as good as rrf and the best expert

    key = "name"
    facts = (
        "method", "config", "sentences", "reason", "loss", "certainty", "explanation", "metric", "value", "low", "high",
        "level", "rows", "p", "correction", "queries", "candidates", "left_out", "notes", "improvements",
    )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, str]:
        """What was chosen and why, with the held-out estimate; and what the choice gives up."""
        figures = ""
        if self.metric is not None and self.value is not None:
            figures = f"; {self.metric} {format_decimal(self.value)}"
            if self.low is not None and self.high is not None:
                interval = f"{format_decimal(self.low)} to {format_decimal(self.high)}"
                figures += f" ({self.level:.0%} interval {interval})"
            gains = [_describe_gain(r.name, r.difference) for r in self.rows if r.difference is not None]
            figures += "".join(f", {gain}" for gain in gains)
            if self.p is not None:
                p = format_p_value(self.p)
                figures += f", p {p if p.startswith('<') else f'= {p}'}"
        return f"auto chose {self.method.name}: {self.reason}{figures}.", self.loss

    def describe(self) -> str:
        """The two sentences."""
        return " ".join(filter(None, self.sentences))

    def headline(self) -> str:
        """The method and how sure it is."""
        return f"{self.config}, certainty {self.certainty}"

    @property
    def title(self) -> str:
        """Title of the notebook view."""
        return f"Answer: {self.config}"

    def blocks(self) -> Iterator[ViewBlock]:
        """The sentences, the gains, and what would make the answer better."""
        yield self.describe()
        yield self.explanation
        if self.rows:
            yield self.grid()
        yield from self.notes
        if self.improvements:
            yield self.improvements

    def grid(self) -> Grid:
        """Table of the gains."""
        columns: list[Column] = [
            (f"{self.metric} on held-out queries", show_field("name")),
            ("mean", show_field("mean", format_decimal)),
            ("gain", lambda r: format_decimal(r.difference, sign=True)),
            (f"{self.level:.0%} interval", lambda r: format_interval(r.low, r.high)),
            ("p", show_field("p", format_p_value)),
        ]
        return build_grid(columns, (TuningRow(self.method.name, self.value or math.nan), *self.rows))

    def _compute_facts(self) -> dict[str, Any]:
        return {"method": repr(self.method), "left_out": dict(self.left_out or {})}


def find_answer(
    preferences: Preferences,
    labels: Labels | None = None,
    features: Features | None = None,
    *,
    metric: MetricSpec = "ndcg@10",
    methods: Sequence[str] | None = None,
    learned: bool = True,
    budget: float | None = BUDGET,
    seed: int = 0,
    level: float = 0.95,
    ties: TieRule = "item",
    progress: Progress = no_progress,
) -> Answer:
    """The method for these data: chosen by labels where some query has them, otherwise by the form of the input.

    With labels, `choose_by_labels` tries all methods that fit the `budget` in seconds, those that learn from
    labels only if `learned`, or only the given `methods`. Without labels, `choose_method` decides, and nothing is
    known about the gain. The method of the answer is fitted: it can aggregate, be saved and be deployed.

    >>> from podium.data.demo import demo
    >>> data = demo(40)
    >>> answer = find_answer(data.preferences)
    >>> answer.method.name, answer.certainty
    ('quality_weighted', 'unknown')
    >>> answer = find_answer(data.preferences, data.labels, learned=False)
    >>> answer.queries, [row.name for row in answer.rows], answer.certainty
    (40, ['the best expert', 'rrf'], 'low')
    """
    check_type(
        preferences,
        Preferences,
        "find_answer",
        "give podium.Preferences, such as Preferences.from_lists(...)",
    )
    data = Dataset(preferences, labels, features)
    if labels is None or not find_labeled_queries(data).any():
        return _answer_without_labels(preferences, labels)
    choice = choose_by_labels(
        data,
        metric,
        methods,
        learned=learned,
        budget=budget,
        seed=seed,
        level=level,
        ties=ties,
        progress=progress,
    )
    return _answer_with_labels(preferences, choice)


def _answer_without_labels(preferences: Preferences, labels: Labels | None) -> Answer:
    recommendation = choose_method(preferences)
    method = recommendation.method
    notes: tuple[str, ...] = ()
    if not method.tags.per_query:
        with capture_warnings():
            notes = tuple(method.aggregate(preferences).diagnostics.notes)
    doubt = next((n for n in notes if "hardly agree" in n), "")
    explanation = "Without labels nobody can say how good it is."
    if labels is not None:
        explanation = "The labels cover none of these items, so nobody can say how good it is."
    return Answer(
        method,
        repr(method),
        recommendation.reason or "a single expert, whose order it keeps",
        recommendation.loss,
        "unknown",
        f"{explanation} {doubt[:1].upper()}{doubt[1:]}." if doubt else explanation,
        notes=notes,
        improvements=suggest_improvements(preferences),
    )


def _answer_with_labels(preferences: Preferences, choice: LabeledChoice) -> Answer:
    t = choice.tuning
    # the expert that is best on the training queries of each fold: the choice of an expert is held out too
    expert = [dataclasses.replace(r, name="the best expert") for r in t.rows if r.name == BEST_EXPERT]
    rows = (*expert, t.rows[0])
    values = t.values["tuned"]
    low = high = None
    if len(values) >= MEASURED:
        reach = float(student_quantile(len(values) - 1, (1 + t.level) / 2)) * float(values.std(ddof=1))
        low, high = (t.tuned + sign * reach / math.sqrt(len(values)) for sign in (-1, 1))
    known = [r.p for r in rows if r.p is not None]
    ahead = all((r.difference or 0.0) > 0 for r in rows)
    p = max(known) if len(known) == len(rows) and ahead else None
    certainty: AnswerCertainty = "low"
    if p is not None:
        certainty = "high" if p < SURE else "moderate" if p < LIKELY else "low"
    return Answer(
        choice.method,
        t.config,
        choice.describe_reason(),
        choice.describe_loss(),
        certainty,
        _explain_certainty(rows, certainty, p, t.tuned, len(values)),
        rows=rows,
        metric=str(t.metric),
        value=t.tuned,
        low=low,
        high=high,
        level=t.level,
        p=p,
        correction=CORRECTION if p is not None else "",
        queries=len(values),
        candidates=len(t.trials),
        left_out=t.left_out,
        notes=t.notes,
        improvements=suggest_improvements(preferences, len(values)),
        gain_check=check_tuning(t),
    )


def _describe_gain(name: str, difference: float) -> str:
    if difference < 0:
        return f"{format_decimal(-difference)} below {name}"
    return f"{format_decimal(difference, sign=True)} over {name}"


def _explain_certainty(
    rows: tuple[TuningRow, ...], certainty: AnswerCertainty, p: float | None, value: float, queries: int
) -> str:
    judged = format_count(queries, "judged query", "judged queries")
    names = " and ".join(r.name for r in rows)
    if value == 0 and not any(r.mean for r in rows):
        return f"On {judged} every ranking scores 0: their labels name no relevant item that an expert lists."
    if p is None:
        behind = [r.name for r in rows if r.difference is not None and r.difference <= 0]
        if behind:
            return (
                f"On {judged} it is not ahead of {' and '.join(behind)}: more labels may change the answer."
            )
        return f"With {judged}, no test against {names} is possible."
    p_text = format_p_value(p)
    p_text = f"p {p_text if p_text.startswith('<') else f'= {p_text}'}"
    if certainty == "low":
        return f"On {judged} its gain over {names} may be chance ({p_text})."
    sure = "certain" if certainty == "high" else "likely"
    return f"On {judged} it is {sure} to be better than {names} ({p_text})."


def suggest_improvements(preferences: Preferences, judged: int = 0) -> tuple[str, ...]:
    """What would make the answer better, most useful first; `judged` queries have labels.

    >>> lists = {"bm25": ["a", "b"], "dense": ["b", "a"]}
    >>> for advice in suggest_improvements(Preferences.from_lists(dict.fromkeys(range(50), lists))):
    ...     print(advice)
    labels for 20 queries: then the choice of the method is measured, not assumed
    scores besides ranks: they say how far apart the items of a list are
    a third expert: with two, nobody can say which of them is right
    """
    advice = []
    board = Form.COMPARISON in preferences.forms and len(preferences) == 1  # other queries may never exist
    if judged < ENOUGH and not board:
        wanted = LABELED if judged < LABELED else ENOUGH
        labels = f"labels for {wanted} queries"
        if len(preferences) < wanted:
            there = "here is one" if len(preferences) == 1 else f"here are {len(preferences)}"
            labels = f"more queries, and {labels} ({there})"
        gain = (
            "the choice of the method is measured, not assumed"
            if wanted == LABELED
            else "smaller differences between methods show"
        )
        advice.append(f"{labels}: then {gain}")
    experts = int(preferences.active_experts.sum())
    if Form.COMPARISON in preferences.forms:
        if experts == 1:
            advice.append("a column with the annotator of each vote: then unreliable annotators count less")
        return tuple(advice)
    score = preferences.lists.score
    if score is None or bool(np.isnan(score).all()):
        advice.append("scores besides ranks: they say how far apart the items of a list are")
    if experts == 2:
        advice.append("a third expert: with two, nobody can say which of them is right")
    if experts == 1:
        advice.append("a second expert: one list is its own consensus")
    return tuple(advice)
