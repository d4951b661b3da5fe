"""Share: permanent links, downloads in every format, figures, the report, and code that repeats the result."""

from __future__ import annotations

import contextlib
from typing import Any
from urllib.parse import urlencode

from podium.core.errors import PodiumError
from podium.data.preferences import Form
from podium.reporting.blocks import Figure
from podium.studio.form_fields import select_reading_options
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
    code = format_snippet(c, spec)
    rows = [
        *listed, *((f"ranking as {word}", link) for word, link in rankings),
        ("report", f"{base}/report.html{state}"), *((caption, f"{link}.png") for caption, link in figures),
    ]  # fmt: skip
    document = {"links": [dict(zip(HEAD, row, strict=True)) for row in rows], "code": code}
    more = {
        "spec": spec, "methods": c.methods(), "models": c.models(), "rankings": rankings, "figures": figures,
        "listed": listed, "report": f"{base}/report.html{state}", "code": code,
        "has_collection": c.work.votes.find_collection(c.project.id) is not None,
    }  # fmt: skip
    return View("Share", document, HEAD, rows, (), "share.html", more)


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


def format_snippet(c: ViewContext, spec: str) -> str:
    """Python code for a notebook that reads the same data and repeats the result.

    Data that only the studio has (collected votes, excluded annotators, files read by a plan) are read from
    their download.
    """
    lines = ["import podium", "from podium import formats", ""]
    options: dict[str, Any] = select_reading_options(c.project.options)
    in_files = not any(c.work.votes.compute_stamp(c.project.id)) and "plan" not in c.project.options
    if c.project.kind == "demo" and in_files:
        lines = ["import podium", "from podium.data.demo import demo", "", "data = demo()"]
        lines.append("preferences, labels = data.preferences, data.labels")
    elif in_files and c.project.files:
        names = [f.name if f.path is None else f.path for f in c.project.files]
        given = "".join(f", {name}={value!r}" for name, value in options.items())
        lines.append(f"content = formats.read({names!r}{given})")
        lines.append("preferences, labels = content.preferences, content.labels")
    else:
        lines.append("# the file of “Data as CSV” on the Share page")
        lines.append('preferences, labels = formats.read("podium-cleaned.csv").preferences, None')
    if spec.startswith("model:"):
        lines.append(
            f'method = podium.load("{spec.removeprefix("model:")}.podium")  # download it on the Experiments page'
        )
    else:
        lines.append(f"method = podium.make({spec!r})")
    lines += ["result = method.aggregate(preferences)", "print(result)"]
    if Form.COMPARISON in c.data.preferences.forms and "leaderboard" in c.data.kinds:
        lines += ["", "from podium.analysis.leaderboard import leaderboard"]
        lines += ["board = leaderboard(preferences)", "print(board)"]
    if c.data.labels is not None:
        lines += ["", "from podium.evaluate import evaluate"]
        lines.append('print(evaluate(result, labels, ["ndcg@10", "map"]))')
    return "\n".join(lines)
