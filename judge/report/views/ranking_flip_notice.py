"""A notice beside a ranking whose verdicts often changed with the order of the texts."""

from __future__ import annotations

from judge.core.format import percent
from judge.report.format import column_title
from judge.report.views.ranking_finding import is_void
from judge.results.result import Result
from judge.stats.pairwise import Ranking

_MAX_FLIPS = 0.5  # as documented in docs/report.md


def ranking_flip_notices(result: Result) -> list[str]:
    """Return a notice for each criterion on which most verdicts changed with the order."""
    # The columns of a panel's single judges have no finding.
    columns = {column.name for column in result.table.columns if not column.judge}
    notices = []
    for ranking in result.rankings:
        if ranking.column not in columns or ranking.flip_rate is None:
            continue
        # The headline says it if no verdict is about the texts.
        if ranking.flip_rate > _MAX_FLIPS and not is_void(result, ranking):
            notices.append(_notice(ranking, ranking.flip_rate))
    return notices


def _notice(ranking: Ranking, flip_rate: float) -> str:
    preferred = ""
    if ranking.position_bias is not None:
        position = "first" if ranking.position_bias >= 0 else "second"
        share = percent(0.5 + abs(ranking.position_bias))
        preferred = f", and the text shown {position} got {share} of the preference"
    title = column_title(ranking.column)
    flips = percent(flip_rate)
    return (
        f"On {title}, the verdict changed with the order of the texts in {flips} of the "
        f"pairs{preferred}. Check the ranking with another judge or with people's preferences."
    )
