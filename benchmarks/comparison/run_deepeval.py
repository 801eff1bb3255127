"""DeepEval: one `GEval` for each criterion, with steps and a rubric from 1 to 5, as its documentation shows.

Telemetry is off by DEEPEVAL_TELEMETRY_OPT_OUT. A second start reads its cache (`use_cache`).
"""

from __future__ import annotations

import os

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
os.environ["DEEPEVAL_DISABLE_DOTENV"] = "1"
os.environ["DEEPEVAL_NO_INSPECT_PROMPT"] = "1"
# On a busy machine, its time limit for a test ends judgments that the server has answered.
os.environ["DEEPEVAL_DISABLE_TIMEOUTS"] = "1"

import cases
from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
from deepeval.metrics import GEval
from deepeval.metrics.g_eval import Rubric
from deepeval.models import OpenAIModel
from deepeval.test_case import LLMTestCase, SingleTurnParams


def main() -> None:
    url, path, folder = cases.arguments()
    os.chdir(folder)  # its cache is a folder here
    model = OpenAIModel(cases.MODEL, base_url=url, api_key="x")
    rubric = [
        Rubric(score_range=(1, 1), expected_outcome="Not at all."),
        Rubric(score_range=(2, 4), expected_outcome="In part."),
        Rubric(score_range=(5, 5), expected_outcome="Entirely."),
    ]
    metrics = [
        GEval(
            name=name,
            evaluation_steps=[question],
            evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT],
            rubric=rubric,
            model=model,
        )
        for name, question in cases.CRITERIA.items()
    ]
    texts = cases.texts()
    tests = [
        LLMTestCase(name=str(text.number), input=text.source, actual_output=text.output)
        for text in texts
    ]
    # Each test asks for all of its metrics at once.
    at_once = cases.CONCURRENCY // len(metrics)
    done = evaluate(
        tests,
        metrics,
        async_config=AsyncConfig(max_concurrent=at_once),
        display_config=DisplayConfig(
            show_indicator=False, print_results=False, inspect_after_run=False
        ),
        cache_config=CacheConfig(write_cache=True, use_cache=True),
        error_config=ErrorConfig(ignore_errors=True),
    )
    judged = []
    for test in done.test_results:
        for metric in test.metrics_data or []:
            name = metric.name.removesuffix(" [GEval]")
            score = None if metric.score is None else 1 + 4 * metric.score
            judged.append(cases.Judged(int(test.name), name, score, metric.error or ""))
    cases.write(path, judged)


if __name__ == "__main__":
    main()
