"""The layout of a ranking that all formats share: standings, the matrix of win rates, and sentences."""

from __future__ import annotations

from dataclasses import dataclass

from judge.core.format import format_interval, number, percent, plural
from judge.core.records import IDENTICAL
from judge.report.views.columns import Agreed, agreement, groups
from judge.report.views.provenance import Provenance, build_provenance
from judge.results.result import Result
from judge.stats.pairwise import Ranking, Standing


@dataclass(frozen=True, slots=True)
class StandingCells:
    """One system's standing as text: "–" where there is no such number.

    `record` is won-lost-tied pairs, `undecided` how many others there are, `standing` None for a system never compared.
    """

    system: str
    win_rate: str
    interval: str
    strength: str
    strength_interval: str
    record: str
    undecided: str
    n: str
    flips: str
    standing: Standing | None


@dataclass(frozen=True, slots=True)
class PairCell:
    """A cell of the matrix: how the row's system did against the column's. `share` (0–1) is None where they never met.

    `text` is in per cent without the sign, and `title` says it in words.
    """

    text: str
    share: float | None
    title: str


@dataclass(frozen=True, slots=True)
class Contest:
    """One column's ranking. `places` and the rows and columns of `matrix` are in the same order, the best first.

    `part` says whose it is where a panel judged: the panel's or one judge's. `sentences` describe it.
    """

    name: str
    criterion: str
    part: str
    places: tuple[StandingCells, ...]
    matrix: tuple[tuple[PairCell, ...], ...]
    sentences: tuple[str, ...]
    ranking: Ranking

    @property
    def label(self) -> str:
        """The criterion and, of a panel, whose ranking it is."""
        return f"{self.criterion}, {self.part}" if self.part else self.criterion

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems in the order of `places`."""
        return tuple(place.system for place in self.places)

    @property
    def columns(self) -> dict[str, list[tuple[str, str]]]:
        """The table of standings by heading: for each place the value, and its interval, a remark or nothing."""
        return {
            "win rate": [(place.win_rate, place.interval) for place in self.places],
            "strength": [(place.strength, place.strength_interval) for place in self.places],
            "won-lost-tied": [(place.record, place.undecided) for place in self.places],
            "pairs": [(place.n, "") for place in self.places],
            "flips": [(place.flips, "") for place in self.places],
        }


@dataclass(frozen=True, slots=True)
class RankingView:
    """The layout of a result that compares texts."""

    about: Provenance
    contests: tuple[Contest, ...]
    caption: str
    agreement: tuple[Agreed, ...]


def build_ranking(result: Result) -> RankingView:
    """Lay out a result that compares texts."""
    rankings = {ranking.column: ranking for ranking in result.rankings}
    contests = tuple(
        _contest(result, rankings[column.name], group.name, group.parts[column.name])
        for group in groups(result)
        for column in group.columns
        if column.name in rankings
    )
    parts = [
        "Win rate: the mean preference for a system over its pairs, of which 50% is even",
        "Strength: Bradley-Terry, which takes the rivals into account; one system's less another's is the log-odds of "
        "its being preferred, with one tie added to every two systems that met",
        "Won-lost-tied: pairs of texts",
    ]
    if any(place.undecided for contest in contests for place in contest.places):
        parts.append("Undecided: the two orders cancel out")
    parts.append("Flips: pairs whose verdict changed with the order")
    bounded = {contest.ranking.method: any(p.interval for p in contest.places) for contest in contests}
    parts += [
        f"[low, high]: {method}" if has_interval else f"No interval: {method}"
        for method, has_interval in bounded.items()
    ]
    return RankingView(build_provenance(result), contests, ". ".join(parts) + ".", agreement(result))


def _contest(result: Result, ranking: Ranking, criterion: str, part: str) -> Contest:
    order = [standing.system for standing in ranking.standings]
    order += [system for system in ranking.systems if system not in order]
    standings = {standing.system: standing for standing in ranking.standings}
    index = {system: place for place, system in enumerate(ranking.systems)}

    def cell(row: str, column: str) -> PairCell:
        share, n = ranking.win_rate[index[row]][index[column]], ranking.n[index[row]][index[column]]
        if row == column:
            return PairCell("", None, "")
        if share is None:
            return PairCell("–", None, f"{row} never met {column}")
        return PairCell(
            number(100 * share, 1), share, f"{row} against {column}: {percent(share)} of {plural(n, 'pair')}"
        )

    # Both orders of a pair have a score: they count once.
    identical_pairs = {
        (score.item, frozenset((score.system, score.rival)))
        for score in result.table.column_scores(ranking.column)
        if score.provenance.method == IDENTICAL
    }
    identical = len(identical_pairs)
    sentences = [f"{plural(ranking.pairs, 'pair')} of texts compared."]
    if identical:
        sentences.append(f"In {identical:,} of them the texts are identical: a tie, about which no judge was asked.")
    if ranking.incomplete:
        sentences.append(f"{plural(ranking.incomplete, 'pair')} left out for lack of an answer.")
    if ranking.failed:
        sentences.append(f"{plural(ranking.failed, 'judgment')} failed.")
    if identical and identical == ranking.pairs and ranking.failed:
        sentences.append("No judge's answer is in these numbers: they come from identical texts alone.")
    if ranking.flip_rate is not None:
        judged_pairs = plural(ranking.pairs - identical, "pair")
        turned = f"the verdict changed with the order in {percent(ranking.flip_rate)} (flip rate)"
        sentences.append(f"Of the {judged_pairs} shown both ways round, {turned}.")
    if ranking.position_bias is not None:
        sentences.append(
            f"The text shown first got {percent(0.5 + ranking.position_bias)} of the preference; without position bias "
            f"it gets 50%."
        )
    elif ranking.pairs > identical:
        sentences.append("Each pair was shown in one order only: what the order does to the verdict is not known.")
    return Contest(
        name=ranking.column,
        criterion=criterion,
        part=part,
        places=tuple(_standing_cells(system, standings.get(system)) for system in order),
        matrix=tuple(tuple(cell(row, column) for column in order) for row in order),
        sentences=tuple(sentences),
        ranking=ranking,
    )


def _standing_cells(system: str, standing: Standing | None) -> StandingCells:
    if standing is None:
        return StandingCells(system, "–", "", "–", "", "–", "", "0", "–", None)
    s = standing
    low, high = (None if end is None else 100 * end for end in (s.low, s.high))
    return StandingCells(
        system=system,
        win_rate=percent(s.win_rate),
        interval=format_interval(low, high, 1),
        strength="–" if s.strength is None else number(s.strength, 2),
        strength_interval=format_interval(s.strength_low, s.strength_high, 2),
        record=f"{s.wins:,}-{s.losses:,}-{s.ties:,}",
        undecided=f"({s.undecided:,} undecided)" if s.undecided else "",
        n=f"{s.n:,}",
        flips=percent(s.flip_rate),
        standing=s,
    )
