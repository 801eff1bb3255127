"""People's ratings in a file of their own, such as `judge label` writes.

`read_ratings` reads the file, `join_ratings` gives the ratings to the texts they are about, and
`find_variants` finds the ratings of a criterion under another version of its name.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from judge.core.errors import DataError
from judge.core.format import first_names, one_line, text_name
from judge.core.option_values import finite_number
from judge.core.records import Sample
from judge.core.verdicts import verdict
from judge.data.rating_sheets import Known, parse, to_long
from judge.data.rows import RawRow, rows, with_whole_number

if TYPE_CHECKING:
    import pandas as pd

    RatingSource = str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any]]

T = TypeVar("T")
Ends = tuple[float, float]
_MOST_NAMED = 3  # systems or texts in a message
# `_5`, `_v2`, `-1_2` at the end of a name
_VERSION = re.compile(r"[_-]v?\d+([_-]\d+)*$")
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


def without_repeats(preferences: Iterable[PairRating]) -> tuple[PairRating, ...]:
    """Return the preferences that count: a repeated one only shows how consistent the rater is."""
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
        raters = [
            rating.rater for rating in self.every if rating.criterion == criterion
        ]
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
    """Read ratings, in any form of `rating_sheets`; `known` says what the columns may be about.

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
        # A row without a value takes a rating back, which is no replacement.
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
            needed = ", ".join(columns)
            raise DataError(
                f"{location}: a rating has no {column}; it needs {needed} and value"
            )
    systems = tuple(_name(cells[column]) for column in system_columns)
    # A table of text has the word, JSON the value, some programs write a number, and pandas makes
    # 1.0 of it if other rows have none.
    repeat = _name(cells.get("repeat", "")).lower()
    return _Key(
        item=_name(cells["item"]),
        systems=systems,
        rater=_name(cells["rater"]),
        criterion=_name(cells["criterion"]),
        repeat=repeat in ("true", "1"),
    )


def _name(cell: Any) -> str:
    """Return a cell as a name: 7.0, as a table with gaps has it, is 7."""
    return str(with_whole_number(cell)).strip()


def _read_rating(
    cells: Mapping[str, Any], key: _Key, location: str
) -> Rating | PairRating | None:
    """Return the rating of a row, None if it takes a rating back. Raises DataError."""
    value = cells.get("value")
    if value is None:
        return None
    comment = str(cells.get("comment", ""))
    if "first" not in cells:
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
    if value not in ("first", "second", "tie"):
        short_value = one_line(str(value), 40)
        raise DataError(
            f"{location}: value is {short_value!r}; a preference is first, second or tie"
        )
    first_system, second_system = key.systems
    return PairRating(
        key.item,
        first_system,
        second_system,
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
        human = _without_criteria(sample.human, raters_by_criterion)
        votes = _without_criteria(sample.ratings, raters_by_criterion)
        raters = _without_criteria(sample.raters, raters_by_criterion)
        votes_by_criterion = votes_by_text.pop(sample.key, {})
        for criterion, vote_by_rater in votes_by_criterion.items():
            human[criterion] = fmean(vote_by_rater.values())
            all_raters = raters_by_criterion[criterion]
            if all_raters != ("",):  # a rater without a name is not listed
                votes[criterion] = tuple(map(vote_by_rater.get, all_raters))
                raters[criterion] = all_raters
        joined.append(replace(sample, human=human, ratings=votes, raters=raters))
    # The remaining votes are of texts that are not in the data.
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
    # First what is no such word, so that an error names an unknown word and not its known opposite.
    for rating in sorted(ratings, key=lambda rating: verdict(rating.value) is not None):
        if rating.repeat:
            continue
        value_by_label = values.get(rating.criterion, {})
        vote = None
        # A scale may give its label `pass` another value than 1.
        if rating.criterion not in numeric and rating.value not in value_by_label:
            vote = verdict(rating.value)
        if vote is None:
            vote = _number(rating, value_by_label)
        votes_by_criterion = votes.setdefault((rating.item, rating.system), {})
        vote_by_rater = votes_by_criterion.setdefault(rating.criterion, {})
        vote_by_rater[rating.rater] = vote
    return votes


def _number(rating: Rating, value_by_label: Mapping[str, float]) -> float:
    """Return a rating's value, or that of its label. Raises DataError."""
    if isinstance(rating.value, float) and finite_number(rating.value) is not None:
        return rating.value
    if rating.value not in value_by_label:
        hint = ""
        if value_by_label:
            labels = ", ".join(value_by_label)
            hint = f", and no label of its scale ({labels})"
        raise DataError(
            f"{rating.where}: {rating.criterion} is {rating.value!r}: not a number{hint}"
        )
    return value_by_label[str(rating.value)]


def _problem_of_unknown_text(rating: Rating, samples: Sequence[Sample]) -> str:
    """Say that the text of a rating is not in the data, and suggest a similar system or item."""
    rated_text = f"item {rating.item!r} and system {rating.system!r}"
    wrong = f"{rating.where}: no text of {rated_text}"
    systems = [sample.system for sample in samples if sample.item == rating.item]
    if systems and rating.system:
        similar = difflib.get_close_matches(rating.system, systems, n=1)
        hint = f"; did you mean system {similar[0]!r}?" if similar else ""
        names = first_names(map(repr, dict.fromkeys(systems)), _MOST_NAMED)
        return f"{wrong} is in the data (it has this item by {names}){hint}"
    text_names = [text_name(*sample.key) for sample in samples]
    known_texts = first_names(text_names, _MOST_NAMED)
    items = {sample.item for sample in samples}
    similar_items = [
        item for item in sorted(items) if _is_same_number(item, rating.item)
    ]
    similar_items += difflib.get_close_matches(rating.item, items, n=1)
    hint = f"; did you mean item {similar_items[0]!r}?" if similar_items else ""
    if any(_differs_in_form(item, rating.item) for item in items):
        hint = "; the item's letters have another Unicode form there: write both in NFC"
    return f"{wrong} is in the data (it has {known_texts}){hint}"


def _is_same_number(item: str, rated_item: str) -> bool:
    """Return whether two items are one number, such as 1 and 1.0."""
    try:
        return item != rated_item and float(item) == float(rated_item)
    except ValueError:
        return False


def _differs_in_form(item: str, rated_item: str) -> bool:
    """Return whether two items look equal and have other characters, such as é and e with ´."""
    composed = unicodedata.normalize("NFC", item)
    return item != rated_item and composed == unicodedata.normalize("NFC", rated_item)


def _without_criteria(
    values: Mapping[str, T], excluded: Collection[str]
) -> dict[str, T]:
    return {name: value for name, value in values.items() if name not in excluded}


def base_name(criterion: str) -> str:
    """Return the name without a version: `fluency` for `fluency_5`, `fluency_v2`, `fluency-1_2`."""
    return _VERSION.sub("", criterion)


def find_variants(
    samples: Sequence[Sample], scales: Mapping[str, Ends]
) -> tuple[dict[str, str], list[str]]:
    """Find the ratings of each criterion that people rated under its name without a version.

    People may have rated `fluency`, and the criterion is `fluency_5`. `scales` has the ends of each
    criterion's scale. The ratings must be within the scale, and must not belong to a criterion with
    their own name.

    Return the name of the ratings by criterion, and notes on the names that belong together, and on
    those that do not because of their scale.
    """
    votes_by_name = _votes_by_name(samples)
    base_by_criterion: dict[str, str] = {}
    notes: list[str] = []
    for criterion, (low, high) in scales.items():
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
        if low <= least and most <= high:
            base_by_criterion[criterion] = base
            notes.append(f"{criterion} is compared with people's ratings of {base}.")
        else:
            notes.append(
                f"People rated {base} from {least:g} to {most:g}. That is outside the scale of "
                f"{criterion}, {low:g} to {high:g}, so they are not compared."
            )
    return base_by_criterion, notes


def _votes_by_name(samples: Sequence[Sample]) -> dict[str, list[float]]:
    """Return all single ratings of each name, or the means if the single ones are unknown."""
    votes_by_name: dict[str, list[float]] = {}
    for sample in samples:
        for rating_name, mean_rating in sample.human.items():
            all_votes = sample.ratings.get(rating_name, ())
            votes = [vote for vote in all_votes if vote is not None]
            votes_by_name.setdefault(rating_name, []).extend(votes or [mean_rating])
    return votes_by_name


def rename_ratings(
    samples: Iterable[Sample],
    new_names: Mapping[str, str],
    criteria: Collection[str],
) -> Iterator[Sample]:
    """Yield the samples with ratings under other names.

    `new_names` has the present name of the ratings by the new one. Under the present name they stay
    only if it is one of the `criteria`.
    """
    dropped = set(new_names.values()) - set(criteria)

    def with_new_names(ratings: Mapping[str, T]) -> dict[str, T]:
        by_criterion = _without_criteria(ratings, dropped)
        for new_name, present_name in new_names.items():
            if present_name in ratings:
                by_criterion[new_name] = ratings[present_name]
        return by_criterion

    for sample in samples:
        if not new_names:
            yield sample
            continue
        yield replace(
            sample,
            human=with_new_names(sample.human),
            ratings=with_new_names(sample.ratings),
            raters=with_new_names(sample.raters),
        )
