"""Ways in: the embedded data, an upload, files on the server; and what was opened before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from podium.core.errors import ParameterError
from podium.storage.files import Source
from podium.studio.form_fields import parse_entered_options
from podium.studio.limits import TooLarge
from podium.studio.loading import (
    find_readable_files,
    list_folder,
    open_input,
    open_labels,
    resolve_allowed_path,
    unpack_upload,
)
from podium.studio.settings import ServerSettings
from podium.studio.store import Store
from podium.studio.workspace import load_project

__all__ = ["add_labels", "browse_folder", "open_path", "open_upload"]

FILES = 500  # in one upload
NAME = 200  # characters


def open_upload(
    store: Store, settings: ServerSettings, files: Sequence[tuple[str, bytes]], options: dict[str, str]
) -> str:
    """A project from what a browser sent; what cannot be read is refused, and nothing is kept of it."""
    plain, given = _unpack_files(settings, files), parse_entered_options(options)
    open_input(plain, given)
    return store.add_upload(_title([n for n, _ in plain]), plain, given)


def add_labels(
    store: Store,
    settings: ServerSettings,
    project: str,
    files: Sequence[tuple[str, bytes]],
    encoding: str = "",
) -> None:
    """Labels for a project that is there; what does not fit it is refused, and nothing is kept of it.

    They are kept as UTF-8, so that nobody has to remember their encoding.
    """
    found = store.project(project)
    if found.kind == "demo":
        raise ParameterError("the embedded data have labels, and stay as they are; upload files of your own")
    plain = [(n, Source(n, c, encoding).data if encoding else c) for n, c in _unpack_files(settings, files)]
    open_labels(load_project(store, found, settings.roots), plain, check=True)
    store.add_labels(project, plain, found.options.get("labels", []))


def _unpack_files(settings: ServerSettings, files: Sequence[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Files as the readers take them: with plain names, unpacked, not too many and not too large together."""
    if not files:
        raise ParameterError("no file was chosen; choose at least one")
    if len(files) > FILES:
        raise ParameterError(f"{len(files)} files were chosen; accepted: up to {FILES} at a time")
    named = [(_clean_file_name(name), content) for name, content in files]
    plain, left = [], settings.limits.decompressed_bytes
    for name, content in named:  # what is left for each keeps many small bombs from adding up
        found = unpack_upload(name, content, replace(settings.limits, decompressed_bytes=max(left, 1)))
        left -= len(found)
        if left < 0:
            raise TooLarge("the files together are too large", remedy="open them from a folder of the server")
        plain.append((name, found))
    return plain


def open_path(store: Store, settings: ServerSettings, root: int, inside: str, options: dict[str, str]) -> str:
    """A project from a file or a folder below a root; what was left out of a folder is noted."""
    path = resolve_allowed_path(settings.roots, root, inside)
    given: dict[str, Any] = parse_entered_options(options)
    files, left_out = find_readable_files(settings.roots, path, given.get("encoding", "utf-8"))
    open_input(files, given)
    return store.add_paths(path.name or str(path), files, given | {"notes": left_out})


def browse_folder(settings: ServerSettings, root: int, inside: str) -> dict[str, Any]:
    """What is in a folder below a root; a file is the only one in its list."""
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
    return {
        "root": root,
        "here": here,
        "title": path.name,
        "entries": entries,
        "up": up,
        "whole": path.is_dir(),
    }


def _clean_file_name(name: str) -> str:
    """The last part of a name that a browser sent; it is shown, and names experts, and nothing else."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(ch for ch in last if ch.isprintable())[:NAME] or "upload"


def _title(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def list_roots(settings: ServerSettings) -> list[tuple[int, str]]:
    """The roots by number and name."""
    return [(n, Path(root).name or str(root)) for n, root in enumerate(settings.roots)]
