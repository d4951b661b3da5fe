"""Votes collected in the studio: questions, answers, judges' invitations and excluded annotators, in SQLite.

The table of votes only grows: a vote is one row, an undone vote one more row elsewhere. Every row is on the disk
before its sender gets an answer. A shown question has a key, and a key has at most one vote, so that a vote that
is sent again, after a lost answer or a restart of the server, is stored once.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import math
import os
import secrets
import sqlite3
import time
from collections.abc import Sequence

from podium.core.errors import ParameterError
from podium.data.ids import Id
from podium.studio.database import Database, RecordNotFound
from podium.studio.vote_records import (
    ANSWERS,
    GRADES,
    AskedQuestion,
    CollectedVote,
    CollectionItem,
    CollectionKind,
    InviteRole,
    JudgeInvite,
    VoteCollection,
    build_invite,
    build_question,
    build_vote,
    check_judge_name,
    parse_optional_id,
)

TABLES = """
CREATE TABLE IF NOT EXISTS collections (
  project TEXT PRIMARY KEY REFERENCES projects(id) ON DELETE CASCADE, kind TEXT NOT NULL, question TEXT NOT NULL,
  query TEXT NOT NULL, gold_every INTEGER NOT NULL, closed INTEGER NOT NULL DEFAULT 0, made REAL NOT NULL);
CREATE TABLE IF NOT EXISTS item_texts (
  project TEXT NOT NULL REFERENCES projects(id) ON DELETE CASCADE, place INTEGER NOT NULL, item TEXT NOT NULL,
  title TEXT NOT NULL, body TEXT NOT NULL, url TEXT NOT NULL, PRIMARY KEY (project, item));
CREATE TABLE IF NOT EXISTS gold_pairs (
  project TEXT NOT NULL REFERENCES projects(id) ON DELETE CASCADE, first TEXT NOT NULL, second TEXT NOT NULL,
  answer TEXT NOT NULL, PRIMARY KEY (project, first, second));
CREATE TABLE IF NOT EXISTS asked (
  key TEXT PRIMARY KEY, project TEXT NOT NULL REFERENCES projects(id) ON DELETE CASCADE, judge TEXT NOT NULL,
  first TEXT NOT NULL, second TEXT, gold TEXT, made REAL NOT NULL);
CREATE INDEX IF NOT EXISTS asked_by_judge ON asked (project, judge, made);
CREATE TABLE IF NOT EXISTS votes (
  number INTEGER PRIMARY KEY AUTOINCREMENT, project TEXT NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  key TEXT NOT NULL UNIQUE, judge TEXT NOT NULL, first TEXT NOT NULL, second TEXT, answer TEXT NOT NULL,
  gold TEXT, seconds REAL, made REAL NOT NULL);
CREATE INDEX IF NOT EXISTS votes_by_project ON votes (project, number);
CREATE TABLE IF NOT EXISTS undone_votes (
  number INTEGER PRIMARY KEY REFERENCES votes(number) ON DELETE CASCADE, made REAL NOT NULL);
CREATE TABLE IF NOT EXISTS invites (
  id TEXT PRIMARY KEY, project TEXT NOT NULL REFERENCES projects(id) ON DELETE CASCADE, judge TEXT NOT NULL,
  role TEXT NOT NULL, revoked INTEGER NOT NULL DEFAULT 0, made REAL NOT NULL);
CREATE TABLE IF NOT EXISTS excluded_annotators (
  project TEXT NOT NULL REFERENCES projects(id) ON DELETE CASCADE, annotator TEXT NOT NULL, made REAL NOT NULL,
  PRIMARY KEY (project, annotator));
CREATE TABLE IF NOT EXISTS invite_key (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), value BLOB NOT NULL)
"""


class VoteStore(Database):
    """The collected votes of all projects of a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(folder)
        with self._write_transaction() as db:
            for statement in TABLES.split(";"):
                db.execute(statement)
            db.execute("INSERT OR IGNORE INTO invite_key VALUES (1, ?)", (secrets.token_bytes(32),))
            [[self._key]] = db.execute("SELECT value FROM invite_key")

    def _open_database(self) -> sqlite3.Connection:
        db = super()._open_database()
        db.execute("PRAGMA synchronous = FULL")  # a committed vote survives a crash of the machine too
        return db

    # -- collections ---------------------------------------------------------------------------------------------

    def start_collection(
        self,
        project: str,
        items: Sequence[CollectionItem],
        *,
        kind: CollectionKind = "pairs",
        question: str = "",
        query: Id = "collected",
        gold_every: int = 0,
    ) -> None:
        """Define what the judges of a project compare; refused if the project already has a collection."""
        if len({item.item for item in items}) != len(items):
            raise ParameterError("an item occurs twice; give each item once")
        if len(items) < 2:
            raise ParameterError(f"there is {len(items)} item; voting needs at least two")
        if kind not in ("pairs", "ratings"):
            raise ParameterError(f"the kind is {kind!r}; accepted: pairs, ratings")
        if not 0 <= gold_every <= 1000:
            raise ParameterError(f"gold_every is {gold_every}; accepted: 0 (no gold questions) to 1000")
        words = question.strip() or ("Which one is better?" if kind == "pairs" else "How good is it?")
        row = (project, kind, words, json.dumps(query), gold_every, 0, time.time())
        texts = [(project, n, json.dumps(i.item), i.title, i.body, i.url) for n, i in enumerate(items)]
        with self._write_transaction() as db:
            self._fetch_by_id("projects", project, db)
            if db.execute("SELECT 1 FROM collections WHERE project = ?", (project,)).fetchone():
                raise ParameterError(
                    "this project already collects votes; open another project for new items"
                )
            db.execute("INSERT INTO collections VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            db.executemany("INSERT OR REPLACE INTO item_texts VALUES (?, ?, ?, ?, ?, ?)", texts)

    def find_collection(self, project: str) -> VoteCollection | None:
        """The collection of a project; None if there is none."""
        rows = self._fetch("SELECT * FROM collections WHERE project = ?", project)
        if not rows:
            return None
        changed = {"query": json.loads(rows[0]["query"]), "closed": bool(rows[0]["closed"])}
        return VoteCollection(**(dict(rows[0]) | changed))

    def collection(self, project: str) -> VoteCollection:
        """The collection of a project, or `RecordNotFound`."""
        known = self.find_collection(project)
        if known is None:
            self._fetch_by_id("projects", project)
            raise RecordNotFound("this project does not collect votes; start on its Collect page")
        return known

    def update_collection(
        self, project: str, *, closed: bool | None = None, gold_every: int | None = None
    ) -> None:
        """Close or reopen a collection, or change how many questions have a known answer."""
        self.collection(project)
        changes = {"closed": None if closed is None else int(closed), "gold_every": gold_every}
        with self._write_transaction() as db:
            for name, value in changes.items():
                if value is not None:
                    db.execute(f"UPDATE collections SET {name} = ? WHERE project = ?", (value, project))

    def item_texts(self, project: str) -> dict[Id, CollectionItem]:
        """The texts of a project's items, in input order."""
        query = "SELECT item, title, body, url FROM item_texts WHERE project = ? ORDER BY place"
        rows = [(json.loads(row[0]), *tuple(row)[1:]) for row in self._fetch(query, project)]
        return {row[0]: CollectionItem(*row) for row in rows}

    # -- gold questions ------------------------------------------------------------------------------------------

    def add_gold_pair(self, project: str, first: Id, second: Id, answer: str) -> None:
        """Add a pair whose answer is known."""
        if answer not in ("first", "second", "tie"):
            raise ParameterError(f"the gold answer is {answer[:50]!r}; accepted: first, second, tie")
        self._check_items(project, first, second)
        if first == second:
            raise ParameterError("a gold pair has the same item twice; choose two items")
        if self.collection(project).kind != "pairs":
            raise ParameterError("gold questions are pairs, and this collection asks for ratings")
        row = (project, json.dumps(first), json.dumps(second), answer)
        with self._write_transaction() as db:
            db.execute("INSERT OR REPLACE INTO gold_pairs VALUES (?, ?, ?, ?)", row)

    def remove_gold_pair(self, project: str, first: Id, second: Id) -> None:
        """Remove a pair from the gold questions; votes on it stay marked as gold."""
        gone = "DELETE FROM gold_pairs WHERE project = ? AND first = ? AND second = ?"
        with self._write_transaction() as db:
            db.execute(gone, (project, json.dumps(first), json.dumps(second)))

    def gold_pairs(self, project: str) -> list[tuple[Id, Id, str]]:
        """The gold questions: two items and the answer."""
        rows = self._fetch("SELECT first, second, answer FROM gold_pairs WHERE project = ?", project)
        return [(json.loads(row[0]), json.loads(row[1]), row[2]) for row in rows]

    def _check_items(self, project: str, *items: Id | None) -> None:
        known = self.item_texts(project)
        for item in items:
            if item is not None and item not in known:
                raise ParameterError(f"there is no item {item!r} in this collection; choose one of its items")

    # -- questions and votes -------------------------------------------------------------------------------------

    def find_open_question(self, project: str, judge: str) -> AskedQuestion | None:
        """The question that a judge was shown last, if it has no vote yet."""
        newest = "SELECT * FROM asked WHERE project = ? AND judge = ? ORDER BY made DESC, rowid DESC LIMIT 1"
        rows = self._fetch(newest, project, judge)
        if not rows or self._fetch("SELECT 1 FROM votes WHERE key = ?", rows[0]["key"]):
            return None
        return build_question(rows[0])

    def list_open_pairs(self, project: str, *, since: float) -> list[tuple[Id, Id | None]]:
        """What other judges are looking at: questions without a vote, shown after `since`."""
        query = (
            "SELECT first, second FROM asked WHERE project = ? AND made > ? "
            "AND key NOT IN (SELECT key FROM votes WHERE project = asked.project)"
        )
        return [(json.loads(r[0]), parse_optional_id(r[1])) for r in self._fetch(query, project, since)]

    def add_question(
        self, project: str, judge: str, first: Id, second: Id | None, gold: str | None = None
    ) -> AskedQuestion:
        """Record that a judge is shown a question, and give it its key."""
        encoded = None if second is None else json.dumps(second)
        row = (secrets.token_urlsafe(12), project, judge, json.dumps(first), encoded, gold, time.time())
        with self._write_transaction() as db:
            db.execute("INSERT INTO asked VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return AskedQuestion(row[0], project, judge, first, second, gold, row[-1])

    def answer_question(
        self, key: str, answer: str, *, judge: str, project: str, seconds: float | None = None
    ) -> bool:
        """Store the answer to a shown question; False if this question already has one, which then stays."""
        rows = self._fetch("SELECT * FROM asked WHERE key = ?", key)
        if not rows or (rows[0]["judge"], rows[0]["project"]) != (judge, project):
            raise RecordNotFound("no such question; reload the page")
        asked = build_question(rows[0])
        return self._insert_vote(project, key, judge, asked.first, asked.second, answer, asked.gold, seconds)

    def add_vote(
        self,
        project: str,
        judge: str,
        first: Id,
        second: Id | None,
        answer: str,
        *,
        key: str | None = None,
        seconds: float | None = None,
    ) -> bool:
        """Store a vote that was not asked for here; False if its key already has one."""
        self._check_items(project, first, second)
        if first == second:
            raise ParameterError(f"a vote compares {first!r} with itself; give two items")
        return self._insert_vote(
            project, key or secrets.token_urlsafe(12), judge, first, second, answer, None, seconds
        )

    def _insert_vote(
        self,
        project: str,
        key: str,
        judge: str,
        first: Id,
        second: Id | None,
        answer: str,
        gold: str | None,
        seconds: float | None,
    ) -> bool:
        collection = self.collection(project)
        accepted = ANSWERS if collection.kind == "pairs" else GRADES
        if answer not in accepted:
            raise ParameterError(f"the answer is {answer[:50]!r}; accepted: {', '.join(accepted)}")
        if (second is None) != (collection.kind == "ratings"):
            wanted = "two items" if collection.kind == "pairs" else "one item"
            raise ParameterError(f"this collection asks for {collection.kind}; give {wanted} per vote")
        if seconds is not None and not 0 <= seconds < math.inf:
            raise ParameterError(f"seconds is {seconds}; accepted: numbers from 0")
        encoded = None if second is None else json.dumps(second)
        row = (project, key, check_judge_name(judge), json.dumps(first), encoded, answer, gold, seconds)
        columns = "project, key, judge, first, second, answer, gold, seconds, made"
        with self._write_transaction() as db:
            known = db.execute("SELECT project, judge FROM votes WHERE key = ?", (key,)).fetchone()
            if known is not None:
                if (known["project"], known["judge"]) != (project, judge):
                    raise ParameterError("this key belongs to another vote; use a new one for each vote")
                return False
            db.execute(
                f"INSERT INTO votes ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, time.time())
            )
        return True

    def undo_last_vote(self, project: str, judge: str) -> CollectedVote | None:
        """Undo the newest vote of a judge that was not undone; None if there is none."""
        newest = (
            "SELECT * FROM votes WHERE project = ? AND judge = ? AND number NOT IN (SELECT number FROM undone_votes) "
            "ORDER BY number DESC LIMIT 1"
        )
        with self._write_transaction() as db:
            row = db.execute(newest, (project, judge)).fetchone()
            if row is None:
                return None
            db.execute("INSERT INTO undone_votes VALUES (?, ?)", (row["number"], time.time()))
        return build_vote(row)

    def votes(
        self, project: str, *, after: int = 0, most: int = -1, judge: str | None = None
    ) -> list[CollectedVote]:
        """The votes that were not undone, oldest first; those after a number, at most `most`."""
        query = (
            "SELECT * FROM votes WHERE project = ? AND number > ? AND (? IS NULL OR judge = ?) "
            "AND number NOT IN (SELECT number FROM undone_votes) ORDER BY number LIMIT ?"
        )
        return [build_vote(row) for row in self._fetch(query, project, after, judge, judge, most)]

    def compute_stamp(self, project: str) -> tuple[float, ...]:
        """A key that changes with the votes and exclusions of a project; all zeros if it has none."""
        query = (
            "SELECT (SELECT coalesce(max(number), 0) FROM votes WHERE project = :p), "
            "(SELECT count(*) FROM undone_votes u JOIN votes v ON u.number = v.number WHERE v.project = :p), "
            "(SELECT total(made) FROM excluded_annotators WHERE project = :p)"
        )
        with contextlib.closing(self._open_database()) as db:
            return tuple(db.execute(query, {"p": project}).fetchone())

    # -- invitations ---------------------------------------------------------------------------------------------

    def add_invite(self, project: str, judge: str = "", role: InviteRole = "judge") -> JudgeInvite:
        """Invite a judge (again); an invitation without a name may be opened by several judges."""
        if role not in ("judge", "viewer"):
            raise ParameterError(f"the role is {role!r}; accepted: judge, viewer")
        self.collection(project)
        name = check_judge_name(judge) if judge.strip() else ""
        same = "SELECT * FROM invites WHERE project = ? AND judge = ? AND role = ? AND NOT revoked"
        with self._write_transaction() as db:
            row = db.execute(same, (project, name, role)).fetchone()
            if row is None:
                made = JudgeInvite(secrets.token_hex(8), project, name, role, False, time.time())
                db.execute("INSERT INTO invites VALUES (?, ?, ?, ?, ?, ?)", tuple(vars(made).values()))
                return made
        return build_invite(row)

    def invites(self, project: str) -> list[JudgeInvite]:
        """The invitations of a project, oldest first."""
        rows = self._fetch("SELECT * FROM invites WHERE project = ? ORDER BY made, id", project)
        return [build_invite(row) for row in rows]

    def revoke_invite(self, project: str, invite: str) -> None:
        """Make a link useless; the votes given through it stay."""
        with self._write_transaction() as db:
            db.execute("UPDATE invites SET revoked = 1 WHERE project = ? AND id = ?", (project, invite))

    def sign_invite(self, invite: JudgeInvite) -> str:
        """The part of the link that only this folder's servers can make."""
        return f"{invite.id}.{hmac.digest(self._key, invite.id.encode(), 'sha256').hex()[:40]}"

    def resolve_invite(self, signed: str) -> JudgeInvite:
        """The invitation of a link, or `RecordNotFound` for a wrong or revoked one."""
        rows = self._fetch("SELECT * FROM invites WHERE id = ?", signed.partition(".")[0][:100])
        invite = build_invite(rows[0]) if rows else None
        if invite is None or invite.revoked or not hmac.compare_digest(
            self.sign_invite(invite).encode(), signed.encode(errors="replace")
        ):  # fmt: skip
            raise RecordNotFound("this invitation is not valid; ask for a new link")
        return invite

    # -- excluded annotators -------------------------------------------------------------------------------------

    def excluded_annotators(self, project: str) -> list[Id]:
        """The annotators whose judgements are left out."""
        rows = self._fetch(
            "SELECT annotator FROM excluded_annotators WHERE project = ? ORDER BY made", project
        )
        return [json.loads(row[0]) for row in rows]

    def exclude_annotators(self, project: str, annotators: Sequence[Id]) -> None:
        """Leave out the judgements of annotators in all views."""
        rows = [(project, json.dumps(who), time.time()) for who in annotators]
        with self._write_transaction() as db:
            self._fetch_by_id("projects", project, db)
            db.executemany("INSERT OR IGNORE INTO excluded_annotators VALUES (?, ?, ?)", rows)

    def restore_annotators(self, project: str, annotators: Sequence[Id]) -> None:
        """Count the judgements of excluded annotators again."""
        gone = "DELETE FROM excluded_annotators WHERE project = ? AND annotator = ?"
        with self._write_transaction() as db:
            db.executemany(gone, [(project, json.dumps(who)) for who in annotators])
