"""The studio in Chromium, as somebody would use it."""

from __future__ import annotations

import csv
import json
import socket

import pytest

from browsing import go, settled, until
from podium.data.demo import demo
from serving import started

VOTES = "model_a,model_b,winner,judge\n" + "".join(
    f"model-{a},model-{b},{'model_a' if (a + 2 * b + j) % 3 else 'model_b'},judge-{j}\n"
    for a in range(5) for b in range(a + 1, 5) for j in range(8)
)  # fmt: skip
VIEWS = (
    "data", "overview", "fuse", "methods", "differences", "queries", "query", "why", "experts", "jobs", "apply",
    "deploy",
)  # fmt: skip


def open_demo(page):
    page.get_by_role("link", name="Open the demo").click()
    settled(page)


def places(page):
    return page.locator("#places tbody tr td:nth-child(2)").all_inner_texts()


def test_open_the_demo_fuse_and_download(open_page, shot, tmp_path):
    page = open_page()
    shot(page, "home-1280")
    open_demo(page)
    assert page.locator(".answer .winner").inner_text()
    assert page.locator(".answer .mark").inner_text().startswith("certainty")
    assert page.locator(".checks .mark").count() > 3
    shot(page, "overview-1280")
    page.locator(".answer").get_by_role("link", name="Fuse with").click()
    settled(page)
    page.get_by_label("Method").fill("rrf(k=20)")
    page.get_by_role("button", name="Fuse").click()
    settled(page)
    assert "Fused by rrf(k=20)" in page.locator("h1").inner_text()
    shot(page, "fuse-1280")
    with page.expect_download() as coming:
        page.get_by_role("link", name="Download the full ranking as CSV").click()
    coming.value.save_as(tmp_path / "fused.csv")
    with open(tmp_path / "fused.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(demo().preferences.index.items)
    assert rows[0]["query"] == "q001"


def test_move_a_weight_and_read_why(open_page, address, shot):
    page = open_page()
    go(page, address, "/p/demo/query?q=q003&m=rrf")
    shot(page, "query-1280")
    page.locator("main table tbody a").first.click()
    settled(page)
    before = places(page)
    slider = page.get_by_label("echo-2", exact=True)
    slider.focus()
    with page.expect_response("**/rank.json**"):
        page.keyboard.press("End")  # by the keyboard alone
    until(page, "document.getElementById('status').textContent.includes('changed rank')")
    after = places(page)
    assert after != before
    assert sorted(after) == sorted(before) or len(after) == 50
    assert "w%3Aecho-2=3" in page.url
    shot(page, "why-1280")
    link = page.url
    told = json.loads(page.request.get(link.replace("/why?", "/rank.json?")).text())
    assert [r["item"] for r in told["rows"]] == after
    again = open_page()
    again.goto(link)  # the permanent link shows the same
    settled(again)
    assert places(again) == after
    assert again.get_by_label("echo-2", exact=True).input_value() == "3"
    with page.expect_response("**/rank.json**"):
        page.get_by_role("button", name="Reset all to 1").click()
    until(page, "document.getElementById('status').textContent.includes('do not change the order')")
    assert places(page) == before
    assert "w%3A" not in page.url
    page.get_by_label("compared with").fill(before[1])
    page.get_by_role("button", name="Explain").click()
    settled(page)
    assert (
        "would swap" in page.locator("main").inner_text()
        or "would make them swap" in page.locator("main").inner_text()
    )
    shot(page, "why-over-1280")


def test_weights_can_be_moved_without_scripts(open_page, address):
    page = open_page(java_script_enabled=False)
    page.goto(address + "/p/demo/why?q=q003&m=rrf")
    page.wait_for_selector("#places tbody tr", timeout=90_000)  # the page loads itself until it is there
    before = places(page)
    page.get_by_label("echo-2", exact=True).focus()
    page.keyboard.press("End")
    page.get_by_role("button", name="Update ranking").click()
    page.wait_for_selector("#status:has-text('changed rank')", timeout=90_000)
    assert places(page) != before


def test_compare_two_methods(open_page, address, shot):
    page = open_page()
    go(page, address, "/p/demo/methods")
    shot(page, "methods-1280")
    page.locator("select[name=a]").select_option("mc4")
    page.locator("select[name=b]").select_option("borda")
    page.get_by_role("button", name="Compare two").click()
    settled(page)
    assert page.locator("h1").inner_text().startswith("mc4 against borda")
    shot(page, "differences-1280")
    page.locator("main table tbody a").first.click()
    settled(page)
    assert page.locator("h1").inner_text().startswith("Query q")


def test_a_picture_can_be_asked(open_page, address, shot):
    page = open_page()
    go(page, address, "/p/demo/query?q=q003")
    page.get_by_role("button", name="Interactive").click()
    page.wait_for_selector(".picture svg")
    page.locator(".picture svg .mark-rect path").nth(3).hover(force=True)
    page.wait_for_selector("#vg-tooltip-element.visible")
    shot(page, "interactive-1280")


def test_scripts_work_below_a_sub_path(browser, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    root = f"http://127.0.0.1:{port}/podium"
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(60_000)
    with started(tmp_path / "studio", "--quiet", "--port", port, "--public-url", root):
        go(page, root, "/p/demo/query?q=q003")
        page.get_by_role("button", name="Interactive").click()
        page.wait_for_selector(".picture svg")
        go(page, root, "/p/demo/why?q=q003&m=rrf")
        page.get_by_label("echo-2", exact=True).focus()
        with page.expect_response("**/rank.json**"):
            page.keyboard.press("End")
        until(page, "document.getElementById('status').textContent.includes('changed rank')")
        assert page.locator("#places tbody a").first.get_attribute("href").startswith("/podium/p/demo/why?")
    context.close()


def test_upload_votes_and_see_the_leaderboard(open_page, shot, tmp_path):
    (tmp_path / "votes.csv").write_text(VOTES)
    page = open_page()
    with page.expect_navigation():
        page.set_input_files("#upload input[type=file]", tmp_path / "votes.csv")
    settled(page)
    assert page.url.endswith("/leaderboard")  # votes open on the board
    assert "model-0" in page.locator("main table").first.inner_text()
    shot(page, "leaderboard-1280")
    page.get_by_label("Next pairs").fill("3")
    page.get_by_role("button", name="Show").click()
    settled(page)
    table = page.locator(".table", has_text="Pairs with the largest expected gain")
    assert table.locator("tbody tr").count() == 3
    with page.expect_download() as coming:
        page.get_by_role("link", name="CSV", exact=True).click()
    assert coming.value.suggested_filename == "podium-leaderboard.csv"
    page.get_by_role("link", name="Annotators", exact=True).click()
    settled(page)
    shot(page, "annotators-1280")


def test_fit_a_model_in_the_background(open_page, address, shot):
    page = open_page()
    go(page, address, "/p/demo/jobs")
    page.get_by_role("button", name="Start fitting").click()
    page.wait_for_selector(".state:text-is('done')", timeout=60_000)
    page.wait_for_selector("text=fuse with it")
    assert "Experiments, on queries that they were not fitted on" in page.locator("main").inner_text()
    shot(page, "jobs-1280")
    page.get_by_role("link", name="fuse with it").first.click()
    settled(page)
    assert page.locator("h1").inner_text().startswith("Fused by crf")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("width", "scheme"), [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")]
)
def test_every_view_fits_its_window(open_page, address, shot, view, width, scheme):
    page = open_page(width, 800, color_scheme=scheme)
    go(page, address, f"/p/demo/{view}")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    shot(page, f"{view}-{width}-{scheme}")


def test_the_keyboard_is_enough(open_page, address):
    page = open_page()
    go(page, address, "/p/demo/overview")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.getElementById('main').contains(document.activeElement)")
    width = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert width == "3px"


def test_the_largest_query_is_drawn_whole(open_page, address, shot):
    data = demo()
    sizes = data.preferences.index.sizes
    query = data.preferences.queries[int(sizes.argmax())]
    page = open_page()
    go(page, address, f"/p/demo/query?q={query}")
    assert page.locator("main table tbody tr").count() == int(sizes.max()) == 120
    assert page.evaluate("document.querySelector('main img').naturalHeight") > 2000
    shot(page, "heatmap-120")
