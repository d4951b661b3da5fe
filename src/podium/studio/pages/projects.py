"""Open projects: the embedded data, an upload, files on the server; list recent ones."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from podium.core.errors import ParameterError, PodiumError
from podium.core.tables import Grid
from podium.formats.detection import detect_format
from podium.reporting.blocks import ReportTable
from podium.storage.files import Source
from podium.studio.form_fields import parse_entered_options
from podium.studio.import_plan import suggest_plans
from podium.studio.limits import TooLarge
from podium.studio.loading import (
    find_readable_files,
    list_folder,
    load_project,
    open_input,
    open_labels,
    resolve_allowed_path,
    unpack_upload,
)
from podium.studio.pages.navigation import choose_first_view
from podium.studio.pages.render import format_time
from podium.studio.settings import ServerSettings
from podium.studio.store import Project, Store

FILES = 500  # in one upload
NAME = 200  # characters
ORIGINS = {"demo": "built in", "upload": "upload", "files": "server"}
ENDINGS = re.compile(r"(\.[a-z]{1,7}){1,2}$")  # of the names of files
SHORTEST = 4  # characters of a common beginning that names a project


class OpenedProject(NamedTuple):
    """A new project, and the view that suits its data."""

    id: str
    view: str


def open_upload(
    store: Store, settings: ServerSettings, files: Sequence[tuple[str, bytes]], options: dict[str, str]
) -> OpenedProject:
    """Create a project from an upload; files that are no data at all are refused and not stored.

    Files that cannot be read as they are get a plan with guessed roles, which the Data page shows and changes.
    """
    plain, given = unpack_files(settings, files), parse_entered_options(options)
    stored: dict[str, Any] = dict(given)
    view = "data"  # where a reading with guessed roles is shown before it is used
    try:
        view = choose_first_view(open_input(plain, given))
        if not given and any(detect_wide_table(*file) for file in plain):
            plans = suggest_plans(plain)
            if any(plan.roles for plan in plans):
                stored, view = {"plan": [plan.to_dict() for plan in plans], "guessed": True}, "data"
    except TooLarge:
        raise
    except PodiumError:
        plans = suggest_plans(plain)
        if given or all(plan.use in ("ignore", "texts") for plan in plans):
            raise
        stored = {"plan": [plan.to_dict() for plan in plans], "guessed": True}
    return OpenedProject(store.add_upload(name_project([name for name, _ in plain]), plain, stored), view)


def detect_wide_table(name: str, content: bytes) -> bool:
    """Whether a file is read as a wide table, whose rows and columns are easily mistaken."""
    try:
        return detect_format(Source(name, content), {}) == "wide"
    except PodiumError:
        return False


def name_project(names: Sequence[str]) -> str:
    """A name for a project of these files: what their names have in common, or the first of them.

    >>> name_project(["robust03.qrels", "robust03.tsv"]), name_project(["A1.txt", "B.csv", "C.csv"])
    ('robust03', 'A1 and 2 more')
    """
    pairs = zip(min(names), max(names), strict=False)  # what these two share, all names between them do
    same = "".join(a for a, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    common = same if len(names) > 1 else ""
    if len(common.rstrip("._- 0123456789")) >= SHORTEST:
        return common.rstrip("._- ")
    first = ENDINGS.sub("", names[0]) or names[0]
    return first + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def add_labels(
    store: Store,
    settings: ServerSettings,
    project: str,
    files: Sequence[tuple[str, bytes]],
    encoding: str = "",
) -> None:
    """Add labels to an existing project; labels that do not match it are refused and not stored.

    They are stored as UTF-8, so their encoding need not be stored.
    """
    project_record = store.project(project)
    if project_record.kind == "demo":
        raise ParameterError(
            "the embedded data already have labels and cannot be changed; upload your own files"
        )
    plain = [(n, Source(n, c, encoding).data if encoding else c) for n, c in unpack_files(settings, files)]
    open_labels(load_project(store, project_record, settings.roots), plain, check=True)
    store.add_labels(project, plain, project_record.options.get("labels", []))


def unpack_files(settings: ServerSettings, files: Sequence[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Files for the readers: plain names, decompressed, within the limits on number and total size."""
    if not files:
        raise ParameterError("no file; choose at least one")
    if len(files) > FILES:
        raise ParameterError(f"{len(files)} files are selected; accepted: up to {FILES} per upload")
    plain, left = [], settings.limits.decompressed_bytes
    for given, content in files:  # the remaining budget keeps many small decompression bombs from adding up
        # the last part of the name; used only for display and as an expert id
        last = given.replace("\\", "/").rsplit("/", 1)[-1]
        name = "".join(ch for ch in last if ch.isprintable())[:NAME] or "upload"
        data = unpack_upload(name, content, replace(settings.limits, decompressed_bytes=max(left, 1)))
        left -= len(data)
        if left < 0:
            raise TooLarge("the files are too large in total", remedy="open them from a folder on the server")
        plain.append((name, data))
    return plain


def open_path(
    store: Store, settings: ServerSettings, root: int, inside: str, options: dict[str, str]
) -> OpenedProject:
    """Create a project from a file or folder below a root; skipped files are noted."""
    path = resolve_allowed_path(settings.roots, root, inside)
    given: dict[str, Any] = parse_entered_options(options)
    files, left_out = find_readable_files(settings.roots, path, given.get("encoding", "utf-8"))
    view = choose_first_view(open_input(files, given))
    return OpenedProject(store.add_paths(path.name or str(path), files, given | {"notes": left_out}), view)


def browse_folder(settings: ServerSettings, root: int, inside: str) -> dict[str, Any]:
    """The entries of a folder below a root; a file yields itself."""
    path, base = resolve_allowed_path(settings.roots, root, inside), settings.roots[root].resolve()
    here = "" if path == base else path.relative_to(base).as_posix()
    if path.is_dir():
        entries = [
            (name, f"{here}/{name}" if here else name, folder)
            for name, folder in list_folder(settings.roots, path)
        ]
    else:
        entries = [(path.name, here, False)]
    parent = str(PurePosixPath(here).parent)
    up = None if not here else "" if parent == "." else parent
    whole = path.is_dir()
    return {"root": root, "here": here, "title": path.name, "entries": entries, "up": up, "whole": whole}


def tabulate_projects(known: Sequence[Project]) -> tuple[ReportTable, list[str]]:
    """The projects with their first pages."""
    rows = tuple((p.name, ORIGINS[p.kind], format_time(p.made)) for p in known)
    return ReportTable(Grid(("project", "from", "opened"), rows, 3, "Projects")), [
        f"/p/{p.id}" for p in known
    ]


def list_roots(settings: ServerSettings) -> list[tuple[int, str]]:
    """The roots by number and name."""
    return [(n, Path(root).name or str(root)) for n, root in enumerate(settings.roots)]
