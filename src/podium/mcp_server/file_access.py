"""The files that a client may read and write: those below the folders that the server was started with."""

from __future__ import annotations

import contextlib
import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from podium.core.errors import InputError, ParameterError
from podium.core.text import format_count
from podium.storage.allowed_paths import resolve_inside

__all__ = ["FileAccess"]

MOST_FILES = 1_000  # that a pattern may match, and that a listing shows
PIECE = 1 << 20  # bytes


@dataclass(frozen=True)
class FileAccess:
    """Opens nothing outside `folders`; a link is judged by the place it leads to."""

    folders: tuple[Path, ...]
    write: bool = False  # whether tools may create files; none is ever replaced
    most_bytes: int = 256 << 20  # of all files of one call, decompressed

    def resolve_files(self, names: Sequence[str]) -> list[Path]:
        """The files with these names, which may be patterns such as `runs/*.run`; checks their total size."""
        paths: list[Path] = []
        for name in names:
            if not any(mark in name for mark in "*?[") or self._resolve(name) is not None:
                paths.append(self._resolve_existing(name))
                continue
            matches: list[Path] = []
            for folder in self.folders:
                pattern = os.path.relpath(name, folder) if os.path.isabs(name) else name
                if ".." not in Path(pattern).parts:
                    matches += sorted(path for path in folder.resolve().glob(pattern) if not path.is_dir())
            if not matches:
                raise self._build_refusal(name)
            if len(matches) > MOST_FILES:
                raise ParameterError(f"{name} matches {len(matches):,} files; accepted: up to {MOST_FILES:,}")
            paths += [self._resolve_existing(str(path)) for path in matches]
        if not paths:
            raise ParameterError("no input file; name at least one")
        repeated = next((path for path in paths if paths.count(path) > 1), None)
        if repeated is not None:
            raise InputError("the file is named twice", source=str(repeated), remedy="name it once")
        self._check_size(paths)
        return paths

    def resolve_file(self, name: str) -> Path:
        """The one file with this name."""
        path = self._resolve_existing(name)
        self._check_size([path])
        return path

    def resolve_new_file(self, name: str) -> Path:
        """Where a new file of this name goes: below the folders, and not yet there."""
        if not self.write:
            raise ParameterError(
                f"{name} cannot be written: the server was started to read only; start it with --write"
            )
        parent, last = os.path.split(name)
        for folder in self.folders:
            inside = resolve_inside(folder, parent) if last not in ("", ".", "..") else None
            if inside is None or not inside.is_dir():
                continue
            if os.path.lexists(inside / last):
                raise ParameterError(f"{name} exists; choose another name")
            return inside / last
        raise self._build_refusal(name)

    def list_files(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """Path and size of the files below the folders, or below one of their subfolders; no hidden ones."""
        bases = [inside for root in self.folders if (inside := resolve_inside(root, folder)) is not None]
        if not bases:
            raise self._build_refusal(folder)
        for base in bases:
            for place, subfolders, names in os.walk(base):
                subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
                for name in sorted(name for name in names if not name.startswith(".")):
                    path = Path(place, name)
                    if self._resolve(str(path)) is not None and path.is_file():
                        yield str(path), path.stat().st_size

    def _resolve_existing(self, name: str) -> Path:
        path = self._resolve(name)
        if path is None or not path.is_file():
            raise self._build_refusal(name)
        return path

    def _resolve(self, name: str) -> Path | None:
        places = (resolve_inside(folder, name) for folder in self.folders) if name else ()
        return next((path for path in places if path is not None), None)

    def _build_refusal(self, name: str) -> InputError:
        """One message for missing files and for those outside, so that a client cannot tell which files exist."""
        allowed = ", ".join(map(str, self.folders))
        return InputError(
            f"there is no such file below {allowed}",
            source=name,
            remedy="name a file in these folders, or start the server with another --folder",
        )

    def _check_size(self, paths: Sequence[Path]) -> None:
        left = self.most_bytes
        for path in paths:
            with open(path, "rb") as file:
                is_packed = file.read(2) == b"\x1f\x8b"
            if is_packed:
                # decompressed until the limit; the reader reports damaged data in its own words
                with contextlib.suppress(OSError, EOFError, zlib.error), gzip.open(path) as content:
                    while left >= 0 and (piece := content.read(PIECE)):
                        left -= len(piece)
            else:
                left -= path.stat().st_size
            if left < 0:
                size = format_count(self.most_bytes >> 20, "megabyte")
                raise InputError(
                    f"the files of one call have more than {size}",
                    source=str(path),
                    remedy="name fewer files, or start the server with a larger --file-mb",
                )
