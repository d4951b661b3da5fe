"""The answer card: against the table of values computed by hand, and on data where the right choice is known."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from podium import Labels, Preferences, choose_method, find_answer, load, make, save
from podium.analysis.answer import suggest_improvements
from podium.core.errors import InputError, ParameterError
from podium.data.dataset import Dataset
from podium.data.demo import demo
from podium.evaluate.tuning.labeled_choice import LEVELS, choose_by_labels, plan_candidates
from podium.evaluate.tuning.nested_estimate import choose_best, choose_simplest
from podium.evaluate.tuning.score_table import TuningTask
from podium.metrics.base import parse


def build_lists(queries: int, noise: float, seed: int = 0) -> tuple[Preferences, Labels]:
    """Ten items by query: one expert in the order of the grades, with noise, and two in random order."""
    dice = np.random.default_rng(seed)
    lists, grades = {}, {}
    for query in range(queries):
        value = dice.permutation(10)
        items = [f"d{i}" for i in range(10)]

        def order(spread: float, value: np.ndarray = value, items: list[str] = items) -> list[str]:
            return [items[i] for i in np.argsort(-(value + spread * dice.standard_normal(10)))]

        lists[query] = {"good": order(noise), "bad": order(1e9), "worse": order(1e9)}
        grades[query] = {item: int(v > 5) + int(v > 7) for item, v in zip(items, value, strict=True)}
    return Preferences.from_lists(lists), Labels.from_dict(grades)


def test_rule_chooses_the_lowest_level_within_one_standard_error() -> None:
    dice = np.random.default_rng(1)
    values = dice.random((6, 30))
    levels = np.array([0, 0, 1, 1, 2, 2])
    counts = dice.multinomial(30, np.full(30, 1 / 30), size=50).astype(float)
    picks = choose_simplest(levels)(values, counts)
    for count, pick in zip(counts, picks.tolist(), strict=True):
        # by hand: every query repeated as often as it was drawn
        drawn = np.repeat(values, count.astype(int), axis=1)
        means = drawn.mean(axis=1)
        best = int(means.argmax())
        d = drawn[best] - drawn
        near = d.mean(axis=1) <= d.std(axis=1, ddof=1) / np.sqrt(drawn.shape[1]) + 1e-12
        lowest = levels[near].min()
        allowed = np.flatnonzero(near & (levels == lowest))
        assert pick == allowed[means[allowed].argmax()]
    assert (choose_simplest(np.zeros(6, int))(values, counts) == choose_best(values, counts)).all()


@pytest.mark.parametrize("added", [1, 10, 30])
def test_queries_without_a_difference_are_added_for_level_0(added: int) -> None:
    dice = np.random.default_rng(added)
    values = dice.random((6, 30))
    values[2:] += 0.15  # so that level 0 has to be defended
    levels = np.array([0, 0, 1, 1, 2, 2])
    counts = dice.multinomial(30, np.full(30, 1 / 30), size=50).astype(float)
    picks = choose_simplest(levels, added)(values, counts)
    seen = set()
    for count, pick in zip(counts, picks.tolist(), strict=True):
        drawn = np.repeat(values, count.astype(int), axis=1)
        d = drawn[drawn.mean(axis=1).argmax()] - drawn
        error = d.std(axis=1, ddof=1) / np.sqrt(30)
        # by hand: the mean difference of level 0 is that of a table with zeros appended
        longer = np.concatenate((d, np.zeros((6, added))), axis=1).mean(axis=1)
        near = np.where(levels == 0, longer, d.mean(axis=1)) <= error + 1e-12
        allowed = np.flatnonzero(near & (levels == levels[near].min()))
        assert pick == allowed[drawn.mean(axis=1)[allowed].argmax()]
        seen.add(levels[pick])
    assert 0 in seen
    if added < 30:
        assert len(seen) > 1


def test_few_labels_that_say_nothing_rarely_overrule_the_choice_without_labels() -> None:
    # all experts are random, so some of the many candidates are better by chance
    chosen, by_fold = [], []
    for seed in range(12):
        choice = choose_by_labels(Dataset(*build_lists(12, 1e9, seed)), learned=False)
        chosen.append(choice.method.name)
        by_fold += choice.tuning.chosen
    assert chosen.count("quality_weighted") > 6
    # the nested estimate chooses by the same rule, from the queries outside a fold
    assert by_fold.count("quality_weighted") > len(by_fold) / 2


def test_few_labels_that_say_much_overrule_the_choice_without_labels() -> None:
    preferences, labels = build_lists(12, 0.5)
    assert choose_method(preferences).method.name == "quality_weighted"
    answer = find_answer(preferences, labels)
    assert answer.method.name != "quality_weighted"
    assert answer.rows[-1].difference > 0.05


def test_what_is_given_up_is_within_the_printed_bound() -> None:
    levels = set()
    for queries, noise, learned in ((12, 0.5, False), (20, 1.0, False), (60, 1.0, True), (60, 3.0, True)):
        preferences, labels = build_lists(queries, noise)
        choice = choose_by_labels(Dataset(preferences, labels), learned=learned)
        levels.add(choice.level)
        assert (choice.level == 0) == (choice.method.name == "quality_weighted")
        if not choice.runner:
            assert "gives up nothing that was tried" in choice.describe_loss()
            continue
        times = 1.0 if choice.level else 1 + 10 / queries
        assert 0 < choice.gap <= times * choice.error
        assert choice.runner in choice.describe_loss()
        if choice.level == 0:
            assert f"{times * choice.error:.4f} that {queries} judged queries" in choice.describe_loss()
            assert "the choice without labels" in choice.describe_reason()
    assert len(levels) > 1


def test_a_resample_chooses_like_a_table_with_copies_of_queries() -> None:
    values = np.random.default_rng(3).random((4, 12))
    values[1:] += 0.2
    rule = choose_simplest(np.array([0, 1, 2, 3]), 10)
    for seed in range(20):
        count = np.random.default_rng(seed).multinomial(12, np.full(12, 1 / 12))
        copies = np.repeat(values, count, axis=1)
        assert rule(values, count[None].astype(float))[0] == rule(copies, np.ones((1, 12)))[0]


def test_bad_experts_are_recognized_from_labels(tmp_path) -> None:
    preferences, labels = build_lists(60, 1.0)
    answer = find_answer(preferences, labels)
    assert answer.queries == 60
    assert answer.certainty in ("high", "moderate", "low")
    assert answer.rows[-1].name == "rrf"
    assert answer.rows[-1].difference > 0.05
    assert answer.rows[-1].p < 0.01
    # the chosen method is a method: same order after saving and loading, same bytes when repeated
    save(answer.method, tmp_path / "a.podium")
    again = find_answer(preferences, labels)
    assert load(tmp_path / "a.podium").aggregate(preferences).scores.tobytes() == (
        again.method.aggregate(preferences).scores.tobytes()
    )
    assert again.to_dict() == answer.to_dict()


def test_document_holds_everything_that_a_card_shows() -> None:
    preferences, labels = build_lists(25, 2.0)
    document = json.loads(find_answer(preferences, labels, learned=False).to_json())
    assert len(document["sentences"]) == 2
    assert document["sentences"][0].startswith("auto chose ")
    assert document["low"] < document["value"] < document["high"]
    assert [row["name"] for row in document["rows"]] == ["the best expert", "rrf"]
    assert document["certainty"] in ("high", "moderate", "low")


def test_p_is_the_larger_of_both_and_missing_where_it_is_behind() -> None:
    preferences, labels = build_lists(60, 1.0)
    answer = find_answer(preferences, labels, learned=False)
    if all(row.difference > 0 for row in answer.rows):
        assert answer.p == max(row.p for row in answer.rows)
    else:
        assert answer.p is None


def test_few_labels_do_not_choose() -> None:
    preferences, labels = build_lists(6, 1.0)
    answer = find_answer(preferences, labels)
    assert answer.method.name == "quality_weighted"
    assert "cannot choose" in answer.describe()
    one = find_answer(preferences.select([0]), labels)
    assert one.p is None
    assert one.certainty == "low"
    # nothing is held out of one query: there are no gains, and none are printed
    assert [row.difference for row in one.rows] == [None]
    assert " over " not in one.describe()
    assert (one.low, one.high) == (None, None)
    assert "no test against rrf is possible" in one.explanation


def test_labels_without_a_relevant_item_are_reported() -> None:
    preferences, labels = build_lists(12, 1.0)
    nothing = Labels.from_dict({q: dict.fromkeys(labels.select([q]).index.items, 0) for q in range(12)})
    answer = find_answer(preferences, nothing, methods=["rrf", "rbc"])
    assert answer.value == 0
    assert "every ranking scores 0" in answer.explanation


@pytest.mark.parametrize(("difference", "words"), [(-0.007, "0.0070 below rrf"), (0.007, "+0.0070 over rrf")])
def test_a_loss_is_not_called_a_gain(difference: float, words: str) -> None:
    preferences, labels = build_lists(12, 1.0)
    answer = find_answer(preferences, labels, methods=["rrf", "rbc"])
    rows = (dataclasses.replace(answer.rows[-1], difference=difference),)
    assert words in dataclasses.replace(answer, rows=rows).describe()


def test_mistakes_in_the_call_are_named() -> None:
    preferences, labels = build_lists(12, 1.0)
    with pytest.raises(ParameterError, match="no method is called 'rff'"):
        find_answer(preferences, labels, methods=["rrf", "rff"])
    with pytest.raises(InputError, match="find_answer was given a dict"):
        find_answer({"q": {"x": ["a"]}})
    with pytest.raises(InputError, match="choose_method was given a list"):
        choose_method([["a", "b"]])


def test_what_did_not_fit_is_counted_and_not_listed_in_full() -> None:
    preferences, labels = build_lists(12, 1.0)
    answer = find_answer(preferences.with_experts(["good"]), labels, budget=1e-6)
    assert "the only candidate" in answer.describe()
    assert len(answer.loss) < 200
    assert " more did not fit the time budget" in answer.loss


def test_without_labels_nothing_is_claimed() -> None:
    answer = find_answer(demo(20).preferences)
    assert (answer.certainty, answer.p, answer.value, answer.rows) == ("unknown", None, None, ())
    assert "It gives up a measured choice" in answer.describe()
    other = find_answer(demo(20).preferences, Labels.from_dict({"elsewhere": {"a": 1, "b": 0}}))
    assert "The labels cover none of these items" in other.explanation


def test_experts_that_do_not_agree_are_reported() -> None:
    dice = np.random.default_rng(0)
    lists = {
        query: {expert: [f"d{i}" for i in dice.permutation(12)] for expert in "abcd"} for query in range(300)
    }
    answer = find_answer(Preferences.from_lists(lists))
    assert "no order can be trusted" in answer.explanation


def test_votes_with_labels_are_compared_with_copeland() -> None:
    dice = np.random.default_rng(2)
    rows = []
    for query in range(15):
        for _ in range(60):
            a, b = dice.choice(6, 2, replace=False).tolist()
            right = dice.random() < 0.8
            winner, loser = (a, b) if (a < b) == right else (b, a)
            rows.append((query, f"judge {dice.integers(4)}", f"d{winner}", f"d{loser}"))
    votes = Preferences.from_comparisons(*map(list, zip(*rows, strict=True)))
    labels = Labels.from_dict({query: {f"d{i}": 5 - i for i in range(6)} for query in range(15)})
    answer = find_answer(votes, labels, learned=False)
    assert [row.name for row in answer.rows] == ["copeland"]
    assert answer.value > 0.9


@pytest.mark.parametrize(("judged", "word"), [(0, "labels for 20"), (50, "labels for 100"), (200, "scores")])
def test_advice_depends_on_what_is_there(judged: int, word: str) -> None:
    one = {"a": ["x", "y"], "b": ["y", "x"], "c": ["x", "y"]}
    lists = Preferences.from_lists(dict.fromkeys(range(200), one))
    assert suggest_improvements(lists, judged)[0].startswith(word)


def test_advice_does_not_ask_for_labels_of_queries_that_do_not_exist() -> None:
    one = {"a": ["x", "y"], "b": ["y", "x"], "c": ["x", "y"]}
    for queries, there in ((1, "here is one"), (5, "here are 5")):
        advice = suggest_improvements(Preferences.from_lists(dict.fromkeys(range(queries), one)))[0]
        assert advice.startswith(f"more queries, and labels for 20 queries ({there})")
    board = Preferences.from_comparisons(["q"] * 2, ["x", "y"], ["a", "b"], ["b", "c"])
    assert suggest_improvements(board) == ()


def test_candidates_are_in_the_documented_classes() -> None:
    preferences, labels = build_lists(20, 1.0)
    task = TuningTask.from_dataset(Dataset(preferences, labels), parse("ndcg@10"), "item", None, 0)
    configs, levels, _ = plan_candidates(task, make("rrf"), make("quality_weighted"), True, 60.0)
    experts = preferences.experts.tolist()
    words = {c.describe(experts): LEVELS[n] for c, n in zip(configs, levels.tolist(), strict=True)}
    assert next(iter(words)) == "rrf"  # the baseline, which is computed whatever happens
    assert (np.diff(levels[1:]) >= 0).all()
    assert [name for name, word in words.items() if word == "the choice without labels"] == [
        "quality_weighted"
    ]
    for name in ("weighted_borda", "weighted_rrf", "rrf, weights by quality^4", "rbc, weights by quality^4"):
        assert words[name] == "a rule with weights from the labels"
    for name in ("rrf", "rbc", "borda", "majority"):
        assert words[name] == "another rule without labels"
    assert words["stack"] == "a combination of methods"
    assert {c.depends_on_labels for c, n in zip(configs, levels, strict=True) if "without" in LEVELS[n]} == {
        False
    }
    # the only expert's order is kept by rrf, which is then both the baseline and the choice without labels
    alone, level, _ = plan_candidates(task, make("rrf"), make("rrf"), True, 60.0, ["rrf", "borda"])
    assert [(c.method, n) for c, n in zip(alone, level.tolist(), strict=True)] == [("rrf", 0), ("borda", 2)]
