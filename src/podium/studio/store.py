"""Projects, files, models and jobs in one folder: SQLite for facts, content-addressed files for bytes.

Several processes may use a folder at once: every change is one transaction, files are renamed into place while the
write lock is held, and a file whose name is its digest is never written twice. Ids and names given by a user are
values in the database, never paths.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from podium.core.errors import InputError, ParameterError
from podium.storage.temporary_files import TemporaryFile
from podium.studio.store_records import (
    Job,
    JobState,
    Project,
    ProjectFile,
    ProjectKind,
    RecordNotFound,
    StoredModel,
)

__all__ = ["DEMO", "Job", "Project", "ProjectFile", "RecordNotFound", "Store", "StoredModel"]

DEMO = "demo"  # the project that is always there
VERSION = 1  # of the tables
WAIT = 15.0  # seconds for which a writer waits for another
TABLES = """
CREATE TABLE projects (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, options TEXT NOT NULL, made REAL NOT NULL);
CREATE TABLE files (
  project TEXT NOT NULL REFERENCES projects(id) ON DELETE CASCADE, place INTEGER NOT NULL, name TEXT NOT NULL,
  digest TEXT, path TEXT, PRIMARY KEY (project, place));
CREATE TABLE jobs (
  id TEXT PRIMARY KEY, project TEXT NOT NULL REFERENCES projects(id) ON DELETE CASCADE, kind TEXT NOT NULL,
  settings TEXT NOT NULL, state TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL DEFAULT 0,
  words TEXT NOT NULL DEFAULT '', result TEXT, owner TEXT, beat REAL, tries INTEGER NOT NULL DEFAULT 0,
  stop INTEGER NOT NULL DEFAULT 0, made REAL NOT NULL, ended REAL);
CREATE INDEX jobs_by_state ON jobs (state, made);
CREATE TABLE models (
  id TEXT PRIMARY KEY, project TEXT NOT NULL REFERENCES projects(id) ON DELETE CASCADE, name TEXT NOT NULL,
  method TEXT NOT NULL, digest TEXT NOT NULL, job TEXT, made REAL NOT NULL);
"""


class Store:
    """Everything the studio remembers, in a folder that is made if it is not there."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # uploads are nobody else's business
            (self.folder / "blobs").mkdir(exist_ok=True, mode=0o700)
            self._anchor = self._open_database()  # keeps the write-ahead log in place between sessions
            self._prepare_tables()
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"this cannot be a folder of the studio: {reason}",
                source=str(folder),
                remedy="give another folder",
            ) from None

    def close(self) -> None:
        """Let go of the database."""
        self._anchor.close()

    def _open_database(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self.folder / "studio.sqlite", timeout=WAIT, isolation_level=None, check_same_thread=False
        )
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA foreign_keys = ON")
        return db

    def _prepare_tables(self) -> None:
        for _ in range(100):  # another process may be doing the same; there is no waiting for this lock
            with contextlib.suppress(sqlite3.OperationalError):
                self._anchor.execute("PRAGMA journal_mode = WAL")
                break
            time.sleep(0.05)
        with self._write_transaction() as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > VERSION:
                raise InputError(
                    f"the studio folder has version {version}, this Podium reads {VERSION}",
                    source=str(self.folder),
                    remedy="upgrade Podium, or give another folder",
                )
            if version == 0:
                for statement in TABLES.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {VERSION}")
            add = "INSERT OR IGNORE INTO projects VALUES (?, 'The embedded data', 'demo', '{}', ?)"
            db.execute(add, (DEMO, time.time()))

    @contextlib.contextmanager
    def _read_transaction(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(self._open_database()) as db:
            yield db

    @contextlib.contextmanager
    def _write_transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction that holds the write lock from its beginning; undone when anything is raised."""
        with contextlib.closing(self._open_database()) as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    # -- bytes -------------------------------------------------------------------------------------------------

    def _locate_blob(self, digest: str) -> Path:
        return self.folder / "blobs" / digest[:2] / digest

    def blob_path(self, digest: str) -> Path:
        """Where the bytes of a digest are."""
        path = self._locate_blob(digest)
        if not path.is_file():
            raise RecordNotFound("the file of this project is gone from the studio folder; upload it again")
        return path

    @contextlib.contextmanager
    def _stage_files(self, contents: Sequence[bytes]) -> Iterator[list[tuple[str, TemporaryFile]]]:
        """Bytes on the disk under names of their own, with the digests they are to be called by."""
        staged: list[tuple[str, TemporaryFile]] = []
        try:
            for content in contents:
                digest = hashlib.blake2b(content, digest_size=20).hexdigest()
                staged.append((digest, TemporaryFile(self.folder / "blobs" / digest)))
                with staged[-1][1].open() as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            yield staged
        finally:
            for _, beside in staged:
                beside.discard()

    def _publish_staged(self, staged: Sequence[tuple[str, TemporaryFile]]) -> list[str]:
        """Give staged files their names; to be called while the write lock is held."""
        for digest, beside in staged:
            target = self._locate_blob(digest)
            target.parent.mkdir(exist_ok=True, mode=0o700)
            beside.publish(target)
        return [digest for digest, _ in staged]

    def _remove_unused_blobs(self, db: sqlite3.Connection, digests: Sequence[str | None]) -> None:
        """Remove bytes that nothing refers to any more; to be called while the write lock is held."""
        asked = "SELECT 1 FROM files WHERE digest = :d UNION SELECT 1 FROM models WHERE digest = :d"
        for digest in {d for d in digests if d is not None}:
            if db.execute(asked, {"d": digest}).fetchone() is None:
                self._locate_blob(digest).unlink(missing_ok=True)

    # -- projects ----------------------------------------------------------------------------------------------

    def add_upload(
        self, name: str, files: Sequence[tuple[str, bytes]], options: dict[str, Any] | None = None
    ) -> str:
        """A project of uploaded files; the same bytes are kept once."""
        with self._stage_files([content for _, content in files]) as staged, self._write_transaction() as db:
            digests = self._publish_staged(staged)
            named = [ProjectFile(n, digest=d) for (n, _), d in zip(files, digests, strict=True)]
            return self._insert_project(db, name, "upload", named, options or {})

    def add_paths(self, name: str, paths: Sequence[Path], options: dict[str, Any] | None = None) -> str:
        """A project of files that stay where they are."""
        with self._write_transaction() as db:
            named = [ProjectFile(p.name, path=str(p)) for p in paths]
            return self._insert_project(db, name, "files", named, options or {})

    def add_labels(self, project: str, files: Sequence[tuple[str, bytes]], known: Sequence[str]) -> None:
        """Further files of a project, which hold its labels; they were checked beside those `known` then."""
        with self._stage_files([content for _, content in files]) as staged, self._write_transaction() as db:
            self._check_project(db, project)
            digests = self._publish_staged(staged)
            options = json.loads(
                db.execute("SELECT options FROM projects WHERE id = ?", (project,)).fetchone()[0]
            )
            there = options.setdefault("labels", [])
            if not set(there).isdisjoint(digests):
                raise ParameterError("these labels are in the project already")
            if there != list(known):
                raise ParameterError("other labels were added meanwhile; look at the project, and try again")
            there += digests
            db.execute("UPDATE projects SET options = ? WHERE id = ?", (json.dumps(options), project))
            [[place]] = db.execute("SELECT coalesce(max(place), -1) FROM files WHERE project = ?", (project,))
            named = enumerate(zip(files, digests, strict=True), place + 1)
            rows = [(project, n, name, digest, None) for n, ((name, _), digest) in named]
            db.executemany("INSERT INTO files VALUES (?, ?, ?, ?, ?)", rows)

    def remove_labels(self, project: str) -> None:
        """Take back all labels that were added; those among the first files stay."""
        with self._write_transaction() as db:
            self._check_project(db, project)
            [[text]] = db.execute("SELECT options FROM projects WHERE id = ?", (project,))
            options = json.loads(text)
            digests = options.pop("labels", [])
            if not digests:
                raise ParameterError("no labels were added to this project; there is nothing to remove")
            db.execute("UPDATE projects SET options = ? WHERE id = ?", (json.dumps(options), project))
            gone = "DELETE FROM files WHERE project = ? AND digest = ?"
            db.executemany(gone, [(project, digest) for digest in digests])
            self._remove_unused_blobs(db, digests)

    def _insert_project(
        self,
        db: sqlite3.Connection,
        name: str,
        kind: ProjectKind,
        files: Sequence[ProjectFile],
        options: dict[str, Any],
    ) -> str:
        project = secrets.token_hex(6)
        row = (project, name, kind, json.dumps(options), time.time())
        db.execute("INSERT INTO projects VALUES (?, ?, ?, ?, ?)", row)
        rows = [(project, place, f.name, f.digest, f.path) for place, f in enumerate(files)]
        db.executemany("INSERT INTO files VALUES (?, ?, ?, ?, ?)", rows)
        return project

    def project(self, project: str) -> Project:
        """One project with its files."""
        with self._read_transaction() as db:
            row = db.execute("SELECT * FROM projects WHERE id = ?", (project,)).fetchone()
            asked = "SELECT name, digest, path FROM files WHERE project = ? ORDER BY place"
            files = tuple(ProjectFile(*f) for f in db.execute(asked, (project,)))
        if row is None:
            raise RecordNotFound("there is no such project; it may have been removed")
        return _build_project(row, files)

    def _check_project(self, db: sqlite3.Connection, project: str) -> None:
        if db.execute("SELECT 1 FROM projects WHERE id = ?", (project,)).fetchone() is None:
            raise RecordNotFound("there is no such project; it may have been removed")

    def projects(self) -> list[Project]:
        """All projects, the newest first, without their files."""
        with self._read_transaction() as db:
            return [_build_project(r) for r in db.execute("SELECT * FROM projects ORDER BY made DESC, id")]

    def remove_project(self, project: str) -> None:
        """Forget a project, its jobs and models; uploaded bytes go when no other project has the same."""
        if project == DEMO:
            raise ParameterError("the embedded data stay; there is nothing to remove")
        with self._write_transaction() as db:
            asked = "SELECT digest FROM files WHERE project = :p UNION SELECT digest FROM models WHERE project = :p"
            digests = [r[0] for r in db.execute(asked, {"p": project})]
            jobs = [r[0] for r in db.execute("SELECT id FROM jobs WHERE project = ?", (project,))]
            if not db.execute("DELETE FROM projects WHERE id = ?", (project,)).rowcount:
                raise RecordNotFound("there is no such project; it may have been removed")
            self._remove_unused_blobs(db, digests)
        for job in jobs:
            shutil.rmtree(self.job_folder(job), ignore_errors=True)

    # -- models ------------------------------------------------------------------------------------------------

    def add_model(self, project: str, name: str, method: str, content: bytes, job: str | None = None) -> str:
        """Keep a model file; with the job that made it, once only."""
        model = secrets.token_hex(6)
        with self._stage_files([content]) as staged, self._write_transaction() as db:
            known = db.execute("SELECT id FROM models WHERE job = ?", (job,)).fetchone()
            if known is not None:
                return str(known["id"])
            self._check_project(db, project)
            [digest] = self._publish_staged(staged)
            row = (model, project, name, method, digest, job, time.time())
            db.execute("INSERT INTO models VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return model

    def model(self, model: str) -> StoredModel:
        """One model."""
        with self._read_transaction() as db:
            row = db.execute("SELECT * FROM models WHERE id = ?", (model,)).fetchone()
        if row is None:
            raise RecordNotFound("there is no such model; it may have been removed with its project")
        return StoredModel(*row)

    def models(self, project: str | None = None) -> list[StoredModel]:
        """Models (of a project), the newest first."""
        with self._read_transaction() as db:
            asked = "SELECT * FROM models WHERE :p IS NULL OR project = :p ORDER BY made DESC, id"
            return [StoredModel(*row) for row in db.execute(asked, {"p": project})]

    def model_bytes(self, model: str) -> bytes:
        """The model file."""
        return self.blob_path(self.model(model).digest).read_bytes()

    # -- jobs --------------------------------------------------------------------------------------------------

    def add_job(self, project: str, kind: str, settings: dict[str, Any]) -> str:
        """Ask for long work."""
        job = secrets.token_hex(6)
        row = (job, project, kind, json.dumps(settings), time.time())
        with self._write_transaction() as db:
            self._check_project(db, project)
            db.execute(
                "INSERT INTO jobs (id, project, kind, settings, state, made) VALUES (?, ?, ?, ?, 'queued', ?)",
                row,
            )
        return job

    def job_folder(self, job: str) -> Path:
        """Where a job keeps what it knows already; a job's id is made here, never given."""
        return self.folder / "jobs" / job

    def job(self, job: str) -> Job:
        """One job."""
        with self._read_transaction() as db:
            row = db.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchone()
        if row is None:
            raise RecordNotFound("there is no such job; it may have been removed with its project")
        return _build_job(row)

    def jobs(self, project: str | None = None) -> list[Job]:
        """Jobs (of a project), the newest first."""
        with self._read_transaction() as db:
            asked = "SELECT * FROM jobs WHERE :p IS NULL OR project = :p ORDER BY made DESC, id"
            return [_build_job(row) for row in db.execute(asked, {"p": project})]

    def has_waiting_job(self, stale: float) -> bool:
        """Whether there is a job to claim or one whose owner is gone."""
        asked = "SELECT 1 FROM jobs WHERE state = 'queued' OR (state = 'running' AND beat < ?) LIMIT 1"
        with self._read_transaction() as db:
            return db.execute(asked, (time.time() - stale,)).fetchone() is not None

    def claim(self, owner: str, stale: float, resumable: Sequence[str], tries: int) -> Job | None:
        """The oldest job that waits, now the owner's; jobs of owners that fell silent wait again or are given up."""
        now = time.time()
        with self._write_transaction() as db:
            silent = db.execute("SELECT * FROM jobs WHERE state = 'running' AND beat < ?", (now - stale,))
            for row in silent.fetchall():
                self._requeue_orphan(db, _build_job(row), now, resumable, tries)
            row = db.execute("SELECT * FROM jobs WHERE state = 'queued' ORDER BY made, id LIMIT 1").fetchone()
            if row is None:
                return None
            mine = "UPDATE jobs SET state = 'running', owner = ?, beat = ?, tries = tries + 1 WHERE id = ?"
            db.execute(mine, (owner, now, row["id"]))
            return _build_job(db.execute("SELECT * FROM jobs WHERE id = ?", (row["id"],)).fetchone())

    def _requeue_orphan(
        self, db: sqlite3.Connection, job: Job, now: float, resumable: Sequence[str], tries: int
    ) -> None:
        if job.kind in resumable and job.tries < tries:
            db.execute("UPDATE jobs SET state = 'queued', owner = NULL WHERE id = ?", (job.id,))
            return
        why = (
            f"it was broken off {job.tries} times; look at the memory of the machine, then start it again"
            if job.kind in resumable
            else "the process that ran it is gone, and this kind of work cannot go on in the middle; start it again"
        )
        end = "UPDATE jobs SET state = 'interrupted', words = ?, ended = ?, owner = NULL WHERE id = ?"
        db.execute(end, (why, now, job.id))

    def beat(self, job: str, owner: str, done: int, total: int, words: str) -> bool:
        """A sign of life with progress; False when the job is no longer the owner's, or is to be stopped."""
        with self._write_transaction() as db:
            told = "UPDATE jobs SET beat = ?, done = ?, total = ?, words = ? WHERE id = ? AND owner = ? AND stop = 0"
            row = (time.time(), done, total, words, job, owner)
            return db.execute(told + " AND state = 'running'", row).rowcount == 1

    def finish(self, job: str, owner: str, state: JobState, words: str, result: Any = None) -> bool:
        """End a job, if it is still the owner's."""
        with self._write_transaction() as db:
            end = "UPDATE jobs SET state = ?, words = ?, result = ?, ended = ?, owner = NULL WHERE id = ? AND owner = ?"
            row = (state, words, json.dumps(result), time.time(), job, owner)
            return db.execute(end + " AND state = 'running'", row).rowcount == 1

    def release(self, owner: str, words: str) -> None:
        """Put the job of an owner back, as that one has to go; it was not the job's fault."""
        with self._write_transaction() as db:
            back = "UPDATE jobs SET state = 'queued', owner = NULL, words = ?, tries = tries - 1"
            db.execute(back + " WHERE owner = ? AND state = 'running'", (words, owner))

    def cancel(self, job: str) -> None:
        """Stop a job: at once if it waits, else as soon as its worker looks."""
        with self._write_transaction() as db:
            end = "UPDATE jobs SET state = 'cancelled', words = 'stopped before it began', ended = ? WHERE id = ?"
            if not db.execute(end + " AND state = 'queued'", (time.time(), job)).rowcount:
                db.execute("UPDATE jobs SET stop = 1 WHERE id = ? AND state = 'running'", (job,))


def _build_project(row: sqlite3.Row, files: tuple[ProjectFile, ...] = ()) -> Project:
    return Project(row["id"], row["name"], row["kind"], json.loads(row["options"]), row["made"], files)


def _build_job(row: sqlite3.Row) -> Job:
    values = dict(row)
    result = None if values["result"] is None else json.loads(values["result"])
    changed = {"settings": json.loads(values["settings"]), "result": result, "stop": bool(values["stop"])}
    return Job(**(values | changed))
