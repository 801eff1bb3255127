"""Compute TER, translation edit rate (Snover et al. 2006).

It follows Tercom's rules as sacrebleu (Post 2018) does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from typing import ClassVar, Literal

from judge import text
from judge.core.records import Sample
from judge.core.signature import join_names
from judge.metrics import MetricResult, Note
from judge.metrics.common import (
    CannotScore,
    Rate,
    ReferenceMetric,
    all_texts,
    list_function,
)

__all__ = ["Ter", "score"]

_UNSPLIT = "are in a script that TER does not split into words, so values are too high: use chrf"
# Words of the output times words of a reference. sacrebleu takes half a minute for so many.
_MOST_CELLS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Ter(ReferenceMetric):
    """Translation edit rate (0 and up, lower is better): edits and shifts per 100 words of the reference.

    The reference with the fewest edits counts, divided by the mean length of all. Chinese and
    Japanese references are split into characters (runs of kana stay whole), by Tercom's
    `normalized` and `asian_support`; other texts at white space. `normalized` also splits off
    punctuation, `asian_support` applies Tercom's to all texts (with `normalized`), `no_punct`
    removes punctuation, and `case_sensitive` keeps case.
    """

    name: ClassVar[str] = "ter"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    normalized: bool = False
    asian_support: bool | None = None
    no_punct: bool = False
    case_sensitive: bool = False

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample; an empty output scores 100 against a single reference.

        A `Failure`: a sample without a reference, or whose references have no words (possible with
        `no_punct`), because the rate is undefined, or whose texts have more than about 1,000 words
        each.
        """
        from sacrebleu.metrics.ter import TER

        # One scorer per settings: it caches the words of texts.
        cached_scorer = lru_cache(maxsize=None)(TER)

        def prepare(targets: tuple[str, ...], used: set[str]) -> Rate:
            """Return the rating of outputs with these references.

            Adds "yes" or "no" to `used`: whether asian support was used.
            """
            asian = self._has_asian_support(targets)
            used.add(_yes_or_no(asian))
            normalized = self._is_normalized(asian)
            no_punct = self.no_punct
            scorer = cached_scorer(normalized, no_punct, asian, self.case_sensitive)

            def count_words(string: str) -> int:
                tokenized = scorer.tokenizer(string.rstrip())
                return len(tokenized.split())

            longest = max(map(count_words, targets))
            if not longest:
                problem = "its references have no words without punctuation"
                raise CannotScore("NoReferenceWords", problem)

            def rate(output: str) -> float:
                if count_words(output) * longest > _MOST_CELLS:
                    problem = "its texts have too many words for TER: shorten them"
                    raise CannotScore("TextTooLong", problem)
                return float(scorer.sentence_score(output, targets).score)

            return rate

        return self.compare(samples, prepare, self._sign)

    def _has_asian_support(self, targets: Sequence[str]) -> bool:
        """Return whether these references are scored with Tercom's asian support."""
        if self.asian_support is not None:
            return self.asian_support
        return not text.LANGUAGES[text.detect_language(targets)].spaced

    def _is_normalized(self, asian: bool) -> bool:
        # Asian support does nothing without `normalized`, so the script chooses both.
        chosen_by_script = asian and self.asian_support is None
        return self.normalized or chosen_by_script

    def _sign(self, used: set[str]) -> list[str]:
        """Return sacrebleu's signature; `used` says whether asian support was used."""
        case = "mixed" if self.case_sensitive else "lc"
        normalized = [self._is_normalized(answer == "yes") for answer in used]
        norm = join_names(map(_yes_or_no, normalized))
        asian = join_names(used)
        punct = _yes_or_no(not self.no_punct)
        return [
            f"case={case}",
            "tok=tercom",
            f"norm={norm}",
            f"punct={punct}",
            f"asian={asian}",
            f"sacrebleu {version('sacrebleu')}",
        ]

    def notes(
        self, samples: Sequence[Sample], used: Collection[str]
    ) -> tuple[str | Note, ...]:
        """Return notes about texts that are not split into words, and about Unicode forms."""
        distinct_texts = set(all_texts(samples))
        unsplit = [string for string in distinct_texts if text.is_unspaced([string])]
        # Tercom's asian support does nothing without `normalized`.
        splits_asian = self.asian_support and self.normalized
        if splits_asian or self.asian_support is None:
            # Chinese and Japanese are split; other scripts are detected as "en".
            unsplit = [
                string for string in unsplit if text.detect_language([string]) == "en"
            ]
        unsplit_note = Note(self.name, len(unsplit), len(distinct_texts), _UNSPLIT)
        return (unsplit_note, *super().notes(samples, used))


score = list_function(
    Ter,
    """Return TER (0 and up, lower is better) of each output against its reference or references.

    See `Ter`. Raise DataError if an output has no reference or its references have no words,
    ConfigError for a wrong option.
    """,
)


def _yes_or_no(answer: bool) -> str:
    return "yes" if answer else "no"
