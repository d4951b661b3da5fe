"""Any dataframe in and out."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

from podium import Labels, Preferences, formats, make
from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.testing import strategies

MAKERS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "lazy": lambda d: pl.DataFrame(d).lazy(),
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_lists_from_every_dataframe(maker):
    frame = maker(
        {"topic": [2, 2, 1], "run": ["b", "b", "a"], "doc": ["x", "y", "x"], "score": [0.5, 0.7, 0.1]}
    )
    p = Preferences.from_frame(frame, query="topic", expert="run", item="doc")
    assert p == Preferences.from_lists({2: {"b": {"x": 0.5, "y": 0.7}}, 1: {"a": {"x": 0.1}}})


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_votes_from_every_dataframe(maker):
    frame = maker({"judge": ["j", "k"], "a": ["x", "y"], "b": ["y", "z"], "same": [True, False]})
    p = Preferences.from_frame(frame, query=None, expert="judge", winner="a", loser="b", tie="same")
    assert len(p.comparisons) == 2
    assert p.comparisons.tie.tolist() == [True, False]


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@settings(deadline=None, max_examples=30)
@given(p=strategies.rankings())
def test_lists_survive_a_round_trip(backend, p):
    assert Preferences.from_frame(p.to_frame(backend)) == p


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@settings(deadline=None, max_examples=30)
@given(labels=strategies.labels())
def test_labels_survive_a_round_trip(backend, labels):
    assert Labels.from_frame(labels.to_frame(backend)) == labels


def test_categories_and_chunks():
    frame = pd.DataFrame(
        {"query": ["q", "q"], "expert": ["e", "e"], "item": ["b", "a"], "rank": [1, 2]}
    ).astype({"item": "category"})
    assert Preferences.from_frame(frame) == Preferences.from_lists({"q": {"e": ["b", "a"]}})
    table = pa.concat_tables(
        [p.to_frame() for p in (Preferences.from_lists({q: {"e": ["b", q]}}) for q in "xyz")]
    )
    assert len(Preferences.from_frame(table)) == 3


def test_the_result_as_a_dataframe():
    p = Preferences.from_lists({"q": {"a": ["x", "y"], "b": ["y", "z"]}})
    frame = make("rrf").aggregate(p).to_frame("pandas", top=2)
    assert frame["item"].tolist() == ["y", "x"]
    assert frame["rank"].tolist() == [1, 2]
    assert frame["tied"].tolist() == [False, False]


def test_what_is_wrong_is_said():
    frame = pd.DataFrame({"query": ["q"], "expert": ["e"], "item": [None], "rank": [1]})
    with pytest.raises(InputError, match="row 1: the item id is missing"):
        Preferences.from_frame(frame)
    with pytest.raises(InputError, match="no column 'items'; did you mean item"):
        Preferences.from_frame(frame, item="items")
    with pytest.raises(InputError, match="cannot read a list as a dataframe"):
        Preferences.from_frame([1, 2])
    with pytest.raises(ParameterError, match="backend is 'spark'"):
        Preferences.from_lists({"q": {"a": ["x"]}}).to_frame("spark")
    empty = pd.DataFrame({"query": [], "expert": [], "item": [], "rank": []})
    assert len(Preferences.from_frame(empty)) == 0


# -- comparisons that show two items and the side that won ----------------------------------------------------------

SIDES = {
    "judge": ["j", "j", "k"],
    "left": ["x", "y", "x"],
    "right": ["y", "z", "z"],
    "preference": ["left", "right", "tie"],
}


def outcome(p):
    """Every vote as (winner, loser, tie, weight), in the order of the rows of one expert and query."""
    v, items = p.comparisons, p.index.items.tolist()
    rows = zip(v.winner.tolist(), v.loser.tolist(), v.tie.tolist(), v.weight.tolist(), strict=True)
    return [(items[w], items[o], t, x) for w, o, t, x in rows]


EXPECTED = [("x", "y", False, 1.0), ("z", "y", False, 1.0), ("x", "z", True, 1.0)]


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_table_of_sides_is_never_read_as_items(maker):
    frame = maker(SIDES)
    for loser in ("right", "left"):
        with pytest.raises(InputError, match=r"'preference' contains 'left', 'right', 'tie': the side"):
            Preferences.from_frame(frame, query=None, expert="judge", winner="preference", loser=loser)
    named = Preferences.from_frame(
        frame, query=None, expert="judge", item_a="left", item_b="right", winner="preference"
    )
    assert outcome(named) == EXPECTED
    assert outcome(Preferences.from_frame(frame)) == EXPECTED  # by the names alone, as a file would be read
    assert named.comparisons.side.tolist() == [1, -1, 1]


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_arena_votes(maker):
    frame = maker(
        {
            "model_a": ["x", "y", "x"], "model_b": ["y", "z", "z"],
            "winner": ["model_a", "model_b", "tie (bothbad)"], "judge": ["j", "j", "k"],
        }
    )  # fmt: skip
    assert outcome(Preferences.from_frame(frame)) == EXPECTED


def test_items_may_be_called_as_sides_are():
    frame = pd.DataFrame({"winner": ["a", "b", "b"], "loser": ["c", "d", "s"]})
    assert [w for w, *_ in outcome(Preferences.from_frame(frame))] == ["a", "b", "b"]
    both = pd.DataFrame({"winner": ["left", "right"], "loser": ["right", "left"]})
    assert [w for w, *_ in outcome(Preferences.from_frame(both))] == ["left", "right"]


def test_a_frame_reads_votes_as_a_file_does(tmp_path):
    frame = pd.DataFrame(SIDES)
    frame.to_csv(tmp_path / "votes.csv", index=False)
    file = formats.read(tmp_path / "votes.csv").preferences
    assert outcome(file) == outcome(Preferences.from_frame(frame))


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_votes_survive_a_round_trip(backend):
    p = Preferences.from_comparisons(
        ["q", "q"], ["e", "f"], ["x", "y"], ["y", "z"], tie=[False, True], weight=[2, 1]
    )
    assert Preferences.from_frame(p.comparisons_frame(backend)) == p


def test_errors_name_what_was_called():
    frame = pd.DataFrame(SIDES)
    with pytest.raises(
        ParameterError, match=r"Preferences\.from_frame has no parameter 'itemb'; did you mean"
    ):
        Preferences.from_frame(frame, itemb="right")
    with pytest.raises(
        ParameterError, match=r"Labels\.from_frame has no parameter 'grades'; did you mean grade"
    ):
        Labels.from_frame(frame, grades="x")
    with pytest.raises(InputError, match=r"item_a is missing; name its column with item_a='...'"):
        Preferences.from_frame(frame[["right", "preference"]], winner="preference")
    bad = pd.DataFrame({"model_a": ["x"], "model_b": ["y"], "winner": ["2"]})
    with pytest.raises(InputError, match=r"row 1: the winner of 'x' and 'y' is '2'; .*winner_codes="):
        Preferences.from_frame(bad)
    assert outcome(Preferences.from_frame(bad, winner_codes={1: "a", 2: "b"})) == [("y", "x", False, 1.0)]


# -- columns that were not read -------------------------------------------------------------------------------------

PAIRS = {"chosen": ["a1", "b1", "a1"], "rejected": ["a2", "b2", "a3"]}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"prompt": ["p", "q", "p"]}, r"all rows are query 'all'; not used: 'prompt'; give query='prompt'"),
        ({"prompt": ["p", "q", "r"]}, r"give query='prompt' if it has the queries, or query=None"),
        ({"Instruction": ["p", "q", "p"]}, r"give query='Instruction'"),
        ({"question": ["p", "q", "r"]}, None),  # a1 is in two of them: they do not part the items
        ({"question": ["p", "q", "p"]}, r"give query='question'"),
        ({"topic": ["p", "q", "p"], "prompt": ["P", "Q", "P"]}, None),  # another name of the query
        ({"topic": ["p", "q", "p"], "prompt": ["P", "Q", "R"]}, r"queries are in 'topic'; not used: 'prompt'"),
        ({"labeler": ["x", "y", "x"]}, r"one expert for all rows; not used: 'labeler'; give expert='labeler'"),
        ({"expert": ["e", "e", "f"], "annotator": ["x", "y", "x"]}, r"experts are in 'expert'.*'annotator'"),
        ({"expert": ["e", "e", "f"], "annotator": ["x", "x", "y"]}, None),
        ({"confidence": [1.0, 0.5, 1.0]}, r"not used: 'confidence'; give weight='confidence'"),
        ({"confidence": [1.0, 1.0, 1.0]}, None),
        ({"prompt": ["p", "p", "p"], "labeler": ["x", "x", "x"]}, None),  # one value changes nothing
        ({"title": ["t", "u", "v"]}, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["frame", "csv", "parquet"])
def test_ignored_columns_that_could_change_the_answer_are_named(tmp_path, more, words, where):
    frame = pd.DataFrame({**PAIRS, **more})
    if where == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
    elif where == "parquet":
        frame.to_parquet(tmp_path / "t.parquet")

    def read(**asked):
        if where == "frame":
            return Preferences.from_frame(frame, **asked)
        given = {role: name or "" for role, name in asked.items()}
        return formats.read(tmp_path / f"t.{where}", **given).preferences

    if where != "frame" and "prompt" in more and "topic" not in more:  # TRL data: every prompt is a query
        assert len(read()) == len(set(more["prompt"]))
        return
    if words is None:
        assert len(read().comparisons) == 3  # a warning would be an error here
        return
    with pytest.warns(PodiumWarning, match=words if where == "frame" else words.replace("None", "''")):
        read()
    asked = {"query": "prompt"} if "prompt" in more else {}
    settled = {"query": None, "expert": None, "weight": None, **asked}
    assert len(read(**settled).comparisons) == 3  # explicit options are taken at their word


def test_lists_with_weights_per_row_are_not_read_in_silence():
    frame = pd.DataFrame({"query": ["q"] * 2, "expert": ["e"] * 2, "item": ["a", "b"], "rank": [1, 2]})
    weighted = frame.assign(weight=[0.5, 2])
    with pytest.warns(PodiumWarning, match="not used: 'weight'; weights apply to experts"):
        assert Preferences.from_frame(weighted) == Preferences.from_frame(frame)
    assert Preferences.from_frame(weighted, weight=None) == Preferences.from_frame(frame)


class OnlyAStream:
    """An object that has the Arrow PyCapsule protocol and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


ARENA = pa.table({"model_a": ["x", "x"], "model_b": ["y", "z"], "winner": ["model_b", "tie"]})


@pytest.mark.parametrize(
    "maker", [OnlyAStream, pa.Table.to_reader, lambda t: t.to_batches()[0], pl.DataFrame]
)
def test_anything_with_an_arrow_stream_is_a_frame(maker):
    expected = Preferences.from_comparisons(
        ["query"] * 2, ["expert"] * 2, ["y", "x"], ["x", "z"], tie=[False, True]
    )
    assert Preferences.from_frame(maker(ARENA)) == expected


def test_duckdb_relations_are_frames():
    duckdb = pytest.importorskip("duckdb")
    arena = ARENA  # noqa: F841 (named in the query)
    relation = duckdb.sql("select * from arena")
    assert Preferences.from_frame(relation) == Preferences.from_frame(ARENA)
    assert Preferences.from_frame(relation.arrow()) == Preferences.from_frame(ARENA)


def test_a_consensus_is_an_arrow_stream():
    from podium import ReciprocalRankFusion

    result = ReciprocalRankFusion().aggregate(
        Preferences.from_lists({"q": {"e": ["a", "b"], "f": ["b", "c"]}})
    )
    assert pa.table(result).equals(result.to_frame())
    assert pl.DataFrame(result).rows() == [tuple(row.values()) for row in result.to_frame().to_pylist()]
    assert pa.schema(result) == result.to_frame().schema


def test_lists_in_cells():
    expected = Preferences.from_lists({"q1": {"e": ["a", "b"]}, "q2": {"e": ["c"]}})
    columns = {"query": ["q1", "q2"], "expert": ["e", "e"], "items": [["a", "b"], ["c"]]}
    assert Preferences.from_frame(pa.table(columns)) == expected
    assert Preferences.from_frame(pl.DataFrame(columns)) == expected
    assert Preferences.from_frame(pd.DataFrame(columns)) == expected
    scored = Preferences.from_frame(pa.table({**columns, "scores": [[2.0, 3.0], [1.0]]}))
    assert scored == Preferences.from_lists({"q1": {"e": {"a": 2.0, "b": 3.0}}, "q2": {"e": {"c": 1.0}}})
    with pytest.raises(InputError, match="row 2: scores does not match the 1 items"):
        Preferences.from_frame(pa.table({**columns, "scores": [[2.0, 3.0], [1.0, 2.0]]}))
    with pytest.raises(InputError, match="row 1: the items are 'a'"):
        Preferences.from_frame(pa.table({**columns, "items": ["a", "c"]}))


@pytest.mark.parametrize("maker", [pa.table, pl.DataFrame, pd.DataFrame])
def test_wide_tables(maker):
    table = maker({"model": ["x", "y"], "mmlu": [0.7, 0.6], "arc": [None, 0.9]})
    expected = Preferences.from_lists({"query": {"mmlu": {"x": 0.7, "y": 0.6}, "arc": {"y": 0.9}}})
    with pytest.warns(
        PodiumWarning, match=r"a row is an item \(model\) and the columns mmlu, arc are experts"
    ):
        assert Preferences.from_frame(table) == expected
    assert Preferences.from_frame(table, experts=["mmlu", "arc"]) == expected
    ranks = maker({"query": ["q", "q"], "model": ["x", "y"], "e": [1, 2], "f": [2, 1]})
    with pytest.raises(InputError, match="ranks or scores"):
        Preferences.from_frame(ranks, experts=["e", "f"])
    by_rank = Preferences.from_lists({"q": {"e": ["x", "y"], "f": ["y", "x"]}})
    assert Preferences.from_frame(ranks, experts=["e", "f"], values="ranks") == by_rank
    with pytest.raises(InputError, match="no column 'g'"):
        Preferences.from_frame(ranks, experts=["e", "g"])
