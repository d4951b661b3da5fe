"""scikit-learn: an estimator over a table with one row per (query, expert, item)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError, ParameterError
from podium.core.optional import require_module
from podium.core.params import suggest_names
from podium.core.settings import Unlisted
from podium.data.consensus import Consensus
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.evaluate import evaluate
from podium.integrations.list_fusion import ListFusion, RankSource
from podium.methods.base import Aggregator, make

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
else:
    BaseEstimator = require_module("sklearn.base").BaseEstimator

__all__ = ["RankAggregator"]

NESTED = "method__"  # before a parameter of the method


class RankAggregator(BaseEstimator):
    """Ranks the items of each query; `y` has the grade of each row's item, NaN where it was not judged.

    X is a dataframe with columns for query, expert, item, and rank or score. Parameters of the method are
    parameters of the estimator: `method__k`. `score` is the mean of `metric` over the queries with judged
    items. Split by query, with the query column as `groups`, since rows of a query belong together.
    """

    def __init__(
        self,
        method: str | Aggregator = "rrf",
        *,
        weights: Mapping[str, float] | None = None,
        ranks: RankSource = "given",
        metric: str = "ndcg@10",
        unlisted: Unlisted = "unknown",
        query_column: str = "query",
        expert_column: str = "expert",
        item_column: str = "item",
        rank_column: str = "rank",
        score_column: str = "score",
    ) -> None:
        self.method = method
        self.weights = weights
        self.ranks = ranks
        self.metric = metric
        self.unlisted = unlisted
        self.query_column = query_column
        self.expert_column = expert_column
        self.item_column = item_column
        self.rank_column = rank_column
        self.score_column = score_column

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with `deep`, those of the method too."""
        own = dict(super().get_params(deep=False))
        if deep:
            # a wrong method is an error of `fit`, as scikit-learn expects
            with contextlib.suppress(ParameterError):
                nested = make(self.method).get_parameters()
                own |= {NESTED + name: value for name, value in nested.items() if name != "weights"}
        return own

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `method__k` changes the method, after `method` is set."""
        nested = {n.removeprefix(NESTED): v for n, v in params.items() if n.startswith(NESTED)}
        super().set_params(**{n: v for n, v in params.items() if not n.startswith(NESTED)})
        if nested:
            method = make(self.method)
            self.method = make(method.name, **(method.get_parameters() | nested))
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Make the method, and learn what it learns; `y` is for the methods that learn from labels."""
        fusion = ListFusion(self.method, self.weights, ranks=self.ranks)
        preferences = self._read_preferences(X)
        # a method that was passed as an object is not changed
        aggregator = make(fusion.aggregator.name, **fusion.aggregator.get_parameters())
        self.aggregator_ = aggregator.fit(preferences, None if y is None else self._read_labels(X, y))
        return self

    def aggregate(self, X: Any) -> Consensus:
        """The rankings."""
        require_module("sklearn.utils.validation").check_is_fitted(self)
        return self.aggregator_.aggregate(self._read_preferences(X))

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The consensus score of each row's item; larger is better."""
        scores = self.aggregate(X).to_dict()
        pairs = zip(self._read_ids(X, self.query_column), self._read_ids(X, self.item_column), strict=True)
        return np.array([scores[query][item] for query, item in pairs])

    def score(self, X: Any, y: Any) -> float:
        """The mean of `metric` over the queries with judged items."""
        (mean,) = evaluate(self.aggregate(X), self._read_labels(X, y), self.metric).mean().values()
        return mean

    def _read_preferences(self, X: Any) -> Preferences:
        names = list(getattr(X, "columns", ()))
        rank = self.rank_column if self.ranks == "given" and self.rank_column in names else None
        return Preferences.from_rows(
            self._read_ids(X, self.query_column),
            self._read_ids(X, self.expert_column),
            self._read_ids(X, self.item_column),
            rank=None if rank is None else np.asarray(X[rank]),
            score=np.asarray(X[self.score_column]) if self.score_column in names else None,
            unlisted=self.unlisted,
        )

    def _read_labels(self, X: Any, y: Any) -> Labels:
        grades = np.asarray(y, np.float64)
        rows = np.flatnonzero(~np.isnan(grades))
        queries, items = self._read_ids(X, self.query_column), self._read_ids(X, self.item_column)
        labels: dict[Id, dict[Id, float]] = {}
        for row in rows.tolist():
            known = labels.setdefault(queries[row], {})
            if known.setdefault(items[row], grades[row]) != grades[row]:
                raise InputError(
                    f"item {items[row]!r} of query {queries[row]!r} has the grades {known[items[row]]:g} and "
                    f"{grades[row]:g}",
                    source=f"row {row + 1}",
                    remedy="give all rows of an item the same grade",
                )
        return Labels.from_dict(labels)

    def _read_ids(self, X: Any, name: str) -> list[Any]:
        names = list(getattr(X, "columns", ()))
        if not names:
            raise InputError(f"X is a {type(X).__name__}", remedy="give a dataframe with named columns")
        if name not in names:
            raise InputError(f"X has no column {name!r}", remedy=suggest_names(name, map(str, names)))
        return list(X[name].to_list())
