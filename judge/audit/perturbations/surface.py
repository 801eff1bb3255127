"""Changes inside sentences that leave what they say: typos, missing function words, casing."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from judge import text
from judge.audit.perturbations.edits import Place, apart, edited
from judge.audit.perturbations.factual import mentions, names
from judge.audit.perturbations.grammars import of
from judge.core.records import Sample

_FEWEST = 2  # slips: a single one may be overlooked


def typos(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """Words misspelled here and there, never a name or a number. None where fewer than two words can be."""
    whole, grammar = sample.output, of(sample.output)
    given = [name.text for one in (sample.source, whole) if one for name in names(grammar, one)]
    kept = [span for found in mentions(whole, given).values() for span in found]
    kept += [place[:2] for place in grammar.number_words(whole)]
    places = [
        place
        for place in apart(grammar.misspelled(whole, chance))
        if all(place.end <= start or place.start >= end for start, end in kept)
    ]
    return _some(whole, places, max(_FEWEST, round(len(whole) / grammar.typo_every)), chance)


def dropped_words(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """Half of the function words that leave a gap (articles, particles, josa, 的) left out, at least two."""
    places = apart(of(sample.output).droppable(sample.output))
    return _some(sample.output, places, max(_FEWEST, (len(places) + 1) // 2), chance)


def _some(whole: str, places: Sequence[Place], wanted: int, chance: Random) -> str | None:
    """The text edited at some of the places, drawn by chance; None where there are too few."""
    if len(places) < _FEWEST:
        return None
    return edited(whole, chance.sample(places, min(wanted, len(places))), chance)


def lost_casing(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """All in small letters. None where there are not two capitals to lose."""
    cased = text.language([sample.output]) == "en" and sum(map(str.isupper, sample.output)) >= _FEWEST
    return sample.output.lower() if cased else None
