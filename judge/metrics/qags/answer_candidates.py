"""Find the themes of a text: its noun phrases, names, times and amounts.

English themes come from a spaCy model. Chinese, Japanese and Korean themes are built from the words
of a tagger (`judge.metrics.qags.word_roles`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any
from unicodedata import normalize

from judge import text
from judge.core.errors import ConfigError, MissingExtra
from judge.core.messages import option
from judge.core.normalization import fold, whole
from judge.core.plugins import unknown_name_message
from judge.metrics.base import ModelError
from judge.metrics.qags.word_roles import (
    TAGGERS,
    Role,
    Span,
    Words,
    tag_words,
    tagger_tool,
)
from judge.text.tokenizers import LOCK

NOUNS = ("nouns", *TAGGERS)
"""Names of the finders: `nouns` chooses by each text's language, the others are taggers.

`spacy:MODEL` also works.
"""
SPACY = "spacy:"
_ENGLISH = ("en_core_web_trf", "en_core_web_lg", "en_core_web_md", "en_core_web_sm")
_SPACED = ("ko", "kiwi")  # taggers for text with white space inside compounds
# The longest text, in characters, whose language may follow from the other texts.
_SHORT = 20


class Nouns:
    """Finds noun phrases as themes, by each text's language or with the finder `tool`.

    English uses the largest installed en_core_web model of spaCy. With `compounds`, consecutive
    nouns are one theme (入学試験, with prefixes, suffixes and numbers); otherwise each noun is one,
    without amounts. English phrases are the same either way. Raises ConfigError for an unknown name
    or a missing spaCy model, and MissingExtra.
    """

    def __init__(self, tool: str = "nouns", *, compounds: bool = True) -> None:
        if tool not in NOUNS and not tool.startswith(SPACY):
            known = [*NOUNS, f"{SPACY}MODEL"]
            raise ConfigError(unknown_name_message("themes", tool, known))
        self._tool = None if tool == "nouns" else tool
        self._english = _installed_english_finder()
        self._compounds = compounds
        self._used: set[str] = set()
        self._cache: dict[tuple[str, str], list[Span]] = {}
        if self._tool:
            # Called only for their errors: packages or a model that are not installed.
            _signature_of(self._tool)

    def check(self, outputs: Sequence[str]) -> None:
        """Raise MissingExtra if an English text needs a spaCy model that is not installed."""
        if self._tool or self._english:
            return
        for output, language in zip(outputs, languages(outputs), strict=True):
            if not output.strip() or language != "en":
                continue
            # A text that `themes` refuses needs no model.
            if text.is_mostly_beyond_ascii(output) or is_other_language(output):
                continue
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
                if text.is_mostly_beyond_ascii(output):
                    results.append(_NO_FINDER)
                    continue
                if is_other_language(output):
                    results.append(_NOT_ENGLISH)
                    continue
            cleaned = clean(output)
            phrases: dict[str, str] = {}
            for start, end in self._spans(cleaned, language):
                phrase = cleaned[start:end]
                phrases.setdefault(fold(phrase).casefold(), phrase)
            results.append(list(phrases.values()))
        return results

    def _spans(self, cleaned: str, language: str) -> list[Span]:
        """Return where the themes are in a cleaned text, in order; results are cached."""
        finder_name = self._tool or language
        if finder_name == "en":
            finder_name = self._english
        if not finder_name:
            raise MissingExtra(_no_english())
        self._used.add(finder_name)
        if (cleaned, finder_name) not in self._cache:
            self._cache[cleaned, finder_name] = self._find_spans(cleaned, finder_name)
        return self._cache[cleaned, finder_name]

    def _find_spans(self, cleaned: str, finder_name: str) -> list[Span]:
        if finder_name.startswith(SPACY):
            return _by_spacy(_spacy(finder_name), cleaned, self._compounds)
        words = tag_words(finder_name, cleaned)
        if self._compounds:
            return list(_compound_spans(cleaned, words, finder_name in _SPACED))
        return [span for span, role in words if role in ("noun", "time")]

    @property
    def signature(self) -> str:
        """The finder that was named, or those used so far, with their versions."""
        names = {self._tool} if self._tool else self._used
        signature = "+".join(map(_signature_of, sorted(names))) or "nouns"
        return signature if self._compounds else f"{signature}-single"


def _installed_english_finder() -> str:
    """Return the finder with spaCy's largest installed model of English, "" if there is none."""
    if find_spec("spacy") is None:
        return ""
    for model in _ENGLISH:
        if find_spec(model):
            return SPACY + model
    return ""


def _signature_of(finder_name: str) -> str:
    """Return a finder with the versions of its packages, which decide its results.

    Raises MissingExtra and ConfigError if they are not installed.
    """
    if finder_name.startswith(SPACY):
        meta = _spacy(finder_name).meta
        return f"spacy-{meta['lang']}_{meta['name']}{meta['version']}"
    packages = tagger_tool(finder_name).packages
    versions = [f"{package}{version(package)}" for package in packages]
    return "-".join([finder_name, *versions])


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
    with_other_model = option("set", {"qags": {"themes": "spacy:MODEL"}})
    return (
        "qags: the nouns of English texts need spaCy and a model: pip install spacy, then python "
        "-m spacy download en_core_web_sm; or name another with "
        f"{with_other_model}, or leave out qags.backend to ask "
        "the judge"
    )


def clean(original: str) -> str:
    """Remove what some taggers cannot process: lone surrogates and NUL.

    Also compose letters that are written in parts, such as the jamo of NFD.
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
    corrected: list[str] = []
    for passage, language in zip(texts, detected, strict=True):
        # A short Japanese text may have no kana.
        may_be_japanese = language == "zh" and len(passage) <= _SHORT
        corrected.append("ja" if may_be_japanese else language)
    return corrected


def is_other_language(passage: str) -> bool:
    """Return whether a text in Latin script is surely not English.

    Such a text has at least 8 words, none of which is common only in English. Two different words
    of it are common in other languages or have a letter with a diacritic.
    """
    words = [match[0].lower() for match in _WORD.finditer(passage)]
    if len(words) < _MIN_WORDS or not _COMMON_IN_ENGLISH.isdisjoint(words):
        return False
    distinct = set(words)
    with_diacritic = {word for word in distinct if not word.isascii()}
    foreign = with_diacritic | (distinct & _COMMON_ELSEWHERE)
    return len(foreign) > 1


# `U.S.`, `well-known`, `O'Brien`, `R&D`; `does` of `doesn't`, `John` of `John's`
_WORD = re.compile(
    r"(?:[^\W\d_]\.){2,}"
    r"|[^\W\d_](?:(?!n['’]t\b)[\w-])*(?:['’](?!(?:s|m|re|ve|ll|d|t)\b)\w+|[&-]\w+)*"
)
_MIN_WORDS = 8
_ENGLISH_WORDS = (
    "the and that this these with from his her he she they their its it you your our my we were "
    "not been has have would could which who what when into about after said says will if than "
    "more"
)
_COMMON_IN_ENGLISH = frozenset(_ENGLISH_WORDS.split())
# Without van, de, la and others that are in names.
_OTHER_WORDS = (
    "der die das und ist nicht ein eine einen auf dem zu im sich dass les des un une et est dans "
    "que qui sur pour par en una con por para se su lo gli che della não um uma em com na het "
    "een voor niet op aan att det som på är og til af ikke nie się bir"
)
_COMMON_ELSEWHERE = frozenset(_OTHER_WORDS.split())


# From words to phrases


def _compound_spans(cleaned: str, words: Words, spaced: bool) -> Iterator[Span]:
    """Yield runs of words that have a noun or an amount, or a number with what it counts."""
    for run in _runs(cleaned, words, spaced):
        # A suffix needs a word before it, and a prefix one behind it.
        while run and run[0][1] in ("suffix", "unit"):
            run = run[1:]
        while run and run[-1][1] == "prefix":
            run = run[:-1]
        roles = {role for _, role in run}
        has_noun = bool(roles & {"noun", "time", "amount"})
        has_counted_number = "number" in roles and bool(roles & {"unit", "suffix"})
        if has_noun or has_counted_number:
            start = run[0][0][0]
            end = run[-1][0][1]
            yield start, end


def _runs(cleaned: str, words: Words, spaced: bool) -> list[Words]:
    """Return runs of words that may be in one compound. Words without a role separate them."""
    runs: list[Words] = [[]]
    for word in words:
        _, role = word
        last_run = runs[-1]
        if not role:
            runs.append([])
        elif last_run and not _continues_compound(last_run[-1], word, cleaned, spaced):
            runs.append([word])
        else:
            last_run.append(word)
    return runs


# `7月`, `3時` of `午後3時`, `10:30点`
_NUMBERED_TIME = re.compile(r"[\d〇一二三四五六七八九十:]+[年月日号時时点]")


def _continues_compound(
    last: tuple[Span, Role],
    word: tuple[Span, Role],
    cleaned: str,
    spaced: bool,
) -> bool:
    """Return whether two consecutive words are in one compound."""
    (_, last_end), role_before = last
    (start, _), role = word
    between = cleaned[last_end:start]
    if between:
        if not spaced or between != " ":
            return False
        return role_before in ("noun", "suffix") and role in ("noun", "prefix")
    if role_before == "time":  # 昨年七月, 午後3時; not 昨日東京, 今年3人
        if role in ("time", "suffix"):
            return True
        is_numbered_time = _NUMBERED_TIME.match(cleaned, start) is not None
        return role in ("number", "amount") and is_numbered_time
    if role in ("unit", "time"):  # 12月末; not 村民昨天
        return role_before in ("number", "amount", "unit", "prefix")
    return not (role in ("noun", "prefix") and role_before in ("unit", "amount"))


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


def _by_spacy(nlp: Any, cleaned: str, compounds: bool) -> list[Span]:
    """Return noun chunks without determiners, and entities; of two that overlap the longer one.

    If there are no noun chunks (`_noun_chunks`), consecutive nouns take their place.
    """
    with LOCK:
        doc = nlp(cleaned[: nlp.max_length])
    noun_tokens = [token for token in doc if token.pos_ in ("NOUN", "PROPN")]
    nouns = [(token.i, token.i + 1) for token in noun_tokens]
    if not compounds:
        return [_character_span(doc, span) for span in nouns]
    noun_phrases = _noun_chunks(nlp, doc) or _joined(nouns)
    entities = [(entity.start, entity.end) for entity in doc.ents]
    phrases: set[Span] = set()
    for span in (*noun_phrases, *entities):
        trimmed = _without_function_words(doc, span)
        if trimmed:
            phrases.add(trimmed)
    longest_first = sorted(phrases, key=lambda span: (span[0] - span[1], span))
    chosen: list[Span] = []
    for start, end in longest_first:
        if all(end <= longer[0] or start >= longer[1] for longer in chosen):
            chosen.append((start, end))
    return [_character_span(doc, span) for span in sorted(chosen)]


def _noun_chunks(nlp: Any, doc: Any) -> list[Span]:
    """Return the noun chunks in tokens; none for Chinese, Japanese, Korean and without a parser."""
    if nlp.lang in TAGGERS:
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
    """Return a span of tokens as one of characters."""
    first_token = doc[span[0]]
    last_token = doc[span[1] - 1]
    return first_token.idx, last_token.idx + len(last_token.text)
