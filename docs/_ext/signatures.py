"""Signatures in the API reference as a person would write them."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx


def plain(signature: str) -> str:
    """Names of types as the source has them, without what only tools read."""
    signature = re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", signature)
    signature = re.sub(r"~?(?:numpy\.)?ndarray\[tuple\[.*?\], .*?\[.*?\]\]", "ndarray", signature)
    while (start := signature.find("Annotated[")) >= 0:
        inside = start + len("Annotated[")
        kept = _end(signature, inside, ",")
        signature = signature[:start] + signature[inside:kept] + signature[_end(signature, inside, "]") + 1 :]
    return signature


def _end(text: str, start: int, sign: str) -> int:
    """Where `sign` first stands outside all brackets and quotes opened after `start`."""
    depth, quote = 0, ""
    for at in range(start, len(text)):
        letter = text[at]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == sign and depth == 0:
            return at
        else:
            depth += (letter in "([{") - (letter in ")]}")
    return len(text)


def _signature(*event: Any) -> tuple[str | None, str | None]:
    *_, given, result = event
    return given and plain(given), result and plain(result)


def _skip(*event: Any) -> bool | None:
    """Fields of named tuples are in the signature already."""
    found = event[3]
    return True if str(getattr(found, "__doc__", "")).startswith("Alias for field number") else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _skip)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
