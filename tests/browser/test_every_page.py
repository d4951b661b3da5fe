"""Every page that the studio registers, in both themes and widths: it fits, and axe-core finds nothing."""

from __future__ import annotations

import random

import pytest

from browsing import go, settled
from podium.studio.pages.view_context import views
from podium.testing.panels import simulate_panel

RUN = "".join(
    f"q{q} Q0 d{(e + 2 * k + q) % 9} {k} {9 - k} engine-{e}\n"
    for q in range(5)
    for e in range(4)
    for k in range(1, 6)
)
WINDOWS = [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")]


def make_arena():
    """Votes on six models by seven careful judges, one random and one reversed."""
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


def open_file(page, address, path):
    page.goto(address + "/")
    with page.expect_navigation(timeout=60_000):
        page.set_input_files("#upload input[type=file]", path)
    settled(page)
    return page.url.split("/p/")[1].split("/")[0]


@pytest.fixture(scope="module")
def pages(browser, address, tmp_path_factory):
    """Addresses by name: every listed view of every kind of data, those below them, and the pages around them."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "arena.csv").write_text(make_arena())
    simulate_panel("one good judge", questions=60, gold=40).write_files(folder)
    (folder / "problem.txt").write_text("judge winner loser\nj1 a b\nj1 a a\n")
    (folder / "mine.run").write_text(RUN)
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(60_000)
    arena = open_file(page, address, folder / "arena.csv")
    opened = {"demo": "demo", "arena": arena}
    opened["panel"] = open_file(page, address, folder / "votes.csv")
    opened["run"] = open_file(page, address, folder / "mine.run")
    listed = {
        "home": "/",
        "api": "/docs",
        "vote-error": "/vote/no-such-link",
        "missing": "/p/demo/no-such-page",
    }
    listed["problem"] = f"/p/{open_file(page, address, folder / 'problem.txt')}/data"
    seen = set()
    for kind, project in opened.items():
        go(page, address, f"/p/{project}")
        for link in page.locator("nav[aria-label=Views] ul ul a").all():
            name = link.get_attribute("href").rsplit("/", 1)[1]
            # a view is looked at on the first data that it suits; the boards and forms on other data too
            if name not in seen or name in ("overview", "data"):
                listed[f"{kind}-{name}"] = f"/p/{project}/{name}"
            seen.add(name)
    listed["arena-adjusted"] = (
        f"/p/{arena}/leaderboard?control=length&control=order&slice=category&anytime=1&trust=1"
    )
    below = {"query": "/p/demo/query?q=q003", "worker": f"/p/{arena}/worker?who=judge-8"}
    go(page, address, "/p/demo/jobs")
    page.get_by_role("button", name="Start fitting").click()
    page.wait_for_selector(".state:text-is('done')", timeout=120_000)
    below["job"] = page.locator("a[href*='/job?']").first.get_attribute("href")
    page.goto(f"{address}/p/{opened['run']}/collect")
    page.get_by_role("button", name="Start collecting").click()
    page.wait_for_selector("text=Vote now")
    below["collecting"] = f"/p/{opened['run']}/collect"
    page.get_by_role("button", name="Vote now").click()
    page.wait_for_selector(".pair")
    below["vote"] = page.url.removeprefix(address)
    context.close()
    # a page that nobody added here is missing from this walk
    assert {name for name, view in views.all().items() if view.page} <= seen | set(below)
    return listed | below


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_every_page_fits_and_has_no_barrier(open_page, address, shot, pages, width, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-core is not installed"
    ).Axe()
    page = open_page(
        width, 900 if width > 500 else 844, expect_errors=True, color_scheme=scheme, bypass_csp=True
    )
    complaints = []
    for name, where in pages.items():
        go(page, address, where)
        shot(page, f"{name}-{width}-{scheme}")
        if page.locator("main [role=alert]").count() and name not in ("problem", "missing", "vote-error"):
            complaints.append((name, page.locator("main [role=alert]").first.inner_text()))
        if not page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
            complaints.append((name, "wider than the window"))
        for broken in axe.run(page).response["violations"]:
            complaints.append((name, broken["id"], [node["html"][:150] for node in broken["nodes"][:3]]))
    assert complaints == []
