"""Charts of a result, for a notebook or a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from judge.core import plugins
from judge.core.errors import ConfigError, StorageError
from judge.core.files import describe_error, write_whole
from judge.core.messages import speaking_to

_CHART_FORMATS = ("svg", "png", "pdf")


@dataclass(frozen=True, slots=True, repr=False)
class Plot:
    """Charts as a standalone SVG document, which a notebook shows.

    `language` is the code of the texts' language, if known.
    """

    svg: str
    language: str = ""

    @property
    def png(self) -> bytes:
        """The charts as PNG. Raises MissingExtra without the extra `png`."""
        return self._drawn("png")

    @speaking_to("python")
    def save(self, path: str | Path) -> None:
        """Write the charts into a file, whose ending is the format: svg, png or pdf.

        Raises ConfigError for another ending, MissingExtra without the extra `png` or `pdf`, and
        StorageError.
        """
        path = Path(path)
        format = path.suffix.removeprefix(".").lower()
        if format not in _CHART_FORMATS:
            raise ConfigError(
                f"{path}: the name of a chart's file ends in .svg, .png or .pdf"
            )
        content = self._drawn(format)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
        except OSError as error:
            raise StorageError(describe_error("write", path, error)) from error

    def _drawn(self, format: str) -> bytes:
        return bytes(plugins.report("drawn")(self.svg, format, self.language))

    def __repr__(self) -> str:
        return "<Plot: an SVG document>"

    def _repr_svg_(self) -> str:
        return self.svg
