"""A validation as text: golden files, the sentences that the differences support, and what stands in for no number."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from judge.core.errors import ConfigError
from judge.core.records import Estimate
from judge.results.validation import Validation, flat, read
from judge.stats.agreement import MEASURES, Agreement
from judge.stats.calibration import Bin, Calibration
from judge.stats.coefficients import COEFFICIENTS, LEVELS
from judge.stats.correlation import Correlation
from judge.stats.human_agreement import Rated, Row, Versus

HOW = "95% percentile bootstrap over items, 1000 resamples, seed 0"
FORMATS = {"console": "txt", "markdown": "md", "json": "json"}


def estimate(value: float, low: float | None, high: float | None, n: int = 12, name: str = "spearman") -> Estimate:
    return Estimate(name, value, low, high, n, f"how; {HOW}")


def row(name: str, kind: Any, value: float, *, texts: int = 36, levels: Any = LEVELS, why: str = "") -> Row:
    """A row with about this value in all the levels; the others lack it for a reason."""
    sizes = {"document": 12, "item": texts, "system": 3}
    found = {
        (level, coefficient): estimate(value - k / 10, value - 0.2, value + 0.1, sizes[level], coefficient)
        for level in levels
        for k, coefficient in enumerate(COEFFICIENTS)
    }
    lacking = {level: why for level in LEVELS if level not in levels}
    return Row(name, kind, f"{name}|signature", Correlation(texts if levels or why[:3] == "all" else 0, found, lacking))


def agreed(value: float, *measures: Any) -> Agreement:
    return Agreement({name: estimate(value, value - 0.1, value + 0.05, 36, name) for name in measures})


def calibration(bias: float = -0.4) -> Calibration:
    """Two bins, one of them without an interval."""
    bins = (
        Bin(1.5, 2.5, 2.25, estimate(2.75, 2.5, 3.0, 30, "people")),
        Bin(4.5, 5.0, 4.75, estimate(4.0, None, None, 6, "people")),
    )
    ends = (bias - 0.25, bias + 0.25)
    return Calibration(1.0, 5.0, bins, estimate(0.125, 0.1, 0.2, 36, "error"), estimate(bias, *ends, 36, "bias"))


def versus(one: str, other: str, value: float, p: float = 0.0004) -> tuple[Versus, ...]:
    found = estimate(value, value - 0.1, value + 0.1, name="difference")
    tested = replace(found, p=p, method="difference; p: Williams' test, t(33) = 4.00")
    return Versus(one, other, "document", found, found), Versus(one, other, "item", found, tested)


def rated(differences: dict[str, Estimate], **fields: Any) -> Rated:
    """A criterion with one judge, whose differences at level document are these."""
    floors = tuple(row(name, "floor", 0.2) for name in differences)
    keyed = {("small-judge", name, "document"): one for name, one in differences.items()}
    judges = (row("small-judge", "judge", 0.6),)
    made = {"judges": judges, "floors": floors, "ceiling": None, "no_ceiling": "", "differences": keyed, **fields}
    return Rated("coherence", 36, **made)


BETTER = estimate(0.31, 0.2, 0.4)


@pytest.fixture
def validation() -> Validation:
    nothing = "no text has both a value and a rating"
    first = Rated(
        "coherence",
        36,
        (
            replace(
                row("panel mean", "judge", 0.6),
                agreement=agreed(0.5, "alpha_interval", "kappa_quadratic", "kappa_linear"),
                calibration=calibration(),
            ),
            replace(
                row("small-judge", "judge", 0.55),
                agreement=Agreement(lacking={"alpha_interval": "all ratings are equal"}),
                calibration=calibration(0.3),
            ),
            row("mute", "judge", 0, levels=(), why=nothing),
        ),
        (row("heuristic", "floor", 0.35, texts=30), row("length", "floor", -0.1), row("ROUGE-1", "floor", 0.2)),
        replace(row("annotator", "ceiling", 0.7), signature="3 annotators", agreement=agreed(0.625, *MEASURES)),
        "",
        {
            ("panel mean", "heuristic", "document"): estimate(0.25, -0.05, 0.4, 10),
            ("panel mean", "length", "document"): estimate(0.7, 0.5, 0.9),
            ("panel mean", "ROUGE-1", "document"): estimate(0.4, 0.3, 0.5),
        },
        versus("small-judge", "panel mean", -0.05),
    )
    pooled = {"levels": ("item",), "why": "one system alone has values and ratings"}
    second = Rated(
        "一貫性|<b>",
        12,
        (),
        (
            row("length", "floor", 0.1, texts=12, **pooled),
            row("ROUGE-1", "floor", 0, levels=(), why="all values are equal"),
        ),
        None,
        "the data have one rating for each text",
        {},
    )
    return Validation("Against people: council.jsonl, judged by a|b", (first, second), ("A note with \x1b[31m in it.",))


@pytest.mark.parametrize("format", FORMATS)
def test_golden(validation: Validation, golden: Any, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    golden(f"validation.{FORMATS[format]}", validation.report(format))


def test_nothing_is_wider_than_the_terminal(validation: Validation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for level in LEVELS:
        assert all(len(text) <= 80 for text in validation.report(level=level).split("\n"))


def test_colour_is_for_those_who_ask(validation: Validation) -> None:
    assert "\x1b" not in validation.report()
    assert "\x1b[1m" in validation.report(colour=True)


@pytest.mark.parametrize(
    ("differences", "sentence"),
    [
        (
            {"length": estimate(0.5, 0.3, 0.7), "ROUGE-1": BETTER},
            "small-judge beats every floor: +0.310 [0.200, 0.400] in Spearman over ROUGE-1, the nearest.",
        ),
        (
            {"length": estimate(0.02, -0.03, 0.07), "ROUGE-1": BETTER},
            "small-judge is not told apart from length (+0.020 [−0.030, 0.070]); beats ROUGE-1 "
            "(differences in Spearman).",
        ),
        (
            {"length": estimate(-0.2, -0.3, -0.1), "ROUGE-1": estimate(-0.1, -0.2, 0)},
            "small-judge is below length (−0.200 [−0.300, −0.100]); is not told apart from ROUGE-1 "
            "(−0.100 [−0.200, 0.000]) (differences in Spearman).",
        ),
        (
            {"length": estimate(0.07, 0.0003, 0.15)},
            "small-judge is not told apart from length (+0.070 [0.000, 0.150]) (differences in Spearman).",
        ),
        (
            {"length": estimate(0.9, None, None)},
            "small-judge is not told apart from length (+0.900 without an interval) (differences in Spearman).",
        ),
        ({}, "small-judge could not be compared with a floor."),
    ],
)
def test_the_sentence_is_what_the_differences_support(differences: dict[str, Estimate], sentence: str) -> None:
    text = Validation("t", (rated(differences),)).report("markdown").replace("\\", "")
    assert f"\n{sentence}\n" in text
    assert (
        sentence in json.loads(Validation("t", (rated(differences),)).report("json"))["criteria"][0]["told"]["document"]
    )


@pytest.mark.parametrize(("systems", "said"), [(4, True), (5, False)])
def test_few_systems_get_no_verdict_between_their_means(systems: int, said: bool) -> None:
    means = {("system", name): estimate(-0.9, -1.0, -0.8, systems, name) for name in COEFFICIENTS}
    judges, floors = (
        (replace(row(name, kind, 0.6), correlation=Correlation(36, means, {})),)
        for name, kind in (("small-judge", "judge"), ("length", "floor"))
    )
    one = rated({}, judges=judges, floors=floors)
    text = Validation("t", (one,)).report("markdown", "system")
    assert ("4 systems are too few for a verdict between their means: it takes 5 or more." in text) is said
    assert ("could not be compared" not in text and "goes the other way" not in text) is said


@pytest.mark.parametrize(("value", "said"), [(-0.45, True), (-0.05, False)])
def test_a_floor_that_goes_the_other_way_is_said(value: float, said: bool) -> None:
    floors = (row("length", "floor", value),)
    text = Validation("t", (rated({"length": BETTER}, floors=floors),)).report("markdown")
    sentence = f"length goes the other way, −{abs(value):.3f} [−0.650, −0.350]: its opposite is a floor of 0.450."
    assert (sentence in text.replace("\\", "")) is said


def test_a_floor_without_values_is_not_beaten() -> None:
    lacking = (*rated({"length": BETTER}).floors, row("heuristic", "floor", 0, levels=(), why="it abstained"))
    text = Validation("t", (rated({"length": BETTER}, floors=lacking),)).report("markdown")
    assert "beats every floor that has values: +0.310" in text
    assert "No value for heuristic: it abstained." in text


@pytest.mark.parametrize(
    ("format", "level", "message"), [("html", "item", "'html'"), ("json", "items", "--level: .* did you mean 'item'")]
)
def test_other_formats_and_levels_are_refused(validation: Validation, format: str, level: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validation.report(format, level)


@pytest.mark.parametrize(
    ("value", "p", "sentence"),
    [
        (
            0.2,
            0.0004,
            "a goes with people better than b: +0.200 [0.100, 0.300] in Spearman; Williams' test of Pearson over all "
            "texts: p < .001.",
        ),
        (
            0.05,
            0.0421,
            "a is not told apart from b: +0.050 [−0.050, 0.150] in Spearman; Williams' test of Pearson over all "
            "texts: p = .042.",
        ),
        (
            -0.3,
            0.5,
            "b goes with people better than a: +0.300 [0.200, 0.400] in Spearman; Williams' test of Pearson over all "
            "texts: p = .500.",
        ),
    ],
)
def test_of_two_judges_the_better_one_is_named_first(value: float, p: float, sentence: str) -> None:
    judges = (row("a", "judge", 0.5 + value), row("b", "judge", 0.5))
    one = rated({}, judges=judges, versus=versus("a", "b", value, p))
    assert sentence in Validation("t", (one,)).report("markdown").replace("\\", "")


def test_of_many_judges_the_best_is_held_against_each_other_one() -> None:
    judges = tuple(row(name, "judge", value) for name, value in (("a", 0.4), ("b", 0.6), ("c", 0.5)))
    pairs = (*versus("a", "b", -0.2), *versus("a", "c", -0.1), *versus("b", "c", 0.1))
    text = Validation("t", (rated({}, judges=judges, versus=pairs),)).report("markdown")
    assert text.count(" better than ") + text.count("told apart from") == 2
    assert "b goes with people better than a" in text
    assert "b is not told apart from c" in text
    assert "The best judge is held against each other one without a correction for their number." in text


def test_what_was_rated_comes_back_from_json(validation: Validation) -> None:
    for one in validation.rated:
        stored = json.loads(json.dumps(asdict(flat(one))))
        again = read(stored)
        assert asdict(flat(again)) == asdict(flat(one))
        assert again.versus == one.versus
        assert [row.calibration for row in again.rows] == [row.calibration for row in one.rows]


def test_it_says_what_it_is(validation: Validation) -> None:
    assert repr(validation) == "<Validation: coherence (36 texts), 一貫性|<b> (12 texts)>"
