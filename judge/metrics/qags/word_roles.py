"""Split a text into words with the role that each can have in a noun phrase.

Chinese, Japanese and Korean words come from the taggers of `judge.text.tokenizers`. Each tagger has
a function that maps its tags to roles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from judge.text.tokenizers import LOCK, TOOLS, Tool, load

Span = tuple[int, int]
"""Start and end of a phrase in its text, in characters."""
Role = Literal["noun", "time", "amount", "number", "unit", "suffix", "prefix", ""]
"""The role of a word in a noun phrase; "" for a word that is in none.

An amount is 3.5%; a unit follows a number; a time is 昨年 or 星期五.
"""
Words = list[tuple[Span, Role]]
# Characters tagged at once, because taggers take more than linear time.
_PIECE = 2_000
# Up to a sentence's end (`今日は晴れ。`) or a line's, or as many characters as are tagged at once
_PIECES = re.compile(rf"(?s:.{{1,{_PIECE - 1}}}[。！？.!?\n]|.{{1,{_PIECE}}})")
# `1,250`, `3.5%`, `$5`, `10:30`, `2/3`
_NUMBER = re.compile(r"[$£€¥￥₩]?\d+(?:[.,:/]\d+)*[%％]?")
# `年`, `A1` and `7`, but not `、` or `_`
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


def tag_words(tagger_name: str, clean: str) -> Words:
    """Return the words of a text with their spans and roles.

    A number with its points and signs is one word. The text has no lone surrogate and no NUL.
    Thread-safe. Raises MissingExtra.
    """
    number_spans = [match.span() for match in _NUMBER.finditer(clean)]
    words: Words = []
    index = 0
    for (start, end), role in _tagged_words(tagger_name, clean):
        # Numbers and words are both in the order of the text.
        while index < len(number_spans) and number_spans[index][1] <= start:
            index += 1
        number_span: Span | None = None
        if index < len(number_spans):
            number_start, number_end = number_spans[index]
            if number_start <= start and end <= number_end:
                number_span = number_spans[index]
        if number_span is None:
            words.append(((start, end), role))
        # The parts of a number, such as `3`, `.` and `5`, become one word.
        elif not words or words[-1][0] != number_span:
            words.append((number_span, _role_of_number(clean, number_span)))
    return words


def _tagged_words(tagger_name: str, clean: str) -> Words:
    """Return the words as the tagger cuts them, with their spans and roles."""
    tagger_tool(tagger_name)  # raises MissingExtra with the words of QAGS
    tagger = TAGGERS[tagger_name]
    tagged: Words = []
    position = 0
    with LOCK:
        is_chinese = tagger_name == "zh"
        analyse = import_module("rjieba").tag if is_chinese else load(tagger.tool)
        for piece in _PIECES.findall(clean):
            for surface, tags in analyse(piece):
                role = tagger.role(surface, tags)
                if tagger_name == "kiwi":
                    # Kiwi gives verbs in another form than the text has.
                    surface = piece[tags.start : tags.end]
                start = clean.find(surface, position) if surface else -1
                # A tagger may have changed the text: such a word has no span.
                if start < 0:
                    continue
                position = start + len(surface)
                if not _LETTER_OR_DIGIT.search(surface):
                    role = ""
                tagged.append(((start, position), role))
    return tagged


def tagger_tool(tagger_name: str) -> Tool:
    """Return the packages of a tagger. Raises MissingExtra if they are not installed."""
    tool = TOOLS[TAGGERS[tagger_name].tool]
    if not tool.installed:
        raise tool.missing(f"qags: the nouns of {tagger_name!r} need")
    return tool


def _role_of_number(clean: str, span: Span) -> Role:
    """Return "number", or "amount" for a number with a sign before or after it: `$5`, `3.5%`."""
    start, end = span
    if clean[start].isdigit() and clean[end - 1].isdigit():
        return "number"
    return "amount"


# Japanese: MeCab with IPADIC, and Sudachi

# `今朝`, `月曜`, `昨年`, `未明`
_JAPANESE_TIME = re.compile(
    "[曜日月年週朝昼夕夜晩午旬春夏秋冬]|未明|きのう|きょう|あした|あす"
)
_AFTER_A_TIME = {"前", "後", "末", "以前", "以降"}
_NOUNS_OF_IPADIC = {"一般", "サ変接続", "形容動詞語幹", "固有名詞"}
_SUFFIXES_OF_IPADIC = {"一般", "人名", "地域", "サ変接続", "副詞可能"}
# Nouns without a meaning of their own, such as the nominalizer `こと`
_EMPTY_NOUNS = {
    *("こと", "もの", "とき", "ところ", "ため"),
    *("よう", "わけ", "はず", "つもり", "うち"),
}
_ROLES_OF_SUDACHI_NOUNS: dict[str, Role] = {
    "普通名詞": "noun",
    "固有名詞": "noun",
    "数詞": "number",
}


def _role_of_adverbial_noun(surface: str) -> Role:
    """Return the role of a Japanese noun that may be an adverb.

    It is a time, the suffix of one (`前` of 二日前), or neither (今回, 以上).
    """
    if _JAPANESE_TIME.search(surface):
        return "time"
    return "suffix" if surface in _AFTER_A_TIME else ""


def _role_by_ipadic(surface: str, features: list[str]) -> Role:
    """Map the part of speech of IPADIC and its two subdivisions."""
    part_of_speech, detail, further = features[:3]
    if part_of_speech == "接頭詞":
        return "prefix" if detail in ("名詞接続", "数接続") else ""
    if part_of_speech != "名詞":
        return ""
    if detail == "数":
        return "number"
    if detail == "接尾":
        if further == "助数詞":
            return "unit"
        return "suffix" if further in _SUFFIXES_OF_IPADIC else ""
    if detail == "副詞可能":
        return _role_of_adverbial_noun(surface)
    return "noun" if detail in _NOUNS_OF_IPADIC else ""


def _role_by_sudachi(surface: str, tags: Sequence[str]) -> Role:
    """Map the part of speech of Sudachi and its two subdivisions."""
    part_of_speech, detail, further, *_ = tags
    if part_of_speech == "接尾辞" and detail == "名詞的":
        return "unit" if further == "助数詞" else "suffix"
    if part_of_speech == "接頭辞":
        return "prefix"
    if part_of_speech != "名詞":
        return ""
    if further == "副詞可能":
        return _role_of_adverbial_noun(surface)
    if surface in _EMPTY_NOUNS:
        return ""
    return _ROLES_OF_SUDACHI_NOUNS.get(detail, "")


# Korean: MeCab with its Korean dictionary, and Kiwi, which use the Sejong tags

_ROLES_OF_KOREAN_TAGS: dict[str, Role] = {
    "NNG": "noun",
    "NNP": "noun",
    "SL": "noun",
    "SN": "number",
    "NR": "number",
    "NNBC": "unit",
    "XSN": "suffix",
    "XPN": "prefix",
}
# Times that may not be tagged as nouns; all other times are.
_KOREAN_DAYS = {"그저께", "어제", "오늘", "내일", "모레"}


def _role_by_korean_tag(surface: str, tag: str) -> Role:
    """Map a Sejong tag. A word of several parts has their tags, and the first one counts."""
    if surface in _KOREAN_DAYS:
        return "time"
    # `NNG` of `NNG+JKS`
    first_tag = tag.partition("+")[0]
    return _ROLES_OF_KOREAN_TAGS.get(first_tag, "")


def _role_by_mecab_ko(surface: str, features: Sequence[str]) -> Role:
    return _role_by_korean_tag(surface, features[0])


def _role_by_kiwi(surface: str, token: Any) -> Role:
    # A dependent noun may be a unit, which Kiwi does not tag as one.
    if token.tag == "NNB":
        return "unit"
    return _role_by_korean_tag(surface, token.tag)


# Chinese: jieba

# `去年`, `周三`, `星期五`
_CHINESE_TIME = re.compile("[年月日号天周夜晨晚早午旬春夏秋冬节]|星期|礼拜")


def _role_by_jieba(surface: str, tag: str) -> Role:
    """Map jieba's tags.

    n… and vn are nouns, eng is other scripts, m a number, often with its measure, t a time.
    """
    if tag == "m":
        if surface.isnumeric():
            return "number"
        return "amount" if any(map(str.isnumeric, surface)) else "unit"
    if tag == "q":
        return "unit"
    if tag == "k":
        return "suffix"
    if tag == "t":
        return "time" if _CHINESE_TIME.search(surface) else ""
    is_noun = tag.startswith("n") or tag in ("vn", "eng", "j", "l")
    return "noun" if is_noun else ""


@dataclass(frozen=True, slots=True)
class Tagger:
    """A tagger: the name of its tool in `judge.text.tokenizers`, and the mapping of its tags.

    `role` takes a word and the word's tags in the tool's own form.
    """

    tool: str
    role: Callable[[str, Any], Role]


TAGGERS = {
    "ja": Tagger("ja", _role_by_ipadic),
    "ko": Tagger("ko", _role_by_mecab_ko),
    "zh": Tagger("zh-words", _role_by_jieba),
    "sudachi": Tagger("sudachi", _role_by_sudachi),
    "kiwi": Tagger("kiwi", _role_by_kiwi),
}
"""The tagger of each language, and two others by their own names."""
