"""Scores beside their name, in a table, in a tag, or alone.

"Rating – 4", "| Score | 4 |", "[[A]]".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from judge.scoring.prose import japanese, korean

# Words for a score in the languages in which judges answer: a heading and nothing but a score after
# it is plain in all of them.
NOUNS = (
    r"(?:scores?|rating|grade|mark|result|verdict|answer|label|judge?ment|evaluation|assessment"
    r"|winner|preference|choice"
    r"|decision|conclusion|points|best|better(?:\s++(?:text|summary|response|answer|output|one))?"
    r"|selection|category|class|classification"
    # Korean, Japanese, Chinese
    r"|점수|[총평별]점|평가|등급|결과|합계|정?답|답변|판정|결론|승자|선택|스코어|라벨|[가-힣]{1,8}\s*+여부"
    r"|スコア|点数|[得評]点|(?:総合?|合計)点|評価[点値]?|採点|評定|判定|結果|回答|解答|答え|結論"
    r"|総合評価|勝者|選択|ラベル|合否|合格判定"
    r"|得分|[总總]分|评分|評分|分数|分數|[打给給]分|成绩|成績|评价|評價|评级|评定|评估|等级|结果"
    r"|答案|結論|结论|判定|判断|胜者|勝者|选择|標籤|标签|是否[一-龥]{1,6}"
    # German, Dutch, Scandinavian, Finnish
    r"|(?:gesamt)?(?:bewertung|note|punktzahl|punkte|wertung|ergebnis|urteil|beurteilung)|antwort"
    r"|beoordeling|cijfer|waardering|oordeel|antwoord|betyg|po[äe]ng|bedömning|omdöme|vurdering"
    r"|karakter|poeng|arvosana|pisteet|arvio"
    # Spanish, Portuguese, French, Italian, Romanian, Catalan
    r"|puntuaci[óo]n|puntaje|calificaci[óo]n|nota|evaluaci[óo]n|valoraci[óo]n|veredicto|respuesta"
    r"|resultado"
    r"|pontua[çc][ãa]o|avalia[çc][ãa]o|classifica[çc][ãa]o|resposta"
    r"|notation|[ée]valuation|appr[ée]ciation|r[ée]ponse|r[ée]sultat|verdict"
    r"|punteggio|voto|valutazione|giudizio|risposta|risultato|scor|punctaj|evaluare|puntuaci[óo]"
    r"|qualificaci[óo]"
    # Slavic languages, Hungarian, Greek
    r"|оценка|балл|баллы|рейтинг|результат|ответ|вердикт|итог|оцінка|бал|відповідь|ocena|wynik"
    r"|punkty|odpowied[źz]|hodnocen[íi]|sk[óo]re|známka|body|hodnotenie|ocjena|оцена"
    r"|értékelés|pontszám|osztályzat|βαθμολογία|βαθμός|αξιολόγηση"
    # Turkish, Vietnamese, Thai, Indonesian, Hindi, Arabic, Persian, Hebrew
    r"|puan[ıi]?|değerlendirme|skor|sonuç|cevap|điểm(?:\s++số)?|đánh\s++giá|kết\s++quả"
    r"|câu\s++trả\s++lời|คะแนน|การประเมิน|ผลลัพธ์|คำตอบ|nilai|penilaian|jawaban|peringkat"
    r"|स्कोर|अंक|मूल्यांकन|उत्तर|التقييم|تقييم|الدرجة|النتيجة|النقاط|الإجابة|امتیاز|نمره|ציון"
    r"|דירוג|תשובה)"
)
# "My final overall" rating
_BEFORE = (
    r"(?:(?:(?:the|my|your|our|final|overall|total|so|thus|therefore|hence|and|best|chosen|average"
    r"|revised|corrected|adjusted|updated"
    r"|la|le|el|il|o|a|mi|ma"
    r"|mon|meine?|die|das|der|итоговая|общая|моя|итоговый|общий|celkové|końcowa|toplam|genel"
    r"|finale?|tổng)(?:\b|(?=_))"
    r"|최종|종합|총|평가|채점|제|나의|最終的な|最終|総合的な|総合|採点|私の|最终|综合|总|总体|整体|评估"
    r"|最後|綜合|總|我的|この)[\s_]*+-?)*+"
)
# The same behind the name: "note finale"
_AFTER = (
    r"(?:\s++(?:final|finale|finali|global|globale|total|totale|general|générale|complessivo|geral"
    r"|overall|akhir|số|النهائية?|النهائي|итоговая)\b)*+"
)
# "- ", "1. ", "=> ", but not the sign of "-4"
_BULLET = (
    r"(?:(?:[-+–](?![0-9.])|[•・▪◦●■□◆※→⇒✅✔☑🏆]|\#{1,6}|(?:[0-9]{1,2}|[a-z])[.)](?=\s)"
    r"|=>|->|=+|[-]{2,})\s*+)*+"
)
# "coherence score", "score for coherence", "일관성의 점수", or the title alone
_TITLED_NOUNS = (
    rf"(?:TITLE[의の的]?[\s_]*+)?{NOUNS}(?:\s++(?:for|of|zu|de|pour|per"
    r"|für)\s++(?:the\s++)?TITLE)?|TITLE"
)
# "My final coherence score"; "Overall: 4" needs no noun.
_NAME = (
    rf"(?:{_BEFORE}(?:{_TITLED_NOUNS}){_AFTER}|(?:my\s++)?(?:overall|final)"
    r"|総合|종합|综合|總體|总体)"
)
# "Sure, here is "
_HERE_IS = r"(?:(?:sure|okay|ok|certainly|of\s++course)[,!.]?\s++)?(?:here(?:['’]s|\s++is)\s++)?"
# "Score", "[Score]", "【评分】"
_BOXED_NAME = rf"[(\[【〔〈<「*]*+\s*+{_NAME}\s*+[)\]】〕〉>」*]*+"
# The same only in brackets, after which there need not be a colon: "[RESULT] 4"
_BRACKETED_NAME = rf"{_BULLET}[\[【〔〈<]\s*+{_NAME}\s*+[\]】〕〉>]\s*+"
# " (1-5)", " [out of 5]", " (5점 만점)"
_SCALE_OF = (
    r"(?:\s*+[(\[](?P<low_name>-?[0-9]+)\s*+(?:[-–~〜]|to|から"
    r"|[至到])\s*+(?P<high_name>[0-9]+)[점点分]?\s*+[)\]]|\s*+[(\[]\s*+(?:out\s++of|/|max\.?|sur"
    r"|von|de|su|из)\s*+(?P<out_of_name>[0-9]+)[점点分]?\s*+[)\]]"
    r"|\s*+[(\[](?P<full_name>[0-9]+)[점点分]?\s*+(?:満点|满分|滿分|만점)\s*+[)\]]"
    r"|\s*+[(\[](?:満点|满分|滿分)(?P<full_name2>[0-9]+)[点分]?\s*+[)\]])?"
)
# ": ", " – ", " is "
_SEPARATOR = (
    r"(?:\s*+(?::=|[:=→⇒➔➜]|=>|->|[-–—]+>?(?=\s)|\|)|\s*+(?:は|[은는]|[为為是])(?:\s*+:)?"
    r"|\s*+(?<=\s)(?:is|est|ist|es|è|é)(?:\s*+:|(?=[\s(\[])))\s*+"
)
# "On a scale of 1 to 5: "
_ON_A_SCALE = (
    r"(?:on\s++(?:a|the)\s++scale\s++(?:of|from)\s++(?P<low_scale>[0-9]+)\s*+(?:to|-|–)\s*+"
    r"(?P<high_scale>[0-9]+)\s*+[:,]\s*+)?"
)
# "Good (", "very good – ", "良好(": what the score means, before it
_QUALITY = (
    r"(?:(?:(?:very|quite|fairly|reasonably)\s++)?"
    r"(?:excellent|outstanding|perfect|good|solid|strong|fair|average|moderate|acceptable|adequate"
    r"|satisfactory|mediocre|weak|poor|bad)"
    # A Likert scale: "Strongly agree (5)"
    r"|(?:(?:strongly|somewhat|slightly|completely)\s++)?(?:dis)?agree"
    r"|neutral|neither\s++agree\s++nor\s++disagree"
    r"|(?:とても|非常に|強く|やや|まあ|あまり|まったく|全く)?そう(?:思う|思わない)"
    r"|どちら(?:とも|でも)(?:言え|いえ)?ない"
    r"|(?:매우|전혀|대체로)?\s*(?:그렇지\s*않다|그렇다|동의(?:함|하지\s*않음)?)|보통이다"
    r"|(?:非常|比较|完全|强烈|有点)?不?同意|中立"
    r"|優秀|優れている|(?:とても|非常に)?良い|良好|普通|やや悪い|悪い|매우\s*좋음|좋음|우수|양호|보통|미흡|나쁨"
    r"|优秀|很好|较好|良|好|一般|中等|较差|差)"
    r"\s*+[(\[,–—-]\s*+"
)
# "(", "【", and "<" if it is closed: "<4>", but not "<4" (less than 4)
_BRACKETS = r"(?:[\s(\[{【〔「*]|<(?=[^<>\n]{1,40}>))*+"
_CLOSES = r"(?:\s*+[)\]}】〕」>]++)*+"
# "です", "입니다": the verb after the number
_COPULA = (
    r"(?:です|だ|である|と(?:します|する|なります)|입니다|이(?:다|에요)|예요|임|といたします"
    r"|とします|점입니다)?"
)
# What ends a reply: "<|im_end|>", "</answer>" around all of it
_STOP = (
    r"(?:<\|\w+\|>|</s>|<eos>|<end_of_turn>"
    r"|</(?:(?:final_)?answer|response|output|result)>|\s)*+"
)
_WORDS = r"[^\W\d_]"
# The end of the reply, or the beginning of a reason: ". It is", " (clear)", ", because". In "3.5-4"
# the point is no full stop, and the dots of "Yes... no." are hesitation.
_REASON = (
    rf"(?:[\s.!。、,;|*_)\]}}:]*+{_STOP}\Z"
    r"|(?:[!。]|\.(?![.0-9]))\s*+(?=\S)|\s*+[(\[（](?=\D|[0-9.]+\s*+%)"
    rf"|\s++[-–—]{{1,2}}\s++(?![0-9])|\s*+—\s*+(?={_WORDS})"
    rf"|\s*+[:;|]\s*+(?={_WORDS})"
    r"|[,、]\s*+(?:(?:because|since|as|due\s++to|but|though|although|and|it|the|this|with|given)\b"
    r"|因为|因為|由于|由於|理由|但|虽然|雖然|왜냐하면|이유|なぜなら|理由は|ただし|この|その|이\s|본\s"
    r"|해당\s(?!없|사항)|该|該|这|這|此)"
    r"|\s*+(?:reason(?:ing)?|explanation|rationale|justification|comments?|理由|原因|説明|解説|이유|근거"
    r"|설명|解释|解釋|说明|說明)\s*+:"
    r"|\s++(?:because|since|as|due\s++to|based\s++on|given|for\s++the\s++following)\b"
    r"|\s++(?:for|in|on)\s++(?:the\s++)?TITLE\s*+[.!]?\s*+\Z"
    # Any words after a number: "4, on topic". "4、" numbers an entry in Chinese, but not before
    # kana.
    r"|(?P<comma>\s*+(?:,|(?<![0-9])、|、(?=[^。\n]*[ぁ-ん]))\s*+)"
    rf"(?!(?:or|and|to|of|out|plus|minus|less)\b)(?={_WORDS}))"
)
# \boxed{4}, \boxed{\text{A}}
BOX = r"\\(?:boxed|fbox)\{{1,2}(?:\\(?:text|textbf|mathrm|mathbf)\{)?"
# <score>4</score>, <final_answer>A</final_answer>
_TAG = (
    r"(?:[a-z]{1,20}_)?(?:score|rating|grade|answer|verdict|result|label|winner|output|final"
    r"|decision|judge?ment|choice|evaluation)"
)
# The words after a score that opens a reply: "4 The text is clear", "4 이 글은".
_SENTENCE_OPENER = (
    r"(?=(?:the|this|it|its|there|while|although|though|because|since|i|overall)\b"
    r"|(?:이|본|해당)\s*(?:글|요약|응답|답변|텍스트|문장|번역)|この(?:要約|文章|回答|翻訳)|(?:这"
    r"|這|该|該|此)[一-龥])"
)


@dataclass(frozen=True, slots=True)
class Forms:
    """The patterns of scores that are not in a sentence, each with a group `value`."""

    named: re.Pattern[str]
    loosely_named: re.Pattern[str]
    bare: re.Pattern[str]
    opening: re.Pattern[str]
    cell: re.Pattern[str]
    name: re.Pattern[str]
    tags: tuple[re.Pattern[str], ...]

    def is_heading(self, line: str) -> bool:
        """Return whether a line is nothing but the name of a score: "### Score"."""
        return self.name.fullmatch(line.strip("#: \n")) is not None


def forms(
    score_pattern: str,
    mark: str,
    title_pattern: str,
    *,
    has_words: bool,
) -> Forms:
    """Return the forms of a score, given the patterns of a score, marks around it and a title.

    `has_words`: the labels are words, and "good" may be one of them.
    """
    quality = f"(?:{_QUALITY})?"
    copula = _COPULA
    if has_words:
        quality = ""
        copula = rf"(?:{korean.LABEL_VERB}|{japanese.LABEL_VERB}|{_COPULA})"
    # "- **Final score** (1-5)"
    label = rf"{_BULLET}{mark}{_BULLET}{_HERE_IS}{_BOXED_NAME}{_SCALE_OF}"
    name_before = rf"(?:(?:{label}){_SEPARATOR}|{_BRACKETED_NAME})"
    name_and_score = rf"\s*+{name_before}{_BRACKETS}{quality}SCORE"
    # "Final score: 4/5 (clear)", "・スコア：4", "Puntuación = 4"
    named = rf"{name_and_score}{_CLOSES}{copula}(?={_REASON})"
    # "4", "**4/5**", "[[A]]", "→ 4点", "満点です。"
    ending = rf"[\s.!。、,*)\]}}]*+{_STOP}\Z"
    bare = rf"\s*+{_BULLET}{mark}{_ON_A_SCALE}{quality}SCORE{mark}{_COPULA}{ending}"
    # "2 - the wording is poor", "4 The text is clear."
    opening = rf"\s*+{mark}SCORE{_CLOSES}{copula}(?={_REASON}|\s++{_SENTENCE_OPENER})"
    # <score>4</score>, <answer>Score: 4</answer>
    named_score = rf"{mark}(?:{_NAME}\s*+:)?{mark}SCORE{mark}"
    tag = rf"<\s*+(?P<tag>{_TAG}|TITLE)\s*+>\s*+{named_score}</\s*+(?P=tag)\s*+>"

    def compiled(pattern: str) -> re.Pattern[str]:
        pattern = pattern.replace("TITLE", title_pattern)
        pattern = pattern.replace("SCORE", score_pattern)
        return re.compile(pattern, re.IGNORECASE)

    return Forms(
        named=compiled(named),
        # With anything behind it: another score in this form makes prose doubtful.
        loosely_named=compiled(name_and_score),
        bare=compiled(bare),
        opening=compiled(opening),
        cell=compiled(rf"{mark}SCORE{mark}\Z"),
        name=compiled(rf"{mark}(?:{_NAME}){mark}\Z"),
        tags=(
            compiled(tag),
            compiled(rf"{BOX}\s*+SCORE\s*+\}}"),
            # GLM's mark of its answer. At the end of the reply, the closing one is cut.
            compiled(rf"<\|begin_of_box\|>{mark}SCORE{mark}(?:<\|end_of_box\|>|\Z)"),
            compiled(r"\[\[\s*+SCORE\s*+\]\]"),
        ),
    )


def table_cells(text: str, patterns: Forms) -> Iterator[re.Match[str]]:
    """Yield the cells of a table that give a score: beside its name, or the only one below it."""
    score_column: int | None = None
    for line in re.finditer(r"[^\n]+", text):
        if "|" not in line[0]:
            score_column = None
            continue
        row = _Row.from_line(line)
        if row.is_rule:
            continue
        names = row.columns_of_names(patterns)
        scores = row.scores(text, patterns)
        if names == [0] and len(scores) == 1:
            # "| Score | 4 |"
            yield scores[0]
        elif score_column is not None and score_column < len(row.spans):
            column_start, column_end = row.spans[score_column]
            for score in scores:
                if column_start <= score.start() and score.end() <= column_end:
                    yield score
        if names and not scores:
            # A header. Judges put the score into the last of several columns with such a name.
            score_column = names[-1]


@dataclass(frozen=True, slots=True)
class _Row:
    """The cells of a row that are not blank, and their spans in the text."""

    cells: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def from_line(cls, line: re.Match[str]) -> _Row:
        cells: list[str] = []
        spans: list[tuple[int, int]] = []
        start_of_line = line.start()
        for cell in re.finditer(r"[^|]+", line[0]):
            # A line may begin and end with a bar, beside which there is no cell.
            if cell[0].strip():
                cells.append(cell[0])
                spans.append((start_of_line + cell.start(), start_of_line + cell.end()))
        return cls(tuple(cells), tuple(spans))

    @property
    def is_rule(self) -> bool:
        """Whether the row has no text: "|---|:-:|"."""
        return all(re.fullmatch(r"[\s:-]+", cell) for cell in self.cells)

    def columns_of_names(self, patterns: Forms) -> list[int]:
        return [
            column
            for column, cell in enumerate(self.cells)
            if patterns.name.fullmatch(cell.strip())
        ]

    def scores(self, text: str, patterns: Forms) -> list[re.Match[str]]:
        """Return the cells that hold a score and nothing else, as matches in the text."""
        scores: list[re.Match[str]] = []
        for cell, (cell_start, cell_end) in zip(self.cells, self.spans, strict=True):
            start = cell_end - len(cell.lstrip())
            end = cell_start + len(cell.rstrip())
            match = patterns.cell.fullmatch(text, start, end)
            if match:
                scores.append(match)
        return scores
