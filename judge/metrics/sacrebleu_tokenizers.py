"""sacrebleu's tokenizers (Post 2018): by name, or by the script of the texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from judge import text
from judge.core.errors import ConfigError, MissingExtra
from judge.core.records import whole
from judge.metrics import Note

DEFAULT = "13a"
_BY_SPACES = (DEFAULT, "intl", "none")
_UNCUT = (
    "are in a script that the tokenizer {tokenizer} does not cut into words: their values are too low; set "
    "{metric}.tokenize, leave it out to have texts cut by their script, or score the languages apart"
)
_BY_SCRIPT: dict[text.Language, str] = {"en": DEFAULT, "zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}


def tokenizer_for(texts: Iterable[str]) -> str:
    """The tokenizer for texts, by their script: `13a`, `zh`, `ja-mecab` or `ko-mecab`.

    `char` stands for the last two where their dictionaries are not installed; 13a leaves a Japanese sentence one token.
    """
    language = text.language(texts)
    if language in ("ja", "ko") and not text.installed(language):
        return "char"
    return _BY_SCRIPT[language]


def uncut(metric: str, tokenizer: str, given: Iterable[str]) -> Note:
    """How many of the given texts a tokenizer that cuts at spaces leaves in one piece: Chinese and Japanese ones."""
    distinct = set(given)
    by_spaces = tokenizer in _BY_SPACES
    some = sum(by_spaces and not one.isascii() and text.language([one]) in ("ja", "zh") for one in distinct)
    return Note(metric, some, len(distinct), _UNCUT.format(tokenizer=tokenizer, metric=metric))


def words(name: str, *, lowercase: bool = False) -> Callable[[str], list[str]]:
    """A function from a text to its tokens, as BLEU(tokenize=name) of sacrebleu has them. Raises MissingExtra."""
    tokenizer = _tokenizer(name)
    mecab = name.endswith("-mecab")

    def cut(string: str) -> list[str]:
        if lowercase:
            string = string.lower()
        if mecab:  # it takes UTF-8 only and stops at a NUL
            string = whole(string).replace("\0", " ")
        found: str = tokenizer(string.rstrip())
        return found.split()

    return cut


def signed(name: str) -> str:
    """A tokenizer's own signature. Raises MissingExtra."""
    return str(_tokenizer(name).signature())


def known(option: str, name: Any) -> str:
    """The value of an option that names a tokenizer: else ConfigError, or MissingExtra without its packages."""
    from sacrebleu.metrics.bleu import BLEU

    if not isinstance(name, str) or name not in BLEU.TOKENIZERS:
        raise ConfigError(f"{option} must be one of {', '.join(sorted(BLEU.TOKENIZERS))}, not {name!r}")
    _tokenizer(name)
    return name


@lru_cache(maxsize=16)  # one of each kind: sacrebleu's keep the texts that they have cut
def _tokenizer(name: str) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    try:
        return BLEU(tokenize=name).tokenizer
    except (RuntimeError, ImportError) as error:
        extra = "'textjudge[cjk]'" if name.endswith("-mecab") else "sentencepiece"
        raise MissingExtra(f"the tokenizer {name} needs more packages: pip install {extra}") from error
