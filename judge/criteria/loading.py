"""Load criteria by name, path or text, check the variables they read, and paraphrase their layout."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from jinja2 import meta, nodes
from jinja2.visitor import NodeTransformer

from judge.core import yaml_lines
from judge.core.criterion_entry import YAML_SUFFIXES, is_file, keys_of, name_of_file, to_entries
from judge.core.errors import CriterionError, DataError
from judge.core.messages import command, option
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample, Scale, whole, whole_value
from judge.criteria.checklist import has_questions, questions_of, yes_no
from judge.criteria.examples import check_examples, read_examples
from judge.criteria.render import inputs, lacking_inputs, missing_message, template_variables
from judge.criteria.sandbox import MOST_TEMPLATES
from judge.criteria.template import (
    Header,
    builtin_prompts,
    check_keys,
    display_name,
    front_matter,
    is_question_template,
    make_header,
    own_name,
    parse_template,
    question_template,
    read_header,
    read_layouts,
    read_text,
    reference,
    template_bodies,
    template_body,
    template_parser,
    template_texts,
)
from judge.text import LANGUAGES

HIDDEN = {
    "system": "a judge that knows which system wrote a text does not judge the text alone",
    "human": "a judge that sees the people's ratings repeats them",
    "item": "an item's id says nothing about the text, and would keep equal prompts from being asked once",
}
"""What no template may read, and why."""

_NAMES_OF_TEXTS = (("a", "b"), ("1", "2"), ("first", "second"), ("one", "two"))
_START_OF_YAML = re.compile(r"\A((?:[ \t]*(?:#[^\n]*)?\n)*)---[ \t]*$", re.MULTILINE)
_END_OF_YAML = re.compile(r"^(?:---|\.\.\.)\s*\Z", re.MULTILINE)
_DOCUMENT = re.compile(r"^(?:---|\.\.\.)(?=\s)", re.MULTILINE)
_FIELDS = ("source", "reference", "references")


def required_variables(criterion: Criterion, texts: dict[str, str]) -> frozenset[str]:
    """The variables that a rendering reads and cannot do without, of the templates in `texts` (`template_texts`).

    A block that a criterion replaces does not count, nor does a variable that is tested with `is defined` or given
    a default. Raises CriterionError for one that no judge may see.
    """
    free, optional, _ = _variables(criterion.path, tuple(texts.items()))
    for name, reason in HIDDEN.items():
        if name in free:
            raise CriterionError(
                f"{_line(criterion, texts, name)}: {name} is never shown to the judge: {reason}"
            )
    return free - optional - {"this", "self", "super"}


def reads(criterion: Criterion, variable: str) -> bool:
    """Whether a criterion's prompt shows a variable if the sample has it, needed or not."""
    return variable in _variables(criterion.path, tuple(template_texts(criterion).items()))[0]


@lru_cache(maxsize=MOST_TEMPLATES)
def _variables(
    path: str, texts: tuple[tuple[str, str], ...]
) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The variables that are read by everything that is rendered as one template, and among them two kinds.

    The first kind has a default or a test (`is defined`), the second is asked for its truth (`{% if question %}`).

    A program reads the same criterion many times: each time it looks for an example, a paraphrase or a suite's case.
    """
    try:
        tree = nodes.Template(_Flat(dict(texts)).body(Path(path).name), lineno=1)
        tree.set_environment(template_parser())
        free = meta.find_undeclared_variables(tree)
    except RecursionError as error:
        raise CriterionError(f"{path}: its templates are nested too deeply") from error
    tested = [
        node.node for node in tree.find_all(nodes.Test) if node.name in ("defined", "undefined")
    ]
    tested += [
        node.node
        for node in tree.find_all(nodes.Filter)
        if node.name in ("default", "d") and node.node
    ]
    optional = frozenset(node.name for node in tested if isinstance(node, nodes.Name))
    conditions = [node.test for node in tree.find_all(nodes.If)]
    conditions += [node.test for node in tree.find_all(nodes.CondExpr)]
    guarded = frozenset(name for condition in conditions for name in _asked_for_truth(condition))
    return frozenset(free), optional, guarded & free


def _asked_for_truth(condition: nodes.Node) -> Iterator[str]:
    """Yield the variables of a condition that are false if they are empty: of `question and not topic`, both."""
    if isinstance(condition, nodes.Name):
        yield condition.name
    elif isinstance(condition, nodes.Not):
        yield from _asked_for_truth(condition.node)
    elif isinstance(condition, nodes.And | nodes.Or):
        yield from _asked_for_truth(condition.left)
        yield from _asked_for_truth(condition.right)


def check_samples(criterion: Criterion, samples: Sequence[Sample]) -> None:
    """Check that the samples have what the criterion's template reads.

    Raises CriterionError for a variable that no sample has, for a template that never shows the text it is to judge,
    and for a comparison that cannot tell who wins; DataError for a text that the data were read without (source,
    references). A sample that alone lacks something fails when it is rendered, and the others are judged.
    """
    if criterion.pairwise:
        if "output" in criterion.needs:
            at = _line(criterion, template_texts(criterion), "output")
            raise CriterionError(
                f"{at}: a comparison has no output; its texts are first and second"
            )
        scale = criterion.scale
        if (scale.low, scale.high) != (0, 1):
            raise CriterionError(
                f"{criterion.path}: scale: values are what an answer counts for the text shown first, 1 where it is "
                "better and 0 where the other is; write {labels: [A, B], values: [1, 0]}"
            )
        values = {
            label.casefold(): value for label, value in zip(scale.labels, scale.values, strict=True)
        }
        for first, second in _NAMES_OF_TEXTS:
            if {first, second} <= values.keys() and values[first] < values[second]:
                raise CriterionError(
                    f"{criterion.path}: scale: {first} is the text shown first, so it counts 1 and {second} counts 0"
                )
    _check_inputs(criterion, samples)
    for sample in samples if criterion.questions_column else ():
        if has_questions(criterion, sample):
            questions_of(criterion, sample)
    if not criterion.pairwise and "output" not in criterion.needs:
        raise CriterionError(
            f"{criterion.path}: never shows the judged text; put {{{{ output | fenced('output') }}}} into it"
        )


def _check_inputs(criterion: Criterion, samples: Sequence[Sample]) -> None:
    """Raise the error of `check_samples` for something that no text has, or that every text lacks one part of."""
    if not samples:
        return
    variables = [template_variables(sample) for sample in samples]
    for name in sorted(inputs(criterion)):
        if not any(name in known for known in variables):
            raise _missing_variable(criterion, name, samples)
    lacking = [lacking_inputs(criterion, sample) for sample in samples]
    if all(lacking):
        name = lacking[0][0]
        message = missing_message(criterion, samples[0], name)
        number = sum(name in names for names in lacking)
        raise DataError(
            f"{message}; {number} of {len(samples)} texts lack it, and the others lack more"
        )


def _missing_variable(
    criterion: Criterion, name: str, samples: Sequence[Sample]
) -> CriterionError | DataError:
    """What to raise for a variable that no sample has."""
    known = sorted(set[str]().union(*map(template_variables, samples)) - {"this"})
    if criterion.pairwise:
        known = sorted({"first", "second", *known} - {"output"})
    at = _line(criterion, template_texts(criterion), name)
    if name in _FIELDS:
        reads = f"the criterion {criterion.name} reads {name}, which no sample has"
        without = (
            f"take {name} out of show"
            if criterion.show
            else f"{{% block {name} %}}{{% endblock %}}"
        )
        mend = (
            f"name its column with {option('map', {name: 'COLUMN'})}, or do without it: {without}"
        )
        return DataError(f"{at}: {reads}; {mend} (the data has: {', '.join(known)})")
    if any(name in sample.extra for sample in samples):
        return DataError(
            f"{at}: the criterion {criterion.name} reads {name}, which is empty in all texts"
        )
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    return CriterionError(f"{at}: unknown variable {name!r}{hint} the data has: {', '.join(known)}")


def _line(criterion: Criterion, texts: dict[str, str], variable: str) -> str:
    """`file:line` of the first place that reads a variable."""
    if variable in criterion.show:
        return f"{criterion.path}: show"
    trees = {name: parse_template(text) for name, text in texts.items()}
    readers = (
        name for name, tree in trees.items() if variable in meta.find_undeclared_variables(tree)
    )
    reader = next(readers, own_name(criterion))
    lines = (node.lineno for node in trees[reader].find_all(nodes.Name) if node.name == variable)
    return f"{display_name(criterion, reader)}:{next(lines, 1)}"


class _Flat(NodeTransformer):
    """Puts what is rendered in the place of every block, include, and import that sees the context.

    A template that is included again, perhaps by itself, counts once.
    """

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts
        self._blocks: dict[str, list[nodes.Block]] = {}
        self._seen: set[str] = set()

    def body(self, name: str) -> list[nodes.Node]:
        """What is rendered of a template: its base's body, every block as the last heir defines it."""
        self._seen.add(name)
        outer, names = self._blocks, [name]
        chain = [parse_template(self._texts[name])]
        while parent := chain[-1].find(nodes.Extends):
            names.append(reference(names[-1], parent))
            if names[-1] in names[:-1]:
                raise CriterionError(
                    f"{names[-1]}: a template that extends itself: {' > '.join(names)}"
                )
            chain.append(parse_template(self._texts[names[-1]]))
        self._blocks = {}
        for tree in chain:
            for block in tree.find_all(nodes.Block):
                self._blocks.setdefault(block.name, []).append(block)
        # Outside its blocks an heir prints nothing, but what it sets and imports holds.
        heirs = [node for tree in chain[:-1] for node in tree.body]
        kept_nodes = [
            node
            for node in heirs
            if not isinstance(node, (nodes.Extends, nodes.Block, nodes.Output))
        ]
        flat: nodes.Template = self.visit(nodes.Template(kept_nodes + chain[-1].body, lineno=1))
        self._blocks = outer
        return flat.body

    def visit_Block(self, node: nodes.Block) -> list[nodes.Node]:  # noqa: N802 (the visitor's own naming)
        """Return a block as the scopes of its overriding blocks."""
        scopes: list[nodes.Node] = []
        for block in self._blocks.pop(node.name, []):
            scopes.append(nodes.Scope(block.body, lineno=block.lineno))
            if not any(name.name == "super" for name in block.find_all(nodes.Name)):
                break
        return [self.generic_visit(scope) for scope in scopes]

    def visit_Include(self, node: nodes.Include) -> list[nodes.Node]:  # noqa: N802
        return [self._included(node)]

    def visit_Import(self, node: nodes.Import | nodes.FromImport) -> list[nodes.Node]:  # noqa: N802
        return [node, self._included(node)]

    visit_FromImport = visit_Import  # noqa: N815

    def _included(self, node: nodes.Include | nodes.Import | nodes.FromImport) -> nodes.Scope:
        name = reference("", node) if node.with_context else ""
        body = self.body(name) if name in self._texts and name not in self._seen else []
        return nodes.Scope(body, lineno=node.lineno)


def languages() -> list[str]:
    """Return the codes of the languages that have built-in criteria: folders of prompts/ with layouts."""
    return [code for code in LANGUAGES if (builtin_prompts() / code / "layouts").is_dir()]


def builtin(language: str = "en", pairwise: bool = False) -> list[Criterion]:
    """Every built-in criterion of a language that judges one text, or those that compare two, by name.

    Raises CriterionError where there is no such language.
    """
    return [
        _read(path, language)
        for name, path in builtin_files(language).items()
        if _compares(name) == pairwise
    ]


def load(
    name_or_path: str | Path | Mapping[str, Any] | None = None,
    *,
    text: str | None = None,
    name: str = "",
    language: str = "en",
    pairwise: bool | None = False,
) -> Criterion:
    """Return a criterion: a built-in name (`relevance`, `summarization/relevance`), a file, a sentence or a `text`.

    A name that ends in .jinja, .yaml, .yml, .md or .txt, or that has a path separator and is not built in, is a file. A
    sentence is written `NAME: QUESTION`; a mapping has the keys of a header and a `name`. `text` is the content of a
    .jinja file, header and template; `name` is then the column's name.

    `language` selects the built-in set and the layouts. `pairwise` selects the set that compares two texts; None takes
    either, first the one that judges one text. Raises CriterionError, with file and line if known.
    """
    if text is not None:
        if not name.strip() or "/" in name or os.sep in name:
            raise CriterionError(
                'a criterion of a text needs a name, without a slash: load_criterion(text=..., name="...")'
            )
        criterion = _make_criterion(text.lstrip("\ufeff\n"), name, f"{name}.jinja", language)
    elif name_or_path is None:
        raise CriterionError(
            "no criterion: give a name, a file, or its text: judge.load_criterion(text=..., name=...)"
        )
    else:
        entry = validate_name(name_or_path)
        keys = None if isinstance(name_or_path, Path) else keys_of(entry)
        if keys:  # a criterion that is written out, and has no file
            text = _as_yaml({key: value for key, value in keys.items() if key != "name"})
            criterion = _make_criterion(
                f"---\n{text}---\n", keys["name"], keys["name"], language, None
            )
        else:
            criterion = _read(_find_file(entry, language, pairwise), language)
    if pairwise is not None and criterion.pairwise != pairwise:
        problem = (
            f"judges one text; {command('rank')} takes a criterion that reads both first and second"
        )
        if criterion.pairwise:
            problem = f"compares two texts; {command('rank')} does that, or {command('plan')} with {option('rank', True)}"
        raise CriterionError(f"{criterion.path}: {problem}")
    return criterion


def validate_name(value: Any) -> str:
    """A criterion's name, path, or sentence or keys as an entry. Raises CriterionError for anything else."""
    if isinstance(value, Path):
        return str(value)
    of_text = 'judge.load_criterion(text="""---\\nscale: [1, 5]\\n---\\n...""", name="NAME") makes one of a text'
    if not isinstance(value, str | Mapping):
        kind = type(value).__name__
        raise CriterionError(
            f"a criterion is a name, a file, a sentence or a Criterion, not a {kind}; {of_text}"
        )
    try:
        entries = to_entries([value])
    except ValueError as error:
        raise CriterionError(f"criteria: {error}") from None
    if len(entries) != 1:
        raise CriterionError("criteria: these are several criteria; give a list of them")
    entry = str(entries[0])
    if keys_of(entry) is None and ("\n" in entry or "{{" in entry or "{%" in entry):
        raise CriterionError(
            f"this is a criterion's text, not its name or file ({entry.strip()[:40]!r}...); {of_text}"
        )
    return entry


def _find_file(name_or_path: str, language: str, pairwise: bool | None) -> Path:
    # Both sets have a relevance: of two files of that name, the one of the set that was asked for.
    every = sorted(
        builtin_files(language).items(), key=lambda pair: _compares(pair[0]) != bool(pairwise)
    )
    if is_file(name_or_path):
        return Path(name_or_path)
    for name, path in every:
        if name_or_path in (name, path.stem):
            return path
    if len(name_or_path.split()) > 1:
        raise CriterionError(
            f"{name_or_path[:60]!r}: a question needs a name of one word: 'NAME: QUESTION'"
        )
    if "/" in name_or_path or os.sep in name_or_path:
        return Path(name_or_path)
    known = [path.stem for name, path in every if pairwise is None or _compares(name) == pairwise]
    unknown = unknown_name_message("criterion", name_or_path, list(dict.fromkeys(known)))
    raise CriterionError(
        f"{unknown}; a file works too, and a sentence: '{name_or_path.rstrip(': ')[:40]}: QUESTION'"
    )


def _compares(name: str) -> bool:
    return name.startswith("pairwise/")


def builtin_files(language: str) -> dict[str, Path]:
    """`task/name` → file, for every built-in criterion of a language."""
    known = languages()
    if language not in known:
        raise CriterionError(unknown_name_message("language", language, known))
    files = [
        file
        for file in (builtin_prompts() / language).glob("*/*.jinja")
        if file.parent.name not in _NO_CRITERIA
    ]
    return {f"{file.parent.name}/{file.stem}": file for file in sorted(files)}


def _read(path: Path, language: str) -> Criterion:
    return of_file_text(path, read_text(path), language)


def of_file_text(path: Path, text: str, language: str) -> Criterion:
    """The criterion that a file would be if it had this text. Raises CriterionError."""
    above = 1 if is_yaml(path) else 0
    return _make_criterion(as_template(path, text), name_of_file(path), str(path), language, above)


def as_template(path: Path, text: str) -> str:
    """The text of a criterion's file as that of a .jinja file: a header and a template, if there is one."""
    if is_yaml(path):
        inner = _END_OF_YAML.sub("", _START_OF_YAML.sub(r"\g<1>", text))
        if second := _DOCUMENT.search(inner):
            at, template = (
                f"{path}:{inner.count(chr(10), 0, second.start()) + 1}",
                f"{path.stem}.jinja",
            )
            raise CriterionError(
                f"{at}: text after the keys; call a criterion with a template {template}"
            )
        return f"---\n{inner}{'' if inner.endswith(chr(10)) else chr(10)}---\n"  # one line below its place in the file
    if path.suffix not in (".txt", ".md"):
        return text
    question = _as_yaml({"question": template_body(text).strip()})
    return f"{front_matter(text) or '---' + chr(10)}{question}---\n"


def is_yaml(path: Path) -> bool:
    """Whether a criterion's file is a header alone."""
    return path.suffix in YAML_SUFFIXES


def _as_yaml(keys: Mapping[str, Any]) -> str:
    return yaml.safe_dump(keys, allow_unicode=True, sort_keys=False, width=float("inf"))


def _make_criterion(
    text: str, name: str, path: str, language: str, above: int | None = 0
) -> Criterion:
    """The criterion of a text, whose first `above` lines are not in its file; None says that it has no file."""
    try:
        return _of_text(text, name, path, language)
    except CriterionError as error:
        place = re.match(rf"{re.escape(path)}:(\d+)", str(error))
        if place is None or above == 0:
            raise
        at = path if above is None else f"{path}:{max(int(place[1]) - above, 1)}"
        raise CriterionError(at + str(error)[place.end() :]) from error


def _of_text(text: str, name: str, path: str, language: str) -> Criterion:
    text = whole(text)
    header = read_header(path, text)
    _check_name(header, text, name, path)
    own = bool(template_body(text).strip())
    if own and header.show:
        raise CriterionError(
            f"{path}: show: is for a criterion without a template; this one shows what it prints"
        )
    if not own and (header.question.strip() or header.questions):
        show = header.show if "show" in header.model_fields_set else None
        text = f"{text.rstrip()}\n{question_template(show, checklist=bool(header.questions))}"
    elif not own and not path.endswith(".jinja"):
        raise CriterionError(
            f"{path}: has no question; write question: and what the judge is asked about a text"
        )
    scale = _scale(header, language)
    examples = read_examples(path, text, header.examples, scale) if header.examples else ()
    criterion = Criterion(
        name=name, template=text, scale=scale, reply=header.reply, weight=header.weight,
        title=header.title.strip() or name, description=header.description.strip(), steps=tuple(header.steps),
        version=header.version, language=language, path=path, question=header.question.strip(), ask=header.ask,
        cite=header.cite, seen=frozenset(header.seen), **_derived(header),
    )  # fmt: skip
    # The header has a file's name, and the digest its examples.
    said = (
        replace(criterion, examples=examples) if isinstance(header.examples, list) else criterion
    ).told
    criterion = replace(criterion, layouts=read_layouts(criterion), examples=examples, said=said)
    if criterion.question and not any(
        "this.question" in body for body in template_bodies(criterion).values()
    ):
        raise CriterionError(
            f"{path}: question: the template never prints it; put {{{{ this.question }}}} into it"
        )
    return with_needs(criterion)


def _check_name(header: Header, text: str, name: str, path: str) -> None:
    """Raise CriterionError if the header has another name than the criterion, which has that of its file."""
    written = header.name.strip()
    if not written or written == name:
        return
    keys = yaml_lines.keys(front_matter(text))
    line = keys.lines.get("name", 1) if keys else 1
    file = Path(path)
    renamed = file.with_name(f"{written}{file.suffix}").name
    raise CriterionError(
        f"{path}:{line}: name: is {written}, and a criterion is called by its file, {file.name}: write name: {name}, "
        f"or call the file {renamed}"
    )


def _derived(header: Header) -> dict[str, Any]:
    """The fields of a criterion for keys that a header may have in several forms."""
    in_column = isinstance(header.questions, str)
    return {
        "show": tuple(header.show), "levels": tuple(header.levels.items()), "pass_at": header.pass_at,
        "questions": () if in_column else header.questions, "questions_column": header.questions if in_column else "",
    }  # fmt: skip


def _scale(header: Header, language: str) -> Scale:
    """The scale of a header; that of a checklist without one is yes and no."""
    return (
        yes_no(language)
        if header.questions and "scale" not in header.model_fields_set
        else header.scale
    )


def with_needs(criterion: Criterion) -> Criterion:
    """The criterion with what its texts and its questions make it need.

    Raises CriterionError like `check_keys`, and for a checklist whose templates never show its questions.
    """
    texts = template_texts(criterion)
    columns = {*criterion.show, criterion.questions_column} - {""}
    needs = required_variables(criterion, texts) | columns
    _, _, asked_for_truth = _variables(criterion.path, tuple(texts.items()))
    made = replace(criterion, needs=needs, guarded=asked_for_truth & (needs - columns))
    check_keys(made)
    if made.is_checklist and not any("this.questions" in text for text in texts.values()):
        raise CriterionError(
            f'{made.path}: never shows its questions; write {{% extends "layouts/checklist.jinja" %}}, or print '
            "this.questions"
        )
    return made


def in_language(criterion: Criterion, language: str) -> Criterion:
    """A criterion that is a question alone, with the built-in layouts of a language; any other as it came."""
    if criterion.language == language or not is_question_template(
        template_body(criterion.template)
    ):
        return criterion
    if criterion.is_checklist and criterion.scale == yes_no(criterion.language):
        criterion = replace(criterion, scale=yes_no(language))
    return finalize(replace(criterion, language=language, layouts={}))


def finalize(criterion: Criterion) -> Criterion:
    """A criterion that a program has made or changed, with the layouts and needs that its template now has.

    Its scale, levels, questions and examples may be as in a header. Raises CriterionError for what is wrong with them
    or with the template, and for a header that says something else than the criterion does.
    """
    texts = {field.name: whole_value(getattr(criterion, field.name)) for field in fields(criterion)}
    criterion = replace(criterion, **texts)
    raw: Any = criterion
    path = raw.path or f"{raw.name}.jinja"
    if not (raw.template or raw.question.strip() or raw.is_checklist):
        raise CriterionError(f"{raw.name}: a Criterion has a question, or a template")
    scale = (
        yes_no(raw.language) if raw.is_checklist and raw.scale == Criterion("").scale else raw.scale
    )
    keys = {
        "scale": scale,
        "show": list(raw.show),
        "levels": dict(raw.levels),
        "pass_at": raw.pass_at,
    }
    keys |= (
        {"questions": raw.questions or raw.questions_column, "reply": raw.reply}
        if raw.is_checklist
        else {}
    )
    header = make_header(path, keys)
    result = replace(
        criterion, path=path, title=raw.title or raw.name, scale=header.scale, **_derived(header),
        template=raw.template or question_template(header.show or None, checklist=raw.is_checklist),
        examples=check_examples(((path, example) for example in raw.examples), header.scale),
    )  # fmt: skip
    if front_matter(result.template):
        header = read_header(path, result.template)
        says = replace(
            result,
            scale=_scale(header, result.language),
            steps=tuple(header.steps),
            reply=header.reply,
        ).told[2:6]
        if says not in (result.told[2:6], result.said[2:6]):
            raise CriterionError(
                f"{path}: the header of its template says another scale, steps or reply than the Criterion has; "
                "judge.load_criterion(text=..., name=...) makes one of a text with its header"
            )
    return with_needs(replace(result, layouts=read_layouts(result)))


_NO_CRITERIA = frozenset({"layouts", "qags", "claims"})
"""Folders of prompts/<language>/ whose templates are no criteria."""
PARAPHRASES = {"b": "reworded", "c": "brief"}
"""The other wordings of the layout that judges one text: the suffix of the criterion's name and the layout's."""
_LAYOUT = "layouts/pointwise.jinja"
_EXTENDS = re.compile(rf"""({{%[-+]?\s*extends\s+["']){re.escape(_LAYOUT)}(?=["'])""")


def paraphrase(criterion: Criterion, wording: str) -> Criterion:
    """The criterion in another of the PARAPHRASES, named `NAME~b`: its own text is the same, the layout differs.

    Raises CriterionError where its prompt has no words around it that could be said otherwise: it extends another
    layout than the built-in one, or none.
    """
    root = builtin_prompts() / criterion.language
    texts = template_texts(criterion)
    if texts.get(_LAYOUT) != read_text(root / _LAYOUT):
        raise CriterionError(
            f"{criterion.path}: it does not extend the built-in {_LAYOUT}, which alone is there in other words"
        )
    layout = f"layouts/pointwise_{PARAPHRASES[wording]}.jinja"
    layouts = {
        name: _EXTENDS.sub(rf"\g<1>{layout}", text)
        for name, text in texts.items()
        if name != _LAYOUT
    }
    template = layouts.pop(own_name(criterion))
    layouts[layout] = read_text(root / layout)
    return with_needs(
        replace(criterion, name=f"{criterion.name}~{wording}", template=template, layouts=layouts)
    )
