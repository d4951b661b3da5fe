"""Win counts between items, as published by leaderboards: one JSON object with items, pairs and counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from podium.core.errors import InputError
from podium.data.ids import CodedColumn, Ids, code_ids
from podium.data.preferences import Preferences
from podium.formats.base import Content, Format, merge_contents
from podium.formats.text_ids import refuse_surrogates, refuse_surrogates_in
from podium.kernels.contest_counts import orient_votes
from podium.kernels.grouping import sum_rows
from podium.storage.files import Source, derive_distinct_names

__all__ = ["WinCounts"]

LARGEST = 2**53  # whole numbers up to here are exact as floats


class WinCounts(Format):
    """`{"models": [ids], "X": [[i, j], ...], "Y": [[wins of i, wins of j, ties, ...], ...]}`, i and j from 0.

    Columns of Y after the second are ties. A count is the weight of one vote; pairs without votes are absent.
    """

    name = "counts"
    holds = frozenset({"votes"})
    suffixes = (".json",)
    signature = rb'\s*\{\s*"(models|X|Y)"\s*:\s*\['
    summary = "JSON counts of wins, losses and ties between items (models, X, Y)"

    def read(self, sources: Sequence[Source]) -> Content:
        names = derive_distinct_names(sources)
        return merge_contents(
            [
                Content(preferences=_read_votes(source, name))
                for source, name in zip(sources, names, strict=True)
            ]
        )

    def write(self, content: Content) -> Iterator[bytes]:
        p = content.preferences
        if p is None or not len(p.comparisons):
            raise InputError("there are no votes to write", remedy="counts files store votes")
        self.warn_of_omitted(
            lists=p.lists.rows, labels=content.labels, features=content.features, queries=len(p) > 1,
            experts=len(p.experts) > 1,
        )  # fmt: skip
        refuse_surrogates(p.index.items, "item", self.name)
        v, item = p.comparisons, code_ids(p.index.items.tolist(), "item").with_sorted_ids()
        rows = orient_votes(item.codes[v.winner], item.codes[v.loser], v.tie, v.weight)
        pairs, sums = sum_rows((rows.first, rows.second), (rows.won, rows.lost, rows.tied))
        counts = np.stack(sums, axis=1)
        if counts.max() > LARGEST:
            raise InputError(
                f"two items have {counts.max():g} votes between them",
                remedy=f"counts files store at most {LARGEST:,}",
            )
        whole = counts.astype(np.int64).tolist() if (counts == np.rint(counts)).all() else counts.tolist()
        yield json.dumps(
            {"models": item.ids.tolist(), "X": np.stack(pairs, axis=1).tolist(), "Y": whole},
            ensure_ascii=False,
        ).encode()


def _read_votes(source: Source, expert: str) -> Preferences:
    items, pairs, counts = _parse_counts(source)
    width = counts.shape[1]
    rows = np.repeat(np.arange(len(pairs)), width)
    outcome = np.tile(np.arange(width), len(pairs))
    weight = counts.ravel()
    some = weight > 0
    rows, outcome, weight = rows[some], outcome[some], weight[some]
    if not len(rows):
        raise source.error("all counts are 0", remedy="there must be at least one vote")
    second = outcome == 1
    a, b = pairs[rows].T
    one = np.zeros(len(rows), np.int64)
    return Preferences.from_comparisons(
        CodedColumn(one, Ids(["all"])),
        CodedColumn(one, Ids([expert])),
        CodedColumn(np.where(second, b, a), items),
        CodedColumn(np.where(second, a, b), items),
        tie=outcome >= 2,
        weight=weight,
        origin=lambda row: (f"{source.name}, pair {int(rows[row]) + 1}", None),
    )


def _parse_counts(source: Source) -> tuple[Ids, Any, Any]:
    """Items, pairs and counts, all checked."""
    try:
        document = json.loads(source.data)
        models, pairs, counts = (document[key] for key in ("models", "X", "Y"))
    except (ValueError, RecursionError) as error:
        raise source.error(f"this is not JSON: {error}") from None
    except (KeyError, TypeError):
        remedy = 'write {"models": [...], "X": [[i, j], ...], "Y": [[wins, losses, ties], ...]}'
        raise source.error("models, X or Y is missing", remedy=remedy) from None
    refuse_surrogates_in(models, source.data, lambda problem, remedy: source.error(problem, None, remedy))
    if not isinstance(models, list) or len(set(map(str, models))) < len(models):
        raise source.error("models is not a list of distinct ids", remedy="name each item once")
    if not isinstance(pairs, list) or not isinstance(counts, list) or len(pairs) != len(counts):
        raise source.error("X and Y differ in length", remedy="give one row of counts per pair")
    widths = {len(row) if isinstance(row, list) else 0 for row in counts}
    if len(widths) != 1 or min(widths) < 2:
        raise source.error("rows of Y differ in length or are too short", remedy="give wins, losses, ties")
    for number, (pair, row) in enumerate(zip(pairs, counts, strict=True), 1):
        _check_pair(source, number, pair, row, models)
    return code_ids(models, "item").ids, np.array(pairs, np.int64), np.array(counts, np.float64)


def _check_pair(source: Source, number: int, pair: Any, row: list[Any], models: list[Any]) -> None:
    known = range(len(models))
    if (
        not isinstance(pair, list)
        or len(pair) != 2
        or any(type(i) is not int or i not in known for i in pair)
    ):
        raise source.error(
            f"pair {number} is {pair!r}"[:120], remedy=f"give two model numbers, 0 to {len(models) - 1}"
        )
    if pair[0] == pair[1]:
        raise source.error(
            f"pair {number}: {models[pair[0]]!r} is compared with itself", remedy="a vote needs two items"
        )
    for value in row:
        if type(value) not in (int, float) or not 0 <= value <= LARGEST:  # a NaN is neither
            raise source.error(
                f"pair {number}: a count is {value!r}"[:120],
                remedy=f"counts are numbers from 0 to {LARGEST:,}",
            )
