"""Annotators: simulated crowds with known qualities, and the cases that mislead."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from podium import Labels, Preferences
from podium.analysis.annotators import annotators
from podium.analysis.annotators.crowd_judgements import CrowdJudgements
from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.metrics.agreement import compute_pair_accuracies, count_concordant_pairs

COPELAND = "copeland"


def crowd_of_votes(qualities, votes, items=20, queries=3, seed=0, sides=False):
    """Annotators who judge random pairs, right with their own quality; items have their number as truth."""
    random = np.random.default_rng(seed)
    n = len(qualities) * votes
    who = np.repeat(np.arange(len(qualities)), votes)
    query = random.integers(0, queries, n)
    a = random.integers(0, items, n)
    b = (a + random.integers(1, items, n)) % items
    right = random.random(n) < np.asarray(qualities)[who]
    better, worse = np.maximum(a, b), np.minimum(a, b)
    winner, loser = np.where(right, better, worse), np.where(right, worse, better)
    side = np.where(winner == a, 1, -1) if sides else None
    return Preferences.from_comparisons(query, [f"w{k:03}" for k in who], winner, loser, side=side)


def by_name(found):
    return {row.annotator: row for row in found.rows}


def test_verdicts_follow_the_qualities():
    truth = [0.9] * 12 + [0.5] * 4 + [0.1] * 2
    rows = by_name(annotators(crowd_of_votes(truth, 300), method=COPELAND))
    assert {rows[f"w{k:03}"].verdict for k in range(12)} == {"reliable"}
    assert {rows[f"w{k:03}"].verdict for k in range(12, 16)} == {"random"}
    assert {rows[f"w{k:03}"].verdict for k in (16, 17)} == {"malicious"}
    for k, q in enumerate(truth):
        assert rows[f"w{k:03}"].quality == pytest.approx(q, abs=0.12)
        assert rows[f"w{k:03}"].judgements == 300
        assert rows[f"w{k:03}"].queries == 3


def test_intervals_cover_the_truth():
    """Many easy pairs, so that what the others say is nearly the truth: 95 % intervals hold nearly 95 % of it."""
    hit = total = 0
    for seed in range(10):
        random = np.random.default_rng(seed)
        truth = np.concatenate((np.full(20, 0.85), random.uniform(0.1, 0.95, 20)))
        rows = by_name(annotators(crowd_of_votes(truth, 150, items=8, seed=seed), method=COPELAND))
        inside = [rows[f"w{k:03}"].low <= q <= rows[f"w{k:03}"].high for k, q in enumerate(truth)]
        hit, total = hit + sum(inside), total + len(inside)
    assert 0.92 <= hit / total <= 0.98


def test_intervals_of_ratings_cover_the_truth():
    """Pairs of a list hang together; counted as independent votes their intervals would hold far less."""
    hit = naive = total = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        rows = []
        for w, query in itertools.product(range(30), range(6)):
            for item in random.permutation(12)[:8]:
                grade = item >= 6
                rows.append((query, f"w{w:02}", int(item), int(grade == (random.random() < 0.75))))
        p = Preferences.from_rows(*zip(*[r[:3] for r in rows], strict=True), score=[r[3] for r in rows])
        found = annotators(p, method=COPELAND)
        # two items of one list are put in order by two ratings, right when both are: .75^2 against .25^2
        truth = 0.75**2 / (0.75**2 + 0.25**2)
        hit += sum(r.low <= truth <= r.high for r in found.rows)
        half = [1.96 * np.sqrt(r.quality * (1 - r.quality) / r.pairs) for r in found.rows]
        naive += sum(abs(r.quality - truth) <= h for r, h in zip(found.rows, half, strict=True))
        total += len(found.rows)
    assert hit / total >= 0.93
    assert naive / total < 0.85


def test_own_judgements_do_not_speak_for_their_author():
    """One busy annotator against three who agree: with its own votes the consensus would be its own."""
    votes = [(q, who, "a", "b") for q in range(40) for who in "xyz"]
    votes += [(q, "busy", "b", "a") for q in range(40) for _ in range(5)]
    row = annotators(Preferences.from_comparisons(*zip(*votes, strict=True)), method=COPELAND)["busy"]
    assert row.agreement == 1.0
    assert row.verdict == "malicious"


def test_leaving_out_is_exact():
    """Quality is that of a crowd from which the annotator's votes are gone, in the first round."""
    p = crowd_of_votes([0.8] * 6, 30, items=9, seed=4)
    crowd = CrowdJudgements(p)
    times = np.bincount(crowd._pair_cells)
    assert times.max() > 1  # several votes of one annotator on one pair are one voice
    one = 1 / times[crowd._pair_cells]
    _, margin = crowd._summarize_others(np.ones(6))
    for code, who in enumerate(p.experts):
        rest, voice = p.without_expert(who).comparisons, one[p.comparisons.expert != code]
        mine = np.flatnonzero(p.comparisons.expert == code)
        for k in mine[:10]:
            w, o = int(p.comparisons.winner[k]), int(p.comparisons.loser[k])
            direct = sum(voice[(rest.winner == w) & (rest.loser == o)])
            direct -= sum(voice[(rest.winner == o) & (rest.loser == w)])
            mean = [
                (sum(voice[rest.winner == s]) - sum(voice[rest.loser == s]))
                / (sum(voice[rest.winner == s]) + sum(voice[rest.loser == s]) + 1)
                for s in (w, o)
            ]
            assert margin[k] == pytest.approx(direct + 3 * (mean[0] - mean[1]), abs=1e-7)


def test_one_judgement_is_too_few():
    p = Preferences.from_comparisons([0] * 21, ["a", "b"] * 10 + ["once"], ["x"] * 21, ["y"] * 21)
    row = annotators(p, method=COPELAND)["once"]
    assert (row.verdict, row.judgements, row.pairs) == ("too few judgements", 1, 1)
    alone = annotators(Preferences.from_comparisons([0], ["only"], ["x"], ["y"]), method=COPELAND)
    assert (alone.rows[0].verdict, alone.rows[0].pairs, alone.rows[0].peers) == (
        "too little overlap",
        0,
        None,
    )
    assert (alone.rows[0].low, alone.rows[0].high) == (0.0, 1.0)


def test_all_equal_ratings_say_nothing():
    lists = {
        q: {"flat": dict.fromkeys("abcd", 1), "x": {"a": 1, "b": 0}, "y": {"a": 1, "b": 0}} for q in range(20)
    }
    row = annotators(Preferences.from_lists(lists), method=COPELAND)["flat"]
    assert row.flags == ("all answers equal",)
    assert (row.verdict, row.pairs, row.agreement) == ("random", 0, None)  # others tell the same items apart
    assert (
        annotators(Preferences.from_lists({0: lists[0]}), method=COPELAND)["flat"].verdict
        == "too few judgements"
    )


def test_undecided_voters_and_flat_rankings_say_nothing():
    tied = [True] * 30 + [False] * 60
    who = ["never"] * 30 + ["x"] * 30 + ["y"] * 30
    p = Preferences.from_comparisons([*range(30)] * 3, who, ["a"] * 90, ["b"] * 90, tie=tied)
    row = annotators(p, method=COPELAND)["never"]
    assert (row.verdict, row.flags) == ("random", ("all answers equal",))
    same = Preferences.from_comparisons([0] * 90, who, ["a"] * 90, ["b"] * 90, tie=tied)
    assert (
        annotators(same, method=COPELAND)["never"].verdict == "too few judgements"
    )  # of one pair, thirty times
    flat = Preferences.from_rows([0] * 4, ["f", "f", "g", "g"], ["a", "b", "a", "b"], rank=[1, 1, 1, 2])
    found = annotators(flat, method=COPELAND)
    assert (found["f"].flags, found["g"].flags) == (("all answers equal",), ())


def test_empty_topics_and_items_nobody_judges():
    p = Preferences.from_lists({"q": {"x": ["a", "b"], "y": ["a", "b"]}, "empty": {"x": [], "y": []}})
    found = annotators(p, method=COPELAND)
    assert [row.queries for row in found.rows] == [1, 1]
    with pytest.raises(InputError, match="there are no judgements"):
        annotators(Preferences.from_lists({"empty": {"x": []}}))


def test_always_first_is_flagged_and_tested():
    p = crowd_of_votes([0.9] * 8, 200, sides=True, seed=2)
    v = p.comparisons
    first = np.where(v.side == 1, v.winner, v.loser)
    second = np.where(v.side == 1, v.loser, v.winner)
    lazy = v.expert == 0
    items, queries = p.index.items, p.index.queries
    q = [queries[int(k)] for k in v.query_of_row]
    again = Preferences.from_comparisons(
        q,
        [p.experts[int(e)] for e in v.expert],
        [items[int(s)] for s in np.where(lazy, first, v.winner)],
        [items[int(s)] for s in np.where(lazy, second, v.loser)],
        side=np.where(lazy, 1, v.side),
    )
    found = annotators(again, method=COPELAND)
    row = found["w000"]
    assert "always first" in row.flags
    assert (row.first, row.first_p < 1e-10) == (1.0, True)
    assert row.verdict == "random"
    others = [r for r in found.rows if r.annotator != "w000"]
    assert not any("always first" in r.flags for r in others)
    assert min(r.first_p for r in others) > 1e-3
    assert any("always first: w000" in line for line in found.lines)


def test_copying_judges_count_as_few():
    random = np.random.default_rng(5)
    pairs = [(a, b) for a, b in itertools.combinations(range(12), 2)]
    rows = []
    master = [random.random() < 0.7 for _ in pairs]
    for w in range(10):
        for k, (a, b) in enumerate(pairs):
            right = master[k] if w < 6 else random.random() < 0.7
            rows.append((f"copy{w}" if w < 6 else f"own{w}", b if right else a, a if right else b))
    who, won, lost = zip(*rows, strict=True)
    found = annotators(Preferences.from_comparisons([0] * len(rows), who, won, lost), method=COPELAND)
    assert found.copies == (tuple(f"copy{w}" for w in range(6)),)
    for row in found.rows:
        assert any(f.startswith("copies") for f in row.flags) == str(row.annotator).startswith("copy")
    assert found.effective == pytest.approx(100 / (6 * 6 + 4), rel=0.02)
    assert {r.annotator for r in found.filter_by_flag("copies").rows} == {f"copy{w}" for w in range(6)}


def test_repeated_pairs_show_who_contradicts_itself():
    votes = [(q, "s", "a", "b") for q in range(5) for _ in range(6)]
    votes += [(q, "c", *pair) for q in range(5) for pair in [("a", "b"), ("b", "a")] * 3]
    found = annotators(Preferences.from_comparisons(*zip(*votes, strict=True)), method=COPELAND)
    assert found["s"].consistency == 1.0
    # two times three pairs of equal answers of fifteen
    assert found["c"].consistency == pytest.approx(6 / 15)
    assert "contradicts itself" in found["c"].flags
    one = [(w, *pair) for q, w, *pair in votes if q == 0]
    few = annotators(Preferences.from_comparisons([0] * 12, *zip(*one, strict=True)), method=COPELAND)
    assert few["c"].flags == ()  # five answers beyond the first prove nothing


def test_the_same_pair_on_another_query_is_no_repeat():
    """Two models on forty prompts: which is better differs by prompt, and nobody was asked twice."""
    random = np.random.default_rng(0)
    votes = [(q, w, *(("a", "b") if random.random() < 0.5 else ("b", "a"))) for q in range(40) for w in "xyz"]
    found = annotators(Preferences.from_comparisons(*zip(*votes, strict=True)), method=COPELAND)
    assert all(r.consistency is None and "contradicts itself" not in r.flags for r in found)


def test_nobody_contradicts_itself_where_everybody_does():
    """The same two models again and again, on prompts that the votes do not name."""
    random = np.random.default_rng(0)
    votes = [
        ("all", w, *(("a", "b") if random.random() < 0.5 else ("b", "a"))) for w in "xyz" for _ in range(60)
    ]
    found = annotators(Preferences.from_comparisons(*zip(*votes, strict=True)), method=COPELAND)
    assert all(r.flags == () for r in found)


def test_agreement_with_peers_is_that_of_the_definition():
    p = crowd_of_votes([0.8, 0.6, 0.9, 0.3], 40, items=4, queries=1, seed=8)
    v = p.comparisons
    votes = list(zip(v.expert.tolist(), v.winner.tolist(), v.loser.tolist(), strict=True))
    rows = by_name(annotators(p, method=COPELAND))
    for code in range(4):
        shares = []
        for e, w, o in votes:
            others = [(x, y) for f, x, y in votes if f != code and {x, y} == {w, o}]
            if e == code and others:
                shares.append(sum(pair == (w, o) for pair in others) / len(others))
        assert rows[f"w{code:03}"].peers == pytest.approx(np.mean(shares))


def test_gold_and_consensus():
    p = crowd_of_votes([0.9, 0.9, 0.2], 50, items=6, queries=1)
    gold = Labels.from_rows([0] * 6, range(6), range(6))
    rows = by_name(annotators(p, method=COPELAND, labels=gold))
    v = p.comparisons
    for code in range(3):
        mine = v.expert == code
        assert rows[f"w{code:03}"].accuracy == pytest.approx((v.winner > v.loser)[mine].mean())
        assert rows[f"w{code:03}"].gold_pairs == 50
    some = Labels.from_rows([0, 0], [0, 1], [1, 1])
    assert annotators(p, method=COPELAND, labels=some)["w000"].accuracy is None


def test_speed_outliers():
    p = crowd_of_votes([0.8] * 9, 20)
    random = np.random.default_rng(0)
    times = {f"w{k:03}": random.lognormal(3, 0.3, 20) for k in range(9)}
    times["w004"] = times["w004"] / 30
    found = annotators(p, method=COPELAND, times=times)
    assert found["w004"].flags == ("very fast",)
    assert found["w000"].seconds == pytest.approx(np.median(times["w000"]))
    assert sum("very fast" in r.flags for r in found.rows) == 1
    with pytest.raises(InputError, match="times for 'nobody'"):
        annotators(p, method=COPELAND, times={"nobody": [1.0]})
    with pytest.raises(InputError, match="not a number of seconds"):
        annotators(p, method=COPELAND, times={"w000": [-1.0]})


def test_rows_are_in_order_and_can_be_asked_for():
    found = annotators(crowd_of_votes([0.9] * 6 + [0.1, 0.5], 200), method=COPELAND)
    assert [r.verdict for r in found.rows] == ["malicious", "random", *["reliable"] * 6]
    assert found.counts["reliable"] == 6
    assert [r.annotator for r in found.filter_by_flag("malicious").rows] == ["w006"]
    assert len(found.filter_by_flag("very slow")) == 0
    with pytest.raises(ParameterError, match="no flag 'evil'"):
        found.filter_by_flag("evil")
    with pytest.raises(ParameterError, match="no annotator 'w9'"):
        found["w9"]
    with pytest.raises(ParameterError, match="level is 2"):
        annotators(crowd_of_votes([0.9], 10), level=2)


def test_row_order_does_not_matter():
    p = crowd_of_votes([0.9, 0.7, 0.5, 0.2], 60)
    v = p.comparisons
    order = np.random.default_rng(1).permutation(len(v))
    names = [p.experts[int(e)] for e in v.expert[order]]
    items = [[p.index.items[int(s)] for s in side[order]] for side in (v.winner, v.loser)]
    queries = [p.queries[int(q)] for q in v.query_of_row[order]]
    again = annotators(Preferences.from_comparisons(queries, names, *items), method=COPELAND)
    assert again.to_dict() == annotators(p, method=COPELAND).to_dict()


def test_the_worth_of_pairs():
    """One for two items, Kendall's for a full ranking, that of the rank-sum test for two grades."""
    rank = {"full": list("abcdefghij")}
    two = {"pair": ["a", "b"]}
    p = Preferences.from_lists({"q": {**rank, **two}})
    worth = dict(zip([p.experts[int(e)] for e in p.lists.expert], CrowdJudgements(p).pair_worth, strict=True))
    assert worth["pair"] == pytest.approx(1.0)
    assert worth["full"] * 45 == pytest.approx(9 * 90 / (2 * 25))
    graded = Preferences.from_lists({"q": {"g": {c: int(c < "e") for c in "abcdefghij"}}})
    assert CrowdJudgements(graded).pair_worth[0] * 24 == pytest.approx(3 * 24 / 11)


def test_concordances_are_those_of_the_definition():
    random = np.random.default_rng(3)
    x, y = random.integers(0, 4, 30).astype(float), random.integers(0, 4, 30).astype(float)
    starts = np.array([0, 0, 9, 30])
    same, other = count_concordant_pairs(starts, x, y)
    shares = compute_pair_accuracies(starts, x, y)
    for k, (a, b) in enumerate(itertools.pairwise(starts)):
        signs = [
            np.sign(x[i] - x[j]) * np.sign(y[i] - y[j]) for i, j in itertools.combinations(range(a, b), 2)
        ]
        free = sum(y[i] != y[j] for i, j in itertools.combinations(range(a, b), 2))
        assert (same[k], other[k]) == (signs.count(1), signs.count(-1))
        if free:
            assert shares[k] == pytest.approx(
                (signs.count(1) + (free - signs.count(1) - signs.count(-1)) / 2) / free
            )


def test_many_annotators():
    random = np.random.default_rng(0)
    p = crowd_of_votes(random.uniform(0.3, 0.95, 10_000), 10, items=50, queries=20)
    found = annotators(p, method=COPELAND)
    assert len(found) == 10_000
    assert found.counts["too few judgements"] > 5_000


@pytest.mark.data
def test_qualities_of_real_crowds_are_borne_out_by_gold(data_dir):
    from podium_papers.paper_datasets import load_dataset

    data = load_dataset("trec2011-crowd", data_dir)
    found = annotators(data.preferences, method=COPELAND, labels=data.labels)
    assert len(found) == 762
    pairs = {v: sum(r.gold_pairs for r in found.rows if r.verdict == v) for v in ("reliable", "random")}
    right = {
        v: sum(r.gold_pairs * (r.accuracy or 0) for r in found.rows if r.verdict == v) / pairs[v]
        for v in pairs
    }
    assert right["reliable"] > 0.75
    assert 0.4 < right["random"] < 0.6


def test_labels_of_other_items_are_pointed_out():
    p = crowd_of_votes([0.9] * 3, 10)
    with pytest.warns(PodiumWarning, match="no judged item has a label"):
        annotators(p, method=COPELAND, labels=Labels.from_dict({"elsewhere": {"x": 1}}))
