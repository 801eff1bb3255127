"""`judge.compare`: compare two finished runs on the same texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path

from judge.commands.finished_runs import open_run
from judge.commands.public import public_api
from judge.core.errors import ConfigError
from judge.core.format import first_names, one_line
from judge.core.messages import command
from judge.core.records import Column
from judge.core.signature import Signature
from judge.report.views.provenance import build_provenance
from judge.results.comparison import Change, RunComparison
from judge.results.result import Result
from judge.results.run_info import DataInfo
from judge.stats.analyze import judged_columns
from judge.stats.run_differences import compare_runs

_WEIGHTINGS = ("auto", "logprobs", "decisions", "samples", "single")
_SETTING_NAMES = {
    "t": "temperature",
    "judge": "judge version",
    "tok": "tokenizer",
    "json": "structured replies",
}
_MISSING = "–"
_MAX_NAMES, _MAX_LENGTH = 5, 40  # names quoted of either run, and characters of each


@public_api()
def compare(
    before: Result | str | Path, after: Result | str | Path, *, seed: int = 0, n_flips: int = 10_000
) -> RunComparison:
    """Compare two runs on the same texts: two results, or the folders of two runs.

    Texts match by item and system. For each shared column and system, the comparison has the mean difference with
    interval and test, the items that changed most, new and vanished failures, and the settings that differ.
    `judge.stats.run_differences` defines the numbers.

    Raises ConfigError for rankings and for runs without a common text or column; raises StorageError.
    """
    old, new = results = open_run(before), open_run(after)
    names = (
        "before" if isinstance(before, Result) else str(before),
        "after" if isinstance(after, Result) else str(after),
    )
    for name, result in zip(names, results, strict=True):
        if result.rankings or result.table.has_pairs:
            raise ConfigError(
                f"{name}: this run ranks systems in pairs of texts and has no scores to compare; "
                "judge report shows its win rates"
            )
    differences = compare_runs(old.table, new.table, seed=seed, n_flips=n_flips)
    if not differences.texts:
        reasons = []
        for field in ("item", "system"):
            old_names, new_names = (getattr(result.table, f"{field}s") for result in results)
            if not set(old_names) & set(new_names):
                reasons.append(
                    f"the {field}s are {_quote_names(old_names)} and {_quote_names(new_names)}"
                )
        raise ConfigError(
            "; ".join(
                [f"{names[0]} and {names[1]} have no text (item and system) in common", *reasons]
            )
        )
    if not differences.means and not differences.incomparable:
        had, has = (", ".join(column.name for column in result.table.columns) for result in results)
        raise ConfigError(
            f"{names[0]} and {names[1]} have no column with values in common ({had}; {has}); "
            f"{command('criteria diff')} compares two wordings of a criterion"
        )
    changes = tuple(changed_settings(old, new))
    notes = []
    for change in changes:
        first, second = (
            {*side.split("+")} - {_MISSING, "-"} for side in (change.before, change.after)
        )
        # A run that needed one more tokenizer has texts of one more script.
        if change.what == "tokenizer" and not (first <= second or second <= first):
            notes.append(
                f"{first_names(change.columns, _MAX_NAMES)}: the first run split the texts by the tokenizer "
                f"{change.before}, the second one by {change.after}, so these values differ even for equal texts. "
                "Score both runs with the same tokenizer."
            )
    # The warnings of both reports, then those of either.
    banners = [build_provenance(result).banners for result in results]
    notes += [text for text in banners[0] if text in banners[1]]
    for name, mine, theirs in zip(names, banners, reversed(banners), strict=True):
        notes += [f"{name}: {text}" for text in mine if text not in theirs]
    return RunComparison(names, old, new, differences, changes, tuple(notes))


def _quote_names(names: Sequence[str]) -> str:
    return first_names((repr(one_line(name, _MAX_LENGTH)) for name in names), _MAX_NAMES)


def changed_settings(before: Result, after: Result) -> Iterator[Change]:
    """Yield the settings that differ; a difference that several columns share is yielded once."""
    if before.info.data.sha256 != after.info.data.sha256:
        yield Change("data", _describe_data(before.info.data), _describe_data(after.info.data))
    changed: dict[tuple[str, str, str], list[str]] = {}
    columns = _own_columns(before)
    for column in after.table.columns:
        if column.name not in columns:
            continue
        had_settings = _settings(columns[column.name])
        has_settings = _settings(column)
        for setting in dict.fromkeys([*had_settings, *has_settings]):
            old = had_settings.get(setting, _MISSING)
            new = has_settings.get(setting, _MISSING)
            if old != new:
                changed.setdefault((setting, old, new), []).append(column.name)
    for (setting, old, new), names in changed.items():
        diff: list[str] = []
        if setting == "prompt":
            criterion = columns[names[0]].criterion or names[0]
            had = _templates(before, criterion)
            has = _templates(after, criterion)
            for file in dict.fromkeys([*had, *has]):
                lines = had.get(file, "").splitlines()
                new_lines = has.get(file, "").splitlines()
                diff += unified_diff(
                    lines, new_lines, f"{file} (before)", f"{file} (after)", lineterm=""
                )
        yield Change(setting, old, new, tuple(names), tuple(diff))
    for name, judge in before.info.judges.items():
        if name in after.info.judges:  # one name may be answered by different models
            old = ", ".join(judge.served_by)
            new = ", ".join(after.info.judges[name].served_by)
            if old and new and old != new:
                yield Change(f"model behind {name}", old, new)


def _own_columns(result: Result) -> dict[str, Column]:
    """Return the columns by name. A panel's are left out, because its judges' columns have the differences."""
    panels = judged_columns(result.table.columns)
    return {
        column.name: column
        for column in result.table.columns
        if column.judge or column.criterion not in panels
    }


def _templates(result: Result, criterion: str) -> Mapping[str, str]:
    described = result.info.criteria.get(criterion)
    return described.templates if described is not None else {}


def _describe_data(data: DataInfo) -> str:
    if data.path and data.sha256:
        return f"{data.path}, sha256 {data.sha256[:12]}"
    return data.path or "not from a file"


def _settings(column: Column) -> dict[str, str]:
    """Return the settings behind a column, by the names that readers know."""
    signature = column.signature
    settings: dict[str, str] = {}
    if signature.digest:
        settings["prompt"] = signature.digest
    elif signature.name not in (column.name, column.criterion):
        settings["metric"] = signature.name
    others = signature
    if column.kind == "criterion" and signature.model:
        settings["model"] = signature.model
        others = Signature(signature.name, *signature.parts[1:])
    for name, value in others.settings.items():
        if name in _WEIGHTINGS:
            settings["weighting"] = name
        else:
            settings[_SETTING_NAMES.get(name, name)] = value
    return settings
