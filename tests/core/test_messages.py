"""Options in messages are named as they are typed where the caller stands."""

from __future__ import annotations

import pytest

from judge.core.messages import command, in_python, option, speaking_to
from judge.core.plugins import unknown_name_message

WORDS = [
    (("map", {"output": "reply", "item": "ticket"}), "--map output=reply,item=ticket",
     "map={'output': 'reply', 'item': 'ticket'}"),
    (("set", {"rouge": {"stem": False}}), "--set rouge.stem=false", "set={'rouge': {'stem': False}}"),
    (("systems", ["A", "B"]), "--systems A,B", "systems=['A', 'B']"), (("base_url",), "--base-url", "base_url"),
    (("structured", True), "--structured", "structured=True"), (("cache", False), "--no-cache", "cache=False"),
    (("draws", 3), "--draws 3", "draws=3"),
]  # fmt: skip


@pytest.mark.parametrize(("option_and_value", "typed", "written"), WORDS)
def test_an_option_in_both_words(
    option_and_value: tuple[str, object], typed: str, written: str
) -> None:
    assert option(*option_and_value) == typed
    with speaking_to("python"):
        assert option(*option_and_value) == written
    assert option(*option_and_value) == typed


def test_the_outer_door_counts() -> None:
    with speaking_to("command line"), speaking_to("python"):
        assert not in_python()
        assert command("run") == "judge run"
    with speaking_to("python"):
        assert (command("run"), command("criteria diff"), command("rank")) == (
            "judge.evaluate", "judge.diff", "judge.rank",
        )  # fmt: skip


def test_a_message_about_an_unknown_name_counts_the_names_it_leaves_out() -> None:
    known = [f"doc-{number}" for number in range(500)]
    message = unknown_name_message("item", "doc-499x", known)
    assert "did you mean 'doc-499'?" in message
    assert message.endswith("doc-29 and 470 more)")
