"""The baseline run of a suite: locate it, check its texts, and decide each criterion against it.

Only texts with a score in both runs are compared.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judge.core.errors import ConfigError, JudgeError, StorageError
from judge.core.files import try_writing
from judge.core.format import format_p, number, one_line, plural, signed, text_name
from judge.core.records import Sample, whole
from judge.data import ledger
from judge.data.rows import nearby
from judge.results.result import Result, load
from judge.stats.paired_differences import holm
from judge.stats.power import ALPHA, MIN_ITEMS
from judge.stats.run_differences import MeanChange, Runs
from judge.suite.agreement import agreement_change, decide_agreement
from judge.suite.case import Decision, Status, Verdict, joined, places
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
)
from judge.suite.schema import Suite
from judge.table import RUN, Table, split_rows

PAIRS = "pairs"
"""The folder of pairwise comparisons inside that of a suite's run."""
_PAGES = ("report.html", "report.md")


@dataclass(frozen=True, slots=True)
class Baseline:
    """`before` is the run to compare with, `keep` the folder in which this run becomes the baseline; each may be None.

    `before` has only texts that are the same in this run, and is None if there are none; `edited` also has those with
    another output, if there are any. `changed` are all texts with another output or source. `warnings` belong into the
    summary: nothing is compared, or texts of the baseline are gone.
    """

    before: Result | None = None
    keep: Path | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    edited: Result | None = None
    changed: frozenset[Text] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compare with."""
        return self.before is None and self.edited is None


def locate(
    suite: Suite,
    samples: Sequence[Sample],
    *,
    folder: Path | None,
    update: bool,
    known: Collection[Text] | None = None,
) -> Baseline:
    """Locate the baseline of a suite; `samples` are the texts that it scores.

    `folder` overrides the suite's own: the baseline is DIR/NAME, or DIR if that is a run. A new suite without a run in
    it gets a warning. Texts with another source, fewer than half, are left out with a note; texts of the baseline that
    are not among the `known` ones get a warning.

    Raises ConfigError, with the line, if a case needs a baseline and none is named, if the folder is missing or is not
    a scored run, and if it has other data; with `update` these are notes. Raises StorageError if it cannot be
    replaced or belongs to somebody else.
    """
    if folder is None:
        where, place = f"{suite.path}:{suite.lines.get('baseline', 1)}: baseline", suite.baseline
    else:
        suite_folder = folder / suite.name
        is_run = (folder / RUN).exists() and not (suite_folder / RUN).exists()
        where, place = f"{suite.path}: --baseline", folder if is_run else suite_folder
    drifts = [case for case in suite.cases if case.needs_baseline]
    if place is None:
        if update:
            raise ConfigError(
                f"{suite.path}: --update-baseline needs a folder: write baseline: FOLDER, or add --baseline DIR"
            )
        if drifts:
            raise ConfigError(
                f"{suite.path}:{drifts[0].line}: {drifts[0].kind} needs a baseline: write "
                "baseline: FOLDER at the top, or add --baseline DIR"
            )
        return Baseline()
    if not samples:
        reason = "a baseline has scores of single texts, and all cases here compare pairs"
        if folder is None:
            raise ConfigError(f"{where}: {reason}")
        return Baseline(warnings=(f"Not compared with a baseline: {reason}.",))
    keep = folder / suite.name if update and folder is not None else place if update else None
    if folder is not None and not update and not (place / RUN).exists():
        if not folder.exists():
            raise ConfigError(
                f"--baseline {folder}: no such folder{nearby(folder)}; --update-baseline makes this run the baseline"
            )
        # A folder with runs of other suites is valid; an empty folder is a mistake.
        if any(any(folder.glob(pattern)) for pattern in (f"*/{RUN}", f"*/{PAIRS}/{RUN}")):
            return Baseline(
                warnings=(
                    f"Not compared with a baseline: there is no run in {folder / suite.name}.",
                )
            )
    if keep is not None:
        _check_folder(where, keep)
    try:
        if not (place / RUN).exists():
            raise ConfigError(f"there is no run in {place}")
        before = load(place)
        if before.rankings or not columns(before):
            raise ConfigError(f"no text has a judge's score in {place}")
        warnings = () if known is None or update else _warn_of_missing_texts(before, known)
        return replace(_compare_texts(before, samples), keep=keep, warnings=warnings)
    except JudgeError as error:
        if not update:
            raise ConfigError(f"{where}: {error}; --update-baseline makes a new one") from error
        unjudged = (
            f"; {plural(len(drifts), 'case')} of {drifts[0].kind} not judged" if drifts else ""
        )
        return Baseline(None, keep, (f"Nothing to compare with: {error}{unjudged}.",))


def _check_folder(where: str, folder: Path) -> None:
    """Raise StorageError for a folder that cannot hold a baseline."""
    existing = next(
        ancestor for ancestor in (folder, *folder.absolute().parents) if ancestor.exists()
    )
    if not existing.is_dir():
        raise StorageError(f"{where}: {existing} is a file; name a folder")
    try:
        try_writing(existing)
    except OSError as error:
        problem = f"{existing}: cannot be written to ({error.strerror or error})"
        raise StorageError(f"{where}: {problem}; name another folder") from error
    if not (folder / RUN).exists() and any((folder / name).exists() for name in _PAGES):
        raise StorageError(
            f"{where}: {folder} holds a report that is not from judge; name another folder"
        )


def _compare_texts(before: Result, samples: Sequence[Sample]) -> Baseline:
    """Return the baseline without changed texts, and with changed outputs.

    Raises ConfigError if it has other data: no common text, or another source for half of them.
    """
    text_before = {sample.key: _text(sample) for sample in before.table.samples}
    shared = [sample for sample in samples if _key(sample) in text_before]
    if not shared:
        example = text_name(samples[0].item, samples[0].system)
        raise ConfigError(f"its data differ: it has none of these texts, such as {example}")
    edited = {
        _key(sample): _text(sample)
        for sample in shared
        if text_before[_key(sample)] != _text(sample)
    }
    other_source = {key for key, (_, source) in edited.items() if text_before[key][1] != source}
    total = plural(len(shared), "text")
    if 2 * len(other_source) >= len(shared):
        example = text_name(*next(key for key in edited if key in other_source))
        raise ConfigError(
            f"its data differ: {len(other_source):,} of {total} have another source, such as {example}"
        )
    notes = []
    if edited:
        example = text_name(*next(iter(edited)))
        only = (
            "only unchanged texts show" if len(edited) < len(shared) else "no unchanged text shows"
        )
        notes.append(
            f"{len(edited):,} of {total} edited, such as {example}; {only} whether the judge changed."
        )
    if new := len(samples) - len(shared):
        notes.append(
            f"{new:,} of {plural(len(samples), 'text')} not in the baseline, and not compared with it."
        )
    unchanged = _without(before, edited.keys()) if len(edited) < len(shared) else None
    with_edited = _without(before, other_source) if len(other_source) < len(edited) else None
    return Baseline(unchanged, notes=tuple(notes), edited=with_edited, changed=frozenset(edited))


def _without(result: Result, texts: Collection[Text]) -> Result:
    rows = split_rows(row for row in result.table.rows() if row.key not in texts)
    samples = tuple(sample for sample in result.table.samples if sample.key not in texts)
    return replace(result, table=Table(samples, result.table.columns, *rows))


def _warn_of_missing_texts(before: Result, known: Collection[Text]) -> tuple[str, ...]:
    """Warn of texts that only the baseline has: a suite might pass because they are missing."""
    here = {(whole(item), whole(system)) for item, system in known}
    gone = [sample for sample in before.table.samples if _key(sample) not in here]
    if not gone:
        return ()
    more = f" and {len(gone) - 1:,} more" if len(gone) > 1 else ""
    total = plural(len(before.table.samples), "text")
    return (
        f"{len(gone):,} of {total} of the baseline gone: {text_name(gone[0].item, gone[0].system)}{more}.",
    )


def _key(sample: Sample) -> tuple[str, str]:
    return whole(sample.item), whole(sample.system)


def _text(sample: Sample) -> tuple[str, str]:
    return whole(sample.output), whole(sample.source or "")


@dataclass(frozen=True, slots=True)
class _MeanChange:
    """A criterion's scores in both runs, and the test of their mean difference, after minus before."""

    runs: PairedRuns
    test: MeanTest


def compare_with_baseline(
    suite: Suite,
    result: Result,
    baseline: Result,
    runs: Runs,
    *,
    changed: Collection[Text] = (),
    seed: int = 0,
) -> list[Verdict]:
    """Return one verdict for each criterion of `result`, except those whose mean a drift case limits.

    With human ratings, a criterion fails only if its scores agree significantly less with them: a stricter prompt that
    is right is no regression. Without ratings, or with too few, it fails only if its scores are significantly worse: p
    after Holm is below .05 and the interval of the mean difference is on the worse side of 0. Both come from `runs`, or
    with fewer than six items from the draws; without a test, likeliest labels must flip. All texts with both scores
    count but those that `changed`. Without evidence, or on another scale, it is `undecided`, which fails only if the
    suite says so; it is an `error` if fewer than half of the texts can be compared. A new criterion has no verdict. A
    drift case does not replace the comparison with human ratings.
    """
    first_rows = {
        row.column: row for row in reversed(runs.means)
    }  # the row of all systems comes first
    bounded = {case.stem() for case in suite.cases if case.bounds_mean}
    in_baseline = columns(baseline).keys()
    texts = [sample.key for sample in result.table.samples if _key(sample) not in changed]
    rows = {
        name: first_rows.get(column.name)
        for name, column in columns(result).items()
        if name in in_baseline
    }
    changes = {name: _mean_change(result, baseline, name, texts, row) for name, row in rows.items()}
    compared = {name: change for name, change in changes.items() if isinstance(change, _MeanChange)}
    # With too few items for the test of `runs`, that of the draws counts, corrected among these criteria.
    over_draws = {
        name: change.test.estimate.p
        for name, change in compared.items()
        if name not in bounded and change.test.unit == "draw"
    }
    p_values = {name: row.adjusted for name, row in rows.items() if row}
    p_values |= zip(over_draws, holm([*over_draws.values()]), strict=True)
    rated = [
        name for name in changes if any(name in sample.human for sample in result.table.samples)
    ]
    agreements = {
        name: agreement
        for name in rated
        if (agreement := agreement_change(result, baseline, name, criteria=len(rated), seed=seed))
    }
    agreement_p = dict(
        zip(agreements, holm([each.estimate.p for each in agreements.values()]), strict=True)
    )
    decisions = {
        name: _decide_scores(change, p_values.get(name)) for name, change in changes.items()
    }
    expected = dict.fromkeys(decisions, "not worse")
    for name in compared.keys() & {*rated}:
        scores = decisions[name]
        if agreement := agreements.get(name):
            decision = decide_agreement(agreement, agreement_p.get(name), scores.found)
            if decision.status == "undecided" and scores.status == "failed":
                continue
        elif name in bounded:
            reason = "agreement with people not checked: too few rated texts, or all scores equal"
            excluded = ledger.excluded(result.table.samples, name)
            decision = Decision(
                "undecided", joined(reason, excluded, f"scores {scores.found}"), "no coefficient"
            )
        else:
            continue
        decisions[name], expected[name] = decision, "agrees no worse with people"
    return [
        _verdict(suite, decision, f"{name} against the baseline", name, expected[name])
        for name, decision in decisions.items()
        if name not in bounded or name in rated
    ]


def _mean_change(
    result: Result, baseline: Result, criterion: str, texts: Sequence[Text], row: MeanChange | None
) -> _MeanChange | Undecidable:
    """Return the mean difference, or the reason for none."""
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
        return Decision(
            "undecided" if isinstance(change, Rescaled) else "error",
            change.message,
            "no comparison",
        )
    runs, test, column = change.runs, change.test, change.runs.after.column
    e, changed = test.estimate, runs.changed()
    few = test.unit == "draw" and p is None
    status: Status = "passed"
    # Without a test, as with exact probabilities, a change counts only if likeliest labels flipped.
    if not e.value and e.low == e.high and not (changed and test.too_few_reason):
        reason = f"mean the same; {changed}" if changed else "the same"
    elif (
        test.direction
        and (p is None or p < ALPHA)
        and (not few or "flipped" in changed)
        and not test.too_few_reason
    ):
        worse = test.direction == (1 if column.better == "lower" else -1)
        status = "failed" if worse else "passed"
        tested = "" if p is None else f" ({format_p(p)})"
        reason = f"worse{tested}; same texts: the judge changed" if worse else f"better{tested}"
    elif test.too_few_reason or few:
        status = "undecided"
        reason = joined(test.too_few_reason or f"no test on fewer than {MIN_ITEMS} items", changed)
    else:
        reason = "no significant change" + replace(test, estimate=replace(e, p=p)).items_needed
    decimals, alike = places(column), test.alike if test.estimate.value else ""
    return Decision(
        status,
        joined(reason, alike, runs.some),
        format_change(test.estimate, decimals),
        estimate=test.estimate,
        before=number(runs.mean_before(), decimals),
    )


def compare_changed_texts(suite: Suite, result: Result, runs: Runs) -> list[Verdict]:
    """Return a verdict for each criterion on the systems whose texts changed, without the judge's shift.

    `runs` compares the baseline, including edited outputs. A criterion fails if a system is significantly worse (p
    after Holm below .05). With too few unchanged texts to measure the judge's shift, the whole change is tested. It has
    no verdict if no change could be tested: too few changed texts.
    """
    verdicts = []
    for name, column in columns(result).items():
        sign, decimals = -1 if column.better == "lower" else 1, places(column)
        tested = [
            (sign * change.value * row.system_changed, row, change, row.system_adjusted)
            for row in runs.means
            if row.column == column.name and row.system and (change := row.system_change)
            if row.system_adjusted is not None
        ]
        whole_change = [
            (sign * row.estimate.value * row.significant, row, row.estimate, row.adjusted)
            for row in runs.means
            if row.column == column.name
            and row.system
            and row.judge is None
            and row.adjusted is not None
        ]
        if not (tested or whole_change):
            continue
        furthest, row, change, p = min(tested or whole_change, key=lambda entry: entry[0])
        outcome = "worse" if furthest < 0 else "better" if furthest > 0 else "no significant change"
        judge = "of the system or of the judge: too few unchanged texts to tell"
        if tested:
            part = format_change(row.judge or change, decimals)
            judge = f"{signed(row.estimate.value, decimals)}, of which the judge {part}"
        decision = Decision(
            "failed" if furthest < 0 else "passed",
            f"{one_line(row.system)}: {outcome} ({format_p(p)}); {judge}",
            format_change(change, decimals),
            estimate=change,
        )
        title = f"{name} of changed texts against the baseline"
        verdicts.append(_verdict(suite, decision, title, name, "not worse"))
    return verdicts


def _verdict(
    suite: Suite, decision: Decision, title: str, criterion: str, expected: str
) -> Verdict:
    """Return the verdict on a criterion; without evidence it passes, unless the suite says otherwise."""
    line, undecided = suite.lines.get("baseline", 1), suite.undecided or "pass"
    return decision.verdict(
        undecided, kind="baseline", name=title, line=line, expected=expected, criterion=criterion
    )
