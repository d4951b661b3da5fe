"""The same scores as the probabilistic fusions of ranx, where it is installed (the extra bench)."""

from __future__ import annotations

import importlib
import os

import numpy as np
import pytest

from podium import Labels, Preferences, make

os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # compiling takes longer than running
pytest.importorskip("ranx", reason="needs the extra bench: pip install 'podium-rank[bench]'")

CASES = int(os.environ.get("PODIUM_PARITY_CASES", "5"))
RULES = {
    "posfuse": {},
    "slidefuse": {"window": 3},
    "probfuse": {"segments": 4},
    "segfuse": {},
    "bayesfuse": {},
    "mapfuse": {},
}


def sample_runs(random, queries, longest):
    """Three runs with distinct scores, and judgements that favor high scores."""
    runs = {e: {} for e in ("a", "b", "c")}
    qrels = {}
    for q in queries:
        quality = random.normal(size=2 * longest)
        qrels[q] = {f"d{d}": int(v > 0.8) + int(v > 1.6) for d, v in enumerate(quality)}
        qrels[q]["nobody lists it"] = 1
        for noise, run in zip((0.5, 1.0, 2.0), runs.values(), strict=True):
            size = int(random.integers(2, longest + 1))
            value = quality + random.normal(0, noise, len(quality))
            best = np.argsort(-value)[:size]
            run[q] = {f"d{d}": float(value[d]) for d in best}
    return runs, qrels


def build_preferences(runs):
    return Preferences.from_lists({q: {e: run[q] for e, run in runs.items()} for q in runs["a"]})


def fuse_with_ranx(rule, options, training, qrels, test):
    from ranx import Qrels, Run
    from ranx.normalization import min_max_norm

    module = importlib.import_module(f"ranx.fusion.{rule}")
    learn, fuse = getattr(module, f"{rule}_train"), getattr(module, rule)
    judged = Qrels({q: {d: g for d, g in grades.items() if g > 0} for q, grades in qrels.items()})
    known = [Run(run) for run in training.values()]
    given = [Run(run) for run in test.values()]
    if rule == "segfuse":
        given = [min_max_norm(run) for run in given]
    if rule == "probfuse":
        return fuse(given, learn(judged, known, options["segments"])).to_dict()
    if rule == "slidefuse":
        return fuse(given, learn(judged, known), options["window"]).to_dict()
    return fuse(given, learn(judged, known)).to_dict()


@pytest.mark.parametrize("seed", range(CASES))
@pytest.mark.parametrize("rule", RULES)
def test_scores_are_those_of_ranx(rule, seed):
    random = np.random.default_rng(seed)
    longest = int(random.choice([6, 30, 150]))
    training, qrels = sample_runs(random, [f"q{n:02d}" for n in range(12)], longest)
    test, _ = sample_runs(random, [f"t{n}" for n in range(4)], longest)
    model = make("position_probability", rule=rule, smoothing=0, **RULES[rule])
    model.fit(build_preferences(training), Labels.from_dict(qrels))
    ours = model.aggregate(build_preferences(test)).to_dict()
    theirs = fuse_with_ranx(rule, RULES[rule], training, qrels, test)
    assert ours.keys() == theirs.keys()
    for query in ours:
        assert ours[query] == pytest.approx(theirs[query], rel=1e-9, abs=1e-12), query
