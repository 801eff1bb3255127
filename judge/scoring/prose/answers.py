"""What casts doubt on a yes or no in the words behind it.

A negation does so behind a number ("4点ではない"), but not here: "いいえ、正確ではありません。" says no twice.
"""

from __future__ import annotations

# "Yes, if the date counts", "Yes, probably"
_UNSURE = (
    r"\b(?:if|unless|provided|assuming|maybe|perhaps|possibly|probably|unsure|not\s+(?:sure|certain)"
    r"|sort\s+of|kind\s+of|partly|partially|depends|or)\b|\?"
    r"|れば|たら|なら(?!な)|場合|かもしれ|おそらく|たぶん|部分的|[でま]しょうか"
    r"|면[\s,]|아마|수도\s*있|부분적|경우"
    r"|如果|假如|若(?!干)|除非|可能|也许|也許|或许|或許|部分(?:正确|正確|准确|準確|符合)|[吗嗎]"
)
# "Yes, I can help you with that.", "はい、承知しました。", "네, 평가하겠습니다.", "是的，我来评估。"
_PROMISE = (
    r"\bI(?:['’](?:ll|m|d)|\s+(?:can(?:not|['’]t)?|will|am|would|could))\b|\blet\s+me\b|\b(?:of\s+course|sure|gladly)\b"
    r"|承知|わかりました|分かりました|かしこまりました|喜んで|お手伝い|(?:評価|判定|確認|回答)(?:し|いたし|致し)ます"
    r"|알겠습니다|하겠습니다|드리겠습니다|할게요|도와|물론"
    r"|我(?:来|來|会|會|将|將|可以|能|很乐意)|好的|当然|當然|没问题|沒問題"
    r"|\bje\s+(?:peux|vais)\b|\bbien\s+sûr\b|\bich\s+(?:kann|werde|bewerte)\b|\bgerne?\b|\bnatürlich\b"
    r"|\bpuedo\b|\bvoy\s+a\b|\bclaro\b|\bpor\s+supuesto\b"
)
DOUBT_AFTER = f"{_UNSURE}|{_PROMISE}"
