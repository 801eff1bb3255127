"""What the scripts of reproduced figures share: data files, figures, tables and the page README.md.

Each script defines `FILES` and a function that returns a `Paper`, and calls `main` with both. It
prints every published figure beside ours. `--write` puts the same into its part of README.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.core.records import Request

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).with_name("README.md")
WIDTH = 80
# A text of a prompt, between marks such as <output 1f3c> and </output 1f3c>.
_MARKED_TEXT = re.compile(r"<(\w+) ([0-9a-f]+)>\n(.*?)\n</\1 \2>", re.DOTALL)
HEADER = ("published", "ours", "difference", "reason")


@dataclass(frozen=True)
class DataFile:
    """A file of the data folder, and where its content is public."""

    name: str
    origin: str


@dataclass(frozen=True)
class Figure:
    """A published figure and ours.

    `published` is a text, because its printed digits matter: the figures are equal if ours, rounded
    to as many decimals, is the same text. `reason` says why they are not.
    """

    what: str
    published: str
    ours: float
    reason: str = ""

    @property
    def decimals(self) -> int:
        """The number of printed decimals."""
        return len(self.published.partition(".")[2])

    @property
    def rounded(self) -> str:
        """Our figure with the decimals of the published one."""
        return f"{self.ours:.{self.decimals}f}"

    @property
    def equal(self) -> bool:
        """Whether the figures are equal to the last printed digit."""
        return self.rounded == self.published

    @property
    def difference(self) -> str:
        """Ours minus the published figure, with its decimals; empty if they are equal."""
        if self.equal:
            return ""
        return f"{float(self.rounded) - float(self.published):+.{self.decimals}f}"


@dataclass(frozen=True)
class Table:
    """Figures of one kind. `what` is the heading of their first column."""

    what: str
    figures: Sequence[Figure]
    note: str = ""


@dataclass(frozen=True)
class Paper:
    """The figures of one paper, how we computed ours, and the published ones that are left out."""

    title: str
    method: str
    tables: Sequence[Table]
    left_out: str = ""

    @property
    def figures(self) -> list[Figure]:
        """The figures of all tables."""
        return [figure for table in self.tables for figure in table.figures]

    @property
    def unexplained(self) -> list[Figure]:
        """The figures that differ without a reason."""
        return [
            figure for figure in self.figures if not figure.equal and not figure.reason
        ]


def data_folder() -> Path:
    """Return `data` in the folder that JUDGE_SHARED names (default: ../shared)."""
    return Path(os.environ.get("JUDGE_SHARED", ROOT.parent / "shared")) / "data"


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file with one JSON object per line, also a compressed one."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return [json.loads(line) for line in content.decode("utf-8").splitlines()]


def shown_texts(request: Request) -> dict[str, str]:
    """Return the texts that a prompt shows, by name: `source`, `output`, `A`."""
    prompt = request.messages[0]["content"]
    return {name: text for name, _, text in _MARKED_TEXT.findall(prompt)}


def main(files: Sequence[DataFile], reproduce: Callable[[Path], Paper]) -> None:
    """Print the figures.

    Exit with 1 if one differs without a reason, and with 2 if a data file is missing.
    """
    script = Path(sys.argv[0])
    parser = argparse.ArgumentParser(
        description="Compute published figures again, from the data in $JUDGE_SHARED/data."
    )
    parser.add_argument(
        "--write", action="store_true", help=f"put the tables into {PAGE.name}"
    )
    write = parser.parse_args().write
    folder = data_folder()
    missing = [file for file in files if not (folder / file.name).exists()]
    if missing:
        print(f"{script.name}: {folder} lacks", file=sys.stderr)
        for file in missing:
            print(f"  {file.name}: {file.origin}", file=sys.stderr)
        print("Set JUDGE_SHARED to the folder that holds data/.", file=sys.stderr)
        sys.exit(2)
    paper = reproduce(folder)
    print(as_text(paper))
    if write:
        page = PAGE.read_text("utf-8")
        section = as_markdown(script.name, files, paper)
        PAGE.write_text(with_section(page, script.name, section), "utf-8")
    for figure in paper.unexplained:
        print(f"{script.name}: {figure.what} differs without a reason", file=sys.stderr)
    sys.exit(1 if paper.unexplained else 0)


def with_section(page: str, script: str, section: str) -> str:
    """Return the page with the script's section replaced. Raises ValueError if it has none."""
    start, end = _marks(script)
    if start not in page or end not in page:
        raise ValueError(f"{PAGE} lacks the line {start} or {end}")
    before = page.partition(start)[0]
    after = page.partition(end)[2]
    return f"{before}{start}\n{section}\n{end}{after}"


def section_of(page: str, script: str) -> str:
    """Return the script's section of the page, without its marks."""
    start, end = _marks(script)
    return page.partition(f"{start}\n")[2].partition(f"\n{end}")[0]


def as_markdown(script: str, files: Sequence[DataFile], paper: Paper) -> str:
    """Return the section of README.md."""
    blocks = [f"## {paper.title}", f"`{script}`. {paper.method}"]
    letters = _letters(paper)
    for table in paper.tables:
        rows = _rows(table, letters)
        head = [_markdown_row(rows[0]), "|---" * len(rows[0]) + "|"]
        blocks += [table.note, "\n".join([*head, *map(_markdown_row, rows[1:])])]
    blocks += [*_explanations(paper, letters), _data_note(files)]
    return "\n\n".join(_wrapped(block, 120) for block in blocks if block)


def as_text(paper: Paper) -> str:
    """Return the same for a terminal, without where the data are public."""
    blocks = [paper.title, _plain(paper.method)]
    letters = _letters(paper)
    for table in paper.tables:
        blocks += [_plain(table.note), _aligned(_rows(table, letters))]
    blocks += map(_plain, _explanations(paper, letters))
    equal = sum(figure.equal for figure in paper.figures)
    blocks.append(
        f"{equal} of {len(paper.figures)} figures are equal to the last printed digit."
    )
    return "\n\n".join(_wrapped(block, WIDTH) for block in blocks if block)


def _letters(paper: Paper) -> dict[str, str]:
    """Return a letter for each reason of the paper's figures."""
    reasons = [
        figure.reason for figure in paper.figures if not figure.equal and figure.reason
    ]
    return {
        reason: "abcdefgh"[index] for index, reason in enumerate(dict.fromkeys(reasons))
    }


def _rows(table: Table, letters: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return the cells, with the heading. A table of equal figures has no differences."""
    if all(figure.equal for figure in table.figures):
        cells = [
            (figure.what, figure.published, figure.rounded) for figure in table.figures
        ]
        return [(table.what, *HEADER[:2]), *cells]
    rows: list[tuple[str, ...]] = [(table.what, *HEADER)]
    for figure in table.figures:
        letter = ""
        if not figure.equal:
            letter = letters.get(figure.reason, "none known")
        rows.append(
            (figure.what, figure.published, figure.rounded, figure.difference, letter)
        )
    return rows


def _explanations(paper: Paper, letters: Mapping[str, str]) -> list[str]:
    """Return the reasons with their letters, and what is left out."""
    explanations = [f"({letter}) {reason}" for reason, letter in letters.items()]
    if paper.left_out:
        explanations.append(f"Left out: {paper.left_out}")
    return explanations


def _data_note(files: Sequence[DataFile]) -> str:
    """Return where the files' content is public; files of one origin share it."""
    names_by_origin: dict[str, list[str]] = {}
    for file in files:
        names_by_origin.setdefault(file.origin, []).append(f"`{file.name}`")
    origins = [
        f"{', '.join(names)}: {origin}" for origin, names in names_by_origin.items()
    ]
    return f"Data: {'; '.join(origins)}."


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return the cells in columns: the first to the left, numbers to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)
        ]
        lines.append("  ".join([row[0].ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _wrapped(block: str, width: int) -> str:
    """Return a paragraph in lines of this width, and a table or a heading as it is."""
    if "\n" in block or block.startswith("#"):
        return block
    return textwrap.fill(block, width, break_long_words=False, break_on_hyphens=False)


def _plain(text: str) -> str:
    """Return the text without the marks of Markdown: links become their words."""
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text).replace("`", "")


def _marks(script: str) -> tuple[str, str]:
    return f"<!-- begin {script} -->", f"<!-- end {script} -->"
