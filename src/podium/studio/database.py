"""The database of the studio: SQLite in a folder that several processes may share."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from podium.core.errors import InputError, ParameterError

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
MISSING = {
    "projects": "no such project; it may have been removed",
    "models": "no such model; it may have been removed with its project",
    "jobs": "no such job; it may have been removed with its project",
}


class RecordNotFound(ParameterError):
    """A project, job or model that is not in the store."""


class Database:
    """The tables, in a folder that is created if needed; every change is one transaction."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
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
