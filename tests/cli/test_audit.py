"""`judge audit`: what is printed and written, exit codes, and what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import write_jsonl

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
    """The command, in a folder with texts and a scripted judge."""
    monkeypatch.setenv("COLUMNS", "100")
    write_jsonl("data.jsonl", ROWS)
    Path("replies.yaml").write_text(REPLIES, encoding="utf-8")
    return command


def test_a_card_on_the_console_and_in_a_folder(judge: Callable[..., Any]) -> None:
    done = judge("audit", "data.jsonl", *SCRIPTED, "--full", "--out", "audit")
    assert done.code == 0
    for heading in ("Judge card: replies.yaml", "Sensitivity", "Injection", "Bias"):
        assert heading in done.out
    assert done.err.startswith("an audit of replies.yaml on 4 items: ")
    assert done.err.endswith("card: audit/card.html\n")
    for name in (
        "changed texts:",
        "other systems' texts:",
        "other wordings:",
        "pairs in both orders:",
    ):
        assert name in done.err
    assert {path.name for path in Path("audit").iterdir()} == {
        "card.md",
        "card.html",
        "card.json",
        "changed",
    }
    assert Path("audit/changed/report.html").exists()


def test_quiet_prints_only_the_path_of_the_card(judge: Callable[..., Any]) -> None:
    done = judge(
        "audit",
        "data.jsonl",
        *SCRIPTED,
        "--probes",
        "injection",
        "--items",
        "2",
        "--out",
        "audit",
        "-q",
    )
    assert (done.code, done.out, done.err) == (0, "", "card: audit/card.html\n")
    card = json.loads(Path("audit/card.json").read_text(encoding="utf-8"))
    assert (card["cells"], card["findings"]) == ([], [])
    assert card["info"]["texts"] == 2


def test_a_plan_names_data_and_judge_and_the_folder_is_named_after_the_data(
    judge: Callable[..., Any],
) -> None:
    Path("run.yaml").write_text(
        "data: data.jsonl\nmodel: scripted/replies.yaml\ncriteria: [coherence]\nmetrics: [rouge]\ncache: false\n",
        encoding="utf-8",
    )
    done = judge("audit", "run.yaml", "--probes", "sensitivity", "--format", "markdown")
    assert done.code == 0
    assert "## Judge card: replies.yaml" in done.out
    (folder,) = Path("runs").iterdir()
    assert folder.name.startswith("data-")


def test_a_stopped_audit_says_how_to_resume(
    judge: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stopped(*_: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr("judge.commands.card.command.run_audit", stopped)
    done = judge("audit", "data.jsonl", "--model", "scripted/replies.yaml")
    assert (done.code, done.out) == (130, "")
    assert "interrupted. Run the same command again to resume. The cache answers" in done.err
    assert judge("audit", "data.jsonl", *SCRIPTED).err.endswith(
        "the same command pays for everything again.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing.jsonl", *SCRIPTED), "nothing.jsonl"),
        (
            ("data.jsonl", *SCRIPTED, "--probes", "bais"),
            "unknown probe 'bais'; did you mean 'bias'?",
        ),
        (("data.jsonl", *SCRIPTED, "--format", "svg"), "unknown format 'svg'"),
        (("data.jsonl", *SCRIPTED, "--budget", "100tokens"), "the budget of 100 tokens is reached"),
    ],
)
def test_impossible_requests_exit_2(
    judge: Callable[..., Any], arguments: tuple[str, ...], message: str
) -> None:
    done = judge("audit", *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""
