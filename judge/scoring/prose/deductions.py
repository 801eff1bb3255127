"""Find what a reason takes off a score: "one point deducted", "扣一分"."""

from __future__ import annotations

import re

# "5 (-1 for style)"
_IN_BRACKETS = r"\A\s*\([-–]\s?[0-9]"
_POINTS = r"(?:an?|one|two|[1-9])\s+(?:points?|marks?|stars?)"
# "I deducted one point", "minus a point"; but not "I did not deduct a point" or "no need to deduct
# a point"
_ENGLISH = (
    r"(?<!not\s)(?<!n['’]t\s)(?<!never\s)(?<!without\s)(?<!would\s)(?<!could\s)(?<!to\s)"
    r"(?<!for\s)(?<!about\s)(?<!considered\s)"
    r"\b(?:deduct(?:ed|ing)?|subtract(?:ed|ing)?|minus|t(?:ake|aking|ook)\s+off|docked)\s+"
    rf"{_POINTS}\b"
    rf"|(?<!not\s)\b{_POINTS}\s+(?:(?:is|was|are|were)\s+)?"
    r"(?:(?:deducted|subtracted|docked)\b|off\b(?!\s+(?!for|because|as|due)\w))"
)
# "扣一分", but not "不扣一分", "没有扣一分", "无需扣一分"
_CHINESE = r"(?<![不未没沒应應有需要])[扣减減]了?[掉去除]?\s*[0-9一二两兩]+\s*分"
# "1点減点", "1点を引いた", "減点1", but not "1点も引かない", "1点の減点もない", "1点減点するほどではない"
_JAPANESE = (
    r"[0-9一二]\s*点(?:を|の|分)?\s*(?:減点|マイナス|引[いき])"
    r"(?!も|しな|はな|する(?:必要|ほど|理由))|(?:減点|マイナス)\s*[0-9一二]"
)
# "1점 감점", "1점을 깎았습니다", but not "1점도 감점하지"
_KOREAN = r"[0-9일한두]\s*점(?:을|이)?\s*(?:감점|차감|깎[았는]|뺐|뺀|뺍)(?!하지|되지|은\s*없|할\s)|감점\s*[0-9]"
# "ein Punkt Abzug", "moins un point", "menos un punto"
_OTHERS = (
    r"\b(?:ein(?:en)?|zwei|[1-9])\s+punkte?\s+(?:abzug|abgezogen|weniger)\b"
    r"|\bmoins\s+(?:un|deux|[1-9])\s+points?\b|\b(?:un|deux|[1-9])\s+points?\s+(?:de|en)\s+moins\b"
    r"|\b(?:menos|resto|descuento|quito)\s+(?:un|dos|[1-9])\s+puntos?\b"
)
_DEDUCTION = re.compile(
    "|".join((_IN_BRACKETS, _ENGLISH, _CHINESE, _JAPANESE, _KOREAN, _OTHERS)),
    re.IGNORECASE,
)


def has_deduction(reason: str) -> bool:
    """Return whether a folded reason takes points off."""
    return _DEDUCTION.search(reason) is not None


def without_deductions(reason: str) -> str:
    """Return a folded reason without the points that it takes off, which are no other score."""
    return _DEDUCTION.sub("", reason)
