"""Reading and writing files: paths, `-`, gzip, encodings; line numbers for error messages; atomic writes."""

from __future__ import annotations

import codecs
import functools
import gzip
import json
import mmap
import os
import stat
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from podium.core.errors import InputError, MessageText, Option
from podium.kernels import dispatch
from podium.kernels.dispatch import U1
from podium.storage.temporary_files import TemporaryFile

_NEWLINE = 10
_BLOCK = 1 << 22
_LONGEST_HEAD = 1 << 20  # bytes
_MAP_FROM = 1 << 24  # bytes; smaller files are simply read
_CONTINUATIONS, _LEADS = bytes(range(0x80, 0xC0)), bytes(range(0xC0, 0x100))  # of characters in UTF-8
_BOMS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_ARCHIVES = {
    b"PK\x03\x04": "a zip archive",
    b"BZh": "bzip2-compressed",
    b"\xfd7zXZ": "xz-compressed",
    b"\x28\xb5\x2f\xfd": "zstandard-compressed",
}


@dataclass(frozen=True)
class Source:
    """One input (already decompressed); large files are mapped, not copied."""

    name: str  # as given, for messages
    raw: bytes | mmap.mmap
    encoding: str = "utf-8"

    @property
    def stem(self) -> str:
        """The file name without folders, `.gz` and one suffix; the default name of an expert."""
        name = Path(self.name).name
        name = name.removesuffix(".gz") or name
        return Path(name).stem or name

    @functools.cached_property
    def text(self) -> U1:
        """The bytes of the text in UTF-8 without a byte-order mark, not checked; a blank file is an error."""
        raw = self.raw
        if self.encoding.lower().replace("_", "-") not in ("utf-8", "utf8", "ascii"):
            try:
                raw = bytes(raw).decode(self.encoding).encode()
            except LookupError:
                remedy = "try utf-8, latin-1 or cp1252"
                raise self.error(f"unknown encoding {self.encoding!r}", remedy=remedy) from None
            except UnicodeError as error:
                raise self.error(f"the file is not {self.encoding}: {error}") from None
        text = np.frombuffer(raw, np.uint8)
        if raw[:3] == codecs.BOM_UTF8:
            text = text[3:]
        if not text[:4096].tobytes().strip() and not text.tobytes().strip():
            raise self.error("the file is empty")
        start = text[:8].tobytes()
        for mark, name in _BOMS.items():
            if start.startswith(mark):
                raise self.error(f"the file is {name}", remedy=("give ", Option("encoding", name)))
        for magic, what in _ARCHIVES.items():
            if start.startswith(magic):
                raise self.error(f"the file is {what}", remedy="unpack it first, or use gzip")
        return text

    @functools.cached_property
    def view(self) -> U1:
        """The text as valid UTF-8 bytes with line ends; a blank file is an error."""
        view = self.text
        # the smallest and the largest byte; threads, because every byte of the file is read
        blocks = [view[begin : begin + _BLOCK] for begin in range(0, len(view), _BLOCK)]
        if len(blocks) == 1:
            low, high = int(view.min()), int(view.max())
        else:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(dispatch.count_threads()) as pool:
                extremes = list(pool.map(lambda b: (int(b.min()), int(b.max())), blocks))
            low, high = min(low for low, _ in extremes), max(high for _, high in extremes)
        if low == 0:
            line = self._line_number(view, int(np.flatnonzero(view == 0)[0]))
            raise self.error("a NUL byte: this is a binary file", line, "give a text file")
        if high >= 128:
            decoder = codecs.getincrementaldecoder("utf-8")()
            for begin in range(0, len(view), _BLOCK):
                block = view[begin : begin + _BLOCK]
                carried = len(decoder.getstate()[0])
                try:
                    decoder.decode(block.tobytes(), final=begin + _BLOCK >= len(view))
                except UnicodeDecodeError as error:
                    at = begin - carried + error.start
                    remedy = ("give its encoding, for example ", Option("encoding", "latin-1"))
                    raise self.error(
                        f"the byte 0x{view[at]:02x} is not UTF-8", self._line_number(view, at), remedy
                    ) from None
        # classic Mac OS line endings
        if not (view[:_BLOCK] == _NEWLINE).any() and not (view == _NEWLINE).any():
            view = np.frombuffer(view.tobytes().replace(b"\r", b"\n"), np.uint8)
        return view

    @functools.cached_property
    def data(self) -> bytes:
        """The text as one bytes object."""
        return self.view.tobytes()

    @property
    def estimated_rows(self) -> int:
        """Estimated number of lines, from the length of the first ones."""
        head = self.view[:65536]
        return len(self.view) * max(int((head == _NEWLINE).sum()), 1) // len(head)

    def _line_number(self, view: U1, at: int) -> int:
        return view[:at].tobytes().count(b"\n") + 1

    def iterate_lines(self) -> Iterator[tuple[int, bytes]]:
        """Numbered non-blank lines, without line endings."""
        for number, line in enumerate(self.data.split(b"\n"), 1):
            if line and not line.isspace():
                yield number, line

    def iterate_blocks(self) -> Iterator[bytes]:
        """Blocks of complete lines of `text`, neither checked nor kept in memory."""
        text, begin = self.text, 0
        while begin < len(text):
            block = text[begin : begin + _BLOCK].tobytes()
            end = block.rfind(b"\n") + 1
            while not end and begin + len(block) < len(text):  # a line longer than a block
                block += text[begin + len(block) : begin + 2 * len(block)].tobytes()
                end = block.find(b"\n") + 1
            block = block[: end or None]
            yield block
            self.release_pages(begin, begin + len(block))
            begin += len(block)

    def release_pages(self, begin: int, end: int) -> None:
        """Unmap the pages of a large file that hold these bytes; reading them maps them again."""
        begin -= begin % mmap.PAGESIZE
        if isinstance(self.raw, mmap.mmap) and hasattr(self.raw, "madvise") and begin < len(self.raw):
            self.raw.madvise(mmap.MADV_DONTNEED, begin, end - begin)

    def head(self, size: int = 65536) -> bytes:
        """The first complete lines, for format detection; of a line longer than that, up to 1 MiB."""
        start = self.raw[:size]
        if len(self.raw) <= size:
            return start
        end = start.rfind(b"\n")
        if end >= 0:
            return start[: end + 1]
        block = self.raw[:_LONGEST_HEAD]
        end = block.find(b"\n") + 1
        if end or len(block) == len(self.raw):
            return block[: end or None]
        return block.rstrip(_CONTINUATIONS).rstrip(_LEADS)  # the last character may have been cut

    def error(self, problem: str, line: int | None = None, remedy: MessageText | None = None) -> InputError:
        """An error located in this file."""
        return InputError(problem, source=self.name, line=line, remedy=remedy)


def open_source(path: str | os.PathLike[str], encoding: str = "utf-8") -> Source:
    """Read a file, or standard input for `-`; gzip is detected from the first bytes, not from the name."""
    name = os.fspath(path)
    if name == "-":
        return Source("standard input", _decompress_gzip(sys.stdin.buffer.read(), "standard input"), encoding)
    try:
        with Path(name).open("rb") as file:
            large = Path(name).is_file() and os.fstat(file.fileno()).st_size >= _MAP_FROM
            raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if large else file.read()
    except FileNotFoundError:
        raise InputError("there is no such file", source=name, remedy="check the path") from None
    except IsADirectoryError:
        raise InputError("this is a folder", source=name, remedy="name the files in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"the file cannot be read: {reason}", source=name) from None
    return Source(name, _decompress_gzip(raw, name), encoding)


def _decompress_gzip(raw: bytes | mmap.mmap, name: str) -> bytes | mmap.mmap:
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(
            f"the gzip data are damaged: {error}", source=name, remedy="copy the file again"
        ) from None


def derive_expert_names(sources: Sequence[Source]) -> list[str]:
    """Names of experts from their files: the stem, or the full file name where two files share the stem."""
    whole = [Path(source.name).name for source in sources]
    names = [source.stem for source in sources]
    for _ in range(2):  # a full name may in turn be the stem of a third file
        times = Counter(names)
        names = [full if times[name] > 1 else name for name, full in zip(names, whole, strict=True)]
    return names


def derive_distinct_names(sources: Sequence[Source]) -> list[str]:
    """The same; two files with the same name are an error."""
    names = derive_expert_names(sources)
    refuse_same_names(names, sources)
    return names


def refuse_same_names(names: Sequence[str], sources: Sequence[Source]) -> None:
    """Reject two files that would give two experts the same name."""
    seen: dict[str, str] = {}
    for name, source in zip(names, sources, strict=True):
        if name in seen:
            raise InputError(
                f"two files would both be named {name!r}: {seen[name]} and {source.name}",
                remedy="rename one of them",
            )
        seen[name] = source.name


def write_atomically(
    chunks: Iterable[bytes], path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write to a temporary file beside the target, then rename: readers never see a partial file.

    Temporary files of a killed run are removed by the next write to the same target.
    """
    name = os.fspath(path)
    if name == "-":
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        return
    target = Path(os.path.realpath(name))  # a symbolic link is kept and its target is written
    if target.is_dir():
        raise InputError("this is a folder", source=name, remedy="give a file name")
    if target.exists() and not overwrite:
        raise InputError(
            "the file exists",
            source=name,
            remedy=("choose another name or give ", Option("overwrite", True, of="writing")),
        )
    if target.exists() and not target.is_file():  # a device or a pipe: it cannot be replaced
        with open(target, "wb") as raw:
            raw.writelines(chunks)
        return
    try:
        with TemporaryFile(target) as beside:
            with beside.open() as raw:
                if target.suffix == ".gz":
                    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                        packed.writelines(chunks)
                else:
                    raw.writelines(chunks)
            if target.exists():
                os.chmod(beside.path, stat.S_IMODE(target.stat().st_mode))
            beside.publish()
    except OSError as error:
        raise InputError(f"the file cannot be written: {error.strerror or error}", source=name) from None


def write_json(value: Any, path: str | os.PathLike[str]) -> None:
    """Write a JSON document atomically, over an older one."""
    write_atomically([json.dumps(value).encode()], path, overwrite=True)


def read_json(path: str | os.PathLike[str]) -> Any:
    """A JSON document; None if there is none, or it is damaged."""
    try:
        return json.loads(Path(path).read_bytes())
    except (OSError, ValueError):
        return None
