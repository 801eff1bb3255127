"""1,200 requests to a loopback server of 20 a second that declares no limit: seconds, and the share of 429s.

The server has a burst of 20, answers after 300 ms, and refuses at once with a bare 429: no `x-ratelimit-*` header, no
`Retry-After`. At 20 a second the requests take 59 s.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from aiohttp import web

from judge.cache import NoCache
from judge.core.errors import ProviderError
from judge.core.records import Request
from judge.execution.layers.cached import ReplyStore
from judge.execution.layers.retried import Policy
from judge.execution.progress import JudgeProgress
from judge.execution.rate_limit import RateLimiter
from judge.execution.reply_client import SendingOptions, sending_layers
from judge.providers.openai import OpenAIProvider

RATE, BURST, LATENCY, REQUESTS, CONCURRENCY = 20.0, 20.0, 0.3, 1_200, 64
REPLY = {
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "4"},
        }
    ],
    "usage": {"prompt_tokens": 100, "completion_tokens": 1},
}


class Server:
    """A token bucket that answers chat completions."""

    def __init__(self) -> None:
        self.level, self.at = BURST, time.monotonic()
        self.received = self.refused = 0

    async def answer(self, _: web.Request) -> web.Response:
        now = time.monotonic()
        self.level, self.at = min(BURST, self.level + (now - self.at) * RATE), now
        self.received += 1
        if self.level < 1.0:
            self.refused += 1
            return web.json_response(
                {"error": {"message": "too many requests"}}, status=429
            )
        self.level -= 1.0
        await asyncio.sleep(LATENCY)
        return web.json_response(REPLY)


async def send(url: str) -> float:
    """Send all requests; the seconds that took."""
    provider = OpenAIProvider("m", base_url=url, connections=CONCURRENCY)
    options = SendingOptions(RateLimiter(CONCURRENCY), Policy())
    layers = sending_layers(
        provider.complete, options, ReplyStore(NoCache()), JudgeProgress()
    )
    requests = iter(
        [
            Request("m", ({"role": "user", "content": f"text {n}"},))
            for n in range(REQUESTS)
        ]
    )

    async def work() -> None:
        for request in requests:
            await layers.ask(request)

    start = time.monotonic()
    try:
        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    except ProviderError as error:
        sys.exit(str(error))
    finally:
        await provider.aclose()
    return time.monotonic() - start


async def main() -> None:
    server, app = Server(), web.Application()
    app.router.add_post("/v1/chat/completions", server.answer)
    runner: Any = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    seconds = await send(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    await runner.cleanup()
    print(
        f"{REQUESTS:,} requests in {seconds:.0f} s, {server.refused} of {server.received:,} answers were 429s"
    )
    print(
        f"wall / ideal: {seconds / ((REQUESTS - BURST) / RATE):.2f}; 429s: {server.refused / server.received:.1%}"
    )


if __name__ == "__main__":
    asyncio.run(main())
