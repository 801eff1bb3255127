"""Measure how much a system repeats itself or its source.

Distinct-N, Self-BLEU and Pairwise-BLEU measure the first, source-BLEU the second.

distinct-N (Li et al. 2016) is the share of distinct n-grams. Self-BLEU (Zhu et al. 2018) is the
BLEU of each text against all others, exact and in linear time. Pairwise-BLEU (Shen et al. 2019)
compares every text with every other one of its group. Source-BLEU is how much a text repeats its
source; papers on paraphrase call it self-BLEU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, Unpack

from judge.core.errors import ConfigError, DataError
from judge.core.format import plural
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.metrics import MetricResult, Note
from judge.metrics.base import setting
from judge.metrics.bleu_options import (
    HIGHEST_ORDER,
    BleuOptions,
    DiversitySettings,
    Settings,
    Tokens,
    signed_version,
)
from judge.metrics.common import (
    CannotScore,
    as_source_samples,
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
    "Distinct",
    "PairwiseBleu",
    "SelfBleu",
    "SourceBleu",
    "distinct",
    "pairwise_bleu",
    "self_bleu",
    "self_bleu_each",
    "source_bleu",
]


def _orders_option(option: str, value: Any) -> tuple[int, ...]:
    numbers = tuple(value) if isinstance(value, Sequence) else (value,)
    for number in numbers:
        whole_number(option, number, 1, HIGHEST_ORDER)
    if not numbers or len(set(numbers)) < len(numbers):
        expected = "one or more different numbers"
        raise ConfigError(f"{option} must be {expected}, not {value!r}")
    return numbers


def _bleu_column(
    column_name: str, *signed: str, better: Literal["lower", ""]
) -> Column:
    signature = Signature(column_name, *signed)
    return Column(column_name, "metric", signature, low=0.0, high=100.0, better=better)


@dataclass(frozen=True, kw_only=True)
class Distinct(Tokens):
    """distinct-N (0–1) of each system: its distinct n-grams over all its n-grams, the higher the more diverse.

    The n-grams of all texts of the system are counted together; none crosses texts. The value falls
    with the number of tokens: compare systems with about as many.

    Options: `orders` (a number or a list of numbers from 1 to 9), `per` ("ngrams", or "tokens" to
    divide by tokens as in Li et al. 2016), `tokenize` (a tokenizer of sacrebleu; default: by the
    system's script), `lowercase`.
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
            outputs = [sample.output for sample in own_samples]
            cuts[system] = cut(self, outputs)
            rows += self._rows(system, cuts[system].corpus, numbers)
        tokenizers = [system_cut.name for system_cut in cuts.values()]
        case, tok = self.signed_tokens(tokenizers)
        parts = ["system", f"per={self.per}", case, tok, signed_version()]
        columns: list[Column] = []
        for order in numbers:
            column_name = f"distinct{order}"
            signature = Signature(column_name, *parts)
            columns.append(Column(column_name, "metric", signature, low=0.0, high=1.0))
        notes = ngrams.notes("distinct", cuts, "they add nothing to it")
        notes += ngrams.unequal_counts_note("distinct", rows)
        return MetricResult(tuple(columns), tuple(rows), notes)

    def _rows(
        self,
        system: str,
        corpus: Corpus,
        numbers: Sequence[int],
    ) -> Iterator[Score | Failure]:
        """Yield a system's row for each of the orders `numbers`."""
        # An order needs all lower ones, so they are counted once for all rows.
        distinct_counts = _distinct_counts(corpus, max(numbers))
        note = plural(len(corpus.ids), "token")
        empty_texts = ngrams.blank(corpus)
        if empty_texts:
            note += f"; {plural(empty_texts, 'text')} without any"
        text_count = len(corpus.lengths)
        for order in numbers:
            column_name = f"distinct{order}"
            try:
                share = _share(corpus, distinct_counts, order, self.per)
            except CannotScore as error:
                yield ngrams.failure(system, column_name, error)
            else:
                yield ngrams.value(system, column_name, share, n=text_count, note=note)


def distinct(
    texts: Sequence[str],
    n: int = 1,
    *,
    per: str = "ngrams",
    tokenize: str | None = None,
    lowercase: bool = False,
) -> float:
    """Return distinct-N (0–1, the higher the more diverse): distinct n-grams of all texts over all their n-grams.

    `per="tokens"` divides by all their tokens, as in Li et al. 2016; the same for n = 1. `tokenize`
    is a tokenizer of sacrebleu, by default chosen by the script of all texts. Raise DataError if no
    text has n tokens, ConfigError for invalid options.
    """
    whole_number("distinct.n", n, 1, HIGHEST_ORDER)
    metric = Distinct(per=per, tokenize=tokenize, lowercase=lowercase)
    corpus = cut(metric, texts).corpus
    return _share(corpus, _distinct_counts(corpus, n), n, per)


def _distinct_counts(texts: Corpus, highest: int) -> list[int]:
    """Count the distinct n-grams of each order from 1."""
    # The ids of n-grams have no gaps, so the largest one tells their number.
    largest_ids = [int(grams.gram.max(initial=-1)) for grams in orders(texts, highest)]
    return [largest + 1 for largest in largest_ids]


def _share(texts: Corpus, distinct_counts: Sequence[int], n: int, per: str) -> float:
    ngrams.check_texts(texts)
    total = int(totals(texts.lengths, n).sum())
    if not total:
        problem = f"no text has {n} tokens: there is no {n}-gram to count"
        raise CannotScore("NoNgram", problem)
    divisor = total if per == "ngrams" else len(texts.ids)
    return distinct_counts[n - 1] / divisor


# An impossible length, shorter or longer than any text, so that every length has two neighbours.
_FAR = 1 << 60
_SELF_BLEU = "self_bleu"
_SOURCE_BLEU = "source_bleu"


@dataclass(frozen=True, kw_only=True)
class SelfBleu(DiversitySettings):
    """Self-BLEU (0–100) of each system: the mean BLEU of its texts, each against all the others as references.

    The lower, the more diverse. It grows with the number of texts, so compare only systems with
    equally many.

    Options: `groups` (`source` compares each text with the others of its source and averages over
    sources; default: `system`), `max_order` (1–9), `smooth` (exp, floor, add-k, none), `tokenize`
    (a tokenizer of sacrebleu; default: by the system's script), `lowercase`, `effective_order`.
    """

    name: ClassVar[str] = _SELF_BLEU
    groups: str = setting("system", choice_option, ("system", "source"))

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row for each system.

        Fewer than two texts, or none with a token, are a `Failure`. A text without a token counts
        0, as in sacrebleu, and is counted in the row's note.
        """
        rows: list[Score | Failure] = []
        cuts: dict[str, Cut] = {}
        for system, system_samples in by_system(samples).items():
            grouped = _group_texts(self, system_samples, self.groups)
            cuts[system] = grouped.cut
            try:
                mean = _mean_over_groups(grouped.parts(), self)
            except CannotScore as error:
                rows.append(ngrams.failure(system, _SELF_BLEU, error))
                continue
            count = grouped.text_count
            row = ngrams.value(system, _SELF_BLEU, mean, n=count, note=grouped.note)
            rows.append(row)
        parts = ["system"]
        if self.groups == "source":
            parts.append("groups=source")
        tokenizers = [system_cut.name for system_cut in cuts.values()]
        parts += self.signed_options(tokenizers)
        column = _bleu_column(_SELF_BLEU, *parts, better="lower")
        effect = "each counts 0, which makes the system look more diverse"
        notes = ngrams.notes(_SELF_BLEU, cuts, effect)
        notes += ngrams.unequal_counts_note(_SELF_BLEU, rows)
        return MetricResult((column,), tuple(rows), notes)


def self_bleu(
    texts: Sequence[str] | Sequence[Sequence[str]], **opts: Unpack[BleuOptions]
) -> float:
    """Return Self-BLEU (0–100, the lower the more diverse) of two or more texts: the mean of `self_bleu_each`.

    For groups of texts, such as the texts of each source, return the mean over groups. It grows
    with the number of texts: compare only sets of equal size. With `smooth="floor"`,
    `tokenize="none"` and `effective_order=False` it equals NLTK's with
    `SmoothingFunction().method1` on words split at white space, if no text has fewer words than
    `max_order`. Raise DataError for fewer than two texts, or if none has a token.
    """
    metric = SelfBleu(**opts)
    groups = _as_groups(texts)
    all_texts = list(chain.from_iterable(groups))
    corpus = cut(metric, all_texts).corpus
    return _mean_over_groups(_parts(corpus, groups), metric)


def self_bleu_each(texts: Sequence[str], **opts: Unpack[BleuOptions]) -> list[float]:
    """Return BLEU (0–100) of each text against all the others, equal to sacrebleu's `sentence_score`.

    Zhu et al. 2018 (Texygen). A text equal to another scores 100, a text without a token 0; without
    `effective_order` a text of fewer than `max_order` tokens scores 0 as well, except with add-k.
    `tokenize` is a tokenizer of sacrebleu, by default chosen by the script of all texts; `smooth`
    is exp, floor (0.1), add-k (1) or none. Time and memory are linear in the tokens. Raise
    DataError for fewer than two texts or if none has a token, ConfigError for invalid options.
    """
    metric = SelfBleu(**opts)
    corpus = cut(metric, texts).corpus
    (checked_corpus,) = _parts(corpus, [texts])
    return _bleu_of_each(checked_corpus, metric)


def _mean_over_groups(groups: Sequence[Corpus], settings: Settings) -> float:
    """Return the mean over the groups of the mean BLEU of their texts."""
    means: list[float] = []
    for group in groups:
        scores = _bleu_of_each(group, settings)
        means.append(_mean(scores))
    return _mean(means)


def _bleu_of_each(texts: Corpus, settings: Settings) -> list[float]:
    """Return BLEU of each text against all the others."""
    matches_by_order: list[list[int]] = []
    totals_by_order: list[list[int]] = []
    for order, grams in enumerate(orders(texts, settings.max_order), start=1):
        matches = _clipped_matches(grams, len(texts.lengths))
        matches_by_order.append(matches.tolist())
        totals_by_order.append(totals(texts.lengths, order).tolist())
    output_lengths = texts.lengths.tolist()
    reference_lengths = _closest_lengths(texts.lengths).tolist()
    # In sacrebleu's order: the lengths of output and reference, matches, n-grams.
    columns = (output_lengths, reference_lengths, *matches_by_order, *totals_by_order)
    return [settings.bleu(counts) for counts in zip(*columns, strict=True)]


def _closest_lengths(lengths: Ints) -> Ints:
    """Return for each text the closest length among the other texts; of two, the shorter one."""
    import numpy as np

    distinct_lengths, index, count = np.unique(
        lengths, return_inverse=True, return_counts=True
    )
    padded = np.concatenate(([-_FAR], distinct_lengths, [_FAR]))
    # A length's own place in `padded` is index + 1.
    shorter = padded[index]
    longer = padded[index + 2]
    is_shorter_closest = lengths - shorter <= longer - lengths
    closest = np.where(is_shorter_closest, shorter, longer)
    # Another text of the same length is the closest.
    return np.where(count[index] > 1, lengths, closest)


def _clipped_matches(grams: Grams, texts: int) -> Ints:
    """Count the n-grams of each text that are matched in the others.

    A count is clipped by the largest among the other texts: the largest of all, or for the text
    that has it the second largest. Nothing else about an n-gram is needed.
    """
    import numpy as np

    if not len(grams.gram):
        return np.zeros(texts, dtype=np.int64)
    # Rows are sorted by n-gram, so the rows of one n-gram begin where its id changes.
    starts = np.flatnonzero(np.diff(grams.gram, prepend=-1))
    largest_counts = np.maximum.reduceat(grams.count, starts)
    limit = largest_counts[grams.gram]
    largest_rows = np.flatnonzero(grams.count == limit)
    grams_of_rows = grams.gram[largest_rows]
    is_first = np.diff(grams_of_rows, prepend=-1) != 0
    first_largest = largest_rows[is_first]
    counts_of_others = grams.count.copy()
    counts_of_others[first_largest] = 0
    limit[first_largest] = np.maximum.reduceat(counts_of_others, starts)
    clipped = np.minimum(grams.count, limit)
    matches = np.bincount(grams.text, weights=clipped, minlength=texts)
    return matches.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class SourceBleu(DiversitySettings):
    """BLEU (0–100) of each output against its source: 0 repeats nothing of it, 100 is a copy.

    Neither end is better: a paraphrase should be low, a correction high. The source's script picks
    the tokenizer.

    Options: `max_order` (1–9), `smooth` (exp, floor, add-k, none), `tokenize` (a tokenizer of
    sacrebleu; default: by the source's script), `lowercase`, `effective_order`.
    """

    rowwise: ClassVar[bool] = True
    needs: ClassVar[str] = "source"

    name: ClassVar[str] = _SOURCE_BLEU

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample.

        A sample without a source is a `Failure`; an empty output scores 0.
        """
        rows: list[Score | Failure] = []
        tokenizers: set[str] = set()
        for sample in samples:
            if sample.source is None or not sample.source.strip():
                problem = lacks_source(sample)
                rows.append(failure(sample, _SOURCE_BLEU, "NoSource", problem))
                continue
            tokenizer = self.tokenizer_for([sample.source])
            tokenizers.add(tokenizer)
            counts = self.counts(sample.output, [sample.source], tokenizer)
            bleu = self.bleu(counts)
            provenance = Provenance("metric")
            item, system = sample.key
            rows.append(
                Score(
                    item=item,
                    system=system,
                    column=_SOURCE_BLEU,
                    value=bleu,
                    provenance=provenance,
                )
            )
        signed_options = self.signed_options(sorted(tokenizers))
        # Neither end is better: a paraphrase should be low, a correction high.
        column = _bleu_column(_SOURCE_BLEU, "sentence", *signed_options, better="")
        return MetricResult((column,), tuple(rows), self._notes(samples, tokenizers))

    def _notes(
        self, samples: Sequence[Sample], tokenizers: set[str]
    ) -> tuple[str | Note, ...]:
        """Return notes about texts that are not split into words, and about Unicode forms."""
        compared: list[tuple[str, list[str]]] = []
        all_texts: list[str] = []
        for sample in samples:
            if sample.source:
                compared.append((sample.output, [sample.source]))
                all_texts += [sample.output, sample.source]
        notes: list[str | Note] = [self.note(all_texts, self.tokenize)]
        notes += self.missing(all_texts, tokenizers)
        notes.append(form_note(_SOURCE_BLEU, compared))
        return tuple(notes)


def source_bleu(
    outputs: Sequence[str],
    sources: Sequence[str],
    **opts: Unpack[BleuOptions],
) -> list[float]:
    """Return sacrebleu's sentence BLEU (0–100) of each output against its source; an empty output scores 0.

    Options as in `self_bleu_each`; the tokenizer is chosen for each source. Raise DataError unless
    there are as many sources as outputs and none is blank.
    """
    metric = SourceBleu(**opts)
    output_texts = text_list("outputs", outputs)
    source_texts = text_list("sources", sources)
    if len(output_texts) != len(source_texts):
        raise DataError(
            f"{len(output_texts):,} outputs and {len(source_texts):,} sources: "
            "give one source for each output"
        )
    return values(metric, as_source_samples(output_texts, source_texts, "pair"))


MOST = 20_000
"""The most texts of a group; time grows with the square."""
_PAIRS = 1_000_000  # pairs in memory together, about 200 MB
# sacrebleu's defaults for its smoothing methods "floor" and "add-k", from Chen and Cherry 2014.
_FLOOR = 0.1
_ADD_K = 1
_NAMES = ("pairwise_bleu", "pairwise_bleu_corpus")


@dataclass(frozen=True, kw_only=True)
class PairwiseBleu(DiversitySettings):
    """Pairwise-BLEU (0–100) of each system: the BLEU of its texts against each other, the lower the more diverse.

    `pairwise_bleu` is the mean of sentence BLEU over all ordered pairs, `pairwise_bleu_corpus` one
    corpus BLEU of them all, as fairseq's script computes (with `tokenize="none"`). If at least half
    of a system's texts share their source with another, pairs are texts of one source, and other
    texts are excluded: a source with more texts has more pairs. Otherwise any two texts of the
    system are a pair.

    Options: `groups` ("source" or "system" to force one; None to choose), and `max_order`,
    `smooth`, `tokenize`, `lowercase` and `effective_order` as for `self_bleu`.
    """

    name: ClassVar[str] = _NAMES[0]
    groups: str | None = setting(None, choice_option, ("source", "system"))

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return two rows per system.

        They are `Failure`s for fewer than two texts, for texts without a token, and for over 20,000
        texts in a group.
        """
        rows: list[Score | Failure] = []
        cuts: dict[str, Cut] = {}
        kinds: set[str] = set()
        for system, system_samples in by_system(samples).items():
            grouped = _group_texts(self, system_samples, self.groups)
            kinds.add(grouped.kind)
            cuts[system] = grouped.cut
            try:
                values_of_system = _pairwise(grouped.parts(), self)
            except CannotScore as error:
                rows += [ngrams.failure(system, column, error) for column in _NAMES]
                continue
            count = grouped.text_count
            note = grouped.note
            for column, bleu in zip(_NAMES, values_of_system, strict=True):
                rows.append(ngrams.value(system, column, bleu, n=count, note=note))
        notes = ngrams.notes(_NAMES[0], cuts, "each of their pairs counts 0")
        # Each system's data choose its groups, unless the option `groups` does.
        grouping = "+".join(sorted(kinds)) or self.groups or "system"
        tokenizers = [system_cut.name for system_cut in cuts.values()]
        signed_options = self.signed_options(tokenizers)
        columns: list[Column] = []
        for column_name, form in zip(_NAMES, ("mean", "pooled"), strict=True):
            parts = (form, f"groups={grouping}", *signed_options)
            columns.append(_bleu_column(column_name, *parts, better="lower"))
        return MetricResult(tuple(columns), tuple(rows), notes)


def _groups(samples: Sequence[Sample], kind: str | None) -> tuple[str, list[list[str]]]:
    """Return how a system's texts are grouped, by `source` or all together, and the groups."""
    outputs_by_source: dict[str, list[str]] = {}
    for sample in samples:
        if sample.source and sample.source.strip():
            outputs_by_source.setdefault(sample.source, []).append(sample.output)
    groups = [outputs for outputs in outputs_by_source.values() if len(outputs) > 1]
    if not kind:
        grouped_texts = sum(map(len, groups))
        # At least half of the texts share their source with another.
        kind = "source" if 0 < len(samples) <= 2 * grouped_texts else "system"
    if kind == "source":
        return kind, groups
    all_outputs = [sample.output for sample in samples]
    return kind, [all_outputs]


@dataclass(frozen=True, slots=True)
class _GroupedTexts:
    """A system's tokenized texts, one group after the other.

    `kind` is what groups them, `source` or `system`. `left_out` counts the texts in no group.
    """

    kind: str
    groups: Sequence[Sequence[str]]
    cut: Cut
    left_out: int

    @property
    def text_count(self) -> int:
        return len(self.cut.corpus.lengths)

    def parts(self) -> list[Corpus]:
        """Return the texts of each group. Raise CannotScore unless they can be compared."""
        return _parts(self.cut.corpus, self.groups)

    @property
    def note(self) -> str:
        """What a row says about the groups and the texts that add nothing."""
        grouping = "all texts of the system are one group"
        if self.kind == "source":
            sources = plural(len(self.groups), "source")
            grouping = f"within {sources} of two or more texts"
        parts = [grouping]
        if self.left_out:
            reason = "because no other text has their source"
            parts.append(f"{self.left_out:,} left out, {reason}")
        blanks = ngrams.blank(self.cut.corpus)
        if blanks:
            parts.append(f"{blanks:,} without any token")
        return "; ".join(parts)


def _group_texts(
    tokens: Tokens, samples: Sequence[Sample], kind: str | None
) -> _GroupedTexts:
    """Tokenize a system's texts in their groups; without a `kind`, the texts' sources choose it."""
    chosen_kind, groups = _groups(samples, kind)
    grouped_texts = list(chain.from_iterable(groups))
    left_out = len(samples) - len(grouped_texts)
    return _GroupedTexts(chosen_kind, groups, cut(tokens, grouped_texts), left_out)


def _parts(texts: Corpus, groups: Sequence[Sequence[str]]) -> list[Corpus]:
    """Return the texts of each of the consecutive groups.

    Raise CannotScore unless they can be compared.
    """
    if not groups:
        problem = "no two texts share a source: leave out groups, or set it to system"
        raise CannotScore("NoSharedSource", problem)
    ngrams.check_texts(texts, least=2)
    parts: list[Corpus] = []
    first_text = 0
    for group in groups:
        end_text = first_text + len(group)
        first_token = texts.lengths[:first_text].sum()
        end_token = texts.lengths[:end_text].sum()
        ids = texts.ids[first_token:end_token]
        group_lengths = texts.lengths[first_text:end_text]
        parts.append(Corpus(ids, group_lengths, texts.kinds))
        first_text = end_text
    return parts


def _as_groups(texts: Sequence[str] | Sequence[Sequence[str]]) -> list[list[str]]:
    """Return groups of texts, or a list of texts as one group.

    Raise DataError for a group of fewer than two texts.
    """
    has_texts = any(isinstance(entry, str) for entry in texts)
    if not texts or isinstance(texts, str) or has_texts:
        return [text_list("texts", texts)]
    groups = [text_list("a group", group) for group in texts]
    for number, group in enumerate(groups, start=1):
        # A single group is checked later, with the message for a whole list of texts.
        if len(group) < 2 <= len(groups):
            raise DataError(
                f"group {number} of {len(groups)} has fewer than two texts: "
                "there is nothing to compare"
            )
    return groups


def pairwise_bleu(
    texts: Sequence[str] | Sequence[Sequence[str]],
    *,
    pooled: bool = False,
    **opts: Unpack[BleuOptions],
) -> float:
    """Return Pairwise-BLEU (0–100, the lower the more diverse) of two or more texts, or of groups of them.

    The mean of sacrebleu's sentence BLEU over all ordered pairs of texts of one group (a text, and
    another as its only reference). With `pooled`, one corpus BLEU of all groups' pairs, as the
    script of fairseq (Shen et al. 2019) computes with `tokenize="none"`. Other options as in
    `self_bleu_each`. Raise DataError for a group of fewer than two texts or more than 20,000, and
    if no text has a token.
    """
    metric = PairwiseBleu(**opts)
    groups = _as_groups(texts)
    all_texts = list(chain.from_iterable(groups))
    corpus = cut(metric, all_texts).corpus
    mean, pooled_value = _pairwise(_parts(corpus, groups), metric)
    return pooled_value if pooled else mean


def _pairwise(groups: Sequence[Corpus], settings: Settings) -> tuple[float, float]:
    """Return the mean BLEU (0–100) of all groups' ordered pairs, and their corpus BLEU.

    Raise CannotScore if a group has too many texts.
    """
    import numpy as np

    largest = max(len(group.lengths) for group in groups)
    if largest > MOST:
        pairs = largest * (largest - 1)
        raise CannotScore(
            "TooManyTexts",
            f"{largest:,} texts in one group have {pairs:,} pairs: "
            f"take a sample of up to {MOST:,} texts, or self_bleu, whose time is linear",
        )
    sum_of_pairs = 0.0
    pair_count = 0
    highest = settings.max_order
    # In sacrebleu's order: the lengths of output and reference, matches, n-grams.
    pooled = np.zeros(2 + 2 * highest, dtype=np.int64)
    every_order = range(1, highest + 1)
    for group in groups:
        sum_of_bleu, matches = _compare_pairs(group, settings)
        text_count = len(group.lengths)
        sum_of_pairs += sum_of_bleu
        pair_count += text_count * (text_count - 1)
        # Every text is an output as often as a reference: once for each other text.
        all_tokens = group.lengths.sum()
        ngram_totals = [totals(group.lengths, order).sum() for order in every_order]
        pooled[:2] += (text_count - 1) * all_tokens
        pooled[2 : 2 + highest] += matches
        pooled[2 + highest :] += (text_count - 1) * np.array(ngram_totals)
    mean = min(sum_of_pairs / pair_count, 100.0)
    return mean, settings.bleu(pooled.tolist())


def _compare_pairs(group: Corpus, settings: Settings) -> tuple[float, Ints]:
    """Return the sum of BLEU over a group's ordered pairs, and their matches of each order."""
    import numpy as np

    text_count = len(group.lengths)
    grams_by_order = orders(group, settings.max_order)
    features = [_feature_matrix(grams, text_count) for grams in grams_by_order]
    sum_of_bleu = 0.0
    total_matches = np.zeros(settings.max_order, dtype=np.int64)
    # Compare blocks of outputs with all texts, because all pairs at once may exceed the memory.
    block_size = max(_PAIRS // text_count, 1)
    for start in range(0, text_count, block_size):
        block = slice(start, start + block_size)
        outputs = np.arange(text_count)[block]
        output_rows = np.arange(len(outputs))
        block_matches: list[Ints] = []  # of each order, outputs × texts
        for matrix in features:
            matches = (matrix[block] @ matrix.T).toarray()
            matches[output_rows, outputs] = 0  # a text with itself
            block_matches.append(matches)
        output_lengths = group.lengths[block, None]
        scores = _bleu_of_pairs(block_matches, output_lengths, group.lengths, settings)
        sum_of_bleu += scores.sum()
        total_matches += [int(matches.sum()) for matches in block_matches]
    return sum_of_bleu, total_matches


def _feature_matrix(grams: Grams, texts: int) -> Matrix:
    """Return a 0/1 matrix, texts × features: two rows share as many ones as the texts have matches.

    An n-gram that a text has c times is c features, "at least once" to "at least c times": two
    texts share min(c, c') of them, BLEU's clipped count.
    """
    import numpy as np
    from scipy.sparse import csr_array

    # One entry for each occurrence of an n-gram in a text.
    text = np.repeat(grams.text, grams.count)
    gram = np.repeat(grams.gram, grams.count)
    # 0, 1 … c - 1 for an n-gram that occurs c times in its text
    first_entries = np.cumsum(grams.count) - grams.count
    entries = np.arange(grams.count.sum())
    times_before = entries - np.repeat(first_entries, grams.count)
    largest_count = int(grams.count.max(initial=1))
    keys = gram * largest_count + times_before
    distinct_keys, feature = np.unique(keys, return_inverse=True)
    ones = np.ones(len(feature), dtype=np.int32)
    # Texts without a token have no n-grams; one column of zeros keeps the matrix valid.
    shape = (texts, max(len(distinct_keys), 1))
    return csr_array((ones, (text, feature)), shape=shape)


def _bleu_of_pairs(
    hits: Sequence[Ints],
    output_lengths: Ints,
    reference_lengths: Ints,
    settings: Settings,
) -> Floats:
    """Compute BLEU for many pairs at once, outputs × references.

    `hits[n - 1]` are the pairs' matching n-grams of order n, outputs × references. The lengths are
    of shapes (outputs, 1) and (references,). Equals `sacrebleu.metrics.bleu.BLEU.compute_bleu` 2.6
    up to the last digits of a float.
    """
    import numpy as np

    sum_of_logs = np.zeros(hits[0].shape)
    used_orders = np.zeros(output_lengths.shape)
    powers_of_two = np.ones(hits[0].shape)
    # The logarithm of no match is -inf, and the precision of an order longer than the text NaN.
    with np.errstate(divide="ignore", invalid="ignore"):
        for order, matches in enumerate(hits, start=1):
            # sacrebleu adds k to the orders above 1 only, as Chen and Cherry do.
            added = _ADD_K if settings.smooth == "add-k" and order > 1 else 0
            total = totals(output_lengths, order) + added
            matches_added = matches + added
            is_missed = matches_added == 0
            # "exp": the k-th order without a match counts 1 / 2^k matches.
            powers_of_two[is_missed] *= 2
            if settings.smooth == "exp":
                smoothed = 100.0 / (powers_of_two * total)
            elif settings.smooth == "floor":
                smoothed = 100.0 * _FLOOR / total
            else:
                smoothed = np.zeros(())
            unsmoothed = 100.0 * matches_added / total
            log_precision = np.log(np.where(is_missed, smoothed, unsmoothed))
            has_ngrams = total > 0
            # sacrebleu's effective order ignores orders without n-grams; otherwise BLEU is 0.
            if settings.effective_order:
                sum_of_logs += np.where(has_ngrams, log_precision, 0.0)
                used_orders += has_ngrams
            else:
                sum_of_logs += np.where(has_ngrams, log_precision, -np.inf)
                used_orders += 1
        penalty = np.exp(1 - reference_lengths / output_lengths)
        brevity = np.where(output_lengths < reference_lengths, penalty, 1.0)
        mean_precision = np.exp(sum_of_logs / used_orders)
        bleu = np.minimum(brevity * mean_precision, 100.0)
    # sacrebleu gives 0 for a pair without any match, whatever the smoothing.
    has_match = np.any([matches > 0 for matches in hits], axis=0)
    return np.where(has_match, bleu, 0.0)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
