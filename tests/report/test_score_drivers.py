from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from judge.core.records import Estimate
from judge.report.views.score_drivers import Row, build_judge_drivers, drivers_sentence
from judge.results.result import Result, load
from judge.stats.score_drivers import Driver, Drivers

Ends = tuple[float, float | None, float | None]


def _estimate(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate("R2", value, low, high, 48, "as it was made")


def _drivers(column: str, together: Ends, *, people: bool = False, within: bool = True, **r: Ends) -> Drivers:
    each = tuple(Driver(name, _estimate(*ends), _estimate(ends[0] ** 2)) for name, ends in r.items())
    return Drivers(column, people, within, 48, 12, each, _estimate(*together), 0.0833)


JUDGED = _drivers(
    "coherence",
    (0.341, 0.252, 0.428),
    length=(0.52, 0.4, 0.61),
    copying=(-0.1, -0.25, 0.05),
    position=(0.004, -0.1, 0.1),
)
RATED = _drivers("coherence", (0.09, 0.02, 0.17), people=True, length=(0.25, 0.1, 0.4), copying=(-0.2, -0.4, -0.03))
SAME = Drivers("一貫性", False, False, 12, 12, note="all scores equal")


@pytest.fixture
def driven(result: Result) -> Result:
    """A result with two criteria: one moved by length, which people rated too, and one that does not vary."""
    return replace(result, drivers=(JUDGED, SAME, RATED))


def _rows(result: Result) -> list[Row]:
    shown = build_judge_drivers(result)
    assert shown is not None
    return [row for rows in shown.criteria for row in rows]


def _words(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def test_people_follow_the_judge_of_their_criterion(driven: Result) -> None:
    rows = _rows(driven)
    assert [(row.name, row.part, row.people) for row in rows] == [
        ("coherence", "", False),
        ("coherence", "people", True),
        ("一貫性", "", False),
    ]
    judged, rated, same = rows
    assert (judged.together, judged.interval, judged.chance, judged.texts) == ("34%", "[25, 43]", "8%", "48")
    assert [(p.text, p.interval) for p in judged.pulls.values()] == [
        ("+0.52", "[0.40, 0.61]"),
        ("−0.10", "[−0.25, 0.05]"),
        ("0.00", "[−0.10, 0.10]"),
    ]
    assert list(rated.pulls) == ["length", "copying"]
    assert (same.together, same.chance, dict(same.pulls), same.note) == ("", "", {}, "all scores equal")


def test_a_bar_says_in_words_what_it_shows(driven: Result) -> None:
    judged, rated, _ = _rows(driven)
    assert [pull.bar.title for pull in judged.pulls.values()] == [
        "longer texts score higher; alone 27%",
        "texts that copy more score neither clearly higher nor lower; alone 1%",
        "texts that copy from further down score neither clearly higher nor lower; alone 0%",
    ]
    assert rated.pulls["copying"].bar.title == "texts that copy more score lower; alone 4%"


def test_bars_start_in_the_middle_of_an_axis_that_holds_them_all(driven: Result) -> None:
    shown = build_judge_drivers(driven)
    assert shown is not None
    assert [(tick.at, tick.label) for tick in shown.axis.ticks] == [(0, "−1"), (50, "0"), (100, "1")]
    bar = shown.criteria[0][0].pulls["copying"].bar
    assert (bar.left, bar.width, bar.low, bar.high) == (45, 5, 37.5, 52.5)
    close = build_judge_drivers(replace(driven, drivers=(RATED, replace(RATED, people=False))))
    assert close is not None
    assert [tick.label for tick in close.axis.ticks] == ["−0.5", "0.0", "0.5"]


def test_what_the_numbers_mean_is_said_by_what_there_is(driven: Result) -> None:
    shown = build_judge_drivers(driven)
    assert shown is not None
    assert shown.lead.endswith("because they are better. Compare what moves people's ratings.")
    assert shown.legend.endswith("scores are compared with those of the item's other texts.")
    pooled = replace(JUDGED, within=False)
    alone = build_judge_drivers(replace(driven, drivers=(pooled,)))
    assert alone is not None
    assert alone.lead.endswith("because they are better.")
    assert alone.legend.endswith("as most items have only one.")
    assert [row.scope for row in _rows(replace(driven, drivers=(pooled, RATED)))] == ["pooled", "within items"]


@pytest.mark.parametrize("drivers", [(), (SAME,), (SAME, replace(RATED, column="一貫性"))])
def test_nothing_is_shown_where_no_judges_drivers_are_known(result: Result, drivers: tuple[Drivers, ...]) -> None:
    bare = replace(result, drivers=drivers)
    assert build_judge_drivers(bare) is None
    for format in ("console", "markdown", "html"):
        assert bare.report(format) == result.report(format)
    assert ("drivers" in json.loads(bare.report("json"))) == bool(drivers)


def test_the_console_tells_of_a_quarter_or_more(driven: Result) -> None:
    sentence = (
        "What moves the judge: length, copying and position explain 34% [25, 43] of the differences in coherence "
        "(of people's ratings 9%)."
    )
    assert drivers_sentence(driven) == sentence
    assert sentence in " ".join(driven.report("console").split())
    alone = _drivers("coherence", (0.27, 0.2, 0.35), length=(0.52, 0.4, 0.6))
    assert drivers_sentence(replace(driven, drivers=(alone,))) == (
        "What moves the judge: length explains 27% [20, 35] of the differences in coherence."
    )


@pytest.mark.parametrize("together", [(0.249, 0.2, 0.3), (0.5, 0.08, 0.9), (0.5, None, None)])
def test_the_console_is_silent_where_it_is_little_or_may_be_chance(result: Result, together: Ends) -> None:
    few = replace(result, drivers=(_drivers("coherence", together, length=(0.5, 0.1, 0.9)),))
    assert drivers_sentence(few) == ""
    assert few.report("console") == result.report("console")


def test_markdown_has_a_table(driven: Result) -> None:
    text = driven.report("markdown")
    _, _, section = text.partition("<summary>What moves the judge</summary>\n\n")
    assert section.split("\n\n")[1].split("\n") == [
        "| scores | together | by chance | length | copying | position | texts |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| coherence | 34% [25, 43] | 8% | +0.52 [0.40, 0.61] | −0.10 [−0.25, 0.05] | 0.00 [−0.10, 0.10] | 48 |",
        "| coherence (people) | 9% [2, 17] | 8% | +0.25 [0.10, 0.40] | −0.20 [−0.40, −0.03] | – | 48 |",
        "| 一貫性 | – | – | – | – | – | 12, all scores equal |",
    ]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((0.1, 0.9), "Pearson's r with its 95% interval: above 0"),
        ((None, None), "Pearson's r (no interval below 10 items): above 0"),
    ],
)
def test_an_interval_is_promised_where_there_is_one(
    result: Result, ends: tuple[float | None, float | None], said: str
) -> None:
    shown = build_judge_drivers(replace(result, drivers=(_drivers("coherence", (0.3, *ends), length=(0.5, *ends)),)))
    assert shown is not None
    assert said in shown.legend


def test_the_page_has_a_section_with_labelled_bars(driven: Result, result: Result) -> None:
    page = driven.report("html")
    assert '<a href="#drivers">What moves the judge</a>' in page
    section = page[page.index('<section id="drivers">') :]
    section = section[: section.index("</section>")]
    assert section.count('role="img" aria-label="') == section.count("<title>") == 5
    assert 'aria-label="longer texts score higher; alone 27%"' in section
    assert '<th scope="row" aria-label="coherence, people">' in section
    words = _words(section)
    assert " coherence 34% [25, 43] 8% longer texts score higher; alone 27% +0.52 [0.40, 0.61] " in words
    assert " 一貫性 all scores equal – – – – – 12 " in words
    assert 'id="drivers"' not in result.report("html")


def test_a_criterions_name_is_text_in_every_format(driven: Result) -> None:
    name = '<b>"x"</b>|*'
    columns = tuple(replace(c, name=name) if c.name == "coherence" else c for c in driven.table.columns)
    hostile = replace(
        driven,
        table=replace(driven.table, columns=columns),
        drivers=(replace(JUDGED, column=name), replace(RATED, column=name)),
    )
    page = hostile.report("html")
    assert '<b>"x"' not in page
    assert 'aria-label="&lt;b&gt;&#34;x&#34;&lt;/b&gt;|*, people"' in page
    assert '| \\<b\\>"x"\\</b\\>\\|\\* (people) | 9%' in hostile.report("markdown")


def test_json_has_all_of_it(driven: Result) -> None:
    found = json.loads(driven.report("json"))["drivers"]
    assert [(row["column"], row["people"]) for row in found] == [
        ("coherence", False),
        ("一貫性", False),
        ("coherence", True),
    ]
    assert found[0]["together"]["low"] == 0.252
    assert found[0]["each"][0]["correlation"]["value"] == 0.52
    assert (found[1]["together"], found[1]["note"]) == (None, "all scores equal")


def test_a_stored_run_has_them_again(driven: Result, tmp_path: Path) -> None:
    driven.save(tmp_path)
    assert load(tmp_path) == driven
