"""Sentences. Oracles: examples by hand, the published rule for SummEval, and that no text is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judge import text

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)  # lone surrogates as well
PROSE = st.lists(
    st.sampled_from(
        [
            *'.!?…。！？．।۔؟" ”“「」（）)',
            " ",
            " ",
            "\n",
            "Dr",
            "U.S",
            "J",
            "5",
            "2024",
            "The",
            "船",
            "다",
            "が",
            "a",
        ]
    )
).map("".join)


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        ("It rained. Who knew? Nobody!", ["It rained.", "Who knew?", "Nobody!"]),
        ('He said "No." Then (at last.) he left.', ['He said "No."', "Then (at last.)", "he left."]),
        ("Pi is 3.14 here. Yes", ["Pi is 3.14 here.", "Yes"]),
        ("the u.s. team won . it rained . end", ["the u.s. team won .", "it rained .", "end"]),
        ("first line. still first\nsecond", ["first line. still first", "second"]),
        ("one\r\n\r\ntwo\n", ["one", "two"]), ("one. two\n", ["one.", "two"]),
        ("雨だ。本当？！「はい。」終わり", ["雨だ。", "本当？！", "「はい。」", "終わり"]), ("", []), (" \n ", []),
        (" . ", ["."]),
    ],
)  # fmt: skip
def test_sentences_by_hand(whole: str, expected: list[str]) -> None:
    assert text.sentences(whole) == expected


# A bar marks the end of a sentence.
ENGLISH = """
The U.S. Army came.| Nobody met it.
It came from the U.S.| The ferry was late.
Dr. Lee and Mrs. Oh met Prof. Kim.| They talked.
J. K. Rowling wrote it.| George W. Bush did not.
Some, e.g. the ferry, were late (cf. Fig. 3).| Others, i.e. trains, were not.
It left at 5 p.m. in the rain.| It came at 6 a.m.| The rest is known.
No. 5 won.| Did it?| No.| Then who did?
On Jan. 5 it snowed.| It was a Sat.| The cat sat.| Dogs barked.
Acme Inc. sold Bolt Ltd. in 1990.| Twenty years passed.
Well... maybe not.| Wait...| What?|  Yes… no.
“Who knew?” he asked.| “Nobody.”| She left.
1. Wash the rice.| 2. Boil it for 9.5 minutes.| a. Eat.
who knew?| nobody did.| it rained.
Ferries, trains, etc. were late.| Buses, etc.| The end.
It is on example.org and costs $3.50.| Good!
Il pleut.| Tu viens ?| Oui !
Die Fähre kam am 3. Mai an.| Sie fuhr vom 1. April bis 5. Juni.| Im 19. Jahrhundert war das anders.
Am 3. und 4. Oktober, z. B. in Köln, d. h. am Rhein, kamen ca. 5 Schiffe.| Die Stadt zahlte 5 Mio. Euro.
Sie wurde 3.| Danach kam Nr. 4 bzw. Anna.| Es kostet 5 Mio.| Die Stadt zahlt Schiffe usw.| Der Rest ist klar.
I am 3.| The ferry won 31.| August was hot.| It made 5 mm.| Rain fell in Los Angeles, CA.| The end.
Færgen kom den 3. maj.| Den 4. april var det slut.| Loď přijela 3. května.| Laiva tuli 3. toukokuuta.
En EE. UU. hay ferris, p. ej. en Maine.| Llegó a EE. UU.| La gente esperó al Sr. Ruiz.| Vino en el núm. 5.
M. Dupont et MM. Petit parlent, p. ex. de Paris, c.-à-d. d’ici.| Vers 50 av. J.-C. Rome dormait.| Il part.
The vitamins were A.| They left.| We go.| OK.| It left at 6 a. m.| The rest is known.
"""
OTHERS = """
Паром опоздал.| А. С. Пушкин ждал.| «Да.»| Конец.
هل وصلت السفينة؟| نعم وصلت.| انتهى
جہاز دیر سے آیا۔| لوگ رکے۔|پھر گئے۔
नाव देर से आई।| क्या हुआ?|  सब रुके।|समाप्त॥
ጀልባው ዘገየ።| ሰዎች ጠበቁ።
彼は「行く。すぐ戻る。」と言った。|「はい。」|終わり
（本当だ。嘘ではない。）|そして帰った。|本当!|うん?|そう.|はい！！|円周率は３．１４だ．|次だ
「閉じない。|次の文。|『はい。』、そう言った。
“我来了。你呢？”他说。|“好。”，他问。|他走了……天黑了。|真的吗?|是的!|好。
“你来吗？”小明笑着问道：“来吧！”|“好。”|他知道。|“走！”|我听说他走了。|「你來嗎？」他問。
「本当か？」と聞いた。| “行くぞ！”と叫んだ。|『はい。』 と言った。|「行く。」|彼は帰った。
배가 늦게 도착했다.| 승객들은 2024. 5. 3. 항구에서 기다렸다.|그리고 떠났다!|정말?|네
"늦었다." 라고 말했다.| “네.”라고 답했다.| 값은 3.5만 원이다.| 초.중.고 학생도 왔다.
"""
# Stops that do not end a sentence: in brackets, names and French quotations, and after abbreviations.
NO_END = """
この点は報告（p. 12）に詳しい。|次の章（cf. Ito et al. 2019, fig. 3）も見よ。
详见报告（p. 12）。|另见（vol. 2, No. 3）。|完。
「No. 5 は売れた. 本当だ」と彼は言った。|次。
モーニング娘。が歌った。|昨夜、赤い公園。のライブがあった。|次は乙女。を聴く。|娘。には勝てない。
アニメ「けいおん！」を見た。|ラブライブ！は人気だ。|ハイキュー！！の作者も来た。|本当か！？|とても良い。
雨だ。|が、船は出た。|彼は待った。|でも来ない。|とても寒い。|のちに晴れた。
« Qui va là ? » cria-t-il. |Personne. |« Bonne nuit ! » |Il ferma la porte.
Il dit : « Viens vite ! », puis sortit. |« Non. » |Rien.
Er rief: »Halt!« und ging. |»Wer da?« fragte sie.
Она родилась в 1990 г. в Твери. |В 1812 г. Наполеон пришёл в Москву. |В XX в. всё было иначе.
Он умер в 1837 г. |После этого прошло 5 тыс. дней. |Это стоит 3 млн. рублей.
Дом стоит на ул. Ленина, д. 5, кв. 7. |См. рис. 3, табл. 2 и т. д. |И т. п. |Конец.
Проф. Иванов жил там, т. е. в Твери. |Он ушёл в 5 в. до н. э. |Это всё.
Він народився в 1990 р. у Києві, вул. Хрещатик. |Потім поїхав.
Ông sống ở TP. Hồ Chí Minh. |PGS. TS. Nguyễn Văn An đến Tp. Huế. |Bà ở Hà Nội.
Urodził się w 1990 r. w Krakowie, ul. Długa 5. |Tzw. prof. dr hab. Nowak zna np. Anię. |Potem wyszedł.
Tzv. jaro r. 1968 trvalo, např. Petr to ví. |Pak skončilo. |Obr. 3 to ukazuje.
Sn. Kaya geldi, bkz. Ek 2. |Sonra gitti.
La Dña. Ana vive en la Avda. Mayor 5. |Il sig. Rossi, pag. 3, n. 5. |Fine.
Toko di Jl. Sudirman No. 5 ramai. |Dia pergi.
Ο κ. Παπάς γεννήθηκε το 300 π.Χ. στην Αθήνα. |Μετά έφυγε, π.χ. στη Ρώμη.
พ.ศ. 2560 ฝนตก
डॉ. सिंह आए।| वे गए।
The lamp has 60 W. |The other is off. |It weighed 5 gr. |He came in. |nobody did.
"""


@pytest.mark.parametrize(
    "line", [line for line in (ENGLISH + OTHERS + NO_END).splitlines() if line]
)
def test_sentences_of_running_text(line: str) -> None:
    assert text.sentences(line.replace("|", "")) == [part.strip() for part in line.split("|")]


@given(ANY_TEXT | PROSE)
@example("a . b")
def test_sentences_lose_only_white_space(whole: str) -> None:
    parts = text.sentences(whole)
    assert "".join("".join(parts).split()) == "".join(whole.split())
    assert all(part.strip() == part != "" for part in parts)


@given(st.lists(PROSE, max_size=4))
def test_line_breaks_take_precedence_over_stops(lines: list[str]) -> None:
    whole = "\n".join(["first.", *lines, "last."])
    assert text.sentences(whole) == [line.strip() for line in whole.splitlines() if line.strip()]


@pytest.mark.parametrize(
    "unit",
    ["「", "」", "。", "「。", ". ", ".", '"', "A. ", '."', " ", "a", "😀", "\0", "\ud800", "؟ "],
)
def test_a_long_text_of_one_repeated_unit_is_split_in_time(unit: str) -> None:
    """A rule with quadratic time would exceed the time limit of the tests."""
    whole = "x" + unit * (100_000 // len(unit)) + "x"
    assert len("".join("".join(text.sentences(whole)).split())) == len("".join(whole.split()))


def test_sentences_of_summeval_equal_the_published(shared_data: Callable[[str], Path]) -> None:
    """The published ROUGE inputs are split after each . ! ? that has white space before it."""
    with shared_data("summeval.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for whole in {part for row in rows for part in (row["summary"], *row["references"])}:
        gold = [part for part in re.split(r"(?<=\s[.!?])\s+", whole.strip()) if part]
        assert text.sentences(whole) == gold
