"""Results of promptfoo: `promptfoo eval --output results.json`, or the lines of `results.jsonl`.

A result is one prompt and provider on one test; its assertions are the criteria.
https://www.promptfoo.dev/docs/configuration/outputs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from judge.core.errors import DataError
from judge.data.result_files.judged import JudgedText, Value, as_text, member, score
from judge.data.result_files.opening import Opening

TOOL = "promptfoo"
_VERSIONS = (3, 4)
_ERROR = 2
"""The `failureReason` of a result whose provider or grader failed."""
_HUMAN = "human"
"""The type of the assertion that a person made in the viewer."""
_RESULT_KEYS = ("testIdx", "promptIdx", "provider", "gradingResult", "success")


def claims(opening: Opening) -> bool:
    """Return whether these are results."""
    summary = opening.document.get("results")
    if isinstance(summary, Mapping):
        has_id = "evalId" in opening.document
        return has_id and "results" in summary and "prompts" in summary
    return all(key in opening.first for key in _RESULT_KEYS)


def read(opening: Opening) -> Iterator[JudgedText]:
    """Yield the results. Raises DataError."""
    results = list(_results(opening))
    prompts = list(dict.fromkeys(_prompt_id(result) for _, result in results))
    for location, result in results:
        system = _provider(result, location)
        if len(prompts) > 1:
            number = prompts.index(_prompt_id(result)) + 1
            system = f"{system} (prompt {number})"
        yield _text(result, system, location)


def _results(opening: Opening) -> Iterator[tuple[str, Any]]:
    """Yield each result with its location, from lines or from a document."""
    if opening.first:
        for row in opening.rows():
            yield row.where, row.cells
        return
    summary = member(opening.document, "results", opening.name, dict)
    version = summary.get("version")
    if version not in _VERSIONS:
        known_versions = " and ".join(map(str, _VERSIONS))
        raise DataError(
            f"{opening.name}: results of promptfoo in version {version!r}; judge reads "
            f"{known_versions}"
        )
    results = member(summary, "results", opening.name, list)
    for number, result in enumerate(results, 1):
        yield f"{opening.name} result {number}", result


def _prompt_id(result: Any) -> str:
    """Return the id of a result's prompt or, in older files, the prompt's index."""
    if not isinstance(result, Mapping):
        return ""
    return str(result.get("promptId", result.get("promptIdx")))


def _provider(result: Any, location: str) -> str:
    """Return the label of a provider, or its id."""
    provider = member(result, "provider", location, dict)
    label = provider.get("label")
    if label:
        return str(label)
    return str(member(provider, "id", location, str))


def _text(result: Mapping[str, Any], system: str, location: str) -> JudgedText:
    test_index = result.get("testIdx")
    if not isinstance(test_index, int):
        raise DataError(f"{location}: testIdx is {test_index!r:.40}, not a number")
    prompt = result.get("prompt") or {}
    response = result.get("response") or {}
    output = response.get("output") if isinstance(response, Mapping) else response
    text = JudgedText(
        location,
        # promptfoo counts tests from 0, and items without a name count from 1.
        item=str(test_index + 1),
        system=system,
        source=as_text(prompt.get("raw")),
        output=as_text(output),
    )
    test = result.get("testCase")
    if isinstance(test, Mapping) and test.get("description"):
        text.own_columns["description"] = str(test["description"])
    variables = result.get("vars") or {}
    for variable, value in variables.items():
        text.own_columns[f"vars.{variable}"] = value
    if result.get("failureReason") == _ERROR:
        text.error = str(result.get("error") or "error")
    grading = result.get("gradingResult") or {}
    _add_scores(text, grading.get("componentResults") or [])
    if not text.error:
        text.scores = {"pass": _pass(result, location), **text.scores}
    return text


def _pass(result: Mapping[str, Any], location: str) -> bool:
    success = result.get("success")
    if not isinstance(success, bool):
        raise DataError(f"{location}: success is {success!r:.40}, not a verdict")
    return success


def _add_scores(text: JudgedText, components: Sequence[Any]) -> None:
    """Add the score of each assertion under its metric or type.

    The assertions of one metric are one criterion, with their mean. Assertions of one type without
    a metric are numbered.
    """
    values_by_criterion: dict[str, list[Value]] = {}
    reasons_by_criterion: dict[str, list[str]] = {}
    for component in components:
        assertion: Mapping[str, Any] = {}
        if isinstance(component, Mapping):
            assertion = component.get("assertion") or {}
        kind = str(assertion.get("type") or "assertion")
        if kind == _HUMAN:
            text.own_columns["human"] = score(component.get("score"), text.where, kind)
            continue
        metric = assertion.get("metric")
        criterion = str(metric) if metric else _numbered(kind, values_by_criterion)
        value = _value(component, text.where, criterion)
        values_by_criterion.setdefault(criterion, []).append(value)
        reason = str(component.get("reason") or "")
        reasons_by_criterion.setdefault(criterion, []).append(reason)
    for criterion, values in values_by_criterion.items():
        text.scores[criterion] = _mean(values)
        text.reasons[criterion] = "\n".join(reasons_by_criterion[criterion])


def _mean(values: Sequence[Value]) -> Value:
    """Return the mean of the known values; a single verdict stays true or false."""
    known_values = [value for value in values if value is not None]
    if len(known_values) == 1:
        return known_values[0]
    return fmean(known_values) if known_values else None


def _numbered(kind: str, names: Mapping[str, Any]) -> str:
    """Return the type, with a number from its second assertion in this text."""
    numbered_kind = kind
    number = 1
    while numbered_kind in names:
        number += 1
        numbered_kind = f"{kind} {number}"
    return numbered_kind


def _value(component: Any, location: str, criterion: str) -> Value:
    """Return an assertion's verdict, or its score if that says more."""
    if not isinstance(component, Mapping):
        raise DataError(f"{location}: {criterion} is {component!r:.40}, not an object")
    value = score(component.get("score"), location, criterion)
    passed = component.get("pass")
    if isinstance(passed, bool) and value == float(passed):
        return passed
    return value
