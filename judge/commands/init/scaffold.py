"""Write a first suite for some data: its cases follow from human ratings, and no limit is invented."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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
from judge.stats.correlation import usual_level
from judge.suite.load import mapped_away
from judge.suite.schema import OPTIONS

_MANY_JUDGMENTS = 500  # judgments above which the file suggests a limit
_MIN_RATED = 3  # rated texts for a coefficient
_PATHS = ("data", "replay")
UNUSED = "# Unused columns: "
_HEAD = """\
# judge test {name}{flag}
# For completion in an editor: judge doctor schema suite > suite.schema.json, and this as the first line:
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

    `criteria` are names and files (default: the rated built-in ones, else those of summaries). `options` are keys of a
    suite, including `data`; their paths are relative to the working directory, those in the text to the suite's folder.
    `baseline` is the folder of a run. Raises ConfigError if the samples have no default criteria, CriterionError or
    DataError if one of `criteria` does not fit.
    """
    language = str(options.get("language") or text.language_of(samples))
    names = list(criteria) or _fitting_criteria(samples, language)
    chosen = [(name, criteria_module.load(name, language=language)) for name in names]
    for _, criterion in chosen:
        try:
            criteria_module.check_samples(criterion, samples)
        except (CriterionError, DataError) as error:
            raise type(error)(f"{error}{mapped_away(error, options.get('map'))}") from None
    folder, written = path.parent, [_relative_path(path.parent, name) for name in names]
    judged = bool(options.get("model") or options.get("replay"))
    lines = [_HEAD.format(name=one_line(path.name), flag="" if judged else " --model gpt-5.4-mini")]
    lines += [
        f"{key}: {_flow(_from_folder(folder, key, options[key]))}"
        for key in OPTIONS
        if options.get(key) is not None
    ]
    if (judgments := len(samples) * len(names)) > _MANY_JUDGMENTS and "limit" not in options:
        lines.append(f"# limit: 100  # texts; all of them are up to {judgments:,} judgments")
    lines.append(f"criteria: {_flow(written)}")
    if not judged:
        lines.append("# model: gpt-5.4-mini  # or --model, or a recording: replay: calls.jsonl")
    if baseline is not None:
        lines += [
            "",
            f"baseline: {_flow(_relative_path(folder, str(baseline), always=True))}  # no criterion may get worse",
        ]
    lines += [
        "",
        "limits: {failures: 0}  # tokens: of one judgment; cost: of all without a cache",
        "",
    ]
    lines.append("cases:")
    for name, (_, criterion) in zip(written, chosen, strict=True):
        low = criterion.scale.low
        lowest = {"expect": {"min": int(low) if low == int(low) else low}}
        why = "the lowest score, which always passes: raise it to the result of a run"
        for comment, keys in [*_suggest_cases(criterion, samples)] or [(why, lowest)]:
            lines += [f"  # {comment}", f"  - criterion: {_flow(name)}"]
            lines += [f"    {key}: {_flow(value)}" for key, value in keys.items()]
        lines.append("")
    return (
        "\n".join(
            [*lines, *_closing_comments(samples, [criterion for _, criterion in chosen], baseline)]
        )
        + "\n"
    )


def _fitting_criteria(samples: Sequence[Sample], language: str) -> list[str]:
    """Return the rated built-in criteria whose columns the samples have, else the default ones. Raises ConfigError."""
    known = {criterion.name: criterion for criterion in criteria_module.builtin(language)}
    rated = dict.fromkeys(name for sample in samples for name in sample.human)
    fitting = []
    for name in (name for name in rated if name in known):
        with suppress(CriterionError, DataError):
            criteria_module.check_samples(known[name], samples)
            fitting.append(name)
    return fitting or list(criteria_module.default_criteria(samples, rated=rated))


def _suggest_cases(
    criterion: Criterion, samples: Sequence[Sample]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield cases of a criterion that follow from the ratings: a comment, and the keys besides the criterion."""
    rating = criterion.name
    rated = [
        sample
        for sample in ledger.withhold(samples, {rating: criterion.used})
        if rating in sample.human
    ]
    of_items: dict[str, list[float]] = defaultdict(list)
    of_systems: dict[str, dict[str, float]] = defaultdict(dict)
    for sample in rated:
        of_items[sample.item].append(sample.human[rating])
        of_systems[sample.system][sample.item] = sample.human[rating]
    # Agreement, if the ratings vary, at the level that they allow.
    varies_within = any(len(set(ratings)) > 1 for ratings in of_items.values())
    if varies_within or (
        len(rated) >= _MIN_RATED and len({sample.human[rating] for sample in rated}) > 1
    ):
        level = usual_level(rated) if varies_within else "item"
        yield (
            "agrees with human ratings at all: raise it to the result of a run",
            {"human": {"spearman": {"min": 0}, "level": level}},
        )
    # The best and worst systems by mean rating over the items that all rated systems have.
    shared = (
        sorted(set.intersection(*(set(items) for items in of_systems.values())))
        if of_systems
        else []
    )
    if len(of_systems) > 1 and shared:
        means = {
            system: fmean(items[item] for item in shared) for system, items in of_systems.items()
        }
        best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
        if means[best] > means[worst]:
            yield "the best and worst systems by human ratings", {"better": best, "worse": worst}


def _closing_comments(
    samples: Sequence[Sample], chosen: Sequence[Criterion], baseline: Path | None
) -> Iterator[str]:
    """Yield comments about what else a suite can have."""
    read = set[str]().union(*(criterion.needs for criterion in chosen))
    if unused := sorted(
        {name for sample in samples for name in sample.extra}.difference(ALIASES, read)
    ):
        yield f"{UNUSED}{', '.join(one_line(name, 40) for name in unused)} (map: {{item: COLUMN, system: COLUMN}})"
    name = _flow(chosen[0].name)
    yield "# A text of your own, with the columns that the criterion reads:"
    needs = "".join(f"{_flow(need)}: ..., " for need in sorted(chosen[0].needs - {"output"}))
    yield f"#  - {{criterion: {name}, text: {{{needs}output: ...}}, expect: {{min: {chosen[0].scale.high:g}}}}}"
    new = "" if baseline else "With baseline: and the folder of a run, no criterion may get worse. "
    yield f"# {new}This limits the change{' from the baseline' if baseline else ''}:"
    yield f"#  - {{criterion: {name}, drift: {{max_flips: 0.1}}}}"


def _flow(value: Any) -> str:
    """Return a value as YAML on one line."""
    yaml_text = ""
    for style in (None, '"'):  # in quotes, every text fits on one line
        yaml_text = yaml.safe_dump(
            value,
            default_flow_style=True,
            default_style=style,
            allow_unicode=True,
            width=float("inf"),
            sort_keys=False,
        )
        yaml_text = yaml_text.removesuffix("\n").removesuffix("\n...")
        if len(yaml_text.splitlines()) < 2:
            break
    return yaml_text


def _from_folder(folder: Path, key: str, value: Any) -> Any:
    """Return an option with paths relative to the suite's folder."""
    if key in _PATHS:
        return _relative_path(folder, str(value), always=True)
    if key == "model":
        models = [
            _judge_from_folder(folder, judge)
            for judge in ([value] if isinstance(value, str | dict) else value)
        ]
        return models[0] if len(models) == 1 else models
    return list(value) if isinstance(value, tuple) else value


def _judge_from_folder(folder: Path, model: Any) -> Any:
    """Return a judge's name or mapping, with the path of a script relative to the folder."""
    if isinstance(model, dict):
        options = {key: value for key, value in model.items() if value is not None}
        name = _judge_from_folder(folder, options["name"])
        return {**options, "name": name} if len(options) > 1 else name
    start, slash, script = model.partition("/")
    return (
        f"scripted/{_relative_path(folder, script, always=True)}"
        if start == "scripted" and slash
        else model
    )


def _relative_path(folder: Path, name: str, *, always: bool = False) -> str:
    """Return a path relative to a folder; without `always`, only if it is a criterion's file."""
    return os.path.relpath(name, folder) if always or is_file(name) else name
