"""The metric and the notebook's function."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judge import __version__, text
from judge.errors import ConfigError
from judge.metrics import MetricResult
from judge.metrics.bertscore.values import HIGH, LOW
from judge.metrics.qags.lexical import Cloze, Lexical
from judge.metrics.qags.nouns import Nouns, clean
from judge.metrics.qags.pipeline import Job, Outcome, Stages, ask
from judge.metrics.qags.similarity import Similarities
from judge.metrics.qags.stages import Ask, Asked, Trouble
from judge.metrics.shared import failure, one_of, whole_number, yes_or_no
from judge.records import Column, Failure, Provenance, Sample, Score

BACKENDS = ("lexical", "models", "llm")
_CLOZE, _LEXICAL, _LLM = "cloze", "lexical", "llm"
_STAGES = {"lexical": ("nouns", _CLOZE, _LEXICAL), "models": ("nouns", "", ""), "llm": (_LLM, _LLM, _LLM)}


@dataclass(frozen=True, slots=True)
class QagsValue:
    """The mean similarity of an output's answers by each name, and the questions and answers it is the mean of.

    Lines without a similarity count for nothing; `note` says how many these are, and why.
    """

    similarity: dict[str, float]
    asked: tuple[Asked, ...]
    note: str | None = None


class Qags:
    """QAGS: how alike the answers are that the source and the output give to questions on the output's themes.

    Wang, Cho and Lewis 2020. Themes are the output's nouns, names and amounts, at most `most` of them, spread evenly;
    each has a question, made from the output, which is answered from the source and from the output. The value is the
    mean similarity of the two answers: 0 where only one text answers; a question that neither text answers is left
    out. `similarity` are exact, f1, rouge1, rougeL, bertscore, corrected, or several, which cost no further question.

    `backend` makes themes, questions and answers: `lexical` by words alone (a sentence with a gap, and the noun that
    fits it), `models` by two models (`questions` for a T5-style generator and `answers` for an extractive reader:
    folders made by save_pretrained or names on the Hugging Face hub), `llm` by asking the judge model. `themes`
    (nouns, en, ja, ko, zh, sudachi, kiwi, spacy:MODEL, llm), `questions` (cloze, llm, a model) and `answers` (lexical,
    llm, a model) take another for one stage. `compounds` false has each noun of Chinese, Japanese and Korean for
    itself. `language` is that of the prompts, otherwise the outputs'.

    `template`, `null`, `beams`, `question_tokens`, `input_tokens` and `batch_tokens` are the models' settings;
    `bertscore_model` and `bertscore_layer` BERTScore's model, `low` and `high` the ends of `corrected`.
    Raises ConfigError and MissingExtra.
    """

    def __init__(
        self,
        *,
        backend: str = "lexical",
        themes: str | None = None,
        questions: str | None = None,
        answers: str | None = None,
        similarity: str | Sequence[str] = ("f1",),
        most: int = 20,
        compounds: bool = True,
        language: str | None = None,
        template: str | None = None,
        null: bool | None = None,
        beams: int | None = None,
        question_tokens: int | None = None,
        input_tokens: int | None = None,
        batch_tokens: int | None = None,
        bertscore_model: str | None = None,
        bertscore_layer: int | None = None,
        low: float = LOW,
        high: float = HIGH,
        device: str | None = None,
        cache: str | Path | None = None,
        progress: Callable[[int, int], None] | None = None,
        ask: Ask | None = None,
    ) -> None:
        usual = _STAGES[one_of("qags: backend", backend, BACKENDS)]
        self._names = tuple(name or other for name, other in zip((themes, questions, answers), usual, strict=True))
        self._most = whole_number("qags: most", most, 1, 1_000)
        self._compounds = yes_or_no("qags: compounds", compounds)
        self._language, self._ask, self._progress = language, ask, progress
        _check(self._names, ask)
        if self._names[0] != _LLM:
            Nouns(self._names[0])  # what is not installed is said before a judge is paid
        settings = {
            "template": template, "null": null, "beams": beams, "question_tokens": question_tokens,
            "input_tokens": input_tokens, "batch_tokens": batch_tokens,
        }  # fmt: skip
        self._models = _models(self._names, {**settings, "device": device, "progress": progress})
        bert = {"model": bertscore_model, "layer": bertscore_layer, "device": device}
        self._alike: Callable[[], Similarities] = lambda: Similarities(
            _listed(similarity), low=low, high=high, bert=bert, cache=None if cache is None else Path(cache)
        )
        self._columns = self._alike().names

    @property
    def asks(self) -> bool:
        """Whether a stage asks the judge model."""
        return _LLM in self._names

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """One row per sample and similarity; what has no source or no themes is a `Failure` in each.

        The first column's rows carry the working as JSON, `{"qags": [[theme, question, answer from the source, answer
        from the output, {similarity: value}], …]}`, where a line that counts for nothing has no value.
        """
        outcomes, columns = self._measure(samples)
        rows = [row for sample, one in zip(samples, outcomes, strict=True) for row in _rows(sample, one, self._columns)]
        return MetricResult(columns, tuple(rows), _notes(outcomes))

    def _measure(self, samples: Sequence[Sample]) -> tuple[list[Outcome], tuple[Column, ...]]:
        jobs = {n: Job(clean(s.output), clean(s.source)) for n, s in enumerate(samples) if s.source and _has_text(s)}
        stages, alike = self._stages([job.output for job in jobs.values()]), self._alike()
        tell = self._progress if self._progress and self._models is None else lambda done, total: None
        found = ask(list(jobs.values()), stages, alike, most=self._most, tell=tell)
        asked = dict(zip(jobs, found, strict=True))
        outcomes = [asked[n] if n in asked else Outcome(trouble=_unasked(sample)) for n, sample in enumerate(samples)]
        return outcomes, tuple(self._column(name, stages, alike) for name in self._columns)

    def _stages(self, outputs: Sequence[str]) -> Stages:
        """Fresh ones, so that their signatures say what these outputs needed."""
        themes, questions, answers = self._names
        by_rules = Nouns(themes if themes != _LLM else "nouns", compounds=self._compounds)
        asked: tuple[Any, ...] = (None,) * 3
        if _LLM in self._names:
            asked = _by_llm(self._ask, self._language or text.language(outputs))
        models: tuple[Any, Any] = self._models or (None, None)
        return Stages(
            asked[0] if themes == _LLM else by_rules,
            Cloze(by_rules) if questions == _CLOZE else asked[1] if questions == _LLM else models[0],
            Lexical(by_rules) if answers == _LEXICAL else asked[2] if answers == _LLM else models[1],
        )

    def _column(self, name: str, stages: Stages, alike: Similarities) -> Column:
        column = f"qags_{name}"
        parts = [column, stages.signature, f"most={self._most}", f"similarity={alike.signature(name)}"]
        # A cosine has no low end.
        low = None if name == "bertscore" else 0.0
        return Column(column, "metric", "|".join([*parts, f"judge {__version__}"]), low=low, high=1.0)


def score(outputs: Sequence[str], sources: Sequence[str], **options: Any) -> list[QagsValue | Failure]:
    """QAGS of each output with its source, with the questions and answers; for a notebook.

    `options` are those of `Qags`. What has no value is a `Failure` whose item is its place, from 0. Raises
    ConfigError, also where there are not as many sources as outputs.
    """
    if isinstance(outputs, str) or isinstance(sources, str) or len(outputs) != len(sources):
        raise ConfigError("qags: outputs and sources are two lists of one length")
    metric = Qags(**options)
    samples = [
        Sample(str(n), "", output, source=source, where=f"output {n}")
        for n, (output, source) in enumerate(zip(outputs, sources, strict=True))
    ]
    made: list[QagsValue | Failure] = []
    for sample, outcome in zip(samples, metric._measure(samples)[0], strict=True):
        rows = _rows(sample, outcome, metric._columns)
        failed = next((row for row in rows if isinstance(row, Failure)), None)
        values = {row.column.removeprefix("qags_"): row.value for row in rows if isinstance(row, Score)}
        made.append(failed or QagsValue(values, outcome.asked, outcome.note))
    return made


def _check(names: tuple[str, ...], ask: Ask | None) -> None:
    _, questions, answers = names
    if _LLM in names and ask is None:
        raise ConfigError("qags: a judge model is to be asked, but none is named: name one with --model, in a run")
    if not questions or not answers:
        raise ConfigError(
            "qags: backend=models needs two models, folders or names on the Hugging Face hub: --set "
            "qags.questions=GENERATOR (answer-aware question generation, T5-style) and --set qags.answers=READER "
            "(extractive question answering)"
        )
    if _is_model(questions) != _is_model(answers):
        raise ConfigError("qags: models for questions and for answers come together: name one for each")
    if answers == _LEXICAL and questions != _CLOZE:
        raise ConfigError("qags: answers=lexical fills gaps and takes questions=cloze alone")


def _is_model(name: str) -> bool:
    return name not in (_CLOZE, _LEXICAL, _LLM)


def _models(names: tuple[str, ...], settings: Mapping[str, Any]) -> tuple[Any, Any] | None:
    if not _is_model(names[1]):
        return None
    from judge.metrics.qags import models

    given = {name: value for name, value in settings.items() if value is not None}
    return models.open(generator=names[1], reader=names[2], **given)


def _by_llm(ask: Ask | None, language: str) -> tuple[Any, ...]:
    from judge.metrics.qags import llm

    assert ask is not None  # noqa: S101
    return llm.open(ask, language)


def _listed(similarity: str | Sequence[str]) -> Sequence[str]:
    return [name.strip() for name in similarity.split(",")] if isinstance(similarity, str) else similarity


def _has_text(sample: Sample) -> bool:
    return bool(sample.source and sample.source.strip() and sample.output.strip())


def _unasked(sample: Sample) -> Trouble:
    if not (sample.source or "").strip():
        found = "no source" if sample.source is None else "a blank source"
        advice = "add a column `source`, or name yours with --map source=COLUMN"
        return Trouble("NoSource", f"has {found} to answer questions from: {advice}")
    return Trouble("NoThemes", "has an empty output, which has no themes to ask about: it is not measured")


def _rows(sample: Sample, outcome: Outcome, names: Sequence[str]) -> list[Score | Failure]:
    """The sample's row in each column, in the columns' order."""
    working = _working(outcome.asked)
    rows: list[Score | Failure] = []
    for name in names:
        column, raw = f"qags_{name}", None if rows else working
        values = [one.similarity[name] for one in outcome.counted if name in one.similarity]
        if outcome.trouble or len(values) < len(outcome.counted):
            trouble = outcome.trouble or _uncompared(name, outcome)
            rows.append(replace(failure(sample, column, trouble.error, trouble.message), raw=raw or ""))
        else:
            how = Provenance("metric", n=len(values), raw=raw, note=outcome.note)
            rows.append(Score(sample.item, sample.system, column, sum(values) / len(values), how))
    return rows


def _uncompared(name: str, outcome: Outcome) -> Trouble:
    one = next(asked for asked in outcome.counted if name not in asked.similarity)
    return Trouble("NotCompared", f"has answers that {name} cannot compare: {one.from_source!r}, {one.from_output!r}")


def _working(asked: Sequence[Asked]) -> str | None:
    lines = [[one.theme, one.question, one.from_source, one.from_output, one.similarity] for one in asked]
    return json.dumps({"qags": lines}, ensure_ascii=False) if lines else None


def _notes(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    asked = sum(len(one.asked) for one in outcomes)
    left = asked - sum(len(one.counted) for one in outcomes)
    return (f"qags: {left:,} of {asked:,} questions left out, as no text answers them or they could not be asked",) * (
        left > 0
    )
