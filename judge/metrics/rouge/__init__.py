"""ROUGE (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"). `score` is for lists of texts, `Rouge`
for `judge`. English N, L and Lsum equal rouge-score 0.1.2; the preset rouge155 equals ROUGE-1.5.5.pl. Options:

types       rouge1 to rouge9; rougeL (one longest common subsequence over the whole text), rougeLsum (sentence by
            sentence); rougeW or rougeW-1.2 (runs of k words count k^1.2); rougeS, rougeSU (pairs of words with any
            gap; with single words too), rougeS4, rougeSU4 (with up to 4 words between; any number); lcs_mead (each
            sentence with the one that shares most with it in order). Default rouge1, rouge2, rougeL, rougeLsum.
stem        English words of more than three letters, by Porter's stemmer. Default true.
multi       of several references the one of the best F (best_f), of the best recall (best_recall), counts added up
            (pooled), the mean over them (mean), the mean over leaving each one out (jackknife). Default best_f, under
            rouge155 pooled.
preset      rouge155: the numbers, tokenizer, stemmer and five decimals of ROUGE-1.5.5. Its -f A is pooled, its -f B
            best_recall, its -p alpha. Types ROUGE-1 to ROUGE-9, ROUGE-L, ROUGE-W-1.2, ROUGE-S*, ROUGE-SU*, ROUGE-S4,
            ROUGE-SU4, with any number; its ROUGE-W and ROUGE-SU are not the paper's.
tokenizer   a name of `judge.text`. Default: `en`, or by script for a row of which that loses most letters.
stopwords   a file with a word a line, or the words; dropped before stemming.
exceptions  files of lines `word stem`, as WordNet's *.exc, looked up before the stemmer of rouge155.
alpha, beta F = P·R / (alpha·R + (1 - alpha)·P); alpha = 1 / (1 + beta²). Default alpha = ½, beta = 1.
"""

from judge.metrics.rouge.metric import Rouge, score
from judge.metrics.rouge.variants import RougeScore

__all__ = ["Rouge", "RougeScore", "score"]
