"""Long jobs in a separate process: claimed from the store, with heartbeats, resumed after a crash.

A server never runs a job itself. Its supervisor starts `python -m podium.studio.job_worker FOLDER` while jobs
are queued; the worker claims them one by one and exits when the queue is empty. A killed worker sends no
heartbeats; after `STALE` seconds its job is claimed again (tuning resumes where it stopped) or marked as
interrupted (fitting cannot resume). A server that shuts down kills its worker and requeues the job itself,
because the worker may not get to run in time on a busy machine.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from podium.core.errors import PodiumError
from podium.studio.form_fields import spell_option
from podium.studio.job_kinds import KINDS, RESUMABLE
from podium.studio.job_queue import Job, JobState
from podium.studio.settings import ServerSettings
from podium.studio.store import Store

STALE = 20.0  # seconds without a heartbeat after which an owner counts as dead
BEAT = 1.0  # seconds between heartbeats
LOOK, PAUSE = 2.0, 60.0  # seconds between a server's checks for jobs; the maximum after failures
LIMIT = 24 * 3600.0  # seconds that a job may run
GRACE = 5.0  # seconds in which a job that must stop may end by itself; then its process ends
UNHEALTHY = 3  # failures of workers in a row after which the server is not ready
TRIES = 5  # starts of a job that keeps being interrupted

log = logging.getLogger("podium.studio")


class StopJob(Exception):
    """The job must stop now: a user stopped it, or another process owns it."""


# -- execution -----------------------------------------------------------------------------------------------------


class _HeartbeatThread(threading.Thread):
    """Heartbeats with the latest progress; `must_stop` is set when the job must stop, for `reason`.

    A job that does not stop within `GRACE` is ended together with its process, if the process is its own.
    """

    def __init__(self, store: Store, job: Job, owner: str, seconds: float, *, own_process: bool) -> None:
        super().__init__(daemon=True)
        self._store, self._job, self._owner, self._seconds = store, job, owner, seconds
        self._latest = (job.done, job.total, "starting" if job.tries < 2 else "resuming")
        self._end, self.must_stop = threading.Event(), threading.Event()
        self._own_process, self.reason = own_process, "stopped by the user"

    def report_progress(self, done: int, total: int, words: str) -> None:
        """Record progress; raise if the job must stop."""
        self._latest = (int(done), int(total), str(words))
        if self.must_stop.is_set():
            raise StopJob

    def run(self) -> None:
        begin, stopped = time.monotonic(), None
        while True:
            with contextlib.suppress(sqlite3.Error, PodiumError):  # such as a full disk; retried
                if not self._store.beat(self._job.id, self._owner, *self._latest):
                    self.must_stop.set()
            if time.monotonic() - begin > self._seconds and not self.must_stop.is_set():
                self.reason = f"stopped: it ran longer than {self._seconds / 3600:g} hours"
                self.must_stop.set()
            if self.must_stop.is_set():
                stopped = stopped or time.monotonic()
                if self._own_process and time.monotonic() - stopped > GRACE:
                    self._store.finish(self._job.id, self._owner, "cancelled", self.reason)
                    os._exit(0)  # the computation reports no progress, and nothing else ends it
            if self._end.wait(BEAT):
                return

    def stop(self) -> None:
        self._end.set()
        self.join()
        with contextlib.suppress(sqlite3.Error, PodiumError):
            self._store.beat(self._job.id, self._owner, *self._latest)


def run_jobs(
    store: Store,
    roots: Sequence[Path] = (),
    *,
    stale: float = STALE,
    owner: str | None = None,
    seconds: float = LIMIT,
    own_process: bool = False,
) -> int:
    """Claim and run jobs until the queue is empty; return their number.

    A job may run for `seconds`; `own_process`: the process may be ended to stop a job that does not stop.
    """
    count = 0
    owner = owner or _make_owner_name()
    while (job := store.claim(owner, stale, RESUMABLE, TRIES)) is not None:
        pulse = _HeartbeatThread(store, job, owner, seconds, own_process=own_process)
        _run_job(store, job, owner, roots, pulse)
        count += 1
    return count


def _make_owner_name() -> str:
    """A unique name for a worker process."""
    return f"{os.getpid()}-{secrets.token_hex(8)}"


def _run_job(store: Store, job: Job, owner: str, roots: Sequence[Path], pulse: _HeartbeatThread) -> None:
    from podium import models
    from podium.data.dataset import Dataset
    from podium.studio.workspace import Workspace

    pulse.start()
    end: tuple[JobState, str, Any]
    try:
        # what the pages show: with collected votes, without excluded annotators
        with contextlib.closing(
            Workspace(store, ServerSettings(store.folder, roots=tuple(roots)))
        ) as workspace:
            project_data = workspace.data(store.project(job.project)).result()
        data = Dataset(project_data.preferences, project_data.labels, project_data.features)
        words, document, model = KINDS[job.kind][1](store, job, data, pulse.report_progress)
        content, name = models.model_files.dumps(model), f"{job.kind} {repr(model)[:60]}"
        kept = store.add_model(job.project, name, repr(model), content, job.id)
        result = {"model": kept, "document": document, "data": project_data.fingerprint}
        end = ("done", words, result)
    except StopJob:
        end = ("cancelled", pulse.reason, None)
    except PodiumError as error:
        end = ("failed", error.format_message(spell_option), None)
    except Exception as error:
        end = ("failed", f"internal error: {type(error).__name__}: {error}", None)
    pulse.stop()
    store.finish(job.id, owner, *end)


# -- supervision ---------------------------------------------------------------------------------------------------


class WorkerSupervisor:
    """Starts a worker process whenever jobs are queued; one at a time per server."""

    def __init__(
        self, store: Store, roots: Sequence[Path] = (), *, stale: float = STALE, seconds: float = LIMIT
    ) -> None:
        self._store, self._roots, self._stale, self._seconds = store, tuple(roots), stale, seconds
        self._failures = 0  # workers that failed in a row
        self._look, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._watch_jobs, daemon=True, name="podium-jobs")
        self.worker: subprocess.Popen[bytes] | None = None
        self._owner = ""  # the name under which the worker claims jobs

    @property
    def is_healthy(self) -> bool:
        """Whether the queue is watched and workers start; a worker that fails again and again is not healthy."""
        return self._thread.is_alive() and self._failures < UNHEALTHY

    def start(self) -> None:
        """Start watching the queue."""
        self._thread.start()

    def wake(self) -> None:
        """Check the queue now."""
        self._look.set()

    def stop(self) -> None:
        """Stop watching, kill the worker, and requeue its job."""
        self._end.set()
        self._look.set()
        self._thread.join()
        if self.worker is None:
            return
        self.worker.kill()  # not SIGTERM: jobs may be interrupted at any point
        self.worker.wait()
        try:
            self._store.release(
                self._owner, "the server was stopped; the job resumes when a server runs again"
            )
        except (sqlite3.Error, PodiumError) as error:  # such as a full disk
            log.warning("a job could not be requeued (%s); it is claimed again once it is stale", error)

    def _watch_jobs(self) -> None:
        pause = LOOK
        while not self._end.is_set():
            with contextlib.suppress(sqlite3.Error, OSError, PodiumError):  # such as a full disk; retried
                ended = None if self.worker is None else self.worker.poll()
                if ended:
                    log.warning("a worker exited with status %d", ended)
                    self._failures += 1
                    pause = min(2 * pause, PAUSE)  # back off from a worker that cannot start
                elif ended == 0:
                    pause, self._failures = LOOK, 0
                if (self.worker is None or ended is not None) and self._store.has_waiting_job(self._stale):
                    self.worker = self._start_worker()
                elif ended is not None:
                    self.worker = None
            self._look.wait(pause)
            self._look.clear()

    def _start_worker(self) -> subprocess.Popen[bytes]:
        # -P: no module from the folder the server was started in
        self._owner = _make_owner_name()
        words = [sys.executable, "-P", "-m", "podium.studio.job_worker", str(self._store.folder)]
        words += [str(self._stale), self._owner, str(self._seconds), *map(str, self._roots)]
        quiet = subprocess.DEVNULL  # errors are stored in the job; warnings may contain ids of the data
        own = {name: value for name, value in os.environ.items() if name != "PODIUM_TOKEN"}
        return subprocess.Popen(
            words, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, env=own
        )


@contextlib.contextmanager
def supervise_worker(
    store: Store, roots: Sequence[Path] = (), settings: ServerSettings | None = None
) -> Iterator[WorkerSupervisor]:
    """Run a supervisor for the lifetime of a server; in a process that computes pages, one that does nothing."""
    seconds = LIMIT if settings is None else settings.limits.job_seconds
    keeper = WorkerSupervisor(store, roots, seconds=seconds)
    if settings is not None and settings.is_view_worker:
        yield keeper
        return
    keeper.start()
    try:
        yield keeper
    finally:
        keeper.stop()


def main(arguments: Sequence[str]) -> int:
    """The worker process; arguments: folder, seconds until stale, owner name, time limit, roots of the server."""
    folder, stale, owner, seconds, *roots = arguments
    with contextlib.suppress(OSError, AttributeError):
        os.nice(5)  # pages and the API have priority
    store = Store(folder)
    try:
        run_jobs(
            store,
            [Path(root) for root in roots],
            stale=float(stale),
            owner=owner,
            seconds=float(seconds),
            own_process=True,
        )
    finally:
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
