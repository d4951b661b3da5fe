"""Fenced blocks of Markdown pages, run as their reader would run them.

    python    run, page by page in one namespace; a block that begins with >>> is a doctest and must print what it shows
    console   lines that begin with $ are run, and must print what stands below them, if anything does
    setup     not a fence but a comment, `<!-- setup`, Python, `-->`: run, and not shown
    others    podium command lines in them are read as far as their options, so that a renamed one is found

A comment `<!-- needs: data -->` right above a block says that it needs the real data sets, and `<!-- needs: duckdb -->`
the package of that name: it is run where they are, and otherwise only read.
"""

from __future__ import annotations

import contextlib
import doctest
import glob
import importlib.util
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from podium.cli import program

FENCE = re.compile(
    r"(?:^<!-- needs: (?P<needs>\w+) -->\n)?^```(?P<kind>[^\n]*)\n(?P<code>.*?)^```$"
    r"|^<!-- setup\n(?P<setup>.*?)^-->$",
    re.S | re.M,
)
LOOSE = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
ENDS = {"|", ">", ">>", "<", "&&", ";"}  # of a command, in a line of a shell


class Block(NamedTuple):
    """One fence, where it begins, and what it needs besides the package."""

    kind: str
    code: str
    line: int
    needs: str | None


def blocks(text: str) -> Iterator[Block]:
    """All fences of a page."""
    for found in FENCE.finditer(text):
        line = text[: found.start() + 1].count("\n") + 1
        if found["setup"] is not None:
            yield Block("setup", found["setup"], line, None)
        else:
            yield Block(found["kind"].strip(), found["code"], line, found["needs"])


def run_page(page: Path, *, data: bool = False) -> dict[str, Any]:
    """Run all blocks of a page in the current folder; returns the namespace of its Python."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page.name}:{block.line}"
        ready = is_available(block.needs, data=data)
        if block.kind in ("setup", "python") and ready:
            run_python(block.code, scope, where)
        elif block.kind == "console" and ready:
            run_console(block.code, where)
        else:
            check_commands(block.code, where)
    return scope


def is_available(needs: str | None, *, data: bool) -> bool:
    """Whether what a block needs is here: nothing, the real data sets, or a package."""
    if needs in (None, "data"):
        return data or needs is None
    return importlib.util.find_spec(needs) is not None


def run_python(code: str, scope: dict[str, Any], where: str) -> None:
    """Run a block; what a doctest shows must come out."""
    if not code.startswith(">>>"):
        exec(compile(code, where, "exec", dont_inherit=True), scope)
        return
    test = doctest.DocTestParser().get_doctest(code, {}, where, where, 0)
    test.globs = scope
    told: list[str] = []
    doctest.DocTestRunner(optionflags=LOOSE).run(test, out=told.append, clear_globs=False)
    assert not told, "".join(told)


def run_console(code: str, where: str) -> None:
    """Run the commands of a block; what is shown below a command must come out."""
    for part in re.split(r"^\$ ", code.replace("\\\n", " "), flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        code_, got = run_command(command)
        assert code_ == 0, f"{where}: {command}\n{got}"
        same = not shown.strip() or doctest.OutputChecker().check_output(*map(_ruled, (shown, got)), LOOSE)
        assert same, f"{where}: {command}\n--- shown\n{shown}--- printed\n{got}"


def _ruled(text: str) -> str:
    """The same with rules of one length: theirs follows the width of the table."""
    return re.sub("─+", "─", text)


def words_of(command: str) -> list[str]:
    """The words of one of our commands, up to where a shell would begin another."""
    words = shlex.split(command, comments=True)
    end = next((n for n, word in enumerate(words) if word in ENDS), len(words))
    assert words[:1] == ["podium"], f"{command!r} is not a podium command; show it in a block of another kind"
    return words[1:end]


class Terminal(io.StringIO):
    """What a person would see: tables are drawn."""

    def isatty(self) -> bool:
        return True


def run_command(command: str) -> tuple[int, str]:
    """The exit code of a command, and what it printed on a terminal, errors too."""
    words = [w for word in words_of(command) for w in (sorted(glob.glob(word)) if "*" in word else [word])]
    screen, code = Terminal(), 0
    with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            program.main(words, prog_name="podium")
        except SystemExit as end:
            code = int(end.code or 0)
    return code, screen.getvalue() + errors.getvalue()


def check_commands(code: str, where: str) -> None:
    """Podium command lines have verbs and options that exist."""
    for line in code.replace("\\\n", " ").splitlines():
        if line.removeprefix("$ ").startswith("podium "):
            name, *words = words_of(line.removeprefix("$ ")) or [""]
            verb = None if name.startswith("-") else program.get_command(None, name)  # type: ignore[arg-type]
            if not name or name.startswith("-") or {"--help", "-h"} & set(words):
                continue
            assert verb is not None, f"{where}: there is no verb {name!r}"
            try:
                verb.make_context(name, words)
            except click.BadParameter as error:  # files of the reader are not here
                if "does not exist" not in error.message:
                    raise
