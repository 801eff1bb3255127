"""A result as OpenTelemetry spans in OTLP-JSON, with an event `gen_ai.evaluation.result` for each value.

Format: https://opentelemetry.io/docs/specs/otlp/ (JSON: hexadecimal ids, 64-bit numbers as text) and
https://github.com/open-telemetry/semantic-conventions-genai. No text that was judged is written.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from datetime import datetime
from typing import Any

from judge.core.records import Column, Failure, Score, whole
from judge.core.version import __version__
from judge.results.run_info import RunInfo
from judge.table import Table

EVENT = "gen_ai.evaluation.result"
_SPANS_PER_LINE = 500
_INTERNAL = 1  # SPAN_KIND_INTERNAL
_ID = re.compile(r"[0-9a-f]+")


def otel(table: Table, info: RunInfo) -> str:
    """Return lines of JSON, each a request that an OTLP endpoint takes at /v1/traces, with at most 500 spans.

    A span is a text, with an event for each of its values and failures. A text whose columns `trace_id` and `span_id`
    name the span that wrote it has its span below that one; `response_id` becomes `gen_ai.response.id`.
    """
    columns = {column.name: column for column in table.columns}
    samples = {sample.key: sample for sample in table.samples}
    run = json.dumps([info.started, table.signatures, info.data.sha256])
    began = 0
    with suppress(ValueError):  # a result that no run made
        began = int(datetime.fromisoformat(info.started).timestamp()) * 10**9
    ended = began + int(1e9 * info.seconds)
    spans: list[dict[str, Any]] = []
    rows: dict[tuple[str, str], list[Score | Failure]] = {}
    for row in table.rows():
        rows.setdefault(row.key, []).append(row)
    for (item, system), of_text in rows.items():
        extra = samples[item, system].extra if (item, system) in samples else {}
        trace, parent = _id(extra.get("trace_id"), 32), _id(extra.get("span_id"), 16)
        response = extra.get("response_id")
        span = {
            "traceId": trace or _digest(run, item)[:32],
            "spanId": _digest(run, item, system)[:16],
            **({"parentSpanId": parent} if trace and parent else {}),
            "name": "judge.evaluate",
            "kind": _INTERNAL,
            "startTimeUnixNano": str(began),
            "endTimeUnixNano": str(ended),
            "attributes": _attributes({"judge.item": item, "judge.system": system}),
            "events": [
                {
                    "timeUnixNano": str(ended),
                    "name": EVENT,
                    "attributes": _attributes(_event(row, columns, response)),
                }
                for row in of_text
            ],
        }
        spans.append(span)
    lines = ""
    resource = {
        "attributes": _attributes({"service.name": "judge", "judge.run.model": info.model or None})
    }
    for at in range(0, len(spans), _SPANS_PER_LINE):
        scope = {
            "scope": {"name": "judge", "version": __version__},
            "spans": spans[at : at + _SPANS_PER_LINE],
        }
        request = {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}
        lines += json.dumps(request, ensure_ascii=False) + "\n"
    return lines


def _event(row: Score | Failure, columns: dict[str, Column], response: Any) -> dict[str, Any]:
    column = columns.get(row.column)
    attributes = {
        "gen_ai.evaluation.name": row.column,
        "gen_ai.response.id": response if isinstance(response, str) else None,
        "judge.rival": row.rival,
        "judge.signature": str(column.signature) if column else None,
    }
    if isinstance(row, Failure):
        return attributes | {"error.type": row.error, "gen_ai.evaluation.explanation": row.message}
    passes, label = column.passes(row.value) if column else None, row.provenance.argmax
    if passes is not None:
        label = "pass" if passes else "fail"
    return attributes | {
        "gen_ai.evaluation.score.value": float(row.value),
        "gen_ai.evaluation.score.label": label,
        "gen_ai.evaluation.explanation": row.provenance.reason,
    }


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the values that exist, as OTLP's list of keys and typed values."""
    return [
        {
            "key": name,
            "value": {"doubleValue": value}
            if isinstance(value, float)
            else {"stringValue": whole(value)},
        }
        for name, value in values.items()
        if value not in (None, "")
    ]


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _id(value: Any, digits: int) -> str:
    """Return a trace or span id as OTLP-JSON writes it, "" for anything else and for the invalid id of zeros."""
    text = str(value or "").lower().removeprefix("0x")
    return text if len(text) == digits and _ID.fullmatch(text) and text.strip("0") else ""
