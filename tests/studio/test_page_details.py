"""What the pages show in detail: whole rankings, charts that fill their card, held-out scores, errors with a way on."""

from __future__ import annotations

import re

import numpy as np
import pytest

from podium import make
from podium.data.demo import demo
from podium.studio.job_kinds import _bound_mean
from podium.studio.pages import render
from serving import serving

HEAD = "judge,winner,loser\n"
PAIRS = [(n % 70, (7 * n + 1 + n % 3) % 70) for n in range(400)]
MANY = HEAD + "".join(f"j{n % 4},m{a},m{b}\n" for n, (a, b) in enumerate(PAIRS) if a != b)
FEW = HEAD + "".join(f"j{n % 3},a,{'bc'[n % 2]}\n" for n in range(30)) + "j0,b,c\nj1,c,b\nj2,b,a\nj2,c,a\n"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("studio"), processes=0) as client:
        yield client


def upload(client, name, text):
    csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/").text)[1]
    files = [("files", (name, text.encode()))]
    return client.post("/open/upload", data={"csrf": csrf}, files=files).headers["location"].split("/")[2]


def read_table(client, address):
    return client.get(f"{address}/t0.rows").json()["rows"]


def test_fuse_shows_every_query_or_every_item(client):
    rows = read_table(client, "/p/demo/fuse")
    result = make(client.get("/p/demo/fuse.json").json()["method"]).aggregate(demo().preferences)
    assert [row[0] for row in rows] == list(result.queries)
    assert rows[3][2:4] == [str(item) for item in result.ranking(rows[3][0])[:2]]
    project = upload(client, "votes.csv", MANY)
    rows = read_table(client, f"/p/{project}/fuse")
    assert len({row[0] for row in rows}) == 70
    assert [int(row[1]) for row in rows] == sorted(int(row[1]) for row in rows)


def test_the_answer_of_votes_stands_on_their_first_page(client):
    """Whichever page is opened first: the answer does not wait for the overview."""
    project = upload(client, "board.csv", FEW)
    client.get(f"/p/{project}/leaderboard.json")
    for view in ("leaderboard", "annotators", "share", "collect"):
        assert "<strong>a</strong>" in client.get(f"/p/{project}/{view}").text, view


@pytest.mark.parametrize("address", ["/p/demo/query/heatmap.svg?q=q003", "/p/demo/experts/agreement.svg",
                                     "/p/demo/differences/differences.svg"])  # fmt: skip
def test_charts_of_cells_fill_their_card(client, address):
    drawn = client.get(address).text
    width = float(re.search(r'<svg[^>]*? width="([0-9.]+)"', drawn)[1])
    assert 0.8 * render.WIDE <= width <= render.WIDE + 2


def test_a_missing_page_leads_back_to_its_project(client):
    answer = client.get("/p/demo/no-such-page")
    assert answer.status_code == 404
    assert "<h1>Not found</h1>" in answer.text
    assert 'href="/p/demo/overview">Back to the overview' in answer.text


def test_the_interval_of_a_held_out_score_is_students():
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(1).random(37)
    wanted = stats.t.interval(0.95, 36, loc=values.mean(), scale=stats.sem(values))
    np.testing.assert_allclose(_bound_mean(np.append(values, np.nan)), wanted, rtol=1e-9)
    assert _bound_mean(values[:1]) is None


def test_uploads_are_counted(client):
    def read_counts():
        text = client.get("/metrics").text
        return [
            float(re.search(rf"^{name} ([0-9.]+)$", text, re.M)[1])
            for name in ("podium_uploads_total", "podium_uploads_running")
        ]

    before, _ = read_counts()
    upload(client, "few.csv", FEW)
    assert read_counts() == [before + 1, 0]


def test_nothing_is_removed_without_a_question(client):
    csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/").text)[1]
    project = (
        client.post("/collect", data={"csrf": csrf, "items": "ant\nbee\ncat"})
        .headers["location"]
        .split("/")[2]
    )
    address = f"/p/{project}/collect"
    client.post(f"{address}/gold", data={"csrf": csrf, "first": "1", "second": "2", "answer": "first"})
    client.post(f"{address}/invite", data={"csrf": csrf, "judge": "ann", "role": "judge"})
    text = client.get(address).text + client.get(f"/p/{project}/data").text
    for action in ("revoke", "gold-remove", "remove"):
        forms = re.findall(rf'<form[^>]*action="/p/{project}/(?:collect/)?{action}"', text)
        asked = re.findall(
            rf'<div popover[^>]*><p>[^<]+</p>\s*<form[^>]*action="/p/{project}/(?:collect/)?{action}"', text
        )
        assert len(forms) == len(asked) >= 1, action
    number = re.search(r'action="[^"]*revoke".*?name="invite" value="([^"]+)"', text, re.S)[1]
    assert number in client.get(address).text
    client.post(f"{address}/revoke", data={"csrf": csrf, "invite": number})
    assert f'value="{number}"' not in client.get(address).text


def test_one_table_serves_projects_annotators_judges_and_figures(client):
    """Each is sorted and searched by the address, and keeps what is special in its cells."""
    names = [upload(client, f"name {n:02}.csv", FEW) and f"name {n:02}" for n in range(14)]
    home = client.get("/?projects.sort=1&projects.find=name").text.partition('id="projects"')[2]
    assert re.findall(r'<a href="/p/\w+">(name \d\d)</a>', home) == names
    votes = [(n % 8, n % 3, (n + 1 + n // 8 % 2) % 3) for n in range(480)]
    pairs = [(j, *sorted((a, b), reverse=j == 0 and n % 25 > 0)) for n, (j, a, b) in enumerate(votes)]
    project = upload(
        client, "noisy.csv", HEAD + "".join(f"j{j},{'abc'[a]},{'abc'[b]}\n" for j, a, b in pairs)
    )
    text = client.get(f"/p/{project}/annotators?suspects.sort=2").text
    assert re.search(r'<input type="checkbox" name="who" value="j0" form="exclude"[^>]* checked>', text)
    assert 'id="suspects"' in text
    assert 'aria-sort="ascending"' in text
    shared = client.get(f"/p/{project}/share").text
    assert re.search(r'id="figures".*?leaderboard/leaderboard\.png"', shared, re.S)


def test_the_head_to_head_table_shows_as_many_items_as_wanted(client):
    project = upload(client, "many.csv", MANY)
    client.get(f"/p/{project}/leaderboard.json")  # waits until the board is computed
    for faced, wanted in (("", 12), ("?faced=40", 40), ("?faced=200", 70)):
        page = client.get(f"/p/{project}/leaderboard{faced}").text
        table = page[page.index('id="t2"') :].partition("</table>")[0]
        assert table.count("<th ") == wanted + 1
        assert min(wanted, 50) == table.count("<tr>") - 1


def test_a_wrong_value_in_an_address_leads_back_to_the_page_without_it(client):
    client.get("/p/demo/fuse.json")  # waits until the data are read
    page = client.get("/p/demo/fuse?m=bogus")
    assert page.status_code == 422
    way = re.search(r'<a class="button" href="([^"]+)">Fuse without these values</a>', page.text)
    assert way[1] == "/p/demo/fuse"
    assert client.get(way[1]).status_code == 200


def test_pages_without_a_method_in_their_address_rank_by_the_answer(client):
    spec = client.get("/p/demo/overview.json").json()["answer"]["spec"]
    assert client.get("/p/demo/fuse.json").json()["method"].partition("(")[0] == spec.partition("(")[0]
    for view in ("share", "explain", "why"):
        client.get(f"/p/demo/{view}.json")  # waits until it is computed
        assert f"<option selected>{spec}</option>" in client.get(f"/p/demo/{view}").text, view


def test_the_panel_page_has_no_error_where_there_is_none(client):
    votes = "".join(
        f"q{q},j{j},{'ab'[(q + j // 2) % 2]},{'ba'[(q + j // 2) % 2]}\n" for q in range(12) for j in range(5)
    )
    project = upload(client, "panel.csv", f"query,judge,winner,loser\n{votes}")
    page = client.get(f"/p/{project}/judges").text
    assert "What the panel is worth" in page
    assert 'role="alert"' not in page


def test_votes_are_not_offered_for_deployment(client):
    """Engines fuse lists; a button must not lead to an error."""
    graded = "query,judge,winner,loser\n" + "".join(f"q{n % 6},j{n % 3},a{n % 4},b\n" for n in range(48))
    labels = "query,item,label\n" + "".join(
        f"q{q},{item},{int(item == 'a1')}\n" for q in range(6) for item in ["a0", "a1", "b"]
    )
    csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/").text)[1]
    files = [("files", ("votes.csv", graded.encode())), ("files", ("labels.csv", labels.encode()))]
    project = client.post("/open/upload", data={"csrf": csrf}, files=files).headers["location"].split("/")[2]
    client.get(f"/p/{project}/overview.json")
    page = client.get(f"/p/{project}/overview").text
    assert "Apply it to new files" in page
    assert "/deploy" not in page
    client.get("/p/demo/overview.json")
    assert "Deploy it" in client.get("/p/demo/overview").text
