"""The forms that a sheet of people's ratings may have, all read as one row per rating.

| form | columns |
|---|---|
| one row per rating | item, system, rater, criterion, value |
| a column per criterion | item, system, rater, relevance, coherence |
| a column per rater | item, system, relevance_anna, relevance_ben; if there is one criterion, also anna, ben |
| a column per system and rater | item, a_relevance_anna, b_relevance_anna |

A sheet without raters has one rating per text and criterion, perhaps a mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.core.errors import DataError
from judge.core.records import ALIASES
from judge.data.rows import RawRow, is_missing

_ROLES = {
    "item": ("item_id", "doc_id", "document_id", "id"),
    "system": ("system_id", "model", "model_id"),
    "rater": ("rater_id", "annotator", "annotator_id"),
    "criterion": ("dimension", "aspect"),
    "value": ("rating", "score"),
}
"""The columns of a sheet with other usual names for them."""
_OTHERS = ("first", "second", "repeat", "seconds", "comment")
_TEXTS = ("source", "output", "references", "reference", *ALIASES)
_SEPARATORS = "_.- "
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Known:
    """What the columns of a sheet may be about.

    `criteria` are those of the run, `others` further names of criteria, `systems` those of the texts. `columns` are the
    columns of the data that hold `item` and `system`, if they have other names there.
    """

    criteria: Sequence[str] = ()
    others: Sequence[str] = ()
    systems: Sequence[str] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet as one row per rating: the place and the cells of each. `unread` are columns with no rating."""

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
        by = f" by {self.rater}" if self.rater else ""
        return f"{self.criterion}{by}{f' of system {self.system}' if self.system else ''}"


def to_long(raw: Sequence[RawRow], name: str, known: Known) -> Sheet:
    """Return the sheet `name` as one row per rating. Raises DataError for columns with no form, or with several."""
    columns = list(dict.fromkeys(column for row in raw for column in row.cells))
    role_of = _roles(columns, known)
    roles = {*role_of.values()}
    rows = [
        (row.where, {role_of.get(c, c): cell for c, cell in row.cells.items() if not is_missing(cell, row.flat)})
        for row in raw
    ]
    usual = {} if "rater" in roles else {"rater": ""}
    usual |= {"system": known.systems[0]} if "system" not in roles and len(known.systems) == 1 else {}
    if "first" in roles or not columns or {"criterion", "value"} <= roles:
        return Sheet("one row per rating", [(where, usual | cells) for where, cells in rows])
    free = [column for column in columns if column not in role_of and column.casefold() not in _TEXTS]
    kinds = {column: {type(parse(cells[column])) for _, cells in rows if column in cells} for column in free}
    numbers = [column for column in free if kinds[column] == {float}]
    systems = () if "system" in roles or len(known.systems) < 2 else known.systems
    read = _read_columns(free, numbers, known, systems, name, has_rater="rater" in roles)
    if not read and "value" in roles and len(known.criteria) == 1:
        usual["criterion"] = known.criteria[0]
        return Sheet("one row per rating", [(where, usual | cells) for where, cells in rows])
    if "item" not in roles or not read:
        raise DataError(f"{name}: {_problem(roles, known, systems)} (columns: {', '.join(columns)})")
    return Sheet(
        "a column per system and rater" if systems
        else "a row per text and rater, a column per criterion" if "rater" in roles
        else "a row per text, a column per rater" if any(column.rater for column in read.values())
        else "a row per text, a column per criterion",
        [(where, row) for where, cells in rows for row in _unfolded(usual | cells, read)],
        tuple(column for column in free if column not in read),
    )  # fmt: skip


def _roles(columns: Sequence[str], known: Known) -> dict[str, str]:
    """Return the columns that say what a row is about, with their names here."""
    lower = {column.casefold(): column for column in reversed(columns)}
    role_of = {lower[name]: name for name in _OTHERS if name in lower}
    for role, aliases in _ROLES.items():
        for name in (role, str(known.columns.get(role, "")).casefold(), *aliases):
            if name in lower:
                role_of[lower[name]] = role
                break
    return role_of


def _read_columns(
    columns: Sequence[str], numbers: Sequence[str], known: Known, systems: Sequence[str], name: str, *, has_rater: bool
) -> dict[str, _Column]:
    """Return what the columns with ratings hold. Columns of raters alone need a single criterion, and numbers."""
    criteria = [*known.criteria, *known.others]
    read = {column: _meanings(column, criteria, systems) for column in columns}
    if not any(read.values()) and len(known.criteria) == 1 and not has_rater:
        of_raters = {column: _without(column, systems) if systems else [(column, "")] for column in numbers}
        read = {column: {_Column(known.criteria[0], *each) for each in of_raters[column]} for column in numbers}
    found = {}
    for column, meanings in read.items():
        if len(meanings) > 1:
            either = " or ".join(sorted(map(str, meanings)))
            raise DataError(f"{name}: column {column!r} may be {either}; rename it in the form {_form(systems)}")
        if meanings and not (has_rater and next(iter(meanings)).rater):
            found[column] = next(iter(meanings))
    for column, meaning in found.items():
        if not meaning.rater and not has_rater:
            beside = [c for c, m in found.items() if m.rater and m.system in ("", meaning.system)
                      and m.criterion == meaning.criterion]  # fmt: skip
            if beside:
                raise DataError(
                    f"{name}: column {column!r} names no rater, and {beside[0]!r} does; leave it out if it is a mean, "
                    f"or rename it in the form {_form(systems)}"
                )
    return found


def _form(systems: Sequence[str]) -> str:
    return "SYSTEM_CRITERION_RATER" if systems else "CRITERION_RATER"


def _meanings(column: str, criteria: Sequence[str], systems: Sequence[str]) -> set[_Column]:
    """Return what a column may hold: those that leave the shortest name of a rater."""
    found = set()
    for rest, criterion in _without(column, criteria):
        found |= {_Column(criterion, rater, s) for rater, s in (_without(rest, systems) if systems else [(rest, "")])}
    for rest, system in _without(column, systems):
        found |= {_Column(criterion, rater, system) for rater, criterion in _without(rest, criteria)}
    shortest = min((len(meaning.rater) for meaning in found), default=0)
    return {meaning for meaning in found if len(meaning.rater) == shortest}


def _without(text: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the text without each of the names that it starts or ends with, and the name."""
    folded = text.casefold()
    for name in dict.fromkeys(names):
        n = len(name)
        if folded == name.casefold():
            yield "", name
        elif folded.startswith(name.casefold()) and text[n] in _SEPARATORS:
            yield text[n + 1 :].strip(), name
        elif folded.endswith(name.casefold()) and text[-n - 1] in _SEPARATORS:
            yield text[: -n - 1].strip(), name


def parse(value: Any) -> float | str:
    """Return a cell as a number, or else as text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value).strip()


def _unfolded(cells: Mapping[str, Any], read: Mapping[str, _Column]) -> Iterator[dict[str, Any]]:
    """Yield a row per rating of a row with several."""
    about = {role: cell for role, cell in cells.items() if role in ("item", "system", "rater", "repeat")}
    for column, meaning in read.items():
        if cells.get(column, "") != "":
            named = {"rater": meaning.rater, "system": meaning.system}
            own = {role: name for role, name in named.items() if name}
            yield {**about, **own, "criterion": meaning.criterion, "value": cells[column]}


def _problem(roles: set[str], known: Known, systems: Sequence[str]) -> str:
    """Say why the columns are in none of the forms, and how to rename them."""
    if "item" not in roles:
        return "no column item, which says the text's item"
    criteria = list(dict.fromkeys([*known.criteria, *known.others]))
    example = "_".join([*systems[:1], *(criteria or ["CRITERION"])[:1], "anna"])
    names = f"the criteria are {', '.join(criteria[:_SHOWN])}" if criteria else "no criterion is known"
    if systems:
        names += f", the systems {', '.join(systems[:_SHOWN])}"
    return f"no column has ratings; write item, system, rater, criterion, value, or columns like {example!r}; {names}"
