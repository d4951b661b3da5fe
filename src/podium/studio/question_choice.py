"""Which question a judge is shown next: the comparison that tells most about the order."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence

from podium.analysis.leaderboard import Leaderboard
from podium.data.ids import Id
from podium.studio.collected_votes import LiveBoard
from podium.studio.vote_records import AskedQuestion, CollectedVote, VoteCollection
from podium.studio.vote_store import VoteStore

BUSY = 600.0  # seconds for which a shown question without a vote is not shown to another judge
PROPOSED = 40  # pairs considered besides those that are taken

Pair = frozenset[Id]


def choose_question(
    store: VoteStore, collection: VoteCollection, judge: str, votes: Sequence[CollectedVote], live: LiveBoard
) -> AskedQuestion | None:
    """The open question of a judge, or a new one; None if the judge has answered all there are.

    `votes` are those that were not undone. No judge gets the same pair twice, and two judges do not get the
    same pair at the same time as long as there are others. The side of an item is random.
    """
    known = store.find_open_question(collection.project, judge)
    if known is not None:
        return known
    items = list(store.item_texts(collection.project))
    own = [vote for vote in votes if vote.judge == judge]
    busy = store.list_open_pairs(collection.project, since=time.time() - BUSY)
    if collection.kind == "ratings":
        rated = {vote.first for vote in own}
        left = [item for item in items if item not in rated]
        if not left:
            return None
        counts = Counter(vote.first for vote in votes) + Counter(first for first, _ in busy)
        item = min(left, key=lambda i: (counts[i], random.random()))
        return store.add_question(collection.project, judge, item, None)
    taken = {frozenset((vote.first, vote.second)) for vote in own if vote.second is not None}
    gold = [g for g in store.gold_pairs(collection.project) if frozenset(g[:2]) not in taken]
    if gold and collection.gold_every and (len(own) + 1) % collection.gold_every == 0:
        first, second, answer = random.choice(gold)
        if random.random() < 0.5:
            first, second = second, first
            answer = {"first": "second", "second": "first"}.get(answer, answer)
        return store.add_question(collection.project, judge, first, second, answer)
    # a gold question that a judge has not answered must not be asked as an ordinary one
    taken |= {frozenset(g[:2]) for g in gold if collection.gold_every}
    pair = choose_pair(items, votes, taken, [frozenset((a, b)) for a, b in busy if b is not None], live.board)
    if pair is None:
        return None
    sides = random.sample(pair, 2)
    return store.add_question(collection.project, judge, sides[0], sides[1])


def choose_pair(
    items: Sequence[Id],
    votes: Sequence[CollectedVote],
    taken: set[Pair],
    busy: Sequence[Pair],
    board: Leaderboard | None,
) -> tuple[Id, Id] | None:
    """Two items to compare; None if all pairs are taken.

    Once every item has votes, the pair with the largest expected gain (`Leaderboard.next`). Before that, and where
    no pair is worth a vote, an item with the fewest votes against another one with few.
    """
    waiting = set(busy)
    compared = set() if board is None else set(board.tally.items)
    if board is not None and compared.issuperset(items) and not board.estimate.solution.component.any():
        wanted = set(items)
        proposals = board.next(PROPOSED + len(taken) + len(waiting))
        pairs = [(p.first, p.second) for p in proposals if p.first in wanted and p.second in wanted]
        free = [pair for pair in pairs if frozenset(pair) not in taken]
        for pair in free:
            if frozenset(pair) not in waiting:
                return pair
        if free:
            return free[0]
    counts: Counter[Id] = Counter(item for pair in waiting for item in pair)
    for vote in votes:
        counts.update((vote.first, vote.second) if vote.second is not None else ())
    order = sorted(items, key=lambda item: (counts[item], random.random()))
    for skipped in (taken | waiting, taken):
        for place, first in enumerate(order):
            for second in order[place + 1 :]:
                if frozenset((first, second)) not in skipped:
                    return first, second
    return None
