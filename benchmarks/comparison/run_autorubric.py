"""autorubric: a rubric of four ordinal criteria with five options, run by `EvalRunner`.

A second start reads its checkpoint and its cache of replies, which is switched on here (`cache_enabled`).
"""

from __future__ import annotations

import asyncio
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import cases
from autorubric import (
    Criterion,
    CriterionOption,
    DataItem,
    EvalConfig,
    EvalRunner,
    LLMConfig,
    Rubric,
    RubricDataset,
)
from autorubric.graders import CriterionGrader


def main() -> None:
    url, path, folder = cases.arguments()
    options = [
        CriterionOption(label=f"Score {label}", value=(label - 1) / 4)
        for label in cases.LABELS
    ]
    rubric = Rubric(
        [
            Criterion(
                name=name, requirement=f"{question} {cases.SCALE}", options=options
            )
            for name, question in cases.CRITERIA.items()
        ]
    )
    model = LLMConfig(
        model=f"openai/{cases.MODEL}",
        temperature=0.0,
        api_base=url,
        api_key="x",
        max_parallel_requests=cases.CONCURRENCY,
        cache_enabled=True,
        cache_dir=folder / "cache",
    )
    # Shuffled options are a feature of its own; here the number that is written is the score.
    grader = CriterionGrader(judge_model_config=model, shuffle_options=False)
    texts = cases.texts()
    items = [
        DataItem(
            submission=text.output, prompt=text.source, description=str(text.number)
        )
        for text in texts
    ]
    dataset = RubricDataset(prompt=None, rubric=rubric, items=items, name="replies")
    config = EvalConfig(
        show_progress=False,
        experiment_name="replies",
        experiments_dir=folder / "experiments",
    )
    done = asyncio.run(EvalRunner(dataset=dataset, grader=grader, config=config).run())
    judged = []
    for result in done.item_results:
        number = int(result.item.description)
        for report in result.report.report or []:
            name = report.criterion.name
            verdict = report.final_multi_choice_verdict
            if report.error or verdict is None:
                judged.append(
                    cases.Judged(number, name, None, report.error or "no verdict")
                )
            else:
                judged.append(cases.Judged(number, name, 1 + 4 * verdict.value))
    cases.write(path, judged)


if __name__ == "__main__":
    main()
