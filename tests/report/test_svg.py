"""Charts as separate files: SVG, and PNG with resvg-py."""

from __future__ import annotations

import re
import struct
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from string import printable
from xml.etree import ElementTree

import pytest

from judge.core.errors import ConfigError, MissingExtra, StorageError
from judge.report.charts.axes import scale
from judge.report.charts.bars import Bar, Panel, intervals
from judge.report.document import Chart, Details, Document, Section
from judge.report.renderers import pdf_fonts, svg
from judge.results.result import Result

EVIL = "evil|<b>*sys*"
SVG = "{http://www.w3.org/2000/svg}"


def _chart(name: str, title: str = "Mean", caption: str = "") -> Chart:
    return intervals(
        name, title, ["a", "b"], [Panel(scale(0, 1), [Bar(1.0), Bar(0.5)])], caption=caption
    )


def _document(*charts: Chart) -> Document:
    """Return a document with charts in the summary, a section and a fold."""
    fold = Details("More", (charts[-1],))
    return Document(
        "T", summary=charts[:1], sections=(Section("s", "S", lambda: [*charts[:-1], fold]),)
    )


def _texts(text: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(text).iter(f"{SVG}text")]


def test_every_chart_of_a_document_is_drawn_once_below_the_other() -> None:
    one, two, three = (_chart(name, name.title()) for name in ("one", "two", "three"))
    root = ElementTree.fromstring(svg.render(_document(one, two, three)))
    places = [
        (float(e.get("y") or 0), float(e.get("height") or 0))
        for e in root.iter(f"{SVG}svg")
        if e.get("y")
    ]
    assert len(places) == 3
    assert all(y + height < below for (y, height), (below, _) in pairwise(places))
    assert places[-1][0] + places[-1][1] < float(root.get("height") or 0)
    titles = [
        word
        for word in _texts(svg.render(_document(one, two, three)))
        if word in ("One", "Two", "Three")
    ]
    assert titles == ["One", "Two", "Three"]


def test_a_file_needs_no_stylesheet_and_changes_no_page() -> None:
    text = svg.standalone([_chart("n", "</svg><script>", caption="<b>\x1b")])
    root = ElementTree.fromstring(text)
    assert (root.tag, root.get("role"), root.get("aria-label")) == (
        f"{SVG}svg",
        "img",
        "</svg><script>",
    )
    assert root.findtext(f"{SVG}desc") == "<b>\\x1b"
    style = root.findtext(f"{SVG}style") or ""
    assert all(line.startswith(".judge ") for line in style.strip().split("\n"))
    classes = {name for e in root.iter() for name in (e.get("class") or "").split()}
    assert classes - {"label", "value", "judge"} <= set(re.findall(r"\.([\w-]+) {", style))
    assert not re.search(r"href|url\(|var\(|@import|<script", text)


def test_a_long_title_is_cut_and_the_picture_is_wide_enough() -> None:
    root = ElementTree.fromstring(svg.standalone([_chart("n", "長い" * 60)]))
    (title, *_) = root.iter(f"{SVG}text")
    assert title.text == "長い" * 19 + "長…"
    assert float(root.get("width") or 0) > 79 * 7.5


def test_a_caption_stands_below_its_chart_in_lines_that_fit() -> None:
    """Regression: a picture had orange bars, and only the page said what the colour means."""
    caption = " ".join(f"orange{n}" for n in range(40))
    root = ElementTree.fromstring(svg.standalone([_chart("one", caption=caption), _chart("two")]))
    texts = {e.text or "": float(e.get("y") or 0) for e in root.findall(f"{SVG}text")}
    lines = {text: y for text, y in texts.items() if text.startswith("orange")}
    assert " ".join(lines).split() == caption.split()
    assert all(6.5 * len(line) <= float(root.get("width") or 0) for line in lines)
    first_chart, second_chart = (float(e.get("y") or 0) for e in root.findall(f"{SVG}svg"))
    assert all(first_chart < y < second_chart for y in lines.values())


def test_nothing_to_draw_is_an_empty_picture() -> None:
    assert ElementTree.fromstring(svg.render(Document("T"))).tag == f"{SVG}svg"


def test_files_are_written_one_for_each_or_one_for_all(tmp_path: Path) -> None:
    document = _document(_chart("one"), _chart("two"))
    paths = svg.write(document, tmp_path / "charts", "svg")
    assert paths == (tmp_path / "charts/one.svg", tmp_path / "charts/two.svg")
    assert [path.read_text("utf-8") for path in paths] == [
        svg.standalone([chart]) for chart in svg.charts(document)
    ]
    assert svg.write(document, tmp_path / "all.svg", "svg") == (tmp_path / "all.svg",)
    assert (tmp_path / "all.svg").read_text("utf-8") == svg.render(document)
    with pytest.raises(StorageError):
        svg.write(document, tmp_path / "all.svg" / "charts", "svg")


def test_file_names_are_safe_and_differ_on_every_disk(tmp_path: Path) -> None:
    names = ["../../etc/x", "a", "A", "a/", "日" * 300, "日" * 301, "", "...", "x\x00y"]
    written = [path.name for path in svg.write(_document(*map(_chart, names)), tmp_path, "svg")]
    assert len({name.casefold() for name in written}) == len(names)
    for name in written:
        assert re.fullmatch(r"[\w-][\w.-]*\.svg", name)
        assert len(name.encode()) <= 160


@pytest.mark.extra
def test_png_has_every_pixel_twice(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="needs resvg-py: pip install textjudge[png]")
    document = _document(_chart("one"), _chart("two"))
    (path, _) = svg.write(document, tmp_path, "png")
    data = path.read_bytes()
    (root, height) = (
        ElementTree.fromstring(svg.standalone([_chart("one")])),
        struct.unpack_from(">I", data, 20)[0],
    )
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert height == 2 * int(root.get("height") or 0)
    blank = svg.png('<svg xmlns="http://www.w3.org/2000/svg" width="500" height="200"/>')
    assert len(data) > 2 * len(blank)


def test_png_without_resvg_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingExtra, match=r"pip install 'textjudge\[png\]'"):
        svg.write(_document(_chart("one")), tmp_path / "charts", "png")
    assert not (tmp_path / "charts").exists()


def test_a_result_shows_its_charts_by_name(tested: Result) -> None:
    assert "fluency ↑" in _texts(tested.plot("fluency").svg)
    both = [word for word in _texts(tested.plot("scores").svg) if word.startswith("Distribution")]
    assert both == ["Distribution: fluency", "Distribution: style"]
    assert tested.plot()._repr_svg_() == tested.plot().svg
    with pytest.raises(ConfigError, match=r"'fluncy'.*'fluency'.*known: .*overall"):
        tested.plot("fluncy")
    with pytest.raises(ConfigError, match="no charts"):
        svg.plot(Document("T"), "mean")


def test_a_plot_is_saved_in_the_format_of_its_ending(tested: Result, tmp_path: Path) -> None:
    plot = tested.plot("fluency")
    plot.save(tmp_path / "figures" / "fluency.svg")
    assert (tmp_path / "figures" / "fluency.svg").read_text("utf-8") == plot.svg
    for name in ("fluency.gif", "fluency"):
        with pytest.raises(ConfigError, match="svg"):
            plot.save(tmp_path / name)
        assert not (tmp_path / name).exists()


@pytest.mark.extra
def test_a_plot_is_saved_as_png(tested: Result, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="needs resvg-py: pip install textjudge[png]")
    tested.plot("fluency").save(tmp_path / "fluency.png")
    assert (tmp_path / "fluency.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.extra
def test_a_result_as_png_is_bytes(tested: Result) -> None:
    pytest.importorskip("resvg_py", reason="needs resvg-py: pip install textjudge[png]")
    assert tested.report("png").startswith(b"\x89PNG")
    assert tested.plot("fluency").png.startswith(b"\x89PNG")


def test_the_worst_texts_are_a_frame(result: Result, ranking: Result, tested: Result) -> None:
    worst = result.worst(3)
    assert worst.columns.to_list() == [
        "item",
        "system",
        "column",
        "score",
        "reason",
        "source",
        "output",
    ]
    assert worst[["item", "system", "column", "score"]].to_numpy().tolist()[0] == [
        "doc-1",
        EVIL,
        "coherence",
        1.0,
    ]
    assert len({*zip(worst["item"], worst["system"], strict=True)}) == 3
    lowest = result.worst(1, "一貫性").iloc[0]
    assert (lowest["item"], lowest["system"], lowest["output"]) == (
        "doc-3",
        "lead",
        result.table.samples[6].output,
    )
    assert lowest["reason"].startswith("原文と一致している")
    assert result.worst(2, "rougeL")[["item", "score"]].to_numpy().tolist() == [
        ["doc-3", 0.0],
        ["doc-3", 0.0],
    ]
    assert tested.worst(1, "delta")["score"].to_list() == [1.0]
    samples = [replace(s, extra={"topic": s.item, "score": 0}) for s in result.table.samples]
    described = replace(result, table=replace(result.table, samples=tuple(samples))).worst(3)
    assert described["topic"].to_list() == worst["item"].to_list()
    assert described["data.score"].to_list() == [0, 0, 0]
    with pytest.raises(ConfigError, match=r"'coherent'.*'coherence'"):
        result.worst(3, "coherent")
    with pytest.raises(ConfigError, match=r"ranking.*single text"):
        ranking.worst()


@pytest.mark.extra
def test_a_pdf_is_as_large_as_the_chart_in_points(tmp_path: Path) -> None:
    pytest.importorskip("svglib", reason="needs svglib: pip install textjudge[pdf]")
    document = _document(_chart("one"))
    (path,) = svg.write(document, tmp_path, "pdf")
    content = path.read_bytes()
    assert content.startswith(b"%PDF-")
    picture = ElementTree.fromstring(svg.standalone([_chart("one")]))
    width, height = (0.75 * int(picture.get(side) or 0) for side in ("width", "height"))
    box = re.search(rb"/MediaBox \[ 0 0 ([0-9.]+) ([0-9.]+) \]", content)
    assert box is not None
    assert (float(box[1]), float(box[2])) == (width, height)


def _font_file(folder: Path, file_name: str, letters: str) -> None:
    """Write a font with PostScript outlines, like Noto Sans CJK. Its letters are squares."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.t2CharStringPen import T2CharStringPen

    glyph_of_letter = {ord(letter): f"u{ord(letter):04X}" for letter in letters}
    glyphs = [".notdef", *glyph_of_letter.values()]
    pen = T2CharStringPen(1000, {})
    pen.moveTo((0, 0))
    pen.lineTo((0, 700))
    pen.lineTo((700, 700))
    pen.closePath()
    outline = pen.getCharString()
    family = Path(file_name).stem
    builder = FontBuilder(1000, isTTF=False)
    builder.setupGlyphOrder(glyphs)
    builder.setupCharacterMap(glyph_of_letter)
    builder.setupCFF(family, {}, dict.fromkeys(glyphs, outline), {})
    builder.setupHorizontalMetrics(dict.fromkeys(glyphs, (1000, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "psName": family})
    builder.setupOS2()
    builder.setupPost()
    builder.save(folder / file_name)


@pytest.fixture
def fonts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Install three fonts with Asian letters next to those of reportlab."""
    pytest.importorskip("svglib", reason="needs svglib: pip install textjudge[pdf]")
    import reportlab

    _font_file(tmp_path, "NotoSansJP-Regular.otf", printable + "要約正確さシステムñ")
    _font_file(tmp_path, "NotoSansKR-Regular.otf", printable + "요약과要約")
    _font_file(tmp_path, "NotoSansSC-Regular.otf", printable + "要約摘要简体")
    bundled = Path(reportlab.__file__).parent / "fonts"
    monkeypatch.setattr(pdf_fonts, "font_folders", lambda: [bundled, tmp_path])


@pytest.mark.parametrize(
    ("name", "language", "font"),
    [
        ("plain ñ −1", "", b"BitstreamVeraSans-Roman"),
        ("正確さ", "", b"NotoSansJP-Regular"),
        ("要約", "ja", b"NotoSansJP-Regular"),
        ("要約", "ko", b"NotoSansKR-Regular"),
        ("要約", "zh", b"NotoSansSC-Regular"),
        ("要約システム ñ", "zh", b"NotoSansJP-Regular"),
        ("요약", "", b"NotoSansKR-Regular"),
        ("简体", "", b"NotoSansSC-Regular"),
    ],
)
@pytest.mark.extra
@pytest.mark.usefixtures("fonts")
def test_a_pdf_embeds_a_font_with_its_letters(name: str, language: str, font: bytes) -> None:
    text = f'<text x="0" y="10" font-family="{svg._FONTS}">{name}</text>'
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" width="99" height="20">{text}</svg>'
    content = svg.pdf(picture, language)
    base_fonts = set(re.findall(rb"/BaseFont /\w+\+([\w-]+)-\w+", content))
    assert base_fonts == {font}
    assert b"/Helvetica" not in content
    assert b"/FontFile2" in content


@pytest.mark.extra
@pytest.mark.usefixtures("fonts")
def test_charts_of_other_letters_embed_fonts_of_other_names() -> None:
    names = []
    for name in ("正確さ", "システム"):
        text = f'<text x="0" y="10" font-family="{svg._FONTS}">{name}</text>'
        picture = f'<svg xmlns="http://www.w3.org/2000/svg" width="99" height="20">{text}</svg>'
        names += re.findall(rb"/BaseFont /(\S+)", svg.pdf(picture))
    assert len(set(names)) == 2


def test_a_pdf_without_svglib_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "svglib.svglib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'textjudge\[pdf\]'"):
        svg.pdf('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')


def test_a_figure_has_no_title() -> None:
    document = _document(_chart("one"))
    with_title = _texts(svg.standalone([_chart("one")]))
    without = _texts(svg.figure(document, "one", "svg").decode())
    assert set(with_title) - set(without) == {_chart("one").title}
    with pytest.raises(ConfigError, match="'one'"):
        svg.figure(document, "on", "svg")


@pytest.mark.parametrize("name", ["ملخص", "תקציר", "สรุป", "सारांश", "요약简体", "漢", "🙂"])
@pytest.mark.extra
@pytest.mark.usefixtures("fonts")
def test_letters_that_no_font_of_a_pdf_has_are_refused(name: str) -> None:
    picture = f'<svg xmlns="http://www.w3.org/2000/svg"><text x="0" y="10">{name}</text></svg>'
    with pytest.raises(ConfigError, match=r"Noto Sans CJK.*svg or png"):
        svg.pdf(picture)
