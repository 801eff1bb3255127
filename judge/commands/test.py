"""`judge test`: read and check suites of cases, run them in turn, and decide their cases."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from judge.commands.compare.command import compare
from judge.commands.evaluate import Model, reject_unsupported, to_config
from judge.commands.finished_runs import without_seen_ratings
from judge.commands.options import RunOptions
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import blocking, public_api
from judge.config import (
    RankConfig,
    RunConfig,
    criterion_entries,
    load_config,
    run_options,
    script_of,
)
from judge.core.errors import ConfigError, CriterionError, DataError, JudgeError
from judge.core.format import one_line, plural
from judge.core.plugins import unknown_name_message
from judge.core.records import Sample
from judge.core.request_options import Judge
from judge.core.run_sync import run_sync
from judge.data import ledger
from judge.execution import budget
from judge.execution.budget import BudgetLedger
from judge.execution.progress import Progress
from judge.providers.recording import ReplayProvider
from judge.report.views.servers import server_notes
from judge.results.comparison import RunComparison
from judge.results.result import Result
from judge.run import judge_run, prompt_language
from judge.run.cost_estimate import estimate_cost
from judge.run.generate import Display, Outputs, generate, hand_over, plan_outputs
from judge.run.judge_models import open_judge
from judge.run.judge_run import judgments, require_all_recorded
from judge.run.pipeline import run_pipeline
from judge.run.preparation import PreparedRun, criterion_for, prepare
from judge.scoring import strategies
from judge.scoring.multi_criteria import make_renderers
from judge.suite import baseline as baselines
from judge.suite import load
from judge.suite.baseline import PAIRS, Baseline, compare_changed_texts, compare_with_baseline
from judge.suite.case import Case, Policy, Verdict, joined
from judge.suite.case_scores import columns
from judge.suite.evaluate import Outcome, Outcomes, evaluate_case, limits
from judge.suite.load import SuiteTexts
from judge.suite.schema import Suite
from judge.table import Table, split_rows

_SELECTION_KEYS = ("limit", "where")
"""Keys that select the data to read; unused afterwards."""


@dataclass(frozen=True, slots=True)
class SuiteOverrides:
    """Arguments that override the suites' files: options of a run, `model` among them, and criteria."""

    options: Mapping[str, Any]
    criteria: Sequence[str]
    out: Path | None

    @classmethod
    def of(
        cls,
        model: Model | None,
        options: Mapping[str, Any],
        criteria: Sequence[str] | None,
        out: str | Path | None,
    ) -> SuiteOverrides:
        """Check the arguments. Raises ConfigError for an option that no suite has, and for no criteria."""
        if criteria is not None and not criteria:
            raise ConfigError(
                "criteria: none: a suite needs criteria; judge run --criteria none computes metrics"
            )
        reject_unsupported(options, "test", "a suite")
        checked = load_config(given=options)
        named: dict[str, Any] = {name: getattr(checked, name) for name in checked.model_fields_set}
        if model is not None and model != []:
            named["model"] = model
        return cls(named, criteria or (), None if out is None else Path(out))

    @property
    def overridden_keys(self) -> Collection[str]:
        """Return the keys of a file that are overridden: a judge replaces the recording of a file, too."""
        return {*self.options, *(["replay"] if "model" in self.options else [])}

    def apply_to(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a file with the overrides. A recording replaces scripted replies of the file."""
        replaced = {*self.overridden_keys}
        if "replay" in self.options and any(
            script_of(judge.name) for judge in options.get("model", ())
        ):
            replaced.add("model")
        return {
            **{name: value for name, value in options.items() if name not in replaced},
            **self.options,
        }


def _prepare_run(
    suite: Suite,
    suite_texts: SuiteTexts,
    overrides: SuiteOverrides,
    language: str,
    *,
    pairwise: bool,
) -> PreparedRun:
    """Prepare the run about single texts, or about pairs of texts in both orders.

    Without a page, human ratings are left out, because they slow a run down; `with_ratings` puts them back.
    Raises JudgeError.
    """
    judged = suite_texts.judged[pairwise]
    scores = {} if pairwise else suite.options.get("score_columns", {})
    chosen = [each for each in suite_texts.criteria.values() if each.pairwise == pairwise]
    criteria = {each.name: each for each in chosen if each.name not in scores}
    out = (
        None if overrides.out is None else overrides.out / suite.name / (PAIRS if pairwise else "")
    )
    options = {name: value for name, value in suite.options.items() if name not in _SELECTION_KEYS}
    options |= {
        "criteria": list(criteria),
        "metrics": [],
        "score_columns": scores,
        "language": language,
        "out": out,
    }
    model = options.pop("model", None)
    parsed = to_config(RankConfig if pairwise else RunConfig, None, None, model, options)
    config, rows = parsed.config, list(judged.samples)
    prepared = prepare(
        config,
        rows if out else [replace(sample, human={}, ratings={}) for sample in rows],
        providers=parsed.providers,
        loaded_criteria=criteria,
        wanted_texts=judged.texts_by_criterion,
    )
    if config.replay is not None and not config.model and len(prepared.judges) > 1:
        both = " and ".join(prepared.judges)
        raise ConfigError(
            f"replay {config.replay}: replies of {both}: name the judge with --model (scripted/NAME if scripted)"
        )
    return prepared


def with_ratings(result: Result, suite_texts: SuiteTexts) -> Result:
    """Return the result with the ratings of the data, and without scores that no case needs."""
    table = result.table
    judged = suite_texts.judged[False]
    criteria = {column.name: column.criterion for column in table.columns}
    rows = (
        row
        for row in table.rows()
        if (texts := judged.texts_by_criterion.get(criteria[row.column])) is None
        or row.key in texts
    )
    return replace(result, table=Table(judged.samples, table.columns, *split_rows(rows)))


Paths = str | Path | Sequence[str | Path]
Write = Callable[[RunConfig, BudgetLedger | None], Outputs]
"""Generates the outputs of a suite's systems. Raises JudgeError."""


@dataclass(frozen=True, slots=True)
class PreparedSuite:
    """A suite that was read and checked; nothing has been sent or paid yet.

    `runs` are by whether they compare pairs of texts; one that no case needs is left out. `ledger` pays for both, and
    also for other suites if they share a budget. `together` is true if they share the deadline.
    """

    suite: Suite
    suite_texts: SuiteTexts
    runs: Mapping[bool, PreparedRun]
    baseline: Baseline
    ledger: BudgetLedger
    together: bool

    @property
    def judgments(self) -> int:
        """Count the judgments to make."""
        return judge_run.count_judgments(self.runs.values())

    @property
    def replies_kept_in(self) -> tuple[str, ...]:
        """Return what answers each run's paid replies again; "" if nothing does."""
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
    progress: Watch = None,
    **options: Unpack[RunOptions],
) -> Outcomes:
    """Run suites, files or folders of *.judge.yaml, and decide whether their cases pass.

    `model` and other options override the keys of the files; a model also overrides `replay`. A budget or deadline is
    for all suites together. `criteria` are names or files that replace criteria of the same name. `cases` selects cases
    whose name contains this text, or is among these names. `baseline` is the folder of runs to compare with, as
    DIR/NAME, or one such run; a suite that is new there is not compared, and its drift cases are errors. With
    `update_baseline` this run becomes the baseline if only changes from it fail, which then pass. `undecided` treats
    undecided cases as `pass` or `fail`. `out` saves the runs, each as DIR/NAME.

    A suite that cannot finish is an Outcome with `trouble`, and the others run. Mistakes in the arguments, files, data
    or baselines raise one JudgeError with all of them before anything is sent.
    """
    suites = prepare_suites(
        paths,
        model=model,
        criteria=criteria,
        cases=cases,
        baseline=baseline,
        update_baseline=update_baseline,
        undecided=undecided,
        **options,
    )
    async with displayed(progress) as counts:
        return await run_suites(suites, counts)


test = blocking(test_async)
test.__test__ = False  # type: ignore[attr-defined]  # pytest takes the name for a test of its own


def prepare_suites(
    paths: Paths,
    *,
    model: Model | None = None,
    baseline: str | Path | None = None,
    update_baseline: bool = False,
    undecided: Policy | None = None,
    cases: str | Collection[str] | None = None,
    criteria: str | Sequence[str] | None = None,
    out: str | Path | None = None,
    write: Write = lambda config, ledger: run_sync(lambda: generate(config, ledger=ledger)),
    **options: Any,
) -> list[PreparedSuite]:
    """Read suites and check everything possible before the first request. The arguments are those of `test`.

    `write` has systems that are prompts write their outputs. Raises one JudgeError with all mistakes.
    """
    overrides = SuiteOverrides.of(
        model, options, None if criteria is None else criterion_entries(criteria), out
    )
    errors: list[JudgeError] = []
    suites = []
    for path in load.find([paths] if isinstance(paths, str | Path) else paths):
        try:
            suites.append(load.load(path, overrides.overridden_keys))
        except JudgeError as error:
            errors.append(error)
    suites = _chosen(suites, cases, errors)
    if update_baseline and cases is not None:
        errors.append(
            ConfigError(
                "--update-baseline: with --cases, the baseline would lack the texts of other cases"
            )
        )
    if len(suites) > 1 and (baseline or out):
        for name, number in Counter(suite.name for suite in suites).items():
            if number > 1:
                where = ", ".join(str(suite.path) for suite in suites if suite.name == name)
                which = f"{plural(number, 'suite')} have the name {name} and would share a folder"
                errors.append(ConfigError(f"{which}: {where}; rename one"))
    limit = load_config(given={"budget": overrides.options.get("budget")}).budget
    ledger = None if limit is None else BudgetLedger(limit)
    folder = None if baseline is None else Path(baseline)
    checked = []
    for suite in suites:
        suite = replace(
            suite,
            options=overrides.apply_to(suite.options),
            cases=tuple(
                case.model_copy(
                    update={"undecided": undecided or case.undecided or suite.undecided}
                )
                for case in suite.cases
            ),
            undecided=undecided or suite.undecided,
        )
        try:
            checked.append(
                _prepare_suite(
                    suite,
                    overrides,
                    ledger,
                    folder,
                    update=update_baseline,
                    all_cases=cases is None,
                    write=write,
                )
            )
        except JudgeError as error:
            located = str(error).startswith(str(suite.path))
            errors.append(error if located else type(error)(f"{suite.path}: {error}"))
    if errors:
        raise errors[0] if len(errors) == 1 else ConfigError("\n".join(map(str, errors)))
    return checked


def _chosen(
    suites: Sequence[Suite], cases: str | Collection[str] | None, errors: list[JudgeError]
) -> list[Suite]:
    """Keep the cases whose name contains this text, or is among these; None keeps all."""
    if cases is None:
        return list(suites)

    def matches(case: Case) -> bool:
        return (
            cases.casefold() in case.name.casefold()
            if isinstance(cases, str)
            else case.name in cases
        )

    narrowed = [replace(suite, cases=tuple(filter(matches, suite.cases))) for suite in suites]
    if suites and not any(suite.cases for suite in narrowed):
        names = [one_line(case.name) for suite in suites for case in suite.cases]
        meant = cases if isinstance(cases, str) else ", ".join(cases)
        errors.append(ConfigError(f"--cases: {unknown_name_message('case', meant, names)}"))
    return [suite for suite in narrowed if suite.cases]


def _read_data(
    suite: Suite, overrides: SuiteOverrides, ledger: BudgetLedger | None, write: Write
) -> tuple[Suite, Sequence[Sample], Outputs | None]:
    """Return a suite whose data have outputs, and the data. Systems that are prompts write theirs first.

    The cases are checked on assumed outputs before anything is paid.

    Raises DataError if an output cannot be written: a case must not pass because a text is missing.
    """
    if not isinstance(suite.options.get("systems"), dict):
        return suite, load.read(suite), None
    known = run_options("run")
    config = RunConfig.load(
        given={k: v for k, v in suite.options.items() if k in known and k not in ("model", "out")}
    )
    _, assumed, _ = plan_outputs(config, None)
    load.collect_samples(
        suite, assumed, load.load_criteria(suite, load.language(suite, assumed), overrides.criteria)
    )
    outputs = write(config, ledger)
    if outputs.failures:
        first = outputs.failures[0]
        raise DataError(
            f"{plural(len(outputs.failures), 'output')} could not be generated; the first is of {first.system} for "
            f"item {first.item}: {first.message}"
        )
    suite = replace(suite, options={k: v for k, v in suite.options.items() if k != "systems"})
    return suite, outputs.samples, outputs


def _prepare_suite(
    suite: Suite,
    overrides: SuiteOverrides,
    ledger: BudgetLedger | None,
    baseline_folder: Path | None,
    *,
    update: bool,
    all_cases: bool,
    write: Write,
) -> PreparedSuite:
    """Read the data of a suite, prepare its runs and find its baseline. Raises JudgeError."""
    suite, data, outputs = _read_data(suite, overrides, ledger, write)
    language = load.language(suite, data)
    suite_texts = load.collect_samples(
        suite, data, load.load_criteria(suite, language, overrides.criteria)
    )
    judged = suite_texts.judged
    single = judged[False].samples
    if suite.options.get("language") is None:
        prompt_language.require_single_language(
            [sample for each in judged.values() for sample in each.samples]
        )
    runs = {
        pairwise: _prepare_run(suite, suite_texts, overrides, language, pairwise=pairwise)
        for pairwise, texts in judged.items()
        if texts.samples
    }
    if not runs:
        raise ConfigError(f"{suite.path}: no case has a criterion and a text to judge")
    first = next(iter(runs))
    runs[first] = hand_over(outputs, runs[first])
    known = [sample.key for sample in (*data, *single)] if all_cases else None
    return PreparedSuite(
        suite,
        suite_texts,
        runs,
        baseline=baselines.locate(
            suite, single, folder=baseline_folder, update=update, known=known
        ),
        ledger=ledger or BudgetLedger(next(iter(runs.values())).config.budget),
        together="deadline" in overrides.options,
    )


async def run_suites(
    suites: Sequence[PreparedSuite],
    progress: Progress | None = None,
    display: Display = lambda _: nullcontext(),
) -> Outcomes:
    """Run suites one after the other. Raises CancelledError if interrupted."""
    progress = progress if progress is not None else Progress()
    start = time.monotonic()
    outcomes = []
    for suite in suites:
        began = time.monotonic()
        since = start if suite.together else began
        results: dict[bool, Result] = {}
        try:
            for pairwise, prepared in suite.runs.items():
                if prepared.config.deadline is not None:
                    seconds_left = max(prepared.config.deadline - (time.monotonic() - since), 0.0)
                    prepared = prepared.with_deadline(seconds_left)
                with display(prepared.judges):
                    results[pairwise] = await run_pipeline(prepared, progress, suite.ledger)
            require_all_recorded(*results.values())
            outcome = _evaluate(suite, results)
        except JudgeError as error:
            outcome = Outcome(
                suite.suite, trouble="\n".join([str(error), *getattr(error, "__notes__", ())])
            )
        outcomes.append(replace(outcome, seconds=time.monotonic() - began))
    return Outcomes(outcomes)


def _evaluate(prepared: PreparedSuite, results: Mapping[bool, Result]) -> Outcome:
    """Evaluate the cases, and make this run the baseline if that is requested and nothing else failed."""
    suite, baseline, runs = prepared.suite, prepared.baseline, [*prepared.runs.values()]
    result, ranked = results.get(False), results.get(True)
    scored, before = result, baseline.before
    if result is not None:
        scored = result = with_ratings(result, prepared.suite_texts)
        if before is not None:
            result, before = without_seen_ratings([result, before])
    first = baseline.keep is not None and baseline.is_empty  # nothing can have drifted yet
    edited = [
        case
        for case in suite.cases
        if case.needs_baseline and baseline.changed and not _texts(prepared, case)
    ]
    cases = [
        case for case in suite.cases if not (case.needs_baseline and (first or case in edited))
    ]
    seed = runs[0].config.seed
    verdicts = [
        evaluate_case(
            case, _texts(prepared, case), result, before, ranked, failures=suite.limits, seed=seed
        )
        for case in cases
    ]
    size = _longest_prompt_tokens(runs) if suite.limits.tokens is not None else None
    cost, why = _uncached_price(runs) if suite.limits.cost is not None else (None, "")
    verdicts += limits(suite, result, ranked, tokens=size, cost=cost, unpriced=why)
    comparison: RunComparison | None = None
    notes = [note for run in results.values() for note in run.info.notices]
    if result is not None:
        notes += [*result.info.notes, *ledger.notes(result.table.samples)]
    notes += [note for run in results.values() for note in server_notes(run)]
    notes += baseline.notes
    if edited:
        notes.append(
            f"{plural(len(edited), 'case')} of {edited[0].kind} not judged: all the texts were edited."
        )
    if result is not None and not baseline.is_empty:
        has, had = columns(result), columns(baseline.edited or before or result)
        if had.keys() & has.keys() and before is not None:  # the unchanged texts
            comparison = compare(before, result, seed=seed)
            changed = baseline.changed
            verdicts += compare_with_baseline(
                suite, result, before, comparison.runs, changed=changed, seed=seed
            )
        if (
            had.keys() & has.keys() and baseline.edited is not None
        ):  # the systems whose texts changed
            comparison = compare(baseline.edited, result, seed=seed)
            verdicts += compare_changed_texts(suite, result, comparison.runs)
        if new := ", ".join(one_line(name) for name in has if name not in had):
            notes.append(f"New, and not in the baseline: {new}.")
    if baseline.keep is not None and scored is not None:
        verdicts, kept = _keep_baseline(baseline.keep, scored, cases, verdicts)
        notes.append(kept)
    notes = list(dict.fromkeys(notes))
    return Outcome(
        suite,
        tuple(verdicts),
        result,
        ranked,
        comparison,
        tuple(notes),
        warnings=tuple(baseline.warnings),
    )


def _keep_baseline(
    folder: Path, scored: Result, cases: Sequence[Case], verdicts: list[Verdict]
) -> tuple[list[Verdict], str]:
    """Save the run as the new baseline if nothing failed but changes from the old one.

    Return the verdicts, in which such changes are accepted, and a note.
    """
    drifting = {case.name for case in cases if case.needs_baseline}
    settled = [
        v.subject == "baseline" or (v.subject == "case" and v.name in drifting) for v in verdicts
    ]
    unmet = sum(not (v.met or settles) for v, settles in zip(verdicts, settled, strict=True))
    if unmet:
        failures = plural(unmet, "failure")
        return verdicts, f"Baseline not updated ({folder}): {failures} besides changes from it."
    scored.save(folder, pages=False, overwrite=True)
    accepted = "accepted as the new baseline"
    kept = [
        v if v.met else replace(v, met=True, reason=joined(v.reason, accepted)) for v in verdicts
    ]
    return kept, f"New baseline: {folder}."


def _texts(prepared: PreparedSuite, case: Case) -> list[tuple[str, str]]:
    """Return the texts of a case; only unchanged ones show whether a judge drifts."""
    texts = prepared.suite_texts.texts_by_case[case.name]
    return [
        text for text in texts if not (case.needs_baseline and text in prepared.baseline.changed)
    ]


def _longest_prompt_tokens(runs: Iterable[PreparedRun]) -> int:
    """Estimate the tokens of the longest prompt of any judgment; 0 without a judge."""
    longest = 0
    for prepared in runs:
        for name, provider in prepared.judges.items():
            renderers = make_renderers(
                [criterion_for(criterion, provider) for criterion in prepared.criteria]
            )
            strategy = strategies.strategies_for(prepared.settings[name], provider.decides)[0]
            for judgment in judgments(prepared, name):
                criterion = judgment.criterion
                try:
                    prompt = renderers[criterion.name].render(judgment.sample, judgment.rival)
                except CriterionError:
                    continue
                request = strategies.requests(prompt, criterion, strategy, prepared.settings[name])[
                    0
                ]
                longest = max(longest, budget.estimate_request(request))
    return longest


def _uncached_price(runs: Iterable[PreparedRun]) -> tuple[float | None, str]:
    """Return the price of all judgments in US dollars without a cache; None if it is unknown, and the reason.

    For a recording, this is the price at its model, as the plan would reach it.
    """
    total = 0.0
    for prepared in runs:
        config = prepared.config.model_copy(update={"cache": False, "replay": None})
        try:
            judges = dict(prepared.judges)
            for place, provider in judges.items():
                if isinstance(
                    provider, ReplayProvider
                ):  # the price of its model at the configured address
                    model = provider.model
                    named = [
                        judge
                        for judge in config.model
                        if judge.name == model or judge.name.endswith(f"/{model}")
                    ]
                    name = f"decisions/{model}" if provider.decides else model
                    judges[place] = open_judge(
                        config, named[0] if named else Judge(name=name), sends=False
                    )
            forecast = estimate_cost(replace(prepared, config=config, judges=judges, notes=()))
        except ConfigError as error:
            return None, str(error)
        if forecast.price is None:
            return None, next(
                judge.money.why for judge in forecast.judges if judge.money.price is None
            )
        total += forecast.price
    return total, ""
