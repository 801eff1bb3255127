"""The back end `llm` of QAGS: a judge model makes themes, questions and answers.

The prompts and the words that replies may use are in prompts/<language>/qags/. Parsing is tolerant (a list as lines or
JSON, an answer in quotes or after the question) but never guesses: a refusal, or a reply without what was requested,
raises ParseError. Only the start of a long line and of a long list is read, so that no reply takes long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial

from judge.core.errors import ParseError
from judge.core.records import fold
from judge.metrics import prompts
from judge.metrics.base import Ask, ModelError, ModelQuestion
from judge.metrics.common import says
from judge.metrics.qags.pipeline import UNANSWERABLE, AnswerCandidates, Answers, Questions

Words = Mapping[str, tuple[str, ...]]
"""The words of a prompt's header, by their purpose."""

_PAIRS = ("**", "*", "__", "_", "`", '"', "'", "“”", "‘’", "「」", "『』", "«»", "[]")
_BULLET = re.compile(r"[-–•*・+]\s+|・|•|\(?\d{1,3}[.)．）、](?!\d)\s*")
_DASH = re.compile(r"[-–•*+]\s+")
_BETWEEN = re.compile(r"[,，、;；]")
_REMARK = re.compile(r"(?<!\s)(?:\s++[-–—]++\s|\s*+[:：(（])")
_STOPS = ".。．,，;；、"
_OPENING = re.compile(
    r"(?:the )?answer is:?\s+|答えは[、：:]?\s*|답은[:：]?\s+|答案是[：:]?\s*", re.IGNORECASE
)
_CORE = re.compile(r"\w(?:.*\w)?", re.DOTALL)
_QUESTION_WORDS = ("か", "까", "나요", "는가", "인가", "吗", "嗎", "呢")
_QUESTION_ENDS = (
    *"?？؟",
    *(word + dot for word in _QUESTION_WORDS for dot in ("", "。", ".", "．")),
)
"""A mark, or a word and perhaps a stop."""
_CLOSERS = " \"'”’」』»)]）*_"
_OPENERS = " (（[*_`-–—"
_LONGEST, _MOST = 2_000, 1_000
"""Characters read of a line, and lines or entries read of a list."""


def _entries(reply: str) -> list[str]:
    """Return the lines of a reply, or the entries of its JSON list or object; none of them blank.

    Of an object that holds one list, these are the list's.
    """
    lines = [line.strip() for line in reply.splitlines()]
    lines = [line for line in lines if line and not line.startswith("```")]
    if lines and lines[0][0] in "[{":
        with suppress(ValueError, RecursionError):
            data, _ = json.JSONDecoder(strict=False).raw_decode("\n".join(lines))
            values = list(data.values()) if isinstance(data, dict) else [data]
            lists = [value for value in values if isinstance(value, list)] or [values]
            if len(lists) == 1:
                lines = [line.strip() for value in lists[0] for line in str(value).splitlines()]
    return [line[:_LONGEST] for line in lines if line][:_MOST]


def _bare(line: str, bullet: re.Pattern[str], labels: Sequence[str] = ()) -> str:
    """Remove a bullet, a label such as `Answer:`, and the marks that enclose the whole line."""
    line = _without_marks(_without_start(line, bullet))
    return _without_marks(_without_start(line, _label(labels))) if labels else line


def _label(labels: Sequence[str]) -> re.Pattern[str]:
    return re.compile(
        rf"[\s*_#>]*(?:{'|'.join(map(re.escape, labels))})[\s*_]*+[:：][\s*_]*", re.IGNORECASE
    )


def _without_start(line: str, pattern: re.Pattern[str]) -> str:
    match = pattern.match(line)
    return line[match.end() :] if match else line


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


def themes(reply: str, output: str, nothing: Sequence[str]) -> str:
    """Return the listed themes that occur in the output, in its order, one per line; "" if there are none."""
    entries = _entries(reply)
    if all(_is_word(entry, nothing) for entry in entries):
        return ""
    folded_output = _folded(output)
    places: dict[str, tuple[int, str]] = {}
    for entry in entries:
        # The fullest form of an entry, or else of its parts.
        whole = next(_occurring(entry, folded_output), None)
        parts = (
            [whole]
            if whole
            else [next(_occurring(part, folded_output), "") for part in _BETWEEN.split(entry)]
        )
        for theme in filter(None, parts):
            # The output's own spelling is preferred; it may differ in case, white space and apostrophes.
            forms = (
                re.sub("['’]", "['’]", r"\s+".join(map(re.escape, form.split())))
                for form in (theme, fold(theme))
            )
            matches = (
                match[0] for form in forms if (match := re.search(form, output, re.IGNORECASE))
            )
            spelling = " ".join(next(matches, theme).split())
            places.setdefault(_folded(theme), (folded_output.find(_folded(theme)), spelling))
    if not places:
        raise ParseError(f"nothing that the reply lists occurs in the text: {reply[:80]!r}", reply)
    return "\n".join(theme for _, theme in sorted(places.values(), key=lambda placed: placed[0]))


def _occurring(entry: str, folded_output: str) -> Iterator[str]:
    """Yield the forms of an entry that occur in the output: unchanged, then with more and more decoration removed."""
    bare = _bare(entry, _BULLET)
    for form in (
        entry.strip(),
        bare,
        _without_marks(bare.rstrip(_STOPS)),
        _without_marks(_REMARK.split(bare)[0]),
    ):
        if says(form) and _folded(form) in folded_output:
            yield form


def question(reply: str, words: Words) -> str:
    """Return the first line that ends like a question, else the first with a question mark. Raises ParseError."""
    entries = _entries(reply)
    asking: list[str] = []
    for position, entry in enumerate(entries, 1):
        line = _bare(entry, _BULLET, words["labels"])
        for label in _label(words["labels"]).finditer(
            line
        ):  # some models write the answer after the question
            asked = line[: label.start()].rstrip(_OPENERS)
            if asked.endswith(_QUESTION_ENDS):
                line = asked
                break
        if _refuses(line, words["refusals"]):
            break  # the rest is not a question about the text
        if says(line) and not _announces(line, position < len(entries)):
            asking.append(" ".join(line.split()))
    ending = (line for line in asking if line.rstrip(_CLOSERS).endswith(_QUESTION_ENDS))
    marked = (line for line in asking if "?" in line or "？" in line)
    if best := next(ending, "") or next(marked, ""):
        return best
    raise ParseError(f"no question in the reply: {reply[:80]!r}", reply)


def answer(reply: str, question: str, text: str, words: Words) -> str:
    """Return the first line that answers, or UNANSWERABLE. Raises ParseError if there is neither.

    The lines after it are an explanation that was not requested. A line that occurs in the text is an answer, even if
    it reads like a refusal.
    """
    lines = [
        line
        for entry in _entries(reply)
        if says(line := _answer_text(entry, question, words["labels"]))
    ]
    if any(_is_word(line, words["unanswerable"]) for line in lines):
        return UNANSWERABLE
    phrases = [_core(word) for word in words["unanswerable"]]
    # An explanation begins with such a word and a stop, or it begins or ends with the first of them.
    explains = re.compile(rf"(?:{'|'.join(map(re.escape, phrases))})\s*[^\w\s]")
    for position, line in enumerate(lines, 1):
        if _announces(line, position < len(lines)):
            continue
        core = _core(line)
        if explains.match(core) or core.startswith(phrases[0]) or core.endswith(phrases[0]):
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
        line = _bare(line, _DASH, labels)
        if line[: len(asked_question)].casefold() == asked_question.casefold():
            line = line[len(asked_question) :].lstrip(" :：-–—>→")
        line = _without_start(line, _OPENING)
        line = (
            line[:-1]
            if line.endswith(("。", "．")) or (line.endswith(".") and line.count(".") == 1)
            else line
        )
    return line


def _refuses(line: str, forms: tuple[str, ...]) -> bool:
    """Return whether a line begins with a refusing form. `…` in a form stands for words of the same sentence."""
    return _refusal_pattern(forms).match(_sentence(line) + ".") is not None


@lru_cache(maxsize=32)
def _refusal_pattern(forms: tuple[str, ...]) -> re.Pattern[str]:
    def part(words: str) -> str:
        text = re.escape(_sentence(words))
        return rf"(?<![a-z0-9]){text}(?![a-z0-9])" if words.isascii() else text

    return re.compile(
        "|".join('[^."“”「」『』]*?'.join(map(part, form.split("…"))) for form in forms)
    )


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


def open(ask: Ask, language: str) -> tuple[AnswerCandidates, Questions, Answers]:
    """Return the three stages, with the prompts of a language.

    The stages' signatures contain the `signature` of `ask`, if it has one: it names the model.
    """
    return ModelThemes(ask, language), ModelQuestions(ask, language), ModelAnswers(ask, language)


class _Stage(prompts.Stage):
    task = "qags"
    most_tokens = 256

    def _replies(self, requests: Sequence[ModelQuestion | None]) -> list[str | ModelError]:
        """Return the reply to each request, an empty text for None."""
        replies = iter(self.ask([request for request in requests if request]))
        return [next(replies) if request else "" for request in requests]


_NO_THEMES = ModelError("NoThemes", "is not measured: the judge listed no themes to ask about")


class ModelThemes(_Stage):
    """Themes listed by a judge model. A text without a letter or digit has none and costs no request."""

    name = "themes"
    most_tokens = 1024

    def themes(self, outputs: Sequence[str]) -> list[list[str] | ModelError]:
        nothing = self.prompt().words["nothing"]
        requests = [
            self.request(partial(themes, output=output, nothing=nothing), output)
            if says(output)
            else None
            for output in outputs
        ]
        return [
            reply
            if isinstance(reply, ModelError)
            else reply.split("\n")
            if reply
            else _NO_THEMES
            if request
            else []
            for reply, request in zip(self._replies(requests), requests, strict=True)
        ]


class ModelQuestions(_Stage):
    """Questions written by a judge model."""

    name = "question"

    def questions(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        read = partial(question, words=self.prompt().words)
        return self._replies([self.request(read, output, theme=theme) for theme, output in pairs])


class ModelAnswers(_Stage):
    """Answers found by a judge model. A text without a letter or digit answers nothing and costs no request."""

    name = "answer"

    def answers(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        read = partial(answer, words=self.prompt().words)
        requests = [
            self.request(partial(read, question=asked, text=text), text, question=asked)
            if says(text)
            else None
            for asked, text in pairs
        ]
        return self._replies(requests)
