"""Small tables as text: HTML, Markdown, LaTeX, CSV, and JSON without NaN. Plain values in, text out.

Undefined values are left empty, never printed as "nan". Colors are not fixed, so that pages may be light
or dark. Ids may contain any text; they are escaped here and nowhere else.
"""

from __future__ import annotations

import csv
import html
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST = 80  # characters of a cell in a notebook


@dataclass(frozen=True)
class Grid:
    """A table of text: column names and rows of cells; the first `left` columns are text, the others numbers.

    >>> print(format_markdown(Grid(("method", "mean"), (("rrf", "0.5"),))))
    | method | mean |
    | --- | ---: |
    | rrf | 0.5 |
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    title: str = ""


# -- numbers -------------------------------------------------------------------------------------------------


def format_decimal(value: float | None, digits: int = 4, *, sign: bool = False) -> str:
    """A number with the given number of digits, or an empty string when there is none.

    >>> format_decimal(0.25, 2), format_decimal(-0.00001, 2, sign=True), format_decimal(None)
    ('0.25', '+0.00', '')
    """
    if value is None or not math.isfinite(value):
        return ""
    rounded = round(value, digits) + 0.0  # -0.0 becomes a plain zero
    return f"{rounded:{'+' if sign else ''}.{digits}f}"


def format_percent(share: float | None) -> str:
    """A fraction as whole percent; 0% and 100% are printed only when exact.

    >>> format_percent(0.9999), format_percent(1.0), format_percent(0.0001), format_percent(float("nan"))
    ('>99%', '100%', '<1%', '')
    """
    if share is None or not math.isfinite(share):
        return ""
    if 0 < share < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


def format_interval(low: float | None, high: float | None) -> str:
    """The ends of an interval of differences, or an empty string where there is none.

    >>> format_interval(-0.5, 0.25), format_interval(None, 0.25)
    ('-0.5000 .. +0.2500', '')
    """
    ends = format_decimal(low, sign=True), format_decimal(high, sign=True)
    return " .. ".join(ends) if all(ends) else ""


def format_p_value(p: float | None) -> str:
    """A p-value with three digits, `<0.001` below that, empty where nothing was tested."""
    if p is None or not math.isfinite(p):
        return ""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def replace_nonfinite(value: Any) -> Any:
    """The same document with None for every number that JSON cannot represent."""
    if isinstance(value, dict):
        return {k: replace_nonfinite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [replace_nonfinite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# -- text formats --------------------------------------------------------------------------------------------


def format_markdown(grid: Grid) -> str:
    """A Markdown table."""
    rule = ["---"] * grid.left + ["---:"] * (len(grid.head) - grid.left)
    lines = [map(_escape_markdown, grid.head), rule, *(map(_escape_markdown, row) for row in grid.rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _escape_markdown(text: str) -> str:
    flat = " ".join(str(text).split())
    # a < before a digit does not start a tag
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", flat.replace("\\", "\\\\").replace("|", "\\|"))


_TEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
    **{c: "\\" + c for c in "&%$#_{}"},
}  # fmt: skip


def escape_latex(text: str) -> str:
    """Text with all TeX special characters escaped.

    >>> escape_latex("rrf_k=20 & 5%")
    'rrf\\\\_k=20 \\\\& 5\\\\%'
    """
    return "".join(_TEX.get(c, c) for c in " ".join(str(text).split()))


def format_latex(grid: Grid, *, caption: str = "", label: str = "") -> str:
    r"""A LaTeX table with booktabs rules."""
    columns = "l" * grid.left + "r" * (len(grid.head) - grid.left)

    def format_row(row: Iterable[str]) -> str:
        return " & ".join(map(escape_latex, row)) + r" \\"

    body = [r"\begin{tabular}{" + columns + "}", r"\toprule", format_row(grid.head), r"\midrule"]
    body += [*map(format_row, grid.rows), r"\bottomrule", r"\end{tabular}"]
    if not caption and not label:
        return "\n".join(body)
    about = [rf"\caption{{{escape_latex(caption)}}}"] if caption else []
    about += [rf"\label{{{label}}}"] if label else []
    return "\n".join([r"\begin{table}", r"\centering", *about, *body, r"\end{table}"])


def format_csv(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Comma-separated values in full precision; undefined values are empty."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(head)
    for row in rows:
        out.writerow(["" if (v := replace_nonfinite(value)) is None else v for value in row])
    return text.getvalue()


def format_json(document: Any) -> str:
    """Strictly valid JSON: null for undefined numbers."""
    return json.dumps(replace_nonfinite(document), ensure_ascii=False, indent=1, default=str) + "\n"


# -- HTML ----------------------------------------------------------------------------------------------------


def escape_html(value: Any) -> str:
    """Any value as text inside HTML, attributes included."""
    return html.escape(str(value), quote=True)


def shorten_text(text: str, longest: int = LONGEST) -> str:
    """Text truncated to fit a cell.

    >>> shorten_text("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= longest else text[: longest - 1] + "…"


def render_table(
    grid: Grid, *, most: int | None = None, more: int = 0, links: Sequence[str] = (), inline: bool = True
) -> str:
    """An HTML table of at most `most` rows; `more` counts further rows that the grid does not contain.

    `links` are the link targets of the first cells of the rows. Cells are aligned by inline styles or, if not
    `inline`, by the classes `left` and `right`, for pages that forbid inline styles.
    """
    rows = grid.rows[:most]
    left_out = len(grid.rows) - len(rows) + more

    def alignment(word: str) -> str:
        return f'style="text-align:{word}"' if inline else f'class="{word}"'

    def render_cells(row: Sequence[str], tag: str, link: str = "") -> str:
        sides = ("left" if i < grid.left else "right" for i in range(len(row)))
        texts = [escape_html(shorten_text(str(cell))) for cell in row]
        if link:
            texts[0] = f'<a href="{escape_html(link)}">{texts[0]}</a>'
        return "".join(f"<{tag} {alignment(word)}>{t}</{tag}>" for t, word in zip(texts, sides, strict=True))

    caption = f"<caption {alignment('left')}>{escape_html(grid.title)}</caption>" if grid.title else ""
    head = f"<thead><tr>{render_cells(grid.head, 'th')}</tr></thead>" if any(grid.head) else ""
    lead = [*links, *[""] * len(rows)]
    body = "".join(f"<tr>{render_cells(row, 'td', link)}</tr>" for row, link in zip(rows, lead, strict=False))
    rest = f'<tr><td colspan="{len(grid.head)}">... {left_out:,} more</td></tr>' if left_out > 0 else ""
    return f"<table>{caption}{head}<tbody>{body}{rest}</tbody></table>"


def render_paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{escape_html(text)}</p>"


def render_block(title: str, *parts: str) -> str:
    """The notebook view of an object: a bold title, then parts that are already HTML."""
    return f'<div style="overflow-x:auto"><p><b>{escape_html(title)}</b></p>{"".join(parts)}</div>'


STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;"
    "padding:0 1rem}table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}"
    "caption{font-weight:600;padding:.3rem 0}th,td{padding:.2rem .7rem;border-bottom:1px solid color-mix(in srgb,"
    "currentColor 20%,transparent)}thead th{border-bottom:2px solid currentColor}"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}"
)


def render_page(title: str, *parts: str, style: str = "") -> str:
    """A complete page from parts that are already HTML; it works offline and follows light or dark mode."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape_html(title)}</title><style>{STYLE}{style}</style></head>\n"
        f"<body><h1>{escape_html(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
