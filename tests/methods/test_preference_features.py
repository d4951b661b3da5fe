"""Preferences as item features: the singular vectors by numpy, the same model as `svd`, and export."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import podium
from podium import LambdaRank, Preferences, build_preference_features
from podium.cli import program
from podium.core.errors import InputError, ParameterError
from podium.data.demo import demo
from podium.kernels.preference_svd import build_dense_matrix
from podium.methods.learned.expert_matrices import build_expert_matrices

LISTS = {"q": {"x": ["a", "b", "c", "d"], "y": ["d", "b"]}, "r": {"y": ["e", "f", "a"]}}


@pytest.mark.parametrize("transform", ["log", "rank", "binary"])
@pytest.mark.parametrize("vectors", ["unit", "scaled"])
def test_columns_are_the_singular_vectors_of_numpy(transform, vectors) -> None:
    p = Preferences.from_lists(LISTS)
    x = build_preference_features(p, transform=transform, components=2, vectors=vectors, sizes=True)
    grouped = build_expert_matrices(p, transform)
    for number, (query, group) in enumerate(zip(grouped.matrices.query, grouped.group, strict=True)):
        u, s, vt = np.linalg.svd(build_dense_matrix(grouped.matrices, number))
        rows, expert = slice(*p.index.starts[query : query + 2]), p.experts[int(group)]
        for c in range(2):
            factor = np.sqrt(s[c]) if vectors == "scaled" else 1.0
            column = {
                k: x.values[rows, x.names.index(f"{expert}: {k} {c + 1}")] for k in ("for", "against", "size")
            }
            assert column["size"] == pytest.approx(s[c], abs=1e-9)
            if s[c] > 1e-9 and (c == 0 or s[0] - s[1] > 1e-6):
                sign = np.sign(u[:, c] @ column["for"])
                np.testing.assert_allclose(column["for"], sign * factor * u[:, c], atol=1e-6)
                np.testing.assert_allclose(column["against"], sign * factor * vt[c], atol=1e-6)


def test_lambdarank_on_them_is_svd() -> None:
    data = demo(40)
    names = data.preferences.queries.tolist()
    train, new = data.preferences.select(names[:30]), data.preferences.select(names[30:])
    x = build_preference_features(train)
    model = LambdaRank(passes=5).fit(x, data.labels)
    other = podium.make("svd(passes=5)").fit(train, data.labels)
    experts = train.experts.tolist()
    scores = model.predict(build_preference_features(new, experts=experts))
    np.testing.assert_allclose(scores, other.aggregate(new).scores, atol=1e-9)


def test_columns_for_new_queries_are_those_of_training() -> None:
    p = Preferences.from_lists({"q": {"y": ["a", "b"], "z": ["b", "a"]}})
    x = build_preference_features(p, experts=["x", "y"])
    assert x.names == build_preference_features(Preferences.from_lists(LISTS)).names
    assert x.values[:, x.names.index("x: unlisted")].tolist() == [1, 1]
    assert not x.values[:, x.names.index("x: for")].any()
    whole = build_preference_features(p, combined=True)
    assert whole.names == ("all: for", "all: against", "all: unlisted")


@pytest.mark.parametrize(
    "wrong", [{"transform": "cube"}, {"vectors": "long"}, {"components": 0}, {"components": 2.5}]
)
def test_wrong_arguments(wrong) -> None:
    with pytest.raises(ParameterError, match=f"{next(iter(wrong))} is .*; accepted"):
        build_preference_features(Preferences.from_lists(LISTS), **wrong)
    with pytest.raises(InputError, match="same name as text"):
        build_preference_features(Preferences.from_lists({"q": {1: ["a"], "1": ["b"]}}))


def test_export_as_frame_and_file(tmp_path) -> None:
    p = Preferences.from_lists(LISTS)
    x = build_preference_features(p)
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    frame = x.to_frame()
    assert frame.column_names == ["query", "item", *x.names]
    np.testing.assert_array_equal(frame["x: for"].to_numpy(), x.values[:, 0])
    podium.write(p, tmp_path / "lists.csv")
    path = str(tmp_path / "x.txt")
    words = ["convert", str(tmp_path / "lists.csv"), "--preference-features", "--to", "letor", "-o", path]
    done = CliRunner().invoke(program, words)
    assert done.exit_code == 0, done.output
    again = podium.read(path, "letor", kind="features").features
    np.testing.assert_array_equal(again.align(x.index), x.values)
    bad = podium.Features(x.index, x.values[:, :1], ("item",))
    with pytest.raises(InputError, match="a feature is called 'item'"):
        bad.to_frame()
