"""Tuning for one search engine: only what it computes, in its own formula, with values as it takes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.core import registry
from podium.core.errors import ParameterError
from podium.core.params import suggest_names
from podium.core.text import format_count
from podium.data.ids import Id
from podium.evaluate.evaluation import mean_of
from podium.evaluate.tuning.score_table import TuningTask, measure_method
from podium.methods.base import Aggregator, make
from podium.methods.dialects.dialect import Dialect

__all__ = ["describe_rounding", "round_for_engine", "select_engine_methods"]


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


def round_for_engine(method: Aggregator, engine: str, experts: Sequence[Id]) -> Aggregator:
    """The method with its weights as the engine takes them; experts that it leaves out have weight 0."""
    if method.weights is None:
        return method
    form = registry.engines.get(engine)().translate(method, {e: str(e) for e in experts})
    written = dict(zip((s.expert for s in form.sources), form.weights, strict=True))
    values = method.get_parameters() | {"weights": {e: written.get(e, 0.0) for e in experts}}
    return type(method)(**values)


def describe_rounding(
    problem: TuningTask, engine: str, before: Aggregator, after: Aggregator, baseline: Aggregator
) -> str:
    """The metric before and after rounding, and that of the engine's default, on the queries of the search."""
    columns = np.arange(len(problem))
    values = [mean_of(measure_method(problem, m, columns)) for m in (before, after, baseline)]
    title = registry.engines.get(engine).title
    return (
        f"as {title} takes it: {problem.metric} {values[0]:.4f} before rounding, {values[1]:.4f} after, "
        f"{values[2]:.4f} with {baseline!r}, on the queries it was tuned on"
    )
