"""The grammar of a score in the requested form: its patterns for one scale and criterion.

All patterns are matched against folded text, in which digits, colons and slashes are ASCII. Runs of
marks and spaces are possessive, so that no reply, however odd, takes more than linear time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from judge.core.label_spellings import (
    DASHES,
    FULL_MARKS,
    UNITS,
    LabelIndex,
    fold,
    is_number,
    label_index,
    spelled_out,
    truth_digits,
)
from judge.core.records import Scale
from judge.scoring import prose

# `**"`, `[`: what may stand around a name, a colon and a score.
MARK = r"""[\s*_`"'“”‘’「」『』()\[\]{}【】〔〕]*+"""
# `**.`, `) <|im_end|>`: marks and end-of-turn tokens, up to the end of the reply.
CLOSE = (
    r"""[\s*_`"'“”‘’「」『』()\[\]{}【】〔〕.,;。、!]*+"""
    r"(?:(?:<\|\w+\|>|</s>|<eos>|<end_of_turn>)\s*+)*+\Z"
)
# `json` after an opening fence
_FENCE = rf"(?:(?<=```)\w++{MARK})?"
# `- `, `### `
_BULLET = r"(?:(?:[-•+–>]|\#{1,6})\s++)?"
_NUMBER = r"[0-9]++(?:\.[0-9]++)?"
_UNIT = (
    rf"[{UNITS}]|points?|pts?|stars?|★|⭐"
    r"|punkten?|punkte?|puntos?|pontos?|punti|sternen?|sterne?|étoiles?|estrellas?|estrelas?|stelle"
)
# B級, B등급: letters alone have these, because 1級 is the best of a scale and 4級 may be its worst
_LETTER_UNIT = "級|级|等级?|등급|ランク|評価"
_PERCENT = "%|percent|パーセント|퍼센트"
# The scale behind a score: "4 [1-5]", "4 on a 1-5 scale", "4 on a scale of 1 to 5"
_RANGE = (
    rf"(?:(?<=[(\[])(?P<low_box>{_NUMBER})\s*+[-–~]\s*+(?P<high_box>{_NUMBER})(?=\s*+[)\]])"
    rf"|on\s++(?:a|the)\s++(?P<low_before>{_NUMBER})\s*+(?:-|–|to)\s*+(?P<high_before>{_NUMBER})"
    r"\s++scale(?!\w)"
    rf"|on\s++(?:a|the)\s++scale\s++(?:of|from)\s++(?P<low_behind>{_NUMBER})\s*+(?:-|–|to)\s*+"
    rf"(?P<high_behind>{_NUMBER})(?!\w))"
)
# 5点満点, 5점 만점, 5점 척도, 5段階評価
_FULL = r"(?:満点|满分|滿分|만점|척도|段階(?:評価)?)"
# "4 out of 5", also in German, French, Spanish, Italian, Dutch and Russian
_OUT_OF = r"(?:(?:out\s++)?of|sur|von|de|su|van|из)"
# The colon of "Score: 4", or a particle instead of it: スコアは4
_IS = r"(?::|は|[은는]|[为為是])"
# The verb after the number: 4点です, 4점입니다
_COPULA = (
    rf"(?:{MARK}(?:です|だ|である|と(?:します|なります)|입니다|이(?:다|에요)|예요|임))?"
)
# In pairs, what the prompts and judges call the text before its letter.
_TEXT = (
    r"(?:(?:text|summary|response|output|answer|assistant|model|option|candidate|version"
    r"|文章|テキスト|要約|回答|글|텍스트|요약|응답|답변|文本|摘要|回复|回覆|答案)\s*+)?"
)
# _SCORE may also open a sentence of its own within a line ("… none is missing. Score: 2."), the
# wider _NOUN only a line. In the middle of a sentence it is another score: "Coherence score: 5", "a
# perfect text has a score: 5".
_SENTENCE = r"""(?:(?<=[.!?;。)\]])|(?<=[.!?。]["'”’“»›」』]))\s*+[*_`]*+"""
_SCORE = (
    r"(?:score|rating|점수|[총평별]점|평가|スコア|点数|[得評]点|(?:総合?|合計)点|評価[点値]?|採点"
    r"|得分|[总總]分|评分|評分|分数|分數|[打给給]分|成绩|成績|评价|評價)"
)
_NOUN = (
    rf"(?:{_SCORE}|grade|mark|result|verdict|answer|label|judge?ment|evaluation|assessment"
    r"|등급|결과|합계|정?답|답변|評定|判定|結果|回答|解答|答え|评级|评定|评估|等级|结果|答案|結論|结论)"
)
# "My final overall" score, "final_score"
_WHICH = (
    r"(?:(?:the|my|your|final|overall|total|revised|corrected|adjusted|updated"
    r"|최종|종합|총|평가|채점|最終|総合?|評価|採点|最终|综合|总|评估|最後|綜合|總)[\s_]*+)*"
)
# "Relevance", "Ton-fall"
_ONE_WORD = r"[^\W\d_](?:[^\W\d_]|['’-]){1,39}"
_NEVER = "(?!)"
_LONGEST = 120
"""Most characters of a score with everything around it, besides title and label."""
_ONE_OR_ZERO = Scale(("0", "1"), (0.0, 1.0))
_MOST_LISTED = 12
"""Most labels that an error message lists; of a longer scale it names the ends."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The patterns of a score in a reply, for one scale and criterion.

    `spellings` and `prose_spellings` are the spellings of the labels in the requested form and in
    prose. `truth` maps "true" and "false" to labels. `name` is the pattern of the score's name,
    `alone` matches a text that is the score, and `ending` the last line `Score: 4`.
    `plain_score` and `title` are the patterns of a score and of the criterion's title in prose.
    `is_pair`: the labels are two texts. `digits` is the grammar of 1 and 0, which some judges write
    for yes and no; None if the labels mean anything else. `longest` limits the characters of a
    score with everything around it, `expected` lists the labels for error messages, and `cite` says
    that the reply has a quotation.
    """

    spellings: LabelIndex
    name: re.Pattern[str]
    alone: re.Pattern[str]
    ending: re.Pattern[str]
    prose_spellings: LabelIndex
    truth: Mapping[str, str]
    plain_score: str
    title: str
    is_pair: bool
    digits: Grammar | None
    longest: int
    expected: str
    cite: bool

    def truth_of_digit(self, digit: str) -> str:
        """Return the label of the judge's 1 or 0 on a scale with `digits`."""
        word = "true" if digit == "1" else "false"
        return self.truth[word]

    @property
    def prose(self) -> prose.Patterns:
        """The patterns of plain replies, which take long to compile and are seldom needed."""
        shortest_label = min(map(len, self.spellings.labels), default=0)
        has_words = shortest_label > 1 and not self.spellings.numbers
        if self.is_pair:
            has_words = False
        return _prose_patterns(
            self.plain_score,
            self.title,
            self.prose_spellings,
            self.is_pair,
            has_words,
        )


@lru_cache(maxsize=1_024)
def _prose_patterns(
    score: str,
    title: str,
    spellings: LabelIndex,
    is_pair: bool,
    has_words: bool,
) -> prose.Patterns:
    return prose.compile_patterns(
        score,
        MARK,
        title,
        spellings,
        is_pair=is_pair,
        has_words=has_words,
    )


@lru_cache(maxsize=1_024)
def grammar_of(scale: Scale, title: str, cite: bool) -> Grammar:
    """Return the grammar of the scores of a criterion; its `title` is "" if it is unknown."""
    spellings = label_index(scale)
    prose_spellings = spelled_out(scale)
    is_pair = _compares_two_texts(scale)
    title_words = re.findall(r"[^\W_]+", fold(title))
    # Words of a title may be joined by other marks: "Source-based relevance", "source_based".
    titled = r"[\W_]{1,4}".join(map(re.escape, title_words))
    name = _name_pattern(titled)
    alone = _alone_pattern(spellings, name, is_pair=is_pair, any_name=not title)
    ending = _ending_pattern(spellings, name, is_pair=is_pair)
    longest_label = max(map(len, scale.labels), default=0)
    truth = {} if is_pair else _truth_labels(scale)
    digits = grammar_of(_ONE_OR_ZERO, title, cite) if truth_digits(scale) else None
    plain_score = _score_pattern(prose_spellings, is_pair=is_pair, in_prose=True)
    return Grammar(
        spellings=spellings,
        prose_spellings=prose_spellings,
        truth=truth,
        name=_compiled(name),
        alone=_compiled(alone),
        ending=_compiled(ending),
        plain_score=plain_score,
        title=titled or _NEVER,
        is_pair=is_pair,
        digits=digits,
        longest=_LONGEST + 2 * len(title) + longest_label,
        expected=_listed(scale.labels),
        cite=cite,
    )


def _compares_two_texts(scale: Scale) -> bool:
    has_both_labels = {"A", "B"} <= set(scale.labels)
    return has_both_labels and 0 <= scale.low < scale.high <= 1


def _truth_labels(scale: Scale) -> dict[str, str]:
    """Return the labels of "true" and "false", for a scale of the values 0 and 1 only."""
    if sorted(scale.values) != [0, 1]:
        return {}
    position_of_false = scale.values.index(0)
    position_of_true = scale.values.index(1)
    return {
        "false": scale.labels[position_of_false],
        "true": scale.labels[position_of_true],
    }


def _listed(labels: tuple[str, ...]) -> str:
    if len(labels) <= _MOST_LISTED:
        return ", ".join(labels)
    return f"{labels[0]} … {labels[-1]}"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _name_pattern(titled: str) -> str:
    """Return the pattern of a score's name: a word for a score, the title, or both."""
    if not titled:
        return f"{_WHICH}{_NOUN}"
    # "관련성 점수", "relevance_score" or "score for relevance", or the title alone.
    both = rf"(?:{titled}[의の的]?[\s_]*+)?{_NOUN}(?:\s++(?:for|of)\s++{titled})?"
    return rf"{_WHICH}(?:{both}|{titled})"


def _ends_pattern(spellings: LabelIndex) -> str:
    """Return the pattern of what may follow a name: the scale's ends or top, and marks.

    "Score (1-5)", "Score (out of 5)".
    """
    end = rf"[{DASHES}-]?{_NUMBER}"
    between = r"(?:[-–~〜]|to|から|[至到])"
    unit = _unit_pattern(spellings)
    both_ends = rf"(?P<low>{end})\s*+{between}\s*+(?P<high>{end}){unit}"
    return rf"(?:{MARK}(?:{both_ends}|{_top_pattern(spellings, 'name')}))?{MARK}"


# After a name in brackets: "[RESULT] 4", "【评分】：4".
_BRACKET = rf"\s*+[\]】〕〉>]{MARK}{_IS}?"


def _tail_pattern(spellings: LabelIndex, *, is_pair: bool) -> str:
    """Return the pattern of a score at the end of a text."""
    return rf"{MARK}{_score_pattern(spellings, is_pair=is_pair)}{_COPULA}{CLOSE}"


def _alone_pattern(
    spellings: LabelIndex, name: str, *, is_pair: bool, any_name: bool
) -> str:
    """Return the pattern of a text that is nothing but the score, perhaps with its name.

    With `any_name`, the name may be any one word.
    """
    word = _ONE_WORD if any_name else _NEVER
    named = rf"(?:(?P<word>{word})|[〈<]?{name})"
    # A word that is no known name needs a colon: "Relevance: 4", but not "scores 4".
    separator = rf"(?:{_BRACKET}|{_ends_pattern(spellings)}(?(word):|{_IS}))"
    tail = _tail_pattern(spellings, is_pair=is_pair)
    return rf"{MARK}{_FENCE}(?:{_BULLET}{MARK}{named}{separator})?{tail}"


def _ending_pattern(spellings: LabelIndex, name: str, *, is_pair: bool) -> str:
    """Return the pattern of a reply's end that gives the score by its name.

    The name begins a line, is in a box ("[RESULT] 4"), or begins a sentence within a line.
    """
    line = rf"(?:^|(?<=\n)){MARK}{_FENCE}{_BULLET}{MARK}"
    box = r"(?<=[\[【〔])|[〈<]"
    # Within a line, a wide name counts only before brackets: "… So the verdict: [[A]]".
    sentence = rf"{_SENTENCE}{_WHICH}(?:{_SCORE}|{_NOUN}(?=[\s*_]*+:[\s*_]*+\[\[))"
    named = rf"(?:(?:(?P<line>{line})|(?P<box>{box})){name}|{sentence})"
    separator = rf"(?(box){_BRACKET}|{_ends_pattern(spellings)}(?(line){_IS}|:))"
    return rf"{named}{separator}{_tail_pattern(spellings, is_pair=is_pair)}"


def _stated_pattern(spellings: LabelIndex, *, in_prose: bool = False) -> str:
    """Return the pattern of a number or of a word for one; `in_prose`: also ".75" and "4,0"."""
    # A comma may be a decimal point if the scale has decimals, but not one that parts thousands.
    if in_prose:
        number = r"(?:[0-9]++(?:\.[0-9]++|,[0-9]{1,2}(?![0-9]))?|(?<![0-9])\.[0-9]++)"
    elif any("." in text for text in spellings.numbers):
        number = r"[0-9]++(?:\.[0-9]++|,[0-9]{1,2})?"
    else:
        number = _NUMBER
    words = sorted(map(re.escape, spellings.words), key=len, reverse=True)
    return "|".join([number, *words])


def _unit_pattern(spellings: LabelIndex) -> str:
    if not spellings.numbers:
        return rf"(?:\s*+(?:{_LETTER_UNIT}))?"
    percent = f"|{_PERCENT}" if spellings.ends[1] == "100" else ""
    return rf"(?:\s*+(?:{_UNIT}{percent}))?"


def _top_pattern(spellings: LabelIndex, after: str, *, in_prose: bool = False) -> str:
    """Return the pattern of a scale's top: "/5", "out of 5", "5点満点".

    `after` ends the names of its groups: it says whether the top follows the value or the name.
    """
    number_or_word = rf"(?:{_stated_pattern(spellings)}|{_counted_pattern(spellings)})"
    stated = _top_words(spellings) if in_prose else number_or_word
    unit = _unit_pattern(spellings)
    # "(max 5)", only with its bracket
    maximum = r"|(?<=[(\[])max(?:imum)?\.?\s" if in_prose else ""
    # "/5", "out of 5", "sur 5", "满分5分"
    sign = rf"(?:/|{_OUT_OF}\s|{_FULL}{_IS}?{maximum})"
    top_after_sign = rf"{sign}{MARK}(?P<out_of_{after}>{stated}){unit}"
    # "5点満点"
    top_before_sign = rf"(?P<full_{after}>{stated}){unit}\s*+{_FULL}"
    return rf"(?:{top_after_sign}|{top_before_sign})"


def _top_words(spellings: LabelIndex) -> str:
    """Return the pattern of a number or of a word for the greatest number of the scale."""
    words: list[str] = []
    for label_by_word in (spellings.words, spellings.counted):
        for word, label in label_by_word.items():
            # "4 out of full marks" and "4/★★★★★" state no top.
            is_mark = word in FULL_MARKS or word[0] in "★⭐🌟"
            if label == spellings.ends[1] and not is_mark:
                words.append(re.escape(word))
    return rf"(?:{_NUMBER}|{'|'.join(words) or _NEVER})"


def _counted_pattern(spellings: LabelIndex) -> str:
    """Return the pattern of the words that are numbers only with a unit: 네 in 네 점."""
    longest_first = sorted(spellings.counted, key=len, reverse=True)
    return "|".join([*longest_first, _NEVER])


def _score_pattern(
    spellings: LabelIndex, *, is_pair: bool, in_prose: bool = False
) -> str:
    """Return the pattern of a score with its unit, and the scale's top with its own."""
    stated = _stated_pattern(spellings, in_prose=in_prose)
    counted = _counted_pattern(spellings)
    counting_unit = rf"[{UNITS}]|개" if in_prose else f"[{UNITS}]"
    sign = f"[+{DASHES}-]?" if spellings.below_zero else f"[{DASHES}-]?"
    if spellings.below_zero and in_prose:
        # "- 1" may be a bullet and 1, or minus one.
        sign = rf"(?<![{DASHES}-]\s){sign}"
    value = rf"{sign}{stated}|(?:{counted})(?=\s*+(?:{counting_unit}))"
    labels = _label_words(spellings)
    if labels:
        # Case matters only if two labels differ in nothing else.
        flags = "i" if spellings.loose else "-i"
        value += f"|(?{flags}:{labels})"
    top = _top_words(spellings) if in_prose else rf"(?:{stated}|{counted})"
    before = _top_before_pattern(top, _unit_pattern(spellings))
    text = _TEXT if is_pair else ""
    star = ""
    unit = _unit_pattern(spellings)
    top_after = _top_pattern(spellings, "value", in_prose=in_prose)
    if in_prose:
        top_after = f"(?:{top_after}|{_RANGE})"
        # 별 네 개, 星4つ, 4つ星, 四颗星
        star = r"(?P<star>(?:별점|별|星)\s*+)?"
        unit = rf"(?(star)\s*+(?:개|つ|점|個)?|{unit}(?:\s*+(?:つ星|[颗顆]?星))?)"
    return rf"{before}{text}{star}(?P<value>{value}){unit}(?:{MARK}{top_after})?"


def _label_words(spellings: LabelIndex) -> str:
    """Return the pattern of the labels that are no numbers, "" if all are."""
    words: list[str] = []
    for label in spellings.labels.values():
        text = fold(label).strip()
        if not is_number(text):
            words.append(re.escape(text))
    return "|".join(words)


def _top_before_pattern(top: str, unit: str) -> str:
    """Return the pattern of a scale's top before the score: 5点満点中4点, 5점 만점에 4점, 满分5分,得4分."""
    within = rf"(?:{_FULL}\s*+(?:中の?|중(?:에서)?|에서?|[で로,])?|中の?|중(?:에서?)?)"
    number_first = rf"(?P<out_of>{top}){unit}\s*+{within}"
    word_first = rf"{_FULL}(?P<full>{top}){unit},?"
    return rf"(?:(?:{number_first}|{word_first})\s*+得?\s*+)?"
