"""Options made from annotated dataclasses, and the objects that hand their values to a verb."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import click
import pytest
from click.testing import CliRunner

from podium.cli import program
from podium.cli._options import add_option, add_options, collect
from podium.core.params import Flags, Range, parameters
from podium.core.settings import LeaderboardSettings, TuneSettings


@dataclass(frozen=True)
class Brew:
    """Settings of a toy verb."""

    kind: Annotated[Literal["mocha", "latte"], "Which coffee."] = "mocha"
    cups: Annotated[int, Range(1, 9), "How many."] = 2
    heat: Annotated[float | None, Range(0, open_low=True), "How hot.  [default: as it comes]"] = None
    strength: Annotated[float, Range(0, 1), Flags(shows_range=False), "Checked later."] = 0.5
    add: Annotated[tuple[str, ...], Flags("-a", "--add", metavar="WHAT"), "What else."] = ()
    milk: Annotated[bool, "With milk."] = True
    to_go: Annotated[bool, "In a paper cup."] = False


def make_verb(**changes):
    names = ["kind", "cups", "heat", "strength", "add", "milk", "to_go"]

    @click.command()
    @add_options(Brew, *names, **changes)
    @collect(Brew, "brew")
    def verb(brew):
        click.echo(repr(brew))

    return verb


def run(verb, *words):
    return CliRunner().invoke(verb, [str(w) for w in words])


def test_a_verb_gets_one_object_with_the_values():
    assert run(make_verb()).stdout.strip() == repr(Brew())
    given = run(make_verb(), "--kind", "latte", "--cups", 3, "-a", "x", "--add", "y", "--no-milk", "--to-go")
    assert given.stdout.strip() == repr(Brew("latte", 3, None, 0.5, ("x", "y"), False, True))


def test_bounds_and_choices_come_from_the_annotation():
    for words in (("--cups", 0), ("--cups", 10), ("--heat", 0), ("--kind", "tea")):
        assert run(make_verb(), *words).exit_code == 2
    assert run(make_verb(), "--strength", 7).exit_code == 0  # the library checks it
    shown = " ".join(run(make_verb(), "--help").stdout.split())
    assert "--cups INTEGER RANGE How many. [default: 2; 1<=x<=9]" in shown
    assert "--strength FLOAT Checked later. [default: 0.5]" in shown
    assert "-a, --add WHAT What else." in shown
    assert "--milk / --no-milk With milk. [default: milk]" in shown


def test_an_option_that_is_not_given_can_be_told_from_the_default():
    got = run(make_verb(unset=True), "--cups", 2).stdout.strip()
    assert got == repr(Brew(None, 2, None, None, (), None, None))


def test_a_verb_may_have_its_own_help():
    @click.command()
    @add_option(Brew, "cups", "Cups for guests.", default=5)
    def verb(cups):
        click.echo(cups)

    assert run(verb).stdout == "5\n"
    assert "Cups for guests." in run(verb, "--help").stdout


def test_an_option_can_be_required_although_the_setting_has_a_default():
    @click.command()
    @add_option(Brew, "cups", required=True)
    @add_option(Brew, "heat", required=True)
    def verb(cups, heat):
        click.echo((cups, heat))

    assert "Missing option '--cups'" in run(verb, "--heat", 1).stderr
    assert "Missing option '--heat'" in run(verb, "--cups", 1).stderr
    assert run(verb, "--cups", 1, "--heat", 1).stdout == "(1, 1.0)\n"


@pytest.mark.parametrize(("missing", "words"), [("-m", ("-o", "x.podium")), ("-o", ("-m", "rrf"))])
def test_fit_needs_a_method_and_a_file(missing, words):
    done = run(program, "fit", "a.run", *words)
    assert done.exit_code == 2
    assert f"Missing option '{missing}'" in done.stderr


@pytest.mark.parametrize(("verb", "settings"), [("leaderboard", LeaderboardSettings), ("tune", TuneSettings)])
def test_options_of_a_verb_are_its_settings(verb, settings):
    """Every choice, bound and help text of a setting that has an option is the one of its annotation."""
    options = {o.name: o for o in program.get_command(None, verb).params}
    shown = " ".join(run(program, verb, "--help").stdout.split())
    both = [p for p in parameters(settings) if p.name in options and p.name not in ("anchor", "ties", "top")]
    assert len(both) > 8
    for p in both:
        kind = options[p.name].type
        if isinstance(kind, click.Choice):
            assert tuple(kind.choices) == p.accepts.values
        if isinstance(kind, click.IntRange | click.FloatRange):
            assert kind.min == p.accepts.low
        text = p.help.partition("[default")[0].strip()  # help breaks lines at hyphens
        assert text.replace(" ", "").replace("-", "") in shown.replace(" ", "").replace("-", "")
