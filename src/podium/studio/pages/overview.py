"""The first page of a project: the verdict, the checks, the input."""

from __future__ import annotations

from dataclasses import replace

from podium.evaluate.comparison_tables import metric_grid
from podium.reporting.blocks import Block, ReportFinding, ReportTable
from podium.reporting.findings import collect_findings
from podium.reporting.verdict import describe_caveats, describe_verdict
from podium.studio.loading import ProjectData
from podium.studio.pages.view_context import View, ViewContext, register_view

# the answer has another figure for the same method, so the table says why
HEADING = "All quick methods, on all judged queries (the answer above is measured on held-out queries)"


def describe_data(data: ProjectData) -> dict[str, str]:
    """A description of the input."""
    p = data.preferences
    cells = int(p.index.sizes.sum()) * len(p.experts)
    facts = {
        "queries": f"{len(p):,}",
        "items": f"{len(p.index.items):,}",
        "experts": f"{len(p.experts):,}",
        "forms": ", ".join(sorted(f.value for f in p.forms)),
        "rows": f"{p.lists.rows:,}" if p.lists.rows else "",
        "votes": f"{len(p.comparisons):,}" if len(p.comparisons) else "",
        "not listed": f"{1 - p.lists.rows / cells:.0%} of the cells" if p.lists.rows and cells else "",
        "unlisted items are": p.unlisted,
        "labels": "none"
        if data.labels is None
        else f"{len(data.labels.grades):,} on {len(data.labels):,} queries",
        "item features": "" if data.features is None else f"{len(data.features.names):,}",
        "fingerprint": p.fingerprint,
    }
    return {k: v for k, v in facts.items() if v}


@register_view("overview", "Overview", 10)
def build_overview_view(c: ViewContext) -> View:
    """The answer, the methods behind it, and the checks of a report."""
    inputs = c.collect_inputs()
    card, comparison = c.find_answer(), inputs.comparison
    is_judged = comparison is not None and inputs.has_judged_items

    def compute_verdict() -> tuple[tuple[ReportFinding, ...], tuple[str, ...]]:
        checks = collect_findings(inputs)
        describe = describe_caveats if is_judged else describe_verdict
        return checks, describe(inputs, checks)

    checks, verdict = c.wait(c.work.result((c.data.fingerprint, "verdict"), compute_verdict))
    if is_judged:  # the words have the figures of the card
        verdict = (card.describe(), *verdict)
    rows = [(f.verdict, f.name, f.text) for f in checks]
    blocks: list[Block] = []
    if comparison is not None and is_judged:
        grid = metric_grid(comparison, comparison.metrics[0])
        blocks.append(ReportTable(replace(grid, title=HEADING)))
    facts = {
        "verdict": list(verdict),
        "findings": rows,
        "facts": describe_data(c.data),
        "notes": list(c.data.notes),
    }
    more = facts | {"card": card}
    document = {"project": c.project.id, "answer": card.to_dict()} | facts
    document["findings"] = [vars(f) for f in checks]
    head = ("verdict", "check", "reason")
    return View(c.project.name, document, head, rows, blocks, "overview.html", more)
