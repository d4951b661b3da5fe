"""The supervised Markov chain: the chain by its definition, and the quadratic program against a reference solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from podium import Labels, Preferences, make
from podium.core.errors import ParameterError
from podium.evaluate import evaluate
from podium.learning.examples import Examples
from podium.methods.learned import weighted_markov
from podium.methods.learned.weighted_markov import ListChains, OrderProgram

ROWS = [  # query, expert, item, rank: ties, gaps, partial lists, an expert without a list in the second query
    ("q", "x", "a", 1), ("q", "x", "b", 2), ("q", "x", "c", 2), ("q", "x", "d", 7),
    ("q", "y", "c", 1), ("q", "y", "a", 3),
    ("r", "x", "e", 1), ("r", "x", "f", 2),
]  # fmt: skip


def preferences() -> Preferences:
    query, expert, item, rank = zip(*ROWS, strict=True)
    return Preferences.from_rows(query, expert, item, rank=rank)


def plain_chain(p, query, expert):
    """Transition probabilities of one expert in one query, item by item."""
    items = [p.index.items[s] for s in range(*p.index.slots(query).indices(10**9))]
    ranks = {i: r for q, e, i, r in ROWS if (q, e) == (query, expert)}
    table = np.zeros((len(items), len(items)))
    for row, item in enumerate(items):
        above = [j for j in items if item in ranks and j in ranks and ranks[j] <= ranks[item]] or items
        for j in above:
            table[row, items.index(j)] = 1 / len(above)
    return table


@pytest.mark.parametrize("teleport", [0.15, 0.01])
def test_probabilities_are_those_of_the_mixture(teleport) -> None:
    p, shares = preferences(), np.array([0.7, 0.3])
    mass = ListChains.from_preferences(p, np.arange(2)).solve_stationary(shares, teleport)
    for query in ("q", "r"):
        here, size = mass[p.index.slots(query)], len(mass[p.index.slots(query)])
        mixture = sum(s * plain_chain(p, query, e) for s, e in zip(shares, "xy", strict=True))
        moves = (1 - teleport) * mixture + teleport / size
        assert here.sum() == pytest.approx(1)
        np.testing.assert_allclose(here @ moves, here, atol=1e-14)


def test_a_step_of_every_expert() -> None:
    p, mass = preferences(), np.random.default_rng(0).random(6)
    table = ListChains.from_preferences(p, np.arange(2)).step_by_expert(mass, 2)
    for query in ("q", "r"):
        here = p.index.slots(query)
        for k, expert in enumerate("xy"):
            np.testing.assert_allclose(table[here, k], mass[here] @ plain_chain(p, query, expert), atol=1e-15)


def test_one_expert_that_lists_everything_is_mc2() -> None:
    p = Preferences.from_lists({"q": {"x": ["a", "b", "c", "d"]}})
    model = make("weighted_markov").fit(p, Labels.from_dict({"q": {"a": 2, "b": 1, "c": 0}}))
    np.testing.assert_allclose(model.aggregate(p).scores, make("mc2").aggregate(p).scores, atol=1e-10)


def problem(seed=0, queries=30):
    """Expert `good` follows the grades, `fair` less so, `bad` not at all."""
    random = np.random.default_rng(seed)
    lists, grades = {}, {}
    for n in range(queries):
        grade = random.permutation([2, 1, 1, 0, 0, 0, 0])
        noise = {"good": 0.4, "fair": 1.2, "bad": 50.0}
        ideas = {
            e: np.argsort(-grade - s * random.normal(size=7))[: random.integers(3, 8)]
            for e, s in noise.items()
        }
        lists[f"q{n}"] = {e: [f"i{k}" for k in order] for e, order in ideas.items()}
        grades[f"q{n}"] = {f"i{k}": int(g) for k, g in enumerate(grade)}
    return Preferences.from_lists(lists), Labels.from_dict(grades)


@pytest.mark.parametrize("l2", [1e-3, 0.1])
def test_shares_solve_the_quadratic_program(l2) -> None:
    """The program with its slacks as variables, by SciPy's sequential least squares."""
    p, labels = problem(queries=4)
    model = make("weighted_markov", l2=l2).fit(p, labels)
    examples = Examples.from_labels(p.index, labels)
    better, worse, weight = weighted_markov._collect_pairs(examples)
    chains, experts = ListChains.from_preferences(p, np.arange(3)), 3
    mass = chains.solve_stationary(np.full(experts, 1 / 3), 0.15)
    size = p.index.sizes[p.index.query_of_slot]
    rows = (chains.step_by_expert(mass, experts) * size[:, None])[examples.rows]
    difference, pairs = rows[better] - rows[worse], len(better)

    def value(z):
        return l2 / 2 * z[:experts] @ z[:experts] + weight @ z[experts:] ** 2 / 2

    def slope(z):
        return np.concatenate([l2 * z[:experts], weight * z[experts:]])

    enough = {
        "type": "ineq",
        "fun": lambda z: difference @ z[:experts] + z[experts:] - 1,
        "jac": lambda z: np.hstack([difference, np.eye(pairs)]),
    }
    begin = np.concatenate([np.zeros(experts), np.ones(pairs)])
    found = minimize(
        value, begin, jac=slope, constraints=[enough], bounds=[(0, None)] * len(begin), method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert found.success
    shares = found.x[:experts] / found.x[:experts].sum()
    assert list(model.weights_.values()) == pytest.approx(shares.tolist(), abs=1e-4)
    assert model.converged_


def test_the_gradient_of_the_program() -> None:
    random = np.random.default_rng(1)
    program = OrderProgram(
        random.normal(size=(6, 3)), np.array([0, 1, 2, 5]), np.array([3, 4, 0, 2]), np.full(4, 0.25)
    )
    at = random.random(3)
    finite = [
        (program.compute_value(at + e, 0.1)[0] - program.compute_value(at - e, 0.1)[0]) / 2e-6
        for e in 1e-6 * np.eye(3)
    ]
    np.testing.assert_allclose(program.compute_value(at, 0.1)[1], finite, rtol=1e-6)


@pytest.mark.parametrize("kind", ["grades", "rankings", "pairs"])
@pytest.mark.parametrize("rounds", [1, 3])
def test_it_learns_whom_to_follow(kind, rounds) -> None:
    p, labels = problem()
    new, truth = problem(1)
    given = labels
    if kind == "rankings":
        order = {
            q: sorted((f"i{k}" for k in range(7)), key=lambda i, q=q: -labels.grade(q, i))
            for q in labels.queries
        }
        given = Labels.from_rankings(order)
    elif kind == "pairs":
        items = [f"i{k}" for k in range(7)]
        given = Labels.from_pairs({
            q: [(a, b) for a in items for b in items if labels.grade(q, a) > labels.grade(q, b)]
            for q in labels.queries
        })  # fmt: skip
    model = make("weighted_markov", rounds=rounds).fit(p, given)
    assert model.weights_["good"] > 0.5 > model.weights_["fair"] >= model.weights_["bad"]
    assert sum(model.weights_.values()) == pytest.approx(1)
    scores = [
        evaluate(m.aggregate(new), truth, "ndcg").mean()["ndcg"] for m in (model, make("mc2"), make("rrf"))
    ]
    assert scores[0] > max(scores[1:]) + 0.02


def test_experts_that_all_mislead_stay_alike() -> None:
    p = Preferences.from_lists({"q": {"x": ["c", "b", "a"], "y": ["c", "b", "a"]}})
    model = make("weighted_markov").fit(p, Labels.from_dict({"q": {"a": 2, "b": 1, "c": 0}}))
    assert model.weights_ == {"x": 0.5, "y": 0.5}
    with pytest.raises(ParameterError, match="not trained on expert 'z'"):
        model.aggregate(Preferences.from_lists({"q": {"z": ["a"]}}))
