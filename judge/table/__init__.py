"""Scores side by side, their files, and the journal of a run under way.

A run folder holds `scores.parquet` (the long table, one row per score or failure) and `samples.parquet` (the texts;
its schema metadata has the columns). Text is stored as UTF-8, so a lone surrogate becomes U+FFFD; what JSON has no
type for in `Sample.extra` (dates, tuples) is stored as text or list. All else comes back equal.
"""

from judge.table.journal import JOURNAL, Journal, StreamingWriter, delete_journal, read_journal, recover
from judge.table.scores import RUN, SCORES, Table, store

__all__ = [
    "JOURNAL",
    "RUN",
    "SCORES",
    "Journal",
    "StreamingWriter",
    "Table",
    "delete_journal",
    "read_journal",
    "recover",
    "store",
]
