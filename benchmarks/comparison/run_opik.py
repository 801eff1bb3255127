"""opik: one `GEval` for each criterion; the loop is this script's, as `evaluate` sends traces to an Opik server.

Tracking, analytics and error reports are off by OPIK_TRACK_DISABLE, OPIK_ANALYTICS_ENABLE and OPIK_SENTRY_ENABLE.
GEval's own scale is 0 to 10. `evaluate_resume` needs an Opik server as well.
"""

from __future__ import annotations

import asyncio
import os

os.environ["OPIK_TRACK_DISABLE"] = "true"
os.environ["OPIK_ANALYTICS_ENABLE"] = "false"
os.environ["OPIK_SENTRY_ENABLE"] = "false"
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import cases
from opik.evaluation.metrics import GEval
from opik.evaluation.models import LiteLLMChatModel


async def judge_all(url: str) -> list[cases.Judged]:
    model = LiteLLMChatModel(
        f"openai/{cases.MODEL}", track=False, api_base=url, api_key="x"
    )
    metrics = {
        name: GEval(
            task_introduction="You judge replies of a shop to its customers.",
            evaluation_criteria=f"{question} {cases.SCALE}",
            model=model,
            name=name,
            track=False,
        )
        for name, question in cases.CRITERIA.items()
    }
    slots = asyncio.Semaphore(cases.CONCURRENCY)

    async def ask(text: cases.Text, name: str) -> cases.Judged:
        async with slots:
            try:
                found = await metrics[name].ascore(
                    output=f"{text.source}\n{text.output}"
                )
            except Exception as error:  # noqa: BLE001  (in a loop of ours, one failure ends no run)
                return cases.Judged(
                    text.number, name, None, f"raised {type(error).__name__}"
                )
            return cases.Judged(text.number, name, 10 * found.value)

    return await asyncio.gather(
        *(ask(text, name) for text in cases.texts() for name in metrics)
    )


def main() -> None:
    url, path, _ = cases.arguments()
    cases.write(path, asyncio.run(judge_all(url)))


if __name__ == "__main__":
    main()
