"""The shape of all results: rows, a table, a chart, a document, a notebook view.

A result declares its columns, the field that identifies a row and the attributes of its document.
The command line, reports, the studio and notebooks print the tables made from them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from podium.core.errors import ParameterError
from podium.core.params import suggest_names
from podium.core.tables import Grid, escape_html, format_json, render_block, render_paragraph, render_table

Row = TypeVar("Row")
Column = tuple[str, Callable[[Any], str]]  # the heading, and the text of the cell in a row
ViewBlock = str | tuple[str, ...] | Grid  # a paragraph, a bullet list, a table


def show_field(name: str, form: Callable[[Any], str] = str) -> Callable[[Any], str]:
    """The cell that shows one field of a row.

    >>> show_field("real", "{:.1f}".format)(2)
    '2.0'
    """
    return lambda row: form(getattr(row, name))


def build_grid(
    columns: Iterable[Column],
    rows: Iterable[Any],
    *,
    left: int = 1,
    title: str = "",
    optional: Container[str] = (),
) -> Grid:
    """A table of the rows; `optional` columns without any text are left out.

    >>> columns = [("id", str), ("half", lambda r: f"{r / 2:g}"), ("note", lambda r: "")]
    >>> build_grid(columns, [1, 2], optional={"note"})
    Grid(head=('id', 'half'), rows=(('1', '0.5'), ('2', '1')), left=1, title='')
    """
    rows = list(rows)
    table = [(name, [cell(row) for row in rows]) for name, cell in columns]
    kept = [(name, texts) for name, texts in table if name not in optional or any(texts)]
    lines = tuple(zip(*(texts for _, texts in kept), strict=True))
    return Grid(tuple(name for name, _ in kept), lines, left, title)


class Result(Generic[Row]):
    """Base of all results; a subclass has `rows` and declares what describes them."""

    key: ClassVar[str] = ""  # the field that identifies a row
    facts: ClassVar[tuple[str, ...]] = ()  # keys of the document
    shown: ClassVar[int | None] = None  # rows of a table in a notebook

    # a field of some results and a property of others; a class attribute would be its default
    if TYPE_CHECKING:

        @property
        def rows(self) -> Sequence[Row]:
            """What the result consists of, in the order of its table."""

    def headline(self) -> str:
        """The result in one line."""
        raise NotImplementedError

    def grid(self) -> Grid:
        """The rows as a table of text."""
        raise NotImplementedError

    def chart(self) -> Any:
        """The result as an Altair chart."""
        raise ParameterError(f"there is no chart of {type(self).__name__}")

    @property
    def title(self) -> str:
        """Title of the notebook view."""
        return repr(self)

    def blocks(self) -> Iterable[ViewBlock]:
        """Content of the notebook view: paragraphs, bullet lists and tables."""
        return (self.grid(),)

    def to_dict(self) -> dict[str, Any]:
        """Everything except large arrays, as plain values."""
        given = self._compute_facts()
        return {name: _to_plain(given[name] if name in given else getattr(self, name)) for name in self.facts}

    def _compute_facts(self) -> Mapping[str, Any]:
        """Facts that are not attributes, or not in the form of the document."""
        return {}

    def to_json(self) -> str:
        """The document of `to_dict` as JSON text."""
        return format_json(self.to_dict())

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, name: Any) -> Any:
        for row in self.rows:
            if getattr(row, self.key) == name:
                return row
        known = [str(getattr(row, self.key)) for row in self.rows]
        raise ParameterError(f"there is no {self.key} {name!r}; {suggest_names(str(name), known)}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.headline()})"

    def _repr_html_(self) -> str:
        return render_block(self.title, *(self._render(block) for block in self.blocks()))

    def _render(self, block: ViewBlock) -> str:
        if isinstance(block, Grid):
            return render_table(block, most=self.shown)
        if isinstance(block, str):
            return render_paragraph(block)
        return "<ul>" + "".join(f"<li>{escape_html(line)}</li>" for line in block) + "</ul>"


def _to_plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if hasattr(value, "_asdict"):  # a named tuple
        return value._asdict()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return [_to_plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value
