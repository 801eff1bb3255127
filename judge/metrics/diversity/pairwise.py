"""Pairwise-BLEU (Shen et al. 2019): the BLEU of every text against every other one of its group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from judge.core.errors import DataError
from judge.core.records import Column, Failure, Sample, Score
from judge.metrics import MetricResult
from judge.metrics.bleu import BleuOptions, Settings, options, score
from judge.metrics.common import CannotScore, choice_option
from judge.metrics.common import texts as text_list
from judge.metrics.diversity import ngrams
from judge.metrics.diversity.ngrams import Corpus, Cut, Grams, Ints, cut, orders, totals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Matrix: TypeAlias = csr_array[Any]
    Floats: TypeAlias = NDArray[np.float64]

MOST = 20_000
"""Texts of one group; the pairs of more would take minutes, growing with the square."""
_PAIRS = 1_000_000  # looked at together: some 200 MB
_FLOOR, _ADD_K = 0.1, 1  # sacrebleu's, from Chen and Cherry 2014
_NAMES = ("pairwise_bleu", "pairwise_bleu_corpus")


@dataclass(frozen=True, slots=True)
class _PairwiseValues:
    """Mean BLEU of the ordered pairs of each group, and the BLEU of all groups' pairs as one corpus (0–100)."""

    groups: list[float]
    pooled: float


class PairwiseBleu:
    """Pairwise-BLEU (0–100) of each system: the BLEU of its texts against each other, the lower the more diverse.

    `pairwise_bleu` is the mean of sentence BLEU over ordered pairs, `pairwise_bleu_corpus` one corpus BLEU of them all,
    which is what fairseq's script computes (with `tokenize="none"`). Where at least half of a system's texts share
    their source with another, pairs are of texts of one source, means are averaged over the sources, and texts
    alone with their source are left out; else any two texts of the system are a pair.

    Options: `groups` ("source" or "system" for one of these whatever the data; None to choose), and those of
    `self_bleu`: `max_order`, `smooth`, `tokenize`, `lowercase`, `effective_order`.
    """

    def __init__(
        self,
        *,
        groups: str | None = None,
        max_order: int = 4,
        smooth: str = "exp",
        tokenize: str | None = None,
        lowercase: bool = False,
        effective_order: bool = True,
    ) -> None:
        self.groups = None if groups is None else choice_option("pairwise_bleu.groups", groups, ("source", "system"))
        self.settings = options(
            _NAMES[0],
            max_order=max_order,
            smooth=smooth,
            tokenize=tokenize,
            lowercase=lowercase,
            effective_order=effective_order,
        )

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Two rows for each system, or `Failure`s: fewer than two texts, no token, over 20,000 texts in a group."""
        rows: list[Score | Failure] = []
        cuts: dict[str, Cut] = {}
        kinds: set[str] = set()
        for system, own_samples in ngrams.by_system(samples).items():
            kind, groups = self._groups(own_samples)
            kinds.add(kind)
            cuts[system] = own_cut = cut(self.settings.tokens, [t for group in groups for t in group], _NAMES[0])
            try:
                values = _pairwise(own_cut.corpus, [len(group) for group in groups], self.settings)
            except CannotScore as error:
                rows += [ngrams.failure(system, column, error) for column in _NAMES]
            else:
                used, blanks = sum(map(len, groups)), ngrams.blank(own_cut.corpus)
                parts = ["all texts of the system are one group"]
                if kind == "source":
                    parts = [f"mean over {ngrams.count(len(groups), 'source')} of two or more texts"]
                if used < len(own_samples):
                    parts.append(f"{len(own_samples) - used:,} alone with their source left out")
                if blanks:
                    parts.append(f"{blanks:,} without any token")
                n, note = len(own_cut.corpus.lengths), "; ".join(parts)
                rows += [
                    ngrams.value(system, column, number, n=n, note=note)
                    for column, number in zip(_NAMES, (_mean(values.groups), values.pooled), strict=True)
                ]
        notes = ngrams.notes(_NAMES[0], cuts, "each of their pairs counts 0")
        grouping = "+".join(sorted(kinds)) or self.groups or "system"
        shared = self.settings.signature(system_cut.name for system_cut in cuts.values())
        columns = tuple(
            Column(name, "metric", f"{name}|{form}|groups={grouping}|{shared}", low=0.0, high=100.0, better="lower")
            for name, form in zip(_NAMES, ("mean", "pooled"), strict=True)
        )
        return MetricResult(columns, tuple(rows), notes)

    def _groups(self, samples: Sequence[Sample]) -> tuple[str, list[list[str]]]:
        sources = [sample.source if sample.source and sample.source.strip() else None for sample in samples]
        sizes = Counter(source for source in sources if source is not None)
        shared = sum(size for size in sizes.values() if size > 1)
        kind = self.groups or ("source" if 0 < len(samples) <= 2 * shared else "system")
        if kind == "system":
            return kind, [[sample.output for sample in samples]]
        groups: dict[str, list[str]] = {}
        for sample, source in zip(samples, sources, strict=True):
            if source is not None and sizes[source] > 1:
                groups.setdefault(source, []).append(sample.output)
        return kind, list(groups.values())


def pairwise_bleu(
    texts: Sequence[str] | Sequence[Sequence[str]],
    *,
    pooled: bool = False,
    **opts: Unpack[BleuOptions],
) -> float:
    """Pairwise-BLEU (0–100, the lower the more diverse) of two or more texts, or of groups of them.

    The mean of sacrebleu's sentence BLEU over the ordered pairs of a group (a text, and another as its one reference),
    averaged over the groups; with `pooled`, one corpus BLEU of all groups' pairs, which is what the script of fairseq
    (Shen et al. 2019) computes with `tokenize="none"`. Other options as in `self_bleu_each`. Raises DataError for a
    group of fewer than two texts or more than 20,000, and where no text has a token.
    """
    settings = options(_NAMES[0], **opts)
    single = isinstance(texts, str) or not texts or any(isinstance(text, str) for text in texts)
    groups = [text_list("texts", texts)] if single else [text_list("a group", group) for group in texts]
    for place, group in enumerate(groups, start=1):
        if len(group) < 2:
            raise DataError(f"group {place} of {len(groups)} has fewer than two texts: there is no pair in it")
    corpus = cut(settings.tokens, [text for group in groups for text in group]).corpus
    values = _pairwise(corpus, [len(group) for group in groups], settings)
    return values.pooled if pooled else _mean(values.groups)


def _pairwise(texts: Corpus, groups: Sequence[int], settings: Settings) -> _PairwiseValues:
    """Compute both forms; `groups` are the sizes of consecutive groups of the texts. Raises CannotScore."""
    import numpy as np

    if not groups:
        raise CannotScore("NoSharedSource", "no two texts have one source: leave out groups, or set it to system")
    ngrams.check_texts(texts, least=2)
    if (most := max(groups)) > MOST:
        message = (
            f"{most:,} texts in one group have {most * (most - 1):,} pairs: take a sample of up to {MOST:,} texts, "
        )
        raise CannotScore("TooManyTexts", message + "or self_bleu, whose time is linear")
    sizes = np.array(groups, dtype=np.int64)
    group = np.repeat(np.arange(len(sizes)), sizes)
    sums, hits = _sum_pairs(texts, group, settings)
    others = sizes[group] - 1
    total = [int((others * totals(texts.lengths, order)).sum()) for order in range(1, settings.max_order + 1)]
    length = int((others * texts.lengths).sum())  # every text is a text as often as it is a reference
    means = np.minimum(sums / (sizes * (sizes - 1)), 100.0)
    return _PairwiseValues(means.tolist(), score(hits, total, (length, length), settings))


def _sum_pairs(texts: Corpus, group: Ints, settings: Settings) -> tuple[Any, list[int]]:
    """Return the sum of the ordered pairs' BLEU of each group, and the matches of all pairs by order."""
    import numpy as np

    shared = [_feature_matrix(grams, len(group)) for grams in orders(texts, settings.max_order, group)]
    sums, hits = np.zeros(group[-1] + 1), np.zeros(settings.max_order, dtype=np.int64)
    # Blocks of about `_PAIRS` pairs bound the memory.
    pairs = np.bincount(group)[group]
    number = (np.cumsum(pairs) - 1) // _PAIRS
    edges = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(pairs)]
    for first, last in pairwise(edges):
        rows, columns, matches = _count_matches(shared, slice(first, last))
        values = _bleu_of_pairs(matches, texts.lengths[rows], texts.lengths[columns], settings)
        sums += np.bincount(group[rows], weights=values, minlength=len(sums))
        hits += [int(of_order.sum()) for of_order in matches]
    return sums, hits.tolist()


def _feature_matrix(grams: Grams, texts: int) -> Matrix:
    """Return a 0/1 matrix, texts × features, in which two rows share as many ones as the texts have matches.

    An n-gram that a text has c times is c features, "at least once" to "at least c times": two texts share
    min(c, c') of them, BLEU's clipped count.
    """
    import numpy as np
    from scipy.sparse import csr_array

    most = int(grams.count.max(initial=1))
    first = np.cumsum(grams.count) - grams.count
    times = np.arange(grams.count.sum()) - np.repeat(first, grams.count)
    kinds, feature = np.unique(np.repeat(grams.gram, grams.count) * most + times, return_inverse=True)
    ones = np.ones(len(feature), dtype=np.int32)
    return csr_array((ones, (np.repeat(grams.text, grams.count), feature)), shape=(texts, max(len(kinds), 1)))


def _count_matches(shared: Sequence[Matrix], block: slice) -> tuple[Ints, Ints, list[Ints]]:
    """Return the pairs of a block's texts with texts that share a token, and their shared n-grams by order."""
    import numpy as np

    number = shared[0].shape[0]
    keys, first = _nonzero_products(shared[0], block)
    all_matches = [first]
    for matrix in shared[1:]:
        own_keys, values = _nonzero_products(matrix, block)
        matches = np.zeros(len(keys), dtype=np.int64)
        matches[np.searchsorted(keys, own_keys)] = values  # who shares an n-gram shares its tokens
        all_matches.append(matches)
    rows, columns = keys // number, keys % number
    apart = rows != columns
    return rows[apart], columns[apart], [of_order[apart] for of_order in all_matches]


def _nonzero_products(matrix: Matrix, block: slice) -> tuple[Ints, Ints]:
    """Return the nonzero cells of a block of matrix · matrixᵀ: sorted row · number of texts + column, and values."""
    import numpy as np

    product = (matrix[block] @ matrix.T).tocsr()
    product.sort_indices()
    rows = np.repeat(np.arange(block.start, block.stop), np.diff(product.indptr))
    return rows * matrix.shape[0] + product.indices, product.data.astype(np.int64)


def _bleu_of_pairs(hits: Sequence[Ints], lengths: Ints, closest: Ints, settings: Settings) -> Floats:
    """Compute `score` for many texts at once; `hits[n - 1]` are their matching n-grams of order n.

    As `sacrebleu.metrics.bleu.BLEU.compute_bleu` 2.6 does it, to the last places of a float.
    """
    import numpy as np

    logs, used, halved = np.zeros(len(lengths)), np.zeros(len(lengths)), np.ones(len(lengths))
    with np.errstate(divide="ignore", invalid="ignore"):  # the logarithm of no match; orders longer than the text
        for n, matches in enumerate(hits, start=1):
            added = _ADD_K if settings.smooth == "add-k" and n > 1 else 0
            total = totals(lengths, n) + added
            missed = matches + added == 0
            halved[missed] *= 2
            smoothed = {"exp": 100.0 / (halved * total), "floor": 100.0 * _FLOOR / total}.get(settings.smooth, 0.0)
            precision = np.where(missed, smoothed, 100.0 * (matches + added) / total)
            has_ngrams = total > 0
            if settings.effective_order:
                logs += np.where(has_ngrams, np.log(precision), 0.0)
                used += has_ngrams
            else:
                logs += np.where(has_ngrams, np.log(precision), -np.inf)
                used += 1
        brevity = np.where(lengths < closest, np.exp(1 - closest / lengths), 1.0)
        matched = np.any([order_matches > 0 for order_matches in hits], axis=0)
        return np.where(matched, np.minimum(brevity * np.exp(logs / used), 100.0), 0.0)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
