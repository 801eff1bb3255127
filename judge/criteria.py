"""A criterion's file to a `Criterion`, with everything that can be wrong in it found before anything is sent.

A file is a YAML header between two `---` lines and a Jinja template, which mostly extends a layout. Layouts are
looked for in the file's own folder, in `prompts/<language>/` and in `prompts/`, and nowhere else.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import yaml
from jinja2 import StrictUndefined, TemplateSyntaxError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from judge.errors import CriterionError, DataError
from judge.records import Criterion, ReplyKind, Sample, Scale
from judge.registry import unknown

MAX_LABELS = 1_000
HIDDEN = {
    "system": "a judge that knows which system wrote a text does not judge the text alone",
    "human": "a judge that sees the people's ratings repeats them",
    "item": "an item's id says nothing about the text, and would keep equal prompts from being asked once",
}
"""What no template may read, and why."""

_HEADER = re.compile(r"\A---[ \t]*\n(?P<yaml>.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_SCALES = "[1, 5], {min: 0, max: 100, step: 10} or {labels: [fail, pass], values: [0, 1]}"
_BY_ATTRIBUTE = {"attr", "groupby", "map", "max", "min", "rejectattr", "selectattr", "sort", "sum", "unique"}
_REFERENCES = (nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)


def builtin_prompts() -> Path:
    """The folder of the built-in criteria: inside the package (installed), else beside it (a checkout)."""
    package = Path(__file__).parent
    inside = package / "prompts"
    return inside if inside.is_dir() else package.parent / "prompts"


def languages() -> list[str]:
    """The languages the built-in criteria are written in: `en`, then every folder with layouts of its own."""
    return ["en", *sorted(folder.parent.name for folder in builtin_prompts().glob("*/layouts"))]


def builtin(language: str = "en") -> list[Criterion]:
    """Every built-in criterion in a language, in the order of their names. Raises CriterionError for a language unknown."""
    return [_read(path, language) for path in _builtin_files(language).values()]


def load(name_or_path: str, *, language: str = "en") -> Criterion:
    """The built-in criterion of a name (`relevance`, `summarization/relevance`), or the one in a user's file.

    Whatever ends in `.jinja`, or holds a path separator and is no built-in name, is a file. `language` picks the
    built-in set and the layouts. Raises CriterionError, with file and line where there is one, for all that is wrong.
    """
    files = _builtin_files(language)
    if name_or_path.endswith(".jinja"):
        return _read(Path(name_or_path), language)
    for name, path in files.items():
        if name_or_path in (name, path.stem):
            return _read(path, language)
    if "/" in name_or_path or os.sep in name_or_path:
        return _read(Path(name_or_path), language)
    known = [path.stem for path in files.values()]
    raise CriterionError(f"{unknown('criterion', name_or_path, known)}; a path to a .jinja file works too")


def sources(criterion: Criterion) -> dict[str, str]:
    """Every text that shapes the prompt, by template name: the criterion's file first, then its layouts."""
    folders = _folders(criterion)
    own = Path(criterion.path).name
    texts = {own: criterion.template}
    queue = [own]
    for name in queue:
        for node in _parse(_label(criterion, name), texts[name]).find_all(_REFERENCES):
            at = f"{_label(criterion, name)}:{node.lineno}"
            wanted = _reference(at, node)
            if wanted not in texts and (file := _find(at, wanted, node, folders)):
                texts[wanted] = _text(file)
                queue.append(wanted)
    return texts


def check(criterion: Criterion, samples: Sequence[Sample]) -> None:
    """Every sample has what the criterion's template reads.

    Raises CriterionError for a variable that no sample has, and DataError, naming the first sample that lacks it,
    for one that some lack or that is a field of every `Sample` (the data were read without it).
    """
    lacking = {name: [s for s in samples if not _has(s, name)] for name in sorted(criterion.needs)}
    for name, rows in lacking.items():
        if rows and len(rows) == len(samples):
            raise _nowhere(criterion, name, samples)
    for name, rows in lacking.items():
        if rows:
            first = rows[0]
            raise DataError(
                f"{first.where + ': ' if first.where else ''}item {first.item!r} of system {first.system!r} has no "
                f"{name}, which the criterion {criterion.name} reads; {len(rows)} of {len(samples)} samples lack it"
            )


# ---------------------------------------------------------------------------------------------------- finding files


def _builtin_files(language: str) -> dict[str, Path]:
    """`task/name` → file, for every built-in criterion of a language."""
    known = languages()
    if language not in known:
        raise CriterionError(unknown("language", language, known))
    root = builtin_prompts() if language == "en" else builtin_prompts() / language
    files = [file for file in root.glob("*/*.jinja") if file.parent.name != "layouts"]
    return {f"{file.parent.name}/{file.stem}": file for file in sorted(files)}


def _folders(criterion: Criterion) -> list[Path]:
    root = builtin_prompts()
    localised = [] if criterion.language == "en" else [root / criterion.language]
    return [Path(criterion.path).parent, *localised, root]


def _label(criterion: Criterion, name: str) -> str:
    """What a message calls a template: the criterion's file by its path, a layout by its name."""
    return criterion.path if name == Path(criterion.path).name else name


def _reference(at: str, node: nodes.Node) -> str:
    """The name of the template that a node extends, includes or imports."""
    template = getattr(node, "template", None)
    if not (isinstance(template, nodes.Const) and isinstance(template.value, str)):
        raise CriterionError(f"{at}: the name of another template must be written out, in quotes")
    name = template.value
    # Lexical on purpose: installers may link the built-in files from a store of their own.
    if "\\" in name or ":" in name or PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise CriterionError(f"{at}: {name!r} leads outside the folders templates may come from; copy the file beside")
    if not name.endswith(".jinja"):
        raise CriterionError(f"{at}: {name!r} is not a template; only .jinja files can be extended or included")
    return name


def _find(at: str, name: str, node: nodes.Node, folders: list[Path]) -> Path | None:
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    if isinstance(node, nodes.Include) and node.ignore_missing:
        return None
    raise CriterionError(f"{at}: no template {name!r}; looked in {', '.join(str(folder) for folder in folders)}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise CriterionError(f"{path}: no such file") from error
    except OSError as error:
        raise CriterionError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CriterionError(f"{path}: not a text file in UTF-8") from error


def _read(path: Path, language: str) -> Criterion:
    text = _text(path)
    header = _header(str(path), text)
    criterion = Criterion(
        name=path.stem,
        template=text,
        scale=header.scale,
        reply=header.reply,
        weight=header.weight,
        title=header.title.strip() or path.stem,
        description=header.description,
        steps=tuple(header.steps),
        version=header.version,
        language=language,
        path=str(path),
    )
    texts = sources(criterion)
    digest = hashlib.sha256(json.dumps(list(texts.items())).encode()).hexdigest()
    return replace(criterion, needs=_needs(criterion, texts), digest=digest)


# --------------------------------------------------------------------------------------------------------- the header


def _scale(raw: Any) -> Scale:
    if isinstance(raw, list) and len(raw) == 2:
        return _number_scale(raw[0], raw[1], 1)
    if isinstance(raw, dict) and raw.keys() == {"labels", "values"}:
        return _label_scale(raw["labels"], raw["values"])
    if isinstance(raw, dict) and {"min", "max"} <= raw.keys() <= {"min", "max", "step"}:
        return _number_scale(raw["min"], raw["max"], raw.get("step", 1))
    raise ValueError(f"{raw!r} is not a scale; write {_SCALES}")


def _number_scale(low: Any, high: Any, step: Any) -> Scale:
    if not all(type(n) is int for n in (low, high, step)):
        raise ValueError(f"a scale runs between whole numbers; write {_SCALES}")
    if low >= high:
        raise ValueError(f"{low} is not below {high}; the lowest score comes first")
    if step < 1 or (high - low) % step:
        raise ValueError(f"steps of {step} do not lead from {low} to {high}; a step divides {high - low}")
    if (count := (high - low) // step + 1) > MAX_LABELS:
        raise ValueError(f"{count:,} labels are too many; at most {MAX_LABELS:,}")
    return Scale.integers(low, high, step)


def _label_scale(labels: Any, values: Any) -> Scale:
    if not isinstance(labels, list) or not all(type(label) in (str, int) for label in labels):
        raise ValueError(
            "labels is a list of words; put yes, no, on and off in quotes, YAML reads them as true and false"
        )
    if not isinstance(values, list) or not all(type(v) in (int, float) and math.isfinite(v) for v in values):
        raise ValueError("values is a list of numbers, one for each label")
    if len(labels) != len(values):
        raise ValueError(f"{len(labels)} labels, but {len(values)} values; each label has one value")
    texts = [str(label).strip() for label in labels]
    folded = [unicodedata.normalize("NFKC", text).casefold().strip() for text in texts]
    if len(texts) < 2 or len(set(values)) < 2:
        raise ValueError("a scale has at least two labels of different value")
    if len(texts) > MAX_LABELS or any(not text or len(text.splitlines()) > 1 for text in folded):
        raise ValueError(f"a label is one line of text, and a scale has at most {MAX_LABELS:,}")
    for position, text in enumerate(folded):
        if (first := folded.index(text)) < position:
            raise ValueError(f"the labels {texts[first]!r} and {texts[position]!r} would be read as the same answer")
    return Scale(tuple(texts), tuple(float(value) for value in values))


class _Header(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)

    title: str = ""
    description: str = ""
    scale: Annotated[Scale, PlainValidator(_scale)]
    reply: ReplyKind = "score"
    weight: float = Field(1.0, gt=0, allow_inf_nan=False)
    version: int = Field(1, ge=1)
    steps: list[str] = []


def _header(label: str, text: str) -> _Header:
    found = _HEADER.match(text)
    if found is None:
        if text.startswith("---"):
            raise CriterionError(f"{label}:1: the header that starts here is not closed; end it with a line ---")
        raise CriterionError(
            f"{label}:1: no header; start the file with a line ---, then scale: [1, 5], then a line ---"
        )
    # With its first `---` line, which YAML knows as the start of a document, lines count as in the file.
    head = text[: found.end("yaml")]
    try:
        tree, data = yaml.compose(head, Loader=yaml.SafeLoader), yaml.safe_load(head)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise CriterionError(
            f"{label}:{line}: the header is not YAML: {getattr(error, 'problem', None) or error}"
        ) from error
    if not isinstance(tree, yaml.MappingNode):
        raise CriterionError(f"{label}:1: the header is not a list of `key: value` lines; write at least scale: [1, 5]")
    lines: dict[str, int] = {}
    for key, _ in tree.value:
        line = key.start_mark.line + 1
        if lines.setdefault(str(key.value), line) != line:
            raise CriterionError(f"{label}:{line}: {key.value} stands here for the second time")
    try:
        return _Header.model_validate({str(key): value for key, value in data.items()})
    except ValidationError as error:
        raise _bad_key(label, lines, error) from error


def _bad_key(label: str, lines: dict[str, int], error: ValidationError) -> CriterionError:
    """The first complaint about a header, as a person would say it."""
    first = error.errors()[0]
    key = str(first["loc"][0])
    at = f"{label}:{lines.get(key, 1)}"
    if first["type"] == "extra_forbidden":
        return CriterionError(f"{at}: {unknown('key', key, list(_Header.model_fields))}")
    if first["type"] == "missing":
        return CriterionError(f"{at}: the header has no {key}; write {_SCALES}")
    if first["type"] == "value_error":
        return CriterionError(f"{at}: {key}: {first['ctx']['error']}")
    hint = "; put text that holds a colon in quotes" if isinstance(first["input"], dict) else ""
    return CriterionError(f"{at}: {key}: {first['msg']}, not {first['input']!r}{hint}")


# ------------------------------------------------------------------------------------------------------- the template


@lru_cache(maxsize=1)
def _syntax() -> ImmutableSandboxedEnvironment:
    """What templates are read with. `render` renders with the same filters and globals."""
    env = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    env.filters["fenced"] = str
    # Chance has no place in a prompt: equal samples must give equal requests.
    del env.filters["random"], env.globals["lipsum"]
    return env


def _body(text: str) -> str:
    """A template without its header, every line where it was."""
    found = _HEADER.match(text)
    return "\n" * found[0].count("\n") + text[found.end() :] if found else text


def _parse(label: str, text: str) -> nodes.Template:
    """The syntax tree. Raises CriterionError for bad syntax, unknown filters and names that start with `_`."""
    try:
        tree = _syntax().parse(_body(text))
        for node in tree.find_all((nodes.Getattr, nodes.Getitem, nodes.Filter)):
            if name := next((name for name in _reached(node) if name.startswith("_")), None):
                raise CriterionError(
                    f"{label}:{node.lineno}: {name} is out of bounds: names that start with _ are Python's own"
                )
        meta.find_undeclared_variables(tree)
    except TemplateSyntaxError as error:
        raise CriterionError(f"{label}:{error.lineno}: {error.message}") from error
    extends = list(tree.find_all(nodes.Extends))
    if len(extends) > 1 or any(node not in tree.body for node in extends):
        raise CriterionError(f"{label}:{extends[-1].lineno}: a template extends one other, and not inside if or for")
    return tree


def _reached(node: nodes.Node) -> list[str]:
    """The attributes and keys a node reaches for, as far as the text of the template tells."""
    if isinstance(node, nodes.Getattr):
        return [node.attr]
    given: list[nodes.Node] = [node.arg] if isinstance(node, nodes.Getitem) else []
    if isinstance(node, nodes.Filter) and node.name in _BY_ATTRIBUTE:
        given = [*node.args, *(pair.value for pair in node.kwargs)]
    texts = [one.value for one in given if isinstance(one, nodes.Const) and isinstance(one.value, str)]
    return [part for text in texts for part in text.split(".")]


def _needs(criterion: Criterion, texts: dict[str, str]) -> frozenset[str]:
    """The variables that a rendering reads and that must be there."""
    tree = nodes.Template(_flat(texts, Path(criterion.path).name, ()), lineno=1)
    tree.set_environment(_syntax())
    free = meta.find_undeclared_variables(tree)
    for name, reason in HIDDEN.items():
        if name in free:
            raise CriterionError(f"{_line(criterion, texts, name)}: {name} is never shown to the judge: {reason}")
    tested = [node.node for node in tree.find_all(nodes.Test) if node.name in ("defined", "undefined")]
    tested += [node.node for node in tree.find_all(nodes.Filter) if node.name in ("default", "d") and node.node]
    optional = {node.name for node in tested if isinstance(node, nodes.Name)}
    return frozenset(free - optional - {"this", "self", "super"})


def _flat(texts: dict[str, str], name: str, trail: tuple[str, ...]) -> list[nodes.Node]:
    """What is rendered of a template: its base's body, with every block as its last heir defines it."""
    chain: list[nodes.Template] = []
    wanted: str | None = name
    while wanted:
        if wanted in trail:
            raise CriterionError(f"{wanted}: templates that lead back to themselves: {' > '.join((*trail, wanted))}")
        trail = (*trail, wanted)
        chain.append(_syntax().parse(_body(texts[wanted])))
        parent = chain[-1].find(nodes.Extends)
        wanted = _reference(wanted, parent) if parent else None
    blocks: dict[str, list[nodes.Block]] = {}
    for tree in chain:
        for block in tree.find_all(nodes.Block):
            blocks.setdefault(block.name, []).append(block)
    # Outside its blocks an heir prints nothing, but what it sets and imports holds.
    heirs = [node for tree in chain[:-1] for node in tree.body]
    body = [node for node in heirs if not isinstance(node, (nodes.Extends, nodes.Block, nodes.Output))] + chain[-1].body
    flat = nodes.Template(body, lineno=1)
    _Inline(blocks, lambda other: _flat(texts, other, trail) if other in texts else []).visit(flat)
    return flat.body


class _Inline(NodeTransformer):
    """Puts what is rendered in the place of every block, include, and import that sees the context."""

    def __init__(self, blocks: dict[str, list[nodes.Block]], flat: Callable[[str], list[nodes.Node]]) -> None:
        self._blocks = blocks
        self._flat = flat

    def visit_Block(self, node: nodes.Block) -> list[nodes.Node]:  # noqa: N802
        scopes: list[nodes.Node] = []
        for block in self._blocks[node.name]:
            scopes.append(nodes.Scope(block.body, lineno=block.lineno))
            if not any(name.name == "super" for name in block.find_all(nodes.Name)):
                break
        return [self.generic_visit(scope) for scope in scopes]

    def visit_Include(self, node: nodes.Include) -> list[nodes.Node]:  # noqa: N802
        return [nodes.Scope(self._flat(_reference("", node)), lineno=node.lineno)] if node.with_context else []

    def visit_Import(self, node: nodes.Import | nodes.FromImport) -> list[nodes.Node]:  # noqa: N802
        seen = self._flat(_reference("", node)) if node.with_context else []
        return [node, nodes.Scope(seen, lineno=node.lineno)]

    visit_FromImport = visit_Import  # noqa: N815


def _line(criterion: Criterion, texts: dict[str, str], variable: str) -> str:
    """`file:line` of the first place that reads a variable."""
    for name, text in texts.items():
        tree = _syntax().parse(_body(text))
        if variable in meta.find_undeclared_variables(tree):
            line = next(node.lineno for node in tree.find_all(nodes.Name) if node.name == variable)
            return f"{_label(criterion, name)}:{line}"
    return criterion.path


# ---------------------------------------------------------------------------------------------------------- the data


def _has(sample: Sample, name: str) -> bool:
    """Whether a sample brings a variable: `render` puts exactly these before the template."""
    if name == "source":
        return bool(sample.source)
    if name == "references" or (name == "reference" and sample.extra.get(name) is None):
        return bool(sample.references)
    return name == "output" or (name not in HIDDEN and sample.extra.get(name) is not None)


def _nowhere(criterion: Criterion, name: str, samples: Sequence[Sample]) -> CriterionError | DataError:
    """What to raise for a variable that no sample has."""
    candidates = {"output", "source", "reference", "references"}.union(*(sample.extra for sample in samples))
    known = sorted(one for one in candidates if any(_has(sample, one) for sample in samples))
    at = _line(criterion, sources(criterion), name)
    has = f"the data has: {', '.join(known)}"
    if name in ("source", "reference", "references"):
        return DataError(f"{at}: the criterion {criterion.name} reads {name}, which no sample has; {has}")
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return CriterionError(
        f"{at}: unknown variable {name!r}{hint} {has}" if near else f"{at}: unknown variable {name!r}; {has}"
    )
