"""Inspect: four `model_graded_qa` scorers that ask for a grade from 1 to 5; no model writes the outputs.

A second start reads its cache of replies, which is switched on here (`cache=True`).
"""

from __future__ import annotations

import os

import cases
from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, ModelOutput, get_model
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import Generate, Solver, TaskState, solver

TEMPLATE = """[Task]: {question}
[Submission]: {answer}
[Criterion]: CRITERION

{instructions}"""
INSTRUCTIONS = f"{cases.SCALE} End with 'GRADE: ' and the score."


@solver
def given() -> Solver:
    """Take the output from the data."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content("given", state.metadata["output"])
        return state

    return solve


def main() -> None:
    url, path, folder = cases.arguments()
    os.environ["INSPECT_CACHE_DIR"] = str(folder / "cache")
    config = GenerateConfig(
        cache=True, temperature=0, max_connections=cases.CONCURRENCY
    )
    grader = get_model(
        f"openai/{cases.MODEL}", base_url=url, api_key="x", config=config
    )
    scorers = [
        model_graded_qa(
            template=TEMPLATE.replace("CRITERION", question),
            instructions=INSTRUCTIONS,
            grade_pattern=r"GRADE: ([1-5])",
            model=grader,
        )
        for question in cases.CRITERIA.values()
    ]
    texts = cases.texts()
    samples = [
        Sample(input=text.source, id=text.number, metadata={"output": text.output})
        for text in texts
    ]
    task = Task(dataset=MemoryDataset(samples), solver=given(), scorer=scorers)
    (log,) = evaluate(
        task,
        model="none/none",
        max_samples=cases.CONCURRENCY,
        log_dir=str(folder / "logs"),
        display="none",
        fail_on_error=False,
    )
    judged = []
    for sample in log.samples or []:
        for name, score in zip(
            cases.CRITERIA, (sample.scores or {}).values(), strict=True
        ):
            # The value of a score that the grader did not give is NaN.
            given_score = float(score.value) if str(score.value) in "12345" else None
            error = (
                "" if given_score is not None else f"{score.value}: {score.explanation}"
            )
            judged.append(cases.Judged(int(sample.id), name, given_score, error))
    cases.write(path, judged)


if __name__ == "__main__":
    main()
