"""The page in a real browser: nothing it needs comes from elsewhere, and its own script runs under its own policy."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from judge.report import Result

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=2000",
]


def opened(page: str, folder: Path) -> tuple[str, str]:
    """The document as it stands after loading, and what the browser's console said."""
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("needs Chromium, which `make test-all` installs")
    file = folder / "report.html"
    file.write_text(page, encoding="utf-8")
    command = [browser, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, "\n".join(re.findall(r".*CONSOLE.*", done.stderr))


@pytest.mark.browser
def test_the_page_loads_without_a_word_on_the_console(result: Result, tmp_path: Path) -> None:
    page = result.report("html")
    document, console = opened(page, tmp_path)
    assert console == ""
    assert "文書2" in document
    assert re.search(r'<[^>]*class="controls"[^>]*hidden', page)
    assert not re.search(r'<[^>]*class="controls"[^>]*hidden', document), "the page's own script did not run"


@pytest.mark.browser
def test_a_script_that_is_not_the_pages_own_does_not_run(result: Result, tmp_path: Path) -> None:
    page = result.report("html").replace("</body>", "<script>document.title = 'pwned'</script></body>")
    document, console = opened(page, tmp_path)
    assert "<title>pwned" not in document
    assert "Content Security Policy" in console


@pytest.mark.browser
@pytest.mark.parametrize(
    ("typed", "items", "said"),
    [
        ("", {"doc-1", "文書2", "doc-3"}, ""),
        ("NAMES bridge", {"doc-1"}, "1 of 3 items, 24 hits"),
        ("&quot;neither. &lt;script&quot;", {"doc-1"}, "1 of 3 items, 1 hit"),
        ("ＢＲＩＤＧＥ", {"doc-1"}, "1 of 3 items, 14 hits"),
        ("橋 直す", {"文書2"}, "1 of 3 items, 8 hits"),
        ("bridge 橋", set(), "0 of 3 items, 0 hits"),
    ],
)
def test_the_search_finds_all_of_its_words_in_texts_reasons_and_replies(
    ranking: Result, tmp_path: Path, typed: str, items: set[str], said: str
) -> None:
    page = ranking.report("html").replace('id="find"', f'id="find" value="{typed}"')
    document, console = opened(page, tmp_path)
    assert console == ""
    shown = re.findall(r'<details class="item"(?![^>]* hidden)[^>]*>\s*<summary><b dir="auto">([^<]*)', document)
    assert set(shown) == items
    (found,) = re.findall(r'<output id="found">([^<]*)</output>', document)
    assert found == said
