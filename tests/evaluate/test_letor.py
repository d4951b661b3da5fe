"""The published RRF rows of the MQ2007-agg and MQ2008-agg tables, to the printed digit."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from podium.aggregators.positions import ReciprocalRankFusion
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.evaluate import evaluate

METRICS = [f"ndcg@{k}:letor" for k in range(1, 6)] + [f"p@{k}" for k in range(1, 6)] + ["map"]
PUBLISHED = {
    "mq2008-agg": [38.77, 40.73, 43.48, 45.70, 47.17, 44.89, 41.32, 38.82, 36.51, 34.13, 47.71],
    "mq2007-agg": [41.93, 42.66, 42.42, 42.73, 43.13, 48.70, 47.20, 44.84, 43.52, 42.52, 46.72],
}


def read_parts(folder):
    """The lists, the labels and the part of each query."""
    rows, judged, part = [], [], {}
    for number in range(5):
        with gzip.open(folder / f"A{number + 1}.txt.gz", "rt") as lines:
            for line in lines:
                body, _, note = line.partition("#")
                grade, query, *columns = body.split()
                item = note.split()[2] if note.split()[:2] == ["docid", "="] else note.strip()
                part[query] = number
                judged.append((query, item, float(grade)))
                rows += [
                    (query, int(e), item, int(v)) for e, v in (c.split(":") for c in columns) if v != "NULL"
                ]
    q, e, i, r = zip(*rows, strict=True)
    candidates = ([j[0] for j in judged], [j[1] for j in judged])
    preferences = Preferences.from_rows(q, e, i, rank=np.array(r), candidates=candidates)
    return preferences, Labels.from_rows(*zip(*judged, strict=True)), part


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_rrf_row(name, data_dir):
    preferences, labels, part = read_parts(data_dir / name)
    consensus = ReciprocalRankFusion(k=60).aggregate(preferences, ties="input")
    found = evaluate(consensus, labels, METRICS).mean_over_parts(part)
    assert [round(100 * v, 2) for v in found.values()] == PUBLISHED[name]
