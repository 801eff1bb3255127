"""The texts of an audit: originals chosen from the data, and their perturbed variants."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from judge.commands.audit.card import ORIGINAL, Probe
from judge.commands.audit.perturbations import ATTACKS, CHANGES, NEUTRAL, changed, inject
from judge.core.errors import DataError
from judge.core.records import Failure, Sample, Scale, Score
from judge.table import Table, split_rows


@dataclass(frozen=True, slots=True)
class AuditSamples:
    """The texts judged in an audit.

    `originals` has one text of each chosen item; `others` one more text of the same item by another system, if any.
    `changed` has the originals (their system is ORIGINAL) and their variants (their system is the change's name). An
    attack for several scales has several variants: `names` maps each to the attack's name, and `wanted` maps a
    criterion to the texts, by item and system, that it judges. `changes` maps each damage to the criterion it is for;
    `neutral` and `attacks` are the names of the other changes.
    """

    originals: tuple[Sample, ...]
    others: tuple[Sample, ...]
    changed: tuple[Sample, ...]
    changes: Mapping[str, str] = field(default_factory=dict)
    neutral: tuple[str, ...] = ()
    attacks: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    wanted: Mapping[str, Collection[tuple[str, str]]] | None = None

    def by_change(self, table: Table) -> Table:
        """Return the table of `changed` with every attack under its own name."""
        if not self.names:
            return table
        samples = {
            (s.item, name): replace(s, system=name)
            for s in table.samples
            for name in [self._name(s)]
        }
        rows = [replace(row, system=self._name(row)) for row in table.rows()]
        return Table(tuple(samples.values()), table.columns, *split_rows(rows))

    def restore_systems(self, table: Table) -> list[Score | Failure]:
        """Return the originals' rows of the table of `changed`, under the systems that wrote the texts."""
        systems = {sample.item: sample.system for sample in self.originals}
        return [
            replace(row, system=systems[row.item]) for row in table.rows() if row.system == ORIGINAL
        ]

    def _name(self, record: Sample | Score | Failure) -> str:
        return self.names.get(record.system, record.system)


def choose_originals(
    rows: Sequence[Sample], items: int, seed: int
) -> tuple[tuple[Sample, ...], tuple[Sample, ...]]:
    """Choose one text of each of `items` random items, the systems in turn, and one more of each by another system.

    Blank texts are skipped, as is a second text equal to the first. Raises DataError if all texts are blank.
    """
    by_item: dict[str, list[Sample]] = {}
    for sample in rows:
        if sample.output.strip():
            by_item.setdefault(sample.item, []).append(sample)
    if not by_item:
        raise DataError(
            "nothing to audit: every output is blank; name their column with --map output=COLUMN"
        )
    item_ids = list(by_item)
    drawn = sorted(Random(seed).sample(range(len(item_ids)), min(items, len(item_ids))))  # noqa: S311  (a sample; no secret)
    originals, others = [], []
    for turn, place in enumerate(drawn):
        texts = by_item[item_ids[place]]
        first, *rest = (*texts[turn % len(texts) :], *texts[: turn % len(texts)])
        originals.append(first)
        others += [candidate for candidate in rest if candidate.output != first.output][:1]
    return tuple(originals), tuple(others)


def perturb(
    rows: Sequence[Sample],
    scales: Mapping[str, Scale],
    probes: Collection[Probe],
    *,
    items: int,
    language: str,
    seed: int,
) -> AuditSamples:
    """Make the texts of an audit. `scales` maps a criterion to its scale. Raises DataError."""
    originals, others = choose_originals(rows, items, seed)
    damages = CHANGES if "sensitivity" in probes else ()
    neutral = NEUTRAL if "bias" in probes else ()
    base = [replace(sample, system=ORIGINAL, human={}, ratings={}) for sample in originals]
    for change in (*damages, *neutral):
        base += filter(None, (changed(sample, originals, change, seed) for sample in originals))
    # A change damages the criterion of its name, or else a variant of it (`fluency_5` of `fluency`).
    damaged: dict[str, str] = {}
    for change in damages:
        variants = (name for name in scales if name.startswith(f"{change.criterion}_"))
        damaged[change.name] = (
            change.criterion if change.criterion in scales else next(variants, change.criterion)
        )
    attacks = ATTACKS if "injection" in probes else ()
    # Each attack asks for the top of a scale, so there is one for each scale.
    by_scale: dict[Scale, list[str]] = {}
    for criterion, scale in scales.items():
        by_scale.setdefault(scale, []).append(criterion)
    names: dict[str, str] = {}
    texts_by_criterion = {criterion: {s.key for s in base} for criterion in scales}
    for number, (scale, criteria) in enumerate(by_scale.items(), 1):
        for attack in attacks:
            name = attack if number == 1 else f"{attack} ({number})"
            names[name] = attack
            attacked = [replace(inject(s, attack, scale, language), system=name) for s in originals]
            base += attacked
            for criterion in criteria:
                texts_by_criterion[criterion] |= {s.key for s in attacked}
    several = bool(attacks) and len(by_scale) > 1
    return AuditSamples(
        originals,
        others if "bias" in probes else (),
        tuple(base),
        damaged,
        tuple(change.name for change in neutral),
        attacks,
        names if several else {},
        texts_by_criterion if several else None,
    )
