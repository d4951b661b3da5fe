"""podium methods: List the methods, or describe one."""

from __future__ import annotations

import inspect

import click

from podium.cli._method import list_streaming_learners
from podium.cli.output import Output, echo_if_tty, print_json, print_table, with_output
from podium.core import registry


@click.command(name="methods")
@click.argument("name", required=False)
@with_output
def verb(name: str | None, output: Output) -> None:
    """List the methods, or describe one and its parameters.

    \b
    podium methods
    podium methods rrf
    """
    from podium.methods.describe import describe_learner
    from podium.methods.describe import describe_method as facts_of

    learners = list_streaming_learners()
    if name is None:
        classes = registry.aggregators.all() | learners
    else:
        classes = {name: learners.get(name.lower()) or registry.aggregators.get(name)}
    facts = [(describe_learner if cls in learners.values() else facts_of)(cls) for cls in classes.values()]
    if output.json:
        print_json(facts if name is None else facts[0])
    elif name is None:
        rows = [
            (f["name"], f["summary"], ", ".join(f["accepts"]), "yes" if f["weighted"] else "") for f in facts
        ]
        print_table(["method", "what it does", "reads", "weights"], rows, left=4)
        echo_if_tty("podium methods NAME describes one.")
    else:
        about, text = facts[0], inspect.getdoc(classes[name]) or ""
        click.echo(f"{about['name']}: {text.split('>>>')[0].strip()}\n")
        if aliases := getattr(classes[name], "aliases", ()):
            click.echo(f"aliases    {', '.join(aliases)}")
        click.echo(f"reads      {', '.join(about['accepts'])}")
        click.echo(f"weights    {'yes' if about['weighted'] else 'no'}")
        click.echo(f"citation   {about['citation'] or 'none'}")
        if "in_engine" in about:
            stated = {k.replace("_", " "): v for k, v in about["in_engine"].items() if v not in ("", None)}
            click.echo(f"in {stated.pop('engine')}:")
            for word, value in stated.items():
                click.echo(f"  {word:<11}{value}")
        for p in about["parameters"]:
            click.echo(f"  {p['name']} = {p['default']!r}   {p['accepts']}; {p['help']}")
