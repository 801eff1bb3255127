"""The report of a run: a leaderboard if its texts were scored, a ranking if they were compared in
pairs."""

from __future__ import annotations

from judge.report.document import Document
from judge.report.views import leaderboard, ranking
from judge.results.result import Result


def view(result: Result) -> Document:
    """Build the report of a run."""
    if result.rankings:
        return ranking.view(result)
    return leaderboard.view(result)
