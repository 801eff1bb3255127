"""`judge test`: read and check suites of cases, run them in turn, and decide their cases."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from judge.commands.compare.command import compare
from judge.commands.evaluate import Model, to_config
from judge.commands.finished_runs import without_seen_ratings
from judge.commands.options import RunOptions
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import blocking, public_api
from judge.commands.suite_data import (
    Write,
    check_before_writing,
    read_data,
    writes_outputs,
)
from judge.commands.suite_estimates import longest_prompt_tokens, uncached_price
from judge.commands.suite_folders import (
    Paths,
    is_single_file,
    last_run,
    run_folder,
    write_pages,
)
from judge.commands.suite_overrides import SuiteOverrides
from judge.config import RankConfig, RunConfig, criterion_entries, load_config
from judge.core.errors import ConfigError, JudgeError
from judge.core.format import one_line, plural
from judge.core.messages import Remark, command, option
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample
from judge.core.run_sync import run_sync
from judge.data import ledger
from judge.execution.budget import BudgetLedger
from judge.execution.progress import Progress
from judge.report.views.servers import server_notes
from judge.results.comparison import RunComparison
from judge.results.result import Result
from judge.run import judge_run, prompt_language
from judge.run.generate import Display, Outputs, generate, hand_over
from judge.run.judge_run import require_all_recorded
from judge.run.mapped_fields import require_known_fields
from judge.run.pipeline import run_pipeline
from judge.run.preparation import PreparedRun, prepare
from judge.suite import baseline as baselines
from judge.suite import load
from judge.suite.baseline import (
    PAIRS,
    Baseline,
    compare_changed_texts,
    compare_with_baseline,
)
from judge.suite.case import Case, Form, Policy, Verdict, joined
from judge.suite.case_scores import columns
from judge.suite.evaluate import Outcome, Outcomes, evaluate_case, limits
from judge.suite.gate_risk import GateRisk, JudgedCase
from judge.suite.load import JudgedTexts, SuiteTexts
from judge.suite.risk import SuiteRisk
from judge.suite.schema import Suite
from judge.table import Table, split_rows

_SELECTION_KEYS = ("limit", "where")
"""Keys that select the data to read; unused afterwards."""


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
    `with_ratings` puts them back. Raises JudgeError.
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


def with_ratings(result: Result, suite_texts: SuiteTexts) -> Result:
    """Return the result with the ratings of the data, and without scores that no case needs."""
    table = result.table
    texts = suite_texts.judged["texts"]
    criterion_of_column = {column.name: column.criterion for column in table.columns}
    needed_rows = []
    for row in table.rows():
        needed_texts = texts.texts_by_criterion.get(criterion_of_column[row.column])
        # None for a column of scores from elsewhere, which is kept whole.
        if needed_texts is None or row.key in needed_texts:
            needed_rows.append(row)
    scores_and_failures = split_rows(needed_rows)
    needed_table = Table(texts.samples, table.columns, *scores_and_failures)
    return replace(result, table=needed_table)


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


@public_api("test")
async def test_async(
    paths: Paths,
    *,
    model: Model | None = None,
    criteria: str | Sequence[str] | None = None,
    cases: str | Collection[str] | None = None,
    baseline: str | Path | None = None,
    update_baseline: bool = False,
    undecided: Policy | None = None,
    risk: bool = False,
    progress: Watch = None,
    **options: Unpack[RunOptions],
) -> Outcomes:
    """Run suites, files or folders of *.judge.yaml, and decide whether their cases pass.

    - `model` and other options override the keys of the files; a model also overrides `replay`. A
      budget or deadline is for all suites together.
    - `criteria`: names or files that replace criteria of the same name.
    - `cases`: a text that the names of cases contain, or a list of names.
    - `baseline`: a run to compare with, or a folder of runs, as DIR/NAME. Without one, drift cases
      are errors. With `update_baseline`, this run replaces it if only changes from it fail.
    - `undecided`: treat undecided cases as `pass` or `fail`.
    - `risk`: also estimate how often verdicts would change if nothing had changed.
    - `out`: the folder of the run of one suite's file, otherwise of each run as DIR/NAME.

    A suite that cannot finish has `trouble`. Raises JudgeError for wrong arguments or files.
    """
    suites = prepare_suites(
        paths,
        model=model,
        criteria=criteria,
        cases=cases,
        baseline=baseline,
        update_baseline=update_baseline,
        undecided=undecided,
        risk=risk,
        **options,
    )
    async with displayed(progress) as counts:
        return await run_suites(suites, counts)


test = blocking(test_async)
test.__test__ = False  # type: ignore[attr-defined]  # pytest takes the name for a test of its own


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


async def run_suites(
    suites: Sequence[PreparedSuite],
    progress: Progress | None = None,
    display: Display = lambda _: nullcontext(),
) -> Outcomes:
    """Run suites one after the other. Raises CancelledError if interrupted."""
    progress = progress if progress is not None else Progress()
    start_time = time.monotonic()
    outcomes = []
    for suite in suites:
        suite_start = time.monotonic()
        deadline_start = start_time if suite.together else suite_start
        results: dict[Form, Result] = {}
        try:
            for form, prepared in suite.runs.items():
                if prepared.config.deadline is not None:
                    elapsed = time.monotonic() - deadline_start
                    seconds_left = max(prepared.config.deadline - elapsed, 0.0)
                    prepared = prepared.with_deadline(seconds_left)
                with display(prepared.judges):
                    results[form] = await run_pipeline(prepared, progress, suite.ledger)
            require_all_recorded(*results.values(), cases_of=partial(_cases_of, suite))
            outcome = _evaluate(suite, results)
            if suite.folder is not None:
                write_pages(suite.folder, outcome, results)
        except JudgeError as error:
            # `run_pipeline` adds what is saved, and how to go on, as notes of the error.
            notes = getattr(error, "__notes__", ())
            message = "\n".join([str(error), *notes])
            outcome = Outcome(suite.suite, trouble=message)
        seconds = time.monotonic() - suite_start
        outcomes.append(replace(outcome, seconds=seconds))
    return Outcomes(outcomes)


def _cases_of(
    prepared: PreparedSuite, criterion: str, text: tuple[str, str]
) -> list[str]:
    """Return the names of the cases that need the score of a text by a criterion."""
    suite_texts = prepared.suite_texts
    names = []
    for case in prepared.suite.cases:
        has_criterion = suite_texts.criteria[case.criterion].name == criterion
        if has_criterion and text in suite_texts.texts_by_case[case.name]:
            names.append(case.name)
    return names


def _evaluate(prepared: PreparedSuite, results: Mapping[Form, Result]) -> Outcome:
    """Evaluate the cases, and update the baseline if requested.

    It is updated only if nothing but changes from it fails.
    """
    suite = prepared.suite
    baseline = prepared.baseline
    compared = _compared_results(prepared, results)
    judged, edited = _judge_cases(prepared, compared)
    verdicts = [judged_case.verdict for judged_case in judged]
    verdicts += _limit_verdicts(prepared, compared.result, compared.ranked)
    drift = _compare_with_baseline(suite, baseline, compared)
    verdicts += drift.verdicts
    notes = _notes(results, compared.result, baseline)
    if edited:
        edited_cases = plural(len(edited), "case")
        cases_not_judged = f"{edited_cases} of {edited[0].kind} not judged"
        notes.append(f"{cases_not_judged}: all the texts were edited.")
    notes += drift.notes
    if baseline.keep is not None and compared.scored is not None:
        drift_cases = {each.case.name for each in judged if each.case.needs_baseline}
        verdicts, note = _keep_baseline(
            baseline.keep, compared.scored, drift_cases, verdicts
        )
        notes.append(note)
    risk = None
    if prepared.risk:
        # The verdicts of the cases come first; those of limits and the baseline follow.
        other_verdicts = verdicts[len(judged) :]
        others_met = all(verdict.met for verdict in other_verdicts)
        risk = _estimate_risk(suite, judged, compared, others_met=others_met)
    each_note_once = dict.fromkeys(notes)
    earlier = "last run" if baseline.is_empty else "baseline"
    return Outcome(
        suite,
        tuple(verdicts),
        compared.result,
        compared.ranked,
        drift.comparison,
        tuple(each_note_once),
        warnings=tuple(baseline.warnings),
        earlier=earlier,
        risk=risk,
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """The results that cases are about, the baseline to compare with, and the seed of tests.

    `result` and `before` lack the ratings that were used to make a prompt; `scored` is `result`
    with all ratings.
    """

    scored: Result | None
    result: Result | None
    before: Result | None
    ranked: Result | None
    seed: int


def _compared_results(
    prepared: PreparedSuite, results: Mapping[Form, Result]
) -> _Compared:
    """Return the results of a suite's runs with their baseline."""
    before = prepared.baseline.before
    scored = results.get("texts")
    if scored is not None:
        scored = with_ratings(scored, prepared.suite_texts)
    result = scored
    if scored is not None and before is not None:
        # A rating that was used to make a run's prompt would favour that run.
        result, before = without_seen_ratings([scored, before])
    first_run = next(iter(prepared.runs.values()))
    return _Compared(
        scored,
        result,
        before,
        ranked=results.get("pairs"),
        seed=first_run.config.seed,
    )


def _judge_cases(
    prepared: PreparedSuite, compared: _Compared
) -> tuple[list[JudgedCase], list[Case]]:
    """Return the cases with their verdicts, and those without one: all their texts were edited."""
    baseline = prepared.baseline
    # Before there is a baseline, nothing can have drifted.
    is_first_run = baseline.keep is not None and baseline.is_empty
    judged: list[JudgedCase] = []
    edited: list[Case] = []
    for case in prepared.suite.cases:
        texts = _texts(prepared, case)
        if case.needs_baseline and baseline.changed and not texts:
            edited.append(case)
        elif not (case.needs_baseline and is_first_run):
            verdict = evaluate_case(
                case,
                texts,
                compared.result,
                compared.before,
                compared.ranked,
                earlier=baseline.edited or prepared.last,
                failures=prepared.suite.limits,
                seed=compared.seed,
            )
            judged.append(JudgedCase(case, texts, verdict))
    return judged, edited


def _estimate_risk(
    suite: Suite,
    judged: Sequence[JudgedCase],
    compared: _Compared,
    *,
    others_met: bool,
) -> SuiteRisk:
    """Return how often the verdicts would change if nothing had changed."""
    results: dict[Form, Result] = {}
    if compared.result is not None:
        results["texts"] = compared.result
    if compared.ranked is not None:
        results["pairs"] = compared.ranked
    gate_risk = GateRisk(
        judged,
        results,
        compared.before,
        suite.limits,
        others_met=others_met,
        seed=compared.seed,
    )
    return gate_risk.estimate()


def _limit_verdicts(
    prepared: PreparedSuite,
    result: Result | None,
    ranked: Result | None,
) -> Sequence[Verdict]:
    """Return the verdicts of the limits of the whole suite."""
    suite = prepared.suite
    runs = list(prepared.runs.values())
    tokens = None
    if suite.limits.tokens is not None:
        tokens = longest_prompt_tokens(runs)
    cost = None
    reason = ""
    if suite.limits.cost is not None:
        cost, reason = uncached_price(runs)
    return limits(suite, result, ranked, tokens=tokens, cost=cost, unpriced=reason)


def _notes(
    results: Mapping[Form, Result], result: Result | None, baseline: Baseline
) -> list[str]:
    """Return the notes of the runs, of their servers and of the baseline."""
    notes: list[str] = []
    for run in results.values():
        notes += run.info.notices
    if result is not None:
        samples = result.table.samples
        notes += [*result.info.notes, *ledger.notes(samples)]
    for run in results.values():
        notes += server_notes(run)
    return [*notes, *baseline.notes]


@dataclass(frozen=True, slots=True)
class _Drift:
    """The verdicts of a comparison with the baseline, and the comparison, if there is one."""

    verdicts: Sequence[Verdict] = ()
    comparison: RunComparison | None = None
    notes: Sequence[str] = ()


def _compare_with_baseline(
    suite: Suite, baseline: Baseline, compared: _Compared
) -> _Drift:
    """Compare the result with the baseline: unchanged texts, and systems whose texts changed."""
    result = compared.result
    earlier_result = compared.before
    seed = compared.seed
    if result is None or baseline.is_empty:
        return _Drift()
    new_columns = columns(result)
    old_columns = columns(baseline.edited or earlier_result or result)
    shared = old_columns.keys() & new_columns.keys()
    verdicts: list[Verdict] = []
    comparison: RunComparison | None = None
    if shared and earlier_result is not None:
        comparison = compare(earlier_result, result, seed=seed)
        verdicts += compare_with_baseline(
            suite,
            result,
            earlier_result,
            comparison.runs,
            changed=baseline.changed,
            seed=seed,
        )
    if shared and baseline.edited is not None:
        comparison = compare(baseline.edited, result, seed=seed)
        verdicts += compare_changed_texts(suite, result, comparison.runs)
    added_names = [name for name in new_columns if name not in old_columns]
    notes = []
    if added_names:
        added = ", ".join(map(one_line, added_names))
        notes.append(f"New, and not in the baseline: {added}.")
    if comparison is not None:
        notes += baselines.notes_on_settings(comparison.changes)
    return _Drift(verdicts, comparison, notes)


def _keep_baseline(
    folder: Path,
    scored: Result,
    drift_cases: Collection[str],
    verdicts: list[Verdict],
) -> tuple[list[Verdict], str]:
    """Save the run as the new baseline if nothing failed but changes from the old one.

    `drift_cases` are the names of the cases about such changes. Return the verdicts, in which the
    changes are accepted, and a note.
    """

    def is_about_drift(verdict: Verdict) -> bool:
        if verdict.subject == "baseline":
            return True
        return verdict.subject == "case" and verdict.name in drift_cases

    unmet = [verdict for verdict in verdicts if not verdict.met]
    n_others = sum(not is_about_drift(verdict) for verdict in unmet)
    if n_others:
        failures = plural(n_others, "failure")
        reason = f"{failures} besides changes from it"
        return verdicts, f"Baseline not updated ({folder}): {reason}."
    scored.save(folder, pages=False, overwrite=True)
    accepted_verdicts = []
    for verdict in verdicts:
        if not verdict.met:
            reason = joined(verdict.reason, "accepted as the new baseline")
            verdict = replace(verdict, met=True, reason=reason)
        accepted_verdicts.append(verdict)
    return accepted_verdicts, f"New baseline: {folder}."


def _texts(prepared: PreparedSuite, case: Case) -> list[tuple[str, str]]:
    """Return the texts of a case (item and system); of a case about drift, the unchanged ones."""
    texts = prepared.suite_texts.texts_by_case[case.name]
    if not case.needs_baseline:
        return list(texts)
    # Only unchanged texts show whether a judge drifts.
    return [text for text in texts if text not in prepared.baseline.changed]
