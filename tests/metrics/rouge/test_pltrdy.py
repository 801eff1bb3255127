"""The preset pltrdy. Oracle: values of the package rouge 1.0.1 on these texts (4,200 more pairs agreed to 1e-12)."""

from __future__ import annotations

import pytest

from judge.core.errors import ConfigError
from judge.core.records import Failure, Sample, Score
from judge.metrics.base import Note
from judge.metrics.rouge import Rouge, score
from tests.factories import has_line

VECTORS: list[tuple[str, str, list[tuple[float, float, float]]]] = [  # P, R, F of rouge-1, rouge-2 and rouge-l
    (
        "The ferry was late. The ferry was full.", "The ferry was late, and full of people. It left.",
        [(4 / 5, 4 / 10, 0.533333328888889), (2 / 5, 2 / 9, 0.285714281122449), (4 / 5, 4 / 10, 0.533333328888889)],
    ),
    ("a b c a b", "b a c b a", [(1, 1, 0.999999995), (0, 0, 0), (2 / 3, 2 / 3, 0.6666666616666668)]),
    (
        "U.S. prices rose 3.5% in May.", "Prices in the U.S. rose.",
        [(4 / 8, 4 / 6, 0.5714285665306124), (1 / 7, 1 / 5, 0.1666666618055557), (4 / 8, 4 / 6, 0.5714285665306124)],
    ),
    (
        "the cat  sat\non the mat", "The cat sat on the mat.",
        [(1, 5 / 6, 0.9090909041322315), (4 / 5, 4 / 5, 0.7999999950000002), (1, 5 / 6, 0.9090909041322315)],
    ),
    ("a. . b", "b. a", [(2 / 3, 1, 0.7999999952000001), (0, 0, 0), (2 / 3, 1, 0.7999999952000001)]),  # an empty word
]  # fmt: skip


@pytest.mark.parametrize(("output", "reference", "expected"), VECTORS)
def test_values_equal_recorded_values_of_the_package(
    output: str, reference: str, expected: list[tuple[float, float, float]]
) -> None:
    scores = score([output], [reference], preset="pltrdy")
    assert list(scores) == ["rouge-1", "rouge-2", "rouge-l"]
    for (value,), numbers in zip(scores.values(), expected, strict=True):
        assert value == pytest.approx(numbers, abs=1e-12)


@pytest.mark.parametrize("output", ["", ".", "..."])
def test_a_text_on_which_the_package_fails_is_a_failure(output: str) -> None:
    samples = [
        Sample("1", "a", output, references=("b",)),
        Sample("2", "a", "b. c", references=("...",)),
    ]
    result = Rouge(preset="pltrdy").score(samples)
    assert [row.error for row in result.rows if isinstance(row, Failure)] == ["EmptyOutput"] * 3 + [
        "NoTokens"
    ] * 3


def test_full_width_letters_are_not_normalised() -> None:
    metric = Rouge(preset="pltrdy", types="rouge-1,rouge-l", values="p")
    result = metric.score([Sample("1", "a", "Ｌate ferry", references=("Late ferry",))])
    assert [row.value for row in result.rows if isinstance(row, Score)] == [0.5, 0.5]


def test_signature_names_the_preset() -> None:
    metric = Rouge(preset="pltrdy", types="rouge-1,rouge-l", values="p")
    result = metric.score([Sample("1", "a", "late ferry", references=("late ferry",))])
    parts = "|p|nrefs=1|stem=no|tok=pltrdy|refs=best|preset=pltrdy|judge "
    assert len(result.columns) == 2
    for column in result.columns:
        assert parts in str(column.signature)


def test_a_note_counts_texts_in_scripts_without_spaces() -> None:
    metric = Rouge(preset="pltrdy", types="rouge-1,rouge-l", values="p")
    notes = metric.score([Sample("1", "a", "渡轮下午才到港口", references=("渡轮到港口",))]).notes
    (note,) = [note for note in notes if isinstance(note, Note) and note.some]
    assert has_line(str(note), "rouge: 2 of 2 texts", "script", "pltrdy")


def test_the_tokenizer_splits_at_white_space() -> None:
    (value,) = score(["The cat, sat"], ["the cat, sat"], ["rouge1"], tokenizer="spaces")["rouge1"]
    assert value == pytest.approx((2 / 3, 2 / 3, 2 / 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"types": "rouge-6"}, "'rouge-6' .*rouge-1 to rouge-5, rouge-l"),
        ({"types": "rouge-1", "preset": None}, "preset to pltrdy"),
        ({"tokenizer": "spaces"}, "rouge.preset pltrdy .*tokenizer"),
        ({"alpha": 0.2}, "pltrdy .*stopwords, alpha or beta"),
        ({"implementation": "rouge-score"}, "does not support rouge.preset"),
    ],
)
def test_options_that_the_preset_does_not_support_are_errors(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Rouge(**{"preset": "pltrdy", **options})  # type: ignore[arg-type]
