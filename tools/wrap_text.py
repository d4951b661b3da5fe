"""Wrap the prose of Markdown files at 110 columns.

python tools/wrap_text.py                    # fill every paragraph again that has a longer line
python tools/wrap_text.py docs/scale.md      # of these files only
python tools/wrap_text.py --check            # list longer lines and change nothing

Tables, headings, code, formulas, comments and front matter stay as they are. Links, short code spans and short
formulas are not broken.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 110
# the first line of a block that is no prose, and what the line that ends it begins or ends with
OPENINGS = {"```": "```", "~~~": "~~~", "$$": "$$", "<!--": "-->"}
LIST_ITEM = re.compile(r"(?:> ?)*(\s*(?:[-*+]|\d+[.)])\s+)?")
OTHER = re.compile(r"\s*(\||#|<|:::|\[[^\]]+\]:|\(\w+\)=|@|%|$)")
# words at the beginning of a line that would be read as something else than text
MARKS = re.compile(r"[-*+|>#=%@<]|\d+[.)]$|:::")
WORD = re.compile(r"(?:`+[^`]+`+|\$[^$]+\$|!?\[[^\]]*\]\([^)]*\)|\S)+")


def iterate_blocks(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """Runs of lines, and whether they are a paragraph or list item (or a single line of something else)."""
    paragraph: list[str] = []
    end = "---" if lines[0] == "---" else ""
    for number, line in enumerate(lines):
        text = line.strip()
        opening = next((mark for mark in OPENINGS if text.startswith(mark)), "")
        is_prose = not end and not opening and not OTHER.match(line)
        if paragraph and (not is_prose or LIST_ITEM.match(line)[0].strip("> ")):  # type: ignore[index]
            yield True, paragraph
            paragraph = []
        if is_prose:
            paragraph.append(line)
            continue
        yield False, [line]
        if end:
            end = "" if number and (text.startswith(end) or text.endswith(end)) else end
        elif opening and not (len(text) > len(opening) and text.endswith(OPENINGS[opening])):
            end = OPENINGS[opening]
    if paragraph:
        yield True, paragraph


def wrap_paragraph(lines: list[str]) -> list[str]:
    """The lines of a paragraph filled again, with the indentation of its list item."""
    first = LIST_ITEM.match(lines[0])[0] or re.match(r"\s*", lines[0])[0]  # type: ignore[index]
    quote = first[: first.rfind(">") + 1]
    rest = quote + " " * (len(first) - len(quote))
    text = " ".join(line.removeprefix(quote).strip() for line in [lines[0][len(first) :], *lines[1:]])
    words: list[str] = []
    for span in WORD.findall(text):
        for word in [span] if len(span) <= WIDTH // 2 else span.split():
            # a mark stays on the line of the word before it
            if words and MARKS.match(word):
                words[-1] += f" {word}"
            else:
                words.append(word)
    wrapped = [first + words[0]]
    for word in words[1:]:
        if len(wrapped[-1]) + 1 + len(word) <= WIDTH:
            wrapped[-1] += f" {word}"
        else:
            wrapped.append(rest + word)
    return wrapped


def wrap_markdown(text: str) -> str:
    """`text` with every paragraph filled again that has a line of more than `WIDTH` columns."""
    wrapped: list[str] = []
    for is_paragraph, block in iterate_blocks(text.split("\n")):
        # two blanks or a backslash at the end of a line are a break that somebody wanted
        has_breaks = any(line.endswith(("  ", "\\")) for line in block)
        fill = is_paragraph and not has_breaks and any(len(line) > WIDTH for line in block)
        wrapped += wrap_paragraph(block) if fill else block
    return "\n".join(wrapped)


def list_files() -> list[Path]:
    """The Markdown files of the repository."""
    folders = [".github", "benchmarks", "deployment", "docs", "papers", "skills", "src", "tests"]
    pages = [path for folder in folders for path in (ROOT / folder).rglob("*.md")]
    return sorted([*ROOT.glob("*.md"), *pages])


def find_long_lines(text: str) -> list[str]:
    """The lines of prose with more than `WIDTH` columns."""
    blocks = iterate_blocks(text.split("\n"))
    return [line for is_paragraph, block in blocks if is_paragraph for line in block if len(line) > WIDTH]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args()
    for path in options.files or list_files():
        text = path.read_text(encoding="utf-8")
        for line in find_long_lines(text):
            print(f"{path}: {line[:WIDTH]}")
        if not options.check and (wrapped := wrap_markdown(text)) != text:
            path.write_text(wrapped, encoding="utf-8")


if __name__ == "__main__":
    main()
