"""`judge criteria diff`: output, files, exit codes and refused options."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import has_line, write_jsonl

CRITERION = """---
title: Kindness
scale: [1, 5]
---
{% extends "layouts/pointwise.jinja" %}
{% block criterion %}
Is the text kind?
{% endblock %}
"""
ROWS = [
    {
        "item": f"i{n}",
        "system": system,
        "source": f"The harbour of quay {n} is open.",
        "output": f"{system} on quay {n}.",
        "human": {"kind": rating + n % 2},
    }
    for n in range(8)
    for system, rating in (("x", 1), ("y", 3), ("z", 4))
]
REPLIES = """
- {when: [very kind, x on quay], reply: 1}
- {when: [very kind, y on quay], reply: 3}
- {when: [very kind], reply: 4}
- {when: [x on quay], reply: 4}
- {when: [], reply: 3}
"""


@pytest.fixture
def diff(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A function that runs the command in a folder with two criteria, data and a scripted judge."""
    monkeypatch.setenv("COLUMNS", "100")
    Path("new").mkdir()
    Path("kind.jinja").write_text(CRITERION, encoding="utf-8")
    Path("new/kind.jinja").write_text(
        CRITERION.replace("the text kind", "the text very kind"), encoding="utf-8"
    )
    write_jsonl("data.jsonl", ROWS)
    Path("replies.yaml").write_text(REPLIES, encoding="utf-8")
    return lambda *options: command("criteria", "diff", "kind.jinja", "new/kind.jinja", *options)


JUDGED = ("data.jsonl", "--model", "scripted/replies.yaml")


def test_ratings_may_be_in_a_file_of_their_own(diff: Callable[..., Any]) -> None:
    in_the_data = diff(*JUDGED, "--format", "json")
    unrated = [{key: value for key, value in row.items() if key != "human"} for row in ROWS]
    write_jsonl("data.jsonl", unrated)
    rows = ["item,system,kind"]
    rows += [f"{row['item']},{row['system']},{row['human']['kind']}" for row in ROWS]
    Path("ratings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    apart = diff(*JUDGED, "--ratings", "ratings.csv", "--format", "json")
    assert apart.code == 0
    judged = json.loads(apart.out)["judged"]
    assert judged["agreement"] == json.loads(in_the_data.out)["judged"]["agreement"]
    assert judged["agreement"]


def test_ratings_of_other_texts_are_left_out_with_an_item(diff: Callable[..., Any]) -> None:
    rows = [f"{row['item']},{row['system']},{row['human']['kind']}\n" for row in ROWS]
    Path("ratings.csv").write_text("item,system,kind\n" + "".join(rows), encoding="utf-8")
    completed = diff(*JUDGED, "--ratings", "ratings.csv", "--item", "i1", "--format", "json")
    assert completed.code == 0, completed.err


def test_ratings_without_a_judge_are_refused(diff: Callable[..., Any]) -> None:
    Path("ratings.csv").write_text("item,system,kind\ni1,x,3\n", encoding="utf-8")
    refused = diff("data.jsonl", "--ratings", "ratings.csv")
    assert refused.code == 2
    assert has_line(refused.err, "--ratings", "needs scores", "--model")


def test_two_files(diff: Callable[..., Any]) -> None:
    completed = diff()
    assert (completed.code, completed.err) == (0, "")
    assert completed.out.startswith("The two criteria differ ")
    assert "-Is the text kind?\n+Is the text very kind?\n" in completed.out


def test_built_in_criteria_by_name(diff: Callable[..., Any], command: Callable[..., Any]) -> None:
    completed = command("criteria", "diff", "fluency", "fluency_5", "--language", "ja")
    assert completed.code == 0
    assert "scale: 1–3 → 1–5" in completed.out


def test_diff_with_data_shows_prompts(diff: Callable[..., Any]) -> None:
    completed = diff("data.jsonl", "--item", "i3")
    assert (completed.code, completed.err) == (0, "")
    assert has_line(completed.out, "prompts differ", "3 of 3 texts")
    assert "tokens per prompt" in completed.out
    assert "\nOn 3 texts\n" in completed.out


def test_diff_with_a_judge_shows_scores(diff: Callable[..., Any]) -> None:
    completed = diff(*JUDGED)
    assert completed.code == 0
    output = " ".join(completed.out.split())
    assert has_line(
        output, "agrees better", "p = 0.008", "Spearman", "+1.866"
    )  # from −√3/2 in every item to 1
    assert "Scores fell (p = 0.008): −0.67" in output
    assert has_line(output, "flips", "within items", "16 of 24")
    assert "done: 24/24 judgments" in completed.err


def test_judging_has_a_deadline(diff: Callable[..., Any]) -> None:
    assert diff(*JUDGED, "--deadline", "3600").code == 0
    completed = diff(*JUDGED, "--no-cache", "--deadline", "0.000001")
    assert (completed.code, completed.out) == (2, "")
    assert has_line(completed.err, "time", "--deadline")


def test_each_format_is_printed_or_written_to_its_file(diff: Callable[..., Any]) -> None:
    assert diff("--format", "markdown").out.startswith("## kind.jinja → new/kind.jinja\n")
    completed = diff(*JUDGED, "--format", "json", "--quiet", "--output", "d.json")
    assert (completed.code, completed.out, completed.err) == (0, "d.json\n", "")
    comparison = json.loads(Path("d.json").read_text(encoding="utf-8"))
    assert comparison["schema"] == "judge.criteria.diff/1"
    assert comparison["judged"]["agreement"][0]["after"]["value"] == pytest.approx(1.0)
    assert diff("--quiet").out == ""


def test_failed_judgments_leave_with_1(diff: Callable[..., Any]) -> None:
    Path("replies.yaml").write_text(
        '- {when: [very kind, x on quay 3], reply: "no"}\n' + REPLIES.lstrip(), "utf-8"
    )
    completed = diff(*JUDGED, "--weighting", "single")
    assert completed.code == 1
    assert has_line(" ".join(completed.out.split()), "failed judgments", "0 of 24", "1 of 24")


@pytest.mark.slow
def test_diff_replays_a_recording_and_fails_on_a_missing_reply(diff: Callable[..., Any]) -> None:
    live = diff(*JUDGED, "--record", "calls.jsonl", "--format", "json")
    second_run = diff("data.jsonl", "--replay", "calls.jsonl", "--format", "json")
    assert (live.code, second_run.code) == (0, 0)
    first, second = (json.loads(completed.out)["judged"] for completed in (live, second_run))
    assert first["agreement"] == second["agreement"]
    path = Path("new/kind.jinja")
    path.write_text(
        path.read_text(encoding="utf-8").replace("very kind", "really kind"), encoding="utf-8"
    )
    completed = diff("data.jsonl", "--replay", "calls.jsonl")
    assert (completed.code, completed.out) == (2, "")
    *_, old, new, _ = completed.err.splitlines()
    assert has_line([old], "- ", "very kind")
    assert has_line([new], "+ ", "really kind")


def test_diff_fails_if_a_recording_lacks_some_replies(diff: Callable[..., Any]) -> None:
    assert diff(*JUDGED, "--record", "calls.jsonl", "--limit", "3").code == 0
    completed = diff("data.jsonl", "--replay", "calls.jsonl")
    assert (completed.code, completed.out) == (2, "")
    assert has_line(completed.err, "recording lacks", "texts", "item")


def test_the_output_replaces_no_input(diff: Callable[..., Any]) -> None:
    before = Path("data.jsonl").read_bytes()
    completed = diff("data.jsonl", "--output", "data.jsonl", "--format", "console")
    assert (completed.code, Path("data.jsonl").read_bytes()) == (2, before)
    assert has_line(completed.err, "--output data.jsonl", "also an input")


def test_a_plan_can_name_the_data(diff: Callable[..., Any]) -> None:
    Path("run.yaml").write_text(
        "data: data.jsonl\nmodel: scripted/replies.yaml\ncriteria: [fluency]\nout: runs/x\n"
    )
    completed = diff("run.yaml", "--limit", "6")
    assert completed.code == 0
    assert "kind.jinja → new/kind.jinja · 6 texts" in completed.out
    assert not Path("runs").exists()


@pytest.mark.parametrize("key", ["engine: batch", "calibrate: true"])
def test_a_configuration_with_different_judge_settings_is_refused(
    diff: Callable[..., Any], key: str
) -> None:
    Path("run.yaml").write_text(
        f"data: data.jsonl\nmodel: scripted/replies.yaml\nset: {{rouge: {{stem: no}}}}\n{key}\n"
    )
    completed = diff("run.yaml")
    assert (completed.code, completed.out) == (2, "")
    assert has_line(completed.err, f"judge: {key.split(':')[0]}:", "no such option", "judge run")


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (
            ("data.jsonl", "--format", "pdf"),
            ("'pdf'", "console, markdown, html"),
        ),
        (("nowhere.jsonl",), ("nowhere.jsonl: ",)),
        (("--output", "nowhere/d.txt"), ("--output nowhere/d.txt",)),
    ],
)
def test_diff_refuses_impossible_requests(
    diff: Callable[..., Any], arguments: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    completed = diff(*arguments)
    assert (completed.code, completed.out) == (2, "")
    assert has_line(completed.err, "judge: ", *facts)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (
            (),
            ("interrupted", "to resume", "cache answers"),
        ),
        (("--no-cache",), ("interrupted", "Without a cache", "pays for everything")),
    ],
)
def test_an_interrupted_diff_explains_how_to_resume(
    diff: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    facts: tuple[str, ...],
) -> None:
    async def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("judge.run.pipeline.run_pipeline", stopped)
    completed = diff(*JUDGED, *options)
    assert (completed.code, completed.out) == (130, "")
    assert has_line(completed.err, *facts)
