"""Temporary files: locked while they are written, and removed by the next run if their writer was killed.

The lock belongs to the open file, and the system releases it when the process ends, however it ends: a
temporary file that can be locked has no writer. Names are predictable (`.x.csv.podium-0.tmp` for `x.csv`), so
the next writer of a target finds leftovers without scanning the folder. Without locks, nothing is removed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class TemporaryFile:
    """A file beside its target, with a temporary name until it is complete; removed if it is not published.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, TemporaryFile(Path(folder, "x.csv")) as file:
    ...     with file.open() as stream:
    ...         _ = stream.write(b"done")
    ...     file.publish()
    ...     os.listdir(folder)
    ['x.csv']
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self._is_closed = False
        self._file: int | None = None  # open as long as the lock is held
        numbered = (target.with_name(f".{target.name[:100]}.podium-{n}.tmp") for n in itertools.count())
        self.path = next(numbered)
        while (file := _create_locked(self.path)) is None:
            if not _remove_abandoned(self.path):
                self.path = next(numbered)  # another process is writing the same target
        self._file = file
        while _remove_abandoned(next(numbered)):
            pass
        if fcntl is None:
            self._release_lock()  # on Windows an open file cannot be renamed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def open(self) -> BinaryIO:
        """A stream to the file; reuses the descriptor that holds the lock, if there is one."""
        if self._file is None:
            return open(self.path, "wb")
        return os.fdopen(self._file, "wb", closefd=False)

    def publish(self, target: Path | None = None) -> None:
        """Rename the file to its target, atomically."""
        os.replace(self.path, target or self.target)
        self._is_closed = True
        self._release_lock()

    def discard(self) -> None:
        """Remove the file, unless it has been published."""
        if not self._is_closed:
            self.path.unlink(missing_ok=True)
            self._is_closed = True
        self._release_lock()

    def _release_lock(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file that marks work in progress."""
    file = os.open(path, os.O_RDWR)
    try:
        _lock_file(file, wait=True)
        yield
    finally:
        os.close(file)


def is_locked(path: Path) -> bool:
    """Whether a running process holds the lock of a file."""
    if fcntl is None:
        return False
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    return False


def _create_locked(path: Path) -> int | None:
    """A new file, open and locked; None if it exists, or if it was removed before it was locked."""
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
    except FileExistsError:
        return None
    _lock_file(file, wait=True)
    if _is_same_file(file, path):
        return file
    os.close(file)
    return None


def _remove_abandoned(path: Path) -> bool:
    """Remove a temporary file whose writer has ended; False if it does not exist or may have a writer.

    Only the process that holds the lock of the file at this path may remove it, hence the check.
    """
    try:
        file = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        if not _lock_file(file, wait=False) or not _is_same_file(file, path):
            return False
        path.unlink()
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def _is_same_file(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(file))
    except FileNotFoundError:
        return False


def _lock_file(file: int, *, wait: bool) -> bool:
    """Lock a file; False if another process holds the lock, or if the file system does not support locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True
