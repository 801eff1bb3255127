"""The back end `llm` of QAGS: a judge model makes themes, questions and answers.

The prompts and the words that replies may use are in prompts/<language>/qags/. Parsing is tolerant (a list as lines or
JSON, an answer in quotes or after the question) but never guesses: a refusal, or a reply without what was requested,
raises ParseError. Only the start of a long line and of a long list is read, so that no reply takes long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

from judge.core.errors import ConfigError, ParseError
from judge.core.plugins import unknown_name_message
from judge.core.records import fold
from judge.metrics import prompts
from judge.metrics.common import Ask, ModelError, ModelQuestion, says
from judge.metrics.qags.pipeline import UNANSWERABLE, AnswerCandidates, Answers, Questions

Words = Mapping[str, tuple[str, ...]]
"""The words of a prompt's header, by their purpose."""

_PAIRS = ("**", "*", "__", "_", "`", '"', "'", "“”", "‘’", "「」", "『』", "«»", "[]")
_BULLET = re.compile(r"[-–•*・+]\s+|・|•|\(?\d{1,3}[.)．）、](?!\d)\s*")
_DASH = re.compile(r"[-–•*+]\s+")
_BETWEEN = re.compile(r"[,，、;；]")
_REMARK = re.compile(r"(?<!\s)(?:\s++[-–—]++\s|\s*+[:：(（])")
_STOPS = ".。．,，;；、"
_OPENING = re.compile(r"(?:the )?answer is:?\s+|答えは[、：:]?\s*|답은[:：]?\s+|答案是[：:]?\s*", re.IGNORECASE)
_CORE = re.compile(r"\w(?:.*\w)?", re.DOTALL)
_MARKS, _QUESTION_WORDS, _DOTS = "?？؟", ("か", "까", "나요", "는가", "인가", "吗", "嗎", "呢"), "。.．"
"""Ends of a question: a mark, or a word and perhaps a stop."""
_LONGEST, _MOST = 2_000, 1_000
"""Characters read of a line, and lines or entries read of a list."""
_QUESTION_END = re.compile(rf"(?:[{_MARKS}]|(?:{'|'.join(_QUESTION_WORDS)})[{_DOTS}]?)" + r"[\s\"'”’」』»)\]）*_]*\Z")


def themes(reply: str, output: str, nothing: Sequence[str]) -> str:
    """Return the listed themes that occur in the output, in its order, one per line; "" if there are none."""
    entries = _lines(reply)
    if entries and entries[0][0] in "[{":  # a JSON list, alone or in an object
        try:
            data, _ = json.JSONDecoder(strict=False).raw_decode("\n".join(entries))
        except (ValueError, RecursionError):
            data = {}
        lists = [value for value in data.values() if isinstance(value, list)] if isinstance(data, dict) else [data]
        entries = [str(entry) for entry in lists[0]] if len(lists) == 1 else entries
    entries = [entry[:_LONGEST] for entry in entries[:_MOST]]
    if all(_is_word(entry, nothing) for entry in entries):
        return ""
    folded_output = _folded(output)
    places: dict[str, tuple[int, str]] = {}
    for entry in entries:
        for theme in _occurring(entry, folded_output):
            # The output's own spelling is preferred; it may differ in case, white space and apostrophes.
            forms = (re.sub("['’]", "['’]", r"\s+".join(map(re.escape, form.split()))) for form in (theme, fold(theme)))
            matches = (match[0] for form in forms if (match := re.search(form, output, re.IGNORECASE)))
            spelling = " ".join(next(matches, theme).split())
            places.setdefault(_folded(theme), (folded_output.find(_folded(theme)), spelling))
    if not places:
        raise ParseError(f"nothing that the reply lists occurs in the text: {reply[:80]!r}", reply)
    return "\n".join(theme for _, theme in sorted(places.values(), key=lambda placed: placed[0]))


def _single_json_text(reply: str) -> str:
    """Return the only text of a JSON object, or the unchanged reply."""
    text = "\n".join(_lines(reply))
    try:
        data = json.loads(text, strict=False) if text.startswith("{") else {}
    except (ValueError, RecursionError):
        return reply
    values = list(data.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else reply


def _lines(reply: str) -> list[str]:
    """Return the lines that are not blank, without the fences of a code block."""
    lines = [line.strip() for line in reply.splitlines()]
    return [line for line in lines if line and not line.startswith("```")]


def _occurring(entry: str, where: str) -> list[str]:
    """Return the fullest form of an entry that occurs in the folded text, or else its parts that do."""
    for form in _forms(entry):
        if _occurs(form, where):
            return [form]
    parts = [part.strip() for part in _BETWEEN.split(entry)]
    if len(parts) == 1:
        return []
    whole = ((form for form in _forms(part) if _occurs(form, where)) for part in parts)
    return [form for forms in whole if (form := next(forms, ""))]


def _forms(entry: str) -> Iterator[str]:
    """Yield an entry unchanged, then with more and more decoration removed."""
    yield entry
    bare = _without_marks(_without_start(entry, _BULLET))
    yield bare
    yield _without_marks(bare.rstrip(_STOPS))
    yield _without_marks(_REMARK.split(bare)[0])


def _occurs(theme: str, where: str) -> bool:
    return says(theme) and _folded(theme) in where


def question(reply: str, words: Words) -> str:
    """Return the first line that ends like a question, else the first with a question mark. Raises ParseError."""
    lines = [line[:_LONGEST] for line in _lines(_single_json_text(reply))[:_MOST]]
    asking: list[str] = []
    for position, line in enumerate(lines, 1):
        line = _without_label(_without_marks(_without_start(line, _BULLET)), words["labels"])
        line = _without_answer(_without_marks(line), words["labels"])
        if _refuses(line, words["refusals"]):
            break  # the rest is not a question about the text
        if says(line) and not _announces(line, position < len(lines)):
            asking.append(" ".join(line.split()))
    ending = (line for line in asking if _QUESTION_END.search(line))
    marked = (line for line in asking if "?" in line or "？" in line)
    if best := next(ending, "") or next(marked, ""):
        return best
    raise ParseError(f"no question in the reply: {reply[:80]!r}", reply)


def _without_answer(line: str, labels: Sequence[str]) -> str:
    """Remove the labelled answer that some models write after the question."""
    for label in re.finditer(rf"(?<!\W)(\W*+)(?=(?:{_any_of(labels)})[\s*_]*+[:：])", line, re.IGNORECASE):
        question_part, between = line[: label.start()], label[1]
        if question_part.endswith(_QUESTION_WORDS):
            return question_part + (between[:1] if between[:1] in _DOTS else "")
        if (end := min((index for sign in _MARKS if (index := between.find(sign)) >= 0), default=-1)) >= 0:
            return question_part + between[: end + 1]
    return line


def answer(reply: str, question: str, text: str, words: Words) -> str:
    """Return the first line that answers, or UNANSWERABLE. Raises ParseError if there is neither.

    The lines after it are an explanation that was not requested. A line that occurs in the text is an answer, even if
    it reads like a refusal.
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
        # An explanation begins with such a word and a stop, or it begins or ends with the first of them.
        core, phrases = _core(line), [_core(word) for word in words["unanswerable"]]
        rests = (core[len(word) :].lstrip() for word in phrases if core.startswith(word))
        if any(rest and not rest[0].isalnum() for rest in rests):
            return UNANSWERABLE
        if core.startswith(phrases[0]) or core.endswith(phrases[0]):
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
    """Remove bullet, label, quotes, final stop, and the question or `The answer is` before the answer."""
    before = ""
    line, asked_question = " ".join(line.split()), " ".join(question.split())
    while line != before:
        before = line
        line = _without_marks(_without_label(_without_marks(_without_start(line, _DASH)), labels))
        if line[: len(asked_question)].casefold() == asked_question.casefold():
            line = line[len(asked_question) :].lstrip(" :：-–—>→")
        line = _without_start(line, _OPENING)
        line = line[:-1] if line.endswith(("。", "．")) or (line.endswith(".") and line.count(".") == 1) else line
    return line


def _without_label(line: str, labels: Sequence[str]) -> str:
    """Remove a leading `Answer:`."""
    return _without_start(line, re.compile(rf"[\s*_#>]*(?:{_any_of(labels)})[\s*_]*[:：][\s*_]*", re.IGNORECASE))


def _without_start(line: str, pattern: re.Pattern[str]) -> str:
    match = pattern.match(line)
    return line[match.end() :] if match else line


def _any_of(words: Sequence[str]) -> str:
    return "|".join(map(re.escape, words))


def _without_marks(line: str) -> str:
    """Remove the marks that enclose the whole line."""
    before = ""
    while line != before:
        before = line = line.strip()
        for pair in _PAIRS:
            opening, closing = (pair[0], pair[1]) if len(set(pair)) == 2 else (pair, pair)
            inner = line[len(opening) : -len(closing)]
            ends = line.startswith(opening) and line.endswith(closing)
            if ends and inner and opening not in inner and closing not in inner:
                line = inner
    return line


def _announces(line: str, more: bool) -> bool:
    """Return whether a line only announces the next one."""
    return more and line.endswith((":", "："))


def _refuses(line: str, forms: tuple[str, ...]) -> bool:
    """Return whether a line begins with a refusing form. `…` in a form stands for words of the same sentence."""
    return _refusal_pattern(forms).match(_sentence(line) + ".") is not None


@lru_cache(maxsize=32)
def _refusal_pattern(forms: tuple[str, ...]) -> re.Pattern[str]:
    def part(words: str) -> str:
        text = re.escape(_sentence(words))
        return rf"(?<![a-z0-9]){text}(?![a-z0-9])" if words.isascii() else text

    return re.compile("|".join('[^."“”「」『』]*?'.join(map(part, form.split("…"))) for form in forms))


def _sentence(text: str) -> str:
    """Return the words with stops and quotation marks: a title or a quotation that begins a line is no refusal."""
    text = re.sub("[。!?]", ".", _folded(text).replace("'", ""))
    return re.sub(r'[^\w."“”「」『』《》]+', " ", text).lstrip()


def _is_word(line: str, words: Sequence[str]) -> bool:
    return _core(line) in {_core(word) for word in words}


def _core(text: str) -> str:
    match = _CORE.search(_folded(text))
    return match[0] if match else ""


def _words_only(text: str) -> str:
    """Return the words, of letters and digits only."""
    return " ".join(re.sub(r"[\W_]+", " ", _folded(text).replace("'", "")).split())


def _folded(text: str) -> str:
    return " ".join(fold(text).casefold().replace("’", "'").split())


_TOKEN_LIMIT = {"themes": 1024, "question": 256, "answer": 256}
"""Far more than needed: unused tokens cost nothing, and thinking has to fit in."""


def open(ask: Ask, language: str) -> tuple[AnswerCandidates, Questions, Answers]:
    """Return the three stages, with the prompts of a language. Raises ConfigError for a language without prompts.

    The stages' signatures contain the `signature` of `ask`, if it has one: it names the model.
    """
    known = prompts.languages()
    if language not in known:
        raise ConfigError(unknown_name_message("language", language, known))
    return ModelThemes(ask, language), ModelQuestions(ask, language), ModelAnswers(ask, language)


class _Stage:
    """A prompt and the judge model that answers it."""

    name = ""

    def __init__(self, ask: Ask, language: str) -> None:
        self._ask, self._language = ask, language
        self._prompt = prompts.load(language, "qags", self.name)

    @property
    def signature(self) -> str:
        model = getattr(self._ask, "signature", "") or "llm"
        return f"{model}:{self._language}@{self._prompt.digest[:6]}"

    def _question(self, read: Callable[[str], str], **texts: str) -> ModelQuestion:
        return ModelQuestion(self._prompt.render(**texts), _TOKEN_LIMIT[self.name], read)

    def _replies(self, requests: Sequence[ModelQuestion | None]) -> list[str | ModelError]:
        """Return the reply to each request, an empty text for None."""
        questions = [request for request in requests if request]
        replies = iter(self._ask(questions) if questions else ())
        return [next(replies) if request else "" for request in requests]


_NO_THEMES = ModelError("NoThemes", "is not measured: the judge listed no themes to ask about")


class ModelThemes(_Stage):
    """Themes listed by a judge model. A text without a letter or digit has none and costs no request."""

    name = "themes"

    def themes(self, outputs: Sequence[str]) -> list[list[str] | ModelError]:
        nothing = self._prompt.words["nothing"]
        requests = [
            self._question(partial(themes, output=output, nothing=nothing), text=output) if says(output) else None
            for output in outputs
        ]
        return [
            reply if isinstance(reply, ModelError) else reply.split("\n") if reply else _NO_THEMES if request else []
            for reply, request in zip(self._replies(requests), requests, strict=True)
        ]


class ModelQuestions(_Stage):
    """Questions written by a judge model."""

    name = "question"

    def questions(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        read = partial(question, words=self._prompt.words)
        return self._replies([self._question(read, text=output, theme=theme) for theme, output in pairs])


class ModelAnswers(_Stage):
    """Answers found by a judge model. A text without a letter or digit answers nothing and costs no request."""

    name = "answer"

    def answers(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        read = partial(answer, words=self._prompt.words)
        questions = [
            self._question(partial(read, question=asked, text=text), text=text, question=asked) if says(text) else None
            for asked, text in pairs
        ]
        return self._replies(questions)
