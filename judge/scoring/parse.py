"""Parse a reply: return the label of the scale that it gives, and its position in the text.

A text that is not plainly the score raises `ParseError` and is never guessed at. The score is not
just the first, smallest or only number of a text, but the one at the position that the reply kind
prescribes. Thinking before the reply (`<think>…</think>`) is not part of the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from judge.core.errors import ParseError
from judge.core.label_spellings import fold, is_number
from judge.core.messages import advice_on_thinking, option
from judge.core.records import Choice, ReplyKind, Scale
from judge.scoring import json_reply, prose
from judge.scoring.grammar import Grammar, grammar_of
from judge.scoring.json_scores import CLOSED, NO_KEY, score_in_object, score_in_objects
from judge.scoring.prose.deductions import has_deduction
from judge.scoring.prose.masks import mask_quotations
from judge.scoring.prose.refusals import may_refuse, refuses
from judge.scoring.quotes import QUOTE_LINE, FoldedText, fold_with_positions
from judge.scoring.thinking import (
    CHANNEL,
    CHANNEL_MARK,
    OBJECT,
    check_thinking,
    is_blank,
    reply_start,
)
from judge.scoring.tick_boxes import blank_unticked, has_boxes
from judge.scoring.written_score import (
    NotInForm,
    ParsedScore,
    check_unquoted,
    label_of_match,
    score_alone,
    score_of_match,
)

UNKEYED = "unkeyed"
"""The finish reason if a reply to several criteria lacks one of them."""
NEARLY_JSON = "nearly_json"
"""The finish reason of a criterion's part of a reply that is nearly one JSON object."""
UNFINISHED = {
    "length": "the reply was cut off at the token limit",
    "content_filter": "the provider's content filter stopped the reply",
    "refusal": "the judge refused to answer",
    "abort": "the server broke the reply off",
    UNKEYED: "the reply is not one JSON object that has this criterion as a key exactly once",
    NEARLY_JSON: "the reply is nearly a JSON object, which does not count in a strict run",
}
_ENDING_ON_TOPIC = 200
"""Characters up to the score that are compared with the judged texts."""
_STOP = re.compile(r"[.!?;。…)\]]")
_LINE_ENDS = '*_.!?。！？)]"”」』`'
"""The last character of a line before the score that is a whole sentence."""
_LETTER = re.compile(r"[^\W\d]")
_WORD = re.compile(r"[^\W\d]{2}")
_LINE = re.compile(r"[^\r\n]+")
# "1.", "2)": the number of an entry in a line of its own
_NUMBERED = re.compile(r"\s*+[0-9]+[.)]\s*+")
# "1" or "2." at the beginning of a line
_DIGIT_LINE = re.compile(r"^[ \t*#>-]*[0-9]+(?![0-9/])", re.MULTILINE)
# ".\nThe text" after the number of an entry
_ENTRY = re.compile(r"[ \t*]*[.)][ \t*]*\n\s*\S")
# "```json" around all of a reply
_OPEN_FENCE = re.compile(r"\s*+```\w*+")
# "```text" before the last line
_FENCE_BEFORE = re.compile(r"```\w*+\s*+\Z")
# "<|im_end|>", "</s>"
_LAST_MARKS = re.compile(
    r"(?<!\s)\s*+(?:(?:<\|\w+\|>|</s>|<eos>|<end_of_turn>)\s*+)*+\Z"
)
# Where an ending may begin. Its pattern says the same, but would be tried at every character.
_START = re.compile(r"""^|(?<=[\n.!?;。)\[\]"'”’“»›」』【〔])|(?=[〈<])""")
# Where a name in a box may stand: after a sentence, or in a line of its own, but not in "It ends
# with [RESULT] 4".
_BOXED_APART = re.compile(r"""(?:\A|[\n.!?;。)\]】*_"”’])[\s\[【〔〈<*_#>-]*\Z""")
# "4", "four", "★": without any of these, words give no score on a scale of numbers
_NUMBER_WORD = re.compile(
    r"[\d★⭐🌟一二三四五六七八九十]"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|hundred)\b",
    re.IGNORECASE,
)
# "<|im_start|>user\nThanks": a model that also writes the user's next message. At the end of a
# reply the mark alone is a mark of the end.
_NEXT_TURN = re.compile(
    r"(?:<\|(?:(?:im_start|start_header_id|start)\|>\s*)?user\b|<start_of_turn>user)"
    r"(?:\|>)?(?:<\|\w+\|>)?\s*+[^\s<|]"
)
# The prompt may have named the line in another language, such as 点数: N.
_NO_ENDING = (
    "the reply does not end with the line for the score that the prompt asks for"
)


def reply_text(choice: Choice) -> str:
    """Return the text of a reply without thinking and surrounding white space.

    Raises ParseError for a cut, filtered, refused or empty reply, and for one that ended inside its
    thinking.
    """
    _check_end(choice)
    return choice.text[reply_start(choice.text) :].strip()


def join_replies(choices: Iterable[Choice]) -> str:
    """Return several replies as one JSON list; one that was broken off has its finish reason."""
    entries: list[str | list[str]] = []
    for choice in choices:
        if choice.finish_reason in UNFINISHED:
            entries.append([choice.text, choice.finish_reason])
        else:
            entries.append(choice.text)
    return json.dumps(entries, ensure_ascii=False)


def split_replies(raw: str) -> list[Choice]:
    """Return the replies that `join_replies` wrote."""
    choices: list[Choice] = []
    for entry in json.loads(raw):
        if isinstance(entry, str):
            choices.append(Choice(entry))
        else:
            text, finish_reason = entry
            choices.append(Choice(text, finish_reason))
    return choices


def read(
    choice: Choice,
    reply: ReplyKind,
    scale: Scale,
    title: str = "",
    judged: str | None = None,
    *,
    strict: bool = False,
    cite: bool = False,
) -> ParsedScore:
    """Return the score of a reply.

    Raises ParseError for a cut, filtered, refused or empty reply, and like `find`.
    """
    if choice.finish_reason == NEARLY_JSON and judged is not None and not strict:
        score = find(choice.text, reply, scale, title, judged)
        return replace(score, reading="prose")
    _check_end(choice)
    return find(choice.text, reply, scale, title, judged, strict=strict, cite=cite)


def _check_end(choice: Choice) -> None:
    trouble = UNFINISHED.get(choice.finish_reason)
    if choice.finish_reason == "length":
        trouble = _cut_off(choice.text)
    if trouble:
        raise ParseError(trouble, choice.text)


def _cut_off(text: str) -> str:
    """Say that a reply was cut off, and what to change."""
    # An empty reply used up its limit on reasoning tokens that the server hides.
    is_thinking = not text
    if not is_blank(text):
        try:
            reply_start(text)
        except ParseError:
            is_thinking = True
    if is_thinking:
        return f"the reply reached the token limit inside its thinking; {advice_on_thinking()}"
    trouble = UNFINISHED["length"]
    token_option = option("max_tokens")
    return f"{trouble}; allow more with {token_option}"


def find(
    text: str,
    reply: ReplyKind,
    scale: Scale,
    title: str = "",
    judged: str | None = None,
    *,
    strict: bool = False,
    cite: bool = False,
) -> ParsedScore:
    """Return the score of a reply's text.

    `score`: the whole reply is the score. `score_then_reason`: the first line that is not blank is
    the score. `reason_then_score`: the reply ends with the form `Score: N`. A reply that is one
    JSON object has the score in its key "score" and the reason in "reason"; if no reason was
    requested, it may hold no other number. Beside a reason, nothing inside quotation marks counts.
    Around the score, marks (`**4**`), a unit (`4점`), the scale (`4/5`, `5点満点中4点`), a verb
    (`4点です`) and a name (`Coherence: 4`, `Score (1-5): 4`) are allowed, and in a pair the word for
    a text (`文章A`). The digits may be of any script; 0 to 10 may be words in English, Chinese,
    Japanese or Korean ("four", "四", "네 점").

    If there is nothing in the requested form, the score may be in another form or in prose ("so it
    gets a 4."), whatever the reply kind: see `prose`. Not with `strict`, nor if the `judged` texts
    are not known.

    A name before the colon is the criterion's `title`, a common word for a score, or both ("Final
    score", "관련성 점수"). If the title is unknown, it may be any one word that is not a label of the
    scale: a bare "Relevance: 4" is read, "I cannot rate: 4" is not.

    Thinking at the start is skipped; positions still count from the start of the text. A score that
    the reply repeats from the `judged` texts, joined by newlines, does not count.

    With `cite`, a line `Quote: …` or the key "quote" has a quotation, in which nothing counts.

    Raises ParseError, and nothing else, if there is no such score or it is off the scale.
    """
    start = reply_start(text)
    if judged and CHANNEL.match(text) and CHANNEL_MARK.search(judged):
        # The judge may have copied the channel mark from the text, and a score after it.
        raise ParseError("judge cannot determine where the reply's thinking ends", text)
    if "<" in text and _NEXT_TURN.search(text, start):
        raise ParseError("the reply goes on with a message of the user", text)
    grammar = grammar_of(scale, title, cite)
    is_object = OBJECT.match(text, start) is not None
    find_in: Callable[..., ParsedScore] = _find
    if cite and not is_object:
        find_in = _find_beside_quotes
    if has_boxes(text[start:]) and not is_object:
        find_in = partial(_find_among_options, find_in=find_in)
    score = find_in(text, start, reply, grammar, judged, strict=strict)
    _check_words(text, start, score, grammar, is_object=is_object)
    return score


def _check_words(
    text: str,
    start: int,
    score: ParsedScore,
    grammar: Grammar,
    *,
    is_object: bool,
) -> None:
    """Raise ParseError if the words of a reply contradict its score.

    They refuse to evaluate, or take points off the highest score.
    """
    words = score.reason or "" if is_object else text[start:]
    if may_refuse(words):
        if grammar.cite:
            words = QUOTE_LINE.sub("", words)
        if refuses(mask_quotations(fold(words))):
            problem = "the reply gives a score and refuses to evaluate the text"
            raise ParseError(problem, text)
    if score.label == grammar.spellings.ends[1]:
        reason = text[score.end :]
        if grammar.cite:
            reason = QUOTE_LINE.sub("", reason)
        reason = fold(reason)
        # The strings of an object are no quotations.
        if not is_object:
            reason = mask_quotations(reason)
        if has_deduction(reason):
            raise ParseError("the reply takes points off the highest score", text)


def _find_among_options(
    text: str,
    start: int,
    reply: ReplyKind,
    grammar: Grammar,
    judged: str | None,
    *,
    find_in: Callable[..., ParsedScore],
    strict: bool,
) -> ParsedScore:
    """Return the score of a reply that lists options and ticks one: "[ ] yes\\n[x] no".

    `find_in` reads what is left without the other options.
    """
    # A reason may have such a list, and the last line still be in the requested form.
    may_be_in_form = reply == "reason_then_score"
    if not may_be_in_form and (judged is None or strict):
        raise ParseError("the reply lists options instead of giving one", text)
    ticked = text[:start] + blank_unticked(text[start:])
    if is_blank(ticked[start:]):
        raise ParseError("the reply lists options and ticks none", text)
    try:
        score = find_in(ticked, start, reply, grammar, judged, strict=strict)
    except ParseError as error:
        error.raw = text
        raise
    return score if may_be_in_form else replace(score, reading="prose")


def _find_beside_quotes(
    text: str,
    start: int,
    reply: ReplyKind,
    grammar: Grammar,
    judged: str | None,
    *,
    strict: bool,
) -> ParsedScore:
    """Return the score of a reply with lines `Quote: …`, which are replaced by spaces.

    Spaces, because a score's position must still fit the tokens (decision 54).
    """
    quotes: list[str] = []

    def blank(line: re.Match[str]) -> str:
        quotes.append(line["quote"])
        return " " * len(line[0])

    without_quotes = QUOTE_LINE.sub(blank, text[start:])
    blanked = text[:start] + without_quotes
    if is_blank(blanked[start:]):
        raise ParseError("the reply is a quotation and nothing else", text)
    try:
        score = _find(blanked, start, reply, grammar, judged, strict=strict)
    except ParseError as error:
        error.raw = text
        raise
    if quotes and judged and reply == "reason_then_score" and score.reading == "strict":
        # The quoted line may be a part of what the reply repeats, so the original is checked, too.
        _check_echo(text, start, score, grammar, judged)
    quote = score.quote
    if not quote:
        quote = quotes[-1].strip() if quotes else None
    return replace(score, quote=quote)


def _find(
    text: str,
    start: int,
    reply: ReplyKind,
    grammar: Grammar,
    judged: str | None,
    *,
    strict: bool,
) -> ParsedScore:
    """Return the score of a reply. The part before `start` is thinking. Raises ParseError."""
    try:
        return _find_in_form(text, start, reply, grammar, judged)
    except ParseError as error:
        if judged is None or strict:
            raise
        digit_score = _score_as_digit(text, start, reply, grammar, judged)
        if digit_score is not None:
            return digit_score
        is_score_alone = reply == "score"
        object_score = score_in_objects(
            text,
            start,
            grammar,
            judged,
            lone=is_score_alone,
        )
        if object_score is not None:
            return replace(object_score, reading="prose")
        if not isinstance(error, NotInForm) or OBJECT.match(text, start):
            raise
        return _score_in_prose(text, start, grammar, judged, error=error, reply=reply)


def _find_in_form(
    text: str,
    start: int,
    reply: ReplyKind,
    grammar: Grammar,
    judged: str | None,
) -> ParsedScore:
    """Return the score in the requested form, not one of the judged texts. Raises ParseError."""
    score = _find_strictly(text, start, reply, grammar)
    if judged and not OBJECT.match(text, start):
        text_before = fold(text[start : score.start])
        through_score = text[start : score.end]
        if reply == "reason_then_score":
            _check_echo(text, start, score, grammar, judged)
        elif _LETTER.search(text_before) and prose.repeats(through_score, judged):
            # A bare number is no echo, whatever numbers the judged text has.
            _check_echo(text, start, score, grammar, judged)
        _check_no_other_score(text, start, score, grammar)
    return score


def _check_no_other_score(
    text: str, start: int, score: ParsedScore, grammar: Grammar
) -> None:
    """Raise ParseError if the words around a score in the requested form give another one.

    "\\boxed{5}. Score: 4", "I give it a 2.\\nScore: 4"
    """
    for words in (text[start : score.start], text[score.end :]):
        # Most reasons have no number, and reading sentences takes long.
        if not grammar.is_pair and not _NUMBER_WORD.search(words):
            continue
        folded = fold(words)
        for candidate in prose.candidates(folded, grammar.prose, words_may_open=False):
            if candidate.evidence not in ("named", "asserted"):
                continue
            if grammar.prose_spellings.label(candidate.written) != score.label:
                raise ParseError("two different scores", text)


def _score_as_digit(
    text: str,
    start: int,
    reply: ReplyKind,
    grammar: Grammar,
    judged: str,
) -> ParsedScore | None:
    """Return the score of a reply that gives 1 for yes or 0 for no, None for any other reply.

    The digit is in the requested form or alone, because in a sentence it may count something, and
    before one it may be the number of an entry: "1. It is clear."
    """
    if grammar.digits is None or len(_DIGIT_LINE.findall(text, start)) > 1:
        return None
    kinds: tuple[ReplyKind, ...] = (reply, "score")
    for kind in kinds:
        try:
            score = _find_in_form(text, start, kind, grammar.digits, judged)
        except ParseError:
            continue
        written = text[score.start : score.end]
        rest = text[score.end :]
        is_entry = _ENTRY.match(rest) is not None
        others = prose.candidates(fold(rest), grammar.prose)
        if is_entry or not is_number(fold(written)) or any(others):
            return None
        label = grammar.truth_of_digit(score.label)
        if _has_another_label(text, start, grammar, label):
            return None
        return replace(score, label=label, reading="prose")
    return None


def _has_another_label(text: str, start: int, grammar: Grammar, label: str) -> bool:
    """Return whether an object of the reply has another label: {"score": 0, "answer": "yes"}."""
    for json_object in json_reply.objects(text, start):
        for member in json_object.members:
            written = fold(text[member.start : member.end].strip('"'))
            if grammar.prose_spellings.label(written) not in (None, label):
                return True
    return False


def _check_echo(
    text: str, start: int, score: ParsedScore, grammar: Grammar, judged: str
) -> None:
    """Raise ParseError if a score is quoted from the judged text without quotation marks.

    That is likely if the words before it are the same. If the judged text only gives the same
    score, it counts only on a line of its own after a whole sentence, and without a fence around
    this line.
    """
    ending_start = max(start, score.start - _ENDING_ON_TOPIC)
    ending = text[ending_start : score.end]
    trouble = ParseError("the score is quoted from the judged text", text)
    if prose.repeats(ending, judged):
        raise trouble
    line_start = max(start, text.rfind("\n", 0, score.start) + 1)
    last_character = text[start:line_start].rstrip()[-1:]
    stops_before = _STOP.search(text, line_start, score.start)
    is_apart = not stops_before and last_character in _LINE_ENDS
    fence = _FENCE_BEFORE.search(text, start, line_start)
    if fence and not is_blank(text[start : fence.start()]):
        is_apart = False
    if not is_apart and prose.gives(judged, score.label, grammar.prose):
        raise trouble


def _find_strictly(
    text: str, start: int, reply: ReplyKind, grammar: Grammar
) -> ParsedScore:
    """Return the score in the requested form. Raises ParseError."""
    opening = OBJECT.match(text, start)
    if reply == "score":
        try:
            return score_alone(text, start, len(text), grammar)
        except ParseError:
            if not opening:
                raise
    if opening:
        return _score_of_object(text, opening.end(), reply, grammar)
    if reply == "score_then_reason":
        line = _first_line(text, start)
        score = score_alone(text, line.start(), line.end(), grammar, quoted=False)
        _check_only_score(text, line.end(), score, grammar)
        reason = text[line.end() :].strip()
        return replace(score, reason=reason or None)
    return _score_at_end(text, start, grammar)


def _score_of_object(
    text: str, opening: int, reply: ReplyKind, grammar: Grammar
) -> ParsedScore:
    """Return the score of a reply that is one JSON object, which opens at `opening`."""
    json_object = json_reply.read_object(text, opening)
    if not json_object.strict:
        raise ParseError("the reply begins like a JSON object but is not one", text)
    if not CLOSED.match(text, json_object.end):
        raise ParseError("something follows the JSON object", text)
    score = score_in_object(
        text,
        json_object.members,
        grammar,
        lone=reply == "score",
        tolerant=False,
    )
    if score is None:
        raise ParseError(NO_KEY, text)
    return score


def _check_only_score(
    text: str, start: int, score: ParsedScore, grammar: Grammar
) -> None:
    """Raise ParseError if the text after `start` takes the first line's score back.

    Or if one of its lines gives another score: it has the form "Score: 3", or is nothing but a
    score.
    """
    if prose.takes_back(fold(text[start:])):
        raise ParseError("the reply withdraws its score", text)
    for line in _LINE.finditer(text, start):
        if _NUMBERED.fullmatch(line[0]):
            continue
        try:
            another = score_alone(text, line.start(), line.end(), grammar, quoted=False)
        except ParseError:
            continue
        name = fold(text[line.start() : another.start])
        is_score = not _LETTER.search(name) or grammar.name.search(name)
        if another.label != score.label and is_score:
            raise ParseError("two different scores", text)


def _first_line(text: str, start: int) -> re.Match[str]:
    lines = _LINE.finditer(text, start)
    return next(line for line in lines if not is_blank(line[0]))


def _score_at_end(text: str, start: int, grammar: Grammar) -> ParsedScore:
    """Return the score of a reply that ends with the form `Score: N`."""
    whole = text.rstrip()
    fence = _OPEN_FENCE.match(whole, start)
    if fence and whole.endswith("```") and whole.count("```", start) == 2:
        # A fence around all of the reply quotes nothing.
        start = fence.end()
        whole = whole[:-3].rstrip()
    # The text is cut one character before the search begins, so that the rest of a line is not
    # taken for a whole line.
    cut = max(start, len(whole) - grammar.longest - 1)
    folded = fold_with_positions(whole[cut:], cut)
    is_cut = cut > start
    match = _first_ending(folded, grammar, skip=1 if is_cut else 0)
    if match is None:
        raise NotInForm(_NO_ENDING, text)
    text_before = text[start : folded.starts[match.start()]]
    check_unquoted(text_before, match, text)
    is_boxed = match.groupdict().get("box") is not None
    if is_boxed and not _BOXED_APART.search(text_before):
        raise NotInForm(_NO_ENDING, text)
    check_thinking(text_before, text)
    score = score_of_match(match, grammar, text, folded)
    closes_object = "}" in match.string[match.end("value") :]
    if closes_object and json_reply.objects(text, start):
        # The line may be the end of an inner object: {"score": 2, "details": {"score": 4}}
        outermost = score_in_objects(text, start, grammar, "", lone=False)
        if outermost is None or outermost.start != score.start:
            problem = "the score is not that of the JSON object, but of one inside it"
            raise ParseError(problem, text)
    reason = text_before.rstrip(" \t\r\n*_#>`\"'([{【〔-•").strip()
    return replace(score, reason=reason or None)


def _first_ending(
    folded: FoldedText, grammar: Grammar, *, skip: int
) -> re.Match[str] | None:
    """Return the earliest match of the ending that reaches to the end of the text."""
    for possible_start in _START.finditer(folded.text, skip):
        match = grammar.ending.match(folded.text, possible_start.start())
        if match is not None:
            return match
    return None


def _score_in_prose(
    text: str,
    start: int,
    grammar: Grammar,
    judged: str,
    *,
    error: NotInForm,
    reply: ReplyKind,
) -> ParsedScore:
    """Return the score of a reply that is not in the requested form. Raises ParseError."""
    if len(text) - start > prose.LONGEST:
        raise error
    whole = _LAST_MARKS.sub("", text)
    folded = fold_with_positions(whole[start:], start)
    words_may_open = reply != "reason_then_score"
    try:
        candidate = prose.find_score(
            folded.text,
            grammar.prose,
            judged,
            words_may_open=words_may_open,
        )
    except prose.NoScore:
        raise error from None
    except ParseError as why:
        raise ParseError(f"{error}; in prose: {why}", text, error.position) from why
    first = folded.starts[candidate.start]
    last = folded.ends[candidate.end - 1]
    label = label_of_match(
        candidate.match,
        grammar.prose_spellings,
        (first, last),
        text,
        grammar.expected,
    )
    check_thinking(text[start:first], text)
    text_before = folded.text[: candidate.start]
    beside = text_before + folded.text[candidate.end :]
    # Without any word beside it, the reply is the score alone, also if a reason was requested.
    reason = whole[start:].strip() if _WORD.search(beside) else None
    return ParsedScore(label, first, last, reason, "prose")
