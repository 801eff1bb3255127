"""Several references. Oracle: the definitions, applied to scores of single references."""

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
def test_best_and_mean_equal_the_definitions(output: str, references: list[str]) -> None:
    best_f = rouge_scores(output, references, "best_f")
    best_recall = rouge_scores(output, references, "best_recall")
    means = rouge_scores(output, references, "mean")
    by_reference = [rouge_scores(output, [reference], "best_f") for reference in references]
    by_type = zip(*by_reference, strict=True)
    for index, scores in enumerate(by_type):
        assert best_f[index] == max(scores, key=lambda score: score.fmeasure)
        assert best_recall[index] == max(scores, key=lambda score: score.recall)
        assert means[index] == pytest.approx(mean(scores))


@given(TEXT, LISTED.filter(lambda listed: len(listed) > 1), st.booleans())
def test_jackknife_is_the_mean_over_references_left_out(
    output: str, references: list[str], script: bool
) -> None:
    options = {}
    best = "best_f"
    if script:
        options = {"preset": "rouge155", "types": ["ROUGE-1", "ROUGE-L", "ROUGE-W-1.2"]}
        best = "best_recall"
    by_reference_left_out = [
        rouge_scores(output, references[:index] + references[index + 1 :], best, **options)
        for index in range(len(references))
    ]
    by_type = zip(*by_reference_left_out, strict=True)
    jackknife = rouge_scores(output, references, "jackknife", **options)
    for value, scores in zip(jackknife, by_type, strict=True):
        assert value == pytest.approx(mean(scores))


@given(TEXT, TEXT)
def test_all_rules_agree_on_one_reference(output: str, reference: str) -> None:
    best_f = rouge_scores(output, [reference], "best_f")
    for rule in ("best_recall", "pooled", "mean", "jackknife"):
        assert rouge_scores(output, [reference], rule) == best_f


def test_pooled_values_by_hand() -> None:
    """`a b c` has 2 of 3 words of `a b d` and 1 of 2 of `c x`. Recall is 3/5; precision is 3 of twice three words."""
    (got,) = rouge_scores("a b c", ["a b d", "c x"], "pooled", types=["rouge1"])
    assert got == pytest.approx((3 / 6, 3 / 5, 6 / 11))


def test_the_first_of_equal_references_counts() -> None:
    """F is 1/2 for both. Precision is 1/3 and recall 1 for the short one, and the reverse for the long one."""
    short, long = "a", "a b c d e f g h i"
    (value,) = rouge_scores("a b c", [short, long], "best_f", types=["rouge1"])
    assert value == (1 / 3, 1, 1 / 2)
    (value,) = rouge_scores("a b c", [long, short], "best_f", types=["rouge1"])
    assert value == (1, 1 / 3, 1 / 2)
