"""Module paths of earlier versions still work, warn, and give the very same modules."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from podium import _renamed


@pytest.mark.parametrize("old", sorted(_renamed.RENAMED))
def test_an_old_path_gives_the_new_module(old, monkeypatch):
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {_renamed.RENAMED[old]}"):
        module = importlib.import_module(old)
    assert module is importlib.import_module(_renamed.RENAMED[old])
    assert module.__spec__.name == _renamed.RENAMED[old]


def test_modules_below_an_old_package_are_not_loaded_twice():
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from podium.aggregators.base import Aggregator as old\n"
        "from podium.methods.base import Aggregator as new\n"
        "import podium.errors, podium.core.errors\n"
        "assert old is new and podium.errors.InputError is podium.core.errors.InputError\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_that_moved_up_are_still_found():
    import podium.evaluate
    from podium.analysis.experts import diagnose

    with pytest.warns(DeprecationWarning, match=r"podium\.analysis\.experts\.diagnose"):
        assert podium.evaluate.diagnose is diagnose
