"""Projects, files, models and jobs in one folder: records in SQLite, bytes in content-addressed files.

Several processes may share a folder: every change is one transaction, files are renamed into place under the
write lock, and a file named by its digest is never written twice. Ids and names given by users are database
values, never paths.
"""

from __future__ import annotations

import contextlib
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
from podium.storage.digests import digest_bytes
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

DEMO = "demo"  # the built-in project
VERSION = 1  # of the tables
WAIT = 15.0  # seconds that a writer waits for the lock
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
    """The persistent state of the studio, in a folder that is created if needed."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # uploads are private
            (self.folder / "blobs").mkdir(exist_ok=True, mode=0o700)
            self._anchor = self._open_database()  # keeps the write-ahead log in place between sessions
            self._prepare_tables()
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"this folder cannot be used for the studio: {reason}",
                source=str(folder),
                remedy="give another folder",
            ) from None

    def close(self) -> None:
        """Close the database."""
        self._anchor.close()

    def _open_database(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self.folder / "studio.sqlite", timeout=WAIT, isolation_level=None, check_same_thread=False
        )
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA foreign_keys = ON")
        return db

    def _prepare_tables(self) -> None:
        for _ in range(100):  # retry: another process may do the same, and this lock has no timeout
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
        """A transaction that takes the write lock first; rolled back on any exception."""
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
        """The path of the bytes with a digest."""
        path = self._locate_blob(digest)
        if not path.is_file():
            raise RecordNotFound("the project's file is missing from the studio folder; upload it again")
        return path

    @contextlib.contextmanager
    def _stage_files(self, contents: Sequence[bytes]) -> Iterator[list[tuple[str, TemporaryFile]]]:
        """Write bytes under temporary names; yield them with their digests."""
        staged: list[tuple[str, TemporaryFile]] = []
        try:
            for content in contents:
                digest = digest_bytes(content)
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
        """Rename staged files to their digests; call with the write lock held."""
        for digest, beside in staged:
            target = self._locate_blob(digest)
            target.parent.mkdir(exist_ok=True, mode=0o700)
            beside.publish(target)
        return [digest for digest, _ in staged]

    def _remove_unused_blobs(self, db: sqlite3.Connection, digests: Sequence[str | None]) -> None:
        """Remove unreferenced bytes; call with the write lock held."""
        asked = "SELECT 1 FROM files WHERE digest = :d UNION SELECT 1 FROM models WHERE digest = :d"
        for digest in {d for d in digests if d is not None}:
            if db.execute(asked, {"d": digest}).fetchone() is None:
                self._locate_blob(digest).unlink(missing_ok=True)

    # -- projects ----------------------------------------------------------------------------------------------

    def add_upload(
        self, name: str, files: Sequence[tuple[str, bytes]], options: dict[str, Any] | None = None
    ) -> str:
        """Create a project of uploaded files; equal bytes are stored once."""
        with self._stage_files([content for _, content in files]) as staged, self._write_transaction() as db:
            digests = self._publish_staged(staged)
            named = [ProjectFile(n, digest=d) for (n, _), d in zip(files, digests, strict=True)]
            return self._insert_project(db, name, "upload", named, options or {})

    def add_paths(self, name: str, paths: Sequence[Path], options: dict[str, Any] | None = None) -> str:
        """Create a project of server files, which are not copied."""
        with self._write_transaction() as db:
            named = [ProjectFile(p.name, path=str(p)) for p in paths]
            return self._insert_project(db, name, "files", named, options or {})

    def add_labels(self, project: str, files: Sequence[tuple[str, bytes]], known: Sequence[str]) -> None:
        """Add label files to a project; they were checked against the labels `known` at that time."""
        with self._stage_files([content for _, content in files]) as staged, self._write_transaction() as db:
            self._check_project(db, project)
            digests = self._publish_staged(staged)
            options = json.loads(
                db.execute("SELECT options FROM projects WHERE id = ?", (project,)).fetchone()[0]
            )
            there = options.setdefault("labels", [])
            if not set(there).isdisjoint(digests):
                raise ParameterError("the project already has these labels")
            if there != list(known):
                raise ParameterError(
                    "other labels were added in the meantime; check the project and try again"
                )
            there += digests
            db.execute("UPDATE projects SET options = ? WHERE id = ?", (json.dumps(options), project))
            [[place]] = db.execute("SELECT coalesce(max(place), -1) FROM files WHERE project = ?", (project,))
            named = enumerate(zip(files, digests, strict=True), place + 1)
            rows = [(project, n, name, digest, None) for n, ((name, _), digest) in named]
            db.executemany("INSERT INTO files VALUES (?, ?, ?, ?, ?)", rows)

    def remove_labels(self, project: str) -> None:
        """Remove all added labels; those in the original files stay."""
        with self._write_transaction() as db:
            self._check_project(db, project)
            [[text]] = db.execute("SELECT options FROM projects WHERE id = ?", (project,))
            options = json.loads(text)
            digests = options.pop("labels", [])
            if not digests:
                raise ParameterError("no labels were added to this project; nothing to remove")
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
            raise RecordNotFound("no such project; it may have been removed")
        return _build_project(row, files)

    def _check_project(self, db: sqlite3.Connection, project: str) -> None:
        if db.execute("SELECT 1 FROM projects WHERE id = ?", (project,)).fetchone() is None:
            raise RecordNotFound("no such project; it may have been removed")

    def projects(self) -> list[Project]:
        """All projects, newest first, without their files."""
        with self._read_transaction() as db:
            return [_build_project(r) for r in db.execute("SELECT * FROM projects ORDER BY made DESC, id")]

    def remove_project(self, project: str) -> None:
        """Remove a project with its jobs and models, and uploaded bytes that no other project uses."""
        if project == DEMO:
            raise ParameterError("the embedded data cannot be removed")
        with self._write_transaction() as db:
            asked = "SELECT digest FROM files WHERE project = :p UNION SELECT digest FROM models WHERE project = :p"
            digests = [r[0] for r in db.execute(asked, {"p": project})]
            jobs = [r[0] for r in db.execute("SELECT id FROM jobs WHERE project = ?", (project,))]
            if not db.execute("DELETE FROM projects WHERE id = ?", (project,)).rowcount:
                raise RecordNotFound("no such project; it may have been removed")
            self._remove_unused_blobs(db, digests)
        for job in jobs:
            shutil.rmtree(self.job_folder(job), ignore_errors=True)

    # -- models ------------------------------------------------------------------------------------------------

    def add_model(self, project: str, name: str, method: str, content: bytes, job: str | None = None) -> str:
        """Store a model file; at most one per job."""
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
            raise RecordNotFound("no such model; it may have been removed with its project")
        return StoredModel(*row)

    def models(self, project: str | None = None) -> list[StoredModel]:
        """Models (of a project), newest first."""
        with self._read_transaction() as db:
            asked = "SELECT * FROM models WHERE :p IS NULL OR project = :p ORDER BY made DESC, id"
            return [StoredModel(*row) for row in db.execute(asked, {"p": project})]

    def model_bytes(self, model: str) -> bytes:
        """The model file."""
        return self.blob_path(self.model(model).digest).read_bytes()

    # -- jobs --------------------------------------------------------------------------------------------------

    def add_job(self, project: str, kind: str, settings: dict[str, Any]) -> str:
        """Queue a job."""
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
        """The folder for intermediate results of a job; job ids are generated here, never given."""
        return self.folder / "jobs" / job

    def job(self, job: str) -> Job:
        """One job."""
        with self._read_transaction() as db:
            row = db.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchone()
        if row is None:
            raise RecordNotFound("no such job; it may have been removed with its project")
        return _build_job(row)

    def jobs(self, project: str | None = None) -> list[Job]:
        """Jobs (of a project), newest first."""
        with self._read_transaction() as db:
            asked = "SELECT * FROM jobs WHERE :p IS NULL OR project = :p ORDER BY made DESC, id"
            return [_build_job(row) for row in db.execute(asked, {"p": project})]

    def has_waiting_job(self, stale: float) -> bool:
        """Whether a job is queued or has a dead owner."""
        asked = "SELECT 1 FROM jobs WHERE state = 'queued' OR (state = 'running' AND beat < ?) LIMIT 1"
        with self._read_transaction() as db:
            return db.execute(asked, (time.time() - stale,)).fetchone() is not None

    def claim(self, owner: str, stale: float, resumable: Sequence[str], tries: int) -> Job | None:
        """Claim the oldest queued job; first, jobs of dead owners are requeued or marked as interrupted."""
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
            f"interrupted {job.tries} times; check the machine's memory, then start the job again"
            if job.kind in resumable
            else "the worker process died, and this kind of job cannot resume; start it again"
        )
        end = "UPDATE jobs SET state = 'interrupted', words = ?, ended = ?, owner = NULL WHERE id = ?"
        db.execute(end, (why, now, job.id))

    def beat(self, job: str, owner: str, done: int, total: int, words: str) -> bool:
        """Record a heartbeat with progress; False if the owner lost the job or it must stop."""
        with self._write_transaction() as db:
            told = "UPDATE jobs SET beat = ?, done = ?, total = ?, words = ? WHERE id = ? AND owner = ? AND stop = 0"
            row = (time.time(), done, total, words, job, owner)
            return db.execute(told + " AND state = 'running'", row).rowcount == 1

    def finish(self, job: str, owner: str, state: JobState, words: str, result: Any = None) -> bool:
        """Finish a job, if the owner still holds it."""
        with self._write_transaction() as db:
            end = "UPDATE jobs SET state = ?, words = ?, result = ?, ended = ?, owner = NULL WHERE id = ? AND owner = ?"
            row = (state, words, json.dumps(result), time.time(), job, owner)
            return db.execute(end + " AND state = 'running'", row).rowcount == 1

    def release(self, owner: str, words: str) -> None:
        """Requeue the job of an owner that shuts down, without counting a failed try."""
        with self._write_transaction() as db:
            back = "UPDATE jobs SET state = 'queued', owner = NULL, words = ?, tries = tries - 1"
            db.execute(back + " WHERE owner = ? AND state = 'running'", (words, owner))

    def cancel(self, job: str) -> None:
        """Stop a job: at once if queued, otherwise at its next heartbeat."""
        with self._write_transaction() as db:
            end = "UPDATE jobs SET state = 'cancelled', words = 'stopped before it started', ended = ? WHERE id = ?"
            if not db.execute(end + " AND state = 'queued'", (time.time(), job)).rowcount:
                db.execute("UPDATE jobs SET stop = 1 WHERE id = ? AND state = 'running'", (job,))


def _build_project(row: sqlite3.Row, files: tuple[ProjectFile, ...] = ()) -> Project:
    return Project(row["id"], row["name"], row["kind"], json.loads(row["options"]), row["made"], files)


def _build_job(row: sqlite3.Row) -> Job:
    values = dict(row)
    result = None if values["result"] is None else json.loads(values["result"])
    changed = {"settings": json.loads(values["settings"]), "result": result, "stop": bool(values["stop"])}
    return Job(**(values | changed))
