"""The baseline run of a suite: locate it, check its texts, and decide each criterion against it.

Only texts with a score in both runs are compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judge.core.errors import ConfigError, JudgeError, StorageError
from judge.core.files import try_writing
from judge.core.format import (
    first_names,
    format_p,
    number,
    one_line,
    plural,
    signed,
    text_name,
)
from judge.core.messages import option
from judge.core.normalization import whole
from judge.core.records import Column, Estimate, Sample
from judge.data import ledger
from judge.data.rows import nearby
from judge.results.comparison import Change
from judge.results.loading import load
from judge.results.result import Result
from judge.stats.paired_differences import holm
from judge.stats.power import ALPHA, MIN_ITEMS
from judge.stats.run_differences import MeanChange, Runs
from judge.suite.agreement import AgreementChange, agreement_change, decide_agreement
from judge.suite.case import Decision, Status, Verdict, joined
from judge.suite.case_scores import (
    CaseScores,
    PairedRuns,
    Rescaled,
    columns,
    pair_runs,
    places,
)
from judge.suite.evidence import Undecidable, item_values
from judge.suite.mean_tests import MeanTest, format_change, mean
from judge.suite.schema import Suite
from judge.table import RUN, Table, Text, split_rows

PAIRS = "pairs"
"""The folder of pairwise comparisons in the folder of a suite's run."""
_PAGES = ("report.html", "report.md")
_MOST_SETTINGS = 4
"""Changed settings in a note."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The run to compare with, and the folder in which this run becomes the baseline.

    - `before`: the run to compare with, only with the texts that are the same in this run; None if
      there are none.
    - `keep`: the folder in which this run is saved; None if the baseline stays.
    - `warnings`: what the summary says: nothing is compared, or texts of the baseline are gone.
    - `edited`: the run to compare with, also with the texts that have another output now; None if
      there are no such texts.
    - `changed`: all texts with another output or source.
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


@dataclass(frozen=True, slots=True)
class _Location:
    """The folder of a baseline, None if none is named, and how error messages refer to it."""

    folder: Path | None
    label: str


def locate(
    suite: Suite,
    samples: Sequence[Sample],
    *,
    folder: Path | None,
    update: bool,
    known_texts: Collection[Text] | None = None,
) -> Baseline:
    """Locate the baseline of a suite; `samples` are the texts that it scores.

    `folder` overrides the suite's own: the baseline is DIR/NAME, or DIR if that is a run. A new
    suite without a run in it gets a warning. Texts with another source, fewer than half, are left
    out with a note; texts of the baseline that are not among the `known_texts` get a warning.

    Raises ConfigError, with the line, if a case needs a baseline and none is named, if the folder
    is missing or is not a scored run, and if it has other data; with `update` these are notes.
    Raises StorageError if it cannot be replaced or belongs to somebody else.
    """
    location = _location(suite, folder)
    run_folder = location.folder
    if run_folder is None:
        _check_not_needed(suite, update=update)
        return Baseline()
    if not samples:
        reason = (
            "a baseline has scores of single texts, and all cases here compare pairs"
        )
        if folder is None:
            raise ConfigError(f"{location.label}: {reason}")
        return _not_compared(reason)
    keep: Path | None = None
    if update:
        keep = run_folder if folder is None else folder / suite.name
        _check_can_hold_run(location.label, keep)
    elif folder is not None and not (run_folder / RUN).exists():
        if not folder.exists():
            setting = option("baseline", str(folder))
            raise ConfigError(
                f"{setting}: no such folder{nearby(folder)}; {option('update_baseline', True)} "
                "makes this run the baseline"
            )
        # A folder with runs of other suites is valid; an empty folder is a mistake.
        if _has_runs(folder):
            return _not_compared(f"there is no run in {folder / suite.name}")
    try:
        stored_result = _load_scored(run_folder)
        warnings: tuple[str, ...] = ()
        if known_texts is not None and not update:
            warnings = _warn_of_missing_texts(stored_result, known_texts)
        baseline = _compare_texts(stored_result, samples)
        return replace(baseline, keep=keep, warnings=warnings)
    except JudgeError as error:
        # With `update`, the folder gets a new baseline, whatever is wrong with the old one.
        if not update:
            raise ConfigError(
                f"{location.label}: {error}; {option('update_baseline', True)} makes a new one"
            ) from error
        return Baseline(keep=keep, notes=(_nothing_to_compare(suite, error),))


def _not_compared(reason: str) -> Baseline:
    """Return a baseline with nothing to compare, and a warning that says why."""
    return Baseline(warnings=(f"Not compared with a baseline: {reason}.",))


def _nothing_to_compare(suite: Suite, error: JudgeError) -> str:
    """Return the note on an old baseline that cannot be used."""
    drift_cases = [case for case in suite.cases if case.needs_baseline]
    unjudged = ""
    if drift_cases:
        n_cases = plural(len(drift_cases), "case")
        unjudged = f"; {n_cases} of {drift_cases[0].kind} not judged"
    return f"Nothing to compare with: {error}{unjudged}."


def _location(suite: Suite, folder: Path | None) -> _Location:
    """Return the folder of a suite's baseline; `folder` overrides the one that the suite names."""
    if folder is None:
        line = suite.lines.get("baseline", 1)
        return _Location(suite.baseline, f"{suite.path}:{line}: baseline")
    # DIR may be a run itself, or hold a run for each suite.
    suite_folder = folder / suite.name
    is_run = (folder / RUN).exists() and not (suite_folder / RUN).exists()
    run_folder = folder if is_run else suite_folder
    return _Location(run_folder, f"{suite.path}: {option('baseline')}")


def _check_not_needed(suite: Suite, *, update: bool) -> None:
    """Raise ConfigError if a suite without a baseline needs one."""
    if update:
        raise ConfigError(
            f"{suite.path}: {option('update_baseline', True)} needs a folder: write "
            f"baseline: FOLDER, or add {option('baseline', 'DIR')}"
        )
    for case in suite.cases:
        if case.needs_baseline:
            raise ConfigError(
                f"{suite.path}:{case.line}: {case.kind} needs a baseline: write "
                f"baseline: FOLDER at the top, or add {option('baseline', 'DIR')}"
            )


def _has_runs(folder: Path) -> bool:
    """Return whether a folder has the run of any suite, or its comparisons in pairs."""
    runs = folder.glob(f"*/{RUN}")
    pairwise_runs = folder.glob(f"*/{PAIRS}/{RUN}")
    return any(runs) or any(pairwise_runs)


def _load_scored(folder: Path) -> Result:
    """Load a run with scores of single texts. Raises JudgeError for any other folder."""
    if not (folder / RUN).exists():
        raise ConfigError(f"there is no run in {folder}")
    result = load(folder)
    # A run of comparisons has no scores of single texts.
    if result.rankings or not columns(result):
        raise ConfigError(f"no text has a judge's score in {folder}")
    return result


def _check_can_hold_run(label: str, folder: Path) -> None:
    """Raise StorageError for a folder that cannot be made or written to, or is another tool's."""
    ancestors = (folder, *folder.absolute().parents)
    # The folder may not exist yet; then it must be possible to make it.
    existing = next(ancestor for ancestor in ancestors if ancestor.exists())
    if not existing.is_dir():
        raise StorageError(f"{label}: {existing} is a file; name a folder")
    try:
        try_writing(existing)
    except OSError as error:
        problem = f"{existing}: cannot be written to ({error.strerror or error})"
        raise StorageError(f"{label}: {problem}; name another folder") from error
    # A run replaces an earlier run, but no report of another tool (decision 58).
    is_run = (folder / RUN).exists()
    has_report = any((folder / page_name).exists() for page_name in _PAGES)
    if has_report and not is_run:
        raise StorageError(
            f"{label}: {folder} holds a report that is not from judge; name another folder"
        )


def _compare_texts(stored_result: Result, samples: Sequence[Sample]) -> Baseline:
    """Return the baseline without changed texts, and with changed outputs.

    Raises ConfigError if it has other data: no common text, or another source for half of them.
    """
    stored_samples = stored_result.table.samples
    texts_before = {sample.key: _output_and_source(sample) for sample in stored_samples}
    shared = [sample for sample in samples if _stored_key(sample) in texts_before]
    if not shared:
        example = text_name(samples[0].item, samples[0].system)
        raise ConfigError(
            f"its data differ: it has none of these texts, such as {example}"
        )
    changed: list[Text] = []
    other_source: list[Text] = []
    for sample in shared:
        text_key = _stored_key(sample)
        text_before = texts_before[text_key]
        text_now = _output_and_source(sample)
        if text_before != text_now:
            changed.append(text_key)
        if text_before.source != text_now.source:
            other_source.append(text_key)
    # A few corrected sources are normal. If most differ, the items are other items.
    if 2 * len(other_source) >= len(shared):
        total = plural(len(shared), "text")
        raise ConfigError(
            f"its data differ: {len(other_source):,} of {total} have another source, such as "
            f"{text_name(*other_source[0])}"
        )
    with_unchanged_texts = None
    if len(changed) < len(shared):
        with_unchanged_texts = _without(stored_result, set(changed))
    with_edited_outputs = None
    if len(other_source) < len(changed):
        with_edited_outputs = _without(stored_result, set(other_source))
    return Baseline(
        before=with_unchanged_texts,
        notes=tuple(_text_notes(len(samples), len(shared), changed)),
        edited=with_edited_outputs,
        changed=frozenset(changed),
    )


def _text_notes(n_texts: int, n_shared: int, changed: Sequence[Text]) -> Iterator[str]:
    """Say how many texts changed since the baseline, and how many are new."""
    if changed:
        has_unchanged = len(changed) < n_shared
        evidence = "no unchanged text shows"
        if has_unchanged:
            evidence = "only unchanged texts show"
        example = text_name(*changed[0])
        yield (
            f"{len(changed):,} of {plural(n_shared, 'text')} edited, such as {example}; "
            f"{evidence} whether the judge changed."
        )
    n_new = n_texts - n_shared
    if n_new:
        yield (
            f"{n_new:,} of {plural(n_texts, 'text')} not in the baseline, and not compared with it."
        )


def notes_on_settings(changes: Sequence[Change]) -> Iterator[str]:
    """Name the settings that differ from the baseline's, such as the model that judges."""
    settings: list[str] = []
    for change in changes:
        # Notes on the texts say how the data differ.
        if change.what == "data" or _is_replayed(change):
            continue
        setting = change.what
        if change.columns:
            setting += f" of {', '.join(change.columns)}"
        before = one_line(change.before)
        after = one_line(change.after)
        settings.append(f"{setting} ({before} → {after})")
    if settings:
        yield f"Changed since the baseline: {first_names(settings, _MOST_SETTINGS)}."


def _is_replayed(change: Change) -> bool:
    """Return whether a recording of the same model answered in one of the runs."""
    if change.what != "model":
        return False
    # "openai/gpt-5.4-mini@api.openai.com" and "replay/gpt-5.4-mini"
    providers: set[str] = set()
    names: set[str] = set()
    for model in (change.before, change.after):
        provider, _, name_and_host = model.partition("/")
        name, _, _ = name_and_host.partition("@")
        providers.add(provider)
        names.add(name)
    return "replay" in providers and len(names) == 1


def _without(result: Result, texts: Collection[Text]) -> Result:
    """Return a result without the rows of these texts."""
    table = result.table
    rows = split_rows(row for row in table.rows() if row.key not in texts)
    samples = tuple(sample for sample in table.samples if sample.key not in texts)
    return replace(result, table=Table(samples, table.columns, *rows))


def _warn_of_missing_texts(
    stored_result: Result, known_texts: Collection[Text]
) -> tuple[str, ...]:
    """Warn of texts that only the baseline has: a suite might pass because they are missing."""
    texts_here = {(whole(item), whole(system)) for item, system in known_texts}
    stored_samples = stored_result.table.samples
    missing = [
        sample for sample in stored_samples if _stored_key(sample) not in texts_here
    ]
    if not missing:
        return ()
    total = plural(len(stored_samples), "text")
    examples = text_name(missing[0].item, missing[0].system)
    if len(missing) > 1:
        examples += f" and {len(missing) - 1:,} more"
    return (f"{len(missing):,} of {total} of the baseline missing: {examples}.",)


def _stored_key(sample: Sample) -> Text:
    """Return a text's item and system as a stored run has them."""
    return whole(sample.item), whole(sample.system)


@dataclass(frozen=True, slots=True)
class _OutputAndSource:
    output: str
    source: str


def _output_and_source(sample: Sample) -> _OutputAndSource:
    """Return what a baseline compares of a text, as a stored run has it."""
    return _OutputAndSource(whole(sample.output), whole(sample.source or ""))


@dataclass(frozen=True, slots=True)
class _MeanChange:
    """A criterion's scores in both runs, and the test of their mean difference.

    The difference is after minus before.
    """

    runs: PairedRuns
    test: MeanTest


@dataclass(frozen=True, slots=True)
class _MeanChanges:
    """The mean differences by criterion, or why there is none; and their p after Holm."""

    changes: Mapping[str, _MeanChange | Undecidable]
    p_values: Mapping[str, float | None]


def compare_with_baseline(
    suite: Suite,
    result: Result,
    baseline: Result,
    runs: Runs,
    *,
    changed: Collection[Text] = (),
    seed: int = 0,
) -> list[Verdict]:
    """Return one verdict for each criterion of `result`.

    A criterion whose mean a drift case limits has none, unless it has human ratings: a drift case
    does not replace the comparison with them.

    - With human ratings, a criterion fails only if its scores agree significantly less with them: a
      stricter prompt that is right is no regression.
    - Without ratings, or with too few, it fails only if its scores are significantly worse, over
      all systems or of one: p after Holm is below .05 and the interval of the mean difference is on
      the worse side of 0. Both come from `runs`, or with fewer than six items from the draws.
      Without a test, likeliest labels must flip.
    - Without evidence, or on another scale, it is `undecided`, which fails only if the suite says
      so.
    - It is an `error` if fewer than half of the texts can be compared.

    All texts with both scores count except the `changed` ones. A new criterion has no verdict.
    """
    limited_by_drift = {case.stem() for case in suite.cases if case.bounds_mean}
    mean_changes = _mean_changes(
        result,
        baseline,
        runs,
        changed=changed,
        limited_by_drift=limited_by_drift,
    )
    samples = result.table.samples
    rating_names = {rating_name for sample in samples for rating_name in sample.human}
    rated = [
        criterion for criterion in mean_changes.changes if criterion in rating_names
    ]
    agreements = _tested_agreements(result, baseline, rated, seed)
    verdicts: list[Verdict] = []
    for criterion, change in mean_changes.changes.items():
        # The drift case already decides the mean. With ratings, their agreement is checked, too.
        if criterion in limited_by_drift and criterion not in rated:
            continue
        decision = _decide_scores(change, mean_changes.p_values.get(criterion))
        by_people: Decision | None = None
        if isinstance(change, _MeanChange):
            if decision.status != "failed":
                decision = _with_worst_system(decision, change, runs)
            if criterion in agreements:
                by_people = _decide_by_agreement(agreements[criterion], decision)
            elif criterion in rated and criterion in limited_by_drift:
                excluded = ledger.excluded(samples, criterion)
                by_people = _without_agreement(excluded, decision)
        expected = "not worse"
        if by_people is not None:
            decision = by_people
            expected = "agrees no worse with people"
        title = f"{criterion} against the baseline"
        verdicts.append(_verdict(suite, decision, title, criterion, expected))
    return verdicts


@dataclass(frozen=True, slots=True)
class _TestedAgreement:
    """The change of a criterion's agreement with people; `p_value` is None without a test."""

    change: AgreementChange
    p_value: float | None


def _tested_agreements(
    result: Result,
    baseline: Result,
    rated: Sequence[str],
    seed: int,
) -> dict[str, _TestedAgreement]:
    """Return the change of agreement by criterion, of those `rated` criteria that have one."""
    changes: dict[str, AgreementChange] = {}
    for criterion in rated:
        change = agreement_change(
            result, baseline, criterion, criteria=len(rated), seed=seed
        )
        if change is not None:
            changes[criterion] = change
    # Among many criteria, one may be significant by chance: hence Holm's correction.
    adjusted = holm([change.estimate.p for change in changes.values()])
    agreements: dict[str, _TestedAgreement] = {}
    for (criterion, change), p_value in zip(changes.items(), adjusted, strict=True):
        agreements[criterion] = _TestedAgreement(change, p_value)
    return agreements


def _decide_by_agreement(
    agreement: _TestedAgreement, scores: Decision
) -> Decision | None:
    """Decide by the agreement with people; None if the decision on the `scores` is to stand.

    Worse scores count if the agreement is undecided.
    """
    decision = decide_agreement(agreement.change, agreement.p_value, scores.found)
    # Too few ratings must not excuse scores that are significantly worse.
    if decision.status == "undecided" and scores.status == "failed":
        return None
    return decision


def _without_agreement(excluded: str, scores: Decision) -> Decision:
    """Return the decision on a criterion with ratings whose mean a drift case limits."""
    reason = (
        "agreement with people not checked: too few rated texts, or all scores equal"
    )
    return Decision(
        "undecided",
        joined(reason, excluded, f"scores {scores.found}"),
        "no coefficient",
    )


def _mean_changes(
    result: Result,
    baseline: Result,
    runs: Runs,
    *,
    changed: Collection[Text],
    limited_by_drift: Collection[str],
) -> _MeanChanges:
    """Return the mean difference of each criterion in both runs, or why there is none; and p."""
    row_by_column: dict[str, MeanChange] = {}
    for row in runs.means:
        # The first row of a column is about all systems.
        row_by_column.setdefault(row.column, row)
    texts = [
        sample.key
        for sample in result.table.samples
        if _stored_key(sample) not in changed
    ]
    in_baseline = columns(baseline).keys()
    changes: dict[str, _MeanChange | Undecidable] = {}
    p_values: dict[str, float | None] = {}
    p_over_draws: dict[str, float | None] = {}
    for criterion, column in columns(result).items():
        if criterion not in in_baseline:
            continue
        first_row = row_by_column.get(column.name)
        if first_row:
            p_values[criterion] = first_row.adjusted
        change = _mean_change(result, baseline, criterion, texts, first_row)
        changes[criterion] = change
        if isinstance(change, Undecidable) or criterion in limited_by_drift:
            continue
        if change.test.unit == "draw":
            p_over_draws[criterion] = change.test.estimate.p
    # If there is no test of `runs`, the test over draws counts, corrected among these criteria.
    adjusted = holm(list(p_over_draws.values()))
    p_values |= zip(p_over_draws, adjusted, strict=True)
    return _MeanChanges(changes, p_values)


def _mean_change(
    result: Result,
    baseline: Result,
    criterion: str,
    texts: Sequence[Text],
    row: MeanChange | None,
) -> _MeanChange | Undecidable:
    """Return the mean difference of a criterion in both runs, or the reason for none.

    `row` is the test over items for all systems together, None if `Runs` has no such mean.
    """
    items_of_texts = {item for item, _ in texts}
    try:
        scores_after = CaseScores.for_criterion(result, criterion, items_of_texts)
        runs = pair_runs(baseline, scores_after, criterion, texts)
    except Undecidable as error:
        return error
    items = runs.items()
    # With fewer items, the draws of these texts are tested.
    if row is None or len(items) < MIN_ITEMS:
        (over_draws,) = mean(items, 0.0)
        return _MeanChange(runs, over_draws)
    deviation = float(item_values(items).std(ddof=1))
    over_items = MeanTest(row.estimate, deviation, "item", items=len(items))
    return _MeanChange(runs, over_items)


def _decide_scores(
    change: _MeanChange | Undecidable, p_value: float | None
) -> Decision:
    """Decide whether the scores got worse; `p_value` is after Holm, None without a test."""
    if isinstance(change, Undecidable):
        status: Status = "undecided" if isinstance(change, Rescaled) else "error"
        return Decision(status, change.message, "no comparison")
    estimate = change.test.estimate
    outcome = _outcome_of_scores(change, p_value)
    decimals = places(change.runs.after.column)
    # If nothing changed, the outcome itself says so.
    alike = change.test.alike if estimate.value else ""
    return Decision(
        outcome.status,
        joined(outcome.reason, alike, change.runs.some),
        format_change(estimate, decimals),
        estimate=estimate,
        before=number(change.runs.mean_before(), decimals),
    )


def _outcome_of_scores(change: _MeanChange, p_value: float | None) -> Decision:
    """Return the status of a mean difference, and the reason."""
    mean_test = change.test
    estimate = mean_test.estimate
    changed = change.runs.changed()
    too_few_reason = mean_test.too_few_reason
    is_zero = not estimate.value and estimate.low == estimate.high
    # Scores that changed without moving the mean of too few items show nothing.
    if is_zero and not (changed and too_few_reason):
        reason = f"mean the same; {changed}" if changed else "the same"
        return Decision("passed", reason)
    is_untested = mean_test.unit == "draw" and p_value is None
    # Without a test, as with exact probabilities, a change counts only if likeliest labels flipped.
    counts = not is_untested or "flipped" in changed
    is_significant = p_value is None or p_value < ALPHA
    if mean_test.direction and is_significant and counts and not too_few_reason:
        tested = "" if p_value is None else f" ({format_p(p_value)})"
        worse_direction = 1 if change.runs.after.column.better == "lower" else -1
        if mean_test.direction == worse_direction:
            return Decision("failed", f"worse{tested}; same texts: the judge changed")
        return Decision("passed", f"better{tested}")
    if too_few_reason or is_untested:
        reason = too_few_reason or f"no test on fewer than {MIN_ITEMS} items"
        return Decision("undecided", joined(reason, changed))
    with_p = replace(mean_test, estimate=replace(estimate, p=p_value))
    return Decision("passed", f"no significant change{with_p.items_needed}")


def _with_worst_system(decision: Decision, change: _MeanChange, runs: Runs) -> Decision:
    """Return a failure if a system's scores are significantly worse, else the decision.

    If one system rises and another falls, the mean over all systems may stay the same.
    """
    column = change.runs.after.column
    rows = _rows_of_systems(runs, column)
    if not rows:
        return decision

    def gain(row: MeanChange) -> float:
        return _significant_gain(row.estimate, column, significant=row.significant)

    worst = min(rows, key=gain)
    if gain(worst) >= 0 or worst.adjusted is None:
        return decision
    decimals = places(column)
    worse = f"{one_line(worst.system)}: worse ({format_p(worst.adjusted)})"
    return Decision(
        "failed",
        f"{worse}; same texts: the judge changed; all systems {decision.found}",
        format_change(worst.estimate, decimals),
        estimate=worst.estimate,
        before=number(worst.before, decimals),
    )


def _rows_of_systems(runs: Runs, column: Column) -> list[MeanChange]:
    """Return the changes of single systems on a column, without that of all together."""
    of_column = [row for row in runs.means if row.column == column.name]
    return [row for row in of_column if row.system]


@dataclass(frozen=True, slots=True)
class _SystemChange:
    """The tested change of a system's scores on a column.

    `gain` is that of `_significant_gain`. `estimate` is the change that was tested: that of `row`,
    or its part without the judge's shift.
    """

    gain: float
    row: MeanChange
    estimate: Estimate
    p_value: float


def compare_changed_texts(suite: Suite, result: Result, runs: Runs) -> list[Verdict]:
    """Return a verdict for each criterion on the systems whose texts changed.

    The judge's shift is taken out. `runs` compares the baseline, including edited outputs. A
    criterion fails if a system is significantly worse (p after Holm below .05). With too few
    unchanged texts to measure the judge's shift, the whole change is tested. It has no verdict if
    no change could be tested: too few changed texts.
    """
    verdicts: list[Verdict] = []
    for criterion, column in columns(result).items():
        rows = _rows_of_systems(runs, column)
        without_shift = _changes_without_shift(rows, column)
        changes = without_shift or _whole_changes(rows, column)
        if not changes:
            continue
        # One system that is worse fails the criterion, whatever the others are.
        worst = min(changes, key=lambda change: change.gain)
        decimals = places(column)
        decision = _decide_system(worst, decimals, without_shift=bool(without_shift))
        title = f"{criterion} of changed texts against the baseline"
        verdicts.append(_verdict(suite, decision, title, criterion, "not worse"))
    return verdicts


def _changes_without_shift(
    rows: Sequence[MeanChange], column: Column
) -> list[_SystemChange]:
    """Return the tested changes of systems, without the judge's shift."""
    changes: list[_SystemChange] = []
    for row in rows:
        estimate = row.system_change
        if not estimate or row.system_adjusted is None:
            continue
        gain = _significant_gain(estimate, column, significant=row.system_changed)
        changes.append(_SystemChange(gain, row, estimate, row.system_adjusted))
    return changes


def _whole_changes(rows: Sequence[MeanChange], column: Column) -> list[_SystemChange]:
    """Return the tested changes of systems whose texts do not show the judge's shift."""
    changes: list[_SystemChange] = []
    for row in rows:
        if row.judge is not None or row.adjusted is None:
            continue
        gain = _significant_gain(row.estimate, column, significant=row.significant)
        changes.append(_SystemChange(gain, row, row.estimate, row.adjusted))
    return changes


def _significant_gain(
    estimate: Estimate, column: Column, *, significant: bool
) -> float:
    """Return a change so that a better one is above 0; 0 if it is not significant."""
    if not significant:
        return 0.0
    sign = -1 if column.better == "lower" else 1
    return sign * estimate.value


def _decide_system(
    change: _SystemChange, decimals: int, *, without_shift: bool
) -> Decision:
    """Decide about the system with the worst change."""
    if change.gain < 0:
        status: Status = "failed"
        outcome = "worse"
    else:
        status = "passed"
        outcome = "better" if change.gain > 0 else "no significant change"
    cause = "of the system or of the judge: too few unchanged texts to tell"
    if without_shift:
        whole_change = signed(change.row.estimate.value, decimals)
        shift = format_change(change.row.judge or change.estimate, decimals)
        cause = f"{whole_change}, of which the judge {shift}"
    system = one_line(change.row.system)
    return Decision(
        status,
        f"{system}: {outcome} ({format_p(change.p_value)}); {cause}",
        format_change(change.estimate, decimals),
        estimate=change.estimate,
    )


def _verdict(
    suite: Suite,
    decision: Decision,
    title: str,
    criterion: str,
    expected: str,
) -> Verdict:
    """Return the verdict on a criterion.

    Without evidence it passes, unless the suite says otherwise.
    """
    return decision.verdict(
        suite.undecided or "pass",
        kind="baseline",
        name=title,
        line=suite.lines.get("baseline", 1),
        expected=expected,
        criterion=criterion,
    )
