"""Readers and writers: TREC, LETOR, PrefLib, tables (CSV, JSONL, Parquet); see `podium.formats.read`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podium.core.errors import InputError, Option, ParameterError
from podium.core.registry import formats
from podium.data.consensus import Consensus
from podium.data.dataset import Dataset
from podium.data.features import Features
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.formats.base import Content, Format, merge_contents, to_content
from podium.storage.files import Source, open_source, write_atomically

# for type checkers, which cannot ask the registry; a test compares the two
if TYPE_CHECKING:
    from podium.formats.csv_format import Csv
    from podium.formats.jsonl import JsonLines
    from podium.formats.letor import Letor
    from podium.formats.parquet import Parquet
    from podium.formats.preflib import PrefLib
    from podium.formats.trec import Qrels, TrecRun
    from podium.formats.win_counts import WinCounts

__all__ = [
    "Content",
    "Csv",
    "Format",
    "JsonLines",
    "Letor",
    "Parquet",
    "PrefLib",
    "Qrels",
    "TrecRun",
    "WinCounts",
    "read",
    "sniff",
    "write",
]

Path = str | os.PathLike[str]


def read(
    paths: Path | Sequence[Path | Source],
    format: str | None = None,
    *,
    encoding: str = "utf-8",
    **options: Any,
) -> Content:
    """Read one or more files (`-` is standard input; gzip is decompressed); detect the format unless given.

    Files of different formats may be read together: runs and their qrels give preferences with labels. A
    `Source` holds bytes that are already in memory.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise ParameterError("no input file given")
    sources = [path if isinstance(path, Source) else open_source(path, encoding) for path in given]
    groups: dict[str, list[Source]] = {}
    for source in sources:
        groups.setdefault(format or _detect_format(source, options), []).append(source)
    readers: dict[str, Format] = {name: formats.get(name)() for name in groups}
    # files of several formats may be read at once: an option applies to those that have it
    known = {name: set(reader.options("read")) for name, reader in readers.items()}
    for option in options:
        if not any(option in accepted for accepted in known.values()):
            next(iter(readers.values())).check_options("read", {option: None})  # raises the error
    contents = []
    for name, group in groups.items():
        own = {option: value for option, value in options.items() if option in known[name]}
        contents.append(readers[name].read(group, **readers[name].check_options("read", own)))
    return merge_contents(contents)


def write(
    thing: Content | Dataset | Preferences | Labels | Features | Consensus,
    path: Path,
    format: str | None = None,
    *,
    overwrite: bool = False,
    **options: Any,
) -> None:
    """Write to a file (or `-`) atomically; the format follows from the suffix unless given."""
    content = to_content(thing, tag=options.pop("tag", "podium"))
    writer: Format = formats.get(format or _resolve_by_suffix(os.fspath(path), content))()
    options = writer.check_options("write", options)
    write_atomically(writer.write(content, **options), path, overwrite=overwrite)


def sniff(path: Path, encoding: str = "utf-8") -> str:
    """Detect the format of a file from its first lines and its suffix; returns its name."""
    return _detect_format(open_source(path, encoding), {})


def _has_suffix(name: str, suffixes: tuple[str, ...]) -> bool:
    return name.lower().removesuffix(".gz").endswith(suffixes)


def _detect_format(source: Source, options: Mapping[str, Any]) -> str:
    known: dict[str, Format] = {name: cls() for name, cls in formats.all().items()}
    head = source.head()
    if source.encoding != "utf-8":
        head = Source(source.name, source.data).head()
    elif not head.startswith(b"PAR1"):
        head = Source(source.name, head).data if head.strip() else source.data
    sure = {
        name: f.sniff(head) * (1.0 if _has_suffix(source.name, f.suffixes) else 0.9)
        for name, f in known.items()
    }
    best = max(sure, key=lambda name: sure[name])
    if sure[best] >= 0.3:
        return best
    # no format matches the content: the options may fit only one format, or the file suffix may name one
    by_options = [name for name, f in known.items() if f.fits(head, options)]
    by_suffix = [name for name, f in known.items() if _has_suffix(source.name, f.suffixes)]
    if 1 in (len(by_options), len(by_suffix)):
        return by_options[0] if len(by_options) == 1 else by_suffix[0]
    first = head.split(b"\n", 1)[0][:80].decode(errors="replace").rstrip()
    raise InputError(
        f"cannot detect the format from the first line {first!r}",
        source=source.name,
        remedy=(
            "give ",
            Option("format"),
            f", one of {', '.join(known)}; for a table without a header also ",
            Option("columns"),
        ),
    )


def _resolve_by_suffix(path: str, content: Content) -> str:
    for name, cls in formats.all().items():
        if _has_suffix(path, cls.suffixes):
            return name
    able = [name for name, cls in formats.all().items() if cls.holds & content.parts] or list(formats.all())
    raise ParameterError(
        f"cannot detect the output format from the name {path!r}; give ",
        Option("format", of="writing"),
        f", one of {', '.join(able)}",
    )


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """The formats, by class name."""
        return formats.get_class(name, __name__)
