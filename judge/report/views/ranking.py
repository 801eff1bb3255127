"""The report of a run that compares texts in pairs: standings, win rates against each rival, and what the order did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial

from judge.core.format import format_interval, number, percent, plural
from judge.core.records import IDENTICAL
from judge.report.document import (
    Bar,
    Block,
    Cell,
    Content,
    Details,
    Document,
    Notice,
    Paragraph,
    Section,
    Table,
    Tile,
    Tiles,
    table,
)
from judge.report.document import Column as Head
from judge.report.format import column_title
from judge.report.views import panel, preferences
from judge.report.views.charts import matrix_chart, ranking_charts
from judge.report.views.columns import TEST_NAME, groups, share_cell
from judge.report.views.finding import finding, number_of_items
from judge.report.views.items import browser, link
from judge.report.views.provenance import (
    build_provenance,
    failure_blocks,
    method_blocks,
    reading_section,
)
from judge.report.views.ranking_failure_notice import ranking_failure_notice
from judge.report.views.summary import ranked_data
from judge.results.result import Result, preference_agreement_of
from judge.stats.pairwise import Ranking, Standing
from judge.stats.pairwise_agreement import PreferenceAgreement
from judge.stats.power import ALPHA

_EQUAL_LENGTH = {"equal_length": "value", "equal_length_low": "low", "equal_length_high": "high"}
_WIN_RATE = (
    "Win rate: the mean preference for a system over its pairs; 50% is even. Strength: Bradley-Terry, which takes "
    "the rivals into account; the difference of two strengths is the log-odds of a preference, with one tie added "
    "to every two systems that met. Undecided: the verdicts of the two orders cancel out."
)
_AT_EQUAL_LENGTH = (
    "Equal length: a logistic regression of the preferences on the difference in characters (tanh, in standard "
    "deviations), with 95% percentile intervals over resampled items, from 30 items on. It is not AlpacaEval's "
    "length-controlled win rate."
)
_BY_STRENGTH = (
    "Ordered by strength: the systems met different rivals, so win rates cannot be compared."
)


def view(result: Result) -> Document:
    """Build the report of a run that compares texts in pairs."""
    about, sentences, n_items = build_provenance(result), finding(result), number_of_items(result)
    people = preference_agreement_of(result)
    whole = {column.name for column in result.table.columns if not column.judge}
    rankings = [ranking for ranking in result.rankings if ranking.column in whole]
    pairs = sum(ranking.pairs for ranking in rankings)
    failed = sum(ranking.failed for ranking in result.rankings)
    signatures = result.table.signatures
    names = [field.name for field in fields(Standing) if field.name != "equal_length"]
    return Document(
        title=about.title,
        finding=(*sentences, *preferences.sentences(people)),
        scope="" if sentences and sentences[0].endswith(f"over {n_items}") else n_items,
        about=(
            plural(len(result.table.systems), "system"),
            n_items,
            plural(pairs, "pair"),
            f"{failed:,} failed",
        ),
        notices=(*about.banners, *filter(None, [ranking_failure_notice(result)])),
        summary=tuple(_summary(rankings, pairs, failed)),
        sections=tuple(_sections(result, people)),
        footer=(
            f"{plural(pairs, 'pair')} compared, {failed:,} failed",
            *panel.summary_lines(result),
        ),
        data=ranked_data(result, about.failures, people),
        records=tuple(
            {name: getattr(standing, name) for name in names}
            | {
                name: getattr(standing.equal_length, key, None)
                for name, key in _EQUAL_LENGTH.items()
            }
            | {"signature": signatures.get(standing.column)}
            for ranking in result.rankings
            for standing in ranking.standings
        ),
        header=(*names, *_EQUAL_LENGTH, "signature"),
        language=result.info.language_name,
    )


def _summary(rankings: list[Ranking], pairs: int, failed: int) -> Iterator[Block]:
    tiles = [
        Tile(f"{pairs:,}", "pairs compared"),
        Tile(f"{failed:,}", "judgments failed", "bad" if failed else ""),
    ]
    for ranking in rankings[:2]:
        if ranking.flip_rate is not None:
            label = f"of verdicts changed with the order ({column_title(ranking.column)})"
            tiles.append(Tile(percent(ranking.flip_rate), label))
    yield Tiles(tuple(tiles))
    if len(rankings) == 1:
        yield _standings(rankings[0], short=True)
    elif rankings:  # systems by criteria, ordered by the first criterion
        standings = {(s.column, s.system): s for r in rankings for s in r.standings}
        rows = [
            (
                name,
                *(
                    _win_rate(standings.get((r.column, name)), bar=not place)
                    for place, r in enumerate(rankings)
                ),
            )
            for name in dict.fromkeys(system for _, system in standings)
        ]
        heads = [
            Head(""),
            *(Head(column_title(ranking.column), better="higher") for ranking in rankings),
        ]
        key = (
            "win rate: share of comparisons won, ties count half"
            + "; ordered by strength" * rankings[0].by_strength
        )
        yield table(heads, rows, key, name="standings", sorts=True, short=True)


def _sections(result: Result, people: Sequence[PreferenceAgreement]) -> Iterator[Section]:
    rankings = {ranking.column: ranking for ranking in result.rankings}
    for group in groups(result):
        for column in group.columns:
            if column.name in rankings:
                judge = group.parts[column.name]
                title = (
                    f"{column_title(group.name)}, {judge}" if judge else column_title(group.name)
                )
                make = partial(_ranking_blocks, result, rankings[column.name])
                yield Section(f"ranking-{column.name}", title, make)
    if people:
        yield Section("people", "Agreement with people", lambda: preferences.blocks(people))
    yield from panel.sections(result)
    if result.failures:
        yield Section("failures", "Failures", lambda: failure_blocks(result))
    yield from reading_section(result)
    yield Section("items", f"All items ({len(result.table.items):,})", lambda: [browser(result)])
    methods = dict.fromkeys(ranking.method for ranking in result.rankings)
    method = [Paragraph(_WIN_RATE), Paragraph(f"Intervals: {'; '.join(methods)}.")]
    if any(standing.equal_length for ranking in result.rankings for standing in ranking.standings):
        method.insert(1, Paragraph(_AT_EQUAL_LENGTH))
    yield Section("method", "Method", lambda: (*method, *method_blocks(result)), folded=True)


def _win_rate(standing: Standing | None, *, bar: bool) -> Cell | None:
    if standing is None:
        return None
    return Cell(
        f"{100 * standing.win_rate:.0f}%",
        format_interval(standing.low, standing.high, 0, 100),
        shade=None if bar else 2 * standing.win_rate - 1,
        bar=Bar(standing.win_rate, standing.low, standing.high) if bar else None,
        value=standing.win_rate,
        mark="*" if standing.apart else "",
        tone=("", "good", "bad")[standing.apart],
        link=link(system=standing.system, column=f"{standing.column}: preferred"),
    )


def _standings(ranking: Ranking, *, short: bool) -> Table:
    """Tabulate one ranking: win rates, strengths, records and flips."""
    rows: list[tuple[Content, ...]] = []
    group_of = {name: at for at, group in enumerate(ranking.groups, 1) for name in group}
    for s in ranking.standings:
        undecided = f"({s.undecided:,} undecided)" if s.undecided else ""
        strength = format_interval(s.strength_low, s.strength_high, 2)
        rows.append(
            (
                s.system,
                group_of.get(s.system) if len(ranking.groups) > 1 else None,
                _win_rate(s, bar=True),
                share_cell(s.equal_length),
                None
                if s.strength is None
                else Cell(number(s.strength, 2), strength, value=s.strength),
                Cell(f"{s.wins:,}-{s.losses:,}-{s.ties:,}", undecided, value=s.wins),
                s.n,
                s.items or None,
                None if s.flip_rate is None else Cell(percent(s.flip_rate), value=s.flip_rate),
            )
        )
    met = {s.system for s in ranking.standings}
    rows += [(system, *[None] * 8) for system in ranking.systems if system not in met]
    apart = f"* significantly different from {ranking.against}." if ranking.against else ""
    equal_length = "Equal length: estimated win rate if both texts were equally long."
    return table(
        (
            "system",
            Head("group", optional=True, about="Group: systems of two groups were never compared."),
            "win rate",
            Head("equal length", optional=True, about=equal_length),
            "strength",
            "won-lost-tied",
            "pairs",
            "items",
            Head("flips", about="Flips: share of pairs whose verdict changed with the order."),
        ),
        rows,
        apart,
        name=f"ranking-{ranking.column}",
        sorts=True,
        short=short,
    )


def _ranking_blocks(result: Result, ranking: Ranking) -> Iterator[Block]:
    yield _standings(ranking, short=False)
    # Both orders of a pair have a score: they count once.
    same = (
        s for s in result.table.column_scores(ranking.column) if s.provenance.method == IDENTICAL
    )
    counts = {
        "identical texts, ties without a judge": len(
            {(s.item, frozenset((s.system, s.rival))) for s in same}
        ),
        "left out, because an answer is missing": ranking.incomplete,
        "failed judgments": ranking.failed,
    }
    parts = [
        f"{plural(ranking.pairs, 'pair')} compared",
        *(f"{name}: {n:,}" for name, n in counts.items() if n),
    ]
    sentences = [f"{'; '.join(parts)}."]
    if ranking.against:
        sentences.append(
            f"Every system met {ranking.against} only. * p < {ALPHA:g} ({TEST_NAME}, Holm-corrected)."
        )
    elif ranking.by_strength:
        sentences.append(_BY_STRENGTH)
    if ranking.flip_rate is not None:
        changed = percent(ranking.flip_rate)
        sentences.append(
            f"The verdict changed with the order in {changed} of the judged pairs (flip rate)."
        )
    if ranking.position_bias is not None:
        preference = percent(0.5 + ranking.position_bias)
        sentences.append(
            f"The text shown first got {preference} of the preference; without position bias it gets 50%."
        )
    else:
        sentences.append(
            "No pair was judged in both orders, so the effect of the order is unknown."
        )
    yield Paragraph(" ".join(sentences))
    if ranking.note:
        yield Notice(ranking.note)
    yield from ranking_charts(ranking, column_title(ranking.column))
    if len(ranking.systems) > 2:
        matrix = win_rate_matrix(ranking)
        yield matrix_chart(matrix, "Win rates in per cent, row against column")
        yield Details("Table of win rates, row against column (%)", (matrix,))


def win_rate_matrix(ranking: Ranking) -> Table:
    """The win rate of each system against each other, in per cent; "–" if they never met."""
    order = list(dict.fromkeys([*(s.system for s in ranking.standings), *ranking.systems]))
    index = {system: place for place, system in enumerate(ranking.systems)}

    def cell(row: str, column: str) -> Cell:
        share, n = ranking.win_rate[index[row]][index[column]], ranking.n[index[row]][index[column]]
        if row == column:
            return Cell("")
        if share is None:
            return Cell("–", tone="muted", title=f"{row} never met {column}")
        title = f"{row} against {column}: {percent(share)} of {plural(n, 'pair')}"
        return Cell(number(100 * share, 1), title=title, shade=2 * share - 1, value=share)

    rows = ((Cell(row), *(cell(row, column) for column in order)) for row in order)
    return table(("", *order), rows, name=f"win-rates-{ranking.column}")
