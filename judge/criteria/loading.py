"""Names and paths to criteria."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.core.errors import CriterionError
from judge.core.messages import command, option
from judge.core.plugins import unknown
from judge.core.records import Criterion
from judge.criteria.header import head, read_header
from judge.criteria.required_variables import needs
from judge.criteria.template import builtin_prompts, read_layouts, read_text, sources


def languages() -> list[str]:
    """The languages the built-in criteria are written in: `en`, then every folder with layouts of its own."""
    return ["en", *sorted(folder.parent.name for folder in builtin_prompts().glob("*/layouts"))]


def builtin(language: str = "en", pairwise: bool = False) -> list[Criterion]:
    """Every built-in criterion of a language that judges one text, or those that compare two, by name.

    Raises CriterionError where there is no such language.
    """
    return [_read(path, language) for name, path in _builtin_files(language).items() if _compares(name) == pairwise]


def load(
    name_or_path: str | Path | None = None,
    *,
    text: str | None = None,
    name: str = "",
    language: str = "en",
    pairwise: bool | None = False,
) -> Criterion:
    """The built-in criterion of a name (`relevance`, `summarization/relevance`), the one in a file, or of a `text`.

    Whatever ends in `.jinja`, or holds a path separator and is no built-in name, is a file. In place of either, `text`
    is what such a file would hold, header and template, and `name` what its column is to be called.

    `language` picks the built-in set and the layouts, `pairwise` the set that compares two texts; None takes either,
    first the one that judges one text. Raises CriterionError, with file and line where there is one, for all that is
    wrong.
    """
    if text is not None:
        criterion = _of_text(text, name, language)
    elif name_or_path is None:
        raise CriterionError("no criterion: give a name, a file, or its text: judge.load_criterion(text=..., name=...)")
    else:
        criterion = _read(_file_of(checked_name(name_or_path), language, pairwise), language)
    if pairwise is not None and criterion.pairwise != pairwise:
        raise CriterionError(f"{criterion.path}: {_mismatch(criterion)}")
    return criterion


def checked_name(given: Any) -> str:
    """A criterion's name or path. Raises CriterionError for what is neither, such as the text of one."""
    if isinstance(given, Path):
        return str(given)
    of_text = 'judge.load_criterion(text="""---\\nscale: [1, 5]\\n---\\n...""", name="NAME") makes one of a text'
    if not isinstance(given, str):
        what = "a mapping" if isinstance(given, Mapping) else f"a {type(given).__name__}"
        raise CriterionError(f"a criterion is a name, a .jinja file or a Criterion, not {what}; {of_text}")
    if "\n" in given or "{{" in given or "{%" in given:
        raise CriterionError(f"this is a criterion's text, not its name or file ({given.strip()[:40]!r}...); {of_text}")
    return given


def _of_text(text: str, name: str, language: str) -> Criterion:
    if not name.strip() or "/" in name or os.sep in name:
        raise CriterionError(
            'a criterion of a text needs a name, without a slash: load_criterion(text=..., name="...")'
        )
    return _made(text.lstrip("\ufeff\n"), name, f"{name}.jinja", language)


def _file_of(name_or_path: str, language: str, pairwise: bool | None) -> Path:
    # Both sets have a relevance: of two files of that name, the one of the set that was asked for.
    every = sorted(_builtin_files(language).items(), key=lambda pair: _compares(pair[0]) != bool(pairwise))
    if name_or_path.endswith(".jinja"):
        return Path(name_or_path)
    for name, path in every:
        if name_or_path in (name, path.stem):
            return path
    if "/" in name_or_path or os.sep in name_or_path:
        return Path(name_or_path)
    known = [path.stem for name, path in every if pairwise is None or _compares(name) == pairwise]
    raise CriterionError(
        f"{unknown('criterion', name_or_path, list(dict.fromkeys(known)))}; a path to a .jinja file works too"
    )


def _compares(name: str) -> bool:
    return name.startswith("pairwise/")


def _mismatch(criterion: Criterion) -> str:
    """Why a criterion does not serve the command that asked for it, and which one it does serve."""
    if criterion.pairwise:
        what = "compares two texts (it reads first and second)"
        return (
            f"{what}; {command('rank')} does that, {command('run')} judges one text; to {command('plan')}, add "
            f"{option('rank', True)}"
        )
    if lone := sorted(criterion.needs & {"first", "second"}):
        return f"reads {lone[0]} alone; a criterion of {command('rank')} reads both first and second"
    return (
        f"judges one text; that is for {command('run')}, while a criterion of {command('rank')} reads first and second"
    )


def _builtin_files(language: str) -> dict[str, Path]:
    """`task/name` → file, for every built-in criterion of a language."""
    known = languages()
    if language not in known:
        raise CriterionError(unknown("language", language, known))
    root = builtin_prompts() if language == "en" else builtin_prompts() / language
    files = [file for file in root.glob("*/*.jinja") if file.parent.name != "layouts"]
    return {f"{file.parent.name}/{file.stem}": file for file in sorted(files)}


def _read(path: Path, language: str) -> Criterion:
    return _made(read_text(path), path.stem, str(path), language)


def _made(text: str, name: str, path: str, language: str) -> Criterion:
    header = read_header(path, text)
    criterion = Criterion(
        name=name,
        template=text,
        scale=header.scale,
        reply=header.reply,
        weight=header.weight,
        title=header.title.strip() or name,
        description=header.description.strip(),
        steps=tuple(header.steps),
        version=header.version,
        language=language,
        path=path,
    )
    return signed(replace(criterion, layouts=read_layouts(criterion), said=criterion.told))


def signed(criterion: Criterion) -> Criterion:
    """The criterion with what its texts make it need."""
    return replace(criterion, needs=needs(criterion, sources(criterion)))


def settled(criterion: Criterion) -> Criterion:
    """A criterion that a program has made or changed, with the layouts and needs that its template now has.

    Raises CriterionError for what is wrong with the template, and for a header that says something else than it does.
    """
    found = criterion if criterion.path else replace(criterion, path=f"{criterion.name}.jinja")
    found = found if found.title else replace(found, title=found.name)
    if head(found.template):
        header = read_header(found.path, found.template)
        says = header.scale.labels, header.scale.values, tuple(header.steps), header.reply
        if says not in (found.told[2:], found.said[2:]):
            raise CriterionError(
                f"{found.path}: the header of its template says another scale, steps or reply than the Criterion has; "
                "judge.load_criterion(text=..., name=...) makes one of a text with its header"
            )
    return signed(replace(found, layouts=read_layouts(found)))
