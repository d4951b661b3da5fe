"""PyTerrier: a transformer that fuses the results of named pipelines."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core.errors import InputError, ParameterError
from podium.core.optional import require_module
from podium.data.ids import CodedColumn, Ids
from podium.data.preferences import Preferences
from podium.integrations.list_fusion import ListFusion, RankSource
from podium.methods.base import Aggregator

if TYPE_CHECKING:
    import pyterrier as pt
else:
    pt = require_module("pyterrier")

__all__ = ["PodiumFusion"]

RESULT = ("score", "rank")  # what fusion replaces


class PodiumFusion(pt.Transformer):
    """Runs all `pipelines` on the topics and fuses their results, at most `num_results` per query.

    `method` is a name such as `"rrf(k=20)"` or an aggregator, with `weights` by pipeline; or `model` is the
    file of a tuned or fitted one. `ranks="given"` uses the column `rank` that the pipelines return,
    `ranks="scores"` the column `score`. Document columns that all pipelines return, such as `text`, are kept.
    """

    schematic = {"inner_pipelines_mode": "combine", "label": "Podium"}  # noqa: RUF012 - read by PyTerrier

    def __init__(
        self,
        pipelines: Mapping[str, pt.Transformer],
        method: str | Aggregator = "rrf",
        *,
        weights: Mapping[str, float] | None = None,
        model: str | os.PathLike[str] | None = None,
        ranks: RankSource = "given",
        num_results: int | None = 1000,
    ) -> None:
        if not pipelines:
            raise ParameterError("there are no pipelines; give at least one, by name")
        self.pipelines, self.num_results = dict(pipelines), num_results
        self._fusion = ListFusion(method, weights, model, ranks, self.pipelines)

    def subtransformers(self) -> dict[str, Any]:
        """The pipelines, for PyTerrier's drawings."""
        return {"pipelines": list(self.pipelines.values())}

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        """The columns of the result, without running the pipelines."""
        outputs = [pt.inspect.transformer_outputs(p, input_columns) for p in self.pipelines.values()]
        for name, columns in zip(self.pipelines, outputs, strict=True):
            _check_columns(name, columns)
        return _select_columns(outputs)

    def transform(self, inp: Any) -> Any:
        """The fused results of these topics."""
        pd = require_module("pandas")
        frames = {name: pipeline(inp) for name, pipeline in self.pipelines.items()}
        for name, frame in frames.items():
            _check_columns(name, list(frame.columns))
            if "rank" not in frame.columns:
                frames[name] = pt.model.add_ranks(frame.copy())
        columns = _select_columns([list(frame.columns) for frame in frames.values()])
        rows = pd.concat(frames.values(), ignore_index=True)
        if not len(rows):
            return pd.DataFrame(columns=columns)
        preferences = Preferences.from_rows(
            rows["qid"].tolist(),
            # a coded column keeps pipelines without results: weights are by pipeline
            CodedColumn(np.repeat(np.arange(len(frames)), [*map(len, frames.values())]), Ids(list(frames))),
            rows["docno"].tolist(),
            rank=rows["rank"] + 1 - pt.model.FIRST_RANK if self._fusion.ranks == "given" else None,
            score=rows["score"],
            duplicates=self._fusion.duplicates,
            unlisted="below",
        )
        consensus = self._fusion.aggregator.aggregate(preferences)
        fused = [
            (query, place.item, place.score, place.rank - 1 + pt.model.FIRST_RANK)
            for query in consensus
            for place in consensus[query][: self.num_results]
        ]
        results = pd.DataFrame(fused, columns=["qid", "docno", *RESULT])
        # the first pipeline that returned a document gives its other columns
        others = rows[[c for c in columns if c not in RESULT]].drop_duplicates(["qid", "docno"])
        return results.merge(others, on=["qid", "docno"], how="left")[columns]


def _check_columns(name: str, columns: list[str]) -> None:
    for needed in ("qid", "docno", "score"):
        if needed not in columns:
            raise InputError(
                f"the pipeline {name!r} returns no column {needed!r}",
                remedy=f"fuse pipelines that return results; its columns are {', '.join(columns)}",
            )


def _select_columns(outputs: list[list[str]]) -> list[str]:
    """What all pipelines return, then score and rank."""
    shared = [c for c in outputs[0] if all(c in columns for columns in outputs)]
    return [*(c for c in shared if c not in RESULT), *RESULT]
