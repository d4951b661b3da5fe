"""The documentation is true: its blocks run, every method has its page, and it builds without the net."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import click
import pytest

import podium
from blocks import blocks, check_commands, run_command, run_page
from podium.cli import program
from podium.core import registry

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if not p.name.startswith("_"))
METHODS = {p.stem: p for p in PAGES if p.parent.name == "methods" and p.stem != "index"}
pytestmark = pytest.mark.skipif(
    not (DOCS / "conf.py").is_file(), reason="the documentation is not part of this distribution"
)


@pytest.fixture
def terminal(tmp_path, monkeypatch):
    """An empty folder and a plain terminal of a fixed size."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"COLUMNS": "110", "LINES": "50", "TERM": "dumb", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def data(request, monkeypatch):
    """Whether the real data sets are there; commands find them then."""
    try:
        monkeypatch.setenv("PODIUM_DATA", str(request.getfixturevalue("data_dir")))
    except pytest.skip.Exception:
        return False
    return True


@pytest.fixture
def registered():
    """Methods, metrics and potentials that a page defines are forgotten."""
    kinds = (registry.aggregators, registry.metrics, registry.potentials)
    before = [set(kind.all()) for kind in kinds]
    yield
    for kind, known in zip(kinds, before, strict=True):
        for name in set(kind.all()) - known:
            kind.discard(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_blocks_run(page, terminal, registered, data):
    run_page(page, data=data)


def test_every_guide_begins_with_something_that_runs():
    for page in (DOCS / "guide").glob("*.md"):
        first = next(blocks(page.read_text()))
        assert first.kind in ("python", "console"), f"{page.name} begins with a block of {first.kind!r}"
        assert first.needs is None, page.name


def test_examples_of_own_parts_are_short():
    """A learner, a metric, a potential and a method take at most 20 lines of a program each."""
    for page in ("extending", "writing-a-method", "crowds"):
        for block in blocks((DOCS / f"{page}.md").read_text()):
            if block.kind == "python" and not block.code.startswith(">>>"):
                lines = [line for line in block.code.splitlines() if line.strip()]
                assert len(lines) <= 20, f"{page}, line {block.line}: {len(lines)} lines"


def test_every_method_has_a_page_and_every_page_a_method():
    assert set(METHODS) == {
        n
        for n, c in registry.aggregators.all().items()
        if c.__module__.startswith("podium.") and not c.tags.dialect
    }


def test_every_engine_with_methods_of_its_own_has_a_page():
    pages = {p.stem: p.read_text() for p in PAGES if p.parent.name == "engines"}
    own = {c.dialect.engine for c in registry.aggregators.all().values() if c.tags.dialect}
    assert own | {"sql", "index"} == set(pages)
    for name in own:
        assert f"```{{podium-engine}} {name}\n" in pages[name]
        assert f'"{name}"' in pages[name], "the page deploys to its engine"
    for name in set(registry.engines.all()) - own:
        assert f"`{name}`" in pages["sql"]


@pytest.mark.parametrize("name", METHODS)
def test_method_pages_are_alike(name):
    text = METHODS[name].read_text()
    assert re.findall(r"^## (.*)$", text, re.M) == ["Formula", "When to use it", "Cost"]
    written = re.findall(r"^```\{(podium-\w+)\} (\w+)$", text, re.M)
    assert written == [("podium-method", name), ("podium-details", name)]
    assert "$" in text.split("## Formula")[1].split("## When")[0]
    assert len(text.splitlines()) <= 70


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+?)(?:#[^)]*)?\)", page.read_text()):
            base = DOCS if target.startswith("/") else page.parent
            assert (base / target.lstrip("/")).exists(), f"{page.relative_to(DOCS)} links to {target}"


def test_prose_is_wrapped():
    """`python tools/wrap_text.py` fills the paragraphs that are listed here."""
    wrap_text = runpy.run_path(str(ROOT / "tools" / "wrap_text.py"))
    long_lines = {
        str(page.relative_to(ROOT)): lines
        for page in wrap_text["list_files"]()
        if (lines := wrap_text["find_long_lines"](page.read_text(encoding="utf-8")))
    }
    assert long_lines == {}


def test_a_command_with_a_renamed_option_is_found():
    check_commands("podium fuse a.run -m rrf   # fine\n$ podium methods | head\n", "here")
    for bad in ("podium fuse a.run --metod rrf", "podium fuze a.run", "podium fuse a.run --top x"):
        with pytest.raises(Exception, match=r"No such option|no verb|not a valid integer"):
            check_commands(bad, "here")


def test_commands_run_as_on_a_terminal(terminal):
    code, printed = run_command("podium methods")
    assert code == 0
    assert "────" in printed


# -- the build -----------------------------------------------------------------------------------------------------

NET = r'="(?:https?:)?//'
LOADED = re.compile(rf"<(?:script|img|iframe|source|embed)\b[^>]*\bsrc{NET}|<link\b[^>]*\bhref{NET}")


def test_it_builds_without_a_warning_and_is_whole(tmp_path):
    for module in ("sphinx", "myst_parser", "furo", "latex2mathml"):
        pytest.importorskip(module, reason="needs the extra docs: pip install 'podium-rank[docs]'")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "html",
        str(DOCS),
        str(tmp_path),
    ]
    plain = {**os.environ, "PYTHONWARNINGS": ""}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=plain)
    assert done.returncode == 0, done.stderr[-5000:]
    loads_nothing_from_the_net(tmp_path)
    formulas_are_mathml(tmp_path)
    public_names_are_in_the_reference(tmp_path)
    every_verb_is_in_the_reference(tmp_path)


def loads_nothing_from_the_net(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not LOADED.search(page.read_text()), page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"@import|url\([\"']?(?:https?:)?//", sheet.read_text()), sheet.name


def formulas_are_mathml(site: Path) -> None:
    for name in METHODS:
        text = (site / "methods" / f"{name}.html").read_text()
        assert "<math " in text, name
        assert not re.search(r"\\(frac|sum|text|log)\b", text), name


def public_names_are_in_the_reference(site: Path) -> None:
    from podium import evaluate

    pages = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    written = set(re.findall(r'id="(podium[\w.]*)"', pages))
    apart = {n for n, module in podium._NAMES.items() if module.startswith("podium.evaluate")}
    names = {f"podium.{n}" for n in podium.__all__ if not n.startswith("__") and n not in apart}
    names |= {f"{podium._NAMES[n]}.{n}" for n in apart if n not in evaluate.__all__}
    assert names | {f"podium.evaluate.{n}" for n in evaluate.__all__} <= written


def every_verb_is_in_the_reference(site: Path) -> None:
    text = (site / "cli.html").read_text()
    for verb in program.list_commands(click.Context(program)):
        assert f"Usage: podium {verb} " in text, verb
