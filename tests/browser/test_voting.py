"""Voting in Chromium: two judges at once, a server killed between votes, keys, phones, a board that follows."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import time

import pytest

from serving import started

ITEMS = "id,title,text\n" + "".join(
    f"answer-{n},Answer {n},The {n}. answer explains the matter in {n * 7} words.\n" for n in range(1, 7)
)


def wait_for(page, expression, seconds=60):
    """Poll from outside: the pages forbid code from strings, which waiting inside them needs."""
    for _ in range(seconds * 20):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"waited in vain for {expression}")


def start_collection(page, address, tmp_path):
    (tmp_path / "items.csv").write_text(ITEMS)
    page.goto(address + "/")
    card = page.locator("section", has_text="Collect votes")
    card.locator("input[type=file]").set_input_files(tmp_path / "items.csv")
    card.get_by_role("button", name="Start collecting").click()
    page.wait_for_selector("text=Vote now")
    return page.url.split("/p/")[1].split("/")[0]


def invite(page, name, role="judge"):
    page.get_by_label("Name").fill(name)
    page.get_by_label("Role").select_option(role)
    page.get_by_role("button", name="Make a link").click()
    page.wait_for_selector(f"li:has-text('{name}')")
    return page.locator("li", has_text=name).locator("a").get_attribute("href")


def read_votes(folder):
    with sqlite3.connect(folder / "studio.sqlite") as db:
        return db.execute("SELECT key, judge, first, second, answer FROM votes ORDER BY number").fetchall()


def press(page, key):
    """Answer by a key, and wait until the answer is stored."""
    before = page.locator("#own-votes").inner_text()
    page.keyboard.press(key)
    wait_for(page, f"document.getElementById('own-votes').textContent !== '{before}'")


def test_two_judges_vote_across_a_killed_server(browser, tmp_path, shot):
    folder = tmp_path / "studio"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    contexts = [browser.new_context(viewport={"width": 1280, "height": 900}) for _ in range(3)]
    admin, ann, ben = (context.new_page() for context in contexts)
    with started(folder, "--quiet", "--port", port) as (server, facts):
        address = facts["address"]
        project = start_collection(admin, address, tmp_path)
        links = {name: address + invite(admin, name) for name in ("ann", "ben")}
        ann.goto(links["ann"])
        ben.goto(links["ben"])
        pairs = [sorted(page.locator(".item h2").all_inner_texts()) for page in (ann, ben)]
        assert pairs[0] != pairs[1]  # two judges do not compare the same pair at the same time
        for key in ("ArrowLeft", "ArrowRight", "ArrowDown"):
            press(ann, key)
            press(ben, key)
        assert len(read_votes(folder)) == 6
        server.send_signal(signal.SIGKILL)
        server.wait(30)
    # both vote while there is no server: the votes wait in the pages
    ann.keyboard.press("ArrowLeft")
    ben.get_by_role("button", name="Right").click()
    for page in (ann, ben):
        wait_for(page, "document.getElementById('status').textContent.includes('kept here')")
    assert len(read_votes(folder)) == 6
    with started(folder, "--quiet", "--port", port) as (server, _):
        for page in (ann, ben):
            wait_for(page, "document.getElementById('own-votes').textContent === '4'")
        # killed as soon as a vote is in the database, whether or not the page got its answer
        ann.keyboard.press("ArrowRight")
        for _ in range(2000):
            if len(read_votes(folder)) == 9:
                break
            time.sleep(0.01)
        server.send_signal(signal.SIGKILL)
        server.wait(30)
    with started(folder, "--quiet", "--port", port):
        wait_for(ann, "document.getElementById('own-votes').textContent === '5'")
        press(ann, "ArrowLeft")
        press(ben, "ArrowLeft")
        ben.keyboard.press("z")
        wait_for(ben, "document.getElementById('status').textContent.includes('undone')")
        press(ben, "ArrowRight")
        votes = read_votes(folder)
        assert len(votes) == len({key for key, *_ in votes}) == 12
        assert [sum(judge == name for _, judge, *_ in votes) for name in ("ann", "ben")] == [6, 6]
        for name in ("ann", "ben"):  # no pair twice, apart from the undone one
            shown = [frozenset(vote[2:4]) for vote in votes if vote[1] == name]
            assert len(set(shown)) == (6 if name == "ann" else 5)
        admin.goto(f"{address}/p/{project}/collect")
        assert admin.locator("#vote-count").inner_text() == "11"
        assert admin.locator(".board svg").count() > 0
        shot(admin, "collect-1280")
        document = json.loads(admin.request.get(f"{address}/p/{project}/votes.json").text())
        assert len(document["votes"]) == 11
    for context in contexts:
        context.close()


def test_the_board_follows_the_votes(open_page, address, tmp_path, shot):
    page = open_page()
    project = start_collection(page, address, tmp_path)
    viewer = address + invite(page, "guest", "viewer")
    watching, seen = open_page(390), open_page()
    watching.goto(viewer)
    page.get_by_role("button", name="Vote now").click()
    seen.goto(f"{address}/p/{project}/collect")
    for key in ("ArrowLeft", "ArrowRight", "s", "ArrowLeft"):
        press(page, key)
    wait_for(seen, "document.getElementById('vote-count').textContent === '4'")
    wait_for(watching, "document.querySelectorAll('.board tbody tr')[0].cells[0].textContent === '1'")
    shot(watching, "vote-board-390")
    assert watching.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize(
    ("width", "scheme"), [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")]
)
def test_voting_fits_every_window(open_page, address, tmp_path, shot, width, scheme):
    page = open_page(width, 844 if width == 390 else 900, color_scheme=scheme)
    start_collection(page, address, tmp_path)
    shot(page, f"collect-{width}-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.get_by_role("button", name="Vote now").click()
    page.wait_for_selector(".pair")
    shot(page, f"vote-{width}-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    for _ in range(2):
        press(page, "ArrowLeft")


def test_voting_without_scripts_and_by_rating(open_page, address):
    page = open_page(java_script_enabled=False)
    card = page.locator("section", has_text="Collect votes")
    card.get_by_label("Items, one per line").fill("A red bicycle\nA blue bicycle\nA green bicycle")
    card.get_by_label("a rating from 1 to 5").check()
    card.get_by_role("button", name="Start collecting").click()
    page.get_by_role("button", name="Vote now").click()
    for grade in ("4", "2"):
        page.get_by_role("button", name=grade, exact=True).click()
    assert page.locator("#own-votes").inner_text() == "2"
    page.get_by_role("button", name="Undo the last vote").click()
    assert page.locator("#own-votes").inner_text() == "1"
