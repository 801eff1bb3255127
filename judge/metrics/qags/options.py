"""The options of QAGS, checked: what is of the wrong type, and what nothing would read, is said at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from judge.core.errors import ConfigError
from judge.core.plugins import unknown
from judge.metrics.bertscore.matching import HIGH, LOW
from judge.metrics.common import number, one_of, whole_number, yes_or_no
from judge.metrics.model_requests import Ask
from judge.metrics.qags.similarity import checked

BACKENDS = ("lexical", "models", "llm")
CLOZE, LEXICAL, LLM = "cloze", "lexical", "llm"
_STAGES = {"lexical": ("nouns", CLOZE, LEXICAL), "models": ("nouns", "", ""), "llm": (LLM, LLM, LLM)}
_OF_MODELS = ("template", "null", "beams", "question_tokens", "input_tokens", "batch_tokens")
_OF_BERT = ("bertscore_model", "bertscore_layer")
_TEXTS = ("backend", "themes", "questions", "answers", "language", "template", "bertscore_model", "device")
NO_JUDGE = (
    "qags: a judge model is to be asked, and none is named: name one with --model NAME (judge run and judge qags take "
    "it; judge score asks no judge)"
)


@dataclass(kw_only=True, eq=False)
class Options:
    """What `Qags` says of them. Raises ConfigError."""

    backend: str = "lexical"
    themes: str | None = None
    questions: str | None = None
    answers: str | None = None
    similarity: str | Sequence[str] = ("f1",)
    most: int = 20
    consistent: bool = False
    compounds: bool = True
    language: str | None = None
    template: str | None = None
    null: bool | None = None
    beams: int | None = None
    question_tokens: int | None = None
    input_tokens: int | None = None
    batch_tokens: int | None = None
    bertscore_model: str | None = None
    bertscore_layer: int | None = None
    low: float = LOW
    high: float = HIGH
    device: str | None = None
    cache: str | Path | None = None
    progress: Callable[[int, int], None] | None = None
    ask: Ask | None = None

    def __post_init__(self) -> None:
        _check_types(self)
        self.similarities = checked(self.similarity)
        self.stage_names = _stage_names(self)
        _check_stages(self.stage_names)
        _check_use(self)
        if self.asks and self.ask is None:
            raise ConfigError(NO_JUDGE)

    @property
    def asks(self) -> bool:
        """Whether a stage asks the judge model."""
        return LLM in self.stage_names

    @property
    def uses_models(self) -> bool:
        return _is_model(self.stage_names[1])

    @property
    def of_models(self) -> Mapping[str, Any]:
        """The settings of the two models that were given."""
        return {name: value for name in (*_OF_MODELS, "device") if (value := getattr(self, name)) is not None}

    @property
    def of_bertscore(self) -> Mapping[str, Any]:
        return {"model": self.bertscore_model, "layer": self.bertscore_layer, "device": self.device}


def known(options: Mapping[str, Any]) -> None:
    """Raises ConfigError for an option that there is not."""
    names = [field.name for field in fields(Options)]
    for name in options:
        if name not in names:
            raise ConfigError(f"qags: {unknown('option', name, names)}")


def _check_types(given: Options) -> None:
    for name in _TEXTS:
        value = getattr(given, name)
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise ConfigError(f"qags: {name} must be a text, not {value!r}")
    one_of("qags: backend", given.backend, BACKENDS)
    whole_number("qags: most", given.most, 1, 1_000)
    for name in ("compounds", "consistent"):
        yes_or_no(f"qags: {name}", getattr(given, name))
    for name in ("low", "high"):
        number(f"qags: {name}", getattr(given, name), -1, 1)
    if given.language is not None:
        from judge.metrics.qags import judge_model

        one_of("qags: language", given.language, judge_model.languages())


def _stage_names(given: Options) -> tuple[str, str, str]:
    """The names of what makes themes, questions and answers; "" where a model is to be named."""
    themes, questions, answers = _STAGES[given.backend]
    return given.themes or themes, given.questions or questions, given.answers or answers


def _check_stages(stages: tuple[str, str, str]) -> None:
    _, questions, answers = stages
    if not questions or not answers:
        raise ConfigError(
            "qags: backend=models needs two models, folders or names on the Hugging Face hub: --set "
            "qags.questions=GENERATOR (answer-aware question generation, T5-style) and --set qags.answers=READER "
            "(extractive question answering)"
        )
    if answers == CLOZE or questions == LEXICAL:
        raise ConfigError("qags: cloze makes questions and lexical answers them: questions=cloze, answers=lexical")
    if _is_model(questions) != _is_model(answers):
        raise ConfigError("qags: models for questions and for answers come together: name one for each")
    if answers == LEXICAL and questions != CLOZE:
        raise ConfigError("qags: answers=lexical fills gaps and takes questions=cloze alone")


def _check_use(given: Options) -> None:
    """Raises ConfigError for an option that nothing here reads."""
    models = given.uses_models
    bert = not {"bertscore", "corrected"}.isdisjoint(given.similarities)
    of_models, of_bert = "backend=models", "similarity=bertscore or corrected"
    unread = [(name, of_models) for name in _OF_MODELS if not models]
    unread += [(name, of_bert) for name in _OF_BERT if not bert]
    unread += [("device", f"{of_models} and of {of_bert}")] * (not models and not bert)
    for name, of in unread:
        if getattr(given, name) is not None:
            raise ConfigError(f"qags: {name} is an option of {of}, which this run does not have: leave it out")


def _is_model(name: str) -> bool:
    return name not in (CLOZE, LEXICAL, LLM)
