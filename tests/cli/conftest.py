"""What several tests of the command line start from."""

from __future__ import annotations

import pytest


@pytest.fixture
def files(tmp_path):
    """Two runs and their qrels."""
    (tmp_path / "bm25.run").write_text(
        "q1 Q0 a 1 9 bm25\nq1 Q0 b 2 5 bm25\nq2 Q0 c 1 3 bm25\nq2 Q0 d 2 1 bm25\n"
    )
    (tmp_path / "dense.run").write_text("q1 Q0 b 1 .9 dense\nq1 Q0 c 2 .5 dense\nq2 Q0 d 1 .3 dense\n")
    (tmp_path / "qrels.txt").write_text("q1 0 b 2\nq1 0 a 0\nq2 0 d 1\nq2 0 c 0\n")
    return tmp_path
