"""SVG as PNG, drawn by the Chromium or Chrome of the machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path

from judge.core.errors import ConfigError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_MOST = 16_000  # pixels a side that Chromium can draw
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=10000",
    "--dump-dom",
)
# One page draws them all, as a browser takes a second or two to start. When it has loaded, its images have.
_PAGE = """<!doctype html><meta charset="utf-8"><body>{images}<script>
addEventListener("load", () => {{
  for (const image of [...document.images]) {{
    const canvas = document.createElement("canvas"), scale = Number(image.dataset.scale);
    canvas.width = scale * image.width;
    canvas.height = scale * image.height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    image.replaceWith(canvas.toDataURL("image/png"), "\\n");
  }}
}});
</script>"""


def pictures(drawings: Sequence[tuple[str, int, int]]) -> list[bytes]:
    """The PNG of each SVG, which has so many pixels across and down, twice as many where that is not too many.

    Raises ConfigError where there is no browser or it does not draw them.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise ConfigError(
            "png is drawn by Chromium or Chrome, and neither is on the PATH; --format svg needs neither of them"
        )
    for _, width, height in drawings:
        if max(width, height) > _MOST:
            raise ConfigError(
                f"{width} × {height} pixels are too many for one PNG; give a folder, or take --format svg"
            )
    found = re.findall("data:image/png;base64,([A-Za-z0-9+/=]+)", _dumped(browser, drawings))
    if len(found) != len(drawings):
        raise ConfigError(f"{browser} drew {len(found)} of {len(drawings)} charts; take --format svg")
    return [b64decode(text) for text in found]


def _dumped(browser: str, drawings: Sequence[tuple[str, int, int]]) -> str:
    """The page as the browser leaves it."""
    images = "".join(
        f'<img width="{width}" height="{height}" data-scale="{2 if 2 * max(width, height) <= _MOST else 1}" '
        f'src="data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}">'
        for svg, width, height in drawings
    )
    # A browser refuses its sandbox to root; what it is shown is our own drawing, in which texts are inert.
    root = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = Path(folder) / "charts.html"
        page.write_text(_PAGE.format(images=images), encoding="utf-8")
        command = [browser, *_FLAGS, *root, f"--user-data-dir={folder}/profile", page.as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)  # noqa: S603
        except subprocess.CalledProcessError as error:
            raise ConfigError(f"{browser} drew nothing: {error.stderr.strip()[-300:]}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"{browser} drew nothing: {error}") from error
    return done.stdout
