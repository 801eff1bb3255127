"""Words as characters. Oracles: the rules of ROUGE-1.5.5 byte by byte, Counter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judge.metrics.rouge.sequences import Rules, Vocabulary, script_words


def plain_rules(text: str) -> list[str]:
    """Lower-case A-Z, hyphens apart, all bytes but letters, digits and hyphens to spaces, words of letter or digit."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c == "-") else " " for c in text)
    lowered = "".join(c.lower() for c in kept).replace("-", " - ")
    return [word for word in lowered.split() if word[0] != "-"]


@given(st.text(st.characters(exclude_categories=()), max_size=40) | st.text("aZ-9 é\n.K", max_size=30))
def test_tokens_of_the_script(text: str) -> None:
    assert script_words(text) == plain_rules(text)


def test_more_words_than_characters_before_the_surrogates() -> None:
    vocabulary = Vocabulary(Rules("en", False))
    words = " ".join(f"w{number}" for number in range(0xD800 + 10))
    read = vocabulary.read(words)
    assert len(set(read.whole)) == len(read) == 0xD800 + 10
    read.whole.encode("utf-8")  # no surrogate among them
    assert vocabulary.read("w7 w55300").whole == read.whole[7] + read.whole[55300]


def test_stems_of_the_two_programs() -> None:
    """Words of more than three letters: NLTK's `says` is `say`, the script's `sai`; exceptions go first."""
    for rules, same in (
        (Rules("en", True), "says say"),
        (Rules("rouge155", True), "says sayed"),
        (Rules("rouge155", True, exceptions=(("better", "good"), ("sat", "sit"))), "better good"),
    ):
        one, other = Vocabulary(rules).read(same).whole
        assert one == other
    assert len(set(Vocabulary(Rules("rouge155", True, exceptions=(("sat", "sit"),))).read("sat sit").whole)) == 2
    assert len(set(Vocabulary(Rules("char", True)).read("running runs").whole)) == 2  # not cut as English
