"""LangChain: EnsembleRetriever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from podium.core.params import Range, Tune
from podium.methods.dialects.dialect import Dialect, ReciprocalRankDialect
from podium.methods.dialects.fusion_engine import EngineForm, FusionEngine
from podium.methods.dialects.textbook import Rewriting, Textbook

__all__ = ["LangChain", "LangChainRrf"]


@dataclass(kw_only=True, eq=False, repr=False)
class LangChainRrf(ReciprocalRankDialect):
    """Reciprocal rank fusion as in LangChain's EnsembleRetriever: sum of weight / (k + rank).

    `k` is its `c`. LangChain adds up the points of a document that occurs twice in one list; Podium refuses
    such lists unless `duplicates=` says what to do, so the two agree on lists without repeats.

    >>> from podium import fuse
    >>> fuse([["a", "b"], ["b", "c"]], method="langchain_rrf", weights=[3, 1]).ranking
    ['b', 'a', 'c']
    """

    name = "langchain_rrf"
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009; the form of LangChain"
    dialect = Dialect(
        engine="langchain",
        call="EnsembleRetriever",
        formula="w / (k + r)",
        weights="free",
        ties="in the order of the lists",
        precision="double",
        depth="k of each retriever",
        verified="langchain-classic 1.0.8",
    )

    k: Annotated[int, Range(0, 10_000), Tune(1, 200, log=True), "larger values flatten the top"] = 60


class LangChain(FusionEngine):
    """LangChain, in Python."""

    name = "langchain"
    title = "LangChain"
    was_run = True
    first = "langchain_rrf"

    def rewrite(self, rule: Textbook) -> Rewriting:
        if rule.kind == "scores":
            return Rewriting(LangChainRrf(), f"LangChain has no form of {rule.describe()}")
        k = round(rule.k)
        reason = f"LangChain takes whole numbers as c, and k is {rule.k:g}"
        return Rewriting(LangChainRrf(k=k), "" if k == rule.k else reason)

    def write_config(self, form: EngineForm, depth: int) -> str:
        assert isinstance(form.method, LangChainRrf)
        names = ", ".join(f"retrievers[{s.name!r}]" for s in form.sources)
        return f"""from langchain_classic.retrievers import EnsembleRetriever


def build_retriever(retrievers):
    # retrievers: by name, each returning {depth} documents with an "id" in their metadata
    return EnsembleRetriever(
        retrievers=[{names}],
        weights={form.weights},
        c={form.method.k},
        id_key="id",
    )
"""
