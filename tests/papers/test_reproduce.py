"""Published tables: well formed, computed by their protocol, written in three forms."""

from __future__ import annotations

import csv
import dataclasses
import json
import random

import numpy as np
import pytest

from podium import make
from podium.core import registry
from podium.core.errors import InputError, ParameterError
from podium.evaluate import evaluate, select_by_majority
from podium.methods.base import Tags
from podium.methods.learned.supervised_method import SupervisedAggregator
from podium.methods.positional import Positional
from podium.metrics import parse_all
from podium_papers import (
    TABLES,
    PublishedRow,
    PublishedTable,
    figure_lines,
    reproduce,
    retargeting_synthetic,
    write,
)
from podium_papers.inference_times import repeat_preferences, score_by_general_svd
from podium_papers.paper_datasets import READERS, labeled_items, load_dataset


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_tables_are_well_formed(table):
    names = [row.name for row in table.rows]
    assert len({name.lower() for name in names}) == len(names)
    assert table.baseline in names
    assert table.generated or {name.split(" + ")[0] for name in table.sets} <= set(READERS)
    assert set(table.tested) <= set(table.metrics)
    assert table.generated or list(map(str, parse_all(table.metrics))) == list(table.metrics)
    for row in table.rows:
        assert set(row.published) | set(row.without) <= set(table.sets)
        assert all(len(figures) == len(table.metrics) for figures in row.published.values())
        assert row.method is not None or row.published or table.study


def specs():
    rows = {row.method for table in TABLES.values() for row in table.rows}
    return sorted(method for method in rows if isinstance(method, str))


@pytest.mark.parametrize("spec", specs())
def test_methods_of_rows_can_be_made(spec):
    make(spec)


@pytest.fixture
def folder(tmp_path):
    """Five tiny LETOR parts of four experts, and a few judgements of a crowd."""
    chance = random.Random(3)
    (tmp_path / "mq2008-agg").mkdir()
    for part in range(1, 6):
        lines = []
        for q in range(4):
            for d in range(5):
                ranks = " ".join(
                    f"{e}:{'NULL' if chance.random() < 0.3 else chance.randint(1, 50) * 5 + d}"
                    for e in range(1, 5)
                )
                lines.append(f"{chance.randint(0, 2)} qid:{part}{q} {ranks} #docid = D{part}{q}{d}\n")
        (tmp_path / "mq2008-agg" / f"A{part}.txt").write_text("".join(lines))
    (tmp_path / "trec2011-crowd").mkdir()
    rows = ["topicID\tworkerID\tdocID\tgold_binary\tlabel_binary\n"]
    for t in range(10):
        for w in range(3):
            for d in range(4):
                gold = (d + t) % 2 if d < 3 else -1
                rows.append(f"{t}\tw{w}\td{d}\t{gold}\t{chance.randint(0, 1)}\n")
    (tmp_path / "trec2011-crowd" / "judgments.tsv").write_text("".join(rows))
    return tmp_path


ROWS = (
    PublishedRow("RRF", "rrf", {"mq2008-agg": (40.0, 50.0)}),
    PublishedRow("Either", ("rrf(k=1)", "borda"), {"mq2008-agg": (41.0, 51.0)}),
    PublishedRow("Theirs", None, {"mq2008-agg": (1.0, 2.0)}),
    PublishedRow("Less", "rrf", without={"mq2008-agg": ("2", "3")}),
)
TINY = PublishedTable(
    "tiny", "A tiny table", "nobody, 2020", ("mq2008-agg",), ("ndcg@2:letor", "map"), ROWS, "RRF", ("map",)
)


def test_a_table_is_computed_and_shown_beside_the_published_figures(folder):
    found = reproduce(TINY, folder)
    [one] = found.sets
    assert (one.name, one.queries) == ("mq2008-agg", 20)
    rrf, either, theirs, less = one.rows
    assert rrf.difference == pytest.approx(
        [round(o, 2) - p for o, p in zip(rrf.ours, (40.0, 50.0), strict=True)]
    )
    assert len(rrf.folds) == 5
    assert set(either.chosen) <= {"rrf(k=1)", "borda"}
    assert (theirs.ours, theirs.method, theirs.difference) == (None, None, None)
    assert (less.published, less.difference) == (None, None)
    data = load_dataset("mq2008-agg", folder)
    fewer = make("rrf").aggregate(data.preferences.with_experts(["1", "4"]), ties="input")
    by_hand = evaluate(fewer, data.labels, TINY.metrics).mean_over_parts(data.part)
    assert less.ours == pytest.approx([100 * v for v in by_hand.values()])
    assert {t.name for t in one.tests if t.difference is not None} == {"Either", "Less"}


def test_rows_and_sets_can_be_chosen(folder):
    assert [row.name for row in reproduce(TINY, folder, only=["theirs", "RRF"]).sets[0].rows] == [
        "RRF",
        "Theirs",
    ]
    assert reproduce(TINY, folder, only=["Either"]).sets[0].tests == ()
    with pytest.raises(ParameterError, match="no row 'LR-X'; known: Either, Less, RRF, Theirs"):
        reproduce(TINY, folder, only=["LR-X"])
    with pytest.raises(ParameterError, match="no data set 'mq2009'"):
        reproduce(TINY, folder, sets=["mq2009"])
    with pytest.raises(ParameterError, match="no table 'tabel3'; did you mean table3"):
        reproduce("tabel3", folder)


def test_three_files_are_written(folder, tmp_path):
    found = reproduce(TINY, folder)
    names = write(found, str(tmp_path / "out"))
    assert names == [str(tmp_path / f"out.{kind}") for kind in ("md", "csv", "json")]
    markdown = (tmp_path / "out.md").read_text()
    assert "| RRF | published | 40.00 | 50.00 |" in markdown
    assert "nobody, 2020" in markdown
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert len(rows) == 4 * 2
    [line] = [r for r in rows if r["row"] == "RRF" and r["metric"] == "map"]
    assert float(line["ours"]) - float(line["published"]) == pytest.approx(float(line["difference"]))
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["sets"][0]["rows"][0]["ours"] == list(found.sets[0].rows[0].ours)
    with pytest.raises(InputError, match="exists"):
        write(found, str(tmp_path / "out.csv"))
    assert write(found, str(tmp_path / "out.csv"), overwrite=True) == [str(tmp_path / "out.csv")]


def test_missing_data_are_named(folder):
    with pytest.raises(InputError, match=r"mq2007-agg/A1\.txt: there is no such file"):
        reproduce("table3", folder, only=["RRF"])
    (folder / "mq2008-agg" / "A4.txt").unlink()
    with pytest.raises(InputError, match=r"mq2008-agg/A4\.txt: there is no such file"):
        reproduce(TINY, folder)
    with pytest.raises(InputError, match="there is no such folder"):
        reproduce(TINY, folder / "nowhere")


def test_the_crowd_protocol(folder):
    table = TABLES["table2"]
    found, again, other = (reproduce(table, folder, only=["Majority vote"], seed=s) for s in (0, 0, 5))
    [row] = found.sets[0].rows
    assert len(row.folds) == 5
    assert row.ours == again.sets[0].rows[0].ours
    assert row.folds != other.sets[0].rows[0].folds
    data = load_dataset("trec2011-crowd", folder)
    few = labeled_items(data)
    assert few.preferences.lists.rows == data.preferences.lists.rows * 3 // 4
    assert few.preferences.index.items.tolist() == ["d0", "d1", "d2"] * 10
    assert few.preferences.experts == data.preferences.experts


def test_labelled_rows_train_on_all_items_and_score_labeled_ones(folder):
    @dataclasses.dataclass(kw_only=True, eq=False, repr=False)
    class Watched(SupervisedAggregator):
        """Records the numbers of items it sees per query."""

        name = "watched"
        tags = Tags(supervised=True, weighted=False)

        def _learn(self, training):
            seen["training"] = set(training.preferences.index.sizes.tolist())

        def _score(self, preferences, features):
            seen["scoring"] = set(preferences.index.sizes.tolist())
            return np.arange(len(preferences.index.items), dtype=np.float64)

    seen: dict[str, set[int]] = {}
    try:
        row = PublishedRow("Labelled", "watched", labelled=True)
        reproduce(dataclasses.replace(TABLES["table2"], rows=(row,), baseline="Labelled"), folder)
    finally:
        registry.aggregators.discard("watched")
    assert seen == {"training": {4}, "scoring": {3}}
    row = next(r for r in TABLES["table2"].rows if r.name == "LR-labelled")
    assert (row.labelled, make(row.method).items) == (True, "labelled")


def test_several_seeds_give_means_and_deviations(folder):
    learned = PublishedRow("Learned", "crf(passes=2, subset=3)", {"mq2008-agg": (40.0, 50.0)})
    table = dataclasses.replace(TINY, rows=(ROWS[0], learned))
    singles = [reproduce(table, folder, seed=seed).sets[0].rows[1].ours for seed in (4, 5, 6)]
    found = reproduce(table, folder, seed=4, seeds=3)
    rrf, row = found.sets[0].rows
    assert row.ours == pytest.approx(np.mean(singles, axis=0))
    assert row.spread == pytest.approx(np.std(singles, axis=0, ddof=1))
    assert max(row.spread) > 0
    assert (rrf.spread, len(rrf.folds), len(row.folds)) == (None, 5, 15)
    assert figure_lines(table, found.sets[0])[6][:2] == ["Learned", "sd over seeds"]
    assert "seeds 4 to 6" in found.notes[-1]
    splits = dataclasses.replace(TABLES["table2"], rows=(PublishedRow("Majority vote", "majority"),))
    [row] = reproduce(splits, folder, seeds=2).sets[0].rows
    assert row.spread is not None  # the splits are random, though the method is not
    with pytest.raises(ParameterError, match="seeds is 0"):
        reproduce(TINY, folder, seeds=0)


def test_only_queries_where_the_majority_is_wrong_are_measured(folder):
    data = load_dataset("mq2008-agg", folder)
    table = dataclasses.replace(TINY, rows=ROWS[:1], where="majority-wrong")
    [row] = reproduce(table, folder).sets[0].rows
    consensus, means = make("rrf").aggregate(data.preferences, ties="input"), []
    for part in range(5):
        labels = data.select_codes(np.flatnonzero(data.part == part)).labels
        some = select_by_majority(data.preferences, labels)
        means.append(list(evaluate(consensus, some, TINY.metrics).mean().values()))
    assert row.ours == pytest.approx(100 * np.mean(means, axis=0), abs=0.006)


def test_the_general_decomposition_gives_the_same_scores(folder):
    """Figure 2 times two computations of one thing."""
    fold = load_dataset("mq2008-agg", folder).folds()[0]
    for growth, name in (("experts", "1#2"), ("items", None)):
        p = repeat_preferences(fold.test.preferences, 3, growth)
        train = repeat_preferences(fold.train.preferences, 3 if growth == "experts" else 1, growth)
        assert name is None or name in p.experts
        assert p.lists.rows == 3 * fold.test.preferences.lists.rows
        model = make("svd(vectors=unit, passes=2)").fit(train, fold.train.labels)
        assert score_by_general_svd(model, p) == pytest.approx(model.aggregate(p).scores, abs=1e-6)
    found = reproduce("figure2", folder, sets=["mq2008-agg + repeated items"]).sets[0]
    times = {row.name: row.ours for row in found.rows}
    ratio = np.divide(times["SVD features by general SVD"], times["CRF"])
    assert times["SVD features by general SVD / CRF"] == pytest.approx(ratio)


def test_seeds_of_a_study(monkeypatch):
    monkeypatch.setattr(retargeting_synthetic, "SEEDS", 2)
    some = {"only": ["Borda"], "sets": ["gaussian"]}
    singles = [reproduce("retargeting-synthetic", seed=s, **some).sets[0].rows[0].ours for s in (1, 2)]
    found = reproduce("retargeting-synthetic", seed=1, seeds=2, **some)
    row = found.sets[0].rows[0]
    assert row.ours == pytest.approx(np.mean(singles, axis=0), nan_ok=True)
    assert row.spread == pytest.approx(np.std(singles, axis=0, ddof=1), nan_ok=True)
    assert found.notes[-1].endswith("those of seed 1.")


def test_work_is_kept_between_runs(folder, tmp_path):
    @dataclasses.dataclass(kw_only=True, eq=False, repr=False)
    class Counted(Positional):
        """Counts how often it is asked."""

        name = "counted"
        tags = Tags(additive=True)

        def _points(self, rank):
            calls.append(len(rank))
            return 1.0 / rank

    calls: list[int] = []
    try:
        table = dataclasses.replace(
            TINY, rows=(PublishedRow("RRF", "rrf"), PublishedRow("Counted", "counted"))
        )
        first = reproduce(table, folder, resume=tmp_path / "kept")
        asked = len(calls)
        assert asked >= 5
        assert reproduce(table, folder, resume=tmp_path / "kept").sets == first.sets
        assert len(calls) == asked
    finally:
        registry.aggregators.discard("counted")


@pytest.mark.data
def test_the_rows_that_are_known_to_the_digit(data_dir):
    found = reproduce("table3", data_dir, only=["RRF", "Borda, lists reversed"], sets=["mq2008-agg"])
    for row in found.sets[0].rows:
        assert [round(d, 2) for d in row.difference] == [0.0] * 11
    [test] = [t for t in found.sets[0].tests if t.metric == "map" and t.difference is not None]
    assert test.p_holm < 0.001
