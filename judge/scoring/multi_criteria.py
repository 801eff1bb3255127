"""Several criteria in one request: merge their prompts, and split the reply.

The material is the text that a criterion's template prints before `this.cut`. Criteria with the same material share a
request, and the reply is one JSON object with a key for each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from judge.core.errors import CriterionError, ParseError
from judge.core.records import Choice, Criterion, Prompt, Sample, Token
from judge.criteria import template_bodies
from judge.criteria.render import Renderer, SharedLayout
from judge.scoring import checklist, parse


class PromptRenderer(Protocol):
    """Renders the prompts of one criterion."""

    def render(self, sample: Sample, rival: Sample | None = None) -> Prompt:
        """Render the prompt for a sample, or for a pair. Raises CriterionError."""
        ...


def make_renderers(criteria: Sequence[Criterion]) -> dict[str, PromptRenderer]:
    """Return the renderer of each criterion by name; criteria to be merged share one.

    Each part of a checklist has one. That of the checklist itself renders all questions, or the first of those that are
    asked in a request each.

    Raises CriterionError if a template does not compile.
    """
    together = [criterion for criterion in criteria if criterion.merged and not criterion.is_checklist]
    merger = _Merger(together) if together else None
    renderers: dict[str, PromptRenderer] = {}
    for c in criteria:
        if c.is_checklist and c.name not in renderers:
            questions = checklist.Questions(checklist.whole(c))
            for part in (replace(questions.checklist, part=1), *checklist.parts(questions.checklist)):
                renderers[part.name] = _PartRenderer(questions, part.part)
        elif not c.is_checklist:
            renderers[c.name] = (
                _MemberRenderer(merger, c.name) if merger and c.merged else Renderer(c, template_bodies(c))
            )
    return renderers


def group_criteria(criteria: Sequence[Criterion], samples: Sequence[Sample]) -> list[list[Criterion]]:
    """Group the criteria that share requests, two or more in each group; others are asked alone.

    One sample for each set of filled-in fields is enough, because these decide what a template shows.
    """

    def filled_fields(sample: Sample) -> tuple[object, ...]:
        extra_fields = frozenset(name for name, value in sample.extra.items() if value is not None)
        return bool(sample.source), bool(sample.references), extra_fields

    merger = _Merger(criteria)
    groups: list[set[str]] = []
    for sample in {filled_fields(sample): sample for sample in reversed(samples)}.values():
        for prompt in merger.prompts(sample).values():
            if isinstance(prompt, Prompt) and prompt.merged:
                names = {name for name, _ in prompt.merged}
                others = [group for group in groups if not group & names]
                groups = [*others, names.union(*(group for group in groups if group & names))]
    return [[criterion for criterion in criteria if criterion.name in group] for group in groups]


class _MemberRenderer:
    """Renders one of the criteria that are rendered together."""

    def __init__(self, merger: _Merger, name: str) -> None:
        self._merger, self._name = merger, name

    def render(self, sample: Sample, rival: Sample | None = None) -> Prompt:
        prompt = self._merger.prompts(sample)[self._name]
        if isinstance(prompt, CriterionError):
            raise prompt
        return prompt


class _PartRenderer:
    """Renders a part of a checklist."""

    def __init__(self, questions: checklist.Questions, part: int) -> None:
        self._questions, self._part = questions, part

    def render(self, sample: Sample, rival: Sample | None = None) -> Prompt:
        return self._questions.render(sample, self._part)


class _Merger:
    """Renders merged criteria. Caches the last sample's prompts, because its criteria are rendered in a row."""

    def __init__(self, criteria: Sequence[Criterion]) -> None:
        self._scales = {c.name: c.scale for c in criteria}
        self._each = {c.name: Renderer(c, template_bodies(c)) for c in criteria}
        self._alone = {c.name: Renderer(replace(c, merged=False), template_bodies(c)) for c in criteria}
        self._joint = SharedLayout(criteria[0], "merged")
        self._last: tuple[Sample, Mapping[str, Prompt | CriterionError]] | None = None

    def prompts(self, sample: Sample) -> Mapping[str, Prompt | CriterionError]:
        """Return the prompt or the error of each criterion; an error does not affect the other criteria."""
        if self._last is None or self._last[0] is not sample:
            prompts_by_name: dict[str, Prompt | CriterionError] = {}
            by_material: dict[str, list[Prompt]] = {}
            for name, renderer in self._each.items():
                try:
                    prompt = renderer.render(sample)
                except CriterionError as error:
                    prompts_by_name[name] = error
                else:
                    by_material.setdefault(prompt.messages[0]["content"], []).append(prompt)
            for prompts in by_material.values():
                if len(prompts) == 1:  # alone with its material: asked as if not merged
                    name = prompts[0].criterion
                    prompts_by_name[name] = self._alone[name].render(sample)
                    continue
                questions = [{"name": p.criterion, "key": json.dumps(p.criterion), "text": p.question} for p in prompts]
                text = f"{prompts[0].messages[0]['content']}\n\n{self._joint.render(questions=questions)}"
                messages = ({"role": "user", "content": text},)
                merged = tuple((p.criterion, self._scales[p.criterion]) for p in prompts)
                for p in prompts:
                    prompts_by_name[p.criterion] = replace(p, messages=messages, question="", merged=merged)
            self._last = sample, prompts_by_name
        return self._last[1]


def split_reply(choice: Choice, names: Sequence[str], judged: str | None = None) -> list[Choice]:
    """Split a reply to several criteria into one for each: the value as written, and its tokens.

    A missing criterion gets the whole reply with a finish reason that prevents reading a score. With the `judged` text,
    a reply that is nearly JSON is split too; the finish reason of its parts prevents a strict reading.
    """
    unread = replace(choice, finish_reason=parse.UNKEYED if choice.finish_reason == "stop" else choice.finish_reason)
    try:
        places, reading = parse.spans(choice.text, names, judged)
    except ParseError:
        return [unread] * len(names)
    tokens: dict[str, tuple[Token, ...]] | None = None
    if choice.tokens is not None:
        # Their joined text may differ from the reply in white space and at its ends.
        try:
            token_places, _ = parse.spans("".join(token.text for token in choice.tokens), names, judged)
        except ParseError:
            token_places = {}
        tokens = {name: tuple(_tokens_between(choice.tokens, *place)) for name, place in token_places.items()}
    nearly = reading == "prose" and choice.finish_reason == "stop"
    finish = parse.NEARLY_JSON if nearly else choice.finish_reason
    return [
        Choice(choice.text[slice(*places[name])], finish, None if tokens is None else tokens.get(name, ()))
        if name in places
        else unread
        for name in names
    ]


def _tokens_between(tokens: Sequence[Token], start: int, end: int) -> list[Token]:
    """Return the tokens of `text[start:end]` and the one after them, which distinguishes a 1 from a 10."""
    inside: list[Token] = []
    first = last = 0
    for token in tokens:
        first, last = last, last + len(token.text)
        if last <= start or not token.text:
            continue
        # Its text is shortened, also among its alternatives; the other alternatives lose what is before `start`.
        head = token.text[: max(0, start - first)]
        text = token.text[len(head) : end - first] if first < end else token.text[:1]
        top = tuple((text if t == token.text else t.removeprefix(head), p) for t, p in token.top)
        inside.append(Token(text, token.logprob, top))
        if last > end:
            break
    return inside
