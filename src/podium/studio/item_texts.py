"""The texts of items: read from a table with columns for id, title, text and address; names of items on pages."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from podium.core.errors import InputError
from podium.core.tables import shorten_text
from podium.data.ids import Id, Ids
from podium.storage.files import Source
from podium.studio.vote_records import CollectionItem

if TYPE_CHECKING:
    from podium.analysis.leaderboard import Leaderboard

# names of the columns of a table of texts, by role; the first that occurs counts
TEXT_COLUMNS = {
    "item": ("item", "id", "_id", "item_id", "doc", "docid", "doc_id", "docno", "pid", "document", "model", "name"),
    "title": ("title", "headline", "label", "name"),
    "text": ("text", "body", "content", "contents", "answer", "response", "passage", "abstract", "snippet",
             "description"),
    "url": ("url", "link", "href", "address", "image"),
}  # fmt: skip
MOST_ITEMS = 2000  # items of a collection
LONGEST_TEXT = 20_000  # characters of a shown text
LONGEST_TITLE = 120  # characters up to which plain lines are titles
NOTE = 120  # characters of a text in a table


@dataclass(frozen=True)
class ItemText:
    """What is known about an item beside its id."""

    title: str = ""
    text: str = ""
    url: str = ""


def name_item(item: Id, texts: Mapping[str, ItemText]) -> tuple[str, str]:
    """What a page calls an item, and the small print below: its title and id, or its id and the start of its text.

    >>> texts = {"5": ItemText("Five"), "a": ItemText(text="A text")}
    >>> name_item(5, texts), name_item("a", texts), name_item("b", texts)
    (('Five', '5'), ('a', 'A text'), ('b', ''))
    """
    known = texts.get(str(item), ItemText())
    if not known.title:
        return str(item), shorten_text(known.text, NOTE)
    return known.title, "" if known.title == str(item) else str(item)


def name_items(items: Iterable[Id], texts: Mapping[str, ItemText]) -> dict[Id, str]:
    """A name of its own for every item: its title, with the id where two items have the same title.

    >>> name_items([1, 2, 3], {"1": ItemText("Same"), "2": ItemText("Same"), "3": ItemText("Other")})
    {1: 'Same (1)', 2: 'Same (2)', 3: 'Other'}
    """
    names = {item: name_item(item, texts)[0] for item in items}
    count = Counter(names.values())
    return {item: f"{name} ({item})" if count[name] > 1 else name for item, name in names.items()}


def rename_items(board: Leaderboard, texts: Mapping[str, ItemText]) -> Leaderboard:
    """The board with the titles of its items in place of their ids, for people."""
    if not texts:
        return board
    names = name_items(board.tally.items.tolist(), texts)
    return replace(
        board,
        rows=tuple(replace(row, item=names[row.item]) for row in board.rows),
        groups=tuple(tuple(names[item] for item in group) for group in board.groups),
        tally=replace(board.tally, items=Ids(list(names.values()))),
    )


def read_item_texts(name: str, content: bytes, encoding: str = "utf-8") -> list[CollectionItem]:
    """The items of a CSV, TSV, JSON or JSON lines file, or of plain lines of text (ids are then 1, 2, ...).

    >>> read_item_texts("items.csv", b"id,text\\na,First answer\\nb,Second answer\\n")[1]
    CollectionItem(item='b', title='', body='Second answer', url='')
    >>> [i.item for i in read_item_texts("lines.txt", b"One slogan\\nAnother slogan\\n")]
    ['1', '2']
    """
    text = Source(name, content, encoding).data.decode("utf-8-sig").strip("\n\r")
    if not text.strip():
        raise InputError("the file is empty", source=name, remedy="give a table with a column of ids")
    if text.lstrip()[0] in "[{":
        rows = _read_json_rows(name, text)
    else:
        first = text.splitlines()[0]
        delimiter = max("\t;,", key=first.count)
        head = [cell.strip().lower() for cell in next(csv.reader([first], delimiter=delimiter))]
        if not set(head) & set(TEXT_COLUMNS["item"]):
            if len(head) > 1:
                raise InputError(
                    f"no column of ids among {', '.join(head)[:200]}",
                    source=name,
                    line=1,
                    remedy=f"name it one of {', '.join(TEXT_COLUMNS['item'])}",
                )
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            part = "title" if max(map(len, lines)) <= LONGEST_TITLE else "text"
            rows = ((n, {"item": str(n), part: line}) for n, line in enumerate(lines, 1))
        else:
            table = csv.DictReader(io.StringIO(text, newline=""), fieldnames=head, delimiter=delimiter)
            next(table)
            rows = ((table.line_num, row) for row in table)
    return _build_items(name, rows)


def _read_json_rows(name: str, text: str) -> Iterable[tuple[int, Mapping[str, Any]]]:
    try:
        if text.lstrip().startswith("["):
            return list(enumerate(json.loads(text), 1))
        return [(n, json.loads(line)) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    except (json.JSONDecodeError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise InputError("this is not JSON", source=name, line=line, remedy="give a table of items") from None


def _build_items(name: str, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> list[CollectionItem]:
    items: dict[Id, CollectionItem] = {}
    for line, row in rows:
        if not isinstance(row, Mapping):
            raise InputError(
                "a row is not an object", source=name, line=line, remedy="give {id, text} objects"
            )
        plain = {str(key).strip().lower(): value for key, value in row.items() if key is not None}
        cells: dict[str, Any] = {}
        for role, names in TEXT_COLUMNS.items():
            filled = (n for n in names if plain.get(n) not in (None, ""))
            cells[role] = plain.pop(next(filled, ""), "")  # a column has one role
        item = cells["item"] if isinstance(cells["item"], int) else str(cells["item"]).strip()
        if item == "" or isinstance(item, bool):
            raise InputError("a row has no id", source=name, line=line, remedy="give every item an id")
        if item in items:
            raise InputError(
                f"item {item!r} occurs twice", source=name, line=line, remedy="give each item once"
            )
        parts = (str(cells[part])[:LONGEST_TEXT] for part in ("title", "text", "url"))
        items[item] = CollectionItem(item, *parts)
        if len(items) > MOST_ITEMS:
            remedy = "collect votes on fewer items at a time"
            raise InputError(
                f"there are more than {MOST_ITEMS:,} items", source=name, line=line, remedy=remedy
            )
    return list(items.values())


def match_items(items: Iterable[CollectionItem], known: Ids) -> list[CollectionItem]:
    """The texts of items of a project, under its own ids: "5" in a file names the item 5 where no text item is.

    >>> match_items([CollectionItem("5", "Five"), CollectionItem("x", "Other")], Ids([5, 6]))
    [CollectionItem(item=5, title='Five', body='', url='')]
    """
    by_text = {str(item): item for item in known}
    kept = []
    for given in items:
        item = given.item if known.code_of(given.item) is not None else by_text.get(str(given.item))
        if item is not None:
            kept.append(CollectionItem(item, given.title, given.body, given.url))
    return kept
