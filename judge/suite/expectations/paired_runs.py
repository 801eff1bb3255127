"""One criterion in two runs, on the texts that have a score in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.core.records import Column, Estimate
from judge.report.format import count, signed
from judge.results.result import Result
from judge.suite.draws import NEAR, Parts
from judge.suite.expectations.context import name, short
from judge.suite.means import ends
from judge.suite.scored import NoScore, Scored, Text, named

_ANEW = "make the baseline anew with --update-baseline"


class Rescaled(NoScore):
    """A criterion whose scale is another one."""


@dataclass(frozen=True, slots=True)
class Beside:
    """The scores before and after of the `texts` that have both; `of` so many have one after."""

    before: Scored
    after: Scored
    texts: Sequence[Text]
    of: int

    def items(self) -> list[Parts]:
        """Of each item the difference, after less before, mean over its systems."""
        by_item: dict[str, list[Parts]] = {}
        for text in self.texts:
            sides = [(1, self.after.parts(*text)), (-1, self.before.parts(*text))]
            by_item.setdefault(text[0], []).append([(sign * c, one) for sign, parts in sides for c, one in parts])
        return [[(c / len(each), one) for parts in each for c, one in parts] for each in by_item.values()]

    @property
    def some(self) -> str:
        """`on 7 of 12 texts`, where it is not all of them."""
        return "" if len(self.texts) == self.of else f"on {len(self.texts):,} of {count(self.of, 'text')}"

    def mean_before(self) -> float:
        """Of the items' means."""
        by_item: dict[str, list[float]] = {}
        for text in self.texts:
            by_item.setdefault(text[0], []).extend(score.value for score in [self.before.score(*text)] if score)
        means = [sum(values) / len(values) for values in by_item.values()]
        return sum(means) / len(means)

    def changed(self) -> str:
        """`24 of 36 labels flipped`, or how many values moved where no label did; nothing where none moved."""
        try:
            flips, what = len(self.flips()), "label"
        except NoScore:
            flips, what = 0, ""
        if flips:
            return f"{flips:,} of {count(len(self.texts), what)} flipped"
        both = [(self.before.score(*text), self.after.score(*text)) for text in self.texts]
        moved = sum(abs(had.value - has.value) > NEAR for had, has in both if had and has)
        return f"{moved:,} of {count(len(both), 'score')} moved" if moved else ""

    def flips(self) -> list[Text]:
        """The texts whose likeliest label is another one. Raises NoScore where scores are made of no labels."""
        tops = [(text, _top(self.before.shares(*text)), _top(self.after.shares(*text))) for text in self.texts]
        if not all(before and after for _, before, after in tops):
            raise NoScore("scores are made of no labels, and nothing can flip: limit the shift")
        return [text for text, before, after in tops if before != after]


def _top(shares: Mapping[str, float]) -> str:
    return max(shares, key=shares.__getitem__) if shares else ""


def beside(before: Result, after: Scored, criterion: str, texts: Sequence[Text]) -> Beside:
    """Raises NoScore for a criterion that the baseline has not, and where it has fewer than half of the texts scored.

    Rescaled for one that it has on another scale.
    """
    try:
        had = Scored.of(before, criterion, {item for item, _ in texts})
    except NoScore:
        raise NoScore(f"{name(named(criterion))} is not in the baseline: {_ANEW}") from None
    was, now = (_scale(column) for column in (had.column, after.column))
    if was != now:
        raise Rescaled(f"its scale was {was} and is {now}: {_ANEW}")
    here = [text for text in texts if after.score(*text)]
    shared = [text for text in here if had.score(*text)]
    if not shared:
        raise NoScore("no text has a score both here and in the baseline")
    if 2 * len(shared) < len(here):
        raise NoScore(f"only {len(shared):,} of {count(len(here), 'text')} scored here have a score there: {_ANEW}")
    return Beside(had, after, shared, len(here))


def _scale(column: Column) -> str:
    if column.low is None or column.high is None:
        return "open"
    return f"{short(column.low)} to {short(column.high)}"


def change(e: Estimate, places: int) -> str:
    """`+1.30 [1.00, 1.60]`."""
    return f"{signed(e.value, places)} {ends(e, places)}".rstrip()
