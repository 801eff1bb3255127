"""The published scoring vectors, and the check of a scorer's answers to them (docs/vectors.md)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from judge.core.errors import DataError
from judge.core.format import one_line
from judge.core.plugins import require_known
from judge.data.rows import parsed

TOLERANCE = 1e-4
"""The largest difference from an expected number that counts as agreement."""
_LARGEST = 1e9
_NUMBERS = ("value", "mass", "low", "high", "ambiguous", "n")
_FORM = 'write {"id": …, "value": …} or {"id": …, "error": …}'

Vector = Mapping[str, Any]


def vector_lines(**chosen: Sequence[str]) -> dict[str, Vector]:
    """Return the vectors by their line of JSON; `chosen` has the values to keep of a field, none for all.

    Raises ConfigError for a value that no vector has.
    """
    text = files("judge.scoring").joinpath("vectors.jsonl").read_text("utf-8")
    vectors: dict[str, Vector] = {line: json.loads(line) for line in text.rstrip("\n").split("\n")}
    for field, values in chosen.items():
        known = list(dict.fromkeys(vector[field] for vector in vectors.values()))
        require_known(field, values, known, f"--{field}")
        vectors = {line: vector for line, vector in vectors.items() if vector[field] in (values or known)}
    return vectors


def check_answers(lines: Iterable[bytes], name: str, vectors: Sequence[Vector]) -> dict[str, str]:
    """Return what is wrong with a scorer's answers, by id. Each is a line of JSON; they come in any order.

    `name` is the file's, for messages. Answers to other published vectors are ignored. Raises DataError for a line that
    is no answer, for an unknown or repeated id, and if an answer is missing.
    """
    published = {vector["id"] for vector in vector_lines().values()}
    answers: dict[str, tuple[str, dict[str, Any]]] = {}
    for where, line in ((f"{name}:{number}", line) for number, line in enumerate(lines, 1) if line.strip()):
        answer = parsed(line, where)
        if not isinstance(answer, dict) or not isinstance(answer.get("id"), str):
            raise DataError(f"{where}: not an answer; {_FORM}")
        answer = {field: content for field, content in answer.items() if content is not None}
        key = answer["id"]
        if key not in published:
            raise DataError(f"{where}: no vector has the id {key[:80]!r}")
        if key in answers:
            raise DataError(f"{where}: a second answer to {key}; the first is at {answers[key][0]}")
        if ("value" in answer) == ("error" in answer):
            raise DataError(f"{where}: {key} needs either a value or an error; {_FORM}")
        for field in _NUMBERS:
            content = answer.get(field, 0)
            if type(content) not in (int, float) or not abs(content) < _LARGEST:
                raise DataError(f"{where}: {field} is {json.dumps(content)[:40]}, not a finite number")
        answers[key] = where, answer
    if missing := [vector["id"] for vector in vectors if vector["id"] not in answers]:
        raise DataError(f"{name}: no answer to {len(missing)} of {len(vectors)} vectors, such as {missing[0]}")
    compared = {vector["id"]: _difference(vector["expected"], answers[vector["id"]][1]) for vector in vectors}
    return {key: difference for key, difference in compared.items() if difference}


def _difference(expected: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """Return what is wrong with an answer, or "". Fields that the answer lacks are not compared."""
    if "error" in answer:
        error = f"error ({one_line(str(answer['error']), 60)})"
        return "" if "error" in expected else f"{error}, expected {expected['value']:g}"
    if "error" in expected:
        return f"{answer['value']:g}, expected an error ({expected['error']})"
    wrong = []
    for field, value in expected.items():
        content = answer.get(field, value)
        if field in _NUMBERS and abs(content - value) > TOLERANCE:
            wrong.append(f"{field} {content:g}, expected {value:g}")
        elif field not in _NUMBERS and content != value:
            wrong.append(f"{field} {one_line(str(content), 60)}, expected {value}")
    return "; ".join(wrong)


def agreement(vectors: Sequence[Vector], differences: Mapping[str, str]) -> str:
    """Return a line with the number of vectors that agree, by kind and language."""
    right = [vector for vector in vectors if vector["id"] not in differences]
    parts = []
    for field in ("kind", "language"):
        agreeing = Counter(vector[field] for vector in right)
        counts = Counter(vector[field] for vector in vectors)
        parts.append(", ".join(f"{name} {agreeing[name]}/{count}" for name, count in counts.items()))
    return f"{len(right)} of {len(vectors)} vectors agree ({'; '.join(parts)})"
