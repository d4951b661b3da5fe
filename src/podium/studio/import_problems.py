"""What is wrong with the files of a project, in words, and the changes of the plan that settle it with a click."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from podium.core import registry
from podium.core.errors import Option, PodiumError
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.studio.form_fields import spell_option
from podium.studio.import_plan import CHOICES, USES, FilePlan, PlannedContent, guess_text_roles
from podium.studio.import_tables import REVERSED, RawTable, guess_roles

SURE = 20  # rows from which a reading can be doubted
HALF = 0.5
NamedFiles = Sequence[tuple[str, bytes]]


@dataclass(frozen=True)
class Remedy:
    """A change of the plan that a click applies to one file (or, without a number, to all of them)."""

    label: str
    change: str  # "use=ignore", "option.missing=-1", ...
    file: int | None = None


@dataclass(frozen=True)
class ImportProblem:
    """Why the files cannot be read, or what to check before trusting them; with ways to settle it."""

    text: str
    remedies: tuple[Remedy, ...] = ()
    blocks: bool = True  # False: the data can be read, but look at this


def find_problems(
    files: NamedFiles, plans: Sequence[FilePlan], error: PodiumError | None, content: PlannedContent | None
) -> list[ImportProblem]:
    """The error in words with its remedies as clicks; then what should be looked at although it can be read."""
    problems: list[ImportProblem] = []
    if error is not None:
        problems.append(describe_error(files, error))
    elif content is not None and content.preferences is None:
        problems.append(_describe_missing_data(files, plans, content))
    for number, ((name, _), plan) in enumerate(zip(files, plans, strict=True)):
        if plan.use == "ignore":
            change = Remedy("Use it", "use=data", number)
            problems.append(ImportProblem(f"{name} is left out.", (change,), blocks=False))
    if content is not None and content.preferences is not None and content.labels is not None:
        problems += _check_labels(files, plans, content.preferences, content.labels)
    return problems


def _describe_missing_data(
    files: NamedFiles, plans: Sequence[FilePlan], content: PlannedContent
) -> ImportProblem:
    what = "labels" if content.labels is not None else "features or texts"
    used = [n for n, plan in enumerate(plans) if plan.use != "ignore"]
    remedies = [Remedy(f"Read {files[n][0]} as rankings", "as-data", n) for n in used]
    if any(plan.format == "letor" for plan in plans):
        remedies.insert(0, Remedy("Read each feature as an expert", "option.kind=scores"))
    text = f"The files contain only {what}, but no rankings, ratings or votes."
    return ImportProblem(text, tuple(remedies))


def describe_error(files: NamedFiles, error: PodiumError) -> ImportProblem:
    """An error of the readers as a problem: every value that it suggests becomes a click."""
    names = [name for name, _ in files]
    source, line = getattr(error, "source", None), getattr(error, "line", None)
    number = names.index(source) if source in names else None
    place = "" if source is None else f"{source}, line {line}: " if line else f"{source}: "
    problem = getattr(error, "problem", None)
    text = error.format_message(spell_option) if problem is None else f"{place}{problem}"
    remedies = []
    for part in getattr(error, "remedies", error.parts):
        if not isinstance(part, Option) or part.of != "reading":
            continue
        for value in part.values:
            if value != "..." and part.name in (*CHOICES, "format"):
                shown = "none" if value == () else str(value)
                change = f"format={value}" if part.name == "format" else f"option.{part.name}={shown}"
                label = "Each file is an expert" if (part.name, value) == ("expert", "file") else ""
                every = None if part.name == "expert" else number
                label = label or ACTIONS.get((part.name, shown), "")
                remedies.append(Remedy(label or f"{LABELS.get(part.name, part.name)} {shown}", change, every))
    if number is not None and len(files) > 1:
        remedies.append(Remedy(f"Leave {names[number]} out", "use=ignore", number))
    first = text if place else text[:1].upper() + text[1:]
    return ImportProblem(first + ("" if text.endswith(".") else "."), tuple(remedies))


# beginnings of the words on a button; the value follows
LABELS = {
    "duplicates": "Settle duplicate rows by",
    "missing": "Take as “no value”:",
    "encoding": "Read with the encoding",
    "format": "Read as",
    "values": "Read the numbers as",
    "kind": "Read the content as",
    "winner_codes": "Read the answers as",
    "unlisted": "Take unlisted items as",
}
ACTIONS = {
    ("duplicates", "first"): "Keep the first of duplicate rows",
    ("duplicates", "last"): "Keep the last of duplicate rows",
    ("duplicates", "best"): "Keep the best of duplicate rows",
    ("duplicates", "mean"): "Average duplicate rows",
    ("missing", "none"): "Take every cell as a value",
    ("missing", ""): "Skip the rows with an empty cell",
    ("self_votes", "skip"): "Skip votes between an item and itself",
}


def _check_labels(
    files: NamedFiles, plans: Sequence[FilePlan], data: Preferences, labels: Labels
) -> list[ImportProblem]:
    """Labels that match nothing, that may be upside down, or in which -1 may mean "unknown"."""
    holders = [n for n, p in enumerate(plans) if p.use == "labels"]
    if not (labels.index.locate(data.index) >= 0).any():
        remedies = tuple(Remedy(f"Leave {files[n][0]} out", "use=ignore", n) for n in holders)
        return [ImportProblem("The labels match no item of the data.", remedies, blocks=False)]
    problems = []
    unknown, known = int((labels.grades == -1).sum()), labels.grades[labels.grades != -1]
    if unknown and (known >= 0).all():
        text = f"{unknown:,} of {len(labels.grades):,} labels are -1. Does -1 mean “unknown”?"
        among = [n for n, p in enumerate(plans) if "label" in p.roles.values() or p.use == "labels"]
        change = [Remedy("-1 means unknown", "option.missing=-1", n) for n in among]
        problems.append(ImportProblem(text, tuple(change), blocks=False))
    grades, votes, lists = labels.align(data.index), data.comparisons, data.lists
    agreement, what = np.nan, ""
    if len(votes) and not lists.rows:
        gap = grades[votes.winner] - grades[votes.loser]
        decided = gap[np.isfinite(gap) & (gap != 0) & ~votes.tie]
        if len(decided) >= SURE:
            agreement, what = float((decided > 0).mean()), "of the votes agree with the labels"
    elif lists.rows:
        sizes = np.diff(lists.starts)[lists.list_of_row]
        place, grade = lists.rank / sizes, grades[lists.item]
        rows = np.isfinite(grade) & (sizes > 1)
        if rows.sum() >= SURE and grade[rows].std() > 0:
            upper, lower = grade[rows & (place <= 0.5)], grade[rows & (place > 0.5)]
            if len(upper) and len(lower) and upper.mean() < lower.mean():
                agreement, what = 0.0, "The experts put items with small labels first"
    reversible = [n for n in holders if REVERSED not in plans[n].roles.values()]
    if agreement < HALF and reversible:
        first = f"Only {agreement:.0%} {what}" if agreement else what
        remedies = tuple(Remedy("A small label is good", "reverse-labels", n) for n in reversible)
        problems.append(ImportProblem(f"{first}. Is a small label a good one?", remedies, blocks=False))
    return problems


def apply_change(plan: FilePlan, change: str, table: RawTable | None) -> FilePlan:
    """A plan after a click on a remedy.

    >>> apply_change(FilePlan(), "use=ignore", None).use, apply_change(FilePlan(), "option.kind=scores", None).options
    ('ignore', {'kind': 'scores'})
    """
    name, _, value = change.partition("=")
    if change == "as-data":
        roles = {c: "score" if r.startswith("label") else r for c, r in plan.roles.items()}
        return replace(plan, use="data", roles=roles)
    if change == "reverse-labels":
        roles = plan.roles or ({} if table is None else guess_roles(table))
        roles = {c: REVERSED if r == "label" else r for c, r in roles.items()}
        return replace(plan, format="", roles=roles)
    if name == "use" and value in USES:
        roles = plan.roles
        if value in ("data", "labels") and not roles and not plan.format and table is not None:
            roles = guess_roles(table)
        if value == "texts" and table is not None:
            roles = guess_text_roles(table)
        return replace(plan, use=value, roles=roles)  # type: ignore[arg-type]
    if name == "format" and (value in registry.formats.all() or not value):
        return replace(plan, format=value, roles={})
    if name.startswith("option.") and name.removeprefix("option.") in CHOICES:
        key = name.removeprefix("option.")
        chosen: Any = value
        if key == "missing":
            chosen = [] if value == "none" else [cell.strip() for cell in value.split(",")]
        options = {k: v for k, v in plan.options.items() if k != key}
        return replace(plan, options=options if value == "" and key != "missing" else options | {key: chosen})
    return plan
