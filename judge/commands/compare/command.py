"""`judge.compare`: compare two finished runs on the same texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import get_args

from judge.commands.finished_runs import open_run
from judge.commands.public import public_api
from judge.core.errors import ConfigError
from judge.core.format import first_names, one_line
from judge.core.messages import Remark, command
from judge.core.records import Column
from judge.core.signature import Signature
from judge.report.views.provenance import build_provenance
from judge.results.comparison import Change, RunComparison
from judge.results.result import Result
from judge.results.run_info import DataInfo
from judge.scoring.strategies import Weighting
from judge.stats.panels import judged_columns
from judge.stats.pass_marks import translate_pass_marks
from judge.stats.run_differences import compare_runs

# Settings of a signature that stand alone: "single", not "weighting=single".
_WEIGHTINGS = get_args(Weighting)
# The settings that a signature abbreviates: "t=0.7".
_SETTING_NAMES = {
    "t": "temperature",
    "judge": "judge version",
    "tok": "tokenizer",
    "json": "structured replies",
}
_MISSING = "–"
_MAX_NAMES = 5  # of each run in a message
_MAX_NAME_LENGTH = 40


@public_api()
def compare(
    before: Result | str | Path,
    after: Result | str | Path,
    *,
    seed: int = 0,
    n_resamples: int = 10_000,
) -> RunComparison:
    """Compare two runs on the same texts: two results, or the folders of two runs.

    Texts match by item and system. For each shared column and system, the comparison has the mean
    difference with interval and test, the items that changed most, and new and vanished failures.
    For criteria with a pass mark, it has the mark at which as many texts pass by the second run's
    judge.

    Raises ConfigError for rankings and for runs without a common text or column; raises
    StorageError.
    """
    old_run = open_run(before)
    new_run = open_run(after)
    old_name = "before" if isinstance(before, Result) else str(before)
    new_name = "after" if isinstance(after, Result) else str(after)
    names = (old_name, new_name)
    runs = (old_run, new_run)
    for run_name, run in zip(names, runs, strict=True):
        if run.rankings or run.table.has_pairs:
            raise ConfigError(
                f"{run_name}: this run ranks systems in pairs of texts and has no scores to "
                "compare; judge report shows its win rates"
            )
    old_table = old_run.table
    new_table = new_run.table
    differences = compare_runs(old_table, new_table, seed=seed, n_resamples=n_resamples)
    if not differences.texts:
        raise ConfigError(_no_common_text(names, old_run, new_run))
    if not differences.means and not differences.incomparable:
        old_columns = ", ".join(column.name for column in old_table.columns)
        new_columns = ", ".join(column.name for column in new_table.columns)
        raise ConfigError(
            f"{old_name} and {new_name} have no column with values in common ({old_columns}; "
            f"{new_columns}); {command('criteria diff')} compares two wordings of a criterion"
        )
    changes = tuple(changed_settings(old_run, new_run))
    notes = [*_tokenizer_notes(changes), *_banners(names, old_run, new_run)]
    pass_marks = translate_pass_marks(old_table, new_table, seed=seed)
    return RunComparison(
        names,
        old_run,
        new_run,
        differences,
        changes,
        tuple(notes),
        pass_marks,
    )


def _no_common_text(run_names: tuple[str, str], old: Result, new: Result) -> str:
    """Return the message for runs without a common text, with the items and systems of both."""
    old_name, new_name = run_names
    message = f"{old_name} and {new_name} have no text (item and system) in common"
    old_table = old.table
    new_table = new.table
    if not set(old_table.items) & set(new_table.items):
        old_items = _quote_names(old_table.items)
        new_items = _quote_names(new_table.items)
        message += f"; the items are {old_items} and {new_items}"
    if not set(old_table.systems) & set(new_table.systems):
        old_systems = _quote_names(old_table.systems)
        new_systems = _quote_names(new_table.systems)
        message += f"; the systems are {old_systems} and {new_systems}"
    return message


def _tokenizer_notes(changes: Sequence[Change]) -> Iterator[str]:
    """Yield a warning for each change of the tokenizer."""
    for change in changes:
        if change.what != "tokenizer":
            continue
        old_tokenizers = _tokenizers(change.before)
        new_tokenizers = _tokenizers(change.after)
        # A run that needed one more tokenizer has texts of one more script.
        if old_tokenizers <= new_tokenizers or new_tokenizers <= old_tokenizers:
            continue
        yield (
            f"{first_names(change.columns, _MAX_NAMES)}: the first run split the texts by the "
            f"tokenizer {change.before}, the second one by {change.after}, so these values differ "
            "even for equal texts. Score both runs with the same tokenizer."
        )


def _tokenizers(setting: str) -> set[str]:
    """Return the tokenizers that a setting names: "en+ja" names two, "-" none."""
    return set(setting.split("+")) - {_MISSING, "-"}


def _banners(run_names: tuple[str, str], old: Result, new: Result) -> Iterator[str]:
    """Yield the warnings that both reports share, then the others with the name of their run."""
    old_banners = build_provenance(old).notes
    new_banners = build_provenance(new).notes
    for banner in old_banners:
        if banner in new_banners:
            yield banner
    old_name, new_name = run_names
    for banner in old_banners:
        if banner not in new_banners:
            yield _of_run(old_name, banner)
    for banner in new_banners:
        if banner not in old_banners:
            yield _of_run(new_name, banner)


def _of_run(run_name: str, text: str) -> str:
    """Return a note of one run with its name; a remark stays a remark."""
    named = f"{run_name}: {text}"
    if isinstance(text, Remark):
        return Remark(named)
    return named


def _quote_names(names: Sequence[str]) -> str:
    """Return the first names, quoted and shortened, and how many there are besides."""
    quoted = (repr(one_line(name, _MAX_NAME_LENGTH)) for name in names)
    return first_names(quoted, _MAX_NAMES)


def changed_settings(before: Result, after: Result) -> Iterator[Change]:
    """Yield the differences of the data, of the settings behind each column, and of the models."""
    old_data = before.info.data
    new_data = after.info.data
    if old_data.sha256 != new_data.sha256:
        yield Change("data", _describe_data(old_data), _describe_data(new_data))
    yield from _changes_of_columns(before, after)
    yield from _changes_of_served_models(before, after)


def _changes_of_columns(before: Result, after: Result) -> Iterator[Change]:
    """Yield the settings that differ. A difference that several columns share is yielded once."""
    old_columns = _compared_columns(before)
    columns_by_change: dict[tuple[str, str, str], list[str]] = {}
    for column in after.table.columns:
        old_column = old_columns.get(column.name)
        if old_column is None:
            continue
        old_settings = _settings(old_column)
        new_settings = _settings(column)
        for setting in dict.fromkeys([*old_settings, *new_settings]):
            old_value = old_settings.get(setting, _MISSING)
            new_value = new_settings.get(setting, _MISSING)
            if old_value != new_value:
                change = (setting, old_value, new_value)
                columns_by_change.setdefault(change, []).append(column.name)
    for (setting, old_value, new_value), column_names in columns_by_change.items():
        diff: list[str] = []
        if setting == "prompt":
            # The columns of a panel's judges have one criterion.
            first_name = column_names[0]
            criterion = old_columns[first_name].criterion or first_name
            diff = _prompt_diff(before, after, criterion)
        yield Change(setting, old_value, new_value, tuple(column_names), tuple(diff))


def _changes_of_served_models(before: Result, after: Result) -> Iterator[Change]:
    """Yield the judges whose name stands for another model now, such as an alias of the newest."""
    for judge_name, judge in before.info.judges.items():
        if judge_name not in after.info.judges:
            continue
        old_models = ", ".join(judge.served_by)
        new_models = ", ".join(after.info.judges[judge_name].served_by)
        # Not every server says which model has answered.
        if old_models and new_models and old_models != new_models:
            yield Change(f"model behind {judge_name}", old_models, new_models)


def _prompt_diff(before: Result, after: Result, criterion: str) -> list[str]:
    """Return the lines of a unified diff between the files of a criterion's prompt."""
    old_files = _templates(before, criterion)
    new_files = _templates(after, criterion)
    diff: list[str] = []
    for file in dict.fromkeys([*old_files, *new_files]):
        old_text = old_files.get(file, "")
        new_text = new_files.get(file, "")
        diff += unified_diff(
            old_text.splitlines(),
            new_text.splitlines(),
            f"{file} (before)",
            f"{file} (after)",
            lineterm="",
        )
    return diff


def _compared_columns(result: Result) -> dict[str, Column]:
    """Return the columns by name, without a panel's mean, which has its judges' settings."""
    columns = result.table.columns
    panels = judged_columns(columns)
    compared = {}
    for column in columns:
        is_panel = not column.judge and column.criterion in panels
        if not is_panel:
            compared[column.name] = column
    return compared


def _templates(result: Result, criterion: str) -> Mapping[str, str]:
    """Return the text of each file of a criterion's prompt; none for a criterion without record."""
    info = result.info.criteria.get(criterion)
    return {} if info is None else info.templates


def _describe_data(data: DataInfo) -> str:
    """Return the file and the start of its digest, which tells two versions of a file apart."""
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
    if column.kind == "criterion" and signature.model:
        settings["model"] = signature.model
        # The model is the first part, and no setting of its own.
        signature = Signature(signature.name, *signature.parts[1:])
    for setting, value in signature.settings.items():
        if setting in _WEIGHTINGS:
            settings["weighting"] = setting
        else:
            setting_name = _SETTING_NAMES.get(setting, setting)
            settings[setting_name] = value
    return settings
