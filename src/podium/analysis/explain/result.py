"""The contribution of each expert to an item's place, and to one item over another."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from podium.analysis.explain.chart import draw_explanation
from podium.analysis.explain.counterfactuals import Change, SwapSearch
from podium.core.errors import ParameterError
from podium.core.old_names import RenamedAttribute
from podium.core.params import suggest_names
from podium.core.results import Column, Result, ViewBlock, build_grid, show_field
from podium.core.tables import Grid
from podium.core.text import format_count
from podium.data.consensus import Consensus, RankedItem
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.methods.base import Aggregator, make

__all__ = ["ExpertContribution", "Explanation", "explain"]

SHOWN = 3  # names, or changes of one kind, per sentence
NEAR = 1e-6  # tolerance for rounded sums and for scores merged as equal


@dataclass(frozen=True)
class ExpertContribution:
    """One expert: what it adds to the item (or to the item over the other one), and its ranks or votes.

    `ranks` are the places of the item (and of the other one) in the expert's list; `votes` counts its votes
    for and against the item (with another item: in comparisons of the two). `prefers` is 1 if its own list or
    votes put the item above the other one, -1 if below, 0 if undecided. `weight` is the expert's weight in
    this query, None where all experts count the same.
    """

    expert: Id
    value: float
    ranks: tuple[int | None, ...]
    votes: tuple[float, float] | None = None
    prefers: int = 0
    weight: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Result[ExpertContribution]):
    """An item's place with reasons; with another item, why it is above or below, and what would swap them.

    `contributions` are sorted by strength. They sum to the score (or to the difference) if `exact`; otherwise each
    is the score minus the score without that expert.
    """

    method: str
    query: Id
    item: RankedItem
    over: RankedItem | None
    of: int  # number of items of the query
    exact: bool
    experts: int  # experts among the contributions; the others are item features
    contributions: tuple[ExpertContribution, ...]
    above: RankedItem | None  # the neighbors of the item
    below: RankedItem | None
    changes: tuple[Change, ...] = ()
    complete: bool = True  # False if the search for changes was cut short

    voices = RenamedAttribute("contributions")

    @property
    def upper(self) -> Id:
        """The higher-ranked of the two items."""
        return self.item.item if self.over is None or self.item.rank < self.over.rank else self.over.item

    @property
    def lower(self) -> Id | None:
        """The lower-ranked of the two items."""
        if self.over is None:
            return None
        return self.over.item if self.upper == self.item.item else self.item.item

    @property
    def lines(self) -> list[str]:
        """The explanation as sentences."""
        lines = []
        for r in (self.item, self.over):
            if r is not None:
                tied = ", tied with another item" if r.tied else ""
                lines.append(
                    f"{r.item}: place {r.rank} of {self.of} for {self.query}, score {r.score:.6g}{tied}"
                )
        if self.over is not None:
            return [*lines, *_describe_balance(self, self.over), *_describe_swaps(self)]
        ranking = [v for v in self.contributions if any(r is not None for r in v.ranks) or v.votes]
        strong = [v for v in self.contributions if v.value > 0][:SHOWN]
        what = "add" if self.exact else "contribute"
        if len(strong) == 1:
            what += "s"
        most = f"; {', '.join(str(v.expert) for v in strong)} {what} most" if strong else ""
        of_all = (
            "The only expert ranks"
            if len(ranking) == self.experts == 1
            else (f"{len(ranking)} of {format_count(self.experts, 'expert')} rank")
        )
        lines.append(f"{of_all} it{most}")
        for near, word in ((self.above, "Above"), (self.below, "Below")):
            if near is not None:
                gap = abs(near.score - self.item.score)
                lines.append(f"{word} it: {near.item}, " + (f"{gap:.4g} away" if gap else "same score"))
        return lines

    key = "expert"
    facts = ("method", "query", "items", "exact", "above", "below", "experts", "changes", "complete", "text")
    chart = draw_explanation

    @property
    def rows(self) -> tuple[ExpertContribution, ...]:
        """The contributions."""
        return self.contributions

    @property
    def title(self) -> str:
        """The method."""
        return self.method

    def headline(self) -> str:
        """The place of the item."""
        return self.lines[0]

    def grid(self, *, unlisted: str = "", votes: str = "", digits: int = 6) -> Grid:
        """Ranks and contribution of each expert; `unlisted` stands for a missing rank.

        `votes` is a format of the votes for and against, such as "{:g}:{:g}"; without it they are left out.
        """

        def show_rank(v: ExpertContribution, place: int) -> str:
            return unlisted if v.ranks[place] is None else str(v.ranks[place])

        columns: list[Column] = [("expert", show_field("expert"))]
        columns.append((f"rank of {self.item.item}", lambda v: show_rank(v, 0)))
        if self.over is not None:
            columns.append((f"rank of {self.over.item}", lambda v: show_rank(v, 1)))
        if votes:
            columns.append(("votes", lambda v: "" if v.votes is None else votes.format(*v.votes)))
        value = "adds" if self.over is None else f"favors {self.item.item}"
        columns.append((value, show_field("value", ("{:+." + str(digits) + "g}").format)))
        columns.append(("weight", lambda v: "" if v.weight is None else f"{v.weight:.4g}"))
        return build_grid(columns, self.contributions, optional={"votes", "weight"})

    def blocks(self) -> tuple[ViewBlock, ...]:
        """The sentences, then the table."""
        return *self.lines, self.grid()

    def _compute_facts(self) -> dict[str, Any]:
        items = [{**r._asdict(), "of": self.of} for r in (self.item, self.over) if r is not None]
        return {"items": items, "experts": self.contributions, "text": self.lines}


def explain(
    method: str | Aggregator,
    preferences: Preferences,
    query: Id,
    item: Id | None = None,
    *,
    over: Id | None = None,
    features: Features | None = None,
) -> Explanation:
    """Explain the place of `item` (default: the first) for a query; with `over`, relative to that item.

    >>> p = Preferences.from_lists({"q": {"bm25": ["a", "b"], "dense": ["b"]}})
    >>> found = explain("rrf", p, "q", "b", over="a")
    >>> [(v.expert, v.ranks) for v in found.contributions]
    [('dense', (1, None)), ('bm25', (2, 1))]
    >>> [c.text for c in found.changes]
    ['bm25 counted 62.1 times as much, or more', 'dense counted 0.0161 times as much, or less',
     'dense put a at rank 1 (not listed now)']
    """
    aggregator = make(method)
    one = preferences.select([query]) if aggregator.tags.per_query else preferences
    consensus = aggregator.aggregate(one, features)
    places = consensus[query]
    if not places:
        raise ParameterError(f"query {query!r} has no items to explain")
    ranking = {r.item: r for r in places}
    mine = _find_item(ranking, places[0].item if item is None else item, query)
    other = None if over is None else _find_item(ranking, over, query)
    if other is not None and other.item == mine.item:
        raise ParameterError(f"{mine.item!r} cannot be compared with itself; choose another item")
    shown = [r.item for r in (mine, other) if r is not None]
    gap = mine.score - (0.0 if other is None else other.score)
    values, exact = _compute_contributions(aggregator, one, query, shown, features, gap)
    explanation = Explanation(
        consensus.method,
        query,
        mine,
        other,
        len(places),
        exact,
        sum(one.experts.code_of(e) is not None for e in values),
        _build_contributions(one, query, shown, values, consensus),
        places[mine.rank - 2] if mine.rank > 1 else None,
        places[mine.rank] if mine.rank < len(places) else None,
    )
    if other is None:
        return explanation
    upper, lower = (mine, other) if mine.rank < other.rank else (other, mine)
    above, below = (one.index.slot(query, r.item) for r in (upper, lower))
    gaps = {expert: value if upper is mine else -value for expert, value in values.items()}
    search = SwapSearch(aggregator, one, one.index.query_code(query), above, below, features, gaps, exact)
    return replace(explanation, changes=search.find_changes(), complete=not search.given_up)


def _find_item(ranking: dict[Id, RankedItem], item: Id, query: Id) -> RankedItem:
    if item not in ranking:
        raise ParameterError(
            f"there is no item {item!r} of query {query!r}; {suggest_names(str(item), map(str, ranking))}"
        )
    return ranking[item]


def _compute_contributions(
    aggregator: Aggregator,
    one: Preferences,
    query: Id,
    items: list[Id],
    features: Features | None,
    gap: float,
) -> tuple[dict[Id, float], bool]:
    """Each expert's contribution to the first item minus that to the second, and whether they sum to `gap`.

    They do not if no expert ranks an item: it goes last whatever its sum.
    """
    if aggregator.tags.per_query or aggregator.explains_exactly:
        parts = _subtract_parts([aggregator.explain(one, query, item, features) for item in items])
        off = abs(math.fsum(parts.values()) - gap)
        exact = aggregator.explains_exactly and off <= NEAR * max(1.0, *map(abs, parts.values()), abs(gap))
        if exact or aggregator.tags.per_query:
            return parts, exact
    # an answer that depends on other queries: leave experts out of all of them
    slots = [one.index.slot(query, item) for item in items]
    whole = aggregator.aggregate(one, features).scores[slots]
    effects: list[dict[Id, float]] = [{} for _ in items]
    for code in np.flatnonzero(one.select([query]).active_experts).tolist():
        rest, expert = np.zeros(len(slots)), one.experts[code]
        if len(one.experts) > 1:
            rest = aggregator.aggregate(one.without_expert(expert), features).scores[slots]
        for contributions, value in zip(effects, (whole - rest).tolist(), strict=True):
            contributions[expert] = value
    return _subtract_parts(effects), False


def _subtract_parts(parts: list[dict[Id, float]]) -> dict[Id, float]:
    """First minus second, strongest first."""
    first, second = parts[0], parts[1] if len(parts) > 1 else {}
    gap = {e: first.get(e, 0.0) - second.get(e, 0.0) for e in dict.fromkeys((*first, *second))}
    return dict(sorted(gap.items(), key=lambda pair: -abs(pair[1])))


def _build_contributions(
    one: Preferences, query: Id, items: list[Id], values: dict[Id, float], consensus: Consensus
) -> tuple[ExpertContribution, ...]:
    lists, slots = one.lists, [one.index.slot(query, item) for item in items]
    ranks: list[dict[Id, int]] = []
    for slot in slots:
        rows = np.flatnonzero(lists.item == slot)
        who = lists.expert[lists.list_of_row[rows]].tolist()
        ranks.append({one.experts[e]: r for e, r in zip(who, lists.rank[rows].tolist(), strict=True)})
    # votes of each expert for and against the first slot; with two slots, only votes between them
    table = one.comparisons
    other = np.isin(table.loser, slots[1:]) if len(slots) > 1 else np.ones(len(table), np.bool_)
    counter = np.isin(table.winner, slots[1:]) if len(slots) > 1 else np.ones(len(table), np.bool_)
    won = np.where((table.winner == slots[0]) & other & ~table.tie, table.weight, 0.0)
    lost = np.where((table.loser == slots[0]) & counter & ~table.tie, table.weight, 0.0)
    count = len(one.experts)
    up, down = (np.bincount(table.expert, weights=w, minlength=count).tolist() for w in (won, lost))
    votes = {one.experts[c]: (up[c], down[c]) for c in range(count) if up[c] or down[c]}
    weights: dict[Id, float] = {}  # none where all are 1
    given, experts = consensus.expert_weights, consensus.experts
    if given is not None and experts is not None and not np.all(given == 1.0):
        weights = dict(zip(experts.tolist(), given.tolist(), strict=True))
    contributions = []
    for expert, value in values.items():
        own, cast = tuple(r.get(expert) for r in ranks), votes.get(expert)
        prefers = 0
        if len(items) > 1:
            first, second = own
            if cast is not None:
                prefers = int(np.sign(cast[0] - cast[1]))
            elif first is not None and second is not None:
                prefers = int(np.sign(second - first))
            elif one.unlisted == "below":
                prefers = (first is not None) - (second is not None)
        contributions.append(ExpertContribution(expert, value, own, cast, prefers, weights.get(expert)))
    return tuple(contributions)


# -- sentences -----------------------------------------------------------------------------------------------


def _describe_balance(e: Explanation, over: RankedItem) -> list[str]:
    one, other = e.item.item, over.item
    first, second = (sum(v.prefers == side for v in e.contributions) for side in (1, -1))
    lines = [
        f"Own rankings: {first} expert{' puts' if first == 1 else 's put'} {one} first, {second} {other}"
    ]
    undecided = e.experts - first - second
    lines[0] += f"; {undecided} {'is' if undecided == 1 else 'are'} undecided" if undecided else ""
    if e.item.score == over.score:
        return [f"{one} and {other} have the same score; the tie rule puts {e.upper} first", *lines]
    where = "above" if e.item.rank < over.rank else "below"
    up, down = ([v.value for v in e.contributions if v.value * sign > 0] for sign in (1, -1))
    if e.exact:
        added = f"{len(up)} expert{'s' * (len(up) != 1)} add {sum(up):.4g} to {one}"
        text = f"{added}, {len(down)} subtract {-sum(down):.4g}"
    else:
        text = f"removing one expert lowers {one} in {format_count(len(up), 'case')} and raises it in {len(down)}"
    return [f"{one} is {where} {other} by {abs(e.item.score - over.score):.4g}: {text}", *lines]


def _describe_swaps(e: Explanation) -> list[str]:
    kinds = {"weight": "weight", "move": "list", "votes": "votes"}
    lines = []
    for kind in kinds:
        changes = [c for c in e.changes if c.kind == kind]
        if changes:
            more = f" (and {len(changes) - SHOWN} more such changes)" if len(changes) > SHOWN else ""
            lines.append("They would swap if " + "; or if ".join(c.text for c in changes[:SHOWN]) + more)
    listed = any(r is not None for v in e.contributions for r in v.ranks)
    voted = any(v.votes for v in e.contributions)
    possible_kinds = ["weight", *(["move"] if listed else []), *(["votes"] if voted else [])]
    none = [kinds[kind] for kind in possible_kinds if not any(c.kind == kind for c in e.changes)]
    if none:
        lines.append(f"No change of one expert's {' or '.join(none)} would make them swap")
    if not e.complete:
        lines.append("The search for changes was cut short; there may be smaller ones")
    return lines
