"""Choose the language of the prompts, and warn about data in several languages."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from judge import text
from judge.config import RunConfig
from judge.core.errors import DataError
from judge.core.format import plural
from judge.core.messages import option
from judge.core.records import Sample
from judge.results.run_info import PromptLanguage

_MAX_VALUES = 3  # of a column, that a message names
_MAX_ITEMS = 2_000  # items, evenly spread over the data
_ENGLISH = {
    *("the", "of", "and", "to", "that", "it", "with", "are", "this", "by", "from", "have", "has", "they", "which"),
    *("were", "been", "would", "can", "not", "an", "or"),
}  # fmt: skip
"""Words that are frequent in English and rare in its neighbours."""
_ENGLISH_SHARE = 0.08  # English prose has about 0.2, German and Dutch less than 0.03
_WORD = re.compile(r"[^\W\d_]+").findall
_MIN_LETTERS = 10
_MIXED_SHARE = 0.2  # of the words in a second script: fewer are names
_KNOWN_ALPHABETS = ("LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH")
_LANGUAGE_COLUMN = re.compile("lang|locale", re.IGNORECASE).match


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
            f"{_how_to_separate(rows)}."
        )
    if config.language is not None:
        return PromptLanguage(config.language, "chosen"), notes
    language, how = text.language_of(rows), "one of several" if languages else "detected"
    notes += _mixture(rows) if judged and not languages else []
    sample_text = "\n".join(
        f"{row.output}\n{row.source or ''}"[:_MAX_ITEMS] for row in rows[:_MAX_ITEMS]
    )
    if text.LANGUAGES[language].letters == text.languages.HAN:
        writing = text.han_writing(sample_text)
        if judged and not writing:
            both = " or ".join(option("language", code) for code in (language, "ja"))
            raise DataError(
                f"the texts may be Chinese or Japanese, and a judge is asked in one language: add {both}"
            )
        if writing == "Traditional":
            how = "Traditional Chinese detected"
            notes += [
                "The texts are in Traditional Chinese and the prompts in Simplified Chinese."
            ] * judged
    elif language == text.DEFAULT_LANGUAGE:
        words = _WORD(sample_text.lower())
        if sum(word in _ENGLISH for word in words) < _ENGLISH_SHARE * len(words):
            how = "not identified: English prompts"
    return PromptLanguage(language, how), notes


def _mixture(rows: Sequence[Sample]) -> list[str]:
    """Return a note on texts that mix two scripts: in which language the judge is asked, and how to choose another."""
    shares = text.word_shares(string for row in rows for string in (row.output, row.source or ""))
    (first, most), *others = shares.items() if shares else [("", 0.0)]
    if not others or others[0][1] < _MIXED_SHARE:
        return []
    second, share = others[0]
    names = [
        text.LANGUAGES[code].name
        if code != text.DEFAULT_LANGUAGE
        else "English or another alphabet"
        for code in (first, second)
    ]
    return [
        f"The texts mix scripts: {most:.0%} of their words are in {names[0]}, {share:.0%} in {names[1]}. The judge is "
        f"asked in {text.LANGUAGES[first].name}, the language of most words; {option('language', second)} asks in "
        f"{text.LANGUAGES[second].name}."
    ]


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
    samples_by_item: dict[str, list[Sample]] = defaultdict(list)
    for sample in rows:
        samples_by_item[sample.item].append(sample)
    step = max(1, -(-len(samples_by_item) // _MAX_ITEMS))
    detected: Counter[str] = Counter()
    for item in list(samples_by_item)[::step]:
        samples = samples_by_item[item]
        source = next(
            (sample.source for sample in samples if sample.source and sample.source.strip()), None
        )
        item_text = source or "\n".join(sample.output for sample in samples)
        language = text.detect_language_or_none(item_text)
        if language in (None, text.DEFAULT_LANGUAGE) and not item_text.isascii():
            letters = [letter for letter in item_text[:_MAX_ITEMS] if letter.isalpha()]
            counts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in letters)
            alphabet, n = max(counts.items(), key=lambda pair: pair[1], default=("", 0))
            if alphabet not in _KNOWN_ALPHABETS and n >= max(_MIN_LETTERS, len(letters) / 2):
                language = alphabet.capitalize()  # such as `Thai`
        if language is not None:
            detected[language] += 1
    return dict(detected.most_common()) if len(detected) > 1 else {}


def _list_languages(languages: Mapping[str, int]) -> str:
    (first, n), *others = languages.items()
    return ", ".join(
        [f"{plural(n, 'item')} {first}", *(f"{number:,} {name}" for name, number in others)]
    )


def _refusal(languages: Mapping[str, int], rows: Sequence[Sample]) -> str:
    first = next(
        (language for language in languages if language in text.LANGUAGES), text.DEFAULT_LANGUAGE
    )
    return (
        f"the data are in several languages ({_list_languages(languages)}), and a judge is asked in one: judge each by "
        f"itself, {_how_to_separate(rows)}; or ask about all in {text.LANGUAGES[first].name} on purpose: "
        f"{option('language', first)}"
    )


def _how_to_separate(rows: Sequence[Sample]) -> str:
    """Say how to select one language, by the column `lang` or `locale` if the data has one."""
    columns = dict.fromkeys(name for row in rows for name in row.extra)
    if (column := next(filter(_LANGUAGE_COLUMN, columns), None)) is None:
        return f"with a column that says the language, such as lang, and {option('where', {'lang': 'en'})}"
    values = dict.fromkeys(str(row.extra.get(column)) for row in rows)
    return " or ".join(option("where", {column: value}) for value in list(values)[:_MAX_VALUES])
