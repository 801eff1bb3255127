"""The blocks of a report: a view turns a result into a Document, a renderer turns a Document into a
format.

No view knows a format, and no renderer knows a report. Every text is plain text: renderers escape
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any, Literal

Tone = Literal["", "strong", "good", "bad", "warning", "muted"]
"""The meaning of a text, which each format shows in its own way: colour, weight, or not at all."""
Better = Literal["higher", "lower", ""]
ARROWS: Mapping[Better, str] = {"higher": " ↑", "lower": " ↓", "": ""}
"""The better end of a column, as its heading shows it."""
_MAX_SIDE_BY_SIDE = 9  # columns of a table in text or LaTeX before it is turned
_MAX_ON_PAPER = 10  # columns beside the names on a printed page


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar in a cell, with its interval if there is one.

    All numbers are shares of the cell's width, from 0 to 1.
    """

    end: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    `note` stands small below or beside the text, such as an interval; the console's summary leaves
    it out. `mark` is appended to the text, such as `*`. `title` is a longer text for a tooltip.
    `shade`, from -1 (worst) to 1 (best), colours the cell on the page. `value` is the number to
    sort by. `link` is a fragment of the page, such as the one that `judge.report.views.items.link`
    makes.
    """

    text: str
    note: str = ""
    tone: Tone = ""
    mark: str = ""
    title: str = ""
    shade: float | None = None
    bar: Bar | None = None
    value: float | None = None
    link: str = ""


Content = str | int | Cell | None
"""What a cell of `table` is made of: a text, a count, or None for a dash."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `group` is a heading above neighbouring columns, `note` a short text
    below the head.

    `table` leaves out an `optional` column if no row has a value, and adds what it says `about` the
    others to the key.
    """

    head: str
    group: str = ""
    note: str = ""
    numeric: bool = True
    better: Better = ""
    optional: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; each row has a cell per column.

    The first column names the row, the second too if neither is numeric.

    `name` identifies the table in LaTeX labels and page anchors. `key` explains marks in one or two
    lines. `sorts` lets the reader sort the rows on the page. A `short` table repeats one of the
    sections in few columns: LaTeX and the full console leave it out.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    key: str = ""
    name: str = ""
    sorts: bool = False
    short: bool = False

    @property
    def pages(self) -> tuple[Table, ...]:
        """The table in parts that are narrow enough for paper; each repeats the columns that name
        the rows."""
        names = (
            2
            if len(self.columns) > 1 and not any(column.numeric for column in self.columns[:2])
            else 1
        )
        rest = range(names, len(self.columns))
        if len(rest) <= _MAX_ON_PAPER:
            return (self,)
        return tuple(
            replace(
                self,
                columns=(*self.columns[:names], *self.columns[at : at + _MAX_ON_PAPER]),
                rows=tuple((*row[:names], *row[at : at + _MAX_ON_PAPER]) for row in self.rows),
                name="",
                sorts=False,
            )
            for at in rest[::_MAX_ON_PAPER]
        )

    @property
    def tall(self) -> Table:
        """The table for paper, which is taller than wide: many columns of few rows become rows."""
        if len(self.columns) <= _MAX_SIDE_BY_SIDE or len(self.rows) >= len(self.columns):
            return self
        names = [
            Cell(", ".join(filter(None, (c.group, c.head))) + ARROWS[c.better])
            for c in self.columns
        ]
        heads = (Column("", numeric=False), *(Column(row[0].text) for row in self.rows))
        rows = zip(names[1:], *(row[1:] for row in self.rows), strict=True)
        return replace(self, columns=heads, rows=tuple(rows))


def table(
    heads: Iterable[str | Column], rows: Iterable[Iterable[Content]], key: str = "", **fields: Any
) -> Table:
    """Return a table of texts, counts and cells; None is a dash.

    The first column is text, the others are numbers unless a Column says else.
    """
    first, *others = [head if isinstance(head, Column) else Column(head) for head in heads]
    cells = [[_cell(content) for content in row] for row in rows]
    shown = [
        not column.optional or any(row[place] != _NONE for row in cells)
        for place, column in enumerate(others, 1)
    ]
    columns = (replace(first, numeric=False), *compress(others, shown))
    key = " ".join(filter(None, (key, *(column.about for column in columns))))
    return Table(
        columns, tuple((row[0], *compress(row[1:], shown)) for row in cells), key=key, **fields
    )


def text_table(heads: Iterable[str], rows: Iterable[Iterable[Content]], **fields: Any) -> Table:
    """Return a table without numbers, which a terminal folds."""
    return table([Column(head, numeric=False) for head in heads], rows, **fields)


_NONE = Cell("–")


def _cell(content: Content) -> Cell:
    if isinstance(content, int):
        return Cell(f"{content:,}", value=content)
    return content if isinstance(content, Cell) else Cell(content) if content is not None else _NONE


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading inside a section, of level 3 or 4."""

    text: str
    level: Literal[3, 4] = 3


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning that the reader must not miss."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and texts, one pair a line."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """A key number and its label; `link` is a fragment of the page."""

    value: str
    label: str
    tone: Tone = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Three to five key numbers, side by side on the page; other formats leave them out."""

    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class Bullets:
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Text in a fixed-width font, such as a template; `language` is shown nowhere, but names the
    syntax."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Diff:
    """Lines of a unified diff, each with its first character: `+`, `-`, `@` or a space."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text that deserves a look: its score, system and item, and why.

    `link` is a fragment of the page.

    `text` is the text itself. The console's and Markdown's lists have the `note` only with it.
    """

    score: str
    system: str
    item: str
    column: str
    reason: str = ""
    note: str = ""
    tone: Tone = ""
    link: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Excerpts:
    """Texts that deserve a look, the most important first.

    The console's summary writes one line: `label` and them.

    Without a `label`, they stand below a heading.
    """

    label: str
    excerpts: tuple[Excerpt, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as inline SVG, drawn by a function of `judge.report.charts`.

    `name` becomes a file name. `alt` says in a sentence what the chart shows, for readers who
    cannot see it. `width` and `height` are in pixels. If a table has the values too (`tabled`), the
    console leaves the chart out.
    """

    name: str
    title: str
    svg: str
    alt: str
    width: int
    height: int
    caption: str = ""
    tabled: bool = False


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks that few readers need: folded on the page and in Markdown, left out of LaTeX."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class ItemBrowser:
    """All items with their texts, scores and controls. Only the page shows it and calls `content`.

    `judge.report.views.items.browser` makes it.
    """

    content: Callable[[], Any]


Block = (
    Heading | Paragraph | Notice | Facts | Tiles | Bullets | Table | Code | Diff | Excerpts | Chart | Details
    | ItemBrowser
)  # fmt: skip


@dataclass(frozen=True)
class Section:
    """A part of a report under a heading of its own. `anchor` is its fragment on the page.

    `make` builds the blocks when a format needs them, so that a summary on the console costs no
    charts. `folded` marks a section that few readers need: Markdown folds it.
    """

    anchor: str
    title: str
    make: Callable[[], Iterable[Block]]
    folded: bool = False

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(self.make())


@dataclass(frozen=True, slots=True)
class TestCase:
    """A test for JUnit.

    `message` says why it failed, was skipped or could not run, or what a passed one measured; its
    first line is the short form. `kind` is the type of a failure. `line` is the place in the
    suite's file, 0 if there is none.
    """

    name: str
    status: Literal["passed", "failed", "error", "skipped"]
    message: str = ""
    kind: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class TestSuite:
    """The tests of one file; `seconds` is the time they took together."""

    name: str
    cases: tuple[TestCase, ...]
    file: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Document:
    """A report, ready for any format.

    `finding` answers the reader's question: the headline, then one or two sentences; `tone` is
    `good` if it names a winner or says that all is well. `scope` says on how much data, in two or
    three words. `about` are facts below the title, such as the judge and the number of texts.
    `notices` must be read before any number. `summary` fits a screen: the console prints no more
    unless asked. `sections` have everything else. `footer` lines end the summary on the console:
    counts, paths. `next` are commands that may help now; RUN in them stands for the folder of the
    run.

    `language` is the code of the judged texts' language, such as `ja`, if known.

    `data` is what JSON writes: a dataclass, or a mapping of plain values. `records` are the rows of
    the CSV file, all with the same keys, and `header` are these keys if there may be no rows;
    `wide_records` makes the keys and the rows of `--wide`, one per item. `tests` are the suites of
    the JUnit file.
    """

    title: str
    finding: tuple[str, ...] = ()
    scope: str = ""
    about: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    summary: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()
    footer: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    data: Any = None
    records: tuple[Mapping[str, Any], ...] = ()
    header: tuple[str, ...] = ()
    wide_records: Callable[[], tuple[Iterable[str], Iterable[Mapping[str, Any]]]] | None = None
    tests: tuple[TestSuite, ...] = ()
    tone: Tone = ""
    language: str = ""
