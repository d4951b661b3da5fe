"""Elections survive round trips, also against PrefLib's format; wrong ballots are refused by line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Preferences
from podium.core.errors import InputError
from podium.formats.base import Content
from recipe_reading import read_text, write_and_read

CHARACTERS = st.characters(codec="ascii", categories=("L", "N", "P", "Zs"), exclude_characters='[]"#')
NAMES = st.text(CHARACTERS, min_size=1, max_size=6).map(str.strip).filter(bool)


@st.composite
def elections(draw: st.DrawFn) -> Preferences:
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    rows = []
    for voter in range(draw(st.integers(1, 4))):
        chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        places = draw(st.lists(st.integers(1, 3), min_size=len(chosen), max_size=len(chosen)))
        for item, place in zip(chosen, places, strict=True):
            rows.append((f"v{voter + 1}", item, 1 + sum(p < place for p in places)))
    expert, item, rank = zip(*rows, strict=True)
    return Preferences.from_rows(["f"] * len(rows), expert, item, rank=rank)


@settings(max_examples=80, deadline=None)
@given(elections())
@pytest.mark.parametrize("name", ["abif", "blt"])
def test_ballots_survive_a_round_trip(name, election):
    again = write_and_read(name, Content(election), f"f.{name}", unlisted="unknown").preferences
    assert again is not None
    assert again == election


def test_the_same_election_in_three_formats():
    ballots = "# FILE NAME: f\n# ALTERNATIVE NAME 1: A\n# ALTERNATIVE NAME 2: B\n# ALTERNATIVE NAME 3: C\n"
    preflib = read_text(None, ballots + "2: 1,{2,3}\n1: 3,1\n", "f.toi").preferences
    abif = read_text(None, "=A:A\n=B:B\n=C:C\n2:A>B=C\n1:C>A\n", "f.abif").preferences
    blt = read_text(None, '3 1\n2 1 2=3 0\n1 3 1 0\n0\n"A"\n"B"\n"C"\n"t"\n', "f.blt").preferences
    assert preflib == abif == blt


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("abif", "1:a>b\n2 a>b\n", "f.abif:2: '2 a>b' is not a ballot; a ballot looks like 27:a>b=c"),
        ("abif", "1:a,b\n", "f.abif:1: candidates are separated by commas but have no scores"),
        ("abif", "1:a>a\n", "f.abif:1: 'a' is on the ballot twice; keep it once"),
        ("abif", "1:a>\n", "f.abif:1: 'a>' is not a ballot"),
        ("blt", '2 1\n1 3 0\n0\n"a"\n"b"\n', "f.blt:2: there is no candidate 3; candidates are 1 to 2"),
        ("blt", '2 1\n1 1 0\n0\n"a"\n', "f.blt: 1 names for 2 candidates"),
        ("blt", "2 1\n1 1 0\n", "f.blt: the ballots do not end; a line with 0 follows the last ballot"),
        ("wmd", "# FILE NAME: f\n# DATA TYPE: wmd\n1, 2\n", "f.wmd:3: '1, 2' is not an edge"),
    ],
)
def test_what_is_wrong_is_refused_by_line(name, text, words):
    with pytest.raises(InputError) as error:
        read_text(name, text, f"f.{name}")
    assert words in str(error.value)


def test_edges_of_a_majority_graph_are_votes():
    head = "# FILE NAME: f\n# DATA TYPE: wmd\n# ALTERNATIVE NAME 1: A\n# ALTERNATIVE NAME 2: B\n"
    text = f"{head}1, 2, 3.0\n2, 1, 1.0\n1,1,9\n"
    content = read_text(None, text, "f.wmd", edges="votes")
    assert content.preferences == Preferences.from_comparisons(
        ["f"] * 2, ["graph"] * 2, ["A", "B"], ["B", "A"], weight=[3.0, 1.0]
    )
    assert "dropped: 1 loop" in content.summary
