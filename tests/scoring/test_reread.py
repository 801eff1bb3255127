"""Stored replies are read again: with equal settings to equal rows, with others to what a run with them would give."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from judge.core.errors import ParseError
from judge.core.records import Choice, Criterion, Failure, Provenance, Response, Scale, Score, Token
from judge.scoring import parse, strategies
from judge.scoring.reread import reread
from judge.scoring.strategies import SamplingOptions

FIVE = Scale.integers(1, 5)
ALONE = Criterion("coherence", "", FIVE, title="Coherence")
REASONED = replace(ALONE, reply="reason_then_score")
MERGED = replace(ALONE, merged=True)
RUN, STRICT = SamplingOptions(repair=True), SamplingOptions(strict=True)
TEXT = "The judged text."


def response(text: str, shares: dict[str, float] | None = None, end: str = "stop") -> Response:
    """A reply whose last character has these probabilities."""
    if shares is None:
        return Response((Choice(text, end),))
    top = tuple((label, math.log(p)) for label, p in shares.items())
    tokens = (Token(text[:-1], 0.0), Token(text[-1], math.log(shares[text[-1]]), top))
    return Response((Choice(text, end, tuple(token for token in tokens if token.text)),))


def stored(method: Any, criterion: Criterion, *answers: Response, settings: SamplingOptions = RUN) -> Score | Failure:
    """The row that a run stores."""
    try:
        judged = None if settings.strict else TEXT
        value, made = strategies.score_reply(method, answers, criterion, settings, judged=judged)
    except ParseError as error:
        return Failure("i", "s", "coherence", "parse", "ParseError", str(error), error.raw, method=method)
    return Score("i", "s", "coherence", value, made)


SHARES = {"4": 0.3, "5": 0.3, "I": 0.4}
WEIGHED = stored("logprobs", ALONE, response("4", SHARES))
ROWS = {
    "single": (ALONE, stored("single", ALONE, response("4"))),
    "a reason": (REASONED, stored("single", REASONED, response("Clear.\nScore: 4"))),
    "unread": (ALONE, stored("single", ALONE, response("no idea"))),
    "cut": (REASONED, stored("single", REASONED, response("Clear.\nScore: 4", end="length"))),
    "draws": (ALONE, stored("samples", ALONE, *map(response, "44455"), response("n/a"), response("5", end="length"))),
    "no draw": (ALONE, stored("samples", ALONE, response("n/a"), response("5", end="length"))),
    "nearly JSON": (MERGED, stored("single", MERGED, response("4", end=parse.NEARLY_JSON))),
    "strictly no JSON": (MERGED, stored("single", MERGED, response("4", end=parse.NEARLY_JSON), settings=STRICT)),
    "weighed": (ALONE, WEIGHED),
    "weighed after a reason": (REASONED, stored("logprobs", REASONED, response("Clear.\nScore: 4", SHARES))),
    "weighed, none written": (ALONE, stored("logprobs", ALONE, response("Coherence: 7", {"7": 0.4, "5": 0.6}))),
    "decided": (ALONE, stored("decisions", ALONE, Response((Choice("4", shares=(("4", 0.6), ("5", 0.3))),)))),
    "no decision": (ALONE, stored("decisions", ALONE, response("4"))),
    "identical": (ALONE, Score("i", "s", "coherence", 0.5, Provenance("identical"), "t")),
    "metric": (ALONE, Score("i", "s", "coherence", 4.0, Provenance("metric"))),
    "not sent": (ALONE, Failure("i", "s", "coherence", "request", "Refused", "401")),
}


@pytest.mark.parametrize("name", ROWS)
def test_with_the_settings_of_the_run_every_row_comes_back_as_it_is(name: str) -> None:
    criterion, row = ROWS[name]
    assert reread(row, criterion, STRICT if name.startswith("strictly") else RUN, TEXT) is row


def test_what_counts_in_prose_only_follows_the_settings() -> None:
    (criterion, failure), (_, score) = ROWS["strictly no JSON"], ROWS["nearly JSON"]
    assert isinstance(failure, Failure)
    assert reread(failure, criterion, RUN, TEXT) == score
    assert reread(score, criterion, STRICT, TEXT) == failure


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("single", {"argmax": "3"}),
        ("a reason", {"raw": "Clear.\nScore: 3"}),
        ("draws", {"n": 6}),
        ("draws", {"low": 1.5}),
        ("draws", {"distribution": {"4": 0.5, "5": 0.3}}),
        ("weighed", {"mass": 0.7}),
        ("weighed", {"entropy": 0.1}),
        ("weighed", {"distribution": {"4": 0.3, "5": 0.31}}),
        ("decided", {"high": 5.0}),
    ],
)
def test_a_changed_number_or_reply_gives_another_row(name: str, change: dict[str, Any]) -> None:
    criterion, row = ROWS[name]
    assert isinstance(row, Score)
    changed = replace(row, provenance=replace(row.provenance, **change))
    assert reread(changed, criterion, RUN, TEXT) != changed
    assert reread(replace(row, value=row.value + 0.001), criterion, RUN, TEXT) == row


def test_more_mass_is_asked_for_than_a_score_has() -> None:
    again = reread(WEIGHED, ALONE, replace(RUN, min_mass=0.7), TEXT)
    assert isinstance(again, Failure)
    assert again.message == "only 0.6 of the probability is on the scale, less than 0.7; needs new samples"
    assert (again.raw, again.method, again.stage) == ("4", "logprobs", "request")
    assert reread(again, ALONE, RUN, TEXT) is again
    stepped = reread(WEIGHED, ALONE, replace(RUN, min_mass=0.7, temperature=0.0), TEXT)
    run = stored("single", ALONE, response("4"))
    assert isinstance(run, Score)
    assert isinstance(stepped, Score)
    note = "only 0.6 of the probability is on the scale, less than 0.7"
    assert stepped == replace(run, provenance=replace(run.provenance, note=note))


def repaired(method: Any, first: Choice, second: Response) -> Score | Failure:
    """The row of a reply without a score and the answer to the question for it alone."""
    row, raw = stored(method, ALONE, second), parse.join_replies([first, second.choices[0]])
    if isinstance(row, Failure):
        return replace(row, raw=raw, reading="repaired")
    return replace(row, provenance=replace(row.provenance, raw=raw, reason=first.text, reading="repaired"))


@pytest.mark.parametrize(
    "row",
    [
        repaired("single", Choice("It is clear, if long."), response("4")),
        repaired("logprobs", Choice("It is clear, if long."), response("4", SHARES)),
        repaired("single", Choice("Clear.\nScore: 4", "length"), response("3")),
        repaired("single", Choice("It is clear, if long."), response("I cannot say.")),
        repaired("single", Choice("It is clear, if long."), response("4", end="length")),
    ],
)
def test_a_repaired_judgment_is_read_from_its_second_reply(row: Score | Failure) -> None:
    assert reread(row, REASONED, RUN, TEXT) is row
    strict = reread(row, REASONED, STRICT, TEXT)
    assert isinstance(strict, Failure)
    assert strict.raw == (row.provenance.raw if isinstance(row, Score) else row.raw)
    again = reread(strict, REASONED, RUN, TEXT)
    assert again == (row if isinstance(row, Score) and row.provenance.method == "single" else again)
    assert isinstance(again, type(row))


def test_a_first_reply_that_has_a_score_now_needs_no_second() -> None:
    row = repaired("single", Choice("Clear.\nScore: 4"), response("3"))
    again = reread(row, REASONED, RUN, TEXT)
    assert isinstance(again, Score)
    assert (again.value, again.provenance.raw, again.provenance.reading) == (4.0, "Clear.\nScore: 4", "strict")


def test_a_failure_with_a_score_becomes_one_only_if_probabilities_are_not_required() -> None:
    row = Failure("i", "s", "coherence", "parse", "ParseError", "unread", "Clear.\nScore: 4", method="logprobs")
    assert reread(row, REASONED, replace(RUN, weighting="logprobs"), TEXT) is row
    again = reread(row, REASONED, RUN, TEXT)
    assert isinstance(again, Score)
    assert (again.value, again.provenance.method) == (4.0, "single")
    assert again.provenance.note == "no token probabilities are stored with this reply"
