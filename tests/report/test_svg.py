from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import judge
from judge.core.errors import ConfigError, StorageError
from judge.core.records import Column, Estimate, Provenance, Sample, Score
from judge.report.renderers import html
from judge.report.renderers.svg import BROWSERS, Figure, figures, render, write
from judge.results.result import Result
from judge.stats.pairwise import rankings
from judge.stats.score_drivers import Driver, Drivers
from judge.table import Table

SVG = "{http://www.w3.org/2000/svg}"


def test_golden(result: Result, golden) -> None:
    golden("report.svg", render(result))


def test_golden_of_a_ranking(ranking: Result, golden) -> None:
    golden("ranking.svg", render(ranking))


def _driven(result: Result) -> Result:
    def estimate(value: float) -> Estimate:
        return Estimate("r", value, value - 0.2, value + 0.2, 48, "")

    each = tuple(Driver(name, estimate(r), estimate(r * r)) for name, r in (("length", 0.5), ("copying", -0.1)))
    judged = Drivers("coherence", False, True, 48, 12, each, estimate(0.3), 0.08)
    rated = Drivers("coherence", True, True, 48, 12, each[:1], estimate(0.2), 0.04)
    return replace(result, drivers=(judged, rated), comparisons=())


@pytest.fixture(scope="module")
def rated() -> Result:
    """A judge on 12 texts that people rated too."""
    rows = [
        {"item": f"{k}", "system": system, "source": "S.", "output": f"{system} {k}", "human": {"relevance": 1 + k % 5}}
        for k in range(6)
        for system in ("a", "b")
    ]
    replies = judge.ScriptedProvider(lambda request: str(1 + len(str(request.messages)) * 7 % 5))
    return judge.evaluate(rows, model=replies, criteria=["relevance"], metrics=[])


@pytest.fixture
def all_figures(result: Result, ranking: Result, panel: Result, tested: Result, rated: Result) -> list[Figure]:
    return [figure for one in (_driven(result), ranking, panel, tested, rated) for figure in figures(one)]


def _words(figure: Figure) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(figure.svg).iter(f"{SVG}text")]


def test_there_is_one_for_every_chart(result: Result, ranking: Result, panel: Result, tested: Result) -> None:
    assert [figure.name for figure in figures(_driven(result))] == [
        "mean-coherence", "mean-一貫性", "mean-rougeL", "mean-length", "scores-coherence", "scores-一貫性", "drivers",
    ]  # fmt: skip
    assert [figure.name for figure in figures(ranking)] == [
        "win-rate-overall",
        "strength-overall",
        "win-rates-overall",
    ]
    assert [figure.title for figure in figures(panel)][:3] == [
        "fluency, panel mean ↑",
        "fluency, a ↑",
        "fluency, org/b ↑",
    ]
    assert [figure.name for figure in figures(tested)][6:] == [
        *("differences-overall", "differences-fluency", "differences-style", "differences-delta"),
        *("correlations-item", "correlations-document", "correlations-system"),
    ]


def test_judges_stand_against_people_where_there_are_ratings(rated: Result) -> None:
    found = {figure.name: figure for figure in figures(rated)}
    assert {"scatter-relevance-script", "calibration-relevance-script"} <= set(found)
    scatter, curve = found["scatter-relevance-script"], found["calibration-relevance-script"]
    assert "judge → · people ↑" in _words(scatter)
    assert "judge → · people ↑" in _words(curve)
    page = rated.report("html")
    (path,) = re.findall(r'<path d="(m[^"]*)"', scatter.svg)
    assert f'<path d="{path}"' in page
    assert path.count("h0") == 12
    points = re.findall(r"<circle[^>]*/>", curve.svg)
    assert points
    assert all(point in page for point in points)


def test_they_are_whole_documents_that_need_nothing(all_figures: list[Figure]) -> None:
    for figure in all_figures:
        root = ElementTree.fromstring(figure.svg)
        assert (root.tag, root.get("role"), root.get("aria-label")) == (f"{SVG}svg", "img", figure.title)
        assert root.get("viewBox") == f"0 0 {figure.width} {figure.height}"
        assert not {element.tag for element in root.iter()} & {f"{SVG}script", f"{SVG}foreignObject", f"{SVG}image"}
        assert not re.search(r"href|url\(|var\(|@import|on\w+=", figure.svg.replace("http://www.w3.org/2000/svg", ""))
        assert "macro" not in figure.svg.lower()


def test_colours_are_the_light_pages(all_figures: list[Figure]) -> None:
    (light,) = re.findall(r"--bar: (#\w+)", html.source("report.css").partition("@media")[0])
    for figure in all_figures:
        used = re.findall(r'(?:fill|stroke)(?:="|: )([^";]+)', figure.svg)
        assert all(re.fullmatch(r"#[0-9a-f]{6}|none", colour) for colour in used)
        assert f".bar rect {{ fill: {light}; }}" in figure.svg


def test_marks_are_the_pages_own(result: Result, ranking: Result) -> None:
    for one in (_driven(result), ranking):
        drawn = "".join(figure.svg for figure in figures(one))
        page = one.report("html")
        marks = re.findall(
            r'<title>[^<]*</title><rect [^>]*y="5"[^>]*/>(?:<line class="span"[^>]*/>)*<circle[^>]*/>', page
        )
        assert marks
        assert all(mark in drawn for mark in marks)
        assert drawn.count('<circle cx="') == len(marks)


def test_texts_are_as_they_were_and_inert(all_figures: list[Figure]) -> None:
    (mean,) = [figure for figure in all_figures if figure.name == "mean-coherence"]
    assert "evil|<b>*sys*" in _words(mean)
    assert "<b>" not in mean.svg
    hostile = "</svg><script>x</script>\x1b\u202e"
    column = Column(hostile, "criterion", "", 1.0, 5.0, ("1", "2", "3", "4", "5"))
    sample = Sample("i", hostile, "x")
    table = Table((sample,), (column,), (Score("i", hostile, hostile, 3.0, Provenance("single")),))
    found = figures(Result(table, {(hostile, hostile): Estimate("mean", 3.0, 2.0, 4.0, 1, hostile)}))
    assert len(found) == 2
    for figure in found:
        assert "<script" not in figure.svg
        assert any(word.startswith("</svg><script>x") for word in _words(figure))


def test_values_and_marks_of_the_best_are_said(result: Result, tested: Result) -> None:
    found = {figure.name: figure for figure in figures(replace(result, comparisons=()))}
    words = _words(found["mean-一貫性"])
    assert words[words.index("lead") + 1 :] == ["2.00", "システム二", "2.00", "evil|<b>*sys*", "–", "1", "2", "3"]
    assert "BCa bootstrap over items" in found["mean-rougeL"].svg
    marked = {figure.name: _words(figure) for figure in figures(tested)}
    assert marked["mean-fluency"][1:7] == ["good", "4.00*", "=fair", "2.50", "poor", "2.00"]
    assert marked["mean-overall"][1:7] == ["good", "0.625≈", "=fair", "0.406≈", "poor", "0.375"]


def test_a_matrix_is_shaded_by_how_far_from_even(ranking: Result) -> None:
    *_, matrix = figures(ranking)
    shades = dict(re.findall(r'fill="(#\w+)"/><text class="cell"[^>]*>([\d.]+)<', matrix.svg)[::-1])
    by_text = {text: colour for colour, text in shades.items()}
    assert set(by_text) == {"60.0", "62.5", "40.0", "71.7", "37.5", "28.3"}
    blue = {text: int(colour[5:], 16) - int(colour[1:3], 16) for text, colour in by_text.items()}
    assert blue["71.7"] > blue["62.5"] > blue["60.0"] > 0 > blue["40.0"] > blue["37.5"] > blue["28.3"]


def test_differences_have_a_colour_where_two_are_told_apart(tested: Result) -> None:
    (found,) = [figure for figure in figures(tested) if figure.name == "differences-fluency"]
    cells = re.findall(r'<title>([^<]*)</title><rect [^>]*fill="(#\w+)"/><text[^>]*>([^<]*)<', found.svg)
    assert [text for *_, text in cells] == ["", "+1.50", "+2.00", "−1.50", "", "+0.50", "−2.00", "−0.50", ""]
    colours = [colour for _, colour, _ in cells]
    better, worse, neither = colours[1], colours[3], colours[0]
    assert colours == [neither, better, better, worse, neither, neither, worse, neither, neither]
    assert cells[1][0].startswith("good less =fair: +1.50 [")


def test_correlations_are_shaded_both_ways(tested: Result) -> None:
    (found,) = [figure for figure in figures(tested) if figure.name == "correlations-document"]
    cells = dict(re.findall(r'fill="(#\w+)"/><text[^>]*>([^<]*)<', found.svg))
    blue = {text: int(colour[5:], 16) - int(colour[1:3], 16) for colour, text in cells.items()}
    assert blue["0.29"] > blue["0.17"] > 0 > blue["−0.14"]


def _of_many(systems: int, columns: list[str]) -> Result:
    found = tuple(Column(name, "metric", "") for name in columns)
    samples = tuple(Sample("i", f"system {k}", "x") for k in range(systems))
    return Result(Table(samples, found, ()), {})


def test_of_thousands_of_systems_the_first_hundred_are_drawn() -> None:
    (figure,) = figures(_of_many(3_000, ["m"]))
    assert (_words(figure)[0], len(_words(figure))) == ("m ↑ (the first 100 of 3,000 systems)", 1 + 2 * 100 + 2)
    assert figure.height < 3_000


def test_a_matrix_of_more_than_forty_systems_is_not_drawn() -> None:
    names = [f"s{k}" for k in range(41)]
    table = Table(tuple(Sample("i", name, "x") for name in names), (Column("c", "criterion", ""),), ())
    result = Result(table, {}, {}, rankings=rankings((), (), names, ["c"]))
    assert [figure.name for figure in figures(result)] == ["win-rate-c"]


def test_file_names_are_safe_and_differ_on_every_disk() -> None:
    names = ["../../etc/x", "a", "A", "a/", "日" * 300, "日" * 301, "", "...", "con", "x\x00y"]
    found = [figure.name for figure in figures(_of_many(1, names))]
    assert len({name.casefold() for name in found}) == len(names)
    for name in found:
        assert re.fullmatch(r"mean[\w.-]*", name)
        assert len(name.encode()) <= 160


def test_a_long_name_is_cut_and_everything_stays_inside(result: Result) -> None:
    long = {"lead": "a name of more than twenty-eight letters", "システム二": "長い名前" * 9}
    table = result.table
    samples = tuple(replace(s, system=long.get(s.system, s.system)) for s in table.samples)
    estimates = {(long.get(system, system), column): e for (system, column), e in result.estimates.items()}
    (mean, *_) = figures(Result(replace(table, samples=samples, scores=(), failures=()), estimates))
    words = _words(mean)
    assert "a name of more than twenty-…" in words
    assert "長い名前長い名前長い名前長…" in words
    for element in ElementTree.fromstring(mean.svg).iter(f"{SVG}text"):
        if not (element.get("x") or "").endswith("%"):
            assert 0 < float(element.get("x") or 0) <= mean.width
            assert 0 < float(element.get("y") or 0) < mean.height


def test_nothing_to_draw_is_an_empty_picture() -> None:
    assert figures(_of_many(2, [])) == ()
    assert ElementTree.fromstring(render(_of_many(2, []))).tag == f"{SVG}svg"


def test_files_are_written_one_for_each_or_one_for_all(result: Result, tmp_path: Path) -> None:
    found = figures(result)
    paths = write(result, tmp_path / "charts", "svg")
    assert [path.read_text("utf-8") for path in paths] == [figure.svg for figure in found]
    assert sorted(path.name for path in (tmp_path / "charts").iterdir()) == sorted(f"{f.name}.svg" for f in found)
    assert write(result, tmp_path / "all.svg", "svg") == (tmp_path / "all.svg",)
    assert (tmp_path / "all.svg").read_text("utf-8") == render(result)
    with pytest.raises(StorageError):
        write(result, tmp_path / "all.svg" / "charts", "svg")


def test_without_a_browser_png_says_what_it_takes(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match=r"drawn by Chromium or Chrome.*--format svg"):
        write(result, tmp_path / "charts", "png")
    assert not (tmp_path / "charts").exists()


@pytest.mark.browser
def test_a_png_has_every_pixel_twice(result: Result, tmp_path: Path) -> None:
    if not any(map(shutil.which, BROWSERS)):
        pytest.skip("needs Chromium, which `make test-all` installs")
    (path, *_) = write(replace(result, table=replace(result.table, columns=result.table.columns[:1])), tmp_path, "png")
    (figure, *_) = figures(result)
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(data) > 5_000, "a blank picture of this size has 1 kB"
    assert int.from_bytes(data[20:24]) == 2 * figure.height
