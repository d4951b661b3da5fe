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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from podium.core.errors import ParameterError, PodiumError
from podium.storage.digests import digest_bytes
from podium.storage.temporary_files import TemporaryFile
from podium.studio.database import DEMO, MISSING, RecordNotFound, explain_full_disk
from podium.studio.token_store import TokenStore

KEPT = 24 * 3600.0  # seconds for which a removed project can be restored
ProjectKind = Literal["demo", "files", "upload"]


@dataclass(frozen=True)
class ProjectFile:
    """An input of a project: uploaded bytes under a digest, or a path on the server below an allowed root."""

    name: str
    digest: str | None = None
    path: str | None = None


@dataclass(frozen=True)
class Project:
    """An opened input and its reading options."""

    id: str
    name: str
    kind: ProjectKind
    options: dict[str, Any]
    made: float
    files: tuple[ProjectFile, ...] = ()


@dataclass(frozen=True)
class StoredModel:
    """A stored fitted model."""

    id: str
    project: str
    name: str
    method: str  # its printed form
    digest: str
    job: str | None
    made: float


class Store(TokenStore):
    """The persistent state of the studio."""

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
            with explain_full_disk(self.folder):
                for content in contents:
                    digest = digest_bytes(content)
                    staged.append((digest, TemporaryFile(self.folder / "blobs" / digest)))
                    with staged[-1][1].open() as file:
                        file.write(content)
                        file.flush()
                        os.fsync(file.fileno())
            try:
                yield staged
            except BaseException:
                # files that were renamed already, by a transaction that failed afterwards
                with contextlib.suppress(PodiumError, sqlite3.Error), self._write_transaction() as db:
                    self._remove_unused_blobs(db, [digest for digest, _ in staged])
                raise
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
        used = "SELECT 1 FROM files WHERE digest = :d UNION SELECT 1 FROM models WHERE digest = :d"
        for digest in {d for d in digests if d is not None}:
            if db.execute(used, {"d": digest}).fetchone() is None:
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

    def add_labels(self, project: str, files: Sequence[tuple[str, bytes]], known: Sequence[str]) -> None:
        """Add label files to a project; they were checked against the labels `known` at that time."""
        with self._stage_files([content for _, content in files]) as staged, self._write_transaction() as db:
            options = json.loads(self._fetch_by_id("projects", project, db)["options"])
            digests = self._publish_staged(staged)
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
            options = json.loads(self._fetch_by_id("projects", project, db)["options"])
            digests = options.pop("labels", [])
            if not digests:
                raise ParameterError("no labels were added to this project; nothing to remove")
            db.execute("UPDATE projects SET options = ? WHERE id = ?", (json.dumps(options), project))
            gone = "DELETE FROM files WHERE project = ? AND digest = ?"
            db.executemany(gone, [(project, digest) for digest in digests])
            self._remove_unused_blobs(db, digests)

    def change_project(self, project: str, *, name: str | None = None, **options: Any) -> None:
        """Set the name and some options of a project; an option of None is removed."""
        with self._write_transaction() as db:
            row = self._fetch_by_id("projects", project, db)
            kept = {k: v for k, v in (json.loads(row["options"]) | options).items() if v is not None}
            change = "UPDATE projects SET name = ?, options = ? WHERE id = ?"
            db.execute(change, (row["name"] if name is None else name, json.dumps(kept), project))

    def add_texts(self, project: str, files: Sequence[tuple[str, bytes]]) -> None:
        """Add tables of item texts to a project, in place of those that it has."""
        with self._stage_files([content for _, content in files]) as staged, self._write_transaction() as db:
            options = json.loads(self._fetch_by_id("projects", project, db)["options"])
            old, digests = options.pop("texts", []), self._publish_staged(staged)
            gone = "DELETE FROM files WHERE project = ? AND digest = ?"
            db.executemany(gone, [(project, digest) for digest in old])
            options |= {"texts": digests} if digests else {}
            db.execute("UPDATE projects SET options = ? WHERE id = ?", (json.dumps(options), project))
            [[place]] = db.execute("SELECT coalesce(max(place), -1) FROM files WHERE project = ?", (project,))
            named = enumerate(zip(files, digests, strict=True), place + 1)
            rows = [(project, n, name, digest, None) for n, ((name, _), digest) in named]
            db.executemany("INSERT INTO files VALUES (?, ?, ?, ?, ?)", rows)
            self._remove_unused_blobs(db, [digest for digest in old if digest not in digests])

    def hide_project(self, project: str) -> None:
        """Remove a project so that it can be restored; those hidden for longer than `KEPT` are deleted."""
        if project == DEMO:
            raise ParameterError("the embedded data cannot be removed")
        self.change_project(project, removed=time.time())
        for other in map(_build_project, self._fetch_newest("projects")):
            if other.options.get("removed", time.time()) < time.time() - KEPT:
                self.remove_project(other.id)

    def restore_project(self, project: str) -> None:
        """Restore a hidden project."""
        self.change_project(project, removed=None)

    def project(self, project: str) -> Project:
        """One project with its files."""
        row = self._fetch_by_id("projects", project)
        if "removed" in json.loads(row["options"]):
            raise RecordNotFound(MISSING["projects"])
        files = self._fetch("SELECT name, digest, path FROM files WHERE project = ? ORDER BY place", project)
        return _build_project(row, tuple(ProjectFile(*f) for f in files))

    def projects(self) -> list[Project]:
        """All projects, newest first, without their files."""
        every = map(_build_project, self._fetch_newest("projects"))
        return [project for project in every if "removed" not in project.options]

    def rename_project(self, project: str, name: str) -> None:
        """Give a project another name."""
        if project == DEMO:
            raise ParameterError("the embedded data cannot be renamed")
        with self._write_transaction() as db:
            self._fetch_by_id("projects", project, db)
            db.execute("UPDATE projects SET name = ? WHERE id = ?", (name, project))

    def remove_project(self, project: str) -> None:
        """Remove a project with its jobs and models, and uploaded bytes that no other project uses."""
        if project == DEMO:
            raise ParameterError("the embedded data cannot be removed")
        with self._write_transaction() as db:
            self._fetch_by_id("projects", project, db)
            used = "SELECT digest FROM files WHERE project = :p UNION SELECT digest FROM models WHERE project = :p"
            digests = [r[0] for r in db.execute(used, {"p": project})]
            jobs = [r[0] for r in db.execute("SELECT id FROM jobs WHERE project = ?", (project,))]
            db.execute("DELETE FROM projects WHERE id = ?", (project,))
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
            self._fetch_by_id("projects", project, db)
            [digest] = self._publish_staged(staged)
            row = (model, project, name, method, digest, job, time.time())
            db.execute("INSERT INTO models VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return model

    def model(self, model: str) -> StoredModel:
        """One model."""
        return StoredModel(*self._fetch_by_id("models", model))

    def models(self, project: str | None = None) -> list[StoredModel]:
        """Models (of a project), newest first."""
        return [StoredModel(*row) for row in self._fetch_newest("models", project)]

    def model_bytes(self, model: str) -> bytes:
        """The model file."""
        return self.blob_path(self.model(model).digest).read_bytes()


def _build_project(row: sqlite3.Row, files: tuple[ProjectFile, ...] = ()) -> Project:
    return Project(row["id"], row["name"], row["kind"], json.loads(row["options"]), row["made"], files)
