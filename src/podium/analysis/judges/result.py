"""The assessment of a panel of judges: one row per judge, and what the panel as a whole is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.analysis.judges.abstention import AbstainingRule, calibrate_rule
from podium.analysis.judges.chart import draw_panel
from podium.analysis.judges.gold_shift import GoldShift, detect_gold_shift
from podium.analysis.judges.judge_figures import (
    JudgeBias,
    adjust_biases,
    compute_gold_agreement,
    measure_feature_bias,
    measure_position_bias,
)
from podium.analysis.judges.panel import JudgePanel, build_panel
from podium.analysis.judges.panel_rules import (
    apply_rule,
    choose_rule,
    estimate_nested_choice,
    measure_rules,
    name_rule,
    resolve_rules,
)
from podium.analysis.judges.panel_words import describe_panel
from podium.analysis.judges.prediction_powered import PoweredEstimate, estimate_win_rates
from podium.analysis.judges.shared_errors import (
    EffectiveNumber,
    SharedErrors,
    estimate_effective_number,
    find_shared_errors,
)
from podium.core.errors import ParameterError
from podium.core.results import Column, Result, ViewBlock, build_grid, show_field
from podium.core.tables import Grid, format_p_value
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.evaluate.significance import PairedOutcome, assess_pairs
from podium.kernels.dispatch import F8

__all__ = ["JudgeRow", "PanelAssessment", "PanelChoice", "RuleResult", "assess_panel"]

FEW_GOLD = 20  # gold questions that a choice among rules needs
FEW_ANSWERS = 10  # questions per judge below which its figures are unreliable


@dataclass(frozen=True)
class JudgeRow:
    """One judge; None means the data do not determine the value."""

    judge: Id
    questions: int
    votes: int
    gold_questions: int
    accuracy: float | None  # share of gold questions answered as the gold does; split answers count half
    low: float | None
    high: float | None
    split: float  # share of questions on which the judge gives both answers
    biases: tuple[JudgeBias, ...]  # toward the item shown first, then per feature
    flags: tuple[str, ...]

    @property
    def position(self) -> JudgeBias:
        """The bias toward the item shown first."""
        return self.biases[0]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**vars(self), "biases": [bias._asdict() for bias in self.biases], "flags": list(self.flags)}


@dataclass(frozen=True)
class RuleResult:
    """One rule for the panel's answers, measured on gold that it did not see."""

    rule: str
    right: float  # share of right answers
    chosen: bool


@dataclass(frozen=True)
class PanelChoice:
    """The chosen rule, and whether a panel is worth more than its best judge."""

    rules: tuple[RuleResult, ...]
    chosen: str
    nested: float  # share of right answers of the choice on gold that neither fit nor choice saw
    gain: PairedOutcome  # of the best rule that uses several judges over the best judge, nested

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**vars(self), "rules": [vars(rule) for rule in self.rules], "gain": self.gain._asdict()}


@dataclass(frozen=True, eq=False, repr=False)
class PanelAssessment(Result[JudgeRow]):
    """A panel of judges, those closest to the gold first, those with few answers last.

    >>> from podium.testing.panels import simulate_panel
    >>> made = simulate_panel("one good judge", questions=200, gold=100)
    >>> panel = assess_panel(made.preferences, made.gold, rules=("majority", "dawid_skene"))
    >>> panel.rows[0].judge, panel.choice.gain.difference < 0.05
    ('judge 1', True)
    """

    rows: tuple[JudgeRow, ...]
    questions: int
    gold_questions: int
    level: float
    effective: EffectiveNumber | None
    shared: tuple[SharedErrors, ...]  # pairs of judges; empty without gold
    choice: PanelChoice | None  # None without enough gold
    rule: AbstainingRule | None  # None without enough gold
    means: tuple[PoweredEstimate, ...]
    shift: GoldShift | None  # None if there are too few questions with gold, or without
    answers: F8  # score of the chosen rule (without gold: of the majority) by question
    panel: JudgePanel

    key, shown, title = "judge", 30, "Judges"
    facts = (
        "questions", "gold_questions", "level", "lines", "effective", "shared", "choice", "rule", "means", "shift",
        "rows",
    )  # fmt: skip
    chart = draw_panel

    def headline(self) -> str:
        """The first line of the summary."""
        return self.lines[0]

    @property
    def lines(self) -> tuple[str, ...]:
        """Summary in sentences."""
        return describe_panel(self)

    def grid(self, *, top: int | None = None) -> Grid:
        """The judges; columns that nothing is known about are left out."""
        columns: list[Column] = [
            ("judge", show_field("judge")),
            ("flags", show_field("flags", ", ".join)),
            ("questions", show_field("questions", "{:,}".format)),
            ("gold", show_field("gold_questions", lambda n: f"{n:,}" if n else "")),
            ("agreement", lambda row: _format_share(row.accuracy)),
            (f"{100 * self.level:.6g}%", lambda row: _format_range(row.low, row.high)),
            ("split", show_field("split", _format_share)),
        ]
        for k, bias in enumerate(self.rows[0].biases if self.rows else ()):

            def format_bias(row: JudgeRow, k: int = k) -> str:
                """The excess in points, with a star if it is significant."""
                own = row.biases[k]
                if own.excess is None:
                    return ""
                return f"{100 * own.excess:+.1f}{'*' if own.is_certain else ''}"

            columns.append((bias.toward, format_bias))
        optional = {heading for heading, _ in columns[3:]}
        return build_grid(columns, self.rows[:top], left=2, optional=optional)

    def tables(self) -> tuple[Grid, ...]:
        """The tables after that of the judges: rules, shares answered, shared errors, means."""
        tables = []
        if self.choice is not None:
            columns: list[Column] = [
                ("rule", lambda row: f"{row.rule} *" if row.chosen else row.rule),
                ("right on unseen gold", show_field("right", _format_share)),
            ]
            tables.append(build_grid(columns, self.choice.rules, title="Rules (* chosen)"))
        if self.rule is not None:
            columns = [
                ("answered share", show_field("share", "{:.0%}".format)),
                ("questions", show_field("answered", "{:,}".format)),
                ("calibration errors", lambda row: f"{row.errors} of {row.calibration}"),
                ("error at most", show_field("bound", _format_share)),
            ]
            title = f"Answer or abstain ({self.rule.rule}); all bounds hold with {self.rule.confidence:.0%} confidence"
            tables.append(build_grid(columns, self.rule.shares, title=title))
        pairs = [pair for pair in self.shared if pair.is_certain]
        if pairs:
            columns = [
                ("judge", show_field("judge")),
                ("other", show_field("other")),
                ("both wrong", lambda row: f"{row.both_wrong} of {row.questions}"),
                ("if independent", show_field("expected", "{:.1f}".format)),
                ("correlation", show_field("correlation", "{:.2f}".format)),
                ("p (Holm)", show_field("p", format_p_value)),
            ]
            tables.append(build_grid(columns, pairs, left=2, title="Judges that share errors"))
        if self.means:
            columns = [
                ("item", show_field("item")),
                ("labels", lambda row: f"{row.estimate.labels:,}"),
                ("judges alone", lambda row: _format_share(row.estimate.judges)),
                ("people", lambda row: _format_share(row.estimate.human)),
                ("interval", lambda row: _format_range(row.estimate.human_low, row.estimate.human_high)),
                ("people and judges", lambda row: _format_share(row.estimate.mean)),
                ("its interval", lambda row: _format_range(row.estimate.low, row.estimate.high)),
                ("worth", lambda row: f"{row.estimate.worth:.2f} x"),
            ]
            tables.append(build_grid(columns, self.means, title="Share decided for an item by people"))
        return tuple(tables)

    def blocks(self) -> tuple[ViewBlock, ...]:
        """The summary, then the tables."""
        return *self.lines, self.grid(), *self.tables()

    def list_answers(self) -> list[dict[str, Any]]:
        """Per question: query, items, answer of the chosen rule, and the answer that the error bound covers.

        The latter is None where the rule abstains and where there is gold.
        """
        bounded = np.full(len(self.answers), np.nan) if self.rule is None else self.rule.answer
        rows = []
        for k, (score, covered) in enumerate(zip(self.answers.tolist(), bounded.tolist(), strict=True)):
            query, first, second = self.panel.describe_question(k)
            # the answer to a rating is a level
            names = (first, second) if self.panel.levels is None else self.panel.levels[::-1]
            row: dict[str, Any] = {"query": query, "item_a": first, "item_b": second}
            row["answer"] = None if score == 0.5 else names[0 if score > 0.5 else 1]
            row["confidence"] = abs(2 * score - 1)
            row["bounded_answer"] = None if math.isnan(covered) else names[0 if covered else 1]
            rows.append(row)
        return rows


def _format_share(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _format_range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{100 * low:.1f}..{100 * high:.1f}"


def assess_panel(
    preferences: Preferences,
    gold: Preferences | Labels | None = None,
    *,
    features: Features | None = None,
    rules: tuple[str, ...] | None = None,
    error: float = 0.1,
    level: float = 0.95,
    seed: int = 0,
) -> PanelAssessment:
    """Assess a panel of judges (the experts of the preferences) on votes or on ratings with two levels.

    `gold` holds human votes on some of the questions, or grades of their items. It should be a random sample
    of the questions; an alarm is raised where the others look different. `features` of the items, such as
    their length, are checked for biases. `rules` limits what the panel's answer is chosen from (`panel_rules.RULES`);
    `error` is the largest error rate that the abstaining rule may have.
    """
    for name, value in (("error", error), ("level", level)):
        if not 0 < value < 1:
            raise ParameterError(f"{name} is {value}; accepted: numbers between 0 and 1, both excluded")
    names = resolve_rules(rules)
    if len(names) < 2:
        raise ParameterError(
            "the best judge is the only rule; name one that uses several judges, such as majority"
        )
    panel = build_panel(preferences)
    truth = None if gold is None else panel.read_gold(gold).answer
    values: F8 | None = None
    labels: tuple[str, ...] = ()
    gaps = np.zeros((len(panel), 0))
    if features is not None:
        one, two = panel.collect_features(features)
        gaps = one - two
        values = np.concatenate((np.abs(gaps), (one + two) / 2), axis=1)
        labels = tuple(f"the difference in {n}" for n in features.names)
        labels += tuple(f"the mean {n}" for n in features.names)
    biases = [measure_position_bias(panel, truth, level)]
    for k, name in enumerate(() if features is None else features.names):
        biases.append(measure_feature_bias(panel, gaps[:, k], name, truth, level))
    rows = _build_rows(panel, truth, biases, level)
    known = np.zeros(len(panel), np.bool_) if truth is None else ~np.isnan(truth)
    choice, answers = None, panel.mean_answer
    if truth is not None and known.sum() >= FEW_GOLD:
        choice, answers = _choose(panel, truth, names, level, seed)
    return PanelAssessment(
        rows=rows,
        questions=len(panel),
        gold_questions=int(known.sum()),
        level=level,
        effective=estimate_effective_number(panel, truth, level=level, seed=seed),
        shared=() if truth is None else find_shared_errors(panel, truth),
        choice=choice,
        rule=None if truth is None else calibrate_rule(
            panel, truth, names, error=error, confidence=level, seed=seed
        ),
        means=() if truth is None else estimate_win_rates(panel, truth, level=level),
        shift=None if truth is None else detect_gold_shift(panel, truth, values, labels, seed=seed),
        answers=answers,
        panel=panel,
    )  # fmt: skip


def _build_rows(
    panel: JudgePanel, gold: F8 | None, biases: list[list[JudgeBias]], level: float
) -> tuple[JudgeRow, ...]:
    flat = adjust_biases([bias for group in biases for bias in group])
    judges = len(panel.judges)
    truth = np.full(len(panel), np.nan) if gold is None else gold
    agreement = compute_gold_agreement(panel.answers, truth, level)
    given = ~np.isnan(panel.answers)
    votes = np.bincount(panel.judge, minlength=judges)
    rows = []
    for k, judge in enumerate(panel.judges):
        own = tuple(flat[k::judges])
        known = agreement.questions[k] > 0
        flags = [f"favors {bias.toward}" for bias in own if bias.is_certain and (bias.excess or 0.0) > 0]
        flags += [f"avoids {bias.toward}" for bias in own if bias.is_certain and (bias.excess or 0.0) < 0]
        if known and agreement.high[k] < 0.5:
            flags.append("contradicts the gold")
        elif known and agreement.low[k] <= 0.5:
            flags.append("not better than guessing")
        if given[k].sum() < FEW_ANSWERS:
            flags = ["one vote" if votes[k] == 1 else "few answers"]
        rows.append(
            JudgeRow(
                judge=judge,
                questions=int(given[k].sum()),
                votes=int(votes[k]),
                gold_questions=int(agreement.questions[k]),
                accuracy=float(agreement.share[k]) if known else None,
                low=float(agreement.low[k]) if known else None,
                high=float(agreement.high[k]) if known else None,
                split=float((panel.answers[k] == 0.5).sum() / max(given[k].sum(), 1)),
                biases=own,
                flags=tuple(flags),
            )
        )
    # a judge with few answers may agree with all of the gold by luck
    few = [row.questions < FEW_ANSWERS for row in rows]
    order = sorted(range(judges), key=lambda k: (few[k], -(rows[k].accuracy or 0.0), k))
    return tuple(rows[k] for k in order)


def _choose(
    panel: JudgePanel, gold: F8, names: tuple[str, ...], level: float, seed: int
) -> tuple[PanelChoice, F8]:
    """The chosen rule with its evidence, and its scores by question, fitted on all gold."""
    known = ~np.isnan(gold)
    measured = measure_rules(panel, gold, known, names, seed=seed)
    at = choose_rule(measured.right)
    nested = estimate_nested_choice(panel, gold, known, measured)
    gain = assess_pairs(
        (nested.panel - nested.best_judge)[None], test="randomization", level=level, seed=seed
    )[0]
    rows = tuple(
        RuleResult(name_rule(name, panel, gold, known), float(share), k == at)
        for k, (name, share) in enumerate(zip(names, measured.shares.tolist(), strict=True))
    )
    choice = PanelChoice(rows, rows[at].rule, float(nested.chosen.mean()), gain)
    return choice, apply_rule(names[at], panel, gold, known)
