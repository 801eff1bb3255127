"""Read suites from their files. All mistakes of a file are reported at once, each with its line.

`load` reads one file, `find` looks for files. What depends on a criterion or on the data is checked in
`judge.suite.samples`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from judge.config import RunConfig, split
from judge.core.errors import ConfigError, DataError
from judge.core.format import one_line
from judge.core.plugins import unknown_name_message
from judge.core.records import Sample
from judge.data import samples
from judge.stats.coefficients import Coefficient
from judge.suite import expectations
from judge.suite.records import Agreement, Band, Case, Drift, Expected, Label, Order, Suite
from judge.suite.schema import OPTIONS, CaseKeys, Spec, YamlSource, nearby, unknown_key

SUFFIX = ".judge.yaml"
_SCRIPTED = "scripted/"
_LISTS, _PATHS = ("criteria", "systems"), ("data", "cache", "replay")
_EXPECTS = ("expect", "better", "worse", "human", "drift")
_COEFFICIENTS: tuple[Coefficient, ...] = ("spearman", "kendall", "pearson")


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
    written = {key: value for key, value in file.values.items() if key in OPTIONS and value is not None}
    config = file.checked(
        RunConfig, {k: split(v) if k in _LISTS and isinstance(v, str) else v for k, v in written.items()}
    )
    spec = file.checked(Spec, {key: value for key, value in file.values.items() if key in Spec.model_fields})
    if config is None or spec is None:
        raise file.error()
    options = {key: getattr(config, "mapping" if key == "map" else key) for key in OPTIONS if key in written}
    cases = cases_of(spec, options, file)
    options["criteria"] = tuple(beside(file.path, name) for name in dict.fromkeys(case.criterion for case in cases))
    options = {key: _resolve_paths(file.path.parent, key, value) for key, value in options.items()}
    _check_files(file, options, given)
    file.raise_if_any()
    baseline = None if spec.baseline is None else file.path.parent / spec.baseline
    name = file.path.name.removesuffix(SUFFIX) if file.path.name.endswith(SUFFIX) else file.path.stem
    return Suite(file.path, name, options, cases, spec.limits.limits(), baseline, spec.undecided, file.lines)


def beside(path: Path, criterion: str) -> str:
    """A criterion that the suite at `path` names: a built-in name, or a file from the suite's folder on."""
    return str(path.parent / criterion) if criterion.endswith(".jinja") else criterion


def _resolve_paths(folder: Path, key: str, value: Any) -> Any:
    """An option with its paths, which start from the file's folder."""
    if key in _PATHS and isinstance(value, Path):
        return folder / value
    if key != "model":
        return value
    judges = []
    for judge in value:
        script = judge.name.removeprefix(_SCRIPTED)
        is_script = script != judge.name
        judges.append(judge.model_copy(update={"name": f"{_SCRIPTED}{folder / script}"}) if is_script else judge)
    return tuple(judges)


def _check_files(file: YamlSource, options: Mapping[str, Any], given: Collection[str]) -> None:
    """Complaints about files that are not there."""
    if "data" in options and "data" not in given:
        try:
            samples.files(options["data"])
        except DataError as error:
            file.report(f"data: {error}", "data")
    named = [("replay", options["replay"])] if "replay" in options else []
    scripts = [judge.name for judge in options.get("model", ()) if judge.name.startswith(_SCRIPTED)]
    named += [("model", Path(name.removeprefix(_SCRIPTED))) for name in scripts]
    for key, path in named:
        if key not in given and not path.is_file():
            problem = "is a folder, not a file" if path.is_dir() else f"no such file{nearby(path)}"
            file.report(f"{key}: {path}: {problem}", key)


def cases_of(spec: Spec, options: Mapping[str, Any], file: YamlSource) -> tuple[Case, ...]:
    """The cases in their order, each with its criterion as the file writes it and a name of its own.

    `file` is complained to; what has a mistake is left out. `options` are those of the file.
    """
    named = [case.criterion for case in spec.cases if case.criterion]
    known = list(dict.fromkeys(options.get("criteria") or named))
    cases: list[Case] = []
    written = [name for name in options.get("criteria") or () if name.endswith(".jinja")]
    absent = [name for name in written if not (file.path.parent / name).is_file()]
    for name in absent:
        file.report(f"criteria: {name}: no such file{nearby(file.path.parent / name)}", "criteria")
    for n, keys in enumerate(spec.cases):
        reader = _CaseReader(keys, n, file, data="data" in options)
        criterion, expected = reader.criterion(known, sure=not absent), reader.expected()
        texts = reader.texts() if expected is not None else None
        if criterion and expected is not None and texts is not None:
            at = file.line("cases", n)
            name = " ".join((keys.name or "").split())
            cases.append(Case(name, at, criterion, expected, reader.items, reader.systems, texts, keys.undecided))
    if "criteria" in options and len(cases) == len(spec.cases):
        for name in set(known) - {case.criterion for case in cases}:
            file.report(f"criteria: no case is about {name}; write one, or leave it out", "criteria")
    return tuple(_name_cases(cases, file))


class _CaseReader:
    """One case on its way."""

    def __init__(self, keys: CaseKeys, place: int, file: YamlSource, *, data: bool) -> None:
        self.keys, self._place, self._file, self._data = keys, place, file, data
        self.items, self.systems = keys.item or (), keys.system or ()

    def _wrong(self, message: str, *loc: str) -> None:
        self._file.report(message, "cases", self._place, *loc)

    def criterion(self, known: list[str], *, sure: bool) -> str:
        """As the file's list or another case writes it; a file may be called by its stem.

        An unknown one is a mistake where all the known ones are `sure` to be there: else it may be meant by another.
        """
        name = self.keys.criterion
        if name is None:
            if len(known) == 1:
                return known[0]
            more = f"; criteria are {', '.join(known)}" if known else ""
            self._wrong(f"no criterion: write criterion: and a name or a .jinja file{more}")
            return ""
        match = name if name in known else next((candidate for candidate in known if name == Path(candidate).stem), "")
        if not match and not sure:
            return ""
        if not match and (near := get_close_matches(name, [Path(candidate).stem for candidate in known], n=1)):
            self._wrong(f"unknown criterion {name!r}; did you mean {near[0]!r}?", "criterion")
        elif not match:
            self._wrong(
                f"{unknown_name_message('criterion', name, known)}; the known ones stand in criteria:", "criterion"
            )
        return match

    def expected(self) -> Expected | None:
        """What is expected; None, and a complaint, where that is not exactly one thing."""
        keys = self.keys
        there = [name for name in _EXPECTS if getattr(keys, name) is not None]
        things = list(dict.fromkeys("order" if name in ("better", "worse") else name for name in there))
        if len(things) > 1:
            at = [f"{name} (line {self._file.line('cases', self._place, name)})" for name in there]
            self._wrong(
                f"a case expects one thing, and this one has {' and '.join(at)}; make {len(things)} cases of it"
            )
        elif not things:
            self._wrong("nothing is expected: write expect, better and worse, human, or drift")
        elif keys.margin is not None and things != ["order"]:
            self._wrong("margin goes with better and worse", "margin")
        elif things == ["order"]:
            return self._order(there)
        elif keys.expect is not None:
            if keys.expect.label is not None:
                return Label(keys.expect.label, 1.0 if keys.expect.share is None else keys.expect.share)
            return Band(keys.expect.min, keys.expect.max)
        elif keys.human is not None:
            limits: list[tuple[Coefficient, Any]] = [(name, getattr(keys.human, name)) for name in _COEFFICIENTS]
            return Agreement({name: least.min for name, least in limits if least is not None}, keys.human.level)
        elif keys.drift is not None:
            return Drift(keys.drift.max_shift, keys.drift.max_drop, keys.drift.max_flips)
        return None

    def _order(self, there: list[str]) -> Order | None:
        better, worse = self.keys.better, self.keys.worse
        if len(there) < 2:
            self._wrong(f"{there[0]} stands alone: write better and worse", there[0])
        elif isinstance(better, dict) != isinstance(worse, dict):
            self._wrong("better and worse are two systems of the data, or two texts such as {output: ...}", "better")
        elif isinstance(better, str) and better == worse:
            self._wrong(f"better and worse are both {better}", "worse")
        elif isinstance(better, str) and isinstance(worse, str):
            return Order(better, worse, self.keys.margin or 0.0)
        else:
            return Order("better", "worse", self.keys.margin or 0.0)
        return None

    def texts(self) -> tuple[Sample, ...] | None:
        """The texts that stand in the case, none where they are the data's; None, and a complaint, for a mistake."""
        keys = self.keys
        inline = [name for name in ("text", "better", "worse") if isinstance(getattr(keys, name), dict)]
        systems = [name for name in ("better", "worse") if isinstance(getattr(keys, name), str)]
        chosen = [name for name, choice in (("item", keys.item), ("system", keys.system)) if choice]
        if inline and systems:
            self._wrong(f"{systems[0]} names a system of the data; beside text, write {systems[0]}: {{output: ...}}")
        elif inline and chosen:
            self._wrong(f"{chosen[0]} chooses texts of the data, and {inline[0]} stands in the case: leave one out")
        elif {"better", "text"} <= {*inline} and keys.text and "output" in keys.text:
            self._wrong("output stands in better and worse; leave it out of text", "text", "output")
        elif inline and keys.human is not None:
            self._wrong("people's ratings are the data's; leave text out", "text")
        elif not inline and not self._data:
            self._wrong("no texts: write text: {output: ...} in the case, or data: with a file at the top")
        elif systems and keys.system:
            self._wrong("better and worse name the systems; leave system out", "system")
        elif inline:
            # one text, or two that share the columns of `text`
            sides = [name for name in inline if name != "text"]
            shared = self.keys.text or {}
            texts = [self._sample(name, shared | getattr(self.keys, name)) for name in sides or ["text"]]
            valid = tuple(sample for sample in texts if sample is not None)
            return valid if len(valid) == len(texts) else None
        else:
            return ()
        return None

    def _sample(self, system: str, columns: Mapping[str, Any]) -> Sample | None:
        if not isinstance(columns.get("output"), str):
            self._wrong(f"{system}: write output:, the text to judge", system)
            return None
        try:
            (sample,) = samples.load([{**columns, "item": "text", "system": system}])
        except DataError as error:
            self._wrong(f"{system}: {str(error).removeprefix('row 1: ')}", system)
            return None
        at = self._file.line("cases", self._place, system)
        return replace(sample, where=f"{self._file.path}:{at}")


def _name_cases(cases: list[Case], file: YamlSource) -> Iterator[Case]:
    """Each with a name that no other has, which is also the item of the texts in it."""
    first: dict[str, int] = {}
    for case in cases:
        if case.name in first and case.name:
            sentence = f"name: {one_line(case.name)!r} is already the case at line {first[case.name]}"
            file.complain_at(f"{sentence}; every case has a name of its own", case.line)
        first.setdefault(case.name, case.line)
    for case in cases:
        sentence, n = expectations.for_case(case).sentence(case, case.expected), 1
        name = case.name or sentence
        while not case.name and name in first:
            n += 1
            name = f"{sentence} ({n})"
        first[name] = case.line
        yield replace(case, name=name, texts=tuple(replace(text, item=name) for text in case.texts))
