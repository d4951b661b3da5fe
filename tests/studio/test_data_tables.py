"""The table of the studio: every row can be reached by its address, whatever the order and the search."""

from __future__ import annotations

from urllib.parse import parse_qsl

from hypothesis import given
from hypothesis import strategies as st

from podium.core.tables import Grid
from podium.reporting.blocks import ReportTable
from podium.studio.item_texts import ItemText
from podium.studio.pages.data_tables import PAGE, build_table_page, sort_rows

CELLS = st.sampled_from(
    ["", "1", "1,200", "-3.5", "+0.25", "<0.001", "abc", "Zed", "12 %", "·", "0.5 to 0.9"]
)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=160), st.sampled_from([1, -1, 2, -2]))
def test_pages_show_every_row_once(rows, sort):
    table = ReportTable(Grid(("a", "b"), tuple((f"row {n} {a}", b) for n, (a, b) in enumerate(rows))))
    state, seen = [("t.sort", str(sort))], []
    while True:
        page = build_table_page(table, "t", state)
        seen += page.rows
        assert len(page.rows) <= PAGE
        if not page.after:
            break
        state = parse_qsl(page.after.removeprefix("?").partition("#")[0])
    assert sorted(seen) == sorted(table.grid.rows)
    assert seen == build_table_page(table, "t", [("t.sort", str(sort))], whole=True).rows


@given(st.lists(CELLS, min_size=1, max_size=40), st.booleans())
def test_numbers_are_sorted_as_numbers_and_empty_cells_come_last(cells, descending):
    ordered = [
        row[0] for row in sort_rows([(cell,) for cell in cells], lambda row: row[0], descending=descending)
    ]
    numbers = {
        "1": 1,
        "1,200": 1200,
        "-3.5": -3.5,
        "+0.25": 0.25,
        "<0.001": 0.001,
        "12 %": 12,
        "0.5 to 0.9": 0.5,
    }
    found = [numbers[cell] for cell in ordered if cell in numbers]
    assert found == sorted(found, reverse=descending)
    kinds = [0 if cell in numbers else 2 if cell in ("", "·") else 1 for cell in ordered]
    assert kinds == sorted(kinds)


def test_a_search_keeps_the_order_and_other_parameters():
    table = ReportTable(Grid(("item", "score"), tuple((f"item {n}", str(n)) for n in range(100))))
    page = build_table_page(table, "t", [("m", "rrf"), ("t.sort", "-2"), ("t.find", "item 9")])
    assert [row[0] for row in page.rows] == [f"item {n}" for n in (99, 98, 97, 96, 95, 94, 93, 92, 91, 90, 9)]
    assert ("m", "rrf") in page.hidden
    assert page.columns[1].order == "descending"
    assert "t.sort=2" in page.columns[1].href


def test_any_address_gives_a_page():
    table = ReportTable(Grid(("item",), (("a",), ("b",))))
    for state in (("t.page", "99"), ("t.page", "-1"), ("t.sort", "x"), ("t.sort", "9" * 30), ("t.find", "%")):
        assert build_table_page(table, "t", [state]).columns


def test_only_the_cells_of_items_have_titles():
    texts = {"1": ItemText("One", "words"), "2": ItemText("", "the text of two")}
    rows = (("1", "1", "1"), ("2", "2", "2"), ("3", "3", "3"))
    table = ReportTable(Grid(("query", "item", "expert"), rows, 3), items=(1,))
    page = build_table_page(table, "t", [], {"2": "/two"}, texts)
    assert page.rows == [("1", "One", "1"), ("2", "2", "2"), ("3", "3", "3")]
    assert page.notes == [("", "1", ""), ("", "the text of two", ""), ("", "", "")]
    assert page.links == ["", "/two", ""]
    for wanted in ("one", "text of two"):  # a search finds titles and texts
        assert build_table_page(table, "t", [("t.find", wanted)], {}, texts).total == 1
    assert [row[1] for row in build_table_page(table, "t", [("t.sort", "-2")], {}, texts).rows] == [
        "3",
        "2",
        "One",
    ]
