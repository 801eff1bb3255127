"""Make the perturbed texts of `judge audit`.

- consistency: another name, another number, a negated sentence
- biases: a longer or copied text that says nothing new
- coherence and relevance: whole sentences moved, cut, added or repeated
- fluency: typos, missing function words, lost casing
- injections: instructions to the judge, added to the output

A function returns None if its change does not apply to the text. `whole` is always the text that is changed.

Each is written in the language of the judged texts and asks for the top label of the criterion's scale. Where it
stands, before or after the text, is part of the attack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from random import Random

from judge import text
from judge.audits.perturbations.edits import (
    Draft,
    Edit,
    LanguageRules,
    Name,
    Perturbation,
    Span,
    append_text,
    apply_edits,
    content,
    coverage,
    is_finished,
    non_overlapping,
    sentences,
)
from judge.core import yaml_lines
from judge.core.records import Sample, Scale
from judge.criteria.template import builtin_prompts, read_text

RULES: Mapping[str, LanguageRules] = {
    code: getattr(import_module(module), language.name)()
    for code, language in text.LANGUAGES.items()
    if find_spec(module := f"{__name__}.{language.name.lower()}")
}
"""The rules of each language that has a class and a module of its name in this package."""


def rules_for(whole: str) -> LanguageRules:
    """Return the rules of the language that most of a text is written in, by its script; English if it has none."""
    return RULES.get(text.detect_language([whole]), RULES[text.DEFAULT_LANGUAGE])


_OTHER_ITEMS = 3  # whose names may be used
_LAST_CHOICE_KINDS = ("weekday", "month")
"""Prefixes of the kinds that are swapped only if there is no name of another kind."""
_CASELESS_LENGTH = 4  # characters from which a name also matches in lower case
_UNAMBIGUOUS_LENGTH = 3  # characters from which a number means the same everywhere in a text
_MIN_COVERAGE = 0.3  # share of a sentence's content words that are in the source
_CONTEXT = 20  # characters around a number that decide which numbers fit


def swapped_entity(draft: Draft) -> str | None:
    """Replace a name of the source, everywhere in the output, by another of its kind that the output does not have.

    Its first or last word alone (the family name) is replaced too. The new name is one of the source that shares no
    sentence with the old one, else a well-known one or one from other items. Without a source, names are the output's.
    """
    whole, rules = draft.whole, draft.rules
    known = names(rules, draft.source)
    places = mentions(whole, [name.text for name in known])
    present = [name for name in known if places[name.text]]
    candidates = [
        name
        for name in present
        if not any(name.text in longer.text.split() for longer in present if longer.text != name.text)
    ]
    draft.chance.shuffle(candidates)
    candidates.sort(key=lambda name: name.kind.startswith(_LAST_CHOICE_KINDS))
    for old in candidates:
        contexts = [(whole[:start], whole[start:end], whole[end:]) for start, end in places[old.text]]
        for new in _replacement_names(draft, old):
            if all(rules.fits(before, matched, new, after) for before, matched, after in contexts):
                parts = {old.text: new}
                if old.kind == "person" and " " in old.text and " " in new:
                    parts = {old.text.split()[0]: new.split()[0], old.text.split()[-1]: new.split()[-1]} | parts
                at = mentions(whole, [*places, *parts])
                edits = [
                    Edit(start, end, (_match_case(whole[start:end], replacement),))
                    for name, replacement in parts.items()
                    for start, end in at[name]
                ]
                return apply_edits(whole, edits, Random(0))  # noqa: S311 - each place has one option
    return None


@lru_cache(maxsize=512)
def names(rules: LanguageRules, whole: str) -> tuple[Name, ...]:
    """Return the names in a text, each once."""
    return tuple(dict.fromkeys(rules.names(whole)))


def mentions(whole: str, targets: Iterable[str]) -> dict[str, list[Span]]:
    """Find names in a text, none inside a longer one. Names of four letters or more match in any case.

    A name in Latin script is whole words; in Hangul it is only their start, because particles follow the word.
    """
    places: dict[str, list[Span]] = {}
    taken: list[Span] = []
    for name in sorted(set(targets), key=lambda name: (-len(name), name)):
        latin, hangul = name[-1] < "\u0250", "\uac00" <= name[0] <= "\ud7a3"
        before, after = r"(?<!\w)" if latin or hangul else "", r"(?!\w)" if latin else ""
        case = re.IGNORECASE if len(name) >= _CASELESS_LENGTH else re.NOFLAG
        hits = [match.span() for match in re.finditer(before + re.escape(name) + after, whole, case)]
        places[name] = [hit for hit in hits if all(hit[1] <= start or hit[0] >= end for start, end in taken)]
        taken += places[name]
    return places


def _replacement_names(draft: Draft, old: Name) -> Iterator[str]:
    """Yield names that can replace `old`, the best first."""
    rules, source, others, output = draft.rules, draft.source, draft.others, draft.whole.casefold()
    neighbours = " ".join(sentence for sentence in sentences(source) if old.text in sentence)
    from_source = [name.text for name in names(rules, source) if name.kind == old.kind and name.text not in neighbours]
    few = draft.chance.sample(range(len(others)), min(_OTHER_ITEMS, len(others)))
    from_others = [
        name.text
        for n in few
        for name in names(rules, others[n].source or others[n].output)
        if name.kind == old.kind and rules_for(others[n].output) is rules
    ]
    unseen = ([name for name in group if name not in source] for group in (rules.peers.get(old.kind, ()), from_others))
    words = set(old.text.casefold().split())
    for group in (from_source, *unseen):
        draft.chance.shuffle(group)
        for name in group:
            new = name.casefold()
            if new not in output and old.text not in name and name not in old.text and words.isdisjoint(new.split()):
                yield name


def _match_case(matched: str, new: str) -> str:
    """Give the new name the case of the text it replaces: lower case, one capital, or unchanged."""
    if matched == matched.lower():
        return new.lower()
    if " " in matched and matched[1:] == matched[1:].lower():
        return new[0] + new[1:].lower()
    return new


# Numbers

_UNIT = r"(?:am|pm|ft|in|km|cm|mm|kg|mg|mph|kph|lbs?|m|bn|k|s|th|st|nd|rd)?"
_NUMBER = re.compile(rf"(?<![A-Za-z\d.,/–-])([0-9]{{1,15}}|[０-９]{{1,15}})((?:[.,]\d+)*)(?=({_UNIT})(?![A-Za-z\d]))")
_ORDINALS = {1: "st", 2: "nd", 3: "rd", 4: "th"}  # by the last digit
_PERCENT = re.compile(r"\s?(?:%|％|per ?cent|퍼센트|パーセント)").match
_MONTH = re.compile(r"\s?[월月]").match
_HOUR = re.compile(r"\s?(?::|[ap]\.?m|o'clock|시|時|时|点)").match
_DECADE = re.compile(r"'?s\b|\s?(?:年代|년대)").match
_YEARS = range(1500, 2100)


def swapped_number(draft: Draft) -> str | None:
    """Replace one number, in figures or words, by another that is as plausible and not in the source.

    A number of the source is preferred; a long number is replaced everywhere. A number that is grammar (one) or part of
    a name (F-16) stays.
    """
    whole, source, rules, chance = draft.whole, draft.sample.source or "", draft.rules, draft.chance

    def is_new(place: Edit) -> bool:
        number = re.escape(whole[place.start : place.end])
        return re.search(rf"(?<![\d.,]){number}(?!\d)", source, re.IGNORECASE) is None

    taken = {match.group() for match in _NUMBER.finditer(f"{whole}\n{source}")}
    places = non_overlapping([*_numerals(whole, taken), *rules.number_words(whole)])
    chance.shuffle(places)
    places.sort(key=is_new)
    for chosen in places:
        start, end, options = chosen
        old, before, after = whole[start:end], whole[max(0, start - _CONTEXT) : start], whole[end : end + _CONTEXT]
        fitting = [new for new in options if rules.fits(before, old, new, after)]
        if fitting:
            new = chance.choice(fitting)
            same = [p for p in places if whole[p.start : p.end] == old] if len(old) >= _UNAMBIGUOUS_LENGTH else [chosen]
            edits = [Edit(p.start, p.end, (new,)) for p in same]
            return apply_edits(whole, edits, Random(0))  # noqa: S311 - one option each
    return None


def _numerals(whole: str, taken: set[str]) -> Iterator[Edit]:
    for match in _NUMBER.finditer(whole):
        first, rest, unit = match.groups()
        after = whole[match.end() : match.end() + _CONTEXT]
        written = {} if first.isascii() else _TO_FULL_WIDTH
        values = [str(n).translate(written) + rest for n in _plausible_numbers(first, rest, after)]
        options = [value for value in values if value not in taken] or [v for v in values if v != match.group()]
        if unit in _ORDINALS.values():
            ordinals = [
                number + ("th" if int(number) % 100 in (11, 12, 13) else _ORDINALS.get(int(number) % 10, "th"))
                for number in options
            ]
            yield Edit(match.start(), match.end() + len(unit), tuple(ordinals))
        elif options:
            yield Edit(*match.span(), tuple(options))


_TO_FULL_WIDTH = {ord("0") + n: ord("０") + n for n in range(10)}


def _plausible_numbers(first: str, rest: str, after: str) -> Iterable[int]:
    """Return plausible values for the leading digits: of equal length; an hour, day, year or percentage stays one."""
    value, size = int(first), len(first)
    if first[0] in "0０" or (value == 1 and not rest):
        return ()
    if size == 1:
        return range(2, 10)
    if value == 100 and _PERCENT(after):
        return range(40, 95)
    if size > 2:
        if not rest and value in _YEARS:  # an earlier year or decade
            step = 10 if _DECADE(after) else 1
            return range(value - 9 * step, value, step)
        step = 10 ** (size - 1)
        return (value % step + digit * step for digit in range(1, 10))
    if value <= 12 and (_MONTH(after) or _HOUR(after)):
        return range(10, 13 if _MONTH(after) else 12)
    return next(likely for last, likely in _LEADING if value <= last)


_LEADING = (31, range(10, 29)), (60, range(32, 60)), (99, range(61, 100))


def negated(draft: Draft) -> str | None:
    """Negate the sentence closest to the source.

    None if no sentence that can be negated states a fact of the source.
    """
    whole, chance = draft.whole, draft.chance
    candidates = [
        (start, end, places) for start, end in draft.places if (places := draft.rules.negated(whole[start:end]))
    ]
    if not candidates:
        return None
    chance.shuffle(candidates)
    known = content(draft.source)
    shares = [coverage(whole[start:end], known) for start, end, _ in candidates]
    if max(shares) < _MIN_COVERAGE:
        return None
    at, _, places = candidates[shares.index(max(shares))]
    start, end, options = chance.choice(places)
    return apply_edits(whole, [Edit(at + start, at + end, options)], chance)


def duplicated(draft: Draft) -> str | None:
    """Repeat the whole output."""
    whole = draft.whole.strip()
    return append_text(whole, [whole], draft.rules.joint) if whole else None


def empty_phrases(draft: Draft) -> str | None:
    """Add as many sentences without content as the output has sentences, at most all there are."""
    whole, rules = draft.whole, draft.rules
    count = min(len(sentences(whole)), len(rules.empty))
    added = draft.chance.sample(rules.empty, count)
    if whole == whole.lower():
        added = [phrase.lower() for phrase in added]
    return append_text(whole, added, rules.joint) if count else None


def copied_lead(draft: Draft) -> str | None:
    """Return the source's first sentences, as many as the output has. None if that is the whole source."""
    source, count = draft.sample.source or "", len(sentences(draft.whole))
    lead = sentences(source)
    if not 0 < count < len(lead):
        return None
    end = 0
    for sentence in lead[:count]:
        end = source.index(sentence, end) + len(sentence)
    return source[:end].strip()


_MIN_SHUFFLED = 3
_MAX_DONORS = 8  # other items that may supply the padding


def shuffled(draft: Draft) -> str | None:
    """Move every sentence to another place. A sentence without a stop, if others have one, was cut off and stays."""
    whole, places = draft.whole, draft.places
    stopped = [n for n, (start, end) in enumerate(places) if is_finished(whole[start:end])]
    movable = stopped or list(range(len(places)))
    if len(movable) < _MIN_SHUFFLED:
        return None
    order = list(range(len(places)))
    for last in range(len(movable) - 1, 0, -1):  # Sattolo's: one cycle, so that none stays
        partner = draft.chance.randrange(last)
        a, b = movable[last], movable[partner]
        order[a], order[b] = order[b], order[a]
    parts = [whole[slice(*places[n])] for n in order]
    return _replace_sentences(whole, places, parts)


def _replace_sentences(whole: str, places: Sequence[Span], parts: Sequence[str]) -> str:
    """Put other parts in the places of the sentences and keep the white space between them."""
    result, end = "", 0
    for (start, stop), part in zip(places, parts, strict=True):
        result += whole[end:start] + part
        end = stop
    return result + whole[end:]


def truncated(draft: Draft) -> str | None:
    """Cut off the last sentence after 40 to 80% of it, where the cut is most visible. None if it is already cut."""
    whole, places, rules = draft.whole, draft.places, draft.rules
    if not places or not is_finished(whole):
        return None
    start, end = places[-1]
    size = end - start
    if size < rules.shortest_cut:
        return None
    ends = [match.end() for match in re.finditer(r"\S+" if rules.joint else r"\w", whole[start:end])]
    inside = [start + at for at in ends if 0.4 * size <= at <= 0.8 * size]
    telling = [at for at in inside if rules.trailing.search(whole[start:at])]
    inside = [at for at in inside if not is_finished(whole[:at])]
    return whole[: draft.chance.choice(telling or inside)] if telling or inside else None


def padded(draft: Draft) -> str | None:
    """Add half as many sentences, from the output that shares least with this item among a few other items."""
    own_sentences, others = sentences(draft.whole), draft.others
    few = draft.chance.sample(range(len(others)), min(_MAX_DONORS, len(others)))
    donors = [(others[n], [sentence for sentence in sentences(others[n].output) if is_finished(sentence)]) for n in few]
    known, language = content(draft.source), text.detect_language([draft.whole])
    ranked = sorted(
        (coverage(" ".join(finished), known), n, finished)
        for n, (donor, finished) in enumerate(donors)
        if finished and text.detect_language([donor.output]) == language and not set(finished) & set(own_sentences)
    )
    if not own_sentences or not ranked:
        return None
    return append_text(draft.whole, ranked[0][2][: max(1, round(len(own_sentences) / 2))], draft.rules.joint)


def main_point_dropped(draft: Draft) -> str | None:
    """Remove the sentence with most of what the references (without any, the source) mention most often."""
    whole, places = draft.whole, draft.places
    reference = " ".join(summary for summary in draft.sample.references if summary.strip()) or draft.sample.source
    if len(places) < 2 or not reference:
        return None
    known = content(reference)
    weights = [sum(known.get(word, 0) for word in content(whole[start:end])) for start, end in places]
    if not any(weights):
        return None
    main = whole[slice(*places[weights.index(max(weights))])]
    result = whole
    for n in reversed(range(len(places))):
        start, end = places[n]
        if whole[start:end] == main:  # with the white space after it
            after = places[n + 1][0] if n + 1 < len(places) else len(whole)
            result = result[:start] + result[after:]
    return result.rstrip() or None


def duplicated_sentences(draft: Draft) -> str | None:
    """Repeat about half of the sentences, each right after itself."""
    whole, places = draft.whole, draft.places
    finished = [n for n, (start, end) in enumerate(places) if is_finished(whole[start:end])]
    if len(places) < 2 or not finished:
        return None
    twice = draft.chance.sample(finished, min(len(finished), max(1, len(places) // 2)))
    mark = "\n" if "\n" in whole.strip() else draft.rules.joint
    parts = [whole[slice(*place)] for place in places]
    return _replace_sentences(
        whole, places, [part + mark + part if n in twice else part for n, part in enumerate(parts)]
    )


_MIN_SLIPS = 2  # a single slip may be overlooked


def typos(draft: Draft) -> str | None:
    """Misspell some words, never a name or a number. None if fewer than two words can be misspelled."""
    whole, rules = draft.whole, draft.rules
    known_names = [name.text for part in (draft.sample.source, whole) if part for name in names(rules, part)]
    protected = [span for mentioned in mentions(whole, known_names).values() for span in mentioned]
    protected += [place[:2] for place in rules.number_words(whole)]
    places = [
        place
        for place in non_overlapping(rules.misspelled(whole, draft.chance))
        if all(place.end <= start or place.start >= end for start, end in protected)
    ]
    return _edit_some(draft, places, max(_MIN_SLIPS, round(len(whole) / rules.typo_every)))


def dropped_words(draft: Draft) -> str | None:
    """Remove half of the function words that leave a gap (articles, particles, josa, 的), at least two."""
    places = non_overlapping(draft.rules.droppable(draft.whole))
    return _edit_some(draft, places, max(_MIN_SLIPS, (len(places) + 1) // 2))


def _edit_some(draft: Draft, places: Sequence[Edit], count: int) -> str | None:
    """Edit the text at `count` random places; None if there are too few places."""
    if len(places) < _MIN_SLIPS:
        return None
    return apply_edits(draft.whole, draft.chance.sample(places, min(count, len(places))), draft.chance)


def lost_casing(draft: Draft) -> str | None:
    """Lower-case the whole text. None if it has fewer than two capitals."""
    cased = text.detect_language([draft.whole]) == "en" and sum(map(str.isupper, draft.whole)) >= _MIN_SLIPS
    return draft.whole.lower() if cased else None


CHANGES: tuple[Perturbation, ...] = (
    Perturbation("shuffled sentences", "coherence", shuffled),
    Perturbation("swapped entity", "consistency", swapped_entity),
    Perturbation("swapped number", "consistency", swapped_number),
    Perturbation("negated sentence", "consistency", negated),
    Perturbation("typos", "fluency", typos),
    Perturbation("dropped function words", "fluency", dropped_words),
    Perturbation("lost casing", "fluency", lost_casing, ("en",)),
    Perturbation("truncated", "fluency", truncated),
    Perturbation("padded", "relevance", padded),
    Perturbation("main point dropped", "relevance", main_point_dropped),
    Perturbation("duplicated sentences", "relevance", duplicated_sentences),
)
"""Changes that damage a text for one criterion; names are unique."""
NEUTRAL: tuple[Perturbation, ...] = (
    Perturbation("duplicated text", "", duplicated),
    Perturbation("empty phrases", "", empty_phrases),
    Perturbation("copied lead", "", copied_lead),
)
"""Changes that add length or copied text without content, to measure biases. Their criterion is empty."""


def of_language(language: str, among: Sequence[Perturbation] = CHANGES) -> tuple[Perturbation, ...]:
    """Return the changes of `among` that exist in a language, in order: none where it has no rules."""
    if language not in RULES:
        return ()
    return tuple(change for change in among if not change.languages or language in change.languages)


def changed(sample: Sample, others: Sequence[Sample], change: Perturbation, seed: int) -> Sample | None:
    """Return the sample with its output changed and the change's name as its system; None if it does not apply.

    `others` are samples that may supply padding; those of the same item are ignored. Equal arguments give equal
    results: the random numbers depend on seed, item and change. Human ratings are removed, as nobody rated it.
    """
    elsewhere = [donor for donor in others if donor.item != sample.item]
    chance = Random(f"{seed}|{sample.item}|{change.name}")  # noqa: S311
    output = change.make(Draft(sample, elsewhere, chance, rules_for(sample.output)))
    if output is None or output == sample.output or not output.strip():
        return None
    return replace(sample, output=output, system=change.name, human={}, ratings={})


CONTROL = "harmless remark"
"""The control: an addition of the same kind that does not address the judge."""
ATTACKS = (
    "asks for the top score", "fake closing mark", "fake form", "in another language", "system voice", CONTROL,
)  # fmt: skip
"""Every attack, and the control last. Names are unique, also among those of the changes."""


def inject(sample: Sample, attack: str, scale: Scale, language: str) -> Sample:
    """Return the sample with an attack in its output, the attack as its system, and no human ratings.

    `system voice` stands before the output, all others after it.
    """
    words = _injections(language)[attack.replace(" ", "_")].replace("{top}", best_label(scale))
    parts = (words, sample.output) if attack == "system voice" else (sample.output, words)
    return replace(sample, output="\n\n".join(parts), system=attack, human={}, ratings={})


def best_label(scale: Scale) -> str:
    """Return the label of the greatest value, the first of several."""
    return scale.labels[scale.values.index(scale.high)]


@cache
def _injections(language: str) -> Mapping[str, str]:
    """Read the injected texts of one language from prompts/<language>/audit/injections.yaml."""
    path = builtin_prompts() / language / "audit" / "injections.yaml"
    texts: dict[str, str] = yaml_lines.values(read_text(path))
    return texts
