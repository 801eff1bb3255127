"""Several runs that are one: asked one after the other, out of one purse and within one deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from judge.commands import pipeline
from judge.commands.preparation import Prepared
from judge.config import Plan
from judge.execution.budget import Purse
from judge.execution.progress import Progress
from judge.results.result import Result

Showing = Callable[[str, Prepared], AbstractContextManager[Any]]
"""What shows one of the runs, by its name, while it goes."""


async def in_turn(
    runs: Mapping[str, Prepared], plan: Plan, progress: Progress | None, shown: Showing
) -> dict[str, Result]:
    """What each run brings; budget and deadline are those of the plan. Raises what `stages.run` raises."""
    progress = progress if progress is not None else Progress()
    purse, results = Purse(plan.budget), dict[str, Result]()
    now = asyncio.get_running_loop().time
    until = None if plan.deadline is None else now() + plan.deadline
    for name, one in runs.items():
        if until is not None:
            one.plan = one.plan.model_copy(update={"deadline": until - now()})
        progress.stage = "judging"
        with shown(name, one):
            results[name] = await pipeline.run_pipeline(one, progress, purse)
    return results
