"""`judge.generate`: the Python form of `judge run --generate-only`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from judge.commands.evaluate import to_config
from judge.commands.options import RunOptions
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import public_api
from judge.config import RunConfig
from judge.core.errors import ConfigError
from judge.core.run_sync import run_sync
from judge.execution.budget import BudgetLedger
from judge.run.generate import OPTIONS, Outputs, with_outputs

if TYPE_CHECKING:
    from judge.commands.evaluate import Data


@public_api()
def generate(
    data: Data,
    *,
    progress: Watch = None,
    **options: Unpack[RunOptions],
) -> Outputs:
    """Have systems write an output for each item of the data, and judge nothing.

    `systems` are prompts and models, as in `{"short": {"prompt": "short.jinja", "model":
    "gpt-5.4-mini"}}`, or files of outputs. A prompt is a Jinja file that reads the data's columns.
    `judge.evaluate` takes the same `systems`; to look at the outputs first, pass it
    `outputs.to_frame()`.

    It takes the options of `judge.evaluate` that select rows or limit requests, cost and time.
    Raises JudgeError, also if there is no text at all.
    """
    for option_name, value in options.items():
        if option_name not in ("systems", *OPTIONS) and value is not None:
            problem = "judge.generate judges nothing"
            raise ConfigError(f"{option_name}: {problem}; leave it out")
    config, _, _ = to_config(RunConfig, data, None, None, options)
    if not isinstance(config.systems, dict) or not config.systems:
        raise ConfigError(
            "systems: name each system's prompt and model: "
            "{'NAME': {'prompt': 'FILE.jinja', 'model': 'MODEL'}}"
        )

    async def run() -> Outputs:
        async with displayed(progress) as counts:
            ledger = BudgetLedger(config.budget)
            written = await with_outputs(config, data, counts, ledger)
            assert written.outputs is not None  # noqa: S101  (systems is a mapping)
            counts.stage = "done"
            return written.outputs

    return run_sync(run)
