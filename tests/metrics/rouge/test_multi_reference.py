"""Several references. Oracle: the definitions, from scores of single references."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.metrics.rouge import RougeScore, score

TEXT = st.text("abcd", min_size=1, max_size=8).map(" ".join)
KINDS = ["rouge1", "rouge2", "rougeL", "rougeW", "rougeSU4"]
LISTED = st.lists(TEXT, min_size=1, max_size=4)


def rouge_scores(
    output: str, references: Sequence[str], multi: str, **options: object
) -> list[RougeScore]:
    kinds = [*score([], [], options.get("types", KINDS), preset=options.get("preset"))]  # type: ignore[call-overload]
    columns = score([output], [references], kinds, multi=multi, preset=options.get("preset"))  # type: ignore[arg-type]
    return [
        value for column in columns.values() for value in column if isinstance(value, RougeScore)
    ]


def mean(scores: Sequence[RougeScore]) -> RougeScore:
    return RougeScore(*(sum(values) / len(scores) for values in zip(*scores, strict=True)))


@given(TEXT, LISTED)
def test_best_and_mean(output: str, references: list[str]) -> None:
    singles = zip(
        *(rouge_scores(output, [reference], "best_f") for reference in references), strict=True
    )
    for place, scores in enumerate(singles):
        assert rouge_scores(output, references, "best_f")[place] == max(
            scores, key=lambda score: score.fmeasure
        )
        assert rouge_scores(output, references, "best_recall")[place] == max(
            scores, key=lambda score: score.recall
        )
        assert rouge_scores(output, references, "mean")[place] == pytest.approx(mean(scores))


@given(TEXT, LISTED.filter(lambda listed: len(listed) > 1), st.booleans())
def test_jackknife(output: str, references: list[str], script: bool) -> None:
    options = (
        {"preset": "rouge155", "types": ["ROUGE-1", "ROUGE-L", "ROUGE-W-1.2"]} if script else {}
    )
    best = "best_recall" if script else "best_f"
    left_out = [
        rouge_scores(output, references[:place] + references[place + 1 :], best, **options)
        for place in range(len(references))
    ]
    for got, scores in zip(
        rouge_scores(output, references, "jackknife", **options),
        zip(*left_out, strict=True),
        strict=True,
    ):
        assert got == pytest.approx(mean(scores))


@given(TEXT, TEXT)
def test_all_rules_agree_on_one_reference(output: str, reference: str) -> None:
    (one, *others) = (
        rouge_scores(output, [reference], multi)
        for multi in ("best_f", "best_recall", "pooled", "mean", "jackknife")
    )
    assert all(other == one for other in others)


def test_pooled_by_hand() -> None:
    """`a b c`: 2 of 3 in `a b d`, 1 of 2 in `c x`; 3 of 5 of the references' words, 3 of twice its own three."""
    (got,) = rouge_scores("a b c", ["a b d", "c x"], "pooled", types=["rouge1"])
    assert got == pytest.approx((3 / 6, 3 / 5, 6 / 11))


def test_the_first_of_equals() -> None:
    """F is 1/2 for both; precision 1/3 and recall 1 for one, the other way round for the other."""
    first, second = "a", "a b c d e f g h i"
    (got,) = rouge_scores("a b c", [first, second], "best_f", types=["rouge1"])
    assert got == (1 / 3, 1, 1 / 2)
    (got,) = rouge_scores("a b c", [second, first], "best_f", types=["rouge1"])
    assert got == (1, 1 / 3, 1 / 2)
