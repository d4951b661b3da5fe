"""podium leaderboard with --control or --slice: a board adjusted for covariates, and boards of slices."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

import click

from podium.cli._suggestions import PROPOSAL_COLUMNS, format_proposals, read_vote_table
from podium.cli.input import Input
from podium.cli.output import Output, echo_note, echo_warning, print_grid, print_json, print_table
from podium.core.errors import PodiumError, capture_warnings
from podium.core.settings import LeaderboardSettings

if TYPE_CHECKING:
    from podium.analysis.leaderboard import ContextualLeaderboard

__all__ = ["refuse_beside_covariates", "show_contextual_board", "split_names"]


def split_names(given: str | None) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name for part in (given or "").split(",") if (name := part.strip()))


def refuse_beside_covariates(*, anytime: bool, load: str | None, save: str | None) -> None:
    """Refuse options that have no meaning beside --control and --slice, with the reason."""
    if load or save:
        raise click.UsageError(
            f"--{'save' if save else 'load'} does not work with --control and --slice: a saved board holds counts "
            "per pair, not the single votes with their attributes; give all files of votes instead"
        )
    if anytime:
        raise click.UsageError(
            "--anytime does not work with --control and --slice: its claims rest on direct votes between two items "
            "with one win rate, which covariates and slices change; use --anytime on the votes of one slice"
        )


def show_contextual_board(
    source: Input,
    control: tuple[str, ...],
    slice_: str | None,
    pair_floor: float | None,
    given: dict[str, Any],
    output: Output,
    *,
    without: tuple[str, ...] = (),
    next_: int | None = None,
    by: str | None = None,
) -> None:
    """Read the votes with their attributes, build the board, or one per query, and print it."""
    from podium.analysis.leaderboard import contextual_leaderboard

    if not control and slice_ is None:
        raise click.UsageError("--control names no covariate; write, for example, --control length,order")
    names = dict.fromkeys((*control, *([] if slice_ is None else [slice_])))
    votes = read_vote_table(source, list(names), without)
    if by is not None and (output.plot is not None or "reference" in given):
        option = "--plot" if output.plot is not None else "--anchor ITEM=NUMBER"
        raise click.UsageError(f"{option} applies to a single leaderboard; leave it out, or leave out --by")
    documents = []
    for query, part in [(None, votes)] if by is None else votes.split_by_query():
        if "reference" in given:  # command-line ids are text
            given["reference"] = {str(i): i for i in part.items}.get(
                str(given["reference"]), given["reference"]
            )
        try:
            with capture_warnings():  # the checks report the same
                board = contextual_leaderboard(
                    part, control, slices=slice_, pair_floor=pair_floor, settings=LeaderboardSettings(**given)
                )
        except PodiumError as error:
            if query is None:
                raise
            echo_warning(f"no leaderboard for query {query}: {error}")
            continue
        if output.plot is not None:
            from podium.evaluate.charts import save_chart

            save_chart(board.chart(top=output.top), output.plot)
        if output.json:
            document = board.to_dict() if query is None else {"query": query, **board.to_dict()}
            document["rows"] = document["rows"][: output.top]
            if next_ is not None:
                document["next"] = [vars(p) for p in board.next(next_, top=output.top)]
            documents.append(document)
        else:
            _print_board(board, output.top, next_, "" if query is None else f"query {query}: ")
    if output.json:
        print_json(documents[0] if by is None else {"boards": documents})


def _print_board(board: ContextualLeaderboard, top: int | None, next_: int | None, where: str) -> None:
    digits = 3 if board.settings.scale == "natural" else 0 if sys.stdout.isatty() else 2
    grid = board.grid(digits=digits, between="..", top=top)
    title = f"{where}{len(board.rows):,} items, {board.votes:,.10g} votes"
    if board.control:
        title += f", with {', '.join(board.control)} held equal"
    print_grid(dataclasses.replace(grid, title=title), wide=("plain score", "votes"), room=100)
    for effect in board.effects:
        echo_note(f"{where}{effect.sentence}")
    if board.slices is not None:
        click.echo("")
        print_grid(dataclasses.replace(board.slices.grid(), title=f"ranks by {board.slices.column}"))
        for line in board.slices.dependence:
            echo_note(line)
    for check in board.checks:
        if check.verdict == "warning":
            echo_warning(f"{where}{check.name}: {check.text}")
    if next_ is not None:
        click.echo("")
        proposals = format_proposals(board, top, next_)
        if proposals:
            print_table(PROPOSAL_COLUMNS, proposals, left=2)
        click.echo(f"{board.stopping(top=top)[1]}.")
