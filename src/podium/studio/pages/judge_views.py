"""A panel of judges: how many independent judges it is worth, biases, and with gold what its answers prove."""

from __future__ import annotations

import dataclasses

import numpy as np

from podium.analysis.judges import PanelAssessment, assess_panel
from podium.analysis.judges.panel_rules import RULES
from podium.core.errors import ParameterError, PodiumError
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Form, Preferences
from podium.reporting.blocks import Block, Figure, ReportTable
from podium.studio.form_fields import spell_option
from podium.studio.loading import ProjectData
from podium.studio.pages.view_context import View, ViewContext, id_text, register_view, resolve_id

QUICK = ("majority", "dawid_skene", "crowd_bt")
NAMED = 300  # judges to choose a gold judge from
LABELS, PAIRS, JUDGE = "labels", "gold-questions", "judge:"  # values of the parameter `gold`


def has_panel(data: ProjectData) -> bool:
    """Whether several judges answer questions with two answers: votes, or ratings with two levels."""
    preferences = data.preferences
    if len(preferences.experts) < 2:
        return False
    score = preferences.lists.score
    if Form.COMPARISON in preferences.forms:
        return not preferences.lists.rows
    return score is not None and not np.isnan(score).any() and len(np.unique(score)) == 2


@register_view("judges", "Judges", 92, applies=has_panel, goal="Collect")
def build_judges_view(c: ViewContext) -> View:
    """The panel of judges, with the gold that the address names."""
    preferences, chosen = c.data.preferences, c.get_value("gold", LABELS if c.data.labels is not None else "")
    learned = c.get_value("rules") == "all"
    error = c.get_whole_number("error", 10, 1, 49) / 100
    rules, notice = tuple(RULES) if learned else QUICK, ""
    try:
        panel = _assess(c, chosen, rules, error)
    except PodiumError as problem:
        if c.get_value("gold") or not chosen:
            raise
        # labels that nobody asked for must not close the page
        chosen, notice = "", f"The labels are not used as gold: {problem.format_message(spell_option)}"
        panel = _assess(c, chosen, rules, error)
    choices = [("", "no gold")]
    if c.data.labels is not None:
        choices.append((LABELS, "the labels of the project"))
    if _find_gold_pairs(c) is not None:
        choices.append((PAIRS, "the gold questions of the votes"))
    judges = list(preferences.experts[:NAMED])
    choices += [(JUDGE + id_text(j, preferences.experts), f"the answers of {j}") for j in judges]
    blocks: list[Block] = [tuple(panel.lines)]
    if panel.gold_questions:
        blocks.append(Figure("panel", panel.chart(), "Agreement with the gold, by judge and by rule."))
    blocks += [ReportTable(dataclasses.replace(panel.grid(), title="Judges"))]
    blocks += [ReportTable(table) for table in panel.tables()]
    answers = panel.list_answers()
    head = list(answers[0]) if answers else ["query"]
    rows = [tuple(answer[name] for name in head) for answer in answers]
    more = {"choices": choices, "gold": chosen, "learned": learned, "largest_error": round(100 * error),
            "shared_bias": not panel.gold_questions, "first": panel.lines[0], "notice": notice}  # fmt: skip
    links = {str(j): c.build_link("worker", ("who", id_text(j, preferences.experts))) for j in judges}
    return View("Judges", panel.to_dict(), head, rows, blocks, "judges.html", more, links)


def _find_gold_pairs(c: ViewContext) -> Preferences | None:
    """The gold questions of the project's collection as votes."""
    collection = c.work.votes.find_collection(c.project.id)
    pairs = [] if collection is None else c.work.votes.gold_pairs(c.project.id)
    if collection is None or not pairs:
        return None
    winners = [second if answer == "second" else first for first, second, answer in pairs]
    losers = [first if answer == "second" else second for first, second, answer in pairs]
    ties = [answer == "tie" for *_, answer in pairs]
    query, names = [collection.query] * len(pairs), ["gold"] * len(pairs)
    return Preferences.from_comparisons(query, names, winners, losers, tie=ties)


def _assess(c: ViewContext, chosen: str, rules: tuple[str, ...], error: float) -> PanelAssessment:
    """The assessment against the chosen gold, computed once."""
    preferences = c.data.preferences
    gold: Preferences | Labels | None = None
    if chosen == LABELS:
        gold = c.data.labels
    elif chosen == PAIRS:
        gold = _find_gold_pairs(c)
    elif chosen.startswith(JUDGE):
        who: Id = resolve_id(chosen.removeprefix(JUDGE), preferences.experts, "judge")
        gold, preferences = preferences.with_experts([who]), preferences.without_expert(who)
    elif chosen:
        raise ParameterError(f"the gold is {chosen[:50]!r}; choose one from the list")
    if chosen and gold is None:
        raise ParameterError("the project has no such gold; choose another one")
    rows = c.work.votes.compute_stamp(c.project.id)
    key = (c.data.fingerprint, "panel", chosen, rules, error, rows)
    panel: PanelAssessment = c.wait(
        c.work.result(key, lambda: assess_panel(preferences, gold, rules=rules, error=error))
    )
    return panel
