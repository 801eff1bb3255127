"""How a Korean sentence gives a score: "오류가 없으므로 이 요약에 5점을 부여합니다.".

"It has no errors, so I give this summary 5 points." `SENTENCE` describes its parts:

    a reason        오류가 없       anything but `_CONDITION`, `_OTHERS` and `_OTHER_QUALITY`
    `_CLAUSE_END`   으므로
    `_LEAD_IN`      이 요약에       from `_ADVERB`, `_SPEAKER`, `_SCORE_NOUN`, `_THE_TEXT`, …
    SCORE           5점
    `_ENDING`       을 부여합니다   here from `_SCORE_VERB`
    `_AFTER_SCORE`  .

The reason may be missing. Another word in the lead-in or the ending refuses the sentence, so that a
new phrase is one more alternative in one of these lists. `PREFERENCES` compare two texts, and
`IS_LABEL` is for labels that are words. `Grammar` explains SCORE, TITLE and the fields.
"""

from __future__ import annotations

from dataclasses import replace

from judge.scoring.prose import reasons
from judge.scoring.prose.language import Grammar

# "요약" (summary), "글" (text), "답변" (answer)
_TEXT_NOUN = (
    r"(?:요약문?|요약본|글|텍스트|응답|답변|답안|번역문?|번역|문장|출력물?|결과물|문구|에세이"
    r"|제목)"
)
# "이 요약" (this summary), "해당 글" (the text), "생성된 번역" (the generated translation)
_THE_TEXT = rf"(?:(?:이|본|해당|위|주어진|제시된|이번)\s*+)?(?:생성된\s*+)?{_TEXT_NOUN}"
# "점수" (score), "최종 평가" (final evaluation)
_SCORE_NOUN = (
    r"(?:(?:최종|종합|전체|총|평가|종합적인|최종적인)\s*+)*"
    r"(?:점수|평점|별점|총점|총평|스코어|평가(?:\s*점수)?|등급|판정|결론|결과|답|정답)"
)
# "생각합니다" (I think), "판단됩니다" (it is judged)
_OPINION = (
    r"(?:생각합니다|생각한다|판단합니다|판단한다|판단됩니다|봅니다|본다|평가합니다|평가한다"
    r"|사료됩니다|여깁니다|느낍니다)"
)
# What makes a verb of a noun, so that it states what is done: "평가(합니다)" (I evaluate). Questions,
# wishes, orders, "주기에는" (in order to give) and "주기 어렵다" (hard to give) are not here.
_VERB_ENDING = (
    r"(?:합니다|한다|함|해요|했습니다|하였습니다|했음|하겠습니다|하겠음|하겠어요|할게요"
    r"|하고자\s*합니다|하기로\s*했습니다|하기로\s*합니다|됩니다|된다)"
)
# "4점을 줍니다" (I give it 4), "줄 수 있습니다" (I can give)
_GIVES = (
    r"(?:줍니다|준다|줌|줘요|줬습니다|주었습니다|주겠습니다|주겠음|주겠어요|줄게요|주고자\s*합니다"
    r"|주기로\s*(?:했습니다|합니다)|줄\s*수\s*있습니다|줄\s*수\s*있다|줄\s*수\s*있겠습니다"
    r"|줄\s*만합니다)"
)
# The polite form of the same: "4점 드립니다"
_GIVES_POLITELY = (
    r"(?:드립니다|드리겠습니다|드렸습니다|드릴게요|드리고자\s*합니다|드려요)"
)
# "4점을 매깁니다" (I mark it)
_MARKS = (
    r"(?:매깁니다|매긴다|매김|매겼습니다|매기겠습니다|매길게요|매기고자\s*합니다"
    r"|매길\s*수\s*있습니다)"
)
# The text as the subject: "4점을 받습니다", "4점을 받을 만합니다"
_RECEIVES = (
    r"(?:받습니다|받는다|받았습니다|받게\s*됩니다|받을\s*만합니다|받을\s*만하다"
    r"|받을\s*자격이\s*있습니다|받아\s*마땅합니다|얻습니다|얻게\s*됩니다|획득합니다|기록합니다)"
)
# All of these, and nouns with 하다: "4점을 부여합니다"
_SCORE_VERB = (
    rf"(?:{_GIVES}|{_GIVES_POLITELY}|{_MARKS}|{_RECEIVES}"
    rf"|(?:부여|평가|책정|채점|산정|판정|결정|선정|제시|판단|확정){_VERB_ENDING})"
)
# "4점이 적절합니다" (4 is fair), "4점이 타당하다고 생각합니다" (I think that 4 is right)
_FITTING = (
    r"(?:적절|적당|타당|적합|합당|마땅|정당|합리적|알맞|충분)"
    rf"(?:합니다|하다|함|해요|입니다|이다|습니다|하다고\s*{_OPINION}"
    rf"|다고\s*{_OPINION}|이라고\s*{_OPINION})"
)
# What follows the score and asserts it; nothing may follow as well: "점수: 4점"
_ENDING = (
    # "4점입니다"
    r"(?:(?:입니다|이다|이에요|예요|임|이라\s*하겠습니다)"
    # "4점이라고 생각합니다", "4점이라고 평가합니다"
    rf"|(?:이라고|라고|이라)\s*+(?:{_OPINION}|(?:평가|판단){_VERB_ENDING})"
    # "4점으로 판단합니다", "4점으로 하겠습니다"
    r"|(?:으로|로)\s*+"
    rf"(?:{_OPINION}|(?:평가|판단|책정|채점|산정|매김|결정|판정|확정|정){_VERB_ENDING}|{_MARKS}"
    rf"|{_VERB_ENDING}|하겠습니다)"
    # "4점을 부여합니다", "4점의 점수를 줍니다"
    rf"|(?:을|를)?\s*+(?:(?:점수|평점|평가)(?:를|을)?\s*+)?{_SCORE_VERB}"
    rf"|의\s*+(?:점수|평점|평가)(?:를|을)?\s*+{_SCORE_VERB}|의\s*+(?:점수|평점)(?:입니다|이다)"
    # "4점을 주는 것이 적절합니다", "4점이 적절합니다"
    rf"|(?:을|를)\s*+(?:부여하는|주는|매기는|드리는)\s*+것이\s*+{_FITTING}"
    rf"|(?:이|가)\s*+{_FITTING})?"
)
# "저는" (I), "평가자로서" (as a rater)
_SPEAKER = r"(?:저는|제가|나는|내가|저의|제|나의|내|저희는|우리는|평가자로서)"
# Particles after the text: "이 요약에는", "이 글에 대해서는"
_PARTICLE = r"(?:에게는|에게|에는|에\s*대해(?:서)?(?:는)?|에\s*대한|에\s*대하여|은|는|의|에|을|를|이|가)"
# "따라서" (therefore), "종합적으로 볼 때" (all in all), "이러한 점을 고려하여" (considering this)
_ADVERB = (
    r"(?:따라서|그러므로|그래서|그렇기\s*때문에|고로|결론적으로(?:는)?|결국"
    r"|종합적으로(?:\s*(?:볼|보았을)\s*때)?|종합하면|종합해(?:서)?(?:\s*보면)?|전반적으로"
    r"|전체적으로|최종적으로|최종|이에(?:\s*따라)?|이런\s*이유로|이러한\s*이유로"
    r"|이러한\s*점에서|이런\s*점에서|이를\s*(?:종합하여|종합해|고려하여|고려해|바탕으로|토대로)"
    r"|이러한\s*점(?:들)?을\s*(?:종합하여|종합해|고려하여|고려해|바탕으로)|이상을\s*종합하여"
    r"|모든\s*것을\s*고려하여|모두\s*고려하여|위의?\s*이유로|평가\s*결과|결과적으로|총평하자면"
    r"|그리하여|하여|총|저의\s*평가는|제\s*평가는|결론은|결론|평가는|종합\s*평가)"
)
# The criterion: "일관성은", "일관성 측면에서는"
_TITLE_WORDS = (
    r"TITLE"
    r"(?:은|는|의|에\s*대해(?:서)?(?:는)?|에\s*대한"
    r"|\s*(?:측면|면|기준|항목|부분)(?:에서(?:는)?|으로(?:는)?|의|은|는)|에서는?"
    r"|\s*점수(?:는|로|를|은)?|을|를|이)?"
)
# Any number of the words above: "따라서 저는 이 요약의 일관성에"
_LEAD_IN = (
    r"[\s\W]*+"
    rf"(?:(?:{_ADVERB}|{_SPEAKER}|{_THE_TEXT}\s*+{_PARTICLE}?|(?:이것|이)(?:은|는|에)"
    rf"|{_SCORE_NOUN}\s*+(?:으로는|으로|로는|로|는|은|를|을|:)?|{_TITLE_WORDS})"
    r"(?:[\s,:]++|\Z))*+"
    r"[\s\W]*+"
)
# What ends a reason before the score: "오류가 없으므로" (as), "명확하고" (and), "누락이 있기 때문에,"
# (because). In 최고, 참고, 원고, 보고 and 광고, the 고 belongs to a noun.
_CLAUSE_END = (
    r"(?:(?:[가-힣](?:으므로|므로)"
    r"|[가-힣]+"
    r"(?:어서|아서|여서|해서|라서|워서|려서|져서|나서|으니|니까|기에|기\s*때문에"
    r"|[기한은는인던]\x20때문에|지만|으나|는데|은데|인데|한데"
    r"|(?<!최)(?<!참)(?<!원)(?<!보)(?<!광)고|며|면서도|어|아|해|여|워|므로))"
    r"[,\s]\s*+"
    r"|[가-힣]때문에[,\s]\s*+|,\s*+)"
)
# What makes the score depend on something, or be somebody else's wish: "날짜가 맞으면 4점", "4점을 주세요"
_CONDITION = (
    # If, even if, unless, without
    r"(?:면(?:[\s,]|\Z)|(?:다|라|자)면|더라도|라도\b|어야|아야|해야|여야|려면|도록"
    r"|없이(?:는)?[\s,]|만약|만일|혹시|가정|았더|었더|했더|였더|더라면|경우(?:에는|엔|라면)?"
    r"|한다고\s*(?:해도|쳐도)"
    # Instead of another score
    r"|아니라|대신"
    # Wishes, intentions and doubts
    r"|려고|으려|고\s*싶|을까|을지|는지|ㄹ지|모르"
    # Orders and somebody else's words
    r"|달라"
    r"|주세요|시오|하라|[해줘]라|라고|다고|자고|냐고|요구|지시|명령|부탁|원하|바라|바란|적혀"
    r"|쓰여|써\s*있|인용|따르면|의하면"
    # Guesses and limits, but not 물 흐르듯 (like flowing water)
    r"|뻔|(?<!흐르)듯|것\s*같|아마|어쩌면|최대|최고|최소"
    # Former and usual scores, but not 처음부터 (from the beginning)
    r"|예전|이전"
    r"|원래|처음(?!부터)|본래|보통|일반적|대개|흔히"
    # Hesitation and comparison
    r"|망설|고민|아쉽게도\s*못|반대로|달리|비해|보다"
    # "예를 들어 4점", but not "예를 들어 날짜가 없어 4점"
    r"|(?:예|예시|보기|사례|비유)(?:[를을로]|\s)*(?:하나\s*)?들[가-힣]*[\s,]*\Z|상상|흉내"
    # "4점, 아니, 3점"
    r"|(?:\A|,)\s*아니,?\s*\Z)"
)
# Who or what else may have a score: "원문" (the source), "학생" (a student), "경기" (a match). Not if
# the text is compared with it or has a part of it: "원문의 핵심".
_OTHERS = (
    r"(?:원문|원본|원글|참조|참고|정답|기사|출처|작가|저자|글쓴이|독자|사용자|평론가|비평가"
    r"|심사위원|평가자들|다른|상대|경쟁|두\s*번째|첫\s*번째|학생|선생|교사|영화|경기|시험|팀"
    r"|선수|게임|책|호텔|사람|그는|그녀|누군가|모델\s*[A-Z]|시스템|이전|기존)"
    r"(?!과\s*비교|에\s*없|에\s*있|의\s*(?:핵심|주요|내용)|에서|의\s|과\s|와\s|을\s|를\s|에\s|을\b"
    r")"
)
# The score of another criterion: "유창성은", "문법 측면에서"
_OTHER_QUALITY = (
    r"(?!TITLE)"
    r"(?:유창성|일관성|응집성|관련성|정확성|간결성|문법|문체|가독성|사실성|충실성|완결성|창의성"
    r"|명확성|유용성|안전성|표현력|자연스러움|구조)"
    r"(?:은|는|의\s*점수|\s*점수|\s*(?:측면|면|항목|부분)(?:에서|은|는))"
)
# "4점.", "4점(…)", "4점입니다. …"
_AFTER_SCORE = r"[\s.!)\]。]*+\Z|\s*+\(|[.。]\s"

SENTENCE = Grammar(
    # "오류가 없으므로 이 요약에 5점을 부여합니다."
    assertion=rf"(?<![0-9][.,/])(?<![0-9./~〜<≤≥≈≠±-])SCORE\s*+{_ENDING}(?![가-힣0-9%/+~〜-])",
    lead=_LEAD_IN,
    clause=_CLAUSE_END,
    doubt=rf"{_CONDITION}|(?:\A|[,\s]){_OTHERS}|{_OTHER_QUALITY}",
    after=_AFTER_SCORE,
    says_so="[가-힣]",
    doubt_after=reasons.DOUBT,
)
GRAMMARS = (SENTENCE,)

# "A보다" (than A), "글 A보다"
_THAN = rf"(?:{_TEXT_NOUN}\s*+)?[A-Z]보다"
# "더" (more), "훨씬" (much)
_BY_HOW_MUCH = r"(?:(?:더|훨씬|조금|약간)\s*+)*+"
_PREFERRED = replace(
    SENTENCE,
    # "글 B가 더 좋습니다.", "A보다 B가 낫습니다.", "B 쪽이 A보다 낫습니다.", "B를 선택합니다.", "더 좋은 글은 B입니다."
    assertion=(
        rf"(?:(?P<better>더\s*+(?:좋은|나은|우수한)\s*+{_TEXT_NOUN}[은는]\s*+)|(?:{_THAN}\s*+)?)SCORE"
        rf"(?(better)(?:입니다|이다)|(?:\s*+쪽)?+(?:[이가은는]\s*+{_THAN}|[이가은는을를]?)\s*+{_BY_HOW_MUCH}"
        rf"(?:(?:좋|낫|우수하|뛰어나)다고\s*+{_OPINION}|좋습니다|좋다|낫습니다|낫다|우수(?:합니다|하다)"
        rf"|뛰어(?:납니다|나다)|(?:좋은|나은|우수한|뛰어난)\s*+{_TEXT_NOUN}(?:입니다|이다)"
        r"|(?:선택|선호)(?:합니다|한다|하겠습니다)))(?![가-힣])"
    ),
)
_OTHER_IS_WORSE = replace(
    SENTENCE,
    # "B가 A보다 못합니다.", "B는 A만큼 좋지 않습니다."
    assertion=(
        rf"(?:{_TEXT_NOUN}\s*+)?[A-Z][이가은는]\s*+(?:{_TEXT_NOUN}\s*+)?SCORE"
        rf"(?:보다\s*+{_BY_HOW_MUCH}(?:못(?:하다|합니다)|나쁩니다|나쁘다|떨어집니다|떨어진다|부족합니다)"
        r"|만큼\s*+좋지\s*+(?:않습니다|않다|못합니다|못하다))(?![가-힣])"
    ),
)
_TIED = replace(
    SENTENCE,
    # "A와 B는 비슷합니다.", "둘 다 똑같이 좋습니다."
    assertion=(
        rf"(?:(?:{_TEXT_NOUN}\s*+)?A[와과]\s*+(?:{_TEXT_NOUN}\s*+)?B|둘|두\s*+{_TEXT_NOUN})"
        r"[은는이가]?\s*+(?:모두|다)?\s*+(?:거의|서로)?\s*+SCORE(?:합니다|하다|입니다|이다)?(?![가-힣])"
    ),
)
PREFERENCES = (_PREFERRED, _OTHER_IS_WORSE, _TIED)

# "적합하다", "통과했습니다", "불합격 처리합니다": not "적합하지 않다", "통과해야 합니다"
LABEL_VERB = (
    rf"(?:\s*+(?:처리)?{_VERB_ENDING}|하다|했다|했어요|되었습니다|됐습니다|됨|시킵니다|다"
    rf"|하?다고\s*{_OPINION}|한\s*것으로\s*(?:{_OPINION}|(?:평가|판단){_VERB_ENDING})"
    r")(?![가-힣])"
)
# For scales whose labels are words: "이 글은 적합합니다.", but not "실패했습니다." alone, which may
# tell of what the text is about.
IS_LABEL = replace(
    SENTENCE,
    assertion=rf"(?<=[가-힣,:]\s)(?=[가-힣])SCORE{LABEL_VERB}(?![0-9%/+~〜-])",
    clause=r"(?!)",
)
