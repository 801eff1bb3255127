"""Rules for changing Chinese texts (mostly simplified), without a dictionary."""

from __future__ import annotations

import re
from random import Random
from typing import ClassVar

from judge.audits.perturbations.edits import Edit, LanguageRules, Name, listed

_HAN = "\u4e00-\u9fff"

# Typos: characters that sound or look alike

_LOOKALIKES = {
    pair[0]: pair[1]
    for pair in listed(
        "在再 再在 已己 未末 做作 作做 象像 像象 到道 道到 是事 事是 和合 与于 于与 为位 又有 以已 由油 从丛 "
        "对队 进近 近进 会回 回会 后候 候后 前钱 现线 成程 部步 公工 工公 法发 同通 通同 主住 住主 新心 地第 "
        "第地 场厂 报抱 表标 提题 题提 经精 际计 要药 初出 声生 级及 期其 其期 时实 实时 情晴 请清 清请 该改 "
        "间见 见间 应因 因应 原源 员圆 园圆 记纪 计记 况矿 证正 正证 决绝 绝决 据剧 须需 需须 练炼 即既 既即 "
        "带戴 座坐 坐座 备倍 响想 想响 份分 形型 型形 常长 历励 受授 授受 收手 达答 结节 展站 加家 说所 所说 "
        "这着 还孩 认人 被备 把吧"
    )
}
_TYPO = re.compile(f"[{''.join(_LOOKALIKES)}]")


# Function words that cannot be missing, where they are no part of another word: 把, 被 and 与; 在 and 对 behind a
# subject; 于 behind a verb; 得 before a degree; 的 behind a pronoun, an aspect or an end of the clause.
# 了 and 的 between nouns can be missing, and are left.

_DROPPED = re.compile(
    rf"(?<![门车])把(?![握关手])|被(?![告子])|(?<![参给])与(?![会其众此否])"
    rf"|(?<=[{_HAN}\d])(?<![存正现实所潜内好不])在(?![于线职校场意])"
    rf"|(?<![反针面相绝应作核校不])对(?![于手话象方比策立外称应])|(?<=[位建始生处用属低高源限])于(?!是)"
    r"|得(?=很|更|非常|十分|不)|(?<=[他她它])的|(?<=[这那]样)的|(?<=[过着到])的|(?<=[^目标])的(?=[是，。；！])"
)

# Negation, or the end of one

_BEFORE = rf"(?<=[{_HAN}）”\d])"
_AFTER = rf"(?=[{_HAN}“\d])"
_VERBS = (
    "宣布|公布|批准|通过|同意|支持|认为|发现|获得|完成|参加|举行|提出|接受|承认|决定|要求|允许|采用|增加|减少|"
    "提高|降低|恢复|解决|影响|证明|确认|达成|改变|出现|造成"
)
_AFFIRMED = [
    (re.compile(pattern), affirmed)
    for pattern, affirmed in (
        ("并不是|并非", "正是"),
        ("(?<!是)不是(?!吗)", "是"),
        ("(?<![能可要])不会(?!不)", "会"),
        ("(?<![能可])不能(?!不|够)", "能"),
        ("不可以", "可以"),
        ("尚未|并未|还没有", "已经"),
        ("没有(?=电梯|受到|参加|发现|出现|造成|得到|问题|影响)", "有"),
    )
]
_DENIED = [
    (re.compile(pattern), denied)
    for pattern, denied in (
        (
            rf"{_BEFORE}(?<![只于但可还就都也却要若算凡正最总又而先老自便即不或倒更])是(?![否非因由以不谁什怎哪])",
            "不是",
        ),
        (rf"{_BEFORE}将(?=[于在从会被把由继举进暂提达成为停开扩建])", "将不会"),
        (rf"{_BEFORE}(?<![开大协机社员都议学不一国宴都年商工委])会(?=[在被把让使给有是更因继对从越])", "不会"),
        (rf"{_BEFORE}可以{_AFTER}", "不可以"),
        (rf"{_BEFORE}能够?(?=[让使把在为更帮减提够看])", "不能"),
        (rf"{_BEFORE}(?:已经|已)(?=(?:{_VERBS}|清理|出土|开始|开工|启用)(?!了))", "尚未"),
        (rf"{_BEFORE}(?P<verb>{_VERBS})了", r"没有\g<verb>"),
        (rf"{_BEFORE}(?<![未没不已将])(?P<verb>同意|认为|支持|允许|承认|要求|接受){_AFTER}", r"不\g<verb>"),
        (
            rf"{_BEFORE}(?<![未没不已将])(?P<verb>宣布|公布|批准|发现|参加|证明|确认|达成|决定|出现){_AFTER}(?!了|的)",
            r"没有\g<verb>",
        ),
        (rf"{_BEFORE}(?<![未没不])(?P<verb>计划|打算|预计|开始|建议|担心|希望){_AFTER}", r"没有\g<verb>"),
        (
            rf"{_BEFORE}(?<![没所只还具拥含享占设仅未另也都])有(?=[{_HAN}])(?![一二三四五六七八九十两几多数]|[关效些的时所望利限意人益害])",
            "没有",
        ),
    )
]


_set_in_time = re.compile(r"(?:终于|曾经?|刚刚?|正在?|[才就都也还再将])\Z").search


# Numbers in words before what they count; those of 一 alone are often no number

_COUNTED = re.compile(
    r"(?<![第〇一二三四五六七八九十周期])[一十百千万]*([二三四五六七八九])[十百千]*"
    r"(?=[多余]?(?:[个名人次年岁元户栋座种只件亩月日处位家项所倍辆架艘条天吨米]|万|亿|千|百|公里|小时|分钟))"
)


# Names by what stands around them

_FAMILY = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘"
    "杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文陶"
)
_TITLE = (
    "法官|教授|主席|总统|部长|市长|县长|局长|队长|站长|所长|经理|记者|村民|医生|律师|院长|校长|主任|馆长|总理|"
    "董事长|书记|专家"
)
_NO_GIVEN = "说在是的和与去表主告介指认为对将有及则也都于因曾已等今昨当日坦透强补提还解带从从到把被给向、"
_PERSON = re.compile(
    rf"(?:{_TITLE})([{_FAMILY}][{_HAN}](?:(?![{_NO_GIVEN}])[{_HAN}])?)"
    rf"|(?<![{_HAN}])([{_FAMILY}][{_HAN}]{{1,2}}?)(?=说|表示|认为|介绍|指出|告诉|透露|回忆|坦言|先生|女士)"
)
_START = rf"(?:(?<![{_HAN}])|(?<=[在从到由往和与省市]))"
_PLACE = re.compile(rf"{_START}([{_HAN}]{{2,3}}?([省市县镇村湖岛州区]))(?![场民长政委内域里外级属府区文])")
_NO_PLACE = re.compile(
    r"[的了在和是与有个这那各全本该某城农乡山湿景社小地校园街新老邻外一二三四五六七八九十两多整上下中到从约占今去昨明年月日天时向随即当已将会被把给让等们说为以之所而但因此后前起共]"
)
_COUNTRIES = listed("中国 美国 英国 法国 德国 泰国 日本 韩国 印度 巴西 埃及 越南 俄罗斯 加拿大 意大利 西班牙 澳大利亚")
_CITIES = listed("北京 上海 广州 深圳 南京 杭州 成都 武汉 西安 重庆 天津 苏州 青岛 长沙")
_LISTED = re.compile(
    rf"(?P<country>{'|'.join(_COUNTRIES)})|(?P<city>{'|'.join(_CITIES)})|(?P<weekday>星期[一二三四五六日])|(?P<zhou>周[一二三四五六日])(?![年期])"
)
_PEOPLE = listed("张伟明 李晓红 王志远 刘淑芳 陈建平 杨丽华 赵文涛 周国栋")


class Chinese(LanguageRules):
    typo_every = 28
    dropped = _DROPPED
    peers: ClassVar = {
        "person 3": _PEOPLE,
        "person 2": ("张伟", "李红", "王强", "刘芳", "陈平", "杨丽"),
        "country": _COUNTRIES,
        "city": _CITIES,
        "weekday": tuple(f"星期{day}" for day in "一二三四五六日"),
        "zhou": tuple(f"周{day}" for day in "一二三四五六日"),
        "省": ("浙江省", "湖南省", "四川省", "陕西省"),
        "市": ("苏州市", "洛阳市", "昆明市", "绍兴市"),
        "县": ("桐庐县", "凤凰县", "婺源县", "安吉县"),
        "湖": ("洞庭湖", "鄱阳湖", "太白湖", "青海湖"),
        "镇": ("乌镇镇", "周庄镇", "佛山镇"),
        "村": ("小岗村", "华西村", "西递村"),
        "岛": ("海南岛", "崇明岛", "涠洲岛"),
        "区": ("朝阳区", "浦东区", "武侯区", "天河区"),
    }
    trailing = re.compile(rf"[{_HAN}](?:的|在|将|和|与|对|被|把|于|为)\Z")
    empty = (
        "对于这件事情，当然可以有各种各样的看法。",
        "任何事情之所以是这样，总有它这样的道理。",
        "以上所说的这些，可以从许多方面来加以考虑。",
        "这里所讲的内容，也就是这里所要讲的内容。",
        "无论如何，这些问题都应当一个一个地来看待。",
        "不同的人会有不同的理解，这一点不用多说。",
        "关于这一类的事情，今后想必还会有许多议论。",
        "从整体上来看，可以说它具有一种整体的性质。",
    )
    shortest_cut = 12
    counted = _COUNTED
    digits = "三四五六七八九"
    listed_names = _LISTED

    def misspelled(self, whole: str, chance: Random) -> list[Edit]:
        return [Edit(*m.span(), (_LOOKALIKES[m.group()],)) for m in _TYPO.finditer(whole)]

    def negated(self, sentence: str) -> list[Edit]:
        """Negate a verb, or remove a negation if there is one. Questions have no place for it."""
        if re.search(r"[？?吗]", sentence):
            return []
        taken = [Edit(*m.span(), (yes,)) for pattern, yes in _AFFIRMED for m in pattern.finditer(sentence)]
        if taken or re.search("[不没未无]", sentence):
            return taken
        return [
            Edit(*m.span(), (m.expand(no),))
            for pattern, no in _DENIED
            for m in pattern.finditer(sentence)
            if not _set_in_time(sentence[: m.start()])
        ]

    def names(self, whole: str) -> list[Name]:
        people = [m.group(1) or m.group(2) for m in _PERSON.finditer(whole)]
        names = [Name(person, f"person {len(person)}") for person in people]
        names += [Name(m.group(1), m.group(2)) for m in _PLACE.finditer(whole) if not _NO_PLACE.search(m.group(1)[:-1])]
        return names + super().names(whole)
