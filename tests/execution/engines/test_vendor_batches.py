"""Batches of Anthropic and Google in their own formats, against servers that follow the documented protocol."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge import evaluate
from judge.core.errors import ConfigError, Refused, Transient
from tests.factories import has_line, write_jsonl

DATA = [
    {"item": str(n), "system": "s", "source": f"Source {n}.", "output": f"Output {n}."}
    for n in range(7)
]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.execution.engines.batch_api._FIRST_WAIT", 0.01)
    monkeypatch.setattr("judge.execution.engines.batch_api._MAX_WAIT", 0.02)


def judged(server: Any, folder: Path, **options: Any) -> Any:
    settings = {
        "criteria": ["relevance"],
        "metrics": [],
        "engine": "batch",
        "weighting": "single",
        "cache": folder / "cache",
    }
    return evaluate(
        options.pop("data", DATA),
        **{**settings, "model": f"{server.vendor}/test-model", "base_url": server.url, **options},
    )


def creations(server: Any) -> int:
    return sum(
        call.startswith("POST") and not call.endswith("/chat/completions") for call in server.calls
    )


def values(result: Any) -> list[float]:
    return [score.value for score in result.table.scores]


def test_a_run_gives_the_same_table_as_online(vendor_server: Any, tmp_path: Path) -> None:
    batched = judged(vendor_server, tmp_path)
    assert (len(vendor_server.asked), creations(vendor_server)) == (6, 1)
    online = judged(vendor_server, tmp_path, engine="local", cache=tmp_path / "other")
    assert sorted(batched.table.scores, key=str) == sorted(online.table.scores, key=str)
    assert values(batched) == [4.0] * 7
    used = batched.info.usage
    assert (used.prompt_tokens, used.completion_tokens, used.cached_tokens) == (70, 21, 24)
    judged(vendor_server, tmp_path)
    assert creations(vendor_server) == 1


def test_a_failed_batch_request_goes_online_and_its_refusal_is_a_failure(
    vendor_server: Any, tmp_path: Path, make_completion: Any
) -> None:
    vendor_server.fates = {"Output 2.": "errored"}

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        refused = "Output 2." in json.dumps(body)
        return (
            (400, {"error": {"message": "against the policy"}})
            if refused
            else (200, make_completion("4"))
        )

    vendor_server.answer = answer
    result = judged(vendor_server, tmp_path)
    assert values(result) == [4.0] * 6
    (failure,) = result.failures
    assert (failure.item, "against the policy" in failure.message) == ("2", True)
    assert has_line(str(result.info), "1 request", "online")


def test_expired_batch_requests_are_sent_online(vendor_server: Any, tmp_path: Path) -> None:
    vendor_server.fates = {"Output 2.": "expired", "Output 3.": "expired"}
    result = judged(vendor_server, tmp_path)
    assert values(result) == [4.0] * 7
    brought = (
        4 if vendor_server.vendor == "anthropic" else 0
    )  # Google: "the batch has no results to retrieve"
    assert len(vendor_server.online) == 7 - brought


# No request is paid twice.


def command(server: Any, folder: Path) -> subprocess.Popen[str]:
    data = folder / "data.jsonl"
    write_jsonl(data, DATA)
    words = [
        "run",
        str(data),
        "--criteria",
        "relevance",
        "--metrics",
        "none",
        "--weighting",
        "single",
    ]
    words += [
        "--engine",
        "batch",
        "--model",
        f"{server.vendor}/test-model",
        "--base-url",
        server.url,
    ]
    words += ["--cache", str(folder / "cache"), "--out", str(folder / "out")]
    return subprocess.Popen(
        [sys.executable, "-c", "from judge.cli import main; main()", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_killed_run_resumes_with_the_same_command(
    vendor_server: Any, tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    """The killed run had not stored the vendor's batch id, and the account has other batches."""
    other_batch = {
        "id": "batches/of-others",
        "name": "others",
        "requests": {f"o{n}": {} for n in range(6)},
        "ended": True,
    }
    vendor_server.batches = {"batches/of-others": other_batch}
    vendor_server.looks, vendor_server.page = 10**9, 1
    process = command(vendor_server, tmp_path)
    wait_until(lambda: bool(vendor_server.polls), process)
    process.kill()
    process.communicate()
    (state,) = tmp_path.rglob("batches/*.json")
    assert vendor_server.key not in state.read_text()
    assert "Output 3." not in state.read_text()
    state.write_text(json.dumps(json.loads(state.read_text()) | {"batch": ""}))
    vendor_server.batches["batches/later"] = other_batch | {"id": "batches/later"}
    vendor_server.looks = 1
    process = command(vendor_server, tmp_path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, (out, err)
    assert (creations(vendor_server), len(vendor_server.online)) == (1, 1)
    assert (
        json.loads((tmp_path / "out" / "run.json").read_text())["info"]["requests"]["answered"] == 6
    )


@pytest.mark.parametrize("arrived", [True, False])
def test_a_batch_created_without_a_reply_is_found_again(
    vendor_server: Any, tmp_path: Path, arrived: bool
) -> None:
    vendor_server.faults = [("POST .*(batches|batchGenerateContent)", "lost" if arrived else 503)]
    assert values(judged(vendor_server, tmp_path)) == [4.0] * 7
    assert (creations(vendor_server), len(vendor_server.batches)) == ((1, 1) if arrived else (2, 1))
    assert set(vendor_server.asked.values()) == {1}


def test_an_uncreated_batch_is_sent_by_the_next_run(vendor_server: Any, tmp_path: Path) -> None:
    vendor_server.faults = [("POST .*(batches|batchGenerateContent)", 503)] * 8
    with pytest.raises(Transient):
        judged(vendor_server, tmp_path)
    assert vendor_server.asked == {}
    assert values(judged(vendor_server, tmp_path)) == [4.0] * 7
    assert set(vendor_server.asked.values()) == {1}


def test_a_full_queue_means_smaller_batches(vendor_server: Any, tmp_path: Path) -> None:
    vendor_server.queue, vendor_server.looks = 4, 3
    assert values(judged(vendor_server, tmp_path)) == [4.0] * 7
    assert len(vendor_server.online) == 1 + (6 - len(vendor_server.asked))
    assert set(vendor_server.asked.values()) == {1}
    assert len(vendor_server.batches) >= 2


# Server errors.


def test_missing_batch_results_are_requested_online(vendor_server: Any, tmp_path: Path) -> None:
    strange = {
        "Output 1.": {},
        "Output 2.": {"type": "succeeded", "message": {"content": 3}, "candidates": 4},
        "Output 3.": ["what"],
    }
    whole = vendor_server.line

    def line(key: str, request: Any) -> Any:
        garbage = next(
            (reply for text, reply in strange.items() if text in json.dumps(request)), None
        )
        odd = {"custom_id": key, "metadata": {"key": key}, "result": garbage, "response": garbage}
        return whole(key, request) if garbage is None else odd

    vendor_server.line = line
    assert values(judged(vendor_server, tmp_path)) == [4.0] * 7
    assert len(vendor_server.online) == 1 + 3


def test_invalid_batch_results_are_requested_online(vendor_server: Any, tmp_path: Path) -> None:
    routed = vendor_server.batched

    def torn(method: str, path: str, query: Any, request: Any) -> Any:
        status, data = routed(method, path, query, request)
        if isinstance(data, bytes):
            return status, data[:40]
        if isinstance(data, dict) and data.get("response"):
            return status, data | {"response": {"inlinedResponses": ["what"]}}
        return status, data

    vendor_server.batched = torn
    assert values(judged(vendor_server, tmp_path)) == [4.0] * 7
    assert len(vendor_server.online) == 7


def test_a_wrong_key_ends_the_run_unpaid(
    vendor_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = "sk-some-other-key-than-this"
    monkeypatch.setenv(f"{vendor_server.vendor.upper()}_API_KEY", wrong)
    with pytest.raises(Refused, match=r"check the key|API key not valid") as raised:
        judged(vendor_server, tmp_path)
    assert wrong not in str(raised.value)
    assert vendor_server.online == []
    assert not [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and wrong.encode() in path.read_bytes()
    ]


def test_an_address_without_batches_is_refused_before_any_request(
    vendor_server: Any, tmp_path: Path
) -> None:
    vendor_server.batched = lambda *_: (404, {})
    with pytest.raises(ConfigError, match="no Batch API"):
        judged(vendor_server, tmp_path)
    assert vendor_server.online == []


# Parameters.


def test_an_unsupported_batch_parameter_is_refused_before_any_request(
    vendor_server: Any, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="batches take no logit_bias"):
        judged(vendor_server, tmp_path, extra_body={"logit_bias": {}})
    assert vendor_server.calls == []
