"""Vespa: reciprocal_rank and normalize_linear in the global phase of a rank profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from podium.core.params import Range, Tune
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8
from podium.kernels.segments import compute_list_statistics
from podium.methods.dialects.dialect import Dialect, DialectMethod, RankDialect
from podium.methods.dialects.fusion_engine import EngineForm, FusionEngine
from podium.methods.dialects.textbook import Rewriting, Textbook

__all__ = ["Vespa", "VespaLinear", "VespaRrf"]

VERIFIED = "its sources (ReciprocalRankNormalizer, LinearNormalizer); not run"


@dataclass(kw_only=True, eq=False, repr=False)
class VespaRrf(RankDialect):
    """Reciprocal rank fusion as in Vespa, which ranks every hit by every feature: sum of weight / (k + rank).

    A hit that an expert does not list has the feature 0 and is ranked below those it lists. Vespa numbers
    these hits in an internal order; here each gets the mean of the places that are left.

    >>> from podium import fuse
    >>> fuse([["a", "b"], ["b"]], method="vespa_rrf(k=0)").scores
    [1.5, 1.5]
    """

    name = "vespa_rrf"
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009; the form of Vespa"
    dialect = Dialect(
        engine="vespa",
        call="reciprocal_rank",
        formula="w / (k + r)",
        weights="free",
        absent="a rank below the listed items",
        precision="double",
        depth="rerank-count, of all hits together",
        verified=VERIFIED,
    )

    k: Annotated[float, Range(0, 10_000), Tune(1, 200, log=True), "larger values flatten the top"] = 60

    def _points(self, rank: F8) -> F8:
        return 1.0 / (self.k + rank)

    def _combine_terms(self, preferences: Preferences, term: F8, weights: F8) -> F8:
        lists = preferences.lists
        size = preferences.index.sizes[lists.query_of_list].astype(np.float64)
        last = np.maximum(lists.last_rank, lists.lengths).astype(np.float64)
        places = last + np.maximum(size - lists.lengths + 1, 1) / 2  # the mean of the places that are left
        return _add_for_absent(preferences, term, weights[lists.expert] * self._points(places))


@dataclass(kw_only=True, eq=False, repr=False)
class VespaLinear(DialectMethod):
    """Weighted sum of min-max scores as in Vespa, where a hit that an expert does not list has the score 0.

    The zeros count in the range of a list that lacks an item of the query. A feature that is equal for all
    hits gives 1/2 to each.

    >>> from podium import fuse
    >>> fuse([{"a": 9, "b": 5, "c": 1}, {"b": 0.9, "c": 0.1}], method="vespa_linear").ranking
    ['b', 'a', 'c']
    """

    name = "vespa_linear"
    citation = "the linear normalizer of Vespa"
    dialect = Dialect(
        engine="vespa",
        call="normalize_linear",
        formula="w (x - min) / (max - min)",
        weights="free",
        absent="the score 0, normalized",
        flat="1/2, if it has all items",
        precision="double",
        depth="rerank-count, of all hits together",
        verified=VERIFIED,
    )

    def _compute_terms(self, preferences: Preferences, weight: F8) -> F8:
        low, spread = self._find_ranges(preferences)
        row = preferences.lists.list_of_row
        return weight * _scale(self._read_scores(preferences), low[row], spread[row])

    def _combine_terms(self, preferences: Preferences, term: F8, weights: F8) -> F8:
        low, spread = self._find_ranges(preferences)
        return _add_for_absent(
            preferences, term, weights[preferences.lists.expert] * _scale(np.zeros(len(low)), low, spread)
        )

    def _find_ranges(self, preferences: Preferences) -> tuple[F8, F8]:
        """The smallest score and the range of each list, with a 0 for the items that it lacks."""
        lists = preferences.lists
        stats = compute_list_statistics(lists.starts, self._read_scores(preferences))
        lacks = lists.lengths < preferences.index.sizes[lists.query_of_list]
        low, high = (
            np.where(lacks, f(s, 0.0), s) for f, s in ((np.minimum, stats.low), (np.maximum, stats.high))
        )
        return low, high - low


def _scale(score: F8, low: F8, spread: F8) -> F8:
    varies = spread > 0
    return np.where(varies, (score - low) / np.where(varies, spread, 1.0), 0.5)


def _add_for_absent(preferences: Preferences, term: F8, absent: F8) -> F8:
    """The sum by slot of the terms of rows and, for items that a list lacks, of that list's `absent` term."""
    lists, index = preferences.lists, preferences.index
    above = np.bincount(lists.item, weights=term - absent[lists.list_of_row], minlength=len(index.items))
    everyone = np.bincount(lists.query_of_list, weights=absent, minlength=len(index))
    return np.asarray(above + np.repeat(everyone, index.sizes), np.float64)


class Vespa(FusionEngine):
    """Vespa 8: a rank profile; the names of the experts are rank features."""

    name = "vespa"
    title = "Vespa"
    syntax = "schema"
    first = "vespa_rrf"
    remarks = (
        "Vespa does not cut each list: it ranks the first rerank-count hits of the first phase by all features",
        "Vespa numbers hits with equal features in an internal order; here they share the mean of their places",
    )

    def rewrite(self, rule: Textbook) -> Rewriting:
        if rule.kind == "ranks":
            reason = "Vespa ranks every hit by every feature, so an item gets points from lists that lack it"
            return Rewriting(VespaRrf(k=rule.k), reason)
        reason = "in Vespa a hit that an expert does not list has the score 0, which counts in the range"
        return Rewriting(
            VespaLinear(),
            reason if rule.normalizer == "minmax" else f"Vespa has no form of {rule.describe()}",
        )

    def write_config(self, form: EngineForm, depth: int) -> str:
        method, terms = form.method, []
        for number, weight in enumerate(form.weights):
            name = f"expert_{number}"
            if isinstance(method, VespaRrf):
                terms.append(f"{weight!r} * reciprocal_rank({name}, {float(method.k)!r})")
            else:
                terms.append(f"{weight!r} * normalize_linear({name})")
        functions = "\n".join(
            f"    function expert_{number}() {{  # {source.expert}\n        expression: {source.name}\n    }}"
            for number, source in enumerate(form.sources)
        )
        return f"""rank-profile podium {{
{functions}
    first-phase {{
        expression: {" + ".join(f"expert_{number}" for number in range(len(form.sources)))}
    }}
    global-phase {{
        rerank-count: {depth}
        expression: {" + ".join(terms)}
    }}
}}
"""
