"""A system that judge runs itself: a prompt and a model, as in run.yaml under `systems`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from judge.core.invalid_values import first_invalid_value
from judge.core.messages import FORMER_SYSTEM, two_meanings_of_system
from judge.core.plugins import unknown_name_message
from judge.core.request_options import Judge, ModelSettings


class GeneratedSystem(ModelSettings):
    """A prompt file and a model. Without an own address, key or headers, it has the run's."""

    prompt: Path = Field(
        description="Jinja file of the prompt; it reads the data's columns."
    )
    model: str = Field(min_length=1, description="Name of the model.")
    max_tokens: int = Field(default=1024, ge=1, description="Longest output.")
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        description="Sampling temperature (default: 0; 1 for several generations).",
    )
    generations: int = Field(
        default=1, ge=1, le=100, description="Outputs for each item."
    )

    @property
    def requested_model(self) -> Judge:
        """The model and its settings."""
        # Only what was set, because the rest is that of the run.
        field_names = self.model_fields_set & ModelSettings.model_fields.keys()
        settings = {field_name: getattr(self, field_name) for field_name in field_names}
        return Judge(name=self.model, **settings)


def _parse_system(system_name: str, spec: Any) -> Any:
    """Parse a mapping into a generated system; return a file's path unchanged.

    Raises ValueError.
    """
    if isinstance(spec, str | Path | GeneratedSystem):
        return spec
    if not isinstance(spec, Mapping):
        raise ValueError(
            f"{system_name}: write its prompt and model, or a file of its outputs"
        )
    try:
        return GeneratedSystem.model_validate(spec)
    except ValidationError as error:
        invalid_value = first_invalid_value(error)
        first_key = str(invalid_value.path[0])
        if invalid_value.is_unknown_key and first_key == FORMER_SYSTEM:
            message = f"{first_key}: {two_meanings_of_system('system_message: TEXT')}"
        elif invalid_value.is_unknown_key:
            message = unknown_name_message(
                "key", first_key, sorted(GeneratedSystem.model_fields)
            )
        elif invalid_value.kind == "missing":
            message = f"write its {first_key}"
        elif first_key == "model":
            message = "model: write the name of the model that writes"
        else:
            message = f"{first_key}: {invalid_value.problem}"
        raise ValueError(f"{system_name}: {message}") from None


def _parse_systems(value: Any) -> Any:
    """Accept `a,b`, columns, and the author of each system; `none` is the empty list."""
    if isinstance(value, Mapping):
        systems: dict[str, Any] = {}
        for system_name, spec in value.items():
            systems[str(system_name).strip()] = _parse_system(str(system_name), spec)
        return systems
    if isinstance(value, list | tuple):
        # A union of types would name its types in the error.
        if not all(isinstance(system_name, str) for system_name in value):
            raise ValueError(
                "write the names of columns as text, in quotes if they are numbers"
            )
        return value
    if not isinstance(value, str):
        raise ValueError(
            "write a list of columns, or for each system what writes its outputs"
        )
    system_names = [
        system_name.strip() for system_name in value.split(",") if system_name.strip()
    ]
    return [] if system_names == ["none"] else system_names


Systems = Annotated[
    tuple[str, ...] | dict[str, GeneratedSystem | Path],
    BeforeValidator(
        _parse_systems,
        json_schema_input_type=str | list[str] | dict[str, GeneratedSystem | Path],
    ),
]
"""Columns of outputs, or for each system a file of outputs, or a prompt and a model."""


def resolve_systems(
    systems: Mapping[str, Any],
    folder: Path,
    resolve_model: Callable[[Any, Path], Any],
) -> dict[str, Any]:
    """Make the paths of systems in a file relative to its folder.

    They are the paths of prompts, outputs, and scripted models.
    """
    resolved: dict[str, Any] = {}
    for system_name, spec in systems.items():
        if isinstance(spec, str):
            resolved[system_name] = folder / spec
        elif isinstance(spec, Mapping):
            system = dict(spec)
            if isinstance(system.get("prompt"), str):
                system["prompt"] = folder / system["prompt"]
            if system.get("model"):
                system["model"] = resolve_model(system["model"], folder)
            resolved[system_name] = system
        else:
            # The check of the values refuses it, with its line.
            resolved[system_name] = spec
    return resolved
