"""The summary as JSON, for programs."""

from __future__ import annotations

import json
from typing import Any

from judge.report.result import Result
from judge.report.view import Cell, view
from judge.report.words import plain


def render(result: Result) -> str:
    """An object with `systems`, `columns`, `table` (a row per system and column), `failures` by kind and `info`.

    Strict JSON: numbers that do not exist are null.
    """
    shown = view(result)
    found = {
        "systems": shown.systems,
        "columns": [{"name": c.name, "kind": c.kind, "signature": c.signature} for c in shown.columns],
        "table": [_row(*key, cell) for key, cell in shown.cells.items()],
        "failures": [
            {"stage": f.stage, "error": f.error, "count": f.count, "columns": f.columns, "example": f.example}
            for f in shown.failures
        ],
        "info": result.info,
    }
    return json.dumps(plain(found), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _row(system: str, column: str, cell: Cell) -> dict[str, Any]:
    e = cell.estimate
    ends = {"mean": e and e.value, "low": e and e.low, "high": e and e.high}
    return {"system": system, "column": column, **ends, "n": cell.n, "total": cell.total, "method": e and e.method}
