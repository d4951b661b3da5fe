"""Long work: it survives kill -9, two servers do not do it twice, and what cannot go on says so."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from podium import formats, models
from podium.core.errors import ParameterError, PodiumWarning
from podium.data.dataset import Dataset
from podium.data.demo import demo
from podium.studio import job_kinds, job_worker
from podium.studio.loading import open_input
from podium.studio.store import Store

STALE = 2.5
GONE = -1.0  # seconds of silence that everybody has behind them
SLOW = {"metric": "ndcg@5", "methods": ["rrf", "mc4", "condorcet"], "trials": 400}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    data = demo(20)
    with pytest.warns(PodiumWarning, match="items nobody ranks"):
        formats.write(data.preferences, folder / "engines.run", "trec")
    formats.write(data.labels, folder / "qrels.txt", "qrels")
    return [(p.name, p.read_bytes()) for p in sorted(folder.iterdir())]


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "studio")
    yield made
    made.close()


def wait(check):
    """What a check finds, looked at again and again; nothing here is right or wrong by how long that takes."""
    while not (found := check()):
        time.sleep(0.05)
    return found


def expected(files):
    from podium.evaluate.tuning import tune

    found = open_input(files)
    data = Dataset(found.preferences, found.labels, found.features)
    return tune(data, SLOW["metric"], SLOW["methods"], trials=SLOW["trials"])


def test_a_worker_killed_with_9_is_replaced_and_goes_on(store, files):
    project = store.add_upload("p", files)
    job = job_kinds.queue_job(store, project, "tune", SLOW)
    keeper = job_worker.WorkerSupervisor(store, stale=STALE)
    keeper.start()
    try:
        wait(lambda: store.job(job).done > 0 and any((store.folder / "jobs" / job).iterdir()))
        first = keeper.worker
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        assert store.job(job).state == "running"  # nobody could say that it ended
        # without the temporary file that the worker may have been writing
        files_of_job = list((store.folder / "jobs" / job).glob("[!.]*"))
        kept = {p.name: p.stat().st_mtime_ns for p in files_of_job}
        done = wait(lambda: (j := store.job(job)).over and j)
    finally:
        keeper.stop()
    assert done.state == "done"
    assert done.tries >= 2
    after = {p.name: p.stat().st_mtime_ns for p in (store.folder / "jobs" / job).iterdir()}
    assert kept.items() <= after.items()  # what was known was not computed again
    tuning = expected(files)
    document = dict(done.result["document"])
    low, high = document.pop("score_interval")
    assert low < np.nanmean(tuning.values["tuned"]) < high
    assert document == tuning.to_dict()
    assert (
        models.model_files.loads(store.model_bytes(done.result["model"])).get_parameters()
        == tuning.best.get_parameters()
    )


SERVER = """
import sys
from podium.studio import job_kinds, job_worker
from podium.studio.store import Store
job_worker.WorkerSupervisor(Store(sys.argv[1]), stale=float(sys.argv[2])).start()
sys.stdin.read()
"""


def test_two_servers_one_killed_with_9_and_the_job_is_done_once(store, files):
    project = store.add_upload("p", files)
    job = job_kinds.queue_job(store, project, "tune", SLOW | {"trials": 20})
    both = [
        subprocess.Popen([sys.executable, "-c", SERVER, str(store.folder), "3600"], stdin=subprocess.PIPE)
        for _ in range(2)
    ]
    try:
        wait(lambda: store.job(job).state == "running")
        both[0].kill()
        done = wait(lambda: (j := store.job(job)).over and j)
    finally:
        for one in both:
            one.kill()
            one.communicate()
    assert (done.state, done.tries) == ("done", 1)
    assert len(store.models(project)) == 1


def test_fitting_that_was_broken_off_says_so(store, files):
    project = store.add_upload("p", files)
    job = job_kinds.queue_job(store, project, "fit", {"method": "crf"})
    store.claim("a process that is gone", 60, job_worker.RESUMABLE, 3)
    job_worker.run_jobs(store, stale=GONE)
    assert store.job(job).state == "interrupted"
    again = job_kinds.queue_job(store, project, "fit", {"method": "crf"})
    job_worker.run_jobs(store)
    assert store.job(again).state == "done"
    fitted = models.model_files.loads(store.model_bytes(store.job(again).result["model"]))
    assert fitted.aggregate(open_input(files).preferences).queries.tolist()[:1] == ["q001"]


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_server_that_ends_puts_the_job_back(store, files, busy):
    """Also when the machine is so busy that the worker does not get to run: here it is stopped outright."""
    job = job_kinds.queue_job(store, store.add_upload("p", files), "tune", SLOW | {"trials": 3000})
    keeper = job_worker.WorkerSupervisor(store)
    keeper.start()
    try:
        wait(lambda: store.job(job).state == "running")
        worker = keeper.worker
        if busy:
            os.kill(worker.pid, signal.SIGSTOP)
    finally:
        keeper.stop()
    assert worker.poll() is not None
    assert (store.job(job).state, store.job(job).tries) == ("queued", 0)
    assert store.claim("the next worker", 60, job_worker.RESUMABLE, job_worker.TRIES).id == job


def test_a_fitted_model_is_measured_on_other_queries_only(store, files):
    """The job cross-validates it, and the page of the methods has no figures on the queries it was fitted on."""
    from podium.evaluate import evaluate
    from podium.studio.settings import ServerSettings
    from podium.studio.workspace import Workspace

    project = store.add_upload("p", files)
    job = job_kinds.queue_job(store, project, "fit", {"method": "svd"})
    job_worker.run_jobs(store)
    done = store.job(job)
    assert done.state == "done", done.words
    assert "Cross-validated on 20 held-out queries, its ndcg@10 is" in done.words
    data = open_input(files)
    model = models.model_files.loads(store.model_bytes(done.result["model"]))
    training = evaluate(model.aggregate(data.preferences), data.labels, "ndcg@10").mean()["ndcg@10"]
    [held] = [r["mean"] for r in done.result["document"]["held_out"]["rows"] if r["name"] == "model"]
    assert held < training - 0.02
    room = Workspace(store, ServerSettings(store.folder))
    spec = f"model:{done.result['model']}"
    found = room.collect_inputs(data, ["rrf", spec]).result()
    assert list(found.results) == ["rrf", spec]
    assert found.measured_methods == ["rrf"]
    assert "it was fitted on all 20 labeled queries" in found.held_out.left_out[spec]
    alone = room.collect_inputs(data, [spec]).result()
    assert alone.comparison is None
    room.close()


def test_a_job_can_be_stopped(store, files, monkeypatch):
    monkeypatch.setattr(job_worker, "BEAT", 0.02)
    job = job_kinds.queue_job(store, store.add_upload("p", files), "tune", SLOW | {"trials": 3000})
    real = store.beat

    def beat(*given):
        store.cancel(job)
        return real(*given)

    monkeypatch.setattr(store, "beat", beat)
    job_worker.run_jobs(store)
    assert store.job(job).state == "cancelled"
    assert store.models() == []


def test_bad_input_ends_in_words(store):
    project = store.add_upload("p", [("a.run", b"no such thing")])
    job = job_kinds.queue_job(store, project, "tune", {})
    job_worker.run_jobs(store)
    assert store.job(job).state == "failed"
    assert "a.run" in store.job(job).words
    only = store.add_upload("p", [("a.run", b"q1 Q0 d1 1 2.5 bm25\n")])
    job = job_kinds.queue_job(store, only, "fit", {"method": "crf"})
    job_worker.run_jobs(store)
    assert "the project has none" in store.job(job).words


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("shell", {}),
        ("tune", {"metric": "beauty"}),
        ("tune", {"methods": ["__import__('os')"]}),
        ("tune", {"trials": "10**9"}),
        ("tune", {"trials": -1}),
        ("tune", {"seed": "x"}),
        ("fit", {"method": "/etc/passwd"}),
    ],
)
def test_what_cannot_be_done_is_refused_before(store, kind, settings):
    with pytest.raises(ParameterError):
        job_kinds.queue_job(store, "demo", kind, settings)
    assert store.jobs() == []


def test_a_job_sees_what_the_pages_show(store, monkeypatch):
    """Collected votes count, excluded annotators do not."""
    from podium.studio.vote_records import CollectionItem
    from podium.studio.vote_store import VoteStore

    rows = ["query,judge,winner,loser", "q,ann,a,b", "q,ben,b,a", "q,eve,c,a"]
    project = store.add_upload("votes", [("votes.csv", "\n".join(rows).encode())])
    votes = VoteStore(store.folder)
    votes.start_collection(project, [CollectionItem(item) for item in "abc"], query="q")
    votes.add_vote(project, "joe", "a", "c", "first")
    votes.exclude_annotators(project, ["eve"])
    votes.close()
    seen = []
    run = job_kinds.KINDS["fit"][1]

    def keep_data(given, job, data, tell):
        seen.append(data.preferences)
        return run(given, job, data, tell)

    monkeypatch.setitem(job_kinds.KINDS, "fit", (job_kinds.KINDS["fit"][0], keep_data))
    job = job_kinds.queue_job(store, project, "fit", {"method": "bradley_terry"})
    job_worker.run_jobs(store)
    assert store.job(job).state == "done", store.job(job).words
    assert sorted(seen[0].experts) == ["ann", "ben", "joe"]
    assert len(seen[0].comparisons) == 3


@pytest.mark.parametrize("method", ["crf", "fused", "stack", "weighted_rrf"])
def test_a_fit_reports_its_progress(store, files, method):
    """From 0 to 1 in many steps, never back, while it fits and while it is measured."""
    found, seen = open_input(files), []
    data = Dataset(found.preferences, found.labels, found.features)
    job = store.job(job_kinds.queue_job(store, "demo", "fit", {"method": method}))
    job_kinds.KINDS["fit"][1](store, job, data, lambda *step: seen.append(step))
    shares = [done / total for done, total, _ in seen]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)
    fitting = {share for share, (_, _, words) in zip(shares, seen, strict=True) if "fitting" in words}
    assert len(fitting) > 5
    measuring = {share for share, (_, _, words) in zip(shares, seen, strict=True) if "fold" in words}
    assert len(measuring) > 20
    assert max(fitting) < 0.25
    assert max(b - a for a, b in itertools.pairwise(shares)) < 0.2
