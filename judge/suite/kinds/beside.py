"""One criterion in two runs, on the texts that have a score in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.records import Column, Estimate
from judge.report import Result
from judge.report.words import signed
from judge.suite.draws import Parts
from judge.suite.kinds.shared import name, short
from judge.suite.means import ends
from judge.suite.scored import NoScore, Scored, Text, named

_ANEW = "make the baseline anew with --update-baseline"


@dataclass(frozen=True, slots=True)
class Beside:
    """The scores before and after of the `texts` that have both."""

    before: Scored
    after: Scored
    texts: Sequence[Text]

    def items(self) -> list[Parts]:
        """Of each item the difference, after less before, mean over its systems."""
        by_item: dict[str, list[Parts]] = {}
        for text in self.texts:
            sides = [(1, self.after.parts(*text)), (-1, self.before.parts(*text))]
            by_item.setdefault(text[0], []).append([(sign * c, one) for sign, parts in sides for c, one in parts])
        return [[(c / len(each), one) for parts in each for c, one in parts] for each in by_item.values()]

    def mean_before(self) -> float:
        """Of the items' means."""
        by_item: dict[str, list[float]] = {}
        for text in self.texts:
            by_item.setdefault(text[0], []).extend(score.value for score in [self.before.score(*text)] if score)
        means = [sum(values) / len(values) for values in by_item.values()]
        return sum(means) / len(means)

    def flips(self) -> list[Text]:
        """The texts whose likeliest label is another one. Raises NoScore where scores are made of no labels."""
        tops = [(text, _top(self.before.shares(*text)), _top(self.after.shares(*text))) for text in self.texts]
        if not all(before and after for _, before, after in tops):
            raise NoScore("scores are made of no labels, and nothing can flip: limit the shift")
        return [text for text, before, after in tops if before != after]


def _top(shares: Mapping[str, float]) -> str:
    return max(shares, key=shares.__getitem__) if shares else ""


def beside(before: Result, after: Scored, criterion: str, texts: Sequence[Text]) -> Beside:
    """Raises NoScore for a criterion that the baseline has not, or has on another scale, and without a shared text."""
    try:
        had = Scored.of(before, criterion, {item for item, _ in texts})
    except NoScore:
        raise NoScore(f"{name(named(criterion))} is not in the baseline: {_ANEW}") from None
    was, now = (_scale(column) for column in (had.column, after.column))
    if was != now:
        raise NoScore(f"its scale was {was} and is {now}: {_ANEW}")
    shared = [text for text in texts if had.score(*text) and after.score(*text)]
    if not shared:
        raise NoScore("no text has a score both here and in the baseline")
    return Beside(had, after, shared)


def _scale(column: Column) -> str:
    if column.low is None or column.high is None:
        return "open"
    return f"{short(column.low)} to {short(column.high)}"


def change(e: Estimate, places: int) -> str:
    """`+1.30 [1.00, 1.60]`."""
    return f"{signed(e.value, places)} {ends(e, places)}".rstrip()
