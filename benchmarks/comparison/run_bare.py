"""A bare loop of the official SDK on aiohttp: it sends the prompts and throws the replies away."""

from __future__ import annotations

import asyncio

import cases
import openai


async def ask_all(url: str) -> None:
    client = openai.AsyncOpenAI(
        base_url=url,
        api_key="x",
        http_client=openai.DefaultAioHttpClient(),
        max_retries=0,
    )
    slots = asyncio.Semaphore(cases.CONCURRENCY)

    async def ask(prompt: str) -> None:
        async with slots:
            await client.chat.completions.create(
                model=cases.MODEL,
                messages=[{"role": "user", "content": prompt}],
                temperature=0,
                max_completion_tokens=8,
                logprobs=True,
                top_logprobs=20,
            )

    prompts = [
        f"Question: {text.source}\nReply: {text.output}\n{question} {cases.SCALE}"
        for text in cases.texts()
        for question in cases.CRITERIA.values()
    ]
    await asyncio.gather(*map(ask, prompts))
    await client.close()


def main() -> None:
    url, path, _ = cases.arguments()
    asyncio.run(ask_all(url))
    cases.write(path, [])


if __name__ == "__main__":
    main()
