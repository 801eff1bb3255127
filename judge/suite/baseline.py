"""The baseline run of a suite: find it, check that it is about the same texts, compare with it, and save a new one.

Only texts with a score in both runs are compared. `compare_with_baseline` gives a verdict for each criterion.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judge.core.errors import ConfigError, JudgeError, StorageError
from judge.core.format import format_interval, format_p, number, one_line, plural, signed
from judge.core.records import Estimate, Sample, whole
from judge.results.result import Result, load
from judge.stats.coefficients import Level
from judge.stats.correlation import MIN_CORRELATION_ITEMS, UNITS, change_in_agreement, usual_level
from judge.stats.paired_differences import holm
from judge.stats.power import ALPHA, MIN_ITEMS, items_needed
from judge.stats.power import MIN_ITEMS as FEWEST
from judge.stats.run_differences import MeanChange, Runs
from judge.suite.evidence import (
    CaseScores,
    MeanTest,
    PairedRuns,
    Rescaled,
    Text,
    Undecidable,
    columns,
    format_change,
    mean,
    pair_runs,
    values,
    would_take,
)
from judge.suite.expectations.agreement import PLACES
from judge.suite.expectations.case import Decision, Status, Verdict, joined, places
from judge.suite.load import Key
from judge.suite.schema import Suite, nearby
from judge.table import RUN, Table, split_rows

PAIRS = "pairs"
"""The folder, in that of a suite's run, of the texts that were compared two by two."""
_PAGES = ("report.html", "report.md")


@dataclass(frozen=True, slots=True)
class Baseline:
    """`before` is the run to compare with, `keep` the folder where this one is to take its place; each may be None.

    `warnings` are what a summary has to say: that nothing is compared, or that the baseline has texts which are gone.
    """

    before: Result | None = None
    keep: Path | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def locate(
    suite: Suite, samples: Sequence[Sample], *, folder: Path | None, update: bool, known: Collection[Key] | None = None
) -> Baseline:
    """The baseline of a suite, of whose data `samples` are scored.

    `folder` goes before the suite's own: there it is DIR/NAME, or DIR where that is a run. A suite that is new, and so
    is not among the runs in it, has nothing to be compared with: a warning. Raises ConfigError, with the line, where no
    baseline is named and a case needs it, where the folder is not there or is no scored run, and where it is of other
    data; with `update` these are notes, as it is going to be replaced. Texts that were edited, fewer than half of those
    in both, are left out of it: a note. Of texts there that are not among the `known` ones a warning. StorageError
    where it is to be replaced and cannot be written, or is somebody else's folder.
    """
    where, place = _baseline_folder(suite, folder)
    drifts = [case for case in suite.cases if case.needs_baseline]
    if place is None:
        if update:
            raise ConfigError(
                f"{suite.path}: --update-baseline: where to? write baseline: FOLDER, or add --baseline DIR"
            )
        if drifts:
            raise ConfigError(
                f"{suite.path}:{drifts[0].line}: {drifts[0].kind} is measured from a baseline: write "
                "baseline: FOLDER at the top, or add --baseline DIR"
            )
        return Baseline()
    if not samples:
        reason = "a baseline has scores of single texts, and every case here compares two"
        if folder is None:
            raise ConfigError(f"{where}: {reason}")
        return Baseline(warnings=(f"Not compared with a baseline: {reason}.",))
    keep = folder / suite.name if update and folder is not None else place if update else None
    if folder is not None and not update and not (place / RUN).exists():
        if not folder.exists():
            raise ConfigError(
                f"--baseline {folder}: no such folder{nearby(folder)}; "
                "with --update-baseline this run becomes the first"
            )
        # A folder with runs of other suites has none yet of this one. An empty folder is a mistake.
        if any(any(folder.glob(pattern)) for pattern in (f"*/{RUN}", f"*/{PAIRS}/{RUN}")):
            return Baseline(warnings=(f"Not compared with a baseline: there is no run in {folder / suite.name}.",))
    if keep is not None:
        _check_folder(where, keep)
    try:
        if not (place / RUN).exists():
            raise ConfigError(f"there is no run in {place}")
        before = load(place)
        if before.rankings or not any(column.kind == "criterion" for column in before.table.columns):
            raise ConfigError(f"no text has a judge's score in {place}")
        comparable, notes = _compare_texts(before, samples)
        warnings = () if known is None or update else _warn_of_missing_texts(before, known)
        return Baseline(comparable, keep, notes, warnings)
    except JudgeError as error:
        if not update:
            raise ConfigError(f"{where}: {error}; the same command with --update-baseline makes a new one") from error
        unjudged = f"; {plural(len(drifts), 'case')} of {drifts[0].kind} not judged" if drifts else ""
        return Baseline(None, keep, (f"Nothing to compare with: {error}{unjudged}.",))


def _baseline_folder(suite: Suite, folder: Path | None) -> tuple[str, Path | None]:
    """The folder where the baseline is looked for, and how a message begins that is about it."""
    if folder is None:
        return f"{suite.path}:{suite.lines.get('baseline', 1)}: baseline", suite.baseline
    suite_folder = folder / suite.name
    is_run = (folder / RUN).exists() and not (suite_folder / RUN).exists()
    return f"{suite.path}: --baseline", folder if is_run else suite_folder


def _check_folder(where: str, folder: Path) -> None:
    """Raises StorageError for a folder in which no baseline can be kept."""
    existing = next(ancestor for ancestor in (folder, *folder.absolute().parents) if ancestor.exists())
    if not existing.is_dir():
        raise StorageError(f"{where}: {existing}: a file stands there; name a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise StorageError(f"{where}: {existing}: cannot be written to; name another folder")
    if not (folder / RUN).exists() and any((folder / name).exists() for name in _PAGES):
        raise StorageError(f"{where}: {folder} holds a report that is not from judge; name another folder")


def _compare_texts(before: Result, samples: Sequence[Sample]) -> tuple[Result, tuple[str, ...]]:
    """The run without the texts that are other ones here, and what there is to note of these and of new ones.

    Raises ConfigError where it is of other data: where no text is in it, or half of those that are were edited.
    """
    text_before = {(sample.item, sample.system): _text(sample) for sample in before.table.samples}
    shared = [sample for sample in samples if _key(sample) in text_before]
    if not shared:
        raise ConfigError(f"it is of other data: no text here is in it, such as {_describe(samples[0])}")
    edited = [sample for sample in shared if text_before[_key(sample)] != _text(sample)]
    unlike = f"{_describe(edited[0])} has another output or source there" if edited else ""
    if 2 * len(edited) >= len(shared):
        raise ConfigError(f"it is of other data: {len(edited):,} of {plural(len(shared), 'text')} differ; {unlike}")
    notes = [f"{len(edited):,} of {plural(len(shared), 'text')} edited, and not compared: {unlike}."] if edited else []
    if new := len(samples) - len(shared):
        notes.append(f"{new:,} of {plural(len(samples), 'text')} not in the baseline, and not compared with it.")
    if edited:
        table, others = before.table, {_key(sample) for sample in edited}
        rows = split_rows(row for row in table.rows() if (row.item, row.system) not in others)
        kept = tuple(sample for sample in table.samples if (sample.item, sample.system) not in others)
        before = replace(before, table=Table(kept, table.columns, *rows))
    return before, tuple(notes)


def _warn_of_missing_texts(before: Result, known: Collection[Key]) -> tuple[str, ...]:
    """Texts of the baseline that are in no data any more: a suite passes for want of them, too."""
    here = {(whole(item), whole(system)) for item, system in known}
    gone = [sample for sample in before.table.samples if _key(sample) not in here]
    if not gone:
        return ()
    more = f" and {len(gone) - 1:,} more" if len(gone) > 1 else ""
    total = plural(len(before.table.samples), "text")
    return (f"{len(gone):,} of {total} of the baseline gone: {_describe(gone[0])}{more}.",)


def _key(sample: Sample) -> tuple[str, str]:
    return whole(sample.item), whole(sample.system)


def _text(sample: Sample) -> tuple[str, str]:
    return whole(sample.output), whole(sample.source or "")


def _describe(sample: Sample) -> str:
    return f"item {one_line(sample.item, 60)!r} of system {one_line(sample.system, 60)!r}"


# Compare


@dataclass(frozen=True, slots=True)
class AgreementChange:
    """Spearman with people before and after, and the difference with its interval, at one level."""

    before: float
    after: float
    estimate: Estimate
    level: Level


def agreement_change(
    result: Result, baseline: Result, criterion: str, *, criteria: int, seed: int
) -> AgreementChange | None:
    """None where too few texts with a score in both runs are rated, or a coefficient is undefined.

    The interval is of a confidence of 1 − .05 / `criteria` (Bonferroni): where there is no p, it decides for each.
    """
    rated = [sample for sample in result.table.samples if criterion in sample.human]
    if len(rated) < MIN_CORRELATION_ITEMS:
        return None
    try:
        scores = [CaseScores.for_criterion(run, criterion, {s.item for s in rated}) for run in (baseline, result)]
    except Undecidable:
        return None
    old, new = (
        {(s.item, s.system): score.value for s in rated if (score := side.score(s.item, s.system))} for side in scores
    )
    level = usual_level(rated)
    change = change_in_agreement(
        rated, criterion, old, new, levels=(level,), seed=seed, confidence=1 - ALPHA / criteria
    )
    shift = change.shifts.get(level)
    if shift is None or shift.change is None:
        return None
    return AgreementChange(shift.before.value, shift.after.value, shift.change, level)


def _decide_agreement(agreement: AgreementChange, p: float | None, moved: str) -> Decision:
    """Fail only if the scores correlate significantly worse with people; `moved` describes how the scores moved.

    `p` is after Holm. Without a test, as over all texts, the interval decides.
    """
    e, unit = agreement.estimate, UNITS[agreement.level]
    ends = None if e.low is None or e.high is None else (e.low, e.high)
    significant = p < ALPHA if p is not None else ends is not None and not ends[0] <= 0 <= ends[1]
    if significant:
        status: Status = "failed" if e.value < 0 else "passed"
        tested = f" ({format_p(p)})" if p is not None else ""
        said = f"agrees {'better' if e.value > 0 else 'worse'} with people{tested}"
    elif e.n < FEWEST or ends is None:
        status, said = "undecided", f"too few {unit}s to tell: {FEWEST} or more"
    else:
        status, said = "passed", f"agreement not told apart{would_take(items_needed(e), e.n, unit)}"
    change = f"{signed(e.value, PLACES)} {format_interval(e.low, e.high, PLACES)}"
    return Decision(
        status,
        f"{said}; scores {moved}",
        f"spearman {number(agreement.after, PLACES)}, {change}".rstrip(),
        estimate=e,
        before=f"spearman {number(agreement.before, PLACES)}",
    )


@dataclass(frozen=True, slots=True)
class _MeanChange:
    """A criterion's scores in both runs, and the test of their mean difference, after less before."""

    runs: PairedRuns
    test: MeanTest


def compare_with_baseline(
    suite: Suite, result: Result, baseline: Result, runs: Runs, *, seed: int = 0
) -> list[Verdict]:
    """One verdict for each criterion of `result`, but those of which a drift case bounds the mean over all texts.

    Where people rated the texts, not met only where the scores are told to go worse with the ratings than the
    baseline's: a prompt that is stricter, and right, is no regression. Else, and where the ratings are too few to
    tell, not met only where the scores are told to be worse: p after Holm is below .05, and the interval of the mean
    difference lies on the worse side of 0. Both are those of `runs`, the two side by side, and of
    fewer than six items those over their draws; where these have no test, likeliest labels have to flip. All texts
    that have a score in both count. `undecided`
    where nothing can tell, or the scale is another one: not met only if the suite says `fail`. `error` where fewer
    than half of the texts can be compared. A criterion that is new has no verdict. Whatever a drift case allows, where
    people rated the texts the agreement with them is compared.
    """
    first_rows = {row.column: row for row in reversed(runs.means)}  # that of all systems comes first
    bounded = {case.stem() for case in suite.cases if case.bounds_mean}
    line = suite.lines.get("baseline", 1)
    in_baseline = columns(baseline).keys()
    texts = [(sample.item, sample.system) for sample in result.table.samples]
    rows = {name: first_rows.get(column.name) for name, column in columns(result).items() if name in in_baseline}
    changes = {name: _mean_change(result, baseline, name, texts, row) for name, row in rows.items()}
    compared = {name: change for name, change in changes.items() if isinstance(change, _MeanChange)}
    # Too few items for the test of `runs`: these have that of their draws, if any, corrected among themselves.
    over_draws = {
        name: change.test.estimate.p
        for name, change in compared.items()
        if name not in bounded and change.test.unit == "draw"
    }
    p_values = {name: row.adjusted for name, row in rows.items() if row}
    p_values |= {**dict.fromkeys(over_draws), **_adjusted(over_draws)}
    rated = [name for name in changes if any(name in sample.human for sample in result.table.samples)]
    agreements = {
        name: agreement
        for name in rated
        if (agreement := agreement_change(result, baseline, name, criteria=len(rated), seed=seed))
    }
    agreement_p = _adjusted({name: agreement.estimate.p for name, agreement in agreements.items()})
    decisions = {name: _decide_scores(change, p_values.get(name)) for name, change in changes.items()}
    expected = dict.fromkeys(decisions, "not worse")
    for name in compared.keys() & {*rated}:
        scores = decisions[name]
        if agreement := agreements.get(name):
            decision = _decide_agreement(agreement, agreement_p.get(name), scores.found)
            if decision.status == "undecided" and scores.status == "failed":
                continue
        elif name in bounded:
            reason = "agreement with people not checked: too few rated texts, or scores all alike"
            decision = Decision("undecided", f"{reason}; scores {scores.found}", "no coefficient")
        else:
            continue
        decisions[name], expected[name] = decision, "goes no worse with people"
    undecided = suite.undecided or "pass"
    return [
        decision.verdict(
            "baseline", f"{name} against the baseline", line, expected[name], criterion=name, undecided=undecided
        )
        for name, decision in decisions.items()
        if name not in bounded or name in rated
    ]


def _adjusted(p: Mapping[str, float | None]) -> dict[str, float]:
    """After Holm over the criteria that have a test."""
    tested = {name: p_value for name, p_value in p.items() if p_value is not None}
    return dict(zip(tested, holm([*tested.values()]), strict=True))


def _mean_change(
    result: Result, baseline: Result, criterion: str, texts: Sequence[Text], row: MeanChange | None
) -> _MeanChange | Undecidable:
    """The mean difference, or why there is none."""
    try:
        after = CaseScores.for_criterion(result, criterion, {item for item, _ in texts})
        runs = pair_runs(baseline, after, criterion, texts)
    except Undecidable as error:
        return error
    items = runs.items()
    if row is None or len(items) < MIN_ITEMS:
        return _MeanChange(runs, mean(items, 0.0)[0])
    test = MeanTest(row.estimate, float(values(items).std(ddof=1)), "item", items=len(items))
    return _MeanChange(runs, test)


def _decide_scores(change: _MeanChange | Undecidable, p: float | None) -> Decision:
    if isinstance(change, Undecidable):
        return Decision("undecided" if isinstance(change, Rescaled) else "error", change.message, "no comparison")
    runs, test, column = change.runs, change.test, change.runs.after.column
    status, said = _decide_change(runs, test, p, -1 if column.better == "lower" else 1)
    decimals, alike = places(column), test.alike if test.estimate.value else ""
    return Decision(
        status,
        joined(said, alike, runs.some),
        format_change(test.estimate, decimals),
        estimate=test.estimate,
        before=number(runs.mean_before(), decimals),
    )


def _decide_change(runs: PairedRuns, test: MeanTest, p: float | None, sign: int) -> tuple[Status, str]:
    """Without a test, as of probabilities that were all seen, a move counts where likeliest labels flipped."""
    e, changed = test.estimate, runs.changed()
    if not e.value and e.low == e.high and not (changed and test.too_few_reason):
        return ("passed", f"mean the same; {changed}" if changed else "the same")
    few = test.unit == "draw" and p is None
    if test.direction and (p is None or p < ALPHA) and (not few or "flipped" in changed) and not test.too_few_reason:
        tested = "" if p is None else f" ({format_p(p)})"
        better = test.direction == sign
        return ("passed", f"better{tested}") if better else ("failed", f"worse{tested}")
    if test.too_few_reason:
        return ("undecided", joined(test.too_few_reason, changed))
    if few:
        return ("undecided", joined(f"no test on fewer than {MIN_ITEMS} items", changed))
    return ("passed", "not told apart" + test.items_needed)
