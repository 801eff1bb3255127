"""`judge plan` prints the requests of a run and sends none."""

from __future__ import annotations

import csv
import importlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import has_line, write_jsonl


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl"
    rows = [
        {"item": i, "system": s, "source": f"Text {i}.", "output": f"{s} {i}"}
        for i in "123"
        for s in "ab"
    ]
    write_jsonl(path, rows)
    return path


def test_it_shows_requests_tokens_price_and_time_without_a_key(
    command: Callable[..., Any], data: Path
) -> None:
    completed = command(
        "plan",
        data,
        "--model",
        "gpt-5.4-mini",
        "--criteria",
        "relevance,fluency",
        "--budget",
        "0.002usd",
    )
    assert completed.code == 0
    lines = completed.out.splitlines()
    assert "gpt-5.4-mini · https://api.openai.com/v1" in lines
    total = next(line for line in lines if line.startswith("all ")).split()
    assert total[:3] == ["all", "12", "12"]
    assert not any("duplicates" in line for line in lines)
    assert any(
        line.startswith("12 requests, $0.00") and line.endswith("12 judgments") for line in lines
    )
    output = " ".join(completed.out.split())
    assert "price $0.0" in output
    assert "genai-prices 0." in output
    assert has_line(output, "time about 2 s", "64 at once")
    assert "--budget $0.002: about " in output
    assert "of 12 requests fit" in output


def test_draws_that_cost_nothing_have_no_price(
    command: Callable[..., Any], data: Path, tmp_path: Path
) -> None:
    replies = tmp_path / "own.yaml"
    replies.write_text("- reply: 4\n", encoding="utf-8")
    completed = command("plan", data, "--model", f"scripted/{replies}", "--criteria", "fluency_5")
    assert "20 draws per judgment" in " ".join(completed.out.split())
    assert "$0.00 more" not in completed.out


def test_a_bigger_run_is_priced(command: Callable[..., Any], data: Path) -> None:
    arguments = [
        "plan",
        data,
        "--model",
        "gpt-5.4-mini",
        "--criteria",
        "relevance",
        "--items",
        "30",
    ]
    output = " ".join(command(*arguments).out.split())
    assert has_line(output, "3 items", "30 similar ones")
    assert json.loads(command(*arguments, "--format", "json").out)["requests"] == 60
    assert has_line(command(*arguments[:-1], "0").err, "--items 0", "1 or more")


def test_it_sends_nothing_and_writes_nothing(
    command: Callable[..., Any], data: Path, chat_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    completed = command(
        "plan", data, "--model", "mine", "--base-url", chat_server.url, "--criteria", "relevance"
    )
    assert completed.code == 0
    assert has_line(" ".join(completed.out.split()), "price unknown", "no known price")
    assert chat_server.bodies == []
    assert [path.name for path in data.parent.iterdir()] == [data.name]


def test_after_a_run_the_plan_has_no_requests(
    command: Callable[..., Any], data: Path, chat_server: Any
) -> None:
    arguments = [
        data,
        "--model",
        "mine",
        "--base-url",
        chat_server.url,
        "--criteria",
        "relevance",
        "--weighting",
        "single",
    ]
    completed = command("run", *arguments, "--out", data.parent / "run")
    assert completed.code == 0
    assert has_line(completed.err, "6 judgments to make", "6 requests")
    sent = len(chat_server.bodies)
    completed = command("plan", *arguments)
    assert has_line(completed.out, "No requests", "cache", "all 6 judgments")
    assert len(chat_server.bodies) == sent
    # What the cache has of a metric's requests is not known before its first replies.
    completed = command("plan", *arguments, "--metrics", "claims")
    assert has_line(completed.out, "Only metrics", "not counted: claims")


def test_metrics_that_ask_a_judge_are_not_called_no_requests(
    command: Callable[..., Any], data: Path
) -> None:
    arguments = ["plan", data, "--model", "gpt-5.4-mini", "--criteria", "none"]
    asking = command(*arguments, "--metrics", "claims,distinct")
    assert has_line(asking.out, "Only metrics", "not counted: claims")
    assert "No requests" not in asking.out
    assert "No requests" in command(*arguments, "--metrics", "distinct").out


def test_plan_as_json_and_for_a_ranking(command: Callable[..., Any], data: Path) -> None:
    completed = command(
        "plan", data, "--model", "gpt-5.4-mini", "--rank", "--pairs", "2", "--format", "json"
    )
    plan = json.loads(completed.out)
    assert plan["judges"][0]["total"]["judgments"] == 4


def test_a_panel_is_shown_judge_by_judge(command: Callable[..., Any], data: Path) -> None:
    arguments = (
        data,
        "--model",
        "gpt-5.4-mini",
        "--model",
        "gpt-6-luna",
        "--criteria",
        "relevance",
    )
    completed = command("plan", *arguments)
    assert "12 requests, $0.0" in completed.out
    rows = list(csv.DictReader(command("plan", *arguments, "--format", "csv").out.splitlines()))
    assert [(row["judge"], row["requests"]) for row in rows] == [
        ("gpt-5.4-mini", "6"),
        ("gpt-6-luna", "6"),
    ]


@pytest.mark.parametrize(
    ("key", "options", "place"),
    [
        (None, ["gpt-5.4-mini"], "https://api.openai.com/v1"),
        ("", ["gpt-5.4-mini", "--key-env", "MINE"], "https://api.openai.com/v1"),
        (" ", ["groq/m", "--key-env", "MINE"], "https://api.groq.com/openai/v1"),
        (None, ["groq/m", "--base-url", "http://127.0.0.1:1/v1"], "http://127.0.0.1:1/v1"),
        ("", ["decisions/m"], "https://api.openai.com/v1"),
        (None, ["azure/gpt-5.4-mini"], "https://AZURE_OPENAI_ENDPOINT.openai.azure.com/openai/v1"),
        (" ", ["azure/gpt-5.4-mini"], "https://AZURE_OPENAI_ENDPOINT.openai.azure.com/openai/v1"),
    ],
)
def test_plan_needs_no_key_and_no_base_url(
    command: Callable[..., Any],
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    key: str | None,
    options: list[str],
    place: str,
) -> None:
    for name in (
        "OPENAI_API_KEY",
        "MINE",
        "GROQ_API_KEY",
        "AZURE_OPENAI_API_KEY",
        "AZURE_OPENAI_ENDPOINT",
    ):
        monkeypatch.delenv(name, raising=False)
        if key is not None:
            monkeypatch.setenv(name, key)
    # Import it first, because the import of threadpoolctl sets an environment variable.
    importlib.import_module("judge.commands.plan.command")
    before = dict(os.environ)
    completed = command("plan", data, "--criteria", "relevance", "--model", *options)
    assert completed.code == 0, completed.err
    assert (
        f"{options[0].removeprefix('groq/').split('/')[-1]} · {place}" in completed.out.splitlines()
    )
    assert dict(os.environ) == before
    not_counted = has_line(" ".join(completed.out.split()), "cached replies", "not found")
    assert not_counted == options[0].startswith("azure/")


@pytest.mark.parametrize("model", ["groq/", "gpt-mini/x"])
def test_plan_refuses_the_same_input_as_a_run(
    command: Callable[..., Any], data: Path, model: str
) -> None:
    assert command("plan", data, "--model", model).code == 2


def test_plan_without_a_judge_counts_no_requests(command: Callable[..., Any], data: Path) -> None:
    completed = command("plan", data, "--criteria", "none", "--metrics", "stats")
    assert completed.code == 0, completed.err
    assert "no judge scores anything" in completed.out


@pytest.mark.parametrize("limit", ["2"])
def test_a_vendor_of_one_choice_a_request_is_asked_as_often_as_announced(
    command: Callable[..., Any],
    data: Path,
    chat_server: Any,
    make_completion: Callable[..., Any],
    limit: str,
) -> None:
    arguments = [
        data,
        "--model",
        "anthropic/m",
        "--base-url",
        chat_server.url,
        "--criteria",
        "relevance",
    ]
    chat_server.answer = lambda _: (200, {}, make_completion("4"))
    command("run", *arguments, "--limit", limit, "--out", data.parent / "first")
    assert len(chat_server.bodies) == 1 + 20 * int(limit)
    completed = command("plan", *arguments, "--format", "json")
    assert json.loads(completed.out)["requests"] == 20 * (6 - int(limit))
    completed = command("plan", *arguments, "--no-cache", "--format", "json")
    assert json.loads(completed.out)["requests"] == 121


def test_a_budget_shows_how_many_requests_fit(command: Callable[..., Any], data: Path) -> None:
    arguments = ["plan", data, "--model", "gpt-5.4-mini", "--criteria", "relevance"]
    plan = command(*arguments, "--budget", "0.0001usd")
    assert has_line(" ".join(plan.out.split()), "--budget $0.0001", "0 of 6 requests")
    assert "all 6 requests fit" in command(*arguments, "--budget", "5usd").out
    completed = command(
        "plan", data, "--criteria", "none", "--metrics", "distinct", "--budget", "5usd"
    )
    assert "fit" not in completed.out


@pytest.mark.parametrize("model", ["gpt-5.4-mini", "a-model-without-a-price"])
def test_a_budget_of_batches_says_that_they_reserve_the_maximum_cost(
    command: Callable[..., Any], data: Path, model: str
) -> None:
    arguments = ["plan", data, "--model", model, "--criteria", "relevance", "--engine", "batch"]
    plan = command(*arguments, "--budget", "5000tokens")
    output = " ".join(plan.out.split())
    assert has_line(output, "--budget 5,000 tokens", "batch reserves the maximum cost")
    assert "requests fit" not in output


def test_a_plan_of_a_ranking_is_asked_for(command: Callable[..., Any], data: Path) -> None:
    plan = data.parent / "rank.yaml"
    plan.write_text("data: texts.jsonl\ncriteria: [overall]\nmodel: gpt-5.4-mini\n")
    for arguments in (
        [plan],
        [data, "--model", "gpt-5.4-mini", "--pairs", "2"],
        [data, "--orders", "1"],
    ):
        completed = command("plan", *arguments)
        assert completed.code == 2
        assert "--rank" in completed.err
    assert command("plan", plan, "--rank", "--pairs", "2").code == 0


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (["--format", "pdf"], ("(known: console, ",)),
        (["--budget", "0"], ("amount", "unit")),
        (["--deadline", "1h"], ("--deadline:", "number", "'1h'")),
        (["--model", "a,b"], ("--model a --model b",)),
    ],
)
def test_plan_refuses_unsupported_options(
    command: Callable[..., Any], data: Path, options: list[str], facts: tuple[str, ...]
) -> None:
    completed = command("plan", data, "--model", "gpt-5.4-mini", *options)
    assert completed.code == 2
    assert has_line(completed.err, *facts)


def test_the_plan_of_a_card_has_its_runs_and_sends_nothing(
    command: Callable[..., Any], data: Path, tmp_path: Path
) -> None:
    arguments = ("plan", data, "--card", "--model", "gpt-5.4-mini", "--criteria", "coherence")
    completed = command(*arguments, "--items", "2")
    assert completed.code == 0
    assert has_line(completed.out.splitlines()[:1], "card of gpt-5.4-mini")
    assert "wordings" in completed.out
    assert [path.name for path in tmp_path.iterdir()] == [data.name]
    planned = json.loads(command(*arguments, "--json").out)
    assert planned["judges"][0]["lines"][0]["run"] == "texts"


@pytest.mark.parametrize(
    ("more", "facts"),
    [
        (("--card", "--rank"), ("--rank:", "combined with --card")),
        (("--card", "--metrics", "rouge"), ("--metrics:", "--card", "no use")),
        (("--probes", "bias"), ("--probes:", "for --card")),
        (("--card", "--probes", "biass"), ("'biass'",)),
    ],
)
def test_options_that_do_not_fit_a_card(
    command: Callable[..., Any], data: Path, more: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    completed = command("plan", data, "--model", "gpt-5.4-mini", *more)
    assert completed.code == 2
    assert has_line(completed.err, *facts)


def test_a_card_takes_the_short_forms_of_its_options(
    command: Callable[..., Any], data: Path
) -> None:
    arguments = ("plan", data, "--card", "--model", "gpt-5.4-mini", "--criteria", "coherence")
    short = command(*arguments, "--reasons", "--no-cache")
    assert short.code == 0
    assert short.out == command(*arguments, "--reply", "reason_then_score").out


def test_a_judges_own_settings_count_in_the_plan(
    command: Callable[..., Any], data: Path, chat_server: Any, tmp_path: Path
) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(
        f"data: {data}\n"
        "criteria: [relevance]\n"
        "weighting: single\n"
        f"base_url: {chat_server.url}\n"
        "model:\n"
        "  - {name: mine, label: kind}\n"
        "  - {name: mine, label: strict, system_message: You are strict.}\n"
    )
    plan = json.loads(command("plan", config, "--format", "json").out)
    assert [judge["judge"] for judge in plan["judges"]] == ["kind", "strict"]
    assert command("run", config, "--out", tmp_path / "run").code == 0
    # The cache answers only requests with the judge's own system message.
    assert json.loads(command("plan", config, "--format", "json").out)["requests"] == 0
