"""podium token: Add, list and remove the named tokens of a server."""

from __future__ import annotations

import time
from pathlib import Path

import click

from podium.cli.output import Output, print_json, with_output
from podium.core.errors import ParameterError


@click.command(name="token")
@click.argument("action", type=click.Choice(["add", "list", "remove"]))
@click.argument("name", required=False)
@click.option("--role", type=click.Choice(["viewer", "judge", "editor", "admin"]), default="viewer",
              show_default=True, help="For add: what the user may do.")  # fmt: skip
@click.option("--folder", type=click.Path(file_okay=False),
              help="Folder of the server.  [default: ~/.podium]")  # fmt: skip
@with_output
def verb(action: str, name: str | None, role: str, folder: str | None, output: Output) -> None:
    """Add, list and remove the named tokens of a server.

    A server whose folder has tokens when it starts asks every user for one. Each has a role: a viewer looks and
    computes, a judge also votes, an editor also changes projects, an admin also manages tokens. A new token is
    printed and stored nowhere; a removed one is refused at once, with its sessions.

    \b
    podium token add ann --role editor
    podium token list
    podium token remove ann
    """
    from podium.studio.store import Store

    if (name is None) != (action == "list"):
        raise ParameterError(f"`podium token {action}` takes {'no name' if action == 'list' else 'one name'}")
    store = Store(Path(folder) if folder else Path.home() / ".podium")
    if action == "add" and name is not None:
        token = store.add_token(name, role)
        if output.json:
            print_json({"name": name, "role": role, "token": token})
        else:
            click.echo(token)
    elif action == "remove" and name is not None:
        store.remove_token(name)
        if output.json:
            print_json({"removed": name})
    else:
        tokens = store.tokens()
        if output.json:
            print_json({"tokens": [vars(token) for token in tokens]})
            return
        for known in tokens:
            click.echo(f"{known.name}  {known.role}  {time.strftime('%Y-%m-%d', time.gmtime(known.made))}")
