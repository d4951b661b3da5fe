"""podium leaderboard with --ask: the next comparisons as a table, as JSON or as a file to fill in."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
from typing import TYPE_CHECKING, Any

import click

from podium.cli.input import Input
from podium.cli.output import Output, echo_note, echo_warning, print_grid, print_json
from podium.core.errors import InputError, ParameterError

if TYPE_CHECKING:
    from podium.analysis.leaderboard import Suggestions, Tally
    from podium.analysis.leaderboard.next_comparisons import ComparisonAdvice
    from podium.data.ids import Id
    from podium.data.vote_table import VoteTable

__all__ = ["PROPOSAL_COLUMNS", "format_proposals", "read_vote_table", "show_suggestions"]

DELIMITERS = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".ndjson")
PROPOSAL_COLUMNS = ["compare next", "against", "first wins", "nats", "votes"]


def show_suggestions(
    source: Input,
    tally: Tally | None,
    *,
    ask: int | None,
    budget: float | None,
    cost: str | None,
    items: str | None,
    slice_: str | None,
    without: tuple[str, ...],
    seed: int,
    output: Output,
) -> None:
    """Choose the comparisons and print or write them; `tally` holds the votes, unless there are slices."""
    from podium.analysis.leaderboard import suggest_comparisons
    from podium.storage.files import open_source

    if output.path is not None and _suffix(output.path) not in (*DELIMITERS, *LINES):
        raise ParameterError(
            f"{output.path}: comparisons are written as .csv, .tsv or .jsonl; rename the file"
        )
    votes: Tally | VoteTable | None = tally if slice_ is None else read_vote_table(source, [slice_], without)
    listed: list[Id] | None = None
    if items is not None:
        # one per line; an item that has votes keeps the id that it has there
        lines = [line.decode().strip() for _, line in open_source(items).iterate_lines()]
        by_text = {} if votes is None else {str(item): item for item in votes.items.tolist()}
        listed = [by_text.get(line, line) for line in lines if line]
    suggestions = suggest_comparisons(
        votes,
        ask,
        items=listed,
        slices=slice_,
        cost=1.0 if cost is None else _read_cost(cost),
        budget=budget,
        top=output.top,
        seed=seed,
    )
    if output.path is not None:
        from podium.storage.files import write_atomically

        text = _format_file(suggestions, _suffix(output.path))
        write_atomically([text.encode()], output.path, overwrite=output.overwrite)
    if output.json:
        print_json(suggestions.to_dict())
    elif output.path is None:
        print_grid(dataclasses.replace(suggestions.grid(), title=f"{len(suggestions):,} comparisons"))
    else:
        count = f"{len(suggestions):,} comparisons"
        echo_note(
            f"{output.path}: {count}; fill in the column winner, then pass the file together with the votes."
        )
    if not output.json:
        echo_note(
            f"The current order is expected to agree with the true one at tau {suggestions.expected_tau:.2f}"
            f" ({suggestions.votes:,.10g} votes on {suggestions.items:,} items)."
        )
        if suggestions.note:
            echo_warning(suggestions.note)


def format_proposals(board: ComparisonAdvice, top: int | None, count: int) -> list[tuple[str, ...]]:
    """The rows of `--next`."""
    return [
        (str(p.first), str(p.second), f"{p.chance:.0%}", f"{p.gain:.2g}", f"{p.votes:,.10g}")
        for p in board.next(count, top=top)
    ]


def read_vote_table(source: Input, names: list[str], without: tuple[str, ...] = ()) -> VoteTable:
    """The votes with the named attributes, without those of some judges."""
    wanted = dataclasses.replace(source, options=(*source.options, f"attributes={','.join(names)}"))
    votes = wanted.content.votes
    if votes is None:
        raise click.UsageError("--control and --slice need tables of votes (CSV, JSON lines, Parquet)")
    return votes.without_experts(without) if without else votes


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _read_cost(given: str) -> float | dict[Any, float]:
    """A number, or the table of judges and costs in a file."""
    try:
        return float(given)
    except ValueError:
        pass
    from podium.storage.files import open_source

    text = open_source(given).data.decode()
    lines = list(csv.reader(io.StringIO(text), delimiter="\t" if _suffix(given) == ".tsv" else ","))
    if not lines or [cell.strip().lower() for cell in lines[0]] != ["judge", "cost"]:
        raise InputError(
            "the first line is not judge,cost", source=given, remedy="write a table with these columns"
        )
    costs: dict[Any, float] = {}
    for number, row in enumerate(lines[1:], 2):
        if not row:
            continue
        try:
            judge, cost = row[0].strip(), float(row[1])
        except (IndexError, ValueError):
            raise InputError(
                f"{','.join(row)!r} is not a judge and a number",
                source=given,
                line=number,
                remedy="write judge,cost",
            ) from None
        if judge in costs:
            raise InputError(
                f"{judge!r} occurs twice", source=given, line=number, remedy="name every judge once"
            )
        costs[judge] = cost
    return costs


def _format_file(suggestions: Suggestions, suffix: str) -> str:
    """Rows that `podium leaderboard` reads once the column winner is filled in."""
    rows = []
    for row in suggestions:
        cells: dict[str, Any] = {"item_a": row.first, "item_b": row.second, "winner": ""}
        cells |= {} if row.judge is None else {"judge": row.judge}
        cells |= {} if suggestions.column is None else {suggestions.column: row.slice}
        cells |= {"cost": row.cost, "chance_a": round(row.chance, 4), "gain": round(row.gain, 6)}
        rows.append(cells)
    if suffix in LINES:
        return "".join(json.dumps(cells, ensure_ascii=False) + "\n" for cells in rows)
    text = io.StringIO()
    head = list(rows[0]) if rows else ["item_a", "item_b", "winner"]
    writer = csv.DictWriter(text, head, delimiter=DELIMITERS[suffix], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
