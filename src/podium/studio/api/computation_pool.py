"""Computations outside the event loop: bounded concurrency, each with a timeout."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from podium.core.errors import capture_warnings
from podium.studio.security import RequestRefused
from podium.studio.settings import Limits
from podium.studio.telemetry import RequestMetrics

T = TypeVar("T")


class ComputationPool:
    """Runs at most `workers` computations at once; others wait, and waiting counts toward the timeout.

    Computations cannot be canceled: after the timeout the client gets 504 and the worker slot stays occupied
    until the computation finishes, so there are never more threads than slots.
    """

    def __init__(self, limits: Limits, meters: RequestMetrics) -> None:
        self._limits, self._meters = limits, meters
        self._places = asyncio.Semaphore(limits.workers)

    async def run(self, work: Callable[[], T]) -> tuple[T, list[str]]:
        """Run `work` in a thread; return its result and the warnings it raised."""
        seconds, has_started = self._limits.seconds, False
        try:
            async with asyncio.timeout(seconds):
                await self._places.acquire()
                has_started = True
                return await asyncio.shield(self._start(work))
        except TimeoutError:
            if has_started:
                raise RequestRefused(
                    504,
                    f"the computation takes longer than {seconds:g} seconds",
                    "send less, choose a faster method, or start the server with a larger --seconds",
                ) from None
            raise RequestRefused(
                503, f"all workers were busy for {seconds:g} seconds", "try again later", {"retry-after": "5"}
            ) from None

    def _start(self, work: Callable[[], T]) -> asyncio.Future[tuple[T, list[str]]]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[T, list[str]]] = loop.create_future()
        # consumes the exception of a late result that no client waits for
        done.add_done_callback(lambda future: None if future.cancelled() else future.exception())
        self._meters.computing.inc()

        def end_work(result: tuple[T, list[str]] | None, error: BaseException | None) -> None:
            self._places.release()
            self._meters.computing.dec()
            if error is None and result is not None:
                done.set_result(result)
            else:
                # a future accepts any exception except this one
                done.set_exception(
                    RuntimeError() if isinstance(error, StopIteration) else error or RuntimeError()
                )

        def run_work() -> None:
            result, error = None, None
            try:
                # the library reports overflow as an error, or the response has null
                with capture_warnings() as messages, np.errstate(all="ignore"):
                    result = work(), messages
            except BaseException as problem:
                error = problem
            with contextlib.suppress(RuntimeError):  # the server has stopped in the meantime
                loop.call_soon_threadsafe(end_work, result, error)

        try:
            threading.Thread(target=run_work, daemon=True, name="podium-work").start()
        except RuntimeError as problem:  # no threads available; release the slot
            end_work(None, problem)
        return done
