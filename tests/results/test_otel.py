"""OTLP-JSON: what a collector reads, and what a hostile text cannot do."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import judge

ROWS = [
    {"item": "a", "system": "old", "output": "It left.", "trace_id": "0AF7651916CD43DD8448EB211C80319C",
     "span_id": "b7ad6b7169203331", "response_id": "resp-1", "references": ["It has left."]},
    {"item": "b", "system": "old", "output": "No reply.", "trace_id": "0" * 32, "span_id": "x",
     "references": ["None."]},
]  # fmt: skip
CRITERIA = [{"name": "clear", "question": "Is it clear?", "pass_at": 4}]


@pytest.fixture
def result() -> judge.Result:
    replies = judge.ScriptedProvider(
        lambda request: "no idea" if "No reply" in str(request) else {"4": 0.75, "5": 0.25}
    )
    return judge.evaluate(ROWS, CRITERIA, model=replies, metrics=["chrf"])


def spans(text: str) -> list[dict[str, Any]]:
    return [
        span
        for line in text.splitlines()
        for group in json.loads(line)["resourceSpans"]
        for scope in group["scopeSpans"]
        for span in scope["spans"]
    ]


def values(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {entry["key"]: next(iter(entry["value"].values())) for entry in attributes}


def test_a_text_is_a_span_and_a_value_an_event(result: judge.Result) -> None:
    first, second = spans(result.to_otel())
    events = {
        values(event["attributes"])["gen_ai.evaluation.name"]: event for event in first["events"]
    }
    assert {event["name"] for event in first["events"]} == {"gen_ai.evaluation.result"}
    assert len(first["events"]) == 2
    clear = values(events["clear"]["attributes"])
    assert clear["gen_ai.evaluation.score.value"] == pytest.approx(4.25)
    assert (clear["gen_ai.evaluation.score.label"], clear["gen_ai.response.id"]) == (
        "pass",
        "resp-1",
    )
    assert clear["judge.signature"] == str(result.table.columns[0].signature)
    (failed,) = [
        values(event["attributes"]) for event in second["events"] if "error.type" in str(event)
    ]
    assert failed["error.type"] == "ParseError"
    assert "gen_ai.evaluation.score.value" not in failed
    assert "It left." not in result.to_otel()


def test_a_span_is_below_the_one_that_wrote_the_text(result: judge.Result) -> None:
    first, second = spans(result.to_otel())
    assert (first["traceId"], first["parentSpanId"]) == (
        ROWS[0]["trace_id"].lower(),
        ROWS[0]["span_id"],
    )
    assert "parentSpanId" not in second  # zeros and x are no ids
    assert len(second["traceId"]) == 32
    assert result.to_otel() == result.to_otel()


def test_rankings_name_the_opponent() -> None:
    rows = [
        {"item": "1", "system": name, "source": "It was b.", "output": f"It was {name}."}
        for name in ("a", "b")
    ]
    ranked = judge.rank(rows, model=judge.ScriptedProvider(lambda _: {"A": 0.75, "B": 0.25}))
    opponents = {
        values(event["attributes"])["judge.opponent"]
        for span in spans(ranked.to_otel())
        for event in span["events"]
    }
    assert opponents == {"a", "b"}


def test_many_texts_are_many_lines() -> None:
    rows = [{"item": f"\ud800\n{n}", "output": str(n), "references": ["1"]} for n in range(501)]
    text = judge.evaluate(rows, [], metrics=["exact_match"]).to_otel()
    assert text.count("\n") == 2
    assert len({span["spanId"] for span in spans(text)}) == 501
    text.encode()


@pytest.mark.extra
def test_the_official_schema_reads_it(result: judge.Result) -> None:
    trace = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    from google.protobuf.json_format import ParseDict

    request = json.loads(result.to_otel())
    for span in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in {
            "traceId",
            "spanId",
            "parentSpanId",
        } & span.keys():  # OTLP has hexadecimal ids, Protobuf base64
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    parsed = ParseDict(request, trace.ExportTraceServiceRequest())
    span = parsed.resource_spans[0].scope_spans[0].spans[0]
    assert span.trace_id.hex() == ROWS[0]["trace_id"].lower()
    assert span.events[0].name == "gen_ai.evaluation.result"
