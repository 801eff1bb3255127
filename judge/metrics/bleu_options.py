"""The options of BLEU and the score of counts, which metrics of diversity share.

Tokens, counts, smoothing and formula are sacrebleu's (Post 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from typing import Any, TypedDict

from judge import text
from judge.core.errors import MissingExtra
from judge.core.normalization import whole
from judge.core.signature import join_names
from judge.metrics import Note
from judge.metrics.base import BaseMetric, setting
from judge.metrics.common import (
    choice_option,
    missing_tokenizer_notes,
    tokenizer_note,
    whole_number,
)

DEFAULT = "13a"


def tokenizer_for(texts: Iterable[str]) -> str:
    """Return the tokenizer for texts by their script: `13a`, `zh`, `ja-mecab` or `ko-mecab`.

    `char` replaces the last two if their dictionaries are missing, and is for other scripts without
    spaces; 13a would leave a sentence in these as one token.
    """
    all_texts = list(texts)
    language = text.LANGUAGES[text.detect_language(all_texts)]
    if not text.installed(language.tokenizer):
        return "char"
    if language.bleu == DEFAULT and text.is_unspaced(all_texts):
        return "char"
    return language.bleu


def _readable(string: str, tokenizer: str) -> str:
    """Return a text that the tokenizer accepts: MeCab takes UTF-8 only and stops at a NUL."""
    if not tokenizer.endswith("-mecab"):
        return string
    return whole(string).replace("\0", " ")


def tokenizer_option(option: str, tokenizer_name: Any) -> str:
    """Return an option's tokenizer name.

    Raise ConfigError, or MissingExtra if its packages are missing.
    """
    from sacrebleu.metrics.bleu import BLEU

    choice_option(option, tokenizer_name, sorted(BLEU.TOKENIZERS))
    _scorer(tokenizer_name)
    return str(tokenizer_name)


@lru_cache(maxsize=16)  # one per kind, because tokenizers cache the texts
def _scorer(tokenizer_name: str, *, lowercase: bool = False, max_order: int = 4) -> Any:
    """Return sacrebleu's BLEU, whose scores carry counts."""
    from sacrebleu.metrics.bleu import BLEU

    try:
        return BLEU(
            lowercase=lowercase,
            force=True,
            tokenize=tokenizer_name,
            # Only counts are read of its scores: the settings smooth them.
            smooth_method="none",
            smooth_value=None,
            max_ngram_order=max_order,
            effective_order=True,
        )
    except (RuntimeError, ImportError) as error:
        extra = "sentencepiece"
        if tokenizer_name.endswith("-mecab"):
            extra = "'textjudge[cjk]'"
        raise MissingExtra(
            f"the tokenizer {tokenizer_name} needs more packages: pip install {extra}"
        ) from error
    except OSError as error:
        # sacrebleu downloads the models of `spm` and its like.
        raise MissingExtra(
            f"the tokenizer {tokenizer_name} needs a model that sacrebleu could not download "
            f"({error}): put it into ~/.sacrebleu/models, or choose another tokenizer"
        ) from error


# `floor` and `add-k` have sacrebleu's default values.
_SMOOTH_SIGNATURES = {
    "exp": "exp",
    "none": "none",
    "floor": "floor[0.10]",
    "add-k": "add-k[1.00]",
}
HIGHEST_ORDER = 9


class BleuOptions(TypedDict, total=False):
    """The options of BLEU. The defaults are 4, "exp", the texts' script, False and True."""

    max_order: int
    smooth: str
    tokenize: str | None
    lowercase: bool
    effective_order: bool


@dataclass(frozen=True, kw_only=True)
class Tokens(BaseMetric):
    """The tokenization options of a metric; metrics inherit them.

    `tokenize` is a tokenizer of sacrebleu (None: by script). Raises ConfigError and MissingExtra.
    """

    tokenize: str | None = setting(None, tokenizer_option)
    lowercase: bool = False

    def tokenizer_for(self, texts: Iterable[str]) -> str:
        """Return the tokenizer for these texts, which all share it."""
        return self.tokenize or tokenizer_for(texts)

    def note(self, texts: Iterable[str], tokenizer: str | None) -> Note:
        """Count the texts that are left in one piece, or by script split into characters."""
        chosen = None if tokenizer == "char" and self.tokenize is None else tokenizer
        return tokenizer_note(self.name, chosen, texts, "tokenize")

    def missing(self, texts: Iterable[str], used: Collection[str]) -> list[str]:
        """Return which packages are missing to split these texts into words."""
        return [] if self.tokenize else missing_tokenizer_notes(used, texts)

    def words(self, tokenizer: str) -> Callable[[str], list[str]]:
        """Return a function that splits a text as sacrebleu's BLEU(tokenize=tokenizer) does."""
        tokenize = _scorer(tokenizer).tokenizer

        def words(string: str) -> list[str]:
            if self.lowercase:
                string = string.lower()
            # sacrebleu removes white space at the end before it calls the tokenizer.
            readable = _readable(string, tokenizer).rstrip()
            tokenized: str = tokenize(readable)
            return tokenized.split()

        return words

    def signed_tokens(self, tokenizers: Iterable[str]) -> tuple[str, str]:
        """Return the signature parts for case and tokenizers, as sacrebleu writes them."""
        case = "lc" if self.lowercase else "mixed"
        names: list[str] = []
        for tokenizer in tokenizers:
            sacrebleu_tokenizer = _scorer(tokenizer).tokenizer
            names.append(str(sacrebleu_tokenizer.signature()))
        tok = join_names(names)
        return f"case={case}", f"tok={tok}"


@dataclass(frozen=True, kw_only=True)
class Settings(Tokens):
    """The maximum n-gram order and the smoothing of BLEU."""

    smooth: str = setting("exp", choice_option, tuple(_SMOOTH_SIGNATURES))
    max_order: int = setting(4, whole_number, 1, HIGHEST_ORDER)
    effective_order: bool = field(default=True, init=False)

    def counts(
        self, output: str, references: Sequence[str], tokenizer: str
    ) -> list[int]:
        """Return sacrebleu's statistics of an output.

        These are its length, that of the closest reference, and the matches and n-grams of each
        order.
        """
        scorer = _scorer(tokenizer, lowercase=self.lowercase, max_order=self.max_order)
        readable_output = _readable(output, tokenizer)
        readable_references = [_readable(text, tokenizer) for text in references]
        score = scorer.sentence_score(readable_output, readable_references)
        return [score.sys_len, score.ref_len, *score.counts, *score.totals]

    def bleu(self, counts: Sequence[int]) -> float:
        """Return BLEU (0–100) of the counts of one text, or of their sum over several texts."""
        score = float(self.computed(counts).score)
        return min(score, 100.0)  # equal texts would get 100.00000000000004

    def computed(self, counts: Sequence[int]) -> Any:
        """Return sacrebleu's score of these counts."""
        from sacrebleu.metrics.bleu import BLEU

        highest = self.max_order
        correct = list(counts[2 : 2 + highest])
        return BLEU.compute_bleu(
            correct=correct,
            total=list(counts[2 + highest :]),
            sys_len=counts[0],
            ref_len=counts[1],
            smooth_method=self.smooth,
            smooth_value=None,
            effective_order=self.effective_order,
            max_ngram_order=highest,
        )

    def signed_options(self, tokenizers: Iterable[str]) -> list[str]:
        """Return the signature's parts after the number of references, in sacrebleu's order."""
        case, tok = self.signed_tokens(tokenizers)
        smooth = f"smooth={_SMOOTH_SIGNATURES[self.smooth]}"
        parts = [case, self.signed_effective_order, tok, smooth]
        # sacrebleu's own signature has no part for the order.
        if self.max_order != 4:
            parts.append(f"order={self.max_order}")
        parts.append(signed_version())
        return parts

    @property
    def signed_effective_order(self) -> str:
        answer = "yes" if self.effective_order else "no"
        return f"eff={answer}"


@dataclass(frozen=True, kw_only=True)
class DiversitySettings(Settings):
    """The settings of a metric of diversity, with or without effective order."""

    effective_order: bool = True

    def signed_options(self, tokenizers: Iterable[str]) -> list[str]:
        """Return the signature's parts, in the order of all metrics of diversity."""
        case, tok = self.signed_tokens(tokenizers)
        order = f"order={self.max_order}"
        smooth = f"smooth={_SMOOTH_SIGNATURES[self.smooth]}"
        return [self.signed_effective_order, order, case, tok, smooth, signed_version()]


def signed_version() -> str:
    """Return the part of a signature that names sacrebleu."""
    return f"sacrebleu {version('sacrebleu')}"
