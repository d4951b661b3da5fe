"""How the files of a project are read: a use for every file, roles for its columns, choices, and what is wrong."""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from podium.core.errors import InputError, Option, PodiumError, PodiumWarning, capture_warnings
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.formats.base import Content, merge_contents
from podium.storage.files import Source
from podium.studio.form_fields import spell_option
from podium.studio.import_tables import ROLES, RawTable, guess_encoding, guess_roles, load_table
from podium.studio.item_texts import TEXT_COLUMNS, ItemText
from podium.studio.normalized_tables import normalize_table, select_features

FileUse = Literal["data", "labels", "texts", "ignore"]
USES: dict[str, str] = {
    "data": "rankings, ratings or votes",
    "labels": "labels (the truth)",
    "texts": "texts of the items",
    "ignore": "nothing: leave it out",
}
CHOICES = (
    "duplicates", "missing", "self_votes", "unlisted", "encoding", "values", "kind", "winner_codes", "expert",
)  # fmt: skip


@dataclass(frozen=True)
class FilePlan:
    """The reading of one file: its use, its format or the roles of its columns, and further options."""

    use: FileUse = "data"
    format: str = ""  # empty: detected
    roles: dict[str, str] = field(default_factory=dict)  # by column; empty: as the format reads them
    header: bool | None = None  # None: detected
    delimiter: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> FilePlan:
        """The plan of a stored document; what is unknown is ignored."""
        plain = FilePlan()
        roles = {str(c): str(r) for c, r in dict(values.get("roles", {})).items() if r in ROLES}
        use = values.get("use", "data")
        return replace(
            plain,
            use=use if use in USES else "data",
            format=str(values.get("format", "")),
            roles=roles,
            header=values.get("header") if isinstance(values.get("header"), bool) else None,
            delimiter=str(values.get("delimiter", ""))[:1],
            options={k: v for k, v in dict(values.get("options", {})).items() if k in CHOICES},
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the store."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class PlannedContent:
    """The content of the files of a project as planned, with the notes of the readers."""

    preferences: Preferences | None
    labels: Labels | None
    features: Any = None
    seconds: Any = None
    texts: dict[str, ItemText] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


# -- reading -------------------------------------------------------------------------------------------------------


def read_planned(files: Sequence[tuple[str, bytes]], plans: Sequence[FilePlan]) -> PlannedContent:
    """Read the files as planned; raises the first error."""
    from podium import formats

    contents: list[Content] = []
    texts: dict[str, ItemText] = {}
    groups: dict[str, tuple[FilePlan, list[Source]]] = {}
    with capture_warnings(spell_option) as notes:
        for (name, content), plan in zip(files, plans, strict=True):
            source = Source(name, content, str(plan.options.get("encoding") or "utf-8"))
            if plan.use == "texts":
                texts |= read_texts(source, plan)
            elif plan.use != "ignore" and plan.roles:
                contents += _read_by_roles(source, plan)
            elif plan.use != "ignore":
                groups.setdefault(repr(replace(plan, roles={})), (plan, []))[1].append(source)
        for plan, sources in groups.values():
            chosen = {k: v for k, v in plan.options.items() if k != "encoding"}
            if plan.delimiter:
                chosen["delimiter"] = plan.delimiter
            new = formats.read(sources, plan.format or None, **chosen)
            if plan.use == "labels":
                new = _keep_labels(new, sources[0].name)
            contents.append(new)
        if not contents:
            raise InputError("no file is read", remedy="choose a use for at least one file")
        whole = merge_contents(contents)
    if whole.preferences is not None and not whole.preferences.forms:
        whole = replace(whole, preferences=None)
    notes += whole.summary.splitlines()
    return PlannedContent(whole.preferences, whole.labels, whole.features, whole.seconds, texts, tuple(notes))


def _keep_labels(content: Content, name: str) -> Content:
    if content.labels is None:
        raise InputError(
            "the file has no labels",
            source=name,
            remedy="choose another use of it, or the roles of its columns",
        )
    return Content(labels=content.labels)


def _read_by_roles(source: Source, plan: FilePlan) -> list[Content]:
    """The content of a table whose columns have roles."""
    from podium import formats

    table = load_table(source, plan.delimiter, plan.header)
    if table is None:
        raise InputError("the file is not a table", source=source.name, remedy="choose its format")
    given = plan.options.get("missing", ())
    missing = [given] if isinstance(given, str) else list(given)
    try:
        plain = normalize_table(table, plan.roles, plan.use, missing)
    except InputError as error:
        raise InputError(error.problem, source=source.name, remedy=error.remedies) from None
    options: dict[str, Any] = plain.options | {
        k: v for k, v in plan.options.items() if k not in ("encoding", "missing", "values", "expert")
    }
    if plan.use == "labels":
        options = {k: v for k, v in options.items() if k in ("format", "kind", "delimiter")}
    contents = []
    if plain.skipped:
        what = f"{source.name}: {plain.skipped:,} rows without {plain.needed} are skipped"
        warnings.warn(what, PodiumWarning, stacklevel=2)
    try:
        known = [Source(source.name, plain.content)]
        new = formats.read(known, options.pop("format"), **options, missing=["", *missing])
    except InputError as error:
        if error.line is None or error.source != source.name or not 2 <= error.line < len(plain.lines) + 2:
            raise
        line = plain.lines[error.line - 2]
        raise InputError(error.problem, source=source.name, line=line, remedy=error.remedies) from None
    contents.append(_keep_labels(new, source.name) if plan.use == "labels" else new)
    features = select_features(table, plan.roles)
    if features is not None:
        contents.append(formats.read([Source(source.name, features)], "csv", kind="features", delimiter=","))
    return contents


def read_texts(source: Source, plan: FilePlan) -> dict[str, ItemText]:
    """The texts of the items in a table: title, text and address by id."""
    table = load_table(source, plan.delimiter, plan.header)
    if table is None:
        raise InputError(
            "the file is not a table of texts",
            source=source.name,
            remedy="give columns id, title, text or url",
        )
    roles = plan.roles or guess_text_roles(table)
    columns = {role: table.names.index(name) for name, role in roles.items() if name in table.names}
    if "item" not in columns or not {"title", "text", "url"} & columns.keys():
        names = ", ".join(map(repr, table.names[:12]))
        raise InputError(
            f"the columns are {names}",
            source=source.name,
            remedy="one must be the item, another its title, text or url",
        )
    parts = {role: at for role, at in columns.items() if role in ("title", "text", "url")}
    return {
        row[columns["item"]]: ItemText(**{role: row[at] for role, at in parts.items()}) for row in table.rows
    }


def guess_text_roles(table: RawTable) -> dict[str, str]:
    """The roles of the columns of a table of texts."""
    roles: dict[str, str] = {}
    by_word = {name.lower(): name for name in reversed(table.names)}
    for role, words in TEXT_COLUMNS.items():
        column = next((by_word[word] for word in words if by_word.get(word, "") not in ("", *roles)), None)
        if column is not None:
            roles[column] = role
    if "item" not in roles.values() and table.names and table.names[0] not in roles:
        roles[table.names[0]] = "item"
    if not {"title", "text", "url"} & set(roles.values()) and len(table.names) == 2:
        roles[table.names[1]] = "text"
    return roles


# -- the first guess -----------------------------------------------------------------------------------------------


def suggest_plans(files: Sequence[tuple[str, bytes]]) -> list[FilePlan]:
    """A plan for every file: as its format is detected, else by guessed roles; what is not data is left out."""
    plans = [_suggest_plan(name, content) for name, content in files]
    if any(plan.use == "data" for plan in plans):
        plans = _settle_labels(files, plans)
    return plans


def _suggest_plan(name: str, content: bytes) -> FilePlan:
    from podium import formats

    encoding = guess_encoding(content)
    source, options = Source(name, content, encoding or "utf-8"), {"encoding": encoding} if encoding else {}
    guess = FilePlan(options=options)
    try:
        with capture_warnings():
            detected = formats.detection.detect_format(source, {})
            guess = FilePlan(format=detected, options=options)
            read = formats.read([source], detected)
    except PodiumError as error:
        # an error with a choice needs an answer, not another reading
        asked = [part for part in getattr(error, "remedies", ()) if isinstance(part, Option)]
        if guess.format and any(part.name in CHOICES and set(part.values) - {"..."} for part in asked):
            return guess
        table = load_table(source)
        if table is None or not table.rows:
            return FilePlan(use="ignore")
        roles = guess_roles(table)
        if not roles:
            texts = guess_text_roles(table)
            return FilePlan("texts", "", texts, options=options) if len(texts) > 1 else FilePlan(use="ignore")
        return FilePlan(_guess_use(table, roles), "", roles, options=options)
    if detected == "wide" and (table := load_table(source)) is not None:
        roles = guess_roles(table)
        if list(roles.values()).count("rank") > 1:
            return FilePlan(roles=roles, options=options)
    if read.preferences is None and read.labels is not None and read.features is None:
        return FilePlan("labels", detected, options=options)
    if read.preferences is None and read.features is not None:
        # features rank the items too: each is an expert
        return (
            FilePlan("data", detected, options=options | {"kind": "scores"}) if detected == "letor" else guess
        )
    return guess


def _guess_use(table: RawTable, roles: Mapping[str, str]) -> FileUse:
    given = set(roles.values())
    if "expert" in given or {"rank", "score"} & given:
        return "data"
    if "winner" in given and ({"loser", "first item"} & given):
        return "data"
    if "winner" in given or "label" in given:
        queries = [table.names.index(name) for name, role in roles.items() if role == "query"]
        once = not queries or max(Counter(row[queries[0]] for row in table.rows).values()) == 1
        return "labels" if "label" in given or once else "data"
    return "data"


def _settle_labels(files: Sequence[tuple[str, bytes]], plans: Sequence[FilePlan]) -> list[FilePlan]:
    """Label files read by guessed roles where the detected reading matches no query of the data."""
    settled, data = list(plans), None
    for skipped in ({}, {"missing": [""]}):  # rows without an answer are a question for later
        only = [
            replace(p, options=p.options | skipped) if p.use == "data" else replace(p, use="ignore")
            for p in plans
        ]
        with contextlib.suppress(PodiumError):
            data = read_planned(files, only).preferences
            break
    if data is None:
        return settled
    for number, (file, plan) in enumerate(zip(files, plans, strict=True)):
        if plan.use != "labels" or _matches(data, file, plan):
            continue
        table = load_table(Source(*file))
        roles = {} if table is None else guess_roles(table)
        other = replace(plan, format="", roles=roles)
        settled[number] = other if roles and _matches(data, file, other) else replace(plan, use="ignore")
    return settled


def _matches(data: Preferences, file: tuple[str, bytes], plan: FilePlan) -> bool:
    try:
        labels = read_planned([file], [plan]).labels
    except PodiumError:
        return False
    return labels is not None and bool((labels.index.locate(data.index) >= 0).any())
