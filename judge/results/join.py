"""A result's scores as columns of the frame that was judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judge.core.errors import ConfigError, DataError
from judge.data import samples
from judge.results.result import Result

if TYPE_CHECKING:
    import pandas as pd


def join(result: Result, frame: pd.DataFrame, prefix: str = "") -> pd.DataFrame:
    """What `Result.join` promises."""
    import pandas as pd

    if result.rankings or any(score.rival for score in result.table.scores):
        raise ConfigError("a ranking has no score for a single text: to_frame() has its pairs")
    if "streamed" in result.info:
        raise ConfigError("this run did not hold its data: read scores.parquet in its folder")
    plan = result.info.get("plan") or {}
    systems = tuple(plan.get("systems") or ())
    rows = _rows(frame, plan, systems, result)
    values = {(s.item, s.system, s.column): s.value for s in result.table.scores if s.item}
    found = frame.copy()
    columns = [column for column in result.table.columns if any(key[2] == column.name for key in values) or
               column.kind == "criterion"]  # fmt: skip
    for place, system in enumerate(systems or ("",)):
        for column in columns:
            name = f"{prefix}{system}.{column.name}" if system else f"{prefix}{column.name}"
            if name in frame.columns:
                raise DataError(
                    f"the frame has a column {name!r} already: join(frame, prefix='judge.') names them apart"
                )
            cells = [values.get((*row[place], column.name)) if row is not None else None for row in rows]
            found[name] = pd.Series(cells, index=frame.index, dtype="float64").to_numpy()
    return found


def _rows(
    frame: Any, plan: dict[str, Any], systems: tuple[str, ...], result: Result
) -> list[list[tuple[str, str]] | None]:
    """Which texts each row has, None for a row that the run left out. Raises DataError for a frame of other texts."""
    texts = {(s.item, s.system): s.output for s in result.table.samples}
    read = samples.load(frame, mapping=plan.get("map") or {}, systems=systems)
    each = max(len(systems), 1)
    partly = plan.get("limit") is not None or bool(plan.get("where"))
    found: list[list[tuple[str, str]] | None] = []
    for place in range(0, len(read), each):
        row = read[place : place + each]
        keys = [(sample.item, sample.system) for sample in row]
        lacking = [sample for sample in row if (sample.item, sample.system) not in texts]
        if lacking and not partly:
            raise DataError(
                f"row {place // each}: the run has no text of item {row[0].item!r}; join the frame it judged"
            )
        for sample in row:
            if texts.get((sample.item, sample.system), sample.output) != sample.output:
                raise DataError(
                    f"row {place // each}: item {sample.item!r} of {sample.system!r} is another text than the run "
                    "judged; join the frame it judged"
                )
        found.append(None if lacking else keys)
    return found
