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
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge import criteria, text
from judge.commands.label.own_columns import OwnColumns, own_columns
from judge.config import RunConfig
from judge.core.errors import ConfigError, CriterionError, DataError, StorageError
from judge.core.files import describe_error, locked
from judge.core.format import escape_controls, plural, text_name
from judge.core.invalid_values import first_invalid_value
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample, whole
from judge.criteria.render import render_drafting_prompt
from judge.data import samples
from judge.data.answers import column_of, texts_of
from judge.data.conversations import ANSWERING, MESSAGES, messages_before
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
    """What is rated at once: one text, or two of one item, in an order that says nothing about
    their systems.

    An entry of `systems` has the system of each text; there are several entries if systems wrote
    equal texts. `around` is shown beside the texts: headings with texts, such as the source.
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
    """A rating as the page sends it: `text` is a unit's id, `value` a label or one of ANSWERS; null
    takes it back.
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
        raise DataError(
            f"not a rating that the page saved ({first_invalid_value(error)}); a file of ratings "
            f"with items and systems is ready for {option('ratings')}"
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
        return _digest([sorted(self.units), criterion_names])

    def tasks(self, rater: str) -> list[Task]:
        """Return a rater's own random order. The texts of an item stay together, so that its source
        is read once.

        A repetition comes at least 20 tasks after the first time, or half of all tasks if they are
        fewer than 40. It shows a pair the other way round.
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
        distance = max(1, min(_APART, len(first_tasks) // 2))
        # A text near the end has no room for a repetition.
        n_early = len(first_tasks) - distance
        n_repetitions = min(n_early, round(self.repeat * len(first_tasks)))
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
            ratings = read_ratings(self.output)
        for rating in ratings.every:
            for system in _systems(rating):
                if (rating.item, system) not in self.known:
                    raise DataError(
                        f"{rating.where}: rates {text_name(rating.item, system)}, which is not in "
                        f"the data; name another file with {option('output')}"
                    )
        return ratings

    def require_raters(self) -> None:
        """Raise ConfigError if nobody is to rate."""
        if not self.raters:
            example = option("raters", ["anna", "ben"])
            raise ConfigError(f"no raters: name those who rate, such as {example}")

    def check_output(self) -> None:
        """Raise StorageError if ratings cannot be appended to the file. It does not stay if it was
        not there.
        """
        existed = self.output.exists()
        try:
            with self.lock, locked(self.output):
                if not existed and not self.output.stat().st_size:
                    self.output.unlink()
        except OSError as error:
            raise StorageError(describe_error("write", self.output, error)) from error

    def done(self) -> dict[tuple[str, str, str, bool], tuple[str, str]]:
        """Return what is rated by rater, unit, criterion and repetition: the label (or one of
        ANSWERS) and the comment.

        Ratings of other texts, criteria and kinds are left out.
        """
        unit_of_texts: dict[tuple[str, ...], Unit] = {}
        for unit in self.units.values():
            for systems in unit.systems:
                unit_of_texts[unit.item.strip(), *systems] = unit
        labels_by_criterion = self._label_by_value()
        answers: dict[tuple[str, str, str, bool], tuple[str, str]] = {}
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
                key = (rating.rater, rated_unit.id, rating.criterion, rating.repeat)
                answers[key] = (answer, rating.comment)
        return answers

    def _label_by_value(self) -> dict[str, dict[float, str]]:
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
            raise DataError(unknown_name_message("rater", rating.rater, list(self.raters)))
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
            key = (saved.rater, saved.text, saved.criterion, saved.repeat)
            # A rating that was taken back has no comment either.
            comment = whole(saved.comment) if saved.value is not None else ""
            if answers.get(key, (None, "")) == (saved.value, comment):
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
            known = list(criteria_by_name)
            raise DataError(unknown_name_message("criterion", saved.criterion, known))
        value = self._stored_value(saved.value, criterion)
        rating_rows: list[dict[str, Any]] = []
        for systems in unit.systems:
            row: dict[str, Any] = {"item": unit.item}
            value_of_row = value
            if self.pairwise:
                # The same in every file, whatever was shown on the left.
                first, second = sorted(systems)
                row["first"] = first
                row["second"] = second
                if systems[0] != first:
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

    def _stored_value(self, label: str | None, criterion: Criterion) -> float | str | None:
        """Return what the file has for a label. Raises DataError for a label that is not on the
        scale.
        """
        answers = ANSWERS if self.pairwise else criterion.scale.asked.labels
        if label is None:
            return None
        if label not in answers:
            scale = ", ".join(map(repr, answers))
            raise DataError(
                f"{criterion.name}: {label[:40]!r} is no answer; the scale is {scale:.100}"
            )
        if self.pairwise:
            return _PREFERENCES[label]
        try:
            float(label)
        except ValueError:
            # A label that is no number stays.
            return label
        number = criterion.scale.value(label)
        return int(number) if number.is_integer() else number

    def _append(self, rating_rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows and wait until they are on the disk; on an error, the file is as before.

        Raises StorageError.
        """
        lines = []
        for row in rating_rows:
            line = json.dumps(row, ensure_ascii=False)
            # A name may have half of a surrogate pair, which UTF-8 cannot hold.
            lines.append(line if whole(line) == line else json.dumps(row))
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


def prepare_labelling(
    config: RunConfig,
    raters: Sequence[str],
    output: Path,
    *,
    data: Any = None,
    loaded_criteria: Mapping[str, Criterion] | None = None,
    items: int | None = None,
    pairwise: bool = False,
    repeat: float = 0.1,
) -> Labelling:
    """Read and check what is to be rated. With `items`, a random sample of that many items.

    `data` is by default the configuration's file; `loaded_criteria` are criteria in no file, by
    name. Raises JudgeError.
    """
    source = config.data if data is None else data
    if source is None:
        raise ConfigError("no data: name a file, for example judge label summaries.jsonl")
    _check_raters(raters)
    _check_output_name(output, config.data)
    if not 0 <= repeat <= 1:
        raise ConfigError(f"{option('repeat', repeat)}: a share is between 0 and 1, such as 0.1")
    loaded = samples.load(source, mapping=config.map, systems=config.output_columns)
    chosen: Sequence[Sample] = loaded
    if config.where:
        chosen = samples.filter_rows(loaded, config.where, config.map)
    chosen = chosen[: config.limit]
    if items is not None:
        chosen = _sample_items(chosen, items, config.seed)
    language = config.language or text.language_of(chosen)
    own_criteria = loaded_criteria or {}
    rated_criteria = _load_criteria(config, chosen, language, own_criteria, pairwise=pairwise)
    needed_fields = {field for criterion in rated_criteria for field in criterion.needs}
    other_fields = sorted(needed_fields - {"source", MESSAGES} - _HIDDEN)
    shown_fields = ["source", *other_fields]
    units = {unit.id: unit for unit in _units(chosen, shown_fields, pairwise=pairwise)}
    if not units:
        raise ConfigError("nothing to compare: no item has different texts of two systems")
    instructions = [_instructions(criterion, pairwise=pairwise) for criterion in rated_criteria]
    all_texts = frozenset((sample.item.strip(), sample.system.strip()) for sample in loaded)
    columns_of_fields = [column_of(chosen[0], field) for field in shown_fields]
    taken = {MESSAGES, "reference", *columns_of_fields}
    names = [*raters, *(criterion.name for criterion in rated_criteria)]
    return Labelling(
        units=units,
        criteria=rated_criteria,
        instructions=tuple(instructions),
        raters=tuple(raters),
        output=output,
        language=language,
        known=all_texts,
        pairwise=pairwise,
        repeat=repeat,
        seed=config.seed,
        own_columns=own_columns(chosen, taken, names),
    )


def _sample_items(chosen: Sequence[Sample], items: int, seed: int) -> list[Sample]:
    """Return the texts of random items. Raises ConfigError for a number that cannot be."""
    all_items = list(dict.fromkeys(sample.item for sample in chosen))
    if items < 1:
        raise ConfigError(f"{option('items', items)}: name 1 item or more")
    if items > len(all_items):
        available = plural(len(all_items), "item")
        raise ConfigError(f"{option('items', items)}: there are only {available}")
    drawn_items = set(random.Random(seed).sample(all_items, items))  # noqa: S311  (no secret)
    return [sample for sample in chosen if sample.item in drawn_items]


def _check_raters(raters: Sequence[str]) -> None:
    """Raise ConfigError for names that raters share, and for names with control characters."""
    has_duplicates = len({*raters}) < len(raters)
    if has_duplicates or any(escape_controls(name) != name for name in raters):
        raise ConfigError(f"{option('raters', list(raters))}: give each rater a name of their own")


def _check_output_name(output: Path, data: Path | None) -> None:
    """Raise ConfigError for a file that cannot hold ratings, or that is the data."""
    output_option = option("output", str(output))
    if output.suffix.lower() != ".jsonl":
        raise ConfigError(f"{output_option}: ratings are JSON lines; name a file ending in .jsonl")
    if data is not None and output.resolve() == data.resolve():
        raise ConfigError(f"{output_option}: this is the data; name another file")


def _load_criteria(
    config: RunConfig,
    chosen: Sequence[Sample],
    language: str,
    own_criteria: Mapping[str, Criterion],
    *,
    pairwise: bool,
) -> tuple[Criterion, ...]:
    """Return the criteria that people rate: `own_criteria` by their names, others from their files.

    Raises ConfigError or CriterionError.
    """
    names = config.criteria
    if names is None:
        names = criteria.default_criteria(chosen, pairwise=pairwise)
    loaded: list[Criterion] = []
    for name in names:
        criterion = own_criteria.get(name) or _load_criterion(name, language, pairwise=pairwise)
        if criterion.is_checklist:
            raise CriterionError(
                f"{criterion.path}: people rate on one scale, and a checklist has a question for "
                "each answer; name its questions as criteria, such as 'names: Are all names "
                "right?'"
            )
        loaded.append(criterion)
    if not loaded:
        raise ConfigError(
            f"{option('criteria', 'none')}: people rate by a criterion; name one, such as relevance"
        )
    if len({criterion.name for criterion in loaded}) < len(loaded):
        raise ConfigError(f"{option('criteria')}: name each criterion to rate once")
    return tuple(loaded)


def _load_criterion(name: str, language: str, *, pairwise: bool) -> Criterion:
    """Return a criterion; people may also compare two texts by a criterion of one text."""
    try:
        return criteria.load(name, language=language, pairwise=pairwise)
    except CriterionError:
        if not pairwise:
            raise
        return criteria.load(name, language=language, pairwise=None)


def _instructions(criterion: Criterion, *, pairwise: bool) -> tuple[str, ...]:
    """Return what a rater reads about a criterion, by line.

    It is the question, or the block `criterion` of its prompt. A template without that block is
    described instead.
    """
    wording = criterion.question.strip() or criterion.description
    if not criterion.question:
        with suppress(CriterionError):
            templates = criteria.drafting(criterion)
            layout = templates["layouts/steps.jinja"]
            # The layout asks a model for steps; without it, only the wording is left.
            bare: dict[str, str] = {}
            for file_name, body in templates.items():
                bare[file_name] = _BARE if body == layout else body
            prompt = render_drafting_prompt(criterion, bare)
            wording = prompt.messages[0]["content"]
    lines = ["Which text is better?"] if pairwise else []
    lines += _unwrapped_lines(wording, criterion)
    levels = [f"{label}: {description}" for label, description in criterion.levels]
    return (*lines, *levels)


def _unwrapped_lines(wording: str, criterion: Criterion) -> list[str]:
    """Return each paragraph as one line, and each level of the scale as its own."""
    # A line that begins with a label of the scale, such as `5: fluent`, but not `5th`.
    starts = [rf"{re.escape(label)}(?![.\d]*[A-Za-z\d])" for label in criterion.scale.labels]
    starts_with_label = re.compile("|".join(starts))
    space = " " if text.LANGUAGES[criterion.language].spaced else ""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", wording):  # at blank lines
        stripped = [line.strip() for line in paragraph.split("\n") if line.strip()]
        for number, line in enumerate(stripped):
            if number and not starts_with_label.match(line):
                # The lines of a prompt are wrapped. A rater reads the whole paragraph.
                lines[-1] += f"{space}{line}"
            else:
                lines.append(line)
    return lines


def _units(chosen: Sequence[Sample], fields: Sequence[str], *, pairwise: bool) -> Iterator[Unit]:
    """Yield what is rated, item after item, with equal texts together."""
    samples_by_item: dict[str, list[Sample]] = {}
    for sample in chosen:
        samples_by_item.setdefault(sample.item, []).append(sample)
    for item_samples in samples_by_item.values():
        groups: list[tuple[Sample, ...]] = [(sample,) for sample in item_samples]
        if pairwise:
            pairs = combinations(item_samples, 2)
            groups = [(first, second) for first, second in pairs if first.output != second.output]
        units: dict[str, Unit] = {}
        for group in groups:
            unit = _unit(group, fields)
            if unit.id in units:
                earlier_systems = units[unit.id].systems
                unit = replace(unit, systems=(*earlier_systems, *unit.systems))
            units[unit.id] = unit
        yield from units.values()


def _unit(group: Sequence[Sample], fields: Sequence[str]) -> Unit:
    """Return what is rated of one text, or of two of an item."""
    # By digest, so that the order shows nothing about the systems.
    ordered = sorted(group, key=lambda sample: _digest([sample.item, sample.output]))
    item = ordered[0].item
    conversations = {messages_before(sample) for sample in ordered}
    around = _shown_beside(ordered[0], fields)
    if len(conversations) == 1:
        texts = tuple(sample.output for sample in ordered)
        around += tuple((role.capitalize(), text) for role, text in conversations.pop())
    else:
        # Each text has messages of its own, which belong to it.
        texts = tuple(_as_text(sample) for sample in ordered)
    systems = tuple(sample.system for sample in ordered)
    return Unit(_digest([item, around, texts]), item, texts, (systems,), around)


def _as_text(sample: Sample) -> str:
    """Return the messages before a text and the text, each under its role."""
    turns = [*messages_before(sample), (ANSWERING, sample.output)]
    return "\n\n".join(f"{role.capitalize()}: {text}" for role, text in turns)


def _shown_beside(sample: Sample, fields: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return what is shown beside the texts: a heading and a text for each value of the fields."""
    first_reference = sample.references[0] if sample.references else ""
    values = {
        **sample.extra,
        "source": sample.source,
        "references": sample.references,
        "reference": sample.extra.get("reference") or first_reference,
    }
    values_beside: list[tuple[str, str]] = []
    shown_columns: set[str] = set()
    for field_name in fields:
        column = column_of(sample, field_name)
        value = values.get(column)
        # Two fields may be filled by one column.
        if not value or column in shown_columns:
            continue
        shown_columns.add(column)
        heading = column.replace("_", " ").capitalize()
        if field_name == "passages":
            value = texts_of(value)
        parts = value if isinstance(value, list | tuple) else [value]
        values_beside += [(heading, str(part)) for part in parts]
    return tuple(values_beside)


def _systems(rating: Rating | PairRating) -> tuple[str, ...]:
    if isinstance(rating, PairRating):
        return rating.first, rating.second
    return (rating.system,)


def _digest(value: Any) -> str:
    json_text = json.dumps(value)
    return hashlib.sha256(json_text.encode()).hexdigest()[:16]
