"""The stages of QAGS by a judge model. What it is asked stands in prompts/qags/, and so do the words it may reply with.

A reply is read with patience (a list as lines or as JSON, an answer in quotes or after the question), but never
guessed at: what is not plainly what was asked for raises ParseError.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

import yaml
from jinja2 import DictLoader, StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from judge.criteria import builtin_prompts
from judge.criteria.header import body, head
from judge.criteria.template import read_text
from judge.errors import ConfigError, ParseError
from judge.metrics.qags.stages import UNANSWERABLE, Answers, Ask, Questions, Themes, Trouble, Wanted
from judge.records import fold
from judge.registry import unknown
from judge.render import fenced

_LAYOUT = "text.jinja"
_TOKEN_LIMIT = {"themes": 1024, "question": 256, "answer": 256}
"""Far more than is asked for: what a reply does not use costs nothing, and thinking has to fit in."""

Words = Mapping[str, tuple[str, ...]]


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

    def _said(self, wanted: Mapping[int, Wanted], count: int) -> list[str | Trouble]:
        """What is said to `count` things, of which those that are not asked about get an empty text."""
        said = dict(zip(wanted, self._ask(list(wanted.values())), strict=True)) if wanted else {}
        self.signature = self._signed()
        return [said.get(place, "") for place in range(count)]


class ModelThemes(_Stage):
    """Themes that a judge model lists. A text without a letter or a digit has none, and is not asked about."""

    name = "themes"

    def themes(self, outputs: Sequence[str]) -> list[list[str] | Trouble]:
        nothing = self._words["nothing"]
        wanted = {
            place: self._wanted(partial(_themes, output=output, nothing=nothing), text=output)
            for place, output in enumerate(outputs)
            if _says(output)
        }
        said = self._said(wanted, len(outputs))
        return [one if isinstance(one, Trouble) else one.split("\n") if one else [] for one in said]


class ModelQuestions(_Stage):
    """Questions that a judge model asks."""

    name = "question"

    def questions(self, asked: Sequence[tuple[str, str]]) -> list[str | Trouble]:
        read = partial(_question, labels=self._words["labels"])
        wanted = {place: self._wanted(read, text=output, theme=theme) for place, (theme, output) in enumerate(asked)}
        return self._said(wanted, len(asked))


class ModelAnswers(_Stage):
    """Answers that a judge model finds. A text without a letter or a digit answers nothing, and is not asked about."""

    name = "answer"

    def answers(self, asked: Sequence[tuple[str, str]]) -> list[str | Trouble]:
        wanted = {
            place: self._wanted(partial(_answer, question=question, words=self._words), text=text, question=question)
            for place, (question, text) in enumerate(asked)
            if _says(text)
        }
        return self._said(wanted, len(asked))


@lru_cache(maxsize=32)
def _prompt(language: str, name: str) -> tuple[Template, dict[str, tuple[str, ...]], str]:
    """A prompt's template, the words of its header, and the sha256 of its texts in hex."""
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
    header = yaml.safe_load(head(texts[own]))
    words = {key: tuple(map(str, values)) for key, values in header.items()}
    return env.get_template(own), words, hashlib.sha256(json.dumps(list(texts.values())).encode()).hexdigest()


# Reading: what `Wanted.read` is, with what it has to know filled in.

_PAIRS = ("**", "*", "__", "_", "`", '"', "'", "“”", "‘’", "「」", "『』", "«»", "[]")
_BULLET = re.compile(r"[-–•*・+]\s+|・|•|\(?\d{1,3}[.)．）、](?!\d)\s*")
_DASH = re.compile(r"[-–•*+]\s+")
_BETWEEN = re.compile(r"\s*[,，、;；]\s*")
_REMARK = re.compile(r"\s+[-–—]+\s+|\s*[:：(（]")
_STOPS = ".。．,，;；、"
_EDGES = re.compile(r"\A\W+|\W+\Z")
_ASKED = re.compile(r".*[?？]")


def _themes(reply: str, output: str, nothing: Sequence[str]) -> str:
    """The listed themes that occur in the output, by their first place there, one per line; "" where it has none."""
    entries = _listed(reply)
    if all(_is_word(entry, nothing) for entry in entries):
        return ""
    where = _folded(output)
    found: dict[str, tuple[int, str]] = {}
    for entry in entries:
        for theme in _occurring(entry, where):
            found.setdefault(_folded(theme), (where.find(_folded(theme)), _as_written(theme, output)))
    if not found:
        raise ParseError(f"nothing that the reply lists occurs in the text: {reply[:80]!r}", reply)
    return "\n".join(theme for _, theme in sorted(found.values(), key=lambda one: one[0]))


def _listed(reply: str) -> list[str]:
    """The entries of a list in JSON, be it alone or in an object, or of one in lines."""
    lines = _lines(reply)
    if lines and lines[0][0] in "[{":
        try:
            data, _ = json.JSONDecoder(strict=False).raw_decode("\n".join(lines))
        except (ValueError, RecursionError):
            return lines
        lists = [value for value in data.values() if isinstance(value, list)] if isinstance(data, dict) else [data]
        return [str(entry) for entry in lists[0]] if len(lists) == 1 else lines
    return lines


def _lines(reply: str) -> list[str]:
    """The lines with something on them, without the fences of a code block."""
    lines = [line.strip() for line in reply.splitlines()]
    return [line for line in lines if line and not line.startswith("```")]


def _occurring(entry: str, where: str) -> list[str]:
    """An entry in the fullest form that occurs in the folded text; if none does, those of its parts that do."""
    for form in _forms(entry):
        if _occurs(form, where):
            return [form]
    parts = _BETWEEN.split(entry)
    if len(parts) == 1:
        return []
    whole = ((form for form in _forms(part) if _occurs(form, where)) for part in parts)
    return [form for forms in whole if (form := next(forms, ""))]


def _forms(entry: str) -> Iterator[str]:
    """An entry as it is, then with ever more of what was not asked for taken away."""
    yield entry
    bare = _bare(_BULLET.sub("", entry, count=1) if _BULLET.match(entry) else entry)
    yield bare
    yield _bare(bare.rstrip(_STOPS))
    yield _bare(_REMARK.split(bare)[0])


def _occurs(theme: str, where: str) -> bool:
    return _says(theme) and _folded(theme) in where


def _as_written(theme: str, output: str) -> str:
    """A theme on one line and, where the output has it but for case and spaces, in the output's writing."""
    forms = (r"\s+".join(map(re.escape, form.split())) for form in (theme, fold(theme)))
    found = (match[0] for form in forms if (match := re.search(form, output, re.IGNORECASE)))
    return " ".join(next(found, theme).split())


def _question(reply: str, labels: Sequence[str]) -> str:
    """The first line that asks something. Raises ParseError where there is none."""
    lines = _lines(reply)
    for position, line in enumerate(lines, 1):
        line = _BULLET.sub("", line, count=1) if _BULLET.match(line) else line
        line = _bare(_unlabelled(_bare(line), labels))
        if not _says(line) or _announces(line, position < len(lines)):
            continue
        # Some models give the answer on the same line.
        asked = _ASKED.match(line)
        return " ".join((asked[0] if asked and _says(line[asked.end() :]) else line).split())
    raise ParseError(f"no question in the reply: {reply[:80]!r}", reply)


def _answer(reply: str, question: str, words: Words) -> str:
    """The first line that answers, or UNANSWERABLE. Raises ParseError where there is neither.

    What follows that line is the model's explanation, which was not asked for.
    """
    lines = [_answering(line, question, words["labels"]) for line in _lines(reply)]
    said = [line for line in lines if _says(line)]
    if any(_is_word(line, words["unanswerable"]) for line in said):
        return UNANSWERABLE
    for position, line in enumerate(said, 1):
        if _announces(line, position < len(said)):
            continue
        return UNANSWERABLE if _declines(line, words["unanswerable"]) else line
    raise ParseError(f"no answer in the reply: {reply[:80]!r}", reply)


def _answering(line: str, question: str, labels: Sequence[str]) -> str:
    """A line without bullet, label, quotes, final stop, and the question before the answer."""
    before = ""
    line, asked = " ".join(line.split()), " ".join(question.split())
    while line != before:
        before = line
        line = _bare(_unlabelled(_bare(_DASH.sub("", line, count=1) if _DASH.match(line) else line), labels))
        if line[: len(asked)].casefold() == asked.casefold():
            line = line[len(asked) :].lstrip(" :：-–—>→")
        line = line[:-1] if line.endswith(("。", "．")) or (line.endswith(".") and line.count(".") == 1) else line
    return line


def _unlabelled(line: str, labels: Sequence[str]) -> str:
    """A line without the `Answer:` before it."""
    words = "|".join(map(re.escape, labels))
    label = re.match(rf"[\s*_#>]*(?:{words})[\s*_]*[:：][\s*_]*", line, re.IGNORECASE)
    return line[label.end() :] if label else line


def _bare(line: str) -> str:
    """A line without the marks that enclose all of it."""
    before = ""
    while line != before:
        before = line = line.strip()
        for pair in _PAIRS:
            left, right = (pair[0], pair[1]) if len(set(pair)) == 2 else (pair, pair)
            inner = line[len(left) : -len(right)]
            if line.startswith(left) and line.endswith(right) and inner and left not in inner and right not in inner:
                line = inner
    return line


def _announces(line: str, more: bool) -> bool:
    """Whether a line only says that something follows."""
    return more and line.endswith((":", "："))


def _declines(line: str, words: Sequence[str]) -> bool:
    """Whether a line begins with such a word and goes on to explain, or ends with the one that was asked for."""
    core, wanted = _core(line), _core(words[0])
    begins = any(core.startswith(word) and not core[len(word)].isalnum() for word in map(_core, words) if core != word)
    return begins or core.startswith(wanted) or core.endswith(wanted)


def _is_word(line: str, words: Sequence[str]) -> bool:
    return _core(line) in {_core(word) for word in words}


def _core(text: str) -> str:
    return _EDGES.sub("", _folded(text))


def _folded(text: str) -> str:
    return " ".join(fold(text).casefold().split())


def _says(text: str) -> bool:
    return any(map(str.isalnum, text))
