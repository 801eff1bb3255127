"""Make the perturbed texts of `judge audit`.

- consistency: another number
- biases: a longer or copied text that says nothing new
- coherence, relevance and fluency: whole sentences moved, cut, added or repeated
- injections: instructions to the judge, added to the output

A function returns None if its change does not apply to the text. `whole` is always the text that is changed. No change
needs a grammar, so all of them exist in every language.

What is added in words is from `prompts/LANGUAGE/audit/`: the sentences without content, and the attacks. Each attack is
written in the language of the judged texts and asks for the top label of the criterion's scale. Where it stands, before
or after the text, is part of the attack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from random import Random
from typing import NamedTuple

from judge import text
from judge.core import yaml_lines
from judge.core.records import Sample, Scale
from judge.criteria.template import builtin_prompts, read_text
from judge.metrics.text_features import FUNCTION_WORDS

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Draft:
    """A text to change: `whole` is the output of the sample, `others` are samples of other items."""

    sample: Sample
    others: Sequence[Sample]
    chance: Random

    @property
    def whole(self) -> str:
        return self.sample.output

    @property
    def source(self) -> str:
        """The source, or the output itself if there is none."""
        return self.sample.source or self.sample.output

    @property
    def places(self) -> list[Span]:
        """The places of the sentences."""
        return text.sentence_spans(self.whole)

    @property
    def language(self) -> str:
        """The code of the language that most of the text is written in, by its script; English if it has none."""
        code = text.detect_language([self.whole])
        return code if code in text.LANGUAGES else text.DEFAULT_LANGUAGE

    @property
    def joint(self) -> str:
        """What separates sentences."""
        return " " if text.LANGUAGES[self.language].spaced else ""


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One way to change a text. `criterion` is the quality it damages; empty for a neutral change.

    `make` returns the changed output, None if the change does not apply.
    """

    name: str
    criterion: str
    make: Callable[[Draft], str | None]


def sentences(whole: str) -> list[str]:
    """Return the sentences of each line, none of them empty."""
    return [whole[start:end] for start, end in text.sentence_spans(whole)]


is_finished = re.compile(r"[.!?…。！？｡．][\"'”’」』）)\]\s]*\Z").search
"""Match if a sentence ends with a stop."""


def append_text(whole: str, added: Iterable[str], usual: str) -> str:
    """Add sentences at the end of a text, with its own separator; on a new line if it has no final stop."""
    places = text.sentence_spans(whole)
    mark = whole[places[0][1] : places[1][0]] if len(places) > 1 else usual
    if not places or not is_finished(whole) or "\n" in whole[places[0][0] : places[-1][1]]:
        mark = "\n"
    return whole.rstrip() + "".join(mark + sentence for sentence in added)


@lru_cache(maxsize=512)
def content(whole: str) -> Mapping[str, int]:
    """Count the content words of a text; in texts that are not English, pairs of tokens count as words."""
    counts: dict[str, int] = {}
    tokens = text.tokens(whole)
    if text.detect_language([whole]) != "en":
        tokens = [a + b for a, b in pairwise(tokens)]
    for token in tokens:
        if token not in FUNCTION_WORDS:
            counts[token] = counts.get(token, 0) + 1
    return counts


def coverage(sentence: str, known: Mapping[str, int]) -> float:
    """Return the share (0–1) of the distinct content words that are in `known`; 0 if there are none."""
    words = content(sentence)
    return sum(word in known for word in words) / max(1, len(words))


# Numbers

_UNIT = r"(?:am|pm|ft|in|km|cm|mm|kg|mg|mph|kph|lbs?|m|bn|k|s|th|st|nd|rd)?"
_NUMBER = re.compile(
    rf"(?<![A-Za-z\d.,/–-])([0-9]{{1,15}}|[０-９]{{1,15}})((?:[.,]\d+)*)(?=({_UNIT})(?![A-Za-z\d]))"
)
_ORDINALS = {1: "st", 2: "nd", 3: "rd", 4: "th"}  # by the last digit
_UNAMBIGUOUS_LENGTH = 3  # characters from which a number means the same everywhere in a text
_CONTEXT = 20  # characters after a number that decide which numbers fit
_PERCENT = re.compile(r"\s?(?:%|％|per ?cent|퍼센트|パーセント)").match
_MONTH = re.compile(r"\s?[월月]").match
_HOUR = re.compile(r"\s?(?::|[ap]\.?m|o'clock|시|時|时|点)").match
_DECADE = re.compile(r"'?s\b|\s?(?:年代|년대)").match
_YEARS = range(1500, 2100)


class Number(NamedTuple):
    """A number at `text[start:end]` that may be replaced by any one of `options`."""

    start: int
    end: int
    options: tuple[str, ...]


def swapped_number(draft: Draft) -> str | None:
    """Replace one number in figures by another that is as plausible and not in the source.

    A number of the source is preferred; a long number is replaced everywhere. A number that is grammar (1) or part of a
    name (F-16) stays.
    """
    whole, source, chance = draft.whole, draft.sample.source or "", draft.chance

    def is_new(place: Number) -> bool:
        number = re.escape(whole[place.start : place.end])
        return re.search(rf"(?<![\d.,]){number}(?!\d)", source, re.IGNORECASE) is None

    taken = {match.group() for match in _NUMBER.finditer(f"{whole}\n{source}")}
    places = list(_numbers(whole, taken))
    if not places:
        return None
    chance.shuffle(places)
    places.sort(key=is_new)
    chosen = places[0]
    old = whole[chosen.start : chosen.end]
    new = chance.choice(chosen.options)
    same = [chosen]
    if len(old) >= _UNAMBIGUOUS_LENGTH:
        same = [place for place in sorted(places) if whole[place.start : place.end] == old]
    return _replace_spans(whole, [place[:2] for place in same], [new] * len(same))


def _numbers(whole: str, taken: set[str]) -> Iterator[Number]:
    for match in _NUMBER.finditer(whole):
        first, rest, unit = match.groups()
        after = whole[match.end() : match.end() + _CONTEXT]
        written = {} if first.isascii() else _TO_FULL_WIDTH
        values = [str(n).translate(written) + rest for n in _plausible_numbers(first, rest, after)]
        options = [value for value in values if value not in taken] or [
            v for v in values if v != match.group()
        ]
        if not options:
            continue
        if unit in _ORDINALS.values():
            ordinals = [
                number
                + (
                    "th"
                    if int(number) % 100 in (11, 12, 13)
                    else _ORDINALS.get(int(number) % 10, "th")
                )
                for number in options
            ]
            yield Number(match.start(), match.end() + len(unit), tuple(ordinals))
        else:
            yield Number(*match.span(), tuple(options))


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


def duplicated(draft: Draft) -> str | None:
    """Repeat the whole output."""
    whole = draft.whole.strip()
    return append_text(whole, [whole], draft.joint) if whole else None


def empty_phrases(draft: Draft) -> str | None:
    """Add as many sentences without content as the output has sentences, at most all there are."""
    whole, fillers = draft.whole, _fillers(draft.language)
    count = min(len(sentences(whole)), len(fillers))
    added = draft.chance.sample(fillers, count)
    if whole == whole.lower():
        added = [phrase.lower() for phrase in added]
    return append_text(whole, added, draft.joint) if count else None


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
    return _replace_spans(whole, places, parts)


def _replace_spans(whole: str, places: Sequence[Span], parts: Sequence[str]) -> str:
    """Put other parts in these places of a text and keep what is between them."""
    result, end = "", 0
    for (start, stop), part in zip(places, parts, strict=True):
        result += whole[end:start] + part
        end = stop
    return result + whole[end:]


_SHORTEST_CUT = {"ja": 16, "ko": 16, "zh": 12}
_SHORTEST_LATIN_CUT = 30
"""Characters from which a sentence can be cut off visibly."""


def truncated(draft: Draft) -> str | None:
    """Cut off the last sentence after 40 to 80% of it. None if it is already cut."""
    whole, places = draft.whole, draft.places
    if not places or not is_finished(whole):
        return None
    start, end = places[-1]
    size = end - start
    if size < _SHORTEST_CUT.get(draft.language, _SHORTEST_LATIN_CUT):
        return None
    ends = [
        match.end() for match in re.finditer(r"\S+" if draft.joint else r"\w", whole[start:end])
    ]
    inside = [start + at for at in ends if 0.4 * size <= at <= 0.8 * size]
    inside = [at for at in inside if not is_finished(whole[:at])]
    return whole[: draft.chance.choice(inside)] if inside else None


def padded(draft: Draft) -> str | None:
    """Add half as many sentences, from the output that shares least with this item among a few other items."""
    own_sentences, others = sentences(draft.whole), draft.others
    few = draft.chance.sample(range(len(others)), min(_MAX_DONORS, len(others)))
    donors = [
        (others[n], [sentence for sentence in sentences(others[n].output) if is_finished(sentence)])
        for n in few
    ]
    known, language = content(draft.source), text.detect_language([draft.whole])
    ranked = sorted(
        (coverage(" ".join(finished), known), n, finished)
        for n, (donor, finished) in enumerate(donors)
        if finished
        and text.detect_language([donor.output]) == language
        and not set(finished) & set(own_sentences)
    )
    if not own_sentences or not ranked:
        return None
    return append_text(
        draft.whole, ranked[0][2][: max(1, round(len(own_sentences) / 2))], draft.joint
    )


def dropped_sentence(draft: Draft) -> str | None:
    """Remove the first or the last sentence."""
    whole, places = draft.whole, draft.places
    if len(places) < 2:
        return None
    if draft.chance.random() < 0.5:
        return whole[: places[0][0]] + whole[places[1][0] :]
    return whole[: places[-2][1]]


def duplicated_sentences(draft: Draft) -> str | None:
    """Repeat about half of the sentences, each right after itself."""
    whole, places = draft.whole, draft.places
    finished = [n for n, (start, end) in enumerate(places) if is_finished(whole[start:end])]
    if len(places) < 2 or not finished:
        return None
    twice = draft.chance.sample(finished, min(len(finished), max(1, len(places) // 2)))
    mark = "\n" if "\n" in whole.strip() else draft.joint
    parts = [whole[slice(*place)] for place in places]
    return _replace_spans(
        whole, places, [part + mark + part if n in twice else part for n, part in enumerate(parts)]
    )


CHANGES: tuple[Perturbation, ...] = (
    Perturbation("shuffled sentences", "coherence", shuffled),
    Perturbation("swapped number", "consistency", swapped_number),
    Perturbation("truncated", "fluency", truncated),
    Perturbation("padded", "relevance", padded),
    Perturbation("dropped sentence", "relevance", dropped_sentence),
    Perturbation("duplicated sentences", "relevance", duplicated_sentences),
)
"""Changes that damage a text for one criterion; names are unique."""
NEUTRAL: tuple[Perturbation, ...] = (
    Perturbation("duplicated text", "", duplicated),
    Perturbation("empty phrases", "", empty_phrases),
    Perturbation("copied lead", "", copied_lead),
)
"""Changes that add length or copied text without content, to measure biases. Their criterion is empty."""


def changed(
    sample: Sample, others: Sequence[Sample], change: Perturbation, seed: int
) -> Sample | None:
    """Return the sample with its output changed and the change's name as its system; None if it does not apply.

    `others` are samples that may supply padding; those of the same item are ignored. Equal arguments give equal
    results: the random numbers depend on seed, item and change. Human ratings are removed, as nobody rated it.
    """
    elsewhere = [donor for donor in others if donor.item != sample.item]
    chance = Random(f"{seed}|{sample.item}|{change.name}")  # noqa: S311
    output = change.make(Draft(sample, elsewhere, chance))
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


@cache
def _fillers(language: str) -> Sequence[str]:
    """Read the sentences without content of one language from prompts/<language>/audit/fillers.yaml."""
    phrases: list[str] = yaml_lines.values(
        read_text(builtin_prompts() / language / "audit" / "fillers.yaml")
    )
    return phrases
