"""Share: permanent links, downloads in every format, figures, the report, and code that repeats a view."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from urllib.parse import urlencode

from podium.core.errors import PodiumError
from podium.core.tables import Grid
from podium.reporting.blocks import Figure, ReportTable
from podium.studio.pages.data_tables import build_table_page
from podium.studio.pages.snippets import format_snippet
from podium.studio.pages.view_context import View, ViewContext, register_view, views

RANKINGS = {"run": "TREC run", "csv": "CSV", "json": "JSON", "jsonl": "JSON lines", "parquet": "Parquet"}
DRAWN = ("leaderboard", "methods", "annotators", "experts", "judges")  # views whose figures are offered
HEAD = ("what", "address")


@register_view("share", "Share", 110, goal="Share")
def build_share_view(c: ViewContext) -> View:
    """Everything that leaves the studio, with its address."""
    spec, _ = c.method()
    state = f"?{urlencode([('m', spec)])}"
    base = c.build_link("").rstrip("/")
    rankings = [(word, f"{base}/ranking.{suffix}{state}") for suffix, word in RANKINGS.items()]
    figures = _list_figures(c)
    listed = [
        (view.title, f"{base}/{name}")
        for name, view in sorted(views.all().items(), key=lambda pair: pair[1].order)
        if view.title and view.page and view.applies(c.data)
    ]
    repeated = c.get_value("view")
    code = format_snippet(c, spec, repeated)
    named = views.all().get(repeated)
    rows = [
        *listed, *((f"ranking as {word}", link) for word, link in rankings),
        ("report", f"{base}/report.html{state}"), *((caption, f"{link}.png") for caption, link in figures),
    ]  # fmt: skip
    document = {"links": [dict(zip(HEAD, row, strict=True)) for row in rows], "code": code}
    more = {
        "spec": spec, "methods": c.methods(), "models": c.models(), "rankings": rankings,
        "figures": build_table_page(tabulate_figures(figures), "figures", c.parameters, [link for _, link in figures]),
        "listed": listed, "report": f"{base}/report.html{state}", "code": code,
        "repeated": "" if named is None else named.title or repeated.capitalize(),
        "has_collection": c.work.votes.find_collection(c.project.id) is not None,
    }  # fmt: skip
    return View("Share", document, HEAD, rows, (), "share.html", more)


def tabulate_figures(figures: Sequence[tuple[str, str]]) -> ReportTable:
    """The figures with the formats of their files."""
    return ReportTable(
        Grid(("figure", "files"), tuple((caption, "PNG SVG") for caption, _ in figures), 2, "Figures")
    )


def _list_figures(c: ViewContext) -> list[tuple[str, str]]:
    """The figures of the main views: caption, and address without its suffix."""
    figures = []
    for name in DRAWN:
        view = views.all().get(name)
        if view is None or not view.applies(c.data):
            continue
        with contextlib.suppress(PodiumError):
            found = [b for b in view(c).blocks if isinstance(b, Figure)]
            figures += [(f"{view.title}: {b.caption}", c.build_link(f"{name}/{b.name}")) for b in found]
    return figures
