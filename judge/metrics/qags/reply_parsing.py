"""What a judge's replies to the prompts of QAGS say: what `Wanted.read` is, with what it has to know filled in.

A reply is read with patience (a list as lines or as JSON, an answer in quotes or after the question), but never
guessed at: what is not plainly what was asked for, and so a refusal, raises ParseError. No reply, however odd, takes
long: of a line only so much is read, and of a list only so many entries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from judge.core.errors import ParseError
from judge.core.records import fold
from judge.metrics.qags.protocols import UNANSWERABLE

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
_MARKS, _FINALS, _DOTS = "?？؟", ("か", "까", "나요", "는가", "인가", "吗", "嗎", "呢"), "。.．"
"""How a question ends: with a mark, or a word and perhaps a stop."""
_LONGEST, _MOST = 2_000, 1_000
"""Characters of a line, and lines or entries of a list, that are read."""
_ENDS = re.compile(rf"(?:[{_MARKS}]|(?:{'|'.join(_FINALS)})[{_DOTS}]?)" + r"[\s\"'”’」』»)\]）*_]*\Z")


def themes(reply: str, output: str, nothing: Sequence[str]) -> str:
    """The listed themes that occur in the output, by their first place there, one per line; "" where it has none."""
    entries = [entry[:_LONGEST] for entry in _listed(reply)[:_MOST]]
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


def _alone(reply: str) -> str:
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
    bare = _bare(_BULLET.sub("", entry, count=1) if _BULLET.match(entry) else entry)
    yield bare
    yield _bare(bare.rstrip(_STOPS))
    yield _bare(_REMARK.split(bare)[0])


def _occurs(theme: str, where: str) -> bool:
    return says(theme) and _folded(theme) in where


def _as_written(theme: str, output: str) -> str:
    """A theme on one line and, where the output has it but for case and spaces, in the output's writing."""
    forms = (re.sub("['’]", "['’]", r"\s+".join(map(re.escape, form.split()))) for form in (theme, fold(theme)))
    found = (match[0] for form in forms if (match := re.search(form, output, re.IGNORECASE)))
    return " ".join(next(found, theme).split())


def question(reply: str, words: Words) -> str:
    """The first line that ends as questions do, else the first with a question mark. Raises ParseError without one."""
    lines = [line[:_LONGEST] for line in _lines(_alone(reply))[:_MOST]]
    asking: list[str] = []
    for position, line in enumerate(lines, 1):
        line = _BULLET.sub("", line, count=1) if _BULLET.match(line) else line
        line = _unanswered(_bare(_unlabelled(_bare(line), words["labels"])), words["labels"])
        if _refuses(line, words["refusals"]):
            break  # what follows is no question on the text
        if says(line) and not _announces(line, position < len(lines)):
            asking.append(" ".join(line.split()))
    ending = (line for line in asking if _ENDS.search(line))
    marked = (line for line in asking if "?" in line or "？" in line)
    if found := next(ending, "") or next(marked, ""):
        return found
    raise ParseError(f"no question in the reply: {reply[:80]!r}", reply)


def _unanswered(line: str, labels: Sequence[str]) -> str:
    """A line without the labelled answer that some models write after the question."""
    for found in re.finditer(rf"(?<!\W)(\W*+)(?=(?:{_any(labels)})[\s*_]*+[:：])", line, re.IGNORECASE):
        asked, between = line[: found.start()], found[1]
        if asked.endswith(_FINALS):
            return asked + (between[:1] if between[:1] in _DOTS else "")
        if (mark := min((place for one in _MARKS if (place := between.find(one)) >= 0), default=-1)) >= 0:
            return asked + between[: mark + 1]
    return line


def answer(reply: str, question: str, text: str, words: Words) -> str:
    """The first line that answers, or UNANSWERABLE. Raises ParseError where there is neither.

    What follows that line is the model's explanation, which was not asked for. A line that the text holds is an
    answer, also where it reads like a refusal.
    """
    lines = [_answering(line[:_LONGEST], question, words["labels"]) for line in _lines(_alone(reply))[:_MOST]]
    said = [line for line in lines if says(line)]
    if any(_is_word(line, words["unanswerable"]) for line in said):
        return UNANSWERABLE
    for position, line in enumerate(said, 1):
        if _announces(line, position < len(said)):
            continue
        if _explains(line, words["unanswerable"]):
            return UNANSWERABLE
        if _folded(line) in _folded(text):
            return line
        if any(_plain(part) in _plain(line) for part in words["declines"]):
            return UNANSWERABLE
        if _refuses(line, words["refusals"]):
            break
        return line
    raise ParseError(f"no answer in the reply: {reply[:80]!r}", reply)


def _answering(line: str, question: str, labels: Sequence[str]) -> str:
    """A line without bullet, label, quotes, final stop, and the question or `The answer is` before the answer."""
    before = ""
    line, asked = " ".join(line.split()), " ".join(question.split())
    while line != before:
        before = line
        line = _bare(_unlabelled(_bare(_DASH.sub("", line, count=1) if _DASH.match(line) else line), labels))
        if line[: len(asked)].casefold() == asked.casefold():
            line = line[len(asked) :].lstrip(" :：-–—>→")
        line = _OPENING.sub("", line, count=1) if _OPENING.match(line) else line
        line = line[:-1] if line.endswith(("。", "．")) or (line.endswith(".") and line.count(".") == 1) else line
    return line


def _unlabelled(line: str, labels: Sequence[str]) -> str:
    """A line without the `Answer:` before it."""
    label = re.match(rf"[\s*_#>]*(?:{_any(labels)})[\s*_]*[:：][\s*_]*", line, re.IGNORECASE)
    return line[label.end() :] if label else line


def _any(words: Sequence[str]) -> str:
    return "|".join(map(re.escape, words))


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


def _explains(line: str, words: Sequence[str]) -> bool:
    """Whether a line begins with such a word and goes on after a stop, or has the one that was asked for at an end."""
    core, wanted = _core(line), _core(words[0])
    rests = (core[len(word) :].lstrip() for word in map(_core, words) if core.startswith(word))
    begins = any(rest and not rest[0].isalnum() for rest in rests)
    return begins or core.startswith(wanted) or core.endswith(wanted)


def _refuses(line: str, beginnings: Sequence[str]) -> bool:
    return any(_plain(line).startswith(_plain(one)) for one in beginnings)


def _is_word(line: str, words: Sequence[str]) -> bool:
    return _core(line) in {_core(word) for word in words}


def _core(text: str) -> str:
    found = _CORE.search(_folded(text))
    return found[0] if found else ""


def _plain(text: str) -> str:
    """Letters and digits alone, in words."""
    return " ".join(re.sub(r"[\W_]+", " ", _folded(text).replace("'", "")).split())


def _folded(text: str) -> str:
    return " ".join(fold(text).casefold().replace("’", "'").split())


def says(text: str) -> bool:
    """Whether there is a letter or a digit."""
    return any(map(str.isalnum, text))
