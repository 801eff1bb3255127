"""Rules for changing Korean texts, without a dictionary."""

from __future__ import annotations

import re
from random import Random
from typing import ClassVar, NamedTuple

from judge.audits.perturbations.edits import Edit, LanguageRules, Name, deletion, listed

_FIRST, _VOWELS = 0xAC00, "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_FINALS = ["", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"]


class _Syllable(NamedTuple):
    """A syllable of Hangul: the number of its initial, its vowel, its final consonant or nothing."""

    initial: int
    vowel: str
    final: str

    def __str__(self) -> str:
        return chr(_FIRST + (self.initial * 21 + _VOWELS.index(self.vowel)) * 28 + _FINALS.index(self.final))


def _syllable(letter: str) -> _Syllable:
    """Split a letter between 가 and 힣."""
    number = ord(letter) - _FIRST
    return _Syllable(number // 588, _VOWELS[number % 588 // 28], _FINALS[number % 28])


def _has_final(word: str) -> bool:
    """Return whether a word ends in a consonant, which decides its particle; False for digits and Latin letters."""
    return "가" <= word[-1] <= "힣" and _syllable(word[-1]).final != ""


# Typos: a final consonant that is not heard and that no foreign name is written with, or, in a few common words and
# the particle 의, a vowel that sounds like another

_UNHEARD = {"ㅆ": "ㅅ", "ㄶ": "ㄴ", "ㅀ": "ㄹ", "ㅎ": "", "ㄺ": "ㄱ", "ㅄ": "ㅂ", "ㄲ": "ㄱ", "ㅌ": "ㅅ", "ㅍ": "ㅂ"}
_BY_SOUND = dict(
    pair.split("/")
    for pair in listed(
        "때문/떄문 문제/문재 내용/네용 내년/네년 올해/올헤 해마다/헤마다 대해/데해 피해/피헤 함께/함깨 "
        "실제/실재 계획/게획 세계/세게 관계/관게 계속/게속 오래/오레 최대/최데 개최/게최 재개/제개 공개/공게 "
        "소개/소게 대책/데책 경제/경재 축제/축재 과제/과재 규제/규재 이제/이재 언제/언재 전체/전채 대신/데신 "
        "기대/기데 확대/확데 절대/절데 상대/상데 반대/반데 매우/메우 새로/세로 현재/현제 배우/베우 "
        "가운데/가운대 되었/돼었 되어/돼어 되는/돼는 되고/돼고 되지/돼지 된다/됀다 에서/애서 에게/에개 "
        "에는/애는 어떻게/어떡게 며칠/몇일 않/안 많은/만은 없이/업시 같이/가치"
    )
)
_TYPO = re.compile(rf"{'|'.join(_BY_SOUND)}|(?P<of>(?<=[가-힣])의(?=\s))|[가-힣]")


# Particles at the end of a word whose stem has two syllables or more and the final that the particle wants. Not 도, 는
# and 과, which end names, nouns and verbs as well, nor 의, without which nouns are as good.

_JOSA = re.compile(r"(?<=[가-힣][가-힣]|[\d%][가-힣])(?:에서|으로|[은이가을를에와로])(?=\s)")
_AFTER_FINAL, _AFTER_VOWEL = ("은", "이", "을", "으로"), ("가", "를", "와", "로")
_NO_NOUN = re.compile(
    r"(?:하|되|시키|지|어|아|리|있|없|않|스러우|다|라|으|까|나|니|게|고|면|서|[았었했였겠렸졌갔왔됐]"
    r"|[많좋깊높낮얇굵넓좁짧검붉밝맑늙젊같싶남앉맞찾닦잃받얻입죽읽먹잡막찍맡쌓끊놓넣닿낳묶꺾섞담참굽웃벗묻걷닫뜯잊맺찢늦걸볶풀린은])\Z"
).search
_NOT_BEFORE = {"로": "대도스회수미피새따별카", "가": "허추휴", "와": "타오"}
"""Last syllables of stems to which the particle's syllable belongs: 대로, 고속도로, 스스로, 카이로, 허가, 오타와."""


# Negation of the last predicate: stem, 지 않다

_STATE = "(?<=[고아어여해져려워와돼겨혀러켜])(?P<space> ?)"  # behind a verb: what goes on or is the case
_END = r"(?=[.!]?[\"'”’」)]*\Z)"
_ENDINGS = [
    (re.compile(ending + _END), negation)
    for ending, negation in (
        ("하지 않았다", "했다"),
        ("하지 않는다", "한다"),
        ("되지 않았다", "됐다"),
        ("지 않고 있다", "고 있다"),
        ("없다", "있다"),
        ("없었다", "있었다"),
        ("없습니다", "있습니다"),
        (rf"{_STATE}있다", "있지 않다"),
        (rf"{_STATE}있었다", "있지 않았다"),
        (rf"{_STATE}있습니다", "있지 않습니다"),
        (rf"{_STATE}있었습니다", "있지 않았습니다"),
        ("있다", "없다"),
        ("있었다", "없었다"),
        ("있습니다", "없습니다"),
        ("있었습니다", "없었습니다"),
    )
]
_PAST = re.compile(rf"(?P<stem>[가-힣])(?P<end>다|습니다){_END}")
_PRESENT = re.compile(rf"(?P<stem>[가-힣])다{_END}")
_POLITE = re.compile(rf"(?P<stem>[가-힣])니다{_END}")
_PRESENT_AFTER_FINAL = re.compile(rf"(?<=[가-힣])는다{_END}")
_IS = re.compile(rf"(?<=[가-힣])(?:이다|입니다|이었다){_END}")
_ARE_NOT = {"이다": "아니다", "입니다": "아닙니다", "이었다": "아니었다"}
_CONTRACTED = {"ㅏ": "ㅏ", "ㅕ": "ㅣ", "ㅝ": "ㅜ", "ㅘ": "ㅗ", "ㅐ": "ㅐ", "ㅙ": "ㅚ", "ㅓ": "ㅓ", "ㅔ": "ㅔ"}
_is_negative = re.compile(rf"(?:지 (?:않|못)|아니|아닙)[가-힣]*{_END}").search
_is_hearsay = re.compile(rf"(?:고 ?(?:한|합니|했|하)|[아어여해] ?[본봤봅보])[가-힣]*{_END}").search
"""Match what is only reported (`하였다고 한다`) or tried (`해 본다`)."""
_MAY_LACK_FINAL = re.compile(r"[한된간온준본낸진린킨친인힌긴민]\Z").search
"""Match present verbs. Verbs such as 만든다, whose stem has lost a ㄹ, are left out."""


def _negate_past(sentence: str) -> list[Edit]:
    """`밝혔다` to `밝히지 않았다`."""
    match = _PAST.search(sentence)
    if match is None or _syllable(match["stem"]).final != "ㅆ" or match["stem"] in "웠랐렀들":
        return []
    syllable, before = _syllable(match["stem"]), sentence[: match.start()]
    if match["stem"] in "았었":
        stem = "" if before and "가" <= before[-1] <= "힣" and before[-1] not in "들물걸이" else None
    elif match["stem"] == "했":
        stem = "하"
    else:  # `혔` to `히`, `왔` to `오`
        vowel = _CONTRACTED.get(syllable.vowel)
        stem = str(syllable._replace(vowel=vowel, final="")) if vowel else None
    return [] if stem is None else [Edit(*match.span(), (f"{stem}지 않았{match['end']}",))]


# Numbers in words: 두 곳, 세 사람

_COUNTS = listed("두 세 네 다섯 여섯 일곱 여덟 아홉")
_COUNTED = re.compile(
    rf"(?<![가-힣])({'|'.join(_COUNTS)})(?= ?(?:곳|명|개|번|사람|살|시간|달|마리|채|가지|차례|대|팀|배|권|편|척))"
)


# Names by what is written behind them

_FAMILY = "김이박최정강조윤장임한오서신권황안송류홍전문양손배백허남노하곽성차주우민"
_TITLE = "씨|대통령|총리|의원|감독|선수|장관|대표|회장|교수|위원장|시장|소장|팀장|박사|관장|원장|군수|변호사|기자"
_PERSON = re.compile(
    rf"(?<![가-힣])([{_FAMILY}][가-힣]{{2}})(?= ?[가-힣]{{0,4}}(?:{_TITLE}))(?! ?[가-힣]*[은는을를에의] )"
)
_PLACE = re.compile(r"(?<![가-힣])([가-힣]{2,4}([시군구]))(?=[ ,.]|은|는|의|에|와|과|가|이|을|를|로|청)")
_NO_PLACE = re.compile(
    r"(?:필요|비상|당|.?동|.?즉|.?수|.?임|.?역|.?일|.?상|.?해)시|.*(?:연구|요구|친구|기구|지구|가구|도구|입구|출구|항구|창구|축구"
    r"|야구|농구|배구|복구|장군|해군|공군|육군|적군|미군|아군|대군)"
).fullmatch
_COUNTRIES = listed(
    "미국 영국 중국 독일 일본 한국 태국 이집트 러시아 프랑스 캐나다 호주 인도 이탈리아 스페인 브라질 터키 "
    "베트남 잉글랜드 스코틀랜드 웨일스 아일랜드 아르헨티나 멕시코 칠레 페루 콜롬비아 쿠바 네덜란드 벨기에 "
    "스위스 스웨덴 노르웨이 덴마크 핀란드 폴란드 그리스 포르투갈 오스트리아 헝가리 우크라이나 이란 이라크 "
    "시리아 예멘 이스라엘 파키스탄 네팔 필리핀 인도네시아 말레이시아 싱가포르 나이지리아 케냐 리비아 튀니지 "
    "모로코 뉴질랜드"
)
_CITIES = listed(
    "서울 부산 대전 인천 울산 춘천 안산 수원 광주 대구 전주 제주 청주 여수 런던 파리 베를린 로마 마드리드 "
    "리스본 모스크바 도쿄 베이징 상하이 뉴욕 워싱턴 로스앤젤레스 시카고 보스턴 휴스턴 시애틀 샌프란시스코 "
    "올랜도 마이애미 토론토 시드니 멜버른 에든버러 더블린 브뤼셀 암스테르담 뮌헨 함부르크 바그다드 테헤란 "
    "나이로비 버밍엄"
)
_CLUBS = listed(
    "아스널 아스날 첼시 토트넘 에버턴 리버풀 사우샘프턴 선덜랜드 번리 레스터 맨유 맨시티 유벤투스 바르셀로나 "
    "도르트문트 뉴캐슬"
)
_STATES = listed(
    "캘리포니아 플로리다 텍사스 오하이오 오클라호마 애리조나 네바다 위스콘신 미시간 일리노이 펜실베이니아 매사추세츠"
)
_LISTED = re.compile(
    rf"(?<![가-힣])(?:(?P<country>{'|'.join(_COUNTRIES)})|(?P<city>{'|'.join(_CITIES)})"
    rf"|(?P<club>{'|'.join(_CLUBS)})|(?P<state>{'|'.join(_STATES)}))"
    r"(?=[,.'’)]|[은는이가을를의에와과로도]?(?: |\Z)|에서|에게|으로|[와과]의|로의)"
    r"|(?P<foreign>(?<![가-힣] )(?<![가-힣])[가-힣]{2,4} [가-힣]{2,5}(?= ?(?:\(\d\d|씨[은는이가을를의,. ])))"
    r"|(?P<weekday>[월화수목금토일]요일)"
)
_PEOPLE = listed("김민재 이서연 박준호 최은지 정도윤 강미라 윤태호 송지혜 한동수 오세진")


class Korean(LanguageRules):
    joint = " "
    typo_every = 30
    peers: ClassVar = {
        "person": _PEOPLE,
        "country": _COUNTRIES,
        "city": _CITIES,
        "foreign": ("데이비드 카버", "로라 하그리브스", "피터 랭글리", "사이먼 엘리슨", "줄리아 프렌티스", "마크 딜런"),
        "club": _CLUBS,
        "state": _STATES,
        "weekday": tuple(f"{day}요일" for day in "월화수목금토일"),
        "시": ("수원시", "청주시", "포항시", "전주시", "원주시", "여수시"),
        "군": ("해남군", "고성군", "홍천군", "태안군", "무주군"),
        "구": ("강남구", "마포구", "해운대구", "유성구"),
    }
    trailing = re.compile(r"[가-힣](?:을|를|의|에서|와|과|은|는)\Z")
    empty = (
        "물론 이 일에 대해서는 여러 가지로 말할 수 있을 것이다.",
        "모든 일에는 그 나름의 까닭이라는 것이 있기 마련이다.",
        "이상의 내용은 여러 면에서 생각해 볼 수 있는 것이라고 하겠다.",
        "여기서 이야기된 것은 이야기된 그대로의 것이라고 할 수 있다.",
        "어쨌든 이런 점들을 하나하나 살펴보는 것이 중요하다고 생각된다.",
        "사람마다 받아들이는 바가 다르다는 것은 말할 나위도 없는 일이다.",
        "이런 일에 대해서는 앞으로도 여러 가지 이야기가 나올 것이다.",
        "전체로 보면 전체로서의 모습이 있다고도 할 수 있을 것이다.",
    )
    shortest_cut = 16
    counted = _COUNTED
    digits = _COUNTS
    listed_names = _LISTED

    def misspelled(self, whole: str, chance: Random) -> list[Edit]:
        """Return at most one typo per word."""
        typos = []
        for match in _TYPO.finditer(whole):
            if match["of"]:
                typo = "에"
            elif match.group() in _BY_SOUND:
                typo = _BY_SOUND[match.group()]
            else:
                syllable = _syllable(match.group())
                if syllable.final not in _UNHEARD:
                    continue
                typo = str(syllable._replace(final=_UNHEARD[syllable.final]))
            typos.append(Edit(*match.span(), (typo,)))
        return [p for n, p in enumerate(typos) if n == 0 or re.search(r"\s", whole[typos[n - 1].start : p.start])]

    def droppable(self, whole: str) -> list[Edit]:
        particles = []
        for match in _JOSA.finditer(whole):
            josa, stem = match.group(), whole[: match.start()]
            wrong = _AFTER_VOWEL if _has_final(stem) and not (josa == "로" and stem[-1] in "을일월") else _AFTER_FINAL
            if josa not in wrong and not _NO_NOUN(stem[-2:]) and stem[-1] not in _NOT_BEFORE.get(josa, ""):
                particles.append(deletion(match))
        return particles

    def negated(self, sentence: str) -> list[Edit]:
        """Switch the polarity of the end of the sentence."""
        for ending, negation in _ENDINGS:
            if match := ending.search(sentence):
                return [Edit(match.end() - len(match.group().lstrip()), match.end(), (negation,))]
        if _is_negative(sentence) or _is_hearsay(sentence):
            return []
        if edits := _negate_past(sentence):
            return edits
        if match := _IS.search(sentence):  # `책이다` to `책이 아니다`
            josa = "이" if _has_final(sentence[: match.start()]) else "가"
            return [Edit(*match.span(), (f"{josa} {_ARE_NOT[match.group()]}",))]
        if match := _PRESENT_AFTER_FINAL.search(sentence):
            return [Edit(*match.span(), ("지 않는다",))]
        # `한다` to `하지 않는다`, `합니다` to `하지 않습니다`
        for pattern, final, negation in ((_PRESENT, "ㄴ", "않는다"), (_POLITE, "ㅂ", "않습니다")):
            match = pattern.search(sentence)
            if match and _syllable(match["stem"]).final == final and match["stem"] not in "입습":
                if final == "ㄴ" and not _MAY_LACK_FINAL(match["stem"]):
                    return []
                stem = str(_syllable(match["stem"])._replace(final=""))
                return [Edit(*match.span(), (f"{stem}지 {negation}",))]
        return []

    def names(self, whole: str) -> list[Name]:
        names = [Name(match.group(1), "person") for match in _PERSON.finditer(whole)]
        names += [Name(m.group(1), m.group(2)) for m in _PLACE.finditer(whole) if not _NO_PLACE(m.group(1))]
        return names + super().names(whole)

    def fits(self, before: str, old: str, new: str, after: str) -> bool:
        """The particle after a name depends on whether the name ends in a consonant, and on ㄹ."""
        return _has_final(old) == _has_final(new) and (
            old[-1] in "울을일" or new[-1] not in "울을일" or after[:1] != "로"
        )
