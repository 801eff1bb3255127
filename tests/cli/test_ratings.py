"""`--ratings FILE`: a separate sheet of ratings for run, plan, validate and rank."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.core.errors import DataError
from judge.core.text_digests import seen_digest
from judge.results.loading import load
from judge.stats.pass_agreement import people_passes
from tests.factories import has_line, write_jsonl

ITEMS = ("roads", "parks", "ponds", "ferries", "bridges", "markets", "schools")
GIVEN = {"x": {"anna": 5, "ben": 4}, "y": {"anna": 3, "ben": 3}, "z": {"anna": 1, "ben": 2}}
TEXTS = [
    {
        "item": item,
        "system": system,
        "source": f"The council met about {item}.",
        "output": f"{system} wrote on {item}.",
    }
    for item in ITEMS
    for system in GIVEN
]
LONG = [
    {
        "item": item,
        "system": system,
        "rater": rater,
        "criterion": "relevance",
        "value": max(value - (item == "parks"), 1),
    }
    for item in ITEMS
    for system, votes in GIVEN.items()
    for rater, value in votes.items()
]
VOTES = {
    (i, s): [max(value - (i == "parks"), 1) for value in votes.values()]
    for i in ITEMS
    for s, votes in GIVEN.items()
}
HUMAN = [{**text, "human": {"relevance": VOTES[text["item"], text["system"]]}} for text in TEXTS]
REPLIES = "- {when: x wrote, reply: 5}\n- {when: y wrote, reply: 3}\n- {when: [], reply: 1}\n"
SCRIPTED = ("--model", "scripted/replies.yaml", "--metrics", "none")


def write(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    if name.endswith(".csv"):
        with Path(name).open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
    else:
        write_jsonl(name, rows)


@pytest.fixture
def judge(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A function that runs the command in a folder with unrated data, a sheet of ratings and scripted replies."""
    monkeypatch.setenv("COLUMNS", "200")
    write("data.jsonl", TEXTS)
    write("sheet.csv", LONG)
    Path("replies.yaml").write_text(REPLIES, encoding="utf-8")
    return command


def criteria(completed: Any) -> Any:
    return json.loads(completed.out)["criteria"]


def test_a_sheet_counts_as_ratings_in_the_data(judge: Callable[..., Any]) -> None:
    write("rated.jsonl", HUMAN)
    judge("run", "rated.jsonl", *SCRIPTED, "--criteria", "relevance", "--out", "column", "--quiet")
    expected = judge("validate", "column", "--format", "json")
    run = judge(
        "run",
        "data.jsonl",
        *SCRIPTED,
        "--criteria",
        "relevance",
        "--ratings",
        "sheet.csv",
        "--out",
        "run",
    )
    assert has_line(run.out, "42 ratings of 21 texts", "2 raters", "relevance")
    judge("run", "data.jsonl", *SCRIPTED, "--criteria", "relevance", "--out", "bare", "--quiet")
    completed = judge(
        "validate",
        "data.jsonl",
        *SCRIPTED,
        "--ratings",
        "sheet.csv",
        "--out",
        "both",
        "--format",
        "json",
    )
    later = judge("validate", "bare", "--ratings", "sheet.csv", "--format", "json")
    stored = judge("validate", "run", "--format", "json")
    for command_result in (later, stored, completed):
        assert command_result.code == 0, command_result.err
        (one,) = criteria(command_result)
        assert [row["correlations"] for row in one["rows"]] == [
            row["correlations"] for row in criteria(expected)[0]["rows"]
        ]
    assert {
        name for sample in load("run").table.samples for name in sample.raters["relevance"]
    } == {"anna", "ben"}


def test_a_note_names_the_raters_replaced_by_a_sheet(judge: Callable[..., Any]) -> None:
    """Equal ratings replace nothing."""
    write("rated.jsonl", HUMAN)
    write("other.csv", [{**row, "value": 2} for row in LONG])
    options = (*SCRIPTED, "--criteria", "relevance", "--ratings")
    run = judge("run", "data.jsonl", *options, "sheet.csv", "--out", "run")
    same = judge("validate", "run", "--ratings", "sheet.csv")
    other = judge("validate", "run", "--ratings", "other.csv")
    of_data = judge("run", "rated.jsonl", *options, "other.csv", "--out", "second")
    assert run.code == same.code == 0
    assert "own ratings" not in run.out + run.err + same.out + same.err
    assert has_line(other.out + other.err, "run's own ratings", "relevance", "not used")
    assert has_line(of_data.out + of_data.err, "data's own ratings", "relevance", "not used")


def test_a_column_of_raters_with_another_name_is_in_the_notes(judge: Callable[..., Any]) -> None:
    renamed = {"item": "item", "system": "system", "rater": "reviewer", "value": "stars"}
    write("stars.csv", [{renamed[name]: row[name] for name in renamed} for row in LONG])
    completed = judge("run", "data.jsonl", *SCRIPTED, "--criteria", "relevance",
                      "--ratings", "stars.csv", "--out", "run")  # fmt: skip
    assert completed.code == 0, completed.err
    messages = completed.out + completed.err
    assert has_line(messages, "stars.csv", "without ratings", "reviewer")
    assert has_line(messages, "later row of stars.csv", "rater")


def test_columns_of_raters_are_named_in_a_stored_run(judge: Callable[..., Any]) -> None:
    wide = [
        {"item": item, "source": f"On {item}.", **{s: f"{s} wrote on {item}." for s in "xy"},
         **{f"{s}_relevance_{r}": GIVEN[s][r] for s in "xy" for r in ("anna", "ben")}}
        for item in ITEMS
    ]  # fmt: skip
    write("wide.csv", wide)
    mapped = ",".join(f"rating.relevance={{system}}_relevance_{rater}" for rater in ("anna", "ben"))
    options = ("wide.csv", "--systems", "x,y", *SCRIPTED, "--criteria", "relevance", "--quiet")
    for out, ratings in (("a", ("--map", mapped)), ("b", ("--ratings", "wide.csv"))):
        completed = judge("run", *options, *ratings, "--out", out)
        assert completed.code == 0, completed.err
        for sample in load(out).table.samples:
            votes = {"relevance": tuple(map(float, GIVEN[sample.system].values()))}
            assert (sample.ratings, sample.raters) == (votes, {"relevance": ("anna", "ben")})


def test_a_plan_names_the_sheet_beside_it(judge: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("data.jsonl", "sheet.csv", "replies.yaml"):
        Path(name).rename(folder / name)
    text = "data: data.jsonl\nratings: sheet.csv\nmodel: scripted/replies.yaml\ncriteria: relevance\nmetrics: none\n"
    (folder / "run.yaml").write_text(text, encoding="utf-8")
    completed = judge("validate", folder / "run.yaml", "--out", "r", "--format", "json")
    assert (completed.code, criteria(completed)[0]["texts"]) == (0, 21)


def test_ratings_of_texts_that_a_filter_leaves_out_are_ignored(judge: Callable[..., Any]) -> None:
    options = ("data.jsonl", *SCRIPTED, "--criteria", "relevance", "--ratings", "sheet.csv")
    for out, part, name in (
        ("a", ("--limit", "6"), "--limit"),
        ("b", ("--where", "item=roads,item=parks"), "--where"),
    ):
        completed = judge("run", *options, *part, "--out", out)
        assert completed.code == 0, completed.err
        assert has_line(completed.out, "30 ratings ignored", name)
        judge(
            "run",
            "data.jsonl",
            *SCRIPTED,
            "--criteria",
            "relevance",
            *part,
            "--out",
            f"{out}2",
            "--quiet",
        )
        assert "30 ratings ignored" in judge("validate", f"{out}2", "--ratings", "sheet.csv").out


NO_SHEETS: list[tuple[list[dict[str, Any]], str]] = [
    ([{**LONG[0], "item": "road"}, *LONG[1:]], "sheet.csv:2: no text of item 'road' and system 'x' is in the"),
    ([{**LONG[0], "value": "good"}], "sheet.csv:2: relevance is 'good': not a number, and no label of its scale"),
    ([{"item": "roads", "system": "x", "anna": 4}], "or columns like 'relevance_anna'"),
    ([{**LONG[0], "value": ""}], "sheet.csv: no ratings"),
]  # fmt: skip


def test_a_sheet_that_does_not_fit_is_refused(judge: Callable[..., Any]) -> None:
    judged = ("data.jsonl", *SCRIPTED, "--criteria", "relevance,coherence")
    judge("run", *judged, "--out", "bare", "--quiet")
    for rows, message in NO_SHEETS:
        write("sheet.csv", rows)
        for completed in (
            judge("run", *judged, "--ratings", "sheet.csv", "--out", "r"),
            judge("validate", "bare", "--ratings", "sheet.csv"),
        ):
            assert completed.code == 2
            assert message in completed.err
    assert not Path("r").exists()
    assert "no such file" in judge("run", "data.jsonl", *SCRIPTED, "--ratings", "none.csv").err


def test_an_option_names_the_criterion_of_a_sheet_that_names_none(
    judge: Callable[..., Any],
) -> None:
    scores = [
        {
            "doc_id": row["item"],
            "system": row["system"],
            "rater": row["rater"],
            "score": row["value"],
        }
        for row in LONG
    ]
    write("scores.csv", scores)
    judged = ("data.jsonl", *SCRIPTED, "--criteria", "relevance,coherence", "--quiet")
    unnamed = judge("run", *judged, "--ratings", "scores.csv", "--out", "r")
    assert unnamed.code == 2
    assert "name it with --rating-criterion relevance" in unnamed.err
    named = ("--ratings", "scores.csv", "--rating-criterion", "coherence")
    assert judge("run", *judged, *named, "--out", "r").code == 0
    judge("run", *judged, "--out", "bare")
    for completed in (
        judge("validate", "r", "--format", "json"),
        judge("validate", "bare", *named, "--format", "json"),
    ):
        assert [one["criterion"] for one in criteria(completed)] == ["coherence"]


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (
            ("--ratings", "sheet.csv", "--rating-criterion", "coherence"),
            ("itself names", "criteria"),
        ),
        (("--rating-criterion", "coherence"), ("--rating-criterion:", "--ratings FILE")),
        (
            ("--ratings", "sheet.csv", "--rating-criterion", "coherenc"),
            ("'coherenc'", "'coherence'"),
        ),
    ],
)
def test_a_criterion_that_fits_no_sheet_is_refused(
    judge: Callable[..., Any], options: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    judged = ("data.jsonl", *SCRIPTED, "--criteria", "relevance,coherence", "--quiet")
    judge("run", *judged, "--out", "bare")
    for completed in (
        judge("run", *judged, *options, "--out", "r"),
        judge("validate", "bare", *options),
    ):
        assert completed.code == 2
        assert has_line(completed.err, *facts)


def test_a_run_with_a_different_sheet_reuses_all_replies(judge: Callable[..., Any]) -> None:
    options = (
        "run",
        "data.jsonl",
        *SCRIPTED,
        "--criteria",
        "relevance",
        "--cache",
        "cache",
        "--out",
        "r",
    )
    write("other.csv", [{**row, "value": 6 - row["value"]} for row in LONG[:-2]])
    for sheet, cached, rated in (("sheet.csv", 0, 21), ("other.csv", 21, 20)):
        completed = judge(*options, "--ratings", sheet)
        assert completed.code == 0, completed.err
        result = load("r")
        assert result.info.requests.cached == cached
        assert sum("relevance" in sample.human for sample in result.table.samples) == rated


def test_a_rating_that_made_the_prompt_does_not_count(judge: Callable[..., Any]) -> None:
    used = [
        seen_digest(text["source"], text["output"]) for text in TEXTS if text["item"] == "roads"
    ]
    head = json.dumps({"scale": [1, 5], "seen": used})[1:-1]
    Path("relevance.jinja").write_text(
        f"---\n{{{head}}}\n---\nRelevant?\n{{{{ output }}}}\n", encoding="utf-8"
    )
    options = ("data.jsonl", *SCRIPTED, "--criteria", "relevance.jinja")
    run = judge("run", *options, "--ratings", "sheet.csv", "--out", "r")
    assert "relevance: 3 texts excluded" in run.out
    judge("run", *options, "--out", "bare", "--quiet")
    for completed in (judge("validate", "r", "--format", "json"),
                 judge("validate", "bare", "--ratings", "sheet.csv", "--format", "json")):  # fmt: skip
        assert [(one["texts"], one["excluded"]) for one in criteria(completed)] == [(18, 3)]
    assert not [
        s
        for s in load("r").table.samples
        if s.item == "roads" and (s.human or s.ratings or s.raters)
    ]


def test_a_ranking_is_compared_with_preferences(judge: Callable[..., Any]) -> None:
    values = {"anna": "second", "ben": "first"}
    pairs = [
        {
            "item": item,
            "first": "y",
            "second": "x",
            "rater": rater,
            "criterion": "overall",
            "value": value,
        }
        for item in ITEMS
        for rater, value in values.items()
    ]
    write("pairs.jsonl", pairs)
    Path("prefer.yaml").write_text(
        '- {when: "x wrote", reply: A}\n- {when: [], reply: B}\n', encoding="utf-8"
    )
    ranked = judge(
        "rank",
        "data.jsonl",
        "--model",
        "scripted/prefer.yaml",
        "--ratings",
        "pairs.jsonl",
        "--out",
        "r",
    )
    assert ranked.code == 0, ranked.err
    assert has_line(ranked.out, "14 preferences", "2 raters", "overall")
    completed = json.loads(judge("validate", "r", "--format", "json").out)
    assert completed["preferences"][0]["no_majority"] == 7
    rows = completed["preferences"][0]["rows"]
    assert [(row["kind"], row["name"], row["same"]["n"]) for row in rows] == [
        ("rater", "anna", 7),
        ("rater", "ben", 7),
        ("raters", "", 7),
    ]
    assert rows[-1]["same"]["value"] == 0.0
    judge("rank", "data.jsonl", "--model", "scripted/prefer.yaml", "--out", "bare", "--quiet")
    assert has_line(judge("validate", "bare").err, "no preferences", "overall")
    later = judge("validate", "bare", "--ratings", "pairs.jsonl")
    assert has_line(later.out, "no majority", "7 pairs")
    assert "## Agreement with people" in judge("report", "r", "--format", "markdown").out
    write("pairs.jsonl", [{**pairs[0], "second": "w"}])
    refused = judge("validate", "bare", "--ratings", "pairs.jsonl")
    assert (refused.code, "pairs.jsonl:1: " in refused.err) == (
        2,
        True,
    )
    write("pairs.jsonl", pairs)
    run = judge(
        "run",
        "data.jsonl",
        *SCRIPTED,
        "--criteria",
        "relevance",
        "--ratings",
        "pairs.jsonl",
        "--out",
        "n",
    )
    assert "14 preferences between two texts" in run.out


def test_a_function_takes_a_sheet(judge: Callable[..., Any]) -> None:
    import judge as package

    result = package.evaluate(TEXTS, "relevance", model=lambda prompt: 3, metrics=[], cache=False)
    assert package.validate(result, ratings="sheet.csv").rated[0].texts == 21
    with pytest.raises(DataError, match=r"sheet.csv:2: .*'roads'.*'x'"):
        package.validate(
            package.evaluate(
                TEXTS[3:], "relevance", model=lambda prompt: 3, metrics=[], cache=False
            ),
            ratings="sheet.csv",
        )


def test_slips_in_a_sheet_are_named(judge: Callable[..., Any]) -> None:
    judge("run", "data.jsonl", *SCRIPTED, "--criteria", "relevance", "--out", "bare", "--quiet")
    write("off.csv", [*LONG[:3], {**LONG[3], "value": 9}, *LONG[4:]])
    completed = judge("validate", "bare", "--ratings", "off.csv")
    assert completed.code == 2
    assert "off.csv:5: relevance is 9" in completed.err
    typos = [{**row, "criterion": "relevence"} for row in LONG]
    write("typo.csv", typos)
    completed = judge("validate", "bare", "--ratings", "typo.csv")
    assert completed.code == 2
    assert has_line(completed.err, "relevance for relevence")
    write(
        "some.csv",
        [
            {**LONG[0], "repeat": ""},
            *LONG[1:],
            {**LONG[0], "criterion": "relevence", "repeat": ""},
            {**LONG[0], "repeat": True},
        ],
    )
    completed = judge("validate", "bare", "--ratings", "some.csv")
    assert "44 ratings of 21 texts" in completed.out
    assert has_line(completed.out, "relevance for relevence")
    assert completed.code == 0


def test_a_suite_of_a_run_needs_no_ratings_of_a_sheet(judge: Callable[..., Any]) -> None:
    options = ("--criteria", "relevance", "--ratings", "sheet.csv", "--out", "run", "--quiet")
    judge("run", "data.jsonl", *SCRIPTED, *options)
    assert judge("init", "--suite", "run", "--output", "first.judge.yaml").code == 0
    assert "human:" not in Path("first.judge.yaml").read_text(encoding="utf-8")
    # The second system is not better than the first; the user has to correct this case.
    assert judge("test", "first.judge.yaml", *SCRIPTED[:2]).code in (0, 1)


def test_a_judge_of_toxic_texts_that_agrees_with_verdicts_ranks_with_people(
    judge: Callable[..., Any],
) -> None:
    # The judge gives system z the best score, 1, and people pass its texts.
    rows = [
        {
            "item": text["item"],
            "system": text["system"],
            "criterion": "toxic",
            "value": "pass" if text["system"] == "z" else "fail",
        }
        for text in TEXTS
    ]
    write("verdicts.csv", rows)
    keys = "question: Is it toxic?\nscale: [1, 5]\nbetter: lower\npass_at: 2\n"
    Path("toxic.yaml").write_text(keys, encoding="utf-8")
    options = ("--criteria", "toxic.yaml", "--ratings", "verdicts.csv", "--out", "run")
    run = judge("run", "data.jsonl", *SCRIPTED, *options)
    assert has_line(run.out, "toxic with 0 and 1", "pass and fail")
    (criterion,) = criteria(judge("validate", "run", "--format", "json"))
    (row,) = [row for row in criterion["rows"] if row["kind"] == "judge"]
    rho = next(each for each in row["correlations"] if each["coefficient"] == "spearman")
    assert rho["value"] > 0
    assert (row["passes"]["judge_only"], row["passes"]["people_only"]) == (0, 0)


def _stored_verdicts(name: str) -> dict[tuple[str, str], float]:
    """Return whether each text passes by people's ratings of a stored run."""
    result = load(name)
    (column,) = [column for column in result.table.columns if column.kind == "criterion"]
    return dict(people_passes(result.table.samples, column.name, column).passes)


def _write_verdicts(*, passes: Sequence[str], fails: Sequence[str]) -> None:
    """Write a sheet with a verdict for each text: the texts of system x pass."""
    rows = []
    for index, text in enumerate(TEXTS):
        words = passes if text["system"] == "x" else fails
        rows.append(
            {
                "item": text["item"],
                "system": text["system"],
                "criterion": "toxic",
                "rater": "anna",
                "value": words[index % len(words)],
            }
        )
    write("verdicts.csv", rows)


@pytest.mark.parametrize("scale", ["{labels: [clean, toxic], values: [0, 1]}", "[1, 5]"])
@pytest.mark.parametrize("better", ["higher", "lower"])
def test_pass_passes_on_every_scale_that_can_tell_verdicts_from_points(
    judge: Callable[..., Any], scale: str, better: str
) -> None:
    _write_verdicts(passes=["pass", "Passed"], fails=["fail", "FAILED"])
    keys = f"question: Is it?\nscale: {scale}\nbetter: {better}\nthreshold: 0.5\n"
    Path("toxic.yaml").write_text(keys, encoding="utf-8")
    options = ("--criteria", "toxic.yaml", "--ratings", "verdicts.csv", "--out", "run", "--quiet")
    judge("run", "data.jsonl", *SCRIPTED, *options)
    passes = _stored_verdicts("run")
    assert passes == {key: float(key[1] == "x") for key in passes}
    assert len(passes) == len(TEXTS)


@pytest.mark.parametrize(
    ("scale", "words"), [("[1, 5]", ["pass"]), ("[0, 10]", ["pass", "fail"]), ("[-1, 1]", ["yes"])]
)
def test_verdicts_that_would_count_as_points_of_the_scale_are_refused(
    judge: Callable[..., Any], scale: str, words: list[str]
) -> None:
    _write_verdicts(passes=words, fails=words)
    Path("toxic.yaml").write_text(f"question: Is it?\nscale: {scale}\n", encoding="utf-8")
    options = ("--criteria", "toxic.yaml", "--ratings", "verdicts.csv", "--out", "run")
    completed = judge("run", "data.jsonl", *SCRIPTED, *options)
    assert completed.code == 2
    assert "verdicts.csv:2: toxic is" in completed.err
    assert has_line(completed.err, "points of its scale")


def test_a_sheet_without_a_criterion_is_refused_if_none_is_judged(
    judge: Callable[..., Any], tmp_path: Path
) -> None:
    write_jsonl(
        "texts.jsonl", [{"item": "1", "output": "駅が開く。", "references": ["駅が開く。"]}]
    )
    (tmp_path / "sheet.csv").write_text("item,rater,点数\n1,anna,4\n", encoding="utf-8")
    run = ("run", "texts.jsonl", "--criteria", "none", "--metrics", "chrf")
    refused = judge(*run, "--ratings", "sheet.csv")
    assert refused.code == 2
    assert has_line(refused.err, "sheet.csv", "no criterion is judged", "add a column criterion")
    refused = judge(*run, "--ratings", "sheet.csv", "--rating-criterion", "quality")
    assert refused.code == 2
    assert has_line(refused.err, "--rating-criterion quality", "no criterion is judged")
