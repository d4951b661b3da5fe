"""How many requests are received and answered at once: in all, and by one user."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Literal

from podium.studio.security import RequestRefused
from podium.studio.settings import Limits
from podium.studio.telemetry import RequestMetrics

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
SHARED = 8  # slots from which on one user may not hold all of them


def limit_share(most: int, quarters: int) -> int:
    """How many of the slots one user may hold: so many quarters of them, if there are enough to share.

    >>> limit_share(64, 3), limit_share(4, 2)
    (48, 4)
    """
    return most * quarters // 4 if most >= SHARED else most


class UploadSlots(asyncio.Semaphore):
    """Uploads that are read at once, counted."""

    def __init__(self, most: int, meters: RequestMetrics) -> None:
        super().__init__(most)
        self._meters = meters

    async def acquire(self) -> Literal[True]:
        """Wait for a slot, and count the upload."""
        await super().acquire()
        self._meters.count_upload(1)
        return True

    def release(self) -> None:
        """Give the slot back."""
        self._meters.count_upload(-1)
        super().release()


class RequestSlots:
    """Requests whose body arrives slowly do not use the slots of those that are answered."""

    def __init__(self, limits: Limits, meters: RequestMetrics) -> None:
        self._limits, self._meters = limits, meters
        self._receiving: Counter[str] = Counter()
        self._running: Counter[str] = Counter()

    def begin_receiving(self, user: str) -> None:
        """Take a slot for a request whose body arrives."""
        most, mine = self._limits.receiving, self._receiving
        if self._meters.receiving >= most or mine[user] >= limit_share(most, 2):
            raise _build_busy_error(f"{self._meters.receiving} requests are already being received")
        self._meters.receiving += 1
        mine[user] += 1

    def end_receiving(self, user: str) -> None:
        """Give the slot back."""
        self._meters.receiving -= 1
        _reduce(self._receiving, user)

    def begin_answer(self, user: str) -> None:
        """Take a slot for a request that is answered."""
        most, mine = self._limits.concurrent, self._running
        if self._meters.running >= most or mine[user] >= limit_share(most, 3):
            raise _build_busy_error(f"{self._meters.running} requests are already running")
        self._meters.running += 1
        mine[user] += 1

    def end_answer(self, user: str) -> None:
        """Give the slot back."""
        self._meters.running -= 1
        _reduce(self._running, user)


def _reduce(counts: Counter[str], user: str) -> None:
    counts[user] -= 1
    if not counts[user]:
        del counts[user]


def _build_busy_error(words: str) -> RequestRefused:
    return RequestRefused(429, words, "try again later", {"retry-after": "1", "connection": "close"})


class BodyReceiver:
    """Receives a body: bounded in length, complete by a deadline; takes the slot for the answer at its end."""

    def __init__(self, receive: Receive, slots: RequestSlots, user: str, most: int, seconds: float) -> None:
        self._receive, self._slots, self._user, self._most, self._seconds = (
            receive,
            slots,
            user,
            most,
            seconds,
        )
        self._deadline: float | None = None
        self._is_receiving = self._is_answering = False
        self.size = 0

    def begin(self, has_body: bool) -> None:
        """Take the first slot."""
        if has_body:
            self._slots.begin_receiving(self._user)
            self._is_receiving = True
        else:
            self._slots.begin_answer(self._user)
            self._is_answering = True

    def end(self) -> None:
        """Give the slots back."""
        if self._is_receiving:
            self._slots.end_receiving(self._user)
        if self._is_answering:
            self._slots.end_answer(self._user)
        self._is_receiving = self._is_answering = False

    async def __call__(self) -> Message:
        if not self._is_receiving:
            return await self._receive()  # without a body, or after it: the disconnect
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise RequestRefused(
                408,
                f"the body did not arrive within {self._seconds:g} seconds",
                "send it faster, or in parts",
                {"connection": "close"},
            ) from None
        self.size += len(message.get("body", b""))
        if self.size > self._most:
            raise build_length_error(self._most)
        if not message.get("more_body", False):
            self._slots.end_receiving(self._user)
            self._is_receiving = False
            self._slots.begin_answer(self._user)
            self._is_answering = True
        return message


def build_length_error(most: int) -> RequestRefused:
    """The refusal of a body that is too long."""
    return RequestRefused(
        413, f"the body is longer than {most:,} bytes", "send less per request", {"connection": "close"}
    )
