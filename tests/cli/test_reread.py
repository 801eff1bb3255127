"""`judge report RUN --reread`: other settings for replies that are already paid for."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.records import Choice, Request, Response
from judge.results.result import Result, load

ROWS = [
    {"item": f"{n}", "system": system, "source": "A boat came.", "output": f"{system} {n}."}
    for n in range(12)
    for system in ("old", "new")
]
SHARES = ({"3": 0.5, "2": 0.1, "I": 0.4}, {"4": 0.8, "5": 0.2})
MODEL = judge.ScriptedProvider(lambda request: SHARES["new" in str(request)])


@pytest.fixture
def run(tmp_path: Path) -> Result:
    """A run whose scores of the old system have 60% of the probability on the scale. Two of the new system's are not
    in the requested form: one is in a sentence, one in the answer to a repair question."""
    result = judge.evaluate(ROWS, criteria=["relevance"], model=MODEL, metrics=[])
    rows = {(row.item, row.system): row for row in result.table.scores}
    for key, reading, raw in (
        (("3", "new"), "prose", 'Here you are: {"score": 4}'),
        (("4", "new"), "repaired", '["It depends.", "4"]'),
    ):
        rows[key] = replace(rows[key], provenance=replace(rows[key].provenance, reading=reading, raw=raw))
    result = replace(result, table=replace(result.table, scores=tuple(rows.values())))
    result.save(tmp_path / "r")
    return result


def test_it_shows_what_other_settings_change(run: Result, command: Callable[..., Any], golden: Any) -> None:
    before = {path.name: path.read_bytes() for path in Path("r").iterdir()}
    shown = command("report", "r", "--reread", "--strict", "--min-mass", "0.7")
    assert (shown.code, shown.err) == (0, "")
    golden("reread.txt", shown.out)
    assert {path.name: path.read_bytes() for path in Path("r").iterdir()} == before


def test_the_report_counts_how_replies_were_read(run: Result, command: Callable[..., Any]) -> None:
    line = (
        "! Scores not in the requested form: 1 of 24 read from a sentence, "
        "1 of 24 from the answer to a repair question."
    )
    assert line in " ".join(command("report", "r").out.split())
    full = command("report", "r", "--full").out
    assert line in " ".join(full.split())
    assert full[full.index("How replies were read") :].split("\n")[2:4] == [
        "           as requested  from a sentence  repair question  no score",
        "relevance            22                1                1         0",
    ]
    counts = {"column": "relevance", "strict": 22, "prose": 1, "repaired": 1, "unread": 0}
    assert json.loads(command("report", "r", "--json").out)["readings"] == [counts]
    records = list(csv.DictReader(command("report", "r", "--item", "4", "--format", "csv").out.splitlines()))
    assert [(row["system"], row["reading"]) for row in records] == [("old", "strict"), ("new", "repaired")]
    page = Path("r/report.html").read_text("utf-8")
    assert "logprobs, read from the answer to a repair question, mass 1.00" in page
    assert "replies “<bdi>It depends.</bdi>” ×1, “<bdi>4</bdi>” ×1" in page


def test_nothing_is_said_of_replies_that_are_all_as_requested(run: Result, command: Callable[..., Any]) -> None:
    shown = command("report", "r", "--reread", "--strict", "--full").out
    assert "from a sentence" not in shown
    assert "2 of 24 values changed (2 became failures, 0 became scores)" in " ".join(shown.split())


def test_json_and_csv_have_every_change_and_csv_in_rows(run: Result, command: Callable[..., Any]) -> None:
    options = ("report", "r", "--reread", "--min-mass", "0.7")
    data = json.loads(command(*options, "--json").out)
    changes = data["info"]["reread"]["changes"]
    assert data["info"]["reread"]["of"] == "r"
    assert [(change["item"], change["system"], change["after"]) for change in changes] == [
        (f"{n}", "old", None) for n in range(12)
    ]
    records = list(csv.DictReader(command(*options, "--format", "csv").out.splitlines()))
    assert [(row["item"], float(row["before"]), row["after"], row["why"]) for row in records] == [
        (change["item"], change["before"], "", change["why"]) for change in changes
    ]
    wide = list(csv.DictReader(command(*options, "--format", "csv", "--wide").out.splitlines()))
    assert [row["relevance"] for row in wide if row["system"] == "old"] == [""] * 12
    assert command(*options, "--item", "3").out.count("failed") == 2


def test_twenty_changes_are_shown_and_the_others_counted(tmp_path: Path, command: Callable[..., Any]) -> None:
    rows = [{**ROWS[0], "item": f"{n}"} for n in range(23)]
    judge.evaluate(rows, criteria=["relevance"], model=MODEL, metrics=[], out="many")
    shown = command("report", "many", "--reread", "--min-mass", "0.7").out
    assert (shown.count(" → failed"), "\n3 more: --format csv\n" in shown) == (20, True)


def test_the_new_run_has_the_statistics_of_a_run_with_these_settings(run: Result, command: Callable[..., Any]) -> None:
    options = ("report", "r", "--reread", "--min-mass", "0.65", "--out", "new")
    assert command(*options).code == 0
    new = load("new")
    rerun = judge.evaluate(ROWS, criteria=["relevance"], model=MODEL, metrics=[], min_mass=0.65, weighting="logprobs")
    assert (new.estimates, new.drivers, new.comparisons) == (rerun.estimates, rerun.drivers, rerun.comparisons)
    assert new.info["reread"]["of"] == "r"
    assert new.table.columns[0].signature == f"{run.table.columns[0].signature}|reread min_mass=0.65"
    assert "reread min_mass=0.65: 0 of 24" not in command("report", "new").out
    assert "again: 0 of 24 values changed." in " ".join(command("report", "new", "--reread").out.split())
    refused = command(*options)
    assert (refused.code, refused.err) == (
        2, "judge: --out new: holds a run; name another folder, or add --force to replace that run\n",
    )  # fmt: skip
    assert command(*options, "--force", "--strict").code == 0
    assert len(load("new").failures) == 14
    assert command("verify", "new").code == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--strict",), "--strict: is for --reread"),
        (("--min-mass", "0.3"), "--min-mass: is for --reread"),
        (("--out", "new"), "--out: is for --reread"),
        (("--reread", "--min-mass", "2"), "--min-mass: input should be less than or equal to 1, not 2.0"),
        (("--reread", "--out", "r"), "--out r: is the run whose replies are read again; name another folder"),
        (("--reread", "--format", "html"), "--reread: r holds the report of the whole run; name another file with"),
    ],
)
def test_what_cannot_be(run: Result, command: Callable[..., Any], options: tuple[str, ...], says: str) -> None:
    done = command("report", "r", *options)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"judge: {says}")


def test_values_that_only_a_new_run_can_change_are_counted() -> None:
    run = judge.evaluate(ROWS, criteria=["relevance"], model=MODEL, metrics=[], min_mass=0.7, temperature=0)
    assert {s.provenance.method for s in run.table.scores if s.system == "old"} == {"single"}
    note = "Values that stay because their tokens are not stored: 12."
    assert note in run.reread(min_mass=0.5).info["notes"]
    assert note not in run.reread(min_mass=0.8).info["notes"]
    assert note not in run.reread(strict=True).info["notes"]


def test_half_points_count_if_they_are_allowed_now(tmp_path: Path, command: Callable[..., Any]) -> None:
    model = judge.ScriptedProvider(lambda request: "4.5" if "new" in str(request) else {"4": 0.6, "5": 0.4})
    run = judge.evaluate(ROWS, criteria=["relevance"], model=model, metrics=[], out="r", temperature=0, repair="off")
    assert len(run.failures) == 12
    again = command("report", "r", "--reread", "--allow-half", "--out", "halves")
    shown = " ".join(again.out.split())
    assert "read again with allow_half=True: 12 of 24 values changed (0 became failures, 12 became scores)." in shown
    assert "Values that stay because their tokens are not stored: 12." in shown
    halves = load("halves")
    assert halves.estimates["new", "relevance"].value == 4.5
    assert halves.estimates["old", "relevance"].value == run.estimates["old", "relevance"].value
    own = Path("relevance.jinja")
    own.write_text("---\nscale: [1, 5]\nallow_half: true\n---\n{{ output }}")
    (column,) = halves.table.columns
    scale = judge.load_criterion(str(own)).scale
    assert (column.labels, column.values) == (scale.labels, scale.values)
    assert command("verify", "halves").code == 0
    back = command("report", "halves", "--reread", "--no-half", "--json")
    assert len(json.loads(back.out)["info"]["reread"]["changes"]) == 12


def test_a_run_of_an_older_judge_cannot_be_read_again(run: Result, command: Callable[..., Any]) -> None:
    labels = ["1", "2", "3", "4", "5"]
    for folder, scale in (("old", labels), ("words", {"labels": labels, "values": ["low", 2, 3, 4, 5]})):
        stored = {"relevance": {**run.info["criteria"]["relevance"], "scale": scale}}
        replace(run, info={**run.info, "criteria": stored}).save(folder)
        done = command("report", folder, "--reread")
        assert (done.code, "an older judge stored it" in done.err) == (2, True)
    judge.evaluate(ROWS, criteria=[], metrics=["stats"], out="metrics")
    assert "no judge was asked in this run" in command("report", "metrics", "--reread").err


def test_a_panels_means_and_a_ranking_follow_their_judges(tmp_path: Path, command: Callable[..., Any]) -> None:
    panel = [MODEL, judge.ScriptedProvider(lambda _: "4", model="sure")]
    before = judge.evaluate(ROWS, criteria=["relevance"], model=panel, metrics=[])
    after = before.reread(min_mass=0.7)
    after.save("after")
    assert command("verify", "after").code == 0
    assert len(after.failures) == 24
    assert {(row.system, row.error) for row in after.failures if row.column == "relevance"} == {
        ("old", "IncompletePanel")
    }
    assert after.estimates["new", "relevance"] == before.estimates["new", "relevance"]
    ranked = judge.rank(ROWS, model=judge.ScriptedProvider(lambda _: {"A": 0.55, "B": 0.05, "I": 0.4}), out="ranked")
    assert ranked.reread().rankings == ranked.rankings
    again = ranked.reread(min_mass=0.7)
    assert (again.rankings[0].failed, len(again.failures)) == (24, 24)
    assert "24 of 24 values changed" in " ".join(
        command("report", "ranked", "--reread", "--min-mass", "0.7").out.split()
    )


REPLIES = (
    "Clear.\nScore: 4",
    "Clear, so I would give it a score of 3.",
    "Clear, on the whole.",
    Response((Choice("Clear.\nScore: 5", "length"),)),
    '{"reason": "Clear.", "score": 2}',
    "Here you are: {'reason': 'Clear.', 'score': 2,}",
    Response((Choice("", "content_filter"),)),
    "Clear.\nScore: 4.5",
    "I cannot tell. I cannot.",
)


def _replies(request: Request) -> Any:
    """A reply by the text; to the repair question, about half have a score."""
    number = int(re.findall(r"(?:old|new) (\d+)", str(request.messages[0]))[-1])
    if len(request.messages) > 1:
        return "4" if number % 2 else "I still cannot."
    if "response_format" in request.params and "criterion" in request.params:
        return ('{"coherence": 4, "relevance": 3}', "So: {coherence: 4, relevance: '3'}", "no")[number % 3]
    return REPLIES[(number + request.draw) % len(REPLIES)]


@pytest.mark.parametrize(
    "options",
    [
        {"weighting": "single"},
        {"weighting": "single", "strict": True},
        {"weighting": "single", "repair": "off"},
        {"weighting": "samples", "draws": 3},
        {"weighting": "auto", "draws": 2},
        {"weighting": "auto", "temperature": 0},
        {"weighting": "logprobs"},
        {"weighting": "single", "reply": "score_then_reason"},
        {"weighting": "single", "reply": "score"},
        {"weighting": "single", "reply": "score", "merge_criteria": True, "criteria": ["coherence", "relevance"]},
        {"weighting": "single", "structured": True},
    ],
)
def test_with_its_own_settings_a_run_stays_as_it_is(options: dict[str, Any], tmp_path: Path) -> None:
    options = {"criteria": ["coherence"], "reply": "reason_then_score", **options}
    run = judge.evaluate(ROWS, model=judge.ScriptedProvider(_replies), metrics=[], out=tmp_path, **options)
    assert judge.verify(tmp_path).differences == ()
    again = load(tmp_path).reread()
    assert again.info["reread"] == {"settings": {}, "changes": []}
    assert (again.table, again.estimates) == (run.table, run.estimates)
    if options["weighting"] == "single" and len(options) == 3:
        assert {score.provenance.reading for score in run.table.scores} == {"strict", "prose", "repaired"}
    strict = again.reread(strict=True)
    plain = judge.evaluate(ROWS, model=judge.ScriptedProvider(_replies), metrics=[], **{**options, "strict": True})
    values = [{(s.item, s.system, s.column): s.value for s in result.table.scores} for result in (strict, plain)]
    assert values[0] == values[1]
