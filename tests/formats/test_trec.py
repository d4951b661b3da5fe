"""TREC runs and qrels: both readers against a plain twin, and every way a file can be wrong."""

from __future__ import annotations

import gzip
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Labels, Preferences, formats
from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.formats import trec_columns
from podium.formats.trec import Qrels, TrecRun
from podium.kernels import text_columns
from podium.storage.files import Source
from reference import trec as twin

RUN = "q1 Q0 d1 1 3.5 bm25\nq1 Q0 d2 2 2.5 bm25\nq1 Q0 d2 1 0.9 dense\n"


def read_lines_only(patch: pytest.MonkeyPatch) -> None:
    """Leave all files to the reader in plain Python."""
    patch.setattr(trec_columns, "read_runs", lambda *_: None)
    patch.setattr(trec_columns, "read_qrels", lambda *_: None)


@pytest.fixture(params=["plain", "compiled"])
def path_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test through the kernels, and through the reader that takes what they refuse."""
    if request.param == "plain":
        read_lines_only(monkeypatch)
    return str(request.param)


def read(text: str | bytes, **options: object) -> Preferences:
    raw = text if isinstance(text, bytes) else text.encode()
    found = TrecRun().read([Source("a.run", raw)], **options).preferences  # type: ignore[arg-type]
    assert found is not None
    return found


def as_dict(p: Preferences) -> dict[str, dict[str, list[tuple[str, int, float]]]]:
    found: dict[str, dict[str, list[tuple[str, int, float]]]] = {}
    t = p.lists
    assert t.score is not None
    for k in range(len(t)):
        query, expert = p.queries[int(t.query_of_list[k])], p.experts[int(t.expert[k])]
        rows = [
            (p.index.items[int(t.item[r])], int(t.rank[r]), float(t.score[r]))
            for r in range(t.starts[k], t.starts[k + 1])
        ]
        found.setdefault(query, {})[expert] = rows  # type: ignore[arg-type,index,assignment]
    return found


def test_a_run(path_kind: str) -> None:
    p = read(RUN)
    assert as_dict(p) == twin.read_run(RUN)
    assert p.queries.tolist() == ["q1"]
    assert p.experts.tolist() == ["bm25", "dense"]


ids = st.text(
    st.characters(codec="utf-8", exclude_characters=" \t\n\r\v\f\0"), min_size=1, max_size=12
) | st.sampled_from(
    ["d1", "d10", "d2", "clueweb09-en0000-01", "clueweb09-en0000-011", "clueweb09-en0000-02", "é", "z"]
)


@st.composite
def run_texts(draw: st.DrawFn) -> str:
    lists = draw(
        st.dictionaries(
            st.tuples(ids, ids), st.lists(ids, min_size=1, max_size=8, unique=True), min_size=1, max_size=6
        )
    )
    lines = []
    for (query, tag), items in lists.items():
        for place, item in enumerate(items):
            rank = draw(st.sampled_from([place + 1, place, 3]))
            score = draw(st.sampled_from([repr(10.0 - place), "1.5", "-2e-3", "9823456789012345.678", "1"]))
            lines.append(" ".join([query, "Q0", item, str(rank), score, tag]))
    gap = draw(st.sampled_from([" ", "\t", " \t "]))
    end = draw(st.sampled_from(["\n", "\r\n", "\n\n"]))
    shuffled = draw(st.permutations(lines))
    return end.join(line.replace(" ", gap) for line in shuffled) + draw(st.sampled_from(["", "\n"]))


@settings(deadline=None)
@given(text=run_texts(), order=st.sampled_from(["auto", "score"]), threads=st.sampled_from(["1", "3"]))
def test_both_readers_equal_the_twin(text: str, order: str, threads: str) -> None:
    answers = []
    for plain_only in (True, False):
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore", PodiumWarning)
            patch.setattr(text_columns, "_THREAD_BYTES", 1)
            if plain_only:
                read_lines_only(patch)
            patch.setenv("PODIUM_THREADS", threads)
            answers.append(read(text, order=order))
    plain, compiled = answers
    assert as_dict(plain) == as_dict(compiled) == twin.read_run(text, order)
    assert plain == compiled
    assert plain.index.arrival.tolist() == compiled.index.arrival.tolist()
    for query, items in twin.arrivals(text).items():
        here = compiled.index.slots(query)
        by_arrival = np.argsort(compiled.index.arrival[here])
        assert [compiled.index.items[here][k] for k in by_arrival] == items
        assert compiled.index.items[here] == sorted(items, key=str.encode)


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_scores_are_exact(values: list[float]) -> None:
    text = "".join(f"q Q0 d{k} 1 {v!r} t\n" for k, v in enumerate(values))
    p = read(text, order="score")
    got = {p.index.items[int(i)]: s for i, s in zip(p.lists.item, p.lists.score, strict=True)}  # type: ignore[arg-type]
    assert got == {f"d{k}": v for k, v in enumerate(values)}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("q1 Q0 d9 3 1.5", "5 columns here, a TREC run has 6"),
        ("q1 Q0 d9 3 1.5 my tag", "7 columns here"),
        ("q1 Q0 d9 nan 1.5 t", "the rank is 'nan'"),
        ("q1 Q0 d9 -1 1.5 t", "the rank is -1"),
        ("q1 Q0 d9 2147483648 1.5 t", "the rank is 2147483648"),
        ("q1 Q0 d9 1.5 1.5 t", "the rank is 1.5"),
        ("q1 Q0 d9 3 nan t", "the score is 'nan'"),
        ("q1 Q0 d9 3 -inf t", "the score is '-inf'"),
        ("q1 Q0 d9 3 1e999 t", "the score is '1e999'"),
        ("q1 Q0 d9 3 1_0 t", "the score is '1_0'"),
        ("q1 Q0 d9 3 high t", "the score is 'high'"),
        ("q1 Q0 d2 3 0.5 bm25", "item 'd2'"),
    ],
)
def test_wrong_lines_are_named(path_kind: str, line: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        read(RUN + "\n" + line + "\nq2 Q0 d1 1 1 t\n")
    assert words in str(error.value)
    assert str(error.value).startswith("a.run:5: ")


def test_rank_zero_is_refused_when_ranks_are_asked_for(path_kind: str) -> None:
    with pytest.raises(InputError, match=r"a.run:1: the rank is 0"):
        read("q Q0 a 0 2 t\nq Q0 b 1 1 t\n", order="rank")
    with pytest.warns(PodiumWarning, match="start at 0"):
        p = read("q Q0 a 0 2 t\nq Q0 b 1 1 t\n")
    assert p.lists.rank.tolist() == [1, 2]


def test_ranks_that_disagree_with_scores(path_kind: str) -> None:
    text = "q Q0 a 1 1.0 t\nq Q0 b 2 2.0 t\nq Q0 c 3 2.0 t\np Q0 a 1 5 t\np Q0 b 5 5 t\n"
    with pytest.warns(PodiumWarning, match="1 list disagree"):
        p = read(text)
    assert as_dict(p)["q"]["t"] == [("b", 1, 2.0), ("c", 1, 2.0), ("a", 3, 1.0)]
    assert as_dict(p)["p"]["t"] == [
        ("a", 1, 5.0),
        ("b", 5, 5.0),
    ]  # gaps and ties in score are no disagreement
    with pytest.warns(PodiumWarning, match="scores rise"):
        assert as_dict(read(text, order="rank"))["q"]["t"][0] == ("a", 1, 1.0)


def test_options_are_checked() -> None:
    with pytest.raises(ParameterError, match="order is 'ranks'; accepted: auto, rank, score"):
        read(RUN, order="ranks")


def test_experts_by_file(path_kind: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.run").write_text(RUN)
    files = [tmp_path / "one.run", tmp_path / "two.run"]
    with pytest.raises(
        InputError,
        match=r"one\.run and .*two\.run both contain a list tagged 'bm25' for query 'q1'.*expert='file'",
    ):
        formats.read(files)
    for path, tag in zip(files, "xy", strict=True):
        path.write_text(f"q1 Q0 d1 1 3.5 {tag}\nq1 Q0 d2 2 2.5 {tag}")  # no newline at the end
    assert formats.read(files).preferences.experts.tolist() == ["x", "y"]  # type: ignore[union-attr]
    by_file = formats.read(files, expert="file").preferences
    assert by_file is not None
    assert by_file.experts.tolist() == ["one", "two"]
    assert by_file.lists.starts.tolist() == [0, 2, 4]
    with pytest.raises(InputError, match="given twice"):
        formats.read([files[0], files[0]])


@pytest.mark.parametrize("names", [("a.run", "a.txt"), ("a.run", "a.run.gz"), ("bm25.v1", "bm25.v2")])
def test_files_that_differ_in_their_extension_are_two_experts(
    path_kind: str, tmp_path: Path, names: tuple[str, str]
) -> None:
    for name, item in zip(names, "xy", strict=True):
        text = f"q1 Q0 {item} 1 3.5 tag\n".encode()
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    found = formats.read([tmp_path / name for name in names], expert="file").preferences
    assert found is not None
    assert found.experts.tolist() == sorted(names)


def test_a_remedy_for_ranks_by_score_that_keeps_the_answer(path_kind: str, tmp_path: Path) -> None:
    """One file of three disagrees; another has equal scores, whose ranks `order="score"` would give up."""
    texts = {
        "good.run": "q Q0 a 1 3 g\nq Q0 b 2 2 g\nq Q0 c 3 1 g\n",
        "tied.run": "q Q0 a 1 3 t\nq Q0 b 2 3 t\nq Q0 c 3 3 t\n",
        "wrong.run": "q Q0 a 1 1 w\nq Q0 b 2 2 w\nq Q0 c 3 3 w\n",
    }
    files = [tmp_path / name for name in texts]
    for path in files:
        path.write_text(texts[path.name])
    with pytest.warns(PodiumWarning) as said:
        unasked = formats.read(files).preferences
    (text,) = [str(w.message) for w in said]
    assert text.startswith(f"{tmp_path / 'wrong.run'}: the ranks of 1 list disagree")
    (remedy,) = re.findall(r"order='(\w+)' does the same", text)
    assert formats.read(files, order=remedy).preferences == unasked  # and without a warning
    assert formats.read(files, order="score").preferences != unasked
    files[0].write_text("q Q0 a 0 3 g\nq Q0 b 1 2 g\np Q0 b 0 2 g\n")
    with pytest.warns(PodiumWarning, match=r"good.run and 1 more of the 3 files: the ranks of 3 lists"):
        formats.read(files)


def test_files_that_differ_in_what_an_omitted_item_means_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "b.csv").write_text("query,expert,item,rank\nq1,e,d1,1\nq1,e,d2,2\n")
    files = [tmp_path / "a.run", tmp_path / "b.csv"]
    with pytest.raises(InputError) as refused:
        formats.read(files)
    assert "below the listed ones in " + str(files[0]) in str(refused.value)
    assert "unknown in " + str(files[1]) in str(refused.value)
    assert formats.read(files, unlisted="below").preferences is not None


def test_a_wrong_line_in_the_second_file(path_kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "b.run").write_text("q1 Q0 d1 1 2 x\nq1 Q0 d1 x 2 x\n")
    with pytest.raises(InputError, match=r"b\.run:2: the rank is 'x'"):
        formats.read([tmp_path / "a.run", tmp_path / "b.run"], format="trec")


def test_long_ids_and_unicode(path_kind: str) -> None:
    long = "x" * 1_000_000
    p = read(f"q Q0 {long}b 1 2 t\nq Q0 {long}a 2 1 t\nq Q0 日本 3 0.5 t\n")
    assert p.index.items.tolist() == [long + "a", long + "b", "日本"]


def test_qrels(path_kind: str) -> None:
    text = b"\xef\xbb\xbfq1 0 d1 2\r\nq1 0 d2 -2\r\n\r\nq2\t0\td1\t0.5\r\n"
    labels = Qrels().read([Source("x", text)]).labels
    assert labels == Labels.from_dict({"q1": {"d1": 2, "d2": -2}, "q2": {"d1": 0.5}})
    with pytest.raises(InputError, match=r"x:2: item 'd' is labeled twice"):
        Qrels().read([Source("x", b"q 0 d 1\nq 0 d 1\n")])


def test_gzip_is_known_by_its_bytes(path_kind: str, tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(gzip.compress(RUN.encode()))
    assert formats.read(tmp_path / "run").preferences == read(RUN)


def test_blank_lines_and_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    lines = [f"q{k // 7} Q0 d{rng.integers(10**9)} {k % 7 + 1} {10 - k % 7} t{k % 3}" for k in range(700)]
    text = "\n".join(line + "\n" * int(rng.integers(0, 3)) for line in lines)
    with pytest.MonkeyPatch.context() as patch:
        read_lines_only(patch)
        plain = read(text)
    monkeypatch.setattr(text_columns, "_THREAD_BYTES", 1)
    for threads in ("1", "2", "7"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        assert read(text) == plain
