"""Records of the store, one class per table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from podium.core.errors import ParameterError

__all__ = ["Job", "JobState", "Project", "ProjectFile", "ProjectKind", "RecordNotFound", "StoredModel"]

ProjectKind = Literal["demo", "files", "upload"]
JobState = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]


class RecordNotFound(ParameterError):
    """A project, job or model that is not in the store."""


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

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self.state not in ("queued", "running")

    @property
    def share(self) -> float:
        """The completed share, from 0 to 1."""
        return 1.0 if self.state == "done" else self.done / self.total if self.total else 0.0
