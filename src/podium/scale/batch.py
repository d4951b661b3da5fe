"""The function that all engines run: Arrow batches of preferences in, Arrow batches of results out.

Rows of one query stay together: a table has complete queries, and in a stream a query may continue in the
next batch but not reappear later. Only bytes and plain values are sent to other processes, so the function
runs wherever Podium is installed.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from podium.core.errors import InputError, ParameterError
from podium.core.optional import require_module
from podium.data.ids import Ids
from podium.methods.base import Aggregator, make
from podium.scale import result_tables
from podium.scale.arrow_schema import normalize_columns, to_single_array, to_table
from podium.scale.query_batches import ARROW, ROWS, iterate_query_batches
from podium.scale.table_preferences import build_preferences, find_weighted_experts, rank_columns

if TYPE_CHECKING:
    from podium.data.building.validate import Duplicates
    from podium.data.consensus import Consensus, TieRule
    from podium.data.features import Features
    from podium.data.preferences import Preferences, Unlisted
    from podium.kernels.dispatch import I8


@dataclass(frozen=True, eq=False)
class BatchFunction:
    """Ranks the queries of a batch; created by `batch_function`.

    Call it with a `pyarrow.Table` or `RecordBatch` of complete queries, or with an iterator of record batches
    in which the rows of a query are consecutive; it returns the same kind.
    """

    aggregator: Aggregator  # sent to other processes as the bytes of a model file
    top: int | None = None
    ties: TieRule = "item"
    unlisted: Unlisted | None = None  # None: as stored in the shard, else unknown
    duplicates: Duplicates = "error"
    keep: tuple[str, ...] = ()

    @property
    def __name__(self) -> str:
        """The name shown by engines; some ask a function for it."""
        return f"podium {self.aggregator.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BatchFunction) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __getstate__(self) -> dict[str, Any]:
        known = {f.name: getattr(self, f.name) for f in fields(self)}
        return known | {"aggregator": self.model, "fingerprint": self.fingerprint}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from podium.models.model_files import loads

        vars(self).update(state | {"model": state["aggregator"], "aggregator": loads(state["aggregator"])})

    @functools.cached_property
    def model(self) -> bytes:
        """The method as `podium.models` writes it; an engine sends the function once per shard."""
        from podium.models.model_files import dumps

        return dumps(self.aggregator)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Everything besides the rows that results depend on: method, learned values, options."""
        from podium.models.model_files import compute_fingerprint

        options = (self.top, self.ties, self.unlisted, self.duplicates, self.keep)
        return f"{compute_fingerprint(self.aggregator)} {options!r}"

    def __call__(self, *batches: Any) -> Any:
        """A table returns a table, a record batch a record batch, an iterator an iterator.

        It takes one argument; Spark counts named arguments, including `self`, and would pass a key as well.
        """
        pa = require_module("pyarrow")
        (batch,) = batches
        if isinstance(batch, pa.Table):
            return self._rank_table(batch)
        if isinstance(batch, pa.RecordBatch):
            whole = self._rank_table(to_table(batch)).combine_chunks()
            return pa.RecordBatch.from_arrays(
                [to_single_array(c) for c in whole.columns], schema=whole.schema
            )
        if isinstance(batch, Iterable) and not isinstance(batch, Mapping) and not hasattr(batch, "columns"):
            return self.rank_batches(batch)
        raise InputError(f"the batch is a {type(batch).__name__}", remedy=ARROW)

    def rank_batches(self, batches: Iterable[Any], rows: int = ROWS) -> Iterator[Any]:
        """Record batches of results for a stream of record batches, about `rows` rows at a time."""
        for table in self.rank_tables(batches, rows):
            yield from table.combine_chunks().to_batches()

    def rank_tables(self, batches: Iterable[Any], rows: int = ROWS) -> Iterator[Any]:
        """The same stream as tables."""
        for table, starts in iterate_query_batches(batches, rows):
            yield self._rank_table(table, starts)

    def schema(self, given: Any) -> Any:
        """The schema of the results for batches of a schema."""
        return result_tables.derive_result_schema(given, self.keep)

    def rank(self, given: Preferences | Features) -> Consensus:
        """The consensus of preferences, or of item features, that are in memory."""
        method: Any = self.aggregator
        consensus: Consensus = (method.rank if self.by_features else method.aggregate)(given, ties=self.ties)
        return consensus

    @property
    def by_features(self) -> bool:
        """Whether the model ranks by item features alone; it then takes shards, not batches of lists."""
        return not isinstance(self.aggregator, Aggregator)

    @functools.cached_property
    def weighted_experts(self) -> Ids | None:
        """Experts with a weight given by name."""
        return find_weighted_experts(self.aggregator)

    def _rank_table(self, table: Any, starts: I8 | None = None) -> Any:
        if self.by_features:
            raise ParameterError(
                f"{self.aggregator.name} ranks by item features; give shards of them to scale.apply"
            )
        schema, table = self.schema(table.schema), normalize_columns(table)
        if not table.num_rows:
            return schema.empty_table()
        ranker = self.aggregator.column_ranker() if self.ties == "item" and self.unlisted != "below" else None
        if ranker is not None:
            ranked = rank_columns(table, starts, ranker, self.weighted_experts, self.top)
            if ranked is not None:
                return result_tables.from_ranked_table(ranked, table, schema, self.keep)
        read = build_preferences(table, self.unlisted or "unknown", self.duplicates, self.weighted_experts)
        consensus = self.rank(read.preferences)
        return result_tables.from_consensus(consensus, read, table, schema, self.top, self.keep)


def batch_function(
    aggregator: Aggregator | str,
    *,
    top: int | None = None,
    ties: TieRule = "item",
    unlisted: Unlisted | None = None,
    duplicates: Duplicates = "error",
    keep: Iterable[str] = (),
) -> BatchFunction:
    """A function from Arrow batches of (query, expert, item, rank/score) to (query, item, rank, score, tied).

    `aggregator` is a method, its name or printed form, or the path of a saved model (`*.podium`). `keep`
    names columns that are constant within a query and are copied to the results. The function can be pickled.

    >>> import pyarrow as pa
    >>> rrf = batch_function("rrf(k=1)")
    >>> batch = pa.table({"query": [7] * 4, "expert": ["a", "a", "b", "b"], "item": [1, 2, 2, 3], "rank": [1, 2, 1, 2]})
    >>> rrf(batch).select(["query", "item", "rank"]).to_pylist()[:2]
    [{'query': 7, 'item': 2, 'rank': 1}, {'query': 7, 'item': 1, 'rank': 2}]
    """
    from podium import models

    method: Any = copy.copy(aggregator)  # later changes of the given method do not reach the function
    if isinstance(method, str) and method.endswith(".podium"):
        method = models.load(method)
    if isinstance(method, Aggregator | str):
        method = make(method)
        if not method.tags.per_query:
            raise ParameterError(
                f"each result of {method.name} depends on the other queries, so batches cannot be ranked alone; "
                "use it in memory, or fit on a sample and apply the model"
            )
        if method.weights is not None and not isinstance(method.weights, dict):
            raise ParameterError(
                f"{method.name}: positional weights do not fit batches without some expert; give them by name"
            )
        if method.tags.supervised and hasattr(method, "_check_fitted"):
            method._check_fitted()
        if top is not None and top < 1:
            raise ParameterError(f"top is {top}; accepted: whole numbers from 1")
        return BatchFunction(method, top, ties, unlisted, duplicates, tuple(keep))
    from podium.methods.feature.feature_model import FeatureModel

    by_features = isinstance(method, FeatureModel)
    if not by_features:
        raise ParameterError(
            f"{getattr(method, 'name', type(method).__name__)} does not rank lists; give a method such as 'rrf'"
        )
    return BatchFunction(method, top, ties)
