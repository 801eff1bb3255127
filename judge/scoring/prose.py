"""Find the score in a sentence of prose, such as "so I would give it a 4 out of 5." or "따라서 4점을 부여합니다.".

A number or label counts beside a word for a score, with a verb of rating, or alone. It is refused in a negation, a
condition, a report of what someone else says, and wherever anything else in the sentence could be the score.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.core.errors import ParseError
from judge.core.label_spellings import LabelIndex, fold

LONGEST = 1_500
"""Most characters of the text that is searched for the last sentence."""


def _joined(lines: str) -> str:
    """Join the lines of a pattern."""
    return re.sub(r"\n\s*", "", lines)


# Words of English end here; TITLE stands for the words of the criterion's title.
_END = r"(?![\w'’-])"
_WORD = _joined(rf"""
    (?:\s++(?:it|its|this|that|the|an?|my|summary|text|response|answer|output|translation|reply|essay|article|story
    |dialogue|generated|final|overall|total|perfect|full|solid|strong|high|low|lower|higher|good|poor|fair|moderate
    |average|resulting|corresponding|only|just|as|at|with|of|to|be|score|rating|grade|mark|TITLE){_END})
""")
_NOUN_CJK = (
    "(?:점수|[총평별]점|스코어|평가|スコア|点数|[得評]点|評価点?|採点|得分|评分|評分|分数|分數|[总總]分|打分|评价|評價)"
)
# What stands before a score. Each begins with a word of its own, so that a long text takes linear time.
_BEFORE = _joined(rf"""
    (?:(?P<noun>\b(?:score|rating|grade|mark|verdict|judge?ment|(?P<name>TITLE)){_END}
        (?:\s++(?:for|of|to|on){_WORD}{{1,4}})?
        (?P<link>[\s*_]*+(?:[:=–—(-]|,(?=\s)
            |(?:of|is(?: therefore| thus)?|at|as|would be|should be|will be|to be){_END}))?
        (?:\s++(?:an?|just|only){_END})?)
    |(?P<rating>\b(?:(?:I|we)(?:['’](?:d|ll|m)| am| would| will| must)?(?: (?:therefore|thus|also|hence))?\s++
        (?:give|rate|score|grade|assign|award|mark|giving|rating|scoring)
        |giving|assigning|awarding|rating|grading|(?:is|be|being|are)\s++(?:given|rated|scored|graded|assigned|awarded))
        {_END}{_WORD}{{0,9}})
    |(?P<verb>\b(?:get(?:s|ting)?|receiv(?:es?|ing)|earn(?:s|ing)?|deserv(?:es?|ing)|merit(?:s|ing)?|achiev(?:es?|ing)
        |warrant(?:s|ing)?|obtain(?:s|ing)?|attain(?:s|ing)?|scor(?:es|ing)){_END}{_WORD}{{0,9}})
    |(?P<mark><\s*+(?:\w{{1,20}}_)?(?:score|rating|grade|answer|verdict|result|label)\s*+>|\\boxed\{{(?:\\text\{{)?)
    |(?P<fraction>(?<!\d)[,;:–—…-]\s++|\boverall\s++)
    |(?P<cjk>{_NOUN_CJK}\s*+(?:결과|結果|结果)?\s*+(?:는|은|를|을|로|으로|이|가|は|を|が|为|為|是|:)?+
        |[给給打评評得为為获獲予](?:[它其个個了该該一这這篇]|摘要|文章|本文|\s){{0,6}}+(?=[^\s。]{{1,4}}分)))
""")
# What ends a sentence in Korean or Japanese after a number and its unit, and what may follow a score.
_ENDING = _joined(r"""
    (?:(?:을|를|으로|로|이라고|라고|이|가|의)?\s*+(?:(?:점수|평점|평가)[를을가로]?\s*+)?
        (?:[주줍줄]|드[리립릴]|부여|매[기깁긴길]|평가|책정|채점|판단|생각|[적타합]당|적절|받(?!았)|하겠|정하|산정)
        [가-힣]{0,6}(?:\s[가-힣]{1,7}){0,2}
    |[をとがにで]?(?:評価|採点|判断|判定|つけ|付け|与え|妥当|適切|適当|相当|し|する|思い|考え)[ぁ-んー一-龥]{0,10})
""")
_COPULA = "(?:です|だ|である|と(?:します|なります)|입니다|이(?:다|에요)|예요|임|的?(?:评价|评分|分数|得分|成绩))"
_AFTER = _joined(rf"""
    [*_$`'"”’」』)\]}}]*+(?:{_ENDING}|{_COPULA})?+[*_$)\]}}]*+(?:\s*+\Z|\s*+[;:!)(\]–—。、，；（]|[.,](?!\d)|\s++-\s|\s*+</
    |\s++(?:for|because|since|as|due|based|given|with|indicating|reflecting|overall|here|regarding|according
    |(?:is|seems|would be) (?:appropriate|fair|warranted|justified|reasonable|fitting)
    |in (?:this|the|terms|my|overall|TITLE)|on (?:this|the|a|TITLE)|to (?:this|the|it)){_END})
""")
_CONNECTIVE = _joined(r"""
    (?:(?:so|therefore|thus|hence|overall|finally|in (?:conclusion|summary)|따라서|그러므로|결론적으로|종합적으로
    |したがって|従って|よって|以上より|総合的に|因此|所以|综上(?:所述)?|总之|總之)[\s,、，:]*+)?
""")


def _compiled(lines: str) -> re.Pattern[str]:
    return re.compile(_joined(lines), re.IGNORECASE)


# What may stand before a word for a score in its clause: nothing, a judge who gives it, or a verb; and before a verb.
_GIVEN = _compiled(r"""
    ^\W*(?:with|as)?\W*\Z|\b(?:I|we)\b.*\b(?:give|assign|award|rate|score|believe|think)\b.*\Z
    |\b(?:is|be|indicat(?:es|ing)|suggest(?:s|ing)|justif(?:ies|ying)|warrants?|earn(?:s|ing)|receiv(?:es|ing)|gets
    |getting|given|assigned|awarded|making (?:it|this)|deserv(?:es|ing)|merits|achiev(?:es|ing)|giv(?:es|ing)
    |assigning|awarding|yield(?:s|ing)|reflect(?:s|ing))\W*\Z
""")
_THING = "summary|text|response|answer|output|translation|reply|essay|article|story|dialogue|paraphrase|headline"
_SUBJECT = _compiled(rf"""
    ^\W*\Z|\b(?:it|this|that|which)\W*\Z
    |^\W*(?:(?:the|this|that|overall|I (?:think|believe))\s+)*(?:[\w-]+\s+)?(?:{_THING})\b
""")
_ADVERB = _compiled(r"\b(?:therefore|thus|also|only|still|would|should|overall|then|\w+ly)\b")
_CLAUSE = _compiled(r"""
    [,;:()–—、，；：]|\b(?:so|therefore|thus|hence|and|but|result(?:s|ing) in|lead(?:s|ing) to)\b|ため|ので|因此|所以
    |(?:므로|[어아여해]서?|지만|으나|니까|기에|[고며]|때문에|[다요음함]\.)\s
""")
_IF = _joined(r"""
    \b(?:if|unless|otherwise|(?:had|were) (?:it|the|this|there)|would have)\b|만약|[라다으]면|もし|れば|たら|なら|如果
    |若|要是|否则
""")
_CONDITION = _compiled(
    rf"{_IF}|\b(?:requested|demanded|instruct\w*|rubric)\b|(?:\b(?:not|never)|n['’]t)\s*[,(]"
    r"|\b(?:says|said|reads|adds|writes|wrote|tells|ends|words|quote|begs)\s*[,(]"
    r"|\b(?:match|game|half|won|lost|beat|exam)\b[^,]*,(?: with)? (?:the|an?) (?:final )?\Z"
)
# Before the score in its clause: negation, doubt, comparison, habit, and words of others.
_UNSURE = _compiled(rf"""
    {_IF}|n['’]t\b|\b(?:not|never|no|nor|neither|nobody|none|nothing|few|without|hardly|barely|cannot|let|unable|fail\w*|could|might|may
    |to (?:get|give|earn|deserve|receive|assign|award|rate|score|merit|achieve|obtain)|into|consider\w*|tempted
    |hesitat\w*|refus\w*|declin\w*|tr(?:y|ies|ying)|attempt\w*|miss\w*|students?
    |perhaps|maybe|possibly|almost|nearly|have|instead|rather|prevent\w*|from|short|normally|usually|ordinarily
    |typically|initially|originally|previous\w*|others?|another|than|least|most|between|about|around|approximately
    |roughly|above|below|under|close|near|up to|maximum|highest|lowest|possible|claim\w*|sa(?:ys|id|ying)
    |stat(?:es|ed|ing)|mention\w*|report\w*|t(?:ells?|old)|ask\w*|instruct\w*|demand\w*|request\w*|quot\w*|ends?|ending
    |contain\w*|includ\w*|writ\w*|wrote|command\w*|order\w*|want\w*|\w+self|they|he|she|who|authors?|users?|readers?
    |reviewers?|critics?|people|someone|anyone|was|were|had)\b|않|못|없|아니|이상|이하|미만|까지|대략|ない|以上|以下
    |[约約]\W*\Z|不(?:[是会會能该該应應值配]|足以)|[没沒未]有?[给給得达達能]|无法|無法|除非|最[多高低]|至少|原本|本可
""")
_TAKEN_BACK = _compiled(rf"""
    ^\W*(?:not|or|maybe|perhaps|instead|rather|at (?:most|best))\b|{_IF}|않|못|없|아니|[었았했]을|ない|ません|だろう
    |でしょう|かも|はず|\bplease\b|세요|시오|[하해줘]라|줘|[라다]고(?!\s*(?:생각|판단|보|봅|본|평가|여))|ください|下さい
    |[けえせめ]ろ|せよ|て\W*$|よう|求め|要求|指示|と[書言述]|不|没|也许|可能|左右|以上|以下|[?？]|까\W*$|か\W*$
""")
_OTHER = _compiled(r"[0-9]\W*[점点分點]?\s*(?:이나|또는|혹은|か|または|或者?|や|から|에서|or|to|and)\s*(?:an?\s*)?\Z")
# What may stand before a colon or dash that a score follows; any other words may introduce a quotation.
_HEADING = _joined(r"""
    ^\W*(?:(?:my|the|final|overall|total|(?:in|to) (?:conclusion|summary)|conclusion|assessment|evaluation|verdict|score
    |rating|result|TITLE)\b\W*|종합|최종|평가|결론|점수|総合|最終|評価|結論|点数|[总總][体體评評之]|[综綜]合|[评評][价價分]|[结結][论論])*\Z
""")
_GENERIC = _compiled(r"\W*(?:an?|any|every|each|such|some|only|texts?|summaries|responses)\b")
# All that may stand before a score in its clause in Korean, Japanese or Chinese: nobody but the judge gives it, and
# nothing but the text or the criterion gets it.
_GIVEN_CJK = _joined(rf"""
    (?:[\W0-9]|TITLE|{_NOUN_CJK}
    |이러한|이런|이유로|그러므로|그래서|저희|요약문?|텍스트|기사|문장|응답|답변|번역문?|대한|대해|최종|종합|전체|전반
    |측면|항목|[점면]에서|에서|따라서|결론|결과|해당|이|그|본|저|제|나|내|글|의|[은는]|에게?|총|적|으로
    |この|その|以上|要約文?|文章|テキスト|回答|翻訳文?|対する|したがって|従って|よって|理由|結果|結論|判断し|ここ|から
    |最終|最後|総合|全体|[はにのなとて]|して|私|的
    |我们?|我們|[认認][为為]|[觉覺]得|[决決]定|所[以述]|可以|摘要|[文本]本|本?文|[总總][结結]|最[终終后]|[综綜][合上]
    |[整總总][体體]|[总總]之|因[此而]|方面|[本会會将將可应應该該给給打评評故它其此这這篇个個份段在上为為])*+\Z
""")
_SENTENCE_END = _compiled(r"""
    (?:(?<=\w\w\w)(?<!approx)(?<!etc)(?<!fig)(?<!vol)(?<!min)(?<!max)(?<!sec)|(?<=[0-9)\]”"’'*_]))
        [.!?]["'”’)\]*_]*+\s++
    |[。！？][”」』）]*+\s*+|\s*[\r\n]\s*
""")
EXPLANATION = _compiled(r"""
    \n[ \t*_#]*+(?:reason(?:ing)?|explanation|justification|rationale|이유|설명|근거|理由|説明|根拠|原因|解释|解釋|说明
    |說明)[ *_]*+[:：]
""")
"""What opens an explanation after the score."""
_NUMBER = re.compile(r"(?<![\w.,/:-])[0-9]++(?:\.[0-9]++)?(?![\w%/-]|[.,:][0-9])", re.ASCII)
_SCALE = _compiled(r"\b(?:scale|range) (?:of|from) [0-9]+ ?(?:to|-|–) ?[0-9]+|\b[0-9]+ ?(?:to|-|–) ?[0-9]+ scale")
_LISTED = re.compile(r"\s*[0-9]+[.)]\s")
_TOKEN = re.compile(r"[0-9]++(?:\.[0-9]++)?|[^\W\d_]++")
_MARKS = " \t\r\n*_.,;!()[]{}$。！"
_WHOLE = ("out_of", "full", "out_of_value", "full_value")
"""The groups of the scale's top beside a value."""


@dataclass(frozen=True, slots=True)
class Patterns:
    """How a score looks in prose: after or before what anchors it, alone, and bare; and what may `follow` it."""

    anchored: re.Pattern[str]
    ended: re.Pattern[str]
    alone: re.Pattern[str]
    bare: re.Pattern[str]
    follow: re.Pattern[str]
    qualifiers: re.Pattern[str]
    given_cjk: re.Pattern[str]
    heading: re.Pattern[str]


def patterns(mark: str, value: str, close: str, title: Sequence[str]) -> Patterns:
    """Return the patterns of a `value` with its unit and scale, given those of a `mark` and of what may `close` it."""
    texts = (
        f"{_BEFORE}{mark}{value}",
        f"(?<![0-9]){value}(?:(?<=[点점分點])|(?<=/[0-9])){_ENDING}",
        rf"\s*+{_CONNECTIVE}{mark}{value}{_COPULA}?(?:{close}|\s++[–—-]\s++(?![0-9]))",
        value,
        _AFTER,
        r"(?:\b(?:an?|the|my|its|final|overall|total|perfect|full|high|low|good|poor|fair|moderate|average|resulting"
        r"|corresponding|appropriate|TITLE)[\s*_]*)+\Z",
        _GIVEN_CJK,
        _HEADING,
    )
    words = "|".join(map(re.escape, title)) or "(?!)"
    return Patterns(*(re.compile(text.replace("TITLE", words), re.IGNORECASE) for text in texts))


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each sentence of folded text."""
    ends = [end.end() for end in _SENTENCE_END.finditer(text)]
    return [(a, b) for a, b in zip([0, *ends], [*ends, len(text)], strict=True) if text[a:b].strip()]


def find_score(
    text: str, spans: Sequence[tuple[int, int]], forms: Patterns, names: LabelIndex, judged: str
) -> re.Match[str]:
    """Return the match of the only score in the sentences at `spans` of folded text; it may be off the scale.

    Raises ParseError if there is none, or two, or if its sentence or the `judged` texts cast doubt on it.
    """
    matches = [(start, end, match) for start, end in spans for match in candidates(text, forms, names, start, end)]
    labels = {names.label(match["value"]) or match["value"] for _, _, match in matches}
    if len(labels) != 1:
        raise ParseError("two different scores" if labels else "no score", text)
    for start, end, match in matches:
        if match.re is not forms.alone:
            _check(text[start : match.start()], match, text[match.end() : end], forms, names)
    # The judged texts may not give the same score; for a score without an anchor, they may not even contain it.
    match, alone = matches[-1][2], matches[-1][2].re is forms.alone
    plain = not re.search(r"\w", match[0][match.end("value") - match.start() :])
    judged = fold(judged)
    contained = (
        item
        for item in forms.bare.finditer(judged)
        if any(item[name] for name in _WHOLE) or (alone and (plain or item.end() > item.end("value")))
    )
    if any(names.label(item["value"]) in labels for item in (*candidates(judged, forms, names), *contained)):
        raise ParseError("a score that the judged text contains as well", text)
    return match


def candidates(
    text: str, forms: Patterns, names: LabelIndex, start: int = 0, end: int = sys.maxsize
) -> Iterator[re.Match[str]]:
    """Yield what could be the score in `text[start:end]`, which is folded."""
    # A first line may begin with the number of a list; braces are the rest of an object.
    listed = end < len(text) and _LISTED.match(text, start)
    if (alone := forms.alone.match(text, start, end)) and not listed and not re.search("[{}]", alone[0]):
        yield alone
        start = alone.end()
    for form in (forms.anchored, forms.ended):
        for match in form.finditer(text, start, end):
            written, groups = match["value"], match.groupdict()
            if groups.get("fraction") and not (groups["out_of_value"] and "/" in match[0]):
                continue
            if groups.get("verb") and not (
                any(map(groups.get, _WHOLE)) or "star" in match[0] or re.search(r"\s(?:an?|of)\b", groups["verb"])
            ):
                continue
            if len(written) > 1 or not written.isalpha() or names.labels.get(names.key(written), written) == written:
                yield match  # an article is not the label A


def gives(judged: str, label: str, forms: Patterns, names: LabelIndex) -> bool:
    """Return whether a judged text gives a label as if it were its score."""
    return any(names.label(match["value"]) == label for match in candidates(fold(judged), forms, names))


def repeats(reply: str, judged: str) -> bool:
    """Return whether a reply ends with words, and a score among them, that the judged texts contain in that order."""
    words, ending = (" ".join(["", *_TOKEN.findall(fold(text).casefold()), ""]) for text in (judged, reply))
    last = ending.split()[-5:]
    return words == ending or (len(last) == 5 and f" {' '.join(last)} " in words)


def _check(before: str, match: re.Match[str], after: str, forms: Patterns, names: LabelIndex) -> None:
    """Raise ParseError if a match is not plainly the score, given its sentence `before` and `after` it."""
    groups, at = match.groupdict(), match.start("value") - match.start()
    mark = max(_CLAUSE.finditer(before), key=re.Match.end, default=None)
    clause = before[mark.end() :] if mark else before
    verb, noun = groups.get("verb"), groups.get("noun")
    if (
        (noun and not _GIVEN.search(forms.qualifiers.sub("", clause)))
        or (noun and not groups["link"] and (groups["name"] or re.search(r"\w\W*\Z", clause)))
        or (verb and not re.match(r"\w+ing\b", verb) and not _SUBJECT.search(_ADVERB.sub("", clause)))
        or ((groups.get("cjk") or match.re is forms.ended) and not forms.given_cjk.match(clause))
        or (verb and _GENERIC.match(clause))
        or (mark and mark[0] in ":：–—" and not forms.heading.match(before, 0, mark.start()))
        or (groups.get("fraction") and after.strip(_MARKS))
        or (match.re is forms.anchored and not forms.follow.match(after))
    ):
        raise ParseError("a number that may be something else", match.string)
    if _CONDITION.search(before) or _UNSURE.search(clause) or _TAKEN_BACK.search(match[0][at + 1 :] + after):
        raise ParseError("a score with a condition or a doubt", match.string)
    if _OTHER.search(before) or any(names.label(number) for number in _NUMBER.findall(_SCALE.sub("", after))):
        raise ParseError("two numbers that could be the score", match.string)
