"""Compiled readers of text, numbering of items and ranking of columns against plain Python on random inputs."""

from __future__ import annotations

import itertools
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from podium.kernels import id_joins, json_elements, local_items, positional_rank, text_columns
from reference import array_kernels as arrays
from reference.fuzz_inputs import sample_size, sample_starts

ALPHABET = ["a", "b", "doc", "clueweb09-", "\x7f", "é", "日", "7", "0"]


def sample_texts(random, rows, distinct=None):
    """Short ids with common prefixes, many of them equal."""
    count = int(random.integers(1, 40)) if distinct is None else distinct
    parts = random.integers(0, len(ALPHABET), (count, 4))
    lengths = random.integers(1, 5, count)
    texts = [
        "".join(ALPHABET[k] for k in row[:n]) for row, n in zip(parts.tolist(), lengths.tolist(), strict=True)
    ]
    return [texts[k] for k in random.integers(0, count, rows).tolist()]


def join_texts(texts):
    """UTF-8 bytes and offsets."""
    data = [t.encode() for t in texts]
    offsets = np.concatenate(([0], np.cumsum([len(d) for d in data]))).astype(np.int64)
    return np.frombuffer(b"".join(data), np.uint8), offsets


def sample_number(random):
    """A number as files write it, sometimes with more digits than a short parser takes."""
    value = float(random.choice([0.0, random.normal(), 1e300 * random.random(), random.integers(-9, 9)]))
    return str(
        random.choice([f"{value:.3f}", f"{value:.17g}", f"{value:e}", repr(value), f"+{abs(value):.1f}"])
    )


def sample_run_lines(random, rows):
    """Lines of a TREC run in runs of one query and expert, with blank lines and odd spacing."""
    query, expert = sample_texts(random, rows, 5), sample_texts(random, rows, 3)
    stay = random.random(rows) < 0.8
    for k in range(1, rows):
        if stay[k]:
            query[k], expert[k] = query[k - 1], expert[k - 1]
    items, ranks = sample_texts(random, rows, 30), random.integers(0, 1000, rows).tolist()
    numbers = [sample_number(random) for _ in range(min(rows, 50))]
    fields = [
        (q, "Q0", i, str(r), numbers[k % 50], e)
        for k, (q, i, r, e) in enumerate(zip(query, items, ranks, expert, strict=True))
    ]
    gaps = [str(random.choice([" ", "\t", "  "])) for _ in range(7)]
    lines = [gaps[k % 7].join(f) for k, f in enumerate(fields)]
    for k in range(0, rows, 11):
        lines[k] = f"\n {lines[k]}\r"
    return "\n".join(lines) + ("\n" if random.random() < 0.5 else ""), fields


def cut_spans(data, at, length):
    return [bytes(data[a : a + n]).decode() for a, n in zip(at.tolist(), length.tolist(), strict=True)]


def test_lines_and_spans(random):
    text, fields = sample_run_lines(random, sample_size(random))
    data = np.frombuffer(text.encode(), np.uint8)
    shape = text_columns.LineShape(6, 0, 2, 3, 4, 5)
    rows = text_columns.tokenize_lines(data, shape, np.zeros(1, np.int64), 0)
    assert cut_spans(data, rows.item_at, rows.item_len) == [f[2] for f in fields]
    assert rows.rank.tolist() == [int(f[3]) for f in fields]
    slow, buffer, offsets = text_columns.find_slow_scores(data, rows, shape)
    assert cut_spans(buffer, offsets[:-1], np.diff(offsets)) == [fields[k][4] for k in slow.tolist()]
    read = np.setdiff1d(np.arange(len(fields)), slow)
    assert rows.score[read].tolist() == [float(fields[k][4]) for k in read.tolist()]
    keys = [(f[0], f[5]) for f in fields]
    begins = [k for k in range(len(keys)) if k == 0 or keys[k] != keys[k - 1]]
    # several threads begin runs of their own
    assert set(begins) <= set(rows.run_rows[:-1].tolist())
    assert len(rows.run_rows) - 1 <= len(begins) + 2
    first = rows.run_rows[:-1].tolist()
    assert cut_spans(data, rows.query_at, rows.query_len) == [keys[k][0] for k in first]
    assert cut_spans(data, rows.expert_at, rows.expert_len) == [keys[k][1] for k in first]
    codes, firsts = text_columns.encode_spans(data, rows.item_at, rows.item_len.astype(np.int64))
    seen = {}
    assert codes.tolist() == [seen.setdefault(f[2], len(seen)) for f in fields]
    assert [fields[k][2] for k in firsts.tolist()] == list(seen)


def test_first_bad_line(random):
    lines = [f"q Q0 d{k} {k} {k}.5 e" for k in range(sample_size(random, 300) + 1)]
    bad = int(random.integers(len(lines)))
    lines[bad] = str(
        random.choice(["q Q0 d 1 2", "q Q0 d x 2 e", "q Q0 d -1 2 e", "q Q0 d 1.5 2 e", "q Q0 d 1 2 e f"])
    )
    data = np.frombuffer("\n".join(lines).encode(), np.uint8)
    shape = text_columns.LineShape(6, 0, 2, 3, 4, 5)
    found = text_columns.tokenize_lines(data, shape, np.zeros(1, np.int64), 0)
    assert found == sum(len(line) + 1 for line in lines[:bad])


def test_feature_cells(random):
    count = sample_size(random, 500)
    lines, cells = [], []
    for _ in range(count):
        columns = np.cumsum(random.integers(1, 20, int(random.integers(0, 12)))).tolist()
        values = ["NULL" if random.random() < 0.1 else f"{random.normal():.6f}" for _ in columns]
        cells.append(list(zip(columns, values, strict=True)))
        lines.append(" ".join(f"{c}:{v}" for c, v in cells[-1]))
    data = np.frombuffer("\n".join(lines).encode(), np.uint8)
    widths, column, value = text_columns.parse_cells(data, max(count, 1))
    assert widths.tolist()[:count] == [len(c) for c in cells]
    assert column.tolist() == [c for line in cells for c, _ in line]
    expected = [math.nan if v == "NULL" else float(v) for line in cells for _, v in line]
    np.testing.assert_array_equal(value, expected)
    if count and column.size:
        worse = "\n".join([*lines, "2:1 2:3"])
        assert text_columns.parse_cells(np.frombuffer(worse.encode(), np.uint8), count + 1) is None


def test_slots_and_sorted_lists_of_a_file(random):
    text, fields = sample_run_lines(random, max(sample_size(random), 1))
    data = np.frombuffer(text.encode(), np.uint8)
    rows = text_columns.tokenize_lines(
        data, text_columns.LineShape(6, 0, 2, 3, 4, 5), np.zeros(1, np.int64), 0
    )
    rows = rows._replace(score=random.integers(-3, 3, len(fields)).astype(float))
    score = rows.score.tolist()  # sorting may write to the columns of the file
    query_code, query_first = text_columns.encode_spans(data, rows.query_at, rows.query_len)
    queries = text_columns.group_runs(query_code, len(query_first), rows.run_rows)
    items = text_columns.index_items(data, rows, queries)
    names = list(dict.fromkeys(f[0] for f in fields))
    ids = cut_spans(items.buffer, items.offsets[:-1], np.diff(items.offsets))
    expected = [sorted({f[2] for f in fields if f[0] == q}, key=str.encode) for q in names]
    assert [ids[a:b] for a, b in zip(items.starts[:-1], items.starts[1:], strict=True)] == expected
    assert items.slot.tolist() == [expected[names.index(f[0])].index(f[2]) for f in fields]
    pair = query_code * len(fields) + text_columns.encode_spans(data, rows.expert_at, rows.expert_len)[0]
    distinct, lists = np.unique(pair, return_inverse=True)
    grouped = text_columns.group_runs(lists, len(distinct), rows.run_rows)
    by = int(random.integers(3))
    found = text_columns.sort_lists(rows, items, grouped, distinct // len(fields), by)
    key = {(q, e): [] for q, e in dict.fromkeys((f[0], f[5]) for f in fields)}
    for k, f in enumerate(fields):
        base = int(items.starts[names.index(f[0])])
        key[f[0], f[5]].append((int(f[3]), score[k], base + int(items.slot[k])))
    assert_sorted_lists(found, [key[pair] for pair in sort_pairs(fields)], by)


def sort_pairs(fields):
    """(query, expert) by first appearance of the query, then of the expert."""
    codes = [{name: n for n, name in enumerate(dict.fromkeys(f[c] for f in fields))} for c in (0, 5)]
    return sorted({(f[0], f[5]) for f in fields}, key=lambda pair: (codes[0][pair[0]], codes[1][pair[1]]))


def assert_sorted_lists(found, lists, by):
    """Each list by rank, or by falling score where its ranks contradict the scores; ties by slot."""
    at, repeats = 0, 0
    for n, rows in enumerate(lists):
        ranked = sorted(rows, key=lambda r: (r[0], r[2]))
        ups = any(b[1] > a[1] or (a[0] == b[0] and a[1] != b[1]) for a, b in itertools.pairwise(ranked))
        disagree = by == 0 and (ups or ranked[0][0] < 1)
        by_score = by == 2 or disagree
        ordered = sorted(rows, key=lambda r: (-r[1], r[2])) if by_score else ranked
        here = slice(at, at + len(rows))
        assert found.item[here].tolist() == [r[2] for r in ordered]
        # equal keys keep the order of the file, so scores of repeated items may be in any order
        if len({r[2] for r in rows}) == len(rows):
            assert found.score[here].tolist() == [r[1] for r in ordered]
        places = (
            [1 + sum(r[1] > o[1] for r in rows) for o in ordered] if by_score else [r[0] for r in ordered]
        )
        assert found.rank[here].tolist() == places
        assert bool(found.disagree[n]) == disagree
        repeats += len(rows) - len({r[2] for r in rows})
        at += len(rows)
    assert (found.repeat is None) == (repeats == 0)


@pytest.mark.parametrize("kind", ["integers", "texts", "coded texts"])
def test_numbers_of_items(random, kind):
    rows = sample_size(random)
    starts = sample_starts(random, rows)
    values = random.integers(-50, 50, rows).astype(random.choice([np.int32, np.int64]))
    if kind != "integers":
        texts = sample_texts(random, rows)
        names = texts if kind == "texts" else list(dict.fromkeys(texts))
        codes = None if kind == "texts" else np.array([names.index(t) for t in texts], np.int32)
        item, keys = local_items.TextColumn(codes, *join_texts(names)), [t.encode() for t in texts]
    else:
        item, keys = values, values.tolist()
    found = local_items.number_items(starts, item)
    slots, firsts, arrival = [], [], []
    for q in range(len(starts) - 1):
        here = keys[starts[q] : starts[q + 1]]
        order = sorted(set(here))
        slots += [order.index(k) for k in here]
        came = list(dict.fromkeys(here))
        arrival += [came.index(k) for k in order]
        firsts += [int(starts[q]) + here.index(k) for k in order]
    assert found.slot.tolist() == slots
    assert found.arrival.tolist() == arrival
    assert [keys[r] for r in found.first_row.tolist()] == [keys[r] for r in firsts]


def test_starts_of_lists(random):
    rows = max(sample_size(random), 1)
    starts = np.unique(sample_starts(random, rows))  # queries have rows
    expert = random.integers(0, 2, rows).astype(random.choice([np.int32, np.int64]))
    begins = {*starts.tolist(), *(1 + np.flatnonzero(np.diff(expert))).tolist()}
    assert local_items.find_list_starts(starts, expert).tolist() == sorted(begins)


def test_lists_in_order(random):
    lists = []
    for q in range(int(random.integers(1, 6))):
        for e in np.flatnonzero(random.random(5) < 0.7).tolist() or [0]:
            held = random.permutation(40)[: int(random.integers(1, 40))].tolist()
            lists.append((q, e, held))
    queries = [q for q, _, held in lists for _ in held]
    row_starts = np.searchsorted(queries, np.arange(queries[-1] + 2)).astype(np.int64)
    row_starts = np.unique(row_starts)
    item = np.array([i for *_, held in lists for i in held])
    list_starts = np.concatenate(([0], np.cumsum([len(held) for *_, held in lists]))).astype(np.int64)
    expert = np.array([e for _, e, _ in lists], np.int32)
    numbers = local_items.number_items(row_starts, item)
    by_score = random.random() < 0.5
    rank = np.concatenate([np.arange(1, len(held) + 1) for *_, held in lists]).astype(np.int32)
    score = -rank.astype(float)
    broken = random.random() < 0.3
    if broken:
        k = int(random.integers(len(rank)))
        rank[k], score[k] = 0, np.inf if rank[k] > 1 else np.nan
    found = local_items.fill_lists(
        row_starts, numbers, list_starts, expert, None if by_score else rank, score if by_score else None
    )
    ranks = positional_rank.compute_ranks_by_score(list_starts, score, None)
    agreed = positional_rank.compute_ranks_by_score(list_starts, score, np.abs(rank))
    if broken:
        assert found is None
        assert ranks is None
        assert agreed is None
        return
    query = np.repeat(np.arange(len(row_starts) - 1), np.diff(row_starts))
    np.testing.assert_array_equal(found.item, numbers.starts[query] + numbers.slot)
    np.testing.assert_array_equal(found.rank, rank)
    np.testing.assert_array_equal(ranks, rank)
    np.testing.assert_array_equal(agreed, rank)


def test_ranking_of_columns(random):
    count, most = int(random.integers(1, 8)), int(random.choice([10, 100, 400]))
    sizes = random.integers(1, 8, count)  # lists of every query
    held = [random.permutation(most)[: int(random.integers(1, most))] for _ in range(int(sizes.sum()))]
    list_starts = np.concatenate(([0], np.cumsum([len(h) for h in held]))).astype(np.int64)
    query_lists = np.concatenate(([0], np.cumsum(sizes)))
    row_starts = list_starts[query_lists]
    item, rank = np.concatenate(held), np.concatenate([np.arange(len(h)) for h in held]).astype(np.int32)
    points, weight = 1 / (60 + np.arange(most + 1.0)), random.integers(0, 3, len(held)).astype(float)
    kind, top = int(random.integers(3)), None if random.random() < 0.5 else int(random.integers(1, 50))
    names = [f"d{k:06d}" for k in range(most)]
    column = item
    if kind:
        texts = names if kind == 1 else [names[i] for i in item.tolist()]
        column = local_items.TextColumn(item.astype(np.int32) if kind == 1 else None, *join_texts(texts))
    found = positional_rank.rank_by_points(row_starts, list_starts, column, rank, points, weight, top)
    at = 0
    for q in range(count):
        rows, lists = slice(row_starts[q], row_starts[q + 1]), slice(query_lists[q], query_lists[q + 1] + 1)
        ids, slot = np.unique(item[rows], return_inverse=True)
        given = list_starts[lists] - row_starts[q], slot.astype(np.int32), rank[rows], points
        total = arrays.sum_points(*given, weight[query_lists[q] : query_lists[q + 1]], len(ids))
        scores, order, tied = arrays.rank_order(total, np.array([0, len(ids)]))
        here = slice(at, at + int(found.counts[q]))
        shown = slice(0, len(ids) if top is None else top)
        got = item[found.item[here]] if kind == 2 else found.item[here]
        np.testing.assert_array_equal(got, ids[order][shown])
        np.testing.assert_array_equal(found.score[here], scores[order][shown])
        np.testing.assert_array_equal(found.tied[here], tied[shown])
        assert found.rank[here].tolist() == list(range(1, int(found.counts[q]) + 1))
        at += int(found.counts[q])
    repeated = np.append(item, item[-1]), np.append(rank, rank[-1] + 1)
    list_starts[-1] += 1
    row_starts = list_starts[query_lists]
    assert positional_rank.rank_by_points(row_starts, list_starts, *repeated, points, weight, top) is None


def test_ids_of_another_index(random):
    sides = []
    for _ in range(2):
        counts = random.integers(0, 2 + sample_size(random, 1_000) // 4, 4)
        ids = [sorted(set(sample_texts(random, int(n), 200)), key=str.encode) for n in counts]
        buffer, offsets = join_texts([t for one in ids for t in one])
        starts = np.concatenate(([0], np.cumsum([len(one) for one in ids]))).astype(np.int64)
        sides.append((ids, starts, SimpleNamespace(buffer=buffer, offsets=offsets)))
    (mine, starts, own), (theirs, other_starts, other) = sides
    match = random.integers(-1, 4, 4)
    found = id_joins.match_text_ids(match, starts, own, other_starts, other)
    expected = [
        int(other_starts[m]) + theirs[m].index(t) if m >= 0 and t in theirs[m] else -1
        for ids, m in zip(mine, match.tolist(), strict=True)
        for t in ids
    ]
    assert found.tolist() == expected


def sample_json(random, depth=0):
    """A value with what could be taken for the end of an element: commas, brackets, quotes and backslashes."""
    kind = int(random.integers(0, 6 if depth < 3 else 4))
    if kind == 4:
        return [sample_json(random, depth + 1) for _ in range(int(random.integers(0, 4)))]
    if kind == 5:
        keys = [str(k) + str(random.choice(["", '"', "\\", "}"])) for k in range(int(random.integers(0, 4)))]
        return {key: sample_json(random, depth + 1) for key in keys}
    text = "".join(random.choice(['"', "\\", ",", "]", "}", "[", "{", "a", "é"], int(random.integers(0, 9))))
    return [None, int(random.integers(-9, 9)), random.random(), text][kind]


def test_elements_of_arrays(random):
    values = [sample_json(random) for _ in range(sample_size(random, 500))]
    parts = [json.dumps(v, ensure_ascii=bool(random.integers(2))).encode() for v in values]
    data = np.frombuffer(b"[" + b",".join(parts) + b"]", np.uint8)
    at, elements = 1, []
    while len(elements) < max(len(parts), 1):
        ends = json_elements.find_element_ends(data, at, int(random.integers(0, 2000)))
        assert len(ends) > 0
        for end in ends.tolist():
            elements.append(bytes(data[at:end]))
            at = end + 1
    assert elements == (parts or [b""])
    assert at == len(data)
