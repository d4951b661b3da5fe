"""Log lines: route, status and duration; never ids, paths, contents or messages."""

from __future__ import annotations

import logging
import sys
import traceback

__all__ = ["log_failure", "log_request", "log_to_stderr"]

_log = logging.getLogger("podium.studio")


def log_request(method: str, route: str, status: int, seconds: float, size: int) -> None:
    """Log one request; `route` is the pattern, so ids in the URL are not logged."""
    _log.info("%s %s %d %.1f ms %d bytes", method, route, status, seconds * 1000, size)


def log_failure(route: str, error: BaseException) -> None:
    """Log an internal error: type and location. The message is omitted; it may contain user data."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    where = " < ".join(f"{f.filename.rpartition('podium/')[2]}:{f.lineno}" for f in reversed(frames))
    _log.error("%s failed: %s at %s", route, type(error).__name__, where)


def log_to_stderr(quiet: bool = False) -> None:
    """Send log lines to standard error; `quiet` keeps only errors."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    _log.handlers = [handler]
    _log.setLevel(logging.ERROR if quiet else logging.INFO)
    _log.propagate = False
