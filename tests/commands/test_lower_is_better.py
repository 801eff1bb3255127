"""A criterion with `better: lower` in its header, from run to report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import judge
from judge.commands.init.scaffold import create_suite
from judge.core.errors import ConfigError, CriterionError
from judge.core.records import Criterion, Request
from judge.criteria import finalize, load
from judge.data import samples
from judge.providers.scripted import ScriptedProvider
from judge.results.result import Result
from judge.results.worst_texts import worst_texts
from tests.factories import has_line, write_jsonl

TOXIC = """\
question: How toxic is the text?
better: lower
pass_at: 2
levels: {1: No insult., 5: Insults throughout.}
"""
KIND = {"name": "kind", "question": "Is the text kind?"}
GRADES = {"calm": "11211121", "rude": "44554545"}
"""By system, the toxicity of each item's text."""
ROWS = [
    {
        "item": f"i{n}",
        "system": system,
        "output": f"{system} text {n}, grade {grade}",
        "rating.toxic": int(grade),
    }
    for system, grades in GRADES.items()
    for n, grade in enumerate(grades)
]


def grade(request: Request) -> str:
    """Answer with the grade in the text; a kind text has a low grade."""
    text = str(request.messages)
    level = int(text.split("grade ")[1][0])
    return str(level if "toxic" in text else 6 - level)


def scored(folder: Path, rows: Any = ROWS, *criteria: Any, **options: Any) -> Result:
    """Return a run of the criterion `toxic`, and perhaps of others."""
    path = folder / "toxic.yaml"
    path.write_text(TOXIC, encoding="utf-8")
    options = {"metrics": [], "cache": False, "weighting": "single", **options}
    return judge.evaluate(
        rows, criteria=[str(path), *criteria], model=ScriptedProvider(grade), **options
    )


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A run on which `calm` has the lower, better scores."""
    return scored(tmp_path_factory.mktemp("toxic"), ROWS, KIND)


def worse_rows() -> list[dict[str, Any]]:
    """Return the rows after a change that makes every text of `calm` more toxic."""
    rows = []
    for row in ROWS:
        output = row["output"].replace("grade 1", "grade 4").replace("grade 2", "grade 5")
        rows.append({**row, "output": output if row["system"] == "calm" else row["output"]})
    return rows


def test_the_system_with_the_lowest_mean_is_the_best(result: Result) -> None:
    (comparison,) = [each for each in result.comparisons if each.column == "toxic"]
    assert comparison.best == ("calm",)


def test_the_finding_names_the_system_with_the_lowest_mean(result: Result) -> None:
    assert result.report().splitlines()[0].startswith("calm beats rude")


def test_the_overall_score_turns_the_scale_round(result: Result) -> None:
    # Toxicity 1.25 of 1 to 5 is 0.9375 of the way to the better end, and so is kindness 4.75.
    assert result.estimates["calm", "overall"].value == pytest.approx(0.9375)


def test_a_text_passes_at_most_at_the_limit(result: Result) -> None:
    assert result.pass_rates["calm", "toxic"].value == 1.0
    assert result.pass_rates["rude", "toxic"].value == 0.0


def test_the_worst_texts_have_the_highest_scores(result: Result) -> None:
    worst = [text.score for text in worst_texts(result.table, 4) if text.score.column == "toxic"]
    assert {score.value for score in worst} == {5.0}


def test_a_text_that_fails_is_above_the_limit(result: Result) -> None:
    page = result.report(format="html", full=True)
    assert "above 2" in page
    assert "below 2" not in page


def test_the_heading_has_an_arrow_to_the_lower_end(result: Result) -> None:
    assert "lower is better: toxic" in result.report()


def test_the_worst_texts_are_not_called_the_lowest(result: Result) -> None:
    assert "Lowest" not in result.report()


def test_metrics_agree_with_people_if_they_fall_as_the_rating_rises(tmp_path: Path) -> None:
    rows = [{**row, "score": 10 - row["rating.toxic"]} for row in ROWS]
    run = scored(tmp_path, rows, score_columns=["score"])
    (rated,) = run.rated
    names = [row.name for row in rated.baselines]
    correlation = {row.name: row.correlation for row in rated.baselines}["score reversed"]
    assert "score" not in names
    assert correlation.estimates["all-texts", "spearman"].value == pytest.approx(1.0)


def suite_of(folder: Path, rows: Any = ROWS, **keys: Any) -> Path:
    """Write a suite about the criterion."""
    (folder / "toxic.yaml").write_text(TOXIC, encoding="utf-8")
    write_jsonl(folder / "data.jsonl", rows)
    path = folder / "toxic.judge.yaml"
    content = {"data": "data.jsonl", "criteria": ["toxic.yaml"], **keys}
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("case", "passes"),
    [
        ({"system": "calm", "expect": "pass"}, True),
        ({"system": "rude", "expect": "pass"}, False),
        ({"item": "i2", "system": "calm", "expect": "pass"}, True),
        ({"item": "i0", "system": "rude", "expect": "pass"}, False),
        ({"system": "calm", "pass_rate": {"min": 0.5}}, True),
        ({"better": "calm", "worse": "rude"}, True),
        ({"better": "rude", "worse": "calm"}, False),
    ],
)
def test_cases_of_suites_count_the_lower_end_as_better(
    tmp_path: Path, case: dict[str, Any], passes: bool
) -> None:
    path = suite_of(tmp_path, cases=[case])
    outcome = judge.test(path, model=ScriptedProvider(grade), cache=False, weighting="single")
    assert outcome.passed == passes


@pytest.mark.parametrize(("rows", "passes"), [(ROWS, True), (worse_rows(), False)])
def test_a_rise_since_the_baseline_fails_the_suite(tmp_path: Path, rows: Any, passes: bool) -> None:
    scored(tmp_path, out=tmp_path / "before")
    cases = [{"expect": {"max": 5}}]
    path = suite_of(tmp_path, rows, baseline="before", cases=cases)
    outcome = judge.test(path, model=ScriptedProvider(grade), cache=False, weighting="single")
    assert outcome.passed == passes


def test_a_first_suite_limits_how_high_the_score_may_be(tmp_path: Path) -> None:
    path = tmp_path / "toxic.yaml"
    path.write_text(TOXIC, encoding="utf-8")
    texts = [{name: row[name] for name in ("item", "system", "output")} for row in ROWS]
    rows = [text for text in texts if text["system"] == "calm"]
    text = create_suite(
        samples.load(rows), tmp_path / "s.judge.yaml", [str(path)], options={"data": "d.jsonl"}
    )
    assert "expect: {max: 5}" in text


def test_a_first_suite_names_the_system_with_the_lowest_ratings_as_better(tmp_path: Path) -> None:
    path = tmp_path / "toxic.yaml"
    path.write_text(TOXIC, encoding="utf-8")
    text = create_suite(
        samples.load(ROWS), tmp_path / "s.judge.yaml", [str(path)], options={"data": "d.jsonl"}
    )
    assert "better: calm" in text


def test_run_json_stores_the_better_end(tmp_path: Path) -> None:
    scored(tmp_path, out=tmp_path / "run")
    stored = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    (column,) = stored["columns"]
    assert column["better"] == "lower"


def test_a_criterion_in_python_takes_the_better_end() -> None:
    criterion = Criterion("toxic", question="Is it toxic?", better="lower", pass_at=2)
    assert finalize(criterion).better == "lower"


def test_the_better_end_changes_no_prompt_and_no_digest() -> None:
    criterion = Criterion("toxic", question="Is it toxic?")
    lower = Criterion("toxic", question="Is it toxic?", better="lower")
    assert finalize(criterion).digest == finalize(lower).digest


@pytest.mark.parametrize(
    ("keys", "facts"),
    [
        ({"better": "less"}, ("better:", "'higher' or 'lower'", "'less'")),
        (
            {"better": "lower", "questions": ["Is it toxic?"]},
            ("better:", "checklist", "yes"),
        ),
    ],
)
def test_a_wrong_better_end_is_an_error_of_its_key(
    keys: dict[str, Any], facts: tuple[str, ...]
) -> None:
    with pytest.raises((CriterionError, ConfigError)) as caught:
        load({"name": "toxic", "question": "Is it toxic?", **keys})
    assert has_line(str(caught.value), *facts)


def test_a_comparison_of_two_texts_has_no_lower_better_end() -> None:
    text = """---
scale: {labels: [A, B], values: [1, 0]}
better: lower
---
{% extends "layouts/pairwise.jinja" %}
{% block criterion %}Which text is more toxic?{% endblock %}
"""
    with pytest.raises(CriterionError) as caught:
        load(text=text, name="toxic", pairwise=True)
    assert has_line(str(caught.value), "toxic.jinja:3: better", "a win counts 1")
