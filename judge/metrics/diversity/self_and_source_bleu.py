"""Self-BLEU and source-BLEU.

Self-BLEU (Zhu et al. 2018) is the BLEU of each text against all the others, exact and in linear time. Source-BLEU is
how much of its source a text repeats, which papers on paraphrase call self-BLEU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Unpack

from judge.core.errors import DataError
from judge.core.messages import option
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.metrics import MetricResult
from judge.metrics.bleu import BleuOptions, Settings, options, score
from judge.metrics.common import CannotScore, failure, texts
from judge.metrics.diversity import ngrams
from judge.metrics.diversity.ngrams import Corpus, Cut, Grams, Ints, cut, orders, totals

_FAR = 1 << 60
_SELF_BLEU, _SOURCE_BLEU = "self_bleu", "source_bleu"


class SelfBleu:
    """Self-BLEU (0–100) of each system: the mean BLEU of its texts, each against all the others as references.

    The lower, the more diverse. It grows with the number of texts, so compare systems of equal numbers only.

    Options: `max_order` (1–9), `smooth` (exp, floor, add-k, none), `tokenize` (a tokenizer of sacrebleu; by the
    system's script unless given), `lowercase`, `effective_order`.
    """

    def __init__(
        self,
        *,
        max_order: int = 4,
        smooth: str = "exp",
        tokenize: str | None = None,
        lowercase: bool = False,
        effective_order: bool = True,
    ) -> None:
        self.settings = options(
            _SELF_BLEU,
            max_order=max_order,
            smooth=smooth,
            tokenize=tokenize,
            lowercase=lowercase,
            effective_order=effective_order,
        )

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """One row for each system; fewer than two texts, or none with a token, are a `Failure`.

        A text without a token counts 0, as in sacrebleu, and is counted in the row's note.
        """
        rows: list[Score | Failure] = []
        cuts: dict[str, Cut] = {}
        for system, own_samples in ngrams.by_system(samples).items():
            cuts[system] = system_cut = cut(self.settings.tokens, [sample.output for sample in own_samples], _SELF_BLEU)
            try:
                values = _bleu_of_each(system_cut.corpus, self.settings)
            except CannotScore as error:
                rows.append(ngrams.failure(system, _SELF_BLEU, error))
            else:
                empty = ngrams.blank(system_cut.corpus)
                note = f"{empty:,} without any token, counted as 0" if empty else None
                rows.append(ngrams.value(system, _SELF_BLEU, sum(values) / len(values), n=len(values), note=note))
        signature = f"{_SELF_BLEU}|system|{self.settings.signature(system_cut.name for system_cut in cuts.values())}"
        column = Column(_SELF_BLEU, "metric", signature, low=0.0, high=100.0, better="lower")
        notes = ngrams.notes(_SELF_BLEU, cuts, "each counts 0, which makes the system look more diverse")
        notes += ngrams.unequal_counts_note(_SELF_BLEU, rows)
        return MetricResult((column,), tuple(rows), notes)


def self_bleu(
    texts: Sequence[str],
    **opts: Unpack[BleuOptions],
) -> float:
    """Self-BLEU (0–100, the lower the more diverse) of two or more texts: the mean of `self_bleu_each`.

    It grows with the number of texts: compare sets of equal size only. With `smooth="floor"`, `tokenize="none"` and
    `effective_order=False` it is that of NLTK's `SmoothingFunction().method1` on words cut at white space, where
    no text has fewer words than `max_order`. Raises DataError for fewer than two texts, or where none has a token.
    """
    each = self_bleu_each(texts, **opts)
    return sum(each) / len(each)


def self_bleu_each(
    texts: Sequence[str],
    **opts: Unpack[BleuOptions],
) -> list[float]:
    """BLEU (0–100) of each of the texts against all the others: what sacrebleu's `sentence_score` gives.

    Zhu et al. 2018 (Texygen). A text equal to another scores 100, a text without a token 0; without `effective_order`
    a text of fewer than `max_order` tokens scores 0 as well, but for add-k. `tokenize` is one of sacrebleu's
    tokenizers, chosen by the script of all the texts unless given; `smooth` is exp, floor (0.1), add-k (1) or none.
    Time and memory are linear in the tokens of all texts. Raises DataError for fewer than two texts, or where none has
    a token; ConfigError for options that are not allowed.
    """
    settings = options(_SELF_BLEU, **opts)
    return _bleu_of_each(cut(settings.tokens, texts).corpus, settings)


def _bleu_of_each(texts: Corpus, settings: Settings) -> list[float]:
    ngrams.check_texts(texts, least=2)
    hits = [_clipped_matches(grams, len(texts.lengths)).tolist() for grams in orders(texts, settings.max_order)]
    total = [totals(texts.lengths, order).tolist() for order in range(1, settings.max_order + 1)]
    lengths = zip(texts.lengths.tolist(), _closest_lengths(texts.lengths).tolist(), strict=True)
    return [
        score(matches, ngram_totals, pair, settings)
        for matches, ngram_totals, pair in zip(zip(*hits, strict=True), zip(*total, strict=True), lengths, strict=True)
    ]


def _clipped_matches(grams: Grams, texts: int) -> Ints:
    """Count the n-grams of each text that are matched in the others.

    A count is clipped by the largest among the other texts: the largest of all, or for the text that has it the
    second largest. These two are all that has to be known of an n-gram.
    """
    import numpy as np

    if not len(grams.gram):
        return np.zeros(texts, dtype=np.int64)
    starts = np.flatnonzero(np.diff(grams.gram, prepend=-1))
    limit = np.maximum.reduceat(grams.count, starts)[grams.gram]
    tops = np.flatnonzero(grams.count == limit)
    first = tops[np.diff(grams.gram[tops], prepend=-1) != 0]
    others = grams.count.copy()
    others[first] = 0
    limit[first] = np.maximum.reduceat(others, starts)
    return np.bincount(grams.text, weights=np.minimum(grams.count, limit), minlength=texts).astype(np.int64)


def _closest_lengths(lengths: Ints) -> Ints:
    """Return, for each length, the nearest of the others; of two equally near, the shorter."""
    import numpy as np

    kinds, place, count = np.unique(lengths, return_inverse=True, return_counts=True)
    around = np.concatenate(([-_FAR], kinds, [_FAR]))
    below, above = around[place], around[place + 2]
    nearest = np.where(lengths - below <= above - lengths, below, above)
    return np.where(count[place] > 1, lengths, nearest)


class SourceBleu:
    """BLEU (0–100) of each output against its source: 0 repeats nothing of it, 100 is a copy.

    Neither end is the good one: a paraphrase should be low, a correction high. The source's script picks the tokenizer.

    Options: `max_order` (1–9), `smooth` (exp, floor, add-k, none), `tokenize` (a tokenizer of sacrebleu; by the
    source's script unless given), `lowercase`, `effective_order`.
    """

    rowwise: ClassVar[bool] = True

    def __init__(
        self,
        *,
        max_order: int = 4,
        smooth: str = "exp",
        tokenize: str | None = None,
        lowercase: bool = False,
        effective_order: bool = True,
    ) -> None:
        self.settings = options(
            _SOURCE_BLEU,
            max_order=max_order,
            smooth=smooth,
            tokenize=tokenize,
            lowercase=lowercase,
            effective_order=effective_order,
        )

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """One row per sample. A sample without a source is a `Failure`, an empty output scores 0."""
        rows: list[Score | Failure] = []
        names: set[str] = set()
        for sample in samples:
            if sample.source is None or not sample.source.strip():
                problem = "no source" if sample.source is None else "a blank source"
                advice = f"add a column `source`, or name yours with {option('map', {'source': 'COLUMN'})}"
                rows.append(failure(sample, _SOURCE_BLEU, "NoSource", f"has {problem}: {advice}"))
                continue
            name = self.settings.tokens.name([sample.source])
            names.add(name)
            number = _bleu(sample.output, sample.source, name, self.settings)
            rows.append(Score(sample.item, sample.system, _SOURCE_BLEU, number, Provenance("metric")))
        signature = f"{_SOURCE_BLEU}|sentence|{self.settings.signature(sorted(names))}"
        return MetricResult((Column(_SOURCE_BLEU, "metric", signature, low=0.0, high=100.0, better=""),), tuple(rows))


def source_bleu(
    outputs: Sequence[str],
    sources: Sequence[str],
    **opts: Unpack[BleuOptions],
) -> list[float]:
    """sacrebleu's sentence BLEU (0–100) of each output against its own source; an empty output scores 0.

    Options as in `self_bleu_each`; the tokenizer is chosen for each source. Raises DataError where there are not as
    many sources as outputs, or one is blank.
    """
    settings = options(_SOURCE_BLEU, **opts)
    if len(texts("outputs", outputs)) != len(texts("sources", sources)):
        raise DataError(f"{len(outputs):,} outputs and {len(sources):,} sources: give one source for each output")
    for place, source in enumerate(sources):
        if not source.strip():
            raise DataError(f"source {place} is blank: there is nothing to compare its output with")
    return [
        _bleu(output, source, settings.tokens.name([source]), settings)
        for output, source in zip(outputs, sources, strict=True)
    ]


def _bleu(output: str, source: str, tokenizer: str, settings: Settings) -> float:
    words = settings.tokens.words(tokenizer)
    mine, theirs = words(output), words(source)
    matches, total = [], []
    for order in range(1, settings.max_order + 1):
        grams = _grams(mine, order)
        matches.append((grams & _grams(theirs, order)).total())
        total.append(grams.total())
    return score(matches, total, (len(mine), len(theirs)), settings)


def _grams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))
