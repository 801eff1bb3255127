"""Select one table of a report, and columns of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from judge.core.errors import ConfigError
from judge.core.plugins import require_known, unknown_name_message
from judge.report.document import Block, Details, Document, Section, Table
from judge.report.format import column_title

_FLAG = "--columns"


def only_table(
    document: Document,
    table_name: str | None,
    columns: Sequence[str] = (),
) -> Document:
    """Return a document that has only the table of this name (default: the first one).

    With `columns`, it has only these columns, as `with_columns` selects them. Raises ConfigError.
    """
    tables = tables_by_name(document)
    if table_name is None:
        if not tables:
            raise ConfigError(f"{_FLAG}: this report has no table")
        table_name = next(iter(tables))
    require_known("table", [table_name], tables, "--table")
    selected = tables[table_name]
    if columns:
        selected = with_columns(selected, columns)
    title = table_name.replace("-", " ").capitalize()
    section = Section(table_name, title, lambda: (selected,))
    return Document(
        title=document.title, sections=(section,), language=document.language
    )


def tables_by_name(document: Document) -> dict[str, Table]:
    """Return all tables that have a name, in the order of the report."""
    return {table.name: table for table in _tables_of(document) if table.name}


def with_columns(table: Table, column_names: Sequence[str]) -> Table:
    """Return the table with these columns only, in this order, beside those that name the rows.

    A name is that of the heading, with its group if several headings are equal; `a,b` are two. If
    the names are those of rows, the table is turned: its rows become the columns. Upper and lower
    case, spaces and hyphens do not matter. Raises ConfigError for an unknown or repeated name.
    """
    headings = _headings(table)
    row_names = dict(enumerate(table.row_names))
    all_names = [*headings.values(), *row_names.values()]
    single_names = _separated(column_names, all_names)
    for single_name in single_names:
        if single_names.count(single_name) > 1:
            raise ConfigError(f"{_FLAG}: {single_name!r} is named twice")
    column_positions = _positions(single_names, headings)
    if column_positions is not None:
        return _selected(table, column_positions)
    row_positions = _positions(single_names, row_names)
    if row_positions is not None:
        turned = table.turned
        turned_positions = [position + turned.n_naming for position in row_positions]
        return _selected(turned, turned_positions)
    message = _unknown(single_names, list(headings.values()), table.row_names)
    raise ConfigError(message)


def _separated(typed_names: Sequence[str], known_names: Sequence[str]) -> list[str]:
    """Return the names one by one; a known name may have a comma itself."""
    separated: list[str] = []
    for typed_name in typed_names:
        parts = [typed_name]
        if typed_name not in known_names:
            parts = typed_name.split(",")
        for part in parts:
            name = part.strip()
            if name:
                separated.append(name)
    if not separated:
        known = ", ".join(known_names)
        raise ConfigError(f"{_FLAG}: no column is named (known: {known})")
    return separated


def _selected(table: Table, positions: Sequence[int]) -> Table:
    """Return the table with the columns that name the rows and those at these positions.

    A column without a heading belongs to the one before it.
    """
    all_positions = list(range(table.n_naming))
    for position in positions:
        all_positions.append(position)
        for following in range(position + 1, len(table.columns)):
            if table.columns[following].head:
                break
            all_positions.append(following)
    columns = [table.columns[position] for position in all_positions]
    rows = []
    for row in table.rows:
        cells = [row[position] for position in all_positions]
        rows.append(tuple(cells))
    return replace(table, columns=tuple(columns), rows=tuple(rows), chosen=True)


def _headings(table: Table) -> dict[int, str]:
    """Return the names of the columns that hold values, by position."""
    heads = [column.head for column in table.columns]
    headings: dict[int, str] = {}
    for position, column in enumerate(table.columns):
        if position < table.n_naming or not column.head:
            continue
        heading = column.head
        if heads.count(heading) > 1:
            heading = f"{column.group} {heading}".strip()
        headings[position] = heading
    return headings


def _positions(
    column_names: Sequence[str], name_by_position: dict[int, str]
) -> list[int] | None:
    """Return where these names are, None if one is unknown."""
    # The first of equal names counts.
    position_of_name: dict[str, int] = {}
    for position, name in name_by_position.items():
        position_of_name.setdefault(name, position)
    # The exact spelling takes precedence: `a-b` and `a_b` may both be there.
    for position, name in name_by_position.items():
        position_of_name.setdefault(_folded(name), position)
    positions: list[int] = []
    for column_name in column_names:
        known_name = column_name
        if known_name not in position_of_name:
            known_name = _folded(column_name)
        if known_name not in position_of_name:
            return None
        positions.append(position_of_name[known_name])
    return positions


def _folded(name: str) -> str:
    """Return the form of a name for comparisons: `rouge1` for `ROUGE-1`.

    The name of a metric's column has the form of its heading: `bertscore` for `bertscore_f1`.
    """
    without_marks = column_title(name).casefold().replace("-", "").replace("_", "")
    return "".join(without_marks.split())


def _unknown(
    typed_names: Sequence[str],
    columns: list[str],
    rows: list[str],
) -> str:
    """Say which name is neither a column nor a row, or that the names are of both."""
    known_names = {_folded(name) for name in [*columns, *rows]}
    unknown = [name for name in typed_names if _folded(name) not in known_names]
    if not unknown:
        folded_rows = {_folded(name) for name in rows}
        typed_rows = [name for name in typed_names if _folded(name) in folded_rows]
        return (
            f"{_FLAG}: {typed_rows[0]!r} is a row, and others are columns; name only columns, or "
            "only rows to transpose the table"
        )
    message = unknown_name_message("column", unknown[0], columns)
    row_names = ", ".join(rows)
    return f"{_FLAG}: {message}. The names of rows transpose the table: {row_names}"


def _tables_of(document: Document) -> Iterator[Table]:
    """Yield all tables. The summary's come last, because the sections have the full ones."""
    for section in document.sections:
        yield from _tables_in(section.blocks)
    yield from _tables_in(document.summary)


def _tables_in(blocks: Iterable[Block]) -> Iterator[Table]:
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Details):
            yield from _tables_in(block.blocks)
