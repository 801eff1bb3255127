"""Evaluation steps drafted by a judge model (auto-CoT: Liu et al. 2023, G-Eval, section 2.2), for a person to read."""

from __future__ import annotations

from pathlib import Path

from judge import criteria
from judge.commands.judge_models import open_judge
from judge.commands.loop import in_a_loop
from judge.config import Plan
from judge.core.errors import ConfigError, CriterionError, ParseError
from judge.core.records import Message, Request
from judge.criteria.render import draft
from judge.execution.retry import Policy, Retrier
from judge.scoring import parse

_TOKEN_LIMIT = 1024


def draft_steps(path: str | Path, made: Plan, *, replace: bool = False) -> tuple[str, ...]:
    """Have the plan's judge draft the steps of the criterion in a file, and write them into the file's header.

    The rest of the file stays as it is. Steps that stand there already are replaced only where `replace` says so.
    Raises CriterionError, ConfigError, ProviderError, and ParseError where the reply is no list of steps; the file is
    then as it was.
    """
    if not str(path).endswith(".jinja"):
        raise CriterionError(
            f"{path}: steps are written into a file of yours; copy one: judge criteria show {path} > {path}.jinja"
        )
    criterion = criteria.load(str(path), language=made.language or "en", pairwise=None)
    criteria.with_steps(path, ["First.", "Second."], replace)  # what cannot be written is not asked for
    if len(made.model) != 1:
        raise ConfigError("name the one model that drafts the steps: --model NAME")
    asked = draft(criterion, criteria.drafting(criterion))
    steps = in_a_loop(lambda: _ask(asked.messages, made))
    criteria.write_steps(path, steps, replace=replace)
    return steps


async def _ask(messages: tuple[Message, ...], made: Plan) -> tuple[str, ...]:
    provider = open_judge(made, made.model[0])
    if provider.decides:
        raise ConfigError(f"--model {made.model[0].name}: a decision endpoint writes no text; name a chat model")
    params = {"temperature": made.temperature or 0.0, "max_tokens": made.max_tokens or _TOKEN_LIMIT}
    request = Request(provider.model, messages, params, endpoint=provider.endpoint)
    try:
        response = await Retrier(Policy(attempts=made.retries + 1))(lambda: provider.complete(request), request)
    finally:
        await provider.aclose()
    (choice,) = response.choices
    try:
        return criteria.read_steps(parse.reply_text(choice))
    except ParseError as error:
        raise ParseError(f"{error}; the reply was:\n{choice.text}", choice.text) from error
