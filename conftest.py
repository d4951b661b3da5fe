"""Tests of optional packages are skipped where these are not installed; the reason names the extra to install."""

from __future__ import annotations

import doctest
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from podium.core.errors import MissingPackageError
from podium.core.optional import PACKAGES, is_installed

# packages that the tests compare with or call, beyond those that Podium itself imports
TESTED_WITH = {
    "choix", "evalica", "httpx", "httpx2", "langchain_classic", "langchain_tests", "pydantic_core", "pyterrier_alpha",
    "pytrec_eval", "safetensors", "scipy", "starlette",
}  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """A module that imports a missing package is skipped as a whole."""
    report = yield
    call = report.__dict__.get("call")
    if report.failed and call is not None and (reason := describe_missing(call.excinfo.value)):
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: {reason}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    """A fixture that needs a missing package skips its test."""
    return (yield from skip_missing())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """A test that needs a missing package is skipped."""
    return (yield from skip_missing())


def skip_missing() -> Generator[None, Any, Any]:
    """Run what is wrapped; the error of a missing package becomes a skip."""
    try:
        return (yield)
    except Exception as error:
        if reason := describe_missing(error):
            pytest.skip(reason)
        raise


def describe_missing(error: BaseException) -> str | None:
    """Which package is missing, if an error was caused by that; None for a package that is installed."""
    for cause in iterate_causes(error):
        package = (cause.name or "").partition(".")[0] if isinstance(cause, ImportError) else ""
        if (package in PACKAGES or package in TESTED_WITH) and not is_installed(package):
            return str(cause) if isinstance(cause, MissingPackageError) else f"{package} is not installed"
    return None


def iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what it wraps, and what led to it."""
    while error is not None:
        yield error
        if isinstance(error, doctest.UnexpectedException):
            yield from iterate_causes(error.exc_info[1])
        error = error.__cause__ or error.__context__
