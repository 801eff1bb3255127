"""Log a result to MLflow or Weights & Biases: the numbers of its report, how they were made, and its page.

A result is `Any` here: it inherits from `Outlets`.
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
_LONGEST_NAME, _LONGEST_VALUE, _AT_ONCE = 250, 6000, 100
"""Limits of MLflow: characters, and entries of a request."""
_NOT_IN_NAMES = re.compile(r"[^\w. -]")


class Outlets:
    """The methods of a `Result` that export it to tools for experiments and traces."""

    def to_otel(self: Any) -> str:
        """Return OTLP-JSON lines: a span for each text, with an event `gen_ai.evaluation.result` for each value.

        Each line is a request for an OTLP endpoint at /v1/traces. Columns `trace_id` and `span_id` of the data name the
        span that wrote the text, `response_id` its response.
        """
        return otel(self.table, self.info)

    def log_to_mlflow(self: Any, *, prefix: str = "") -> None:
        """Log means, interval ends, signatures and the reports to the active run of MLflow, else to a new one.

        Metrics are `SYSTEM/COLUMN`, `….low`, `….high`, `….pass_rate` and `….win_rate`, after `prefix`. Raises
        MissingExtra.
        """
        mlflow = _package("mlflow")
        with nullcontext() if mlflow.active_run() else mlflow.start_run():
            for log, values in (
                (mlflow.log_metrics, metrics(self, prefix)),
                (mlflow.log_params, parameters(self, prefix)),
            ):
                while chunk := dict(islice(values, _AT_ONCE)):
                    log(chunk)
            with TemporaryDirectory() as folder:
                for name, format in _FILES.items():
                    path = Path(folder) / name
                    path.write_text(self.report(format, wide=True), encoding="utf-8")
                    mlflow.log_artifact(str(path), artifact_path=f"{prefix}judge")

    def log_to_wandb(self: Any, *, prefix: str = "") -> None:
        """Log means, interval ends, signatures, the page and a table of all values to the active run of wandb.

        If there is none, start and finish one. Names are those of `log_to_mlflow`. Raises MissingExtra.
        """
        wandb = _package("wandb")
        with nullcontext(wandb.run) if wandb.run else wandb.init(job_type="judge") as run:
            run.config.update(dict(parameters(self, prefix)), allow_val_change=True)
            run.summary.update(dict(metrics(self, prefix)))
            logged = {f"{prefix}judge/report": wandb.Html(self.report("html"))}
            rows = [[s.item, s.system, s.rival, s.column, s.value] for s in self.table.scores]
            columns = ["item", "system", "rival", "column", "value"]
            logged[f"{prefix}judge/scores"] = wandb.Table(columns=columns, data=rows)
            run.log(logged)


def metrics(result: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a report by name: means with their intervals, pass rates, win rates, failures."""
    names = _Names(prefix)
    values: list[tuple[str, str, str, float | None]] = []
    for (system, column), estimate in result.estimates.items():
        values += [
            (system, column, end, getattr(estimate, end[1:] or "value"))
            for end in ("", ".low", ".high")
        ]
    values += [(*key, ".pass_rate", rate.value) for key, rate in result.pass_rates.items()]
    for ranking in result.rankings:
        values += [
            (each.system, ranking.column, ".win_rate", each.win_rate) for each in ranking.standings
        ]
    for system, column, end, value in values:
        if value is not None and isfinite(value):
            yield names.name(system, column) + end, float(value)
    yield f"{prefix}judge/failed", float(result.failed)


def parameters(result: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the run's parameters: the data and the signature of each column."""
    names = _Names(f"{prefix}judge/")
    data = result.info.data
    yield f"{prefix}judge/data", data.sha256 or data.path
    for column in result.table.columns:
        yield names.name("signature", column.name), str(column.signature)[:_LONGEST_VALUE]


class _Names:
    """Names with the characters that both tools accept, a different one for each pair of system and column."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[str, tuple[str, str]] = {}

    def name(self, system: str, column: str) -> str:
        first, second = (
            _NOT_IN_NAMES.sub("_", part).strip(". ") or "_" for part in (system, column)
        )
        room = (_LONGEST_NAME - len(self._prefix) - 20) // 2
        plain = f"{self._prefix}{first[:room]}/{second[:room]}"
        for name in (plain, *(f"{plain}_{number}" for number in range(2, len(self._names) + 3))):
            if self._names.setdefault(name, (system, column)) == (system, column):
                return name
        raise AssertionError("more names than pairs")


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtra(f"log_to_{name} needs a package: pip install {error.name}") from error
