"""Files of cases to `Suite`s. Every mistake is said with its file and line, all of a file's at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.config import Judge, Plan, split
from judge.core.errors import ConfigError, DataError
from judge.data import samples
from judge.suite.cases import cases_of
from judge.suite.records import Suite
from judge.suite.schema import OPTIONS, Spec
from judge.suite.yaml_source import Written, nearby, unknown_key

SUFFIX = ".judge.yaml"
_SCRIPTED = "scripted/"
_LISTS, _PATHS = ("criteria", "systems"), ("data", "cache", "replay")


def find(paths: Sequence[str | Path]) -> list[Path]:
    """The suites in files of any name and in folders: of these every *.judge.yaml beneath, sorted, hidden ones not.

    Raises ConfigError for a path that is not there, and where nothing is found.
    """
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise ConfigError(f"{path}: no such file or folder{nearby(path)}")
        inside = [path] if path.is_file() else sorted(path.rglob(f"*{SUFFIX}"))
        shown = [one for one in inside if not any(part.startswith(".") for part in one.relative_to(path).parts)]
        if not shown:
            raise ConfigError(f"{path}: no *{SUFFIX} in this folder; judge suite init DATA writes one")
        for one in shown:
            found.setdefault(one.resolve(), one)
    if not found:
        raise ConfigError(f"no suites: name a *{SUFFIX} or a folder that holds some")
    return list(found.values())


def load(path: str | Path, given: Collection[str] = ()) -> Suite:
    """A suite as its file has it. The files it names have to be there, but for options that are `given` elsewhere.

    `options` then are checked values of `config.Plan` by the key that the file writes, its `criteria` those that cases
    name. Raises ConfigError with a line `FILE:LINE: what is wrong and what to do` for each mistake.
    """
    file = Written(Path(path))
    made, spec = _plan(file), file.checked(Spec, {k: v for k, v in file.values.items() if k in Spec.model_fields})
    if made is None or spec is None:
        raise file.error()
    written = {key for key, value in file.values.items() if key in OPTIONS and value is not None}
    options = {key: getattr(made, "mapping" if key == "map" else key) for key in OPTIONS if key in written}
    cases = cases_of(spec, options, file)
    options["criteria"] = tuple(beside(file.path, name) for name in dict.fromkeys(case.criterion for case in cases))
    options = {key: _from(file.path.parent, key, value) for key, value in options.items()}
    _check_there(file, options, given)
    file.settle()
    baseline = None if spec.baseline is None else file.path.parent / spec.baseline
    name = file.path.name.removesuffix(SUFFIX) if file.path.name.endswith(SUFFIX) else file.path.stem
    return Suite(file.path, name, options, cases, spec.limits.limits(), baseline, spec.undecided, file.lines)


def beside(path: Path, criterion: str) -> str:
    """A criterion that the suite at `path` names: a built-in name, or a file from the suite's folder on."""
    return str(path.parent / criterion) if criterion.endswith(".jinja") else criterion


def _plan(file: Written) -> Plan | None:
    """The options in the file; complaints about them, and about keys that no suite has."""
    for key in file.values.keys() - OPTIONS.keys() - Spec.model_fields.keys():
        file.complain(unknown_key(key), key)
    given = {key: value for key, value in file.values.items() if key in OPTIONS and value is not None}
    return file.checked(Plan, {k: split(v) if k in _LISTS and isinstance(v, str) else v for k, v in given.items()})


def _from(folder: Path, key: str, value: Any) -> Any:
    """An option with its paths, which start from the file's folder."""
    if key in _PATHS and isinstance(value, Path):
        return folder / value
    return tuple(_judge_from(folder, one) for one in value) if key == "model" else value


def _judge_from(folder: Path, judge: Judge) -> Judge:
    if not judge.name.startswith(_SCRIPTED):
        return judge
    return judge.model_copy(update={"name": f"{_SCRIPTED}{folder / judge.name.removeprefix(_SCRIPTED)}"})


def _check_there(file: Written, options: Mapping[str, Any], given: Collection[str]) -> None:
    """Complaints about files that are not there."""
    if "data" in options and "data" not in given:
        try:
            samples.files(options["data"])
        except DataError as error:
            file.complain(f"data: {error}", "data")
    named = [("replay", options["replay"])] if "replay" in options else []
    scripts = [judge.name for judge in options.get("model", ()) if judge.name.startswith(_SCRIPTED)]
    named += [("model", Path(name.removeprefix(_SCRIPTED))) for name in scripts]
    for key, path in named:
        if key not in given and not path.is_file():
            what = "is a folder, not a file" if path.is_dir() else f"no such file{nearby(path)}"
            file.complain(f"{key}: {path}: {what}", key)
