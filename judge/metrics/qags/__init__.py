"""Compute QAGS: do a source and an output give the same answers to questions on the output?

The method is that of Wang, Cho and Lewis (2020). Options are checked at once: a wrong type or
an unused option is a ConfigError.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from judge import text
from judge.core import huggingface
from judge.core.errors import ConfigError, DataError
from judge.core.messages import option
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.core.version import __version__
from judge.metrics import MetricResult, prompts
from judge.metrics.base import BaseMetric, ModelError, no_progress, setting
from judge.metrics.bertscore.languages import UNKNOWN_ADVICE
from judge.metrics.bertscore.models import HIGH, LOW
from judge.metrics.common import (
    as_source_samples,
    choice_option,
    failure,
    lacks_source,
    naming_a_judge,
    number,
    text_option,
    texts,
    whole_number,
)
from judge.metrics.qags import judge_model
from judge.metrics.qags.answer_candidates import Nouns, clean
from judge.metrics.qags.extractive_reader import ExtractiveReader
from judge.metrics.qags.models import GENERATOR, READER, locate
from judge.metrics.qags.pipeline import (
    Answers,
    Job,
    Outcome,
    QagsLine,
    Questions,
    Similarities,
    Stages,
    ask,
    checked,
    kinds,
    similarities,
)
from judge.metrics.qags.question_generator import TEMPLATE, Generator

__all__ = ["TEMPLATE", "Qags", "QagsValue", "score", "similarities"]

BACKENDS = ("llm", "models")
LLM = "llm"
_MODEL_OPTIONS = (
    "template",
    "null",
    "beams",
    "question_tokens",
    "input_tokens",
    "batch_tokens",
)
_BERTSCORE_OPTIONS = ("bertscore_model", "bertscore_layer")
_NO_OUTPUT = "has an empty output, which has no themes to ask about: it is not measured"
_SIZE = (whole_number, 1, 1_000_000)


@dataclass(frozen=True, slots=True)
class StageNames:
    """What makes themes, questions and answers: `llm`, a noun finder or a model.

    "" is a model that the options have to name.
    """

    themes: str
    questions: str
    answers: str


_STAGES = {"llm": StageNames(LLM, LLM, LLM), "models": StageNames("nouns", "", "")}


@dataclass(frozen=True, slots=True)
class QagsValue:
    """The mean similarity of an output's answers by each name, with the questions and answers.

    Lines without a similarity do not count; `note` says how many and why.
    """

    similarity: dict[str, float]
    lines: tuple[QagsLine, ...]
    note: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Qags(BaseMetric):
    """QAGS: the similarity of the answers that source and output give to questions on the output's
    themes.

    Wang, Cho and Lewis 2020. Themes are the output's nouns, names and amounts, at most `most`,
    spread evenly. Each gets a question, made from the output and answered from the source and from
    the output. The value is the mean similarity of the two answers: 0 if only one text answers. A
    question that neither text answers is dropped. With `consistent`, as in the paper, a question is
    also dropped if the output does not answer it with the theme. `similarity` is one or several of
    exact, f1, rouge1, rougeL, chrf, bertscore and corrected; more names cost no more requests.

    `backend` makes themes, questions and answers: `llm` by the run's judge, `models` by noun
    finders and two models (`questions` for a T5-style generator and `answers` for an extractive
    reader: folders or names on the Hugging Face hub). `themes` (nouns, ja, ko, zh, sudachi, kiwi,
    spacy:MODEL, llm), `questions` (llm, a model) and `answers` (llm, a model) replace one stage.
    `compounds` false splits compound nouns of Chinese, Japanese and Korean. `language` is the
    language of the prompts, by default the outputs'.

    `template`, `null`, `beams`, `question_tokens`, `input_tokens` and `batch_tokens` are the
    models' settings. `bertscore_model` and `bertscore_layer` set BERTScore's model, `low` and
    `high` the ends of `corrected`. An unused option is an error. Raises ConfigError and
    MissingExtra.
    """

    name: ClassVar[str] = "qags"
    needs: ClassVar[str] = "source"
    backend: str = setting(LLM, choice_option, BACKENDS)
    themes: str | None = setting(None, text_option)
    questions: str | None = setting(None, text_option)
    answers: str | None = setting(None, text_option)
    similarity: str | Sequence[str] = setting(("f1",), checked)
    most: int = setting(20, whole_number, 1, 1_000)
    consistent: bool = False
    compounds: bool = True
    language: str | None = setting(None, prompts.language_option)
    template: str | None = setting(None, text_option)
    null: bool | None = None
    beams: int | None = setting(None, *_SIZE)
    question_tokens: int | None = setting(None, *_SIZE)
    input_tokens: int | None = setting(None, *_SIZE)
    batch_tokens: int | None = setting(None, *_SIZE)
    bertscore_model: str | None = setting(None, text_option)
    bertscore_layer: int | None = setting(None, whole_number, 0, 1_000)
    low: float = setting(LOW, number, -1, 1)
    high: float = setting(HIGH, number, -1, 1)
    device: str | None = setting(None, text_option)

    def __post_init__(self) -> None:
        super().__post_init__()
        stages = self.stages
        if not stages.questions or not stages.answers:
            raise ConfigError(_no_models())
        # Questions and answers come both from the judge or both from models.
        if self.uses_models != (stages.answers != LLM):
            raise ConfigError("qags: name a model for questions and one for answers")
        self._refuse_unused_options()
        if self.asks and self.context.ask is None:
            raise ConfigError(_no_judge())
        if stages.themes != LLM:
            Nouns(stages.themes)  # reports missing packages before a judge is paid
        self._models  # noqa: B018 - reports models that cannot be used
        self._similarities()  # reports a model of BERTScore that cannot be used

    def _refuse_unused_options(self) -> None:
        """Raise ConfigError for an option of models or of BERTScore that the run does not use."""
        uses_bertscore = not {"bertscore", "corrected"}.isdisjoint(self.similarity)
        of_models = "backend=models"
        of_bertscore = "similarity=bertscore or corrected"
        # Each unused option, and the setting that would use it.
        owner_by_option: dict[str, str] = {}
        if not self.uses_models:
            owner_by_option |= dict.fromkeys(_MODEL_OPTIONS, of_models)
        if not uses_bertscore:
            owner_by_option |= dict.fromkeys(_BERTSCORE_OPTIONS, of_bertscore)
        if not self.uses_models and not uses_bertscore:
            owner_by_option["device"] = f"{of_models} and of {of_bertscore}"
        for option_name, owner in owner_by_option.items():
            if getattr(self, option_name) is not None:
                raise ConfigError(
                    f"qags: {option_name} is an option of {owner}, which this run does not use: "
                    "omit it"
                )

    @property
    def stages(self) -> StageNames:
        """Return what makes themes, questions and answers."""
        defaults = _STAGES[self.backend]
        return StageNames(
            themes=self.themes or defaults.themes,
            questions=self.questions or defaults.questions,
            answers=self.answers or defaults.answers,
        )

    @property
    def asks(self) -> bool:
        """Return whether a stage asks the judge model."""
        stages = self.stages
        return LLM in (stages.themes, stages.questions, stages.answers)

    @property
    def uses_models(self) -> bool:
        """Return whether two models make and answer the questions."""
        return self.stages.questions != LLM

    @cached_property
    def _models(self) -> tuple[Questions, Answers] | None:
        return open_models(self) if self.uses_models else None

    def check(self, samples: Sequence[Sample]) -> None:
        """Raise ConfigError if BERTScore's model knows the words of no text.

        Raise MissingExtra if a text has no noun finder.
        """
        self._similarities().check(samples)
        if self.stages.themes != LLM:
            outputs = [sample.output for sample in samples if sample.source]
            Nouns(self.stages.themes).check(outputs)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample and similarity.

        A sample is a `Failure` in each column if it has no source or no themes, or if a judge
        failed to give a question or an answer. The first column's rows carry the questions and
        answers as JSON: `{"qags": [[theme, question, answer from the source, answer from the
        output, {similarity: value}, reason], …]}`. The reason is "" in a line that counts, the
        mapping is empty in one that does not.
        """
        outcomes, columns = self._measure(samples)
        rows: list[Score | Failure] = []
        lines: list[QagsLine] = []
        for sample, outcome in zip(samples, outcomes, strict=True):
            rows += _rows(sample, outcome, self.similarity)
            # Outputs that a judge failed are counted as failures instead.
            if not (outcome.trouble and outcome.trouble.failed):
                lines += outcome.lines
        left_out = sum(bool(line.left_out) for line in lines)
        notes: list[str] = []
        if left_out:
            share = f"{left_out:,} of {len(lines):,} questions left out"
            notes.append(f"qags: {share}: {kinds(lines)}")
        return MetricResult(columns, tuple(rows), tuple(notes))

    def _measure(
        self, samples: Sequence[Sample]
    ) -> tuple[list[Outcome], tuple[Column, ...]]:
        """Return the outcome of each sample, and the columns."""
        jobs: dict[int, Job] = {}
        for index, sample in enumerate(samples):
            if sample.source and sample.source.strip() and sample.output.strip():
                jobs[index] = Job(clean(sample.output), clean(sample.source))
        stages = self._open_stages([job.output for job in jobs.values()])
        similarities_of_answers = self._similarities()
        # The models report their own progress, question by question.
        report_progress = self.context.progress if self._models is None else no_progress
        results = ask(
            list(jobs.values()),
            stages,
            similarities_of_answers,
            most=self.most,
            consistent=self.consistent,
            tell=report_progress,
        )
        outcome_by_index = dict(zip(jobs, results, strict=True))
        outcomes: list[Outcome] = []
        for index, sample in enumerate(samples):
            if index in outcome_by_index:
                outcomes.append(outcome_by_index[index])
                continue
            trouble = ModelError("NoThemes", _NO_OUTPUT)
            if not (sample.source or "").strip():
                trouble = ModelError("NoSource", lacks_source(sample))
            outcomes.append(Outcome(trouble=trouble))
        # The signatures name what the answers needed, so they are read last.
        return outcomes, self._columns(stages, similarities_of_answers)

    def _columns(
        self, stages: Stages, similarities_of_answers: Similarities
    ) -> tuple[Column, ...]:
        """Return the columns, whose signatures name what the stages and similarities used."""
        columns: list[Column] = []
        for similarity in self.similarity:
            column = f"qags_{similarity}"
            parts = [*stages.signed, f"most={self.most}"]
            if self.consistent:
                parts.append("consistent")
            signed_similarity = similarities_of_answers.signature(similarity)
            parts += [f"similarity={signed_similarity}", f"judge {__version__}"]
            signature = Signature(column, *parts)
            # A cosine has no lower end.
            low = None if similarity == "bertscore" else 0.0
            columns.append(Column(column, "metric", signature, low=low, high=1.0))
        return tuple(columns)

    def _open_stages(self, outputs: Sequence[str]) -> Stages:
        """Return new stages, so that their signatures show what these outputs needed."""
        if self._models is not None and not self.asks:
            questions, answers = self._models
            return Stages(self._nouns(), questions, answers)
        if self.context.ask is None:
            raise ConfigError(_no_judge())
        run_language = self.language or self.context.language
        language = run_language or text.detect_language(outputs)
        stages = judge_model.open(self.context.ask, language)
        if self.stages.themes != LLM:
            stages = stages._replace(themes=self._nouns())
        if self._models is not None:
            questions, answers = self._models
            stages = stages._replace(questions=questions, answers=answers)
        return stages

    def _nouns(self) -> Nouns:
        return Nouns(self.stages.themes, compounds=self.compounds)

    def _similarities(self) -> Similarities:
        bertscore_options = {
            "model": self.bertscore_model,
            "layer": self.bertscore_layer,
            "device": self.device,
        }
        return Similarities(
            self.similarity,
            low=self.low,
            high=self.high,
            bert=bertscore_options,
            cache=self.context.cache,
        )


def score(
    outputs: Sequence[str],
    sources: Sequence[str],
    **options: Any,
) -> list[QagsValue | Failure]:
    """Return QAGS of each output with its source, with the questions and answers.

    `options` are passed to `Qags`. An output without a value is a `Failure` whose item is its
    index, from 0; its `raw` has the questions and answers as `Qags.score` writes them, if any.

    Raise DataError for lists of different lengths, and ConfigError for invalid options and unless
    `options` name the models of `backend=models`: only judge.evaluate asks a judge.
    """
    output_texts = texts("outputs", outputs)
    source_texts = texts("sources", sources)
    if len(output_texts) != len(source_texts):
        raise DataError("qags: outputs and sources must be lists of equal length")
    metric = Qags(**options)
    samples = as_source_samples(output_texts, source_texts)
    outcomes, _ = metric._measure(samples)
    results: list[QagsValue | Failure] = []
    for sample, outcome in zip(samples, outcomes, strict=True):
        failures: list[Failure] = []
        values: dict[str, float] = {}
        for row in _rows(sample, outcome, metric.similarity):
            if isinstance(row, Failure):
                failures.append(row)
            else:
                similarity = row.column.removeprefix("qags_")
                values[similarity] = row.value
        if failures:
            results.append(failures[0])
        else:
            results.append(QagsValue(values, outcome.lines, outcome.note))
    return results


def _rows(
    sample: Sample, outcome: Outcome, names: Sequence[str]
) -> list[Score | Failure]:
    """Return the sample's row in each column; the first also carries the questions and answers."""
    rows: list[Score | Failure] = []
    for similarity in names:
        column = f"qags_{similarity}"
        is_first = not rows
        raw = _questions_and_answers(outcome.lines) if is_first else None
        compared = [line for line in outcome.counted if similarity in line.similarity]
        values = [line.similarity[similarity] for line in compared]
        trouble = outcome.trouble
        # BERTScore has no value for some answers, and a mean of the others would mislead.
        if trouble is None and len(values) < len(outcome.counted):
            trouble = _not_compared(similarity, outcome.counted)
        if trouble:
            row = failure(sample, column, trouble.error, trouble.message)
            rows.append(replace(row, raw=raw or ""))
        else:
            provenance = Provenance("metric", n=len(values), raw=raw, note=outcome.note)
            mean = sum(values) / len(values)
            rows.append(
                Score(
                    item=sample.item,
                    system=sample.system,
                    column=column,
                    value=mean,
                    provenance=provenance,
                )
            )
    return rows


def _questions_and_answers(lines: Sequence[QagsLine]) -> str | None:
    """Return the questions and answers as JSON, see `Qags.score`; None if there are none."""
    if not lines:
        return None
    entries: list[list[Any]] = []
    for line in lines:
        question = [line.theme, line.question]
        answers = [line.from_source, line.from_output]
        entries.append([*question, *answers, line.similarity, line.left_out])
    return json.dumps({"qags": entries}, ensure_ascii=False)


def _not_compared(similarity_name: str, counted: Sequence[QagsLine]) -> ModelError:
    """Return the error of an output with answers that have no similarity of this name."""
    lacking = (line for line in counted if similarity_name not in line.similarity)
    uncompared = next(lacking)
    answers = f"{uncompared.from_source!r}, {uncompared.from_output!r}"
    problem = f"has answers that {similarity_name} cannot compare: {answers}"
    return ModelError("NotCompared", f"{problem}; if not English, {UNKNOWN_ADVICE}")


def open_models(options: Qags) -> tuple[Questions, Answers]:
    """Return the two stages of `backend=models`.

    Files are found or downloaded here; models are loaded on first use. The generator's own settings
    are ignored except for its special tokens. Raise ConfigError for an unusable setting or model,
    MissingExtra for a missing package.
    """
    # Reports missing packages before anything is downloaded.
    huggingface.runtime("qags")
    cache = options.context.cache
    generator_files = locate(GENERATOR, options.stages.questions, cache)
    reader_files = locate(READER, options.stages.answers, cache)
    # Options that are None have the defaults of the two classes.
    shared = _set_options(options, "device", "batch_tokens")
    shared["progress"] = options.context.progress
    names = ("template", "beams", "question_tokens", "input_tokens")
    settings = _set_options(options, *names)
    generator = Generator(generator_files, **settings, **shared)
    reader = ExtractiveReader(reader_files, null=options.null is not False, **shared)
    return generator, reader


def _set_options(options: Qags, *names: str) -> dict[str, Any]:
    """Return the options of these names that are not None."""
    values: dict[str, Any] = {}
    for option_name in names:
        value = getattr(options, option_name)
        if value is not None:
            values[option_name] = value
    return values


def _no_judge() -> str:
    with_judge = naming_a_judge("qags")
    models = {"backend": "models", "questions": "GENERATOR", "answers": "READER"}
    with_models = option("set", {"qags": models})
    return (
        f"qags: no judge and no models. Name a judge with {with_judge}, or two models "
        f"that make and answer questions: {with_models}"
    )


def _no_models() -> str:
    models = {"questions": "GENERATOR", "answers": "READER"}
    with_models = option("set", {"qags": models})
    return (
        "qags: backend=models needs two models, folders or names on the Hugging Face hub: "
        f"{with_models}. GENERATOR generates questions for answers "
        "(T5-style), READER answers questions from a text"
    )
