"""Find out whether a reply repeats a score from the judged texts instead of giving one.

A judged text may say "Score: 5", and a judge may repeat that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from judge.core.errors import ParseError
from judge.core.label_spellings import fold
from judge.scoring.prose.patterns import NO_WORDS, Candidate, Patterns

_LONGEST_ECHO = 200
"""Characters up to a score that are compared with the judged texts."""
_LONGEST_GIVING = 60
"""Characters before a number in a judged text that may say it is a score."""
_ECHO_WORDS = 5
_OPENING_WORDS = 6
# "4", "4.5" and "four"
_TOKEN = re.compile(r"[0-9]++(?:\.[0-9]++)?|[^\W\d_]++")
# The words before a number if a text gives itself a score, in whatever way: "I give this text a".
_GIVES = re.compile(
    r"(?:\b(?:scores?|ratings?|grade|mark|verdict|answer|winner)\b|\b(?:give[sn]?|giving|rate[sd]?"
    r"|graded?|assign(?:s|ed)?|award(?:s|ed)?|gets?|receives?|receiving|earns?|earning"
    r"|deserves?|deserving|merits?|warrants?)\b"
    r"|점수|[총평별]점|평가|スコア|点数|[得評]点|評価|採点|得分|[总總]分|评分|評分|分数|分數|打分"
    r"|Bewertung|puntuaci[óo]n|calificaci[óo]n|оценка|คะแนน)"
    r"(?:[\s*_:=–\"'“”`(\[-]|\b(?:it|its|this|that|the|an?|my|summary|text|response|answer|of"
    r"|as|at|with|is|be|to|for|score|rating|grade|full|perfect|solid|only|just|therefore|결과"
    r"|는|은|를|로|이|는|は|を|が|に|为|為|是|它|其|我|这篇|摘要)\b"
    r"|[는은를로이は를を가が为為是它其给給打评])*+\Z",
    re.IGNORECASE,
)
# "给它打", "評価"
_GIVES_CJK = re.compile(r"[给給打评評得][^\s。.,，]{0,6}\Z")
# "[[", "boxed{", "<score>", "<|begin_of_box|>" right before a number
_GIVES_BY_MARK = re.compile(
    r"\[\[|boxed\{|begin_of_box\|>|<\w*(?:score|answer|rating)>\s*\Z"
)
# "4점", "4点" and "4分"
_UNIT_AT_END = re.compile(r"[점点分]\s*\Z")
_TOP_GROUPS = (
    "out_of", "full", "out_of_value", "full_value", "high_box", "high_before", "high_behind",
)  # fmt: skip
"""The groups of the scale's top beside a value."""
_SENTENCE_MARKS = tuple('*_.!?。！？)]"”」』`')
"""The end of the words before a score if the score is not their continuation."""


def gives(
    judged: str,
    label: str,
    patterns: Patterns,
    *,
    fractions: bool = False,
) -> bool:
    """Return whether a judged text seems to give itself a label as its score.

    `fractions`: also in "4/5" and "4점".
    """
    judged = fold(judged)
    for match in patterns.value.finditer(judged):
        if patterns.label_of(match) != label or not patterns.is_label(match["value"]):
            continue
        if fractions:
            has_top = any(match[group] for group in _TOP_GROUPS)
            if has_top or _UNIT_AT_END.search(match[0]):
                return True
        giving_start = max(0, match.start() - _LONGEST_GIVING)
        text_before = judged[giving_start : match.start()]
        if _GIVES.search(text_before) or _GIVES_CJK.search(text_before):
            return True
        if _GIVES_BY_MARK.search(text_before[-30:]):
            return True
    return False


def repeats(reply: str, judged: str) -> bool:
    """Return whether a reply ends with words of the judged texts, in their order.

    The reply is cut after its score, so that the score is one of these words.
    """
    judged_words = _words(fold(judged))
    reply_words = _words(fold(reply))
    if judged_words == reply_words:
        return True
    last = reply_words[-_ECHO_WORDS:]
    return len(last) == _ECHO_WORDS and _spaced(last) in _spaced(judged_words)


def _begins_like(reply: str, judged: str) -> bool:
    """Return whether the judged texts contain the first words of a reply, in their order."""
    first = _words(reply[:400])[:_OPENING_WORDS]
    return len(first) > 1 and _spaced(first) in _spaced(_words(judged))


def _words(text: str) -> list[str]:
    """Return the words and numbers of a folded text in lower case."""
    return _TOKEN.findall(text.casefold())


def _spaced(words: Sequence[str]) -> str:
    """Return the words with a space before and after each."""
    return " ".join(["", *words, ""])


def check_own(
    text: str,
    score: Candidate,
    patterns: Patterns,
    judged: str,
    *,
    is_only: bool,
) -> None:
    """Raise ParseError if a score may be repeated from the judged texts."""
    if score.evidence in ("opening", "alone"):
        has_words_after = text[score.end :].strip(NO_WORDS)
        has_words_before = re.search(r"\w", text[: score.start])
        if is_only and not has_words_after and not has_words_before:
            return  # nothing but the score
    echo_start = max(0, score.start - _LONGEST_ECHO)
    ending = text[echo_start : score.end]
    if score.evidence == "opening":
        is_repeated = _begins_like(text, judged)
    elif score.evidence == "alone":
        continues = _continues_judged(text, score, patterns, judged)
        is_repeated = continues or repeats(ending, judged)
    else:
        label = patterns.spellings.label(score.written)
        fractions = score.evidence != "named"
        is_repeated = False
        if label is not None and gives(judged, label, patterns, fractions=fractions):
            is_apart = _is_set_apart(text, score)
            is_repeated = not is_apart or repeats(ending, judged)
    if is_repeated:
        raise ParseError("a score that the judged text contains as well", text)


def _continues_judged(
    text: str,
    score: Candidate,
    patterns: Patterns,
    judged: str,
) -> bool:
    """Return whether a score alone may be the end of a sentence about the judged texts.

    "The text ends with\\n5" continues with a number of the text. Which of the scale's numbers it is
    makes no difference: if draws were refused by their label, the mean would be of a selection.
    """
    text_before = text[: score.start].rstrip(" \t*_(")
    is_sentence = text_before.rstrip()[-1:] in _SENTENCE_MARKS
    if is_sentence or text_before.endswith("\n\n"):
        return False
    # "### Score\n4": a heading is no beginning of a sentence.
    last_line = text_before.rstrip().rpartition("\n")[2]
    if text_before.endswith("\n") and patterns.forms.is_heading(last_line):
        return False
    numbers = patterns.value.finditer(judged)
    return any(patterns.label_of(number) is not None for number in numbers)


def _is_set_apart(text: str, score: Candidate) -> bool:
    """Return whether a score with its name has a line of its own after a whole sentence."""
    text_before, _, _ = text[: score.start].rpartition("\n")
    last_character = text_before.rstrip()[-1:]
    return score.evidence == "named" and last_character in _SENTENCE_MARKS
