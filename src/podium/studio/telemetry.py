"""Prometheus metrics and log lines: routes, methods, status codes, durations and causes, never user data."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

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
        self.watch("podium_requests_running", "Requests in progress", lambda: self.running)
        self.receiving = 0  # requests whose body is arriving
        self.watch("podium_requests_receiving", "Requests whose body arrives", lambda: self.receiving)
        self.computing = Gauge(
            "podium_computations_running", "Computations in progress", registry=self._registry
        )
        self.received_bytes = 0  # of all bodies
        self.watch("podium_received_bytes", "Bytes of bodies received", lambda: self.received_bytes)
        self.uploads = 0  # that are being read
        self.watch("podium_uploads_running", "Uploads being read", lambda: self.uploads)
        self._uploads = Counter("podium_uploads", "Uploads read", registry=self._registry)
        self._canceled = Counter(
            "podium_computations_canceled", "Computations whose process was killed", registry=self._registry
        )
        self._task_seconds = Histogram(
            "podium_computation_seconds", "Time of computations in processes", buckets=SECONDS,
            registry=self._registry,
        )  # fmt: skip

    def watch(self, name: str, description: str, read: Callable[[], float]) -> None:
        """Add a gauge whose value is read when the metrics are."""
        Gauge(name, description, registry=self._registry).set_function(read)

    def watch_states(self, name: str, description: str, read: Callable[[], dict[str, int]]) -> None:
        """Add a gauge with one value per state, read when the metrics are."""
        from prometheus_client.core import GaugeMetricFamily

        class StateCollector:
            def collect(self) -> list[Any]:
                family = GaugeMetricFamily(name, description, labels=["state"])
                for state, count in read().items():
                    family.add_metric([state], count)
                return [family]

        self._registry.register(StateCollector())

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        key = (method if method in METHODS else "other", route, status)
        meters = self._meters.get(key)
        if meters is None:
            meters = self._meters[key] = self._requests.labels(*map(str, key)), self._seconds.labels(route)
        meters[0].inc()
        meters[1].observe(seconds)

    def count_upload(self, change: int) -> None:
        """Count an upload that begins (1) or ends (-1)."""
        self.uploads += change
        if change > 0:
            self._uploads.inc()

    def count_canceled(self) -> None:
        """Count a computation whose process was killed."""
        self._canceled.inc()

    def observe_task(self, seconds: float) -> None:
        """Record the time of a computation in a process."""
        self._task_seconds.observe(seconds)

    def text(self) -> bytes:
        """All metrics in the Prometheus text format."""
        return generate_latest(self._registry)


METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


_log = logging.getLogger("podium.studio")


def log_request(method: str, route: str, status: int, seconds: float, size: int, **more: str | None) -> None:
    """Log one request; `route` is the pattern, so ids in the URL are not logged; `more`: request id, view, cause."""
    if _log.isEnabledFor(logging.INFO):
        fields = {name: value for name, value in more.items() if value}
        extra = {
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "bytes": size,
        }
        words = "".join(f" {name}={value}" for name, value in fields.items())
        message = f"{method} {route} {status} {seconds * 1000:.1f} ms {size} bytes{words}"
        _log.info(message, extra={"fields": extra | fields})


def describe_failure(error: BaseException) -> str:
    """Type and location of an internal error. The message is omitted; it may contain user data."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    where = " < ".join(f"{f.filename.rpartition('podium/')[2]}:{f.lineno}" for f in reversed(frames))
    number = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
    return f"{type(error).__name__}{number} at {where}"


def log_failure(route: str, cause: str, request_id: str = "") -> None:
    """Log an internal error by its cause, from `describe_failure`."""
    fields = {"route": route, "cause": cause, "request": request_id}
    _log.error("%s failed: %s", route, cause, extra={"fields": fields})


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, and the fields of the request, or a message."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        fields = getattr(record, "fields", None) or {"message": record.getMessage()}
        return json.dumps({"at": at, "level": record.levelname.lower()} | fields)


def log_to_stderr(quiet: bool = False, style: str = "text") -> None:
    """Send log lines to standard error, as text or as JSON; `quiet` keeps only errors."""
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if style == "json" else plain)
    _log.handlers = [handler]
    _log.setLevel(logging.ERROR if quiet else logging.INFO)
    _log.propagate = False
