"""Whether a text in Latin letters is in English, by its function words: no dictionary, no model."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from judge.text.abbreviations import word_set

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?").findall  # aujourd'hui, don’t


_ENGLISH = word_set(
    "a about after all also an and any are as at be because been before but by can could did "
    "do does for from get had has have he her his how i if in into is it its just like may me "
    "more most my new no not now of on one only or our out over said say she should so some "
    "such than that the their them then there these they this those time to two up us was we "
    "were what when where which while who why will with would year you your"
)
# Frequent words of other languages that English texts hardly have. A word that is in the list above
# is left out here.
_FUNCTION_WORDS = {
    "French": (
        "le les des du une est et dans sur pour pas qui que avec sont ont cette ces mais aux "
        "il elle nous vous ils sa ses leur fait ce aujourd'hui hier être était la en au je "
        "très bien tout tous aussi où"
    ),
    "Spanish": (
        "por con el los las una del que es para se su sus al lo como más pero fue son está "
        "han hay hoy ayer muy este esta ha le nos sin sobre también todo hace cuando ya desde "
        "era porque"
    ),
    "Portuguese": (
        "os um uma do da dos das em não que com para por mais foi está ao na no nos nas pelo "
        "pela seu sua hoje ontem muito também já quando mas isso ele ela há"
    ),
    "Italian": (
        "il lo gli una di del della dei delle che è non con sono nel nella alla al dal questo "
        "questa oggi ieri più anche ma si le molto fa tutto stato quando"
    ),
    "Romanian": (
        "și este în din pe cu care nu sunt pentru mai un la de să au fost cel cea acest azi "
        "ieri foarte"
    ),
    "Catalan": "els les amb és una dels aquest aquesta però també ha avui molt que",
    "German": (
        "der die das und ist nicht den dem des ein eine einen einem einer zu mit sich auf für "
        "von im wird sind auch als nach bei aus wie werden haben wurde noch heute gestern "
        "sehr wir ich sie er es aber oder zum zur"
    ),
    "Dutch": (
        "het een van en niet dat op te zijn voor aan ook naar bij wordt werd heeft hebben "
        "vandaag gisteren zeer deze maar uit nog dit wij zij ik je"
    ),
    "Swedish": (
        "och att det som en ett är på av för med den inte har om vi jag de idag igår mycket "
        "från eller"
    ),
    "Danish and Norwegian": (
        "og det som en et er på av af for med den ikke til har jeg vi de dag går fra eller "
        "meget blev ble"
    ),
    "Finnish": (
        "ja on ei se että oli ovat mutta kun myös hän tänään eilen hyvin joka tämä mukaan"
    ),
    "Estonian": "ja ei et oli aga kui ka see on täna eile väga",
    "Hungarian": "az egy és hogy nem is van volt meg ma tegnap nagyon de ez csak mert",
    "Polish": (
        "na się nie że do jest to jak za od dzisiaj wczoraj bardzo czy są był przez dla oraz jego"
    ),
    "Czech and Slovak": (
        "je se na že to do si ve by ale jak dnes včera velmi byl bylo a jsou sa som dnes včera"
    ),
    "Croatian, Serbian and Slovene": (
        "je na da se su za od sa ne danas jučer juče jako bio bila koji kao ali pa iz za so "
        "danes včeraj zelo bil bila"
    ),
    "Lithuanian": "ir yra kad su į iš bet tai buvo šiandien vakar labai ne jo",
    "Latvian": "un ir ka ar no uz tas bija šodien vakar ļoti par kas",
    "Albanian": "dhe është në të për me nga një që nuk ka sot dje shumë",
    "Turkish": (
        "ve bir bu da de için ile çok ama olarak daha gibi bugün dün oldu kadar sonra değil"
    ),
    "Vietnamese": (
        "và của là có không được cho một các trong với người này đã những khi để nay rất"
    ),
    "Indonesian and Malay": (
        "yang dan di ini itu dengan untuk dari tidak pada dalam akan adalah ke hari sangat "
        "saya telah kami juga oleh atau ada lebih"
    ),
    "Tagalog": "ang ng sa mga na ay ko siya hindi ito ngayon kahapon si para kung",
    "Swahili": "ya wa na kwa ni katika za la hii huo leo jana sana kuwa yake",
    "Esperanto": "la kaj estas de en ne al kun por ke mi hodiaŭ hieraŭ tre",
    "Irish and Welsh": "agus an na ar is yn mae ac ei wedi inniu heddiw",
}
_FOREIGN = word_set(" ".join(_FUNCTION_WORDS.values())) - _ENGLISH
# Parts of names that English texts keep: Rio de Janeiro, Vincent van Gogh, Los Angeles.
_OF_NAMES = word_set(
    "al bin da das de del della den der des di do dos du e el ibn la las le les lo los na no "
    "och san santa te ten ter "
    "und van vom von y zu zum zur"
)
_FEWEST = 2  # words: one alone may be a name or a loan


def latin_language(text: str) -> Literal["English", "other", "unknown"]:
    """Return whether a text in Latin letters is in English.

    The result is `unknown` for names, numbers and texts too short to tell. Another language has
    more of its function words, and of words with letters beyond a-z, than English ones, and at
    least two different ones. Function words that are parts of names do not decide alone, nor do
    words with a capital inside a text.
    """
    composed = unicodedata.normalize("NFKC", text)
    words = [word.replace("’", "'") for word in _WORD(composed)]
    n_english = 0
    foreign: list[str] = []
    with_diacritics: list[str] = []
    for index, word in enumerate(words):
        lower = word.lower()
        if lower in _ENGLISH:
            n_english += 1
        elif lower in _FOREIGN:
            # A capital begins the text, or a name: Los Angeles, El Paso.
            if index == 0 or word.islower():
                foreign.append(lower)
        elif not word.isascii():
            with_diacritics.append(lower)
    evidence = foreign + with_diacritics
    has_own_word = not _OF_NAMES.issuperset(foreign)
    if has_own_word and len(set(evidence)) >= _FEWEST and len(evidence) > n_english:
        return "other"
    return "English" if n_english >= _FEWEST else "unknown"
