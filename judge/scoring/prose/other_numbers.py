"""Find numbers beside a score that may be another score, or its scale.

"4 or 5", "4 - out of 10", but not "4, because it has 2 errors".
"""

from __future__ import annotations

import re

from judge.core.label_spellings import LabelIndex
from judge.scoring.prose.deductions import without_deductions

# "2件", "2개", "2个", "有2点", but not the rating of "별 2개" and "星2个"
_COUNTER = (
    r"(?:(?<=[有共][0-9])[点點]"
    r"|(?<!별[0-9])(?<!별\s[0-9])(?<!星[0-9])"
    r"(?:[日天年月人名件句文回処处處個个](?!星)|[箇か]所|つの|つ(?=あ)|[개명일년월건곳번]|가지|문장))"
)
# "4", but not in "4%", "1/4" or "10:04". In "2 errors" and "2 of 3 names", `counts` says that it
# counts something.
_NUMBER = re.compile(
    r"(?<![\w.,/:-])[0-9]++(?:\.[0-9]++)?(?![\w%/-]|[.,:][0-9])"
    r"(?P<counts>\s++(?!(?:or|out|of|to|and|points?|stars?|would|is|if|on|at|as|in"
    r"|for)\b)[^\W\d_]{3,}"
    r"|\s++(?:out\s++)?of\s++(?:the\s++)?[0-9]++\s++(?!points?|stars?)[^\W\d_]{3,}"
    rf"|{_COUNTER})?",
    re.ASCII | re.IGNORECASE,
)
# The end of a scale: "10", "ten", "十", "열"
_END_OF_SCALE = (
    r"(?:[0-9]+|(?:one|two|three|four|five|six|seven|eight|nine|ten|hundred)\b"
    r"|[一二三四五六七八九十百]+|다섯|일곱|열|[오칠십백])"
)
# What states a scale beside a score: "out of 10", "on a scale of one to ten", "a 10-point scale",
# "sur une échelle de 1 à 10", "5が最高"
_STATED_SCALE = re.compile(
    r"\A\W*(?:(?:out )?(?:of|from)|sur|von|de|su|из) (?:a possible )?(?P<top>END)"
    r"|\b(?:échelle|skala|escala|scala|schaal|шкал\w)(?: (?:de|von|del|da|van|от|di|av))?"
    r"(?: (?P<low_abroad>END) ?(?:à|a|al|bis|tot|до|-|–))? ?(?P<high_abroad>END)"
    r"|\b(?:scale|range)(?: is|:)?(?: of| from)? (?P<low>END) ?(?:to|-|–) ?(?P<high>END)"
    r"|\b(?P<low_before>END) ?(?:to|-|–) ?(?P<high_before>END) scale"
    r"|\b(?P<points>END)[- ]points?(?: likert)? scale"
    r"|(?:満点|满分|滿分|만점)(?:は|[은는이]|[为為是])? ?:?(?P<full>END)(?=[점点分]|\W|\Z)"
    r"|(?P<full_before>END) ?[점点分]? ?(?:満点|满分|滿分|만점)"
    # "4分（总分5分）", only in brackets: "语法4分，总分5分" gives a total score.
    r"|\A\W*?\((?:总分|總分|총점) ?[为為是:]? ?(?P<total>END) ?[점分]?(?=\))"
    r"|(?P<chinese>END)分制"
    r"|(?P<best>END) ?[点점分]?(?:[が이가은는为為是=]| (?:is|being)(?: the)?)? ?"
    r"(?:最[高大]|최[고대]|highest|best|max(?:imum)?)(?:[点점分]|(?!\w))"
    r"|\b(?:highest|best|max(?:imum)?)(?: (?:is|of|score))*+:? ?(?P<best_before>END)"
    r"|(?:最[高大]|최[고대])[点점分]?[はが은는이为為是]? ?:?(?P<best_first>END)"
    r"|(?P<low_worst>END) ?[点점分]?(?:[が이가은는为為是=]| (?:is|being)(?: the)?)? ?"
    r"(?:最[低小]|최[저소]|lowest|worst|min(?:imum)?)(?:[点점分]|(?!\w))".replace(
        "END", _END_OF_SCALE
    ),
    re.IGNORECASE,
)
# "(confidence: 2)": no other score, unless that is the criterion
_CONFIDENCE = re.compile(
    r"(?:confidence|certainty|確信度|信頼度|확신도|신뢰도|置信度|信心)(?:[ _](?:score|level))?"
    r"\s*[:=]?\s*[0-9]+(?:\.[0-9]+)?",
    re.IGNORECASE,
)
# ", not 4", but not ", not 4 but 3"
_DENIED_NUMBER = re.compile(
    r",\snot\s(?:an?\s)?(?P<number>[0-9]+(?:\.[0-9]+)?)\W*\Z", re.IGNORECASE
)
# "4 or 5", "4이나 5"
_OR = re.compile(
    r"\W*[점点分]?\s*(?:이나|또는|혹은|か|または|或者?|や|~|から|에서|or|to)\s*(?:an?\s+)?"
    r"(?:[0-9]|one|two|three|four|five|six|seven|eight|nine|ten)",
    re.IGNORECASE,
)
# The same before the score: "3 or 4"
_OR_BEFORE = re.compile(
    r"(?:[0-9]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten))"
    r"\W*[점点分點]?\s*(?:이나|나|또는|혹은|か|または|或者?|还是|還是|や|~|から|에서|or|to)\s*(?:an?\s*)?\Z",
    re.IGNORECASE,
)


_LONGEST_OR = 40
"""Characters before a score that may be a number and "or"."""


def mentions_another(
    sentence: str,
    match: re.Match[str],
    spellings: LabelIndex,
    title: re.Pattern[str],
) -> bool:
    """Return whether a number beside a score may be another score.

    False for "4, because it has 2 errors", "4点（1点減点）", "4 (confidence: 2)" and "4, not 3". True for
    a score on another scale: "4 - out of 10".
    """
    if _states_another_scale(sentence[match.end() :], spellings):
        return True
    rest = without_scale(sentence[match.end() :])
    rest = without_deductions(rest)
    confidence = _CONFIDENCE.search(rest)
    if confidence and not title.search(confidence[0]):
        rest = rest[: confidence.start()] + rest[confidence.end() :]
    label = spellings.label(match["value"])
    denied = _DENIED_NUMBER.search(rest)
    if denied:
        if spellings.label(denied["number"]) == label:
            return True
        rest = rest[: denied.start()]
    for number in _NUMBER.finditer(rest):
        if not number["counts"] and spellings.label(number[0]) not in (None, label):
            return True
    if _OR.match(sentence, match.end("value")):
        return True
    return _OR_BEFORE.search(sentence[: match.start("value")]) is not None


def ends_with_or(text_before: str) -> bool:
    """Return whether a text ends with a number and "or" or "to", before another one: "3 to"."""
    return _OR_BEFORE.search(text_before[-_LONGEST_OR:]) is not None


def without_scale(rest: str) -> str:
    """Return what follows a score without the scale that it states."""
    return _STATED_SCALE.sub("", rest)


def _states_another_scale(rest: str, spellings: LabelIndex) -> bool:
    """Return whether the rest of a sentence states a scale with other ends."""
    bottom, top = spellings.ends
    if top is None:
        return False
    for stated in _STATED_SCALE.finditer(rest):
        for name, number in stated.groupdict().items():
            if not number:
                continue
            end = bottom if name.startswith("low") else top
            if spellings.label(number) != end:
                return True
    return False
