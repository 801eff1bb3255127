"""Billed input tokens on documents of about 8,000 tokens, ours against prompts sent as they come.

The replay server models a prompt cache as OpenAI has it up to gpt-5.5: from 1,024 tokens on, in steps of 128, written
when a reply is done, after 0.25 to 0.75 s. A token that was read from it costs a tenth. It is one cache: requests are
not routed to machines, and none misses because its key had too many a minute. The other side is a loop over 64 places:
prompts that begin with the criterion, as most templates do, and the same prompts of ours, without a leader. All show
the document, and none is sent twice.
"""

from __future__ import annotations

import asyncio
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import replace

import openai
from common import SUMMEVAL, judge_all, server, summeval

from judge.cache import NoCache
from judge.core.records import Sample, Usage
from judge.criteria import load, template_bodies
from judge.criteria.render import Renderer
from judge.execution.judgments import Judgment
from judge.providers.openai import OpenAIProvider
from judge.scoring.strategies import SamplingOptions

PLACES, LATENCY, JITTER, BYTES = 64, 500, 0.5, 32_000
CRITERIA = [load(name) for name in ("relevance", "coherence", "consistency")]
READ = 0.1


def documents() -> list[list[Sample]]:
    """Samples on each document: articles joined until they are long, with the summaries of the first of them."""
    rows = summeval()
    by_item: dict[str, list[Sample]] = {}
    for row in rows:
        by_item.setdefault(row.item, []).append(row)
    found, joined, first = [], "", None
    for item in by_item.values():
        first, joined = first or item, joined + (item[0].source or "") + "\n\n"
        if len(joined.encode()) >= BYTES:
            found.append([replace(one, source=joined) for one in first])
            joined, first = "", None
    return found


async def ours(asked: Sequence[Judgment], url: str) -> Usage:
    provider = OpenAIProvider("mock", base_url=url, connections=PLACES)
    settings = SamplingOptions("single")
    counts = await judge_all(asked, provider, NoCache(), settings, concurrency=PLACES)
    return counts.usage


async def burst(prompts: Sequence[str], url: str) -> Usage:
    client = openai.AsyncOpenAI(
        base_url=url,
        api_key="x",
        http_client=openai.DefaultAioHttpClient(),
        max_retries=0,
    )
    places, total = asyncio.Semaphore(PLACES), Usage()

    async def one(prompt: str) -> None:
        nonlocal total
        async with places:
            said = await client.chat.completions.create(
                model="mock", messages=[{"role": "user", "content": prompt}]
            )
        used = said.usage
        if used is None or used.prompt_tokens_details is None:
            sys.exit("the server counted no tokens")
        total += Usage(
            used.prompt_tokens,
            used.completion_tokens,
            used.prompt_tokens_details.cached_tokens or 0,
        )

    await asyncio.gather(*map(one, prompts))
    await client.close()
    return total


def billed(used: Usage) -> float:
    """Input tokens, in tokens read afresh."""
    return used.prompt_tokens - (1 - READ) * used.cached_tokens


def compare(judgments: Sequence[Judgment], url: str) -> None:
    plain = {c.name: Renderer(c, template_bodies(c)) for c in CRITERIA}
    apart = {
        c.name: Renderer(replace(c, form="decision"), template_bodies(c))
        for c in CRITERIA
    }
    by_prompt = {
        plain[j.criterion.name].render(j.sample).messages[0]["content"]: j
        for j in judgments
    }
    document_first, asked = list(by_prompt), list(by_prompt.values())
    cut = [apart[j.criterion.name].render(j.sample) for j in asked]
    criterion_first = [
        f"{prompt.question}\n\n{prompt.messages[0]['content']}" for prompt in cut
    ]
    print(f"{len(judgments)} judgments, {len(asked)} different prompts")
    found = {}
    for name, work in (
        ("criterion first, as they come", lambda: burst(criterion_first, url)),
        ("document first, as they come", lambda: burst(document_first, url)),
        ("ours: document first, one of each ahead", lambda: ours(asked, url)),
    ):
        urllib.request.urlopen(
            urllib.request.Request(url.replace("/v1", "/reset"), method="POST")
        ).read()
        found[name] = asyncio.run(work())
    usual = found["criterion first, as they come"]
    for name, used in found.items():
        share = used.cached_tokens / used.prompt_tokens
        print(
            f"  {name:40} {used.prompt_tokens:>10,} tokens, {share:4.0%} from cache; "
            f"billed / what the usual is billed {billed(used) / billed(usual):.2f}"
        )


def main() -> None:
    options = (
        "--data",
        SUMMEVAL,
        "--on-miss",
        "synthetic",
        "--latency-ms",
        LATENCY,
        "--jitter",
        JITTER,
    )
    with server("replay_server.py", *options) as said:
        measure(said.split()[2])


def measure(url: str) -> None:
    found = documents()
    for systems in (16, 1):
        asked = [
            Judgment(s, c) for rows in found for s in rows[:systems] for c in CRITERIA
        ]
        print(
            f"{len(found)} documents × {systems} systems × {len(CRITERIA)} criteria: ",
            end="",
        )
        compare(asked, url)


if __name__ == "__main__":
    main()
