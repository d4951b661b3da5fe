"""The tools choose the method unless one is named, and state the choice."""

from __future__ import annotations

import pytest

from podium.core.errors import ParameterError
from podium.mcp_server.file_access import FileAccess
from podium.mcp_server.tools import annotators, compare, deploy, explain, fuse

ROWS = [f"{q} Q0 {i} {r} {9 - r} {e}" for q in "uvw" for e in "xyz" for r, i in enumerate("abcd", 1)]


@pytest.fixture
def access(tmp_path):
    (tmp_path / "all.run").write_text("\n".join(ROWS) + "\n")
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 a 1\n{q} 0 d 0\n" for q in "uvw"))
    (tmp_path / "votes.csv").write_text(
        "annotator,winner,loser\n" + "ann,a,b\nbob,a,b\nann,b,c\nbob,b,c\n" * 5
    )
    return FileAccess((tmp_path,))


CHOICE = "auto chose quality_weighted: ranked lists of 3 experts"


def test_default_is_auto(access):
    answer = fuse(access, ["all.run"])
    assert answer.document["method"] == "quality_weighted"
    assert answer.document["notes"][0].startswith(CHOICE)
    inline = fuse(access, lists=[["a", "b"], ["a", "b"], ["b", "a"]])
    assert inline.document["method"] == "quality_weighted"
    assert explain(access, ["all.run"], "u").text.startswith(CHOICE)
    assert annotators(access, ["votes.csv"]).text.startswith("auto chose crowd_bt: votes of 2 experts")


def test_compare_and_deploy_take_it(access):
    answer = compare(access, ["all.run"], "qrels.txt", ["auto", "rrf"])
    assert answer.document["notes"][0].startswith(CHOICE)
    deployed = deploy(access, "auto", "elasticsearch", nearest=True, files=["all.run"])
    assert deployed.text.startswith(CHOICE)
    with pytest.raises(ParameterError, match="give their files"):
        deploy(access, "auto", "elasticsearch")
