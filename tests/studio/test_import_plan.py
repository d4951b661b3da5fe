"""Files in any shape: what is guessed about them, and what a click changes."""

from __future__ import annotations

import pytest

from podium.core.errors import InputError, PodiumError
from podium.storage.files import Source
from podium.studio import import_tables
from podium.studio.import_plan import FilePlan, read_planned, suggest_plans
from podium.studio.import_problems import apply_change, find_problems
from podium.studio.import_tables import guess_roles, load_table

PAIRS = b"".join(
    b"t%d x%d y%d %s%d\n" % (n % 3, n % 5, n % 7, b"xy"[n % 2 : n % 2 + 1], n % (5, 7)[n % 2])
    for n in range(60)
)
TRIPLES = b"".join(b"%d %d %d\n" % (n % 11, n % 7, (n + 1 + n % 3) % 7) for n in range(90))
JUDGES = b"pair,judge,preferred_answer\n" + b"".join(
    b"p%d,j%d,%s\n" % (n % 6, n // 6, (b"1", b"2", b"")[(n * 5) % 3]) for n in range(24)
)
GOLD = b"pair,preferred_answer\n" + b"".join(b"p%d,%d\n" % (n, 1 + n % 2) for n in range(6))
CROWD = b"topicID\tworkerID\tdocID\tgold_binary\tlabel_binary\n" + b"".join(
    b"%d\tw%d\td%d\t%d\t%d\n" % (n % 3, n % 4, n // 12, (-1, 0, 1)[(n % 3 + n // 12) % 3], n % 2)
    for n in range(60)
)
RACES = b"race,rank1,rank2,rank3\n" + b"".join(
    b"%d,%d.0,%d.0,%d.0\n" % (n, n % 4, n % 4 + 4, 9) for n in range(5)
)
PEOPLE = b"who,P1,P2,P3\nA,1,2,3\nB,3,1,2\nC,1,3,2\n"
FEATURES = b"".join(b"%d qid:%d 1:0.%d 2:1.5 #docid = d%d\n" % (n % 2, n % 3, n, n) for n in range(12))


def read(*files):
    plans = suggest_plans(files)
    return plans, read_planned(files, plans)


def test_votes_without_column_names_are_recognized_by_their_cells():
    [plan], content = read(("pref", PAIRS))
    assert plan.roles == {
        "column 1": "query", "column 2": "first item", "column 3": "second item", "column 4": "winner",
    }  # fmt: skip
    votes = content.preferences.comparisons
    lines = [line.split() for line in PAIRS.decode().splitlines()]
    assert len(votes) == len(lines)
    items = content.preferences.index.items
    assert sorted(items[s] for s in votes.winner) == sorted(line[3] for line in lines)


def test_expert_winner_loser():
    [plan], content = read(("all_pair.txt", TRIPLES))
    assert list(plan.roles.values()) == ["expert", "winner", "loser"]
    assert len(content.preferences.comparisons) == 90
    assert len(content.preferences.experts) == 11


def test_a_choice_between_two_answers_is_a_vote_and_the_gold_answer_a_label():
    plans, content = read(("gold.csv", GOLD), ("votes.csv", JUDGES))
    assert [plan.use for plan in plans] == ["labels", "data"]
    given = [line.split(",")[2] for line in JUDGES.decode().splitlines()[1:]]
    votes, items = content.preferences.comparisons, content.preferences.index.items
    assert sorted(items[s] for s in votes.winner) == sorted(answer for answer in given if answer)
    gold = [line.split(",") for line in GOLD.decode().splitlines()[1:]]
    right = {(query, answer): float(answer == best) for query, best in gold for answer in ("1", "2")}
    index = content.labels.index
    labeled = zip(
        index.query_of_slot.tolist(), index.items.tolist(), content.labels.grades.tolist(), strict=True
    )
    assert {(content.labels.queries[q], item): grade for q, item, grade in labeled} == right
    assert any(f"{given.count('')} rows without winner are skipped" in note for note in content.notes)


def test_grades_of_workers_beside_gold():
    [plan], content = read(("judgments.tsv", CROWD))
    assert plan.roles["label_binary"] == "score"
    assert plan.roles["gold_binary"] == "label"
    assert content.preferences.lists.rows == 60
    [problem] = find_problems([("judgments.tsv", CROWD)], [plan], None, content)
    [remedy] = problem.remedies
    assert remedy.label == "-1 means unknown"
    fixed = apply_change(plan, remedy.change, None)
    known = read_planned([("judgments.tsv", CROWD)], [fixed]).labels.grades
    assert set(known.tolist()) == {0.0, 1.0}
    assert len(known) < len(content.labels.grades)


def test_columns_that_are_places():
    _, content = read(("races.csv", RACES))
    lists, items = content.preferences.lists, content.preferences.index.items
    first = [items[s] for s, r in zip(lists.item.tolist(), lists.rank.tolist(), strict=True) if r == 1]
    assert sorted(first) == sorted(str(n % 4) for n in range(5))


def test_rows_that_are_people_and_columns_that_are_items():
    [plan], content = read(("visual.csv", PEOPLE))
    assert plan.roles == {"P1": "rank", "P2": "rank", "P3": "rank", "who": "expert"}
    assert content.preferences.experts.tolist() == ["A", "B", "C"]
    assert sorted(content.preferences.index.items.tolist()) == ["P1", "P2", "P3"]


def test_features_can_be_experts():
    [plan], content = read(("S1.txt", FEATURES))
    assert plan.options == {"kind": "scores"}
    assert len(content.preferences.experts) == 2
    assert content.labels is not None


def test_prose_beside_data_is_left_out_and_said():
    files = [
        ("a.run", b"q1 Q0 d1 1 2.5 bm25\n"),
        ("info.txt", b"Name: some words\n\nMore of them here, and here\n"),
    ]
    plans = suggest_plans(files)
    assert [plan.use for plan in plans] == ["data", "ignore"]
    problems = find_problems(files, plans, None, read_planned(files, plans))
    assert [(p.text, p.blocks) for p in problems] == [("info.txt is left out.", False)]


@pytest.mark.parametrize(
    ("content", "label", "count"),
    [
        (b"judge winner loser\n" + b"j a b\nj b a\nj a a\n", "Skip votes between an item and itself", 2),
        (b"query,expert,item,rank\nq,e,a,1\nq,e,a,2\nq,e,b,3\n", "Keep the first of duplicate rows", 2),
    ],
)
def test_a_click_settles_what_an_error_says(content, label, count):
    files = [("x.csv", content)]
    plans = suggest_plans(files)
    with pytest.raises(PodiumError) as caught:
        read_planned(files, plans)
    [problem] = find_problems(files, plans, caught.value, None)
    [remedy] = [r for r in problem.remedies if r.label == label]
    table = load_table(Source(*files[0]))
    fixed = read_planned(files, [apply_change(plans[0], remedy.change, table)]).preferences
    assert fixed.lists.rows + len(fixed.comparisons) == count


def test_labels_of_which_one_is_best():
    pairs = [(q, a, b) for q in range(2) for a in range(8) for b in range(a + 1, 8)]
    votes = b"query,worker,doc_a,doc_b,answer\n" + b"".join(b"q%d,w,d%d,d%d,a\n" % pair for pair in pairs)
    order = b"".join(b"MTurk\tq%d\td%d\t%d\n" % (q, n, n + 1) for q in range(2) for n in range(8))
    files = [("judgments.csv", votes), ("order.qrel", order)]
    plans = suggest_plans(files)
    assert plans[1].roles == {"column 2": "query", "column 3": "item", "column 4": "label"}
    [problem] = find_problems(files, plans, None, read_planned(files, plans))
    assert problem.text.endswith("Is a small label a good one?")
    [remedy] = problem.remedies
    turned = [plans[0], apply_change(plans[1], remedy.change, load_table(Source(*files[1])))]
    labels = read_planned(files, turned).labels.select(["q1"])
    by_item = dict(zip(labels.index.items.tolist(), labels.grades.tolist(), strict=True))
    assert by_item["d0"] > by_item["d7"]
    assert find_problems(files, turned, None, read_planned(files, turned)) == []


def test_errors_name_the_line_of_the_file():
    bad = b"winner,loser,judge\n" + b"a,b,j\n" * 3 + b"a,a,j\n"
    plan = FilePlan(roles={"winner": "winner", "loser": "loser", "judge": "expert"})
    with pytest.raises(InputError) as caught:
        read_planned([("v.csv", bad)], [plan])
    assert (caught.value.source, caught.value.line) == ("v.csv", 5)


def test_names_that_contain_a_known_word():
    table = load_table(Source("x.csv", b"topic_id;worker_name;document;the_score\nq;w;d;3\nq;v;d;4\n"))
    assert table.delimiter == ";"
    assert guess_roles(table) == {
        "topic_id": "query", "document": "item", "worker_name": "expert", "the_score": "score",
    }  # fmt: skip


def test_texts_of_items():
    files = [
        ("a.run", b"q1 Q0 d1 1 2.5 bm25\nq1 Q0 d2 2 1.5 bm25\n"),
        ("docs.csv", b"id,title,url\nd1,The first,http://a\nd2,The second,http://b\n"),
    ]
    plans = [FilePlan(), FilePlan(use="texts")]
    content = read_planned(files, plans)
    assert content.texts["d2"].title == "The second"
    assert content.texts["d1"].url == "http://a"


def test_the_roles_of_very_many_columns_are_guessed_without_comparing_all_triples(monkeypatch):
    """A LETOR file has hundreds of columns without names; its Data page took minutes."""
    compared = []
    monkeypatch.setattr(import_tables, "_is_one_of", lambda *columns: compared.append(columns))
    line = " ".join(f"{k}:{k / 7:.3f}" for k in range(300))
    lines = "\n".join(f"{n % 3} qid:{n} {line} x{n}" for n in range(20))
    table = load_table(Source("many.txt", lines.encode()), " ", False)
    assert len(table.names) > 300
    guess_roles(table)
    assert len(compared) < 10_000


def test_labels_are_matched_with_data_that_lack_an_answer():
    """A question about the votes decides nothing about the labels, whose first column is not the query here."""
    votes = b"query,worker,doc_a,doc_b,answer\n" + b"".join(
        b"q%d,w%d,d%d,e%d,%s\n" % (n % 3, n % 4, n % 5, n % 5, (b"a", b"b", b"same")[n % 3])
        for n in range(40)
    )
    gold = b"".join(b"MTurk\tq%d\td%d\t%d\n" % (q, k, k) for q in range(3) for k in range(5))
    whole = suggest_plans([("gold.qrel", gold), ("votes.csv", votes)])
    lacking = suggest_plans([("gold.qrel", gold), ("votes.csv", votes + b"q1,w1,d1,e1,\n")])
    assert list(whole[0].roles.values()) == ["query", "item", "label"]
    assert lacking[0] == whole[0]
