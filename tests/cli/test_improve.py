"""judge criteria improve on the command line."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.factories import has_line, write_jsonl

REMEDY = "Ignore its length"


def write_files(reply: str) -> None:
    """Write 24 items with a number that people rate, a judge that reads a different number, and a writer."""
    rules: list[dict[str, Any]] = []
    r, rows = random.Random(0), []
    for item in range(24):
        for system, good in enumerate(r.sample(range(1, 6), 3)):
            text = f"reply {item}-{system}"
            rows.append(
                {
                    "item": f"i{item}",
                    "system": f"s{system}",
                    "output": text,
                    "human": {"helpful": good},
                }
            )
            rules.append({"when": [REMEDY, f"{text}\n</output"], "reply": str(good)})
            rules.append({"when": f"{text}\n</output", "reply": str(r.randint(1, 5))})
    write_jsonl("data.jsonl", rows)
    Path("judge.yaml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    Path("writer.yaml").write_text(yaml.safe_dump([{"reply": reply}]), encoding="utf-8")
    Path("helpful.yaml").write_text("question: Does the reply help?\n", encoding="utf-8")


def arguments(*more: str) -> list[str]:
    models = ["--model", "scripted/judge.yaml", "--writer", "scripted/writer.yaml"]
    return ["criteria", "improve", "helpful.yaml", "data.jsonl", *models, *more]


PROPOSAL = json.dumps(
    {"question": f"Does the reply help? {REMEDY}.", "reason": "The judge rewards long replies."}
)


@pytest.mark.slow
def test_a_better_wording_is_written_and_its_diff_shown(command: Callable[..., Any]) -> None:
    write_files(PROPOSAL)
    completed = command(*arguments("--record", "calls.jsonl", "--revisions", "2"))
    assert completed.code == 0, completed.err
    assert has_line(completed.err, "30 rated texts", "2 revisions", "42 others")
    assert has_line(completed.out, "Revision 1 agrees better", "p < 0.001")
    assert f"+question: Does the reply help? {REMEDY}." in completed.out
    assert has_line(completed.out, "Revision 2", "not tried", "repeats")
    lines = [line for line in completed.out.splitlines() if line.strip()]
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80
    new = Path("helpful.improved.yaml").read_text(encoding="utf-8")
    assert REMEDY in new

    # a second attempt does not overwrite it, and a replay gives the same file without the models
    assert command(*arguments()).code == 2
    for name in ("judge.yaml", "writer.yaml"):
        Path(name).unlink()
    replayed = arguments(
        "--replay", "calls.jsonl", "--revisions", "2", "--output", "again/helpful.yaml"
    )
    Path("again").mkdir()
    second_run = command(*[part.replace("scripted/", "") for part in replayed], "--no-cache")
    assert second_run.code == 0, second_run.err
    assert Path("again/helpful.yaml").read_text(encoding="utf-8") == new


def test_a_writer_without_a_revision_changes_nothing(
    command: Callable[..., Any],
) -> None:
    write_files("I would rather not.")
    completed = command(*arguments("--out", "tries"))
    assert completed.code == 1
    assert "No usable revision: helpful.yaml stays" in completed.out
    report = " ".join(completed.out.split())
    assert has_line(report, "Revision 3", "no JSON object", "question, levels and reason")
    assert has_line(report, "Revision 3", "writer.yaml", "twice", "'I would rather not.'")
    assert not Path("helpful.improved.yaml").exists()
    assert json.loads(Path("tries/result.json").read_bytes())["improved"] is False


def test_ratings_from_a_sheet_and_the_json_of_the_result(command: Callable[..., Any]) -> None:
    write_files(PROPOSAL)
    rows = [
        json.loads(line) for line in Path("data.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    sheet = "\n".join(
        f"{row['item']},{row['system']},{row.pop('human')['helpful']}" for row in rows
    )
    Path("sheet.csv").write_text(f"item,system,helpful\n{sheet}\n", encoding="utf-8")
    write_jsonl("data.jsonl", rows)
    completed = command(*arguments("--ratings", "sheet.csv", "--json"))
    assert completed.code == 0, completed.err
    result = json.loads(completed.out)
    assert result["improved"] is True
    assert result["written"] == "helpful.improved.yaml"
    assert result["testing"] == {"items": 14, "texts": 42}
