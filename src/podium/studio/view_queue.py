"""The queue of computations that wait for a process: fair between users, bounded, with positions."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from podium.studio.security import RequestRefused

WANTED = 20.0  # seconds after which a computation that no request has asked for is given up


@dataclass(eq=False)
class ViewTask:
    """One request that a process computes. `wanted` is the last time a request asked for it."""

    key: Hashable  # requests with the same key share the computation
    user: str
    request: dict[str, Any]
    seconds: float  # after which the process is killed
    outcome: Future[Any] = field(default_factory=Future)
    made: float = field(default_factory=time.monotonic)
    wanted: float = field(default_factory=time.monotonic)
    started: float | None = None

    def is_wanted(self) -> bool:
        """Whether a request has asked for the outcome recently."""
        return time.monotonic() - self.wanted < WANTED


class FairQueue:
    """Users take turns, whatever number of tasks each has; one user never holds all of the processes."""

    def __init__(self, processes: int, most: int) -> None:
        self._each, self._most = max(1, processes - 1), most
        self._waiting: OrderedDict[str, deque[ViewTask]] = OrderedDict()
        self._running: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._is_closed = False

    def put(self, task: ViewTask) -> None:
        """Add a task; refused when its user, or all of them together, have too many waiting."""
        with self._changed:
            if self._is_closed:
                raise RequestRefused(503, "the server stops", "try again later", {"retry-after": "5"})
            mine = self._waiting.get(task.user, ())
            if len(mine) >= max(1, self._most // 2) or self.count() >= self._most:
                words = f"{self.count():,} computations are already waiting"
                raise RequestRefused(503, words, "try again later", {"retry-after": "5"})
            self._waiting.setdefault(task.user, deque()).append(task)
            self._changed.notify()

    def take(self) -> ViewTask | None:
        """The next task, of the user whose turn it is; waits for one. None after `close`."""
        with self._changed:
            while True:
                if self._is_closed:
                    return None
                free = (user for user in self._waiting if self._running[user] < self._each)
                user = next(free, None)
                if user is not None:
                    task = self._waiting[user].popleft()
                    self._waiting.move_to_end(user)
                    if not self._waiting[user]:
                        del self._waiting[user]
                    self._running[user] += 1
                    return task
                self._changed.wait()

    def release(self, task: ViewTask) -> None:
        """Record that a task which was taken has ended."""
        with self._changed:
            self._running[task.user] -= 1
            if not self._running[task.user]:
                del self._running[task.user]
            self._changed.notify_all()

    def count(self) -> int:
        """The number of waiting tasks."""
        return sum(map(len, self._waiting.values()))

    def count_before(self, task: ViewTask) -> int:
        """How many tasks of the same user are before a waiting one."""
        with self._changed:
            mine = self._waiting.get(task.user, ())
            return next((place for place, other in enumerate(mine) if other is task), 0)

    def close(self) -> list[ViewTask]:
        """End all waiting for tasks; the tasks that are left."""
        with self._changed:
            self._is_closed = True
            left = [task for tasks in self._waiting.values() for task in tasks]
            self._waiting.clear()
            self._changed.notify_all()
            return left
