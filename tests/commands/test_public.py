"""The Python interface: signatures, help, short errors in Python terms, and notebook output."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judge
from judge.commands.public import option_parameters
from judge.config import RankConfig, run_options
from judge.core.errors import ConfigError, CriterionError, DataError, StorageError
from judge.execution.progress import Progress
from tests.factories import has_line

MAP = {"output": "reply", "item": "ticket"}
TEXT = (
    "---\nscale: [1, 3]\n---\nIs this solved?\n{{ output | fenced('reply') }}\nAnswer 1, 2 or 3.\n"
)
Frame = pd.DataFrame


@pytest.fixture
def frame() -> Frame:
    rows = {
        "ticket": [30, 10, 20],
        "reply": ["first", "second", "third"],
        "channel": ["mail", "chat", "mail"],
    }
    return pd.DataFrame(rows, index=[7, 8, 9])


@pytest.fixture
def solved() -> judge.Criterion:
    return judge.load_criterion(text=TEXT, name="solved")


def graded(prompt: str) -> int | str:
    return 3 if "first" in prompt else 1 if "second" in prompt else "hm"


def run(frame: Frame, criterion: judge.Criterion, model: Any = graded, **more: Any) -> judge.Result:
    return judge.evaluate(frame, criterion, model=model, map=MAP, metrics=[], **more)


# Functions as judges


def test_the_report_shows_that_a_function_is_the_judge(
    frame: Frame, solved: judge.Criterion
) -> None:
    result = run(frame, solved)
    assert {(s.item, s.value) for s in result.table.scores} == {("30", 3.0), ("10", 1.0)}
    assert {s.provenance.method for s in result.table.scores} == {"single"}
    assert "function/graded" in str(result.table.columns[0].signature)
    assert "Python function graded" in result.report()
    assert "no model was asked" not in result.report()


def test_it_is_asked_once_for_each_text(frame: Frame, solved: judge.Criterion) -> None:
    prompts: list[str] = []

    def once(prompt: str) -> str:
        prompts.append(prompt)
        return "2"

    run(frame, solved, once)
    assert len(prompts) == len(set(prompts)) == 3


def test_an_async_function_gives_probabilities(frame: Frame, solved: judge.Criterion) -> None:
    async def sure(prompt: str) -> dict[str, float]:
        await asyncio.sleep(0)
        return {"2": 0.5, "3": 0.5}

    result = run(frame, solved, sure)
    assert [(s.value, s.provenance.method) for s in result.table.scores] == [(2.5, "logprobs")] * 3


@pytest.mark.parametrize("wrong", [None, True, {}, {"2": "much"}, [1]])
def test_an_error_or_bad_value_of_a_function_is_a_failed_judgment(
    frame: Frame, solved: judge.Criterion, wrong: Any
) -> None:
    def mine(prompt: str) -> Any:
        if "first" in prompt:
            raise ValueError("out of ink")
        return wrong

    result = run(frame, solved, mine)
    messages = {failure.item: failure.message for failure in result.failures}
    assert has_line(messages["30"], "mine raised ValueError", "out of ink")
    assert all(
        "mine returned" in messages[item] and "probabilities by label" in messages[item]
        for item in ("10", "20")
    )


def test_failures_with_several_messages_are_not_counted_under_one(
    solved: judge.Criterion,
) -> None:
    def mine(prompt: str) -> Any:
        if "Text 1" in prompt or "Text 2" in prompt:
            raise ValueError("out of ink")
        return None

    rows = [{"item": str(n), "output": f"Text {n}."} for n in range(3)]
    several = judge.evaluate(rows, solved, model=mine, metrics=[]).report()
    assert has_line(several, "3 × refused", "2 of them", "raised ValueError")
    one = judge.evaluate(rows, solved, model=lambda _: None, metrics=[]).report()  # type: ignore[arg-type, return-value]
    assert has_line(one, "3 × refused (solved):")


# Criteria


def test_a_text_is_a_criterion(solved: judge.Criterion) -> None:
    assert (solved.name, solved.scale.labels, solved.needs) == (
        "solved",
        ("1", "2", "3"),
        frozenset({"output"}),
    )
    with pytest.raises(CriterionError, match="needs a name"):
        judge.load_criterion(text=TEXT)


def test_different_prompts_have_different_digests(solved: judge.Criterion) -> None:
    others = [
        replace(solved, template=TEXT + "Be strict."),
        replace(solved, scale=judge.Scale.integers(1, 4)),
        replace(solved, steps=("Read.", "Judge.")),
        replace(solved, reply="score_then_reason"),
    ]
    assert len({one.digest for one in (solved, *others)}) == 5
    assert replace(solved, weight=2.0).digest == solved.digest


def test_a_changed_template_changes_the_prompt(frame: Frame, solved: judge.Criterion) -> None:
    body = TEXT.replace("Is this solved?", "{{ channel }}: is it?")
    changed = replace(solved, template=body)
    assert "mail: is it?" in judge.render(changed, frame.iloc[0], map=MAP)
    before, after = run(frame, solved), run(frame, changed)
    assert before.table.columns[0].signature != after.table.columns[0].signature
    assert "prompt" in [change.what for change in judge.compare(before, after).changes]


def test_refuses_a_scale_that_contradicts_the_template_header(
    frame: Frame, solved: judge.Criterion
) -> None:
    with pytest.raises(CriterionError, match=r"another scale, .* judge\.load_criterion\(text="):
        run(frame, replace(solved, template=TEXT.replace("[1, 3]", "[0, 10]")))


def test_a_criterion_made_by_hand_shows_the_text(frame: Frame) -> None:
    criterion = judge.Criterion(
        "mine", "Rate {{ output }} from 1 to 3.", judge.Scale.integers(1, 3)
    )
    assert judge.render(criterion, frame.iloc[1], map=MAP) == "Rate second from 1 to 3."
    assert len(run(frame, criterion).table.scores) == 2


@pytest.mark.parametrize(
    ("entry", "words"), [(TEXT, "this is a criterion's text"), ([3], "not a int")]
)
def test_an_invalid_criterion_explains_how_to_make_one(
    frame: Frame, entry: Any, words: str
) -> None:
    with pytest.raises(CriterionError, match=words) as raised:
        run(frame, entry)
    assert "judge.load_criterion(text=" in str(raised.value)


# Help, signatures, errors


@pytest.mark.parametrize(
    "function", [judge.evaluate, judge.rank, judge.plan, judge.card, judge.diff, judge.test]
)
def test_help_has_a_line_for_every_option(function: Callable[..., Any]) -> None:
    shown = " ".join(pydoc.plain(pydoc.render_doc(function)).split())
    names = inspect.signature(function).parameters
    assert {"base_url", "budget", "cache", "model"} <= set(names)
    described = run_options("card").values()
    assert all(
        f"{option.name} {option.description}" in shown
        for option in described
        if option.name in ("budget", "rpm")
    )


def test_every_option_has_its_default() -> None:
    taken = inspect.signature(judge.rank).parameters
    assert set(option_parameters("rank", RankConfig)) <= set(taken)
    assert (taken["draws"].default, taken["orders"].default, taken["map"].default) == (20, 2, None)
    assert "calibrate" not in taken


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"map": {"output": "nope"}}, DataError, r"no column 'nope'"),
        ({"draws": 0}, ConfigError, "^draws: "),
        ({"budgett": "1usd"}, ConfigError, "did you mean 'budget'"),
        ({"model": "gpt-5.4-mini"}, ConfigError, "or use a function"),
        ({"model": 3}, ConfigError, "or a function"),
        ({"progress": "yes"}, ConfigError, "progress is True"),
    ],
)
def test_errors_are_short_and_in_pythons_words(
    frame: Frame,
    solved: judge.Criterion,
    options: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    settings: dict[str, Any] = {
        "model": graded,
        "map": MAP,
        "metrics": [],
        "cache": False,
    } | options
    with pytest.raises(error, match=words) as raised:
        judge.evaluate(frame, solved, **settings)
    assert "--" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert len(traceback.extract_tb(raised.value.__traceback__)) == 2


def test_runs_of_other_criteria_are_for_diff(frame: Frame, solved: judge.Criterion) -> None:
    with pytest.raises(ConfigError, match=r"judge\.diff"):
        judge.compare(run(frame, solved), run(frame, replace(solved, name="done")))


def test_python_m_judge_is_the_command() -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "judge", "--version"], capture_output=True, text=True, check=True
    )
    assert completed.stdout == f"judge {judge.__version__}\n"


# Before a run


def test_plan_sends_no_request_and_returns_an_estimate(
    frame: Frame, solved: judge.Criterion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    plan = judge.plan(
        frame, solved, model="gpt-5.4-mini", map=MAP, metrics=[], cache=False, budget="5usd"
    )
    assert plan.requests == 3
    assert plan.price is not None
    assert plan.price > 0
    assert "budget='$5.00': all 3 requests fit" in plan.report()
    assert '"requests": 3' in plan.report("json")
    assert "all 3 requests fit" in plan._repr_html_()
    with pytest.raises(ConfigError, match="unknown format"):
        plan.report("pdf")


def test_a_prompt_of_two_texts() -> None:
    first, second = {"output": "one thing", "source": "s"}, {"output": "another", "source": "s"}
    shown = judge.render("pairwise_answers/overall", first, second)
    assert shown.index("one thing") < shown.index("another")
    assert judge.render("pairwise_answers/overall", first, "another").count("another") == 1
    with pytest.raises(ConfigError, match="as opponent"):
        judge.render("pairwise_answers/overall", first)


# Progress


def test_progress_is_shown_if_requested(
    frame: Frame, solved: judge.Criterion, capsys: pytest.CaptureFixture[str]
) -> None:
    run(frame, solved)
    assert capsys.readouterr() == ("", "")
    run(frame, solved, progress=True)
    shown = capsys.readouterr()
    assert (shown.out, shown.err.startswith("done: 3/3 judgments, ")) == ("", True)


def test_a_function_is_called_with_the_progress(frame: Frame, solved: judge.Criterion) -> None:
    seen: list[tuple[int, int]] = []

    def show(progress: Progress) -> None:
        seen.append((progress.done, progress.total))

    run(frame, solved, progress=show)
    assert seen[-1] == (3, 3)


# Afterwards


def test_scores_are_joined_to_the_unchanged_frame(frame: Frame, solved: judge.Criterion) -> None:
    joined = run(frame, solved).join(frame)
    assert list(joined.index) == [7, 8, 9]
    assert joined.drop(columns="solved").equals(frame)
    assert joined["solved"].dtype == "float64"
    assert joined["solved"].tolist()[:2] == [3.0, 1.0]
    assert joined["solved"].isna().tolist() == [False, False, True]


def test_wide_frames_have_a_column_for_each_system(solved: judge.Criterion) -> None:
    wide = pd.DataFrame({"a": ["first", "second"], "b": ["second", "first"]})
    joined = judge.evaluate(wide, solved, model=graded, systems=["a", "b"], metrics=[]).join(wide)
    assert joined[["a.solved", "b.solved"]].to_numpy().tolist() == [[3.0, 1.0], [1.0, 3.0]]


def test_unselected_rows_have_missing_scores(frame: Frame, solved: judge.Criterion) -> None:
    joined = run(frame, solved, limit=1).join(frame)
    assert joined["solved"].isna().tolist() == [False, True, True]


def test_a_different_frame_is_refused(frame: Frame, solved: judge.Criterion) -> None:
    result = run(frame, solved)
    with pytest.raises(DataError, match="another text"):
        result.join(frame.assign(reply=["first", "SECOND", "third"]))
    with pytest.raises(DataError, match="item '99', or none"):
        result.join(frame.assign(ticket=[30, 99, 20]))
    with pytest.raises(DataError, match="already"):
        result.join(frame.assign(solved=1))
    assert "by judge: solved" in result.join(frame.assign(solved=1), prefix="by judge: ").columns


def test_a_different_run_is_not_overwritten(
    frame: Frame, solved: judge.Criterion, tmp_path: Path
) -> None:
    first, second = run(frame, solved), run(frame, solved, lambda prompt: 2)
    first.save(tmp_path / "run")
    first.save(tmp_path / "run")
    with pytest.raises(StorageError, match="overwrite=True"):
        second.save(tmp_path / "run")
    assert judge.load_result(tmp_path / "run").join(frame).equals(first.join(frame))
    second.save(tmp_path / "run", overwrite=True)
    assert judge.load_result(tmp_path / "run").failed == 0
    with pytest.raises(StorageError, match="a folder of runs"):
        judge.load_result(tmp_path)


def test_notebook_representations(frame: Frame, solved: judge.Criterion) -> None:
    before, after = run(frame, solved), run(frame, solved, lambda prompt: 2)
    page = before._repr_html_()
    assert "<table" in page
    assert "2 judged, 1 failed" in page
    assert "<caption" not in page
    moved = judge.compare(before, after)
    assert has_line(repr(moved), "2 of 2 values differ", "0 of 1 mean changed")
    assert "<table" in moved._repr_html_()
    difference = judge.diff(solved, replace(solved, template=TEXT + "<b>Be strict.</b>"))
    assert has_line(repr(difference), "solved (before)", "solved (after)", "differ")
    assert "&lt;b&gt;Be strict." in difference._repr_html_()


def test_a_report_is_text_in_a_notebook_too(
    frame: Frame, solved: judge.Criterion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert "solved" in run(frame, solved).report()
