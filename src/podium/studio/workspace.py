"""In-memory cache of expensive values: project data, analyses, results, figures."""

from __future__ import annotations

import contextlib
import functools
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from podium.core.errors import PodiumError, capture_warnings
from podium.evaluate.method_screening import MethodScreen
from podium.studio.collected_votes import add_collected_votes, load_collected
from podium.studio.database import DEMO
from podium.studio.limits import TooLarge, check_pairs
from podium.studio.loading import ProjectData, load_project
from podium.studio.memory_estimates import estimate_bytes
from podium.studio.settings import ServerSettings
from podium.studio.store import Project, Store
from podium.studio.vote_store import VoteStore

DATA, INPUTS, RESULTS, CHARTS = 6, 24, 16, 120  # cached projects, analyses, results and figures


class FutureCache:
    """An LRU cache, bounded in values and bytes; concurrent requests for a value share one computation."""

    def __init__(self, most: int, most_bytes: int = 128 << 20) -> None:
        self._most, self.most_bytes = most, most_bytes
        self._sizes: dict[Hashable, int] = {}  # bytes of the values that are known
        self._values: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, key: Hashable, make: Callable[[], Any], pool: ThreadPoolExecutor | None = None
    ) -> Future[Any]:
        """The value, computed here (or in the pool) if absent; failures are not cached."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            future: Future[Any] = Future()
            self._values[key] = future
            while len(self._values) > self._most:
                self._sizes.pop(self._values.popitem(last=False)[0], None)
        if pool is None:
            self._compute_value(key, future, make)
        else:
            pool.submit(self._compute_value, key, future, make)
        return future

    def _compute_value(self, key: Hashable, future: Future[Any], make: Callable[[], Any]) -> None:
        try:
            with capture_warnings():  # warnings must not reach the log
                value = make()
            size = estimate_bytes(value)
            with self._lock:
                if self._values.get(key) is future:
                    self._sizes[key] = size
                    self._drop_oldest(key)
            future.set_result(value)
        except BaseException as error:
            with self._lock:
                if self._values.get(key) is future:
                    del self._values[key]
            future.set_exception(error)

    def _drop_oldest(self, newest: Hashable) -> None:
        """Drop the values that were used longest ago until the bytes fit; the newest one stays in any case."""
        for key in list(self._values):
            if sum(self._sizes.values()) <= self.most_bytes:
                return
            if key != newest and key in self._sizes:
                del self._values[key], self._sizes[key]

    def count_bytes(self) -> int:
        """The bytes of all values that are known."""
        with self._lock:
            return sum(self._sizes.values())


@dataclass
class Workspace:
    """State shared by all requests of a server."""

    store: Store
    settings: ServerSettings
    _data: FutureCache = field(default_factory=lambda: FutureCache(DATA))
    _inputs: FutureCache = field(default_factory=lambda: FutureCache(INPUTS))
    _results: FutureCache = field(default_factory=lambda: FutureCache(RESULTS))
    _charts: FutureCache = field(default_factory=lambda: FutureCache(CHARTS))
    _is_warm: bool = False
    _readers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "podium-reader"))
    _fusers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "podium-fuser"))
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "podium-studio"))
    _mergers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "podium-merger"))
    votes: VoteStore = field(init=False)

    def __post_init__(self) -> None:
        self.votes = VoteStore(self.store.folder)
        most = self.settings.limits.cache_bytes
        self._data.most_bytes = most // 2
        for cache in (self._inputs, self._results, self._charts):
            cache.most_bytes = most // 6

    def count_cached_bytes(self) -> int:
        """The bytes of all cached values."""
        return sum(c.count_bytes() for c in (self._data, self._inputs, self._results, self._charts))

    def warm_up(self) -> None:
        """Preload what the first page needs, unless processes compute the pages, which do that themselves."""
        if not self._is_warm and not self.settings.processes:
            self._is_warm = True
            self._pool.submit(self._load_first_page)

    def _load_first_page(self) -> None:
        from podium.evaluate import charts

        with contextlib.suppress(PodiumError):
            charts.import_altair()
            self.collect_inputs(self.data(self.store.project(DEMO)).result())

    def close(self) -> None:
        """Stop the threads."""
        for pool in (self._pool, self._readers, self._fusers, self._mergers):
            pool.shutdown(wait=False, cancel_futures=True)
        self.votes.close()

    def data(self, project: Project) -> Future[Any]:
        """A future of a project's data and collected votes; files on the server are re-read after changes."""
        stamp, plain = self.votes.compute_stamp(project.id), self.read_files(project)
        if not any(stamp):
            return plain
        merge = functools.partial(add_collected_votes, self.votes, project.id, plain.result)
        return self._data.get((*_read_stamps(project), stamp), merge, self._mergers)

    def read_files(self, project: Project) -> Future[Any]:
        """A future of the data in a project's files, without collected votes: not read again for every vote."""

        def load() -> ProjectData:
            if project.kind == "upload" and not project.files:
                return load_collected(self.votes, project.id)
            return load_project(self.store, project, self.settings.roots)

        return self._data.get(_read_stamps(project), load, self._readers)

    def collect_inputs(
        self, data: ProjectData, methods: Sequence[str] = (), metrics: Sequence[str] = ("ndcg@10", "map")
    ) -> Future[Any]:
        """A future of the report inputs."""
        key = (data.fingerprint, tuple(methods), tuple(metrics))
        return self._inputs.get(key, lambda: self._collect_inputs(data, methods, metrics), self._pool)

    def _collect_inputs(self, data: ProjectData, methods: Sequence[str], metrics: Sequence[str]) -> Any:
        from podium.reporting.inputs import ReportRequest, collect_inputs

        named = {m: self.method(m) for m in methods}
        for method in named.values():
            check_pairs(self.settings.limits, data.preferences, method)
        usual, large = self._screen_methods(data)
        words = ""  # why all-pairs analyses are skipped, if they are
        try:
            check_pairs(self.settings.limits, data.preferences)
        except TooLarge as error:
            words = str(error)
        request = ReportRequest(
            data.preferences,
            data.labels,
            data.features,
            data.seconds,
            named or usual.methods,
            tuple(metrics),
            learn=False,
            slow=() if named else usual.slow,
            pairs=not words,
        )
        absent = [*data.kinds, *(() if methods else large)] if words else []
        inputs = collect_inputs(request)
        return replace(
            inputs, warnings=(*inputs.warnings, *(f"{what} is left out: {words}" for what in absent))
        )

    def choose_methods(self, data: ProjectData) -> dict[str, Any]:
        """The default methods: those that suit the data and are not too expensive."""
        return dict(self._screen_methods(data)[0].methods)

    def _screen_methods(self, data: ProjectData) -> tuple[MethodScreen, list[str]]:
        """The default methods, and the names of well-known ones that would compare too many items."""
        from podium.reporting.inputs import choose_methods, default_methods

        screen = choose_methods(data.preferences, data.labels)
        fit = {}
        for name, method in screen.methods.items():
            with contextlib.suppress(TooLarge):
                check_pairs(self.settings.limits, data.preferences, method)
                fit[name] = method
        if not fit:
            check_pairs(self.settings.limits, data.preferences, next(iter(screen.methods.values())))
        large = [m for m in default_methods(data.preferences) if m not in fit]
        return replace(screen, methods=fit), large

    def result(self, key: Hashable, make: Callable[[], Any]) -> Future[Any]:
        """A future of a method's result on all queries, computed once."""
        return self._results.get(key, make, self._fusers)

    def picture(self, key: Hashable, make: Callable[[], str]) -> str:
        """A figure, drawn once."""
        chart: str = self._charts.get(key, make).result()
        return chart

    def method(self, spec: str) -> Any:
        """Make a method from its specification, or load a stored model from `model:ID`."""
        from podium import models
        from podium.methods.base import make

        if spec.startswith("model:"):
            number = spec.removeprefix("model:")
            return models.model_files.loads(self.store.model_bytes(number), "the model")
        return make(spec)


def _read_stamps(project: Project) -> tuple[Any, ...]:
    """A key that changes when a file of the project changes, or the way in which it is read."""
    options = json.dumps(project.options, sort_keys=True)
    return (project.id, options, *((f.digest, _read_file_stamp(f.path)) for f in project.files))


def _read_file_stamp(path: str | None) -> tuple[int, int] | None:
    """A key that changes when the file changes."""
    if path is None:
        return None
    try:
        about = Path(path).stat()
    except OSError:
        return (0, 0)
    return (about.st_mtime_ns, about.st_size)
