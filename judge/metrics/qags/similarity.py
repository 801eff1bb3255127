"""How alike two answers are: exact match and F1 as SQuAD counts them, ROUGE, BERTScore.

Corrected BERTScore and its ends .65 and .85 are those of an article in Japanese by ty_nlp, 2022-08-30,
https://zenn.dev/ty_nlp/articles/ee4e17b6191987.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from judge import text
from judge.core.errors import ConfigError
from judge.core.plugins import unknown_name_message
from judge.core.records import Failure, Sample, Score
from judge.metrics import bertscore, rouge
from judge.metrics.bertscore.matching import HIGH, LOW
from judge.metrics.common import list_option

NAMES = ("exact", "f1", "rouge1", "rougeL", "bertscore", "corrected")
Pair = tuple[str, str]
"""The answers from the source and from the output."""
_ROUGE = ("rouge1", "rougeL")
_BERT = ("bertscore", "corrected")
_BERTSCORE_COLUMNS = {"bertscore": "bertscore", "bertscore_corrected": "corrected"}
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_MARKS = frozenset(string.punctuation)


class _Key(NamedTuple):
    pair: Pair
    tokenizer: str


_Values = dict[_Key, dict[str, float]]


def similarities(
    pairs: Sequence[Pair],
    names: Sequence[str] = ("f1",),
    *,
    languages: Sequence[str] | None = None,
    low: float = LOW,
    high: float = HIGH,
    bert: Mapping[str, object] | None = None,
) -> list[dict[str, float]]:
    """For each pair of answers its similarity by each name, each 0–1 (BERTScore may be below 0).

    - `exact`: 1 for answers that are equal after SQuAD's normalisation (`normalised`), else 0.
    - `f1`: SQuAD's F1 of the tokens that they share (Rajpurkar et al. 2016); Chinese, Japanese, Korean and other
      scripts by the tokenizer that `judge.text` has for both, or for the language that `languages` has for the pair.
    - `rouge1`, `rougeL`: F of ROUGE, stemmed, the source's answer being the reference.
    - `bertscore`: F; `corrected`: clip((F - low) / (high - low), 0, 1). `bert` are options of `BertScore`.

    An answer beside none (UNANSWERABLE) is 0 by every name, as is one that has no token beside another. A pair of which
    BERTScore has no value lacks these names. Each distinct pair is compared once. Raises ConfigError, MissingExtra.
    """
    return Similarities(names, low=low, high=high, bert=bert).of(pairs, languages)


class Similarities:
    """`similarities` with fixed options, and the signature of each name."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        low: float = LOW,
        high: float = HIGH,
        bert: Mapping[str, object] | None = None,
        cache: Path | None = None,
    ) -> None:
        self.names = checked(names)
        self._low, self._high = low, high
        bertscore.rescale_linear(1.0, low, high)  # raises unless low < high
        uses_bertscore = not set(_BERT).isdisjoint(self.names)
        # Created here to report missing packages before anything is computed or paid.
        options: dict[str, Any] = {**(bert or {}), "low": low, "high": high, "cache": cache}
        self._bert = bertscore.BertScore(**options) if uses_bertscore else None
        self._tokenizers: set[str] = set()
        self._signed_bert = ""

    def of(self, pairs: Sequence[Pair], languages: Sequence[str] | None = None) -> list[dict[str, float]]:
        """Return the similarities of pairs, see `similarities`."""
        keys = [
            _Key(pair, self._tokenizer(pair, language))
            for pair, language in zip(pairs, languages or [""] * len(pairs), strict=True)
        ]
        both: _Values = {}
        for key in dict.fromkeys(keys):
            if all(map(str.strip, key.pair)):
                first, second = (normalised(answer) for answer in key.pair)
                cut = str.split if key.tokenizer == "en" else text.words(key.tokenizer)
                both[key] = {"exact": float(first == second), "f1": f1(first, second, cut)}
        if any(name in self.names for name in _ROUGE):
            self._rouge(both)
        if self._bert:
            self._bertscore(self._bert, both)
        nothing = dict.fromkeys(self.names, 0.0)
        return [
            {name: both[key][name] for name in self.names if name in both[key]} if key in both else dict(nothing)
            for key in keys
        ]

    def signature(self, name: str) -> str:
        """Return what computed the similarity of this name in the calls of `of` so far."""
        if name in _BERT:
            span = f"low={self._low:g}|high={self._high:g}|" if name == "corrected" else ""
            signature = self._signed_bert
            if self._bert and not signature:  # nothing has been compared yet
                signature = _bertscore_signature(self._bert.score([]).columns[0].signature)
            return f"{name}|{span}{signature}"
        if name == "exact":
            return name
        squad = name == "f1"  # English words are those between white space, after normalisation
        used = sorted(self._tokenizers or {"en"})
        tokenizers = "+".join("squad" if squad and each == "en" else text.signature(each) for each in used)
        return f"{name}|tok={tokenizers}" if squad else f"{name}|f|stem|tok={tokenizers}"

    def _tokenizer(self, pair: Pair, language: str) -> str:
        """Choose a tokenizer by script; a short answer in Han characters alone goes by the pair's language."""
        tokenizer = text.tokenizer_for(pair)
        tokenizer = (
            language if tokenizer != "en" and language in ("ja", "ko", "zh") and text.installed(language) else tokenizer
        )
        self._tokenizers.add(tokenizer)
        return tokenizer

    def _rouge(self, values: _Values) -> None:
        types = [name for name in _ROUGE if name in self.names]
        for tokenizer in dict.fromkeys(key.tokenizer for key in values):
            keys = [key for key in values if key.tokenizer == tokenizer]
            sources, outputs = zip(*(key.pair for key in keys), strict=True)
            for name, column in rouge.score(outputs, sources, types, tokenizer=tokenizer).items():
                for key, value in zip(keys, column, strict=True):
                    # No token in the source's answer: as SQuAD has it, 1 for the same answer and 0 for another.
                    same = float(key.pair[0].strip() == key.pair[1].strip())
                    values[key][name] = same if isinstance(value, Failure) else value.fmeasure

    def _bertscore(self, bert: bertscore.BertScore, by_key: _Values) -> None:
        pairs = list(dict.fromkeys(key.pair for key in by_key))
        samples = [Sample(str(n), "", output, references=(source,)) for n, (source, output) in enumerate(pairs)]
        result = bert.score(samples)
        self._signed_bert = _bertscore_signature(result.columns[0].signature)
        values: dict[Pair, dict[str, float]] = {pair: {} for pair in pairs}
        for row in result.rows:
            if isinstance(row, Score) and row.column in _BERTSCORE_COLUMNS:
                values[pairs[int(row.item)]][_BERTSCORE_COLUMNS[row.column]] = row.value
        for key in by_key:
            by_key[key] |= values[key.pair]


def _bertscore_signature(signature: str) -> str:
    """Remove from BERTScore's signature what does not apply to answers: column name and letter, references."""
    parts = signature.split("|")[2:]
    return "|".join(part for part in parts if not part.startswith(("nrefs=", "refs=", "rescale=")))


def checked(names: Any) -> tuple[str, ...]:
    """Return the names in a list, or in a text with commas. Raises ConfigError."""
    chosen = list_option(names)
    if not isinstance(chosen, Sequence) or not all(isinstance(name, str) for name in chosen):
        raise ConfigError(f"similarity: one or more of {', '.join(NAMES)}, not {names!r}")
    for name in chosen:
        if name not in NAMES:
            raise ConfigError(unknown_name_message("similarity", name, list(NAMES)))
    if not chosen or len(set(chosen)) < len(chosen):
        raise ConfigError(f"similarity: one or more of {', '.join(NAMES)}, each once")
    return tuple(chosen)


def normalised(answer: str) -> str:
    """SQuAD's: lower case, without punctuation, without articles, single spaces; here also of other scripts (NFKC)."""
    small = unicodedata.normalize("NFKC", answer).lower()
    plain = "".join(
        letter
        for letter in small
        if not (letter in _MARKS if letter.isascii() else unicodedata.category(letter)[0] == "P")
    )
    return " ".join(_ARTICLES.sub(" ", plain).split())


def f1(first: str, second: str, cut: Callable[[str], list[str]] = str.split) -> float:
    """SQuAD's F1 of two normalised answers; where one has no token, 1 if both have none and 0 if not."""
    a, b = cut(first), cut(second)
    if not a or not b:
        return float(a == b)
    shared = sum((Counter(a) & Counter(b)).values())
    return 2 * shared / (len(a) + len(b))
