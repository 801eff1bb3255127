"""Rules for changing English texts, and as far as they apply other texts in Latin script.

Word lists come first: they say what a name in a text names.
"""

from __future__ import annotations

import re
from itertools import chain
from random import Random
from typing import ClassVar

from judge.audits.perturbations.edits import Edit, LanguageRules, Name, deletion, listed
from judge.metrics.qags import english_noun_phrases

WEEKDAYS = listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = listed("January February April June July August September October November December")
DATES = {*WEEKDAYS, *MONTHS, *(f"{day}s" for day in WEEKDAYS), "March", "May", "Christmas", "Easter"}
COUNTRIES = listed(
    "France Germany Italy Spain Portugal Sweden Norway Denmark Finland Poland Greece Turkey Russia Ukraine China "
    "Japan India Pakistan Australia Canada Mexico Brazil Argentina Chile Egypt Kenya Nigeria Iran Iraq Syria "
    "Israel Yemen England Scotland Ireland Wales Britain America Austria Belgium Switzerland Hungary Vietnam "
    "Thailand Indonesia Malaysia Nepal Libya Tunisia Morocco Cuba Colombia Peru Kuwait"
)
CITIES = listed(
    "London, Paris, Berlin, Rome, Madrid, Lisbon, Vienna, Prague, Warsaw, Moscow, Athens, Cairo, Tokyo, Beijing, "
    "Delhi, Mumbai, Sydney, Melbourne, Toronto, Chicago, Boston, Houston, Dallas, Seattle, Manchester, "
    "Liverpool, Birmingham, Leeds, Glasgow, Edinburgh, Dublin, Brussels, Amsterdam, Munich, Hamburg, Milan, "
    "Barcelona, Baghdad, Tehran, Nairobi, Los Angeles, New York, San Francisco, Hong Kong, Bristol, Cardiff, "
    "Sheffield, Newcastle",
    ", ",
)
STATES = listed(
    "Alabama, Alaska, Arizona, Arkansas, California, Colorado, Connecticut, Florida, Hawaii, Idaho, Illinois, "
    "Indiana, Iowa, Kansas, Kentucky, Louisiana, Maine, Maryland, Massachusetts, Michigan, Minnesota, "
    "Mississippi, Missouri, Montana, Nebraska, Nevada, New Jersey, New Mexico, Ohio, Oklahoma, Oregon, "
    "Pennsylvania, Tennessee, Texas, Utah, Vermont, Wisconsin, Wyoming",
    ", ",
)
CLUBS = listed(
    "Arsenal, Chelsea, Tottenham, Everton, Liverpool, Southampton, Sunderland, Burnley, Aston Villa, West Ham, "
    "Crystal Palace, Manchester United, Manchester City, Leicester City, Hull City, Stoke City, Swansea City, "
    "Real Madrid, Atletico Madrid, Barcelona, Bayern Munich, Borussia Dortmund, Juventus, Inter Milan, Porto, "
    "Ajax, Celtic, Rangers, Newcastle, Leeds United, Fulham, Middlesbrough",
    ", ",
)
NATIONS = listed(
    "British English Scottish Irish Spanish Polish Turkish Swedish Danish Finnish French Dutch German Greek "
    "Italian American Australian Canadian Russian Ukrainian Indian Pakistani Iranian Israeli Egyptian Mexican "
    "Brazilian Chinese Japanese Portuguese Belgian Austrian Norwegian Swiss Welsh Nigerian Kenyan Argentine "
    "Korean Hungarian"
)
PEOPLE = listed(
    "David Carver, Laura Whitfield, Peter Langley, Helen Marsh, Simon Hargreaves, Anna Delaney, Mark Ellison, "
    "Julia Prentice",
    ", ",
)
KINDS = {
    "weekday": WEEKDAYS, "month": MONTHS, "country": COUNTRIES, "city": CITIES, "nation": NATIONS, "state": STATES,
    "club": CLUBS,
}  # fmt: skip
LISTED = {name: kind for kind, names in KINDS.items() for name in names} | dict.fromkeys({*CITIES} & {*CLUBS}, "")
TITLES = frozenset(
    listed(
        "Mr Mrs Ms Miss Dr Sir Lady Lord Prof Professor President Prime Minister Senator Governor Mayor Judge "
        "Captain Detective Inspector Sergeant Officer Chief Constable King Queen Prince Princess Pope Coach "
        "Manager Director Chancellor Secretary General Commissioner Chairman Reporter Editor Striker "
        "Midfielder Goalkeeper Defender Star"
    )
)
NOT_PEOPLE = frozenset(
    listed(
        "University College School Hospital Airport Church Museum Stadium Arena Centre Center Hotel Prison Palace Zoo "
        "Street Road Lane Avenue Park Square Bridge River Lake County Island Islands Beach Bay Hill Mountain Valley "
        "House Ocean Sea Station Tower Yard Cape Coast Port Pacific Atlantic Indies Canyon Creek Falls Fort Mount "
        "League Cup Championship Championships Open Tour Games Series Festival Award Awards Prize Day Week "
        "FC AC Real Inter United City Town Rovers Athletic Albion Villa Palace Police Department Council Committee "
        "Court Party Club Bank Group Company Corporation Corp Inc Ltd Airlines Air Association Agency Office Congress "
        "Senate Army Navy Force Union Nations Board Times News Post Mail Daily Evening Act Bill Show State States "
        "Kingdom Empire Republic North South East West New San Santa Los Las Saint St Great Middle World National "
        "International Royal American Premier Facebook Twitter Instagram YouTube Google Apple Microsoft Amazon Line "
        "Bus Black White Red Blue Family Foundation Institute Trust Health Human Rights"
    )
)
"""Words that are not part of a person's name, or may also be part of another name."""
HEADS = frozenset(
    listed(
        "University College School Hospital Airport Museum Stadium Arena Hotel Prison Zoo Street Road Lane Avenue "
        "County Island Islands Beach Valley Ocean Sea League Cup Championship Championships Open Festival Award "
        "Awards Prize FC Rovers Athletic Albion Police Council Party Company Corporation Airlines Agency Army Navy "
        "Times Act"
    )
)
"""Last words that say what a name names; names of one kind share theirs."""
NO_NAMES = frozenset(listed("TV UNK DVD CEO PM CCTV DNA GPS IT PC ID II III AM OK God Mr St"))
MEN = frozenset(
    listed(
        "David Peter Simon Mark John James Robert Michael William Richard Thomas Charles Daniel Matthew "
        "Anthony Steven Paul Andrew Kevin Brian George Edward Ronald Jason Jeffrey Ryan Jacob Gary Eric "
        "Jonathan Stephen Justin Scott Frank Carlos Jose Steve Chris Tim Tom Joe Jamie Jack Harry Adam Ben "
        "Luke Nathan Aaron Alan Alex Alexander Allen Andre Andy Antonio Arsene Arthur Barack Barry Bill Billy "
        "Bob Bobby Brad Bradley Brendan Bruce Bruno Cameron Christopher Craig Cristiano Danny Darren Dave "
        "Dean Dennis Diego Donald Doug Douglas Dylan Ed Elon Ethan Fernando Francis Gareth Gerard Glenn "
        "Graham Greg Gregory Henry Howard Hugh Ian Ivan Jeff Jeremy Jerry Jim Jimmy Joel Johnny Jon Jordan "
        "Jorge Josh Joshua Juan Keith Ken Kenneth Kyle Larry Lee Leo Lewis Liam Lionel Louis Luis Marcus "
        "Mario Martin Matt Max Mike Mitt Mohammed Muhammad Neil Neymar Nick Nicholas Nigel Norman Oliver "
        "Oscar Patrick Pedro Pete Phil Philip Rafael Ralph Ray Raymond Rick Ricky Rob Robbie Robin Rod Rodney "
        "Roger Ron Ronnie Ross Roy Ruben Russell Sam Samuel Sean Sebastian Sergio Stan Stewart Stuart Ted "
        "Terry Theo Tiger Timothy Todd Tony Trevor Tyler Vincent Vladimir Walter Warren Wayne Wes Zlatan Zac "
        "Floyd Manny"
    )
)
WOMEN = frozenset(
    listed(
        "Laura Helen Anna Julia Mary Patricia Jennifer Linda Elizabeth Barbara Susan Jessica Sarah Karen "
        "Nancy Lisa Betty Margaret Sandra Ashley Emily Donna Michelle Carol Amanda Melissa Stephanie Rebecca "
        "Sharon Kate Katie Amy Rachel Emma Nicole Samantha Christine Catherine Maria Diana Becky Jane Alice "
        "Claire Hannah Sophie Abigail Alexandra Alison Amber Andrea Angela Angelina Ann Anne Annie Beth "
        "Bethany Brenda Britney Carla Caroline Charlotte Cheryl Chloe Christina Cindy Danielle Dawn Debbie "
        "Deborah Denise Dorothy Eleanor Ella Ellen Erin Eva Gemma Georgia Gina Grace Hayley Heather Heidi "
        "Hillary Holly Jacqueline Janet Jean Jenna Jennie Jenny Jill Joan Joanna Joanne Judith Judy Julie "
        "Karin Kathleen Kathryn Katherine Kathy Katy Kayla Kelly Kendall Kerry Kim Kimberly Kirsten Kirsty "
        "Kristen Lauren Leah Lily Lindsay Lindsey Lorraine Louise Lucy Lynn Madison Marie Martha Megan "
        "Melanie Meghan Miley Miranda Miriam Molly Monica Naomi Natalie Natasha Nina Nora Olivia Pamela Paula "
        "Penelope Pippa Priscilla Rihanna Robyn Rosie Ruth Sally Sara Selena Serena Shannon Sheila Sheryl "
        "Sienna Sonia Stella Sue Suzanne Sylvia Tanya Tara Taylor Teresa Tina Tracey Tracy Valerie Vanessa "
        "Venus Veronica Victoria Virginia Wendy Yvonne Zara Zoe"
    )
)


def _any_of(words: str) -> str:
    return "(?:" + "|".join(listed(words)) + ")"


# Typos

_SMALL_WORD = re.compile(r"(?<![\w’'-])[a-z]{5,}(?![\w’'-])")
_KEYS = {
    letter: row[max(0, n - 1) : n] + row[n + 1 : n + 2]
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for n, letter in enumerate(row)
}


# Function words

_DROPPED = _any_of("a an the of to in on at for from by with is are was were be been has have had will and that as")
_FUNCTION_WORD = re.compile(rf"(?<=[\w,;)’'] ){_DROPPED} (?=[\w$£€])")
_TRAILING = _any_of(
    "a an the of to in on at for from by with and or but that which who as is are was were be been has have had will "
    "his her its their this into than because when while after before between"
)

# Negation

_BE = "is|are|was|were"
_MODAL = "will|would|could|should|must|might"
_NOT_AFTER = _any_of(
    "not n't n’t only just also no never still always already nothing none nobody yet so too either neither hardly "
    "barely rather quite almost nearly about what how why where when that more less"
)
_ADD_NOT = re.compile(rf"(?<=[\w’'\")] )(?P<aux>{_BE}|{_MODAL}|can|does|did)(?= (?!{_NOT_AFTER}\b)[A-Za-z$£€\d])")
_CONTRACTED = re.compile(
    r"\b(?P<aux>is|are|was|were|do|does|did|has|have|had|could|would|should|ca|wo|can) ?(?:n['’]t|['’]t)\b"
)
_WITHOUT_NOT = re.compile(rf"(?<=\w )(?P<aux>{_BE}|{_MODAL}|can|do|does|did|has|have|had) ?not (?!only\b)(?=[a-z])")
_NEVER = re.compile(r"(?<=[\w,] )never (?=[a-z])")
_PARTICIPLE = (
    r"(?:been|[a-z]{2,}ed|won|lost|made|taken|given|gone|become|seen|known|found|left|told|said|held|brought|begun|"
    r"written|fallen|sent|built|understood|drawn|broken|spent|driven|bought|worn|chosen|sold|risen|grown|set|put|cut|hit)"
)
_PERFECT = re.compile(rf"(?<=[\w’'\")] )(?P<aux>has|have|had)(?= {_PARTICIPLE}\b)")
_POSSESSION = re.compile(r"(?<=[\w’'\")] )(?P<verb>has|had)(?= (?:a|an|the|his|her|its|their)\b)")
_BASE = dict(
    pair.split("/")
    for pair in listed(
        "took/take went/go gave/give came/come saw/see knew/know began/begin wrote/write spoke/speak "
        "broke/break drove/drive chose/choose ate/eat grew/grow flew/fly became/become forgot/forget "
        "threw/throw wore/wear shook/shake stole/steal fell/fall ran/run sang/sing"
    )
)
_PAST = re.compile(rf"(?<=[\w’'\")] )(?P<verb>{'|'.join(_BASE)})(?= [A-Za-z\d$£€])")
_AFTER_PRONOUN = re.compile(
    r"(?:(?<=\bhe )|(?<=\bit )|(?<=\bwe )|(?<=\bshe )|(?<=\bwho )|(?<=\bthey )|(?<=\bpolice ))"
    r"(?P<verb>said|told|won|lost|made|left|found|admitted|added|died|moved|asked|wanted|refused|agreed|appeared|received|joined|helped|played|scored|suffered|claimed|visited)"
    r"(?= (?!by\b)[A-Za-z\d$£€])",
    re.IGNORECASE,
)
_BASE |= {"said": "say", "told": "tell", "won": "win", "lost": "lose", "made": "make", "left": "leave"}
_BASE |= {"found": "find", "admitted": "admit", "died": "die", "moved": "move", "refused": "refuse"}
_BASE |= {"agreed": "agree", "received": "receive", "scored": "score"}
_SECOND_VERB = re.compile(rf".*\b(?:and|or|but) (?:\w+ly )?(?:{_PARTICIPLE}|{'|'.join(_BASE)})\b").match
"""Match a second past verb after the first, which a negation would not reach."""
_AFTER_AUXILIARY = re.compile(
    rf"\b(?:{_BE}|be|been|being|has|have|had|having|to|{_MODAL}|may|can|not|and|or|'s|’s|n't) \Z"
).search
_NEGATIVE_POLARITY = r"any(?:one|thing|where|body)?|ever|either|yet|neither|nor"
_NEEDS_NEGATION = re.compile(rf"\b(?:{_NEGATIVE_POLARITY}|until|but|only|longer)\b").search
_HAS_NEGATION = re.compile(
    rf"\b(?:{_NEGATIVE_POLARITY}|not|no|none|nobody|nothing|nowhere|never|hardly|unless)\b", re.IGNORECASE
).search
_NO_SUBJECT = re.compile(r"(?:\b(?:than|as|not|to)|,) \Z", re.IGNORECASE).search
_CLAUSE = re.compile(
    r"\b(?:if|whether|as|while|when|whenever|because|although|though|since|after|before|once|so)\b[^,;:]*\Z",
    re.IGNORECASE,
).search
"""Match the start of a clause that states no fact of its own: negating it would change little."""


# Numbers in words

_SMALL_NUMBERS = listed("two three four five six seven eight nine ten eleven twelve")
_TENS = listed("twenty thirty forty fifty sixty seventy eighty ninety")
_COUNT = re.compile(rf"(?<![\w-])({'|'.join([*_SMALL_NUMBERS, *_TENS])})(?=[ -][a-z])", re.IGNORECASE)


# Names

_BESIDE = 20  # characters that decide about the kind of a name
_CAPITAL = r"[A-Z](?:[^\W_]|[’'](?=[A-Z])|[&-](?=[^\W_]))*"
_RUN = re.compile(rf"(?<![\w&’'.-]){_CAPITAL}(?: (?:(?:of|de|del|da|van|von|der|bin|al|la) ){{0,2}}{_CAPITAL}){{0,5}}")
_WORD = re.compile(r"(?<![\w’'-])[^\W\d_]+")
_starts_sentence = re.compile(r"(?:\A|[.!?:;\n\"“”‘`(–—]|''|``|'|--)\s*\Z").search
_after_the = re.compile(r"\b[Tt]he \Z").search
_PLAIN = re.compile(r"(?!of\Z)[^\W\d_]{2,}(?:['’-][^\W\d_]+)*").fullmatch


def _before(match: re.Match[str]) -> str:
    return match.string[max(0, match.start() - _BESIDE) : match.start()]


def _strip_titles(match: re.Match[str], small: set[str]) -> str:
    """Remove titles, and a first word that is capitalised only because it starts a sentence."""
    words = match.group().split()
    first = words[0]
    if _starts_sentence(_before(match)) and (first.lower() in small or (len(words) == 1 and first not in LISTED)):
        words = words[1:]
    titles = [n for n, word in enumerate(words) if word in TITLES]
    words = words[titles[-1] + 1 :] if titles else words
    while words and (words[0].islower() or english_noun_phrases.is_function(words[0].lower())):
        words = words[1:]
    name = " ".join(words)
    dated = name not in LISTED and not DATES.isdisjoint(words)
    common_word = len(words) == 1 and (name in NOT_PEOPLE or name.lower() in small)
    return "" if len(name) < 2 or dated or common_word or words[-1] in NO_NAMES else name


def _kind_of_name(match: re.Match[str], name: str) -> str:
    """Return the kind of a name; a name after `the` has its own kind. `pair` may be a person; empty is unknown."""
    if name in LISTED:
        return LISTED[name]
    words = name.split()
    before = _before(match) + match.group().removesuffix(name)
    article = " the" if _after_the(before) else ""
    if len(words) > 1 and words[-1] in HEADS:
        return words[-1] + article
    titled = before.split()[-1:] and before.split()[-1].rstrip(".") in TITLES
    if article or len(words) > 3 or any(w in NOT_PEOPLE or w[0].islower() or not _PLAIN(w) for w in words):
        return ""
    if len(words) == 1:
        return "family" if titled and not name.isupper() else ""
    aged = re.match(r" ?[,(] ?\d\d\b", match.string[match.end() : match.end() + _BESIDE])
    return "person" if titled or aged or words[0] in MEN or words[0] in WOMEN else "pair"


_starts_with_vowel = re.compile(r"[aeiou]|8|1[18](?!\d)", re.IGNORECASE).match


class English(LanguageRules):
    joint = " "
    typo_every = 45
    dropped = _FUNCTION_WORD
    peers: ClassVar = {
        **KINDS,
        "person": PEOPLE,
        "family": tuple(name.split()[1] for name in PEOPLE),
        "University": ("Harvard University", "Yale University", "Oxford University", "Durham University"),
        "Hospital": ("Addenbrooke's Hospital", "Mercy Hospital", "Whittington Hospital"),
        "County": ("Jefferson County", "Orange County", "Franklin County"),
        "Airport": ("Heathrow Airport", "Logan Airport", "Schiphol Airport"),
    }
    trailing = re.compile(rf"\s{_TRAILING}\Z")
    empty = (
        "There is of course a great deal that could be said about all of this.",
        "As is so often the case, things are the way they are for a number of reasons.",
        "It is worth pausing for a moment to think about what has been said here.",
        "Taken together, these are the points that there are to be mentioned.",
        "All of this is to be seen in the light of everything that belongs to it.",
        "In the end, one can look at the matter from one side or from another.",
        "These are matters on which different people may well have different views.",
        "Much more could be added, and much of it would be interesting in its own way.",
    )
    shortest_cut = 30

    def misspelled(self, whole: str, chance: Random) -> list[Edit]:
        """Return words of five or more lower-case letters, each with one slip of the finger."""
        written = set(_SMALL_WORD.findall(whole))
        typos = []
        for match in _SMALL_WORD.finditer(whole):
            word = match.group()
            at = chance.randrange(1, len(word) - 2)
            here, following = word[at], word[at + 1]
            # Two letters swapped (twice as often) or one dropped, one doubled, or the key beside it.
            slips = [word[:at] + here + word[at:], word[:at] + chance.choice(_KEYS[here]) + word[at + 1 :]]
            if here != following:
                slips += [word[:at] + following + here + word[at + 2 :]] * 2 + [word[:at] + word[at + 1 :]]
            if (slip := chance.choice(slips)) not in written:
                typos.append(Edit(*match.span(), (slip,)))
        return typos

    def negated(self, sentence: str) -> list[Edit]:
        """Add `not` after an auxiliary or finite verb, or remove it if it is there. Questions have no place for it."""
        if sentence.rstrip("\"'”’ ").endswith("?"):
            return []
        if not _NEEDS_NEGATION(sentence):
            full = {"ca": "can", "wo": "will"}  # what is left of `can't` and `won't`
            affirmed = [
                Edit(*match.span(), (full.get(match["aux"], match["aux"]),)) for match in _CONTRACTED.finditer(sentence)
            ]
            affirmed += [Edit(*match.span(), (match["aux"] + " ",)) for match in _WITHOUT_NOT.finditer(sentence)]
            affirmed += [deletion(match) for match in _NEVER.finditer(sentence)]
            if affirmed:
                return affirmed
        if _CONTRACTED.search(sentence) or _HAS_NEGATION(sentence):
            return []
        denials = [
            (match, "cannot" if match["aux"] == "can" else f"{match['aux']} not")
            for match in chain(_ADD_NOT.finditer(sentence), _PERFECT.finditer(sentence))
            if not _NO_SUBJECT(sentence[: match.start()])
        ]
        denials += [
            (match, "does not have" if match["verb"] == "has" else "did not have")
            for match in _POSSESSION.finditer(sentence)
            if not _AFTER_AUXILIARY(sentence[: match.start()])
        ]
        for match in chain(_PAST.finditer(sentence), _AFTER_PRONOUN.finditer(sentence)):
            if not _AFTER_AUXILIARY(sentence[: match.start()]) and not _SECOND_VERB(sentence, match.end()):
                verb = match["verb"].lower()
                denials.append((match, "did not " + _BASE.get(verb, verb.removesuffix("ed"))))
        return [Edit(*m.span(), (words,)) for m, words in denials if not _CLAUSE(sentence[: m.start()])]

    def number_words(self, whole: str) -> list[Edit]:
        places = []
        for match in _COUNT.finditer(whole):
            word = match.group().lower()
            row = _SMALL_NUMBERS if word in _SMALL_NUMBERS else _TENS
            new = [
                candidate
                for candidate in row
                if candidate != word and not re.search(rf"\b{candidate}\b", whole, re.IGNORECASE)
            ]
            places.append(Edit(*match.span(), tuple(w.title() if match.group()[0].isupper() else w for w in new)))
        return [place for place in places if place.options]

    def names(self, whole: str) -> list[Name]:
        """Return runs of capitalised words that name one known kind of thing. Headlines have none."""
        words = _WORD.findall(whole)
        if 2 * sum(word[0].isupper() for word in words) > len(words):
            return []
        small = {word for word in words if word[0].islower()}
        runs = []
        for match in _RUN.finditer(whole):
            before, after = _before(match), whole[match.end() : match.end() + _BESIDE]
            quoted = re.search(r"[\"“`'‘]\s?\Z", before) and re.match(r"\s?[\"”`'’](?!s\b)", after)
            # A title in quotes, or a part of a name with a possessive, is no name.
            if not (quoted or re.search(r"[’']s \Z", before) or re.match(r" ?[’']s [A-Z]", after)):
                runs.append((match, _strip_titles(match, small)))
        candidates = [Name(name, _kind_of_name(match, name)) for match, name in runs if name]
        titled = {name.text for name in candidates if name.kind == "family"}
        candidates = [
            Name(text, "person" if kind == "pair" and text.split()[-1] in titled else kind) for text, kind in candidates
        ]
        people = [name.text.split() for name in candidates if name.kind == "person"]
        families, forenames = {words[-1] for words in people}, {words[0] for words in people}
        candidates += [Name(family, "family") for family in sorted(families)]
        kinds: dict[str, set[str]] = {}
        for text, kind in candidates:
            kinds.setdefault(text, set()).update({kind} - {"", "pair"})
        return [Name(text, *known) for text, known in kinds.items() if len(known) == 1 and text not in forenames]

    def fits(self, before: str, old: str, new: str, after: str) -> bool:
        """Return whether `a` or `an` still fits, and a forename fits `he` or `she` if only one of them occurs."""
        if re.search(r"\ban? \Z", before, re.IGNORECASE) and bool(_starts_with_vowel(old)) != bool(
            _starts_with_vowel(new)
        ):
            return False
        first, forename = old.split()[0].title(), new.split()[0]
        if (first in MEN and forename in WOMEN) or (first in WOMEN and forename in MEN):
            return False
        he, she = (re.search(rf"\b(?:{words})\b", before + after, re.IGNORECASE) for words in ("he|his|him", "she|her"))
        return not (forename in WOMEN and he and not she) and not (forename in MEN and she and not he)
