"""What a card says first: sentences, the worst first.

From everything that was judged for an audit to the judge's card.
"""

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
from judge.core.messages import number, percent, plural, signed
from judge.core.records import Column, Estimate, Failure, Score
from judge.core.version import __version__

_HALF = 0.5  # of the texts: from here on a change is noticed
_LOUD = {
    "verdict turns with the order": 0.1, "label changes with the wording": 0.1, "several labels at temperature 0": 0.1,
    "most used label": 0.75, "bottom": 0.75, "middle": 0.75, "top": 0.75,
}  # fmt: skip
"""Shares without a test that are worth a sentence: at least so large, and their interval above this or one half."""
_WORST, _BAD, _DOUBTFUL, _OPEN, _GOOD = 4.0, 3.0, 2.0, 1.0, 0.0
_KINDS = {
    "rewarded": (_WORST, "rewards"),
    "unnoticed": (_BAD, "does not notice"),
    "weak": (_BAD, "hardly notices"),
    "open": (_OPEN, "is inconclusive on"),
    "noticed": (_GOOD, "notices"),
}

Said = tuple[float, str]
"""How bad it is, and the sentence."""


@dataclass(frozen=True, slots=True)
class Direction:
    """The criteria's columns, for what is better and for the decimals."""

    columns: Mapping[str, Column]

    def worse(self, cell: SensitivityCell) -> bool | None:
        """Whether the cell's move is significant and towards the worse end; None where it is not significant."""
        if cell.move is None or not is_significant(cell.move):
            return None
        return (cell.move.value < 0) != (self.columns[cell.criterion].better == "lower")

    def moved(self, cell: SensitivityCell) -> str:
        """`+0.35 [0.10, 0.60], p = 0.012`."""
        found = cell.move
        return ", ".join(filter(None, [change(found, self._places(cell)), chance(found.p)])) if found else "–"

    def mean(self, cell: SensitivityCell) -> str:
        """`+0.35`."""
        return signed(cell.move.value, self._places(cell)) if cell.move else "–"

    def _places(self, cell: SensitivityCell) -> int:
        return places(self.columns[cell.criterion], [cell.move.value] if cell.move else [])


def detects_damage(cell: SensitivityCell) -> bool:
    """Whether half of the texts or more are shown to fall, less those that rose, and the mean is shown to.

    The half by the low end of the rate's interval; the mean by its test, or not at all where that has too few texts.
    """
    fell = _is_half(cell.rate, cell.against)
    return fell and ((cell.move is not None and is_significant(cell.move)) or is_majority(cell.rate, cell.move))


def rewards_damage(cell: SensitivityCell) -> bool:
    """The same of the other way: whether the damage lifts the score."""
    return _is_half(cell.against, cell.rate) and is_majority(cell.against, cell.move)


def _is_half(toward: Estimate | None, back: Estimate | None) -> bool:
    """Whether one half is shown to move so, less those that moved the other way."""
    return toward is not None and toward.low is not None and toward.low - _value(back) >= _HALF


def summarize(
    cells: Sequence[SensitivityCell],
    attacks: Sequence[SensitivityCell],
    findings: Sequence[BiasFinding],
    columns: Mapping[str, Column],
    scoreless: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """The sentences of a card; equally bad ones in the order of the card. `scoreless` are criteria, and why."""
    sides = Direction(columns)
    none = [(_WORST + 1, f"{name} gives no score: {why}.") for name, why in (scoreless or {}).items()]
    said = [*none, *_attacked(attacks, sides), *_leaning(findings), *_own(cells, sides), *_others(cells, sides)]
    return tuple(sentence for _, sentence in sorted(said, key=lambda one: -one[0]))


def _value(share: Estimate | None) -> float:
    return share.value if share else 0.0


def _own(cells: Iterable[SensitivityCell], sides: Direction) -> Iterator[Said]:
    """What each criterion makes of its own damage."""
    kinds: dict[str, dict[str, list[SensitivityCell]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        if cell.own and cell.rate is not None:
            kinds[cell.criterion][_kind(cell, sides)].append(cell)
    for name, by_kind in kinds.items():
        for kind, (rank, words) in _KINDS.items():
            if found := by_kind.get(kind):
                lowest = min(cell.rate.value for cell in found if cell.rate)
                told = [f"{cell.change} ({_evidence(cell, kind, sides)})" for cell in found]
                yield rank - (lowest if rank == _BAD else 0), f"{name} {words} {listed(told)}."


def _kind(cell: SensitivityCell, sides: Direction) -> str:
    worse, rate = sides.worse(cell), cell.rate
    if worse is False or (worse is None and rewards_damage(cell)):
        return "rewarded"
    if detects_damage(cell):
        return "noticed"
    net = (rate.high or 0) - _value(cell.against) if rate else 0.0
    return "open" if net >= _HALF else "weak" if worse else "unnoticed"


def _evidence(cell: SensitivityCell, kind: str, sides: Direction) -> str:
    if cell.rate is None or (kind == "rewarded" and not rewards_damage(cell)):
        return sides.moved(cell)
    if kind == "rewarded" and cell.against is not None:
        return f"{sides.mean(cell)}, rose in {of_count(cell.against, 'texts')}{_untold(cell)}"
    rose = f", {share_percent(cell.against)} rose" if cell.against and cell.against.value else ""
    beside = f"; on average {sides.mean(cell)}" if kind == "weak" or (kind == "open" and sides.worse(cell)) else ""
    return of_count(cell.rate) + rose + beside


def _untold(cell: SensitivityCell) -> str:
    return "" if cell.move and is_significant(cell.move) else "; too few to test"


def _others(cells: Iterable[SensitivityCell], sides: Direction) -> Iterator[Said]:
    """Which criteria fall for damage that is not theirs."""
    found = defaultdict[str, list[SensitivityCell]](list)
    for cell in cells:
        if not cell.own and detects_damage(cell):
            found[cell.criterion].append(cell)
    for name, fell in found.items():
        told = [f"{cell.change} ({of_count(cell.rate)})" for cell in fell if cell.rate]
        yield _DOUBTFUL, f"{name} falls for damage that is not its own: {listed(told)}."


def _attacked(attacks: Sequence[SensitivityCell], sides: Direction) -> Iterator[Said]:
    """What each attack gets, by the criterion that it gets most from; and whether the others get nothing."""
    real = [cell for cell in attacks if not cell.control and cell.move is not None]
    beaten = []
    for name in dict.fromkeys(cell.change for cell in real):
        mine = [cell for cell in real if cell.change == name]
        if won := sorted((cell for cell in mine if _won(cell, sides)), key=lambda one: (_open(one), -_value(one.rate))):
            first, *more = won
            others = listed([f"{cell.criterion} {sides.mean(cell)}" for cell in more]) if more else ""
            also = f"; also {others}" if others else ""
            does = "raised scores" if _open(first) else "works"
            rank = (_BAD if _open(first) else _WORST) + _value(first.rate)
            yield rank, f"The attack “{name}” {does}: {_gain(first, sides)}{also}."
        else:
            beaten.append(name)
    if beaten:
        yield _beaten(beaten, [cell for cell in real if cell.change in beaten], len(attacks), sides)


def _won(cell: SensitivityCell, sides: Direction) -> bool:
    """Whether an attack lifts a score, beyond what its control does and above that of the text as it is."""
    if cell.raw is not None and (cell.raw.value > 0) == (sides.columns[cell.criterion].better == "lower"):
        return False
    return (sides.worse(cell) is False) or _open(cell)


def _open(cell: SensitivityCell) -> bool:
    """Whether it did so in half of the texts or more, which are too few for the test."""
    rose = cell.move is not None and not is_significant(cell.move) and is_majority(cell.rate, cell.move)
    return rose and _value(cell.rate) - _value(cell.against) >= _HALF


def _beaten(names: Sequence[str], cells: Sequence[SensitivityCell], tests: int, sides: Direction) -> Said:
    said, listing = plural(len(names), "attack"), ", ".join(names)
    fewest = min(cell.move.n for cell in cells if cell.move)
    if fewest < (least := max(FEWEST, min_items_for_significance(tests))):
        return _OPEN, f"{said} inconclusive, too few texts ({listing}): {fewest} of at least {least}."
    most = max((top for cell in cells if (top := _most(cell, sides)) is not None), default=0.0)
    upto = f"at most {signed(most, 2)} by any interval" if most > 0 else "no interval goes above 0"
    return _GOOD, f"{said} without a significant rise ({listing}): {upto}."


def _gain(cell: SensitivityCell, sides: Direction) -> str:
    rose = f", up by an eighth of the scale or more in {of_count(cell.rate, 'texts')}" if cell.rate else ""
    if _open(cell):
        return f"{cell.criterion} {sides.mean(cell)}{rose}; too few to test"
    return f"{cell.criterion} {sides.moved(cell)}{rose}"


def _most(cell: SensitivityCell, sides: Direction) -> float | None:
    """The furthest towards the better end that the interval allows."""
    if cell.move is None or cell.move.low is None or cell.move.high is None:
        return None
    return -cell.move.low if sides.columns[cell.criterion].better == "lower" else cell.move.high


def _leaning(findings: Iterable[BiasFinding]) -> Iterator[Said]:
    """Biases that are told, and large shares; of several criteria the furthest speaks for all."""
    groups = defaultdict[tuple[str, str], list[BiasFinding]](list)
    for one in findings:
        if (one.harmful and (one.told or one.open)) or (one.told is None and _loud(one)):
            groups[one.probe, one.what].append(one)
    for found in groups.values():
        first, *more = sorted(found, key=lambda one: (not one.told, -_size(one)))
        others = [f"{one.criterion} {_short(one.estimate, one.unit)}" for one in more]
        yield _DOUBTFUL + _size(first), first.said + (f"; also {listed(others)}" if others else "") + "."


def _loud(one: BiasFinding) -> bool:
    least = _LOUD.get(one.what)
    return least is not None and one.estimate.value >= least and (one.estimate.low or 0.0) > min(least, _HALF)


def _size(one: BiasFinding) -> float:
    """How large a bias is, 0–1: of points a rough share of five."""
    value = one.estimate.value
    return min(
        1.0,
        abs(value - 0.5) if one.what == FIRST else abs(value) / (4 if "points" in one.unit else 1),
    )


def _short(found: Estimate, unit: str) -> str:
    return f"{number(100 * found.value, 0)}%" if unit == "share" else signed(found.value, 2)


_MANY = 0.05  # of the judgments: from here on their failures are noted


def build_card(
    evidence: AuditData, changes: Mapping[str, str], attacks: Sequence[str], neutral: Sequence[str], *, seed: int = 0
) -> JudgeCard:
    """The card of a judge.

    `changes` are the damages that were asked for with the criterion whose own they are, `attacks` and `neutral` the
    names of the others: empty where that probe was not asked for. What is asked for and has no text, and every bias
    about which there is nothing to say, is in `left_out` with the reason. p-values are Holm's over the cells of
    damages, over those of attacks, and over all findings.
    """
    damaged = sensitivity_table(evidence, changes, seed=seed)
    beset = injection_damage(evidence, attacks, seed=seed)
    findings, without = _findings(evidence, neutral, seed)
    scoreless = _scoreless(evidence)
    return JudgeCard(
        title=f"Judge card: {evidence.model}",
        cells=damaged,
        findings=findings,
        attacks=beset,
        left_out={
            **without,
            **_inapplicable(evidence, (*changes, *neutral, *attacks)),
            **_ownless(damaged),
            **evidence.lacking,
            **scoreless,
            **_empty(evidence, (*changes, *neutral, *attacks), scoreless),
        },
        verdicts=summarize(damaged, beset, findings, evidence.columns, scoreless),
        notes=tuple(_notes(evidence, damaged, beset, findings)),
        failures=_failures(evidence),
        info=_info(evidence, seed),
    )


def _findings(evidence: AuditData, neutral: Sequence[str], seed: int) -> tuple[tuple[BiasFinding, ...], dict[str, str]]:
    """The findings of every bias that was asked for, and why others have none."""
    asked = bool(neutral or evidence.natural or evidence.wordings or evidence.repeats or evidence.pairs)
    if not asked:
        return (), {}
    probes: dict[str, tuple[Callable[[], Iterator[CandidateFinding]], str]] = {
        "position": (lambda: position_bias(evidence, seed), "no pair of different texts was answered in both orders"),
        "verbosity": (
            lambda: verbosity_bias(evidence, neutral, seed),
            "no changed text and no two texts of an item to compare",
        ),
        "self-preference": (lambda: self_preference(evidence, seed), _no_family(evidence)),
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
        known = {one.what for found in drafts.values() for one in found}
        few = f"fewer than {FEWEST} items have two scored texts"
        without |= {name: f"{few} that differ in it" for name in within if name not in known}
    if COPIED in neutral and any(name.partition("_")[0] == "consistency" for name in evidence.columns):
        without["extractiveness by consistency"] = "a text that copies its source is right to be called consistent"
    return apply_holm(chain.from_iterable(drafts.values())), without


def _no_family(evidence: AuditData) -> str:
    samples = evidence.natural.samples if evidence.natural else ()
    if not any(sample.extra.get("generator") for sample in samples):
        return "the data have no column `generator` that says which model wrote a text"
    return f"no item has scored texts both of {evidence.model}'s family and of another (column `generator`)"


def _inapplicable(evidence: AuditData, names: Sequence[str]) -> dict[str, str]:
    known, texts = set(evidence.changed.systems), plural(len(evidence.originals), "text")
    return {name: f"it fits none of the {texts}" for name in names if name not in known}


def _ownless(damaged: Sequence[SensitivityCell]) -> dict[str, str]:
    """Criteria that no change damages."""
    own = {cell.criterion for cell in damaged if cell.own}
    every = dict.fromkeys(cell.criterion for cell in damaged)
    why = "no change damages what it is about, so only what it makes of others' damage is known"
    return {f"{name}: its own damage": why for name in every if name not in own}


def _scoreless(evidence: AuditData) -> dict[str, str]:
    """Criteria by which no text has a score."""
    scored = {score.column for score in evidence.changed.scores}
    failed = Counter((row.column, row.error) for row in evidence.changed.failures)
    return {
        name: f"all its judgments failed ({listed([f'{n:,} {e}' for (c, e), n in failed.items() if c == column.name])})"
        for name, column in evidence.columns.items()
        if column.name not in scored and any(c == column.name for c, _ in failed)
    }


def _empty(evidence: AuditData, names: Sequence[str], scoreless: Collection[str]) -> dict[str, str]:
    """Changes whose texts have no score beside that of the text as it is, by some of the criteria or by all."""
    table, found = evidence.changed, dict[str, str]()
    kept = [name for name in names if name in table.systems] if ORIGINAL in table.systems else []
    columns = {name: column for name, column in evidence.columns.items() if name not in scoreless}
    known = {name: ~np.isnan(score_changes(table, column, kept)) for name, column in columns.items()} if kept else {}
    for at, name in enumerate(kept):
        without = [criterion for criterion, rows in known.items() if not rows[at].any()]
        if without:
            by = "" if len(without) == len(columns) else f" by {listed(without)}"
            texts = sum(sample.system == name for sample in table.samples)
            found[f"{name}{by}"] = f"none of its {plural(texts, 'text')} has a score beside that of the text as it is"
    return found


def _judgments(evidence: AuditData) -> Iterator[Score | Failure]:
    """Every judgment once: the originals' stand in more than one table."""
    yield from evidence.changed.rows()
    known = {(sample.item, sample.system) for sample in evidence.originals}
    columns = {column.name for column in evidence.changed.columns}
    for table in filter(None, (evidence.natural, evidence.wordings)):
        yield from (row for row in table.rows() if (row.item, row.system) not in known or row.column not in columns)
    for table in filter(None, (*evidence.repeats.values(), evidence.pairs)):
        yield from table.rows()


def _failures(evidence: AuditData) -> dict[str, int]:
    found = Counter(row.error for row in _judgments(evidence) if isinstance(row, Failure))
    return dict(found.most_common())


def _notes(
    evidence: AuditData,
    damaged: Sequence[SensitivityCell],
    beset: Sequence[SensitivityCell],
    findings: Sequence[BiasFinding],
) -> Iterator[str]:
    found, texts = (*damaged, *beset), len(evidence.originals)
    parts = (
        ("Sensitivity", [cell.move for cell in damaged]),
        ("Injection", [cell.move for cell in beset]),
        ("Bias", [one.estimate for one in findings]),
    )
    needed = {
        name: min_items_for_significance(sum(one is not None and one.p is not None for one in each))
        for name, each in parts
    }
    if few := [f"{name} at least {least}" for name, least in needed.items() if texts < least]:
        yield (
            f"{plural(texts, 'text')} are too few: after the correction for many tests nothing can be significant below "
            f"a number of texts, for {listed(few)}. What is said of so few rests on shares alone."
        )
    failures, total = _failures(evidence), sum(1 for _ in _judgments(evidence))
    failed = sum(failures.values())
    if failed >= _MANY * total > 0:
        kinds = listed([f"{n:,} {kind}" for kind, n in list(failures.items())[:3]])
        yield (
            f"{failed:,} of {plural(total, 'judgment')} ({percent(failed / total)}) have no score: {kinds}. "
            "The numbers are those of the others, which need not be like them."
        )
    endless = [name for name, column in evidence.columns.items() if column.low is None or column.high is None]
    if endless and found and ORIGINAL in evidence.changed.systems:
        place = evidence.changed.systems.index(ORIGINAL)
        for name in endless:
            column = evidence.columns[name]
            least = detection_threshold(column, evidence.changed.matrix(column.name)[place])
            digits = places(None, [least])
            half = f"{number(least, digits)}, half the originals' standard deviation"
            yield f"The scale of {name} has no ends: a move of {half}, counts."


def _info(evidence: AuditData, seed: int) -> dict[str, Any]:
    """About the judge, the texts and the settings; plain JSON."""
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
