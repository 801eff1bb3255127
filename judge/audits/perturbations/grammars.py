"""The grammar of a text, by its language."""

from __future__ import annotations

from collections.abc import Mapping

from judge import text
from judge.audits.perturbations import chinese, english, japanese, korean
from judge.audits.perturbations.edits import LanguageRules
from judge.text import Language

GRAMMARS: Mapping[Language, LanguageRules] = {
    "en": english.GRAMMAR,
    "ja": japanese.GRAMMAR,
    "ko": korean.GRAMMAR,
    "zh": chinese.GRAMMAR,
}


def rules_for(whole: str) -> LanguageRules:
    """The grammar of the language that most of a text is in, by its script."""
    return GRAMMARS[text.detect_language([whole])]
