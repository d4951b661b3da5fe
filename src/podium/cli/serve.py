"""podium serve: Serve the HTTP API and the studio."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from podium.cli.output import Output, print_json, with_output
from podium.core.errors import ParameterError


@click.command(name="serve")
@click.argument("files", nargs=-1, type=click.Path(exists=True))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True,
              help="Port to listen on; 0: any free port.")  # fmt: skip
@click.option("--folder", type=click.Path(file_okay=False), help="Folder for projects.  [default: ~/.podium]")
@click.option("--token-file", type=click.Path(exists=True, dir_okay=False),
              help="File with the bearer token that requests must send; or set PODIUM_TOKEN.")  # fmt: skip
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME",
              help="Another host name of the server; may be repeated.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(0.1), help="Timeout per request.  [default: 30]")
@click.option("--concurrent", type=click.IntRange(1), help="Concurrent requests.  [default: 64]")
@click.option("--workers", type=click.IntRange(1), help="Concurrent computations.  [default: one per core]")
@click.option("--body-mb", type=click.IntRange(1), help="Maximum size of an API request.  [default: 16]")
@click.option("--processes", type=click.IntRange(0),
              help="Processes that compute pages and API requests; 0: threads, which cannot be canceled.  "
                   "[default: one per core, at least 2]")  # fmt: skip
@click.option("--public-url", default="", metavar="URL",
              help="URL under which a proxy shows the server, such as https://example.org/podium.")  # fmt: skip
@click.option("--log", "log_style", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the log lines.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Do not log requests.")
@with_output
def verb(files: tuple[str, ...], quiet: bool, output: Output, **given: Any) -> None:
    """Serve the HTTP API (/v1) and the studio, a browser interface.

    By default only this machine can connect; any other --host requires a token. The studio reads only the
    files and folders named here and what users upload.

    \b
    podium serve                                           http://127.0.0.1:8765
    podium serve runs/ qrels.txt --port 9000
    podium serve --host 0.0.0.0 --token-file token.txt --allow-host fusion.example.org
    """
    from podium.studio.app import create_app
    from podium.studio.security import hash_token
    from podium.studio.server import format_address, listen, serve
    from podium.studio.settings import Limits, ServerSettings
    from podium.studio.store import Store
    from podium.studio.telemetry import log_to_stderr

    limits: dict[str, Any] = {k: given[k] for k in ("seconds", "concurrent") if given[k] is not None}
    limits["workers"] = given["workers"] or os.cpu_count() or 1
    if given["body_mb"] is not None:
        limits["body_bytes"] = given["body_mb"] << 20
    # the token comes from a file or the environment: other local users can read the command line
    path = given["token_file"]
    token = os.environ.get("PODIUM_TOKEN") if path is None else Path(path).read_text().strip()
    if path is not None and not token:
        raise ParameterError(f"{path} is empty; write a token to it, for example with `openssl rand -hex 32`")
    if path is not None and os.name == "posix" and Path(path).stat().st_mode & 0o077:
        click.echo(f"warning: other users of this machine can read {path}; run `chmod 600 {path}`", err=True)
    folder = Path(given["folder"]) if given["folder"] else Path.home() / ".podium"
    # a folder that does not exist is not created
    has_tokens = (folder / "studio.sqlite").exists() and bool(Store(folder).tokens())
    settings = ServerSettings(
        folder,
        given["host"],
        given["port"],
        hash_token(token) if token else None,
        Limits(**limits),
        tuple(Path(f).resolve() for f in files),
        given["hosts"],
        given["public_url"],
        has_tokens,
        max(2, os.cpu_count() or 1) if given["processes"] is None else given["processes"],
    )
    log_to_stderr(quiet, given["log_style"])
    app, socket = create_app(settings), listen(settings)
    where = format_address(socket)
    if output.json:
        print_json({"address": where, "pid": os.getpid()})
    else:
        click.echo(f"{where}  (documentation: {where}/docs; Ctrl-C stops the server)")
    sys.stdout.flush()
    serve(app, socket)
