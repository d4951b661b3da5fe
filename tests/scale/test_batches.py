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
from podium.data.grouped import from_grouped
from podium.errors import InputError, ParameterError
from podium.kernels import dispatch
from podium.scale import batch_function
from podium.scale.reading import preferences_of
from podium.scale.streams import whole_queries
from shards import lists

METHODS = ("rrf(k=20)", "borda", "combmnz", "condorcet", "mc4", "median_rank", "bradley_terry")
KINDS = ("text", "integers", "dictionaries")


@pytest.fixture(params=["small", "compiled"])
def path(request, monkeypatch):
    """Both ways through the code: tables below and above the size from which kernels are compiled."""
    if request.param == "compiled":
        monkeypatch.setattr(dispatch, "SMALL", 0)
    return request.param


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
def test_answers_are_those_of_the_method_in_memory(path, kind, method):
    table = lists(range(12), ids=kind)
    same(batch_function(method)(table), in_memory(method, table))


@pytest.mark.parametrize("kind", KINDS)
def test_types_of_ids_come_back(path, kind):
    table = lists(range(3), ids=kind)
    got = batch_function("rrf")(table)
    for name in ("query", "item"):
        assert got.schema.field(name).type == plain(table.schema).field(name).type
    assert got.schema == batch_function("rrf").schema(table.schema)
    assert got.schema.field("rank").type == pa.int32()


@pytest.mark.parametrize("drop", ["rank", "score"])
def test_lists_with_ranks_or_scores_only(path, drop):
    table = lists(range(9)).drop_columns([drop])
    same(batch_function("rrf")(table), in_memory("rrf", table))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_in_any_order_give_the_same(path, kind):
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
    assert pa.concat_tables(rrf.tables(batches, rows)).combine_chunks().equals(rrf(table).combine_chunks())
    parts = [piece.table for piece in whole_queries(batches, rows)]
    assert sum(map(len, parts)) == len(table)
    ids = [set(p["query"].to_pylist()) for p in parts]
    assert sum(map(len, ids)) == len(set.union(*ids))


def test_a_query_that_comes_back_is_refused():
    table = lists(range(3))
    batches = [*table.to_batches(), *table.slice(0, 4).to_batches()]
    with pytest.raises(InputError, match=r"'q-00000' comes back.*sort or group"):
        list(batch_function("rrf").over(iter(batches), rows=1))
    with pytest.raises(InputError, match="comes back"):
        list(batch_function("rrf").over(iter(batches)))


def test_it_is_pickled_as_bytes_and_plain_values():
    first = batch_function("rrf(k=3)", top=2, ties="trec")
    first(lists(range(2)))  # the live method is there now
    again = pickle.loads(pickle.dumps(first))
    assert "aggregator" not in vars(again)
    assert again == first
    assert (
        again.fingerprint == first.fingerprint != batch_function("rrf(k=4)", top=2, ties="trec").fingerprint
    )
    assert again(lists(range(4))).equals(first(lists(range(4))))


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


def test_weights_by_name_hold_where_an_expert_is_silent(path):
    weights = {f"engine {e}": e + 1.0 for e in range(4)}
    method = podium.make("rrf", weights=weights)
    table = lists(range(6))
    one = table.filter(pa.compute.not_equal(table["expert"], "engine 2"))
    expected = podium.make("rrf", weights={k: v for k, v in weights.items() if k != "engine 2"})
    same(batch_function(method)(one), expected.aggregate(Preferences.from_frame(one)).to_frame())
    with pytest.raises(ParameterError, match="give them by name"):
        batch_function(podium.make("rrf", weights=[1, 2, 3, 4]))


def test_top_and_ties_and_kept_columns(path):
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
    assert list(batch_function("rrf").over([])) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.rename_columns(["query", "expert", "itme", "rank", "score"]), "no column 'item'.*itme"),
        (lambda t: t.drop_columns(["rank", "score"]), "neither a column 'rank' nor 'score'"),
        (
            lambda t: t.set_column(0, "query", pa.array([1.5] * len(t))),
            "'query' is of type double.*strings or",
        ),
        (lambda t: t.set_column(3, "rank", pa.array(["1"] * len(t))), "'rank' is of type string.*numbers"),
        (lambda t: t.set_column(2, "item", pa.array([None] * len(t), pa.string())), "item is missing"),
        (lambda t: t.set_column(3, "rank", pa.array([0] * len(t))), "the rank is 0"),
        (lambda t: pa.concat_tables([t, t]), "appears twice"),
        (lambda t: t.set_column(4, "score", pa.array([np.nan] * len(t))), "the score is nan"),
    ],
)
def test_bad_batches_say_what_is_wrong(path, change, message):
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
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dispatch, "SMALL", 0)
            got = preferences_of(given_table, "unknown", "error", None).preferences
        assert got == expected
        assert got.index.items.tolist() == expected.index.items.tolist()


def test_rows_in_order_do_take_the_fast_path(monkeypatch):
    """Otherwise the tests above would compare one path with itself."""
    from podium.scale import reading

    calls = []
    monkeypatch.setattr(reading, "from_grouped", lambda *a: calls.append(found := from_grouped(*a)) or found)
    monkeypatch.setattr(dispatch, "SMALL", 0)
    for kind in KINDS:
        table = lists(range(8), ids=kind)
        read = preferences_of(table, "unknown", "error", None)
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "SMALL", 0)
        got = preferences_of(table, "unknown", "error", None).preferences
    assert got.index.items.tolist() == sorted(ids.tolist())
    assert got == Preferences.from_frame(table)
