"""Data for preference training: HelpSteer, TRL's prompt/chosen/rejected, UltraFeedback."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from podium.core.errors import InputError, Option
from podium.data.column_roles import WORDS, normalize_name
from podium.data.ids import Id
from podium.data.vote_outcomes import Side
from podium.formats.base import Content
from podium.formats.recipes.judgments import Judgments
from podium.formats.recipes.recipe import (
    Recipe,
    find_query_key,
    read_expert,
    read_query,
    split_keys,
    warn_of_guess,
)
from podium.formats.recipes.records import Record, find_value, to_id
from podium.formats.text_ids import format_ids

__all__ = ["HelpSteer", "Trl", "UltraFeedback"]


class HelpSteer(Recipe):
    """HelpSteer2 and HelpSteer3 preferences, -3 (the first response is much better) to 3 (the second is).

    The weight of a vote is the strength of the preference, 1 to 3, as in the scaled Bradley-Terry loss of
    HelpSteer2; 0 is a tie of weight 1. Items are the texts of the responses; every prompt is a query.
    """

    name = "helpsteer"
    summary = "HelpSteer preferences from -3 to 3"
    marks = (
        "response1 response2 overall_preference",
        "response1 response2 preference_strength",
        "response_1 response_2 overall_preference",
        "response_1 response_2 preference_strength",
    )

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        expert: str | None = None,
        items: str | None = None,
    ) -> None:
        individual = 0
        for record in records:
            fields = record.fields
            value = fields.get("overall_preference", fields.get("preference_strength"))
            if value is None:
                judgments.drop("missing preference")
                continue
            strength = record.parse_number(value, "preference")
            if not -3 <= strength <= 3:
                raise record.error(f"the preference is {value!r}", "preferences are -3 to 3")
            mark = "" if "response1" in fields else "_"
            first, second = split_keys(items, 2) or (f"response{mark}1", f"response{mark}2")
            pair = record.read_id(first, "item"), record.read_id(second, "item")
            side: Side = "tie" if strength == 0 else "a" if strength < 0 else "b"
            place = (
                read_query(record, query, find_query_key(fields)),
                read_expert(record, expert, (), judgments),
            )
            judgments.add_vote(record, *place, pair, side, abs(strength) or 1.0)
            single = fields.get("individual_preference") or fields.get("all_preferences_unprocessed") or ()
            individual += len(single)
        judgments.note("the weight of a vote is the strength of the preference")
        if individual:
            judgments.note(
                f"{individual:,} preferences of single annotators are part of these and are not read"
            )


class Trl(Recipe):
    """TRL preference data: prompt, chosen and rejected (text or conversations), or prompt, completion and
    label.

    Every prompt is a query; `query="none"` makes one query of all prompts, for files whose answers are names
    of models. Conversations without a prompt share their first messages, which are the query.
    """

    name = "trl"
    summary = "TRL preference data: prompt, chosen, rejected"
    suffixes = (".jsonl", ".parquet", ".csv", ".json")
    holds = frozenset({"votes"})
    marks = ("prompt completion label", "chosen rejected")

    def matches(self, fields: Mapping[str, Any]) -> bool:
        if {"prompt", "completion", "label"} <= fields.keys():
            return True
        # a table that names its queries, ties or weights is more specific than a prompt
        words = (*WORDS["query"], *WORDS["tie"], *WORDS["weight"])
        if not {"chosen", "rejected"} <= fields.keys() or any(normalize_name(n) in words for n in fields):
            return False
        conversations = isinstance(fields["chosen"], list) and isinstance(fields["rejected"], list)
        return "prompt" in fields or conversations

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        expert: str | None = None,
        items: str | None = None,
    ) -> None:
        prompts_of: dict[Id, set[Id]] = {}
        first = None
        for record in records:
            first = first or record
            who = read_expert(record, expert, ("annotator", "annotator_id", "judge", "labeler"), judgments)
            if "completion" in record.fields:
                prompt = read_query(record, query, "prompt")
                label = str(record.get("label")).lower()
                score = record.parse_number({"true": 1, "false": 0}.get(label, record.get("label")), "label")
                judgments.add_rating(record, prompt, who, record.read_id("completion", "item"), score)
                continue
            keys = split_keys(items, 2) or ("chosen", "rejected")
            pair = record.read_id(keys[0], "chosen item"), record.read_id(keys[1], "rejected item")
            if query is None and "prompt" not in record.fields:
                prompt = _find_shared_messages(record, *(record.get(key) for key in keys))
            else:
                prompt = read_query(record, query, "prompt")
            judgments.add_vote(record, prompt, who, pair, "a", shown=False)
            for item in pair:
                prompts_of.setdefault(item, set()).add(prompt)
        shared = [item for item, prompts in prompts_of.items() if len(prompts) > 1]
        if query is None and first is not None and 2 * len(shared) > len(prompts_of):
            warn_of_guess(
                first,
                f"every prompt is a query of its own, but {len(shared):,} of {len(prompts_of):,} answers occur under "
                "several prompts; if they are names of models, give ",
                Option("query", "none"),
                " for one query, or ",
                Option("query", "prompt"),
                " if not",
            )
        pooled = query in ("none", "")
        judgments.note("all prompts are one query" if pooled else "every prompt is a query")

    def write(self, content: Content) -> Iterator[bytes]:
        p = content.preferences
        if p is None or not len(p.comparisons):
            raise InputError("there are no votes to write", remedy="TRL files store pairs of answers")
        votes, index = p.comparisons, p.index
        kept = [k for k, tied in enumerate(votes.tie.tolist()) if not tied]
        self.warn_of_omitted(
            lists=p.lists.rows, labels=content.labels, features=content.features, ties=len(votes.tie) - len(kept),
            weights=bool((votes.weight != 1).any()), experts=len(p.experts) > 1,
        )  # fmt: skip
        if not kept:
            raise InputError("all votes are ties", remedy="TRL files store pairs with a chosen answer")
        queries = format_ids(p.queries, "query", self.name)
        items = format_ids(index.items, "item", self.name, index.query_of_slot)
        winner, loser, query = votes.winner.tolist(), votes.loser.tolist(), votes.query_of_row.tolist()
        return (
            json.dumps(
                {"prompt": queries[query[k]], "chosen": items[winner[k]], "rejected": items[loser[k]]},
                ensure_ascii=False,
            ).encode()
            + b"\n"
            for k in kept
        )


def _find_shared_messages(record: Record, chosen: Any, rejected: Any) -> Id:
    """The messages with which two conversations begin."""
    if not isinstance(chosen, list) or not isinstance(rejected, list):
        raise record.error(
            "there is no prompt", ("name its key, ", Option("query"), ", or give ", Option("query", "none"))
        )
    shared = []
    for one, other in zip(chosen, rejected, strict=False):
        if one != other:
            break
        shared.append(one)
    prompt = to_id(shared) if shared else None
    if prompt is None:
        raise record.error("the two conversations begin differently", ("give ", Option("query", "none")))
    return prompt


class UltraFeedback(Recipe):
    """UltraFeedback: several models answer an instruction and every answer has a score.

    `score` is the key of the score in a completion, `overall_score` by default, or one of its ratings, such
    as annotations.helpfulness.Rating. Every instruction is a query.
    """

    name = "ultrafeedback"
    summary = "UltraFeedback: completions of several models with scores"
    marks = ("instruction completions",)

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        expert: str | None = None,
        items: str | None = None,
        score: str | None = None,
    ) -> None:
        (model,) = split_keys(items, 1) or ("model",)
        key = score or "overall_score"
        for record in records:
            completions = record.get("completions")
            if not isinstance(completions, list) or not all(isinstance(c, dict) for c in completions):
                raise record.error("completions is not a list of objects", "write one object per answer")
            place = read_query(record, query, "instruction"), read_expert(record, expert, (), judgments)
            for completion in completions:
                item, value = to_id(find_value(completion, model)), find_value(completion, key)
                if item is None:
                    raise record.error(f"a completion has no {model}", ("name its key, ", Option("items")))
                if value in (None, "", "N/A"):
                    judgments.drop("completion without score")
                    continue
                judgments.add_rating(record, *place, item, record.parse_number(value, "score"))
        judgments.note(f"scores are those of {key}")
