"""The stages of QAGS by a judge model. What it is asked and what it may reply stand in prompts/qags/."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

from jinja2 import DictLoader, StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from judge.core import yaml_lines
from judge.core.errors import ConfigError
from judge.core.plugins import unknown
from judge.criteria import builtin_prompts
from judge.criteria.header import body, head
from judge.criteria.render import fenced
from judge.criteria.template import read_text
from judge.metrics.model_requests import Ask, Trouble, Wanted
from judge.metrics.qags import reply_parsing
from judge.metrics.qags.protocols import Answers, Questions, Themes

_LAYOUT = "text.jinja"
_TOKEN_LIMIT = {"themes": 1024, "question": 256, "answer": 256}
"""Far more than is asked for: what a reply does not use costs nothing, and thinking has to fit in."""


def open(ask: Ask, language: str) -> tuple[Themes, Questions, Answers]:
    """The three stages, asked through `ask` in the prompts of a language. Raises ConfigError for one without prompts.

    Where `ask` has a `signature`, the stages' signatures hold it: it names the model.
    """
    known = languages()
    if language not in known:
        raise ConfigError(unknown("language", language, known))
    return ModelThemes(ask, language), ModelQuestions(ask, language), ModelAnswers(ask, language)


def languages() -> list[str]:
    """The languages that have prompts."""
    return sorted(folder.parent.name for folder in (builtin_prompts() / "qags").glob(f"*/{_LAYOUT}"))


class _Stage:
    """One of the prompts and who is asked it. `signature` is brought up to date with each call."""

    name = ""

    def __init__(self, ask: Ask, language: str) -> None:
        self._ask, self._language = ask, language
        self._template, self._words, self._digest = _prompt(language, self.name)
        self.signature = self._signed()

    def _signed(self) -> str:
        who = getattr(self._ask, "signature", "") or "llm"
        return f"{who}:{self._language}@{self._digest[:6]}"

    def _wanted(self, read: Callable[[str], str], **texts: str) -> Wanted:
        prompt = self._template.render(texts | self._words).strip()
        return Wanted(prompt, _TOKEN_LIMIT[self.name], read)

    def _replies(self, wanted: Mapping[int, Wanted], count: int) -> list[str | Trouble]:
        """The replies about `count` things, of which those that are not asked about get an empty text."""
        found = dict(zip(wanted, self._ask(list(wanted.values())), strict=True)) if wanted else {}
        self.signature = self._signed()
        return [found.get(place, "") for place in range(count)]


_NONE_LISTED = Trouble("NoThemes", "is not measured: the judge listed no themes to ask about")


class ModelThemes(_Stage):
    """Themes that a judge model lists. A text without a letter or a digit has none, and is not asked about."""

    name = "themes"

    def themes(self, outputs: Sequence[str]) -> list[list[str] | Trouble]:
        nothing = self._words["nothing"]
        wanted = {
            place: self._wanted(partial(reply_parsing.themes, output=output, nothing=nothing), text=output)
            for place, output in enumerate(outputs)
            if reply_parsing.says(output)
        }
        found = self._replies(wanted, len(outputs))
        return [
            one if isinstance(one, Trouble) else one.split("\n") if one else _NONE_LISTED if place in wanted else []
            for place, one in enumerate(found)
        ]


class ModelQuestions(_Stage):
    """Questions that a judge model asks."""

    name = "question"

    def questions(self, asked: Sequence[tuple[str, str]]) -> list[str | Trouble]:
        read = partial(reply_parsing.question, words=self._words)
        wanted = {place: self._wanted(read, text=output, theme=theme) for place, (theme, output) in enumerate(asked)}
        return self._replies(wanted, len(asked))


class ModelAnswers(_Stage):
    """Answers that a judge model finds. A text without a letter or a digit answers nothing, and is not asked about."""

    name = "answer"

    def answers(self, asked: Sequence[tuple[str, str]]) -> list[str | Trouble]:
        wanted = {
            place: self._wanted(
                partial(reply_parsing.answer, question=question, text=text, words=self._words),
                text=text,
                question=question,
            )
            for place, (question, text) in enumerate(asked)
            if reply_parsing.says(text)
        }
        return self._replies(wanted, len(asked))


@lru_cache(maxsize=32)
def _prompt(language: str, name: str) -> tuple[Template, dict[str, tuple[str, ...]], str]:
    """A prompt's template, the words of its header and its layout's, and the sha256 of its texts in hex."""
    folder = builtin_prompts() / "qags" / language
    own = f"{name}.jinja"
    texts = {file: read_text(folder / file) for file in (own, _LAYOUT)}
    env = ImmutableSandboxedEnvironment(
        loader=DictLoader({file: body(text) for file, text in texts.items()}),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    env.filters["fenced"] = fenced
    headers = [yaml_lines.values(head(text)) for text in texts.values()]
    words = {key: tuple(map(str, values)) for header in headers for key, values in header.items()}
    return env.get_template(own), words, hashlib.sha256(json.dumps(list(texts.values())).encode()).hexdigest()
