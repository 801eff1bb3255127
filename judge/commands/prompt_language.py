"""Choose the language of the prompts, and warn about data in several languages."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypedDict

from judge import text
from judge.config import RunConfig
from judge.core.errors import DataError
from judge.core.format import plural
from judge.core.messages import in_python, option
from judge.core.records import Sample

_MAX_ITEMS = 2_000  # items, evenly spread over the data
_ENGLISH = {
    *("the", "of", "and", "to", "that", "it", "with", "are", "this", "by", "from", "have", "has", "they", "which"),
    *("were", "been", "would", "can", "not", "an", "or"),
}  # fmt: skip
"""Words that are frequent in English and rare in its neighbours."""
_ENGLISH_SHARE = 0.08  # English prose has about 0.2, German and Dutch less than 0.03
_WORD = re.compile(r"[^\W\d_]+").findall
_MIN_LETTERS = 10
_KNOWN_ALPHABETS = ("LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH")
_LANGUAGE_COLUMN = re.compile("lang|locale", re.IGNORECASE).match


class PromptLanguage(TypedDict):
    """The language of the prompts, and how it was found: chosen, detected, one of several, or the default."""

    name: str
    how: str


def choose_prompt_language(
    config: RunConfig, rows: Sequence[Sample], *, judged: bool = True
) -> tuple[PromptLanguage, list[str]]:
    """Return the language of the prompts, with notes about it.

    Raises DataError if the texts are in several languages, or may be Chinese or Japanese, and nobody chose the one to
    ask the judge in.
    """
    languages = mixed_languages(rows)
    if judged and languages and config.language is None:
        raise DataError(_refusal(languages, rows))
    notes = []
    if languages:
        prompt_clause = ""
        if judged and config.language is not None:
            prompt_clause = f", and a judge is asked about all of them in {text.LANGUAGES[config.language].name}"
        notes.append(
            f"The data are in several languages ({_list_languages(languages)}){prompt_clause}: scores of different "
            f"languages do not compare, and a mean over them says little; look at each by itself, "
            f"{_how_to_separate(rows, languages)}."
        )
    if config.language is not None:
        return {"name": config.language, "how": "chosen"}, notes
    language, how = text.language_of(rows), "one of several" if languages else "detected"
    sample_text = "\n".join(f"{row.output}\n{row.source or ''}"[:_MAX_ITEMS] for row in rows[:_MAX_ITEMS])
    if text.LANGUAGES[language].letters == text.languages.HAN:
        writing = text.han_writing(sample_text)
        if judged and not writing:
            both = " or ".join(option("language", code) for code in (language, "ja"))
            raise DataError(f"the texts may be Chinese or Japanese, and a judge is asked in one language: add {both}")
        if writing == "Traditional":
            how = "Traditional Chinese detected"
            notes += ["The texts are in Traditional Chinese and the prompts in Simplified Chinese."] * judged
    elif language == text.DEFAULT_LANGUAGE:
        words = _WORD(sample_text.lower())
        if sum(word in _ENGLISH for word in words) < _ENGLISH_SHARE * len(words):
            how = "not identified: English prompts"
    return {"name": language, "how": how}, notes


def require_single_language(rows: Iterable[Sample]) -> None:
    """Raise DataError if the texts are in several languages."""
    rows = list(rows)
    if languages := mixed_languages(rows):
        raise DataError(_refusal(languages, rows))


def mixed_languages(rows: Sequence[Sample]) -> dict[str, int]:
    """Count items by language, most frequent first; empty if there are fewer than two languages.

    An item's language is that of its source, or of its outputs if it has none; another alphabet than the Latin one
    counts as a language, such as `Thai`. Items too short for detection do not count. At most 2,000 items, evenly
    spread, are examined.
    """
    counts = Counter(_language_of_items(rows).values())
    return dict(counts.most_common()) if len(counts) > 1 else {}


def _language_of_items(rows: Sequence[Sample]) -> dict[str, str]:
    """Detect the language of the items, as far as their texts are long enough."""
    samples_by_item: dict[str, list[Sample]] = defaultdict(list)
    for sample in rows:
        samples_by_item[sample.item].append(sample)
    step = max(1, -(-len(samples_by_item) // _MAX_ITEMS))
    detected: dict[str, str] = {}
    for item in list(samples_by_item)[::step]:
        samples = samples_by_item[item]
        source = next((sample.source for sample in samples if sample.source and sample.source.strip()), None)
        item_text = source or "\n".join(sample.output for sample in samples)
        language = text.detect_language_or_none(item_text)
        if language in (None, text.DEFAULT_LANGUAGE) and not item_text.isascii():
            letters = [letter for letter in item_text[:_MAX_ITEMS] if letter.isalpha()]
            counts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in letters)
            alphabet, n = max(counts.items(), key=lambda pair: pair[1], default=("", 0))
            if alphabet not in _KNOWN_ALPHABETS and n >= max(_MIN_LETTERS, len(letters) / 2):
                language = alphabet.capitalize()  # such as `Thai`
        if language is not None:
            detected[item] = language
    return detected


def _list_languages(languages: Mapping[str, int]) -> str:
    (first, n), *others = languages.items()
    return ", ".join([f"{plural(n, 'item')} {first}", *(f"{number:,} {name}" for name, number in others)])


def _refusal(languages: Mapping[str, int], rows: Sequence[Sample]) -> str:
    first = next((language for language in languages if language in text.LANGUAGES), text.DEFAULT_LANGUAGE)
    return (
        f"the data are in several languages ({_list_languages(languages)}), and a judge is asked in one: judge each by "
        f"itself, {_how_to_separate(rows, languages)}; or ask about all in {text.LANGUAGES[first].name} on purpose: "
        f"{option('language', first)}"
    )


def _how_to_separate(rows: Sequence[Sample], languages: Mapping[str, int]) -> str:
    """Say how to select one language, by a column whose values tell the languages apart if the data has one.

    A column of another name than `lang` or `locale` needs one value per language and two items of each.
    """
    language_of_item = _language_of_items(rows)
    known = [(language_of_item[sample.item], sample.extra) for sample in rows if sample.item in language_of_item]
    columns = dict.fromkeys(chain.from_iterable(extra for _, extra in known))
    for name in sorted(columns, key=lambda name: not _LANGUAGE_COLUMN(name)):
        pairs = {(str(extra.get(name)), language) for language, extra in known}
        values = dict(sorted(pairs))
        plain = len(pairs) == len(languages) and min(languages.values()) > 1
        if len(values) == len(pairs) and all(isinstance(extra.get(name), str) for _, extra in known) and (
            plain or _LANGUAGE_COLUMN(name)
        ):  # fmt: skip
            of_each = [[value for value in values if values[value] == language] for language in languages]
            if in_python():
                return " or ".join(option("where", {name: each if len(each) > 1 else each[0]}) for each in of_each)
            return " or ".join(option("where", [f"{name}={value}" for value in each]) for each in of_each)
    first = option("where", {"lang": next(iter(languages))})
    return f"with a column that says the language, such as lang, and {first}"
