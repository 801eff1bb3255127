"""Find the score in the JSON objects of a reply, and the values of several keys of one object.

See docs/decisions/0054-a-reply-is-read-only-if-it-is-plain.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from judge.core.errors import ParseError
from judge.core.label_spellings import LabelIndex, fold, is_number, label_index
from judge.core.records import Reading, Scale
from judge.scoring import json_reply, prose
from judge.scoring.grammar import CLOSE, Grammar
from judge.scoring.quotes import is_quoted
from judge.scoring.thinking import OBJECT, reply_start
from judge.scoring.written_score import QUOTED, NotInForm, ParsedScore, score_alone

CLOSED = re.compile(CLOSE)
"""Nothing but marks and end-of-turn tokens up to the end."""
NO_KEY = 'the JSON object does not have one key "score" with one value'
# "Here is the result:\n", "… is clear.", "(", "```json", "<|begin_of_box|>"
_LEADS_UP = re.compile(r"(?:[\n:：.。!！?？(\[`]|```\w+|<\|begin_of_box\|>)[ \t]*\Z")
# " ).", "```", "<|end_of_box|>" and a line break or the end
_ENDS_LINE = re.compile(r"[ \t)\].,;。`]*+(?:<\|end_of_box\|>)?(?:\n|\Z)")
# The opening fence right before an object: "```json\n"
_FENCE_BEFORE = re.compile(r"```\w*\s*\Z")
# `pass`, `is correct`
_PASSES = re.compile(
    r"(?:is )?(?:pass(?:ed|es)?|correct|true|valid|good|ok)", re.IGNORECASE
)
# `ratings`: the key of an object that holds the score
_WRAPS_SCORE = re.compile(
    r"(?:ratings|grades|output|response|review|feedback)", re.IGNORECASE
)
# `max_score`, `out of`, `scale`
_TOP = re.compile(
    r"(?:max(?:imum)?(?: (?:possible )?(?:score|rating|points))?|(?:score )?out of|scale|満点|满分|만점)",
    re.IGNORECASE,
)
# `adjusted`, `final`, `total`: a score under such a key replaces another
_REVISED = re.compile(
    r"total|(?:the |my )?(?:final|revised|corrected|adjusted|updated)"
    r"(?: (?:score|rating|grade|result|value))?"
    r"|(?:최종|수정|조정)(?: ?(?:점수|평점|평가|등급|결과))?"
    r"|(?:最終|修正後?|調整後?)の?(?:スコア|[点分]数|得点|評[価点分]|結果)?"
    r"|(?:最终|修正后|调整后|最終|修正後|調整後)的?(?:分数|分數|得分|评[分价]|評[分價]|等级|结果)?",
    re.IGNORECASE,
)
# "10", "1-10", "1 to 10": the end of a scale
_LAST_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?=\D*\Z)")
# "1. yes", "2) no", "coverage.3: yes"
_NUMBERED_ANSWER = re.compile(
    r"[ \t*-]*+(?P<key>[\w.-]+?)[.):]\**[ \t]+(?P<answer>\S[^\r\n]*+)"
)
_LINE = re.compile(r"[^\r\n]+")
_MOST_OBJECTS = 1_000
_DEEPEST = 5
"""Objects inside each other in which a score is looked for."""
_REASON = 1_500
"""Most characters before an object in which another score is looked for."""
_LONGEST_LEAD = 120
"""Most characters before an object that are searched for words which introduce it."""


_BROKEN_OBJECT = "the reply holds a JSON object that is not closed or not plain"
_DIFFERENT_SCORES = "the reply holds JSON objects with different scores"
_NOT_ONE_OBJECT = "the reply is not one JSON object"
_SAME_SCORE_IN_TEXT = (
    "the judged text has the same score as the JSON object, which may be a quotation"
)


def score_in_object(
    text: str,
    members: Sequence[json_reply.Member],
    grammar: Grammar,
    *,
    lone: bool,
    tolerant: bool,
    depth: int = 0,
) -> ParsedScore | None:
    """Return the score of a JSON object, None if no key is for one.

    With `lone`, the object may hold no other number. With `tolerant`, the key may be any name of a
    score, and its value may be an object with the score in it, if no other value is an object or a
    list. `depth` counts the objects around this one. Raises ParseError.
    """
    candidates = _members_for_score(members, grammar, tolerant=tolerant)
    if not candidates:
        return None
    if len(candidates) > 1:
        raise ParseError(NO_KEY, text)
    (member,) = candidates
    kinds = [candidate.kind for candidate in members]
    if kinds.count("container") > 1 and member.kind == "container":
        raise ParseError(NO_KEY, text)
    score = _score_of_member(
        text,
        member,
        grammar,
        lone=lone,
        tolerant=tolerant,
        depth=depth,
    )
    siblings = [candidate for candidate in members if candidate is not member]
    for sibling in siblings:
        is_number_or_container = sibling.kind not in ("literal", "words")
        if lone and is_number_or_container and not _may_state_top(sibling):
            raise ParseError("the JSON object holds more than a score and words", text)
    for sibling in siblings:
        _check_agrees(sibling, score, grammar, text, depth)
    quotes: list[json_reply.Member] = []
    if grammar.cite:
        quotes = [sibling for sibling in siblings if sibling.key.casefold() == "quote"]
    reason = score.reason or _reason_in(siblings, quotes)
    quote = quotes[0].words.strip() if quotes else score.quote
    return replace(score, reason=reason, quote=quote or None)


def _members_for_score(
    members: Sequence[json_reply.Member],
    grammar: Grammar,
    *,
    tolerant: bool,
) -> list[json_reply.Member]:
    """Return the members whose key is for a score, by the best kind of key that there is."""
    by_key = [member for member in members if member.key.casefold() == "score"]
    if by_key or not tolerant:
        return by_key
    by_name = [member for member in members if _names_score(member, grammar)]
    if by_name:
        return by_name
    # {"score": {"value": 4, "reason": "It is clear."}}
    return [member for member in members if member.key.casefold() == "value"]


def _score_of_member(
    text: str,
    member: json_reply.Member,
    grammar: Grammar,
    *,
    lone: bool,
    tolerant: bool,
    depth: int,
) -> ParsedScore:
    """Return the score that a member gives. Raises ParseError if it gives none."""
    if tolerant:
        truth_label = _truth_label(member, grammar)
        if truth_label is not None:
            return ParsedScore(truth_label, member.start, member.end)
        inner_members = _members_inside(member, text, depth)
        score = score_in_object(
            text,
            inner_members,
            grammar,
            lone=lone,
            tolerant=True,
            depth=depth + 1,
        )
        if score is not None:
            return score
    if member.kind in ("container", "literal"):
        raise ParseError(NO_KEY, text)
    try:
        return score_alone(text, member.start, member.end, grammar)
    except NotInForm:
        # {"score": "★★★★☆"}, {"answer": "はい"}: a spelling that only plain replies may have
        label = grammar.prose_spellings.label(fold(member.words)) if tolerant else None
        if label is None:
            raise
        is_quoted_word = text[member.start] in "\"'“‘"
        inset = 1 if is_quoted_word else 0
        return ParsedScore(label, member.start + inset, member.end - inset)


def _members_inside(
    member: json_reply.Member,
    text: str,
    depth: int,
) -> tuple[json_reply.Member, ...]:
    """Return the members of the object that a member is; none if it is no object."""
    is_object = member.kind == "container" and text[member.start] == "{"
    if not is_object or depth >= _DEEPEST:
        return ()
    return json_reply.read_object(text, member.start).members


def _may_state_top(member: json_reply.Member) -> bool:
    """Return whether the key of a member is one for the top of the scale: "max_score", "total"."""
    key = _spaced_key(member)
    return key == "total" or _TOP.fullmatch(key) is not None


def _check_agrees(
    member: json_reply.Member,
    score: ParsedScore,
    grammar: Grammar,
    text: str,
    depth: int,
) -> None:
    """Raise ParseError if another member is another score, or states another scale.

    {"score": 4, "overall": 3}, {"score": 4, "adjusted": {"score": 3}}, {"score": 4, "max": 10},
    {"score": true, "final_score": 0}
    """
    key = _spaced_key(member)
    value = fold(text[member.start : member.end].strip('"'))
    revises = _REVISED.fullmatch(key) is not None
    if revises or _names_score(member, grammar):
        label = _score_written(member, value, grammar, text, depth)
        # {"score": 4, "total": 5} on a scale from 1 to 5: a total of 5 points
        states_top = key == "total" and label == grammar.spellings.ends[1]
        is_unclear = label is None and revises and member.kind == "container"
        if is_unclear or not (label in (None, score.label) or states_top):
            raise ParseError("the JSON object has two different scores", text)
    top = _LAST_NUMBER.search(value)
    if top is None or not _TOP.fullmatch(key):
        return
    if grammar.spellings.label(top[0]) != grammar.spellings.ends[1]:
        raise ParseError(f"{score.label} out of {top[0]} is off the scale", text)


def _score_written(
    member: json_reply.Member,
    value: str,
    grammar: Grammar,
    text: str,
    depth: int,
) -> str | None:
    """Return the label of a member, or its number off the scale; None if it gives no score."""
    if member.kind == "container":
        return _label_inside(member, grammar, text, depth)
    truth_label = _truth_label(member, grammar)
    if truth_label is not None:
        return truth_label
    if grammar.digits is not None and value in ("0", "1"):
        return grammar.truth_of_digit(value)
    try:
        return score_alone(text, member.start, member.end, grammar).label
    except ParseError:
        off_scale = value if is_number(value) else None
        return grammar.prose_spellings.label(value) or off_scale


def _label_inside(
    member: json_reply.Member,
    grammar: Grammar,
    text: str,
    depth: int,
) -> str | None:
    """Return the label that the object of a member gives, None if it gives none."""
    members = _members_inside(member, text, depth)
    try:
        score = score_in_object(
            text,
            members,
            grammar,
            lone=False,
            tolerant=True,
            depth=depth + 1,
        )
    except ParseError:
        return None
    return score.label if score is not None else None


def _spaced_key(member: json_reply.Member) -> str:
    """Return a key in lower case with spaces for underscores: "max score"."""
    return fold(member.key).replace("_", " ").casefold()


def _reason_in(
    members: Sequence[json_reply.Member],
    quotes: Sequence[json_reply.Member],
) -> str | None:
    """Return the reason that an object gives beside its score.

    Without a key "reason", all words of the object are the reason.
    """
    candidates = [member for member in members if member.key.casefold() == "reason"]
    words = [member for member in candidates or members if member.kind == "words"]
    reasons = [member.words.strip() for member in words if member not in quotes]
    return "\n".join(reasons) or None


def _names_score(member: json_reply.Member, grammar: Grammar) -> bool:
    """Return whether the key of a member is a name of a score: {"winner": "A"}, {"pass": true}."""
    key = _spaced_key(member)
    if grammar.name.fullmatch(key) or grammar.prose.forms.name.fullmatch(key):
        return True
    if member.kind == "container" and _WRAPS_SCORE.fullmatch(key):
        return True
    return member.kind == "literal" and _PASSES.fullmatch(key) is not None


def _truth_label(member: json_reply.Member, grammar: Grammar) -> str | None:
    """Return the label of a value that is true or false.

    True is the label of the value 1. Return None if the value is another, if the scale has no such
    label, or if that label is itself a word for the opposite, as with the question "Has it errors?"
    whose value 1 is "no".
    """
    word = member.words.casefold()
    if member.kind != "literal" or word not in ("true", "false"):
        return None
    by_word = grammar.prose_spellings.label(word)
    by_value = grammar.truth.get(word)
    if by_word is not None and by_value is not None and by_word != by_value:
        return None
    return by_value


def score_in_objects(
    text: str,
    start: int,
    grammar: Grammar,
    judged: str,
    *,
    lone: bool,
) -> ParsedScore | None:
    """Return the score of the JSON objects in a reply, None if none has a key for a score.

    Raises ParseError if an object is broken, if they differ, if the score may be quoted, and if
    something after it may be another score.
    """
    if text.count("{", start) > _MOST_OBJECTS:
        raise ParseError("the reply holds too many objects", text)
    score: ParsedScore | None = None
    source: json_reply.JsonObject | None = None
    # The text before the score's object begins where the object before it ends.
    lead_start = start
    last_end = start
    for json_object in json_reply.objects(text, start):
        if json_object.broken:
            raise ParseError(_BROKEN_OBJECT, text)
        members = json_object.members
        another = score_in_object(text, members, grammar, lone=lone, tolerant=True)
        if another is not None:
            if score is not None and score.label != another.label:
                raise ParseError(_DIFFERENT_SCORES, text)
            score = another
            source = json_object
            lead_start = last_end
        last_end = json_object.end
    if score is None or source is None:
        return None
    lead = _FENCE_BEFORE.sub("", text[lead_start : source.start])
    text_before = lead.strip(" \t\r\n`")
    if not is_whole_reply(text, start, source):
        _check_own(text, lead_start, source, score.end, judged)
        _check_no_other_score(text, text_before, source, score, grammar)
    reason = score.reason
    if not reason and not lone:
        reason = text_before
    return replace(score, reason=reason or None)


def _check_no_other_score(
    text: str,
    text_before: str,
    source: json_reply.JsonObject,
    score: ParsedScore,
    grammar: Grammar,
) -> None:
    """Raise ParseError if the text before the object, or after it, may give another score."""
    for candidate in prose.candidates(fold(text_before[-_REASON:]), grammar.prose):
        if grammar.prose_spellings.label(candidate.written) != score.label:
            raise ParseError(
                "the reply has one score in its JSON object and another before it", text
            )
    if _may_give_score(text[source.end :], grammar.spellings):
        raise ParseError("what follows the JSON object may be another score", text)


def _may_give_score(after: str, spellings: LabelIndex) -> bool:
    """Return whether the text after an object names a number or label, or takes a score back."""
    after = fold(after).casefold()
    words = re.findall(r"[0-9]|\w+", after)
    if any(word.isdigit() or spellings.label(word) for word in words):
        return True
    # Korean, Japanese and Chinese labels may be part of a longer run of letters.
    names = (*spellings.labels, *spellings.words)
    other_scripts = [name for name in names if not name.isascii()]
    return any(name in after for name in other_scripts) or prose.takes_back(after)


def is_whole_reply(text: str, start: int, json_object: json_reply.JsonObject) -> bool:
    """Return whether a reply is an object and nothing else but white space or a fence."""
    opening = OBJECT.match(text, start)
    if opening is None or opening.end() != json_object.start:
        return False
    return CLOSED.match(text, json_object.end) is not None


def _check_own(
    text: str,
    lead_start: int,
    json_object: json_reply.JsonObject,
    end: int,
    judged: str,
) -> None:
    """Raise ParseError if an object may be a quotation, or is quoted, or is part of a sentence.

    `end` is the end of the value that counts.
    """
    text_before = text[lead_start : json_object.start]
    if is_quoted(text_before, text_before):
        raise ParseError(QUOTED, text)
    leads_up = _LEADS_UP.search(text_before[-_LONGEST_LEAD:])
    is_introduced = not text_before.strip() or leads_up
    if not is_introduced or not _ENDS_LINE.match(text, json_object.end):
        raise ParseError("the JSON object stands within a sentence", text)
    inside = text[json_object.start : end]
    # `"score": 4` of `{"reason": "clear", "score": 4`
    *_, key_and_value = re.split("[{,]", inside)
    if _letters(key_and_value) in _letters(judged):
        raise ParseError(_SAME_SCORE_IN_TEXT, text)


def _letters(text: str) -> str:
    """Return a text as keys and values are compared: `"score": 4` and `Score:4` are `score:4`."""
    return re.sub(r"[^\w:.]+", "", fold(text).casefold())


def spans(
    text: str,
    names: Collection[str],
    judged: str | None,
    scales: Collection[Scale] = (),
) -> tuple[dict[str, tuple[int, int]], Reading]:
    """Return the spans of the values of these keys in a reply that is one JSON object.

    Repeated keys are left out. With the `judged` texts, the object may be nearly JSON, have its
    keys in another case, follow other text, or be the only value of another. Instead of it, there
    may be a numbered list with an answer for each key: "1. yes\\n2. no". With the `scales` of
    the values, too, text without any number or label of them may follow. Raises ParseError for any
    other reply.
    """
    start = reply_start(text)
    json_objects = json_reply.objects(text, start)
    if not json_objects and judged is not None:
        return _numbered_spans(text, start, names), "prose"
    name_by_key = _names_by_key(names)
    if len(json_objects) == 1:
        (json_object,) = json_objects
        has_exact_keys = _has_exact_keys(json_object, names, name_by_key)
        is_whole = is_whole_reply(text, start, json_object)
        if json_object.strict and has_exact_keys and is_whole:
            return _member_spans(json_object, name_by_key), "strict"
    is_broken = any(json_object.broken for json_object in json_objects)
    if judged is None or is_broken:
        raise ParseError(_NOT_ONE_OBJECT, text)
    span_by_name: dict[str, tuple[int, int]] = {}
    lead_start = start
    for json_object in json_objects:
        object_spans = _member_spans(json_object, name_by_key)
        ends_reply = _ends_reply(text[json_object.end :], scales)
        if object_spans and (span_by_name or not ends_reply):
            raise ParseError(f"{_NOT_ONE_OBJECT}, or something follows it", text)
        if not is_whole_reply(text, start, json_object):
            for _, end in object_spans.values():
                _check_own(text, lead_start, json_object, end, judged)
        span_by_name |= object_spans
        lead_start = json_object.end
    return span_by_name, "prose"


def _numbered_spans(
    text: str, start: int, names: Collection[str]
) -> dict[str, tuple[int, int]]:
    """Return the spans of the answers of a numbered list, one for each name in their order.

    Raises ParseError for any other reply.
    """
    lines = [line for line in _LINE.finditer(text, start) if line[0].strip()]
    span_by_name: dict[str, tuple[int, int]] = {}
    if len(lines) == len(names):
        for number, (name, line) in enumerate(zip(names, lines, strict=True), 1):
            answer = _NUMBERED_ANSWER.fullmatch(text, line.start(), line.end())
            if answer and answer["key"] in (str(number), name):
                span_by_name[name] = answer.span("answer")
    if len(span_by_name) < len(names):
        raise ParseError(_NOT_ONE_OBJECT, text)
    return span_by_name


def _has_exact_keys(
    json_object: json_reply.JsonObject,
    names: Collection[str],
    name_by_key: Mapping[str, str],
) -> bool:
    """Return whether no other key of an object is one of the names in another case."""
    other_keys = {member.key for member in json_object.members}.difference(names)
    return name_by_key.keys().isdisjoint(key.casefold() for key in other_keys)


def _ends_reply(after: str, scales: Collection[Scale]) -> bool:
    """Return whether nothing follows an object, or nothing that may be a score on the scales."""
    if CLOSED.match(after) is not None:
        return True
    if not scales:
        return False
    return not any(_may_give_score(after, label_index(scale)) for scale in scales)


def _names_by_key(names: Collection[str]) -> dict[str, str]:
    """Return the names by the keys that may be written for them, as they stand or in lower case."""
    times = Counter(name.casefold() for name in names)
    name_by_key: dict[str, str] = {}
    for name in names:
        lowered = name.casefold()
        if times[lowered] == 1:
            name_by_key[lowered] = name
    return name_by_key | {name: name for name in names}


def _member_spans(
    json_object: json_reply.JsonObject,
    names: Mapping[str, str],
) -> dict[str, tuple[int, int]]:
    """Return the spans of the values of these names, of those that the object has once.

    `names` has each name by the key that may be written for it.
    """
    spans: dict[str, tuple[int, int]] = {}
    keys = [_written_key(member, names) for member in json_object.members]
    times = Counter(keys)
    for member, key in zip(json_object.members, keys, strict=True):
        if key in names and times[key] == 1:
            spans[names[key]] = (member.start, member.end)
    return spans


def _written_key(member: json_reply.Member, names: Mapping[str, str]) -> str:
    """Return the key of a member, in lower case unless it is a name as it stands."""
    return member.key if member.key in names else member.key.casefold()
