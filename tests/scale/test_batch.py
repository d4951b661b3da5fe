"""The batch function: the same answers as in memory, whatever the types, the order and the cuts."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium import Preferences
from podium.core.errors import InputError, ParameterError
from podium.data.building.grouped import from_grouped
from podium.scale import batch_function
from podium.scale.query_batches import iterate_query_batches
from podium.scale.table_preferences import build_preferences
from shards import lists

METHODS = ("rrf(k=20)", "borda", "combmnz", "condorcet", "mc4", "median_rank", "bradley_terry")
KINDS = ("text", "integers", "dictionaries")


def in_memory(method, table, **how):
    return (
        podium.make(method)
        .aggregate(Preferences.from_frame(table.cast(plain(table.schema))), **how)
        .to_frame()
    )


def plain(schema):
    return pa.schema([f.with_type(getattr(f.type, "value_type", f.type)) for f in schema])


def same(got, expected):
    assert got.column_names == ["query", "item", "rank", "score", "tied"]
    for name in got.column_names:
        assert got[name].to_pylist() == expected[name].to_pylist(), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_answers_are_those_of_the_method_in_memory(kind, method):
    table = lists(range(12), ids=kind)
    same(batch_function(method)(table), in_memory(method, table))


@pytest.mark.parametrize("kind", KINDS)
def test_types_of_ids_come_back(kind):
    table = lists(range(3), ids=kind)
    got = batch_function("rrf")(table)
    for name in ("query", "item"):
        assert got.schema.field(name).type == plain(table.schema).field(name).type
    assert got.schema == batch_function("rrf").schema(table.schema)
    assert got.schema.field("rank").type == pa.int32()


@pytest.mark.parametrize("drop", ["rank", "score"])
def test_lists_with_ranks_or_scores_only(drop):
    table = lists(range(9)).drop_columns([drop])
    same(batch_function("rrf")(table), in_memory("rrf", table))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_in_any_order_give_the_same(kind):
    table = lists(range(9), ids=kind)
    mixed = table.take(pa.array(np.random.default_rng(5).permutation(len(table))))
    got, expected = batch_function("rrf")(mixed), batch_function("rrf")(table)
    assert got.sort_by([("query", "ascending"), ("rank", "ascending")]).equals(expected.combine_chunks())


def test_a_record_batch_gives_a_record_batch_and_an_iterator_an_iterator():
    table, rrf = lists(range(5)), batch_function("rrf")
    batch = rrf(table.to_batches()[0])
    assert isinstance(batch, pa.RecordBatch)
    assert pa.Table.from_batches([batch]).equals(rrf(table))
    stream = rrf(iter(table.to_batches(max_chunksize=7)))
    assert pa.Table.from_batches(stream).equals(rrf(table))


@given(
    cuts=st.lists(st.integers(1, 40), min_size=1, max_size=30),
    rows=st.integers(1, 120),
    kind=st.sampled_from(KINDS),
)
@settings(max_examples=100, deadline=None)
def test_where_a_stream_is_cut_changes_nothing(cuts, rows, kind):
    table = lists(range(6), ids=kind)
    batches, at = [], 0
    for size in cuts:
        batches += table.slice(at, size).combine_chunks().to_batches()
        at += size
    batches += table.slice(at).combine_chunks().to_batches()
    rrf = batch_function("rrf")
    assert (
        pa.concat_tables(rrf.rank_tables(batches, rows)).combine_chunks().equals(rrf(table).combine_chunks())
    )
    parts = [piece.table for piece in iterate_query_batches(batches, rows)]
    assert sum(map(len, parts)) == len(table)
    ids = [set(p["query"].to_pylist()) for p in parts]
    assert sum(map(len, ids)) == len(set.union(*ids))


def test_a_query_that_comes_back_is_refused():
    table = lists(range(3))
    batches = [*table.to_batches(), *table.slice(0, 4).to_batches()]
    with pytest.raises(InputError, match=r"'q-00000' reappears.*sort or group"):
        list(batch_function("rrf").rank_batches(iter(batches), rows=1))
    with pytest.raises(InputError, match="reappears"):
        list(batch_function("rrf").rank_batches(iter(batches)))


def test_it_is_pickled_as_bytes_and_plain_values():
    first = batch_function("rrf(k=3)", top=2, ties="trec")
    state = first.__reduce_ex__(4)[2]
    assert {type(value) for value in state.values()} <= {bytes, str, int, tuple, type(None)}
    again = pickle.loads(pickle.dumps(first))
    assert again == first
    assert again != batch_function("rrf(k=3)", top=3, ties="trec")
    assert (
        again.fingerprint == first.fingerprint != batch_function("rrf(k=4)", top=2, ties="trec").fingerprint
    )
    assert again(lists(range(4))).equals(first(lists(range(4))))


def test_the_method_goes_straight_from_its_file_to_the_rows(tmp_path, monkeypatch):
    """One process needs no bytes, and a method that changes later does not change the function."""
    from podium.models import model_files

    podium.save(podium.make("rrf(k=3)"), tmp_path / "m.podium")
    expected = batch_function("rrf(k=3)")(lists(range(4)))
    monkeypatch.setattr(model_files, "dumps", None)
    assert batch_function(str(tmp_path / "m.podium"))(lists(range(4))).equals(expected)
    method = podium.make("rrf(k=3)")
    function = batch_function(method)
    method.k = 90
    assert function(lists(range(4))).equals(expected)


def test_a_fitted_model_travels_with_what_it_learned(tmp_path):
    from podium.data.demo import demo

    data = demo()
    model = podium.make("weighted_rrf").fit(data.preferences, data.labels)
    podium.save(model, tmp_path / "m.podium")
    table = data.preferences.to_frame()
    expected = model.aggregate(
        Preferences.from_frame(table)
    ).to_frame()  # candidates nobody lists have no row
    for one in (model, str(tmp_path / "m.podium")):
        same(pickle.loads(pickle.dumps(batch_function(one)))(table), expected)


def test_weights_by_name_hold_where_an_expert_is_silent():
    weights = {f"engine {e}": e + 1.0 for e in range(4)}
    method = podium.make("rrf", weights=weights)
    table = lists(range(6))
    one = table.filter(pa.compute.not_equal(table["expert"], "engine 2"))
    expected = podium.make("rrf", weights={k: v for k, v in weights.items() if k != "engine 2"})
    same(batch_function(method)(one), expected.aggregate(Preferences.from_frame(one)).to_frame())
    with pytest.raises(ParameterError, match="give them by name"):
        batch_function(podium.make("rrf", weights=[1, 2, 3, 4]))


def test_top_and_ties_and_kept_columns():
    table = lists(range(6))
    lang = pa.array(["de" if q[-1] in "024" else None for q in table["query"].to_pylist()])
    table = table.append_column("lang", lang)
    got = batch_function("rrf", top=2, ties="trec", keep=["lang"])(table)
    expected = in_memory("rrf", table, ties="trec")
    expected = expected.filter(pa.compute.less_equal(expected["rank"], 2))
    same(got.drop_columns(["lang"]), expected)
    assert {(q, v) for q, v in zip(got["query"].to_pylist(), got["lang"].to_pylist(), strict=True)} == set(
        zip(table["query"].to_pylist(), lang.to_pylist(), strict=True)
    )
    wrong = table.set_column(5, "lang", pa.array([str(k % 2) for k in range(len(table))]))
    with pytest.raises(InputError, match="several values of 'lang'"):
        batch_function("rrf", keep=["lang"])(wrong)
    with pytest.raises(InputError, match=r"no column 'language' to keep.*lang"):
        batch_function("rrf", keep=["language"])(table)


def test_comparisons_are_read_too():
    table = pa.table(
        {"query": [1, 1, 2], "expert": ["j"] * 3, "winner": ["a", "a", "c"], "loser": ["b", "b", "d"]}
    )
    got = batch_function("bradley_terry")(table)
    assert got.select(["query", "item"]).to_pylist()[0] == {"query": 1, "item": "a"}


def test_an_empty_batch_gives_an_empty_batch():
    table = lists(range(1)).slice(0, 0)
    got = batch_function("rrf")(table)
    assert (got.num_rows, got.schema) == (0, batch_function("rrf").schema(table.schema))
    assert list(batch_function("rrf").rank_batches([])) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.rename_columns(["query", "expert", "itme", "rank", "score"]), "no column 'item'.*itme"),
        (lambda t: t.drop_columns(["rank", "score"]), "neither a 'rank' nor a 'score' column"),
        (
            lambda t: t.set_column(0, "query", pa.array([1.5] * len(t))),
            "'query' has type double.*strings or",
        ),
        (lambda t: t.set_column(3, "rank", pa.array(["1"] * len(t))), "'rank' has type string.*numbers"),
        (lambda t: t.set_column(2, "item", pa.array([None] * len(t), pa.string())), "item is missing"),
        (lambda t: t.set_column(3, "rank", pa.array([0] * len(t))), "the rank is 0"),
        (lambda t: pa.concat_tables([t, t]), "appears twice"),
        (lambda t: t.set_column(4, "score", pa.array([np.nan] * len(t))), "the score is nan"),
    ],
)
def test_bad_batches_say_what_is_wrong(change, message):
    with pytest.raises(InputError, match=message):
        batch_function("rrf")(change(lists(range(2))))


def test_what_cannot_be_ranked_batch_by_batch_is_refused():
    with pytest.raises(ParameterError, match="depends on the other queries"):
        batch_function("crowdagg")
    with pytest.raises(InputError, match="the batch is a int"):
        batch_function("rrf")(3)
    with pytest.raises(ParameterError, match="top is 0"):
        batch_function("rrf", top=0)


@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 3), st.integers(0, 2), st.integers(1 - 2**63, 2**63 - 1) | st.integers(0, 9)
        ),
        min_size=1,
        max_size=80,
        unique=True,
    ),
    scored=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_the_fast_path_makes_the_preferences_of_from_rows(rows, scored):
    """Against `Preferences.from_rows`, columns sorted as it sorts them and not."""
    query, expert, item = (np.array(c) for c in zip(*sorted(rows, key=lambda r: r[:2]), strict=True))
    value = np.random.default_rng(len(rows)).integers(1, 5, len(rows))
    kind = {"score": value * 1.0} if scored else {"rank": value.astype(np.int32)}
    table = pa.table({"query": query, "expert": expert, "item": item, **kind})
    expected = Preferences.from_rows(query, expert, item, **kind)
    frame = expected.to_frame().drop_columns(
        [] if scored else ["score"] if expected.lists.score is not None else []
    )
    for given_table in (table, frame.drop_columns(["rank"]) if scored else frame):
        got = build_preferences(given_table, "unknown", "error", None).preferences
        assert got == expected
        assert got.index.items.tolist() == expected.index.items.tolist()


def test_rows_in_order_do_take_the_fast_path(monkeypatch):
    """Otherwise the tests above would compare one path with itself."""
    from podium.scale import table_preferences

    calls = []
    monkeypatch.setattr(
        table_preferences, "from_grouped", lambda *a: calls.append(found := from_grouped(*a)) or found
    )
    for kind in KINDS:
        table = lists(range(8), ids=kind)
        read = build_preferences(table, "unknown", "error", None)
        expected = Preferences.from_frame(table.cast(plain(table.schema)))
        assert read.preferences.index.arrival.tolist() == expected.index.arrival.tolist()
        assert read.preferences == expected
    assert len(calls) == 3
    assert None not in calls


def test_clustered_ids_are_sorted_too():
    """Ids that share their upper bits fall into one bucket, which another sort takes over."""
    ids = np.concatenate([np.arange(300), [2**62], -np.arange(1, 300)])
    rng = np.random.default_rng(0)
    item = np.concatenate([rng.permutation(ids) for _ in range(3)])
    n = len(ids)
    columns = {"query": np.zeros(3 * n, int), "expert": np.repeat([0, 1, 2], n), "item": item}
    table = pa.table(columns | {"rank": np.tile(np.arange(1, n + 1, dtype=np.int32), 3)})
    got = build_preferences(table, "unknown", "error", None).preferences
    assert got.index.items.tolist() == sorted(ids.tolist())
    assert got == Preferences.from_frame(table)


def rows(**columns):
    return pa.table(columns)


def test_narrow_integers_do_not_wrap():
    table = rows(
        query=pa.array(np.repeat([-10, 2, 120, 127], 2), pa.int8()),
        expert=[1] * 8,
        item=[1, 2] * 4,
        rank=[1, 2] * 4,
    )
    assert batch_function("borda")(table)["query"].unique().to_pylist() == [-10, 2, 120, 127]


def test_unsigned_integers_beyond_63_bits_are_told_apart():
    item = pa.array([2**64 - 1, 2**63, 1, 2**63], pa.uint64())
    got = batch_function("rrf")(rows(query=[1] * 4, expert=[1, 1, 2, 2], item=item, rank=[1, 2, 1, 2]))
    assert got["item"].to_pylist() == [2**63, 1, 2**64 - 1]


@pytest.mark.parametrize("name", ["query", "expert", "item"])
@pytest.mark.parametrize("coded", [False, True])
def test_views_of_text_are_read(name, coded):
    table = lists(range(6))
    column = table[name].combine_chunks()
    view = (
        pa.DictionaryArray.from_arrays(
            (found := column.dictionary_encode()).indices, found.dictionary.cast(pa.string_view())
        )
        if coded
        else column.cast(pa.string_view())
    )
    at = table.column_names.index(name)
    given_table = table.set_column(at, name, view)
    expected = batch_function("rrf")(table)
    assert batch_function("rrf")(given_table).equals(expected)
    stream = batch_function("rrf").rank_tables(given_table.to_batches(max_chunksize=5), 10)
    assert pa.concat_tables(stream).combine_chunks().equals(expected.combine_chunks())


def test_a_missing_value_in_a_dictionary_is_missing():
    score = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 2], pa.int32()), pa.array([2.0, 1.0, None]))
    table = rows(query=[1] * 4, expert=[1, 1, 2, 2], item=[1, 2, 1, 2], score=score)
    for method in ("rrf", "borda"):
        with pytest.raises(InputError, match="the score is missing"):
            batch_function(method)(table)
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 0, 0, 0], pa.int32()), pa.array(["a", None]))
    table = rows(query=[1] * 4, expert=unused, item=[1, 2, 3, 4], rank=[1, 2, 3, 4])
    stream = batch_function("rrf").rank_tables(table.to_batches(max_chunksize=3), 2)
    assert sum(t.num_rows for t in stream) == 4


def test_sliced_columns_of_text():
    table = lists(range(8))
    starts = np.flatnonzero(np.array(table["query"].to_pylist()) == "q-00003")
    wide = pa.schema([f.with_type(pa.large_string()) if f.type == pa.string() else f for f in table.schema])
    sliced = table.combine_chunks().cast(wide).slice(int(starts[0]))
    for method in ("rrf", "borda"):
        same(batch_function(method)(sliced), in_memory(method, pa.Table.from_pylist(sliced.to_pylist())))


def test_texts_that_stand_twice_in_a_dictionary_of_queries_are_one_query():
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, 1], pa.int32()), pa.array(["q", "q"]))
    table = rows(query=twice, expert=["a", "a", "b", "b"], item=[1, 2, 2, 3], rank=[1, 2, 1, 2])
    for method in ("rrf", "borda"):
        same(batch_function(method)(table), in_memory(method, table))


def test_a_list_that_is_interrupted_is_one_list():
    table = rows(query=[1] * 5, expert=["a", "b", "b", "a", "a"], item=[1, 2, 3, 2, 3], rank=[1, 1, 2, 2, 3])
    for method in ("rrf", "borda"):
        same(batch_function(method)(table), in_memory(method, table))


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (
            [rows(query=[1, None, 2, 1], expert=[1] * 4, item=[1, 2, 3, 4], rank=[1] * 4)],
            "the query is missing",
        ),
        (
            [
                rows(query=[1], expert=[1], item=pa.array([1], pa.int32()), rank=[1]),
                rows(query=[2], expert=[1], item=pa.array([1], pa.int64()), rank=[1]),
            ],
            "'item' has type int32 in one batch and int64 in another",
        ),
        (
            [
                rows(query=[1], expert=[1], item=[1], rank=[1]),
                rows(query=[2], expert=[1], item=[1], score=[1.0]),
            ],
            "only some of the batches have a column",
        ),
        (
            [pa.Table.from_arrays([pa.array([1])] * 5, names=["query", "expert", "item", "rank", "rank"])],
            "2 columns are named 'rank'",
        ),
    ],
)
def test_streams_that_are_not_right_say_so(batches, message):
    with pytest.raises(InputError, match=message):
        list(batch_function("rrf").rank_tables(batches, 1))


def test_columns_inside_of_columns_cannot_be_kept():
    table = lists(range(2))
    table = table.append_column("tags", pa.array([["x"]] * len(table)))
    with pytest.raises(InputError, match=r"'tags' to keep has type list.*plain values"):
        batch_function("rrf", keep=["tags"])(table)


def test_what_travels_is_what_was_given():
    function = batch_function("rrf")
    before = pickle.dumps(function)
    function(lists(range(3)))
    assert pickle.dumps(function) == before


def test_frames_and_dictionaries_of_arrays_are_refused_with_a_way_out():
    table = lists(range(2))
    for given_thing in (table.to_pandas(), {"query": [1]}, [{"query": 1}]):
        with pytest.raises(InputError, match="pyarrow"):
            list(batch_function("rrf")(given_thing))
