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
    test_run = opening.document.get(_WRAPPED, opening.document)
    if not isinstance(test_run, Mapping):
        return False
    return all(key in test_run for key in (*_CASES, "metricsScores"))


def read(opening: Opening) -> Iterator[JudgedText]:
    """Yield the test cases. Raises DataError."""
    test_run = opening.document.get(_WRAPPED, opening.document)
    hyperparameters = test_run.get("hyperparameters") or {}
    model = hyperparameters.get("model")
    system = model if isinstance(model, str) else ""
    for key in _CASES:
        test_cases = member(test_run, key, opening.name, list)
        mappings = [
            test_case for test_case in test_cases if isinstance(test_case, Mapping)
        ]
        count_by_name = Counter(test_case.get("name") for test_case in mappings)
        for number, test_case in enumerate(test_cases, 1):
            location = f"{opening.name} {key} {number}"
            item = member(test_case, "name", location, str)
            # Several cases of one test of pytest have its name.
            if count_by_name[item] > 1:
                item = f"{item} {number}"
            yield _text(test_case, item, system, location)


def lower_is_better(texts: Sequence[JudgedText]) -> set[str]:
    """Return the metrics that pass at or below their threshold, such as Bias and Toxicity.

    A test run has no other sign of it.
    """
    lower: set[str] = set()
    higher: set[str] = set()
    for text in texts:
        for metric, value in text.scores.items():
            threshold = finite_number(text.own_columns.get(metric + _THRESHOLD))
            success = text.own_columns.get(metric + _SUCCESS)
            if value is None or threshold is None or success is None:
                continue
            # A score at the threshold passes either way, so it says nothing.
            if value == threshold:
                continue
            group = higher if success == (value > threshold) else lower
            group.add(metric)
    return lower - higher


def _text(
    test_case: Mapping[str, Any], item: str, system: str, location: str
) -> JudgedText:
    # A case of a conversation has a scenario, turns and an expected outcome instead.
    source = test_case.get("input") or test_case.get("scenario")
    output = test_case.get("actualOutput") or test_case.get("turns") or []
    text = JudgedText(
        location,
        item=item,
        system=system,
        source=as_text(source),
        output=as_text(output),
    )
    expected = test_case.get("expectedOutput") or test_case.get("expectedOutcome")
    if isinstance(expected, str):
        text.references = (expected,)
    errors: list[str] = []
    for metric_data in test_case.get("metricsData") or []:
        metric = member(metric_data, "name", location, str)
        if metric in text.scores:
            raise DataError(f"{location}: two scores of {metric}")
        text.scores[metric] = score(metric_data.get("score"), location, metric)
        text.reasons[metric] = str(metric_data.get("reason") or "")
        text.own_columns[metric + _THRESHOLD] = metric_data.get("threshold")
        text.own_columns[metric + _SUCCESS] = metric_data.get("success")
        error = metric_data.get("error")
        if error:
            errors.append(f"{metric}: {error}")
    if errors:
        text.own_columns["error"] = "; ".join(errors)
    return text
