"""Random inputs of kernels: empty, tiny and large, with ties, gaps and zero weights."""

from __future__ import annotations

import numpy as np

from podium.kernels import pairwise_votes


def sample_size(random, most=5_000):
    """0 to `most` rows: the two ends and 1 and 2 in a tenth of the cases, else all orders of magnitude alike."""
    if random.random() < 0.1:
        return int(random.choice([0, 1, 2, most]))
    return int((most + 1) ** random.random()) - 1


def sample_starts(random, rows, segments=None):
    """Offsets of segments, some of them empty."""
    count = int(random.integers(1, 40)) if segments is None else segments
    return np.concatenate(([0], np.sort(random.integers(0, rows + 1, count - 1)), [rows])).astype(np.int64)


def sample_short_starts(random, rows, longest=300):
    """Offsets of segments that are few and short enough for a reference that compares all their pairs."""
    return sample_starts(random, rows, 1 + 3 * rows // longest + int(random.integers(0, 10)))


def sample_scores(random, rows):
    """Scores of several kinds: distinct, with many ties, with one outlier, nearly equal."""
    kind = int(random.integers(4))
    if kind == 0:
        return random.normal(size=rows)
    if kind == 1:
        return random.integers(-3, 4, rows).astype(np.float64)
    if kind == 2:
        scores = random.normal(size=rows)
        scores[: rows // 50] *= 1e12
        return scores
    return 1.0 + random.integers(0, 4, rows) * 1e-13 + random.integers(0, 3, rows)


def sample_votes(random, most_items=60):
    """Up to 5,000 rows of lists and comparisons in a few queries; weights are integers, some of them 0."""
    queries = int(random.integers(1, 5))
    slots = sample_starts(random, int(random.integers(2, most_items * queries)), queries)
    lists = random.integers(0, 2 + sample_size(random, 2_500) // (15 * queries), queries)
    votes = random.integers(0, 2 + sample_size(random, 2_500) // queries, queries)
    lists[np.diff(slots) == 0] = votes[np.diff(slots) < 2] = 0
    query_of_list, query_of_vote = np.repeat(np.arange(queries), lists), np.repeat(np.arange(queries), votes)
    item, rank, lengths = [], [], []
    for q in query_of_list:
        held = slots[q] + random.permutation(slots[q + 1] - slots[q])[: int(random.integers(0, 30))]
        item.append(held)
        rank.append(np.sort(random.integers(1, 1 + random.choice([5, 10**6]), len(held))))
        lengths.append(len(held))
    size = np.diff(slots)[query_of_vote]
    winner = random.integers(0, np.maximum(size, 1))
    loser = (winner + 1 + random.integers(0, np.maximum(size - 1, 1))) % np.maximum(size, 1)
    return pairwise_votes.Votes(
        slots=slots,
        query_starts=np.concatenate(([0], np.cumsum(lists))),
        starts=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        item=np.concatenate((*item, np.zeros(0))).astype(np.int32),
        rank=np.concatenate((*rank, np.zeros(0))).astype(np.int32),
        list_weight=random.integers(0, 4, len(lengths)).astype(np.float64),
        vote_starts=np.concatenate(([0], np.cumsum(votes))),
        winner=(slots[query_of_vote] + winner).astype(np.int32),
        loser=(slots[query_of_vote] + loser).astype(np.int32),
        tie=random.random(len(winner)) < 0.2,
        vote_weight=random.integers(0, 3, len(winner)).astype(np.float64),
        below=bool(random.integers(2)),
    )
