"""podium methods: what there is to choose from."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import click

from podium.cli import _common as common


@click.command(name="methods", short_help="List the methods, or explain one.")
@click.argument("name", required=False)
@common.as_json
def verb(name: str | None, json_: bool) -> None:
    """List the methods, or explain one with its parameters.

    \b
    podium methods
    podium methods rrf
    """
    from podium import registry

    found = registry.aggregators.all() if name is None else {name: registry.aggregators.get(name)}
    facts = [_facts(cls) for cls in found.values()]
    if json_:
        common.emit(facts if name is None else facts[0])
    elif name is None:
        rows = [
            (f["name"], f["summary"], ", ".join(f["accepts"]), "yes" if f["weighted"] else "") for f in facts
        ]
        common.table(["method", "what it does", "reads", "weights"], rows, left=4)
        common.say("podium methods NAME explains one.")
    else:
        _explain(facts[0], inspect.getdoc(found[name]) or "")


def _facts(cls: Any) -> dict[str, Any]:
    from podium import params

    return {
        "name": cls.name,
        "class": cls.__name__,
        "summary": (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " "),
        "citation": cls.citation,
        "accepts": sorted(f.value for f in cls.tags.accepts),
        **{k: v for k, v in dataclasses.asdict(cls.tags).items() if isinstance(v, bool)},
        "parameters": [
            {
                "name": p.name,
                "default": p.default,
                "accepts": p.describe(),
                "help": p.help,
                "tune": None if p.tune is None else dataclasses.asdict(p.tune),
            }
            for p in params.parameters(cls)
        ],
    }


def _explain(facts: dict[str, Any], text: str) -> None:
    click.echo(f"{facts['name']}: {text.split('>>>')[0].strip()}\n")
    click.echo(f"reads      {', '.join(facts['accepts'])}")
    click.echo(f"weights    {'yes' if facts['weighted'] else 'no'}")
    click.echo(f"citation   {facts['citation'] or 'none'}")
    for p in facts["parameters"]:
        click.echo(f"  {p['name']} = {p['default']!r}   {p['accepts']}; {p['help']}")
