"""What holds for every route of the application: the least role, HEAD, request ids, problem details, pages of lists,
idempotency keys. The routes are those of the application, so a new one without an entry here fails."""

from __future__ import annotations

import re

import pytest

from podium.studio.app import create_app
from podium.studio.settings import ServerSettings
from podium.studio.store import Store
from serving import serving

NOBODY, VIEWER, JUDGE, EDITOR, ADMIN = "nobody", "viewer", "judge", "editor", "admin"
ROLES = (NOBODY, VIEWER, JUDGE, EDITOR, ADMIN)  # each may do what those before it may
P, V = "/p/{project}", "/v1/projects/{project}"
# the least role that may send a request
LEAST = {
    NOBODY: [
        "GET /healthz", "GET /readyz", "GET /login", "POST /login", "GET /docs/style.css", "GET /static/{name}",
        # the signature in the path is checked instead
        "GET /join/{token}", "GET /vote/{signed}", "GET /vote/{signed}/next.json", "GET /vote/{signed}/board.json",
        "POST /vote/{signed}/join", "POST /vote/{signed}/answer", "POST /vote/{signed}/undo",
    ],
    VIEWER: [
        "GET /", "GET /docs", "GET /openapi.json", "GET /metrics", "GET /files/{root}", "POST /logout",
        *(f"GET {P}{rest}" for rest in (
            "", "/{view}", "/{view}/{figure}.svg", "/{view}/{figure}.png", "/{view}/{table}.rows", "/report.html",
            "/ranking.{suffix}", "/cleaned.{suffix}", "/votes.{suffix}", "/models/{model}.podium",
        )),
        *(f"POST /v1/{name}" for name in ("fuse", "aggregate", "evaluate", "explain", "leaderboard", "annotators")),
        "GET /v1/methods", "GET /v1/user", "GET /v1/projects",
        *(f"GET {V}{rest}" for rest in (
            "", "/annotators", "/collection", "/jobs", "/jobs/{job}", "/models", "/models/{model}",
            "/models/{model}/file", "/next-pair", "/plan", "/texts", "/views", "/views/{view}",
            "/views/{view}/figures", "/views/{view}/figures/{figure}.{suffix}", "/votes", "/report.html",
            "/ranking.{suffix}", "/cleaned.{suffix}", "/votes.{suffix}",
        )),
    ],
    JUDGE: [f"POST {V}/votes", f"POST {V}/votes/undo"],
    EDITOR: [
        "POST /open/path", "POST /open/upload", "POST /collect",
        *(f"POST {P}{rest}" for rest in (
            "/annotators/{action}", "/apply", "/collect/start", "/collect/{action}", "/data/change", "/data/{number}",
            "/jobs", "/jobs/{job}/stop", "/labels", "/labels/remove", "/remove", "/rename", "/restore", "/texts",
            "/texts/remove", "/weights",
        )),
        "POST /v1/projects", "POST /v1/collections", f"PATCH {V}", f"DELETE {V}",
        *(f"POST {V}{rest}" for rest in (
            "/annotators/exclude", "/annotators/restore", "/apply", "/collection", "/gold", "/gold/remove", "/invites",
            "/jobs", "/jobs/{job}/stop", "/labels", "/models", "/remedies", "/restore", "/texts",
        )),
        f"PATCH {V}/collection", f"PATCH {V}/plan/{{file}}", f"DELETE {V}/invites/{{invite}}", f"DELETE {V}/labels",
        f"DELETE {V}/texts",
        f"GET {V}/gold",  # answers that judges must not know
        f"GET {V}/invites",  # a link is a permission
    ],
    ADMIN: ["GET /v1/tokens", "POST /v1/tokens", "DELETE /v1/tokens/{name}", "GET /v1/audit"],
}  # fmt: skip
EXPECTED = {route: role for role, routes in LEAST.items() for route in routes}
# posts that store nothing, so that a repeated one needs no key
STATELESS = {f"/v1/{n}" for n in ("fuse", "aggregate", "evaluate", "explain", "leaderboard", "annotators")}
STATELESS.add(f"{V}/apply")
# lists whose length the program or one page of a project decides
SHORT_LISTS = {"/v1/methods", V, f"{V}/views", f"{V}/views/{{view}}/figures", f"{V}/plan", f"{V}/next-pair"}
VOTES = "judge,winner,loser\n" + "".join(f"j{n % 3},{'abc'[n % 3]},{'abc'[(n + 1) % 3]}\n" for n in range(30))


def list_routes(routes):
    """Method and path of every route, also of those that newer releases of FastAPI keep in their routers."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from list_routes(inner.routes)
        else:
            yield from (f"{method} {route.path}" for method in route.methods if method != "HEAD")


def fill(path, **names):
    """The address of a route: parameters that are not given name nothing."""
    return re.sub(r"\{(\w+)\}", lambda match: str(names.get(match[1], "nothing")), path)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Ask with a role; and names for the parameters of paths, by which every GET is answered with a record."""
    folder, served = tmp_path_factory.mktemp("studio"), tmp_path_factory.mktemp("served")
    store = Store(folder)
    tokens = {role: store.add_token(f"the-{role}", role) for role in ROLES[1:]}
    with serving(folder, has_tokens=True, roots=(served,)) as client:

        def ask(method, path, role, headers=None, **how):
            client.cookies.clear()
            own = {} if role == NOBODY else {"authorization": f"Bearer {tokens[role]}"}
            return client.request(method, path, headers=own | (headers or {}), **how)

        project = ask("POST", "/v1/projects", ADMIN, files={"files": ("v.csv", VOTES)}).json()["id"]
        begun = ask("POST", f"/v1/projects/{project}/collection", ADMIN, json={})
        assert begun.status_code == 201, begun.text
        invites = f"/v1/projects/{project}/invites"
        voted, seen = (
            ask("POST", invites, ADMIN, json={"judge": "ann", "role": role}).json()["path"].rpartition("/")[2]
            for role in (JUDGE, VIEWER)
        )
        votes = [{"first": "a", "second": "b", "answer": "first"}] * 5
        stored = ask(
            "POST", f"/v1/projects/{project}/votes", ADMIN, json={"judge": "program", "votes": votes}
        )
        assert stored.json()["stored"] == 5, stored.text
        job = ask(
            "POST", f"/v1/projects/{project}/jobs", ADMIN, json={"kind": "fit", "method": "copeland"}
        ).json()
        model = store.add_model(project, "m", "copeland", b"content")
        names = {
            "project": project, "view": "leaderboard", "figure": "scores", "suffix": "csv", "root": 0,
            "job": job["id"], "model": model, "signed": voted, "seen": seen, "token": tokens[JUDGE],
            "name": "studio.css",
        }  # fmt: skip
        figures = ask("GET", f"/v1/projects/{project}/views/leaderboard/figures", VIEWER).json()["figures"]
        names["figure"] = figures[0]["name"]
        blocks = (f"/p/{project}/leaderboard/t{number}.rows" for number in range(20))
        rows = next(block for block in blocks if ask("GET", block, VIEWER).status_code == 200)
        names["table"] = rows.rpartition("/")[2].removesuffix(".rows")
        yield ask, names


def test_every_route_has_an_entry(tmp_path):
    routes = set(list_routes(create_app(ServerSettings(tmp_path)).routes))
    assert routes == EXPECTED.keys()
    assert sum(map(len, LEAST.values())) == len(EXPECTED)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_send_what_the_table_says_and_nothing_else(server, role):
    ask, names = server
    for route, least in EXPECTED.items():
        method, path = route.split()
        address = fill(
            path, **names if method == "GET" else {}
        )  # changes are of nothing: a role is checked first
        answer = ask(method, address, role, json=None if method == "GET" else {})
        if ROLES.index(role) >= ROLES.index(least):
            assert answer.status_code < 500, (route, answer.text)
            assert "this needs the role" not in answer.text, route
            # an invitation or a login that names nothing is refused, too, but in words of its own
            assert answer.status_code != 401 or least == NOBODY, route
        else:
            assert answer.status_code == (401 if role == NOBODY else 403), (route, answer.text)
            words = "requires a token" if role == NOBODY else f"this needs the role {least}"
            assert words in answer.text, route


@pytest.mark.parametrize("role", [NOBODY, ADMIN])
def test_head_is_answered_as_get_without_a_body(server, role):
    ask, names = server
    for route in EXPECTED:
        method, path = route.split()
        if method != "GET":
            continue
        own = {"signed": names["seen"]} if path.endswith("/board.json") else {}
        own |= {"suffix": "svg"} if "{figure}" in path else {}
        address = fill(path, **names | own)
        address += "?judge=ann" if path.endswith("/next-pair") else "?m=copeland" if "ranking" in path else ""
        full, head = (ask(verb, address, role) for verb in ("GET", "HEAD"))
        assert head.status_code == full.status_code, route
        assert head.headers.get("content-type") == full.headers.get("content-type"), route
        assert head.content == b"", route
        if role == ADMIN:
            assert full.status_code in (200, 303, 307), (route, address, full.text)


def test_request_ids_come_back_and_errors_of_the_api_are_problem_details(server):
    ask, _ = server
    for number, (route, role) in enumerate(EXPECTED.items()):
        method, path = route.split()
        for asking in {NOBODY, role, ADMIN}:
            how = {} if method == "GET" else {"content": b"no JSON"}
            answer = ask(method, fill(path), asking, headers={"x-request-id": f"id-{number}"}, **how)
            assert answer.headers["x-request-id"] == f"id-{number}", route
            if answer.status_code >= 400 and path.startswith("/v1/"):
                assert answer.headers["content-type"] == "application/problem+json", route
                document = answer.json()
                assert document.keys() == {"type", "title", "status", "detail", "remedy"}, route
                assert document["status"] == answer.status_code, route
                assert document["detail"], route


def test_a_project_that_does_not_exist_is_not_found(server):
    ask, _ = server
    for route in EXPECTED:
        method, path = route.split()
        if path.startswith(V):
            view = fill(path, view="overview", suffix="csv")
            asked = f"{view}?judge=ann" if path.endswith("/next-pair") else view
            answer = ask(method, asked, ADMIN, **({} if method == "GET" else {"json": {}}))
            assert answer.status_code in ((404,) if method in ("GET", "DELETE") else (404, 415, 422)), (
                route,
                answer.text,
            )


def test_posts_take_an_idempotency_key_and_lists_come_in_pages(tmp_path):
    document = create_app(ServerSettings(tmp_path)).openapi()
    for path, calls in document["paths"].items():
        for verb, call in calls.items():
            names = {parameter["name"] for parameter in call.get("parameters", ())}
            if verb == "post":
                assert ("Idempotency-Key" in names) == (path not in STATELESS), path
            if verb == "get" and path not in SHORT_LISTS:
                content = call["responses"]["200"].get("content", {}).get("application/json", {"schema": {}})
                schema = content["schema"].get("$ref", "").rpartition("/")[2]
                fields = document["components"]["schemas"].get(schema, {}).get("properties", {}).values()
                assert {"limit", "after"} <= names or "array" not in {
                    field.get("type") for field in fields
                }, path


def test_every_post_that_stores_something_refuses_a_wrong_idempotency_key(server):
    ask, names = server
    for route in EXPECTED:
        method, path = route.split()
        if method == "POST" and path.startswith("/v1/") and path not in STATELESS:
            how = {"json": {}}
            if path in ("/v1/projects", f"{V}/labels", f"{V}/texts"):
                how = {"files": {"files": ("a.run", b"q Q0 d 1 1 e\n")}}
            key = {"idempotency-key": "k" * 201}
            answer = ask("POST", fill(path, **names), ADMIN, headers=key, **how)
            assert answer.status_code == 422, (route, answer.text)
            assert "Idempotency-Key" in answer.json()["detail"], route


def test_pages_of_a_list_make_the_whole_list(server):
    ask, names = server
    for path in ("/v1/tokens", fill(f"{V}/votes", **names)):
        whole, pages, after = ask("GET", path, ADMIN).json(), [], ""
        name = next(key for key in whole if key != "next")
        assert whole["next"] is None
        while after is not None:
            page = ask("GET", f"{path}?limit=2&after={after or (0 if name == 'votes' else '')}", ADMIN).json()
            assert 1 <= len(page[name]) <= 2
            pages, after = pages + page[name], page["next"]
        assert pages == whole[name]
        assert len(pages) >= 4
        assert ask("GET", f"{path}?limit=0", ADMIN).status_code == 422
