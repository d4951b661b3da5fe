"""Click options from annotated dataclasses, and the objects that collect their values for a verb."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar, cast, get_origin

import click

from podium.core.errors import Option
from podium.core.params import Choice, Parameter, Range, parameters
from podium.core.text import join_words

F = TypeVar("F", bound=Callable[..., Any])
METRICS_HELP = (
    "A metric; may be repeated. One of ndcg, dcg, map, p, mrr, recall, f1, rprec, success, hits, bpref, rbp, err,"
    " judged, most with a "
    "cutoff, as in p@10. Grades of 1 and above are relevant; map(relevant=2) or 'p(relevant=2)@10' set another "
    "threshold. ndcg@10:exp and ndcg@10:letor use other gains, rbp(p=0.95) sets the persistence, "
    "err(max_grade=4) the highest possible grade."
)


def add_options(settings: type, *names: str, unset: bool = False, **changes: Any) -> Callable[[F], F]:
    """Add an option for each named field of an annotated dataclass, in that order.

    With `unset` an option that is not given is None instead of the default. `changes` are arguments of
    `click.option` that replace those from the annotations.
    """
    declared = {p.name: p for p in parameters(settings)}

    def decorate(command: F) -> F:
        for name in reversed(names):
            p = declared[name]
            flag, default = f"--{p.name.replace('_', '-')}", p.default
            arguments: dict[str, Any] = {
                "type": _choose_type(p),
                "help": p.help.replace("{default}", str(default)) or None,
                "metavar": p.flags.metavar,
            }
            if get_origin(p.hint) is tuple:
                arguments["multiple"] = True
            elif p.kind is bool:
                arguments |= {"type": None, "is_flag": True, "default": None if unset else default}
                arguments["show_default"] = default and not unset
                flag += f"/--no-{p.name.replace('_', '-')}" if default else ""
            elif not (unset or default is None or changes.get("required")):
                # 300 reads better than 300.0 in the help; click turns it into a float again
                whole = isinstance(default, float) and default.is_integer()
                arguments |= {"default": int(default) if whole else default, "show_default": True}
            command = click.option(*(p.flags.names or (flag,)), p.name, **(arguments | changes))(command)
        return command

    return decorate


def add_option(settings: type, name: str, help: str | None = None, **changes: Any) -> Callable[[F], F]:
    """Add one option, with a help text of the verb's own."""
    own: dict[str, Any] = {} if help is None else {"help": help}
    return add_options(settings, name, **changes, **own)


def _choose_type(p: Parameter) -> Any:
    """The click type of a setting: its own, a choice, a range, or plain."""
    own = next((mark for mark in p.marks if isinstance(mark, click.ParamType)), None)
    if own is not None:
        return own
    if isinstance(p.accepts, Choice):
        return click.Choice(list(p.accepts.values))
    if isinstance(p.accepts, Range) and p.flags.shows_range:
        low, high = p.accepts.low, p.accepts.high if math.isfinite(p.accepts.high) else None
        if p.kind is int:
            return click.IntRange(int(low), None if high is None else int(high))
        return click.FloatRange(low, high, min_open=p.accepts.open_low, max_open=p.accepts.open_high)
    return {int: int, float: float}.get(p.kind)


def collect(settings: type, name: str) -> Callable[[F], F]:
    """Hand a verb the values of the options that are fields of a dataclass as one object, called `name`."""
    known = {field.name for field in dataclasses.fields(settings)}

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def call(**values: Any) -> Any:
            own = {key: values.pop(key) for key in known & values.keys()}
            return command(**values, **{name: settings(**own)})

        return cast(F, call)

    return decorate


def metrics_option(*default: str) -> Callable[[F], F]:
    """Add `--metric`: the metrics to report."""
    return click.option(
        "-M", "--metric", "metrics", multiple=True, default=default, show_default=True, help=METRICS_HELP
    )


def spell_option(option: Option) -> str:
    """Spell an option that a message suggests as a command-line argument.

    >>> tuple(map(spell_option, (Option("duplicates", "first", "sum"), Option("missing", ()), Option("columns"))))
    ('-O duplicates=first or -O duplicates=sum', '-O missing=', '-O columns=')
    >>> tuple(map(spell_option, (Option("format", "csv"), Option("format"), Option("format", of="writing"))))
    ('-f csv', '-f NAME', '--to NAME')
    >>> spell_option(Option("overwrite", True, of="writing")), spell_option(Option("scorer", "lambdarank", of="method"))
    ('--overwrite', '-p scorer=lambdarank')
    >>> spell_option(Option("scale", "natural", of="setting"))
    '--scale natural'
    """
    name, values = option.name, ["" if v == () else str(v) for v in option.values]
    if name == "overwrite":
        return "--overwrite"
    if name == "unseen":
        return f"--unseen {join_words(values, 'or')} (of podium apply)"
    if name in ("format", "unlisted") or option.of == "setting":
        flag = f"--{name}" if name != "format" else "--to" if option.of == "writing" else "-f"
        return join_words([f"{flag} {value}" for value in values or ["NAME"]], "or")
    flag = "-p" if option.of == "method" else "-O"
    return join_words([f"{flag} {name}={value}" for value in values or [""]], "or")
