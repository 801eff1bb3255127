"""Write the skill that tells an agent how to use judge, in the format of agentskills.io."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from judge.commands.init.project import write_files

NAME = "judge"
"""Name of the skill. An agent wants the skill's folder to have the same name."""
_FOLDER = "agent_skill"
_MAIN_FILE = "SKILL.md"


def skill_text() -> str:
    """Return the main file of the skill."""
    main_file = files("judge.commands.init") / _FOLDER / _MAIN_FILE
    return main_file.read_text(encoding="utf-8")


def write_skill(folder: Path) -> list[Path]:
    """Write the skill into its own folder in a folder of skills, and return its files.

    Raises ConfigError and writes nothing if one of the files exists, and StorageError if one cannot
    be written.
    """
    return write_files(
        files("judge.commands.init") / _FOLDER,
        folder / NAME,
        advice="Delete the folder first, or print the skill: judge init --skill -",
    )
