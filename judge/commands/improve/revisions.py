"""Revised wordings of a criterion: the prompt for a model that writes them, its reply, and the file of a revision."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge import criteria, text
from judge.core.criterion_entry import SUFFIXES, YAML_SUFFIXES, is_file, keys_of
from judge.core.errors import ConfigError, CriterionError, ParseError
from judge.core.format import one_line
from judge.core.records import Criterion, Sample
from judge.criteria.header import front_matter, levels_of_scale
from judge.criteria.render import render_drafting_prompt
from judge.criteria.sandbox import fenced
from judge.metrics.text_features import ngrams
from judge.scoring import json_reply

LONGEST, LONGEST_LINE = 2_000, 300
"""Characters of a question, and of a level's description or a reason."""
_MOST_SHOWN = 6_000  # characters of a text, or of its source, in a prompt
_MOST_LEVELS = 12  # labels that a prompt lists
_COPIED = 8  # words
_SYNTAX = ("{{", "{%", "{#", "}}", "%}", "#}")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_KEYS = ("question", "levels", "reason")
_PLAIN = r"(?:(?!\{[{%#]).)*"
_BLOCK = re.compile(
    r"(?P<start>\{%[-+]?\s*block\s+criterion\s*[-+]?%\}\n?)"
    rf"{_PLAIN}(?:\{{%[-+]?\s*block\s+\w+\s*[-+]?%\}}{_PLAIN}\{{%[-+]?\s*endblock(?:\s+\w+)?\s*[-+]?%\}}{_PLAIN})*"
    r"(?P<end>\{%[-+]?\s*endblock(?:\s+criterion)?\s*[-+]?%\})",
    re.DOTALL,
)
"""A block `criterion` of text alone, which may have parts that are blocks of text."""


@dataclass(frozen=True, slots=True)
class Case:
    """A text on which judge and people disagree: both scores, and whether the judge's is too high."""

    sample: Sample
    judge: str
    people: str
    high: bool
    reason: str = ""
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Revision:
    """What a model proposes: a question, descriptions of levels (none: those that there are), and why."""

    question: str
    levels: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Wording:
    """A criterion whose wording can be replaced, and the file that has it.

    `text` is that file's text, `path` the file to write. `in_block` tells that the wording is the block `criterion` of
    a template; otherwise it is in the header.
    """

    criterion: Criterion
    path: Path
    text: str
    in_block: bool


def read_wording(entry: str, output: Path | None, language: str) -> Wording:
    """Load a criterion to improve: a file, a built-in name, or `NAME: QUESTION`; `output` is the file to write.

    By default it is `NAME.improved.yaml` or `.jinja`, beside the criterion's own file. Raises CriterionError if its
    wording cannot be replaced.
    """
    criterion = criteria.load(entry, language=language, pairwise=None)
    if criterion.pairwise or criterion.is_checklist:
        kind = "compares two texts" if criterion.pairwise else "is a checklist"
        raise CriterionError(
            f"{criterion.path}: {kind}; judge improves criteria that ask one question about one text"
        )
    own = Path(criterion.path)
    suffix = ".jinja" if own.suffix == ".jinja" and keys_of(entry) is None else ".yaml"
    stem = own.stem if own.suffix in SUFFIXES and keys_of(entry) is None else own.name
    match = re.fullmatch(
        r"(.+)\.improved(?:-(\d+))?", stem
    )  # `polite.improved` becomes `polite.improved-2`
    name = f"{match[1]}.improved-{int(match[2] or 1) + 1}" if match else f"{stem}.improved"
    path = output or (own.parent if is_file(entry) else Path()) / f"{name}{suffix}"
    if path.suffix not in ((".jinja",) if suffix == ".jinja" else YAML_SUFFIXES):
        raise ConfigError(f"--output {path}: write a name that ends in {suffix}")
    if keys_of(entry) is None and own.suffix in (".jinja", *YAML_SUFFIXES):
        raw = own.read_text(encoding="utf-8-sig")
    else:  # a sentence, or a file with the question alone
        raw = front_matter(criterion.template).removeprefix("---\n")
    in_block = suffix == ".jinja" and not criterion.question
    wording = Wording(criterion, path, raw, in_block)
    if in_block and len(_BLOCK.findall(raw)) != 1:
        raise CriterionError(
            f"{own}: judge cannot replace its wording: it needs one block `criterion` of plain text, without {{{{ and "
            "{% in it (blocks of plain text inside are fine). Or write the question as a YAML file"
        )
    revised(
        wording, Revision(criterion.question or criterion.title), ()
    )  # raises if the header cannot be changed
    return wording


def writing_prompts(wording: Wording, cases: Sequence[Case], count: int) -> list[str]:
    """Return what the writer is asked for each of `count` revisions. Raises CriterionError."""
    criterion, labels = wording.criterion, list(wording.criterion.scale.asked.labels)
    shows_source = criteria.reads(criterion, "source")
    among = [
        part
        for case in cases
        for part in (case.sample.output, case.sample.source or "", case.reason, *case.comments)
    ]

    def between_marks(part: str, label: str) -> str:
        shown = part if len(part) <= _MOST_SHOWN else f"{part[:_MOST_SHOWN]} […]"
        return fenced(shown, label, among) if part else ""

    variables: dict[str, Any] = {
        "cases": [
            {
                "judge": case.judge,
                "people": case.people,
                "high": case.high,
                "source": between_marks(
                    (case.sample.source or "") if shows_source else "", "source"
                ),
                "output": between_marks(case.sample.output, "text"),
                "reason": between_marks(case.reason, "judge_reason"),
                "comments": [between_marks(comment, "comment") for comment in case.comments],
            }
            for case in cases
        ],
        "count": count,
        "longest": f"{LONGEST:,}",
        "whole": wording.in_block,
        "levels": labels if len(labels) <= _MOST_LEVELS else [labels[0], "…", labels[-1]],
    }
    templates = criteria.drafting(criterion, "wording")
    prompts = (
        render_drafting_prompt(criterion, templates, number=n, **variables)
        for n in range(1, count + 1)
    )
    return [prompt.messages[0]["content"] for prompt in prompts]


def read_revision(reply: str, wording: Wording, shown: Collection[str]) -> Revision:
    """Return the revision of a model's reply; `shown` are the texts that it has seen.

    A reply is one JSON object with question, levels and reason. Raises ParseError for anything else, for text with
    template syntax, too long, or with eight words in a row from a text, and for the wording that the criterion has;
    CriterionError for levels that are not on the scale.
    """
    found = json_reply.objects(reply, 0)
    if len(found) != 1 or found[0].broken:
        raise ParseError(
            f"no JSON object with question, levels and reason: {one_line(reply, 60)!r}", reply
        )
    try:
        raw = json.loads(reply[found[0].start : found[0].end], strict=False)
    except ValueError as error:
        raise ParseError(f"not JSON: {error}", reply) from error
    if unknown := [key for key in raw if key not in _KEYS]:
        raise ParseError(
            f"has the key {one_line(unknown[0], 40)!r}; a revision changes question and levels",
            reply,
        )
    question, levels, reason = (
        raw.get("question", ""),
        raw.get("levels") or {},
        raw.get("reason") or "",
    )
    if not isinstance(levels, dict) or not all(
        isinstance(part, str) for part in (question, reason, *levels.values())
    ):
        raise ParseError("question, reason and each of the levels are texts", reply)
    question = question.strip() or ("" if wording.in_block else wording.criterion.question)
    levels = {str(label).strip(): part.strip() for label, part in levels.items() if part.strip()}
    if not question:
        raise ParseError("has no question", reply)
    written = [question, *levels, *levels.values()]
    if any(sign in part for part in written for sign in _SYNTAX):
        raise ParseError("holds template syntax", reply)
    if any(_CONTROL.search(part) for part in written) or any("\n" in part for part in written[1:]):
        raise ParseError("holds control characters, or a level of several lines", reply)
    if len(question) > LONGEST or any(len(part) > LONGEST_LINE for part in written[1:]):
        raise ParseError(
            f"is longer than {LONGEST:,} characters, or {LONGEST_LINE} for a level", reply
        )
    own = _grams([wording.text])
    if copied := (_grams(written) & _grams(shown)) - own:
        raise ParseError(f"copies a rated text: {one_line(' '.join(min(copied)), 60)!r}", reply)
    try:
        levels = levels_of_scale(levels, wording.criterion.scale.asked)
    except ValueError as error:
        raise ParseError(f"levels: {error}", reply) from error
    if question == wording.criterion.question and levels in ({}, dict(wording.criterion.levels)):
        raise ParseError("changes nothing", reply)
    return Revision(question, levels, one_line(reason, LONGEST_LINE))


def _grams(parts: Collection[str]) -> set[tuple[str, ...]]:
    return {
        gram
        for part in parts
        for gram in ngrams([token.casefold() for token in text.tokens(part)], _COPIED)
    }


def revised(wording: Wording, revision: Revision, seen: Collection[str]) -> tuple[str, Criterion]:
    """Return the text of a revision's file, and the criterion that it is.

    `seen` joins the digests in the header, and the version rises. Raises CriterionError if the file would not be a
    criterion, or one with another scale.
    """
    before = wording.criterion
    values: dict[str, Any] = {} if wording.in_block else {"question": revision.question}
    values |= {"levels": dict(revision.levels)} if revision.levels else {}
    values["version"] = before.version + 1
    values |= {"seen": sorted(before.seen.union(seen))} if seen else {}
    changed = wording.text
    if wording.in_block:
        changed = _BLOCK.sub(
            lambda match: f"{match['start']}{revision.question}\n{match['end']}", changed
        )
    changed = criteria.with_values(wording.path, changed, values)
    after = criteria.of_file_text(wording.path, changed, before.language)
    if after.scale != before.scale:
        raise CriterionError("its levels would change the scale")
    if after.needs != before.needs:
        raise CriterionError("its prompt would read other columns")
    return changed, after
