"""podium mcp: Serve Podium's tools to a language model over the Model Context Protocol."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from podium.cli._options import add_option, collect
from podium.cli.output import Output, print_json


@click.command(name="mcp")
@click.option("--folder", "folders", multiple=True, type=click.Path(exists=True, file_okay=False), default=(".",),
              help="Folder whose files the client may open; may be repeated.  [default: .]")  # fmt: skip
@click.option("--write", is_flag=True, help="Let tools create files in these folders; none is ever replaced.")
@click.option(
    "--seconds", type=click.FloatRange(0.1), default=120.0, show_default=True, help="Timeout per call."
)
@click.option("--file-mb", type=click.IntRange(1), default=256, show_default=True,
              help="Maximum size of all files of a call, decompressed.")  # fmt: skip
@click.option(
    "--answer-kb", type=click.IntRange(1), default=1024, show_default=True, help="Maximum size of an answer."
)
@add_option(Output, "json", "Print the entry for a client's configuration file instead of serving.")
@collect(Output, "output")
def verb(
    folders: tuple[str, ...], write: bool, seconds: float, file_mb: int, answer_kb: int, output: Output
) -> None:
    """Serve Podium's tools to a language model over the Model Context Protocol, on standard input and output.

    A client starts this command; --json prints the entry for its configuration file. The tools open only
    files in the folders named here: paths and links that lead out of them are refused.

    \b
    podium mcp --folder runs/ --json
    podium mcp --folder runs/ --folder judgements/ --write
    """
    from podium.mcp_server.server import McpSettings, create_mcp_server

    places = tuple(Path(folder).resolve() for folder in folders)
    settings = McpSettings(places, write, seconds, file_mb << 20, answer_kb << 10)
    if output.json:
        words = ["-m", "podium", "mcp", *(word for place in places for word in ("--folder", str(place)))]
        words += ["--write"] * write + ["--seconds", f"{seconds:g}", "--file-mb", str(file_mb)]
        entry = {"command": sys.executable, "args": [*words, "--answer-kb", str(answer_kb)]}
        print_json({"mcpServers": {"podium": entry}})
        return
    create_mcp_server(settings).run("stdio")
