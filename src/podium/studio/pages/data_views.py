"""The Data page: the files of a project, how their columns are read, and what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podium.core import registry
from podium.core.errors import PodiumError, capture_warnings
from podium.data.column_roles import LIST_ROLES, VOTE_ROLES
from podium.formats.detection import detect_format
from podium.storage.digests import digest_bytes
from podium.storage.files import Source
from podium.studio.import_plan import USES, FilePlan, guess_text_roles, read_planned
from podium.studio.import_problems import ImportProblem, find_problems
from podium.studio.import_tables import DELIMITERS, ROLES, RawTable, count_unreadable, guess_roles, load_table
from podium.studio.loading import list_inputs, parse_plans
from podium.studio.pages.overview import describe_data
from podium.studio.pages.view_context import View, ViewContext, register_view

ROWS, COLUMNS = 20, 60  # of a preview
ROLE_COLUMNS = {
    "trec": ("query", "", "item", "rank", "score", "expert"),
    "qrels": ("query", "", "item", "label"),
}
FILES = 12  # previews on a page
CHECKED = 3_000_000  # cells up to which duplicates and missing values are counted
WHOLE = 20_000_000  # bytes up to which a file is read whole for its preview


@dataclass(frozen=True)
class FilePreview:
    """One file on the Data page: its plan, its first rows, and what was counted in it."""

    number: int
    name: str
    size: int
    plan: FilePlan
    format: str
    columns: tuple[tuple[int, str, str], ...]  # number, name and role
    rows: list[list[str]]
    has_roles: bool  # whether the roles of its columns can be chosen
    counts: dict[str, int]
    unreadable: dict[str, int]  # by encoding, the characters that it cannot read
    columns_digest: str = ""
    alike: int = 0  # other files with the same columns


@register_view("data", "Files and columns", 5, goal="Data", needs_data=False)
def build_data_view(c: ViewContext) -> View:
    """The files, the roles of their columns, the choices with counts, the problems with their remedies."""
    if c.project.kind == "demo":
        files: list[tuple[str, bytes]] = []
    else:
        files = list_inputs(c.work.store, c.project, c.work.settings.roots)
    plans = parse_plans(c.project.options) or [FilePlan() for _ in files]
    pages = max(1, -(-len(files) // FILES))
    page = c.get_whole_number("page", 1, 1, pages)
    sizes = tuple(len(content) for _, content in files)
    key = ("data page", c.project.id, repr(plans), sizes, str(c.problem), page)
    is_planned = "plan" in c.project.options
    previews, problems = c.wait(
        c.work.result(key, lambda: examine_files(files, plans, c.problem, is_planned=is_planned, page=page))
    )
    facts = {} if c.problem is not None else describe_data(c.data)
    rows = [
        (name, len(content), plan.use, plan.format)
        for (name, content), plan in zip(files, plans, strict=True)
    ]
    head = ("file", "bytes", "use", "format")
    more = {
        "files": previews,
        "file_count": len(files),
        "page": page,
        "pages": pages,
        "problems": problems,
        "is_ready": c.problem is None,
        "is_guess": bool(c.project.options.get("guessed")),
        "facts": facts,
        "notes": list(c.data.notes),
        "uses": USES,
        "roles": list(ROLES),
        "delimiters": DELIMITERS,
        "formats": list(registry.formats.all()),
        "encoding": c.get_value("encoding"),
        "has_labels": c.data.labels is not None,
        "text_count": len(c.data.texts),
    }
    document = {
        "files": [dict(zip(head, row, strict=True)) for row in rows],
        "problems": [problem.text for problem in problems],
        "facts": facts,
    }
    return View("Data", document, head, rows, (), "data.html", more)


def examine_files(
    files: Sequence[tuple[str, bytes]],
    plans: Sequence[FilePlan],
    problem: PodiumError | None,
    *,
    is_planned: bool,
    page: int = 1,
) -> tuple[list[FilePreview], list[ImportProblem]]:
    """Previews of a page of files, and what is wrong; `problem` is why they cannot be read, if they cannot."""
    digests = [digest_columns(*file, plan) for file, plan in zip(files, plans, strict=True)]
    previews = []
    for n in range((page - 1) * FILES, min(page * FILES, len(files))):
        alike = digests.count(digests[n]) - 1 if digests[n] else 0
        previews.append(
            replace(_preview_file(n, *files[n], plans[n]), columns_digest=digests[n], alike=alike)
        )
    error, content = problem, None
    if is_planned:
        try:
            with capture_warnings():
                content, error = read_planned(files, plans), None
        except PodiumError as reason:
            error = reason
    return previews, find_problems(files, plans, error, content)


def _preview_file(number: int, name: str, content: bytes, plan: FilePlan) -> FilePreview:
    source = Source(name, content, str(plan.options.get("encoding") or "utf-8"))
    detected = plan.format
    if not detected:
        try:
            detected = detect_format(source, {})
        except PodiumError:
            detected = "table" if plan.roles else ""
    holds = registry.formats.get(detected).holds if detected in registry.formats else set()
    if plan == replace(plan, use="data", roles={}) and holds == {"labels"}:
        plan = replace(plan, use="labels")
    whole = content.startswith(b"PAR1") or len(content) < WHOLE
    unreadable = {} if content.startswith(b"PAR1") else count_unreadable(content[:WHOLE])
    head = source if whole else Source(name, source.head(), source.encoding)
    table = load_table(head, plan.delimiter, plan.header)
    if table is None:
        lines = content[:4000].decode(errors="replace").splitlines()[:ROWS]
        shown = RawTable(("line",), [[line[:200]] for line in lines], range(len(lines)))
        return FilePreview(
            number, name, len(content), plan, detected, ((0, "line", ""),), shown.rows, False, {}, unreadable
        )
    fixed = ROLE_COLUMNS.get(detected) if not plan.roles else None
    roles = plan.roles or (
        {} if fixed else guess_text_roles(table) if plan.use == "texts" else guess_roles(table)
    )
    has_roles = bool(plan.roles) or detected in ("csv", "jsonl", "parquet", "table", "wide", "")
    columns = tuple(
        (
            k,
            column,
            (fixed[k] if k < len(fixed) else "")
            if fixed
            else roles.get(column, "ignore" if has_roles else ""),
        )
        for k, column in enumerate(table.names[:COLUMNS])
    )
    rows = [[cell[:80] for cell in row[:COLUMNS]] for row in table.rows[:ROWS]]
    counts = count_peculiarities(table, roles) if has_roles and whole else {}
    return FilePreview(
        number, name, len(content), plan, detected, columns, rows, has_roles, counts, unreadable
    )


def digest_columns(name: str, content: bytes, plan: FilePlan) -> str:
    """What files share that have the same columns and are read alike; empty for files without columns."""
    head = Source(name, content, str(plan.options.get("encoding") or "utf-8"))
    if not content.startswith(b"PAR1"):
        head = Source(name, head.head(), head.encoding)
    table = load_table(head, plan.delimiter, plan.header)
    if table is None:
        return ""
    # columns without names have the same ones everywhere; the present reading tells such files apart
    reading = (plan.use, sorted(plan.roles.items()))
    return digest_bytes(repr((table.names, reading)).encode())


def count_peculiarities(table: RawTable, roles: Mapping[str, str]) -> dict[str, int]:
    """How many rows repeat another one, lack a value, or compare an item with itself."""
    if len(table.rows) * len(table.names) > CHECKED:
        return {}
    by_role = {
        ROLES[role]: table.names.index(name)
        for name, role in roles.items()
        if name in table.names and ROLES[role]
    }
    needed = [k for role, k in by_role.items() if role in (*LIST_ROLES, *VOTE_ROLES, "grade")]
    counts = {"missing": sum(any(not row[k].strip() for k in needed) for row in table.rows)}
    if "item" in by_role and list(roles.values()).count("item") == 1:
        keys = [by_role[role] for role in ("query", "expert", "item") if role in by_role]
        seen = Counter(tuple(row[k] for k in keys) for row in table.rows)
        counts["duplicates"] = len(table.rows) - len(seen)
    pair = next((p for p in (("winner", "loser"), ("item_a", "item_b")) if set(p) <= by_role.keys()), None)
    if pair is not None:
        a, b = (by_role[role] for role in pair)
        counts["self_votes"] = sum(row[a] == row[b] for row in table.rows)
    return counts


def read_form_plan(plan: FilePlan, fields: Mapping[str, str], names: Sequence[str]) -> FilePlan:
    """A plan after the form of its file was sent."""
    roles = {name: fields.get(f"role{k}", plan.roles.get(name, "ignore")) for k, name in enumerate(names)}
    roles = {name: role for name, role in roles.items() if role in ROLES and role != "ignore"}
    given: dict[str, Any] = dict(plan.options)
    for name in ("duplicates", "self_votes", "unlisted", "encoding", "missing", "values", "kind"):
        if name not in fields:
            continue
        value = fields[name].strip()
        given.pop(name, None)
        if value and name == "missing":
            given[name] = [cell.strip() for cell in value.split(",")]
        elif value:
            given[name] = value
    header = {"yes": True, "no": False}.get(fields.get("header", ""))
    return FilePlan.from_dict(
        {
            "use": fields.get("use", plan.use),
            "format": "" if roles and "role0" in fields else fields.get("format", plan.format),
            "roles": roles if "role0" in fields else plan.roles,
            "header": header,
            "delimiter": fields.get("delimiter", plan.delimiter),
            "options": given,
        }
    )
