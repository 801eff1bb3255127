"""The language that a question is written in, which is the one to ask it in."""

from __future__ import annotations

from collections.abc import Iterable

from judge import text
from judge.text import DEFAULT_LANGUAGE, han_writing, languages

_MOST_LATIN = 0.2
"""The largest share of words in Latin letters, such as names, beside another script."""


def written_language(strings: Iterable[str]) -> str | None:
    """Return the language of a question in Japanese, Korean or Chinese.

    Return None for other alphabets, for a mixture, and for a few Han characters that may be Chinese
    or Japanese.
    """
    whole_text = "\n".join(strings)
    if whole_text.isascii():
        return None
    shares = text.word_shares([whole_text])
    if not shares or shares.get(DEFAULT_LANGUAGE, 0.0) > _MOST_LATIN:
        return None
    language = next(iter(shares))
    if language == DEFAULT_LANGUAGE:
        return None
    has_han = text.LANGUAGES[language].letters == languages.HAN
    is_ambiguous = has_han and not han_writing(whole_text)
    return None if is_ambiguous else language
