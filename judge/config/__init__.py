"""`RunConfig`: every option of a run, stated once, and the source of all interfaces."""

from judge.config.option_list import Option, json_schema, run_options, run_schema
from judge.config.option_types import Value, script_of, split
from judge.config.run_config import (
    DEFAULT_CRITERIA,
    WITH_REASONS,
    Command,
    Group,
    RankConfig,
    RunConfig,
    criterion_entries,
    load_config,
    resolve_value,
)

__all__ = [
    "DEFAULT_CRITERIA",
    "WITH_REASONS",
    "Command",
    "Group",
    "Option",
    "RankConfig",
    "RunConfig",
    "Value",
    "criterion_entries",
    "json_schema",
    "load_config",
    "resolve_value",
    "run_options",
    "run_schema",
    "script_of",
    "split",
]
