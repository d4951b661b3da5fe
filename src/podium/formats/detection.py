"""Detection of formats: a recipe by the keys of the first record, any other format by the first lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from podium.core.errors import InputError, Option, ParameterError
from podium.core.registry import formats, recipes
from podium.formats.base import Content, Format
from podium.storage.files import Source

__all__ = ["detect_format", "resolve_by_suffix"]

_MAY_HOLD_RECORDS = re.compile(
    rb"\s*[\[{]|PAR1|[^\n]*[,\t;|]"
)  # JSON, Parquet, or a first line with delimiters


def detect_format(source: Source, options: Mapping[str, Any]) -> str:
    """The name of the format of a file; an option that only tables have means that it is read as a table."""
    head = source.head()
    if source.encoding != "utf-8":
        head = Source(source.name, source.data).head()
    elif not head.startswith(b"PAR1"):
        head = Source(source.name, head).data if head.strip() else source.data
    if _MAY_HOLD_RECORDS.match(head) and (recipe := _detect_recipe(source, head, options)) is not None:
        return recipe
    # one sure format is enough: most files need no other one, and the recipes take a while to import
    for name, cls in formats.iterate():
        if cls().sniff(head) >= 0.9:
            return name
    plain: dict[str, Format] = {
        name: cls() for name, cls in formats.all().items() if name not in recipes.all()
    }
    sure = {
        name: f.sniff(head) * (1.0 if _has_suffix(source.name, f.suffixes) else 0.9)
        for name, f in plain.items()
    }
    best = max(sure, key=lambda name: sure[name])
    if sure[best] >= 0.3:
        return best
    # no format matches the content: the options may fit only one format, or the file suffix may name one
    by_options = [name for name, f in plain.items() if f.fits(head, options)]
    by_suffix = [name for name, f in plain.items() if _has_suffix(source.name, f.suffixes)]
    if 1 in (len(by_options), len(by_suffix)):
        return by_options[0] if len(by_options) == 1 else by_suffix[0]
    first = head.split(b"\n", 1)[0][:80].decode(errors="replace").rstrip()
    raise InputError(
        f"cannot detect the format from the first line {first!r}",
        source=source.name,
        remedy=(
            "give ",
            Option("format"),
            f", one of {', '.join(plain)}, or a recipe such as label-studio; for a table without a header also ",
            Option("columns"),
        ),
    )


def _detect_recipe(source: Source, head: bytes, options: Mapping[str, Any]) -> str | None:
    """The recipe whose marks the first record has, unless an option asks for a plain table."""
    from podium.formats.recipes.records import find_first_record

    record = find_first_record(source, head)
    if record is None:
        return None
    able = [cls() for cls in recipes.all().values() if record.container in cls.containers]
    able = [recipe for recipe in able if recipe.has_marks(record.fields) and recipe.matches(record.fields)]
    if able and options:
        of_tables = options.keys() & set(formats.get("jsonl")().options("read"))
        able = [recipe for recipe in able if of_tables <= set(recipe.options("read"))]
    names = [recipe.name for recipe in able]
    if len(names) > 1:
        raise InputError(
            f"this may be {' or '.join(names)}",
            source=source.name,
            remedy=("give ", Option("format", *names)),
        )
    return names[0] if names else None


def resolve_by_suffix(path: str, content: Content) -> str:
    """The name of the format in which a file with this name is written."""
    for name, cls in formats.all().items():
        if _has_suffix(path, cls.suffixes) and name not in recipes.all():
            return name
    able = [name for name, cls in formats.all().items() if cls.holds & content.parts] or list(formats.all())
    raise ParameterError(
        f"cannot detect the output format from the name {path!r}; give ",
        Option("format", of="writing"),
        f", one of {', '.join(able)}",
    )


def _has_suffix(name: str, suffixes: tuple[str, ...]) -> bool:
    return name.lower().removesuffix(".gz").endswith(suffixes)
