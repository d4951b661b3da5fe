"""The simulation kit: known qualities come out as often as said, and spammers do what they are for."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Labels, Preferences
from podium.core.errors import ParameterError
from podium.data.preferences import Form
from podium.testing import crowds
from podium.testing.samples import sample_rows


def shares(crowd):
    """How often every annotator of pairs is right."""
    votes, grades = crowd.preferences.comparisons, crowd.labels.align(crowd.preferences.index)
    right = grades[votes.winner] > grades[votes.loser]
    return {e: right[votes.expert == c].mean() for c, e in enumerate(crowd.preferences.experts)}


@pytest.mark.parametrize("form", ["pairs", "ratings"])
def test_same_seed_same_crowd(form):
    how = {"form": form, "queries": 2, "items": 8, "judgements": 6}
    one, again, other = (crowds.simulate(crowds.annotators(3, 1, 1), seed=s, **how) for s in (1, 1, 2))
    assert one.preferences == again.preferences
    assert one.labels == again.labels
    assert one.preferences != other.preferences


def test_pairs_are_right_as_often_as_said():
    crowd = crowds.simulate(crowds.annotators(1, 1, 1), queries=4, judgements=2000, items=30)
    found = shares(crowd)
    for name, quality in crowd.quality.items():
        assert found[name] == pytest.approx(quality, abs=0.02)
    votes = crowd.preferences.comparisons
    assert (votes.winner != votes.loser).all()


def test_ratings_are_right_as_often_as_said():
    crowd = crowds.simulate({"ann": 0.7, "bob": 0.2}, form="ratings", items=2000, judgements=1500, levels=4)
    lists, grades = crowd.preferences.lists, crowd.labels.align(crowd.preferences.index)
    assert lists.lengths.tolist() == [1500, 1500]
    assert set(lists.score.tolist()) == {0.0, 1.0, 2.0, 3.0}
    right = lists.score == grades[lists.item]
    assert right[:1500].mean() == pytest.approx(0.7, abs=0.04)
    assert right[1500:].mean() == pytest.approx(0.2, abs=0.04)
    assert len(crowd.preferences.index.items) == 2000


def test_nobody_and_nonsense():
    assert len(crowds.simulate({}).preferences) == 0
    for bad in ({"form": "songs"}, {"items": 1}, {"levels": 1}):
        with pytest.raises(ParameterError):
            crowds.simulate({"ann": 1.0}, **bad)


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("kind", ["random", "malicious"])
def test_spammers_join_in_proportion_and_change_nothing_else(form, kind):
    before = sample_rows(form, 0).to_preferences()
    after = crowds.add_spammers(before, 0.5, kind, seed=3)
    assert after == crowds.add_spammers(before, 0.5, kind, seed=3)
    assert [e for e in after.experts if e not in before.experts] == ["spammer 1", "spammer 2"]
    assert after.with_experts(before.experts.tolist()) == before
    assert (after.forms, after.unlisted) == (before.forms, before.unlisted)
    assert crowds.add_spammers(before, 0.0, kind) is before


def test_malicious_spammers_say_the_opposite():
    votes = Preferences.from_comparisons([0, 0], ["ann", "ann"], ["a", "b"], ["b", "c"])
    spam = crowds.add_spammers(votes, 1.0, "malicious").with_experts(["spammer 1"]).comparisons
    assert (spam.winner.tolist(), spam.loser.tolist()) == ([1, 2], [0, 1])
    ranked = Preferences.from_lists({"q": {"ann": ["a", "b", "c"]}})
    assert crowds.add_spammers(ranked, 1.0, "malicious").with_experts(["spammer 1"]).lists.item.tolist() == [
        2,
        1,
        0,
    ]
    rated = Preferences.from_lists({"q": {"ann": {"a": 0, "b": 1, "c": 4}}})
    spam = crowds.add_spammers(rated, 1.0, "malicious").with_experts(["spammer 1"]).lists
    assert dict(zip(spam.item.tolist(), spam.score.tolist(), strict=True)) == {0: 4.0, 1: 3.0, 2: 0.0}


def test_malicious_spammers_know_the_labels():
    crowd = crowds.simulate(crowds.annotators(random=10), judgements=30)
    spammed = crowds.add_spammers(crowd.preferences, 0.3, "malicious", labels=crowd.labels)
    found = shares(crowds.SimulatedCrowd(spammed, crowd.labels, {}))
    assert [found[f"spammer {n}"] for n in (1, 2, 3)] == [0.0, 0.0, 0.0]
    by_lot = shares(crowds.SimulatedCrowd(crowds.add_spammers(crowd.preferences, 1.0), crowd.labels, {}))
    assert np.mean([v for e, v in by_lot.items() if e.startswith("spammer")]) == pytest.approx(0.5, abs=0.1)
    rated = Preferences.from_lists({"q": {"ann": {"a": 0, "b": 1}, "bob": {"a": 1, "b": 1}}})
    labels = Labels.from_dict({"q": {"a": 1, "b": 0}})
    spam = crowds.add_spammers(rated, 0.5, "malicious", labels=labels).with_experts(["spammer 1"]).lists
    assert dict(zip(spam.item.tolist(), spam.score.tolist(), strict=True)) == {0: 0.0, 1: 1.0}


def test_names_that_are_taken_and_bad_requests():
    votes = Preferences.from_comparisons([0], ["spammer 1"], ["a"], ["b"])
    assert crowds.add_spammers(votes, 1.0).experts.tolist() == ["another spammer 1", "spammer 1"]
    for bad in ((-0.1, "random"), (float("nan"), "random"), (0.5, "kind")):
        with pytest.raises(ParameterError):
            crowds.add_spammers(votes, *bad)
