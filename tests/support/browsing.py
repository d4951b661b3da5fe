"""Waiting for pages of the studio in a real browser."""

from __future__ import annotations


def until(page, expression, seconds=120):
    """Poll from outside: the pages forbid code from strings, which waiting inside them needs."""
    from playwright.sync_api import Error

    for _ in range(seconds * 20):
        try:
            if page.evaluate(expression):
                return
        except Error:  # the page is just being loaded again
            pass
        page.wait_for_timeout(50)
    raise AssertionError(f"waited in vain for {expression}")


def settled(page):
    """Until the page no longer waits for a computation, and its pictures are there."""
    loaded = "document.readyState === 'complete' && document.querySelector('main')"
    until(page, f"{loaded} && !document.body.dataset.refresh")
    until(page, "[...document.images].every(i => i.complete && i.naturalWidth > 0)")


def go(page, address, where):
    page.goto(address + where)
    settled(page)
