"""The texts of an audit: which of the data's are taken, and what is made of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from judge.audits.card import ORIGINAL, Probe
from judge.audits.perturbations import CHANGES, NEUTRAL, Perturbation, changed, of_language
from judge.audits.perturbations.catalogue import ATTACKS, inject
from judge.core.errors import DataError
from judge.core.records import Failure, Sample, Scale, Score
from judge.table import Table
from judge.table.core import split_rows
from judge.text import Language

_DEFAULT_SCALE = Scale.integers(1, 5)
"""What is asked for where a criterion has no labels, as the heuristic's have none."""


@dataclass(frozen=True, slots=True)
class AuditSamples:
    """What is judged in an audit.

    `originals` are one text of each item that was taken, `others` one more of the same items by another system, where
    there is one. `changed` are the originals, their system ORIGINAL, and their variants, each with the name of its
    change as its system; of an attack that was made for several scales there are several, which `names` brings back to
    the attack's name and of which `wanted` says by criterion which texts it is to be asked about. `changes` are the
    damages with the criterion whose own each is, `neutral` and `attacks` the names of the others.
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
        """The table of `changed` with every attack under its own name."""
        if not self.names:
            return table
        samples = {(s.item, name): replace(s, system=name) for s in table.samples for name in [self._name(s)]}
        rows = [replace(row, system=self._name(row)) for row in table.rows()]
        return Table(tuple(samples.values()), table.columns, *split_rows(rows))

    def restore_systems(self, table: Table) -> list[Score | Failure]:
        """The originals' rows of the table of `changed`, under the systems that wrote the texts."""
        systems = {sample.item: sample.system for sample in self.originals}
        return [replace(row, system=systems[row.item]) for row in table.rows() if row.system == ORIGINAL]

    def _name(self, record: Sample | Score | Failure) -> str:
        return self.names.get(record.system, record.system)


def choose_originals(rows: Sequence[Sample], items: int, seed: int) -> tuple[tuple[Sample, ...], tuple[Sample, ...]]:
    """One text of each of so many items, drawn by `seed`, the systems in turn; and one more of each, by another system.

    Blank texts are passed over, as is a second text that is equal to the first. Raises DataError where all are blank.
    """
    by_item: dict[str, list[Sample]] = {}
    for sample in rows:
        if sample.output.strip():
            by_item.setdefault(sample.item, []).append(sample)
    if not by_item:
        raise DataError("nothing to audit: every output is blank; name their column with --map output=COLUMN")
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
    scales: Mapping[str, Scale | None],
    probes: Collection[Probe],
    *,
    items: int,
    language: Language,
    seed: int,
) -> AuditSamples:
    """The texts of an audit by these criteria, each with its scale, None where it has no labels. Raises DataError."""
    originals, others = choose_originals(rows, items, seed)
    damages = of_language(language, CHANGES) if "sensitivity" in probes else ()
    neutral = of_language(language, NEUTRAL) if "bias" in probes else ()
    base = [replace(sample, system=ORIGINAL, human={}, ratings={}) for sample in originals]
    for change in (*damages, *neutral):
        base += filter(None, (changed(sample, originals, change, seed) for sample in originals))
    texts = AuditSamples(
        originals,
        others if "bias" in probes else (),
        tuple(base),
        {change.name: _damaged_criterion(change, scales) for change in damages},
        tuple(change.name for change in neutral),
        tuple(attack.name for attack in ATTACKS) if "injection" in probes else (),
    )
    return _with_attacks(texts, scales, language) if texts.attacks else texts


def _damaged_criterion(change: Perturbation, criteria: Collection[str]) -> str:
    """The criterion that a change damages: the one of its name, or a variant of that (`fluency_5` of `fluency`)."""
    if change.criterion in criteria:
        return change.criterion
    return next((name for name in criteria if name.startswith(f"{change.criterion}_")), change.criterion)


def _with_attacks(base: AuditSamples, scales: Mapping[str, Scale | None], language: Language) -> AuditSamples:
    """The texts with those of all attacks, which ask for the top of a criterion's scale: once for each scale."""
    by_scale: dict[Scale, list[str]] = {}
    for criterion, scale in scales.items():
        by_scale.setdefault(scale or _DEFAULT_SCALE, []).append(criterion)
    changed_texts, names = list(base.changed), dict[str, str]()
    texts_by_criterion = {criterion: {(s.item, s.system) for s in base.changed} for criterion in scales}
    for number, (scale, criteria) in enumerate(by_scale.items(), 1):
        for attack in ATTACKS:
            name = attack.name if number == 1 else f"{attack.name} ({number})"
            names[name] = attack.name
            attacked = [replace(inject(s, attack, scale, language), system=name) for s in base.originals]
            changed_texts += attacked
            for criterion in criteria:
                texts_by_criterion[criterion] |= {(s.item, s.system) for s in attacked}
    several = len(by_scale) > 1
    return replace(
        base,
        changed=tuple(changed_texts),
        names=names if several else {},
        wanted=texts_by_criterion if several else None,
    )
