"""The record of claims: what is encoded is decoded unchanged, and a damaged record holds no claims."""

from __future__ import annotations

import json

import pytest

from judge.core.claims import Claim, Span, decode, encode


def test_claims_are_read_back_unchanged() -> None:
    claims = (
        Claim("駅は1914年に開いた。", 0.125, Span(0, 11), Span(4, 20)),
        Claim("It is new.", 1.0),
    )
    assert decode(encode(claims)) == claims


@pytest.mark.parametrize(
    "raw",
    [
        None, "", "nonsense", "[]", "{}", '{"qags": []}',
        json.dumps({"claims": [["text", 1.5, None, None]]}),
        json.dumps({"claims": [["text", True, None, None]]}),
        json.dumps({"claims": [["text", "0.5", None, None]]}),
        json.dumps({"claims": [[1, 0.5, None, None]]}),
        json.dumps({"claims": [["text", 0.5, [3, 3], None]]}),
        json.dumps({"claims": [["text", 0.5, [-1, 3], None]]}),
        json.dumps({"claims": [["text", 0.5, [0.0, 3], None]]}),
        json.dumps({"claims": [["text", 0.5, None]]}),
        '{"claims": [["text", NaN, null, null]]}',
    ],
)  # fmt: skip
def test_a_damaged_record_has_no_claims(raw: str | None) -> None:
    assert decode(raw) == ()
