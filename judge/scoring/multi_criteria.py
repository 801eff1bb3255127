"""Renderers of criteria; the questions of a checklist in one request, and its reply split into one for each.

The reply is one JSON object with a key for each question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from judge.core.errors import ParseError
from judge.core.records import ChecklistQuestion, Choice, Criterion, Prompt, Sample, Scale, Token
from judge.criteria import template_bodies
from judge.criteria.checklist import has_questions, part_name, questions_of
from judge.criteria.render import MissingInput, Renderer, missing_message
from judge.scoring import checklist, parse

Prompts = Mapping[str, Prompt]
"""The prompts of the parts of a checklist for a sample."""
MakePrompts = Callable[[Sample], Prompts]


@dataclass(frozen=True, slots=True)
class SharedRenderer:
    """Renders the prompt of one of the parts of a checklist; `prompts` renders all of them."""

    prompts: MakePrompts
    name: str

    def render(self, sample: Sample, rival: Sample | None = None) -> Prompt:
        """Return the part's prompt for a sample. Raises CriterionError and DataError."""
        return self.prompts(sample)[self.name]


PromptRenderer = Renderer | SharedRenderer


class _OfLast:
    """Caches the prompts of the last sample, because its parts are rendered in a row."""

    def __init__(self, make: MakePrompts) -> None:
        self._make = make
        self._last: tuple[Sample, Prompts] | None = None

    def __call__(self, sample: Sample) -> Prompts:
        if self._last is None or self._last[0] is not sample:
            self._last = sample, self._make(sample)
        return self._last[1]


def make_renderers(criteria: Sequence[Criterion]) -> dict[str, PromptRenderer]:
    """Return the renderer of each criterion by name.

    Each part of a checklist has one. That of the checklist itself renders all questions, or the first of those that are
    asked in a request each.

    Raises CriterionError if a template does not compile.
    """
    renderers: dict[str, PromptRenderer] = {}
    for c in criteria:
        if c.is_checklist and c.name not in renderers:
            whole = checklist.whole(c)
            parts, prompts = (
                [part.name for part in checklist.parts(whole)],
                _OfLast(_checklist_prompts(whole)),
            )
            renderers |= {name: SharedRenderer(prompts, name) for name in parts}
            renderers[whole.name] = renderers[parts[0]]
        elif not c.is_checklist:
            renderers[c.name] = _renderer(c)
    return renderers


def _renderer(criterion: Criterion) -> Renderer:
    return Renderer(criterion, template_bodies(criterion))


def _checklist_prompts(criterion: Criterion) -> MakePrompts:
    """Return a function that renders the parts of a checklist. It raises CriterionError and DataError."""

    @lru_cache(maxsize=256)
    def renderer(questions: tuple[ChecklistQuestion, ...]) -> Renderer:
        return _renderer(replace(criterion, questions=questions))

    def prompts(sample: Sample) -> Prompts:
        if not has_questions(criterion, sample):
            raise MissingInput(missing_message(criterion, sample, criterion.questions_column))
        questions = questions_of(criterion, sample)
        names = [part_name(criterion.name, number) for number in range(1, len(questions) + 1)]
        if criterion.together:
            prompt = renderer(questions).render(sample)
            text = f"{prompt.messages[0]['content']}\n\n{prompt.question}"
            return _sharing(prompt, text, dict.fromkeys(names, criterion.scale))
        each = zip(names, questions, strict=True)
        return {
            name: replace(renderer((question,)).render(sample), criterion=name)
            for name, question in each
        }

    return prompts


def _sharing(prompt: Prompt, text: str, scales: Mapping[str, Scale]) -> dict[str, Prompt]:
    """Return the prompt of each of the parts that are asked together in a text."""
    shared = replace(
        prompt,
        messages=({"role": "user", "content": text},),
        question="",
        merged=tuple(scales.items()),
    )
    return {name: replace(shared, criterion=name) for name in scales}


@lru_cache(maxsize=256)
def split_reply(
    choice: Choice, names: tuple[str, ...], judged: str | None = None
) -> tuple[Choice, ...]:
    """Split a reply to several questions into one for each: the value as written, and its tokens.

    A missing question gets the whole reply with a finish reason that prevents reading a score. With the `judged` text,
    a reply that is nearly JSON is split too; the finish reason of its parts prevents a strict reading.
    """
    unread = replace(
        choice,
        finish_reason=parse.UNKEYED if choice.finish_reason == "stop" else choice.finish_reason,
    )
    try:
        places, reading = parse.spans(choice.text, names, judged)
    except ParseError:
        return (unread,) * len(names)
    tokens: dict[str, tuple[Token, ...]] | None = None
    if choice.tokens is not None:
        # Their joined text may differ from the reply in white space and at its ends.
        try:
            token_places, _ = parse.spans(
                "".join(token.text for token in choice.tokens), names, judged
            )
        except ParseError:
            token_places = {}
        tokens = {
            name: tuple(_tokens_between(choice.tokens, *place))
            for name, place in token_places.items()
        }
    nearly = reading == "prose" and choice.finish_reason == "stop"
    finish = parse.NEARLY_JSON if nearly else choice.finish_reason

    def part(name: str) -> Choice:
        if name not in places:
            return unread
        return Choice(
            choice.text[slice(*places[name])],
            finish,
            None if tokens is None else tokens.get(name, ()),
        )

    return tuple(part(name) for name in names)


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
