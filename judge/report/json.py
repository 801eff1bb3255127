"""The summary as JSON, for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from judge.report.about import about
from judge.report.result import Result
from judge.report.view import Cell, view
from judge.report.words import plain


def render(result: Result) -> str:
    """The numbers, `failures` by kind and `info` as one object.

    Of means: `systems`, `columns` and `table`, a row per system and column. Of rankings: `systems`, a row per system
    and column, and `rankings`, each with its matrix. Of a panel: `agreement`, a row per criterion. Where it is known:
    `drivers`, what moves the scores of a judge's column or people's ratings of a criterion.

    Strict JSON: numbers that do not exist are null.
    """
    found = _ranking(result) if result.rankings else _means(result)
    if result.agreement:
        found["agreement"] = [_agreed(name, asdict(e)) for name, e in result.agreement.items()]
    if result.drivers:
        found["drivers"] = [asdict(moved) for moved in result.drivers]
    found["failures"] = [
        {"stage": f.stage, "error": f.error, "count": f.count, "columns": f.columns, "example": f.example}
        for f in about(result).failures
    ]
    found["info"] = result.info
    return json.dumps(plain(found), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _means(result: Result) -> dict[str, Any]:
    shown = view(result)
    return {
        "systems": shown.systems,
        "columns": [{"name": c.name, "kind": c.kind, "signature": c.signature} for c in shown.columns],
        "table": [_row(*key, cell) for key, cell in shown.cells.items()],
    }


def _row(system: str, column: str, cell: Cell) -> dict[str, Any]:
    e = cell.estimate
    ends = {"mean": e and e.value, "low": e and e.low, "high": e and e.high}
    return {"system": system, "column": column, **ends, "n": cell.n, "total": cell.total, "method": e and e.method}


def _agreed(criterion: str, estimate: dict[str, Any]) -> dict[str, Any]:
    kept = {name: estimate[name] for name in ("low", "high", "n", "method")}
    return {"criterion": criterion, "alpha": estimate["value"], **kept}


def _ranking(result: Result) -> dict[str, Any]:
    return {
        "systems": [asdict(standing) for ranking in result.rankings for standing in ranking.standings],
        "rankings": [
            {name: value for name, value in asdict(ranking).items() if name != "standings"}
            for ranking in result.rankings
        ],
    }
