"""Settings of each judge: system message, reasoning effort, extra keys, headers, temperature and draws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.commands.loaders import draft_steps
from judge.config import RunConfig, load_config
from judge.core.errors import ConfigError
from judge.core.request_options import ALLOWED
from judge.report.views.provenance import build_provenance
from judge.run.preparation import prompt
from tests.factories import lines_hold

SOURCE = "The library of Vell closed for repairs in May and opened again in October."
ROWS = [
    {"item": item, "system": "s", "source": SOURCE, "output": f"It closed, says note {item}."}
    for item in "123"
]
SETTINGS: dict[str, Any] = {
    "system_message": "You are a strict editor.", "reasoning_effort": "low", "extra_body": {"top_p": 0.9},
    "headers": {"X-Team": "evals"},
}  # fmt: skip
SIGNED = "effort=low|system@4b7eb5|top_p=0.9|x-team@081654"


def run(server: Any, **options: Any) -> judge.Result:
    settings = {"model": "m", "metrics": [], "cache": False, "weighting": "single", **options}
    return judge.evaluate(ROWS, ["relevance"], base_url=server.url, **settings)


def reasoning(server: Any, completion: Callable[..., Any]) -> None:
    """Make the server answer like a model with 700 hidden tokens and no token probabilities."""

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if "logprobs" in body:
            problem = {
                "message": "Unsupported parameter: 'logprobs' with this model.",
                "param": "logprobs",
            }
            return 400, {}, {"error": problem}
        n = body.get("n", 1)
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 701 * n,
            "completion_tokens_details": {},
        }
        usage["completion_tokens_details"] = {"reasoning_tokens": 700 * n}
        return 200, {}, completion(usage=usage) | {"choices": completion()["choices"] * n}

    server.answer = answer


def test_settings_are_sent_signed_stored_and_recorded(chat_server: Any, tmp_path: Path) -> None:
    recording = tmp_path / "calls.jsonl"
    result = run(chat_server, **SETTINGS, record=recording, out=tmp_path / "run")
    for body, headers in zip(chat_server.bodies, chat_server.headers, strict=True):
        assert body["messages"][0] == {"role": "system", "content": SETTINGS["system_message"]}
        assert (body["reasoning_effort"], body["top_p"], headers["x-team"]) == ("low", 0.9, "evals")
        assert "headers" not in body
    (signature,) = result.table.signatures.values()
    assert f"|t=0|{SIGNED}|single|" in signature
    assert result.info.judges["m"].settings == SETTINGS | {"headers": {"X-Team": "…081654cb6a9c"}}
    messages = result.info.prompts["relevance"].messages
    assert [message.role for message in messages] == ["system", "user"]
    page = result.report("html")
    assert "reasoning_effort low" in page
    assert "system message: You are a strict editor." in page
    replayed = {
        "replay": recording,
        "model": "m",
        "metrics": [],
        "cache": False,
        "weighting": "single",
    }
    assert judge.evaluate(ROWS, ["relevance"], **replayed, **SETTINGS).failures == ()
    with pytest.raises(judge.JudgeError, match="does not hold the reply"):
        judge.evaluate(ROWS, ["relevance"], **replayed, **SETTINGS | {"system_message": "Be kind."})


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_has_separate_cache_entries(
    chat_server: Any, tmp_path: Path, name: str
) -> None:
    for options in ({}, {name: SETTINGS[name]}, {}, {name: SETTINGS[name]}):
        run(chat_server, cache=tmp_path / "cache", **options)
    assert len(chat_server.bodies) == 2 * len(ROWS)


def test_settings_that_are_not_used_change_no_key_and_no_signature(chat_server: Any) -> None:
    plain = run(chat_server)
    empty = run(chat_server, system_message="", extra_body={}, headers={}, reasoning_effort="")
    assert plain.table.signatures == empty.table.signatures
    assert not empty.info.judges["m"].settings
    assert chat_server.bodies[0].keys() == {
        "model",
        "messages",
        "temperature",
        "max_completion_tokens",
    }


def test_a_judges_own_settings_replace_the_runs(chat_server: Any) -> None:
    judges = [{"name": "m", "temperature": 1, "extra_body": {"top_k": 5}}, "n"]
    run(chat_server, model=judges, **SETTINGS)
    sent = {body["model"]: body for body in chat_server.bodies}
    assert [(sent[m]["temperature"], sent[m].get("top_p"), sent[m].get("top_k")) for m in "mn"] == [
        (1, None, 5), (0, 0.9, None),
    ]  # fmt: skip


def test_repair_questions_and_drafts_have_the_settings(
    chat_server: Any, make_completion: Callable[..., Any], tmp_path: Path
) -> None:
    chat_server.answer = lambda _: (200, {}, make_completion("I cannot tell."))
    run(chat_server, **SETTINGS)
    roles = [[message["role"] for message in body["messages"]] for body in chat_server.bodies]
    assert ["system", "user", "assistant", "user"] in roles
    chat_server.answer = lambda _: (200, {}, make_completion("1. Read it.\n2. Score it."))
    criterion = tmp_path / "c.jinja"
    text = '---\ntitle: C\nscale: [1, 5]\n---\n{% extends "layouts/pointwise.jinja" %}\n'
    criterion.write_text(text + "{% block criterion %}How good is it?{% endblock %}\n", "utf-8")
    draft_steps(
        criterion, load_config(options={"model": "m", "base_url": chat_server.url, **SETTINGS})
    )
    assert all(
        body["reasoning_effort"] == "low" and body["top_p"] == 0.9 for body in chat_server.bodies
    )
    assert chat_server.bodies[-1]["messages"][0]["role"] == "system"


def test_a_prompt_is_shown_with_the_system_message() -> None:
    first, second = prompt("relevance", ROWS, system_message="Be strict.").messages
    assert first == {"role": "system", "content": "Be strict."}
    assert second == prompt("relevance", ROWS).messages[0]


def test_a_scripted_judge_sees_the_system_message(tmp_path: Path) -> None:
    replies = tmp_path / "replies.yaml"
    replies.write_text('- {when: [strict editor], reply: "1"}\n- {reply: "5"}\n', "utf-8")
    judges = [
        {"name": f"scripted/{replies}", "system_message": system_message}
        for system_message in ("", SETTINGS["system_message"])
    ]
    result = judge.evaluate(ROWS, ["relevance"], model=judges, metrics=[], cache=False)
    kind, strict = result.info.judges
    assert [result.estimates["s", f"relevance/{name}"].value for name in (kind, strict)] == [5, 1]


def test_a_refused_reasoning_effort_is_dropped_and_noted(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    problem = {
        "error": {
            "message": "Unsupported parameter: 'reasoning_effort'",
            "param": "reasoning_effort",
        }
    }
    chat_server.answer = lambda body: (
        (400, {}, problem) if "reasoning_effort" in body else (200, {}, make_completion("4"))
    )
    result = run(chat_server, reasoning_effort="low")
    assert {score.value for score in result.table.scores} == {4.0}
    (used,) = result.info.judges.values()
    assert "reasoning_effort" in used.unmet
    assert {body.get("reasoning_effort") for body in chat_server.bodies} == {"low", None}


# The same model twice


@pytest.mark.parametrize(
    ("judges", "names"),
    [
        ([{"temperature": 0}, {"temperature": 1}], ["m t=0", "m t=1"]),
        ([{}, {"reasoning_effort": "low"}], ["m", "m effort=low"]),
        (
            [{"system_message": "A"}, {"system_message": "B"}],
            ["m system@559aea", "m system@df7e70"],
        ),
        (
            [{"extra_body": {"top_p": 0.5}}, {"headers": {"X-Mode": "b c"}}],
            ["m top_p=0.5", "m x-mode@47d8a4"],
        ),
        ([{"temperature": 0, "label": "cold"}, {"temperature": 1}], ["cold", "m t=1"]),
        ([{"temperature": 0}, {"temperature": 1}, {"name": "n"}], ["m t=0", "m t=1", "n"]),
    ],
)
def test_the_same_model_with_other_settings_is_a_panel(
    chat_server: Any, judges: list[dict[str, Any]], names: list[str]
) -> None:
    result = run(chat_server, model=[{"name": "m"} | settings for settings in judges])
    assert list(result.info.judges) == names
    assert [c.judge for c in result.table.columns] == ["", *names]
    signatures = {str(c.signature) for c in result.table.columns}
    assert len(signatures) == len(names) + 1
    assert len(chat_server.bodies) == len(ROWS) * len(names)
    assert not result.failures


@pytest.mark.parametrize(
    "judges",
    [
        ["m", "m"],
        [{"name": "m", "label": "a"}, {"name": "m", "label": "b"}],
        [{"name": "m", "temperature": 0.5}, {"name": "m", "temperature": 0.5}],
        [{"name": "m", "headers": {"X-Api-Key": "first-secret"}}, {"name": "m"}],
    ],
)
def test_judges_with_equal_requests_are_refused_as_a_panel(
    chat_server: Any, judges: list[Any]
) -> None:
    with pytest.raises(ConfigError, match="a panel's judges differ"):
        run(chat_server, model=judges)


# Few draws from a model that reasons


@pytest.mark.parametrize(
    ("options", "drawn"),
    [
        ({}, 5),
        ({"draws": 3}, 3),
        ({"draws": 20}, 20),
        ({"weighting": "samples"}, 20),
        ({"reasoning_effort": "low"}, 5),
    ],
)
def test_a_model_that_reasons_is_asked_for_few_draws(
    chat_server: Any,
    make_completion: Callable[..., Any],
    tmp_path: Path,
    options: dict[str, Any],
    drawn: int,
) -> None:
    reasoning(chat_server, make_completion)
    recording, cache = tmp_path / "calls.jsonl", tmp_path / "cache"
    result = run(chat_server, cache=cache, record=recording, **{"weighting": "auto"} | options)
    assert {score.provenance.n for score in result.table.scores} == {drawn}
    replies = sum(body.get("n", 1) for body in chat_server.bodies if "logprobs" not in body)
    assert replies == drawn * len(ROWS) + (
        "weighting" not in options
    )  # one request shows that there are no probabilities
    (signature,) = result.table.signatures.values()
    assert f"|draws={drawn}|" in signature
    notes = " ".join(result.info.notes)
    assert ("20 would take about" in notes) == (drawn == 5)
    # The number is the same from the cache, in the plan and in a replay.
    second_run = run(chat_server, cache=cache, **{"weighting": "auto"} | options)
    assert (second_run.info.requests.sent, second_run.table.signatures) == (
        0,
        result.table.signatures,
    )
    offline = {"weighting": "auto", "model": "m", "metrics": [], "cache": False} | options
    replayed = judge.evaluate(ROWS, ["relevance"], replay=recording, **offline)
    assert {score.provenance.n for score in replayed.table.scores} == {drawn}
    more = [*ROWS, ROWS[0] | {"item": "4", "output": "Another."}]
    plan = judge.plan(more, ["relevance"], base_url=chat_server.url, **offline | {"cache": cache})
    assert f"the mean of {drawn} draws" in plan.judges[0].method


# Refused settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"extra_body": {"temperature": 1}}, "use temperature"),
        ({"extra_body": {"n": 2}}, "use draws"),
        ({"extra_body": {"stream": True}}, "judge sends this itself"),
        ({"extra_body": '{"top_p": '}, "write a JSON object"),
        ({"extra_body": {"x": float("nan")}}, "cannot be written as JSON"),
        ({"extra_body": {"options": {"api_key": "s3cr3t"}}}, "api_key: may be a secret"),
        ({"headers": "X-Team"}, "write NAME=VALUE"),
        ({"headers": {"X Team": "s3cr3t"}}, "not a valid name of an HTTP header"),
        ({"headers": {"Content-Length": "5"}}, "judge sets this header itself"),
        ({"headers": {"Cookie": "s3cr3t\r\nHost: x"}}, "line of printable ASCII"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "one header has two values"),
        ({"key_command": "echo 's3cr3t"}, "cannot be split"),
        ({"reasoning_effort": "very high"}, "should match pattern"),
        ({"model": [{"name": "m", "label": "a|b"}]}, "one line"),
        ({"model": "decisions/m", "system_message": "Be strict."}, "decisions/m cannot use it"),
        ({"model": "scripted/m.yaml", "headers": {"X-A": "1"}}, "scripted/m.yaml cannot use it"),
        (
            {
                "model": judge.ScriptedProvider(lambda _: {"4": 1.0}, decides=True),
                "system_message": "Be strict.",
            },
            "cannot use it",
        ),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(
    chat_server: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        run(chat_server, **options)
    assert "s3cr3t" not in str(caught.value)


def test_a_command_in_a_file_has_to_be_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tmp_path / "run.yaml"
    plan.write_text(
        "data: d.jsonl\nmodel:\n  - m\n  - {name: n, key_command: print-key --for n}\n", "utf-8"
    )
    with pytest.raises(ConfigError, match=rf"run.yaml:2: key_command: .*\${ALLOWED}"):
        load_config(plan)
    monkeypatch.setenv(ALLOWED, "print-key\nprint-key --for n")
    assert load_config(plan).model[1].key_command == "print-key --for n"
    assert load_config(options={"key_command": "print-key"}).key_command == "print-key"
    suite = tmp_path / "s.judge.yaml"
    suite.write_text("key_command: other\nmodel: m\ncases: []\n", "utf-8")
    with pytest.raises(ConfigError, match=ALLOWED):
        judge.test(suite)


def test_headers_on_the_command_line_keep_commas() -> None:
    config = RunConfig.load(
        options={
            "headers": ["X-A=b,c=d", "X-B=e"],
            "extra_body": ['{"top_p": 0.9}', '{"a": [1, 2]}'],
        }
    )
    assert config.headers == {"X-A": "b,c=d", "X-B": "e"}
    assert config.extra_body == {"top_p": 0.9, "a": [1, 2]}
    stored = config.model_dump(mode="json")["headers"]
    assert list(stored) == ["X-A", "X-B"]
    assert all(value.startswith("…") for value in stored.values())


@pytest.mark.parametrize(
    ("options", "facts_of_lines"),
    [
        ({}, [("m gives no token probabilities", "means of 20 draws")]),
        ({"draws": 4}, [("m gives no token probabilities", "means of 4 draws")]),
        ({"temperature": 0}, [("m gives no token probabilities", "one reply each")]),
        ({"weighting": "samples"}, []),
        ({"weighting": "single"}, []),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_a_report_states_how_a_vendor_without_probabilities_was_scored(
    chat_server: Any, options: dict[str, Any], facts_of_lines: list[tuple[str, ...]]
) -> None:
    """judge knows that Gemini refuses probabilities and several choices, so it does not request them."""
    settings = {"model": "gemini/m", "weighting": "auto", **options}
    result = run(chat_server, **settings)
    assert not result.failures
    assert not any({"logprobs", "n"} & body.keys() for body in chat_server.bodies)
    remarks = build_provenance(result).remarks
    assert lines_hold(remarks, facts_of_lines)
    assert all(remark in result.report("console") for remark in remarks)


def test_notes_a_server_that_lists_only_the_chosen_token(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        data = make_completion("4", top={"4": 0.6} if body.get("logprobs") else None)
        data["choices"] *= body.get("n", 1)
        return 200, {}, data

    chat_server.answer = answer
    remarks = build_provenance(run(chat_server, weighting="auto")).remarks
    assert lines_hold(remarks, [("m lists fewer", "token probabilities", "means of 20 draws")])


@pytest.mark.parametrize(
    "body", [{"seed": 10**400}, {"a": [{"b": -(10**120)}]}, {"seed": 10**5000}]
)
def test_refuses_a_body_value_that_run_json_cannot_store(
    chat_server: Any, body: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=r"extra_body: .*a (number|value)"):
        run(chat_server, extra_body=body)
    with pytest.raises(ConfigError, match=r"extra_body: .*a (number|value)"):
        run(chat_server, model=[{"name": "m", "extra_body": body}])
    assert chat_server.bodies == []


def test_a_seed_of_64_bits_is_in_run_json(chat_server: Any, tmp_path: Path) -> None:
    body = {"seed": 2**64 - 1}
    run(chat_server, extra_body=body, out=tmp_path)
    assert judge.load_result(tmp_path).info.config.extra_body == body
