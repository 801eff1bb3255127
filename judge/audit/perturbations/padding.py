"""Changes that add length or copying and say nothing new: what biases are measured by."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from judge.audit.perturbations.edits import appended, sentences
from judge.audit.perturbations.grammars import of
from judge.core.records import Sample


def duplicated(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """The whole output twice."""
    whole = sample.output.strip()
    return appended(whole, [whole], of(whole).joint) if whole else None


def empty_phrases(sample: Sample, others: Sequence[Sample], chance: Random) -> str | None:
    """As many sentences without content as the output has sentences, as far as there are so many."""
    whole, grammar = sample.output, of(sample.output)
    count = min(len(sentences(whole)), len(grammar.empty))
    added = chance.sample(grammar.empty, count)
    if whole == whole.lower():
        added = [one.lower() for one in added]
    return appended(whole, added, grammar.joint) if count else None


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
