"""Read logs of Inspect: JSON, or the zip archive `.eval` with one JSON file per sample.

Both have the model in `eval.model`; a sample has its scores by scorer.
https://inspect.aisi.org.uk/eval-logs.html
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from judge.core.errors import DataError
from judge.data.result_files.judged import JudgedText, Value, as_text, member, score
from judge.data.result_files.opening import Opening
from judge.data.result_files.zstd_zip import read_member

TOOL = "Inspect"
_VERSION = 2  # of the format of logs
_HEADER = "header.json"
_STARTED = "_journal/start.json"
"""In an archive without a header, whose run did not finish."""
_SAMPLES = "samples/"
_ATTACHMENT = "attachment://"
_GRADES: dict[str, Value] = {"C": True, "I": False, "N": False, "P": 0.5}
"""The letters of Inspect's scorers: correct, incorrect, no answer, partial."""
# In lower case: Inspect reads `Yes` and `TRUE`, too.
_VERDICTS = {"yes": True, "true": True, "no": False, "false": False}


def claims(opening: Opening) -> bool:
    """Return whether a file is a log of Inspect."""
    if opening.members:
        return _HEADER in opening.members or _STARTED in opening.members
    log_object = opening.document
    evaluated = log_object.get("eval")
    if not isinstance(evaluated, Mapping):
        return False
    return "task" in evaluated and "version" in log_object


def read(opening: Opening) -> Iterator[JudgedText]:
    """Yield the samples of a log. Raises DataError."""
    if opening.members:
        with zipfile.ZipFile(opening.path) as archive:
            yield from _read_archive(opening, archive)
        return
    log_object = opening.document
    model = _model(log_object, opening.name)
    samples = member(log_object, "samples", opening.name, list)
    for number, sample in enumerate(samples, 1):
        yield _judged_text(sample, model, f"{opening.name} sample {number}")


def _read_archive(opening: Opening, archive: zipfile.ZipFile) -> Iterator[JudgedText]:
    """Yield the samples of an archive. Raises DataError for one without a header."""
    if _HEADER not in opening.members:
        raise DataError(
            f"{opening.name}: the log of a run that did not finish; finish it first"
        )
    model = _model(_parsed(archive, _HEADER, opening.name), opening.name)
    for member_name in opening.members:
        if member_name.startswith(_SAMPLES) and member_name.endswith(".json"):
            sample = _parsed(archive, member_name, opening.name)
            yield _judged_text(sample, model, f"{opening.name} {member_name}")


def _parsed(archive: zipfile.ZipFile, member_name: str, file_name: str) -> Any:
    """Return the JSON of a member of an archive. Raises DataError."""
    try:
        return json.loads(read_member(archive, member_name))
    except (ValueError, RecursionError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{file_name} {member_name}: not readable: {error}") from error


def _model(log: Any, file_name: str) -> str:
    """Return the model that a log is about. Raises DataError for another version of the format."""
    version = log.get("version") if isinstance(log, Mapping) else None
    if version != _VERSION:
        raise DataError(
            f"{file_name}: a log of Inspect in version {version!r}; judge reads version {_VERSION}"
        )
    evaluated = member(log, "eval", file_name, dict)
    return str(member(evaluated, "model", file_name, str))


def _judged_text(sample: Any, system: str, location: str) -> JudgedText:
    """Return a sample of a log with its scores. Raises DataError."""
    if not isinstance(sample, Mapping) or "id" not in sample:
        raise DataError(f"{location}: not a sample, which has an id")
    attachments = sample.get("attachments") or {}
    source = _resolved(sample.get("input"), attachments)
    output = _resolved(sample.get("output"), attachments)
    targets = sample.get("target") or ()
    if isinstance(targets, str):
        targets = [targets]
    # Inspect calls a repetition of all samples an epoch.
    epoch = sample.get("epoch", 1)
    if not isinstance(epoch, int):
        raise DataError(f"{location}: epoch is {epoch!r:.40}, not a number")
    text = JudgedText(
        location,
        item=str(sample["id"]),
        system=system,
        source=as_text(source),
        output=_completion(output),
        references=tuple(map(as_text, targets)),
        generation=epoch,
        error=_error(sample),
    )
    scores = sample.get("scores") or {}
    for scorer, score_value in scores.items():
        _add_score(text, scorer, score_value)
    return text


def _resolved(value: Any, attachments: Mapping[str, str]) -> Any:
    """Return a value with the attachments that it refers to: long texts that a log stores once."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attachments.get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, list):
        return [_resolved(part, attachments) for part in value]
    if isinstance(value, Mapping):
        return {key: _resolved(part, attachments) for key, part in value.items()}
    return value


def _completion(output: Any) -> str:
    """Return the text of a model's output."""
    if not isinstance(output, Mapping):
        return ""
    if isinstance(output.get("completion"), str):
        return str(output["completion"])
    choices = output.get("choices") or [{}]
    return as_text(choices[0].get("message"))


def _error(sample: Mapping[str, Any]) -> str:
    """Return the message of a sample that failed, "" if it did not."""
    error = sample.get("error")
    if isinstance(error, Mapping):
        return str(error.get("message") or "error")
    return "" if error is None else str(error)


def _add_score(text: JudgedText, scorer: str, score_value: Any) -> None:
    """Add a scorer's value; an object of several values adds one for each, `SCORER.NAME`."""
    if not isinstance(score_value, Mapping) or "value" not in score_value:
        raise DataError(f"{text.where}: the score of {scorer} has no value")
    value = score_value["value"]
    if isinstance(value, Mapping):
        for value_name, part in value.items():
            criterion = f"{scorer}.{value_name}"
            text.scores[criterion] = _value(part, text.where, criterion)
    else:
        text.scores[scorer] = _value(value, text.where, scorer)
    text.reasons[scorer] = str(score_value.get("explanation") or "")


def _value(written: Any, location: str, criterion: str) -> Value:
    """Return a scorer's value, which may be a letter, a word or a number. Raises DataError."""
    if isinstance(written, str):
        if written in _GRADES:
            return _GRADES[written]
        if written.lower() in _VERDICTS:
            return _VERDICTS[written.lower()]
    return score(written, location, criterion)
