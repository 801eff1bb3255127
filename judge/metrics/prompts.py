"""The prompts of metrics that ask the judge model.

They are templates in prompts/<language>/<task>/, whose headers have the words that replies may use.
All extend the layout qags/text.jinja, so that a prompt begins with the text and a provider's cache
reads it once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from jinja2 import DictLoader, Template

from judge.core import yaml_lines
from judge.core.signature import join_names
from judge.criteria import builtin_prompts
from judge.criteria.header import front_matter, template_body
from judge.criteria.sandbox import Sandbox
from judge.criteria.template import read_text
from judge.metrics.base import Ask, ModelError, ModelQuestion
from judge.metrics.common import choice_option
from judge.text import detect_language

_LAYOUT = "text.jinja"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's template, the words of its header and its layout's, and a digest.

    The digest is the sha256 of its texts in hex.
    """

    template: Template
    words: dict[str, tuple[str, ...]]
    digest: str

    def render(self, **texts: str) -> str:
        """Return the prompt about these texts."""
        return self.template.render(texts | self.words).strip()


def languages() -> list[str]:
    """Return the languages that have prompts."""
    layouts = builtin_prompts().glob(f"*/qags/{_LAYOUT}")
    return sorted(layout.parents[1].name for layout in layouts)


def language_option(option: str, value: Any) -> str:
    """Return an option's language that has prompts. Raise ConfigError otherwise."""
    return choice_option(option, value, languages())


@lru_cache(maxsize=32)
def load(language: str, task: str, prompt_name: str) -> Prompt:
    """Return the prompt prompts/<language>/<task>/<name>.jinja."""
    folder = builtin_prompts() / language
    file_name = f"{prompt_name}.jinja"
    template = read_text(folder / task / file_name)
    layout = read_text(folder / "qags" / _LAYOUT)
    words: dict[str, tuple[str, ...]] = {}
    for text in (template, layout):
        header = yaml_lines.values(front_matter(text)) or {}
        for key, values in header.items():
            words[key] = tuple(map(str, values))
    bodies = {file_name: template_body(template), _LAYOUT: template_body(layout)}
    environment = Sandbox(DictLoader(bodies))
    # The digest is of both files, because the layout is part of the prompt.
    both_files = json.dumps([template, layout])
    digest = hashlib.sha256(both_files.encode()).hexdigest()
    return Prompt(environment.get_template(file_name), words, digest)


class Stage:
    """A prompt and the judge model that answers it.

    `language` is that of the prompt, None for each text's own. A reply may have `most_tokens`, far
    more than needed: unused tokens cost nothing, and thinking has to fit in.
    """

    task: ClassVar[str]
    name: ClassVar[str]
    most_tokens: ClassVar[int]

    def __init__(self, ask: Ask, language: str | None) -> None:
        self._ask = ask
        self._language = language
        self._used: set[str] = {language} if language else set()

    @property
    def signature(self) -> str:
        """Return `model:language@digest` for the given language, or for all languages so far."""
        versions: list[str] = []
        for language in self._used:
            digest = self.prompt(language).digest[:6]
            versions.append(f"{language}@{digest}")
        model = self._ask.signature or "llm"
        return f"{model}:{join_names(versions)}"

    def prompt(self, language: str | None = None) -> Prompt:
        """Return the prompt in a language."""
        return load(language or self._language or "en", self.task, self.name)

    def request(
        self, read: Callable[[str], str], text: str, **texts: str
    ) -> ModelQuestion:
        """Return the request about a text, whose reply `read` reads."""
        language = self._language or detect_language([text])
        self._used.add(language)
        rendered = self.prompt(language).render(text=text, **texts)
        return ModelQuestion(rendered, self.most_tokens, read)

    def ask(self, requests: Sequence[ModelQuestion]) -> list[str | ModelError]:
        """Return the replies."""
        return self._ask(requests) if requests else []
