"""Batches of Anthropic and Google in their own formats, against servers that follow the documented protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge import evaluate

DATA = [{"item": str(n), "system": "s", "source": f"Source {n}.", "output": f"Output {n}."} for n in range(7)]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.execution.engines.batch_api._SOONEST", 0.01)
    monkeypatch.setattr("judge.execution.engines.batch_api._LATEST", 0.02)


def judged(server: Any, folder: Path, **options: Any) -> Any:
    given = {
        "criteria": ["relevance"],
        "metrics": [],
        "engine": "batch",
        "weighting": "single",
        "cache": folder / "cache",
    }
    return evaluate(
        options.pop("data", DATA),
        **{**given, "model": f"{server.vendor}/test-model", "base_url": server.url, **options},
    )


def creations(server: Any) -> int:
    return sum(call.startswith("POST") and not call.endswith("/chat/completions") for call in server.calls)


def values(result: Any) -> list[float]:
    return [score.value for score in result.table.scores]


def test_a_run_gives_the_same_table_as_online(vendor_server: Any, tmp_path: Path) -> None:
    batched = judged(vendor_server, tmp_path)
    assert (len(vendor_server.asked), creations(vendor_server)) == (6, 1)
    online = judged(vendor_server, tmp_path, engine="local", cache=tmp_path / "other")
    assert sorted(batched.table.scores, key=str) == sorted(online.table.scores, key=str)
    assert values(batched) == [4.0] * 7
    used = batched.info["usage"]
    assert (used["prompt_tokens"], used["completion_tokens"], used["cached_tokens"]) == (70, 21, 24)
    judged(vendor_server, tmp_path)
    assert creations(vendor_server) == 1


def test_a_failed_request_goes_online_and_is_a_row_of_its_own(
    vendor_server: Any, tmp_path: Path, make_completion: Any
) -> None:
    vendor_server.fates = {"Output 2.": "errored"}

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        refused = "Output 2." in json.dumps(body)
        return (400, {"error": {"message": "against the policy"}}) if refused else (200, make_completion("4"))

    vendor_server.answer = answer
    result = judged(vendor_server, tmp_path)
    assert values(result) == [4.0] * 6
    (failure,) = result.failures
    assert (failure.item, "against the policy" in failure.message) == ("2", True)
    assert "left 1 request to be asked online" in str(result.info)


def test_what_expired_goes_online(vendor_server: Any, tmp_path: Path) -> None:
    vendor_server.fates = {"Output 2.": "expired", "Output 3.": "expired"}
    result = judged(vendor_server, tmp_path)
    assert values(result) == [4.0] * 7
    brought = 4 if vendor_server.vendor == "anthropic" else 0  # Google: "the batch has no results to retrieve"
    assert len(vendor_server.online) == 7 - brought
