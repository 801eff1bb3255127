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


def writes_outputs(suite: Suite) -> bool:
    """Return whether a suite has systems that are prompts or files of outputs."""
    return isinstance(suite.options.get("systems"), dict)


def check_before_writing(suite: Suite, check: Check) -> None:
    """Pass a suite that writes outputs to `check`, with assumed outputs. Raises JudgeError."""
    planned = plan_outputs(_writing_config(suite), None)
    check(_without_systems(suite), planned.data)


def read_data(suite: Suite, ledger: BudgetLedger | None, write: Write) -> SuiteData:
    """Read the data of a suite. Systems that are prompts write their outputs first.

    Raises DataError if an output cannot be written: a case must not pass because a text is missing.
    """
    if not writes_outputs(suite):
        return SuiteData(suite, load.read(suite), None)
    outputs = write(_writing_config(suite), ledger)
    if outputs.failures:
        first_failure = outputs.failures[0]
        failed_outputs = plural(len(outputs.failures), "output")
        raise DataError(
            f"{failed_outputs} could not be generated; the first is of {first_failure.system} for "
            f"item {first_failure.item}: {first_failure.message}"
        )
    return SuiteData(_without_systems(suite), outputs.samples, outputs)


def _writing_config(suite: Suite) -> RunConfig:
    """Return the configuration by which the systems of a suite write."""
    # Writing asks no judge, and the run keeps the outputs in its folder later.
    unused = {"model", "out"}
    known_options = run_options("run").keys() - unused
    options = {
        option_name: value
        for option_name, value in suite.options.items()
        if option_name in known_options
    }
    return RunConfig.load(options=options)


def _without_systems(suite: Suite) -> Suite:
    """Return the suite as it judges outputs that are written."""
    options = dict(suite.options)
    options.pop("systems", None)
    return replace(suite, options=options)
