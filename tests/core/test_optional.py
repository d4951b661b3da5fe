"""Optional packages: everything else works without them, and what needs one names the extra that installs it."""

from __future__ import annotations

import ast
import pickle
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import podium
from podium.core.errors import MissingPackageError, Option
from podium.core.optional import PACKAGES, check_extra, check_package, is_installed, require_module

ROOT = Path(podium.__file__).parents[2]
# where the name on PyPI is another one
DISTRIBUTIONS = {
    "haystack": "haystack-ai",
    "llama_index": "llama-index-core",
    "mlflow": "mlflow-skinny",
    "sklearn": "scikit-learn",
    "vl_convert": "vl-convert-python",
}
# these come with another package
PARTS = {"starlette": "fastapi", "markupsafe": "jinja2", "pydantic_core": "pydantic", "triton": "torch"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_missing_package_is_reported_in_one_line(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    assert not is_installed(package)
    extra = PACKAGES[package].extra
    for act in (lambda: require_module(package), lambda: check_package(package), lambda: check_extra(extra)):
        with pytest.raises(MissingPackageError) as caught:
            act()
        text = str(caught.value)
        assert text.endswith(f"which is not installed; pip install 'podium-rank[{extra}]'")
        assert "\n" not in text
        assert caught.value.extra == extra
        assert isinstance(caught.value, ImportError)
        assert str(pickle.loads(pickle.dumps(caught.value))) == text  # workers send their errors


def test_the_caller_may_name_its_use_and_another_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingPackageError) as caught:
        require_module("torch", (Option("device", "cuda"), " needs"), ("use ", Option("device", "cpu")))
    assert str(caught.value) == (
        "device='cuda' needs torch, which is not installed; pip install 'podium-rank[torch]', or use device='cpu'"
    )
    assert caught.value.format_message(lambda o: f"--{o.name}").startswith("--device needs torch")


def test_a_requirement_of_a_package_may_be_missing(tmp_path, monkeypatch):
    (tmp_path / "ray.py").write_text("import surely_not_here\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "ray"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingPackageError, match=r"needs surely_not_here.*podium-rank\[ray\]"):
        require_module("ray")


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="only a checkout has pyproject.toml")
def test_every_extra_installs_its_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [re.match(r"[\w-]+", need)[0] for need in project["dependencies"]] == ["numpy"]
    extras = project["optional-dependencies"]

    def expand(extra: str) -> set[str]:
        names = set()
        for need in extras[extra]:
            if own := re.match(r"podium-rank\[(.*)\]", need):
                names = names.union(*(expand(e.strip()) for e in own[1].split(",")))
            else:
                names.add(re.match(r"[\w-]+", need)[0])
        return names

    for package, optional in PACKAGES.items():
        assert DISTRIBUTIONS.get(package, package.replace("_", "-")) in expand(optional.extra), package
    assert expand("full") == expand("cli") | expand("arrow") | expand("exact")


def test_other_packages_are_imported_through_the_one_function():
    """Only modules that cannot be reached without the package import it by a statement."""
    for file in Path(podium.__file__).parent.rglob("*.py"):
        where = file.relative_to(Path(podium.__file__).parent).as_posix()
        for package in imported_packages(ast.parse(file.read_text())):
            known = PARTS.get(package, package)
            assert known in PACKAGES, f"{where} imports {package}, which has no extra"
            own = PACKAGES[known].extra
            allowed = (where.startswith("studio/") and own == "studio") or (
                where.startswith("cli/") and own == "cli"
            )
            assert allowed or where.startswith("kernels/device/triton_"), (
                f"{where} imports {package}; use core.optional.require_module"
            )


def imported_packages(tree: ast.AST) -> set[str]:
    """What is imported when a module runs, which a type checker's imports are not."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module).partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"podium", "podium_papers", "numpy", "compile_core"}


BLOCK = f"""
import sys
for name in {sorted({*PACKAGES, *PARTS, "pandas", "polars", "safetensors", "scipy"})!r}:
    sys.modules[name] = None
"""


def run_blocked(code: str, *, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run code in a process in which no optional package can be imported."""
    words = [sys.executable, "-W", "error", "-c", BLOCK + code]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd)


EVERYTHING = """
import warnings
import podium
from podium import Preferences, evaluate, metrics
from podium.analysis.annotators import annotators
from podium.analysis.experts import diagnose
from podium.analysis.leaderboard import leaderboard
from podium.core import registry
from podium.core.errors import MissingPackageError, ParameterError, PodiumWarning
from podium.data.demo import demo
from podium.testing import checks

warnings.simplefilter("ignore", PodiumWarning)
assert podium.fuse([["a", "b", "c"], ["b", "c", "a"], ["b", "a"]]).ranking == ["b", "a", "c"]
for cls in registry.aggregators.all().values():
    sample = checks.build_sample_preferences(cls, 1)[0]
    model = checks.fit_aggregator(cls(), sample)
    podium.save(model, "model.podium", overwrite=True)
    again = podium.load("model.podium").aggregate(sample)
    assert again.scores.tobytes() == model.aggregate(sample).scores.tobytes(), cls.name
data = demo(30)
runs = {name: podium.make(name).aggregate(data.preferences) for name in ("rrf", "borda")}
for name in registry.metrics.all():
    try:
        evaluate.evaluate(runs["rrf"], data.labels, name)
    except ParameterError:  # no metric without a cutoff
        evaluate.evaluate(runs["rrf"], data.labels, f"{name}@10")
podium.compare(runs, data.labels, "ndcg@10").to_markdown()
podium.cross_validate(data, {"svd": "svd(passes=2)"}, "map")
podium.tune(data, methods=["rrf", "borda"], trials=4, rounds=100)
podium.explain("rrf", data.preferences, data.preferences.queries[0])
str(diagnose(data.preferences))
votes = Preferences.from_comparisons(["q"] * 4, ["e"] * 4, ["a", "b", "c", "a"], ["b", "c", "a", "c"])
str(leaderboard(votes))
str(annotators(votes))
for name in ("a.run", "a.csv", "a.tsv", "a.jsonl", "a.txt"):
    kind = {"a.txt": "trec"}.get(name)
    podium.write(data.preferences, name, kind)
    assert len(podium.read(name, kind).preferences) == 30
assert not [name for name in %r if sys.modules.get(name)]
for act in (lambda: podium.write(data.preferences, "a.parquet"), votes.to_frame):
    try:
        act()
    except MissingPackageError as error:
        print(error)
"""


def test_everything_else_works_with_numpy_alone(tmp_path):
    done = run_blocked(EVERYTHING % sorted(PACKAGES), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    line = (
        "Parquet, Arrow and dataframes need pyarrow, which is not installed; pip install 'podium-rank[arrow]'"
    )
    assert done.stdout.splitlines() == [line, line]


def test_the_command_without_click_prints_one_line():
    done = run_blocked("from podium.cli import main\nmain()")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "podium: the command line needs click, which is not installed; pip install 'podium-rank[cli]'\n"
    )


def test_the_studio_without_its_extra_is_one_error():
    done = run_blocked("import podium.studio.settings")
    assert done.stderr.splitlines()[-1].endswith("pip install 'podium-rank[studio]'")
