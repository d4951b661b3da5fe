"""Ratings against scores of search engines: made shapes, and real sets whose form is known."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from podium import Preferences, choose_method, read
from podium.data.demo import demo
from podium.data.rating_scale import count_rating_levels


def rate(low: float, high: float, step: float, queries: int = 20, seed: int = 0) -> Preferences:
    """Six raters, ten items in each query, each rated with noise by four of the raters or so."""
    dice = np.random.default_rng(seed)
    lists: dict = {}
    for query in range(queries):
        value = dice.random(10)
        lists[query] = {
            f"rater {rater}": {
                f"i{i}": low
                + step * round(float(np.clip(value[i] + dice.normal(0, 0.2), 0, 1)) * (high - low) / step)
                for i in dice.permutation(10)[:7].tolist()
            }
            for rater in range(6)
        }
    return Preferences.from_lists(lists)


@pytest.mark.parametrize(
    ("scale", "method"),
    [
        ((0, 1, 1), "dawid_skene"),
        ((1, 5, 1), "dawid_skene"),
        ((0.5, 5, 0.5), "crowdagg"),
        ((0, 1, 0.25), "dawid_skene"),
        ((-2, 2, 1), "dawid_skene"),
        ((0, 10, 1), "crowdagg"),
        ((0, 1, 0.1), "crowdagg"),
        ((0, 10, 0.5), "crowdagg"),
        ((0, 100, 5), "crowdagg"),
        ((0, 100, 1), "crowdagg"),
    ],
)
def test_ratings_on_common_scales(scale, method) -> None:
    ratings = rate(*scale)
    assert count_rating_levels(ratings) == len(np.unique(ratings.lists.score))
    recommendation = choose_method(ratings)
    assert recommendation.method.name == method
    assert recommendation.reason.startswith("ratings by 6 experts")


def test_each_item_once_but_many_queries() -> None:
    """Tables of single answers: every rater rates one item of a query."""
    dice = np.random.default_rng(1)
    lists = {q: {f"r{r}": {"only": int(dice.integers(5))} for r in range(3)} for q in range(100)}
    assert count_rating_levels(Preferences.from_lists(lists)) == 5


@pytest.mark.parametrize(
    "lists",
    [
        {"x": {"a": 3}, "y": {"b": 4}},  # two experts with one item each
        {"x": {"a": 3}, "y": {"a": 3}},
        {
            "x": {"a": 3, "b": 2, "c": 1},
            "y": {"a": 3, "b": 1, "c": 2},
            "z": {"a": 1, "b": 2, "c": 3},
        },  # points by rank
        {"x": {"a": 12.31, "b": 9.87}, "y": {"a": 0.83, "b": 0.82}},
        {"x": {"a": 4, "b": 4, "c": 1, "d": 1}, "y": {"e": 4, "f": 4, "g": 1, "h": 1}},  # no item in common
    ],
)
def test_what_is_not_ratings(lists) -> None:
    preferences = Preferences.from_lists({"q": lists})
    assert count_rating_levels(preferences) == 0
    assert choose_method(preferences).method.name == "quality_weighted"


def test_rounded_similarities_and_large_counts_are_scores() -> None:
    dice = np.random.default_rng(2)
    for low, high, digits in ((0.4, 0.95, 2), (5, 30, 1), (0, 5000, 0)):
        lists = {
            q: {e: {f"d{i}": round(float(dice.uniform(low, high)), digits) for i in range(20)} for e in "xyz"}
            for q in range(30)
        }
        assert count_rating_levels(Preferences.from_lists(lists)) == 0


def test_container_comes_first() -> None:
    """A run with grades as scores stays a run: its items that are not listed were not retrieved."""
    ratings = rate(0, 4, 1)
    assert count_rating_levels(ratings.with_unlisted("below")) == 0
    lists = ratings.lists
    place = np.arange(lists.rows) - lists.starts[lists.list_of_row] + 1
    columns = (
        [ratings.queries[int(q)] for q in lists.query_of_list[lists.list_of_row]],
        [ratings.experts[int(e)] for e in lists.expert[lists.list_of_row]],
        [ratings.index.items[int(i)] for i in lists.item],
    )
    ranked = Preferences.from_rows(
        *columns, rank=place, score=lists.score
    )  # ranks break the ties of the scores
    assert count_rating_levels(ranked) == 0
    assert count_rating_levels(Preferences.from_rows(*columns, score=lists.score)) == 5


@pytest.mark.parametrize("at", [1, 999, 1000, 2999])
def test_one_score_off_the_scale_decides(at) -> None:
    ratings = rate(1, 5, 1, queries=72)
    score = ratings.lists.score.copy()
    score[at] += 0.123
    names = [ratings.index.items[int(i)] for i in ratings.lists.item]
    queries = ratings.lists.query_of_list[ratings.lists.list_of_row].tolist()
    experts = ratings.lists.expert[ratings.lists.list_of_row].tolist()
    assert count_rating_levels(Preferences.from_rows(queries, experts, names, score=score)) == 0


def test_demo_is_lists() -> None:
    assert count_rating_levels(demo().preferences) == 0


@pytest.mark.parametrize(
    ("path", "ratings"),
    [
        ("trec2011-crowd/judgments.tsv.gz", 2),
        ("robust03-runs/robust03.tsv.gz", 0),
        ("mq2008-agg/A1.txt.gz", 0),
    ],
)
def test_real_files(path, ratings) -> None:
    folder = Path(os.environ.get("PODIUM_DATA", "../shared/data"))
    if not (folder / path).exists():
        pytest.skip(f"no {path}; set PODIUM_DATA")
    if path.startswith("trec2011"):
        from podium_papers.paper_datasets import load_dataset

        preferences = load_dataset("trec2011-crowd", folder).preferences
    else:
        preferences = read(str(folder / path)).preferences
    assert count_rating_levels(preferences) == ratings
