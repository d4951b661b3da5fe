"""The fields of the form by which files are opened, and how messages name them."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from podium.core import registry
from podium.core.errors import Option, ParameterError, join_words

__all__ = [
    "FIELDS",
    "FURTHER",
    "FormField",
    "parse_entered_options",
    "select_reading_options",
    "spell_option",
]

FURTHER = "options"  # the field for whatever has none of its own
NOTHING = "none"  # typed where the answer is "no cell at all", as an empty field is no answer


class FormField(NamedTuple):
    """One field: what it is called, what may be chosen in it (nothing: any text), and a word of help."""

    label: str
    choices: tuple[tuple[str, str], ...] = ()
    help: str = ""


def _build_choices(*words: str) -> tuple[tuple[str, str], ...]:
    return tuple((word, word) for word in words)


FIELDS: dict[str, FormField] = {
    "format": FormField("Format"),  # its choices are the formats that are registered
    "kind": FormField(
        "What it holds", _build_choices("lists", "votes", "ratings", "labels", "features", "ranks", "scores")
    ),
    "columns": FormField("Columns of a table without a heading", help="with commas between them"),
    "expert": FormField("Experts", help="the column that names them; file: the files are the experts"),
    "unlisted": FormField(
        "Items an expert does not list are", (("below", "below those it lists"), ("unknown", "unknown to it"))
    ),
    "duplicates": FormField("Items listed twice", _build_choices("first", "best", "sum")),
    "missing": FormField(
        "Cells without a value", help=f"what stands in them, with commas between them; {NOTHING}: no cell is"
    ),
    "encoding": FormField("Encoding", help="such as latin-1, cp1252 or utf-16"),
    FURTHER: FormField("Further options", help="such as item=document score=s, with spaces between them"),
}


@functools.cache
def list_reading_options() -> frozenset[str]:
    """Names of all options that some format has to read."""
    every = {name for cls in registry.formats.all().values() for name in cls().options("read")}
    return frozenset(every | {"format", "encoding"})


def parse_entered_options(form: Mapping[str, str]) -> dict[str, str]:
    """What was entered in the fields, by the name of the option; empty fields are no answers.

    >>> parse_entered_options({"duplicates": "first", "format": "", "options": "item=document score='my score'"})
    {'duplicates': 'first', 'item': 'document', 'score': 'my score'}
    """
    found = {name: form[name] for name in FIELDS if name != FURTHER and form.get(name)}
    label = FIELDS[FURTHER].label
    try:
        words = shlex.split(form.get(FURTHER, ""))
    except ValueError:
        raise ParameterError(f"“{label}” has a quotation mark without an end; close it") from None
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ParameterError(f"“{label}” has {word[:50]!r}; write name=value")
        if name not in list_reading_options():
            raise ParameterError(f"“{label}” has {name[:50]!r}, which no format has; see the formats")
        if name in found:
            raise ParameterError(f"{name} is given twice; give it once")
        found[name] = value
    for name, field in FIELDS.items():
        accepted = [value for value, _ in field.choices]
        if accepted and found.get(name, accepted[0]) not in accepted:
            raise ParameterError(f"{name} is {found[name][:50]!r}; accepted: {', '.join(accepted)}")
    return found


def select_reading_options(entered: Mapping[str, Any]) -> dict[str, Any]:
    """What `formats.read` takes, of what a project was opened with."""
    known = {name: value for name, value in entered.items() if name in list_reading_options()}
    return known | ({"missing": ()} if known.get("missing") == NOTHING else {})


def spell_option(option: Option) -> str:
    """An option that a message asks for, by the field in which it is given.

    >>> tuple(map(spell_option, (Option("duplicates", "first", "sum"), Option("encoding"), Option("missing", ()))))
    ('“Items listed twice”: first or sum', '“Encoding”', '“Cells without a value”: none')
    >>> spell_option(Option("item", "...")), spell_option(Option("scorer", "lambdarank", of="method"))
    ('“Further options”: item=...', 'scorer=lambdarank')
    """
    values = [NOTHING if v == () else str(v) for v in option.values]
    if option.of != "reading":
        return join_words([f"{option.name}={value}" for value in values or [""]], "or")
    if option.name in FIELDS:
        wanted = join_words(values, "or")
        return f"“{FIELDS[option.name].label}”" + (f": {wanted}" if wanted else "")
    pairs = join_words([f"{option.name}={value}" for value in values or ["..."]], "or")
    return f"“{FIELDS[FURTHER].label}”: {pairs}"
