"""The server: it publishes tools and resources, and runs every call in a worker process with a time limit."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from podium.core.errors import ParameterError
from podium.core.optional import require_module
from podium.core.version import __version__
from podium.mcp_server.call_worker import format_request, parse_response
from podium.mcp_server.file_access import FileAccess
from podium.mcp_server.resources import format_method_page, format_methods_page, read_semantics
from podium.mcp_server.tools import TOOLS

__all__ = ["McpSettings", "create_mcp_server"]

WRITING = ("fuse", "tune", "deploy")  # tools that can create a file
INSTRUCTIONS = """\
Podium fuses rankings, evaluates them against judgements, tunes the fusion and explains it. Start with list_files and
check_files. Metrics of a tuned method come from held-out queries; quote the interval with a difference. Read
podium://semantics for ties, missing items and weights, and podium://methods for the methods. Files: {folders}."""


@dataclass(frozen=True)
class McpSettings:
    """Folders and limits of one server."""

    folders: tuple[Path, ...]
    write: bool = False
    seconds: float = 120.0  # per call
    file_bytes: int = 256 << 20  # of all files of a call, decompressed
    answer_bytes: int = 1 << 20  # of an answer
    concurrent: int = 2  # calls at once; others wait

    def __post_init__(self) -> None:
        for folder in self.folders:
            if not folder.is_dir():
                raise ParameterError(f"{folder} is not a folder; name folders that exist")


def create_mcp_server(settings: McpSettings) -> Any:
    """The server with its tools and resources; `run("stdio")` serves one client."""
    server_module = require_module("mcp.server")
    folders = ", ".join(str(folder.resolve()) for folder in settings.folders)
    server = server_module.MCPServer(
        "podium", instructions=INSTRUCTIONS.format(folders=folders), version=__version__, log_level="WARNING"
    )
    types = require_module("mcp.types")
    run_call = _CallRunner(settings)
    for name, tool in TOOLS.items():
        reads_only = not (settings.write and name in WRITING)
        about = types.ToolAnnotations(
            read_only_hint=reads_only, destructive_hint=False, open_world_hint=False
        )
        server.add_tool(_publish_tool(tool, run_call), annotations=about, structured_output=False)
    markdown = {"mime_type": "text/markdown"}
    server.resource("podium://methods", name="methods", **markdown)(format_methods_page)
    server.resource("podium://methods/{name}", name="method", **markdown)(format_method_page)
    server.resource("podium://semantics", name="semantics", **markdown)(read_semantics)
    return server


class _CallRunner:
    """Runs calls in worker processes; a call that is canceled or takes too long is killed."""

    def __init__(self, settings: McpSettings) -> None:
        folders = tuple(folder.resolve() for folder in settings.folders)
        self._settings = settings
        self._access = FileAccess(folders, settings.write, settings.file_bytes)
        self._places = asyncio.Semaphore(settings.concurrent)

    async def __call__(self, tool: str, arguments: dict[str, Any]) -> Any:
        types = require_module("mcp.types")
        error_class = require_module("mcp.server.mcpserver.exceptions").ToolError
        limit = self._settings.seconds
        try:
            async with self._places, asyncio.timeout(limit):
                status, content = await _run_worker(format_request(self._access, tool, arguments))
        except TimeoutError:
            remedy = "name fewer files, choose a faster method, or start the server with a larger --seconds"
            raise error_class(f"the call took longer than {limit:g} seconds; {remedy}") from None
        if status:
            raise error_class(
                f"this is a bug in Podium: the worker ended with status {status}; its log has details"
            )
        response = parse_response(content)
        if response.document is None:
            raise error_class(response.text)
        if len(content) > self._settings.answer_bytes:
            size = f"{len(content):,} bytes; accepted: up to {self._settings.answer_bytes:,}"
            raise error_class(
                f"the answer has {size}; ask for less, or start the server with a larger --answer-kb"
            )
        text = types.TextContent(type="text", text=response.text)
        return types.CallToolResult(content=[text], structured_content=response.document)


async def _run_worker(request: bytes) -> tuple[int, bytes]:
    """Exit status and output of a worker for this request."""
    # -P: no module from the folder that the server was started in
    words = [sys.executable, "-P", "-m", "podium.mcp_server.call_worker"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
    try:
        content, _ = await process.communicate(request)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return process.returncode or 0, content


def _publish_tool(tool: Callable[..., Any], run_call: _CallRunner) -> Callable[..., Any]:
    """A coroutine with the signature of a tool, in the SDK's notation, that calls a worker."""

    @functools.wraps(tool)
    async def call(**arguments: Any) -> Any:
        return await run_call(tool.__name__, arguments)

    hints = get_type_hints(tool, include_extras=True)
    parameters = []
    for name, parameter in inspect.signature(tool).parameters.items():
        if name == "access":
            continue
        hint = hints[name]
        if get_origin(hint) is Annotated:  # the text becomes a description in the JSON schema
            kind, *notes = get_args(hint)
            text = next((note for note in notes if isinstance(note, str)), None)
            hint = Annotated[kind, require_module("pydantic").Field(description=text)]
        parameters.append(parameter.replace(annotation=hint))
    call.__dict__.pop("__wrapped__")
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call
