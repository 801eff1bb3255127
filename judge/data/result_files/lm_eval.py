"""Samples of the LM Evaluation Harness: `samples_TASK_TIME.jsonl`, written with `--log_samples`.

A line is one document of a task and one filter of the answers.
https://github.com/EleutherAI/lm-evaluation-harness
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.core.errors import DataError
from judge.core.option_values import finite_number
from judge.data.result_files.judged import JudgedText, as_text, score
from judge.data.result_files.opening import Opening
from judge.data.rows import RawRow

TOOL = "the LM Evaluation Harness"
_KEYS = (
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "metrics",
)
# "samples_gsm8k_2026-11-29T16-04-23.123456.jsonl"
_NAME = re.compile(r"samples_.+_(\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl")


def claims(opening: Opening) -> bool:
    """Return whether these are samples."""
    return all(key in opening.first for key in _KEYS)


def read(opening: Opening) -> Iterator[JudgedText]:
    """Yield the documents, each with the scores of all filters. Raises DataError."""
    rows = list(opening.rows())
    filters = {row.cells.get("filter") for row in rows}
    has_several_filters = len(filters) > 1
    model = _model(opening.path)
    text_by_item: dict[str, JudgedText] = {}
    for row in rows:
        item = str(row.cells.get("doc_id"))
        if item not in text_by_item:
            text_by_item[item] = _text(row, item, model)
        _add_scores(text_by_item[item], row, with_filter=has_several_filters)
    yield from text_by_item.values()


def _model(samples: Path) -> str:
    """Return the model that the results of the same run name, "" if they are not beside it."""
    name_match = _NAME.fullmatch(samples.name)
    if name_match is None:
        return ""
    results_file = samples.parent / f"results_{name_match[1]}.json"
    try:
        results = json.loads(results_file.read_bytes())
    except (OSError, ValueError):
        return ""
    if not isinstance(results, Mapping):
        return ""
    return str(results.get("model_name") or "")


def _text(row: RawRow, item: str, model: str) -> JudgedText:
    requests = _requests(row)
    answers = row.cells.get("filtered_resps") or [""]
    target = str(row.cells.get("target"))
    output = as_text(answers[0])
    if len(requests) > 1:
        # Each request is a choice. The most probable one is the answer.
        output = _choice(requests, _most_probable(answers))
        # The target is then the number of the right choice.
        if target.isdecimal():
            target = _choice(requests, int(target))
    # The first argument of a request is the prompt, the second one a choice or settings.
    source = as_text(requests[0][0]) if requests and requests[0] else ""
    return JudgedText(
        row.where,
        item=item,
        system=model,
        source=source,
        output=output,
        references=(target,),
    )


def _requests(row: RawRow) -> list[list[Any]]:
    """Return the arguments of each request: `{"gen_args_0": {"arg_0": ..., "arg_1": ...}}`."""
    arguments = row.cells.get("arguments")
    if not isinstance(arguments, Mapping):
        raise DataError(f"{row.where}: arguments is {arguments!r:.40}, not an object")
    return [list(request.values()) for request in arguments.values()]


def _most_probable(answers: Sequence[Any]) -> int:
    """Return the number of the answer with the highest log-likelihood, its first member."""
    log_likelihoods: list[float] = []
    for answer in answers:
        first_member = answer[0] if isinstance(answer, list) and answer else None
        log_likelihood = finite_number(first_member)
        if log_likelihood is None:
            log_likelihood = float("-inf")
        log_likelihoods.append(log_likelihood)
    return log_likelihoods.index(max(log_likelihoods))


def _choice(requests: Sequence[Sequence[Any]], number: int) -> str:
    """Return the text of a choice, or its number if the requests have no such choice."""
    if number < len(requests) and len(requests[number]) > 1:
        return str(requests[number][1]).strip()
    return str(number)


def _add_scores(text: JudgedText, row: RawRow, *, with_filter: bool) -> None:
    """Add the metrics of a line, with the name of its filter if there are several."""
    for metric in row.cells.get("metrics") or ():
        criterion = str(metric)
        if with_filter:
            filter_name = row.cells["filter"]
            criterion = f"{metric}.{filter_name}"
        value = row.cells.get(metric)
        if criterion in text.scores or criterion in text.own_columns:
            raise DataError(
                f"{row.where}: document {text.item} already has {criterion}"
            )
        if isinstance(value, list):
            # Corpus metrics, such as BLEU, have texts here and no score of this document.
            text.own_columns[criterion] = value
            continue
        text.scores[criterion] = score(value, row.where, criterion)
