"""Files of 30 shapes are detected and read as they are, with the meaning that was derived by hand."""

from __future__ import annotations

import contextlib
import json
import warnings

import numpy as np
import pytest

from file_shapes import MORE_SHAPES, SHAPES
from podium import formats
from podium.core.errors import InputError, PodiumWarning
from podium.core.registry import recipes
from podium.formats.recipes.records import find_first_record, iterate_records
from podium.storage.files import open_source

EVERY = [*SHAPES, *MORE_SHAPES]


def read_quietly(path, *names, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodiumWarning)
        return formats.read(path, *names, **options)


def describe_votes(p):
    """Rows of votes; a tie names its items in order of their ids."""
    v, items = p.comparisons, p.index.items.tolist()
    queries, experts = p.queries.tolist(), p.experts.tolist()
    for q, e, w, o, tie, weight in zip(
        v.query_of_row, v.expert, v.winner, v.loser, v.tie, v.weight, strict=True
    ):
        pair = (*sorted((items[w], items[o])),) if tie else (items[w], items[o])
        middle = (pair[0], "=", pair[1]) if tie else pair
        yield (queries[q], experts[e], *middle, weight)


def describe_lists(p, scored):
    """Rankings as groups of tied items, or rows of ratings."""
    t, items = p.lists, p.index.items.tolist()
    for k in range(len(t)):
        rows = slice(t.starts[k], t.starts[k + 1])
        place = p.queries.tolist()[int(t.query_of_list[k])], p.experts.tolist()[int(t.expert[k])]
        scores = np.full(rows.stop - rows.start, np.nan) if t.score is None else t.score[rows]
        if np.isnan(scores).any():
            if not scored:
                ranks = t.rank[rows].tolist()
                groups = [
                    sorted(items[i] for i, r in zip(t.item[rows], ranks, strict=True) if r == rank)
                    for rank in sorted(set(ranks))
                ]
                yield (*place, groups)
        elif scored:
            yield from ((*place, items[i], s) for i, s in zip(t.item[rows], scores, strict=True))


def sort_rows(rows):
    return sorted(rows, key=repr)


@pytest.mark.parametrize("shape", EVERY, ids=lambda shape: shape.title)
def test_a_file_is_read_as_it_is(shape, tmp_path):
    path = shape.write(tmp_path)
    assert formats.sniff(path) == shape.format
    content = read_quietly(path, **shape.options)
    p = content.preferences
    expected = [
        (row[0], row[1], min(row[2], row[4]), "=", max(row[2], row[4]), row[5]) if "=" in row else row
        for row in shape.votes
    ]
    groups = [(q, e, [sorted(group) for group in order]) for q, e, order in shape.rankings]
    assert sort_rows([] if p is None else describe_votes(p)) == sort_rows(expected)
    assert sort_rows([] if p is None else describe_lists(p, scored=False)) == sort_rows(groups)
    ratings = [(*row[:3], float(row[3])) for row in shape.ratings]
    assert sort_rows([] if p is None else describe_lists(p, scored=True)) == sort_rows(ratings)
    labels = content.labels
    judged = [] if labels is None else np.flatnonzero(~np.isnan(labels.grades)).tolist()
    rows = [
        (labels.queries.tolist()[int(labels.index.query_of_slot[k])], labels.index.items.tolist()[k], labels.grades[k])
        for k in judged
    ]  # fmt: skip
    assert sort_rows(rows) == sort_rows([(q, i, float(g)) for q, i, g in shape.labels])
    for words in shape.summary:
        assert words in content.summary
    assert "\n" not in content.summary
    assert bool(content.summary) == (shape.format not in ("jsonl", "preflib"))


def test_the_table_has_thirty_shapes_and_every_recipe():
    assert len(SHAPES) == 30
    assert {shape.format for shape in EVERY} >= set(recipes.all())


@pytest.mark.parametrize("shape", EVERY, ids=lambda shape: shape.title)
def test_no_file_has_the_marks_of_two_recipes(shape, tmp_path):
    source = open_source(shape.write(tmp_path))
    record = find_first_record(source, source.head())
    if record is not None:
        names = [
            name
            for name, cls in recipes.all().items()
            if cls().has_marks(record.fields) and cls().matches(record.fields)
        ]
        tables = [name for name in names if record.container in recipes.get(name).containers]
        assert len(tables) <= 1, tables


@pytest.mark.parametrize(
    "shape", [s for s in EVERY if s.format in recipes.all() and s.file.endswith(("json", "jsonl"))],
    ids=lambda shape: shape.title,
)  # fmt: skip
def test_lines_and_arrays_say_the_same(shape, tmp_path):
    text = shape.write(tmp_path).read_text()
    whole = text.lstrip().startswith("[") or (shape.file.endswith(".json"))
    records = json.loads(text) if whole else [json.loads(line) for line in text.splitlines()]
    records = records if isinstance(records, list) else [records]
    one = read_quietly(shape.write(tmp_path))
    stem = shape.file.rpartition(".")[0]
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / f"{stem}.jsonl").write_text("\n".join(json.dumps(r) for r in records))
    (tmp_path / "lines" / f"{stem}.json").write_text(json.dumps(records, indent=1))
    for name in (f"{stem}.jsonl", f"{stem}.json"):
        other = read_quietly(tmp_path / "lines" / name)
        assert other.preferences == one.preferences
        assert (other.labels is None) == (one.labels is None)
        assert other.summary == one.summary


@pytest.mark.parametrize("shape", EVERY, ids=lambda shape: shape.title)
def test_a_cut_file_is_refused_or_read_but_never_crashes(shape, tmp_path):
    raw = shape.write(tmp_path).read_bytes()
    for end in range(1, len(raw), max(len(raw) // 40, 1)):
        (tmp_path / f"cut_{shape.file}").write_bytes(raw[:end])
        with contextlib.suppress(InputError):
            read_quietly(tmp_path / f"cut_{shape.file}")


@pytest.mark.parametrize(
    "shape", [s for s in EVERY if s.format in recipes.all() and s.file.endswith(("jsonl", "csv", "tsv"))],
    ids=lambda shape: shape.title,
)  # fmt: skip
def test_parquet_says_the_same(shape, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source = open_source(shape.write(tmp_path))
    records = [dict(record.fields) for record in iterate_records(source)]
    if shape.format == "wide":
        records = [{k: v if k == "model" else float(v) if v else None for k, v in r.items()} for r in records]
    path = tmp_path / f"{source.stem}.parquet"
    pq.write_table(pa.Table.from_pylist(records), path)
    one, other = read_quietly(shape.write(tmp_path)), read_quietly(path)
    assert formats.sniff(path) == shape.format
    assert other.preferences == one.preferences
    assert other.summary == one.summary


def test_two_files_may_share_their_name_only_if_they_name_their_experts(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.json").write_text('{"q": {"a": 1.5}}')
        (tmp_path / folder / "results.json").write_text(
            json.dumps({"results": {"arc": {"acc,none": 0.5}}, "configs": {}, "model_name": folder})
        )
    runs, results = ([tmp_path / f / name for f in ("one", "two")] for name in ("run.json", "results.json"))
    with pytest.raises(InputError, match=r"two files would both be named 'run\.json'"):
        formats.read(runs)
    assert formats.read(results).preferences.index.items.tolist() == ["one", "two"]
