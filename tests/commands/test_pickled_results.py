"""Results can be pickled and copied, also after their reports were made."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

import pytest

import judge
from judge.core.errors import JudgeError

POLITE = "polite: Is it polite?"
BETTER = "better: Which text is better?"
ROWS: list[dict[str, Any]] = [
    {
        "item": f"i{number}",
        "system": system,
        "output": f"Text {number} by {system}",
        "lang": "ko" if number % 2 else "ja",
        "human": {"polite": 1 + number % 5},
    }
    for number in range(12)
    for system in ("a", "b")
]


def graded(prompt: str) -> str:
    """Return a score, or for one item a reply without any."""
    return "hm" if "Text 3 " in prompt else str(Random(prompt).randint(1, 5))


def preferred(prompt: str) -> str:
    return Random(prompt).choice("AB")


@cache
def run() -> judge.Result:
    return judge.evaluate(ROWS, POLITE, model=graded, metrics="distinct", cache=False)


RESULTS: dict[str, Callable[[], Any]] = {
    "Result": lambda: copy.copy(run()),
    "a ranking": lambda: judge.rank(ROWS, BETTER, model=preferred, cache=False),
    "RunComparison": lambda: judge.compare(run(), run()),
    "RunPower": lambda: run().power(),
    "Plot": lambda: run().plot(),
    "Slices": lambda: judge.slices(run(), "lang"),
    "Validation": lambda: judge.validate(run()),
    "JudgeCard": lambda: judge.card(ROWS, POLITE, model=graded, cache=False),
    "CriterionDiff": lambda: judge.diff(POLITE, "polite: Is this text polite?"),
    "Plan": lambda: judge.plan(ROWS, POLITE, model="gpt-5.4-mini", metrics=[], cache=False),
    "Outcomes": lambda: judge.test("examples/regression/grounded.judge.yaml"),
}


def use(result: Any) -> None:
    """Read the public properties of a result, and call its methods that need no arguments."""
    public_names = [name for name in dir(result) if not name.startswith(("_", "log_to_"))]
    for name in [*public_names, "_repr_html_"]:
        # Some results have no claims or no scores of single texts, and PNG needs a package.
        with suppress(JudgeError):
            member = getattr(result, name, None)
            if inspect.ismethod(member) and not _required_arguments(member):
                member()


def _required_arguments(method: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(method).parameters.values()
    return [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize(
    "duplicate", [lambda result: pickle.loads(pickle.dumps(result)), copy.deepcopy]
)
def test_a_used_result_can_be_pickled_and_copied(
    name: str, duplicate: Callable[[Any], Any]
) -> None:
    result = RESULTS[name]()
    use(result)
    twin = duplicate(result)
    assert repr(twin) == repr(result)
    if hasattr(result, "report"):
        assert twin.report("markdown") == result.report("markdown")
