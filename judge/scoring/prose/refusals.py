"""Find sentences in which a judge refuses to evaluate: "I cannot rate this.", "評価できません。".

A score beside such a sentence contradicts it. The sentence must be about the whole text: "I cannot
judge the price" and "無法判断日期" are reasons, and so is "I cannot rate it higher".
"""

from __future__ import annotations

import re

# One of these is in every refusal below: most replies have none, and need no pattern.
_KEYWORDS = (
    "can't", "can’t", "cannot", "can not", "could not", "couldn", "able to", "possible to",
    "refuse", "decline", "enough information", "can be", "won't", "won’t", "will not",
    "not possible", "impossible",
    "でき", "かね", "不可", "不能", "困難", "難し", "られません", "られない",
    "수 없", "수는 없", "수가 없", "불가", "어렵", "无法", "無法", "没法", "难以", "難以", "没办法", "沒辦法",
    "不予", "拒绝", "拒絕",
    "nicht", "pas", "puedo", "posible",
)  # fmt: skip

_TEXT_EN = (
    r"(?:this|it|that|(?:the|this|your|these|those)\s+(?:\w+\s+)?"
    r"(?:text|summary|response|answer|output|translation|reply|essay|submission|request"
    r"|content|texts|summaries|responses|answers))"
)
_SCORE_EN = (
    r"(?:an?\s+|any\s+)?(?:(?:final|fair|reliable|meaningful|numeric(?:al)?|valid|overall)\s+)?"
    rf"(?:score|rating|grade|evaluation|assessment|judge?ment)(?:\s+(?:for|to|of)\s+{_TEXT_EN})?"
)
_ADVERB_EN = (
    r"(?:(?:properly|fairly|reliably|really|accurately|actually|meaningfully)\s+)?"
)
_VERB_EN = (
    rf"(?:(?:evaluate|rate|score|judge|assess|grade)(?:\s+{_TEXT_EN})?"
    rf"|(?:give|provide|assign|offer|make)\s+(?:{_TEXT_EN}\s+)?{_SCORE_EN}"
    rf"|(?:help|assist|comply)\s+with\s+{_TEXT_EN}"
    r"|(?:complete|perform|fulfil?l)\s+(?:this|that|the|your)\s+"
    r"(?:evaluation|assessment|rating|task|request)"
    r"|answer|say|tell)"
)
_UNABLE_EN = (
    r"(?:cannot|can['’]t|can\s+not|unable\s+to|not\s+able\s+to|impossible\s+to)"
)
# The end of the clause, or why: not "I cannot rate it higher", "I cannot give it a score of 5"
_END_EN = (
    r"(?=[^\S\n]*+(?:[.!,;:)\n—–-]|\Z)"
    r"|\s++(?:because|since|without|due|based|at\s+all|properly|fairly|reliably|accurately"
    r"|as\s+(?:there|it|the|no|an?|I))\b)"
)
_ENGLISH = (
    r"(?:\bI\s+(?:(?:am|was|must|have\s+to|simply|really)\s+)?|\bI['’]m\s+"
    r"|(?:\A|[.!?\n(,;:—–-])\s*)"
    rf"(?:{_UNABLE_EN}|could\s+not|couldn['’]t|won['’]t|will\s+not|refuse\s+to|decline\s+to"
    r"|do(?:n['’]t|\s+not)\s+have\s+enough\s+information\s+to"
    r"|it(?:\s+is|['’]s)\s+(?:im|not\s+)possible\s+to)"
    rf"\s+{_ADVERB_EN}{_VERB_EN}{_END_EN}"
    r"|\bthere\s+is(?:n['’]t|\s+not)\s+enough\s+information\s+to"
    rf"\s+(?:evaluate|rate|score|judge|assess|grade)(?:\s+{_TEXT_EN})?{_END_EN}"
    r"|(?:\A|[.!?\n:])\s*(?:an?\s+)?(?:evaluation|assessment|rating|score)"
    rf"\s+is\s+(?:im|not\s+)possible{_END_EN}"
    rf"|(?:\b{_TEXT_EN}\s+|(?:\A|[.!?\n:])\s*)(?:cannot|can['’]t|could\s+not)\s+be\s+{_ADVERB_EN}"
    rf"(?:evaluated|rated|scored|judged|assessed|graded){_END_EN}"
    r"|\bno\s+(?:score|rating|grade|evaluation)\s+can\s+be\s+(?:given|assigned|made)\b"
    rf"|\bas\s+an\s+AI\b[^.,\n]*+,?\s+I\s+(?:am\s+)?{_UNABLE_EN}\b"
)
_TEXT_JA = (
    r"(?:(?:この|その|本|当該|これらの)?(?:要約文?|文章|テキスト|回答文?|応答|返答|翻訳文?|訳文|出力文?|作文"
    r"|内容|文)|これ|それ)"
)
_JAPANESE = (
    r"(?:\A|[\n。.!?、,:(]|(?:[すん]が|[でめら])、?)\s*(?:(?:ただし|しかし|なお|私に?は)、?)?"
    rf"(?:{_TEXT_JA}(?:は|を|については?|に関して)?)?\s*"
    r"(?:(?:採点|評価|判断|判定|回答)(?:する)?(?:こと)?[はをが]?\s*"
    r"(?:でき(?:ない|ません|かね)|不能|不可|[い致]たしかね|致しかね|しかね|困難|難し)"
    r"|(?:点数|スコア|評価)[はを]?(?:(?:付け|つけ|出せ|与え)(?:られ)?(?:ない|ません)"
    r"|(?:付け|つけ|出す|与え)る?ことは?でき(?:ない|ません))"
    r"|お答え(?:は|することは)?(?:でき(?:ない|ません|かね)|しかね|いたしかね))"
    r"(?:ます|る|い|能)?(?:でした|です|だ|である)?(?=\s*(?:[。.!、,)\n]|\Z|ため|ので|が))"
)
_TEXT_KO = r"(?:(?:이|본|해당|주어진|제시된)\s*)?(?:요약문?|글|텍스트|응답|답변|답안|번역문?|문장|출력물?|결과물|내용)"
_KOREAN = (
    r"(?:\A|[\n.!?,:(]|[만서여어아니]|므로)\s*(?:저는|제가)?\s*"
    rf"(?:(?:{_TEXT_KO}|이것)(?:[은는을를]|에\s*대해(?:서)?|에\s*대한)?)?\s*"
    r"(?:(?:평가|판단|채점|답변|대답)[은는을를이가]?\s*(?:할|드릴|해\s*드릴|진행할)\s*수(?:는|가)?\s*없"
    r"|(?:평가|판단|채점)(?:하기|[은는이가])?\s*(?:어렵|불가)"
    r"|점수를?\s*(?:매길|줄|드릴|부여할)\s*수(?:는|가)?\s*없)"
    r"(?:능합니다|능하다|능|합니다|습니다|었습니다|어요|음|다)?(?=\s*(?:[.!,)\n]|\Z))"
)
_TEXT_ZH = (
    r"(?:(?:该|這|这|此|本|上述)?[篇段个個]?"
    r"(?:摘要|概要|总结|文章|文本|短文|回答|回复|回覆|答案|译文|翻译|输出|作文|内容|內容|问题|問題)|它|其)"
)
_CHINESE = (
    rf"(?:\A|[\n。.!?,、:;(]|因此|所以|但|我)\s*(?:{_TEXT_ZH}(?!..回答)|我|目前|暂时|实在)?\s*"
    r"(?:无法|無法|不能|难以|難以|没法|没办法|沒辦法|不予|拒绝|拒絕)"
    rf"(?:[对對为為给給]{_TEXT_ZH})?(?:进行|進行|[做作给給打]出|给|給)?(?:有效|准确|客观|合理)?的?"
    r"(?:评价|評價|评估|評估|评分|評分|打分|判断|判斷|评判|評判|回答|分数)"
    rf"{_TEXT_ZH}?了?(?=\s*(?:[。.!,;)\n]|\Z))"
)
_OTHERS = (
    r"\b(?:ich\s+kann|kann\s+ich)\b[^.,;\n]{0,40}\bnicht\s+(?:bewerten|beurteilen|beantworten)\b"
    r"|\b(?:ne\s+peux|peux)\s+pas\s+(?:évaluer|juger|noter|répondre)\b"
    r"|\bno\s+(?:puedo|es\s+posible)\s+(?:evaluar|juzgar|calificar|responder)\w*"
)
# "The bot answers: I can't help with that.": not the judge's own words
_REPORTED = re.compile(
    r"\b(?:says|said|answers|answered|replies|replied|responds|responded|states|stated|claims"
    r"|writes|wrote|explains|admits)(?:\s+that)?\W*\Z",
    re.IGNORECASE,
)
_LONGEST_REPORT = 30
"""Characters before a refusal that may say whose words it is."""
_SPACE = re.compile(r"\s++")
_REFUSAL = re.compile(
    "|".join((_ENGLISH, _JAPANESE, _KOREAN, _CHINESE, _OTHERS)), re.IGNORECASE
)


def may_refuse(text: str) -> bool:
    """Return whether a text has a word that every refusal has."""
    lower = text.lower()
    return any(keyword in lower for keyword in _KEYWORDS)


def refuses(text: str) -> bool:
    """Return whether a folded text without quotations refuses to evaluate."""
    # The patterns take white space in many ways: a long run of line breaks would need hours.
    spaced = _SPACE.sub(_shortest_space, text)
    for refusal in _REFUSAL.finditer(spaced):
        report_start = max(0, refusal.start() - _LONGEST_REPORT)
        text_before = spaced[report_start : refusal.start()]
        if not _REPORTED.search(text_before):
            return True
    return False


def _shortest_space(space: re.Match[str]) -> str:
    """Return one line break for white space that has one, else one space."""
    return "\n" if "\n" in space[0] else " "
