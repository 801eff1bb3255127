"""Compute the factual consistency of texts claim by claim.

The method is that of FActScore (Min et al. 2023) and RAGChecker (Ru et al. 2024). Options are
checked at once: a wrong type is a ConfigError.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from judge.metrics.claims.cross_encoder import (
    WINDOW,
    CrossEncoder,
    label_option,
    locate,
)
from judge.metrics.claims.judge_model import ModelVerifier, Part, Splitter
from judge.metrics.claims.verifier import Job, Verifier
from judge.metrics.common import (
    choice_option,
    failure,
    format_number,
    lacks_source,
    naming_a_judge,
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

LLM = "llm"
NLI = "nli:"
PRECISION = "claims_precision"
RECALL = "claims_recall"
F1 = "claims_f1"
COLUMNS = (PRECISION, RECALL, F1)
THRESHOLD = 0.5
Parts = list[Part] | ModelError
"""The claims of a text before they are checked, or why there are none."""
Side = tuple[Claim, ...] | ModelError
"""The checked claims of a text, or why there are none."""


def _verifier_option(option: str, value: Any) -> str | Verifier:
    if value == LLM or isinstance(value, Verifier):
        return value  # type: ignore[no-any-return]
    names_model = isinstance(value, str) and value.startswith(NLI)
    if names_model and value.removeprefix(NLI).strip():
        return str(value)
    raise ConfigError(
        f"{option} must be llm or nli:MODEL (a folder or a name on the Hugging Face hub), not "
        f"{value!r}"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Claims(BaseMetric):
    """Claims: the share of an output's claims that the source supports, and of the references' that
    the output does.

    A judge model lists the claims of each text in one request (`unit` claim), or its sentences are
    the claims (`unit` sentence). At most `most` claims of a text count, spread evenly over it.
    `verify` gives the probability that the other text supports each claim: `llm` asks the judge
    model once about all claims of a text, `nli:MODEL` a cross-encoder (`label`, `window`, `device`
    and `batch_tokens` as in `nli`); in Python it may be a `Verifier`. A claim is supported from the
    probability `threshold`.

    `claims_precision` is the supported share of the output's claims (0–1), with `value` mean the
    mean probability. If texts have references, `claims_recall` is the share of their claims, all
    references together, that the output supports, and `claims_f1` the harmonic mean. `language` is
    the language of the prompts, by default each text's own. Raises ConfigError.
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
            self._judge()  # raises without a judge model
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
        """Return how many requests the judge model gets if no reply is cached, without repairs."""
        pairs = _distinct_pairs(samples)
        requests = 0
        if self.unit == "claim":
            requests += len({pair.claimed for pair in pairs})
        if self.verify == LLM:
            requests += len(pairs)
        return requests

    @property
    def _prompt_language(self) -> str | None:
        """The language of the prompts; None lets each text have its own."""
        return self.language or self.context.language

    def _judge(self) -> Ask:
        if self.context.ask is None:
            raise ConfigError(
                "claims: a judge model lists and checks the claims: name one with "
                f"{naming_a_judge('claims')}"
            )
        return self.context.ask

    @cached_property
    def _encoder(self) -> CrossEncoder | None:
        if not isinstance(self.verify, str) or self.verify == LLM:
            return None
        model = self.verify.removeprefix(NLI).strip()
        files = locate(model, who=self.name, cache=self.context.cache)
        window = self.window or WINDOW
        return CrossEncoder(
            files,
            self.label,
            window,
            self.device,
            self.batch_tokens,
            self.context.progress,
        )

    def check(self, samples: Sequence[Sample]) -> None:
        """Raise ConfigError for a cross-encoder that cannot be loaded."""
        if self._encoder:
            self._encoder.model  # noqa: B018 - loads the model

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample and column.

        Rows of precision and recall carry `judge.core.claims` records. A sample is a `Failure` in a
        column if it lacks one of the texts, if these have no claims, or if a request about them
        failed. A claim of a reference has no `span` if there are several references.
        """
        pairs = _distinct_pairs(samples)
        splitter = None
        if self.unit == "claim":
            splitter = Splitter(self._judge(), self._prompt_language)
        verifier = self._verifier()
        claimed_texts = dict.fromkeys(pair.claimed for pair in pairs)
        all_claims = _list_claims(list(claimed_texts), splitter)
        # A cross-encoder reports its own progress, pair by pair.
        tell = no_progress if self._encoder else self.context.progress
        tell(1, 2)
        counted_claims: dict[str, Parts] = {}
        silent: set[str] = set()
        for whole, claims in all_claims.items():
            counted_claims[whole] = claims
            if not isinstance(claims, ModelError):
                counted_claims[whole] = spread(claims, self.most)
                # An output without claims has no value, neither 0 nor 1 (decision 87).
                if not claims:
                    silent.add(whole)
        sides = _verify(verifier, pairs, counted_claims, silent)
        tell(2, 2)
        has_references = any(references(sample) for sample in samples)
        names = COLUMNS if has_references else COLUMNS[:1]
        rows: list[Score | Failure] = []
        for sample in samples:
            is_silent = not says(sample.output) or sample.output in silent
            rows += self._rows(sample, names, sides, is_silent)
        # Only now, because a stage's signature names the languages that its texts needed.
        columns = self._columns(names, splitter, verifier)
        return MetricResult(columns, tuple(rows), self._notes(all_claims.values()))

    def _verifier(self) -> Verifier:
        """Return the user's object, the cross-encoder or the judge model as the verifier."""
        if not isinstance(self.verify, str):
            return self.verify
        return self._encoder or ModelVerifier(self._judge(), self._prompt_language)

    def _columns(
        self,
        names: Sequence[str],
        splitter: Splitter | None,
        verifier: Verifier,
    ) -> tuple[Column, ...]:
        """Return the columns, after the stages have run."""
        unit = f"unit={self.unit}"
        if splitter:
            unit += f" by {splitter.signature}"
        value = "mean"
        if self.value == "share":
            threshold = format_number(self.threshold)
            value = f"threshold={threshold}"
        parts = [
            unit,
            f"verify={verifier.signature}",
            value,
            f"most={self.most}",
            f"judge {__version__}",
        ]
        columns: list[Column] = []
        for name in names:
            signature = Signature(name, *parts)
            columns.append(Column(name, "metric", signature, low=0.0, high=1.0))
        return tuple(columns)

    def _notes(self, claims_of_texts: Collection[Parts]) -> tuple[Note, Note]:
        """Return how many texts have more claims than count, or claims whose words they lack."""
        with_too_many = 0
        with_unplaced = 0
        for claims in claims_of_texts:
            if isinstance(claims, ModelError):
                continue
            if len(claims) > self.most:
                with_too_many += 1
            if any(span is None for _, span in claims):
                with_unplaced += 1
        too_many = (
            f"have more than {self.most} claims, of which {self.most} count, spread evenly: "
            "raise claims.most"
        )
        unplaced = (
            "lack words that a claim quotes from them; "
            "such claims are not marked in the text"
        )
        text_count = len(claims_of_texts)
        return (
            Note("claims", with_too_many, text_count, too_many),
            Note("claims", with_unplaced, text_count, unplaced),
        )

    def _rows(
        self,
        sample: Sample,
        columns: Sequence[str],
        sides: Mapping[_Pair, Side],
        is_silent: bool,
    ) -> list[Score | Failure]:
        rows: list[Score | Failure] = []
        # Without references, only precision is a column.
        for column_name, pairs in zip(columns, _pairs(sample), strict=False):
            checked = [sides[pair] for pair in pairs]
            rows.append(self._row(sample, column_name, checked, is_silent))
        if F1 in columns:
            rows.append(f1(*rows))
        return rows

    def _row(
        self,
        sample: Sample,
        column_name: str,
        checked: Sequence[Side],
        is_silent: bool,
    ) -> Score | Failure:
        """Return the row of precision or recall, from the checked claims of one or more texts."""
        trouble = next((side for side in checked if isinstance(side, ModelError)), None)
        claims: list[Claim] = []
        for side in checked:
            if not isinstance(side, ModelError):
                claims += side
        if is_silent or (checked and not trouble and not claims):
            without = "an output" if is_silent else "references"
            problem = f"has {without} without claims: it is not measured"
            return failure(sample, column_name, "NoClaims", problem)
        if trouble:
            reason = failure(
                sample,
                column_name,
                trouble.error,
                f"is not measured: {trouble.message}",
            )
            return replace(reason, raw=trouble.raw)
        if not checked:
            if column_name == PRECISION:
                return failure(sample, column_name, "NoSource", lacks_source(sample))
            return no_reference(sample, column_name)
        if len(checked) > 1:
            # A span does not say in which of several references it is.
            claims = [replace(claim, span=None) for claim in claims]
        threshold = self.threshold if self.value == "share" else None
        value = value_of(claims, threshold)
        raw = encode(tuple(claims))
        provenance = Provenance("metric", n=len(claims), raw=raw)
        return Score(
            item=sample.item,
            system=sample.system,
            column=column_name,
            value=value,
            provenance=provenance,
        )


class _Pair(NamedTuple):
    """A text whose claims are checked against another text. One of the two is the `output`."""

    claimed: str
    against: str
    output: str


def _pairs(sample: Sample) -> tuple[list[_Pair], list[_Pair]]:
    """Return the pairs of precision, at most one, and the pairs of recall.

    An output without letters or digits has none.
    """
    output = sample.output
    source = sample.source or ""
    if not says(output):
        return [], []
    precision = [_Pair(output, source, output)] if source.strip() else []
    distinct_references = dict.fromkeys(references(sample))
    recall = [_Pair(reference, output, output) for reference in distinct_references]
    return precision, recall


def _distinct_pairs(samples: Sequence[Sample]) -> list[_Pair]:
    distinct: dict[_Pair, None] = {}
    for sample in samples:
        precision, recall = _pairs(sample)
        distinct |= dict.fromkeys([*precision, *recall])
    return list(distinct)


def _list_claims(texts: Sequence[str], splitter: Splitter | None) -> dict[str, Parts]:
    """Return the claims of each of the distinct texts: without a splitter, its sentences."""
    # A text without a letter or digit has no claims and costs no request.
    claims_by_text: dict[str, Parts] = {whole: [] for whole in texts}
    speaking = [whole for whole in texts if says(whole)]
    if splitter:
        claims_by_text |= zip(speaking, splitter.split(speaking), strict=True)
    else:
        claims_by_text |= {whole: _sentences(whole) for whole in speaking}
    return claims_by_text


def _sentences(whole: str) -> list[Part]:
    """Return the sentences of a text that have a letter or a digit."""
    sentences: list[Part] = []
    for start, stop in text.sentence_spans(whole):
        sentence = whole[start:stop]
        if says(sentence):
            sentences.append((sentence, Span(start, stop)))
    return sentences


def _verify(
    verifier: Verifier,
    pairs: Sequence[_Pair],
    claims_by_text: Mapping[str, Parts],
    silent: Collection[str],
) -> dict[_Pair, Side]:
    """Return the checked claims of each pair; none if a text or the output is `silent`.

    Raises ConfigError for a user's verifier that does not reply to each job.
    """
    sides: dict[_Pair, Side] = {}
    jobs: dict[_Pair, Job] = {}
    for pair in pairs:
        claims = claims_by_text[pair.claimed]
        if isinstance(claims, ModelError):
            sides[pair] = claims
        elif not claims or pair.output in silent:
            sides[pair] = ()
        else:
            texts = tuple(claim for claim, _ in claims)
            jobs[pair] = Job(pair.against, texts)
    if not jobs:
        return sides
    replies = list(verifier.verify(list(jobs.values())))
    if len(replies) != len(jobs):
        raise ConfigError(
            f"claims.verify: gave {len(replies)} replies to {len(jobs)} jobs; give one for each"
        )
    for (pair, job), reply in zip(jobs.items(), replies, strict=True):
        claims = claims_by_text[pair.claimed]
        sides[pair] = _side(job, claims, reply)
    return sides


def _side(job: Job, claims: Parts, reply: Any) -> Side:
    """Return a job's claims with their probabilities and evidence.

    The reply is not trusted, because a user's own verifier may have given it.
    """
    if isinstance(reply, ModelError) or isinstance(claims, ModelError):
        return reply  # type: ignore[no-any-return]
    values = list(reply) if isinstance(reply, Iterable) else []
    if len(values) != len(claims) or not all(map(_is_probability, values)):
        short_reply = one_line(repr(reply), 60)
        counted_claims = plural(len(claims), "claim")
        return ModelError(
            "NoProbability",
            f"the verifier gave {short_reply}, not a probability from 0 to 1 for each of "
            f"{counted_claims}",
        )
    checked: list[Claim] = []
    for (claim, span), probability in zip(claims, values, strict=True):
        evidence = most_similar(claim, job.text)
        checked.append(Claim(claim, float(probability), span, evidence))
    return tuple(checked)


def _is_probability(value: Any) -> bool:
    # numpy's numbers are Real, too.
    return isinstance(value, Real) and 0 <= float(value) <= 1


def most_similar(claim: str, whole: str) -> Span | None:
    """Return the sentence of a text that shares most words with a claim, or None.

    A word in n of the N sentences counts log(1 + N / n). The first of several equal sentences wins.
    """
    sentences, sentences_by_word = _sentence_words(whole)
    shared_words = sentences_by_word.keys() & {*text.tokens(claim)}
    shared_weight: dict[int, float] = {}
    for word in shared_words:
        indices = sentences_by_word[word]
        weight = math.log1p(len(sentences) / len(indices))
        for index in indices:
            shared_weight[index] = shared_weight.get(index, 0.0) + weight
    if not shared_weight:
        return None

    def by_weight(index: int) -> tuple[float, int]:
        """Order by the shared weight; of equal sentences, the first comes out on top."""
        # The order of a set differs between runs, and with it the last digits of a sum. Rounded
        # sums do not depend on it.
        return round(shared_weight[index], 9), -index

    best = max(shared_weight, key=by_weight)
    return sentences[best]


# Every claim about a text is looked for in its sentences.
@lru_cache(maxsize=64)
def _sentence_words(whole: str) -> tuple[list[Span], dict[str, list[int]]]:
    """Return the sentences of a text, and the numbers of those that have each word."""
    spans = [Span(*span) for span in text.sentence_spans(whole)]
    sentences_by_word: dict[str, list[int]] = {}
    for index, span in enumerate(spans):
        for word in {*text.tokens(whole[slice(*span)])}:
            sentences_by_word.setdefault(word, []).append(index)
    return spans, sentences_by_word


def value_of(claims: Sequence[Claim], threshold: float | None) -> float:
    """Return the share of claims whose support has at least this probability.

    Without a threshold, return the mean probability.
    """
    probabilities = [claim.probability for claim in claims]
    if threshold is None:
        return math.fsum(probabilities) / len(claims)
    supported = sum(probability >= threshold for probability in probabilities)
    return supported / len(claims)


def f1(precision: Score | Failure, recall: Score | Failure) -> Score | Failure:
    """Return the row of the harmonic mean of two rows: 0 if both are 0, a failure if one is."""
    if isinstance(precision, Failure) or isinstance(recall, Failure):
        failures = [row for row in (precision, recall) if isinstance(row, Failure)]
        return replace(failures[0], column=F1, raw="")
    total = precision.value + recall.value
    product = precision.value * recall.value
    value = 2 * product / total if total else 0.0
    return Score(
        item=precision.item,
        system=precision.system,
        column=F1,
        value=value,
        provenance=Provenance("metric"),
    )


@dataclass(frozen=True, slots=True)
class ClaimsValue:
    """The values of an output and the checked claims.

    Without references, `recall` and `f1` are None.
    """

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

    `options` are passed to `Claims`. There is no judge model here, so set `unit="sentence"` and
    another verifier, or use judge.evaluate. An output without one of the values is a `Failure`
    whose item is its index, from 0. Raise ConfigError, and DataError for lists of different
    lengths.
    """
    source_texts = texts("sources", sources)
    if len(source_texts) != len(texts("outputs", outputs)):
        raise DataError("claims: outputs and sources must be lists of equal length")
    metric = Claims(**options)
    if references is None:
        references = [()] * len(source_texts)
    samples: list[Sample] = []
    for index, (output, targets) in enumerate(paired(outputs, references)):
        source = source_texts[index]
        where = f"output {index}"
        sample = Sample(str(index), "", output, source, references=targets, where=where)
        samples.append(sample)
    result = metric.score(samples)
    width = len(result.columns)
    starts = range(0, len(result.rows), width)
    rows_by_output = [result.rows[start : start + width] for start in starts]
    return [_value(rows) for rows in rows_by_output]


def _value(rows: Sequence[Score | Failure]) -> ClaimsValue | Failure:
    """Return a sample's value from its rows of precision and, with references, recall and F1."""
    values: list[float] = []
    for row in rows:
        if isinstance(row, Failure):
            return row
        values.append(row.value)
    scores = [row for row in rows if isinstance(row, Score)]
    claims = [decode(score.provenance.raw) for score in scores]
    if len(values) == 1:
        return ClaimsValue(values[0], claims[0])
    precision, recall, harmonic_mean = values
    return ClaimsValue(precision, claims[0], recall, harmonic_mean, claims[1])
