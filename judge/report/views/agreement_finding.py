"""The sentences on how well judges agree with people, each with the condition under which it is
true.

`verdict` decides what can be said of a judge on a criterion; `finding` and `criterion_sentences`
write it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean

from judge.core.format import first_names, format_interval, listed, number, plural, signed
from judge.core.records import Estimate
from judge.stats.coefficients import Level
from judge.stats.correlation import CONCLUSIVE, INTERVAL_ITEMS, INTERVAL_ITEMS_OF_JUDGES
from judge.stats.human_agreement import Rated, Row

PLACES = 3
_MAX_LINES = 3  # criteria of the finding
_MAX_NAMED = 3  # criteria or baselines in a sentence
_PANELS = ("panel mean", "panel median", "panel majority")


class Side(Enum):
    """The place of an interval, by its ends as they are shown: [0.000, 0.147] holds 0."""

    BELOW = "below"
    HOLDS_ZERO = "holds zero"
    ABOVE = "above"
    EQUAL = "equal"
    """A difference that is 0 in every item. It has no interval."""
    UNTESTED = "untested"
    """There is no interval."""


class Verdict(Enum):
    """What the interval of a judge's correlation and its differences from the baselines support."""

    BEST = "above 0, and significantly better than every baseline"
    NOT_BEST = "above 0, and not significantly better than every baseline"
    WORSE = "above 0, and significantly worse than a baseline"
    ALONE = "above 0, and compared with no baseline"
    CHANCE = "holds 0"
    AGAINST = "below 0"
    UNTESTED = "a correlation without an interval"
    UNKNOWN = "no correlation, or one between too few systems"


@dataclass(frozen=True, slots=True)
class Lead:
    """Spearman of a judge less that of a baseline, or of another judge, of this name."""

    name: str
    difference: Estimate
    level: Level
    fewest: int | None
    """The items that an interval needs, None if there is none between systems' means."""

    @property
    def side(self) -> Side:
        e = self.difference
        # Only at this level does `n` count the items, each with a difference of its own.
        if self.level == "within-items" and e.low is None and e.n >= (self.fewest or 0):
            return Side.UNTESTED if e.value else Side.EQUAL
        return side(e)


def side(e: Estimate) -> Side:
    """Return where an estimate's interval lies."""
    if e.low is None or e.high is None:
        return Side.UNTESTED
    if round(e.low, PLACES) > 0:
        return Side.ABOVE
    return Side.BELOW if round(e.high, PLACES) < 0 else Side.HOLDS_ZERO


def spearman(row: Row | None, level: Level) -> Estimate | None:
    """Return a row's Spearman with people's ratings, None if it is undefined."""
    return row.correlation.estimates.get((level, "spearman")) if row else None


def usable_level(rated: Rated, level: Level) -> Level:
    """Return the level, or "all-texts" if only that has values."""
    candidates: tuple[Level, ...] = (level, "all-texts")
    for candidate in candidates:
        if any((candidate, "spearman") in row.correlation.estimates for row in rated.rows):
            return candidate
    return level


def too_few_systems(rated: Rated, level: Level) -> str:
    """Return why correlations between the systems' means cannot be compared, or ""."""
    n = max((e.n for row in rated.rows if (e := spearman(row, level))), default=CONCLUSIVE)
    if level != "systems" or n >= CONCLUSIVE:
        return ""
    return f"{plural(n, 'system')} are too few to compare correlations of means; {CONCLUSIVE} are needed"


# What is compared


def leads_over_baselines(rated: Rated, judge: str, level: Level) -> list[Lead]:
    """Return a judge's leads over the baselines, each in its better direction."""
    if too_few_systems(rated, level):
        return []
    leads, fewest = [], INTERVAL_ITEMS.get(level)
    for row in rated.baselines:
        key = judge, row.name, level
        if key in rated.reversed:
            name = reversed_name(row.name)
            leads.append(Lead(name, rated.reversed[key], level, fewest))
        elif key in rated.differences:
            leads.append(Lead(row.name, rated.differences[key], level, fewest))
    return leads


def reversed_name(name: str) -> str:
    """Name a baseline that counts with the reverse sign."""
    return f"{name} reversed"


def not_compared(rated: Rated, level: Level) -> list[str]:
    """Return the baselines that have a correlation, but for too few items to be compared."""
    return [row.name for row in rated.baselines if level in row.few and spearman(row, level)]


def leads_over_judges(rated: Rated, judge: str, level: Level) -> list[Lead]:
    """Return a judge's leads over the other judges, with intervals that hold together."""
    if too_few_systems(rated, level):
        return []
    leads, fewest = [], INTERVAL_ITEMS_OF_JUDGES.get(level)
    for pair in rated.versus:
        if pair.level == level and judge == pair.judge:
            leads.append(Lead(pair.other, pair.spearman, level, fewest))
        elif pair.level == level and judge == pair.other:
            leads.append(Lead(pair.judge, pair.spearman.times(-1), level, fewest))
    return leads


def verdict(rated: Rated, judge: str, level: Level) -> Verdict:
    """Return what can be said of a judge's agreement with people."""
    own = spearman(next((row for row in rated.judges if row.name == judge), None), level)
    if own is None or too_few_systems(rated, level):
        return Verdict.UNKNOWN
    place = side(own)
    if place is Side.UNTESTED:
        return Verdict.UNTESTED
    if place is not Side.ABOVE:
        return Verdict.AGAINST if place is Side.BELOW else Verdict.CHANCE
    sides = {lead.side for lead in leads_over_baselines(rated, judge, level)}
    if not sides:
        return Verdict.ALONE
    if sides == {Side.ABOVE}:
        return Verdict.BEST
    return Verdict.WORSE if Side.BELOW in sides else Verdict.NOT_BEST


def best_judge(criteria: Sequence[Rated], level: Level) -> str:
    """Return the panel, or else the judge with the highest mean correlation."""
    values: dict[str, list[float]] = {}
    for rated in criteria:
        for row in rated.judges:
            estimate = spearman(row, usable_level(rated, level))
            values.setdefault(row.name, []).append(-1.0 if estimate is None else estimate.value)
    if panel := next((name for name in values if name in _PANELS), None):
        return panel
    return max(values, key=lambda name: fmean(values[name]))


# The finding


def finding(criteria: Sequence[Rated], best: str, level: Level) -> Iterator[str]:
    """Yield the verdict on the best judge, then a line for each criterion with more to say."""
    by_criterion = {
        rated.criterion: verdict(rated, best, usable_level(rated, level)) for rated in criteria
    }
    yield _headline(criteria, by_criterion, best, level)
    # The worst verdict first, as the number of lines is limited.
    urgency = [Verdict.AGAINST, Verdict.CHANCE, Verdict.WORSE, Verdict.UNTESTED, Verdict.NOT_BEST]
    order = {each: place for place, each in enumerate(urgency)}
    lines = []
    for rated in sorted(
        criteria, key=lambda rated: order.get(by_criterion[rated.criterion], len(order))
    ):
        texts = _line(rated, by_criterion[rated.criterion], best, usable_level(rated, level))
        if texts:
            lines.append(f"{rated.criterion}: {'; '.join(texts)}.")
    yield from lines[:_MAX_LINES]
    unbeaten = [
        rated
        for rated in criteria
        if by_criterion[rated.criterion] in (Verdict.NOT_BEST, Verdict.WORSE)
    ]
    if unbeaten and len(lines) > _MAX_LINES:
        yield f"{best} does not significantly beat {_not_beaten(unbeaten, best, level)}."


def _headline(
    criteria: Sequence[Rated], by_criterion: Mapping[str, Verdict], best: str, level: Level
) -> str:
    groups: dict[Verdict, list[Rated]] = {}
    for rated in criteria:
        groups.setdefault(by_criterion[rated.criterion], []).append(rated)
    unknown = groups.pop(Verdict.UNKNOWN, [])
    if not groups:
        reason = too_few_systems(unknown[0], usable_level(unknown[0], level))
        return reason or f"{best} could not be compared with people"
    total = len(criteria)
    said = (
        [Verdict.BEST] if Verdict.BEST in groups else [each for each in _CLAUSES if each in groups]
    )
    clauses = [_clause(each, groups[each], total, best, level) for each in said]
    return f"{best} {listed(clauses)}"


_CLAUSES = {
    Verdict.BEST: "agrees with people better than every baseline",
    Verdict.AGAINST: "ranks against people",
    Verdict.CHANCE: "cannot be told from chance",
    Verdict.WORSE: "agrees with people less than a baseline",
    Verdict.NOT_BEST: "is not significantly better than every baseline",
    Verdict.ALONE: "could not be compared with a baseline",
    Verdict.UNTESTED: "could not be tested against chance",
}
"""In the order in which a headline has them."""
_NEGATED = (Verdict.CHANCE, Verdict.NOT_BEST, Verdict.ALONE, Verdict.UNTESTED)


def _clause(group: Verdict, rated: Sequence[Rated], total: int, best: str, level: Level) -> str:
    """Write what is true of a judge on these criteria of `total`."""
    words = _CLAUSES[group]
    if group is Verdict.BEST and any(not_compared(r, usable_level(r, level)) for r in rated):
        words = "agrees with people better than every compared baseline"
    if group is Verdict.ALONE and total == 1:
        return words
    if total == 1:
        words += f" on {rated[0].criterion}"
    elif len(rated) == total:
        words += f" on {'any of' if group in _NEGATED else 'all'} {total} criteria"
    else:
        words += f" on {len(rated)} of {total} criteria"
    return words


def _not_beaten(criteria: Sequence[Rated], best: str, level: Level) -> str:
    """List the baselines that a judge does not beat, those on most criteria first."""
    names: dict[str, list[str]] = {}
    for rated in criteria:
        for lead in leads_over_baselines(rated, best, usable_level(rated, level)):
            if lead.side is not Side.ABOVE:
                names.setdefault(lead.name, []).append(rated.criterion)
    most_first = sorted(names, key=lambda name: -len(names[name]))
    if len(criteria) == 1:
        return first_names(most_first, _MAX_NAMED)
    parts = [f"{name} ({first_names(names[name], _MAX_NAMED)})" for name in most_first]
    return first_names(parts, _MAX_NAMED)


def _line(rated: Rated, found: Verdict, best: str, level: Level) -> list[str]:
    """Say of one criterion why the best judge has no better verdict, and how it compares with other
    judges."""
    own = spearman(next((row for row in rated.judges if row.name == best), None), level)
    texts = []
    if own is not None and found in _OWN:
        texts.append(own_text(own, found, level))
    leads = []
    if found in (Verdict.NOT_BEST, Verdict.WORSE):
        over_baselines = leads_over_baselines(rated, best, level)
        leads = [lead for lead in over_baselines if lead.side is not Side.ABOVE]
    leads += leads_over_judges(rated, best, level)
    if found is Verdict.UNKNOWN and (reason := unknown_reason(rated, best, level)):
        texts.append(f"no verdict: {reason}")
    return [*texts, *([leads_text(leads)] if leads else [])]


def unknown_reason(rated: Rated, judge: str, level: Level) -> str:
    """Return why a judge has no correlation, or none that can be compared."""
    row = next((row for row in rated.judges if row.name == judge), None)
    lacking = row.correlation.lacking.get(level, "") if row else "it did not score this criterion"
    return lacking or too_few_systems(rated, level)


# The sentences on one criterion


_OWN = (Verdict.AGAINST, Verdict.CHANCE, Verdict.UNTESTED)
"""The verdicts that need no baseline."""


def own_text(own: Estimate, found: Verdict, level: Level) -> str:
    """Say that a correlation is below 0, cannot be told from 0, or has no interval."""
    interval = format_interval(own.low, own.high, PLACES)
    value = number(own.value, PLACES)
    if found is Verdict.UNTESTED:
        return f"not tested against chance ({value}): {_needed(INTERVAL_ITEMS.get(level))}"
    words = "ranks against people" if found is Verdict.AGAINST else "cannot be told from chance"
    return f"{words} ({value} {interval})"


def criterion_sentences(rated: Rated, level: Level) -> Iterator[str]:
    """Compare each judge with chance and the baselines, and the best one with the other judges."""
    if not rated.judges:
        yield f"No judge scored {rated.criterion}; only baselines are shown."
        return
    if few := too_few_systems(rated, level):
        yield f"{few}."
        return
    by_value = [(e.value if (e := spearman(row, level)) else -1.0) for row in rated.judges]
    best = rated.judges[by_value.index(max(by_value))].name
    for judge in rated.judges:
        own = spearman(judge, level)
        if level not in judge.correlation.lacking:
            found = verdict(rated, judge.name, level)
            texts = [own_text(own, found, level)] if own is not None and found in _OWN else []
            leads = leads_over_baselines(rated, judge.name, level)
            texts.append(leads_text(leads) if leads else "could not be compared with a baseline")
            yield f"{judge.name}: {'; '.join(texts)}."
        if judge.name == best and (leads := leads_over_judges(rated, best, level)):
            yield f"{best}: {leads_text(leads)}."


_GROUPS = {
    Side.BELOW: "significantly worse than",
    Side.HOLDS_ZERO: "no significant difference from",
    Side.EQUAL: "in every item equal to",
    Side.ABOVE: "significantly better than",
    Side.UNTESTED: "not tested against",
}
"""In the order of a sentence."""


def leads_text(leads: Iterable[Lead]) -> str:
    """Write leads by what their intervals support, with the intervals."""
    parts: dict[Side, list[str]] = {}
    reason = ""
    for lead in leads:
        if lead.side is Side.UNTESTED:
            reason = _needed(lead.fewest)
        e = lead.difference
        interval = format_interval(e.low, e.high, PLACES)
        numbers = f"{signed(e.value, PLACES)} {interval}".rstrip()
        parts.setdefault(lead.side, []).append(f"{lead.name} ({numbers})")
    texts = [
        f"{words} {', '.join(parts[each])}" for each, words in _GROUPS.items() if each in parts
    ]
    if Side.UNTESTED in parts:
        texts[-1] += f": {reason}"
    return "; ".join(texts)


def _needed(fewest: int | None) -> str:
    """Say how many items an interval needs, or that there is none."""
    if fewest is None:
        return "correlations of systems' means have no interval"
    return f"an interval needs {fewest} items"
