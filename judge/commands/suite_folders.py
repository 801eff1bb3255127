"""The folders in which suites keep their runs: where they are, the last run, and the pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from judge.core import plugins
from judge.core.errors import JudgeError
from judge.core.files import store
from judge.report.document import Document, Section
from judge.results.loading import load
from judge.results.result import PAGES, Result
from judge.suite.baseline import PAIRS
from judge.suite.case import Form
from judge.suite.evaluate import Outcome, Outcomes
from judge.table import RUN

Paths = str | Path | Sequence[str | Path]


def is_single_file(paths: Paths) -> bool:
    """Return whether these paths are the file of one suite, not a folder or several files."""
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    return len(listed) == 1 and Path(listed[0]).is_file()


def run_folder(out: Path, suite_name: str, *, is_alone: bool) -> Path:
    """Return the folder of a suite's run: `out` itself for a single file, else `out`/NAME.

    The runs of a folder have their own folders even if it has one suite: it may have more later. A
    suite that has a run in `out`/NAME keeps it there, because baselines are read from there first.
    """
    folder_of_suite = out / suite_name
    run_of_texts = folder_of_suite / RUN
    run_of_pairs = folder_of_suite / PAIRS / RUN
    has_run = run_of_texts.exists() or run_of_pairs.exists()
    if is_alone and not has_run:
        return out
    return folder_of_suite


def last_run(folder: Path | None) -> Result | None:
    """Return the finished run of single texts in a folder, None if it has none to compare with."""
    if folder is None or not (folder / RUN).exists():
        return None
    try:
        result = load(folder)
    except JudgeError:
        # The new run replaces it, whatever is wrong with it.
        return None
    if result.rankings or result.info.status != "complete":
        return None
    return result


def write_pages(folder: Path, outcome: Outcome, results: Mapping[Form, Result]) -> None:
    """Write the pages of a suite into the folder of its run: verdicts first, then its scores.

    Raises StorageError.
    """
    document = plugins.document(Outcomes([outcome]))
    for result in results.values():
        document = _followed_by(document, plugins.document(result))
    files = {}
    for file_name, format in PAGES.items():
        page = plugins.write(document, format)
        files[file_name] = page.encode()
    store(folder, files)


def _followed_by(document: Document, run: Document) -> Document:
    """Return a suite's document with the report of its run below the verdicts."""
    anchors = {section.anchor for section in document.sections}
    number = len(document.sections)
    summary = Section(f"run-{number}", "Scores", lambda: run.summary)
    sections = [section for section in run.sections if section.anchor not in anchors]
    # The document may already have another run with the same judge. A dict has each line once.
    about = dict.fromkeys((*document.about, *run.about))
    notices = dict.fromkeys((*document.notices, *run.notices))
    return replace(
        document,
        about=tuple(about),
        notices=tuple(notices),
        sections=(*document.sections, summary, *sections),
        language=document.language or run.language,
    )
