from __future__ import annotations

import json

import pytest

from judge.core.records import IDENTICAL, Failure, Provenance, Score
from judge.report.renderers.old_items import build_score_detail

LABELS = ("1", "2", "3", "4", "5")


def _score(provenance: Provenance) -> Score:
    return Score("i", "s", "c", 4.0, provenance)


@pytest.mark.parametrize(
    ("provenance", "facts"),
    [
        (Provenance("logprobs", 0.99, None, 0.5, "4", 3.9, 4.1), "logprobs, mass 0.99, bounds 3.90–4.10, entropy 0.50"),
        (Provenance("logprobs", 1.0, None, 0.5, "4", 3.999, 4.001), "logprobs, mass 1.00, entropy 0.50"),
        (
            Provenance("decisions", 0.98, None, 0.5, "4", 3.9, 4.1),
            "decisions, mass 0.98, bounds 3.90–4.10, entropy 0.50",
        ),
        (
            Provenance("samples", 0.95, n=19, note="1 of 20 draws had no score"),
            "samples, 19 of 20 draws; 1 of 20 draws had no score",
        ),
        (Provenance("samples", 1.0, n=20), "samples, 20 draws"),
        (Provenance("samples", 1 / 3, n=1), "samples, 1 of 3 draws"),
        (Provenance("single", note="no logprobs"), "single; no logprobs"),
        (Provenance("panel", n=2, note="a: 4; b: 3.5"), "a: 4; b: 3.5"),
        (Provenance(IDENTICAL, n=0, note="equal"), "equal"),
    ],
)
def test_facts_suit_the_way_a_score_was_made(provenance: Provenance, facts: str) -> None:
    assert build_score_detail(_score(provenance), LABELS, 2).facts == facts


def test_draws_are_counted_the_commonest_first() -> None:
    raw = json.dumps(["4"] * 13 + ["5 "] * 6 + ["n/a"])
    replies = build_score_detail(_score(Provenance("samples", raw=raw)), LABELS, 2).replies
    assert replies.texts == (("4", 13), ("5", 6), ("n/a", 1))
    assert replies.brief
    assert replies.total == 20


def test_draws_with_reasons_are_kept_whole() -> None:
    raw = json.dumps(["4\nIt reads well."] * 2 + ["5\nSmooth."])
    replies = build_score_detail(_score(Provenance("samples", raw=raw)), LABELS, 2).replies
    assert replies.texts == (("4\nIt reads well.", 2), ("5\nSmooth.", 1))
    assert not replies.brief


@pytest.mark.parametrize("raw", ['["2"]', "[4", "[4]", '{"score": 4}'])
def test_a_reply_that_looks_like_a_list_is_one_reply(raw: str) -> None:
    assert build_score_detail(_score(Provenance("single", raw=raw)), LABELS, 2).replies.texts == ((raw, 1),)
    failed = Failure("i", "s", "c", "parse", "ParseError", "no score in the reply", raw)
    assert build_score_detail(failed, LABELS, 2).replies.texts == ((raw, 1),)


def test_draws_of_which_none_has_a_score_are_kept_one_by_one() -> None:
    failed = Failure(
        "i", "s", "c", "parse", "ParseError", "none of 2 draws has a score: no number", '["Sorry.", "No."]'
    )
    assert build_score_detail(failed, LABELS, 2).replies.texts == (("Sorry.", 1), ("No.", 1))


def test_what_was_not_said_is_not_shown() -> None:
    found = build_score_detail(_score(Provenance("decisions")), LABELS, 2)
    assert (found.reason, found.replies.texts, found.replies.total) == ("", (), 0)
