"""Pass rates from the header to every report: judged, stored, loaded and compared."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.records import Request
from judge.providers.scripted import Reply, ScriptedProvider
from judge.report.views.pass_fail import pass_fail_sentences
from judge.results.item import item_of
from judge.results.loading import load
from judge.results.result import Result
from tests.factories import has_line, lines_hold

POLITE = """---
question: Is the reply polite?
scale: [1, 5]
pass_at: 4
---
{% extends "layouts/question.jinja" %}
"""
TONE = """---
question: How is the tone?
scale: {labels: [bad, fair, good], values: [0, 1, 2]}
pass_at: good
---
{% extends "layouts/question.jinja" %}
"""
GRADES = {"new": "5544543?", "old": "1234123?"}
"""By system, the grade of each item; ? is a reply without one."""
ROWS = [
    {"item": f"i{n}", "system": system, "output": f"{system}, grade {grade}"}
    for system, grades in GRADES.items()
    for n, grade in enumerate(grades)
]


def grade(request: Request) -> Reply:
    text = str(request.messages)
    level = text.split("grade ")[1][0]
    if level == "?":
        return "I cannot tell."
    return {"good": int(level) / 6, "fair": 1 - int(level) / 6} if "tone" in text else {level: 1.0}


def run(
    folder: Path, *criteria: str, rows: Any = ROWS, model: Any = None, **options: Any
) -> Result:
    paths = []
    for name, text in zip(("polite", "tone"), criteria, strict=False):
        paths.append(folder / f"{name}.jinja")
        paths[-1].write_text(text, encoding="utf-8")
    options = {"cache": False, "metrics": [], "repair": "off", **options}
    return judge.evaluate(rows, criteria=paths, model=model or ScriptedProvider(grade), **options)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("run")
    run(folder, POLITE, TONE, out=folder / "run")
    return load(folder / "run")


def test_pass_rate_excludes_failed_judgments(result: Result) -> None:
    rates = {key: (round(rate.value, 4), rate.n) for key, rate in result.pass_rates.items()}
    polite, tone = (
        {"new": 6 / 7, "old": 1 / 7},
        {"new": 7 / 7, "old": 3 / 7},
    )  # 3 of 6 and higher pass
    assert rates == {
        (system, name): (round(values[system], 4), 7)
        for name, values in (("polite", polite), ("tone", tone))
        for system in GRADES
    }
    assert result.failed == 4


def pass_marks(result: Result) -> dict[str, float | None]:
    """Return the worst value that passes, by column."""
    return {column.name: column.pass_at for column in result.table.columns}


def test_a_run_sets_the_pass_mark_of_criteria_without_one(tmp_path: Path) -> None:
    marked = run(tmp_path, POLITE, POLITE.replace("pass_at: 4\n", ""), pass_at=3)
    assert pass_marks(marked) == {"polite": 4.0, "tone": 3.0}


def test_a_pass_mark_of_a_run_must_be_on_the_scale(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"pass_at=9: polite: 9 .*1 to 5"):
        run(tmp_path, POLITE.replace("pass_at: 4\n", ""), pass_at=9)


def test_a_pass_mark_of_a_run_is_refused_if_every_criterion_has_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="polite already says what passes"):
        run(tmp_path, POLITE, pass_at=3)


def test_a_pass_mark_of_a_run_counts_for_scores_from_the_data() -> None:
    rows = [{"item": f"i{n}", "system": "a", "kind": n} for n in (1, 3, 5)]
    result = judge.evaluate(rows, judge_columns=["kind"], criteria=[], scale=(1, 5), pass_at=3)
    assert pass_marks(result) == {"kind": 3.0}


def test_the_frame_has_a_pass_column(result: Result) -> None:
    frame = result.to_frame()
    rates = frame.groupby(["system", "column"])["passed"].mean()
    assert {
        key: pytest.approx(rate.value) for key, rate in result.pass_rates.items()
    } == rates.to_dict()
    assert frame[frame["error"].notna()]["passed"].isna().all()


def test_every_report_has_them(result: Result) -> None:
    console = result.report().splitlines()
    head = next(line for line in console if "polite" in line and "tone" in line).split()
    new = next(line for line in console if line.split()[1:2] == ["new"]).split("%")
    assert head == ["overall", "polite", "pass", "tone", "pass"]
    assert [part.split()[-1] for part in new[:-1]] == ["86", "100"]
    full = result.report(full=True)
    assert "pass at 4 ↑" in full
    assert "pass at good ↑" in full
    data = json.loads(result.report("json"))
    rows = {(row["system"], row["column"]): row for row in data["table"]}
    rate = result.pass_rates["old", "tone"]
    assert {name: rows["old", "tone pass rate"][name] for name in ("mean", "low", "high", "n", "total", "failed")} == {
        "mean": rate.value, "low": rate.low, "high": rate.high, "n": 7, "total": 8, "failed": 1,
    }  # fmt: skip
    assert {c["name"]: c["pass_at"] for c in data["columns"]} == {
        "overall": None, "polite": 4.0, "polite pass rate": None, "tone": 1.5, "tone pass rate": None,
    }  # fmt: skip
    (line,) = [
        row for row in csv.DictReader(StringIO(result.report("csv")))
        if (row["system"], row["column"]) == ("new", "polite pass rate")
    ]  # fmt: skip
    assert (float(line["mean"]), line["mark"]) == (pytest.approx(6 / 7), "same")
    for format, text in (
        ("markdown", "polite, pass at 4 ↑ |"),
        ("latex", "pass at 4"),
        ("html", "at good"),
    ):
        assert text in result.report(format, full=True)
    assert '<em class="fail">below 4</em>' in result.report("html")


def test_the_finding_of_one_system_has_its_rate(tmp_path: Path) -> None:
    result = run(tmp_path, POLITE, rows=[row for row in ROWS if row["system"] == "new"])
    headline = result.report().splitlines()[0]
    assert has_line(headline, "polite: 4.29 of 5 [3.39, 4.74]", "86% pass [37, 98]", "7 items")


def test_the_finding_of_pass_or_fail_is_the_share_that_passes() -> None:
    rows = [{"item": f"i{n}", "output": f"Text {n}."} for n in range(8)]
    model = ScriptedProvider(lambda request: "fail" if "Text 1." in str(request) else "pass")
    sentence = "solved: Is it solved? (pass/fail)"
    result = judge.evaluate(rows, [sentence], model=model, weighting="single", cache=False)
    assert result.report().startswith("solved: 88% pass [")


def test_a_rate_that_repeats_the_mean_is_not_shown(tmp_path: Path) -> None:
    """On a scale of fail and pass, the mean is already the pass rate."""
    solved = POLITE.replace("[1, 5]", "{labels: [fail, pass], values: [0, 1]}").replace(
        "at: 4", "at: pass"
    )
    script = ScriptedProvider(lambda request: "pass" if str(grade(request)) > "{'3" else "fail")
    result = run(tmp_path, solved, model=script)
    assert {key: rate.value for key, rate in result.pass_rates.items()} == {
        key: mean.value for key, mean in result.estimates.items()
    }
    assert "pass rate" not in result.report("csv")
    assert "at pass" not in result.report(full=True)


def test_page_of_an_item_marks_scores_below_the_minimum(result: Result) -> None:
    page = plugins.write(plugins.document(item_of(result, "i1")), "console", full=True)
    words_by_line = [line.split() for line in page.splitlines()]
    # A line of one word is the heading of a column's prompt.
    lines = [words for words in words_by_line if words[:1] in (["polite"], ["tone"]) and words[1:]]
    assert lines == [
        ["polite", "5"],
        ["tone", "good"],
        ["polite", "2", "(below", "4)"],
        ["tone", "fair", "(below", "good)"],
    ]


def test_it_is_stored_and_loaded_from_runs_that_lack_it(tmp_path: Path) -> None:
    run(tmp_path, POLITE, out=tmp_path / "run")
    content = json.loads((tmp_path / "run" / "run.json").read_bytes())
    assert content["columns"][0]["pass_at"] == 4.0
    run(tmp_path, POLITE.replace("pass_at: 4\n", ""), out=tmp_path / "plain")
    path = tmp_path / "plain" / "run.json"
    content = json.loads(path.read_bytes())
    del content["columns"][0]["pass_at"]
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    assert load(tmp_path / "plain").pass_rates == {}


def test_a_different_pass_mark_sends_no_requests(tmp_path: Path) -> None:
    run(tmp_path, POLITE, record=tmp_path / "calls.jsonl")
    other = POLITE.replace("pass_at: 4", "threshold: 0.4")
    result = run(tmp_path, other, model="script", replay=tmp_path / "calls.jsonl")
    assert result.pass_rates["old", "polite"].value == pytest.approx(3 / 7)  # 2.6 and higher pass


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run. People rate texts of even items one point higher."""
    folder = tmp_path_factory.mktemp("rated")
    rows = [
        {
            "item": f"i{n}",
            "system": system,
            "output": f"{system}, grade {grade}",
            "human": {"polite": min(5, grade + (n + 1) % 2)},
        }
        for system in GRADES
        for n, grade in enumerate([5, 4, 3, 2, 1, 3, 5, 3, 4, 2, 3, 5])
    ]
    run(folder, POLITE, rows=rows, calibrate=True, out=folder / "run")
    return folder / "run"


def test_validate_shows_which_texts_pass_by_judge_and_people(rated: Path) -> None:
    """10 texts pass by judge and people; the even 3s (items 2 and 10) pass only by people."""
    validation = judge.validate(rated)
    (row,) = validation.rated[0].judges
    assert row.passes is not None
    counts = row.passes.both, row.passes.judge_only, row.passes.people_only, row.passes.neither
    assert counts == (10, 0, 4, 10)
    console = validation.report()
    assert re.search(r"polite ≥ 4 +83% +71% +100% +0\.68 +24\n", console)
    full = validation.report(full=True)
    assert re.search(r"people pass +10 +4\npeople fail +0 +10\n", full)
    data = json.loads(validation.report("json"))
    assert data["criteria"][0]["rows"][0]["passes"]["people_only"] == 4
    rates = {
        row["coefficient"]: float(row["value"])
        for row in csv.DictReader(StringIO(validation.report("csv")))
        if row["coefficient"] in ("accuracy", "true_positive_rate", "true_negative_rate")
    }
    assert rates == pytest.approx(
        {"accuracy": 20 / 24, "true_positive_rate": 10 / 14, "true_negative_rate": 1}
    )
    for format in ("markdown", "latex", "html"):
        assert "people pass" in validation.report(format, full=True)


def test_the_finding_counts_texts_where_judge_and_people_differ_on_passing(rated: Path) -> None:
    report = " ".join(judge.validate(rated).report().split())
    assert has_line(report, "polite", "script passes 0 of the 10", "fails 4 of the 14")


@pytest.mark.parametrize(
    ("counts", "facts"),
    [
        (
            (0, 2, 0, 5),
            ("polite", "script passes 2 of the 7 texts", "people fail", "pass none"),
        ),
        ((4, 0, 1, 0), ("polite", "script fails 1 of the 5 texts", "people pass")),
    ],
)
def test_the_finding_counts_no_part_of_no_texts(
    rated: Path, counts: tuple[int, int, int, int], facts: tuple[str, ...]
) -> None:
    (criterion,) = judge.validate(rated).rated
    row = criterion.judges[0]
    assert row.passes is not None
    both, judge_only, people_only, neither = counts
    passes = replace(
        row.passes,
        both=both,
        judge_only=judge_only,
        people_only=people_only,
        neither=neither,
    )
    changed = replace(criterion, judges=(replace(row, passes=passes),))
    assert lines_hold(pass_fail_sentences([changed]), [facts])


def test_the_report_of_a_run_compares_verdicts_and_keeps_them(rated: Path) -> None:
    stored = load(rated)
    assert "people pass" in stored.report(full=True)
    frame = stored.estimates_frame()
    agreement = frame[frame["kind"] == "pass_agreement"].set_index("measure")["value"]
    assert agreement["true_positive_rate"] == pytest.approx(10 / 14)
    people = frame[frame["kind"] == "rated_pass_rate"].set_index("system")["value"]
    assert people["new"] == pytest.approx(7 / 12)


def test_the_corrected_pass_rate_is_beside_the_judges(rated: Path) -> None:
    """If every text is rated, the corrected rate is people's rate."""
    console = judge.validate(rated, calibrate=True).report()
    assert re.search(r"new +42% +58% +58% +12 +0 +0\.00 +12\n", console)


def test_two_runs_are_compared_if_the_same_values_pass(tmp_path: Path) -> None:
    before = run(tmp_path, POLITE, TONE)
    worse = [{**row, "output": str(row["output"]).replace("5", "3")} for row in ROWS]
    after = run(tmp_path, POLITE, TONE.replace("good\n", "fair\n"), rows=worse)
    compared = judge.compare(before, after)
    rows = {(row.column, row.system): row for row in compared.runs.means}
    row = rows["polite pass rate", "new"]
    assert (row.before, row.after, row.up, row.same, row.down) == (
        pytest.approx(6 / 7),
        pytest.approx(3 / 7),
        0,
        4,
        3,
    )
    ((column, reason),) = compared.runs.incomparable
    assert column == "tone pass rate"
    assert has_line(reason, "pass_at", "1.5", "0.5")
    assert "43%" in compared.report(full=True)


def test_a_panels_mean_passes_or_not(tmp_path: Path) -> None:
    low = ScriptedProvider(
        lambda request: {"3": 1.0} if "grade 5" in str(request.messages) else grade(request),
        model="b",
    )
    result = run(tmp_path, POLITE, model=[ScriptedProvider(grade, model="a"), low])
    rates = {
        name: rate.value for (system, name), rate in result.pass_rates.items() if system == "new"
    }
    assert rates == {
        "polite": 6 / 7,
        "polite/a": 6 / 7,
        "polite/b": 3 / 7,
    }  # the mean of 5 and 3 is 4
    assert [line for line in result.report(full=True).splitlines() if "pass at" in line]
