"""Turn another tool's evaluation file into a project for judge: OpenAI graders, promptfoo or DeepEval.

A Python file is parsed, never run. What changes in meaning and what has no counterpart is listed, not guessed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from judge.commands.importing import deepeval, openai_graders, promptfoo
from judge.commands.importing.project import Project, read_rows
from judge.core import yaml_lines
from judge.core.errors import ConfigError, DataError

_MEBIBYTES = 2
_UNKNOWN = (
    "neither OpenAI graders (testing_criteria, or an object with type), nor promptfoo (prompts, tests), nor DeepEval "
    "metrics (name with criteria or evaluation_steps)"
)


def import_file(path: Path, data: Path | None = None) -> Project:
    """Return the project that a file of another tool describes. `data` are rows for OpenAI graders.

    Raises DataError if the file cannot be read, ConfigError if it is of no known tool or nothing of it can be used.
    """
    try:
        if path.stat().st_size > _MEBIBYTES * 2**20:
            raise DataError(f"{path}: larger than {_MEBIBYTES} MiB; import the configuration, not the results")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {getattr(error, 'strerror', '') or error}") from error
    project = Project(path)
    if data is not None:
        project.rows = openai_graders.flat(read_rows(data))
    try:
        if path.suffix == ".py":
            deepeval.read_python(text, project)
        else:
            value: Any = yaml_lines.values(text)
            entries = value if isinstance(value, list) else [value]
            if not entries or not all(isinstance(entry, dict) for entry in entries):
                raise ConfigError(_UNKNOWN)
            if isinstance(value, dict) and {"prompts", "tests", "defaultTest", "providers"} & value.keys():
                promptfoo.read(value, project)
            elif any("testing_criteria" in entry or openai_graders.is_grader(entry) for entry in entries):
                openai_graders.read(entries, project)
            elif all(deepeval.is_metric(entry) for entry in entries):
                deepeval.read(entries, project)
            else:
                raise ConfigError(_UNKNOWN)
    except yaml_lines.Malformed as error:
        raise ConfigError(f"{path}: {f'line {error.line}: ' if error.line else ''}{error}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    if not (project.criteria or project.case_criteria) and not project.config.get("metrics"):
        listed = "; ".join(project.missing) or "it has no criteria"
        raise ConfigError(f"{path}: nothing to import: {listed}")
    return project
