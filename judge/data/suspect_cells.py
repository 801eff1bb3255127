"""Texts that look like something else.

These are missing values, or sentences with a corpus's marks between them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from judge.core.format import text_name
from judge.core.messages import in_python, option
from judge.core.records import Sample

MISSING = frozenset((
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
    "N/A", "NA", "NULL", "NaN", "NaT", "None", "n/a", "nan", "null",
))  # fmt: skip
"""How pandas, R, Excel and databases write a missing value; pandas.read_csv reads them as one."""
SENTENCE_MARKS = ("<q>", "<n>")
"""Marks between sentences in the outputs of known systems: <q> of PreSumm, <n> of PEGASUS."""


def split_sentences(
    samples: Iterable[Sample], marks: Sequence[str]
) -> Iterator[Sample]:
    """Yield the samples with a line break for each of the marks in their texts.

    Blanks around a mark go.
    """
    if not marks:
        yield from samples
        return
    any_mark = "|".join(re.escape(mark) for mark in marks)
    pattern = re.compile(rf"[ \t]*(?:{any_mark})[ \t]*")  # "one <q> two"
    for sample in samples:
        source = None if sample.source is None else pattern.sub("\n", sample.source)
        references = tuple(pattern.sub("\n", text) for text in sample.references)
        output = pattern.sub("\n", sample.output)
        yield replace(sample, output=output, source=source, references=references)


def notes(samples: Sequence[Sample]) -> list[str]:
    """Say how many texts look suspect, and what to do about them.

    They look like missing values, or hold marks of sentences.
    """
    return [*_missing_notes(samples), *_mark_notes(samples)]


def _missing_notes(samples: Sequence[Sample]) -> Iterator[str]:
    counts: Counter[str] = Counter()
    first_location = ""
    for sample in samples:
        for text in _texts(sample):
            word = text.strip()
            if word not in MISSING:
                continue
            counts[word] += 1
            if not first_location:
                first_location = sample.where or text_name(sample.item, sample.system)
    if not counts:
        return
    words = [f"{word!r} ({count:,})" for word, count in sorted(counts.items())]
    listed = ", ".join(words)
    n_missing = counts.total()
    subject = "1 text is" if n_missing == 1 else f"{n_missing:,} texts are"
    yield (
        f"{subject} nothing but a word for a missing value, and scored as texts: {listed}, the "
        f"first at {first_location}. Leave the cells empty if they are missing."
    )


def _mark_notes(samples: Sequence[Sample]) -> Iterator[str]:
    for mark in SENTENCE_MARKS:
        n_marked = sum(_has_mark(sample, mark) for sample in samples)
        if n_marked:
            # A shell reads < and > as redirections unless they are quoted.
            typed_mark = mark if in_python() else f"'{mark}'"
            remedy = option("sentence_marks", typed_mark)
            yield (
                f"{mark} is read as a word in the texts of {n_marked:,} of {len(samples):,} rows; "
                f"if it stands between sentences, {remedy} reads it as a line break."
            )


def _has_mark(sample: Sample, mark: str) -> bool:
    """Return whether a text has a mark between sentences."""
    closing = mark.replace("<", "</")  # of HTML: <q>a quotation</q>
    return any(mark in text and closing not in text for text in _texts(sample))


def _texts(sample: Sample) -> Iterator[str]:
    yield sample.output
    yield from sample.references
    if sample.source is not None:
        yield sample.source
