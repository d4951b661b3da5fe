"""podium token: Add, list and remove the named tokens of a server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from podium.cli.output import Output, print_json, with_output

if TYPE_CHECKING:
    from podium.studio.store import Store

FOLDER = click.option(
    "--folder", type=click.Path(file_okay=False), help="Folder of the server.  [default: ~/.podium]"
)


def _open_store(folder: str | None) -> Store:
    from podium.studio.store import Store

    return Store(Path(folder) if folder else Path.home() / ".podium")


@click.group(name="token")
def verb() -> None:
    """Add, list and remove the named tokens of a server.

    A server whose folder has tokens when it starts asks every user for one. Each has a role: a viewer looks and
    computes, a judge also votes, an editor also changes projects, an admin also manages tokens.

    \b
    podium token add ann --role editor
    podium token list
    podium token remove ann
    """


@verb.command(name="add")
@click.argument("name")
@click.option("--role", type=click.Choice(["viewer", "judge", "editor", "admin"]), default="viewer",
              show_default=True, help="What the user may do.")  # fmt: skip
@FOLDER
@with_output
def add_token(name: str, role: str, folder: str | None, output: Output) -> None:
    """Create a token and print it; it is stored nowhere, only its digest."""
    token = _open_store(folder).add_token(name, role)
    if output.json:
        print_json({"name": name, "role": role, "token": token})
    else:
        click.echo(token)


@verb.command(name="list")
@FOLDER
@with_output
def list_tokens(folder: str | None, output: Output) -> None:
    """List names, roles and when the tokens were made."""
    tokens = _open_store(folder).tokens()
    if output.json:
        print_json({"tokens": [vars(token) for token in tokens]})
        return
    for token in tokens:
        made = time.strftime("%Y-%m-%d", time.gmtime(token.made))
        click.echo(f"{token.name}  {token.role}  {made}")


@verb.command(name="remove")
@click.argument("name")
@FOLDER
@with_output
def remove_token(name: str, folder: str | None, output: Output) -> None:
    """Remove a token; running servers refuse it and its sessions at once."""
    _open_store(folder).remove_token(name)
    if output.json:
        print_json({"removed": name})
