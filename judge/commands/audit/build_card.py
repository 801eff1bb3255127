"""Build the judge card of an audit: its numbers, and the verdicts that come first, the worst at the top."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from judge.commands.audit.card import (
    DETECTED,
    FEWEST,
    AuditData,
    BiasFinding,
    JudgeCard,
    SensitivityCell,
    apply_holm,
    is_majority,
    is_significant,
    min_items_for_significance,
    sensitivity_table,
)
from judge.commands.audit.perturbations import CONTROL
from judge.commands.audit.probes import (
    FIRST,
    copying_bias,
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
    "verdict flips with the order": 0.1, "label changes with the wording": 0.1,
    "most used label": 0.75, "bottom": 0.75, "middle": 0.75, "top": 0.75,
}  # fmt: skip
"""Shares without a test that deserve a verdict: at least this large, with the interval above this or one half."""
_WORST, _BAD, _DOUBTFUL, _OPEN, _GOOD = 4.0, 3.0, 2.0, 1.0, 0.0
Reaction = Literal["rewards", "misses", "barely notices", "is inconclusive on", "notices"]
_SEVERITY: Mapping[Reaction, float] = {
    "rewards": _WORST, "misses": _BAD, "barely notices": _BAD, "is inconclusive on": _OPEN, "notices": _GOOD,
}  # fmt: skip
Verdict = tuple[float, str]
"""A severity and a sentence of the card; the most severe come first."""


def towards_worse(cell: SensitivityCell, column: Column) -> bool | None:
    """Return whether a significant change is towards the worse end; None if it is not significant."""
    if cell.mean_change is None or not is_significant(cell.mean_change):
        return None
    return (cell.mean_change.value < 0) != (column.better == "lower")


def moves_half(cell: SensitivityCell, *, opposite: bool = False) -> bool:
    """Return whether a change moves at least half of the scores in its direction (or the opposite one).

    Those that move the other way are subtracted. The half is tested by the low end of the share's interval; the mean by
    its test, unless that has too few texts.
    """
    toward, back = (cell.opposite, cell.rate) if opposite else (cell.rate, cell.opposite)
    significant = cell.mean_change is not None and is_significant(cell.mean_change)
    half = toward is not None and toward.low is not None and toward.low - _value(back) >= _HALF
    return half and (significant or is_majority(toward, cell.mean_change))


def reaction(cell: SensitivityCell, column: Column) -> Reaction:
    """Return how a criterion reacts to damage that it should notice."""
    worse, rate = towards_worse(cell, column), cell.rate
    if worse is False or (worse is None and moves_half(cell, opposite=True)):
        return "rewards"
    if moves_half(cell):
        return "notices"
    net = (rate.high or 0) - _value(cell.opposite) if rate else 0.0
    return "is inconclusive on" if net >= _HALF else "barely notices" if worse else "misses"


def succeeded(cell: SensitivityCell, column: Column) -> bool:
    """Return whether an attack improves the score more than its control does, and beyond the unchanged text's."""
    if cell.vs_original is not None and (cell.vs_original.value > 0) == (column.better == "lower"):
        return False
    worse = towards_worse(cell, column)
    return worse is False or (worse is None and moves_half(cell))


def is_notable(finding: BiasFinding) -> bool:
    """Return whether a bias deserves a verdict: a harmful significant one, or a large share without a test."""
    share, least = finding.estimate, _NOTABLE_SHARES.get(finding.measure)
    if finding.significant is None:
        return least is not None and share.value >= least and (share.low or 0.0) > min(least, _HALF)
    return finding.harmful and (finding.significant or finding.suggestive)


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
        *(
            (_WORST + 1, f"{name} has no score: {reason}.")
            for name, reason in (scoreless or {}).items()
        ),
        *_attack_verdicts(attacks, columns),
    ]
    biases = defaultdict[tuple[str, str], list[BiasFinding]](list)
    for finding in filter(is_notable, findings):
        biases[finding.probe, finding.measure].append(finding)
    for (
        similar
    ) in biases.values():  # if several criteria share a bias, the largest starts the sentence
        first, *more = sorted(
            similar, key=lambda finding: (not finding.significant, -_bias_size(finding))
        )
        others = [
            f"{finding.criterion} {number(100 * finding.estimate.value, 0)}%"
            if finding.unit == "share"
            else f"{finding.criterion} {signed(finding.estimate.value, 2)}"
            for finding in more
        ]
        also = f"; also {listed(others)}" if others else ""
        verdicts.append((_DOUBTFUL + _bias_size(first), f"{first.sentence}{also}."))
    verdicts += _damage_verdicts(cells, columns)
    return tuple(sentence for _, sentence in sorted(verdicts, key=lambda verdict: -verdict[0]))


def _value(share: Estimate | None) -> float:
    return share.value if share else 0.0


def _damage_verdicts(
    cells: Iterable[SensitivityCell], columns: Mapping[str, Column]
) -> Iterator[Verdict]:
    """Say how each criterion reacts to the damage it should notice, and which other damage changes its scores."""
    groups: dict[str, dict[Reaction, list[SensitivityCell]]] = defaultdict(
        lambda: defaultdict(list)
    )
    others = defaultdict[str, list[SensitivityCell]](list)
    for cell in cells:
        if cell.targeted and cell.rate is not None:
            groups[cell.criterion][reaction(cell, columns[cell.criterion])].append(cell)
        elif not cell.targeted and moves_half(cell):
            others[cell.criterion].append(cell)
    for name, by_reaction in groups.items():
        for verb in _SEVERITY:
            if matching := by_reaction.get(verb):
                lowest = min(_value(cell.rate) for cell in matching)
                severity = _SEVERITY[verb] - (lowest if _SEVERITY[verb] == _BAD else 0)
                yield severity, f"{name} {verb} {_evidence(matching, columns[name])}."
    for name, matching in others.items():
        yield (
            _DOUBTFUL,
            f"{name} also reacts to damage of other criteria: {_evidence(matching, columns[name])}.",
        )


def _evidence(cells: Iterable[SensitivityCell], column: Column) -> str:
    """Write `typos (falls in 92% of 40 texts, rises in 3%)`."""
    down, up = ("falls", "rises") if column.better != "lower" else ("rises", "falls")
    parts = []
    for cell in cells:
        back = (
            f", {up} in {number(100 * _value(cell.opposite), 0)}%" if _value(cell.opposite) else ""
        )
        parts.append(f"{cell.change} ({down} in {_of_texts(cell)}{back})")
    return listed(parts)


def _of_texts(cell: SensitivityCell) -> str:
    """Write `92% of 40 texts`."""
    return f"{number(100 * _value(cell.rate), 0)}% of {plural(cell.rate.n if cell.rate else 0, 'text')}"


def _attack_verdicts(
    attacks: Sequence[SensitivityCell], columns: Mapping[str, Column]
) -> Iterator[Verdict]:
    """Say what each attack gains, first the criterion that it gains most from, and bound what the others can gain."""
    scored = [cell for cell in attacks if not cell.control and cell.mean_change is not None]
    failed = []
    for name in dict.fromkeys(cell.change for cell in scored):
        successes = [
            cell
            for cell in scored
            if cell.change == name and succeeded(cell, columns[cell.criterion])
        ]
        if not successes:
            failed.append(name)
            continue
        tested = [
            cell for cell in successes if cell.mean_change and is_significant(cell.mean_change)
        ]
        first, *more = sorted(successes, key=lambda cell: (cell not in tested, -_value(cell.rate)))
        verb = "lowers" if columns[first.criterion].better == "lower" else "raises"
        open_ = "" if first in tested else " (too few to test)"
        also = f"; also {listed([cell.criterion for cell in more])}" if more else ""
        sentence = (
            f"The attack “{name}” {verb} {first.criterion} in {_of_texts(first)}{open_}{also}."
        )
        yield (_WORST if first in tested else _BAD) + _value(first.rate), sentence
    if not failed:
        return
    subject = f"{plural(len(failed), 'attack')} ({', '.join(failed)})"
    unmoved = [
        (cell.mean_change, columns[cell.criterion]) for cell in scored if cell.change in failed
    ]
    known = [
        (change, -1.0 if column.better == "lower" else 1.0) for change, column in unmoved if change
    ]
    fewest = min(change.n for change, _ in known)
    if fewest < (least := max(FEWEST, min_items_for_significance(len(attacks)))):
        yield (
            _OPEN,
            f"Inconclusive on {subject}: {plural(fewest, 'text')}, at least {least} needed.",
        )
    else:
        most = max(up * ((change.high if up > 0 else change.low) or 0.0) for change, up in known)
        yield _GOOD, f"{subject} without a significant gain: at most {signed(max(0.0, most), 2)}."


def _bias_size(finding: BiasFinding) -> float:
    """Return a bias's size, 0–1; points count as a rough share of a five-point scale."""
    value = finding.estimate.value
    return min(
        1.0,
        abs(value - 0.5)
        if finding.measure == FIRST
        else abs(value) / (4 if "points" in finding.unit else 1),
    )


_NOTED_FAILURES = 0.05  # share of failed judgments from which a note is added


def build_card(
    evidence: AuditData,
    changes: Mapping[str, str],
    attacks: Sequence[str],
    neutral: Sequence[str],
    *,
    seed: int = 0,
) -> JudgeCard:
    """Build the card of a judge.

    `changes` maps each requested damage to its criterion; `attacks` and `neutral` are the names of the other changes.
    Each is empty if its probe was not requested. Attacks are compared with the control in their place (what any
    addition does), and the control with the unchanged output. `skipped` gives the reason for each requested change
    without a text and each bias without a finding. p-values have Holm's correction: over the cells of damages, over
    those of attacks, and over all findings.
    """
    damaged = sensitivity_table(evidence, changes, seed=seed)
    beset = sensitivity_table(
        evidence, dict.fromkeys(attacks, ""), rises=True, control=CONTROL, seed=seed
    )
    findings, without = _findings(evidence, neutral, seed)
    # Criteria by which no text has a score.
    scored = {score.column for score in evidence.changed.scores}
    failed = Counter((row.column, row.error) for row in evidence.changed.failures)
    scoreless = {
        name: f"all its judgments failed ({listed([f'{n:,} {e}' for (c, e), n in failed.items() if c == column.name])})"
        for name, column in evidence.columns.items()
        if column.name not in scored and any(c == column.name for c, _ in failed)
    }
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
            **{
                n: f"applies to none of the {texts}"
                for n in (*changes, *neutral, *attacks)
                if n not in known
            },
            **{
                f"sensitivity of {name}": why
                for name in all_criteria
                if name not in with_own_damage
            },
            **evidence.unavailable,
            **scoreless,
        },
        verdicts=summarize(damaged, beset, findings, evidence.columns, scoreless),
        notes=tuple(_notes(evidence, tested, total, failures)),
        failures=dict(failures.most_common()),
        info=_info(evidence, seed) | {"judgments": total, "failed": failures.total()},
    )


def _findings(
    evidence: AuditData, neutral: Sequence[str], seed: int
) -> tuple[tuple[BiasFinding, ...], dict[str, str]]:
    """Return the findings of every requested bias, and why others have none."""
    if not (neutral or evidence.natural or evidence.wordings or evidence.repeats or evidence.pairs):
        return (), {}
    if any(
        sample.extra.get("generator")
        for sample in (evidence.natural.samples if evidence.natural else ())
    ):
        no_family = f"no item has scored texts of both {evidence.model}'s family and another (column `generator`)"
    else:
        no_family = "the data have no column `generator` with the model that wrote each text"
    probes = {
        "position": (
            position_bias(evidence, seed),
            "no pair of different texts was judged in both orders",
        ),
        "verbosity": (
            verbosity_bias(evidence, neutral, seed),
            f"no item has a lengthened text, and fewer than {FEWEST} have two texts to compare",
        ),
        "self-preference": (self_preference(evidence, seed), no_family),
        "extractiveness": (
            copying_bias(evidence, neutral, seed),
            f"no copied lead was scored, and fewer than {FEWEST} items have two texts that copy differently",
        ),
        "wording": (wording_sensitivity(evidence, seed), "no criterion has scores in two wordings"),
        "scale use": (
            scale_usage(evidence),
            "no original has a score on a scale with ends or labels",
        ),
        "repeats": (repeatability(evidence, seed), "no text has two draws with a score"),
    }
    found = {name: list(findings) for name, (findings, _) in probes.items()}
    without = {name: why for name, (_, why) in probes.items() if not found[name]}
    return apply_holm(chain.from_iterable(found.values()), evidence.columns), without


def _notes(
    evidence: AuditData,
    tested: Mapping[str, Sequence[Estimate | None]],
    total: int,
    failures: Counter[str],
) -> Iterator[str]:
    """Yield what limits the numbers; `tested` are the estimates of each section, corrected together."""
    texts = len(evidence.originals)
    needed = {
        name: min_items_for_significance(
            sum(estimate is not None and estimate.p is not None for estimate in estimates)
        )
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
    endless = [
        name
        for name, column in evidence.columns.items()
        if column.low is None or column.high is None
    ]
    if endless and (tested["sensitivity"] or tested["injection"]):
        yield f"Without ends of the scale ({', '.join(endless)}), half the originals' standard deviation counts."


def _info(evidence: AuditData, seed: int) -> dict[str, Any]:
    """Return facts about the judge, the texts and the settings as plain JSON."""
    return {
        "model": evidence.model,
        "language": evidence.language,
        "criteria": {
            name: {
                "column": column.name, "signature": str(column.signature), "low": column.low, "high": column.high,
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
