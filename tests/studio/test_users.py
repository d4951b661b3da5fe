"""Named tokens, roles, sessions, the audit log."""

import re

import pytest
from click.testing import CliRunner

from podium.cli import program
from podium.core.errors import ParameterError
from podium.studio.security import SESSION, hash_token, load_signing_key, required_role
from podium.studio.store import Store
from serving import serving

OWN = "0123456789abcdef0123456789abcdef"
RUN = {"files": ("a.run", b"q1 Q0 d1 1 2.5 bm25\nq1 Q0 d2 2 1.5 bm25\n")}
ROLES = ("viewer", "judge", "editor", "admin")


@pytest.fixture
def tokens(tmp_path):
    store = Store(tmp_path)
    return {role: store.add_token(f"the-{role}", role) for role in ROLES}


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def log_in(client, token):
    csrf = re.search(r'name="csrf" value="(\w+)"', client.get("/login").text)[1]
    return client.post("/login", data={"csrf": csrf, "token": token}), csrf


def test_roles_permit_what_they_should(tmp_path, tokens):
    with serving(tmp_path, has_tokens=True) as client:
        assert client.get("/v1/projects").status_code == 401
        for place, role in enumerate(ROLES):
            headers = bearer(tokens[role])
            assert client.get("/v1/user", headers=headers).json() == {"name": f"the-{role}", "role": role}
            assert client.get("/v1/projects", headers=headers).status_code == 200
            assert client.post("/v1/fuse", json={"lists": [["a"]]}, headers=headers).status_code == 200
            made = client.post("/v1/projects", files=RUN, headers=headers)
            assert made.status_code == (201 if place >= 2 else 403)
            assert client.get("/v1/tokens", headers=headers).status_code == (200 if place == 3 else 403)
            form = client.post("/p/demo/jobs", data={"kind": "fit"}, headers=headers)
            # an editor's form is refused only because it lacks the mark of this server
            assert ("role" in form.text) == (place < 2)


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [
        ("GET", "/p/demo/overview", "viewer"),
        ("POST", "/v1/leaderboard", "viewer"),
        ("POST", "/v1/projects/x/votes", "judge"),
        ("POST", "/v1/projects/x/votes/undo", "judge"),
        ("DELETE", "/v1/projects/votes", "editor"),
        ("POST", "/v1/fusebox", "editor"),
        ("POST", "/p/x/remove", "editor"),
        ("GET", "/v1/projects/x/invites", "editor"),
        ("GET", "/v1/projects/x/gold", "editor"),
        ("GET", "/v1/projects/x/collection", "viewer"),
        ("POST", "/v1/projects/x/annotators/exclude", "editor"),
        ("GET", "/v1/audit", "admin"),
        ("DELETE", "/v1/tokens/ann", "admin"),
    ],
)
def test_required_roles(method, path, role):
    assert required_role(method, path) == role


def test_a_removed_token_is_refused_at_once_by_every_server(tmp_path, tokens):
    with serving(tmp_path, has_tokens=True) as first, serving(tmp_path, has_tokens=True) as second:
        for client in (first, second):
            assert client.get("/v1/user", headers=bearer(tokens["editor"])).status_code == 200
        gone = first.delete("/v1/tokens/the-editor", headers=bearer(tokens["admin"]))
        assert gone.status_code == 204
        for client in (first, second):
            assert client.get("/v1/user", headers=bearer(tokens["editor"])).status_code == 401


def test_sessions_and_forms_hold_on_other_servers_and_after_restarts_and_end_with_the_logout(
    tmp_path, tokens
):
    with serving(tmp_path, has_tokens=True) as first:
        answer, csrf = log_in(first, tokens["editor"])
        assert answer.status_code == 303
        cookies = dict(first.cookies)
    with serving(tmp_path, has_tokens=True) as second:
        second.cookies.update(cookies)
        assert second.get("/v1/user").json()["name"] == "the-editor"
        started = second.post("/p/demo/jobs", data={"csrf": csrf, "kind": "fit", "method": "rrf"})
        assert started.status_code == 303, started.text
        third = {**cookies}
        done = second.post("/logout", data={"csrf": csrf})
        assert done.headers["location"] == "/login"
        assert "Max-Age=0" in next(c for c in done.headers.get_list("set-cookie") if c.startswith(SESSION))
        second.cookies.clear()
        second.cookies.update(third)  # a copy of the cookie
        assert second.get("/v1/user").status_code == 401


def test_a_cookie_cannot_be_forged(tmp_path, tokens):
    with serving(tmp_path, has_tokens=True) as client:
        log_in(client, tokens["viewer"])
        name, until, id_, mark = client.cookies[SESSION].strip('"').split(".")
        for forged in (
            f"dGhlLWFkbWlu.{until}.{id_}.{mark}",
            f"{name}.9999999999.{id_}.{mark}",
            f"{name}.{until}.{id_}.{'0' * 64}",
            "x",
            "....",
        ):
            assert client.get("/v1/user", headers={"cookie": f"{SESSION}={forged}"}).status_code == 401


def test_invitations_are_for_judges_and_viewers_alone(tmp_path, tokens):
    with serving(tmp_path, has_tokens=True) as client:
        assert client.get(f"/join/{tokens['judge']}").status_code == 303
        assert client.get("/v1/user").json()["role"] == "judge"
        client.cookies.clear()
        assert client.get(f"/join/{tokens['admin']}").status_code == 401
        assert client.get("/join/nonsense").status_code == 401


def test_cookies_are_secure_behind_tls_and_links_are_below_the_sub_path(tmp_path):
    settings = {"public_url": "https://example.org/podium", "token_hash": hash_token(OWN)}
    with serving(tmp_path, **settings, headers={"host": "example.org"}) as client:
        page = client.get("/podium/login")
        assert 'action="/podium/login"' in page.text
        assert all("; Secure" in c and "Path=/podium" in c for c in page.headers.get_list("set-cookie"))
        asked = client.get("/podium/", headers={"accept": "text/html"})
        assert asked.headers["location"] == "/podium/login"
        home = client.get("/", headers=bearer(OWN)).text  # a proxy may remove the sub-path
        assert 'href="/podium/static/style.css"' in home
        assert not re.search(r'(href|src|action)="/(?!podium/)', home)


def test_the_audit_log_names_who_changed_what(tmp_path, tokens):
    with serving(tmp_path, has_tokens=True) as client:
        project = client.post("/v1/projects", files=RUN, headers=bearer(tokens["editor"])).json()["id"]
        client.delete(f"/v1/projects/{project}", headers=bearer(tokens["editor"]))
        client.post("/v1/fuse", json={"lists": [["a"]]}, headers=bearer(tokens["viewer"]))
        answer = client.get("/v1/audit?limit=1", headers=bearer(tokens["admin"])).json()
        [newest] = answer["entries"]
        shown = (newest["user"], newest["method"], newest["route"], newest["project"], newest["status"])
        assert shown == ("the-editor", "DELETE", "/v1/projects/{project}", project, 204)
        older = client.get(f"/v1/audit?after={answer['next']}", headers=bearer(tokens["admin"])).json()
        assert [entry["route"] for entry in older["entries"]] == ["/v1/projects"]


def test_names_and_roles_are_checked(tmp_path):
    store = Store(tmp_path)
    token = store.add_token("ann", "viewer")
    for name, role in (
        ("", "viewer"),
        ("a b", "viewer"),
        ("operator", "viewer"),
        ("bob", "king"),
        ("ann", "admin"),
    ):
        with pytest.raises(ParameterError):
            store.add_token(name, role)
    assert token.encode() not in (tmp_path / "studio.sqlite").read_bytes()


def test_the_signing_key_is_private_and_kept(tmp_path):
    key = load_signing_key(tmp_path)
    assert load_signing_key(tmp_path) == key
    assert (tmp_path / "signing.key").stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == ["signing.key"]


def test_tokens_on_the_command_line(tmp_path):
    def run(*words):
        return CliRunner().invoke(program, ["token", *words, "--folder", str(tmp_path)])

    token = run("add", "ann", "--role", "editor").output.strip()
    assert run("list").output.startswith("ann  editor  ")
    with serving(tmp_path, has_tokens=True) as client:
        assert client.get("/v1/user", headers=bearer(token)).json() == {"name": "ann", "role": "editor"}
        assert run("remove", "ann").exit_code == 0
        assert client.get("/v1/user", headers=bearer(token)).status_code == 401
    assert run("remove", "ann").exit_code == 2
    assert "takes one name" in run("add").output
