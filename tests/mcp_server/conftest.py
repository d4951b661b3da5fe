"""A folder of runs, judgements, votes and ratings, as the tools find them."""

from __future__ import annotations

import random

import pytest

from podium.data.demo import demo
from podium.formats import write
from podium.formats.base import Content


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Runs of five engines with their judgements, votes on four models, and a file outside the folder."""
    place = tmp_path_factory.mktemp("served")
    inside = place / "data"
    (inside / "runs").mkdir(parents=True)
    data = demo(40)
    for expert in data.preferences.experts.tolist()[:5]:
        lines = [
            f"{query} Q0 {item} {rank} {1000 - rank} {expert}\n"
            for query in data.preferences.queries
            for item, rank in list_ranks(data.preferences, query, expert)
        ]
        (inside / "runs" / f"{expert}.run").write_text("".join(lines))
    write(Content(labels=data.labels), inside / "qrels.txt", "qrels")
    draw, strength = random.Random(4), {"alpha": 3, "beta": 2, "gamma": 1, "delta": 0.5}
    rows = []
    for _ in range(400):
        first, second = draw.sample(sorted(strength), 2)
        chance = strength[first] / (strength[first] + strength[second])
        winner, loser = (first, second) if draw.random() < chance else (second, first)
        rows.append(f"judge{draw.randrange(5)},{winner},{loser}\n")
    (inside / "votes.csv").write_text("expert,winner,loser\n" + "".join(rows))
    (inside / "broken.run").write_text("q1 Q0 a 1 2 bm25\nq1 Q0 b zero 1 bm25\n")
    (place / "secret.run").write_text("q1 Q0 hidden 1 2 bm25\n")
    (inside / "link.run").symlink_to(place / "secret.run")
    (inside / "way_out").symlink_to(place)
    return inside


def list_ranks(preferences, query, expert):
    """Items and ranks of one expert's list, best first."""
    lists, index = preferences.lists, preferences.index
    for number in range(len(lists.expert)):
        here = index.queries[int(lists.query_of_list[number])], preferences.experts[int(lists.expert[number])]
        if here == (query, expert):
            rows = slice(lists.starts[number], lists.starts[number + 1])
            pairs = zip(lists.item[rows].tolist(), lists.rank[rows].tolist(), strict=True)
            return sorted(((index.items[slot], rank) for slot, rank in pairs), key=lambda pair: pair[1])
    return []
