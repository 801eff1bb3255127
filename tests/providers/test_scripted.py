"""The scripted judge returns the replies of its script."""

from __future__ import annotations

import asyncio
import math
import pickle
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import ConfigError, Refused, Transient
from judge.core.records import Choice, Request, Response
from judge.providers import Provider
from judge.providers.scripted import Reply, ScriptedProvider
from tests.factories import has_line, text_response, user_request


def ask(provider: ScriptedProvider, request: Request) -> Response:
    return asyncio.run(provider.complete(request))


def test_scripted_provider_records_its_requests() -> None:
    provider = ScriptedProvider(lambda r: r.messages[0]["content"])
    assert isinstance(provider, Provider)
    assert ask(provider, user_request("4")).choices == (Choice("4"),)
    assert provider.seen == [user_request("4")]
    asyncio.run(provider.aclose())


def test_probabilities_become_log_probabilities_if_requested() -> None:
    provider = ScriptedProvider(lambda _: {"3": 0.25, "4": 0.75, "5": 0.0})
    tokens = ask(provider, user_request(top_logprobs=5)).choices[0].tokens
    assert tokens is not None
    assert tokens[0].text == "4"
    assert {t: math.exp(p) for t, p in tokens[0].top} == pytest.approx({"4": 0.75, "3": 0.25})
    assert ask(provider, user_request()).choices[0] == Choice("4")


def test_responses_pass_through_and_errors_are_raised() -> None:
    response = text_response("x")
    replies: list[Reply] = [response, Refused("no"), Transient("later")]
    provider = ScriptedProvider(lambda _: replies.pop(0))
    assert ask(provider, user_request()) is response
    for kind in (Refused, Transient):
        with pytest.raises(kind):
            ask(provider, user_request())


def test_numbers_will_do_and_nonsense_is_named() -> None:
    assert ask(ScriptedProvider(lambda _: 4), user_request()).choices == (Choice("4"),)
    assert (
        ask(ScriptedProvider(lambda _: {4: 1.0}), user_request(top_logprobs=5)).choices[0].text
        == "4"
    )
    assert ask(ScriptedProvider(lambda _: {}), user_request()).choices == (Choice(""),)
    with pytest.raises(ConfigError, match="not None"):
        ask(ScriptedProvider(lambda _: None), user_request())  # type: ignore[arg-type, return-value]


QUESTIONS = [
    {"name": "a", "type": "score", "instructions": "?", "labels": ["1", "2"]},
    {"name": "b", "type": "predicate", "instructions": "!", "labels": ["no", "yes"]},
]


def test_an_endpoint_of_typed_questions_is_asked_each_by_itself() -> None:
    script: dict[str, Reply] = {"a": {"1": 0.25, "2": 0.5}, "b": "yes"}
    provider = ScriptedProvider(lambda r: script[r.params["questions"][0]["name"]], decides=True)
    assert (provider.decides, provider.learned, ScriptedProvider(lambda _: "").decides) == (
        True,
        {},
        False,
    )
    question = user_request(questions=QUESTIONS)
    assert ask(provider, question).choices == (
        Choice("2", shares=(("1", 0.25), ("2", 0.5))),
        Choice("yes", shares=(("yes", 1.0),)),
    )
    assert provider.seen == [question]


def test_a_scripted_answer_may_be_a_refusal_or_an_error() -> None:
    refusal = Response((Choice("", "refusal"),))
    replies: list[Reply] = [refusal, {"no": 1.0, "yes": 0.0}, Transient("later")]
    provider = ScriptedProvider(lambda _: replies.pop(0), decides=True)
    question = user_request(questions=QUESTIONS)
    assert [c.text for c in ask(provider, question).choices] == ["", "no"]
    with pytest.raises(Transient):
        ask(provider, question)


def test_rules_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "replies.yaml"
    path.write_text(
        "- {when: [cat, mat], reply: {4: 0.9, 5: 0.1}}\n- {when: cat, reply: 2}\n", encoding="utf-8"
    )
    provider = ScriptedProvider.from_file(path)
    assert provider.notice == ScriptedProvider.notice
    assert ask(provider, user_request("the cat on the mat")).choices[0].text == "4"
    assert ask(provider, user_request("the cat")).choices[0].text == "2"
    with pytest.raises(Refused, match="no reply for this prompt"):
        ask(provider, user_request("the dog"))


@pytest.mark.parametrize("source", ["model", "recording"])
def test_a_plain_reply_in_a_file_does_not_change_how_others_are_scored(
    tmp_path: Path, source: str
) -> None:
    path = tmp_path / "replies.yaml"
    path.write_text("- {when: Text 0, reply: 1}\n- {reply: {1: 0.45, 5: 0.55}}\n", encoding="utf-8")
    rows = [{"item": str(n), "output": f"Text {n}."} for n in range(4)]
    options: dict[str, Any] = {"metrics": [], "cache": False, "max_concurrency": 1}
    calls = tmp_path / "calls.jsonl"
    result = judge.evaluate(
        rows, "ok: Is it ok?", model=f"scripted/{path}", record=calls, **options
    )
    if source == "recording":
        result = judge.evaluate(rows, "ok: Is it ok?", replay=calls, **options)
    assert [score.value for score in result.table.scores] == pytest.approx([1, 3.2, 3.2, 3.2])


def test_the_note_of_a_file_is_its_notice(tmp_path: Path) -> None:
    path = tmp_path / "replies.yaml"
    path.write_text("- note: Written by hand.\n- {reply: 2}\n", encoding="utf-8")
    provider = ScriptedProvider.from_file(path)
    assert provider.notice == "Written by hand."
    assert ask(provider, user_request("the dog")).choices[0].text == "2"


def test_an_edited_file_has_a_different_endpoint(tmp_path: Path) -> None:
    path = tmp_path / "replies.yaml"
    path.write_text("- {when: a, reply: 1}\n", encoding="utf-8")
    before = ScriptedProvider.from_file(path).endpoint
    path.write_text("- {when: a, reply: 2}\n", encoding="utf-8")
    assert ScriptedProvider.from_file(path).endpoint != before


@pytest.mark.parametrize(
    "text",
    [
        "- {when: a}", "a: [", "", "3", "a", "{a: 1}", "- 3", "- a", "- [a]", "- {when: 3, reply: 1}",
        "- {when: a, reply: {4: high}}", "- {reply: {4: [1]}}", "- {reply: {4: 2}}", "- {reply: [1]}",
        "- {reply: null}", "- {reply: 1}\n- note", "- {reply: {4: 0.5, 5: 0.6}}",
    ],
)  # fmt: skip
def test_a_file_with_the_wrong_structure_is_a_config_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "replies.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="not a list of") as caught:
        ScriptedProvider.from_file(path)
    message = str(caught.value)
    assert "object" not in message, "the words of Python tell a user nothing"
    assert "convert" not in message
    assert "argument" not in message


@pytest.mark.parametrize(
    ("text", "line", "fact"),
    [
        ("- {reply: 3}\n- {wehn: a, reply: 2}\n", 2, "did you mean 'when'?"),
        ("- {note: By hand., reply: 2}\n", 1, "'reply'"),
        ("- {note: By hand.}\n- {note: Again., reply: 2}\n", 2, "'note'"),
    ],
)
def test_an_unknown_key_of_a_rule_is_refused(
    tmp_path: Path, text: str, line: int, fact: str
) -> None:
    path = tmp_path / "replies.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        ScriptedProvider.from_file(path)
    assert has_line(str(caught.value), f"replies.yaml:{line}:", "unknown key", fact)


def test_a_missing_file_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        ScriptedProvider.from_file(tmp_path / "none.yaml")


def test_it_is_made_again_from_its_file_or_with_its_script(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("- {reply: '4'}\n")
    provider = ScriptedProvider.from_file(path)
    ask(provider, user_request("x"))
    unpickled = pickle.loads(pickle.dumps(provider))
    assert (unpickled.model, unpickled.endpoint, unpickled.seen) == (
        provider.model,
        provider.endpoint,
        [],
    )
    assert ask(unpickled, user_request("x")) == ask(provider, user_request("x"))
    assert not unpickled.seen, "a worker's memory would grow with the run"
    scripted = ScriptedProvider(len, model="m", endpoint="e", decides=True)  # type: ignore[arg-type]
    unpickled = pickle.loads(pickle.dumps(scripted))
    assert (unpickled.model, unpickled.endpoint, unpickled.decides, unpickled._script) == (
        "m",
        "e",
        True,
        len,
    )


def test_a_rule_that_never_answers_is_named_with_the_cause(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(
        "- {when: a, reply: 1}\n- {when: [a, b], reply: 2}\n- {when: z, reply: 3}\n",
        encoding="utf-8",
    )
    provider = ScriptedProvider.from_file(path)
    ask(provider, user_request("a b"))
    assert list(provider.unused) == [2, 3]
    assert has_line(provider.unused[2], "rule 1 comes first", "'a' and 'b'")
    assert has_line(provider.unused[3], "no prompt", "'z'")
