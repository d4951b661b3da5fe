"""Asynchronous tests of the frameworks' suites run without a plug-in."""

from __future__ import annotations

import asyncio
import inspect

import pytest


def pytest_configure(config):
    """Know the marks of LangChain's suite, whose plug-ins are not loaded."""
    for mark in ("benchmark", "enable_socket", "vcr"):
        config.addinivalue_line("markers", f"{mark}: of langchain_tests")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a coroutine to its end."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True
