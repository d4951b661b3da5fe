"""`podium mcp` as a client sees it: a session of the official SDK over standard input and output."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest
from mcp import StdioServerParameters
from mcp.client import Client

import podium
from podium.analysis.leaderboard import leaderboard
from podium.core import registry
from podium.evaluate import evaluate
from podium.mcp_server.tools import TOOLS

RUNS = {"files": ["runs/*.run"]}
JUDGED = RUNS | {"qrels": "qrels.txt"}


def in_session(folder, work, *options):
    """Run `work(client)` in a session with a server of its own."""

    async def run():
        words = ["-m", "podium", "mcp", "--folder", str(folder), *options]
        async with Client(StdioServerParameters(command=sys.executable, args=words)) as client:
            return await work(client)

    return asyncio.run(run())


def call(folder, tool, arguments, *options):
    """Text, document and error mark of one call."""
    result = in_session(folder, lambda client: client.call_tool(tool, arguments), *options)
    return result.content[0].text, result.structured_content, result.is_error


@pytest.fixture(scope="module")
def answers(folder):
    """The answer of every tool, in one session."""
    calls = {
        "list_files": {},
        "check_files": JUDGED,
        "fuse": RUNS | {"method": "rrf(k=20)", "top": 3},
        "evaluate": JUDGED | {"methods": ["rrf"]},
        "compare": JUDGED | {"methods": ["rrf", "borda"], "metrics": ["ndcg@10"]},
        "leaderboard": {"files": ["votes.csv"], "proposals": 2},
        "annotators": {"files": ["votes.csv"]},
        "explain": RUNS | {"query": "q001"},
        "tune": JUDGED | {"methods": ["rrf"], "trials": 6},
        "deploy": {"method": "rrf(k=60)", "engine": "qdrant", "experts": ["atlas-1", "atlas-2"]} | RUNS,
    }

    async def work(client):
        return {name: await client.call_tool(name, arguments) for name, arguments in calls.items()}

    return in_session(folder, work)


def test_tools_and_resources_are_listed(folder):
    async def work(client):
        templates = await client.list_resource_templates()
        return await client.list_tools(), await client.list_resources(), templates

    tools, resources, templates = in_session(folder, work)
    assert [tool.name for tool in tools.tools] == list(TOOLS)
    assert {str(resource.uri) for resource in resources.resources} == {
        "podium://methods",
        "podium://semantics",
    }
    assert [template.uri_template for template in templates.resource_templates] == ["podium://methods/{name}"]
    for tool in tools.tools:
        assert tool.description
        assert tool.annotations.read_only_hint, tool.name
        assert "access" not in tool.input_schema["properties"]
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), f"{tool.name}({name})"


def test_resources_are_read(folder):
    async def work(client):
        uris = "podium://methods", "podium://methods/kemeny", "podium://semantics"
        return [(await client.read_resource(uri)).contents[0].text for uri in uris]

    methods, method, semantics = in_session(folder, work)
    for name in registry.aggregators.all():
        assert f"| {name} |" in methods
    assert '"name": "kemeny"' in method
    assert semantics.startswith("# Semantics")


def test_every_tool_answers_with_text_and_document(answers):
    assert set(answers) == set(TOOLS)
    for name, result in answers.items():
        assert not result.is_error, (name, result.content[0].text)
        assert result.content[0].text.strip()
        assert isinstance(result.structured_content, dict)
        assert "NaN" not in json.dumps(result.structured_content)


def test_the_tools_compute_what_the_library_does(answers, folder):
    runs = podium.read(sorted((folder / "runs").glob("*.run"))).preferences
    labels = podium.read(folder / "qrels.txt").labels
    consensus = podium.make("rrf(k=20)").aggregate(runs)
    first = answers["fuse"].structured_content["rankings"][0]
    assert first["items"] == consensus.ranking(first["query"])[:3]
    measured = {row["name"]: row["mean"] for row in answers["evaluate"].structured_content["results"]}
    expected = evaluate(
        podium.make("rrf").aggregate(runs).with_ties("trec", single=True), labels, ["ndcg@10"], queries="all"
    )
    assert measured["rrf"]["ndcg@10"] == pytest.approx(expected.mean()["ndcg@10"], abs=1e-12)
    board = answers["leaderboard"].structured_content
    expected = leaderboard(podium.read(folder / "votes.csv").preferences)
    assert [row["item"] for row in board["rows"]] == [row.item for row in expected.rows]
    assert len(board["next"]) == 2
    deployed = answers["deploy"].structured_content
    assert deployed["exact"]
    assert deployed["check"]["same"] == deployed["check"]["queries"]
    assert '"k": 61' in deployed["config"]
    assert answers["tune"].structured_content["config"].startswith("rrf")
    listed = {entry["file"] for entry in answers["list_files"].structured_content["files"]}
    assert str(folder / "qrels.txt") in listed
    assert not any("link" in name or "way_out" in name or "secret" in name for name in listed)


def test_errors_carry_the_words_of_podium(folder):
    async def work(client):
        calls = [
            ("fuse", {"files": ["broken.run"]}),
            ("fuse", {"lists": [["a", "b"]], "method": "rff"}),
            ("fuse", {"lists": [["a", "a"]]}),
            ("evaluate", RUNS),
            ("deploy", {"method": "mc4", "engine": "qdrant", "experts": ["a", "b"]}),
            ("fuse", RUNS | {"output": "new.run"}),
        ]
        return [await client.call_tool(*each) for each in calls]

    results = in_session(folder, work)
    assert all(result.is_error for result in results)
    texts = [result.content[0].text for result in results]
    assert "broken.run:2: " in texts[0]
    assert "'rff'" in texts[1]
    assert "rrf" in texts[1]
    assert 'options={"duplicates": "first"}' in texts[2]
    assert "name their file in qrels" in texts[3]
    assert "mc4" in texts[4]
    assert "start it with --write" in texts[5]


OUTSIDE = [
    "../secret.run",
    "link.run",
    "way_out/secret.run",
    "way_out/*.run",
    "../*.run",
    "/etc/passwd",
    "-",
    "a\0b",
]


def test_files_outside_the_folders_are_refused(folder):
    names = [*OUTSIDE, str(folder.parent / "secret.run")]

    async def work(client):
        calls = [("fuse", {"files": [name]}) for name in names]
        calls += [
            ("evaluate", RUNS | {"qrels": "../secret.run"}),
            ("fuse", RUNS | {"method": "../model.podium"}),
        ]
        calls += [("list_files", {"folder": ".."}), ("list_files", {"folder": "way_out"})]
        return [(each, await client.call_tool(*each)) for each in calls]

    for each, result in in_session(folder, work):
        assert result.is_error, each
        assert "there is no such file below" in result.content[0].text, each
        assert "hidden" not in result.content[0].text


def test_files_are_written_only_if_allowed_inside_and_new(folder):
    async def work(client):
        made = await client.call_tool(
            "tune", JUDGED | {"methods": ["rrf"], "trials": 4, "output": "best.podium"}
        )
        used = await client.call_tool(
            "deploy", RUNS | {"method": "best.podium", "engine": "duckdb", "output": "fuse.sql"}
        )
        again = await client.call_tool("fuse", RUNS | {"output": "best.podium"})
        outside = await client.call_tool("fuse", RUNS | {"output": "way_out/new.run"})
        return made, used, again, outside

    made, used, again, outside = in_session(folder, work, "--write")
    assert not made.is_error, made.content[0].text
    assert podium.load(folder / "best.podium").name == "rrf"
    assert not used.is_error, used.content[0].text
    assert "SELECT" in (folder / "fuse.sql").read_text()
    assert again.is_error
    assert "exists" in again.content[0].text
    assert outside.is_error
    assert not (folder.parent / "new.run").exists()


def test_time_and_sizes_are_limited(folder):
    late = call(folder, "tune", JUDGED | {"trials": 5000, "budget": 60.0}, "--seconds", "0.5")
    assert late[2]
    assert "longer than 0.5 seconds" in late[0]
    (folder / "large.csv").write_bytes(b"x" * (1 << 20) + b"y")
    large = call(folder, "fuse", {"files": ["large.csv"]}, "--file-mb", "1")
    (folder / "large.csv").unlink()
    assert large[2]
    assert "--file-mb" in large[0]
    wide = call(folder, "fuse", RUNS | {"queries": 1000, "top": 1000}, "--answer-kb", "1")
    assert wide[2]
    assert "ask for less" in wide[0]
