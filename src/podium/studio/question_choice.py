"""Which question a judge is shown next: the comparison that tells most about the order."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence

from podium.analysis.leaderboard import Tally, suggest_comparisons
from podium.data.ids import Id
from podium.studio.collected_votes import LiveBoard
from podium.studio.vote_records import AskedQuestion, CollectedVote, VoteCollection
from podium.studio.vote_store import VoteStore

BUSY = 600.0  # seconds for which a shown question without a vote is not shown to another judge
PROPOSED, MOST_PROPOSED = 40, 400  # pairs considered: besides those that are taken, and in all

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
    pair = choose_pair(items, votes, taken, [frozenset((a, b)) for a, b in busy if b is not None], live.tally)
    if pair is None:
        return None
    sides = random.sample(pair, 2)
    return store.add_question(collection.project, judge, sides[0], sides[1])


def choose_pair(
    items: Sequence[Id],
    votes: Sequence[CollectedVote],
    taken: set[Pair],
    busy: Sequence[Pair],
    tally: Tally | None,
) -> tuple[Id, Id] | None:
    """Two items to compare; None if all pairs are taken.

    The pair that says most about the order (`suggest_comparisons`), from the first vote on; where all suggested pairs
    are taken, an item with the fewest votes against another one with few.
    """
    waiting, wanted = set(busy), set(items)
    known = items if tally is None else list(dict.fromkeys([*items, *tally.items]))
    count = min(PROPOSED + len(taken) + len(waiting), MOST_PROPOSED, len(known) * (len(known) - 1) // 2)
    suggested = suggest_comparisons(tally, count, items=known, seed=random.randrange(2**32))
    pairs = [(row.first, row.second) for row in suggested if {row.first, row.second} <= wanted]
    free = [pair for pair in pairs if frozenset(pair) not in taken]
    for pair in free:
        if frozenset(pair) not in waiting:
            return pair
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
