"""Turn embeddings into BERTScore (Zhang et al. 2020, "BERTScore: Evaluating Text Generation with BERT"), in numpy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from judge.core.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LOW, HIGH = 0.65, 0.85
"""The F that a corrected score counts 0, and the one it counts 1, where nothing was fitted."""
_FEWEST = 10
_NARROWEST = 1e-3
_CELLS = 2**23  # similarities in memory: 32 MiB for texts of any length


class BertScoreValue(NamedTuple):
    """Precision, recall and their harmonic mean, at most 1 and, with contextual embeddings, seldom below 0.

    Rescaled with a baseline, they may be negative.
    """

    precision: float
    recall: float
    fmeasure: float


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded text: token ids, shape (n,), and unit vectors, shape (n, dimensions), including special tokens.

    `length` counts its tokens before any cut, `windows` the pieces that the model read.
    """

    ids: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.float32]
    length: int
    windows: int = 1


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each token: 1 or its inverse document frequency; 0 for a sentence's first and last special token.

    `frequencies` is the number of `documents` in which a token occurs; None weights all equally.
    """

    weightless: frozenset[int]
    documents: int = 0
    frequencies: Mapping[int, int] | None = None

    @classmethod
    def from_documents(cls, weightless: frozenset[int], documents: Iterable[npt.NDArray[np.int32]]) -> Weights:
        """Return the weights idf(w) = log((M + 1) / (df(w) + 1)) over M documents; equal documents count each time."""
        frequencies: Counter[int] = Counter()
        count = 0
        for ids in documents:
            frequencies.update(set(ids.tolist()))
            count += 1
        return cls(weightless, count, frequencies)

    def __call__(self, ids: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """Return one weight per token, shape (n,). A token in no document weighs most."""
        import numpy as np

        if self.frequencies is None:
            return (~np.isin(ids, list(self.weightless))).astype(np.float64)
        known, more = self.frequencies, self.documents + 1
        return np.array([math.log(more / (known.get(token, 0) + 1)) for token in ids.tolist()], dtype=np.float64)


def greedy_match(
    output: Encoded, output_weights: npt.NDArray[np.float64], reference: Encoded, weights: npt.NDArray[np.float64]
) -> BertScoreValue:
    """Match tokens greedily by cosine (eq. 1 and 2 of the paper); special tokens may be matched too.

    The weights of either text must not add up to 0. F is 0 if precision and recall are; NaN if they cancel out.
    """
    best_output, best_reference = _best_products(output.vectors, reference.vectors)
    precision = min(float(best_output @ output_weights) / float(output_weights.sum()), 1.0)
    recall = min(float(best_reference @ weights) / float(weights.sum()), 1.0)
    if precision == recall == 0:
        return BertScoreValue(precision, recall, 0.0)
    fmeasure = 2 * precision * recall / (precision + recall) if precision + recall else math.nan
    return BertScoreValue(precision, recall, fmeasure)


def _best_products(
    rows: npt.NDArray[np.float32], columns: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return, for each vector of each matrix, its greatest product with a vector of the other."""
    import numpy as np

    if len(rows) < len(columns):
        best_columns, best_rows = _best_products(columns, rows)
        return best_rows, best_columns
    height = max(_CELLS // len(columns), 1)
    best_rows = np.empty(len(rows), dtype=np.float32)
    best_columns = np.full(len(columns), -np.inf, dtype=np.float32)
    for start in range(0, len(rows), height):
        table = rows[start : start + height] @ columns.T
        best_rows[start : start + height] = table.max(axis=1)
        np.maximum(best_columns, table.max(axis=0), out=best_columns)
    return best_rows, best_columns


def best_reference(values: Sequence[BertScoreValue]) -> BertScoreValue:
    """Return the best precision, recall and F over references, each for itself, as bert-score does."""
    return BertScoreValue(
        max(v.precision for v in values), max(v.recall for v in values), max(v.fmeasure for v in values)
    )


def rescaled(value: BertScoreValue, baseline: tuple[float, float, float]) -> BertScoreValue:
    """Return (x - b) / (1 - b) with a baseline b for precision, recall and F (section "Baseline Rescaling")."""
    numbers = (value.precision, value.recall, value.fmeasure)
    return BertScoreValue(*((x - b) / (1 - b) for x, b in zip(numbers, baseline, strict=True)))


def rescale_linear(f: float, low: float = LOW, high: float = HIGH) -> float:
    """Return clip((F - low) / (high - low), 0, 1).

    Raise ConfigError unless low < high.
    """
    if not low < high:
        raise ConfigError(f"bertscore: low ({low:g}) must be less than high ({high:g})")
    return min(max((f - low) / (high - low), 0.0), 1.0)


def fit_rescaling(f: Sequence[float], ratings: Sequence[float]) -> tuple[float, float]:
    """Return the low and high whose corrected scores are closest to people's ratings, by least squares.

    The ratings are first scaled from their own minimum and maximum to 0 and 1. Raise ConfigError for fewer than 10
    pairs, for constant scores or ratings, and if ratings do not rise with F.
    """
    import numpy as np
    from scipy.optimize import minimize

    scores, targets = np.asarray(f, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    if len(scores) != len(targets):
        raise ConfigError(f"bertscore: {len(scores)} scores cannot be fitted to {len(targets)} ratings")
    if len(scores) < _FEWEST:
        raise ConfigError(f"bertscore: {len(scores)} rated texts are too few to fit; at least {_FEWEST} are needed")
    if not (np.isfinite(scores).all() and np.isfinite(targets).all()):
        raise ConfigError("bertscore: a score or rating to be fitted is not a finite number")
    if not np.ptp(scores) > 0 or not np.ptp(targets) > 0:
        raise ConfigError("bertscore: cannot be fitted, because all scores or all ratings are equal")
    targets = (targets - targets.min()) / np.ptp(targets)
    slope, offset = np.polyfit(scores, targets, 1)
    if not slope > 0:
        raise ConfigError("bertscore: cannot be fitted, because the ratings do not rise with F")
    # Clipping causes local minima, so search from several starts.
    marks = np.quantile(scores, [0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98])
    starts = [(a, b - a) for i, a in enumerate(marks) for b in marks[i + 1 :] if b - a > _NARROWEST]
    starts.insert(0, (-offset / slope, 1 / slope))

    def squares(point: npt.NDArray[np.float64]) -> float:
        low, width = point
        if width < _NARROWEST:
            return math.inf
        return float(((np.clip((scores - low) / width, 0, 1) - targets) ** 2).sum())

    best_starts = sorted(starts, key=lambda start: squares(np.array(start)))[:3]
    options = {"xatol": 1e-7, "fatol": 1e-12, "maxiter": 2000}
    optima = [minimize(squares, start, method="Nelder-Mead", options=options) for start in best_starts]
    low, width = min(optima, key=lambda result: float(result.fun)).x
    return float(low), float(low + width)
