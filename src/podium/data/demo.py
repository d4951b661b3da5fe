"""The embedded data set: synthetic, reproducible, with the structure of a metasearch collection.

Twenty-five engines answer 200 queries. Each observes document usefulness with its own noise, indexes only
part of the web and truncates its list, so that about 65% of the (document, engine) cells are empty; ranks
have gaps because engines also return documents outside the judged pool. Engines of one family have correlated
errors. On some queries a lure (a popular but useless page) misleads the weaker families and the majority.
"""

from __future__ import annotations

import numpy as np

from podium.data.dataset import Dataset
from podium.data.labels import Labels
from podium.data.preferences import Preferences

__all__ = ["ENGINES", "MISLED_SHARE", "demo"]

#            name, accuracy, family, fraction of the web it indexes, list length
ENGINES = [
    *[(f"atlas-{i}", 1.5 - 0.10 * i, "atlas", 0.80, 62) for i in range(1, 6)],
    *[(f"beacon-{i}", 1.2 - 0.08 * i, "beacon", 0.80, 62) for i in range(1, 8)],
    *[(f"comet-{i}", 0.9 - 0.06 * i, "comet", 0.75, 66) for i in range(1, 9)],
    *[(f"drift-{i}", 0.3, "drift", 0.70, 72) for i in range(1, 4)],
    ("echo-1", -0.2, "echo", 0.60, 48),
    ("echo-2", -0.4, "echo", 0.60, 48),
]
WEB = 300  # documents an engine could return for a query
MISLED_SHARE = 0.2
LURED = {"beacon": 0.7, "comet": 1.5, "drift": 1.5}  # how strongly a family follows the lure on such queries


def demo(queries: int = 200, seed: int = 7) -> Dataset:
    """Preferences, labels 0..2 and five parts; identical for the same arguments on every machine.

    >>> demo(queries=10)
    Dataset(demo, Preferences(10 queries, ... items, 25 experts, ... rows), Labels(10 queries, ...), 5 parts)
    """
    # only the legacy generator guarantees a frozen stream
    random = np.random.RandomState(seed)
    rows: list[tuple[str, str, str, int]] = []
    graded: list[tuple[str, str, float]] = []
    for q in range(queries):
        query = f"q{q + 1:03d}"
        # log-normal pool sizes: mostly near 18 documents, with a long tail
        size = int(np.clip(np.exp(random.normal(2.9, 0.65)), 6, 120))
        useful = np.where(np.arange(WEB) < size, random.normal(0.9, 1.0, WEB), random.normal(-0.3, 0.9, WEB))
        misled = random.uniform() < MISLED_SHARE
        # negatively correlated with usefulness, so that following it costs quality
        lure = random.normal(0, 1, WEB) - 0.3 * useful
        taste = {family: random.normal(0, 1, WEB) for family in dict.fromkeys(e[2] for e in ENGINES)}
        for engine, sight, family, coverage, length in ENGINES:
            view = sight * useful + 0.5 * taste[family] + random.normal(0, 0.8, WEB)
            if misled:
                view = view + LURED.get(family, 0.0) * (lure - useful)
            indexed = np.flatnonzero(random.uniform(size=WEB) < coverage)
            listed = indexed[np.argsort(-view[indexed], kind="stable")][:length]
            ranks = np.zeros(WEB)  # 0: not listed
            ranks[listed] = np.arange(1, len(listed) + 1)
            rows += [(query, engine, f"{query}-d{d:03d}", int(ranks[d])) for d in range(size) if ranks[d]]
        # judges differ in strictness by query and observe usefulness with noise
        cut = 1.75 + random.normal(0, 0.25)
        seen = useful[:size] + random.normal(0, 0.3, size)
        graded += [
            (query, f"{query}-d{d:03d}", float(np.sum(seen[d] > [cut, cut + 0.8]))) for d in range(size)
        ]
    columns = list(zip(*rows, strict=True))
    labels = list(zip(*graded, strict=True))
    preferences = Preferences.from_rows(
        *columns[:3], rank=columns[3], candidates=(labels[0], labels[1]), unlisted="below"
    )
    part = (np.arange(queries) % 5).astype(np.int32) if queries >= 5 else None
    return Dataset(preferences, Labels.from_rows(*labels), part=part, name="demo")
