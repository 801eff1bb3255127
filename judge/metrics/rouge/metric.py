"""ROUGE as a metric of `judge`."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import ClassVar

from judge import text
from judge.core.errors import ConfigError
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.version import __version__
from judge.metrics import MetricResult, Note
from judge.metrics.common import (
    Unscorable,
    failure,
    figure,
    joined,
    listed,
    lost,
    no_reference,
    reference_count,
    references,
)
from judge.metrics.rouge.interning import SCRIPT, script_words, vocabulary
from judge.metrics.rouge.kinds import Kind
from judge.metrics.rouge.options import Files, Words, options
from judge.metrics.rouge.scoring import row
from judge.metrics.rouge.variants import RougeScore

_VALUES = {"p": "precision", "r": "recall", "f": "fmeasure"}
_METRIC = Provenance(method="metric")


class Rouge:
    """F1 (0–1) of unigrams, bigrams and the longest common subsequence, over whole texts and sentence by sentence.

    Of several references each type takes the one with the best F. Words are cut and stemmed (Porter) by
    rouge-score's English rules, `tok=en`; a row where they would lose most letters of the output or of a reference
    is cut by the tokenizer of its script. rougeLsum and rouge155 read the sentences that `text.sentences` finds.
    `values` are f, p (precision) and r (recall), whose columns are named as `rouge1_p`. The other options are those
    of `judge.metrics.rouge`. Raises ConfigError and MissingExtra.
    """

    rowwise: ClassVar[bool] = True

    def __init__(
        self,
        *,
        types: Sequence[str] | None = None,
        stem: bool = True,
        multi: str | None = None,
        preset: str | None = None,
        tokenizer: str | None = None,
        stopwords: Words | None = None,
        exceptions: Files | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        values: str | Sequence[str] = "f",
    ) -> None:
        self._options = options(
            types,
            stem=stem,
            multi=multi,
            preset=preset,
            tokenizer=tokenizer,
            stopwords=stopwords,
            exceptions=exceptions,
            alpha=alpha,
            beta=beta,
        )
        self._columns = [
            (kind.name if value == "f" else f"{kind.name}_{value}", kind, value)
            for kind in self._options.kinds
            for value in _checked(values)
        ]

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """One row per sample and column. A sample without a reference is a `Failure`, an empty output scores 0."""
        rows: list[Score | Failure] = []
        used: dict[str, None] = {}
        for sample in samples:
            if not (found := references(sample)):
                rows += [no_reference(sample, name) for name, _, _ in self._columns]
                continue
            tokenizer = self._options.tokenizer_for([sample.output, *found])
            used[tokenizer] = None
            rows += self._rows(sample, tokenizer, sample.references if self._options.script else found)
        counted = reference_count(samples)
        columns = tuple(self._column(column, used, counted) for column in self._columns)
        return MetricResult(columns, tuple(rows), self._notes(samples))

    def _rows(self, sample: Sample, tokenizer: str, found: Sequence[str]) -> list[Score | Failure]:
        words = vocabulary(self._options.rules(tokenizer, running=True))
        kinds = self._options.kinds
        scores = dict(zip(kinds, row(self._options, words, sample.output, found), strict=True))
        return [_row(sample, name, scores[kind], value) for name, kind, value in self._columns]

    def _column(self, column: tuple[str, Kind, str], used: Collection[str], references: str) -> Column:
        name, kind, value = column
        chosen = self._options
        tokenizers = joined(SCRIPT if name == SCRIPT else text.signature(name) for name in used)
        stems = "no" if not chosen.stem else "en" if {"en", SCRIPT} & {*used} else "-"
        parts = [name, value, f"nrefs={references}", f"stem={stems}", f"tok={tokenizers}"]
        if kind.by_sentence or (chosen.script and kind.family == "w"):
            parts.append("sent=lines-or-stops")
        parts.append(f"refs={chosen.multi.removesuffix('_f')}")
        parts += [f"alpha={figure(chosen.alpha)}"] if chosen.alpha is not None else []
        for key, words in (("stop", sorted(chosen.stopwords)), ("exc", map(" ".join, chosen.exceptions))):
            if listed := "\n".join(words):
                parts.append(f"{key}={hashlib.sha256(listed.encode('utf-8', 'replace')).hexdigest()[:8]}")
        parts += [f"preset={SCRIPT}"] if chosen.script else []
        return Column(name, "metric", "|".join([*parts, f"judge {__version__}"]), low=0.0, high=1.0)

    def _notes(self, samples: Sequence[Sample]) -> tuple[Note, ...]:
        """A warning where a tokenizer that was asked for does not see most of a text."""
        if not (name := self._options.tokenizer):
            return ()
        texts = {part for sample in samples if (found := references(sample)) for part in (sample.output, *found)}
        if name != SCRIPT:
            return (lost("rouge", name, texts),)
        some = sum(not part.isascii() and text.loses(part, script_words(part)) for part in texts)
        return (Note("rouge", some, len(texts), f"lost more than half of their letters to the preset {SCRIPT}"),)


def _checked(values: str | Sequence[str]) -> list[str]:
    given = listed(values)
    known = isinstance(given, Sequence) and all(isinstance(value, str) and value in _VALUES for value in given)
    if not known or not given or len(set(given)) < len(given):
        raise ConfigError(f"rouge.values must be some of f, p and r, each once, not {values!r}")
    return list(given)


def _row(sample: Sample, name: str, found: RougeScore | Unscorable, value: str) -> Score | Failure:
    if isinstance(found, Unscorable):
        return failure(sample, name, found.error, str(found))
    return Score(sample.item, sample.system, name, getattr(found, _VALUES[value]), _METRIC)
