"""From embeddings to values, without any model."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from judge.core.errors import ConfigError
from judge.metrics import bertscore
from judge.metrics.bertscore import (
    BertScoreValue,
    Weights,
    best_reference,
    greedy_match,
    rescale_linear,
    rescaled,
)
from judge.metrics.bertscore.embedder import Encoded


def encoded(seed: int, count: int, dimensions: int = 7) -> Encoded:
    chance = np.random.default_rng(seed)
    vectors = chance.normal(size=(count, dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = chance.integers(3, 9, size=count).astype(np.int32)
    ids[0], ids[-1] = 1, 2
    return Encoded(ids, vectors, count)


def by_the_paper(
    output: Encoded, reference: Encoded, weight: Callable[[int], float]
) -> tuple[float, float]:
    """Return precision and recall by equation 1 with the weights of equation 2, token by token."""

    def matched_share(text: Encoded, opposite: Encoded) -> float:
        weights = [weight(int(token)) for token in text.ids]
        nearest = [max(float(np.dot(x, y)) for y in opposite.vectors) for x in text.vectors]
        return sum(w * n for w, n in zip(weights, nearest, strict=True)) / sum(weights)

    precision = matched_share(output, reference)
    recall = matched_share(reference, output)
    return precision, recall


@pytest.mark.parametrize(("output_tokens", "reference_tokens"), [(3, 9), (9, 3), (40, 41), (3, 3)])
@pytest.mark.parametrize("cells", [2**23, 20, 100])
def test_matching_as_a_whole_or_in_strips_equals_the_papers(
    monkeypatch: pytest.MonkeyPatch, output_tokens: int, reference_tokens: int, cells: int
) -> None:
    monkeypatch.setattr(bertscore, "_CELLS", cells)
    output = encoded(1, output_tokens)
    reference = encoded(2, reference_tokens)
    weights = Weights(frozenset({1, 2}))
    value = greedy_match(output, weights(output.ids), reference, weights(reference.ids))
    precision, recall = by_the_paper(output, reference, lambda token: float(token > 2))
    assert value.precision == pytest.approx(precision, abs=1e-6)
    assert value.recall == pytest.approx(recall, abs=1e-6)
    assert value.fmeasure == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-6)


def test_the_weight_of_a_rare_token_counts_repeated_documents() -> None:
    documents = [
        np.array(ids, dtype=np.int32) for ids in ([1, 5, 5, 2], [1, 5, 2], [1, 6, 2], [1, 6, 2])
    ]
    weights = Weights.from_documents(frozenset({1, 2}), documents)
    assert weights(np.array([1, 5, 6, 7, 2])).tolist() == pytest.approx(
        [0, math.log(5 / 3), math.log(5 / 3), math.log(5), 0]
    )


def test_weighted_matching_equals_the_papers() -> None:
    output, reference = encoded(3, 8), encoded(4, 6)
    weights = Weights.from_documents(frozenset({1, 2}), [reference.ids, encoded(5, 9).ids])
    value = greedy_match(output, weights(output.ids), reference, weights(reference.ids))
    precision, recall = by_the_paper(
        output, reference, lambda token: float(weights(np.array([token]))[0])
    )
    assert (value.precision, value.recall) == pytest.approx((precision, recall), abs=1e-6)


def test_a_text_has_a_similarity_of_at_most_1_to_itself() -> None:
    text = encoded(6, 30, dimensions=384)
    weights = Weights(frozenset({1, 2}))(text.ids)
    value = greedy_match(text, weights, text, weights)
    assert max(value.precision, value.recall, value.fmeasure) <= 1
    assert value.fmeasure == pytest.approx(1, abs=1e-6)


def test_orthogonal_texts_have_f_of_0() -> None:
    ids = np.array([5], dtype=np.int32)
    output = Encoded(ids, np.array([[1, 0]], dtype=np.float32), 1)
    reference = Encoded(ids, np.array([[0, 1]], dtype=np.float32), 1)
    assert greedy_match(output, np.ones(1), reference, np.ones(1)) == BertScoreValue(0, 0, 0)


def test_precision_recall_and_f_may_come_from_different_references() -> None:
    best = best_reference([BertScoreValue(0.9, 0.1, 0.18), BertScoreValue(0.2, 0.8, 0.32)])
    assert best == BertScoreValue(0.9, 0.8, 0.32)


def test_rescaling_maps_the_baseline_to_0_and_1_to_1() -> None:
    value = rescaled(BertScoreValue(0.8, 1.0, 0.85), (0.8, 0.7, 0.9))
    assert (value.precision, value.recall, value.fmeasure) == pytest.approx((0, 1, -0.5))


@pytest.mark.parametrize(
    ("f", "expected"), [(0.2, 0), (0.65, 0), (0.7, 0.25), (0.75, 0.5), (0.85, 1), (0.99, 1)]
)
def test_a_corrected_score_is_stretched_and_clipped(f: float, expected: float) -> None:
    assert rescale_linear(f) == pytest.approx(expected)


@pytest.mark.parametrize(("low", "high"), [(0.8, 0.8), (0.9, 0.8), (math.nan, 0.8)])
def test_a_correction_needs_low_below_high(low: float, high: float) -> None:
    with pytest.raises(ConfigError, match="low"):
        rescale_linear(0.7, low, high)
