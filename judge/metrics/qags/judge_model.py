"""The back end `llm` of QAGS: a judge model makes themes, questions and answers.

The prompts and the words that replies may use are in prompts/<language>/qags/. Parsing is tolerant
(a list as lines or JSON, an answer in quotes or after the question) but never guesses: a refusal,
or a reply without what was requested, raises ParseError. Only the start of a long line and of a
long list is read, so that no reply takes long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from judge.core.errors import ParseError
from judge.core.normalization import fold
from judge.metrics import prompts
from judge.metrics.base import Ask, ModelError, ModelQuestion
from judge.metrics.common import says
from judge.metrics.qags.pipeline import UNANSWERABLE, Stages

Words = Mapping[str, tuple[str, ...]]
"""The words of a prompt's header, by their purpose."""

# The marks that may enclose a whole line, as in **Snow** or 「雪」; the longer ones first.
_ENCLOSING_MARKS = (
    ("**", "**"),
    ("*", "*"),
    ("__", "__"),
    ("_", "_"),
    ("`", "`"),
    ('"', '"'),
    ("'", "'"),
    ("“", "”"),
    ("‘", "’"),
    ("「", "」"),
    ("『", "』"),
    ("«", "»"),
    ("[", "]"),
)
# "- Snow", "・交番", "1. Snow", "(4) Sunday", "1、大雪"; not "3.5 million homes"
_BULLET = re.compile(r"[-–•*・+]\s+|・|•|\(?\d{1,3}[.)．）、](?!\d)\s*")
# "- Snow"; not "1. FC Köln", because an answer may begin with a number
_DASH = re.compile(r"[-–•*+]\s+")
# "Snow, the pass", "「喫茶店」、「交番」"
_BETWEEN = re.compile(r"[,，、;；]")
# "Sunday - a day", "two lorries (vehicles)", "Snow: closes the pass"
_REMARK = re.compile(r"(?<!\s)(?:\s++[-–—]++\s|\s*+[:：(（])")
_STOPS = ".。．,，;；、"
# "The answer is: Snow", "答えは、雪", "답은 눈", "答案是：大雪"
_OPENING = re.compile(
    r"(?:the )?answer is:?\s+|答えは[、：:]?\s*|답은[:：]?\s+|答案是[：:]?\s*",
    re.IGNORECASE,
)
# "not stated" of "(not stated)."
_CORE = re.compile(r"\w(?:.*\w)?", re.DOTALL)
_NON_WORDS = re.compile(r"[\W_]+")
# "Sorry," and "sorry -" are one; stops and quotation marks stay
_NON_SENTENCE = re.compile(r'[^\w."“”「」『』《》]+')
_QUESTION_WORDS = ("か", "까", "나요", "는가", "인가", "吗", "嗎", "呢")
_QUESTION_ENDS = (
    *"?？؟",
    *(word + stop for word in _QUESTION_WORDS for stop in ("", "。", ".", "．")),
)
"""A mark, or a word and perhaps a stop."""
_CLOSERS = " \"'”’」』»)]）*_"
_OPENERS = " (（[*_`-–—"
_LONGEST = 2_000
"""Characters read of a line."""
_MOST = 1_000
"""Lines or entries read of a list."""


def _entries(reply: str) -> list[str]:
    """Return the lines of a reply, or the entries of its JSON list or object; none of them blank.

    An object that holds one list stands for this list.
    """
    stripped = [line.strip() for line in reply.splitlines()]
    lines = [line for line in stripped if line and not line.startswith("```")]
    if lines and lines[0][0] in "[{":
        # A reply such as `[see below]` is no JSON: it stays a line.
        with suppress(ValueError, RecursionError):
            decoder = json.JSONDecoder(strict=False)
            data, _ = decoder.raw_decode("\n".join(lines))
            listed = _json_lines(data)
            if listed is not None:
                lines = listed
    return [line[:_LONGEST] for line in lines][:_MOST]


def _json_lines(data: Any) -> list[str] | None:
    """Return the lines of the values in a JSON value that are not blank; None for several lists."""
    values = list(data.values()) if isinstance(data, dict) else [data]
    lists = [value for value in values if isinstance(value, list)] or [values]
    if len(lists) > 1:
        return None
    lines: list[str] = []
    for value in lists[0]:
        stripped = [line.strip() for line in str(value).splitlines()]
        lines += filter(None, stripped)
    return lines


def _bare(line: str, bullet: re.Pattern[str], labels: Sequence[str] = ()) -> str:
    """Remove a bullet, a label such as `Answer:`, and the marks that enclose the whole line."""
    line = _without_marks(_without_start(line, bullet))
    if not labels:
        return line
    return _without_marks(_without_start(line, _label(labels)))


def _label(labels: Sequence[str]) -> re.Pattern[str]:
    """Match a label at the start of a line, such as `Question:` or `**答え**：`."""
    names = "|".join(map(re.escape, labels))
    return re.compile(rf"[\s*_#>]*(?:{names})[\s*_]*+[:：][\s*_]*", re.IGNORECASE)


def _without_start(line: str, pattern: re.Pattern[str]) -> str:
    match = pattern.match(line)
    return line[match.end() :] if match else line


def _without_marks(line: str) -> str:
    """Remove the marks that enclose the whole line."""
    line_before = ""
    while line != line_before:
        line = line.strip()
        line_before = line
        for opening, closing in _ENCLOSING_MARKS:
            if not (line.startswith(opening) and line.endswith(closing)):
                continue
            inner = line[len(opening) : -len(closing)]
            # In `"Yes" or "no"` the marks belong to two words.
            if inner and opening not in inner and closing not in inner:
                line = inner
    return line


def _announces(line: str, more: bool) -> bool:
    """Return whether a line only announces the next one."""
    return more and line.endswith((":", "："))


def themes(reply: str, output: str, nothing: Sequence[str]) -> str:
    """Return the listed themes that occur in the output, in its order, one per line.

    The result is "" if the reply says that there are none. Raises ParseError if no theme occurs.
    """
    entries = _entries(reply)
    if all(_is_word(entry, nothing) for entry in entries):
        return ""
    folded_output = _folded(output)
    spelling_by_theme: dict[str, str] = {}
    for entry in entries:
        for theme in _themes_of(entry, folded_output):
            spelling_by_theme.setdefault(_folded(theme), _spelling(theme, output))
    if not spelling_by_theme:
        problem = f"nothing that the reply lists occurs in the text: {reply[:80]!r}"
        raise ParseError(problem, reply)
    in_order = sorted(spelling_by_theme, key=folded_output.find)
    return "\n".join(spelling_by_theme[theme] for theme in in_order)


def _themes_of(entry: str, folded_output: str) -> list[str]:
    """Return an entry's fullest form that occurs in the output, or else the forms of its parts."""
    whole = next(_occurring(entry, folded_output), "")
    if whole:
        return [whole]
    forms: list[str] = []
    for part in _BETWEEN.split(entry):
        fullest = next(_occurring(part, folded_output), "")
        if fullest:
            forms.append(fullest)
    return forms


def _spelling(theme: str, output: str) -> str:
    """Return a theme as the output spells it; case, white space and apostrophes may differ."""
    spelling = theme
    for form in (theme, fold(theme)):
        words = r"\s+".join(map(re.escape, form.split()))
        # `Hall's` becomes `Hall['’]s`, which also matches `Hall’s`.
        with_any_apostrophe = re.sub("['’]", "['’]", words)
        match = re.search(with_any_apostrophe, output, re.IGNORECASE)
        if match:
            spelling = match[0]
            break
    return " ".join(spelling.split())


def _occurring(entry: str, folded_output: str) -> Iterator[str]:
    """Yield the forms of an entry that occur in the output, with less and less decoration."""
    bare = _bare(entry, _BULLET)
    without_stop = _without_marks(bare.rstrip(_STOPS))
    without_remark = _without_marks(_REMARK.split(bare)[0])
    for form in (entry.strip(), bare, without_stop, without_remark):
        if says(form) and _folded(form) in folded_output:
            yield form


def question(reply: str, words: Words) -> str:
    """Return the first line that ends like a question, else the first with a question mark.

    Raises ParseError if there is none.
    """
    entries = _entries(reply)
    labels = words["labels"]
    lines: list[str] = []
    for position, entry in enumerate(entries, 1):
        line = _without_answer(_bare(entry, _BULLET, labels), labels)
        if _refuses(line, words["refusals"]):
            break  # the rest is not a question about the text
        has_next = position < len(entries)
        if says(line) and not _announces(line, has_next):
            lines.append(" ".join(line.split()))
    for line in lines:
        if line.rstrip(_CLOSERS).endswith(_QUESTION_ENDS):
            return line
    for line in lines:
        if "?" in line or "？" in line:
            return line
    raise ParseError(f"no question in the reply: {reply[:80]!r}", reply)


def _without_answer(line: str, labels: Sequence[str]) -> str:
    """Return a question without the labelled answer that some models write after it."""
    for label in _label(labels).finditer(line):
        before_label = line[: label.start()].rstrip(_OPENERS)
        if before_label.endswith(_QUESTION_ENDS):
            return before_label
    return line


def answer(reply: str, question: str, text: str, words: Words) -> str:
    """Return the first line that answers, or UNANSWERABLE. Raises ParseError if there is neither.

    The lines after it are an explanation that was not requested. A line that occurs in the text is
    an answer, even if it reads like a refusal.
    """
    labels = words["labels"]
    answers = [_answer_text(entry, question, labels) for entry in _entries(reply)]
    lines = [line for line in answers if says(line)]
    if any(_is_word(line, words["unanswerable"]) for line in lines):
        return UNANSWERABLE
    for position, line in enumerate(lines, 1):
        has_next = position < len(lines)
        if _announces(line, has_next):
            continue
        if _explains_no_answer(line, words["unanswerable"]):
            return UNANSWERABLE
        if _folded(line) in _folded(text):
            return line
        if any(_words_only(part) in _words_only(line) for part in words["declines"]):
            return UNANSWERABLE
        if _refuses(line, words["refusals"]):
            break
        return line
    raise ParseError(f"no answer in the reply: {reply[:80]!r}", reply)


def _explains_no_answer(line: str, unanswerable: Sequence[str]) -> bool:
    """Return whether a line says more than one of these phrases: `Not stated: it is about snow`.

    It begins with a phrase and a mark, or it begins or ends with the first phrase.
    """
    core = _core(line)
    phrases = [_core(word) for word in unanswerable]
    if core.startswith(phrases[0]) or core.endswith(phrases[0]):
        return True
    alternatives = "|".join(map(re.escape, phrases))
    return re.match(rf"(?:{alternatives})\s*[^\w\s]", core) is not None


def _answer_text(line: str, question: str, labels: Sequence[str]) -> str:
    """Remove all around an answer: bullet, label, quotes, final stop, and words before it.

    The words before it are the question or `The answer is`.
    """
    line_before = ""
    line = " ".join(line.split())
    question = " ".join(question.split())
    while line != line_before:
        line_before = line
        line = _bare(line, _DASH, labels)
        if line[: len(question)].casefold() == question.casefold():
            line = line[len(question) :].lstrip(" :：-–—>→")
        line = _without_start(line, _OPENING)
        # The last point of "U.S." is no full stop.
        ends_in_point = line.endswith(".") and line.count(".") == 1
        if ends_in_point or line.endswith(("。", "．")):
            line = line[:-1]
    return line


def _refuses(line: str, forms: tuple[str, ...]) -> bool:
    """Return whether a line begins with a form of refusal.

    `…` in a form stands for words of the same sentence.
    """
    return _refusal_pattern(forms).match(_sentence(line) + ".") is not None


@lru_cache(maxsize=32)
def _refusal_pattern(forms: tuple[str, ...]) -> re.Pattern[str]:
    """Match any of the forms, such as `I cannot` or `as an AI…I can't`."""
    patterns: list[str] = []
    for form in forms:
        parts = [_phrase_pattern(part) for part in form.split("…")]
        patterns.append('[^."“”「」『』]*?'.join(parts))
    return re.compile("|".join(patterns))


def _phrase_pattern(phrase: str) -> str:
    """Return the pattern of a phrase; in English, `I can` does not match `I cannot`."""
    pattern = re.escape(_sentence(phrase))
    return rf"(?<![a-z0-9]){pattern}(?![a-z0-9])" if phrase.isascii() else pattern


def _sentence(text: str) -> str:
    """Return the words with stops and quotation marks.

    The marks stay, because a title or a quotation that begins a line is no refusal.
    """
    without_apostrophes = _folded(text).replace("'", "")
    with_one_stop = re.sub("[。!?]", ".", without_apostrophes)
    return _NON_SENTENCE.sub(" ", with_one_stop).lstrip()


def _is_word(line: str, words: Sequence[str]) -> bool:
    """Return whether a line is one of the words, without regard to case and marks around it."""
    return _core(line) in {_core(word) for word in words}


def _core(text: str) -> str:
    """Return the folded text from its first to its last letter or digit."""
    match = _CORE.search(_folded(text))
    return match[0] if match else ""


def _words_only(text: str) -> str:
    """Return the words, of letters and digits only: `doesnt say` of "It doesn't say."."""
    without_apostrophes = _folded(text).replace("'", "")
    words = _NON_WORDS.sub(" ", without_apostrophes).split()
    return " ".join(words)


def _folded(text: str) -> str:
    """Return a text with one case, one kind of apostrophe and single spaces."""
    casefolded = fold(text).casefold()
    words = casefolded.replace("’", "'").split()
    return " ".join(words)


def open(ask: Ask, language: str) -> Stages:
    """Return the three stages, with the prompts of a language.

    The stages' signatures contain the `signature` of `ask`, if it has one: it names the model.
    """
    return Stages(
        themes=ModelThemes(ask, language),
        questions=ModelQuestions(ask, language),
        answers=ModelAnswers(ask, language),
    )


class _Stage(prompts.Stage):
    task = "qags"
    most_tokens = 256

    def _replies(
        self, requests: Sequence[ModelQuestion | None]
    ) -> list[str | ModelError]:
        """Return the reply to each request, an empty text for None."""
        sent = [request for request in requests if request]
        replies = iter(self.ask(sent))
        return [next(replies) if request else "" for request in requests]


_NO_THEMES = ModelError(
    "NoThemes", "is not measured: the judge listed no themes to ask about"
)


class ModelThemes(_Stage):
    """Themes listed by a judge model.

    A text without a letter or digit has none and costs no request.
    """

    name = "themes"
    most_tokens = 1024

    def themes(self, outputs: Sequence[str]) -> list[list[str] | ModelError]:
        nothing = self.prompt().words["nothing"]
        requests: list[ModelQuestion | None] = []
        for output in outputs:
            request = None
            if says(output):
                read = partial(themes, output=output, nothing=nothing)
                request = self.request(read, output)
            requests.append(request)
        listed: list[list[str] | ModelError] = []
        for reply, request in zip(self._replies(requests), requests, strict=True):
            if isinstance(reply, ModelError):
                listed.append(reply)
            elif reply:
                listed.append(reply.split("\n"))
            elif request:
                listed.append(_NO_THEMES)
            else:
                listed.append([])
        return listed


class ModelQuestions(_Stage):
    """Questions written by a judge model."""

    name = "question"

    def questions(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        read = partial(question, words=self.prompt().words)
        requests = [self.request(read, output, theme=theme) for theme, output in pairs]
        return self._replies(requests)


class ModelAnswers(_Stage):
    """Answers given by a judge model.

    A text without a letter or digit answers nothing and costs no request.
    """

    name = "answer"

    def answers(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        words = self.prompt().words
        requests: list[ModelQuestion | None] = []
        for question, text in pairs:
            request = None
            if says(text):
                read = partial(answer, question=question, text=text, words=words)
                request = self.request(read, text, question=question)
            requests.append(request)
        return self._replies(requests)
