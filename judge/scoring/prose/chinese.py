"""How a Chinese sentence gives a score: "内容完整，因此我给这篇摘要打5分。".

"It is complete, so I give this summary 5 points." `SENTENCE` describes its parts:

    a reason        内容完整        anything but `_CONDITION`, `_OTHERS` and `_OTHER_QUALITY`
    `_CLAUSE_END`   ，
    `_LEAD_IN`      因此我给这篇摘要打  `_ADVERB`, `_SPEAKER`, … and at last one `_SCORE_VERB`
    SCORE           5分
    `_ENDING`       (的评价)
    `_AFTER_SCORE`  。

The reason may be missing. Another word in the lead-in or the ending refuses the sentence, so that a
new phrase is one more alternative in one of these lists. `PREFERENCES` compare two texts.
`Grammar` explains SCORE, TITLE and the fields.
"""

from __future__ import annotations

from dataclasses import replace

from judge.scoring.prose import reasons
from judge.scoring.prose.language import Grammar

# Most words are here in simplified and in traditional characters: "摘要", "總結".
_TEXT_NOUN = (
    r"(?:摘要|概要|总结|總結|文章|文本|文段|短文|回答|回复|回覆|答案|译文|譯文|翻译|翻譯|输出|輸出"
    r"|作文|标题|標題|本文)"
)
# "这篇摘要" (this summary), "该生成的回答" (the generated answer)
_THE_TEXT = (
    r"(?:(?:这|這|该|該|此|本|上述|所给)\s*+(?:一?[篇段个個份条條则則])?\s*+)?"
    rf"(?:生成的)?{_TEXT_NOUN}"
)
# "最终得分" (final score), "我的评分结果" (the result of my rating)
_SCORE_NOUN = (
    r"(?:(?:最终|最終|最后|最後|综合|綜合|总体|總體|整体|整體|总|總|我的?|其|它的)\s*+)*(?:的)?"
    r"(?:得分|评分|評分|分数|分數|打分|给分|給分|评价|評價|总分|總分|成绩|成績|评估|評估|评级|評級"
    r"|判定|结论|結論|答案|结果|結果|评定|評定)(?:结果|結果)?"
)
# "我", "我们给出的", "好的" (all right)
_SPEAKER = r"(?:我(?:们|們)?(?:个人|個人)?(?:(?:给出|給出|打|评|評)?的)?|好的)"
# "认为" (think), "认为应" (think that it should, before a verb), "的看法是" (my view is)
_OPINION = (
    rf"(?:(?:认为|認為|觉得|覺得)(?:(?:{_THE_TEXT})?[应應](?=[打给給评評得获獲为為]))?"
    r"|判断|判斷|决定|決定|相信|的(?:看法|结论|結論|判断|判斷)是)"
)
# "会", "将" (will), "只能" (can only)
_INTENTION = (
    r"(?:会|會|将|將|可以|可|就|便|只能|只|仍|最终|最終|最后|最後|特此|综合|綜合|直接)"
)
# Verbs that give a score: "给出" (give), "评为" (rate as), "得" (get). "应给", "该给" (ought to give) and
# "能给" (could give) are not here.
_GIVES = (
    r"(?:[给給](?:出了?|予了?|了)?|打了?|打出|评[为為]?|評[为為]?|评定[为為]?|評定[为為]?"
    r"|评分[为為]?|評分[为為]?|打分[为為]?|记[为為]?|記[为為]?|定[为為]|判[为為]?|授予|赋予|賦予"
    r"|评出|評出|应得|應得|获得|獲得|得到|得分?[为為]?|得了|获|獲|获评|值得|可得|归[为為]|予以)"
)
# "(给)它" (it), "(给)这篇摘要的"
_RECEIVER = rf"(?:\s*+(?:它|其|{_THE_TEXT})(?:的)?)?"
# "给这篇摘要打了" (gave this summary), "给它的评分为" (its rating is), "是" (is), ":"
_SCORE_VERB = (
    rf"(?:{_GIVES}{_RECEIVER}(?:{_SCORE_NOUN})?(?:\s*+(?:打|评|評|记|打出|[为為])(?:了)?)?"
    rf"|[给給對对为為]{_RECEIVER}(?:打|评|評|打出|打分|评分|評分)(?:了|[为為])?|[为為是:]|[为為]其打)"
)
# "(4分)是合适的" (is appropriate), "(4分)比较合理" (is rather fair)
_FITTING = r"(?:合适|合適|恰当|恰當|合理|适当|適當|公允)"
# What may follow the score: "4分的评价" (a rating of 4), "4分吧", "4分是合适的"
_ENDING = (
    r"(?:(?:的)(?:评价|評價|评分|評分|分数|分數|成绩|成績|得分|高分|评估|好评)|[吧了]"
    rf"|(?:是|比较|較為|较为){_FITTING}的|(?:比较|較為|较为)?{_FITTING}"
    # "是合格的"
    r"|(?<=[一-龥])(?<!分)的)?"
)
# "因此" (therefore), "总的来说" (all in all), "基于以上理由", "在一致性方面" (as to the criterion)
_ADVERB = (
    r"(?:因此|所以|故而?|因而|从而|從而|于是|於是|由此|据此|據此|综上(?:所述)?|綜上(?:所述)?"
    r"|总之|總之|总而言之|總而言之|总的来说|總的來說"
    r"|总体(?:而言|来说|来看|上)?|總體(?:而言|來說|來看|上)?"
    r"|整体(?:而言|来说|来看|上)?|整體(?:而言|來說|來看|上)?"
    r"|综合(?:来看|考虑|考量|以上|来说|評估|评估)?|綜合(?:來看|考慮|考量|以上|來說|評估)?"
    r"|最终|最終|最后|最後|结论(?:是)?|結論(?:是)?"
    r"|基于(?:此|以上)?(?:原因|理由)?|基於(?:此|以上)?(?:原因|理由)?"
    r"|鉴于此|鑑於此|为此|為此|以上"
    r"|在(?:这|這|此|该|該)?(?:方面|项|項|标准|標準)(?:上|下)?"
    r"|TITLE(?:的)?(?:方面|上|维度|維度|项|項)?(?:的)?)"
)
# "因此,我认为该摘要的得分为", in any order
_LEAD_IN = (
    rf"[\s\W]*+(?:(?:{_ADVERB}|{_SPEAKER}|{_OPINION}|{_INTENTION}|{_SCORE_NOUN}"
    rf"|{_THE_TEXT}(?:的|在|上)?|这里|這裡|其|它|的)[\s,，、:]*+)*+"
    rf"(?:{_SCORE_VERB})?[\s:]*+[\s\"*]*+"
)
# The comma of "内容完整,因此给4分", and "因此" without one before it.
_CLAUSE_END = r"[,，;；]\s*+|(?:因此|所以|因而|故)(?=[我给給打评評得此该該可会會]|[0-9一二三四五六七八九十])"
# "如果" (if), "再补充" (once more is added), "应该" (ought to), "最多" (at most), "之前" (before)
_CONDITION = (
    r"(?:如果|若(?!干)|(?<!摘)要是|假如|假设|假設|倘|只要|只有|除非|否则|否則|的话|的話|即使|即便"
    r"|(?:\A|[,，;；])\s*(?:再|把|将|將|先)?(?:补|補|加上|添|增加|改[好正成为為短掉了]|修[改正复]"
    r"|删|刪|去掉|缩短|縮短|换成|換成)|遵照|依照|遵循|哪怕|就算|一旦|如能|能够?[再更]|等到"
    r"|待[其它]|再(?:加|多|补|短)|本可|本该|本應|本应|本来|本來|原本|原可|应该|應該|应当|應當|最好"
    r"|希望|但愿|想要?|愿意|打算|考虑(?:给|給|打)"
    # A request, but not "符合要求" (meets the requirements)
    r"|(?<!符合)(?<!达到)(?<!達到)要求|指示|命令|(?<![了绝絕])[请請]|让我|讓我|写道|写着|寫道|寫著|说[:：，,]|声称|聲稱|自称|自稱|据说|据称"
    r"|引用|按照|根据(?:作者|原文|指令|要求|评分标准)|评分标准|評分標準|(?<![尽盡])可能|也许|也許|或许|或許"
    # A guess, but not "简约" (concise) and "几乎没有" (there is hardly any)
    r"|大概|大约|大約|(?<![简簡])约|最多|至多|最高|至少|差一点|差點"
    r"|[几幾]乎(?![没沒无無完全])|犹豫|猶豫|怀疑|懷疑|难以|難以"
    r"|不代表|并非|並非"
    # "4分，不对，3分", but not "日期不对，3分"
    r"|(?:\A|[,，])\s*不[对對](?:[,，]|\Z)"
    # "例如，4分", but not "例如，日期不对，4分"
    r"|(?:例如|[举舉](?:[个個]|一[个個])?例子?|[为為]例|比如|譬如|打?[个個]?比方|好比)[说說来來讲講]{0,2}[,，:]\s*\Z"
    r"|而不是|反之|相比之下|相较|比起|之前|先前|起初|一开始|通常|一般(?:来说|情况)|曾)"
)
# Who or what else may have a score: "原文" (the source), "他", "第二", "比赛" (a match)
_OTHERS = (
    r"(?:\A|[,，;；]|而|但)\s*(?:原文|原稿|原作|源文|参考|參考|标准答案|作者|读者|讀者|用户|用戶"
    r"|评论|評論|评委|評委|别人|別人|他人|其他|另一|另外|第二|第一|前一|对手|對手|学生|學生|老师"
    r"|老師|电影|電影|比赛|比賽|球队|球隊|考试|考試|他|她|有人|人们|大家|豆瓣|网友|系统|模型)"
)
# The score of another criterion: "流畅性得分", "语法方面"
_OTHER_QUALITY = (
    r"(?!TITLE)(?:流畅性|流暢性|流畅度|连贯性|連貫性|一致性|相关性|相關性|准确性|準確性|准确度"
    r"|简洁性|簡潔性|语法|語法|文采|文风|可读性|可讀性|事实性|忠实性|忠實性|完整性|创造性|創造性"
    r"|清晰度|有用性|安全性|语言|語言|结构|結構)(?:的?(?:得分|评分|評分|分数|分數)|(?:方面|上)"
    r"|[为為是得给給])"
)
# "4分。", "4分(…)", "4分,因为…"
_AFTER_SCORE = r"[\s.!)\]。]*+\Z|\s*+\(|。|,\s*+(?:因为|因為|由于|由於|理由|原因|扣)"

SENTENCE = Grammar(
    # "内容完整，因此我给这篇摘要打5分。"
    # In "是否" and "是不是" (whether), the label 否 or 不是 is none.
    assertion=(
        r"(?<![0-9][.,/])(?<![0-9./~〜<≤≥≈≠±-])(?<!是(?=[否不]))"
        rf"SCORE\s*+{_ENDING}(?![一-龥0-9%/+~〜-])"
    ),
    lead=_LEAD_IN,
    clause=_CLAUSE_END,
    doubt=rf"{_CONDITION}|{_OTHERS}|{_OTHER_QUALITY}",
    after=_AFTER_SCORE,
    says_so="[一-龥]",
    doubt_after=reasons.DOUBT,
)
GRAMMARS = (SENTENCE,)

# "明显", "略", "还" before "更好"
_MUCH = r"(?:明显|明顯|略|稍|要|更|还|還)*"
_GOOD = r"(?:好|优|優|优秀|優秀|佳|强|強|出色)(?:一些|一点|一點|得多|很多|些)?"
_END = r"(?![一-龥A-Za-z])"
_PREFERRED = replace(
    SENTENCE,
    # "文本A更好。", "B比A好", "A优于B。", "我选择B。", "A胜。"
    assertion=(
        rf"(?:(?P<prefers>(?:选择?|選擇?|更喜欢|更喜歡|偏好)(?:{_TEXT_NOUN})?)|)SCORE\s*+"
        rf"(?(prefers)|(?:比\s*+(?:{_TEXT_NOUN})?[A-Z]\s*+{_MUCH}{_GOOD}"
        rf"|(?:明显|明顯|略)?[更较較]{_GOOD}|(?:胜|勝|赢|贏|获胜|獲勝)[了出]?"
        rf"|(?:明显|明顯|略)?(?:优于|優於|好于|好於|胜过|勝過)\s*+(?:{_TEXT_NOUN})?[A-Z]))"
        rf"{_END}"
    ),
)
_OTHER_IS_WORSE = replace(
    SENTENCE,
    # "B不如A。", "B没有A好。", "B比A差。"
    assertion=(
        rf"(?:{_TEXT_NOUN})?[A-Z]\s*+(?:(?:明显|明顯|略)?(?P<than>不如|不及|逊于|遜於|劣于|劣於|输给|輸給)"
        r"|没有|沒有|(?P<worse>比))"
        rf"\s*+(?:{_TEXT_NOUN})?SCORE\s*+"
        rf"(?(than)(?:{_GOOD})?|(?(worse){_MUCH}(?:差|弱|逊色|遜色)(?:一些|一点|一點|得多|很多|些)?"
        rf"|(?:那么|那麼|这么|這麼)?{_GOOD})){_END}"
    ),
)
_TIED = replace(
    SENTENCE,
    # "A和B一样好。", "两者不相上下。"
    assertion=(
        rf"(?:(?:{_TEXT_NOUN})?A\s*+[和与與跟及]\s*+(?:{_TEXT_NOUN})?B"
        rf"|[两兩][者篇个個](?:{_TEXT_NOUN})?|[双雙]方)\s*+(?:的?[质質]量)?[是都]?SCORE{_END}"
    ),
)
PREFERENCES = (_PREFERRED, _OTHER_IS_WORSE, _TIED)
