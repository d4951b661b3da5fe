"""The studio shows an engine's configuration beside what it was tuned on."""

from __future__ import annotations

import time

import pytest

import podium
from serving import serving


def get_page(client, address):
    """A page, waited for as a browser would."""
    while 'http-equiv="refresh"' in (answer := client.get(address)).text:
        time.sleep(0.05)
    return answer


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("studio")) as found:
        yield found


def test_a_configuration_is_shown_checked_and_can_be_copied(client):
    page = get_page(client, "/p/demo/deploy?m=rrf&to=qdrant").text
    assert "POST /collections/" in page
    assert 'data-copy="config"' in page
    assert "the same order in 200 of 200 queries" in page
    found = client.get("/p/demo/deploy.json?m=rrf&to=qdrant").json()
    assert found["exact"] is True
    assert found["form"] == "qdrant_rrf(k=61)"
    expected = podium.deploy("rrf", "qdrant", experts=["a"]).config.splitlines()[:2]
    assert found["config"].splitlines()[:2] == expected


def test_the_nearest_form_is_marked(client):
    page = get_page(client, "/p/demo/deploy?m=rrf&to=vespa").text
    assert "nearest form" in page
    assert "Vespa ranks every hit by every feature" in page
    assert "not run against the real engine" in page


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("to=solr", "no engine is called"),
        ("to=opensearch", "OpenSearch fuses at most 5 lists"),
        ("to=qdrant&depth=0", "depth is"),
        ("m=qdrant_rrf(k=0)", "k is 0; accepted: whole number in [1, 10000]"),
    ],
)
def test_bad_requests_are_explained(client, query, words):
    answer = client.get(f"/p/demo/deploy.json?{query}")
    assert 400 <= answer.status_code < 500
    assert words in answer.text
