"""Fingerprints: a hash of the content of preferences, from their columns or from plain lists."""

from __future__ import annotations

import functools
import hashlib
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from podium.data.ids import Id
from podium.data.lists import Comparisons, Lists

__all__ = ["compute_fingerprint", "fingerprint_ranked_lists", "iterate_columns"]


def compute_fingerprint(ids: Iterable[Sequence[Id]], columns: Iterable[bytes], unlisted: str) -> str:
    """Sixteen hex digits of a hash of the ids (queries, experts, items) and the bytes of the columns."""
    digest = hashlib.blake2b(digest_size=8)
    for values in ids:
        digest.update(repr(values).encode(errors="surrogatepass"))
    for column in columns:
        digest.update(column)
    digest.update(unlisted.encode())
    return digest.hexdigest()


def iterate_columns(votes: Comparisons, lists: Lists) -> Iterable[bytes]:
    """The bytes of the columns of votes and lists."""
    for column in (
        *(votes.query_starts, votes.expert, votes.winner, votes.loser, votes.tie, votes.weight),
        *(lists.query_starts, lists.expert, lists.starts, lists.item, lists.rank),
    ):
        yield column.tobytes()
    yield b"" if lists.score is None else lists.score.tobytes()


def fingerprint_ranked_lists(
    lists: Sequence[Sequence[Id]], items: Sequence[Id], experts: Sequence[Id] | None = None
) -> str:
    """The fingerprint of `Preferences.from_lists({0: dict(zip(experts, lists))})`, which are not built.

    No list is empty or has an id twice; `items` are all distinct ids in id order, and the lists are in the id order
    of their experts, which are 0, 1, ... if not given.
    """
    code_of = dict(zip(items, range(len(items)), strict=True))
    codes = array("i", map(code_of.__getitem__, chain.from_iterable(lists)))
    numbers, before, after = _describe_lengths(tuple(map(len, lists)))
    starts = array("q", (0, len(items))).tobytes()
    ids = ([0], numbers if experts is None else list(experts), items)
    return compute_fingerprint(ids, (starts, before, codes.tobytes(), after), "unknown")


@functools.lru_cache(maxsize=64)
def _describe_lengths(lengths: tuple[int, ...]) -> tuple[list[int], bytes, bytes]:
    """What depends on the lengths alone: the experts, and the bytes of the columns before and after the items."""
    starts = np.append(0, np.cumsum(lengths)).astype(np.int64)
    experts = np.arange(len(lengths), dtype=np.int32)
    item = np.zeros(starts[-1], np.int32)
    rank = np.concatenate([np.arange(1, n + 1, dtype=np.int32) for n in lengths])
    columns = Lists(np.array((0, len(lengths)), np.int64), experts, starts, item, rank, None)
    content = b"".join(iterate_columns(Comparisons.empty(1), columns))
    end = len(content) - rank.nbytes
    return experts.tolist(), content[: end - item.nbytes], content[end:]
