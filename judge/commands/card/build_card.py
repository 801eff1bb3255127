"""Build a judge card: its lines, its verdict, its observations and its numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from judge.commands.card.card import (
    DETECTED,
    FEWEST,
    BiasFinding,
    CardEvidence,
    JudgeCard,
    SensitivityCell,
)
from judge.commands.card.effects import (
    apply_holm,
    is_significant,
    min_items_for_significance,
    sensitivity_table,
)
from judge.commands.card.lines import Measurements, card_lines
from judge.commands.card.perturbations import CONTROL, SHUFFLED
from judge.commands.card.probes import (
    FIRST,
    FLIPS,
    QUESTION_WORDING,
    SENTENCE_ORDER,
    copying_bias,
    position_bias,
    question_sensitivity,
    repeatability,
    scale_usage,
    self_preference,
    sentence_order,
    verbosity_bias,
    wording_sensitivity,
)
from judge.commands.card.reactions import (
    Reaction,
    moves_half,
    reaction,
    succeeded,
    value_of,
)
from judge.commands.card.verdict import criterion_verdicts, verdict_sentences
from judge.core.failure_kinds import failure_kind
from judge.core.format import listed, number, percent, plural, signed
from judge.core.records import Column, Estimate
from judge.core.version import __version__

_HALF = 0.5
_NOTABLE_SHARES = {
    FLIPS: 0.1,
    "label changes with the wording": 0.1,
    "label changes with the question": 0.1,
    "most used label": 0.75,
    "bottom": 0.75,
    "middle": 0.75,
    "top": 0.75,
}
"""Shares without a test that deserve a verdict: at least this large, with the interval above this
or one half.
"""
# One apart, because the size of an effect, 0 to 1, is added to or taken from the severity.
_WORST, _BAD, _DOUBTFUL, _OPEN, _GOOD = 4.0, 3.0, 2.0, 1.0, 0.0
_SEVERITY: Mapping[Reaction, float] = {
    "rewards": _WORST,
    "misses": _BAD,
    "barely notices": _BAD,
    "is inconclusive on": _OPEN,
    "notices": _GOOD,
}
Verdict = tuple[float, str]
"""A severity and a sentence of the card; the most severe come first."""


def is_notable(finding: BiasFinding) -> bool:
    """Return whether a bias deserves a verdict.

    A harmful significant one does, and a large share without a test.
    """
    if finding.significant is not None:
        return finding.harmful and (finding.significant or finding.suggestive)
    least = _NOTABLE_SHARES.get(finding.measure)
    share = finding.estimate
    if least is None or share.value < least:
        return False
    return (share.low or 0.0) > min(least, _HALF)


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
    verdicts: list[Verdict] = []
    for criterion_name, reason in (scoreless or {}).items():
        # A successful attack adds its share of texts, at most 1, to _WORST. This one comes before
        # it, also if the share is 1, because the sort keeps the order of equal ones.
        verdicts.append((_WORST + 1, f"{criterion_name} has no score: {reason}."))
    verdicts += _attack_verdicts(attacks, columns)
    verdicts += _bias_verdicts(findings)
    verdicts += _damage_verdicts(cells, columns)
    ordered = sorted(verdicts, key=lambda verdict: -verdict[0])
    return tuple(sentence for _, sentence in ordered)


def _bias_verdicts(findings: Iterable[BiasFinding]) -> Iterator[Verdict]:
    """Yield a sentence for each bias. If several criteria share it, the largest comes first."""
    biases = defaultdict[tuple[str, str], list[BiasFinding]](list)
    for finding in filter(is_notable, findings):
        biases[finding.probe, finding.measure].append(finding)

    def order(finding: BiasFinding) -> tuple[bool, float]:
        return not finding.significant, -_bias_size(finding)

    for similar in biases.values():
        similar.sort(key=order)
        largest, *more = similar
        others = []
        for finding in more:
            size = signed(finding.estimate.value, 2)
            if finding.unit == "share":
                size = _percentage(finding.estimate.value)
            others.append(f"{finding.criterion} {size}")
        also = f"; also {listed(others)}" if others else ""
        severity = _DOUBTFUL + _bias_size(largest)
        yield severity, f"{largest.sentence}{also}."


def _percentage(share: float) -> str:
    return number(100 * share, 0) + "%"


def _damage_verdicts(
    cells: Iterable[SensitivityCell], columns: Mapping[str, Column]
) -> Iterator[Verdict]:
    """Say how each criterion reacts to its own damage and to other damage."""
    reactions: dict[str, dict[Reaction, list[SensitivityCell]]] = {}
    others: dict[str, list[SensitivityCell]] = {}
    for cell in cells:
        if cell.targeted and cell.rate is not None:
            by_reaction = reactions.setdefault(cell.criterion, {})
            cell_reaction = reaction(cell, columns[cell.criterion])
            by_reaction.setdefault(cell_reaction, []).append(cell)
        elif not cell.targeted and moves_half(cell):
            others.setdefault(cell.criterion, []).append(cell)
    for criterion_name, by_reaction in reactions.items():
        for verb, severity in _SEVERITY.items():
            matching = by_reaction.get(verb)
            if not matching:
                continue
            if severity == _BAD:
                # Of two criteria that miss damage, the one that notices less of it comes first.
                severity -= min(value_of(cell.rate) for cell in matching)
            evidence = _evidence(matching, columns[criterion_name])
            yield severity, f"{criterion_name} {verb} {evidence}."
    for criterion_name, matching in others.items():
        evidence = _evidence(matching, columns[criterion_name])
        subject = f"{criterion_name} also reacts to damage of other criteria"
        yield _DOUBTFUL, f"{subject}: {evidence}."


def _evidence(cells: Iterable[SensitivityCell], column: Column) -> str:
    """Write `typos (falls in 92% of 40 texts, rises in 3%)`."""
    down = "falls"
    up = "rises"
    if column.better == "lower":
        down = "rises"
        up = "falls"
    reactions = []
    for cell in cells:
        moves = f"{down} in {_of_texts(cell)}"
        opposite = value_of(cell.opposite)
        if opposite:
            moves += f", {up} in {_percentage(opposite)}"
        reactions.append(f"{cell.change} ({moves})")
    return listed(reactions)


def _of_texts(cell: SensitivityCell) -> str:
    """Write `92% of 40 texts`."""
    n_texts = cell.rate.n if cell.rate else 0
    percentage = _percentage(value_of(cell.rate))
    texts = plural(n_texts, "text")
    return f"{percentage} of {texts}"


def _attack_verdicts(
    attacks: Sequence[SensitivityCell], columns: Mapping[str, Column]
) -> Iterator[Verdict]:
    """Say what each attack gains, and bound what the others can gain.

    The criterion that an attack gains most from comes first.
    """
    scored = [
        cell for cell in attacks if not cell.control and cell.mean_change is not None
    ]
    cells_by_attack: dict[str, list[SensitivityCell]] = {}
    for cell in scored:
        cells_by_attack.setdefault(cell.change, []).append(cell)
    unsuccessful = []
    for attack_name, cells in cells_by_attack.items():
        successes = [cell for cell in cells if succeeded(cell, columns[cell.criterion])]
        if successes:
            yield _successful_attack(attack_name, successes, columns)
        else:
            unsuccessful.append(attack_name)
    if not unsuccessful:
        return
    number_of_attacks = plural(len(unsuccessful), "attack")
    names = ", ".join(unsuccessful)
    subject = f"{number_of_attacks} ({names})"
    gains: list[float] = []
    fewest: list[int] = []
    for attack_name in unsuccessful:
        for cell in cells_by_attack[attack_name]:
            if cell.mean_change is None:
                continue
            fewest.append(cell.mean_change.n)
            # The end of the interval towards the better scores bounds what the attack can gain.
            if columns[cell.criterion].better == "lower":
                gains.append(-(cell.mean_change.low or 0.0))
            else:
                gains.append(cell.mean_change.high or 0.0)
    needed = max(FEWEST, min_items_for_significance(len(attacks)))
    if min(fewest) < needed:
        texts = plural(min(fewest), "text")
        yield _OPEN, f"Inconclusive on {subject}: {texts}, at least {needed} needed."
    else:
        most = max(0.0, *gains)
        yield _GOOD, f"{subject} without a significant gain: at most {signed(most, 2)}."


def _successful_attack(
    attack_name: str,
    successes: Sequence[SensitivityCell],
    columns: Mapping[str, Column],
) -> Verdict:
    """Return the verdict on an attack that changes the scores of some criteria."""
    tested = [
        cell
        for cell in successes
        if cell.mean_change and is_significant(cell.mean_change)
    ]

    def order(cell: SensitivityCell) -> tuple[bool, float]:
        return cell not in tested, -value_of(cell.rate)

    largest, *more = sorted(successes, key=order)
    verb = "lowers" if columns[largest.criterion].better == "lower" else "raises"
    texts = _of_texts(largest)
    sentence = f"The attack “{attack_name}” {verb} {largest.criterion} in {texts}"
    severity = _WORST
    if largest not in tested:
        severity = _BAD
        sentence += " (too few to test)"
    if more:
        other_criteria = listed([cell.criterion for cell in more])
        sentence += f"; also {other_criteria}"
    return severity + value_of(largest.rate), f"{sentence}."


def _bias_size(finding: BiasFinding) -> float:
    """Return a bias's size, 0–1; points count as a rough share of a five-point scale."""
    value = finding.estimate.value
    if finding.measure == FIRST:
        return min(1.0, abs(value - 0.5))
    length = 4 if "points" in finding.unit else 1
    return min(1.0, abs(value) / length)


_NOTED_FAILURES = 0.05  # share of failed judgments from which a note is added


def build_card(
    evidence: CardEvidence,
    changes: Mapping[str, str],
    attacks: Sequence[str],
    neutral: Sequence[str],
    *,
    seed: int = 0,
) -> JudgeCard:
    """Build the card of a judge.

    `changes` maps each requested damage to its criterion; `attacks` and `neutral` are the names of
    the other changes. Each is empty if its probe was not requested. Attacks are compared with the
    control in their place (what any addition does), and the control with the unchanged output.
    `skipped` gives the reason for each requested change without a text and each bias without a
    finding. p-values have Holm's correction: over the cells of damages, over the cells of attacks,
    and over all findings.
    """
    damage_cells = sensitivity_table(evidence, changes, seed=seed)
    attack_cells = sensitivity_table(
        evidence,
        dict.fromkeys(attacks, ""),
        rises=True,
        control=CONTROL,
        seed=seed,
    )
    findings, without_finding = _findings(evidence, changes, neutral, seed)
    scoreless = _scoreless_criteria(evidence)
    requested = (*changes, *neutral, *attacks)
    without_cells = _without_cells(evidence, requested, damage_cells)
    # `unavailable` replaces earlier reasons, as the cause: a probe without a run has no finding.
    skipped = {**without_finding, **without_cells, **evidence.unavailable, **scoreless}
    tested: dict[str, list[Estimate | None]] = {
        "sensitivity": [cell.mean_change for cell in damage_cells],
        "injection": [cell.mean_change for cell in attack_cells],
        "bias": [finding.estimate for finding in findings],
    }
    failures: Counter[str] = Counter()
    n_scores = 0
    for table in evidence.judged:
        failures.update(failure.error for failure in table.failures)
        n_scores += len(table.scores)
    n_failed = failures.total()
    judgments = n_failed + n_scores
    measurements = Measurements(evidence, damage_cells, attack_cells, findings, skipped)
    lines = card_lines(measurements)
    criteria = criterion_verdicts(lines, evidence)
    verdict = " ".join(verdict_sentences(criteria, lines))
    observations = summarize(
        damage_cells, attack_cells, findings, evidence.columns, scoreless
    )
    people = [finding.rated for finding in evidence.people.values()]
    notes = _notes(evidence, tested, judgments, failures)
    counts = {"judgments": judgments, "failed": n_failed}
    return JudgeCard(
        title=f"Judge card: {evidence.model}",
        verdict=verdict,
        lines=lines,
        criteria=criteria,
        cells=damage_cells,
        findings=findings,
        attacks=attack_cells,
        skipped=skipped,
        observations=observations,
        people=tuple(people),
        notes=tuple(notes),
        failures=dict(failures.most_common()),
        info=_info(evidence, seed) | counts,
    )


def _without_cells(
    evidence: CardEvidence,
    change_names: Sequence[str],
    damage_cells: Sequence[SensitivityCell],
) -> dict[str, str]:
    """Return the reasons for missing cells.

    There is one for each requested change that no text has, and for each criterion that no change
    damages.
    """
    reasons = {}
    texts = plural(len(evidence.originals), "text")
    for change_name in change_names:
        if change_name not in evidence.changed.systems:
            reasons[change_name] = f"applies to none of the {texts}"
    with_own_damage = {cell.criterion for cell in damage_cells if cell.targeted}
    for cell in damage_cells:
        if cell.criterion not in with_own_damage:
            reason = "no change damages what this criterion measures"
            reasons[f"sensitivity of {cell.criterion}"] = reason
    return reasons


def _scoreless_criteria(evidence: CardEvidence) -> dict[str, str]:
    """Return the criteria whose judgments of changed texts all failed, with the errors."""
    scored_columns = {score.column for score in evidence.changed.scores}
    errors = Counter((row.column, row.error) for row in evidence.changed.failures)
    reasons = {}
    for criterion_name, column in evidence.columns.items():
        if column.name in scored_columns:
            continue
        kinds = []
        for (column_name, error), count in errors.items():
            if column_name == column.name:
                kind = failure_kind(error)
                kinds.append(f"{count:,} {kind}")
        if kinds:
            reasons[criterion_name] = f"all its judgments failed ({listed(kinds)})"
    return reasons


def _findings(
    evidence: CardEvidence,
    changes: Collection[str],
    neutral: Sequence[str],
    seed: int,
) -> tuple[tuple[BiasFinding, ...], dict[str, str]]:
    """Return the findings of every requested bias, and why others have none."""
    probes: dict[str, tuple[Iterator[BiasFinding], str]] = {}
    natural = evidence.natural
    if neutral or natural or evidence.wordings or evidence.repeats or evidence.pairs:
        probes |= _bias_probes(evidence, neutral, seed)
    if evidence.order_free and SHUFFLED in changes:
        reason = "no text with shuffled sentences was scored"
        probes[SENTENCE_ORDER] = (sentence_order(evidence, seed), reason)
    findings: list[BiasFinding] = []
    without_finding = {}
    for probe_name, (probe_findings, reason) in probes.items():
        measured = list(probe_findings)
        findings += measured
        if not measured:
            without_finding[probe_name] = reason
    return apply_holm(findings, evidence.columns), without_finding


def _bias_probes(
    evidence: CardEvidence,
    neutral: Sequence[str],
    seed: int,
) -> dict[str, tuple[Iterator[BiasFinding], str]]:
    """Return the findings of each bias, and the reason if it has none."""
    findings = {
        "position": position_bias(evidence, seed),
        "verbosity": verbosity_bias(evidence, neutral, seed),
        "self-preference": self_preference(evidence, seed),
        "extractiveness": copying_bias(evidence, neutral, seed),
        "wording": wording_sensitivity(evidence, seed),
        QUESTION_WORDING: question_sensitivity(evidence, seed),
        "scale use": scale_usage(evidence),
        "repeats": repeatability(evidence, seed),
    }
    reasons = _reasons_without_finding(evidence)
    # A bias without a reason is an error here, so that none is left out.
    biases_and_reasons = {}
    for probe_name, biases in findings.items():
        biases_and_reasons[probe_name] = (biases, reasons[probe_name])
    return biases_and_reasons


def _reasons_without_finding(evidence: CardEvidence) -> dict[str, str]:
    """Return for each bias what the evidence lacks if it has no finding."""
    too_few = f"fewer than {FEWEST}"
    return {
        "position": _no_pairs(evidence),
        "verbosity": f"no item has a lengthened text, and {too_few} have two texts to compare",
        "self-preference": _no_family(evidence),
        "extractiveness": (
            f"no copied lead was scored, and {too_few} items have two texts that copy differently"
        ),
        "wording": "no criterion has scores in two wordings",
        QUESTION_WORDING: "no criterion has scores with another question",
        "scale use": "no original has a score on a scale with ends or labels",
        "repeats": "no text has two draws with a score",
    }


def _no_family(evidence: CardEvidence) -> str:
    """Return why texts of the judge's model family are not compared with others."""
    natural = evidence.natural
    if natural and any(sample.extra.get("generator") for sample in natural.samples):
        return (
            f"no item has scored texts of both {evidence.model}'s family and another "
            "(column `generator`)"
        )
    return "the data have no column `generator` with the model that wrote each text"


def _no_pairs(evidence: CardEvidence) -> str:
    """Return why no pair has a verdict in both orders."""
    failed = len(evidence.pairs.failures) if evidence.pairs is not None else 0
    if failed:
        return f"no pair has a verdict in both orders: {plural(failed, 'judgment')} of pairs failed"
    return "no pair of different texts was judged in both orders"


def _notes(
    evidence: CardEvidence,
    tested: Mapping[str, Sequence[Estimate | None]],
    judgments: int,
    failures: Counter[str],
) -> Iterator[str]:
    """Yield what limits the numbers.

    `tested` are the estimates of each section, which are corrected together.
    """
    texts = len({sample.item for sample in evidence.originals})
    too_small = []
    for name, estimates in tested.items():
        known_estimates = [estimate for estimate in estimates if estimate is not None]
        n_tests = sum(estimate.p is not None for estimate in known_estimates)
        least = min_items_for_significance(n_tests)
        if texts < least:
            too_small.append(f"{name} needs at least {least}")
    if too_small:
        yield (
            f"Too few texts ({texts}) for significance after Holm's correction: "
            f"{listed(too_small)}. Verdicts rest on shares alone."
        )
    failed = failures.total()
    if failed >= _NOTED_FAILURES * judgments > 0:
        kinds = []
        for kind, count in failures.most_common(3):
            kinds.append(f"{count:,} {failure_kind(kind)}")
        all_judgments = plural(judgments, "judgment")
        share = percent(failed / judgments)
        unscored = f"{failed:,} of {all_judgments} ({share}) have no score"
        note = f"{unscored}: {listed(kinds)}."
        if failed < judgments:
            note += " Estimates from scores are about the others only."
        yield note
    endless = [
        name
        for name, column in evidence.columns.items()
        if column.low is None or column.high is None
    ]
    if endless and (tested["sensitivity"] or tested["injection"]):
        yield (
            f"Without ends of the scale ({', '.join(endless)}), half the originals' standard "
            "deviation counts."
        )


def _info(evidence: CardEvidence, seed: int) -> dict[str, Any]:
    """Return facts about the judge, the texts and the settings as plain JSON."""
    criteria_info = {}
    for criterion_name, column in evidence.columns.items():
        criteria_info[criterion_name] = {
            "column": column.name,
            "signature": str(column.signature),
            "low": column.low,
            "high": column.high,
            "labels": list(column.labels),
            "better": column.better,
        }
    texts_by_change = Counter(sample.system for sample in evidence.changed.samples)
    return {
        "model": evidence.model,
        "language": evidence.language,
        "criteria": criteria_info,
        "texts": len(evidence.originals),
        "texts_by_change": dict(texts_by_change),
        "natural_texts": len(evidence.natural.samples) if evidence.natural else 0,
        "detected": DETECTED,
        "seed": seed,
        "version": __version__,
    }
