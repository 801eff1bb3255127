"""Changes of what a text says: another name, another number, the opposite."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random

from judge.audits.perturbations.edits import (
    Edit,
    LanguageRules,
    Name,
    Span,
    apply_edits,
    content,
    coverage,
    non_overlapping,
    sentences,
    spans,
)
from judge.audits.perturbations.grammars import rules_for
from judge.core.records import Sample

_STRANGERS = 3  # other items whose names are looked at
_LATE = ("weekday", "month")
"""How kinds begin that are swapped only where there is no name of another kind."""
_FOLDED = 4  # characters from which on a name is known in small letters as well
_WHOLE = 3  # characters of a number that means the same wherever it stands
_LEAST_SAID = 0.3  # of a sentence's words of content, in the source
_BESIDE = 20  # characters around a number that decide about its form


def swapped_entity(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """A name of the source, all through the output, for another of its kind that the output does not have.

    Its first or last word alone (the family name) goes with it. The other name is one of the source that shares no
    sentence with the first, else a well-known one or one from other items. Without a source, of the output's names.
    """
    whole, grammar = sample.output, rules_for(sample.output)
    known = names(grammar, sample.source or whole)
    found = mentions(whole, [name.text for name in known])
    here = [name for name in known if found[name.text]]
    here = [
        name for name in here if not any(name.text in other.text.split() for other in here if other.text != name.text)
    ]
    chance.shuffle(here)
    here.sort(key=lambda name: name.kind.startswith(_LATE))
    for old in here:
        around = [(whole[:start], whole[start:end], whole[end:]) for start, end in found[old.text]]
        for new in _rivals(grammar, old, sample, others, chance):
            if all(grammar.fits(before, matched, new, after) for before, matched, after in around):
                return _exchanged(whole, old, new, found)
    return None


@lru_cache(maxsize=512)
def names(grammar: LanguageRules, whole: str) -> tuple[Name, ...]:
    """The names of a text, each once."""
    return tuple(dict.fromkeys(grammar.names(whole)))


def mentions(whole: str, wanted: Iterable[str]) -> dict[str, list[Span]]:
    """Where names stand in a text, none inside a longer one; those of four letters or more in any case."""
    found: dict[str, list[Span]] = {}
    taken: list[Span] = []
    for name in sorted(set(wanted), key=lambda name: (-len(name), name)):
        hits = [match.span() for match in _pattern(name).finditer(whole)]
        found[name] = [hit for hit in hits if all(hit[1] <= start or hit[0] >= end for start, end in taken)]
        taken += found[name]
    return found


@lru_cache(maxsize=4096)
def _pattern(name: str) -> re.Pattern[str]:
    """Words of scripts with spaces begin where no word goes on; Latin ones end so too."""
    latin, hangul = name[-1] < "\u0250", "\uac00" <= name[0] <= "\ud7a3"
    before, after = r"(?<!\w)" if latin or hangul else "", r"(?!\w)" if latin else ""
    return re.compile(before + re.escape(name) + after, re.IGNORECASE if len(name) >= _FOLDED else 0)


def _rivals(
    grammar: LanguageRules, old: Name, sample: Sample, others: Sequence[Sample], chance: Random
) -> Iterator[str]:
    """Names that could stand in a name's place, the best first."""
    given, said = sample.source or sample.output, sample.output.casefold()
    beside = " ".join(one for one in sentences(given) if old.text in one)
    own = [name.text for name in names(grammar, given) if name.kind == old.kind and name.text not in beside]
    known = list(grammar.peers.get(old.kind, ()))
    few = chance.sample(range(len(others)), min(_STRANGERS, len(others)))
    strange = [
        name.text
        for n in few
        for name in names(grammar, others[n].source or others[n].output)
        if name.kind == old.kind and rules_for(others[n].output) is grammar
    ]
    away = [name for name in known if name not in given], [name for name in strange if name not in given]
    words = set(old.text.casefold().split())
    for group in (own, *away):
        chance.shuffle(group)
        for name in group:
            new = name.casefold()
            if new not in said and old.text not in name and name not in old.text and words.isdisjoint(new.split()):
                yield name


def _exchanged(whole: str, old: Name, new: str, found: Mapping[str, Sequence[Span]]) -> str:
    parts = {old.text: new}
    if old.kind == "person" and " " in old.text and " " in new:
        parts = {old.text.split()[0]: new.split()[0], old.text.split()[-1]: new.split()[-1]} | parts
    at = mentions(whole, [*found, *parts])
    places = [
        Edit(start, end, (_like(whole[start:end], other),)) for name, other in parts.items() for start, end in at[name]
    ]
    return apply_edits(whole, places, Random(0))  # noqa: S311 - each place has one option


def _like(matched: str, new: str) -> str:
    """The name in the case of the one it stands for: small, with one capital, or as it is."""
    if matched == matched.lower():
        return new.lower()
    if " " in matched and matched[1:] == matched[1:].lower():
        return new[0] + new[1:].lower()
    return new


# Numbers

_UNIT = r"(?:am|pm|ft|in|km|cm|mm|kg|mg|mph|kph|lbs?|m|bn|k|s|th|st|nd|rd)?"
_NUMBER = re.compile(rf"(?<![A-Za-z\d.,/–-])([0-9]{{1,15}}|[０-９]{{1,15}})((?:[.,]\d+)*)(?=({_UNIT})(?![A-Za-z\d]))")
_ORDINALS = ("st", "nd", "rd", "th")
_PERCENT = re.compile(r"\s?(?:%|％|per ?cent|퍼센트|パーセント)").match
_MONTH = re.compile(r"\s?[월月]").match
_HOUR = re.compile(r"\s?(?::|[ap]\.?m|o'clock|시|時|时|点)").match
_DECADE = re.compile(r"'?s\b|\s?(?:年代|년대)").match
_YEARS = range(1500, 2100)


def swapped_number(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """One number, in figures or words, for another that is as likely there and not in the source.

    One of the source's if there is any; a longer one wherever it stands. Numbers that are grammar (one) or a part of a
    name (F-16) stay.
    """
    whole, source = sample.output, sample.source or ""
    taken = {match.group() for match in _NUMBER.finditer(f"{whole}\n{source}")}
    places = non_overlapping([*_figures(whole, taken), *rules_for(whole).number_words(whole)])
    chance.shuffle(places)
    places.sort(key=lambda place: not _holds(source, whole[place.start : place.end]))
    for chosen in places:
        if options := _fitting(whole, chosen):
            return _renumbered(whole, chosen, chance.choice(options), places)
    return None


def _fitting(whole: str, place: Edit) -> list[str]:
    """Those options of a place that suit the words around it."""
    start, end, options = place
    before, after = whole[max(0, start - _BESIDE) : start], whole[end : end + _BESIDE]
    return [new for new in options if rules_for(whole).fits(before, whole[start:end], new, after)]


def _renumbered(whole: str, chosen: Edit, new: str, places: Iterable[Edit]) -> str:
    old = whole[chosen.start : chosen.end]
    same = [p for p in places if whole[p.start : p.end] == old] if len(old) >= _WHOLE else [chosen]
    return apply_edits(whole, [Edit(p.start, p.end, (new,)) for p in same], Random(0))  # noqa: S311 - one option each


def _holds(source: str, number: str) -> bool:
    return re.search(rf"(?<![\d.,]){re.escape(number)}(?!\d)", source, re.IGNORECASE) is not None


def _figures(whole: str, taken: set[str]) -> Iterator[Edit]:
    for match in _NUMBER.finditer(whole):
        first, rest, unit = match.groups()
        after = whole[match.end() : match.end() + _BESIDE]
        written = {} if first.isascii() else _WIDE
        values = [str(n).translate(written) + rest for n in _likely(first, rest, after)]
        options = [value for value in values if value not in taken] or [v for v in values if v != match.group()]
        if unit in _ORDINALS:
            end = match.end() + len(unit)
            yield Edit(match.start(), end, tuple(one + _ordinal(int(one)) for one in options))
        elif options:
            yield Edit(match.start(), match.end(), tuple(options))


_WIDE = {ord("0") + n: ord("０") + n for n in range(10)}


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _likely(first: str, rest: str, after: str) -> Iterable[int]:
    """What the leading digits of a number may become: as many digits, an hour, day, year or percentage still one."""
    value, size = int(first), len(first)
    if first[0] in "0０" or (value == 1 and not rest):
        return ()
    if size == 1:
        return range(2, 10)
    if value == 100 and _PERCENT(after):
        return range(40, 95)
    if size > 2:
        return _longer(value, size, not rest, after)
    if value <= 12 and (_MONTH(after) or _HOUR(after)):
        return range(10, 13 if _MONTH(after) else 12)
    return next(likely for last, likely in _LEADING if value <= last)


_LEADING = (31, range(10, 29)), (60, range(32, 60)), (99, range(61, 100))


def _longer(value: int, size: int, plain: bool, after: str) -> Iterable[int]:
    """Another year before it, decade, or number with another first digit."""
    if plain and value in _YEARS:
        step = 10 if _DECADE(after) else 1
        return range(value - 9 * step, value, step)
    step = 10 ** (size - 1)
    return (value % step + digit * step for digit in range(1, 10))


def negated(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """The sentence nearest to the source turned into its opposite; the others stay as they are.

    None where no sentence that can be has a fact of the source in it: denying it would deny none.
    """
    whole, grammar = sample.output, rules_for(sample.output)
    found = [(start, end, places) for start, end in spans(whole) if (places := grammar.negated(whole[start:end]))]
    if not found:
        return None
    chance.shuffle(found)
    known = content(sample.source or whole)
    shares = [coverage(whole[start:end], known) for start, end, _ in found]
    if max(shares) < _LEAST_SAID:
        return None
    at, _, places = found[shares.index(max(shares))]
    start, end, options = chance.choice(places)
    return apply_edits(whole, [Edit(at + start, at + end, options)], chance)
