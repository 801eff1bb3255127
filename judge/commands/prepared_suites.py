"""Read and check suites of cases, and prepare their runs, before anything is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from judge.commands.evaluate import Model, to_config
from judge.commands.suite_data import (
    Write,
    check_before_writing,
    read_data,
    writes_outputs,
)
from judge.commands.suite_folders import Paths, is_single_file, last_run, run_folder
from judge.commands.suite_overrides import SuiteOverrides
from judge.config import RankConfig, RunConfig, criterion_entries, load_config
from judge.core.errors import ConfigError, JudgeError
from judge.core.format import one_line, plural
from judge.core.messages import Remark, command, option
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample
from judge.core.run_sync import run_sync
from judge.execution.budget import BudgetLedger
from judge.results.result import Result
from judge.run import judge_run, prompt_language
from judge.run.generate import Outputs, generate, hand_over
from judge.run.mapped_fields import require_known_fields
from judge.run.preparation import PreparedRun, prepare
from judge.suite import baseline as baselines
from judge.suite import load
from judge.suite.baseline import PAIRS, Baseline
from judge.suite.case import Case, Form, Policy
from judge.suite.load import JudgedTexts, SuiteTexts
from judge.suite.schema import Suite

_SELECTION_KEYS = ("limit", "where")
"""Keys that select the data to read; unused afterwards."""


@dataclass(frozen=True, slots=True)
class PreparedSuite:
    """A suite that was read and checked; nothing has been sent or paid yet.

    - `runs`: one for single texts and one for pairs, without those that no case needs.
    - `ledger`: the budget of both runs, and of other suites if they share it.
    - `together`: whether all suites share one deadline.
    - `folder`: where the runs are saved, if it is not None; `last`: the earlier run that it held.
    - `risk`: whether to estimate how often the verdicts change.
    """

    suite: Suite
    suite_texts: SuiteTexts
    runs: Mapping[Form, PreparedRun]
    baseline: Baseline
    ledger: BudgetLedger
    together: bool
    folder: Path | None
    last: Result | None
    risk: bool

    @property
    def judgments(self) -> int:
        """Count the judgments to make."""
        return judge_run.count_judgments(self.runs.values())

    @property
    def replies_kept_in(self) -> tuple[str, ...]:
        """Return for each run where its paid replies are kept for another run; "" for nowhere."""
        return tuple(run.config.replies_kept_in for run in self.runs.values())


def _write_outputs(config: RunConfig, ledger: BudgetLedger | None) -> Outputs:
    return run_sync(lambda: generate(config, ledger=ledger))


def prepare_suites(
    paths: Paths,
    *,
    model: Model | None = None,
    baseline: str | Path | None = None,
    update_baseline: bool = False,
    undecided: Policy | None = None,
    risk: bool = False,
    cases: str | Collection[str] | None = None,
    criteria: str | Sequence[str] | None = None,
    out: str | Path | None = None,
    write: Write = _write_outputs,
    **options: Any,
) -> list[PreparedSuite]:
    """Read suites and check everything possible before the first request.

    The arguments are those of `test`. `write` generates the outputs of systems that are prompts.
    Raises one JudgeError with all mistakes.
    """
    entries = None if criteria is None else criterion_entries(criteria)
    overrides = SuiteOverrides.of(model, options, entries, out)
    errors: list[JudgeError] = []
    read_suites = _read_suites(paths, overrides, errors)
    chosen_suites = _chosen(read_suites, cases, errors)
    if update_baseline and cases is not None:
        update = option("update_baseline", True)
        problem = "the baseline would lack the texts of other cases"
        errors.append(ConfigError(f"{update}: with {option('cases')}, {problem}"))
    if len(chosen_suites) > 1 and (baseline or out):
        errors += _equal_names(chosen_suites)
    arguments = _Arguments(
        overrides=overrides,
        ledger=_shared_ledger(overrides),
        baseline_folder=None if baseline is None else Path(baseline),
        update_baseline=update_baseline,
        all_cases=cases is None,
        is_alone=is_single_file(paths),
        risk=risk,
    )
    suites = [_apply_overrides(suite, overrides, undecided) for suite in chosen_suites]
    return _prepare_all(suites, arguments, write, errors)


def _shared_ledger(overrides: SuiteOverrides) -> BudgetLedger | None:
    """Return the budget of all suites together; None if each has its own, of its file."""
    budget = overrides.options.get("budget")
    limit = load_config(options={"budget": budget}).budget
    return None if limit is None else BudgetLedger(limit)


def _prepare_all(
    suites: Sequence[Suite],
    arguments: _Arguments,
    write: Write,
    errors: list[JudgeError],
) -> list[PreparedSuite]:
    """Prepare the suites. No output is paid for before all suites are checked.

    Raises one JudgeError with all mistakes and the `errors` so far.
    """
    prepare_texts = partial(_prepare_texts, arguments=arguments)
    prepared_by_path: dict[Path, PreparedSuite] = {}
    writing: list[Suite] = []
    for suite in suites:
        try:
            if writes_outputs(suite):
                # With assumed outputs, a missing key or baseline is an error, too.
                check_before_writing(suite, prepare_texts)
                writing.append(suite)
            else:
                prepared_by_path[suite.path] = _prepare_suite(suite, arguments, write)
        except JudgeError as error:
            errors.append(_with_path(error, suite.path))
    _raise_together(errors)
    for suite in writing:
        try:
            prepared_by_path[suite.path] = _prepare_suite(suite, arguments, write)
        except JudgeError as error:
            raise _with_path(error, suite.path) from error
    return [prepared_by_path[suite.path] for suite in suites]


def _with_path(error: JudgeError, path: Path) -> JudgeError:
    """Return the error with the path of the suite's file before its message."""
    # An error in the file itself already begins with its path.
    if str(error).startswith(str(path)):
        return error
    # A new error would lack the notes of this one, such as how to resume.
    error.args = (f"{path}: {error}", *error.args[1:])
    return error


def _raise_together(errors: Sequence[JudgeError]) -> None:
    """Raise one error with all these mistakes, if there are any."""
    # A single error keeps its class, which says who can solve the problem.
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ConfigError("\n".join(map(str, errors)))


def _read_suites(
    paths: Paths, overrides: SuiteOverrides, errors: list[JudgeError]
) -> list[Suite]:
    """Read all suites; add the errors of those that cannot be read."""
    suites = []
    path_list = [paths] if isinstance(paths, str | Path) else paths
    for path in load.find(path_list):
        try:
            suites.append(load.load(path, overrides.overridden_keys))
        except JudgeError as error:
            errors.append(error)
    return suites


def _equal_names(suites: Sequence[Suite]) -> Iterator[ConfigError]:
    """Yield an error for each name that several suites have."""
    for suite_name, count in Counter(suite.name for suite in suites).items():
        if count > 1:
            same_name = [suite for suite in suites if suite.name == suite_name]
            files = ", ".join(str(suite.path) for suite in same_name)
            suites_of_name = f"{plural(count, 'suite')} have the name {suite_name}"
            problem = f"{suites_of_name} and would share a folder"
            yield ConfigError(f"{problem}: {files}; rename one")


def _apply_overrides(
    suite: Suite, overrides: SuiteOverrides, undecided: Policy | None
) -> Suite:
    """Return the suite with the options and the policy of the arguments."""
    cases = []
    for case in suite.cases:
        policy = undecided or case.undecided or suite.undecided
        cases.append(case.model_copy(update={"undecided": policy}))
    options = overrides.apply_to(suite.options)
    policy_of_suite = undecided or suite.undecided
    return replace(
        suite, options=options, cases=tuple(cases), undecided=policy_of_suite
    )


def _chosen(
    suites: Sequence[Suite],
    cases: str | Collection[str] | None,
    errors: list[JudgeError],
) -> list[Suite]:
    """Keep the cases whose name contains this text, or is among these; None keeps all."""
    if cases is None:
        return list(suites)

    def matches(case: Case) -> bool:
        if isinstance(cases, str):
            return cases.casefold() in case.name.casefold()
        return case.name in cases

    narrowed = []
    for suite in suites:
        kept_cases = filter(matches, suite.cases)
        narrowed.append(replace(suite, cases=tuple(kept_cases)))
    if suites and not any(suite.cases for suite in narrowed):
        names = [one_line(case.name) for suite in suites for case in suite.cases]
        meant = cases if isinstance(cases, str) else ", ".join(cases)
        message = unknown_name_message("case", meant, names)
        error = ConfigError(f"{option('cases')}: {message}")
        errors.append(error)
    return [suite for suite in narrowed if suite.cases]


@dataclass(frozen=True, slots=True)
class _Arguments:
    """What a command says about every suite that it runs.

    - `ledger`: the budget that all suites share, None if each has its own.
    - `all_cases`: False if the user chose cases.
    - `is_alone`: whether the user named the file of one suite.
    - `risk`: whether to estimate how often the verdicts change.
    """

    overrides: SuiteOverrides
    ledger: BudgetLedger | None
    baseline_folder: Path | None
    update_baseline: bool
    all_cases: bool
    is_alone: bool
    risk: bool


def _prepare_suite(suite: Suite, arguments: _Arguments, write: Write) -> PreparedSuite:
    """Read the data of a suite, prepare its runs and find its baseline. Raises JudgeError."""
    data = read_data(suite, arguments.ledger, write)
    prepared = _prepare_texts(data.suite, data.samples, arguments)
    if suite.options.get("language") is None:
        samples: list[Sample] = []
        for texts in prepared.suite_texts.judged.values():
            samples += texts.samples
        prompt_language.require_single_language(samples)
    # One run reports the writing of the outputs, so that its cost is not counted twice.
    runs = {**prepared.runs}
    first_key = next(iter(runs))
    runs[first_key] = hand_over(data.outputs, runs[first_key])
    return replace(prepared, runs=runs)


def _prepare_texts(
    suite: Suite, rows: Sequence[Sample], arguments: _Arguments
) -> PreparedSuite:
    """Prepare the runs of a suite on the rows of its data, and find its baseline.

    Raises JudgeError.
    """
    overrides = arguments.overrides
    language = load.language(suite, rows)
    criteria = load.load_criteria(suite, language, overrides.criteria)
    suite_texts = load.collect_samples(suite, rows, criteria)
    # Cases that do not run may read the other fields.
    if arguments.all_cases:
        scored = load.scored_columns(suite.options)
        require_known_fields(suite.options.get("map", {}), [*criteria.values()], scored)
    folder = None
    if overrides.out is not None:
        folder = run_folder(overrides.out, suite.name, is_alone=arguments.is_alone)
    runs: dict[Form, PreparedRun] = {}
    for form, texts in suite_texts.judged.items():
        if not texts.samples:
            continue
        pairwise = form == "pairs"
        to_judge = load.criteria_of_run(
            suite, criteria, overrides.criteria, pairwise=pairwise
        )
        runs[form] = _prepare_run(
            suite,
            texts,
            to_judge,
            folder,
            language,
            pairwise=pairwise,
        )
    if not runs:
        raise ConfigError(f"{suite.path}: no case has a criterion and a text to judge")
    ledger_of_suite = arguments.ledger
    if ledger_of_suite is None:
        first_run = next(iter(runs.values()))
        ledger_of_suite = BudgetLedger(first_run.config.budget)
    single = suite_texts.judged["texts"].samples
    known_texts = None
    # If only some cases run, texts of the other cases are missing here, but they are not gone.
    if arguments.all_cases:
        known_texts = [sample.key for sample in (*rows, *single)]
    located_baseline = baselines.locate(
        suite,
        single,
        folder=arguments.baseline_folder,
        update=arguments.update_baseline,
        known_texts=known_texts,
    )
    return PreparedSuite(
        suite,
        suite_texts,
        runs,
        baseline=located_baseline,
        ledger=ledger_of_suite,
        together="deadline" in overrides.options,
        folder=folder,
        last=last_run(folder),
        risk=arguments.risk,
    )


def _prepare_run(
    suite: Suite,
    texts: JudgedTexts,
    criteria: Mapping[str, Criterion],
    folder: Path | None,
    language: str,
    *,
    pairwise: bool,
) -> PreparedRun:
    """Prepare the run about single texts, or about pairs of texts in both orders.

    `criteria` are by their entries in the run's configuration. `folder` keeps the run, if it is
    not None. Without a page, human ratings are left out, because they slow a run down;
    `suite_verdicts.with_ratings` puts them back. Raises JudgeError.
    """
    options = {
        **suite.options,
        "criteria": list(criteria),
        "metrics": [],
        "language": language,
        "out": folder,
    }
    if pairwise:
        # Columns of scores hold values of single texts.
        options |= {"score_columns": {}, "judge_columns": {}}
        options["out"] = None if folder is None else folder / PAIRS
    for selection_key in _SELECTION_KEYS:
        options.pop(selection_key, None)
    model = options.pop("model", None)
    config_class = RankConfig if pairwise else RunConfig
    parsed = to_config(config_class, None, None, model, options)
    config = parsed.config
    rows = list(texts.samples)
    if folder is None:
        rows = [replace(sample, human={}, ratings={}) for sample in rows]
    prepared = prepare(
        config,
        rows,
        providers=parsed.providers,
        loaded_criteria=criteria,
        wanted_texts=texts.texts_by_criterion,
    )
    if config.replay is not None and not config.model and len(prepared.judges) > 1:
        judges = " and ".join(prepared.judges)
        raise ConfigError(
            f"replay {config.replay}: replies of {judges}: name the judge with "
            f"{option('model')} (scripted/NAME if scripted)"
        )
    if folder is None:
        return prepared
    # The run's folder has no verdicts, so a report that is made of it later has none either.
    without_verdicts = Remark(
        f"The run of the suite {suite.path.name}; {command('test')} shows its verdicts."
    )
    return replace(prepared, notes=(*prepared.notes, without_verdicts))
