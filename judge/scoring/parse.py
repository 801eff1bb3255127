"""Parse a reply: the label of the scale that it gives, and the label's place in the text.

A text that is not plainly the score raises `ParseError` and is never guessed at. The score is not just the first,
smallest or only number of a text, but the one in the place that the reply kind prescribes. Thinking before the reply
(`<think>…</think>`) is not part of the reply.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from judge.core.errors import ParseError
from judge.core.label_spellings import (
    DASHES,
    FULL_MARKS,
    UNITS,
    LabelIndex,
    fold,
    is_number,
    label_index,
    spelled_out,
)
from judge.core.messages import advice_on_thinking, option
from judge.core.records import Choice, Reading, ReplyKind, Scale
from judge.scoring import json_reply, prose
from judge.scoring.quotes import QUOTE_LINE, fold_with_positions, is_quoted
from judge.scoring.thinking import (
    CHANNEL,
    CHANNEL_MARK,
    OBJECT,
    check_thinking,
    is_blank,
    reply_start,
)


@dataclass(frozen=True, slots=True)
class Found:
    """A score in a reply: `text[start:end]` is the score as written, `label` its spelling in the scale.

    `reason` is the judge's reason, None if it gave none. `quote` is the sentence that it cites, if that was asked for.
    """

    label: str
    start: int
    end: int
    reason: str | None = None
    reading: Reading = "strict"
    quote: str | None = None


class NotInForm(ParseError):
    """The reply holds nothing in the requested form."""


UNKEYED = "unkeyed"
"""The finish reason if a reply to several criteria lacks one of them."""
NEARLY_JSON = "nearly_json"
"""The finish reason of a criterion's part of a reply that is not one JSON object, but plainly holds one."""
UNFINISHED = {
    "length": "the reply was cut off at the token limit",
    "content_filter": "the provider's content filter stopped the reply",
    "refusal": "the judge refused to answer",
    "abort": "the server broke the reply off",
    UNKEYED: "the reply is not one JSON object that has this criterion among its keys, once",
    NEARLY_JSON: "the reply is nearly a JSON object, which does not count with --strict",
}


def reply_text(choice: Choice) -> str:
    """Return the text of a reply without thinking and surrounding white space.

    Raises ParseError for a cut, filtered, refused or empty reply, and for one that ended inside its thinking.
    """
    _check_end(choice)
    return choice.text[reply_start(choice.text) :].strip()


def join_replies(choices: Iterable[Choice]) -> str:
    """Return several replies as one JSON list; one that did not end by itself is there with its finish reason."""
    replies = [
        [c.text, c.finish_reason] if c.finish_reason in UNFINISHED else c.text for c in choices
    ]
    return json.dumps(replies, ensure_ascii=False)


def split_replies(raw: str) -> list[Choice]:
    """Return the replies that `join_replies` wrote."""
    return [
        Choice(reply) if isinstance(reply, str) else Choice(*reply) for reply in json.loads(raw)
    ]


def read(
    choice: Choice,
    reply: ReplyKind,
    scale: Scale,
    title: str = "",
    judged: str | None = None,
    *,
    strict: bool = False,
    cite: bool = False,
) -> Found:
    """Return the score of a reply. Raises ParseError for a cut, filtered, refused or empty reply, and like `find`."""
    if choice.finish_reason == NEARLY_JSON and judged is not None and not strict:
        return replace(find(choice.text, reply, scale, title, judged), reading="prose")
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
    is_thinking = not text  # the whole limit went into tokens that the server hides
    if not is_blank(text):
        try:
            reply_start(text)
        except ParseError:
            is_thinking = True
    if is_thinking:
        return f"the reply reached the token limit inside its thinking; {advice_on_thinking()}"
    return f"{UNFINISHED['length']}; allow more with {option('max_tokens')}"


def find(
    text: str,
    reply: ReplyKind,
    scale: Scale,
    title: str = "",
    judged: str | None = None,
    *,
    strict: bool = False,
    cite: bool = False,
) -> Found:
    """Return the score of a reply's text.

    `score`: the whole reply is the score. `score_then_reason`: the first line that is not blank is the score.
    `reason_then_score`: the reply ends with the form `Score: N`. A reply that is one JSON object has the score in its
    key "score" and the reason in "reason"; if no reason was requested, it may hold no other number. Beside a reason,
    nothing inside quotation marks counts. Around the score, marks (`**4**`), a unit (`4점`), the scale (`4/5`,
    `5点満点中4点`), a verb (`4点です`) and a name (`Coherence: 4`, `Score (1-5): 4`) are allowed, and in a pair the
    word for a text (`文章A`). The digits may be of any script; 0 to 10 may be words in English, Chinese, Japanese or
    Korean ("four", "四", "네 점").

    If there is nothing in the requested form, the score may be in another form or in prose ("so it gets a 4."),
    whatever the reply kind: see `prose`. Not with `strict`, nor if the `judged` texts are not known.

    A name before the colon is the criterion's `title`, a common word for a score, or both ("Final score",
    "관련성 점수"). Only if the title is unknown may it be any one word that is not a label of the scale: so a bare
    "Relevance: 4" is read, while "I cannot rate: 4" is not.

    Thinking at the start is skipped; positions still count from the start of the text. A score that the reply repeats
    from the `judged` texts, joined by newlines, does not count.

    With `cite`, a line `Quote: …` or the key "quote" has a quotation, in which nothing counts.

    Raises ParseError, and nothing else, if there is no such score or it is off the scale.
    """
    start = reply_start(text)
    if judged and CHANNEL.match(text) and CHANNEL_MARK.search(judged):
        raise ParseError("it cannot be told where the reply's thinking ends", text)
    grammar = _grammar(scale, title, cite)
    if not cite or OBJECT.match(text, start):
        return _find(text, start, reply, grammar, judged, strict=strict)
    quotes: list[str] = []

    def blank(line: re.Match[str]) -> str:
        quotes.append(line["quote"])
        return " " * len(line[0])

    rest = text[:start] + QUOTE_LINE.sub(blank, text[start:])
    if is_blank(rest[start:]):
        raise ParseError("the reply is a quotation and nothing else", text)
    try:
        score = _find(rest, start, reply, grammar, judged, strict=strict)
    except ParseError as error:
        error.raw = text
        raise
    if quotes and judged and reply == "reason_then_score" and score.reading == "strict":
        _check_echo(
            text, start, score, grammar, judged
        )  # the quoted line may be a part of what is repeated
    return replace(score, quote=score.quote or (quotes[-1].strip() if quotes else None))


def _find(
    text: str, start: int, reply: ReplyKind, grammar: _Grammar, judged: str | None, *, strict: bool
) -> Found:
    """Return the score of a reply, of which the part before `start` is thinking. Raises ParseError."""
    is_object = OBJECT.match(text, start) is not None
    try:
        score = _find_strictly(text, start, reply, grammar)
        if judged and not is_object:
            named = re.search(r"[^\W\d]", fold(text[start : score.start]))
            if reply == "reason_then_score" or (
                named and prose.repeats(text[start : score.end], judged)
            ):
                _check_echo(text, start, score, grammar, judged)
        return score
    except ParseError as error:
        if judged is None or strict:
            raise
        if found := _score_in_objects(text, start, grammar, judged, lone=reply == "score"):
            return replace(found, reading="prose")
        if not isinstance(error, NotInForm) or is_object:
            raise
        return _score_in_prose(text, start, grammar, judged, error=error, reply=reply)


def _check_echo(text: str, start: int, score: Found, grammar: _Grammar, judged: str) -> None:
    """Raise ParseError if a score is quoted from the judged text without quotation marks.

    That is likely if the words before it are the same. If the judged text only gives the same score, it counts only on
    a line of its own after a whole sentence.
    """
    line = max(start, text.rfind("\n", 0, score.start) + 1)
    apart = (
        not _STOP.search(text, line, score.start)
        and text[start:line].rstrip()[-1:] in '*_.!?。！？)]"”」』`'
    )
    ending = text[max(start, score.start - 200) : score.end]
    if prose.repeats(ending, judged) or not (
        apart or not prose.gives(judged, score.label, grammar.prose)
    ):
        raise ParseError("the score is quoted from the judged text", text)


def _find_strictly(text: str, start: int, reply: ReplyKind, grammar: _Grammar) -> Found:
    """Return the score in the form that was asked for. Raises ParseError."""
    if reply == "score":
        try:
            return _score_alone(text, start, len(text), grammar)
        except ParseError:
            if not OBJECT.match(text, start):
                raise
    if opening := OBJECT.match(text, start):
        item = json_reply.read_object(text, opening.end())
        if not item.strict:
            raise ParseError("the reply begins like a JSON object but is not one", text)
        if not _CLOSED.match(text, item.end):
            raise ParseError("something follows the JSON object", text)
        if score := _score_in_object(
            text, item.members, grammar, lone=reply == "score", tolerant=False
        ):
            return score
        raise ParseError(_NO_KEY, text)
    if reply == "score_then_reason":
        line = _first_line(text, start)
        score = _score_alone(text, line.start(), line.end(), grammar, quoted=False)
        return Found(score.label, score.start, score.end, text[line.end() :].strip() or None)
    whole = text.rstrip()
    if (
        (fence := _OPEN_FENCE.match(whole, start))
        and whole.endswith("```")
        and whole.count("```", start) == 2
    ):
        start, whole = (
            fence.end(),
            whole[:-3].rstrip(),
        )  # a fence around all of the reply quotes nothing
    # What is cut off ends one character before the place searched, so that a line's rest is not taken for a line.
    cut = max(start, len(whole) - grammar.longest - 1)
    folded, starts, ends = fold_with_positions(whole[cut:], cut)
    places = (found.start() for found in _START.finditer(folded, int(cut > start)))
    match = next(filter(None, (grammar.ending.match(folded, at) for at in places)), None)
    if match is None:
        raise NotInForm("the reply does not end with a line of the form Score: N", text)
    before = text[start : starts[match.start()]]
    _check_unquoted(before, match, text)
    if match.groupdict().get("box") is not None and not _BOXED_APART.search(before):
        raise NotInForm("the reply does not end with a line of the form Score: N", text)
    check_thinking(before, text)
    score = _score_of_match(match, grammar, text, starts, ends)
    if "}" in match.string[match.end("value") :] and json_reply.objects(text, start):
        outermost = _score_in_objects(text, start, grammar, "", lone=False)
        if outermost is None or outermost.start != score.start:
            raise ParseError("the score is not that of the JSON object, but of one inside it", text)
    reason = before.rstrip(" \t\r\n*_#>`\"'([{【〔-•")
    return replace(score, reason=reason.strip() or None)


def _first_line(text: str, start: int) -> re.Match[str]:
    return next(line for line in _LINE.finditer(text, start) if not is_blank(line[0]))


# The grammar. All of it is matched against folded text: digits, colons and slashes are ASCII there. Runs of marks and
# spaces are possessive, so that no reply, however odd, takes more than linear time.
_MARK = r"""[\s*_`"'“”‘’「」『』()\[\]{}【】〔〕]*+"""
_LAST_MARKS = re.compile(r"(?<!\s)\s*+(?:(?:<\|\w+\|>|</s>|<eos>|<end_of_turn>)\s*+)*+\Z")
_CLOSE = r"""[\s*_`"'“”‘’「」『』()\[\]{}【】〔〕.,;。、!]*+(?:(?:<\|\w+\|>|</s>|<eos>|<end_of_turn>)\s*+)*+\Z"""
_FENCE = rf"(?:(?<=```)\w++{_MARK})?"
_BULLET = r"(?:(?:[-•+–>]|\#{1,6})\s++)?"
_NUMBER = r"[0-9]++(?:\.[0-9]++)?"
_UNIT = rf"[{UNITS}]|points?|pts?|stars?|★|⭐"
_PERCENT = "%|percent|パーセント|퍼센트"
_FULL = r"(?:満点|满分|滿分|만점|段階(?:評価)?)"
_IS = r"(?::|は|[은는]|[为為是])"
_COPULA = rf"(?:{_MARK}(?:です|だ|である|と(?:します|なります)|입니다|이(?:다|에요)|예요|임))?"
# In pairs, what the prompts and judges call the text before its letter.
_TEXT = (
    r"(?:(?:text|summary|response|output|answer|文章|テキスト|要約|回答|글|텍스트|요약|응답|답변|文本|摘要|回复|回覆|答案)"
    r"\s*+)?"
)
# _SCORE may also open a sentence of its own within a line ("… none is missing. Score: 2."), the wider _NOUN only a
# line. In the middle of a sentence it is another score: "Coherence score: 5", "a perfect text has a score: 5".
_SENTENCE = r"""(?:(?<=[.!?;。)\]])|(?<=[.!?。]["'”’“»›」』]))\s*+[*_`]*+"""
_SCORE = (
    r"(?:score|rating|점수|[총평별]점|평가|スコア|点数|[得評]点|(?:総合?|合計)点|評価[点値]?|採点"
    r"|得分|[总總]分|评分|評分|分数|分數|[打给給]分|成绩|成績|评价|評價)"
)
_NOUN = (
    rf"(?:{_SCORE}|grade|mark|result|verdict|answer|label|judge?ment|evaluation|assessment"
    r"|등급|결과|합계|정?답|답변|評定|判定|結果|回答|解答|答え|评级|评定|评估|等级|结果|答案|結論|结论)"
)
_WHICH = (
    r"(?:(?:the|my|your|final|overall|total|최종|종합|총|평가|最終|総合?|評価|採点"
    r"|最终|综合|总|评估|最後|綜合|總)\s*+)*"
)
# Where an ending may begin. Its pattern says the same, but would be tried at every character.
_START = re.compile(r"""^|(?<=[\n.!?;。)\[\]"'”’“»›」』【〔])|(?=[〈<])""")
_ONE_WORD = r"[^\W\d_](?:[^\W\d_]|['’-]){1,39}"
_CLOSED = re.compile(_CLOSE)
# Where a name in a box may stand: after a sentence, or in a line of its own, but not in "It ends with [RESULT] 4".
_BOXED_APART = re.compile(r"""(?:\A|[\n.!?;。)\]】*_"”’])[\s\[【〔〈<*_#>-]*\Z""")
_OPEN_FENCE = re.compile(r"\s*+```\w*+")
_QUOTE = re.compile("[`\"'“”‘’「」『』]")
_QUOTED = "the score is inside quotation marks"
_SINGLE_QUOTES = re.compile(r"(?<!\w)['‘](?!(?:s|t|re|ll|d|ve|m)\b)"), re.compile(r"['’](?!\w)")
"""Where one opens and where one closes, apostrophes aside."""
_CLOSES_QUOTE = re.compile(r"""[점点分]?(?:/\d++)?[^\w\s"'”’」』`]*+["'”’」』`]""")
_STOP = re.compile(r"[.!?;。…)\]]")
_MEMBER = re.compile(r'(?:\s*```\w*)?[\s{]*"[^"]*"\s*:\s*"?')
_LINE = re.compile(r"[^\r\n]+")
_NO_KEY = 'the JSON object does not have one key "score" with one value'
_LEADS_UP = re.compile(r"(?:[\n:：.。!！?？(\[`]|```\w+)[ \t]*\Z")
_ENDS_LINE = re.compile(r"[ \t)\].,;。`]*+(?:\n|\Z)")
_MOSTOBJECTS = 1_000
_REASON = 1_500
"""Most characters before an object in which another score is looked for."""
_LONGEST = 120
"""Most characters of a score with everything around it, besides title and label."""


@dataclass(frozen=True, slots=True)
class _Grammar:
    names: LabelIndex
    name: re.Pattern[str]
    alone: re.Pattern[str]
    ending: re.Pattern[str]
    plain: LabelIndex
    truth: Mapping[str, str]
    plain_score: str
    title: str
    pair: bool
    longest: int
    expected: str
    cite: bool

    @property
    def prose(self) -> prose.Patterns:
        """The patterns of plain replies, which take long to compile and are seldom needed."""
        words = (
            not self.names.numbers
            and not self.pair
            and min(map(len, self.names.labels), default=0) > 1
        )
        return _prose_patterns(self.plain_score, self.title, self.plain, self.pair, words)


@lru_cache(maxsize=1_024)
def _prose_patterns(
    score: str, title: str, names: LabelIndex, pair: bool, words: bool
) -> prose.Patterns:
    return prose.patterns(score, _MARK, title, names, pair=pair, words=words)


@lru_cache(maxsize=1_024)
def _grammar(scale: Scale, title: str, cite: bool) -> _Grammar:
    index = label_index(scale)
    # A known name is a word for a score, the title, or both.
    name = f"{_WHICH}{_NOUN}"
    words = re.findall(r"[^\W_]+", fold(title))
    if words:
        titled = r"[\W_]{1,4}".join(map(re.escape, words))
        name = rf"{_WHICH}(?:(?:{titled}[의の的]?\s*+)?{_NOUN}(?:\s++(?:for|of)\s++{titled})?|{titled})"
    pair = {"A", "B"} <= set(scale.labels) and 0 <= scale.low < scale.high <= 1
    score = _score_pattern(index, pair=pair)
    unit = _unit_pattern(index)
    top_of_name = _top_pattern(index, "name")
    tail = rf"{_MARK}{score}{_COPULA}{_CLOSE}"
    end = rf"[{DASHES}-]?{_NUMBER}"
    ends = rf"(?:{_MARK}(?:(?P<low>{end})\s*+(?:[-–~〜]|to|から|[至到])\s*+(?P<high>{end}){unit}|{top_of_name}))?{_MARK}"
    bracket = rf"\s*+[\]】〕〉>]{_MARK}{_IS}?"
    line = rf"(?:^|(?<=\n)){_MARK}{_FENCE}{_BULLET}{_MARK}"
    sentence = rf"{_SENTENCE}{_WHICH}(?:{_SCORE}|{_NOUN}(?=[\s*_]*+:[\s*_]*+\[\[))"
    plain = spelled_out(scale)
    return _Grammar(
        names=index,
        plain=plain,
        truth={}
        if pair or sorted(scale.values) != [0, 1]
        else {"false": _at(scale, 0), "true": _at(scale, 1)},
        name=_compiled(name),
        alone=_compiled(
            rf"{_MARK}{_FENCE}(?:{_BULLET}{_MARK}(?:(?P<word>{'(?!)' if title else _ONE_WORD})|[〈<]?{name})"
            rf"(?:{bracket}|{ends}(?(word):|{_IS})))?{tail}"
        ),
        ending=_compiled(
            rf"(?:(?:(?P<line>{line})|(?P<box>(?<=[\[【〔])|[〈<])){name}|{sentence})"
            rf"(?(box){bracket}|{ends}(?(line){_IS}|:)){tail}"
        ),
        plain_score=_score_pattern(plain, pair=pair, plain=True),
        title=r"[\W_]{1,4}".join(map(re.escape, words)) or "(?!)",
        pair=pair,
        longest=_LONGEST + 2 * len(title) + max(map(len, scale.labels), default=0),
        expected=", ".join(scale.labels)
        if len(scale.labels) <= 12
        else f"{scale.labels[0]} … {scale.labels[-1]}",
        cite=cite,
    )


def _at(scale: Scale, value: float) -> str:
    return scale.labels[scale.values.index(value)]


def _stated_pattern(index: LabelIndex, *, plain: bool = False) -> str:
    """Return the pattern of a number or of a word for one; `plain`: also ".75" and "4,0"."""
    # A comma may be a decimal point if the scale has decimals, but not one that parts thousands.
    if plain:
        number = r"(?:[0-9]++(?:\.[0-9]++|,[0-9]{1,2}(?![0-9]))?|(?<![0-9])\.[0-9]++)"
    elif any("." in text for text in index.numbers):
        number = r"[0-9]++(?:\.[0-9]++|,[0-9]{1,2})?"
    else:
        number = _NUMBER
    words = sorted(map(re.escape, index.words), key=len, reverse=True)
    return "|".join([number, *words])


def _unit_pattern(index: LabelIndex) -> str:
    percent = f"|{_PERCENT}" if index.ends[1] == "100" else ""
    return rf"(?:\s*+(?:{_UNIT}{percent}))?"


def _top_pattern(index: LabelIndex, place: str, *, plain: bool = False) -> str:
    """Return the pattern of a scale's top, after a value or a name."""
    stated = (
        _top_words(index) if plain else rf"(?:{_stated_pattern(index)}|{_counted_pattern(index)})"
    )
    unit = _unit_pattern(index)
    return (
        rf"(?:(?:/|out\s++of|{_FULL}{_IS}?){_MARK}(?P<out_of_{place}>{stated}){unit}"
        rf"|(?P<full_{place}>{stated}){unit}\s*+{_FULL})"
    )


def _top_words(index: LabelIndex) -> str:
    """Return the pattern of a number or of a word for the greatest of the scale."""
    words = [
        word
        for names in (index.words, index.counted)
        for word, label in names.items()
        if label == index.ends[1]
    ]
    spelled = "|".join(
        re.escape(word) for word in words if word not in FULL_MARKS and word[0] not in "★⭐🌟"
    )
    return rf"(?:{_NUMBER}|{spelled or '(?!)'})"


def _counted_pattern(index: LabelIndex) -> str:
    return "|".join([*sorted(index.counted, key=len, reverse=True), "(?!)"])


def _score_pattern(index: LabelIndex, *, pair: bool, plain: bool = False) -> str:
    """Return the pattern of a score with its unit, and the scale's top with its own."""
    labels = "|".join(
        re.escape(text)
        for label in index.labels.values()
        if not is_number(text := fold(label).strip())
    )
    counted = _counted_pattern(index)
    stated = _stated_pattern(index, plain=plain)
    counting = rf"[{UNITS}]|개" if plain else f"[{UNITS}]"
    count = rf"{stated}|(?:{counted})(?=\s*+(?:{counting}))"
    stated = _top_words(index) if plain else rf"(?:{stated}|{counted})"
    plus = "+" if index.below_zero else ""
    value = f"[{plus}{DASHES}-]?{count}" + (
        f"|(?{'i' if index.loose else '-i'}:{labels})" if labels else ""
    )
    unit = _unit_pattern(index)
    before = (
        rf"(?:(?:(?P<out_of>{stated}){unit}\s*+(?:{_FULL}\s*+(?:中の?|중|[で에,])?|中の?|중(?:에서?)?)"
        rf"|{_FULL}(?P<full>{stated}){unit},?)\s*+得?\s*+)?"
    )
    text = _TEXT if pair else ""
    if plain:  # 별 네 개, 星4つ, 4つ星, 四颗星
        star = r"(?P<star>(?:별점|별|星)\s*+)?"
        unit = rf"(?(star)\s*+(?:개|つ|점|個)?|{unit}(?:\s*+(?:つ星|[颗顆]?星))?)"
    else:
        star = ""
    return rf"{before}{text}{star}(?P<value>{value}){unit}(?:{_MARK}{_top_pattern(index, 'value', plain=plain)})?"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# The three places.


def _score_alone(
    text: str, start: int, end: int, grammar: _Grammar, *, quoted: bool = True
) -> Found:
    """Return the score in `text[start:end]`, which must hold nothing else; it may be `quoted`."""
    piece = text[start:end]
    bare = piece.strip()
    start += piece.find(bare)
    if len(bare) > grammar.longest:
        trouble = (
            f"not a score alone but {len(bare)} characters; expected one of {grammar.expected}"
        )
        raise NotInForm(trouble, text, start)
    folded, starts, ends = fold_with_positions(bare, start)
    core = folded.strip()
    if label := grammar.names.labels.get(core) or grammar.names.labels.get(grammar.names.key(core)):
        first = folded.find(core)
        return Found(label, starts[first], ends[first + len(core) - 1])
    match = grammar.alone.match(folded)
    if match is None or grammar.names.label(match.groupdict().get("word") or ""):
        raise NotInForm(f"not a score alone; expected one of {grammar.expected}", text, start)
    if not quoted:
        _check_unquoted("", match, text)
    elif _quotes_name(match, grammar):
        raise ParseError(_QUOTED, text)
    return _score_of_match(match, grammar, text, starts, ends)


def _score_in_object(
    text: str,
    members: Sequence[json_reply.Member],
    grammar: _Grammar,
    *,
    lone: bool,
    tolerant: bool,
) -> Found | None:
    """Return the score of a JSON object, None if no key is for one; with `lone`, it may hold no other number.

    With `tolerant`, the key may be any name of a score.
    """
    scores = [m for m in members if m.key.casefold() == "score"]
    if tolerant and not scores:
        scores = [m for m in members if _names_score(m, grammar)]
    if not scores:
        return None
    verdict = _truth(scores[0], grammar) if tolerant else None
    if (
        len(scores) > 1
        or scores[0].kind == "container"
        or (scores[0].kind == "literal" and verdict is None)
    ):
        raise ParseError(_NO_KEY, text)
    others = [m for m in members if m is not scores[0]]
    if lone and not all(m.kind in ("literal", "words") for m in others):
        raise ParseError("the JSON object holds more than a score and words", text)
    if verdict is not None:
        score = Found(verdict, scores[0].start, scores[0].end)
    else:
        score = _score_alone(text, scores[0].start, scores[0].end, grammar)
    quotes = [m for m in others if grammar.cite and m.key.casefold() == "quote"]
    named = [m for m in others if m.key.casefold() == "reason"]
    reasons = [m.words.strip() for m in named or others if m.kind == "words" and m not in quotes]
    quote = quotes[0].words.strip() if quotes else ""
    return replace(score, reason="\n".join(reasons) or None, quote=quote or None)


def _names_score(member: json_reply.Member, grammar: _Grammar) -> bool:
    """Return whether the key of a member is a name of a score: {"winner": "A"}, {"pass": true}."""
    key = fold(member.key).replace("_", " ")
    if grammar.name.fullmatch(key) or grammar.prose.forms.name.fullmatch(key):
        return True
    return member.kind == "literal" and _PASSES.fullmatch(key) is not None


_PASSES = re.compile(r"(?:is )?(?:pass(?:ed|es)?|correct|true|valid|good|ok)", re.IGNORECASE)


def _truth(member: json_reply.Member, grammar: _Grammar) -> str | None:
    """Return the label that a key has if it is true or false, None if its value is another or the scale has no such.

    True is the label of the value 1. Not if that label says no, as for the question "Has it errors?".
    """
    said = member.words.casefold()
    if member.kind != "literal" or said not in ("true", "false"):
        return None
    by_word = grammar.plain.label(said)
    by_value = grammar.truth.get(said)
    if by_word is not None and by_value is not None and by_word != by_value:
        return None
    return by_value


def _score_in_objects(
    text: str, start: int, grammar: _Grammar, judged: str, *, lone: bool
) -> Found | None:
    """Return the score of the JSON objects in a reply, None if none has a key for a score.

    Raises ParseError if one is broken, if they differ, and if the score may be quoted or is not the last word.
    """
    if text.count("{", start) > _MOSTOBJECTS:
        raise ParseError("the reply holds too many objects", text)
    score = place = None
    since = end = start  # `since` is where the text right before the score's object begins
    for item in json_reply.objects(text, start):
        if item.broken:
            raise ParseError("the reply holds a JSON object that is not closed or not plain", text)
        if other := _score_in_object(text, item.members, grammar, lone=lone, tolerant=True):
            if score and score.label != other.label:
                raise ParseError("the reply holds JSON objects with different scores", text)
            score, place, since = other, item, end
        end = item.end
    if score is None or place is None:
        return None
    before = re.sub(r"```\w*\s*\Z", "", text[since : place.start]).strip(" \t\r\n`")
    if not _is_whole(text, start, place):
        _check_own(text, since, place, score.end, judged)
        stated = prose.candidates(fold(before[-_REASON:]), grammar.prose)
        if any(grammar.plain.label(item.written) != score.label for item in stated):
            raise ParseError(
                "the reply has one score in its JSON object and another before it", text
            )
        after = fold(text[place.end :]).casefold()
        names = (
            name for name in (*grammar.names.labels, *grammar.names.words) if not name.isascii()
        )
        words = re.findall(r"[0-9]|\w+", after)
        if any(word.isdigit() or grammar.names.label(word) for word in words) or any(
            name in after for name in names
        ):
            raise ParseError("what follows the JSON object may be another score", text)
    return replace(score, reason=score.reason or (None if lone else before or None))


def _is_whole(text: str, start: int, item: json_reply.JsonObject) -> bool:
    """Return whether a reply is an object and nothing else but white space or a fence."""
    opening = OBJECT.match(text, start)
    return (
        opening is not None
        and opening.end() == item.start
        and _CLOSED.match(text, item.end) is not None
    )


def _check_own(text: str, since: int, item: json_reply.JsonObject, end: int, judged: str) -> None:
    """Raise ParseError if an object may be a quotation, by what is around it or by its value, which ends at `end`."""
    before = text[since : item.start]
    if is_quoted(before, before):
        raise ParseError(_QUOTED, text)
    if (before.strip() and not _LEADS_UP.search(before[-_LONGEST:])) or not _ENDS_LINE.match(
        text, item.end
    ):
        raise ParseError("the JSON object stands within a sentence", text)
    # The key, the colon and the value.
    written = re.split("[{,]", text[item.start : end])[-1]
    written, judged = (re.sub(r"[^\w:.]+", "", fold(part).casefold()) for part in (written, judged))
    if written in judged:
        raise ParseError(
            "the judged text has the same score as the JSON object, which may be a quotation", text
        )


def spans(
    text: str, names: Collection[str], judged: str | None
) -> tuple[dict[str, tuple[int, int]], Reading]:
    """Return the places of the values of these keys in a reply that is one JSON object; repeated keys are left out.

    With the `judged` text, the object may be nearly JSON, stand after other text, or be the only value of another.
    Raises ParseError for any other reply.
    """
    start = since = reply_start(text)
    items = json_reply.objects(text, start)
    strict = len(items) == 1 and items[0].strict and _is_whole(text, start, items[0])
    if not strict and (judged is None or any(item.broken for item in items)):
        raise ParseError("the reply is not one JSON object", text)
    places: dict[str, tuple[int, int]] = {}
    for item in items:
        times = Counter(member.key for member in item.members)
        here = {
            m.key: (m.start, m.end) for m in item.members if m.key in names and times[m.key] == 1
        }
        if here and (places or not _CLOSED.match(text, item.end)):
            raise ParseError("the reply is not one JSON object, or something follows it", text)
        for _, end in here.values():
            if not strict and not _is_whole(text, start, item):
                _check_own(text, since, item, end, judged or "")
        places, since = places | here, item.end
    return places, "strict" if strict else "prose"


def _score_in_prose(
    text: str, start: int, grammar: _Grammar, judged: str, *, error: NotInForm, reply: ReplyKind
) -> Found:
    """Return the score of a reply that is not in the requested form. Raises ParseError."""
    if len(text) - start > prose.LONGEST:
        raise error
    whole = _LAST_MARKS.sub("", text)
    folded, starts, ends = fold_with_positions(whole[start:], start)
    try:
        item = prose.find_score(
            folded, grammar.prose, judged, words_may_open=reply != "reason_then_score"
        )
    except prose.NoScore:
        raise error from None
    except ParseError as why:
        raise ParseError(f"{error}; in prose: {why}", text, error.place) from why
    first, last = starts[item.start], ends[item.end - 1]
    label = _label(item.match, grammar.plain, (first, last), text, grammar.expected)
    check_thinking(text[start:first], text)
    alone = reply == "score" and not re.search(
        r"[^\W\d]{2}", folded[: item.start] + folded[item.end :]
    )
    return Found(label, first, last, None if alone else whole[start:].strip(), "prose")


# From what was written to a label.


def _check_unquoted(before: str, match: re.Match[str], text: str) -> None:
    """Raise ParseError if a score is inside quotation marks, or in a quoted line, that begin in it or `before` it.

    Marks around the name alone, or a backtick on both sides of the value, do not quote the score.
    """
    head, tail = (
        match.string[match.start() : match.start("value")],
        match.string[match.end("value") :],
    )
    if member := _MEMBER.fullmatch(head):
        head, tail = head[len(head.rstrip('"')) :], tail.replace("```", "")
    elif (before + head).count("```") % 2 == 0:
        head = head.replace("```", "")
    if head[-1:] == tail[:1] and (member or head.endswith("`")):
        head, tail = head[:-1], tail[1:]
    if is_quoted(before, f"{before}{head}") or len(_QUOTE.findall(head)) % 2 or _QUOTE.search(tail):
        raise ParseError(_QUOTED, text)


def _quotes_name(match: re.Match[str], grammar: _Grammar) -> bool:
    """Return whether one quotation has both a score and its name: “Score: 4”, but not "4" or "score": "4"."""
    head = match.string[match.start() : match.start("value")]
    if _MEMBER.fullmatch(head) or not grammar.name.search(head):
        return False
    opening = head.lstrip(" \t\n*_([")[:1]
    return _QUOTE_MARK.match(opening) is not None and len(_QUOTE_MARK.findall(head)) % 2 == 1


_QUOTE_MARK = re.compile("[\"'“”‘’「」『』]")


def _score_of_match(
    match: re.Match[str], grammar: _Grammar, text: str, starts: Sequence[int], ends: Sequence[int]
) -> Found:
    start, end = starts[match.start("value")], ends[match.end("value") - 1]
    return Found(_label(match, grammar.names, (start, end), text, grammar.expected), start, end)


def _label(
    match: re.Match[str], names: LabelIndex, place: tuple[int, int], text: str, expected: str
) -> str:
    """Return the label of a match. Raises ParseError if it, or the scale stated beside it, is off the scale."""
    written = match["value"]
    for group, stated in match.groupdict().items():
        if group.startswith(("low", "high", "out_of", "full")) and stated is not None:
            end = names.label(stated)
            if end is None or end != names.ends[not group.startswith("low")]:
                raise ParseError(f"{written} out of {stated} is off the scale ({expected})", text)
    label = names.label(written)
    if label is None or ("," in written and "," not in text[slice(*place)]):  # 4，5 is a list
        hint = ""
        if names.is_half(written):
            hint = "; half points are not allowed without `allow_half: true` or `step: 0.5`"
        elif label is None and (step := names.missing_step(written)):
            low, high = names.ends
            hint = f"; for scores between them, round to a step: `scale: {{min: {low}, max: {high}, step: {step}}}`"
        raise ParseError(f"{written} is off the scale ({expected}){hint}", text, place[0])
    return label
