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
_KEYS = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics")
# "samples_gsm8k_2026-11-29T16-04-23.123456.jsonl"
_NAME = re.compile(r"samples_.+_(\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl")


def claims(opening: Opening) -> bool:
    """Return whether these are samples."""
    return all(key in opening.first for key in _KEYS)


def read(opening: Opening) -> Iterator[JudgedText]:
    """Yield the documents, each with the scores of all filters. Raises DataError."""
    rows = list(opening.rows())
    filters = dict.fromkeys(row.cells.get("filter") for row in rows)
    model = _model(opening.path)
    texts: dict[str, JudgedText] = {}
    for row in rows:
        item = str(row.cells.get("doc_id"))
        if item not in texts:
            texts[item] = _text(row, item, model)
        _add_scores(texts[item], row, suffix=len(filters) > 1)
    yield from texts.values()


def _model(samples: Path) -> str:
    """Return the model that the results of the same run name, "" if they are not beside it."""
    match = _NAME.fullmatch(samples.name)
    if match is None:
        return ""
    try:
        results = json.loads((samples.parent / f"results_{match[1]}.json").read_bytes())
    except (OSError, ValueError):
        return ""
    return str(results.get("model_name") or "") if isinstance(results, Mapping) else ""


def _text(row: RawRow, item: str, model: str) -> JudgedText:
    requests = _requests(row)
    answers = row.cells.get("filtered_resps") or [""]
    target = str(row.cells.get("target"))
    output = as_text(answers[0])
    if len(requests) > 1:
        # Each request is a choice. The most probable one is the answer.
        output = _choice(requests, _most_probable(answers))
        target = _choice(requests, int(target)) if target.isdecimal() else target
    return JudgedText(
        row.where,
        item=item,
        system=model,
        source=as_text(requests[0][0]) if requests and requests[0] else "",
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
    """Return the number of the answer with the highest log-likelihood, the first of each."""
    likelihoods = []
    for answer in answers:
        value = finite_number(answer[0] if isinstance(answer, list) and answer else None)
        likelihoods.append(float("-inf") if value is None else value)
    return likelihoods.index(max(likelihoods))


def _choice(requests: Sequence[Sequence[Any]], number: int) -> str:
    is_there = number < len(requests) and len(requests[number]) > 1
    return str(requests[number][1]).strip() if is_there else str(number)


def _add_scores(text: JudgedText, row: RawRow, *, suffix: bool) -> None:
    """Add the metrics of a line, with the name of its filter if there are several."""
    for metric in row.cells.get("metrics") or ():
        name = f"{metric}.{row.cells['filter']}" if suffix else str(metric)
        value = row.cells.get(metric)
        if name in text.scores or name in text.own_columns:
            raise DataError(f"{row.where}: document {text.item} already has {name}")
        if isinstance(value, list):
            # Corpus metrics, such as BLEU, have texts here and no score of this document.
            text.own_columns[name] = value
            continue
        text.scores[name] = score(value, row.where, name)
