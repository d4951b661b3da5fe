"""Opening, sniffing, options and writing."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest

from podium import Labels, Preferences, ReciprocalRankFusion, formats
from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.core.registry import formats as registry
from podium.storage import files

P = Preferences.from_lists({"q": {"e": {"a": 3.0, "b": 1.0}}}, unlisted="below")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"q Q0 a 1 2 t\nq Q0 \x00 1 2 t\n", ":2: a NUL byte"),
        (
            b"q Q0 a 1 2 t\nq Q0 \xff 1 2 t\n",
            ":2: the byte 0xff is not UTF-8; give its encoding, for example encoding='latin-1'",
        ),
        ("q Q0 a 1 2 t\n".encode("utf-16"), "the file is utf-16; give encoding='utf-16'"),
        (b"PK\x03\x04\n", "a zip archive"),
        (b"\x1f\x8bnonsense", "the gzip data are damaged"),
        (b"PAR1 broken", "not a Parquet file"),
        (b"no known format\n", "give format=, one of abif, blt, counts, csv, jsonl"),
        (b"\x89PNG\r\n\x1a\n\0\0", "binary file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, raw: bytes, words: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(raw)
    with pytest.raises(InputError) as error:
        formats.read(path)
    assert words in str(error.value)
    assert str(path) in str(error.value)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        formats.read(tmp_path / "none.run")
    with pytest.raises(InputError, match="this is a folder"):
        formats.read(tmp_path)
    with pytest.raises(ParameterError, match="no input file"):
        formats.read([])


def test_encodings(tmp_path: Path) -> None:
    path = tmp_path / "x.run"
    for encoding in ("latin-1", "utf-16"):
        path.write_bytes("q Q0 é 1 2 t\n".encode(encoding))
        found = formats.read(path, encoding=encoding).preferences
        assert found is not None
        assert found.index.items.tolist() == ["é"]
    with pytest.raises(InputError, match="unknown encoding 'klingon'"):
        formats.read(path, encoding="klingon")


def test_bytes_that_span_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_BLOCK", 3)
    for text in ("aé日b\n" * 5, "ééé", "日" * 9):
        assert files.Source("x", text.encode()).data == text.encode()
    with pytest.raises(InputError, match="x:3: the byte 0xe9"):
        _ = files.Source("x", b"aaaa\nb\nc\xe9d\n").data


def test_mapped_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MAP_FROM", 1)
    (tmp_path / "x.run").write_bytes(b"\xef\xbb\xbfq Q0 a 1 3.0 e\nq Q0 b 2 1.0 e\n")
    assert formats.read(tmp_path / "x.run").preferences == P
    (tmp_path / "x.gz").write_bytes(gzip.compress((tmp_path / "x.run").read_bytes()))
    assert formats.read(tmp_path / "x.gz").preferences == P


def test_standard_input_and_output(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(b"q Q0 a 1 3.0 e\rq Q0 b 2 1.0 e\r"))
    )  # old line ends
    assert formats.read("-").preferences == P
    formats.write(P, "-", "trec")
    assert capfdbinary.readouterr().out == b"q Q0 a 1 3.0 e\nq Q0 b 2 1.0 e\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("q Q0 a 1 2 t\n", "trec"),
        ("q\tQ0\ta\t1\t2\tt\n", "trec"),
        ("topic\tQ0\ta\t1\t2\tbm25\ntopic\tQ0\tdoc\t2\t1\trun\n", "trec"),  # ids named like columns
        ("q 0 a 1\n", "qrels"),
        ("1 qid:1 1:2 #docid = x\n", "letor"),
        ("# FILE NAME: x\n", "preflib"),
        ('{"a": 1}\n', "jsonl"),
        ("query,expert,item,rank\nq,e,a,1\n", "csv"),
        ("model_a,model_b,winner\nx,y,x\n", "csv"),
        ("winner;loser\nx;y\n", "csv"),
        ("winner\tloser\n1\t2\n", "csv"),
    ],
)
def test_sniffing(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "f").write_text(text)
    assert formats.sniff(tmp_path / "f") == name


def test_runs_and_qrels_together(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q Q0 a 1 3.0 e\n")
    (tmp_path / "a.qrels").write_text("q 0 a 1\n")
    content = formats.read([tmp_path / "a.run", tmp_path / "a.qrels"], order="score")
    assert content.preferences is not None
    assert content.labels == Labels.from_dict({"q": {"a": 1}})


def test_unknown_formats_and_options(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q Q0 a 1 3.0 e\n")
    with pytest.raises(ParameterError, match="no format is called 'trek'"):
        formats.read(tmp_path / "a.run", "trek")
    with pytest.raises(ParameterError, match="format trec has no option 'ordr' to read; did you mean order"):
        formats.read(tmp_path / "a.run", ordr="rank")
    with pytest.raises(ParameterError, match="give format="):
        formats.write(P, tmp_path / "x.unknown")
    with pytest.raises(ParameterError, match="cannot write a list"):
        formats.write([], tmp_path / "x.run")  # type: ignore[arg-type]


def test_writing_never_overwrites_unasked(tmp_path: Path) -> None:
    path = tmp_path / "x.run"
    formats.write(P, path)
    with pytest.raises(InputError, match=r"x\.run: the file exists"):
        formats.write(P, path)
    formats.write(P, path, overwrite=True)
    assert formats.read(path).preferences == P
    assert [p.name for p in tmp_path.iterdir()] == ["x.run"]
    with pytest.raises(InputError, match="cannot be written"):
        formats.write(P, tmp_path / "no" / "x.run")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.run"
    path.write_text("old")

    def broken():  # type: ignore[no-untyped-def]
        yield b"new"
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        files.write_atomically(broken(), path, overwrite=True)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.run"]


def test_gzip_output_is_the_same_every_time(tmp_path: Path) -> None:
    formats.write(P, tmp_path / "x.run.gz")
    formats.write(P, tmp_path / "y.run.gz")
    assert (tmp_path / "x.run.gz").read_bytes() == (tmp_path / "y.run.gz").read_bytes()
    assert formats.read(tmp_path / "x.run.gz").preferences == P


def test_a_consensus_is_written_as_a_run(tmp_path: Path) -> None:
    consensus = ReciprocalRankFusion().aggregate(P)
    formats.write(consensus, tmp_path / "x.run", tag="fused")
    found = formats.read(tmp_path / "x.run").preferences
    assert found is not None
    assert found.experts.tolist() == ["fused"]
    assert [found.index.items[int(i)] for i in found.lists.item] == ["a", "b"]


def test_what_a_format_cannot_hold_is_said(tmp_path: Path) -> None:
    content = formats.Content(P, Labels.from_dict({"q": {"a": 1}}))
    with pytest.warns(PodiumWarning, match="trec files cannot store them: labels"):
        formats.write(content, tmp_path / "x.run")


def test_every_format_is_described() -> None:
    for name, cls in registry.all().items():
        assert cls.name == name
        assert cls.summary
        assert cls.suffixes
