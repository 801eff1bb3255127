"""The options of ROUGE, checked."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from judge import text
from judge.core.errors import ConfigError
from judge.metrics.common import one_of, tokenizer, yes_or_no
from judge.metrics.rouge.interning import SCRIPT, Rules
from judge.metrics.rouge.kinds import DEFAULT, DEFAULT_OF_SCRIPT, Kind, kinds
from judge.metrics.rouge.multi_reference import MULTI
from judge.metrics.rouge.variants import Form, Paper, Script

Words = str | Path | Collection[str]
"""A file with a word a line, or the words."""
Files = str | Path | Sequence[str | Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `score` and `Rouge` take, checked. Without a `tokenizer` each row has its own."""

    kinds: tuple[Kind, ...]
    multi: str
    script: bool
    stem: bool
    tokenizer: str | None
    stopwords: frozenset[str]
    exceptions: tuple[tuple[str, str], ...]
    alpha: float | None
    form: Form

    def tokenizer_for(self, parts: Sequence[str]) -> str:
        """The tokenizer of an output and its references."""
        if self.tokenizer:
            return self.tokenizer
        return "en" if all(map(str.isascii, parts)) else text.tokenizer_for(parts)

    def rules(self, tokenizer: str, *, running: bool) -> Rules:
        return Rules(tokenizer, self.stem, self.stopwords, self.exceptions, running)


def options(
    types: Sequence[str] | None = None,
    *,
    stem: bool = True,
    multi: str | None = None,
    preset: str | None = None,
    tokenizer: str | None = None,
    stopwords: Words | None = None,
    exceptions: Files | None = None,
    alpha: float | None = None,
    beta: float | None = None,
) -> Options:
    """The options of `score`, checked. Raises ConfigError."""
    script = preset is not None and one_of("rouge.preset", preset, (SCRIPT,)) == SCRIPT
    standard = DEFAULT_OF_SCRIPT if script else DEFAULT
    multi = ("pooled" if script else "best_f") if multi is None else one_of("rouge.multi", multi, MULTI)
    alpha = _alpha(alpha, beta)
    return Options(
        kinds=kinds(standard if types is None else types, script=script),
        multi=multi,
        script=script,
        stem=yes_or_no("rouge.stem", stem),
        tokenizer=_tokenizer(tokenizer, script),
        stopwords=_stopwords(stopwords),
        exceptions=_exceptions(exceptions, script and stem),
        alpha=alpha,
        form=Script(alpha) if script else Paper(alpha),
    )


def _alpha(alpha: float | None, beta: float | None) -> float | None:
    if alpha is not None and beta is not None:
        raise ConfigError("rouge.alpha and rouge.beta say the same of F: give one of them (alpha = 1 / (1 + beta²))")
    for name, value, most in (("alpha", alpha, 1.0), ("beta", beta, sys.float_info.max)):
        number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
        if value is not None and not number:
            raise ConfigError(f"rouge.{name} must be a number from 0 {'to 1' if most == 1 else 'up'}, not {value!r}")
    return alpha if beta is None else 1 / (1 + beta * beta)


def _tokenizer(name: str | None, script: bool) -> str | None:
    if name is not None and script:
        raise ConfigError(f"rouge.preset {SCRIPT} has a tokenizer of its own: leave out rouge.tokenizer or the preset")
    return SCRIPT if script else tokenizer("rouge.tokenizer", name)


def _stopwords(words: Words | None) -> frozenset[str]:
    if words is None:
        return frozenset()
    listed = _lines(words, "stopwords") if isinstance(words, str | Path) else words
    if not isinstance(listed, Collection) or not all(isinstance(word, str) for word in listed):
        raise ConfigError(
            "rouge.stopwords are a file with a word a line, or a list of words (in YAML, quote no and on)"
        )
    return frozenset(stripped for word in listed if (stripped := word.strip().lower()))


def _exceptions(files: Files | None, wanted: bool) -> tuple[tuple[str, str], ...]:
    if files is None:
        return ()
    if not wanted:
        raise ConfigError(
            f"rouge.exceptions belong to the stemmer of preset {SCRIPT}: set preset and stem, or leave them out"
        )
    listed = [files] if isinstance(files, str | Path) else files
    if not isinstance(listed, Sequence) or not all(isinstance(file, str | Path) for file in listed):
        raise ConfigError(f"rouge.exceptions are files with lines `word stem`, not {files!r}")
    found: dict[str, str] = {}
    for file in listed:
        for line in _lines(file, "exceptions"):
            word, _, stems = line.partition(" ")
            if stems.strip():
                found[word.lower()] = stems.split()[0].lower()
    return tuple(found.items())


def _lines(file: str | Path, option: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise ConfigError(f"rouge.{option}: cannot read {file} as text: {error}") from error
