"""Describe the value of an option that `RunConfig` refused."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from judge.core.budget import LARGEST
from judge.core.invalid_values import InvalidValue
from judge.core.messages import (
    FORMER_SYSTEM,
    command,
    new_name,
    option,
    two_meanings_of_system,
)
from judge.core.plugins import unknown_name_message
from judge.core.request_options import Judge

# A message must not repeat a key, or the password in an address.
_SECRET_KEYS = frozenset({"key_env", "key_command", "headers", "extra_body"})
_SUITE_KEYS = frozenset({"cases", "limits", "undecided", "baseline"})
"""Keys that only the file of a suite has."""


def problem_of(
    refused: InvalidValue,
    path: Sequence[str],
    *,
    in_file: bool,
    options: Collection[str],
    rank_options: Collection[str],
) -> str:
    """Return what is wrong with a value, and its text unless it may hold a secret.

    `path` has the key of the option, then the keys inside its value. `in_file` says that the value
    is in a configuration file, not typed. `options` are the names of the command's options,
    `rank_options` those of `judge rank`.
    """
    innermost = path[-1]
    if not refused.is_unknown_key:
        return _problem_with_value(refused, path)
    is_nested = len(path) > 1
    if innermost == FORMER_SYSTEM:
        is_typed = not is_nested and not in_file
        option_name = "system_message"
        return two_meanings_of_system(
            option(option_name, "TEXT") if is_typed else f"{option_name}: TEXT"
        )
    if in_file and not is_nested and innermost in _SUITE_KEYS:
        return f"it is for a suite; {command('test')} runs one"
    if innermost in rank_options:
        rank = option("rank", True)
        rank_command = command("rank")
        plan_command = command("plan")
        return f"it is for {rank_command}; to {plan_command}, add {rank}"
    if innermost == "reasons" and not is_nested:
        return "in a file, write reply: reason_then_score"
    new = new_name(innermost, options)
    if new:
        return f"this option is called {new}"
    known_names = Judge.model_fields if is_nested else options
    return unknown_name_message("key", innermost, sorted(known_names))


def _problem_with_value(refused: InvalidValue, path: Sequence[str]) -> str:
    """Return the problem, with the value if it is short and no secret."""
    value = refused.value
    is_secret = not _SECRET_KEYS.isdisjoint(path)
    is_address = path[-1] == "cache" and isinstance(value, str)
    is_long = isinstance(value, int) and abs(value) > LARGEST
    is_nested = isinstance(value, dict | list)
    if is_secret or is_address or is_long or is_nested:
        return refused.problem
    return f"{refused.problem}, not {value!r:.100}"
