from __future__ import annotations

from typing import Any

import pytest

from judge.providers.server_capabilities import RequestAdapter
from judge.report.views.provenance import refusals, warnings


@pytest.mark.parametrize(
    ("unmet", "learned", "expected"),
    [
        ({}, {}, ()),
        ({"logprobs": 80}, {"dropped": ["logprobs"]}, ("gives no token probabilities (80 answers)",)),
        ({"logprobs": 1}, {}, ("gives no token probabilities (1 answer)",)),
        ({"n": 4}, {"n": 8}, ("takes n ≤ 8 (4 answers)",)),
        ({}, {"n": 1}, ("takes one reply a request",)),
        ({"n": 2}, {}, ("sends fewer replies at a time than asked for (2 answers)",)),
        ({"temperature": 1200}, {}, ("temperature not taken (1,200 answers)",)),
        ({"top_logprobs": 3}, {"top_logprobs": 5}, ("lists at most 5 probabilities for a token (3 answers)",)),
        ({"response_format": 3}, {"dropped": ["response_format"]}, ("JSON schema not taken (3 answers)",)),
        ({}, {"dropped": ["seed"]}, ("seed not taken",)),
        (
            {"reasoning": 9},
            {"reasoning_effort": "none"},
            ("told not to reason, the price of its token probabilities (9 answers)",),
        ),
        ({}, {"path": "/v1/systemone"}, ("asked at /v1/systemone",)),
        ({}, {"colour\n": "blue"}, ("colour : blue",)),
    ],
)
def test_every_refusal_has_its_words(unmet: dict[str, int], learned: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert refusals({"unmet": unmet, "learned": learned}) == expected


def test_all_that_a_server_can_teach_has_words() -> None:
    taught = RequestAdapter(
        5, "max_tokens", 8, True, frozenset({"logprobs", "temperature", "response_format"})
    ).known_limits
    said = "; ".join(refusals({"learned": taught}))
    assert "_" not in said.replace("max_tokens", "")
    assert len(taught) + 1 == said.count(";") + 1  # three parameters dropped; the effort is said by `unmet`


def test_every_judge_that_left_something_out_is_warned_of() -> None:
    judges = {
        "gpt": {"unmet": {"logprobs": 80, "temperature": 80}, "learned": {"n": 8, "limit": "max_tokens"}},
        "kind": {"unmet": {}, "learned": {"reasoning_effort": "none"}},
        "few": {"unmet": {"n": 4}, "learned": {"n": 1}},
    }
    assert warnings({"judges": judges, "unmet": {"logprobs": 80, "temperature": 80, "n": 4}}) == (
        "gpt: gives no token probabilities (80 answers); temperature not taken (80 answers).",
    )
