"""Pages show what a role may do: no form that would be refused, a sentence where one is missing, and a way out."""

from __future__ import annotations

import re
import time

import pytest

from podium.studio.pages.view_context import views
from podium.studio.security import required_role
from podium.studio.store import Store
from podium.studio.token_store import User
from serving import serving

VOTES = "judge,winner,loser\n" + "".join(
    f"j{n % 4},{'abc'[n % 3]},{'abc'[(n + 1) % 3]}\n"
    if n % 4
    else f"j0,{'abc'[(n + 1) % 3]},{'abc'[n % 3]}\n"
    for n in range(60)
)
WRONG = "judge winner loser\nj1 a b\nj1 a a\n"
FORM = re.compile(r'<form method="post" action="([^"]+)"')


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    (served := tmp_path_factory.mktemp("served") / "mine.run").write_text("q Q0 d 1 1 e\n")
    store = Store(folder)
    tokens = {role: store.add_token(f"the-{role}", role) for role in ("viewer", "judge", "editor")}
    with serving(folder, has_tokens=True, processes=0, roots=(served.parent,)) as client:

        def get(address, role):
            headers = {"authorization": f"Bearer {tokens[role]}"}
            while 'http-equiv="refresh"' in (answer := client.get(address, headers=headers)).text:
                time.sleep(0.05)
            return answer.text

        def post(address, files=None, **fields):
            mark = re.search(r'name="csrf" value="(\w+)"', get("/", "editor"))[1]
            headers = {"authorization": f"Bearer {tokens['editor']}"}
            return client.post(address, data={"csrf": mark, **fields}, files=files, headers=headers)

        def upload(name, text):
            sent = post("/open/upload", [("files", (name, text.encode()))])
            return sent.headers["location"].split("/")[2]

        votes, wrong = upload("votes.csv", VOTES), upload("wrong.txt", WRONG)
        collecting = post("/collect", items="ant\nbee\ncat").headers["location"].split("/")[2]
        post(f"/p/{votes}/annotators/exclude", who="j0")
        post("/p/demo/weights", m="rrf", name="weighted", **{"w:echo-1": "0"})
        listed = ["/", "/files/0", f"/p/{wrong}/data", f"/p/{collecting}/collect", f"/?removed={wrong}"]
        for project in ("demo", votes):
            listed += [
                f"/p/{project}/{name}" for name, view in views.all().items() if view.page and name != "job"
            ]
        yield get, listed


@pytest.mark.parametrize("role", ["viewer", "judge", "editor"])
def test_pages_have_no_form_that_the_role_may_not_send(studio, role):
    get, listed = studio
    user, sent = User("somebody", role), set()
    for address in listed:
        for action in FORM.findall(get(address, role)):
            assert user.may_act_as(required_role("POST", action)), (address, action)
            sent.add(re.sub(r"/p/[^/]+", "/p/x", action))
    shared = {"/logout", *(["/p/x/collect/vote"] if role != "viewer" else [])}
    if role != "editor":
        assert sent == shared
    else:
        assert shared < sent
        assert {"/open/upload", "/open/path", "/p/x/jobs", "/p/x/annotators/exclude", "/p/x/weights"} < sent


@pytest.mark.parametrize("address", ["/", "/p/demo/jobs", "/p/demo/apply", "/p/demo/collect"])
def test_a_sentence_stands_where_the_form_is_missing(studio, address):
    get, _ = studio
    assert "needs the role editor. You are logged in as the-viewer (viewer)" in get(address, "viewer")
    assert "needs the role editor" not in get(address, "editor")


def test_one_person_without_a_password_has_all_forms_and_no_logout(tmp_path):
    with serving(tmp_path, processes=0) as client:
        page = client.get("/").text
        assert 'action="/open/upload"' in page
        assert 'action="/logout"' not in page
