"""Notebook views of data and results: a summary, then a few rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from podium.core.tables import (
    Grid,
    format_decimal,
    format_percent,
    render_block,
    render_paragraph,
    render_table,
)

if TYPE_CHECKING:
    from podium.data.consensus import Consensus
    from podium.data.dataset import Dataset
    from podium.data.features import Features
    from podium.data.ids import Id
    from podium.data.labels import Labels
    from podium.data.preferences import Preferences

__all__ = [
    "ranking_grid",
    "render_consensus",
    "render_dataset",
    "render_features",
    "render_labels",
    "render_preferences",
]

QUERIES = 3
ITEMS = 5
EXPERTS = 10
PARTS = 10
FEATURES = 10


def render_consensus(consensus: Consensus) -> str:
    """The top items of a few queries, and the diagnostics of the method."""
    parts = [render_paragraph(note) for note in consensus.diagnostics.notes]
    if not consensus.diagnostics.converged:
        parts.insert(0, render_paragraph("The method did not converge; the order may still change."))
    for query in consensus.queries[:QUERIES]:
        ranked = consensus[query]
        grid = ranking_grid(ranked[:ITEMS], f"query {query}")
        parts.append(render_table(grid, more=max(0, len(ranked) - ITEMS)))
    if len(consensus) > QUERIES:
        parts.append(render_paragraph(f"... {len(consensus) - QUERIES:,} more queries"))
    return render_block(repr(consensus), *parts)


def ranking_grid(places: Iterable[tuple[Id, int, float, bool]], title: str = "") -> Grid:
    """A ranking as a table: rank, item, score, and whether it is tied."""
    rows = (
        (str(rank), str(item), f"{score:.6g}", "tied" if tied else "") for item, rank, score, tied in places
    )
    return Grid(("rank", "item", "score", ""), tuple(rows), 2, title)


def render_preferences(preferences: Preferences) -> str:
    """The number of lists, items and votes per expert."""
    lists, votes, names = preferences.lists, preferences.comparisons, preferences.experts
    answers = np.bincount(lists.expert[lists.lengths > 0], minlength=len(names))
    rows = np.bincount(lists.expert, weights=lists.lengths, minlength=len(names))
    voted = np.bincount(votes.expert, minlength=len(names))
    head: tuple[str, ...] = ("expert",)
    head += ("lists", "items", "mean length") if lists.rows else ()
    head += ("votes",) if len(votes) else ()
    shown = []
    for code, name in enumerate(names[:EXPERTS]):
        mean = rows[code] / answers[code] if answers[code] else None
        cells = (f"{answers[code]:,}", f"{rows[code]:,.0f}", format_decimal(mean, 1)) if lists.rows else ()
        shown.append((str(name), *cells, *((f"{voted[code]:,}",) if len(votes) else ())))
    forms = ", ".join(sorted(f.value for f in preferences.forms)) or "nothing"
    below = "below those it lists" if preferences.unlisted == "below" else "unknown"
    about = render_paragraph(f"Forms: {forms}. Items that an expert does not list are {below}.")
    grid = Grid(head, tuple(shown))
    return render_block(repr(preferences), about, render_table(grid, more=max(0, len(names) - EXPERTS)))


def render_labels(labels: Labels) -> str:
    """The frequency of each grade."""
    known = labels.grades[~np.isnan(labels.grades)]
    values, counts = np.unique(known, return_counts=True)
    rows = tuple(
        (f"{v:g}", f"{n:,}", format_percent(n / len(known)))
        for v, n in zip(values[:EXPERTS].tolist(), counts[:EXPERTS].tolist(), strict=True)
    )
    grid = Grid(("grade", "items", "share"), rows, 0)
    return render_block(
        repr(labels), render_table(grid, more=max(0, len(values) - EXPERTS)) if len(known) else ""
    )


def render_features(features: Features) -> str:
    """Coverage and range of each feature."""
    rows = []
    for name, column in zip(features.names[:FEATURES], features.values.T, strict=False):
        known = column[~np.isnan(column)]
        span = (known.min(), known.mean(), known.max()) if len(known) else ()
        cells = [f"{value:.6g}" for value in span] or [""] * 3
        rows.append((name, format_percent(len(known) / len(column) if len(column) else None), *cells))
    grid = Grid(("feature", "known", "smallest", "mean", "largest"), tuple(rows))
    return render_block(repr(features), render_table(grid, more=max(0, len(features.names) - FEATURES)))


def render_dataset(data: Dataset) -> str:
    """The views of its preferences, labels, features and parts."""
    shown = [render_preferences(data.preferences)]
    shown += (
        [render_labels(data.labels)]
        if data.labels is not None
        else [render_paragraph("There are no labels.")]
    )
    shown += [render_features(data.features)] if data.features is not None else []
    if data.part is not None:
        numbers, counts = np.unique(data.part, return_counts=True)
        pairs = zip(numbers[:PARTS].tolist(), counts[:PARTS].tolist(), strict=True)
        grid = Grid(("part", "queries"), tuple((str(part), f"{n:,}") for part, n in pairs))
        shown.append(render_table(grid, more=max(0, len(numbers) - PARTS)))
    return render_block(f"Dataset {data.name}".rstrip(), *shown)
