"""Records of processed shards, in the output folder: what was done, from which bytes, and where the results are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from podium.core.errors import InputError
from podium.storage.files import read_json, write_json
from podium.storage.shards import Shard

RECORDS = "_podium"  # readers of Hive-style folders skip names that begin with _


@dataclass(frozen=True)
class ShardRecord:
    """The outcome of a shard; `files` are its results below the output folder, with their sizes."""

    name: str
    key: str
    source: str
    rows: int = 0
    queries: int = 0
    results: int = 0
    seconds: float = 0.0
    files: tuple[tuple[str, int], ...] = ()
    fresh: bool = True  # computed in this run, not already up to date
    error: str | None = None

    @classmethod
    def from_error(cls, shard: Shard, error: Exception) -> ShardRecord:
        """The record of a shard that cannot be processed."""
        text = str(error) if shard.path in str(error) else f"{shard.path}: {error}"
        return cls(shard.name, "", shard.path, error=text[:1000])

    @classmethod
    def load(cls, out: str, name: str) -> ShardRecord | None:
        """The record of a shard; None if there is none or it cannot be read."""
        record = read_json(_locate_record(out, name))
        try:
            return cls(**(record | {"files": tuple((n, size) for n, size in record["files"])}))
        except (ValueError, TypeError, KeyError):
            return None

    def save(self, out: str) -> None:
        """Write the record atomically."""
        place = _locate_record(out, self.name)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_json(asdict(self), place)

    def remove_results(self, out: str) -> None:
        """Remove the record, then the results."""
        _locate_record(out, self.name).unlink(missing_ok=True)
        for name, _ in self.files:
            Path(out, name).unlink(missing_ok=True)

    def has_all_results(self, out: str) -> bool:
        """Whether all result files exist with the recorded sizes."""
        try:
            return all(Path(out, name).stat().st_size == size for name, size in self.files)
        except OSError:
            return False


def _locate_record(out: str, name: str) -> Path:
    return Path(out, RECORDS, "shards", f"{name}.json")


def load_records(out: str) -> list[ShardRecord]:
    """The records of all finished shards in a folder, by name."""
    base = Path(out, RECORDS, "shards")
    names = (p.relative_to(base).as_posix().removesuffix(".json") for p in sorted(base.rglob("*.json")))
    return [r for name in names if (r := ShardRecord.load(out, name)) is not None]


def raise_shard_errors(done: Sequence[ShardRecord]) -> None:
    """Raise the errors of failed shards after all others are processed."""
    failed = sorted({r.error for r in done if r.error is not None})
    if failed:
        rest = sum(r.error is None for r in done)
        raise InputError(
            "; ".join(failed[:3]) + (f"; and {len(failed) - 3} more" if len(failed) > 3 else ""),
            remedy=f"the other {rest} shards are processed and will not be repeated" if rest else None,
        )
