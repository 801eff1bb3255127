"""The report of a run: a leaderboard if its texts were scored, a ranking if they were compared in pairs."""

from __future__ import annotations

from dataclasses import replace

from judge.report.document import Document, text_table
from judge.report.format import score_text
from judge.report.views import leaderboard, ranking
from judge.results.result import Result

_MOST_CHANGES = 20  # in the summary


def view(result: Result) -> Document:
    """Build the report of a run. If its replies were read again, it begins with the values that changed.

    CSV has these values then, and with `wide` all values.
    """
    document = ranking.view(result) if result.rankings else leaderboard.view(result)
    reread = result.info.get("reread")
    if reread is None:
        return document
    header = ("item", "system", "rival", "column", "before", "after", "why")
    document = replace(document, records=tuple(reread["changes"]), header=header)
    if not reread["changes"]:
        return document
    columns = {column.name: column for column in result.table.columns}
    rows = []
    for change in reread["changes"][:_MOST_CHANGES]:
        names = [name for name in (change["item"], change["system"], change["rival"]) if name]
        values = (change["before"], change["after"])
        texts = ["failed" if value is None else score_text(columns[change["column"]], value) for value in values]
        rows.append((" · ".join(names), change["column"], " → ".join(texts), change["why"]))
    more = len(reread["changes"]) - len(rows)
    key = f"{more:,} more: --format csv" if more else ""
    changed = text_table(("text", "criterion", "value", "reason"), rows, name="reread", key=key)
    return replace(document, summary=(changed, *document.summary))
