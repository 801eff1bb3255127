"""What a run keeps of its prompts: the sheets they are written on, with the places of the texts left open."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from judge.core.errors import CriterionError
from judge.core.records import Criterion, Prompt, Sample
from judge.criteria import render
from judge.execution.pending import Judgment
from judge.scoring.multi_criteria import Renders, renderers

_MOST = 200_000  # characters of all sheets together
_MOST_PROMPTS = 10_000  # of one column
_SURE = 16  # characters of a text that is known wherever it stands; a shorter one is only between its marks


def sheets(asked: Mapping[str, Sequence[Judgment]], items: Collection[str]) -> dict[str, Any]:
    """The sheets of what was asked about these items, by what a judge's columns have after the criterion's name.

    `sheets` lists the different ones. Each has for every message its role and its parts, by turns words and what stands
    between them: `text NAME`, or `key NAME` for what that text's marks carry. A NAME is `source`, `output`,
    `references 0`, `extra COLUMN`, or of a comparison `first` and `second`. Filled in, a sheet is the prompt to the
    letter. `asked` has by column the `usual` sheet's number and the `others`, each with item, system and rival; None is
    a prompt that could not be made or is not kept: sheets end at 200,000 characters together.
    """
    kept: dict[str, int] = {}
    room = _MOST
    written: dict[tuple[str, str, bool], dict[str, Any]] = {}
    columns: dict[str, dict[str, Any]] = {}
    for own, judgments in asked.items():
        criteria = {j.criterion.name: j.criterion for j in judgments}
        made = renderers(list(criteria.values()))
        for criterion in criteria.values():
            same = (criterion.name, criterion.form, criterion.merged)  # a panel's judges are mostly asked the same
            if same not in written:
                numbers: dict[tuple[str, str, str], int | None] = {}
                for named, sheet in _written(criterion, made[criterion.name], judgments, items):
                    if sheet and sheet not in kept and len(sheet) <= room:
                        kept[sheet], room = len(kept), room - len(sheet)
                    numbers[named] = kept.get(sheet)
                written[same] = _counted(numbers)
            columns[criterion.name + own] = written[same]
    return {"sheets": list(map(json.loads, kept)), "asked": columns}


def _counted(numbers: Mapping[tuple[str, str, str], int | None]) -> dict[str, Any]:
    usual = max(Counter(numbers.values()).most_common(1), default=(None, 0))[0]
    return {"usual": usual, "others": [[*named, number] for named, number in numbers.items() if number != usual]}


def _written(
    criterion: Criterion, renderer: Renders, judgments: Sequence[Judgment], items: Collection[str]
) -> Iterator[tuple[tuple[str, str, str], str]]:
    """Item, system, rival and sheet; "" where there is no prompt."""
    for one in islice(
        (j for j in judgments if j.criterion.name == criterion.name and j.sample.item in items), _MOST_PROMPTS
    ):
        sample, rival = one.sample, one.rival
        try:
            sheet = json.dumps(
                _sheet(renderer.render(sample, rival), _texts(criterion, sample, rival)), ensure_ascii=False
            )
        except CriterionError:
            sheet = ""
        yield (sample.item, sample.system, rival.system if rival else ""), sheet


def _sheet(prompt: Prompt, texts: Mapping[str, str]) -> list[list[Any]]:
    said = [(message["role"], message["content"]) for message in prompt.messages]
    said += [("question", prompt.question)] if prompt.question else []
    return [[role, _parts(content, texts)] for role, content in said]


def _texts(criterion: Criterion, sample: Sample, rival: Sample | None) -> dict[str, str]:
    """What of a sample can stand in a prompt, by name."""
    found = {"output": sample.output} if rival is None else {"first": sample.output, "second": rival.output}
    found |= {} if sample.source is None else {"source": sample.source}
    found |= {f"references {place}": text for place, text in enumerate(sample.references)}
    read = sorted(criterion.needs & sample.extra.keys())
    return found | {f"extra {name}": text for name in read if isinstance(text := sample.extra[name], str)}


def _parts(words: str, texts: Mapping[str, str]) -> list[str]:
    """The words and, at every odd place, what was between them."""
    parts = [words]
    there = [(name, text) for name, text in texts.items() if text in words]
    for name, text in sorted(there, key=lambda pair: -len(pair[1])):
        parts = _cut(parts, ">\n", text, "\n</", f"text {name}")
        parts = _cut(parts, " ", render.key(text), ">", f"key {name}")
        if len(text) >= _SURE:
            parts = _cut(parts, "", text, "", f"text {name}")
    return parts


def _cut(parts: Sequence[str], before: str, text: str, after: str, name: str) -> list[str]:
    """The parts, cut wherever the text stands between `before` and `after`."""
    found: list[str] = []
    for place, part in enumerate(parts):
        if place % 2:
            found.append(part)
            continue
        first, *rest = part.split(before + text + after)
        found.append(first)
        for one in rest:
            found[-1] += before
            found += [name, after + one]
    return found
