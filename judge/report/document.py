"""The blocks of a report.

A view turns a result into a Document, and a renderer turns a Document into a format. No view knows
a format, and no renderer knows a report. Every text is plain text: renderers escape it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from math import ceil
from typing import Any, Literal

Tone = Literal["", "strong", "good", "bad", "warning", "muted"]
"""The meaning of a text, which each format shows in its own way: colour, weight, or not at all."""
Better = Literal["higher", "lower", ""]
WideRecords = tuple[Iterable[str], Iterable[Mapping[str, Any]]]
"""The keys and the rows of a CSV file with a row per item and system."""
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


STAR = "*"
"""The mark of what is significant; the `star` of a table says what that means there."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    `note`, such as an interval, is small text below or beside the cell's text; the console's
    summary leaves it out. `coverage`, such as `95/100`, counts the texts that have a value if some
    have none; every format shows it, small. `mark` is appended to the text, such as `*`. `title` is
    a longer text for a tooltip. `shade`, from -1 (worst) to 1 (best), colours the cell on the page.
    `value` is the number to sort by. `link` is a fragment of the page, for example from
    `judge.report.views.items.link`.
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
    coverage: str = ""

    @property
    def counted(self) -> str:
        """The coverage as it is written: `(95/100)`, or ""."""
        return f"({self.coverage})" if self.coverage else ""

    @property
    def small_text(self) -> str:
        """The note and the coverage."""
        return f"{self.note} {self.counted}".strip()


Content = str | int | Cell | None
"""The content of a cell of `table`: a text, a count, or None for a dash."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    `group` is a heading above neighbouring columns, `note` a short text below the head. `table`
    leaves out an `optional` column if no row has a value. The texts `about` a column explain it
    below every table that shows the column. `name` is what a column with a blank head is called if
    the table is turned.
    """

    head: str
    group: str = ""
    note: str = ""
    numeric: bool = True
    better: Better = ""
    optional: bool = False
    about: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; each row has a cell per column.

    The first column names the row. If the second one is text too, both name it.

    `name` identifies the table in LaTeX labels and page anchors. `key` explains marks in one or two
    lines, `bold` the bold cells (plain text leaves it out), and `star` the mark `*`, if a cell has
    it. `small_print` explains what only the page and LaTeX show, such as intervals. `sorts` lets
    the reader sort the rows on the page. A `short` table repeats one of the sections in few
    columns: full reports leave it out. `omitted` says what that section has beyond it, such as
    `3 more metrics`. The columns of a `chosen` table are those that the reader named, so that no
    format turns it.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    key: str = ""
    bold: str = ""
    star: str = ""
    name: str = ""
    sorts: bool = False
    short: bool = False
    omitted: str = ""
    chosen: bool = False
    small_print: str = ""

    @property
    def whole_key(self) -> str:
        """The key with the texts on the star and about the columns, each once."""
        has_star = any(cell.mark == STAR for row in self.rows for cell in row)
        star = self.star if has_star else ""
        return _joined((self.key, self.bold, star, *self._about_columns))

    @property
    def longest_key(self) -> str:
        """The whole key with the small print."""
        return _joined((self.whole_key, self.small_print))

    @property
    def _about_columns(self) -> list[str]:
        return [text for column in self.columns for text in column.about]

    @property
    def n_naming(self) -> int:
        """The number of columns that name the rows: one, or two if both are text."""
        first_columns = self.columns[:2]
        are_texts = not any(column.numeric for column in first_columns)
        return 2 if len(first_columns) == 2 and are_texts else 1

    @property
    def _naming(self) -> tuple[int, ...]:
        """The positions of the columns that name a row: of two, the second if its texts differ."""
        last = self.n_naming - 1
        texts = {row[last].text for row in self.rows}
        if len(texts) == len(self.rows):
            return (last,)
        return tuple(range(self.n_naming))

    @property
    def row_names(self) -> list[str]:
        """The name of each row: in a leaderboard its system, and not its rank."""
        naming = self._naming
        names = []
        for row in self.rows:
            texts = [row[position].text for position in naming]
            names.append(" ".join(texts))
        return names

    @property
    def pages(self) -> tuple[Table, ...]:
        """The table in parts that are narrow enough for paper."""
        return self.parts(_MAX_ON_PAPER)

    def parts(self, most: int) -> tuple[Table, ...]:
        """Return the table in parts of about equally many columns, at most this many.

        Each part repeats the columns that name the rows.
        """
        naming = self.n_naming
        n_columns = len(self.columns) - naming
        if n_columns <= most:
            return (self,)
        n_parts = ceil(n_columns / most)
        size = ceil(n_columns / n_parts)
        parts = []
        for start_column in range(naming, len(self.columns), size):
            end_column = min(start_column + size, len(self.columns))
            positions = [*range(naming), *range(start_column, end_column)]
            columns = [self.columns[position] for position in positions]
            rows = []
            for row in self.rows:
                cells = [row[position] for position in positions]
                rows.append(tuple(cells))
            partial_table = replace(
                self,
                columns=tuple(columns),
                rows=tuple(rows),
                name="",  # the page also has the whole table, and an anchor may occur only once
                sorts=False,
            )
            parts.append(partial_table)
        return tuple(parts)

    @property
    def tall(self) -> Table:
        """The table for paper, which is taller than wide: many columns of few rows become rows."""
        is_wide = len(self.columns) > _MAX_SIDE_BY_SIDE
        is_wider_than_tall = len(self.columns) > len(self.rows)
        if is_wide and is_wider_than_tall and not self.chosen:
            return self.turned
        return self

    @property
    def turned(self) -> Table:
        """The table with a row for each column, and a column for each row."""
        heads = [Column("", numeric=False)]
        heads += [Column(heading) for heading in self.row_names]
        rows = []
        for position, column in enumerate(self.columns):
            if position in self._naming:
                continue
            parts = filter(None, (column.group, column.head or column.name))
            heading = ", ".join(parts)
            cells = [row[position] for row in self.rows]
            name_cell = Cell(heading + ARROWS[column.better])
            rows.append((name_cell, *cells))
        key = _joined((self.key, *self._about_columns))
        return replace(self, columns=tuple(heads), rows=tuple(rows), key=key)


def _joined(texts: Iterable[str]) -> str:
    """Join the texts of a key, each once: sentences by a space, others by a dot."""
    whole = ""
    for text in dict.fromkeys(filter(None, texts)):
        if whole:
            whole += " " if whole.endswith(".") else " · "
        whole += text
    return whole


def table(
    heads: Iterable[str | Column],
    rows: Iterable[Iterable[Content]],
    key: str = "",
    **fields: Any,
) -> Table:
    """Return a table of texts, counts and cells; None is a dash.

    The first column is text. The others are numbers, unless a Column says otherwise.
    """
    all_columns = []
    for head in heads:
        column = Column(head) if isinstance(head, str) else head
        all_columns.append(column)
    all_columns[0] = replace(all_columns[0], numeric=False)
    all_rows = [tuple(map(_cell, row)) for row in rows]
    is_kept = [True]  # the first column names the rows
    for index, column in enumerate(all_columns[1:], 1):
        has_value = any(row[index] != _NONE for row in all_rows)
        is_kept.append(has_value or not column.optional)
    columns = tuple(compress(all_columns, is_kept))
    kept_rows = [tuple(compress(row, is_kept)) for row in all_rows]
    return Table(columns, tuple(kept_rows), key=key, **fields)


def text_table(
    heads: Iterable[str],
    rows: Iterable[Iterable[Content]],
    **fields: Any,
) -> Table:
    """Return a table without numbers, which a terminal folds."""
    columns = [Column(head, numeric=False) for head in heads]
    return table(columns, rows, **fields)


_NONE = Cell("–")


def _cell(content: Content) -> Cell:
    if isinstance(content, int):
        return Cell(f"{content:,}", value=content)
    if isinstance(content, str):
        return Cell(content)
    return _NONE if content is None else content


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
    """Text in a fixed-width font, such as a template.

    `language` names its syntax, which Markdown writes at the fence.
    """

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Diff:
    """Lines of a unified diff, each with its first character: `+`, `-`, `@` or a space."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text that deserves a look: its score, system and item, and the reason.

    `link` is a fragment of the page. `text` is the text itself; only if it is given, the lists of
    the console and of Markdown show the `note`.
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

    The console's summary writes them in one line after the `label`. Without a `label`, they follow
    a heading. `n_more` counts the entries that a list leaves out; None for a list that is of its
    first entries only, such as the lowest.
    """

    label: str
    excerpts: tuple[Excerpt, ...]
    n_more: int | None = None

    @property
    def rest(self) -> str:
        """How many entries the list leaves out, in words; "" if it leaves out none."""
        return f"and {self.n_more:,} more" if self.n_more else ""


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
    """Blocks that few readers need: folded on the page and in Markdown, the last ones in LaTeX."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class ItemBrowser:
    """All items with their texts, scores and controls.

    `judge.report.views.items.browser` makes it. Only the page shows it and calls `content`.
    """

    content: Callable[[], Any]


Block = (
    Heading
    | Paragraph
    | Notice
    | Facts
    | Tiles
    | Bullets
    | Table
    | Code
    | Diff
    | Excerpts
    | Chart
    | Details
    | ItemBrowser
)


@dataclass(frozen=True)
class Section:
    """A part of a report under its own heading. `anchor` is its fragment on the page.

    `make` builds the blocks only when a format needs them, so that the console's summary draws no
    charts. Markdown folds a `folded` section, which few readers need.
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

    `message` says why the test failed, was skipped or could not run, or what it measured if it
    passed; its first line is the short form. `kind` is the type of a failure. `line` is the line in
    the suite's file, 0 if there is none.
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

    `finding` answers the reader's question: the headline, then one or two sentences. `tone` is
    `good` if the finding names a winner or says that all is well. `scope` is the amount of data, in
    two or three words. `about` are facts below the title, such as the judge and the number of
    texts. `notices` must be read before any number. `remarks` warn of nothing. `summary` fits a
    screen; the console prints the `sections`, which hold everything else, only with `--full`.
    `footer` lines, such as counts and paths, end the summary on the console. `next` are commands
    that may help now; RUN in them means the run's folder.

    `language` is the code of the judged texts' language, such as `ja`, if known.

    `data` is written as JSON: a dataclass, or a mapping of plain values. `records` are the rows of
    the CSV file, all with the same keys; `header` are these keys, needed if there may be no rows.
    `wide_records` makes the keys and the rows of `--wide`, one per item. `tests` are the suites of
    the JUnit file.
    """

    title: str
    finding: tuple[str, ...] = ()
    scope: str = ""
    about: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    summary: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()
    footer: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    data: Any = None
    records: tuple[Mapping[str, Any], ...] = ()
    header: tuple[str, ...] = ()
    wide_records: Callable[[], WideRecords] | None = None
    tests: tuple[TestSuite, ...] = ()
    tone: Tone = ""
    language: str = ""
