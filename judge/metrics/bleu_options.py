"""What all kinds of BLEU here have in common: options, tokens, and how a score comes of counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypedDict

from judge.metrics import sacrebleu_tokenizers
from judge.metrics.common import joined, one_of, whole_number, yes_or_no

_SMOOTH = {"exp": "exp", "none": "none", "floor": "floor[0.10]", "add-k": "add-k[1.00]"}
_HIGHEST_ORDER = 9


class BleuOptions(TypedDict, total=False):
    """The options of a kind of BLEU. The defaults are 4, "exp", by the texts' script, False and True."""

    max_order: int
    smooth: str
    tokenize: str | None
    lowercase: bool
    effective_order: bool


@dataclass(frozen=True, slots=True)
class Tokens:
    """Which tokens a text has: those of sacrebleu's tokenizer `tokenize` (None: by the texts' script)."""

    tokenize: str | None = None
    lowercase: bool = False

    def name(self, texts: Iterable[str]) -> str:
        """The tokenizer for these texts, which are all cut alike."""
        return self.tokenize or sacrebleu_tokenizers.tokenizer_for(texts)

    def words(self, name: str) -> Callable[[str], list[str]]:
        """A function from a text to its tokens, as BLEU(tokenize=name) of sacrebleu has them."""
        return sacrebleu_tokenizers.words(name, lowercase=self.lowercase)

    @property
    def case(self) -> str:
        """The part of a signature that says whether case counts."""
        return f"case={'lc' if self.lowercase else 'mixed'}"

    def named(self, names: Iterable[str]) -> str:
        """The part of a signature that says these tokenizers, in sacrebleu's own words for them."""
        return f"tok={joined(map(sacrebleu_tokenizers.signed, names))}"


@dataclass(frozen=True, slots=True)
class Settings:
    """How BLEU is computed: up to which order, with which of sacrebleu's smoothings, of which tokens."""

    max_order: int = 4
    smooth: str = "exp"
    effective_order: bool = True
    tokens: Tokens = Tokens()

    def signature(self, names: Iterable[str]) -> str:
        """The signature's parts of a metric of diversity, for data cut by these tokenizers."""
        return (
            f"{self._effective}|order={self.max_order}|{self.tokens.case}|{self.tokens.named(names)}"
            f"|{self._smoothed}|{_sacrebleu()}"
        )

    def as_sacrebleus(self, names: Iterable[str]) -> str:
        """The parts that sacrebleu's signature has after the number of references, in its order."""
        parts = [self.tokens.case, self._effective, self.tokens.named(names), self._smoothed]
        return "|".join([*parts, *([] if self.max_order == 4 else [f"order={self.max_order}"]), _sacrebleu()])

    @property
    def _effective(self) -> str:
        return f"eff={'yes' if self.effective_order else 'no'}"

    @property
    def _smoothed(self) -> str:
        return f"smooth={_SMOOTH[self.smooth]}"


def options(
    name: str,
    *,
    max_order: int = 4,
    smooth: str = "exp",
    tokenize: str | None = None,
    lowercase: bool = False,
    effective_order: bool = True,
) -> Settings:
    """The options of the metric `name` as Settings. Raises ConfigError, which says the option and what is allowed."""
    return Settings(
        order(f"{name}.max_order", max_order),
        one_of(f"{name}.smooth", smooth, tuple(_SMOOTH)),
        yes_or_no(f"{name}.effective_order", effective_order),
        tokens(name, tokenize=tokenize, lowercase=lowercase),
    )


def order(option: str, value: Any) -> int:
    """An order of n-grams. Raises ConfigError for anything else."""
    return whole_number(option, value, 1, _HIGHEST_ORDER)


def tokens(name: str, *, tokenize: str | None, lowercase: bool) -> Tokens:
    """The options of the metric `name` that say which tokens count. Raises ConfigError."""
    if tokenize is not None:
        tokenize = sacrebleu_tokenizers.known(f"{name}.tokenize", tokenize)
    return Tokens(tokenize, yes_or_no(f"{name}.lowercase", lowercase))


def score(hits: Sequence[int], total: Sequence[int], lengths: tuple[int, int], settings: Settings) -> float:
    """BLEU (0–100) of one text or of pooled counts, by sacrebleu: matches and n-grams for each order from 1.

    `lengths` are the tokens of the text and of its closest reference.
    """
    from sacrebleu.metrics.bleu import BLEU

    found = BLEU.compute_bleu(
        correct=list(hits),
        total=list(total),
        sys_len=lengths[0],
        ref_len=lengths[1],
        smooth_method=settings.smooth,
        effective_order=settings.effective_order,
        max_ngram_order=settings.max_order,
    )
    return min(float(found.score), 100.0)  # rounding takes equal texts to 100.00000000000004


def _sacrebleu() -> str:
    return f"sacrebleu {version('sacrebleu')}"
