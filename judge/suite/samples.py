"""Collect the texts and criteria that a suite needs judged, and the texts that each case is about."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from judge import criteria as criteria_module
from judge import text
from judge.core.errors import ConfigError, CriterionError, DataError
from judge.core.format import plural
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample
from judge.data import samples
from judge.suite import expectations
from judge.suite.load import beside
from judge.suite.records import Case, Order, Suite
from judge.suite.schema import mistakes

_MAX_NAMES = 20  # items or systems in a message
Key = tuple[str, str]
"""A text: its item and system."""


@dataclass(frozen=True, slots=True)
class SuiteTexts:
    """What a suite has judged.

    `criteria` are by what the cases call them; a criterion's column is called by its `name`. `texts` are all that are
    scored alone, those of the data first, and `wanted` has by criterion name which of them it is asked about. `pairs`
    has by case the texts that its criterion compares two by two: items of the data are called `CASE: ITEM` there, so
    that each case is compared by itself. `about` has by case the texts that it is about, called as they are in one of
    the two, those of an item beside each other.
    """

    criteria: Mapping[str, Criterion]
    texts: tuple[Sample, ...]
    wanted: Mapping[str, frozenset[Key]]
    pairs: Mapping[str, tuple[Sample, ...]]
    about: Mapping[str, tuple[Key, ...]]


def read(suite: Suite) -> list[Sample]:
    """The samples of a suite's data, as far as its `limit` goes; none where it has no data. Raises DataError."""
    options = suite.options
    if "data" not in options:
        return []
    named = {key: options[key] for key in ("systems", "where") if key in options}
    rows = samples.stream(options["data"], mapping=options.get("map", {}), **named)
    return list(islice(rows, min(options.get("limit") or sys.maxsize, sys.maxsize)))


def language(suite: Suite, data: Sequence[Sample]) -> str:
    """The language of the prompts: the suite's, else that of the texts."""
    rows = [*data, *(sample for case in suite.cases for sample in case.texts)]
    return str(
        suite.options.get("language") or text.detect_language(t for s in rows for t in (s.output, s.source or ""))
    )


def load_criteria(suite: Suite, language: str = "en", over: Sequence[str] = ()) -> dict[str, Criterion]:
    """The criteria of a suite by what its cases call them.

    `over` are names or files that stand in the place of the suite's own criteria of the same name. Raises ConfigError,
    with the file and line of a case, for one that cannot be had or does not fit the case, and for two of one name.
    """
    known = list(dict.fromkeys(case.criterion for case in suite.cases))
    instead = {Path(name).stem: name for name in over}
    stems = [Path(criterion).stem for criterion in known]
    for name in instead.keys() - set(stems):
        raise ConfigError(f"{suite.path}: {unknown_name_message('criterion', name, stems)}: no case is about it")
    loaded: dict[str, Criterion] = {}
    wrong: list[tuple[int, str]] = []
    lost: set[str] = set()
    for case in suite.cases:
        name = case.criterion
        if name in lost:
            continue
        try:
            if name not in loaded:
                taken = instead.get(Path(name).stem) or beside(suite.path, name)
                loaded[name] = criteria_module.load(taken, language=language, pairwise=None)
            if loaded[name].pairwise and not isinstance(case.expected, Order):
                raise CriterionError(
                    f"{name} compares two texts: give the case better and worse, or a criterion that scores one"
                )
        except CriterionError as error:
            wrong.append((case.line, str(error)))
            lost |= {name} - loaded.keys()
    wrong += _name_clashes(suite, loaded)
    if wrong:
        raise mistakes(suite.path, wrong)
    return loaded


def collect_samples(suite: Suite, data: Sequence[Sample], criteria: Mapping[str, Criterion]) -> SuiteTexts:
    """What has to be judged for a suite, of the samples of its data and of the texts in its cases.

    Raises ConfigError with a line `FILE:LINE: …` for each case with an item or system that the data lack, with too few
    texts, with a band or label that its criterion's scale lacks, and for a text without what the criterion reads.
    """
    collector = _TextCollector(data)
    wrong: list[tuple[int, str]] = []
    for case in suite.cases:
        try:
            collector.add(case, criteria[case.criterion])
        except (ConfigError, CriterionError, DataError) as error:
            at = f"{suite.path}:{case.line}: "
            wrong.append((case.line, f"{str(error).removeprefix(at)}{mapped_away(error, suite.options.get('map'))}"))
    if wrong:
        raise mistakes(suite.path, wrong)
    return collector.collected(criteria)


def mapped_away(error: Exception, mapping: Mapping[str, str] | None) -> str:
    """That the variable which an error says is unknown was a column before it was mapped to another one."""
    moved = {column: to for to, column in (mapping or {}).items() if column != to}
    return next((f"; {c} was mapped to {to}" for c, to in moved.items() if f"unknown variable {c!r}" in str(error)), "")


class _TextCollector:
    """Collects the texts of cases."""

    def __init__(self, data: Sequence[Sample]) -> None:
        self._data = {(sample.item, sample.system): sample for sample in data}
        self._items: dict[str, list[Sample]] = defaultdict(list)
        for sample in data:
            self._items[sample.item].append(sample)
        self._systems = {sample.system: None for sample in data}
        self._inline: dict[Key, Sample] = {}
        self._wanted: dict[str, dict[Key, None]] = {}
        self._checked: set[tuple[str, Key]] = set()
        self._pairs: dict[str, tuple[Sample, ...]] = {}
        self._about: dict[str, tuple[Key, ...]] = {}

    def add(self, case: Case, criterion: Criterion) -> None:
        """Raises ConfigError, CriterionError or DataError, without the file and line of the case."""
        texts = case.texts or self._chosen(case)
        expectations.for_case(case).check(case.expected, criterion, texts)
        for sample in case.texts:
            has = {"output", *(name for name, value in sample.extra.items() if value is not None)}
            has |= {"source"} if sample.source else set()
            has |= {"references", "reference"} if sample.references else set()
            reads = criterion.needs - {"first", "second"}
            if lacking := sorted(reads - has):
                near = get_close_matches(lacking[0], sorted(has), n=1)
                hint = f"; is that {near[0]!r}?" if near else ""
                raise ConfigError(
                    f"{criterion.name} reads {', '.join(lacking)}, which the text in the case lacks{hint}"
                )
        if not case.texts:
            new = [sample for sample in texts if (criterion.digest, _key(sample)) not in self._checked]
            if new:
                criteria_module.check_samples(criterion, new)
            self._checked.update((criterion.digest, _key(sample)) for sample in new)
        if criterion.pairwise:
            of_data = not case.texts
            texts = tuple(
                replace(sample, item=f"{case.name}: {sample.item}") if of_data else sample for sample in texts
            )
            self._pairs[case.name] = tuple(texts)
        else:
            for sample in case.texts:
                if _key(sample) in self._data:
                    raise ConfigError(
                        f"the data has an item {sample.item!r} of system {sample.system!r} as well; rename the case"
                    )
                self._inline[_key(sample)] = sample
            self._wanted.setdefault(criterion.name, {}).update(dict.fromkeys(map(_key, texts)))
        self._about[case.name] = tuple(map(_key, texts))

    def collected(self, criteria: Mapping[str, Criterion]) -> SuiteTexts:
        every = {key for keys in self._wanted.values() for key in keys}
        texts = [sample for key, sample in self._data.items() if key in every]
        wanted = {name: frozenset(keys) for name, keys in self._wanted.items()}
        return SuiteTexts(criteria, (*texts, *self._inline.values()), wanted, self._pairs, self._about)

    def _chosen(self, case: Case) -> Sequence[Sample]:
        """The texts of the data that a case is about; of an order, those of items that have both."""
        order = case.expected if isinstance(case.expected, Order) else None
        systems = (order.better, order.worse) if order else case.systems
        for column, names, known in (("item", case.items, self._items), ("system", systems, self._systems)):
            for name in names:
                if name not in known:
                    if len(known) <= _MAX_NAMES:
                        raise ConfigError(unknown_name_message(column, name, list(known)))
                    near = get_close_matches(name, known, n=1)
                    message = unknown_name_message(column, name, [*near, *known][:_MAX_NAMES])
                    raise ConfigError(f"{message.removesuffix(')')}, ...: {plural(len(known), column)})")
        of_items = (sample for item in case.items or self._items for sample in self._items[item])
        matching = [sample for sample in of_items if not systems or sample.system in systems]
        if order:
            both = {(sample.item, sample.system) for sample in matching}
            lone = [i for i in case.items for system in systems if (i, system) not in both]
            if lone:
                raise ConfigError(f"item {lone[0]!r} has not a text of both {order.better!r} and {order.worse!r}")
            matching = [sample for sample in matching if {(sample.item, system) for system in systems} <= both]
        if not matching:
            both_of = f"both {order.better!r} and {order.worse!r}" if order else " or ".join(map(repr, systems))
            raise ConfigError(f"none of these items has a text of {both_of}")
        return matching


def _key(sample: Sample) -> Key:
    return sample.item, sample.system


def _name_clashes(suite: Suite, loaded: Mapping[str, Criterion]) -> list[tuple[int, str]]:
    """Criteria whose columns would share a name. One may score texts and one compare them, but no more."""
    first: dict[tuple[str, bool], Criterion] = {}
    wrong: dict[str, tuple[int, str]] = {}
    for case in suite.cases:
        if (criterion := loaded.get(case.criterion)) is None:
            continue
        namesake = first.setdefault((criterion.name, criterion.pairwise), criterion)
        if namesake.path != criterion.path:
            message = (
                f"{namesake.path} and {criterion.path} would both be called {criterion.name}: rename one of the files"
            )
            wrong.setdefault(case.criterion, (case.line, message))
    return list(wrong.values())
