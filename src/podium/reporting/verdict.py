"""The verdict: which method to use, how certain that is, and what to do next."""

from __future__ import annotations

import math

from podium.analysis.answer import Answer
from podium.core.tables import format_decimal, format_p_value
from podium.core.text import join_names
from podium.data.unlisted_rule import describe_unlisted_rule
from podium.evaluate.comparison import Comparison
from podium.evaluate.simultaneous_tests import Lead
from podium.reporting.blocks import ReportFinding
from podium.reporting.inputs import ReportInputs

__all__ = ["describe_caveats", "describe_verdict"]

ALIKE = 0.9  # mean RBO from which the choice of method matters little
NAMED = 3


def describe_verdict(inputs: ReportInputs, checks: tuple[ReportFinding, ...]) -> tuple[str, ...]:
    """The verdict in one to three sentences, and how unlisted items were read where lists are incomplete."""
    if inputs.has_judged_items and inputs.comparison is not None:
        sentences = _describe_by_labels(inputs, inputs.comparison)
    elif inputs.board is not None:
        sentences = _describe_by_votes(inputs)
    else:
        sentences = _describe_without_labels(inputs)
    return (*sentences, *describe_caveats(inputs, checks))


def describe_caveats(inputs: ReportInputs, checks: tuple[ReportFinding, ...]) -> tuple[str, ...]:
    """What to fix before the figures can be trusted, and how unlisted items were read where lists are incomplete."""
    wrong = [c.name for c in checks if c.verdict == "wrong"]
    names = ", ".join(dict.fromkeys(wrong))
    fix = f"The scores are unreliable; these checks fail: {names}." if wrong else ""
    return tuple(filter(None, (fix, describe_unlisted_rule(inputs.preferences))))


def _describe_by_labels(inputs: ReportInputs, c: Comparison) -> list[str]:
    metric, best = c.metrics[0], inputs.best_method
    mean = c.row(best, metric).mean
    if c.queries < 2:
        score = f"{best} has {metric} {format_decimal(mean)}"
        return [f"On the one query that has labels, {score}; one query is not evidence."]
    rivals = [lead for lead in inputs.leads if lead.over != inputs.run]
    against = _describe_best_expert(inputs, c.level)
    if inputs.answer is not None and inputs.answer.method.name == best:
        against = _describe_gain(inputs.answer)
    if rivals and all(lead.wins == lead.losses == 0 for lead in rivals):
        count = len(inputs.measured_methods)
        same = f"All {count} methods score equally on every query ({metric} {format_decimal(mean)})"
        return [f"{same}; use the simplest.", *against]
    winner = _describe_winner(best, mean, metric, rivals, c.level, with_figures=inputs.answer is None)
    return [winner, *against, *_describe_learned_winner(inputs, c)]


def _describe_gain(answer: Answer) -> list[str]:
    """The gain of choosing among all methods, on held-out queries, with one p-value for both rivals."""
    gains = []
    for row in answer.rows:
        low, high = (format_decimal(end, sign=True) for end in (row.low, row.high))
        gains.append(f"{format_decimal(row.difference, sign=True)} [{low}, {high}] over {row.name}")
    text = f"On held-out queries the choice among {answer.candidates} methods gains {' and '.join(gains)}"
    if answer.p is None:
        return [f"{text}: fusion is not shown to be better."]
    p = format_p_value(answer.p)
    claim = "better than both" if len(answer.rows) > 1 else "better"
    return [
        f"{text} (p {p if p.startswith('<') else f'= {p}'} that it is {claim}, corrected for the choice)."
    ]


def _describe_learned_winner(inputs: ReportInputs, c: Comparison) -> list[str]:
    """Warn if the winner may have been trained on the labels that it is evaluated on."""
    methods = inputs.request.methods
    if inputs.held_out is None or inputs.best_method not in inputs.held_out.unrecorded:
        return []
    plain = [n for n in inputs.measured_methods if not methods[n].tags.supervised]
    metric = c.metrics[0]
    top = max(plain, key=lambda n: c.row(n, metric).mean, default=None)
    other = ""
    if top is not None:
        other = f" The best unsupervised method is {top} ({format_decimal(c.row(top, metric).mean)})."
    return [f"{inputs.best_method} was trained on labels; if on these, evaluate it on others first.{other}"]


def _describe_winner(
    best: str, mean: float, metric: str, rivals: list[Lead], level: float, *, with_figures: bool
) -> str:
    if not rivals:
        return f"{best} has {metric} {format_decimal(mean)}; it is the only method."
    open_ = [lead.over for lead in rivals if not _is_significant(lead, level)]
    first = f"Use {best}: its {metric} of {format_decimal(mean)} is the highest of {len(rivals) + 1} methods"
    if not open_:
        figures = f", {_format_lead(rivals[0])}" if with_figures else ""
        return f"{first}, and significantly so (nearest: {rivals[0].over}{figures})."
    names = join_names(open_, NAMED)
    if len(open_) == len(rivals):
        return f"{first}, but it is statistically tied with {names}: any of them will do."
    return f"{first}; it is statistically tied with {names}, and all others are worse."


def _describe_best_expert(inputs: ReportInputs, level: float) -> list[str]:
    lead = next((lead for lead in inputs.leads if lead.over == inputs.run), None)
    if lead is None:
        return []
    if not _is_significant(lead, level):
        if lead.difference < 0:
            return [f"Fusion is not shown to beat the {inputs.run}, which is ahead ({_format_lead(lead)})."]
        return [f"Fusion is not significantly better than the {inputs.run} ({_format_lead(lead)})."]
    if lead.difference < 0:
        alone = f"The {inputs.run} alone is better ({_format_lead(lead)})"
        return [f"{alone}: fusion hurts here; inspect the experts."]
    return [f"Fusion beats the {inputs.run} by {_format_lead(lead)}."]


def _is_significant(lead: Lead, level: float) -> bool:
    return math.isfinite(lead.p) and lead.p < 1 - level


def _format_lead(lead: Lead) -> str:
    """Format a difference with its interval and p-value, with the sign made positive."""
    ends = (lead.low, lead.high) if lead.difference >= 0 else (-lead.high, -lead.low)
    low, high, p = *(format_decimal(end, sign=True) for end in ends), format_p_value(lead.p)
    span = f" [{low}, {high}]" if low and high else ""
    return (
        f"{format_decimal(abs(lead.difference), sign=True)}{span}, p {p if p.startswith('<') else f'= {p}'}"
    )


def _describe_by_votes(inputs: ReportInputs) -> list[str]:
    board = inputs.board
    assert board is not None
    first = board.rows[0]
    group = next((g for g in board.groups if first.item in g), ())
    others = [str(i) for i in group if i != first.item]
    stop, why = board.stopping(top=1)
    if others:
        sentence = f"{first.item} leads, but is statistically tied with {join_names(others, NAMED)}."
    else:
        sentence = f"{first.item} leads significantly over all others ({100 * board.settings.level:g} %)."
    advice = [] if stop and not others else [f"To determine the first place, {why}."]
    parts = inputs.vote_parts
    if parts is None:
        return [sentence, *advice]
    words = [parts.tampering.margin.conclusion]
    if parts.tampering.rows and parts.tampering.trust is not None:
        words.append(parts.tampering.trust.conclusion)
    robust = parts.tampering.robust
    if robust is not None and robust.rows[0].item != first.item:
        words.append(f"if improbable votes count little, {robust.rows[0].item} leads instead of {first.item}")
    return [sentence, *advice, *(f"{line[:1].upper()}{line[1:]}." for line in words)]


def _describe_without_labels(inputs: ReportInputs) -> list[str]:
    why = "The labels do not cover these results"
    if inputs.request.labels is None:
        why = "There are no labels"
    elif inputs.held_out is not None and inputs.held_out.left_out and not inputs.measured_methods:
        why = "The labels are the ones that the models were fitted on"
    if inputs.crowd is not None:
        return [f"{why}, so the annotators are compared with each other: {inputs.crowd.lines[0]}.",
                f"Use {inputs.best_method}; annotators to check are listed below."]  # fmt: skip
    if len(inputs.results) < 2:
        return [f"{why}, so the quality of {inputs.best_method} is unknown."]
    alike = float(inputs.compute_similarity().mean())
    sentences = [f"{why}, so the methods cannot be compared."]
    names = f"the {len(inputs.results)} methods"
    if alike >= ALIKE:
        little = f"The choice matters little: {names} agree (mean RBO {alike:.2f})"
        return [*sentences, f"{little}; use {inputs.best_method}."]
    return [*sentences, f"The choice matters: {names} differ (mean RBO {alike:.2f}); judge some queries, "
            "starting with those where they differ most."]  # fmt: skip
