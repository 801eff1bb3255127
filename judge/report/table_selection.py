"""Select one table of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from judge.core.plugins import require_known
from judge.report.document import Block, Details, Document, Section, Table


def only_table(document: Document, name: str) -> Document:
    """Return a document that has only the table of this name. Raises ConfigError."""
    tables = {each.name: each for each in _tables_of(document) if each.name}
    require_known("table", [name], tables, "--table")
    title = name.replace("-", " ").capitalize()
    section = Section(name, title, lambda: (tables[name],))
    return Document(title=document.title, sections=(section,), language=document.language)


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
