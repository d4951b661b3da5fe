"""Prometheus metrics and log lines: routes, methods, status codes and durations, never user data."""

from __future__ import annotations

import logging
import sys
import traceback

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class RequestMetrics:
    """The metrics of one server, with its own registry so that several servers fit in one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "podium_requests", "Requests answered", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "podium_request_seconds", "Time to answer", ["route"], buckets=SECONDS, registry=self._registry
        )
        # cached: lookup by label is slow
        self._meters: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.running = 0  # requests in progress, read when the metrics are
        running = Gauge("podium_requests_running", "Requests in progress", registry=self._registry)
        running.set_function(lambda: self.running)
        self.computing = Gauge(
            "podium_computations_running", "Computations in progress", registry=self._registry
        )

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        key = (method if method in METHODS else "other", route, status)
        meters = self._meters.get(key)
        if meters is None:
            meters = self._meters[key] = self._requests.labels(*map(str, key)), self._seconds.labels(route)
        meters[0].inc()
        meters[1].observe(seconds)

    def text(self) -> bytes:
        """All metrics in the Prometheus text format."""
        return generate_latest(self._registry)


METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


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
