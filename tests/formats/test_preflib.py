"""PrefLib elections."""

from __future__ import annotations

import pytest

from podium.core.errors import InputError
from podium.formats.preflib import PrefLib
from podium.storage.files import Source

HEAD = """# FILE NAME: x.toi
# TITLE: an election
# NUMBER ALTERNATIVES: 4
# ALTERNATIVE NAME 1: red: dark
# ALTERNATIVE NAME 2: green
# ALTERNATIVE NAME 3: blue
# ALTERNATIVE NAME 4: white
"""


def read(body: str, head: str = HEAD, **options: object):  # type: ignore[no-untyped-def]
    return PrefLib().read([Source("x.toi", (head + body).encode())], **options).preferences  # type: ignore[arg-type]


def test_counts_ties_and_gaps() -> None:
    p = read("2: 3,{1,2}\n1: {4}\n")
    assert p.queries.tolist() == ["x"]
    assert p.experts.tolist() == ["v1", "v2", "v3"]
    assert p.index.items.tolist() == ["blue", "green", "red: dark", "white"]
    assert p.lists.rank.tolist() == [1, 2, 2, 1, 2, 2, 1]
    assert p.unlisted == "unknown"
    assert read("1: 1\n", unlisted="below").unlisted == "below"


def test_names_or_numbers() -> None:
    assert read("1: 1,2\n", items="numbers").index.items.tolist() == ["1", "2", "3", "4"]
    twice = HEAD.replace("green", "blue")
    assert read("1: 1,2\n", twice).index.items.tolist() == ["1", "2", "3", "4"]
    with pytest.raises(InputError, match="same name"):
        read("1: 1,2\n", twice, items="names")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("1: 1,5\n", "x.toi:8: unknown alternative 5"),
        ("1: 1,1\n", "x.toi:8: alternative 1 is on the ballot twice"),
        ("1: 1,{2\n", "is not a ballot"),
        ("1: 1,,2\n", "is not a ballot"),
        ("1: 1,2,\n", "is not a ballot"),
        ("0: 1,2\n", "is not a ballot"),
        ("1,2,3\n", "is not a ballot"),
        ("900000000: 1,2\n", "more than 1,000,000 entries"),
        ("", "there are no ballots"),
    ],
)
def test_wrong_ballots(body: str, words: str) -> None:
    with pytest.raises(InputError, match=r"x.toi") as error:
        read(body)
    assert words in str(error.value)


def test_the_old_format_is_named() -> None:
    old = b"3\n1,red\n2,green\n3,blue\n5,5,2\n3,1,2,3\n2,3,2,1\n"
    assert PrefLib().sniff(old) > 0.5
    with pytest.raises(InputError, match="old format"):
        PrefLib().read([Source("x.soc", old)])
