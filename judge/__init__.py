"""Which of these texts is better, by how much, and how sure are we?

`judge.evaluate(...)` scores texts on criteria with a judge model, beside ROUGE, BLEU and chrF, with intervals;
`judge.rank(...)` compares them two by two; `judge.validate(...)` holds a judge against people's ratings;
`judge.compare(...)` says what moved from one run to another; `judge.test(...)` holds a judge against a suite of cases,
`judge.audit(...)` against controlled changes to texts; `judge.diff(...)` lays two wordings of a criterion side by side;
`judge.metrics` are for lists of texts, as in `judge.metrics.rouge.score`.
Importing this package loads nothing heavy: names are resolved when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judge import metrics as metrics
    from judge.api import evaluate as evaluate
    from judge.api import evaluate_async as evaluate_async
    from judge.api import rank as rank
    from judge.api import rank_async as rank_async
    from judge.api.auditing import audit as audit
    from judge.api.compare import compare as compare
    from judge.api.diffing import diff as diff
    from judge.api.suites import test as test
    from judge.api.validate import validate as validate
    from judge.criteria import load as load_criterion
    from judge.errors import JudgeError as JudgeError
    from judge.providers.scripted import ScriptedProvider as ScriptedProvider
    from judge.records import Sample as Sample
    from judge.report import Result as Result
    from judge.samples import load as load_samples

__version__ = "0.1.0"

_WHERE = {
    "JudgeError": "judge.errors:JudgeError",
    "Result": "judge.report:Result",
    "Sample": "judge.records:Sample",
    "ScriptedProvider": "judge.providers.scripted:ScriptedProvider",
    "audit": "judge.api.auditing:audit",
    "compare": "judge.api:compare",
    "diff": "judge.api.diffing:diff",
    "evaluate": "judge.api:evaluate",
    "evaluate_async": "judge.api:evaluate_async",
    "load_criterion": "judge.criteria:load",
    "load_samples": "judge.samples:load",
    "metrics": "judge.metrics:",
    "rank": "judge.api:rank",
    "rank_async": "judge.api:rank_async",
    "test": "judge.api.suites:test",
    "validate": "judge.api:validate",
}
__all__ = [
    "JudgeError",
    "Result",
    "Sample",
    "ScriptedProvider",
    "__version__",
    "audit",
    "compare",
    "diff",
    "evaluate",
    "evaluate_async",
    "load_criterion",
    "load_samples",
    "metrics",
    "rank",
    "rank_async",
    "test",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'judge' has no attribute {name!r}")
    module, attribute = _WHERE[name].split(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    return sorted(__all__)
