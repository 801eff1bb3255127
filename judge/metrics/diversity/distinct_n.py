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
        self.orders = _orders(orders)
        self.per = choice_option("distinct.per", per, _PER)
        self.tokens = tokens("distinct", tokenize=tokenize, lowercase=lowercase)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """A row for each system and order, or a `Failure` where no text is that long.

        A text without a token adds nothing and is counted in the row's note.
        """
        rows: list[Score | Failure] = []
        cuts: dict[str, Cut] = {}
        for system, own in ngrams.by_system(samples).items():
            cuts[system] = cut(self.tokens, [sample.output for sample in own], "distinct")
            rows += self._rows(system, cuts[system].corpus)
        names = [found.name for found in cuts.values()]
        columns = tuple(
            Column(f"distinct{n}", "metric", self._signature(n, names), low=0.0, high=1.0) for n in self.orders
        )
        said = ngrams.notes("distinct", cuts, "they add nothing to it") + ngrams.unequal_counts_note("distinct", rows)
        return MetricResult(columns, tuple(rows), said)

    def _rows(self, system: str, texts: Corpus) -> list[Score | Failure]:
        kinds = _kinds(texts, max(self.orders))
        rows: list[Score | Failure] = []
        for n in self.orders:
            name = f"distinct{n}"
            try:
                number = _share(texts, kinds, n, self.per)
            except CannotScore as error:
                rows.append(ngrams.failure(system, name, error))
            else:
                empty = ngrams.blank(texts)
                note = ngrams.count(len(texts.ids), "token") + (f"; {ngrams.count(empty)} without any" if empty else "")
                rows.append(ngrams.value(system, name, number, n=len(texts.lengths), note=note))
        return rows

    def _signature(self, n: int, names: Sequence[str]) -> str:
        cutting = f"{self.tokens.case}|{self.tokens.named(names)}"
        return f"distinct{n}|system|per={self.per}|{cutting}|sacrebleu {version('sacrebleu')}"


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
    return _share(corpus, _kinds(corpus, highest), highest, choice_option("distinct.per", per, _PER))


def _kinds(texts: Corpus, highest: int) -> list[int]:
    """How many different n-grams of each order from 1 there are."""
    return [int(grams.gram.max(initial=-1)) + 1 for grams in orders(texts, highest)]


def _share(texts: Corpus, kinds: Sequence[int], n: int, per: str) -> float:
    ngrams.check_texts(texts)
    total = int(totals(texts.lengths, n).sum())
    if not total:
        raise CannotScore("NoNgram", f"no text has {n} tokens: there is no {n}-gram to count")
    return kinds[n - 1] / (total if per == "ngrams" else len(texts.ids))


def _orders(value: int | Sequence[int]) -> tuple[int, ...]:
    found = tuple(order("distinct.orders", each) for each in (value if isinstance(value, list | tuple) else (value,)))
    if not found or len(set(found)) < len(found):
        raise ConfigError(f"distinct.orders must be one or more different numbers, not {value!r}")
    return found
