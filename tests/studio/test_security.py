"""Who is answered, and what every answer carries."""

import re

import pytest

from podium.core.errors import ParameterError
from podium.studio.security import CSP, SESSION, Guard, hash_token
from podium.studio.settings import Limits, ServerSettings, is_loopback
from serving import serving

TOKEN = "0123456789abcdef0123456789abcdef"
FUSE = {"lists": [["a", "b"], ["b"]]}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("studio")) as found:
        yield found


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("guarded"), host="0.0.0.0", token_hash=hash_token(TOKEN)) as found:
        yield found


# -- the token


def test_other_addresses_need_a_token(tmp_path):
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", ""):
        assert not is_loopback(host)
        with pytest.raises(ParameterError, match="a token is required"):
            ServerSettings(tmp_path, host=host)
        ServerSettings(tmp_path, host=host, token_hash=hash_token(TOKEN))
    for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        ServerSettings(tmp_path, host=host)


def test_tokens_are_kept_hashed_with_salt(tmp_path):
    first, second = hash_token(TOKEN), hash_token(TOKEN)
    assert first != second
    assert TOKEN not in first
    guard = Guard(ServerSettings(tmp_path, token_hash=first))
    assert guard.is_valid_token(TOKEN)
    assert not guard.is_valid_token(TOKEN[:-1])
    assert not guard.is_valid_token("")
    assert not guard.is_valid_token("\ud800" * 40)
    assert not Guard(ServerSettings(tmp_path)).is_valid_token("")
    with pytest.raises(ParameterError, match="24 or more"):
        hash_token("hunter2")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": "Bearer "},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": TOKEN},
        {"cookie": f"{SESSION}=00"},
        {"cookie": f"{SESSION}="},
    ],
)
def test_missing_and_wrong_tokens(guarded, headers):
    found = guarded.post("/v1/fuse", json=FUSE, headers=headers)
    assert found.status_code == 401
    assert found.headers["www-authenticate"] == "Bearer"
    assert found.json()["type"] == "urn:podium:problem:NoToken"
    for path in ("/metrics", "/docs", "/openapi.json", "/v1/methods", "/", "/nowhere"):
        assert guarded.get(path, headers=headers).status_code == 401
    assert guarded.get("/healthz").status_code == guarded.get("/readyz").status_code == 200


def test_the_right_token(guarded):
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert guarded.post("/v1/fuse", json=FUSE, headers=headers).status_code == 200
    assert guarded.get("/openapi.json", headers=headers).json()["security"] == [
        {"token": []},
        {"session": []},
    ]


def test_a_browser_gives_the_token_once(guarded):
    found = guarded.get("/", headers={"accept": "text/html"})
    assert (found.status_code, found.headers["location"]) == (303, "/login")
    page = guarded.get("/login")
    csrf = re.search(r'name="csrf" value="(\w+)"', page.text)[1]
    assert guarded.post("/login", data={"csrf": "0", "token": TOKEN}).status_code == 403
    assert guarded.post("/login", data={"csrf": csrf, "token": "wrong"}).status_code == 401
    assert guarded.post("/login", data={"csrf": csrf, "token": "x" * 10_000}).status_code == 413
    done = guarded.post("/login", data={"csrf": csrf, "token": TOKEN})
    assert done.status_code == 303
    cookie = next(c for c in done.headers.get_list("set-cookie") if c.startswith(SESSION))
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    assert guarded.get("/docs").status_code == 200
    guarded.cookies.clear()


# -- Host and Origin


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8765", "", "a:b:c",
                                  "192.168.0.1", "localhost:80x", "127.0.0.1@evil.example"])  # fmt: skip
def test_another_name_for_this_machine_is_refused(client, host):
    for path in ("/", "/v1/methods", "/healthz", "/login"):
        assert client.get(path, headers={"host": host}).status_code == 421
    assert client.post("/v1/fuse", json=FUSE, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1:8765", "[::1]:8765"])
def test_own_names(client, host):
    assert client.get("/healthz", headers={"host": host}).status_code == 200


def test_a_public_server_answers_to_addresses_and_allowed_names(tmp_path):
    with serving(
        tmp_path, host="0.0.0.0", hosts=("Fusion.example.org",), token_hash=hash_token(TOKEN)
    ) as client:
        for host, status in (
            ("10.0.0.7:8765", 200), ("fusion.example.org", 200), ("[fe80::1]", 200), ("evil.example", 421)
        ):  # fmt: skip
            assert client.get("/healthz", headers={"host": host}).status_code == status


@pytest.mark.parametrize("headers", [
    {"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "http://localhost:1234"},
    {"origin": "http://localhost.evil.example"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"},
])  # fmt: skip
def test_requests_of_other_sites_change_nothing(client, headers):
    assert client.post("/v1/fuse", json=FUSE, headers=headers).status_code == 403
    assert client.post("/login", data={"token": TOKEN}, headers=headers).status_code == 403


def test_requests_of_our_own_pages(client):
    for origin in ("http://localhost", "https://localhost"):
        headers = {"origin": origin, "sec-fetch-site": "same-origin"}
        assert client.post("/v1/fuse", json=FUSE, headers=headers).status_code == 200


def test_a_cross_site_form_cannot_speak_json(client):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        found = client.post("/v1/fuse", content=b'{"lists": [["a"]]}', headers={"content-type": kind})
        assert found.status_code == 415


# -- forms


def test_forms_belong_to_one_browser_and_one_server(client, guarded):
    mark = re.compile(r'name="csrf" value="(\w+)"')
    mine = mark.search(client.get("/login").text)[1]
    assert mark.search(client.get("/login").text)[1] == mine
    client.cookies.clear()
    other = mark.search(client.get("/login").text)[1]
    assert other != mine
    assert client.post("/login", data={"csrf": mine, "token": "x"}).status_code == 403
    assert client.post("/login", data={"csrf": other, "token": "x"}).status_code == 401
    assert guarded.post("/login", data={"csrf": other, "token": TOKEN}).status_code == 403
    client.cookies.clear()


# -- headers


@pytest.mark.parametrize("path", ["/", "/docs", "/v1/methods", "/nowhere", "/healthz", "/docs/style.css"])
def test_headers_of_every_answer(client, path):
    found = client.get(path).headers
    assert found["content-security-policy"] == CSP
    assert found["x-content-type-options"] == "nosniff"
    assert found["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in found
    refused = client.get(path, headers={"host": "evil.example"}).headers
    assert refused["content-security-policy"] == CSP


def test_the_documentation_obeys_the_policy(client):
    page = client.get("/docs").text
    assert not re.search(r"<script|<style|\sstyle=|\son\w+=", page)


def test_logs_hold_no_contents(client, caplog):
    caplog.set_level("INFO", "podium.studio")
    client.post("/v1/fuse", json={"lists": [["secret-item", "secret-item"]]})
    client.get("/secret-path?secret-query=1")
    client.get("/p/secret-project/overview")
    assert "POST /v1/fuse 422" in caplog.text
    assert "secret" not in caplog.text


def test_a_fault_of_ours_tells_nobody_what_was_sent(client, caplog, monkeypatch):
    from podium.studio.api import fuse_answers

    def broken(*_):
        raise KeyError("secret-item")

    monkeypatch.setattr(fuse_answers, "answer_fuse", broken)
    found = client.post("/v1/fuse", json=FUSE)
    assert found.status_code == 500
    assert "secret" not in found.text + caplog.text
    assert "KeyError at" in caplog.text


def test_limits_are_numbers():
    for wrong in (0, -1, float("inf"), True, "1"):
        with pytest.raises(ParameterError, match="accepted"):
            Limits(lists=wrong)
