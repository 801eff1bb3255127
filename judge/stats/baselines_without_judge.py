"""What needs no judge: the baselines that a judge has to beat, taken from a run or measured now."""

from __future__ import annotations

from collections.abc import Sequence

from judge import text
from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.records import Sample
from judge.core.version import __version__
from judge.metrics import Metric, parallel
from judge.stats.rated_columns import Held, measured, taken
from judge.table import Table

_ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeLsum": "ROUGE-L"}
_CHANGED = ("alpha=", "stop=", "exc=", "preset=")
"""What a signature of ROUGE has that is not the floor's."""


def floors(table: Table, samples: Sequence[Sample], criteria: Sequence[str], *, measure: bool = True) -> list[Held]:
    """The heuristic's columns of these criteria, the length, and ROUGE where there are references.

    Without `measure` the heuristic and ROUGE only where the table has them.
    """
    return [*_heuristics(table, samples, criteria, measure), _length(samples), *_rouge(table, samples, measure)]


def _heuristics(table: Table, samples: Sequence[Sample], criteria: Sequence[str], measure: bool) -> list[Held]:
    """The offline baseline's column of every criterion that it knows."""
    held = {column.criterion: column for column in table.columns if column.kind == "metric" and column.criterion}
    found = [taken(column, table, "heuristic") for name, column in held.items() if name in criteria]
    wanted = [name for name in criteria if measure and name not in held and _heuristic([name])]
    if wanted and (metric := _heuristic(wanted)):
        scored = parallel.score(metric, samples)
        found += [measured(column, scored.rows, "heuristic") for column in scored.columns]
    return found


def _heuristic(criteria: Sequence[str]) -> Metric | None:
    """The baseline for these criteria, None where it does not know them."""
    try:
        metric: Metric = plugins.load("metrics", "heuristic")(criteria=criteria)
    except ConfigError:
        return None
    return metric


def _length(samples: Sequence[Sample]) -> Held:
    used = {sample.output: text.tokenizer_for([sample.output]) for sample in samples}
    values = {(s.item, s.system): float(len(text.words(used[s.output])(s.output))) for s in samples}
    names = "+".join(sorted({text.signature(name) for name in used.values()}))
    return Held("length", f"words|tok={names}|judge {__version__}", values)


def _rouge(table: Table, samples: Sequence[Sample], measure: bool) -> list[Held]:
    if not any(sample.references for sample in samples):
        return []
    held = {column.name: column for column in table.columns if column.name in _ROUGE and _is_mean(column.signature)}
    if held.keys() == _ROUGE.keys():
        return [taken(held[name], table, label) for name, label in _ROUGE.items()]
    if not measure:
        return []
    found = parallel.score(plugins.load("metrics", "rouge")(types=list(_ROUGE), multi="mean"), samples)
    return [measured(column, found.rows, _ROUGE[column.name]) for column in found.columns]


def _is_mean(signature: str) -> bool:
    """Whether a column of ROUGE has what the floor is: F, stemmed, the mean over the references or that of one."""
    said = signature.split("|")
    changed = any(part.startswith(_CHANGED) for part in said) or "stem=no" in said
    return "f" in said and not changed and ("refs=mean" in said or "nrefs=1" in said)
