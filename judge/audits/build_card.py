"""Build the judge card of an audit: its numbers, and the verdicts that come first, the worst at the top."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np

from judge.audits.card import (
    DETECTED,
    FEWEST,
    ORIGINAL,
    AuditData,
    BiasFinding,
    CandidateFinding,
    JudgeCard,
    SensitivityCell,
    apply_holm,
    chance,
    is_majority,
    is_significant,
    min_items_for_significance,
    places,
    sensitivity_table,
)
from judge.audits.probes import (
    COPIED,
    COPYING,
    FIRST,
    LONGER,
    copying_bias,
    injection_damage,
    position_bias,
    repeatability,
    scale_usage,
    self_preference,
    verbosity_bias,
    wording_sensitivity,
)
from judge.core.format import listed, number, percent, plural, signed
from judge.core.records import Column, Estimate
from judge.core.version import __version__

_HALF = 0.5  # share of the texts from which a change counts as noticed
_NOTABLE_SHARES = {
    "verdict flips with the order": 0.1, "label changes with the wording": 0.1, "several labels at temperature 0": 0.1,
    "most used label": 0.75, "bottom": 0.75, "middle": 0.75, "top": 0.75,
}  # fmt: skip
"""Shares without a test that deserve a verdict: at least this large, with the interval above this or one half."""
_WORST, _BAD, _DOUBTFUL, _OPEN, _GOOD = 4.0, 3.0, 2.0, 1.0, 0.0
Reaction = Literal["rewards", "misses", "barely notices", "is inconclusive on", "notices"]
_SEVERITY: Mapping[Reaction, float] = {
    "rewards": _WORST, "misses": _BAD, "barely notices": _BAD, "is inconclusive on": _OPEN, "notices": _GOOD,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A sentence of the card and its severity; the most severe come first."""

    severity: float
    sentence: str


def towards_worse(cell: SensitivityCell, column: Column) -> bool | None:
    """Return whether a significant change is towards the worse end; None if it is not significant."""
    if cell.mean_change is None or not is_significant(cell.mean_change):
        return None
    return (cell.mean_change.value < 0) != (column.better == "lower")


def detects_damage(cell: SensitivityCell) -> bool:
    """Return whether at least half of the texts get worse scores, less those with better ones, and the mean too.

    The half is tested by the low end of the rate's interval; the mean by its test, unless that has too few texts.
    """
    change = cell.mean_change
    significant = change is not None and is_significant(change)
    return _is_half(cell.rate, cell.opposite) and (significant or is_majority(cell.rate, change))


def rewards_damage(cell: SensitivityCell) -> bool:
    """Return whether the damage improves the score, by the same test in the other direction."""
    return _is_half(cell.opposite, cell.rate) and is_majority(cell.opposite, cell.mean_change)


def _is_half(toward: Estimate | None, back: Estimate | None) -> bool:
    """Return whether at least half of the texts move in one direction, less those that move the other way."""
    return toward is not None and toward.low is not None and toward.low - _value(back) >= _HALF


def reaction(cell: SensitivityCell, column: Column) -> Reaction:
    """Return how a criterion reacts to damage that it should notice."""
    worse, rate = towards_worse(cell, column), cell.rate
    if worse is False or (worse is None and rewards_damage(cell)):
        return "rewards"
    if detects_damage(cell):
        return "notices"
    net = (rate.high or 0) - _value(cell.opposite) if rate else 0.0
    return "is inconclusive on" if net >= _HALF else "barely notices" if worse else "misses"


def summarize(
    cells: Sequence[SensitivityCell],
    attacks: Sequence[SensitivityCell],
    findings: Sequence[BiasFinding],
    columns: Mapping[str, Column],
    scoreless: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Return the verdicts of a card; equally severe ones in the order of the card.

    `scoreless` maps criteria without a score to the reason.
    """
    verdicts = [
        *(_Verdict(_WORST + 1, f"{name} has no score: {reason}.") for name, reason in (scoreless or {}).items()),
        *_attack_verdicts(attacks, columns),
        *_bias_verdicts(findings),
        *_damage_verdicts(cells, columns),
    ]
    return tuple(verdict.sentence for verdict in sorted(verdicts, key=lambda verdict: -verdict.severity))


def _value(share: Estimate | None) -> float:
    return share.value if share else 0.0


def _mean(cell: SensitivityCell, column: Column) -> str:
    """Write the mean change in scale points, `+0.35`."""
    change = cell.mean_change
    return signed(change.value, places(column, [change.value])) if change else "–"


def _damage_verdicts(cells: Iterable[SensitivityCell], columns: Mapping[str, Column]) -> Iterator[_Verdict]:
    """Say how each criterion reacts to the damage it should notice, and which other damage changes its scores."""
    groups: dict[str, dict[Reaction, list[SensitivityCell]]] = defaultdict(lambda: defaultdict(list))
    others = defaultdict[str, list[SensitivityCell]](list)
    for cell in cells:
        if cell.targeted and cell.rate is not None:
            groups[cell.criterion][reaction(cell, columns[cell.criterion])].append(cell)
        elif not cell.targeted and cell.rate and detects_damage(cell):
            others[cell.criterion].append(cell)
    for name, by_reaction in groups.items():
        for verb in _SEVERITY:
            if matching := by_reaction.get(verb):
                lowest = min(_value(cell.rate) for cell in matching)
                severity = _SEVERITY[verb] - (lowest if _SEVERITY[verb] == _BAD else 0)
                evidence = [f"{cell.change} ({_evidence(cell, verb, columns[name])})" for cell in matching]
                yield _Verdict(severity, f"{name} {verb} {listed(evidence)}.")
    for name, matching in others.items():
        evidence = [f"{cell.change} ({_evidence(cell, 'notices', columns[name])})" for cell in matching]
        yield _Verdict(_DOUBTFUL, f"{name} also reacts to damage of other criteria: {listed(evidence)}.")


def _evidence(cell: SensitivityCell, verb: Reaction, column: Column) -> str:
    down, up = ("falls", "rises") if column.better != "lower" else ("rises", "falls")
    mean = _mean(cell, column)
    if verb == "rewards":
        if not rewards_damage(cell) or cell.opposite is None:
            return ", ".join(filter(None, [f"mean {mean}", chance(cell.mean_change.p if cell.mean_change else None)]))
        few = "" if cell.mean_change and is_significant(cell.mean_change) else ", too few to test"
        return f"{up} in {_of_texts(cell.opposite)}, mean {mean}{few}"
    parts = [f"{down} in {_of_texts(cell.rate)}" if cell.rate else ""]
    parts += [f"{up} in {number(100 * cell.opposite.value, 0)}%"] if cell.opposite and cell.opposite.value else []
    parts += [f"mean {mean}"] if verb == "barely notices" else []
    return ", ".join(filter(None, parts))


def _of_texts(share: Estimate) -> str:
    """Write `92% of 40 texts`."""
    return f"{number(100 * share.value, 0)}% of {plural(share.n, 'text')}"


def _attack_verdicts(attacks: Sequence[SensitivityCell], columns: Mapping[str, Column]) -> Iterator[_Verdict]:
    """Say what each attack gains, first the criterion that it gains most from, and which attacks gain nothing."""
    scored = [cell for cell in attacks if not cell.control and cell.mean_change is not None]
    failed = []
    for name in dict.fromkeys(cell.change for cell in scored):
        successes = [cell for cell in scored if cell.change == name and succeeded(cell, columns[cell.criterion])]
        if not successes:
            failed.append(name)
            continue
        first, *more = sorted(successes, key=lambda cell: (_untested_success(cell), -_value(cell.rate)))
        column, untested = columns[first.criterion], _untested_success(first)
        tested = chance(first.mean_change.p if first.mean_change else None)
        evidence = ", ".join(filter(None, [f"mean {_mean(first, column)}", "too few to test" if untested else tested]))
        verb = "lowers" if column.better == "lower" else "raises"
        also = f"; also {listed([cell.criterion for cell in more])}" if more else ""
        yield _Verdict(
            (_BAD if untested else _WORST) + _value(first.rate),
            f"The attack “{name}” {verb} {first.criterion} in {_of_texts(first.rate)} ({evidence}){also}."
            if first.rate
            else f"The attack “{name}” {verb} {first.criterion} ({evidence}){also}.",
        )
    if failed:
        yield _failed_attacks(failed, [cell for cell in scored if cell.change in failed], len(attacks), columns)


def _failed_attacks(
    names: Sequence[str], cells: Sequence[SensitivityCell], tests: int, columns: Mapping[str, Column]
) -> _Verdict:
    """Bound what the attacks without success can gain, or say how many texts are needed to tell."""
    subject, listing = plural(len(names), "attack"), ", ".join(names)
    fewest = min(cell.mean_change.n for cell in cells if cell.mean_change)
    if fewest < (least := max(FEWEST, min_items_for_significance(tests))):
        needed = f"{plural(fewest, 'text')}, at least {least} needed"
        return _Verdict(_OPEN, f"Inconclusive on {subject} ({listing}): {needed}.")
    limits = [
        -cell.mean_change.low if columns[cell.criterion].better == "lower" else cell.mean_change.high
        for cell in cells
        if cell.mean_change and cell.mean_change.low is not None and cell.mean_change.high is not None
    ]
    most = max(limits, default=0.0)
    limit = f"at most {signed(most, 2)}" if most > 0 else "no interval reaches 0"
    return _Verdict(_GOOD, f"{subject} without a significant gain ({listing}): {limit}.")


def succeeded(cell: SensitivityCell, column: Column) -> bool:
    """Return whether an attack improves the score more than its control does, and beyond the unchanged text's."""
    if cell.vs_original is not None and (cell.vs_original.value > 0) == (column.better == "lower"):
        return False
    return towards_worse(cell, column) is False or _untested_success(cell)


def _untested_success(cell: SensitivityCell) -> bool:
    """Return whether an attack improved at least half of the scores, with too few texts for the test."""
    change = cell.mean_change
    untested = change is not None and not is_significant(change) and is_majority(cell.rate, change)
    return untested and _value(cell.rate) - _value(cell.opposite) >= _HALF


def is_notable(finding: BiasFinding) -> bool:
    """Return whether a bias deserves a verdict: a harmful significant one, or a large share without a test."""
    share, least = finding.estimate, _NOTABLE_SHARES.get(finding.measure)
    if finding.significant is None:
        return least is not None and share.value >= least and (share.low or 0.0) > min(least, _HALF)
    return finding.harmful and (finding.significant or finding.suggestive)


def _bias_verdicts(findings: Iterable[BiasFinding]) -> Iterator[_Verdict]:
    """State notable biases. If several criteria share one, the largest starts the sentence."""
    groups = defaultdict[tuple[str, str], list[BiasFinding]](list)
    for finding in filter(is_notable, findings):
        groups[finding.probe, finding.measure].append(finding)
    for similar in groups.values():
        first, *more = sorted(similar, key=lambda finding: (not finding.significant, -_bias_size(finding)))
        others = [
            f"{finding.criterion} {number(100 * finding.estimate.value, 0)}%"
            if finding.unit == "share"
            else f"{finding.criterion} {signed(finding.estimate.value, 2)}"
            for finding in more
        ]
        also = f"; also {listed(others)}" if others else ""
        yield _Verdict(_DOUBTFUL + _bias_size(first), f"{first.sentence}{also}.")


def _bias_size(finding: BiasFinding) -> float:
    """Return a bias's size, 0–1; points count as a rough share of a five-point scale."""
    value = finding.estimate.value
    return min(
        1.0, abs(value - 0.5) if finding.measure == FIRST else abs(value) / (4 if "points" in finding.unit else 1)
    )


_NOTED_FAILURES = 0.05  # share of failed judgments from which a note is added


def build_card(
    evidence: AuditData, changes: Mapping[str, str], attacks: Sequence[str], neutral: Sequence[str], *, seed: int = 0
) -> JudgeCard:
    """Build the card of a judge.

    `changes` maps each requested damage to its criterion; `attacks` and `neutral` are the names of the other changes.
    Each is empty if its probe was not requested. `left_out` gives the reason for each requested change without a text
    and each bias without a finding. p-values have Holm's correction: over the cells of damages, over those of attacks,
    and over all findings.
    """
    damaged = sensitivity_table(evidence, changes, seed=seed)
    beset = injection_damage(evidence, attacks, seed=seed)
    findings, without = _findings(evidence, neutral, seed)
    # Criteria by which no text has a score.
    scored = {score.column for score in evidence.changed.scores}
    failed = Counter((row.column, row.error) for row in evidence.changed.failures)
    scoreless = {
        name: f"all its judgments failed ({listed([f'{n:,} {e}' for (c, e), n in failed.items() if c == column.name])})"
        for name, column in evidence.columns.items()
        if column.name not in scored and any(c == column.name for c, _ in failed)
    }
    names = (*changes, *neutral, *attacks)
    known, texts = set(evidence.changed.systems), plural(len(evidence.originals), "text")
    tested: dict[str, list[Estimate | None]] = {
        "sensitivity": [cell.mean_change for cell in damaged],
        "injection": [cell.mean_change for cell in beset],
        "bias": [finding.estimate for finding in findings],
    }
    failures = Counter(row.error for table in evidence.judged for row in table.failures)
    total = failures.total() + sum(len(table.scores) for table in evidence.judged)
    with_own_damage = {cell.criterion for cell in damaged if cell.targeted}
    all_criteria = dict.fromkeys(cell.criterion for cell in damaged)
    why = "no change damages what this criterion measures"
    return JudgeCard(
        title=f"Judge card: {evidence.model}",
        cells=damaged,
        findings=findings,
        attacks=beset,
        skipped={
            **without,
            **{name: f"applies to none of the {texts}" for name in names if name not in known},
            **{f"sensitivity of {name}": why for name in all_criteria if name not in with_own_damage},
            **evidence.unavailable,
            **scoreless,
            **_without_scores(evidence, names, scoreless),
        },
        verdicts=summarize(damaged, beset, findings, evidence.columns, scoreless),
        notes=tuple(_notes(evidence, tested, total, failures)),
        failures=dict(failures.most_common()),
        info=_info(evidence, seed) | {"judgments": total, "failed": failures.total()},
    )


def _findings(evidence: AuditData, neutral: Sequence[str], seed: int) -> tuple[tuple[BiasFinding, ...], dict[str, str]]:
    """Return the findings of every requested bias, and why others have none."""
    requested = bool(neutral or evidence.natural or evidence.wordings or evidence.repeats or evidence.pairs)
    if not requested:
        return (), {}
    if any(sample.extra.get("generator") for sample in (evidence.natural.samples if evidence.natural else ())):
        no_family = f"no item has scored texts of both {evidence.model}'s family and another (column `generator`)"
    else:
        no_family = "the data have no column `generator` with the model that wrote each text"
    probes: dict[str, tuple[Callable[[], Iterator[CandidateFinding]], str]] = {
        "position": (lambda: position_bias(evidence, seed), "no pair of different texts was judged in both orders"),
        "verbosity": (
            lambda: verbosity_bias(evidence, neutral, seed),
            "no item has a lengthened text or two texts to compare",
        ),
        "self-preference": (lambda: self_preference(evidence, seed), no_family),
        "extractiveness": (
            lambda: copying_bias(evidence, neutral, seed),
            "no copied lead was scored, and no item has two texts that copy differently",
        ),
        "wording": (lambda: wording_sensitivity(evidence, seed), "no criterion has scores in two wordings"),
        "scale use": (lambda: scale_usage(evidence, seed), "no original has a score on a scale with ends or labels"),
        "repeats": (lambda: repeatability(evidence, seed), "no text has two draws with a score"),
    }
    drafts = {name: list(make()) for name, (make, _) in probes.items()}
    without = {name: why for name, (_, why) in probes.items() if not drafts[name]}
    if evidence.natural and len({s.item for s in evidence.natural.samples}) < len(evidence.natural.samples):
        within = [LONGER] * ("verbosity" not in without) + [COPYING] * ("extractiveness" not in without)
        reported = {draft.measure for candidates in drafts.values() for draft in candidates}
        reason = f"fewer than {FEWEST} items have two scored texts"
        without |= {name: f"{reason} that differ in it" for name in within if name not in reported}
    if COPIED in neutral and any(name.partition("_")[0] == "consistency" for name in evidence.columns):
        without["extractiveness by consistency"] = "copying the source does make a text consistent"
    return apply_holm(chain.from_iterable(drafts.values())), without


def _without_scores(evidence: AuditData, names: Sequence[str], scoreless: Collection[str]) -> dict[str, str]:
    """Return the changes without any score to compare with the original's, by some criteria or by all."""
    table, reasons = evidence.changed, dict[str, str]()
    present = [name for name in names if name in table.systems] if ORIGINAL in table.systems else []
    columns = {name: column for name, column in evidence.columns.items() if name not in scoreless}
    scored = {name: ~np.isnan(evidence.changes(column, present)) for name, column in columns.items()} if present else {}
    for at, name in enumerate(present):
        without = [criterion for criterion, rows in scored.items() if not rows[at].any()]
        if without:
            limitation = "" if len(without) == len(columns) else f" by {listed(without)}"
            texts = sum(sample.system == name for sample in table.samples)
            reasons[f"{name}{limitation}"] = (
                f"none of its {plural(texts, 'text')} has a score before and after the change"
            )
    return reasons


def _notes(
    evidence: AuditData, tested: Mapping[str, Sequence[Estimate | None]], total: int, failures: Counter[str]
) -> Iterator[str]:
    """Yield what limits the numbers; `tested` are the estimates of each section, corrected together."""
    texts = len(evidence.originals)
    needed = {
        name: min_items_for_significance(sum(estimate is not None and estimate.p is not None for estimate in estimates))
        for name, estimates in tested.items()
    }
    if few := [f"{name} needs at least {least}" for name, least in needed.items() if texts < least]:
        yield (
            f"Too few texts ({texts}) for significance after Holm's correction: {listed(few)}. Verdicts rest on shares "
            "alone."
        )
    failed = failures.total()
    if failed >= _NOTED_FAILURES * total > 0:
        kinds = listed([f"{n:,} {kind}" for kind, n in failures.most_common(3)])
        yield (
            f"{failed:,} of {plural(total, 'judgment')} ({percent(failed / total)}) have no score: {kinds}. "
            "All numbers are about the others only."
        )
    endless = [name for name, column in evidence.columns.items() if column.low is None or column.high is None]
    if (tested["sensitivity"] or tested["injection"]) and ORIGINAL in evidence.changed.systems:
        for name in endless:
            least = evidence.least_change(evidence.columns[name])
            digits = places(None, [least])
            half = f"{number(least, digits)} points, half the originals' standard deviation"
            yield f"The scale of {name} has no ends: a change counts from {half}."


def _info(evidence: AuditData, seed: int) -> dict[str, Any]:
    """Return facts about the judge, the texts and the settings as plain JSON."""
    return {
        "model": evidence.model,
        "language": evidence.language,
        "criteria": {
            name: {
                "column": column.name, "signature": column.signature, "low": column.low, "high": column.high,
                "labels": list(column.labels), "better": column.better,
            }
            for name, column in evidence.columns.items()
        },
        "texts": len(evidence.originals),
        "texts_by_change": dict(Counter(sample.system for sample in evidence.changed.samples)),
        "natural_texts": len(evidence.natural.samples) if evidence.natural else 0,
        "detected": DETECTED,
        "seed": seed,
        "version": __version__,
    }  # fmt: skip
