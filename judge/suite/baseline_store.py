"""Find the baseline run of a suite, check that it is about the same texts, and save a new one."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from judge.core.errors import ConfigError, JudgeError, StorageError
from judge.core.format import one_line, plural
from judge.core.records import Sample, whole
from judge.results.result import Result, load
from judge.suite.records import Drift, Suite
from judge.suite.samples import Key
from judge.table import RUN, Table

PAIRS = "pairs"
"""The folder, in that of a suite's run, of the texts that were compared two by two."""
_PAGES = ("report.html", "report.md")


@dataclass(frozen=True, slots=True)
class Baseline:
    """`before` is the run to compare with, `keep` the folder where this one is to take its place; each may be None.

    `warnings` are what a summary has to say: that nothing is compared, or that the baseline has texts which are gone.
    """

    before: Result | None = None
    keep: Path | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def locate(
    suite: Suite, samples: Sequence[Sample], *, folder: Path | None, update: bool, known: Collection[Key] | None = None
) -> Baseline:
    """The baseline of a suite, of whose data `samples` are scored.

    `folder` goes before the suite's own: there it is DIR/NAME, or DIR where that is a run. A suite that is new, and so
    is not among the runs in it, has nothing to be compared with: a warning. Raises ConfigError, with the line, where no
    baseline is named and a case needs it, where the folder is not there or is no scored run, and where it is of other
    data; with `update` these are notes, as it is going to be replaced. Texts that were edited, fewer than half of those
    in both, are left out of it: a note. Of texts there that are not among the `known` ones a warning. StorageError
    where it is to be replaced and cannot be written, or is somebody else's folder.
    """
    where, place = _baseline_folder(suite, folder)
    drifts = [case for case in suite.cases if isinstance(case.expected, Drift)]
    if place is None:
        if update:
            raise ConfigError(
                f"{suite.path}: --update-baseline: where to? write baseline: FOLDER, or add --baseline DIR"
            )
        if drifts:
            raise ConfigError(
                f"{suite.path}:{drifts[0].line}: drift is measured from a baseline: write baseline: FOLDER at the top, "
                "or add --baseline DIR"
            )
        return Baseline()
    if not samples:
        reason = "a baseline has scores of single texts, and every case here compares two"
        if folder is None:
            raise ConfigError(f"{where}: {reason}")
        return Baseline(warnings=(f"Not compared with a baseline: {reason}.",))
    keep = folder / suite.name if update and folder is not None else place if update else None
    if folder is not None and not update and not (place / RUN).exists():
        if not folder.exists():
            raise ConfigError(
                f"--baseline {folder}: no such folder{_suggest_folders(folder)}; "
                "with --update-baseline this run becomes the first"
            )
        # A folder with runs of other suites has none yet of this one. An empty folder is a mistake.
        if any(any(folder.glob(pattern)) for pattern in (f"*/{RUN}", f"*/{PAIRS}/{RUN}")):
            return Baseline(warnings=(f"Not compared with a baseline: there is no run in {folder / suite.name}.",))
    if keep is not None:
        _check_folder(where, keep)
    try:
        if not (place / RUN).exists():
            raise ConfigError(f"there is no run in {place}")
        before = load(place)
        if before.rankings or not any(column.kind == "criterion" for column in before.table.columns):
            raise ConfigError(f"no text has a judge's score in {place}")
        edited, notes = _compare_texts(before, samples)
        return Baseline(
            replace(before, table=_without_texts(before.table, edited)) if edited else before,
            keep,
            notes,
            () if known is None or update else _warn_of_missing_texts(before, known),
        )
    except JudgeError as error:
        if not update:
            raise ConfigError(f"{where}: {error}; the same command with --update-baseline makes a new one") from error
        unjudged = f"; {plural(len(drifts), 'case')} of drift not judged" if drifts else ""
        return Baseline(None, keep, (f"Nothing to compare with: {error}{unjudged}.",))


def save(result: Result, folder: Path) -> None:
    """Write a result as a baseline: its tables and run.json, without the pages. Raises StorageError."""
    result.save(folder, pages=False, overwrite=True)


def _baseline_folder(suite: Suite, folder: Path | None) -> tuple[str, Path | None]:
    """The folder where the baseline is looked for, and how a message begins that is about it."""
    if folder is None:
        return f"{suite.path}:{suite.lines.get('baseline', 1)}: baseline", suite.baseline
    suite_folder = folder / suite.name
    is_run = (folder / RUN).exists() and not (suite_folder / RUN).exists()
    return f"{suite.path}: --baseline", folder if is_run else suite_folder


def _check_folder(where: str, folder: Path) -> None:
    """Raises StorageError for a folder in which no baseline can be kept."""
    existing = next(ancestor for ancestor in (folder, *folder.absolute().parents) if ancestor.exists())
    if not existing.is_dir():
        raise StorageError(f"{where}: {existing}: a file stands there; name a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise StorageError(f"{where}: {existing}: cannot be written to; name another folder")
    if not (folder / RUN).exists() and any((folder / name).exists() for name in _PAGES):
        raise StorageError(f"{where}: {folder} holds a report that is not from judge; name another folder")


def _without_texts(table: Table, texts: Collection[Key]) -> Table:
    """The table as if it had not had these texts."""
    return replace(
        table,
        samples=tuple(sample for sample in table.samples if (sample.item, sample.system) not in texts),
        scores=tuple(row for row in table.scores if (row.item, row.system) not in texts),
        failures=tuple(row for row in table.failures if (row.item, row.system) not in texts),
    )


def _compare_texts(before: Result, samples: Sequence[Sample]) -> tuple[Collection[Key], tuple[str, ...]]:
    """The texts that are other ones there, and what there is to note of these and of new ones.

    Raises ConfigError where it is of other data: where no text is in it, or half of those that are were edited.
    """
    text_before = {(sample.item, sample.system): _text(sample) for sample in before.table.samples}
    shared = [sample for sample in samples if _key(sample) in text_before]
    if not shared:
        raise ConfigError(f"it is of other data: no text here is in it, such as {_describe(samples[0])}")
    edited = [sample for sample in shared if text_before[_key(sample)] != _text(sample)]
    unlike = f"{_describe(edited[0])} has another output or source there" if edited else ""
    if 2 * len(edited) >= len(shared):
        raise ConfigError(f"it is of other data: {len(edited):,} of {plural(len(shared), 'text')} differ; {unlike}")
    notes = [f"{len(edited):,} of {plural(len(shared), 'text')} edited, and not compared: {unlike}."] if edited else []
    if new := len(samples) - len(shared):
        notes.append(f"{new:,} of {plural(len(samples), 'text')} not in the baseline, and not compared with it.")
    return {_key(sample) for sample in edited}, tuple(notes)


def _warn_of_missing_texts(before: Result, known: Collection[Key]) -> tuple[str, ...]:
    """Texts of the baseline that are in no data any more: a suite passes for want of them, too."""
    here = {(whole(item), whole(system)) for item, system in known}
    gone = [sample for sample in before.table.samples if _key(sample) not in here]
    if not gone:
        return ()
    more = f" and {len(gone) - 1:,} more" if len(gone) > 1 else ""
    total = plural(len(before.table.samples), "text")
    return (f"{len(gone):,} of {total} of the baseline gone: {_describe(gone[0])}{more}.",)


def _suggest_folders(folder: Path) -> str:
    """The folders beside it that are called much like it."""
    there = folder.absolute().parent
    names = [path.name for path in there.iterdir() if path.is_dir()] if there.is_dir() else []
    near = get_close_matches(folder.name, names, n=2)
    return f"; did you mean {' or '.join(repr(str(folder.with_name(name))) for name in near)}?" if near else ""


def _key(sample: Sample) -> tuple[str, str]:
    return whole(sample.item), whole(sample.system)


def _text(sample: Sample) -> tuple[str, str]:
    return whole(sample.output), whole(sample.source or "")


def _describe(sample: Sample) -> str:
    return f"item {one_line(sample.item, 60)!r} of system {one_line(sample.system, 60)!r}"
