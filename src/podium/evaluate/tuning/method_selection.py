"""Methods that take part: those requested, or all that can read the input and are fast enough."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from functools import partial

import numpy as np

from podium.core import registry
from podium.core.errors import ParameterError, PodiumError, PodiumWarning
from podium.core.params import suggest_names
from podium.core.progress import Progress
from podium.core.text import format_count
from podium.evaluate.result_rankings import aggregate_dataset
from podium.evaluate.tuning.score_table import TuningTask
from podium.evaluate.tuning.search_space import MethodSpace
from podium.kernels.dispatch import I8
from podium.methods.base import Aggregator, make
from podium.methods.dialects.dialect import Dialect
from podium.methods.learned.baseline_comparison import make_baseline
from podium.storage.digests import digest_values

__all__ = ["resolve_baseline", "select_engine_methods", "select_methods"]

PATIENCE = 4  # a method may take this many times the baseline's time
FAR = 50  # slowdown allowed for a query aggregated alone
LATE = "the share of the time budget for timing methods was spent; name it, or allow a larger budget"
SUPERVISED = "learns from labels; name it, or ask for the supervised methods"


def resolve_baseline(problem: TuningTask, baseline: str | Aggregator | None) -> Aggregator:
    """The baseline that was named, or the one for this input; it must not learn from labels."""
    if baseline is None:
        return make_baseline(problem.data)
    made = make(baseline)
    if made.tags.supervised:
        raise ParameterError(f"the baseline {made.name} learns from labels; choose one that does not")
    return made


def select_methods(
    problem: TuningTask,
    methods: Sequence[str | Aggregator] | None,
    *,
    baseline: Aggregator,
    supervised: bool,
    weights: bool,
    limit: float,
    stop_at: float,
    progress: Progress,
) -> tuple[list[MethodSpace], dict[str, str]]:
    """The methods to search, and those left out with the reason. A method requested by name is dropped only
    if it cannot read the input, which is an error if no other is left. Without names, methods whose timing
    would start after `stop_at` (by time.monotonic) are left out."""
    every = registry.aggregators.all()
    general = [name for name, cls in every.items() if not cls.tags.dialect]
    allowed = limit
    if methods is None:
        allowed = max(limit, PATIENCE * _measure_seconds(problem, baseline, np.arange(len(problem))))
    specs: Sequence[str | Aggregator] = general if methods is None else list(dict.fromkeys(methods))
    families, left_out = [], {}
    for number, spec in enumerate(specs):
        progress(number, len(specs), "timing methods")
        family = MethodSpace.from_spec(spec, weights and bool(len(problem.expert_values)))
        refused = problem.data.preferences.forms - every[family.method].tags.accepts
        reason = f"cannot read {', '.join(sorted(f.value for f in refused))} preferences" if refused else ""
        if methods is None and not reason:
            tags = every[family.method].tags
            if tags.supervised:
                reason = "" if supervised else SUPERVISED
            elif family.method != baseline.name and time.monotonic() >= stop_at:
                reason = LATE
            else:
                # stored in the folder, so that a resumed run is the same run
                facts = [problem.key, family.method, "time"]
                time_method = partial(_time_method, problem, family.method, allowed)
                reason = problem.folder.get_or_make(partial(digest_values, facts), time_method)["reason"]
        if reason:
            left_out[family.method] = reason
        else:
            families.append(family)
    if not families:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise ParameterError(f"no method is left to tune ({why})")
    return families, left_out


def select_engine_methods(
    engine: str, methods: Sequence[str | Aggregator] | None, experts: int
) -> list[str | Aggregator]:
    """The methods to search: those requested, each of which the engine must compute, or all that it does.

    >>> select_engine_methods("milvus", None, 2)
    ['milvus_rrf', 'milvus_weighted']
    """
    cls = registry.engines.get(engine)
    own = cls.list_methods()
    chosen: list[str | Aggregator] = own if methods is None else list(methods)
    for spec in chosen:
        made = make(spec)
        if made.name not in own:
            raise ParameterError(f"{cls.title} does not compute {made.name}; {suggest_names(made.name, own)}")
        dialect: Dialect | None = getattr(made, "dialect", None)
        if dialect is not None and (limit := dialect.describe_list_limit(experts)):
            have = format_count(experts, "expert")
            raise ParameterError(f"{cls.title} fuses {limit} with {made.name}, and the input has {have}")
    return chosen


def _time_method(problem: TuningTask, method: str, limit: float) -> dict[str, str]:
    """The reason to leave a method out because of its run time or data requirements; empty if there is none.

    Growing numbers of queries are timed, smallest first, until the limit is exceeded or certain to be. A few
    queries may take longer each than many together, but not `FAR` times as long.
    """
    sizes = problem.data.preferences.index.sizes[problem.codes]
    order = np.argsort(sizes, kind="stable")
    for count in sorted({min(count, len(order)) for count in (1, 4, 16, len(order))}):
        enough = limit * min(1.0, FAR * count / len(order))
        try:
            spent = _measure_seconds(problem, make(method), np.sort(order[:count]), enough)
        except PodiumError as error:
            return {"reason": str(error)}
        if spent > enough:
            some = "" if count == len(order) else f" for {count} of {len(order)} queries"
            allowed = f"and the limit per configuration is {limit:.2g} s"
            return {"reason": f"slow here: {spent:.2g} s{some}, {allowed}; name it to include it"}
    return {"reason": ""}


def _measure_seconds(problem: TuningTask, method: Aggregator, columns: I8, enough: float = 0.0) -> float:
    """CPU seconds to aggregate these queries; the better of two runs, as the first may load modules."""
    spent = math.inf
    for _ in range(2):
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PodiumWarning)
            aggregate_dataset(method, problem.select_part(columns))
        spent = min(spent, time.process_time() - begin)
        if spent <= enough:
            break
    return spent
