"""Source-BLEU: how much of its source a text repeats, which papers on paraphrase call self-BLEU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Unpack

from judge.core.errors import DataError
from judge.core.messages import option
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.metrics import MetricResult
from judge.metrics.bleu_options import BleuOptions, Settings, options, score
from judge.metrics.common import failure, texts

_NAME = "source_bleu"


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
            _NAME,
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
                rows.append(_no_source(sample))
                continue
            name = self.settings.tokens.name([sample.source])
            names.add(name)
            number = _bleu(sample.output, sample.source, name, self.settings)
            rows.append(Score(sample.item, sample.system, _NAME, number, Provenance("metric")))
        signature = f"{_NAME}|sentence|{self.settings.signature(sorted(names))}"
        return MetricResult((Column(_NAME, "metric", signature, low=0.0, high=100.0, better=""),), tuple(rows))


def source_bleu(
    outputs: Sequence[str],
    sources: Sequence[str],
    **opts: Unpack[BleuOptions],
) -> list[float]:
    """sacrebleu's sentence BLEU (0–100) of each output against its own source; an empty output scores 0.

    Options as in `self_bleu_each`; the tokenizer is chosen for each source. Raises DataError where there are not as
    many sources as outputs, or one is blank.
    """
    settings = options(_NAME, **opts)
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
    found, total = [], []
    for order in range(1, settings.max_order + 1):
        grams = _grams(mine, order)
        found.append((grams & _grams(theirs, order)).total())
        total.append(grams.total())
    return score(found, total, (len(mine), len(theirs)), settings)


def _grams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def _no_source(sample: Sample) -> Failure:
    found = "no source" if sample.source is None else "a blank source"
    advice = f"add a column `source`, or name yours with {option('map', {'source': 'COLUMN'})}"
    return failure(sample, _NAME, "NoSource", f"has {found}: {advice}")
