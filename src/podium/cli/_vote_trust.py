"""podium leaderboard with --trust or --robust: checks of the voters, margins, and a board they cannot move."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

import click

from podium.cli.input import Input
from podium.cli.output import Output, echo_note, echo_warning, print_grid, print_json
from podium.core.errors import ParameterError, PodiumError

if TYPE_CHECKING:
    from podium.analysis.leaderboard import Leaderboard
    from podium.data.vote_table import VoteTable
    from podium.reporting.vote_parts import VoteSources

__all__ = [
    "check_trust_options",
    "read_vote_sources",
    "read_vote_times",
    "show_robust_board",
    "show_vote_trust",
]

MARKS = {"ok": "ok", "warning": "CHECK", "unknown": "?"}


def check_trust_options(
    trust: bool, robust: bool, time: str | None, changed: bool, beside: dict[str, Any]
) -> None:
    """Refuse what --trust, --robust and --time do not work with; `changed`: votes are added or left out."""
    if trust or robust:
        for name, value in (beside | {"robust": trust and robust}).items():
            if value:
                raise click.UsageError(f"--{name} does not work with --trust and --robust; leave it out")
    if time is not None and (changed or not (trust or robust)):
        raise click.UsageError("--time works with --trust or --robust, without --load and --without")


def read_vote_times(source: Input, time: str | None) -> tuple[VoteTable, str] | None:
    """The single votes with the seconds at which they were cast, and the name of that attribute."""
    if time is None:
        return None
    name = f"{time.removesuffix(':seconds')}:seconds"
    wanted = dataclasses.replace(source, options=(*source.options, f"attributes={name}"))
    votes = wanted.content.votes
    if votes is None:
        raise click.UsageError("--time needs tables of votes (CSV, JSON lines, Parquet)")
    return votes, name


def read_vote_sources(
    source: Input, slices: tuple[str, ...], time: str | None, gold: str | None
) -> VoteSources | None:
    """What a report on votes uses beside the preferences: single votes with their attributes, and gold."""
    from podium import formats
    from podium.data.preferences import Form
    from podium.reporting.vote_parts import SLICE_WORDS, TIME_WORDS, VoteSources, find_slice_columns

    if Form.COMPARISON not in source.preferences.forms:
        if slices or time is not None or gold is not None:
            raise click.UsageError("--slice, --time and --gold belong to votes, and the input has none")
        return None
    truth: Any = None
    if gold is not None:
        content = formats.read(gold)
        truth = content.labels if content.preferences is None else content.preferences
        if truth is None:
            raise ParameterError(f"{gold} contains no judgements; give votes, or a table with a grade column")
    named = [f"{time.removesuffix(':seconds')}:seconds"] if time is not None else []
    usual = [] if time is not None else [f"{word}:seconds?" for word in TIME_WORDS]
    wanted = [*named, *usual, *(slices or [f"{word}?" for word in SLICE_WORDS])]
    try:
        if not source.files or "-" in source.files:
            return VoteSources(gold=truth)
        # only tables of votes have attributes
        single = dataclasses.replace(source, options=(*source.options, f"attributes={','.join(wanted)}"))
        table = single.content.votes
    except PodiumError:
        if slices or time is not None:
            raise
        table = None
    if table is None:
        return VoteSources(gold=truth)
    times = [name for name in table.attributes if name.endswith(":seconds")]
    chosen = list(slices) or find_slice_columns(table)
    return VoteSources(table, chosen, times[0] if times else None, truth)


def show_vote_trust(
    board: Leaderboard, timed: tuple[VoteTable, str] | None, alarm: float, output: Output
) -> None:
    """Check the voters and print what was found, the influence of voters and the margins of the first places."""
    from podium.analysis.leaderboard import assess_tampering

    table, time = (None, None) if timed is None else timed
    # without a column of voters the margins are still known
    strict = len(board.tally.experts) > 1
    places = output.top or 10
    assessment = assess_tampering(board, table=table, time=time, alarm=alarm, places=places, strict=strict)
    if output.json:
        print_json(assessment.to_dict())
        return
    trust, influence, margin = assessment.trust, assessment.influence, assessment.margin
    if trust is not None:
        title = f"{trust.voter_count:,} voters, {trust.votes:,} votes"
        if trust.rows:
            print_grid(dataclasses.replace(trust.grid(), title=f"{title}: improbable votes"))
        else:
            click.echo(title)
        for check in trust.checks:
            click.echo(f"{MARKS[check.verdict]:>5}  {check.name}: {check.text}")
        echo_note(f"{trust.conclusion}.")
        click.echo("")
    if influence is not None:
        top = dataclasses.replace(influence.grid(), rows=influence.grid().rows[:5])
        print_grid(dataclasses.replace(top, title="most influential voters"), wide=("one step",), room=110)
        echo_note(f"{influence.conclusion}.")
        click.echo("")
    print_grid(dataclasses.replace(margin.grid(), title="votes that take a place away"))
    echo_note(f"{margin.conclusion}.")
    if assessment.robust is not None:
        echo_note(f"with --robust, {assessment.robust.conclusion}.")
    if assessment.missing:
        echo_warning(f"voters are not checked: {assessment.missing}")


def show_robust_board(
    board: Leaderboard, timed: tuple[VoteTable, str] | None, alarm: float, output: Output
) -> None:
    """Fit and print the robust board beside the plain one."""
    from podium.analysis.leaderboard import assess_trust, robust_leaderboard

    votes, time = (board, None) if timed is None else timed
    trust = assess_trust(votes, time=time, alarm=alarm, l2=board.settings.l2)
    robust = robust_leaderboard(board, trust=trust)
    if output.plot is not None:
        from podium.evaluate.charts import save_chart

        save_chart(robust.chart(top=output.top), output.plot)
    if output.json:
        document = robust.to_dict()
        print_json(document | {"rows": document["rows"][: output.top]})
        return
    digits = 3 if robust.settings.scale == "natural" else 0 if sys.stdout.isatty() else 2
    grid = robust.grid(digits=digits, between="..", top=output.top)
    title = f"{len(robust.rows):,} items, {robust.counted_votes:,.0f} of {robust.votes:,.10g} votes counted"
    print_grid(dataclasses.replace(grid, title=title), wide=("plain score", "votes"), room=100)
    echo_note(f"{robust.conclusion}.")
    echo_note(f"{robust.trust.conclusion}.")
    for check in robust.checks:
        if check.verdict == "warning":
            echo_warning(f"{check.name}: {check.text}")
