"""Without a cache, a run that records resumes from its recording."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import JudgeError, Refused
from tests.factories import has_line

ROWS = [{"item": str(n), "output": f"Lamp {n} is lit.", "source": f"Lamp {n}."} for n in range(6)]
SERVER = "https://judge.invalid/v1"


def provider(keys: list[str], reply: str = "2", last: int = 10_000) -> judge.ScriptedProvider:
    """Return a judge that answers `replies` requests and then runs out of quota."""

    def answer(request: Any) -> str:
        if len(keys) == last:
            raise Refused("no money left", stops="always")
        keys.append(request.key())
        return reply

    return judge.ScriptedProvider(answer, endpoint=SERVER)


def evaluate(model: Any, options: dict[str, Any]) -> Any:
    return judge.evaluate(ROWS, ["fluency"], model=model, metrics=[], **options)


def rank(model: Any, options: dict[str, Any]) -> Any:
    rows = [
        row | {"system": name, "output": f"{row['output']} {name}"} for row in ROWS for name in "ab"
    ]
    return judge.rank(rows, model=model, **options)


@pytest.mark.parametrize("weighting", ["single", "samples"])
@pytest.mark.parametrize(("command", "reply"), [(evaluate, "2"), (rank, "A")])
def test_resumes_without_a_cache_from_its_recording(
    tmp_path: Path, command: Callable[..., Any], reply: str, weighting: str
) -> None:
    options = {"cache": False, "record": tmp_path / "calls.jsonl", "weighting": weighting}
    options |= {"draws": 3} if weighting == "samples" else {}
    whole: list[str] = []
    command(provider(whole, reply), {**options, "record": tmp_path / "other.jsonl"})
    keys: list[str] = []
    with pytest.raises(JudgeError) as caught:
        command(provider(keys, reply, last=5), options)
    assert has_line(caught.value.__notes__, "recording answers", "paid for")
    assert len(keys) == 5
    result = command(provider(keys, reply), options)
    assert sorted(keys) == sorted(whole)
    assert result.failures == ()
    repeated: list[str] = []
    command(provider(repeated, reply), options)
    assert repeated == []
    assert (tmp_path / "calls.jsonl").read_bytes() == (tmp_path / "other.jsonl").read_bytes()


def test_a_recording_of_a_different_server_is_not_used(tmp_path: Path) -> None:
    options = {"cache": False, "record": tmp_path / "calls.jsonl", "weighting": "single"}
    first: list[str] = []
    evaluate(provider(first), options)
    second: list[str] = []
    other = provider(second)
    other.endpoint = "https://another.invalid/v1"
    evaluate(other, options)
    assert len(second) == len(first) == 6


def test_failures_in_a_recording_can_be_retried_without_a_cache(tmp_path: Path) -> None:
    options = {
        "cache": False,
        "record": tmp_path / "calls.jsonl",
        "weighting": "single",
        "repair": "off",
    }
    vague = judge.ScriptedProvider(lambda _: "no idea", endpoint=SERVER)
    assert len(evaluate(vague, options).failures) == 6
    keys: list[str] = []
    assert evaluate(provider(keys), options | {"retry_failed": True}).failures == ()
    assert len(keys) == 6
