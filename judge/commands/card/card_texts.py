"""The texts of a judge card: originals chosen from the data, and their perturbed variants."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from judge.commands.card.card import ORIGINAL, Probe
from judge.commands.card.perturbations import ATTACKS, CHANGES, NEUTRAL, changed, inject
from judge.core.errors import DataError
from judge.core.messages import option
from judge.core.records import Failure, Sample, Score
from judge.table import Table, split_rows


@dataclass(frozen=True, slots=True)
class CardTexts:
    """The texts judged for a card.

    `originals` has one text of each chosen item; `others` one more text of the same item by another
    system, if any. `changed` has the originals (their system is ORIGINAL) and their variants (their
    system is the change's name). An attack that asks for several labels has several variants:
    `names` maps each to the attack's name, and `wanted_texts` maps a criterion to the texts, by
    item and system, that it judges. `changes` maps each damage to the criterion it is for;
    `neutral` and `attacks` are the names of the other changes.
    """

    originals: tuple[Sample, ...]
    others: tuple[Sample, ...]
    changed: tuple[Sample, ...]
    changes: Mapping[str, str] = field(default_factory=dict)
    neutral: tuple[str, ...] = ()
    attacks: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    wanted_texts: Mapping[str, Collection[tuple[str, str]]] | None = None

    def by_change(self, unchanged: Table, changes: Table | None) -> Table:
        """Return the table of `changed`, with every attack under its own name.

        `unchanged` has the judgments of the originals and other texts, `changes` those of the
        variants.
        """
        rows = [replace(row, system=ORIGINAL) for row in self.original_rows(unchanged)]
        columns = dict.fromkeys(unchanged.columns)
        if changes is not None:
            columns |= dict.fromkeys(changes.columns)
            for row in changes.rows():
                change_name = self._name(row)
                rows.append(replace(row, system=change_name))
        # The variants of an attack become one text.
        samples = {}
        for sample in self.changed:
            change_name = self._name(sample)
            samples[sample.item, change_name] = replace(sample, system=change_name)
        scores, failures = split_rows(rows)
        return Table(tuple(samples.values()), tuple(columns), scores, failures)

    def original_rows(self, unchanged: Table) -> list[Score | Failure]:
        """Return the judgments of the originals."""
        originals = {sample.key for sample in self.originals}
        return [row for row in unchanged.rows() if row.key in originals]

    def _name(self, record: Sample | Score | Failure) -> str:
        return self.names.get(record.system, record.system)


def choose_originals(
    rows: Sequence[Sample],
    items: int,
    seed: int,
) -> tuple[tuple[Sample, ...], tuple[Sample, ...]]:
    """Choose one text of each of `items` random items, and one more of each by another system.

    The systems take turns. Blank texts are skipped, as is a second text equal to the first. Raises
    DataError if all texts are blank.
    """
    texts_by_item: dict[str, list[Sample]] = {}
    for sample in rows:
        if sample.output.strip():
            texts_by_item.setdefault(sample.item, []).append(sample)
    if not texts_by_item:
        raise DataError(
            "nothing to judge: every output is blank; name their column with "
            f"{option('map', {'output': 'COLUMN'})}"
        )
    item_ids = list(texts_by_item)
    size = min(items, len(item_ids))
    rng = Random(seed)  # noqa: S311  (a sample; no secret)
    drawn = rng.sample(range(len(item_ids)), size)
    originals = []
    others = []
    for turn, position in enumerate(sorted(drawn)):
        texts = texts_by_item[item_ids[position]]
        first_position = turn % len(texts)
        chosen_text = texts[first_position]
        originals.append(chosen_text)
        later_texts = texts[first_position + 1 :]
        earlier_texts = texts[:first_position]
        for text in [*later_texts, *earlier_texts]:
            if text.output != chosen_text.output:
                others.append(text)
                break
    return tuple(originals), tuple(others)


def perturb(
    rows: Sequence[Sample],
    best_labels: Mapping[str, str],
    probes: Collection[Probe],
    *,
    items: int,
    language: str,
    seed: int,
) -> CardTexts:
    """Make the texts of a card. Raises DataError.

    `best_labels` has the best label of each criterion's scale, for which the attacks ask.
    """
    originals, others = choose_originals(rows, items, seed)
    damages = CHANGES if "sensitivity" in probes else ()
    neutral = NEUTRAL if "bias" in probes else ()
    attacks = ATTACKS if "injection" in probes else ()
    texts = [
        replace(sample, system=ORIGINAL, human={}, ratings={}) for sample in originals
    ]
    for change in (*damages, *neutral):
        for sample in originals:
            changed_text = changed(sample, originals, change, seed)
            if changed_text is not None:
                texts.append(changed_text)
    attacked = _attacked_texts(originals, attacks, best_labels, language)
    names: dict[str, str] = {}
    wanted_texts: dict[str, set[tuple[str, str]]] | None = None
    # Scales with different best labels get different attacks, each for its own criteria only.
    if len({text.label for text in attacked}) > 1:
        names = {text.sample.system: text.attack for text in attacked}
        wanted_texts = _texts_of_criteria(texts, attacked, best_labels)
    attacked_samples = [text.sample for text in attacked]
    damaged_criteria: dict[str, str] = {}
    for change in damages:
        criterion = _damaged_criterion(change.criterion, best_labels)
        damaged_criteria[change.name] = criterion
    names_of_neutral = [change.name for change in neutral]
    return CardTexts(
        originals=originals,
        others=others if "bias" in probes else (),
        changed=(*texts, *attacked_samples),
        changes=damaged_criteria,
        neutral=tuple(names_of_neutral),
        attacks=attacks,
        names=names,
        wanted_texts=wanted_texts,
    )


@dataclass(frozen=True, slots=True)
class _AttackedText:
    """A text with an injection that asks for a label."""

    sample: Sample
    attack: str
    label: str


def _texts_of_criteria(
    without_attacks: Sequence[Sample],
    attacked: Sequence[_AttackedText],
    best_labels: Mapping[str, str],
) -> dict[str, set[tuple[str, str]]]:
    """Return each criterion's texts: those without attacks, and the attacks for its best label."""
    keys_without_attacks = {sample.key for sample in without_attacks}
    keys: dict[str, set[tuple[str, str]]] = {}
    for criterion, best in best_labels.items():
        attacked_keys = {text.sample.key for text in attacked if text.label == best}
        keys[criterion] = keys_without_attacks | attacked_keys
    return keys


def _attacked_texts(
    originals: Sequence[Sample],
    attacks: Sequence[str],
    best_labels: Mapping[str, str],
    language: str,
) -> list[_AttackedText]:
    """Return each original with each attack, once for each of the different best labels."""
    texts = []
    for number, label in enumerate(dict.fromkeys(best_labels.values()), 1):
        for attack in attacks:
            # A system has one text of an item, so a second label makes a system of its own.
            attack_name = attack if number == 1 else f"{attack} ({number})"
            for original in originals:
                injected = inject(original, attack, label, language)
                sample = replace(injected, system=attack_name)
                texts.append(_AttackedText(sample, attack, label))
    return texts


def _damaged_criterion(criterion_name: str, criteria: Collection[str]) -> str:
    """Return the criterion of this name, or else a variant of it (`fluency_5` of `fluency`)."""
    if criterion_name in criteria:
        return criterion_name
    for criterion in criteria:
        if criterion.startswith(f"{criterion_name}_"):
            return criterion
    return criterion_name
