"""Write a first suite for some data: its cases follow from human ratings, not from guesses."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from judge import criteria as criteria_module
from judge import text
from judge.core.criterion_entry import is_file
from judge.core.errors import CriterionError, DataError
from judge.core.format import one_line
from judge.core.records import ALIASES, Criterion, Sample
from judge.data import ledger
from judge.data.answers import column_of
from judge.data.conversations import MESSAGES
from judge.stats.correlation import usual_level
from judge.stats.power import MIN_ITEMS
from judge.suite.load import mapped_away
from judge.suite.schema import OPTIONS

_MANY_JUDGMENTS = 500
"""Judgments above which the file suggests a limit."""
_MIN_RATED = 3
"""Rated texts for a coefficient."""
_LONGEST_NAME = 40
"""Characters of a column's name in a comment."""
_EXAMPLE_MODEL = "gpt-5.4-mini"
# Options that are always paths; those of criteria and scripts may also be names.
_PATHS = ("data", "replay")
UNUSED = "# Unused columns: "
_HEAD = """\
# judge test {name}{flag}
# For completion in an editor: judge doctor schema suite > suite.schema.json, \
and this as the first line:
# # yaml-language-server: $schema=suite.schema.json
"""


def create_suite(
    samples: Sequence[Sample],
    path: Path,
    criteria: Sequence[str] = (),
    *,
    options: Mapping[str, Any],
    baseline: Path | None = None,
) -> str:
    """Return the text of a suite at `path` about these samples.

    `criteria` are names and files (default: the rated built-in ones, else those that are proposed
    for answers, or the default criteria of summaries). `options` are keys of a suite, including
    `data`. Their paths are relative to the working directory, the paths in the text to the suite's
    folder. `baseline` is the folder of a run. Raises ConfigError if the samples have none of them,
    CriterionError or DataError if one of `criteria` does not fit.
    """
    language = str(options.get("language") or text.language_of(samples))
    names = list(criteria) or _fitting_criteria(samples, language)
    chosen = [
        criteria_module.load(criterion_name, language=language)
        for criterion_name in names
    ]
    for criterion in chosen:
        try:
            criteria_module.check_samples(criterion, samples)
        except (CriterionError, DataError) as error:
            hint = mapped_away(error, options.get("map"))
            raise type(error)(f"{error}{hint}") from None
    folder = path.parent
    written_names = [_relative_path(folder, criterion_name) for criterion_name in names]
    n_judgments = len(samples) * len(names)
    lines = _option_lines(path, options, judgments=n_judgments)
    lines.append(f"criteria: {_flow(written_names)}")
    if not _names_judge(options):
        lines.append(
            f"# model: {_EXAMPLE_MODEL}  # or --model, or a recording: replay: calls.jsonl"
        )
    if baseline is not None:
        run_folder = _flow(_relative_path(folder, str(baseline), always=True))
        lines += ["", f"baseline: {run_folder}  # no criterion may get worse"]
    lines += [
        "",
        "limits: {failures: 0}  # tokens: of one judgment; cost: of all without a cache",
        "",
        "cases:",
    ]
    for written_name, criterion in zip(written_names, chosen, strict=True):
        lines += _case_lines(criterion, written_name, samples)
        lines.append("")
    lines += _closing_comments(samples, chosen, baseline)
    return "\n".join(lines) + "\n"


def _case_lines(
    criterion: Criterion,
    written_name: str,
    samples: Sequence[Sample],
) -> Iterator[str]:
    """Yield the cases of a criterion; `written_name` is its name or its path from the suite."""
    cases = list(_suggest_cases(criterion, samples)) or list(_order_case(samples))
    for case in cases or [_passing_case(criterion)]:
        yield f"  # {case.comment}"
        yield f"  - criterion: {_flow(written_name)}"
        for case_key, value in case.keys.items():
            yield f"    {case_key}: {_flow(value)}"


def _names_judge(options: Mapping[str, Any]) -> bool:
    """Return whether these options of a suite name a judge or a recording of one."""
    return bool(options.get("model") or options.get("replay"))


def _option_lines(
    path: Path, options: Mapping[str, Any], *, judgments: int
) -> list[str]:
    """Return the head of the file and the options of the run."""
    model_flag = "" if _names_judge(options) else f" --model {_EXAMPLE_MODEL}"
    lines = [_HEAD.format(name=one_line(path.name), flag=model_flag)]
    for option_name in OPTIONS:
        value = options.get(option_name)
        if value is not None:
            yaml_text = _flow(_from_folder(path.parent, option_name, value))
            lines.append(f"{option_name}: {yaml_text}")
    if judgments > _MANY_JUDGMENTS and "limit" not in options:
        total = f"all of them are up to {judgments:,} judgments"
        lines.append(f"# limit: 100  # texts; {total}")
    return lines


def _fitting_criteria(samples: Sequence[Sample], language: str) -> list[str]:
    """Return the rated built-in criteria whose columns the samples have, else the proposed ones.

    Raises ConfigError if there are none.
    """
    builtin = {
        criterion.name: criterion for criterion in criteria_module.builtin(language)
    }
    rated_names = dict.fromkeys(
        criterion_name for sample in samples for criterion_name in sample.human
    )
    fitting: list[str] = []
    for criterion_name in rated_names:
        if criterion_name in builtin:
            with suppress(CriterionError, DataError):
                criteria_module.check_samples(builtin[criterion_name], samples)
                fitting.append(criterion_name)
    if fitting:
        return fitting
    return list(criteria_module.proposed_criteria(samples, rated=rated_names))


@dataclass(frozen=True, slots=True)
class _SuggestedCase:
    """A case to write: the comment above it, and its keys besides the criterion."""

    comment: str
    keys: Mapping[str, Any]


def _passing_case(criterion: Criterion) -> _SuggestedCase:
    """Return a case that always passes, for a criterion about which the data say nothing."""
    range_end, worst_score = _worst(criterion)
    verb = "lower" if range_end == "max" else "raise"
    # A person writes 1 and not 1.0.
    limit = int(worst_score) if worst_score == int(worst_score) else worst_score
    comment = f"passes with any scores: {verb} the limit to the result of a run"
    return _SuggestedCase(comment, {"expect": {range_end: limit}})


def _order_case(samples: Sequence[Sample]) -> Iterator[_SuggestedCase]:
    """Yield a case that the second of two systems is better than the first."""
    items_by_system: dict[str, set[str]] = defaultdict(set)
    for sample in samples:
        items_by_system[sample.system].add(sample.source_item)
    if len(items_by_system) != 2:
        return
    first_system, second_system = items_by_system
    shared = items_by_system[first_system] & items_by_system[second_system]
    if not shared:
        return
    advice = "swap the names if it is the other way round"
    comment = f"the second system beats the first: {advice}"
    keys = {"better": second_system, "worse": first_system}
    if len(shared) < MIN_ITEMS:
        comment += f"; undecided on fewer than {MIN_ITEMS} items"
        keys["undecided"] = "pass"
    yield _SuggestedCase(comment, keys)


def _worst(criterion: Criterion) -> tuple[str, float]:
    """Return the key of a range that limits how bad a score may be, and the worst score."""
    if criterion.better == "lower":
        return "max", criterion.scale.high
    return "min", criterion.scale.low


def _suggest_cases(
    criterion: Criterion, samples: Sequence[Sample]
) -> Iterator[_SuggestedCase]:
    """Yield the cases of a criterion that follow from people's ratings of its name."""
    rating = criterion.name
    # A rating that an example of the prompt shows must not test that prompt (decision 75).
    unseen = ledger.withhold(samples, {rating: criterion.used})
    rated_samples = [sample for sample in unseen if rating in sample.human]
    yield from _agreement_case(rated_samples, rating)
    rating_by_system: dict[str, dict[str, float]] = defaultdict(dict)
    for sample in rated_samples:
        rating_by_system[sample.system][sample.item] = sample.human[rating]
    mean_by_system = _comparable_means(rating_by_system)
    if len(set(mean_by_system.values())) > 1:
        highest = max(mean_by_system, key=mean_by_system.__getitem__)
        lowest = min(mean_by_system, key=mean_by_system.__getitem__)
        keys = {"better": highest, "worse": lowest}
        if criterion.better == "lower":
            keys = {"better": lowest, "worse": highest}
        yield _SuggestedCase("the best and worst systems by human ratings", keys)


def _agreement_case(
    rated_samples: Sequence[Sample], rating: str
) -> Iterator[_SuggestedCase]:
    """Yield a case of agreement with people if the ratings vary, at the level that they allow."""
    ratings_by_item: dict[str, list[float]] = defaultdict(list)
    for sample in rated_samples:
        ratings_by_item[sample.item].append(sample.human[rating])
    varies_within = any(len(set(ratings)) > 1 for ratings in ratings_by_item.values())
    varies = len({sample.human[rating] for sample in rated_samples}) > 1
    if varies_within or (varies and len(rated_samples) >= _MIN_RATED):
        # If the texts of each item have equal ratings, there is no correlation within items.
        level = usual_level(rated_samples) if varies_within else "all-texts"
        comment = "agrees with human ratings at all: raise it to the result of a run"
        limit = {"spearman": {"min": 0}, "level": level}
        yield _SuggestedCase(comment, {"human": limit})


def _comparable_means(
    rating_by_system: Mapping[str, Mapping[str, float]],
) -> dict[str, float]:
    """Return each system's mean rating over the items that all rated systems have.

    Empty if there is no such item.
    """
    if not rating_by_system:
        return {}
    # On other items, a mean may be lower because the items are harder.
    items_by_system = [set(ratings) for ratings in rating_by_system.values()]
    shared_items = sorted(set.intersection(*items_by_system))
    if not shared_items:
        return {}
    mean_by_system: dict[str, float] = {}
    for system, ratings in rating_by_system.items():
        mean_by_system[system] = fmean(ratings[item] for item in shared_items)
    return mean_by_system


def _closing_comments(
    samples: Sequence[Sample],
    chosen: Sequence[Criterion],
    baseline: Path | None,
) -> Iterator[str]:
    """Yield comments about what else a suite can have."""
    unused = _unused_columns(samples, chosen)
    if unused:
        names = ", ".join(one_line(name, _LONGEST_NAME) for name in unused)
        yield f"{UNUSED}{names} (map: {{item: COLUMN, system: COLUMN}})"
    first_criterion = chosen[0]
    name = _flow(first_criterion.name)
    needed_columns = sorted(first_criterion.needs - {"output"})
    needs = "".join(f"{_flow(column)}: ..., " for column in needed_columns)
    text_keys = f"text: {{{needs}output: ...}}"
    range_end, _ = _worst(first_criterion)
    scale = first_criterion.scale
    best_score = scale.low if first_criterion.better == "lower" else scale.high
    expect = f"expect: {{{range_end}: {best_score:g}}}"
    yield "# A text of your own, with the columns that the criterion reads:"
    yield f"#  - {{criterion: {name}, {text_keys}, {expect}}}"
    if baseline:
        yield "# This limits the change from the baseline:"
    else:
        yield (
            "# With baseline: and the folder of a run, no criterion may get worse. "
            "This limits the change:"
        )
    yield f"#  - {{criterion: {name}, drift: {{max_flips: 0.1}}}}"


def _unused_columns(
    samples: Sequence[Sample], chosen: Sequence[Criterion]
) -> list[str]:
    """Return the data's own columns that none of the criteria reads."""
    columns = {column for sample in samples for column in sample.extra}
    variables: set[str] = set()
    for criterion in chosen:
        variables |= criterion.needs
        # A template may read columns that it does not need.
        for variable in (*columns, "request", "passages"):
            if criteria_module.reads(criterion, variable):
                variables.add(variable)
    read_columns = set()
    for sample in samples:
        read_columns |= {column_of(sample, variable) for variable in variables}
    # A conversation before an answer is the request of that answer.
    if "request" in variables:
        read_columns.add(MESSAGES)
    return sorted(columns.difference(ALIASES, read_columns))


def _flow(value: Any) -> str:
    """Return a value as YAML on one line."""
    yaml_text = ""
    # A text with a line break fits on one line only in quotes.
    for quote_style in (None, '"'):
        yaml_text = yaml.safe_dump(
            value,
            default_flow_style=True,
            default_style=quote_style,
            allow_unicode=True,
            width=float("inf"),
            sort_keys=False,
        )
        yaml_text = yaml_text.removesuffix("\n").removesuffix("\n...")
        if len(yaml_text.splitlines()) < 2:
            break
    return yaml_text


def _from_folder(folder: Path, option_name: str, value: Any) -> Any:
    """Return an option as the suite has it: paths relative to its folder, tuples as lists."""
    if option_name in _PATHS:
        return _relative_path(folder, str(value), always=True)
    if option_name == "model":
        judges = [value] if isinstance(value, str | dict) else value
        models = [_judge_from_folder(folder, judge) for judge in judges]
        return models[0] if len(models) == 1 else models
    return list(value) if isinstance(value, tuple) else value


def _judge_from_folder(folder: Path, model: Any) -> Any:
    """Return a judge's name or mapping, with the path of a script relative to the folder."""
    if isinstance(model, dict):
        options = {
            option_name: value
            for option_name, value in model.items()
            if value is not None
        }
        # A mapping with nothing but a name is written as the name.
        judge_name = _judge_from_folder(folder, options["name"])
        return {**options, "name": judge_name} if len(options) > 1 else judge_name
    # "scripted/judge.py" names a file; "openai/gpt-5.4-mini" does not.
    provider, slash, script = model.partition("/")
    if provider == "scripted" and slash:
        return f"scripted/{_relative_path(folder, script, always=True)}"
    return model


def _relative_path(folder: Path, name_or_path: str, *, always: bool = False) -> str:
    """Return a path relative to a folder; without `always`, only if it is a criterion's file."""
    if not always and not is_file(name_or_path):
        return name_or_path
    # Before Python 3.12, `Path.relative_to` cannot go up, as in `../data.csv`.
    return os.path.relpath(name_or_path, folder)
