"""Load suites: their files, criteria and data, and the texts that each case is about.

`load` reads one file and reports all its mistakes at once, each with its line; `find` looks for files. What depends on
a criterion or on the data is checked by `load_criteria` and `collect_samples`.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from judge import criteria as criteria_module
from judge import text
from judge.config import RunConfig, resolve_value, script_of
from judge.core.criterion_entry import is_file, name_of
from judge.core.errors import ConfigError, CriterionError, DataError
from judge.core.format import one_line, text_name
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample, Scale
from judge.core.request_options import forbidden_command
from judge.criteria.render import lacking_inputs
from judge.data import ledger, samples
from judge.data.rows import nearby
from judge.suite.case import Case
from judge.suite.evidence import Text
from judge.suite.expectations import Expectation
from judge.suite.schema import OPTIONS, Mistakes, Spec, Suite, YamlSource, unknown_key

SUFFIX = ".judge.yaml"


def find(paths: Sequence[str | Path]) -> list[Path]:
    """Return the suites in files of any name, and every *.judge.yaml in folders, sorted, without hidden ones.

    Raises ConfigError for a path that does not exist, and if nothing is found.
    """
    suites: dict[Path, Path] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise ConfigError(f"{path}: no such file or folder{nearby(path)}")
        inside = [path] if path.is_file() else sorted(path.rglob(f"*{SUFFIX}"))
        visible = [
            file
            for file in inside
            if not any(part.startswith(".") for part in file.relative_to(path).parts)
        ]
        if not visible:
            raise ConfigError(
                f"{path}: no *{SUFFIX} in this folder; judge init --suite DATA writes one"
            )
        for file in visible:
            suites.setdefault(file.resolve(), file)
    if not suites:
        raise ConfigError(f"no suites: name a *{SUFFIX} or a folder that holds some")
    return list(suites.values())


def load(path: str | Path, given: Collection[str] = ()) -> Suite:
    """Load a suite. The files that it names must exist, except for options that are `given` elsewhere.

    Its `options` are checked values of `RunConfig`, its `criteria` those that cases name. Raises ConfigError with a
    line `FILE:LINE: message` for each mistake.
    """
    file = YamlSource(Path(path))
    for key in file.values.keys() - OPTIONS.keys() - Spec.model_fields.keys():
        file.report(unknown_key(key), key)
    folder = file.path.parent
    written = {
        key: value for key, value in file.values.items() if key in OPTIONS and value is not None
    }
    resolved = {key: resolve_value(key, value, folder) for key, value in written.items()}
    if "criteria" in written:  # as the cases name them
        resolved["criteria"] = written["criteria"]
    config = file.checked(RunConfig, resolved)
    key, problem = forbidden_command(written)
    if problem:
        file.report(f"key_command: {problem}", key)
    spec = file.checked(
        Spec, {key: value for key, value in file.values.items() if key in Spec.model_fields}
    )
    file.raise_if_any()
    options = {key: getattr(config, key) for key in OPTIONS if key in written}
    cases = _located_cases(spec, options, file)
    judged = [
        case.criterion for case in cases if case.criterion not in options.get("score_columns", ())
    ]
    options["criteria"] = tuple(resolve_value("criteria", [*dict.fromkeys(judged)], folder))
    if "data" in options and "data" not in given:
        try:
            samples.files(options["data"])
        except DataError as error:
            file.report(f"data: {error}", "data")
    named = [("replay", options["replay"])] if "replay" in options else []
    named += [
        ("model", script) for judge in options.get("model", ()) if (script := script_of(judge.name))
    ]
    for key, needed in named:
        if key not in given and not needed.is_file():
            problem = (
                "is a folder, not a file" if needed.is_dir() else f"no such file{nearby(needed)}"
            )
            file.report(f"{key}: {needed}: {problem}", key)
    file.raise_if_any()
    baseline = None if spec.baseline is None else folder / spec.baseline
    name = (
        file.path.name.removesuffix(SUFFIX) if file.path.name.endswith(SUFFIX) else file.path.stem
    )
    return Suite(file.path, name, options, cases, spec.limits, baseline, spec.undecided, file.lines)


def _located_cases(
    spec: Spec, options: Mapping[str, Any], file: YamlSource
) -> tuple[Expectation, ...]:
    """Return the valid cases in order, each with its criterion and a unique name; report the mistakes to `file`."""
    named = [case.criterion for case in spec.cases if case.criterion]
    known = list(
        dict.fromkeys([*(options.get("criteria") or named), *options.get("score_columns", ())])
    )
    written = [name for name in options.get("criteria") or () if is_file(name)]
    absent = [name for name in written if not (file.path.parent / name).is_file()]
    for name in absent:
        file.report(f"criteria: {name}: no such file{nearby(file.path.parent / name)}", "criteria")
    cases: list[Expectation] = []
    for n, case in enumerate(spec.cases):
        criterion = _criterion_of(case, known, file, n, sure=not absent)
        if not case.texts and "data" not in options:
            file.report(
                "no texts: write text: {output: ...} in the case, or data: with a file at the top",
                "cases",
                n,
            )
        elif criterion:
            line = file.line("cases", n)
            places = {
                text.system: f"{file.path}:{file.line('cases', n, text.system)}"
                for text in case.texts
            }
            cases.append(case.located(criterion, line, places))
    if "criteria" in options and len(cases) == len(spec.cases):
        for name in {*options["criteria"]} - {case.criterion for case in cases}:
            file.report(
                f"criteria: no case is about {name}; write one, or leave it out", "criteria"
            )
    # Each gets a unique name: its own, or its expectation.
    names = [" ".join(case.name.split()) for case in cases]
    for n, (case, name) in enumerate(zip(cases, names, strict=True)):
        if name and (first := names.index(name)) < n:
            message = f"name: {one_line(name)!r} is already the case at line {cases[first].line}"
            file.add(f"{message}; names must be unique", case.line)
        if not name:
            sentence = case.describe()
            numbered = (f"{sentence} ({number})" if number > 1 else sentence for number in count(1))
            names[n] = next(candidate for candidate in numbered if candidate not in names)
    return tuple(
        case.model_copy(update={"name": name}) for case, name in zip(cases, names, strict=True)
    )


def _criterion_of(case: Case, known: list[str], file: YamlSource, place: int, *, sure: bool) -> str:
    """Return a case's criterion as the file's list or another case writes it; a file may be named by its stem.

    An unknown one is a mistake only if all the known files exist (`sure`): else the case may mean a missing one.
    """
    name, stems = case.criterion, {name_of(candidate): candidate for candidate in reversed(known)}
    if not name:
        if len(known) == 1:
            return known[0]
        more = f"; criteria are {', '.join(known)}" if known else ""
        file.report(
            f"no criterion: write criterion: and a name, a file or a sentence{more}", "cases", place
        )
        return ""
    match = name if name in known else stems.get(name, "")
    if not match and sure:
        message = f"{unknown_name_message('criterion', name, list(stems))}; add it to criteria:"
        file.report(message, "cases", place, "criterion")
    return match


class AskedTexts(NamedTuple):
    """The texts of one run, and those of each criterion by its name."""

    samples: tuple[Sample, ...]
    wanted: Mapping[str, frozenset[Text]]


class SuiteTexts(NamedTuple):
    """The texts that a suite needs judged.

    `criteria` are by their names in the cases. `asked[False]` are scored alone, those of the data first; `asked[True]`
    are compared in pairs, and items of the data are called `CASE: ITEM` there, so that each case has its own
    comparisons. `about` has the texts of each case, those of an item together.
    """

    criteria: Mapping[str, Criterion]
    asked: Mapping[bool, AskedTexts]
    about: Mapping[str, tuple[Text, ...]]


def read(suite: Suite) -> list[Sample]:
    """Read a suite's data up to its `limit`; empty if it has none. Raises DataError."""
    options = suite.options
    if "data" not in options:
        return []
    named = {key: options[key] for key in ("systems", "where") if key in options}
    scores = options.get("score_columns", ())
    rows = samples.stream(options["data"], mapping=options.get("map", {}), scores=scores, **named)
    return list(islice(rows, min(options.get("limit") or sys.maxsize, sys.maxsize)))


def language(suite: Suite, data: Sequence[Sample]) -> str:
    """Return the language of the prompts: the suite's, else that of the texts."""
    rows = [*data, *(sample for case in suite.cases for sample in case.texts)]
    return str(suite.options.get("language") or text.language_of(rows))


def load_criteria(
    suite: Suite, language: str = "en", over: Sequence[str] = ()
) -> dict[str, Criterion]:
    """Load the criteria of a suite, by their names in the cases.

    `over` are names or files that replace the suite's criteria of the same name. Raises ConfigError with file and line
    for a criterion that cannot be loaded or does not fit the case, and for two files with the same name.
    """
    known = list(dict.fromkeys(case.criterion for case in suite.cases))
    instead = {name_of(name): name for name in over}
    stems = list(map(name_of, known))
    for name in instead.keys() - set(stems):
        raise ConfigError(
            f"{suite.path}: {unknown_name_message('criterion', name, stems)}: no case is about it"
        )
    loaded: dict[str, Criterion] = {}
    wrong = Mistakes(suite.path)
    lost: set[str] = set()
    first: dict[tuple[str, bool], Criterion] = {}
    for case in suite.cases:
        name = case.criterion
        if name in lost:
            continue
        try:
            if name in suite.options.get("score_columns", ()):
                loaded[name] = Criterion(name, "", Scale(("any number",), (-inf, inf)))
            elif name not in loaded:
                (own,) = resolve_value("criteria", [name], suite.path.parent)
                path = instead.get(name_of(name)) or own
                loaded[name] = criterion = criteria_module.load(
                    path, language=language, pairwise=None
                )
                # Two criteria may share a name only if one scores texts and the other compares them.
                namesake = first.setdefault((criterion.name, criterion.pairwise), criterion)
                if (namesake.path, namesake.digest) != (criterion.path, criterion.digest):
                    both = f"{namesake.path} and {criterion.path}"
                    raise CriterionError(f"{both} have the same name, {criterion.name}: rename one")
            if loaded[name].pairwise and not case.compares_texts:
                raise CriterionError(
                    f"{name} compares two texts: give the case better and worse, or a criterion that scores one"
                )
        except CriterionError as error:
            wrong.add(str(error), case.line)
            lost |= {name} - loaded.keys()
    wrong.raise_if_any()
    return loaded


def collect_samples(
    suite: Suite, data: Sequence[Sample], criteria: Mapping[str, Criterion]
) -> SuiteTexts:
    """Collect the texts to judge, from the suite's data and from its cases, without ratings that a criterion has seen.

    Raises ConfigError with a line `FILE:LINE: …` for each case with an unknown item or system, too few texts, a score
    or label outside its criterion's scale, or a text without the columns that the criterion reads.
    """
    seen: dict[str, frozenset[str]] = defaultdict(frozenset)
    for criterion in criteria.values():
        seen[criterion.name] |= criterion.used
    data = list(ledger.withhold(data, seen))
    by_item: dict[str, list[Sample]] = defaultdict(list)
    for sample in data:
        for item in dict.fromkeys(
            (sample.source_item, sample.item)
        ):  # `doc-1` and its generation `doc-1 (2)`
            by_item[item].append(sample)
    systems = {sample.system: None for sample in data}
    position = {sample.key: place for place, sample in enumerate(data)}
    texts_asked: dict[bool, dict[Text, Sample]] = {False: {}, True: {}}
    wanted: dict[bool, dict[str, frozenset[Text]]] = {
        side: defaultdict(frozenset) for side in texts_asked
    }
    about: dict[str, tuple[Text, ...]] = {}
    wrong = Mistakes(suite.path)
    for case in suite.cases:
        criterion = criteria[case.criterion]
        try:
            texts = case.texts or case.select(by_item, systems)
            case.check(criterion, texts)
            for sample in texts if case.texts else ():
                if lacking := lacking_inputs(criterion, sample):
                    raise ConfigError(
                        f"{criterion.name} reads {lacking[0]}, which the text in the case lacks"
                    )
            if criterion.template and not case.texts:
                criteria_module.check_samples(criterion, texts)
            if not criterion.pairwise and (
                clash := next((text for text in case.texts if text.key in position), None)
            ):
                raise ConfigError(
                    f"the data also has an {text_name(clash.item, clash.system)}; rename the case"
                )
        except (ConfigError, CriterionError, DataError) as error:
            at = f"{suite.path}:{case.line}: "
            wrong.add(
                f"{str(error).removeprefix(at)}{mapped_away(error, suite.options.get('map'))}",
                case.line,
            )
            continue
        if criterion.pairwise and not case.texts:
            texts = [replace(sample, item=f"{case.name}: {sample.item}") for sample in texts]
        about[case.name] = tuple(text.key for text in texts)
        texts_asked[criterion.pairwise].update(zip(about[case.name], texts, strict=True))
        wanted[criterion.pairwise][criterion.name] |= {*about[case.name]}
    wrong.raise_if_any()
    asked = {}
    for pairwise, texts_by_key in texts_asked.items():
        in_order = sorted(
            texts_by_key.values(), key=lambda sample: position.get(sample.key, len(position))
        )
        asked[pairwise] = AskedTexts(tuple(in_order), wanted[pairwise])
    return SuiteTexts(criteria, asked, about)


def mapped_away(error: Exception, mapping: Mapping[str, str] | None) -> str:
    """Return a hint if the unknown variable of an error is a column that was mapped to another name."""
    moved = {column: to for to, column in (mapping or {}).items() if column != to}
    return next(
        (
            f"; {c} was mapped to {to}"
            for c, to in moved.items()
            if f"unknown variable {c!r}" in str(error)
        ),
        "",
    )
