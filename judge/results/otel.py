"""A result as OpenTelemetry spans in OTLP-JSON.

Each value is an event `gen_ai.evaluation.result` of its span. Format:
https://opentelemetry.io/docs/specs/otlp/ (JSON: hexadecimal ids, 64-bit numbers as text) and
https://github.com/open-telemetry/semantic-conventions-genai. No text that was judged is written.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from judge.core.normalization import whole
from judge.core.records import Column, Failure, Score
from judge.core.version import __version__
from judge.results.run_info import RunInfo
from judge.table import Table, Text

EVENT = "gen_ai.evaluation.result"
_SPANS_PER_LINE = 500
_INTERNAL = 1  # SPAN_KIND_INTERNAL
_ID = re.compile(r"[0-9a-f]+")  # `0af7651916cd43dd8448eb211c80319c`


def otel(table: Table, info: RunInfo) -> str:
    """Return lines of JSON, each a request that an OTLP endpoint takes at /v1/traces.

    A request has at most 500 spans. A span is a text, with an event for each of its values and
    failures. A text whose columns `trace_id` and `span_id` name the span that wrote it has its span
    below that one; `response_id` becomes `gen_ai.response.id`.
    """
    rows_by_text: dict[Text, list[Score | Failure]] = {}
    for row in table.rows():
        rows_by_text.setdefault(row.key, []).append(row)
    samples = {sample.key: sample for sample in table.samples}
    run = [info.started, table.signatures, info.data.sha256]
    columns = {column.name: column for column in table.columns}
    spans = _Spans(
        columns=columns,
        run=json.dumps(run),
        start=_nanoseconds(info.started),
        seconds=info.seconds,
    )
    text_spans: list[dict[str, Any]] = []
    for text_key, rows in rows_by_text.items():
        # A failed generation has rows, but no text.
        extra = samples[text_key].extra if text_key in samples else {}
        text_spans.append(spans.of_text(text_key, rows, extra))
    lines: list[str] = []
    for first_span in range(0, len(text_spans), _SPANS_PER_LINE):
        spans_of_line = text_spans[first_span : first_span + _SPANS_PER_LINE]
        request = _request(spans_of_line, info)
        lines.append(json.dumps(request, ensure_ascii=False) + "\n")
    return "".join(lines)


def _request(spans: Sequence[Mapping[str, Any]], info: RunInfo) -> dict[str, Any]:
    """Return the body of a request with these spans of a run."""
    attributes = {"service.name": "judge", "judge.run.model": info.model or None}
    scope = {"scope": {"name": "judge", "version": __version__}, "spans": spans}
    resource = {"attributes": _attributes(attributes)}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _nanoseconds(time: str) -> int:
    """Return a time since the epoch; 0 for a result that no run made."""
    try:
        return int(datetime.fromisoformat(time).timestamp()) * 10**9
    except ValueError:
        return 0


@dataclass(frozen=True, slots=True)
class _Spans:
    """Makes the spans of one run. `run` identifies it, `start` is in nanoseconds."""

    columns: Mapping[str, Column]
    run: str
    start: int
    seconds: float

    def of_text(
        self,
        text_key: Text,
        rows: Sequence[Score | Failure],
        extra: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return the span of a text with these values and failures."""
        item, system = text_key
        nanoseconds = int(1e9 * self.seconds)
        end_time = str(self.start + nanoseconds)
        trace_id = _id(extra.get("trace_id"), 32)
        parent_id = _id(extra.get("span_id"), 16)
        # Digests: each export of a run has the same ids. The texts of an item share a trace.
        digest_of_item = _digest(self.run, item)[:32]
        span_id = _digest(self.run, item, system)[:16]
        span: dict[str, Any] = {
            "traceId": trace_id or digest_of_item,
            "spanId": span_id,
        }
        # A parent is a span of the same trace, so its id alone would name none.
        if trace_id and parent_id:
            span["parentSpanId"] = parent_id
        events: list[dict[str, Any]] = []
        for row in rows:
            event = _event(row, self.columns, extra.get("response_id"))
            attributes = _attributes(event)
            # A score has no time of its own, so the event has the end of the run.
            events.append(
                {"timeUnixNano": end_time, "name": EVENT, "attributes": attributes}
            )
        text_attributes = {"judge.item": item, "judge.system": system}
        return span | {
            "name": "judge.evaluate",
            "kind": _INTERNAL,
            "startTimeUnixNano": str(self.start),
            "endTimeUnixNano": end_time,
            "attributes": _attributes(text_attributes),
            "events": events,
        }


def _event(
    row: Score | Failure, columns: Mapping[str, Column], response: Any
) -> dict[str, Any]:
    """Return the attributes of a value or a failure; `response` is the id in the data."""
    column = columns.get(row.column)
    response_id = response if isinstance(response, str) else None
    signature = str(column.signature) if column else None
    attributes = {
        "gen_ai.evaluation.name": row.column,
        "gen_ai.response.id": response_id,
        "judge.opponent": row.opponent,
        "judge.signature": signature,
    }
    if isinstance(row, Failure):
        return attributes | {
            "error.type": row.error,
            "gen_ai.evaluation.explanation": row.message,
        }
    label = row.provenance.argmax
    passes = column.passes(row.value) if column else None
    if passes is not None:
        label = "pass" if passes else "fail"
    return attributes | {
        "gen_ai.evaluation.score.value": float(row.value),
        "gen_ai.evaluation.score.label": label,
        "gen_ai.evaluation.explanation": row.provenance.reason,
    }


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the values that exist, as OTLP's list of keys and typed values."""
    attributes: list[dict[str, Any]] = []
    for attribute_name, value in values.items():
        typed_value: dict[str, Any] = {}
        if isinstance(value, float):
            typed_value = {"doubleValue": value}
        elif value:
            typed_value = {"stringValue": whole(value)}
        if typed_value:
            attributes.append({"key": attribute_name, "value": typed_value})
    return attributes


def _digest(*identifying_texts: str) -> str:
    joined = json.dumps(identifying_texts)
    return hashlib.sha256(joined.encode()).hexdigest()


def _id(value: Any, digits: int) -> str:
    """Return a trace or span id as OTLP-JSON writes it.

    "" for anything else, and for the invalid id of zeros.
    """
    text = str(value or "").lower().removeprefix("0x")
    if len(text) != digits or not _ID.fullmatch(text):
        return ""
    return text if text.strip("0") else ""
