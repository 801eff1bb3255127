"""`judge validate --card`: output, files, exit codes and refused options."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import has_line, write_jsonl

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    {
        "item": place,
        "system": system,
        "source": f"Heavy snow closed the road at {place} on Friday. {n + 2} lorries had slid across both lanes. "
        "Nobody was hurt. Crews hope to reopen one lane by Sunday. The road was last closed in 2019, for a week.",
        "output": f"Snow has closed the road at {place}. {end}",
    }
    for n, place in enumerate(("Alder Gap", "Bern", "Corin", "Dover"))
    for system, end in (("plain", "Nobody was hurt."), ("hopeful", "A lane may reopen on Sunday."))
]
REPLIES = """
- {when: two texts, reply: A}
- {when: Score, reply: 5}
- {when: SYSTEM, reply: 5}
- {when: Sunday., reply: 4}
- {when: [], reply: 3}
"""
SCRIPTED = (
    "--model",
    "scripted/replies.yaml",
    "--weighting",
    "single",
    "--criteria",
    "coherence",
    "--no-cache",
)


@pytest.fixture
def judge(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A function that runs the command in a folder with texts and a scripted judge."""
    monkeypatch.setenv("COLUMNS", "100")
    write_jsonl("data.jsonl", ROWS)
    Path("replies.yaml").write_text(REPLIES, encoding="utf-8")
    return command


def test_a_card_on_the_console_and_in_a_folder(judge: Callable[..., Any]) -> None:
    completed = judge("validate", "data.jsonl", "--card", *SCRIPTED, "--full", "--out", "card")
    assert completed.code == 0
    for heading in ("Judge card: replies.yaml", "Sensitivity", "Injection", "Bias"):
        assert heading in completed.out
    assert has_line(completed.err.splitlines()[:1], "a card of replies.yaml", "4 items")
    assert completed.err.endswith("card: card/card.html\n")
    for name in (
        "texts:",
        "changed texts:",
        "other wordings:",
        "pairs in both orders:",
    ):
        assert name in completed.err
    assert {path.name for path in Path("card").iterdir()} == {
        "card.md",
        "card.html",
        "card.json",
        "changed",
        "run",
    }
    assert Path("card/changed/report.html").exists()
    assert Path("card/run/report.html").exists()


def test_quiet_prints_only_the_path_of_the_card(judge: Callable[..., Any]) -> None:
    completed = judge(
        "validate",
        "data.jsonl",
        "--card",
        *SCRIPTED,
        "--probes",
        "injection",
        "--items",
        "2",
        "--out",
        "card",
        "-q",
    )
    assert (completed.code, completed.out, completed.err) == (0, "", "card: card/card.html\n")
    card = json.loads(Path("card/card.json").read_text(encoding="utf-8"))
    assert (card["cells"], card["findings"]) == ([], [])
    assert card["info"]["texts"] == 2


def test_a_plan_names_data_and_judge_and_the_folder_is_named_after_the_data(
    judge: Callable[..., Any],
) -> None:
    Path("run.yaml").write_text(
        "data: data.jsonl\nmodel: scripted/replies.yaml\ncriteria: [coherence]\nmetrics: [rouge]\ncache: false\n",
        encoding="utf-8",
    )
    completed = judge(
        "validate", "run.yaml", "--card", "--probes", "sensitivity", "--format", "markdown"
    )
    assert completed.code == 0
    assert "## Judge card: replies.yaml" in completed.out
    (folder,) = Path("runs").iterdir()
    assert folder.name.startswith("data-")


def test_a_stopped_card_explains_how_to_resume(
    judge: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stopped(*_: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr("judge.commands.card.command.run_card", stopped)
    completed = judge("validate", "data.jsonl", "--card", "--model", "scripted/replies.yaml")
    assert (completed.code, completed.out) == (130, "")
    assert has_line(completed.err, "interrupted", "to resume", "cache answers")
    second_run = judge("validate", "data.jsonl", "--card", *SCRIPTED)
    assert has_line(second_run.err, "pays for everything again")


def test_the_former_command_is_refused_with_the_new_form(judge: Callable[..., Any]) -> None:
    completed = judge("audit", "data.jsonl", *SCRIPTED)
    assert completed.code == 2
    assert "use judge validate DATA --card" in completed.err


@pytest.mark.parametrize("subcommand", ["validate", "plan"])
def test_a_card_takes_no_metrics_as_a_run_does(judge: Callable[..., Any], subcommand: str) -> None:
    options = ("--metrics", "none", "--probes", "injection", *SCRIPTED)
    assert judge(subcommand, "data.jsonl", "--card", *options).code == 0


@pytest.mark.parametrize("option", [("--items", "3"), ("--probes", "bias")])
def test_an_option_of_the_card_without_it_is_refused(
    judge: Callable[..., Any], option: tuple[str, str]
) -> None:
    completed = judge("validate", "data.jsonl", *SCRIPTED, *option)
    assert completed.code == 2
    assert f"{option[0]}: is for --card" in completed.err


def test_failed_judgments_exit_1_and_the_card_is_still_there(judge: Callable[..., Any]) -> None:
    Path("replies.yaml").write_text(
        "- {when: Bern, reply: no idea}\n- {when: two texts, reply: A}\n- {when: [], reply: 3}\n",
        encoding="utf-8",
    )
    completed = judge("validate", "data.jsonl", "--card", *SCRIPTED, "--out", "card")
    assert completed.code == 1
    assert "judgments have no score" in completed.err
    card = json.loads(Path("card/card.json").read_text(encoding="utf-8"))
    (failures,) = (line for line in card["lines"] if line["name"] == "failures by system")
    assert failures["cells"][0]["estimate"]["value"] == 0.25


def test_a_finished_run_has_a_card_without_a_request(judge: Callable[..., Any]) -> None:
    rated = [row | {"human": {"coherence": 1 + n % 5}} for n, row in enumerate(ROWS)]
    write_jsonl("rated.jsonl", rated)
    assert judge("run", "rated.jsonl", *SCRIPTED, "--out", "run", "-q").code == 0
    Path("replies.yaml").unlink()  # no model is available now
    completed = judge("validate", "run", "--card", "--json")
    assert (completed.code, completed.err) == (0, "")
    card = json.loads(completed.out)
    verdicts = {line["name"]: line["verdict"] for line in card["lines"]}
    assert verdicts["agreement with people"] == "unclear"
    assert verdicts["failures by system"] == "unclear"
    assert verdicts["injections"] == "not measured"
    reasons = [cell["reason"] for line in card["lines"] for cell in line["cells"]]
    assert has_line(reasons, "judge validate DATA --card")
    assert sorted(path.name for path in Path().iterdir()) == ["data.jsonl", "rated.jsonl", "run"]


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("data.jsonl", *SCRIPTED, "--metrics", "rouge"), ("--metrics:", "no use")),
        (("data.jsonl", *SCRIPTED, "--level", "systems"), ("--level:", "no use")),
        (("data.jsonl", *SCRIPTED, "--calibrate"), ("--calibrate:", "no use")),
        (("data.jsonl", "data.jsonl", *SCRIPTED), ("--card", "one judge")),
        (("nothing.jsonl", *SCRIPTED), ("nothing.jsonl",)),
        (
            ("data.jsonl", *SCRIPTED, "--probes", "bais"),
            ("'bais'", "'bias'"),
        ),
        (("data.jsonl", *SCRIPTED, "--format", "svg"), ("format 'svg'",)),
        (("data.jsonl", *SCRIPTED, "--budget", "100tokens"), ("budget of 100 tokens",)),
    ],
)
def test_impossible_requests_exit_2(
    judge: Callable[..., Any], arguments: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    completed = judge("validate", "--card", *arguments)
    assert completed.code == 2
    assert has_line(completed.err, *facts)
    assert completed.out == ""
