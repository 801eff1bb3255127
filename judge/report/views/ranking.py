"""The report of a run that compares texts in pairs: standings, win rates and position bias."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from judge.core.format import format_interval, number, percent, plural, whole_percent
from judge.core.records import IDENTICAL
from judge.report.document import (
    STAR,
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
    Tone,
    table,
)
from judge.report.document import Column as Head
from judge.report.format import column_title
from judge.report.views import panel, preferences
from judge.report.views.charts import matrix_chart, ranking_charts
from judge.report.views.columns import (
    TEST_NAME,
    contradicts_test,
    groups,
    share_cell,
)
from judge.report.views.finding import finding, number_of_items, scope_of
from judge.report.views.items import browser, link
from judge.report.views.provenance import (
    build_provenance,
    failure_blocks,
    failure_line,
    method_blocks,
    reading_section,
)
from judge.report.views.ranking_failure_notice import ranking_failure_notice
from judge.report.views.ranking_flip_notice import ranking_flip_notices
from judge.report.views.summary import ranked_data
from judge.results.result import Result, preference_agreement_of
from judge.stats.compared_pairs import TIE
from judge.stats.pairwise import Ranking, Standing
from judge.stats.pairwise_agreement import PreferenceAgreement
from judge.stats.power import ALPHA

_EQUAL_LENGTH = {
    "equal_length": "value",
    "equal_length_low": "low",
    "equal_length_high": "high",
}
_WIN_RATE = (
    "Win rate: the mean preference for a system over its pairs; 50% is even. Strength: "
    "Bradley-Terry, which takes the opponents into account; the difference of two strengths is the "
    "log-odds of a preference, with one tie added to every two systems that met. Undecided: the "
    "two orders prefer different texts."
)
_MATRIX_TITLE = "Win rates in per cent, row against column"
_MEAN_PREFERENCE = "Win rate: mean preference; a pair won with 70% counts 0.7."
_AT_EQUAL_LENGTH = (
    "Equal length: a logistic regression of the preferences on the difference in characters, with "
    "95% intervals over items, from 30 items on. AlpacaEval's length-controlled win rate is "
    "another estimate: 1.6 to 5.6 points lower for five models of its own data."
)
_BY_STRENGTH = (
    "Ordered by strength: the systems met different opponents, "
    "so win rates cannot be compared."
)
_GROUP = "Group: systems of two groups were never compared."
_EQUAL_LENGTH_RATE = "Equal length: estimated win rate if both texts were equally long."
_UNDECIDED = "Pairs whose two orders prefer different texts are neither won nor lost."
_FLIPS = "Flips: share of pairs whose verdict changed with the order."


def view(result: Result) -> Document:
    """Build the report of a run that compares texts in pairs."""
    about = build_provenance(result)
    sentences = finding(result)
    items_text = number_of_items(result)
    agreement = preference_agreement_of(result)
    whole = {column.name for column in result.table.columns if not column.judge}
    rankings = [ranking for ranking in result.rankings if ranking.column in whole]
    n_pairs = sum(ranking.pairs for ranking in rankings)
    # The mean of a panel fails with a judge, but is no judgment.
    of_judges = [ranking for ranking in result.rankings if ranking.column not in whole]
    n_failed = sum(ranking.failed for ranking in of_judges or rankings)
    systems = plural(len(result.table.systems), "system")
    failure_notice = ranking_failure_notice(result)
    flip_notices = ranking_flip_notices(result)
    all_notices = (*about.banners, failure_notice, *flip_notices)
    notices = tuple(filter(None, all_notices))
    pairs = plural(n_pairs, "pair")
    pairs_compared = f"{pairs} compared"
    if len(rankings) > 1:  # a pair is compared on each criterion
        pairs = plural(n_pairs, "comparison")
        pairs_compared = f"{pairs} on {len(rankings)} criteria"
    # A pair that was judged in both orders has two judgments.
    failed_judgments = plural(n_failed, "judgment")
    failed = f"{failed_judgments} failed"
    footer = [f"{pairs_compared}, {failed}", *panel.summary_lines(result)]
    if n_failed and about.failures:
        footer.append(failure_line(about.failures))
    return Document(
        title=about.title,
        finding=(*sentences, *preferences.sentences(agreement)),
        scope=scope_of(result, sentences),
        about=(systems, items_text, pairs, failed),
        notices=notices,
        remarks=about.remarks,
        summary=tuple(_summary(rankings, n_pairs, n_failed)),
        sections=tuple(_sections(result, agreement)),
        footer=tuple(footer),
        data=ranked_data(result, about.failures, agreement, notices=notices),
        records=tuple(_records(result)),
        header=(*_STANDING_FIELDS, *_EQUAL_LENGTH, "signature"),
        language=result.info.language_name,
    )


_STANDING_FIELDS = [
    field.name for field in fields(Standing) if field.name != "equal_length"
]


def _records(result: Result) -> Iterator[dict[str, Any]]:
    """Yield a row per ranking and system for CSV."""
    signatures = result.table.signatures
    for ranking in result.rankings:
        for standing in ranking.standings:
            record: dict[str, Any] = {}
            for field_name in _STANDING_FIELDS:
                record[field_name] = getattr(standing, field_name)
            for field_name, attribute in _EQUAL_LENGTH.items():
                record[field_name] = getattr(standing.equal_length, attribute, None)
            record["signature"] = signatures.get(standing.column)
            yield record


def _summary(rankings: list[Ranking], n_pairs: int, n_failed: int) -> Iterator[Block]:
    noun = "pairs compared" if len(rankings) == 1 else "comparisons"
    tone: Tone = "bad" if n_failed else ""
    tiles = [
        Tile(f"{n_pairs:,}", noun),
        Tile(f"{n_failed:,}", "judgments failed", tone),
    ]
    for ranking in rankings[:2]:
        if ranking.flip_rate is not None:
            title = column_title(ranking.column)
            flip_rate = percent(ranking.flip_rate)
            tile = Tile(flip_rate, f"of verdicts changed with the order ({title})")
            tiles.append(tile)
    yield Tiles(tuple(tiles))
    if len(rankings) == 1:
        yield _standings(rankings[0], short=True)
    elif rankings:
        yield _win_rates_by_criterion(rankings)


def _win_rates_by_criterion(rankings: Sequence[Ranking]) -> Table:
    """Return the systems' win rates on each criterion, ordered by the first criterion."""
    standings = {}
    for ranking in rankings:
        for standing in ranking.standings:
            standings[standing.column, standing.system] = standing
    rows: list[list[Content]] = []
    for system in dict.fromkeys(system for _, system in standings):
        row: list[Content] = [system]
        for index, ranking in enumerate(rankings):
            of_system = standings.get((ranking.column, system))
            row.append(_win_rate(of_system, bar=index == 0))
        rows.append(row)
    titles = [column_title(ranking.column) for ranking in rankings]
    win_rates = [Head(title, better="higher") for title in titles]
    heads = [Head(""), *win_rates]
    table_key = "win rate: mean preference, a tie counts 0.5"
    if rankings[0].by_strength:
        table_key += "; ordered by strength"
    return table(
        heads,
        rows,
        table_key,
        caption="Win rates by criterion.",
        name="standings",
        sorts=True,
        short=True,
    )


def _sections(
    result: Result, agreement: Sequence[PreferenceAgreement]
) -> Iterator[Section]:
    rankings = {ranking.column: ranking for ranking in result.rankings}
    for group in groups(result):
        for column in group.columns:
            if column.name not in rankings:
                continue
            title = column_title(group.name)
            judge = group.parts[column.name]
            if judge:
                title = f"{title}, {judge}"
            make = partial(_ranking_blocks, result, rankings[column.name])
            yield Section(f"ranking-{column.name}", title, make)
    if agreement:
        make_people = partial(preferences.blocks, agreement)
        yield Section("people", "Agreement with people", make_people)
    yield from panel.sections(result)
    if result.failures:
        yield Section("failures", "Failures", lambda: failure_blocks(result))
    yield from reading_section(result)
    title = f"All items ({len(result.table.items):,})"
    yield Section("items", title, lambda: [browser(result)])
    yield Section("method", "Method", partial(_method_blocks, result), folded=True)


def _method_blocks(result: Result) -> Iterator[Block]:
    yield Paragraph(_WIN_RATE)
    standings: list[Standing] = []
    for ranking in result.rankings:
        standings += ranking.standings
    if any(standing.equal_length for standing in standings):
        yield Paragraph(_AT_EQUAL_LENGTH)
    methods = dict.fromkeys(ranking.method for ranking in result.rankings)
    listed_methods = "; ".join(methods)
    yield Paragraph(f"Intervals: {listed_methods}.")
    yield from method_blocks(result)


def _win_rate(standing: Standing | None, *, bar: bool) -> Cell | None:
    if standing is None:
        return None
    rate = standing.win_rate
    lower_bound = standing.low
    upper_bound = standing.high
    shade = None
    length = None
    if bar:
        length = Bar(rate, lower_bound, upper_bound)
    else:
        shade = 2 * rate - 1
    tone: Tone = ""
    if standing.apart:
        tone = "good" if standing.apart > 0 else "bad"
    return Cell(
        whole_percent(rate),
        format_interval(lower_bound, upper_bound, 0, 100),
        shade=shade,
        bar=length,
        value=rate,
        mark=STAR if standing.apart else "",
        tone=tone,
        link=link(system=standing.system, column=f"{standing.column}: preferred"),
    )


def _standings(ranking: Ranking, *, short: bool) -> Table:
    """Tabulate one ranking: win rates, strengths, records and flips."""
    rows: list[list[Content]] = []
    group_by_system: dict[str, int] = {}
    # A single group says nothing: the column is left out if no row has a value.
    if len(ranking.groups) > 1:
        for number, systems in enumerate(ranking.groups, 1):
            group_by_system.update(dict.fromkeys(systems, number))
    for standing in ranking.standings:
        row: list[Content] = [
            standing.system,
            group_by_system.get(standing.system),
            _win_rate(standing, bar=True),
            share_cell(standing.equal_length),
            _strength(standing),
            _record_cell(standing),
            standing.n,
            standing.items or None,
            _flips(standing),
        ]
        rows.append(row)
    met = {standing.system for standing in ranking.standings}
    star = ""
    if ranking.against:
        star = f"* significantly different from {ranking.against}."
    undecided: tuple[str, ...] = ()
    if any(standing.undecided for standing in ranking.standings):
        undecided = (_UNDECIDED,)
    heads = (
        "system",
        Head("group", optional=True, about=(_GROUP,)),
        Head("win rate", about=(_MEAN_PREFERENCE,)),
        Head("equal length", optional=True, about=(_EQUAL_LENGTH_RATE,)),
        "strength",
        Head("won-lost-tied", about=undecided),
        "pairs",
        "items",
        Head("flips", about=(_FLIPS,)),
    )
    # A system without comparisons has a row with its name alone.
    blank: list[Content] = [None] * (len(heads) - 1)
    rows += [[system, *blank] for system in ranking.systems if system not in met]
    # In full, a section's heading names the criterion.
    caption = ""
    if short:
        caption = f"Win rates on {column_title(ranking.column)}."
    return table(
        heads,
        rows,
        star=star,
        caption=caption,
        name=f"ranking-{ranking.column}",
        sorts=True,
        short=short,
    )


def _contradicts_test(standing: Standing) -> bool:
    """Return whether the interval of a win rate and its test disagree."""
    return contradicts_test(standing.low, standing.high, standing.p, neutral=TIE)


def _record_cell(standing: Standing) -> Cell:
    """Return `12-7-1`: won, lost and tied pairs, with the undecided ones as a note."""
    win_loss_tie = (standing.wins, standing.losses, standing.ties)
    record = "-".join(f"{count:,}" for count in win_loss_tie)
    undecided = f"({standing.undecided:,} undecided)" if standing.undecided else ""
    return Cell(record, undecided, value=standing.wins)


def _flips(standing: Standing) -> Cell | None:
    if standing.flip_rate is None:
        return None
    return Cell(percent(standing.flip_rate), value=standing.flip_rate)


def _strength(standing: Standing) -> Cell | None:
    if standing.strength is None:
        return None
    interval = format_interval(standing.strength_low, standing.strength_high, 2)
    return Cell(number(standing.strength, 2), interval, value=standing.strength)


def _counts_sentence(result: Result, ranking: Ranking) -> str:
    """Say how many pairs were compared, were equal or are missing."""
    # Both orders of a pair have a score: they count once.
    equal_pairs = set()
    for score in result.table.column_scores(ranking.column):
        if score.provenance.method == IDENTICAL:
            systems = frozenset((score.system, score.opponent))
            equal_pairs.add((score.item, systems))
    counts = {
        "identical texts, ties without a judge": len(equal_pairs),
        "left out, because a judgment is missing": ranking.incomplete,
        "failed judgments": ranking.failed,
    }
    pairs = plural(ranking.pairs, "pair")
    sentence = f"{pairs} compared"
    for count_name, count in counts.items():
        if count:
            sentence += f"; {count_name}: {count:,}"
    return f"{sentence}."


def _order_sentences(ranking: Ranking) -> Iterator[str]:
    """Say how the systems are ordered, and what the order of the texts did."""
    if ranking.against:
        yield f"Every system met {ranking.against} only."
        if any(standing.apart for standing in ranking.standings):
            yield f"* p < {ALPHA:g} ({TEST_NAME}, Holm-corrected)."
        if any(_contradicts_test(standing) for standing in ranking.standings):
            yield "Intervals are of each win rate alone; the test decides."
    elif ranking.by_strength:
        yield _BY_STRENGTH
    if ranking.flip_rate is not None:
        changed = percent(ranking.flip_rate)
        yield f"The verdict changed with the order in {changed} of the judged pairs (flip rate)."
    if ranking.position_bias is None:
        yield "No pair was judged in both orders, so the effect of the order is unknown."
        return
    preference = percent(0.5 + ranking.position_bias)
    yield (
        f"The text shown first got {preference} of the preference; "
        "without position bias it gets 50%."
    )


def _ranking_blocks(result: Result, ranking: Ranking) -> Iterator[Block]:
    yield _standings(ranking, short=False)
    sentences = [_counts_sentence(result, ranking), *_order_sentences(ranking)]
    yield Paragraph(" ".join(sentences))
    if ranking.note:
        yield Notice(ranking.note)
    yield from ranking_charts(ranking, column_title(ranking.column))
    if len(ranking.systems) > 2:
        matrix = win_rate_matrix(ranking)
        yield matrix_chart(matrix, _MATRIX_TITLE)
        yield Details("Table of win rates", (matrix,))


def win_rate_matrix(ranking: Ranking) -> Table:
    """Return the win rates of systems against each other, in per cent; "–" if they never met."""
    ordered = [standing.system for standing in ranking.standings]
    systems = list(dict.fromkeys([*ordered, *ranking.systems]))
    # The matrix has its own order of the systems.
    index = {system: position for position, system in enumerate(ranking.systems)}

    def cell(row: str, column: str) -> Cell:
        if row == column:
            return Cell("")
        row_index = index[row]
        column_index = index[column]
        win_rate = ranking.win_rate[row_index][column_index]
        if win_rate is None:
            return Cell("–", tone="muted", title=f"{row} never met {column}")
        share = percent(win_rate)
        pairs = plural(ranking.n[row_index][column_index], "pair")
        title = f"{row} against {column}: {share} of {pairs}"
        percentage = number(100 * win_rate, 1)
        return Cell(percentage, title=title, shade=2 * win_rate - 1, value=win_rate)

    rows = []
    for row in systems:
        cells = [cell(row, column) for column in systems]
        rows.append([Cell(row), *cells])
    return table(
        ("", *systems),
        rows,
        caption=f"{_MATRIX_TITLE}.",
        name=f"win-rates-{ranking.column}",
    )
