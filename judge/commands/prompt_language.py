"""The languages of the data: a judge is asked in one, and a mean over several compares little."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Literal, TypedDict

from judge import text
from judge.config import Plan
from judge.core.errors import DataError
from judge.core.messages import option, plural
from judge.core.records import Sample
from judge.text import Language

_LEAST, _SHARE = 2, 0.05  # items and share of them, below which a language is a stray text
_LOOKED_AT = 2_000  # items, evenly spread over the data
_NAMES: Mapping[str, str] = {"en": "English", "ja": "Japanese", "ko": "Korean", "zh": "Chinese"}


class PromptLanguage(TypedDict):
    """The language of the prompts, and whether it was chosen or detected."""

    name: Language
    how: Literal["chosen", "detected"]


def choose_prompt_language(
    made: Plan, rows: Sequence[Sample], *, judged: bool = True
) -> tuple[PromptLanguage, list[str]]:
    """The language of the prompts with whether it was chosen or detected, and what there is to say about it.

    Raises DataError where a judge would be asked in one language, which nobody chose, about texts of several.
    """
    found = mixed_languages(rows)
    if judged and found and made.language is None:
        raise DataError(_refused(found, rows))
    notes = [_told(found, rows, made.language if judged else None)] if found else []
    if made.language is not None:
        return {"name": made.language, "how": "chosen"}, notes
    return {"name": text.language_of(rows), "how": "detected"}, notes


def require_single_language(rows: Iterable[Sample]) -> None:
    """Raises DataError where the texts are in several languages."""
    rows = list(rows)
    if found := mixed_languages(rows):
        raise DataError(_refused(found, rows))


def mixed_languages(rows: Sequence[Sample]) -> dict[Language, int]:
    """Items by language, most first, where two or more have two items and a twentieth of all; else nothing.

    An item's language is that of its source, or, where it has none, of its outputs. Items too short to tell it do not
    count. Of more than 2,000 items so many are looked at.
    """
    often = Counter(_by_item(rows).values())
    found = {one: n for one, n in often.most_common() if n >= max(_LEAST, _SHARE * often.total())}
    return found if len(found) > 1 else {}


def _by_item(rows: Sequence[Sample]) -> dict[str, Language]:
    """The language of every item that tells it."""
    of: dict[str, list[Sample]] = defaultdict(list)
    for sample in rows:
        of[sample.item].append(sample)
    step = max(1, -(-len(of) // _LOOKED_AT))
    told = {item: text.detect_language_or_none(_spoken(of[item])) for item in list(of)[::step]}
    return {item: found for item, found in told.items() if found is not None}


def _spoken(samples: Sequence[Sample]) -> str:
    source = next((sample.source for sample in samples if sample.source and sample.source.strip()), None)
    return source or "\n".join(sample.output for sample in samples)


def _listed(found: Mapping[Language, int]) -> str:
    (first, n), *others = found.items()
    return ", ".join([f"{plural(n, 'item')} {first}", *(f"{number:,} {name}" for name, number in others)])


def _refused(found: Mapping[Language, int], rows: Sequence[Sample]) -> str:
    first = next(iter(found))
    return (
        f"the data are in several languages ({_listed(found)}), and a judge is asked in one: judge each by itself, "
        f"{_each(rows, found)}; or ask about all in {_NAMES[first]} on purpose: {option('language', first)}"
    )


def _told(found: Mapping[Language, int], rows: Sequence[Sample], language: str | None) -> str:
    asked = f", and a judge is asked about all of them in {_NAMES[language]}" if language is not None else ""
    return (
        f"The data are in several languages ({_listed(found)}){asked}: scores of different languages do not compare, "
        f"and a mean over them says little; look at each by itself, {_each(rows, found)}."
    )


def _each(rows: Sequence[Sample], found: Mapping[Language, int]) -> str:
    """How to have one language alone."""
    column, values = _column(rows, found)
    if not column:
        return f"with a column that says the language, such as lang, and {option('where', {'lang': next(iter(found))})}"
    return " or ".join(option("where", {column: values[one]}) for one in found)


def _column(rows: Sequence[Sample], found: Mapping[Language, int]) -> tuple[str, dict[Language, str]]:
    """A further column that has one value for each language, if there is one, and these."""
    spoken = _by_item(rows)
    told = [(spoken[sample.item], sample.extra) for sample in rows if spoken.get(sample.item) in found]
    for name in dict.fromkeys(chain.from_iterable(extra for _, extra in told)):
        pairs = {(one, str(extra.get(name))) for one, extra in told if isinstance(extra.get(name), str)}
        if len(pairs) == len(found) == len({one for one, _ in pairs}) == len({value for _, value in pairs}):
            return name, dict(pairs)
    return "", {}
