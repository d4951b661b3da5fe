"""Experiments of a project: tune, train, watch them, compare what they found on held-out queries."""

from __future__ import annotations

import math
from typing import Any

from podium.core import registry
from podium.core.tables import Grid, format_decimal, format_p_value
from podium.reporting.blocks import Block, ReportTable
from podium.studio.job_queue import Job
from podium.studio.pages.view_context import METRICS, View, ViewContext, register_view

HEAD = ("job", "kind", "state", "share", "words", "left", "settings", "tries", "model", "stale")
CHANGED = "The data of the project have changed since: this result does not count for its answer."
FOUND = (
    "experiment",
    "method and parameters",
    "metric",
    "held-out score",
    "95 % interval",
    "gain over rrf",
    "interval of the gain",
    "took",
    "data",
)


@register_view("jobs", "Experiments", 100, goal="Improve")
def build_jobs_view(c: ViewContext) -> View:
    """All jobs and models of a project with their held-out figures, and forms for new ones."""
    store = c.work.store
    every = store.jobs(c.project.id)
    learners = sorted(n for n, m in registry.aggregators.all().items() if m.tags.supervised)
    found = [row for job in every if (row := _format_experiment(job)) is not None]
    names = _name_experiments(every)
    links = {names[job.id]: c.build_link("job", ("job", job.id)) for job in every}
    stale = {job.id for job in every if job.is_stale(c.data.fingerprint)}
    lines = tuple(
        (names[job_id], *cells, "changed since" if job_id in stale else "current") for job_id, cells in found
    )
    blocks: list[Block] = []
    if lines:
        blocks.append(
            ReportTable(Grid(FOUND, lines, 3, "Experiments, on queries that they were not fitted on"))
        )
    more = {
        "jobs": every,
        "left": {job.id: describe_time_left(job) for job in every},
        "stale": stale,
        "models": store.models(c.project.id),
        "learners": learners,
        "quick": c.methods(),
        "metrics": METRICS,
        "encoding": c.get_value("encoding"),
        "labelled": c.data.labels is not None,
        "running": any(not j.over for j in every),
    }
    rows = [(*_format_job_row(j), j.id in stale) for j in every]
    document = {"jobs": [dict(zip(HEAD, r, strict=True)) for r in rows], "running": more["running"]}
    return View("Experiments", document, HEAD, rows, blocks, "jobs.html", more, links)


def _name_experiments(jobs: list[Job]) -> dict[str, str]:
    """A name for each job, the oldest of a kind first: tune 1, tune 2, fit 1."""
    count: dict[str, int] = {}
    names = {}
    for job in sorted(jobs, key=lambda j: j.made):
        count[job.kind] = count.get(job.kind, 0) + 1
        names[job.id] = f"{job.kind} {count[job.kind]}"
    return names


def _format_experiment(job: Job) -> tuple[str, tuple[str, ...]] | None:
    """What a job found on held-out queries; None if it found nothing, or measured nothing."""
    document = (job.result or {}).get("document") if isinstance(job.result, dict) else None
    if job.state != "done" or not isinstance(document, dict):
        return None
    took = _format_seconds((job.ended or job.made) - (job.began or job.made))
    if job.kind == "tune":
        base: dict[str, Any] = next(
            (r for r in document.get("rows", ()) if r["name"] == document.get("baseline")), {}
        )
        value = document.get("tuned") if document.get("held_out") else None
        config, metric = document.get("config", ""), document.get("metric", "")
        gain, low, high = (base.get(k) for k in ("difference", "low", "high"))
    else:
        rows = {r.get("name"): r for r in (document.get("held_out") or {}).get("rows", ())}
        model = rows.get("model", {})
        config, metric = document.get("method", ""), model.get("metric", "")
        value, gain, low, high = (model.get(k) for k in ("mean", "difference", "low", "high"))
    span = _format_span(low, high, sign=True)
    # jobs of older versions have no interval of the score
    own = _format_span(*(document.get("score_interval") or (None, None)))
    score = format_decimal(value) or "not measured"
    return job.id, (config, metric, score, own, format_decimal(gain, sign=True), span, took)


def _format_span(low: float | None, high: float | None, *, sign: bool = False) -> str:
    if low is None or high is None:
        return ""
    return f"{format_decimal(low, sign=sign)} to {format_decimal(high, sign=sign)}"


def _format_seconds(seconds: float) -> str:
    """A duration in words.

    >>> _format_seconds(3.2), _format_seconds(95), _format_seconds(7300)
    ('3 s', '2 min', '2 h')
    """
    if seconds < 90:
        return f"{max(seconds, 0):.0f} s"
    return f"{math.ceil(seconds / 60)} min" if seconds < 5400 else f"{round(seconds / 3600)} h"


def describe_time_left(job: Job) -> str:
    """The time that a running job still takes in words; empty if that is not known."""
    if job.state == "queued":
        return "waiting for its turn"
    left = job.estimate_seconds_left()
    return "" if left is None else f"about {_format_seconds(left)} left"


def _format_job_row(job: Job) -> tuple[Any, ...]:
    settings = "; ".join(f"{k}={v}" for k, v in job.settings.items() if v not in ([], None))
    model = job.result.get("model", "") if isinstance(job.result, dict) else ""
    left = describe_time_left(job)
    return job.id, job.kind, job.state, round(job.share, 3), job.words, left, settings, job.tries, model


@register_view("job", within="jobs")
def build_job_view(c: ViewContext) -> View:
    """The result of one job."""
    job = c.work.store.job(c.get_value("job"))
    if job.project != c.project.id:
        job = c.work.store.job("")  # jobs of other projects are not shown here
    document = job.result.get("document") if isinstance(job.result, dict) else None
    is_stale = job.is_stale(c.data.fingerprint)
    blocks: list[Block] = [job.words or job.state, *([CHANGED] if is_stale else [])]
    if isinstance(document, dict):
        blocks += _build_tuning_blocks(document) if job.kind == "tune" else _build_fit_blocks(document)
    row = (*_format_job_row(job), is_stale)
    names = _name_experiments(c.work.store.jobs(c.project.id))
    subject = job.settings.get("method") or job.settings.get("metric") or job.kind
    more = {"job": job, "model": row[-2]}
    document = {**dict(zip(HEAD, row, strict=True)), "document": document}
    return View(f"{names[job.id].capitalize()}: {subject}", document, HEAD, [row], blocks, "job.html", more)


def _build_fit_blocks(document: dict[str, Any]) -> list[Block]:
    """The model and the method that needs no labels, on held-out queries."""
    rows = (document.get("held_out") or {}).get("rows", ())
    lines = tuple(
        (document.get("method", "model") if row["name"] == "model" else row["name"], *_format_figures(row),
         "" if row["wins"] is None else f"{row['wins']}/{row['ties']}/{row['losses']}")
        for row in rows
    )  # fmt: skip
    if not lines:
        return []
    head = (f"{rows[0]['metric']}", "mean", "difference", "95 % interval", "p", "won/tied/lost")
    return [ReportTable(Grid(head, lines, 1, "Cross-validated on held-out queries"))]


def _build_tuning_blocks(document: dict[str, Any]) -> list[Block]:
    """The tuned configuration and its rivals on held-out queries, all that was tried, and what was not."""
    rows = [
        {"name": f"tuned ({document.get('config', '')})", "mean": document.get("tuned")},
        *document.get("rows", ()),
    ]
    head = (str(document.get("metric", "")), "mean", "tuned is better by", "95 % interval", "p")
    lines = tuple((row["name"], *_format_figures(row)) for row in rows)
    where = "on held-out queries" if document.get("held_out") else "on the queries it was tuned on"
    blocks: list[Block] = [ReportTable(Grid(head, lines, 1, f"The tuned configuration {where}"))]
    trials = document.get("trials", ())
    failed = any(t["failed"] for t in trials)
    tried = tuple(
        (t["config"], format_decimal(t["mean"]), f"{t['queries']:,}", *([t["failed"]] if failed else []))
        for t in trials
    )
    if tried:
        title = f"{len(tried):,} configurations, on the queries that choose among them"
        names = ("configuration", "mean", "queries", *(["failed"] if failed else []))
        blocks.append(ReportTable(Grid(names, tried, 1, title)))
    if weights := document.get("weights"):
        pairs = tuple((str(w["expert"]), f"{w['weight']:g}") for w in weights)
        blocks.append(ReportTable(Grid(("expert", "weight"), pairs, 1, "Weights of the tuned configuration")))
    if left_out := document.get("left_out"):
        # what could be done about it on the command line is left away
        reasons = tuple((name, str(reason).partition(";")[0]) for name, reason in left_out.items())
        grid = Grid(("method", "reason"), reasons, 2, "Methods that were not tried")
        blocks.append(ReportTable(grid))
    return [*blocks, tuple(document["notes"])] if document.get("notes") else blocks


def _format_figures(row: dict[str, Any]) -> tuple[str, str, str, str]:
    """Mean, difference, interval and p-value of a row; empty where it is the baseline."""
    p = row.get("p")
    return (
        format_decimal(row["mean"]),
        format_decimal(row.get("difference"), sign=True), _format_span(row.get("low"), row.get("high"), sign=True),
        "" if p is None else format_p_value(p),
    )  # fmt: skip
