"""Compute BLEU (Papineni et al. 2002) of texts and systems, by sacrebleu's rules (Post 2018)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, ClassVar

from judge.core.errors import ConfigError, DataError
from judge.core.format import plural
from judge.core.messages import option
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.metrics import MetricResult, Note
from judge.metrics.base import setting
from judge.metrics.bleu_options import HIGHEST_ORDER, Settings
from judge.metrics.common import (
    CannotScore,
    Rate,
    ReferenceMetric,
    all_texts,
    as_samples,
    by_system,
    choices_option,
    form_note,
    list_function,
    reference_count,
    whole_number,
)
from judge.metrics.common import references as usable

__all__ = ["Bleu", "CorpusBleu", "corpus", "sentence"]

_RESAMPLES = 1000
# score, p1 … p9, bp
_PARTS = ("score", *(f"p{order}" for order in range(1, HIGHEST_ORDER + 1)), "bp")


@dataclass(frozen=True, kw_only=True)
class Parts(Settings):
    """BLEU and its parts: `values` are score, p1 … p9 (precisions of n-grams, 0–100) and bp (brevity penalty, 0–1).

    Precisions are smoothed, as sacrebleu prints them. Columns but that of the score end in `_p1` …
    `_bp`.
    """

    values: str | Sequence[str] = setting(
        "score",
        choices_option,
        _PARTS,
        "the values of BLEU must be distinct: some of score, p1 to p9 and bp",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for part in self.values:
            is_precision = part.startswith("p")
            if is_precision and int(part[1:]) > self.max_order:
                raise ConfigError(
                    f"{self.name}.values: {part} needs {self.name}.max_order of {part[1:]} or more"
                )

    def columns(self) -> dict[str, str]:
        """Return the parts by their columns' names."""
        part_by_column: dict[str, str] = {}
        for part in self.values:
            column_name = self.name if part == "score" else f"{self.name}_{part}"
            part_by_column[column_name] = part
        return part_by_column

    def part(self, score: Any, part: str) -> float:
        """Return a part of sacrebleu's score. Raise CannotScore for a precision of no n-grams."""
        if part == "score":
            # Rounding may exceed the limit.
            return min(float(score.score), 100.0)
        if part == "bp":
            return float(score.bp)
        order = int(part[1:])
        if not score.totals[order - 1]:
            raise CannotScore(
                "TextsTooShort",
                f"precision {part} needs an output of {plural(order, 'token')} or more",
            )
        return float(score.precisions[order - 1])


@dataclass(frozen=True, kw_only=True)
class Bleu(Parts, ReferenceMetric):
    """Sentence BLEU (0–100) with effective order, exponential smoothing and all references at once.

    The script of the references picks the tokenizer, so all systems of an item share it: `zh` for
    Chinese, `ja-mecab` and `ko-mecab` for Japanese and Korean (`char` without their dictionaries),
    else `13a`. `tokenize` names one of sacrebleu's for all texts, `smooth` its smoothing (`exp`,
    `none`, `floor`, `add-k`), `max_order` the longest n-gram, 1–9. `values` adds the precisions of
    n-grams and the brevity penalty: `score,p1,p2,p3,p4,bp`.
    """

    name: ClassVar[str] = "bleu"
    high: ClassVar[float | None] = 100.0

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample.

        A sample without a reference is a `Failure`; an empty output scores 0.
        """

        # All parts are of one score of a pair, which is computed once.
        scores: dict[tuple[str, tuple[str, ...]], Any] = {}

        def prepare(part: str, targets: tuple[str, ...], used: set[str]) -> Rate:
            """Return the rating of outputs with these references, and note the tokenizer."""
            tokenizer = self.tokenizer_for(targets)
            used.add(tokenizer)

            def rate(output: str) -> float:
                if (output, targets) not in scores:
                    counts = self.counts(output, targets, tokenizer)
                    scores[output, targets] = self.computed(counts)
                return self.part(scores[output, targets], part)

            return rate

        results: list[MetricResult] = []
        for column_name, part in self.columns().items():
            high = 1.0 if part == "bp" else None
            result = self.compare(
                samples,
                partial(prepare, part),
                self.signed_options,
                name=column_name,
                high=high,
            )
            results.append(result)
        columns = tuple(result.columns[0] for result in results)
        # All rows of a sample follow each other, in the order of the columns.
        rows_by_sample = zip(*(result.rows for result in results), strict=True)
        rows = chain.from_iterable(rows_by_sample)
        return MetricResult(columns, tuple(rows), results[0].notes)

    def notes(
        self, samples: Sequence[Sample], used: Collection[str]
    ) -> tuple[str | Note, ...]:
        """Return notes about texts that the tokenizer does not suit, and about Unicode forms."""
        texts = list(all_texts(samples))
        note_on_tokens = self.note(texts, self.tokenize)
        missing = self.missing(texts, used)
        return note_on_tokens, *missing, *super().notes(samples, used)


@dataclass(frozen=True, kw_only=True)
class CorpusBleu(Parts):
    """BLEU (0–100) of all of a system's texts together, with a 95% bootstrap interval over the texts.

    One row per system; `n` counts its texts with a reference, the others are skipped and noted. The
    script of all references together picks the system's tokenizer. The interval is the percentile
    interval (Koehn 2004) of 1,000 resamples drawn from `seed`, by default the run's; a system with
    one text has none. The other options are documented at `bleu`.
    """

    name: ClassVar[str] = "bleu_corpus"
    needs: ClassVar[str] = "references"
    effective_order: bool = field(default=False, init=False)
    seed: int | None = setting(None, whole_number, 0, 2**32 - 1)

    @property
    def _seed(self) -> int:
        return self.context.seed if self.seed is None else self.seed

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per system, in order of first appearance.

        A system without any reference is a `Failure`, and so is one that matches its references but
        has no text as long as the longest n-gram, because corpus BLEU has no effective order.
        """
        rows: list[Score | Failure] = []
        left_out = 0
        used: set[str] = set()
        texts_by_tokenizer: dict[str, set[str]] = {}
        for system, system_samples in by_system(samples).items():
            all_references = chain.from_iterable(map(usable, system_samples))
            tokenizer = self.tokenizer_for(all_references)
            texts = texts_by_tokenizer.setdefault(tokenizer, set())
            stats: list[list[int]] = []
            for sample in system_samples:
                targets = usable(sample)
                texts.update((sample.output, *targets))
                if targets:
                    stats.append(self.counts(sample.output, targets, tokenizer))
            for column_name, part in self.columns().items():
                rows.append(self._row(system, stats, column_name, part))
            # A system without any reference is a failure, not a text that is left out.
            if stats:
                used.add(tokenizer)
                left_out += len(system_samples) - len(stats)
        lacking = "have no reference and are left out"
        notes: list[str | Note] = [
            Note("bleu_corpus", left_out, len(samples), lacking),
            *self._notes_on_texts(samples, texts_by_tokenizer, used),
        ]
        parts = self._signature_parts(samples, used)
        return MetricResult(self._columns(parts), tuple(rows), tuple(notes))

    def _notes_on_texts(
        self,
        samples: Sequence[Sample],
        texts_by_tokenizer: Mapping[str, Collection[str]],
        used: Collection[str],
    ) -> list[str | Note]:
        """Return notes about texts that their tokenizer does not suit, and about Unicode forms."""
        notes: list[str | Note] = []
        for tokenizer, texts in texts_by_tokenizer.items():
            notes.append(self.note(texts, tokenizer))
        all_texts = chain.from_iterable(texts_by_tokenizer.values())
        notes += self.missing(all_texts, used)
        compared = [(sample.output, usable(sample)) for sample in samples]
        notes.append(form_note("bleu_corpus", compared))
        return notes

    def _signature_parts(self, samples: Sequence[Sample], used: set[str]) -> list[str]:
        """Return the signature after the column's name, in sacrebleu's order."""
        nrefs = reference_count(samples)
        return [
            "corpus",
            f"nrefs={nrefs}",
            f"bs={_RESAMPLES}",
            f"seed={self._seed}",
            *self.signed_options(used),
        ]

    def _columns(self, signature_parts: Sequence[str]) -> tuple[Column, ...]:
        columns: list[Column] = []
        for column_name, part in self.columns().items():
            signature = Signature(column_name, *signature_parts)
            high = 1.0 if part == "bp" else 100.0
            columns.append(Column(column_name, "metric", signature, low=0.0, high=high))
        return tuple(columns)

    def _row(
        self,
        system: str,
        stats: list[list[int]],
        column_name: str,
        part: str,
    ) -> Score | Failure:
        """Return a part of a system's BLEU; `stats` are the counts of each text, see `counts`."""
        label = f"system {system}" if system else "the system"

        def failed(error: str, message: str) -> Failure:
            return Failure(
                "", system, column_name, stage="metric", error=error, message=message
            )

        if not stats:
            with_other_name = option("map")
            message = (
                f"no text of {label} has a reference: add a column `references`, or name yours "
                f"with {with_other_name}"
            )
            return failed("NoReference", message)
        total = _sum_of_counts(stats)
        if not _is_defined(total):
            order = self.max_order
            message = (
                f"no text of {label} has {order} tokens, so its corpus BLEU is undefined: set "
                f"bleu_corpus.max_order below {order}, or use bleu"
            )
            return failed("TextsTooShort", message)
        try:
            value = self.part(self.computed(total), part)
        except CannotScore as error:
            return failed(error.error, f"{label}: {error}")
        return Score(
            item="",
            system=system,
            column=column_name,
            value=value,
            provenance=self._interval(stats, part),
        )

    def _interval(self, stats: list[list[int]], part: str) -> Provenance:
        """Return the 2.5 and 97.5% quantiles of a part over resamples of the texts.

        Resamples for which it is undefined are left out. If most are, or if there is only one text,
        there is no interval.
        """
        text_count = len(stats)
        if text_count < 2:
            return Provenance("metric", n=text_count)
        import numpy as np

        counts = np.asarray(stats, dtype=np.float64)
        random = np.random.default_rng(self._seed)
        resampled: list[float] = []
        for _ in range(_RESAMPLES):
            drawn_texts = random.integers(text_count, size=text_count)
            times_drawn = np.bincount(drawn_texts, minlength=text_count)
            # Shapes (texts) and (texts, counts). Floats, because BLAS multiplies only these.
            total_counts = times_drawn.astype(np.float64) @ counts
            total = [int(count) for count in total_counts]
            if not _is_defined(total):
                continue
            # A resample of short texts may lack n-grams of this order.
            with suppress(CannotScore):
                resampled.append(self.part(self.computed(total), part))
        # If most resamples are undefined, the quantiles of the others say little.
        if len(resampled) < _RESAMPLES / 2:
            return Provenance("metric", n=text_count)
        lower_bound, upper_bound = map(float, np.quantile(resampled, (0.025, 0.975)))
        defined_only = ""
        if len(resampled) < _RESAMPLES:
            defined_only = f" ({len(resampled):,} for which it is defined)"
        method = (
            f"95% percentile bootstrap over texts, {_RESAMPLES:,} resamples{defined_only}, "
            f"seed {self._seed}"
        )
        return Provenance(
            "metric", n=text_count, low=lower_bound, high=upper_bound, note=method
        )


sentence = list_function(
    Bleu,
    """Return sentence BLEU (0–100) of each output against its reference or references; see `Bleu`.

    Raise DataError if an output has no reference, ConfigError for an unknown option.
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

    Raise DataError if there is no output, one has no reference, or none has `max_order` tokens.
    Raise ConfigError for an unknown option.
    """
    metric = CorpusBleu(
        tokenize=tokenize, smooth=smooth, lowercase=lowercase, max_order=max_order
    )
    samples = as_samples(outputs, references)
    tokenizer = metric.tokenizer_for(chain.from_iterable(map(usable, samples)))
    stats = [
        metric.counts(sample.output, usable(sample), tokenizer) for sample in samples
    ]
    total = _sum_of_counts(stats)
    if not stats or not _is_defined(total):
        raise DataError(
            f"corpus BLEU needs a text of at least max_order = {max_order} tokens"
        )
    return metric.bleu(total)


def _sum_of_counts(stats: Sequence[Sequence[int]]) -> list[int]:
    """Return the statistics of all texts together."""
    return [sum(column) for column in zip(*stats, strict=True)]


def _is_defined(total: Sequence[int]) -> bool:
    """Return whether corpus BLEU is defined.

    With matches but no n-gram of the highest order, the precision of that order is 0/0.
    """
    # `counts` are two lengths, then the matches and then the n-grams of each order.
    highest_order = (len(total) - 2) // 2
    matches = total[2 : 2 + highest_order]
    ngrams_of_highest_order = total[-1]
    return ngrams_of_highest_order > 0 or not any(matches)
