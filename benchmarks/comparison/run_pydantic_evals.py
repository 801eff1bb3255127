"""pydantic-evals: one `GEval` for each criterion, whose documentation says that it uses no token probabilities."""

from __future__ import annotations

import cases
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import GEval


def main() -> None:
    url, path, _ = cases.arguments()
    model = OpenAIChatModel(
        cases.MODEL, provider=OpenAIProvider(base_url=url, api_key="x")
    )
    evaluators = [
        GEval(
            criteria=question,
            evaluation_steps=["Read the question and the reply."],
            score_range=(1, 5),
            include_input=True,
            model=model,
            evaluation_name=name,
        )
        for name, question in cases.CRITERIA.items()
    ]
    texts = cases.texts()
    outputs = {text.source + text.system: text.output for text in texts}
    tests = [
        Case(name=str(text.number), inputs=text.source + text.system) for text in texts
    ]
    dataset = Dataset(name="replies", cases=tests, evaluators=evaluators)
    # Each case asks for all of its criteria at once.
    at_once = cases.CONCURRENCY // len(evaluators)
    report = dataset.evaluate_sync(
        outputs.__getitem__, max_concurrency=at_once, progress=False
    )
    judged = []
    for case in report.cases:
        number = int(case.name)
        for name, score in case.scores.items():
            judged.append(cases.Judged(number, name, float(score.value)))
        judged.extend(
            cases.Judged(number, failure.name, None, failure.error_message)
            for failure in case.evaluator_failures
        )
    cases.write(path, judged)


if __name__ == "__main__":
    main()
