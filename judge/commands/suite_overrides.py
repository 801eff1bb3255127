"""The arguments of `judge test` that override the files of its suites."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.commands.evaluate import Model, reject_unsupported
from judge.config import load_config, script_of
from judge.core.errors import ConfigError
from judge.core.messages import command, in_python, option


@dataclass(frozen=True, slots=True)
class SuiteOverrides:
    """Arguments that override the suites' files.

    - `options`: the options of a run that the caller named, such as `model`, by their names.
    - `criteria`: names or files that replace criteria of the same name.
    - `out`: the folder for the runs.
    """

    options: Mapping[str, Any]
    criteria: Sequence[str]
    out: Path | None

    @classmethod
    def of(
        cls,
        model: Model | None,
        options: Mapping[str, Any],
        criteria: Sequence[str] | None,
        out: str | Path | None,
    ) -> SuiteOverrides:
        """Check the arguments.

        Raises ConfigError for an option that no suite has, and for an empty list of criteria.
        """
        if criteria is not None and not criteria:
            run_command = command("run")
            no_criteria = option("criteria", [] if in_python() else "none")
            raise ConfigError(
                f"criteria: none: a suite needs criteria; {run_command} with {no_criteria} "
                "computes metrics"
            )
        reject_unsupported(options, "test", "a suite")
        checked = load_config(options=options)
        # Only the options that were named: a default must not override a file.
        named: dict[str, Any] = {}
        for option_name in checked.model_fields_set:
            named[option_name] = getattr(checked, option_name)
        if model is not None and model != []:
            named["model"] = model
        folder = None if out is None else Path(out)
        return cls(named, criteria or (), folder)

    @property
    def overridden_keys(self) -> Collection[str]:
        """Return the keys of a file that are overridden.

        A judge also replaces the recording of a file.
        """
        keys = {*self.options}
        if "model" in self.options:
            keys.add("replay")
        return keys

    def apply_to(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a file with the overrides.

        A recording replaces scripted replies of the file.
        """
        replaced = {*self.overridden_keys}
        judges = options.get("model", ())
        is_scripted = any(script_of(judge.name) for judge in judges)
        if "replay" in self.options and is_scripted:
            replaced.add("model")
        unchanged = {
            option_name: value
            for option_name, value in options.items()
            if option_name not in replaced
        }
        return {**unchanged, **self.options}
