"""The verdict of a judge card in words, by groups of criteria.

A criterion is good enough if people agree with the judge and every measured line passes. Whatever
else it is, the sentence names the lines that are the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from judge.commands.card.card import (
    CardCell,
    CardEvidence,
    CardLine,
    CriterionVerdict,
    Level,
)
from judge.commands.card.lines import AGREEMENT, COLD, POSITION
from judge.core.format import listed, plural
from judge.stats.power import scatter

_MOST_NAMED = 4
"""Lines in a sentence."""
_GOOD: tuple[Level, ...] = ("good enough", "good enough with reservations")
_NOT_GOOD: Mapping[Level, str] = {
    "not shown": "Not shown to be good enough",
    "not good enough": "Not good enough",
}
_LEVELS: tuple[Level, ...] = (*_GOOD, *_NOT_GOOD)


@dataclass(frozen=True, slots=True)
class _Supported:
    """The smallest difference between systems that `items` support, or why it is unknown.

    `favouring` is the largest difference between systems in the judge's shift from people.
    """

    difference: float | None
    items: int
    favouring: float = 0.0
    reason: str = ""


def criterion_verdicts(
    lines: Sequence[CardLine], evidence: CardEvidence
) -> tuple[CriterionVerdict, ...]:
    """Return the verdict on each criterion of the lines."""
    verdicts = []
    for criterion in evidence.columns:
        supported = _supported(evidence, criterion)
        verdicts.append(_criterion_verdict(criterion, lines, supported))
    return tuple(verdicts)


def _criterion_verdict(
    criterion: str,
    lines: Sequence[CardLine],
    supported: _Supported,
) -> CriterionVerdict:
    cell_by_line: dict[str, CardCell] = {}
    for line in lines:
        for cell in line.cells:
            if cell.criterion == criterion:
                cell_by_line[line.name] = cell
    agreement = cell_by_line[AGREEMENT]
    fails = []
    unclear = []
    measured = 0
    for line_name, cell in cell_by_line.items():
        if cell.verdict == "fail":
            fails.append(line_name)
        elif cell.verdict == "unclear":
            unclear.append(line_name)
        if cell.verdict != "not measured":
            measured += 1
    level = _level(agreement, passes_all=not (fails or unclear))
    advice = agreement.advice
    if level == "good enough with reservations":
        # The lines are in the order of their weight: the first one that fails comes first.
        line_name = [*fails, *unclear][0]
        advice = _advice_on_line(line_name, cell_by_line[line_name], lines)
    return CriterionVerdict(
        criterion,
        level,
        supported.difference,
        supported.items,
        favouring=supported.favouring,
        measured=measured,
        lines=len(cell_by_line),
        fails=tuple(fails),
        unclear=tuple(unclear),
        reason=agreement.reason,
        no_difference=supported.reason,
        advice=advice,
    )


def _advice_on_line(line_name: str, cell: CardCell, lines: Sequence[CardLine]) -> str:
    """Say when a line passes, and what would help."""
    rule = next(line.passes for line in lines if line.name == line_name)
    advice = cell.advice or cell.reason
    return f"{advice} ({line_name} passes if {rule})" if advice else ""


def _level(agreement: CardCell, *, passes_all: bool) -> Level:
    """Return the level of a criterion; `passes_all` says whether all measured lines pass."""
    if agreement.verdict == "fail":
        return "not good enough"
    if agreement.verdict != "pass":
        return "not shown"
    return "good enough" if passes_all else "good enough with reservations"


def _supported(evidence: CardEvidence, criterion: str) -> _Supported:
    """Return the smallest difference that the items detect with 80% power.

    It is at least the largest difference between two systems in the judge's shift from people:
    a smaller gap may be the judge's favouring.
    """
    table = evidence.texts
    if table is None:
        return _Supported(None, 0, reason="no systems were compared")
    (spreads,) = scatter(table, [evidence.columns[criterion]])
    items = min((pair.items for pair in spreads.pairs), default=0)
    if not spreads.pairs:
        return _Supported(None, items, reason=spreads.note)
    # The sentence is about any two systems: the pair that is hardest to tell apart decides.
    detectable = spreads.hardest(None, items).detectable(items)
    if detectable is None:
        systems = plural(spreads.systems, "system")
        reason = f"{systems} need at least {plural(spreads.least, 'item')}"
        return _Supported(None, items, reason=reason)
    people = evidence.people.get(criterion)
    shift = people.shift if people is not None and people.shift is not None else 0.0
    return _Supported(max(detectable, shift), items, favouring=shift)


# The sentences


def verdict_sentences(
    criteria: Sequence[CriterionVerdict], lines: Sequence[CardLine]
) -> Iterator[str]:
    """Yield sentences on each group of criteria, the best first, on the paradox, and what to do.

    The paradox of Norman, Rivera and Hughes (2026): a judge that repeats itself exactly may do so
    because it follows the order of the texts.
    """
    for level in _GOOD:
        group = [verdict for verdict in criteria if verdict.level == level]
        if group:
            yield _sentence_on_good(group)
            yield from _limit(group)
    for level in _NOT_GOOD:
        group = [verdict for verdict in criteria if verdict.level == level]
        for reason in dict.fromkeys(verdict.reason for verdict in group):
            names = _names([verdict for verdict in group if verdict.reason == reason])
            yield f"{_NOT_GOOD[level]} on {names}: {reason}."
    paradoxical = _paradoxical(lines)
    if paradoxical:
        yield (
            f"Consistent but biased on {listed(paradoxical)}: repeats agree, yet the order of the "
            "texts decides. That is a failure, not a strength."
        )
    yield from _next_steps(criteria)


def _sentence_on_good(group: Sequence[CriterionVerdict]) -> str:
    """Write the sentence on criteria that are good enough, with or without reservations."""
    opening = _capital(group[0].level)
    names = _names(group)
    measured = _measured(group)
    reservations = _reservations(group)
    differences = [
        verdict.difference for verdict in group if verdict.difference is not None
    ]
    if len(differences) < len(group):
        reason = next(
            verdict.no_difference for verdict in group if verdict.difference is None
        )
        return (
            f"{opening} on {names} ({measured}); it is unknown which differences between systems "
            f"it shows: {reason}.{reservations}"
        )
    # The sentence has to hold for each of the criteria.
    least = _rounded_up(max(differences))
    items = _fewest_items(group)
    return (
        f"{opening} to compare systems that differ by more than {least} points on {names} at "
        f"{items} ({measured}).{reservations}"
    )


def _limit(group: Sequence[CriterionVerdict]) -> Iterator[str]:
    """Yield what limits the smallest difference that the judge shows, if that is known."""
    differences = [
        verdict.difference for verdict in group if verdict.difference is not None
    ]
    if len(differences) < len(group):
        return
    least = max(differences)
    if any(verdict.favouring == least for verdict in group):
        shift = _rounded_up(least)
        yield (
            "The limit is the judge's shift: it favours one system over another by up to "
            f"{shift} points more than people do. More items do not lower it."
        )
    else:
        items = _fewest_items(group)
        yield f"The limit is what {items} detect with 80% power; more items lower it."


def _next_steps(criteria: Sequence[CriterionVerdict]) -> Iterator[str]:
    """Yield what to do next about the criteria with the worst verdict."""
    for level in reversed(_LEVELS):
        group = [verdict for verdict in criteria if verdict.level == level]
        if not group:
            continue
        criteria_by_advice: dict[str, list[CriterionVerdict]] = {}
        for verdict in group:
            if verdict.advice:
                criteria_by_advice.setdefault(verdict.advice, []).append(verdict)
        for advice, advised in criteria_by_advice.items():
            about = ""
            if len(advised) < len(criteria):
                about = f", on {_names(advised)}"
            yield f"Next{about}: {advice}."
        return


def _fewest_items(group: Sequence[CriterionVerdict]) -> str:
    fewest = min(verdict.items for verdict in group)
    return plural(fewest, "item")


def _reservations(group: Sequence[CriterionVerdict]) -> str:
    """Write ` Reservations: position fails; length and own family are unclear.`, if there are any.

    A line that fails on one criterion and is unclear on another one fails.
    """
    fails = dict.fromkeys(line_name for verdict in group for line_name in verdict.fails)
    all_unclear = dict.fromkeys(
        line_name for verdict in group for line_name in verdict.unclear
    )
    unclear = [line_name for line_name in all_unclear if line_name not in fails]
    reservations = []
    if fails:
        verb = "fails" if len(fails) == 1 else "fail"
        reservations.append(f"{_first_lines(fails)} {verb}")
    if unclear:
        verb = "is" if len(unclear) == 1 else "are"
        reservations.append(f"{_first_lines(unclear)} {verb} unclear")
    if not reservations:
        return ""
    sentence = "; ".join(reservations)
    return f" Reservations: {sentence}."


def _first_lines(names: Iterable[str]) -> str:
    """Write `position, length and damage`, or `position, length, filler, damage and 3 more`."""
    lines = list(names)
    further = len(lines) - _MOST_NAMED
    if further > 0:
        lines = [*lines[:_MOST_NAMED], f"{further} more"]
    return listed(lines)


def _measured(group: Sequence[CriterionVerdict]) -> str:
    """Write `all 12 lines measured` or `5 of 12 lines measured`, the fewest of the criteria."""
    fewest = min(group, key=lambda verdict: verdict.measured)
    if fewest.measured == fewest.lines:
        return f"all {fewest.lines} lines measured"
    return f"{fewest.measured} of {fewest.lines} lines measured"


def _names(group: Sequence[CriterionVerdict]) -> str:
    return listed([verdict.criterion for verdict in group])


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _rounded_up(value: float) -> str:
    """Write a number with two significant digits, rounded up: `0.32` for 0.3111."""
    if value <= 0:
        return "0"
    digits = max(0, 1 - floor(log10(value)))
    factor = 10**digits
    # Rounded down, it would promise more than the items show. 1e-9: 0.29 * 100 is 28.999….
    rounded_up = ceil(value * factor - 1e-9) / factor
    return f"{rounded_up:.{digits}f}"


def _paradoxical(lines: Sequence[CardLine]) -> list[str]:
    """Return the criteria on which repeats agree and the order of the texts decides."""
    repeats_pass = set()
    position_fails = []
    for line in lines:
        for cell in line.cells:
            if line.name == COLD and cell.verdict == "pass":
                repeats_pass.add(cell.criterion)
            elif line.name == POSITION and cell.verdict == "fail":
                position_fails.append(cell.criterion)
    return [criterion for criterion in position_fails if criterion in repeats_pass]
