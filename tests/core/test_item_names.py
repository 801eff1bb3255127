"""Items by their names, and by the beginnings of long names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.errors import ConfigError
from judge.core.item_names import item_called, unknown_item

NAMES = st.sets(st.text("ab1-…", min_size=1, max_size=6), min_size=1)


@given(NAMES)
def test_every_item_is_called_by_its_whole_name(items: set[str]) -> None:
    assert [item_called(name, items) for name in sorted(items)] == sorted(items)


@given(NAMES, st.text("ab1-", min_size=1, max_size=3))
def test_a_beginning_names_the_only_item_that_has_it(items: set[str], beginning: str) -> None:
    candidates = {item for item in items if item.startswith(beginning)}
    if beginning in items or len(candidates) == 1:
        assert item_called(beginning, items) in candidates
    else:
        with pytest.raises(ConfigError):
            item_called(beginning, items)


def test_a_beginning_may_end_with_the_mark_of_a_report() -> None:
    assert item_called("dm-test-87…", ["dm-test-8764fb", "dm-test-11"]) == "dm-test-8764fb"


@pytest.mark.parametrize("name", ["", "…"])
def test_nothing_is_no_beginning(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown item"):
        item_called(name, ["a"])


def test_a_beginning_of_many_items_is_an_error_that_names_a_few() -> None:
    with pytest.raises(ConfigError, match="40 items") as caught:
        item_called("doc", [f"doc-{number}" for number in range(40)])
    assert str(caught.value).count("doc-") == 3


@pytest.mark.parametrize("name", ["doc-x", "something else"])
def test_the_message_for_an_unknown_item_names_at_most_three(name: str) -> None:
    message = unknown_item(name, [f"doc-{number:02}" for number in range(40)])
    assert repr(name) in message
    assert 1 <= message.replace(name, "").count("doc-") <= 3
