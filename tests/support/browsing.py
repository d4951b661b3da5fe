"""Waiting for pages of the studio in a real browser."""

from __future__ import annotations


def until(page, expression, seconds=60):
    """Poll from outside: the pages forbid code from strings, which waiting inside them needs."""
    for _ in range(seconds * 20):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"waited in vain for {expression}")


def settled(page):
    """Until the page no longer says that it is still looking, and its pictures are there."""
    page.wait_for_selector("main")
    page.wait_for_selector(".busy", state="detached")
    until(page, "[...document.images].every(i => i.complete && i.naturalWidth > 0)")


def go(page, address, where):
    page.goto(address + where)
    settled(page)
