"""Notes in reports on servers that refused or ignored a parameter, and on scores made without it."""

from __future__ import annotations

from typing import Any

import pytest

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.providers.server_capabilities import RequestAdapter
from judge.report.views.provenance import build_provenance
from judge.report.views.servers import refusals, server_notes
from judge.results.result import Result
from judge.results.run_info import JudgeInfo, RunInfo, read
from judge.table import Table
from tests.factories import has_line, lines_hold


@pytest.mark.parametrize(
    ("unmet", "learned", "facts_of_lines"),
    [
        ({}, {}, []),
        (
            {"logprobs": 80},
            {"dropped": ["logprobs"]},
            [("no token probabilities", "80 answers")],
        ),
        ({"logprobs": 1}, {}, [("no token probabilities", "1 answer)")]),
        ({"n": 4}, {"n": 8}, [("n ≤ 8", "4 answers")]),
        ({}, {"n": 1}, [("n ≤ 1",)]),
        ({"n": 2}, {}, [("fewer replies at a time", "2 answers")]),
        ({"temperature": 1200}, {}, [("temperature not accepted", "1,200 answers")]),
        (
            {"top_logprobs": 3},
            {"top_logprobs": 5},
            [("at most 5 probabilities", "3 answers")],
        ),
        (
            {"response_format": 3},
            {"dropped": ["response_format"]},
            [("JSON schema not accepted", "3 answers")],
        ),
        ({}, {"dropped": ["seed"]}, [("seed not accepted",)]),
        (
            {"reasoning": 9},
            {"reasoning_effort": "none"},
            [("reasoning turned off", "token probabilities", "9 answers")],
        ),
        ({}, {"path": "/v1/systemone"}, [("/v1/systemone",)]),
        ({}, {"colour\n": "blue"}, [("colour : blue",)]),
    ],
)
def test_every_refusal_has_its_words(
    unmet: dict[str, int], learned: dict[str, Any], facts_of_lines: list[tuple[str, ...]]
) -> None:
    assert lines_hold(refusals(JudgeInfo(unmet=unmet, learned=learned)), facts_of_lines)


def test_all_that_a_server_can_teach_has_words() -> None:
    taught = RequestAdapter(
        5, "max_tokens", 8, True, frozenset({"logprobs", "temperature", "response_format"})
    ).known_limits
    words = "; ".join(refusals(JudgeInfo(learned=taught)))
    assert "_" not in words.replace("max_tokens", "")
    assert (
        len(taught) + 1 == words.count(";") + 1
    )  # three parameters dropped; the effort is reported by `unmet`


def test_every_judge_with_an_omitted_parameter_has_a_warning() -> None:
    judges = {
        "gpt": {
            "unmet": {"logprobs": 80, "temperature": 80},
            "learned": {"n": 8, "limit": "max_tokens"},
        },
        "kind": {"unmet": {}, "learned": {"reasoning_effort": "none"}},
        "few": {"unmet": {"n": 4}, "learned": {"n": 1}},
    }
    (note,) = server_notes(Result(Table((), (), ()), {}, read({"judges": judges})))
    assert has_line(note, "gpt", "no token probabilities (80", "temperature not accepted (80")


def scored(methods: list[str], **judge: Any) -> Result:
    """Return a result of one judge with a score for each method."""
    samples = tuple(Sample(f"i{k}", "s", "o") for k in range(len(methods)))
    scores = tuple(
        Score(sample.item, "s", "c", 3.0, Provenance(method))
        for sample, method in zip(samples, methods, strict=True)
    )
    table = Table(samples, (Column("c", "criterion", Signature("c")),), scores)
    return Result(table, {}, RunInfo(judges={"gpt": JudgeInfo(**judge)}))


BLIND = {"unmet": {"logprobs": 1}, "learned": {"n": 1, "dropped": ["logprobs"]}, "draws": 20}
NO_PROBABILITIES = "no token probabilities:"


@pytest.mark.parametrize(
    ("methods", "judge", "facts"),
    [
        (["samples"] * 3, BLIND, (NO_PROBABILITIES, "means of 20 draws")),
        (["samples"] * 3, BLIND | {"draws": 5}, (NO_PROBABILITIES, "means of 5 draws")),
        (["samples"], BLIND | {"draws": None}, (NO_PROBABILITIES, "means of several draws")),
        (["single"] * 3, BLIND, (NO_PROBABILITIES, "one reply each")),
        (
            ["single", *["samples"] * 3], BLIND,
            (NO_PROBABILITIES, "means of 20 draws (3)", "one reply each (1)"),
        ),
        (
            ["samples"], BLIND | {"unmet": {"top_logprobs": 1}},
            ("fewer token probabilities", "means of 20 draws"),
        ),
        (
            ["samples"], BLIND | {"unmet": {"top_logprobs": 1}, "learned": {"top_logprobs": 2}},
            ("at most 2 probabilities", "means of 20 draws"),
        ),
        (["logprobs", "samples"], BLIND, ("no token probabilities (1 answer)",)),
        ([], BLIND, ("no token probabilities (1 answer)",)),
    ],
)  # fmt: skip
def test_scores_made_without_token_probabilities_say_how(
    methods: list[str], judge: dict[str, Any], facts: tuple[str, ...]
) -> None:
    result = scored(methods, **judge)
    (sentence,) = server_notes(result)
    assert has_line(sentence, "gpt", *facts)
    assert sentence in build_provenance(result).remarks


@pytest.mark.parametrize("method", ["samples", "single"])
def test_a_chosen_scoring_strategy_is_not_reported_as_missing(method: str) -> None:
    """These requests need no probabilities, so a vendor without them is not reported."""
    result = scored([method] * 3, unmet={"n": 3}, learned=BLIND["learned"], draws=20)
    assert server_notes(result) == ()


def test_other_lacks_follow_in_a_sentence_of_their_own() -> None:
    result = scored(["samples"], **BLIND | {"unmet": {"logprobs": 1, "temperature": 20}})
    way, lack = server_notes(result)
    assert has_line(way, "gpt", "no token probabilities", "means of 20 draws")
    assert has_line(lack, "gpt", "temperature not accepted", "20 answers")
    ((_, remark),) = build_provenance(result).judges
    assert has_line(remark, "no token probabilities", "means of 20 draws", "temperature")


def test_each_judge_of_a_panel_has_a_note_on_its_scores() -> None:
    columns = [
        Column(f"c/{judge}", "criterion", Signature("c"), judge=judge) for judge in ("a", "b")
    ]
    scores = [
        Score("i", "s", "c/a", 3.0, Provenance("samples")),
        Score("i", "s", "c/b", 3.0, Provenance("logprobs")),
    ]
    table = Table((Sample("i", "s", "o"),), tuple(columns), tuple(scores))
    judges = {"a": BLIND, "b": {"unmet": {}, "learned": {}}}
    (note,) = server_notes(Result(table, {}, read({"judges": judges})))
    assert has_line(note, "a gives no", "token probabilities", "means of 20 draws")
