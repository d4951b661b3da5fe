"""A view of the studio is one file: the routes, the navigation, JSON, CSV and figures follow from it."""

import csv
import io
import re
import sys
import time

import pytest

from podium.core.errors import ParameterError
from podium.studio import pages
from podium.studio.pages.view_context import View, register_view, views
from serving import serving

FILE = '''
import altair

from podium.core.tables import Grid
from podium.reporting.blocks import Figure, ReportTable
from podium.studio.pages.view_context import View, register_view


@register_view("toy", "Toy sizes", 25, applies=lambda data: data.labels is not None)
def build_toy_view(c):
    """The number of items of each query."""
    index = c.data.preferences.index
    rows = list(zip(index.queries.tolist(), index.sizes.tolist()))
    chart = altair.Chart(altair.Data(values=[{"items": n} for _, n in rows])).mark_bar().encode(x="items:Q")
    table = ReportTable(Grid(("query", "items"), tuple((str(q), str(n)) for q, n in rows)), 5)
    blocks = ["Hello.", Figure("sizes", chart, "Sizes"), table]
    return View("Sizes <of> queries", dict(rows), ("query", "items"), rows, blocks)
'''
RUN = b"q1 Q0 d1 1 2.5 bm25\nq1 Q0 d2 2 1.5 bm25\n"


def get_page(client, address):
    """A page, waited for as a browser would."""
    while 'http-equiv="refresh"' in (answer := client.get(address)).text:
        time.sleep(0.05)
    return answer


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A file more in the folder of the views, found on the next lookup."""
    folder = tmp_path / "views"
    folder.mkdir()
    (folder / "toy_views.py").write_text(FILE)
    monkeypatch.setattr(pages, "__path__", [*pages.__path__, str(folder)])
    monkeypatch.setattr(views, "_left", None)
    yield
    views.discard("toy")
    sys.modules.pop("podium.studio.pages.toy_views", None)


@pytest.mark.usefixtures("toy")
def test_a_file_is_a_view(tmp_path):
    with serving(tmp_path / "studio") as client:
        shown = get_page(client, "/p/demo/toy")
        assert shown.status_code == 200
        assert "<h1>Sizes &lt;of&gt; queries</h1>" in shown.text
        assert "<p>Hello.</p>" in shown.text
        menu = re.findall(r'<li><a href="/p/demo/(\w+)"([^>]*)>([^<]+)</a>', shown.text)
        assert [name for name, *_ in menu][:5] == ["data", "overview", "fuse", "toy", "methods"]  # 20, 25, 30
        assert [title for _, current, title in menu if "aria-current" in current] == ["Toy sizes"]
        assert 'href="/p/demo/toy"' in get_page(client, "/p/demo/fuse").text
        values = client.get("/p/demo/toy.json").json()
        table = list(csv.reader(io.StringIO(client.get("/p/demo/toy.csv").text)))
        assert table == [["query", "items"], *([q, str(n)] for q, n in values.items())]
        assert client.get("/p/demo/toy/sizes.svg").text.startswith("<svg xmlns")
        assert client.get("/p/demo/toy/other.svg").status_code == 404


@pytest.mark.usefixtures("toy")
def test_the_navigation_lists_only_views_that_apply(tmp_path):
    with serving(tmp_path / "studio") as client:
        csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/").text)[1]
        sent = client.post("/open/upload", data={"csrf": csrf}, files=[("files", ("a.run", RUN))])
        assert "/toy" not in get_page(client, sent.headers["location"]).text
        assert "/toy" in get_page(client, "/p/demo/overview").text


def test_a_name_belongs_to_one_view():
    with pytest.raises(ParameterError, match="two views are called 'fuse'"):

        @register_view("fuse")
        def build_other_view(c):
            return View("", None, (), ())

    assert views.get("fuse").title == "Fuse"
