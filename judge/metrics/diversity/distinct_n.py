"""distinct-N (Li et al. 2016): which share of a system's n-grams are different ones."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from judge.core.errors import ConfigError
from judge.core.records import Column, Failure, Sample, Score
from judge.metrics import MetricResult
from judge.metrics.bleu import order, tokens
from judge.metrics.common import CannotScore, choice_option
from judge.metrics.diversity import ngrams
from judge.metrics.diversity.ngrams import Corpus, Cut, cut, orders, totals

_PER = ("ngrams", "tokens")


class Distinct:
    """distinct-N (0–1) of each system: its different n-grams over all its n-grams, the higher the more diverse.

    The n-grams of all texts of the system are counted together, none from one text into the next. The more tokens,
    the lower the value: compare systems with about as many.

    Options: `orders` (a number or a list of numbers from 1 to 9), `per` ("ngrams", or "tokens" for the division
    by tokens of Li et al. 2016), `tokenize` (a tokenizer of sacrebleu; by the system's script unless given),
    `lowercase`.
    """

    def __init__(
        self,
        *,
        orders: int | Sequence[int] = (1, 2, 3, 4),
        per: str = "ngrams",
        tokenize: str | None = None,
        lowercase: bool = False,
    ) -> None:
        numbers = tuple(
            order("distinct.orders", each) for each in (orders if isinstance(orders, list | tuple) else (orders,))
        )
        if not numbers or len(set(numbers)) < len(numbers):
            raise ConfigError(f"distinct.orders must be one or more different numbers, not {orders!r}")
        self.orders = numbers
        self.per = choice_option("distinct.per", per, _PER)
        self.tokens = tokens("distinct", tokenize=tokenize, lowercase=lowercase)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """A row for each system and order, or a `Failure` where no text is that long.

        A text without a token adds nothing and is counted in the row's note.
        """
        rows: list[Score | Failure] = []
        cuts: dict[str, Cut] = {}
        for system, own_samples in ngrams.by_system(samples).items():
            cuts[system] = cut(self.tokens, [sample.output for sample in own_samples], "distinct")
            corpus = cuts[system].corpus
            distinct_counts = _distinct_counts(corpus, max(self.orders))
            for n in self.orders:
                try:
                    share = _share(corpus, distinct_counts, n, self.per)
                except CannotScore as error:
                    rows.append(ngrams.failure(system, f"distinct{n}", error))
                else:
                    empty = ngrams.blank(corpus)
                    note = ngrams.count(len(corpus.ids), "token")
                    note += f"; {ngrams.count(empty)} without any" if empty else ""
                    rows.append(ngrams.value(system, f"distinct{n}", share, n=len(corpus.lengths), note=note))
        cutting = f"{self.tokens.case}|{self.tokens.named(system_cut.name for system_cut in cuts.values())}"
        columns = tuple(
            Column(
                f"distinct{n}",
                "metric",
                f"distinct{n}|system|per={self.per}|{cutting}|sacrebleu {version('sacrebleu')}",
                low=0.0,
                high=1.0,
            )
            for n in self.orders
        )
        notes = ngrams.notes("distinct", cuts, "they add nothing to it") + ngrams.unequal_counts_note("distinct", rows)
        return MetricResult(columns, tuple(rows), notes)


def distinct(
    texts: Sequence[str], n: int = 1, *, per: str = "ngrams", tokenize: str | None = None, lowercase: bool = False
) -> float:
    """distinct-N (0–1, the higher the more diverse): different n-grams of all texts over all their n-grams.

    With `per="tokens"`, over all their tokens, which is how Li et al. 2016 scale it; the same for n = 1.
    Tokens are those of sacrebleu's tokenizer `tokenize`, chosen by the script of all the texts unless given. Raises
    DataError where no text has n tokens, ConfigError for options that are not allowed.
    """
    highest = order("distinct.n", n)
    corpus = cut(tokens("distinct", tokenize=tokenize, lowercase=lowercase), texts).corpus
    return _share(corpus, _distinct_counts(corpus, highest), highest, choice_option("distinct.per", per, _PER))


def _distinct_counts(texts: Corpus, highest: int) -> list[int]:
    """Count the different n-grams of each order from 1."""
    return [int(grams.gram.max(initial=-1)) + 1 for grams in orders(texts, highest)]


def _share(texts: Corpus, kinds: Sequence[int], n: int, per: str) -> float:
    ngrams.check_texts(texts)
    total = int(totals(texts.lengths, n).sum())
    if not total:
        raise CannotScore("NoNgram", f"no text has {n} tokens: there is no {n}-gram to count")
    return kinds[n - 1] / (total if per == "ngrams" else len(texts.ids))
