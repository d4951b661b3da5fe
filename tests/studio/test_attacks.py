"""What an attacker would send. Each must be refused in words, quickly, and without an internal error."""

import gzip
import json
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serving import listening, serving

JSON = {"content-type": "application/json"}
ADDRESSES = ("fuse", "aggregate", "evaluate", "explain", "leaderboard", "annotators")


@pytest.fixture
def client(tmp_path):
    with serving(tmp_path) as found:
        yield found


def refused(found):
    assert 400 <= found.status_code < 500, found.text
    error = found.json()
    assert error["detail"]
    assert len(found.content) < 2000
    return error


# -- the shape of the body


@pytest.mark.parametrize("body", [
    b"", b"null", b"[]", b"1", b'"x"', b"{", b"{}", b'{"lists"', b"\xff\xfe", b'{"lists": [["\xff"]]}',
    b'{"lists": [["\\ud800"]]}', b"{'lists': []}", b'{"lists": [["a"]]} x', b'{"lists": [["a"]]}{}',
    b'{"lists": [["a",]]}', b"\x00" * 100, b'{"lists": [["a\x00"]]}', b"\xef\xbb\xbf{}",
])  # fmt: skip
@pytest.mark.parametrize("address", ADDRESSES)
def test_bodies_that_are_no_requests(client, address, body):
    refused(client.post(f"/v1/{address}", content=body, headers=JSON))


@pytest.mark.parametrize("brackets", [b"[", b'{"a":', b'{"lists":['])
def test_nesting_fails_at_once(client, brackets):
    body = brackets * (15_000_000 // len(brackets))
    refused(client.post("/v1/fuse", content=body, headers=JSON))
    refused(client.post("/v1/aggregate", content=body, headers=JSON))


def test_a_gigabyte_of_nesting_on_a_real_socket(tmp_path):
    """The server hangs up after its limit; it neither reads nor keeps the rest."""
    with listening(tmp_path) as port, socket.create_connection(("127.0.0.1", port), timeout=20) as link:
        link.sendall(
            b"POST /v1/fuse HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        piece, sent = b"100000\r\n" + b"[" * (1 << 20) + b"\r\n", 0
        try:
            while sent < 1 << 30:
                link.sendall(piece)
                sent += 1 << 20
        except OSError:
            pass
        assert sent < 200 << 20
        with socket.create_connection(("127.0.0.1", port), timeout=20) as other:
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b" 200 " in other.recv(1000)


def test_zip_bombs(client):
    headers = JSON | {"content-encoding": "gzip"}
    bomb = gzip.compress(bytes(300 << 20), 1)
    assert refused(client.post("/v1/fuse", content=bomb, headers=headers))["title"] == "Too large"
    twice = gzip.compress(gzip.compress(bytes(10 << 20)))
    refused(client.post("/v1/fuse", content=twice, headers=headers))


def test_names_that_stand_twice(client):
    for body in (
        b'{"lists": [["a"]], "lists": [["b"]]}',
        b'{"lists": [["a"]], "l\\u0069sts": [["b"]]}',
        b'{"lists": {"x": ["a"], "x": ["b"]}}',
        b'{"ratings": [{"a": 1, "a": 2}]}',
        b'{"lists": [["a"]], "parameters": {"k": 1, "k": 2}}',
    ):
        assert "occurs twice" in refused(client.post("/v1/fuse", content=body, headers=JSON))["detail"]
    twice = b'{"rankings": {"q": {"e": ["a"]}, "q": {"e": ["b"]}}}'
    assert "occurs twice" in refused(client.post("/v1/aggregate", content=twice, headers=JSON))["detail"]
    assert (
        client.post("/v1/fuse", content=b'{"lists": [["lists", "a\\n{"]]}', headers=JSON).status_code == 200
    )


# -- types


@pytest.mark.parametrize("more", [
    '"weights": [false]', '"weights": [true]', '"weights": ["1"]', '"weights": [null]', '"weights": [NaN]',
    '"weights": [Infinity]', '"weights": [-Infinity]', '"weights": [1e999]', '"weights": [-1]', '"weights": [[1]]',
    '"weights": [1, 2]', '"weights": []', '"weights": [0]', '"weights": {"0": 1}', '"weights": 1', '"weights": "1"',
    '"top": 0', '"top": -1', '"top": 1.5', '"top": true', '"top": "1"', '"top": 1e300',
    '"method": 1', '"method": null', '"method": ""', '"method": ["rrf"]', '"method": "rrf(k=NaN)"',
    '"method": "rrf(k=1e999)"', '"method": "rrf(k=true)"', '"method": "__import__"', '"method": "rrf(**{})"',
    '"method": "rrf(k=__import__(\'os\'))"', '"method": "/etc/passwd"', '"method": "rrf\\u0000"',
    '"parameters": {"k": NaN}', '"parameters": {"k": [1]}', '"parameters": {"k": true}', '"parameters": {"k": "60"}',
    '"parameters": {"__class__": 1}', '"parameters": {"self": 1}', '"parameters": []', '"parameters": {"name": "x"}',
    '"duplicates": "maybe"', '"duplicates": null', '"unknown": 1', '"Lists": []',
])  # fmt: skip
def test_wrong_types_and_values(client, more):
    error = refused(client.post("/v1/fuse", content=f'{{"lists": [["a"]], {more}}}'.encode(), headers=JSON))
    assert error["detail"]


@pytest.mark.parametrize("lists", [
    "[[true]]", "[[null]]", "[[1.5]]", "[[[1]]]", "[[NaN]]", '["ab"]', '"ab"', "[1]", "[null]", "{}x", "[[1e5]]",
    '[{"a": true}]', '[{"a": "1"}]', '[{"a": NaN}]', '[{"a": 1e999}]', '[["a"], {"a": 1}]', '{"x": "ab"}', "1",
    f"[[{2**63}]]", f"[[{-(2**63) - 1}]]", f"[[{'9' * 5000}]]", f"[[{'9' * 100_000}]]", '[[{"a": 1}]]',
])  # fmt: skip
def test_wrong_lists(client, lists):
    refused(client.post("/v1/fuse", content=f'{{"lists": {lists}}}'.encode(), headers=JSON))


def test_huge_numbers(client):
    big = 1.7e308
    for method in ("combsum", "combmnz", "borda", "rsf", "dbsf"):
        for scores in ({"a": big, "b": -big}, {"a": 5e-324, "b": 0.0}, {"a": big, "b": big / 3}):
            body = {"ratings": [scores, scores], "method": method, "weights": [big, big]}
            found = client.post("/v1/fuse", json=body)
            assert found.status_code in (200, 422), found.text
    rows = [{"expert": "e", "items": ["a"], "ranks": [10**30]}]
    refused(client.post("/v1/aggregate", json={"lists": rows}))
    refused(
        client.post("/v1/leaderboard", json={"votes": [{"winner": "a", "loser": "b", "weight": big}] * 3})
    )
    votes = [{"winner": "a", "loser": "b", "weight": 1e9}] * 3
    assert client.post("/v1/leaderboard", json={"votes": votes, "anchor": big}).status_code in (200, 422)
    grades = [{"item": "a", "grade": big}, {"item": "b", "grade": -big}]
    body = {
        "lists": [{"expert": "e", "items": ["a", "b"]}],
        "labels": grades,
        "metrics": ["ndcg@10:exp", "ndcg", "err"],
    }
    assert client.post("/v1/evaluate", json=body).status_code in (200, 422)


def test_strange_ids_come_back_as_they_are(client):
    ids = [
        "",
        " ",
        "../../etc/passwd",
        "a/b",
        "=1+1",
        "<script>",
        "\u202e",
        "a\u0000b",
        "a\u0000",
        "a",
        "A",
        "é",
        "e\u0301",
        1,
        "1",
    ]
    body = {"lists": [ids]}
    assert client.post("/v1/fuse", json=body).json()["items"] == ids
    for method in ("rrf", "borda", "copeland"):
        found = client.post(
            "/v1/aggregate", json={"lists": [{"expert": "../x", "items": ids}], "method": method}
        )
        assert found.json()["results"][0]["items"] == ids


@pytest.mark.parametrize(
    "metric", ["ndcg@0", "ndcg@-1", "ndcg@99999999999999999999", "ndcg@1:none", "rbp(p=9)", "x" * 999, "()"]
)
def test_strange_metrics(client, metric):
    body = {
        "rankings": {"0": {"e": ["a"]}},
        "labels": [{"query": "0", "item": "a", "grade": 1}],
        "metrics": [metric],
    }
    refused(client.post("/v1/evaluate", json=body))


# -- addresses


@pytest.mark.parametrize("path", [
    "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/static/../../../../etc/passwd",
    "/static/%2e%2e%2fpages%2froutes.py",
    "/static/..%2f..%2f..%2fetc%2fpasswd", "/p/..%2f..%2fetc/overview", "/p/%00/overview", "/%00", "/v1/fuse%00",
    "/v1/..%2f..%2fetc", "/p/" + "a" * 5000, "/docs/../../etc/passwd", "//etc/passwd", "/p/x/models/..%2f..%2fx.podium",
])  # fmt: skip
def test_paths_lead_nowhere(client, path):
    found = client.get(path)
    assert found.status_code in (303, 400, 404, 405, 422)
    assert "root:" not in found.text
    assert "import" not in found.text


def test_a_model_is_never_a_path(client, tmp_path):
    (tmp_path / "m.podium").write_bytes(b"x")
    for name in (str(tmp_path / "m.podium"), "../m.podium", "m.podium", "file:///etc/passwd", "a\u0000b"):
        for body in ({"model": name}, {"project": name}, {"method": name}):
            found = client.post("/v1/aggregate", json={"rankings": {"q": {"e": ["a"]}}, **body})
            assert found.status_code in (404, 422), found.text


@pytest.mark.parametrize("raw", [
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    b"POST /v1/fuse HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"\x00\x01\x02\x03\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET /v1/methods HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
], ids=range(8))  # fmt: skip
def test_raw_requests_do_not_stop_the_server(tmp_path, raw):
    with listening(tmp_path) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
            link.sendall(raw)
            link.settimeout(2)
            try:
                said = link.recv(100)
            except (TimeoutError, ConnectionError):
                said = b""
            assert b" 500 " not in said
            if b"websocket" not in raw:
                assert b" 200 " not in said
        with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
            link.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b" 200 " in link.recv(1000)


# -- never an internal error

IDS = st.text(max_size=3) | st.integers(-3, 3)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["rrf", "copeland", "a", "b", "q", "e", "below", "first", "trec", 0.5, 1])
)  # fmt: skip
FIELDS = st.sampled_from([
    "lists", "method", "parameters", "weights", "rankings", "ratings", "votes", "labels", "metrics", "methods", "query",
    "item", "over", "expert", "items", "ranks", "scores", "winner", "loser", "tie", "weight", "side", "grade",
    "unlisted", "duplicates", "candidates", "features", "values", "top", "ties", "level", "next",
    "bootstrap", "q", "e", "a", "k",
])  # fmt: skip
ANYTHING = st.recursive(
    LEAVES, lambda s: st.lists(s, max_size=4) | st.dictionaries(FIELDS, s, max_size=5), max_leaves=25
)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(ADDRESSES), st.dictionaries(FIELDS, ANYTHING, max_size=6))
def test_any_json(client, address, body):
    found = client.post(f"/v1/{address}", content=json.dumps(body).encode(), headers=JSON)
    assert found.status_code in (200, 400, 413, 422), found.text


VOTE = st.fixed_dictionaries(
    {"winner": IDS, "loser": IDS},
    optional={
        "query": IDS,
        "expert": IDS,
        "tie": st.booleans(),
        "weight": st.floats(1e-9, 1e9),
        "side": st.integers(-1, 1),
    },
)
ROW = st.fixed_dictionaries(
    {"expert": IDS, "items": st.lists(IDS, max_size=5, unique=True)},
    optional={
        "query": IDS,
        "ranks": st.lists(st.integers(1, 9), max_size=5),
        "scores": st.lists(st.floats(-9, 9), max_size=5),
    },
)
NESTED = st.dictionaries(
    st.text(max_size=2),
    st.dictionaries(st.text(max_size=2), st.lists(IDS, max_size=4), max_size=3),
    max_size=3,
)
SOURCES = st.one_of(
    st.fixed_dictionaries({"votes": st.lists(VOTE, max_size=12)}),
    st.fixed_dictionaries({"lists": st.lists(ROW, max_size=4)}),
    st.fixed_dictionaries({"rankings": NESTED}),
)
METHODS = st.sampled_from([
    "rrf", "borda", "copeland", "kemeny", "mc4", "bradley_terry", "elo", "crowdagg", "mallows", "svd", "plackett_luce",
    "thurstone", "schulze", "dawid_skene", "median_rank", "combmnz",
])  # fmt: skip


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_requests_that_look_right(client, data):
    address = data.draw(st.sampled_from(ADDRESSES[1:]))
    body = data.draw(SOURCES)
    if address == "leaderboard":
        body = {"votes": body.get("votes", []), "bootstrap": data.draw(st.sampled_from([0, 2])), "next": 2}
    elif address == "evaluate":
        grade = st.fixed_dictionaries({"item": IDS, "grade": st.floats(-5, 5)}, optional={"query": IDS})
        body |= {"labels": data.draw(st.lists(grade, max_size=5)), "methods": [data.draw(METHODS)]}
    else:
        body |= {"method": data.draw(METHODS)}
    if address == "explain":
        body |= data.draw(st.fixed_dictionaries({}, optional={"item": IDS, "over": IDS, "query": IDS}))
    found = client.post(f"/v1/{address}", json=body)
    assert found.status_code in (200, 413, 422), (found.text, body)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=60), st.sampled_from(["identity", "gzip"]))
def test_any_bytes(client, body, coding):
    found = client.post("/v1/fuse", content=body, headers=JSON | {"content-encoding": coding})
    assert found.status_code in (400, 422)


SPECS = st.text("rfkndcg(=1,)'\"[]{}:@*-+. _0e9\\x\n", max_size=30) | st.text(max_size=10)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(SPECS, SPECS, st.booleans())
def test_any_method_and_metric(client, method, metric, known):
    method = f"rrf({method}" if known else method
    body = {"rankings": {"q": {"e": ["a"]}}, "method": method}
    assert client.post("/v1/aggregate", json=body).status_code in (200, 422)
    labels = [{"query": "q", "item": "a", "grade": 1}]
    body = {
        "rankings": {"q": {"e": ["a"]}},
        "labels": labels,
        "metrics": [f"ndcg{metric}" if known else metric],
    }
    assert client.post("/v1/evaluate", json=body).status_code in (200, 422)
