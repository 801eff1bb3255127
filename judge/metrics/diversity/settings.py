"""What the kinds of BLEU here have in common: options, tokens and how a score comes of counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

from judge.metrics import Note, sacre
from judge.metrics.diversity.grams import Corpus, Ints, corpus, totals
from judge.metrics.shared import joined, one_of, whole_number, yes_or_no
from judge.metrics.shared import texts as checked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

_SMOOTH = {"exp": "exp", "floor": "floor[0.10]", "add-k": "add-k[1.00]", "none": "none"}
_FLOOR, _ADDED = 0.1, 1  # sacrebleu's, from Chen and Cherry 2014
_HIGHEST_ORDER = 9


@dataclass(frozen=True, slots=True)
class Cut:
    """Texts as tokens: `name` is the tokenizer, `note` says of how many it leaves a sentence in one piece."""

    corpus: Corpus
    name: str
    note: Note


@dataclass(frozen=True, slots=True)
class Tokens:
    """Which tokens a text has: those of sacrebleu's tokenizer `tokenize` (None: by the texts' script)."""

    tokenize: str | None = None
    lowercase: bool = False

    def name(self, texts: Sequence[str]) -> str:
        """The tokenizer for these texts, which are all cut alike."""
        return self.tokenize or sacre.tokenizer_for(texts)

    def of(self, texts: Sequence[str], metric: str = "") -> Cut:
        """The texts cut, all by one tokenizer. Raises MissingExtra where its packages are not installed.

        DataError for what is no list of texts.
        """
        name = self.name(given := checked("texts", texts))
        return Cut(corpus(self.cut(given, name)), name, sacre.uncut(metric, name, given))

    def cut(self, texts: Sequence[str], name: str) -> list[list[str]]:
        """The texts' tokens, as BLEU(tokenize=name) of sacrebleu has them."""
        return list(map(sacre.words(name, lowercase=self.lowercase), texts))

    def signature(self, names: Iterable[str]) -> str:
        """The part of a signature that says case and tokenizers, sacrebleu's own words for them."""
        return f"case={'lc' if self.lowercase else 'mixed'}|tok={joined(map(sacre.signed, names))}"


@dataclass(frozen=True, slots=True)
class Settings:
    """How BLEU is computed: up to which order, with which of sacrebleu's smoothings, of which tokens."""

    max_order: int = 4
    smooth: str = "exp"
    effective_order: bool = True
    tokens: Tokens = Tokens()

    def signature(self, names: Iterable[str]) -> str:
        """The signature's parts from `case` on, for data cut by these tokenizers."""
        return (
            f"eff={'yes' if self.effective_order else 'no'}|order={self.max_order}|{self.tokens.signature(names)}"
            f"|smooth={_SMOOTH[self.smooth]}|sacrebleu {version('sacrebleu')}"
        )


def options(
    name: str,
    *,
    max_order: int,
    smooth: str,
    tokenize: str | None,
    lowercase: bool,
    effective_order: bool,
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
        tokenize = sacre.known(f"{name}.tokenize", tokenize)
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


def scores(hits: Sequence[Ints], lengths: Ints, closest: Ints, settings: Settings) -> Floats:
    """What `score` gives, for many texts at once: `hits[n - 1]` are their matching n-grams of order n.

    As `sacrebleu.metrics.bleu.BLEU.compute_bleu` 2.6 does it, to the last places of a float.
    """
    import numpy as np

    logs, used, halved = np.zeros(len(lengths)), np.zeros(len(lengths)), np.ones(len(lengths))
    with np.errstate(divide="ignore", invalid="ignore"):  # the logarithm of no match; orders longer than the text
        for n, found in enumerate(hits, start=1):
            added = _ADDED if settings.smooth == "add-k" and n > 1 else 0
            total = totals(lengths, n) + added
            missed = found + added == 0
            halved[missed] *= 2
            least = {"exp": 100.0 / (halved * total), "floor": 100.0 * _FLOOR / total}.get(settings.smooth, 0.0)
            precision = np.where(missed, least, 100.0 * (found + added) / total)
            there = total > 0
            if settings.effective_order:
                logs += np.where(there, np.log(precision), 0.0)
                used += there
            else:
                logs += np.where(there, np.log(precision), -np.inf)
                used += 1
        brevity = np.where(lengths < closest, np.exp(1 - closest / lengths), 1.0)
        matched = np.any([found > 0 for found in hits], axis=0)
        return np.where(matched, np.minimum(brevity * np.exp(logs / used), 100.0), 0.0)
