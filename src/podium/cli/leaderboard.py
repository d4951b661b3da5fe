"""podium leaderboard: Rank items by votes, with intervals and checks."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from podium.cli._contextual_board import refuse_beside_covariates, show_contextual_board, split_names
from podium.cli._options import add_option, add_options
from podium.cli._suggestions import PROPOSAL_COLUMNS, format_proposals, show_suggestions
from podium.cli._vote_trust import check_trust_options, read_vote_times, show_robust_board, show_vote_trust
from podium.cli.input import Input, with_input
from podium.cli.output import (
    Output,
    echo_if_tty,
    echo_note,
    echo_warning,
    print_grid,
    print_json,
    print_table,
    with_output,
)
from podium.core.errors import ParameterError, capture_warnings
from podium.core.settings import LeaderboardSettings

if TYPE_CHECKING:
    from podium.analysis.leaderboard import Leaderboard, Tally
    from podium.core.tables import Grid
    from podium.data.ids import Id
    from podium.data.preferences import Preferences

MARKS = {"ok": "ok", "warning": "CHECK", "unknown": "?"}


@click.command(name="leaderboard")
@add_options(LeaderboardSettings, "model", "ties", "l2", "errors", "bootstrap", "over", "vote_weights", "seed",
             "level", "simultaneous", "scale", unset=True)  # fmt: skip
@add_option(LeaderboardSettings, "anchor", metavar="NUMBER or ITEM=NUMBER", type=str)
@add_options(LeaderboardSettings, "judges", "sides", unset=True)
@click.option("--without", multiple=True, metavar="JUDGE", help="Exclude a judge's votes; may be repeated.")
@add_options(LeaderboardSettings, "top", unset=True)
@click.option("--next", "next_", type=click.IntRange(1), metavar="N", help="The N best next comparisons.")
@click.option(
    "--ask",
    type=click.IntRange(1),
    metavar="N",
    help="Plan the next N comparisons as one batch, instead of a board; -o writes them.",
)
@click.option("--budget", type=click.FloatRange(0, min_open=True), help="The most that they may cost.")
@click.option(
    "--cost",
    metavar="NUMBER or FILE",
    help="Cost of a vote, or a table judge,cost: who is asked then depends on both.",
)
@click.option("--items", type=click.Path(), help="All items to compare, one per line, even without votes.")
@add_option(Output, "path", "The file of the planned comparisons: .csv, .tsv or .jsonl.")
@click.option(
    "--control",
    metavar="NAMES",
    help="Hold covariates of the votes equal, such as length,markdown,order: columns, or pairs of columns such as"
    " length_a and length_b.",
)
@click.option("--slice", "slice_", metavar="COLUMN", help="Also a board for each value of a column.")
@click.option(
    "--pair-floor",
    type=click.FloatRange(1),
    metavar="N",
    help="Weigh each vote by 1 / max(votes of its pair, N), so that frequent pairs do not dominate; 50 is usual.",
)
@click.option(
    "--anytime",
    is_flag=True,
    help="Claims that hold at every look, however the comparisons are chosen: who may be the best, and ranks.",
)
@click.option(
    "--trust",
    is_flag=True,
    help="Check the voters: improbable votes, their influence, and how few votes change the leader.",
)
@click.option("--robust", is_flag=True, help="A board that voters with improbable votes cannot move.")
@click.option("--time", metavar="COLUMN", help="When votes were cast; --trust and --robust find bursts.")
@click.option(
    "--alarm",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.01,
    show_default=True,
    help="Largest probability that --trust names some honest voter.",
)
@click.option(
    "--by",
    type=click.Choice(["query"]),
    help="One leaderboard per query; the default where no item appears in two queries.",
)
@add_option(Output, "plot", "Draw the leaderboard: a .svg, .png or .html file.")
@click.option("--load", type=click.Path(exists=True), help="Add the votes to those of a saved leaderboard.")
@click.option("--save", type=click.Path(), help="Save votes and scores, to add more later.")
@add_option(Output, "overwrite", "Replace files that exist.")
@with_input
@with_output
def verb(
    source: Input,
    anchor: str | None,
    without: tuple[str, ...],
    next_: int | None,
    ask: int | None,
    budget: float | None,
    cost: str | None,
    items: str | None,
    control: str | None,
    slice_: str | None,
    pair_floor: float | None,
    anytime: bool,
    trust: bool,
    robust: bool,
    time: str | None,
    alarm: float,
    by: str | None,
    load: str | None,
    save: str | None,
    output: Output,
    **settings: Any,
) -> None:
    """Rank items from votes: scores with confidence intervals, ranges of ranks, and checks.

    Votes are tables with winner and loser, or with two items and the winner (model_a, model_b, winner),
    counts of wins (JSON with models, X, Y), lists, or PrefLib elections.

    \b
    podium leaderboard votes.csv --bootstrap 1000 --over experts
    podium leaderboard votes.jsonl --top 10 --next 5             and what to compare next
    podium leaderboard votes.csv --ask 50 -o pairs.csv           a batch of comparisons
    podium leaderboard --items items.txt --ask 500 -o pairs.csv  before the first vote
    podium leaderboard arguments.csv --by query                  each topic has its own items
    podium leaderboard votes.csv --control length,markdown --slice category
    podium leaderboard votes.csv --anytime                       claims that hold at every look
    podium leaderboard votes.csv --trust --time tstamp           improbable voters, margins
    podium leaderboard votes.csv --robust                        a board they cannot move
    podium leaderboard monday.csv --save board.podium
    podium leaderboard tuesday.csv --load board.podium --save board.podium --overwrite
    """
    output.check(files=[save])
    given = {name: value for name, value in settings.items() if value is not None}
    given |= {} if output.top is None else {"top": output.top}
    given |= {} if anchor is None else _parse_anchor(anchor)
    plan = {"ask": ask, "budget": budget, "cost": cost, "items": items, "slice_": slice_}
    if ask is not None or budget is not None:
        refused = {"control": control, "pair-floor": pair_floor, "next": next_, "by": by, "anytime": anytime,
                   "trust": trust, "robust": robust, "save": save, "plot": output.plot}  # fmt: skip
        _refuse_beside("--ask and --budget", **refused)
        _plan_comparisons(source, load, without, given.get("seed", 0), output, plan)
        return
    for name, value in {"--cost": cost, "--items": items, "-o": output.path}.items():
        if value is not None:
            raise click.UsageError(f"{name} is for planned comparisons; give --ask N or --budget COST too")
    if control is not None or slice_ is not None:
        refuse_beside_covariates(anytime=anytime, load=load, save=save)
        _refuse_beside("--control and --slice", trust=trust, robust=robust)
        names = split_names(control)
        show_contextual_board(
            source, names, slice_, pair_floor, given, output, without=without, next_=next_, by=by
        )
        return
    beside = {"by": by, "pair-floor": pair_floor, "next": next_}
    if anytime:
        _refuse_beside("--anytime", **beside)
    check_trust_options(trust, robust, time, bool(load or without), beside | {"anytime": anytime})
    single = {"--plot": output.plot, "--load": load, "--save": save}
    single |= {"--anchor ITEM=NUMBER": given.get("reference")}
    # options of one board for all votes keep the queries together
    pooled = anytime or trust or robust or pair_floor is not None
    if by is not None or (
        not pooled and not any(single.values()) and _has_separate_items(source.preferences)
    ):
        if by is None:
            echo_note("no item appears in two queries, so every query has its own leaderboard (--by query)")
        _show_boards_by_query(source.preferences, without, given, next_, output, single)
        return
    if pair_floor is not None:  # saved counts must stay counts, to which votes can be added
        _refuse_beside("--pair-floor", load=load, save=save)
    board = _build_board(source, load, without, pair_floor, given)
    _keep_board(board, save, None if robust else output.plot, output)
    if trust or robust:
        show = show_vote_trust if trust else show_robust_board
        show(board, read_vote_times(source, time), alarm, output)
    elif anytime:
        _print_anytime_board(board, output.top, output.json)
    else:
        _print_board(board, output.top, next_, output.json)


def _keep_board(board: Leaderboard, save: str | None, plot: str | None, output: Output) -> None:
    """Write the files of a board."""
    if save is not None:
        from podium.analysis.leaderboard import save as save_board

        save_board(board, save, overwrite=output.overwrite)
    if plot is not None:
        from podium.analysis.leaderboard.chart import plot_leaderboard

        plot_leaderboard(board, plot, top=output.top)


def _parse_anchor(anchor: str) -> dict[str, Any]:
    """The settings of NUMBER or ITEM=NUMBER."""
    item, equals, number = anchor.rpartition("=")
    try:
        return {"anchor": float(number)} | ({"reference": item} if equals else {})
    except ValueError:
        raise ParameterError(f"the anchor is {anchor!r}; give a number, or ITEM=NUMBER") from None


def _plan_comparisons(
    source: Input, load: str | None, without: tuple[str, ...], seed: int, output: Output, plan: dict[str, Any]
) -> None:
    """Plan the next comparisons instead of a board."""
    if not (source.files or load or plan["items"]):
        raise click.UsageError("--ask and --budget need votes, or --items FILE with the items to compare")
    tally = None
    if plan["slice_"] is not None:
        _refuse_beside("--ask and --slice", load=load)  # a saved board has no slices
    elif source.files or load or plan["items"] is None:
        tally = _read_tally(source, load, without)[0]
    show_suggestions(source, tally, without=without, seed=seed, output=output, **plan)


def _refuse_beside(options: str, **given: Any) -> None:
    """Refuse options that do not work beside others."""
    for name, value in given.items():
        if value:
            raise click.UsageError(f"--{name} does not work with {options}; leave it out")


def _build_board(
    source: Input,
    load: str | None,
    without: tuple[str, ...],
    pair_floor: float | None,
    given: dict[str, Any],
) -> Leaderboard:
    from podium.analysis.leaderboard import leaderboard
    from podium.analysis.leaderboard.tally import check_items

    if source.files or not load:
        check_items(source.preferences)
    tally, start, kept = _read_tally(source, load, without)
    given = kept | given
    if pair_floor is not None:
        from podium.analysis.leaderboard.pair_weights import weight_pairs

        tally = weight_pairs(tally, pair_floor)
    reference = given.get("reference")
    if reference is not None and tally.items.code_of(reference) is None:  # command-line ids are text
        given["reference"] = {str(i): i for i in tally.items}.get(str(reference), reference)
    with capture_warnings():  # the checks report the same
        return leaderboard(tally, settings=LeaderboardSettings(**given), start=start)


def _read_tally(
    source: Input, load: str | None, without: tuple[str, ...]
) -> tuple[Tally, dict[Id, float] | None, dict[str, Any]]:
    """The votes of the files and of a saved board, the scores of that board, and its settings."""
    from podium.analysis.leaderboard import Tally
    from podium.analysis.leaderboard.board_file import read

    tally, start = None, None
    kept: dict[str, Any] = {}
    if source.files or not load:
        tally = Tally.from_preferences(source.preferences)
    if load is not None:
        old, scores, kept = read(load)
        start = dict(zip(old.items.tolist(), scores, strict=False))
        tally = old if tally is None else old + tally
    assert tally is not None
    return tally.without_experts(without) if without else tally, start, kept


# -- one per query ---------------------------------------------------------------------------------------------------


def _has_separate_items(preferences: Preferences) -> bool:
    """Whether votes are on several queries, and no item is in two of them: pooled scores would mean nothing."""
    from podium.data.preferences import Form

    if Form.COMPARISON not in preferences.forms:
        return False
    items = preferences.index.items.tolist()
    return len(preferences) > 1 and len(set(items)) == len(items)


def _show_boards_by_query(
    votes: Preferences,
    without: tuple[str, ...],
    given: dict[str, Any],
    next_: int | None,
    output: Output,
    single: dict[str, Any],
) -> None:
    """Compute the leaderboards, and print their standings in one table and each warning once."""
    for name in (name for name, value in single.items() if value is not None):
        raise click.UsageError(f"{name} applies to a single leaderboard; leave it out, or leave out --by")
    from podium.analysis.leaderboard import leaderboards_by_query

    for judge in without:
        votes = votes.without_expert(judge)
    with capture_warnings() as messages:  # the checks of each leaderboard report the others
        boards = leaderboards_by_query(votes, settings=LeaderboardSettings(**given))
    for text in messages:
        if text.startswith("no leaderboard"):
            echo_warning(text)
    top = output.top
    if output.json:
        print_json({"boards": [{"query": q, **_build_document(b, top, next_)} for q, b in boards.items()]})
        return
    grids = {query: _build_table(board, top) for query, board in boards.items()}
    head = ["query", *next((grid.head for grid in grids.values()), ())]
    rows = [(str(query), *line) for query, grid in grids.items() for line in grid.rows]
    print_table(head, rows, title=f"{len(boards):,} leaderboards", left=3)
    doubts: dict[str, list[tuple[Id, str]]] = {}
    for query, board in boards.items():
        for check in board.checks:
            if check.verdict == "warning":
                doubts.setdefault(check.name, []).append((query, check.text))
    for name, cases in doubts.items():
        (query, text), count = cases[0], f"{len(cases):,} of {len(boards):,} queries"
        echo_warning(f"{name}: in {count}, such as {query}: {text}")
    if next_ is not None:
        proposals = [(str(q), *line) for q, b in boards.items() for line in format_proposals(b, top, next_)]
        click.echo("")
        print_table(["query", *PROPOSAL_COLUMNS], proposals, left=3)


# -- output ----------------------------------------------------------------------------------------------------------


def _build_document(board: Leaderboard, top: int | None, next_: int | None) -> dict[str, Any]:
    document = board.to_dict()
    document["rows"] = document["rows"][:top]
    document["stop"], document["reason"] = board.stopping(top=top)
    if next_ is not None:
        document["next"] = [vars(p) for p in board.next(next_, top=top)]
    return document


def _print_board(board: Leaderboard, top: int | None, next_: int | None, json_: bool) -> None:
    if json_:
        print_json(_build_document(board, top, next_))
        return
    grid = _build_table(board, top)
    title = f"{len(board.rows):,} items, {board.tally.votes:,.10g} votes"
    print_table(grid.head, grid.rows, title=title, left=grid.left)
    decided = board.settings.over == "auto" and board.scheme.over != "votes"
    words = board.scheme.text + (" (--over votes treats votes as independent)" if decided else "")
    if sys.stdout.isatty():
        click.echo(f"{words[:1].upper()}{words[1:]}.\n{board.looks[:1].upper()}{board.looks[1:]}.\n")
        for check in board.checks:
            click.echo(f"{MARKS[check.verdict]:>5}  {check.name}: {check.text}")
    else:  # a pipe gets only warnings and automatic choices
        if decided or board.tally.fractional:
            click.echo(f"podium: {words}", err=True)
        for check in board.checks:
            if check.verdict == "warning":
                echo_warning(f"{check.name}: {check.text}")
    why = board.stopping(top=top)[1]
    if next_ is None:
        echo_if_tty(f"\n{why}.")
        return
    click.echo("")
    proposals = format_proposals(board, top, next_)
    if proposals:
        print_table(PROPOSAL_COLUMNS, proposals, left=2)
    click.echo(f"{why}.")


def _print_anytime_board(plain: Leaderboard, top: int | None, json_: bool) -> None:
    from podium.analysis.leaderboard import anytime_leaderboard

    board = anytime_leaderboard(plain)
    if json_:
        document = board.to_dict()
        print_json(document | {"rows": document["rows"][:top]})
        return
    digits = 3 if plain.settings.scale == "natural" else 0 if sys.stdout.isatty() else 2
    grid = board.grid(digits=digits, top=top)
    title = f"{len(board.rows):,} items, {board.votes:,.10g} votes"
    print_grid(replace(grid, title=title), wide=("wins over first", grid.head[7]), room=100)
    echo_note(f"{board.conclusion}.")
    if board.warning:
        echo_warning(board.warning)


def _build_table(board: Leaderboard, top: int | None) -> Grid:
    """The standings; a terminal gets rounded numbers, a pipe more digits."""
    digits = 3 if board.settings.scale == "natural" else 0 if sys.stdout.isatty() else 2
    return board.grid(digits=digits, between="..", top=top)
