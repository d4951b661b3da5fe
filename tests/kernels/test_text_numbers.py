"""The decimal numbers of text files against Python's float: rounded once, or left to it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.formats.text_lines import RUN
from podium.kernels import text_columns


def parse_scores(texts: list[str]) -> np.ndarray:
    lines = "".join(f"q Q0 d{i} 1 {text} run\n" for i, text in enumerate(texts)).encode()
    rows = text_columns.tokenize_lines(np.frombuffer(lines, np.uint8), RUN.shape, np.array([0]), 0)
    return rows.score


def random_numbers(random: np.random.Generator) -> list[str]:
    """Texts of 15 to 19 digits: of doubles, of decimals, and halfway between two doubles."""
    real, whole = (
        random.normal(size=50) * 10.0 ** random.integers(-3, 4, 50),
        random.integers(2**53, 2**62, 50),
    )
    return [
        *map(repr, real.tolist()),
        *(f"{x:.18g}" for x in real.tolist()),
        *map(str, whole.tolist()),
        *(f"{m}.5" for m in random.integers(2**52, 2**53, 50).tolist()),
        *(f"{m}e-{k}" for m, k in zip(whole.tolist(), random.integers(0, 25, 50).tolist(), strict=True)),
    ]


def test_numbers_are_rounded_once(random):
    texts = random_numbers(random)
    scores, wanted = parse_scores(texts), np.array(list(map(float, texts)))
    slow = np.isnan(scores)
    assert slow.mean() < 0.2  # 20 digits and more, powers below -22
    np.testing.assert_array_equal(scores[~slow], wanted[~slow])


@settings(max_examples=300)
@given(st.integers(0, 10**19 - 1), st.integers(-30, 30))
def test_any_decimal(digits, power):
    text = f"{digits}e{power}"
    (score,) = parse_scores([text])
    assert np.isnan(score) or score == float(text)


@pytest.mark.parametrize(
    "text",
    [
        "9007199254740993",
        "9007199254740995",
        "0.9007199254740993",
        "18014398509481987",
        "9999999999999999999",
    ],
)
def test_ties_go_to_the_even_number(text):
    assert parse_scores([text]) == [float(text)]
