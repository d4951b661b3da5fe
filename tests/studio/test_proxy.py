"""Two servers on one folder behind nginx with TLS, as `deployment/nginx.conf` configures it."""

import contextlib
import html
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from podium.studio.store import Store
from serving import started

httpx = pytest.importorskip("httpx")
CONFIGURATION = Path(__file__).resolve().parents[2] / "deployment" / "nginx.conf"
RUN = "".join(f"q{q} Q0 d{d} {d} {9 - d}.5 bm25\n" for q in range(4) for d in range(1, 6))
OTHER = "".join(f"q{q} Q0 d{6 - d} {d} {9 - d}.5 dense\n" for q in range(4) for d in range(1, 6))
QRELS = "".join(f"q{q} 0 d{q + 1} 1\n" for q in range(4))
pytestmark = [
    pytest.mark.skipif(not CONFIGURATION.exists(), reason="only a checkout has the files of a deployment"),
    pytest.mark.skipif(
        shutil.which("nginx") is None or shutil.which("openssl") is None,
        reason="nginx or openssl is not installed: `apt-get install nginx-light openssl`",
    ),
]


def find_free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def make_certificate(folder):
    """A certificate of localhost that it signed itself, and its key."""
    made, key = folder / "certificate.pem", folder / "certificate.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-out", str(made), "-keyout", str(key)],
        check=True, capture_output=True,
    )  # fmt: skip
    return made, key


@contextlib.contextmanager
def run_nginx(folder, port, ports):
    """nginx with the shipped configuration, of which only names, ports and files are others."""
    certificate, key = make_certificate(folder)
    text = CONFIGURATION.read_text()
    changes = {
        "127.0.0.1:8765": f"127.0.0.1:{ports[0]}", "127.0.0.1:8766": f"127.0.0.1:{ports[1]}",
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl", "server_name example.org": "server_name localhost",
        "/etc/ssl/example.org.pem": str(certificate), "/etc/ssl/example.org.key": str(key),
    }  # fmt: skip
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    paths = "".join(
        f"{name}_temp_path {folder};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = f"daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
    user = "user root;\n" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(f"{user}{whole}http {{\naccess_log off;\n{paths}{text}\n}}\n")
    command = ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    with subprocess.Popen(command) as server:
        try:
            for _ in range(100):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield certificate
        finally:
            server.send_signal(signal.SIGQUIT)
            server.wait(20)


class Team:
    """Two servers and the proxy before them."""

    def __init__(self, folder):
        self.folder, self.port, self.ports = folder, find_free_port(), [find_free_port(), find_free_port()]
        self.address = f"https://localhost:{self.port}/podium"
        self.tokens = {r: Store(folder / "studio").add_token(f"the-{r}", r) for r in ("editor", "viewer")}
        self.servers = [contextlib.ExitStack(), contextlib.ExitStack()]
        self.processes = [None, None]

    def start(self, number):
        words = ("--port", str(self.ports[number]), "--public-url", self.address, "--quiet")
        server, _ = self.servers[number].enter_context(started(self.folder / "studio", *words))
        self.processes[number] = server

    def stop(self, number):
        self.servers[number].close()

    @contextlib.contextmanager
    def open_browser(self, **more):
        with httpx.Client(
            base_url=self.address,
            verify=ssl.create_default_context(cafile=self.certificate),
            timeout=60,
            **more,
        ) as client:
            yield client


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    folder = tmp_path_factory.mktemp("team")
    team = Team(folder)
    with contextlib.ExitStack() as held:
        for number in (0, 1):
            held.callback(team.stop, number)
            team.start(number)
        team.certificate = held.enter_context(run_nginx(folder, team.port, team.ports))
        yield team


def read_csrf(client, page):
    return re.search(r'name="csrf" value="(\w+)"', client.get(page).text)[1]


def log_in(team, client):
    form = {"csrf": read_csrf(client, "/login"), "token": team.tokens["editor"]}
    # a browser names the port of the proxy in its origin, which `Host $host` leaves out
    answer = client.post("/login", data=form, headers={"origin": f"https://localhost:{team.port}"})
    assert answer.status_code == 303, answer.text
    return answer


def get_computed(client, address):
    """A page, asked for again while it shows its progress."""
    for _ in range(300):
        answer = client.get(address)
        if 'data-refresh="' not in answer.text or answer.status_code != 200:
            return answer
        if 'data-refresh="0"' in answer.text or 'data-refresh=""' in answer.text:
            return answer
        time.sleep(0.2)
    raise AssertionError(f"{address} is not computed")


def test_cookies_are_for_tls_and_the_sub_path(team):
    with team.open_browser() as client:
        assert client.get("/").status_code == 401
        page = client.get("/", headers={"accept": "text/html"})
        assert (page.status_code, page.headers["location"]) == (303, "/podium/login")
        answer = log_in(team, client)
        assert answer.headers["location"] == "/podium/"
        cookies = answer.headers.get_list("set-cookie")
        assert cookies
        for cookie in cookies:
            assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/podium"} <= set(cookie.split("; "))
        assert client.get("/").status_code == 200


def test_forms_uploads_jobs_and_sessions_work_on_either_server(team):
    with team.open_browser() as client:
        log_in(team, client)
        csrf = read_csrf(client, "/")
        files = [("files", ("a.run", RUN)), ("files", ("b.run", OTHER)), ("files", ("qrels.txt", QRELS))]
        for _ in range(2):  # the proxy sends requests to the servers by turns
            made = client.post("/open/upload", data={"csrf": csrf}, files=files)
            assert made.status_code == 303, made.text
        project = made.headers["location"].split("/")[3]
        assert get_computed(client, f"/p/{project}/overview").status_code == 200
        begun = client.post(f"/p/{project}/jobs", data={"csrf": csrf, "kind": "fit", "method": "rrf"})
        assert begun.headers["location"].startswith(f"/podium/p/{project}/jobs")
        for _ in range(300):
            [job] = client.get(f"/v1/projects/{project}/jobs").json()["jobs"]
            if job["state"] not in ("queued", "running"):
                break
            time.sleep(0.2)
        assert job["state"] == "done", job
        model = client.get(f"/p/{project}/models/{job['model']}.podium")
        assert len(model.content) > 100
        # a server that is killed, one that restarts: the session and the forms that were shown before go on
        team.processes[0].kill()
        team.processes[0].wait()
        for _ in range(4):
            assert client.get("/").status_code == 200
        assert client.post(f"/p/{project}/rename", data={"csrf": csrf, "name": "One"}).status_code == 303
        team.stop(0)
        team.start(0)
        team.stop(1)
        assert client.get(f"/v1/projects/{project}").json()["name"] == "One"
        assert client.post(f"/p/{project}/rename", data={"csrf": csrf, "name": "Two"}).status_code == 303
        team.start(1)
        assert client.get(f"/v1/projects/{project}").json()["name"] == "Two"
        cookie = client.cookies["podium_session"]
        assert client.post("/logout", data={"csrf": csrf}).headers["location"] == "/podium/login"
        for _ in range(4):  # on neither server
            again = client.get("/v1/projects", headers={"cookie": f"podium_session={cookie}"})
            assert again.status_code == 401


def list_links(text):
    """The addresses in a page that a browser asks for, and those that scripts do."""
    pattern = r'(?:href|src|action|formaction|data-[\w-]+)="(/[^"]*)"'
    return {html.unescape(link) for link in re.findall(pattern, text)}


def test_every_page_is_below_the_sub_path(team):
    """All links from the start page on: nothing leads out of the sub-path, nothing is missing."""
    with team.open_browser() as client:
        log_in(team, client)
        waiting, seen, kinds = ["/podium/"], set(), set()
        while waiting:
            link = waiting.pop()
            path = urlsplit(link).path
            assert link.startswith("/podium/"), link
            is_other = path.startswith("/podium/p/") and "/demo/" not in path
            if path in seen or is_other or path.endswith(".csv"):  # a table is the same as JSON and as CSV
                continue
            seen.add(path)
            answer = get_computed(client, urljoin(f"https://localhost:{team.port}", link))
            if answer.status_code in (404, 405) and "." not in path:
                continue  # where a form is sent to
            assert answer.status_code in (200, 303, 422), (link, answer.status_code, answer.text[:300])
            kinds.add(answer.headers.get("content-type", "").partition(";")[0])
            if "text/html" in answer.headers.get("content-type", ""):
                waiting += list_links(answer.text)
            elif path.endswith((".json", ".rows")):
                assert not re.search(r'": ?"/(?!podium/|/)[a-z]', answer.text), link
        assert {"text/html", "text/css", "text/javascript", "image/svg+xml", "application/json"} <= kinds
        assert len([path for path in seen if path.startswith("/podium/p/demo/")]) > 30
        document = client.get("/openapi.json").json()
        assert document["servers"] == [{"url": team.address}]
        for path, calls in document["paths"].items():
            if "get" in calls and "{" not in path:
                answer = client.get(path, headers={"authorization": f"Bearer {team.tokens['viewer']}"})
                assert answer.status_code in (200, 403), path
        assert client.get(f"https://localhost:{team.port}/podium").status_code in (301, 200)


def test_only_the_documented_forwarded_headers_count(team):
    with team.open_browser() as client:
        lies = {
            "x-forwarded-host": "evil.example", "x-forwarded-proto": "http", "x-forwarded-prefix": "/evil",
            "forwarded": "host=evil.example;proto=http", "x-original-url": "/healthz", "x-real-ip": "1.2.3.4",
        }  # fmt: skip
        page = client.get("/login", headers=lies)
        assert "evil" not in page.text + str(page.headers)
        assert "Secure" in page.headers["set-cookie"]
        assert client.get("/v1/projects", headers=lies).status_code == 401
        assert client.get("/login", headers={"host": "evil.example"}).status_code == 421
        for origin in ("http://localhost", f"http://localhost:{team.port}", "https://evil.example", "null"):
            answer = client.post("/login", data={"token": team.tokens["editor"]}, headers={"origin": origin})
            assert answer.status_code == 403, origin
        given = client.get("/healthz", headers={"x-request-id": "mine"})
        assert re.fullmatch(r"[0-9a-f]{32}", given.headers["x-request-id"])  # the proxy's


def test_the_unit_of_systemd(tmp_path):
    """Its settings are known to systemd, and its command starts a server."""
    unit = (CONFIGURATION.parent / "podium.service").read_text()
    command = re.search(r"^ExecStart=(.*)$", unit, re.M)[1].split()
    assert command[:2] == ["/opt/podium/bin/podium", "serve"]
    if shutil.which("systemd-analyze"):
        (tmp_path / "podium.service").write_text(unit.replace(command[0], sys.executable))
        checked = subprocess.run(
            ["systemd-analyze", "verify", str(tmp_path / "podium.service")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "podium.service" not in checked.stderr, checked.stderr
    words = [word.replace("/var/lib/podium", str(tmp_path / "state")) for word in command[2:]]
    with started(tmp_path / "state", *words) as (server, about):
        for _ in range(100):  # the processes start
            answer = httpx.get(f"{about['address']}/readyz", headers={"host": "example.org"}, timeout=20)
            if answer.status_code == 200:
                break
            time.sleep(0.1)
        assert answer.status_code == 200, answer.text
        assert "Secure" in httpx.get(f"{about['address']}/login").headers["set-cookie"]
        server.terminate()
        assert server.wait(30) in (0, -signal.SIGTERM)
