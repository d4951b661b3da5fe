"""Collected votes as preferences: added to the data of a project, and as the live board of its Collect page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from podium.analysis.leaderboard import (
    AnytimeLeaderboard,
    Tally,
    anytime_leaderboard,
    leaderboard,
)
from podium.analysis.leaderboard.inference import student_critical_values
from podium.core.errors import InputError, PodiumError, capture_warnings
from podium.core.tables import shorten_text
from podium.core.text import format_count, join_names
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels.distributions import normal_quantile
from podium.studio.loading import ProjectData
from podium.studio.vote_records import CollectedVote, CollectionItem, VoteCollection
from podium.studio.vote_store import VoteStore

LEVEL = 0.95
RIDGE = 0.05  # keeps the scores of an item that won or lost all its few votes finite
NAMED = 3  # items in a sentence
ScoredItem = tuple[CollectionItem, float, float | None, float | None, int]  # score, its interval, votes
MODELED = 150  # items up to which the scores of a live board are fitted after every vote


def load_collected(store: VoteStore, project: str) -> ProjectData:
    """The data of a project that has no files, only items to vote on."""
    collection, items = store.collection(project), list(store.item_texts(project))
    empty = Preferences.from_rows([], [], [], rank=[], candidates=([collection.query] * len(items), items))
    return ProjectData(empty)


def add_collected_votes(
    store: VoteStore, project: str, load: Callable[[], ProjectData], *, everyone: bool = False
) -> ProjectData:
    """The data with the collected votes; without the judgements of excluded annotators, unless `everyone`."""
    collection = store.find_collection(project)
    data = load()
    notes = list(data.notes)
    preferences, seconds = data.preferences, dict(data.seconds or {})
    if collection is not None:
        votes = select_counted(store.votes(project))
        parts = build_preferences(collection, votes)
        if parts:
            preferences = Preferences.concat([preferences, *parts])
            judges = {vote.judge for vote in votes}
            many = f"{format_count(len(votes), 'collected vote')} by {format_count(len(judges), 'judge')}"
            notes.append(f"{many} {'is' if len(votes) == 1 else 'are'} included")
            for vote in votes:
                if vote.seconds is not None and vote.judge not in (data.seconds or {}):
                    seconds.setdefault(vote.judge, []).append(vote.seconds)
    left_out = [] if everyone else store.excluded_annotators(project)
    excluded = [who for who in left_out if preferences.experts.code_of(who) is not None]
    if excluded:
        kept = [who for who in preferences.experts if who not in set(excluded)]
        preferences = preferences.with_experts(kept)
        seconds = {who: times for who, times in seconds.items() if who not in excluded}
        notes.append(f"excluded: {join_names([str(who) for who in excluded])}")
    return replace(data, preferences=preferences, seconds=seconds or None, notes=tuple(notes))


def select_counted(votes: Sequence[CollectedVote]) -> list[CollectedVote]:
    """The votes that count: neither skipped nor on a question whose answer is known."""
    return [vote for vote in votes if vote.answer != "skip" and vote.gold is None]


def build_preferences(collection: VoteCollection, votes: Sequence[CollectedVote]) -> list[Preferences]:
    """Counted votes as comparisons, or as ratings (of several by one judge, the mean)."""
    if not votes:
        return []
    if collection.kind == "ratings":
        grades: dict[tuple[str, Id], list[float]] = {}
        for vote in votes:
            grades.setdefault((vote.judge, vote.first), []).append(float(vote.answer))
        judges, items = zip(*grades, strict=True)
        means = [sum(given) / len(given) for given in grades.values()]
        return [Preferences.from_rows([collection.query] * len(means), judges, items, score=means)]
    rows = [
        (vote.judge, vote.second, vote.first, False, -1)
        if vote.answer == "second"
        else (vote.judge, vote.first, vote.second, vote.answer == "tie", 1)
        for vote in votes
    ]
    judge, winner, loser, tie, side = zip(*rows, strict=True)
    query = [collection.query] * len(rows)
    return [Preferences.from_comparisons(query, judge, winner, loser, tie=tie, side=side)]


@dataclass(frozen=True)
class LiveBoard:
    """The standings of a collection so far, and whether to stop."""

    rows: tuple[dict[str, Any], ...]  # rank, item, title, score, low, high, ranks, may_lead, votes
    stop: bool
    words: str
    note: str  # what the intervals hold for
    digits: int = 0  # decimals of the scores
    tally: Tally | None = None  # the counted votes on pairs

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "rows": list(self.rows),
            "stop": self.stop,
            "words": self.words,
            "note": self.note,
            "digits": self.digits,
        }


def compute_live_board(
    collection: VoteCollection,
    items: Mapping[Id, CollectionItem],
    votes: Sequence[CollectedVote],
    own: Preferences | None = None,
) -> LiveBoard:
    """Standings from the counted votes, and from the project's own votes on the same items (`own`)."""
    counted = select_counted(votes)
    if collection.kind == "ratings":
        return _compute_rating_board(items, counted)
    parts = [Tally.from_preferences(p) for p in build_preferences(collection, counted)]
    parts += [] if own is None else [Tally.from_preferences(own)]
    blank = tuple(_build_row(i, None, 0.0) for i in items.values())
    if not parts or sum(part.votes for part in parts) < 2:
        words = "No order yet: it needs at least two votes."
        return LiveBoard(blank, False, words, "", tally=parts[0] if parts else None)
    tally = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    if len(tally.items) > MODELED:
        return replace(_compute_share_board(items, counted), tally=tally)
    with capture_warnings():  # the checks of the leaderboard page report the same
        board = leaderboard(tally, l2=RIDGE)
        try:
            anytime = anytime_leaderboard(board)
            words, stop = describe_leaders(anytime, items), anytime.leader is not None
            at_every_look = {row.item: row for row in anytime.rows}
            note = "Places and who may lead hold at every look; intervals of scores hold for one look."
        except InputError as error:
            stop, words = board.stopping()
            at_every_look, note = {}, f"Intervals hold for one look at the votes: {error}."
    rows = []
    for standing in board.rows:
        row = at_every_look.get(standing.item)
        low, high = (row or standing).rank_low, (row or standing).rank_high
        rows.append(
            _build_row(items.get(standing.item, CollectionItem(standing.item)), standing.rank, standing.votes)
            | {"score": standing.score, "low": _or_none(standing.low), "high": _or_none(standing.high)}
            | {
                "ranks": f"{low} to {high}" if low != high else str(low),
                "may_lead": row is None or row.may_lead,
            }
        )
    present = {row["item"] for row in rows}
    rows += [_build_row(i, None, 0.0) for i in items.values() if i.item not in present]
    if len(present) < len(items):
        stop, words = False, f"{len(items) - len(present)} items have no votes yet"
    return LiveBoard(tuple(rows), stop, f"{'Stop' if stop else 'Continue'}: {words}.", note, tally=tally)


def describe_leaders(board: AnytimeLeaderboard, items: Mapping[Id, CollectionItem]) -> str:
    """Who may be the best, by title, and how many votes would decide."""

    def name(item: Id) -> str:
        return shorten_text(items[item].title or str(item), 60) if item in items else str(item)

    level, contenders = f"{board.settings.level:.0%}", board.contenders
    if len(contenders) == 1:
        return f"{name(contenders[0])} is the best at {level}, at every look"
    if not contenders:
        return "every item lost clearly to some other one, so there is no best item"
    if len(contenders) == len(board) > NAMED:
        words = f"any of the {len(contenders)} items may be the best at {level}"
    else:
        words = (
            f"{join_names([name(item) for item in contenders], NAMED, last='and')} may be the best at {level}"
        )
    needed = board.votes_needed
    if needed is None or board.rows[0].item not in contenders:
        return f"{words}; too close to foresee how many votes decide"
    return f"{words}; about {sum(needed.values()):,} more votes with {name(board.rows[0].item)} may decide"


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _build_row(item: CollectionItem, rank: int | None, votes: float) -> dict[str, Any]:
    figures: dict[str, Any] = {"score": None, "low": None, "high": None, "ranks": "", "may_lead": True}
    return {"rank": rank, "item": item.item, "title": item.title or str(item.item), "votes": votes} | figures


def _order_by_score(scored: list[ScoredItem]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for place, (item, score, low, high, votes) in enumerate(sorted(scored, key=lambda s: -s[1]), 1):
        rank = rows[-1]["rank"] if rows and rows[-1]["score"] == score else place
        rows.append(_build_row(item, rank, votes) | {"score": score, "low": low, "high": high})
    return rows


def _compute_rating_board(items: Mapping[Id, CollectionItem], votes: Sequence[CollectedVote]) -> LiveBoard:
    """Mean ratings with Student's intervals for one look."""
    grades: dict[Id, list[float]] = {item: [] for item in items}
    for vote in votes:
        grades.setdefault(vote.first, []).append(float(vote.answer))
    scored: list[ScoredItem] = []
    for item, given in grades.items():
        if not given:
            continue
        mean, low, high = float(np.mean(given)), None, None
        if len(given) > 1:
            critical = student_critical_values(
                float(normal_quantile((1 + LEVEL) / 2)), np.array([len(given) - 1.0])
            )
            half = float(critical[0] * np.std(given, ddof=1) / math.sqrt(len(given)))
            low, high = mean - half, mean + half
        scored.append((items.get(item, CollectionItem(item)), mean, low, high, len(given)))
    rows = _order_by_score(scored)
    rows += [
        _build_row(items.get(i, CollectionItem(i)), None, 0.0) for i, given in grades.items() if not given
    ]
    lead = rows[0]["low"]
    clear = lead is not None and all(row["high"] is not None and row["high"] < lead for row in rows[1:])
    words = "Continue: the interval of the first item overlaps with others, or an item has fewer than two ratings."
    if clear:
        words = (
            f"Stop: the interval of {rows[0]['title']} lies above all others at {LEVEL:.0%}, at this look."
        )
    return LiveBoard(tuple(rows), clear, words, "Intervals of the mean ratings hold for one look.", 2)


def _compute_share_board(items: Mapping[Id, CollectionItem], votes: Sequence[CollectedVote]) -> LiveBoard:
    """Shares of won votes, for more items than a fit after every vote allows."""
    won: dict[Id, float] = dict.fromkeys(items, 0.0)
    count: dict[Id, int] = dict.fromkeys(items, 0)
    for vote in votes:
        gain = {"first": 1.0, "second": 0.0}.get(vote.answer, 0.5)
        for item, points in ((vote.first, gain), (vote.second, 1 - gain)):
            if item is not None:
                won[item], count[item] = won.get(item, 0.0) + points, count.get(item, 0) + 1
    scored: list[ScoredItem] = [
        (items.get(i, CollectionItem(i)), won[i] / n, None, None, n) for i, n in count.items() if n
    ]
    rows = _order_by_score(scored) + [_build_row(items[i], None, 0.0) for i, n in count.items() if not n]
    words = f"Continue: with more than {MODELED} items, the Leaderboard page computes scores and intervals."
    return LiveBoard(tuple(rows), False, words, "Scores are shares of won votes.", 2)


def summarize_judges(votes: Sequence[CollectedVote]) -> list[dict[str, Any]]:
    """One row per judge: votes, ties, skips, right answers to gold questions, median seconds."""
    by_judge: dict[str, list[CollectedVote]] = {}
    for vote in votes:
        by_judge.setdefault(vote.judge, []).append(vote)
    rows = []
    for judge, own in by_judge.items():
        gold = [vote for vote in own if vote.gold is not None and vote.answer != "skip"]
        times = [vote.seconds for vote in own if vote.seconds is not None]
        rows.append({
            "judge": judge, "votes": sum(v.answer != "skip" for v in own),
            "ties": sum(v.answer == "tie" for v in own), "skips": sum(v.answer == "skip" for v in own),
            "gold": len(gold), "gold_right": sum(v.answer == v.gold for v in gold),
            "seconds": float(np.median(times)) if times else None,
        })  # fmt: skip
    return rows


def select_own_votes(data: ProjectData, collection: VoteCollection) -> Preferences | None:
    """The votes that the files of a project already have on the items of its collection; None without any."""
    preferences = data.preferences
    try:
        one = preferences.select([collection.query])
    except PodiumError:
        return None
    return one if len(one.comparisons) and not one.lists.rows else None
