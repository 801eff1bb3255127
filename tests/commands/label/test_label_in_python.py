"""`judge.label` serves the page until everything is rated or Ctrl-C, and returns the ratings."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judge
from judge.commands.label import call
from judge.core.errors import ConfigError, JudgeError

FRAME = pd.DataFrame(
    {
        "ticket": ["1", "1", "2", "2"],
        "system": ["old", "new", "old", "new"],
        "reply": ["Read your mails.", "It arrives on Friday.", "Send them back.", "Exchange them."],
    }
)
MAP = {"item": "ticket", "output": "reply"}
KIND = "kind: Is the reply kind?"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def content_of(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        html = answer.read().decode()
    match = re.search(r'id="content">(.*?)</script>', html, re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def rate(url: str, value: str, number: int) -> None:
    """Rate `number` texts in the order of the page."""
    content = content_of(url)
    for text, repeat, _ in content["orders"][content["rater"]][:number]:
        rating = {
            "text": text,
            "rater": content["rater"],
            "criterion": content["criteria"][0]["name"],
            "value": value,
            "repeat": repeat,
        }
        request = urllib.request.Request(
            f"{url}rate", json.dumps(rating).encode(), {"Content-Type": "application/json"}
        )
        urllib.request.urlopen(request).close()


@pytest.fixture
def meanwhile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., None]:
    """Run the raters' actions while the call waits. Then send Ctrl-C, unless `finish`."""

    def set_actions(finish: bool = False, **value_and_number: tuple[str, int]) -> None:
        waiting = []

        def sleep(_: float) -> None:
            if not waiting:
                waiting.append(True)
                urls = dict(re.findall(r"^(\w+): (http\S+)$", capsys.readouterr().out, re.M))
                for rater, (value, number) in value_and_number.items():
                    rate(urls[rater], value, number)
            elif not finish:
                raise KeyboardInterrupt

        monkeypatch.setattr(call.time, "sleep", sleep)
        monkeypatch.setattr(call, "_GRACE_SECONDS", 0.0)
        monkeypatch.setattr(call, "_POLL_SECONDS", 0.01)

    return set_actions


def label(**options: Any) -> pd.DataFrame:
    return judge.label(FRAME, KIND, **{"map": MAP, "repeat": 0, "raters": "anna,ben"} | options)


def test_an_interrupt_ends_it_and_returns_the_ratings_so_far(
    meanwhile: Callable[..., None],
) -> None:
    meanwhile(anna=("5", 2))
    ratings = label()
    assert list(ratings["rater"]) == ["anna", "anna"]
    assert list(ratings["value"]) == [5.0, 5.0]
    # The same call resumes.
    meanwhile(ben=("2", 4))
    assert list(label()["rater"]) == ["anna"] * 2 + ["ben"] * 4


def test_it_ends_when_everything_is_rated(meanwhile: Callable[..., None]) -> None:
    meanwhile(finish=True, anna=("4", 4), ben=("3", 4))
    assert len(label()) == 8


def test_the_ratings_are_ratings_of_a_run(meanwhile: Callable[..., None]) -> None:
    meanwhile(anna=("4", 4))
    criterion = judge.load_criterion(KIND)
    ratings = label(raters=["anna"])
    result = judge.evaluate(
        FRAME, criterion, model=lambda prompt: 3, map=MAP, ratings=ratings, metrics=[]
    )
    assert [sample.human for sample in result.table.samples] == [{"kind": 4.0}] * 4


def test_preferences_are_ratings_of_a_ranking(meanwhile: Callable[..., None]) -> None:
    meanwhile(anna=("a", 2))
    criterion = judge.Criterion("kinder", question="Which reply is kinder?")
    ratings = judge.label(FRAME, criterion, raters="anna", pairwise=True, map=MAP, repeat=0)
    assert list(ratings.columns[:3]) == ["item", "first", "second"]
    assert set(ratings["value"]) <= {"first", "second"}
    ranked = judge.rank(FRAME, criterion, model=lambda prompt: "A", map=MAP, ratings=ratings)
    assert ranked.rankings[0].column == "kinder"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"raters": []}, r"no raters: .* raters=\['anna', 'ben'\]"),
        ({"raters": "anna,anna"}, r"raters=\['anna', 'anna'\]: give each"),
        ({"output": "ratings.csv"}, "output='ratings.csv': ratings are JSON lines"),
        ({"repeat": 2}, "repeat=2: a share"),
        ({"items": 9}, "items=9: .*only 2 items"),
        ({"where": {"ticket": "9"}}, "ticket"),
        ({"map": {}}, "no column item"),
    ],
)
def test_a_mistake_is_an_error_before_anybody_rates(options: dict[str, Any], words: str) -> None:
    with pytest.raises(JudgeError, match=words) as raised:
        label(**options)
    assert "--" not in str(raised.value)
    assert not Path("ratings.jsonl").exists()


def test_people_rate_by_a_criterion() -> None:
    with pytest.raises(ConfigError, match="people rate by a criterion"):
        judge.label(FRAME, [], raters="anna", map=MAP)
