"""PNG files, drawn by a program in the browser's place and by a browser."""

from __future__ import annotations

import re
import shutil
import struct
import sys
import zlib
from base64 import b64encode
from pathlib import Path

import pytest

from judge.core.errors import ConfigError
from judge.report.renderers.svg import BROWSERS, pictures

RED = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}"><rect width="{0}" height="{1}" fill="red"/></svg>'
)


def _browser(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A program in the browser's place; `page` is what it is shown."""
    path = folder / "chromium"
    opened = "import re, sys, urllib.request\npage = urllib.request.urlopen(sys.argv[-1]).read().decode()"
    path.write_text(f"#!{sys.executable}\n{opened}\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(path) if name == "chrome" else None)


def test_the_browser_is_shown_every_drawing_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "print([f'data:image/png;base64,{one}' for one in re.findall('svg.xml;base64,([^\"]*)', page)])"
    _browser(tmp_path, monkeypatch, script)
    drawings = [(RED.format(3, 2), 3, 2), ("<svg>日本</svg>", 4, 5)]
    assert pictures(drawings) == [svg.encode() for svg, *_ in drawings]


@pytest.mark.parametrize(("size", "scale"), [((600, 8_000), 2), ((600, 8_001), 1), ((16_000, 3), 1)])
def test_it_has_twice_the_pixels_where_they_are_not_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], scale: int
) -> None:
    script = "print('data:image/png;base64,' + re.search('data-scale=\"(.)\"', page)[1] * 4)"
    _browser(tmp_path, monkeypatch, script)
    (drawn,) = pictures([("<svg/>", *size)])
    assert b64encode(drawn) == str(scale).encode() * 4


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("sys.exit('no display')", "chromium drew nothing: no display"),
        ("print('data:image/png;base64,AAAA data:,')", "chromium drew 1 of 2 charts; take --format svg"),
    ],
)
def test_a_browser_that_does_not_draw_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    _browser(tmp_path, monkeypatch, script)
    with pytest.raises(ConfigError, match=re.escape(said)):
        pictures([("<svg/>", 10, 10)] * 2)


def test_a_browser_that_does_not_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: str(tmp_path / "gone"))
    with pytest.raises(ConfigError, match="gone drew nothing"):
        pictures([("<svg/>", 10, 10)])


def test_too_many_pixels_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _browser(tmp_path, monkeypatch, "")
    with pytest.raises(ConfigError, match="600 × 16001 pixels are too many for one PNG; give a folder"):
        pictures([("<svg/>", 600, 16_001)])


@pytest.mark.browser
def test_a_browser_draws_all_of_it() -> None:
    if not any(map(shutil.which, BROWSERS)):
        pytest.skip("needs Chromium, which `make test-all` installs")
    sizes = [(40, 3), (30, 900)]
    for (width, height), png in zip(sizes, pictures([(RED.format(*size), *size) for size in sizes]), strict=True):
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        assert struct.unpack_from(">II", png, 16) == (2 * width, 2 * height)
        assert _rows(png) == 2 * height, "its last rows are not red"


def _rows(png: bytes) -> int:
    """Up to which row a PNG is red all over: the first row says it, and every other one has the difference."""
    at, data = 8, b""
    while at < len(png):
        size, kind = struct.unpack_from(">I4s", png, at)
        data += png[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    width, height, _, colour = struct.unpack_from(">IIBB", png, 16)
    channels = {2: 3, 6: 4}[colour]
    above = bytes(width * channels)
    rows = zlib.decompress(data)
    for place in range(height):
        start = place * (1 + len(above))
        above = _unfiltered(rows[start], rows[start + 1 : start + 1 + len(above)], above, channels)
        if above != b"\xff\x00\x00\xff"[:channels] * width:
            return place
    return height


def _unfiltered(kind: int, row: bytes, above: bytes, channels: int) -> bytes:
    """PNG 1.2, section 6."""
    found = bytearray(row)
    for k in range(len(row)):
        left, up = found[k - channels] if k >= channels else 0, above[k]
        corner = above[k - channels] if k >= channels else 0
        nearest = min((left, up, corner), key=lambda one: abs(left + up - corner - one))
        found[k] = (row[k] + (0, left, up, (left + up) // 2, nearest)[kind]) % 256
    return bytes(found)
