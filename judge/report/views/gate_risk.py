"""How often a suite would change its verdicts if nothing had changed, and what would mend that."""

from __future__ import annotations

from collections.abc import Iterator

from judge.core.format import plural
from judge.report.document import Block, Cell, Paragraph, text_table
from judge.suite.risk import ACCEPTABLE, CaseRisk, SuiteRisk


def blocks(risk: SuiteRisk, suite_name: str) -> Iterator[Block]:
    """Yield a sentence about the suite and a table of its cases; `suite_name` names the suite."""
    sentences = _sentences(risk, suite_name)
    yield Paragraph(" ".join(sentences))
    rows = []
    for case in risk.cases:
        same_texts = _rate(case.same_texts, "unknown")
        other_items = _rate(case.other_items, "–")
        mend = _mend(case)
        rows.append((Cell(case.name), case.status, same_texts, other_items, mend))
    yield text_table(
        ("case", "verdict", "same texts", "other items", "mend"),
        rows,
        caption="Gate risk.",
        key=(
            f"Share of {risk.n_reruns:,} simulated reruns that change whether the case counts as "
            f"passed; mend: a change after which at most about {ACCEPTABLE:.0%} do."
        ),
        name="risk",
    )


def _sentences(risk: SuiteRisk, suite_name: str) -> Iterator[str]:
    now, then = ("passes", "fail") if risk.passed else ("fails", "pass")
    reason = "a single or failed reply does not show how replies vary"
    if risk.n_unknown == len(risk.cases):
        yield f"{suite_name} {now}; the risk on the same texts is unknown: {reason}."
    else:
        same = _rate(risk.same_texts, "")
        yield (
            f"{suite_name} {now}. If nothing changed, {same} of reruns on the same texts "
            f"would {then}."
        )
        if risk.n_unknown:
            unknown_cases = plural(risk.n_unknown, "case")
            yield f"This leaves out {unknown_cases}: {reason}."
    if risk.other_items is not None:
        on_other_items = _rate(risk.other_items, "")
        yield f"On other items of the same kind, {on_other_items} would {then}."


def _rate(share: float | None, unknown: str) -> str:
    if share is None:
        return unknown
    return "< 1%" if share < 0.005 else f"{share:.0%}"


def _mend(case: CaseRisk) -> str:
    """Return what brings the risk of a case down; "" if nothing has to."""
    mends = list(case.mends)
    is_unknown = case.same_texts is None and case.status != "error"
    if is_unknown:
        mends.append("more draws")
    if mends:
        return ", or ".join(mends)
    is_high = case.risk is not None and case.risk > ACCEPTABLE
    return "none found: expect something else" if is_high else ""
