"""Judgements that language models write when they compare answers: MT-Bench, AlpacaEval, Arena-Hard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from podium.data.building.validate import check_choice
from podium.data.ids import Id
from podium.data.vote_outcomes import Side
from podium.formats.recipes.judgments import Judgments
from podium.formats.recipes.recipe import Recipe, read_expert, read_query, split_keys
from podium.formats.recipes.records import Record, to_id

__all__ = ["AlpacaEval", "ArenaHard", "MtBenchPairs", "MtBenchSingle"]

Games = Literal["both", "agreement"]


class MtBenchPairs(Recipe):
    """MT-Bench pairwise judgements: every pair is judged twice, the second time in the other order.

    `games="both"` reads each game as a vote of weight 1/2 and keeps the order in which the answers were
    shown, so that position bias can be estimated. `games="agreement"` is the rule of MT-Bench itself: one
    vote if both games name the same winner, else a tie. A query is a question and a turn, such as 81:2.
    """

    name = "mt-bench-pairs"
    summary = "MT-Bench pairwise judgements (g1_winner, g2_winner)"
    marks = ("model_1 model_2 g1_winner g2_winner",)

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        expert: str | None = None,
        items: str | None = None,
        games: Games = "both",
    ) -> None:
        check_choice("games", games, ("both", "agreement"))
        first, second = split_keys(items, 2) or ("model_1", "model_2")
        sides: dict[str, Side] = {"model_1": "a", "model_2": "b", "tie": "tie"}
        for record in records:
            winners = [record.get("g1_winner"), record.get("g2_winner")]
            if "error" in winners or None in winners:
                judgments.drop("failed judgement")
                continue
            for winner in winners:
                if winner not in sides:
                    raise record.error(
                        f"a winner is {winner!r}"[:120], f"accepted: {', '.join(sides)}, error"
                    )
            pair = record.read_id(first, "item"), record.read_id(second, "item")
            place = (
                _read_turn_query(record, query),
                read_expert(record, expert, ("judge.0", "judge"), judgments),
            )
            one, two = sides[winners[0]], sides[winners[1]]
            judgments.count("the two orders disagree in", "judgement", one != two)
            if games == "both":
                swapped: dict[Side, Side] = {"a": "b", "b": "a", "tie": "tie"}
                judgments.add_vote(record, *place, pair, one, 0.5)
                judgments.add_vote(record, *place, (pair[1], pair[0]), swapped[two], 0.5)
            else:
                judgments.add_vote(record, *place, pair, one if one == two else "tie", shown=False)
        if games == "both":
            judgments.note("a judgement is two votes of weight 0.5, one per order")


def _read_turn_query(record: Record, query: str | None) -> Id:
    """The query at a key; by default the question and the turn."""
    question = read_query(record, query, "question_id")
    turn = record.get("turn")
    return question if query is not None or turn is None else f"{question}:{turn}"


class MtBenchSingle(Recipe):
    """MT-Bench single-answer grades (1 to 10); -1 means that the judge gave none. A query is a question and a
    turn.
    """

    name = "mt-bench-single"
    summary = "MT-Bench single-answer grades"
    marks = ("question_id model judge judgment score",)

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        expert: str | None = None,
        items: str | None = None,
    ) -> None:
        (model,) = split_keys(items, 1) or ("model",)
        for record in records:
            score = record.read_number("score", "score")
            if score == -1:
                judgments.drop("failed judgement")
                continue
            judge = read_expert(record, expert, ("judge.0", "judge"), judgments)
            judgments.add_rating(
                record, _read_turn_query(record, query), judge, record.read_id(model, "item"), score
            )


class AlpacaEval(Recipe):
    """AlpacaEval annotations: a preference from 1 (the first output) to 2 (the second); 1.5, and 0 in old
    files, is a tie. A preference in between becomes two votes whose weights are the shares of the two
    outputs.
    """

    name = "alpaca-eval"
    summary = "AlpacaEval annotations (generator_1, generator_2, preference)"
    marks = ("instruction generator_1 generator_2 preference",)

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        expert: str | None = None,
        items: str | None = None,
    ) -> None:
        first, second = split_keys(items, 2) or ("generator_1", "generator_2")
        soft = False
        for record in records:
            value = record.get("preference")
            if value is None or value != value:
                judgments.drop("missing preference")
                continue
            preference = record.parse_number(value, "preference")
            if preference != 0 and not 1 <= preference <= 2:
                raise record.error(f"the preference is {value!r}", "preferences are 1 to 2, or 0 for a tie")
            pair = record.read_id(first, "item"), record.read_id(second, "item")
            place = (
                read_query(record, query, "instruction"),
                read_expert(record, expert, ("annotator",), judgments),
            )
            # the outputs are shown in random order, which is not recorded
            if preference in (0, 1.5):
                judgments.add_vote(record, *place, pair, "tie", shown=False)
                continue
            soft |= preference not in (1, 2)
            sides: tuple[tuple[Side, float], ...] = (("a", 2 - preference), ("b", preference - 1))
            for side, share in sides:
                if share:
                    judgments.add_vote(record, *place, pair, side, share, shown=False)
        if soft:
            judgments.note("a preference between 1 and 2 is two votes that share the weight 1")


_VERDICTS: dict[str, tuple[Side, bool]] = {
    "A>>B": ("a", True), "A>B": ("a", False), "A=B": ("tie", False), "B>A": ("b", False), "B>>A": ("b", True),
    "A<B": ("b", False), "A<<B": ("b", True), "B=A": ("tie", False), "B<A": ("a", False), "B<<A": ("a", True),
}  # fmt: skip


class ArenaHard(Recipe):
    """Arena-Hard judgements: a model and the baseline are judged twice, first with the baseline as A, then as
    B.

    Every game is a vote; "much better" (>>) has the weight `strong`, 3 as in Arena-Hard itself. Files that do
    not name the baseline call it 'baseline', unless `baseline` names it.
    """

    name = "arena-hard"
    summary = "Arena-Hard judgements (games with scores such as A>>B)"
    marks = ("model judge games",)

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        expert: str | None = None,
        baseline: str | None = None,
        strong: str = "3",
    ) -> None:
        for record in records:
            weight = record.parse_number(strong, "weight of a strong preference")
            model = record.read_id("model", "item")
            other = to_id(baseline or record.get("baseline"))
            if other is None:
                other = "baseline"
                judgments.note("the file does not name the baseline (option baseline)")
            key = "question_id" if "question_id" in record.fields else "uid"
            place = read_query(record, query, key), read_expert(record, expert, ("judge",), judgments)
            games: Any = record.get("games")
            if not isinstance(games, list):
                raise record.error("games is not a list", "a judgement has a list of games with scores")
            verdicts: list[tuple[int, tuple[Side, bool]]] = []
            for number, game in enumerate(games):
                score = game.get("score") if isinstance(game, dict) else None
                if score is None:
                    judgments.drop("failed game")
                elif str(score).strip() in _VERDICTS:
                    verdicts.append((number, _VERDICTS[str(score).strip()]))
                else:
                    accepted = f"accepted: {', '.join(_VERDICTS)}"
                    raise record.error(f"the score of a game is {score!r}"[:120], accepted)
            for number, (side, strongly) in verdicts:
                pair = (other, model) if number % 2 == 0 else (model, other)
                judgments.add_vote(record, *place, pair, side, weight if strongly else 1.0)
            if len(verdicts) == 2:
                # in the second game the letters are exchanged
                (_, (one, _)), (_, (two, _)) = verdicts
                agree = one == two == "tie" or {one, two} == {"a", "b"}
                judgments.count("the two orders disagree in", "judgement", not agree)
        judgments.note(f"a strong preference (>>) has the weight {strong}")
