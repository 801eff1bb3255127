"""Read suites from their files. All mistakes of a file are reported at once, each with its line.

`load` reads one file, `find` looks for files. What depends on a criterion or on the data is checked in
`judge.suite.samples`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from judge.config import RunConfig, resolve_value, script_of, split
from judge.core.errors import ConfigError, DataError
from judge.core.format import one_line
from judge.core.plugins import unknown_name_message
from judge.data import samples
from judge.suite.expectations import Expectation
from judge.suite.expectations.case import Case
from judge.suite.records import Suite
from judge.suite.schema import OPTIONS, Spec, YamlSource, nearby, unknown_key

SUFFIX = ".judge.yaml"


def find(paths: Sequence[str | Path]) -> list[Path]:
    """The suites in files of any name and in folders: of these every *.judge.yaml beneath, sorted, hidden ones not.

    Raises ConfigError for a path that is not there, and where nothing is found.
    """
    suites: dict[Path, Path] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise ConfigError(f"{path}: no such file or folder{nearby(path)}")
        inside = [path] if path.is_file() else sorted(path.rglob(f"*{SUFFIX}"))
        visible = [file for file in inside if not any(part.startswith(".") for part in file.relative_to(path).parts)]
        if not visible:
            raise ConfigError(f"{path}: no *{SUFFIX} in this folder; judge suite init DATA writes one")
        for file in visible:
            suites.setdefault(file.resolve(), file)
    if not suites:
        raise ConfigError(f"no suites: name a *{SUFFIX} or a folder that holds some")
    return list(suites.values())


def load(path: str | Path, given: Collection[str] = ()) -> Suite:
    """A suite as its file has it. The files it names have to be there, but for options that are `given` elsewhere.

    `options` then are checked values of `RunConfig` by the key that the file writes, its `criteria` those that cases
    name. Raises ConfigError with a line `FILE:LINE: what is wrong and what to do` for each mistake.
    """
    file = YamlSource(Path(path))
    for key in file.values.keys() - OPTIONS.keys() - Spec.model_fields.keys():
        file.report(unknown_key(key), key)
    folder = file.path.parent
    written = {key: value for key, value in file.values.items() if key in OPTIONS and value is not None}
    criteria = written.get("criteria", [])
    resolved = {key: resolve_value(key, value, folder) for key, value in written.items()}
    if "criteria" in written:  # as the cases name them
        resolved["criteria"] = split(criteria) if isinstance(criteria, str) else criteria
    config = file.checked(RunConfig, resolved)
    spec = file.checked(Spec, {key: value for key, value in file.values.items() if key in Spec.model_fields})
    if config is None or spec is None:
        raise file.error()
    options = {key: getattr(config, "mapping" if key == "map" else key) for key in OPTIONS if key in written}
    cases = _located_cases(spec, options, file)
    options["criteria"] = tuple(beside(file.path, name) for name in dict.fromkeys(case.criterion for case in cases))
    _check_files(file, options, given)
    file.raise_if_any()
    baseline = None if spec.baseline is None else folder / spec.baseline
    name = file.path.name.removesuffix(SUFFIX) if file.path.name.endswith(SUFFIX) else file.path.stem
    return Suite(file.path, name, options, cases, spec.limits, baseline, spec.undecided, file.lines)


def beside(path: Path, criterion: str) -> str:
    """A criterion that the suite at `path` names: a built-in name, or a file from the suite's folder on."""
    return str(path.parent / criterion) if criterion.endswith(".jinja") else criterion


def _check_files(file: YamlSource, options: Mapping[str, Any], given: Collection[str]) -> None:
    """Complaints about files that are not there."""
    if "data" in options and "data" not in given:
        try:
            samples.files(options["data"])
        except DataError as error:
            file.report(f"data: {error}", "data")
    named = [("replay", options["replay"])] if "replay" in options else []
    named += [("model", script) for judge in options.get("model", ()) if (script := script_of(judge.name))]
    for key, path in named:
        if key not in given and not path.is_file():
            problem = "is a folder, not a file" if path.is_dir() else f"no such file{nearby(path)}"
            file.report(f"{key}: {path}: {problem}", key)


def _located_cases(spec: Spec, options: Mapping[str, Any], file: YamlSource) -> tuple[Expectation, ...]:
    """The cases in their order, each with its criterion as the file writes it and a name of its own.

    `file` is complained to; what has a mistake is left out. `options` are those of the file.
    """
    named = [case.criterion for case in spec.cases if case.criterion]
    known = list(dict.fromkeys(options.get("criteria") or named))
    written = [name for name in options.get("criteria") or () if name.endswith(".jinja")]
    absent = [name for name in written if not (file.path.parent / name).is_file()]
    for name in absent:
        file.report(f"criteria: {name}: no such file{nearby(file.path.parent / name)}", "criteria")
    cases: list[Expectation] = []
    for n, case in enumerate(spec.cases):
        criterion = _criterion_of(case, known, file, n, sure=not absent)
        if not case.texts and "data" not in options:
            file.report("no texts: write text: {output: ...} in the case, or data: with a file at the top", "cases", n)
        elif criterion:
            line = file.line("cases", n)
            places = {text.system: f"{file.path}:{file.line('cases', n, text.system)}" for text in case.texts}
            cases.append(case.located(criterion, line, places).named(" ".join(case.name.split())))
    if "criteria" in options and len(cases) == len(spec.cases):
        for name in set(known) - {case.criterion for case in cases}:
            file.report(f"criteria: no case is about {name}; write one, or leave it out", "criteria")
    return tuple(_with_names(cases, file))


def _criterion_of(case: Case, known: list[str], file: YamlSource, place: int, *, sure: bool) -> str:
    """A case's criterion as the file's list or another case writes it; a file may be called by its stem.

    An unknown one is a mistake where all the known ones are `sure` to be there: else it may be meant by another.
    """
    name, stems = case.criterion, {Path(candidate).stem: candidate for candidate in reversed(known)}
    if not name:
        if len(known) == 1:
            return known[0]
        more = f"; criteria are {', '.join(known)}" if known else ""
        file.report(f"no criterion: write criterion: and a name or a .jinja file{more}", "cases", place)
        return ""
    match = name if name in known else stems.get(name, "")
    if not match and sure:
        near = get_close_matches(name, stems, n=1)
        message = f"{unknown_name_message('criterion', name, known)}; the known ones stand in criteria:"
        if near:
            message = f"unknown criterion {name!r}; did you mean {near[0]!r}?"
        file.report(message, "cases", place, "criterion")
    return match


def _with_names(cases: Sequence[Expectation], file: YamlSource) -> Iterator[Expectation]:
    """Each with a name that no other has: its own, or what it expects."""
    lines: dict[str, int] = {}
    for case in cases:
        if case.name in lines and case.name:
            sentence = f"name: {one_line(case.name)!r} is already the case at line {lines[case.name]}"
            file.complain_at(f"{sentence}; every case has a name of its own", case.line)
        lines.setdefault(case.name, case.line)
    for case in cases:
        name, n = case.name or case.describe(), 1
        while not case.name and name in lines:
            n += 1
            name = f"{case.describe()} ({n})"
        lines[name] = case.line
        yield case.named(name)
