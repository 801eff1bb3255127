"""Find English noun phrases without a tagger: runs of words not interrupted by function words, verbs or stops.

Names, also in lower case, are such runs too: `Paul Merson`, `prime minister harold wilson`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Span = tuple[int, int]
"""Start and end of a phrase in its text, in characters."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_DETERMINERS = _set(
    "a an the this that these those each every either neither no another some any all both half such what whatever "
    "my your his her its our their whose 's"
)
_SUBJECTS = _set("i he she we they you who which")
_PRONOUNS = _SUBJECTS | _set(
    "me him us them it mine yours hers ours theirs myself yourself himself herself itself ourselves themselves one "
    "ones someone anyone everyone nobody somebody anybody everybody something anything everything nothing none whom "
    "other others there here"
)
_PREPOSITIONS = _set(
    "of in on at by for from with without within into onto upon over under above below between among amongst across "
    "alongside through throughout during before after since until till against about around near behind beyond beside "
    "besides despite except towards toward along amid amidst via per than as like unlike off out up down inside "
    "outside following including regarding concerning according due"
)
_CONJUNCTIONS = _set("and or but nor so yet if because although though while whereas unless when where why how whether")
_BE = _set("am is are was were be been being 'm 're")
_MODALS = _set(
    "will would shall should can could may might must do does did ca wo cannot to not n't 'll 'd let ought used"
)
_HAVE = _set("have has had having 've")
_ADVERBS = _set(
    "now then again also too very just only even still already once twice ever never always often sometimes usually "
    "soon later earlier ago almost quite rather instead perhaps maybe however therefore thus hence meanwhile else far "
    "away back together apart indeed yesterday today tomorrow tonight least most more less much many few several well "
    "better best worse worst long longer first last next further ahead alone aside abroad forward anyway moreover "
    "furthermore nevertheless afterwards home please yes enough due own same"
)
_ADJECTIVES = _set(
    "immediate new old young good bad big small large little high low great short early late local major main key "
    "real whole free full open clear sure able unable likely unlikely ready available true false right wrong "
    "different similar important possible impossible difficult easy hard strong weak happy sad angry afraid aware "
    "alive dead ill sick safe dangerous guilty innocent certain responsible absent present popular common rare "
    "recent previous former current final total single double top upset proud keen worth linked close subject "
    "missing serious critical nice famous beautiful huge tiny rich poor hot cold warm cool fresh healthy busy wide "
    "deep heavy light dark black white red blue green brown grey pink favourite latest senior junior national "
    "international male female public private"
)
# Forms of common verbs that are seldom nouns. Those in -ed and -ing go by their ending.
_VERBS = _set(
    "say says said tell tells told make makes made take takes took taken give gives gave given get gets got gotten "
    "go goes went gone come comes came become becomes became see sees saw seen know knows knew known think thinks "
    "thought find finds found feel feels felt leave leaves left keep keeps kept lets begin begins began begun "
    "seem seems bring brings brought hold holds held write writes wrote written stand stands stood hear hears heard "
    "mean meant meet meets met pay pays paid sit sits sat speak speaks spoke spoken lead leads led read lose loses "
    "lost fall fell fallen send sends sent build builds built understand understood draw drew drawn break broke "
    "broken spend spends spent cut drive drove driven buy buys bought wear wears wore worn choose chooses chose "
    "chosen seek seeks sought throw threw thrown catch catches caught deal dealt win wins won fight fought teach "
    "taught eat eats ate eaten sell sells sold rise rose risen grow grows grew grown fly flew flown hit hits beat "
    "beats beaten sing sang sung swim sank sunk slid swam put puts set sets shut lay laid lie lies shot shoot slept "
    "sleep ran run runs rode rides hid hide hidden flee fled forget forgot forgive forbid freeze froze shake shook "
    "shaken steal stole stolen strike struck swear swore sweep swept tear tore wake woke weep wept bear bore born "
    "bind bound bite bit blew blown breed bred cost dig dug hurt hurts want wants need needs believe believes ask asks "
    "appear appears allow allows add adds agree agrees admit admits insist insists claim claims explain explains "
    "describe describes reveal reveals suggest suggests show shows shown include includes continue continues "
    "remain remains require requires receive receives consider considers decide decides expect expects accept accepts "
    "achieve avoid avoids join joins lack lacks learn learns likes love loves live lives mark marks face faces provide "
    "provides produce produces prove proves proven enjoy enjoys ensure ensures enter enters compare happen happens "
    "help helps hope hopes improve increase die dies kill kills arrive arrives argue argues announce announces "
    "confirm confirms contain contains create creates deny denies discover disappear emerge earn feature features "
    "focus focuses follow follows force forces host hosts identify introduce involve involves launch launches look "
    "looks manage manages move moves occur offer offers play plays prepare prevent prevents publish raise raises "
    "reach reaches realise realize refuse refuses release releases remember remove replace report reports represent "
    "return returns save saves score scores serve serves share shares start starts stay stays stop stops struggle "
    "support supports survive talk talks tend tends thank try tries turn turns use uses visit visits vote wait walk "
    "walks warn warns watch watches welcome wonder work works worry click"
)
# Of these, forms that are nouns after a determiner, an adjective or another noun: `the vote`, `his hopes`.
_ALSO_NOUNS = _set(
    "deal vote report reports hope hopes score scores support talk talks claim claims play plays offer offers "
    "visit visits work works fight cut rise run runs hit hits set sets face faces feature features focus force "
    "forces help host hosts increase launch launches lives look looks love mark marks move moves need needs release "
    "releases return saves shot shares share start starts stay stop struggle turn turns use uses wait walk walks "
    "watch watches welcome wonder worry cost show shows break catch draw strike fall win wins loses sleep lack "
    "swim bit bite rides meet"
)
_NOUNS_IN_ED = _set("shed speed seed feed deed weed greed")
_NOUNS_IN_ING = _set(
    "king ring wing thing string spring morning evening building meeting wedding ceiling clothing painting "
    "hearing beginning training feeling warning housing funding spending offering briefing gathering shooting stabbing "
    "opening ranking"
)
_NOUNS_IN_LY = _set("family reply supply ally bully italy july jelly belly assembly monopoly anomaly butterfly rally")
_NOUNS_IN_ISH = _set("fish dish wish parish radish polish finish rubbish varnish")
_NUMBER_WORDS = _set(
    "two three four five six seven eight nine ten eleven twelve dozen twenty thirty forty fifty sixty seventy "
    "eighty ninety hundred thousand million billion trillion dozens hundreds thousands millions billions"
)
_NOUN_ENDINGS = ("tion", "sion", "ment", "ness", "ity", "ance", "ence", "ship", "ism", "ure", "age", "dom", "hood")
_PARTICIPLES = ("ed", "ing", "en", "wn")
_ADJECTIVE_ENDINGS = ("ous", "ful", "less", "able", "ible", "ish")
_MAGNITUDES = _set("dozen hundred thousand million billion trillion")
_LINKS = _set("of de del la van von der bin al")  # between names
_ACRONYMS = _set("US WHO IT IS")  # which in small letters are function words
_BEFORE_NAMES = _set("home long best")  # adverbs that at a sentence's start begin a name: `Long Beach`
_DATES = _set(
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August "
    "September October November December Jan Feb Aug Sept Oct Nov Dec"
)
_MAX_PHRASE_WORDS = 6  # words of a phrase
_TITLE = 0.8  # of the words that have a capital in a title

_TOKEN = re.compile(
    r"(?P<number>[$£€¥#]?\s?\d+(?:[.,:/-]\d+)*[^\W\d_]*+(?:-[^\W\d_]+)*+\s?%?)"
    r"|(?P<clitic>['’](?:s|m|re|ve|ll|d)\b|n['’]t\b)"
    r"|(?P<word>(?:[^\W\d_]\.){2,}|[^\W\d_](?:(?!n['’]t\b)[\w-])*(?:['’](?!(?:s|m|re|ve|ll|d|t)\b)\w+|[&-]\w+)*)"
    r"|(?P<mark>\S)",
    re.IGNORECASE,
)
_SCORE = re.compile(r"\d+-\d+").fullmatch
_YEAR = re.compile(r"(?:1[5-9]|20)\d\ds?").fullmatch
_CAMEL = re.compile(r"[a-z][A-Z]").search
_MONEY = "$£€¥"
_ENDS = frozenset(".!?:;\"“”‘`'’—–")
Kind = Literal["noun", "number", "determiner", "modal", "subject", "be", "verb", "adjective", "mark", "other"]


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int
    kind: Kind
    name: bool = False

    @property
    def low(self) -> str:
        return self.text.lower()


_EDGE = _Token("", 0, 0, "mark")
"""What stands before the first token and after the last."""


def spans(text: str) -> list[Span]:
    """Return the places of the noun phrases in an English text, in order, without determiners or overlaps.

    They include names, numbers with what they count, dates and amounts. Most missed nouns can also be verbs.
    """
    tokens = [_EDGE, *_tokens(text), _EDGE, _EDGE]
    phrases: list[Span] = []
    run: list[_Token] = []  # the tokens of a phrase so far, behind the token `lead`
    lead = _EDGE
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        ends = bool(run) and _starts_phrase(token, after, run, lead)
        belongs = _belongs_to_phrase(before, token, after, bool(run) and not ends)
        if run and (ends or not belongs):
            phrases += _phrase(run, lead, token)
            run = []
        if belongs:
            lead = lead if run else before
            run.append(token)
    return phrases


def is_function(word: str) -> bool:
    """Return whether a lower-case English word is a function word."""
    return word in _FUNCTION


def is_other_language(text: str) -> bool:
    """Return whether a text in Latin script is not English.

    It then has at least 8 words, none of them common only in English, and two different ones that are common in other
    languages or have a letter with a diacritic.
    """
    words = [match.group().lower() for match in _TOKEN.finditer(text) if match.lastgroup == "word"]
    if len(words) < _MIN_WORDS or not _COMMON_IN_ENGLISH.isdisjoint(words):
        return False
    return sum(word in _COMMON_ELSEWHERE or not word.isascii() for word in set(words)) > 1


_MIN_WORDS = 8
_COMMON_IN_ENGLISH = _set(
    "the and that this these with from his her he she they their its it you your our my we were not been has have "
    "would could which who what when into about after said says will if than more"
)
_COMMON_ELSEWHERE = _set(  # but van, de, la and others that are in names
    "der die das und ist nicht ein eine einen auf dem zu im sich dass les des un une et est dans que qui sur pour par "
    "en una con por para se su lo gli che della não um uma em com na het een voor niet op aan att det som på är og til "
    "af ikke nie się bir"
)

_FUNCTION = (
    _DETERMINERS
    | _PRONOUNS
    | _PREPOSITIONS
    | _CONJUNCTIONS
    | _BE
    | _MODALS
    | _HAVE
    | _ADVERBS
    | _set("s t d ll m re ve n")
)
_KINDS: tuple[tuple[frozenset[str], Kind], ...] = (
    (_DETERMINERS, "determiner"),
    (_SUBJECTS, "subject"),
    (_BE, "be"),
    (_MODALS, "modal"),
    (_PRONOUNS | _PREPOSITIONS | _CONJUNCTIONS | _HAVE | _ADVERBS, "other"),
    (_NUMBER_WORDS, "number"),
    (_VERBS, "verb"),
    (_ADJECTIVES, "adjective"),
)


def _tokens(text: str) -> list[_Token]:
    raw = list(_TOKEN.finditer(text))
    words = [match.group() for match in raw if match.lastgroup == "word"]
    cased = sum(word[0].isupper() for word in words) < _TITLE * len(words)  # else capitals say nothing
    quiet = sum(word.isupper() for word in words) < _TITLE * len(words)
    first = [n == 0 or raw[n - 1].group() in _ENDS for n in range(len(raw))]  # whether it starts a sentence
    inner = {m.group() for m, starts in zip(raw, first, strict=True) if cased and m.group()[0].isupper() and not starts}
    tokens = []
    for n, match in enumerate(raw):
        word = match.group()
        capital = cased and match.lastgroup == "word" and word[0].isupper()
        after = raw[n + 1].group() if n + 1 < len(raw) else ""
        name = capital and (not first[n] or word in inner or (after[:1].isupper() and after in inner))
        name = name or (quiet and word in _ACRONYMS) or bool(_CAMEL(word))
        adverb = capital and word.lower() in _ADVERBS and _in_name(raw, n)
        start = match.start() + len(word) - len(word.lstrip())
        kind = "noun" if adverb else _kind(match, name)
        tokens.append(_Token(word.strip(), start, match.start() + len(word.rstrip()), kind, name or adverb))
    return tokens


def _in_name(raw: list[re.Match[str]], place: int) -> bool:
    """Return whether a capitalised adverb is part of a name: `the Far East`, `Shane Long`, `Long Beach`."""
    beside = [match.group()[0].isupper() for match in raw[max(place - 1, 0) : place + 2]]
    if place == 0 or raw[place - 1].lastgroup == "mark":
        return raw[place].group().lower() in _BEFORE_NAMES and beside[-1] and beside != [True]
    return sum(beside) > 1


def _kind(match: re.Match[str], name: bool) -> Kind:
    if match.lastgroup in ("number", "mark"):
        return "number" if match.lastgroup == "number" else "mark"
    word = match.group()
    low = word.lower().replace("’", "'")
    if name and (word in _DATES or word in _ACRONYMS):
        return "noun"
    for words, kind in _KINDS:
        if low in words and not (name and kind in ("verb", "adjective")):
            return kind
    if name or len(low) < 4:
        return "noun"
    if (low.endswith("ed") and low not in _NOUNS_IN_ED) or (low.endswith("ing") and low not in _NOUNS_IN_ING):
        return "adjective" if "-" in low[3:] else "verb"  # `well-known`; `co-founded`
    if low.endswith("ly") and low not in _NOUNS_IN_LY:
        return "other"
    return "adjective" if low.endswith(_ADJECTIVE_ENDINGS) and low not in _NOUNS_IN_ISH else "noun"


def _starts_phrase(token: _Token, after: _Token, run: list[_Token], lead: _Token) -> bool:
    """Return whether a phrase ends before the token: `the harbour | three hours`, `Tuesday | Tesla`; not `July | 1`."""
    if token.kind != "number":
        if not token.name or token.text in _DATES or len(run) > 3 or lead.kind == "determiner":
            return False
        # Whether the run is a complete date: `on 4 May`, `in 2019`; not `the Sunday` (Times).
        words = [each.text for each in run]
        year = lead.low == "in" and len(words) == 1 and bool(_YEAR(words[0]))
        return year or (any(w in _DATES for w in words) and all(w in _DATES or w.isdigit() for w in words))
    if _SCORE(token.text) or _is_third_person(run[-1], token):
        return True
    if (token.low in _MAGNITUDES and run[-1].kind == "number") or after.kind != "noun" or after.name:
        return False
    return token.text.isalpha() or _is_plural(after.low)


def _belongs_to_phrase(before: _Token, token: _Token, after: _Token, running: bool) -> bool:
    """Return whether the token continues the current phrase or starts one."""
    if token.low in _LINKS:
        return running and before.name and after.name
    if token.kind in ("number", "adjective"):
        return True
    if token.kind == "verb":
        # `the vote`, `latest score`; `the injured man`, `a growing number`; not `the 2020s saw growth`.
        if before.kind not in ("determiner", "adjective", "number"):
            return running and token.low in _ALSO_NOUNS and (after.kind == "mark" or after.low == "of")
        if before.kind == "number" and _YEAR(before.text):
            return False
        adjective = before.kind != "number" or token.low.endswith(_PARTICIPLES)
        return token.low in _ALSO_NOUNS or (adjective and after.kind in ("noun", "adjective"))
    return token.kind == "noun" and (token.name or not _is_verb(before, token, after))


def _is_verb(before: _Token, token: _Token, after: _Token) -> bool:
    """Return whether a possible noun is a verb by its context: `they drew`, `will join`, `to visit the`."""
    if before.kind not in ("subject", "modal"):
        return False
    if before.low != "to":
        return True
    if after.kind in ("mark", "other", "be", "modal"):
        return not (token.low.endswith(_NOUN_ENDINGS) or _is_plural(token.low))
    return not (after.kind == "noun" and _is_plural(token.low))


def _is_plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "us", "is"))


def _phrase(run: list[_Token], before: _Token, after: _Token) -> list[Span]:
    """Trim words that cannot end a phrase, and return the phrase that is left, if any."""
    if len(run) > 1 and run[-2].kind == "noun" and _is_third_person(run[-1], after):
        run = run[:-1]

    def can_end(token: _Token) -> bool:
        if token.kind == "number":
            return any(map(str.isalnum, token.text))
        return (token.kind == "noun" and len(token.text) > 1) or token.low in _ALSO_NOUNS

    while run and not can_end(run[-1]):
        run = run[:-1]
    # `the two` names nobody.
    if not run or (len(run) == 1 and before.kind == "determiner" and run[0].low in _NUMBER_WORDS):
        return []
    return [(run[-_MAX_PHRASE_WORDS:][0].start, run[-1].end)]


def _is_third_person(last: _Token, after: _Token) -> bool:
    """`the club hopes to`, `the president meets the`, `the phone costs $999`."""
    if last.name or not _is_plural(last.low):
        return False
    if after.kind == "number":
        return after.text[0] in _MONEY
    return after.low == "to" or (after.kind == "determiner" and after.low != "'s") or after.low in ("him", "them", "it")
