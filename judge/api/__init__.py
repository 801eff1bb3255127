"""The stages of a run in their order.

Suites, audits and diffs of criteria, which other runs do without, are in `judge.api.suites`, `.auditing` and
`.diffing`.
"""

from judge.api.compare import compare
from judge.api.entry import Options, RankOptions, evaluate, evaluate_async, rank, rank_async
from judge.api.measures import metrics
from judge.api.planning import forecast, foresee
from judge.api.prepare import Prepared, of_item, prepare, prompt
from judge.api.stages import run
from judge.api.steps import draft_steps
from judge.api.validate import check_rated, validate

__all__ = [
    "Options",
    "Prepared",
    "RankOptions",
    "check_rated",
    "compare",
    "draft_steps",
    "evaluate",
    "evaluate_async",
    "forecast",
    "foresee",
    "metrics",
    "of_item",
    "prepare",
    "prompt",
    "rank",
    "rank_async",
    "run",
    "validate",
]
