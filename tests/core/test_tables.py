"""Tables as text, and how objects show themselves: escaped, short, and never a NaN that looks like a figure."""

from __future__ import annotations

import csv
import io
import json
import math
from html.parser import HTMLParser

import numpy as np
import pytest

import podium
from podium.analysis.annotators import annotators
from podium.analysis.experts import diagnose
from podium.analysis.leaderboard import leaderboard
from podium.core import registry, tables
from podium.core.tables import Grid
from podium.data.dataset import Dataset
from podium.data.demo import demo
from podium.evaluate import compare, cross_validate, evaluate

EVIL = "<script>alert('x')</script>&\"|%_$#{}~^\\"


class Tags(HTMLParser):
    """Every tag that is opened, and whether all are closed in order."""

    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(html: str) -> Tags:
    found = Tags()
    found.feed(html)
    found.close()
    assert not found.open
    return found


def shown_objects():
    """One of everything that shows itself, all with an id that is a script."""
    lists = {q: {EVIL: ["a", EVIL], "dense": [EVIL, "b"], "bm25": [EVIL, "a"]} for q in (EVIL, "r", "s", "t")}
    p = podium.Preferences.from_lists(lists)
    labels = podium.Labels.from_dict({q: {EVIL: 1, "b": 0} for q in lists})
    results = {EVIL: podium.make("rrf").aggregate(p), "borda": podium.make("borda").aggregate(p)}
    votes = podium.Preferences.from_comparisons(
        [0] * 60, [EVIL, "ben", "cid"] * 20, [EVIL, EVIL, "b"] * 20, ["b", "b", EVIL] * 20
    )
    features = podium.Features.from_rows(
        [EVIL, EVIL], [EVIL, "a"], [[1.0, math.nan], [3.0, math.nan]], [EVIL, "x"]
    )
    weighted = podium.make("rrf", weights={EVIL: 1.0, "dense": 2.0, "bm25": 1.0})
    return {
        "preferences": p,
        "labels": labels,
        "features": features,
        "data set": Dataset(p, labels, features, np.array([0, 1, 1, 2]), EVIL),
        "consensus": results[EVIL],
        "fused": podium.fuse([["a", EVIL], [EVIL]]),
        "method": weighted,
        "evaluation": evaluate(weighted.aggregate(p), labels, "mrr"),
        "comparison": compare(results, labels, "ndcg@10 tau"),
        "diagnosis": diagnose(p, labels),
        "vote diagnosis": diagnose(votes),
        "leaderboard": leaderboard(votes),
        "annotators": annotators(votes, method="copeland"),
    }


@pytest.fixture(scope="module")
def shown():
    return shown_objects()


KINDS = (
    "preferences", "labels", "consensus", "fused", "method", "evaluation", "comparison", "diagnosis", "vote diagnosis",
    "leaderboard", "annotators", "features", "data set",
)  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_ids_are_escaped_and_tags_are_closed(shown, name):
    html = shown[name]._repr_html_()
    found = parsed(html)
    assert "script" not in found.seen
    assert found.seen <= {"div", "p", "b", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert "color" not in html  # light and dark are the notebook's choice
    words = " ".join(found.text).split()
    assert "nan" not in words
    assert "inf" not in words


def test_cross_validation_shows_itself():
    found = cross_validate(demo(20), {"rrf": "rrf", "<b>": "borda"}, "ndcg@10")
    assert "&lt;b&gt;" in found._repr_html_()


@pytest.mark.parametrize("name", sorted(registry.aggregators.all()))
def test_every_method_shows_itself(name):
    found = parsed(podium.make(name)._repr_html_())
    assert name in " ".join(found.text)


def test_a_method_marks_what_was_changed_and_what_it_has_learned():
    html = podium.make("rrf(k=20)")._repr_html_()
    assert "changed from 60" in html
    data = demo(20)
    assert "Not fitted" in podium.make("svd")._repr_html_()
    fitted = podium.make("svd").fit(data.preferences, data.labels)._repr_html_()
    assert "experts_" in fitted
    assert "Not fitted" not in fitted


def test_long_things_are_cut_and_counted():
    p = podium.Preferences.from_lists({f"q{i}": {"e": [f"d{j}" for j in range(50)]} for i in range(9)})
    html = podium.make("rrf").aggregate(p)._repr_html_()
    assert "... 45 more" in html
    assert "... 6 more queries" in html
    assert len(html) < 4000
    many = podium.Preferences.from_lists({"q": {f"e{i:04}": ["a"] for i in range(500)}})
    assert "... 490 more" in many._repr_html_()
    assert "…" in tables.render_table(Grid(("x",), (("y" * 1000,),)))


def test_empty_things_show_themselves():
    empty = podium.Preferences.from_lists({})
    assert "0 queries" in empty._repr_html_()
    assert "0 judged items" in podium.Labels.from_dict({})._repr_html_()


def test_a_data_set_shows_all_its_parts():
    whole = " ".join(parsed(demo(12)._repr_html_()).text)
    assert "12 queries" in whole
    assert "expert" in whole
    assert "grade" in whole
    p = podium.Preferences.from_lists({q: {"e": ["a", "b"]} for q in range(5)})
    features = podium.Features.from_rows([0, 0], ["a", "b"], [[1.0], [4.0]], ["bm25"])
    text = " ".join(parsed(Dataset(p, None, features, np.array([0, 0, 0, 1, 1]))._repr_html_()).text)
    assert "There are no labels." in text
    assert "bm25 100% 1 2.5 4" in text
    assert "part queries 0 3 1 2" in text
    empty = Dataset(podium.Preferences.from_lists({}), podium.Labels.from_dict({}))
    assert "0 queries" in empty._repr_html_()


GRID = Grid(("name", "mean"), ((EVIL, "0.5"), ("a\nb\tc", "<0.001")), 1, "title")


def test_markdown_cells_stay_in_their_cells():
    lines = tables.format_markdown(GRID).splitlines()
    assert len(lines) == 4
    assert lines[1] == "| --- | ---: |"
    assert "<script" not in lines[2]
    assert lines[3] == "| a b c | <0.001 |"


def test_latex_has_no_command_that_was_not_meant():
    text = tables.format_latex(GRID, caption=EVIL)
    row = next(line for line in text.splitlines() if "alert" in line and "caption" not in line)
    body = row.removesuffix(" & 0.5 \\\\")
    allowed = ("textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater")
    at = 0
    while (at := body.find("\\", at)) >= 0:
        assert body[at + 1] in "&%$#_{}" or body[at + 1 :].startswith(allowed)
        at += 2 if body[at + 1] in "&%$#_{}" else 1
    assert "\\toprule" in text
    assert text.count("\\begin{table}") == text.count("\\end{table}") == 1


def test_csv_and_json_leave_out_what_is_not_defined():
    text = tables.format_csv(["a", "b"], [[EVIL, math.nan], ['x,"y"', 0.1 + 0.2]])
    rows = list(csv.reader(io.StringIO(text)))
    assert rows == [["a", "b"], [EVIL, ""], ['x,"y"', repr(0.1 + 0.2)]]
    document = {"x": [1.0, math.nan, {"y": math.inf}], "t": (1, None)}
    assert json.loads(tables.format_json(document)) == {"x": [1.0, None, {"y": None}], "t": [1, None]}


def test_a_page_is_whole_and_asks_nobody_else():
    html = tables.render_page(EVIL, tables.render_table(GRID))
    found = parsed(html.removeprefix("<!doctype html>\n"))
    assert found.seen.isdisjoint({"script", "link", "img", "iframe"})
    assert "http" not in html
    assert "color-scheme:light dark" in html


def test_tables_for_pages_that_forbid_styles():
    grid = Grid(("name", "value"), (("<a>", "1"), ("b", "2"), ("c", "3")), title="T")
    drawn = tables.render_table(grid, links=["/x?a=1&b=2", ""], inline=False)
    assert "style=" not in drawn
    assert '<td class="left"><a href="/x?a=1&amp;b=2">&lt;a&gt;</a></td><td class="right">1</td>' in drawn
    assert drawn.count("<a ") == 1
    assert "text-align:right" in tables.render_table(grid)
