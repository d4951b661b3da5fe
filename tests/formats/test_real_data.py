"""Counts of public data sets, as their collectors publish them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from podium import formats
from podium.core.errors import InputError
from podium.formats.base import Content

pytestmark = pytest.mark.data


def read(data_dir: Path, *names: str, **options: object) -> Content:
    paths = sorted(path for name in names for path in data_dir.glob(name))
    assert paths
    return formats.read(paths, **options)  # type: ignore[arg-type]


def test_mq2008_agg(data_dir: Path) -> None:
    content = read(data_dir, "mq2008-agg/A*.txt.gz")
    p, labels = content.preferences, content.labels
    assert p is not None
    assert labels is not None
    assert (len(p), len(p.index.items), len(p.experts)) == (784, 15_211, 25)
    assert round(100 * (1 - p.lists.rows / (15_211 * 25)), 2) == 65.04
    assert np.bincount(labels.grades.astype(int)).tolist() == [12_279, 2_001, 931]
    assert (p.index.sizes.min(), p.index.sizes.max(), np.median(p.index.sizes)) == (5, 121, 8)
    assert content.part is not None
    assert np.bincount(content.part).tolist() == [157, 157, 157, 157, 156]
    assert p.experts.tolist() == sorted(map(str, range(1, 26)))


def test_mq2007_agg_keeps_documents_nobody_ranks(data_dir: Path) -> None:
    p = read(data_dir, "mq2007-agg/A1.txt.gz").preferences
    assert p is not None
    first = p.index.items[int(p.index.starts[0] + np.argmin(p.index.arrival[: p.index.starts[1]]))]
    assert first == "GX000-00-0000000"  # the first line of the file, ranked by nobody
    assert len(np.unique(p.lists.item)) < len(p.index.items)


def test_letor_features(data_dir: Path) -> None:
    for name, queries, items, width in (("mq2008/S1*", 157, None, 46), ("ohsumed/*", 106, 16_140, 45)):
        content = read(data_dir, name)
        assert content.preferences is None
        assert content.features is not None
        assert len(content.features) == queries
        assert len(content.features.names) == width
        assert items in (None, len(content.features.values))


def test_documents_without_ids(data_dir: Path) -> None:
    content = read(data_dir, "mslr-web10k-sample/test.5k.txt.gz")
    assert content.features is not None
    assert content.features.values.shape == (5_000, 136)
    assert len(content.features) == 43
    assert "1" in content.features.index.items[:200]


def test_runs_in_a_table_and_qrels(data_dir: Path) -> None:
    p = read(data_dir, "robust03-runs/robust03.tsv.gz").preferences
    assert p is not None
    assert (len(p), len(p.experts)) == (100, 17)
    assert int(p.lists.lengths.max()) == 100
    labels = read(data_dir, "robust03-runs/robust03.qrels.gz").labels
    assert labels is not None
    assert set(np.unique(labels.grades)) == {0, 1, 2}


def test_crowd_judgements(data_dir: Path) -> None:
    asked = {"score": "label_binary", "grade": "gold_binary", "missing": "-1"}
    with pytest.raises(InputError, match="appears twice"):  # some workers judged a document twice
        read(data_dir, "trec2011-crowd/judgments.tsv.gz", **asked)
    content = read(data_dir, "trec2011-crowd/judgments.tsv.gz", duplicates="first", **asked)
    p, gold = content.preferences, content.labels
    assert p is not None
    assert gold is not None
    assert (len(p), len(p.index.items), len(p.experts)) == (100, 19_033, 762)
    assert len(gold.grades) == 3_275


def test_pairwise_votes(data_dir: Path) -> None:
    with pytest.raises(
        InputError, match=r"judgments.csv.gz:406: the winner of .* is empty; missing='' skips"
    ):
        read(data_dir, "mirex2005/judgments.csv.gz")
    p = read(data_dir, "mirex2005/judgments.csv.gz", missing="").preferences
    assert p is not None
    assert (len(p), len(p.experts), len(p.comparisons)) == (11, 79, 2_810 - 5)  # five have no answer
    assert int(p.comparisons.tie.sum()) == 1_405
    columns = ["query", "item_a", "item_b", "winner"]
    votes = read(data_dir, "cast2019-preferences/*.pref.gz", format="csv", columns=columns).preferences
    assert votes is not None
    assert (len(votes), len(votes.comparisons)) == (171, 14_573)


def test_a_table_without_header(data_dir: Path) -> None:
    asked = {"format": "csv", "columns": ["expert", "winner", "loser"]}
    with pytest.raises(
        InputError, match=r"all_pair.txt.gz:11995: an item is compared with itself; self_votes='skip'"
    ):
        read(data_dir, "reading-level/all_pair.txt.gz", **asked)
    p = read(data_dir, "reading-level/all_pair.txt.gz", self_votes="skip", **asked).preferences
    assert p is not None
    assert (len(p.experts), len(p.index.items), len(p.comparisons)) == (624, 490, 12_728 - 2)


def test_elections(data_dir: Path) -> None:
    sushi = read(data_dir, "preflib/00014-sushi/00014-00000001.soc.gz").preferences
    assert sushi is not None
    assert (len(sushi.experts), len(sushi.index.items), sushi.lists.rows) == (5_000, 10, 50_000)
    tied = read(data_dir, "preflib/00014-sushi/*.toi.gz").preferences
    assert tied is not None
    last = tied.lists.starts[1:] - 1
    assert 1 in tied.lists.rank[last]  # some ballots tie all their items
    assert tied.lists.lengths[-1] == 10
    debian = read(data_dir, "preflib/00002-debian/00002-00000001.soi.gz").preferences
    assert debian is not None
    assert (len(debian.experts), len(debian.index.items)) == (475, 4)
    together = read(data_dir, "preflib/00052-f1seasons/*.soi.gz").preferences
    assert together is not None
    assert len(together) > 5
