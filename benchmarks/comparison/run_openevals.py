"""openevals: one judge for each criterion with five choices; the loop is this script's, as openevals has none.

Tracing to a server is off by LANGSMITH_TRACING.
"""

from __future__ import annotations

import asyncio
import os

os.environ["LANGSMITH_TRACING"] = "false"

import cases
from langchain_openai import ChatOpenAI
from openevals.llm import create_async_llm_as_judge

PROMPT = """Question: {inputs}
Reply: {outputs}
"""


async def judge_all(url: str) -> list[cases.Judged]:
    model = ChatOpenAI(model=cases.MODEL, base_url=url, api_key="x", temperature=0)
    judges = {
        name: create_async_llm_as_judge(
            prompt=f"{PROMPT}\n{question} {cases.SCALE}",
            feedback_key=name,
            judge=model,
            choices=[float(label) for label in cases.LABELS],
        )
        for name, question in cases.CRITERIA.items()
    }
    slots = asyncio.Semaphore(cases.CONCURRENCY)

    async def ask(text: cases.Text, name: str) -> cases.Judged:
        async with slots:
            try:
                found = await judges[name](inputs=text.source, outputs=text.output)
            except Exception as error:  # noqa: BLE001  (in a loop of ours, one failure ends no run)
                return cases.Judged(
                    text.number, name, None, f"raised {type(error).__name__}"
                )
            return cases.Judged(text.number, name, float(found["score"]))

    return await asyncio.gather(
        *(ask(text, name) for text in cases.texts() for name in judges)
    )


def main() -> None:
    url, path, _ = cases.arguments()
    cases.write(path, asyncio.run(judge_all(url)))


if __name__ == "__main__":
    main()
