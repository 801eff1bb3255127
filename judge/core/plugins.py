"""Load objects by name: built-in ones and those that other packages add, in the same way.

An entry is `module:attribute`, imported only when it is needed. Other packages add entry points in
the groups `judge.metrics`, `judge.providers`, `judge.engines` and `judge.formats`.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from functools import cache
from importlib import import_module, metadata
from typing import Any, ClassVar, Literal

from judge.core.errors import ConfigError, MissingExtra
from judge.core.format import first_names
from judge.core.messages import speaking_to

Kind = Literal["metrics", "providers", "engines", "formats"]

METRICS = {
    "rouge": "judge.metrics.rouge:Rouge",
    "bleu": "judge.metrics.bleu:Bleu",
    "bleu_corpus": "judge.metrics.bleu:CorpusBleu",
    "chrf": "judge.metrics.chrf:Chrf",
    "ter": "judge.metrics.ter:Ter",
    "meteor": "judge.metrics.meteor:Meteor",
    "cider": "judge.metrics.cider:Cider",
    "bertscore": "judge.metrics.bertscore:BertScore",
    "exact_match": "judge.metrics.exact_match:ExactMatch",
    "distinct": "judge.metrics.diversity:Distinct",
    "self_bleu": "judge.metrics.diversity:SelfBleu",
    "pairwise_bleu": "judge.metrics.diversity:PairwiseBleu",
    "source_bleu": "judge.metrics.diversity:SourceBleu",
    "qags": "judge.metrics.qags:Qags",
    "claims": "judge.metrics.claims:Claims",
    "nli": "judge.metrics.nli:Nli",
    "stats": "judge.metrics.text_features:Stats",
}
PROVIDERS = {
    "openai": "judge.providers.openai:OpenAIProvider",
    "decisions": "judge.providers.decisions:DecisionsProvider",
    "scripted": "judge.providers.scripted:ScriptedProvider",
}
ENGINES = {
    "local": "judge.execution.engines:LocalEngine",
    "batch": "judge.execution.engines.batch_api:BatchEngine",
    "ray": "judge.execution.engines.ray:RayEngine",
}
FORMATS = {
    "console": "judge.report.renderers.console:render",
    "markdown": "judge.report.renderers.markdown:render",
    "html": "judge.report.renderers.html:render",
    "latex": "judge.report.renderers.latex:render",
    "csv": "judge.report.renderers.csv:render",
    "json": "judge.report.renderers.csv:render_json",
    "junit": "judge.report.renderers.junit:render",
    "svg": "judge.report.renderers.svg:render",
}
REPORTS = {
    "plot": "judge.report.renderers.svg:plot",
    "drawn": "judge.report.renderers.svg:drawn",
}
"""What writes a result. Results are below reports, so they load these by name and import none."""
_BUILT_IN: dict[Kind, dict[str, str]] = {
    "metrics": METRICS,
    "providers": PROVIDERS,
    "engines": ENGINES,
    "formats": FORMATS,
}


@cache
def entry_points(group: str) -> metadata.EntryPoints:
    """Return what packages add in a group; cached, because it reads all packages' metadata."""
    return metadata.entry_points(group=group)


def names(kind: Kind) -> list[str]:
    """Return every name that `load` knows for this kind, built-in ones first."""
    added = {point.name for point in entry_points(f"judge.{kind}")}
    # `load` takes the built-in one if a package adds another under its name.
    not_built_in = added - _BUILT_IN[kind].keys()
    return [*_BUILT_IN[kind], *sorted(not_built_in)]


def load(kind: Kind, plugin_name: str) -> Any:
    """Load the object that a name stands for.

    Raises ConfigError for an unknown name, and MissingExtra if its packages are not installed.
    """
    if plugin_name in _BUILT_IN[kind]:
        module, attribute = _BUILT_IN[kind][plugin_name].split(":")
        try:
            return getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            # A missing module of judge itself is a mistake of ours, which pip cannot solve.
            if (error.name or "").partition(".")[0] == "judge":
                raise
            raise MissingExtra(
                f"{plugin_name} needs the package {error.name}: "
                f"pip install 'textjudge[{plugin_name}]'"
            ) from error
    for point in entry_points(f"judge.{kind}"):
        if point.name == plugin_name:
            return point.load()
    noun = kind.removesuffix("s")
    raise ConfigError(unknown_name_message(noun, plugin_name, names(kind)))


def report(report_name: str) -> Any:
    """Return the function of `REPORTS` that has this name."""
    module, attribute = REPORTS[report_name].split(":")
    return getattr(import_module(module), attribute)


def document(finished: Any) -> Any:
    """Return the Document of a result, comparison, card or the like, by the view of its class.

    The Document is built once and kept with the result, for all formats.
    """
    attributes = getattr(finished, "__dict__", {})
    if "_document" not in attributes:
        module, attribute = type(finished).VIEW.split(":")
        view = getattr(import_module(module), attribute)
        attributes["_document"] = view(finished)
    return attributes["_document"]


def fragment(finished: Any) -> str:
    """Return the finding and the summary of a result as HTML for a notebook."""
    html = import_module("judge.report.renderers.html")
    return str(html.fragment(document(finished)))


_OPTIONS = {
    "console": ("full", "colour", "width"),
    "csv": ("wide",),
    "latex": ("full",),
}


def write(report: Any, format: str = "console", **options: Any) -> str:
    """Write a Document in a format.

    `options` are for the console (`full`, `colour`, `width`), for LaTeX (`full`) and for CSV
    (`wide`); other formats ignore them. Raises ConfigError for an unknown format.
    """
    render = load("formats", format)
    names = _OPTIONS.get(format, ())
    known_options = {
        option_name: options[option_name]
        for option_name in names
        if option_name in options
    }
    return str(render(report, **known_options))


class Viewed:
    """A finished thing that its view, `module:function`, turns into a Document."""

    __slots__ = ()
    VIEW: ClassVar[str]

    def __getstate__(self) -> dict[str, Any] | None:
        """Return the attributes for `pickle` and `copy`, without the Document; None if there are
        none.

        A Document has functions that cannot be pickled, and is made again when needed.
        """
        attributes = dict(getattr(self, "__dict__", {}))
        attributes.pop("_document", None)
        return attributes or None


class Reported(Viewed):
    """A finished thing that can write its report."""

    __slots__ = ()

    def report(
        self,
        format: str = "console",
        *,
        full: bool = False,
        colour: bool = False,
    ) -> str:
        """Return the report: console, markdown, html, latex, csv or json; a suite's also junit.

        `full` writes all tables to the console instead of a summary, and to LaTeX instead of the
        main one. `colour` gives the console a terminal's codes. Raises ConfigError for an unknown
        format.
        """
        with speaking_to("python"):
            return write(document(self), format, full=full, colour=colour)

    def _repr_html_(self) -> str:
        """Return the finding and the summary for a notebook."""
        with speaking_to("python"):
            return fragment(self)


def require_known(
    noun: str,
    names: Iterable[str],
    known_names: Collection[str],
    flag: str = "",
) -> None:
    """Raise ConfigError for the first unknown name; the message begins with the `flag`, if any."""
    for name in names:
        if name not in known_names:
            message = unknown_name_message(noun, name, list(known_names))
            raise ConfigError(f"{flag}: {message}" if flag else message)


_MOST_KNOWN = 30  # names in a message


def unknown_name_message(noun: str, unknown_name: str, known_names: list[str]) -> str:
    """Return the message for a name that is not known, with the most similar known one."""
    similar = difflib.get_close_matches(unknown_name, known_names, n=1)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    known = first_names(known_names, _MOST_KNOWN)
    return f"unknown {noun} {unknown_name!r}{hint} (known: {known})"
