"""Changes that add length or copying and say nothing new: what biases are measured by.

Changes by whole sentences, the same in every language.

Changes inside sentences that leave what they say: typos, missing function words, casing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from judge import text
from judge.audits.perturbations.edits import (
    Edit,
    Span,
    append_text,
    apply_edits,
    content,
    coverage,
    is_finished,
    non_overlapping,
    sentences,
    spans,
)
from judge.audits.perturbations.factual import mentions, names
from judge.audits.perturbations.grammars import rules_for
from judge.core.records import Sample


def duplicated(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """The whole output twice."""
    whole = sample.output.strip()
    return append_text(whole, [whole], rules_for(whole).joint) if whole else None


def empty_phrases(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """As many sentences without content as the output has sentences, as far as there are so many."""
    whole, grammar = sample.output, rules_for(sample.output)
    count = min(len(sentences(whole)), len(grammar.empty))
    added = chance.sample(grammar.empty, count)
    if whole == whole.lower():
        added = [one.lower() for one in added]
    return append_text(whole, added, grammar.joint) if count else None


def copied_lead(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """The source's first sentences, as many as the output has. None where that is all of the source."""
    source, count = sample.source or "", len(sentences(sample.output))
    found = sentences(source)
    if not 0 < count < len(found):
        return None
    end = 0
    for sentence in found[:count]:
        end = source.index(sentence, end) + len(sentence)
    return source[:end].strip()


_FEWEST_TO_SHUFFLE = 3
_DONORS = 8  # other items that padding is looked for in
_SHORTEST_CUT = {"en": 30, "ja": 16, "ko": 16, "zh": 12}
"""Characters of a sentence that can be cut so that it shows."""


def shuffled(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """Every sentence in another's place. One that has no stop where others have one was cut off, and stays last."""
    whole, places = sample.output, spans(sample.output)
    stopped = [n for n, (start, end) in enumerate(places) if is_finished(whole[start:end])]
    movable = stopped or list(range(len(places)))
    if len(movable) < _FEWEST_TO_SHUFFLE:
        return None
    order = list(range(len(places)))
    for last in range(len(movable) - 1, 0, -1):  # Sattolo's: one cycle, so that none stays
        other = chance.randrange(last)
        a, b = movable[last], movable[other]
        order[a], order[b] = order[b], order[a]
    parts = [whole[slice(*places[n])] for n in order]
    return _refilled(whole, places, parts)


def _refilled(whole: str, places: Sequence[Span], parts: Sequence[str]) -> str:
    """The text with other parts in its sentences' places, all else as it was."""
    made, end = "", 0
    for (start, stop), part in zip(places, parts, strict=True):
        made += whole[end:start] + part
        end = stop
    return made + whole[end:]


def truncated(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """The last sentence broken off after 40 to 80 % of it, where that shows best. None where it already is."""
    whole, places = sample.output, spans(sample.output)
    if not places or not is_finished(whole):
        return None
    start, end = places[-1]
    size = end - start
    if size < _SHORTEST_CUT[text.detect_language([whole])]:
        return None
    ends = [match.end() for match in re.finditer(r"\S+" if rules_for(whole).joint else r"\w", whole[start:end])]
    inside = [start + at for at in ends if 0.4 * size <= at <= 0.8 * size]
    telling = [at for at in inside if rules_for(whole).trailing(whole[start:at])]
    inside = [at for at in inside if not is_finished(whole[:at])]
    return whole[: chance.choice(telling or inside)] if telling or inside else None


def padded(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """Half as many sentences again, of the output of an item that shares least with this one among a few."""
    own = sentences(sample.output)
    language = text.detect_language([sample.output])
    few = chance.sample(range(len(others)), min(_DONORS, len(others)))
    donors = [(others[n], [one for one in sentences(others[n].output) if is_finished(one)]) for n in few]
    known = content(sample.source or sample.output)
    ranked = sorted(
        (coverage(" ".join(found), known), n, found)
        for n, (other, found) in enumerate(donors)
        if found and text.detect_language([other.output]) == language and not set(found) & set(own)
    )
    if not own or not ranked:
        return None
    return append_text(sample.output, ranked[0][2][: max(1, round(len(own) / 2))], rules_for(sample.output).joint)


def main_point_dropped(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """Without the sentence that holds most of what the references or, without any, the source speak of most."""
    whole, places = sample.output, spans(sample.output)
    wanted = " ".join(one for one in sample.references if one.strip()) or sample.source
    if len(places) < 2 or not wanted:
        return None
    known = content(wanted)
    worth = [sum(known.get(word, 0) for word in content(whole[start:end])) for start, end in places]
    if not any(worth):
        return None
    main = whole[slice(*places[worth.index(max(worth))])]
    return _without(whole, places, {main})


def _without(whole: str, places: Sequence[Span], gone: set[str]) -> str | None:
    """The text without some of its sentences, each with the white space after it."""
    made = whole
    for n in reversed(range(len(places))):
        start, end = places[n]
        if whole[start:end] in gone:
            after = places[n + 1][0] if n + 1 < len(places) else len(whole)
            made = made[:start] + made[after:]
    return made.rstrip() or None


def duplicated_sentences(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """About half of the sentences, never all, each twice in a row."""
    whole, places = sample.output, spans(sample.output)
    finished = [n for n, (start, end) in enumerate(places) if is_finished(whole[start:end])]
    if len(places) < 2 or not finished:
        return None
    twice = chance.sample(finished, min(len(finished), max(1, len(places) // 2)))
    mark = "\n" if "\n" in whole.strip() else rules_for(whole).joint
    parts = [whole[slice(*place)] for place in places]
    return _refilled(whole, places, [part + mark + part if n in twice else part for n, part in enumerate(parts)])


_FEWEST = 2  # slips: a single one may be overlooked


def typos(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """Words misspelled here and there, never a name or a number. None where fewer than two words can be."""
    whole, grammar = sample.output, rules_for(sample.output)
    given = [name.text for one in (sample.source, whole) if one for name in names(grammar, one)]
    kept = [span for found in mentions(whole, given).values() for span in found]
    kept += [place[:2] for place in grammar.number_words(whole)]
    places = [
        place
        for place in non_overlapping(grammar.misspelled(whole, chance))
        if all(place.end <= start or place.start >= end for start, end in kept)
    ]
    return _some(whole, places, max(_FEWEST, round(len(whole) / grammar.typo_every)), chance)


def dropped_words(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """Half of the function words that leave a gap (articles, particles, josa, 的) left out, at least two."""
    places = non_overlapping(rules_for(sample.output).droppable(sample.output))
    return _some(sample.output, places, max(_FEWEST, (len(places) + 1) // 2), chance)


def _some(whole: str, places: Sequence[Edit], wanted: int, chance: Random) -> str | None:
    """The text edited at some of the places, drawn by chance; None where there are too few."""
    if len(places) < _FEWEST:
        return None
    return apply_edits(whole, chance.sample(places, min(wanted, len(places))), chance)


def lost_casing(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """All in small letters. None where there are not two capitals to lose."""
    cased = text.detect_language([sample.output]) == "en" and sum(map(str.isupper, sample.output)) >= _FEWEST
    return sample.output.lower() if cased else None
