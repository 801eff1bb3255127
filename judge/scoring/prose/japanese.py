"""How a Japanese sentence gives a score: "誤りがないため、この要約には5点を付けます。".

"It has no errors, so I give this summary 5 points." `SENTENCE` describes its parts:

    a reason        誤りがない      anything but `_CONDITION`, `_OTHERS` and `_OTHER_QUALITY`
    `_CLAUSE_END`   ため、
    `_LEAD_IN`      この要約には    from `_ADVERB`, `_SCORE_NOUN`, `_THE_TEXT` and `_TITLE_WORDS`
    SCORE           5点
    `_ENDING`       を付けます      here from `_GIVES`
    `_AFTER_SCORE`  。

The reason may be missing. Another word in the lead-in or the ending refuses the sentence, so that a
new phrase is one more alternative in one of these lists. `PREFERENCES` compare two texts, and
`IS_LABEL` is for labels that are words. `Grammar` explains SCORE, TITLE and the fields.
"""

from __future__ import annotations

from dataclasses import replace

from judge.scoring.prose import reasons
from judge.scoring.prose.language import Grammar

# "要約" (summary), "回答文" (answer)
_TEXT_NOUN = r"(?:要約文?|文章|テキスト|回答文?|応答|返答|翻訳文?|訳文|出力文?|作文|見出し|本文|文)"
# "この要約" (this summary), "生成された文章" (the generated text)
_THE_TEXT = rf"(?:(?:この|その|本|当該|上記の|以上の|今回の|与えられた|生成された)\s*+)?{_TEXT_NOUN}"
# "スコア" (score), "最終的な評価" (final evaluation)
_SCORE_NOUN = (
    r"(?:(?:最終的な|総合的な|最終|総合|全体の?|総|合計)\s*+)*"
    r"(?:スコア|点数|得点|評点|評価点?|評価値|採点(?:結果)?|総合点|総合評価|判定|結論|答え|星の数)"
)
# "(と)考えます" (I think that), "(と)判断しました" (I judged that)
_OPINION = (
    r"(?:考えます|考える|思います|思う|判断します|判断する|判断しました|判断した|みなします"
    r"|評価します|評価する|評価しました|評価した)"
)
# What makes a verb of a noun, so that it states what is done: "採点(します)" (I score)
_VERB_ENDING = (
    r"(?:します|する|しました|した|いたします|致します|させていただきます|しておきます)"
)
# Verbs of giving: "付けます", "与えることにします" (I decide to give). Only statements: wishes, orders,
# "付けるのは", "付けるには" (in order to give) and "付けるべき" (ought to give) are not here.
_GIVES = (
    r"(?:付けます|付ける|付けました|付けた|つけます|つける|つけました|つけた|与えます|与える"
    r"|与えました|与えた|あげます|差し上げます|進呈します|献上します|付けさせていただきます"
    rf"|つけさせていただきます|付与{_VERB_ENDING}|付けることに{_VERB_ENDING}"
    rf"|つけることに{_VERB_ENDING}|与えることに{_VERB_ENDING}|獲得{_VERB_ENDING})"
)
# "妥当です" (is fair), "適切だと考えます" (I think that it is appropriate)
_FITTING = (
    r"(?:妥当|適切|適当|相当|順当|相応|ふさわしい|相応しい|適正)"
    rf"(?:です|だ|である|と{_OPINION}|だと{_OPINION}|であると{_OPINION})?"
)
# What ends the sentence after the score, or nothing: "評価は4点"
_ENDING = (
    # "4点です"
    r"(?:です|だ|である|でした"
    # "4点と評価します", "4点とします", "4点となります", "4点だと思います"
    r"|だ?と"
    rf"(?:(?:評価|判断|採点|判定|決定|認定|決){_VERB_ENDING}|{_VERB_ENDING}|なります|なりました"
    rf"|なる|{_OPINION}|いたします|決めます|判断できます|評価できます|つけます"
    r"|付けます)"
    # "4点を付けます", "4点の評価とします", "4点を採用します"
    rf"|(?:を|の評価を|の評価と|の評価に)(?:{_GIVES}|{_VERB_ENDING}|採用{_VERB_ENDING})"
    # "4点を付与します"
    rf"|(?:を|が)?付与{_VERB_ENDING}"
    # "4点の評価です"
    rf"|の評価(?:です|と{_VERB_ENDING}|とします|を{_GIVES})"
    # "4点に決定します", "4点に値します"
    rf"|に(?:{_VERB_ENDING}|決めます|決定{_VERB_ENDING}|相当します|値します|なります)"
    # "4点で評価します", "4点でございます"
    rf"|で(?:評価{_VERB_ENDING}|採点{_VERB_ENDING}|ございます)"
    # "4点が妥当です"
    rf"|が{_FITTING}"
    # "4点付けます", "4点評価します"
    rf"|{_GIVES}|評価{_VERB_ENDING}|採点{_VERB_ENDING})?"
)
# What joins a text to its score: "(要約)に対して" (for), "(要約)は"
_PARTICLE = (
    r"(?:に対しては|に対して|に対する|については|について|に関しては|としては|には|へは?|の|は|に"
    r"|を|が)"
)
# "よって" (therefore), "総合的に判断して" (all in all), "これらの点を考慮すると" (considering this)
_ADVERB = (
    r"(?:はい|よって|したがって|従って|そのため|このため|ゆえに|それゆえ(?:に)?"
    r"|以上"
    r"(?:より|から|のことから|のことより|の理由から|の理由により|の点から|の点より"
    r"|を踏まえ(?:て|ると)|を総合(?:して|し|すると)|に基づき)"
    r"|総合的に(?:は|判断(?:して|すると|し)?|評価(?:して|すると|し)?|見て|見ると)?"
    r"|総合(?:して|すると)|結論として(?:は)?|結果として(?:は)?|全体として(?:は)?"
    r"|全体的に(?:は|見て)?|最終的に(?:は)?"
    r"|これら(?:を|の点を|の理由を)"
    r"(?:考慮(?:して|し|すると)|踏まえ(?:て|ると)?|総合(?:して|し|すると))"
    r"|(?:これらの|上記の|この|こうした|このような)理由(?:から|により|で)|上記(?:より|から)"
    r"|ここから|なので|だから|それで|判断して|評価して|採点結果は|結論は|評価は"
    r"|私(?:は|の|としては)?|わたしは|以上)"
)
# The criterion: "一貫性は", "一貫性の観点からは" (as to coherence)
_TITLE_WORDS = (
    r"TITLE"
    r"(?:は|の|については|に関しては|に関して|に対して|の観点(?:から|で)は?|の面(?:から|で)は?"
    r"|の点(?:から|で)は?|としては|スコアは|を|に)?"
)
# Any number of the words above: "よって、この要約の一貫性は"
_LEAD_IN = (
    r"[\s\W]*+"
    rf"(?:(?:{_ADVERB}|{_SCORE_NOUN}\s*+(?:としては|として|は|を|:|が)?|{_THE_TEXT}\s*+{_PARTICLE}?"
    rf"|(?:これ|それ)(?:は|に|には|を)|{_TITLE_WORDS})"
    r"[\s、,:・]*+)*+"
    r"[\s\W]*+"
)
# What ends a reason before the score: "誤りがないため、" (because), "読みやすいですが、" (but),
# "正確で簡潔であり、" (and)
_CLAUSE_END = (
    r"(?:ため|ので|ことから|点から|から)[、,]?\s*+"
    r"|(?:(?:です|ます|だ|である|[たいるむくすう])(?:が|し|けれども|けれど|けど|ものの)|ており"
    r"|であり|[てしくずりみきえ])"
    r"[、,]\s*+"
    r"|[、,]\s*+(?=よって|したがって|従って|そのため|このため|総合|結論|全体|最終)"
)
# What makes the score depend on something, or be somebody else's wish: "日付が正しければ、4点",
# "最高で4点", "4点を付けてほしい"
_CONDITION = (
    # If, even if, unless, without. Not 例えば (for example), もたらす (bring), 当たらない (not fitting),
    # とても (very), おもしろい (amusing), 同時に (at the same time), 押さえる (cover)
    r"(?:れば|けば|せば|てば|べば|めば|ねば|(?<!例)(?<!たと)えば|げば|(?<!も)たら(?!な[いかくさ])|だら"
    r"|なら(?!な[いかくさ]|ず)|とすれば|としても|(?<!と)(?<!とっ)ても|でも[、,]|場合|(?<!お)もし(?!く)"
    r"|仮に|とき|(?<![同瞬])時に|なければ|ないと|(?<![押抑おさ])さえ|限り|つもり|なしに?|なしで"
    r"|抜きで"
    # Wishes and orders
    r"|べき|たい|欲し|ほしい|望|願|希望|求め|要求|指示|命令|依頼|要請|(?<!信)頼|ください|下さい"
    r"|ように(?:と|言|指)|せよ|(?<!も)しろ|つけろ"
    # Somebody else's words. Not と言える (can be said)
    r"|と書|とある|と言(?!え)|と述べ|という|によると|によれば|引用"
    # Guesses and limits
    r"|かもしれ|だろう|でしょう|はず|最高で?|最大で?|最低"
    # Former and usual scores
    r"|以前|元々|もともと|本来|通常|普通|普段|当初"
    # Hesitation
    r"|迷|悩|躊躇|惜しくも"
    # After a change of the text, or instead of another score
    r"|(?:足し|加え|直し|修正し|改め|削っ|短くし)て[、,]|代わり|ではなく|じゃなく|よりも?[、,]|比べ"
    # "一例として、4点", but not "例として挙げた日付が誤りのため、4点"
    r"|(?:例えば|たとえば|例として|例を[挙あ]げ(?:て|ると|れば)|(?:サンプル|見本)として)[、,]?\s*\Z)"
)
# A clause about somebody or something else: "原文は4点", "、他の要約は4点"
_OTHERS = (
    r"(?:\A|[、,])\s*"
    r"(?:原文|元の文|元記事|記事|参照|参考|正解|模範|作者|著者|筆者|読者|利用者|ユーザー|評論家"
    r"|審査員|他の|別の|もう一方|前の|以前の|先の|生徒|学生|先生|教師|映画|試合|試験|テスト"
    r"|チーム|選手|ゲーム|本(?:は|が)|彼|彼女|誰か|皆|人)"
    r"[^、,]{0,12}?(?:は|が|も|なら|の方|では)"
)
# Another criterion than the judged one: "流暢性は4点", "文法の評価"
_OTHER_QUALITY = (
    r"(?!TITLE)"
    r"(?:流暢性|流暢さ|一貫性|整合性|関連性|正確性|正確さ|簡潔性|簡潔さ|文法|文体|可読性|事実性"
    r"|忠実性|忠実さ|網羅性|完全性|創造性|明確性|明瞭さ|有用性|安全性|表現|構成|自然さ)"
    r"(?:は|の(?:点数|スコア|評価|得点|点|面|観点)|スコア|に関しては|については|だけ)"
)
# The end of the text, a remark in brackets or another sentence
_AFTER_SCORE = r"[\s.!)\]。]*+\Z|\s*+\(|。"

SENTENCE = Grammar(
    # "誤りがないため、この要約には5点を付けます。". The score is no part of another number, such as the
    # 4 of 3.4 and 3/4, and no word, digit or sign follows.
    assertion=(
        rf"(?<![0-9][.,/])(?<![0-9./~〜<≤≥≈≠±-])SCORE\s*+{_ENDING}(?![ぁ-んァ-ヶー一-龥0-9%/+~〜-])"
    ),
    lead=_LEAD_IN,
    clause=_CLAUSE_END,
    doubt=rf"{_CONDITION}|{_OTHERS}|{_OTHER_QUALITY}",
    after=_AFTER_SCORE,
    says_so="[ぁ-んァ-ヶ一-龥]",
    doubt_after=reasons.DOUBT,
)
GRAMMARS = (SENTENCE,)

# "Aより", "文章Aよりも、"
_THAN = rf"(?:{_TEXT_NOUN})?[A-Z]より(?:も)?[、\s]*+"
# No Japanese letter follows.
_END = r"(?![ぁ-んァ-ヶー一-龥])"
# "はない" and "いません" of "良くはない" and "優れていません"
_NOT = r"(?:は)?(?:ない|ないです|ありません|いない|いません)"
_PREFERRED = replace(
    SENTENCE,
    # "文章Aの方がBより優れています。", "AよりBが良いです。", "BはAより良いです。", "私はBを選びます。", "Aの勝ちです。"
    assertion=(
        rf"(?:{_THAN})?SCORE(?:(?:の(?:方|ほう))?(?:が、?(?:{_THAN})?|を|は{_THAN})"
        r"(?:より|やや|わずかに|明らかに|総合的に)?"
        rf"(?:優れて(?:いる|います)|(?:[良よい]い|好ましい)(?:です|と{_OPINION})?"
        r"|(?:選び|選択し|支持し)ます|勝者(?:です|だ|である)?)"
        rf"|の勝ち(?:です|だ|である)?){_END}"
    ),
)
_OTHER_IS_WORSE = replace(
    SENTENCE,
    # "BはAより劣る。", "BはAに劣ります。", "BはAほど良くない。"
    assertion=(
        rf"(?:{_TEXT_NOUN})?[A-Z]の?(?:方|ほう)?[はが](?:{_TEXT_NOUN})?SCORE"
        rf"(?:(?:より(?:も)?|に(?:は)?)(?:やや|わずかに|明らかに)?(?:劣(?:る|ります|っている|っています))"
        rf"|より(?:も)?悪い(?:です)?|ほど(?:[良よ]く|優れて){_NOT}){_END}"
    ),
)
_TIED = replace(
    SENTENCE,
    # "AとBは同等です。", "どちらも同じくらい良いです。"
    assertion=(
        rf"(?:(?:{_TEXT_NOUN})?Aと(?:{_TEXT_NOUN})?B|両者|両方|どちら|二つの{_TEXT_NOUN})"
        rf"(?:は|とも|も|は(?:どちらも|ともに))?(?:ほぼ)?SCORE(?:です|だ|である|と{_OPINION})?{_END}"
    ),
)
PREFERENCES = (_PREFERRED, _OTHER_IS_WORSE, _TIED)

# "適合します", "成功している": not "適合しない", "適合していません"
LABEL_VERB = (
    r"(?:し(?:ます|ました|た|てい(?:る|ます|た|ました))|する|と(?:言え|いえ)(?:る|ます))"
    rf"{_END}"
)
# For scales whose labels are words: "この文章は適合しています。", but not "失敗しました。" alone
IS_LABEL = replace(
    SENTENCE,
    assertion=rf"(?<=[はが、])(?=[ぁ-んァ-ヶ一-龥])SCORE{LABEL_VERB}",
    # It matches nothing, so that no reason may come before.
    clause=r"(?!)",
)
