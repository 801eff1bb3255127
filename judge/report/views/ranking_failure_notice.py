"""A notice beside a ranking's finding that would not hold if failed comparisons were losses."""

from __future__ import annotations

from judge.core.format import plural
from judge.report.format import column_title
from judge.report.views.ranking_finding import leads
from judge.report.views.system_names import listed
from judge.results.failures import failures_as_losses
from judge.results.result import Result
from judge.stats.compared_pairs import tie_label
from judge.stats.pairwise import Ranking, rankings


def ranking_failure_notice(result: Result) -> str:
    """Say if the first criterion's leaders would not lead with their failed comparisons as losses.

    Comparisons seldom fail at random: they fail on the longest or oddest texts.
    """
    # The columns of a panel's single judges have no finding.
    columns = {column.name for column in result.table.columns if not column.judge}
    whole = (ranking for ranking in result.rankings if ranking.column in columns)
    ranking = next(whole, None)
    if ranking is None or len(ranking.standings) < 2:
        return ""
    leaders = _leaders(ranking)
    failed = set()
    for row in result.failures:
        # A comparison of two leaders, or of two others, changes nothing for the leaders together.
        with_one_leader = (row.system in leaders) != (row.opponent in leaders)
        if row.column == ranking.column and with_one_leader:
            # A pair that failed in both orders is one comparison.
            pair = frozenset((row.system, row.opponent))
            failed.add((row.item, pair))
    if not leaders or not failed:
        return ""
    with_losses = _ranking_with_losses(result, ranking, leaders)
    if leaders <= _leaders(with_losses):
        return ""
    comparisons = plural(len(failed), "comparison")
    names = listed(sorted(leaders))
    verb = "it does" if len(leaders) == 1 else "they do"
    title = column_title(ranking.column)
    return f"{comparisons} of {names} failed on {title}. With each as a loss, {verb} not lead."


def _ranking_with_losses(
    result: Result, ranking: Ranking, leaders: set[str]
) -> Ranking:
    """Return the ranking with each failed comparison of a leader as a loss."""
    table = failures_as_losses(result, ranking.column, leaders).table
    source_items = {sample.item: sample.source_item for sample in table.samples}
    tie_labels = {column.name: tie_label(column) for column in table.columns}
    (with_losses,) = rankings(
        table.scores,
        table.failures,
        table.systems,
        [ranking.column],
        orders=result.info.orders or 2,
        source_items=source_items,
        against=ranking.against,
        tie_labels=tie_labels,
        seed=result.info.config.seed,
    )
    return with_losses


def _leaders(ranking: Ranking) -> set[str]:
    """Return the systems that the finding says lead, or win against the one that all met."""
    if ranking.against in {standing.system for standing in ranking.standings}:
        return {standing.system for standing in ranking.standings if standing.apart > 0}
    first_standing = ranking.standings[0]
    return {first_standing.system} if leads(ranking, first_standing) else set()
