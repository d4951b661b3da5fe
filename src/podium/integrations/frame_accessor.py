"""Shared by the accessors of pandas and polars and the MLflow flavor: a dataframe in, a dataframe out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from podium.data.consensus import Consensus
from podium.data.frames import FrameBackend
from podium.data.preferences import Preferences
from podium.integrations.list_fusion import ListFusion, RankSource
from podium.methods.base import Aggregator

__all__ = ["FrameAccessor", "fuse_frame"]


def fuse_frame(
    frame: Any,
    aggregator: Aggregator,
    ranks: RankSource = "given",
    **columns: Any,
) -> Consensus:
    """The rankings of a dataframe; `columns` are the parameters of `Preferences.from_frame`.

    A table states its order in columns: `ranks="given"` uses the ranks where there is such a column, and
    otherwise the scores; `ranks="scores"` uses the scores alone. The order of the rows means nothing.
    """
    if ranks == "scores":
        columns = {"rank": None} | columns
    return aggregator.aggregate(Preferences.from_frame(frame, **columns))


class FrameAccessor:
    """`df.podium`: methods on a dataframe with one row per query, expert and item, or one row per vote."""

    backend: ClassVar[FrameBackend]

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def fuse(
        self,
        method: str | Aggregator = "rrf",
        *,
        weights: Mapping[str, float] | None = None,
        model: str | os.PathLike[str] | None = None,
        ranks: RankSource = "given",
        top: int | None = None,
        **columns: Any,
    ) -> Any:
        """A dataframe of query, item, rank, score and tied, best first; at most `top` items per query.

        `method` is a name such as `"rrf(k=20)"` or an aggregator, with `weights` by expert; or `model` is the
        file of a tuned or fitted one. Columns are matched by name, or named: `query="topic"`;
        `unlisted="below"` reads the lists as top-k lists.
        """
        fusion = ListFusion(method, weights, model, ranks)
        consensus = fuse_frame(self._frame, fusion.aggregator, fusion.ranks, **columns)
        return consensus.to_frame(self.backend, top=top)
