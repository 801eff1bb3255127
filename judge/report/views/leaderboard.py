"""What the numbers support, in one or two sentences.

The means as every format shows them, laid out once: columns in order, cells with their marks, agreement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.core.messages import format_interval, format_p, number, one_line, plural
from judge.core.records import Column, Estimate
from judge.report.views.columns import (
    Agreed,
    Group,
    agreement,
    compared_columns,
    decimal_places,
    in_display_order,
    lead_column,
)
from judge.report.views.provenance import Provenance, build_provenance
from judge.report.views.ranking import Contest, StandingCells, build_ranking
from judge.results.result import Result
from judge.stats.power import ALPHA, MIN_ITEMS, items_needed
from judge.stats.system_differences import TOO_FEW, Comparison, Difference, Rank

_NO_JUDGE = "No judge has compared these systems: the columns are those of an offline baseline."
_NAMED = 3  # systems or criteria that are named; of more, how many there are
_NAME = 60  # characters of a name
_FAR = 100_000  # items, beyond which no one would go


def verdict(result: Result) -> str:
    """Which system is best, by how much and how sure; or that none is, and how many items it would take to tell.

    Of a run that compares texts, from its win rates; of one whose judgments all failed, that. Nothing where nothing was
    tested.
    """
    judged = [column for column in result.table.columns if column.kind == "criterion"]
    if judged and not any(column.weight for column in judged):
        return _NO_JUDGE
    if result.rankings:
        whole = {column.name for column in result.table.columns if not column.judge}
        found = _ranking([one for one in build_ranking(result).contests if one.name in whole])
    else:
        found = _means(result)
    if not (lost := _lost(result, {column.name for column in judged if column.weight})):
        return " ".join(found)
    if not found:
        return f"No system can be compared: {lost}."
    return " ".join([f"{lost[0].upper()}{lost[1:]}, and so the systems are compared by metrics alone.", *found])


def _lost(result: Result, judged: set[str]) -> str:
    """That all judgments failed, or where there was no judge all values, and how; nothing where any did not."""
    names, what = (judged, "judgment") if judged else ({c.name for c in result.table.columns}, "value")
    if names & ({score.column for score in result.table.scores} | {column for _, column in result.estimates}):
        return ""
    kinds = Counter[str]()
    for kind in build_provenance(result).failures:
        if names & set(kind.columns):
            kinds[one_line(kind.error, _NAME)] += kind.count
    if not kinds:
        return ""
    how = ", ".join(f"{n:,} {error}" for error, n in kinds.most_common()) if len(kinds) > 1 else next(iter(kinds))
    return f"{f'all {n:,} {what}s' if (n := kinds.total()) > 1 else f'the only {what}'} failed ({how})"


def _means(result: Result) -> list[str]:
    """What the means of a run that scores texts support."""
    found = lead_column(result)
    if found is None:
        return []
    if not found.best:
        return [f"On {one_line(found.column, _NAME)} no system is best ({found.note})."]
    return (_best if len(found.best) == 1 else _tied)(result, found)


def _best(result: Result, found: Comparison) -> list[str]:
    """A system that is told apart from all others."""
    first, *_ = found.best
    next_one = next(d for d in found.differences if d.system == first)
    sentences = [
        f"{_name(first)} is best on {_column(result, found)}: {_mean(result, found, first)} against "
        f"{_mean(result, found, next_one.other)} for {_name(next_one.other)}, the next one, a difference of "
        f"{_difference(result, found, next_one)} over {plural(next_one.estimate.n, 'item')} "
        f"({format_p(next_one.adjusted or 0.0)})."
    ]
    return sentences + _elsewhere(result, found, first)


def _tied(result: Result, found: Comparison) -> list[str]:
    """Several systems of which none is told apart from the first; those with an equal mean are none of them first."""
    first, *others = found.best
    mean, column = _mean(result, found, first), _column(result, found)
    level = [first, *(one.system for one in found.ranks if one.rank == 1 and one.system in others)]
    rest = [name for name in others if name not in level]
    names, most = _names(level, "system"), f"{_most(result, found)} {column.removeprefix('the ')}, {mean}"
    if len(level) == len(found.ranks):
        told = f"{names} are level on {column}, with {mean}"
    else:
        told = f"{names} {'share' if len(level) > 1 else 'has'} the {most}"
    if rest:
        every = len(rest) > 1 and 1 + len(rest) == len(found.ranks)
        not_ = "no system is" if every else f"{_names(rest, 'system')} {'is' if len(rest) == 1 else 'are'} not"
        told += f", but {not_} told apart from {_name(first) if len(level) > 1 else 'it'}"
    closest = next((d for d in found.differences if d.system == first and d.other in (rest or others)), None)
    if closest is None:
        return [f"{told}."]
    return [f"{told} on {plural(closest.estimate.n, 'item')}.", *_needs(result, found, closest)]


def _needs(result: Result, found: Comparison, closest: Difference) -> list[str]:
    if TOO_FEW in found.note:
        n = max(one.estimate.n for one in found.differences)
        return [f"{plural(n, 'item')} are too few to tell any two of the systems apart, whatever they score."]
    if closest.estimate.n < MIN_ITEMS:
        both = f"{_name(closest.system)} and {_name(closest.other)}"
        return [f"{plural(closest.estimate.n, 'item')} are too few to tell {both} apart, whatever they score."]
    items = items_needed(closest.estimate)
    what = f"The difference to {_name(closest.other)}, {_difference(result, found, closest)},"
    if items is None:
        return []
    if items <= closest.estimate.n and (closest.estimate.p or 0.0) >= ALPHA:
        return [f"{what} is not told from none by the test ({format_p(closest.estimate.p or 0.0)})."]
    if items <= closest.estimate.n:
        return [f"{what} does not outlast the correction for {plural(len(found.differences), 'comparison')}."]
    so_many = f"more than {_FAR:,}" if items > _FAR else f"about {_round(items):,}"
    return [f"{what} would take {so_many} items to show, if it is real."]


def _elsewhere(result: Result, found: Comparison, first: str) -> list[str]:
    """How the best system by one column does on the criteria that make it up."""
    names = [c.name for c in result.table.columns if c.kind == "criterion" and not c.judge and c.name != found.column]
    tests = [one for name, one in compared_columns(result).items() if name in names and one.best]
    if not tests:
        return []
    alone = [one.column for one in tests if one.best == (first,)]
    among = [one.column for one in tests if first in one.best and len(one.best) > 1]
    parts = [
        f"best on {_names(alone, 'criterion')}" if alone else "",
        f"not told apart from the best on {_names(among, 'criterion')}" if among else "",
        f"behind on {_names(behind, 'criterion')}"
        if (behind := [one.column for one in tests if first not in one.best])
        else "",
    ]
    return [f"It is {_listed([part for part in parts if part])}."]


def _column(result: Result, found: Comparison) -> str:
    made = result.overall is not None and found.column == result.overall.column.name
    return f"the {found.column} score" if made else one_line(found.column, _NAME)


def _of(result: Result, found: Comparison) -> Column:
    return next(c for group in in_display_order(result) for c in group.columns if c.name == found.column)


def _most(result: Result, found: Comparison) -> str:
    return "lowest" if _of(result, found).better == "lower" else "highest"


def _mean(result: Result, found: Comparison, system: str) -> str:
    return number(result.estimates[system, found.column].value, decimal_places(result, _of(result, found)))


def _difference(result: Result, found: Comparison, difference: Difference) -> str:
    """`0.12 [0.03, 0.21]`, the better one's lead."""
    e, many = difference.estimate, decimal_places(result, _of(result, found))
    ends = (e.low, e.high)
    if e.value < 0:
        ends = (None if e.high is None else -e.high, None if e.low is None else -e.low)
    return f"{number(abs(e.value), many)} {format_interval(*ends, many)}".rstrip()


def _round(items: int) -> int:
    """Two digits: it is no more than an estimate."""
    digits = max(0, len(str(items)) - 2)
    return round(items, -digits)


def _ranking(contests: Sequence[Contest]) -> list[str]:
    """Who comes first on the first criterion, and of more criteria on how many."""
    found = [(one.criterion, [place for place in one.places if place.standing is not None]) for one in contests]
    found = [(criterion, placed) for criterion, placed in found if len(placed) > 1]
    if not found:
        return []
    (criterion, placed), *others = found
    elsewhere: dict[str, list[str]] = {}
    for other, its in others:
        if len(_level(its)) == 1:
            elsewhere.setdefault(its[0].system, []).append(other)
    if len(_level(placed)) > 1:
        alone = [f"{_name(name)} ranks first on {_names(on, 'criterion')}." for name, on in elsewhere.items()]
        return [_together(criterion, placed), *alone]
    first, second, *_ = placed
    rates = [f"{place.win_rate} {place.interval}".rstrip() for place in (first, second)]
    sentences = [
        f"{_name(first.system)} ranks first on {one_line(criterion, _NAME)} with a win rate of {rates[0]}, against "
        f"{rates[1]} for {_name(second.system)}, the next one{_overlap(first, second)}."
    ]
    if others:
        same = elsewhere.get(first.system)
        sentences.append(
            f"It also does so on {_names(same, 'criterion')}." if same else "It does so on no other criterion."
        )
    return sentences


def _together(criterion: str, placed: Sequence[StandingCells]) -> str:
    """That several come first with one win rate."""
    level = _level(placed)
    intervals = {place.interval for place in level}
    rate = f"{level[0].win_rate} {intervals.pop() if len(intervals) == 1 else ''}".rstrip()
    before = "" if len(level) == len(placed) else " before all others"
    names = _names([place.system for place in level], "system")
    return f"{names} are level on {one_line(criterion, _NAME)}{before}: each has a win rate of {rate}."


def _level(placed: Sequence[StandingCells]) -> list[StandingCells]:
    """The places whose win rate reads like that of the first."""
    return [place for place in placed if place.win_rate == placed[0].win_rate]


def _overlap(first: StandingCells, second: StandingCells) -> str:
    low = first.standing.low if first.standing else None
    high = second.standing.high if second.standing else None
    if low is None or high is None:
        return ""
    return "; the intervals do not overlap" if low > high else ": the intervals overlap, the two are not told apart"


def _name(system: str) -> str:
    return one_line(system, _NAME)


def _names(names: Sequence[str], what: str) -> str:
    """The names, or how many there are."""
    if len(names) <= _NAMED:
        return _listed([_name(one) for one in names])
    return f"{len(names)} {'criteria' if what == 'criterion' else 'systems'}"


def _listed(parts: Sequence[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


_NAME_of_leaderboard, _NAMED_of_leaderboard = 60, 4  # characters of a column's name, and how many are named


@dataclass(frozen=True, slots=True)
class Cell:
    """One system in one column. `best` marks the one that is told apart from all others, `same` each of several that
    are not told apart from the first; where nothing was tested, nothing is marked.

    `mean` is "–" where nothing was scored; `total` counts the system's texts, `n` the scored ones.
    """

    mean: str
    interval: str
    n: int
    total: int
    failed: int
    best: bool
    estimate: Estimate | None
    same: bool = False

    @property
    def mark(self) -> str:
        """`*`, `≈` or nothing."""
        return "*" if self.best else "≈" if self.same else ""

    @property
    def coverage(self) -> str:
        """`48/50` where not every text was scored, else nothing."""
        return "" if self.n == self.total else f"{self.n}/{self.total}"


@dataclass(frozen=True, slots=True)
class Standing:
    """A system's place in the order of the page, and the places that the tests leave it, `1–3`."""

    rank: int
    interval: str


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """A result laid out. The overall score comes first, then criteria, then metrics; `places` are their decimals.

    `systems` are the best first by the column `lead`, of which they have `ranks`, then those without a value; where
    nothing was compared, `lead` is "" and they are in the table's order. `of_texts` are the columns of the table that
    have a value for each text.
    """

    about: Provenance
    verdict: str
    lead: str
    ranks: Mapping[str, Standing]
    systems: tuple[str, ...]
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    places: Mapping[str, int]
    cells: Mapping[tuple[str, str], Cell]
    caption: str
    agreement: tuple[Agreed, ...]
    of_texts: tuple[Column, ...]

    @property
    def ranked(self) -> str:
        """What the ranks are."""
        return f"Rank: by {self.lead}, with the places that the tests leave it (95%)." if self.ranks else ""


def build_leaderboard(result: Result) -> Leaderboard:
    """Lay a result out for showing."""
    found, first = in_display_order(result), lead_column(result)
    columns = tuple(column for group in found for column in group.columns)
    decimals = {c.name: decimal_places(result, c) for c in columns}
    cells = _cells(result, decimals)
    told = build_provenance(result)
    ranks = {one.system: standing(one) for one in first.ranks} if first else {}
    return Leaderboard(
        about=replace(told, banners=(*told.banners, *_lacking(result, found))),
        verdict=verdict(result),
        lead=first.column if first else "",
        ranks=ranks,
        systems=tuple(dict.fromkeys([*ranks, *count_texts(result)])),
        columns=columns,
        groups=found,
        places=decimals,
        cells=cells,
        caption=_caption(result, cells, found),
        agreement=agreement(result),
        of_texts=tuple(c for c in columns if c in result.table.columns and c.name not in result.table.corpus_columns),
    )


def count_texts(result: Result) -> Counter[str]:
    """How many texts each system has, also those of data too large to be held."""
    streamed = result.info.get("streamed")
    return Counter(streamed["texts"]) if streamed else Counter(s.system for s in result.table.samples)


def failures(result: Result) -> Counter[tuple[str, str]]:
    """How many failures there are by system and column."""
    found = Counter[tuple[str, str]]()
    if streamed := result.info.get("streamed"):
        for kind in streamed["failures"]:
            for system, column, n in kind["counts"]:
                found[system, column] += n
        return found
    return Counter((f.system, f.column) for f in result.table.failures)


def standing(one: Rank) -> Standing:
    """A rank laid out."""
    return Standing(one.rank, f"{one.low}–{one.high}" if one.low < one.high else "")


def _cells(result: Result, decimals: Mapping[str, int]) -> dict[tuple[str, str], Cell]:
    total, failed = count_texts(result), failures(result)
    best = {name: one.best for name, one in compared_columns(result).items()}

    def cell(system: str, column: str) -> Cell:
        estimate = result.estimates.get((system, column))
        counts = total[system], failed[system, column]
        if estimate is None:
            return Cell("–", "", 0, *counts, best=False, estimate=None)
        ends = format_interval(estimate.low, estimate.high, decimals[column])
        first = best.get(column, ())
        return Cell(
            number(estimate.value, decimals[column]),
            ends,
            estimate.n,
            *counts,
            best=first == (system,),
            estimate=estimate,
            same=len(first) > 1 and system in first,
        )

    return {(system, column): cell(system, column) for column in decimals for system in total}


def _caption(result: Result, cells: Mapping[tuple[str, str], Cell], found: tuple[Group, ...]) -> str:
    of_items = [e for (_, name), e in result.estimates.items() if name not in result.table.corpus_columns]
    methods = Counter(e.method for e in of_items if e.low is not None and e.low != e.high)
    most = max((cell.total for cell in cells.values()), default=0)
    parts = [f"Mean over {plural(most, 'item')}"]
    if methods:
        parts.append(f"[low, high]: {methods.most_common(1)[0][0]}")
    if others := [f"{name} for {n} of {len(of_items)}" for name, n in methods.most_common()[1:]]:
        parts.append("; ".join(others))
    parts += _together_of_leaderboard(result)
    columns = [column for group in found for column in group.columns]
    parts += _ends(columns) if any(column.better for column in columns) else ()
    parts += _marks(result, cells)
    if any(cell.coverage for cell in cells.values()):
        parts.append("a/b: scored a of b texts")
    if any(group.judged for group in found):
        parts.append("A panel's mean is over the texts that all of its judges scored")
    return ". ".join(parts) + "."


def _marks(result: Result, cells: Mapping[tuple[str, str], Cell]) -> Iterator[str]:
    """What the marks mean, where there are any."""
    best = {column for (_, column), cell in cells.items() if cell.best}
    marked = best | {column for (_, column), cell in cells.items() if cell.same}
    if best:
        yield "* best of its column: told apart from every other system (sign-flip test, p < 0.05 after Holm)"
    if marked - best:
        yield "≈ not told apart from the best"
    if marked:
        yield from _unmarked(result, marked)


def _unmarked(result: Result, marked: set[str]) -> Iterator[str]:
    """Why columns have no mark where others do, but for those without a better end."""
    reasons: dict[str, list[str]] = {}
    for name, one in compared_columns(result).items():
        if name not in marked and one.note:
            reasons.setdefault(one.note, []).append(one_line(name, _NAME_of_leaderboard))
    for why, names in reasons.items():
        yield f"No mark in {', '.join(names) if len(names) <= _NAMED_of_leaderboard else plural(len(names), 'column')}: {why}"


def _ends(columns: Iterable[Column]) -> Iterator[str]:
    """What the arrows mean, and a column without one."""
    found = {column.better for column in columns}
    both = {"higher", "lower"} <= found
    yield "↑ higher, ↓ lower is better" if both else "↓ lower is better" if "lower" in found else "↑ higher is better"
    if "" in found:
        yield "Without an arrow neither end is, and nothing is marked"


def _together_of_leaderboard(result: Result) -> Iterator[str]:
    """What there is to say of columns with values of all texts together: of how many, and whose interval."""
    columns = [column.name for column in result.table.columns if column.name in result.table.corpus_columns]
    if not columns:
        return
    sizes = {e.n for (_, name), e in result.estimates.items() if name in columns}
    of = f"all {sizes.pop():,} texts of a system" if len(sizes) == 1 else "all texts of a system"
    yield f"Values of {of} together: {', '.join(columns)}"
    for name in columns:
        how = {e.method for (_, column), e in result.estimates.items() if column == name and e.low is not None}
        if how:
            yield f"{name}: {', '.join(sorted(how))}"


def _lacking(result: Result, columns: tuple[Group, ...]) -> tuple[str, ...]:
    """What is missing in the table of means. A panel's own come from its judges' scores, and are not asked for."""
    means = {group.name for group in columns if group.judged}
    found = []
    if len(set(count_texts(result).values())) > 1:
        found.append("Not every system has a text for every item: means over different items do not compare well.")
    apart = means | result.table.corpus_columns
    missing = len(result.table.samples) * sum(column.name not in apart for column in result.table.columns)
    missing -= sum(row.column not in apart for row in result.table.rows())
    if missing > 0:
        found.append(f"{plural(missing, 'value')} of the table missing: not asked for, or without an answer yet.")
    return tuple(found)
