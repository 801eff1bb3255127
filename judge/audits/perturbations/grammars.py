"""The grammar of a text, by its language."""

from __future__ import annotations

from collections.abc import Mapping

from judge import text
from judge.audits.perturbations import chinese, english, japanese, korean
from judge.audits.perturbations.edits import Grammar
from judge.text import Language

GRAMMARS: Mapping[Language, Grammar] = {
    "en": english.GRAMMAR,
    "ja": japanese.GRAMMAR,
    "ko": korean.GRAMMAR,
    "zh": chinese.GRAMMAR,
}


def of(whole: str) -> Grammar:
    """The grammar of the language that most of a text is in, by its script."""
    return GRAMMARS[text.language([whole])]
