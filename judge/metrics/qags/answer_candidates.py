"""Find the themes of a text: its noun phrases, names, times and amounts.

English goes by a spaCy model; Chinese, Japanese and Korean go by the tools of
`judge.text.tokenizers`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Literal
from unicodedata import normalize

from judge import text
from judge.core.errors import ConfigError, MissingExtra
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import fold, whole
from judge.metrics.base import ModelError
from judge.text.tokenizers import LOCK, TOOLS, Tool, load

Span = tuple[int, int]
"""Start and end of a phrase in its text, in characters."""
Part = Literal["noun", "time", "amount", "number", "unit", "suffix", "prefix", ""]
"""The role of a word in a noun phrase.

An amount is 3.5%; a unit follows a number; a time is 昨年 or 星期五.
"""
Words = list[tuple[Span, Part]]
_PIECE = 2_000  # characters tagged at once: taggers take more than linear time


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
        is_outside = True
        if index < len(number_spans):
            number_start, number_end = number_spans[index]
            is_outside = start < number_start or end > number_end
        if is_outside:
            words.append(((start, end), role))
            continue
        number_span = number_spans[index]
        # The parts of a number, such as `3`, `.` and `5`, become one word.
        if not words or words[-1][0] != number_span:
            words.append((number_span, _role_of_number(clean, number_span)))
    return words


def _tagged_words(tagger_name: str, clean: str) -> Words:
    """Return the words as the tagger cuts them, with their spans and roles."""
    tagged: Words = []
    position = 0
    with LOCK:
        _tool(tagger_name)
        tool, role = _TAGGERS[tagger_name]
        analyse = import_module("rjieba").tag if tagger_name == "zh" else load(tool)
        for piece in _PIECES(clean):
            for surface, tags in analyse(piece):
                part = role(surface, tags)
                if tagger_name == "kiwi":  # whose forms of verbs are not as written
                    surface = piece[tags.start : tags.end]
                start = clean.find(surface, position) if surface else -1
                if start < 0:  # a tagger may have changed the text
                    continue
                position = start + len(surface)
                tag = part if _WITH_LETTER(surface) else ""
                tagged.append(((start, position), tag))
    return tagged


def _role_of_number(clean: str, span: Span) -> Part:
    """Return "number", or "amount" for a number with a sign before or after it: `$5`, `3.5%`."""
    start, end = span
    if clean[start].isdigit() and clean[end - 1].isdigit():
        return "number"
    return "amount"


# `1,250`, `3.5%`, `$5`, `10:30`, `2/3`
_NUMBER = re.compile(r"[$£€¥￥₩]?\d+(?:[.,:/]\d+)*[%％]?")
# Up to a sentence's end (`今日は晴れ。`) or a line's, or as many characters as are tagged at once
_PIECES = re.compile(rf"(?s:.{{1,{_PIECE - 1}}}[。！？.!?\n]|.{{1,{_PIECE}}})").findall
# `年`, `A1` and `7`, but not `、` or `_`
_WITH_LETTER = re.compile(r"[^\W_]").search


# `今朝`, `月曜`, `昨年`, `未明`
_TIME = re.compile("[曜日月年週朝昼夕夜晩午旬春夏秋冬]|未明|きのう|きょう|あした|あす").search
_RELATIVE = {"前", "後", "末", "以前", "以降"}


def _adverbial(surface: str) -> Part:
    """Return the role of a Japanese noun that may be an adverb.

    It is time, suffix of one (二日前) or none (今回, 以上).
    """
    if _TIME(surface):
        return "time"
    return "suffix" if surface in _RELATIVE else ""


_NOUNS_OF_IPADIC = {"一般", "サ変接続", "形容動詞語幹", "固有名詞"}
_SUFFIXES_OF_IPADIC = {"一般", "人名", "地域", "サ変接続", "副詞可能"}


def _ipadic(surface: str, features: list[str]) -> Part:
    kind, detail, further = features[:3]
    if kind == "接頭詞":
        return "prefix" if detail in ("名詞接続", "数接続") else ""
    if kind != "名詞":
        return ""
    if detail == "数":
        return "number"
    if detail == "接尾":
        if further == "助数詞":
            return "unit"
        return "suffix" if further in _SUFFIXES_OF_IPADIC else ""
    if detail == "副詞可能":
        return _adverbial(surface)
    return "noun" if detail in _NOUNS_OF_IPADIC else ""


_BY_KOREAN: dict[str, Part] = {
    "NNG": "noun",
    "NNP": "noun",
    "SL": "noun",
    "SN": "number",
    "NR": "number",
    "NNBC": "unit",
    "XSN": "suffix",
    "XPN": "prefix",
    "NNB": "",
}
_BY_KOREAN |= {"NNBC": "unit", "XSN": "suffix", "XPN": "prefix", "NNB": ""}

_KOREAN_DAYS = {"그저께", "어제", "오늘", "내일", "모레"}  # the other times are nouns


def _korean(surface: str, tag: str) -> Part:
    if surface in _KOREAN_DAYS:
        return "time"
    # A word of several parts has their tags: the first of `NNG+JKS` counts.
    return _BY_KOREAN.get(tag.partition("+")[0], "")


# `去年`, `周三`, `星期五`
_CHINESE_TIME = re.compile("[年月日号天周夜晨晚早午旬春夏秋冬节]|星期|礼拜").search


def _chinese(surface: str, kind: str) -> Part:
    """Map jieba's tags.

    n… and vn are nouns, eng is other scripts, m a number, often with its measure, t a time.
    """
    if kind == "m":
        if surface.isnumeric():
            return "number"
        return "amount" if any(map(str.isnumeric, surface)) else "unit"
    if kind == "q":
        return "unit"
    if kind == "k":
        return "suffix"
    if kind == "t":
        return "time" if _CHINESE_TIME(surface) else ""
    is_noun = kind.startswith("n") or kind in ("vn", "eng", "j", "l")
    return "noun" if is_noun else ""


_EMPTY_NOUNS = {"こと", "もの", "とき", "ところ", "ため", "よう", "わけ", "はず", "つもり", "うち"}
_BY_SUDACHI: dict[str, Part] = {"普通名詞": "noun", "固有名詞": "noun", "数詞": "number"}


def _sudachi(surface: str, tags: Sequence[str]) -> Part:
    kind, detail, further, *_ = tags
    if kind == "接尾辞" and detail == "名詞的":
        return "unit" if further == "助数詞" else "suffix"
    if kind == "接頭辞":
        return "prefix"
    if kind != "名詞":
        return ""
    if further == "副詞可能":
        return _adverbial(surface)
    if surface in _EMPTY_NOUNS:
        return ""
    return _BY_SUDACHI.get(detail, "")


_TAGGERS: dict[str, tuple[str, Callable[[str, Any], Part]]] = {
    "ja": ("ja", _ipadic),
    "ko": ("ko", lambda surface, features: _korean(surface, features[0])),
    "zh": ("zh-words", _chinese),
    "sudachi": ("sudachi", _sudachi),
    # A dependent noun may be a unit.
    "kiwi": (
        "kiwi",
        lambda form, token: "unit" if token.tag == "NNB" else _korean(form, token.tag),
    ),
}
"""The tokenizer of each language or name, and a function that maps its tags to a word's role."""


def _tool(tagger_name: str) -> Tool:
    """Return the packages of a tagger. Raises MissingExtra if they are not installed."""
    tool = TOOLS[_TAGGERS[tagger_name][0]]
    if not tool.installed:
        raise tool.missing(f"qags: the nouns of {tagger_name!r} need")
    return tool


NOUNS = ("nouns", *_TAGGERS)
"""Names of the finders: by each text's language, of one language, two other taggers.

`spacy:MODEL` also works.
"""
SPACY = "spacy:"
_ENGLISH = ("en_core_web_trf", "en_core_web_lg", "en_core_web_md", "en_core_web_sm")
_SPACED = ("ko", "kiwi")  # taggers for text with white space inside compounds
_SHORT = 20  # longest text, in characters, whose language may follow from the other texts


class Nouns:
    """Finds noun phrases as themes, by each text's language or with the finder `tool`.

    English uses the largest installed en_core_web model of spaCy. With `compounds`, consecutive
    nouns are one theme (入学試験, with prefixes, suffixes and numbers); otherwise each noun is one,
    without amounts. English phrases are the same either way. Raises ConfigError for an unknown name
    or a missing spaCy model, and MissingExtra.
    """

    def __init__(self, tool: str = "nouns", *, compounds: bool = True) -> None:
        if tool not in NOUNS and not tool.startswith(SPACY):
            raise ConfigError(unknown_name_message("themes", tool, [*NOUNS, f"{SPACY}MODEL"]))
        self._tool = None if tool == "nouns" else tool
        models = _ENGLISH if find_spec("spacy") else ()
        installed = [SPACY + model for model in models if find_spec(model)]
        self._english = installed[0] if installed else ""
        self._compounds = compounds
        self._used: set[str] = set()
        self._cache: dict[tuple[str, str], list[Span]] = {}
        self.signature  # noqa: B018 - raises if packages are missing

    def check(self, outputs: Sequence[str]) -> None:
        """Raise MissingExtra if an English text needs a spaCy model that is not installed."""
        if self._tool or self._english:
            return
        for output, language in zip(outputs, languages(outputs), strict=True):
            if not output.strip() or language != "en":
                continue
            # A text that English's finder refuses needs no model; see `themes`.
            if not text.is_cjk(output) and not is_other_language(output):
                raise MissingExtra(_no_english())

    def themes(self, outputs: Sequence[str]) -> list[list[str] | ModelError]:
        """Return each text's themes in order of appearance, each once, ignoring case.

        A text in a script or language without a finder gives a ModelError. Raises MissingExtra if a
        tagger's packages are missing, ConfigError if a spaCy model cannot be loaded.
        """
        results: list[list[str] | ModelError] = []
        for output, language in zip(outputs, languages(outputs), strict=True):
            # "en" stands for all scripts and languages that are not detected.
            if self._tool is None and language == "en":
                if text.is_cjk(output):
                    results.append(_NO_FINDER)
                    continue
                if is_other_language(output):
                    results.append(_NOT_ENGLISH)
                    continue
            cleaned = clean(output)
            phrases: dict[str, str] = {}
            for start, end in self.spans(cleaned, language):
                phrase = cleaned[start:end]
                phrases.setdefault(fold(phrase).casefold(), phrase)
            results.append(list(phrases.values()))
        return results

    def spans(self, clean: str, language: str) -> list[Span]:
        """Return the places of the themes in a cleaned text, in order; results are cached."""
        finder_name = self._tool or (self._english if language == "en" else language)
        if not finder_name:
            raise MissingExtra(_no_english())
        self._used.add(finder_name)
        if (clean, finder_name) not in self._cache:
            self._cache[clean, finder_name] = self._find_spans(clean, finder_name)
        return self._cache[clean, finder_name]

    def _find_spans(self, clean: str, finder_name: str) -> list[Span]:
        if finder_name.startswith(SPACY):
            return _by_spacy(_spacy(finder_name), clean, self._compounds)
        words = tag_words(finder_name, clean)
        if self._compounds:
            return list(_compound_spans(clean, words, finder_name in _SPACED))
        return [span for span, part in words if part in ("noun", "time")]

    @property
    def signature(self) -> str:
        """The finders used so far, with their versions."""
        signatures: list[str] = []
        names = {self._tool} if self._tool else self._used
        for finder_name in sorted(names):
            if finder_name.startswith(SPACY):
                meta = _spacy(finder_name).meta
                name_and_version = f"{meta['name']}{meta['version']}"
                signatures.append(f"spacy-{meta['lang']}_{name_and_version}")
            else:
                # The versions of the packages decide the results.
                packages = [package + version(package) for package in _tool(finder_name).packages]
                signatures.append("-".join([finder_name, *packages]))
        signature = "+".join(signatures) or "nouns"
        return signature if self._compounds else f"{signature}-single"


_NO_FINDER = ModelError(
    "NoNounFinder",
    "is in a script without a noun finder of its own: "
    "name a spaCy model (themes=spacy:MODEL), or backend=llm",
)
_NOT_ENGLISH = ModelError(
    "NotEnglish",
    "seems not to be English: name a spaCy model of its language "
    "(themes=spacy:fr_core_news_sm), or backend=llm; "
    "themes=spacy:en_core_web_sm if it is English",
)


def _no_english() -> str:
    return (
        "qags: the nouns of English texts need spaCy and a model: pip install spacy, then python "
        "-m spacy download en_core_web_sm; or name another with "
        f"{option('set', {'qags': {'themes': 'spacy:MODEL'}})}, or leave out qags.backend to ask "
        "the judge"
    )


def clean(original: str) -> str:
    """Remove what some taggers cannot process.

    This is lone surrogates, NUL, and letters in parts, such as the jamo of NFD.
    """
    return normalize("NFC", whole(original).replace("\0", " "))


def languages(texts: Sequence[str]) -> list[str]:
    """Return the language of each text.

    A short text in Han characters is Japanese if most texts are.
    """
    language_of_all = text.detect_language(texts)
    detected = [text.detect_language([passage]) for passage in texts]
    if language_of_all != "ja":
        return detected
    of_each: list[str] = []
    for passage, language in zip(texts, detected, strict=True):
        # A short Japanese text may have no kana.
        is_japanese = language == "zh" and len(passage) <= _SHORT
        of_each.append("ja" if is_japanese else language)
    return of_each


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def is_other_language(passage: str) -> bool:
    """Return whether a text in Latin script is not English.

    It then has at least 8 words, none of them common only in English, and two different ones that
    are common in other languages or have a letter with a diacritic.
    """
    words = [match[0].lower() for match in _WORD.finditer(passage)]
    if len(words) < _MIN_WORDS or not _COMMON_IN_ENGLISH.isdisjoint(words):
        return False
    foreign = {word for word in words if word in _COMMON_ELSEWHERE or not word.isascii()}
    return len(foreign) > 1


# `U.S.`, `well-known`, `O'Brien`, `R&D`; `does` of `doesn't`, `John` of `John's`
_WORD = re.compile(
    r"(?:[^\W\d_]\.){2,}"
    r"|[^\W\d_](?:(?!n['’]t\b)[\w-])*(?:['’](?!(?:s|m|re|ve|ll|d|t)\b)\w+|[&-]\w+)*"
)
_MIN_WORDS = 8
_COMMON_IN_ENGLISH = _set(
    "the and that this these with from his her he she they their its it you your our my we were "
    "not been has have would could which who what when into about after said says will if than "
    "more"
)
_COMMON_ELSEWHERE = _set(  # but van, de, la and others that are in names
    "der die das und ist nicht ein eine einen auf dem zu im sich dass les des un une et est dans "
    "que qui sur pour par en una con por para se su lo gli che della não um uma em com na het "
    "een voor niet op aan att det som på är og til af ikke nie się bir"
)


# From words to phrases


def _compound_spans(clean: str, words: Words, spaced: bool) -> Iterator[Span]:
    """Yield runs of words that have a noun or an amount, or a number with what it counts."""
    for run in _runs(clean, words, spaced):
        # A suffix needs a word before it, and a prefix one behind it.
        while run and run[0][1] in ("suffix", "unit"):
            run = run[1:]
        while run and run[-1][1] == "prefix":
            run = run[:-1]
        parts = {part for _, part in run}
        has_noun = bool(parts & {"noun", "time", "amount"})
        has_counted_number = "number" in parts and bool(parts & {"unit", "suffix"})
        if has_noun or has_counted_number:
            start = run[0][0][0]
            end = run[-1][0][1]
            yield start, end


def _runs(clean: str, words: Words, spaced: bool) -> list[Words]:
    """Return runs of words that may be in one compound. Words without a role separate them."""
    runs: list[Words] = [[]]
    for span, part in words:
        last_run = runs[-1]
        if last_run:
            continues = part and _continues_compound(last_run[-1], (span, part), clean, spaced)
            if not continues:
                runs.append([])
        if part:
            runs[-1].append((span, part))
    return runs


# `7月`, `午後3時` from its number, `10:30点`
_CLOCK = re.compile(r"[\d〇一二三四五六七八九十:]+[年月日号時时点]").match


def _continues_compound(
    last: tuple[Span, Part],
    word: tuple[Span, Part],
    clean: str,
    spaced: bool,
) -> bool:
    """Return whether two consecutive words are in one compound."""
    (_, last_end), role_before = last
    (start, _), part = word
    between = clean[last_end:start]
    if between:
        if not spaced or between != " ":
            return False
        return role_before in ("noun", "suffix") and part in ("noun", "prefix")
    if role_before == "time":  # 昨年七月, 午後3時; not 昨日東京, 今年3人
        if part in ("time", "suffix"):
            return True
        return part in ("number", "amount") and bool(_CLOCK(clean, start))
    if part in ("unit", "time"):  # 12月末; not 村民昨天
        return role_before in ("number", "amount", "unit", "prefix")
    return not (part in ("noun", "prefix") and role_before in ("unit", "amount"))


@cache
def _spacy(finder_name: str) -> Any:
    """Load the spaCy pipeline of `spacy:MODEL`."""
    model = finder_name.removeprefix(SPACY)
    try:
        spacy = import_module("spacy")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"qags: {finder_name} needs the package {error.name or 'spacy'}: pip install spacy"
        ) from error
    try:
        return spacy.load(model)
    except (OSError, ImportError, ValueError) as error:
        raise ConfigError(
            f"qags: spaCy cannot load the model {model!r}: name one that is installed "
            f"(python -m spacy download {model}, or pip install its package): {error}"
        ) from error


def _by_spacy(nlp: Any, clean: str, compounds: bool) -> list[Span]:
    """Return noun chunks without determiners, and entities; of two that overlap the longer one.

    Consecutive nouns replace chunks in Chinese, Japanese and Korean, and if the pipeline has no
    parser or no chunks.
    """
    with LOCK:
        doc = nlp(clean[: nlp.max_length])
    noun_tokens = [token for token in doc if token.pos_ in ("NOUN", "PROPN")]
    nouns = [(token.i, token.i + 1) for token in noun_tokens]
    if not compounds:
        return [_character_span(doc, span) for span in nouns]
    entities = [(entity.start, entity.end) for entity in doc.ents]
    phrases: set[Span] = set()
    for span in (*(_noun_chunks(nlp, doc) or _joined(nouns)), *entities):
        trimmed = _without_function_words(doc, span)
        if trimmed:
            phrases.add(trimmed)
    chosen: list[Span] = []
    for start, end in sorted(phrases, key=lambda span: (span[0] - span[1], span)):  # longest first
        if all(end <= longer[0] or start >= longer[1] for longer in chosen):
            chosen.append((start, end))
    return [_character_span(doc, span) for span in sorted(chosen)]


def _noun_chunks(nlp: Any, doc: Any) -> list[Span]:
    """Return the noun chunks in tokens, or none for the languages of the taggers."""
    if nlp.lang in _TAGGERS:
        return []
    try:
        return [(chunk.start, chunk.end) for chunk in doc.noun_chunks]
    except (NotImplementedError, ValueError):  # no chunks of this language; no parser
        return []


def _joined(nouns: Sequence[Span]) -> list[Span]:
    """Return consecutive nouns as one phrase."""
    phrases: list[Span] = []
    for start, end in nouns:
        if phrases and phrases[-1][1] == start:
            first_start, _ = phrases[-1]
            phrases[-1] = (first_start, end)
        else:
            phrases.append((start, end))
    return phrases


def _without_function_words(doc: Any, span: Span) -> Span | None:
    """Remove determiners and the like from both ends. Nothing is left of a chunk such as `they`."""
    start, end = span
    while start < end and doc[start].pos_ in ("DET", "PRON", "PUNCT", "SPACE", "PART"):
        start += 1
    while start < end and doc[end - 1].pos_ in ("PUNCT", "SPACE", "PART", "PRON"):
        end -= 1
    return (start, end) if start < end else None


def _character_span(doc: Any, span: Span) -> Span:
    first_token = doc[span[0]]
    last_token = doc[span[1] - 1]
    return first_token.idx, last_token.idx + len(last_token.text)
