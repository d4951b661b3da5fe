"""The database of the studio: SQLite in a folder that several processes may share."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from podium.core.errors import InputError, ParameterError

DEMO = "demo"  # the built-in project
DEMO_NAME = "Demo: 25 simulated search engines"
VERSION = 2  # of the tables
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
# tables of later versions; those that a folder lacks are created when it is opened
LATER_TABLES = """
CREATE TABLE IF NOT EXISTS tokens (
  name TEXT PRIMARY KEY, role TEXT NOT NULL, digest TEXT NOT NULL UNIQUE, made REAL NOT NULL);
CREATE TABLE IF NOT EXISTS ended_sessions (id TEXT PRIMARY KEY, until REAL NOT NULL);
CREATE TABLE IF NOT EXISTS audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, user TEXT NOT NULL, role TEXT NOT NULL,
  method TEXT NOT NULL, route TEXT NOT NULL, project TEXT, status INTEGER NOT NULL, request TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS kept_answers (
  user TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, status INTEGER, answer BLOB, made REAL NOT NULL,
  PRIMARY KEY (user, key))
"""
LATER_COLUMNS = {"jobs": {"user": "TEXT NOT NULL DEFAULT ''", "began": "REAL"}}
MISSING = {
    "projects": "no such project; it may have been removed",
    "models": "no such model; it may have been removed with its project",
    "jobs": "no such job; it may have been removed with its project",
}


class RecordNotFound(ParameterError):
    """A project, job or model that is not in the store."""


class DiskFull(InputError):
    """Nothing more can be stored; what is stored can still be read."""

    http_status = 507


@contextlib.contextmanager
def explain_full_disk(folder: Path) -> Iterator[None]:
    """Turn the errors of a full or read-only disk into words that name the folder."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
        words = ("disk is full", "disk I/O error", "readonly database")
        if full or (isinstance(error, sqlite3.Error) and any(part in str(error) for part in words)):
            raise DiskFull(
                f"the disk of the studio folder is full or cannot be written ({folder})",
                remedy="ask the operator to free space; what is stored can still be read",
            ) from error
        raise


class Database:
    """The tables, in a folder that is created if needed; every change is one transaction."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._version_lock = threading.Lock()
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # uploads are private
            (self.folder / "blobs").mkdir(exist_ok=True, mode=0o700)
            self._anchor = self._open_database()  # keeps the write-ahead log in place between sessions
            self._prepare_tables()
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"this folder cannot be used for the studio: {getattr(error, 'strerror', None) or error}",
                source=str(folder),
                remedy="give another folder",
            ) from None

    def close(self) -> None:
        """Close the database."""
        self._anchor.close()

    def read_version(self) -> int:
        """A number that changes when any process has changed the database; this reads a few bytes."""
        with self._version_lock:
            return int(self._anchor.execute("PRAGMA data_version").fetchone()[0])

    def check_disk(self, free: int) -> dict[str, str]:
        """Whether the store can be read and written: "ok" or words, by what is checked."""
        checks = {"store": "ok", "disk": "ok"}
        try:
            self._fetch("SELECT 1 FROM projects LIMIT 1")
        except sqlite3.Error as error:
            checks["store"] = f"the database cannot be read: {error}"
        try:
            left = shutil.disk_usage(self.folder).free
            if left < free:
                checks["disk"] = (
                    f"{left >> 20} MB are free on the disk of the folder, {free >> 20} MB are needed"
                )
            probe = self.folder / f".probe-{os.getpid()}"
            probe.write_bytes(b"\0" * 4096)
            probe.unlink()
        except OSError as error:
            checks["disk"] = f"the studio folder cannot be written: {error.strerror or error}"
        return checks

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
        if self._anchor.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            self._upgrade_tables()
        # the anchor joins the write-ahead log only when it reads: then the log's index stays allocated, and others can
        # read while the disk is full
        self._anchor.execute("SELECT count(*) FROM projects").fetchone()

    def _upgrade_tables(self) -> None:
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
            if version < VERSION:
                for table, columns in LATER_COLUMNS.items():
                    known = {row["name"] for row in db.execute(f"PRAGMA table_info({table})")}
                    for column, about in columns.items():
                        if column not in known:
                            db.execute(f"ALTER TABLE {table} ADD COLUMN {column} {about}")
                db.execute(f"PRAGMA user_version = {VERSION}")
            for statement in LATER_TABLES.split(";"):
                db.execute(statement)
            add = (
                "INSERT INTO projects VALUES (?, ?, 'demo', '{}', ?) "
                "ON CONFLICT (id) DO UPDATE SET name = excluded.name"
            )
            db.execute(add, (DEMO, DEMO_NAME, time.time()))

    @contextlib.contextmanager
    def _write_transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that takes the write lock first; rolled back on any exception."""
        with explain_full_disk(self.folder), contextlib.closing(self._open_database()) as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a full disk ends the transaction by itself
                    db.execute("ROLLBACK")
                raise

    def _fetch(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """The rows of a query, outside of any transaction."""
        with contextlib.closing(self._open_database()) as db:
            return db.execute(query, values).fetchall()

    def _fetch_by_id(self, table: str, id_: str, db: sqlite3.Connection | None = None) -> sqlite3.Row:
        """One record of a table, or `RecordNotFound`; read in the transaction of `db`, if there is one."""
        query = f"SELECT * FROM {table} WHERE id = ?"
        rows = self._fetch(query, id_) if db is None else db.execute(query, (id_,)).fetchall()
        if not rows:
            raise RecordNotFound(MISSING[table])
        return rows[0]

    def _fetch_newest(self, table: str, project: str | None = None) -> list[sqlite3.Row]:
        """The records of a table (of a project), newest first."""
        where, values = ("", ()) if project is None else ("WHERE project = ?", (project,))
        return self._fetch(f"SELECT * FROM {table} {where} ORDER BY made DESC, id", *values)
