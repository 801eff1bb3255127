"""The frame that was judged, with its scores as further columns, for `Result.join`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from judge.config import RunConfig
from judge.core.errors import ConfigError, DataError
from judge.data import samples
from judge.table import Table, Text

if TYPE_CHECKING:
    import pandas as pd


def joined_frame(
    table: Table,
    config: RunConfig,
    frame: pd.DataFrame,
    prefix: str,
) -> pd.DataFrame:
    """Return the frame with a column for each system and column of the table.

    Raises DataError for a frame of other texts or with such a column already, and ConfigError for
    what is no frame.
    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise ConfigError(
            f"join takes the DataFrame that was judged, not a {type(frame).__name__}; for "
            "other data use to_frame(wide=True)"
        )
    systems = config.output_columns
    rows = _keys_of_frame_rows(frame, table, config)
    values: dict[tuple[str, str, str], float] = {}
    for score in table.scores:
        # A score without an item is that of a whole system, and of no row.
        if score.item:
            values[score.item, score.system, score.column] = score.value
    columns_with_values = {column for _, _, column in values}
    joined = frame.copy()
    # A row of wide data has a text of each system, any other row one text.
    for position, system in enumerate(systems or ("",)):
        for column in table.columns:
            # A metric of whole systems has no value for a row. A criterion may lack all values
            # because all judgments failed, and keeps its column.
            if column.kind != "criterion" and column.name not in columns_with_values:
                continue
            name_in_system = f"{system}.{column.name}" if system else column.name
            column_name = f"{prefix}{name_in_system}"
            if column_name in frame.columns:
                raise DataError(
                    f"the frame already has a column {column_name!r}: "
                    "join(frame, prefix='judge.') renames the columns of judge"
                )
            cells = _cells_of_rows(rows, position, column.name, values)
            series = pd.Series(cells, index=frame.index, dtype="float64")
            joined[column_name] = series.to_numpy()
    return joined


def _keys_of_frame_rows(
    frame: pd.DataFrame,
    table: Table,
    config: RunConfig,
) -> list[list[Text] | None]:
    """Return the item and system of each text of a row, None for a row that the run left out.

    Raises DataError for a frame of other texts.
    """
    systems = config.output_columns
    judged_outputs = {sample.key: sample.output for sample in table.samples}
    frame_samples = samples.load(frame, mapping=config.map, systems=systems)
    texts_per_row = max(len(systems), 1)
    partly_judged = config.limit is not None or bool(config.where)
    keys_by_row: list[list[Text] | None] = []
    for first_sample in range(0, len(frame_samples), texts_per_row):
        row = frame_samples[first_sample : first_sample + texts_per_row]
        for sample in row:
            judged = judged_outputs.get(sample.key)
            # `limit` or `where` may have left this row out.
            if judged is None and partly_judged:
                continue
            if judged != sample.output:
                row_number = first_sample // texts_per_row
                raise DataError(
                    f"row {row_number}: the run judged another text of item {sample.item!r}, or "
                    "none; join the frame it judged"
                )
        keys = [sample.key for sample in row]
        is_complete = judged_outputs.keys() >= set(keys)
        keys_by_row.append(keys if is_complete else None)
    return keys_by_row


def _cells_of_rows(
    rows: Sequence[Sequence[Text] | None],
    position: int,
    column: str,
    values: Mapping[tuple[str, str, str], float],
) -> list[float | None]:
    """Return a column's value for each row, None without one.

    A row has the item and the system of its texts; `position` selects one of these. `values` are by
    item, system and column.
    """
    cells: list[float | None] = []
    for keys in rows:
        # A row that the run left out has no texts, and so no values.
        if keys is None:
            cells.append(None)
        else:
            item, system = keys[position]
            cells.append(values.get((item, system, column)))
    return cells
