"""Names that data have for the columns of answers, and for the fields of a text.

The English names come first, then those in Japanese, Korean and Chinese (Simplified, Traditional).
"""

from __future__ import annotations

ENGLISH_REQUEST_COLUMNS = (
    "request",
    "question",
    "query",
    "prompt",
    "instruction",
    "user_input",
)
"""English names of columns with the request. Ragas writes `user_input`."""
REQUEST_COLUMNS = (
    *ENGLISH_REQUEST_COLUMNS,
    # 請求 is no request: in Japanese data it is what somebody has to pay.
    *("依頼", "質問", "質問文", "指示", "プロンプト"),
    *("問い合わせ", "お問い合わせ", "問い合わせ内容"),
    *("요청", "질문", "문의", "문의 내용", "문의내용", "지시", "프롬프트"),
    *("请求", "问题", "提问", "指令", "提示词"),
    *("問題", "提問", "提示詞"),
)
"""Columns with the request, the first one before the others."""
ENGLISH_PASSAGE_COLUMNS = (
    "passages",
    "contexts",
    "context",
    "documents",
    "retrieved_contexts",
    "retrieval_context",
)
"""English names of columns with the passages.

Ragas writes `retrieved_contexts`, DeepEval `retrieval_context`.
"""
PASSAGE_COLUMNS = (
    *ENGLISH_PASSAGE_COLUMNS,
    *("参照文書", "参考資料", "資料", "文脈", "コンテキスト", "検索結果"),
    *("참고 문서", "참고문서", "참고 자료", "참고자료"),
    *("문맥", "컨텍스트", "검색 결과", "검색결과"),
    *("上下文", "参考资料", "资料", "参考文档", "检索结果"),
    *("參考資料", "參考文件", "檢索結果"),
)
"""Columns with the passages, the first one before the others."""
REFERENCE_COLUMNS = (
    *("expected", "expected_answer", "ground_truth", "gold", "target", "solution"),
    *("正解", "模範回答", "模範解答", "期待する回答", "参考回答", "参考"),
    *("参照訳", "参考訳", "正解訳", "参照要約", "正解要約"),
    *("참조 번역", "참조번역", "참고 번역", "참고번역", "참조 요약", "참조요약"),
    *("参考译文", "标准译文", "参考摘要", "參考譯文"),
    *("정답", "모범 답안", "모범답안", "모범 답변", "모범답변"),
    *("기준 답변", "참고 답변"),
    *("参考答案", "标准答案", "正确答案", "答案"),
    *("參考答案", "標準答案", "正確答案", "參考"),
)
"""Columns that probably have the reference answer. They count only if they are mapped."""
USUAL_NAMES = {
    "output": (
        *("summary", "answer", "response", "reply"),
        *("prediction", "hypothesis", "generated"),
        *("回答", "応答", "返信", "返答", "要約"),
        *("답변", "응답", "답장", "요약"),
        *("回复", "答复", "摘要"),
        *("回覆", "答覆"),
    ),
    "source": (
        *("article", "document"),
        *("原文", "記事"),
        *("원문", "기사"),
        *("新闻",),
    ),
    "references": ("target",),
}
"""Columns that fill a field, if nothing else does and the data have only one of them."""
COLUMN_GUESSES = {
    "output": (
        *("summary", "prediction", "response", "answer"),
        *("generated", "hypothesis", "candidate"),
        # SummEval writes `decoded` beside `text`, which is the article, and WMT writes `mt`.
        *("decoded", "completion", "generation", "translation", "hyp", "mt", "text"),
        *("回答", "応答", "返信", "返答", "出力", "要約", "訳文", "文章"),
        *("답변", "응답", "답장", "회신", "출력", "요약", "번역문", "글"),
        *("回复", "答复", "输出", "摘要", "译文", "文本", "答案"),
        *("回覆", "答覆", "輸出", "譯文"),
    ),
    "item": (
        *("doc_id", "item_id", "document_id", "example_id", "question_id"),
        *("番号", "번호", "编号", "序号", "編號", "序號"),
    ),
}
"""Columns that probably are a field. A message proposes them."""
