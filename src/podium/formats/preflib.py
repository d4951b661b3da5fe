"""PrefLib elections: soc, soi, toc, toi (the format with `# KEY: value` headers)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from podium.core.errors import InputError, Option
from podium.data.building.validate import check_choice
from podium.data.ids import CodedColumn, Ids
from podium.data.preferences import Preferences, Unlisted
from podium.formats.base import Content, Format, merge_contents
from podium.formats.text_ids import format_ids
from podium.storage.files import Source, derive_distinct_names

__all__ = ["PrefLib"]

ItemNaming = Literal["auto", "names", "numbers"]
MOST_ROWS = 1_000_000
_NAME = re.compile(r"# ALTERNATIVE NAME ([0-9]{1,18}): ?(.*)")
_BALLOT = re.compile(r"([0-9]{1,18}): ?(.*)")
_GROUP = re.compile(r"\{([^{}]*)\}|([^,{}]+)")


class PrefLib(Format):
    """PrefLib ballots; each ballot is an expert, v1, v2, ..., and a ballot cast c times is c experts.

    Item ids are the names if these are distinct, else the numbers (`items`). Alternatives that a ballot omits
    are `unlisted`. The election is one query, named after its file. `most_rows` limits memory use.
    """

    name = "preflib"
    holds = frozenset({"lists"})
    suffixes = (".soc", ".soi", ".toc", ".toi")
    summary = "PrefLib elections: soc, soi, toc, toi"

    def sniff(self, head: bytes) -> float:
        if head.startswith((b"# FILE NAME", b"# ALTERNATIVE NAME")):
            return float(re.search(rb"(?m)^# DATA TYPE: ?wmd\s*$", head) is None)
        return 0.8 if _is_old_format(head) else 0.0

    def read(
        self,
        sources: Sequence[Source],
        *,
        items: ItemNaming = "auto",
        unlisted: Unlisted = "unknown",
        most_rows: int = MOST_ROWS,
    ) -> Content:
        check_choice("items", items, ("auto", "names", "numbers"))
        elections = zip(sources, derive_distinct_names(sources), strict=True)
        return merge_contents(
            [
                Content(preferences=_read_election(s, name, items, unlisted, most_rows))
                for s, name in elections
            ]
        )

    def write(self, content: Content) -> Iterator[bytes]:
        p = content.preferences
        if p is None or not p.lists.rows:
            raise InputError("there are no lists to write", remedy="PrefLib files store rankings")
        if len(p) != 1:
            raise InputError(
                f"{len(p)} queries cannot be one election", remedy="select one query, or write csv"
            )
        scored = p.lists.score is not None
        self.warn_of_omitted(
            labels=content.labels, features=content.features, comparisons=len(p.comparisons), scores=scored
        )
        return _format_election(p)


def _is_old_format(head: bytes) -> bool:
    lines = head.split(b"\n", 2)
    return len(lines) > 2 and lines[0].strip().isdigit() and re.match(rb"1\s*,", lines[1]) is not None


class _Header(NamedTuple):
    names: dict[int, str]
    ballots: list[tuple[int, str]]  # numbered lines


def _parse_header(source: Source) -> _Header:
    names: dict[int, str] = {}
    ballots = []
    for line, raw in source.iterate_lines():
        text = raw.strip().decode()
        if match := _NAME.fullmatch(text):
            names[int(match[1])] = match[2]
        elif not text.startswith("#"):
            ballots.append((line, text))
    if not names:
        if _is_old_format(source.head()):
            remedy = "download the file again from PrefLib, whose files now begin with '# FILE NAME:'"
            raise source.error("this is PrefLib's old format, without '# ...' headers", 1, remedy)
        raise source.error(
            "no '# ALTERNATIVE NAME 1: ...' lines", 1, "is this a PrefLib soc, soi, toc or toi file?"
        )
    if not ballots:
        raise source.error("there are no ballots")
    return _Header(names, ballots)


def _read_election(
    source: Source, name: str, items: ItemNaming, unlisted: Unlisted, most_rows: int
) -> Preferences:
    names, ballots = _parse_header(source)
    numbers = sorted(names)
    unique = len(set(names.values())) == len(names) and "" not in names.values()
    if items == "names" and not unique:
        raise source.error(
            "some alternatives have the same name, or none", None, ("use ", Option("items", "numbers"))
        )
    ids = Ids([names[n] if unique and items != "numbers" else str(n) for n in numbers])
    code = {n: k for k, n in enumerate(numbers)}
    item: list[int] = []
    rank: list[int] = []
    lengths: list[int] = []
    line_of: list[int] = []
    for line, text in ballots:
        count, groups = _parse_ballot(text, source, line)
        flat = [n for group in groups for n in group]
        if len(set(flat)) < len(flat):
            twice = next(n for n in flat if flat.count(n) > 1)
            raise source.error(f"alternative {twice} is on the ballot twice", line, "keep it once")
        if unknown := [n for n in flat if n not in code]:
            remedy = f"alternatives are 1 to {max(code)}, as named in the header"
            raise source.error(f"unknown alternative {unknown[0]}", line, remedy)
        if len(item) + count * len(flat) > most_rows or len(lengths) + count > most_rows:
            raise source.error(
                f"the ballots have more than {most_rows:,} entries",
                line,
                ("raise ", Option("most_rows"), " if memory allows"),
            )
        ranks = [1 + sum(map(len, groups[:k])) for k, group in enumerate(groups) for _ in group]
        item.extend([code[n] for n in flat] * count)
        rank.extend(ranks * count)
        lengths.extend([len(flat)] * count)
        line_of.extend([line] * count)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    query = Ids([name])
    return Preferences.from_rows(
        CodedColumn(np.zeros(len(item), np.int64), query),
        CodedColumn(owner, Ids([f"v{k + 1}" for k in range(len(lengths))])),
        CodedColumn(np.array(item, np.int64), ids),
        rank=np.array(rank, np.int32),
        candidates=(CodedColumn(np.zeros(len(ids), np.int64), query), CodedColumn(np.arange(len(ids)), ids)),
        unlisted=unlisted,
        origin=lambda row: (source.name, line_of[int(owner[row])]),
    )


def _parse_ballot(text: str, source: Source, line: int) -> tuple[int, list[list[int]]]:
    match = _BALLOT.fullmatch(text)
    problem = source.error(f"{text[:60]!r} is not a ballot", line, "a ballot looks like 12: 3,1,{2,4}")
    if match is None or int(match[1]) < 1:
        raise problem
    groups, at, order = [], 0, match[2].replace(" ", "")
    while at < len(order):
        group = _GROUP.match(order, at)
        if group is None:
            raise problem
        tokens = (group[1] if group[1] is not None else group[2]).split(",")
        if not all(re.fullmatch("[0-9]{1,18}", t) for t in tokens):
            if tokens != [""]:
                raise problem
            tokens = []
        groups.append([int(t) for t in tokens])
        at = group.end()
        if at < len(order):
            if order[at] != "," or at + 1 == len(order):
                raise problem
            at += 1
    return int(match[1]), groups


def _format_election(p: Preferences) -> Iterator[bytes]:
    t = p.lists
    names = format_ids(p.index.items, "item", "preflib")
    for name in names:
        if name.encode() != name.encode().strip() or any(c in name for c in "\n\r\0"):
            remedy = "names are one line without leading or trailing whitespace"
            raise InputError(f"the item id {name[:80]!r} cannot be written as preflib", remedy=remedy)
    ballots = []
    for a, b in itertools.pairwise(t.starts.tolist()):
        groups: dict[int, list[str]] = {}
        for item, rank in zip(t.item[a:b].tolist(), t.rank[a:b].tolist(), strict=True):
            groups.setdefault(rank, []).append(str(item + 1))
        ballots.append(",".join(g[0] if len(g) == 1 else "{" + ",".join(g) + "}" for g in groups.values()))
    tied = any("{" in b for b in ballots)
    full = bool((t.lengths == len(names)).all())
    head = [
        f"# DATA TYPE: {'t' if tied else 's'}o{'c' if full else 'i'}",
        f"# NUMBER ALTERNATIVES: {len(names)}",
        f"# NUMBER VOTERS: {len(t)}",
        f"# NUMBER UNIQUE ORDERS: {len(set(ballots))}",
        *(f"# ALTERNATIVE NAME {k}: {name}" for k, name in enumerate(names, 1)),
    ]
    yield ("# FILE NAME: podium\n" + "\n".join(head) + "\n").encode()
    for ballot in ballots:
        yield f"1: {ballot}\n".encode()
