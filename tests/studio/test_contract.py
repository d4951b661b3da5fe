"""The service keeps to its OpenAPI document, whatever is sent."""

import re
import subprocess
import sys

import pytest
from pydantic import TypeAdapter

from podium.studio.api import (
    annotator_routes,
    answer_models,
    collection_routes,
    download_routes,
    job_routes,
    openapi_schema,
    plan_routes,
    project_routes,
    service_routes,
    token_routes,
)
from serving import listening, serving

EXAMPLES = {
    m.__name__.removesuffix("Request").lower(): m.model_config["json_schema_extra"]["examples"]
    for m in openapi_schema.MODELS
    if m.__module__.endswith("request_models")
}
VOTES = {f"/v1/projects/{{project}}/{name}" for name in ("votes", "votes/undo", "next-pair")}


@pytest.mark.parametrize("address", EXAMPLES)
def test_examples_are_answered_as_described(tmp_path, address):
    answer = getattr(answer_models, f"{address.capitalize()}Answer")
    with serving(tmp_path) as client:
        for example in EXAMPLES[address]:
            found = client.post(f"/v1/{address}", json=example)
            assert found.status_code == 200, found.text
            TypeAdapter(answer).validate_json(found.content, strict=True)


def test_every_address_is_described(tmp_path):
    with serving(tmp_path) as client:
        paths = client.get("/openapi.json").json()["paths"]
        assert set(paths) >= {f"/v1/{a}" for a in (*EXAMPLES, "methods")} | VOTES
        names = []
        for path, calls in paths.items():
            for call in calls.values():
                assert call["summary"], path
                assert call["tags"], path
                assert {"200", "201", "204"} & call["responses"].keys()
                names.append(call["operationId"])
        assert len(set(names)) == len(names)
        modules = (
            service_routes,
            project_routes,
            plan_routes,
            annotator_routes,
            download_routes,
            job_routes,
            token_routes,
            collection_routes,
        )
        served = {(r.path, m) for module in modules for r in module.router.routes for m in r.methods}
        assert len(served) > 40
        described = {(path, verb.upper()) for path, calls in paths.items() for verb in calls}
        assert {pair for pair in served if pair[0].startswith("/v1/")} <= described


def test_every_reference_leads_to_a_schema(tmp_path):
    with serving(tmp_path) as client:
        document = client.get("/openapi.json")
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', document.text))
    assert named <= document.json()["components"]["schemas"].keys()


def test_the_document_names_how_to_log_in(tmp_path):
    with serving(tmp_path, has_tokens=True) as client:
        token = client.app.state.store.add_token("ann", "viewer")
        document = client.get("/openapi.json", headers={"authorization": f"Bearer {token}"}).json()
    schemes = document["components"]["securitySchemes"]
    assert schemes["token"] == {"type": "http", "scheme": "bearer"}
    assert document["security"] == [{"token": []}, {"session": []}]
    assert document["paths"]["/healthz"]["get"]["security"] == []


# the document cannot say that an item stands once in a list: what is well formed may be refused by 422
CONFIGURATION = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "404", "413", "422"]

# a repeated key answers that a token was created which may have been removed since
[[operations]]
include-name = "DELETE /v1/tokens/{name}"
checks.ensure_resource_availability.enabled = false
"""


def test_schemathesis(tmp_path):
    """Requests made from the document, right ones and wrong ones, over a real socket."""
    pytest.importorskip("schemathesis")
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    with listening(tmp_path / "studio") as port:
        address = f"http://127.0.0.1:{port}/openapi.json"
        asked = ["--checks", "all", "--mode", "all", "--max-examples", "25", "--seed", "1", "--no-color"]
        found = subprocess.run(
            [
                sys.executable,
                "-m",
                "schemathesis.cli",
                "--config-file",
                "schemathesis.toml",
                "run",
                address,
                *asked,
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=1800,  # only against a hang: other work may keep the machine busy
            check=False,
        )
    assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-2000:]
    assert "Tested: " in found.stdout
    print(found.stdout[found.stdout.index("Tested: ") - 200 :])  # the counts, with -s
