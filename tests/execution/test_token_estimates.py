"""Estimates of token counts, compared with two real tokenizers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.records import Request
from judge.execution.token_estimates import estimate_request, estimate_tokens, max_tokens

# Counted with o200k_base (package bpe-openai 0.1.4) and tekken (mistral-common 1.13.1). The texts are our own.
COUNTED = [
    (
        "The council voted on Monday to close the old bridge until the repairs that engineers asked for are paid.",
        20,
        20,
    ),
    (
        "市議会は月曜日、技術者が求めた補修の費用が支払われるまで古い橋を閉鎖することを決めた。",
        39,
        37,
    ),
    (
        "시의회는 월요일에 기술자들이 요청한 수리비가 지급될 때까지 낡은 다리를 폐쇄하기로 의결했다.",
        33,
        29,
    ),
    ("市议会周一投票决定关闭旧桥，直到工程师要求的维修费用得到支付为止。", 24, 28),
]


@pytest.mark.parametrize(("text", "o200k", "tekken"), COUNTED)
def test_token_estimate_is_close_to_real_tokenizers(text: str, o200k: int, tekken: int) -> None:
    assert estimate_tokens(text) == pytest.approx((o200k + tekken) / 2, rel=0.25)


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_estimate_is_at_least_one_and_at_most_the_bytes(text: str) -> None:
    assert 1 <= estimate_tokens(text) <= max_tokens(text)


@given(st.text(), st.text())
def test_more_text_is_never_fewer_tokens(one: str, other: str) -> None:
    assert estimate_tokens(one + other) >= estimate_tokens(one)
    assert abs(estimate_tokens(one + other) - estimate_tokens(one) - estimate_tokens(other)) <= 2


def test_empty_text_has_no_tokens_and_a_lone_surrogate_has_some() -> None:
    assert estimate_tokens("") == max_tokens("") == 0
    assert (estimate_tokens("\ud800"), max_tokens("\ud800")) == (1, 3)


def test_a_request_counts_its_questions_and_schema() -> None:
    bare = Request("m", ({"role": "user", "content": "A text to be judged."},))
    with_questions = Request(
        "m",
        bare.messages,
        {"questions": [{"instructions": "Is it clear?", "labels": ["no", "yes"]}]},
    )
    formed = Request(
        "m",
        bare.messages,
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
    )
    assert estimate_request(bare) > estimate_tokens("A text to be judged.")
    assert min(estimate_request(with_questions), estimate_request(formed)) > estimate_request(bare)
