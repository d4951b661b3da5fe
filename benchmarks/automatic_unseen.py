"""`auto` without labels on sets that no decision has seen: the amendment of docs/project/auto-protocol.md.

python benchmarks/automatic_unseen.py --data FOLDER [--part lists|assigned|votes] [--set NAME] [--first 400]

Lists: percent of the pairs of a held-out expert that the consensus of the others orders as it does (potato weights: the
true order), for the method that `choose_method` names and the rivals of `automatic_choice.py`, also with one third of
the experts replaced by bad ones. Assigned: NDCG@10 of feature columns of LETOR sets as experts, each with a random
third or the best ten of the items of a query; and pairs in the true order of made surveys, whose experts rank items
that were assigned to them. Votes: pairs in the right order, percent, against all methods of `robustness.py` that read
them and `copeland`, also with annotators added as in `automatic_crowds.py`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from automatic_choice import RIVALS, load_set, measure, spoil_experts
from automatic_crowds import CELLS, can_read
from robustness import METHODS, one

from podium import Labels, Preferences, choose_method, make, read
from podium.core.errors import capture_warnings
from podium.data.dataset import Dataset
from podium.testing.crowds import add_spammers

DRAWS, VOTE_DRAWS = 5, 3
LISTS = {  # set: pattern of its files, and whether every expert is held out in turn instead of a random half
    "sushi 10": ("preflib/00014-sushi/00014-00000001.soc*", False),
    "sushi 100": ("preflib/00014-sushi/00014-00000002.soi*", False),
    "sushi grades": ("preflib/00014-sushi/00014-00000003.toi*", False),
    "debian": ("preflib/00002-debian/*.soi*", False),
    "formula 1": ("preflib/00052-f1seasons/*.soi*", True),
    "web search": ("preflib/00011-web/*.soi*", True),
    "nascar": ("small/nascar2002.csv*", False),
    "potato": ("small/potato_visual.csv*", False),
}
SPOILED = ("sushi 10", "sushi 100", "debian", "formula 1", "potato")
KINDS = ("random", "reversed", "copied")
SHARE = 1 / 3
JUDGED = ("mt-bench", "llmeval2", "faireval")
THINNED = ("ohsumed", "mslr-web10k-sample", "mq2008", "robust03-runs", "demo")
SURVEY_ITEMS, SURVEY_LENGTH, SURVEY_NOISE = 60, 8, 6.0
SLOPES = {"evenly": 0.0, "the worst most": 1.0, "the best most": -0.5}  # of the odds of being assigned
MADE = "made pairs"
VOTES = (*JUDGED, "cast2019", "arena", MADE)
PAIRS, JUDGES, WORST_JUDGE, BEST_JUDGE, ANSWERED = 300, 12, 0.55, 0.9, 0.5  # of the made pairs


def read_table(path: Path) -> list[list[str]]:
    """The cells of a CSV file without its header; a file that ends in .gz is decompressed."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", newline="") as file:
        return list(csv.reader(file))[1:]


def read_elections(name: str, folder: Path) -> list[Preferences]:
    """The elections of a set, a query each."""
    paths = sorted(folder.glob(LISTS[name][0]))
    if name not in ("nascar", "potato"):
        return [read(str(path)).preferences for path in paths]
    rows = read_table(paths[0])
    cells: list[tuple[str, str, float]]  # expert, item, rank
    if name == "nascar":
        cells = [(f"race {r[0]}", c, k) for r in rows for k, c in enumerate(r[1:], 1) if c]
    else:
        cells = [(r[0], f"P{k}", float(c)) for r in rows for k, c in enumerate(r[1:], 1)]
    expert, item, rank = zip(*cells, strict=True)
    return [Preferences.from_rows([name] * len(cells), list(expert), list(item), rank=list(rank))]


def split_experts(name: str, election: Preferences, draw: int) -> Iterator[tuple[Preferences, Preferences]]:
    """The experts that are used, and those held out."""
    experts = election.experts.tolist()
    if LISTS[name][1]:
        for expert in experts:
            yield election.without_expert(expert), election.with_experts([expert])
        return
    mixed = [experts[k] for k in np.random.default_rng(draw).permutation(len(experts))]
    half = len(mixed) // 2
    yield election.with_experts(mixed[:half]), election.with_experts(mixed[half:])


def share_agreement(scores: np.ndarray, held_out: Preferences) -> float:
    """Percent of the pairs of a held-out list in its order, ties of the consensus one half; mean over the lists."""
    lists, shares = held_out.lists, []
    for first, last in zip(lists.starts[:-1], lists.starts[1:], strict=True):
        rank, score = lists.rank[first:last].astype(np.float64), scores[lists.item[first:last]]
        before = rank[:, None] < rank
        gap = np.sign(score[:, None] - score)
        if before.any():
            shares.append(50.0 * (1.0 + gap[before].mean()))
    return float(np.mean(shares)) if shares else float("nan")


def measure_lists(name: str, folder: Path, kind: str | None, first: int) -> tuple[dict[str, float], str]:
    """Means over elections, draws and held-out experts; and the methods that `auto` named."""
    values: dict[str, list[float]] = {m: [] for m in (*RIVALS, "auto")}
    named: set[str] = set()
    truth = dict(read_table(next(folder.glob("small/potato_true*"))))
    every_draw = kind is not None or not (LISTS[name][1] or name == "potato")
    for election in read_elections(name, folder):
        for draw in range(first, first + (DRAWS if every_draw else 1)):
            if name == "potato":
                true = Preferences.from_rows(
                    [name] * len(truth),
                    ["truth"] * len(truth),
                    [*truth],
                    rank=[float(v) for v in truth.values()],
                )
                order = {item: k for k, item in enumerate(true.index.items.tolist())}
                assert [order[i] for i in election.index.items.tolist()] == list(range(len(order)))
                splits: Any = [(election, true)]
            else:
                splits = split_experts(name, election, draw)
            for used, held_out in splits:
                crowd = spoil_experts(used, kind, SHARE, draw) if kind else used
                place = {item: k for k, item in enumerate(crowd.index.items.tolist())}
                where = [place.get(item, -1) for item in held_out.index.items.tolist()]
                method = choose_method(crowd).method
                named.add(method.name)
                for m in values:
                    with capture_warnings():
                        scores = (method if m == "auto" else make(m)).aggregate(crowd).scores
                    # an item that only held-out experts rank comes last
                    scores = np.append(scores, scores.min() - 1.0)
                    values[m].append(share_agreement(scores[where], held_out))
    return {m: float(np.nanmean(v)) for m, v in values.items()}, ", ".join(sorted(named))


def thin_lists(preferences: Preferences, keep: str, draw: int) -> Preferences:
    """Of every list a random third, or the best ten."""
    dice, lists, rows = np.random.default_rng(draw), preferences.lists, []
    for first, last in zip(lists.starts[:-1].tolist(), lists.starts[1:].tolist(), strict=True):
        length = last - first
        some = np.sort(dice.permutation(length)[: max(2, length // 3)])
        rows.append(first + (some if keep == "a random third" else np.arange(min(length, 10))))
    kept = np.concatenate(rows)
    which = lists.list_of_row[kept]
    return Preferences.from_rows(
        preferences.queries.take(lists.query_of_list[which]).tolist(),
        preferences.experts.take(lists.expert[which]).tolist(),
        preferences.index.items.take(lists.item[kept]).tolist(),
        rank=lists.rank[kept].tolist(),
    )


def simulate_survey(experts: int, slope: float, draw: int) -> tuple[Preferences, Preferences]:
    """Experts who rank assigned items with noise, and the true order."""
    dice = np.random.default_rng(draw)
    place = np.arange(SURVEY_ITEMS) / SURVEY_ITEMS
    odds = 1.0 + slope * place
    lists = {}
    for k in range(experts):
        assigned = dice.choice(SURVEY_ITEMS, SURVEY_LENGTH, replace=False, p=odds / odds.sum())
        lists[f"expert {k}"] = assigned[
            np.argsort(assigned + dice.normal(0, SURVEY_NOISE, SURVEY_LENGTH))
        ].tolist()
    return Preferences.from_lists({"survey": lists}), Preferences.from_lists(
        {"survey": {"truth": list(range(SURVEY_ITEMS))}}
    )


def measure_assigned(
    folder: Path, first: int, wanted: list[str] | None
) -> Iterator[tuple[str, dict[str, float]]]:
    """By case, the means over the draws of every method."""
    for name in THINNED:
        if wanted and name not in wanted:
            continue
        preferences, labels = load_set(name, folder)
        for keep in ("a random third", "the best ten"):
            draws = range(first, first + (DRAWS if keep == "a random third" else 1))
            crowds = [thin_lists(preferences, keep, draw) for draw in draws]
            yield (
                f"{name}, {keep}",
                {
                    m: float(np.mean([np.nanmean(measure(resolve(m, c), c, labels)) for c in crowds]))
                    for m in (*RIVALS, "auto")
                },
            )
    for experts in (30, 300):
        for label, slope in SLOPES.items():
            if wanted and "surveys" not in wanted:
                continue
            values: dict[str, list[float]] = {m: [] for m in (*RIVALS, "auto")}
            for draw in range(first, first + DRAWS):
                crowd, truth = simulate_survey(experts, slope, draw)
                place = {item: k for k, item in enumerate(crowd.index.items.tolist())}
                where = [place.get(item, -1) for item in truth.index.items.tolist()]
                for m, found in values.items():
                    scores = make(resolve(m, crowd)).aggregate(crowd).scores
                    found.append(share_agreement(np.append(scores, scores.min() - 1.0)[where], truth))
            yield f"{experts} experts, {label}", {m: float(np.mean(v)) for m, v in values.items()}


def resolve(method: str, preferences: Preferences) -> str:
    """The method that `auto` is."""
    return repr(choose_method(preferences).method) if method == "auto" else method


def read_votes(name: str, folder: Path, draw: int) -> tuple[Preferences, Any]:
    """Votes and their truth; a random half of the votes of the arena."""
    if name == MADE:
        return simulate_pairs(draw)
    if name == "arena":
        path = next(folder.glob("chatbot-arena-counts/*.json.gz"))
        return split_counts(json.loads(gzip.decompress(path.read_bytes())), draw)
    if name == "cast2019":
        columns = ["query", "item_a", "item_b", "winner"]
        votes = read(str(next(folder.glob("cast2019*/*.pref*"))), format="csv", columns=columns)
        graded = read(str(next(folder.glob("cast2019*/*.qrels*")))).labels
        index, grades = graded.index, graded.grades
        queries, items = index.queries.tolist(), index.items.tolist()
        truth: dict[Any, dict[Any, float]] = {}
        for slot in np.flatnonzero(grades < 10).tolist():
            truth.setdefault(queries[index.query_of_slot[slot]], {})[items[slot]] = float(grades[slot])
        return votes.preferences, Labels.from_dict(truth)
    rows = read_table(next(folder.glob("llm-judges/votes.csv*")))
    rows = [row for row in rows if row[0] == name and row[4]]
    pair, judge, winner = ([row[k] for row in rows] for k in (1, 2, 4))
    loser = ["1" if w == "2" else "2" for w in winner]
    gold = {p: best for p, best in read_table(next(folder.glob("llm-judges/gold.csv*"))) if p in set(pair)}
    truth = {p: {"1": float(best == "1"), "2": float(best == "2")} for p, best in gold.items()}
    return Preferences.from_comparisons(pair, judge, winner, loser), Labels.from_dict(truth)


def simulate_pairs(draw: int) -> tuple[Preferences, Labels]:
    """Votes on pairs that share no item, by judges of even accuracies; the truth is drawn."""
    dice = np.random.default_rng(draw)
    best = dice.integers(1, 3, PAIRS)
    accuracy = np.linspace(WORST_JUDGE, BEST_JUDGE, JUDGES)
    pair, judge = np.nonzero(dice.random((PAIRS, JUDGES)) < ANSWERED)
    winner = np.where(dice.random(len(pair)) < accuracy[judge], best[pair], 3 - best[pair])
    names = [f"judge {k}" for k in judge.tolist()]
    votes = Preferences.from_comparisons(
        pair.tolist(), names, [str(w) for w in winner.tolist()], [str(3 - w) for w in winner.tolist()]
    )
    truth = {p: {"1": float(b == 1), "2": float(b == 2)} for p, b in enumerate(best.tolist())}
    return votes, Labels.from_dict(truth)


def split_counts(content: dict[str, Any], draw: int) -> tuple[Preferences, dict[Any, dict[Any, float]]]:
    """A random half of the votes; the other half's majority of every pair of models as a query with two items."""
    dice, models = np.random.default_rng(draw), content["models"]
    winner, loser, tie, weight = [], [], [], []
    truth: dict[Any, dict[Any, float]] = {}
    for (a, b), counts in zip(content["X"], content["Y"], strict=True):
        used = dice.binomial(counts, 0.5)
        rest = np.array(counts) - used
        for count, first, second, even in zip(used, (a, b, a, a), (b, a, b, b), (0, 0, 1, 1), strict=True):
            if count:
                winner.append(models[first])
                loser.append(models[second])
                tie.append(bool(even))
                weight.append(float(count))
        if rest[0] != rest[1]:
            truth[a, b] = {models[a]: float(rest[0] > rest[1]), models[b]: float(rest[1] > rest[0])}
    one_board = [0] * len(winner)
    votes = Preferences.from_comparisons(
        one_board, ["people"] * len(winner), winner, loser, tie=tie, weight=weight
    )
    return votes, truth


def measure_votes(
    name: str, folder: Path, share: float, kind: Any, first: int
) -> tuple[dict[str, float], str]:
    """Means over the draws by method; and the methods that `auto` named."""
    values, named = [], set()
    draws = DRAWS if name == "arena" else VOTE_DRAWS if share or name == MADE else 1
    for draw in range(first, first + draws):
        votes, truth = read_votes(name, folder, draw)
        crowd = add_spammers(votes, share, kind, draw, truth) if share else votes
        chosen = choose_method(crowd).method
        named.add(chosen.name)
        methods = {n: m for n, m in METHODS.items() if can_read(m, crowd)} | {"Copeland": "copeland"}
        methods["auto"] = repr(chosen)
        with capture_warnings():
            if name == "arena":
                found = {n: [measure_pairs(make(m).aggregate(crowd), truth)] for n, m in methods.items()}
            else:
                found = one(Dataset(crowd, truth), methods, ("pairs",))
        values.append({n: 100 * v[0] for n, v in found.items()})
    return {n: float(np.mean([v[n] for v in values])) for n in values[0]}, ", ".join(sorted(named))


def measure_pairs(consensus: Any, truth: dict[Any, dict[Any, float]]) -> float:
    """The share of the pairs of models, of those in `truth`, whose winner has the higher score."""
    score = dict(zip(consensus.index.items.tolist(), consensus.scores.tolist(), strict=True))
    right = []
    for grades in truth.values():
        winner, loser = sorted(grades, key=grades.__getitem__, reverse=True)
        right.append(0.5 * (1 + np.sign(score[winner] - score[loser])))
    return float(np.mean(right))


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--part", choices=("lists", "assigned", "votes"))
    known = (*LISTS, *THINNED, "surveys", *VOTES)
    parser.add_argument("--set", action="append", choices=known, help="a set; may be repeated")
    parser.add_argument("--first", type=int, default=400, help="the first draw")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    header = "".join(f"{m:>13}" for m in (*RIVALS, "auto"))
    if options.part in (None, "lists"):
        print(f"{'set':30}{header}  auto is", flush=True)
        for kind in (None, *KINDS):
            for name in LISTS if kind is None else SPOILED:
                if options.set and name not in options.set:
                    continue
                values, named = measure_lists(name, options.data, kind, options.first)
                rows.append({"set": name, "kind": kind, "named": named, "values": values})
                label = f"{name}, {SHARE:.0%} {kind}" if kind else name
                print(
                    f"{label:30}" + "".join(f"{v:13.2f}" for v in values.values()) + f"  {named}", flush=True
                )
    if options.part in (None, "assigned"):
        print(f"{'case':36}{header}", flush=True)
        for label, values in measure_assigned(options.data, options.first, options.set):
            rows.append({"set": label, "values": values})
            print(f"{label:36}" + "".join(f"{v:13.2f}" for v in values.values()), flush=True)
    for name in VOTES if options.part in (None, "votes") else ():
        for share, kind in CELLS if name in (*JUDGED, MADE) else CELLS[:1]:
            if options.set and name not in options.set:
                continue
            values, named = measure_votes(name, options.data, share, kind, options.first)
            rows.append({"set": name, "share": share, "kind": kind, "named": named, "values": values})
            rivals = {n: v for n, v in values.items() if n != "auto"}
            best, worst = max(rivals, key=rivals.__getitem__), min(rivals, key=rivals.__getitem__)
            cell = f"{share:.0%} {kind}" if share else "clean"
            print(
                f"{name:10} {cell:14} auto {values['auto']:5.1f} ({named}), best {rivals[best]:5.1f} ({best}), worst "
                f"{rivals[worst]:5.1f} ({worst}), regret {max(0.0, rivals[best] - values['auto']):4.1f}",
                flush=True,
            )
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
