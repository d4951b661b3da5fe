"""podium leaderboard: who is best, how sure that is, and what to ask next."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common
from podium.errors import ParameterError

if TYPE_CHECKING:
    from podium.evaluate.leaderboard import Leaderboard, Tally

MARKS = {"ok": "ok", "warning": "LOOK", "unknown": "?"}


@click.command(name="leaderboard", short_help="A leaderboard from votes, with intervals and checks.")
@click.argument("files", nargs=-1, type=common.FILES)
@click.option("--model", type=click.Choice(["bradley_terry", "thurstone"]), help="[default: bradley_terry]")
@click.option("--ties", type=click.Choice(["half", "davidson", "rao_kupper", "ignore"]),
              help="What a tie is: half a win each, an outcome, nothing.  [default: half]")  # fmt: skip
@click.option("--l2", type=float, help="Weight of the ridge prior.  [default: that of bradley_terry]")
@click.option("--errors", type=click.Choice(["sandwich", "fisher"]), help="[default: sandwich]")
@click.option(
    "--bootstrap", type=click.IntRange(0), metavar="N", help="Intervals from N rounds of votes drawn again."
)
@click.option("--over", type=click.Choice(["auto", "votes", "experts", "queries"]),
              help="What intervals are over; auto: experts or queries, where their votes vary more than "
                   "independent votes.  [default: auto]")  # fmt: skip
@click.option("--vote-weights", type=click.Choice(["auto", "frequency", "importance"]),
              help="A vote of weight w is w votes (frequency) or one vote (importance; also for inverse-probability "
                   "weights); auto: importance where a weight is not a whole number.  [default: auto]")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), help="Of all that is drawn.  [default: 0]")
@click.option("--level", type=float, help="Of intervals and tests.  [default: 0.95]")
@click.option("--simultaneous", is_flag=True, default=None, help="Intervals that hold all at once.")
@click.option("--scale", type=click.Choice(["elo", "natural"]), help="[default: elo]")
@click.option("--anchor", metavar="NUMBER or ITEM=NUMBER", help="The mean score, or that of an item.")
@click.option("--judges", type=click.Choice(["equal", "discounted"]),
              help="discounted: judges who go together share one voice.  [default: equal]")  # fmt: skip
@click.option(
    "--sides", type=click.Choice(["ignore", "fit"]), help="fit: estimate the advantage of the first side."
)
@click.option(
    "--without", multiple=True, metavar="JUDGE", help="Leave out the votes of a judge; may be repeated."
)
@click.option(
    "--top", type=click.IntRange(1), help="Show the first K only, with the probability to be among them."
)
@click.option(
    "--next", "next_", type=click.IntRange(1), metavar="N", help="The N comparisons that would tell most."
)
@click.option("--plot", type=click.Path(), help="Draw it: a .svg, .png or .html file.")
@click.option("--load", type=click.Path(exists=True), help="Add the votes to those of a saved leaderboard.")
@click.option("--save", type=click.Path(), help="Keep votes and scores, to add more later.")
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@common.reading
@common.as_json
def verb(
    files: tuple[str, ...],
    anchor: str | None,
    without: tuple[str, ...],
    top: int | None,
    next_: int | None,
    plot: str | None,
    load: str | None,
    save: str | None,
    overwrite: bool,
    format_: str | None,
    unlisted: str | None,
    options: tuple[str, ...],
    json_: bool,
    **settings: Any,
) -> None:
    """A leaderboard from votes: scores with intervals, ranks that the votes leave open, and checks.

    Votes are tables with winner and loser, or with two items and the winner (model_a, model_b, winner), counts of
    wins (JSON with models, X, Y), lists, or PrefLib elections.

    \b
    podium leaderboard votes.csv --bootstrap 1000 --over experts
    podium leaderboard votes.jsonl --top 10 --next 5             and what to ask next
    podium leaderboard monday.csv --save board.podium
    podium leaderboard tuesday.csv --load board.podium --save board.podium --overwrite
    """
    _check_paths(plot, save, overwrite)
    given = {name: value for name, value in settings.items() if value is not None}
    given |= _anchor(anchor) | ({} if top is None else {"top": top})
    tally = None if load and not files else _tally(files, format_, options, unlisted)
    board = _board(tally, load, without, given)
    _keep(board, plot, save, overwrite, top)
    _report(board, top, next_, json_)


def _check_paths(plot: str | None, save: str | None, overwrite: bool) -> None:
    """Before any work is done."""
    for path in filter(None, (plot, save)):
        common.check_new(path, overwrite)
    if plot is not None:
        from podium.evaluate.pictures import check_suffix

        check_suffix(plot)


def _keep(board: Leaderboard, plot: str | None, save: str | None, overwrite: bool, top: int | None) -> None:
    if save is not None:
        from podium.evaluate.leaderboard import save as keep

        keep(board, save, overwrite=overwrite)
    if plot is not None:
        from podium.evaluate.leaderboard.plot import plot as draw

        draw(board, plot, top=top)


def _anchor(given: str | None) -> dict[str, Any]:
    """`1000`, or `ITEM=1000`."""
    if given is None:
        return {}
    item, equals, number = given.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        raise ParameterError(f"the anchor is {given!r}; give a number, or ITEM=NUMBER") from None
    return {"anchor": value, "reference": item} if equals else {"anchor": value}


def _tally(
    files: tuple[str, ...], format_: str | None, options: tuple[str, ...], unlisted: str | None
) -> Tally:
    from podium.evaluate.leaderboard import Tally

    content = common.read(files, format_, options, unlisted)
    return Tally.of(common.preferences_of(content, files))


def _board(
    tally: Tally | None, load: str | None, without: tuple[str, ...], given: dict[str, Any]
) -> Leaderboard:
    from podium.evaluate.leaderboard import Settings, leaderboard
    from podium.evaluate.leaderboard.saving import read

    start = None
    if load is not None:
        old, scores, kept = read(load)
        start, given = dict(zip(old.items.tolist(), scores, strict=False)), kept | given
        tally = old if tally is None else old + tally
    assert tally is not None
    tally = tally.without(without) if without else tally
    reference = given.get("reference")
    if reference is not None and tally.items.code_of(reference) is None:  # what was typed is text
        given["reference"] = {str(i): i for i in tally.items}.get(str(reference), reference)
    return leaderboard(tally, settings=Settings(**given), start=start)


def _report(board: Leaderboard, top: int | None, next_: int | None, json_: bool) -> None:
    proposals = [] if next_ is None else board.next(next_, top=top)
    stop, why = board.stopping(top=top)
    if json_:
        document = board.to_dict()
        document["rows"] = document["rows"][:top]
        document["stop"], document["reason"] = stop, why
        if next_ is not None:
            document["next"] = [vars(p) for p in proposals]
        common.emit(document)
        return
    _show(board, top)
    _tell(board)
    if next_ is not None:
        rows = [
            (str(p.first), str(p.second), f"{p.chance:.0%}", f"{p.gain:.2g}", f"{p.votes:,.10g}")
            for p in proposals
        ]
        click.echo("")
        common.table(["ask next", "against", "first wins", "nats", "votes"], rows, left=2)
        click.echo(f"{why}.")
    else:
        common.say(f"\n{why}.")


def _tell(board: Leaderboard) -> None:
    """All checks for a person; where the output is a pipe, the doubts and what was decided for the user beside it."""
    decided = board.settings.over == "auto" and board.scheme.over != "votes"
    words = board.scheme.text + (" (--over votes: as if votes were independent)" if decided else "")
    if sys.stdout.isatty():
        click.echo(f"{words[:1].upper()}{words[1:]}.\n")
        for check in board.checks:
            click.echo(f"{MARKS[check.verdict]:>5}  {check.name}: {check.text}")
        return
    if decided or board.tally.fractional:
        click.echo(f"podium: {words}", err=True)
    for check in board.checks:
        if check.verdict == "warning":
            click.echo(f"podium: warning: {check.name}: {check.text}", err=True)


def _show(board: Leaderboard, top: int | None) -> None:
    """The table: a person gets few columns, a pipe all figures."""
    digits = 3 if board.settings.scale == "natural" else 0 if sys.stdout.isatty() else 2
    columns = [
        "rank",
        "item",
        "score",
        f"{100 * board.settings.level:.6g}% interval",
        "ranks",
        "votes",
        "wins",
        "ties",
    ]
    columns += [f"top {top}"] if top is not None else []
    rows = []
    for row in board.rows[:top]:
        ranks = f"{row.rank_low}..{row.rank_high}"
        counts = (f"{value:,.10g}" for value in (row.votes, row.wins, row.ties))
        span = f"{_bound(row.low, digits)}..{_bound(row.high, digits)}"
        last = [common.number(row.top, 3)] if top is not None else []
        rows.append(
            (str(row.rank), str(row.item), common.number(row.score, digits), span, ranks, *counts, *last)
        )
    title = f"{len(board.rows):,} items, {board.tally.votes:,.10g} votes"
    common.table(columns, rows, title=title, left=2)


def _bound(value: float, digits: int) -> str:
    return common.number(value, digits) if math.isfinite(value) else "open"
