"""Counts over shards: the same as from all rows at once, and only new shards are counted."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import podium
from podium import Labels, Preferences, scale
from podium.analysis.leaderboard import Tally, leaderboard
from podium.core.errors import InputError, ParameterError
from podium.evaluate import evaluate
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


def test_trials_are_the_means_of_evaluating_in_memory(tmp_path):
    folder = shards(tmp_path / "in", 3)
    table = pa.concat_tables(lists(range(20 * k, 20 * k + 20)) for k in range(3)).to_pydict()
    rng = np.random.default_rng(1)
    pairs = sorted({(q, i) for q, i in zip(table["query"], table["item"], strict=True) if q < "q-00040"})
    labels = Labels.from_rows([q for q, _ in pairs], [i for _, i in pairs], rng.integers(0, 3, len(pairs)))
    podium.formats.write(labels, tmp_path / "labels.jsonl")
    weighted = podium.make("rrf", weights={f"engine {e}": 1.0 + e for e in range(4)})
    candidates = ["rrf(k=1)", "rrf(k=100)", weighted, "borda"]
    found = scale.trials(candidates, folder, tmp_path / "labels.jsonl", tmp_path / "counts", workers=1)
    p = Preferences.from_frame(pa.table(table))
    expected = {
        repr(podium.make(c)): evaluate(podium.make(c).aggregate(p), labels, "ndcg@10") for c in candidates
    }
    assert {t.method: t.mean for t in found} == pytest.approx(
        {m: e.mean()["ndcg@10"] for m, e in expected.items()}
    )
    assert [t.mean for t in found] == sorted((t.mean for t in found), reverse=True)
    assert {t.queries for t in found} == {40}
    again = scale.trials(candidates, folder, tmp_path / "labels.jsonl", tmp_path / "counts", workers=1)
    assert again == found


def judged_shards(folder, seed, honest):
    """Shards of three experts, of whom one follows the labels if `honest`, and a file of labels."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    grades = rng.integers(0, 3, (240, 12))
    for k in range(3):
        rows = []
        for q in range(80 * k, 80 * k + 80):
            for expert in ("a noise", "b good", "c noise"):
                liking = rng.normal(size=12) + (1.5 * grades[q] if expert == "b good" and honest else 0)
                rows += [(f"q{q}", expert, f"d{i}", r + 1) for r, i in enumerate(np.argsort(-liking)[:8])]
        names = ("query", "expert", "item", "rank")
        pq.write_table(
            pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))),
            folder / f"{k}.parquet",
        )
    lines = (f"q{q} 0 d{i} {grades[q, i]}" for q in range(240) for i in range(12))
    (folder.parent / f"{folder.name}.qrels").write_text("\n".join(lines))
    return folder, folder.parent / f"{folder.name}.qrels"


def test_tuning_finds_whom_to_trust_and_what_it_is_worth(tmp_path):
    folder, labels = judged_shards(tmp_path / "in", 0, honest=True)
    how = {"values": {"k": (5, 60)}, "weights": (0.0, 1.0, 4.0), "workers": 1}
    found = scale.tune("rrf", folder, labels, tmp_path / "sums", **how)
    weights = found.method.weights
    assert weights["b good"] > max(weights["a noise"], weights["c noise"])
    assert [s.mean for s in found.steps] == sorted(s.mean for s in found.steps)
    assert found.gain > 4 * found.error > 0
    # the gain is that of evaluating in memory, on the queries that did not choose
    everything = Preferences.from_frame(pa.concat_tables(pq.read_table(f) for f in sorted(folder.glob("*"))))
    qrels = podium.formats.read(str(labels)).labels
    before, after = (
        evaluate(podium.make(m).aggregate(everything), qrels, "ndcg@10").values[0]
        for m in ("rrf", found.method)
    )
    tells = np.array([zlib.crc32(q.encode()) & 1 == 1 for q in everything.queries.tolist()])
    gain = (after - before)[tells]
    assert (found.gain, found.queries) == (pytest.approx(gain.mean()), tells.sum())
    assert found.error == pytest.approx(gain.std(ddof=1) / np.sqrt(len(gain)))
    assert scale.tune("rrf", folder, labels, tmp_path / "sums", **how).steps == found.steps


def test_where_nobody_is_better_the_gain_is_not_beyond_chance(tmp_path):
    beyond = 0
    for seed in range(8):
        folder, labels = judged_shards(tmp_path / f"in{seed}", seed, honest=False)
        found = scale.tune("rrf", folder, labels, tmp_path / f"sums{seed}", weights=(0.0, 1.0), workers=1)
        beyond += found.gain > 1.96 * found.error
    assert beyond <= 2


def test_what_cannot_be_tuned_says_why(tmp_path):
    folder, labels = judged_shards(tmp_path / "in", 0, honest=True)
    with pytest.raises(ParameterError, match="takes no weights; give the parameter values"):
        scale.tune("combmax", folder, labels, tmp_path / "s")
    with pytest.raises(ParameterError, match="kk"):
        scale.tune("rrf", folder, labels, tmp_path / "s", values={"kk": (1, 2)}, workers=1)
    few = tmp_path / "few.qrels"
    few.write_text("q1 0 d1 1\n")
    with pytest.raises(InputError, match="too few for a search"):
        scale.tune("rrf", folder, few, tmp_path / "s", workers=1)


def test_what_cannot_be_fitted_says_why(tmp_path):
    folder = shards(tmp_path / "in", 1)
    with pytest.raises(ParameterError, match="no candidate"):
        scale.trials([], folder, tmp_path / "x", tmp_path / "c")
    with pytest.raises(InputError, match="no such file"):
        scale.trials(["rrf"], folder, tmp_path / "x", tmp_path / "c")
    (tmp_path / "qrels").write_text("other 0 d1 1\n")
    with pytest.raises(InputError, match="no query in the shards has labels"):
        scale.trials(["rrf"], folder, tmp_path / "qrels", tmp_path / "c", workers=1)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"bad.parquet"):
        scale.votes(tmp_path / "bad.parquet", tmp_path / "c", workers=1)
