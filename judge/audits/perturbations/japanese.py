"""Rules for changing Japanese texts, without a dictionary."""

from __future__ import annotations

import re
from random import Random
from typing import ClassVar

from judge.audits.perturbations.edits import Edit, LanguageRules, Name, listed

_KANJI = "々〆ヶ\u4e00-\u9fff"
_KATAKANA = "ァ-ヺー"
_NOUN_END = rf"[{_KANJI}{_KATAKANA}\d０-９A-Za-z」』）%％]"
_NOUN_START = rf"[{_KANJI}{_KATAKANA}\d０-９A-Za-z「『（]"

# Typos: another word of the same reading, a particle as it sounds, a wrong small or voiced kana, a kana typed twice

_SAME_READING = {
    pair[:2]: pair[3:]
    for pair in listed(
        "以外:意外 意外:以外 機会:機械 機械:機会 対象:対称 期間:機関 機関:期間 保証:保障 関心:感心 公開:後悔 "
        "開放:解放 解放:開放 移動:異動 構成:更生 紹介:照会 制作:製作 製作:制作 追及:追求 追求:追及 回答:解答 "
        "解答:回答 改定:改訂 過程:課程 課程:過程 観光:刊行 協力:強力 原因:減員 減少:現象 現象:減少 効果:高価 "
        "高価:効果 講演:公演 公演:講演 時期:磁気 支持:指示 指示:支持 自身:自信 自信:自身 収集:収拾 終了:修了 "
        "習慣:週間 状況:上京 人口:人工 人工:人口 成果:生家 生産:精算 選手:先取 施設:使節 想像:創造 増加:造花 "
        "体制:態勢 当時:答辞 同士:同志 普通:不通 方針:放心 保護:反故 利用:理容 会議:懐疑 回復:快復 完成:歓声 "
        "感染:幹線 企業:起業 期待:機体 規制:帰省 競技:協議 協議:競技 検討:健闘 公表:好評 好評:公表 最近:細菌 "
        "最後:最期 参加:酸化 賛成:酸性 事故:自己 指導:始動 児童:自動 商店:焦点 水位:推移 変更:偏向 放送:包装 "
        "優勝:有償"
    )
}
_BY_SOUND = {"は": "わ", "を": "お", "へ": "え"}
_KANA = {"って": "て", "った": "つた", "しょ": "しよ", "じゅ": "じゆ", "ちゃ": "ちや", "ずつ": "づつ", "つづ": "つず"}
_TYPO = re.compile(
    rf"(?P<reading>(?<![{_KANJI}])(?:{'|'.join(_SAME_READING)})(?![{_KANJI}]))"
    rf"|(?P<sound>(?<={_NOUN_END})(?:[はを](?=[、{_KANJI}{_KATAKANA}\d])|へ(?=[{_KANJI}])))"
    rf"|(?P<kana>{'|'.join(_KANA)})"
    r"|(?P<twice>から|まで|など|こと|ため|もの|ます|です|する|した|ある|いる|れる|なる|という)"
)


# Particles where no part of a word is written with them: between nouns, or before a comma

_PARTICLE = re.compile(rf"(?<={_NOUN_END})(?:から|まで|[はがをにでとのも])(?={_NOUN_START}|、)|を(?=[ぁ-ん])")

# Negation of the last predicate. Of verbs with one form for two (行った, 進んだ) there is none.

_K = f"[{_KANJI}{_KATAKANA}]"
_ENDINGS = [
    (re.compile(rf"(?:{stem})(?P<end>{ending})(?=[。．！]?[」』）]?\Z)"), negation)
    for stem, ending, negation in (
        ("", "ませんでした", "ました"),
        ("", "ではありません", "です"),
        ("[^り]", "ません", "ます"),
        ("", "ではなかった", "だった"),
        ("", "ではない", "である"),
        ("[てで]い|でき|[らさかまわ]れ", "なかった", "た"),
        ("[てで]い|でき|[らさかまわ]れ", "ない", "る"),
        (f"{_K}{{2}}", "しなかった", "した"),
        (f"{_K}{{2}}", "しない", "する"),
        ("", "ました", "ませんでした"),
        ("", "ます", "ません"),
        (_K, "です", "ではありません"),
        (_K, "でした", "ではありませんでした"),
        (f"{_K}|の|ため", "だ", "ではない"),
        (f"{_K}|の|ため", "だった", "ではなかった"),
        ("", "である", "ではない"),
        ("", "であった", "ではなかった"),
        ("[がも]", "ある", "ない"),
        ("[がも]", "あった", "なかった"),
        ("と", "みられる", "はみられない"),
        ("[てでがに]い|でき", "る", "ない"),
        ("[てでがに]い|でき", "た", "なかった"),
        ("[えけげせぜてねべめれみじぎちびり]", "る", "ない"),  # verbs in -iru and -eru
        ("[えけげせぜねべめれみじぎちび]", "た", "なかった"),
        ("[なわが]|(?<!し)ま|見つか|分か|わか|助か", "る", "らない"),
        ("[なわが]|(?<!し)ま|見つか|分か|わか|助か", "った", "らなかった"),
        ("[多高低強弱近遠長短早広深]|し", "かった", "くなかった"),
        ("[多高低強弱近遠長短早広深]|し", "い", "くない"),
        (f"{_K}|[をにとも]", "する", "しない"),
        (f"{_K}{{2}}|[をにとも達発接課]", "した", "しなかった"),
        (f"[ぁ-ん、][{_KANJI}]|[やらこ]", "した", "さなかった"),
        (f"[{_KANJI}]|[やらこの]", "す", "さない"),
        ("[見出着寝似得来]", "る", "ない"),
        ("[見出着寝似得来]", "た", "なかった"),
        ("[配減残送戻取語作切乗入帰握至座知売登守測]", "る", "らない"),
        ("[減残送戻取配語作切乗入帰握至座知売登守測]", "った", "らなかった"),
        ("[言買使思違扱払従失願担行]", "う", "わない"),
        ("[言買使思違扱払従失願担]", "った", "わなかった"),
        ("[開続書聞描働置抜]", "く", "かない"),
        ("[開続書聞描働置抜]", "いた", "かなかった"),
        ("[進望組読済]", "む", "まない"),
        ("[選呼運学]", "ぶ", "ばない"),
        ("[持立待勝]", "つ", "たない"),
        ("[持立待勝]", "った", "たなかった"),
    )
]


# Numbers in words: 七つ, 二人, 三十年; what begins with 一, which is often no number, is left

_COUNTED = re.compile(
    rf"(?<![{_KANJI}〇])[一十百千]*([二三四五六七八九])[十百千]*(?=[つ人年日回個件台校店社軒本枚倍割]|か(?:所|月|国)|カ(?:所|月|国)|万|億|千|時間|カ所)"
)


# Names by what is written behind them

_PEOPLE = listed("佐藤健一 高橋直子 伊藤正人 渡辺恵子 中村和也 小林美咲 加藤浩二 吉田明美")
_FAMILIES = listed("佐藤 高橋 伊藤 渡辺 中村 小林 加藤 吉田")
_PLACES = {
    "市": ("横浜市", "仙台市", "金沢市", "松山市", "長崎市", "盛岡市"),
    "町": ("軽井沢町", "葉山町", "白浜町", "美瑛町"),
    "村": ("白川村", "大潟村", "東海村", "読谷村"),
    "県": ("長野県", "宮城県", "静岡県", "岡山県", "熊本県"),
    "区": ("渋谷区", "練馬区", "江東区", "杉並区"),
    "川": ("利根川", "信濃川", "石狩川", "四万十川"),
    "湖": ("琵琶湖", "浜名湖", "諏訪湖", "洞爺湖"),
    "島": ("淡路島", "屋久島", "小豆島", "佐渡島"),
    "駅": ("京都駅", "博多駅", "仙台駅", "名古屋駅"),
    "線": (),
}  # fmt: skip
_COUNTRIES = listed(
    "アメリカ イギリス フランス ドイツ イタリア スペイン ロシア インド ブラジル カナダ オーストラリア タイ "
    "ベトナム トルコ エジプト"
)
_SHORT_COUNTRIES = listed("米国 英国 中国 韓国 日本")
_CITIES = listed("東京 大阪 京都 名古屋 札幌 福岡 神戸 広島 仙台 横浜")
_FOREIGN = listed("トーマス・ベイカー アンナ・リンドグレン マルコ・ロッシ ピーター・ヤンセン")
_COMMON = frozenset(
    listed(
        "同 両 各 当 全 他 隣 旧 新 本 校 地 都 沿 路 幹 光 視 無 直 曲 在来 地下 最寄 始発 終着 特別 自治 "
        "政令 中核 半 列 諸 離 各地 市 県 町 村 区 国 州 河 小 大 日本 代表 前 元 新人 主力 男子 女子 外国人 "
        "監督 選手 候補 本人 組合 皆 奥 お客 客 患者 住民 家族 親 子 母 父 田舎 下 港町 城下 周辺"
    )
)
_PERSON = re.compile(
    rf"(?<![{_KANJI}{_KATAKANA}])([{_KANJI}]{{2,5}})(?:さん|氏|選手|監督|首相|大統領|議員|容疑者|被告)"
)
_PLACE = re.compile(
    rf"(?<![{_KANJI}{_KATAKANA}])([{_KANJI}{_KATAKANA}]{{2,4}}?([市町村県区川湖島駅線]))(?![{_KATAKANA}場内外民中役営街道々議井]|町[民内]|立[ちつっ])"
)
_KATAKANA_NAME = re.compile(rf"(?<![{_KATAKANA}・])[{_KATAKANA}]{{2,}}(?:・[{_KATAKANA}]{{2,}})+(?![{_KATAKANA}・])")
_LISTED = re.compile(
    rf"(?P<country>(?<![{_KATAKANA}])(?:{'|'.join(_COUNTRIES)})(?![{_KATAKANA}]))"
    rf"|(?P<kokumei>(?<![{_KANJI}])(?:{'|'.join(_SHORT_COUNTRIES)})(?![{_KANJI}]|$))"
    rf"|(?P<city>(?<![{_KANJI}])(?:{'|'.join(_CITIES)})(?![{_KANJI}]))|(?P<weekday>[月火水木金土日]曜)"
)


class Japanese(LanguageRules):
    typo_every = 30
    dropped = _PARTICLE
    peers: ClassVar = {
        "person": _PEOPLE,
        "family 2": _FAMILIES,
        "family 3": ("佐々木", "長谷川", "五十嵐"),
        "country": _COUNTRIES,
        "kokumei": _SHORT_COUNTRIES,
        "city": _CITIES,
        "foreign": _FOREIGN,
        "weekday": tuple(f"{day}曜" for day in "月火水木金土日"),
        **_PLACES,
    }
    trailing = re.compile(rf"(?<={_NOUN_END})[はがをにのと]\Z")
    empty = (
        "このことについては、もちろんいろいろな見方があると言えるだろう。",
        "物事には、それぞれにそれなりの理由というものがあるものである。",
        "以上のことは、さまざまな点から考えてみることができる。",
        "ここで述べられたことは、述べられたとおりのことである。",
        "いずれにしても、これらは一つ一つ見ていくことが大事だと思われる。",
        "人によって受け止め方が異なることは、言うまでもないことである。",
        "こうした事柄については、これからもいろいろなことが言われていくだろう。",
        "全体として見れば、全体としてのまとまりがあるとも言える。",
    )
    shortest_cut = 16
    counted = _COUNTED
    digits = "二三四五六七八九"
    listed_names = _LISTED

    def misspelled(self, whole: str, chance: Random) -> list[Edit]:
        known = _SAME_READING | _BY_SOUND | _KANA
        return [
            Edit(*m.span(), (m.group()[0] + m.group() if m.lastgroup == "twice" else known[m.group()],))
            for m in _TYPO.finditer(whole)
        ]

    def negated(self, sentence: str) -> list[Edit]:
        """Switch the polarity of the end of the sentence."""
        for ending, negation in _ENDINGS:
            if match := ending.search(sentence):
                return [Edit(*match.span("end"), (negation,))]
        return []

    def names(self, whole: str) -> list[Name]:
        names = [
            Name(m.group(1), "person" if len(m.group(1)) > 3 else f"family {len(m.group(1))}")
            for m in _PERSON.finditer(whole)
            if m.group(1) not in _COMMON
        ]
        names += [Name(m.group(1), m.group(2)) for m in _PLACE.finditer(whole) if m.group(1)[:-1] not in _COMMON]
        names += [Name(m.group(), "foreign") for m in _KATAKANA_NAME.finditer(whole)]
        return names + super().names(whole)
