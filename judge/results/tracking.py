"""Log a result to MLflow or Weights & Biases.

Both get the numbers of its report, the signatures of its columns, and the report itself. A result
is `Any` here, because `Result` inherits from `Outlets`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from itertools import islice
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from judge.core.errors import MissingExtra
from judge.results.otel import otel

_FILES = {
    "report.html": "html",
    "report.md": "markdown",
    "report.json": "json",
    "scores.csv": "csv",
}
# Limits of MLflow.
_LONGEST_NAME = 250  # characters
_LONGEST_VALUE = 6000  # characters
_AT_ONCE = 100  # entries of a request
_LONGEST_SUFFIX = 20  # characters kept free for the ends of names, such as `.pass_rate`
_FORBIDDEN_IN_NAMES = re.compile(r"[^\w. -]")  # such as the colon of `gpt-4o:mini`


class Outlets:
    """The methods of a `Result` that export it to tools for experiments and traces."""

    def to_otel(self: Any) -> str:
        """Return OTLP-JSON lines: a span for each text, with an event `gen_ai.evaluation.result`
        for each value.

        Each line is a request for an OTLP endpoint at /v1/traces. Columns `trace_id` and `span_id`
        of the data name the span that wrote the text, `response_id` its response.
        """
        return otel(self.table, self.info)

    def log_to_mlflow(self: Any, *, prefix: str = "") -> None:
        """Log means, interval ends, signatures and the reports to the active run of MLflow, else to
        a new one.

        Metrics are `SYSTEM/COLUMN`, `….low`, `….high`, `….pass_rate` and `….win_rate`, after
        `prefix`. Raises MissingExtra.
        """
        mlflow = _package("mlflow")
        with nullcontext() if mlflow.active_run() else mlflow.start_run():
            for chunk in _chunks(metrics(self, prefix)):
                mlflow.log_metrics(chunk)
            for params in _chunks(parameters(self, prefix)):
                mlflow.log_params(params)
            with TemporaryDirectory() as folder:
                for file_name, format in _FILES.items():
                    path = Path(folder) / file_name
                    path.write_text(self.report(format, wide=True), encoding="utf-8")
                    mlflow.log_artifact(str(path), artifact_path=f"{prefix}judge")

    def log_to_wandb(self: Any, *, prefix: str = "") -> None:
        """Log means, intervals, signatures, the page and a table of values to wandb's active run.

        The table has all values. If no run is active, start and finish one. Names are the same as
        in `log_to_mlflow`. Raises MissingExtra.
        """
        wandb = _package("wandb")
        open_run = nullcontext(wandb.run)
        if not wandb.run:
            open_run = wandb.init(job_type="judge")
        with open_run as run:
            run.config.update(dict(parameters(self, prefix)), allow_val_change=True)
            run.summary.update(dict(metrics(self, prefix)))
            columns = ["item", "system", "opponent", "column", "value"]
            rows = [
                [score.item, score.system, score.opponent, score.column, score.value]
                for score in self.table.scores
            ]
            report = wandb.Html(self.report("html"))
            scores = wandb.Table(columns=columns, data=rows)
            run.log({f"{prefix}judge/report": report, f"{prefix}judge/scores": scores})


def metrics(result: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a report by name.

    They are means with their intervals, pass rates, win rates, and the number of failures.
    """
    names = _Names(prefix)
    for system, column, suffix, value in _numbers(result):
        if value is not None and isfinite(value):
            yield names.name(system, column) + suffix, float(value)
    yield f"{prefix}judge/failed", float(result.failed)


def _numbers(result: Any) -> Iterator[tuple[str, str, str, float | None]]:
    """Yield the system, the column, the end of the name and the value of each number."""
    for (system, column), estimate in result.estimates.items():
        yield system, column, "", estimate.value
        yield system, column, ".low", estimate.low
        yield system, column, ".high", estimate.high
    for (system, column), rate in result.pass_rates.items():
        yield system, column, ".pass_rate", rate.value
    for ranking in result.rankings:
        for standing in ranking.standings:
            yield standing.system, ranking.column, ".win_rate", standing.win_rate


def _chunks(values: Iterator[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the values in parts that one request of MLflow can hold."""
    while chunk := dict(islice(values, _AT_ONCE)):
        yield chunk


def parameters(result: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the run's parameters: the data and the signature of each column."""
    names = _Names(f"{prefix}judge/")
    data = result.info.data
    yield f"{prefix}judge/data", data.sha256 or data.path
    for column in result.table.columns:
        signature = str(column.signature)[:_LONGEST_VALUE]
        yield names.name("signature", column.name), signature


class _Names:
    """Gives each pair of system and column a name of its own that both tools accept."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._pairs_by_name: dict[str, tuple[str, str]] = {}

    def name(self, system: str, column: str) -> str:
        """Return the pair's name: `SYSTEM/COLUMN`, with `_2` if another pair has this name."""
        system_part = self._allowed(system)
        column_part = self._allowed(column)
        # The system and the column get half of the room each.
        room = (_LONGEST_NAME - len(self._prefix) - _LONGEST_SUFFIX) // 2
        plain = f"{self._prefix}{system_part[:room]}/{column_part[:room]}"
        pair = (system, column)
        candidate = plain
        number = 1
        while self._pairs_by_name.setdefault(candidate, pair) != pair:
            number += 1
            candidate = f"{plain}_{number}"
        return candidate

    @staticmethod
    def _allowed(part: str) -> str:
        """Replace the characters that a tool refuses: `gpt-4o:mini` becomes `gpt-4o_mini`."""
        return _FORBIDDEN_IN_NAMES.sub("_", part).strip(". ") or "_"


def _package(package_name: str) -> Any:
    try:
        return import_module(package_name)
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"log_to_{package_name} needs a package: pip install {error.name}"
        ) from error
