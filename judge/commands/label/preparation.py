"""Prepare `judge label`: choose the texts and criteria to rate, and write the instructions."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

from judge import criteria, text
from judge.commands.label.command import Labelling, Unit, digest
from judge.commands.label.own_columns import own_columns
from judge.config import RunConfig
from judge.core.errors import ConfigError, CriterionError
from judge.core.format import escape_controls, plural
from judge.core.messages import option
from judge.core.records import Criterion, Sample
from judge.criteria.render import render_drafting_prompt
from judge.data import samples
from judge.data.answers import column_of, texts_of
from judge.data.conversations import ANSWERING, MESSAGES, messages_before

# A layout that leaves a template with nothing but its wording.
_BARE_LAYOUT = "{% block criterion %}{% endblock %}"
# Fields that are not shown beside the texts.
_HIDDEN = {"output", "first", "second", "system", "item", "human"}


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
    """Read and check the texts and criteria to rate.

    `items` is the size of a random sample of items. `data` is by default the configuration's file.
    `loaded_criteria` are criteria without a file, by name. Raises JudgeError.
    """
    source = config.data if data is None else data
    if source is None:
        example = "judge label summaries.jsonl"
        raise ConfigError(f"no data: name a file, for example {example}")
    _check_raters(raters)
    _check_output_name(output, config.data)
    if not 0 <= repeat <= 1:
        repeat_option = option("repeat", repeat)
        raise ConfigError(f"{repeat_option}: a share is between 0 and 1, such as 0.1")
    loaded = samples.load(source, mapping=config.map, systems=config.output_columns)
    chosen = _choose_texts(config, loaded, items)
    language = config.language or text.language_of(chosen)
    own_criteria = loaded_criteria or {}
    rated_criteria = _load_criteria(
        config, chosen, language, own_criteria, pairwise=pairwise
    )
    shown_fields = _shown_fields(rated_criteria)
    units = {unit.id: unit for unit in _units(chosen, shown_fields, pairwise=pairwise)}
    if not units:
        reason = "no item has different texts of two systems"
        raise ConfigError(f"nothing to compare: {reason}")
    instructions = [
        _instructions(criterion, pairwise=pairwise) for criterion in rated_criteria
    ]
    all_texts = {(sample.item.strip(), sample.system.strip()) for sample in loaded}
    # The page shows these columns already, so they are not listed with the data's own.
    shown_columns = [column_of(chosen[0], field) for field in shown_fields]
    criterion_names = [criterion.name for criterion in rated_criteria]
    columns_of_data = own_columns(
        chosen,
        {MESSAGES, "reference", *shown_columns},
        [*raters, *criterion_names],
    )
    return Labelling(
        units=units,
        criteria=rated_criteria,
        instructions=tuple(instructions),
        raters=tuple(raters),
        output=output,
        language=language,
        known=frozenset(all_texts),
        pairwise=pairwise,
        repeat=repeat,
        seed=config.seed,
        own_columns=columns_of_data,
    )


def _choose_texts(
    config: RunConfig,
    loaded: Sequence[Sample],
    items: int | None,
) -> Sequence[Sample]:
    """Return the texts to rate: those that the options select, of a random sample of items."""
    chosen = loaded
    if config.where:
        chosen = samples.filter_rows(loaded, config.where, config.map)
    chosen = chosen[: config.limit]
    if items is None:
        return chosen
    return _sample_items(chosen, items, config.seed)


def _shown_fields(rated_criteria: Sequence[Criterion]) -> list[str]:
    """Return the fields that people see beside the texts: the source, and what criteria need."""
    needed_fields = {field for criterion in rated_criteria for field in criterion.needs}
    # `_unit` shows the messages turn by turn.
    other_fields = sorted(needed_fields - {"source", MESSAGES} - _HIDDEN)
    return ["source", *other_fields]


def _sample_items(chosen: Sequence[Sample], items: int, seed: int) -> list[Sample]:
    """Return the texts of random items. Raises ConfigError for fewer than 1, or more than all."""
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
    has_controls = any(escape_controls(name) != name for name in raters)
    if has_duplicates or has_controls:
        raters_option = option("raters", list(raters))
        raise ConfigError(f"{raters_option}: give each rater a name of their own")


def _check_output_name(output: Path, data: Path | None) -> None:
    """Raise ConfigError for a file that cannot hold ratings, or that is the data."""
    output_option = option("output", str(output))
    if output.suffix.lower() != ".jsonl":
        advice = "name a file ending in .jsonl"
        raise ConfigError(f"{output_option}: ratings are JSON lines; {advice}")
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
    criterion_names = config.criteria
    if criterion_names is None:
        criterion_names = criteria.default_criteria(chosen, pairwise=pairwise)
    loaded: list[Criterion] = []
    for criterion_name in criterion_names:
        criterion = own_criteria.get(criterion_name) or _load_criterion(
            criterion_name,
            language,
            pairwise=pairwise,
        )
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


def _load_criterion(criterion_name: str, language: str, *, pairwise: bool) -> Criterion:
    """Return a criterion; people may also compare two texts by a criterion of one text."""
    try:
        return criteria.load(criterion_name, language=language, pairwise=pairwise)
    except CriterionError:
        if not pairwise:
            raise
        return criteria.load(criterion_name, language=language, pairwise=None)


def _instructions(criterion: Criterion, *, pairwise: bool) -> tuple[str, ...]:
    """Return what a rater reads about a criterion, by line.

    It is the question, or the block `criterion` of its prompt; for a template without that block,
    the description in its header.
    """
    wording = criterion.question.strip() or criterion.description
    if not criterion.question:
        wording = _wording_of_template(criterion)
    lines: list[str] = []
    if pairwise:
        lines.append("Which text is better?")
    lines += _unwrapped_lines(wording, criterion)
    lines += [f"{label}: {description}" for label, description in criterion.levels]
    return tuple(lines)


def _wording_of_template(criterion: Criterion) -> str:
    """Return the block `criterion` of a prompt, or the description of a template without it."""
    wording = criterion.description
    with suppress(CriterionError):
        templates = criteria.drafting(criterion)
        layout = templates["layouts/steps.jinja"]
        # The layout asks a model for steps; without it, only the wording is left.
        bare_templates: dict[str, str] = {}
        for file_name, body in templates.items():
            bare_templates[file_name] = _BARE_LAYOUT if body == layout else body
        prompt = render_drafting_prompt(criterion, bare_templates)
        wording = prompt.messages[0]["content"]
    return wording


def _unwrapped_lines(wording: str, criterion: Criterion) -> list[str]:
    """Return each paragraph as one line, and each level of the scale as a line of its own.

    The lines of a prompt are wrapped, and a rater reads the whole paragraph.
    """
    labels = "|".join(re.escape(label) for label in criterion.scale.labels)
    # A line that begins with a label of the scale, such as `5: fluent`, but not `5th`.
    starts_with_label = re.compile(rf"(?:{labels})(?![.\d]*[A-Za-z\d])")
    space = " " if text.LANGUAGES[criterion.language].spaced else ""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", wording):  # at blank lines
        stripped = [line.strip() for line in paragraph.split("\n")]
        for number, line in enumerate(filter(None, stripped)):
            is_first = number == 0
            if is_first or starts_with_label.match(line):
                lines.append(line)
            else:
                lines[-1] = f"{lines[-1]}{space}{line}"
    return lines


def _units(
    chosen: Sequence[Sample],
    fields: Sequence[str],
    *,
    pairwise: bool,
) -> Iterator[Unit]:
    """Yield what is rated, item after item.

    Equal texts of several systems are one unit, which is rated once.
    """
    samples_by_item: dict[str, list[Sample]] = {}
    for sample in chosen:
        samples_by_item.setdefault(sample.item, []).append(sample)
    for item_samples in samples_by_item.values():
        groups: list[tuple[Sample, ...]] = [(sample,) for sample in item_samples]
        if pairwise:
            pairs = combinations(item_samples, 2)
            groups = [
                (first_text, second_text)
                for first_text, second_text in pairs
                if first_text.output != second_text.output
            ]
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
    def digest_of_text(sample: Sample) -> str:
        return digest([sample.item, sample.output])

    ordered = sorted(group, key=digest_of_text)
    item = ordered[0].item
    around = list(_shown_beside(ordered[0], fields))
    conversations = {messages_before(sample) for sample in ordered}
    if len(conversations) == 1:
        texts = tuple(sample.output for sample in ordered)
        for role, content in conversations.pop():
            around.append((role.capitalize(), content))
    else:
        # Each text has messages of its own, which belong to it.
        texts = tuple(_as_text(sample) for sample in ordered)
    systems = tuple(sample.system for sample in ordered)
    return Unit(
        id=digest([item, around, texts]),
        item=item,
        texts=texts,
        systems=(systems,),
        around=tuple(around),
    )


def _as_text(sample: Sample) -> str:
    """Return the messages before a text and the text, each under its role."""
    turns = []
    for role, content in (*messages_before(sample), (ANSWERING, sample.output)):
        title = role.capitalize()
        turns.append(f"{title}: {content}")
    return "\n\n".join(turns)


def _shown_beside(sample: Sample, fields: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return what is shown beside the texts: a heading and a text for each value of the fields."""
    first_reference = sample.references[0] if sample.references else ""
    # The source and the references have their names whatever the data's own columns are.
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
        entries = value if isinstance(value, list | tuple) else [value]
        values_beside += [(heading, str(entry)) for entry in entries]
    return tuple(values_beside)
