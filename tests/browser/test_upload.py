"""Opening files in Chromium: dropped on the page, with the progress of an upload, and kept after an error."""

from __future__ import annotations

from browsing import go, settled, until

RUN = "".join(
    f"q{q} Q0 d{(e + k) % 7} {k} {9 - k} engine-{e}\n" for q in (1, 2) for e in (1, 2) for k in range(1, 6)
)
DROPPED = """([name, text]) => {
    const dropped = new DataTransfer();
    dropped.items.add(new File([text], name));
    return dropped;
}"""

WATCH = """() => {
    const seen = [], words = document.querySelector("#uploading span");
    new MutationObserver(() => {
        seen.push(words.textContent);
        sessionStorage.seen = JSON.stringify(seen);
    }).observe(words, {childList: true});
}"""


def test_dropped_files_are_opened(open_page, address):
    page = open_page()
    dropped = page.evaluate_handle(DROPPED, ["dropped.run", RUN])
    page.dispatch_event("[data-drop]", "dragover", {"dataTransfer": dropped})
    assert "over" in page.locator("[data-drop]").get_attribute("class")
    with page.expect_navigation():
        page.dispatch_event("[data-drop]", "drop", {"dataTransfer": dropped})
    settled(page)
    assert "dropped" in page.locator(".switcher summary").inner_text()


def test_an_upload_shows_its_progress(open_page, tmp_path):
    lines = [f"q{n} Q0 document-{k} {k} {99 - k} engine\n" for n in range(2000) for k in range(20)]
    (tmp_path / "long.run").write_text("".join(lines))
    page = open_page()
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 300_000}
    network.send("Network.emulateNetworkConditions", slow)
    page.evaluate(WATCH)
    with page.expect_navigation(timeout=60_000):
        page.set_input_files("#upload input[type=file]", tmp_path / "long.run")
    network.send("Network.emulateNetworkConditions", slow | {"uploadThroughput": -1})
    settled(page)
    seen = page.evaluate("JSON.parse(sessionStorage.seen)")
    shares = [int(text.removesuffix(" %")) for text in seen if text.endswith(" %")]
    assert len(shares) >= 3
    assert shares == sorted(shares)
    assert seen[-1] == "Reading the files"
    assert "long" in page.locator(".switcher summary").inner_text()


def test_chosen_files_are_kept_after_an_error(open_page, address, tmp_path):
    (tmp_path / "mine.run").write_text(RUN)
    (tmp_path / "wrong.csv").write_text("words\n")
    page = open_page(expect_errors=True)
    with page.expect_navigation():
        page.set_input_files("#upload input[type=file]", tmp_path / "mine.run")
    settled(page)
    go(page, address, f"/p/{page.url.split('/p/')[1].split('/')[0]}/data")
    field = page.get_by_label("Table of texts")
    field.set_input_files(tmp_path / "wrong.csv")
    page.get_by_role("button", name="Add texts").click()
    until(page, "document.querySelectorAll('[role=alert]').length === 1")
    assert "wrong.csv" in page.locator("[role=alert]").inner_text()
    assert "choose the files again" not in page.locator("[role=alert]").inner_text()
    assert field.evaluate("field => field.files[0].name") == "wrong.csv"
    (tmp_path / "right.csv").write_text("id,title\nd1,The first\n")
    field.set_input_files(tmp_path / "right.csv")
    page.get_by_role("button", name="Add texts").click()
    page.wait_for_selector("text=The texts were added.")
