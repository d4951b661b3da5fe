"""Processes that compute for the server, so that a slow request can be canceled and never holds up the others.

Each process has a thread of the server that takes tasks from the queue, sends them, and waits for the outcome. When
a task takes too long, or nobody asks for it any more, the thread kills the process and starts another one.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from podium.studio.settings import ServerSettings
from podium.studio.view_queue import FairQueue, ViewTask

if TYPE_CHECKING:
    from podium.studio.telemetry import RequestMetrics

TICK = 0.25  # seconds between checks of a running task
KEPT_BYTES, KEPT_SECONDS = 64 << 20, 60.0  # of outcomes that wait to be fetched
UNWANTED = "nobody waits for it"
DIED = "the computing process ended; the machine may lack memory"


class TaskCanceled(Exception):
    """The process was killed: the task took too long, nobody wanted it any more, or the server stops."""


class TaskGivenUp(TaskCanceled):
    """Nobody wanted the task any more; who wants it later gets a new one."""


class ViewProcesses:
    """Runs tasks in `settings.processes` processes; requests with the same key share one task."""

    def __init__(self, settings: ServerSettings, meters: RequestMetrics) -> None:
        self._settings, self._meters = settings, meters
        self.queue = FairQueue(settings.processes, settings.limits.queue)
        self._tasks: OrderedDict[Hashable, ViewTask] = OrderedDict()
        self._lock = threading.Lock()
        self._is_closing = threading.Event()
        self._alive = 0
        # a fork server starts a process within milliseconds, and does not copy the threads of this one
        self._context: Any = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
        if sys.platform != "win32":
            self._context.set_forkserver_preload(
                ["podium.studio.view_worker", "podium.studio.app", "podium.evaluate", "podium.analysis"]
            )
        self._threads = [
            threading.Thread(target=self._run_slot, daemon=True, name=f"podium-process-{number}")
            for number in range(settings.processes)
        ]
        meters.watch("podium_queue_tasks", "Computations that wait for a process", self.queue.count)
        self._cached_bytes: dict[int | None, int] = {}  # by process
        watched = "Bytes of cached data and results in the processes"
        meters.watch("podium_cache_bytes", watched, lambda: sum(list(self._cached_bytes.values())))
        meters.watch("podium_processes", "Processes that compute", lambda: self._alive)

    def start(self) -> None:
        """Start the processes."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Cancel everything and end the processes."""
        self._is_closing.set()
        for task in self.queue.close():
            task.outcome.set_exception(TaskCanceled("the server stops"))
        for thread in self._threads:
            thread.join(10)

    @property
    def is_healthy(self) -> bool:
        """Whether a process is alive and the queue has room."""
        return self._alive > 0 and self.queue.count() < self._settings.limits.queue

    def submit(self, key: Hashable, make: Callable[[], ViewTask]) -> ViewTask:
        """The task with this key: one that waits, runs or has ended recently, or else a new one in the queue."""
        with self._lock:
            self._forget_old_tasks()
            task = self._tasks.get(key)
            if task is None or (
                task.outcome.done() and isinstance(task.outcome.exception(), TaskGivenUp)
            ):  # nobody waited for it any more
                task = make()
                self.queue.put(task)
                self._tasks[key] = task
            task.wanted = time.monotonic()
        return task

    def forget(self, task: ViewTask) -> None:
        """Drop a task whose outcome was delivered."""
        with self._lock:
            if self._tasks.get(task.key) is task:
                del self._tasks[task.key]

    def _forget_old_tasks(self) -> None:
        """Drop outcomes that nobody has fetched, the oldest first, and all beyond the bound on their bytes."""
        size, now = 0, time.monotonic()
        for key, task in reversed(list(self._tasks.items())):
            if task.outcome.done():
                known = task.outcome.exception() is None
                size += len(task.outcome.result().body) if known else 0
                if size > KEPT_BYTES or now - task.wanted > KEPT_SECONDS:
                    del self._tasks[key]

    # -- one process ------------------------------------------------------------------------------------------

    def _run_slot(self) -> None:
        process, connection = self._start_process()
        while (task := self.queue.take()) is not None:
            task.started = time.monotonic()
            try:
                if not task.is_wanted():
                    task.outcome.set_exception(TaskGivenUp(UNWANTED))
                    continue
                if not process.is_alive():
                    self._end_process(process)
                    process, connection = self._start_process()
                connection.send(task.request)
                outcome = self._await_outcome(task, connection)
                self._cached_bytes[process.pid] = outcome.cached_bytes
                task.outcome.set_result(outcome)
            except (TaskCanceled, EOFError, OSError) as error:
                cause = error if isinstance(error, TaskCanceled) else TaskCanceled(DIED)
                self._meters.count_canceled()
                task.outcome.set_exception(cause)
                self._end_process(process)
                process, connection = self._start_process()
            finally:
                self.queue.release(task)
                self._meters.observe_task(time.monotonic() - task.started)
        self._end_process(process)

    def _await_outcome(self, task: ViewTask, connection: Connection) -> Any:
        assert task.started is not None
        while not connection.poll(TICK):
            if self._is_closing.is_set():
                raise TaskCanceled("the server stops")
            if time.monotonic() - task.started > task.seconds:
                raise TaskCanceled(f"it took longer than {task.seconds:g} seconds")
            if not task.is_wanted():
                raise TaskGivenUp(UNWANTED)
        return connection.recv()

    def _start_process(self) -> tuple[Any, Connection]:
        from podium.studio.view_worker import run_view_worker

        here, there = self._context.Pipe()
        process = self._context.Process(target=run_view_worker, args=(there, self._settings), daemon=True)
        while True:
            try:
                process.start()
                break
            except OSError:  # such as no memory for another process
                if self._is_closing.wait(1.0):
                    break
        there.close()
        with self._lock:
            self._alive += 1
        return process, here

    def _end_process(self, process: Any) -> None:
        if process.pid is not None:
            process.kill()
            process.join()
        self._cached_bytes.pop(process.pid, None)
        with self._lock:
            self._alive -= 1
