"""`judge validate`: a stored run or a new run, exit codes and refused options."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import has_line, write_jsonl

VOTES = {"x": [5, 4, 5], "y": [2, 3, None], "z": [1, 1, 2]}
ROWS = [
    {
        "item": item,
        "system": system,
        "source": f"The town's council met on Monday about {item} and the old bridge, and voted to mend it in May.",
        "output": f"{system} wrote that the council met about {item} and voted"
        + " again" * n * (system == "y"),
        "references": [f"The council voted about {item}."],
        "human": {"relevance": VOTES[system]},
    }
    for n, item in enumerate(
        ("roads", "parks", "ponds", "ferries", "bridges", "markets", "schools")
    )
    for system in VOTES
]
REPLIES = "- {when: x wrote, reply: 5}\n- {when: y wrote, reply: 3}\n- {when: [], reply: 1}\n"
SCRIPTED = ("--model", "scripted/replies.yaml", "--criteria", "relevance", "--metrics", "none")


@pytest.fixture
def judge(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A function that runs the command in a folder with data.jsonl and scripted replies."""
    monkeypatch.setenv("COLUMNS", "100")
    write_jsonl("data.jsonl", ROWS)
    Path("replies.yaml").write_text(REPLIES, encoding="utf-8")
    return command


def test_validate_judges_and_validates_data_in_one_command(judge: Callable[..., Any]) -> None:
    completed = judge("validate", "data.jsonl", *SCRIPTED, "--out", "r")
    assert completed.code == 0, completed.err
    assert "one rater" in completed.out
    assert len(completed.out.splitlines()) <= 20
    assert "\nr/report.html\n" in completed.out
    second_run = judge("validate", "r")
    assert (second_run.code, second_run.out, second_run.err) == (0, completed.out, "")
    assert "Next     judge validate r --full" in completed.out
    assert "length (baseline)" in judge("validate", "r", "--full").out


def test_a_plan_is_carried_out_first(judge: Callable[..., Any]) -> None:
    plan = "data: data.jsonl\nmodel: scripted/replies.yaml\ncriteria: [relevance]\nmetrics: none\nout: r\nseed: 3\n"
    Path("run.yaml").write_text(plan, encoding="utf-8")
    completed = judge("validate", "run.yaml", "--quiet", "--format", "json")
    assert (completed.code, completed.err) == (0, "")
    (one,) = json.loads(completed.out)["criteria"]
    assert [row["name"] for row in one["rows"] if row["kind"] == "judge"] == ["replies.yaml"]
    (method, *_) = (
        c["method"] for c in one["rows"][0]["correlations"] if c["level"] == "all-texts"
    )
    assert has_line(method, "items", "too few")
    assert '"seed": 3' in Path("r/run.json").read_text(encoding="utf-8")


def test_levels_and_formats(judge: Callable[..., Any]) -> None:
    judge("run", "data.jsonl", *SCRIPTED, "--out", "r", "--quiet")
    assert "between the systems' means" in judge("validate", "r", "--level", "systems").out
    between = " ".join(judge("validate", "r", "--level", "systems", "--full").out.split())
    assert has_line(between, "no interval", "systems' means")
    assert (
        "| replies.yaml | 1.00 \\[0.08, 1.00\\] |"
        in judge("validate", "r", "--format", "markdown").out
    )
    report = json.loads(judge("validate", "r", "--format", "json", "--seed", "7").out)
    correlations = report["criteria"][0]["rows"][0]["correlations"]
    assert {(c["level"], c["coefficient"]) for c in correlations} == {
        (level, name)
        for level in ("within-items", "all-texts", "systems")
        for name in ("spearman", "kendall", "pearson")
    }
    assert all("too few for" in c["method"] for c in correlations if c["level"] == "all-texts")


def test_the_judges_of_two_runs_are_compared(judge: Callable[..., Any]) -> None:
    judge("run", "data.jsonl", *SCRIPTED, "--out", "a", "--quiet")
    Path("replies.yaml").write_text(
        "- {when: x wrote, reply: 1}\n- {when: [], reply: 5}\n", encoding="utf-8"
    )
    judge("run", "data.jsonl", *SCRIPTED, "--out", "b", "--quiet")
    completed = judge("validate", "a", "b", "--format", "markdown")
    assert (completed.code, completed.err) == (0, "")
    assert "| replies.yaml (b) |" in completed.out
    assert has_line(
        completed.out, "replies.yaml (a): significantly better", "replies.yaml (b) (+1.87"
    )
    compared = judge(
        "validate", "data.jsonl", "b", *SCRIPTED, "--out", "c", "--quiet", "--format", "markdown"
    )
    assert compared.code == 0, compared.err
    assert "| replies.yaml (b) |" in compared.out


def test_the_judge_is_tested_against_each_rater(judge: Callable[..., Any]) -> None:
    """Anna, Ben and Cleo rate 12 items. The judge agrees with Anna and Ben; Cleo always gives 3."""
    score_by_system = {"x": 5, "y": 3, "z": 1}
    rows = [ROW | {"item": f"{item}", "human": {}} for ROW in ROWS[:3] for item in range(12)]
    write_jsonl("many.jsonl", rows)
    ratings = [
        {"item": row["item"], "system": row["system"], "rater": rater, "criterion": "relevance", "seconds": 8.0,
         "value": 3 if rater == "cleo" else score_by_system[row["system"]]}
        for rater in ("anna", "ben", "cleo") for row in rows
    ]  # fmt: skip
    ratings += [{**ratings[0], "repeat": True, "value": 4}]
    write_jsonl("ratings.jsonl", ratings)
    judge("run", "many.jsonl", *SCRIPTED, "--out", "r", "--quiet")
    for data in (("r",), ("many.jsonl", *SCRIPTED, "--out", "s", "--quiet")):
        validated = judge(
            "validate", *data, "--ratings", "ratings.jsonl", "--epsilon", "0.1", "--format", "json"
        )
        notes = json.loads(validated.out)["notes"]
        from_file = [note for note in notes if note.startswith("Ratings from ratings.jsonl")]
        assert len(from_file) == 1
        criterion = json.loads(validated.out)["criteria"][0]
        test = criterion["rows"][0]["alt_test"]
        # Ties with Anna and Ben on all 36 texts, and is closer than Cleo to both on 24, with 12 ties.
        assert [(each["rater"], each["judge"], each["person"]) for each in test["raters"]] == [
            ("anna", 1.0, 1.0), ("ben", 1.0, 1.0), ("cleo", 1.0, pytest.approx(1 / 3)),
        ]  # fmt: skip
        assert (test["epsilon"], test["advantage"]) == (0.1, 1.0)
        raters = {rater["rater"]: rater for rater in criterion["raters"]}
        assert (raters["anna"]["repeated"], raters["anna"]["same"], raters["ben"]["repeated"]) == (
            1,
            0,
            0,
        )
    shown = judge("validate", "r", "--ratings", "ratings.jsonl").out
    assert has_line(shown, "replies.yaml may replace", "ε 0.2", "relevance")
    assert "judge wins" not in shown
    assert "judge wins" in judge("validate", "r", "--ratings", "ratings.jsonl", "--full").out


def test_a_failed_judgment_exits_with_one(judge: Callable[..., Any]) -> None:
    Path("replies.yaml").write_text(
        "- {when: x wrote, reply: no score}\n" + REPLIES, encoding="utf-8"
    )
    completed = judge("validate", "data.jsonl", *SCRIPTED, "--out", "r")
    assert completed.code == 1
    assert "7 values failed" in completed.err
    assert (
        json.loads(judge("validate", "r", "--format", "json").out)["criteria"][0]["rows"][0][
            "texts"
        ]
        == 14
    )


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (
            ("bare.jsonl", *SCRIPTED),
            ("no text has a human rating", "--ratings FILE", "--map"),
        ),
        (
            ("empty",),
            ("empty: not the folder of a run", "run.json", "name a folder"),
        ),
        (("missing.jsonl", *SCRIPTED), ("missing.jsonl: no such file",)),
        (
            ("data.jsonl", "nowhere", *SCRIPTED),
            ("nowhere: no such folder", "compare with data.jsonl"),
        ),
        (("data.jsonl", "empty", *SCRIPTED), ("empty: not the folder of a run", "run.json")),
        (("data.jsonl", *SCRIPTED, "--level", "docs"), ("--level:", "'docs'")),
        (
            ("data.jsonl", *SCRIPTED, "--epsilon", "20"),
            ("--epsilon 20.0:", "at least 0", "below 1"),
        ),
        (
            ("data.jsonl", *SCRIPTED, "--format", "pdf"),
            ("'pdf'", "console, markdown, html"),
        ),
        (
            ("empty", "--max-tokens", "5"),
            ("--max-tokens:", "empty is finished", "name its data"),
        ),
        (("empty", "--header", "X-Team=a"), ("--header:", "empty is finished")),
        (("data.jsonl", *SCRIPTED, "--header", "X-Team"), ("--header:", "NAME=VALUE")),
        (
            ("empty", "--ratings", "data.jsonl", "--map", "value=score"),
            ("--map:", "empty is finished", "rename the columns of the ratings"),
        ),
        (
            ("bad.jsonl", *SCRIPTED),
            ("bad.jsonl:1:", "'relevance' by rater 2", "'high'"),
        ),
    ],
)
def test_bad_input_is_an_error_before_any_request(
    judge: Callable[..., Any], arguments: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    Path("empty").mkdir()
    write_jsonl(
        "bare.jsonl", [{key: value for key, value in row.items() if key != "human"} for row in ROWS]
    )
    write_jsonl("bad.jsonl", [ROWS[0] | {"human": {"relevance": [5, "high"]}}])
    completed = judge("validate", *arguments)
    assert (completed.code, completed.out) == (2, "")
    assert has_line(completed.err, "judge: ", *facts)
    assert not Path("cache").exists()


@pytest.mark.parametrize(
    ("arguments", "input_file"),
    [
        (("validate", "r", "--ratings", "ratings.csv"), "ratings.csv"),
        (("validate", "data.csv", *SCRIPTED, "--ratings", "ratings.csv"), "ratings.csv"),
        (("validate", "data.csv", *SCRIPTED, "--ratings", "ratings.csv"), "data.csv"),
        (("validate", "run.yaml"), "ratings.csv"),
        (("validate", "run.yaml"), "data.csv"),
        (("validate", "run.yaml", "--card"), "data.csv"),
        (("validate", "r"), "data.csv"),
        (("validate", "ratings.csv", "r", "--model", "scripted/replies.yaml"), "data.csv"),
        (("report", "r"), "data.csv"),
        (("compare", "r", "r"), "data.csv"),
    ],
)
def test_a_report_replaces_no_data_or_ratings(
    judge: Callable[..., Any], arguments: tuple[str, ...], input_file: str
) -> None:
    Path("data.csv").write_text("item,system,source,output\n1,x,A.,x wrote.\n", encoding="utf-8")
    Path("ratings.csv").write_text("item,system,rater,relevance\n1,x,anna,5\n", encoding="utf-8")
    Path("run.yaml").write_text(
        "data: data.csv\nratings: ratings.csv\nmodel: scripted/replies.yaml\ncriteria: [relevance]\n",
        encoding="utf-8",
    )
    assert judge("run", "data.csv", *SCRIPTED, "--out", "r", "--quiet").code == 0
    before = Path(input_file).read_bytes()
    completed = judge(*arguments, "--format", "csv", "--output", input_file)
    assert (completed.code, Path(input_file).read_bytes()) == (2, before)
    assert has_line(completed.err, f"--output {input_file}", "also an input")


def test_ratings_can_be_mapped(judge: Callable[..., Any]) -> None:
    write_jsonl(
        "mapped.jsonl", [{**row, "human": None, "rel": row["human"]["relevance"]} for row in ROWS]
    )  # type: ignore[index]
    completed = judge(
        "validate", "mapped.jsonl", *SCRIPTED, "--map", "rating.relevance=rel", "--out", "r"
    )
    assert completed.code == 0, completed.err
    assert "one rater" in completed.out


def test_only_default_criteria_that_people_rated_are_judged(judge: Callable[..., Any]) -> None:
    scripted = ("--model", "scripted/replies.yaml", "--metrics", "none")
    completed = judge("validate", "data.jsonl", *scripted, "--out", "r", "--format", "json")
    assert [each["criterion"] for each in json.loads(completed.out)["criteria"]] == ["relevance"]
    assert json.loads(Path("r/run.json").read_text("utf-8"))["info"]["criteria"].keys() == {
        "relevance"
    }
    refused = judge("validate", "data.jsonl", *scripted, "--criteria", "fluency", "--out", "s")
    assert (refused.code, Path("s").exists()) == (2, False)
    assert has_line(refused.err, "rated relevance", "judged fluency")


def test_only_one_table_is_printed(judge: Callable[..., Any]) -> None:
    rows = ["item,system,helpful,other,human"]
    for item in range(12):
        for system in "ab":
            rating = (item + (system == "a")) % 5 + 1
            rows.append(f"{item},{system},{item % 5 + 1},{item % 3},{rating}")
    Path("scores.csv").write_text("\n".join(rows), encoding="utf-8")
    columns = ("--judge-columns", "helpful", "--score-columns", "other")
    assert judge("run", "scores.csv", *columns, "--out", "scored", "--quiet").code == 0
    alone = judge("validate", "scored", "--table", "metrics", "--level", "all-texts")
    assert alone.code == 0, alone.err
    assert "Spearman" in alone.out
    assert "Next" not in alone.out
    for name in ("report", "validate"):
        help = " ".join(judge(name, "--help-all").out.split())
        example = help.split("Print only this table, such as ")[1].split(".")[0]
        assert judge(name, "scored", "--table", example).code == 0, example
    turned = judge("validate", "scored", "--columns", "other,judge", "--format", "latex")
    assert " & other & judge \\\\\n" in turned.out
    wrong = judge("validate", "scored", "--table", "metrics", "--columns", "helpfull")
    assert wrong.code == 2
    assert has_line(wrong.err, "--columns", "'helpfull'", "'helpful'")
    unknown = judge("report", "scored", "--table", "leaderbord")
    assert unknown.code == 2
    assert "leaderboard" in unknown.err
    assert judge("report", "scored", "--table", "leaderboard", "--format", "json").code == 2


def test_one_figure_is_written_in_the_format_of_its_file(judge: Callable[..., Any]) -> None:
    assert judge("validate", "data.jsonl", *SCRIPTED, "--out", "r").code == 0
    completed = judge("report", "r", "--figure", "relevance", "--output", "f.svg")
    assert (completed.code, completed.out) == (0, "f.svg\n")
    assert Path("f.svg").read_text("utf-8").startswith("<svg")
    unknown = judge("report", "r", "--figure", "relevanc", "--output", "f.svg")
    assert unknown.code == 2
    assert "relevance" in unknown.err
    assert judge("report", "r", "--figure", "relevance", "--output", "f.gif").code == 2
    assert judge("report", "r", "--figure", "relevance", "--output", "no/f.svg").code == 2


def test_quiet_prints_no_report_and_writes_a_file_all_the_same(judge: Callable[..., Any]) -> None:
    assert judge("validate", "data.jsonl", *SCRIPTED, "--out", "r", "--quiet").out == ""
    assert judge("validate", "r", "--quiet").out == ""
    assert judge("validate", "r", "--quiet", "--output", "v.txt").out == "v.txt\n"
    assert "relevance" in Path("v.txt").read_text("utf-8")
