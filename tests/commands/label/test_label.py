"""`judge label` without a browser: order, repetitions, the file of ratings, the server's refusals, import and plan."""

from __future__ import annotations

import http.client
import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from judge.cli import app
from judge.commands.label.command import Imported, Labelling
from judge.commands.label.preparation import prepare_labelling
from judge.commands.label.ratings_needed import (
    items_for_correlation,
    items_for_mean,
    texts_for_agreement,
)
from judge.commands.label.server import LabelServer, page
from judge.config import RunConfig
from judge.core.errors import ConfigError, CriterionError, DataError, JudgeError, StorageError
from judge.data.ratings import join_ratings, read_ratings
from judge.data.samples import load
from tests.factories import has_line, write_jsonl

SYSTEMS = ("zeta-large", "alpha-mini", "omega-7b")
RELEVANT = "fit: Does the text fit its source?"
Prepare = Callable[..., Labelling]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """30 items with a text of each of three systems; two wrote the same about item 7."""
    rows = [
        {
            "item": f"i{k}",
            "system": system,
            "source": f"Source {k}.",
            "output": f"Text {k} of kind {place}.",
        }
        for k in range(30)
        for place, system in enumerate(SYSTEMS)
    ]
    rows[7 * 3 + 2]["output"] = rows[7 * 3]["output"]
    path = tmp_path / "data.jsonl"
    write_jsonl(path, rows)
    return path


@pytest.fixture
def prepared(data: Path, tmp_path: Path) -> Prepare:
    def prepare(
        criteria: Any = RELEVANT, raters: tuple[str, ...] = ("anna", "ben"), **options: Any
    ) -> Labelling:
        data_options = {
            name: options.pop(name) for name in ("where", "limit", "seed") if name in options
        }
        config = RunConfig.load(
            None, {"data": options.pop("data", data), "criteria": criteria, **data_options}
        )
        return prepare_labelling(config, raters, tmp_path / "ratings.jsonl", **options)

    return prepare


def rating(
    labelling: Labelling, place: int = 0, rater: str = "anna", **more: Any
) -> dict[str, Any]:
    task = labelling.tasks(rater)[place]
    return {
        "text": task.unit.id,
        "rater": rater,
        "criterion": labelling.criteria[0].name,
        "value": "4",
        **more,
    }


def lines(labelling: Labelling) -> list[dict[str, Any]]:
    return [json.loads(line) for line in labelling.output.read_text("utf-8").splitlines()]


# Order and repetitions


def test_each_rater_sees_every_text_once_in_an_order_of_their_own(prepared: Prepare) -> None:
    labelling = prepared(repeat=0)
    orders = {rater: [task.unit.id for task in labelling.tasks(rater)] for rater in ("anna", "ben")}
    assert sorted(orders["anna"]) == sorted(orders["ben"]) == sorted(labelling.units)
    assert orders["anna"] != orders["ben"]
    assert orders["anna"] == [task.unit.id for task in prepared(repeat=0).tasks("anna")]
    assert orders["anna"] != [task.unit.id for task in prepared(repeat=0, seed=1).tasks("anna")]
    items = [labelling.units[unit].item for unit in orders["anna"]]
    assert len(list(dict.fromkeys(items))) == 1 + sum(a != b for a, b in itertools.pairwise(items))


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_repeated_texts_come_later_and_are_spread(prepared: Prepare, share: float) -> None:
    for seed in range(20):
        tasks = prepared(repeat=share, seed=seed).tasks("anna")
        first = {task.unit.id: place for place, task in enumerate(tasks) if not task.repeat}
        repeated = [(place, task.unit.id) for place, task in enumerate(tasks) if task.repeat]
        assert (
            len(repeated)
            == len({unit for _, unit in repeated})
            == min(round(share * len(first)), len(first) - 20)
        )
        assert all(place - first[unit] >= 20 for place, unit in repeated)


def test_a_single_text_is_not_repeated(prepared: Prepare) -> None:
    assert [task.repeat for task in prepared(limit=1, repeat=1).tasks("anna")] == [False]


def test_items_are_a_random_sample_that_is_the_same_for_all(prepared: Prepare) -> None:
    drawn = [
        {unit.item for unit in prepared(items=5, seed=seed).units.values()} for seed in range(3)
    ]
    assert {len(items) for items in drawn} == {5}
    assert drawn[0] != drawn[1]
    assert drawn[0] == {unit.item for unit in prepared(raters=("zoe",), items=5).units.values()}


# The file


def test_a_rating_is_a_row_and_a_later_one_replaces_it(prepared: Prepare) -> None:
    labelling = prepared()
    labelling.record(rating(labelling, seconds=2.5, comment="良い"))
    unit = labelling.tasks("anna")[0].unit
    (row,) = lines(labelling)
    assert row == {
        "item": unit.item, "system": unit.systems[0][0], "rater": "anna", "criterion": "fit", "value": 4,
        "repeat": False, "seconds": 2.5, "comment": "良い",
    }  # fmt: skip
    labelling.record(rating(labelling, value="2"))
    labelling.record(rating(labelling, 1))
    labelling.record(rating(labelling, 1, value=None))
    assert len(lines(labelling)) == 4
    assert [(r.item, r.value) for r in labelling.ratings().single] == [(unit.item, 2.0)]
    assert prepared().done() == {("anna", unit.id, "fit", False): ("2", "")}


def test_equal_texts_are_rated_once_for_both_systems(prepared: Prepare) -> None:
    labelling = prepared()
    assert len(labelling.units) == 89
    (twice,) = (unit for unit in labelling.units.values() if len(unit.systems) > 1)
    labelling.record({"text": twice.id, "rater": "ben", "criterion": "fit", "value": "5"})
    assert [(r.item, r.system, r.value) for r in labelling.ratings().single] == [
        ("i7", "zeta-large", 5.0), ("i7", "omega-7b", 5.0),
    ]  # fmt: skip
    assert len(labelling.done()) == 1


def test_ratings_by_label_are_joined_to_the_data(prepared: Prepare, data: Path) -> None:
    criterion = {
        "name": "safe",
        "question": "Safe?",
        "scale": {"labels": ["no", "yes"], "values": [0, 1]},
    }
    labelling = prepared([criterion])
    labelling.record(rating(labelling, value="yes"))
    (labelled,) = labelling.ratings().single
    assert labelled.value == "yes"
    joined = join_ratings(load(data), [labelled], {"safe": {"no": 0.0, "yes": 1.0}})
    assert [sample.human for sample in joined if sample.human] == [{"safe": 1.0}]
    assert next(iter(labelling.done().values())) == ("yes", "")


def test_ratings_of_many_threads_are_whole_lines(prepared: Prepare) -> None:
    labelling = prepared(repeat=0)
    second = prepared(repeat=0)  # like a second process, with a separate lock

    def rate(which: Labelling, rater: str) -> None:
        for place in range(89):
            which.record(rating(which, place, rater, comment="x" * 2000))

    threads = [
        threading.Thread(target=rate, args=pair)
        for pair in ((labelling, "anna"), (labelling, "ben"), (second, "anna"), (second, "ben"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(labelling)) == 4 * 90
    assert len(labelling.ratings().single) == 2 * 90


def test_a_file_without_a_last_line_break_is_continued(prepared: Prepare) -> None:
    labelling = prepared()
    labelling.record(rating(labelling))
    labelling.output.write_text(labelling.output.read_text("utf-8").rstrip(), encoding="utf-8")
    labelling.record(rating(labelling, 1))
    assert len(lines(labelling)) == 2


@pytest.mark.parametrize("kept", [0.5, 0.99])
def test_half_of_a_rating_at_the_end_of_the_file_is_named(prepared: Prepare, kept: float) -> None:
    """A killed process may leave it."""
    labelling = prepared()
    labelling.record(rating(labelling))
    line = labelling.output.read_text("utf-8")
    half = line[: int(kept * (len(line) - 2))]
    labelling.output.write_text(line + half, encoding="utf-8")
    with pytest.raises(DataError, match=r"ratings.jsonl:2: .*not saved completely"):
        labelling.ratings()


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": "nothing"}, {"rater": "eve"}, {"criterion": "style"}, {"value": "6"}, {"value": 4}, {"value": "a"},
        {"seconds": -1}, {"seconds": float("nan")}, {"seconds": "1"}, {"comment": ["x"]}, {"comment": "x" * 10_001},
    ],
)  # fmt: skip
def test_invalid_answers_are_refused_and_not_written(
    prepared: Prepare, wrong: dict[str, Any]
) -> None:
    labelling = prepared()
    with pytest.raises(DataError):
        labelling.record(rating(labelling, **wrong))
    assert not labelling.output.exists()


def test_a_full_disk_leaves_the_file_as_it_was(
    prepared: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelling = prepared()
    labelling.record(rating(labelling))
    before = labelling.output.read_bytes()

    class Full:
        def __init__(self, file: Any) -> None:
            self.file, self.fileno = file, file.fileno

        def write(self, data: bytes) -> int:
            return int(self.file.write(data[:10]))

    from judge.commands.label import command as label

    @contextmanager
    def locked(path: Path) -> Iterator[Full]:
        with path.open("ab", buffering=0) as file:
            yield Full(file)

    monkeypatch.setattr(label, "locked", locked)
    with pytest.raises(StorageError, match="free some space"):
        labelling.record(rating(labelling, 1))
    assert labelling.output.read_bytes() == before


def test_a_file_about_other_texts_is_refused(prepared: Prepare) -> None:
    labelling = prepared()
    labelling.output.write_text(
        '{"item": "other", "system": "zeta-large", "rater": "anna", "criterion": "fit", "value": 3}\n',
        encoding="utf-8",
    )
    with pytest.raises(DataError, match=r"ratings.jsonl:1: .*'other'.* --output"):
        labelling.ratings()


def test_a_filter_does_not_make_ratings_foreign(prepared: Prepare) -> None:
    everything = prepared()
    for place in range(20):
        everything.record(rating(everything, place))
    some = prepared(where={"system": ("zeta-large",)})
    assert len(some.units) == 30
    assert {unit for _, unit, _, _ in some.done()} < set(some.units)
    assert len(some.ratings().single) >= 20


# Pairs


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """One item of two systems, whose first answers differ."""
    rows = []
    for system, first_answer in (("a", "See the opera."), ("b", "Walk.")):
        messages = [
            {"role": "user", "content": "Plan a day."},
            {"role": "assistant", "content": first_answer},
            {"role": "user", "content": "And if it rains?"},
            {"role": "assistant", "content": f"Answer of {system}."},
        ]
        rows.append({"item": "trip", "system": system, "messages": messages})
    return write_jsonl(tmp_path / "chats.jsonl", rows)


def test_raters_read_the_messages_before_an_answer(prepared: Prepare, chats: Path) -> None:
    units = prepared("helpful: Does it help?", data=chats).units.values()
    (of_a,) = [unit for unit in units if unit.texts == ("Answer of a.",)]
    assert of_a.around == (
        ("User", "Plan a day."),
        ("Assistant", "See the opera."),
        ("User", "And if it rains?"),
    )


def test_raters_of_a_pair_read_both_conversations(prepared: Prepare, chats: Path) -> None:
    (pair,) = prepared("overall", data=chats, pairwise=True).units.values()
    assert sorted(pair.texts) == [
        "User: Plan a day.\n\nAssistant: See the opera.\n\nUser: And if it rains?\n\n"
        "Assistant: Answer of a.",
        "User: Plan a day.\n\nAssistant: Walk.\n\nUser: And if it rains?\n\n"
        "Assistant: Answer of b.",
    ]


def test_a_pair_is_written_in_the_same_order_however_shown(prepared: Prepare) -> None:
    labelling = prepared("relevance", pairwise=True)
    assert (
        len(labelling.units) == 3 * 30 - 2
    )  # item 7: one pair has equal texts, and two pairs have the same texts
    unit = next(unit for unit in labelling.units.values() if len(unit.systems) == 1)
    for rater, value in (("anna", "a"), ("ben", "tie")):
        labelling.record(
            {"text": unit.id, "rater": rater, "criterion": "relevance", "value": value}
        )
    first, second = labelling.ratings().pairs
    assert (first.first, first.second) == tuple(sorted(unit.systems[0]))
    winner = first.first if first.value == "first" else first.second
    texts = {(s.item, s.system): s.output for s in load(labelling.output.parent / "data.jsonl")}
    assert texts[unit.item, winner] == unit.texts[0]
    assert second.value == "tie"
    assert prepared("relevance", pairwise=True).done() == {
        ("anna", unit.id, "relevance", False): ("a", ""),
        ("ben", unit.id, "relevance", False): ("tie", ""),
    }


def test_the_two_sides_of_pairs_are_mixed_and_say_nothing_about_systems(prepared: Prepare) -> None:
    labelling = prepared(pairwise=True, repeat=0.2)
    tasks = labelling.tasks("anna")
    flips = {task.unit.id: task.flip for task in tasks if not task.repeat}
    assert 20 < sum(flips.values()) < 68
    assert all(task.flip is not flips[task.unit.id] for task in tasks if task.repeat)
    one_pair = [
        u.systems[0]
        for u in labelling.units.values()
        if {*u.systems[0]} == {"zeta-large", "alpha-mini"}
    ]
    assert 5 < one_pair.count(("zeta-large", "alpha-mini")) < 25


def test_pairs_need_two_different_texts(prepared: Prepare) -> None:
    with pytest.raises(ConfigError, match="nothing to compare"):
        prepared(pairwise=True, where={"system": ("zeta-large",)})


# Instructions for raters


def test_raters_see_the_instructions_of_the_judge(prepared: Prepare) -> None:
    labelling = prepared(
        [
            "relevance",
            "fluency_5",
            {"name": "ok", "question": "Fine?", "levels": {1: "No.", 5: "Yes."}},
        ]
    )
    relevance, fluency, ok = labelling.instructions
    assert relevance[0].startswith(
        "Relevance is about the choice of content: does the text tell what matters most in"
    )
    assert "1: The main point is missing, or most of the text is padding." in relevance
    assert (
        "5: There are no mistakes, or next to none; the text reads like the work of a careful writer."
        in fluency
    )
    assert ok == ("Fine?", "1: No.", "5: Yes.")
    ((instructions,),) = (
        [lines[:2] for lines in prepared("relevance", pairwise=True).instructions],
    )
    assert instructions[0] == "Which text is better?"
    assert "which text tells more" in instructions[1]
    assert not any(
        "A or B" in line or '"A"' in line
        for line in prepared("relevance", pairwise=True).instructions[0]
    )


def test_a_template_without_a_mark_is_described(prepared: Prepare, tmp_path: Path) -> None:
    (tmp_path / "own.jinja").write_text(
        "---\ndescription: Is it fine?\nscale: [1, 5]\n---\n{{ output }}\nRate it.\n"
    )
    assert prepared(str(tmp_path / "own.jinja")).instructions == (("Is it fine?",),)


def test_page_shows_the_fields_that_criteria_read(prepared: Prepare, tmp_path: Path) -> None:
    data = tmp_path / "more.jsonl"
    data.write_text(
        '{"item": "a", "output": "x", "source": "s", "references": ["r", "q"], "my_tone": "warm"}\n'
    )
    criterion = {"name": "ok", "question": "Fine?", "show": ["references", "my_tone"]}
    (unit,) = prepared([criterion], data=data).units.values()
    assert unit.around == (
        ("Source", "s"),
        ("My tone", "warm"),
        ("References", "r"),
        ("References", "q"),
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criteria": "none"}, "--criteria none: people rate"),
        ({"criteria": ["fit: A?", "fit: B?"]}, "--criteria"),
        (
            {"criteria": [{"name": "list", "questions": ["Is it?"]}]},
            "question for each answer",
        ),
        ({"repeat": 1.5}, "--repeat"),
        ({"items": 31}, "only 30 items"),
        ({"items": 0}, "1 item or more"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    prepared: Prepare, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((ConfigError, CriterionError), match=message):
        prepared(**options)


# The server


@contextmanager
def serving(labelling: Labelling) -> Iterator[LabelServer]:
    server = LabelServer(labelling)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ask(
    server: LabelServer, path: str, body: Any = None, **headers: str
) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    content = body if body is None or isinstance(body, str) else json.dumps(body)
    more = {"Content-Type": "application/json"} if body is not None else {}
    connection.request("GET" if body is None else "POST", path, content, more | headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, dict(answer.getheaders())


def test_only_the_token_and_this_host_are_answered(prepared: Prepare) -> None:
    labelling = prepared()
    with serving(labelling) as server:
        token, port = server.token_of("anna"), server.server_port
        assert len(token) >= 20
        assert server.server_address[0] == "127.0.0.1"
        assert ask(server, f"/{token}/")[0] == 200
        assert ask(server, f"/{token}", Host=f"localhost:{port}")[0] == 200
        for path in (
            "/",
            "",
            "/x/",
            f"/{token}x/",
            f"/{token[:-1]}/",
            f"/{server.token}/",
            "/favicon.ico",
        ):
            assert ask(server, path or "/?rater=anna")[0] == 403
        for host in (
            "evil.example",
            f"evil.example:{port}",
            "127.0.0.1",
            f"127.0.0.1:{port + 1}",
            "",
        ):
            assert ask(server, f"/{token}/", Host=host)[0] == 403
            assert ask(server, f"/{token}/rate", rating(labelling), Host=host)[0] == 403
        assert ask(server, "/x/rate", rating(labelling))[0] == 403
        assert ask(server, f"/{token}/other")[0] == 404
        assert (
            ask(server, f"/{token}/rate", rating(labelling), **{"Content-Type": "text/plain"})[0]
            == 404
        )
        assert ask(server, f"/{token}/rate", "{")[0] == 400
        assert ask(server, f"/{token}/rate", "[1]")[0] == 400
        status, message = ask(server, f"/{token}/rate", rating(labelling, value="9"))[:2]
        assert status == 400
        assert has_line(message, "fit: '9'", "'1', '2', '3', '4', '5'")
        assert ask(server, f"/{token}/rate", "[" * 50_000)[0] == 400
        assert ask(server, f"/{token}/rate", "x" * 100_001)[0] == 413
        assert not labelling.output.exists()
        assert ask(server, f"/{token}/rate", rating(labelling))[0] == 200
    assert len(lines(labelling)) == 1
    with LabelServer(labelling) as other:
        assert other.token_of("anna") != token


def test_the_page_has_the_same_port_again_unless_it_is_in_use(
    prepared: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelling = prepared()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        monkeypatch.setattr("judge.commands.label.server._PORT", port)
        with LabelServer(labelling) as server:
            assert server.server_port != port
            assert f":{server.server_port}/" in server.url("anna")
    for _ in range(2):
        with LabelServer(labelling) as server:
            assert server.server_port == port


def test_a_raters_address_reads_and_writes_in_no_other_name(prepared: Prepare) -> None:
    labelling = prepared()
    assert set(labelling.raters) >= {"anna", "ben"}
    labelling.record(rating(labelling, 0, comment="a secret of anna"))
    with serving(labelling) as server:
        tokens = {name: server.token_of(name) for name in labelling.raters}
        assert len(set(tokens.values())) == len(tokens)
        for name, token in tokens.items():
            shown = ask(server, f"/{token}/?rater=anna")[1]
            assert content_of(shown)["rater"] == name
            assert ("a secret of anna" in shown) == (name == "anna")
            for other in tokens:
                expected = 200 if other == name else 403
                assert (
                    ask(server, f"/{token}/rate", rating(labelling, 1) | {"rater": other})[0]
                    == expected
                )
    assert [line["rater"] for line in lines(labelling)[1:]] == list(tokens)


def test_every_rater_sees_how_far_all_are_but_no_rating(prepared: Prepare) -> None:
    labelling = prepared(["fit: Does it fit?", "tone: Is it kind?"])
    total = 2 * len(labelling.tasks("anna"))
    for place in range(3):
        labelling.record(rating(labelling, place))
    labelling.record(rating(labelling, 2, value=None))
    labelling.record(rating(labelling, 0, rater="ben"))
    expected = {"anna": [2, total], "ben": [1, total]}
    with serving(labelling) as server:
        for name in labelling.raters:
            status, text, headers = ask(server, f"/{server.token_of(name)}/progress")
            assert (status, json.loads(text)) == (200, expected)
            assert headers["Content-Type"].startswith("application/json")
        assert content_of(ask(server, f"/{server.token_of('ben')}/")[1])["progress"] == expected
        assert ask(server, "/x/progress")[0] == 403


def test_a_folder_that_cannot_be_written_is_an_error_before_the_first_rating(
    prepared: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelling = prepared()
    labelling.check_output()
    assert not labelling.output.exists()
    labelling.record(rating(labelling))
    before = labelling.output.read_bytes()
    labelling.check_output()
    assert labelling.output.read_bytes() == before
    (labelling.output.parent / "file").write_text("")
    for output in (
        labelling.output.parent / "none" / "r.jsonl",
        labelling.output.parent / "file" / "r.jsonl",
    ):
        with pytest.raises(StorageError, match=r"cannot write .*r\.jsonl"):
            replace(labelling, output=output).check_output()


def test_answers_do_not_reveal_system_or_item(prepared: Prepare) -> None:
    for pairwise in (False, True):
        labelling = prepared("relevance", pairwise=pairwise)
        for place in range(5):
            labelling.record(rating(labelling, place, value="a" if pairwise else "4", comment="hm"))
        with serving(labelling) as server:
            anna, ben = map(server.token_of, ("anna", "ben"))
            answers = [
                ask(server, f"/{path}") for path in (server.token, anna, ben, f"{anna}/other")
            ]
            answers.append(ask(server, f"/{anna}/rate", {"text": "wrong"}))
        everything = str(answers) + page(labelling, None, served=False)
        assert "Text 3 of kind 1." in everything
        assert not [name for name in (*SYSTEMS, "i17") if name in everything]
        assert answers[1][1].count('"hm"') == 5
        assert '"hm"' not in answers[2][1]
        assert "Text 3" not in answers[0][1]  # before the server knows the rater
        labelling.output.unlink()


def test_equal_places_in_the_page_say_nothing_about_systems(prepared: Prepare) -> None:
    content = content_of(page(prepared(), None, served=False))
    kinds = [texts[1][-2] for texts in content["units"].values()]
    assert list(content["units"]) == sorted(content["units"])
    assert len({tuple(kinds[k : k + 3]) for k in range(0, 87, 3)}) > 5


def content_of(html: str) -> Any:
    return json.loads(html.partition('id="content">')[2].partition("</script>")[0])


def test_texts_cannot_leave_the_page_s_data(prepared: Prepare, tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script><!-- ]]> \u202e \u2028 &amp; '\" {{ 7 }}"
    data = tmp_path / "hostile.jsonl"
    data.write_text(
        json.dumps({"item": hostile, "system": hostile, "output": hostile, "source": hostile})
        + "\n"
    )
    html = page(prepared(f"fit: Is it {hostile}", raters=("<b>",), data=data), None, served=False)
    assert html.count("<script") == html.count("</script>") == 2
    assert "<b>" not in html
    (texts,) = content_of(html)["units"].values()
    assert texts[1] == hostile.replace("\u202e", "\\u202e").replace("\u2028", "\\u2028")


# The downloaded file of a page without a server


def saved(labelling: Labelling, path: Path, *rows: dict[str, Any]) -> Path:
    write_jsonl(path, rows)
    return path


def test_a_saved_file_is_added_once(prepared: Prepare, tmp_path: Path) -> None:
    labelling = prepared(raters=())
    rows = [rating(labelling, place, repeat=False, comment="") for place in range(3)]
    rows.append(rating(labelling, 0, repeat=True, value="2"))
    rows.append(rating(labelling, 5, value=None))  # undone, and never added
    path = saved(labelling, tmp_path / "saved.jsonl", *rows)
    assert labelling.import_file(path) == Imported(4, 1)
    assert labelling.import_file(path) == Imported(0, 5)
    assert [(r.value, r.repeat) for r in labelling.ratings().single] == [(4, False)] * 3 + [
        (2, True)
    ]


def test_a_saved_file_with_a_bad_line_adds_no_rating(prepared: Prepare, tmp_path: Path) -> None:
    labelling = prepared()
    path = saved(
        labelling, tmp_path / "saved.jsonl", rating(labelling), rating(labelling, 1, text="other")
    )
    with pytest.raises(DataError, match=r"saved.jsonl:2: no such text"):
        labelling.import_file(path)
    saved(labelling, path, rating(labelling, value="9"))
    with pytest.raises(
        DataError,
        match=r"saved.jsonl:1: fit: '9'",
    ):
        labelling.import_file(path)
    assert not labelling.output.exists()


def test_a_file_that_no_page_saved_is_called_that(
    prepared: Prepare, data: Path, tmp_path: Path
) -> None:
    labelling = prepared()
    labelling.record(rating(labelling))
    for path in (data, labelling.output):
        with pytest.raises(DataError, match=f"{path.name}:1: not a rating"):
            labelling.import_file(path)
    with pytest.raises(DataError, match=r"saved\.jsonl: no ratings"):
        labelling.import_file(saved(labelling, tmp_path / "saved.jsonl"))


# The plan


@pytest.mark.parametrize(("sd", "half", "items"), [(1.0, 0.4, 27), (0.5, 0.1, 99), (2.0, 0.5, 64)])
def test_items_for_a_mean_are_the_fewest_with_that_interval(
    sd: float, half: float, items: int
) -> None:
    assert items_for_mean(sd, half) == items
    widths = [stats.t.ppf(0.975, n - 1) * sd / n**0.5 for n in (items, items - 1)]
    assert widths[0] <= half < widths[1]


@pytest.mark.slow
def test_items_for_a_correlation_agree_with_simulated_ones() -> None:
    rng = np.random.default_rng(5)
    n = items_for_correlation(4, 0.1)
    means = [
        np.mean(
            [stats.spearmanr(rng.permutation(4), rng.permutation(4)).statistic for _ in range(n)]
        )
        for _ in range(25)
    ]
    assert 1.96 * np.std(means) == pytest.approx(0.1, rel=0.3)
    n = items_for_correlation(1, 0.1)
    over = [stats.spearmanr(rng.random(n), rng.random(n)).statistic for _ in range(400)]
    assert 1.96 * np.std(over) == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_texts_for_agreement_agree_with_simulated_ones(rho: float) -> None:
    rng = np.random.default_rng(7)
    n = texts_for_agreement(rho, 0.1)
    alphas = []
    for _ in range(1500):
        votes = sqrt(rho) * rng.normal(size=n) + sqrt(1 - rho) * rng.normal(size=(2, n))
        alphas.append(1 - np.mean((votes[0] - votes[1]) ** 2) / 2 / votes.var(ddof=1))
    assert 1.96 * np.std(alphas) == pytest.approx(0.1, rel=0.1)


def test_the_plan_uses_existing_ratings(
    prepared: Prepare, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelling = prepared(repeat=0)
    monkeypatch.chdir(data.parent)
    words = ["label", "data.jsonl", "--criteria", RELEVANT, "--plan"]
    before = CliRunner().invoke(app, words)
    assert before.exit_code == 0
    assert has_line(before.output, "98 ratings", "30 items, 89 texts", "9 shown twice")
    assert "(SD 1.41)" in before.output
    for rater in ("anna", "ben"):
        for place in range(89):
            unit = labelling.tasks(rater)[place].unit
            value = str(3 + (int(unit.item[1:]) % 2) + (rater == "ben" and unit.item.endswith("1")))
            labelling.record(rating(labelling, place, rater, value=value))
    after = CliRunner().invoke(app, words).output
    assert has_line(after, "90 texts rated so far")
    assert "assuming alpha 0." in after
    assert "SD 0." in after
    assert CliRunner().invoke(app, [*words, "--precision", "2"]).exit_code != 0


# The command


def test_label_refuses_bad_options(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data.parent)
    for words, message in (
        ([], "no raters"),
        (["--items", "31"], "only 30 items"),  # before the raters
        (["--raters", "anna,anna"], "a name of their own"),
        (["--raters", "anna", "--output", "data.jsonl"], "this is the data"),
        (["--raters", "anna", "--output", "r.csv"], "ending in .jsonl"),
        (["--raters", "anna", "--file", "data.jsonl"], "--file"),
    ):
        with pytest.raises(JudgeError, match=message):
            CliRunner().invoke(
                app, ["label", "data.jsonl", "--criteria", RELEVANT, *words], catch_exceptions=False
            )


@pytest.mark.parametrize("form", [[], ["--pairwise"]], ids=["texts", "pairs"])
def test_only_summaries_have_default_criteria(
    form: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["label", "data.jsonl", "--raters", "anna", "--plan", *form]

    def label(source: str, output: str) -> Any:
        rows = [
            {"item": "a", "system": system, "source": source, "output": f"{system}: {output}"}
            for system in "xy"
        ]
        write_jsonl("data.jsonl", rows)
        return CliRunner().invoke(app, words, catch_exceptions=False)

    assert label("The council will mend the bridge. " * 20, "They mend it.").exit_code == 0
    with pytest.raises(ConfigError, match=r"no criteria: .*\n  --criteria "):
        label("Where is my parcel?", "Sorry, it comes soon.")


def test_a_page_is_written_and_its_ratings_imported(
    prepared: Prepare, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    words = ["label", "data.jsonl", "--criteria", RELEVANT]
    written = CliRunner().invoke(app, [*words, "--raters", "anna,ben", "--file", "page.html"])
    assert written.exit_code == 0
    assert "page.html" in written.output
    assert has_line(written.output, "judge label data.jsonl", f"'{RELEVANT}' --import FILE")
    assert len(content_of(Path("page.html").read_text("utf-8"))["units"]) == 89
    saved(labelling := prepared(), Path("saved.jsonl"), rating(labelling), rating(labelling, 1))
    imported = CliRunner().invoke(app, [*words, "--import", "saved.jsonl"])
    assert "2 ratings added to ratings.jsonl" in imported.output
    assert has_line(imported.output, "2 ratings", "ratings.jsonl", "anna 2")
    assert "--ratings ratings.jsonl" in imported.output
    assert len(read_ratings("ratings.jsonl").single) == 2


def test_raters_of_answers_see_the_request_and_each_passage(
    prepared: Prepare, tmp_path: Path
) -> None:
    row = {"question": "When?", "contexts": ["It left on Monday.", "It takes four days."]}
    path = tmp_path / "answers.jsonl"
    write_jsonl(path, [{"item": "1", "system": "a", "output": "On Friday.", **row}])
    labelling = prepared(["grounded", "complete"], data=path)
    (unit,) = labelling.units.values()
    assert sorted(unit.around) == [
        ("Contexts", "It left on Monday."),
        ("Contexts", "It takes four days."),
        ("Question", "When?"),
    ]
