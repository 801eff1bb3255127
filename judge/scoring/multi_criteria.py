"""Several criteria in one request: merge their prompts, and split the reply.

The material is the text that a criterion's template prints before `this.cut`. Criteria with the same material share a
request, and the reply is one JSON object with a key for each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from judge.core.errors import CriterionError, ParseError
from judge.core.records import ChecklistQuestion, Choice, Criterion, Prompt, Sample, Scale, Token
from judge.criteria import template_bodies
from judge.criteria.checklist import part_name, questions_of
from judge.criteria.render import Renderer, layout_renderer
from judge.scoring import checklist, parse

Prompts = Mapping[str, Prompt | CriterionError]
"""The prompts of several criteria for a sample, or the error of those that cannot be rendered."""
MakePrompts = Callable[[Sample], Prompts]


@dataclass(frozen=True, slots=True)
class SharedRenderer:
    """Renders the prompt of one of several criteria, or parts of a checklist; `prompts` renders all of them."""

    prompts: MakePrompts
    name: str

    def render(self, sample: Sample, rival: Sample | None = None) -> Prompt:
        """Return the criterion's prompt for a sample. Raises CriterionError and DataError."""
        prompt = self.prompts(sample)[self.name]
        if isinstance(prompt, CriterionError):
            raise prompt
        return prompt


PromptRenderer = Renderer | SharedRenderer


class _OfLast:
    """Caches the prompts of the last sample, because its criteria are rendered in a row."""

    def __init__(self, make: MakePrompts) -> None:
        self._make = make
        self._last: tuple[Sample, Prompts] | None = None

    def __call__(self, sample: Sample) -> Prompts:
        if self._last is None or self._last[0] is not sample:
            self._last = sample, self._make(sample)
        return self._last[1]


def make_renderers(criteria: Sequence[Criterion]) -> dict[str, PromptRenderer]:
    """Return the renderer of each criterion by name; criteria to be merged share one.

    Each part of a checklist has one. That of the checklist itself renders all questions, or the first of those that are
    asked in a request each.

    Raises CriterionError if a template does not compile.
    """
    together = [criterion for criterion in criteria if criterion.merged and not criterion.is_checklist]
    merged = _OfLast(_merged_prompts(together)) if together else None
    renderers: dict[str, PromptRenderer] = {}
    for c in criteria:
        if c.is_checklist and c.name not in renderers:
            whole = checklist.whole(c)
            parts, prompts = [part.name for part in checklist.parts(whole)], _OfLast(_checklist_prompts(whole))
            renderers |= {name: SharedRenderer(prompts, name) for name in parts}
            renderers[whole.name] = renderers[parts[0]]
        elif not c.is_checklist:
            renderers[c.name] = SharedRenderer(merged, c.name) if merged and c.merged else _renderer(c)
    return renderers


def _renderer(criterion: Criterion) -> Renderer:
    return Renderer(criterion, template_bodies(criterion))


def group_criteria(criteria: Sequence[Criterion], samples: Sequence[Sample]) -> list[list[Criterion]]:
    """Group the criteria that share requests, two or more in each group; others are asked alone.

    One sample for each set of filled-in fields is enough, because these decide what a template shows.
    """

    def filled_fields(sample: Sample) -> tuple[object, ...]:
        extra_fields = frozenset(name for name, value in sample.extra.items() if value is not None)
        return bool(sample.source), bool(sample.references), extra_fields

    prompts = _merged_prompts(criteria)
    groups: list[set[str]] = []
    for sample in {filled_fields(sample): sample for sample in reversed(samples)}.values():
        for prompt in prompts(sample).values():
            if isinstance(prompt, Prompt) and prompt.merged:
                names = {name for name, _ in prompt.merged}
                others = [group for group in groups if not group & names]
                groups = [*others, names.union(*(group for group in groups if group & names))]
    return [[criterion for criterion in criteria if criterion.name in group] for group in groups]


def _merged_prompts(criteria: Sequence[Criterion]) -> MakePrompts:
    """Return a function that renders merged criteria; an error does not affect the other criteria."""
    scales = {c.name: c.scale for c in criteria}
    each = {c.name: _renderer(c) for c in criteria}
    alone = {c.name: _renderer(replace(c, merged=False)) for c in criteria}
    joint = layout_renderer(criteria[0], "merged")

    def prompts(sample: Sample) -> Prompts:
        made: dict[str, Prompt | CriterionError] = {}
        by_material: dict[str, list[Prompt]] = {}
        for name, renderer in each.items():
            try:
                prompt = renderer.render(sample)
                by_material.setdefault(prompt.messages[0]["content"], []).append(prompt)
            except CriterionError as error:
                made[name] = error
        for material, group in by_material.items():
            names = [prompt.criterion for prompt in group]
            if len(names) == 1:  # alone with its material: asked as if not merged
                made[names[0]] = alone[names[0]].render(sample)
                continue
            questions = [{"name": p.criterion, "key": json.dumps(p.criterion), "text": p.question} for p in group]
            text = f"{material}\n\n{joint(questions=questions)}"
            made |= _sharing(group[0], text, {name: scales[name] for name in names})
        return made

    return prompts


def _checklist_prompts(criterion: Criterion) -> MakePrompts:
    """Return a function that renders the parts of a checklist. It raises CriterionError and DataError."""

    @lru_cache(maxsize=256)
    def renderer(questions: tuple[ChecklistQuestion, ...]) -> Renderer:
        return _renderer(replace(criterion, questions=questions))

    def prompts(sample: Sample) -> Prompts:
        questions = questions_of(criterion, sample)
        names = [part_name(criterion.name, number) for number in range(1, len(questions) + 1)]
        if criterion.merged:
            prompt = renderer(questions).render(sample)
            text = f"{prompt.messages[0]['content']}\n\n{prompt.question}"
            return _sharing(prompt, text, dict.fromkeys(names, criterion.scale))
        each = zip(names, questions, strict=True)
        return {name: replace(renderer((question,)).render(sample), criterion=name) for name, question in each}

    return prompts


def _sharing(prompt: Prompt, text: str, scales: Mapping[str, Scale]) -> dict[str, Prompt]:
    """Return the prompt of each of the criteria that are asked together in a text."""
    shared = replace(prompt, messages=({"role": "user", "content": text},), question="", merged=tuple(scales.items()))
    return {name: replace(shared, criterion=name) for name in scales}


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
