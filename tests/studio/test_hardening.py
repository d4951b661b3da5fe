"""Small inputs that would grow, requests from other sites, and what a server hands to its workers."""

import gzip
import io
import re
import socket
import sys
import time

import pytest

from podium.core.errors import InputError
from podium.studio import job_worker
from podium.studio.api import request_models
from podium.studio.api.request_parsing import parse_request
from podium.studio.limits import TooLarge
from podium.studio.loading import unpack_upload
from podium.studio.pages.projects import open_upload
from podium.studio.pages.render import safe_cell
from podium.studio.security import RequestRefused, hash_token
from podium.studio.settings import Limits, ServerSettings
from podium.studio.store import Store
from serving import listening, serving


def test_files_that_unpack_to_too_much_together_are_refused_before_they_are_unpacked(tmp_path, monkeypatch):
    from podium.studio.pages import projects

    asked = []
    monkeypatch.setattr(
        projects, "unpack_upload", lambda *given: asked.append(given[0]) or unpack_upload(*given)
    )
    store, settings = Store(tmp_path), ServerSettings(tmp_path, limits=Limits(decompressed_bytes=2_500_000))
    bomb = gzip.compress(bytes(900_000))
    with pytest.raises(TooLarge):
        open_upload(store, settings, [(f"{n}.run", bomb) for n in range(50)], {})
    assert len(asked) == 3
    store.close()


def parquet(table, **how):
    import pyarrow.parquet as pq

    made = io.BytesIO()
    pq.write_table(table, made, compression="zstd", **how)
    return made.getvalue()


def test_a_long_text_that_stands_in_every_row_counts_each_time():
    import pyarrow as pa

    said = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * 5000]))
    packed = parquet(pa.table({"query": said, "item": said}), store_schema=False)
    assert len(packed) < 20_000
    with pytest.raises(TooLarge, match="decompresses to more than"):
        unpack_upload("a.parquet", packed, Limits())


def test_cells_that_are_lists_are_refused():
    import pyarrow as pa

    packed = parquet(pa.table({"item": pa.array([["a"] * 1000])}))
    with pytest.raises(InputError, match="Parquet"):
        unpack_upload("a.parquet", packed, Limits())


@pytest.mark.parametrize("body", [
    b'{"lists": [[' + b",".join([b"null"] * 50_000) + b"]]}",
    b'{"lists": [{' + b",".join([b'"":""'] * 50_000) + b"}]}",
])  # fmt: skip
def test_very_many_wrong_values_are_not_told_one_by_one(body):
    with pytest.raises(RequestRefused, match="see /docs") as no:
        parse_request(request_models.FuseRequest, body)
    assert no.value.status == 422
    assert len(str(no.value)) < 300


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_cannot_make_the_server_work(tmp_path, site):
    with serving(tmp_path) as client:
        said = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
        assert client.get("/p/demo/methods.csv", headers=said).status_code == 403
        assert client.get("/", headers=said | {"sec-fetch-mode": "navigate"}).status_code == 200  # a link


def test_a_job_is_stopped_by_its_own_project_only(tmp_path):
    with serving(tmp_path) as client:
        store = client.app.state.store
        job = store.add_job("demo", "fit", {"method": "crf"})
        mark = re.search(r'name="csrf" value="(\w+)"', client.get("/").text)[1]
        answer = client.post(f"/p/other/jobs/{job}/stop", data={"csrf": mark})
        assert answer.status_code == 404
        assert not store.job(job).stop
        assert store.job(job).state != "cancelled"


def test_a_form_in_an_odd_encoding_is_refused(tmp_path):
    body = b'--x\r\ncontent-disposition: form-data; name="csrf"\r\n\r\n\\ud800\r\n--x--\r\n'
    kind = {"content-type": "multipart/form-data; boundary=x; charset=unicode_escape"}
    with serving(tmp_path) as client:
        client.get("/")
        assert client.post("/open/upload", content=body, headers=kind).status_code == 403


def test_pictures_are_no_pages(tmp_path):
    with serving(tmp_path) as client:
        while "<figure>" not in (page := client.get("/p/demo/query").text):
            time.sleep(0.1)
        where = re.search(r'<img src="(/p/[^"]+\.svg[^"]*)"', page)[1]
        found = client.get(where.replace("&amp;", "&"))
        assert found.headers["content-type"] == "image/svg+xml"
        assert "sandbox" in found.headers.get_list("content-security-policy")


def test_cells_that_begin_with_a_line_or_a_wide_sign_are_no_formulas():
    assert [safe_cell(f"{sign}1") for sign in ("\n=", "\uff1d", "\uff20")] == [
        "'\n=1",
        "'\uff1d1",
        "'\uff201",
    ]


def test_workers_get_neither_the_token_nor_modules_from_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_TOKEN", "s" * 40)
    seen = {}
    monkeypatch.setattr(job_worker.subprocess, "Popen", lambda words, **how: seen.update(how, words=words))
    store = Store(tmp_path)
    job_worker.WorkerSupervisor(store)._start_worker()
    store.close()
    assert seen["words"][:3] == [sys.executable, "-P", "-m"]
    assert "PODIUM_TOKEN" not in seen["env"]
    assert "PATH" in seen["env"]


def test_a_token_that_dribbles_in_is_given_up(tmp_path):
    limits = Limits(seconds=0.5)
    with listening(tmp_path, limits=limits, token_hash=hash_token("t" * 30)) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
            line.sendall(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000\r\n\r\n")
            line.settimeout(0.2)
            answer = b""
            for _ in range(50):
                try:
                    answer = line.recv(100)
                    break
                except TimeoutError:
                    line.sendall(b"t")
        assert b" 408 " in answer
