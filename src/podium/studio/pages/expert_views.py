"""The view of the experts."""

from __future__ import annotations

import contextlib
from typing import Any

from podium.analysis.figures import weight_matrix, weight_table
from podium.core.errors import ParameterError
from podium.reporting.blocks import Figure
from podium.reporting.sections import build_section
from podium.studio.pages.comparison_views import tabulate_rows
from podium.studio.pages.view_context import View, ViewContext, register_view


@register_view(
    "experts",
    "Experts",
    70,
    # annotators have a page of their own
    applies=lambda data: len(data.preferences.experts) > 1 and "annotators" not in data.kinds,
    goal="Explain",
)
def build_experts_view(c: ViewContext) -> View:
    """Agreement of experts, leave-one-out effects, and their weights in fitted models."""
    inputs = c.collect_inputs()
    diagnosis = inputs.diagnosis
    blocks = list(build_section(inputs, "experts").blocks)
    weighted: dict[str, Any] = {}  # the newest models of this project that have expert weights
    for model in c.work.store.models(c.project.id)[:3]:
        made = c.work.method(f"model:{model.id}")
        with contextlib.suppress(ParameterError):
            weight_table(made)
            weighted[model.name[:30]] = made
    if diagnosis is None:
        names = c.data.preferences.experts.tolist()
        document: dict[str, Any] = {"experts": names}
        head, rows = ["expert"], [(n,) for n in names]
        if len(names) < 2:
            blocks = ["There is only one expert; agreement cannot be measured."]
        elif inputs.crowd is not None:
            blocks = [
                "The experts of these data are annotators; the page Annotators has the quality of each."
            ]
        else:
            blocks = ["There are too many experts for a diagnosis of each."]
    else:
        document = diagnosis.to_dict()
        head, rows = tabulate_rows(diagnosis.rows)
    if weighted:
        caption = f"Expert weights of {', '.join(weighted)}."
        blocks.append(Figure("weights", weight_matrix(weighted), caption))
    more = {"has_weights": bool(weighted)}
    return View("Experts", document, head, rows, blocks, "experts.html", more)
