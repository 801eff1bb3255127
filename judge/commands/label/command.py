"""`judge label`: what people rate, in which order, and the file of their ratings.

A rater sees texts under opaque ids and never the name of a system. Equal texts of an item are shown
once; their rating is written for each system. In pairwise mode, two texts of an item are shown side
by side.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge.commands.label.own_columns import OwnColumns
from judge.core.errors import ConfigError, DataError, StorageError
from judge.core.files import describe_error, locked
from judge.core.format import text_name
from judge.core.invalid_values import first_invalid_value
from judge.core.messages import option
from judge.core.normalization import whole
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion
from judge.data.ratings import PairRating, Rating, Ratings, read_ratings
from judge.data.rows import RawRow, rows

ANSWERS = ("a", "b", "tie")
"""What a rater says of a pair: its first text, its second text, or neither is better."""
TaskKey = tuple[str, str, str, bool]
"""The rater, the id of the unit, the criterion, and whether it is a repetition."""
_PREFERENCES = {"a": "first", "b": "second", "tie": "tie"}
_APART = 20  # tasks between a text and its repetition, if there are at least twice as many tasks


@dataclass(frozen=True, slots=True)
class Unit:
    """What a rater rates at once: one text, or two of one item.

    Their order says nothing about their systems. An entry of `systems` has the system of each text;
    there are several entries if systems wrote equal texts. `around` is shown beside the texts:
    headings with texts, such as the source.
    """

    id: str
    item: str
    texts: tuple[str, ...]
    systems: tuple[tuple[str, ...], ...]
    around: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Task:
    """A unit in a rater's order. `flip` shows the second text of a pair on the left."""

    unit: Unit
    repeat: bool = False
    flip: bool = False


class Given(BaseModel):
    """A rating as the page sends it.

    `text` is a unit's id, `value` a label or one of ANSWERS; null takes the rating back.
    """

    model_config = ConfigDict(strict=True)
    text: str
    rater: Annotated[str, Field(min_length=1)]
    criterion: str
    value: str | None
    repeat: bool = False
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    comment: Annotated[str, Field(max_length=10_000)] = ""


def _read(cells: Any) -> Given:
    """Check the form of a rating. Raises DataError."""
    try:
        return Given.model_validate(cells)
    except ValidationError as error:
        problem = first_invalid_value(error)
        raise DataError(
            f"not a rating that the page saved ({problem}); a file of ratings with items and "
            f"systems is ready for {option('ratings')}"
        ) from None


@dataclass(frozen=True, slots=True)
class Imported:
    """How many rows of a saved file were new, and how many the file of ratings had already."""

    new: int
    known: int


@dataclass(frozen=True, slots=True)
class Labelling:
    """The units to rate by id, the criteria with their instructions, and the file of the ratings.

    `repeat` is the share of units that a rater sees twice. `known` are all texts of the data (item,
    system), also those that are not to be rated. `own_columns` are the data's own columns by item,
    as far as raters may see them. Ratings may come from several threads and processes.
    """

    units: Mapping[str, Unit]
    criteria: tuple[Criterion, ...]
    instructions: tuple[tuple[str, ...], ...]
    raters: tuple[str, ...]
    output: Path
    language: str
    known: frozenset[tuple[str, str]]
    pairwise: bool = False
    repeat: float = 0.1
    seed: int = 0
    own_columns: Mapping[str, OwnColumns] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    @property
    def id(self) -> str:
        """A digest of the units and criteria, under which a browser keeps ratings."""
        criterion_names = [criterion.name for criterion in self.criteria]
        return digest([sorted(self.units), criterion_names])

    def tasks(self, rater: str) -> list[Task]:
        """Return a rater's own random order.

        The texts of an item stay together, so that a rater reads its source once. A repetition
        comes at least 20 tasks after the first time, or half of all tasks if they are fewer than
        40. It shows a pair the other way round.
        """
        rng = random.Random(f"{self.seed}\n{rater}")  # noqa: S311  (an order; no secret)
        units_by_item: dict[str, list[Unit]] = {}
        for unit in self.units.values():
            units_by_item.setdefault(unit.item, []).append(unit)
        groups = list(units_by_item.values())
        rng.shuffle(groups)
        first_tasks: list[Task] = []
        for units in groups:
            rng.shuffle(units)
        for unit in chain.from_iterable(groups):
            flip = self.pairwise and rng.random() < 0.5
            first_tasks.append(Task(unit, flip=flip))
        n_tasks = len(first_tasks)
        distance = max(1, min(_APART, n_tasks // 2))
        # A text near the end has no room for a repetition.
        n_early = n_tasks - distance
        wanted_repetitions = round(self.repeat * n_tasks)
        n_repetitions = min(n_early, wanted_repetitions)
        repetitions_after: dict[int, list[Task]] = {}
        for position in rng.sample(range(n_early), n_repetitions):
            first_task = first_tasks[position]
            flip = self.pairwise and not first_task.flip
            repetition = Task(first_task.unit, repeat=True, flip=flip)
            later_position = rng.randrange(position + distance, len(first_tasks))
            repetitions_after.setdefault(later_position, []).append(repetition)
        tasks: list[Task] = []
        for position, first_task in enumerate(first_tasks):
            tasks.append(first_task)
            tasks += repetitions_after.get(position, ())
        return tasks

    def ratings(self) -> Ratings:
        """Read the file of ratings, if it exists. Raises DataError for texts outside the data."""
        if not self.output.exists():
            return Ratings()
        with self.lock, locked(self.output, shared=True):
            _check_last_line(self.output)
            ratings = read_ratings(self.output)
        for rating in ratings.every:
            for system in _systems(rating):
                if (rating.item, system) not in self.known:
                    rated_text = text_name(rating.item, system)
                    raise DataError(
                        f"{rating.where}: rates {rated_text}, which is not in the data; name "
                        f"another file with {option('output')}"
                    )
        return ratings

    def require_raters(self) -> None:
        """Raise ConfigError if nobody is to rate."""
        if not self.raters:
            example = option("raters", ["anna", "ben"])
            raise ConfigError(f"no raters: name those who rate, such as {example}")

    def check_output(self) -> None:
        """Raise StorageError if ratings cannot be appended to the file.

        The check leaves no new file.
        """
        existed = self.output.exists()
        try:
            with self.lock, locked(self.output):
                if not existed and not self.output.stat().st_size:
                    self.output.unlink()
        except OSError as error:
            raise StorageError(describe_error("write", self.output, error)) from error

    def done(self) -> dict[TaskKey, tuple[str, str]]:
        """Return the label (or one of ANSWERS) and the comment of each rating so far.

        Ratings of other texts, criteria and kinds are left out.
        """
        unit_of_texts: dict[tuple[str, ...], Unit] = {}
        for unit in self.units.values():
            for systems in unit.systems:
                unit_of_texts[unit.item.strip(), *systems] = unit
        labels_by_criterion = self._labels_by_criterion()
        answers: dict[TaskKey, tuple[str, str]] = {}
        for rating in self.ratings().every:
            systems = _systems(rating)
            rated_unit = unit_of_texts.get((rating.item, *systems))
            label_by_value = labels_by_criterion.get(rating.criterion)
            answer = str(rating.value)
            if rated_unit is None and len(systems) == 2:
                # The unit has the texts in the other order.
                rated_unit = unit_of_texts.get((rating.item, *reversed(systems)))
                answer = {"first": "b", "second": "a"}.get(answer, answer)
            elif isinstance(rating, PairRating):
                answer = {"first": "a", "second": "b"}.get(answer, answer)
            elif isinstance(rating.value, float) and label_by_value is not None:
                answer = label_by_value.get(rating.value, answer)
            if rated_unit is None or label_by_value is None:
                continue
            # A file may have ratings of single texts and of pairs.
            if len(systems) == len(rated_unit.texts):
                rated = (rated_unit.id, rating.criterion, rating.repeat)
                answers[rating.rater, *rated] = (answer, rating.comment)
        return answers

    def _labels_by_criterion(self) -> dict[str, dict[float, str]]:
        """Return the labels of each criterion by their values: the file has the values."""
        labels_by_criterion: dict[str, dict[float, str]] = {}
        for criterion in self.criteria:
            scale = criterion.scale.asked
            label_by_value = dict(zip(scale.values, scale.labels, strict=True))
            labels_by_criterion[criterion.name] = label_by_value
        return labels_by_criterion

    def progress(self) -> dict[str, tuple[int, int]]:
        """Return how many ratings each rater has given, and how many there are to give.

        Repeated texts count again.
        """
        n_given_by_rater = Counter(rater for rater, *_ in self.done())
        progress: dict[str, tuple[int, int]] = {}
        for rater in self.raters:
            n_to_give = len(self.tasks(rater)) * len(self.criteria)
            progress[rater] = (n_given_by_rater[rater], n_to_give)
        return progress

    def record(self, saved: Any) -> None:
        """Append a rating as the page sends it (`Given`), one row for each system with this text.

        Raises DataError and StorageError.
        """
        rating = _read(saved)
        if rating.rater not in self.raters:
            message = unknown_name_message("rater", rating.rater, list(self.raters))
            raise DataError(message)
        self._append(self._rows(rating))

    def import_file(self, path: Path) -> Imported:
        """Append the ratings that a page of `--file` saved.

        Raises DataError with the line, and then writes nothing.
        """
        answers = self.done()
        new_rows: list[dict[str, Any]] = []
        n_known = 0
        for row in rows(path):
            if not isinstance(row, RawRow):
                continue
            try:
                saved = _read(row.cells)
                rating_rows = self._rows(saved)
            except DataError as error:
                raise DataError(f"{row.where}: {error}") from error
            answer_key = (saved.rater, saved.text, saved.criterion, saved.repeat)
            comment = whole(saved.comment)
            if saved.value is None:
                # A rating that was taken back has no comment either.
                comment = ""
            stored_answer = answers.get(answer_key, (None, ""))
            if stored_answer == (saved.value, comment):
                n_known += 1
            else:
                new_rows += rating_rows
        if not new_rows and not n_known:
            raise DataError(f"{path}: no ratings")
        self._append(new_rows)
        return Imported(len(new_rows), n_known)

    def _rows(self, saved: Given) -> Sequence[dict[str, Any]]:
        """Return the rows of a rating. Raises DataError for an unknown text, criterion or label."""
        unit = self.units.get(saved.text)
        if unit is None:
            raise DataError(
                "no such text: the data, or the options that select texts, have changed"
            )
        criteria_by_name = {criterion.name: criterion for criterion in self.criteria}
        criterion = criteria_by_name.get(saved.criterion)
        if criterion is None:
            known_criteria = list(criteria_by_name)
            message = unknown_name_message("criterion", saved.criterion, known_criteria)
            raise DataError(message)
        value = self._stored_value(saved.value, criterion)
        rating_rows: list[dict[str, Any]] = []
        for systems in unit.systems:
            row: dict[str, Any] = {"item": unit.item}
            value_of_row = value
            if self.pairwise:
                # The same in every file, whatever was shown on the left.
                first_system, second_system = sorted(systems)
                row["first"] = first_system
                row["second"] = second_system
                if systems[0] != first_system:
                    swapped = {"first": "second", "second": "first"}
                    value_of_row = swapped.get(str(value), value)
            else:
                row["system"] = systems[0]
            row["rater"] = saved.rater
            row["criterion"] = criterion.name
            row["value"] = value_of_row
            row["repeat"] = saved.repeat
            row["seconds"] = saved.seconds
            row["comment"] = whole(saved.comment)
            rating_rows.append(row)
        return rating_rows

    def _stored_value(
        self, label: str | None, criterion: Criterion
    ) -> float | str | None:
        """Return how the file stores a label.

        Raises DataError for a label that is not on the scale.
        """
        answers = ANSWERS if self.pairwise else criterion.scale.asked.labels
        if label is None:
            return None
        if label not in answers:
            scale = ", ".join(map(repr, answers))
            problem = f"{label[:40]!r} is not on the scale, {scale:.100}"
            raise DataError(f"{criterion.name}: {problem}")
        if self.pairwise:
            return _PREFERENCES[label]
        try:
            float(label)
        except ValueError:
            # A label that is no number stays.
            return label
        number = criterion.scale.value(label)
        if number.is_integer():
            return int(number)
        return number

    def _append(self, rating_rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows and wait until they are on the disk; on an error, the file is as before.

        Raises StorageError.
        """
        lines = []
        for row in rating_rows:
            line = json.dumps(row, ensure_ascii=False)
            if whole(line) != line:
                # A name may have half of a surrogate pair, which UTF-8 cannot hold.
                line = json.dumps(row)
            lines.append(line)
        data = "".join(f"{line}\n" for line in lines).encode()
        try:
            with self.lock, locked(self.output) as file:
                size = os.fstat(file.fileno()).st_size
                if size:
                    with self.output.open("rb") as earlier:
                        earlier.seek(-1, os.SEEK_END)
                        if earlier.read(1) != b"\n":
                            # A person has edited the file, and left out the last line break.
                            data = b"\n" + data
                if file.write(data) != len(data):
                    os.ftruncate(file.fileno(), size)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(describe_error("write", self.output, error)) from error


def _check_last_line(path: Path) -> None:
    """Raise DataError if the last line is half of a rating.

    That can happen if judge was killed, or the computer stopped, while it saved a rating.
    """
    *lines, last_line = path.read_bytes().split(b"\n")
    # A whole rating may lack the line break after it; a table in another format begins otherwise.
    if last_line.startswith(b"{") and not last_line.rstrip().endswith(b"}"):
        raise DataError(
            f"{path}:{len(lines) + 1}: the last rating was not saved completely. Delete this line, "
            "and rate the text again"
        )


def _systems(rating: Rating | PairRating) -> tuple[str, ...]:
    if isinstance(rating, PairRating):
        return rating.first, rating.second
    return (rating.system,)


def digest(value: Any) -> str:
    """Return the start of the SHA-256 of a JSON value, in hex."""
    json_text = json.dumps(value)
    return hashlib.sha256(json_text.encode()).hexdigest()[:16]
