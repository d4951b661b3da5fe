"""One tool call in a process of its own, which can be ended at any time: `python -m podium.mcp_server.call_worker`.

The request and the response are JSON on standard input and output.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from podium.core.errors import Option, PodiumError, capture_warnings
from podium.core.tables import replace_nonfinite
from podium.core.text import join_words
from podium.mcp_server.file_access import FileAccess
from podium.mcp_server.tools import TOOLS

__all__ = ["CallResponse", "answer_call", "format_request", "parse_response", "spell_option"]


class CallResponse(NamedTuple):
    """A document with a text, or an error in words."""

    text: str
    document: dict[str, Any] | None


def format_request(access: FileAccess, tool: str, arguments: dict[str, Any]) -> bytes:
    """The request of a call."""
    folders = [str(folder) for folder in access.folders]
    limits = {"folders": folders, "write": access.write, "most_bytes": access.most_bytes}
    return json.dumps({"tool": tool, "arguments": arguments, "access": limits}).encode()


def parse_response(content: bytes) -> CallResponse:
    """The response of a worker."""
    return CallResponse(**json.loads(content))


def answer_call(access: FileAccess, tool: str, arguments: dict[str, Any]) -> CallResponse:
    """Run a tool; errors and warnings are put into words, with options as arguments of a tool.

    >>> answer_call(FileAccess(()), "fuse", {"lists": [["a", "b", "a"]]}).text
    'row 3: item ... appears twice; choose options={"duplicates": "first"}, ... to allow this'
    """
    with capture_warnings(spell_option) as messages:
        try:
            text, document = TOOLS[tool](access, **arguments)
        except PodiumError as error:
            return CallResponse(error.format_message(spell_option), None)
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            return CallResponse(f"{name}{error.strerror or error}", None)
        except MemoryError:
            return CallResponse("not enough memory for this input; split it by query", None)
    if messages:
        text, document = "\n".join([text, *messages]), document | {"warnings": messages}
    return CallResponse(text, replace_nonfinite(document))


def spell_option(option: Option) -> str:
    """An option as an argument of a tool.

    >>> spell_option(Option("duplicates", "first")), spell_option(Option("nearest", True, of="setting"))
    ('options={"duplicates": "first"}', 'nearest=true')
    """
    values = [json.dumps(value, default=str) for value in option.values] or ["..."]
    if option.of == "reading" and option.name != "format":
        return join_words([f'options={{"{option.name}": {value}}}' for value in values], "or")
    return f"{option.name}={join_words(values, 'or')}"


def main() -> None:
    """Answer the request on standard input."""
    request = json.loads(sys.stdin.buffer.read())
    # nothing that a library prints may mix with the response
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    limits = request["access"]
    folders = tuple(map(Path, limits.pop("folders")))
    response = answer_call(FileAccess(folders, **limits), request["tool"], request["arguments"])
    channel.write(json.dumps(response._asdict(), default=str).encode())
    channel.close()


if __name__ == "__main__":
    main()
