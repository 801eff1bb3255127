"""The report that compares judges with people: golden files, supported sentences, missing values."""

from __future__ import annotations

import json
import re
from csv import DictReader
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import judge
from judge.commands.validate.record import Validation
from judge.core import plugins
from judge.core.records import Estimate
from judge.report.document import Details
from judge.report.views.agreement_finding import best_judge
from judge.report.views.calibration import calibration_blocks
from judge.report.views.human_agreement import (
    agreement_chart,
    agreement_tiles,
    bias_note,
    criteria_blocks,
    main_agreement,
    people_blocks,
)
from judge.report.views.raters import alt_test_finding
from judge.report.views.summary import schema
from judge.results.loading import load
from judge.results.rated_criteria import flat, read
from judge.results.result import Result
from judge.stats.agreement import MEASURES, Agreement
from judge.stats.alt_test import AltTest, LeftOut
from judge.stats.calibration import Calibrated
from judge.stats.calibration_curve import Bin, Calibration
from judge.stats.coefficients import COEFFICIENTS, LEVELS
from judge.stats.correlation import Correlation
from judge.stats.human_agreement import Rated, Row, Versus
from judge.stats.powered_mean import Powered
from judge.stats.raters import Rater
from judge.stats.system_ratings import RatedAbove, SystemRating
from tests.factories import has_line, lines_hold

HOW = "95% percentile bootstrap over items, 1000 resamples, seed 0"


def estimate(
    value: float, low: float | None, high: float | None, n: int = 12, name: str = "spearman"
) -> Estimate:
    return Estimate(name, value, low, high, n, f"how; {HOW}")


def row(
    name: str, kind: Any, value: float, *, texts: int = 36, levels: Any = LEVELS, why: str = ""
) -> Row:
    """Return a row with values near `value` at these levels. Other levels have a reason for the gap."""
    sizes = {"within-items": 12, "all-texts": texts, "systems": 3}
    estimates = {
        (level, coefficient): estimate(
            value - k / 10, value - 0.2, value + 0.1, sizes[level], coefficient
        )
        for level in levels
        for k, coefficient in enumerate(COEFFICIENTS)
    }
    lacking = {level: why for level in LEVELS if level not in levels}
    return Row(
        name,
        kind,
        f"{name}|signature",
        Correlation(texts if levels or why[:3] == "all" else 0, estimates, lacking),
    )


def agreed(value: float, *measures: Any) -> Agreement:
    return Agreement(
        {name: estimate(value, value - 0.1, value + 0.05, 36, name) for name in measures}
    )


def calibration(bias: float = -0.4) -> Calibration:
    """Return two bins, one without an interval."""
    bins = (
        Bin(1.5, 2.5, 2.25, estimate(2.75, 2.5, 3.0, 30, "people")),
        Bin(4.5, 5.0, 4.75, estimate(4.0, None, None, 6, "people")),
    )
    ends = (bias - 0.25, bias + 0.25)
    return Calibration(
        1.0, 5.0, bins, estimate(0.125, 0.1, 0.2, 36, "error"), estimate(bias, *ends, 36, "bias")
    )


def versus(one: str, other: str, value: float, p: float = 0.0004) -> tuple[Versus, ...]:
    difference = estimate(value, value - 0.1, value + 0.1, name="difference")
    tested = replace(difference, p=p, method="difference", test="Williams' test, t(33) = 4.00")
    return Versus(one, other, "within-items", difference, difference), Versus(
        one, other, "all-texts", difference, tested
    )


def rated(differences: dict[str, Estimate], **fields: Any) -> Rated:
    """Return a criterion with one judge and these differences within items."""
    baselines = tuple(row(name, "baseline", 0.2) for name in differences)
    keyed = {("small-judge", name, "within-items"): one for name, one in differences.items()}
    judges = (row("small-judge", "judge", 0.6),)
    parts = {
        "judges": judges,
        "baselines": baselines,
        "rater": None,
        "no_rater": "",
        "differences": keyed,
        **fields,
    }
    return Rated("coherence", 36, **parts)


BETTER = estimate(0.31, 0.2, 0.4)
ANNA = LeftOut("anna", 36, 12, 0.75, 0.5, 0.0004, True)
CLEO = LeftOut("cleo", 36, 12, 0.5, 0.75, 0.625)
DORA = LeftOut("dora", 8, 4, 0.5, 0.75, None)
RATER = Rater(
    "anna", 36, 3.25, estimate(0.7, 0.5, 0.9, 36), estimate(0.6, 0.4, 0.8, 36, "alpha_interval"), 8, 6,
)  # fmt: skip


@pytest.fixture
def validation() -> Validation:
    nothing = "no text has both a value and a rating"
    baselines = {"bleurt": 0.35, "length": -0.1, "ROUGE-1": 0.2}
    first = Rated(
        "coherence",
        36,
        (
            replace(
                row("panel mean", "judge", 0.6),
                agreement=agreed(0.5, "alpha_interval", "kappa_quadratic", "kappa_linear"),
                calibration=calibration(),
                alt_test=AltTest(
                    0.2, True, 2 / 3, 0.75, (ANNA, replace(ANNA, rater="ben"), CLEO, DORA)
                ),
            ),
            replace(
                row("small-judge", "judge", 0.55),
                agreement=Agreement(lacking={"alpha_interval": "all ratings are equal"}),
                calibration=calibration(0.3),
                alt_test=AltTest(0.2, None, None, None, (), "it needs 3 raters"),
            ),
            row("mute", "judge", 0, levels=(), why=nothing),
        ),
        tuple(row(name, "baseline", value) for name, value in baselines.items()),
        replace(
            row("rater", "rater", 0.7), signature="3 raters", agreement=agreed(0.625, *MEASURES)
        ),
        "",
        {
            ("panel mean", "bleurt", "within-items"): estimate(0.25, -0.05, 0.4, 10),
            ("panel mean", "length", "within-items"): estimate(0.7, 0.5, 0.9),
            ("panel mean", "ROUGE-1", "within-items"): estimate(0.4, 0.3, 0.5),
        },
        versus("small-judge", "panel mean", -0.05),
        raters=(RATER, replace(RATER, rater="ben", alpha=None, repeated=0)),
    )
    pooled = {"levels": ("all-texts",), "why": "one system alone has values and ratings"}
    second = Rated(
        "一貫性|<b>",
        12,
        (),
        (
            row("length", "baseline", 0.1, texts=12, **pooled),
            row("ROUGE-1", "baseline", 0, levels=(), why="all values are equal"),
        ),
        None,
        "the data have one rating per text",
        {},
    )
    return Validation(
        "Agreement with people: council.jsonl, judged by a|b",
        (first, second),
        ("A note with \x1b[31m in it.",),
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("validation.txt", {}),
        ("validation.full.txt", {"full": True}),
        ("validation.md", {"format": "markdown"}),
        ("validation.tex", {"format": "latex", "full": True}),
    ],
)
def test_golden(
    validation: Validation,
    golden: Any,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    options: dict[str, Any],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    golden(name, validation.report(**options))


def test_the_summary_fits_a_terminal(
    validation: Validation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for level in LEVELS:
        lines = replace(validation, level=level).report().splitlines()
        assert len(lines) <= 20
        assert all(len(line) <= 80 for line in lines)


def test_only_a_terminal_gets_escape_codes(validation: Validation) -> None:
    assert "\x1b" not in validation.report()
    assert "\x1b[1m" in validation.report(colour=True)


def sentences(rated: Rated, level: str = "within-items") -> list[str]:
    texts: list[str] = json.loads(Validation("t", (rated,)).report("json"))["criteria"][0][
        "sentences"
    ][level]
    return texts


@pytest.mark.parametrize(
    ("differences", "facts"),
    [
        (
            {"length": estimate(0.5, 0.3, 0.7), "ROUGE-1": BETTER},
            (
                "significantly better",
                "length (+0.50 [0.30, 0.70])",
                "ROUGE-1 (+0.31 [0.20, 0.40])",
            ),
        ),
        (
            {"length": estimate(0.02, -0.03, 0.07), "ROUGE-1": BETTER},
            (
                "no significant difference",
                "length (+0.02 [−0.03, 0.07])",
                "significantly better",
                "ROUGE-1 (+0.31 [0.20, 0.40])",
            ),
        ),
        (
            {"length": estimate(-0.2, -0.3, -0.1), "ROUGE-1": estimate(-0.1, -0.2, 0)},
            (
                "significantly worse",
                "length (−0.20 [−0.30, −0.10])",
                "no significant difference",
                "ROUGE-1 (−0.10 [−0.20, 0.00])",
            ),
        ),
        (
            {"length": estimate(0.07, 0.0003, 0.15)},
            ("no significant difference", "length (+0.07 [0.00, 0.15])"),
        ),
        (
            {"length": estimate(0.9, None, None)},
            ("not tested", "length (+0.90)", "needs 5 items"),
        ),
        ({}, ("could not be compared", "baseline")),
    ],
)
def test_validation_sentences_follow_from_the_differences(
    differences: dict[str, Estimate], facts: tuple[str, ...]
) -> None:
    one = rated(differences)
    (sentence,) = sentences(one)
    assert has_line(sentence, "small-judge", *facts)
    assert sentence in Validation("t", (one,)).report("markdown").replace("\\", "")


@pytest.mark.parametrize(
    ("differences", "facts_of_lines"),
    [
        (
            [{"length": BETTER}] * 2,
            [("better than length", "all 2 criteria")],
        ),
        (
            [{"length": BETTER}],
            [("better than length", "coherence")],
        ),
        (
            [{"length": BETTER}, {"length": estimate(0.1, -0.1, 0.3)}],
            [
                ("better than length", "1 of 2 criteria"),
                ("c1", "no significant difference", "length (+0.10 [−0.10, 0.30])"),
            ],
        ),
        (
            [{"length": estimate(-0.2, -0.3, -0.1)}],
            [
                ("less than a baseline", "coherence"),
                ("coherence", "significantly worse", "length (−0.20 [−0.30, −0.10])"),
            ],
        ),
        (
            [{}],
            [
                ("better than chance", "coherence"),
                ("coherence", "Spearman 0.60 [0.40, 0.70]", "no baseline could be compared"),
            ],
        ),
    ],
)
def test_the_finding(
    differences: list[dict[str, Estimate]], facts_of_lines: list[tuple[str, ...]]
) -> None:
    criteria = [
        replace(rated(each), criterion=f"c{n}" if n else "coherence")
        for n, each in enumerate(differences)
    ]
    lines = plugins.document(Validation("t", tuple(criteria))).finding
    assert lines_hold(lines, facts_of_lines)
    assert lines[0].startswith("small-judge ")


def rated_by_systems(n_systems: int, criterion: str, *, scored: bool = True) -> Rated:
    """Return a criterion with correlations between systems' means, which have no interval."""
    untested = {
        ("systems", name): estimate(0.9, None, None, n_systems, name) for name in COEFFICIENTS
    }
    correlation = Correlation(36, untested, {})
    unscored = Correlation(0, {}, {"systems": "no text has a score"})
    judge = replace(
        row("small-judge", "judge", 0.6), correlation=correlation if scored else unscored
    )
    baseline = replace(row("length", "baseline", 0.6), correlation=correlation)
    return replace(rated({}, judges=(judge,), baselines=(baseline,)), criterion=criterion)


@pytest.mark.parametrize("n_systems", [4, 12])
def test_the_finding_says_once_that_means_of_systems_are_not_tested(n_systems: int) -> None:
    criteria = tuple(rated_by_systems(n_systems, f"c{n}") for n in range(4))
    (headline,) = plugins.document(Validation("t", criteria, level="systems")).finding
    assert has_line(headline, "could not be tested", "4 criteria", "systems' means", "no interval")


def test_a_criterion_without_scores_has_its_own_reason_beside_untested_means() -> None:
    criteria = (rated_by_systems(4, "c0"), rated_by_systems(4, "c1", scored=False))
    headline, line = plugins.document(Validation("t", criteria, level="systems")).finding
    assert has_line(headline, "1 of 2 criteria", "no interval")
    assert has_line(line, "c1", "no text has a score")


def test_untested_means_have_a_line_if_the_headline_is_about_another_criterion() -> None:
    # No row has a correlation between systems' means, so this criterion is compared over all texts.
    all_texts = replace(
        rated({}),
        judges=(row("small-judge", "judge", 0.6, levels=("all-texts",)),),
        baselines=(row("length", "baseline", 0.2, levels=("all-texts",)),),
        differences={("small-judge", "length", "all-texts"): BETTER},
    )
    criteria = (rated_by_systems(4, "c0"), all_texts)
    headline, line = plugins.document(Validation("t", criteria, level="systems")).finding
    assert has_line(headline, "better than", "1 of 2 criteria")
    assert has_line(line, "c0", "systems' means", "no interval")


def test_means_of_systems_have_no_sentences_by_criterion() -> None:
    assert sentences(rated_by_systems(12, "c0"), "systems") == []


def test_the_table_of_means_of_systems_says_why_nothing_is_tested() -> None:
    text = Validation("t", (rated_by_systems(12, "c0"),), level="systems").report("markdown")
    assert has_line(text.splitlines(), "Bold", "systems' means", "no interval")
    assert "too little data" not in text


def test_a_correlation_has_the_same_decimals_everywhere() -> None:
    one = rated({"length": BETTER})
    one = replace(one, judges=(replace(one.judges[0]),))
    text = Validation("t", (one,)).report("markdown")
    assert "length (+0.31 \\[0.20, 0.40\\])" in text
    assert re.findall(r"\d\.\d{3}", text) == []


def test_an_interval_above_0_does_not_seem_to_reach_it() -> None:
    barely = estimate(0.0414, 0.0026, 0.0802)
    assert has_line(
        sentences(rated({"length": barely})),
        "significantly better than length (+0.041 [0.003, 0.080])",
    )


def test_a_baseline_without_values_is_not_compared() -> None:
    without = row("bleurt", "baseline", 0, levels=(), why="no text has both")
    one = rated({"length": BETTER}, baselines=(*rated({"length": BETTER}).baselines, without))
    (sentence,) = sentences(one)
    assert has_line(sentence, "significantly better", "length (+0.31 [0.20, 0.40])")
    report = Validation("t", (one,)).report("markdown")
    assert has_line(report, "No value", "bleurt", "no text has both")


@pytest.mark.parametrize(
    ("value", "facts"),
    [
        (0.2, ("a: significantly better", "b (+0.20 [0.10, 0.30])")),
        (0.05, ("a: no significant difference", "b (+0.05 [−0.05, 0.15])")),
        (-0.3, ("b: significantly better", "a (+0.30 [0.20, 0.40])")),
    ],
)
def test_the_better_of_two_judges_comes_first(value: float, facts: tuple[str, ...]) -> None:
    judges = (row("a", "judge", 0.5 + value), row("b", "judge", 0.5))
    assert has_line(sentences(rated({}, judges=judges, versus=versus("a", "b", value))), *facts)


def test_the_best_of_many_judges_is_compared_with_each_other_one() -> None:
    judges = tuple(
        row(name, "judge", value) for name, value in (("a", 0.4), ("b", 0.6), ("c", 0.5))
    )
    pairs = (*versus("a", "b", -0.2), *versus("a", "c", -0.1), *versus("b", "c", 0.1))
    one = Validation("t", (rated({}, judges=judges, versus=pairs),))
    sentence = sentences(one.rated[0])[2]
    assert has_line(sentence, "b: no significant difference", "c (+0.10 [0.00, 0.20])")
    assert has_line(sentence, "significantly better than a (+0.20 [0.10, 0.30])")
    leads = sentences(one.rated[0])[2].removeprefix("b: ")
    (line,) = plugins.document(one).finding[1:]
    assert line == f"coherence: Spearman 0.60 [0.40, 0.70]; no baseline could be compared; {leads}"
    assert has_line(one.report("markdown"), "95%", "all pairs of judges")


def test_ratings_survive_json(validation: Validation) -> None:
    for one in validation.rated:
        stored = json.loads(json.dumps(asdict(flat(one))))
        reloaded = read(stored)
        assert asdict(flat(reloaded)) == asdict(flat(one))
        assert (reloaded.versus, reloaded.raters) == (one.versus, one.raters)
        assert [row.alt_test for row in reloaded.rows] == [row.alt_test for row in one.rows]
        assert [row.calibration for row in reloaded.rows] == [row.calibration for row in one.rows]


def test_csv_has_a_line_per_estimate(validation: Validation) -> None:
    lines = list(DictReader(validation.report("csv").splitlines()))
    estimates = [
        (rated.criterion, row.name, row.kind, *key, e.value)
        for rated in validation.rated
        for row in rated.rows
        for key, e in row.correlation.estimates.items()
    ]
    keys = ("criterion", "name", "kind", "level", "coefficient")
    rows = [(*(line[key] for key in keys), float(line["value"])) for line in lines if line["level"]]
    assert rows == estimates
    people = {(line["name"], line["coefficient"]): line for line in lines if not line["level"]}
    assert {name: [measure for who, measure in people if who == name] for name, _ in people} == {
        "panel mean": ["winning_rate", "advantage"],
        "small-judge": ["winning_rate", "advantage"],
        "anna": ["spearman", "alpha_interval", "mean", "same"],
        "ben": ["spearman", "mean"],
    }
    assert (people["panel mean", "advantage"]["value"], people["anna", "spearman"]["low"]) == (
        "0.75",
        "0.5",
    )
    assert (
        people["small-judge", "winning_rate"]["value"],
        people["small-judge", "winning_rate"]["method"],
    ) == (
        "",
        "it needs 3 raters",
    )


def test_the_finding_names_the_criteria_on_which_a_judge_may_replace_a_rater() -> None:
    def one(name: str, passed: bool | None, rate: float | None, n_won: int = 0) -> Rated:
        raters = tuple(replace(ANNA, won=number < n_won) for number in range(4))
        test = AltTest(0.1, passed, rate, rate, raters, "" if rate else "few")
        return replace(
            rated({}, judges=(replace(row("small-judge", "judge", 0.6), alt_test=test),)),
            criterion=name,
        )

    may = one("tone", True, 0.75, 3)
    may_not = one("depth", False, 0.25, 1)
    few = one("wit", None, None)
    replaces, not_shown = alt_test_finding((may, may_not, few), "small-judge")
    assert has_line(replaces, "small-judge may replace", "ε 0.1", "3 of 4 raters on tone")
    assert has_line(
        not_shown, "not shown", "small-judge may replace", "ε 0.1", "1 of 4 raters on depth"
    )
    assert list(alt_test_finding((may_not,), "small-judge")) == [not_shown]
    assert list(alt_test_finding((few,), "small-judge")) == []
    assert list(alt_test_finding((may,), "another")) == []


def test_a_system_that_people_rate_above_the_judges_best_is_named() -> None:
    means = (
        SystemRating("alpha", 40, 4.05, {"small-judge": 3.76}),
        SystemRating("beta", 40, 3.91, {"small-judge": 3.85}),
    )
    above = RatedAbove("small-judge", "beta", "alpha", 0.14, 0.012)
    one = Validation(
        "t", (replace(rated({"length": BETTER}), systems=means, rated_above=(above,)),)
    )
    shown = plugins.document(one)
    assert has_line(shown.finding, "coherence", "alpha", "better than beta", "0.14", "p = 0.012")
    text = one.report(full=True).splitlines()
    assert has_line(text, "coherence: means by people and by the judge")
    assert has_line(text, "alpha", "4.05", "3.76", "40")
    restored = read(json.loads(json.dumps(asdict(flat(one.rated[0])))))
    assert (restored.systems, restored.rated_above) == (means, (above,))
    agreed = replace(one.rated[0], rated_above=())
    assert not has_line(plugins.document(Validation("t", (agreed,))).finding, "people rate")


def test_repr_names_criteria_and_texts(validation: Validation) -> None:
    assert has_line(repr(validation), "coherence (36 texts)", "一貫性|<b> (12 texts)")


# The sections in the report of a run


def test_the_page_shows_the_baseline_that_agrees_best_with_people(
    validation: Validation, result: Result
) -> None:
    short_texts_preferred = (
        replace(row("length", "baseline", -0.7), directed=False),
        row("ROUGE-1", "baseline", 0.2),
    )
    rated = replace(validation.rated[0], baselines=short_texts_preferred)
    _, baseline_tile = agreement_tiles(replace(result, rated=(rated,)))
    assert baseline_tile.value == "ρ 0.70"
    assert has_line(baseline_tile.label, "length reversed", "people")


def test_the_main_agreement_is_that_of_the_criterion_on_which_the_judge_agrees_least(
    validation: Validation, result: Result
) -> None:
    """Regression: it was that of the first rated column of the data."""
    first = validation.rated[0]
    judges = (row("small-judge", "judge", 0.4),)
    weakest = replace(first, criterion="fluency", judges=judges)
    with_ratings = replace(result, rated=(first, weakest))
    assert main_agreement(with_ratings) is weakest
    judge_tile, _ = agreement_tiles(with_ratings)
    assert judge_tile.value == "ρ 0.40"
    assert has_line(judge_tile.label, "fluency", "lowest of 2 criteria")


def test_the_agreement_at_a_glance(validation: Validation, result: Result) -> None:
    with_ratings = replace(result, rated=validation.rated)
    main = main_agreement(with_ratings)
    assert main is validation.rated[0]
    assert agreement_chart(main).alt == (
        "one rater 0.70; panel mean 0.60; small-judge 0.55; bleurt 0.35; ROUGE-1 0.20; length −0.10"
    )
    judge_tile, baseline_tile = agreement_tiles(with_ratings)
    assert judge_tile.value == "ρ 0.60"
    assert has_line(judge_tile.label, "the judge", "3 raters", "coherence")
    assert baseline_tile.value == "ρ 0.35"
    assert has_line(baseline_tile.label, "bleurt", "people")
    assert main_agreement(result) is None
    assert people_blocks(result) == calibration_blocks(()) == tuple(agreement_tiles(result)) == ()


def powered(
    system: str,
    other: str = "",
    value: float = 3.5,
    adjusted: float | None = None,
    half: float = 0.2,
) -> Powered:
    """Return an estimate with this half width. Without the judge it would be .4."""
    name = "difference" if other else "mean"
    estimates = [
        Estimate(name, value, value - side, value + side, 30, "how") for side in (half, 0.4)
    ]
    return Powered(estimates[0], estimates[1], 0.754, 1470, system, other, adjusted)


def calibrated(systems: str, **fields: Any) -> Calibrated:
    pairs = [(one, other) for place, one in enumerate(systems) for other in systems[place + 1 :]]
    differences = [
        powered(*pair, value=0.25, adjusted=0.0004 if pair[0] == "a" else 0.3) for pair in pairs
    ]
    return Calibrated(
        "fluency", tuple(powered(name) for name in systems), tuple(differences), **fields
    )


def cells(table: Any) -> list[list[str]]:
    return [[cell.text + cell.mark for cell in row] for row in table.rows]


@pytest.mark.parametrize(
    ("method", "says"),
    [(HOW, True), ("95% Wilson interval with Student's t over items", False)],
)
def test_only_bootstrap_intervals_are_said_to_share_resamples(method: str, says: bool) -> None:
    one = rated({})
    judges = []
    for judge_row in one.judges:
        estimates = {
            key: replace(value, method=f"how; {method}")
            for key, value in judge_row.correlation.estimates.items()
        }
        correlation = replace(judge_row.correlation, estimates=estimates)
        judges.append(replace(judge_row, correlation=correlation))
    one = replace(one, judges=tuple(judges))
    (help_section,) = [
        block for block in criteria_blocks([one], "within-items") if isinstance(block, Details)
    ]
    (bullets,) = help_section.blocks
    (interval_help,) = [text for text in bullets.items if text.startswith("[low, high]")]
    assert ("same resamples" in interval_help) == says


def test_a_judge_of_fewer_criteria_is_not_the_best_one() -> None:
    narrow = row("narrow", "judge", 0.9)
    broad = row("broad", "judge", 0.5)
    criteria = [
        Rated("coherence", 36, (narrow, broad), (), None, "", {}),
        Rated("fluency", 36, (broad,), (), None, "", {}),
    ]
    assert best_judge(criteria, "within-items") == "broad"
    assert best_judge(criteria[:1], "within-items") == "narrow"


@pytest.mark.parametrize(("texts", "warns"), [(36, False), (33, False), (24, True)])
def test_judges_of_different_texts_are_named_as_such(texts: int, warns: bool) -> None:
    judges = (row("first", "judge", 0.6), row("second", "judge", 0.5, texts=texts))
    one = Rated("coherence", 36, judges, (), None, "", {})
    notes = Validation("t", (one,)).report("markdown")
    assert ("different rated texts (coherence: first 36, second 24)" in notes) == warns


def test_means_and_differences_on_peoples_scale() -> None:
    means, differences, method_section = calibration_blocks([calibrated("abc")])
    assert cells(means)[0] == ["a", "3.50", "[3.30, 3.70]", "3.50", "30", "1,470", "0.75", "120"]
    assert means.rows[0][3].note == "[3.10, 3.90]"
    assert [(row[0], row[1], row[-1]) for row in cells(differences)] == [
        ("a − b", "+0.25*", "<.001"),
        ("a − c", "+0.25*", "<.001"),
        ("b − c", "+0.25", ".300"),
    ]
    assert "* significant" in differences.whole_key
    assert "* significant" not in means.whole_key
    assert isinstance(method_section, Details)


def test_many_differences_are_limited_to_the_best_system() -> None:
    _, differences, note, _ = calibration_blocks([calibrated("abcde", note="x" * 9_000)])
    assert [row[0] for row in cells(differences)] == ["a − b", "a − c", "a − d", "a − e"]
    assert len(note.text) == 300


def test_an_unknown_estimate_has_no_number() -> None:
    bare = Estimate("mean", 5.0, None, None, 12, "all equal")
    one = Calibrated(
        "c",
        (Powered(bare, bare, 0.0, 40, "a"),),
        (Powered(bare, bare, 0.0, 40, "a", "b"),),
        "too few",
    )
    means, differences, note, _ = calibration_blocks([one, Calibrated("d")])
    assert cells(means) == [["c · a", "5.00", "–", "5.00", "12", "40", "0.00", "–"]]
    assert cells(differences)[0][-2:] == ["–", "–"]
    assert note.text == "c: too few"


def test_a_run_keeps_its_ratings(tmp_path: Path) -> None:
    rows = [
        {
            "item": f"i{n}",
            "system": s,
            "source": "A bridge.",
            "output": f"{s} text {n}",
            "human": {"relevance": r + n % 2},
        }
        for n in range(4)
        for s, r in (("x", 4), ("y", 2), ("z", 1))
    ]
    provider = judge.ScriptedProvider(
        lambda request: "5" if "x text" in str(request.messages) else "2"
    )
    result = judge.evaluate(
        rows, ["relevance"], model=provider, cache=False, metrics=[], out=tmp_path
    )
    assert people_blocks(load(tmp_path)) == people_blocks(result) != ()
    document = json.loads(result.report("json"))
    Draft202012Validator(schema()).validate(document)
    assert document["rated"] == json.loads((tmp_path / "run.json").read_text("utf-8"))["rated"]
    assert [row["kind"] for row in document["rated"][0]["rows"]] == ["judge", "baseline"]


def biased(value: float, low: float | None, high: float | None) -> Rated:
    """Return a criterion whose judge has this bias on a scale from 1 to 5."""
    curve = replace(calibration(), bias=estimate(value, low, high, 36, "bias"))
    judge_row = replace(row("small-judge", "judge", 0.6), calibration=curve)
    return rated({}, judges=(judge_row,))


def test_a_judge_that_scores_far_lower_than_people_is_named_with_its_bias() -> None:
    note = bias_note([biased(-1.9, -2.1, -1.7)], "small-judge")
    assert has_line(note, "small-judge", "coherence −1.90 (scale 1–5)")


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        pytest.param(-0.1, -0.15, -0.05, id="small"),
        pytest.param(-1.0, -2.5, 0.5, id="not significant"),
        pytest.param(-1.0, None, None, id="untested"),
    ],
)
def test_a_bias_that_is_small_or_not_shown_needs_no_note(
    value: float, low: float | None, high: float | None
) -> None:
    assert bias_note([biased(value, low, high)], "small-judge") == ""
