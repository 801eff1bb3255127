"""The heavy packages, imported when first needed, and kept from writing to the user's terminal."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from judge.errors import MissingExtra


def optional(module: str, extra: str = "bertscore") -> Any:
    """The module. Raises MissingExtra, with the pip line, where it or what it needs is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise _missing((error.name or module).partition(".")[0], extra) from error


@cache
def version(package: str, extra: str = "bertscore") -> str:
    """A package's version, without importing it. Raises MissingExtra where it is not installed."""
    try:
        return installed_version(package)
    except PackageNotFoundError as error:
        raise _missing(package, extra) from error


def folder_of(module: str) -> Path | None:
    """Where an installed package's files are, without running any of its code; None where it is not installed."""
    spec = find_spec(module)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def missing_package(package: str, extra: str = "bertscore") -> MissingExtra:
    """The error for a package that is not installed."""
    return _missing(package, extra)


def _missing(package: str, extra: str) -> MissingExtra:
    return MissingExtra(f"bertscore needs the package {package}: pip install 'textjudge[{extra}]'")


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings, log lines or progress bars of other packages meanwhile; all as it was afterwards."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with _no_bars():
                yield
    finally:
        logging.disable(before)


@contextmanager
def _no_bars() -> Iterator[None]:
    transformers, hub = optional("transformers.utils.logging"), optional("huggingface_hub.utils")
    shown, hidden = transformers.is_progress_bar_enabled(), hub.are_progress_bars_disabled()
    transformers.disable_progress_bar()
    hub.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            transformers.enable_progress_bar()
        if not hidden:
            hub.enable_progress_bars()
