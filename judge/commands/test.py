"""`judge test`: prepare suites of cases, run them in turn, and decide their cases."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Unpack

from judge.commands.evaluate import Model
from judge.commands.options import RunOptions
from judge.commands.prepared_suites import PreparedSuite, prepare_suites
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import blocking, public_api
from judge.commands.suite_folders import Paths, write_pages
from judge.commands.suite_verdicts import decide_suite
from judge.core.errors import JudgeError
from judge.execution.progress import Progress
from judge.results.result import Result
from judge.run.generate import Display
from judge.run.judge_run import require_all_recorded
from judge.run.pipeline import run_pipeline
from judge.suite.case import Form, Policy
from judge.suite.evaluate import Outcome, Outcomes


@public_api("test")
async def test_async(
    paths: Paths,
    *,
    model: Model | None = None,
    criteria: str | Sequence[str] | None = None,
    cases: str | Collection[str] | None = None,
    baseline: str | Path | None = None,
    update_baseline: bool = False,
    undecided: Policy | None = None,
    risk: bool = False,
    progress: Watch = None,
    **options: Unpack[RunOptions],
) -> Outcomes:
    """Run suites, files or folders of *.judge.yaml, and decide whether their cases pass.

    - `model` and other options override the keys of the files; a model also overrides `replay`. A
      budget or deadline is for all suites together.
    - `criteria`: names or files that replace criteria of the same name.
    - `cases`: a text that the names of cases contain, or a list of names.
    - `baseline`: a run to compare with, or a folder of runs, as DIR/NAME. Without one, drift cases
      are errors. With `update_baseline`, this run replaces it if only changes from it fail.
    - `undecided`: treat undecided cases as `pass` or `fail`.
    - `risk`: also estimate how often verdicts would change if nothing had changed.
    - `out`: the folder of the run of one suite's file, otherwise of each run as DIR/NAME.

    A suite that cannot finish has `trouble`. Raises JudgeError for wrong arguments or files.
    """
    suites = prepare_suites(
        paths,
        model=model,
        criteria=criteria,
        cases=cases,
        baseline=baseline,
        update_baseline=update_baseline,
        undecided=undecided,
        risk=risk,
        **options,
    )
    async with displayed(progress) as counts:
        return await run_suites(suites, counts)


test = blocking(test_async)
test.__test__ = False  # type: ignore[attr-defined]  # pytest takes the name for a test of its own


async def run_suites(
    suites: Sequence[PreparedSuite],
    progress: Progress | None = None,
    display: Display = lambda _: nullcontext(),
) -> Outcomes:
    """Run suites one after the other. Raises CancelledError if interrupted."""
    progress = progress if progress is not None else Progress()
    start_time = time.monotonic()
    outcomes = []
    for suite in suites:
        suite_start = time.monotonic()
        deadline_start = start_time if suite.together else suite_start
        results: dict[Form, Result] = {}
        try:
            for form, prepared in suite.runs.items():
                if prepared.config.deadline is not None:
                    elapsed = time.monotonic() - deadline_start
                    seconds_left = max(prepared.config.deadline - elapsed, 0.0)
                    prepared = prepared.with_deadline(seconds_left)
                with display(prepared.judges):
                    results[form] = await run_pipeline(prepared, progress, suite.ledger)
            require_all_recorded(*results.values(), cases_of=partial(_cases_of, suite))
            outcome = decide_suite(suite, results)
            if suite.folder is not None:
                write_pages(suite.folder, outcome, results)
        except JudgeError as error:
            # `run_pipeline` adds what is saved, and how to go on, as notes of the error.
            notes = getattr(error, "__notes__", ())
            message = "\n".join([str(error), *notes])
            outcome = Outcome(suite.suite, trouble=message)
        seconds = time.monotonic() - suite_start
        outcomes.append(replace(outcome, seconds=seconds))
    return Outcomes(outcomes)


def _cases_of(
    prepared: PreparedSuite, criterion: str, text: tuple[str, str]
) -> list[str]:
    """Return the names of the cases that need the score of a text by a criterion."""
    suite_texts = prepared.suite_texts
    names = []
    for case in prepared.suite.cases:
        has_criterion = suite_texts.criteria[case.criterion].name == criterion
        if has_criterion and text in suite_texts.texts_by_case[case.name]:
            names.append(case.name)
    return names
