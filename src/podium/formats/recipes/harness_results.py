"""Results of evaluation harnesses: lm-eval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from podium.core.errors import Option
from podium.core.text import join_names
from podium.formats.recipes.judgments import Judgments
from podium.formats.recipes.recipe import Recipe
from podium.formats.recipes.records import Record, find_value, to_id

__all__ = ["LmEval"]

_MODEL_KEYS = ("model_name", "model_name_sanitized", "config.model_args", "config.model", "model_source")


class LmEval(Recipe):
    """Results of the lm-evaluation-harness, a file per model: every task is an expert that scores the models.

    `metric` chooses the metric, such as acc_norm; by default the first of every task is read. Metrics
    that are better when lower, according to the file, are negated. A task whose group has its own result is
    skipped. `items` is the key of the model's name.
    """

    name = "lm-eval"
    summary = "lm-evaluation-harness results: every task scores the models"
    suffixes = (".json",)
    marks = ("results",)

    def matches(self, fields: Mapping[str, Any]) -> bool:
        results = fields.get("results")
        if not isinstance(results, Mapping) or not results:
            return False
        marked = {"configs", "versions", "n-shot", "higher_is_better", "config"} & fields.keys()
        return bool(marked) and all(isinstance(result, Mapping) for result in results.values())

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        items: str | None = None,
        metric: str | None = None,
    ) -> None:
        for record in records:
            results = record.get("results")
            if not isinstance(results, dict):
                raise record.error("there are no results", "an lm-eval file has results by task")
            keys = (items,) if items else _MODEL_KEYS
            model = next((name for key in keys if (name := to_id(record.get(key))) is not None), None)
            if model is None:
                raise record.error("the file does not name its model", ("name its key, ", Option("items")))
            # it may be given by the arguments that load it
            arguments = dict(word.partition("=")[::2] for word in str(model).split(",") if "=" in word)
            model = arguments.get("pretrained") or arguments.get("model") or model
            groups, higher = (record.get(key) for key in ("group_subtasks", "higher_is_better"))
            covered = {
                task
                for group, tasks in (groups.items() if isinstance(groups, dict) else ())
                if _find_metrics(results.get(group)) and isinstance(tasks, list)
                for task in tasks
                if task != group
            }
            others: list[str] = []
            for task, result in results.items():
                metrics = _find_metrics(result)
                chosen = [
                    m for m in metrics if metric is None or m == metric or m.partition(",")[0] == metric
                ]
                if task in covered:
                    judgments.drop("task of a group with a result")
                elif not chosen:
                    judgments.drop("task without such a metric" if metrics else "task without a result")
                else:
                    value = record.parse_number(result[chosen[0]], f"value of {chosen[0]} in {task}")
                    better_up = higher.get(task) if isinstance(higher, dict) else None
                    falls = find_value(better_up, chosen[0].partition(",")[0]) is False
                    judgments.add_rating(record, "all", task, model, -value if falls else value)
                    others += (
                        [m for m in metrics if m != chosen[0] and m not in others] if metric is None else []
                    )
            if others:
                judgments.note(
                    f"the first metric of every task is read, not {join_names(others)} (option metric)"
                )


def _find_metrics(result: Any) -> list[str]:
    """The metrics of a task that have a number, without their standard errors."""
    if not isinstance(result, dict):
        return []
    return [
        name
        for name, value in result.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and "_stderr" not in name
        and name not in ("alias", "sample_len", "samples")
    ]  # fmt: skip
