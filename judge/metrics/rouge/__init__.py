"""Compute ROUGE (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries").

`score` takes lists of texts, `Rouge` is the metric. English N and L, and Lsum of sentences on
lines, equal rouge-score 0.1.2; the preset rouge155 equals ROUGE-1.5.5.pl. Options:

types       rouge1 to rouge9; rougeL (one longest common subsequence over the whole text), rougeLsum
            (by sentence); rougeW or rougeW-1.2 (runs of k words count k^1.2); rougeS, rougeSU
            (pairs of words with any gap; with single words too), rougeS4, rougeSU4 (at most 4 words
            between; any number); lcs_mead (each sentence with the one that shares most with it in
            order). Default rouge1, rouge2, rougeL, rougeLsum.
stem        English words of more than three letters, by Porter's stemmer. Default true.
multi       several references: the one with the best F (best_f) or the best recall (best_recall),
            counts added up (pooled), their mean (mean), the mean over leaving each one out
            (jackknife). Default best_f, with rouge155 pooled.
preset      pltrdy: the values of the package rouge 1.0.1: types rouge-1 to rouge-5 and rouge-l,
            distinct n-grams of words between white space, no stemmer; full stops end sentences and
            are dropped.
            rouge155: the values, tokenizer, stemmer and five decimals of ROUGE-1.5.5. Its -f A is
            pooled, its -f B best_recall, its -p alpha. Types ROUGE-1 to ROUGE-9, ROUGE-L,
            ROUGE-W-1.2, ROUGE-S*, ROUGE-SU*, ROUGE-S4, ROUGE-SU4, with any number; its ROUGE-W and
            ROUGE-SU differ from the paper's.
tokenizer   a name of `judge.text`. Default: `en`, or by script for a row that would lose most
            letters.
stopwords   a file with one word per line, or the words; dropped before stemming.
exceptions  files of lines `word stem`, as WordNet's *.exc, looked up before the stemmer of
            rouge155.
alpha, beta F = P·R / (alpha·R + (1 - alpha)·P); alpha = 1 / (1 + beta²). Default alpha = ½,
            beta = 1.
implementation
            judge (default), or the package rouge-score: rouge1 to rouge9, rougeL and rougeLsum of
            ASCII words, the best F of several references, and of these options only `stem`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypedDict, Unpack

from judge import text
from judge.core.errors import ConfigError
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.core.version import __version__
from judge.metrics import MetricResult
from judge.metrics.base import BaseMetric, Note, setting
from judge.metrics.common import (
    CannotScore,
    choice_option,
    choices_option,
    failure,
    format_number,
    missing_tokenizer_notes,
    no_reference,
    number,
    paired,
    reference_count,
    references,
    signed_words,
    tokenizer_note,
    wordless_note,
)
from judge.metrics.common import tokenizer as tokenizer_option
from judge.metrics.rouge.sequences import (
    PLTRDY,
    SCRIPT,
    Rules,
    Text,
    Vocabulary,
    vocabulary,
)
from judge.metrics.rouge.variants import (
    DEFAULTS,
    MULTI,
    Kind,
    Pltrdy,
    Rouge155,
    RougeScore,
    Variant,
    combine,
    kinds,
)

__all__ = ["Rouge", "RougeScore", "RougeScores", "score"]

Words = str | Path | Collection[str]
"""A file with one word per line, or the words."""
Files = str | Path | Sequence[str | Path]
PACKAGE = "rouge-score"
_VALUES = {"p": "precision", "r": "recall", "f": "fmeasure"}
_METRIC = Provenance(method="metric")


class RougeOptions(TypedDict, total=False):
    """The options of `score`, described at the top of this module."""

    stem: bool
    multi: str | None
    preset: str | None
    tokenizer: str | None
    stopwords: Words | None
    exceptions: Files | None
    alpha: float | None
    beta: float | None
    implementation: str


class _ValueColumn(NamedTuple):
    """A column of one type; `value` is f, p or r."""

    name: str
    kind: Kind
    value: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Rouge(BaseMetric):
    """F1 (0–1) of unigrams, bigrams and the longest common subsequence, over whole texts and
    sentence by sentence.

    Each type uses the reference with the best F. Words are split and stemmed (Porter) by
    rouge-score's English rules, `tok=en`; a row that would lose most letters of the output or of a
    reference uses the tokenizer of its script. rougeLsum and rouge155 compare the sentences of
    `text.sentences`. `values` are f, p (precision) and r (recall), with columns such as `rouge1_p`.
    The other options are described in `judge.metrics.rouge`. Raises ConfigError and MissingExtra.
    """

    name: ClassVar[str] = "rouge"
    rowwise: ClassVar[bool] = True
    needs: ClassVar[str] = "references"
    types: str | Sequence[str] | None = None
    stem: bool = True
    multi: str | None = setting(None, choice_option, MULTI)
    preset: str | None = setting(None, choice_option, (SCRIPT, PLTRDY))
    tokenizer: str | None = setting(None, tokenizer_option)
    stopwords: Words | None = None
    exceptions: Files | None = None
    alpha: float | None = setting(None, number, 0, 1)
    beta: float | None = setting(None, number, 0, sys.float_info.max)
    values: str | Sequence[str] = setting(
        "f",
        choices_option,
        tuple(_VALUES),
        "rouge.values must be some of f, p and r",
    )
    implementation: str = setting("judge", choice_option, ("judge", PACKAGE))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha is not None and self.beta is not None:
            raise ConfigError(
                "rouge.alpha and rouge.beta both set F: give one of them (alpha = 1 / (1 + beta²))"
            )
        if self.tokenizer is not None and self.preset:
            raise ConfigError(
                f"rouge.preset {self.preset} has its own tokenizer: omit rouge.tokenizer or the "
                "preset"
            )
        without_preset = (self.stopwords, self.alpha, self.beta)
        if self.preset == PLTRDY and without_preset != (None, None, None):
            raise ConfigError(
                f"rouge.preset {PLTRDY} has no stopwords, alpha or beta: omit them or the preset"
            )
        if self.package:
            self._refuse_unsupported_options()
        # Read now, so that a wrong file is an error before anything is computed.
        self._stopwords, self._exceptions, self._columns  # noqa: B018

    def _refuse_unsupported_options(self) -> None:
        """Raise ConfigError for options that the package rouge-score does not have."""
        options = ("preset", "tokenizer", "stopwords", "exceptions", "alpha", "beta")
        set_options = [name for name in options if getattr(self, name) is not None]
        unsupported = [f"rouge.{name}" for name in set_options]
        if self.multi not in (None, "best_f"):
            unsupported.append("rouge.multi")
        families = ("n", "l", "lsum")
        other_kinds = [kind for kind in self.kinds if kind.family not in families]
        unsupported += [f"the type {kind.name}" for kind in other_kinds]
        if unsupported:
            listed = ", ".join(unsupported)
            raise ConfigError(
                f"rouge.implementation: {PACKAGE} does not support {listed}: "
                "omit that, or use implementation=judge"
            )

    @property
    def script(self) -> bool:
        """Whether ROUGE-1.5.5 is reproduced."""
        return self.preset == SCRIPT

    @property
    def package(self) -> bool:
        """Whether rouge-score itself computes."""
        return self.implementation == PACKAGE

    @property
    def combination(self) -> str:
        """How the scores of several references are combined."""
        default = "pooled" if self.script else "best_f"
        return self.multi or default

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The types."""
        names = DEFAULTS[self.preset] if self.types is None else self.types
        return kinds(names, self.preset)

    @property
    def _alpha(self) -> float | None:
        if self.beta is None:
            return self.alpha
        return 1 / (1 + self.beta * self.beta)

    @cached_property
    def _variant(self) -> Variant:
        variants = {SCRIPT: Rouge155, PLTRDY: Pltrdy}
        variant = variants.get(self.preset or "", Variant)
        return variant(self._alpha)

    @cached_property
    def _stopwords(self) -> frozenset[str]:
        if self.stopwords is None:
            return frozenset()
        words: Any = self.stopwords
        if isinstance(self.stopwords, str | Path):
            words = _lines(self.stopwords, "stopwords")
        is_list = isinstance(words, Collection)
        if not is_list or not all(isinstance(word, str) for word in words):
            raise ConfigError(
                "rouge.stopwords must be a file with one word per line, or a list of words (in "
                "YAML, quote no and on)"
            )
        lower = (word.strip().lower() for word in words)
        return frozenset(word for word in lower if word)

    @cached_property
    def _exceptions(self) -> tuple[tuple[str, str], ...]:
        if self.exceptions is None:
            return ()
        if not (self.script and self.stem):
            raise ConfigError(
                f"rouge.exceptions need the stemmer of preset {SCRIPT}: set preset and stem, or "
                "omit them"
            )
        files = self.exceptions
        if isinstance(files, str | Path):
            files = [files]
        is_sequence = isinstance(files, Sequence)
        are_files = is_sequence and all(isinstance(file, str | Path) for file in files)
        if not are_files:
            raise ConfigError(
                f"rouge.exceptions are files with lines `word stem`, not {self.exceptions!r}"
            )
        # As in ROUGE-1.5.5, the last file decides about a word that several have.
        stems: dict[str, str] = {}
        for file in files:
            for line in _lines(file, "exceptions"):
                word, _, stem = line.partition(" ")
                if stem.strip():
                    stems[word.lower()] = stem.split()[0].lower()
        return tuple(stems.items())

    @cached_property
    def _columns(self) -> list[_ValueColumn]:
        columns: list[_ValueColumn] = []
        for kind in self.kinds:
            for value in self.values:
                column_name = kind.name if value == "f" else f"{kind.name}_{value}"
                columns.append(_ValueColumn(column_name, kind, value))
        return columns

    def tokenizer_for(self, parts: Sequence[str]) -> str:
        """Return the tokenizer of an output and its references."""
        chosen = self.tokenizer or self.preset
        if chosen:
            return chosen
        if self.package and all(map(text.is_latin, parts)):
            return "en"
        return text.tokenizer_for(parts)

    def compare(
        self,
        output: str,
        targets: Sequence[str],
        tokenizer: str,
        *,
        empty: bool = False,
    ) -> list[RougeScore | CannotScore]:
        """Return each type's score of one output, or why it has none.

        References without a token only count in ROUGE-1.5.5, and if there are no others, only with
        `empty`.
        """
        if self.package and tokenizer != "en":
            message = f"is in a script that {PACKAGE} cannot read: use rouge.implementation=judge"
            return [CannotScore("NotAscii", message)] * len(self.kinds)
        words = self._vocabulary(tokenizer)
        try:
            references = self._read_references(words, targets, empty)
            if self.package:
                return self._by_package(output, targets)
            candidate = words.read(output)
            if self.preset == PLTRDY and not candidate.whole:
                raise CannotScore(
                    "EmptyOutput",
                    f"has an empty output, on which the package of preset {PLTRDY} fails",
                )
        except CannotScore as error:
            return [error] * len(self.kinds)
        return [self._score_kind(kind, references, candidate) for kind in self.kinds]

    def _vocabulary(self, tokenizer: str) -> Vocabulary:
        rules = Rules(tokenizer, self.stem, self._stopwords, self._exceptions)
        return vocabulary(rules)

    def _read_references(
        self,
        words: Vocabulary,
        targets: Sequence[str],
        empty: bool,
    ) -> list[Text]:
        """Return the references that count. Raises CannotScore, see `compare`."""
        references = [words.read(target) for target in targets]
        with_words = [reference for reference in references if reference.whole]
        if not with_words and not empty:
            problem = self._no_tokens(targets, words.rules.tokenizer)
            raise CannotScore("NoTokens", problem)
        return references if self.script else with_words

    def _no_tokens(self, targets: Sequence[str], tokenizer: str) -> str:
        """Return what is wrong with references without a token, and the advice."""
        subject = "a reference" if len(targets) == 1 else f"{len(targets)} references"
        rules = f"the tokenizer {tokenizer}"
        if self._stopwords:
            rules += " and the stopwords"
        has_any_token = any(map(text.tokens, targets))
        if tokenizer == "char" or not has_any_token:
            chrf_advice = "chrf compares punctuation and emoji too"
            advice = f"there is nothing to compare; {chrf_advice}"
        elif self.preset:
            advice = "leave out the preset"
        else:
            advice = "set rouge.tokenizer=char"
        return f"has {subject} without any token by {rules}: {advice}"

    def _by_package(
        self, output: str, targets: Sequence[str]
    ) -> list[RougeScore | CannotScore]:
        """Return the scores by rouge-score, which expects one sentence per line."""
        names = tuple(kind.name for kind in self.kinds)
        candidate = "\n".join(text.sentences(output))
        references = ["\n".join(text.sentences(target)) for target in targets]
        scorer = _package_scorer(names, self.stem)
        score_by_name = scorer.score_multi(references, candidate)
        scores: list[RougeScore | CannotScore] = []
        for name in names:
            precision, recall, fmeasure = map(float, score_by_name[name])
            scores.append(RougeScore(precision, recall, fmeasure))
        return scores

    def _score_kind(
        self,
        kind: Kind,
        references: Sequence[Text],
        candidate: Text,
    ) -> RougeScore | CannotScore:
        """Return the score of a type, or why it has none: a text may be too long for one type."""
        try:
            tallies = [
                self._variant.tally(kind, reference, candidate)
                for reference in references
            ]
        except CannotScore as error:
            return error
        # The jackknife takes the best of the references that remain: by recall as ROUGE-1.5.5's
        # -f B, otherwise by F.
        best = "best_recall" if self.script else "best_f"
        return combine(kind, tallies, self._variant, self.combination, best)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample and column.

        A sample without a reference is a `Failure`, an empty output scores 0.
        """
        rows: list[Score | Failure] = []
        used: dict[str, None] = {}
        compared: dict[str, None] = {}
        # Words of the longest reference of each output.
        longest: list[int] = []
        for sample in samples:
            targets = references(sample)
            if not targets:
                rows += [no_reference(sample, column.name) for column in self._columns]
                continue
            compared |= dict.fromkeys((sample.output, *targets))
            tokenizer = self.tokenizer_for([sample.output, *targets])
            if tokenizer == "en" or not self.package:
                used[tokenizer] = None
            # ROUGE-1.5.5 counts blank references, too.
            counted = sample.references if self.script else targets
            compared_scores = self.compare(sample.output, counted, tokenizer)
            rows += self._rows(sample, compared_scores)
            words = self._vocabulary(tokenizer)
            longest.append(max(len(words.read(target)) for target in targets))
        notes: list[str | Note] = [self._note(compared), *self._short_notes(longest)]
        pairs = [(sample.output, references(sample)) for sample in samples]
        words_of = text.words(self.tokenizer) if self.tokenizer else text.tokens
        notes.append(wordless_note("rouge", pairs, words_of))
        if not (self.tokenizer or self.preset or self.package):
            notes += missing_tokenizer_notes(used, compared)
        nrefs = reference_count(samples)
        columns = tuple(self._column(column, used, nrefs) for column in self._columns)
        return MetricResult(columns, tuple(rows), tuple(notes))

    def _rows(
        self,
        sample: Sample,
        scores: Sequence[RougeScore | CannotScore],
    ) -> list[Score | Failure]:
        """Return a sample's row in each column from the scores of each type."""
        score_by_kind = dict(zip(self.kinds, scores, strict=True))
        rows: list[Score | Failure] = []
        for column in self._columns:
            scored = score_by_kind[column.kind]
            if isinstance(scored, CannotScore):
                reason = str(scored)
                rows.append(failure(sample, column.name, scored.error, reason))
            else:
                value = getattr(scored, _VALUES[column.value])
                item, system = sample.key
                rows.append(
                    Score(
                        item=item,
                        system=system,
                        column=column.name,
                        value=value,
                        provenance=_METRIC,
                    )
                )
        return rows

    def _note(self, compared: Collection[str]) -> Note:
        """Return how many of the texts the tokenizer does not suit."""
        tokenizer_name = "spaces" if self.preset else self.tokenizer
        note = tokenizer_note("rouge", tokenizer_name, compared)
        if self.script or self.package:
            some = sum(map(text.has_letter_beyond_ascii, compared))
            reader = f"the preset {SCRIPT}" if self.script else f"the package {PACKAGE}"
            problem = f"have letters beyond a-z, which {reader} drops"
            return replace(note, some=some, text=problem)
        if self.preset:
            unsplit = f"the preset {PLTRDY} does not split into words"
            return replace(note, text=f"are in a script that {unsplit}")
        return note

    def _short_notes(self, longest: Sequence[int]) -> list[Note]:
        """Return how many outputs have only references that are too short for a type.

        `longest` has the number of words of each output's longest reference. Without any word, it
        has no score.
        """
        notes: list[Note] = []
        for kind in self.kinds:
            needed = self._variant.least_words(kind)
            if needed > 1:
                some = sum(0 < n_words < needed for n_words in longest)
                problem = (
                    f"have no reference of {needed} words, so that {kind.name} is 0"
                )
                notes.append(Note("rouge", some, len(longest), problem))
        return notes

    def _column(
        self, column: _ValueColumn, used: Collection[str], nrefs: str
    ) -> Column:
        """Return a column; its signature names all that its values depend on."""
        kind = column.kind
        signed_stem = self._signed_stem(used)
        parts = [column.value, f"nrefs={nrefs}", f"stem={signed_stem}"]
        parts += self._signed_tokens(used)
        by_sentence = kind.by_sentence and self.preset != PLTRDY
        if by_sentence or (self.script and kind.family == "w"):
            parts.append("sent=lines-or-stops")
        parts.append(f"refs={self.combination.removesuffix('_f')}")
        # P and R depend on F only if it chooses among references.
        chooses_by_f = self.combination in ("best_f", "jackknife") and not self.script
        depends_on_f = column.value == "f" or (nrefs != "1" and chooses_by_f)
        if self._alpha is not None and depends_on_f:
            alpha = format_number(self._alpha)
            parts.append(f"alpha={alpha}")
        if self._stopwords:
            digest = _digest(sorted(self._stopwords))
            parts.append(f"stop={digest}")
        if self._exceptions:
            digest = _digest(map(" ".join, self._exceptions))
            parts.append(f"exc={digest}")
        if self.preset:
            parts.append(f"preset={self.preset}")
        if self.package:
            parts.append(f"implementation={PACKAGE} {version(PACKAGE)}")
        else:
            parts.append(f"judge {__version__}")
        signature = Signature(column.name, *parts)
        return Column(column.name, "metric", signature, low=0.0, high=1.0)

    def _signed_stem(self, used: Collection[str]) -> str:
        """Return which words were stemmed: no, en, or - if no row was English."""
        if not self.stem or self.preset == PLTRDY:
            return "no"
        return "en" if {*text.ENGLISH, SCRIPT} & {*used} else "-"

    def _signed_tokens(self, used: Collection[str]) -> list[str]:
        """Return the tokenizers that cut the texts, and the Unicode form that they cut."""
        if self.preset:
            tokenizer_name = self.preset if used else "-"
            return [f"tok={tokenizer_name}"]
        tokens, form = signed_words(used)
        # rouge-score does not normalise texts.
        return [tokens] if self.package else [tokens, form]


class RougeScores(dict[str, list[RougeScore | Failure]]):
    """The scores of each type, in the order of the outputs.

    `tokenizers` are as in `judge.metrics.common.Values`.
    """

    tokenizers: tuple[str, ...] = ()


def score(
    outputs: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    types: Sequence[str] | None = None,
    **options: Unpack[RougeOptions],
) -> RougeScores:
    """Return ROUGE (Lin 2004), 0–1, of each output against its reference or list of references.

    Each type has one `RougeScore(precision, recall, fmeasure)` per output, in order; the result's
    `tokenizers` cut the texts. `text.sentences` splits them into sentences. The options are
    described in `judge.metrics.rouge`. An output without a value is a `Failure` whose `item` is its
    index, from 0: it has no reference, none with a token, or a text too long for the type. An
    output without a token scores 0. Under the preset rouge155 empty texts score 0, as in the
    script, which fails on an empty reference only for ROUGE-W.

    Raise ConfigError for options, DataError for lists that do not match, MissingExtra for a
    tokenizer.
    """
    metric = Rouge(types=types, **options)
    scores = RougeScores({kind.name: [] for kind in metric.kinds})
    used: set[str] = set()
    for index, (output, targets) in enumerate(paired(outputs, references)):
        # ROUGE-1.5.5 defines a value for empty references.
        usable = [target for target in targets if metric.script or target.strip()]
        values: list[RougeScore | CannotScore]
        if usable:
            tokenizer = metric.tokenizer_for([output, *usable])
            values = metric.compare(output, usable, tokenizer, empty=metric.script)
            used.add(tokenizer)
        else:
            problem = "has only blank references" if targets else "has no reference"
            values = [CannotScore("NoReference", problem)] * len(metric.kinds)
        for (type_name, type_scores), value in zip(scores.items(), values, strict=True):
            if isinstance(value, CannotScore):
                type_scores.append(_failure(index, type_name, value))
            else:
                type_scores.append(value)
    tokenizers = used if metric.preset else map(text.signature, used)
    # English comes first.
    scores.tokenizers = tuple(sorted(tokenizers, key=lambda name: (name != "en", name)))
    return scores


def _failure(index: int, column_name: str, reason: CannotScore) -> Failure:
    """Return the failure of an output in a list."""
    message = f"output {index} {reason}"
    item = str(index)
    kind = reason.error
    return Failure(item, "", column_name, stage="metric", error=kind, message=message)


def _digest(lines: Iterable[str]) -> str:
    """Return the digest of words or exceptions for signatures."""
    listed = "\n".join(lines)
    return hashlib.sha256(listed.encode("utf-8", "replace")).hexdigest()[:8]


@lru_cache(maxsize=8)
def _package_scorer(types: tuple[str, ...], stem: bool) -> Any:
    """Return the scorer of rouge-score, whose import loads all of nltk."""
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(types, use_stemmer=stem)


def _lines(file: str | Path, option: str) -> list[str]:
    """Return the lines of a file that an option names. Raises ConfigError."""
    try:
        # Some editors on Windows begin a file with a byte order mark.
        return Path(file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"rouge.{option}: cannot read {file} as text: {error}"
        ) from error
