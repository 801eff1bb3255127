"""What casts doubt on a yes or no in the words behind it.

A negation does so behind a number ("4点ではない"), but not here: "いいえ、正確ではありません。" says no twice.
"""

from __future__ import annotations

# "Yes, if the date counts", "Yes, probably"
_UNSURE = (
    r"\b(?:if|unless|provided|assuming|maybe|perhaps|possibly|probably|unsure|not\s+(?:sure|certain)"
    r"|sort\s+of|kind\s+of|partly|partially|in\s+part|to\s+some\s+extent|depends|except|or"
    r"|that\s+is)\b|\?"
    r"|れば|たら|なら(?!な)|場合|かもしれ|おそらく|たぶん|部分的|[でま]しょうか"
    r"|면[\s,]|아마|수도\s*있|부분적|경우"
    r"|如果|假如|若(?!干)|除非|可能|也许|也許|或许|或許|部分(?:正确|正確|准确|準確|符合)|[吗嗎]"
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
# "No, I cannot answer that.", "いいえ、お答えできません。"
_REFUSAL = (
    r"\b(?:cannot|can['’]t|unable\s+to)\s+(?:answer|judge|say|tell|evaluate|assess|help)\b"
    r"|(?:答え|回答|評価|判断|判定)(?:は|を)?(?:でき|致しかね|いたしかね)"
    r"|(?:답변|대답|평가|판단)(?:을|를)?\s*(?:할|드릴)\s*수\s*없|(?:不能|无法|無法)(?:回答|评估|評估|判断|判斷)"
    r"|peux\s+pas|\bkann\b[^.]{0,20}\bnicht\b|no\s+puedo"
)
DOUBT_AFTER = f"{_UNSURE}|{_PROMISE}|{_REFUSAL}"
