"""Haystack: a joiner with one input per retriever. Haystack loads YAML only from this namespace."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podium.core.optional import require_module
from podium.integrations.list_fusion import CONTRIBUTIONS, ListFusion, RankSource

if TYPE_CHECKING:
    from haystack import Document, component, default_from_dict, default_to_dict
else:
    haystack = require_module("haystack")
    Document, component = haystack.Document, haystack.component
    default_from_dict, default_to_dict = haystack.default_from_dict, haystack.default_to_dict

__all__ = ["PodiumJoiner"]


@component
class PodiumJoiner:
    """Fuses lists of documents; each of the `experts` is an input, connected as `joiner.bm25`.

    `method` is a name such as `"rrf(k=20)"`, with `weights` by expert; or `model` is the file of a tuned or
    fitted one. `top_k` limits the result. The documents are copies with the fused score, and with what each
    expert contributed in the field `podium_contributions` of `meta`.
    """

    def __init__(
        self,
        experts: Sequence[str],
        method: str = "rrf",
        weights: Mapping[str, float] | None = None,
        model: str | os.PathLike[str] | None = None,
        ranks: RankSource = "given",
        top_k: int | None = None,
    ) -> None:
        self._settings = {
            "experts": list(experts),
            "method": str(method),
            "weights": None if weights is None else dict(weights),
            "model": None if model is None else os.fspath(model),
            "ranks": ranks,
            "top_k": top_k,
        }
        self.top_k = top_k
        self._fusion = ListFusion(method, weights, model, ranks, experts)
        component.set_input_types(self, **dict.fromkeys(experts, list[Document]))

    @component.output_types(documents=list[Document])
    def run(self, **lists: list[Document]) -> dict[str, list[Document]]:
        """The fused documents, best first; `lists` has one list per expert."""
        fused = self._fusion.fuse(lists, lambda d: str(d.id), lambda d: d.score, top=self.top_k)
        return {
            "documents": [
                dataclasses.replace(document, score=score, meta=document.meta | {CONTRIBUTIONS: parts})
                for document, score, parts in fused
            ]
        }

    def to_dict(self) -> dict[str, Any]:
        """The settings as Haystack writes them to YAML."""
        return dict(default_to_dict(self, **self._settings))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PodiumJoiner:
        """The joiner with these settings."""
        joiner: PodiumJoiner = default_from_dict(cls, data)
        return joiner
