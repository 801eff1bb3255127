"""A prompt under test: a Jinja file that reads the data's columns, in the sandbox of the criteria's templates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from judge.core.errors import ConfigError, CriterionError
from judge.core.format import one_line
from judge.core.records import Sample
from judge.criteria.render import render_alone
from judge.criteria.sandbox import RenderError
from judge.criteria.template import read_text


@dataclass(frozen=True, slots=True)
class PromptFile:
    """The prompt's path and text."""

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> PromptFile:
        """Raises ConfigError for a file that cannot be read."""
        try:
            return cls(path, read_text(path))
        except CriterionError as error:
            raise ConfigError(str(error)) from error

    def render(self, item: Sample) -> str:
        """Return the prompt for an item. Raises ConfigError, with the place in the template and the item."""
        known = {name: value for name, value in item.extra.items() if value is not None}
        known |= {"source": item.source} if item.source else {}
        try:
            prompt = render_alone(str(self.path), self.text, known)
            if not prompt.strip():
                raise RenderError("the prompt is empty")
            return prompt
        except RenderError as error:
            columns = ", ".join(known) or "none"
            place = f"{item.where}: " if item.where else ""
            raise ConfigError(
                f"{error.place or self.path}: {error} ({place}item {one_line(item.item, 40)!r}; the prompt can read: "
                f"{columns})"
            ) from error
