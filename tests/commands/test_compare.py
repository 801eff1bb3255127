"""compare(): two runs of the same texts, differences in their settings, and refused input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.commands.compare.finding import finding
from judge.core.errors import ConfigError
from judge.providers.scripted import Reply, ScriptedProvider
from judge.results.comparison import Change, RunComparison
from judge.results.run_info import JudgeInfo
from tests.factories import has_line

ROWS = [
    {
        "item": item, "system": s, "source": f"The {item} is to be mended.", "output": f"{s} {item}",
        "references": ["mended"],
    }
    for item in ("bridge", "road", "roof", "gate", "wall", "pond")
    for s in "xy"
]  # fmt: skip
CRITERION = "---\nscale: [1, 5]\n---\nIs it kind?\n{{ output }}\nAnswer with a number.\n"


def graded(x: str, y: str, model: str = "m") -> ScriptedProvider:
    """Return a judge that gives each system's texts a grade; "no" gives none."""

    def script(request: Any) -> Reply:
        text = request.messages[0]["content"]
        return x if any(f"x {row['item']}" in text for row in ROWS) else y

    return ScriptedProvider(script, model=model)


def run(
    provider: ScriptedProvider, rows: Any = ROWS, criteria: Any = ("relevance",), **options: Any
) -> judge.Result:
    return judge.evaluate(
        rows, list(criteria), model=provider, **{"metrics": [], "cache": False, **options}
    )


def change(comparison: RunComparison, name: str) -> Change:
    return next(entry for entry in comparison.changes if entry.what == name)


def test_score_changes_by_system_and_overall() -> None:
    comparison = judge.compare(run(graded("3", "2")), run(graded("4", "2")), n_resamples=200)
    rows = {row.system: (row.before, row.after, row.significant) for row in comparison.runs.means}
    assert rows == {"": (2.5, 3.0, True), "x": (3.0, 4.0, True), "y": (2.0, 2.0, False)}
    assert comparison.names == ("before", "after")
    assert comparison.changes == ()
    assert has_line(repr(comparison), "6 of 12 values differ", "1 of 2 means changed")
    assert "relevance rose by 0.50" in comparison.report()


def test_folders_are_read_and_give_the_names(tmp_path: Path) -> None:
    for name, grade in (("a", "3"), ("b", "4")):
        run(graded(grade, "2"), out=tmp_path / name)
    comparison = judge.compare(tmp_path / "a", str(tmp_path / "b"))
    assert comparison.names == (str(tmp_path / "a"), str(tmp_path / "b"))
    assert comparison.runs.means[1].significant


def test_models_and_options_that_changed_are_named_once_for_all_their_columns() -> None:
    criteria = ["relevance", "coherence"]
    before = run(graded("3", "3", model="small"), criteria=criteria)
    after = run(
        graded("3", "3", model="large"), criteria=criteria, weighting="single", temperature=0.5
    )
    comparison = judge.compare(before, after)
    assert {c.what: (c.before, c.after) for c in comparison.changes} == {
        "model": ("scripted/small", "scripted/large"), "temperature": ("0/1", "0.5"), "weighting": ("auto", "single"),
        "draws": ("20", "–"),
    }  # fmt: skip
    assert {c.columns for c in comparison.changes} == {("relevance", "coherence")}


def test_a_prompt_that_changed_is_shown_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "kind.jinja"
    path.write_text(CRITERION, encoding="utf-8")
    before = run(graded("3", "3"), criteria=[str(path)])
    path.write_text(CRITERION.replace("Is it kind?", "Is it very kind?"), encoding="utf-8")
    prompt_change = change(
        judge.compare(before, run(graded("3", "3"), criteria=[str(path)])), "prompt"
    )
    assert prompt_change.columns == ("kind",)
    assert prompt_change.before != prompt_change.after
    assert [text for text in prompt_change.diff if text[0] in "+-" and text[1] not in "+-"] == [
        "-Is it kind?",
        "+Is it very kind?",
    ]


def test_metrics_data_and_models_behind_a_name(tmp_path: Path) -> None:
    rows = [{**row, "output": row["output"] + " mended"} for row in ROWS]
    for name, data in (("a", ROWS), ("b", rows)):
        (tmp_path / f"{name}.jsonl").write_text(
            "\n".join(map(__import__("json").dumps, data)), encoding="utf-8"
        )
    sides = [
        judge.evaluate(
            tmp_path / f"{name}.jsonl",
            [],
            metrics=["rouge"],
            set={"rouge": {"stem": stem, "types": ["rouge1"]}},
        )
        for name, stem in (("a", True), ("b", False))
    ]
    comparison = judge.compare(*sides)
    assert change(comparison, "data").before.startswith(f"{tmp_path / 'a.jsonl'}, sha256 ")
    assert {c.what for c in comparison.changes} > {"data"}
    assert comparison.runs.edited == 12
    assert has_line(comparison.report(), "Output, source or references differ", "12 texts")
    judges = [{"m": JudgeInfo(served_by=(name,))} for name in ("m-2027-01", "m-2027-05")]
    sides = [
        replace(side, info=replace(side.info, judges=served))
        for side, served in zip(sides, judges, strict=True)
    ]
    assert change(judge.compare(*sides), "model behind m").after == "m-2027-05"


def test_different_tokenizers_are_a_warning() -> None:
    rows = [
        {"item": str(n), "system": "x", "output": "駅が開く", "references": ["駅が閉まる"]}
        for n in range(2)
    ]
    english = [
        *rows,
        {"item": "3", "system": "x", "output": "The station opens", "references": ["It opens"]},
    ]

    def measured(data: Any, tokenizer: str | None) -> judge.Result:
        return judge.evaluate(data, [], metrics=["rouge"], set={"rouge": {"tokenizer": tokenizer}})

    char = measured(rows, "char")
    (note,) = [
        text for text in judge.compare(char, measured(rows, "words")).notes if "first run" in text
    ]
    assert has_line(note, "rouge1, rouge2, rougeL, rougeLsum", "first run", "tokenizer char")
    assert "the second one by words" in note
    fewer, more = measured(rows, None), measured(english, None)
    assert not any("first run" in text for text in judge.compare(fewer, more).notes), (
        "texts of one more script"
    )
    assert judge.compare(char, char).notes == ()


@pytest.mark.parametrize("panel", ["mean", "median", "majority"])
def test_the_column_of_a_panel_repeats_no_change_of_its_judges(panel: str) -> None:
    before, after = (
        run([graded("3", "3", model=name) for name in "ab"], weighting=weighting, panel=panel)  # type: ignore[arg-type]
        for weighting in ("auto", "single")
    )
    changes = judge.compare(before, after).changes
    assert {change.columns for change in changes} == {("relevance/a", "relevance/b")}


def test_warnings_of_one_run_have_its_name() -> None:
    before, after = run(graded("3", "3")), run(graded("3", "3"))
    after = replace(after, info=replace(after.info, status="interrupted"))
    notes = judge.compare(before, after).notes
    assert any(text.startswith("after: This run was interrupted.") for text in notes)
    assert sum("cripted" in text for text in notes) == 1


def test_failures_are_followed() -> None:
    comparison = judge.compare(run(graded("3", "2")), run(graded("3", "no")))
    assert (len(comparison.runs.appeared), len(comparison.runs.vanished)) == (6, 0)
    assert {row.system for row in comparison.runs.appeared} == {"y"}
    assert "6 new failures, 0 gone" in comparison.report()
    assert has_line(comparison.report("markdown"), "No text of y", "both runs", "relevance")


@pytest.mark.parametrize(
    ("rows", "facts"),
    [
        (
            [{**ROWS[0], "item": "other"}],
            ("items", "'bridge', 'road', 'roof', 'gate', 'wall' and 1 more", "'other'"),
        ),
        ([{**row, "system": "z"} for row in ROWS[::2]], ("systems", "'x', 'y'", "'z'")),
    ],
)
def test_runs_of_different_texts_are_refused_with_the_difference(
    rows: Any, facts: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as refused:
        judge.compare(run(graded("3", "2")), run(graded("3", "2"), rows))
    first, _, why = str(refused.value).partition("; ")
    assert has_line(first, "before and after", "no text")
    assert has_line(why, *facts)


def test_refuses_runs_that_cannot_be_compared(tmp_path: Path) -> None:
    before, other = run(graded("3", "2")), run(graded("3", "2"), criteria=["fluency"])
    with pytest.raises(ConfigError, match=r"no column.*\(relevance; fluency\)"):
        judge.compare(before, other)
    ranked = judge.rank(ROWS, model=ScriptedProvider(lambda _: {"A": 0.8, "B": 0.2}), cache=False)
    with pytest.raises(ConfigError, match="after: this run ranks"):
        judge.compare(before, ranked)
    with pytest.raises(ConfigError, match=r"no run\.json"):
        judge.compare(tmp_path, tmp_path)


def test_a_change_is_split_into_the_judge_and_the_system() -> None:
    """The second judge adds a point to half of the texts. One system's new texts score one point more."""
    rows = [
        {"item": f"i{n}", "system": s, "source": "Mend it.", "output": f"text {n} of {s}"}
        for n in range(8)
        for s in "abcx"
    ]
    edited = [
        row | {"output": f"{row['output']}, better"} if row["system"] == "x" else row
        for row in rows
    ]

    def judge_that(shifts: bool) -> ScriptedProvider:
        def script(request: Any) -> Reply:
            text = request.messages[0]["content"]
            odd = any(f"text {n} " in text for n in (1, 3, 5, 7))
            return str(2 + (shifts and odd) + ("better" in text))

        return ScriptedProvider(script, model="large" if shifts else "small")

    comparison = judge.compare(run(judge_that(False), rows), run(judge_that(True), edited))
    (new,) = [row for row in comparison.runs.means if row.system == "x"]
    assert new.judge is not None
    assert new.system_change is not None
    assert (new.estimate.value, new.judge.value, new.system_change.value) == (1.5, 0.5, 1.0)
    assert has_line(finding(comparison), "+1.50", "judge +0.50")
