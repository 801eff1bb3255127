"""Collect the texts and criteria that a suite needs judged, and the texts that each case is about."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from judge import criteria as criteria_module
from judge import text
from judge.core.errors import ConfigError, CriterionError, DataError
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample
from judge.data import samples
from judge.suite.load import beside
from judge.suite.records import Suite
from judge.suite.schema import mistakes

Key = tuple[str, str]
"""A text: its item and system."""


class AskedTexts(NamedTuple):
    """The texts of one run, and by criterion name those that it is asked about."""

    samples: tuple[Sample, ...]
    wanted: Mapping[str, frozenset[Key]]


class SuiteTexts(NamedTuple):
    """What a suite has judged.

    `criteria` are by what the cases call them; a criterion's column is called by its `name`. `single` texts are scored
    alone, those of the data first. `pairs` are compared two by two: items of the data are called `CASE: ITEM` there, so
    that each case is compared by itself. `about` has by case the texts that it is about, called as they are in one of
    the two, those of an item beside each other.
    """

    criteria: Mapping[str, Criterion]
    single: AskedTexts
    pairs: AskedTexts
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
            if loaded[name].pairwise and not case.compares_texts:
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
    by_item: dict[str, list[Sample]] = defaultdict(list)
    for sample in data:
        by_item[sample.item].append(sample)
    systems = {sample.system: None for sample in data}
    position = {_key(sample): place for place, sample in enumerate(data)}
    texts_asked: dict[bool, dict[Key, Sample]] = {False: {}, True: {}}
    wanted: dict[bool, dict[str, frozenset[Key]]] = {False: {}, True: {}}
    about: dict[str, tuple[Key, ...]] = {}
    checked: set[tuple[str, Key]] = set()
    wrong: list[tuple[int, str]] = []
    for case in suite.cases:
        criterion = criteria[case.criterion]
        try:
            texts = case.texts or case.select(by_item, systems)
            case.check(criterion, texts)
            if case.texts:
                _check_inline(case.texts, criterion)
            elif new := [sample for sample in texts if (criterion.digest, _key(sample)) not in checked]:
                criteria_module.check_samples(criterion, new)
                checked.update((criterion.digest, _key(sample)) for sample in new)
            if not criterion.pairwise and (
                clash := next((text for text in case.texts if _key(text) in position), None)
            ):
                raise ConfigError(
                    f"the data has an item {clash.item!r} of system {clash.system!r} as well; rename the case"
                )
        except (ConfigError, CriterionError, DataError) as error:
            at = f"{suite.path}:{case.line}: "
            wrong.append((case.line, f"{str(error).removeprefix(at)}{mapped_away(error, suite.options.get('map'))}"))
            continue
        if criterion.pairwise and not case.texts:
            texts = [replace(sample, item=f"{case.name}: {sample.item}") for sample in texts]
        about[case.name] = tuple(map(_key, texts))
        texts_asked[criterion.pairwise].update(zip(about[case.name], texts, strict=True))
        of_criterion = wanted[criterion.pairwise]
        of_criterion[criterion.name] = of_criterion.get(criterion.name, frozenset()).union(about[case.name])
    if wrong:
        raise mistakes(suite.path, wrong)
    single, pairs = (
        AskedTexts(
            tuple(sorted(texts.values(), key=lambda sample: position.get(_key(sample), len(position)))),
            wanted[pairwise],
        )
        for pairwise, texts in texts_asked.items()
    )
    return SuiteTexts(criteria, single, pairs, about)


def _check_inline(texts: Sequence[Sample], criterion: Criterion) -> None:
    """Raise ConfigError for a text in a case without what the criterion reads."""
    for sample in texts:
        has = {"output", *(name for name, value in sample.extra.items() if value is not None)}
        has |= {"source"} if sample.source else set()
        has |= {"references", "reference"} if sample.references else set()
        if lacking := sorted(criterion.needs - {"first", "second"} - has):
            near = get_close_matches(lacking[0], sorted(has), n=1)
            hint = f"; is that {near[0]!r}?" if near else ""
            raise ConfigError(f"{criterion.name} reads {', '.join(lacking)}, which the text in the case lacks{hint}")


def _key(sample: Sample) -> Key:
    return sample.item, sample.system


def mapped_away(error: Exception, mapping: Mapping[str, str] | None) -> str:
    """That the variable which an error says is unknown was a column before it was mapped to another one."""
    moved = {column: to for to, column in (mapping or {}).items() if column != to}
    return next((f"; {c} was mapped to {to}" for c, to in moved.items() if f"unknown variable {c!r}" in str(error)), "")


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
