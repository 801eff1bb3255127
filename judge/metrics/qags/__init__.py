"""Compute QAGS (Wang, Cho and Lewis 2020): do a source and an output give the same answers to questions on the output?

Options are checked at once: a wrong type or an unused option is a ConfigError.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from judge import text
from judge.core import huggingface
from judge.core.errors import ConfigError
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.core.version import __version__
from judge.metrics import MetricResult, prompts
from judge.metrics.base import BaseMetric, ModelError, no_progress, setting
from judge.metrics.bertscore.models import HIGH, LOW, UNKNOWN_ADVICE
from judge.metrics.common import (
    choice_option,
    failure,
    lacks_source,
    number,
    text_option,
    whole_number,
)
from judge.metrics.qags import judge_model
from judge.metrics.qags.answer_candidates import Nouns, clean
from judge.metrics.qags.models import (
    GENERATOR,
    READER,
    TEMPLATE,
    ExtractiveReader,
    Generator,
    locate,
)
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

__all__ = ["TEMPLATE", "Qags", "QagsValue", "score", "similarities"]

BACKENDS = ("llm", "models")
LLM = "llm"
_MODEL_OPTIONS = ("template", "null", "beams", "question_tokens", "input_tokens", "batch_tokens")
_BERTSCORE_OPTIONS = ("bertscore_model", "bertscore_layer")
NO_JUDGE = (
    "qags: no judge and no models. Name a judge with --model NAME (in Python call judge.evaluate(rows, [], "
    'metrics="qags", model=NAME)), or two models that make and answer questions: --set qags.backend=models --set '
    "qags.questions=GENERATOR --set qags.answers=READER"
)
_STAGES = {"llm": (LLM, LLM, LLM), "models": ("nouns", "", "")}
"""What makes themes, questions and answers; "" if a model has to be named."""
_SIZE = (whole_number, 1, 1_000_000)


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
    """QAGS: the similarity of the answers that source and output give to questions on the output's themes.

    Wang, Cho and Lewis 2020. Themes are the output's nouns, names and amounts, at most `most`, spread evenly. Each gets
    a question, made from the output and answered from the source and from the output. The value is the mean similarity
    of the two answers: 0 if only one text answers. A question that neither text answers is dropped; with `consistent`,
    as in the paper, also one to which the output does not answer with the theme. `similarity` are exact, f1, rouge1,
    rougeL, chrf, bertscore, corrected, or several, at no extra cost.

    `backend` makes themes, questions and answers: `llm` by the run's judge, `models` by noun finders and two models
    (`questions` for a T5-style generator and `answers` for an extractive reader: folders or names on the Hugging Face
    hub). `themes` (nouns, ja, ko, zh, sudachi, kiwi, spacy:MODEL, llm), `questions` (llm, a model) and `answers` (llm,
    a model) replace one stage. `compounds` false splits compound nouns of Chinese, Japanese and Korean. `language` is
    that of the prompts, by default the outputs'.

    `template`, `null`, `beams`, `question_tokens`, `input_tokens` and `batch_tokens` are the models' settings;
    `bertscore_model` and `bertscore_layer` BERTScore's model, `low` and `high` the ends of `corrected`. An unused
    option is an error. Raises ConfigError and MissingExtra.
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
        themes, questions, answers = self.stages
        if not questions or not answers:
            raise ConfigError(
                "qags: backend=models needs two models, folders or names on the Hugging Face hub: --set "
                "qags.questions=GENERATOR (answer-aware question generation, T5-style) and --set qags.answers=READER "
                "(extractive question answering)"
            )
        if self.uses_models != (answers != LLM):
            raise ConfigError("qags: name a model for questions and one for answers")
        uses_bertscore = not {"bertscore", "corrected"}.isdisjoint(self.similarity)
        of_models, of_bert = "backend=models", "similarity=bertscore or corrected"
        unread = [] if self.uses_models else [(name, of_models) for name in _MODEL_OPTIONS]
        unread += [] if uses_bertscore else [(name, of_bert) for name in _BERTSCORE_OPTIONS]
        unread += (
            []
            if self.uses_models or uses_bertscore
            else [("device", f"{of_models} and of {of_bert}")]
        )
        for name, owner in unread:
            if getattr(self, name) is not None:
                raise ConfigError(
                    f"qags: {name} is an option of {owner}, which this run does not use: omit it"
                )
        if self.asks and self.context.ask is None:
            raise ConfigError(NO_JUDGE)
        if themes != LLM:
            Nouns(themes)  # reports missing packages before a judge is paid
        self._models  # noqa: B018 - and models that cannot be used
        self._similarities()

    @property
    def stages(self) -> tuple[str, str, str]:
        """Return what makes themes, questions and answers."""
        themes, questions, answers = _STAGES[self.backend]
        return self.themes or themes, self.questions or questions, self.answers or answers

    @property
    def asks(self) -> bool:
        """Return whether a stage asks the judge model."""
        return LLM in self.stages

    @property
    def uses_models(self) -> bool:
        return self.stages[1] != LLM

    @cached_property
    def _models(self) -> tuple[Questions, Answers] | None:
        return open_models(self) if self.uses_models else None

    def check(self, samples: Sequence[Sample]) -> None:
        """Raise ConfigError if BERTScore's model knows no text's words, MissingExtra without a noun finder."""
        self._similarities().check(samples)
        if self.stages[0] != LLM:
            Nouns(self.stages[0]).check([sample.output for sample in samples if sample.source])

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample and similarity. A sample without a source or themes is a `Failure` in each.

        So is one with a failed question or answer of a judge. The first column's rows carry the questions and answers
        as JSON,
        `{"qags": [[theme, question, answer from the source, answer from the output, {similarity: value}, reason], …]}`:
        the reason is "" in a line that counts, the mapping is empty in one that does not.
        """
        outcomes, columns = self._measure(samples)
        rows = [
            row
            for sample, outcome in zip(samples, outcomes, strict=True)
            for row in _rows(sample, outcome, self.similarity)
        ]
        # Outputs that a judge failed are counted as failures instead.
        lines = [
            line
            for outcome in outcomes
            if not (outcome.trouble and outcome.trouble.failed)
            for line in outcome.lines
        ]
        left_out = sum(bool(line.left_out) for line in lines)
        notes = (
            f"qags: {left_out:,} of {len(lines):,} questions left out: {kinds(lines)}",
        ) * bool(left_out)
        return MetricResult(columns, tuple(rows), notes)

    def _measure(self, samples: Sequence[Sample]) -> tuple[list[Outcome], tuple[Column, ...]]:
        jobs = {
            n: Job(clean(s.output), clean(s.source))
            for n, s in enumerate(samples)
            if s.source and s.source.strip() and s.output.strip()
        }
        stages = self._open_stages([job.output for job in jobs.values()])
        alike = self._similarities()
        tell = self.context.progress if self._models is None else no_progress
        results = ask(
            list(jobs.values()),
            stages,
            alike,
            most=self.most,
            consistent=self.consistent,
            tell=tell,
        )
        by_sample = dict(zip(jobs, results, strict=True))
        no_output = "has an empty output, which has no themes to ask about: it is not measured"
        outcomes = []
        for n, sample in enumerate(samples):
            lacks = not (sample.source or "").strip()
            trouble = (
                ModelError("NoSource", lacks_source(sample))
                if lacks
                else ModelError("NoThemes", no_output)
            )
            outcomes.append(by_sample[n] if n in by_sample else Outcome(trouble=trouble))
        columns = []
        for name in self.similarity:
            column = f"qags_{name}"
            parts = [*stages.signed, f"most={self.most}"]
            if self.consistent:
                parts.append("consistent")
            parts += [f"similarity={alike.signature(name)}", f"judge {__version__}"]
            signature = Signature(column, *parts)
            low = None if name == "bertscore" else 0.0  # a cosine has no lower end
            columns.append(Column(column, "metric", signature, low=low, high=1.0))
        return outcomes, tuple(columns)

    def _open_stages(self, outputs: Sequence[str]) -> Stages:
        """Return new stages, so that their signatures show what these outputs needed."""
        if self.context.ask is None or not self.asks:
            if self._models is None:
                raise ConfigError(NO_JUDGE)
            return Stages(Nouns(self.stages[0], compounds=self.compounds), *self._models)
        language = self.language or self.context.language or text.detect_language(outputs)
        judged = Stages(*judge_model.open(self.context.ask, language))
        by_llm = self.stages[0] == LLM
        themes = judged.themes if by_llm else Nouns(self.stages[0], compounds=self.compounds)
        questions, answers = self._models or (judged.questions, judged.answers)
        return Stages(themes, questions, answers)

    def _similarities(self) -> Similarities:
        bert = {"model": self.bertscore_model, "layer": self.bertscore_layer, "device": self.device}
        return Similarities(
            self.similarity, low=self.low, high=self.high, bert=bert, cache=self.context.cache
        )


def score(
    outputs: Sequence[str], sources: Sequence[str], **options: Any
) -> list[QagsValue | Failure]:
    """Return QAGS of each output with its source, with the questions and answers.

    `options` are those of `Qags`. An output without a value is a `Failure` whose item is its index, from 0; its `raw`
    has the questions and answers as `Qags.score` writes them, if any. Raise ConfigError, also unless there are as many
    sources as outputs, and unless `options` name the models of `backend=models`: a judge is asked by
    judge.evaluate alone.
    """
    if isinstance(outputs, str) or isinstance(sources, str) or len(outputs) != len(sources):
        raise ConfigError("qags: outputs and sources must be lists of equal length")
    metric = Qags(**options)
    samples = [
        Sample(str(n), "", output, source=source, where=f"output {n}")
        for n, (output, source) in enumerate(zip(outputs, sources, strict=True))
    ]
    results: list[QagsValue | Failure] = []
    for sample, outcome in zip(samples, metric._measure(samples)[0], strict=True):
        rows = _rows(sample, outcome, metric.similarity)
        failed = next((row for row in rows if isinstance(row, Failure)), None)
        values = {
            row.column.removeprefix("qags_"): row.value for row in rows if isinstance(row, Score)
        }
        results.append(failed or QagsValue(values, outcome.lines, outcome.note))
    return results


def _rows(sample: Sample, outcome: Outcome, names: Sequence[str]) -> list[Score | Failure]:
    """Return the sample's row in each column; the first row also carries the questions and answers as JSON."""
    lines = [
        [
            line.theme,
            line.question,
            line.from_source,
            line.from_output,
            line.similarity,
            line.left_out,
        ]
        for line in outcome.lines
    ]
    working = json.dumps({"qags": lines}, ensure_ascii=False) if lines else None
    rows: list[Score | Failure] = []
    for name in names:
        column, raw = f"qags_{name}", None if rows else working
        values = [line.similarity[name] for line in outcome.counted if name in line.similarity]
        if outcome.trouble or len(values) < len(outcome.counted):
            trouble = outcome.trouble
            if trouble is None:
                uncompared = next(line for line in outcome.counted if name not in line.similarity)
                answers = f"{uncompared.from_source!r}, {uncompared.from_output!r}"
                message = f"has answers that {name} cannot compare: {answers}; if not English, {UNKNOWN_ADVICE}"
                trouble = ModelError("NotCompared", message)
            rows.append(
                replace(failure(sample, column, trouble.error, trouble.message), raw=raw or "")
            )
        else:
            provenance = Provenance("metric", n=len(values), raw=raw, note=outcome.note)
            rows.append(
                Score(sample.item, sample.system, column, sum(values) / len(values), provenance)
            )
    return rows


def open_models(options: Qags) -> tuple[Questions, Answers]:
    """Return the two stages of `backend=models`.

    Files are found or downloaded here; models are loaded on first use. The generator's own settings are ignored except
    for its special tokens. Raise ConfigError for an unusable setting or model, MissingExtra for a missing package.
    """
    huggingface.runtime("qags")  # reports missing packages before anything is downloaded
    _, questions, answers = options.stages
    cache = options.context.cache
    files = locate(GENERATOR, questions, cache), locate(READER, answers, cache)

    def given(*names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(options, name)) is not None}

    shared = given("device", "batch_tokens") | {"progress": options.context.progress}
    generator = Generator(
        files[0], **given("template", "beams", "question_tokens", "input_tokens"), **shared
    )
    return generator, ExtractiveReader(files[1], null=options.null is not False, **shared)
