"""Load suites: their files, criteria and data, and the texts that each case is about.

`load` reads one file and reports all its mistakes at once, each with its line; `find` looks for
files. `load_criteria` and `collect_samples` check everything that depends on a criterion or on the
data.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

from judge import criteria as criteria_module
from judge import text
from judge.config import RunConfig, resolve_value, script_of
from judge.core.criterion_entry import is_file, keys_of, name_of
from judge.core.errors import ConfigError, CriterionError, DataError
from judge.core.format import one_line, text_name
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample, Scale
from judge.core.request_options import forbidden_command
from judge.criteria.render import lacking_inputs
from judge.criteria.reply_form import with_pass_mark
from judge.data import ledger, samples
from judge.data.rows import nearby
from judge.suite.case import Case, Form
from judge.suite.expectations import Expectation
from judge.suite.schema import OPTIONS, Spec, Suite
from judge.suite.yaml_source import Mistakes, YamlSource, unknown_key
from judge.table import Text

SUFFIX = ".judge.yaml"


def find(paths: Sequence[str | Path]) -> list[Path]:
    """Return the suites in files of any name, and every *.judge.yaml in folders, sorted.

    Hidden files and folders are left out. Raises ConfigError for a path that does not exist, and if
    there is no suite.
    """
    suite_by_file: dict[Path, Path] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise ConfigError(f"{path}: no such file or folder{nearby(path)}")
        files = [path] if path.is_file() else _visible_suites(path)
        if not files:
            raise ConfigError(
                f"{path}: no *{SUFFIX} in this folder; judge init --suite DATA writes one"
            )
        for file in files:
            # The same file may be named twice, or through a link.
            suite_by_file.setdefault(file.resolve(), file)
    if not suite_by_file:
        raise ConfigError(f"no suites: name a *{SUFFIX} or a folder that holds some")
    return list(suite_by_file.values())


def _visible_suites(folder: Path) -> list[Path]:
    files = sorted(folder.rglob(f"*{SUFFIX}"))
    return [file for file in files if not _is_hidden(file.relative_to(folder))]


def _is_hidden(path: Path) -> bool:
    """Return whether a file, or a folder on the way to it, is hidden."""
    return any(part.startswith(".") for part in path.parts)


def load(path: str | Path, set_elsewhere: Collection[str] = ()) -> Suite:
    """Load a suite.

    The files that it names must exist, except for options that are `set_elsewhere`. Its `options`
    are checked values of `RunConfig`, its `criteria` the ones that cases name. Raises ConfigError
    with a line `FILE:LINE: message` for each mistake.
    """
    suite_file = YamlSource(Path(path))
    written: dict[str, Any] = {}
    spec_values: dict[str, Any] = {}
    for key, value in suite_file.values.items():
        if key in Spec.model_fields:
            spec_values[key] = value
        elif key not in OPTIONS:
            suite_file.report(unknown_key(key), key)
        elif value is not None:
            # An option without a value (`model:`) keeps its default.
            written[key] = value
    config = _checked_config(written, suite_file)
    spec = suite_file.checked(Spec, spec_values)
    # An invalid file has no cases to look at.
    suite_file.raise_if_any()
    options = {key: getattr(config, key) for key in OPTIONS if key in written}
    cases = _located_cases(spec, options, suite_file)
    scored = scored_columns(options)
    judged = dict.fromkeys(
        case.criterion for case in cases if case.criterion not in scored
    )
    folder = suite_file.path.parent
    criteria = resolve_value("criteria", list(judged), folder)
    options["criteria"] = tuple(criteria)
    _check_files(options, set_elsewhere, suite_file)
    suite_file.raise_if_any()
    return Suite(
        path=suite_file.path,
        name=_suite_name(suite_file.path),
        options=options,
        cases=cases,
        limits=spec.limits,
        baseline=None if spec.baseline is None else folder / spec.baseline,
        undecided=spec.undecided,
        lines=suite_file.lines,
    )


def _suite_name(path: Path) -> str:
    """Return the name of a file without `.judge.yaml`, or without any other suffix."""
    if path.name.endswith(SUFFIX):
        return path.name.removesuffix(SUFFIX)
    return path.stem


def _checked_config(written: Mapping[str, Any], suite_file: YamlSource) -> RunConfig:
    """Return the configuration of a run in a suite's file; report mistakes to `suite_file`."""
    folder = suite_file.path.parent
    # Paths in a suite are relative to its folder.
    resolved = {
        option_name: resolve_value(option_name, value, folder)
        for option_name, value in written.items()
    }
    if "criteria" in written:
        # Cases name a criterion as the list does, so its path stays as written.
        resolved["criteria"] = written["criteria"]
    config = suite_file.checked(RunConfig, resolved)
    # A file's key command has to be allowed where judge runs (decision 74).
    option_name, problem = forbidden_command(written)
    if problem:
        suite_file.report(f"key_command: {problem}", option_name)
    return config


def _check_files(
    options: Mapping[str, Any],
    set_elsewhere: Collection[str],
    suite_file: YamlSource,
) -> None:
    """Report the missing files of options that are not `set_elsewhere`."""
    if "data" in options and "data" not in set_elsewhere:
        try:
            samples.files(options["data"])
        except DataError as error:
            suite_file.report(f"data: {error}", "data")
    needed: list[tuple[str, Path]] = []
    if "replay" in options:
        needed.append(("replay", options["replay"]))
    for judge in options.get("model", ()):
        script = script_of(judge.name)
        if script:
            needed.append(("model", script))
    for key, needed_file in needed:
        if key in set_elsewhere or needed_file.is_file():
            continue
        problem = f"no such file{nearby(needed_file)}"
        if needed_file.is_dir():
            problem = "is a folder, not a file"
        suite_file.report(f"{key}: {needed_file}: {problem}", key)


def _located_cases(
    spec: Spec,
    options: Mapping[str, Any],
    suite_file: YamlSource,
) -> tuple[Expectation, ...]:
    """Return the valid cases in order, each with its criterion and a unique name.

    Reports mistakes to `suite_file`.
    """
    listed = options.get("criteria") or ()
    in_cases = [case.criterion for case in spec.cases if case.criterion]
    judged = listed or in_cases
    known_criteria = list(dict.fromkeys([*judged, *scored_columns(options)]))
    folder = suite_file.path.parent
    listed_files = [path for path in listed if is_file(path)]
    absent_files = [path for path in listed_files if not (folder / path).is_file()]
    for path in absent_files:
        hint = nearby(folder / path)
        suite_file.report(f"criteria: {path}: no such file{hint}", "criteria")
    cases: list[Expectation] = []
    for number, case in enumerate(spec.cases):
        criterion = _criterion_of(
            case,
            known_criteria,
            suite_file,
            number,
            all_files_exist=not absent_files,
        )
        if not case.texts and "data" not in options:
            suite_file.report(
                "no texts: write text: {output: ...} in the case, or data: with a file at the top",
                "cases",
                number,
            )
        elif criterion:
            cases.append(_located(case, criterion, suite_file, number))
    # If a case was refused, it may be the one about the criterion.
    if "criteria" in options and len(cases) == len(spec.cases):
        without_case = set(options["criteria"]) - {case.criterion for case in cases}
        for criterion in without_case:
            suite_file.report(
                f"criteria: no case is about {criterion}; write one, or leave it out",
                "criteria",
            )
    named: list[Expectation] = []
    for case, case_name in zip(cases, _unique_names(cases, suite_file), strict=True):
        named.append(case.model_copy(update={"name": case_name}))
    return tuple(named)


def _located(
    case: Expectation, criterion: str, suite_file: YamlSource, number: int
) -> Expectation:
    """Return a case with its criterion, its line, and the lines of the texts inside it."""
    locations: dict[str, str] = {}
    for sample in case.texts:
        # The system of such a text is its key in the case: `text`, `better` or `worse`.
        line = suite_file.line("cases", number, sample.system)
        locations[sample.system] = f"{suite_file.path}:{line}"
    return case.located(criterion, suite_file.line("cases", number), locations)


def _unique_names(cases: Sequence[Expectation], suite_file: YamlSource) -> list[str]:
    """Return a unique name for each case: the written one, or the sentence of its expectation."""
    case_names = [" ".join(case.name.split()) for case in cases]
    for position, case in enumerate(cases):
        written_name = case_names[position]
        if not written_name:
            case_names[position] = _numbered(case.describe(), case_names)
            continue
        first_position = case_names.index(written_name)
        if first_position < position:
            first_line = cases[first_position].line
            message = f"name: {one_line(written_name)!r} is already the case at line {first_line}"
            suite_file.add(f"{message}; names must be unique", case.line)
    return case_names


def _numbered(sentence: str, case_names: Collection[str]) -> str:
    """Return a sentence with the first number that makes it unique: `sentence (2)`."""
    candidate = sentence
    number = 1
    while candidate in case_names:
        number += 1
        candidate = f"{sentence} ({number})"
    return candidate


def _criterion_of(
    case: Case,
    known_criteria: list[str],
    suite_file: YamlSource,
    number: int,
    *,
    all_files_exist: bool,
) -> str:
    """Return a case's criterion as the file's list or another case writes it.

    A file may be named by its stem. An unknown criterion is a mistake only if `all_files_exist`:
    else the case may mean a missing one.
    """
    written = case.criterion
    if not written:
        if len(known_criteria) == 1:
            return known_criteria[0]
        more = f"; criteria are {', '.join(known_criteria)}" if known_criteria else ""
        message = (
            f"no criterion: write criterion: and a name, a file or a sentence{more}"
        )
        suite_file.report(message, "cases", number)
        return ""
    if written in known_criteria:
        return written
    # The first of two files with one stem is meant, so it overwrites the others.
    criterion_by_stem = {
        name_of(candidate): candidate for candidate in reversed(known_criteria)
    }
    if written in criterion_by_stem:
        return criterion_by_stem[written]
    if all_files_exist:
        unknown = unknown_name_message("criterion", written, list(criterion_by_stem))
        suite_file.report(
            f"{unknown}; add it to criteria:", "cases", number, "criterion"
        )
    return ""


@dataclass(frozen=True, slots=True)
class JudgedTexts:
    """The texts of one run, and the texts of each criterion by its name."""

    samples: tuple[Sample, ...]
    texts_by_criterion: Mapping[str, frozenset[Text]]


@dataclass(frozen=True, slots=True)
class SuiteTexts:
    """The texts that a suite needs judged.

    `criteria` are by their names in the cases. `judged["texts"]` are scored alone, with the texts
    of the data first; `judged["pairs"]` are compared. Items of the data are called `CASE: ITEM`
    there, so that each case has its own comparisons. `texts_by_case` has the texts of each case,
    the texts of an item together.
    """

    criteria: Mapping[str, Criterion]
    judged: Mapping[Form, JudgedTexts]
    texts_by_case: Mapping[str, tuple[Text, ...]]


def scored_columns(options: Mapping[str, Any]) -> list[str]:
    """Return the columns of the data that have scores: no judge is asked about them."""
    score_columns = options.get("score_columns", ())
    judge_columns = options.get("judge_columns", ())
    return [*score_columns, *judge_columns]


def read(suite: Suite) -> list[Sample]:
    """Read a suite's data up to its `limit`; empty if it has none. Raises DataError."""
    options = suite.options
    if "data" not in options:
        return []
    selection = {key: options[key] for key in ("systems", "where") if key in options}
    rows = samples.stream(
        options["data"],
        mapping=options.get("map", {}),
        scores=scored_columns(options),
        # Texts that were judged elsewhere need not be in the data.
        texts_optional=bool(options.get("judge_columns")),
        **selection,
    )
    # islice refuses numbers above sys.maxsize, which a limit may be.
    limit = min(options.get("limit") or sys.maxsize, sys.maxsize)
    return list(islice(rows, limit))


def language(suite: Suite, data: Sequence[Sample]) -> str:
    """Return the language of the prompts: the suite's or, if it names none, the texts' language."""
    named = suite.options.get("language")
    if named:
        return str(named)
    in_cases = [sample for case in suite.cases for sample in case.texts]
    return text.language_of([*data, *in_cases])


def load_criteria(
    suite: Suite,
    language: str = "en",
    over: Sequence[str] = (),
) -> dict[str, Criterion]:
    """Load the criteria of a suite, by their names in the cases.

    `over` are names or files that replace the suite's criteria of the same name. Raises ConfigError
    with file and line for a criterion that cannot be loaded or does not fit the case, and for two
    files with the same name.
    """
    replacements = {name_of(name): name for name in over}
    in_cases = dict.fromkeys(case.criterion for case in suite.cases)
    stems = [name_of(criterion_name) for criterion_name in in_cases]
    for unused in replacements.keys() - set(stems):
        unknown = unknown_name_message("criterion", unused, stems)
        raise ConfigError(f"{suite.path}: {unknown}: no case is about it")
    loader = _CriterionLoader(suite, language, replacements)
    mistakes = Mistakes(suite.path)
    not_loadable: set[str] = set()
    for case in suite.cases:
        criterion_name = case.criterion
        if criterion_name in not_loadable:
            continue
        try:
            criterion = loader.load(criterion_name)
            if criterion.pairwise and not case.compares_texts:
                raise CriterionError(
                    f"{criterion_name} compares two texts: give the case better and worse, or a "
                    "criterion that scores one"
                )
        except CriterionError as error:
            if criterion_name in loader.loaded:
                mistakes.add(str(error), case.line)
            else:
                # One message about a criterion is enough for all its cases.
                not_loadable.add(criterion_name)
                mistakes.add(str(error), _line_of_criterion(suite, case))
    mistakes.raise_if_any()
    return loader.loaded


def _line_of_criterion(suite: Suite, case: Case) -> int:
    """Return the line of a criterion that is written in the list of criteria, else of the case."""
    has_keys = keys_of(case.criterion) is not None
    if has_keys and "criteria" in suite.lines:
        return suite.lines["criteria"]
    return case.line


def criteria_of_run(
    suite: Suite,
    loaded: Mapping[str, Criterion],
    over: Sequence[str] = (),
    *,
    pairwise: bool,
) -> dict[str, Criterion]:
    """Return the criteria that a run asks a judge about, by their entries in its configuration.

    `loaded` are by their names in the cases. A criterion in a sentence or keys is in no file, so
    its entry is these words; the entry of another criterion is its name.
    """
    replacements = {name_of(entry): entry for entry in over}
    scored = [] if pairwise else scored_columns(suite.options)
    criteria: dict[str, Criterion] = {}
    for name_in_cases, criterion in loaded.items():
        if criterion.pairwise == pairwise and criterion.name not in scored:
            written = replacements.get(name_of(name_in_cases), name_in_cases)
            entry = written if keys_of(written) else criterion.name
            criteria[entry] = criterion
    return criteria


@dataclass(slots=True)
class _CriterionLoader:
    """Loads the criteria of a suite, each once. `replacements` are by the stem of the replaced."""

    suite: Suite
    language: str
    replacements: Mapping[str, str]
    loaded: dict[str, Criterion] = field(default_factory=dict)
    first_by_name: dict[tuple[str, bool], Criterion] = field(default_factory=dict)

    def load(self, name: str) -> Criterion:
        """Return a criterion by its name in the cases. Raises CriterionError."""
        if name in self.loaded:
            return self.loaded[name]
        if name in scored_columns(self.suite.options):
            # Scores from elsewhere: their scale is unknown.
            any_number = Scale(("any number",), (-inf, inf))
            self.loaded[name] = Criterion(name, "", any_number)
            return self.loaded[name]
        (path_in_suite,) = resolve_value("criteria", [name], self.suite.path.parent)
        path = self.replacements.get(name_of(name)) or path_in_suite
        # `pairwise=None` accepts both kinds: one suite may score texts and compare them.
        criterion = criteria_module.load(path, language=self.language, pairwise=None)
        criterion = with_pass_mark(criterion, self.suite.options.get("pass_at"))
        self.loaded[name] = criterion
        # Two criteria may share a name only if one scores texts and the other compares them.
        key = (criterion.name, criterion.pairwise)
        namesake = self.first_by_name.setdefault(key, criterion)
        if (namesake.path, namesake.digest) != (criterion.path, criterion.digest):
            both = f"{namesake.path} and {criterion.path}"
            raise CriterionError(
                f"{both} have the same name, {criterion.name}: rename one"
            )
        return criterion


def collect_samples(
    suite: Suite,
    data: Sequence[Sample],
    criteria: Mapping[str, Criterion],
) -> SuiteTexts:
    """Collect the texts to judge, from the suite's data and from its cases.

    They lack the ratings that a criterion has seen. Raises ConfigError with a line `FILE:LINE: …`
    for each case with an unknown item or system, too few texts, a score or label outside its
    criterion's scale, or a text without the columns that the criterion reads.
    """
    used_by_criterion: dict[str, frozenset[str]] = defaultdict(frozenset)
    for criterion in criteria.values():
        used_by_criterion[criterion.name] |= criterion.used
    source = _SuiteData.of(list(ledger.withhold(data, used_by_criterion)))
    # One run scores single texts, another one compares pairs.
    runs: dict[Form, _TextsOfRun] = {
        "texts": _TextsOfRun(),
        "pairs": _TextsOfRun(),
    }
    texts_by_case: dict[str, tuple[Text, ...]] = {}
    mistakes = Mistakes(suite.path)
    for case in suite.cases:
        criterion = criteria[case.criterion]
        try:
            samples_of_case = _texts_of_case(case, criterion, source)
        except (ConfigError, CriterionError, DataError) as error:
            message = str(error).removeprefix(f"{suite.path}:{case.line}: ")
            hint = mapped_away(error, suite.options.get("map"))
            mistakes.add(f"{message}{hint}", case.line)
            continue
        if criterion.pairwise and not case.texts:
            # Each case has its own comparisons, even if two are about the same item.
            samples_of_case = [_for_case(case, sample) for sample in samples_of_case]
        form: Form = "pairs" if criterion.pairwise else "texts"
        runs[form].add(criterion.name, samples_of_case)
        texts_by_case[case.name] = tuple(sample.key for sample in samples_of_case)
    mistakes.raise_if_any()
    judged = {form: run.in_order(source) for form, run in runs.items()}
    return SuiteTexts(criteria, judged, texts_by_case)


def _for_case(case: Case, sample: Sample) -> Sample:
    """Return a text that is compared for this case only."""
    return replace(sample, item=f"{case.name}: {sample.item}")


@dataclass(slots=True)
class _TextsOfRun:
    """Collects the texts of one run, each once, and the texts of each criterion."""

    sample_by_text: dict[Text, Sample] = field(default_factory=dict)
    texts_by_criterion: dict[str, frozenset[Text]] = field(
        default_factory=lambda: defaultdict(frozenset)
    )

    def add(self, criterion_name: str, samples_of_case: Sequence[Sample]) -> None:
        """Add the texts of a case.

        One run judges the texts of all cases, but each criterion only the texts of its own.
        """
        for sample in samples_of_case:
            self.sample_by_text[sample.key] = sample
        keys = frozenset(sample.key for sample in samples_of_case)
        self.texts_by_criterion[criterion_name] |= keys

    def in_order(self, source: _SuiteData) -> JudgedTexts:
        """Return the texts in the order of the data."""
        ordered = sorted(self.sample_by_text.values(), key=source.position)
        return JudgedTexts(tuple(ordered), self.texts_by_criterion)


@dataclass(frozen=True, slots=True)
class _SuiteData:
    """The samples of a suite's data: by item, their systems, and their positions."""

    by_item: Mapping[str, Sequence[Sample]]
    systems: Collection[str]
    position_by_text: Mapping[Text, int]

    @classmethod
    def of(cls, data: Sequence[Sample]) -> _SuiteData:
        """Index the samples of the data."""
        by_item: dict[str, list[Sample]] = defaultdict(list)
        for sample in data:
            # A case may name `doc-1`, or only its generation `doc-1 (2)`.
            for item in dict.fromkeys((sample.source_item, sample.item)):
                by_item[item].append(sample)
        systems = list(dict.fromkeys(sample.system for sample in data))
        positions = {sample.key: position for position, sample in enumerate(data)}
        return cls(by_item, systems, positions)

    def position(self, sample: Sample) -> int:
        """Return a sample's position in the data; texts of cases come after them."""
        return self.position_by_text.get(sample.key, len(self.position_by_text))


def _texts_of_case(
    case: Case, criterion: Criterion, source: _SuiteData
) -> Sequence[Sample]:
    """Return the texts of a case. Raises ConfigError, CriterionError or DataError."""
    texts = case.texts or case.select(source.by_item, source.systems)
    case.check(criterion, texts)
    for sample in case.texts:
        lacking = lacking_inputs(criterion, sample)
        if lacking:
            raise ConfigError(
                f"{criterion.name} reads {lacking[0]}, which the text in the case lacks"
            )
    if criterion.template and not case.texts:
        criteria_module.check_samples(criterion, texts)
    if not criterion.pairwise:
        for sample in case.texts:
            if sample.key in source.position_by_text:
                clash = text_name(sample.item, sample.system)
                raise ConfigError(f"the data also has an {clash}; rename the case")
    return texts


def mapped_away(error: Exception, mapping: Mapping[str, str] | None) -> str:
    """Return a hint if an error's unknown variable is a column that was mapped to another name."""
    # A column that is mapped several times has the last of these names.
    name_by_column = {
        column: name for name, column in (mapping or {}).items() if column != name
    }
    for column, name in name_by_column.items():
        if f"unknown variable {column!r}" in str(error):
            return f"; {column} was mapped to {name}"
    return ""
