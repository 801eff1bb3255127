"""Two finished runs on the same texts, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any
from unicodedata import category, normalize

from judge.commands.public import public_api
from judge.commands.validate import check_run
from judge.core.errors import ConfigError
from judge.core.messages import command, one_line, plural
from judge.core.records import Column
from judge.report.views.provenance import build_provenance
from judge.results.comparison import Change, RunComparison
from judge.results.result import Result, load
from judge.stats.run_differences import compare_runs

_WAYS = ("auto", "logprobs", "decisions", "samples", "single")
_NAMES = {"t": "temperature", "judge": "judge version", "tok": "tokenizer", "json": "structured replies"}
_NONE = "–"
_SHOWN, _NAME = 5, 40  # names of either side, and characters of each


@public_api()
def compare(
    before: Result | str | Path, after: Result | str | Path, *, seed: int = 0, n_resamples: int = 10_000
) -> RunComparison:
    """What moved from one run to another on the same texts: two results, or the folders of two runs.

    Texts are the same that have the same item and system. For every column of both, by system, the mean of the
    differences with its interval and a test; the items that moved most; the failures that appeared or vanished; and
    what is different about how the runs were made. `judge.stats.run_differences` says what the numbers are.

    Raises ConfigError for what is no scored run, and for runs that have no text or no column in common; StorageError.
    """
    results = [_run(one) for one in (before, after)]
    names = _names(before, after)
    for name, result in zip(names, results, strict=True):
        if result.rankings or any(row.rival for row in result.table.rows()):
            raise ConfigError(
                f"{name}: texts were compared two by two there, and none has a score that could have moved; "
                "judge report shows each ranking with its win rates"
            )
    one, other = results
    found = compare_runs(one.table, other.table, seed=seed, n_resamples=n_resamples)
    if not found.texts:
        raise ConfigError("; ".join([f"{names[0]} and {names[1]} have no text in common", *_apart(one, other)]))
    if not found.moved and not found.incomparable:
        had, has = (", ".join(column.name for column in result.table.columns) for result in results)
        wordings = f"{command('criteria diff')} lays two wordings of a criterion side by side, whatever they are called"
        raise ConfigError(f"{names[0]} and {names[1]} have no column with values in common ({had}; {has}); {wordings}")
    return RunComparison(names, one, other, found, tuple(_changes(one, other)), tuple(_notes(names, one, other)))


def _run(given: Result | str | Path) -> Result:
    if isinstance(given, Result):
        return given
    check_run(Path(given))
    return load(given)


def _names(before: Result | str | Path, after: Result | str | Path) -> tuple[str, str]:
    given = [("before", before), ("after", after)]
    first, second = (name if isinstance(one, Result) else str(one) for name, one in given)
    return first, second


def _apart(before: Result, after: Result) -> Iterator[str]:
    """Why no text of two runs is the same: whose names differ, and which of them only seem to be the same."""
    yield "texts are the same that have the same item and system"
    for what in ("item", "system"):
        sides = [getattr(result.table, f"{what}s") for result in (before, after)]
        if not set(sides[0]) & set(sides[1]):
            yield f"the {what}s are {_listed(sides[0])} there, {_listed(sides[1])} here"
    yield from _alike(before, after)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(one_line(name, _NAME)) for name in names[:_SHOWN]) + more


def _alike(before: Result, after: Result) -> Iterator[str]:
    """Names that one run alone has, and that look like one that the other alone has."""
    for what in ("item", "system"):
        had, has = (dict.fromkeys(getattr(result.table, f"{what}s")) for result in (before, after))
        known = {_look(name): name for name in had if name not in has}
        found = [(known[_look(name)], name) for name in has if name not in had and _look(name) in known]
        if found:
            one, other = (ascii(name) for name in found[0])
            yield (
                f"the names of {plural(len(found), what)} look the same in both runs and are not ({one} there, "
                f"{other} here): write them alike"
            )


def _look(name: str) -> str:
    """What is seen of a name: composed, without characters of no width, blanks as one."""
    return " ".join("".join(one for one in normalize("NFC", name) if category(one) != "Cf").split())


def _notes(names: tuple[str, str], before: Result, after: Result) -> Iterator[str]:
    """What either run's report warns of; what both do stands alone. Names that are not the same, but look so."""
    yield from (f"{text[0].upper()}{text[1:]}." for text in _alike(before, after))
    first, second = (build_provenance(result).all_banners for result in (before, after))
    yield from (text for text in first if text in second)
    for name, banners, others in ((names[0], first, second), (names[1], second, first)):
        yield from (f"{name}: {text}" for text in banners if text not in others)
    for name, result in zip(names, (before, after), strict=True):
        if "streamed" in result.info:
            yield f"{name}: the first {len(result.table.samples):,} texts are compared; its tables have all."


def _changes(before: Result, after: Result) -> Iterator[Change]:
    """What is not the same about how the runs were made, by what it is; what several columns share stands once."""
    had, has = (result.info.get("data") or {} for result in (before, after))
    if had.get("sha256") != has.get("sha256"):
        yield Change("data", _data(had), _data(has))
    found: dict[tuple[str, str, str], list[str]] = {}
    columns = {column.name: column for column in before.table.columns}
    for column in after.table.columns:
        if column.name in columns:
            for change in _signed(columns[column.name], column):
                found.setdefault(change, []).append(column.name)
    for (what, old, new), names in found.items():
        diff = _diff(before.info, after.info, columns[names[0]]) if what == "prompt" else ()
        yield Change(what, old, new, tuple(names), diff)
    yield from _served(before.info, after.info)


def _data(found: Mapping[str, Any]) -> str:
    path, digest = found.get("path"), found.get("sha256")
    return f"{path}, sha256 {str(digest)[:12]}" if path and digest else str(path or "not from a file")


def _signed(before: Column, after: Column) -> Iterator[tuple[str, str, str]]:
    """What differs between two signatures: what it is, before, after. A panel's mean: nothing, as its judges have."""
    if before.signature.startswith("mean of "):
        return
    old, new = (_parts(column) for column in (before, after))
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            yield name, old.get(name, _NONE), new.get(name, _NONE)


def _parts(column: Column) -> dict[str, str]:
    """A signature's parts by name: `coherence@3f2a91|openai/small|t=0|logprobs|judge 0.1.0`."""
    first, *rest = column.signature.split("|")
    named, at, digest = first.partition("@")
    found = {"prompt": digest} if at else {} if named in (column.name, column.criterion) else {"metric": named}
    if column.kind == "criterion" and rest and "/" in rest[0]:
        found["model"] = rest.pop(0)
    for part in rest:
        name, mark, value = part.partition("=" if "=" in part else " ")
        if part in _WAYS:
            name, value = "weighting", part
        found[_NAMES.get(name, name)] = value if mark or part in _WAYS else "yes"
    return found


def _diff(before: Mapping[str, Any], after: Mapping[str, Any], column: Column) -> tuple[str, ...]:
    """The lines of a criterion's templates that differ."""
    name = column.criterion or column.name
    had, has = (((info.get("criteria") or {}).get(name) or {}).get("templates") or {} for info in (before, after))
    found: list[str] = []
    for file in dict.fromkeys([*had, *has]):
        old, new = (str(texts.get(file, "")).splitlines() for texts in (had, has))
        found += unified_diff(old, new, f"{file} (before)", f"{file} (after)", lineterm="")
    return tuple(found)


def _served(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """Models that answered under one name, but are not the same."""
    had, has = (info.get("judges") or {} for info in (before, after))
    for name in had:
        if name in has:
            old, new = (", ".join((judges[name] or {}).get("served_by") or ()) for judges in (had, has))
            if old and new and old != new:
                yield Change(f"what answered as {name}", old, new)
