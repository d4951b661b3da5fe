"""The 30 file shapes of annotation, evaluation and retrieval tools, a small file of each, and what it says.

A file under `tests/formats/recipes/files` was written by the tool itself (its README names the versions), but for the
two of crowd-kit, which reads tables and writes none; a text in this module has the documented shape. The
table of `docs/reading-files.md` is printed from this list.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILES = Path(__file__).parents[1] / "formats" / "recipes" / "files"


@dataclass(frozen=True)
class Shape:
    """One file and its meaning, derived by hand: rows of votes (query, expert, winner, loser, weight, or a tie marked
    by '='), of lists (query, expert, items best first), of ratings and of labels.
    """

    title: str
    file: str
    format: str
    text: str = ""  # empty: the file is under `files/`
    votes: list[tuple[Any, ...]] = field(default_factory=list)
    rankings: list[tuple[Any, ...]] = field(default_factory=list)
    ratings: list[tuple[Any, ...]] = field(default_factory=list)
    labels: list[tuple[Any, ...]] = field(default_factory=list)
    summary: tuple[str, ...] = ()  # words that the summary contains
    options: dict[str, Any] = field(default_factory=dict)  # empty: read as it is
    rule: str = ""  # how judgements become votes, for the table
    written_by: str = "the tool itself"  # who wrote a file under `files/`

    @property
    def is_real(self) -> bool:
        """Whether the tool wrote the file."""
        return not self.text

    def write(self, folder: Path) -> Path:
        """The path of the file, written if the text is here."""
        if self.is_real:
            return FILES / self.file
        path = folder / self.file
        path.write_text(self.text, encoding="utf-8")
        return path


def lines(*records: Any) -> str:
    """JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


MESSAGES = [{"role": "user", "content": "2+2?"}]
MT_PAIR = {
    "question_id": 81,
    "model_1": "x",
    "model_2": "y",
    "judge": ["gpt-4", "pair-v2"],
    "turn": 1,
    "tstamp": 1.5,
}
MT_SINGLE = {"question_id": 81, "judge": ["gpt-4", "single-v1"], "judgment": "..."}
HITS = {"took": 2, "timed_out": False, "_shards": {"total": 1}}

SHAPES = [
    Shape(
        "Arena battles", "arena.jsonl", "jsonl",
        lines({"question_id": "1", "model_a": "x", "model_b": "y", "winner": "model_b", "judge": "u1", "turn": 1,
               "conversation_a": MESSAGES, "conversation_b": MESSAGES},
              {"question_id": "2", "model_a": "x", "model_b": "z", "winner": "tie (bothbad)", "judge": "u2", "turn": 1,
               "conversation_a": MESSAGES, "conversation_b": MESSAGES}),
        votes=[("all", "u1", "y", "x", 1.0), ("all", "u2", "x", "=", "z", 1.0)],
        rule="one query; conversations are skipped while reading",
    ),
    Shape(
        "PrefLib .cat", "votes.cat", "preflib",
        "# FILE NAME: votes.cat\n# TITLE: t\n# DATA TYPE: cat\n# NUMBER ALTERNATIVES: 3\n# NUMBER CATEGORIES: 2\n"
        "# CATEGORY NAME 1: Yes\n# CATEGORY NAME 2: No\n# ALTERNATIVE NAME 1: A\n# ALTERNATIVE NAME 2: B\n"
        "# ALTERNATIVE NAME 3: C\n2: 1,{2,3}\n",
        rankings=[("votes", "v1", [["A"], ["B", "C"]]), ("votes", "v2", [["A"], ["B", "C"]])],
        rule="categories are places with ties",
    ),
    Shape(
        "TRL prompt, chosen, rejected", "pairs.jsonl", "trl",
        lines({"prompt": "p1", "chosen": "good", "rejected": "bad"},
              {"prompt": "p2", "chosen": "yes", "rejected": "no"}),
        votes=[("p1", "pairs", "good", "bad", 1.0), ("p2", "pairs", "yes", "no", 1.0)],
        summary=("2 queries", "every prompt is a query"),
        rule="every prompt is a query; `query=none`: one query",
    ),
    Shape(
        "BEIR qrels", "test.tsv", "beir", "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td1\t1\n",
        labels=[("q1", "d1", 2), ("q1", "d2", 0), ("q2", "d1", 1)], summary=("3 labels",),
    ),
    Shape(
        "MS MARCO run", "run.dev.tsv", "msmarco", "1102\t77\t1\n1102\t12\t2\n1103\t12\t1\n1103\t5\t2\n",
        rankings=[("1102", "run.dev", [["77"], ["12"]]), ("1103", "run.dev", [["12"], ["5"]])],
        summary=("the third column is the rank",), rule="the expert is the file",
    ),
    Shape(
        "crowd-kit pairwise", "crowdkit_pairs.csv", "crowd-kit",
        written_by="pandas, read by the tool",
        votes=[("all", "w1", "a", "b", 1.0), ("all", "w1", "b", "c", 1.0), ("all", "w2", "b", "a", 1.0),
               ("all", "w2", "a", "c", 1.0), ("all", "w3", "c", "b", 1.0)],
        summary=("3 experts", "5 votes"),
    ),
    Shape(
        "crowd-kit labels", "crowdkit_labels.csv", "crowd-kit",
        written_by="pandas, read by the tool",
        ratings=[("all", "w1", "t1", 1), ("all", "w2", "t1", 1), ("all", "w1", "t2", 0), ("all", "w3", "t2", 1),
                 ("all", "w2", "t3", 0)],
        summary=("5 ratings",), rule="the label is a rating of the task; `grades` gives categories their numbers",
    ),
    Shape(
        "Mechanical Turk results", "Batch_1.csv", "mturk",
        '"HITId","WorkerId","AssignmentStatus","WorkTimeInSeconds","Input.query","Input.doc_a","Input.doc_b","Answer.better"\n'
        '"H1","W1","Approved","9","q1","d1","d2","doc_b"\n"H1","W2","Rejected","2","q1","d1","d2","doc_a"\n'
        '"H2","W2","Submitted","8","q1","d1","d3","tie"\n',
        votes=[("q1", "W1", "d2", "d1", 1.0), ("q1", "W2", "d1", "=", "d3", 1.0)],
        summary=("dropped: 1 rejected assignment", "items are Input.doc_a and Input.doc_b"),
        rule="two Input columns: a vote; one: a rating; rejected assignments are dropped",
    ),
    Shape(
        "Toloka results", "assignments.tsv", "toloka",
        "INPUT:left\tINPUT:right\tOUTPUT:result\tGOLDEN:result\tASSIGNMENT:worker_id\tASSIGNMENT:status\n"
        "i1\ti2\tleft\t\tw1\tAPPROVED\n\t\t\t\t\t\ni1\ti3\tright\t\tw2\tAPPROVED\ni2\ti3\tright\t\tw2\tREJECTED\n",
        votes=[("all", "w1", "i1", "i2", 1.0), ("all", "w2", "i3", "i1", 1.0)],
        summary=("dropped: 1 rejected assignment",), rule="as Mechanical Turk",
    ),
    Shape(
        "UltraFeedback", "ultrafeedback.jsonl", "ultrafeedback",
        lines({"source": "s", "instruction": "i1", "models": ["x", "y"], "completions": [
            {"model": "x", "response": "r", "overall_score": 8.5, "annotations": {"helpfulness": {"Rating": "4"}}},
            {"model": "y", "response": "s", "overall_score": 6, "annotations": {"helpfulness": {"Rating": "N/A"}}}]}),
        ratings=[("i1", "ultrafeedback", "x", 8.5), ("i1", "ultrafeedback", "y", 6)],
        summary=("scores are those of overall_score",), rule="`overall_score`, or the rating that `score` names",
    ),
    Shape(
        "MT-Bench pairwise", "gpt-4_pair.jsonl", "mt-bench-pairs",
        lines({**MT_PAIR, "g1_winner": "model_1", "g2_winner": "model_1"},
              {**MT_PAIR, "question_id": 82, "g1_winner": "model_1", "g2_winner": "model_2"},
              {**MT_PAIR, "question_id": 83, "g1_winner": "error", "g2_winner": "tie"}),
        votes=[("81:1", "gpt-4", "x", "y", 0.5), ("81:1", "gpt-4", "x", "y", 0.5), ("82:1", "gpt-4", "x", "y", 0.5),
               ("82:1", "gpt-4", "y", "x", 0.5)],
        summary=("dropped: 1 failed judgement", "the two orders disagree in 1 of 2 judgements"),
        rule="a vote of weight 1/2 per order; `games=agreement`: one vote, a tie if the orders disagree",
    ),
    Shape(
        "MT-Bench single", "gpt-4_single.jsonl", "mt-bench-single",
        lines({**MT_SINGLE, "model": "x", "score": 9, "turn": 1},
              {**MT_SINGLE, "model": "x", "score": 7, "turn": 2},
              {**MT_SINGLE, "model": "y", "score": -1, "turn": 1}),
        ratings=[("81:1", "gpt-4", "x", 9), ("81:2", "gpt-4", "x", 7)], summary=("dropped: 1 failed judgement",),
        rule="question and turn are the query; -1 is dropped",
    ),
    Shape(
        "AlpacaEval annotations", "annotations.json", "alpaca-eval",
        json.dumps([
            {"instruction": "i1", "output_1": "a", "generator_1": "ref", "output_2": "b", "generator_2": "x",
             "annotator": "gpt4", "preference": 2.0},
            {"instruction": "i2", "output_1": "a", "generator_1": "ref", "output_2": "b", "generator_2": "x",
             "annotator": "gpt4", "preference": 1.25},
            {"instruction": "i3", "output_1": "a", "generator_1": "ref", "output_2": "b", "generator_2": "x",
             "annotator": "gpt4", "preference": 1.5},
            {"instruction": "i4", "output_1": "a", "generator_1": "ref", "output_2": "b", "generator_2": "x",
             "annotator": "gpt4", "preference": None}]),
        votes=[("i1", "gpt4", "x", "ref", 1.0), ("i2", "gpt4", "ref", "x", 0.75), ("i2", "gpt4", "x", "ref", 0.25),
               ("i3", "gpt4", "ref", "=", "x", 1.0)],
        summary=("dropped: 1 missing preference", "1 tie"), rule="a preference between 1 and 2 is shared by two votes",
    ),
    Shape(
        "Arena-Hard", "arena_hard.jsonl", "arena-hard",
        lines({"question_id": "q1", "model": "x", "judge": "gpt-4", "baseline": "base",
               "games": [{"judgment": "...", "score": "B>>A"}, {"judgment": "...", "score": "A>B"}]},
              {"question_id": "q2", "model": "x", "judge": "gpt-4", "baseline": "base",
               "games": [{"judgment": "...", "score": "A=B"}, {"judgment": "...", "score": "B>A"}]}),
        votes=[("q1", "gpt-4", "x", "base", 3.0), ("q1", "gpt-4", "x", "base", 1.0),
               ("q2", "gpt-4", "base", "=", "x", 1.0), ("q2", "gpt-4", "base", "x", 1.0)],
        summary=("the two orders disagree in 1 of 2 judgements",), rule="a vote per order; >> has weight 3",
    ),
    Shape(
        "HelpSteer3 preferences", "preference.jsonl", "helpsteer",
        lines({"domain": "g", "context": MESSAGES, "response1": "4", "response2": "5", "overall_preference": -2,
               "individual_preference": [{"score": -2}, {"score": -1}]},
              {"domain": "g", "context": [{"role": "user", "content": "hi"}], "response1": "yo", "response2": "hello",
               "overall_preference": 0, "individual_preference": []}),
        votes=[(json.dumps(MESSAGES), "preference", "4", "5", 2.0),
               (json.dumps([{"role": "user", "content": "hi"}]), "preference", "yo", "=", "hello", 1.0)],
        summary=("2 preferences of single annotators",), rule="the weight is the strength, 1 to 3; 0 is a tie",
    ),
    Shape(
        "Label Studio pairwise", "label_studio_pairwise.json", "label-studio",
        votes=[("Q1", 1, "x", "y", 1.0), ("Q2", 1, "z", "x", 1.0)],
        summary=("dropped: 1 cancelled annotation, 1 ground-truth annotation", "queries are data.prompt"),
        rule="cancelled and ground-truth annotations are dropped",
    ),
    Shape("Label Studio ranker", "label_studio_ranker.json", "label-studio",
          rankings=[("Q1", 1, [["d2"], ["d1"]]), ("Q2", 1, [["d1"], ["d3"]])], summary=("1 cancelled annotation",),
          rule="`buckets` orders the buckets of a ranker"),
    Shape("Label Studio rating", "label_studio_rating.json", "label-studio",
          ratings=[("Q1", 1, "x", 4), ("Q1", 1, "y", 3)], summary=("items are data.answer",),
          rule="`items` names the field that was rated"),
    Shape("Label Studio JSON_MIN", "label_studio_pairwise_min.json", "label-studio",
          votes=[("Q1", 1, "x", "y", 1.0), ("Q1", 1, "y", "x", 1.0), ("Q2", 1, "z", "x", 1.0)],
          summary=("JSON_MIN does not mark ground truth",), rule="ground truth is not marked in such files"),
    Shape(
        "Argilla, nested", "argilla_nested.json", "argilla",
        rankings=[("Question 0?", "00000000-0000-0000-0000-000000000001", [["r-b"], ["r-a"]]),
                  ("Question 0?", "00000000-0000-0000-0000-000000000002", [["r-a"], ["r-b"]]),
                  ("Question 1?", "00000000-0000-0000-0000-000000000001", [["r-a"], ["r-b"]]),
                  ("Question 1?", "00000000-0000-0000-0000-000000000002", [["r-b"], ["r-a"]])],
        summary=("dropped: 1 suggestion", "do not say which responses were discarded"),
        rule="ranking, rating or label questions; suggestions are not read",
    ),
    Shape(
        "Argilla, flat", "argilla_flat.json", "argilla",
        rankings=[("Question 0?", "00000000-0000-0000-0000-000000000001", [["r-b"], ["r-a"]]),
                  ("Question 0?", "00000000-0000-0000-0000-000000000002", [["r-a"], ["r-b"]]),
                  ("Question 1?", "00000000-0000-0000-0000-000000000001", [["r-a"], ["r-b"]])],
        summary=("1 discarded response",), rule="only submitted responses",
    ),
    Shape(
        "Prodigy choice", "choice.jsonl", "prodigy",
        lines({"text": "t1", "options": [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}], "accept": ["b"],
               "answer": "accept", "_annotator_id": "ann", "_input_hash": 1, "_task_hash": 2},
              {"text": "t2", "options": [{"id": i, "text": i} for i in "abc"], "accept": ["c"], "answer": "accept",
               "_annotator_id": "ann", "_input_hash": 3, "_task_hash": 4},
              {"text": "t3", "options": [{"id": "a"}, {"id": "b"}], "accept": [], "answer": "ignore",
               "_annotator_id": "ann", "_input_hash": 5, "_task_hash": 6}),
        votes=[("t1", "ann", "b", "a", 1.0)], rankings=[("t2", "ann", [["c"], ["a", "b"]])],
        summary=("dropped: 1 ignored task",), rule="accepted options above the others",
    ),
    Shape("ranx Run", "ranx_run.json", "ranx",
          ratings=[("q_1", "ranx_run", "d12", 0.9), ("q_1", "ranx_run", "d23", 0.8), ("q_1", "ranx_run", "d7", 0.1),
                   ("q_2", "ranx_run", "d11", 1.7), ("q_2", "ranx_run", "d4", 1.5)],
          rule="the expert is the file"),
    Shape("ranx Qrels", "ranx_qrels.json", "ranx-qrels",
          labels=[("q_1", "d12", 2), ("q_1", "d7", 0), ("q_2", "d4", 1)], summary=("whole numbers are grades",),
          rule="whole numbers are grades"),
    Shape(
        "Elasticsearch, OpenSearch response", "bm25.json", "search-response",
        json.dumps({"took": 3, "responses": [
            {**HITS, "hits": {"total": {"value": 2, "relation": "eq"}, "max_score": 2.0, "hits": [
                {"_index": "i", "_id": "d1", "_score": 2.0, "_source": {"t": "x"}},
                {"_index": "i", "_id": "d2", "_score": 2.0, "_source": {"t": "y"}}]}, "status": 200},
            {"error": {"type": "index_not_found_exception"}, "status": 404}]}, indent=1),
        rankings=[("1", "bm25", [["d1"], ["d2"]])], summary=("dropped: 1 failed response",),
        rule="hits in the engine's order; queries are numbered unless `query` names an id",
    ),
    Shape(
        "Wide table", "scores.csv", "wide", "model,mmlu,gsm8k,arc\nx,0.7,0.5,\ny,0.6,,0.9\n",
        ratings=[("all", "mmlu", "x", 0.7), ("all", "gsm8k", "x", 0.5), ("all", "mmlu", "y", 0.6),
                 ("all", "arc", "y", 0.9)],
        summary=("2 empty cells", "experts are mmlu, gsm8k, arc"),
        rule="a column per expert; `values=ranks` for ranks",
    ),
    Shape(
        "lm-eval results", "results_x.json", "lm-eval",
        json.dumps({"results": {"arc": {"alias": "arc", "acc,none": 0.5, "acc_stderr,none": 0.01, "acc_norm,none": 0.6},
                                "wikitext": {"alias": "wikitext", "word_perplexity,none": 12.5}},
                    "group_subtasks": {"arc": []}, "configs": {}, "versions": {}, "n-shot": {},
                    "higher_is_better": {"arc": {"acc": True}, "wikitext": {"word_perplexity": False}},
                    "config": {"model": "hf", "model_args": "pretrained=org/x,dtype=float"}}, indent=2),
        ratings=[("all", "arc", "org/x", 0.5), ("all", "wikitext", "org/x", -12.5)],
        summary=("not acc_norm,none",), rule="every task is an expert; one file per model",
    ),
    Shape(
        "PrefLib .wmd", "kidney.wmd", "wmd",
        "# FILE NAME: kidney.wmd\n# TITLE: t\n# DATA TYPE: wmd\n# NUMBER ALTERNATIVES: 3\n# NUMBER EDGES: 3\n"
        "# ALTERNATIVE NAME 1: Pair 1\n# ALTERNATIVE NAME 2: Pair 2\n# ALTERNATIVE NAME 3: Pair 3\n"
        "1, 2, 1.0\n1, 3, 2.5\n3, 1, 1.0\n",
        ratings=[("kidney", "Pair 1", "Pair 2", 1.0), ("kidney", "Pair 1", "Pair 3", 2.5),
                 ("kidney", "Pair 3", "Pair 1", 1.0)],
        summary=("the source of an edge rates its destination",), rule="`edges=votes`: a majority graph",
    ),
    Shape(
        "ABIF", "tennessee.abif", "abif",
        '{title: "capital"}\n=m:[Memphis]\n=n:[Nashville]\n=c:[Chattanooga]\n2:m>n=c  # ties\n1:c/5,n/3,m/0\n',
        rankings=[("tennessee", "v1", [["Memphis"], ["Nashville", "Chattanooga"]]),
                  ("tennessee", "v2", [["Memphis"], ["Nashville", "Chattanooga"]]),
                  ("tennessee", "v3", [["Chattanooga"], ["Nashville"], ["Memphis"]])],
        summary=("3 ballots", "scores are read as ranks"),
    ),
    Shape(
        "BLT", "club.blt", "blt", '3 1\n-2\n2 1 3 0\n1 3 1=2 0\n0\n"Ann"\n"Bob"\n"Cy"\n"Club"\n',
        rankings=[("club", "v1", [["Ann"], ["Cy"]]), ("club", "v2", [["Ann"], ["Cy"]]),
                  ("club", "v3", [["Cy"], ["Ann", "Bob"]])],
        summary=("3 ballots", "1 candidate withdrew"),
    ),
]  # fmt: skip

MORE_SHAPES = [
    Shape("Label Studio ranker, JSON_MIN", "label_studio_ranker_min.json", "label-studio",
          rankings=[("Q1", 1, [["d2"], ["d1"]]), ("Q2", 1, [["d1"], ["d3"]])]),
    Shape("Label Studio rating, JSON_MIN", "label_studio_rating_min.json", "label-studio",
          ratings=[("Q1", 1, "x", 4), ("Q1", 1, "y", 3)]),
    Shape(
        "doccano", "ann.jsonl", "doccano",
        lines({"id": 1, "text": "t1", "label": ["4"], "Comments": []},
              {"id": 2, "text": "t2", "label": [], "Comments": []}),
        ratings=[("all", "ann", 1, 4)], summary=("dropped: 1 document without label",),
        rule="labels are grades, or `grades` gives their numbers",
    ),
    Shape(
        "TRL prompt, completion, label", "kto.jsonl", "trl",
        lines({"prompt": "p", "completion": "x", "label": True}, {"prompt": "p", "completion": "y", "label": False}),
        ratings=[("p", "kto", "x", 1), ("p", "kto", "y", 0)], rule="true is 1, false is 0",
    ),
]  # fmt: skip
