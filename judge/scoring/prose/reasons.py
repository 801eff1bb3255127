"""What casts doubt on a score in the reason beside it: "4 - if the date is right", "4, maybe".

A reason may deny, order or ask for anything but the score: "4 - the date is not in the source", "4点：誤りがない。". So
most words of doubt count only at its beginning.
"""

from __future__ import annotations

from judge.scoring.prose import other_languages

# Anywhere: "4, assuming that the links work", "4점, 맞다면."
_CONDITION = (
    r"\b(?:if|unless|otherwise|in\s+case|as\s+long\s+as|provided|doubtful|assum\w+|suppos\w+"
    r"|hypothetical\w*|maybe|perhaps|possibly|probably|unsure|not\s+(?:sure|certain|applicable))\b"
    r"|\b(?:might|could|would|should|may)\s+(?:be|get|have|deserve|earn|receive)\s+(?:an?\s+|the\s+)?"
    r"(?:lower|higher|less|more|[0-9])|\?\W*\Z"
    r"|仮定|けれ?ば|せば|(?<!も)たら|なら(?![なびう])|場合(?:は|に|なら)|かもしれ|おそらく|たぶん|[でま]しょうか"
    r"|[다라]면|(?:이|하|었|았|으)면\W*\Z|아마|어쩌면|경우(?:에|라)"
    r"|如果|假如|假设|假設|若(?!干)|除非|只要|也许|也許|或许|或許|[吗嗎]\W*\Z"
)
# "4, I am unable to rate this", "4分，无法评价。"
_REFUSAL = (
    r"\b(?:cannot|can['’]t|unable\s+to|not\s+able\s+to|refuse\s+to|impossible\s+to)\s+"
    r"(?:rate|judge|score|assess|evaluate|grade|answer|say|tell)\b"
    r"|(?:採点|評価|判断|判定|回答)(?:は|を)?(?:でき(?:ない|ません)|不能|致しかね|いたしかね)|お答えでき"
    r"|(?:평가|판단|채점|답변|대답)(?:을|를)?\s*(?:할|드릴)\s*수\s*없|(?:평가|판단|채점)하기\s*어렵"
    r"|(?:평가|판단|채점)(?:이|가)?\s*불가"
    r"|(?:无法|無法|难以|難以|不能)(?:评|評|判|打分|回答)|没有资格|沒有資格"
)
# Someone else's wish: "because I was told to", "as the text demands"
_ON_DEMAND = (
    r"\bI\s+(?:was|am)\s+(?:told|asked|instructed|requested)\b"
    r"|\b(?:author|text|prompt|user|instructions?|rubric|note|it)\s+"
    r"(?:ask|demand|instruct|request|require|say|tell|want)s?(?:\s+(?:so|it|for\s+it|me(?:\s+to)?))?\W*\Z"
    r"|(?:要求|指示)(?:どおり|通り|如此)\W*\Z|(?:요구|지시)(?:에\s*따라|대로)\W*\Z"
)
# At the beginning: "4 - at most", "4, not really", "4 (placeholder)", "4 for fluency, not coherence"
_AT_START = (
    r"(?:at\s+(?:first|best|most|least)|or\s+(?:an?\s+)?(?:lower|higher|less|more|so)|rather\s+than"
    r"|instead|until|once|after|before|when|would|could|might|may|should|no,|wait|actually|not\s+(?:yet|for)"
    r"|(?:as|by)\s+(?:requested|instructed|demanded|asked|told|request|instruction)"
    r"|n/a|pending|tbd|placeholder|example|wish|cannot\s+be|told|instructed|max(?:imum)?"
    r"|initially|previously|originally)\b"
    r"|not\s+(?:what|an?(?!\s+single))\b|(?:is|was)\b|as\s+the\s+\w+\s+(?:asks|demands|says|requests|instructs)\b"
    r"|(?:以上|以下|未満|前後|程度|くらい|とは|には|は[高低]|が?最高|が上限|満点は|では?な[いく]|ではありません|該当なし|対象外|保留|未定)"
    r"|최대(?!한)|최고|만점이|이상|이하|정도|아니|[은는]\s|못\s*줌|해당(?:\s*사항)?\s*없|보류|미정"
    r"|不[,，。]|不(?:是|行|妥|可能|应|應|该|該|值|配)|最[多高](?!的)|至[多少]|左右|大概|大[约約]|可能|待定|[暂暫]定"
)
# "Yes, I can help you with that.", "はい、評価を始めます。", "네, 평가하겠습니다.", "是的，我来评估。"
_PROMISE = (
    r"\bI(?:['’](?:ll|m|d)|\s+(?:can(?:not|['’]t)?|will|won['’]t|am|would|could))\b"
    r"|\b(?:let\s+me|let['’]s|here(?:\s+is|\s+are|['’]s)|of\s+course|sure|gladly|thank(?:s|\s+you)|sir)\b"
    r"|承知|わかりました|分かりました|かしこまりました|喜んで|お手伝い|(?:評価|判定|確認|回答)(?:し|いたし|致し)ます"
    r"|始めます|以下|示します"
    r"|알겠습니다|하겠습니다|드리겠습니다|할게요|도와|물론|아래|시작"
    r"|我(?:来|來|会|會|将|將|可以|能|很乐意)|好的|当然|當然|没问题|沒問題|下面|以下|开始|開始"
    r"|\bje\s+(?:peux|vais)\b|\bbien\s+sûr\b|\bich\s+(?:kann|werde|bewerte)\b|\bgerne?\b|\bnatürlich\b"
    r"|\bpuedo\b|\bvoy\s+a\b|\bclaro\b|\bpor\s+supuesto\b"
)
# "Yes, in part"
_IN_PART = (
    r"\b(?:sort\s+of|kind\s+of|partly|partially|in\s+part|to\s+some\s+extent|depends|except|or|that\s+is)\b"
    r"|部分的|부분적|部分(?:正确|正確|准确|準確|符合)"
)
# Nothing else: "4 - too high", "4 (expected)", "4点（仮）"
_ALONE = (
    r"(?:the\s+|an?\s+|just\s+an?\s+|as\s+)?(?:requested|required|expected|target|max(?:imum)?|minimum|threshold"
    r"|previous(?:\s+score)?|default|dummy|guess|tentative(?:ly)?|ideally|hopefully|hardly|never|no|draft"
    r"|undecided|unknown|to\s+be\s+confirmed|tbc|too\s+(?:high|low|generous|harsh)"
    r"|not\s+(?:deserved|justified|appropriate|fair|final|really|quite|at\s+all)|(?:requested|required)\s+by\b.*)"
    r"|仮|例|目標|前回|無理|高すぎ(?:る|ます)|低すぎ(?:る|ます)|예시|임시|목표|이전(?:\s*점수)?|너무\s*[높낮]\w*"
    r"|示例|目[标標]|上次|太[高低]了?|达不到|達不到|不[给給对對]|nein|non|trop\s+(?:élevé|haut)|zu\s+hoch|demasiado\s+alto"
)
DOUBT = rf"{_CONDITION}|{_REFUSAL}|{_ON_DEMAND}|\A\W*(?:{_AT_START}|(?:{_ALONE})\W*\Z)|{other_languages.DOUBT_AFTER}"
"""What casts doubt on a score."""
DOUBT_OF_ANSWER = rf"{_CONDITION}|{_REFUSAL}|{_PROMISE}|{_IN_PART}|{other_languages.DOUBT_AFTER}"
"""What casts doubt on a yes or no. It need not be a denial: "いいえ、正確ではありません。" says no twice."""
