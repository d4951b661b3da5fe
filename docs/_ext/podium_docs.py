"""Directives that write what Podium knows of itself, so that no fact is written twice.

    {podium-method} NAME      what a method is: summary, how to call it, what it reads, citation
    {podium-details} NAME     the rest of its docstring, its parameters, an example
    {podium-methods}          all methods by family
    {podium-engine} NAME      the methods of a search engine: how each differs, its parameters, an example
    {podium-dialects}         the methods of all search engines side by side
    {podium-metrics}          all metrics       {podium-formats}   all file formats
    {podium-shapes}           the files of other tools, with those of the tests that read them
    {podium-commands}         the help of every verb of the command line
    {podium-names}            the names that `import podium` gives
    {podium-packages} NAME    the API of all packages below a package
    {podium-learners}         the API of the models over item features

Each writes Markdown, which is then read like the rest of the page.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import podium
import podium.evaluate
from podium.cli import program
from podium.core import params, registry
from podium.data.preferences import Form
from podium.methods.describe import describe_method as facts_of

# module (or package) below podium.methods -> family; a module that is not here is a family of its own name
FAMILIES = {
    "positional": "Positions",
    "scores": "Scores",
    "majority": "Majority",
    "kemeny": "Majority",
    "markov": "Markov chains",
    "choice": "Choice models",
    "rankings": "Models of rankings and matrices",
    "stagewise": "Models of rankings and matrices",
    "matrix": "Models of rankings and matrices",
    "crowd": "Crowds and judges",
    "feature": "Item features and beliefs",
    "learned": "Learned from labels",
    "dialects": "As search engines compute them",
}
# how weights enter, in words
WEIGHTS = {
    "free": "factors from 0",
    "unit": "factors up to 1",
    "simplex": "factors that sum to 1",
    "alpha": "alpha for the second of two lists",
    "inside": "inside the rank",
    "none": "none",
}
PLURAL = {
    Form.RANKING: "rankings",
    Form.TOP_K: "top-k lists",
    Form.RATING: "ratings",
    Form.COMPARISON: "comparisons",
}
HELP_WIDTH = 84


class Written(SphinxDirective):
    """A directive whose Markdown a subclass writes."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Called by docutils."""
        text = "\n".join(self.lines())
        return list(self.parse_text_to_nodes(text, allow_section_headings=True))

    def lines(self) -> Iterator[str]:
        """The Markdown."""
        raise NotImplementedError

    @property
    def method(self) -> Any:
        """The class of the method named in the argument."""
        return registry.aggregators.get(self.arguments[0])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A Markdown table."""
    for row in (head, ["---"] * len(head), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
    yield ""


def prose(cls: type) -> tuple[str, str, str]:
    """The first paragraph of a docstring, the rest, and its example."""
    text, _, example = (inspect.getdoc(cls) or "").partition(">>> ")
    first, _, rest = text.strip().partition("\n\n")
    return first.replace("\n", " "), rest, f">>> {example}" if example else ""


class Method(Written):
    """What a method is, in one table."""

    def lines(self) -> Iterator[str]:
        cls = self.method
        yield prose(cls)[0]
        yield ""
        yield from table(("", ""), list(_facts_of(cls).items()))

    def run(self) -> list[nodes.Node]:
        """As usual, with a mark for the style sheet."""
        found = super().run()
        for node in found:
            for drawn in node.findall(nodes.table):
                drawn["classes"].append("facts")
        return found


def _facts_of(cls: Any) -> dict[str, str]:
    facts, tags = facts_of(cls), cls.tags
    exact = "exactly: contributions add up to the score"
    found = {
        "Python": f'`podium.make("{cls.name}")`, class `podium.{cls.__name__}`',
        "Command line": f"`-m {cls.name}`",
        "Reads": _forms(cls),
        "Needs labels": "yes, for `fit`" if tags.supervised else "no",
        "Weights": "one per expert" if tags.weighted else "takes none",
        "Explains": exact if cls().explains_exactly else "by leaving each expert out",
        "Queries": "each by itself" if tags.per_query else "share what is learned about experts",
    }
    if tags.uses_features:
        found["Item features"] = "used"
    if tags.condorcet:
        found["Condorcet"] = "an item that beats every other by majority comes first"
    return found | {"Citation": facts["citation"] or "none"}


class Details(Written):
    """The rest of the docstring, the parameters and the example."""

    def lines(self) -> Iterator[str]:
        cls = self.method
        _, rest, example = prose(cls)
        if rest.strip():
            yield from ("## In detail", "", rest, "")
        found = params.parameters(cls)
        yield from ("## Parameters", "")
        if cls.tags.weighted:
            yield f"`weights`, one number from 0 per expert, by name or in order{', and:' if found else '.'}\n"
        elif not found:
            yield "None.\n"
        if found:
            rows = [(f"`{p.name}`", f"`{p.default!r}`", _accepts(p), p.help) for p in found]
            yield from table(("name", "default", "accepted", "what it does"), rows)
        if cls.exempt:
            yield from ("## Known exceptions", "", "Checks of `podium.testing` that it need not pass:", "")
            yield from (f"- `{check}`: {reason}." for check, reason in cls.exempt.items())
            yield ""
        if example:
            yield from ("## Example", "", "```python", example, "```", "")


def _accepts(p: params.Parameter) -> str:
    if isinstance(p.accepts, params.Choice):
        return ", ".join(f"`{v}`" for v in p.accepts.values)
    return p.describe() + (f"; searched in {p.tune.low:g} to {p.tune.high:g}" if p.tune else "")


def family(cls: type) -> str:
    """The family a method belongs to, from the module that defines it."""
    part = cls.__module__.removeprefix("podium.methods.").split(".")[0]
    return FAMILIES.get(part, part.replace("_", " ").capitalize())


class Methods(Written):
    """A table of methods for every family."""

    def lines(self) -> Iterator[str]:
        found: dict[str, list[Any]] = {name: [] for name in FAMILIES.values()}
        for cls in registry.aggregators.all().values():
            if cls.__module__.startswith("podium."):
                found.setdefault(family(cls), []).append(cls)
        for name, classes in found.items():
            if classes:
                yield from (f"## {name}", "")
                yield from table(("method", "what it does", "reads", "weights"), [_row(c) for c in classes])


def _row(cls: Any) -> tuple[str, ...]:
    reads = "everything" if len(cls.tags.accepts) == len(PLURAL) else _forms(cls)
    page = f"/engines/{cls.dialect.engine}.md" if cls.tags.dialect else f"/methods/{cls.name}.md"
    return (
        f"[`{cls.name}`]({page})",
        prose(cls)[0],
        reads,
        "yes" if cls.tags.weighted else "no",
    )


def _forms(cls: Any) -> str:
    return ", ".join(word for form, word in PLURAL.items() if form in cls.tags.accepts)


def _dialects() -> list[Any]:
    return [cls for cls in registry.aggregators.all().values() if cls.tags.dialect]


def _limits(cls: Any) -> str:
    return next((p.describe() for p in params.parameters(cls) if p.name == "k"), "fixed or none")


class Engine(Written):
    """The methods of an engine, each with what it states about itself."""

    def lines(self) -> Iterator[str]:
        engine = registry.engines.get(self.arguments[0])
        for cls in _dialects():
            if cls.dialect.engine != engine.name:
                continue
            summary, rest, example = prose(cls)
            yield from (f"## {cls.name}", "", summary, "", rest, "")
            stated = cls.dialect
            rows = [
                ("In the engine", f"`{stated.call}`"),
                ("Term of rank r or score x", f"`{stated.formula}`"),
                ("Weights", WEIGHTS[stated.weights]),
                ("An item that a list lacks gets", stated.absent),
                ("A list of equal scores gives", stated.flat or "scores do not matter"),
                ("Equal results", stated.ties),
                ("Precision", stated.precision),
                ("Lists are cut by", stated.depth),
                ("Fewest lists", str(stated.fewest_lists)),
                ("Most lists", str(stated.most_lists or "any number")),
                ("Compared with", stated.verified),
            ]
            yield from table(("", ""), rows)
            own = [(f"`{p.name}`", f"`{p.default!r}`", _accepts(p), p.help) for p in params.parameters(cls)]
            if own:
                yield from table(("parameter", "default", "accepted", "what it does"), own)
            if cls.exempt:
                yield from (f"- Need not pass `{check}`: {reason}." for check, reason in cls.exempt.items())
                yield ""
            yield from ("```python", example, "```", "")


class Dialects(Written):
    """The methods of all engines side by side."""

    def lines(self) -> Iterator[str]:
        head = (
            "method",
            "term of rank r or score x",
            "k",
            "weights",
            "absent item",
            "equal scores",
            "precision",
        )
        rows = [
            (
                f"[`{cls.name}`](/engines/{cls.dialect.engine}.md)",
                f"`{cls.dialect.formula}`",
                _limits(cls),
                WEIGHTS[cls.dialect.weights],
                cls.dialect.absent,
                cls.dialect.flat,
                cls.dialect.precision,
            )
            for cls in _dialects()
        ]
        yield from table(head, rows)


class Metrics(Written):
    """All metrics."""

    def lines(self) -> Iterator[str]:
        rows = []
        for cls in registry.metrics.all().values():
            own = [f"`{p.name}={p.default}`: {p.help}" for p in params.parameters(cls) if p.name != "cutoff"]
            rows.append((f"`{cls.name}`", prose(cls)[0], cls.cutoff_rule, "; ".join(own), cls.citation))
        yield from table(("metric", "what it is", "cutoff", "parameters", "citation"), rows)


class Formats(Written):
    """All file formats."""

    def lines(self) -> Iterator[str]:
        rows = []
        for cls in registry.formats.all().values():
            made = cls()
            options = [", ".join(f"`{o}`" for o in made.options(verb)) for verb in ("read", "write")]
            rows.append((f"`{cls.name}`", cls.summary, " ".join(cls.suffixes), *options))
        yield from table(("format", "what it holds", "suffixes", "options to read", "to write"), rows)


class Shapes(Written):
    """The files of other tools, from the list that the tests read."""

    def lines(self) -> Iterator[str]:
        path = Path(__file__).parents[2] / "tests" / "support" / "file_shapes.py"
        spec = importlib.util.spec_from_file_location("file_shapes", path)
        assert spec is not None
        assert spec.loader is not None
        shapes = importlib.util.module_from_spec(spec)
        sys.modules["file_shapes"] = shapes  # dataclasses look their module up
        spec.loader.exec_module(shapes)
        writable = {name for name, cls in registry.formats.all().items() if cls.holds}
        rows = [
            (
                shape.title,
                f"`{shape.format}`",
                ", ".join(
                    part for part in ("votes", "rankings", "ratings", "labels") if getattr(shape, part)
                ),
                shape.rule,
                "yes" if shape.format in writable else "",
                shape.written_by if shape.is_real else "hand, in the documented shape",
            )
            for shape in (*shapes.SHAPES, *shapes.MORE_SHAPES)
        ]
        yield from table(("file", "format", "read as", "rule", "written", "test file written by"), rows)


class Commands(Written):
    """What `podium VERB --help` prints, for every verb."""

    def lines(self) -> Iterator[str]:
        width = {"max_content_width": HELP_WIDTH, "terminal_width": HELP_WIDTH}
        root = click.Context(program, info_name="podium", **program.context_settings | width)
        yield from ("## podium", "")
        yield from _help(program, root)
        for name in program.list_commands(root):
            verb = program.get_command(root, name)
            assert verb is not None
            yield from (f"## podium {name}", "")
            yield from _help(verb, click.Context(verb, parent=root, info_name=name))


def _help(command: click.Command, context: click.Context) -> Iterator[str]:
    yield from ("```text", command.get_help(context), "```", "")


def home(name: str) -> str:
    """Where a public name is written about: evaluation has pages of its own."""
    if name in podium.evaluate.__all__:
        return f"podium.evaluate.{name}"
    module = podium._NAMES.get(name, "")
    return f"{module}.{name}" if module.startswith("podium.evaluate.") else f"podium.{name}"


class Names(Written):
    """The public names of the package, with the first sentence of each."""

    def lines(self) -> Iterator[str]:
        rows = []
        for name in podium.__all__:
            if not name.startswith("__"):
                rows.append((f"{{py:obj}}`podium.{name} <{home(name)}>`", prose(getattr(podium, name))[0]))
        yield from table(("name", "what it is"), rows)


class Packages(Written):
    """The packages below a package, each under a heading of its own."""

    def lines(self) -> Iterator[str]:
        package = importlib.import_module(self.arguments[0])
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if found.ispkg:
                yield from (f"## {found.name.rpartition('.')[2].replace('_', ' ').capitalize()}", "")
                yield from ("```{eval-rst}", f".. automodule:: {found.name}")
                yield from (f"   :exclude-members: {_shared(package, found.name)}", "```", "")


class Learners(Written):
    """The API of the models over item features: what `import podium` gives that can be fitted and is no aggregator."""

    def lines(self) -> Iterator[str]:
        for name in podium.__all__:
            found = getattr(podium, name)
            if isinstance(found, type) and hasattr(found, "fit") and not issubclass(found, podium.Aggregator):
                yield from (
                    "```{eval-rst}",
                    f".. autoclass:: podium.{name}",
                    "   :inherited-members:",
                    "```",
                    "",
                )


def _shared(package: Any, name: str) -> str:
    """What a package below hands on to the one above, where it is described already."""
    below = vars(importlib.import_module(name))
    upper = {id(getattr(package, n)) for n in package.__all__}
    return ", ".join(n for n in below.get("__all__", ()) if id(below[n]) in upper)


DIRECTIVES: Mapping[str, type[Written]] = {
    "podium-method": Method,
    "podium-details": Details,
    "podium-methods": Methods,
    "podium-engine": Engine,
    "podium-dialects": Dialects,
    "podium-metrics": Metrics,
    "podium-formats": Formats,
    "podium-shapes": Shapes,
    "podium-commands": Commands,
    "podium-names": Names,
    "podium-packages": Packages,
    "podium-learners": Learners,
}


# pages of the repository -> the pages here that show them
SHOWN = {
    "../ARCHITECTURE.md": "/project/architecture.md",
    "../CHANGELOG.md": "/project/changelog.md",
    "../CONTRIBUTING.md": "/project/contributing.md",
    "../benchmarks/README.md": "/project/benchmarks.md",
}


def _follow(app: Sphinx, name: str, source: list[str]) -> None:  # noqa: ARG001 - called by Sphinx
    """Links out of this folder lead to the page that shows what they name."""
    for there, here in SHOWN.items():
        source[0] = source[0].replace(f"]({there}", f"]({here}")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", _follow)
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
