"""A leaderboard as a file: tallied votes, scores and settings, in the container of model files."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Any

import numpy as np

from podium.analysis.leaderboard.result import Leaderboard, LeaderboardSettings, leaderboard
from podium.analysis.leaderboard.tally import COLUMNS, MARKS, SQUARES, Tally
from podium.core.errors import ModelFileError, PodiumError
from podium.data.ids import Ids
from podium.models import model_files

__all__ = ["load", "save"]

NAME = "leaderboard"
IDS = ("items", "experts", "queries")


def save(board: Leaderboard, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Save a leaderboard, so that more votes can be added later."""
    tally = board.tally
    values: dict[str, Any] = {name: getattr(tally, name) for name in (*COLUMNS, *MARKS)}
    for ids in IDS:  # as a text array: millions of ids would make the header too long
        values[ids] = np.frombuffer(json.dumps(getattr(tally, ids).tolist()).encode(), np.uint8)
    values["scores"] = board.estimate.solution.scores
    stored = {f"{name}_": value for name, value in values.items()}
    model_files.write_contents(path, NAME, asdict(board.settings), stored, overwrite=overwrite)


def load(path: str | os.PathLike[str], **changes: Any) -> Leaderboard:
    """Load a leaderboard, optionally with other settings; the fit starts again from the saved scores."""
    tally, scores, settings = read(path)
    start = dict(zip(tally.items.tolist(), scores, strict=True))
    return leaderboard(tally, settings=LeaderboardSettings(**(settings | changes)), start=start)


def read(path: str | os.PathLike[str]) -> tuple[Tally, list[float], dict[str, Any]]:
    """Read the tally, the natural scores and the settings from a file."""
    name, settings, kept = model_files.read_contents(path)
    if name != NAME:
        raise ModelFileError(f"{path}: holds a model called {name!r}, not a leaderboard; use podium apply")
    try:
        columns: dict[str, Any] = {n: Ids(json.loads(kept[f"{n}_"].tobytes())) for n in IDS}
        counts = {square: kept[f"{square.removesuffix('_squares')}_"] for square in SQUARES}
        missing = [square for square in SQUARES if f"{square}_" not in kept]
        # older files lack squared weights; whole counts of single votes equal their squares
        if missing and not any((counts[square] % 1).any() for square in missing):
            kept = kept | {f"{square}_": counts[square] for square in missing} | {"fractional_": False}
        columns |= {n: kept[f"{n}_"] for n in COLUMNS}
        columns |= {n: bool(kept[f"{n}_"]) for n in MARKS}
        tally = Tally(**columns)
        LeaderboardSettings(**settings)
        scores = kept["scores_"].tolist()
        if len(scores) != len(tally.items):
            raise ValueError
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, PodiumError):
            raise ModelFileError(f"{path}: {error}") from None
        raise ModelFileError(f"{path}: not a leaderboard file; save it again") from None
    return tally, scores, settings
