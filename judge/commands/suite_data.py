"""Read the data of a suite, and have systems that are prompts write their outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from judge.config import RunConfig, run_options
from judge.core.errors import DataError
from judge.core.format import plural
from judge.core.records import Sample
from judge.execution.budget import BudgetLedger
from judge.run.generate import Outputs, plan_outputs
from judge.suite import load
from judge.suite.schema import Suite

Write = Callable[[RunConfig, BudgetLedger | None], Outputs]
"""Generates the outputs of a suite's systems. Raises JudgeError."""
Check = Callable[[Suite, Sequence[Sample]], object]
"""Checks a suite and its samples. Raises JudgeError."""


@dataclass(frozen=True, slots=True)
class SuiteData:
    """A suite whose data have outputs, its texts, and the outputs that were generated, if any."""

    suite: Suite
    samples: Sequence[Sample]
    outputs: Outputs | None


def read_data(
    suite: Suite,
    ledger: BudgetLedger | None,
    write: Write,
    check: Check,
) -> SuiteData:
    """Read the data of a suite. Systems that are prompts write their outputs first.

    Before anything is paid, `check` gets the suite with assumed outputs.

    Raises DataError if an output cannot be written: a case must not pass because a text is missing.
    """
    if not isinstance(suite.options.get("systems"), dict):
        return SuiteData(suite, load.read(suite), None)
    # Writing asks no judge, and the run keeps the outputs in its folder later.
    unused = {"model", "out"}
    known_options = run_options("run").keys() - unused
    options = {
        option_name: value
        for option_name, value in suite.options.items()
        if option_name in known_options
    }
    config = RunConfig.load(options=options)
    options_of_judging = {
        option_name: value
        for option_name, value in suite.options.items()
        if option_name != "systems"
    }
    with_outputs = replace(suite, options=options_of_judging)
    check(with_outputs, plan_outputs(config, None).data)
    outputs = write(config, ledger)
    if outputs.failures:
        first_failure = outputs.failures[0]
        failed_outputs = plural(len(outputs.failures), "output")
        raise DataError(
            f"{failed_outputs} could not be generated; the first is of {first_failure.system} for "
            f"item {first_failure.item}: {first_failure.message}"
        )
    return SuiteData(with_outputs, outputs.samples, outputs)
