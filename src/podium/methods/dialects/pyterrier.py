"""PyTerrier: RRFusion of pyterrier-alpha."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from podium.core.params import Range, Tune
from podium.kernels.dispatch import F8
from podium.methods.dialects.dialect import DIALECT_TAGS, Dialect, RankDialect
from podium.methods.dialects.fusion_engine import EngineForm, FusionEngine
from podium.methods.dialects.textbook import Rewriting, Textbook

__all__ = ["PyTerrier", "PyTerrierRrf"]


@dataclass(kw_only=True, eq=False, repr=False)
class PyTerrierRrf(RankDialect):
    """Reciprocal rank fusion as in PyTerrier, whose ranks start at 0: sum of 1 / (k - 1 + rank).

    >>> from podium import fuse
    >>> fuse([["a", "b"], ["b", "c"]], method="pyterrier_rrf(k=1)").scores
    [1.5, 1.0, 0.5]
    """

    name = "pyterrier_rrf"
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009; the form of PyTerrier"
    tags = replace(DIALECT_TAGS, weighted=False)
    dialect = Dialect(
        engine="pyterrier",
        call="RRFusion",
        formula="1 / (k - 1 + r)",
        weights="none",
        ties="in the order of the lists",
        precision="double",
        depth="num_results of each retriever",
        verified="pyterrier-alpha 0.16.5",
    )

    k: Annotated[int, Range(1, 10_000), Tune(1, 200, log=True), "larger values flatten the top"] = 60

    def _points(self, rank: F8) -> F8:
        return 1.0 / (self.k - 1 + rank)

    def get_textbook(self) -> Textbook | None:
        return Textbook("ranks", k=self.k - 1, weights=self.weights)


class PyTerrier(FusionEngine):
    """PyTerrier with pyterrier-alpha, in Python."""

    name = "pyterrier"
    title = "PyTerrier"
    repeats = True
    was_run = True
    first = "pyterrier_rrf"

    def rewrite(self, rule: Textbook) -> Rewriting:
        if rule.kind == "scores":
            return Rewriting(PyTerrierRrf(), f"PyTerrier has no form of {rule.describe()}")
        k = min(max(round(rule.k) + 1, 1), 10_000)
        reason = f"RRFusion of PyTerrier takes whole numbers as k, and k is {rule.k:g}"
        return Rewriting(PyTerrierRrf(k=k), "" if k == rule.k + 1 else reason)

    def write_config(self, form: EngineForm, depth: int) -> str:
        assert isinstance(form.method, PyTerrierRrf)
        names = ", ".join(f"retrievers[{s.name!r}] % {depth}" for s in form.requests)
        return f"""import pyterrier_alpha as pta


def build_pipeline(retrievers):
    # retrievers: transformers by name
    return pta.RRFusion({names}, k={form.method.k}, num_results=10)
"""
