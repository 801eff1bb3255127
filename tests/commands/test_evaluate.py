"""evaluate(): all stages from data to result, in a script, a notebook and a running event loop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import judge
from judge.config import load_config
from judge.core import plugins
from judge.core.errors import (
    BudgetReached,
    ConfigError,
    CriterionError,
    DataError,
    ProviderError,
    Refused,
    StorageError,
)
from judge.core.records import Column, Provenance, Request, Response, Score
from judge.core.signature import Signature
from judge.execution.progress import Progress
from judge.metrics import BaseMetric, MetricResult
from judge.metrics.claims import Job
from judge.providers.scripted import Reply, ScriptedProvider
from judge.results.run_info import PromptLanguage
from judge.run.pipeline import run_pipeline
from judge.run.preparation import prepare, prompt
from tests.factories import has_line, write_jsonl

ROWS = [
    {
        "item": item, "system": system, "source": f"Source of {item}.", "output": f"{system} wrote this about {item}.",
        "references": ["A reference text."], "tone": "calm",
    }
    for item in ("a", "b", "c") for system in ("x", "y")
]  # fmt: skip


def by_system(request: Any) -> Reply:
    return {"5": 0.8, "4": 0.2} if "x wrote" in request.messages[0]["content"] else {"2": 1.0}


@pytest.fixture
def provider() -> ScriptedProvider:
    return ScriptedProvider(by_system)


def test_the_whole_path_from_rows_to_estimates(provider: ScriptedProvider) -> None:
    progress = Progress()
    result = judge.evaluate(
        ROWS, "relevance,coherence", model=provider, metrics="bleu", progress=progress
    )
    assert (progress.total, progress.done, progress.failed) == (12, 12, 0)
    assert has_line(repr(result), "2 systems, 3 items, 3 columns, 18 scores", "0 failures")
    assert result.table.systems == ("x", "y")
    assert result.estimates["x", "relevance"].value == pytest.approx(4.8)
    assert result.estimates["y", "coherence"].value == pytest.approx(2.0)
    assert [c.name for c in result.table.columns] == ["relevance", "coherence", "bleu"]
    assert result.failures == ()
    assert len(provider.seen) == 12
    alone = judge.evaluate(ROWS, [], metrics=["bleu"], limit=2)  # metrics alone need no model
    assert [s.system for s in alone.table.samples] == ["x", "y"]
    assert ([c.name for c in alone.table.columns], alone.info.provider) == (["bleu"], "")


def test_the_system_never_reaches_the_judge() -> None:
    rows = [
        row | {"system": "the-secret-system", "item": f"the-secret-item-{i}"}
        for i, row in enumerate(ROWS)
    ]
    provider = ScriptedProvider(lambda _: "3")
    judge.evaluate(rows, ["relevance", "fluency"], model=provider, metrics=[])
    assert provider.seen
    assert not any("the-secret" in m["content"] for r in provider.seen for m in r.messages)


def test_a_frame_a_file_and_an_iterable_give_the_same_table(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    path = tmp_path / "d.jsonl"
    write_jsonl(path, ROWS)
    results = [
        judge.evaluate(data, ["relevance"], model=provider, metrics=[])
        for data in (ROWS, path, str(path), pd.DataFrame(ROWS))
    ]
    frames = [r.to_frame() for r in results]
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(frame, frames[0])


def test_inside_a_running_loop_as_in_a_notebook(provider: ScriptedProvider) -> None:
    async def cell() -> Any:
        awaited = await judge.evaluate_async(ROWS, ["relevance"], model=provider, metrics=[])
        called = judge.evaluate(ROWS, ["relevance"], model=provider, metrics=[])
        with pytest.raises(DataError):
            judge.evaluate([], model=provider)
        assert awaited.table == called.table
        return called

    assert asyncio.run(cell()).estimates["y", "relevance"].value == 2.0
    assert not any(t.name.startswith("judge") for t in threading.enumerate())


class Slow(ScriptedProvider):
    """A slow scripted judge that triggers Ctrl-C at its fifth request."""

    async def complete(self, request: Any) -> Any:
        if len(self.seen) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.01)
        return await super().complete(request)


def test_ctrl_c_in_a_notebook_stops_the_run_and_keeps_results(tmp_path: Path) -> None:
    provider = Slow(lambda _: "4")
    rows = [ROWS[0] | {"item": str(i), "output": f"Text {i}."} for i in range(2000)]

    async def cell() -> None:
        judge.evaluate(
            rows, ["relevance"], model=provider, metrics=[], out=tmp_path / "r", max_concurrency=1
        )

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt, match="make the same call again to resume"):
            loop.run_until_complete(cell())
    finally:
        loop.close()
    stored = judge.load_result(tmp_path / "r")
    assert stored.info.status == "interrupted"
    assert 0 < len(stored.table.scores) < 2000
    assert not any(t.name.startswith("judge") for t in threading.enumerate())


def test_a_loaded_result_equals_the_returned_result(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    result = judge.evaluate(
        ROWS, ["relevance"], model=provider, metrics=["bleu"], out=tmp_path / "r"
    )
    reloaded = judge.load_result(tmp_path / "r")
    assert reloaded.table == result.table
    assert reloaded.estimates == result.estimates
    names = {p.name for p in (tmp_path / "r").iterdir()}
    assert names == {
        "scores.parquet",
        "samples.parquet",
        "estimates.parquet",
        "run.json",
        "report.html",
        "report.md",
    }


def test_run_json_has_everything_needed_to_repeat_the_run(
    tmp_path: Path, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    path = tmp_path / "d.jsonl"
    write_jsonl(path, ROWS)
    judge.evaluate(
        path,
        ["relevance"],
        model=provider,
        metrics=["bleu"],
        out=tmp_path / "r",
        cache=tmp_path / "c",
    )
    run = json.loads((tmp_path / "r" / "run.json").read_text("utf-8"))
    info = run["info"]
    signatures = {column["name"]: column["signature"] for column in run["columns"]}
    assert info["status"] == "complete"
    assert len(info["data"]["sha256"]) == 64
    assert info["config"]["criteria"] == ["relevance"]
    assert "relevance.jinja" in " ".join(info["criteria"]["relevance"]["templates"])
    assert signatures["relevance"].startswith("relevance@")
    assert "t=0/1|auto|draws=20|judge" in signatures["relevance"]
    assert "sacrebleu" in signatures["bleu"]
    assert info["requests"]["sent"] == 6
    for file in (*(tmp_path / "r").iterdir(), *(tmp_path / "c").rglob("*")):
        assert file.is_dir() or b"sk-very-secret" not in file.read_bytes()


def test_the_language_is_the_datas_unless_chosen(provider: ScriptedProvider) -> None:
    rows = [{"source": "猫がマットの上に座っています。", "output": "猫が座っている。"}]
    result = judge.evaluate(rows, ["coherence"], model=provider, metrics=[])
    assert result.info.language == PromptLanguage("ja", "detected")
    assert "首尾一貫性" in provider.seen[-1].messages[0]["content"]
    chosen = judge.evaluate(rows, ["coherence"], model=provider, metrics=[], language="en")
    assert chosen.info.language == PromptLanguage("en", "chosen")
    assert "Coherence" in provider.seen[-1].messages[0]["content"]


def test_a_custom_criterion_reads_further_columns(tmp_path: Path) -> None:
    path = tmp_path / "tone.jinja"
    path.write_text(
        "---\nscale: {labels: [wrong, right], values: [0, 1]}\n---\n"
        "Is the tone {{ tone }}?\n{{ output | fenced('text') }}",
        encoding="utf-8",
    )
    provider = ScriptedProvider(lambda _: "right")
    result = judge.evaluate(ROWS, [str(path)], model=provider, metrics=[])
    assert result.estimates["x", "tone"].value == 1.0
    assert "Is the tone calm?" in provider.seen[0].messages[0]["content"]
    as_object = judge.evaluate(ROWS, [judge.load_criterion(str(path))], model=provider, metrics=[])
    assert as_object.estimates == result.estimates


@pytest.mark.parametrize("name", ["customer", "question"])
def test_a_column_is_mapped_to_what_a_criterion_reads(name: str) -> None:
    provider = ScriptedProvider(lambda _: "3")
    rows = [{**row, "column": "Hello."} for row in ROWS]
    kind = {"name": "kind", "question": "Is it kind?", "show": ["customer"]}
    criterion = kind if name == "customer" else "fluency"
    result = judge.evaluate(rows, [criterion], map={name: "column"}, model=provider, metrics=[])
    assert len(result.table.scores) == len(ROWS)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("itme", ("judge has no field itme", "did you mean item?")),
        ("note", ("judge has no field note", "fields: item, system")),
        ("rating.flency", ("no criterion flency", "did you mean fluency?")),
        ("rating.tone", ("no criterion tone", "criteria: fluency")),
    ],
)
@pytest.mark.parametrize("function", [judge.evaluate, judge.plan, judge.rank])
def test_a_mapped_field_that_nothing_reads_stops_before_a_request(
    function: Any, name: str, facts: tuple[str, ...], provider: ScriptedProvider
) -> None:
    rows = [{**row, "column": "4", "human": {"fluency": 3}} for row in ROWS]
    criterion = "fluency"
    if function is judge.rank:
        criterion = "fluency: Which one is more fluent?"
    with pytest.raises(ConfigError) as refused:
        function(rows, criterion, map={name: "column"}, model=provider)
    assert has_line(str(refused.value), *facts)
    assert provider.seen == []


def test_ratings_of_criteria_that_are_not_judged_this_time_may_be_mapped(
    provider: ScriptedProvider,
) -> None:
    rows = [{**row, "fine": "4", "tones": "3"} for row in ROWS]
    ratings = {"rating.relevance": "fine", "rating.tone": "tones"}
    result = judge.evaluate(rows, "relevance", map=ratings, model=provider, metrics=[])
    assert len(result.table.scores) == len(ROWS)
    with pytest.raises(ConfigError, match="did you mean tone"):
        judge.evaluate(
            rows,
            ["relevance", "tone: Is it friendly?"],
            map={"rating.relevance": "fine", "rating.tones": "tones"},
            model=provider,
        )


def test_reference_metrics_are_skipped_with_a_note_if_there_are_no_references(
    provider: ScriptedProvider,
) -> None:
    rows = [{k: v for k, v in row.items() if k != "references"} for row in ROWS]
    result = judge.evaluate(rows, ["relevance"], model=provider)
    assert [c.name for c in result.table.columns] == ["relevance"]
    assert any("no references" in note for note in result.info.remarks)


def test_metrics_that_no_text_has_the_data_for_are_refused_before_a_judge_is_paid(
    provider: ScriptedProvider,
) -> None:
    rows = [{k: v for k, v in row.items() if k not in ("references", "source")} for row in ROWS]
    with_torch = ("bertscore",) if find_spec("torch") else ()
    for metric in ("rouge", "bleu", "bleu_corpus", "chrf", "ter", "meteor", "cider", *with_torch):
        with pytest.raises(
            DataError,
            match=rf"metrics {metric}: .*map=\{{'references': 'COL",
        ):
            judge.evaluate(
                [row | {"references": [" "]} for row in rows],
                ["fluency"],
                model=provider,
                metrics=[metric],
            )
    for metric in ("source_bleu", "qags"):
        with pytest.raises(DataError, match=f"metrics {metric}: .*source"):
            judge.evaluate(rows, ["fluency"], model=provider, metrics=["distinct", metric])
    assert not provider.seen
    some = judge.evaluate([ROWS[0], *rows[1:]], ["fluency"], model=provider, metrics="chrf")
    assert [failure.error for failure in some.failures if failure.column == "chrf"] == [
        "NoReference"
    ] * 5


def test_empty_cells_of_a_csv_are_counted(tmp_path: Path, provider: ScriptedProvider) -> None:
    data = tmp_path / "d.csv"
    data.write_text("item,system,output\n1,x,x wrote this.\n1,y,\n2,x, \n", encoding="utf-8")
    notes = judge.evaluate(data, ["fluency"], model=provider, metrics=[]).info.notes
    assert has_line(notes, "Empty texts", "2 of 3", f"{data}:3")


def test_a_rule_that_answers_no_prompt_is_named(tmp_path: Path) -> None:
    replies = tmp_path / "r.yaml"
    replies.write_text(
        "- {when: x wrote, reply: 3}\n- {when: [z, wrote], reply: 1}\n- {reply: 2}\n",
        encoding="utf-8",
    )
    options: dict[str, Any] = {
        "model": f"scripted/{replies}",
        "metrics": [],
        "cache": tmp_path / "cache",
    }
    unused = ("r.yaml", "rule 2", "not used", "'z' and 'wrote'")
    asked = judge.evaluate(ROWS, ["fluency"], **options)
    assert has_line(asked.info.notes, *unused)
    answered_by_the_cache = judge.evaluate(ROWS, ["fluency"], **options)
    assert not has_line(answered_by_the_cache.info.notes, "r.yaml", "rule 2")
    replies.write_text(
        "- {when: x wrote, reply: 3}\n- {when: [y, wrote], reply: 1}\n", encoding="utf-8"
    )
    assert not any(
        "rule" in note for note in judge.evaluate(ROWS, ["fluency"], **options).info.notes
    )


def test_references_in_a_different_script_are_noted(provider: ScriptedProvider) -> None:
    rows = [row | {"output": "고양이가 매트 위에 앉아 있다."} for row in ROWS[:2]] + ROWS[2:]
    result = judge.evaluate(rows, ["relevance"], model=provider, metrics=["chrf"])
    assert has_line(result.info.notes, "2 of 6 outputs", "another script")


@pytest.mark.parametrize(
    ("output", "reference", "is_other"),
    [
        ("有効期限は一年間です。", "一年間", False),
        ("一年間", "有効期限は一年間です。", False),
        ("電話番号は０３－１２３４です。", "03-1234", False),
        ("", "有効期限は一年間です。", False),
        ("有効期限は一年間です。", "The points are valid for one year.", True),
        ("有効期限は一年間です。", "这些积分自最后一次使用之日起一年之内有效，过期作废。", True),
    ],
)
def test_numbers_and_words_in_han_are_in_no_other_script(
    provider: ScriptedProvider, output: str, reference: str, is_other: bool
) -> None:
    rows = [{"item": "1", "output": output, "references": reference}]
    result = judge.evaluate(rows, [], model=provider, metrics=["chrf"], language="ja")
    assert any("in another script" in note for note in result.info.notes) == is_other


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"model": None}, ConfigError, "no judge is named"),
        ({"model": object()}, ConfigError, "no name, model, endpoint"),
        ({"model": {"nam": "x"}}, ConfigError, "model: nam: .*'nam'"),
        ({"criteria": "none", "metrics": "none"}, ConfigError, "nothing to do"),
        ({"model": "gpt-5.4-mini"}, ConfigError, "OPENAI_API_KEY is not set"),
        ({"metrics": ["rogue"]}, ConfigError, "did you mean 'rouge'"),
        ({"criteria": ["relevanse"]}, CriterionError, "did you mean 'relevance'"),
        (
            {"criteria": ["relevance", "relevance"]},
            ConfigError,
            "two columns.*'relevance'",
        ),
        ({"language": "xx"}, ConfigError, "language: "),
        ({"temprature": 1}, ConfigError, "did you mean 'temperature'"),
    ],
)
def test_mistakes_are_errors_before_any_request(
    provider: ScriptedProvider, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        judge.evaluate(
            ROWS, **{"model": provider, "metrics": [], "criteria": ["relevance"]} | options
        )
    with pytest.raises(ConfigError, match="no data"):
        prepare(load_config())
    assert provider.seen == []


def test_a_stopped_run_keeps_its_results(tmp_path: Path) -> None:
    replies: list[Reply] = [{"4": 1.0}] * 3
    provider = ScriptedProvider(
        lambda _: replies.pop() if replies else Refused("out of money", stops="always")
    )
    with pytest.raises(ProviderError):
        judge.evaluate(
            ROWS, ["relevance"], model=provider, metrics=[], out=tmp_path / "r", max_concurrency=1
        )
    stored = judge.load_result(tmp_path / "r")
    assert (len(stored.table.scores), stored.info.status) == (3, "stopped")


def test_a_run_that_reached_its_budget_does_not_report_an_error(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda _: "4")
    with pytest.raises(BudgetReached):
        judge.evaluate(
            ROWS,
            ["relevance"],
            model=provider,
            metrics=[],
            out=tmp_path / "r",
            max_concurrency=1,
            budget="10000tokens",
        )
    stored = judge.load_result(tmp_path / "r")
    assert stored.info.status == "limit"
    report = " ".join(stored.report().split())
    assert has_line(report, "This run reached its budget", "to resume")
    assert "error stopped" not in report


def test_an_unexpected_error_keeps_results(tmp_path: Path, provider: ScriptedProvider) -> None:
    class Broken(BaseMetric):
        def score(self, samples: Any) -> Any:
            raise ZeroDivisionError

    prepared = prepare(
        load_config(options={"criteria": ["relevance"], "metrics": [], "out": tmp_path / "r"}),
        ROWS,
        providers=[provider],
    )
    prepared.metrics["broken"] = Broken()
    with pytest.raises(ZeroDivisionError):
        asyncio.run(run_pipeline(prepared))
    assert len(judge.load_result(tmp_path / "r").table.scores) == 6


class Fixed(BaseMetric):
    """A plug-in with the same values on all data."""

    values: ClassVar[list[Any]]

    def score(self, samples: Any) -> MetricResult:
        rows = [
            Score(sample.item, sample.system, "fixed", value, Provenance("metric"))
            for sample, value in zip(samples, self.values, strict=True)
        ]
        return MetricResult((Column("fixed", "metric", Signature("fixed")),), tuple(rows))


def run_with_metric(metric: BaseMetric) -> judge.Result:
    prepared = prepare(load_config(options={"criteria": [], "metrics": ["bleu"]}), ROWS)
    prepared = replace(prepared, metrics={"fixed": metric})
    return asyncio.run(run_pipeline(prepared))


def test_a_metric_value_that_is_not_a_number_is_a_failure() -> None:
    class Strange(Fixed):
        values: ClassVar[list[Any]] = [float("nan"), float("inf"), *[0.5] * (len(ROWS) - 2)]

    result = run_with_metric(Strange())
    assert [s.value for s in result.table.scores] == [0.5] * (len(ROWS) - 2)
    assert [(f.stage, f.error) for f in result.failures] == [("metric", "NotANumber")] * 2


def test_a_metric_may_return_numbers_of_numpy() -> None:
    class FromNumpy(Fixed):
        values: ClassVar[list[Any]] = [np.float32(0.5), np.int64(1), *[0.5] * (len(ROWS) - 2)]

    result = run_with_metric(FromNumpy())
    assert not result.failures
    assert {type(score.value) for score in result.table.scores} == {float}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[1:], "rows of odd for"),
        (lambda rows: [*rows, rows[0]], "occurs twice"),
        (lambda rows: [replace(rows[0], item="nobody's"), *rows[1:]], "unknown text"),
        (lambda rows: [replace(rows[0], column="other"), *rows[1:]], "unknown text or column"),
    ],
)
def test_a_metric_with_wrong_rows_is_named(change: Any, message: str) -> None:
    class Odd(BaseMetric):
        def score(self, samples: Any) -> MetricResult:
            rows = [Score(s.item, s.system, "odd", 0.5, Provenance("metric")) for s in samples]
            return MetricResult((Column("odd", "metric", Signature("odd")),), tuple(change(rows)))

    prepared = prepare(load_config(options={"criteria": [], "metrics": ["bleu"]}), ROWS)
    prepared = replace(prepared, metrics={"mine": Odd()})
    with pytest.raises(ConfigError, match=f"metric mine is wrong: .*{message}"):
        asyncio.run(run_pipeline(prepared))


def test_a_metric_may_refuse_before_a_judge_is_paid(
    provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Picky(BaseMetric):
        def check(self, samples: Any) -> None:
            raise ConfigError(f"not these {len(samples)}")

        def score(self, samples: Any) -> MetricResult:
            raise AssertionError

    monkeypatch.setattr(plugins, "load", lambda kind, name: Picky)
    with pytest.raises(ConfigError, match=f"not these {len(ROWS)}"):
        judge.evaluate(ROWS, ["relevance"], model=provider, metrics=["picky"])
    assert not provider.seen


def test_an_interrupt_does_not_sit_out_a_slow_metric(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    begun, release, finished = threading.Event(), threading.Event(), threading.Event()

    class Endless(BaseMetric):
        def score(self, samples: Any) -> Any:
            begun.set()
            release.wait(60)
            finished.set()

    plan = load_config(options={"criteria": ["relevance"], "metrics": [], "out": tmp_path / "r"})
    prepared = prepare(plan, ROWS, providers=[provider])
    prepared = replace(prepared, metrics={"endless": Endless()})

    async def interrupted() -> None:
        task = asyncio.create_task(run_pipeline(prepared, progress := Progress()))
        await asyncio.to_thread(begun.wait)
        while progress.done < 6:  # noqa: ASYNC110  (nothing tells when the last judgment is made)
            await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert not finished.is_set(), "it waited for the metric"
    release.set()
    stored = judge.load_result(tmp_path / "r")
    assert (stored.info.status, len(stored.table.scores)) == ("interrupted", 6)


def test_a_run_stores_the_criteria_it_used(tmp_path: Path) -> None:
    layout = tmp_path / "base.jinja"
    layout.write_text("{{ output }}", encoding="utf-8")
    path = tmp_path / "tone.jinja"
    path.write_text("---\nscale: [1, 5]\n---\n{% extends 'base.jinja' %}", encoding="utf-8")

    def script(_: Any) -> Reply:
        layout.unlink(missing_ok=True)
        return "4"

    result = judge.evaluate(ROWS, [str(path)], model=ScriptedProvider(script), metrics=[])
    assert result.info.criteria["tone"].templates["base.jinja"] == "{{ output }}"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({}, "t=0/1|auto|draws=20|judge"),
        ({"min_mass": 0.9}, "auto|draws=20|mass>=0.9|judge"),
        ({"min_mass": 0.9, "weighting": "single"}, "t=0|single|judge"),
        ({"max_tokens": 7, "temperature": 0.5}, "t=0.5|max_tokens=7|auto"),
    ],
)
def test_signature_contains_every_option_that_changes_scores(
    provider: ScriptedProvider, options: dict[str, Any], part: str
) -> None:
    result = judge.evaluate(ROWS, "relevance", model=provider, metrics=[], **options)
    assert (
        f"relevance@{result.info.criteria['relevance'].digest[:6]}|scripted/script|"
        in result.table.signatures["relevance"]
    )
    assert part in result.table.signatures["relevance"]


def test_a_folder_with_a_foreign_report_is_not_changed(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    (tmp_path / "report.html").write_text("mine", encoding="utf-8")
    with pytest.raises(StorageError, match="not from judge"):
        judge.evaluate(ROWS, ["relevance"], model=provider, metrics=[], out=tmp_path)
    assert (tmp_path / "report.html").read_text("utf-8") == "mine"
    assert provider.seen == []


def test_a_criterion_called_like_a_metrics_column_is_refused(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    path = tmp_path / "bleu.jinja"
    path.write_text("---\nscale: [1, 5]\n---\n{{ output }}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"two columns.*'bleu'"):
        judge.evaluate(ROWS, [str(path)], model=provider, metrics=["bleu"])


def test_a_run_cut_short_does_not_replace_a_fuller_one(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    before = judge.evaluate(ROWS, ["relevance"], model=provider, metrics=[], out=tmp_path / "r")
    replies: list[Reply] = [{"4": 1.0}] * 3
    poor = ScriptedProvider(
        lambda _: replies.pop() if replies else Refused("out of money", stops="always")
    )
    with pytest.raises(Refused):
        judge.evaluate(
            ROWS, ["relevance"], model=poor, metrics=[], out=tmp_path / "r", max_concurrency=1
        )
    stored = judge.load_result(tmp_path / "r")
    assert stored.table == before.table


def test_a_run_that_scored_nothing_leaves_an_earlier_one_alone(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    before = judge.evaluate(ROWS, ["relevance"], model=provider, metrics=[], out=tmp_path / "r")
    wrong_key = ScriptedProvider(lambda _: Refused("401", stops="always"))
    with pytest.raises(Refused):
        judge.evaluate(ROWS, ["relevance"], model=wrong_key, metrics=[], out=tmp_path / "r")
    assert judge.load_result(tmp_path / "r").table == before.table


@pytest.mark.slow
def test_which_provider_a_model_names(tmp_path: Path, chat_server: Any) -> None:
    replies = tmp_path / "replies.yaml"
    replies.write_text("- {when: [], reply: 4}\n", encoding="utf-8")
    scripted = judge.evaluate(
        ROWS, ["relevance"], model=f"scripted/{replies}", metrics=[], cache=False
    )
    assert scripted.info.provider == "scripted"
    assert any("no model was asked" in note for note in scripted.info.notes)
    gateway = judge.evaluate(
        ROWS, "relevance", model="openai/x", base_url=chat_server.url, metrics=[], cache=False
    )
    assert gateway.info.model == "openai/x"
    chat_server.bodies.clear()
    local = judge.evaluate(
        ROWS, ["relevance"], model="org/a-model", base_url=chat_server.url, metrics=[], cache=False
    )
    assert (local.info.provider, local.info.model) == ("openai", "org/a-model")
    assert chat_server.bodies[0]["model"] == "org/a-model"
    assert local.info.cost.usd is None


def test_one_prompt_for_one_sample() -> None:
    rendered = prompt("relevance", ROWS, item="b", system="y")
    assert "y wrote this about b." in rendered.messages[0]["content"]
    with pytest.raises(ConfigError, match="unknown item 'z'"):
        prompt("relevance", ROWS, item="z")
    with pytest.raises(ConfigError, match="unknown system 'z'"):
        prompt("relevance", ROWS, system="z")


def test_metrics_that_ask_no_judge_are_measured_while_requests_are_in_flight() -> None:
    measured = threading.Event()

    class Waits(ScriptedProvider):
        async def complete(self, request: Request) -> Response:
            assert await asyncio.to_thread(measured.wait, 60.0), "the metric waits for the requests"
            return await super().complete(request)

    class Length(BaseMetric):
        def score(self, samples: Any) -> MetricResult:
            measured.set()
            return MetricResult(
                (Column("length", "metric", Signature("length")),),
                tuple(
                    Score(s.item, s.system, "length", float(len(s.output)), Provenance("length"))
                    for s in samples
                ),
            )

    plan = load_config(options={"criteria": ["relevance"], "metrics": [], "cache": False})
    prepared = prepare(plan, ROWS, providers=[Waits(lambda _: {"4": 1.0})])
    prepared = replace(prepared, metrics={"length": Length()})
    table = asyncio.run(run_pipeline(prepared)).table
    assert [column.name for column in table.columns] == ["relevance", "length"]
    assert len(table.scores) == 12


def unread(text: str) -> dict[str, str]:
    return {"item": text, "system": "x", "output": "y wrote this"}


@pytest.mark.parametrize("lacking", [1, 2, 7])
def test_texts_without_a_source_fail_and_the_others_are_judged(lacking: int) -> None:
    rows = [unread(f"i{n}") | ({"source": "S"} if n >= lacking else {}) for n in range(8)]
    provider = ScriptedProvider(by_system)
    result = judge.evaluate(rows, "relevance,fluency", model=provider, metrics=[])
    relevance = [row for row in result.table.scores if row.column == "relevance"]
    assert len(relevance) == 8 - lacking
    assert {row.item for row in result.failures} == {f"i{n}" for n in range(lacking)}
    assert {(row.column, row.stage, row.error) for row in result.failures} == {
        ("relevance", "render", "MissingInput")
    }
    assert has_line(result.failures[0].message, "no source", "criterion relevance")


@pytest.mark.parametrize(
    ("name", "place", "empty"),
    [
        ("source", 0, None), ("source", 3, " "), ("question", 3, ""), ("question", 0, []),
        ("contexts", 0, []), ("contexts", 3, " "), ("references", 3, None), ("references", 0, ""),
        ("topic", 0, " "), ("topic", 3, None),
    ],
)  # fmt: skip
def test_a_text_without_a_field_that_a_criterion_reads_fails_alone(
    name: str, place: int, empty: Any, tmp_path: Path
) -> None:
    criterion = tmp_path / "mine.jinja"
    criterion.write_text(f"---\nscale: [1, 5]\n---\n{{{{ {name} }}}} {{{{ output }}}}", "utf-8")
    full: Any = ["One.", "Two."] if name in ("contexts", "references") else "One."
    rows = [{"item": f"i{n}", "output": "It is", name: full} for n in range(4)]
    rows[place] = rows[place] | {name: empty}
    result = judge.evaluate(rows, criterion, model=ScriptedProvider(lambda _: "4"), metrics=[])
    assert len(result.table.scores) == 3
    (failure,) = result.failures
    assert (failure.item, failure.error) == (f"i{place}", "MissingInput")
    assert has_line(failure.message, f"no {name}", "criterion mine")


def test_a_field_that_is_empty_in_all_texts_is_refused_before_any_request(tmp_path: Path) -> None:
    criterion = tmp_path / "mine.jinja"
    criterion.write_text("---\nscale: [1, 5]\n---\n{{ question }} {{ output }}", "utf-8")
    provider = ScriptedProvider(lambda _: "4")
    rows = [{"item": "a", "output": "It is", "question": ""}]
    with pytest.raises(DataError, match="reads question, which is empty"):
        judge.evaluate(rows, criterion, model=provider, metrics=[])
    assert not provider.seen


def test_a_run_in_which_no_text_has_a_source_is_refused_before_any_request() -> None:
    provider = ScriptedProvider(by_system)
    with pytest.raises(DataError, match="reads source, which no sample"):
        judge.evaluate([unread("a"), unread("b")], "relevance", model=provider, metrics=[])
    assert not provider.seen


@pytest.mark.parametrize("first_lacks", [True, False])
def test_a_pair_with_a_missing_source_fails_alone(
    first_lacks: bool,
) -> None:
    rows = [
        {"item": item, "system": system, "output": f"{system} wrote this about {item}", "source": "S"}
        for item in ("a", "b") for system in ("x", "y")
    ]  # fmt: skip
    del rows[0 if first_lacks else 1]["source"]
    result = judge.rank(rows, "relevance", model=ScriptedProvider(lambda _: {"A": 1.0}))
    assert {(row.item, row.error) for row in result.failures} == {("a", "MissingInput")}
    assert {row.item for row in result.table.scores} == {"b"}


def questioned(unequal: set[str]) -> list[dict[str, str]]:
    """Return texts of two systems for four items. In `unequal` items the systems have different questions."""
    return [
        {"item": item, "system": system, "output": f"{system} wrote this about {item}",
         "question": f"Where, {system}?" if item in unequal else "Where?"}
        for item in "abcd" for system in ("x", "y")
    ]  # fmt: skip


PAIR = "---\nscale: {labels: [A, B], values: [1, 0]}\n---\n{{ question }} {{ first }} {{ second }}"


@pytest.mark.parametrize("item", ["a", "c"])
def test_a_pair_with_different_fields_fails_alone(item: str, tmp_path: Path) -> None:
    criterion = tmp_path / "mine.jinja"
    criterion.write_text(PAIR, "utf-8")
    result = judge.rank(questioned({item}), criterion, model=ScriptedProvider(lambda _: "A"))
    assert {(row.item, row.error) for row in result.failures} == {(item, "UnequalInput")}
    assert len(result.table.scores) == 6


def test_pairs_that_all_differ_in_a_field_are_refused_before_any_request(tmp_path: Path) -> None:
    criterion = tmp_path / "mine.jinja"
    criterion.write_text(PAIR, "utf-8")
    provider = ScriptedProvider(lambda _: "A")
    with pytest.raises(CriterionError, match=r"reads question, .*differs between the systems"):
        judge.rank(questioned(set("abcd")), criterion, model=provider)
    assert not provider.seen


@pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="needs a file system that looks writable and is not"
)
@pytest.mark.parametrize("folder", ["/proc/judge/run", "/proc/judge-run"])
def test_a_folder_that_cannot_be_written_is_refused_before_the_first_request(
    folder: str, provider: ScriptedProvider
) -> None:
    with pytest.raises(StorageError, match="/proc cannot be written to"):
        judge.evaluate(ROWS, "relevance", model=provider, out=folder)
    assert not provider.seen


@pytest.mark.parametrize(
    "fails", [FileNotFoundError(2, "No such file"), OSError(28, "No space left on device")]
)
def test_the_folder_is_made_and_written_to_before_the_first_request(
    fails: OSError, provider: ScriptedProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "new" / "run"

    def refuse(*_: Any, dir: Path) -> Any:
        if dir == out:
            raise fails
        return open(os.devnull, "wb")  # noqa: PTH123

    monkeypatch.setattr("judge.core.files.TemporaryFile", refuse)
    with pytest.raises(StorageError, match="cannot write"):
        judge.evaluate(ROWS, "relevance", model=provider, out=out)
    assert out.is_dir()
    assert not provider.seen


class _Containing:
    """Supports the claims that the text contains."""

    signature = "containing 1"

    def verify(self, jobs: Sequence[Job]) -> list[list[float]]:
        return [[float(claim in job.text) for claim in job.claims] for job in jobs]


def test_a_run_with_a_verifier_object_is_reported_saved_and_loaded(tmp_path: Path) -> None:
    rows = [{"item": "1", "source": "It rained.", "output": "It rained. It snowed."}]
    options = {"claims": {"unit": "sentence", "verify": _Containing()}}
    result = judge.evaluate(rows, [], metrics=["claims"], set=options, out=tmp_path / "run")
    assert result.claims_frame().supported.to_list() == [False, True]
    loaded = judge.load_result(tmp_path / "run")
    assert loaded.claims_frame().equals(result.claims_frame())
    assert loaded.info.config.set["claims"]["verify"] == "_Containing"
