"""The verdict of a result in one or two sentences, and the table of means that all formats share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.core.format import format_interval, format_p, number, one_line, plural
from judge.core.records import Column, Estimate
from judge.report.views.columns import (
    ARROWS,
    Agreed,
    Group,
    agreement,
    compared_columns,
    in_display_order,
)
from judge.report.views.columns import (
    main_comparison as lead_column,
)
from judge.report.views.columns import (
    places as decimal_places,
)
from judge.report.views.provenance import Provenance, build_provenance
from judge.report.views.ranking_old import Contest, StandingCells, build_ranking
from judge.results.result import Result
from judge.stats.power import MIN_ITEMS
from judge.stats.system_differences import TOO_FEW, Comparison, Difference, Rank

_NO_JUDGE = "No judge has compared these systems: the columns are those of an offline baseline."
_MAX_NAMED = 3  # systems or criteria in a sentence; if there are more, only their number is given
_MAX_COLUMNS_NAMED = 4  # columns in a note of the caption
_MAX_NAME = 60  # characters of a name
_MAX_ITEMS = 100_000  # a larger number of items is given as "more than"


def verdict(result: Result) -> str:
    """Say which system is best and by how much, or that none is and how many items it would take to tell.

    A run that compares texts is summed up by its win rates. Returns "" if nothing was tested.
    """
    judged = [column for column in result.table.columns if column.kind == "criterion"]
    if judged and not any(column.weight for column in judged):
        return _NO_JUDGE
    if result.rankings:
        # A panel's ranking counts, not those of its single judges.
        whole = {column.name for column in result.table.columns if not column.judge}
        sentences = _ranking_sentences([contest for contest in build_ranking(result).contests if contest.name in whole])
    elif (comparison := lead_column(result)) is None:
        sentences = []
    elif not comparison.best:
        sentences = [f"On {one_line(comparison.column, _MAX_NAME)} no system is best ({comparison.note})."]
    else:
        sentences = (_best if len(comparison.best) == 1 else _tied)(result, comparison)
    if not (lost := _all_failed(result, {column.name for column in judged if column.weight})):
        return " ".join(sentences)
    if not sentences:
        return f"No system can be compared: {lost}."
    return " ".join([f"{lost[0].upper()}{lost[1:]}, and so the systems are compared by metrics alone.", *sentences])


def _all_failed(result: Result, judged: set[str]) -> str:
    """Say that all judgments failed (without a judge: all values) and with which errors; "" if any succeeded."""
    names, noun = (judged, "judgment") if judged else ({c.name for c in result.table.columns}, "value")
    if names & ({score.column for score in result.table.scores} | {column for _, column in result.estimates}):
        return ""
    kinds = Counter[str]()
    for kind in build_provenance(result).failures:
        if names & set(kind.columns):
            kinds[one_line(kind.error, _MAX_NAME)] += kind.count
    if not kinds:
        return ""
    breakdown = ", ".join(f"{n:,} {error}" for error, n in kinds.most_common()) if len(kinds) > 1 else next(iter(kinds))
    return f"{f'all {n:,} {noun}s' if (n := kinds.total()) > 1 else f'the only {noun}'} failed ({breakdown})"


def _best(result: Result, comparison: Comparison) -> list[str]:
    """Name the system that differs significantly from all others, and how it does on the other criteria."""
    first, *_ = comparison.best
    to_next = next(d for d in comparison.differences if d.system == first)
    sentences = [
        f"{_name(first)} is best on {_column_label(result, comparison)}: {_mean(result, comparison, first)} against "
        f"{_mean(result, comparison, to_next.other)} for {_name(to_next.other)}, the next one, a difference of "
        f"{_difference(result, comparison, to_next)} over {plural(to_next.estimate.n, 'item')} "
        f"({format_p(to_next.adjusted or 0.0)})."
    ]
    names = {c.name for c in result.table.columns if c.kind == "criterion" and not c.judge} - {comparison.column}
    tests = [other for name, other in compared_columns(result).items() if name in names and other.best]
    if tests:
        alone = [other.column for other in tests if other.best == (first,)]
        among = [other.column for other in tests if first in other.best and len(other.best) > 1]
        behind = [other.column for other in tests if first not in other.best]
        parts = [
            f"best on {_names(alone, 'criterion')}" if alone else "",
            f"not told apart from the best on {_names(among, 'criterion')}" if among else "",
            f"behind on {_names(behind, 'criterion')}" if behind else "",
        ]
        sentences.append(f"It is {_listed([part for part in parts if part])}.")
    return sentences


def _tied(result: Result, comparison: Comparison) -> list[str]:
    """Name the systems that do not differ significantly from the first; systems with an equal mean share its place."""
    first, *others = comparison.best
    mean, column = _mean(result, comparison, first), _column_label(result, comparison)
    leaders = [first, *(rank.system for rank in comparison.ranks if rank.rank == 1 and rank.system in others)]
    rest = [name for name in others if name not in leaders]
    names = _names(leaders, "system")
    most = "lowest" if _compared_column(result, comparison).better == "lower" else "highest"
    if len(leaders) == len(comparison.ranks):
        sentence = f"{names} are level on {column}, with {mean}"
    else:
        sentence = f"{names} {'share' if len(leaders) > 1 else 'has'} the {most} {column.removeprefix('the ')}, {mean}"
    if rest:
        every = len(rest) > 1 and 1 + len(rest) == len(comparison.ranks)
        not_ = "no system is" if every else f"{_names(rest, 'system')} {'is' if len(rest) == 1 else 'are'} not"
        sentence += f", but {not_} told apart from {_name(first) if len(leaders) > 1 else 'it'}"
    closest = next((d for d in comparison.differences if d.system == first and d.other in (rest or others)), None)
    if closest is None:
        return [f"{sentence}."]
    return [
        f"{sentence} on {plural(closest.estimate.n, 'item')}.",
        *_items_needed_sentence(result, comparison, closest),
    ]


def _items_needed_sentence(result: Result, comparison: Comparison, closest: Difference) -> list[str]:
    if TOO_FEW in comparison.note:
        n = max(difference.estimate.n for difference in comparison.differences)
        return [f"{plural(n, 'item')} are too few to tell any two of the systems apart, whatever they score."]
    if closest.estimate.n < MIN_ITEMS:
        both = f"{_name(closest.system)} and {_name(closest.other)}"
        return [f"{plural(closest.estimate.n, 'item')} are too few to tell {both} apart, whatever they score."]
    (scatter,) = result.power(comparison.column, pair=(closest.system, closest.other))
    items = scatter.pairs[0].needed() if scatter.pairs else None
    subject = f"The difference to {_name(closest.other)}, {_difference(result, comparison, closest)},"
    if items is None:
        return []
    if items <= closest.estimate.n and closest.adjusted is not None:
        return [f"{subject} is not told from none by the test ({format_p(closest.adjusted)})."]
    so_many = f"more than {_MAX_ITEMS:,}" if items > _MAX_ITEMS else f"about {items:,}"
    return [f"{subject} would take {so_many} items to show, if it is real."]


def _column_label(result: Result, comparison: Comparison) -> str:
    is_overall = result.overall is not None and comparison.column == result.overall.column.name
    return f"the {comparison.column} score" if is_overall else one_line(comparison.column, _MAX_NAME)


def _compared_column(result: Result, comparison: Comparison) -> Column:
    return next(c for group in in_display_order(result) for c in group.columns if c.name == comparison.column)


def _mean(result: Result, comparison: Comparison, system: str) -> str:
    return number(
        result.estimates[system, comparison.column].value, decimal_places(result, _compared_column(result, comparison))
    )


def _difference(result: Result, comparison: Comparison, difference: Difference) -> str:
    """Return `0.12 [0.03, 0.21]`, the lead of the better system."""
    e, places = difference.estimate, decimal_places(result, _compared_column(result, comparison))
    ends = (e.low, e.high)
    if e.value < 0:
        ends = (None if e.high is None else -e.high, None if e.low is None else -e.low)
    return f"{number(abs(e.value), places)} {format_interval(*ends, places)}".rstrip()


def _ranking_sentences(contests: Sequence[Contest]) -> list[str]:
    """Say who comes first on the first criterion, and on which others."""
    ranked = [
        (contest.criterion, placed)
        for contest in contests
        if len(placed := [place for place in contest.places if place.standing is not None]) > 1
    ]
    if not ranked:
        return []
    (criterion, placed), *others = ranked
    elsewhere: dict[str, list[str]] = {}
    for name, places in others:
        if len(_level(places)) == 1:
            elsewhere.setdefault(places[0].system, []).append(name)
    if len(level := _level(placed)) > 1:
        alone = [f"{_name(system)} ranks first on {_names(names, 'criterion')}." for system, names in elsewhere.items()]
        intervals = {place.interval for place in level}
        rate = f"{level[0].win_rate} {intervals.pop() if len(intervals) == 1 else ''}".rstrip()
        before = "" if len(level) == len(placed) else " before all others"
        names = _names([place.system for place in level], "system")
        tie = f"{names} are level on {one_line(criterion, _MAX_NAME)}{before}: each has a win rate of {rate}."
        return [tie, *alone]
    first, second, *_ = placed
    rates = [f"{place.win_rate} {place.interval}".rstrip() for place in (first, second)]
    low = first.standing.low if first.standing else None
    high = second.standing.high if second.standing else None
    overlap = ""
    if low is not None and high is not None:
        overlap = (
            "; the intervals do not overlap" if low > high else ": the intervals overlap, the two are not told apart"
        )
    sentences = [
        f"{_name(first.system)} ranks first on {one_line(criterion, _MAX_NAME)} with a win rate of {rates[0]}, against "
        f"{rates[1]} for {_name(second.system)}, the next one{overlap}."
    ]
    if others:
        same = elsewhere.get(first.system)
        sentences.append(
            f"It also does so on {_names(same, 'criterion')}." if same else "It does so on no other criterion."
        )
    return sentences


def _level(placed: Sequence[StandingCells]) -> list[StandingCells]:
    """Return the places whose win rate, as shown, equals that of the first."""
    return [place for place in placed if place.win_rate == placed[0].win_rate]


def _name(system: str) -> str:
    return one_line(system, _MAX_NAME)


def _names(names: Sequence[str], kind: str) -> str:
    """List the names, or say how many there are."""
    if len(names) <= _MAX_NAMED:
        return _listed([_name(name) for name in names])
    return f"{len(names)} {'criteria' if kind == 'criterion' else 'systems'}"


def _listed(parts: Sequence[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


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
class Leaderboard:
    """A result laid out. The overall score comes first, then criteria, then metrics; `places` are their decimals.

    `systems` are the best first by the column `lead`, of which they have `ranks`, then those without a value; where
    nothing was compared, `lead` is "" and they are in the table's order. `of_texts` are the columns of the table that
    have a value for each text.
    """

    about: Provenance
    verdict: str
    lead: str
    ranks: Mapping[str, Rank]
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
    """Lay out a result that scores texts."""
    column_groups, first = in_display_order(result), lead_column(result)
    columns = tuple(column for group in column_groups for column in group.columns)
    decimals = {c.name: decimal_places(result, c) for c in columns}
    total, failed = count_texts(result), failures(result)
    best = {name: comparison.best for name, comparison in compared_columns(result).items()}

    def cell(system: str, column: str) -> Cell:
        estimate = result.estimates.get((system, column))
        counts = total[system], failed[system, column]
        if estimate is None:
            return Cell("–", "", 0, *counts, best=False, estimate=None)
        ends = format_interval(estimate.low, estimate.high, decimals[column])
        leaders = best.get(column, ())
        return Cell(
            number(estimate.value, decimals[column]),
            ends,
            estimate.n,
            *counts,
            best=leaders == (system,),
            estimate=estimate,
            same=len(leaders) > 1 and system in leaders,
        )

    cells = {(system, column): cell(system, column) for column in decimals for system in total}
    provenance = build_provenance(result)
    ranks = {rank.system: rank for rank in first.ranks} if first else {}
    notes = []
    if len(set(count_texts(result).values())) > 1:
        notes.append("Not every system has a text for every item: means over different items do not compare well.")
    # A panel's mean is computed from its judges' scores, so no row of its own is missing.
    not_per_text = {group.name for group in column_groups if group.judged} | result.table.corpus_columns
    missing = len(result.table.samples) * sum(column.name not in not_per_text for column in result.table.columns)
    missing -= sum(row.column not in not_per_text for row in result.table.rows())
    if missing > 0:
        notes.append(f"{plural(missing, 'value')} of the table missing: not asked for, or without an answer yet.")
    return Leaderboard(
        about=replace(provenance, banners=(*provenance.banners, *notes)),
        verdict=verdict(result),
        lead=first.column if first else "",
        ranks=ranks,
        systems=tuple(dict.fromkeys([*ranks, *count_texts(result)])),
        columns=columns,
        groups=column_groups,
        places=decimals,
        cells=cells,
        caption=_caption(result, cells, column_groups),
        agreement=agreement(result),
        of_texts=tuple(c for c in columns if c in result.table.columns and c.name not in result.table.corpus_columns),
    )


def count_texts(result: Result) -> Counter[str]:
    """Count the texts of each system, including those of streamed data."""
    streamed = result.info.get("streamed")
    return Counter(streamed["texts"]) if streamed else Counter(s.system for s in result.table.samples)


def failures(result: Result) -> Counter[tuple[str, str]]:
    """Count the failures by system and column."""
    counts = Counter[tuple[str, str]]()
    if streamed := result.info.get("streamed"):
        for kind in streamed["failures"]:
            for system, column, n in kind["counts"]:
                counts[system, column] += n
        return counts
    return Counter((f.system, f.column) for f in result.table.failures)


def _caption(result: Result, cells: Mapping[tuple[str, str], Cell], column_groups: tuple[Group, ...]) -> str:
    of_items = [e for (_, name), e in result.estimates.items() if name not in result.table.corpus_columns]
    methods = Counter(e.method for e in of_items if e.low is not None and e.low != e.high)
    most = max((cell.total for cell in cells.values()), default=0)
    parts = [f"Mean over {plural(most, 'item')}"]
    if methods:
        parts.append(f"[low, high]: {methods.most_common(1)[0][0]}")
    if others := [f"{name} for {n} of {len(of_items)}" for name, n in methods.most_common()[1:]]:
        parts.append("; ".join(others))
    corpus = [column.name for column in result.table.columns if column.name in result.table.corpus_columns]
    if corpus:
        sizes = {e.n for (_, name), e in result.estimates.items() if name in corpus}
        scope = f"all {sizes.pop():,} texts of a system" if len(sizes) == 1 else "all texts of a system"
        parts.append(f"Values of {scope} together: {', '.join(corpus)}")
    for name in corpus:
        kinds = {e.method for (_, column), e in result.estimates.items() if column == name and e.low is not None}
        parts += [f"{name}: {', '.join(sorted(kinds))}"] if kinds else []
    columns = [column for group in column_groups for column in group.columns]
    directions = {column.better for column in columns}
    if arrows := [f"{arrow} {end}" for end, arrow in ARROWS.items() if end and end in directions]:
        parts.append(f"{', '.join(arrows)} is better")
        if "" in directions:
            parts.append("Without an arrow neither end is, and nothing is marked")
    parts += _mark_notes(result, cells)
    if any(cell.coverage for cell in cells.values()):
        parts.append("a/b: scored a of b texts")
    if any(group.judged for group in column_groups):
        parts.append("A panel's mean is over the texts that all of its judges scored")
    return ". ".join(parts) + "."


def _mark_notes(result: Result, cells: Mapping[tuple[str, str], Cell]) -> Iterator[str]:
    """Explain the marks in use, and why a column has none although others do."""
    best = {column for (_, column), cell in cells.items() if cell.best}
    marked = best | {column for (_, column), cell in cells.items() if cell.same}
    if best:
        yield "* best of its column: told apart from every other system (sign-flip test, p < 0.05 after Holm)"
    if marked - best:
        yield "≈ not told apart from the best"
    if marked:
        reasons: dict[str, list[str]] = {}
        for name, comparison in compared_columns(result).items():
            if name not in marked and comparison.note:
                reasons.setdefault(comparison.note, []).append(one_line(name, _MAX_NAME))
        for why, names in reasons.items():
            columns = ", ".join(names) if len(names) <= _MAX_COLUMNS_NAMED else plural(len(names), "column")
            yield f"No mark in {columns}: {why}"
