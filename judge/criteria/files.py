"""Names and paths to criteria."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

from judge.criteria.header import read_header
from judge.criteria.needs import needs
from judge.criteria.template import builtin_prompts, read_layouts, read_text, sources
from judge.errors import CriterionError
from judge.records import Criterion
from judge.registry import unknown


def languages() -> list[str]:
    """The languages the built-in criteria are written in: `en`, then every folder with layouts of its own."""
    return ["en", *sorted(folder.parent.name for folder in builtin_prompts().glob("*/layouts"))]


def builtin(language: str = "en", pairwise: bool = False) -> list[Criterion]:
    """Every built-in criterion of a language that judges one text, or those that compare two, by name.

    Raises CriterionError where there is no such language.
    """
    return [_read(path, language) for name, path in _builtin_files(language).items() if _compares(name) == pairwise]


def load(name_or_path: str, *, language: str = "en", pairwise: bool | None = False) -> Criterion:
    """The built-in criterion of a name (`relevance`, `summarization/relevance`), or the one in a user's file.

    Whatever ends in `.jinja`, or holds a path separator and is no built-in name, is a file. `language` picks the
    built-in set and the layouts, `pairwise` the set that compares two texts; None takes either, first the one that
    judges one text. Raises CriterionError, with file and line where there is one, for all that is wrong.
    """
    criterion = _read(_file_of(name_or_path, language, pairwise), language)
    if pairwise is not None and criterion.pairwise != pairwise:
        raise CriterionError(f"{criterion.path}: {_mismatch(criterion)}")
    return criterion


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
        return f"{what}; judge rank does that, judge run judges one text; to judge plan, add --rank"
    if lone := sorted(criterion.needs & {"first", "second"}):
        return f"reads {lone[0]} alone; a criterion of judge rank reads both first and second"
    return "judges one text; that is for judge run, while a criterion of judge rank reads first and second"


def _builtin_files(language: str) -> dict[str, Path]:
    """`task/name` → file, for every built-in criterion of a language."""
    known = languages()
    if language not in known:
        raise CriterionError(unknown("language", language, known))
    root = builtin_prompts() if language == "en" else builtin_prompts() / language
    files = [file for file in root.glob("*/*.jinja") if file.parent.name != "layouts"]
    return {f"{file.parent.name}/{file.stem}": file for file in sorted(files)}


def _read(path: Path, language: str) -> Criterion:
    text = read_text(path)
    header = read_header(str(path), text)
    criterion = Criterion(
        name=path.stem,
        template=text,
        scale=header.scale,
        reply=header.reply,
        weight=header.weight,
        title=header.title.strip() or path.stem,
        description=header.description.strip(),
        steps=tuple(header.steps),
        version=header.version,
        language=language,
        path=str(path),
    )
    return signed(replace(criterion, layouts=read_layouts(criterion)))


def signed(criterion: Criterion) -> Criterion:
    """The criterion with what its texts make it need, and their digest."""
    texts = sources(criterion)
    digest = hashlib.sha256(json.dumps(list(texts.items())).encode()).hexdigest()
    return replace(criterion, needs=needs(criterion, texts), digest=digest)
