"""Every page in Chromium: no barrier that axe-core finds, and the jobs of a reader in a few clicks."""

from __future__ import annotations

import pytest

from browsing import CountedClicks, go, settled, until
from podium import formats
from podium.core.errors import PodiumWarning
from podium.data.demo import demo

PAIRS = [(a, b, j) for a in range(6) for b in range(a) for j in range(6)]
VOTES = "judge winner loser\n" + "".join(
    f"judge-{j} model-{b} model-{a}\n" if (a + b + j) % 4 else f"judge-{j} model-{a} model-{b}\n"
    for a, b, j in PAIRS
)
RUN = "".join(
    f"q{q} Q0 d{(e + 3 * k + q) % 9} {k} {9 - k} engine-{e}\n"
    for q in range(5)
    for e in range(4)
    for k in range(1, 6)
)


@pytest.fixture(scope="session")
def find_barriers():
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed")

    def find(page):
        report = axe.Axe().run(page).response
        return [(v["id"], [node["html"][:120] for node in v["nodes"][:3]]) for v in report["violations"]]

    return find


def test_pages_of_votes_have_no_barrier(open_page, find_barriers, tmp_path, shot):
    (tmp_path / "votes.txt").write_text(VOTES + "judge-1 model-1 model-1\n")
    page = open_page(390, 844, bypass_csp=True)
    with page.expect_navigation():
        page.set_input_files("#upload input[type=file]", tmp_path / "votes.txt")
    settled(page)
    assert page.url.endswith("/data")
    assert page.locator("[role=alert]").count() == 1
    assert find_barriers(page) == []
    shot(page, "problem-390")
    page.get_by_role("button", name="Skip votes between an item and itself").click()
    page.get_by_role("link", name="Open the results").click()
    page.wait_for_url("**/leaderboard*")
    settled(page)
    assert find_barriers(page) == []
    shot(page, "board-390")


def test_the_best_fusion_in_three_clicks(open_page, tmp_path):
    """Best fusion: open the data, read the answer, take the result away."""
    page = open_page()
    click = CountedClicks(page)
    click(page.get_by_role("link", name="Open the demo"))
    assert page.locator(".answer .winner").inner_text()
    click(page.locator(".answer").get_by_role("link", name="Fuse with"))
    with page.expect_download():
        click(page.get_by_role("link", name="Download the full ranking as CSV"))
    assert click.count == 3


def test_train_and_apply_in_four_clicks(open_page, address, tmp_path):
    new = demo(12).preferences  # a model knows the experts that it was fitted on
    with pytest.warns(PodiumWarning, match="items nobody ranks"):
        formats.write(new, tmp_path / "new.run", "trec")
    page = open_page()
    click = CountedClicks(page)
    click(page.get_by_role("link", name="Open the demo"))
    click(page.get_by_role("link", name="Experiments", exact=True))
    known = page.locator("#models ~ ul li").count() - page.locator("#models ~ ul li.muted").count()
    click(page.get_by_role("button", name="Start fitting"))
    until(page, f"document.querySelectorAll('#models ~ ul a[href*=apply]').length > {known}")
    settled(page)
    with page.expect_download() as coming:
        click.choose_files(page.locator("#models ~ form input[type=file]"), tmp_path / "new.run")
    assert click.count == 4
    assert coming.value.suggested_filename == "podium-result.run"
    assert len(coming.value.path().read_text().splitlines()) == len(set(new.lists.item.tolist()))


def test_a_removed_project_comes_back(open_page, tmp_path):
    (tmp_path / "removed.run").write_text(RUN)
    page = open_page()
    with page.expect_navigation():
        page.set_input_files("#upload input[type=file]", tmp_path / "removed.run")
    settled(page)
    page.get_by_role("link", name="Files and columns").click()
    settled(page)
    page.get_by_role("button", name="Remove this project").click()
    page.get_by_role("button", name="Cancel").last.click()
    page.get_by_role("button", name="Remove this project").click()
    page.locator("#remove-project").get_by_role("button", name="Remove", exact=True).click()
    page.wait_for_selector(".toast")
    assert page.locator("main").get_by_role("link", name="removed", exact=True).count() == 0
    page.get_by_role("button", name="Undo").click()
    settled(page)
    assert "removed" in page.locator(".switcher summary").inner_text()


def test_rows_of_a_long_table_are_drawn_as_they_come_into_view(open_page, address):
    page = open_page()
    go(page, address, "/p/demo/queries")
    page.get_by_role("button", name="Show all").click()
    until(page, "document.querySelector('[data-rows] table').getAttribute('aria-rowcount') === '200'")
    assert page.locator("[data-rows] tbody tr").count() < 120
    page.evaluate("document.querySelector('[data-rows]').scrollTop = 1e6")
    until(page, "document.querySelector('[data-rows] tbody').textContent.includes('q200')")


def test_the_theme_is_remembered(open_page, address):
    page = open_page(color_scheme="light")
    go(page, address, "/p/demo/methods")
    for wanted in ("light", "dark"):
        page.locator("#theme").click()
        assert page.evaluate("document.documentElement.dataset.theme") == wanted
    go(page, address, "/p/demo/methods")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    until(
        page, "[...document.querySelectorAll('.picture img')].every(i => i.currentSrc.includes('theme=dark'))"
    )


def test_a_picture_that_a_busy_server_refused_comes_later(browser, address):
    page = browser.new_page()
    refused = []

    def answer(route):
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=503, body="still computing")

    page.route("**/curves.svg*", answer)
    page.goto(f"{address}/p/demo/methods")
    settled(page)
    assert len(refused) == 1
    page.close()
