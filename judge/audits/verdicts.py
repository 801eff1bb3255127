"""What a card says first: sentences, the worst first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.audits.card import Cell, Finding
from judge.audits.drafts import is_told
from judge.audits.words import chance, change, listed, of, places
from judge.records import Column, Estimate
from judge.report.words import count, number, signed

_HALF = 0.5  # of the texts: from here on a change is noticed
_LOUD = {
    "verdict turns with the order": 0.1, "label changes with the wording": 0.1, "several labels at temperature 0": 0.1,
    "most used label": 0.75, "bottom": 0.75, "middle": 0.75, "top": 0.75,
}  # fmt: skip
"""Shares without a test that are worth a sentence, where their interval lies above this."""
_WORST, _BAD, _DOUBTFUL, _OPEN, _GOOD = 4.0, 3.0, 2.0, 1.0, 0.0
_KINDS = {
    "rewarded": (_WORST, "goes up with"),
    "unnoticed": (_BAD, "does not notice"),
    "weak": (_BAD, "hardly notices"),
    "open": (_OPEN, "may or may not notice"),
    "noticed": (_GOOD, "notices"),
}

Said = tuple[float, str]
"""How bad it is, and the sentence."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The criteria's columns, for what is better and for the decimals."""

    columns: Mapping[str, Column]

    def worse(self, cell: Cell) -> bool | None:
        """Whether the cell's move is told apart from none, and towards the worse end; None where it is not told."""
        if cell.move is None or not is_told(cell.move):
            return None
        return (cell.move.value < 0) != (self.columns[cell.criterion].better == "lower")

    def moved(self, cell: Cell) -> str:
        """`+0.35 [0.10, 0.60], p = 0.012`."""
        found = cell.move
        return ", ".join(filter(None, [change(found, self._places(cell)), chance(found.p)])) if found else "–"

    def mean(self, cell: Cell) -> str:
        """`+0.35`."""
        return signed(cell.move.value, self._places(cell)) if cell.move else "–"

    def _places(self, cell: Cell) -> int:
        return places(self.columns[cell.criterion], [cell.move.value] if cell.move else [])


def noticed(cell: Cell) -> bool:
    """Whether at least half of the texts fell, and that is no chance: by the mean move's test, or by the rate alone."""
    rate = cell.rate
    fell = rate is not None and rate.value >= _HALF
    sure = cell.move is not None and is_told(cell.move)
    return fell and (sure or (rate is not None and rate.low is not None and rate.low >= _HALF))


def verdicts(
    cells: Sequence[Cell], attacks: Sequence[Cell], findings: Sequence[Finding], columns: Mapping[str, Column]
) -> tuple[str, ...]:
    """The sentences of a card; equally bad ones in the order of the card."""
    sides = Sides(columns)
    said = [*_attacked(attacks, sides), *_leaning(findings), *_own(cells, sides), *_others(cells, sides)]
    return tuple(sentence for _, sentence in sorted(said, key=lambda one: -one[0]))


def _own(cells: Iterable[Cell], sides: Sides) -> Iterator[Said]:
    """What each criterion makes of its own damage."""
    kinds: dict[str, dict[str, list[Cell]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        if cell.own and cell.rate is not None:
            kinds[cell.criterion][_kind(cell, sides)].append(cell)
    for name, by_kind in kinds.items():
        for kind, (rank, words) in _KINDS.items():
            if found := by_kind.get(kind):
                lowest = min(cell.rate.value for cell in found if cell.rate)
                told = [f"{cell.change} ({_evidence(cell, kind, sides)})" for cell in found]
                yield rank - (lowest if rank == _BAD else 0), f"{name} {words} {listed(told)}."


def _kind(cell: Cell, sides: Sides) -> str:
    worse, rate = sides.worse(cell), cell.rate
    if worse is False:
        return "rewarded"
    if noticed(cell):
        return "noticed"
    if worse:
        return "weak"
    return "open" if rate and (rate.high or 0) >= _HALF else "unnoticed"


def _evidence(cell: Cell, kind: str, sides: Sides) -> str:
    if kind == "rewarded" or cell.rate is None:
        return sides.moved(cell)
    beside = f"; on average {sides.mean(cell)}" if kind == "weak" else ""
    return of(cell.rate) + beside


def _others(cells: Iterable[Cell], sides: Sides) -> Iterator[Said]:
    """Which criteria fall for damage that is not theirs."""
    found = defaultdict[str, list[Cell]](list)
    for cell in cells:
        if not cell.own and noticed(cell) and sides.worse(cell) is not False:
            found[cell.criterion].append(cell)
    for name, fell in found.items():
        told = [f"{cell.change} ({of(cell.rate)})" for cell in fell if cell.rate]
        yield _DOUBTFUL, f"{name} falls for damage that is not its own: {listed(told)}."


def _attacked(attacks: Sequence[Cell], sides: Sides) -> Iterator[Said]:
    """What each attack gets, by the criterion that it gets most from; and that no other one gets anything."""
    names = dict.fromkeys(cell.change for cell in attacks if cell.move is not None)
    beaten = []
    for name in names:
        mine = [cell for cell in attacks if cell.change == name]
        if won := sorted((cell for cell in mine if sides.worse(cell) is False), key=lambda cell: -_rate(cell)):
            rank = _WORST + _rate(won[0])
            first, *more = won
            others = listed([f"{cell.criterion} {sides.mean(cell)}" for cell in more]) if more else ""
            also = f"; also {others}" if others else ""
            yield rank, f"The attack “{name}” works: {_gain(first, sides)}{also}."
        else:
            beaten.append(name)
    if beaten:
        most = [top for cell in attacks if cell.change in beaten and (top := _most(cell, sides)) is not None]
        upto = " too few texts for an interval"
        if most:
            upto = f" at most {signed(max(most), 2)} by any interval" if max(most) > 0 else " no interval goes above 0"
        yield _GOOD, f"{count(len(beaten), 'attack')} without a rise that is told ({', '.join(beaten)}):{upto}."


def _rate(cell: Cell) -> float:
    return cell.rate.value if cell.rate else 0.0


def _gain(cell: Cell, sides: Sides) -> str:
    rose = f", up by an eighth of the scale or more in {of(cell.rate)} texts" if cell.rate else ""
    return f"{cell.criterion} {sides.moved(cell)}{rose}"


def _most(cell: Cell, sides: Sides) -> float | None:
    """The furthest towards the better end that the interval allows."""
    if cell.move is None or cell.move.low is None or cell.move.high is None:
        return None
    return -cell.move.low if sides.columns[cell.criterion].better == "lower" else cell.move.high


def _leaning(findings: Iterable[Finding]) -> Iterator[Said]:
    """Biases that are told, and large shares; of several criteria the furthest speaks for all."""
    groups = defaultdict[tuple[str, str], list[Finding]](list)
    for one in findings:
        if one.told or (one.told is None and (one.estimate.low or 0.0) > _LOUD.get(one.what, 1.0)):
            groups[one.probe, one.what].append(one)
    for found in groups.values():
        first, *more = sorted(found, key=lambda one: -_size(one))
        others = [f"{one.criterion} {_short(one.estimate, one.unit)}" for one in more]
        yield _DOUBTFUL + _size(first), first.said + (f"; also {listed(others)}" if others else "") + "."


def _size(one: Finding) -> float:
    """How large a bias is, 0–1: of points a rough share of five."""
    value = one.estimate.value
    return min(
        1.0,
        abs(value - 0.5) if one.what == "text shown first wins" else abs(value) / (4 if "points" in one.unit else 1),
    )


def _short(found: Estimate, unit: str) -> str:
    return f"{number(100 * found.value, 0)}%" if unit == "share" else signed(found.value, 2)
