"""Other wordings of a criterion's question: those of its header, or those that the judge writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from judge import criteria
from judge.core.errors import ParseError
from judge.core.records import Criterion
from judge.criteria.header import LONGEST_PARAPHRASE, N_PARAPHRASES, read_paraphrases
from judge.criteria.render import render_paraphrasing_prompt
from judge.metrics.base import ModelError, ModelQuestion
from judge.run.pipeline import Runs
from judge.run.preparation import PreparedRun
from judge.scoring import json_reply

MOST_REQUESTS = 2
"""Requests for the wordings of one criterion: a useless reply is asked for once more."""
_KEY = "wordings"
_TOKEN_LIMIT = 4_096
_MOST_REJECTED = 1_000  # characters of a useless reply that the second prompt shows


def stand_ins(criterion: Criterion) -> tuple[str, ...]:
    """Return texts about as long as the wordings that the judge will write, to estimate their cost.

    Raises CriterionError for a criterion without a question that can be replaced.
    """
    question = criteria.own_question(criterion)
    return tuple(f"{question} ({number})" for number in range(1, N_PARAPHRASES + 1))


async def write_paraphrases(
    rephrased: Sequence[Criterion],
    writing: PreparedRun,
    runs: Runs,
) -> dict[str, list[str] | ModelError]:
    """Have the judge of a run write the wordings of each criterion, or say why there are none.

    Replies come from the cache if they are in it.
    """
    replies = await _ask(rephrased, writing, runs)
    errors = {
        name: reply for name, reply in replies.items() if isinstance(reply, ModelError)
    }
    rejected = {
        criterion_name: error
        for criterion_name, error in errors.items()
        if error.error == ParseError.__name__
    }
    if rejected:
        again = [criterion for criterion in rephrased if criterion.name in rejected]
        # The reply to the second prompt may be useless too. The next call then asks anew.
        not_final = writing.config.model_copy(update={"retry_failed": True})
        replies |= await _ask(again, replace(writing, config=not_final), runs, rejected)
    written: dict[str, list[str] | ModelError] = {}
    for criterion in rephrased:
        reply = replies[criterion.name]
        if isinstance(reply, str):
            written[criterion.name] = read_reply(reply, criterion)
        else:
            written[criterion.name] = reply
    return written


async def _ask(
    rephrased: Sequence[Criterion],
    writing: PreparedRun,
    runs: Runs,
    rejected: Mapping[str, ModelError] | None = None,
) -> dict[str, str | ModelError]:
    """Return a usable reply for each criterion, by name, or why there is none."""
    questions = [_model_question(criterion, rejected or {}) for criterion in rephrased]
    replies = await runs.ask(writing, questions)
    names = [criterion.name for criterion in rephrased]
    return dict(zip(names, replies, strict=True))


def _model_question(
    criterion: Criterion, rejected: Mapping[str, ModelError]
) -> ModelQuestion:
    def checked(reply: str) -> str:
        read_reply(reply, criterion)
        return reply

    problem = ""
    rejected_reply = ""
    if criterion.name in rejected:
        error = rejected[criterion.name]
        problem = error.message
        rejected_reply = error.raw[:_MOST_REJECTED]
    prompt = render_paraphrasing_prompt(
        criterion,
        criteria.own_question(criterion),
        count=N_PARAPHRASES,
        longest=LONGEST_PARAPHRASE,
        problem=problem,
        reply=rejected_reply,
    )
    return ModelQuestion(prompt, _TOKEN_LIMIT, checked)


def read_reply(reply: str, criterion: Criterion) -> list[str]:
    """Return the wordings in a judge's reply, a JSON object with a list `wordings`.

    Raises ParseError for anything else, and for the wordings that a criterion's header cannot have.
    """
    objects = json_reply.objects(reply, 0)
    if len(objects) != 1 or objects[0].broken:
        raise ParseError(f"no JSON object with {_KEY}", reply)
    json_text = reply[objects[0].start : objects[0].end]
    try:
        # Models write line breaks inside strings, which strict JSON forbids.
        values = json.loads(json_text, strict=False)
    except ValueError as error:
        raise ParseError(f"not JSON: {error}", reply) from error
    wordings = values.get(_KEY)
    is_list = isinstance(wordings, list)
    if not is_list or not all(isinstance(text, str) for text in wordings):
        raise ParseError(f"{_KEY} is not a list of texts", reply)
    try:
        read = read_paraphrases(wordings)
    except ValueError as error:
        raise ParseError(str(error), reply) from error
    question = criteria.own_question(criterion).split()
    if not read or any(wording.split() == question for wording in read):
        raise ParseError("repeats the question, or has no wording", reply)
    return read
