"""`--where`, from the first run to its report, and which runs may be overwritten."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import has_line, write_jsonl

ROWS = [
    {
        "item": f"{channel}{n}", "system": system, "channel": channel, "source": "the mill burned down on friday night",
        "output": "the old mill burned down on friday"[: 20 + n % 4] + system * n,
        "human": {"coherence": 1 + (n + len(system)) % 5},
    }
    for channel in ("email", "phone")
    for n in range(6)
    for system in ("a", "bb", "ccc")
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_jsonl("d.jsonl", ROWS)
    Path("r.yaml").write_text(
        "- when: [burned down]\n  reply: '4'\n- reply: '3'\n", encoding="utf-8"
    )
    return tmp_path


RUN = (
    "d.jsonl",
    "--model",
    "scripted/r.yaml",
    "--criteria",
    "coherence",
    "--weighting",
    "single",
    "--no-cache",
)


def test_a_finished_run_is_shown_by_part(command: Callable[..., Any], folder: Path) -> None:
    assert command("run", *RUN, "--out", "r").code == 0
    shown = command("report", "r", "--where", "channel=email")
    assert (shown.code, "channel=email: 18 of 36" in " ".join(shown.out.split())) == (0, True)
    checked = command("validate", "r", "--where", "channel=phone", "--format", "json")
    assert json.loads(checked.out)["criteria"][0]["texts"] == 18
    assert "18 of 36 texts" in " ".join(
        command("plan", "r", "--where", "channel=phone").out.split()
    )
    refused = command("report", "r", "--where", "channel=email", "--format", "html")
    assert (refused.code, "name another file with --output" in refused.err) == (2, True)
    assert command("report", "r", "--where", "channel=fax").code == 2


@pytest.mark.parametrize("name", ["plan", "run", "rank"])
def test_every_command_that_reads_data_takes_it(
    command: Callable[..., Any], folder: Path, name: str
) -> None:
    arguments = RUN[:1] if name == "score" else (*RUN[:3], "--no-cache")
    completed = command(name, *arguments, "--where", "channel=fax")
    assert completed.code == 2
    assert has_line(completed.err, "judge: --where channel=fax", "'email' (18), 'phone' (18)")


def test_a_plan_and_a_suite_have_the_key(command: Callable[..., Any], folder: Path) -> None:
    plan = "data: d.jsonl\nmodel: scripted/r.yaml\ncriteria: [coherence]\nwhere: {channel: email}\nout: r\nmetrics: []\n"
    Path("run.yaml").write_text(plan, encoding="utf-8")
    assert command("run", "run.yaml", "-q", "--weighting", "single").code == 0
    assert json.loads(Path("r/run.json").read_text(encoding="utf-8"))["info"]["data"]["rows"] == 18
    suite = (
        "data: d.jsonl\nmodel: scripted/r.yaml\nwhere: {channel: phone}\nweighting: single\n"
        "cases:\n- {criterion: coherence, item: email0, system: a, expect: {min: 1}}\n"
    )
    Path("s.judge.yaml").write_text(suite, encoding="utf-8")
    assert command("test", "s.judge.yaml").code == 2
    assert command("test", "s.judge.yaml", "--where", "channel=email", "--no-cache").code == 0


def test_a_run_of_fewer_texts_replaces_a_run_only_with_overwrite(
    command: Callable[..., Any], folder: Path
) -> None:
    command("run", *RUN, "--out", "r", "-q")
    refused = command("run", *RUN, "--out", "r", "--where", "channel=email", "--seed", "3")
    assert refused.code == 2
    assert has_line(" ".join(refused.err.split()), "18 texts", "item 'phone0' of system 'a'")
    assert (
        command(
            "run", *RUN, "--out", "r", "--where", "channel=email", "--seed", "3", "--overwrite"
        ).code
        == 0
    )


def test_a_misspelt_column_is_compared_with_the_names_in_the_data(
    command: Callable[..., Any],
) -> None:
    Path("t.csv").write_text("ticket,output\n1,Yes.\n2,No.\n", encoding="utf-8")
    mapped = ("t.csv", "--map", "item=ticket", "--criteria", "polite", "--model", "m")
    refused = command("plan", *mapped, "--where", "tickte=1")
    assert refused.code == 2
    assert has_line(refused.err, "'tickte'", "did you mean 'ticket'?")
