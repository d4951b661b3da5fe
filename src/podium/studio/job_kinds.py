"""Kinds of jobs: what each accepts, and what it computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from podium.core.errors import ParameterError, PodiumError
from podium.core.progress import Progress
from podium.studio.job_queue import Job
from podium.studio.store import Store

if TYPE_CHECKING:
    from podium.kernels.dispatch import F8

RESUMABLE = ("tune",)
TRIALS = (1, 5_000)
STEPS, FIT_STEPS = 1000, 160  # of a fit with cross-validation, and those of its fit on all queries
METRIC = "ndcg@10"  # for comparing a fitted model with an unsupervised one


# -- job submission ------------------------------------------------------------------------------------------------


def queue_job(store: Store, project: str, kind: str, settings: dict[str, Any], user: str = "") -> str:
    """Validate the settings of a job and queue it."""
    if kind not in KINDS:
        raise ParameterError(f"unknown job kind {kind!r}; accepted: {', '.join(KINDS)}")
    return store.add_job(project, kind, KINDS[kind][0](settings), user)


def _check_tune_settings(given: dict[str, Any]) -> dict[str, Any]:
    from podium.methods.base import make
    from podium.metrics.base import parse

    methods = [str(m).strip() for m in given.get("methods", ()) if str(m).strip()]
    for method in methods:
        make(method)  # refuses unknown methods and parameters
    return {
        "metric": str(parse(str(given.get("metric") or "ndcg@10"))),
        "methods": methods,
        "trials": _parse_whole_number(given.get("trials") or 200, "trials", *TRIALS),
        "weights": bool(given.get("weights", True)),
        "seed": _parse_whole_number(given.get("seed") or 0, "seed", 0, 2**31 - 1),
    }


def _check_fit_settings(given: dict[str, Any]) -> dict[str, Any]:
    from podium.methods.base import make

    method = str(given.get("method") or "crf").strip()
    make(method)  # refuses unknown methods and parameters
    return {"method": method}


def _parse_whole_number(value: Any, what: str, low: int, high: int) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise ParameterError(f"{what} is {value!r}; accepted: whole numbers from {low} to {high:,}")
    return number


# -- execution -----------------------------------------------------------------------------------------------------


def _run_tuning(store: Store, job: Job, data: Any, tell: Progress) -> tuple[str, Any, Any]:
    from podium.evaluate.tuning import tune

    settings = job.settings
    tuning = tune(
        data,
        settings["metric"],
        settings["methods"] or None,
        trials=settings["trials"],
        weights=settings["weights"],
        seed=settings["seed"],
        workers=1,
        resume=store.job_folder(job.id),
        progress=tell,
    )
    held_out = {"score_interval": _bound_mean(tuning.values["tuned"]) if tuning.folds > 1 else None}
    return tuning.conclusion(), tuning.to_dict() | held_out, tuning.best


def _run_fit(_: Store, job: Job, data: Any, tell: Progress) -> tuple[str, Any, Any]:
    from podium.methods.base import make

    method = make(job.settings["method"])
    tell(0, STEPS, f"fitting {method!r}")
    features = data.features if method.tags.uses_features else None
    if method.tags.supervised and data.labels is None:
        raise ParameterError(f"{method.name} learns from labels, but the project has none; add qrels")
    progress = _scale_progress(tell, 0, FIT_STEPS, f"fitting {method!r}")
    more = {"progress": progress} if method.tags.supervised else {}
    method.fit(data.preferences, data.labels, features, **more)
    words, document = f"{method!r} was fitted on {len(data.preferences):,} queries.", {"method": repr(method)}
    if method.tags.supervised:
        found, held = _measure_held_out(job.settings["method"], data, _scale_progress(tell, FIT_STEPS, STEPS))
        words, document = f"{words} {found}", document | held
    tell(STEPS, STEPS, "fitted")
    return words, document, method


def _scale_progress(tell: Progress, begin: int, end: int, what: str = "") -> Progress:
    """Progress of a part of a job as that of the job; a part that begins anew does not set it back."""
    reached = begin

    def report_progress(done: int, total: int, words: str) -> None:
        nonlocal reached
        reached = max(reached, begin + (end - begin) * done // max(total, 1))
        tell(reached, STEPS, what or words)

    return report_progress


def _bound_mean(values: F8) -> tuple[float, float] | None:
    """Student's 95 % interval of a mean over queries; None for a single query."""
    import numpy as np

    from podium.kernels.distributions import student_quantile

    known = values[~np.isnan(values)]
    if len(known) < 2:
        return None
    reach = float(student_quantile(len(known) - 1, 0.975)) * float(known.std(ddof=1)) / math.sqrt(len(known))
    return float(known.mean()) - reach, float(known.mean()) + reach


def _measure_held_out(method: str, data: Any, tell: Progress) -> tuple[str, dict[str, Any]]:
    """Cross-validate the method on held-out queries and compare it with an unsupervised method."""
    from podium.evaluate.crossvalidation import cross_validate
    from podium.methods.learned.baseline_comparison import make_baseline

    plain = make_baseline(data).name
    try:
        comparison = cross_validate(
            data, {plain: plain, "model": method}, [METRIC], progress=tell, choose_by=METRIC
        ).compare(plain)
    except PodiumError as error:
        return f"It was not evaluated on held-out queries: {error}", {"held_out": None}
    row, base = comparison.row("model", METRIC), comparison.row(plain, METRIC)
    worse = row.mean < base.mean
    words = (
        f"Cross-validated on {comparison.queries:,} held-out queries, its {METRIC} is {row.mean:.4f}, "
        f"that of {plain} {base.mean:.4f}"
    )
    words += f": it is WORSE; use {plain}, or label more queries." if worse else "."
    interval = _bound_mean(comparison.evaluations["model"][METRIC])
    return words, {"held_out": comparison.to_dict(), "score_interval": interval}


# the settings of each kind of job are checked when it is queued; a worker calls the second function
KINDS: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], Callable[..., tuple[str, Any, Any]]]] = {
    "tune": (_check_tune_settings, _run_tuning),
    "fit": (_check_fit_settings, _run_fit),
}
