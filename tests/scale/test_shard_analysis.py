"""Counts over shards: the same as from all rows at once, and only new shards are counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from podium import Preferences, scale
from podium.analysis.leaderboard import Tally, leaderboard
from podium.core.errors import InputError
from shards import lists, shards


def ballots(seed: int, count: int = 200, items: int = 8) -> pa.Table:
    """Votes of three judges on items whose strength is their number."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.permutation(items)[:2] for _ in range(count)])
    first_wins = rng.random(count) < 1 / (1 + np.exp(0.4 * (pairs[:, 1] - pairs[:, 0])))
    winner, loser = np.where(first_wins, pairs.T, pairs.T[::-1])
    return pa.table(
        {
            "query": [f"{seed}-{k}" for k in range(count)],
            "expert": [f"judge {k}" for k in rng.integers(0, 3, count)],
            "winner": [f"m{i}" for i in winner],
            "loser": [f"m{i}" for i in loser],
            "tie": rng.random(count) < 0.1,
        }
    )


def write(folder: Path, tables: dict[str, pa.Table]) -> list[pa.Table]:
    folder.mkdir(exist_ok=True)
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return list(tables.values())


def of_all(tables):
    return Preferences.from_frame(pa.concat_tables(tables), winner="winner", loser="loser", tie="tie")


def test_votes_add_up_to_those_of_all_rows(tmp_path):
    tables = write(tmp_path / "in", {str(k): ballots(k) for k in range(5)})
    got = scale.votes(tmp_path / "in", tmp_path / "counts", workers=1)
    expected = Tally.from_preferences(of_all(tables)).pool_queries()
    for name in ("expert", "query", "first", "second", "side", "won", "lost", "tied"):
        assert getattr(got, name).tolist() == getattr(expected, name).tolist()
    assert got.items.tolist() == expected.items.tolist()
    kept = scale.votes(tmp_path / "in", tmp_path / "apart", by_query=True, workers=1)
    assert len(kept.queries) == 1000


def test_only_new_votes_are_counted_and_the_fit_goes_on(tmp_path, monkeypatch):
    write(tmp_path / "in", {str(k): ballots(k) for k in range(3)})
    first = scale.leaderboard(tmp_path / "in", tmp_path / "counts", workers=1)
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "counts").glob("*.counts")}
    tables = write(tmp_path / "in", {str(k): ballots(k) for k in range(4)})
    counted = []
    real = Tally.from_preferences.__func__
    monkeypatch.setattr(
        Tally,
        "from_preferences",
        classmethod(lambda cls, p: counted.append(len(p.comparisons)) or real(cls, p)),
    )
    second = scale.leaderboard(tmp_path / "in", tmp_path / "counts", workers=1)
    monkeypatch.undo()
    assert counted == [200]
    after = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "counts").glob("*.counts")}
    assert {n: after[n] for n in before} == before
    cold = leaderboard(of_all(tables))
    assert [r.item for r in second.rows] == [r.item for r in cold.rows]
    assert [r.score for r in second.rows] == pytest.approx([r.score for r in cold.rows], abs=1e-6)
    assert first.tally.votes < second.tally.votes == cold.tally.votes


def test_a_changed_shard_is_counted_again(tmp_path):
    write(tmp_path / "in", {"a": ballots(0), "b": ballots(1)})
    scale.votes(tmp_path / "in", tmp_path / "counts", workers=1)
    tables = write(tmp_path / "in", {"a": ballots(0), "b": ballots(7)})
    got = scale.votes(tmp_path / "in", tmp_path / "counts", workers=1)
    assert got.won.tolist() == Tally.from_preferences(of_all(tables)).pool_queries().won.tolist()


def test_workers_change_nothing(tmp_path):
    write(tmp_path / "in", {str(k): ballots(k) for k in range(4)})
    one = scale.votes(tmp_path / "in", tmp_path / "one", workers=1)
    two = scale.votes(tmp_path / "in", tmp_path / "two", workers=2)
    for name in ("won", "lost", "first"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


def test_experts_against_plain_counting(tmp_path):
    folder = shards(tmp_path / "in", 3)
    found = scale.experts(folder, tmp_path / "counts", workers=1)
    rows = [r for k in range(3) for r in lists(range(20 * k, 20 * k + 20)).to_pylist()]
    said = {e: {(r["query"], r["item"]) for r in rows if r["expert"] == e} for e in found.experts}
    for i, e in enumerate(found.experts):
        others = set().union(*(said[f] for f in said if f != e))
        assert found.rows[i] == len(said[e])
        assert found.alone[i] == len(said[e] - others)
        assert found.lists[i] == len({q for q, _ in said[e]})
        for j, f in enumerate(found.experts):
            assert found.shared[i, j] == len(said[e] & said[f])
            assert found.overlap[i, j] == len(said[e] & said[f]) / len(said[e] | said[f])
    assert found.queries == 60
    assert found.to_dict()["engine 0"]["answered"] == 1.0


def test_counts_that_are_damaged_are_made_again(tmp_path):
    folder = shards(tmp_path / "in", 2)
    before = scale.experts(folder, tmp_path / "counts", workers=1).to_dict()
    for damage in (b"", b"\xff" * 64, (tmp_path / "counts" / "part-000.counts").read_bytes()[:-8]):
        (tmp_path / "counts" / "part-000.counts").write_bytes(damage)
        assert scale.experts(folder, tmp_path / "counts", workers=1).to_dict() == before


def test_what_cannot_be_counted_says_why(tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"bad.parquet"):
        scale.votes(tmp_path / "bad.parquet", tmp_path / "c", workers=1)
