"""Crowd-BT, EM-Elo and Dawid-Skene: qualities found again, malicious annotators turned round, odd inputs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from scipy.stats import kendalltau

from podium import Labels, MajorityVote, Preferences, models
from podium.core.errors import InputError
from podium.evaluate import evaluate, judged_only
from podium.methods.crowd.crowd_bt import CrowdBt
from podium.methods.crowd.dawid_skene import DawidSkene
from podium.methods.crowd.em_elo import EmElo
from podium.testing import crowds

RIVALS = [CrowdBt, EmElo, DawidSkene]
both = pytest.mark.parametrize("form", ["pairs", "ratings"])
each = pytest.mark.parametrize("cls", RIVALS)


def crowd_of(form="pairs", *, good=12, random=4, malicious=4, seed=0, **how):
    size = {"items": 12, "judgements": 60} if form == "pairs" else {"items": 40, "judgements": 30}
    quality = crowds.annotators(good, random, malicious)
    return crowds.simulate(quality, form=form, queries=3, seed=seed, **(size | how))


def tau(consensus, labels):
    index = consensus.index
    grades = labels.align(index)
    return np.mean(
        [
            kendalltau(consensus.scores[index.slots(q)], grades[index.slots(q)]).statistic
            for q in consensus.queries
        ]
    )


# -- quality -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "form"), [(CrowdBt, "pairs"), (EmElo, "pairs"), (DawidSkene, "pairs"), (DawidSkene, "ratings")]
)
def test_qualities_are_found_again(cls, form):
    how = {} if form == "pairs" else {"levels": 3}
    crowd = crowd_of(form, **how)
    found = cls().aggregate(crowd.preferences)
    assert found.diagnostics.converged
    true = np.array([crowd.quality[e] for e in crowd.preferences.experts])
    votes = 180 if form == "pairs" else 30  # that a quality is learned from: those on one level of three
    true = (true * votes + 4) / (votes + 5)  # with those of the prior
    # pairs near each other are hard in Bradley-Terry, however good the annotator
    np.testing.assert_allclose(found.expert_weights, true, atol=0.12)
    assert np.abs(found.expert_weights - true).mean() < 0.06
    bad = [e.startswith("malicious") for e in crowd.preferences.experts]
    assert (found.expert_weights[bad] < 0.35).all()


@each
@both
def test_quality_helps_in_a_bad_crowd(cls, form):
    crowd = crowd_of(
        form, good=8, random=3, malicious=6, seed=1, **({} if form == "pairs" else {"levels": 2})
    )
    with_quality, without = (
        tau(cls(quality=q).aggregate(crowd.preferences), crowd.labels) for q in (True, False)
    )
    assert with_quality > without + 0.03


@each
def test_malicious_annotators_are_used_in_reverse(cls):
    crowd = crowd_of(good=6, random=0, malicious=4, judgements=25, seed=2)
    good = [e for e in crowd.preferences.experts if e.startswith("good")]
    alone = tau(cls().aggregate(crowd.preferences.with_experts(good)), crowd.labels)
    assert tau(cls().aggregate(crowd.preferences), crowd.labels) >= alone


@each
def test_spammers_do_little_harm(cls):
    crowd = crowd_of(good=15, random=0, malicious=0)
    before = tau(cls().aggregate(crowd.preferences), crowd.labels)
    for kind in ("random", "malicious"):
        spammed = crowds.add_spammers(crowd.preferences, 0.6, kind, labels=crowd.labels)
        assert tau(cls().aggregate(spammed), crowd.labels) > before - 0.05


@each
def test_own_quality_in_every_query_is_each_query_alone(cls):
    crowd = crowd_of(judgements=20)
    whole = cls(pooled=False).aggregate(crowd.preferences)
    for q in whole.queries:
        alone = cls().aggregate(crowd.preferences.select([q]))
        np.testing.assert_allclose(alone.scores, whole.scores[whole.index.slots(q)], rtol=1e-6, atol=1e-6)


# -- without quality -----------------------------------------------------------------------------------------------


def test_plain_crowd_bt_is_bradley_terry_with_a_virtual_item():
    p = crowd_of(good=2, random=1, malicious=0, judgements=10).preferences.select([1])
    votes = p.comparisons

    def loss(s):
        d = s[votes.winner] - s[votes.loser]
        return np.logaddexp(0, -d).sum() + 0.7 * (np.logaddexp(0, s) + np.logaddexp(0, -s)).sum()

    best = optimize.minimize(loss, np.zeros(12), options={"gtol": 1e-9}).x
    np.testing.assert_allclose(CrowdBt(quality=False, virtual=0.7).aggregate(p).scores, best, atol=1e-5)


def test_sure_annotators_give_plain_bradley_terry():
    p = crowd_of(good=3, random=1, malicious=0).preferences
    sure = CrowdBt(right=1e6, wrong=1e-3).aggregate(p)
    np.testing.assert_allclose(sure.scores, CrowdBt(quality=False).aggregate(p).scores, atol=1e-3)


def test_plain_dawid_skene_is_the_mean_vote():
    p = crowd_of("ratings").preferences
    expected = MajorityVote().aggregate(p)
    np.testing.assert_array_equal(DawidSkene(quality=False).aggregate(p).scores, expected.scores)
    votes = Preferences.from_comparisons([0] * 3, [1, 2, 3], ["a", "a", "b"], ["b", "b", "a"])
    found = DawidSkene(quality=False).aggregate(votes).to_dict()[0]
    assert found == pytest.approx({"a": 2 / 3, "b": 1 / 3})


# -- odd inputs ----------------------------------------------------------------------------------------------------


@each
def test_an_annotator_with_one_judgement_stays_near_the_prior(cls):
    crowd = crowd_of()
    more = Preferences.from_comparisons([1], ["once"], ["item 00"], ["item 01"])
    p = Preferences.concat([crowd.preferences, more])
    quality = cls().aggregate(p).expert_weights[p.experts.index("once")]
    assert 4 / 6 - 1e-6 <= quality <= 5 / 6 + 1e-6


@each
@pytest.mark.parametrize("pooled", [True, False])
def test_equal_ratings_and_contradictions_are_ties(cls, pooled):
    equal = Preferences.from_lists({"q": {"a": dict.fromkeys("xyz", 1.0), "b": dict.fromkeys("xyz", 1.0)}})
    assert all(r.tied for r in cls(pooled=pooled).aggregate(equal)["q"])
    against = Preferences.from_comparisons([0, 0], ["a", "b"], ["x", "y"], ["y", "x"])
    found = cls(pooled=pooled).aggregate(against)
    assert all(r.tied for r in found[0])
    assert found.expert_weights[0] == found.expert_weights[1]
    himself = Preferences.from_comparisons([0, 0], ["a", "a"], ["x", "y"], ["y", "x"])
    assert all(r.tied for r in cls(pooled=pooled).aggregate(himself)[0])


@each
def test_a_topic_without_judgements_is_all_tied(cls):
    p = Preferences.from_rows(
        ["q"] * 4, ["a", "a", "b", "b"], list("xyxy"), score=[1, 0, 1, 0], candidates=(["r", "r"], ["u", "v"])
    )
    found = cls().aggregate(p)
    assert found.ranking("q") == ["x", "y"]
    assert [r.tied for r in found["r"]] == [True, True]


@each
def test_silent_experts_have_the_quality_of_the_prior(cls):
    p = crowd_of().preferences
    weights = {e: float(e != "good 1") for e in p.experts}
    found = cls(weights=weights, right=3, wrong=1).aggregate(p)
    assert found.expert_weights[p.experts.index("good 1")] == 0.75
    assert ((found.expert_weights > 0) & (found.expert_weights < 1)).all()


def test_too_many_levels_are_refused_in_words():
    p = Preferences.from_rows(["q"] * 200, ["e"] * 200, list(range(200)), score=np.arange(200) / 7)
    with pytest.raises(InputError, match="200 distinct ratings"):
        DawidSkene().aggregate(p)
    assert CrowdBt().aggregate(p).ranking("q")[0] == 199


def test_lists_too_long_are_refused_in_words():
    p = Preferences.from_rows(["q"] * 10_001, ["e"] * 10_001, list(range(10_001)), rank=np.arange(1, 10_002))
    for cls in RIVALS:
        with pytest.raises(InputError, match="50,005,000 pairs of items in lists"):
            cls().aggregate(p)


# -- two coins -----------------------------------------------------------------------------------------------------


def left_voters(seed):
    """Two annotators who are right 85 times in 100, and ten who always vote for what is shown on the left."""
    random, rows = np.random.default_rng(seed), []
    for judge in range(12):
        for _ in range(25):
            left, right = (int(i) for i in random.choice(10, 2, replace=False))
            truth = left < right if random.random() < 0.85 else left > right
            wins = truth if judge < 2 else True
            rows.append((judge, left if wins else right, right if wins else left, 1 if wins else -1))
    judge, winner, loser, side = map(list, zip(*rows, strict=True))
    return Preferences.from_comparisons([0] * len(rows), judge, winner, loser, side=side)


def test_two_coins_see_through_annotators_who_like_a_side():
    labels = Labels.from_dict({0: {i: 9.0 - i for i in range(10)}})
    found = [[DawidSkene(coins=c).aggregate(left_voters(seed)) for c in ("one", "two")] for seed in range(10)]
    one, two = np.mean([[tau(f, labels) for f in pair] for pair in found], axis=0)
    assert two > one + 0.2
    quality = np.mean([pair[1].expert_weights for pair in found], axis=0)
    assert quality[:2].min() > quality[2:].max() + 0.1


def test_two_coins_are_one_where_sides_are_not_known():
    p = crowd_of().preferences
    one, two = (DawidSkene(coins=c).aggregate(p) for c in ("one", "two"))
    np.testing.assert_allclose(one.scores, two.scores, rtol=1e-9)
    np.testing.assert_allclose(one.expert_weights, two.expert_weights, rtol=1e-9)


# -- gold labels ---------------------------------------------------------------------------------------------------


@each
@both
def test_gold_labels_tell_good_annotators_from_bad(cls, form, tmp_path):
    # two thirds of the crowd are malicious: without gold labels the truth is turned round
    crowd = crowd_of(
        form, good=5, random=0, malicious=10, seed=4, **({} if form == "pairs" else {"levels": 2})
    )
    p, labels = crowd.preferences, crowd.labels
    taught = cls(right=1.0).fit(p.select([1]), labels.select([1]))
    rest = p.select([2, 3])
    assert tau(cls(right=1.0).aggregate(rest), labels) < 0
    assert tau(taught.aggregate(rest), labels) > 0.4
    models.save(taught, tmp_path / "m")
    assert (
        models.load(tmp_path / "m").aggregate(rest).scores.tobytes()
        == taught.aggregate(rest).scores.tobytes()
    )
    again = taught.fit(p)
    np.testing.assert_array_equal(again.aggregate(rest).scores, cls(right=1.0).aggregate(rest).scores)


@each
def test_labels_that_say_nothing_are_refused(cls):
    for form in ("pairs", "ratings"):
        p = crowd_of(form).preferences
        with pytest.raises(InputError, match="learn"):
            cls().fit(p, Labels.from_dict({1: {"item 00": 77.0}}))


# -- real crowds ---------------------------------------------------------------------------------------------------


@pytest.mark.data
def test_confusion_tables_pay_on_the_trec_crowd(data_dir):
    from podium_papers.paper_datasets import load_dataset

    data = load_dataset("trec2011-crowd", data_dir)
    plain, found = (
        evaluate(
            judged_only(DawidSkene(quality=q).aggregate(data.preferences), data.labels),
            data.labels,
            "ndcg@10",
        )
        for q in (False, True)
    )
    # the mean vote is at .71; published methods that learn from labels reach .73 with fewer labels
    assert found.mean()["ndcg@10"] > plain.mean()["ndcg@10"] + 0.05
