"""The assessment of a panel in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.core.tables import format_p_value
from podium.core.text import format_count, join_names

if TYPE_CHECKING:
    from podium.analysis.judges.result import PanelAssessment

__all__ = ["BLIND", "describe_panel"]

BLIND = (
    "no gold: a bias that most judges share looks like the truth and cannot be seen; nothing here says how often the "
    "panel is right. Have people answer a random sample of the questions and give it as gold"
)


def describe_panel(panel: PanelAssessment) -> tuple[str, ...]:
    """One sentence per finding, warnings first."""
    size = f"{format_count(len(panel), 'judge')}, {format_count(panel.questions, 'question')}"
    gold = format_count(panel.gold_questions, "gold answer") if panel.gold_questions else "no gold"
    lines = [f"{size}, {gold}"]
    if not panel.gold_questions:
        lines.append(BLIND)
    if panel.shift is not None and panel.shift.fires:
        shift = panel.shift
        lines.append(
            f"alarm: the questions without gold are unlike those with gold (p {_format_p(shift.p)}): {shift.what} is "
            f"{shift.other_mean:.3g} instead of {shift.gold_mean:.3g}; bounds, means and the choice below hold for "
            "questions like the gold alone"
        )
    few = [row.judge for row in panel.rows if {"one vote", "few answers"} & set(row.flags)]
    if few:
        lines.append(f"too few answers for any statement: {join_names(few)}")
    lines += _describe_number(panel)
    for mark, word in (("favors", "more"), ("avoids", "less")):
        for bias in panel.rows[0].biases:
            who = [row.judge for row in panel.rows if f"{mark} {bias.toward}" in row.flags]
            than = {"gold": "the gold", "other judges": "the other judges"}.get(bias.reference, "chance")
            what = bias.toward if bias.toward == "shown first" else f"with {bias.toward}"
            if who:
                lines.append(f"vote for the item {what} {word} often than {than}: {join_names(who)}")
    lines += _describe_choice(panel)
    lines += _describe_rule(panel)
    if panel.means:
        worth = sorted(row.estimate.worth for row in panel.means)[len(panel.means) // 2]
        lines.append(f"human means with the judges' help are worth {worth:.2f} times as many human labels")
    return tuple(lines)


def _describe_number(panel: PanelAssessment) -> list[str]:
    number = panel.effective
    if number is None:
        return ["the effective number of judges is unknown: too few judges, or too few common questions"]
    span = f"{number.low:.1f} to {number.high:.1f}"
    if not number.from_gold:
        return [
            f"the judges are worth at most {number.value:.1f} independent ones ({span}); errors that all of them share "
            "are not in this number"
        ]
    pairs = sum(pair.is_certain for pair in panel.shared)
    return [
        f"{format_count(number.judges, 'judge')} are worth {number.value:.1f} independent ones ({span}): {pairs} of "
        f"{format_count(len(panel.shared), 'pair')} share more errors than their accuracy explains"
    ]


def _describe_choice(panel: PanelAssessment) -> list[str]:
    if panel.choice is None:
        few = "too few gold answers to choose a rule; the answers are those of the majority"
        return [few] if panel.gold_questions else []
    choice, gain = panel.choice, panel.choice.gain
    best = next(row for row in choice.rules if row.rule.startswith("best judge"))
    span = f"{100 * gain.low:+.1f} to {100 * gain.high:+.1f}"
    figures = f"{100 * gain.difference:+.1f} points ({span}, p {_format_p(gain.p)})"
    if gain.p <= 1 - panel.level and gain.difference > 0:
        verdict = "the panel is worth more than its best judge"
    elif gain.p <= 1 - panel.level:
        verdict = "the panel is worth less than its best judge"
    else:
        verdict = "the gold does not show that the panel is worth more than its best judge"
    return [
        f"{verdict}: {figures}",
        f"chosen: {choice.chosen}, right on {choice.nested:.1%} of gold that neither fit nor choice saw; "
        f"{best.rule} {best.right:.1%}",
    ]


def _describe_rule(panel: PanelAssessment) -> list[str]:
    rule = panel.rule
    if rule is None:
        return ["too few gold answers for an error bound"] if panel.gold_questions else []
    chosen = rule.chosen
    if chosen is None:
        closest = min(rule.shares, key=lambda row: row.bound)
        return [
            f"no error rate of at most {rule.error:.0%} can be promised: the most confident {closest.share:.0%} of the "
            f"answers have at most {closest.bound:.1%} errors; more gold narrows the bound"
        ]
    if not any(row.answered for row in rule.shares):
        where = f"of the most confident {chosen.share:.0%} of future questions"
    else:
        where = f"of the {format_count(chosen.answered, 'question')} that {rule.rule} answers"
    rest = "" if chosen.share == 1 else f"; it abstains on the least confident {1 - chosen.share:.0%}"
    return [
        f"at most {chosen.bound:.1%} {where} are answered wrongly, with {rule.confidence:.0%} confidence over the draw "
        f"of the gold{rest}"
    ]


def _format_p(p: float) -> str:
    text = format_p_value(p)
    return text if text.startswith("<") else f"= {text}"
