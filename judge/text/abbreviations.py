"""Abbreviations beyond English and German, after which a full stop ends no sentence."""

from __future__ import annotations

import re


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text, cut at white space, as a set."""
    return frozenset(words.split())


_NEVER_LAST = word_set(
    # Russian, Ukrainian, Bulgarian, Serbian: street, avenue, lane, professor, named after, see,
    # compare, that is
    "ул просп пер наб пл бул вул пров бульв обл им ім проф акад доц ред сост изд см ср напр т.е "
    "т.к т.н тов гр корп "
    # Polish: for example, street, so-called, engineer, saint, colonel, id est
    "np ul tzw tzn hab inż płk ppłk św woj m.in godz "
    # Czech and Slovak: so-called, that is, for example, respectively, saint
    "tzv tj např napr resp popř nám mudr judr phdr "
    # Turkish: Mr, street, avenue, look at, for example
    "sn doç yrd mah cad bkz örn "
    # Vietnamese: city, associate professor, master
    "tp pgs ths "
    # Spanish, Portuguese, Italian, French: titles, avenues
    "dña avda sto ing lic arq profa exmo exma sigg avv geom mgr c.f "
    # Indonesian and Malay: street, Mr, Mrs, honourable
    "jl tn ny drs yth kec kab "
    # Hungarian, Finnish, Swedish, Danish, Norwegian: so-called, for example, that is
    "ún esim vrt t.ex bl.a s.k "
    # Greek: for example, Mr, Mrs, see, Dr
    "π.χ κ κα βλ δρ "
    # Hindi and Marathi: Dr, Professor, Pandit
    "डॉ प्रो पं श्री"
)
_BEFORE_NUMBERS = word_set(
    "r t s č n q str rys poz pkt ust odst čl obr obs pag pagg cap št br u "
    "д кв стр с рис табл гл п пп ст т ч вып тел мал арт σελ αρ εκ पृ रु tel tél"
)
_AFTER_NUMBERS = word_set(  # 1990 г., XX в., 5 тыс. человек, 1990 r.
    "г гг в вв р рр н.э тыс млн млрд руб коп чел экз км мин сек час тис грн "
    "r w tys mln mld zł tis mil hod př.n.l π.Χ μ.Χ"
)
_OFTEN_LAST = word_set(
    "д.р др пр т.д т.п тп тд ін itd itp apod atd stb dll dsb vb ecc κ.λπ κλπ"
)
_STARTERS = word_set(  # words that begin a sentence far more often than a name
    "the this that it he she we they "
    "он она оно они это этот эта эти в во на но а и после затем потом с со по при для как когда "
    "если что у к из от за "
    "до так там тут тогда мы я вы ты его её их все всё кто ще він вона вони це але та після "
    "потім у є той тази те след "
    "on ona oni ono to ten ta na po w we z za do ale a i potem następnie był była było nie jest "
    "gdy jak "
    "v ve pak potom byl bylo je se s jeho její když "
    "bu o ve ama daha sonra ông bà anh chị em nó họ đó và trong khi sau ini itu dia mereka namun "
    "el la los las un una en por para con no se su al este esta pero y como cuando il lo gli le "
    "per con ma dopo non "
    "o os as um uma em no na mas depois ele ela le les un une des en dans mais il elle "
    "ο η το οι τα στη στην στο και αλλά μετά"
)
_VIETNAMESE_TITLE = word_set("ts gs bs ks ls tx tt q p")
# 1990, 5,3, 1941–1945, XX
_NUMBER = re.compile(r"(?:\d[\d.,–-]*|[IVXLC]+|[ІХ]+)\Z").fullmatch
# the 1990 of "в 1990 г"
_WORD_BEFORE = re.compile(r"(\S+)\s+\S+\Z").search
# a letter of Thai or Lao, such as ศ
_THAI = re.compile("[\u0e01-\u0e4e\u0e81-\u0ecd]").match
# т, т.д; not ASCII, which other rules decide
_ONE_OR_TWO_LETTERS = re.compile(r"[^\W\d_]\.?[^\W\d_]?").fullmatch


def belongs_to_word(word: str, before: str, following: str) -> bool | None:
    """Return whether the full stop after `word` is part of an abbreviation.

    None if these languages do not tell. `before` is the text before the stop, ending in the word,
    and `following` the next word, "" if there is none.
    """
    lower = word.lower()
    capital_follows = following[:1].isupper()
    if _THAI(word[-1]):
        return True  # Thai and Lao end a sentence with a space: พ.ศ. 2560
    if lower in _VIETNAMESE_TITLE and word[0].isupper() and not following.isascii():
        return True  # TS. Nguyễn
    if lower in _NEVER_LAST:
        return True
    if lower in _BEFORE_NUMBERS and following[:1].isdecimal():
        return True
    word_before = _WORD_BEFORE(before)
    number = word_before.group(1).lstrip('(«"') if word_before else ""
    if word in _AFTER_NUMBERS and _NUMBER(number):
        starts_sentence = capital_follows and following.lower() in _STARTERS
        return not starts_sentence
    if lower in _OFTEN_LAST:
        return not capital_follows
    if not word.isascii() and word.islower() and _ONE_OR_TWO_LETTERS(word):
        # и т. д. и т. п. Конец: a single small letter before another abbreviation, or at its end.
        return not capital_follows
    return None
