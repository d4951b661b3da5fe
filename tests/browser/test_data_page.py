"""Real sets through the Data page, by clicks alone; the clicks are counted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from browsing import settled

DATA = Path(os.environ.get("PODIUM_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
# the files of a set, the remedies to click, and what must then be said of the data
SETS = {
    "cast2019-preferences": ("*.gz", [], "14,573"),
    "chatbot-arena-counts": ("*.gz", [], "129"),
    "llm-judges": ("*.gz", [], "7,317"),
    "mirex2005": ("*.gz", ["Skip the rows with an empty cell", "A small label is good"], "2,805"),
    "mq2007-agg": ("*.gz", [], "69,623"),
    "mq2008": ("*.gz", [], "46"),
    "mq2008-agg": ("*.gz", [], "15,211"),
    "mslr-web10k-sample": ("*.gz", [], "136"),
    "ohsumed": ("*.gz", [], "16,140"),
    "preflib/00002-debian": ("*.gz", [], "504"),
    "preflib/00011-web": ("*.gz", [], "34,274"),
    "preflib/00014-sushi": ("*.gz", [], "150,000"),
    "preflib/00052-f1seasons": ("*.gz", [], "1,185"),
    "reading-level": ("*.gz", ["Skip votes between an item and itself"], "624"),
    "robust03-runs": ("*.gz", [], "161,004"),
    "small": ("potato*.gz", [], "12"),
    "small/nascar2002.csv.gz": ("", [], "1,548"),
    "trec2011-crowd": ("*.gz", ["Keep the first of duplicate rows", "-1 means unknown"], "762"),
}
MOST = 4


@pytest.mark.parametrize("name", SETS)
def test_a_real_set_opens_by_clicks(open_page, shot, name, record_property):
    pattern, remedies, figure = SETS[name]
    place = DATA / name
    files = sorted(place.glob(pattern)) if pattern else [place]
    if not all(file.exists() for file in files) or not files:
        pytest.skip(f"the data set {name} is not here; set PODIUM_DATA")
    page = open_page()
    page.set_default_timeout(120_000)
    clicks = 1  # on the field of the files
    with page.expect_navigation(timeout=120_000):
        page.set_input_files("#upload input[type=file]", files)
    settled(page)
    for remedy in remedies:
        page.get_by_role("button", name=remedy, exact=True).first.click()
        settled(page)
        clicks += 1
    if page.url.endswith("/data"):
        shot(page, f"data-{name.replace('/', '-')}")
        assert figure in page.locator("dl.facts").inner_text()
        page.get_by_role("link", name="Open the results").click()
        clicks += 1
        page.wait_for_selector("main h1")
    else:
        project = page.url.split("/")[4]
        told = page.request.get(f"{page.url.split('/p/')[0]}/p/{project}/data.json", timeout=120_000).json()
        assert any(figure in value for value in told["facts"].values())
    assert clicks <= MOST
    record_property("clicks", clicks)
    print(f"{name}: {clicks} clicks")
