"""The fields of the open-files form, and how messages refer to them."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from podium.core import registry
from podium.core.errors import Option, ParameterError
from podium.core.text import join_words

FURTHER = "options"  # the field for options without their own field
KINDS = ("lists", "votes", "ratings", "labels", "features", "ranks", "scores")
REPEATS = ("first", "best", "sum")
NOTHING = "none"  # means "no cell is missing"; an empty field means "not given"


class FormField(NamedTuple):
    """One field: its label, its choices (empty: free text), and a short help text."""

    label: str
    choices: tuple[tuple[str, str], ...] = ()
    help: str = ""


FIELDS: dict[str, FormField] = {
    "format": FormField("Format"),  # the choices are the registered formats
    "kind": FormField("Content", tuple(zip(KINDS, KINDS, strict=True))),
    "columns": FormField("Columns of a table without a header", help="separated by commas"),
    "expert": FormField("Experts", help="the column with their names; file: each file is an expert"),
    "unlisted": FormField(
        "Unlisted items are", (("below", "below the listed items"), ("unknown", "unknown to the expert"))
    ),
    "duplicates": FormField("Duplicate items", tuple(zip(REPEATS, REPEATS, strict=True))),
    "missing": FormField(
        "Missing values", help=f"cell texts that mean missing, separated by commas; {NOTHING}: no text does"
    ),
    "encoding": FormField("Encoding", help="such as latin-1, cp1252 or utf-16"),
    FURTHER: FormField("More options", help="such as item=document score=s, separated by spaces"),
}


@functools.cache
def list_reading_options() -> frozenset[str]:
    """Names of the reading options of all formats."""
    every = {name for cls in registry.formats.all().values() for name in cls().options("read")}
    return frozenset(every | {"format", "encoding"})


def parse_entered_options(form: Mapping[str, str]) -> dict[str, str]:
    """The entered values by option name; empty fields are ignored.

    >>> parse_entered_options({"duplicates": "first", "format": "", "options": "item=document score='my score'"})
    {'duplicates': 'first', 'item': 'document', 'score': 'my score'}
    """
    options = {name: form[name] for name in FIELDS if name != FURTHER and form.get(name)}
    label = FIELDS[FURTHER].label
    try:
        words = shlex.split(form.get(FURTHER, ""))
    except ValueError:
        raise ParameterError(f"“{label}” has an unclosed quotation mark; close it") from None
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ParameterError(f"“{label}” has {word[:50]!r}; write name=value")
        if name not in list_reading_options():
            raise ParameterError(
                f"“{label}” has {name[:50]!r}, which is not an option of any format; see the formats"
            )
        if name in options:
            raise ParameterError(f"{name} is given twice; give it once")
        options[name] = value
    for name, field in FIELDS.items():
        accepted = [value for value, _ in field.choices]
        if accepted and options.get(name, accepted[0]) not in accepted:
            raise ParameterError(f"{name} is {options[name][:50]!r}; accepted: {', '.join(accepted)}")
    return options


def select_reading_options(entered: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `formats.read` among the options of a project."""
    known = {name: value for name, value in entered.items() if name in list_reading_options()}
    return known | ({"missing": ()} if known.get("missing") == NOTHING else {})


def spell_option(option: Option) -> str:
    """Spell an option that a message suggests as the form field that sets it.

    >>> tuple(map(spell_option, (Option("duplicates", "first", "sum"), Option("encoding"), Option("missing", ()))))
    ('“Duplicate items”: first or sum', '“Encoding”', '“Missing values”: none')
    >>> spell_option(Option("item", "...")), spell_option(Option("scorer", "lambdarank", of="method"))
    ('“More options”: item=...', 'scorer=lambdarank')
    """
    values = [NOTHING if v == () else str(v) for v in option.values]
    if option.of != "reading":
        return join_words([f"{option.name}={value}" for value in values or [""]], "or")
    if option.name in FIELDS:
        wanted = join_words(values, "or")
        return f"“{FIELDS[option.name].label}”" + (f": {wanted}" if wanted else "")
    pairs = join_words([f"{option.name}={value}" for value in values or ["..."]], "or")
    return f"“{FIELDS[FURTHER].label}”: {pairs}"
