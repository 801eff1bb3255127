"""What casts doubt on a score in the reason beside it: "4 - if the date is right", "4, maybe".

A reason may deny, order or ask for anything but the score: "4 - the date is not in the source",
"4点：誤りがない。". So most words of doubt count only at its beginning.
"""

from __future__ import annotations

from judge.scoring.prose import other_languages

# Anywhere: "4, I guess", "4 - or higher?"
_UNSURE = (
    r"\b(?:doubtful|hypothetical\w*|unsure|I\s+(?:assume|guess)"
    r"|not\s+(?:sure|certain|applicable))\b|\?\W*\Z"
    r"|仮定|[でま]しょうか|[吗嗎]\W*\Z"
)
# A condition is all of the reason: "4 - if the date is right", "4점, 맞다면.", "4分，如果内容属实".
# Beside a main clause it is a remark: "4 - it would be better if dates were given".
_CONDITION = (
    r"\A\W*(?:(?:but|and)\s+)?(?:only\s+)?(?:if|unless|in\s+case|as\s+long\s+as|assuming"
    r"|suppos(?:e|ing)|provided)\b(?![^.;]*\bwould\b)"
    # "4 - this score holds if the date is right"
    r"|\b(?:only|scor(?:e|ed|ing)|rating|grade|deserves?|lower|higher)\b[^.;]*\b(?:if|unless)\b"
    # Not in 見当たらない and もたらす
    r"|(?:[けせれ]ば|(?<!も)たら|なら|場合(?:は|に|なら)?)\W*\Z"
    r"|(?:[다라]면|(?:이하|었|았|으|하)면|경우(?:에만?|라면)?)\W*\Z"
    r"|(?:如果|假如|假设|假設|若(?!干)|除非|只要)(?![^。]*(?:更|[会會就还還也才]|提[升高]|改[进善]))"
)
_OTHER_SCORE = r"(?:an?\s+|the\s+)?(?:lower|higher|less|more|[0-9])(?!,[0-9])"
# "4, maybe", "4 - it might be lower"; but not "4 - perhaps a bit short" or "4 - could be more
# concise"
_PERHAPS = (
    rf"\b(?:maybe|perhaps|possibly|probably|presumably)(?:\s+{_OTHER_SCORE})?\W*\Z"
    r"|\b(?:might|could|would|should|may)\s+"
    rf"(?:be|get|have|deserve|earn|receive)\s+(?:{_OTHER_SCORE}\W*\Z"
    rf"|(?:an?\s+|the\s+)?[0-9](?!,[0-9]))"
    r"|\botherwise\s+(?:an?\s+)?(?:lower|higher|less|[0-9])"
    r"|(?:おそらく|たぶん)\W*\Z|[低高]いかもしれ|(?:아마도?|어쩌면)\W*\Z"
    r"|(?:也许|也許|或许|或許|可能|大概|大[约約])吧?\W*\Z|(?:也许|也許|可能|大概)太[高低]"
)
# Someone else's wish: "because I was told to", "as the text demands"; but not "It does what the
# text demands."
_ON_DEMAND = (
    r"\bI\s+(?:was|am)\s+(?:told|asked|instructed|requested)\b"
    r"|\b(?:asks?|demands?|instructs?|requests?|requires?|says|tells?|wants?)\s+(?:so|it|for\s+it"
    r"|me(?:\s+to)?)\W*\Z"
    r"|(?:要求|指示)(?:どおり|通り|如此)\W*\Z|(?:요구|지시)(?:에\s*따라|대로)\W*\Z"
)
# At the beginning: "4 - at most", "4, not really", "4 for fluency, not coherence"
_AT_START = (
    r"(?:at\s+(?:best|most)|or\s+(?:an?\s+)?(?:lower|higher|less|more|so)|rather\s+than"
    r"|instead|no,|wait|actually|not\s+(?:yet|for)"
    r"|(?:as|by)\s+(?:requested|instructed|demanded|asked|told|request|instruction)"
    r"|n/a|pending|tbd|placeholder|wish|can(?:not|['’]t)\s+be|told|instructed|max(?:imum)?)\b"
    r"|not\s+(?:what\b|an?\s+(?:\w+\s+)?(?:score|rating|grade)\b)"
    r"|(?:is|was)\s+(?:too|not|what|the|my)\b"
    # "4, once the links work", but not "4 - Once it is read, it is clear."
    r"|(?:until|once|after|before|when)\b[^,;:]*+\Z"
    # "4, could be", "4 - would be too generous", but not "4 - could be clearer"
    r"|(?:would|could|might|may|should)"
    r"(?:\W*\Z|(?:\s+not)?\s+be\b(?!\s+(?:more|better|improved|shortened|expanded|\w+er)\b))"
    r"|とは(?:言え|いえ)(?:ない|ません)|は[高低]|が上限|満点は|では?な[いく]|ではありません|該当なし|対象外|保留|未定"
    r"|만점이|아니|[은는]\s|못\s*줌|해당(?:\s*사항)?\s*없|보류|미정"
    r"|不[对對]?[,，。]|不(?:行|妥|可能|值|配)|不是(?![很没沒])|不(?:应|應|该|該)(?!出现|出現|有)|至多|待定|[暂暫]定"
)
# "Yes, I can help you with that.", "はい、評価を始めます。", "네, 평가하겠습니다.", "是的，我来评估。"
_PROMISE = (
    r"\bI(?:['’](?:ll|m|d)|\s+(?:can(?:not|['’]t)?|will|won['’]t|am|would|could))\b"
    # "No, I cannot find the date.", "Yes, I can confirm it."
    r"(?!\s+(?:not\s+)?(?:find|confirm|verify|see|say|call|confident)\b)"
    r"|\b(?:let\s+me|let['’]s|here(?:\s+is|\s+are|['’]s)|of\s+course(?!\s+\w)|gladly|thank\s+you"
    r"|sir)\b|\A\W*(?:sure|thanks)\b"
    r"|承知|わかりました|分かりました|かしこまりました|喜んで|お手伝い|(?:評価|判定|確認|回答)(?:し|いたし|致し)ます"
    r"|始めます|以下(?:が|に|の(?:とおり|通り))|示します"
    r"|알겠습니다|하겠습니다|드리겠습니다|할게요|도와드|물론(?:입니다|이죠)|아래(?:는|에|와)\s"
    r"|我(?:来|來|会|會|将|將|可以|能|很乐意)|好的|[当當]然可以|没问题|沒問題|(?:下面|以下)[是为為]|(?:现在|現在)?[开開]始[评評]"
    r"|\bje\s+(?:peux|vais)\b|\bbien\s+sûr\b|\bich\s+(?:kann|werde|bewerte)\b|\bgerne?\b"
    r"|\bnatürlich\b"
    r"|\bpuedo\b|\bvoy\s+a\b|\bclaro\b|\bpor\s+supuesto\b"
)
# "Yes, in part", "Yes, but it depends.", but not "No, it is only partially right."
_IN_PART = (
    r"\A\W*(?:but\s+)?(?:only\s+)?(?:sort\s+of|kind\s+of|partly|partially|in\s+part"
    r"|to\s+some\s+extent|except|or)\b"
    r"|\b(?:partly|partially|in\s+part|to\s+some\s+extent|en\s+part(?:ie|e)|in\s+parte|em\s+parte"
    r"|teilweise)\W*\Z"
    r"|(?:\A\W*|\b(?:it|that)\s+)(?:all\s+)?depends\b|\bthat\s+is,|\bor\s+(?:yes|no|not|rather)\b"
    r"|部分的(?!にしか)|부분적(?!으로만)|(?<![有仅僅])部分(?:正确|正確|准确|準確|符合)"
)
# Nothing else: "4 - too high", "4 (expected)", "4点（仮）"
_ALONE = (
    r"(?:(?:for\s+)?example(?:\s+score)?|initially|previously|originally|at\s+(?:first|least))"
    r"|(?:as\s+)?(?:the\s+)?(?:author|text|prompt|user|instructions?|rubric|note|it)\s+"
    r"(?:ask|demand|instruct|request|require|say|tell|want)s?"
    r"|(?:the\s+|an?\s+|just\s+an?\s+|as\s+)?(?:requested|required|expected|assumed|target"
    r"|max(?:imum)?|minimum|threshold"
    r"|previous(?:\s+score)?|default|dummy|guess|tentative(?:ly)?|ideally|hopefully|hardly|never|no"
    r"|draft"
    r"|undecided|unknown|to\s+be\s+confirmed|tbc|too\s+(?:high|low|generous|harsh)"
    r"|not\s+(?:deserved|justified|appropriate|fair|final|really|quite|at\s+all)"
    r"|(?:requested|required)\s+by\b.*)"
    r"|以[上下]|未満|前後|程度|くらい|が?最高|仮|例|目標|前回|無理|高すぎ(?:る|ます)|低すぎ(?:る|ます)|예시|임시|목표|이전(?:\s*점수)?"
    r"|너무\s*[높낮]\w*"
    r"|이상|이하|정도|최[대고]|最[多高]|至少|左右|示例|目[标標]|上次|太[高低]了?|达不到|達不到|不[给給对對]|nein|non"
    r"|trop\s+(?:élevé|haut)|zu\s+hoch|demasiado\s+alto"
)
_ANYWHERE = rf"{_UNSURE}|{_CONDITION}|{_PERHAPS}|{other_languages.DOUBT_AFTER}"
DOUBT = (
    rf"{_ANYWHERE}|{_ON_DEMAND}"
    rf"|\A\W*(?:{_AT_START}|(?:{_ALONE})\W*\Z|{other_languages.DOUBT_AT_START})"
)
"""What casts doubt on a score."""
DOUBT_OF_ANSWER = rf"{_ANYWHERE}|{_PROMISE}|{_IN_PART}"
"""What casts doubt on a yes or no. It need not be a denial: "いいえ、正確ではありません。" says no twice."""
