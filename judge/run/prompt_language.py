"""Choose the language of the prompts, and warn about data in several languages."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from judge import text
from judge.config import RunConfig
from judge.core.errors import DataError
from judge.core.format import listed, plural
from judge.core.messages import Remark, option
from judge.core.records import Criterion, Sample
from judge.results.run_info import PromptLanguage

_MAX_VALUES = 3  # of a column, that a message names
_MAX_ITEMS = 2_000  # items whose languages are compared, evenly spread over the data
_MAX_ROWS = 2_000  # first rows by which Chinese and English are recognized
_MAX_CHARACTERS = 2_000  # of each of their texts
_ENGLISH_WORDS = (
    "the of and to that it with are this by from have has they which were been "
    "would can not an or"
)
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
"""Words that are frequent in English and rare in its neighbours."""
_ENGLISH_SHARE = 0.08  # English prose has about 0.2, German and Dutch less than 0.03
_WORD = re.compile(r"[^\W\d_]+").findall  # letters only: `it` and `s` of `it's 2`
# Letters of an item in another alphabet. A few Greek letters may be a formula.
_MIN_LETTERS = 10
_MIXED_SHARE = 0.2  # of the words in a second script: fewer are names
_KNOWN_ALPHABETS = ("LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH")
TOO_SHORT = "too short to tell"
"""Stands for the language of items that are too short for detection."""
# `Language`, `lang_code`
_LANGUAGE_COLUMN = re.compile("lang|locale", re.IGNORECASE)


def choose_prompt_language(
    config: RunConfig,
    rows: Sequence[Sample],
    *,
    judged: bool = True,
) -> tuple[PromptLanguage, list[str]]:
    """Return the language of the prompts, with notes about it.

    Without a judge (`judged`), nothing is refused, because nobody reads the prompts. Raises
    DataError if the texts are in several languages, or may be Chinese or Japanese, and nobody chose
    the one to ask the judge in.
    """
    languages = mixed_languages(rows)
    if judged and languages and config.language is None:
        raise DataError(_refusal(languages, rows))
    notes = []
    if languages:
        notes.append(_mixed_note(config, languages, rows, judged=judged))
    if config.language is not None:
        return PromptLanguage(config.language, "chosen"), notes
    code = text.language_of(rows)
    source = "one of several" if languages else "detected"
    if text.LANGUAGES[code].letters == text.languages.HAN:
        writing = text.han_writing(_excerpts(rows))
        # Short Japanese texts without kana, such as headlines, look like Chinese.
        if judged and not writing:
            choices = [option("language", choice) for choice in (code, "ja")]
            raise DataError(
                "the texts may be Chinese or Japanese, and a judge is asked in one language: add "
                f"{' or '.join(choices)}"
            )
        if writing == "Traditional":
            source = "Traditional Chinese detected"
            if judged:
                notes.append(
                    "The texts are in Traditional Chinese and the prompts in Simplified Chinese."
                )
    # Any text in the Latin alphabet is detected as the default language, which is English.
    elif code == text.DEFAULT_LANGUAGE and not _is_english(_excerpts(rows)):
        source = "not identified: English prompts"
    return PromptLanguage(code, source), notes


def _excerpts(rows: Sequence[Sample]) -> str:
    """Return the beginnings of the first texts, each with its source."""
    excerpts = []
    for row in rows[:_MAX_ROWS]:
        both_texts = f"{row.output}\n{row.source or ''}"
        excerpts.append(both_texts[:_MAX_CHARACTERS])
    return "\n".join(excerpts)


def _is_english(string: str) -> bool:
    """Return whether the commonest words of English are as frequent as in English prose.

    A text without words may be English.
    """
    words = _WORD(string.lower())
    n_english = sum(word in _ENGLISH for word in words)
    return n_english >= _ENGLISH_SHARE * len(words)


def _mixed_note(
    config: RunConfig,
    languages: Mapping[str, int],
    rows: Sequence[Sample],
    *,
    judged: bool,
) -> str:
    """Warn that scores of different languages do not compare."""
    prompts = ""
    if judged and config.language is not None:
        language_name = text.LANGUAGES[config.language].name
        prompts = f", and a judge is asked about all of them in {language_name}"
    listed_languages = _list_languages(languages)
    separation = _how_to_separate(rows)
    return (
        f"The data are in several languages ({listed_languages}){prompts}: scores of different "
        "languages cannot be compared, and a mean over them means little; evaluate each language "
        f"separately, {separation}."
    )


def notes_on_criteria(
    config: RunConfig,
    rows: Sequence[Sample],
    criteria: Sequence[Criterion],
    language: PromptLanguage,
) -> list[str]:
    """Return a remark on criteria that are asked in their own language, and a note on texts that
    mix scripts, which concerns the others.
    """
    notes: list[str] = []
    names_by_language: dict[str, list[str]] = defaultdict(list)
    for criterion in criteria:
        names_by_language[criterion.language].append(criterion.name)
    for code, names in names_by_language.items():
        if code != language.name:
            language_name = text.LANGUAGES[code].name
            listed_names = listed(names)
            remark = f"Asked in {language_name}, their own language: {listed_names}."
            notes.append(Remark(remark))
    if config.language is None and language.name in names_by_language:
        notes += _mixture(rows)
    return notes


def _mixture(rows: Sequence[Sample]) -> list[str]:
    """Return a note on texts that mix two scripts, with the language that the judge is asked in."""
    strings: list[str] = []
    for row in rows:
        strings += [row.output, row.source or ""]
    shares = text.word_shares(strings)
    if len(shares) < 2:
        return []
    (first_language, first_share), (second_language, second_share), *_ = shares.items()
    if second_share < _MIXED_SHARE:
        return []
    first_name = text.LANGUAGES[first_language].name
    second_name = text.LANGUAGES[second_language].name
    # Any text in the Latin alphabet counts as English here.
    other_alphabet = {text.DEFAULT_LANGUAGE: "English or another alphabet"}
    first_words = other_alphabet.get(first_language, first_name)
    second_words = other_alphabet.get(second_language, second_name)
    return [
        f"The texts mix scripts: {first_share:.0%} of their words are in {first_words}, "
        f"{second_share:.0%} in {second_words}. The judge is asked in {first_name}, the "
        f"language of most words; {option('language', second_language)} asks in {second_name}."
    ]


def require_single_language(rows: Iterable[Sample]) -> None:
    """Raise DataError if the texts are in several languages."""
    rows = list(rows)
    languages = mixed_languages(rows)
    if languages:
        raise DataError(_refusal(languages, rows))


def mixed_languages(rows: Sequence[Sample]) -> dict[str, int]:
    """Count items by language, most frequent first; empty if there are fewer than two languages.

    An item's language is that of its source, or of its outputs if it has none; another alphabet
    than the Latin one counts as a language, such as `Thai`. Items too short for detection are
    counted last, as `TOO_SHORT`. At most 2,000 items, evenly spread, are examined.
    """
    samples_by_item: dict[str, list[Sample]] = defaultdict(list)
    for sample in rows:
        samples_by_item[sample.item].append(sample)
    # Of many items, every second one, every third one, and so on.
    step = max(1, math.ceil(len(samples_by_item) / _MAX_ITEMS))
    counts: Counter[str] = Counter()
    n_short = 0
    for item in list(samples_by_item)[::step]:
        language = _language_of_item(samples_by_item[item])
        if language is None:
            n_short += 1
        else:
            counts[language] += 1
    if len(counts) < 2:
        return {}
    languages = dict(counts.most_common())
    if n_short:
        languages[TOO_SHORT] = n_short
    return languages


def _language_of_item(samples: Sequence[Sample]) -> str | None:
    """Return the language of an item's texts, or their alphabet; None if they are too short."""
    sources = [sample.source or "" for sample in samples]
    sources_with_words = filter(str.strip, sources)
    item_text = next(sources_with_words, "")
    if not item_text:
        item_text = "\n".join(sample.output for sample in samples)
    language = text.detect_language_or_none(item_text)
    if language not in (None, text.DEFAULT_LANGUAGE) or item_text.isascii():
        return language
    letters = [letter for letter in item_text[:_MAX_CHARACTERS] if letter.isalpha()]
    # A letter's name begins with its alphabet: `THAI CHARACTER KO KAI`.
    names = [unicodedata.name(letter, "") for letter in letters]
    alphabets = Counter(letter_name.partition(" ")[0] for letter_name in names)
    if not alphabets:
        return language
    ((alphabet, count),) = alphabets.most_common(1)
    is_most = count >= max(_MIN_LETTERS, len(letters) / 2)
    if alphabet not in _KNOWN_ALPHABETS and is_most:
        return alphabet.capitalize()
    return language


def _list_languages(languages: Mapping[str, int]) -> str:
    """Write `12 items en, 3 ja`."""
    (first_language, first_count), *others = languages.items()
    parts = [f"{plural(first_count, 'item')} {first_language}"]
    parts += [f"{count:,} {language}" for language, count in others]
    return ", ".join(parts)


def _refusal(languages: Mapping[str, int], rows: Sequence[Sample]) -> str:
    """Say that the data are in several languages, and how to judge them nevertheless."""
    # Only these have prompts; a language such as Thai is counted by its alphabet.
    prompted = [language for language in languages if language in text.LANGUAGES]
    first_language = prompted[0] if prompted else text.DEFAULT_LANGUAGE
    language_name = text.LANGUAGES[first_language].name
    listed_languages = _list_languages(languages)
    separation = _how_to_separate(rows)
    language_option = option("language", first_language)
    return (
        f"the data are in several languages ({listed_languages}), and a judge is asked in one: "
        f"judge each language separately, {separation}; or ask about all texts in {language_name}: "
        f"{language_option}"
    )


def _how_to_separate(rows: Sequence[Sample]) -> str:
    """Say how to select one language, by the column `lang` or `locale` if the data has one."""
    columns = dict.fromkeys(column_name for row in rows for column_name in row.extra)
    column = next(filter(_LANGUAGE_COLUMN.match, columns), None)
    if column is None:
        example = option("where", {"lang": "en"})
        return f"with a column that says the language, such as lang, and {example}"
    values = dict.fromkeys(str(row.extra.get(column)) for row in rows)
    first_values = list(values)[:_MAX_VALUES]
    return " or ".join(option("where", {column: value}) for value in first_values)
