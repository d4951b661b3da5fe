"""How much a request may take."""

import asyncio
import gzip
import threading
import time
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Preferences
from podium.core import registry
from podium.core.errors import InputError
from podium.methods.base import make
from podium.studio.api.computation_pool import ComputationPool
from podium.studio.limits import TooLarge, bounded_decompress, check_pairs
from podium.studio.security import RequestRefused
from podium.studio.settings import Limits
from podium.studio.telemetry import RequestMetrics
from serving import serving

SMALL = Limits(
    body_bytes=2000, lists=3, items=10, id_length=8, experts=4, query_items=5, decompressed_bytes=10_000
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("studio"), limits=SMALL) as found:
        yield found


# -- packed data


@given(st.binary(max_size=3000), st.integers(0, 3))
def test_unpacking_is_gzips(data, members):
    packed = gzip.compress(data) * members + gzip.compress(b"end") + b"\0" * members
    assert bounded_decompress(packed, Limits()) == data * members + b"end"


@settings(max_examples=300)
@given(st.binary(max_size=200), st.integers(0, 60), st.integers(0, 255))
def test_damaged_data_are_refused_in_words(data, at, value):
    packed = bytearray(gzip.compress(data))
    packed[at % len(packed)] = value
    try:
        found = bounded_decompress(bytes(packed), Limits())
    except InputError:
        return
    assert found in (data, bytes(packed))


def test_bombs():
    with pytest.raises(TooLarge, match="200 times"):
        bounded_decompress(gzip.compress(bytes(30_000_000)), Limits())
    with pytest.raises(TooLarge, match="5,000 bytes"):
        bounded_decompress(gzip.compress(bytes(6000)), Limits(decompressed_bytes=5000))
    with pytest.raises(InputError, match="truncated"):
        bounded_decompress(gzip.compress(b"abc" * 100)[:-9], Limits())
    with pytest.raises(InputError, match="damaged"):
        bounded_decompress(gzip.compress(b"abc") + b"rubbish", Limits())


def test_files(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"abc"))
    assert bounded_decompress(path, Limits()) == b"abc"


# -- bodies


def send(client, body, **headers):
    return client.post("/v1/fuse", content=body, headers={"content-type": "application/json", **headers})


def test_packed_bodies(client):
    body = b'{"lists": [["a"]]}'
    assert send(client, gzip.compress(body), **{"content-encoding": "gzip"}).status_code == 200
    assert send(client, body, **{"content-encoding": "gzip"}).status_code == 400
    assert send(client, gzip.compress(body)[:-4], **{"content-encoding": "gzip"}).status_code == 400
    assert send(client, zlib.compress(body), **{"content-encoding": "deflate"}).status_code == 415
    assert send(client, gzip.compress(b" " * 9000), **{"content-encoding": "gzip"}).status_code == 413
    assert send(client, gzip.compress(body)).status_code == 400


def test_long_bodies(client):
    assert send(client, b" " * 2001).status_code == 413
    assert send(client, b"{}", **{"content-length": "99999999999999999999999"}).status_code == 413
    assert send(client, b"{}", **{"content-length": "-1"}).status_code == 413
    assert send(client, iter([b" " * 1000] * 3)).status_code == 413  # without a length


def test_a_body_without_end_is_not_read_to_its_end(client):
    given, sent = 0, []

    async def receive():
        nonlocal given
        given += 1
        return {"type": "http.request", "body": b"[" * 100, "more_body": True}

    async def send_(message):
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/v1/fuse", "headers": headers, "query_string": b""}
    asyncio.run(client.app(scope, receive, send_))
    assert sent[0]["status"] == 413
    assert given == 21


@pytest.mark.parametrize(("path", "kind"), [("/v1/fuse", b"application/json"), ("/login", b"text/plain")])
def test_a_body_that_stops_coming(tmp_path, path, kind):
    sent = []

    async def receive():
        await asyncio.Event().wait()  # which nobody sets

    async def send_(message):
        sent.append(message)

    with serving(tmp_path, limits=Limits(seconds=0.05)) as client:
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"",
                 "headers": [(b"host", b"localhost"), (b"content-type", kind)]}  # fmt: skip
        asyncio.run(client.app(scope, receive, send_))
    assert sent[0]["status"] == 408


def test_counts(client):
    def status(what, **body):
        found = client.post(f"/v1/{what}", json=body)
        assert "remedy" in found.json() or found.status_code == 200
        return found.status_code

    assert status("fuse", lists=[["a"]] * 3) == 200
    assert status("fuse", lists=[["a"]] * 4) == 413
    assert status("fuse", lists=[[*range(6)], [*range(4)]]) == 200
    assert status("fuse", lists=[[*range(6)], [*range(5)]]) == 413
    assert status("fuse", lists=[[*range(6)]], method="copeland") == 413
    assert status("fuse", lists=[["a" * 9]]) == 422
    assert status("fuse", lists={"a" * 9: ["a"]}) == 422
    assert status("aggregate", rankings={"q" * 9: {"e": ["a"]}}) == 422
    assert status("aggregate", rankings={"q": {str(e): ["a"] for e in range(4)}}) == 413
    assert status("aggregate", lists=[{"expert": e, "items": [1]} for e in range(4)]) == 413
    assert status("aggregate", lists=[{"expert": "e" * 9, "items": [1]}]) == 422
    assert status("aggregate", rankings={"q": {"e": [*range(6)]}}, method="copeland") == 413
    assert status("aggregate", rankings={"q": {"e": [*range(6)]}}) == 200
    assert status("aggregate", votes=[{"winner": "a", "loser": "b"}] * 11, method="copeland") == 413
    assert (
        status("aggregate", votes=[{"expert": e, "winner": 1, "loser": 2} for e in range(5)], method="elo")
        == 413
    )
    assert status("leaderboard", votes=[{"winner": "a" * 9, "loser": "b"}]) == 422
    assert status("evaluate", rankings={}, labels=[{"item": i, "grade": 1} for i in range(11)]) == 413
    features = [{"item": i, "values": [0.0] * 6} for i in range(2)]
    assert status("aggregate", rankings={"q": {"e": [0, 1]}}, features=features, method="retargeting") == 413


def test_only_what_compares_all_pairs_is_refused_on_long_queries(client):
    def status(what, method, **body):
        return client.post(f"/v1/{what}", json={**body, "method": method})

    lists, listed = [[*range(6)]], {"rankings": {"q": {"e": [*range(6)]}}}
    for method in ("combmnz", "isr", "mean_rank", "median_rank", "mc2", "plackett_luce", "majority", "elo"):
        assert status("fuse", method, lists=lists).status_code == 200, method
        assert status("aggregate", method, **listed).status_code == 200, method
    votes = [{"winner": n, "loser": n + 1} for n in range(8)]
    for method in ("thurstone", "bradley_terry", "rank_centrality"):
        refused = status("aggregate", method, **listed)
        assert refused.status_code == 413, method
        assert refused.json()["detail"] == f"a query has 6 items, and {method} may compare all pairs"
        assert status("aggregate", method, votes=votes).status_code == 200, method
    for method in ("copeland", "mc4", "kemeny"):
        assert status("aggregate", method, votes=votes).status_code == 413, method


def test_every_method_is_refused_by_what_it_compares():
    lists = Preferences.from_lists({"q": {"e": list(range(9))}, "r": {"e": [1]}})
    votes = Preferences.from_comparisons(["q"] * 8, ["e"] * 8, list(range(8)), list(range(1, 9)))
    mixed = Preferences.concat([votes, Preferences.from_lists({"r": {"e": [1, 2]}})])
    for name, kind in registry.aggregators.all().items():
        for data, compared in ((lists, ("lists", "items")), (votes, ("items",)), (mixed, ("items",))):
            if kind.tags.pairwise in compared:
                with pytest.raises(TooLarge, match=f"a query has 9 items, and {name} may compare"):
                    check_pairs(SMALL, data, make(name))
            else:
                check_pairs(SMALL, data, make(name))


# -- time and concurrency


def pool(**limits):
    return ComputationPool(Limits(**limits), RequestMetrics())


def test_a_computation_has_its_time():
    async def main():
        here, free = pool(seconds=0.05, workers=1), threading.Event()
        with pytest.raises(RequestRefused) as late:
            await here.run(free.wait)
        with pytest.raises(RequestRefused) as busy:
            await here.run(lambda: 1)  # the place is still taken
        free.set()
        while here._places.locked():
            await asyncio.sleep(0)
        assert await here.run(lambda: 1) == (1, [])
        return late.value.status, busy.value.status

    assert asyncio.run(main()) == (504, 503)


def test_errors_come_back_and_places_are_given_back():
    async def main():
        here = pool(workers=1)
        for error in (ValueError, StopIteration, MemoryError):
            with pytest.raises((error, RuntimeError)):
                await here.run(lambda error=error: (_ for _ in ()).throw(error()))
        return await here.run(lambda: 5)

    assert asyncio.run(main()) == (5, [])


def test_never_more_computations_than_workers():
    running, most, lock, two = 0, 0, threading.Lock(), threading.Barrier(2)

    def work():
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        two.wait()  # so that two run at once, however they are scheduled
        with lock:
            running -= 1

    async def main():
        here = pool(workers=2)
        await asyncio.gather(*(here.run(work) for _ in range(12)))

    asyncio.run(main())
    assert most == 2


def test_too_many_requests_at_once(tmp_path):
    limits = Limits(concurrent=2, workers=4)
    free = threading.Event()
    with serving(tmp_path, limits=limits) as client:
        real, client.app.state.pool._start = client.app.state.pool._start, None

        def slow(work):
            return real(lambda: (free.wait(), work())[1])

        client.app.state.pool._start = slow
        body = {"rankings": {"q": {"e": ["a"]}}}
        found = []
        threads = [
            threading.Thread(target=lambda: found.append(client.post("/v1/aggregate", json=body).status_code))
            for _ in range(2)
        ]
        for t in threads:
            t.start()
        while b"podium_requests_running 2.0" not in client.app.state.meters.text():
            time.sleep(0.01)
        busy = client.post("/v1/fuse", json={"lists": [["a"]]})
        assert busy.status_code == 429
        assert busy.headers["retry-after"] == "1"
        assert "try again" in busy.json()["remedy"]
        free.set()
        for t in threads:
            t.join()
        assert found == [200, 200]
        assert client.post("/v1/fuse", json={"lists": [["a"]]}).status_code == 200


def test_a_request_that_takes_too_long(tmp_path):
    with serving(tmp_path, limits=Limits(seconds=0.05)) as client:
        real, free = client.app.state.pool._start, threading.Event()
        client.app.state.pool._start = lambda work: real(lambda: (free.wait(), work())[1])
        found = client.post("/v1/aggregate", json={"rankings": {"q": {"e": ["a"]}}})
        free.set()
        assert found.status_code == 504
        assert "--seconds" in found.json()["remedy"]
