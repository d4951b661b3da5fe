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


class CountedClicks:
    """Clicks on a page, counted; the choice of files is a click, too."""

    def __init__(self, page):
        self.page, self.count = page, 0

    def __call__(self, locator):
        locator.click()
        self.count += 1
        settled(self.page)

    def choose_files(self, locator, files):
        """The files are chosen in a window of the system that the click opens."""
        with self.page.expect_file_chooser() as chooser:
            locator.click()
        self.count += 1
        chooser.value.set_files(files)
