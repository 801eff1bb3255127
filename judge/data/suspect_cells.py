"""Texts that look like something else: a missing value, or sentences with a corpus's marks between them."""

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
"""What pandas, R, Excel and databases write for a missing value: pandas.read_csv reads them as one."""
SENTENCE_MARKS = ("<q>", "<n>")
"""Marks between sentences in the outputs of known systems: <q> of PreSumm, <n> of PEGASUS."""


def split_sentences(samples: Iterable[Sample], marks: Sequence[str]) -> Iterator[Sample]:
    """Yield the samples with a line break for each of the marks in their texts, and no blanks around it."""
    if not marks:
        yield from samples
        return
    mark = re.compile(rf"[ \t]*(?:{'|'.join(map(re.escape, marks))})[ \t]*")
    for sample in samples:
        source = None if sample.source is None else mark.sub("\n", sample.source)
        references = tuple(mark.sub("\n", reference) for reference in sample.references)
        output = mark.sub("\n", sample.output)
        yield replace(sample, output=output, source=source, references=references)


def notes(samples: Sequence[Sample]) -> list[str]:
    """Say how many texts look like missing values or hold marks of sentences, and what to do about them."""
    return [*_missing_notes(samples), *_mark_notes(samples)]


def _missing_notes(samples: Sequence[Sample]) -> Iterator[str]:
    counts: Counter[str] = Counter()
    first = ""
    for sample in samples:
        for text in _texts(sample):
            if text.strip() in MISSING:
                counts[text.strip()] += 1
                first = first or sample.where or text_name(sample.item, sample.system)
    if not counts:
        return
    listed = ", ".join(f"{word!r} ({count:,})" for word, count in sorted(counts.items()))
    total = counts.total()
    subject = "1 text is" if total == 1 else f"{total:,} texts are"
    yield (
        f"{subject} nothing but a word for a missing value, and scored as texts: {listed}, the first at {first}. "
        "Leave the cells empty if they are missing."
    )


def _mark_notes(samples: Sequence[Sample]) -> Iterator[str]:
    for mark in SENTENCE_MARKS:
        closing = mark.replace("<", "</")  # of HTML: <q>a quotation</q>
        marked = [
            sample
            for sample in samples
            if any(mark in text and closing not in text for text in _texts(sample))
        ]
        if marked:
            typed = mark if in_python() else f"'{mark}'"
            yield (
                f"{mark} is read as a word in the texts of {len(marked):,} of {len(samples):,} rows; if it stands "
                f"between sentences, {option('sentence_marks', typed)} reads it as a line break."
            )


def _texts(sample: Sample) -> Iterator[str]:
    yield sample.output
    yield from sample.references
    if sample.source is not None:
        yield sample.source
