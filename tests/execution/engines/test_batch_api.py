"""The batch engine: every request is answered, none is submitted twice, and failed ones go online."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

import pytest

from judge import evaluate
from judge.config import load_config
from judge.core.budget import Budget
from judge.core.errors import (
    BudgetReached,
    ConfigError,
    DeadlineReached,
    ProviderError,
    Refused,
    StorageError,
    Transient,
)
from judge.core.format import dollars
from judge.core.records import Request, Response, Usage
from judge.execution.budget import BudgetLedger
from judge.execution.engines import EngineContext
from judge.execution.engines.batch_api import BatchEngine
from judge.execution.engines.batch_jobs import BatchJob, BatchJobStore
from judge.execution.layers.retried import Policy
from judge.execution.progress import JudgeProgress
from judge.execution.reply_client import Answer, gather
from judge.providers.openai import OpenAIProvider
from judge.providers.pricing import DEFAULT_URL, TokenPrices
from judge.providers.scripted import ScriptedProvider
from judge.run.cost_estimate import one_line_estimate
from judge.run.preparation import prepare
from tests.factories import cost_usd, has_line, user_request, write_jsonl
from tests.senders import Sender

KEY = "sk-secret-of-the-batch-tests"


def request(name: str, **params: Any) -> Request:
    return user_request(name, model="test-model", endpoint="e", **(params or {"temperature": 0}))


def named(count: int) -> list[Request]:
    return [request(f"text {n}") for n in range(count)]


class Session:
    """The provider, engine and answers of one process; the engine stores its state in a folder."""

    def __init__(self, server: Any, folder: Path, **limits: Any) -> None:
        self.provider = OpenAIProvider("test-model", base_url=server.url)
        self.counts, self.waits = JudgeProgress(), [0.0][:0]
        self.answers: dict[str, Answer] = {}
        self.ledger = limits.pop("ledger", None)
        store = BatchJobStore(folder, self.provider.endpoint)
        context = EngineContext(
            self.provider, folder, self.counts, self.ledger, limits.pop("deadline", None)
        )
        self.engine = BatchEngine(self.provider.batches, store, context)
        self.engine.sleep = self.sleep

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)

    async def run(self, requests: Iterable[Request]) -> dict[str, Answer]:
        try:
            return await self.ask(requests)
        finally:
            await self.engine.aclose()
            await self.provider.aclose()

    async def ask(self, requests: Iterable[Request]) -> dict[str, Answer]:
        sender = Sender(Policy(attempts=1), ledger=self.ledger)
        layer = self.engine.layer(sender.layers)

        async def ask_and_record(request: Request) -> None:
            answer: Answer
            try:
                answer = await layer.ask(request)
            except ProviderError as error:
                if error.stops != "never":
                    raise
                answer = error
            text = request.messages[0]["content"]
            assert text not in self.answers, "answered twice"
            self.answers[text] = answer

        await gather(ask_and_record(request) for request in requests)
        return self.answers


def run_async(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


@pytest.fixture
def echo(batch_server: Any, make_completion: Callable[..., Any]) -> Any:
    """A server that replies with the text of the prompt."""
    batch_server.answer = lambda body: (200, make_completion(body["messages"][0]["content"]))
    return batch_server


def echoed(answers: dict[str, Answer], count: int) -> bool:
    texts = {name: a.choices[0].text for name, a in answers.items() if isinstance(a, Response)}
    return texts == {f"text {n}": f"text {n}" for n in range(count)}


# Requests.


def test_the_first_request_goes_online_and_the_others_in_one_batch_file(
    echo: Any, tmp_path: Path
) -> None:
    session, requests = Session(echo, tmp_path), named(10)
    assert echoed(run_async(session.run(requests)), 10)
    assert [body["messages"][0]["content"] for body in echo.online] == ["text 0"]
    assert echo.asked == dict.fromkeys((one.key() for one in requests[1:]), 1)
    assert echo.uploads == 1
    assert session.counts.sent == 9
    assert session.counts.batched == Usage(900, 9, 576)
    assert (session.counts.batch_status, session.counts.remarks) == ("", [])
    assert not list(tmp_path.glob("*.json"))


def test_batch_files_use_limits_learned_from_the_first_request(
    batch_server: Any, tmp_path: Path, make_completion: Any
) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "logprobs" in body or "reasoning_effort" in body:
            return 400, {"error": {"message": "Unknown parameter: logprobs", "param": "logprobs"}}
        return 200, make_completion("4")

    batch_server.answer = answer
    answers = run_async(
        Session(batch_server, tmp_path).run(request(f"text {n}", top_logprobs=20) for n in range(5))
    )
    assert all(isinstance(one, Response) and one.unmet == ("logprobs",) for one in answers.values())
    assert [sorted(body) for body in batch_server.bodies.values()] == [["messages", "model"]] * 4


@pytest.mark.parametrize("limits", [{"most_requests": 4}, {"most_bytes": 900}])
def test_batch_files_stay_within_the_size_limits(
    echo: Any, tmp_path: Path, limits: dict[str, int]
) -> None:
    session = Session(echo, tmp_path)
    for name, most in limits.items():
        setattr(session.provider.batches, name, most)
    assert echoed(run_async(session.run(named(14))), 14)
    sent = [content for name, content in echo.files.values() if name.startswith("judge-")]
    assert 4 <= len(sent) <= 5
    assert all(content.count(b"\n") <= 4 and len(content) <= 900 for content in sent)
    assert set(echo.asked.values()) == {1}


def test_each_request_is_one_line_of_the_batch_file(echo: Any, tmp_path: Path) -> None:
    text = "a\nb\u2028c\u2029d\x85e \ud83d\ude00 漢字 \ud800".encode(
        "utf-16", "surrogatepass"
    ).decode("utf-16", "replace")
    answers = run_async(Session(echo, tmp_path).run([request("first"), request(text)]))
    assert answers[text].choices[0].text == text


def test_no_requests_means_no_calls(echo: Any, tmp_path: Path) -> None:
    assert run_async(Session(echo, tmp_path).run([])) == {}
    assert echo.calls == []


def test_a_second_round_sends_no_request_online(echo: Any, tmp_path: Path) -> None:
    session = Session(echo, tmp_path)
    run_async(session.run(named(3)))
    run_async(session.run([request("later"), request("still later")]))
    assert len(echo.online) == 1
    assert echo.uploads == 2


# Replies.


def test_failed_lines_go_online(echo: Any, tmp_path: Path, make_completion: Any) -> None:
    bad = {"text 3", "text 5"}

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        text = body["messages"][0]["content"]
        if text in bad and len(echo.online) < 2:
            return 500, {"error": {"message": "oops"}}
        return (
            (400, {"error": {"message": "against the policy"}})
            if text == "text 5"
            else (200, make_completion(text))
        )

    echo.answer = answer
    session = Session(echo, tmp_path)
    answers = run_async(session.run(named(8)))
    assert isinstance(answers.pop("text 5"), Refused)
    assert sorted(body["messages"][0]["content"] for body in echo.online) == [
        "text 0",
        "text 3",
        "text 5",
    ]
    assert {name for name, one in answers.items() if isinstance(one, Transient)} <= {"text 3"}
    assert len(answers) == 7
    assert has_line(session.counts.remarks[0], "2 requests", "online", "full price")


@pytest.mark.parametrize("outcome", ["expired", "cancelled", "canceled", "EXPIRED", "failed"])
def test_requests_missing_from_a_batch_are_sent_online(
    echo: Any, tmp_path: Path, outcome: str
) -> None:
    echo.outcome, echo.returned, echo.looks = outcome, 4, 3
    session = Session(echo, tmp_path)
    assert echoed(run_async(session.run(named(11))), 11)
    brought = 0 if outcome == "failed" else 4
    assert len(echo.online) == 11 - brought
    assert session.counts.batched.completion_tokens == brought
    assert outcome.lower() in session.counts.remarks[0]
    assert ("no such model" in session.counts.remarks[0]) == (outcome == "failed")


def test_invalid_lines_of_a_batch_are_skipped(
    echo: Any, tmp_path: Path, make_completion: Any
) -> None:
    session = Session(echo, tmp_path)
    write_results = echo._write_results

    def garbled(batch: dict[str, Any]) -> None:
        write_results(batch)
        id = batch["output_file_id"]
        name, content = echo.files[id]
        whole, cut = content.splitlines(), b'{"custom_id": "x", "resp'
        strange = json.dumps(
            {"custom_id": "unknown", "response": {"status_code": 200, "body": make_completion("?")}}
        )
        empty = json.dumps(
            json.loads(whole[0]) | {"response": {"status_code": 200, "body": {"choices": 3}}}
        )
        echo.files[id] = (
            name,
            b"\n".join([b"[]", strange.encode(), empty.encode(), *whole[1:], whole[1], b"", cut]),
        )

    echo._write_results = garbled
    assert echoed(run_async(session.run(named(6))), 6)
    assert len(echo.online) == 2


def test_a_missing_output_file_is_not_an_answer(echo: Any, tmp_path: Path) -> None:
    echo.faults = [("GET /v1/files/.*/content", 404)]
    assert echoed(run_async(Session(echo, tmp_path).run(named(4))), 4)
    assert len(echo.online) == 4


def test_a_full_disk_ends_the_run_and_loses_nothing(
    echo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.BytesIO):
        def write(self, _: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("judge.execution.engines.batch_api.TemporaryFile", Full)
        with pytest.raises(StorageError, match="No space left"):
            run_async(Session(echo, tmp_path).run(named(4)))
    assert len(run_async(Session(echo, tmp_path).run(named(4)[1:]))) == 3
    assert echo.uploads == 1


# The provider's queue.


def test_a_full_queue_means_smaller_batches(echo: Any, tmp_path: Path) -> None:
    echo.room, echo.looks = 1200, 3
    # the server counts 125 tokens for each
    texts = [request(f"{n} " + "word " * 100) for n in range(33)]
    session = Session(echo, tmp_path)
    assert len(run_async(session.run(texts))) == 33
    assert len(echo.online) == 1
    assert set(echo.asked.values()) == {1}
    assert len(echo.asked) == 32
    running = [batch for batch in echo.batches.values() if batch["status"] == "completed"]
    assert len(running) >= 4
    assert session.counts.remarks == []


def test_the_engine_waits_for_a_queue_that_other_users_fill(echo: Any, tmp_path: Path) -> None:
    echo.room = 0
    session, tries = Session(echo, tmp_path), []

    async def sleep(seconds: float) -> None:
        tries.append(seconds)
        if len(tries) == 20:
            echo.room = None
        await asyncio.sleep(0)

    session.engine.sleep = sleep
    assert echoed(run_async(session.run(named(5))), 5)
    assert len(echo.online) == 1
    assert (tries[0], max(tries)) == (1, 60)


def test_a_request_too_large_for_the_queue_goes_online(echo: Any, tmp_path: Path) -> None:
    echo.room = 100
    session = Session(echo, tmp_path)
    answers = run_async(session.run([*named(3), request("word " * 1000)]))
    assert len(answers) == 4
    assert len(echo.online) == 2
    assert has_line(session.counts.remarks[0], "queue", "no room")


# No request is submitted twice.


@pytest.mark.parametrize("call", ["POST /v1/files", "POST /v1/batches"])
def test_a_submission_without_a_reply_is_found_again(echo: Any, tmp_path: Path, call: str) -> None:
    echo.faults = [(call, "lost"), ("GET /v1/(batches|files)", 503)]
    echo.page = 1
    for n in range(3):
        echo.files[f"other-{n}"] = (f"other-{n}.jsonl", b"")
        echo.batches[f"other-{n}"] = {
            "id": f"other-{n}",
            "metadata": None,
            "size": 0,
            "status": "completed",
        }
    assert echoed(run_async(Session(echo, tmp_path).run(named(5))), 5)
    assert (echo.uploads, echo.calls.count("POST /v1/batches")) == (1, 1)
    assert set(echo.asked.values()) == {1}


async def interrupted(
    session: Session, requests: list[Request], server: Any, after: Callable[[], bool]
) -> None:
    task = asyncio.create_task(session.run(requests))
    async with asyncio.timeout(60):
        while not after():
            await asyncio.sleep(0.01)
            if task.done():
                task.result()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def cancelled_session(server: Any, folder: Path, count: int = 6) -> Session:
    """Return a session that was cancelled while its batch was still running."""
    server.looks = 10**9
    session = Session(server, folder)
    run_async(interrupted(session, named(count), server, lambda: bool(server.polls)))
    server.looks = 1
    return session


def test_after_an_interruption_the_same_batch_is_fetched(echo: Any, tmp_path: Path) -> None:
    first = cancelled_session(echo, tmp_path)
    assert has_line(first.counts.batch_status, "1 in_progress", "0 of 5 requests")
    second = Session(echo, tmp_path)
    assert not {*run_async(second.run(named(6)[1:]))} ^ {f"text {n}" for n in range(1, 6)}
    assert (echo.uploads, len(echo.batches), len(echo.online)) == (1, 1, 1)
    assert second.counts.sent == 0
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.parametrize("lost", [("batch",), ("batch", "file")])
def test_a_batch_is_found_if_the_process_died_before_it_stored_the_id(
    echo: Any, tmp_path: Path, lost: tuple[str, ...]
) -> None:
    cancelled_session(echo, tmp_path)
    (state,) = tmp_path.glob("*.json")
    state.write_text(json.dumps(json.loads(state.read_text()) | dict.fromkeys(lost, "")))
    assert len(run_async(Session(echo, tmp_path).run(named(6)[1:]))) == 5
    assert (echo.uploads, len(echo.batches), len(echo.online)) == (1, 1, 1)


def test_a_file_without_a_batch_gets_one(echo: Any, tmp_path: Path) -> None:
    cancelled_session(echo, tmp_path)
    (state,) = tmp_path.glob("*.json")
    state.write_text(json.dumps(json.loads(state.read_text()) | {"batch": "", "file": ""}))
    echo.batches.clear()
    assert len(run_async(Session(echo, tmp_path).run(named(6)[1:]))) == 5
    assert (echo.uploads, len(echo.batches), len(echo.online)) == (1, 1, 1)


@pytest.mark.parametrize("damage", ["nothing sent", "torn"])
def test_unsent_requests_are_submitted_again(echo: Any, tmp_path: Path, damage: str) -> None:
    cancelled_session(echo, tmp_path)
    (state,) = tmp_path.glob("*.json")
    if damage == "torn":
        state.write_text('{"version": 1, "asked"')
    else:
        state.write_text(json.dumps(json.loads(state.read_text()) | {"batch": "", "file": ""}))
    echo.batches.clear()
    echo.files.clear()
    assert len(run_async(Session(echo, tmp_path).run(named(6)[1:]))) == 5
    # The first new request goes alone, because this process has learned nothing yet.
    assert len(echo.online) == 2
    assert list(tmp_path.glob("*.json")) == ([state] if damage == "torn" else [])


def test_a_batch_unknown_to_the_provider_is_submitted_again(echo: Any, tmp_path: Path) -> None:
    cancelled_session(echo, tmp_path)
    echo.batches.clear()
    session = Session(echo, tmp_path)
    assert len(run_async(session.run(named(6)[1:]))) == 5
    assert "no longer knew batch" in session.counts.remarks[0]


def test_unneeded_batch_replies_are_kept_for_the_next_run(echo: Any, tmp_path: Path) -> None:
    cancelled_session(echo, tmp_path)
    assert set(run_async(Session(echo, tmp_path).run(named(3)[1:]))) == {"text 1", "text 2"}
    assert set(run_async(Session(echo, tmp_path).run(named(6)[3:]))) == {
        "text 3",
        "text 4",
        "text 5",
    }
    assert (echo.uploads, len(echo.online)) == (1, 1)
    assert not list(tmp_path.glob("*.json"))


def test_two_concurrent_runs_share_a_batch(echo: Any, tmp_path: Path) -> None:
    async def both() -> None:
        echo.looks = 300  # the batch is still running when the second session submits
        sessions = [Session(echo, tmp_path), Session(echo, tmp_path)]
        for answers in await asyncio.gather(*(one.run(named(30)) for one in sessions)):
            assert echoed(answers, 30)

    run_async(both())
    assert len(echo.online) == 2
    assert set(echo.asked.values()) == {1}


def test_a_job_store_loads_only_the_jobs_of_its_endpoint(echo: Any, tmp_path: Path) -> None:
    BatchJobStore(tmp_path, "http://elsewhere").save(
        BatchJob(tmp_path / "x.json", "http://elsewhere", {"k": ("c", 0)}, [{}])
    )
    assert BatchJobStore(tmp_path, echo.url).load() == []
    assert len(BatchJobStore(tmp_path, "http://elsewhere").load()) == 1


def test_a_job_that_is_too_old_for_the_clock_is_left_out_and_kept(tmp_path: Path) -> None:
    store = BatchJobStore(tmp_path, "e")
    job = BatchJob(tmp_path / "x.json", "e", {"k": ("c", 0)}, [{}])
    store.save(job)
    today = job.path.stat().st_mtime
    os.utime(job.path, (0, 0))
    assert store.load() == []
    os.utime(job.path, (today, today))
    assert len(store.load()) == 1


def test_batch_draws_are_reused_for_any_choices_per_request(echo: Any, tmp_path: Path) -> None:
    part = BatchJob(tmp_path / "x.json", "e")
    eight = request("text", temperature=1, n=8)
    part.add(eight, {"model": "m", "messages": [], "n": 8, "prompt_cache_key": "k"})
    twenty = request("text", temperature=1, n=20)
    assert part.claim(twenty)
    assert part.shape(twenty) == {"n": 8}
    part.done(eight.key())
    assert (part.entries, part.expected) == ({}, {})


def test_state_files_contain_no_key_and_no_prompt(
    echo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    cancelled_session(echo, tmp_path)
    stored_bytes = b"".join(path.read_bytes() for path in tmp_path.rglob("*"))
    assert b"in_progress" not in stored_bytes
    assert b"batch-0" in stored_bytes
    assert KEY.encode() not in stored_bytes
    assert b"text 1" not in stored_bytes


# Server errors.


@pytest.mark.parametrize(
    ("after", "waits"),
    [(20.0, [20.0, 20.0]), (None, [1.0, 2.0]), (0.5, [1.0, 2.0]), (500.0, [60.0] * 2)],
)
def test_a_batch_call_obeys_retry_after_up_to_one_minute(
    echo: Any, tmp_path: Path, after: float | None, waits: list[float]
) -> None:
    session = Session(echo, tmp_path)
    errors = [Transient("busy", status=429, retry_after=after) for _ in range(2)]

    async def busy() -> None:
        if errors:
            raise errors.pop()

    session.provider.batches.check = busy  # type: ignore[method-assign]
    asyncio.run(session.run(named(1)))
    assert session.waits[:2] == waits


def test_an_unreachable_server_is_tried_three_times(echo: Any, tmp_path: Path) -> None:
    session = Session(echo, tmp_path)

    async def absent() -> None:
        raise Transient("cannot connect", unreachable=True, stops="if_first")

    session.provider.batches.check = absent  # type: ignore[method-assign]
    with pytest.raises(Transient, match="cannot connect"):
        asyncio.run(session.run(named(1)))
    assert session.waits == [1.0, 2.0]


def test_errors_while_polling_are_retried(echo: Any, tmp_path: Path) -> None:
    echo.looks = 5
    echo.faults = [("GET /v1/batches", 503), ("POST /v1/files", 429), ("POST /v1/batches", 500)]
    echo.faults += [
        ("GET /v1/batches/.*", 502),
        ("GET /v1/batches/.*", "lost"),
        ("GET /v1/files/.*/content", 500),
    ]
    assert echoed(run_async(Session(echo, tmp_path).run(named(5))), 5)
    assert echo.faults == []
    assert set(echo.asked.values()) == {1}


@pytest.mark.parametrize(("call", "status"), [("GET /v1/batches/.*", 401), ("POST /v1/files", 401)])
def test_a_wrong_key_ends_the_run(echo: Any, tmp_path: Path, call: str, status: int) -> None:
    echo.faults = [(call, status)]
    with pytest.raises(Refused, match="check the key"):
        run_async(Session(echo, tmp_path).run(named(5)))


def test_a_job_whose_upload_is_refused_leaves_nothing_under_way(echo: Any, tmp_path: Path) -> None:
    echo.faults = [("POST /v1/files", 401)]
    session = Session(echo, tmp_path)
    with pytest.raises(Refused):
        run_async(session.run(named(5)))
    assert session.engine.store.load() == []


@pytest.mark.parametrize("call", ["POST /v1/files", "GET /v1/batches/.*"])
def test_repeated_server_errors_end_the_run(echo: Any, tmp_path: Path, call: str) -> None:
    echo.faults = [(call, 503)] * 200
    with pytest.raises(Transient) as raised:
        run_async(Session(echo, tmp_path).run(named(3)))
    assert raised.value.stops == "always"
    assert len(echo.online) == 1


def test_an_address_without_a_batch_api_is_refused_before_any_request(
    echo: Any, tmp_path: Path
) -> None:
    echo.has_batches = False
    with pytest.raises(ConfigError, match="no Batch API"):
        run_async(Session(echo, tmp_path).run(named(3)))
    assert echo.calls == ["GET /v1/batches"]


@pytest.mark.parametrize("call", ["POST /v1/files", "POST /v1/batches"])
def test_a_server_that_refuses_the_first_batch_ends_the_run(
    echo: Any, tmp_path: Path, call: str
) -> None:
    echo.faults = [(call, 400)]
    session = Session(echo, tmp_path)
    with pytest.raises(Refused, match="400") as raised:
        run_async(session.run(named(5)))
    assert raised.value.stops == "always"
    assert has_line("\n".join(raised.value.__notes__), "engine", "batch", "online")
    # Nothing is in progress there, so a run without batches need not wait for it.
    assert session.engine.store.load() == []


# Limits of the run.


def of_102_bytes(count: int) -> list[Request]:
    """Return requests that reserve 1,118 tokens, and 218 after a reply, each of which costs 101."""
    return [request(f"{n} " + "word " * 20) for n in range(count)]


def test_a_budget_is_not_crossed(echo: Any, tmp_path: Path) -> None:
    ledger = BudgetLedger(Budget(1150, "tokens"))
    session = Session(echo, tmp_path, ledger=ledger)
    with pytest.raises(BudgetReached, match="1,150 tokens"):
        run_async(session.run(of_102_bytes(10)))
    assert 0 < len(session.answers) < 10
    assert ledger.spent == 101 * len(session.answers) <= 1150
    assert set(echo.asked.values()) == {1}


def test_a_short_budget_pays_for_one_batch_not_for_many_small_ones(
    echo: Any, tmp_path: Path
) -> None:
    ledger = BudgetLedger(Budget(3000, "tokens"))
    session = Session(echo, tmp_path, ledger=ledger)
    with pytest.raises(BudgetReached, match=r"the other \d+ can cost up to") as raised:
        run_async(session.run(of_102_bytes(40)))
    assert echo.uploads == 1
    # The first reply leaves 2,899 tokens, the price of 13 more in the worst case.
    assert len(session.answers) == 14
    assert "the other 26 can" in str(raised.value)


def test_the_budget_that_is_said_to_be_enough_pays_for_the_rest_in_one_batch(
    echo: Any, tmp_path: Path
) -> None:
    ledger = BudgetLedger(Budget(3000, "tokens"))
    session = Session(echo, tmp_path / "first", ledger=ledger)
    with pytest.raises(BudgetReached):
        run_async(session.run(of_102_bytes(40)))
    rest = of_102_bytes(40)[len(session.answers) :]
    enough = ledger.enough_for(len(rest), len(session.answers))
    resumed = Session(echo, tmp_path / "second", ledger=BudgetLedger(enough))
    assert len(run_async(resumed.run(rest))) == len(rest)
    assert echo.uploads == 2


def test_a_second_batch_is_sent_if_the_budget_left_covers_all_of_the_rest(
    echo: Any, tmp_path: Path
) -> None:
    ledger = BudgetLedger(Budget(3000, "tokens"))
    session = Session(echo, tmp_path, ledger=ledger)
    assert len(run_async(session.run(of_102_bytes(20)))) == 20
    assert echo.uploads == 2


def payer(model: str, endpoint: str) -> ScriptedProvider:
    provider = ScriptedProvider(lambda _: 4, model=model, endpoint=endpoint)
    provider.notice = ""
    return provider


def paid_in_dollars(monkeypatch: pytest.MonkeyPatch, requests: float) -> BudgetLedger:
    """Return a ledger with money for one answer and for `requests` times the maximum cost of a request.

    A token costs one dollar.
    """
    most = len("text 0") + 1016
    monkeypatch.setattr(
        "judge.execution.budget.prices_of", lambda *_, **__: TokenPrices(1.0, 1.0, 1.0, 1.0)
    )
    ledger = BudgetLedger(Budget(101 + requests * most, "usd"))
    assert ledger.covers(payer("test-model", "e"))
    return ledger


@pytest.mark.parametrize("budget", [1.6, 1.1])
def test_online_requests_do_not_wait_for_running_batches(
    budget: float, echo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll = echo._polled

    def first_expires(batch: dict[str, Any]) -> dict[str, Any]:
        echo.outcome = "expired" if batch["id"] == "batch-0" else "completed"
        return poll(batch)

    echo._polled = first_expires
    ledger = paid_in_dollars(monkeypatch, budget)
    session = Session(echo, tmp_path, ledger=ledger)
    session.provider.batches.most_requests = 1
    assert echoed(run_async(asyncio.wait_for(session.run(named(4)), 30)), 4)
    assert len(echo.asked) == 3
    assert len(echo.online) == 2
    assert ledger.spent == 2 * 101 + 2 * 101 / 2


def test_money_reserved_for_a_lost_batch_is_released(
    echo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo.faults = [("GET /v1/batches/.*", 404)]
    session = Session(echo, tmp_path, ledger=paid_in_dollars(monkeypatch, 0.95))
    session.provider.batches.most_requests = 1
    assert echoed(run_async(asyncio.wait_for(session.run(named(3)), 30)), 3)


def test_batch_requests_cost_half() -> None:
    used = Usage(1_000_000, 1_000, 100_000)
    price = cost_usd("gpt-5.4-mini", DEFAULT_URL, used)
    assert price
    assert cost_usd("gpt-5.4-mini", DEFAULT_URL, used, batched=used) == pytest.approx(price / 2)
    one = Request(
        "gpt-5.4-mini",
        ({"role": "user", "content": "x" * 1000},),
        {"max_tokens": 100},
        endpoint=DEFAULT_URL,
    )
    ledger = BudgetLedger(Budget(10, "usd"))
    assert ledger.covers(payer(one.model, DEFAULT_URL))
    whole, half = ledger.try_reserve(one), ledger.try_reserve(one, 0.5)
    assert whole is not None
    assert half == pytest.approx(whole / 2)
    ledger.commit(half or 0, one, Usage(1000, 10), 0.5)
    assert ledger.spent == pytest.approx(
        (cost_usd(one.model, DEFAULT_URL, Usage(1000, 10)) or 0) / 2
    )


def test_at_the_deadline_batches_are_left_running(echo: Any, tmp_path: Path) -> None:
    echo.looks = 10**9

    async def late() -> None:
        session = Session(echo, tmp_path, deadline=asyncio.get_running_loop().time() + 0.3)
        with pytest.raises(DeadlineReached, match="batches at the provider"):
            await session.run(named(4))

    run_async(late())
    echo.looks = 1
    assert len(run_async(Session(echo, tmp_path).run(named(4)[1:]))) == 3
    assert echo.uploads == 1


def test_an_online_reply_after_the_end_of_a_run_is_no_error(echo: Any, tmp_path: Path) -> None:
    poll = echo._polled

    def only_the_first_fails(batch: dict[str, Any]) -> dict[str, Any]:
        echo.outcome = "failed" if batch["id"] == "batch-0" else "completed"
        return poll(batch)

    echo._polled = only_the_first_fails
    # The second look at the other batch ends the run, after the first one's request went online.
    echo.faults = [("GET /v1/batches/batch-1", 503), ("GET /v1/batches/batch-1", 401)]
    session = Session(echo, tmp_path)
    session.provider.batches.most_requests = 1
    complete = session.provider.complete

    async def run() -> None:
        run_is_over = asyncio.Event()

        async def held(request: Request) -> Response:
            if echo.online:
                await run_is_over.wait()
            return await complete(request)

        session.provider.complete = held  # type: ignore[method-assign]
        with pytest.raises(Refused):
            await session.ask(named(3))
        run_is_over.set()
        await asyncio.gather(*session.engine._tasks)
        await session.provider.aclose()

    run_async(run())
    assert len(echo.online) == 2


# Runs.


DATA = [
    {"item": str(n), "system": "s", "source": f"Source {n}.", "output": f"Output {n}."}
    for n in range(7)
]


def judged(server: Any, **options: Any) -> Any:
    settings = {
        "criteria": ["relevance"],
        "metrics": [],
        "model": "test-model",
        "base_url": server.url,
    }
    return evaluate(DATA, **{**settings, **options})


def test_a_run_gives_the_same_table_as_online(batch_server: Any, tmp_path: Path) -> None:
    batched = judged(batch_server, engine="batch", cache=tmp_path / "a")
    assert (len(batch_server.online), len(batch_server.asked)) == (1, 6)
    online = judged(batch_server, cache=tmp_path / "b")
    assert sorted(batched.table.scores, key=str) == sorted(online.table.scores, key=str)
    assert {score.value for score in batched.table.scores} == {4.25}
    assert batched.info.usage == online.info.usage
    judged(batch_server, engine="batch", cache=tmp_path / "a")
    assert (batch_server.uploads, len(batch_server.online)) == (1, 8)


def test_the_price_of_all_draws_of_a_reasoning_model_is_that_of_batches(
    batch_server: Any, make_completion: Callable[..., Any], tmp_path: Path
) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "logprobs" in body:
            return 400, {"error": {"message": "logprobs is not supported", "param": "logprobs"}}
        n = body.get("n", 1)
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 701 * n,
            "completion_tokens_details": {"reasoning_tokens": 700 * n},
        }
        return 200, make_completion(usage=usage) | {"choices": make_completion()["choices"] * n}

    batch_server.answer = answer
    # With free input tokens, 20 draws cost four times as much as the 5 that are drawn.
    model = {"name": "test-model", "price": {"input": 0, "output": 1_000}}
    result = judged(batch_server, engine="batch", cache=tmp_path, model=model)
    assert f"({dollars(4 * result.info.cost.usd)})" in " ".join(result.info.notes)


def test_draws_go_in_batches_after_the_first_requests_learn_the_limits(
    batch_server: Any, tmp_path: Path
) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "logprobs" in body:
            return 400, {"error": {"message": "logprobs is not supported", "param": "logprobs"}}
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "4"},
        }
        return 200, {
            "model": "m",
            "choices": [choice] * min(body.get("n", 1), 3),
            "usage": {"prompt_tokens": 1},
        }

    batch_server.answer = answer
    result = judged(batch_server, engine="batch", cache=tmp_path, draws=5)
    assert {score.provenance.n for score in result.table.scores} == {5}
    assert not result.failures
    assert set(batch_server.asked.values()) == {1}
    assert len(batch_server.asked) >= 6


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"model": "decisions/test-model"}, "only chat endpoints"),
        ({"model": ScriptedProvider(lambda _: 4)}, "only chat endpoints"),
        ({"cache": False}, "leave out cache=False"),
        ({"engine": "bath"}, "did you mean 'batch'"),
    ],
)
def test_refuses_unbatchable_requests_before_any_request(
    batch_server: Any, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        judged(batch_server, **{"engine": "batch", **options})
    assert batch_server.calls == []


def command(server: Any, folder: Path) -> subprocess.Popen[str]:
    data = folder / "data.jsonl"
    write_jsonl(data, DATA)
    words = [
        "run",
        str(data),
        *[
            "--criteria",
            "relevance",
            "--metrics",
            "none",
            "--engine",
            "batch",
            "--model",
            "test-model",
        ],
    ]
    words += [
        "--base-url",
        server.url,
        "--cache",
        str(folder / "cache"),
        "--out",
        str(folder / "out"),
    ]
    return subprocess.Popen(
        [sys.executable, "-c", "from judge.cli import main; main()", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["uploaded", "polled"])
def test_a_killed_run_resumes_with_the_same_command(
    batch_server: Any, tmp_path: Path, wait_until: Callable[..., None], moment: str
) -> None:
    batch_server.looks = 10**9
    process = command(batch_server, tmp_path)
    wait_until(
        lambda: bool(batch_server.polls if moment == "polled" else batch_server.uploads), process
    )
    process.kill()
    process.communicate()
    batch_server.looks = 1
    process = command(batch_server, tmp_path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, (out, err)
    assert (batch_server.uploads, len(batch_server.batches), len(batch_server.online)) == (1, 1, 1)
    assert set(batch_server.asked.values()) == {1}
    assert (
        json.loads((tmp_path / "out" / "run.json").read_text())["info"]["requests"]["answered"] == 6
    )


@pytest.mark.slow
def test_an_interrupted_batch_run_says_how_to_resume(
    batch_server: Any, tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    batch_server.looks = 10**9
    process = command(batch_server, tmp_path)
    wait_until(lambda: bool(batch_server.polls), process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert has_line(err, "Still in progress", "1 in_progress", "0 of 6 requests")
    assert "Run the same command again" in err
    plan = {
        "base_url": batch_server.url,
        "model": "test-model",
        "criteria": ["relevance"],
        "cache": tmp_path / "cache",
    }
    notes = {}
    for engine in ("local", "batch"):
        prepared = prepare(load_config(options=plan | {"engine": engine}), DATA)
        _, notes[engine] = one_line_estimate(prepared).split("\n")
    assert has_line(notes["local"], "6 requests", "in progress in batches", "pays for")
    assert has_line(notes["batch"], "6 requests", "in progress in batches", "collects", "not pay")


def test_requests_during_an_upload_go_into_the_next_file(echo: Any, tmp_path: Path) -> None:
    session = Session(echo, tmp_path)
    upload = session.engine.api.upload
    late: list[asyncio.Task[dict[str, Answer]]] = []

    async def slowly(*args: Any) -> str:
        if not late:
            late.append(asyncio.create_task(session.ask([request("late"), request("later")])))
            await asyncio.sleep(0.05)
        return await upload(*args)

    session.engine.api.upload = slowly  # type: ignore[method-assign]

    async def whole() -> None:
        try:
            await session.ask(named(4))
            await asyncio.wait_for(late[0], 20)
        finally:
            await session.engine.aclose()
            await session.provider.aclose()

    run_async(whole())
    assert {"late", "later"} <= session.answers.keys()
    assert set(echo.asked.values()) == {1}
