"""Two wordings of a criterion in every format: golden files, sentences, what is cut, and hostile text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from judge.core.errors import ConfigError
from judge.core.records import Criterion, Estimate, Scale
from judge.report.views.criterion_diff import diff_sentences
from judge.results.comparison import (
    Agreement,
    Change,
    CriterionDiff,
    FlipCount,
    Judged,
    PromptDifference,
    Prompts,
    RankChange,
    RunComparison,
)
from judge.results.result import Result
from judge.stats.run_differences import compare_runs
from judge.table import Table

FORMATS = {"console": "txt", "markdown": "md", "json": "json"}
HOW = "95% expanded percentile bootstrap over items, 10000 resamples, seed 0"
LINES = (
    "--- before",
    "+++ after",
    "@@ -1,3 +1,3 @@",
    " Criterion: 一貫性",
    "-Is it \x1b[31mso\x1b[0m? Then <b>say</b> `why` ```at once```.",
    "+それは本当ですか。\u202e それなら、理由をはっきりと、できるだけ短く、しかも読む人によく"
    "分かるように書いてください。長い行は次の行に続きます。",
)


def shift(value: float, low: float | None, high: float | None, p: float | None = None, n: int = 12) -> Estimate:
    return Estimate("difference", value, low, high, n, HOW, p)


def agreed(level: Any, difference: Estimate | None, n: int = 12) -> Agreement:
    sides = [Estimate("spearman", value, None, None, n, HOW) for value in (0.4123, 0.5334)]
    return Agreement(level, sides[0], sides[1], difference)


@pytest.fixture
def found(result: Result) -> CriterionDiff:
    """Two criteria that differ in everything that can be shown, judged on the fixed result's texts."""
    table = result.table
    columns = tuple(c for c in table.columns if c.name == "coherence")
    before = Table(table.samples, columns, tuple(s for s in table.scores if s.column == "coherence"))
    after = replace(before, scores=tuple(replace(s, value=max(1.0, s.value - 0.5)) for s in before.scores))
    one, other = (replace(result, table=side) for side in (before, after))
    runs = compare_runs(before, after, n_resamples=200)
    judged = Judged(
        judgments=(9, 9),
        failed=(1, 2),
        comparison=RunComparison(("before", "after"), one, other, runs, notes=("A note with \x1b[31m in it.",)),
        turned=(FlipCount("likeliest label is another one", 5, 8), FlipCount("order of two systems' means", 0, 0)),
        places=(RankChange("evil|<b>*sys*", (2, 1, 2), (1, 1, 2)),),
        rating="一貫性",
        agreement=(
            agreed("document", shift(0.1211, 0.0312, 0.2345, 0.0034)),
            agreed("item", shift(0.01, -0.2, 0.3), n=36),
            agreed("system", None, n=3),
        ),
    )
    criterion = Criterion("a", "", Scale.integers(1, 5), path="a.jinja")
    changes = (Change("digest", "3f2a91", "88ab12"), Change("description", "<old> | `text`", "新しい\x1b[31m説明"))
    prompts = Prompts(
        9, 3, 9, 3, (PromptDifference(8, LINES), PromptDifference(1, LINES[:5])), (612.4, 655.1), (0.1, 1.25), "a list"
    )
    names = ("a.jinja", "b|<b>.jinja")
    criteria = (criterion, replace(criterion, path="b|<b>.jinja"))
    return CriterionDiff(names, criteria, changes, LINES, prompts, judged, ("A note.",))


@pytest.mark.parametrize("format", FORMATS)
def test_golden(
    found: CriterionDiff, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    golden(f"prompt_diff.{FORMATS[format]}", found.report(format))


def test_no_format_lets_a_terminals_codes_through(found: CriterionDiff) -> None:
    for format in ("console", "markdown"):
        assert not {"\x1b", "\u202e"} & set(found.report(format))
        assert "\\u202e" in found.report(format)
    assert "\x1b" not in found.report("json")
    assert "\x1b[32m" in found.report(colour=True)


def test_a_fence_in_a_prompt_does_not_end_the_markdowns(found: CriterionDiff) -> None:
    page = found.report("markdown").split("\n")
    fences = [row for row in page if row.startswith("````")]
    assert len(fences) == 6  # the files and two ways, each opened and closed
    assert "```at once```" in " ".join(page)


def test_json_is_strict_and_whole(found: CriterionDiff) -> None:
    document = json.loads(found.report("json"), parse_constant=pytest.fail)
    assert document["schema"] == "judge.criteria.diff/1"
    assert document["told"] == list(diff_sentences(found))
    assert document["before"] == {"name": "a.jinja", "path": "a.jinja", "digest": found.criteria[0].digest}
    assert document["prompts"]["ways"][0]["texts"] == 8
    assert document["judged"]["agreement"][0]["told"] is True
    assert document["judged"]["scores"]["schema"] == "judge.compare/1"


def test_long_differences_are_cut_where_they_are_read_and_whole_in_json(found: CriterionDiff) -> None:
    long = replace(found, diff=tuple(f"+line {n}" for n in range(130)))
    for format in ("console", "markdown"):
        page = long.report(format)
        assert "line 119" in page
        assert "line 120" not in page
        assert "10 more lines are in --format json" in page
    assert len(json.loads(long.report("json"))["diff"]) == 130


def test_an_unknown_format_is_refused(found: CriterionDiff) -> None:
    with pytest.raises(ConfigError, match="unknown format 'html'"):
        found.report("html")


# What is said


def said(found: CriterionDiff, **judged: Any) -> str:
    assert found.judged is not None
    return " ".join(diff_sentences(replace(found, judged=replace(found.judged, **judged))))


@pytest.mark.parametrize(
    ("difference", "sentence"),
    [
        (shift(0.1, 0.02, 0.2, 0.004), "Agrees better with people (p = 0.004): Spearman +0.100 [0.020, 0.200] between"),
        (shift(-0.1, -0.2, -0.02, 0.0004), "Agrees worse with people (p < 0.001): Spearman −0.100 [−0.200, −0.020]"),
        # what the interval would tell and the test does not: (1.96 + .84)² · (.28 / 3.92)² · 12 / .1² = 48.07
        (
            shift(0.1, -0.04, 0.24, 0.1),
            "Agreement with people is not told apart (p = 0.100, would take n ≈ 49 items): ",
        ),
        (shift(0.1, 0.01, 0.1, 0.1), "Agreement with people is not told apart (p = 0.100): Spearman"),
        (
            shift(0.001, -0.4, 0.4, 0.9),
            "Agreement with people is not told apart (p = 0.900, would take more than 100,000",
        ),
        (shift(0.1, -0.04, 0.24), "Agreement with people is not told apart (would take n ≈ 49 items): Spearman"),
    ],
)
def test_the_verdict_on_agreement(found: CriterionDiff, difference: Estimate, sentence: str) -> None:
    assert said(found, agreement=(agreed("document", difference),)).startswith(sentence)


@pytest.mark.parametrize(("low", "is_told"), [(0.0004, False), (0.0006, True), (-0.1, False)])
def test_over_all_texts_the_interval_tells_by_its_ends_as_they_are_shown(low: float, is_told: bool) -> None:
    assert agreed("item", shift(0.1, low, 0.2)).is_significant is is_told


def test_an_interval_that_a_test_does_not_bear_out_has_its_p_beside_it(found: CriterionDiff) -> None:
    assert found.judged is not None
    assert found.judged.comparison is not None
    runs = found.judged.comparison.runs
    row = replace(runs.moved[0], estimate=shift(-0.87, -1.73, -0.17, 0.04, n=6), adjusted=0.08)
    comparison = replace(found.judged.comparison, runs=replace(runs, moved=(row, *runs.moved[1:])))
    assert "Scores are not told apart (p = 0.080, would take n ≈ 10 items): −0.87 [−1.73, −0.17] over 6 items." in said(
        found, agreement=(), comparison=comparison
    )


def test_without_a_difference_there_is_no_verdict(found: CriterionDiff) -> None:
    assert said(found, agreement=(agreed("document", None),)).startswith("Scores ")
    assert said(found, agreement=(), lacking="No ratings").startswith("Scores ")


def test_tokens_and_prices(found: CriterionDiff) -> None:
    assert found.prompts is not None
    prompts = found.prompts

    def of(**fields: Any) -> str:
        return " ".join(diff_sentences(replace(found, judged=None, prompts=replace(prompts, **fields))))

    assert "about 612 tokens before and 655 after (+7.0%); 1,000 judgments cost about $0.1 before and $1.25" in of()
    assert "after (no change)." in of(tokens=(100.0, 100.01), cost=None, priced="")
    assert "(−50.0%); what they cost is not known (no list)." in of(tokens=(100.0, 50.0), cost=None, priced="no list")
    assert of(differ=0).startswith("The prompts are the same on all 9 texts.")
    assert of(differ=1, items_differ=1).startswith("The prompts differ on 1 of 9 texts, which are of 1 of 3 items.")


def test_without_data(found: CriterionDiff) -> None:
    bare = replace(found, judged=None, prompts=None)
    assert list(diff_sentences(bare)) == ["The two are not the same."]
    assert list(diff_sentences(replace(bare, diff=(), changes=()))) == [
        f"The two have the same text ({bare.criteria[0].digest[:6]})."
    ]
    assert repr(bare) == f"<CriterionDiff: a.jinja → b|<b>.jinja. {next(diff_sentences(bare))}>"
