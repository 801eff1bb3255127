"""What a judge's replies to the prompts of QAGS say: what `Wanted.read` is, with what it has to know filled in.

A reply is read with patience (a list as lines or as JSON, an answer in quotes or after the question), but never
guessed at: what is not plainly what was asked for, and so a refusal, raises ParseError. No reply, however odd, takes
long: of a line only so much is read, and of a list only so many entries.

The stages of QAGS by a judge model. What it is asked and what it may reply stand in prompts/<language>/qags/.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

from jinja2 import DictLoader, StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from judge.core import yaml_lines
from judge.core.errors import ConfigError, ParseError
from judge.core.plugins import unknown_name_message
from judge.core.records import fold
from judge.criteria import builtin_prompts
from judge.criteria.render import fenced
from judge.criteria.template import front_matter, read_text, template_body
from judge.metrics.common import Ask, ModelError, ModelQuestion
from judge.metrics.qags.pipeline import UNANSWERABLE, AnswerCandidates, Answers, Questions

Words = Mapping[str, tuple[str, ...]]
"""The words of a prompt's header, by what they are for."""

_PAIRS = ("**", "*", "__", "_", "`", '"', "'", "“”", "‘’", "「」", "『』", "«»", "[]")
_BULLET = re.compile(r"[-–•*・+]\s+|・|•|\(?\d{1,3}[.)．）、](?!\d)\s*")
_DASH = re.compile(r"[-–•*+]\s+")
_BETWEEN = re.compile(r"[,，、;；]")
_REMARK = re.compile(r"(?<!\s)(?:\s++[-–—]++\s|\s*+[:：(（])")
_STOPS = ".。．,，;；、"
_OPENING = re.compile(r"(?:the )?answer is:?\s+|答えは[、：:]?\s*|답은[:：]?\s+|答案是[：:]?\s*", re.IGNORECASE)
_CORE = re.compile(r"\w(?:.*\w)?", re.DOTALL)
_MARKS, _QUESTION_WORDS, _DOTS = "?？؟", ("か", "까", "나요", "는가", "인가", "吗", "嗎", "呢"), "。.．"
"""How a question ends: with a mark, or a word and perhaps a stop."""
_LONGEST, _MOST = 2_000, 1_000
"""Characters of a line, and lines or entries of a list, that are read."""
_QUESTION_END = re.compile(rf"(?:[{_MARKS}]|(?:{'|'.join(_QUESTION_WORDS)})[{_DOTS}]?)" + r"[\s\"'”’」』»)\]）*_]*\Z")


def themes(reply: str, output: str, nothing: Sequence[str]) -> str:
    """The listed themes that occur in the output, by their first place there, one per line; "" where it has none."""
    entries = [entry[:_LONGEST] for entry in _list_entries(reply)[:_MOST]]
    if all(_is_word(entry, nothing) for entry in entries):
        return ""
    folded_output = _folded(output)
    places: dict[str, tuple[int, str]] = {}
    for entry in entries:
        for theme in _occurring(entry, folded_output):
            # A theme on one line and, where the output has it but for case and spaces, in the output's writing.
            forms = (re.sub("['’]", "['’]", r"\s+".join(map(re.escape, form.split()))) for form in (theme, fold(theme)))
            matches = (match[0] for form in forms if (match := re.search(form, output, re.IGNORECASE)))
            places.setdefault(
                _folded(theme), (folded_output.find(_folded(theme)), " ".join(next(matches, theme).split()))
            )
    if not places:
        raise ParseError(f"nothing that the reply lists occurs in the text: {reply[:80]!r}", reply)
    return "\n".join(theme for _, theme in sorted(places.values(), key=lambda placed: placed[0]))


def _list_entries(reply: str) -> list[str]:
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


def _single_json_text(reply: str) -> str:
    """The text in a JSON object that holds nothing else, or the reply as it is."""
    text = "\n".join(_lines(reply))
    try:
        data = json.loads(text, strict=False) if text.startswith("{") else {}
    except (ValueError, RecursionError):
        return reply
    values = list(data.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else reply


def _lines(reply: str) -> list[str]:
    """The lines with something on them, without the fences of a code block."""
    lines = [line.strip() for line in reply.splitlines()]
    return [line for line in lines if line and not line.startswith("```")]


def _occurring(entry: str, where: str) -> list[str]:
    """An entry in the fullest form that occurs in the folded text; if none does, those of its parts that do."""
    for form in _forms(entry):
        if _occurs(form, where):
            return [form]
    parts = [part.strip() for part in _BETWEEN.split(entry)]
    if len(parts) == 1:
        return []
    whole = ((form for form in _forms(part) if _occurs(form, where)) for part in parts)
    return [form for forms in whole if (form := next(forms, ""))]


def _forms(entry: str) -> Iterator[str]:
    """An entry as it is, then with ever more of what was not asked for taken away."""
    yield entry
    bare = _without_marks(_BULLET.sub("", entry, count=1) if _BULLET.match(entry) else entry)
    yield bare
    yield _without_marks(bare.rstrip(_STOPS))
    yield _without_marks(_REMARK.split(bare)[0])


def _occurs(theme: str, where: str) -> bool:
    return says(theme) and _folded(theme) in where


def question(reply: str, words: Words) -> str:
    """The first line that ends as questions do, else the first with a question mark. Raises ParseError without one."""
    lines = [line[:_LONGEST] for line in _lines(_single_json_text(reply))[:_MOST]]
    asking: list[str] = []
    for position, line in enumerate(lines, 1):
        line = _BULLET.sub("", line, count=1) if _BULLET.match(line) else line
        line = _without_answer(_without_marks(_without_label(_without_marks(line), words["labels"])), words["labels"])
        if _refuses(line, words["refusals"]):
            break  # what follows is no question on the text
        if says(line) and not _announces(line, position < len(lines)):
            asking.append(" ".join(line.split()))
    ending = (line for line in asking if _QUESTION_END.search(line))
    marked = (line for line in asking if "?" in line or "？" in line)
    if best := next(ending, "") or next(marked, ""):
        return best
    raise ParseError(f"no question in the reply: {reply[:80]!r}", reply)


def _without_answer(line: str, labels: Sequence[str]) -> str:
    """A line without the labelled answer that some models write after the question."""
    for label in re.finditer(rf"(?<!\W)(\W*+)(?=(?:{_any_of(labels)})[\s*_]*+[:：])", line, re.IGNORECASE):
        question_part, between = line[: label.start()], label[1]
        if question_part.endswith(_QUESTION_WORDS):
            return question_part + (between[:1] if between[:1] in _DOTS else "")
        if (end := min((index for sign in _MARKS if (index := between.find(sign)) >= 0), default=-1)) >= 0:
            return question_part + between[: end + 1]
    return line


def answer(reply: str, question: str, text: str, words: Words) -> str:
    """The first line that answers, or UNANSWERABLE. Raises ParseError where there is neither.

    What follows that line is the model's explanation, which was not asked for. A line that the text holds is an
    answer, also where it reads like a refusal.
    """
    lines = [
        _answer_text(line[:_LONGEST], question, words["labels"]) for line in _lines(_single_json_text(reply))[:_MOST]
    ]
    worded = [line for line in lines if says(line)]
    if any(_is_word(line, words["unanswerable"]) for line in worded):
        return UNANSWERABLE
    for position, line in enumerate(worded, 1):
        if _announces(line, position < len(worded)):
            continue
        if _explains(line, words["unanswerable"]):
            return UNANSWERABLE
        if _folded(line) in _folded(text):
            return line
        if any(_words_only(part) in _words_only(line) for part in words["declines"]):
            return UNANSWERABLE
        if _refuses(line, words["refusals"]):
            break
        return line
    raise ParseError(f"no answer in the reply: {reply[:80]!r}", reply)


def _answer_text(line: str, question: str, labels: Sequence[str]) -> str:
    """A line without bullet, label, quotes, final stop, and the question or `The answer is` before the answer."""
    before = ""
    line, asked_question = " ".join(line.split()), " ".join(question.split())
    while line != before:
        before = line
        line = _without_marks(
            _without_label(_without_marks(_DASH.sub("", line, count=1) if _DASH.match(line) else line), labels)
        )
        if line[: len(asked_question)].casefold() == asked_question.casefold():
            line = line[len(asked_question) :].lstrip(" :：-–—>→")
        line = _OPENING.sub("", line, count=1) if _OPENING.match(line) else line
        line = line[:-1] if line.endswith(("。", "．")) or (line.endswith(".") and line.count(".") == 1) else line
    return line


def _without_label(line: str, labels: Sequence[str]) -> str:
    """A line without the `Answer:` before it."""
    label = re.match(rf"[\s*_#>]*(?:{_any_of(labels)})[\s*_]*[:：][\s*_]*", line, re.IGNORECASE)
    return line[label.end() :] if label else line


def _any_of(words: Sequence[str]) -> str:
    return "|".join(map(re.escape, words))


def _without_marks(line: str) -> str:
    """A line without the marks that enclose all of it."""
    before = ""
    while line != before:
        before = line = line.strip()
        for pair in _PAIRS:
            opening, closing = (pair[0], pair[1]) if len(set(pair)) == 2 else (pair, pair)
            inner = line[len(opening) : -len(closing)]
            if (
                line.startswith(opening)
                and line.endswith(closing)
                and inner
                and opening not in inner
                and closing not in inner
            ):
                line = inner
    return line


def _announces(line: str, more: bool) -> bool:
    """Whether a line only says that something follows."""
    return more and line.endswith((":", "："))


def _explains(line: str, words: Sequence[str]) -> bool:
    """Whether a line begins with such a word and goes on after a stop, or has the one that was asked for at an end."""
    core, phrase = _core(line), _core(words[0])
    rests = (core[len(word) :].lstrip() for word in map(_core, words) if core.startswith(word))
    begins = any(rest and not rest[0].isalnum() for rest in rests)
    return begins or core.startswith(phrase) or core.endswith(phrase)


def _refuses(line: str, beginnings: Sequence[str]) -> bool:
    return any(_words_only(line).startswith(_words_only(beginning)) for beginning in beginnings)


def _is_word(line: str, words: Sequence[str]) -> bool:
    return _core(line) in {_core(word) for word in words}


def _core(text: str) -> str:
    match = _CORE.search(_folded(text))
    return match[0] if match else ""


def _words_only(text: str) -> str:
    """Letters and digits alone, in words."""
    return " ".join(re.sub(r"[\W_]+", " ", _folded(text).replace("'", "")).split())


def _folded(text: str) -> str:
    return " ".join(fold(text).casefold().replace("’", "'").split())


def says(text: str) -> bool:
    """Whether there is a letter or a digit."""
    return any(map(str.isalnum, text))


_LAYOUT = "text.jinja"
_TOKEN_LIMIT = {"themes": 1024, "question": 256, "answer": 256}
"""Far more than is asked for: what a reply does not use costs nothing, and thinking has to fit in."""


def open(ask: Ask, language: str) -> tuple[AnswerCandidates, Questions, Answers]:
    """The three stages, asked through `ask` in the prompts of a language. Raises ConfigError for one without prompts.

    Where `ask` has a `signature`, the stages' signatures hold it: it names the model.
    """
    known = languages()
    if language not in known:
        raise ConfigError(unknown_name_message("language", language, known))
    return ModelThemes(ask, language), ModelQuestions(ask, language), ModelAnswers(ask, language)


def languages() -> list[str]:
    """The languages that have prompts."""
    return sorted(folder.parents[1].name for folder in builtin_prompts().glob(f"*/qags/{_LAYOUT}"))


class _Stage:
    """One of the prompts and who is asked it. `signature` is brought up to date with each call."""

    name = ""

    def __init__(self, ask: Ask, language: str) -> None:
        self._ask, self._language = ask, language
        self._template, self._words, self._digest = _prompt(language, self.name)
        self.signature = self._signed()

    def _signed(self) -> str:
        model = getattr(self._ask, "signature", "") or "llm"
        return f"{model}:{self._language}@{self._digest[:6]}"

    def _question(self, read: Callable[[str], str], **texts: str) -> ModelQuestion:
        prompt = self._template.render(texts | self._words).strip()
        return ModelQuestion(prompt, _TOKEN_LIMIT[self.name], read)

    def _replies(self, requests: Mapping[int, ModelQuestion], count: int) -> list[str | ModelError]:
        """The replies about `count` things, of which those that are not asked about get an empty text."""
        replies = dict(zip(requests, self._ask(list(requests.values())), strict=True)) if requests else {}
        self.signature = self._signed()
        return [replies.get(place, "") for place in range(count)]


_NO_THEMES = ModelError("NoThemes", "is not measured: the judge listed no themes to ask about")


class ModelThemes(_Stage):
    """Themes that a judge model lists. A text without a letter or a digit has none, and is not asked about."""

    name = "themes"

    def themes(self, outputs: Sequence[str]) -> list[list[str] | ModelError]:
        nothing = self._words["nothing"]
        requests = {
            place: self._question(partial(themes, output=output, nothing=nothing), text=output)
            for place, output in enumerate(outputs)
            if says(output)
        }
        replies = self._replies(requests, len(outputs))
        return [
            reply
            if isinstance(reply, ModelError)
            else reply.split("\n")
            if reply
            else _NO_THEMES
            if place in requests
            else []
            for place, reply in enumerate(replies)
        ]


class ModelQuestions(_Stage):
    """Questions that a judge model asks."""

    name = "question"

    def questions(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        read = partial(question, words=self._words)
        requests = {n: self._question(read, text=output, theme=theme) for n, (theme, output) in enumerate(pairs)}
        return self._replies(requests, len(pairs))


class ModelAnswers(_Stage):
    """Answers that a judge model finds. A text without a letter or a digit answers nothing, and is not asked about."""

    name = "answer"

    def answers(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        requests = {
            place: self._question(
                partial(answer, question=question, text=text, words=self._words),
                text=text,
                question=question,
            )
            for place, (question, text) in enumerate(pairs)
            if says(text)
        }
        return self._replies(requests, len(pairs))


@lru_cache(maxsize=32)
def _prompt(language: str, name: str) -> tuple[Template, dict[str, tuple[str, ...]], str]:
    """A prompt's template, the words of its header and its layout's, and the sha256 of its texts in hex."""
    folder = builtin_prompts() / language / "qags"
    file_name = f"{name}.jinja"
    texts = {file: read_text(folder / file) for file in (file_name, _LAYOUT)}
    env = ImmutableSandboxedEnvironment(
        loader=DictLoader({file: template_body(text) for file, text in texts.items()}),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    env.filters["fenced"] = fenced
    headers = [yaml_lines.values(front_matter(text)) for text in texts.values()]
    words = {key: tuple(map(str, values)) for header in headers for key, values in header.items()}
    return env.get_template(file_name), words, hashlib.sha256(json.dumps(list(texts.values())).encode()).hexdigest()
