"""Compute BLEU (Papineni et al. 2002) of single texts and of systems, by sacrebleu's rules (Post 2018).

The first part is shared with the metrics of diversity: tokenizers by name or script, options, and the score of counts.
Tokens, smoothing and formula are sacrebleu's. The counts are computed here, once per reference for all systems; every
value equals sacrebleu's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from itertools import chain
from typing import Any, ClassVar, TypedDict

from judge import text
from judge.core.errors import ConfigError, DataError, MissingExtra
from judge.core.records import Column, Failure, Provenance, Sample, Score, whole
from judge.metrics import MetricResult, Note
from judge.metrics.common import (
    Rate,
    as_samples,
    bool_option,
    by_references,
    choice_option,
    joined,
    list_function,
    reference_count,
    whole_number,
)
from judge.metrics.common import references as usable

DEFAULT = "13a"
_BY_SPACES = (DEFAULT, "intl", "none")
_UNCUT = (
    "are in a script that the tokenizer {tokenizer} does not split into words, so values are too low: set "
    "{metric}.tokenize, omit it to choose by script, or score the languages separately"
)


def tokenizer_for(texts: Iterable[str]) -> str:
    """Return the tokenizer for texts by their script: `13a`, `zh`, `ja-mecab` or `ko-mecab`.

    `char` replaces the last two if their dictionaries are missing; 13a would leave a Japanese sentence as one token.
    """
    language = text.LANGUAGES[text.detect_language(texts)]
    return language.bleu if text.installed(language.tokenizer) else "char"


def count_unsegmented(metric: str, tokenizer: str, texts: Iterable[str]) -> Note:
    """Count the texts that a tokenizer splitting at spaces leaves in one piece: Chinese and Japanese ones."""
    distinct = set(texts)
    by_spaces = tokenizer in _BY_SPACES
    some = sum(
        by_spaces and not string.isascii() and not text.LANGUAGES[text.detect_language([string])].spaced
        for string in distinct
    )
    return Note(metric, some, len(distinct), _UNCUT.format(tokenizer=tokenizer, metric=metric))


def words(name: str, *, lowercase: bool = False) -> Callable[[str], list[str]]:
    """Return a function from a text to its tokens, as sacrebleu's BLEU(tokenize=name) does. Raise MissingExtra."""
    tokenizer = _tokenizer(name)
    mecab = name.endswith("-mecab")

    def cut(string: str) -> list[str]:
        if lowercase:
            string = string.lower()
        if mecab:  # takes UTF-8 only and stops at a NUL
            string = whole(string).replace("\0", " ")
        tokenized: str = tokenizer(string.rstrip())
        return tokenized.split()

    return cut


def tokenizer_signature(name: str) -> str:
    """Return a tokenizer's own signature. Raise MissingExtra."""
    return str(_tokenizer(name).signature())


def validate_tokenizer(option: str, name: Any) -> str:
    """Return an option's tokenizer name. Raise ConfigError, or MissingExtra if its packages are missing."""
    from sacrebleu.metrics.bleu import BLEU

    if not isinstance(name, str) or name not in BLEU.TOKENIZERS:
        raise ConfigError(f"{option} must be one of {', '.join(sorted(BLEU.TOKENIZERS))}, not {name!r}")
    _tokenizer(name)
    return name


@lru_cache(maxsize=16)  # one per kind, because sacrebleu's cache the texts
def _tokenizer(name: str) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    try:
        return BLEU(tokenize=name).tokenizer
    except (RuntimeError, ImportError) as error:
        extra = "'textjudge[cjk]'" if name.endswith("-mecab") else "sentencepiece"
        raise MissingExtra(f"the tokenizer {name} needs more packages: pip install {extra}") from error


_SMOOTH_SIGNATURES = {"exp": "exp", "none": "none", "floor": "floor[0.10]", "add-k": "add-k[1.00]"}
_HIGHEST_ORDER = 9


class BleuOptions(TypedDict, total=False):
    """The options of BLEU. The defaults are 4, "exp", the texts' script, False and True."""

    max_order: int
    smooth: str
    tokenize: str | None
    lowercase: bool
    effective_order: bool


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """The tokenization options of a metric; metrics inherit them.

    `tokenize` is a tokenizer of sacrebleu (None: by script). Raises ConfigError and MissingExtra.
    """

    name: ClassVar[str]
    tokenize: str | None = None
    lowercase: bool = False

    def __post_init__(self) -> None:
        if self.tokenize is not None:
            validate_tokenizer(f"{self.name}.tokenize", self.tokenize)
        bool_option(f"{self.name}.lowercase", self.lowercase)

    def tokenizer_for(self, texts: Iterable[str]) -> str:
        """Return the tokenizer for these texts, which all share it."""
        return self.tokenize or tokenizer_for(texts)

    def words(self, tokenizer: str) -> Callable[[str], list[str]]:
        """Return a function from a text to its tokens, as sacrebleu's BLEU(tokenize=tokenizer) does."""
        return words(tokenizer, lowercase=self.lowercase)

    def signed_tokens(self, tokenizers: Iterable[str]) -> tuple[str, str]:
        """Return the signature parts for case and tokenizers, as sacrebleu writes them."""
        return f"case={'lc' if self.lowercase else 'mixed'}", f"tok={joined(map(tokenizer_signature, tokenizers))}"


@dataclass(frozen=True, kw_only=True)
class Settings(Tokens):
    """The maximum n-gram order and the smoothing of BLEU."""

    smooth: str = "exp"
    max_order: int = 4
    effective_order: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        order(f"{self.name}.max_order", self.max_order)
        choice_option(f"{self.name}.smooth", self.smooth, tuple(_SMOOTH_SIGNATURES))
        bool_option(f"{self.name}.effective_order", self.effective_order)

    def signature(self, tokenizers: Iterable[str]) -> str:
        """Return the parts that follow the number of references in sacrebleu's signature, in its order."""
        case, tok = self.signed_tokens(tokenizers)
        parts = [case, self.signed_effective_order, tok, f"smooth={_SMOOTH_SIGNATURES[self.smooth]}"]
        return "|".join([*parts, *([] if self.max_order == 4 else [f"order={self.max_order}"]), signed_version()])

    @property
    def signed_effective_order(self) -> str:
        return f"eff={'yes' if self.effective_order else 'no'}"


@dataclass(frozen=True, kw_only=True)
class DiversitySettings(Settings):
    """The settings of a metric of diversity, with or without effective order."""

    effective_order: bool = True

    def signature(self, tokenizers: Iterable[str]) -> str:
        """Return the signature's parts, in the order of all metrics of diversity."""
        case, tok = self.signed_tokens(tokenizers)
        smooth = f"smooth={_SMOOTH_SIGNATURES[self.smooth]}"
        return "|".join([self.signed_effective_order, f"order={self.max_order}", case, tok, smooth, signed_version()])


def order(option: str, value: Any) -> int:
    """Return an order of n-grams. Raise ConfigError for anything else."""
    return whole_number(option, value, 1, _HIGHEST_ORDER)


def score(hits: Sequence[int], total: Sequence[int], lengths: tuple[int, int], settings: Settings) -> float:
    """Return BLEU (0–100) of one text or of pooled counts, by sacrebleu: matches and n-grams for each order from 1.

    `lengths` are the tokens of the text and of its closest reference.
    """
    from sacrebleu.metrics.bleu import BLEU

    bleu = BLEU.compute_bleu(
        correct=list(hits),
        total=list(total),
        sys_len=lengths[0],
        ref_len=lengths[1],
        smooth_method=settings.smooth,
        effective_order=settings.effective_order,
        max_ngram_order=settings.max_order,
    )
    return min(float(bleu.score), 100.0)  # equal texts would get 100.00000000000004


def signed_version() -> str:
    """Return the part of a signature that names sacrebleu."""
    return f"sacrebleu {version('sacrebleu')}"


__all__ = ["Bleu", "CorpusBleu", "corpus", "sentence"]

Words = Callable[[str], list[str]]
Counts = Counter[tuple[str, ...]]

_RESAMPLES = 1000


@dataclass(frozen=True, kw_only=True)
class Bleu(Settings):
    """Sentence BLEU (0–100) with effective order, exponential smoothing and all references at once.

    The script of the references picks the tokenizer, so all systems of an item share it: `zh` for Chinese, `ja-mecab`
    and `ko-mecab` for Japanese and Korean (`char` without their dictionaries), else `13a`. `tokenize` names one of
    sacrebleu's for all texts, `smooth` its smoothing (`exp`, `none`, `floor`, `add-k`), `max_order` the longest n-gram,
    1–9.
    """

    name: ClassVar[str] = "bleu"
    rowwise: ClassVar[bool] = True

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample. A sample without a reference is a `Failure`; an empty output scores 0."""
        used: set[str] = set()

        def prepare(targets: tuple[str, ...]) -> Rate:
            tokenizer = self.tokenizer_for(targets)
            used.add(tokenizer)
            count = _reference_counter(targets, self.words(tokenizer), self.max_order)
            return lambda output: _bleu(count(output), self)

        rows = by_references(samples, "bleu", prepare)
        signature = f"bleu|sentence|nrefs={reference_count(samples)}|{self.signature(used)}"
        column = Column("bleu", "metric", signature, low=0.0, high=100.0)
        notes: tuple[Note, ...] = ()
        if self.tokenize:  # may leave texts in one piece
            texts = (string for sample in samples for string in (sample.output, *usable(sample)))
            notes = (count_unsegmented("bleu", self.tokenize, texts),)
        return MetricResult((column,), rows, notes)


@dataclass(frozen=True, kw_only=True)
class CorpusBleu(Settings):
    """BLEU (0–100) of all of a system's texts together, with a 95% bootstrap interval over the texts.

    One row per system; `n` counts its texts with a reference, the others are skipped and noted. The script of all
    references together picks the system's tokenizer. The interval is the percentile interval (Koehn 2004) of 1,000
    resamples drawn from `seed`; a system with one text has none. The other options are those of `bleu`.
    """

    name: ClassVar[str] = "bleu_corpus"
    effective_order: bool = field(default=False, init=False)
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("bleu_corpus.seed", self.seed, 0, 2**32 - 1)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per system, in order of first appearance.

        A system without any reference is a `Failure`, and so is one that matches its references but has no text as long
        as the longest n-gram, because corpus BLEU has no effective order.
        """
        tokenizers = _tokenizers_by_system(samples, self)
        texts = Counter(sample.system for sample in samples)
        stats: dict[str, list[list[int]]] = {system: [] for system in texts}
        for sample, counted in zip(samples, _sample_stats(samples, tokenizers, self), strict=True):
            stats[sample.system] += [counted] if counted else []
        rows = tuple(self._row(system, system_stats) for system, system_stats in stats.items())
        used = {tokenizers[system] for system, system_stats in stats.items() if system_stats}
        signature = (
            f"bleu_corpus|corpus|nrefs={reference_count(samples)}|bs={_RESAMPLES}|seed={self.seed}"
            f"|{self.signature(used)}"
        )
        column = Column("bleu_corpus", "metric", signature, low=0.0, high=100.0)
        left_out = sum(not usable(sample) for sample in samples if stats[sample.system])
        notes = [Note("bleu_corpus", left_out, len(samples), "have no reference and are left out")]
        for tokenizer in dict.fromkeys(tokenizers.values()):
            own_samples = [sample for sample in samples if tokenizers[sample.system] == tokenizer]
            own_texts = (string for sample in own_samples for string in (sample.output, *usable(sample)))
            notes.append(count_unsegmented("bleu_corpus", tokenizer, own_texts))
        return MetricResult((column,), rows, tuple(notes))

    def _row(self, system: str, stats: list[list[int]]) -> Score | Failure:
        who = f"system {system}" if system else "the system"
        if not stats:
            message = f"no text of {who} has a reference: add a column `references`, or name yours with --map"
            return Failure("", system, "bleu_corpus", stage="metric", error="NoReference", message=message)
        total = [sum(column) for column in zip(*stats, strict=True)]
        if not _is_defined(total):
            order = self.max_order
            message = (
                f"no text of {who} has {order} tokens, so its corpus BLEU is undefined: set "
                f"bleu_corpus.max_order below {order}, or use bleu"
            )
            return Failure("", system, "bleu_corpus", stage="metric", error="TextsTooShort", message=message)
        value = _bleu(total, self)
        return Score("", system, "bleu_corpus", value, self._interval(stats))

    def _interval(self, stats: list[list[int]]) -> Provenance:
        """Return the 2.5 and 97.5% quantiles of BLEU over those resamples of the texts for which it is defined."""
        n = len(stats)
        if n < 2:
            return Provenance("metric", n=n)
        import numpy as np

        counts = np.asarray(stats, dtype=np.float64)
        random = np.random.default_rng(self.seed)
        resampled = []
        for _ in range(_RESAMPLES):
            drawn = np.bincount(random.integers(n, size=n), minlength=n).astype(np.float64)
            total = [int(number) for number in drawn @ counts]
            if _is_defined(total):
                resampled.append(_bleu(total, self))
        if len(resampled) < _RESAMPLES / 2:
            return Provenance("metric", n=n)
        low, high = map(float, np.quantile(resampled, (0.025, 0.975)))
        defined_only = "" if len(resampled) == _RESAMPLES else f" ({len(resampled):,} for which it is defined)"
        method = f"95% percentile bootstrap over texts, {_RESAMPLES:,} resamples{defined_only}, seed {self.seed}"
        return Provenance("metric", n=n, low=low, high=high, note=method)


sentence = list_function(
    Bleu,
    """Sentence BLEU, 0–100, of each output against its reference or references: see `Bleu`.

    Raises DataError where an output has no reference, ConfigError for an unknown option.
    """,
)


def corpus(
    outputs: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    tokenize: str | None = None,
    smooth: str = "exp",
    lowercase: bool = False,
    max_order: int = 4,
) -> float:
    """Return corpus BLEU, 0–100, of all outputs against their references, whose number may vary; see `CorpusBleu`.

    Raise DataError if there is no output, one has no reference, or none has `max_order` tokens. Raise ConfigError for
    an unknown option.
    """
    metric = CorpusBleu(tokenize=tokenize, smooth=smooth, lowercase=lowercase, max_order=max_order)
    samples = as_samples(outputs, references)
    counts = _sample_stats(samples, _tokenizers_by_system(samples, metric), metric)
    stats = [counted for counted in counts if counted]
    total = [sum(column) for column in zip(*stats, strict=True)]
    if not stats or not _is_defined(total):
        raise DataError(f"corpus BLEU needs a text of at least max_order = {max_order} tokens")
    return _bleu(total, metric)


def _bleu(stats: Sequence[int], settings: Settings) -> float:
    """Return BLEU (0–100) from sufficient statistics: output length, reference length, matches and totals by order."""
    at = 2 + settings.max_order
    return score(stats[2:at], stats[at:], (stats[0], stats[1]), settings)


def _is_defined(total: Sequence[int]) -> bool:
    """Return whether corpus BLEU is defined: with matches but no n-gram of the highest order, its precision is 0/0."""
    order = len(total) // 2 - 1
    return total[-1] > 0 or not any(total[2 : 2 + order])


def _tokenizers_by_system(samples: Sequence[Sample], tokens: Tokens) -> dict[str, str]:
    """Return the tokenizer of each system, chosen from all its references together."""
    references_by_system: dict[str, list[tuple[str, ...]]] = {}
    for sample in samples:
        references_by_system.setdefault(sample.system, []).append(usable(sample))
    return {system: tokens.tokenizer_for(chain.from_iterable(each)) for system, each in references_by_system.items()}


def _sample_stats(samples: Sequence[Sample], tokenizers: dict[str, str], settings: Settings) -> list[list[int] | None]:
    """Return the sufficient statistics of every sample, None for a sample without a reference."""
    groups: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for index, sample in enumerate(samples):
        if targets := usable(sample):
            groups.setdefault((tokenizers[sample.system], targets), []).append(index)
    result: list[list[int] | None] = [None] * len(samples)
    for (tokenizer, targets), indices in groups.items():
        count = _reference_counter(targets, settings.words(tokenizer), settings.max_order)
        for index in indices:
            result[index] = count(samples[index].output)
    return result


def _reference_counter(references: Sequence[str], words: Words, order: int) -> Callable[[str], list[int]]:
    """Return a function from an output to its sufficient statistics (Papineni et al. 2002, 2.1–2.2).

    An n-gram counts as often as in the reference that has it most often. The reference length is the closest one, the
    shorter of two equally close.
    """
    allowed: Counts = Counter()
    lengths = []
    for reference in references:
        tokens = words(reference)
        lengths.append(len(tokens))
        for ngram, times in Counter(chain.from_iterable(_ngrams(tokens, order))).items():
            allowed[ngram] = max(allowed[ngram], times)

    def count(output: str) -> list[int]:
        tokens = words(output)
        length = len(tokens)
        closest = min(lengths, key=lambda candidate: (abs(candidate - length), candidate))
        correct = [
            sum(min(times, allowed[ngram]) for ngram, times in Counter(ngrams).items() if ngram in allowed)
            for ngrams in _ngrams(tokens, order)
        ]
        return [length, closest, *correct, *(max(0, length - n) for n in range(order))]

    return count


def _ngrams(tokens: list[str], order: int) -> Iterable[Iterable[tuple[str, ...]]]:
    return (zip(*(tokens[start:] for start in range(n)), strict=False) for n in range(1, order + 1))
