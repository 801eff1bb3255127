"""The page of `judge label` in a real browser: keys, resume, undo, pairs, and a server that is gone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise as successive
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judge.commands.label.command import Labelling
from judge.commands.label.preparation import prepare_labelling
from judge.commands.label.server import LabelServer, page
from judge.config import RunConfig
from judge.data.ratings import join_ratings, read_ratings
from judge.data.samples import load
from judge.stats.agreement import agree
from tests.factories import has_line, write_jsonl

pytestmark = pytest.mark.browser

HOSTILE = "</script><script>document.title = 'pwned'</script><img src=x onerror=\"document.title = 'pwned'\"> \u202eevil"
Prepare = Callable[..., Labelling]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """30 items of one system; texts and sources are Japanese, Arabic and hostile among others."""
    texts = {0: "市場は月曜日に開きます。", 1: "يفتح السوق يوم الاثنين", 2: HOSTILE, 3: ""}
    rows = [
        {
            "item": f"i{k}",
            "system": "secret-model",
            "source": texts.get(k, f"Source {k}."),
            "output": texts.get(k, f"T{k}."),
        }
        for k in range(30)
    ]
    path = tmp_path / "data.jsonl"
    write_jsonl(path, rows)
    return path


@pytest.fixture
def prepared(data: Path, tmp_path: Path) -> Prepare:
    def prepare(
        criteria: Any = "fit: Does it fit?", data: Path = data, **options: Any
    ) -> Labelling:
        config = RunConfig.load(None, {"data": data, "criteria": criteria})
        return prepare_labelling(
            config, ("anna", "ben"), tmp_path / "ratings.jsonl", **{"repeat": 0, **options}
        )

    return prepare


@contextmanager
def serving(labelling: Labelling, **address: Any) -> Iterator[LabelServer]:
    server = LabelServer(labelling, **address)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def browse(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Open an address in a new context. Fail on errors, console messages and requests to other hosts."""
    with ExitStack() as stack:
        messages: list[str] = []

        def show(url: str, context: Any = None, **options: Any) -> Any:
            used = context or stack.enter_context(chromium.new_context(**options))
            opened = used.new_page()
            opened.said = messages
            home = re.match(r"(http://[^/]+|file:/+[^?]*)", url)
            assert home is not None
            opened.on("console", lambda message: messages.append(message.text))
            opened.on("pageerror", lambda error: messages.append(str(error)))
            opened.on(
                "request",
                lambda sent: (
                    messages.append(sent.url)
                    if not sent.url.startswith((home[0], "blob:"))
                    else None
                ),
            )
            opened.goto(url)
            return opened

        yield show
        assert messages == []


def shown(opened: Any) -> str:
    return str(opened.locator(".output .text").first.text_content())


def rows_of(labelling: Labelling) -> list[dict[str, Any]]:
    return [json.loads(line) for line in labelling.output.read_text("utf-8").splitlines()]


def count(opened: Any, number: int, total: int) -> None:
    """Wait until the page shows this number of rated texts."""
    opened.get_by_text(f"{number} of {total} rated").wait_for()


def saved(labelling: Labelling, number: int, wait_until: Callable[..., None]) -> None:
    """Wait until the file has this many rows."""
    wait_until(lambda: labelling.output.exists() and len(rows_of(labelling)) == number)


def alpha_by_hand(votes: list[tuple[float, float]]) -> float:
    """Krippendorff's alpha with squared distances from the matrix of coincidences (Krippendorff 2011, section B)."""
    values = sorted({value for pair in votes for value in pair})
    coincidences = {(c, k): 0.0 for c in values for k in values}
    for one, other in votes:
        coincidences[one, other] += 1  # each of the two ordered pairs, over m − 1 = 1
        coincidences[other, one] += 1
    totals = {c: sum(coincidences[c, k] for k in values) for c in values}
    n = sum(totals.values())
    observed = sum(coincidences[c, k] * (c - k) ** 2 for c in values for k in values)
    expected = sum(totals[c] * totals[k] * (c - k) ** 2 for c in values for k in values) / (n - 1)
    return 1 - observed / expected


def validated(data: Path, ratings: Path) -> Any:
    """Return the JSON of `judge validate` for these ratings and a judge that gives every text a 3 or a 4."""
    script = data.with_name("replies.yaml")
    script.write_text("- {when: T1, reply: {4: 1.0}}\n- {reply: {3: 1.0}}\n", encoding="utf-8")
    words = [
        "validate",
        str(data),
        "--criteria",
        "fit: Does it fit?",
        "--ratings",
        str(ratings),
        "--language",
        "en",
    ]
    words += [
        "--model",
        f"scripted/{script}",
        "--metrics",
        "none",
        "--out",
        str(data.with_name("run")),
        "--level",
        "all-texts",
    ]
    # In a separate process, because Playwright's event loop runs in this one.
    completed = subprocess.run(
        [sys.executable, "-m", "judge", *words, "--quiet", "--json"],
        capture_output=True,
        check=True,
    )
    return json.loads(completed.stdout)


def test_two_raters_label_30_items_by_keyboard_close_half_way_and_resume(
    prepared: Prepare, data: Path, browse: Callable[..., Any], wait_until: Callable[..., None]
) -> None:
    labelling = prepared()
    answers_given: dict[str, dict[str, int]] = {"anna": {}, "ben": {}}
    for part, until_text in ((0, 15), (1, 30)):
        with serving(labelling if part == 0 else prepared()) as server:
            for rater, shift in (("anna", 0), ("ben", 1)):
                opened = browse(server.url(rater), viewport={"width": 1200, "height": 800})
                count(opened, 15 * part, 30)
                for number in range(15 * part, until_text):
                    text = shown(opened)
                    assert text not in answers_given[rater]  # a rated text is not shown again
                    answer = min(5, 1 + sum(map(ord, text)) % 5 + shift * (number % 3 == 0))
                    answers_given[rater][text] = answer
                    opened.keyboard.press(str(answer))
                    count(opened, number + 1, 30)
                saved(labelling, 15 * part * 2 + 15 * (shift + 1), wait_until)
                if part:
                    opened.get_by_role("heading", name="All done").wait_for()
                opened.context.close()
    ratings = read_ratings(labelling.output)
    samples = load(data)
    texts = {sample.item: sample.output for sample in samples}
    for rater, answers in answers_given.items():
        written = {
            texts[r.item].replace("\u202e", "\\u202e") or "(empty text)": r.value
            for r in ratings.single
            if r.rater == rater
        }
        assert written == answers
    joined = join_ratings(samples, ratings.single)
    assert all(sample.raters == {"fit": ("anna", "ben")} for sample in joined)
    pairs = [(float(a), float(b)) for a, b in (sample.ratings["fit"] for sample in joined)]  # type: ignore[arg-type]
    alpha = (
        agree(np.array(pairs).T[:, :, None], ("alpha_interval",)).estimates["alpha_interval"].value
    )
    assert alpha == pytest.approx(alpha_by_hand(pairs), abs=1e-9)
    assert 0.5 < alpha < 0.99
    (validation,) = validated(data, labelling.output)["criteria"]
    assert {rater["rater"]: rater["ratings"] for rater in validation["raters"]} == {
        "anna": 30,
        "ben": 30,
    }
    (between,) = (row["agreement"][0] for row in validation["rows"] if row["kind"] == "rater")
    assert (between["measure"], between["value"]) == (
        "alpha_interval",
        pytest.approx(alpha_by_hand(pairs), abs=1e-9),
    )
    assert all(row["seconds"] >= 0 for row in rows_of(labelling))


def test_undo_skip_arrows_and_comments(
    prepared: Prepare, browse: Callable[..., Any], wait_until: Callable[..., None]
) -> None:
    labelling = prepared()
    with serving(labelling) as server:
        opened = browse(server.url("anna"))
        press = opened.keyboard.press
        first = shown(opened)
        assert opened.locator("#ends").inner_text() == "1 (lowest) to 5 (highest)"
        press("u")  # nothing to undo
        press("c")
        opened.keyboard.type("4 us, 良い")  # the key is typed into the comment and rates nothing
        press("Enter")
        press("2")
        saved(labelling, 1, wait_until)  # a page replaces ratings that it has not sent yet
        second = shown(opened)
        press("Backspace")
        count(opened, 0, 30)
        saved(labelling, 2, wait_until)
        assert shown(opened) == first
        press("3")
        saved(labelling, 3, wait_until)
        press("s")
        count(opened, 1, 30)
        third = shown(opened)
        assert len({first, second, third}) == 3
        press("ArrowLeft")
        assert shown(opened) == second
        press("ArrowLeft")
        assert opened.locator("#choices [aria-pressed=true]").inner_text() == "3"
        press(
            "5"
        )  # change the answer for the first text; the page then shows the next open text, not the skipped one
        count(opened, 1, 30)
        assert shown(opened) == third
        saved(labelling, 4, wait_until)
        press("u")  # the earlier answer returns
        saved(labelling, 5, wait_until)
        assert [(row["value"], row["comment"]) for row in rows_of(labelling)] == [
            (2, "4 us, 良い"), (None, ""), (3, "4 us, 良い"), (5, "4 us, 良い"), (3, "4 us, 良い"),
        ]  # fmt: skip
        press("ArrowRight")
        press("ArrowRight")
        for number in range(2, 30):
            press("4")
            count(opened, number, 30)
        opened.get_by_role("heading", name="1 left").wait_for()
        opened.get_by_role("button", name="Rate it").click()
        assert shown(opened) == second
        opened.get_by_role("button", name="4").click()
        opened.get_by_role("heading", name="All done").wait_for()
        saved(labelling, 34, wait_until)
    assert len(read_ratings(labelling.output).single) == 30


def test_several_criteria_are_rated_in_turn_and_texts_again(
    prepared: Prepare, browse: Callable[..., Any], wait_until: Callable[..., None], tmp_path: Path
) -> None:
    data = tmp_path / "few.jsonl"
    data.write_text(
        "".join(
            json.dumps({"item": str(k), "output": f"T{k}.", "source": "S."}) + "\n"
            for k in range(4)
        )
    )
    yes = {
        "name": "safe",
        "question": "Is it safe?",
        "scale": {"labels": ["no", "yes"], "values": [0, 1]},
    }
    wide = {"name": "percent", "question": "How good?", "scale": [0, 100], "title": "Percent"}
    labelling = prepared([yes, wide], data=data, repeat=0.5)
    with serving(labelling) as server:
        opened = browse(server.url("ben"))
        for number in range(6):
            assert opened.locator("#title").inner_text() == "safe"
            text = shown(opened)
            opened.keyboard.press("2")
            count(opened, 2 * number + 1, 12)
            assert (opened.locator("#title").inner_text(), shown(opened)) == ("Percent", text)
            if number == 0:
                opened.keyboard.type("101")
                opened.keyboard.press("Enter")  # outside the scale
                opened.keyboard.press("ControlOrMeta+a")
            opened.keyboard.type("77")
            opened.keyboard.press("Enter")
            count(opened, 2 * number + 2, 12)
        opened.get_by_role("heading", name="All done").wait_for()
        saved(labelling, 12, wait_until)
    ratings = rows_of(labelling)
    assert [(row["criterion"], row["value"]) for row in ratings] == [
        ("safe", "yes"),
        ("percent", 77),
    ] * 6
    repeated = [row["item"] for row in ratings if row["repeat"] and row["criterion"] == "safe"]
    items = [row["item"] for row in ratings if row["criterion"] == "safe"]
    assert len(repeated) == 2
    assert all(items.count(item) == 2 for item in repeated)
    assert all(one != other for one, other in successive(items))
    assert len(labelling.ratings().single) == 12


def test_a_repetition_waits_for_the_first_time(
    prepared: Prepare, browse: Callable[..., Any]
) -> None:
    labelling = prepared(repeat=0.3, items=2)
    (repeated_index,) = (place for place, task in enumerate(labelling.tasks("anna")) if task.repeat)
    assert repeated_index == 2
    with serving(labelling) as server:
        opened = browse(server.url("anna"))
        opened.keyboard.press("s")
        opened.keyboard.press("4")
        opened.get_by_role("heading", name="1 left").wait_for()
        opened.get_by_role("button", name="Rate it").click()
        opened.keyboard.press("4")
        count(opened, 2, 3)
        opened.keyboard.press("5")
        opened.get_by_role("heading", name="All done").wait_for()


def test_pairs_are_compared_side_by_side(
    prepared: Prepare, browse: Callable[..., Any], wait_until: Callable[..., None], tmp_path: Path
) -> None:
    data = tmp_path / "pairs.jsonl"
    rows = [
        {"item": str(k), "system": system, "source": "S.", "output": f"{quality} text {k}."}
        for k in range(8)
        for system, quality in (("zeta", "Good"), ("alpha", "Bad"))
    ]
    write_jsonl(data, rows)
    labelling = prepared("relevance", data=data, pairwise=True)
    sides = set()
    with serving(labelling) as server:
        opened = browse(server.url("anna"))
        for number in range(8):
            both = opened.locator(".output .text").all_inner_texts()
            good = next(place for place, text in enumerate(both) if text.startswith("Good"))
            sides.add(good)
            opened.keyboard.press("0" if number == 0 else str(good + 1))
            count(opened, number + 1, 8)
        saved(labelling, 8, wait_until)
    comparisons = read_ratings(labelling.output).pairs
    assert sides == {0, 1}
    assert {(r.first, r.second) for r in comparisons} == {("alpha", "zeta")}
    assert [r.value for r in comparisons] == ["tie"] + ["second"] * 7


def test_a_rating_survives_a_server_that_is_gone(
    prepared: Prepare, browse: Callable[..., Any], wait_until: Callable[..., None]
) -> None:
    labelling = prepared()
    with serving(labelling) as server:
        address = {"port": server.server_port, "token": server.token}
        opened = browse(server.url("anna"))
        opened.keyboard.press("4")
        saved(labelling, 1, wait_until)
    opened.keyboard.press("2")
    opened.keyboard.press("u")
    opened.keyboard.press("3")
    opened.get_by_text(
        "judge label does not answer. Is it still running? 1 rating is kept in this page"
    ).wait_for()
    with opened.expect_download() as download:
        opened.get_by_role("button", name="Save the unsent ratings").click()
    (row,) = map(json.loads, Path(download.value.path()).read_text("utf-8").splitlines())
    assert (row["value"], row["rater"]) == ("3", "anna")
    with serving(labelling, **address):
        saved(labelling, 2, wait_until)
        opened.get_by_text("does not answer").wait_for(state="hidden")
    assert rows_of(labelling)[1]["value"] == 3
    assert all("ERR_CONNECTION_REFUSED" in text for text in opened.said)
    opened.said.clear()


def test_a_comment_without_a_rating_is_still_there_after_a_reload(
    prepared: Prepare, browse: Callable[..., Any], wait_until: Callable[..., None]
) -> None:
    labelling = prepared()
    with serving(labelling) as server:
        opened = browse(server.url("anna"))
        opened.keyboard.press("c")
        opened.keyboard.type("unsure")
        opened.keyboard.press("Enter")
        opened.keyboard.press("s")
        assert opened.locator("#comment").input_value() == ""
        opened.reload()
        assert opened.locator("#comment").input_value() == "unsure"
        opened.keyboard.press("4")
        saved(labelling, 1, wait_until)
        opened.reload()
        count(opened, 1, 30)
        assert opened.locator("#comment").input_value() == ""
    assert [(row["value"], row["comment"]) for row in rows_of(labelling)] == [(4, "unsure")]


def test_of_two_tabs_the_later_rating_is_saved(
    prepared: Prepare, browse: Callable[..., Any], wait_until: Callable[..., None]
) -> None:
    labelling = prepared()
    with serving(labelling) as server:
        address = {"port": server.server_port, "token": server.token}
        first_tab = browse(server.url("anna"))
        second_tab = browse(server.url("anna"), first_tab.context)
        assert shown(first_tab) == shown(second_tab)
    first_tab.keyboard.press("4")
    count(second_tab, 1, 30)
    second_tab.keyboard.press("2")
    first_tab.get_by_text("1 rating is kept").wait_for()
    second_tab.get_by_text("1 rating is kept").wait_for()
    with serving(labelling, **address):
        first_tab.get_by_text("does not answer").wait_for(state="hidden")
        second_tab.get_by_text("does not answer").wait_for(state="hidden")
    assert {row["value"] for row in rows_of(labelling)} == {2}
    first_tab.said.clear()


def test_a_refused_rating_keeps_no_other_back(
    prepared: Prepare, browse: Callable[..., Any], wait_until: Callable[..., None]
) -> None:
    labelling = prepared()
    first_task, *_ = labelling.tasks("anna")
    others = {key: unit for key, unit in labelling.units.items() if unit != first_task.unit}
    with serving(labelling) as server:
        opened = browse(server.url("anna"))
        server.labelling = replace(labelling, units=others)
        opened.keyboard.press("4")
        opened.get_by_text("no such text").wait_for()
        opened.keyboard.press("2")
        saved(labelling, 1, wait_until)
        opened.get_by_text("1 rating is kept").wait_for()
    assert rows_of(labelling)[0]["value"] == 2
    opened.said.clear()


def test_the_end_of_a_page_does_not_claim_that_unsent_ratings_are_saved(
    prepared: Prepare, browse: Callable[..., Any]
) -> None:
    labelling = prepared(items=1)
    with serving(labelling) as server:
        address = {"port": server.server_port, "token": server.token}
        opened = browse(server.url("anna"))
    opened.keyboard.press("4")
    opened.get_by_text("Not all of them are saved yet: leave this page open.").wait_for()
    opened.get_by_text("1 rating is kept in this page").wait_for()
    with serving(labelling, **address):
        opened.get_by_text("Every rating is saved. You can close this page.").wait_for()
        assert len(rows_of(labelling)) == 1
    opened.said.clear()


def test_a_page_that_was_closed_without_a_server_sends_when_it_is_opened_again(
    prepared: Prepare, browse: Callable[..., Any], wait_until: Callable[..., None]
) -> None:
    labelling = prepared()
    with serving(labelling) as server:
        address = {"port": server.server_port, "token": server.token}
        opened = browse(server.url("anna"))
    opened.keyboard.press("4")
    opened.get_by_text("1 rating is kept").wait_for()
    opened.said.clear()
    context = opened.context
    opened.close()
    with serving(labelling, **address) as server:
        reopened = browse(server.url("anna"), context)
        count(reopened, 1, 30)
        saved(labelling, 1, wait_until)


def test_texts_stay_texts_and_system_names_stay_away(
    prepared: Prepare, browse: Callable[..., Any]
) -> None:
    labelling = prepared(f"fit: Is it {HOSTILE}")
    seen = []
    with serving(labelling) as server:
        opened = browse(server.url("anna"))
        for number in range(30):
            seen.append(shown(opened))
            assert opened.title() == "Rate texts"
            assert opened.locator("img").count() == 0
            opened.keyboard.press("1")
            count(opened, number + 1, 30)
        assert "secret-model" not in opened.content()
    expected = HOSTILE.replace("\u202e", "\\u202e")
    assert {expected, "市場は月曜日に開きます。", "يفتح السوق يوم الاثنين", "(empty text)"} < set(
        seen
    )


def test_a_page_without_a_server_keeps_and_saves_ratings(
    prepared: Prepare, browse: Callable[..., Any], wait_until: Callable[..., None], tmp_path: Path
) -> None:
    labelling = prepared()
    file = tmp_path / "page.html"
    file.write_text(page(labelling, None, served=False), encoding="utf-8")
    assert "secret-model" not in file.read_text("utf-8")
    opened = browse(file.as_uri())
    opened.get_by_role("link", name="ben").click()
    count(opened, 0, 30)
    for number in range(12):
        opened.keyboard.press("4")
        count(opened, number + 1, 30)
    opened.keyboard.press("u")
    count(opened, 11, 30)
    context = opened.context
    opened.close()
    reopened = browse(f"{file.as_uri()}?rater=ben", context)
    # It may take a moment until other processes see the storage of a closed page.
    wait_until(lambda: reopened.reload() and reopened.get_by_text("11 of 30 rated").is_visible())
    for number in range(11, 30):
        reopened.keyboard.press("2")
        count(reopened, number + 1, 30)
    with reopened.expect_download() as download:
        reopened.locator("#save-end").click()
    assert download.value.suggested_filename == "ratings-ben.jsonl"
    text = Path(download.value.path()).read_text("utf-8")
    assert "secret-model" not in text
    path = tmp_path / "ratings-ben.jsonl"
    path.write_text(text, encoding="utf-8")
    assert labelling.import_file(path).new == 30
    ratings = labelling.ratings().single
    assert ([r.value for r in ratings].count(4.0), len({r.item for r in ratings})) == (11, 30)
    other = browse(f"{file.as_uri()}?rater=anna", context)
    count(other, 0, 30)


def test_other_raters_progress_and_own_columns_are_shown(
    prepared: Prepare, browse: Callable[..., Any], data: Path, wait_until: Callable[..., None]
) -> None:
    rows = [json.loads(line) for line in data.read_text("utf-8").splitlines()]
    write_jsonl(data, [{**row, "channel": f"mail {row['item']}"} for row in rows])
    labelling = prepared()
    unit = labelling.tasks("anna")[0].unit
    with serving(labelling) as server:
        opened = browse(server.url("anna"))
        opened.get_by_text("ben 0 of 30").wait_for()
        fact = opened.get_by_text(f"mail {unit.item}", exact=True)
        assert not fact.is_visible()
        opened.locator("#own summary").click()
        fact.wait_for()
        other = browse(server.url("ben"))
        other.keyboard.press("4")
        saved(labelling, 1, wait_until)
        opened.keyboard.press("4")
        count(opened, 1, 30)
        saved(labelling, 2, wait_until)
        opened.reload()
        opened.get_by_text("ben 1 of 30").wait_for()


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(
    prepared: Prepare, browse: Callable[..., Any], width: int
) -> None:
    labelling = prepared(["relevance", "coherence", "consistency", "fluency_5"])
    with serving(labelling) as server:
        opened = browse(server.url("anna"), viewport={"width": width, "height": 800})
        assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
        box = opened.locator("#choices").bounding_box()
        assert box["y"] + box["height"] <= 800  # the answers must be visible without scrolling
        opened.get_by_role("button", name="3", exact=True).click()
        count(opened, 1, 120)
        opened.keyboard.press("Tab")
        assert opened.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_label_serves_until_ctrl_c_and_names_the_next_command(
    data: Path, browse: Callable[..., Any], wait_until: Callable[..., None], tmp_path: Path
) -> None:
    words = [
        sys.executable,
        "-m",
        "judge",
        "label",
        "data.jsonl",
        "--criteria",
        "fit: Does it fit?",
        "--raters",
        "anna",
    ]
    run = subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert run.stdout is not None
        url = run.stdout.readline().partition(": ")[2].strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/", url)
        opened = browse(url)
        opened.keyboard.press("4")
        wait_until(
            lambda: (
                (tmp_path / "ratings.jsonl").exists()
                and read_ratings(tmp_path / "ratings.jsonl").single
            )
        )
        run.send_signal(2)
        output, errors = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 0
    assert has_line(output, "1 rating in ratings.jsonl", "anna 1")
    assert (
        "judge validate data.jsonl --criteria 'fit: Does it fit?' --ratings ratings.jsonl" in output
    )
    assert "Traceback" not in errors
