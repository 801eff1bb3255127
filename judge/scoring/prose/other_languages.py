"""What takes a score back in German, French, Spanish, Italian and Portuguese.

Judges answer in these languages, too. Their sentences give no score, but a number and its reason do:
"4, car le texte est clair".
"""

from __future__ import annotations

# "wenn er kürzer wäre"
_GERMAN = (
    r"wenn|falls\s+(?:der|die|das|er|sie|es|man)|sofern|würde|wäre|hätte|vielleicht|möglicherweise"
    r"|eventuell|höchstens|mindestens|nicht\s+(?:anwendbar|zutreffend|bewertbar|sicher)"
    r"|nicht\s+(?:bewerten|beurteilen|beantworten)|ausstehend"
)
# "si le texte était plus court", "s'il était plus court"
_FRENCH = (
    r"si\s+(?:le|la|les|on|il|elle|ce|cette)|s['’]il|sinon|serait|aurait|peut-être|au\s+(?:plus|moins)"
    r"|au\s+maximum|non\s+(?:applicable|évaluable)|sans\s+objet|à\s+confirmer"
    r"|peux\s+pas\s+(?:évaluer|juger|noter|répondre)"
)
# "si fuera más corto"
_SPANISH = (
    r"si\s+(?:el|los|las|lo|fuera|fuese|estuviera|tuviera|hubiera|no)|sería|quizás?|tal\s+vez"
    r"|como\s+(?:máximo|mínimo)|al\s+menos|a\s+lo\s+sumo|no\s+(?:aplica|aplicable|procede)"
    r"|no\s+(?:puedo|es\s+posible)\s+(?:evaluar|juzgar|calificar|responder)\w*|pendiente"
)
# "se fosse più corto": not "se" alone, which is also Spanish for "itself"
_ITALIAN_AND_PORTUGUESE = (
    r"se\s+(?:fosse|il|lo|o|a|tivesse)|sarebbe|seria|forse|talvez|al\s+massimo|no\s+máximo|almeno"
    r"|pelo\s+menos|non\s+applicabile|não\s+(?:se\s+aplica|aplicável)"
)
DOUBT_AFTER = rf"\b(?:{_GERMAN}|{_FRENCH}|{_SPANISH}|{_ITALIAN_AND_PORTUGUESE})\b"
