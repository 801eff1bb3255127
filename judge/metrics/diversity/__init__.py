"""Measure how much a system repeats itself (distinct-N, Self-BLEU, Pairwise-BLEU) or its source (source-BLEU).

distinct-N (Li et al. 2016) is the share of distinct n-grams. Self-BLEU (Zhu et al. 2018) is the BLEU of each text
against all others, exact and in linear time. Pairwise-BLEU (Shen et al. 2019) compares every text with every other one
of its group. Source-BLEU is how much a text repeats its source; papers on paraphrase call it self-BLEU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, Unpack

from judge.core.errors import ConfigError, DataError
from judge.core.format import plural
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.metrics import MetricResult
from judge.metrics.base import setting
from judge.metrics.bleu import (
    HIGHEST_ORDER,
    BleuOptions,
    DiversitySettings,
    Settings,
    Tokens,
    signed_version,
)
from judge.metrics.common import (
    CannotScore,
    by_system,
    choice_option,
    failure,
    form_note,
    lacks_source,
    values,
    whole_number,
)
from judge.metrics.common import texts as text_list
from judge.metrics.diversity import ngrams
from judge.metrics.diversity.ngrams import Corpus, Cut, Grams, Ints, cut, orders, totals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Matrix: TypeAlias = csr_array[Any]
    Floats: TypeAlias = NDArray[np.float64]

__all__ = [
    "Distinct", "PairwiseBleu", "SelfBleu", "SourceBleu", "distinct", "pairwise_bleu", "self_bleu", "self_bleu_each",
    "source_bleu",
]  # fmt: skip


def _orders_option(option: str, value: Any) -> tuple[int, ...]:
    numbers = tuple(value) if isinstance(value, Sequence) else (value,)
    for number in numbers:
        whole_number(option, number, 1, HIGHEST_ORDER)
    if not numbers or len(set(numbers)) < len(numbers):
        raise ConfigError(f"{option} must be one or more different numbers, not {value!r}")
    return numbers


@dataclass(frozen=True, kw_only=True)
class Distinct(Tokens):
    """distinct-N (0–1) of each system: its distinct n-grams over all its n-grams, the higher the more diverse.

    The n-grams of all texts of the system are counted together; none crosses texts. The value falls with the number of
    tokens: compare systems with about as many.

    Options: `orders` (a number or a list of numbers from 1 to 9), `per` ("ngrams", or "tokens" to divide by tokens as
    in Li et al. 2016), `tokenize` (a tokenizer of sacrebleu; default: by the system's script), `lowercase`.
    """

    name: ClassVar[str] = "distinct"
    orders: int | Sequence[int] = setting((1, 2, 3, 4), _orders_option)
    per: str = setting("ngrams", choice_option, ("ngrams", "tokens"))

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return a row for each system and order, or a `Failure` if no text is long enough.

        A text without a token adds nothing and is counted in the row's note.
        """
        numbers = _orders_option("distinct.orders", self.orders)
        rows: list[Score | Failure] = []
        cuts: dict[str, Cut] = {}
        for system, own_samples in by_system(samples).items():
            cuts[system] = cut(self, [sample.output for sample in own_samples])
            corpus = cuts[system].corpus
            distinct_counts = _distinct_counts(corpus, max(numbers))
            for n in numbers:
                try:
                    share = _share(corpus, distinct_counts, n, self.per)
                except CannotScore as error:
                    rows.append(ngrams.failure(system, f"distinct{n}", error))
                else:
                    empty = ngrams.blank(corpus)
                    note = plural(len(corpus.ids), "token")
                    note += f"; {plural(empty, 'text')} without any" if empty else ""
                    rows.append(
                        ngrams.value(
                            system, f"distinct{n}", share, n=len(corpus.lengths), note=note
                        )
                    )
        case, tok = self.signed_tokens(system_cut.name for system_cut in cuts.values())
        parts = ["system", f"per={self.per}", case, tok, signed_version()]
        columns = tuple(
            Column(f"distinct{n}", "metric", Signature(f"distinct{n}", *parts), low=0.0, high=1.0)
            for n in numbers
        )
        notes = ngrams.notes(
            "distinct", cuts, "they add nothing to it"
        ) + ngrams.unequal_counts_note("distinct", rows)
        return MetricResult(columns, tuple(rows), notes)


def distinct(
    texts: Sequence[str],
    n: int = 1,
    *,
    per: str = "ngrams",
    tokenize: str | None = None,
    lowercase: bool = False,
) -> float:
    """Return distinct-N (0–1, the higher the more diverse): distinct n-grams of all texts over all their n-grams.

    `per="tokens"` divides by all their tokens, as in Li et al. 2016; the same for n = 1. `tokenize` is a tokenizer of
    sacrebleu, by default chosen by the script of all texts. Raise DataError if no text has n tokens, ConfigError for
    invalid options.
    """
    whole_number("distinct.n", n, 1, HIGHEST_ORDER)
    metric = Distinct(per=per, tokenize=tokenize, lowercase=lowercase)
    corpus = cut(metric, texts).corpus
    return _share(corpus, _distinct_counts(corpus, n), n, per)


def _distinct_counts(texts: Corpus, highest: int) -> list[int]:
    """Count the distinct n-grams of each order from 1."""
    return [int(grams.gram.max(initial=-1)) + 1 for grams in orders(texts, highest)]


def _share(texts: Corpus, kinds: Sequence[int], n: int, per: str) -> float:
    ngrams.check_texts(texts)
    total = int(totals(texts.lengths, n).sum())
    if not total:
        raise CannotScore("NoNgram", f"no text has {n} tokens: there is no {n}-gram to count")
    return kinds[n - 1] / (total if per == "ngrams" else len(texts.ids))


_FAR = 1 << 60
_SELF_BLEU, _SOURCE_BLEU = "self_bleu", "source_bleu"


@dataclass(frozen=True, kw_only=True)
class SelfBleu(DiversitySettings):
    """Self-BLEU (0–100) of each system: the mean BLEU of its texts, each against all the others as references.

    The lower, the more diverse. It grows with the number of texts, so compare only systems with equally many.

    Options: `groups` (`source` compares each text with the others of its source and averages over sources; default:
    `system`), `max_order` (1–9), `smooth` (exp, floor, add-k, none), `tokenize` (a tokenizer of sacrebleu; default: by
    the system's script), `lowercase`, `effective_order`.
    """

    name: ClassVar[str] = _SELF_BLEU
    groups: str = setting("system", choice_option, ("system", "source"))

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row for each system; fewer than two texts, or none with a token, are a `Failure`.

        A text without a token counts 0, as in sacrebleu, and is counted in the row's note.
        """
        rows: list[Score | Failure] = []
        cuts: dict[str, Cut] = {}
        for system, own_samples in by_system(samples).items():
            kind, groups = _groups(own_samples, self.groups)
            cuts[system] = own_cut = cut(self, [t for group in groups for t in group])
            try:
                means = [
                    _mean(_bleu_of_each(part, self)) for part in _parts(own_cut.corpus, groups)
                ]
            except CannotScore as error:
                rows.append(ngrams.failure(system, _SELF_BLEU, error))
            else:
                note = _groups_note(kind, groups, len(own_samples), own_cut.corpus)
                rows.append(
                    ngrams.value(
                        system, _SELF_BLEU, _mean(means), n=len(own_cut.corpus.lengths), note=note
                    )
                )
        parts = ["system"]
        if self.groups == "source":
            parts.append("groups=source")
        parts += self.signed_options(each.name for each in cuts.values())
        signature = Signature(_SELF_BLEU, *parts)
        column = Column(_SELF_BLEU, "metric", signature, low=0.0, high=100.0, better="lower")
        notes = ngrams.notes(
            _SELF_BLEU, cuts, "each counts 0, which makes the system look more diverse"
        )
        notes += ngrams.unequal_counts_note(_SELF_BLEU, rows)
        return MetricResult((column,), tuple(rows), notes)


def self_bleu(texts: Sequence[str] | Sequence[Sequence[str]], **opts: Unpack[BleuOptions]) -> float:
    """Return Self-BLEU (0–100, the lower the more diverse) of two or more texts: the mean of `self_bleu_each`.

    Of groups of texts, such as those of one source, return the mean over groups. It grows with the number of texts:
    compare only sets of equal size. With `smooth="floor"`, `tokenize="none"` and `effective_order=False` it equals
    NLTK's with `SmoothingFunction().method1` on words split at white space, if no text has fewer words than
    `max_order`. Raise DataError for fewer than two texts, or if none has a token.
    """
    metric = SelfBleu(**opts)
    groups = _as_groups(texts)
    corpus = cut(metric, [text for group in groups for text in group]).corpus
    return _mean([_mean(_bleu_of_each(part, metric)) for part in _parts(corpus, groups)])


def self_bleu_each(texts: Sequence[str], **opts: Unpack[BleuOptions]) -> list[float]:
    """Return BLEU (0–100) of each text against all the others, equal to sacrebleu's `sentence_score`.

    Zhu et al. 2018 (Texygen). A text equal to another scores 100, a text without a token 0; without `effective_order` a
    text of fewer than `max_order` tokens scores 0 as well, except with add-k. `tokenize` is a tokenizer of sacrebleu,
    by default chosen by the script of all texts; `smooth` is exp, floor (0.1), add-k (1) or none. Time and memory are
    linear in the tokens. Raise DataError for fewer than two texts or if none has a token, ConfigError for invalid
    options.
    """
    metric = SelfBleu(**opts)
    (whole,) = _parts(cut(metric, texts).corpus, [texts])
    return _bleu_of_each(whole, metric)


def _bleu_of_each(texts: Corpus, settings: Settings) -> list[float]:
    import numpy as np

    hits = [
        _clipped_matches(grams, len(texts.lengths)).tolist()
        for grams in orders(texts, settings.max_order)
    ]
    total = [totals(texts.lengths, order).tolist() for order in range(1, settings.max_order + 1)]
    # For each length the nearest other one, the shorter of two.
    kinds, place, count = np.unique(texts.lengths, return_inverse=True, return_counts=True)
    around = np.concatenate(([-_FAR], kinds, [_FAR]))
    below, above = around[place], around[place + 2]
    nearest = np.where(texts.lengths - below <= above - texts.lengths, below, above)
    closest = np.where(count[place] > 1, texts.lengths, nearest)
    return [
        settings.bleu(each)
        for each in zip(texts.lengths.tolist(), closest.tolist(), *hits, *total, strict=True)
    ]


def _clipped_matches(grams: Grams, texts: int) -> Ints:
    """Count the n-grams of each text that are matched in the others.

    A count is clipped by the largest among the other texts: the largest of all, or for the text that has it the
    second largest. Nothing else about an n-gram is needed.
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
    return np.bincount(grams.text, weights=np.minimum(grams.count, limit), minlength=texts).astype(
        np.int64
    )


@dataclass(frozen=True, kw_only=True)
class SourceBleu(DiversitySettings):
    """BLEU (0–100) of each output against its source: 0 repeats nothing of it, 100 is a copy.

    Neither end is better: a paraphrase should be low, a correction high. The source's script picks the tokenizer.

    Options: `max_order` (1–9), `smooth` (exp, floor, add-k, none), `tokenize` (a tokenizer of sacrebleu; default: by
    the source's script), `lowercase`, `effective_order`.
    """

    rowwise: ClassVar[bool] = True
    needs: ClassVar[str] = "source"

    name: ClassVar[str] = _SOURCE_BLEU

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample. A sample without a source is a `Failure`; an empty output scores 0."""
        rows: list[Score | Failure] = []
        names: set[str] = set()
        for sample in samples:
            if sample.source is None or not sample.source.strip():
                rows.append(failure(sample, _SOURCE_BLEU, "NoSource", lacks_source(sample)))
                continue
            name = self.tokenizer_for([sample.source])
            names.add(name)
            number = self.bleu(self.counts(sample.output, [sample.source], name))
            rows.append(
                Score(sample.item, sample.system, _SOURCE_BLEU, number, Provenance("metric"))
            )
        signature = Signature(_SOURCE_BLEU, "sentence", *self.signed_options(sorted(names)))
        column = Column(_SOURCE_BLEU, "metric", signature, low=0.0, high=100.0, better="")
        compared = [(sample.output, [sample.source]) for sample in samples if sample.source]
        strings = (string for output, sources in compared for string in (output, *sources))
        notes = self.note(strings, self.tokenize), form_note(_SOURCE_BLEU, compared)
        return MetricResult((column,), tuple(rows), notes)


def source_bleu(
    outputs: Sequence[str], sources: Sequence[str], **opts: Unpack[BleuOptions]
) -> list[float]:
    """Return sacrebleu's sentence BLEU (0–100) of each output against its source; an empty output scores 0.

    Options as in `self_bleu_each`; the tokenizer is chosen for each source. Raise DataError unless there are as many
    sources as outputs and none is blank.
    """
    metric = SourceBleu(**opts)
    if len(text_list("outputs", outputs)) != len(text_list("sources", sources)):
        raise DataError(
            f"{len(outputs):,} outputs and {len(sources):,} sources: give one source for each output"
        )
    pairs = enumerate(zip(outputs, sources, strict=True))
    return values(metric, [Sample(str(n), "", *pair, where=f"pair {n}") for n, pair in pairs])


MOST = 20_000
"""The most texts of a group; time grows with the square."""
_PAIRS = 1_000_000  # in memory together, about 200 MB
_FLOOR, _ADD_K = 0.1, 1  # sacrebleu's, from Chen and Cherry 2014
_NAMES = ("pairwise_bleu", "pairwise_bleu_corpus")


@dataclass(frozen=True, kw_only=True)
class PairwiseBleu(DiversitySettings):
    """Pairwise-BLEU (0–100) of each system: the BLEU of its texts against each other, the lower the more diverse.

    `pairwise_bleu` is the mean of sentence BLEU over all ordered pairs, `pairwise_bleu_corpus` one corpus BLEU of them
    all, as fairseq's script computes (with `tokenize="none"`). If at least half of a system's texts share their source
    with another, pairs are texts of one source, and other texts are excluded: a source with more texts has more pairs.
    Otherwise any two texts of the system are a pair.

    Options: `groups` ("source" or "system" to force one; None to choose), and those of `self_bleu`: `max_order`,
    `smooth`, `tokenize`, `lowercase`, `effective_order`.
    """

    name: ClassVar[str] = _NAMES[0]
    groups: str | None = setting(None, choice_option, ("source", "system"))

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return two rows per system, or `Failure`s: fewer than two texts, no token, over 20,000 texts in a group."""
        rows: list[Score | Failure] = []
        cuts: dict[str, Cut] = {}
        kinds: set[str] = set()
        for system, own_samples in by_system(samples).items():
            kind, groups = _groups(own_samples, self.groups)
            kinds.add(kind)
            cuts[system] = own_cut = cut(self, [t for group in groups for t in group])
            try:
                mean, pooled = _pairwise(_parts(own_cut.corpus, groups), self)
            except CannotScore as error:
                rows += [ngrams.failure(system, column, error) for column in _NAMES]
            else:
                n, note = (
                    len(own_cut.corpus.lengths),
                    _groups_note(kind, groups, len(own_samples), own_cut.corpus),
                )
                rows += [
                    ngrams.value(system, column, number, n=n, note=note)
                    for column, number in zip(_NAMES, (mean, pooled), strict=True)
                ]
        notes = ngrams.notes(_NAMES[0], cuts, "each of their pairs counts 0")
        grouping = "+".join(sorted(kinds)) or self.groups or "system"
        shared = self.signed_options(system_cut.name for system_cut in cuts.values())
        columns = tuple(
            Column(
                name,
                "metric",
                Signature(name, form, f"groups={grouping}", *shared),
                low=0.0,
                high=100.0,
                better="lower",
            )
            for name, form in zip(_NAMES, ("mean", "pooled"), strict=True)
        )
        return MetricResult(columns, tuple(rows), notes)


def _groups(samples: Sequence[Sample], kind: str | None) -> tuple[str, list[list[str]]]:
    """Return how a system's texts are grouped, by `source` or all together, and the groups."""
    by_source: dict[str, list[str]] = {}
    for sample in samples:
        if sample.source and sample.source.strip():
            by_source.setdefault(sample.source, []).append(sample.output)
    groups = [group for group in by_source.values() if len(group) > 1]
    kind = kind or ("source" if 0 < len(samples) <= 2 * sum(map(len, groups)) else "system")
    return kind, groups if kind == "source" else [[sample.output for sample in samples]]


def _groups_note(kind: str, groups: Sequence[Sequence[str]], samples: int, texts: Corpus) -> str:
    parts = ["all texts of the system are one group"]
    if kind == "source":
        parts = [f"within {plural(len(groups), 'source')} of two or more texts"]
    if alone := samples - len(texts.lengths):
        parts.append(f"{alone:,} alone with their source left out")
    if blanks := ngrams.blank(texts):
        parts.append(f"{blanks:,} without any token")
    return "; ".join(parts)


def _parts(texts: Corpus, groups: Sequence[Sequence[str]]) -> list[Corpus]:
    """Return the texts of each of the consecutive groups. Raise CannotScore unless they can be compared."""
    if not groups:
        raise CannotScore(
            "NoSharedSource", "no two texts have one source: leave out groups, or set it to system"
        )
    ngrams.check_texts(texts, least=2)
    parts, last = [], 0
    for group in groups:
        first, last = last, last + len(group)
        ends = texts.lengths[:first].sum(), texts.lengths[:last].sum()
        parts.append(Corpus(texts.ids[slice(*ends)], texts.lengths[first:last], texts.kinds))
    return parts


def _as_groups(texts: Sequence[str] | Sequence[Sequence[str]]) -> list[list[str]]:
    """Return groups of texts, or a list of texts as one group. Raise DataError for a group of fewer than two texts."""
    single = isinstance(texts, str) or not texts or any(isinstance(text, str) for text in texts)
    groups = (
        [text_list("texts", texts)] if single else [text_list("a group", group) for group in texts]
    )
    for place, group in enumerate(groups, start=1):
        if len(group) < 2 <= len(groups):
            raise DataError(
                f"group {place} of {len(groups)} has fewer than two texts: there is nothing to compare"
            )
    return groups


def pairwise_bleu(
    texts: Sequence[str] | Sequence[Sequence[str]],
    *,
    pooled: bool = False,
    **opts: Unpack[BleuOptions],
) -> float:
    """Return Pairwise-BLEU (0–100, the lower the more diverse) of two or more texts, or of groups of them.

    The mean of sacrebleu's sentence BLEU over all ordered pairs of texts of one group (a text, and another as its only
    reference). With `pooled`, one corpus BLEU of all groups' pairs, as the script of fairseq (Shen et al.
    2019) computes with `tokenize="none"`. Other options as in `self_bleu_each`. Raise DataError for a group of fewer
    than two texts or more than 20,000, and if no text has a token.
    """
    metric = PairwiseBleu(**opts)
    groups = _as_groups(texts)
    corpus = cut(metric, [text for group in groups for text in group]).corpus
    mean, pooled_value = _pairwise(_parts(corpus, groups), metric)
    return pooled_value if pooled else mean


def _pairwise(groups: Sequence[Corpus], settings: Settings) -> tuple[float, float]:
    """Return the mean BLEU of all groups' ordered pairs, and that of all of them as one corpus (0–100).

    Raise CannotScore.
    """
    import numpy as np

    if (most := max(len(group.lengths) for group in groups)) > MOST:
        message = f"{most:,} texts in one group have {most * (most - 1):,} pairs: take a sample of up to {MOST:,} texts, "
        raise CannotScore("TooManyTexts", message + "or self_bleu, whose time is linear")
    sum_of_pairs, pairs = 0.0, 0
    pooled = np.zeros(2 + 2 * settings.max_order, dtype=np.int64)
    for group in groups:
        number, lengths = len(group.lengths), group.lengths
        shared = [_feature_matrix(grams, number) for grams in orders(group, settings.max_order)]
        value, hits = 0.0, np.zeros(settings.max_order, dtype=np.int64)
        step = max(_PAIRS // number, 1)
        for start in range(0, number, step):
            block = slice(start, start + step)
            matches = [(matrix[block] @ matrix.T).toarray() for matrix in shared]
            for of_order in matches:
                of_order[np.arange(len(of_order)), np.arange(number)[block]] = (
                    0  # a text with itself
                )
            value += _bleu_of_pairs(matches, lengths[block, None], lengths, settings).sum()
            hits += [int(of_order.sum()) for of_order in matches]
        sum_of_pairs += value
        pairs += number * (number - 1)
        total = [totals(lengths, order).sum() for order in range(1, settings.max_order + 1)]
        # Every text is an output as often as a reference.
        pooled += np.array([0, 0, *hits, *[0] * len(total)])
        pooled += (number - 1) * np.array([lengths.sum(), lengths.sum(), *[0] * len(total), *total])
    return min(sum_of_pairs / pairs, 100.0), settings.bleu(pooled.tolist())


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
    kinds, feature = np.unique(
        np.repeat(grams.gram, grams.count) * most + times, return_inverse=True
    )
    ones = np.ones(len(feature), dtype=np.int32)
    return csr_array(
        (ones, (np.repeat(grams.text, grams.count), feature)), shape=(texts, max(len(kinds), 1))
    )


def _bleu_of_pairs(
    hits: Sequence[Ints], lengths: Ints, closest: Ints, settings: Settings
) -> Floats:
    """Compute `score` for many texts at once; `hits[n - 1]` are their matching n-grams of order n.

    Equals `sacrebleu.metrics.bleu.BLEU.compute_bleu` 2.6 up to the last digits of a float.
    """
    import numpy as np

    logs, used, halved = np.zeros(hits[0].shape), np.zeros(lengths.shape), np.ones(hits[0].shape)
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # the logarithm of no match; orders longer than the text
        for n, matches in enumerate(hits, start=1):
            added = _ADD_K if settings.smooth == "add-k" and n > 1 else 0
            total = totals(lengths, n) + added
            missed = matches + added == 0
            halved[missed] *= 2
            smoothed = {"exp": 100.0 / (halved * total), "floor": 100.0 * _FLOOR / total}.get(
                settings.smooth, 0.0
            )
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
