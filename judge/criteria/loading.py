"""Load criteria by name, path or text, and paraphrase their layout."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from judge.config import DEFAULT_CRITERIA
from judge.core import yaml_lines
from judge.core.criterion_entry import (
    YAML_SUFFIXES,
    is_file,
    keys_of,
    name_of_file,
    require_known_scale,
    to_entries,
)
from judge.core.errors import CriterionError
from judge.core.format import listed
from judge.core.messages import command, option
from judge.core.normalization import whole, whole_value
from judge.core.plugins import unknown_name_message
from judge.core.records import SCALE_STEPS_AND_REPLY, Criterion, Example, Scale
from judge.criteria.checklist import yes_no
from judge.criteria.examples import check_examples, read_examples
from judge.criteria.header import (
    Header,
    front_matter,
    make_header,
    read_header,
    template_body,
)
from judge.criteria.own_question import check_paraphrases
from judge.criteria.template import (
    builtin_prompts,
    check_keys,
    is_question_template,
    own_name,
    question_template,
    read_layouts,
    read_text,
    template_bodies,
    template_texts,
)
from judge.criteria.variables import reads, required_variables, variables_of
from judge.criteria.written_language import written_language
from judge.data.conversations import MESSAGES
from judge.text import LANGUAGES

# The "---" that may start a YAML file, after comments and empty lines.
_START_OF_YAML = re.compile(r"\A((?:[ \t]*(?:#[^\n]*)?\n)*)---[ \t]*$", re.MULTILINE)
# The "---" or "..." that may end it.
_END_OF_YAML = re.compile(r"^(?:---|\.\.\.)\s*\Z", re.MULTILINE)
# "---" in the middle: what follows is another document.
_DOCUMENT_MARK = re.compile(r"^(?:---|\.\.\.)(?=\s)", re.MULTILINE)
COMPARING = Scale(("A", "B"), (1.0, 0.0))
"""The scale of a question that compares two texts, if it names none."""
Task = Literal["summaries", "answers"]
"""What kind of texts a built-in criterion is for."""
TASKS: dict[str, Task] = {
    "summarization": "summaries",
    "answers": "answers",
    "pairwise": "summaries",
    "pairwise_answers": "answers",
}
"""The folders of prompts/<language>/ with criteria, and their tasks."""


def languages() -> list[str]:
    """Return the codes of the languages with built-in criteria: folders with layouts."""
    root = builtin_prompts()
    return [code for code in LANGUAGES if (root / code / "layouts").is_dir()]


def builtin(language: str = "en", pairwise: bool = False) -> list[Criterion]:
    """Return all built-in criteria of a language that judge one text, or that compare two, by name.

    Raises CriterionError if there is no such language.
    """
    criteria = []
    for criterion_name, path in builtin_files(language).items():
        if _compares(criterion_name) == pairwise:
            criteria.append(_read(path, language))
    return criteria


def task_of(criterion: Criterion) -> Task:
    """Return the task of a built-in criterion."""
    return TASKS[Path(criterion.path).parent.name]


def load(
    name_or_path: str | Path | Mapping[str, Any] | None = None,
    *,
    text: str | None = None,
    name: str = "",
    language: str = "en",
    pairwise: bool | None = False,
) -> Criterion:
    """Return a criterion: a built-in name, a file, a sentence or a `text`.

    - A built-in name is `relevance` or `summarization/relevance`.
    - A file is a name that ends in .jinja, .yaml, .yml, .md or .txt, or that has a path separator
      and is not built in.
    - A sentence is written `NAME: QUESTION`. A mapping has the keys of a header and a `name`.
    - `text` is the content of a .jinja file, and `name` is then the column's name.
    - `language` selects the built-in set and the layouts.
    - `pairwise=True` loads a criterion that compares two texts, None takes either, first the one
      that judges one text.

    Raises CriterionError, with file and line if known.
    """
    if text is not None:
        criterion = _load_text(text, name, language)
    elif name_or_path is None:
        raise CriterionError(
            "no criterion: give a name, a file, or its text: "
            "judge.load_criterion(text=..., name=...)"
        )
    else:
        criterion = _load_entry(name_or_path, language, pairwise)
    if pairwise is None or criterion.pairwise == pairwise:
        return criterion
    if criterion.pairwise:
        plan = f"{command('plan')} with {option('rank', True)}"
        problem = f"compares two texts; {command('rank')} does that, or {plan}"
    else:
        rank = command("rank")
        problem = f"judges one text; {rank} takes a criterion that reads both first and second"
    raise CriterionError(f"{criterion.path}: {problem}")


def _load_text(text: str, name: str, language: str) -> Criterion:
    """Return the criterion of the content of a .jinja file."""
    if not name.strip() or "/" in name or os.sep in name:
        raise CriterionError(
            "a criterion of a text needs a name, without a slash: "
            'load_criterion(text=..., name="...")'
        )
    # A byte order mark, or the line break after the opening quotes.
    content = text.lstrip("\ufeff\n")
    return _make_criterion(content, name, path=f"{name}.jinja", language=language)


def _load_entry(
    name_or_path: str | Path | Mapping[str, Any],
    language: str,
    pairwise: bool | None,
) -> Criterion:
    """Return the criterion of a name, a file, a sentence or keys."""
    entry = validate_name(name_or_path)
    keys = None if isinstance(name_or_path, Path) else keys_of(entry)
    if not keys:
        path = _find_file(entry, language, pairwise)
        return _read(path, language, pairwise=bool(pairwise))
    criterion_name = keys["name"]
    header_keys = {key: value for key, value in keys.items() if key != "name"}
    text = f"---\n{_as_yaml(header_keys)}---\n"
    # It has no file: its name stands for the path, and its lines are not counted.
    return _make_criterion(
        text,
        criterion_name,
        path=criterion_name,
        language=language,
        lines_added=None,
        pairwise=bool(pairwise),
    )


def validate_name(value: Any) -> str:
    """Return a criterion's name, path, sentence or keys as an entry.

    Raises CriterionError for anything else.
    """
    if isinstance(value, Path):
        return str(value)
    advice = (
        'judge.load_criterion(text="""---\\nscale: [1, 5]\\n---\\n...""", name="NAME") '
        "makes one from a text"
    )
    if not isinstance(value, str | Mapping):
        kind = type(value).__name__
        raise CriterionError(
            f"a criterion is a name, a file, a sentence or a Criterion, not a {kind}; {advice}"
        )
    try:
        entries = to_entries([value])
        for sentence in entries:
            require_known_scale(sentence)
    except ValueError as error:
        raise CriterionError(f"criteria: {error}") from None
    if len(entries) != 1:
        raise CriterionError(
            "criteria: these are several criteria; give a list of them"
        )
    entry = str(entries[0])
    is_text = "\n" in entry or "{{" in entry or "{%" in entry
    if is_text and keys_of(entry) is None:
        beginning = repr(entry.strip()[:40])
        raise CriterionError(
            f"this is a criterion's text, not its name or file ({beginning}...); {advice}"
        )
    return entry


def _find_file(name_or_path: str, language: str, pairwise: bool | None) -> Path:
    # "relevance" is in both sets, of one text and of two: the requested set comes first.
    files = builtin_files(language)
    names = sorted(files, key=lambda name: _compares(name) != bool(pairwise))
    if is_file(name_or_path):
        return Path(name_or_path)
    for name in names:
        if name_or_path in (name, files[name].stem):
            return files[name]
    if len(name_or_path.split()) > 1:
        raise CriterionError(
            f"{name_or_path[:60]!r}: a question needs a name of one word: 'NAME: QUESTION'"
        )
    if "/" in name_or_path or os.sep in name_or_path:
        return Path(name_or_path)
    known_names: dict[str, None] = {}
    for name in names:
        if pairwise is None or _compares(name) == pairwise:
            known_names[files[name].stem] = None
    unknown = unknown_name_message("criterion", name_or_path, list(known_names))
    beginning = name_or_path.rstrip(": ")[:40]
    sentence = f"'{beginning}: QUESTION'"
    default = ""
    # With None, the caller is a command such as `judge criteria show`, which has no default.
    if pairwise is False:
        criteria_option = option("criteria")
        default_names = listed(DEFAULT_CRITERIA)
        judged_by = f"summaries are judged by {default_names}"
        default = f"; without {criteria_option}, {judged_by}"
    alternatives = f"a file works too, and a sentence: {sentence}"
    raise CriterionError(f"{unknown}; {alternatives}{default}")


def _compares(file_stem: str) -> bool:
    return file_stem.startswith("pairwise")


def builtin_files(language: str) -> dict[str, Path]:
    """Return the file of every built-in criterion of a language, by `task/name`."""
    known_languages = languages()
    if language not in known_languages:
        message = unknown_name_message("language", language, known_languages)
        raise CriterionError(message)
    files = {}
    for file in sorted((builtin_prompts() / language).glob("*/*.jinja")):
        folder = file.parent.name
        if folder in TASKS:
            files[f"{folder}/{file.stem}"] = file
    return files


def _read(path: Path, language: str, *, pairwise: bool = False) -> Criterion:
    return of_file_text(path, read_text(path), language, pairwise=pairwise)


def of_file_text(
    path: Path, text: str, language: str, *, pairwise: bool = False
) -> Criterion:
    """Return the criterion that a file would be if it had this text.

    With `pairwise`, a question without a template compares two texts. Raises CriterionError.
    """
    lines_added = 1 if is_yaml(path) else 0
    template = as_template(path, text)
    return _make_criterion(
        template,
        name_of_file(path),
        path=str(path),
        language=language,
        lines_added=lines_added,
        pairwise=pairwise,
    )


def as_template(path: Path, text: str) -> str:
    """Return the text of a criterion's file in the form of a .jinja file.

    That is a header, and the template if the file has one.
    """
    if is_yaml(path):
        return _yaml_as_template(path, text)
    if path.suffix not in (".txt", ".md"):
        return text
    question = _as_yaml({"question": template_body(text).strip()})
    header = front_matter(text) or "---\n"
    return f"{header}{question}---\n"


def _yaml_as_template(path: Path, text: str) -> str:
    """Return a YAML file as the header of a template, one line below its place in the file."""
    keys = _START_OF_YAML.sub(r"\g<1>", text)
    keys = _END_OF_YAML.sub("", keys)
    second_mark = _DOCUMENT_MARK.search(keys)
    if second_mark:
        line = keys.count("\n", 0, second_mark.start()) + 1
        raise CriterionError(
            f"{path}:{line}: text after the keys; call a criterion with a template "
            f"{path.stem}.jinja"
        )
    if not keys.endswith("\n"):
        keys += "\n"
    return f"---\n{keys}---\n"


def is_yaml(path: Path) -> bool:
    """Return whether a criterion's file is a header alone."""
    return path.suffix in YAML_SUFFIXES


def _as_yaml(keys: Mapping[str, Any]) -> str:
    return yaml.safe_dump(keys, allow_unicode=True, sort_keys=False, width=float("inf"))


def _make_criterion(
    text: str,
    criterion_name: str,
    *,
    path: str,
    language: str,
    lines_added: int | None = 0,
    pairwise: bool = False,
) -> Criterion:
    """Return the criterion of the text of a .jinja file.

    The first `lines_added` lines of the text are not in the criterion's file: errors name the line
    of the file. None means that there is no file, so errors name no line. With `pairwise`, a
    question without a template compares two texts.
    """
    try:
        return _of_text(text, criterion_name, path, language, pairwise=pairwise)
    except CriterionError as error:
        # "helpful.yaml:3"
        location = re.match(rf"{re.escape(path)}:(\d+)", str(error))
        if location is None or lines_added == 0:
            raise
        rest = str(error)[location.end() :]
        if lines_added is None:
            raise CriterionError(f"{path}{rest}") from error
        line = max(int(location[1]) - lines_added, 1)
        raise CriterionError(f"{path}:{line}{rest}") from error


def _of_text(
    text: str,
    criterion_name: str,
    path: str,
    language: str,
    *,
    pairwise: bool,
) -> Criterion:
    text = whole(text)
    header = read_header(path, text)
    _check_name(header, text, criterion_name, path)
    has_template = bool(template_body(text).strip())
    compares = pairwise and not has_template
    if not has_template:
        language = written_language(_texts_of_header(header)) or language
    text = _with_template(text, header, path, pairwise=compares)
    scale = _scale(header, language, pairwise=compares)
    examples: tuple[Example, ...] = ()
    if header.examples:
        examples = read_examples(path, text, header.examples, scale)
    criterion = Criterion(
        name=criterion_name,
        template=text,
        scale=scale,
        reply=header.reply,
        weight=header.weight,
        title=header.title.strip() or criterion_name,
        description=header.description.strip(),
        steps=tuple(header.steps),
        version=header.version,
        language=language,
        path=path,
        question=header.question.strip(),
        ask=header.ask,
        better=header.better,
        cite=header.cite,
        judged=header.judged,
        seen=frozenset(header.seen),
        paraphrases=tuple(header.paraphrases),
        ignores=tuple(header.ignores),
        **_fields_of_several_forms(header),
    )
    # A digest covers examples in the header; of examples in a file the header has only its name.
    in_header = examples if isinstance(header.examples, list) else ()
    header_parts = replace(criterion, examples=in_header).prompt_parts
    layouts = read_layouts(criterion)
    criterion = replace(
        criterion, layouts=layouts, examples=examples, header_parts=header_parts
    )
    bodies = template_bodies(criterion).values()
    if criterion.question and not any("this.question" in body for body in bodies):
        raise CriterionError(
            f"{path}: question: the template never prints it; put {{{{ this.question }}}} into it"
        )
    criterion = with_needs(criterion)
    check_paraphrases(criterion)
    return criterion


def _texts_of_header(header: Header) -> list[str]:
    """Return what a header says to the judge in sentences."""
    questions: list[str] = []
    if not isinstance(header.questions, str):  # of a column, a header has only the name
        questions = [question.text for question in header.questions]
    return [header.question, *questions, *header.steps, *header.levels.values()]


def _with_template(text: str, header: Header, path: str, *, pairwise: bool) -> str:
    """Return a criterion's text, with a template for its question if it has none."""
    has_template = bool(template_body(text).strip())
    if has_template and header.show:
        raise CriterionError(
            f"{path}: show: is for a criterion without a template; this one shows what it prints"
        )
    if has_template:
        return text
    if header.question.strip() or header.questions:
        show = header.show if "show" in header.model_fields_set else None
        is_checklist = bool(header.questions)
        template = question_template(show, checklist=is_checklist, pairwise=pairwise)
        return f"{text.rstrip()}\n{template}"
    # A .jinja file may be empty: the error is then that of a template without the judged text.
    if not path.endswith(".jinja"):
        raise CriterionError(
            f"{path}: has no question; write question: and the question to the judge about a text"
        )
    return text


def _check_name(header: Header, text: str, criterion_name: str, path: str) -> None:
    """Raise CriterionError if the header has another name than the criterion's file."""
    written = header.name.strip()
    if not written or written == criterion_name:
        return
    keys = yaml_lines.keys(front_matter(text))
    line = keys.lines.get("name", 1) if keys else 1
    file = Path(path)
    advice = f"write name: {criterion_name}"
    # `../x` is a path and no name of a file.
    if Path(written).name == written:
        advice += f", or call the file {written}{file.suffix}"
    raise CriterionError(
        f"{path}:{line}: name: is {written}, but a criterion has the name of its file, "
        f"{file.name}: {advice}"
    )


def _fields_of_several_forms(header: Header) -> dict[str, Any]:
    """Return the fields of a criterion for keys that a header may have in several forms."""
    in_column = isinstance(header.questions, str)
    questions = () if in_column else header.questions
    questions_column = header.questions if in_column else ""
    return {
        "show": tuple(header.show),
        "levels": tuple(header.levels.items()),
        "pass_at": header.pass_at,
        "questions": questions,
        "questions_column": questions_column,
    }


def _scale(header: Header, language: str, *, pairwise: bool) -> Scale:
    """Return the scale of a header.

    Without one, a checklist has yes and no, and a question about two texts A and B.
    """
    if "scale" in header.model_fields_set:
        return header.scale
    if header.questions:
        return yes_no(language)
    return COMPARING if pairwise else header.scale


def with_needs(criterion: Criterion) -> Criterion:
    """Return the criterion with the variables that its templates and its questions need.

    Raises CriterionError like `check_keys`, and for a checklist whose templates never show its
    questions.
    """
    texts = template_texts(criterion)
    columns = {*criterion.show, criterion.questions_column} - {""}
    if criterion.judged == "conversation":
        columns.add(MESSAGES)
    needs = required_variables(criterion, texts) | columns
    guarded = variables_of(criterion, texts).guarded
    criterion = replace(criterion, needs=needs, guarded=guarded & (needs - columns))
    check_keys(criterion)
    if criterion.judged == "conversation" and not reads(criterion, MESSAGES):
        raise CriterionError(
            f"{criterion.path}: judged: the template never shows the conversation; put "
            "{{ messages | fenced('conversation') }} into it, before the output"
        )
    shows_questions = any("this.questions" in text for text in texts.values())
    if criterion.is_checklist and not shows_questions:
        raise CriterionError(
            f"{criterion.path}: never shows its questions; write "
            '{% extends "layouts/checklist.jinja" %}, or print this.questions'
        )
    return criterion


def in_language(criterion: Criterion, language: str) -> Criterion:
    """Return a criterion that is only a question with the built-in layouts of a language.

    A question in Japanese, Korean or Chinese keeps its own language. A criterion with a template of
    its own is returned unchanged.
    """
    questions = [question.text for question in criterion.questions]
    levels = [level for _, level in criterion.levels]
    own_texts = [criterion.question, *questions, *criterion.steps, *levels]
    language = written_language(own_texts) or language
    has_own_template = not is_question_template(template_body(criterion.template))
    if criterion.language == language or has_own_template:
        return criterion
    if criterion.is_checklist and criterion.scale == yes_no(criterion.language):
        criterion = replace(criterion, scale=yes_no(language))
    return finalize(replace(criterion, language=language, layouts={}))


# A criterion none of whose fields are set.
_UNSET = Criterion("")
# Fields of a criterion that are the same as the keys of a header.
_PLAIN_KEYS = (
    "title",
    "description",
    "reply",
    "weight",
    "version",
    "question",
    "ask",
    "judged",
    "cite",
)


def finalize(criterion: Criterion, *, pairwise: bool = False) -> Criterion:
    """Return a criterion that a program made or changed, with its template's layouts and needs.

    Its scale, levels, questions and examples may be as in a header. With `pairwise`, a question
    without a template compares two texts. Raises CriterionError for what is wrong with them or with
    the template, and for a header that contradicts the criterion.
    """
    compares = pairwise and not criterion.template and not criterion.is_checklist
    if compares and criterion.scale == _UNSET.scale:
        # Nobody set the scale, whose default is that of one text.
        criterion = replace(criterion, scale=COMPARING)
    whole_values: dict[str, Any] = {}
    for field in fields(criterion):
        whole_values[field.name] = whole_value(getattr(criterion, field.name))
    criterion = replace(criterion, **whole_values)
    if not criterion.name or not isinstance(criterion.name, str):
        raise CriterionError(
            f"a Criterion has a name such as 'fluency', not {criterion.name!r:.60}"
        )
    path = criterion.path or f"{criterion.name}.jinja"
    header = make_header(path, _keys_of_criterion(criterion))
    if not isinstance(criterion.template, str):
        raise CriterionError(
            f"{path}: template: write its text, not {criterion.template!r:.60}"
        )
    if not (criterion.template or criterion.question.strip() or criterion.is_checklist):
        raise CriterionError(
            f"{criterion.name}: a Criterion has a question, or a template"
        )
    template = criterion.template
    if not template:
        template = question_template(
            header.show or None,
            checklist=criterion.is_checklist,
            pairwise=compares,
        )
    located_examples = ((path, example) for example in criterion.examples)
    result = replace(
        criterion,
        path=path,
        title=criterion.title or criterion.name,
        scale=header.scale,
        template=template,
        examples=check_examples(located_examples, header.scale),
        **_fields_of_several_forms(header),
    )
    if front_matter(result.template):
        _check_template_header(result)
    result = with_needs(replace(result, layouts=read_layouts(result)))
    check_paraphrases(result)
    return result


def _keys_of_criterion(criterion: Criterion) -> dict[str, Any]:
    """Return the keys that a header of this criterion would have, to be checked like a header."""
    # A program may use the types of a header: a list of two numbers for the scale, a dict of
    # levels.
    raw: Any = criterion
    keys = {
        "scale": raw.scale,
        "show": _as_list(raw.show),
        "levels": raw.levels,
        "better": raw.better,
        "pass_at": raw.pass_at,
        "paraphrases": _as_list(raw.paraphrases),
        "ignores": _as_list(raw.ignores),
        "steps": _as_list(raw.steps),
        "seen": _as_list(raw.seen),
    }
    # Pairs of label and description. The header accepts or refuses anything else.
    if isinstance(raw.levels, tuple) and all(map(_is_pair, raw.levels)):
        keys["levels"] = dict(raw.levels)
    for key in _PLAIN_KEYS:
        value = getattr(raw, key)
        # A key with its default may contradict others, such as `ask` without questions.
        if value != getattr(_UNSET, key):
            keys[key] = value
    if raw.is_checklist:
        if raw.scale == _UNSET.scale:
            # Nobody set the scale, whose default is that of one question.
            keys["scale"] = yes_no(raw.language)
        keys["questions"] = raw.questions or raw.questions_column
    return keys


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def _as_list(values: Any) -> Any:
    """Return a tuple or a set as the list that a header has, and a text unchanged."""
    return list(values) if isinstance(values, tuple | frozenset | set) else values


def _check_template_header(criterion: Criterion) -> None:
    """Raise CriterionError if the header of the template contradicts the criterion."""
    header = read_header(criterion.path, criterion.template)
    body = template_body(criterion.template)
    compares_two_texts = is_question_template(body) and "pairwise" in body
    scale = _scale(header, criterion.language, pairwise=compares_two_texts)
    of_header = replace(
        criterion,
        scale=scale,
        steps=tuple(header.steps),
        reply=header.reply,
    )
    stated_content = of_header.prompt_parts[SCALE_STEPS_AND_REPLY]
    own_content = criterion.prompt_parts[SCALE_STEPS_AND_REPLY]
    # A criterion that was loaded and then changed still has the header that it was loaded from.
    loaded_content = criterion.header_parts[SCALE_STEPS_AND_REPLY]
    if stated_content not in (own_content, loaded_content):
        raise CriterionError(
            f"{criterion.path}: the header of its template has another scale, steps or reply than "
            "the Criterion; judge.load_criterion(text=..., name=...) makes one from a text with "
            "its header"
        )


PARAPHRASES = {"b": "reworded", "c": "brief"}
"""The other wordings of the layout for one text: the suffix of the name, and the layout's."""
_LAYOUT = "layouts/pointwise.jinja"
# The start of `{% extends "layouts/pointwise.jinja" %}`, up to the closing quote.
_EXTENDS_LAYOUT = re.compile(
    rf"""({{%[-+]?\s*extends\s+["']){re.escape(_LAYOUT)}(?=["'])""",
)


def paraphrase(criterion: Criterion, wording: str) -> Criterion:
    """Return the criterion in another of the PARAPHRASES, named `NAME~b`.

    Its own text is the same; the layout differs. Raises CriterionError if it does not extend the
    built-in layout, because only that has other wordings.
    """
    root = builtin_prompts() / criterion.language
    texts = template_texts(criterion)
    if texts.get(_LAYOUT) != read_text(root / _LAYOUT):
        raise CriterionError(
            f"{criterion.path}: it does not extend the built-in {_LAYOUT}, the only template with "
            "other wordings"
        )
    layout = f"layouts/pointwise_{PARAPHRASES[wording]}.jinja"
    layouts = {}
    for template_name, text in texts.items():
        if template_name != _LAYOUT:
            layouts[template_name] = _EXTENDS_LAYOUT.sub(rf"\g<1>{layout}", text)
    template = layouts.pop(own_name(criterion))
    layouts[layout] = read_text(root / layout)
    reworded_name = f"{criterion.name}~{wording}"
    reworded = replace(
        criterion, name=reworded_name, template=template, layouts=layouts
    )
    return with_needs(reworded)
