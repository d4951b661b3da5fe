"""Tables with named columns: CSV, JSON lines, Parquet."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import formats, make
from podium.cli import program
from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.formats import csv_format
from podium.formats.base import Content
from podium.formats.csv_format import Csv
from podium.formats.jsonl import JsonLines
from podium.storage.files import Source


def read(text: str, **options: object) -> Content:
    return Csv().read([Source("f.csv", text.encode())], **options)  # type: ignore[arg-type]


def votes(text: str, **options: object) -> list[tuple[object, ...]]:
    p = read(text, **options).preferences
    assert p is not None
    v = p.comparisons
    items = p.index.items
    return [
        (items[int(w)], items[int(o)], bool(t), float(x))
        for w, o, t, x in zip(v.winner, v.loser, v.tie, v.weight, strict=True)
    ]


def test_lists_by_the_users_words() -> None:
    p = read("run\ttopic\trank\tdoc\tscore\nA\t1\t1\td1\t2.5\nA\t1\t2\td2\t1.5\n").preferences
    assert p is not None
    assert p.experts.tolist() == ["A"]
    assert p.queries.tolist() == ["1"]
    assert p.lists.rank.tolist() == [1, 2]
    q = read("qid;item;rank\nq;x;1\n").preferences
    assert q is not None
    assert q.experts.tolist() == ["f"]  # after the file


@pytest.mark.parametrize(
    ("header", "answers"),
    [
        ("item_a,item_b,winner", ["a", "b", "tie"]),
        ("doc_a,doc_b,answer", ["A", "b", "same"]),
        ("model_a,model_b,winner", ["model_a", "model_b", "tie (bothbad)"]),
        ("left,right,preference", ["left", "right", "equal"]),
        ("left,right,preferred", ["x", "y", "tie"]),
    ],
)
def test_votes_by_the_users_words(header: str, answers: list[str]) -> None:
    text = header + "\n" + "".join(f"x,y,{answer}\n" for answer in answers)
    assert votes(text) == [("x", "y", False, 1.0), ("y", "x", False, 1.0), ("x", "y", True, 1.0)]


def test_winner_and_loser_with_counts() -> None:
    assert votes("winner,loser,count,tie\nx,y,3,no\ny,z,1,yes\n") == [
        ("x", "y", False, 3.0),
        ("y", "z", True, 1.0),
    ]


def test_votes_that_cannot_be_read() -> None:
    with pytest.raises(InputError, match=r"f.csv:3: the winner of 'x' and 'y' is 'c'; accepted: .*tie.*"):
        read("left,right,winner\nx,y,left\nx,y,c\n")
    with pytest.raises(InputError, match=r"f.csv:2: the winner 'a' is both"):
        read("item_a,item_b,winner\nb,a,a\n")
    with pytest.raises(InputError, match=r"f.csv:2: an item is compared with itself; self_votes='skip'"):
        read("winner,loser\nx,x\n")
    with pytest.raises(InputError, match=r"f.csv:3: the winner of 'x' and 'y' is empty; missing=''"):
        read("left,right,winner\nx,y,left\nx,y,\n")
    incomplete = "winner,loser,weight\nx,y,2\nx,,1\ny,x,?\n"
    assert votes(incomplete, missing=["", "?"]) == [("x", "y", False, 2.0)]
    assert votes("winner,loser\nx,x\nx,y\n", self_votes="skip") == [("x", "y", False, 1.0)]
    assert votes("a,b,winner\nx,y,\nx,y,x\n", missing="") == [("x", "y", False, 1.0)]
    with pytest.raises(InputError, match=r"f.csv:2: the weight is 0"):
        read("winner,loser,weight\nx,y,0\n")


def test_ratings_and_their_gold() -> None:
    text = "topicID,workerID,docID,gold,label\n1,w1,a,-1,0\n1,w2,a,-1,1\n1,w1,b,1,1\n"
    content = read(text, score="label", missing="-1")
    assert content.preferences is not None
    assert content.preferences.lists.rows == 3
    assert content.labels is not None
    assert content.labels.to_frame().to_pylist() == [{"query": "1", "item": "b", "grade": 1.0}]
    with pytest.warns(PodiumWarning, match=r"2 of 3 values in 'gold' are -1.*missing='-1'"):
        read(text, score="label")
    with pytest.raises(InputError, match=r"f.csv:3: the grade of item 'a' differs"):
        read("query,worker,doc,gold,score\n1,w1,a,1,0\n1,w2,a,2,1\n")


def test_labels() -> None:
    labels = read("query,doc,relevance\nq,a,2\nq,b,0\n").labels
    assert labels is not None
    assert labels.grade("q", "a") == 2


def test_quotes_delimiters_and_odd_ids() -> None:
    p = read('query,expert,item,rank\n"q ,1",e,"a ""b""\nc",1\n').preferences
    assert p is not None
    assert p.queries.tolist() == ["q ,1"]
    assert p.index.items.tolist() == ['a "b"\nc']
    with pytest.raises(InputError, match=r"f.csv:4: the rank is 'x'"):
        read('query,expert,item,rank\nq,e,"a\nb",1\nq,e,c,x\n')
    with pytest.raises(InputError, match="invalid quoting"):
        read('query,expert,item,rank\nq,e,"a,1\n')


def test_files_without_a_header() -> None:
    assert votes("1 x y\n2  y x\n", columns=["expert", "winner", "loser"]) == [
        ("x", "y", False, 1.0),
        ("y", "x", False, 1.0),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("query,expert,item,rank\nq,e,a\n", "f.csv:2: 3 columns here, 4 are in the header"),
        ("query,expert,item,rank\nq,e,a,0\n", "f.csv:2: the rank is 0"),
        ("query,expert,item,rank\nq,e,a,inf\n", "f.csv:2: the rank is 'inf'"),
        ("query,expert,item,rank\nq,e,a,1e30\n", "f.csv:2: the rank is 1e+30"),
        ("query,expert,item,score\nq,e,a,\n", "f.csv:2: the score is missing"),
        ("query,expert,item,score\nq,e,,1\n", "f.csv:2: the item is missing"),
        ("query,expert,item,rank\n", "a header but no rows"),
        ("query,expert,item,item\n1,1,1,1\n", "two columns are named 'item'"),
        ("run,engine,item,rank\n1,1,1,1\n", "'run' and 'engine' could both be the expert"),
        ("x,y\n1,2\n", "the columns are not those of"),
        ("topic,docid,points\nq,a,1\n", "query is 'topic', item is 'docid'; other columns: 'points'"),
        ("topic,docid,points\nq,a,1\n", "name it with score='points' or rank='points' or grade='points'"),
        ("a,b,verdict,note\nx,y,a,-\n", "no winner column: item_a is 'a', item_b is 'b'"),
        ("judge,winner,text\nj,x,-\n", "no loser column: expert is 'judge', winner is 'winner'"),
        ("a,b,verdict,note\nx,y,a,-\n", "other columns: 'verdict', 'note'; name it with winner='...'"),
        ("query,expert,item,rank,score\nq,e,a,1,2\nq,e,b,2,\n", "f.csv:3: the score is missing, but other"),
    ],
)
@pytest.mark.parametrize("least", [0, 10**12])
def test_wrong_tables(monkeypatch: pytest.MonkeyPatch, least: int, text: str, words: str) -> None:
    monkeypatch.setattr(csv_format, "ARROW_ROWS", least)
    with pytest.raises(InputError) as error:
        read(text)
    assert words in str(error.value)


def test_columns_by_name() -> None:
    p = read("who,what,n\ne,a,1\n", expert="who", item="what", rank="n").preferences
    assert p is not None
    assert p.queries.tolist() == ["all"]
    with pytest.raises(InputError, match=r"there is no column 'whom'.*did you mean who"):
        read("who,what,n\ne,a,1\n", expert="whom")
    with pytest.raises(ParameterError, match="delimiter is ',,'"):
        read("a,b\n1,2\n", delimiter=",,")


def jsonl(text: str, **options: object) -> Content:
    return JsonLines().read([Source("f.jsonl", text.encode())], **options)  # type: ignore[arg-type]


def test_json_lists_keep_the_type_of_ids() -> None:
    p = jsonl(
        '{"query": 1, "expert": "e", "items": [3, "3"]}\n{"query": 1, "expert": "f", "items": ["3"]}\n'
    ).preferences
    assert p is not None
    assert p.queries.tolist() == [1]
    assert p.index.items.tolist() == [3, "3"]
    scored = jsonl('{"query": 1, "expert": "e", "items": ["a", "b"], "scores": [1, 2.5]}\n').preferences
    assert scored is not None
    assert scored.lists.score is not None
    assert scored.lists.score.tolist() == [2.5, 1.0]


def test_arena_votes() -> None:
    text = (
        '{"question_id": "x1", "model_a": "m1", "model_b": "m2", "winner": "model_b", "judge": "h1", "turn": 1}\n'
        '{"question_id": "x2", "model_a": "m1", "model_b": "m2", "winner": "tie (bothbad)", "judge": "h2", "turn": 1}\n'
    )
    p = jsonl(text).preferences
    assert p is not None
    assert len(p.comparisons) == 2
    assert p.queries.tolist() == ["all"]  # the id of a battle is no query
    assert p.comparisons.tie.tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"query": 1}\n[1]\n', "f.jsonl:2: a list instead of an object"),
        ('{"query": 1\n', "f.jsonl:1: this is not JSON"),
        ('{"query": 1, "expert": 2, "item": 1.5, "rank": 1}\n', "f.jsonl:1: the item is 1.5"),
        ('{"query": 1, "expert": 2, "item": true, "rank": 1}\n', "f.jsonl:1: the item is True"),
        ('{"query": 1, "expert": 2, "item": "a", "score": NaN}\n', "f.jsonl:1: the score is nan"),
        (
            '{"query": 1, "expert": 2, "items": ["a"], "scores": [1, 2]}\n',
            "f.jsonl:1: scores does not match the 1 items",
        ),
    ],
)
def test_wrong_json(text: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        jsonl(text)
    assert words in str(error.value)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "rows",
    [
        [
            {"model_a": "x", "model_b": "y", "winner": w, "judge": j}
            for w in ("model_a", "tie")
            for j in (1, "1")
        ],
        [
            {"query": q, "expert": e, "items": ["a", "b"], "scores": [2, 1.5]}
            for q in (1, "1")
            for e in ("e", "f")
        ],
        [{"query": 1, "item": "a é ] } ,", "grade": 2}, {"query": "q", "item": '[{"', "grade": 0}],
        [{"query": 1, "expert": "e", "item": "a", "score": 0.5}],
    ],
)
def test_an_array_of_objects_is_read_as_json_lines_are(tmp_path, rows, indent):
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "x.json").write_text("\ufeff \n" + json.dumps(rows, indent=indent, ensure_ascii=False) + "\n")
    assert formats.sniff(tmp_path / "x.json") == "jsonl"
    lines, array = formats.read(tmp_path / "x.jsonl"), formats.read(tmp_path / "x.json")
    assert array.preferences == lines.preferences
    if lines.labels is not None:
        assert array.labels.to_frame().to_pylist() == lines.labels.to_frame().to_pylist()


def test_a_large_array_on_one_line_is_recognized(tmp_path):
    rows = [{"query": q, "expert": "e", "item": f"d{i}", "rank": i + 1} for q in range(50) for i in range(40)]
    with gzip.open(tmp_path / "x.json.gz", "wt") as file:
        json.dump(rows, file)
    assert formats.read(tmp_path / "x.json.gz").preferences.lists.rows == 2000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "f.json: the array is empty"),
        (
            '[{"query": 1, "expert": 2, "item": "a", "rank": 1}, [1]]',
            "f.json, element 2: a list instead of an",
        ),
        ('[{"query": 1, "expert": 2, "item": "a", "rank": 1},]', "f.json, element 2: this is not JSON"),
        (
            '[{"query": 1, "expert": 2, "item": "a", "rank": 1}',
            "f.json, element 1: the end of the file follows",
        ),
        ('[{"query": 1} {"query": 2}]', r"f.json, element 1: '{\"query\": 2}]' follows it"),
        (
            '[{"query": 1, "expert": 2, "item": "a", "rank": 1}]\n[]',
            r"f.json, element 1: '\[]' follows the array",
        ),
        ('[{"query": 1, "expert": 2, "item": 1.5, "rank": 1}]', "f.json, element 1: the item is 1.5"),
        ('[{"query": 1, "expert": 2, "item": "a", "score": NaN}]', "f.json, element 1: the score is nan"),
        ('[{"query": 1, "expert": 2, "item": "a", "rank": 0}]', "f.json, element 1: .*rank"),
        ('[{"query": 1, "expert": 2, "items": ["a", "a"]}]', "f.json, element 1: "),
        ('[{"query": ' + "[" * 100_000, "f.json, element 1: this is not JSON"),
        ("[" * 100_000, "f.json, element 1: this is not JSON"),
    ],
)
def test_faults_in_an_array_name_the_element(text, message):
    with pytest.raises(InputError, match=message):
        JsonLines().read([Source("f.json", text.encode())])


def test_a_table_with_a_million_character_id(tmp_path) -> None:  # type: ignore[no-untyped-def]
    big = "x" * 1_000_000
    (tmp_path / "f.csv").write_text(f"query,expert,item,rank\nq,e,{big},1\n")
    p = formats.read(tmp_path / "f.csv").preferences
    assert p is not None
    assert p.index.items[0] == big
    assert np.array_equal(p.lists.rank, [1])


cells = st.text(
    st.characters(codec="utf-8", exclude_characters='\0\r\n,"\ufeff'), max_size=4
) | st.sampled_from(["NA", "null", "1", ""])


@settings(deadline=None)
@given(
    st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_both_readers_of_tables_agree(rows: list[tuple[str, str, str]], end: str, header: bool) -> None:
    lines = ["x,y,z"] * header + [",".join(row) for row in rows]
    source = Source("f.csv", (end.join(lines) + end).encode())
    names = None if header else ["x", "y", "z"]
    tables = []
    for least in (0, 10**12):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csv_format, "ARROW_ROWS", least)
            tables.append(Csv().read_table(source, names, ",", frozenset()))
    quick, plain = tables
    assert {n: list(c) for n, c in quick.columns.items()} == {n: list(c) for n, c in plain.columns.items()}
    assert list(quick.lines) == list(plain.lines)
    assert [tuple(plain.columns[n][k] for n in "xyz") for k in range(len(rows))] == rows


def test_two_files_of_one_name_are_not_one_expert(tmp_path) -> None:  # type: ignore[no-untyped-def]
    for folder, item in (("one", "a"), ("two", "b")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "s.csv").write_text(f"query,item,score\nq,{item},1\n")
    with pytest.raises(InputError, match=r"two files would both be named 's\.csv'"):
        formats.read([tmp_path / "one" / "s.csv", tmp_path / "two" / "s.csv"])


def test_files_that_differ_in_their_extension_are_two_experts(tmp_path) -> None:  # type: ignore[no-untyped-def]
    names = ["s.csv", "s.tsv", "s.csv.tsv", "t.csv"]
    for name, item in zip(names, "abcd", strict=True):
        mark = "\t" if name.endswith(".tsv") else ","
        (tmp_path / name).write_text(f"query{mark}item{mark}score\nq{mark}{item}{mark}1\n")
    found = formats.read([tmp_path / name for name in names]).preferences
    assert found is not None
    assert found.experts.tolist() == ["s.csv", "s.csv.tsv", "s.tsv", "t"]


def _ratings(cell: Callable[[str, str, int], object], name: str) -> str:
    """Three annotators on the same six items, with one more column."""
    rows = [(w, i, k % 5) for k, (w, i) in enumerate((w, i) for w in "xyz" for i in "abcdef")]
    return f"annotator,{name},item,rating\n" + "".join(f"{w},{cell(w, i, r)},{i},{r}\n" for w, i, r in rows)


@pytest.mark.parametrize(
    ("name", "cell"),
    [("task", lambda w, i, r: f"t{i < 'd'}"), ("theme", lambda w, i, r: f"t{i < 'd'}"),
     ("block", lambda w, i, r: int(i < "c")), ("question", lambda w, i, r: r % 2)],
)  # fmt: skip
def test_a_column_that_may_be_the_queries_is_not_passed_over_in_silence(name, cell) -> None:  # type: ignore[no-untyped-def]
    text = _ratings(cell, name)
    said = f"all rows are query 'all'; not used: '{name}'; give query='{name}' if it has the queries"
    with pytest.warns(PodiumWarning, match=said):
        p = read(text).preferences
    assert p is not None
    assert p.queries.tolist() == ["all"]
    told, one = read(text, query=name).preferences, read(text, query="").preferences  # neither warns
    assert told is not None
    assert one is not None
    assert len(told) == 2
    assert len(one) == 1


@pytest.mark.parametrize(
    ("name", "cell"),
    [("team", lambda w, i, r: w < "z"),  # of the annotator
     ("sure", lambda w, i, r: r % 3),  # of the single judgement
     ("title", lambda w, i, r: f"title of {i}"),  # another name of the item
     ("task", lambda w, i, r: "t1"), ("task", lambda w, i, r: f"{w}{i}"),  # one for all, one for each row
     ("remark", lambda w, i, r: "" if i < "d" else "odd"),
     ("price", lambda w, i, r: 9.5 if i < "d" else 1.25)],
)  # fmt: skip
def test_other_columns_are_left_alone(name, cell) -> None:  # type: ignore[no-untyped-def]
    p = read(_ratings(cell, name)).preferences  # a warning would be an error here
    assert p is not None
    assert p.queries.tolist() == ["all"]


def test_a_list_by_itself_may_have_more_columns() -> None:
    p = read("item,score,colour\na,3,red\nb,2,blue\nc,1,red\nd,0,blue\n").preferences
    assert p is not None
    assert p.queries.tolist() == ["all"]


# -- columns and cells by names of their own ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["votes.csv", "votes.txt", "votes.tsv.gz"])
@pytest.mark.parametrize("mark", [",", "\t", ";"])
def test_a_table_with_foreign_names_is_read_when_they_are_named(tmp_path, name, mark):
    text = mark.join(["vincitore", "perdente", "chi"]) + "\n" + mark.join("xye") + "\n"
    raw = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    p = formats.read(tmp_path / name, winner="vincitore", loser="perdente", expert="chi").preferences
    assert p is not None
    assert (p.experts.tolist(), p.index.items.tolist()) == (["e"], ["x", "y"])


def test_a_table_with_foreign_names_says_which_there_are(tmp_path):
    (tmp_path / "votes.csv").write_text("vincitore,perdente\nx,y\n")
    with pytest.raises(
        InputError, match=r"votes.csv:1: the columns are not those of .*'vincitore', 'perdente'"
    ):
        formats.read(tmp_path / "votes.csv")


CODED = "a1,a2,label\nx,y,{}\nx,y,{}\nx,y,{}\n"
CODES = [
    (("1", "2", "0"), "1=a,2=b,0=tie"),
    (("1", "2", "0"), {1: "a", 2: "b", 0: "tie"}),
    (("1.0", "2.0", "0.0"), {1: "first", 2: "second", 0: "tie"}),
    (("A>>B", "B>A", "A=B"), "A>>B=a, B>A=b, A=B=tie"),
    (("a1", "a2", "tie"), None),  # the names of the columns themselves
    (("1", "2", "tie"), "1=a,2=b"),  # other words keep their meaning
    (("1", "2", "1.5"), "1..2"),
    (("0", "1", "0.5"), "0..1"),
    (("1", "0", "0.5"), "1..0"),
    (("-3", "3", "0"), (-3, 3)),
]


@pytest.mark.parametrize(("cells", "codes"), CODES, ids=[f"{c}" for _, c in CODES])
def test_codes_of_winners(cells, codes):
    found = votes(CODED.format(*cells), item_a="a1", item_b="a2", winner="label", winner_codes=codes)
    assert found == [("x", "y", False, 1.0), ("y", "x", False, 1.0), ("x", "y", True, 1.0)]


def test_soft_preferences_weigh_both_sides():
    text = "a,b,preference,weight\nx,y,1.25,1\nx,z,1.9,2\n"
    found = votes(text, winner_codes="1..2")
    expected = [("x", "y", 0.75), ("y", "x", 0.25), ("x", "z", 0.2), ("z", "x", 1.8)]
    assert [(w, o, t) for w, o, t, _ in found] == [(w, o, False) for w, o, _ in expected]
    assert np.allclose([x for *_, x in found], [x for *_, x in expected])
    # a judge who prefers x to y by p, many times over, gives Bradley-Terry the odds p / (1 - p)
    soft = read("a,b,preference\n" + "x,y,1.2\n" * 50, winner_codes="1..2").preferences
    scores = make("bradley_terry(l2=1e-9)").aggregate(soft).scores
    assert np.isclose(abs(scores[0] - scores[1]), np.log(0.8 / 0.2), atol=1e-6)


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        ("1=a,2", "winner_codes is '1=a,2'; write '1=a,2=b,0=tie'"),
        ("1=left,2=middle", "'2' to 'middle'; accepted: a .*, b .*, tie"),
        ("1=a,1.0=b", "winner_codes maps '1.0' to two sides"),
        ("1..1", "different numbers"),
        (7, "winner_codes is 7"),
    ],
)
def test_codes_that_cannot_be_read(codes, words):
    with pytest.raises(ParameterError, match=words):
        read(CODED.format(1, 2, 0), item_a="a1", item_b="a2", winner="label", winner_codes=codes)


@pytest.mark.parametrize("codes", [None, "1=a,2=b", "1..2"])
def test_the_bad_value_is_shown_however_long_the_ids_are(codes):
    text = f"item_a,item_b,winner\n{'x' * 500},{'y' * 500},7\n"
    with pytest.raises(InputError, match=r"f.csv:2: the winner of 'xxx.*' and 'yyy.*' is '7'") as error:
        read(text, winner_codes=codes)
    assert len(str(error.value)) < 600


def test_codes_are_given_on_the_command_line(tmp_path):
    path = tmp_path / "ukp.csv"
    path.write_text("#id;gegen;stimme\n" + "x;y;1\n" * 3 + "y;z;2\nx;z;0\n")
    words = ["item_a=#id", "item_b=gegen", "winner=stimme", "winner_codes=1=a,2=b,0=tie"]
    done = CliRunner().invoke(
        program, ["leaderboard", str(path), "--json", *(w for o in words for w in ("-O", o))]
    )
    assert done.exit_code == 0, done.output
    wins = {row["item"]: row["wins"] for row in json.loads(done.stdout)["rows"]}
    assert wins == {"x": 3, "y": 0, "z": 1}
