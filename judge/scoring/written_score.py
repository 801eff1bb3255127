"""Turn the text of a score into a label of the scale."""

from __future__ import annotations

import re
from dataclasses import dataclass

from judge.core.errors import ParseError
from judge.core.label_spellings import LabelIndex
from judge.core.records import Reading
from judge.scoring.grammar import Grammar
from judge.scoring.quotes import FoldedText, fold_with_positions, is_quoted


@dataclass(frozen=True, slots=True)
class ParsedScore:
    """A score in a reply.

    `text[start:end]` is the score as written, `label` its spelling in the scale. `reason` is the
    judge's reason, None if it gave none. `quote` is the sentence that it cites, if the prompt
    requests one.
    """

    label: str
    start: int
    end: int
    reason: str | None = None
    reading: Reading = "strict"
    quote: str | None = None


class NotInForm(ParseError):
    """The reply holds nothing in the requested form."""


QUOTED = "the score is inside quotation marks"
_QUOTE = re.compile("[`\"'“”‘’「」『』]")
_QUOTE_MARK = re.compile("[\"'“”‘’「」『』]")
# "\n```" at the end
_EMPTY_FENCE = re.compile(r"\n\s*```\s*\Z")
# "`Score: ", "- **`Score: ", and a fence in a line of its own: "```text"
_BEGINS_CODE = re.compile(r"[\s*_-]*+(?:`[^`]|```\w*+\s*\n)")
_SENTENCE_ENDS = ".!?。！？"
# Beginnings of the names of a grammar's groups that hold an end of the scale
_GROUPS_OF_ENDS = ("low", "high", "out_of", "full")
# The key of a JSON member up to its value: `{"score": "`
_MEMBER = re.compile(r'(?:\s*```\w*)?[\s{]*"[^"]*"\s*:\s*"?')


def score_alone(
    text: str,
    start: int,
    end: int,
    grammar: Grammar,
    *,
    quoted: bool = True,
) -> ParsedScore:
    """Return the score in `text[start:end]`, which must hold nothing else; it may be `quoted`.

    Raises ParseError.
    """
    piece = text[start:end]
    bare = piece.strip()
    start += piece.find(bare)
    if len(bare) > grammar.longest:
        raise NotInForm(
            f"not a score alone but {len(bare)} characters; expected one of {grammar.expected}",
            text,
            start,
        )
    folded = fold_with_positions(bare, start)
    core = folded.text.strip()
    labels = grammar.spellings.labels
    # Most replies are a label and nothing else, for which no pattern is needed.
    key = grammar.spellings.key(core)
    label = labels.get(core) or labels.get(key)
    if label:
        first = folded.text.find(core)
        last = first + len(core) - 1
        return ParsedScore(label, folded.starts[first], folded.ends[last])
    match = grammar.alone.match(folded.text)
    word_before = ""
    if match is not None:
        word_before = match.groupdict().get("word") or ""
    # In "No: 4", the one word before the colon is a label itself.
    if match is None or grammar.spellings.label(word_before):
        problem = f"not a score alone; expected one of {grammar.expected}"
        raise NotInForm(problem, text, start)
    if not quoted:
        check_unquoted("", match, text)
    elif _quotes_name(match, grammar):
        raise ParseError(QUOTED, text)
    return score_of_match(match, grammar, text, folded)


def score_of_match(
    match: re.Match[str],
    grammar: Grammar,
    text: str,
    folded: FoldedText,
) -> ParsedScore:
    """Return the score of a match in the folded text. Raises ParseError like `label_of_match`."""
    start = folded.starts[match.start("value")]
    end = folded.ends[match.end("value") - 1]
    spellings = grammar.spellings
    label = label_of_match(match, spellings, (start, end), text, grammar.expected)
    return ParsedScore(label, start, end)


def label_of_match(
    match: re.Match[str],
    spellings: LabelIndex,
    span: tuple[int, int],
    text: str,
    expected: str,
) -> str:
    """Return the label of a match, whose value is at `span` of the text.

    Raises ParseError if the value, or the scale stated beside it, is off the scale.
    """
    written = match["value"]
    _check_stated_ends(match, spellings, text, expected)
    label = spellings.label(written)
    start, end = span
    # Folding makes "4,5" of "4，5", which is a list of two numbers and no decimal.
    is_list = "," in written and "," not in text[start:end]
    if label is None or is_list:
        hint = _step_hint(written, spellings, is_off_scale=label is None)
        raise ParseError(f"{written} is off the scale ({expected}){hint}", text, start)
    return label


def _check_stated_ends(
    match: re.Match[str],
    spellings: LabelIndex,
    text: str,
    expected: str,
) -> None:
    """Raise ParseError if the ends of a scale that a match states are not those of this scale."""
    low, high = spellings.ends
    for group, stated in match.groupdict().items():
        # "on a scale of 1 to 5: 4" has the groups `low` and `high`, "4/5" has `out_of_…`.
        if stated is None or not group.startswith(_GROUPS_OF_ENDS):
            continue
        end = low if group.startswith("low") else high
        label = spellings.label(stated)
        # A scale without numbers has no ends (None), so no stated end is right.
        if label is None or label != end:
            raise ParseError(
                f"{match['value']} out of {stated} is off the scale ({expected})", text
            )


def _step_hint(written: str, spellings: LabelIndex, *, is_off_scale: bool) -> str:
    """Return advice for a number between two labels: how a scale allows it; "" for another one."""
    if spellings.is_half(written):
        return "; half points are not allowed without `allow_half: true` or `step: 0.5`"
    step = spellings.missing_step(written) if is_off_scale else ""
    if not step:
        return ""
    low, high = spellings.ends
    scale = f"`scale: {{min: {low}, max: {high}, step: {step}}}`"
    return f"; for scores between them, round to a step: {scale}"


def check_unquoted(before: str, match: re.Match[str], text: str) -> None:
    """Raise ParseError if a score is inside quotation marks, or in a quoted line.

    The quotation may begin in the match or `before` it. Marks around the name alone, or a backtick
    on both sides of the value or of the whole line, do not quote the score.
    """
    head = match.string[match.start() : match.start("value")]
    tail = match.string[match.end("value") :]
    is_member = _MEMBER.fullmatch(head) is not None
    if is_member:
        # The marks of the key are JSON's. Only one right before the value remains.
        head = head[len(head.rstrip('"')) :]
        tail = tail.replace("```", "")
    elif (before + head).count("```") % 2 == 0:
        # The fences before the value are all closed, so they are no marks around it.
        head = head.replace("```", "")
        # A fence that opens behind the value and holds nothing was meant to close.
        tail = _EMPTY_FENCE.sub("", tail)
    if _is_code_line(before, head, tail):
        head = head.replace("`", "")
        tail = tail.replace("`", "")
    elif head[-1:] == tail[:1] and (is_member or head.endswith("`")):
        head = head[:-1]
        tail = tail[1:]
    if is_quoted(before, f"{before}{head}"):
        raise ParseError(QUOTED, text)
    if len(_QUOTE.findall(head)) % 2 or _QUOTE.search(tail):
        raise ParseError(QUOTED, text)


def _is_code_line(before: str, head: str, tail: str) -> bool:
    """Return whether backticks or a fence surround a whole line, as in prompts.

    "It is clear.\\n`Score: 4`"

    Not after words that may introduce a quotation: "The text says:".
    """
    if not _BEGINS_CODE.match(head):
        return False
    words_before = before.rstrip()
    if words_before and words_before[-1] not in _SENTENCE_ENDS:
        return False
    space_before = before[len(words_before) :]
    if before and "\n" not in space_before and not head.startswith("\n"):
        return False
    n_marks = head.count("`")
    is_closed = n_marks in (1, 3) and tail.count("`") == n_marks
    return is_closed and before.count("`") % 2 == 0


def _quotes_name(match: re.Match[str], grammar: Grammar) -> bool:
    """Return whether one quotation has both a score and its name.

    True for “Score: 4”, but not for "4" or "score": "4".
    """
    head = match.string[match.start() : match.start("value")]
    if _MEMBER.fullmatch(head) or not grammar.name.search(head):
        return False
    opening = head.lstrip(" \t\n*_([")[:1]
    if not _QUOTE_MARK.match(opening):
        return False
    # An even number: the marks around the name are closed again before the value.
    return len(_QUOTE_MARK.findall(head)) % 2 == 1
