"""What takes a score back in German, French, Spanish, Italian and Portuguese.

Judges answer in these languages, too. Their sentences give no score, but a number and its reason
do: "4, car le texte est clair".
"""

from __future__ import annotations

# "wenn er kürzer wäre", but not "wenn auch kurz"
_GERMAN = (
    r"(?<!auch\s)wenn(?!\s+auch)|falls\s+(?:der|die|das|er|sie|es|man)|sofern"
    r"|nicht\s+(?:anwendbar|zutreffend|bewertbar|sicher)"
)
# "si le texte était plus court", "s'il était plus court"
_FRENCH = (
    r"(?<!même\s)si\s+(?:le|la|les|on|il|elle|ce|cette)|s['’]il"
    r"|non\s+(?:applicable|évaluable)|sans\s+objet|à\s+confirmer"
)
# "si fuera más corto"
_SPANISH = (
    r"si\s+(?:el|los|las|lo|fuera|fuese|estuviera|tuviera|hubiera|no)"
    r"|no\s+(?:aplica|aplicable|procede)"
)
# "se fosse più corto": not "se" alone, which is also Spanish for "itself"
_ITALIAN_AND_PORTUGUESE = (
    r"se\s+(?:fosse|il|lo|o|a|tivesse)|non\s+applicabile"
    r"|não\s+(?:se\s+aplica|aplicável)"
)
DOUBT_AFTER = rf"\b(?:{_GERMAN}|{_FRENCH}|{_SPANISH}|{_ITALIAN_AND_PORTUGUESE})\b"
"""What casts doubt on a score anywhere in its reason."""
# "4, serait trop", but not "4 - le texte serait plus clair avec un exemple"
_WOULD_BE = r"(?:würde|wäre|hätte|serait|aurait|sería|sarebbe|seria)\b"
# "4, peut-être", "4, höchstens", but not "4 - il manque au moins un exemple"
_ALONE = (
    r"(?:vielleicht|möglicherweise|eventuell|höchstens|mindestens|ausstehend|sinon|peut-être"
    r"|au\s+(?:plus|moins|maximum)"
    r"|quizás?|tal\s+vez|como\s+(?:máximo|mínimo)|al\s+menos|a\s+lo\s+sumo|pendiente"
    r"|forse|talvez|al\s+massimo|no\s+máximo|almeno|pelo\s+menos)\W*\Z"
)
DOUBT_AT_START = rf"{_WOULD_BE}|{_ALONE}"
"""What casts doubt on a score at the beginning of its reason."""
