"""Controlled changes to texts: each damages one quality, which one criterion should notice and others need not."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from judge.audits.perturbations import catalogue
from judge.audits.perturbations.edits import Perturbation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judge.core.records import Sample

__all__ = ["CHANGES", "NEUTRAL", "Perturbation", "changed", "of_language"]

CHANGES: tuple[Perturbation, ...] = (
    Perturbation("shuffled sentences", "coherence", catalogue.shuffled),
    Perturbation("swapped entity", "consistency", catalogue.swapped_entity),
    Perturbation("swapped number", "consistency", catalogue.swapped_number),
    Perturbation("negated sentence", "consistency", catalogue.negated),
    Perturbation("typos", "fluency", catalogue.typos),
    Perturbation("dropped function words", "fluency", catalogue.dropped_words),
    Perturbation("lost casing", "fluency", catalogue.lost_casing, ("en",)),
    Perturbation("truncated", "fluency", catalogue.truncated),
    Perturbation("padded", "relevance", catalogue.padded),
    Perturbation("main point dropped", "relevance", catalogue.main_point_dropped),
    Perturbation("duplicated sentences", "relevance", catalogue.duplicated_sentences),
)
"""Changes that damage a text for one criterion; names are unique."""
NEUTRAL: tuple[Perturbation, ...] = (
    Perturbation("duplicated text", "", catalogue.duplicated),
    Perturbation("empty phrases", "", catalogue.empty_phrases),
    Perturbation("copied lead", "", catalogue.copied_lead),
)
"""Changes that add length or copied text without content, to measure biases. Their criterion is empty."""


def of_language(language: str, among: Sequence[Perturbation] = CHANGES) -> tuple[Perturbation, ...]:
    """Return the changes of `among` that exist in a language, in order: none where it has no rules."""
    if language not in catalogue.RULES:
        return ()
    return tuple(change for change in among if not change.languages or language in change.languages)


def changed(sample: Sample, others: Sequence[Sample], change: Perturbation, seed: int) -> Sample | None:
    """Return the sample with its output changed and the change's name as its system; None if it does not apply.

    `others` are samples that may supply padding; those of the same item are ignored. Equal arguments give equal
    results: the random numbers depend on seed, item and change. Human ratings are removed, as nobody rated it.
    """
    elsewhere = [donor for donor in others if donor.item != sample.item]
    output = change.make(sample, elsewhere, Random(f"{seed}|{sample.item}|{change.name}"))  # noqa: S311
    if output is None or output == sample.output or not output.strip():
        return None
    return replace(sample, output=output, system=change.name, human={}, ratings={})
