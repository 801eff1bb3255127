"""Read a criterion's Jinja template and its layouts.

Layouts are searched in the folder of the criterion's own file, in `prompts/<language>/` and in
`prompts/en/`, and nowhere else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath

from jinja2 import TemplateSyntaxError, meta, nodes, pass_context

from judge.core import yaml_lines
from judge.core.errors import CriterionError
from judge.core.records import Criterion
from judge.criteria.header import front_matter, template_body
from judge.criteria.sandbox import MOST_TEMPLATES, Sandbox

MAX_CHARACTERS = 100_000
"""In all templates of a criterion, headers included."""
MAX_TEMPLATES = 50
# A text that `question_template` made, such as
#   {% extends "layouts/question.jinja" %}
#   {% set shown_fields = [("source", source), ] %}
_QUESTION_TEMPLATE = re.compile(
    r'\s*{% extends "layouts/(?:question|pairwise_question|checklist)\.jinja" %}\n'
    r'({% set shown_fields = \[(\("(\w+)", \3\), )*\] %}\n)?'
)
# Text without jinja's syntax: it ends before `{{`, `{%` or `{#`.
_PLAIN = r"(?:(?!\{[{%#]).)*"
_START_TAG = r"\{%[-+]?\s*block\s+\w+\s*[-+]?%\}"  # `{% block scale %}`
_END_TAG = r"\{%[-+]?\s*endblock(?:\s+\w+)?\s*[-+]?%\}"  # `{% endblock %}`
CRITERION_BLOCK = re.compile(
    r"(?P<start>\{%[-+]?\s*block\s+criterion\s*[-+]?%\}\n?)"
    rf"{_PLAIN}(?:{_START_TAG}{_PLAIN}{_END_TAG}{_PLAIN})*"
    r"(?P<end>\{%[-+]?\s*endblock(?:\s+criterion)?\s*[-+]?%\})",
    re.DOTALL,
)
"""A block `criterion` of text alone, which may have parts that are blocks of text."""
_REFERENCES = (nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)
# Keys that a template has to show, or the judge would not know of them.
_SHOWN_KEYS = {"levels", "examples", "cite"}
# Keys that are about one text, which a comparison does not have.
_KEYS_OF_ONE_TEXT = {
    "levels",
    "pass_at",
    "examples",
    "questions",
    "questions_column",
    "cite",
    "paraphrases",
    "ignores",
}


def question_template(
    show: Sequence[str] | None = None,
    *,
    checklist: bool = False,
    pairwise: bool = False,
) -> str:
    """Return the template of a criterion that is only a question or a checklist.

    It shows these variables; None shows the source, if there is one. With `pairwise`, the question
    compares two texts. A checklist is about one text.
    """
    layout = "pairwise_question" if pairwise else "question"
    if checklist:
        layout = "checklist"
    extends = f'{{% extends "layouts/{layout}.jinja" %}}\n'
    if show is None:
        return extends
    quoted = [f'("{variable_name}", {variable_name}), ' for variable_name in show]
    fields = "".join(quoted)
    return f"{extends}{{% set shown_fields = [{fields}] %}}\n"


def is_question_template(body: str) -> bool:
    """Return whether `question_template` made a template without its header."""
    return _QUESTION_TEMPLATE.fullmatch(body) is not None


def check_keys(criterion: Criterion) -> None:
    """Raise CriterionError for header keys that the criterion cannot have.

    These are keys about one text in a comparison, and keys that no template shows.
    """
    forbidden = _KEYS_OF_ONE_TEXT if criterion.pairwise else set()
    _check_better(criterion)
    texts = "".join(template_texts(criterion).values())
    possible = _SHOWN_KEYS - forbidden
    unseen = {key for key in possible if f"this.{key}" not in texts}
    for key in sorted(forbidden | unseen):
        if not getattr(criterion, key):
            continue
        header_key = key.removesuffix("_column")
        problem = "a criterion that compares two texts has none"
        if key in unseen:
            problem = f"no template shows it; extend layouts/pointwise.jinja, or use this.{key}"
        line = _line_of_key(criterion, header_key)
        raise CriterionError(f"{criterion.path}:{line}: {header_key}: {problem}")


def _check_better(criterion: Criterion) -> None:
    """Raise CriterionError if lower is better in a comparison."""
    if criterion.pairwise and criterion.better == "lower":
        line = _line_of_key(criterion, "better")
        raise CriterionError(
            f"{criterion.path}:{line}: better: a win counts 1 in a "
            "comparison, so higher is better; ask which text is better"
        )


def _line_of_key(criterion: Criterion, key: str) -> int:
    """Return the line of a key of the header, 1 if the header does not have it."""
    header = yaml_lines.keys(front_matter(criterion.template))
    return header.lines.get(key, 1) if header else 1


def builtin_prompts() -> Path:
    """Return the folder of the built-in criteria.

    It is inside the package if that is installed, and beside it in a checkout.
    """
    package = Path(__file__).parent.parent
    inside = package / "prompts"
    return inside if inside.is_dir() else package.parent / "prompts"


@lru_cache(maxsize=MOST_TEMPLATES)
def is_packaged(label: str, body: str) -> bool:
    """Return whether a template, by its path or name, is the package's own, unchanged."""
    if is_question_template(body):
        return True
    root = builtin_prompts()
    for folder in root.iterdir():
        file = Path(os.path.normpath(folder / label))
        # A name such as "../../x.jinja" leads out of the folder.
        if not file.is_relative_to(root) or not file.is_file():
            continue
        packaged_body = template_body(read_text(file))
        if packaged_body == body:
            return True
    return False


def template_texts(criterion: Criterion) -> dict[str, str]:
    """Return every text that shapes the prompt, by template name.

    The criterion's file comes first, then its layouts.
    """
    return {own_name(criterion): criterion.template, **criterion.layouts}


def read_layouts(criterion: Criterion) -> dict[str, str]:
    """Return the texts of the templates that a criterion's file extends or includes, by name.

    They are the criterion's own layouts, or files. Raises CriterionError for a template that cannot
    be found, lies outside the folders, or does not parse.
    """
    root = builtin_prompts()
    folders = [Path(criterion.path).parent, root / criterion.language]
    if criterion.language != "en":
        folders.append(root / "en")
    texts = {own_name(criterion): criterion.template}
    queue = [own_name(criterion)]
    # The loop also goes through the names that it appends.
    for template_name in queue:
        _check_size(criterion, texts)
        label = display_name(criterion, template_name)
        for node in _references(label, texts[template_name]):
            target = reference(label, node)
            if target in texts:
                continue
            if target in criterion.layouts:
                text = criterion.layouts[target]
            else:
                location = f"{label}:{node.lineno}"
                file = _find_layout(location, node, target, folders)
                if file is None:
                    continue
                text = read_text(file)
            texts[target] = text
            queue.append(target)
    del texts[own_name(criterion)]
    return texts


@lru_cache(maxsize=MOST_TEMPLATES)
def _references(label: str, text: str) -> tuple[nodes.Node, ...]:
    """Return the nodes of a template that name another template."""
    return tuple(parse_cached(label, text).find_all(_REFERENCES))


def _check_size(criterion: Criterion, texts: dict[str, str]) -> None:
    n_characters = sum(map(len, texts.values()))
    if n_characters > MAX_CHARACTERS or len(texts) > MAX_TEMPLATES:
        raise CriterionError(
            f"{criterion.path}: it has more than {MAX_TEMPLATES} templates, or they have more than "
            f"{MAX_CHARACTERS:,} characters together"
        )


def template_bodies(criterion: Criterion) -> dict[str, str]:
    """Return `template_texts` without their headers, as `render.Renderer` takes them.

    Each line keeps its number in the file.
    """
    return {
        name: template_body(text) for name, text in template_texts(criterion).items()
    }


def shared_layout(criterion: Criterion, layout_name: str) -> str:
    """Return `layouts/NAME.jinja`, the criterion's own or that of its language.

    `repair` asks for the score alone after a reply without one. Raises CriterionError.
    """
    file = f"layouts/{layout_name}.jinja"
    extending = replace(criterion, template=f'{{% extends "{file}" %}}')
    return template_body(read_layouts(extending)[file])


def own_name(criterion: Criterion) -> str:
    """Return the name of a criterion's own file among its templates."""
    return Path(criterion.path).name


def display_name(criterion: Criterion, template_name: str) -> str:
    """Return a template's name in messages: the path of the criterion's own file, else its name."""
    return criterion.path if template_name == own_name(criterion) else template_name


def read_text(path: Path) -> str:
    """Return a file's text. Raises CriterionError if it is missing or not UTF-8."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            # One character more than allowed is enough for `read_layouts` to refuse the text.
            return file.read(MAX_CHARACTERS + 1)
    except FileNotFoundError as error:
        raise CriterionError(f"{path}: no such file") from error
    except OSError as error:
        raise CriterionError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CriterionError(f"{path}: not a text file in UTF-8") from error


def reference(label: str, node: nodes.Node) -> str:
    """Return the name of the template that a node extends, includes or imports.

    Raises CriterionError if the name is computed, or leads out of the folders.
    """
    location = f"{label}:{node.lineno}"
    template = getattr(node, "template", None)
    if not (isinstance(template, nodes.Const) and isinstance(template.value, str)):
        raise CriterionError(
            f"{location}: the name of another template must be written out, in quotes"
        )
    template_name = template.value
    check_inside(location, template_name, " and the built-in prompts")
    if not template_name.endswith(".jinja"):
        raise CriterionError(
            f"{location}: {template_name!r} is not a template: its name does not end in .jinja"
        )
    return template_name


def check_inside(location: str, file_name: str, more: str = "") -> None:
    """Raise CriterionError if a file's name leads out of the criterion's folder.

    Links are for `check_link`.
    """
    path = PurePosixPath(file_name)
    # "C:\\x.jinja" is absolute on Windows alone.
    is_windows_path = "\\" in file_name or ":" in file_name
    if is_windows_path or path.is_absolute() or ".." in path.parts:
        raise CriterionError(
            f"{location}: {file_name!r} lies outside the criterion's folder{more}; copy it there"
        )


def check_link(location: str, file: Path, folder: Path) -> None:
    """Raise CriterionError if a file is a link that leads out of its folder."""
    if folder.is_relative_to(builtin_prompts()):
        # Some installers link a package's files from a store.
        return
    if not file.resolve().is_relative_to(folder.resolve()):
        file_name = str(file.relative_to(folder))
        raise CriterionError(
            f"{location}: {file_name!r} is a link that leads out of the criterion's folder; copy it"
        )


def _find_layout(
    location: str,
    node: nodes.Node,
    template_name: str,
    folders: list[Path],
) -> Path | None:
    """Return the file of a layout, None if there is none and the template allows that."""
    for folder in folders:
        file = folder / template_name
        if file.is_file():
            check_link(location, file, folder)
            return file
    if isinstance(node, nodes.Include) and node.ignore_missing:
        return None
    searched = ", ".join(str(folder) for folder in folders)
    raise CriterionError(
        f"{location}: no template {template_name!r}; looked in {searched}"
    )


@lru_cache(maxsize=1)
def template_parser() -> Sandbox:
    """Return the environment that parses templates, and never renders them.

    It knows the filters and globals of `render`.
    """
    parser = Sandbox()
    # Jinja computes constants while it parses. It does not compute intercepted operations, nor
    # filters that take the context, so here `"a" * 10**9` stays what it is.
    parser.intercepted_binops = frozenset(parser.default_binop_table)
    parser.filters = dict.fromkeys(parser.filters, pass_context(lambda *_: None))
    return parser


@lru_cache(maxsize=MOST_TEMPLATES)
def parse_cached(label: str, text: str) -> nodes.Template:
    """Return the syntax tree of a template, which callers must not change: they share it.

    Raises CriterionError for bad syntax, unknown filters, and names that start with `_`.
    """
    try:
        tree = template_parser().parse(template_body(text))
        # The sandbox refuses private names that are computed while it renders.
        for node in tree.find_all(nodes.Getattr):
            if node.attr.startswith("_"):
                raise CriterionError(
                    f"{label}:{node.lineno}: {node.attr} is out of bounds: it starts with _"
                )
        meta.find_undeclared_variables(tree)
    except TemplateSyntaxError as error:
        raise CriterionError(f"{label}:{error.lineno}: {error.message}") from error
    except (RecursionError, MemoryError) as error:
        raise CriterionError(f"{label}: nested too deeply to be read") from error
    except ValueError as error:
        # Python reads no longer numbers (sys.set_int_max_str_digits).
        raise CriterionError(
            f"{label}: holds a number of more than 4,300 digits"
        ) from error
    extends = list(tree.find_all(nodes.Extends))
    if len(extends) > 1 or any(node not in tree.body for node in extends):
        raise CriterionError(
            f"{label}:{extends[-1].lineno}: a template extends one other, and not inside if or for"
        )
    return tree
