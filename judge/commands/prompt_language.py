"""Choose the language of the prompts, and warn about data in several languages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Literal, TypedDict

from judge import text
from judge.config import RunConfig
from judge.core.errors import DataError
from judge.core.format import plural
from judge.core.messages import option
from judge.core.records import Sample

_MIN_ITEMS, _MIN_SHARE = 2, 0.05  # a language with fewer items, or a smaller share of them, is a stray text
_MAX_ITEMS = 2_000  # items, evenly spread over the data


class PromptLanguage(TypedDict):
    """The language of the prompts, and whether it was chosen or detected."""

    name: str
    how: Literal["chosen", "detected"]


def choose_prompt_language(
    config: RunConfig, rows: Sequence[Sample], *, judged: bool = True
) -> tuple[PromptLanguage, list[str]]:
    """Return the language of the prompts, with notes about it.

    Raises DataError if the texts are in several languages and nobody chose the one to ask the judge in.
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
    return {"name": text.language_of(rows), "how": "detected"}, notes


def require_single_language(rows: Iterable[Sample]) -> None:
    """Raise DataError if the texts are in several languages."""
    rows = list(rows)
    if languages := mixed_languages(rows):
        raise DataError(_refusal(languages, rows))


def mixed_languages(rows: Sequence[Sample]) -> dict[str, int]:
    """Count items by language, most frequent first; empty if fewer than two languages are frequent.

    A language is frequent with two items and 5 % of all. An item's language is that of its source, or of its outputs
    if it has none. Items too short for detection do not count. At most 2,000 items, evenly spread, are examined.
    """
    counts = Counter(_language_of_items(rows).values())
    languages = {
        language: n for language, n in counts.most_common() if n >= max(_MIN_ITEMS, _MIN_SHARE * counts.total())
    }
    return languages if len(languages) > 1 else {}


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
        language = text.detect_language_or_none(source or "\n".join(sample.output for sample in samples))
        if language is not None:
            detected[item] = language
    return detected


def _list_languages(languages: Mapping[str, int]) -> str:
    (first, n), *others = languages.items()
    return ", ".join([f"{plural(n, 'item')} {first}", *(f"{number:,} {name}" for name, number in others)])


def _refusal(languages: Mapping[str, int], rows: Sequence[Sample]) -> str:
    first = next(iter(languages))
    return (
        f"the data are in several languages ({_list_languages(languages)}), and a judge is asked in one: judge each by "
        f"itself, {_how_to_separate(rows, languages)}; or ask about all in {text.LANGUAGES[first].name} on purpose: "
        f"{option('language', first)}"
    )


def _how_to_separate(rows: Sequence[Sample], languages: Mapping[str, int]) -> str:
    """Say how to select one language, by a column that has one value for each if the data have one."""
    language_of_item = _language_of_items(rows)
    known = [
        (language_of_item[sample.item], sample.extra)
        for sample in rows
        if language_of_item.get(sample.item) in languages
    ]
    for name in dict.fromkeys(chain.from_iterable(extra for _, extra in known)):
        pairs = {(language, str(extra.get(name))) for language, extra in known if isinstance(extra.get(name), str)}
        columns = len({language for language, _ in pairs}), len({value for _, value in pairs})
        if name and len(pairs) == len(languages) and columns == (len(pairs), len(pairs)):
            values = dict(pairs)
            return " or ".join(option("where", {name: values[language]}) for language in languages)
    first = option("where", {"lang": next(iter(languages))})
    return f"with a column that says the language, such as lang, and {first}"
