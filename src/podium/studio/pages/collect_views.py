"""The Collect page: start a collection of votes, watch its board, invite judges, gold questions, exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.core.tables import Grid, format_decimal
from podium.reporting.blocks import ReportTable
from podium.studio.collected_votes import summarize_judges
from podium.studio.pages.data_tables import build_table_page
from podium.studio.pages.view_context import View, ViewContext, register_view
from podium.studio.voting_service import VotingService

HEAD = ("number", "judge", "first", "second", "answer", "gold", "seconds", "time")
QUERIES = 500  # queries to choose from
EXPORTS = {
    "csv": "CSV",
    "jsonl": "JSON lines",
    "json": "JSON",
    "parquet": "Parquet",
    "arena.jsonl": "arena format",
}
RATING_EXPORTS = {
    "csv": "CSV",
    "jsonl": "JSON lines",
    "json": "JSON",
    "parquet": "Parquet",
    "run": "TREC run",
}


def tabulate_judges(judges: Sequence[dict[str, Any]]) -> ReportTable:
    """What each judge has done so far."""
    head = ("judge", "votes", "ties", "skips", "gold right", "seconds")
    rows = tuple(
        (j["judge"], str(j["votes"]), str(j["ties"]), str(j["skips"]),
         f"{j['gold_right']} of {j['gold']}" if j["gold"] else "", format_decimal(j["seconds"], 1))
        for j in judges
    )  # fmt: skip
    return ReportTable(Grid(head, rows))


@register_view("collect", "Votes", 85, goal="Collect", quick=True)
def build_collect_view(c: ViewContext) -> View:
    """The state of a collection, or the form that starts one."""
    store, project = c.work.votes, c.project.id
    collection = store.find_collection(project)
    if collection is None:
        index = c.data.preferences.index
        pooled = "leaderboard" in c.data.kinds and len(index) > 1
        queries = [] if pooled or len(index) == 1 else [str(q) for q in index.queries[:QUERIES]]
        more: dict[str, Any] = {
            "entered": {name: c.get_value(name) for name in ("query", "question", "kind")},
            "collection": None, "queries": queries, "items": len(set(index.items.tolist())) if pooled else 0,
        }  # fmt: skip
        return View("Collect votes", {"collection": None}, HEAD, [], (), "collect.html", more)
    votes, service = store.votes(project), VotingService(c.work)
    live, judges = service.compute_board(project), summarize_judges(votes)
    document = {
        "collection": vars(collection),
        "votes": len(votes),
        "judges": judges,
        "live": live.to_dict(),
    }
    invites = [
        {"id": i.id, "judge": i.judge, "role": i.role, "path": f"/vote/{store.sign_invite(i)}"}
        for i in store.invites(project)
        if not i.revoked
    ]
    texts = store.item_texts(project)
    names = {item: text.title or str(item) for item, text in texts.items()}
    more = {
        "collection": collection, "live": live, "judges": judges, "votes": len(votes), "invites": invites,
        "choices": [(str(item), name) for item, name in names.items()],
        "gold": [(names.get(a, str(a)), names.get(b, str(b)), answer) for a, b, answer in store.gold_pairs(project)],
        "exports_of_votes": EXPORTS if collection.kind == "pairs" else RATING_EXPORTS,
        "judge_table": build_table_page(tabulate_judges(judges), "judges", c.parameters),
    }  # fmt: skip
    rows = [
        (
            v.number,
            v.judge,
            v.first,
            "" if v.second is None else v.second,
            v.answer,
            v.gold or "",
            v.seconds,
            v.made,
        )
        for v in votes
    ]
    return View(collection.question, document, HEAD, rows, (), "collect.html", more)
