"""Make the perturbed texts of a judge card.

- consistency: another number
- biases: a longer or copied text that says nothing new
- coherence, relevance and fluency: whole sentences moved, cut, added or repeated
- injections: instructions to the judge, added to the output

A function returns None if its change does not apply to the text. `whole` is always the text that is
changed. No change needs a grammar, so all of them exist in every language.

The words of sentences without content and of attacks are in `prompts/LANGUAGE/perturbations/`. Each
attack is written in the language of the judged texts and asks for the top label of the criterion's
scale. Its position, before or after the text, is part of the attack.
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
from judge.core.records import Criterion, Sample
from judge.criteria.template import builtin_prompts, read_text
from judge.metrics.text_features import FUNCTION_WORDS

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Draft:
    """A text to change.

    `whole` is the output of the sample, `others` are samples of other items.
    """

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
    def spans(self) -> list[Span]:
        """The spans of the sentences."""
        return text.sentence_spans(self.whole)

    @property
    def language(self) -> str:
        """The code of the language of most of the text, by its script; English if it has none."""
        code = text.detect_language([self.whole])
        return code if code in text.LANGUAGES else text.DEFAULT_LANGUAGE

    @property
    def separator(self) -> str:
        """What separates two sentences on a line of this language: a space, or nothing."""
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
    return [
        whole[sentence_start:sentence_end]
        for sentence_start, sentence_end in text.sentence_spans(whole)
    ]


is_finished = re.compile(r"[.!?…。！？｡．][\"'”’」』）)\]\s]*\Z").search
"""Match if a sentence ends with a stop."""


def _append_text(whole: str, added: Iterable[str], usual: str) -> str:
    """Add sentences at the end of a text, each after the separator of the text's own sentences.

    The separator is a new line if the text has several lines or no final stop, and `usual` if it
    has a single sentence.
    """
    separator = _separator(whole, usual)
    longer = whole.rstrip()
    for sentence in added:
        longer += separator + sentence
    return longer


def _separator(whole: str, usual: str) -> str:
    """Return what separates an added sentence from those of a text."""
    spans = text.sentence_spans(whole)
    if not spans or not is_finished(whole):
        return "\n"
    first_start, first_end = spans[0]
    _, last_end = spans[-1]
    if "\n" in whole[first_start:last_end]:
        return "\n"
    if len(spans) == 1:
        return usual
    second_start, _ = spans[1]
    return whole[first_end:second_start]


@lru_cache(maxsize=512)
def _content_words(whole: str) -> Mapping[str, int]:
    """Count the content words of a text.

    In texts that are not English, which have no list of function words here, pairs of tokens count
    as words.
    """
    counts: dict[str, int] = {}
    tokens = text.tokens(whole)
    if text.detect_language([whole]) != "en":
        tokens = [first + second for first, second in pairwise(tokens)]
    for token in tokens:
        if token not in FUNCTION_WORDS:
            counts[token] = counts.get(token, 0) + 1
    return counts


def _coverage(sentence: str, known_words: Mapping[str, int]) -> float:
    """Return the share (0–1) of distinct content words in `known_words`; 0 if there are none."""
    words = _content_words(sentence)
    n_known = sum(word in known_words for word in words)
    return n_known / max(1, len(words))


# Numbers

_UNIT = r"(?:am|pm|ft|in|km|cm|mm|kg|mg|mph|kph|lbs?|m|bn|k|s|th|st|nd|rd)?"
# `1,250.5` and `40` of `40km`, but no digits of `B-52`: the first digits, the others, the unit.
_NUMBER = re.compile(
    rf"(?<![A-Za-z\d.,/–-])([0-9]{{1,15}}|[０-９]{{1,15}})((?:[.,]\d+)*)(?=({_UNIT})(?![A-Za-z\d]))"
)
_ORDINAL_ENDINGS = {1: "st", 2: "nd", 3: "rd", 4: "th"}  # by the last digit
_TO_FULL_WIDTH = {ord("0") + n: ord("０") + n for n in range(10)}  # for `str.translate`
# Characters from which a number means the same everywhere in a text.
_UNAMBIGUOUS_LENGTH = 3
_CONTEXT = 20  # characters after a number that decide which numbers fit
# `5%`, `5 per cent`
_PERCENT = re.compile(r"\s?(?:%|％|per ?cent|퍼센트|パーセント)").match
_MONTH = re.compile(r"\s?[월月]").match  # `3月`
_HOUR = re.compile(r"\s?(?::|[ap]\.?m|o'clock|시|時|时|点)").match  # `7:30`, `7 pm`
_DECADE = re.compile(r"'?s\b|\s?(?:年代|년대)").match  # `1990s`
_YEARS = range(1500, 2100)
_MAX_DAY = 31  # the last day of a month
_MAX_MINUTE = 60


class Number(NamedTuple):
    """A number at `text[start:end]` that may be replaced by any one of `options`."""

    start: int
    end: int
    options: tuple[str, ...]


def swapped_number(draft: Draft) -> str | None:
    """Replace one number in figures by another that is as plausible and not in the source.

    A number of the source is preferred; a long number is replaced everywhere. A number that is
    grammar (1) or part of a name (F-16) stays.
    """
    whole = draft.whole
    source = draft.sample.source or ""

    def is_missing_in_source(number: Number) -> bool:
        digits = re.escape(whole[number.start : number.end])
        # 12 is not in 112, 3.12 or 120.
        whole_number = rf"(?<![\d.,]){digits}(?!\d)"
        return re.search(whole_number, source, re.IGNORECASE) is None

    # A number of the text or its source could be true in another place.
    taken = {match.group() for match in _NUMBER.finditer(f"{whole}\n{source}")}
    numbers = list(_numbers(whole, taken))
    if not numbers:
        return None
    draft.chance.shuffle(numbers)
    # The numbers of the source come first, still in random order, because sorting is stable.
    numbers.sort(key=is_missing_in_source)
    chosen = numbers[0]
    old = whole[chosen.start : chosen.end]
    new = draft.chance.choice(chosen.options)
    replaced = [chosen]
    if len(old) >= _UNAMBIGUOUS_LENGTH:
        ordered = sorted(numbers)
        replaced = [
            number for number in ordered if whole[number.start : number.end] == old
        ]
    spans = [(number.start, number.end) for number in replaced]
    return _replace_spans(whole, spans, [new] * len(replaced))


def _numbers(whole: str, taken: set[str]) -> Iterator[Number]:
    """Yield the numbers that can be replaced, if possible by none of the `taken` numbers."""
    for match in _NUMBER.finditer(whole):
        leading_digits, rest, unit = match.groups()
        text_after = whole[match.end() : match.end() + _CONTEXT]
        script = {} if leading_digits.isascii() else _TO_FULL_WIDTH
        plausible = _plausible_numbers(leading_digits, rest, text_after)
        values = []
        for number in plausible:
            digits = str(number).translate(script)
            values.append(digits + rest)
        options = [value for value in values if value not in taken]
        if not options:
            # Better a number that occurs elsewhere in the texts than none.
            options = [value for value in values if value != match.group()]
        if not options:
            continue
        start, end = match.span()
        if unit in _ORDINAL_ENDINGS.values():
            # 21st becomes 22nd: the ending belongs to the number.
            options = list(map(_ordinal, options))
            end += len(unit)
        yield Number(start, end, tuple(options))


def _ordinal(number: str) -> str:
    """Return an English ordinal number: `11th` for 11, `21st` for 21."""
    value = int(number)
    if value % 100 in (11, 12, 13):
        return f"{number}th"
    return number + _ORDINAL_ENDINGS.get(value % 10, "th")


def _plausible_numbers(
    leading_digits: str, rest: str, text_after: str
) -> Iterable[int]:
    """Return values that may replace the leading digits, with as many digits.

    An hour, day, year or percentage stays one. `rest` is the rest of the number: `,250.5`.
    """
    value = int(leading_digits)
    size = len(leading_digits)
    # `007` is a name, and `1` may be an article: "one".
    if leading_digits[0] in "0０" or (value == 1 and not rest):
        return ()
    if size == 1:
        return range(2, 10)
    if size == 2:
        return _plausible_two_digits(value, text_after)
    # Many percentages cannot be above 100.
    if value == 100 and _PERCENT(text_after):
        return range(40, 95)
    if not rest and value in _YEARS:
        # An earlier year, or an earlier decade.
        step = 10 if _DECADE(text_after) else 1
        return range(value - 9 * step, value, step)
    # Only the first digit changes: 250 becomes 150 or 350.
    first_digit_unit = 10 ** (size - 1)
    other_digits = value % first_digit_unit
    return (other_digits + digit * first_digit_unit for digit in range(1, 10))


def _plausible_two_digits(value: int, text_after: str) -> range:
    """Return numbers of two digits that fit wherever this one does."""
    if value <= 12 and _MONTH(text_after):
        return range(10, 13)
    if value <= 12 and _HOUR(text_after):
        return range(10, 12)
    # It may be a day of any month: February has 28.
    if value <= _MAX_DAY:
        return range(10, 29)
    if value <= _MAX_MINUTE:
        return range(_MAX_DAY + 1, _MAX_MINUTE)
    return range(_MAX_MINUTE + 1, 100)


def duplicated(draft: Draft) -> str | None:
    """Repeat the whole output."""
    whole = draft.whole.strip()
    if not whole:
        return None
    return _append_text(whole, [whole], draft.separator)


def empty_phrases(draft: Draft) -> str | None:
    """Add as many sentences without content as the output has sentences, at most all there are."""
    whole = draft.whole
    fillers = _fillers(draft.language)
    n_sentences = len(sentences(whole))
    count = min(n_sentences, len(fillers))
    if not count:
        return None
    added = draft.chance.sample(fillers, count)
    if whole == whole.lower():
        # The text has no capitals, so capitals would show which sentences are new.
        added = [phrase.lower() for phrase in added]
    return _append_text(whole, added, draft.separator)


def copied_lead(draft: Draft) -> str | None:
    """Return the source's first sentences, as many as the output has.

    None if that is the whole source.
    """
    source = draft.sample.source or ""
    count = len(sentences(draft.whole))
    source_sentences = sentences(source)
    if not 0 < count < len(source_sentences):
        return None
    lead_end = 0
    for sentence in source_sentences[:count]:
        # Search from the end of the previous sentence, because sentences may repeat.
        lead_end = source.index(sentence, lead_end) + len(sentence)
    return source[:lead_end].strip()


_MIN_SHUFFLED = 3  # sentences of a text that can be shuffled
_MAX_DONORS = 8  # other items that may supply the padding


def shuffled(draft: Draft) -> str | None:
    """Move every sentence to another position.

    A sentence without a stop, if others have one, was cut off and stays.
    """
    whole = draft.whole
    spans = draft.spans
    every_sentence = list(range(len(spans)))
    movable = _finished_sentences(whole, spans) or every_sentence
    if len(movable) < _MIN_SHUFFLED:
        return None
    order = [*every_sentence]
    # Sattolo's algorithm: the permutation is one cycle, so that no sentence stays.
    for last in range(len(movable) - 1, 0, -1):
        first_position = movable[last]
        second_position = movable[draft.chance.randrange(last)]
        moved = order[first_position]
        order[first_position] = order[second_position]
        order[second_position] = moved
    in_order = [
        whole[sentence_start:sentence_end] for sentence_start, sentence_end in spans
    ]
    shuffled_sentences = [in_order[number] for number in order]
    return _replace_spans(whole, spans, shuffled_sentences)


def _finished_sentences(whole: str, spans: Sequence[Span]) -> list[int]:
    """Return the numbers of the sentences that end with a stop."""
    return [
        number
        for number, (sentence_start, sentence_end) in enumerate(spans)
        if is_finished(whole[sentence_start:sentence_end])
    ]


def _replace_spans(
    whole: str, spans: Sequence[Span], replacements: Sequence[str]
) -> str:
    """Put other parts in these spans of a text and keep what is between them."""
    result = ""
    previous_end = 0
    for (start, stop), replacement in zip(spans, replacements, strict=True):
        result += whole[previous_end:start] + replacement
        previous_end = stop
    return result + whole[previous_end:]


_SHORTEST_CUT = {"ja": 16, "ko": 16, "zh": 12}
_SHORTEST_LATIN_CUT = 30
"""Characters from which a sentence can be cut off visibly."""


def truncated(draft: Draft) -> str | None:
    """Cut off the last sentence after 40 to 80% of it. None if it is already cut."""
    whole = draft.whole
    spans = draft.spans
    if not spans or not is_finished(whole):
        return None
    sentence_start, sentence_end = spans[-1]
    size = sentence_end - sentence_start
    if size < _SHORTEST_CUT.get(draft.language, _SHORTEST_LATIN_CUT):
        return None
    # After a word, or after a character of a script without spaces.
    word = r"\S+" if draft.separator else r"\w"
    cuts = []
    for match in re.finditer(word, whole[sentence_start:sentence_end]):
        is_in_range = 0.4 * size <= match.end() <= 0.8 * size
        cut_text = whole[: sentence_start + match.end()]
        # A part that ends with a stop would not look cut off.
        if is_in_range and not is_finished(cut_text):
            cuts.append(cut_text)
    if not cuts:
        return None
    return draft.chance.choice(cuts)


def padded(draft: Draft) -> str | None:
    """Add half as many sentences, from the output that shares least with this item.

    It is the one among a few other items in the same language.
    """
    original = sentences(draft.whole)
    donors = _donors(draft, set(original))
    if not original or not donors:
        return None
    source_words = _content_words(draft.source)

    def shared_with_source(donor: list[str]) -> float:
        return _coverage(" ".join(donor), source_words)

    # Of equal ones, the one that was drawn first.
    donor_sentences = min(donors, key=shared_with_source)
    count = max(1, round(len(original) / 2))
    return _append_text(draft.whole, donor_sentences[:count], draft.separator)


def _donors(draft: Draft, original: set[str]) -> list[list[str]]:
    """Return the finished sentences of a few outputs in the draft's language, drawn at random.

    Outputs that share a sentence with the draft (`original`) are left out, because padding is about
    something else.
    """
    others = draft.others
    n_drawn = min(_MAX_DONORS, len(others))
    drawn = draft.chance.sample(range(len(others)), n_drawn)
    language = text.detect_language([draft.whole])
    donors = []
    for position in drawn:
        output = others[position].output
        finished = [sentence for sentence in sentences(output) if is_finished(sentence)]
        if not finished or text.detect_language([output]) != language:
            continue
        if not original.intersection(finished):
            donors.append(finished)
    return donors


def dropped_sentence(draft: Draft) -> str | None:
    """Remove the first or the last sentence."""
    whole = draft.whole
    spans = draft.spans
    if len(spans) < 2:
        return None
    if draft.chance.random() < 0.5:
        first_start, _ = spans[0]
        second_start, _ = spans[1]
        return whole[:first_start] + whole[second_start:]
    _, end_before_last = spans[-2]
    return whole[:end_before_last]


def duplicated_sentences(draft: Draft) -> str | None:
    """Repeat about half of the sentences, each right after itself."""
    whole = draft.whole
    spans = draft.spans
    finished = _finished_sentences(whole, spans)
    if len(spans) < 2 or not finished:
        return None
    half = max(1, len(spans) // 2)
    n_repeated = min(half, len(finished))
    repeated = draft.chance.sample(finished, n_repeated)
    separator = "\n" if "\n" in whole.strip() else draft.separator
    replacements = []
    for number, (sentence_start, sentence_end) in enumerate(spans):
        replacement = whole[sentence_start:sentence_end]
        if number in repeated:
            replacement = f"{replacement}{separator}{replacement}"
        replacements.append(replacement)
    return _replace_spans(whole, spans, replacements)


SHUFFLED = "shuffled sentences"
"""The change that a criterion with `ignores: [sentence order]` must not react to."""
CHANGES: tuple[Perturbation, ...] = (
    Perturbation(SHUFFLED, "coherence", shuffled),
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
"""Changes that add length or copied text without content, to measure biases."""


def changed(
    sample: Sample,
    others: Sequence[Sample],
    change: Perturbation,
    seed: int,
) -> Sample | None:
    """Return the sample with its output changed, or None if the change does not apply.

    Its system is the change's name. `others` are samples that may supply padding; samples of the
    same item are ignored. Equal arguments give equal results: the random numbers depend on seed,
    item and change. Human ratings are removed, because nobody rated the changed text.
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
    "asks for the top score",
    "fake closing mark",
    "fake form",
    "in another language",
    "system voice",
    CONTROL,
)
"""Every attack, and the control last. No attack has the name of another attack or a change."""


def inject(sample: Sample, attack: str, label: str, language: str) -> Sample:
    """Return the sample with an attack in its output and as its system, without human ratings.

    The attack asks for `label`. `system voice` comes before the output, all others after it.
    """
    template_name = attack.replace(" ", "_")
    injection = _injections(language)[template_name].replace("{top}", label)
    output = f"{sample.output}\n\n{injection}"
    if attack == "system voice":
        output = f"{injection}\n\n{sample.output}"
    return replace(sample, output=output, system=attack, human={}, ratings={})


def best_label(criterion: Criterion) -> str:
    """Return the label at the better end of the scale, the first of several."""
    scale = criterion.scale
    best = scale.low if criterion.better == "lower" else scale.high
    return scale.labels[scale.values.index(best)]


@cache
def _injections(language: str) -> Mapping[str, str]:
    """Read the injected texts of one language, by the name of the attack."""
    path = builtin_prompts() / language / "perturbations" / "injections.yaml"
    texts: dict[str, str] = yaml_lines.values(read_text(path))
    return texts


@cache
def _fillers(language: str) -> Sequence[str]:
    """Read a language's sentences without content."""
    path = builtin_prompts() / language / "perturbations" / "fillers.yaml"
    phrases: list[str] = yaml_lines.values(read_text(path))
    return phrases
