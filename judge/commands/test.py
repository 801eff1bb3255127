"""The runs of a suite: what is asked for its cases, as plans that were prepared.

`judge test`: suites of cases read and checked, run one after the other, and held against what they expect.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from judge import config
from judge.commands import judge_run, prompt_language
from judge.commands.compare import compare
from judge.commands.cost_estimate import longest_prompt_tokens, uncached_price
from judge.commands.evaluate import Model, Options
from judge.commands.judge_run import require_all_recorded
from judge.commands.pipeline import run_pipeline
from judge.commands.preparation import PairPlan, PreparedRun, WantedTexts, choose_pairs, prepare
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import async_public_api, public_api, run_sync
from judge.config import Judge, Plan
from judge.core.errors import ConfigError, JudgeError
from judge.core.messages import one_line, plural
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample
from judge.execution.budget import BudgetLedger
from judge.execution.progress import Progress
from judge.providers import Provider
from judge.providers.recording import RecordingFile
from judge.results.result import Result
from judge.suite import baseline_store, load, samples
from judge.suite.baseline_store import PAIRS, Baseline
from judge.suite.evaluate import compare_with_baseline, evaluate_case, limits
from judge.suite.evidence import columns
from judge.suite.records import Case, Outcome, Outcomes, Policy, Suite, Verdict
from judge.suite.samples import Key, SuiteTexts
from judge.table import Table

_SCRIPTED = "scripted/"
_READ = ("limit", "where")
"""Keys that say which of the data are read, and mean nothing once they are."""
_MEASURING = ("metrics", "set", "workers", "calibrate", "retry_failed")
"""Keys of a plan that mean nothing to a suite."""


@dataclass(frozen=True, slots=True)
class SuiteOverrides:
    """What was said beside the files: `options` of a plan, judges (some may be objects), criteria in others' place."""

    models: Sequence[str | Provider | Mapping[str, str]]
    options: Mapping[str, Any]
    criteria: Sequence[str]
    out: Path | None

    @classmethod
    def of(
        cls, model: Model | None, options: Mapping[str, Any], criteria: Sequence[str] | None, out: str | Path | None
    ) -> SuiteOverrides:
        """Raises ConfigError for an option that no suite has, and where there are to be no criteria."""
        if criteria is not None and not criteria:
            raise ConfigError("criteria: none: a suite holds a judge's scores against its cases; judge score measures")
        if wrong := [name for name in _MEASURING if options.get(name) is not None]:
            raise ConfigError(f"{wrong[0]}: a suite has no such option; judge run has")
        models: Any = list(model) if isinstance(model, list | tuple) else [] if model is None else [model]
        named = {"map" if name == "mapping" else name: value for name, value in options.items() if value is not None}
        return cls(models, named, criteria or (), None if out is None else Path(out))

    @property
    def overridden_keys(self) -> Collection[str]:
        """The keys of a file that do not count."""
        return {*self.options, *(("model", "replay") if self.models else ())}

    def apply_to(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a file with those that go before them.

        A judge is asked where the file has a recording, and a recording where the file has scripted replies.
        """
        kept = {name: value for name, value in options.items() if name not in self.overridden_keys}
        if "replay" in self.options and any(one.name.startswith(_SCRIPTED) for one in kept.get("model", ())):
            del kept["model"]
        named = [one for one in self.models if isinstance(one, str | Mapping)]
        return {**kept, **self.options, **({"model": named} if self.models else {})}

    def judges(self, made: Plan) -> list[Judge | Provider] | None:
        """The judges of a plan in which those with a name stand, as `prepare` takes them."""
        names = iter(made.model)
        found = [next(names) if isinstance(one, str | Mapping) else one for one in self.models]
        return found if self.models else None


def pointwise_run(suite: Suite, asked: SuiteTexts, given: SuiteOverrides, language: str) -> PreparedRun | None:
    """The run about single texts, None where no case is about any.

    People's ratings stay outside, for they cost a run's page time: `restored` puts them back.
    """
    if not asked.texts:
        return None
    criteria = _by_name(asked.criteria.values(), pairwise=False)
    out = None if given.out is None else given.out / suite.name
    made = config.plan(given=_options(suite, criteria, language, out))
    rows = list(asked.texts) if out else [replace(one, human={}, ratings={}) for one in asked.texts]
    return _prepared(made, rows, criteria, given, asked.wanted)


def pairwise_run(suite: Suite, asked: SuiteTexts, given: SuiteOverrides, language: str) -> PreparedRun | None:
    """The run about two texts at a time, in both orders; None where no case compares any."""
    if not asked.pairs:
        return None
    criteria = _by_name(asked.criteria.values(), pairwise=True)
    out = None if given.out is None else given.out / suite.name / PAIRS
    made = config.rank_plan(given=_options(suite, criteria, language, out) | {"merge_criteria": False})
    names = {case.name: asked.criteria[case.criterion].name for case in suite.cases}
    wanted: dict[str, set[Key]] = {}
    for case, pair_samples in asked.pairs.items():
        wanted.setdefault(names[case], set()).update((one.item, one.system) for one in pair_samples)
    rows = [sample for samples in asked.pairs.values() for sample in samples]
    prepared = _prepared(made, rows, criteria, given, wanted)
    prepared.pairs = _pairs(asked.pairs.values())
    return prepared


def with_ratings(result: Result, prepared: PreparedRun, asked: SuiteTexts) -> Result:
    """The result with the texts as they are in the data, of which a heuristic has only measured what was wanted."""
    table = result.table
    scores, failures = table.scores, table.failures
    if prepared.baseline:
        criteria = {column.name: column.criterion for column in table.columns}
        scores = tuple(row for row in scores if (row.item, row.system) in asked.wanted[criteria[row.column]])
        failures = tuple(row for row in failures if (row.item, row.system) in asked.wanted[criteria[row.column]])
    return replace(result, table=Table(asked.texts, table.columns, scores, failures))


def _by_name(criteria: Iterable[Criterion], *, pairwise: bool) -> dict[str, Criterion]:
    return {one.name: one for one in criteria if one.pairwise == pairwise}


def _options(suite: Suite, criteria: Mapping[str, Criterion], language: str, out: Path | None) -> dict[str, Any]:
    """What a plan is made of. The data are read, and no more than is wanted of them."""
    kept = {name: value for name, value in suite.options.items() if name not in _READ}
    return {**kept, "criteria": list(criteria), "metrics": [], "language": language, "out": out}


def _prepared(
    made: Plan, rows: list[Sample], criteria: Mapping[str, Criterion], given: SuiteOverrides, wanted: WantedTexts
) -> PreparedRun:
    """A run on these texts. Raises JudgeError."""
    prepared = prepare(made, rows, providers=given.judges(made), own=criteria, wanted=wanted)
    if made.replay is not None and not made.model and len(prepared.judges) > 1:
        both = " and ".join(prepared.judges)
        raise ConfigError(f"replay {made.replay}: it holds replies of {both}: name one with model: or --model, or both")
    if prepared.rest is not None:
        raise ConfigError(f"a suite is about {len(prepared.samples):,} texts at the most: give it a limit:")
    return prepared


def _pairs(cases: Iterable[Sequence[Sample]]) -> PairPlan:
    """The pairs of every case's samples, in both orders."""
    every = [choose_pairs(samples, orders=2, budget=None, seed=0) for samples in cases]
    number = sum(one.chosen for one in every)
    compared = tuple(pair for one in every for pair in one.compared)
    return PairPlan(compared, tuple(pair for one in every for pair in one.equal), number, number, 0)


Paths = str | Path | Sequence[str | Path]
Shown = Callable[[PreparedRun], AbstractContextManager[None]]
"""What shows a run while it goes."""
_MOVES = ("drift", "baseline")
"""The kinds of verdicts that a new baseline settles."""


@dataclass(frozen=True, slots=True)
class PreparedSuite:
    """A suite that was read and checked; nothing of it has been sent or paid yet.

    `scoring` asks about single texts, `comparing` about two, each None where no case does. `ledger` pays for both, and
    for those of other suites where the budget is of all together; `together` says that the deadline is.
    """

    suite: Suite
    asked: SuiteTexts
    scoring: PreparedRun | None
    comparing: PreparedRun | None
    baseline: Baseline
    ledger: BudgetLedger
    together: bool

    @property
    def runs(self) -> list[PreparedRun]:
        """What there is to run."""
        return [one for one in (self.scoring, self.comparing) if one is not None]

    @property
    def judgments(self) -> int:
        """How many judgments there are to make."""
        return sum(len(judge_run.judgments(one, name)) for one in self.runs for name in one.judges)

    @property
    def cached(self) -> bool:
        """Whether replies are kept."""
        return all(one.plan.cache is not False for one in self.runs)


class SuiteOptions(Options, total=False):
    """What `test` takes beside the suites."""

    model: Model
    criteria: str | Sequence[str]
    progress: Watch
    cases: str | Collection[str]
    baseline: str | Path
    update_baseline: bool
    undecided: Policy


@public_api(SuiteOptions)
def test(paths: Paths, **options: Unpack[SuiteOptions]) -> Outcomes:
    """Run suites, files or folders of *.judge.yaml, and say of every case whether the scores are as it expects.

    `model` and the keys of `config.Plan` that a suite may have stand in the place of what the files say: a model also
    in that of a file's `replay`. A budget or a deadline among them is for all suites together. `criteria` are names or
    files in the place of the suites' criteria of the same name. Of `cases` those run in whose name this text stands, or
    whose name is among these. `baseline` has by suite, as DIR/NAME, the run that this one is held against, or is itself
    such a run. A suite that is new there is not held against anything; its cases of drift are errors. With
    `update_baseline` this run becomes it, where all is met but what moved, which then counts as met. `undecided` is
    what a case counts as that the numbers leave open. In `out` the runs are kept, each as DIR/NAME.

    A suite that cannot be run to its end is an Outcome with `trouble`, and the others run. What is wrong with the
    arguments, the files, the data or the baseline of any suite raises a JudgeError with all of it, before anything is
    sent.
    """
    return run_sync(lambda: test_async(paths, **options))


test.__test__ = False  # type: ignore[attr-defined]  # pytest takes the name for a test of its own


@async_public_api(SuiteOptions)
async def test_async(paths: Paths, **options: Unpack[SuiteOptions]) -> Outcomes:
    """`test` for callers with an event loop of their own."""
    progress = options.pop("progress", None)
    async with displayed(progress) as counts:
        return await run_suites(prepare_suites(paths, **options), counts)


# Reading and checking


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
    **options: Any,
) -> list[PreparedSuite]:
    """Read and check suites, all that can be checked before the first request. The arguments are those of `test`.

    Raises a JudgeError that says all that is wrong with any of them.
    """
    given = SuiteOverrides.of(model, options, config.split(criteria) if isinstance(criteria, str) else criteria, out)
    wrong: list[JudgeError] = []
    found = _chosen(_loaded(paths, given, wrong), cases, wrong)
    if update_baseline and cases is not None:
        wrong.append(ConfigError("--update-baseline: with --cases the baseline would lack the texts of other cases"))
    if len(found) > 1 and (baseline or out):
        wrong += _twins(found)
    limit = config.plan(given={"budget": given.options.get("budget")}).budget
    ledger = None if limit is None else BudgetLedger(limit)
    folder = None if baseline is None else Path(baseline)
    checked = []
    for suite in found:
        policy = [replace(case, undecided=undecided or case.undecided or suite.undecided) for case in suite.cases]
        suite = replace(
            suite,
            options=given.apply_to(suite.options),
            cases=tuple(policy),
            undecided=undecided or suite.undecided,
        )
        try:
            data = samples.read(suite)
            asked, runs = _prepared_of_test(suite, given, data)
            known = None if cases is not None else [(one.item, one.system) for one in (*data, *asked.texts)]
            held = baseline_store.locate(suite, asked.texts, folder=folder, update=update_baseline, known=known)
            own = ledger or BudgetLedger(next(one.plan.budget for one in runs if one is not None))
            checked.append(PreparedSuite(suite, asked, *runs, held, own, "deadline" in given.options))
        except JudgeError as error:
            wrong.append(_named(error, suite.path))
    if wrong:
        raise wrong[0] if len(wrong) == 1 else ConfigError("\n".join(map(str, wrong)))
    return checked


def _named(error: JudgeError, path: Path) -> JudgeError:
    """The error, beginning with the suite's file."""
    return error if str(error).startswith(str(path)) else type(error)(f"{path}: {error}")


def _loaded(paths: Paths, given: SuiteOverrides, wrong: list[JudgeError]) -> list[Suite]:
    found = []
    for path in load.find([paths] if isinstance(paths, str | Path) else paths):
        try:
            found.append(load.load(path, given.overridden_keys))
        except JudgeError as error:
            wrong.append(error)
    return found


def _chosen(suites: Sequence[Suite], cases: str | Collection[str] | None, wrong: list[JudgeError]) -> list[Suite]:
    """The suites with the cases in whose name this text stands, or with these, where either is given."""
    if cases is None:
        return list(suites)
    kept = [replace(suite, cases=tuple(one for one in suite.cases if _meant(one, cases))) for suite in suites]
    if suites and not any(suite.cases for suite in kept):
        names = [one_line(case.name) for suite in suites for case in suite.cases]
        meant = cases if isinstance(cases, str) else ", ".join(cases)
        wrong.append(ConfigError(f"--cases: {unknown_name_message('case', meant, names)}"))
    return [suite for suite in kept if suite.cases]


def _meant(case: Case, cases: str | Collection[str]) -> bool:
    return cases.casefold() in case.name.casefold() if isinstance(cases, str) else case.name in cases


def _twins(suites: Sequence[Suite]) -> Iterator[ConfigError]:
    for name, number in Counter(suite.name for suite in suites).items():
        if number > 1:
            where = ", ".join(str(suite.path) for suite in suites if suite.name == name)
            yield ConfigError(
                f"{plural(number, 'suite')} are called {name} and would share a folder: {where}; rename one"
            )


def _prepared_of_test(
    suite: Suite, given: SuiteOverrides, data: Sequence[Sample]
) -> tuple[SuiteTexts, tuple[PreparedRun | None, PreparedRun | None]]:
    """What a suite asks, and its two runs."""
    language = samples.language(suite, data)
    asked = samples.collect_samples(suite, data, samples.load_criteria(suite, language, given.criteria))
    if suite.options.get("language") is None:
        prompt_language.require_single_language(
            [*asked.texts, *(one for several in asked.pairs.values() for one in several)]
        )
    return asked, (pointwise_run(suite, asked, given, language), pairwise_run(suite, asked, given, language))


# Running


async def run_suites(
    suites: Sequence[PreparedSuite], progress: Progress | None = None, shown: Shown = lambda _: nullcontext()
) -> Outcomes:
    """Run suites one after the other. Raises CancelledError where it is interrupted."""
    progress = progress if progress is not None else Progress()
    start = time.monotonic()
    found = [await _outcome(one, progress, shown, start) for one in suites]
    if found and not any(one.trouble for one in found):
        found[-1] = replace(found[-1], notes=(*found[-1].notes, *_kept_of_others(suites)))
    return Outcomes(found)


def _kept_of_others(suites: Sequence[PreparedSuite]) -> Iterator[str]:
    """What recordings hold besides what these suites asked, such as prompts as they were before a change."""
    taken: dict[Path, set[int]] = {}
    for run_of in (each for one in suites for each in one.runs):
        if run_of.plan.record is not None and run_of.recording is not None:
            taken.setdefault(run_of.plan.record, set()).update(run_of.recording.taken)
    for path, calls in taken.items():
        with RecordingFile([path]) as whole:
            if others := whole.unused_count(calls):
                yield (
                    f"{path}: {others:,} of {plural(len(whole), 'prompt')} not asked in this run, and kept; record into "
                    "another file to be rid of them."
                )


async def _outcome(one: PreparedSuite, progress: Progress, shown: Shown, start: float) -> Outcome:
    """One suite, of several that began at `start`."""
    began = time.monotonic()
    found: list[Result | None] = []
    try:
        for prepared in (one.scoring, one.comparing):
            since = start if one.together else began
            found.append(None if prepared is None else await _run(prepared, one.ledger, progress, shown, since))
        require_all_recorded(*found)
        return replace(_judged(one, *found), seconds=time.monotonic() - began)
    except JudgeError as error:
        said = "\n".join([str(error), *getattr(error, "__notes__", ())])
        return Outcome(one.suite, trouble=said, seconds=time.monotonic() - began)


async def _run(prepared: PreparedRun, ledger: BudgetLedger, progress: Progress, shown: Shown, since: float) -> Result:
    """What a run brings. Its deadline counts from `since`."""
    made = prepared.plan
    if made.deadline is not None:
        left = max(made.deadline - (time.monotonic() - since), 0.0)
        prepared.plan = made.model_copy(update={"deadline": left})
    with shown(prepared):
        return await run_pipeline(prepared, progress, ledger)


def _judged(one: PreparedSuite, result: Result | None, ranked: Result | None) -> Outcome:
    """The verdicts on what was run, and the new baseline where one is wanted and nothing is against it."""
    suite, held = one.suite, one.baseline
    if result is not None and one.scoring is not None:
        result = with_ratings(result, one.scoring, one.asked)
    first = held.keep is not None and held.before is None  # of which nothing can have drifted yet
    cases = [case for case in suite.cases if not (first and case.kind == "drift")]
    seed = one.runs[0].plan.seed
    found = [
        evaluate_case(case, one.asked.about[case.name], result, held.before, ranked, failures=suite.limits, seed=seed)
        for case in cases
    ]
    found += _limits(one, result, ranked)
    comparison = None
    notes = [note for of in (result, ranked) if of is not None for note in of.info["notices"]]
    notes += [*(result.info["notes"] if result is not None else ()), *held.notes]
    if result is not None and held.before is not None:
        had, has = columns(held.before), columns(result)
        if new := ", ".join(one_line(name) for name in has if name not in had):
            notes.append(f"Not in the baseline, and new: nothing to compare {new} with.")
        if had.keys() & has.keys():
            comparison = compare(held.before, result, seed=seed)
            found += compare_with_baseline(result, held.before, suite, runs=comparison.runs, seed=seed)
    if held.keep is not None and result is not None:
        found, said = _kept(result, held.keep, found)
        notes.append(said)
    warnings = (*_unasked(one, result, ranked), *held.warnings)
    return Outcome(suite, tuple(found), result, ranked, comparison, tuple(dict.fromkeys(notes)), warnings=warnings)


def _unasked(one: PreparedSuite, *results: Result | None) -> tuple[str, ...]:
    """What has to be said of a recording for which not every judgment was asked anew."""
    if not any(run.plan.record for run in one.runs):
        return ()
    cached = sum(of["requests"]["cached"] for each in results if each for of in each.info["judges"].values())
    if not cached:
        return ()
    nothing = "nothing was asked, and " if cached >= one.judgments else ""
    return (
        f"{cached:,} of {plural(one.judgments, 'judgment')} recorded from the cache: {nothing}a model that changed "
        "behind its name would not be seen (--no-cache asks anew).",
    )


def _limits(one: PreparedSuite, result: Result | None, ranked: Result | None) -> list[Verdict]:
    wanted = one.suite.limits
    size = longest_prompt_tokens(one.runs) if wanted.tokens is not None else None
    dollars, why = uncached_price(one.runs) if wanted.cost is not None else (None, "")
    return limits(one.suite, result, ranked, tokens=size, cost=dollars, unpriced=why)


def _kept(result: Result, folder: Path, found: Sequence[Verdict]) -> tuple[list[Verdict], str]:
    """Make a result the baseline, which settles what moved, unless something else is not met; and what to say."""
    unmet = [one for one in found if not one.met and one.kind not in _MOVES]
    if unmet:
        return list(found), f"{folder} is as it was: {plural(len(unmet), 'verdict')} not met that no baseline settles."
    baseline_store.save(result, folder)
    settled = "accepted: this run is the baseline now"
    return [
        one if one.met else replace(one, met=True, said=f"{one.said}; {settled}" if one.said else settled)
        for one in found
    ], f"This run is the baseline now: {folder}."
