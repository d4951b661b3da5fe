"""Projects, jobs and models over HTTP; idempotency, pages, HEAD, entity tags, request ids, compression."""

import gzip
import json
import subprocess
import sys

import pytest

from serving import serving

RUNS = b"".join(b"q%d Q0 d%d %d %d.5 bm25\n" % (q, d, d, 9 - d) for q in range(3) for d in range(1, 6))
KILLED = (
    "import os, sys; from podium.studio.store import Store; "
    "Store(sys.argv[1]).reserve_answer('local', 'killed', 'digest'); os.kill(os.getpid(), 9)"
)
QRELS = b"q0 0 d1 1\nq1 0 d2 1\nq2 0 d3 1\n"


@pytest.fixture
def client(tmp_path):
    with serving(tmp_path) as found:
        yield found


def create(client, **headers):
    return client.post(
        "/v1/projects", files={"files": ("a.run", RUNS)}, data={"name": "mine"}, headers=headers
    )


def test_a_project_from_its_creation_to_its_removal(client):
    answer = create(client)
    assert answer.status_code == 201, answer.text
    project = answer.json()
    assert (project["name"], project["files"]) == ("mine", [{"name": "a.run", "uploaded": True}])
    address = f"/v1/projects/{project['id']}"
    assert client.get(address).json() == project
    assert client.patch(address, json={"name": "other"}).json()["name"] == "other"
    labels = client.post(f"{address}/labels", files={"files": ("qrels", QRELS)})
    assert [file["name"] for file in labels.json()["files"]] == ["a.run", "qrels"]
    assert client.delete(f"{address}/labels").status_code == 204
    assert "overview" in client.get(f"{address}/views").json()["views"]
    view = client.get(f"{address}/views/query?q=q1")
    assert view.status_code == 200
    assert view.json() == client.get(f"/p/{project['id']}/query.json?q=q1").json()
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 404
    assert client.delete(address).status_code == 404
    assert client.post(f"{address}/restore").json()["id"] == client.get(address).json()["id"]
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 404


def test_jobs_and_models(client):
    address = f"/v1/projects/{create(client).json()['id']}"
    job = client.post(f"{address}/jobs", json={"kind": "fit", "method": "rrf"})
    assert job.status_code == 201
    assert job.json()["user"] == "local"
    assert client.get(f"{address}/jobs/{job.json()['id']}").json()["kind"] == "fit"
    assert client.get(f"/v1/projects/demo/jobs/{job.json()['id']}").status_code == 404
    assert client.post(f"{address}/jobs/{job.json()['id']}/stop").status_code == 200
    store = client.app.state.store
    model = store.add_model(address.rpartition("/")[2], "m", "rrf", b"content")
    assert [m["id"] for m in client.get(f"{address}/models").json()["models"]] == [model]
    assert client.get(f"{address}/models/{model}/file").content == b"content"
    for wrong in ({"kind": "dance"}, {"kind": "tune", "trials": 0}, {"kind": "fit", "method": "nothing"}, {}):
        assert client.post(f"{address}/jobs", json=wrong).status_code == 422


def test_a_repeated_request_is_answered_once(client):
    first = create(client, **{"idempotency-key": "k"})
    again = create(client, **{"idempotency-key": "k"})
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert len(client.get("/v1/projects").json()["projects"]) == 2  # with the demo
    other = client.post("/v1/projects", files={"files": ("b.run", RUNS)}, headers={"idempotency-key": "k"})
    assert other.status_code == 422
    assert "another request" in other.json()["detail"]
    broken = {"files": ("a.run", b"\0\1")}
    for _ in range(2):  # a request that failed can be sent again
        assert client.post("/v1/projects", files=broken, headers={"idempotency-key": "f"}).status_code == 422
    store = client.app.state.store
    ended = subprocess.run([sys.executable, "-c", KILLED, str(store.folder)], check=False)
    assert ended.returncode
    assert store.reserve_answer("local", "killed", "digest") == ("new", None)
    store.reserve_answer("local", "r", "digest")
    assert store.reserve_answer("local", "r", "digest") == ("running", None)


def test_lists_come_in_pages(client):
    ids = [create(client).json()["id"] for _ in range(4)]
    seen, after = [], ""
    while True:
        page = client.get(f"/v1/projects?limit=2{after}").json()
        seen += [project["id"] for project in page["projects"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert seen == [*reversed(ids), "demo"]
    for wrong in ("limit=0", "limit=x", "limit=9999", "after=nowhere"):
        assert client.get(f"/v1/projects?{wrong}").status_code == 422


def test_errors_are_problem_details(client):
    for answer in (
        client.get("/v1/projects/none"),
        client.get("/v1/nowhere"),
        client.put("/v1/projects"),
        client.post("/v1/projects", content=b"{}"),
        client.post("/v1/fuse", content=b"{", headers={"content-type": "application/json"}),
        client.get("/p/none/overview.json"),
    ):
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert set(problem) == {"type", "title", "status", "detail", "remedy"}
        assert problem["status"] == answer.status_code
        assert problem["type"].startswith("urn:podium:problem:")


def test_the_methods_of_an_address_are_named(client):
    for path, methods in (("/v1/projects", "GET, POST"), ("/v1/projects/demo", "DELETE, GET, PATCH")):
        answer = client.put(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)


def test_head_entity_tags_and_request_ids(client):
    got = client.get("/v1/methods", headers={"x-request-id": "mine-1"})
    assert got.headers["x-request-id"] == "mine-1"
    assert client.get("/healthz", headers={"x-request-id": "not allowed!"}).headers["x-request-id"].isalnum()
    head = client.head("/v1/methods")
    assert (head.content, head.headers["content-type"]) == (b"", got.headers["content-type"])
    unchanged = client.get("/v1/methods", headers={"if-none-match": got.headers["etag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert client.get("/v1/methods", headers={"if-none-match": 'W/"other"'}).status_code == 200


def test_long_answers_are_compressed_if_the_client_can_read_them(client):
    with client.stream("GET", "/v1/methods", headers={"accept-encoding": "gzip"}) as answer:
        packed = b"".join(answer.iter_raw())
        assert answer.headers["content-encoding"] == "gzip"
        assert int(answer.headers["content-length"]) == len(packed)
    plain = client.get("/v1/methods", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert json.loads(gzip.decompress(packed)) == plain.json()
