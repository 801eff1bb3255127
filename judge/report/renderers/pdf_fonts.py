"""Find a font file that has the letters of a chart, and make of it a font that a PDF can embed.

A PDF without its fonts is drawn with those of the reader, which may have no letter of the text;
journals refuse it.
"""

from __future__ import annotations

import io
import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from string import printable
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from fontTools.ttLib import TTFont

# File names in lower case. Linux comes first, then macOS and Windows. reportlab brings Vera along.
_WESTERN = (
    "vera.ttf",
    "dejavusans.ttf",
    "notosans-regular.ttf",
    "arial.ttf",
    "segoeui.ttf",
)
_ALL_ASIAN = "notosanscjk-regular.ttc"
_ASIAN = {
    "ja": (
        *(_ALL_ASIAN, "notosanscjkjp-regular.otf", "notosansjp-regular.otf"),
        *("ipaexg.ttf", "ipagp.ttf", "takaopgothic.ttf", "vl-gothic-regular.ttf"),
        *("ヒラギノ角ゴシック w3.ttc", "yugothm.ttc", "meiryo.ttc", "msgothic.ttc"),
    ),
    "ko": (
        *(_ALL_ASIAN, "notosanscjkkr-regular.otf", "notosanskr-regular.otf"),
        *("nanumgothic.ttf", "applesdgothicneo.ttc", "malgun.ttf"),
    ),
    "zh": (
        *(_ALL_ASIAN, "notosanscjksc-regular.otf", "notosanssc-regular.otf"),
        *("wqy-microhei.ttc", "wqy-zenhei.ttc"),
        *("hiragino sans gb.ttc", "stheiti light.ttc"),
        *("msyh.ttc", "simhei.ttf", "simsun.ttc"),
    ),
}
_FACES = {"ja": " JP", "ko": " KR", "zh": " SC"}
"""What the family of a face ends with, in a file that has one face per language."""
_FONT_SUFFIXES = (".ttf", ".ttc", ".otf")
# The tables that a PDF needs. Others, such as those of ligatures, would only be read and dropped.
_TABLES = {
    *("OS/2", "cmap", "head", "hhea", "hmtx", "maxp", "name", "post"),
    *("glyf", "loca", "CFF ", "GlyphOrder"),
}
_LARGEST_ERROR = 1.0  # units of a font, of which 1,000 or more make an em


@dataclass(frozen=True, slots=True)
class EmbeddedFont:
    """The letters of a chart as TrueType files. They are the same if no bold letters were found."""

    regular: bytes
    bold: bytes


def embedded_font(letters: str, language: str) -> EmbeddedFont | None:
    """Return a font with these letters; `language` chooses the shapes of Chinese characters.

    None if no font file that was found has all of them, and for letters that are written from
    right to left: reportlab would not order them.
    """
    if any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in letters):
        return None
    # With all printable ASCII, the charts of a report share more fonts.
    embedded_letters = {*letters, *printable.strip()}
    letters = "".join(sorted(embedded_letters))
    path_by_name = _font_files()
    for font_name in _names(language):
        if font_name not in path_by_name:
            continue
        regular = _subset(path_by_name[font_name], letters, language)
        if regular is None:
            continue
        bold = None
        bold_names = [name for name in _bold_names(font_name) if name in path_by_name]
        if bold_names:
            bold = _subset(path_by_name[bold_names[0]], letters, language)
        return EmbeddedFont(regular, bold or regular)
    return None


def _names(language: str) -> Iterator[str]:
    """Yield the names of font files, with those of the language first."""
    yield from _WESTERN
    for code in sorted(_ASIAN, key=lambda code: code != language):
        yield from _ASIAN[code]


def _bold_names(font_name: str) -> tuple[str, ...]:
    """Return how the file with the bold letters may be called, such as arialbd.ttf."""
    path = Path(font_name)
    root = path.stem.removesuffix("-regular")
    return tuple(f"{root}{ending}{path.suffix}" for ending in ("-bold", "bd", "b"))


def font_folders() -> list[Path]:
    """Return the folders in which reportlab and systems keep fonts."""
    import reportlab

    home = Path.home()
    folders = [
        Path(reportlab.__file__).parent / "fonts",
        Path("/usr/share/fonts"),
        Path("/usr/local/share/fonts"),
        home / ".local/share/fonts",
        home / ".fonts",
        Path("/System/Library/Fonts"),
        Path("/Library/Fonts"),
        home / "Library/Fonts",
    ]
    if "WINDIR" in os.environ:
        folders.append(Path(os.environ["WINDIR"]) / "Fonts")
    if "LOCALAPPDATA" in os.environ:
        folders.append(Path(os.environ["LOCALAPPDATA"]) / "Microsoft/Windows/Fonts")
    return folders


def _font_files() -> dict[str, Path]:
    """Return the font files of this machine by their names in lower case."""
    path_by_name: dict[str, Path] = {}
    for folder in font_folders():
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in _FONT_SUFFIXES:
                # macOS splits ギ into two characters.
                font_name = unicodedata.normalize("NFC", path.name).lower()
                path_by_name.setdefault(font_name, path)
    return path_by_name


@lru_cache(maxsize=8)
def _subset(path: Path, letters: str, language: str) -> bytes | None:
    """Return a TrueType font of these letters; None if the file lacks one or cannot be read."""
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTLibError

    content = io.BytesIO()
    try:
        with _face(path, language) as font:
            cmap = font.getBestCmap() or {}
            if any(ord(letter) not in cmap for letter in letters):
                return None
            for table in set(font.keys()) - _TABLES:
                del font[table]
            subsetter = Subsetter(Options(notdef_outline=True, hinting=True))
            subsetter.populate(text=letters)
            subsetter.subset(font)
            if "CFF " in font:
                _make_truetype(font)
            _rename(font, letters)
            font.save(content)
    except (OSError, TTLibError):
        return None
    return content.getvalue()


def _face(path: Path, language: str) -> TTFont:
    """Open a font file, of several faces the one for the language, or else the first."""
    from fontTools.ttLib import TTCollection, TTFont

    if path.suffix.lower() != ".ttc":
        return TTFont(path, lazy=True, recalcTimestamp=False)
    suffix = _FACES.get(language, "")
    with TTCollection(path, lazy=True) as faces:
        families = [str(face["name"].getDebugName(1)) for face in faces]
    matching = [
        number for number, family in enumerate(families) if family.endswith(suffix)
    ]
    number = matching[0] if matching else 0
    return TTFont(path, fontNumber=number, lazy=True, recalcTimestamp=False)


def _rename(font: Any, letters: str) -> None:
    """Give a subset a name of its own: reportlab takes fonts of one name for the same font."""
    names = font["name"]
    base_name = names.getDebugName(6) or "font"
    names.names = []
    checksum = crc32(letters.encode())
    # 6: the PostScript name, on Windows (3), in Unicode (1) and American English (0x409).
    names.setName(f"{base_name}-{checksum:08x}", 6, 3, 1, 0x409)


def _make_truetype(font: Any) -> None:
    """Replace PostScript outlines, such as those of Noto Sans CJK: reportlab cannot embed them."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.cu2quPen import Cu2QuPen
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    outlines = font.getGlyphSet()
    glyphs = {}
    for glyph_name in font.getGlyphOrder():
        pen = TTGlyphPen(outlines)
        # TrueType's outlines run the other way round.
        outlines[glyph_name].draw(Cu2QuPen(pen, _LARGEST_ERROR, reverse_direction=True))
        glyphs[glyph_name] = pen.glyph()
    del font["CFF "]
    builder = FontBuilder(font=font)
    builder.isTTF = True
    builder.setupGlyf(glyphs)
    builder.setupMaxp()
    font.sfntVersion = "\0\1\0\0"
