"""A project as it is imported: run.yaml, criteria, data, a suite, and the list of what differs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from judge.core.errors import ConfigError, StorageError
from judge.core.format import one_line
from judge.core.records import whole
from judge.core.request_options import hidden
from judge.data import rows as data_rows

PASS_FAIL = {"labels": ["fail", "pass"], "values": [0, 1]}
DATA = "data.jsonl"


class Unsupported(Exception):
    """Why a part of the file has no counterpart."""


@dataclass
class Project:
    """What becomes of another tool's file.

    `criteria` are entries of run.yaml, `files` further files by name, `rows` the data if the file has any. `changes`
    say what means something else in judge, `missing` what has no counterpart. `case_criteria` are for the suite alone.
    """

    origin: Path
    config: dict[str, Any] = field(default_factory=dict)
    criteria: list[str | dict[str, Any]] = field(default_factory=list)
    cases: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)
    changes: dict[str, None] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)
    case_criteria: list[str] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def name(self, title: str) -> str:
        """Return a new name for a criterion, one word like its title."""
        words = re.sub(r"[^\w.-]+", "_", title).strip("_.-")[:60] or "criterion"
        name, number = words, 2
        while name.lower() in self._names:
            name, number = f"{words}_{number}", number + 1
        self._names.add(name.lower())
        return name

    def change(self, note: str) -> None:
        self.changes[one_line(note)] = None

    def lack(self, note: str) -> None:
        self.missing[one_line(note)] = None

    def lack_keys(self, whose: str, keys: Iterable[Any]) -> None:
        """Say which keys have no counterpart."""
        if listed := ", ".join(sorted(map(str, keys))):
            self.lack(f"{whose}: {listed}" if whose else listed)

    def use_model(self, model: Any, whose: str) -> None:
        """Name the judge, the first model that the file names."""
        if not isinstance(model, str) or not model:
            return
        if "://" in model or hidden("", model):
            self.lack(f"{whose}: its model is an address, or looks like a key: --model NAME --base-url URL")
            return
        known = self.config.setdefault("model", model)
        if known != model:
            self.change(f"{whose}: judged by {known}, not by {model}: a run has one judge, or a panel")

    def add_metric(self, name: str, options: Mapping[str, Any]) -> None:
        """Add a metric with its options. Raises Unsupported if it is there with other options."""
        metrics, settings = self.config.setdefault("metrics", []), self.config.setdefault("set", {})
        if name in metrics and settings.get(name, {}) != options:
            raise Unsupported(f"a run has one {name}; add this one in a second run")
        if name not in metrics:
            metrics.append(name)
            settings |= {name: dict(options)} if options else {}

    @property
    def suite(self) -> str:
        """The name of the suite's file."""
        return f"{self.origin.stem}.judge.yaml"

    def write(self, folder: Path) -> list[Path]:
        """Write the files into a folder, and return them. Raises ConfigError if one exists, StorageError."""
        texts = dict(self.files)
        if self.rows:
            texts[DATA] = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)
        header = f"# Imported from {one_line(self.origin.name)} by judge import.\n"
        for title, notes in (("Changed in meaning", self.changes), ("No counterpart", self.missing)):
            header += "".join([f"# {title}:\n", *(f"# - {note}\n" for note in notes)]) if notes else ""
        config = {"data": DATA, **{key: value for key, value in self.config.items() if value not in ([], {})}}
        if self.criteria or "metrics" in config:
            run = {**config, "criteria": self.criteria or "none", "metrics": config.get("metrics", "none")}
            texts["run.yaml"] = header + dump(run)
        if self.cases:
            suite = {key: value for key, value in config.items() if key not in ("metrics", "set")}
            criteria = [*self.criteria, *self.case_criteria]
            texts[self.suite] = header + dump({**suite, "criteria": criteria, "cases": self.cases})
        paths = {folder / name: text for name, text in texts.items()}
        if existing := [str(path) for path in paths if path.exists() or path.is_symlink()]:
            raise ConfigError(f"{', '.join(existing)}: already there; name another folder with --out FOLDER")
        for path, text in paths.items():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(whole(text), encoding="utf-8")
            except OSError as error:
                raise StorageError(f"{path}: {error.strerror or error}") from error
        return list(paths)


def dump(value: Mapping[str, Any]) -> str:
    """Return YAML in the order of the keys, without aliases."""
    return yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=100, default_flow_style=None)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a data file. Raises DataError."""
    return [dict(row.cells) for row in data_rows.rows(path) if isinstance(row, data_rows.RawRow)]


def template(
    name: str, header: Mapping[str, Any], text: str, *, layout: str = "pointwise", shows_output: bool = False
) -> str:
    """Return a criterion's file: a prompt text between the layout's introduction and its scale.

    `shows_output` says that the text holds the output, which the layout then leaves out.
    """
    output = "{% block output %}{% endblock %}\n" if shows_output else ""
    return (
        f"---\n{dump({'title': name, **header})}---\n"
        f'{{% extends "layouts/{layout}.jinja" %}}\n{{% block source %}}{{% endblock %}}\n'
        f"{output}{{% block criterion %}}\n{text.strip()}\n{{% endblock %}}\n"
    )


_VARIABLE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def to_jinja(text: str, variable: Callable[[str], str]) -> str:
    """Return a prompt text as a Jinja template in which `variable` replaces each `{{ expression }}`."""
    parts, end = [], 0
    for match in _VARIABLE.finditer(text):
        parts += [_literal(text[end : match.start()]), variable(match[1].strip())]
        end = match.end()
    return "".join([*parts, _literal(text[end:])])


def fenced(column: str) -> str:
    """Return the template of a column's text between marks that it cannot forge."""
    return f'\n{{{{ {column}|fenced("{column}") }}}}\n'


def _literal(text: str) -> str:
    """Return text that Jinja prints unchanged."""
    return re.sub(r"\{[%#{]", lambda match: f'{{{{ "{match[0]}" }}}}', text)


def threshold(value: Any, low: float, high: float) -> float | None:
    """Return a pass mark, None if there is none. Raises ConfigError."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ConfigError(f"the threshold must be a number from {low:g} to {high:g}, not {value!r:.40}")
    return value


def texts(value: Any, key: str) -> list[str]:
    """Return a text, or a list of texts, as a list. Raises ConfigError."""
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(text, str) and text.strip() for text in listed):
        raise ConfigError(f"{key}: a text is expected, not {value!r:.60}")
    return [text.strip() for text in listed]


def mapping(value: Any, key: str) -> dict[str, Any]:
    """Return a mapping, empty for None. Raises ConfigError."""
    if value is not None and not (isinstance(value, dict) and all(isinstance(key, str) for key in value)):
        raise ConfigError(f"{key}: a mapping is expected, not {value!r:.60}")
    return value or {}


def mappings(value: Any, key: str) -> Sequence[dict[str, Any]]:
    """Return a list of mappings, empty for None. Raises ConfigError."""
    if value is not None and not (isinstance(value, list) and all(isinstance(entry, dict) for entry in value)):
        raise ConfigError(f"{key}: a list of mappings is expected, not {value!r:.60}")
    return value or []
