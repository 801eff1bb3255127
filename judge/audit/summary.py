"""What a card says first: sentences, the worst first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.audit.bias import FIRST
from judge.audit.card import FEWEST, Cell, Finding, mostly
from judge.audit.correction import is_told
from judge.audit.sensitivity import enough
from judge.core.records import Column, Estimate
from judge.report.format import count, number, signed
from judge.report.views.audit_words import chance, change, listed, of, percent, places

_HALF = 0.5  # of the texts: from here on a change is noticed
_LOUD = {
    "verdict turns with the order": 0.1, "label changes with the wording": 0.1, "several labels at temperature 0": 0.1,
    "most used label": 0.75, "bottom": 0.75, "middle": 0.75, "top": 0.75,
}  # fmt: skip
"""Shares without a test that are worth a sentence: at least so large, and their interval above this or one half."""
_WORST, _BAD, _DOUBTFUL, _OPEN, _GOOD = 4.0, 3.0, 2.0, 1.0, 0.0
_KINDS = {
    "rewarded": (_WORST, "rewards"),
    "unnoticed": (_BAD, "does not notice"),
    "weak": (_BAD, "hardly notices"),
    "open": (_OPEN, "is inconclusive on"),
    "noticed": (_GOOD, "notices"),
}

Said = tuple[float, str]
"""How bad it is, and the sentence."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The criteria's columns, for what is better and for the decimals."""

    columns: Mapping[str, Column]

    def worse(self, cell: Cell) -> bool | None:
        """Whether the cell's move is significant and towards the worse end; None where it is not significant."""
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
    """Whether half of the texts or more are shown to fall, less those that rose, and the mean is shown to.

    The half by the low end of the rate's interval; the mean by its test, or not at all where that has too few texts.
    """
    fell = _is_half(cell.rate, cell.against)
    return fell and ((cell.move is not None and is_told(cell.move)) or mostly(cell.rate, cell.move))


def lifted(cell: Cell) -> bool:
    """The same of the other way: whether the damage lifts the score."""
    return _is_half(cell.against, cell.rate) and mostly(cell.against, cell.move)


def _is_half(toward: Estimate | None, back: Estimate | None) -> bool:
    """Whether one half is shown to move so, less those that moved the other way."""
    return toward is not None and toward.low is not None and toward.low - _value(back) >= _HALF


def verdicts(
    cells: Sequence[Cell],
    attacks: Sequence[Cell],
    findings: Sequence[Finding],
    columns: Mapping[str, Column],
    scoreless: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """The sentences of a card; equally bad ones in the order of the card. `scoreless` are criteria, and why."""
    sides = Sides(columns)
    none = [(_WORST + 1, f"{name} gives no score: {why}.") for name, why in (scoreless or {}).items()]
    said = [*none, *_attacked(attacks, sides), *_leaning(findings), *_own(cells, sides), *_others(cells, sides)]
    return tuple(sentence for _, sentence in sorted(said, key=lambda one: -one[0]))


def _value(share: Estimate | None) -> float:
    return share.value if share else 0.0


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
    if worse is False or (worse is None and lifted(cell)):
        return "rewarded"
    if noticed(cell):
        return "noticed"
    net = (rate.high or 0) - _value(cell.against) if rate else 0.0
    return "open" if net >= _HALF else "weak" if worse else "unnoticed"


def _evidence(cell: Cell, kind: str, sides: Sides) -> str:
    if cell.rate is None or (kind == "rewarded" and not lifted(cell)):
        return sides.moved(cell)
    if kind == "rewarded" and cell.against is not None:
        return f"{sides.mean(cell)}, rose in {of(cell.against, 'texts')}{_untold(cell)}"
    rose = f", {percent(cell.against)} rose" if cell.against and cell.against.value else ""
    beside = f"; on average {sides.mean(cell)}" if kind == "weak" or (kind == "open" and sides.worse(cell)) else ""
    return of(cell.rate) + rose + beside


def _untold(cell: Cell) -> str:
    return "" if cell.move and is_told(cell.move) else "; too few to test"


def _others(cells: Iterable[Cell], sides: Sides) -> Iterator[Said]:
    """Which criteria fall for damage that is not theirs."""
    found = defaultdict[str, list[Cell]](list)
    for cell in cells:
        if not cell.own and noticed(cell):
            found[cell.criterion].append(cell)
    for name, fell in found.items():
        told = [f"{cell.change} ({of(cell.rate)})" for cell in fell if cell.rate]
        yield _DOUBTFUL, f"{name} falls for damage that is not its own: {listed(told)}."


def _attacked(attacks: Sequence[Cell], sides: Sides) -> Iterator[Said]:
    """What each attack gets, by the criterion that it gets most from; and whether the others get nothing."""
    real = [cell for cell in attacks if not cell.control and cell.move is not None]
    beaten = []
    for name in dict.fromkeys(cell.change for cell in real):
        mine = [cell for cell in real if cell.change == name]
        if won := sorted((cell for cell in mine if _won(cell, sides)), key=lambda one: (_open(one), -_value(one.rate))):
            first, *more = won
            others = listed([f"{cell.criterion} {sides.mean(cell)}" for cell in more]) if more else ""
            also = f"; also {others}" if others else ""
            does = "raised scores" if _open(first) else "works"
            rank = (_BAD if _open(first) else _WORST) + _value(first.rate)
            yield rank, f"The attack “{name}” {does}: {_gain(first, sides)}{also}."
        else:
            beaten.append(name)
    if beaten:
        yield _beaten(beaten, [cell for cell in real if cell.change in beaten], len(attacks), sides)


def _won(cell: Cell, sides: Sides) -> bool:
    """Whether an attack lifts a score, beyond what its control does and above that of the text as it is."""
    if cell.raw is not None and (cell.raw.value > 0) == (sides.columns[cell.criterion].better == "lower"):
        return False
    return (sides.worse(cell) is False) or _open(cell)


def _open(cell: Cell) -> bool:
    """Whether it did so in half of the texts or more, which are too few for the test."""
    rose = cell.move is not None and not is_told(cell.move) and mostly(cell.rate, cell.move)
    return rose and _value(cell.rate) - _value(cell.against) >= _HALF


def _beaten(names: Sequence[str], cells: Sequence[Cell], tests: int, sides: Sides) -> Said:
    said, listing = count(len(names), "attack"), ", ".join(names)
    fewest = min(cell.move.n for cell in cells if cell.move)
    if fewest < (least := max(FEWEST, enough(tests))):
        return _OPEN, f"{said} inconclusive, too few texts ({listing}): {fewest} of at least {least}."
    most = max((top for cell in cells if (top := _most(cell, sides)) is not None), default=0.0)
    upto = f"at most {signed(most, 2)} by any interval" if most > 0 else "no interval goes above 0"
    return _GOOD, f"{said} without a significant rise ({listing}): {upto}."


def _gain(cell: Cell, sides: Sides) -> str:
    rose = f", up by an eighth of the scale or more in {of(cell.rate, 'texts')}" if cell.rate else ""
    if _open(cell):
        return f"{cell.criterion} {sides.mean(cell)}{rose}; too few to test"
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
        if (one.harmful and (one.told or one.open)) or (one.told is None and _loud(one)):
            groups[one.probe, one.what].append(one)
    for found in groups.values():
        first, *more = sorted(found, key=lambda one: (not one.told, -_size(one)))
        others = [f"{one.criterion} {_short(one.estimate, one.unit)}" for one in more]
        yield _DOUBTFUL + _size(first), first.said + (f"; also {listed(others)}" if others else "") + "."


def _loud(one: Finding) -> bool:
    least = _LOUD.get(one.what)
    return least is not None and one.estimate.value >= least and (one.estimate.low or 0.0) > min(least, _HALF)


def _size(one: Finding) -> float:
    """How large a bias is, 0–1: of points a rough share of five."""
    value = one.estimate.value
    return min(
        1.0,
        abs(value - 0.5) if one.what == FIRST else abs(value) / (4 if "points" in one.unit else 1),
    )


def _short(found: Estimate, unit: str) -> str:
    return f"{number(100 * found.value, 0)}%" if unit == "share" else signed(found.value, 2)
