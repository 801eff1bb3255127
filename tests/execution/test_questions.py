"""Metrics that ask a judge model: no repeated request, no lost reply, and no thread that waits forever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest

from judge.cache import Cache, DiskCache, NoCache
from judge.core.errors import ConfigError, ParseError, ProviderError, Refused, StorageError
from judge.core.records import Choice, Request, Response, Usage
from judge.execution import questions
from judge.execution.layers.cached import ReplyStore
from judge.execution.progress import JudgeProgress
from judge.execution.questions import DeferredClient, MetricReply, QuestionClient, ThreadClient
from judge.execution.rate_limit import RateLimiter
from judge.execution.reply_client import ReplyClient
from judge.metrics.base import ModelError, ModelQuestion
from judge.metrics.qags import judge_model
from judge.providers import Provider
from judge.providers.openai import OpenAIProvider
from judge.providers.scripted import Reply, ScriptedProvider
from judge.scoring.strategies import SamplingOptions
from tests.factories import no_sleep
from tests.senders import Sender


def upper(reply: str) -> str:
    if not reply.isalpha():
        raise ParseError("not a word", reply)
    return reply.upper()


def model_questions(
    *prompts: str, max_tokens: int = 64, read: Callable[[str], str] = upper
) -> list[ModelQuestion]:
    return [ModelQuestion(prompt, max_tokens, read) for prompt in prompts]


def echo(request: Request) -> Reply:
    return request.messages[0]["content"]


def asker(
    provider: Provider,
    cache: Cache | None = None,
    max_tokens: int | None = None,
    *,
    concurrency: int = 64,
    counts: JudgeProgress | None = None,
    **options: Any,
) -> QuestionClient:
    store = ReplyStore(cache or NoCache())
    sender = Sender(
        rate_limiter=RateLimiter(concurrency), counts=counts, sleep=no_sleep, store=store
    )
    client = ReplyClient(sender.layers(provider.complete), store, sender.counts)
    settings = SamplingOptions(max_tokens=max_tokens)
    return QuestionClient(client, provider, sender.counts, settings, **options)


def scripted(
    script: Callable[[Request], Reply] = echo, **options: Any
) -> tuple[QuestionClient, ScriptedProvider]:
    provider = ScriptedProvider(script, endpoint=options.pop("endpoint", "test"))
    return asker(provider, **options), provider


def ask(client: QuestionClient, prompts: Sequence[ModelQuestion]) -> list[MetricReply]:
    async def work() -> list[MetricReply]:
        async with client:
            return await client.ask(prompts)

    return asyncio.run(work())


def test_answers_keep_the_order_of_prompts() -> None:
    prompts = [f"{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(300)]
    client, provider = scripted(concurrency=7)
    assert ask(client, model_questions(*prompts)) == [prompt.upper() for prompt in prompts]
    assert len(provider.seen) == 300
    assert (
        client.counts.sent,
        client.counts.answered,
        client.counts.cached,
        client.counts.shared,
    ) == (
        300,
        300,
        0,
        0,
    )


def test_a_prompt_is_asked_as_one_user_message_at_temperature_zero() -> None:
    client, provider = scripted()
    ask(client, model_questions("hello", max_tokens=9))
    (request,) = provider.seen
    assert request == Request(
        "script",
        ({"role": "user", "content": "hello"},),
        {"temperature": 0.0, "max_tokens": 9},
        endpoint="test",
    )


def test_the_larger_max_tokens_of_run_and_prompt_applies() -> None:
    client, provider = scripted(max_tokens=500)
    ask(
        client, [*model_questions("hello", max_tokens=9), *model_questions("list", max_tokens=1024)]
    )
    assert [request.params["max_tokens"] for request in provider.seen] == [500, 1024]
    assert client.signature == "scripted/script,t=0,max_tokens>=500"


@pytest.mark.parametrize("many", [5, 200])
def test_equal_prompts_are_asked_once(many: int) -> None:
    client, provider = scripted()
    assert ask(client, model_questions(*["a", "b"] * many)) == ["A", "B"] * many
    assert len(provider.seen) == 2
    assert client.counts.shared == 2 * many - 2


class Late(ScriptedProvider):
    async def complete(self, request: Request) -> Response:
        await asyncio.sleep(5.0)
        return await super().complete(request)


def test_two_concurrent_calls_share_a_request(in_time: Callable[..., Any], tmp_path: Path) -> None:
    client = asker(Late(echo, endpoint="test"), DiskCache(tmp_path))

    async def work() -> list[list[MetricReply]]:
        return await asyncio.gather(
            client.ask(model_questions("one", "two")),
            client.ask(model_questions("two", "three", read=str.title)),
        )

    assert in_time(work()) == [["ONE", "TWO"], ["Two", "Three"]]
    assert (client.counts.sent, client.counts.shared) == (3, 1)
    pass


def test_a_cancelled_request_is_sent_by_another_call(
    in_time: Callable[..., Any], tmp_path: Path
) -> None:
    client = asker(Late(echo, endpoint="test"), DiskCache(tmp_path))

    async def work() -> None:
        first = asyncio.ensure_future(client.ask(model_questions("one", "two")))
        await asyncio.sleep(1.0)
        asyncio.get_running_loop().call_later(1.0, first.cancel)
        assert await client.ask(model_questions("one", "two")) == ["ONE", "TWO"]
        with pytest.raises(asyncio.CancelledError):
            await first

    in_time(work())
    assert client.counts.sent == 3
    pass


def test_each_caller_parses_the_shared_reply_with_its_own_reader() -> None:
    client, provider = scripted()
    replies = ask(
        client,
        [
            *model_questions("word"),
            *model_questions("word", read=str.title),
            *model_questions("word", max_tokens=5),
        ],
    )
    assert replies == ["WORD", "Word", "WORD"]
    assert len(provider.seen) == 2


def test_a_second_run_asks_nothing(tmp_path: Path) -> None:
    prompts = model_questions(*"abcdefgh" * 20)
    first = ask(scripted(cache=DiskCache(tmp_path))[0], prompts)
    second, provider = scripted(lambda _: Refused("asked again"), cache=DiskCache(tmp_path))
    assert ask(second, prompts) == first
    assert provider.seen == []
    assert (second.counts.sent, second.counts.cached, second.counts.usage) == (0, 8, Usage())


def test_only_missing_replies_are_requested(tmp_path: Path) -> None:
    ask(scripted(cache=DiskCache(tmp_path))[0], model_questions("a", "b"))
    more, provider = scripted(cache=DiskCache(tmp_path))
    assert ask(more, model_questions("b", "c", "a")) == ["B", "C", "A"]
    assert [echo(request) for request in provider.seen] == ["c"]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("12", "not a word"),
        ("", "the reply is empty"),
        (Response((Choice("wor", "length"),)), "--max-tokens"),
        (Response((Choice("<think>let me see", "stop"),)), "inside its thinking"),
        (Response(()), "no reply"),
    ],
)
def test_an_unreadable_reply_is_an_error_until_failures_are_retried(
    tmp_path: Path, reply: Reply, message: str
) -> None:
    client, _ = scripted(lambda _: reply, cache=DiskCache(tmp_path))
    (first,) = ask(client, model_questions("a"))
    assert isinstance(first, ModelError)
    assert first.error == "ParseError"
    assert message in first.message
    second, provider = scripted(cache=DiskCache(tmp_path))
    assert (ask(second, model_questions("a")), provider.seen) == ([first], [])
    assert (second.counts.cached, second.counts.failed_cached) == (1, 1)
    third, provider = scripted(cache=DiskCache(tmp_path), retry_failed=True)
    assert ask(third, model_questions("a", "a")) == ["A", "A"]
    assert (len(provider.seen), third.counts.cached) == (1, 0)
    assert ask(
        scripted(lambda _: Refused("again"), cache=DiskCache(tmp_path))[0], model_questions("a")
    ) == ["A"]


def test_a_shared_reply_is_stored_if_any_reader_accepts_it(tmp_path: Path) -> None:
    both = [*model_questions("a"), *model_questions("a", read=str)]
    replies = ask(scripted(lambda _: "12", cache=DiskCache(tmp_path))[0], both)
    assert [type(client) for client in replies] == [ModelError, str]
    assert ask(scripted(lambda _: Refused("again"), cache=DiskCache(tmp_path))[0], both) == replies


def test_thinking_is_not_part_of_a_reply() -> None:
    assert ask(scripted(lambda _: "<think>no or yes?</think>\n\nyes")[0], model_questions("a")) == [
        "YES"
    ]


def test_a_refused_prompt_is_a_model_error_and_the_rest_continues() -> None:
    client, _ = scripted(
        lambda request: Refused("content policy") if echo(request) == "b" else "yes"
    )
    assert ask(client, model_questions("a", "b", "c", "b")) == [
        "YES",
        ModelError("Refused", "content policy", failed=True),
        "YES",
        ModelError("Refused", "content policy", failed=True),
    ]
    assert (client.counts.sent, client.counts.answered, client.counts.refused) == (3, 2, 1)


def test_a_wrong_key_stops_after_one_request() -> None:
    client, provider = scripted(lambda _: Refused("401", stops="always"))
    with pytest.raises(Refused, match="401"):
        ask(client, model_questions(*"abcdefgh"))
    assert len(provider.seen) == 1


def test_paid_replies_before_a_stop_are_kept(tmp_path: Path) -> None:
    replies_left: list[Reply] = ["yes"] * 10
    client, _ = scripted(
        lambda _: replies_left.pop() if replies_left else Refused("no money", stops="always"),
        cache=DiskCache(tmp_path),
        concurrency=1,
    )
    with pytest.raises(ProviderError):
        ask(client, model_questions(*(f"p{n}" for n in range(50))))
    assert DiskCache(tmp_path).stats()["responses"] == 10


def test_a_cache_that_cannot_be_written_stops(tmp_path: Path) -> None:
    class Full(DiskCache):
        def flush(self) -> None:
            if self._pending:
                raise StorageError("disk full")

    client, provider = scripted(cache=Full(tmp_path), concurrency=4)
    with pytest.raises(StorageError):
        ask(client, model_questions(*(f"p{n}" for n in range(2_000)), read=str))
    assert 0 < len(provider.seen) < 2_000


def test_usage_of_questions_counts_with_the_run() -> None:
    counts = JudgeProgress(total=3, done=3, sent=3, usage=Usage(1, 1))
    response = Response((Choice("yes"),), Usage(10, 2), "m-1", ("temperature",))
    client, _ = scripted(lambda _: response, counts=counts)
    assert client.signature == "scripted/script,t=0"
    ask(client, model_questions("a", "b"))
    assert (counts.total, counts.done, counts.failed, counts.sent) == (3, 3, 0, 5)
    assert counts.usage == Usage(21, 5)
    assert counts.unmet == {"temperature": 2}
    assert counts.served_by == {"m-1"}
    assert client.signature == "scripted/script,t=server"


def test_a_decision_endpoint_is_refused() -> None:
    with pytest.raises(ConfigError, match="writes no text"):
        asker(ScriptedProvider(echo, decides=True))


# Over the network.


def test_the_stages_of_qags_through_a_server(
    tmp_path: Path, chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    output, source = "Snow closed the pass.", "Heavy snow closed the pass on Friday."

    def reply(body: dict[str, Any]) -> str:
        prompt = body["messages"][0]["content"]
        if "An answer that the text holds" in prompt:
            return (
                "What closed the pass?"
                if "\nSnow\n</answer" in prompt
                else "What did the snow close?"
            )
        if "A question:" not in prompt:
            return "1. Snow\n2. the pass"
        if "What closed" in prompt:
            return "heavy snow" if "Heavy" in prompt else "Snow"
        return "unanswerable" if "Heavy" in prompt else "the pass"

    chat_server.answer = lambda body: (200, {}, make_completion(reply(body)))

    def stages(client: QuestionClient, loop: asyncio.AbstractEventLoop) -> list[Any]:
        themes, questions, answers = judge_model.open(ThreadClient(client, loop), "en")
        (listed_themes,) = themes.themes([output])
        assert not isinstance(listed_themes, ModelError)
        written_questions = [
            str(client)
            for client in questions.questions([(theme, output) for theme in listed_themes])
        ]
        answered = answers.answers(
            [(question, text) for question in written_questions for text in (source, output)]
        )
        return [listed_themes, written_questions, answered]

    async def work() -> list[Any]:
        cache = DiskCache(tmp_path)
        provider = OpenAIProvider("m", base_url=chat_server.url)
        async with asker(provider, cache) as client:
            results = await asyncio.to_thread(stages, client, asyncio.get_running_loop())
        await provider.aclose()
        cache.close()
        return results

    expected = [
        ["Snow", "the pass"],
        ["What closed the pass?", "What did the snow close?"],
        ["heavy snow", "Snow", "", "the pass"],
    ]
    assert [asyncio.run(work()), asyncio.run(work())] == [expected, expected]
    assert len(chat_server.bodies) == 1 + 2 + 4


# Threads outside the event loop.


class Slow(ScriptedProvider):
    """Never answer. Record the first request, cancellations and closes."""

    def __init__(self) -> None:
        super().__init__(echo, endpoint="test")
        self.asked = asyncio.Event()
        self.cancelled = 0
        self.closed = 0

    async def complete(self, request: Request) -> Response:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        raise AssertionError

    async def aclose(self) -> None:
        self.closed += 1


class Metric(threading.Thread):
    """A metric in a thread that asks once and stores the result or error."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.result: object = None
        self._work = work

    def run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:  # noqa: BLE001  (the test checks it)
            self.result = error


def test_a_thread_gets_its_answers_and_the_error_that_stops_the_run() -> None:
    async def work(client: QuestionClient) -> list[MetricReply]:
        async with client:
            return await asyncio.to_thread(
                ThreadClient(client, asyncio.get_running_loop()), model_questions("a", "1")
            )

    assert asyncio.run(work(scripted()[0])) == [
        "A",
        ModelError("ParseError", "not a word", failed=True, raw="1"),
    ]
    with pytest.raises(Refused, match="401"):
        asyncio.run(work(scripted(lambda _: Refused("401", stops="always"))[0]))


def test_closing_cancels_requests_and_their_threads() -> None:
    provider = Slow()

    async def work() -> tuple[Metric, Metric]:
        loop = asyncio.get_running_loop()
        async with asker(provider) as client:
            first = Metric(lambda: ThreadClient(client, loop)(model_questions("a", "b")))
            first.start()
            await provider.asked.wait()
        late = Metric(lambda: ThreadClient(client, loop)(model_questions("c")))
        late.start()
        await asyncio.to_thread(late.join)
        return first, late

    first, late = asyncio.run(work())
    first.join(30)
    assert isinstance(first.result, KeyboardInterrupt)
    assert isinstance(late.result, KeyboardInterrupt)
    assert (provider.cancelled, provider.seen) == (1, [])


def test_ctrl_c_does_not_leave_the_thread_waiting(tmp_path: Path) -> None:
    answered = ScriptedProvider(echo, endpoint="test")
    provider = Slow()
    metrics: list[Metric] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        await asker(answered, DiskCache(tmp_path)).ask(model_questions("a"))
        client = asker(provider)
        metrics.append(Metric(lambda: ThreadClient(client, loop)(model_questions("b"))))
        metrics[0].start()
        await provider.asked.wait()
        raise KeyboardInterrupt  # like Ctrl-C inside the event loop; the client is not closed

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(work())
    metrics[0].join(30)
    assert isinstance(metrics[0].result, KeyboardInterrupt)
    assert provider.cancelled == 1
    assert DiskCache(tmp_path).stats()["responses"] == 1


def test_cancelling_keeps_received_replies(tmp_path: Path) -> None:
    tasks: list[asyncio.Task[list[MetricReply]]] = []

    def script(request: Request) -> Reply:
        if len(provider.seen) == 20:
            asyncio.get_running_loop().call_soon(tasks[0].cancel)
        return "yes"

    client, provider = scripted(script, cache=DiskCache(tmp_path), concurrency=2)

    async def work() -> None:
        tasks.append(
            asyncio.create_task(client.ask(model_questions(*(f"p{n}" for n in range(500)))))
        )
        await tasks[0]

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())
    assert 10 < client.counts.answered < 500
    assert DiskCache(tmp_path).stats()["responses"] >= client.counts.answered


def test_a_thread_does_not_wait_for_an_ended_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    client, provider = scripted()
    loop = asyncio.new_event_loop()  # accepts callbacks but never runs them

    def look(futures: Any, seconds: float) -> Any:
        loop.close()
        return wait(futures, 0.0)

    monkeypatch.setattr(questions, "wait", look)
    for _ in range(2):  # The loop ends during the wait, and then before the request.
        with pytest.raises(KeyboardInterrupt):
            ThreadClient(client, loop)(model_questions("a"))
    assert provider.seen == []


def test_an_error_of_a_reader_is_not_a_closed_loop() -> None:
    def broken(reply: str) -> str:
        raise RuntimeError("a bug")

    async def work() -> None:
        async with scripted()[0] as client:
            await asyncio.to_thread(
                ThreadClient(client, asyncio.get_running_loop()), model_questions("a", read=broken)
            )

    with pytest.raises(RuntimeError, match="a bug"):
        asyncio.run(work())


def test_a_metric_can_be_created_without_a_judge_model() -> None:
    later = DeferredClient()
    themes = judge_model.open(later, "en")[0]
    assert themes.signature.startswith("llm:en@")
    with pytest.raises(RuntimeError, match="before"):
        themes.themes(["Snow fell."])

    async def work() -> list[Any]:
        async with scripted(lambda _: "Snow")[0] as client:
            later.to = ThreadClient(client, asyncio.get_running_loop())
            return await asyncio.to_thread(themes.themes, ["Snow fell."])

    assert asyncio.run(work()) == [["Snow"]]
    assert themes.signature.startswith("scripted/script,t=0:en@")
