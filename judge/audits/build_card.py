"""Build the judge card of an audit: its numbers, and the verdicts that come first, the worst at the top."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from judge.audits.card import (
    DETECTED,
    FEWEST,
    ORIGINAL,
    AuditData,
    BiasFinding,
    JudgeCard,
    SensitivityCell,
    chance,
    change,
    is_majority,
    listed,
    of_count,
    places,
    share_percent,
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
from judge.audits.sensitivity import (
    CandidateFinding,
    apply_holm,
    detection_threshold,
    is_significant,
    min_items_for_significance,
    score_changes,
    sensitivity_table,
)
from judge.core.format import number, percent, plural, signed
from judge.core.records import Column, Estimate, Failure, Score
from judge.core.version import __version__

_HALF = 0.5  # share of the texts from which a change counts as noticed
_NOTABLE_SHARES = {
    "verdict turns with the order": 0.1, "label changes with the wording": 0.1, "several labels at temperature 0": 0.1,
    "most used label": 0.75, "bottom": 0.75, "middle": 0.75, "top": 0.75,
}  # fmt: skip
"""Shares without a test that deserve a verdict: at least this large, with the interval above this or one half."""
_WORST, _BAD, _DOUBTFUL, _OPEN, _GOOD = 4.0, 3.0, 2.0, 1.0, 0.0
_KINDS = {
    "rewarded": (_WORST, "rewards"),
    "unnoticed": (_BAD, "does not notice"),
    "weak": (_BAD, "hardly notices"),
    "open": (_OPEN, "is inconclusive on"),
    "noticed": (_GOOD, "notices"),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A sentence of the card and its severity; the most severe come first."""

    severity: float
    sentence: str


@dataclass(frozen=True, slots=True)
class Direction:
    """The direction and the decimals of each criterion's scores."""

    columns: Mapping[str, Column]

    def worse(self, cell: SensitivityCell) -> bool | None:
        """Return whether a significant move is towards the worse end; None if it is not significant."""
        if cell.move is None or not is_significant(cell.move):
            return None
        return (cell.move.value < 0) != (self.columns[cell.criterion].better == "lower")

    def moved(self, cell: SensitivityCell) -> str:
        """`+0.35 [0.10, 0.60], p = 0.012`."""
        move = cell.move
        return ", ".join(filter(None, [change(move, self._places(cell)), chance(move.p)])) if move else "–"

    def mean(self, cell: SensitivityCell) -> str:
        """`+0.35`."""
        return signed(cell.move.value, self._places(cell)) if cell.move else "–"

    def _places(self, cell: SensitivityCell) -> int:
        return places(self.columns[cell.criterion], [cell.move.value] if cell.move else [])


def detects_damage(cell: SensitivityCell) -> bool:
    """Return whether at least half of the texts fall, less those that rise, and the mean falls too.

    The half is tested by the low end of the rate's interval; the mean by its test, unless that has too few texts.
    """
    fell = _is_half(cell.rate, cell.against)
    return fell and ((cell.move is not None and is_significant(cell.move)) or is_majority(cell.rate, cell.move))


def rewards_damage(cell: SensitivityCell) -> bool:
    """Return whether the damage lifts the score, by the same test in the other direction."""
    return _is_half(cell.against, cell.rate) and is_majority(cell.against, cell.move)


def _is_half(toward: Estimate | None, back: Estimate | None) -> bool:
    """Return whether at least half of the texts move in one direction, less those that move the other way."""
    return toward is not None and toward.low is not None and toward.low - _value(back) >= _HALF


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
    direction = Direction(columns)
    unscored = [Verdict(_WORST + 1, f"{name} gives no score: {why}.") for name, why in (scoreless or {}).items()]
    foreign = defaultdict[str, list[str]](list)  # damage that is not the criterion's own, but lowers its score
    for cell in cells:
        if not cell.own and cell.rate and detects_damage(cell):
            foreign[cell.criterion].append(f"{cell.change} ({of_count(cell.rate)})")
    verdicts = [
        *unscored,
        *_attack_verdicts(attacks, direction),
        *_bias_verdicts(findings),
        *_own_damage(cells, direction),
        *(
            Verdict(_DOUBTFUL, f"{name} falls for damage that is not its own: {listed(phrases)}.")
            for name, phrases in foreign.items()
        ),
    ]
    return tuple(verdict.sentence for verdict in sorted(verdicts, key=lambda verdict: -verdict.severity))


def _value(share: Estimate | None) -> float:
    return share.value if share else 0.0


def _own_damage(cells: Iterable[SensitivityCell], direction: Direction) -> Iterator[Verdict]:
    """Say how each criterion reacts to the damage it should notice."""
    kinds: dict[str, dict[str, list[SensitivityCell]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        if cell.own and cell.rate is not None:
            kinds[cell.criterion][_kind(cell, direction)].append(cell)
    for name, by_kind in kinds.items():
        for kind, (rank, words) in _KINDS.items():
            if matching := by_kind.get(kind):
                lowest = min(cell.rate.value for cell in matching if cell.rate)
                phrases = [f"{cell.change} ({_evidence(cell, kind, direction)})" for cell in matching]
                severity = rank - (lowest if rank == _BAD else 0)
                yield Verdict(severity, f"{name} {words} {listed(phrases)}.")


def _kind(cell: SensitivityCell, direction: Direction) -> str:
    worse, rate = direction.worse(cell), cell.rate
    if worse is False or (worse is None and rewards_damage(cell)):
        return "rewarded"
    if detects_damage(cell):
        return "noticed"
    net = (rate.high or 0) - _value(cell.against) if rate else 0.0
    return "open" if net >= _HALF else "weak" if worse else "unnoticed"


def _evidence(cell: SensitivityCell, kind: str, direction: Direction) -> str:
    if cell.rate is None or (kind == "rewarded" and not rewards_damage(cell)):
        return direction.moved(cell)
    if kind == "rewarded" and cell.against is not None:
        note = "" if cell.move and is_significant(cell.move) else "; too few to test"
        return f"{direction.mean(cell)}, rose in {of_count(cell.against, 'texts')}{note}"
    rose = f", {share_percent(cell.against)} rose" if cell.against and cell.against.value else ""
    beside = (
        f"; on average {direction.mean(cell)}" if kind == "weak" or (kind == "open" and direction.worse(cell)) else ""
    )
    return of_count(cell.rate) + rose + beside


def _attack_verdicts(attacks: Sequence[SensitivityCell], direction: Direction) -> Iterator[Verdict]:
    """Say what each attack gains, led by the criterion that it gains most from, and which attacks gain nothing."""
    real = [cell for cell in attacks if not cell.control and cell.move is not None]
    unsuccessful = []
    for name in dict.fromkeys(cell.change for cell in real):
        own_cells = [cell for cell in real if cell.change == name]
        if successful := sorted(
            (cell for cell in own_cells if _succeeded(cell, direction)),
            key=lambda hit: (_untested_success(hit), -_value(hit.rate)),
        ):
            first, *more = successful
            others = listed([f"{cell.criterion} {direction.mean(cell)}" for cell in more]) if more else ""
            also = f"; also {others}" if others else ""
            verb = "raised scores" if _untested_success(first) else "works"
            rose = f", up by an eighth of the scale or more in {of_count(first.rate, 'texts')}" if first.rate else ""
            if _untested_success(first):
                rank, gain = _BAD + _value(first.rate), f"{direction.mean(first)}{rose}; too few to test"
            else:
                rank, gain = _WORST + _value(first.rate), f"{direction.moved(first)}{rose}"
            yield Verdict(rank, f"The attack “{name}” {verb}: {first.criterion} {gain}{also}.")
        else:
            unsuccessful.append(name)
    if unsuccessful:
        subject, listing = plural(len(unsuccessful), "attack"), ", ".join(unsuccessful)
        cells = [cell for cell in real if cell.change in unsuccessful]
        fewest = min(cell.move.n for cell in cells if cell.move)
        if fewest < (least := max(FEWEST, min_items_for_significance(len(attacks)))):
            yield Verdict(_OPEN, f"{subject} inconclusive, too few texts ({listing}): {fewest} of at least {least}.")
            return
        limits = [
            -cell.move.low if direction.columns[cell.criterion].better == "lower" else cell.move.high
            for cell in cells
            if cell.move and cell.move.low is not None and cell.move.high is not None
        ]
        most = max(limits, default=0.0)
        limit = f"at most {signed(most, 2)} by any interval" if most > 0 else "no interval goes above 0"
        yield Verdict(_GOOD, f"{subject} without a significant rise ({listing}): {limit}.")


def _succeeded(cell: SensitivityCell, direction: Direction) -> bool:
    """Return whether an attack lifts the score more than its control does, and above the unchanged text's score."""
    if cell.raw is not None and (cell.raw.value > 0) == (direction.columns[cell.criterion].better == "lower"):
        return False
    return (direction.worse(cell) is False) or _untested_success(cell)


def _untested_success(cell: SensitivityCell) -> bool:
    """Return whether an attack lifted at least half of the scores, with too few texts for the test."""
    rose = cell.move is not None and not is_significant(cell.move) and is_majority(cell.rate, cell.move)
    return rose and _value(cell.rate) - _value(cell.against) >= _HALF


def _bias_verdicts(findings: Iterable[BiasFinding]) -> Iterator[Verdict]:
    """State significant biases and large shares. If several criteria share one, the largest leads the sentence."""
    groups = defaultdict[tuple[str, str], list[BiasFinding]](list)
    for finding in findings:
        share, least = finding.estimate, _NOTABLE_SHARES.get(finding.what)
        large = least is not None and share.value >= least and (share.low or 0.0) > min(least, _HALF)
        if (finding.harmful and (finding.told or finding.open)) or (finding.told is None and large):
            groups[finding.probe, finding.what].append(finding)
    for similar in groups.values():
        first, *more = sorted(similar, key=lambda finding: (not finding.told, -_bias_size(finding)))
        others = [
            f"{finding.criterion} {number(100 * finding.estimate.value, 0)}%"
            if finding.unit == "share"
            else f"{finding.criterion} {signed(finding.estimate.value, 2)}"
            for finding in more
        ]
        also = f"; also {listed(others)}" if others else ""
        yield Verdict(_DOUBTFUL + _bias_size(first), f"{first.said}{also}.")


def _bias_size(finding: BiasFinding) -> float:
    """Return a bias's size, 0–1; points count as a rough share of a five-point scale."""
    value = finding.estimate.value
    return min(
        1.0,
        abs(value - 0.5) if finding.what == FIRST else abs(value) / (4 if "points" in finding.unit else 1),
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
    with_own_damage = {cell.criterion for cell in damaged if cell.own}
    all_criteria = dict.fromkeys(cell.criterion for cell in damaged)
    why = "no change damages what it is about, so only what it makes of others' damage is known"
    return JudgeCard(
        title=f"Judge card: {evidence.model}",
        cells=damaged,
        findings=findings,
        attacks=beset,
        left_out={
            **without,
            **{name: f"it fits none of the {texts}" for name in names if name not in known},
            **{f"{name}: its own damage": why for name in all_criteria if name not in with_own_damage},
            **evidence.lacking,
            **scoreless,
            **_without_scores(evidence, names, scoreless),
        },
        verdicts=summarize(damaged, beset, findings, evidence.columns, scoreless),
        notes=tuple(_notes(evidence, damaged, beset, findings)),
        failures=_failures(evidence),
        info=_info(evidence, seed),
    )


def _findings(evidence: AuditData, neutral: Sequence[str], seed: int) -> tuple[tuple[BiasFinding, ...], dict[str, str]]:
    """Return the findings of every requested bias, and why others have none."""
    requested = bool(neutral or evidence.natural or evidence.wordings or evidence.repeats or evidence.pairs)
    if not requested:
        return (), {}
    if any(sample.extra.get("generator") for sample in (evidence.natural.samples if evidence.natural else ())):
        no_family = f"no item has scored texts both of {evidence.model}'s family and of another (column `generator`)"
    else:
        no_family = "the data have no column `generator` that says which model wrote a text"
    probes: dict[str, tuple[Callable[[], Iterator[CandidateFinding]], str]] = {
        "position": (lambda: position_bias(evidence, seed), "no pair of different texts was answered in both orders"),
        "verbosity": (
            lambda: verbosity_bias(evidence, neutral, seed),
            "no changed text and no two texts of an item to compare",
        ),
        "self-preference": (lambda: self_preference(evidence, seed), no_family),
        "extractiveness": (
            lambda: copying_bias(evidence, neutral, seed),
            "no copied lead was scored, and no item has two texts of which some copy more",
        ),
        "wording": (lambda: wording_sensitivity(evidence, seed), "no criterion has scores in two wordings"),
        "scale use": (lambda: scale_usage(evidence, seed), "no original has a score on a scale with ends or labels"),
        "repeats": (lambda: repeatability(evidence, seed), "no text has two draws with a score"),
    }
    drafts = {name: list(make()) for name, (make, _) in probes.items()}
    without = {name: why for name, (_, why) in probes.items() if not drafts[name]}
    if evidence.natural and len({s.item for s in evidence.natural.samples}) < len(evidence.natural.samples):
        within = [LONGER] * ("verbosity" not in without) + [COPYING] * ("extractiveness" not in without)
        reported = {draft.what for candidates in drafts.values() for draft in candidates}
        reason = f"fewer than {FEWEST} items have two scored texts"
        without |= {name: f"{reason} that differ in it" for name in within if name not in reported}
    if COPIED in neutral and any(name.partition("_")[0] == "consistency" for name in evidence.columns):
        without["extractiveness by consistency"] = "a text that copies its source is right to be called consistent"
    return apply_holm(chain.from_iterable(drafts.values())), without


def _without_scores(evidence: AuditData, names: Sequence[str], scoreless: Collection[str]) -> dict[str, str]:
    """Return the changes without any score to compare with the original's, by some criteria or by all."""
    table, reasons = evidence.changed, dict[str, str]()
    present = [name for name in names if name in table.systems] if ORIGINAL in table.systems else []
    columns = {name: column for name, column in evidence.columns.items() if name not in scoreless}
    scored = (
        {name: ~np.isnan(score_changes(table, column, present)) for name, column in columns.items()} if present else {}
    )
    for at, name in enumerate(present):
        without = [criterion for criterion, rows in scored.items() if not rows[at].any()]
        if without:
            limitation = "" if len(without) == len(columns) else f" by {listed(without)}"
            texts = sum(sample.system == name for sample in table.samples)
            reasons[f"{name}{limitation}"] = (
                f"none of its {plural(texts, 'text')} has a score beside that of the text as it is"
            )
    return reasons


def _judgments(evidence: AuditData) -> Iterator[Score | Failure]:
    """Yield every judgment once; those of the originals are in more than one table."""
    yield from evidence.changed.rows()
    known = {(sample.item, sample.system) for sample in evidence.originals}
    columns = {column.name for column in evidence.changed.columns}
    for table in filter(None, (evidence.natural, evidence.wordings)):
        yield from (row for row in table.rows() if (row.item, row.system) not in known or row.column not in columns)
    for table in filter(None, (*evidence.repeats.values(), evidence.pairs)):
        yield from table.rows()


def _failures(evidence: AuditData) -> dict[str, int]:
    counts = Counter(row.error for row in _judgments(evidence) if isinstance(row, Failure))
    return dict(counts.most_common())


def _notes(
    evidence: AuditData,
    damaged: Sequence[SensitivityCell],
    beset: Sequence[SensitivityCell],
    findings: Sequence[BiasFinding],
) -> Iterator[str]:
    cells, texts = (*damaged, *beset), len(evidence.originals)
    parts = (
        ("Sensitivity", [cell.move for cell in damaged]),
        ("Injection", [cell.move for cell in beset]),
        ("Bias", [finding.estimate for finding in findings]),
    )
    needed = {
        name: min_items_for_significance(sum(estimate is not None and estimate.p is not None for estimate in estimates))
        for name, estimates in parts
    }
    if few := [f"{name} at least {least}" for name, least in needed.items() if texts < least]:
        yield (
            f"{plural(texts, 'text')} are too few: after the correction for many tests nothing can be significant "
            f"below a number of texts, for {listed(few)}. What is said of so few rests on shares alone."
        )
    failures, total = _failures(evidence), sum(1 for _ in _judgments(evidence))
    failed = sum(failures.values())
    if failed >= _NOTED_FAILURES * total > 0:
        kinds = listed([f"{n:,} {kind}" for kind, n in list(failures.items())[:3]])
        yield (
            f"{failed:,} of {plural(total, 'judgment')} ({percent(failed / total)}) have no score: {kinds}. "
            "The numbers are those of the others, which need not be like them."
        )
    endless = [name for name, column in evidence.columns.items() if column.low is None or column.high is None]
    if endless and cells and ORIGINAL in evidence.changed.systems:
        place = evidence.changed.systems.index(ORIGINAL)
        for name in endless:
            column = evidence.columns[name]
            least = detection_threshold(column, evidence.changed.matrix(column.name)[place])
            digits = places(None, [least])
            half = f"{number(least, digits)}, half the originals' standard deviation"
            yield f"The scale of {name} has no ends: a move of {half}, counts."


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
        "judgments": sum(1 for _ in _judgments(evidence)),
        "failed": sum(_failures(evidence).values()),
        "detected": DETECTED,
        "seed": seed,
        "version": __version__,
    }  # fmt: skip
