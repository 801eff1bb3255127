"""The forms of a sheet of people's ratings.

`to_long` reads these forms, all as one row per rating:

| form | columns |
|---|---|
| one row per rating | item, system, rater, criterion, value |
| a column per criterion | item, system, rater, relevance, coherence |
| a column per rater | item, system, relevance_anna, relevance_ben; for one criterion also anna, ben |
| a column per system and rater | item, a_relevance_anna, b_relevance_anna |

A sheet without raters has one rating per text and criterion, perhaps a mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.core.errors import DataError
from judge.core.format import first_names
from judge.core.messages import option
from judge.core.records import ALIASES
from judge.data.rows import RawRow, is_missing

_ROLES = {
    "item": (
        *("item_id", "doc_id", "document_id", "id"),
        *("番号", "번호", "编号", "序号", "編號", "序號"),
    ),
    "system": (
        *("system_id", "model", "model_id"),
        *("システム", "モデル", "시스템", "모델", "系统", "模型", "系統"),
    ),
    "rater": (
        *("rater_id", "annotator", "annotator_id"),
        *("評価者", "採点者", "평가자", "채점자"),
        *("评分者", "评价者", "标注者", "評分者", "評價者", "標註者"),
    ),
    "criterion": (
        *("dimension", "aspect"),
        *("評価項目", "評価基準", "기준", "평가 항목", "평가 기준"),
        *("评价标准", "评分标准", "評價標準", "評分標準"),
    ),
    "value": (
        *("rating", "score"),
        *("評価", "点数", "スコア", "점수", "평점"),
        *("评分", "分数", "得分", "評分", "分數"),
    ),
}
"""The columns of a sheet with other usual names for them, also in Japanese, Korean and Chinese."""
_OTHERS = ("first", "second", "repeat", "seconds", "comment")
_TEXTS = ("source", "output", "references", "reference", *ALIASES)
_SEPARATORS = "_.- "
_SHOWN = 8  # names in a message


@dataclass(frozen=True, slots=True)
class Known:
    """What the columns of a sheet may be about.

    `criteria` are the run's criteria, `others` further names of criteria, `systems` the systems of
    the texts. `columns` are the columns of the data that hold `item` and `system`, if they have
    other names there.
    """

    criteria: Sequence[str] = ()
    others: Sequence[str] = ()
    systems: Sequence[str] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet as one row per rating: the place and the cells of each.

    `unread` are columns with no rating.
    """

    form: str
    rows: Sequence[tuple[str, Mapping[str, Any]]]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Column:
    """What a column holds: ratings of a criterion, by a rater and of a system if it names them."""

    criterion: str
    rater: str
    system: str

    def __str__(self) -> str:
        by_rater = f" by {self.rater}" if self.rater else ""
        of_system = f" of system {self.system}" if self.system else ""
        return f"{self.criterion}{by_rater}{of_system}"


def to_long(raw_rows: Sequence[RawRow], sheet_name: str, known: Known) -> Sheet:
    """Return a sheet as one row per rating; `sheet_name` is for messages.

    Raises DataError for columns with no form, or with several.
    """
    columns = _columns_of(raw_rows)
    role_of = _roles(columns, known)
    roles = set(role_of.values())
    has_rater = "rater" in roles
    sheet_rows = [(row.where, _cells_by_role(row, role_of)) for row in raw_rows]
    implied = _implied_cells(roles, known)
    if "first" in roles or not columns or {"criterion", "value"} <= roles:
        return _long_sheet(sheet_rows, implied)
    # A column names a system only if no column of the sheet does so for the whole row.
    systems: Sequence[str] = ()
    if "system" not in roles and len(known.systems) > 1:
        systems = known.systems
    without_role = [column for column in columns if column not in role_of]
    other_columns = [
        column for column in without_role if column.casefold() not in _TEXTS
    ]
    rating_columns = _rating_columns(
        other_columns,
        sheet_rows,
        known,
        systems,
        sheet_name,
        has_rater=has_rater,
    )
    if not rating_columns and "value" in roles and len(known.criteria) == 1:
        implied["criterion"] = known.criteria[0]
        return _long_sheet(sheet_rows, implied)
    if "item" not in roles or not rating_columns:
        problem = _problem(roles, known, systems)
        listed_columns = ", ".join(columns)
        raise DataError(f"{sheet_name}: {problem} (columns: {listed_columns})")
    long_rows: list[tuple[str, dict[str, Any]]] = []
    for location, cells in sheet_rows:
        rating_rows = _rating_rows(implied | cells, rating_columns)
        long_rows += [(location, row) for row in rating_rows]
    unread = tuple(column for column in other_columns if column not in rating_columns)
    form = _form_of_sheet(rating_columns, of_systems=bool(systems), has_rater=has_rater)
    return Sheet(form, long_rows, unread)


def _columns_of(raw_rows: Sequence[RawRow]) -> list[str]:
    """Return the columns of all rows, in the order of their first appearance."""
    columns: dict[str, None] = {}
    for row in raw_rows:
        columns |= dict.fromkeys(row.cells)
    return list(columns)


def _implied_cells(roles: Collection[str], known: Known) -> dict[str, str]:
    """Return what every row of a sheet has in common, because no column says it."""
    implied: dict[str, str] = {}
    if "rater" not in roles:
        implied["rater"] = ""
    if "system" not in roles and len(known.systems) == 1:
        implied["system"] = known.systems[0]
    return implied


def _long_sheet(
    sheet_rows: Sequence[tuple[str, dict[str, Any]]], implied: Mapping[str, str]
) -> Sheet:
    """Return a sheet that already has one row per rating."""
    long_rows = [(location, {**implied, **cells}) for location, cells in sheet_rows]
    return Sheet("one row per rating", long_rows)


_SheetRows = Sequence[tuple[str, Mapping[str, Any]]]
"""The location and the cells of each row."""


def _cells_by_role(row: RawRow, role_of: Mapping[str, str]) -> dict[str, Any]:
    """Return the cells of a row under our names, without missing ones."""
    cells_by_role: dict[str, Any] = {}
    for column, cell in row.cells.items():
        if not is_missing(cell, row.flat):
            role = role_of.get(column, column)
            cells_by_role[role] = cell
    return cells_by_role


def _is_numeric(column: str, sheet_rows: _SheetRows) -> bool:
    """Return whether a column has a cell, and all its cells are numbers.

    Raises DataError if a few are not, such as N/A: without the column, a rater would be lost.
    """
    present = [(where, cells[column]) for where, cells in sheet_rows if column in cells]
    others = [(where, cell) for where, cell in present if isinstance(parse(cell), str)]
    if others and len(others) <= len(present) / 2:
        where, cell = others[0]
        raise DataError(
            f"{where}: {column} is {cell!r} beside numbers: leave the cell empty if there is no "
            "rating, or remove the column if it has none"
        )
    return bool(present) and not others


def _form_of_sheet(
    rating_columns: Mapping[str, _Column],
    *,
    of_systems: bool,
    has_rater: bool,
) -> str:
    """Return the name of a sheet's form, which has several ratings in a row."""
    if of_systems:
        return "a column per system and rater"
    if has_rater:
        return "a row per text and rater, a column per criterion"
    if any(column.rater for column in rating_columns.values()):
        return "a row per text, a column per rater"
    return "a row per text, a column per criterion"


def _roles(columns: Sequence[str], known: Known) -> dict[str, str]:
    """Return the columns that say what a row is about, with their names here."""
    # Of columns that differ in upper and lower case only, the first one counts.
    column_by_name = {column.casefold(): column for column in reversed(columns)}
    role_of: dict[str, str] = {}
    for name in _OTHERS:
        if name in column_by_name:
            role_of[column_by_name[name]] = name
    # A column with the name of a criterion holds its ratings, such as 評価.
    criteria = {criterion.casefold() for criterion in known.criteria}
    for role, aliases in _ROLES.items():
        name_in_data = str(known.columns.get(role, "")).casefold()
        other_names = [name for name in aliases if name not in criteria]
        for name in (role, name_in_data, *other_names):
            if name in column_by_name:
                role_of[column_by_name[name]] = role
                break
    return role_of


def _rating_columns(
    columns: Sequence[str],
    sheet_rows: _SheetRows,
    known: Known,
    systems: Sequence[str],
    sheet_name: str,
    *,
    has_rater: bool,
) -> dict[str, _Column]:
    """Return what the columns with ratings hold.

    Columns of raters alone need a single criterion, and numbers.
    """
    criteria = [*known.criteria, *known.others]
    meanings_by_column = {
        column: _meanings(column, criteria, systems) for column in columns
    }
    any_meaning = any(meanings_by_column.values())
    if not any_meaning and len(known.criteria) == 1 and not has_rater:
        criterion = known.criteria[0]
        meanings_by_column = {}
        for column in columns:
            meanings = _meanings_of_rater(column, criterion, systems)
            if meanings and _is_numeric(column, sheet_rows):
                meanings_by_column[column] = meanings
    rating_columns: dict[str, _Column] = {}
    for column, meanings in meanings_by_column.items():
        if len(meanings) > 1:
            either = " or ".join(sorted(map(str, meanings)))
            form = _form(systems)
            raise DataError(
                f"{sheet_name}: column {column!r} may be {either}; rename it in the form {form}"
            )
        for meaning in meanings:
            # Beside a column of raters, no other column can name one.
            if not (has_rater and meaning.rater):
                rating_columns[column] = meaning
    if not has_rater:
        _refuse_means(rating_columns, systems, sheet_name)
    return rating_columns


def _meanings_of_rater(
    column: str, criterion: str, systems: Sequence[str]
) -> set[_Column]:
    """Return what a column may hold that names a rater, and a system if there are several."""
    names = _without(column, systems) if systems else [(column, "")]
    return {_Column(criterion, rater, system) for rater, system in names}


def _refuse_means(
    rating_columns: Mapping[str, _Column],
    systems: Sequence[str],
    sheet_name: str,
) -> None:
    """Raise DataError for a column without a rater beside columns of raters: perhaps their mean."""
    for column, meaning in rating_columns.items():
        if meaning.rater:
            continue
        for rater_column, rater_meaning in rating_columns.items():
            same_system = rater_meaning.system in ("", meaning.system)
            same_criterion = rater_meaning.criterion == meaning.criterion
            if rater_meaning.rater and same_system and same_criterion:
                form = _form(systems)
                raise DataError(
                    f"{sheet_name}: column {column!r} names no rater, and {rater_column!r} does; "
                    f"leave it out if it is a mean, or rename it in the form {form}"
                )


def _form(systems: Sequence[str]) -> str:
    return "SYSTEM_CRITERION_RATER" if systems else "CRITERION_RATER"


def _meanings(
    column: str, criteria: Sequence[str], systems: Sequence[str]
) -> set[_Column]:
    """Return what a column may hold: the meanings that leave the shortest name of a rater."""
    meanings: set[_Column] = set()
    for remainder, criterion in _without(column, criteria):
        meanings |= _meanings_of_rater(remainder, criterion, systems)
    for remainder, system in _without(column, systems):
        for rater, criterion in _without(remainder, criteria):
            meanings.add(_Column(criterion, rater, system))
    shortest = min((len(meaning.rater) for meaning in meanings), default=0)
    return {meaning for meaning in meanings if len(meaning.rater) == shortest}


def _without(text: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the text without each of the names that it starts or ends with, and the name.

    `relevance_anna` without `relevance` is `anna`.
    """
    folded = text.casefold()
    for known_name in dict.fromkeys(names):
        folded_name = known_name.casefold()
        n_characters = len(known_name)
        if folded == folded_name:
            yield "", known_name
        elif folded.startswith(folded_name) and text[n_characters] in _SEPARATORS:
            yield text[n_characters + 1 :].strip(), known_name
        elif folded.endswith(folded_name) and text[-n_characters - 1] in _SEPARATORS:
            yield text[: -n_characters - 1].strip(), known_name


def parse(value: Any) -> float | str:
    """Return a cell as a number, or else as text."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return str(value).strip()


def _rating_rows(
    cells: Mapping[str, Any], rating_columns: Mapping[str, _Column]
) -> Iterator[dict[str, Any]]:
    """Yield a row per rating of a row with several."""
    roles = [role for role in ("item", "system", "rater", "repeat") if role in cells]
    shared_cells = {role: cells[role] for role in roles}
    for column, meaning in rating_columns.items():
        if cells.get(column, "") == "":
            continue
        row = {**shared_cells, "criterion": meaning.criterion, "value": cells[column]}
        if meaning.rater:
            row["rater"] = meaning.rater
        if meaning.system:
            row["system"] = meaning.system
        yield row


def _problem(roles: set[str], known: Known, systems: Sequence[str]) -> str:
    """Say why the columns are in none of the forms, and how to rename them."""
    if "item" not in roles:
        name_in_data = known.columns.get("item")
        if name_in_data:
            names = f"item or {name_in_data}, as in the data"
        else:
            example = option("map", {"item": "COLUMN"})
            names = f"item, or name it with {example}"
        return f"no column names the item of a text; call it {names}"
    if "value" in roles and not known.criteria:
        return (
            "it does not name the criterion of its ratings, and no criterion is judged; add a "
            "column criterion"
        )
    if "value" in roles:
        criteria = ", ".join(known.criteria)
        example = option("rating_criterion", known.criteria[0])
        return (
            f"it does not name the criterion of its ratings ({criteria}); "
            f"name it with {example}, or add a column criterion"
        )
    return _problem_of_unnamed_ratings([*known.criteria, *known.others], systems)


def _problem_of_unnamed_ratings(
    known_criteria: Sequence[str], systems: Sequence[str]
) -> str:
    """Say that no column has ratings, and how to name one."""
    criteria = list(dict.fromkeys(known_criteria))
    first_criterion = criteria[0] if criteria else "CRITERION"
    example = "_".join([*systems[:1], first_criterion, "anna"])
    names = "no criterion is known"
    if criteria:
        listed_criteria = first_names(criteria, _SHOWN)
        names = f"the criteria are {listed_criteria}"
    if systems:
        listed_systems = first_names(systems, _SHOWN)
        names += f", the systems {listed_systems}"
    return (
        "no column has ratings; write item, system, rater, criterion, value, or columns like "
        f"{example!r}; {names}"
    )
