"""The queue of jobs: claimed by one owner at a time, kept by heartbeats, claimed again after a crash."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from podium.studio.database import Database

JobState = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]


@dataclass(frozen=True)
class Job:
    """A job: its settings, progress and owner."""

    id: str
    project: str
    kind: str
    settings: dict[str, Any]
    state: JobState
    done: int
    total: int
    words: str
    result: Any
    owner: str | None
    beat: float | None
    tries: int
    stop: bool
    made: float
    ended: float | None
    user: str = ""  # who queued it
    began: float | None = None  # when a worker claimed it last

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self.state not in ("queued", "running")

    @property
    def share(self) -> float:
        """The completed share, from 0 to 1."""
        return 1.0 if self.state == "done" else self.done / self.total if self.total else 0.0

    def estimate_seconds_left(self, now: float | None = None) -> float | None:
        """The time that a running job still takes, from its progress so far; None if that is not known."""
        if self.state != "running" or not 0 < self.share < 1:
            return None
        elapsed = (time.time() if now is None else now) - (self.began or self.made)
        return elapsed * (1 - self.share) / self.share

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the data that its result is for."""
        return self.result.get("data") if isinstance(self.result, dict) else None

    def is_stale(self, fingerprint: str) -> bool:
        """Whether the job is done, but for other data than those with this fingerprint."""
        return self.state == "done" and self.fingerprint != fingerprint


def _build_job(row: sqlite3.Row) -> Job:
    result = None if row["result"] is None else json.loads(row["result"])
    changed = {"settings": json.loads(row["settings"]), "result": result, "stop": bool(row["stop"])}
    return Job(**(dict(row) | changed))


class JobQueue(Database):
    """The jobs of all projects."""

    def add_job(self, project: str, kind: str, settings: dict[str, Any], user: str = "") -> str:
        """Queue a job."""
        job = secrets.token_hex(6)
        new = (
            "INSERT INTO jobs (id, project, kind, settings, state, made, user) "
            "VALUES (?, ?, ?, ?, 'queued', ?, ?)"
        )
        with self._write_transaction() as db:
            self._fetch_by_id("projects", project, db)
            db.execute(new, (job, project, kind, json.dumps(settings), time.time(), user))
        return job

    def job_folder(self, job: str) -> Path:
        """The folder for intermediate results of a job; job ids are generated here, never given."""
        return self.folder / "jobs" / job

    def job(self, job: str) -> Job:
        """One job."""
        return _build_job(self._fetch_by_id("jobs", job))

    def jobs(self, project: str | None = None) -> list[Job]:
        """Jobs (of a project), newest first."""
        return [_build_job(row) for row in self._fetch_newest("jobs", project)]

    def count_jobs(self) -> dict[str, int]:
        """The number of jobs in each state."""
        return dict(map(tuple, self._fetch("SELECT state, count(*) FROM jobs GROUP BY state")))

    def has_waiting_job(self, stale: float) -> bool:
        """Whether a job is queued or has a dead owner."""
        waiting = "SELECT 1 FROM jobs WHERE state = 'queued' OR (state = 'running' AND beat < ?) LIMIT 1"
        return bool(self._fetch(waiting, time.time() - stale))

    def claim(self, owner: str, stale: float, resumable: Sequence[str], tries: int) -> Job | None:
        """Claim the oldest queued job of the user whose last job began longest ago.

        First, jobs of dead owners are requeued or marked as interrupted.
        """
        now = time.time()
        with self._write_transaction() as db:
            orphans = db.execute("SELECT * FROM jobs WHERE state = 'running' AND beat < ?", (now - stale,))
            for row in orphans.fetchall():
                if row["kind"] in resumable and row["tries"] < tries:
                    db.execute("UPDATE jobs SET state = 'queued', owner = NULL WHERE id = ?", (row["id"],))
                    continue
                why = (
                    f"interrupted {row['tries']} times; check the machine's memory, then start the job again"
                    if row["kind"] in resumable
                    else "the worker process died, and this kind of job cannot resume; start it again"
                )
                end = "UPDATE jobs SET state = 'interrupted', words = ?, ended = ?, owner = NULL WHERE id = ?"
                db.execute(end, (why, now, row["id"]))
            row = db.execute(
                "SELECT * FROM jobs WHERE state = 'queued' ORDER BY "
                "(SELECT coalesce(max(other.began), 0) FROM jobs AS other WHERE other.user = jobs.user), made, id"
            ).fetchone()
            if row is None:
                return None
            mine = "UPDATE jobs SET state = 'running', owner = ?, beat = ?, began = ?, tries = tries + 1 WHERE id = ?"
            db.execute(mine, (owner, now, now, row["id"]))
            return _build_job(self._fetch_by_id("jobs", row["id"], db))

    def beat(self, job: str, owner: str, done: int, total: int, words: str) -> bool:
        """Record a heartbeat with progress; False if the owner lost the job or it must stop."""
        with self._write_transaction() as db:
            update = "UPDATE jobs SET beat = ?, done = ?, total = ?, words = ? WHERE id = ? AND owner = ? AND stop = 0"
            row = (time.time(), done, total, words, job, owner)
            return db.execute(update + " AND state = 'running'", row).rowcount == 1

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
