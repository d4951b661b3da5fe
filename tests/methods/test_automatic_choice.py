"""`auto`: the form of the input decides, and the choice is stated."""

from __future__ import annotations

import json

import numpy as np
import pytest

import podium
from podium import Labels, Preferences, choose_method
from podium.core.errors import ParameterError
from podium.data.demo import demo
from podium.evaluate import evaluate
from podium.testing.crowds import simulate

LISTS = {q: {"x": ["a", "b", "c"], "y": ["a", "c", "b"], "z": ["b", "a", "c"]} for q in range(5)}
RATINGS = {q: {"ann": {"a": 2, "b": 1, "c": 1}, "bob": {"a": 1, "b": 1, "c": 0}} for q in range(15)}


def votes(judges):
    n = 30
    return Preferences.from_comparisons(
        ["q"] * n, [judges[i % len(judges)] for i in range(n)], ["a", "b", "a"] * 10, ["b", "c", "c"] * 10
    )


def votes_on_separate_pairs():
    """Two answers for each of 30 prompts, no item in two of them."""
    n = 90
    prompts = [f"q{i // 3}" for i in range(n)]
    judges = ["ann", "bob", "cy"] * 30
    return Preferences.from_comparisons(
        prompts, judges, [f"a{i // 3}" for i in range(n)], [f"b{i // 3}" for i in range(n)]
    )


@pytest.mark.parametrize(
    ("preferences", "name"),
    [
        (Preferences.from_lists(LISTS), "quality_weighted"),
        (
            Preferences.from_lists({0: {"x": {"a": 11.2, "b": 3.5}, "y": {"a": 0.2, "b": 0.1}}}),
            "quality_weighted",
        ),
        # scores 3, 2, 1 are ranks in disguise: nobody ties
        (
            Preferences.from_lists({q: {e: {"a": 3, "b": 2, "c": 1} for e in "xy"} for q in range(9)}),
            "quality_weighted",
        ),
        (Preferences.from_lists({0: {"only": ["a", "b"]}}), "rrf"),
        (Preferences.from_lists(RATINGS), "dawid_skene"),
        (votes(["ann", "bob", "cy"]), "crowd_bt"),
        (votes(["ann"]), "bradley_terry"),
        (votes_on_separate_pairs(), "dawid_skene"),
    ],
)
def test_the_form_decides(preferences, name):
    recommendation = choose_method(preferences)
    assert recommendation.method.name == name
    assert recommendation.method.aggregate(preferences).ranking(preferences.queries[0])[0][0] in "ab"
    assert bool(recommendation.reason) == (name != "rrf")


def rate(raters, rated, items, levels, queries=1, seed=0):
    """Ratings by raters with noise of their own, and the true values."""
    dice = np.random.default_rng(seed)
    noise, value = dice.uniform(0.05, 0.4, raters), dice.random((queries, items))
    rows = [
        (
            q,
            f"rater {r}",
            int(i),
            round(float(np.clip(value[q, i] + noise[r] * dice.normal(), 0, 1)) * (levels - 1)),
        )
        for q in range(queries)
        for r in range(raters)
        for i in dice.permutation(items)[:rated]
    ]
    query, rater, item, score = map(list, zip(*rows, strict=True))
    labels = Labels.from_dict({q: dict(enumerate(map(float, value[q]))) for q in range(queries)})
    return Preferences.from_rows(query, rater, item, score=score), labels


@pytest.mark.parametrize(
    ("survey", "name"),
    [
        # levels x levels = 25 chances per rater, five ratings for each of them: 125
        ({"raters": 8, "rated": 125, "items": 125, "levels": 5}, "dawid_skene"),
        ({"raters": 8, "rated": 124, "items": 125, "levels": 5}, "crowdagg"),
        ({"raters": 8, "rated": 25, "items": 25, "levels": 5, "queries": 5}, "dawid_skene"),
        ({"raters": 8, "rated": 20, "items": 20, "levels": 2}, "dawid_skene"),
        ({"raters": 8, "rated": 20, "items": 20, "levels": 10, "queries": 10}, "crowdagg"),
        # up to 15 ratings per item
        ({"raters": 15, "rated": 40, "items": 40, "levels": 2}, "dawid_skene"),
        ({"raters": 16, "rated": 40, "items": 40, "levels": 2}, "crowdagg"),
        # six ratings per rater
        ({"raters": 40, "rated": 6, "items": 40, "levels": 5}, "crowdagg"),
        ({"raters": 40, "rated": 5, "items": 40, "levels": 5}, "majority"),
    ],
)
def test_ratings_by_how_many_there_are(survey, name):
    ratings, _ = rate(**survey)
    weights = {f"rater {r}": 1.0 + r for r in range(survey["raters"])}
    recommendation = choose_method(ratings, weights=weights)
    assert recommendation.method.name == name
    assert recommendation.method.weights == weights
    assert recommendation.reason.startswith(f"ratings by {survey['raters']} experts")


@pytest.mark.parametrize(
    "survey",
    [
        {"raters": 300, "rated": 3, "items": 50, "levels": 5},
        {"raters": 30, "rated": 20, "items": 20, "levels": 5},
        {"raters": 40, "rated": 20, "items": 20, "levels": 2, "queries": 5},
    ],
)
def test_ratings_that_suit_no_confusion_matrix_are_ordered_better(survey):
    """Too few ratings of a rater for a matrix of chances; or so many of an item that its level is certain."""
    gain = []
    for seed in range(3):
        ratings, labels = rate(**survey, seed=seed)
        chosen, matrix = choose_method(ratings).method, podium.make("dawid_skene")
        pairs = [evaluate(m.aggregate(ratings), labels, "pairs").mean()["pairs"] for m in (chosen, matrix)]
        gain.append(pairs[0] - pairs[1])
    assert np.mean(gain) > 0.02


@pytest.mark.parametrize("count", [1, 2, 5, 10])
def test_few_votes_per_judge_keep_the_estimate_of_quality(count):
    """Ratings have a limit below which `auto` gives up qualities; votes need none (the protocol has the figures)."""
    crowd = simulate({"ann": 0.9, "bob": 0.75, "cy": 0.6}, items=8, judgements=count)
    assert choose_method(crowd.preferences).method.name == "crowd_bt"


@pytest.mark.parametrize(
    ("accuracies", "least"),
    [((0.9, 0.9, 0.5), 0.01), ((0.9, 0.75, 0.6), 0.005), ((0.75, 0.75, 0.75), -0.005)],
)
def test_three_judges_with_ten_votes_each_are_ordered_no_worse_than_without_qualities(accuracies, least):
    """Over 120 crowds; even where the judges are equally good, so that nothing can be learned about them."""
    plain, gain = podium.make("bradley_terry"), []
    for seed in range(120):
        crowd = simulate(
            {f"judge {k}": a for k, a in enumerate(accuracies)}, items=8, judgements=10, seed=seed
        )
        methods = (choose_method(crowd.preferences).method, plain)
        pairs = [
            evaluate(m.aggregate(crowd.preferences), crowd.labels, "pairs").mean()["pairs"] for m in methods
        ]
        gain.append(pairs[0] - pairs[1])
    assert np.mean(gain) > least


def test_reason_is_true_for_two_experts_equal_weights_and_one_query():
    two = Preferences.from_lists({q: {"x": ["a", "b", "c"], "y": ["b", "a", "c"]} for q in range(9)})
    recommendation = choose_method(two)
    weights = recommendation.method.aggregate(two).expert_weights
    assert weights[0] == weights[1]
    assert "2 experts, equally weighted" in recommendation.reason
    three = Preferences.from_lists({0: LISTS[0]})
    consensus = choose_method(three).method.aggregate(three)
    assert np.ptp(consensus.expert_weights) == 0
    assert "equal weights: these lists do not tell the experts apart" in consensus.diagnostics.notes
    assert "these data have one" in choose_method(three).describe()
    assert "these data have 9" in choose_method(two).describe()


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        (1, "needs judgements for 10 queries or more; these data have one."),
        (3, "needs judgements for 10 queries or more; these data have 3."),
        (11, "with judgements for the 11 queries, auto compares"),
        (40, "with judgements for 20 queries, auto compares"),
    ],
)
def test_labels_are_asked_for_queries_that_exist(queries, words):
    recommendation = choose_method(Preferences.from_lists(dict.fromkeys(range(queries), LISTS[0])))
    assert words in recommendation.loss


def test_weights_go_to_the_method():
    method = choose_method(Preferences.from_lists(LISTS), weights={"x": 1, "y": 1, "z": 0}).method
    assert method.weights == {"x": 1, "y": 1, "z": 0}


def test_fuse_takes_auto():
    fused = podium.fuse([["a", "b", "c"], ["a", "c", "b"], ["b", "a", "c"]], method="auto")
    assert fused.method.startswith("quality_weighted")
    assert fused.ranking[0] == "a"


def test_on_the_demo_it_is_better_than_rrf():
    data = demo()
    chosen, rrf = choose_method(data.preferences).method, podium.make("rrf")
    gain = [evaluate(m.aggregate(data.preferences), data.labels, "ndcg@10")["ndcg@10"] for m in (chosen, rrf)]
    assert np.mean(gain[0] - gain[1]) > 0.05  # the difference that the documentation shows is 0.08


def test_the_command_states_its_choice(tmp_path):
    click_testing = pytest.importorskip("click.testing")
    from podium.cli import program

    rows = ["query,expert,item,rank"]
    rows += [f"{q},{e},{i},{r}" for q in range(5) for e in "xyz" for r, i in enumerate("abc", 1)]
    path = tmp_path / "lists.csv"
    path.write_text("\n".join(rows) + "\n")
    done = click_testing.CliRunner().invoke(program, ["fuse", str(path), "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["method"] == "quality_weighted"
    assert done.stderr.startswith("auto chose quality_weighted: ranked lists of 3 experts")
    named = click_testing.CliRunner().invoke(program, ["fuse", str(path), "-m", "rrf", "--json"])
    assert json.loads(named.stdout)["method"] == "rrf"
    assert named.stderr == ""


def test_auto_has_no_parameters(tmp_path):
    click_testing = pytest.importorskip("click.testing")
    from podium.cli import program

    (tmp_path / "x.csv").write_text("query,expert,item,rank\n1,e,a,1\n")
    done = click_testing.CliRunner().invoke(program, ["fuse", str(tmp_path / "x.csv"), "-p", "k=20"])
    assert isinstance(done.exception, ParameterError) or "auto chooses the method" in done.stderr


@pytest.mark.parametrize("form", ["votes", "ratings"])
def test_a_reversed_minority_does_not_take_over(form):
    """A third of the judges answer in reverse, consistently: models of quality may fit them, and all is upside down."""
    from podium.testing.crowds import add_spammers

    chance = np.random.default_rng((200, 7))
    quality = {f"judge {k}": float(q) for k, q in enumerate(chance.beta(7, 3, 40))}
    given = (
        {"items": 48, "judgements": 24}
        if form == "votes"
        else {"form": "ratings", "queries": 20, "items": 20, "judgements": 5, "levels": 2}
    )
    crowd = simulate(quality, seed=200, **given)
    spoiled = add_spammers(crowd.preferences, 0.5, "malicious", 200, crowd.labels)
    method = choose_method(spoiled).method
    assert evaluate(method.aggregate(spoiled), crowd.labels, "pairs").mean()["pairs"] > 0.7
    clean = choose_method(crowd.preferences).method
    assert clean.name == ("crowd_bt" if form == "votes" else "dawid_skene")
