"""podium leaderboard with --control or --slice: a board adjusted for covariates, and boards of slices."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

import click

from podium.cli.input import Input
from podium.cli.output import Output, echo_note, echo_warning, print_grid, print_json
from podium.core.errors import capture_warnings
from podium.core.settings import LeaderboardSettings

if TYPE_CHECKING:
    from podium.analysis.leaderboard import ContextualLeaderboard

__all__ = ["show_contextual_board", "split_names"]


def split_names(given: str | None) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name for part in (given or "").split(",") if (name := part.strip()))


def show_contextual_board(
    source: Input,
    control: tuple[str, ...],
    slice_: str | None,
    pair_floor: float | None,
    given: dict[str, Any],
    output: Output,
) -> None:
    """Read the votes with their attributes, build the board and print it."""
    from podium.analysis.leaderboard import contextual_leaderboard

    if not control and slice_ is None:
        raise click.UsageError("--control names no covariate; write, for example, --control length,order")
    names = dict.fromkeys((*control, *([] if slice_ is None else [slice_])))
    wanted = dataclasses.replace(source, options=(*source.options, f"attributes={','.join(names)}"))
    votes = wanted.content.votes
    if votes is None:
        raise click.UsageError("--control and --slice need tables of votes (CSV, JSON lines, Parquet)")
    if "reference" in given:  # command-line ids are text
        given["reference"] = {str(i): i for i in votes.items}.get(str(given["reference"]), given["reference"])
    with capture_warnings():  # the checks report the same
        board = contextual_leaderboard(
            votes, control, slices=slice_, pair_floor=pair_floor, settings=LeaderboardSettings(**given)
        )
    if output.plot is not None:
        from podium.evaluate.charts import save_chart

        save_chart(board.chart(top=output.top), output.plot)
    if output.json:
        document = board.to_dict()
        document["rows"] = document["rows"][: output.top]
        print_json(document)
        return
    _print_board(board, output.top)


def _print_board(board: ContextualLeaderboard, top: int | None) -> None:
    digits = 3 if board.settings.scale == "natural" else 0 if sys.stdout.isatty() else 2
    grid = board.grid(digits=digits, between="..", top=top)
    title = f"{len(board.rows):,} items, {board.votes:,.10g} votes"
    if board.control:
        title += f", with {', '.join(board.control)} held equal"
    print_grid(dataclasses.replace(grid, title=title), wide=("plain score", "votes"), room=100)
    for effect in board.effects:
        echo_note(effect.sentence)
    if board.slices is not None:
        click.echo("")
        print_grid(dataclasses.replace(board.slices.grid(), title=f"ranks by {board.slices.column}"))
        for line in board.slices.dependence:
            echo_note(line)
    for check in board.checks:
        if check.verdict == "warning":
            echo_warning(f"{check.name}: {check.text}")
