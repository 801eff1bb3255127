"""Compute the factual consistency of texts claim by claim (Min et al. 2023, FActScore; Ru et al. 2024, RAGChecker).

Options are checked at once: a wrong type is a ConfigError.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from numbers import Real
from typing import Any, ClassVar, NamedTuple

from judge import text
from judge.core.claims import Claim, Span, decode, encode
from judge.core.errors import ConfigError, DataError
from judge.core.format import one_line, plural
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.core.version import __version__
from judge.metrics import MetricResult, Note, prompts
from judge.metrics.base import Ask, BaseMetric, ModelError, no_progress, setting
from judge.metrics.claims.cross_encoder import WINDOW, CrossEncoder, label_option, locate
from judge.metrics.claims.judge_model import ModelVerifier, Part, Splitter
from judge.metrics.claims.verifier import Job, Verifier
from judge.metrics.common import (
    choice_option,
    failure,
    format_number,
    lacks_source,
    no_reference,
    number,
    paired,
    references,
    says,
    spread,
    text_option,
    texts,
    whole_number,
)

__all__ = ["Claims", "ClaimsValue", "Job", "Verifier", "score"]

LLM, NLI = "llm", "nli:"
COLUMNS = PRECISION, RECALL, F1 = "claims_precision", "claims_recall", "claims_f1"
THRESHOLD = 0.5
NO_JUDGE = (
    "claims: a judge model lists and checks the claims: name one with --model NAME, or in Python call "
    'judge.evaluate(rows, [], metrics="claims", model=NAME)'
)
Side = tuple[Claim, ...] | ModelError
"""The checked claims of a text, or why there are none."""


def _verifier_option(option: str, value: Any) -> str | Verifier:
    if value == LLM or isinstance(value, Verifier):
        return value  # type: ignore[no-any-return]
    if isinstance(value, str) and value.removeprefix(NLI).strip() and value.startswith(NLI):
        return value
    raise ConfigError(
        f"{option} must be llm or nli:MODEL (a folder or a name on the Hugging Face hub), not {value!r}"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Claims(BaseMetric):
    """Claims: the share of an output's claims that the source supports, and of the references' that the output does.

    A judge model lists the claims of each text in one request (`unit` claim), or its sentences are the claims (`unit`
    sentence). At most `most` claims of a text count, spread evenly over it. `verify` gives the probability that the
    other text supports each claim: `llm` asks the judge model once about all claims of a text, `nli:MODEL` a
    cross-encoder (`label`, `window`, `device` and `batch_tokens` as in `nli`); in Python it may be a `Verifier`. A
    claim is supported from the probability `threshold`.

    `claims_precision` is the supported share of the output's claims (0–1), with `value` mean the mean probability. If
    texts have references, `claims_recall` is the share of their claims, all references together, that the output
    supports, and `claims_f1` the harmonic mean.
    `language` is that of the prompts, by default each text's. Raises ConfigError.
    """

    name: ClassVar[str] = "claims"
    needs: ClassVar[str] = "source"
    unit: str = setting("claim", choice_option, ("claim", "sentence"))
    verify: str | Verifier = setting(LLM, _verifier_option)  # noqa: RUF009
    value: str = setting("share", choice_option, ("share", "mean"))
    threshold: float = setting(THRESHOLD, number, 0, 1)
    most: int = setting(40, whole_number, 1, 1_000)
    language: str | None = setting(None, prompts.language_option)
    label: str | int | None = setting(None, label_option)
    window: int | None = setting(None, whole_number, 1, 1_000_000)
    device: str | None = setting(None, text_option)
    batch_tokens: int | None = setting(None, whole_number, 1, 1_000_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.asks:
            self._judge()
        if not self._encoder:
            for option in ("label", "window", "device", "batch_tokens"):
                if getattr(self, option) is not None:
                    raise ConfigError(
                        f"claims.{option} is an option of claims.verify=nli:MODEL: omit it"
                    )

    @property
    def asks(self) -> bool:
        """Return whether the judge model is asked."""
        return self.unit == "claim" or self.verify == LLM

    def most_requests(self, samples: Sequence[Sample]) -> int:
        """Return how many requests the judge model gets, if none of the replies is cached; repairs are not counted."""
        pairs = _distinct_pairs(samples)
        split = len({pair.claimed for pair in pairs}) if self.unit == "claim" else 0
        return split + (len(pairs) if self.verify == LLM else 0)

    @property
    def _prompt_language(self) -> str | None:
        return self.language or self.context.language

    def _judge(self) -> Ask:
        if self.context.ask is None:
            raise ConfigError(NO_JUDGE)
        return self.context.ask

    @cached_property
    def _encoder(self) -> CrossEncoder | None:
        if not isinstance(self.verify, str) or self.verify == LLM:
            return None
        files = locate(
            self.verify.removeprefix(NLI).strip(), who=self.name, cache=self.context.cache
        )
        return CrossEncoder(
            files,
            self.label,
            self.window or WINDOW,
            self.device,
            self.batch_tokens,
            self.context.progress,
        )

    def check(self, samples: Sequence[Sample]) -> None:
        """Raise ConfigError for a cross-encoder that cannot be loaded."""
        if self._encoder:
            self._encoder.model  # noqa: B018

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample and column; those of precision and recall carry `judge.core.claims` records.

        A sample is a `Failure` in a column if it lacks one of the texts, if these have no claims, or if a request about
        them failed. A claim of a reference has no `span` if there are several references.
        """
        pairs = _distinct_pairs(samples)
        splitter = Splitter(self._judge(), self._prompt_language) if self.unit == "claim" else None
        verifier = self.verify
        if isinstance(verifier, str):
            verifier = self._encoder or ModelVerifier(self._judge(), self._prompt_language)
        listed = _listed(list(dict.fromkeys(pair.claimed for pair in pairs)), splitter)
        tell = no_progress if self._encoder else self.context.progress
        tell(1, 2)
        parts = {
            whole: each if isinstance(each, ModelError) else spread(each, self.most)
            for whole, each in listed
        }
        silent = {whole for whole, claims in parts.items() if claims == []}
        sides: dict[_Pair, Side] = {}
        jobs: dict[_Pair, Job] = {}
        for pair in pairs:
            claims = parts[pair.claimed]
            if isinstance(claims, ModelError) or not claims or pair.output in silent:
                sides[pair] = claims if isinstance(claims, ModelError) else ()
            else:
                jobs[pair] = Job(pair.against, tuple(claim for claim, _ in claims))
        replies = list(verifier.verify(list(jobs.values()))) if jobs else []
        tell(2, 2)
        if len(replies) != len(jobs):
            raise ConfigError(
                f"claims.verify: gave {len(replies)} replies to {len(jobs)} jobs; give one for each"
            )
        sides |= {
            pair: _side(job, parts[pair.claimed], reply)
            for (pair, job), reply in zip(jobs.items(), replies, strict=True)
        }
        columns = COLUMNS if any(references(sample) for sample in samples) else COLUMNS[:1]
        by = f" by {splitter.signature}" if splitter else ""
        of = f"threshold={format_number(self.threshold)}" if self.value == "share" else "mean"
        signed = [
            f"unit={self.unit}{by}",
            f"verify={verifier.signature}",
            of,
            f"most={self.most}",
            f"judge {__version__}",
        ]
        claimed = [each for _, each in listed if not isinstance(each, ModelError)]
        many = f"have more than {self.most} claims, of which {self.most} count, spread evenly: raise claims.most"
        unplaced = (
            "lack words that a claim quotes from them; such claims are not marked in the text"
        )
        notes = (
            Note("claims", sum(len(each) > self.most for each in claimed), len(listed), many),
            Note(
                "claims",
                sum(any(span is None for _, span in each) for each in claimed),
                len(listed),
                unplaced,
            ),
        )
        return MetricResult(
            tuple(
                Column(name, "metric", Signature(name, *signed), low=0.0, high=1.0)
                for name in columns
            ),
            tuple(
                row
                for sample in samples
                for row in self._rows(
                    sample, columns, sides, not says(sample.output) or sample.output in silent
                )
            ),
            notes,
        )

    def _rows(
        self, sample: Sample, columns: Sequence[str], sides: Mapping[_Pair, Side], silent: bool
    ) -> list[Score | Failure]:
        precision, recall = _pairs(sample)
        rows: list[Score | Failure] = []
        for name, pairs in zip(columns, (precision, recall), strict=False):
            checked = [sides[pair] for pair in pairs]
            trouble = next((side for side in checked if isinstance(side, ModelError)), None)
            claims = tuple(
                claim for side in checked if not isinstance(side, ModelError) for claim in side
            )
            if silent or (pairs and not trouble and not claims):
                problem = f"has {'an output' if silent else 'references'} without claims: it is not measured"
                rows.append(failure(sample, name, "NoClaims", problem))
            elif trouble:
                reason = failure(sample, name, trouble.error, f"is not measured: {trouble.message}")
                rows.append(replace(reason, raw=trouble.raw))
            elif not pairs:
                lacking = failure(sample, name, "NoSource", lacks_source(sample))
                rows.append(lacking if name == PRECISION else no_reference(sample, name))
            else:
                if len(pairs) > 1:
                    claims = tuple(replace(claim, span=None) for claim in claims)
                value = value_of(claims, self.threshold if self.value == "share" else None)
                provenance = Provenance("metric", n=len(claims), raw=encode(claims))
                rows.append(Score(sample.item, sample.system, name, value, provenance))
        return rows if F1 not in columns else [*rows, f1(*rows)]


class _Pair(NamedTuple):
    """A text whose claims are checked against another; `output` is the one of them that is an output."""

    claimed: str
    against: str
    output: str


def _pairs(sample: Sample) -> tuple[list[_Pair], list[_Pair]]:
    """Return the pairs of precision, at most one, and those of recall. An output without letters or digits has none."""
    output, source = sample.output, sample.source or ""
    if not says(output):
        return [], []
    precision = [_Pair(output, source, output)] if source.strip() else []
    return precision, [
        _Pair(reference, output, output) for reference in dict.fromkeys(references(sample))
    ]


def _distinct_pairs(samples: Sequence[Sample]) -> list[_Pair]:
    return list(
        dict.fromkeys(pair for sample in samples for pairs in _pairs(sample) for pair in pairs)
    )


def _listed(
    texts: Sequence[str], splitter: Splitter | None
) -> list[tuple[str, list[Part] | ModelError]]:
    """Return each text with its claims: without a splitter, its sentences."""
    speaking = [whole for whole in texts if says(whole)]
    claims: dict[str, list[Part] | ModelError] = {}
    if splitter:
        claims |= zip(speaking, splitter.split(speaking), strict=True)
    else:
        for whole in speaking:
            spans = [Span(*span) for span in text.sentence_spans(whole)]
            claims[whole] = [(part, span) for span in spans if says(part := whole[slice(*span)])]
    return [(whole, claims.get(whole, [])) for whole in texts]


def _side(job: Job, parts: list[Part] | ModelError, reply: Any) -> Side:
    """Return a job's claims with their probabilities and evidence. The reply may be of an object of the user's own."""
    if isinstance(reply, ModelError) or isinstance(parts, ModelError):
        return reply  # type: ignore[no-any-return]
    values = list(reply) if isinstance(reply, Iterable) else []
    if len(values) != len(parts) or not all(
        isinstance(v, Real) and 0 <= float(v) <= 1 for v in values
    ):
        asked = f"a probability from 0 to 1 for each of {plural(len(parts), 'claim')}"
        return ModelError(
            "NoProbability", f"the verifier gave {one_line(repr(reply), 60)}, not {asked}"
        )
    return tuple(
        Claim(claim, float(probability), span, most_similar(claim, job.text))
        for (claim, span), probability in zip(parts, values, strict=True)
    )


def most_similar(claim: str, whole: str) -> Span | None:
    """Return the sentence of a text that shares most words with a claim, the first of several; None if none does.

    A word of n of the N sentences counts log(1 + N / n).
    """
    sentences, places = _sentence_words(whole)
    shared: dict[int, float] = {}
    for word in places.keys() & {*text.tokens(claim)}:
        weight = math.log1p(len(sentences) / len(places[word]))
        for place in places[word]:
            shared[place] = shared.get(place, 0.0) + weight
    # Sums in another order are equal.
    return (
        sentences[max(shared, key=lambda place: (round(shared[place], 9), -place))]
        if shared
        else None
    )


@lru_cache(maxsize=64)
def _sentence_words(whole: str) -> tuple[list[Span], dict[str, list[int]]]:
    """Return the sentences of a text, and the numbers of those that have each word."""
    spans = [Span(*span) for span in text.sentence_spans(whole)]
    places: dict[str, list[int]] = {}
    for place, span in enumerate(spans):
        for word in {*text.tokens(whole[slice(*span)])}:
            places.setdefault(word, []).append(place)
    return spans, places


def value_of(claims: Sequence[Claim], threshold: float | None) -> float:
    """Return the share of claims with at least this probability of support, without a threshold its mean."""
    if threshold is None:
        return math.fsum(claim.probability for claim in claims) / len(claims)
    return sum(claim.probability >= threshold for claim in claims) / len(claims)


def f1(precision: Score | Failure, recall: Score | Failure) -> Score | Failure:
    """Return the row of the harmonic mean of two rows, 0 if both are 0; a failure if one of them is."""
    if isinstance(precision, Failure) or isinstance(recall, Failure):
        failed = next(row for row in (precision, recall) if isinstance(row, Failure))
        return replace(failed, column=F1, raw="")
    both = precision.value + recall.value
    value = 2 * precision.value * recall.value / both if both else 0.0
    return Score(precision.item, precision.system, F1, value, Provenance("metric"))


@dataclass(frozen=True, slots=True)
class ClaimsValue:
    """The values of an output with the checked claims; without references, `recall` and `f1` are None."""

    precision: float
    claims: tuple[Claim, ...]
    recall: float | None = None
    f1: float | None = None
    reference_claims: tuple[Claim, ...] = ()


def score(
    outputs: Sequence[str],
    sources: Sequence[str],
    references: Sequence[str | Sequence[str]] | None = None,
    **options: Any,
) -> list[ClaimsValue | Failure]:
    """Return the values of each output with its source and, if given, its reference or references.

    `options` are those of `Claims`; without a judge model, `unit="sentence"` and another verifier (otherwise use
    judge.evaluate). An output without one of the values is a `Failure` whose item is its index, from 0. Raise
    ConfigError, and DataError for lists of different lengths.
    """
    if len(texts("sources", sources)) != len(outputs):
        raise DataError("claims: outputs and sources must be lists of equal length")
    metric = Claims(**options)
    targets = references if references is not None else [()] * len(outputs)
    samples = [
        Sample(str(n), "", output, source=source, references=listed, where=f"output {n}")
        for n, ((output, listed), source) in enumerate(
            zip(paired(outputs, targets), sources, strict=True)
        )
    ]
    result = metric.score(samples)
    width = len(result.columns)
    return [
        _value(result.rows[first : first + width]) for first in range(0, len(result.rows), width)
    ]


def _value(rows: Sequence[Score | Failure]) -> ClaimsValue | Failure:
    values: list[float] = []
    for row in rows:
        if isinstance(row, Failure):
            return row
        values.append(row.value)
    claims = [decode(row.provenance.raw) for row in rows if isinstance(row, Score)]
    if len(values) == 1:
        return ClaimsValue(values[0], claims[0])
    return ClaimsValue(values[0], claims[0], values[1], values[2], claims[1])
