"""A server in a process of its own and a real browser; skipped where there is neither Playwright nor Chromium."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed; see `make test-browser`"
    )
    found = os.environ.get("PODIUM_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no Chromium; see `make test-browser`")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    from serving import started

    with started(tmp_path_factory.mktemp("studio"), "--quiet") as (_, said):
        yield said["address"]


@pytest.fixture
def open_page(browser, address):
    """Pages of a width; at the end, their consoles are empty and no request went to another host.

    With `expect_errors`, pages that answer 4xx are no complaint.
    """
    contexts, complaints = [], []

    def opened(width=1280, height=900, expect_errors=False, **more):
        context = browser.new_context(
            viewport={"width": width, "height": height}, accept_downloads=True, **more
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on(
            "console",
            lambda m: (
                complaints.append(f"{m.type}: {m.text}")
                if m.type in ("error", "warning") and not (expect_errors and "status of 4" in m.text)
                else None
            ),
        )
        page.on("pageerror", lambda e: complaints.append(f"error: {e}"))
        page.on(
            "request",
            lambda r: None if r.url.startswith((f"{address}/", "data:")) else complaints.append(r.url),
        )
        least = 500 if expect_errors else 400
        page.on("response", lambda r: complaints.append(f"{r.status} {r.url}") if r.status >= least else None)
        page.goto(address + "/")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def shot(request):
    """Keep a picture of a page, if a folder for them is given."""

    def take(page, name):
        if folder := os.environ.get("PODIUM_SCREENSHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)

    return take
