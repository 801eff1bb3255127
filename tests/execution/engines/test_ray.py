"""The Ray engine: same replies as `local` even if workers die, and checks before workers start."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judge import evaluate
from judge.core.budget import Budget
from judge.core.errors import (
    ConfigError,
    JudgeError,
    MissingExtra,
    ParseError,
    ProviderError,
    Refused,
    Transient,
)
from judge.core.records import Choice, Request, Response, Usage
from judge.execution.budget import BudgetLedger
from judge.execution.engines import EngineContext, create_engine, ray
from judge.execution.engines.ray import Placement, RayEngine
from judge.execution.layers.retried import Policy
from judge.execution.progress import JudgeProgress
from judge.execution.rate_limit import RateLimiter
from judge.execution.reply_client import Answer, gather
from judge.providers.openai import OpenAIProvider
from judge.providers.scripted import ScriptedProvider
from judge.results.loading import load
from tests.factories import has_line, write_jsonl
from tests.senders import Sender

ROOT = Path(__file__).resolve().parents[3]
KEY = "sk-secret-of-the-ray-tests"
Complete = Callable[[Request], Coroutine[Any, Any, Response]]


def request(name: str, group: str = "", **params: Any) -> Request:
    parameters = params or {"temperature": 0}
    return Request(
        "m", ({"role": "user", "content": name},), parameters, endpoint="e", prefix=(group, 0)
    )


def named(count: int) -> list[Request]:
    return [request(f"text {n}") for n in range(count)]


def text(one: Request) -> str:
    return one.messages[0]["content"]


def provider_with(answer: Complete, **attributes: Any) -> Any:
    """Return a provider of a local class. Ray pickles the class by value, as workers cannot import this file."""

    class Provider:
        name, model, endpoint, notice, decides = "own", "m", "e", "", False

        @property
        def learned(self) -> dict[str, Any]:
            return {}

        async def complete(self, request: Request) -> Response:
            return await answer(request)

        async def aclose(self) -> None:
            return

    for attribute, value in attributes.items():
        setattr(Provider, attribute, value)
    return Provider()


class Session:
    """Send the requests of one judge through an engine and record the answers."""

    def __init__(
        self, provider: Any, *, engine: str = "ray", workers: int = 1, **limits: Any
    ) -> None:
        self.counts, self.answers = JudgeProgress(), dict[str, Answer]()
        self.ledger = limits.get("ledger")
        self.place = EngineContext(provider, None, self.counts, self.ledger, workers=workers)
        self.engine: Any = create_engine(engine, self.place)
        limits = {"policy": Policy(attempts=4, base=0.0)} | limits
        limiter = limits.get("rate_limiter") or RateLimiter(1_000_000)
        self.sender = Sender(limits["policy"], limiter, self.ledger, counts=self.counts)
        self.layer = self.engine.layer(self.sender.layers)
        self.on_answer: Callable[[Answer], None] = lambda _: None

    async def round(self, requests: Iterable[Request], concurrency: int = 8) -> None:
        slots = asyncio.Semaphore(concurrency)

        async def ask(request: Request) -> None:
            answer: Answer
            async with slots:
                try:
                    answer = await self.layer.ask(request)
                except ProviderError as error:
                    if error.stops != "never":
                        raise
                    answer = error
            assert text(request) not in self.answers, "answered twice"
            self.answers[text(request)] = answer
            self.on_answer(answer)

        await gather(ask(request) for request in requests)

    async def close(self) -> None:
        await self.engine.aclose()

    def run(self, requests: Iterable[Request], concurrency: int = 8) -> dict[str, Answer]:
        async def close_after_round() -> None:
            try:
                await asyncio.wait_for(self.round(requests, concurrency), 120)
            finally:
                await self.close()

        asyncio.run(close_after_round())
        return self.answers


# Tests that do not need Ray.


def test_a_missing_package_names_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'textjudge[ray]'")):
        create_engine("ray", EngineContext(ScriptedProvider(lambda _: "4"), None, JudgeProgress()))


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ray://10.0.0.1:10001", "write auto"),
        ("somewhere", "HOST:PORT"),
        ("host:port", "HOST:PORT"),
        (":6379", "HOST:PORT"),
    ],
)
def test_an_invalid_cluster_address_is_refused(
    address: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(ConfigError, match=re.escape(message)):
        ray.check_address()


def test_an_unreachable_cluster_address_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
    with pytest.raises(
        ConfigError, match=rf"RAY_ADDRESS 127\.0\.0\.1:{port} .*refused.*ray start --head"
    ):
        ray.check_address()


@pytest.mark.parametrize("address", ["", "auto", "local"])
def test_an_automatic_address_is_left_to_ray(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    ray.check_address()


def nodes(*cores: dict[str, float]) -> list[dict[str, Any]]:
    return [
        {
            "NodeID": f"id{n}",
            "NodeManagerHostname": f"host{n}",
            "Alive": has.pop("alive", True),
            "Resources": has,
        }
        for n, has in enumerate(cores)
    ]


@pytest.mark.parametrize(
    ("node_data", "n_workers", "host_names"),
    [
        ([{"CPU": 4.0}, {"CPU": 4.0}], None, ["host0", "host1"]),
        ([{}, {"CPU": 4.0}], None, ["host1"]),  # a head node without CPUs for work
        ([{}], None, ["host0"]),
        ([{"CPU": 4.0, "alive": False}, {"CPU": 4.0}], None, ["host1"]),
        ([{"CPU": 4.0}, {"CPU": 4.0}], 3, ["host0", "host1", "host0"]),
        ([{"CPU": 4.0}, {"CPU": 4.0}], 1, ["host0"]),
        ([{"CPU": 4.0}, {"CPU": 4.0, "GPU": 2.0}], None, ["host0", "host1"]),
    ],
)
def test_workers_are_placed_by_free_cores(
    node_data: list[dict[str, float]],
    n_workers: int | None,
    host_names: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ray:
        @staticmethod
        def nodes() -> list[dict[str, Any]]:
            return nodes(*(dict(one) for one in node_data))

    monkeypatch.setattr(ray, "ray", lambda: Ray)
    assert [placement.name for placement in ray.placements(n_workers)] == host_names


ERRORS: list[JudgeError] = [
    Transient(
        "m",
        status=503,
        retry_after=1.5,
        unreachable=True,
        billed=True,
        stops="if_first",
        limits={"a": "b"},
    ),
    Refused("m", status=400, param="n", billed=True, stops="always"),
    ParseError("m", "raw"),
    ConfigError("m"),
]


async def worker_result(provider: Any, one: Request, lesson: Any = None) -> tuple[Any, Any]:
    """Return what a worker sends back: the reply or error, and the limits that its provider learned."""
    raw = await ray.answer(provider, one, b"" if lesson is None else pickle.dumps(lesson))
    reply, learned = pickle.loads(raw)
    return reply, learned


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_of_a_worker_keeps_its_type_message_and_fields(error: JudgeError) -> None:
    async def answer(_: Request) -> Response:
        error.add_note("noted")
        raise error

    returned, _ = asyncio.run(worker_result(provider_with(answer), request("x")))
    assert (type(returned), str(returned), returned.__dict__) == (type(error), "m", error.__dict__)


def test_learned_limits_are_shared_between_workers() -> None:
    async def answer(one: Request) -> Response:
        provider.shared_state += text(one)
        return Response((Choice("4"),))

    provider = provider_with(answer, shared_state="a")
    assert asyncio.run(worker_result(provider, request("+"), "b"))[1] == "b+"
    assert asyncio.run(worker_result(provider, request("")))[1] is None


def test_a_group_stays_with_few_workers_while_others_are_busy() -> None:
    engine = RayEngine(EngineContext(ScriptedProvider(lambda _: "4"), None, JudgeProgress()))
    workers = [ray._Worker(n, Placement("", f"w{n}"), ready=True) for n in range(3)]
    engine._workers = list(workers)

    def picked(group: str) -> Any:
        """Return the worker that gets a request of a group. The request stays in flight."""
        worker = engine._pick(group)
        worker.load += 1
        return worker

    (first,) = {picked("g") for _ in range(9)}
    second = picked("g")
    assert second is not first
    for _ in range(40):
        picked("g")
    assert all(worker.load > 4 for worker in workers)
    first.ready = False
    assert picked("g") is not first
    assert engine._pick("").load == min(worker.load for worker in workers if worker.ready)
    assert {picked(f"{n}") for n in range(20)} == set(workers) - {first}


def test_ray_workers_without_the_ray_engine_adds_a_note() -> None:
    result = evaluate(
        [{"item": "1", "system": "a", "source": "S", "output": "O"}], ["coherence"], cache=False, metrics=[],
        model=ScriptedProvider(lambda _: "4"), ray_workers=2,
    )  # fmt: skip
    assert "ray_workers had no effect." in result.info.notes


def test_a_cancelled_start_disconnects_from_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that connects cannot be cancelled, so the engine disconnects after it has ended."""
    begun, may_end, events = threading.Event(), threading.Event(), list[str]()

    def join(_: int) -> None:
        begun.set()
        assert may_end.wait(60)
        events.append("joined")

    monkeypatch.setattr(ray, "connect", join)
    monkeypatch.setattr(ray, "disconnect", lambda: events.append("left"))

    async def go() -> None:
        counts = JudgeProgress(batch_status="what others have said")
        engine = RayEngine(EngineContext(ScriptedProvider(lambda _: "4"), None, counts))
        starting = asyncio.create_task(engine._start())
        await asyncio.to_thread(begun.wait)
        assert counts.batch_status == "Ray: workers are starting"
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert counts.batch_status == "what others have said"
        may_end.set()
        await engine.aclose()

    asyncio.run(go())
    assert events == ["joined", "left"]


# Tests on a local cluster. This process is already connected to it, as in a notebook.

on_ray = pytest.mark.ray


@pytest.fixture(scope="module")
def connected() -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="needs Ray: pip install textjudge[ray]")
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    ray_options = {"log_to_driver": False, "configure_logging": False, "include_dashboard": False}
    ray.init(address="local", num_cpus=2, object_store_memory=200 << 20, **ray_options)
    yield ray
    ray.shutdown()


SAMPLES = [
    {
        "item": f"d{i}",
        "system": system,
        "source": f"Source {i}.",
        "output": f"Summary {i} by {system}.",
    }
    for i in range(6)
    for system in ("a", "b")
]


def table(result: Any) -> list[Any]:
    return [result.table.columns, result.table.scores, result.table.failures]


@on_ray
def test_ray_scores_equal_local_scores_in_a_running_loop(connected: Any) -> None:
    """Each judge of a panel has its own workers."""

    def script(one: Any) -> Any:
        prompt = one.messages[0]["content"]
        return (
            {"4": 0.75, "5": 0.25}
            if "by a" in prompt
            else {"1": 0.5, "2": 0.5}
            if "3" in prompt
            else "no score"
        )

    async def notebook(engine: str) -> Any:
        judges = [
            ScriptedProvider(script, model="one"),
            ScriptedProvider(lambda _: "5", model="two"),
        ]
        return evaluate(
            SAMPLES, model=judges, engine=engine, criteria=["coherence", "fluency"], metrics=[], cache=False, draws=3,
            ray_workers=1,
        )  # fmt: skip

    local, over_ray = (asyncio.run(notebook(engine)) for engine in ("local", "ray"))
    assert table(over_ray) == table(local)
    assert connected.is_initialized()


@on_ray
def test_learned_limits_are_shared_over_http(
    connected: Any,
    chat_server: Any,
    make_completion: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server rejects `n`. Only one worker sends `n`; the others learn from its error."""

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if body.get("n", 1) > 1:
            return (
                400,
                {},
                {
                    "error": {
                        "message": "n is not supported",
                        "param": "n",
                        "type": "invalid_request_error",
                    }
                },
            )
        return 200, {}, make_completion(str(1 + len(body["messages"][0]["content"]) % 5))

    chat_server.answer = answer
    tables = []
    for engine in ("local", "ray"):
        provider = OpenAIProvider("m", base_url=chat_server.url)
        chat_server.bodies.clear()
        result = evaluate(
            SAMPLES, model=provider, engine=engine, criteria=["coherence"], metrics=[], cache=False,
            weighting="samples", draws=4, ray_workers=2,
        )  # fmt: skip
        tables.append(table(result))
    assert tables[0] == tables[1]
    assert sum(body.get("n", 1) > 1 for body in chat_server.bodies) == 1
    assert provider.learned == {"n": 1}
    (judge_info,) = result.info.judges.values()
    assert judge_info.learned == {"n": 1}


@on_ray
def test_workers_generate_the_outputs_of_systems(
    connected: Any, chat_server: Any, make_completion: Callable[..., Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "p.jinja").write_text("Write about {{ source }}", encoding="utf-8")
    chat_server.answer = lambda body: (200, {}, make_completion("4"))
    systems: Any = {"new": {"prompt": tmp_path / "p.jinja", "model": "writer"}}
    rows = [{"item": f"{n}", "source": f"text {n}"} for n in range(6)]
    engines, complete = list[RayEngine](), RayEngine.complete

    async def counted(engine: RayEngine, request: Request) -> Response:
        engines.append(engine)
        return await complete(engine, request)

    monkeypatch.setattr(RayEngine, "complete", counted)
    result = evaluate(
        rows, model="reader", base_url=chat_server.url, engine="ray", systems=systems, criteria=["coherence"],
        metrics=[], cache=False, ray_workers=1, weighting="single",
    )  # fmt: skip
    assert [score.value for score in result.table.scores] == [4.0] * 6
    assert len(engines) == len(chat_server.bodies) == 12
    assert len(set(engines)) == 2


@on_ray
def test_workers_share_the_work_and_a_group_stays_together(connected: Any) -> None:
    async def answer(one: Request) -> Response:
        await asyncio.sleep(0.01)
        return Response((Choice(str(os.getpid())),))

    session = Session(provider_with(answer), workers=2)
    session.run([request(f"{n}", f"group {n % 15}") for n in range(60)])
    by_group = [
        {session.answers[f"{n}"].choices[0].text for n in range(g, 60, 15)} for g in range(15)
    ]  # type: ignore[union-attr]
    assert [len(pids) for pids in by_group] == [1] * 15
    assert len(set.union(*by_group)) == 2
    assert str(os.getpid()) not in set.union(*by_group)


@on_ray
def test_a_reply_that_cannot_be_pickled_does_not_kill_the_worker(connected: Any) -> None:
    async def answer(one: Request) -> Response:
        import threading

        odd: Any = {"x": threading.Lock()} if one.messages[0]["content"] == "text 7" else {}
        return Response((Choice("4"),), limits=odd)

    session = Session(provider_with(answer))
    session.run(named(20))
    failed = {
        name: answer for name, answer in session.answers.items() if not isinstance(answer, Response)
    }
    assert list(failed) == ["text 7"]
    refused = failed["text 7"]
    assert isinstance(refused, Refused)
    assert re.search("the worker on .* failed: TypeError.*lock", str(refused))
    assert refused.billed
    assert (session.counts.sent, session.counts.remarks) == (20, [])


@on_ray
def test_a_program_error_is_not_a_worker_death(connected: Any) -> None:
    """The error ends the run under its own name. Other workers do not retry the request."""
    home = os.getpid()

    async def answer(one: Request) -> Response:
        answered.append(1)
        return Response((Choice("4"),))

    answered: list[int] = []

    def state(_: Any) -> Any:
        return "as here" if os.getpid() == home or not answered else {}["nothing"]

    session = Session(provider_with(answer, shared_state=property(state)), workers=1)
    with pytest.raises(Refused, match=r"worker on \S+ failed: KeyError\('nothing'\)") as caught:
        session.run(named(5))
    assert caught.value.stops == "always"
    assert session.counts.remarks == []


@on_ray
def test_a_killed_worker_loses_only_its_requests(connected: Any) -> None:
    async def answer(one: Request) -> Response:
        await asyncio.sleep(0.02)
        return Response((Choice(str(os.getpid())),))

    session = Session(provider_with(answer), workers=2)

    def kill(answer: Answer) -> None:
        assert isinstance(answer, Response), answer
        if len(session.answers) in (100, 200):
            os.kill(int(answer.choices[0].text), signal.SIGKILL)

    session.on_answer = kill
    session.run(named(400), concurrency=16)
    assert len(session.answers) == 400
    pids = {
        answer.choices[0].text
        for answer in session.answers.values()
        if isinstance(answer, Response)
    }
    assert len(pids) in (3, 4)  # the worker that starts last may get no requests
    lost = session.counts.retried
    assert 1 <= lost <= 32
    assert session.counts.sent == 400 + lost
    (note,) = session.counts.remarks
    assert re.match(rf"2 Ray workers died; {lost} requests?\b", note)


@on_ray
def test_workers_that_all_die_stop_the_run(connected: Any) -> None:
    async def answer(one: Request) -> Response:
        os._exit(1)

    session = Session(provider_with(answer), workers=2, policy=Policy(attempts=100, base=0.0))
    with pytest.raises(Refused, match=r"workers in a row died on \S+") as caught:
        session.run(named(10), concurrency=1)
    assert caught.value.stops == "always"
    assert session.counts.sent <= 7  # three with each worker, and one waiting
    assert not session.answers


@on_ray
def test_only_a_request_that_kills_workers_is_abandoned(connected: Any) -> None:
    """The request runs alone before it is abandoned, so it alone can have killed the worker."""

    async def answer(one: Request) -> Response:
        if one.messages[0]["content"] == "text 2":
            os._exit(1)
        return Response((Choice("4"),))

    session = Session(provider_with(answer), policy=Policy(attempts=2, base=0.0))
    session.run(named(6), concurrency=1)
    failed = {
        name: answer for name, answer in session.answers.items() if not isinstance(answer, Response)
    }
    assert list(failed) == ["text 2"]
    assert isinstance(failed["text 2"], Transient)
    assert "was lost" in str(failed["text 2"])
    (remark,) = session.counts.remarks
    assert has_line(remark, "2 Ray workers died", "2 requests in flight")


def wait_for_file(path: Path) -> None:
    """Wait until the file exists."""
    end = time.monotonic() + 100
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} was not created"
        time.sleep(0.01)


@on_ray
def test_a_cancelled_caller_cancels_its_request_on_the_worker(
    connected: Any, tmp_path: Path
) -> None:
    began, ended = tmp_path / "began", tmp_path / "ended"

    async def answer(one: Request) -> Response:
        if one.messages[0]["content"] == "quick":
            return Response((Choice("4"),))
        try:
            began.touch()
            await asyncio.sleep(3600)
        finally:
            ended.touch()
        raise AssertionError

    async def go() -> None:
        session = Session(provider_with(answer))
        try:
            await session.round([request("quick")])
            waiting = asyncio.create_task(session.engine.complete(request("slow")))
            await asyncio.to_thread(wait_for_file, began)
            assert not ended.exists()
            waiting.cancel()
            await asyncio.to_thread(wait_for_file, ended)
            assert isinstance(await session.engine.complete(request("quick")), Response)
        finally:
            await session.close()

    asyncio.run(go())


@on_ray
def test_all_workers_share_one_budget(connected: Any) -> None:
    async def answer(_: Request) -> Response:
        await asyncio.sleep(0)
        return Response((Choice("4"),), Usage(90, 10))

    def spent(engine: str, workers: int) -> tuple[int, float]:
        ledger = BudgetLedger(Budget(20_000, "tokens"))
        provider = provider_with(answer)
        assert ledger.covers(provider)
        session = Session(provider, engine=engine, workers=workers, ledger=ledger)
        with pytest.raises(JudgeError, match="budget"):
            session.run([request(f"{n}", max_tokens=20) for n in range(1000)])
        return len(session.answers), ledger.spent

    assert spent("ray", 2) == spent("local", 1)


@on_ray
def test_all_workers_share_one_rate_limit(connected: Any) -> None:
    """Two workers together have at most three requests in flight."""
    in_flight, highest = 0, 0

    async def answer(_: Request) -> Response:
        await asyncio.sleep(0.02)
        return Response((Choice("4"),))

    session = Session(provider_with(answer), workers=2, rate_limiter=RateLimiter(3, rpm=60_000))
    complete = session.engine.complete

    async def counted(one: Request) -> Response:
        nonlocal in_flight, highest
        in_flight += 1
        highest = max(highest, in_flight)
        try:
            return await complete(one)
        finally:
            in_flight -= 1

    session.engine.complete = counted
    session.layer = session.engine.layer(session.sender.layers)
    session.run(named(60), concurrency=15)
    assert (len(session.answers), highest) == (60, 3)


@on_ray
def test_workers_are_reused_between_rounds(connected: Any) -> None:
    async def answer(_: Request) -> Response:
        return Response((Choice(str(os.getpid())),))

    async def go() -> None:
        session = Session(provider_with(answer))
        try:
            await session.round([])
            assert not session.engine._tasks  # type: ignore[attr-defined]  # without requests no worker starts
            for n in range(3):
                await session.round([request(f"{n} {i}") for i in range(5)])
        finally:
            await session.close()
        assert len({str(answer) for answer in session.answers.values()}) == 1

    asyncio.run(go())


@on_ray
def test_refuses_a_provider_that_cannot_be_pickled(connected: Any) -> None:
    lock = threading.Lock()

    def script(_: Request) -> str:
        with lock:
            return "4"

    with pytest.raises(ConfigError, match=r"scripted/script cannot .*__reduce__"):
        evaluate(
            SAMPLES,
            ["fluency"],
            model=ScriptedProvider(script),
            engine="ray",
            cache=False,
        )


@on_ray
def test_a_worker_without_the_key_stops_the_run_before_any_request(
    connected: Any, chat_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster was started without the key, and the pickled provider does not contain it."""
    monkeypatch.setenv("KEY_OF_THE_RAY_TESTS", KEY)
    provider = OpenAIProvider("m", base_url=chat_server.url, key_env="KEY_OF_THE_RAY_TESTS")
    assert KEY.encode() not in ray.recipe(provider)
    with pytest.raises(
        ConfigError,
        match=r"worker on \S+ .*no key: \$KEY_OF_THE_RAY_TESTS",
    ):
        Session(provider).run(named(3))
    assert not chat_server.bodies


@on_ray
def test_a_script_that_differs_on_a_worker_is_refused(connected: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("- {reply: '4'}\n")
    provider = ScriptedProvider.from_file(script)
    assert Session(provider).run(named(3)).keys() == {"text 0", "text 1", "text 2"}
    script.write_text("- {reply: '5'}\n")
    with pytest.raises(ConfigError, match="files the same"):
        Session(provider).run(named(3))


# Tests of the program, which starts its own cluster.


def run_program(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"} | env
    command = [sys.executable, "-c", "from judge.cli import main; main()", *args]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )


@on_ray
def test_the_example_gets_the_scores_of_a_local_run(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install textjudge[ray]")
    printed = {}
    for engine in ("local", "ray"):
        options = ["--engine", engine, "--out", str(tmp_path / engine), "--format", "json"]
        printed[engine] = run_program("run", "examples/ray/run.yaml", *options)
        assert printed[engine].returncode == 0, printed[engine].stderr
    assert json.loads(printed["ray"].stdout), "Ray printed to stdout"
    progress = printed["ray"].stderr.replace(str(tmp_path / "ray"), "")
    assert "ray" not in progress.replace("Ray: workers are starting", "").lower()

    result = load(tmp_path / "ray")
    assert (len(result.table.scores), result.failures) == (20, ())
    info = json.loads((tmp_path / "ray" / "run.json").read_text())
    assert info["info"]["config"]["engine"] == "ray"
    for name in ("scores.parquet", "samples.parquet"):
        pd.testing.assert_frame_equal(
            pd.read_parquet(tmp_path / "local" / name), pd.read_parquet(tmp_path / "ray" / name)
        )


@on_ray
def test_an_unreachable_cluster_exits_with_one_message(tmp_path: Path, chat_server: Any) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install textjudge[ray]")
    data = tmp_path / "data.jsonl"
    write_jsonl(data, SAMPLES)
    args = (
        "run",
        str(data),
        "--criteria",
        "fluency",
        "--model",
        "m",
        "--base-url",
        chat_server.url,
        "--engine",
        "ray",
        "--no-cache",
    )
    completed = run_program(*args, "--out", str(tmp_path / "out"), RAY_ADDRESS="127.0.0.1:1")
    assert completed.returncode == 2
    assert has_line(
        completed.stderr, "judge: --engine ray", "no Ray cluster", "$RAY_ADDRESS 127.0.0.1:1"
    )
    assert not chat_server.bodies
