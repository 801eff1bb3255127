"""Controlled changes to texts: each damages them in one way, which one criterion must notice and others need not."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from judge.audits.perturbations import factual, sentence_level
from judge.audits.perturbations.edits import LANGUAGES, Change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judge.core.records import Sample
    from judge.text import Language

__all__ = ["CHANGES", "NEUTRAL", "Change", "changed", "of_language"]

CHANGES: tuple[Change, ...] = (
    Change("shuffled sentences", "coherence", LANGUAGES, sentence_level.shuffled),
    Change("swapped entity", "consistency", LANGUAGES, factual.swapped_entity),
    Change("swapped number", "consistency", LANGUAGES, factual.swapped_number),
    Change("negated sentence", "consistency", LANGUAGES, factual.negated),
    Change("typos", "fluency", LANGUAGES, sentence_level.typos),
    Change("dropped function words", "fluency", LANGUAGES, sentence_level.dropped_words),
    Change("lost casing", "fluency", ("en",), sentence_level.lost_casing),
    Change("truncated", "fluency", LANGUAGES, sentence_level.truncated),
    Change("padded", "relevance", LANGUAGES, sentence_level.padded),
    Change("main point dropped", "relevance", LANGUAGES, sentence_level.main_point_dropped),
    Change("duplicated sentences", "relevance", LANGUAGES, sentence_level.duplicated_sentences),
)
"""What damages a text for the criterion named; names are unique."""
NEUTRAL: tuple[Change, ...] = (
    Change("duplicated text", "", LANGUAGES, sentence_level.duplicated),
    Change("empty phrases", "", LANGUAGES, sentence_level.empty_phrases),
    Change("copied lead", "", LANGUAGES, sentence_level.copied_lead),
)
"""What makes a text longer or copied without saying more: for biases. Their criterion is empty."""


def of_language(language: Language, among: Sequence[Change] = CHANGES) -> tuple[Change, ...]:
    """The changes that there are in a language, of CHANGES or of those given (`NEUTRAL`), in order."""
    return tuple(change for change in among if language in change.languages)


def changed(sample: Sample, others: Sequence[Sample], change: Change, seed: int) -> Sample | None:
    """The sample with the changed output, its system the change's name; None where the change does not apply to it.

    `others` are samples of other items, which padding is taken from; those of the sample's own item are passed over.
    Of equal arguments the result is equal: chance is drawn by seed, item and change. People's ratings are left out, as
    nobody rated the changed text.
    """
    elsewhere = [other for other in others if other.item != sample.item]
    made = change.make(sample, elsewhere, Random(f"{seed}|{sample.item}|{change.name}"))  # noqa: S311
    if made is None or made == sample.output or not made.strip():
        return None
    return replace(sample, output=made, system=change.name, human={}, ratings={})
