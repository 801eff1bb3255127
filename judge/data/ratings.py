"""People's ratings in a file of their own, such as `judge label` writes.

`read_ratings` reads the file, `join_ratings` gives the ratings to the texts they are about, and
`pair_names` finds the ratings of a criterion that is a variant of another one.

`to_long` reads these forms of a sheet, all as one row per rating:

| form | columns |
|---|---|
| one row per rating | item, system, rater, criterion, value |
| a column per criterion | item, system, rater, relevance, coherence |
| a column per rater | item, system, relevance_anna, relevance_ben; for one criterion also anna, ben |
| a column per system and rater | item, a_relevance_anna, b_relevance_anna |

A sheet without raters has one rating per text and criterion, perhaps a mean.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from judge.core.errors import DataError
from judge.core.format import one_line, text_name
from judge.core.messages import option
from judge.core.option_values import finite_number
from judge.core.records import ALIASES, Sample
from judge.core.verdicts import verdict
from judge.data.rows import RawRow, is_missing, rows

if TYPE_CHECKING:
    import pandas as pd

    RatingSource = str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any]]

T = TypeVar("T")
Ends = tuple[float, float]
_NAMED = 3  # texts in a message
Preference = Literal["first", "second", "tie"]


@dataclass(frozen=True, slots=True)
class Rating:
    """One rating of a text by a person.

    `value` is a number, or a label of the criterion's scale. `repeat` marks a second rating of the
    same text by the same rater: it shows how consistent the rater is and counts in no mean. `where`
    is the row, such as `ratings.jsonl:7`.
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
    """One person's preference between the texts of the systems `first` and `second` for an item."""

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
    """Return the preferences that count.

    A pair that a person rated again does not: it shows how consistent that person is.
    """
    return tuple(preference for preference in preferences if not preference.repeat)


@dataclass(frozen=True, slots=True)
class Ratings:
    """The ratings of a file, in its order.

    They are of texts (`single`) and of pairs of texts (`pairs`). `form` is the form of the file,
    `replaced` counts ratings that a later row changed, `unread` are columns that hold no rating.
    """

    single: tuple[Rating, ...] = ()
    pairs: tuple[PairRating, ...] = ()
    form: str = ""
    replaced: int = 0
    unread: tuple[str, ...] = ()

    @property
    def every(self) -> tuple[Rating | PairRating, ...]:
        """Both kinds of ratings: first of texts, then of pairs."""
        return (*self.single, *self.pairs)

    def raters(self, criterion: str) -> tuple[str, ...]:
        """Return those who rated a criterion, in the order of their first rating."""
        raters = [rating.rater for rating in self.every if rating.criterion == criterion]
        return tuple(dict.fromkeys(raters))

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria that people rated, in the order of their first rating."""
        return tuple(dict.fromkeys(rating.criterion for rating in self.every))


def source_name(source: RatingSource) -> str:
    """Return the source of ratings for messages: a file's path, or its type in Python."""
    if isinstance(source, str | PathLike):
        return str(source)
    return f"the {type(source).__name__} of ratings"


def read_ratings(source: RatingSource, known: Known | None = None) -> Ratings:
    """Read ratings, in any form of `to_long`; `known` says what the columns may be about.

    The source is a file, a DataFrame or an iterable of mappings.

    A later rating of the same text, criterion and rater replaces an earlier one. With one row per
    rating, a row has `first` and `second` in place of `system` if it compares two texts, and
    `repeat` and `comment` are optional. A row whose value is null takes the rating back. Raises
    DataError, with file and line.
    """
    rating_by_key: dict[_Key, Rating | PairRating | None] = {}
    n_replaced = 0
    raw_rows = [row for row in rows(source) if isinstance(row, RawRow)]
    sheet = to_long(raw_rows, source_name(source), known or Known())
    for location, cells in sheet.rows:
        key = _key(cells, location)
        rating = _read_rating(cells, key, location)
        former = rating_by_key.get(key)
        # A row that only takes a rating back replaces none by another.
        if rating is not None and former is not None and former.value != rating.value:
            n_replaced += 1
        rating_by_key[key] = rating
    ratings = rating_by_key.values()
    single = tuple(rating for rating in ratings if isinstance(rating, Rating))
    pairs = tuple(rating for rating in ratings if isinstance(rating, PairRating))
    return Ratings(single, pairs, sheet.form, n_replaced, sheet.unread)


class _Key(NamedTuple):
    """What a rating is about; a preference has two systems."""

    item: str
    systems: tuple[str, ...]
    rater: str
    criterion: str
    repeat: bool


def _key(cells: Mapping[str, Any], location: str) -> _Key:
    """Return what the row of a rating is about. Raises DataError for a name that is missing."""
    system_columns = ("first", "second") if "first" in cells else ("system",)
    columns = ("item", *system_columns, "rater", "criterion")
    for column in columns:
        # The rater may be blank: nobody said who rated.
        may_be_blank = column == "rater"
        if column not in cells or not (may_be_blank or str(cells[column]).strip()):
            raise DataError(
                f"{location}: a rating has no {column}; it needs {', '.join(columns)} and value"
            )
    systems = tuple(_name(cells[column]) for column in system_columns)
    # A table of text has the word, JSON the value, and some programs write a number.
    repeat = str(cells.get("repeat", "")).lower() in ("true", "1")
    return _Key(
        item=_name(cells["item"]),
        systems=systems,
        rater=_name(cells["rater"]),
        criterion=_name(cells["criterion"]),
        repeat=repeat,
    )


def _name(cell: Any) -> str:
    """Return a cell as a name: 7.0, as a table with gaps has it, is 7."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return str(cell).strip()


def _read_rating(cells: Mapping[str, Any], key: _Key, location: str) -> Rating | PairRating | None:
    """Return the rating of a row, None if it takes a rating back. Raises DataError."""
    value = cells.get("value")
    comment = str(cells.get("comment", ""))
    if "first" not in cells:
        if value is None:
            return None
        (system,) = key.systems
        return Rating(
            key.item,
            system,
            key.rater,
            key.criterion,
            value=parse(value),
            repeat=key.repeat,
            comment=comment,
            where=location,
        )
    if value not in (None, "first", "second", "tie"):
        short_value = one_line(str(value), 40)
        raise DataError(
            f"{location}: value is {short_value!r}; a preference is first, second or tie"
        )
    if value is None:
        return None
    first, second = key.systems
    return PairRating(
        key.item,
        first,
        second,
        key.rater,
        key.criterion,
        value=value,
        repeat=key.repeat,
        comment=comment,
        where=location,
    )


def join_ratings(
    samples: Iterable[Sample],
    ratings: Sequence[Rating],
    values: Mapping[str, Mapping[str, float]] | None = None,
) -> list[Sample]:
    """Return the samples with these ratings as `human`, `ratings` and `raters`.

    They replace other ratings of these criteria. `values` has the value of each label, by
    criterion. Words such as `pass` and `fail` are 1 and 0 if all ratings of the criterion are such
    words. A rater without a name is not listed. Raises DataError for a rating of a text that is not
    there, and for one that is neither a number nor a label.
    """
    raters_by_criterion = _raters_by_criterion(ratings)
    votes_by_text = _votes_by_text(ratings, values or {})
    joined: list[Sample] = []
    for sample in samples:
        by_criterion = votes_by_text.pop(sample.key, {})
        means: dict[str, float] = {}
        votes: dict[str, tuple[float | None, ...]] = {}
        raters: dict[str, tuple[str, ...]] = {}
        for criterion, by_rater in by_criterion.items():
            means[criterion] = fmean(by_rater.values())
            all_raters = raters_by_criterion[criterion]
            if all_raters != ("",):  # a rater without a name is not listed
                votes[criterion] = tuple(by_rater.get(rater) for rater in all_raters)
                raters[criterion] = all_raters
        rated = replace(
            sample,
            human=_without_criteria(sample.human, raters_by_criterion) | means,
            ratings=_without_criteria(sample.ratings, raters_by_criterion) | votes,
            raters=_without_criteria(sample.raters, raters_by_criterion) | raters,
        )
        joined.append(rated)
    # The texts that are left have ratings, and are not in the data.
    for rating in ratings:
        if (rating.item, rating.system) in votes_by_text:
            raise DataError(_problem_of_unknown_text(rating, joined))
    return joined


def _raters_by_criterion(ratings: Sequence[Rating]) -> dict[str, tuple[str, ...]]:
    """Return the raters of each criterion, in the order of their first rating."""
    raters: dict[str, dict[str, None]] = {}
    for rating in ratings:
        if not rating.repeat:
            raters.setdefault(rating.criterion, {})[rating.rater] = None
    return {criterion: tuple(rater_names) for criterion, rater_names in raters.items()}


def _votes_by_text(
    ratings: Sequence[Rating], values: Mapping[str, Mapping[str, float]]
) -> dict[tuple[str, str], dict[str, dict[str, float]]]:
    """Return the ratings as numbers by text, criterion and rater, without repeated ones."""
    votes: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    # Criteria with at least one rating that is not a word such as `pass`.
    numeric = {rating.criterion for rating in ratings if verdict(rating.value) is None}
    for rating in ratings:
        if rating.repeat:
            continue
        by_criterion = votes.setdefault((rating.item, rating.system), {})
        by_rater = by_criterion.setdefault(rating.criterion, {})
        labels = values.get(rating.criterion, {})
        vote = None
        # A scale may give its label `pass` another value than 1.
        if rating.criterion not in numeric and rating.value not in labels:
            vote = verdict(rating.value)
        by_rater[rating.rater] = _number(rating, values) if vote is None else vote
    return votes


def _problem_of_unknown_text(rating: Rating, samples: Sequence[Sample]) -> str:
    """Say that the text of a rating is not in the data, and suggest a similar item."""
    first_texts = ", ".join(text_name(*sample.key) for sample in samples[:_NAMED])
    similar_items = difflib.get_close_matches(rating.item, {sample.item for sample in samples}, n=1)
    hint = f"; did you mean item {similar_items[0]!r}?" if similar_items else ""
    return (
        f"{rating.where}: no text of item {rating.item!r} and system {rating.system!r} is in the "
        f"data (it has {first_texts}, …){hint}"
    )


def _without_criteria(ratings: Mapping[str, T], names: Collection[str]) -> dict[str, T]:
    return {name: value for name, value in ratings.items() if name not in names}


def base_name(criterion: str) -> str:
    """Return the name without a version: `fluency` for `fluency_5`, `fluency_v2`, `fluency-1_2`."""
    return _VERSION.sub("", criterion)


# `_5`, `_v2`, `-1_2` at the end of a name
_VERSION = re.compile(r"[_-]v?\d+([_-]\d+)*$")


def pair_names(
    samples: Sequence[Sample], scales: Mapping[str, Ends]
) -> tuple[dict[str, str], list[str]]:
    """Return the name of each criterion's ratings, if people rated another variant.

    People may have rated `fluency`, and the criterion is `fluency_5`. `scales` has the ends of each
    criterion's scale. The ratings must be within the scale, and must not belong to a criterion with
    their own name. The notes list the names that belong together, and the names that do not because
    of their scale.
    """
    votes_by_name = _votes_by_name(samples)
    name_pairs: dict[str, str] = {}
    notes: list[str] = []
    for criterion, (lowest, highest) in scales.items():
        base = base_name(criterion)
        if criterion in votes_by_name or base not in votes_by_name:
            continue
        least = min(votes_by_name[base])
        most = max(votes_by_name[base])
        if base in scales:
            base_low, base_high = scales[base]
            # The ratings belong to another criterion of the run.
            if base_low <= least and most <= base_high:
                continue
        if lowest <= least and most <= highest:
            name_pairs[criterion] = base
            notes.append(f"{criterion} is compared with people's ratings of {base}.")
        else:
            notes.append(
                f"People rated {base} from {least:g} to {most:g}. That is outside the scale of "
                f"{criterion}, {lowest:g} to {highest:g}, so they are not compared."
            )
    return name_pairs, notes


def _votes_by_name(samples: Sequence[Sample]) -> dict[str, list[float]]:
    """Return all single ratings of each name, or the means if the single ones are unknown."""
    votes_by_name: dict[str, list[float]] = {}
    for sample in samples:
        for rating_name, mean_rating in sample.human.items():
            votes = [vote for vote in sample.ratings.get(rating_name, ()) if vote is not None]
            votes_by_name.setdefault(rating_name, []).extend(votes or [mean_rating])
    return votes_by_name


def renamed(
    samples: Iterable[Sample], name_pairs: Mapping[str, str], criteria: Collection[str]
) -> Iterator[Sample]:
    """Yield the samples with the ratings of `pairs` under the criterion's name.

    A name of one of `criteria` stays.
    """

    def with_new_names(ratings: Mapping[str, T]) -> dict[str, T]:
        moved = set(name_pairs.values()) - set(criteria)
        by_criterion = _without_criteria(ratings, moved)
        for criterion, base in name_pairs.items():
            if base in ratings:
                by_criterion[criterion] = ratings[base]
        return by_criterion

    for sample in samples:
        if not name_pairs:
            yield sample
            continue
        yield replace(
            sample,
            human=with_new_names(sample.human),
            ratings=with_new_names(sample.ratings),
            raters=with_new_names(sample.raters),
        )


def _number(rating: Rating, values: Mapping[str, Mapping[str, float]]) -> float:
    """Return a rating's value, or that of its label. Raises DataError."""
    if isinstance(rating.value, float) and finite_number(rating.value) is not None:
        return rating.value
    labels = values.get(rating.criterion, {})
    if rating.value not in labels:
        hint = f", and no label of its scale ({', '.join(labels)})" if labels else ""
        raise DataError(
            f"{rating.where}: {rating.criterion} is {rating.value!r}: not a number{hint}"
        )
    return labels[str(rating.value)]


# The forms of a sheet

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
    columns = list(dict.fromkeys(column for row in raw_rows for column in row.cells))
    role_of = _roles(columns, known)
    roles = set(role_of.values())
    has_rater = "rater" in roles
    sheet_rows = [(row.where, _cells_by_role(row, role_of)) for row in raw_rows]
    implied = _implied_cells(roles, known)
    if "first" in roles or not columns or {"criterion", "value"} <= roles:
        return _long_sheet(sheet_rows, implied)
    other_columns = [
        column for column in columns if column not in role_of and column.casefold() not in _TEXTS
    ]
    numeric_columns = [column for column in other_columns if _is_numeric(column, sheet_rows)]
    # A column names a system only if no column of the sheet does so for the whole row.
    systems = () if "system" in roles or len(known.systems) < 2 else known.systems
    rating_columns = _rating_columns(
        other_columns, numeric_columns, known, systems, sheet_name, has_rater=has_rater
    )
    if not rating_columns and "value" in roles and len(known.criteria) == 1:
        implied["criterion"] = known.criteria[0]
        return _long_sheet(sheet_rows, implied)
    if "item" not in roles or not rating_columns:
        problem = _problem(roles, known, systems)
        raise DataError(f"{sheet_name}: {problem} (columns: {', '.join(columns)})")
    long_rows: list[tuple[str, dict[str, Any]]] = []
    for location, cells in sheet_rows:
        unfolded_rows = _unfolded(implied | cells, rating_columns)
        long_rows += [(location, row) for row in unfolded_rows]
    unread = tuple(column for column in other_columns if column not in rating_columns)
    form = _form_of_sheet(rating_columns, of_systems=bool(systems), has_rater=has_rater)
    return Sheet(form, long_rows, unread)


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
    """Return whether a column has a cell, and all its cells are numbers."""
    present = [cells[column] for _, cells in sheet_rows if column in cells]
    types = {type(parse(cell)) for cell in present}
    return types == {float}


def _form_of_sheet(
    rating_columns: Mapping[str, _Column], *, of_systems: bool, has_rater: bool
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
    role_of = {column_by_name[name]: name for name in _OTHERS if name in column_by_name}
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
    numeric_columns: Sequence[str],
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
    meanings_by_column = {column: _meanings(column, criteria, systems) for column in columns}
    any_meaning = any(meanings_by_column.values())
    if not any_meaning and len(known.criteria) == 1 and not has_rater:
        criterion = known.criteria[0]
        meanings_by_column = {
            column: _meanings_of_rater(column, criterion, systems) for column in numeric_columns
        }
    rating_columns: dict[str, _Column] = {}
    for column, meanings in meanings_by_column.items():
        if len(meanings) > 1:
            either = " or ".join(sorted(str(meaning) for meaning in meanings))
            raise DataError(
                f"{sheet_name}: column {column!r} may be {either}; rename it in the form "
                f"{_form(systems)}"
            )
        for meaning in meanings:
            # Beside a column of raters, no other column can name one.
            if not (has_rater and meaning.rater):
                rating_columns[column] = meaning
    if not has_rater:
        _refuse_means(rating_columns, systems, sheet_name)
    return rating_columns


def _meanings_of_rater(column: str, criterion: str, systems: Sequence[str]) -> set[_Column]:
    """Return what a column may hold that names a rater, and a system if there are several."""
    names = _without(column, systems) if systems else [(column, "")]
    return {_Column(criterion, rater, system) for rater, system in names}


def _refuse_means(
    rating_columns: Mapping[str, _Column], systems: Sequence[str], sheet_name: str
) -> None:
    """Raise DataError for a column without a rater beside columns of raters: perhaps their mean."""
    for column, meaning in rating_columns.items():
        if meaning.rater:
            continue
        for rater_column, of_rater in rating_columns.items():
            same_system = of_rater.system in ("", meaning.system)
            if of_rater.rater and same_system and of_rater.criterion == meaning.criterion:
                raise DataError(
                    f"{sheet_name}: column {column!r} names no rater, and {rater_column!r} does; "
                    f"leave it out if it is a mean, or rename it in the form {_form(systems)}"
                )


def _form(systems: Sequence[str]) -> str:
    return "SYSTEM_CRITERION_RATER" if systems else "CRITERION_RATER"


def _meanings(column: str, criteria: Sequence[str], systems: Sequence[str]) -> set[_Column]:
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
    folded_text = text.casefold()
    for name in dict.fromkeys(names):
        folded_name = name.casefold()
        n_characters = len(name)
        if folded_text == folded_name:
            yield "", name
        elif folded_text.startswith(folded_name) and text[n_characters] in _SEPARATORS:
            yield text[n_characters + 1 :].strip(), name
        elif folded_text.endswith(folded_name) and text[-n_characters - 1] in _SEPARATORS:
            yield text[: -n_characters - 1].strip(), name


def parse(value: Any) -> float | str:
    """Return a cell as a number, or else as text."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return str(value).strip()


def _unfolded(
    cells: Mapping[str, Any], rating_columns: Mapping[str, _Column]
) -> Iterator[dict[str, Any]]:
    """Yield a row per rating of a row with several."""
    about = {role: cells[role] for role in ("item", "system", "rater", "repeat") if role in cells}
    for column, meaning in rating_columns.items():
        if cells.get(column, "") == "":
            continue
        row = {**about, "criterion": meaning.criterion, "value": cells[column]}
        if meaning.rater:
            row["rater"] = meaning.rater
        if meaning.system:
            row["system"] = meaning.system
        yield row


def _problem(roles: set[str], known: Known, systems: Sequence[str]) -> str:
    """Say why the columns are in none of the forms, and how to rename them."""
    if "item" not in roles:
        return "no column item, which says the text's item"
    if "value" in roles and known.criteria:
        example = option("rating_criterion", known.criteria[0])
        return (
            f"it does not say of which criterion its ratings are ({', '.join(known.criteria)}); "
            f"name it with {example}, or add a column criterion"
        )
    criteria = list(dict.fromkeys([*known.criteria, *known.others]))
    first_criterion = criteria[0] if criteria else "CRITERION"
    example = "_".join([*systems[:1], first_criterion, "anna"])
    names = "no criterion is known"
    if criteria:
        names = f"the criteria are {', '.join(criteria[:_SHOWN])}"
    if systems:
        names += f", the systems {', '.join(systems[:_SHOWN])}"
    return (
        "no column has ratings; write item, system, rater, criterion, value, or columns like "
        f"{example!r}; {names}"
    )
