"""The pages of votes, annotators, judges, explanations and sharing in Chromium: by clicks alone, in every window."""

from __future__ import annotations

import contextlib
import random

import pytest

from browsing import CountedClicks
from podium.testing.panels import simulate_panel

WINDOWS = [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")]


READY = """document.readyState === "complete" && document.querySelector("main h1") !== null
  && document.querySelector(".busy, meta[http-equiv=refresh]") === null
  && [...document.images].every(i => i.complete && i.naturalWidth > 0)"""


def settle(page):
    """Until the page has its content, and its pictures are there; a page that waits reloads itself meanwhile."""
    playwright = pytest.importorskip("playwright.sync_api")
    for _ in range(1200):
        with contextlib.suppress(playwright.Error):
            if page.evaluate(READY):
                return
        page.wait_for_timeout(50)
    raise AssertionError("the page did not settle")


def make_arena():
    rng, lines = random.Random(5), ["model_a,model_b,winner,judge,length_a,length_b,category"]
    for n in range(900):
        a, b = rng.sample(range(6), 2)
        judge = n % 9
        one, two = rng.randint(20, 300), rng.randint(20, 300)
        chance = 1 / (1 + 2.718 ** -((b - a) * 0.8 + (one - two) / 300))
        side = "a" if rng.random() < (chance if judge < 7 else 0.5 if judge == 7 else 1 - chance) else "b"
        kind = rng.choice(["math", "chat", "code"])
        lines.append(f"model-{a},model-{b},model_{side},judge-{judge},{one},{two},{kind}")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def arena(browser, address, tmp_path_factory):
    path = tmp_path_factory.mktemp("arena") / "arena.csv"
    path.write_text(make_arena())
    return open_file(browser, address, path)


@pytest.fixture(scope="module")
def panel(browser, address, tmp_path_factory):
    folder = tmp_path_factory.mktemp("panel")
    simulate_panel("one good judge", questions=60, gold=40).write_files(folder)
    return open_file(browser, address, folder / "votes.csv")


def open_file(browser, address, path):
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(address + "/")
    with page.expect_navigation(timeout=60_000):
        page.set_input_files("#upload input[type=file]", path)
    page.wait_for_url("**/p/*/**")
    project = page.url.split("/p/")[1].split("/")[0]
    context.close()
    return project


def list_pages(arena, panel):
    return {
        "leaderboard": f"/p/{arena}/leaderboard",
        "leaderboard-adjusted": f"/p/{arena}/leaderboard?control=length&control=order&slice=category&anytime=1",
        "annotators": f"/p/{arena}/annotators",
        "worker": f"/p/{arena}/worker?who=judge-8",
        "judges": f"/p/{panel}/judges",
        "judges-gold": f"/p/{panel}/judges?gold=judge:judge+1",
        "explain": "/p/demo/explain?m=rrf",
        "share": "/p/demo/share",
        "collect-start": f"/p/{arena}/collect",
    }


NAMES = list(list_pages("", ""))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_every_page_fits_its_window_and_is_accessible(
    open_page, address, shot, arena, panel, name, width, scheme
):
    page = open_page(width, 844 if width == 390 else 900, color_scheme=scheme)
    page.goto(address + list_pages(arena, panel)[name])
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    shot(page, f"{name}-{width}-{scheme}")
    check_accessibility(page)


def check_accessibility(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    violations = axe.run(page).response["violations"]
    assert [(v["id"], [n["html"][:200] for n in v["nodes"][:3]]) for v in violations] == []


def test_voting_pages_are_accessible(open_page, address):
    for kind in ("pairs", "ratings"):
        page = open_page(390 if kind == "pairs" else 1440)
        card = page.locator("section", has_text="Collect votes")
        card.get_by_label("Items, one per line").fill("Red\nGreen\nBlue")
        card.locator(f"input[value={kind}]").check()
        card.get_by_role("button", name="Start collecting").click()
        page.wait_for_selector("text=Vote now")
        check_accessibility(page)
        page.get_by_role("button", name="Vote now").click()
        page.wait_for_selector(".pair")
        check_accessibility(page)


def open_project(page, address, project):
    """The start page, and the first click: the project in the list."""
    page.goto(address + "/")
    click = CountedClicks(page)
    click(page.locator(f"main table a[href='/p/{project}']"))
    return click


def test_why_a_over_b_takes_few_clicks(open_page, address, shot):
    page = open_page(1440)
    click = open_project(page, address, "demo")
    click(page.locator("nav[aria-label=Views]").get_by_role("link", name="A beside B"))
    assert page.locator("h1").inner_text().startswith("Why q001-")
    click(page.locator("#pair-ranking a", has_text="B").nth(4))
    assert page.locator(".versus .card").count() == 2
    assert "would swap" in page.locator("main").inner_text().lower()
    assert click.count <= 4


def test_board_and_next_pairs_take_few_clicks(open_page, address, arena):
    page = open_page(1440)
    click = open_project(page, address, arena)  # votes open on the board
    assert page.locator(".answer .winner").first.inner_text() == "model-0"
    click(page.get_by_role("link", name="What to compare next"))
    assert page.locator("#next").is_visible()
    click(page.get_by_role("link", name="Valid at every look"))
    assert "at every look" in page.locator("main").inner_text()
    assert click.count <= 4


def test_spammers_out_and_recompute_takes_few_clicks(open_page, address, arena, shot):
    page = open_page(1440)
    click = open_project(page, address, arena)
    before = page.locator("main").inner_text()
    assert "900 votes" in before
    click(page.locator("nav[aria-label=Views]").get_by_role("link", name="Annotators"))
    click(page.get_by_role("button", name="Exclude the checked and recompute"))
    assert "judgements are left out" in page.locator("main").inner_text()
    shot(page, "annotators-excluded-1440")
    click(page.locator("nav[aria-label=Views]").get_by_role("link", name="Leaderboard"))
    assert click.count <= 4
    assert "900 votes" not in page.locator("main").inner_text()
    page.goto(f"{address}/p/{arena}/annotators")
    settle(page)
    page.get_by_role("button", name="Restore").click()
    settle(page)


def test_weights_move_the_figure_of_all_queries_and_are_kept(open_page, address, shot):
    page = open_page(1440)
    page.goto(f"{address}/p/demo/explain?m=rrf")
    settle(page)
    before = page.locator("#effect-now").inner_text()
    slider = page.get_by_label("echo-1", exact=True)
    slider.focus()
    with page.expect_response("**/effect.json**"):
        page.keyboard.press("Home")
    for _ in range(200):
        if page.locator("#effect-now").inner_text() != before:
            break
        page.wait_for_timeout(50)
    assert "200 judged queries" in page.locator("#effect").inner_text()
    assert "w%3Aecho-1=0" in page.url
    now = page.locator("#effect-now").inner_text()
    page.get_by_label("Name", exact=True).fill("Without echo-1")
    page.get_by_role("button", name="Keep these weights").click()
    settle(page)
    assert page.locator("select[name=m] option:checked").inner_text() == "Without echo-1"
    assert page.locator("#effect-before").inner_text() == now
