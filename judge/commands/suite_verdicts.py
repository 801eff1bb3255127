"""Decide the cases and limits of a suite from its results, and update its baseline."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judge.commands.compare.command import compare
from judge.commands.finished_runs import without_seen_ratings
from judge.commands.prepared_suites import PreparedSuite
from judge.commands.suite_estimates import longest_prompt_tokens, uncached_price
from judge.core.format import one_line, plural
from judge.data import ledger
from judge.report.views.servers import server_notes
from judge.results.comparison import RunComparison
from judge.results.result import Result
from judge.suite import baseline as baselines
from judge.suite.baseline import Baseline, compare_changed_texts, compare_with_baseline
from judge.suite.case import Case, Form, Verdict, joined
from judge.suite.case_scores import columns
from judge.suite.evaluate import Outcome, evaluate_case, limits
from judge.suite.gate_risk import GateRisk, JudgedCase
from judge.suite.load import SuiteTexts
from judge.suite.risk import SuiteRisk
from judge.suite.schema import Suite
from judge.table import Table, split_rows


def decide_suite(prepared: PreparedSuite, results: Mapping[Form, Result]) -> Outcome:
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
