"""Which texts pass by a judge and by people: four counts, rates of agreement, pass rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from judge.core.format import number, one_line, plural
from judge.core.records import Estimate
from judge.report.document import Block, Cell, Column, Content, Notice, Table, table
from judge.report.views.columns import estimate_cell, share_cell
from judge.stats.human_agreement import Rated, Row
from judge.stats.pass_agreement import PassAgreement
from judge.stats.pass_rates import CalibratedPassRates

_PLACES = 2
_NOTE = 300  # characters of the note on what could not be estimated
_STRONGEST_SHADE = 0.9  # of the largest count
HELP = (
    "Pass and fail: TPR is the share of people's passes that the judge passes, TNR the share of "
    "people's fails that it fails; the false positive rate is 1 − TNR. Cohen's kappa is corrected "
    "for chance, accuracy is not: if 90% pass, a judge that passes everything is 90% accurate. "
    "Intervals of shares: Wilson with Student's t over items.",
)


def pass_fail_summary(criteria: Sequence[Rated]) -> tuple[Table, ...]:
    """Tabulate accuracy, rates and kappa: a row per criterion and judge. Empty without any."""
    judged = []
    for rated in criteria:
        judged += [(rated, row) for row in rated.judges if row.passes]
    names_of_judges = {row.name for _, row in judged}
    has_panel = len(names_of_judges) > 1
    rows = []
    for rated, row in judged:
        row_name = rated.criterion
        if has_panel:
            row_name = f"{row_name} · {row.name}"
        if row.passes is not None:
            name_and_mark = f"{row_name} {row.passes.mark}"
            rows.append((name_and_mark, *_cells(row.passes)))
    if not rows:
        return ()
    table_key = (
        "Pass and fail, judge against people. TPR: share of people's passes that the judge passes. "
        "TNR: share of their fails that it fails."
    )
    return (_rates_table(rows, table_key, name="pass-fail", short=True),)


def pass_fail_sentences(criteria: Sequence[Rated]) -> Iterator[str]:
    """Say for each judge how many texts it passes that people fail, and the other way round."""
    for rated in criteria:
        for row in rated.judges:
            passes = row.passes
            if passes is None:
                continue
            n_failed = passes.judge_only + passes.neither
            n_passed = passes.both + passes.people_only
            judge_name = one_line(row.name)
            subject = f"On {rated.criterion}, {judge_name}"
            failed_texts = plural(n_failed, "text")
            passed_by_judge = f"passes {passes.judge_only:,}"
            on_failed = f"{passed_by_judge} of the {failed_texts} that people fail"
            failed_by_judge = f"fails {passes.people_only:,}"
            if not n_failed:
                texts = plural(n_passed, "text")
                on_all = f"{failed_by_judge} of the {texts}, all of which people pass"
                yield f"{subject} {on_all}."
            elif not n_passed:
                yield f"{subject} {on_failed}. People pass none."
            else:
                on_passed = f"{failed_by_judge} of the {n_passed:,} that they pass"
                yield f"{subject} {on_failed}, and {on_passed}."


def pass_fail_blocks(rated: Rated) -> Iterator[Block]:
    """Yield the four counts of each judge, the rates, and why some are missing."""
    rows = []
    for row in rated.judges:
        if row.passes is not None:
            yield _confusion_table(rated.criterion, row, row.passes)
            rows.append((row.name, *_cells(row.passes)))
    if rows:
        caption = f"{rated.criterion}: pass and fail, judge against people."
        yield _rates_table(
            rows, "", name=f"pass-fail-{rated.criterion}", caption=caption
        )
    yield from map(Notice, pass_fail_notes(rated))


def pass_fail_notes(rated: Rated) -> Iterator[str]:
    """Say which rates are missing, and why."""
    for row in rated.judges:
        if row.no_passes:
            yield f"No pass and fail for {row.name}: {row.no_passes}."
        if row.passes is None:
            continue
        lacking = row.passes.lacking
        titles = {
            "true_positive_rate": "TPR",
            "true_negative_rate": "TNR",
            "kappa": "kappa",
        }
        for measure, title in titles.items():
            reason = lacking.get(measure)  # type: ignore[call-overload]
            if reason:
                rate = f"{title} of {row.name}"
                yield f"{rated.criterion}: no {rate}: {reason}."


def pass_rate_blocks(
    criteria: Sequence[CalibratedPassRates], *, short: bool = False
) -> Iterator[Block]:
    """Yield the pass rates by the judge and by people: a row per criterion and system.

    Notes say what could not be estimated; a `short` table has none.
    """
    rows: list[Sequence[Content]] = []
    for pass_rates in criteria:
        for rate in pass_rates.rates:
            row_name = rate.system
            if len(criteria) > 1:
                row_name = f"{pass_rates.column} {pass_rates.mark} · {row_name}"
            people = rate.people
            row: list[Content] = [
                row_name,
                share_cell(rate.judge),
                share_cell(people.estimate),
                share_cell(people.people),
                people.estimate.n,
                people.judged,
                number(people.weight, 2),
                people.effective_ratings,
            ]
            rows.append(row)
    if rows:
        yield table(
            ("", "judge", "people", "ratings alone", "rated", "judged", "λ", "worth"),
            rows,
            "Shares that pass. People: estimated from ratings and judge (PPI++, as for means).",
            caption="Pass rates.",
            name="calibrated-pass-rates",
            short=short,
        )
    if short:
        return
    for calibrated in criteria:
        if calibrated.note:
            note = f"{calibrated.column}: {calibrated.note}"
            yield Notice(one_line(note, _NOTE))


def pass_fail_records(rated: Rated) -> Iterator[dict[str, Any]]:
    """Yield the rates of the judges as rows of the CSV file.

    The keys are name, kind, level, coefficient, value, low, high, n and method.
    """
    for row in rated.judges:
        if row.passes is None:
            continue
        for measure, estimate in row.passes.estimates.items():
            yield {
                "name": row.name,
                "kind": "judge",
                "level": "",
                "coefficient": measure,
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": estimate.n,
                "method": estimate.method,
            }


def _cells(passes: PassAgreement) -> list[Content]:
    """Return accuracy, both rates, kappa and the number of texts."""
    return [
        share_cell(passes.accuracy),
        _rate_cell(passes.true_positive_rate),
        _rate_cell(passes.true_negative_rate),
        estimate_cell(passes.kappa, _PLACES),
        passes.texts,
    ]


def _rate_cell(rate: Estimate | None) -> Cell:
    if rate is None:
        return Cell("n/a")
    return share_cell(rate)


def _rates_table(
    rows: Sequence[Sequence[Content]], table_key: str, **fields: Any
) -> Table:
    heads = [
        Column(head, better="higher") for head in ("accuracy", "TPR", "TNR", "kappa")
    ]
    return table(("", *heads, "texts"), rows, table_key, **fields)


def _confusion_table(criterion: str, row: Row, passes: PassAgreement) -> Table:
    """Tabulate the four counts. A darker cell has more texts; green is agreement, red is not."""
    most = max(passes.both, passes.judge_only, passes.people_only, passes.neither)

    def count(number: int, *, agree: bool) -> Cell:
        shade = None
        if number:
            sign = 1 if agree else -1
            shade = sign * _STRONGEST_SHADE * number / most
        return Cell(f"{number:,}", value=number, shade=shade)

    rule = "half of their verdicts" if passes.verdicts else "their mean rating"
    both_pass = count(passes.both, agree=True)
    only_people_pass = count(passes.people_only, agree=False)
    only_judge_passes = count(passes.judge_only, agree=False)
    both_fail = count(passes.neither, agree=True)
    rows = (
        ("people pass", both_pass, only_people_pass),
        ("people fail", only_judge_passes, both_fail),
    )
    texts = f"{passes.texts:,} texts by pass and fail"
    return table(
        ("", Column("passes", group="judge"), Column("fails", group="judge")),
        rows,
        f"Passes: {passes.mark}; by people: {rule}.",
        caption=f"{criterion}: {texts}, {row.name} against people.",
        name=f"pass-confusion-{criterion}-{row.name}",
    )
