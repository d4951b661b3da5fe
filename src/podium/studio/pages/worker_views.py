"""Annotators: the quality of each with reasons, a page per annotator, exclusions and what they change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from podium.analysis.annotators import Annotator, Disagreement, find_disagreements
from podium.analysis.annotators.annotator_verdicts import MALICIOUS, RANDOM
from podium.core.errors import ParameterError
from podium.core.tables import Grid, format_decimal
from podium.data.ids import Id
from podium.methods.base import make
from podium.metrics.agreement import kendall_tau
from podium.reporting.blocks import Block, ReportTable
from podium.reporting.sections import build_section
from podium.studio.collected_votes import add_collected_votes
from podium.studio.item_texts import ItemText
from podium.studio.limits import check_pairs
from podium.studio.pages.comparison_views import tabulate_rows
from podium.studio.pages.data_tables import TablePage, build_table_page
from podium.studio.pages.view_context import View, ViewContext, id_text, register_view, resolve_id

SUSPECTS = 200  # annotators to check first
EXAMPLES = 12  # disagreements on a page
CLEANED = {"csv": "CSV", "jsonl": "JSON lines", "parquet": "Parquet"}
FIGURES = {
    "quality": "agrees with the others", "agreement": "as the consensus", "accuracy": "as the labels",
    "consistency": "repeats its answers", "first": "votes for the item shown first", "seconds": "median seconds",
}  # fmt: skip


@register_view(
    "annotators", "Annotators", 90,
    applies=lambda data: "annotators" in data.kinds, goal="Collect", first_for="annotators",
)  # fmt: skip
def build_annotators_view(c: ViewContext) -> View:
    """The quality of every annotator, with reasons; those to exclude, and what their exclusion changed."""
    inputs, excluded = c.collect_inputs(), c.work.votes.excluded_annotators(c.project.id)
    crowd = inputs.crowd
    if crowd is None and not excluded:
        check_pairs(c.work.settings.limits, c.data.preferences)
        raise ParameterError(
            "no annotators in these data; this needs votes, or ratings on a short scale, of three or more people"
        )
    if c.data.labels is None:  # known from what was computed for this page
        c.find_answer()
    rows_of_crowd = () if crowd is None else crowd.rows
    experts = c.data.preferences.experts
    suspects = [row for row in rows_of_crowd if row.verdict in (MALICIOUS, RANDOM) or row.flags][:SUSPECTS]
    more = {
        "suspects": tabulate_suspects(c, suspects), "checked": [id_text(r.annotator, experts) for r in suspects
                                                                if r.verdict in (MALICIOUS, RANDOM)],
        "excluded": [str(who) for who in excluded], "cleaned": CLEANED,
        "effect": describe_exclusion(c) if excluded else "",
    }  # fmt: skip
    head, rows = tabulate_rows(rows_of_crowd)
    document: dict[str, Any] = {
        "lines": [] if crowd is None else list(crowd.lines),
        "rows": [dict(zip(head, r, strict=True)) for r in rows],
        "effective": None if crowd is None else crowd.effective,
        "excluded": excluded,
        "effect": more["effect"],
    }
    links = {str(row.annotator): _link_worker(c, row.annotator) for row in rows_of_crowd}
    blocks: list[Block] = list(build_section(inputs, "annotators").blocks)
    # every annotator is listed, not only those that a report names
    blocks = [
        ReportTable(replace(b.grid, title="All annotators")) if isinstance(b, ReportTable) else b
        for b in blocks
    ]
    return View("Annotators", document, head, rows, blocks, "annotators.html", more, links)


def tabulate_suspects(c: ViewContext, suspects: Sequence[Annotator]) -> TablePage | None:
    """The annotators to check first; the first column has the value of a box to exclude them."""
    rows = tuple(
        (id_text(row.annotator, c.data.preferences.experts), str(row.annotator), row.verdict,
         ", ".join(row.flags), f"{row.judgements:,}")
        for row in suspects
    )  # fmt: skip
    head, links = (
        ("exclude", "annotator", "verdict", "why", "judgements"),
        [_link_worker(c, row.annotator) for row in suspects],
    )
    table = ReportTable(Grid(head, rows, 4, "To check first"))
    return build_table_page(table, "suspects", c.parameters, links, whole=True) if rows else None


def _link_worker(c: ViewContext, who: Id) -> str:
    return c.build_link("worker", ("who", id_text(who, c.data.preferences.experts)))


def describe_exclusion(c: ViewContext) -> str:
    """How the ranking changed when annotators were excluded, in a sentence."""
    spec = next(iter(c.work.choose_methods(c.data)))

    def compute() -> str:
        plain = c.work.read_files(c.project).result
        whole = add_collected_votes(c.work.votes, c.project.id, plain, everyone=True).preferences
        before = make(spec).aggregate(whole)
        after = make(spec).aggregate(c.data.preferences)
        taus, changed = [], 0
        starts = whole.index.starts.tolist()
        for query, begin, end in zip(whole.queries, starts[:-1], starts[1:], strict=True):
            # excluding annotators keeps the items and their slots
            if end - begin > 1:
                taus.append(kendall_tau(before.scores[begin:end], after.scores[begin:end]))
            changed += before.ranking(query)[0] != after.ranking(query)[0]
        known = [tau for tau in taus if not math.isnan(tau)]
        mean = f"{sum(known) / len(known):.3f}" if known else "unknown"
        left_out = len(whole.comparisons) + whole.lists.rows
        left_out -= len(c.data.preferences.comparisons) + c.data.preferences.lists.rows
        first = f"the first item changed for {changed:,} of {len(whole):,}" if len(whole) > 1 else (
            "the first item changed" if changed else "the first item stayed"
        )  # fmt: skip
        return (
            f"{left_out:,} judgements are left out. {spec} ranks as before with Kendall's tau {mean}; "
            f"{first}{' queries' if len(whole) > 1 else ''}."
        )

    sentence: str = c.wait(c.work.result((c.data.fingerprint, "exclusion", spec, c.project.id), compute))
    return sentence


@register_view("worker", within="annotators", goal="Collect")
def build_worker_view(c: ViewContext) -> View:
    """One annotator: figures, and answers that most of the others gave differently."""
    crowd = c.collect_inputs().crowd
    experts = c.data.preferences.experts
    named = c.get_value("who")
    excluded = {str(who): who for who in c.work.votes.excluded_annotators(c.project.id)}
    if named in excluded:
        more: dict[str, Any] = {"who": named, "is_excluded": True, "row": None, "figures": [], "cases": []}
        return View(
            f"Annotator {named}", {"annotator": named, "excluded": True}, HEAD, [], (), "worker.html", more
        )
    default = crowd.rows[0].annotator if crowd is not None and crowd.rows else experts[0]
    who = resolve_id(named, experts, "annotator") if named else default
    row = None if crowd is None else next((r for r in crowd.rows if r.annotator == who), None)
    cases = find_disagreements(c.data.preferences, who, EXAMPLES)
    order = [] if crowd is None else [r.annotator for r in crowd.rows]
    at = order.index(who) if who in order else 0
    steps = {
        word: _link_worker(c, order[n]) if 0 <= n < len(order) else ""
        for word, n in (("before", at - 1), ("after", at + 1))
    }
    more = {
        "who": id_text(who, experts), "is_excluded": False, "row": row, "figures": _list_figures(row),
        "cases": [_describe_case(case, c.texts) for case in cases], "steps": steps,
        "others": len(experts) - 1, "cleaned": CLEANED,
    }  # fmt: skip
    rows = [(d.query, d.item, d.other, d.tie, d.others, d.against, d.own, d.mean) for d in cases]
    document = {
        "annotator": who,
        "excluded": False,
        "figures": None if row is None else vars(row),
        "disagreements": [vars(case) for case in cases],
    }
    blocks: list[Block] = []
    if cases and not any(case["item"]["body"] for case in more["cases"]):
        # without texts, a table says the same in less space
        blocks, more["cases"] = [_tabulate_cases(more["cases"])], []
    return View(f"Annotator {who}", document, HEAD, rows, blocks, "worker.html", more)


def _tabulate_cases(cases: list[dict[str, Any]]) -> ReportTable:
    if any(case["other"] for case in cases):
        heads: tuple[str, ...] = ("query", "first", "second", "this annotator")
        lines: tuple[tuple[str, ...], ...] = tuple(
            (c["query"], c["item"]["title"], c["other"]["title"] if c["other"] else "", c["words"])
            for c in cases
        )
    else:  # ratings are of one item
        heads = ("query", "item", "this annotator")
        lines = tuple((c["query"], c["item"]["title"], c["words"]) for c in cases)
    if len({line[0] for line in lines}) == 1:  # the query is the same everywhere
        heads, lines = heads[1:], tuple(line[1:] for line in lines)
    return ReportTable(Grid(heads, lines, len(heads)))


HEAD = ("query", "item", "other", "tie", "others", "against", "own", "mean")


def _list_figures(row: Annotator | None) -> list[tuple[str, str]]:
    if row is None:
        return []
    shares = [
        (word, format_decimal(value, 1) if name == "seconds" else f"{value:.0%}")
        for name, word in FIGURES.items()
        if (value := getattr(row, name)) is not None
    ]
    return [("judgements", f"{row.judgements:,}"), *shares]


def _describe_case(case: Disagreement, texts: Mapping[str, ItemText]) -> dict[str, Any]:
    """A disagreement with the texts of its items, for the page."""

    def show(item: Id | None) -> dict[str, str] | None:
        if item is None:
            return None
        about = texts.get(str(item), ItemText())
        return {"title": about.title or str(item), "body": about.text}

    share = f"{case.against} of {case.others} others"
    if case.other is None:
        words = f"rated {case.own:g}; the mean of {case.others} others is {case.mean:.2g}"
    elif case.tie:
        words = f"saw a tie; {share} preferred one of them"
    else:
        words = f"preferred the first; {share} preferred the second"
    return {"query": str(case.query), "item": show(case.item), "other": show(case.other), "words": words}
