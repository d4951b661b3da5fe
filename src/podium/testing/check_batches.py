"""Batch checks: a query has the same result in every batch size and interface."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, cast

from podium.core.optional import require_module
from podium.data.consensus import Consensus, RankedItem
from podium.data.preferences import Form, Preferences
from podium.methods.base import Aggregator
from podium.methods.fuse import fuse
from podium.testing.checks import (
    assert_close,
    build_samples,
    check,
    fit_aggregator,
    reads_lists,
)
from podium.testing.samples import PreferenceRows


@check(reads_lists)
def one_answer_at_every_batch_size(cls: type[Aggregator]) -> None:
    """In memory, from `fuse`, and from Arrow batches of any size, queries have the same ranking."""
    for answers in build_samples(cls, 1):
        if answers.form is Form.COMPARISON:
            continue
        given = dataclasses.replace(answers, candidates=())
        preferences = given.to_preferences()
        method = fit_aggregator(cls(), preferences)
        expected = method.aggregate(preferences)
        if cls.tags.per_query:
            pa = require_module("pyarrow")
            from podium.scale import batch_function

            query, expert, item, value = zip(*given.lists, strict=True)
            rated = given.form is Form.RATING
            number = pa.array(value, pa.float64()) if rated else pa.array([int(v) for v in value], pa.int64())
            columns = {"query": query, "expert": expert, "item": item, "score" if rated else "rank": number}
            table = pa.table(columns)
            rank = batch_function(method, unlisted="below" if given.form is Form.TOP_K else "unknown")
            # all queries from one batch, and from a stream of single queries
            stream = rank.rank_batches(table.to_batches(), rows=1)
            for results in (rank(table), pa.Table.from_batches(stream)):
                assert_close(cast(Consensus, _BatchResults(results.to_pylist())), expected)
        # `fuse` has no option for unlisted items
        if not cls.tags.supervised and answers.form is not Form.TOP_K:
            _check_fuse(cls, given)


class _BatchResults(dict[Any, list[Any]]):
    """Rows of results by query, in the shape that `assert_close` compares."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        for row in rows:
            places = self.setdefault(row["query"], [])
            places.append(RankedItem(row["item"], len(places) + 1, row["score"], row["tied"]))

    @property
    def queries(self) -> list[Any]:
        """Query ids in order of appearance."""
        return list(self)


def _check_fuse(cls: type[Aggregator], answers: PreferenceRows) -> None:
    """`fuse` gives one query of plain lists the same result as preferences do."""
    for query_id in dict.fromkeys(row[0] for row in answers.lists):
        lists: dict[Any, dict[Any, float]] = {}
        for query, expert, item, value in answers.lists:
            if query == query_id:
                lists.setdefault(expert, {})[item] = value
        rated = answers.form is Form.RATING
        plain: list[Any] = [r if rated else sorted(r, key=r.__getitem__) for r in lists.values()]
        preferences = Preferences.from_lists({0: dict(enumerate(plain))})
        method = fit_aggregator(cls(), preferences)
        fusion = fuse(plain, method)
        rows = zip(fusion.ranking, fusion.scores, fusion.tied, strict=True)
        results = _BatchResults({"query": 0, "item": i, "score": s, "tied": t} for i, s, t in rows)
        assert_close(cast(Consensus, results), method.aggregate(preferences))
