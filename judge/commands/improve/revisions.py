"""Revised wordings of a criterion.

The module has the prompt for the model that writes them, reads its reply, and makes the file of a
revision.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge import criteria, text
from judge.core.criterion_entry import SUFFIXES, YAML_SUFFIXES, is_file, keys_of
from judge.core.errors import ConfigError, CriterionError, ParseError
from judge.core.format import one_line
from judge.core.messages import option
from judge.core.records import Criterion, Sample
from judge.criteria.header import front_matter, levels_of_scale
from judge.criteria.render import render_drafting_prompt
from judge.criteria.sandbox import fenced
from judge.criteria.template import CRITERION_BLOCK
from judge.data.answers import answer_inputs, texts_of
from judge.metrics.text_features import ngrams
from judge.scoring import json_reply

LONGEST = 2_000
"""Characters of a question."""
LONGEST_LINE = 300
"""Characters of a level's description, or of a reason."""
_MOST_SHOWN = 6_000  # characters of a text, or of its source, in a prompt
_MOST_REJECTED = 1_000  # characters of a rejected reply in a prompt
_MOST_LEVELS = 12  # labels that a prompt lists
_COPIED = 8  # words in a row from a text that make a question a copy of it
_SYNTAX = ("{{", "{%", "{#", "}}", "%}", "#}")
# Control characters but the line feed, and Unicode's line and paragraph separators.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_KEYS = ("question", "levels", "reason")


@dataclass(frozen=True, slots=True)
class Case:
    """A text on which judge and people disagree.

    It has both scores, and whether the judge's is too high.
    """

    sample: Sample
    judge: str
    people: str
    high: bool
    reason: str = ""
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """A reply of the writer that holds no usable revision, and what is wrong with it."""

    reply: str
    problem: str


@dataclass(frozen=True, slots=True)
class Revision:
    """A model's proposal: a question, descriptions of levels, and the reason.

    Without descriptions, the present ones stay.
    """

    question: str
    levels: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    def same_wording(self, revision: Revision) -> bool:
        """Return whether both have the same wording, whatever their reasons are."""
        same_question = self.question == revision.question
        return same_question and self.levels == revision.levels


@dataclass(frozen=True, slots=True)
class Wording:
    """A criterion whose wording can be replaced, and the file that has it.

    `text` is that file's text, `path` the file to write. `in_block` tells that the wording is the
    block `criterion` of a template; otherwise it is in the header.
    """

    criterion: Criterion
    path: Path
    text: str
    in_block: bool


def read_wording(entry: str, output: Path | None, language: str) -> Wording:
    """Load a criterion to improve: a file, a built-in name, or `NAME: QUESTION`.

    `output` is the file to write. By default it is `NAME.improved.yaml` or `.jinja`, beside the
    criterion's own file. Raises CriterionError if its wording cannot be replaced.
    """
    criterion = criteria.load(entry, language=language, pairwise=None)
    if criterion.pairwise or criterion.is_checklist:
        kind = "compares two texts" if criterion.pairwise else "is a checklist"
        raise CriterionError(
            f"{criterion.path}: {kind}; judge improves criteria that ask one question about one "
            "text"
        )
    source = Path(criterion.path)
    is_sentence = keys_of(entry) is not None
    suffix = ".jinja" if source.suffix == ".jinja" and not is_sentence else ".yaml"
    path = output
    if path is None:
        folder = source.parent if is_file(entry) else Path()
        has_suffix = source.suffix in SUFFIXES and not is_sentence
        stem = source.stem if has_suffix else source.name
        path = folder / f"{_improved_name(stem)}{suffix}"
    suffixes = (".jinja",) if suffix == ".jinja" else YAML_SUFFIXES
    if path.suffix not in suffixes:
        output_option = option("output", str(path))
        raise ConfigError(f"{output_option}: write a name that ends in {suffix}")
    if not is_sentence and source.suffix in (".jinja", *YAML_SUFFIXES):
        # Some editors on Windows begin a file with a byte order mark.
        file_text = source.read_text(encoding="utf-8-sig")
    else:
        # A sentence, or a file with the question alone, has no header of its own.
        file_text = front_matter(criterion.template).removeprefix("---\n")
    in_block = suffix == ".jinja" and not criterion.question
    wording = Wording(criterion, path, file_text, in_block)
    if in_block and len(CRITERION_BLOCK.findall(file_text)) != 1:
        raise CriterionError(
            f"{source}: judge cannot replace its wording: it needs one block `criterion` of plain "
            f"text, without {{{{ and {{% in it (blocks of plain text inside are fine). Or write "
            "the question as a YAML file"
        )
    # Raises if the header cannot be changed, before anything is paid.
    revised(wording, Revision(criterion.question or criterion.title), ())
    return wording


def _improved_name(stem: str) -> str:
    """Return `polite.improved` of `polite`, and `polite.improved-2` of `polite.improved`."""
    match = re.fullmatch(r"(.+)\.improved(?:-(\d+))?", stem)
    if match is None:
        return f"{stem}.improved"
    number = int(match[2] or 1) + 1
    return f"{match[1]}.improved-{number}"


def writing_prompts(
    wording: Wording,
    cases: Sequence[Case],
    count: int,
    rejected: Mapping[int, Rejected] | None = None,
) -> list[str]:
    """Return the prompts for `count` revisions. Raises CriterionError.

    With `rejected`, return only those for these numbers, which show the rejected reply and what is
    wrong with it.
    """
    criterion = wording.criterion
    labels = list(criterion.scale.asked.labels)
    if len(labels) > _MOST_LEVELS:
        labels = [labels[0], "…", labels[-1]]
    # The key of a fence must occur in none of the texts.
    shown_texts = []
    for case in cases:
        inputs = judged_inputs(criterion, case.sample)
        shown_texts += [case.sample.output, *inputs.values()]
        shown_texts += [case.reason, *case.comments]
    shown_texts += [unusable.reply for unusable in (rejected or {}).values()]

    def between_marks(text: str, label: str) -> str:
        if not text:
            return ""
        excerpt = text
        if len(text) > _MOST_SHOWN:
            excerpt = f"{text[:_MOST_SHOWN]} […]"
        return fenced(excerpt, label, shown_texts)

    described_cases = [
        _described_case(criterion, case, between_marks) for case in cases
    ]
    variables: dict[str, Any] = {
        "cases": described_cases,
        "count": count,
        "longest": f"{LONGEST:,}",
        "whole": wording.in_block,
        "levels": labels,
        "problem": "",
        "reply": "",
    }
    templates = criteria.drafting(criterion, "wording")
    numbers = range(1, count + 1) if rejected is None else rejected
    prompts = []
    for number in numbers:
        # By its number, the template asks each revision for another kind of change.
        variables["number"] = number
        if rejected is not None:
            variables["problem"] = rejected[number].problem
            reply = rejected[number].reply[:_MOST_REJECTED]
            variables["reply"] = between_marks(reply, "reply")
        prompt = render_drafting_prompt(criterion, templates, **variables)
        prompts.append(prompt.messages[0]["content"])
    return prompts


def judged_inputs(criterion: Criterion, sample: Sample) -> dict[str, str]:
    """Return the texts that the judge saw beside the output, by name: source, request, columns.

    An answer's source may be its request, too; it is returned once.
    """
    inputs = {"source": sample.source, **answer_inputs(sample)}
    read_inputs = [name for name in inputs if criteria.reads(criterion, name)]
    names = criterion.show or read_inputs
    texts_by_name: dict[str, str] = {}
    for name in names:
        value = sample.references if name == "references" else inputs.get(name)
        if value is None:
            value = sample.extra.get(name)
        input_text = "\n\n".join(texts_of(value))
        if input_text and input_text not in texts_by_name.values():
            texts_by_name[name] = input_text
    return texts_by_name


def _described_case(
    criterion: Criterion,
    case: Case,
    between_marks: Callable[[str, str], str],
) -> dict[str, Any]:
    """Return what the template of a writing prompt reads of a case."""
    inputs = judged_inputs(criterion, case.sample)
    fenced_inputs = [between_marks(text, name) for name, text in inputs.items()]
    comments = [between_marks(comment, "comment") for comment in case.comments]
    return {
        "judge": case.judge,
        "people": case.people,
        "high": case.high,
        "source": "\n\n".join(fenced_inputs),
        "output": between_marks(case.sample.output, "text"),
        "reason": between_marks(case.reason, "judge_reason"),
        "comments": comments,
    }


def read_revision(
    reply: str, wording: Wording, seen_texts: Collection[str]
) -> Revision:
    """Return the revision of a model's reply; `seen_texts` are the texts that it has seen.

    A reply is one JSON object with question, levels and reason. Raises ParseError for anything
    else, for text with template syntax, too long, or with eight words in a row from a text, and for
    the wording that the criterion has; CriterionError for levels that are not on the scale.
    """
    values = _parse_object(reply)
    question = values.get("question", "")
    levels = values.get("levels") or {}
    reason = values.get("reason") or ""
    is_of_texts = isinstance(levels, dict)
    if is_of_texts:
        values_written = [question, reason, *levels.values()]
        is_of_texts = all(isinstance(value, str) for value in values_written)
    if not is_of_texts:
        raise ParseError("question, reason and each of the levels are texts", reply)
    criterion = wording.criterion
    present_question = "" if wording.in_block else criterion.question
    question = question.strip() or present_question
    described_levels: dict[str, str] = {}
    for label, description in levels.items():
        stripped = description.strip()
        if stripped:
            described_levels[str(label).strip()] = stripped
    levels = described_levels
    if not question:
        raise ParseError("has no question", reply)
    _check_parts(question, [*levels, *levels.values()], reply)
    # The present wording may itself have words of a text, such as those of an example.
    own_grams = _grams([wording.text])
    revised_grams = _grams([question, *levels, *levels.values()])
    copied = (revised_grams & _grams(seen_texts)) - own_grams
    if copied:
        first_copy = " ".join(min(copied))
        raise ParseError(f"copies a rated text: {one_line(first_copy, 60)!r}", reply)
    try:
        levels = levels_of_scale(levels, criterion.scale.asked)
    except ValueError as error:
        raise ParseError(f"levels: {error}", reply) from error
    if question == criterion.question and levels in ({}, dict(criterion.levels)):
        raise ParseError("changes nothing", reply)
    return Revision(question, levels, one_line(reason, LONGEST_LINE))


def _parse_object(reply: str) -> dict[str, Any]:
    """Return the JSON object of a reply. Raises ParseError for other text or an unknown key."""
    objects = json_reply.objects(reply, 0)
    if len(objects) != 1 or objects[0].broken:
        raise ParseError("no JSON object with question, levels and reason", reply)
    (json_object,) = objects
    json_text = reply[json_object.start : json_object.end]
    try:
        # Models write line breaks inside strings, which strict JSON forbids.
        values: dict[str, Any] = json.loads(json_text, strict=False)
    except ValueError as error:
        raise ParseError(f"not JSON: {error}", reply) from error
    unknown = [header_key for header_key in values if header_key not in _KEYS]
    if unknown:
        problem = f"has the key {one_line(unknown[0], 40)!r}"
        raise ParseError(f"{problem}; a revision changes question and levels", reply)
    return values


def _check_parts(question: str, level_parts: Sequence[str], reply: str) -> None:
    """Raise ParseError for text that a criterion's file cannot hold."""
    whole_text = "\n".join([question, *level_parts])
    if any(sign in whole_text for sign in _SYNTAX):
        raise ParseError("holds template syntax", reply)
    has_controls = _CONTROL.search(whole_text) is not None
    if has_controls or any("\n" in level_part for level_part in level_parts):
        raise ParseError("holds control characters, or a level of several lines", reply)
    longest_level = max(map(len, level_parts), default=0)
    if len(question) > LONGEST or longest_level > LONGEST_LINE:
        limits = f"{LONGEST:,} characters, or {LONGEST_LINE} for a level"
        raise ParseError(f"is longer than {limits}", reply)


def _grams(parts: Collection[str]) -> set[tuple[str, ...]]:
    """Return all runs of eight words, ignoring case."""
    grams: set[tuple[str, ...]] = set()
    for text_part in parts:
        words = [token.casefold() for token in text.tokens(text_part)]
        grams.update(ngrams(words, _COPIED))
    return grams


def revised(
    wording: Wording,
    revision: Revision,
    seen: Collection[str],
) -> tuple[str, Criterion]:
    """Return the text of a revision's file, and its criterion.

    `seen` joins the digests in the header, and the version rises. Raises CriterionError if the file
    would not be a criterion, or one with another scale.
    """
    old_criterion = wording.criterion
    file_text = wording.text
    values: dict[str, Any] = {}
    if wording.in_block:

        def new_block(block: re.Match[str]) -> str:
            # A function, because `sub` would read a backslash in a question as an escape.
            return f"{block['start']}{revision.question}\n{block['end']}"

        file_text = CRITERION_BLOCK.sub(new_block, file_text)
    else:
        values["question"] = revision.question
    if revision.levels:
        values["levels"] = dict(revision.levels)
    values["version"] = old_criterion.version + 1
    if old_criterion.paraphrases:
        # They are wordings of the old question.
        values["paraphrases"] = []
    if seen:
        values["seen"] = sorted(old_criterion.seen.union(seen))
    file_text = criteria.with_values(wording.path, file_text, values)
    new_criterion = criteria.of_file_text(
        wording.path, file_text, old_criterion.language
    )
    if new_criterion.scale != old_criterion.scale:
        raise CriterionError("its levels would change the scale")
    if new_criterion.needs != old_criterion.needs:
        raise CriterionError("its prompt would read other columns")
    return file_text, new_criterion
