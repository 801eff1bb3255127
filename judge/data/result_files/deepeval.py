"""Test runs of DeepEval: `test_run_TIME.json` in its results folder, and `.latest_run_full.json`.

https://deepeval.com/docs/evaluation-flags-and-configs
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judge.core.errors import DataError
from judge.core.option_values import finite_number
from judge.data.result_files.judged import JudgedText, as_text, member, score
from judge.data.result_files.opening import Opening

TOOL = "DeepEval"
_WRAPPED = "testRunData"
"""The key of the test run in `.latest_test_run.json`."""
_CASES = ("testCases", "conversationalTestCases")
_THRESHOLD = ".threshold"
_SUCCESS = ".success"


def claims(opening: Opening) -> bool:
    """Return whether this is a test run."""
    run = opening.document.get(_WRAPPED, opening.document)
    return isinstance(run, Mapping) and all(key in run for key in (*_CASES, "metricsScores"))


def read(opening: Opening) -> Iterator[JudgedText]:
    """Yield the test cases. Raises DataError."""
    run = opening.document.get(_WRAPPED, opening.document)
    hyperparameters = run.get("hyperparameters") or {}
    model = hyperparameters.get("model")
    for key in _CASES:
        cases = member(run, key, opening.name, list)
        names = Counter(case.get("name") for case in cases if isinstance(case, Mapping))
        for number, case in enumerate(cases, 1):
            where = f"{opening.name} {key} {number}"
            name = member(case, "name", where, str)
            # Several cases of one test of pytest have its name.
            item = name if names[name] == 1 else f"{name} {number}"
            yield _text(case, item, model if isinstance(model, str) else "", where)


def lower_is_better(texts: Sequence[JudgedText]) -> set[str]:
    """Return the metrics that pass at or below their threshold, such as Bias and Toxicity.

    A test run has no other sign of it.
    """
    lower: set[str] = set()
    higher: set[str] = set()
    for text in texts:
        for name, value in text.scores.items():
            threshold = finite_number(text.own_columns.get(name + _THRESHOLD))
            success = text.own_columns.get(name + _SUCCESS)
            if value is None or threshold is None or value == threshold or success is None:
                continue
            group = higher if success == (value > threshold) else lower
            group.add(name)
    return lower - higher


def _text(case: Mapping[str, Any], item: str, model: str, where: str) -> JudgedText:
    turns = case.get("turns") or []
    expected = case.get("expectedOutput") or case.get("expectedOutcome")
    text = JudgedText(
        where,
        item=item,
        system=model,
        source=as_text(case.get("input") or case.get("scenario")),
        output=as_text(case.get("actualOutput") or turns),
        references=(expected,) if isinstance(expected, str) else (),
    )
    errors = []
    for metric in case.get("metricsData") or []:
        name = member(metric, "name", where, str)
        if name in text.scores:
            raise DataError(f"{where}: two scores of {name}")
        text.scores[name] = score(metric.get("score"), where, name)
        text.reasons[name] = str(metric.get("reason") or "")
        text.own_columns[name + _THRESHOLD] = metric.get("threshold")
        text.own_columns[name + _SUCCESS] = metric.get("success")
        if metric.get("error"):
            errors.append(f"{name}: {metric['error']}")
    if errors:
        text.own_columns["error"] = "; ".join(errors)
    return text
