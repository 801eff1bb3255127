"""Draft a first suite from data with human ratings, or from a finished run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judge.commands.init.scaffold import UNUSED, create_suite
from judge.config import RunConfig, load_config, run_options
from judge.core.criterion_entry import keys_of, name_of
from judge.core.errors import ConfigError, DataError, StorageError
from judge.core.records import Sample
from judge.criteria import builtin, builtin_prompts
from judge.data import samples
from judge.results.loading import load
from judge.results.run_info import RunInfo
from judge.suite import load as suites


@dataclass(frozen=True, slots=True)
class NewSuite:
    """The text of a suite to write to `path`.

    It also has the samples that the suite is about, and the criteria that the user named.
    """

    path: Path
    text: str
    samples: Sequence[Sample]
    named_criteria: Sequence[str]

    @property
    def unused_columns(self) -> list[str]:
        """The lines of the suite about columns of the data that no case uses."""
        comments = [line for line in self.text.splitlines() if line.startswith(UNUSED)]
        return [comment.removeprefix("# ") for comment in comments]

    def untested_ratings(self) -> list[str]:
        """Return the rated criteria if the written suite tests none of them.

        The list is empty if the user named the criteria.
        """
        rating_names = dict.fromkeys(
            rating_name for sample in self.samples for rating_name in sample.human
        )
        if not rating_names or self.named_criteria:
            return []
        are_tested = any(case.needs_ratings for case in suites.load(self.path).cases)
        return [] if are_tested else list(rating_names)


def draft_suite(
    data: Path, output: Path | None, options: Mapping[str, Any]
) -> NewSuite:
    """Make a suite from data with human ratings, or from a run, which becomes its baseline.

    `output` is the file to write, None for one that is named after the data, and "-" for the
    console. Raises JudgeError.
    """
    if not all(options.get("model", ["none"])):
        raise ConfigError("--model: no name; leave it out, or name a judge")
    suite_options = dict(options)
    for option_name in ("map", "systems"):
        if option_name in options:
            # On the command line, these are written as text.
            config = load_config(options=options)
            suite_options[option_name] = getattr(config, option_name)
    criteria = suite_options.pop("criteria", [])
    is_run = not samples.is_data(data)
    if is_run:
        source = _read_run(data, suite_options, criteria)
    else:
        mapping = suite_options.get("map", {})
        systems = suite_options.get("systems", ())
        rows = samples.load(data, mapping=mapping, systems=systems)
        source = _Source(rows, {"data": data, **suite_options}, criteria)
    to_console = output == Path("-")
    path = output
    if path is None or to_console:
        path = Path(f"{samples.dataset_name(data)}{suites.SUFFIX}")
    if path.exists() and not to_console:
        advice = "name another file with --output FILE"
        raise ConfigError(f"{path}: already exists; {advice}")
    text = create_suite(
        source.samples,
        path,
        source.criteria,
        options=source.options,
        baseline=data if is_run else None,
    )
    return NewSuite(path, text, source.samples, criteria)


@dataclass(frozen=True, slots=True)
class _Source:
    """The content of a new suite; `criteria` is empty if neither run nor user names any."""

    samples: Sequence[Sample]
    options: dict[str, Any]
    criteria: Sequence[str]


def _read_run(
    folder: Path,
    options: Mapping[str, Any],
    named_criteria: Sequence[str],
) -> _Source:
    """Read a finished run. `options` and criteria override its own. Raises ConfigError."""
    if not (folder / "run.json").is_file():
        raise ConfigError(
            f"{folder}: no run in this folder; name a data file, or the folder of a run"
        )
    result = load(folder)
    if result.rankings:
        raise ConfigError(
            f"{folder}: this run compared texts in pairs; name the folder of a judge run"
        )
    config = result.info.config
    data = config.data
    try:
        has_data = data is not None and bool(samples.files(data))
    except DataError:
        has_data = False
    if not has_data:
        raise ConfigError(
            f"{folder}: its data ({data or 'no file'}) is missing; name the data file instead"
        )
    options_of_run = _changed_options(config)
    try:
        load_config(options=options_of_run)
    except ConfigError as error:
        raise StorageError(f"{folder / 'run.json'}: {error}") from error
    criteria = [*named_criteria] or list(_criteria_of(folder, result.info))
    rows = result.table.samples
    if config.rating_source is not None:  # a suite reads the ratings of its data only
        rows = tuple(
            replace(sample, human={}, ratings={}, raters={}) for sample in rows
        )
    return _Source(rows, {**options_of_run, **options}, criteria)


def _criteria_of(folder: Path, info: RunInfo) -> Iterator[str]:
    """Yield how a suite names the criteria of a run. Raises ConfigError for one in no file."""
    # A criterion that was written in a sentence or with its keys is in no file.
    entries = [entry for entry in info.config.criteria or () if keys_of(entry)]
    entry_by_name = {name_of(entry): entry for entry in entries}
    for criterion_name, described in info.criteria.items():
        path = Path(described.path)
        if criterion_name in entry_by_name:
            yield entry_by_name[criterion_name]
        elif path.is_relative_to(builtin_prompts()):
            yield criterion_name
        elif path.is_file():
            yield str(path)
        elif _is_builtin(criterion_name, described.digest, info.language_name):
            # The run was made on another machine.
            yield criterion_name
        else:
            raise ConfigError(
                f"{folder}: its criterion {criterion_name} is in no file here "
                f"({described.path or 'it had none'}); name it with --criteria"
            )


def _is_builtin(criterion_name: str, digest: str, language: str) -> bool:
    known = {
        criterion.name: criterion.digest for criterion in builtin(language or "en")
    }
    return known.get(criterion_name) == digest


def _changed_options(config: RunConfig) -> dict[str, Any]:
    """Return the options of a run that a suite can have and that are not the default."""
    stored = config.model_dump(mode="json")
    defaults = RunConfig().model_dump(mode="json")
    changed: dict[str, Any] = {}
    for option_name, option in run_options("suite").items():
        # A suite has limits of its own, and names its criteria by their files.
        if option.group == "Limits and cost" or option_name == "criteria":
            continue
        if stored[option_name] != defaults[option_name]:
            changed[option_name] = stored[option_name]
    return changed
