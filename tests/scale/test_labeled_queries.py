"""The labeled queries of shards in memory: the same as reading everything, and tuned by the one tuner."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import podium
from podium import Dataset, Labels, Preferences, formats, scale
from podium.cli import program
from podium.core.errors import InputError, ParameterError
from podium.evaluate import evaluate
from podium.storage.digests import digest_dataset
from shards import lists, shards

ORDER = [("query", "ascending"), ("expert", "ascending"), ("rank", "ascending"), ("item", "ascending")]


def sorted_rows(preferences):
    return preferences.to_frame().sort_by(ORDER).to_pylist()


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


@pytest.mark.parametrize("kind", ["text", "integers", "dictionaries"])
@pytest.mark.parametrize("workers", [1, 2])
def test_it_is_all_rows_restricted_to_the_labeled_queries(tmp_path, kind, workers):
    folder = shards(tmp_path / "in", 3, ids=kind)
    plain = kind.replace("dictionaries", "text")
    whole = Preferences.from_frame(
        pa.concat_tables(lists(range(20 * k, 20 * k + 20), ids=plain) for k in range(3))
    )
    some = [whole.queries[k] for k in (3, 19, 20, 41, 59)]
    labels = Labels.from_dict({q: {whole.index.items[0]: 1.0} for q in [*some, "nowhere"]})
    data = scale.labelled(folder, labels, workers=workers)
    assert sorted(data.preferences.queries.tolist()) == sorted(some)
    assert sorted_rows(data.preferences) == sorted_rows(whole.select(some))
    assert data.labels is labels


def test_text_shards_and_other_column_names(tmp_path):
    (tmp_path / "in").mkdir()
    for k in range(3):
        rows = [f"q{k} Q0 {d} {r} {9 - r} {e}" for e in "ab" for r, d in enumerate("xyz", 1)]
        (tmp_path / "in" / f"{k}.run").write_text("\n".join(rows))
    (tmp_path / "qrels").write_text("q0 0 x 1\nq2 0 y 1\n")
    data = scale.labelled(tmp_path / "in", tmp_path / "qrels", workers=1)
    whole = formats.read(sorted((tmp_path / "in").glob("*.run"))).preferences
    assert sorted_rows(data.preferences) == sorted_rows(whole.select(["q0", "q2"]))
    assert data.preferences.unlisted == "below"  # as in TREC runs read in memory
    table = lists(range(2)).rename_columns(["qid", "system", "doc", "rank", "score"])
    (tmp_path / "named").mkdir()
    pq.write_table(table, tmp_path / "named" / "a.parquet")
    labels = Labels.from_dict({"q-00001": {"x": 1}})
    names = {"query": "qid", "expert": "system", "item": "doc"}
    found = scale.labelled(tmp_path / "named", labels, workers=1, options={**names, "unlisted": "below"})
    assert found.preferences.queries.tolist() == ["q-00001"]
    assert found.preferences.unlisted == "below"
    with pytest.raises(ParameterError, match="no option 'nonsense'"):
        scale.labelled(tmp_path / "named", labels, workers=1, options={"nonsense": 1})


def test_what_cannot_be_read_says_why(tmp_path):
    folder = shards(tmp_path / "in", 1)
    with pytest.raises(InputError, match="no such file"):
        scale.labelled(folder, tmp_path / "x")
    (tmp_path / "a.run").write_text("q Q0 x 1 2 e\n")
    with pytest.raises(InputError, match=r"a.run: it contains no labels"):
        scale.labelled(folder, tmp_path / "a.run")
    with pytest.raises(InputError, match="no query in the shards has labels"):
        scale.labelled(folder, Labels.from_dict({"other": {"x": 1}}), workers=1)
    pq.write_table(lists(range(1)), tmp_path / "in" / "twice.parquet")
    with pytest.raises(InputError, match=r"query 'q-00000' is in .*part-000.parquet and in .*twice.parquet"):
        scale.labelled(folder, Labels.from_dict({"q-00000": {"x": 1}}), workers=1)
    (tmp_path / "in" / "bad.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"bad.parquet"):
        scale.labelled(folder, Labels.from_dict({"q-00000": {"x": 1}}), workers=1)


def test_tuning_shards_is_tuning_the_same_queries_in_memory(tmp_path):
    folder, labels = judged_shards(tmp_path / "in", 0, honest=True)
    rows = pa.concat_tables(pq.read_table(f) for f in sorted(folder.glob("*")))
    qrels = formats.read(labels).labels
    whole = Dataset(Preferences.from_frame(rows), qrels)
    data = scale.labelled(folder, labels, workers=1)
    assert digest_dataset(data) == digest_dataset(whole)
    found = podium.tune(data, "ndcg@10", ["rrf(k=60)"], trials=30)
    assert found.outcome() == "better"
    weights = found.best.weights
    assert weights["b good"] > max(weights["a noise"], weights["c noise"])


def test_the_command_line_tunes_shards(tmp_path):
    folder, labels = judged_shards(tmp_path / "in", 0, honest=True)
    words = ["-q", labels, "-m", "rrf(k=60)", "--trials", 20, "--json", "-o", tmp_path / "best.podium"]
    done = CliRunner().invoke(program, ["tune", str(folder), *map(str, words)])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["apply"].endswith("-o fused/")
    applied = CliRunner().invoke(
        program, ["apply", str(tmp_path / "best.podium"), str(folder), f"{tmp_path}/out/"]
    )
    assert "3 shards processed" in applied.stderr
    bad = CliRunner().invoke(program, ["tune", str(folder)])
    assert bad.exit_code == 2
    assert "--qrels" in bad.stderr


def test_trials_are_the_means_of_evaluating_in_memory(tmp_path):
    folder = shards(tmp_path / "in", 3)
    table = pa.concat_tables(lists(range(20 * k, 20 * k + 20)) for k in range(3)).to_pydict()
    rng = np.random.default_rng(1)
    pairs = sorted({(q, i) for q, i in zip(table["query"], table["item"], strict=True) if q < "q-00040"})
    labels = Labels.from_rows([q for q, _ in pairs], [i for _, i in pairs], rng.integers(0, 3, len(pairs)))
    podium.formats.write(labels, tmp_path / "labels.jsonl")
    weighted = podium.make("rrf", weights={f"engine {e}": 1.0 + e for e in range(4)})
    candidates = ["rrf(k=1)", "rrf(k=100)", weighted, "borda"]
    with pytest.warns(DeprecationWarning, match=r"podium.evaluate on podium.scale.labelled"):
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


def test_the_tuner_of_the_last_release_asks_the_one_tuner(tmp_path):
    folder, labels = judged_shards(tmp_path / "in", 0, honest=True)
    with pytest.warns(DeprecationWarning, match=r"podium.tune on podium.scale.labelled"):
        found = scale.tune("rrf", folder, labels, tmp_path / "sums", values={"k": (5, 60)}, workers=1)
    weights = found.method.weights
    assert weights["b good"] > max(weights["a noise"], weights["c noise"])
    assert found.method.k in (5, 60)
    assert found.gain > 4 * found.error > 0
    assert found.queries == 240
    with (
        pytest.warns(DeprecationWarning, match="labelled"),
        pytest.raises(ParameterError, match="no candidate"),
    ):
        scale.trials([], folder, labels, tmp_path / "c")
