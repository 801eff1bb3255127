"""Metrics without a judge: `judge run --criteria none`, `judge doctor metrics`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judge.core import plugins
from judge.results.loading import load
from tests.factories import has_line, write_jsonl

ROWS = [
    {
        "item": i,
        "system": s,
        "output": f"{s} wrote this about {i}.",
        "references": [f"x wrote about {i}."],
    }
    for i in ("one", "two", "three")
    for s in ("x", "y")
]


@pytest.fixture
def judge(tmp_path: Path, command: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs the command in a folder with data.jsonl."""
    write_jsonl(tmp_path / "data.jsonl", ROWS)
    return command


def test_score_asks_no_judge_and_leaves_a_run_folder(judge: Callable[..., Any]) -> None:
    completed = judge(
        "run", "data.jsonl", "--criteria", "none", "--metrics", "rouge,bleu,distinct", "--out", "r"
    )
    assert (completed.code, completed.err) == (0, "")
    frame = pd.read_parquet("r/scores.parquet")
    assert set(frame["column"]) == {"rouge1", "rouge2", "rougeL", "rougeLsum", "bleu"} | {
        f"distinct{n}" for n in "1234"
    }
    assert set(frame["method"]) == {"metric"}
    assert judge("report", "r").out == completed.out


def test_default_metrics_and_every_format(judge: Callable[..., Any]) -> None:
    report = json.loads(
        judge("run", "data.jsonl", "--criteria", "none", "--format", "json", "--out", "r").out
    )
    assert [c["name"] for c in report["columns"]] == [
        "rouge1",
        "rouge2",
        "rougeL",
        "rougeLsum",
        "bleu",
        "chrf",
    ]
    assert judge("report", "r", "--format", "html").code == 0


def test_options_reach_the_metrics(judge: Callable[..., Any]) -> None:
    completed = judge(
        "run", "data.jsonl", "--criteria", "none", "--metrics", "rouge,bleu", "--set", "rouge.stem=false",
        "--set", "rouge.types=[rouge1]",
        "--set", "bleu.tokenize=char", "--quiet", "--out", "r", "--workers", "2",
    )  # fmt: skip
    assert (completed.code, completed.out) == (0, "")
    signatures = load("r").table.signatures
    assert list(signatures) == ["rouge1", "bleu"]
    assert "|stem=no|" in signatures["rouge1"]
    assert "|tok=char|" in signatures["bleu"]


def test_a_plan_is_measured_without_its_criteria(judge: Callable[..., Any]) -> None:
    Path("run.yaml").write_text(
        "data: data.jsonl\nmodel: nobody\ncriteria: [fluency]\nmetrics: [chrf]\nset: {chrf: {beta: 1}}\nout: r\n",
        encoding="utf-8",
    )
    assert judge("run", "run.yaml", "--criteria", "none").code == 0
    signatures = load("r").table.signatures
    assert list(signatures) == ["chrf"]


@pytest.mark.parametrize(
    ("args", "facts"),
    [
        (["--metrics", "rogue"], ("'rogue'", "'rouge'")),
        (["--metrics", "none"], ("nothing to do",)),
        (["--metrics", "rouge", "--set", "rouge.stem"], ("METRIC.OPTION=VALUE",)),
        (
            ["--metrics", "rouge", "--set", "rouge.stm=1"],
            ("--set rouge.stm:", "'stem'"),
        ),
        (
            ["--metrics", "rouge", "--set", "rouge.tokenizer=[ja]"],
            ("rouge.tokenizer", "en, words, char"),
        ),
        (
            ["--metrics", "bleu", "--set", "bleu.tokenize=[zh]"],
            ("bleu.tokenize", "13a, char"),
        ),
        (["--metrics", "distinct", "--set", "distinct.orders=[[1], 2]"], ("distinct.orders",)),
        (
            ["--metrics", "rouge", "--set", "bertscore.precision=bf16"],
            ("not have the metric 'bertscore'",),
        ),
        (["--workers", "0"], ("--workers: ",)),
        (["--map", "references=refs"], ("references",)),
    ],
)
def test_mistakes_exit_2(
    judge: Callable[..., Any], args: list[str], facts: tuple[str, ...]
) -> None:
    completed = judge("run", "data.jsonl", "--criteria", "none", "--out", "r", *args)
    assert completed.code == 2
    assert has_line(completed.err, *facts)
    assert len(completed.err.splitlines()) == 1
    assert not Path("r").exists()


def test_texts_that_cannot_be_measured_exit_1(judge: Callable[..., Any]) -> None:
    rows = [*ROWS, {"item": "four", "system": "x", "output": "alone", "references": []}]
    write_jsonl("data.jsonl", rows)
    chrf = ("run", "data.jsonl", "--criteria", "none", "--metrics", "chrf", "--out", "r")
    completed = judge(*chrf)
    assert completed.code == 1
    assert "6 measured, 1 failed" in completed.out
    assert "1 × no reference" in judge("report", "r", "--full").out


def test_metrics_are_listed_with_their_options(judge: Callable[..., Any]) -> None:
    completed = judge("doctor", "metrics")
    assert completed.code == 0
    names = [line.split()[0] for line in completed.out.splitlines() if not line.startswith(" ")]
    assert names == list(plugins.METRICS)
    assert "--set rouge.stem=true\n" in completed.out
    assert "--set bleu.tokenize=null\n" in completed.out
