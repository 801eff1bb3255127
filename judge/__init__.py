"""Which of these texts is better, by how much, and how sure are we?

`judge.evaluate(...)` scores texts on criteria with a judge model, beside ROUGE, BLEU and chrF, with intervals;
`judge.rank(...)` compares them two by two; `judge.plan(...)` says before what that asks and costs, and
`judge.render(...)` shows a prompt. `judge.validate(...)` holds a judge against people's ratings; `judge.compare(...)`
says what moved from one run to another, which `judge.load_result(...)` reads; `judge.test(...)` holds a judge against
a suite of cases, `judge.audit(...)` against controlled changes to texts; `judge.diff(...)` lays two wordings of a
criterion side by side; `judge.metrics` are for lists of texts, as in `judge.metrics.rouge.score`.
`help(judge.evaluate)` lists the options.

All that goes wrong on purpose is a `judge.JudgeError`. The other names are the types of what is given and returned.
Importing this package loads nothing heavy: names are resolved when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from judge.core.version import __version__

if TYPE_CHECKING:
    from judge import metrics as metrics
    from judge.api import evaluate as evaluate
    from judge.api import evaluate_async as evaluate_async
    from judge.api import rank as rank
    from judge.api import rank_async as rank_async
    from judge.api.auditing import audit as audit
    from judge.api.auditing import audit_async as audit_async
    from judge.api.compare import compare as compare
    from judge.api.diffing import diff as diff
    from judge.api.foreseen import Forecast as Forecast
    from judge.api.foreseen import plan as plan
    from judge.api.loading import load_criterion as load_criterion
    from judge.api.loading import load_result as load_result
    from judge.api.loading import load_samples as load_samples
    from judge.api.loading import render as render
    from judge.api.suites import test as test
    from judge.api.suites import test_async as test_async
    from judge.api.validate import validate as validate
    from judge.audits.card import Card as Card
    from judge.errors import JudgeError as JudgeError
    from judge.progress import Progress as Progress
    from judge.providers import Provider as Provider
    from judge.providers.scripted import ScriptedProvider as ScriptedProvider
    from judge.records import Criterion as Criterion
    from judge.records import Failure as Failure
    from judge.records import Sample as Sample
    from judge.records import Scale as Scale
    from judge.records import Score as Score
    from judge.report import Result as Result
    from judge.report.compared import RunComparison as RunComparison
    from judge.report.prompt_diff import PromptDiff as PromptDiff
    from judge.report.validation import Validation as Validation
    from judge.suite.records import Outcomes as Outcomes

_WHERE = {
    "Card": "judge.audits.card:Card",
    "Criterion": "judge.records:Criterion",
    "Failure": "judge.records:Failure",
    "Forecast": "judge.api.foreseen:Forecast",
    "JudgeError": "judge.errors:JudgeError",
    "Outcomes": "judge.suite.records:Outcomes",
    "Progress": "judge.progress:Progress",
    "PromptDiff": "judge.report.prompt_diff:PromptDiff",
    "Provider": "judge.providers:Provider",
    "Result": "judge.report:Result",
    "RunComparison": "judge.report.compared:RunComparison",
    "Sample": "judge.records:Sample",
    "Scale": "judge.records:Scale",
    "Score": "judge.records:Score",
    "ScriptedProvider": "judge.providers.scripted:ScriptedProvider",
    "Validation": "judge.report.validation:Validation",
    "audit": "judge.api.auditing:audit",
    "audit_async": "judge.api.auditing:audit_async",
    "compare": "judge.api:compare",
    "diff": "judge.api.diffing:diff",
    "evaluate": "judge.api:evaluate",
    "evaluate_async": "judge.api:evaluate_async",
    "load_criterion": "judge.api.loading:load_criterion",
    "load_result": "judge.api.loading:load_result",
    "load_samples": "judge.api.loading:load_samples",
    "metrics": "judge.metrics:",
    "plan": "judge.api.foreseen:plan",
    "rank": "judge.api:rank",
    "rank_async": "judge.api:rank_async",
    "render": "judge.api.loading:render",
    "test": "judge.api.suites:test",
    "test_async": "judge.api.suites:test_async",
    "validate": "judge.api:validate",
}
__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'judge' has no attribute {name!r}")
    module, attribute = _WHERE[name].split(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    return sorted(__all__)
