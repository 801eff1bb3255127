"""`judge plan`: estimate the requests, cost and time of a run without sending anything."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from judge.cli.options import (
    ASKING,
    ENGINE,
    JUDGE,
    KEEPING,
    MEASURES,
    PACE,
    PAIRS,
    PART,
    READING,
    SCORING,
    Criteria,
    Data,
    MergeCriteria,
    Replay,
    format_option,
    option,
    to_config,
    with_options,
)
from judge.cli.terminal import BOTH, check_format, console, print_json


@with_options(
    JUDGE, {"criteria": Criteria}, PAIRS, READING, SCORING, ASKING, PACE, ENGINE, PART, {"replay": Replay}, KEEPING,
    MEASURES, {"merge_criteria": MergeCriteria},
    {
        "rank": Annotated[bool, typer.Option("--rank", help="Plan for judge rank: texts are compared two by two.")],
        "items": Annotated[int | None, option("Plan for so many items like these (default: these).", metavar="N")],
        "format": Annotated[str, format_option(*BOTH)],
    },
)  # fmt: skip
def plan_command(
    data: Data, *, rank: bool = False, items: int | None = None, format: str = "console", **params: Any
) -> None:
    """Say what a run would ask, cost and take. Sends nothing, and needs no key."""
    from judge.commands.cost_estimate import estimate_cost
    from judge.commands.judge_models import open_offline
    from judge.commands.plan import show
    from judge.commands.preparation import prepare
    from judge.config import load_config, load_rank_config

    check_format(format, "a plan")
    config, _ = to_config(data, params, load_rank_config if rank else load_config)
    config = config.model_copy(update={"out": None, "record": None, "retry_failed": False})
    estimate = estimate_cost(prepare(config, providers=open_offline(config)), items=items)
    if format == "json":
        print_json(estimate.to_dict())
    else:
        show(console(), estimate)
