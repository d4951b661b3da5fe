"""Jobs of a project: start and watch them, download the models."""

from __future__ import annotations

from typing import Any

from podium.core import registry
from podium.reporting.blocks import Block
from podium.reporting.sections import tuning_blocks
from podium.studio.job_queue import Job
from podium.studio.pages.view_context import METRICS, View, ViewContext, register_view

HEAD = ("job", "kind", "state", "share", "words", "settings", "tries", "model")


@register_view("jobs", "Jobs", 100, goal="Improve")
def build_jobs_view(c: ViewContext) -> View:
    """All jobs and models of a project, and forms for new ones."""
    store = c.work.store
    every = store.jobs(c.project.id)
    learners = sorted(n for n, m in registry.aggregators.all().items() if m.tags.supervised)
    more = {
        "jobs": every,
        "models": store.models(c.project.id),
        "learners": learners,
        "metrics": METRICS,
        "labelled": c.data.labels is not None,
        "running": any(not j.over for j in every),
    }
    rows = [_format_job_row(j) for j in every]
    document = {"jobs": [dict(zip(HEAD, r, strict=True)) for r in rows], "running": more["running"]}
    return View("Jobs and models", document, HEAD, rows, (), "jobs.html", more)


def _format_job_row(job: Job) -> tuple[Any, ...]:
    settings = "; ".join(f"{k}={v}" for k, v in job.settings.items() if v not in ([], None))
    model = job.result.get("model", "") if isinstance(job.result, dict) else ""
    return job.id, job.kind, job.state, round(job.share, 3), job.words, settings, job.tries, model


@register_view("job", within="jobs")
def build_job_view(c: ViewContext) -> View:
    """The result of one job."""
    job = c.work.store.job(c.get_value("job"))
    if job.project != c.project.id:
        job = c.work.store.job("")  # jobs of other projects are not shown here
    document = job.result.get("document") if isinstance(job.result, dict) else None
    blocks: list[Block] = [job.words or job.state]
    if job.kind == "tune" and document is not None:
        blocks = tuning_blocks(document)
    if job.kind == "fit" and document is not None and document.get("held_out"):
        blocks += tuning_blocks({"cross-validated on held-out queries": document["held_out"]["rows"]})
    row = _format_job_row(job)
    return View(f"Job: {job.kind}", {**dict(zip(HEAD, row, strict=True)), "document": document}, HEAD, [row], blocks,
                "job.html", {"job": job, "model": row[-1]})  # fmt: skip
