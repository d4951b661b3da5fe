"""Readers and writers: TREC, LETOR, PrefLib, tables, the files of other tools; see `podium.formats.read`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from podium.core.errors import ParameterError, PodiumWarning
from podium.core.registry import formats
from podium.data.consensus import Consensus
from podium.data.dataset import Dataset
from podium.data.features import Features
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.formats.base import Content, Format, merge_contents, refuse_mixed_readings, to_content
from podium.formats.detection import detect_format, resolve_by_suffix
from podium.storage.files import Source, open_source, write_atomically

# for type checkers, which cannot ask the registry; a test compares the two
if TYPE_CHECKING:
    from podium.formats.csv_format import Csv
    from podium.formats.jsonl import JsonLines
    from podium.formats.letor import Letor
    from podium.formats.parquet import Parquet
    from podium.formats.preflib import PrefLib
    from podium.formats.recipes.argilla import Argilla
    from podium.formats.recipes.crowd_tables import CrowdKit, MechanicalTurk, Toloka
    from podium.formats.recipes.elections import Abif, Blt, MatchingData
    from podium.formats.recipes.harness_results import LmEval
    from podium.formats.recipes.judge_files import AlpacaEval, ArenaHard, MtBenchPairs, MtBenchSingle
    from podium.formats.recipes.label_studio import LabelStudio
    from podium.formats.recipes.preference_data import HelpSteer, Trl, UltraFeedback
    from podium.formats.recipes.retrieval import Beir, MsMarco, RanxQrels, RanxRun, SearchResponse
    from podium.formats.recipes.task_annotations import Doccano, Prodigy
    from podium.formats.recipes.wide_table import WideTable
    from podium.formats.trec import Qrels, TrecRun
    from podium.formats.win_counts import WinCounts

__all__ = [
    "Abif",
    "AlpacaEval",
    "ArenaHard",
    "Argilla",
    "Beir",
    "Blt",
    "Content",
    "CrowdKit",
    "Csv",
    "Doccano",
    "Format",
    "HelpSteer",
    "JsonLines",
    "LabelStudio",
    "Letor",
    "LmEval",
    "MatchingData",
    "MechanicalTurk",
    "MsMarco",
    "MtBenchPairs",
    "MtBenchSingle",
    "Parquet",
    "PrefLib",
    "Prodigy",
    "Qrels",
    "RanxQrels",
    "RanxRun",
    "SearchResponse",
    "Toloka",
    "TrecRun",
    "Trl",
    "UltraFeedback",
    "WideTable",
    "WinCounts",
    "read",
    "sniff",
    "write",
]

IMPORTED_FIRST = (
    "podium.formats.csv_format",
    "podium.formats.trec",
)  # the most common formats are detected first

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
        groups.setdefault(format or detect_format(source, options), []).append(source)
    readers: dict[str, Format] = {name: formats.get(name)() for name in groups}
    # files of several formats may be read at once: an option applies to those that have it
    known = {name: set(reader.options("read")) for name, reader in readers.items()} if options else {}
    for option in options:
        if not any(option in accepted for accepted in known.values()):
            next(iter(readers.values())).check_options("read", {option: None})  # raises the error
    contents = []
    for name, group in groups.items():
        own = {option: value for option, value in options.items() if option in known[name]}
        content = readers[name].read(group, **readers[name].check_options("read", own))
        contents.append((group[0].name, content))
    refuse_mixed_readings(contents)
    return merge_contents([content for _, content in contents])


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
    if content.labels is not None and content.labels.kind == "rankings":
        warnings.warn("rankings are written as grades, and read again as such", PodiumWarning, stacklevel=2)
    writer: Format = formats.get(format or resolve_by_suffix(os.fspath(path), content))()
    options = writer.check_options("write", options)
    write_atomically(writer.write(content, **options), path, overwrite=overwrite)


def sniff(path: Path, encoding: str = "utf-8", **options: Any) -> str:
    """Detect the format of a file, as `read` does with these options; returns its name."""
    return detect_format(open_source(path, encoding), options)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """The formats, by class name."""
        return formats.get_class(name, __name__)
