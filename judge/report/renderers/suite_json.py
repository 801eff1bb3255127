"""Outcomes for a program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from judge.report.format import plain
from judge.report.views.suite import summary
from judge.suite.records import Outcome

SCHEMA = "judge.test/1"


def render(outcomes: Sequence[Outcome]) -> str:
    """Everything, as strict JSON: a number that does not exist is null."""
    document = {
        "schema": SCHEMA,
        "passed": all(outcome.passed for outcome in outcomes),
        "summary": summary(outcomes),
        "suites": [_suite(outcome) for outcome in outcomes],
    }
    return json.dumps(plain(document), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _suite(outcome: Outcome) -> dict[str, Any]:
    """`comparison` is what `judge compare --format json` prints."""
    found, run = outcome.comparison, outcome.result or outcome.ranked
    return {
        "name": outcome.suite.name,
        "path": str(outcome.suite.path),
        "passed": outcome.passed,
        "summary": summary([outcome]),
        "trouble": outcome.trouble,
        "verdicts": [asdict(verdict) for verdict in outcome.verdicts],
        "warnings": outcome.warnings,
        "notes": outcome.notes,
        "model": run and run.info.get("model"),
        "comparison": None if found is None else json.loads(found.report("json")),
        "seconds": outcome.seconds,
    }
