"""What builds and publishes a release is true: versions, addresses, commands, extras and paths exist."""

from __future__ import annotations

import fnmatch
import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from podium.cli import program
from podium.core.version import __version__

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="only a checkout has the files of a release")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def check_release():
    """The script that a release begins with."""
    path = ROOT / "build_support" / "check_release.py"
    spec = importlib.util.spec_from_file_location("check_release", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_has_the_version_of_the_package(check_release):
    assert check_release.read_version() == __version__
    assert check_release.find_version_problems() == []
    assert re.search(rf"^## {re.escape(__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_a_wrong_tag_is_refused(check_release):
    problems = check_release.find_release_problems("v99.0")
    assert f"the tag is v99.0, but the version is {__version__}; tag v{__version__}" in problems


def test_there_is_one_address_of_the_project(project):
    home = project["urls"]["Homepage"]
    owner, name = home.removeprefix("https://github.com/").split("/")
    files = [
        "CITATION.cff",
        "SECURITY.md",
        "Dockerfile",
        "conda/recipe.yaml",
        ".github/ISSUE_TEMPLATE/config.yml",
    ]
    for file in files:
        links = re.findall(r"https://github\.com/[\w./-]+", (ROOT / file).read_text())
        assert links, file
        assert all(link == home or link.startswith(f"{home}/") for link in links), file
    for label in ("Changelog", "Issues"):
        assert project["urls"][label].startswith(f"{home}/")
    pages = f"https://{owner}.github.io/{name}/"
    assert project["urls"]["Documentation"] == pages
    assert pages in (ROOT / "conda" / "recipe.yaml").read_text()


def test_the_tested_pythons_are_those_of_the_classifiers(project):
    said = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    matrix = re.search(r"python: (\[.*\])", (ROOT / ".github" / "workflows" / "tests.yml").read_text())[1]
    assert json.loads(matrix) == said
    assert project["requires-python"] == f">={said[0]}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_what_exists(path, project):
    text, makefile = path.read_text(), (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split())
    matrix = re.findall(r"^ +target: \[(.*)\]$", text, re.M)
    made = [word for line in re.findall(r"run: make ([a-z -]+)$", text, re.M) for word in line.split()]
    assert {*made, *(name.strip() for names in matrix for name in names.split(","))} <= targets
    for script in re.findall(r"python (\S+\.py)", text):
        assert (ROOT / script).is_file(), script
    for extra in re.findall(r"\.\[(\w+)\]|podium-rank\[(\w+)\]", text):
        assert "".join(extra) in project["optional-dependencies"], extra


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_tokens_are_not_kept(path):
    text = path.read_text()
    used = re.findall(r"uses: (.*)$", text, re.M)
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    assert re.search(r"^permissions:\n  contents: read$", text, re.M)


def test_only_the_publishing_job_of_a_release_speaks_to_pypi():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    jobs = dict(re.findall(r"^  (\w+):\n(.*?)(?=^  \w+:\n|\Z)", text.split("\njobs:\n")[1], re.M | re.S))
    assert [name for name, job in jobs.items() if "pypi-publish" in job] == ["publish"]
    assert [name for name, job in jobs.items() if "id-token: write" in job] == ["publish", "docs"]
    assert "attestations: true" in jobs["publish"]
    assert "needs: run" in jobs["publish"]
    assert "secrets." not in text


def test_the_image_contains_what_it_needs_and_starts_the_service(project):
    text = (ROOT / "Dockerfile").read_text()
    ignored = (ROOT / ".dockerignore").read_text().split()
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = [word for line in re.findall(r"^COPY (?!--)(.*)$", text, re.M) for word in line.split()[:-1]]
    assert set(copied) == kept
    assert all((ROOT / name).exists() for name in copied)
    assert re.search(r"pip install .*'\.\[(\w+)\]'", text)[1] in project["optional-dependencies"]
    assert re.search(r"^USER [1-9]\d*$", text, re.M)
    words = json.loads(re.search(r"^ENTRYPOINT (\[.*\])$", text, re.M)[1])
    assert words[:2] == ["podium", "serve"]
    options = program.get_command(None, "serve").make_context("serve", words[2:]).params
    port, path = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", text).groups()
    assert (str(options["port"]), options["folder"]) == (port, "/data")
    assert f"EXPOSE {port}" in text
    assert f'"{path}"' in (ROOT / "src/podium/studio/api/service_routes.py").read_text()


def test_the_backend_of_the_build_reads_only_what_the_image_has(project):
    kept = {line.removeprefix("!").split("/")[0] for line in (ROOT / ".dockerignore").read_text().split()}
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {project["readme"], *project["license-files"], *settings["build-system"]["backend-path"], "src"}
    assert needed <= kept


def test_the_composition_is_locked_down():
    text = (ROOT / "compose.yaml").read_text()
    for line in (
        "read_only: true",
        "- ALL",
        "- no-new-privileges:true",
        '- "127.0.0.1:8765:8765"',
        "- projects:/data",
    ):
        assert line in text
    words = json.loads(re.search(r"command: (\[.*\])", text)[1])
    assert not set(words) & {"--host", "--port", "--folder"}
    assert "token.txt" in (ROOT / ".gitignore").read_text().split()


def test_the_examples_of_a_deployment_start_the_server_with_options_it_has():
    folder = ROOT / "deployment"
    composed = (folder / "compose.tls.yaml").read_text()
    for line in (
        "read_only: true",
        "- ALL",
        "- no-new-privileges:true",
        "- projects:/data",
        "podium-2: *podium",
    ):
        assert line in composed
    options = {name for p in program.get_command(None, "serve").params for name in p.opts}
    unit, proxy = (folder / "podium.service").read_text(), (folder / "nginx.conf").read_text()
    for text in (composed, unit, proxy):
        used = set(
            re.findall(
                r"(?<![\w-])--[a-z-]+", re.sub(r"docker compose.*|podium token.*|systemctl.*", "", text)
            )
        )
        assert used <= options, used - options
    assert "health_uri /readyz" in (folder / "Caddyfile").read_text()
    assert "NoNewPrivileges=yes" in unit


def test_hooks_are_local_and_their_tools_are_declared(project):
    text = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"repo: (\S+)", text) == ["local"]
    assert set(re.findall(r"language: (\S+)", text)) == {"system"}
    tools = {re.match(r"[\w-]+", need)[0] for need in project["optional-dependencies"]["dev"]}
    programs = {"lint-imports": "import-linter"}
    for entry in re.findall(r"entry: \.venv/bin/([\w-]+)", text):
        assert programs.get(entry, entry) in tools


def test_the_recipe_has_the_requirements_of_the_package(project):
    text = (ROOT / "conda" / "recipe.yaml").read_text()
    needed = [*project["dependencies"], *project["optional-dependencies"]["cli"]]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    for need in (*needed, *build):
        name, bound = re.fullmatch(r"([\w-]+)(>=.*)", need).groups()
        assert f"- {name} {bound}" in text, need
    assert f"podium = {project['scripts']['podium']}" in text


def test_environments_are_removed_by_clean_and_ignored():
    text = (ROOT / "Makefile").read_text()
    environments = set(re.findall(r"^(\.venv-\w+)/\.installed:", text, re.M))
    assert environments <= set(re.search(r"^clean:\n\trm -rf (.*)$", text, re.M)[1].split())
    ignored = (ROOT / ".gitignore").read_text().split()
    assert all(any(fnmatch.fnmatch(f"{name}/", pattern) for pattern in ignored) for name in environments)
