"""People's ratings in a file of their own, such as `judge label` writes.

`read_ratings` reads the file, `join_ratings` gives the ratings to the texts they are about, and `pair_names` finds the
ratings of a criterion that is a variant of another one.

`to_long` reads these forms of a sheet, all as one row per rating:

| form | columns |
|---|---|
| one row per rating | item, system, rater, criterion, value |
| a column per criterion | item, system, rater, relevance, coherence |
| a column per rater | item, system, relevance_anna, relevance_ben; if there is one criterion, also anna, ben |
| a column per system and rater | item, a_relevance_anna, b_relevance_anna |

A sheet without raters has one rating per text and criterion, perhaps a mean.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from judge.core.errors import DataError
from judge.core.format import one_line, text_name
from judge.core.records import ALIASES, Sample
from judge.data.rows import RawRow, is_missing, rows

if TYPE_CHECKING:
    import pandas as pd

    RatingSource = str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any]]

T = TypeVar("T")
Ends = tuple[float, float]
_NAMED = 3
Preference = Literal["first", "second", "tie"]


@dataclass(frozen=True, slots=True)
class Rating:
    """One rating of a text by a person.

    `value` is a number, or a label of the criterion's scale. `repeat` marks a second rating of the same text by the
    same rater: it shows how consistent the rater is and counts in no mean. `where` is the row, such as
    `ratings.jsonl:7`.
    """

    item: str
    system: str
    rater: str
    criterion: str
    value: float | str
    repeat: bool = False
    comment: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class PairRating:
    """One person's preference between the texts of two systems, `first` and `second`, for an item."""

    item: str
    first: str
    second: str
    rater: str
    criterion: str
    value: Preference
    repeat: bool = False
    comment: str = ""
    where: str = ""


def stated(preferences: Iterable[PairRating]) -> tuple[PairRating, ...]:
    """Return the preferences that count: a pair that a person rated again shows how steady that person is."""
    return tuple(each for each in preferences if not each.repeat)


@dataclass(frozen=True, slots=True)
class Ratings:
    """The ratings of a file: of texts (`single`) and of pairs of texts (`pairs`), in the order of the file.

    `form` is the form of the file, `replaced` counts ratings that a later row changed, `unread` are columns that hold
    no rating.
    """

    single: tuple[Rating, ...] = ()
    pairs: tuple[PairRating, ...] = ()
    form: str = ""
    replaced: int = 0
    unread: tuple[str, ...] = ()

    @property
    def every(self) -> tuple[Rating | PairRating, ...]:
        """Both kinds, those of texts first."""
        return (*self.single, *self.pairs)

    def raters(self, criterion: str) -> tuple[str, ...]:
        """Return those who rated a criterion, in the order of their first rating."""
        return tuple(dict.fromkeys(r.rater for r in self.every if r.criterion == criterion))

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria that people rated, in the order of their first rating."""
        return tuple(dict.fromkeys(r.criterion for r in self.every))


def source_name(source: RatingSource) -> str:
    """Return how messages call the place of ratings: a file's path, or what it is in Python."""
    return (
        str(source)
        if isinstance(source, str | PathLike)
        else f"the {type(source).__name__} of ratings"
    )


def read_ratings(source: RatingSource, known: Known | None = None) -> Ratings:
    """Read ratings, in any form of `to_long`; `known` says what the columns may be about.

    The source is a file, a DataFrame or an iterable of mappings.

    A later rating of the same text, criterion and rater replaces an earlier one. With one row per rating, a row has
    `first` and `second` in place of `system` if it compares two texts, and `repeat` and `comment` are optional. A row
    whose value is null takes the rating back. Raises DataError, with file and line.
    """
    found: dict[tuple[Any, ...], Rating | PairRating | None] = {}
    replaced = 0
    raw = [row for row in rows(source) if isinstance(row, RawRow)]
    sheet = to_long(raw, source_name(source), known or Known())
    for where, cells in sheet.rows:
        compares = "first" in cells
        names = ("item", *(("first", "second") if compares else ("system",)), "rater", "criterion")
        if lacking := [
            n for n in names if n not in cells or (n != "rater" and not str(cells[n]).strip())
        ]:
            raise DataError(
                f"{where}: a rating has no {lacking[0]}; it needs {', '.join(names)} and value"
            )
        key = [  # 7.0, as a table with gaps has it, is 7
            str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell).strip()
            for cell in map(cells.__getitem__, names)
        ]
        repeat = str(cells.get("repeat", "")).lower() in ("true", "1")
        value = cells.get("value")
        if compares and value not in (None, "first", "second", "tie"):
            raise DataError(
                f"{where}: value is {one_line(str(value), 40)!r}; a preference is first, second or tie"
            )
        kind: Any = PairRating if compares else Rating
        rating = None if value is None else kind(
            *key, value if compares else parse(value), repeat, str(cells.get("comment", "")), where,
        )  # fmt: skip
        former = found.get((*key, repeat))
        replaced += rating is not None and former is not None and former.value != rating.value
        found[(*key, repeat)] = rating
    kept = [rating for rating in found.values() if rating is not None]
    return Ratings(
        tuple(r for r in kept if isinstance(r, Rating)), tuple(r for r in kept if isinstance(r, PairRating)),
        sheet.form, replaced, sheet.unread,
    )  # fmt: skip


def join_ratings(
    samples: Iterable[Sample],
    ratings: Sequence[Rating],
    values: Mapping[str, Mapping[str, float]] | None = None,
) -> list[Sample]:
    """Return the samples with these ratings as `human`, `ratings` and `raters`; other ratings of these criteria go.

    `values` has the value of each label, by criterion. A rater without a name is not listed. Raises DataError for a
    rating of a text that is not there, and for one that is neither a number nor a label.
    """
    raters: dict[str, dict[str, None]] = {}
    given: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for rating in ratings:
        if not rating.repeat:
            raters.setdefault(rating.criterion, {})[rating.rater] = None
            by_criterion = given.setdefault((rating.item, rating.system), {})
            by_criterion.setdefault(rating.criterion, {})[rating.rater] = _number(
                rating, values or {}
            )
    names = {criterion: tuple(by_rater) for criterion, by_rater in raters.items()}
    joined = []
    for sample in samples:
        own = given.pop(sample.key, {})
        votes = {
            n: tuple(row.get(rater) for rater in names[n])
            for n, row in own.items()
            if names[n] != ("",)
        }
        means = {name: fmean(by_rater.values()) for name, by_rater in own.items()}
        raters_of = _others(sample.raters, names) | {name: names[name] for name in votes}
        human, single = _others(sample.human, names) | means, _others(sample.ratings, names) | votes
        joined.append(replace(sample, human=human, ratings=single, raters=raters_of))
    if given:
        first = next(rating for rating in ratings if (rating.item, rating.system) in given)
        texts = ", ".join(text_name(*sample.key) for sample in joined[:_NAMED])
        near = difflib.get_close_matches(first.item, {sample.item for sample in joined}, n=1)
        hint = f"; did you mean item {near[0]!r}?" if near else ""
        raise DataError(
            f"{first.where}: no text of item {first.item!r} and system {first.system!r} is in the data (it has "
            f"{texts}, …){hint}"
        )
    return joined


def _others(ratings: Mapping[str, T], names: Collection[str]) -> dict[str, T]:
    return {name: each for name, each in ratings.items() if name not in names}


def base_name(criterion: str) -> str:
    """Return the name of which a criterion's is a variant: `fluency` for `fluency_5` and `fluency_v2`."""
    return re.sub(r"[_-]v?\d+([_-]\d+)*$", "", criterion)


def pair_names(
    samples: Sequence[Sample], scales: Mapping[str, Ends]
) -> tuple[dict[str, str], list[str]]:
    """Return by criterion the name of its ratings, if people rated `fluency` and the criterion is `fluency_5`.

    `scales` has the ends of each criterion's scale. The ratings must be within the scale, and not already be those of
    a criterion of their own name. The notes say which names belong together, and which do not for their scale.
    """
    rated: dict[str, list[float]] = {}
    for sample in samples:
        for name, mean in sample.human.items():
            votes = [vote for vote in sample.ratings.get(name, ()) if vote is not None]
            rated.setdefault(name, []).extend(votes or [mean])
    pairs, notes = {}, []
    for criterion, (low, high) in scales.items():
        base = base_name(criterion)
        if criterion in rated or base not in rated:
            continue
        least, most = min(rated[base]), max(rated[base])
        if base in scales and scales[base][0] <= least and most <= scales[base][1]:
            continue
        if low <= least and most <= high:
            pairs[criterion] = base
            notes.append(f"{criterion} is compared with people's ratings of {base}.")
        else:
            notes.append(
                f"People rated {base} from {least:g} to {most:g}. That is outside the scale of {criterion}, {low:g} to "
                f"{high:g}, so they are not compared."
            )
    return pairs, notes


def renamed(
    samples: Iterable[Sample], pairs: Mapping[str, str], criteria: Collection[str]
) -> Iterator[Sample]:
    """Yield the samples with the ratings of `pairs` under the criterion's name; a name of one of `criteria` stays."""

    def again(ratings: Mapping[str, T]) -> dict[str, T]:
        copied = {criterion: ratings[base] for criterion, base in pairs.items() if base in ratings}
        return {
            name: each
            for name, each in ratings.items()
            if name in criteria or name not in pairs.values()
        } | copied

    for sample in samples:
        if pairs:
            sample = replace(
                sample,
                human=again(sample.human),
                ratings=again(sample.ratings),
                raters=again(sample.raters),
            )
        yield sample


def _number(rating: Rating, values: Mapping[str, Mapping[str, float]]) -> float:
    if isinstance(rating.value, float) and math.isfinite(rating.value):
        return rating.value
    labels = values.get(rating.criterion, {})
    if rating.value not in labels:
        known = f", and no label of its scale ({', '.join(labels)})" if labels else ""
        raise DataError(
            f"{rating.where}: {rating.criterion} is {rating.value!r}: not a number{known}"
        )
    return labels[str(rating.value)]


# The forms of a sheet

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
    sheet = [
        (
            row.where,
            {
                role_of.get(c, c): cell
                for c, cell in row.cells.items()
                if not is_missing(cell, row.flat)
            },
        )
        for row in raw
    ]
    usual = {} if "rater" in roles else {"rater": ""}
    usual |= (
        {"system": known.systems[0]} if "system" not in roles and len(known.systems) == 1 else {}
    )
    if "first" in roles or not columns or {"criterion", "value"} <= roles:
        return Sheet("one row per rating", [(where, usual | cells) for where, cells in sheet])
    free = [
        column for column in columns if column not in role_of and column.casefold() not in _TEXTS
    ]
    kinds = {
        column: {type(parse(cells[column])) for _, cells in sheet if column in cells}
        for column in free
    }
    numbers = [column for column in free if kinds[column] == {float}]
    systems = () if "system" in roles or len(known.systems) < 2 else known.systems
    read = _read_columns(free, numbers, known, systems, name, has_rater="rater" in roles)
    if not read and "value" in roles and len(known.criteria) == 1:
        usual["criterion"] = known.criteria[0]
        return Sheet("one row per rating", [(where, usual | cells) for where, cells in sheet])
    if "item" not in roles or not read:
        raise DataError(
            f"{name}: {_problem(roles, known, systems)} (columns: {', '.join(columns)})"
        )
    return Sheet(
        "a column per system and rater" if systems
        else "a row per text and rater, a column per criterion" if "rater" in roles
        else "a row per text, a column per rater" if any(column.rater for column in read.values())
        else "a row per text, a column per criterion",
        [(where, row) for where, cells in sheet for row in _unfolded(usual | cells, read)],
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
    columns: Sequence[str],
    numbers: Sequence[str],
    known: Known,
    systems: Sequence[str],
    name: str,
    *,
    has_rater: bool,
) -> dict[str, _Column]:
    """Return what the columns with ratings hold. Columns of raters alone need a single criterion, and numbers."""
    criteria = [*known.criteria, *known.others]
    read = {column: _meanings(column, criteria, systems) for column in columns}
    if not any(read.values()) and len(known.criteria) == 1 and not has_rater:
        of_raters = {
            column: _without(column, systems) if systems else [(column, "")] for column in numbers
        }
        read = {
            column: {_Column(known.criteria[0], *each) for each in of_raters[column]}
            for column in numbers
        }
    found = {}
    for column, meanings in read.items():
        if len(meanings) > 1:
            either = " or ".join(sorted(map(str, meanings)))
            raise DataError(
                f"{name}: column {column!r} may be {either}; rename it in the form {_form(systems)}"
            )
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
        found |= {
            _Column(criterion, rater, s)
            for rater, s in (_without(rest, systems) if systems else [(rest, "")])
        }
    for rest, system in _without(column, systems):
        found |= {
            _Column(criterion, rater, system) for rater, criterion in _without(rest, criteria)
        }
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
    except (TypeError, ValueError, OverflowError):
        return str(value).strip()


def _unfolded(cells: Mapping[str, Any], read: Mapping[str, _Column]) -> Iterator[dict[str, Any]]:
    """Yield a row per rating of a row with several."""
    about = {
        role: cell for role, cell in cells.items() if role in ("item", "system", "rater", "repeat")
    }
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
    names = (
        f"the criteria are {', '.join(criteria[:_SHOWN])}" if criteria else "no criterion is known"
    )
    if systems:
        names += f", the systems {', '.join(systems[:_SHOWN])}"
    return f"no column has ratings; write item, system, rater, criterion, value, or columns like {example!r}; {names}"
