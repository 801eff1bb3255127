"""`judge label`: what people rate, in which order, and the file of their ratings.

A rater sees texts under opaque ids and never the name of a system. Equal texts of an item are shown once; their rating
is written for each system. In pairwise mode, two texts of an item are shown side by side.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge import criteria, text
from judge.config import RunConfig
from judge.core.errors import ConfigError, CriterionError, DataError, StorageError
from judge.core.files import describe_error, locked
from judge.core.format import plural, text_name
from judge.core.invalid_values import first_invalid_value
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample, whole
from judge.criteria.render import render_drafting_prompt
from judge.data import samples
from judge.data.ratings import PairRating, Rating, Ratings, read_ratings
from judge.data.rows import RawRow, rows

ANSWERS = ("a", "b", "tie")
"""What a rater says of a pair: its first text, its second text, or neither is better."""
_PREFERENCES = {"a": "first", "b": "second", "tie": "tie"}
_APART = 20  # tasks between a text and its repetition, if there are at least twice as many tasks
_BARE = "{% block criterion %}{% endblock %}"
_HIDDEN = {
    "output",
    "first",
    "second",
    "system",
    "item",
    "human",
}  # fields that are not shown beside the texts


@dataclass(frozen=True, slots=True)
class Unit:
    """What is rated at once: one text, or two of one item, in an order that says nothing about their systems.

    An entry of `systems` has the system of each text; there are several entries if systems wrote equal texts. `around`
    is shown beside the texts: headings with texts, such as the source.
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
    """A rating as the page sends it: `text` is a unit's id, `value` a label or one of ANSWERS; null takes it back."""

    model_config = ConfigDict(strict=True)
    text: str
    rater: Annotated[str, Field(min_length=1)]
    criterion: str
    value: str | None
    repeat: bool = False
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    comment: Annotated[str, Field(max_length=10_000)] = ""


def _read(given: Any) -> Given:
    """Check the form of a rating. Raises DataError."""
    try:
        return Given.model_validate(given)
    except ValidationError as error:
        raise DataError(
            f"not a rating that the page saved ({first_invalid_value(error)}); a file of ratings with items and systems "
            f"is ready for {option('ratings')}"
        ) from None


@dataclass(frozen=True, slots=True)
class Imported:
    """How many rows of a saved file were new, and how many the file of ratings had already."""

    new: int
    known: int


@dataclass(frozen=True, slots=True)
class Labelling:
    """The units to rate by id, the criteria, what raters are `told` about each, and the file that gets the ratings.

    `repeat` is the share of units that a rater sees twice. `known` are all texts of the data (item, system), also those
    that are not to be rated. Ratings may come from several threads and processes.
    """

    units: Mapping[str, Unit]
    criteria: tuple[Criterion, ...]
    told: tuple[tuple[str, ...], ...]
    raters: tuple[str, ...]
    output: Path
    language: str
    known: frozenset[tuple[str, str]]
    pairwise: bool = False
    repeat: float = 0.1
    seed: int = 0
    lock: Lock = field(default_factory=Lock)

    @property
    def id(self) -> str:
        """A digest of the units and criteria, under which a browser keeps ratings."""
        return _digest([sorted(self.units), [criterion.name for criterion in self.criteria]])

    def tasks(self, rater: str) -> list[Task]:
        """Return a rater's own random order. The texts of an item stay together, so that its source is read once.

        A repetition comes at least 20 tasks after the first time, or half of all tasks if they are fewer than 40. It
        shows a pair the other way round.
        """
        rng = random.Random(f"{self.seed}\n{rater}")  # noqa: S311  (an order; no secret)
        by_item: dict[str, list[Unit]] = {}
        for unit in self.units.values():
            by_item.setdefault(unit.item, []).append(unit)
        items = list(by_item.values())
        rng.shuffle(items)
        for units in items:
            rng.shuffle(units)
        order = [
            Task(unit, flip=self.pairwise and rng.random() < 0.5)
            for units in items
            for unit in units
        ]
        apart = max(1, min(_APART, len(order) // 2))
        early = len(order) - apart
        after: dict[int, list[Task]] = {}
        for place in rng.sample(range(early), min(early, round(self.repeat * len(order)))):
            again = Task(
                order[place].unit, repeat=True, flip=self.pairwise and not order[place].flip
            )
            after.setdefault(rng.randrange(place + apart, len(order)), []).append(again)
        return [
            task for place, first in enumerate(order) for task in (first, *after.get(place, ()))
        ]

    def ratings(self) -> Ratings:
        """Read the file of ratings, if it exists. Raises DataError if it rates texts that are not in the data."""
        if not self.output.exists():
            return Ratings()
        with self.lock, locked(self.output, shared=True):
            ratings = read_ratings(self.output)
        for rating in ratings.every:
            for system in _systems(rating):
                if (rating.item, system) not in self.known:
                    raise DataError(
                        f"{rating.where}: rates {text_name(rating.item, system)}, which is not in the data; name "
                        f"another file with {option('output')}"
                    )
        return ratings

    def check_output(self) -> None:
        """Raise StorageError if ratings cannot be appended to the file. It does not stay if it was not there."""
        existed = self.output.exists()
        try:
            with self.lock, locked(self.output):
                if not existed and not self.output.stat().st_size:
                    self.output.unlink()
        except OSError as error:
            raise StorageError(describe_error("write", self.output, error)) from error

    def done(self) -> dict[tuple[str, str, str, bool], tuple[str, str]]:
        """Return what is rated by rater, unit, criterion and repetition: the label (or one of ANSWERS) and the comment.

        Ratings of other texts, criteria and kinds are left out.
        """
        unit_of = {
            (unit.item.strip(), *systems): unit
            for unit in self.units.values()
            for systems in unit.systems
        }
        labels = {
            c.name: dict(zip(c.scale.asked.values, c.scale.asked.labels, strict=True))
            for c in self.criteria
        }
        found = {}
        for rating in self.ratings().every:
            systems = _systems(rating)
            unit, value = unit_of.get((rating.item, *systems)), str(rating.value)
            if unit is None and len(systems) == 2:  # the unit has the texts in the other order
                unit = unit_of.get((rating.item, *reversed(systems)))
                value = {"first": "b", "second": "a"}.get(value, value)
            elif isinstance(rating, PairRating):
                value = {"first": "a", "second": "b"}.get(value, value)
            elif isinstance(rating.value, float):
                value = labels.get(rating.criterion, {}).get(rating.value, value)
            if unit is not None and rating.criterion in labels and len(systems) == len(unit.texts):
                found[rating.rater, unit.id, rating.criterion, rating.repeat] = (
                    value,
                    rating.comment,
                )
        return found

    def record(self, given: Any) -> None:
        """Append a rating as the page sends it (`Given`), one row for each system with this text.

        Raises DataError and StorageError.
        """
        rating = _read(given)
        if rating.rater not in self.raters:
            raise DataError(unknown_name_message("rater", rating.rater, list(self.raters)))
        self._append(self._rows(rating))

    def import_file(self, path: Path) -> Imported:
        """Append the ratings that a page of `--file` saved. Raises DataError with the line, and then writes nothing."""
        done, known = self.done(), 0
        new: list[dict[str, Any]] = []
        for row in rows(path):
            if not isinstance(row, RawRow):
                continue
            try:
                given = _read(row.cells)
                made = self._rows(given)
            except DataError as error:
                raise DataError(f"{row.where}: {error}") from error
            key = given.rater, given.text, given.criterion, given.repeat
            if done.get(key, (None, "")) == (
                given.value,
                whole(given.comment) if given.value is not None else "",
            ):
                known += 1
            else:
                new += made
        if not new and not known:
            raise DataError(f"{path}: no ratings")
        self._append(new)
        return Imported(len(new), known)

    def _rows(self, given: Given) -> Sequence[dict[str, Any]]:
        """Return the rows of a rating. Raises DataError for an unknown text, criterion or label."""
        unit = self.units.get(given.text)
        criterion = next((c for c in self.criteria if c.name == given.criterion), None)
        if unit is None:
            raise DataError(
                "no such text: the data, or the options that select texts, have changed"
            )
        if criterion is None:
            known = [criterion.name for criterion in self.criteria]
            raise DataError(unknown_name_message("criterion", given.criterion, known))
        label, answers = given.value, ANSWERS if self.pairwise else criterion.scale.asked.labels
        if label is not None and label not in answers:
            scale = ", ".join(map(repr, answers))
            raise DataError(
                f"{criterion.name}: {label[:40]!r} is no answer; the scale is {scale:.100}"
            )
        rating: float | str | None = label
        if label is not None and self.pairwise:
            rating = _PREFERENCES[label]
        elif label is not None:
            with suppress(ValueError):  # a label that is no number stays
                float(label)
                number = criterion.scale.value(label)
                rating = int(number) if number.is_integer() else number
        made: list[dict[str, Any]] = []
        for systems in unit.systems:
            value = rating
            names = {"system": systems[0]}
            if self.pairwise:
                first, second = sorted(
                    systems
                )  # the same in every file, whatever was shown on the left
                names = {"first": first, "second": second}
                if systems[0] != first:
                    value = {"first": "second", "second": "first"}.get(str(value), value)
            row = {
                "item": unit.item,
                **names,
                "rater": given.rater,
                "criterion": criterion.name,
                "value": value,
            }
            more = {
                "repeat": given.repeat,
                "seconds": given.seconds,
                "comment": whole(given.comment),
            }
            made.append(row | more)
        return made

    def _append(self, made: Sequence[Mapping[str, Any]]) -> None:
        """Append rows and wait until they are on the disk; on an error, the file is as before. Raises StorageError."""
        lines = (
            (row, json.dumps(row, ensure_ascii=False)) for row in made
        )  # a name may have a lone surrogate
        data = "".join(
            f"{line if whole(line) == line else json.dumps(row)}\n" for row, line in lines
        ).encode()
        try:
            with self.lock, locked(self.output) as file:
                size = os.fstat(file.fileno()).st_size
                if size:
                    with self.output.open("rb") as earlier:
                        earlier.seek(-1, os.SEEK_END)
                        data = data if earlier.read(1) == b"\n" else b"\n" + data  # edited by hand
                if file.write(data) != len(data):
                    os.ftruncate(file.fileno(), size)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(describe_error("write", self.output, error)) from error


def prepare_labelling(
    config: RunConfig,
    raters: Sequence[str],
    output: Path,
    *,
    items: int | None = None,
    pairwise: bool = False,
    repeat: float = 0.1,
) -> Labelling:
    """Read and check what is to be rated. With `items`, a random sample of so many items. Raises JudgeError."""
    if config.data is None:
        raise ConfigError("no data: name a file, for example judge label summaries.jsonl")
    if output.suffix.lower() != ".jsonl":
        raise ConfigError(
            f"{option('output', str(output))}: ratings are JSON lines; name a file ending in .jsonl"
        )
    if output.resolve() == config.data.resolve():
        raise ConfigError(f"{option('output', str(output))}: this is the data; name another file")
    if not 0 <= repeat <= 1:
        raise ConfigError(f"{option('repeat', repeat)}: a share is between 0 and 1, such as 0.1")
    every = samples.load(config.data, mapping=config.map, systems=config.output_columns)
    chosen = samples.filter_rows(every, config.where, config.map) if config.where else every
    chosen = chosen[: config.limit]
    if items is not None:
        names = list(dict.fromkeys(sample.item for sample in chosen))
        if items < 1:
            raise ConfigError(f"{option('items', items)}: name 1 item or more")
        if items > len(names):
            raise ConfigError(
                f"{option('items', items)}: there are only {plural(len(names), 'item')}"
            )
        drawn = {*random.Random(config.seed).sample(names, items)}  # noqa: S311  (a sample; no secret)
        chosen = [sample for sample in chosen if sample.item in drawn]
    language = config.language or text.language_of(chosen)
    asked = _load_criteria(config, chosen, language, pairwise=pairwise)
    shown = [
        "source",
        *sorted({field for criterion in asked for field in criterion.needs} - {"source"} - _HIDDEN),
    ]
    units = {unit.id: unit for unit in _units(chosen, shown, pairwise=pairwise)}
    if not units:
        raise ConfigError("nothing to compare: no item has different texts of two systems")
    told = tuple(_told(criterion, pairwise=pairwise) for criterion in asked)
    known = frozenset((sample.item.strip(), sample.system.strip()) for sample in every)
    return Labelling(
        units, asked, told, tuple(raters), output, language, known, pairwise, repeat, config.seed
    )


def _load_criteria(
    config: RunConfig, chosen: Sequence[Sample], language: str, *, pairwise: bool
) -> tuple[Criterion, ...]:
    """Return the criteria that people rate. Raises ConfigError or CriterionError."""
    names = config.criteria
    if names is None:
        names = criteria.default_criteria(chosen, pairwise=pairwise)
    loaded: list[Criterion] = []
    for name in names:
        try:
            criterion = criteria.load(name, language=language, pairwise=pairwise)
        except CriterionError:
            if not pairwise:
                raise
            criterion = criteria.load(name, language=language, pairwise=None)
        if criterion.is_checklist:
            raise CriterionError(
                f"{criterion.path}: people rate on one scale, and a checklist has a question for each answer; name its "
                "questions as criteria, such as 'names: Are all names right?'"
            )
        loaded.append(criterion)
    if not loaded:
        raise ConfigError(
            f"{option('criteria', 'none')}: people rate by a criterion; name one, such as relevance"
        )
    if len({criterion.name for criterion in loaded}) < len(loaded):
        raise ConfigError(f"{option('criteria')}: name each criterion to rate once")
    return tuple(loaded)


def _told(criterion: Criterion, *, pairwise: bool) -> tuple[str, ...]:
    """Return what a rater is told about a criterion, by line: the question, or the block `criterion` of its prompt.

    A template without that block is described instead.
    """
    shown = criterion.question.strip() or criterion.description
    if not criterion.question:
        with suppress(CriterionError):
            templates = criteria.drafting(criterion)
            layout = templates["layouts/steps.jinja"]
            bare = {name: _BARE if body == layout else body for name, body in templates.items()}
            shown = render_drafting_prompt(criterion, bare).messages[0]["content"]
    lines = ["Which text is better?"] if pairwise else []
    starts = re.compile(
        "|".join(rf"{re.escape(label)}(?![.\d]*[A-Za-z\d])" for label in criterion.scale.labels)
    )
    spaced = text.LANGUAGES[criterion.language].spaced
    for paragraph in re.split(r"\n\s*\n", shown):
        for number, line in enumerate(filter(None, map(str.strip, paragraph.split("\n")))):
            if number and not starts.match(line):  # the prompt's lines are wrapped
                lines[-1] += f"{' ' if spaced else ''}{line}"
            else:
                lines.append(line)
    return (*lines, *(f"{label}: {described}" for label, described in criterion.levels))


def _units(chosen: Sequence[Sample], shown: Sequence[str], *, pairwise: bool) -> Iterator[Unit]:
    """Yield what is rated, item after item, with equal texts together."""
    by_item: dict[str, list[Sample]] = {}
    for sample in chosen:
        by_item.setdefault(sample.item, []).append(sample)
    for item, group in by_item.items():
        units: dict[str, Unit] = {}
        pairs = [pair for pair in combinations(group, 2) if pair[0].output != pair[1].output]
        for together in pairs if pairwise else [(sample,) for sample in group]:
            ordered = sorted(together, key=lambda sample: _digest([item, sample.output]))
            texts, first = tuple(sample.output for sample in ordered), ordered[0]
            reference = first.extra.get("reference") or (first.references or ("",))[0]
            fields = {
                **first.extra,
                "source": first.source,
                "references": first.references,
                "reference": reference,
            }
            headed: list[tuple[str, str]] = []
            for name in shown:
                value = fields.get(name)
                each = value if isinstance(value, list | tuple) else [value] if value else []
                headed += [(name.replace("_", " ").capitalize(), str(part)) for part in each]
            around = tuple(headed)
            key, systems = (
                _digest([item, around, texts]),
                tuple(sample.system for sample in ordered),
            )
            before = units[key].systems if key in units else ()
            units[key] = Unit(key, item, texts, (*before, systems), around)
        yield from units.values()


def _systems(rating: Rating | PairRating) -> tuple[str, ...]:
    return (rating.system,) if isinstance(rating, Rating) else (rating.first, rating.second)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
