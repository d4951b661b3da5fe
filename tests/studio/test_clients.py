"""Clients that others write: one generated from the OpenAPI document, and a session with curl."""

import json
import shutil
import subprocess
import sys
import time

import pytest

from podium.studio.store import Store
from serving import started

RUNS = "".join(f"q{q} Q0 d{d} {d} {9 - d}.5 bm25\n" for q in range(4) for d in range(1, 6))
QRELS = "".join(f"q{q} 0 d{q + 1} 1\n" for q in range(4))

GENERATED = """
import sys
sys.path.insert(0, sys.argv[1])
import json
from podium_client import AuthenticatedClient
from podium_client.api.computations import aggregate, fuse
from podium_client.api.jobs import start_job
from podium_client.api.projects import create_project, list_projects
from podium_client.api.users import get_user
from podium_client.models import AggregateRequest, CreateProjectBody, FuseRequest, JobRequest
from podium_client.types import File
import io

client = AuthenticatedClient(base_url=sys.argv[2], token=sys.argv[3])
scores = {"bm25": {"a": 7.5, "b": 1.0}, "dense": {"b": 0.5, "a": 0.25}}
named = FuseRequest.from_dict({"ratings": scores, "method": "combsum"})
plain = FuseRequest.from_dict({"ratings": [{"a": 7.5, "b": 1.0}]})
lists = FuseRequest.from_dict({"lists": [["a", 7], ["b"]], "weights": [1.0, 2.0]})
rankings = AggregateRequest.from_dict({"rankings": {"q": {"e": ["a", "b"]}}, "method": "borda"})
runs = File(payload=io.BytesIO(open(sys.argv[4], "rb").read()), file_name="a.run")
project = create_project.sync(client=client, body=CreateProjectBody(files=[runs]))
job = start_job.sync(project=project.id, client=client, body=JobRequest.from_dict({"kind": "fit", "method": "rrf"}))
print(json.dumps({
    "sent": [named.to_dict()["ratings"], plain.to_dict()["ratings"], lists.to_dict()["lists"]],
    "fused": fuse.sync(client=client, body=named).to_dict(),
    "aggregated": aggregate.sync(client=client, body=rankings).to_dict()["results"],
    "user": get_user.sync(client=client).name,
    "projects": len(list_projects.sync(client=client).projects),
    "job": job.state,
}))
"""


@pytest.fixture
def server(tmp_path):
    """Address and token of a server."""
    token = Store(tmp_path / "studio").add_token("ann", "editor")
    with started(tmp_path / "studio", "--quiet") as (_, about):
        yield about["address"], token


def test_a_generated_client_loses_nothing(tmp_path, server):
    pytest.importorskip("openapi_python_client")
    address, token = server
    headers = ["-H", f"authorization: Bearer {token}"]
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    document = subprocess.run(
        ["curl", "-s", *headers, f"{address}/openapi.json"], capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "openapi.json").write_text(document)
    (tmp_path / "config.yml").write_text(
        "package_name_override: podium_client\nproject_name_override: client\npost_hooks: []\n"
    )
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json"]
    made = subprocess.run(
        [*command, "--config", "config.yml", "--meta", "none", "--output-path", "out/podium_client"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    assert "Warning" not in made.stdout + made.stderr
    (tmp_path / "a.run").write_text(RUNS)
    words = [sys.executable, "-c", GENERATED, str(tmp_path / "out"), address, token, str(tmp_path / "a.run")]
    answer = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert answer["sent"] == [
        {"bm25": {"a": 7.5, "b": 1.0}, "dense": {"b": 0.5, "a": 0.25}},
        [{"a": 7.5, "b": 1.0}],
        [["a", 7], ["b"]],
    ]
    assert answer["fused"]["items"] == ["a", "b"]
    assert len(answer["fused"]["scores"]) == 2
    assert answer["aggregated"][0]["items"] == ["a", "b"]
    assert (answer["user"], answer["projects"], answer["job"]) == ("ann", 2, "queued")


def test_a_session_with_curl(tmp_path, server):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    address, token = server
    (tmp_path / "bm25.run").write_text(RUNS)
    (tmp_path / "qrels.txt").write_text(QRELS)

    def curl(*words):
        command = ["curl", "-s", "--fail-with-body", "-H", f"authorization: Bearer {token}", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    files = ("-H", "idempotency-key: import-1", "-F", "files=@bm25.run", "-F", "files=@qrels.txt")
    for _ in range(2):  # the second one gets the kept answer
        code, text = curl(*files, f"{address}/v1/projects")
        assert code == 0, text
    project = json.loads(text)["id"]
    assert len(json.loads(curl(f"{address}/v1/projects")[1])["projects"]) == 2
    body = ("-H", "content-type: application/json", "-d", '{"kind": "fit", "method": "rrf"}')
    job = json.loads(curl(*body, f"{address}/v1/projects/{project}/jobs")[1])["id"]
    for _ in range(600):
        state = json.loads(curl(f"{address}/v1/projects/{project}/jobs/{job}")[1])
        if state["state"] not in ("queued", "running"):
            break
        time.sleep(0.2)
    assert state["state"] == "done", state
    model = json.loads(curl(f"{address}/v1/projects/{project}/models")[1])["models"][0]
    assert model["id"] == state["model"]
    apply = json.dumps({"rankings": {"q": {"bm25": ["a", "b"]}}, "model": model["id"]})
    _, text = curl("-H", "content-type: application/json", "-d", apply, f"{address}/v1/aggregate")
    assert json.loads(text)["results"][0]["items"] == ["a", "b"]
    code, text = curl("--head", f"{address}/v1/projects/{project}")
    assert "x-request-id" in text.lower()
    assert curl("-X", "DELETE", f"{address}/v1/projects/{project}")[0] == 0
    code, text = curl(f"{address}/v1/projects/{project}")
    assert code != 0
    assert json.loads(text)["status"] == 404
