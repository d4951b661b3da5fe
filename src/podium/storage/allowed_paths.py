"""Paths below a folder: what a server may open on behalf of its clients."""

from __future__ import annotations

from pathlib import Path

__all__ = ["resolve_inside"]


def resolve_inside(folder: Path, name: str) -> Path | None:
    """The file or folder of that name below a folder, links resolved; None if it is missing or lies outside.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.run").write_text("")
    ...     resolve_inside(Path(folder), "a.run").name, resolve_inside(Path(folder), "../a.run")
    ('a.run', None)
    """
    try:
        base = folder.resolve(strict=True)
        path = (base / name).resolve(strict=True) if name else base
    except (OSError, RuntimeError, ValueError):  # missing, a circle of links, or a name with a null byte
        return None
    return path if path == base or base in path.parents else None
