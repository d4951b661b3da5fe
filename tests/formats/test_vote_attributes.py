"""Attributes of votes: which columns a name stands for, and cells that cannot be used."""

from __future__ import annotations

import json

import numpy as np
import pytest

import podium
from podium.core.errors import InputError
from podium.data.ids import CodedColumn


@pytest.fixture
def write(tmp_path):
    def write_file(text, name="votes.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write_file


@pytest.mark.parametrize(
    "header",
    ["length_a,length_b", "a_length,b_length", "model_a_length,model_b_length", "Length A,Length B",
     "length_model_a,length_model_b", "length_left,length_right", "length_1,length_2"],
)  # fmt: skip
def test_pairs_of_columns(write, header):
    path = write(f"model_a,model_b,winner,{header}\nx,y,model_a,100,50\ny,z,tie,7,8\n")
    votes = podium.read(path, attributes=["length"]).votes
    first, second = votes.attributes["length"]
    assert (first.tolist(), second.tolist(), votes.outcome.tolist()) == ([100, 7], [50, 8], [1, 0.5])


def test_winners_and_losers(write):
    path = write("winner,loser,winner_length,loser_length,tie\nx,y,100,50,\ny,x,7,8,true\n")
    votes = podium.read(path, attributes=["length"]).votes
    assert not votes.sides_known
    assert votes.outcome.tolist() == [1, 0.5]
    assert votes.attributes["length"].first.tolist() == [100, 7]


def test_one_column_numbers_and_categories(write):
    path = write("model_a,model_b,winner,language,gap\nx,y,model_a,en,1.5\ny,x,model_b,de,-2\n")
    votes = podium.read(path, attributes=["language", "gap", "order"]).votes
    language = votes.attributes["language"]
    assert isinstance(language, CodedColumn)
    assert language.ids.tolist() == ["en", "de"]
    np.testing.assert_array_equal(votes.attributes["gap"], [1.5, -2])
    assert "order" not in votes.attributes


def test_metadata_of_arena_files(write):
    def describe(tokens, headers, bold):
        counts = {"header_count": {"h1": headers, "h2": 1}, "list_count": {"ordered": 0, "unordered": 2}}
        counts["bold_count"] = {"**": bold, "__": 0}
        return tokens, counts

    rows = []
    for one, two in [((100, 1, 2), (50, 0, 0)), ((30, 0, 1), (60, 2, 3))]:
        metadata = {}
        for side, (tokens, counts) in (("a", describe(*one)), ("b", describe(*two))):
            metadata[f"sum_assistant_{side}_tokens"] = tokens
            metadata |= {f"{name}_{side}": value for name, value in counts.items()}
        rows.append({"model_a": "x", "model_b": "y", "winner": "model_a", "conv_metadata": metadata})
    path = write("\n".join(map(json.dumps, rows)), "arena.jsonl")
    votes = podium.read(path, attributes=["length", "markdown", "sum_assistant_tokens"]).votes
    for name in ("length", "sum_assistant_tokens"):
        assert [side.tolist() for side in votes.attributes[name]] == [[100, 30], [50, 60]]
    assert [side.tolist() for side in votes.attributes["markdown"]] == [[6, 4], [3, 8]]


def test_months_of_dates(write):
    cells = ("2026-01-31", "2026-02-01T10:00:00Z", "2026-02-28 23:59")
    lines = "\n".join(f"x,y,model_a,{cell}" for cell in cells)
    votes = podium.read(write(f"model_a,model_b,winner,when\n{lines}\n"), attributes=["when:month"]).votes
    assert votes.attributes["when:month"].ids.tolist() == ["2026-01", "2026-02"]
    path = write("model_a,model_b,winner,tstamp\nx,y,model_a,1700000000.5\nx,y,model_a,1690000000\n", "b.csv")
    assert podium.read(path, attributes=["tstamp:year"]).votes.attributes["tstamp:year"].ids.tolist() == [
        "2023"
    ]
    with pytest.raises(InputError, match=r"a\.csv:3: the date in column 'when' is 'soon'"):
        podium.read(
            write("model_a,model_b,winner,when\nx,y,model_a,2026-01-02\nx,y,model_a,soon\n", "a.csv"),
            attributes=["when:month"],
        )


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            ("100,", "7,8"),
            r"votes\.csv:2: the value in column 'length_b' is missing; fill it in, or leave the row out",
        ),
        (
            ("100,5", "7,8", "9,n/a"),
            r"votes\.csv:4: the value in column 'length_b' is 'n/a', and 2 of 3 cells",
        ),
        (("100,x", "7,y"), "of 'length_a' and 'length_b', one holds numbers and the other text"),
    ],
)
def test_cells_that_cannot_be_used(write, cells, message):
    rows = "\n".join(f"x,y,model_a,{cell}" for cell in cells)
    path = write(f"model_a,model_b,winner,length_a,length_b\n{rows}\n")
    with pytest.raises(InputError, match=message):
        podium.read(path, attributes=["length"])


def test_unknown_names_and_tables_without_votes(write):
    path = write("model_a,model_b,winner,length_a,length_b\nx,y,model_a,1,2\n")
    with pytest.raises(InputError, match=r"there is no column 'lenght', nor a pair such as 'lenght_a'"):
        podium.read(path, attributes=["lenght"])
    with pytest.raises(InputError, match="attributes belong to votes"):
        podium.read(write("item,score,length\na,1,2\n", "lists.csv"), attributes=["length"])


def test_files_are_joined_in_order(write):
    one = write("model_a,model_b,winner,length_a,length_b\nx,y,model_a,1,2\n", "one.csv")
    two = write("model_a,model_b,winner,length_a,length_b\na,y,model_b,3,4\n", "two.csv")
    votes = podium.read([one, two], attributes=["length"]).votes
    assert [votes.items[i] for i in votes.first] == ["x", "a"]
    assert votes.attributes["length"].second.tolist() == [2, 4]


def test_soft_preferences_are_one_vote(write):
    path = write("model_a,model_b,winner,length_a,length_b\nx,y,1.25,1,2\nx,y,2,1,2\n")
    votes = podium.read(path, attributes=["length"], winner_codes="1..2").votes
    assert votes.outcome.tolist() == [0.75, 0.0]


def test_large_files_read_by_arrow(write):
    pytest.importorskip("pyarrow")
    rows = "\n".join(f"m{k % 7},m{k % 7 + 1},model_a,{k},{k + 1},c{k % 3}" for k in range(25_000))
    path = write(f"model_a,model_b,winner,length_a,length_b,kind\n{rows}\n")
    votes = podium.read(path, attributes=["length", "kind"]).votes
    assert votes.attributes["length"].second[-1] == 25_000
    assert len(votes.attributes["kind"].ids) == 3
