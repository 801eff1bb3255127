"""A notice beside the finding of a ranking that would not hold if failed comparisons were losses."""

from __future__ import annotations

from judge.core.format import plural
from judge.report.format import column_title
from judge.report.views.system_names import listed
from judge.results.failures import failures_as_losses
from judge.results.result import Result
from judge.stats.pairwise import TIE, Ranking, rankings

_NEAR = 1e-6


def ranking_failure_notice(result: Result) -> str:
    """Say if the leaders of the first criterion would not lead with each of their failed
    comparisons lost.

    A comparison is unlikely to fail at random: those of the longest or oddest texts do.
    """
    whole = {column.name for column in result.table.columns if not column.judge}
    ranking = next((ranking for ranking in result.rankings if ranking.column in whole), None)
    if ranking is None or len(ranking.standings) < 2:
        return ""
    leaders = _leaders(ranking)
    failed = {
        (row.item, frozenset((row.system, row.opponent)))
        for row in result.failures
        if row.column == ranking.column and (row.system in leaders) != (row.opponent in leaders)
    }
    if not leaders or not failed:
        return ""
    if leaders <= _leaders(_ranking_with_losses(result, ranking, leaders)):
        return ""
    number = plural(len(failed), "comparison")
    return (
        f"{number} of {listed(sorted(leaders))} failed on {column_title(ranking.column)}. With each as a loss, "
        f"{'it does' if len(leaders) == 1 else 'they do'} not lead."
    )


def _ranking_with_losses(result: Result, ranking: Ranking, leaders: set[str]) -> Ranking:
    table = failures_as_losses(result, ranking.column, leaders).table
    (with_losses,) = rankings(
        table.scores,
        table.failures,
        table.systems,
        [ranking.column],
        orders=result.info.orders or 2,
        source_items={sample.item: sample.source_item for sample in table.samples},
        against=ranking.against,
        seed=result.info.config.seed,
    )
    return with_losses


def _leaders(ranking: Ranking) -> set[str]:
    """Return the systems that the finding says lead, or win against the one that all met."""
    if ranking.against in {standing.system for standing in ranking.standings}:
        return {standing.system for standing in ranking.standings if standing.apart > 0}
    first = ranking.standings[0]
    if ranking.by_strength:
        leads = first.strength_low is not None and first.strength_low > 0
    else:
        leads = first.low is not None and first.low > TIE + _NEAR
    return {first.system} if leads else set()
