"""`judge.improve`: the Python form of `judge criteria improve`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from judge import criteria
from judge.commands.evaluate import SingleModel, reject_unsupported, to_config
from judge.commands.improve.command import plan_improvement, run_improvement
from judge.commands.improve.record import Improvement
from judge.commands.options import JudgeOptions
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import public_api
from judge.config import RunConfig
from judge.core.errors import CriterionError
from judge.core.records import Criterion
from judge.core.run_sync import run_sync

if TYPE_CHECKING:
    import pandas as pd

    from judge.commands.evaluate import Data


@public_api("diff")
def improve(
    criterion: str | Path | Mapping[str, Any] | Criterion,
    data: Data,
    *,
    ratings: str | Path | pd.DataFrame | Iterable[Mapping[str, Any]] | None = None,
    model: SingleModel | None = None,
    writer: SingleModel | None = None,
    revisions: int = 4,
    human: str | None = None,
    output: str | Path | None = None,
    out: str | Path | None = None,
    progress: Watch = None,
    **options: Unpack[JudgeOptions],
) -> Improvement:
    """Have a model revise a criterion, and test the gain on ratings that no step has seen.

    - `criterion`: a criterion with a question.
    - `ratings`: people's ratings of at least 20 items, unless the data has them. `human` names them
      (default: the criterion's name).
    - `writer`: the model that writes the `revisions` (default: the judge). They are tried on a
      third of the items; the best one is tested on the others.
    - `output`: the file to write if the best one agrees significantly better with people.
    - `out`: a folder for all revisions.

    Raises JudgeError. A failed judgment or an unusable revision raises nothing; the result counts
    them.
    """
    reject_unsupported(options, "diff", "judge.improve")
    all_options = {"ratings": ratings, **options}
    config, judges, _ = to_config(RunConfig, data, None, model, all_options)
    writing_model = None
    if writer is not None:
        writers = to_config(RunConfig, None, None, writer, {}).providers
        writing_model = writers[0] if writers else None
    output_path = None if output is None else Path(output)
    out_folder = None if out is None else Path(out)
    plan = plan_improvement(
        _entry(criterion),
        config,
        data,
        providers=judges,
        writer=writing_model,
        revisions=revisions,
        human=human,
        output=output_path,
        out=out_folder,
        writes=output is not None,
    )

    async def run() -> Improvement:
        async with displayed(progress) as counts:
            return await run_improvement(plan, counts)

    return run_sync(run)


def _entry(criterion: str | Path | Mapping[str, Any] | Criterion) -> str:
    """Return a criterion as the text that names it or has its keys. Raises CriterionError."""
    if not isinstance(criterion, Criterion):
        return criteria.validate_name(criterion)
    finalized = criteria.finalize(criterion)
    if Path(finalized.path).is_file() and _is_unchanged(finalized):
        return finalized.path
    if not finalized.question:
        raise CriterionError(
            f"{finalized.name}: its wording is in a template; write that into a file and name it"
        )
    scale = {"labels": finalized.scale.labels, "values": finalized.scale.values}
    levels = dict(finalized.levels)
    header = {
        "name": finalized.name,
        "title": finalized.title,
        "question": finalized.question,
        "scale": scale,
        "levels": levels,
        "steps": finalized.steps,
        "show": finalized.show,
        "reply": finalized.reply,
        "weight": finalized.weight,
        "version": finalized.version,
    }
    set_keys = {header_key: value for header_key, value in header.items() if value}
    return json.dumps(set_keys, ensure_ascii=False)


def _is_unchanged(criterion: Criterion) -> bool:
    """Return whether a criterion is what its file says."""
    in_file = criteria.load(criterion.path, language=criterion.language, pairwise=None)
    return in_file.digest == criterion.digest
