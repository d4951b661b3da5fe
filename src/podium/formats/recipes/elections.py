"""Ballot files of elections: ABIF, BLT, and PrefLib's weighted matching data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from podium.core.errors import InputError
from podium.core.text import format_count
from podium.data.building.validate import check_choice
from podium.data.ids import CodedColumn, Ids
from podium.data.preferences import Preferences, Unlisted
from podium.formats.base import Content, Format, merge_contents
from podium.formats.preflib import MOST_ROWS
from podium.formats.table_writing import iterate_lists
from podium.formats.text_ids import format_ids
from podium.storage.files import Source, derive_distinct_names

__all__ = ["Abif", "Blt", "MatchingData"]


class _Ballot(NamedTuple):
    line: int
    times: int
    groups: list[list[str]]  # best first; the items of a group are tied


def _build_election(
    source: Source,
    name: str,
    ballots: Sequence[_Ballot],
    candidates: Sequence[str],
    unlisted: Unlisted,
    recipe: str,
    notes: Iterable[str] = (),
) -> Content:
    """The ballots as lists of voters v1, v2, ...; a ballot cast c times is c voters."""
    rows = sum(ballot.times * max(sum(map(len, ballot.groups)), 1) for ballot in ballots)
    if rows > MOST_ROWS:
        raise source.error(f"the ballots have more than {MOST_ROWS:,} entries", None, "divide the file")
    voter, item, rank, lines = [], [], [], []
    voters = 0
    for ballot in ballots:
        flat = [name for group in ballot.groups for name in group]
        if len(set(flat)) < len(flat):
            twice = next(name for name in flat if flat.count(name) > 1)
            raise source.error(f"{twice!r} is on the ballot twice", ballot.line, "keep it once")
        ranks = [1 + sum(map(len, ballot.groups[:k])) for k, group in enumerate(ballot.groups) for _ in group]
        for _ in range(ballot.times):
            voters += 1
            voter += [voters - 1] * len(flat)
            item += flat
            rank += ranks
            lines += [ballot.line] * len(flat)
    if not item:
        raise source.error("there are no ballots", None, "a ballot names at least one candidate")
    query = Ids([name])
    every = list(dict.fromkeys((*candidates, *item)))
    preferences = Preferences.from_rows(
        CodedColumn(np.zeros(len(item), np.int64), query),
        CodedColumn(np.array(voter, np.int64), Ids([f"v{k + 1}" for k in range(voters)])),
        item,
        rank=np.array(rank, np.int32),
        candidates=(CodedColumn(np.zeros(len(every), np.int64), query), every),
        unlisted=unlisted,
        origin=lambda row: (source.name, lines[row]),
    )
    counts = f"1 query, {format_count(len(every), 'item')}, {format_count(voters, 'ballot')}"
    empty = sum(ballot.times for ballot in ballots if not ballot.groups)
    dropped = [f"dropped: {format_count(empty, 'empty ballot')}"] if empty else []
    return Content(preferences=preferences, summary="; ".join([f"{recipe}: {counts}", *dropped, *notes]))


def _iterate_ballots(content: Content, format: Format) -> Iterator[list[list[str]]]:
    """The lists of one election as groups of tied items; refuses what such a file cannot store."""
    p = content.preferences
    if p is None or not p.lists.rows:
        raise InputError("there are no lists to write", remedy=f"{format.name} files store rankings")
    if len(p) != 1:
        raise InputError(f"{len(p)} queries cannot be one election", remedy="select one query, or write csv")
    format.warn_of_omitted(
        labels=content.labels, features=content.features, comparisons=len(p.comparisons),
        scores=p.lists.score is not None,
    )  # fmt: skip
    for _, _, items, ranks, _ in iterate_lists(p):
        groups: dict[int, list[str]] = {}
        for item, rank in zip(items, ranks, strict=True):
            groups.setdefault(rank, []).append(str(item))
        yield [groups[rank] for rank in sorted(groups)]


# -- ABIF --------------------------------------------------------------------------------------------------

_VOTE_LINE = re.compile(r"([0-9]{1,9})\s*:\s*(\S.*)")
_CANDIDATE = re.compile(r"""=\s*(\[[^\]]*\]|"[^"]*"|[^\s:\[\]"]+)\s*:\s*(.*)""")
_TOKEN = re.compile(r"""\s*(?:(\[[^\]]*\]|"[^"]*"|[^\s>=,/\[\]"]+)(?:\s*/\s*([0-9.]+))?)\s*([>=,]|$)""")


class Abif(Format):
    """ABIF elections: lines such as `27:a>b=c`, with `=b:[Name]` for names of candidates and `/5` for scores.

    Where candidates are separated by commas, their scores order them. Names replace the short forms if they
    are distinct.
    """

    name = "abif"
    summary = "ABIF elections: 27:a>b=c"
    suffixes = (".abif",)
    holds = frozenset({"lists"})

    def sniff(self, head: bytes) -> float:
        lines = [line.strip().decode(errors="replace") for line in head.split(b"\n")[:200]]
        known = [bool(_VOTE_LINE.fullmatch(line)) for line in lines if line and line[0] not in "#{="]
        votes = any(_VOTE_LINE.fullmatch(line) and re.search(r"[>=]|/\d", line) for line in lines)
        return 0.85 if votes and all(known) else 0.0

    def read(self, sources: Sequence[Source], *, unlisted: Unlisted = "unknown") -> Content:
        names = derive_distinct_names(sources)
        return merge_contents([self._read(s, name, unlisted) for s, name in zip(sources, names, strict=True)])

    def _read(self, source: Source, name: str, unlisted: Unlisted) -> Content:
        titles: dict[str, str] = {}
        ballots, scored = [], False
        for line, raw in source.iterate_lines():
            text = raw.decode().partition("#")[0].strip()
            if not text or text.startswith("{"):
                continue
            if candidate := _CANDIDATE.fullmatch(text):
                titles[_strip_quotes(candidate[1])] = _strip_quotes(candidate[2].strip())
                continue
            vote = _VOTE_LINE.fullmatch(text)
            if vote is None or int(vote[1]) < 1:
                raise source.error(f"{text[:60]!r} is not a ballot", line, "a ballot looks like 27:a>b=c")
            groups, with_scores = _parse_abif_ballot(vote[2], source, line)
            scored |= with_scores
            ballots.append(_Ballot(line, int(vote[1]), groups))
        distinct = len(set(titles.values())) == len(titles) and "" not in titles.values()
        if distinct:
            ballots = [b._replace(groups=[[titles.get(i, i) for i in g] for g in b.groups]) for b in ballots]
        notes = ["scores are read as ranks"] if scored else []
        candidates = list(titles.values()) if distinct else list(titles)
        return _build_election(source, name, ballots, candidates, unlisted, self.name, notes)

    def write(self, content: Content) -> Iterator[bytes]:
        for groups in _iterate_ballots(content, self):
            for item in (i for group in groups for i in group):
                if re.search(r'[\[\]"#\n\r\0]', item) or not item.strip() or item != item.strip():
                    raise InputError(
                        f"the item id {item[:80]!r} cannot be written as abif", remedy="rename it"
                    )
            ballot = ">".join(
                "=".join(f"[{i}]" if re.search(r"\W", i) else i for i in group) for group in groups
            )
            yield f"1:{ballot}\n".encode()


def _strip_quotes(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] + text[-1] in ("[]", '""') else text


def _parse_abif_ballot(text: str, source: Source, line: int) -> tuple[list[list[str]], bool]:
    """Groups of tied candidates, best first, and whether scores give the order."""
    problem = source.error(
        f"{text[:60]!r} is not a ballot", line, "a ballot looks like 27:a>b=c or 27:a/5,b/3"
    )
    names, marks, scores, at = [], [], [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or (not token[3] and token.end() < len(text)):
            raise problem
        try:
            scores.append(None if token[2] is None else float(token[2]))
        except ValueError:
            raise problem from None
        names.append(_strip_quotes(token[1]))
        marks.append(token[3])
        at = token.end()
    if marks[-1] or "" in names:
        raise problem
    if "," in marks:
        if None in scores:
            raise source.error(
                "candidates are separated by commas but have no scores", line, "write a/5,b/3 or a>b"
            )
        levels = sorted({score for score in scores if score is not None}, reverse=True)
        return [[n for n, s in zip(names, scores, strict=True) if s == level] for level in levels], True
    groups: list[list[str]] = [[]]
    for name, mark in zip(names, marks, strict=True):
        groups[-1].append(name)
        if mark == ">":
            groups.append([])
    return groups, False


# -- BLT ---------------------------------------------------------------------------------------------------

_COUNTS = re.compile(r"([0-9]{1,6})\s+([0-9]{1,6})")


class Blt(Format):
    """BLT elections: candidates and seats, ballots such as `3 1 2=3 0`, then the names of the candidates and
    a title.

    Ballots of withdrawn candidates (a line `-2`) are read; their number is in the summary.
    """

    name = "blt"
    summary = "BLT elections (OpenSTV, OpaVote)"
    suffixes = (".blt",)
    holds = frozenset({"lists"})

    def sniff(self, head: bytes) -> float:
        lines = [line.partition(b"#")[0].strip().decode(errors="replace") for line in head.split(b"\n")]
        lines = [line for line in lines if line]
        if len(lines) < 3 or not _COUNTS.fullmatch(lines[0]):
            return 0.0
        ballots = [line for line in lines[1:] if line[0] not in '"-']
        return (
            0.9
            if ballots and re.fullmatch(r"(\([^)]*\)\s*)?[0-9.]+(\s+[0-9=-]+)*\s+0|0", ballots[0])
            else 0.0
        )

    def read(self, sources: Sequence[Source], *, unlisted: Unlisted = "unknown") -> Content:
        names = derive_distinct_names(sources)
        return merge_contents([self._read(s, name, unlisted) for s, name in zip(sources, names, strict=True)])

    def _read(self, source: Source, name: str, unlisted: Unlisted) -> Content:
        lines = [(n, raw.decode().partition("#")[0].strip()) for n, raw in source.iterate_lines()]
        lines = [(n, text) for n, text in lines if text]
        counts = _COUNTS.fullmatch(lines[0][1]) if lines else None
        if counts is None:
            raise source.error("the first line is not the numbers of candidates and seats", 1, "such as 4 2")
        count, withdrawn, numbered = int(counts[1]), 0, []
        at = 1
        while at < len(lines) and lines[at][1] != "0":
            line, text = lines[at]
            at += 1
            if re.fullmatch(r"(-[0-9]+\s*)+", text):
                withdrawn += len(text.split())
                continue
            numbered.append((line, *_parse_blt_ballot(text, count, source, line)))
        if at == len(lines):
            raise source.error("the ballots do not end", None, "a line with 0 follows the last ballot")
        titles = [_strip_quotes(text) for _, text in lines[at + 1 : at + 1 + count]]
        if len(titles) < count:
            raise source.error(
                f"{len(titles)} names for {count} candidates", None, "name every candidate in a line"
            )
        distinct = len(set(titles)) == count and "" not in titles
        ids = titles if distinct else [str(k + 1) for k in range(count)]
        ballots = [
            _Ballot(line, times, [[ids[k - 1] for k in group] for group in groups])
            for line, times, groups in numbered
        ]
        notes = [f"{format_count(withdrawn, 'candidate')} withdrew and is kept"] if withdrawn else []
        return _build_election(source, name, ballots, ids, unlisted, self.name, notes)

    def write(self, content: Content) -> Iterator[bytes]:
        ballots = list(_iterate_ballots(content, self))
        p = content.preferences
        assert p is not None
        names = format_ids(p.index.items, "item", self.name)
        for item in names:
            if re.search(r'["#\n\r\0]', item) or item != item.strip():
                raise InputError(f"the item id {item[:80]!r} cannot be written as blt", remedy="rename it")
        code = {item: str(k) for k, item in enumerate(names, 1)}
        yield f"{len(names)} 1\n".encode()
        for groups in ballots:
            yield f"1 {' '.join('='.join(code[i] for i in group) for group in groups)} 0\n".encode()
        yield ("0\n" + "".join(f'"{item}"\n' for item in names) + '"podium"\n').encode()


def _parse_blt_ballot(text: str, count: int, source: Source, line: int) -> tuple[int, list[list[int]]]:
    words = re.sub(r"^\([^)]*\)\s*", "", text).split()  # an id of the ballot may come first
    problem = source.error(f"{text[:60]!r} is not a ballot", line, "a ballot looks like 3 1 2=4 0")
    if (
        len(words) < 2
        or words[-1] != "0"
        or not words[0].isdecimal()
        or int(words[0]) < 1
        or len(words[0]) > 9
    ):
        raise problem
    groups = []
    for word in words[1:-1]:
        if word == "-":  # a place that was left out
            continue
        numbers = word.split("=")
        if not all(n.isdecimal() and len(n) < 9 for n in numbers):
            raise problem
        group = [int(n) for n in numbers]
        if not all(1 <= n <= count for n in group):
            raise source.error(f"there is no candidate {word}", line, f"candidates are 1 to {count}")
        groups.append(group)
    return int(words[0]), groups


# -- PrefLib .wmd ------------------------------------------------------------------------------------------

_EDGE = re.compile(r"([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*,\s*([-+0-9.eE]{1,30})")
_NAME = re.compile(r"# ALTERNATIVE NAME ([0-9]{1,9}): ?(.*)")


class MatchingData(Format):
    """PrefLib's weighted matching data: edges `source, destination, weight`.

    `edges="ratings"` reads the weight as the score that the source gives the destination, so that every
    source is an expert; `edges="votes"` reads a weighted majority graph: the source beats the destination
    with that weight.
    """

    name = "wmd"
    summary = "PrefLib weighted matching data: edges with weights"
    suffixes = (".wmd",)
    holds = frozenset()

    def sniff(self, head: bytes) -> float:
        return float(
            head.startswith(b"# FILE NAME") and re.search(rb"(?m)^# DATA TYPE: ?wmd\s*$", head) is not None
        )

    def read(self, sources: Sequence[Source], *, edges: Literal["ratings", "votes"] = "ratings") -> Content:
        check_choice("edges", edges, ("ratings", "votes"))
        names = derive_distinct_names(sources)
        return merge_contents([self._read(s, name, edges) for s, name in zip(sources, names, strict=True)])

    def _read(self, source: Source, name: str, edges: str) -> Content:
        titles: dict[int, str] = {}
        rows: list[tuple[int, int, int, float]] = []
        for line, raw in source.iterate_lines():
            text = raw.decode().strip()
            if title := _NAME.fullmatch(text):
                titles[int(title[1])] = title[2].strip()
            elif not text.startswith("#"):
                edge = _EDGE.fullmatch(text)
                try:
                    rows.append((line, int(edge[1]), int(edge[2]), float(edge[3])))  # type: ignore[index]
                except (TypeError, ValueError):
                    raise source.error(
                        f"{text[:60]!r} is not an edge", line, "an edge looks like 1, 5, 1.0"
                    ) from None
        loops = sum(one == other for _, one, other, _ in rows)
        rows = [row for row in rows if row[1] != row[2]]
        if not rows:
            raise source.error("there are no edges", None, "an edge looks like 1, 5, 1.0")
        distinct = len(set(titles.values())) == len(titles) and "" not in titles.values()
        ids = [
            [titles[k] if distinct and k in titles else str(k) for k in (one, other)]
            for _, one, other, _ in rows
        ]
        from_ids, to_ids = zip(*ids, strict=True)
        weight = np.array([row[3] for row in rows])
        query = [name] * len(rows)
        lines = [row[0] for row in rows]
        if edges == "votes":
            preferences = Preferences.from_comparisons(
                query,
                ["graph"] * len(rows),
                from_ids,
                to_ids,
                weight=weight,
                origin=lambda r: (source.name, lines[r]),
            )
            meaning = "the source of an edge beats its destination"
        else:
            preferences = Preferences.from_rows(
                query, from_ids, to_ids, score=weight, origin=lambda r: (source.name, lines[r])
            )
            meaning = "the source of an edge rates its destination (option edges)"
        dropped = f"; dropped: {format_count(loops, 'loop')}" if loops else ""
        return Content(preferences, summary=f"wmd: {preferences!r}{dropped}; {meaning}")
