"""A recording that lacks a reply is no failed judgment: nothing is held against what came of such a run."""

from __future__ import annotations

from judge.core.errors import Unrecorded
from judge.report.format import count, line
from judge.results.result import Result


def refuse_unrecorded(*results: Result | None) -> None:
    """Raises Unrecorded where judgments failed for that, with their number and the first one."""
    found = [row for one in results if one for row in one.failures if row.error == Unrecorded.__name__]
    if found:
        first = found[0]
        where = f"{line(first.item, 60)} ({line(first.system, 60)}), {line(first.column, 60)}"
        raise Unrecorded(f"{count(len(found), 'judgment')} not in the recording; the first is {where}: {first.message}")
