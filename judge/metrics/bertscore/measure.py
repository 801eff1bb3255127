"""Outputs and their references to BERTScore values: encoded and matched in parts, so that memory stays bounded."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from judge.metrics.bertscore import models
from judge.metrics.bertscore.embedder import Embedder, Progress, clean
from judge.metrics.bertscore.matching import BertScoreValue, Encoded, Weights, best, match
from judge.metrics.bertscore.options import Options
from judge.metrics.bertscore.store import NoStore, Store
from judge.metrics.bertscore.tokenizing import Facts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_HALF = 0.5
_BLOCK_TOKENS = 100_000  # 150 MB of embeddings with 384 dimensions, 400 MB with 1024


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a pair has no value: the kind, and what to do."""

    error: str
    message: str


@dataclass(frozen=True, slots=True)
class Job:
    """An output and the references it is compared with, none of them blank."""

    output: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """For each job its value, not rescaled, or why there is none, and which texts were longer than the window.

    `limit` is the model's window in tokens; `trouble` what went wrong with the store, if anything did; `unknown_texts`
    are those of which the model's vocabulary lacks more than half.
    """

    model: models.Model
    baseline: models.Baseline | None
    values: tuple[BertScoreValue | Trouble, ...]
    long: frozenset[int]
    long_texts: int
    limit: int | None
    trouble: str = ""
    unknown_texts: int = 0


def check(options: Options, cache: Path | None) -> None:
    """Raises ConfigError and MissingExtra for what cannot be had; computes nothing."""
    models.baseline(options, models.resolve(options, cache).layer)


def measure(
    jobs: Sequence[Job], options: Options, cache: Path | None, progress: Progress | None, documents: Sequence[str]
) -> Measured:
    """BERTScore of each job; `documents` are the texts that idf is counted from.

    Embeddings are kept in `cache`. Raises ConfigError and MissingExtra, before anything is computed.
    """
    jobs = [Job(clean(job.output), tuple(map(clean, job.references))) for job in jobs]
    folder = cache / "bertscore" if cache else None
    with ExitStack() as stack:
        store: NoStore = stack.enter_context(closing(Store(folder))) if folder else NoStore()
        model = models.resolve(options, cache)
        baseline = models.baseline(options, model.layer)
        if not jobs:
            return Measured(model, baseline, (), frozenset(), 0, None, store.trouble)
        parts = list(_blocks(jobs))
        again = _needed_again(jobs, parts) if folder is None else None
        if again:
            spill = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            store = stack.enter_context(closing(Store(spill)))
        embedder = Embedder(options, model, store, folder)
        embedder.spilled, embedder.progress = again, progress
        embedder.total = len({text for job in jobs for text in (job.output, *job.references)})
        matcher = _Matcher(_weights(embedder, options, documents), embedder.facts)
        values: dict[int, BertScoreValue | Trouble] = {}
        for part in parts:
            encoded = embedder.encode(
                list(dict.fromkeys(t for n in part for t in (jobs[n].output, *jobs[n].references)))
            )
            values |= matcher.values({n: jobs[n] for n in part}, encoded)
        trouble = store.trouble if folder else ""
        found = tuple(values[n] for n in range(len(jobs)))
        limit, unknown = embedder.facts.limit, len(matcher.unknown_texts)
        long, long_texts = frozenset(matcher.long), len(matcher.long_texts)
        return Measured(model, baseline, found, long, long_texts, limit, trouble, unknown)


def _weights(embedder: Embedder, options: Options, documents: Sequence[str]) -> Weights:
    weightless = frozenset(embedder.facts.weightless)
    if options.idf is False:
        return Weights(weightless)
    texts = [text for text in map(clean, documents if options.idf is True else options.idf) if text]
    ids = embedder.ids(dict.fromkeys(texts))
    return Weights.of(weightless, (ids[text] for text in texts))


def _blocks(jobs: Sequence[Job]) -> Iterator[list[int]]:
    """Places of jobs in parts of so many tokens, about; those with the same references are next to each other."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, job in enumerate(jobs):
        groups.setdefault(job.references, []).append(place)
    part: list[int] = []
    seen: set[str] = set()
    tokens = 0
    for place in (place for group in groups.values() for place in group):
        new = {jobs[place].output, *jobs[place].references} - seen
        # A token is about four bytes of English and three of Chinese, Japanese or Korean.
        cost = sum(len(text.encode()) // 4 + 2 for text in new)
        if part and tokens + cost > _BLOCK_TOKENS:
            yield part
            part, seen, tokens = [], set(), 0
            new = {jobs[place].output, *jobs[place].references}
            cost = sum(len(text.encode()) // 4 + 2 for text in new)
        part.append(place)
        seen |= new
        tokens += cost
    if part:
        yield part


def _needed_again(jobs: Sequence[Job], parts: Sequence[Sequence[int]]) -> set[str]:
    """The texts of more than one part."""
    if len(parts) < 2:
        return set()
    found: Counter[str] = Counter()
    for part in parts:
        found.update({text for n in part for text in (jobs[n].output, *jobs[n].references)})
    return {text for text, count in found.items() if count > 1}


class _Matcher:
    """Matches encoded texts, and remembers which were longer than the window or mostly unknown."""

    def __init__(self, weights: Weights, facts: Facts) -> None:
        self._weights, self._limit, self._unknown = weights, facts.limit, facts.unknown
        self.long: set[int] = set()
        self.long_texts: set[str] = set()
        self.unknown_texts: set[str] = set()

    def values(self, jobs: dict[int, Job], encoded: dict[str, Encoded]) -> dict[int, BertScoreValue | Trouble]:
        """The value of each job, by its place."""
        weighed = {text: _Weighed(row, self._weights(row.ids), self._share(row)) for text, row in encoded.items()}
        self.unknown_texts |= {text for text, row in weighed.items() if row.unknown > _HALF}
        return {place: self._value(place, job, weighed) for place, job in jobs.items()}

    def _value(self, place: int, job: Job, texts: dict[str, _Weighed]) -> BertScoreValue | Trouble:
        output = texts[job.output]
        usable = [text for text in job.references if texts[text].usable]
        if not output.usable:
            return self._trouble("output", output.row)
        if not usable:
            return self._trouble("reference", texts[job.references[0]].row)
        if output.unknown == 1 and all(texts[text].unknown == 1 for text in usable):
            return Trouble("UnknownText", "has an output and references of which the model knows no word: take another")
        if longer := {text for text in (job.output, *usable) if texts[text].row.length > self._limit}:
            self.long.add(place)
            self.long_texts |= longer
        values = [match(output.row, output.weights, texts[text].row, texts[text].weights) for text in usable]
        if all(math.isfinite(v.precision + v.recall + v.fmeasure) for v in values):
            return best(values)
        return Trouble("NotFinite", "gets an embedding that is no finite number: take precision fp32, or another model")

    def _share(self, row: Encoded) -> float:
        """Which share of a text's tokens is not in the vocabulary; all of these are alike to the model."""
        ids = [token for token in row.ids.tolist() if token not in self._weights.weightless]
        return ids.count(self._unknown) / len(ids) if ids else 0.0

    def _trouble(self, what: str, row: Encoded) -> Trouble:
        if self._weights.frequencies is not None and any(t not in self._weights.weightless for t in row.ids.tolist()):
            return Trouble(
                "NoWeight",
                f"has only tokens in its {what} that all {self._weights.documents} documents have from which idf is "
                "counted, so that none weighs anything: give more references, or set idf to false",
            )
        return Trouble("NoTokens", f"has nothing in its {what} that the model's tokenizer knows as text: give it words")


@dataclass(frozen=True, slots=True)
class _Weighed:
    row: Encoded
    weights: npt.NDArray[np.float64]
    unknown: float

    @property
    def usable(self) -> bool:
        return bool(self.weights.sum() > 0)
