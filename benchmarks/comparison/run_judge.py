"""judge: `evaluate` with the page, the statistics and the files of a run, as `judge run` does."""

from __future__ import annotations

from dataclasses import asdict

import cases

import judge


def main() -> None:
    url, path, folder = cases.arguments()
    result = judge.evaluate(
        [asdict(text) for text in cases.texts()],
        [f"{name}: {question}" for name, question in cases.CRITERIA.items()],
        model=cases.MODEL,
        base_url=url,
        metrics=[],
        max_concurrency=cases.CONCURRENCY,
        cache=folder / "cache",
        out=folder / "run",
        overwrite=True,
    )
    numbers = {(text.item, text.system): text.number for text in cases.texts()}
    judged = []
    for score in result.table.scores:
        number = numbers[score.item, score.system]
        judged.append(cases.Judged(number, score.column, score.value))
    for failure in result.failures:
        number = numbers[failure.item, failure.system]
        judged.append(cases.Judged(number, failure.column, None, failure.message))
    cases.write(path, judged)


if __name__ == "__main__":
    main()
