"""Load data from uploads and from server files below the allowed folders."""

from __future__ import annotations

import bisect
import functools
import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from podium.core.errors import InputError, ParameterError, PodiumError, capture_warnings
from podium.core.optional import require_module
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.storage.allowed_paths import resolve_inside
from podium.storage.files import Source, open_source
from podium.studio.form_fields import select_reading_options, spell_option
from podium.studio.import_plan import FilePlan, read_planned, read_texts
from podium.studio.item_texts import ItemText
from podium.studio.limits import TooLarge, bounded_decompress, check_id_lengths
from podium.studio.settings import Limits
from podium.studio.store import Project, Store

MOST_FILES = 2_000  # files read per folder
CELL = 4  # minimum bytes in memory per Parquet cell


@dataclass(frozen=True, eq=False)
class ProjectData:
    """The content of an input, and notes for its reader."""

    preferences: Preferences
    labels: Labels | None = None
    features: Features | None = None
    seconds: Mapping[Id, Any] | None = None
    notes: tuple[str, ...] = ()
    texts: Mapping[str, ItemText] = field(default_factory=dict)  # by item id

    @functools.cached_property
    def fingerprint(self) -> str:
        """A digest of all content."""
        from podium.data.dataset import Dataset
        from podium.storage.digests import digest_dataset

        return digest_dataset(Dataset(self.preferences, self.labels, self.features))

    @functools.cached_property
    def kinds(self) -> frozenset[str]:
        """The extra views that apply: "leaderboard" for votes, "annotators" for judges."""
        from podium.reporting.inputs import has_board, is_crowd

        checks = {"leaderboard": has_board, "annotators": is_crowd}
        return frozenset(name for name, check in checks.items() if check(self.preferences))


def open_input(
    inputs: Sequence[Path | tuple[str, bytes]], options: Mapping[str, Any] | None = None
) -> ProjectData:
    """Read files together: paths, or names with bytes. Names are used only in messages and as expert ids.

    >>> open_input([("a.run", b"q1 Q0 d1 1 2.5 bm25\\n")]).preferences
    Preferences(1 query, 1 item, 1 expert, 1 list of 1 row)
    """
    from podium import formats

    if not inputs:
        raise ParameterError("no file; choose at least one")
    given = select_reading_options(options or {})
    encoding = given.pop("encoding", "utf-8")
    with capture_warnings(spell_option) as notes:
        # the full path of a file on the server is not shown
        sources = [
            Source(*i, encoding) if isinstance(i, tuple) else replace(open_source(i, encoding), name=i.name)
            for i in inputs
        ]
        try:
            content = formats.read(sources, given.pop("format", None), **given)
        except RecursionError:
            raise InputError(
                "the input is nested too deeply", remedy="give a table with one row per line"
            ) from None
    if content.preferences is None:
        got = "labels" if content.labels is not None else "features"
        raise InputError(f"the input contains only {got}", remedy="add runs, ratings or votes")
    if not len(content.preferences) or not content.preferences.forms:
        raise InputError("the input contains no lists or votes", remedy="give runs, ratings or votes")
    check_id_lengths(Limits(), content.preferences)
    notes += content.summary.splitlines()
    return ProjectData(content.preferences, content.labels, content.features, content.seconds, tuple(notes))


def open_labels(data: ProjectData, files: Sequence[tuple[str, bytes]], *, check: bool = False) -> ProjectData:
    """Add the labels of further files, read separately; with `check`, some must match items of the data.

    >>> data = open_input([("a.run", b"q1 Q0 d1 1 2.5 bm25\\n")])
    >>> open_labels(data, [("qrels", b"q1 0 d1 1\\n")]).labels
    Labels(1 query, 1 judged item, grades 1..1)
    """
    from podium.formats.base import Content, merge_contents

    known = () if data.labels is None else (data.labels,)
    with capture_warnings(spell_option) as notes:
        try:
            new = _read_labels(files)
            whole = merge_contents([Content(labels=labels) for labels in (*known, new)]).labels
        except InputError as error:
            if error.source is None or error.source in {name for name, _ in files}:
                raise
            # a row number over all files would mislead
            plain = InputError(error.problem, remedy=error.remedies)
            raise _build_duplicate_error(data.labels, files) or plain from None
    if check:  # refuse labels that match no item of the data
        here, there = data.preferences.index, new.index
        remedy = "ids are compared exactly, case and type included"
        shared = here.queries.codes_of(there.queries)
        if not (shared >= 0).any():
            ids = f"they have {there.queries[:3]}, the project has {here.queries[:3]}"
            raise InputError(f"the labels are for other queries: {ids}", remedy=remedy)
        if not (there.locate(here) >= 0).any():
            query = here.queries[int(shared[shared >= 0][0])]
            theirs, ours = (index.items[index.slots(query)][:3] for index in (there, here))
            ids = f"for query {query!r} they have {theirs}, the project has {ours}"
            raise InputError(f"the labels are for other items: {ids}", remedy=remedy)
    return replace(data, labels=whole, notes=(*data.notes, *notes))


def _read_labels(files: Sequence[tuple[str, bytes]]) -> Labels:
    """Read label files together."""
    from podium import formats

    try:
        new = formats.read([Source(*file) for file in files])
    except RecursionError:
        raise InputError("the input is nested too deeply", remedy="give a qrels file") from None
    if new.labels is None or new.preferences is not None:
        raise InputError(
            f"{files[0][0]} contains no labels, or other data besides labels",
            remedy="choose a qrels file, or a table of query, item and grade",
        )
    return new.labels


def _list_labeled_pairs(labels: Labels) -> list[tuple[Id, Id]]:
    index = labels.index
    return list(zip(index.queries.take(index.query_of_slot).tolist(), index.items.tolist(), strict=True))


def _build_duplicate_error(known: Labels | None, files: Sequence[tuple[str, bytes]]) -> InputError | None:
    """The error for an item labeled in one of these files and elsewhere too; None if there is none."""
    owner = {} if known is None else dict.fromkeys(_list_labeled_pairs(known), "the project")
    for name, content in files:
        pairs = _list_labeled_pairs(_read_labels([(name, content)]))
        if not owner.keys().isdisjoint(pairs):
            line, (query, item) = _find_first_line(name, content, owner.keys())
            return InputError(
                f"item {item!r} is labeled twice for query {query!r}: it already has a label in {owner[query, item]}",
                source=name,
                line=line,
                remedy="keep one label per item",
            )
        owner |= dict.fromkeys(pairs, name)
    return None


def _find_first_line(
    name: str, content: bytes, taken: Set[tuple[Id, Id]]
) -> tuple[int | None, tuple[Id, Id]]:
    """The first line with a label for a pair in `taken`, and the pair; no line for files not read by line."""
    lines = content.splitlines(keepends=True)

    def find_clashes(count: int) -> list[tuple[Id, Id]]:
        try:
            labels = _read_labels([(name, b"".join(lines[:count]))])
        except PodiumError:  # only a header, or a truncated object
            return []
        return [pair for pair in _list_labeled_pairs(labels) if pair in taken]

    at = bisect.bisect_left(range(len(lines)), True, key=lambda count: bool(find_clashes(count)))
    pair = find_clashes(at)[0]
    return at if str(pair[1]).encode() in lines[at - 1] else None, pair


def unpack_upload(name: str, content: bytes, limits: Limits) -> bytes:
    """The bytes of an upload for the readers; refused if they decompress beyond the limits."""
    data = bounded_decompress(content, limits)
    if data[:4] != b"PAR1":
        return data
    # a few bytes of Parquet may encode millions of rows
    pa = require_module("pyarrow")
    pq = require_module("pyarrow.parquet")
    try:
        about = pq.read_metadata(pa.BufferReader(data))
        groups = [about.row_group(g) for g in range(about.num_row_groups)]
        size = max(about.num_rows * about.num_columns * CELL, sum(g.total_byte_size for g in groups))
        if 0 <= size <= limits.decompressed_bytes:
            size = _count_text_bytes(data)
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        raise InputError("the Parquet file is damaged", source=name, remedy="write it again") from None
    if size > limits.decompressed_bytes or about.num_rows < 0:
        raise TooLarge(
            f"the Parquet file decompresses to more than {limits.decompressed_bytes:,} bytes",
            source=name,
            remedy="send less at a time",
        )
    return data


def _count_text_bytes(content: bytes) -> int:
    """Total bytes of text over all cells: dictionary encoding may store a long text once for every row."""
    pa = require_module("pyarrow")
    pc = require_module("pyarrow.compute")
    pq = require_module("pyarrow.parquet")
    schema = pq.ParquetFile(pa.BufferReader(content)).schema
    leaves = [schema.column(n) for n in range(len(schema))]
    if any(leaf.max_repetition_level for leaf in leaves):
        raise pa.ArrowInvalid("list cells may have any length, and no reader supports them")
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    file, size = pq.ParquetFile(pa.BufferReader(content), read_dictionary=texts), 0
    for group in range(file.num_row_groups):
        for column in file.read_row_group(group, columns=texts).columns:
            for chunk in column.chunks:
                if isinstance(chunk, pa.DictionaryArray):
                    lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
                    size += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    return size


def load_project(store: Store, project: Project, roots: Sequence[Path]) -> ProjectData:
    """Read the data of a project."""
    if project.kind == "demo":
        from podium.data.demo import demo

        data = demo()
        return ProjectData(data.preferences, data.labels)
    inputs: list[Path | tuple[str, bytes]] = []
    added: list[tuple[str, bytes]] = []
    texts: dict[str, ItemText] = {}
    for file in project.files:
        if file.digest is not None:
            content = store.blob_path(file.digest).read_bytes()
            if file.digest in project.options.get("texts", ()):
                texts |= read_texts(Source(file.name, content), FilePlan(use="texts"))
            else:
                later = file.digest in project.options.get("labels", ())
                (added if later else inputs).append((file.name, content))
        elif file.path is not None:
            inputs.append(recheck_allowed_path(roots, file.path))
    if not inputs:
        raise InputError("the project has no files", remedy="open them again")
    if "plan" in project.options:
        project_data = open_planned(read_inputs(inputs), parse_plans(project.options))
    else:
        project_data = open_input(inputs, project.options)
    notes = (*project.options.get("notes", ()), *project_data.notes)
    project_data = replace(project_data, notes=notes, texts={**project_data.texts, **texts})
    return open_labels(project_data, added) if added else project_data


def list_inputs(store: Store, project: Project, roots: Sequence[Path]) -> list[tuple[str, bytes]]:
    """The files of a project as they were opened: names and bytes, without those added later."""
    later = {*project.options.get("labels", ()), *project.options.get("texts", ())}
    inputs: list[Path | tuple[str, bytes]] = []
    for file in project.files:
        if file.path is not None:
            inputs.append(recheck_allowed_path(roots, file.path))
        elif file.digest is not None and file.digest not in later:
            inputs.append((file.name, store.blob_path(file.digest).read_bytes()))
    return read_inputs(inputs)


def read_inputs(inputs: Sequence[Path | tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Names and decompressed bytes."""
    return [i if isinstance(i, tuple) else (i.name, bytes(open_source(i).raw)) for i in inputs]


def parse_plans(options: Mapping[str, Any]) -> list[FilePlan]:
    """The plan of every file of a project."""
    return [FilePlan.from_dict(values) for values in options.get("plan", ())]


def open_planned(files: Sequence[tuple[str, bytes]], plans: Sequence[FilePlan]) -> ProjectData:
    """Read the files of a project as planned on the Data page."""
    content = read_planned(files, plans)
    if content.preferences is None:
        got = "labels" if content.labels is not None else "features"
        raise InputError(f"the input contains only {got}", remedy="add runs, ratings or votes")
    check_id_lengths(Limits(), content.preferences)
    return ProjectData(
        content.preferences, content.labels, content.features, content.seconds, content.notes, content.texts
    )


# -- files on the server -------------------------------------------------------------------------------------------


def resolve_allowed_path(roots: Sequence[Path], root: int, inside: str) -> Path:
    """Resolve a file or folder below a root, following links; refuse missing ones and those outside."""
    inside_root = resolve_inside(roots[root], inside) if 0 <= root < len(roots) else None
    if inside_root is None:
        raise InputError("no such file in the folders that the server may show")
    return inside_root


def recheck_allowed_path(roots: Sequence[Path], path: str) -> Path:
    """A previously opened path, if it is still below a root."""
    for number, root in enumerate(roots):
        try:
            inside = os.path.relpath(path, root.resolve())
            return resolve_allowed_path(roots, number, "" if inside == "." else inside)
        except InputError:
            continue
    raise InputError(
        f"{Path(path).name} is not in the folders that this server may show",
        remedy="start podium serve with its folder",
    )


def _list_inside_roots(roots: Sequence[Path], folder: Path) -> tuple[list[tuple[str, Path]], list[str]]:
    """The entries of a folder by name, links resolved, that are below the roots; and the names of the others.

    For targets outside the roots only the name is returned: they must not be accessed, even for their type.
    """
    kept, outside = [], []
    for entry in sorted(p for p in folder.iterdir() if not p.name.startswith("."))[:MOST_FILES]:
        try:
            kept.append((entry.name, recheck_allowed_path(roots, str(entry.resolve()))))
        except (InputError, OSError, RuntimeError):  # a link that is external, broken or circular
            outside.append(entry.name)
    return kept, outside


def list_folder(roots: Sequence[Path], folder: Path) -> list[tuple[str, bool]]:
    """Names in a folder, folders first (True), without hidden ones and links out of the roots."""
    entries = [(name, place.is_dir()) for name, place in _list_inside_roots(roots, folder)[0]]
    return sorted(entries, key=lambda pair: (not pair[1], pair[0]))


def find_readable_files(
    roots: Sequence[Path], path: Path, encoding: str = "utf-8"
) -> tuple[list[Path], list[str]]:
    """The readable files of a folder (or the file itself), and notes on those skipped."""
    from podium import formats

    if path.is_file():
        return [path], []
    entries, outside = _list_inside_roots(roots, path)
    kept: list[Path] = []
    left_out = [f"{name} was skipped: it links to a place that this server may not show" for name in outside]
    for name, place in entries:
        if not place.is_file():
            continue
        if place in kept:
            left_out.append(f"{name} was skipped: it links to {place.name}, which is already opened")
            continue
        try:
            formats.sniff(place, encoding)
            kept.append(place)
        except PodiumError as error:
            why = error.format_message(spell_option).removeprefix(f"{place}: ")
            left_out.append(f"{name} was skipped: {why}")
    if not kept:
        raise InputError(
            "no file in this folder can be read", remedy="choose a folder of runs, ratings or votes"
        )
    return kept, left_out
