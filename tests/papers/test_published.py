"""Published rows of the LETOR 4.0 rank-aggregation sets, to the printed digit."""

from __future__ import annotations

import pytest

from podium import formats, make
from podium.evaluate import evaluate
from podium_papers import reproduce

METRICS = [f"ndcg@{k}:letor" for k in range(1, 6)] + [f"p@{k}" for k in range(1, 6)] + ["map"]

# Volkovs & Zemel, CIKM 2012, table 3; BordaCount as listed on the LETOR site, which reads the lists upside down
RRF = {
    "mq2008-agg": [38.77, 40.73, 43.48, 45.70, 47.17, 44.89, 41.32, 38.82, 36.51, 34.13, 47.71],
    "mq2007-agg": [41.93, 42.66, 42.42, 42.73, 43.13, 48.70, 47.20, 44.84, 43.52, 42.52, 46.72],
}
BORDA_UPSIDE_DOWN = {
    "mq2008-agg": [23.68, 28.06, 30.80, 34.32, 37.13, 29.72, 30.42, 29.38, 29.75, 29.03, 39.45],
    "mq2007-agg": [19.02, 20.14, 20.81, 21.28, 21.88, 24.88, 25.24, 25.69, 25.80, 25.97, 32.52],
}
# An independent computation, as the mean over all queries: N@1..5 and MAP
BORDA_READ_RIGHT = [38.31, 40.59, 43.57, 45.80, 47.40, 47.79]

FACTS = {  # queries, documents, experts, documents ranked by nobody, labels 0/1/2
    "mq2008-agg": (784, 15211, 25, 0, [12279, 2001, 931]),
    "mq2007-agg": (1692, 69623, 21, 968, [51632, 14128, 3863]),
}


@pytest.fixture(scope="module")
def sets(data_dir):
    return {n: formats.read([data_dir / n / f"A{i}.txt.gz" for i in range(1, 6)]).dataset() for n in RRF}


def percent(values):
    return [round(100 * v, 2) for v in values]


@pytest.mark.data
@pytest.mark.parametrize("name", FACTS)
def test_the_files_are_read_whole(sets, name):
    data = sets[name]
    p = data.preferences
    nobody = len(p.index.items) - len(set(p.lists.item.tolist()))
    grades = [int((data.labels.grades == g).sum()) for g in range(3)]
    assert (len(p), len(p.index.items), len(p.experts), nobody, grades) == FACTS[name]
    assert [len(f.test) for f in data.folds()] == [int((data.part == (i + 4) % 5).sum()) for i in range(5)]


@pytest.mark.data
@pytest.mark.parametrize("name", RRF)
@pytest.mark.parametrize(("spec", "rows"), [("rrf", RRF), ("borda(reversed_lists=True)", BORDA_UPSIDE_DOWN)])
def test_published_row(sets, name, spec, rows):
    data = sets[name]
    consensus = make(spec).aggregate(data.preferences, ties="input")
    found = evaluate(consensus, data.labels, METRICS).mean_over_parts(data.part)
    assert percent(found.values()) == rows[name]


@pytest.mark.data
def test_borda_read_the_right_way(sets):
    data = sets["mq2008-agg"]
    consensus = make("borda").aggregate(data.preferences, ties="input")
    found = evaluate(consensus, data.labels, [*METRICS[:5], "map"]).mean()
    assert percent(found.values()) == BORDA_READ_RIGHT


# External bars for the learned methods, N@5 and MAP: LR-logR as published, and for the CRF the figures in public
# copies of the authors' code (MQ2008-agg); on MQ2007-agg the paper finds it comparable to LR-logR. No figures of the
# fused model exist elsewhere: it must not be below LR-logR, and not more than 3 * BOUND above it.
LEARNED = {
    ("mq2008-agg", "LR-logR"): (50.69, 50.32),
    ("mq2008-agg", "CRF"): (51.03, 50.41),
    ("mq2008-agg", "CRF as in the authors' code"): (51.03, 50.41),
    ("mq2008-agg", "Fused"): (50.69, 50.32),
    ("mq2008-agg", "Fused, all views"): (50.69, 50.32),
    ("mq2008-agg", "Fused + item features"): (50.69, 50.32),
    ("mq2007-agg", "LR-logR"): (47.02, 50.39),
    ("mq2007-agg", "CRF"): (47.02, 50.39),
    ("mq2007-agg", "Fused"): (47.02, 50.39),
    ("mq2007-agg", "Fused, all views"): (47.02, 50.39),
}
BOUND = 0.8  # more than three standard deviations over seeds, which are at most 0.25 (docs/learning.md)


@pytest.mark.data
@pytest.mark.parametrize(("name", "row"), LEARNED)
def test_learned_rows_within_bounds_of_their_references(data_dir, name, row):
    fused = row.startswith("Fused")
    table = "fused" if fused else "table3" if row == "LR-logR" else "crf"
    found = reproduce(table, data_dir, only=[row], sets=[name]).sets[0].rows[0]
    ours = found.ours[4], found.ours[10]
    low, high = (0.0, 3 * BOUND) if fused else (BOUND, BOUND)
    for mine, reference in zip(ours, LEARNED[name, row], strict=True):
        assert reference - low <= mine <= reference + high
