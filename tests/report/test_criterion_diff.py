"""The report of two wordings of a criterion: golden files, the finding, and hostile text."""

from __future__ import annotations

import json
from collections.abc import Callable
from csv import DictReader
from dataclasses import replace
from typing import Any

import pytest

from judge.commands.criteria_diff.record import (
    Agreement,
    CriterionDiff,
    FlipCount,
    Judged,
    PromptDifference,
    Prompts,
)
from judge.core import plugins
from judge.core.records import Criterion, Estimate, Scale
from judge.results.comparison import Change, RunComparison
from judge.results.result import Result
from judge.stats.run_differences import compare_runs
from judge.table import Table
from tests.factories import has_line, lines_hold

FORMATS = ("console", "markdown", "html", "latex", "csv", "json")
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


def shift(
    value: float, low: float | None, high: float | None, p: float | None = None, n: int = 12
) -> Estimate:
    return Estimate("difference", value, low, high, n, HOW, p)


def agreed(level: Any, difference: Estimate | None, n: int = 12) -> Agreement:
    sides = [Estimate("spearman", value, None, None, n, HOW) for value in (0.4123, 0.5334)]
    return Agreement(level, sides[0], sides[1], difference)


@pytest.fixture
def criterion_diff(result: Result) -> CriterionDiff:
    """Two criteria that differ in every shown property, judged on the texts of the fixed result."""
    table = result.table
    columns = tuple(c for c in table.columns if c.name == "coherence")
    before = Table(
        table.samples, columns, tuple(s for s in table.scores if s.column == "coherence")
    )
    after = replace(
        before, scores=tuple(replace(s, value=max(1.0, s.value - 0.5)) for s in before.scores)
    )
    one, other = (replace(result, table=side) for side in (before, after))
    runs = compare_runs(before, after, n_resamples=200)
    judged = Judged(
        judgments=(9, 9),
        failed=(1, 2),
        comparison=RunComparison(
            ("before", "after"), one, other, runs, notes=("A note with \x1b[31m in it.",)
        ),
        flips=(FlipCount("likeliest label", 5, 8), FlipCount("order of systems", 0, 0)),
        rating="一貫性",
        agreement=(
            agreed("within-items", shift(0.1211, 0.0312, 0.2345, 0.0034)),
            agreed("all-texts", shift(0.01, -0.2, 0.3), n=36),
            agreed("systems", None, n=3),
        ),
    )
    criterion = Criterion("a", "", Scale.integers(1, 5), path="a.jinja")
    changes = (
        Change("digest", "3f2a91", "88ab12"),
        Change("description", "<old> | `text`", "新しい\x1b[31m説明"),
    )
    prompts = Prompts(
        9,
        3,
        9,
        3,
        (PromptDifference(8, LINES), PromptDifference(1, LINES[:5])),
        (612.4, 655.1),
        (0.1, 1.25),
        "a list",
    )
    names = ("a.jinja", "b|<b>.jinja")
    criteria = (criterion, replace(criterion, path="b|<b>.jinja"))
    return CriterionDiff(names, criteria, changes, LINES, prompts, judged, ("A note.",))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("prompt_diff.txt", {}),
        ("prompt_diff.full.txt", {"full": True}),
        ("prompt_diff.md", {"format": "markdown"}),
    ],
)
def test_golden(
    criterion_diff: CriterionDiff,
    golden: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    options: dict[str, Any],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    golden(name, criterion_diff.report(**options))


def test_the_summary_fits_a_terminal(
    criterion_diff: CriterionDiff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(criterion_diff.report().splitlines()) <= 20


def test_every_format_escapes_terminal_codes(criterion_diff: CriterionDiff) -> None:
    for format in FORMATS:
        assert (
            not {"\x1b", "\u202e"} & set(criterion_diff.report(format, full=True))
            or format == "json"
        )
    assert "\x1b" not in criterion_diff.report("json")
    assert "\\u202e" in criterion_diff.report(full=True)
    assert "\x1b[32m" in criterion_diff.report(full=True, colour=True)
    assert "<b>say</b>" not in criterion_diff.report("html") + criterion_diff._repr_html_()


def test_a_fence_in_a_prompt_does_not_end_the_markdowns(criterion_diff: CriterionDiff) -> None:
    page = criterion_diff.report("markdown").split("\n")
    fences = [row for row in page if row.startswith("````")]
    assert len(fences) == 6  # the files and two prompts, each with an opening and a closing tag
    assert "```at once```" in " ".join(page)


def test_json_is_strict_and_complete(criterion_diff: CriterionDiff) -> None:
    document = json.loads(criterion_diff.report("json"), parse_constant=pytest.fail)
    assert document["schema"] == "judge.criteria.diff/1"
    assert document["finding"] == finding(criterion_diff)
    assert document["before"] == {
        "name": "a.jinja",
        "path": "a.jinja",
        "digest": criterion_diff.criteria[0].digest,
    }
    assert document["prompts"]["differences"][0]["texts"] == 8
    assert document["judged"]["agreement"][0]["significant"] is True
    assert document["judged"]["flips"][0] == {"name": "likeliest label", "flipped": 5, "total": 8}
    assert document["judged"]["comparison"]["schema"] == "judge.compare/1"


def test_csv_has_a_line_per_quantity(criterion_diff: CriterionDiff) -> None:
    lines = list(DictReader(criterion_diff.report("csv").splitlines()))
    assert [line["quantity"] for line in lines][:3] == [
        "agreement with people",
        "mean score",
        "failed judgments",
    ]
    assert (lines[0]["change"], lines[0]["p"], lines[2]["after"]) == ("0.1211", ".003", "2 of 9")


# The finding


def finding(criterion_diff: CriterionDiff, **judged: Any) -> list[str]:
    if judged:
        assert criterion_diff.judged is not None
        criterion_diff = replace(criterion_diff, judged=replace(criterion_diff.judged, **judged))
    return list(plugins.document(criterion_diff).finding)


NO_CHANGE = "No significant change in agreement"


@pytest.mark.parametrize(
    ("difference", "facts"),
    [
        (
            shift(0.1, 0.02, 0.2, 0.004),
            ("agrees better", "p = 0.004", "+0.100 [0.020, 0.200]", "12 items"),
        ),
        (
            shift(-0.1, -0.2, -0.02, 0.0004),
            ("agrees worse", "p < 0.001", "−0.100 [−0.200, −0.020]", "12 items"),
        ),
        # The test decides, not the interval: (1.96 + .84)² · (.28 / 3.92)² · 12 / .1² = 48.07
        (
            shift(0.1, -0.04, 0.24, 0.1),
            (NO_CHANGE, "p = 0.100", "51 items", "+0.100 [−0.040, 0.240]", "12 items"),
        ),
        (
            shift(0.1, 0.01, 0.1, 0.1),
            (NO_CHANGE, "p = 0.100)", "+0.100 [0.010, 0.100]", "12 items"),
        ),
        (
            shift(0.001, -0.4, 0.4, 0.9),
            (NO_CHANGE, "p = 0.900", "3,900,000 items", "+0.001 [−0.400, 0.400]", "12 items"),
        ),
        (
            shift(0.1, -0.04, 0.24),
            (NO_CHANGE, "51 items", "+0.100 [−0.040, 0.240]", "12 items"),
        ),
    ],
)
def test_the_verdict_on_agreement(
    criterion_diff: CriterionDiff, difference: Estimate, facts: tuple[str, ...]
) -> None:
    sentence, *_ = finding(criterion_diff, agreement=(agreed("within-items", difference),))
    assert has_line(sentence, *facts)


@pytest.mark.parametrize(("low", "significant"), [(0.0004, False), (0.0006, True), (-0.1, False)])
def test_over_all_texts_the_rounded_interval_decides(low: float, significant: bool) -> None:
    assert agreed("all-texts", shift(0.1, low, 0.2)).is_significant is significant


def test_a_change_in_scores_is_decided_by_the_test(criterion_diff: CriterionDiff) -> None:
    assert criterion_diff.judged is not None
    assert criterion_diff.judged.comparison is not None
    runs = criterion_diff.judged.comparison.runs
    row = replace(runs.means[0], estimate=shift(-0.87, -1.73, -0.17, 0.04, n=6), adjusted=0.08)
    comparison = replace(
        criterion_diff.judged.comparison, runs=replace(runs, means=(row, *runs.means[1:]))
    )
    (sentence,) = finding(criterion_diff, agreement=(), comparison=comparison)
    assert has_line(sentence, "No significant change in scores", "p = 0.080", "12 items")
    assert has_line(sentence, "−0.87 [−1.73, −0.17]", "6 items")


def test_scores_come_first_without_agreement(criterion_diff: CriterionDiff) -> None:
    assert finding(criterion_diff, agreement=(agreed("within-items", None),))[0].startswith(
        "No significant change in scores"
    )
    assert finding(criterion_diff, agreement=(), no_agreement="No ratings")[1:] == ["No ratings."]


def test_prompts_tokens_and_cost(criterion_diff: CriterionDiff) -> None:
    assert criterion_diff.prompts is not None
    prompts = criterion_diff.prompts

    def diff_with_prompts(**fields: Any) -> CriterionDiff:
        return replace(criterion_diff, judged=None, prompts=replace(prompts, **fields))

    def rows(diff: CriterionDiff) -> list[list[str]]:
        return [[cell.text for cell in row[:4]] for row in plugins.document(diff).summary[0].rows]

    assert rows(diff_with_prompts()) == [
        ["tokens per prompt", "612", "655", "+7.0%"],
        ["cost of 1,000 judgments", "$0.1", "$1.25", ""],
    ]
    assert rows(diff_with_prompts(tokens=(100.0, 100.01), cost=None)) == [
        ["tokens per prompt", "100", "100", "0.0%"]
    ]
    report = diff_with_prompts(cost=None, price_source="no list").report()
    assert has_line(report, "cost is unknown", "no list")
    assert lines_hold(finding(diff_with_prompts()), [("prompts differ", "9 of 9 texts")])
    one_differs = diff_with_prompts(differ=1, items_differ=1)
    assert lines_hold(finding(one_differs), [("prompts differ", "1 of 9 texts")])
    none_differs = diff_with_prompts(differ=0)
    assert lines_hold(finding(none_differs), [("prompts are the same", "9 texts")])
    assert "それは本当" in diff_with_prompts().report()


def test_diff_report_without_data(criterion_diff: CriterionDiff) -> None:
    bare = replace(criterion_diff, judged=None, prompts=None)
    assert finding(bare) == ["The two criteria differ"]
    assert "```at once```" in bare.report()
    equal = replace(bare, diff=(), changes=())
    digest = bare.criteria[0].digest[:6]
    assert lines_hold(finding(equal), [("same text", digest)])
    assert has_line(repr(bare), "a.jinja", "b|<b>.jinja", "differ")
