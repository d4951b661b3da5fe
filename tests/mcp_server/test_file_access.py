"""Only files below the folders are opened or written; sizes are counted after decompression."""

from __future__ import annotations

import gzip
import os

import pytest

from podium.core.errors import InputError, ParameterError
from podium.mcp_server.file_access import FileAccess
from podium.mcp_server.resources import read_semantics


@pytest.fixture
def access(folder):
    return FileAccess((folder,), write=True)


@pytest.mark.parametrize(
    "name", ["", "../secret.run", "link.run", "way_out/secret.run", "runs", "a\0b", "nothing.run"]
)
def test_names_outside_or_missing_are_refused_alike(access, name):
    with pytest.raises(InputError, match="there is no such file below"):
        access.resolve_file(name)


@pytest.mark.parametrize(
    "name", ["../new.run", "way_out/new.run", "..", "runs/", "/tmp/new.run", "nowhere/new.run"]
)
def test_new_files_stay_inside(access, name):
    with pytest.raises(InputError, match="there is no such file below"):
        access.resolve_new_file(name)


def test_a_dangling_link_is_not_a_new_file(access, folder, tmp_path):
    os.symlink(tmp_path / "target", folder / "dangling.run")
    with pytest.raises(ParameterError, match="exists"):
        access.resolve_new_file("dangling.run")
    (folder / "dangling.run").unlink()


def test_patterns_match_in_order_and_a_file_is_named_once(access):
    names = [path.name for path in access.resolve_files(["runs/*.run"])]
    assert names == [f"atlas-{n}.run" for n in range(1, 6)]
    with pytest.raises(InputError, match="named twice"):
        access.resolve_files(["runs/*.run", "runs/atlas-1.run"])


def test_compressed_files_count_decompressed(tmp_path):
    (tmp_path / "zeros.csv.gz").write_bytes(gzip.compress(bytes(3 << 20)))
    FileAccess((tmp_path,), most_bytes=3 << 20).resolve_files(["zeros.csv.gz"])
    with pytest.raises(InputError, match="--file-mb"):
        FileAccess((tmp_path,), most_bytes=(3 << 20) - 1).resolve_files(["zeros.csv.gz"])


def test_the_semantics_are_those_of_the_documentation():
    assert read_semantics().startswith("# Semantics\n")
