"""Downloads: votes, rankings and data in every format, figures as PNG, the report as one HTML file."""

from __future__ import annotations

import functools
import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium.core import registry, tables
from podium.core.errors import ParameterError, capture_warnings
from podium.core.optional import require_module
from podium.data.consensus import Consensus
from podium.data.preferences import Preferences
from podium.evaluate import charts
from podium.formats.base import to_content
from podium.reporting import report
from podium.reporting.blocks import Figure
from podium.studio.collected_votes import build_preferences, select_counted
from podium.studio.database import RecordNotFound
from podium.studio.pages.fusion_views import compute_consensus
from podium.studio.pages.view_context import StillComputing, ViewContext, views
from podium.studio.vote_records import hide_gold
from podium.studio.vote_store import VoteStore
from podium.studio.workspace import Workspace

# file name suffix -> format of the library, media type
WRITTEN = {
    "csv": ("csv", "text/csv; charset=utf-8"),
    "jsonl": ("jsonl", "application/x-ndjson"),
    "parquet": ("parquet", "application/vnd.apache.parquet"),
    "run": ("trec", "text/plain; charset=utf-8"),
    "soc": ("preflib", "text/plain; charset=utf-8"),
}

router = APIRouter(include_in_schema=False)


def respond_download(content: bytes, kind: str, name: str) -> Response:
    """Bytes that a browser saves as a file."""
    headers = {"cache-control": "no-store", "content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=headers)


def write_content(thing: Preferences | Consensus, suffix: str, **options: Any) -> tuple[bytes, str]:
    """The bytes of a file in the format of a suffix, and its media type."""
    if suffix not in WRITTEN:
        raise RecordNotFound(f"there is no such download; choose one of {', '.join(WRITTEN)}")
    name, kind = WRITTEN[suffix]
    writer = registry.formats.get(name)()
    with capture_warnings():
        return b"".join(writer.write(to_content(thing, **options))), kind


@router.get("/p/{project}/votes.{suffix}")
def download_votes(request: Request, project: str, suffix: str) -> Response:
    """The collected votes of a project: for tables the counted ones, in JSON every vote with its circumstances."""
    store: VoteStore = request.app.state.workspace.votes
    collection, votes = store.collection(project), store.votes(project)
    if suffix == "json":
        hidden = hide_gold(request.scope["podium.user"])
        document = {"collection": vars(collection), "votes": [vars(vote) | hidden for vote in votes]}
        return respond_download(
            tables.format_json(document).encode(), "application/json", "podium-votes.json"
        )
    counted = select_counted(votes)
    if not counted:
        raise ParameterError("there are no votes yet; nothing to download")
    if suffix == "arena.jsonl":
        if collection.kind != "pairs":
            raise ParameterError("the arena format is for pairs; these are ratings")
        words = {"first": "model_a", "second": "model_b", "tie": "tie"}
        lines = [
            {
                "model_a": v.first,
                "model_b": v.second,
                "winner": words[v.answer],
                "judge": v.judge,
                "tstamp": v.made,
            }
            for v in counted
        ]
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        return respond_download(text.encode(), "application/x-ndjson", "podium-votes.jsonl")
    [preferences] = build_preferences(collection, counted)
    content, kind = write_content(preferences, suffix)
    return respond_download(content, kind, f"podium-votes.{suffix}")


def build_file_context(request: Request, project: str) -> ViewContext:
    """The data of a project and the parameters of a download."""
    work: Workspace = request.app.state.workspace
    record = work.store.project(project)
    try:
        data = work.data(record).result(work.settings.limits.seconds)
    except TimeoutError:
        raise StillComputing(record) from None
    return ViewContext(work, record, data, request.query_params.multi_items())


@router.get("/p/{project}/ranking.{suffix}")
def download_ranking(request: Request, project: str, suffix: str) -> Response:
    """The ranking of all queries by the method `m`: a TREC run, CSV, JSON, JSON lines or Parquet."""
    c = build_file_context(request, project)
    spec, _ = c.method()
    result = compute_consensus(c, spec)
    if suffix == "json":
        rows = {
            str(query): [{"rank": r.rank, "item": r.item, "score": r.score} for r in result[query]]
            for query in result.queries
        }
        text = tables.format_json({"method": result.method, "rankings": rows})
        return respond_download(text.encode(), "application/json", "podium-ranking.json")
    # runs are joined by the tag, which is a word of the file
    tag = "".join(ch if ch.isalnum() else "-" for ch in spec).strip("-")[:40] or "podium"
    content, kind = write_content(result, suffix, tag=tag)
    return respond_download(content, kind, f"podium-ranking.{suffix}")


@router.get("/p/{project}/report.html")
def download_report(request: Request, project: str) -> Response:
    """The report of a project as one file that needs no server."""
    c = build_file_context(request, project)
    chosen = c.get_values("m") or list(c.work.choose_methods(c.data))

    def write() -> str:
        methods = {spec: c.work.method(spec) for spec in chosen}
        data = c.data
        page = report(
            data.preferences, data.labels, methods=methods, features=data.features, times=data.seconds,
            learn=False, title=c.project.name,
        )  # fmt: skip
        return page.to_html()

    text = c.wait(c.work.result((c.data.fingerprint, "report", tuple(chosen), c.project.name), write))
    return respond_download(text.encode(), "text/html; charset=utf-8", "podium-report.html")


@router.get("/p/{project}/{view}/{figure}.png")
def download_picture(request: Request, project: str, view: str, figure: str) -> Response:
    """A figure of a view as PNG, for slides and papers."""
    build = views.all().get(view)
    if build is None:
        raise RecordNotFound("page not found")
    c = build_file_context(request, project)
    for block in build(c).blocks:
        if isinstance(block, Figure) and block.name == figure:
            chart = block.chart() if isinstance(block.chart, functools.partial) else block.chart
            content = require_module("vl_convert").vegalite_to_png(charts.to_vega_lite(chart), scale=2)
            return respond_download(content, "image/png", f"podium-{figure}.png")
    raise RecordNotFound("no such figure on this page")
