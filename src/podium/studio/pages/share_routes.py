"""Downloads: collected votes in every format."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium.core import registry, tables
from podium.core.errors import ParameterError, capture_warnings
from podium.data.consensus import Consensus
from podium.data.preferences import Preferences
from podium.formats.base import to_content
from podium.studio.collected_votes import build_preferences, select_counted
from podium.studio.database import RecordNotFound
from podium.studio.vote_store import VoteStore

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
        document = {"collection": vars(collection), "votes": [vars(vote) for vote in votes]}
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
