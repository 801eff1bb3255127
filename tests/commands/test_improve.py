"""judge criteria improve: revisions are chosen on one part of the ratings and tested on the rest.

Oracles: judges with a known fault and remedy, judges with random scores, and files that load again.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Environment, meta

import judge
from judge.commands.improve.command import plan_improvement, run_improvement
from judge.commands.improve.record import Improvement, choose_wording, measure_gain
from judge.commands.improve.revisions import (
    Case,
    Rejected,
    Revision,
    read_wording,
    revised,
    writing_prompts,
)
from judge.config import load_config
from judge.core.errors import BudgetReached, ConfigError, CriterionError, DataError
from judge.core.records import Criterion, Request, Sample, Scale
from judge.core.signature import Signature
from judge.criteria import load
from judge.data import ledger
from judge.providers.scripted import Reply, ScriptedProvider
from judge.stats.rated_columns import RatedColumn
from tests.factories import has_line

REMEDY = "Does the reply help? Ignore its length."
WORDS = [
    "parcel",
    "friday",
    "refund",
    "label",
    "monday",
    "order",
    "street",
    "colour",
    "letter",
    "box",
]


def texts(items: int = 24, systems: int = 3, seed: int = 0) -> list[Sample]:
    """Return replies of random length with 1 to 5 words `good`. People's rating is that number."""
    r = random.Random(seed)
    rows = []
    for item in range(items):
        for system, good in enumerate(r.sample(range(1, 6), systems)):
            output = " ".join(
                [f"n{item}.{system}", *["good"] * good, *r.choices(WORDS, k=6 * r.randint(0, 5))]
            )
            rows.append(Sample(f"i{item}", f"s{system}", output, human={"helpful": float(good)}))
    return rows


def judged_output(request: Request) -> str:
    (*_, output) = re.findall(
        r"<output \w+>\n(.*?)\n</output", request.messages[-1]["content"], re.DOTALL
    )
    return str(output)


def judge_of_length(request: Request) -> int:
    """Reward length unless the question forbids it."""
    words = judged_output(request).split()
    return (
        words.count("good")
        if "Ignore its length" in request.messages[-1]["content"]
        else min(5, 1 + len(words) // 8)
    )


def writer(*replies: Any) -> ScriptedProvider:
    """Answer the requests for revisions with the replies in turn."""

    def write(request: Request) -> Reply:
        match = re.search(r"This is revision (\d+) of", request.messages[0]["content"])
        assert match
        reply = replies[(int(match[1]) - 1) % len(replies)]
        return reply if isinstance(reply, str) else json.dumps(reply)

    return ScriptedProvider(write, model="writer")


GOOD = {
    "question": REMEDY,
    "levels": {"1": "It helps nobody.", "5": "It helps."},
    "reason": "Length moves the judge.",
}
IDLE = {"question": "Is the reply of any use?", "reason": "Plainer."}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "helpful.yaml"
    path.write_text(
        "# ours\nquestion: Does the reply help?  # really\nscale: [1, 5]\nweight: 2\n",
        encoding="utf-8",
    )
    return path


def improve(
    entry: str | Path,
    data: Iterable[Sample],
    model: Callable[[Request], Reply] | ScriptedProvider = judge_of_length,
    writes: ScriptedProvider | None = None,
    out: Path | None = None,
    **options: Any,
) -> Improvement:
    settings = {
        name: options.pop(name) for name in ("output", "revisions", "human") if name in options
    }
    judges = [model if isinstance(model, ScriptedProvider) else ScriptedProvider(model)]
    plan = plan_improvement(
        str(entry), load_config(options={"cache": False, **options}), list(data), providers=judges,
        writer=writes or writer(IDLE, GOOD), out=out, **settings,
    )  # fmt: skip
    return asyncio.run(run_improvement(plan))


def test_a_revision_that_removes_a_bias_is_chosen_and_tested_on_unseen_ratings(
    file: Path, tmp_path: Path
) -> None:
    before, rows = file.read_text(encoding="utf-8"), texts()
    improvement = improve(file, rows, out=tmp_path / "tries")
    assert improvement.improved
    assert improvement.chosen == 2
    assert improvement.agreement is not None
    assert improvement.agreement.after.value > 0.99 > 0.6 > improvement.agreement.before.value
    assert (improvement.training, improvement.testing) == ((10, 30), (14, 42))
    assert improvement.agreement.after.n == 14
    assert "Spearman within items" in " ".join(improvement.report().split())
    assert file.read_text(encoding="utf-8") == before
    written = file.with_name("helpful.improved.yaml")
    assert improvement.written == str(written)
    new = load(str(written))
    assert (new.name, new.title, new.question, new.weight) == ("helpful", "helpful", REMEDY, 2.0)
    assert dict(new.levels) == GOOD["levels"]
    assert new.version == 2
    assert written.read_text(encoding="utf-8").startswith("# ours\n")
    # the ledger has only the training part
    unused = [sample for sample in ledger.withhold(rows, {"helpful": new.used}) if sample.human]
    assert len(unused) == 42
    assert len({sample.item for sample in unused}) == 14
    assert {path.name for path in (tmp_path / "tries").iterdir()} >= {
        "result.json",
        "revision-1.yaml",
    }
    with pytest.raises(DataError, match="14 items"):  # all other revisions were tried
        improve(written, rows)
    result = json.loads((tmp_path / "tries" / "result.json").read_bytes())
    assert result["improved"] is True
    assert [trial["number"] for trial in result["trials"]] == [1, 2, 3, 4]


def test_keeps_the_wording_without_a_significant_gain(file: Path) -> None:
    result = improve(file, texts(), writes=writer(IDLE))
    assert not result.improved
    assert result.chosen is None  # with equal scores the current wording stays
    assert "stays" in result.report()
    assert list(file.parent.iterdir()) == [file]
    rest = random.Random(1)
    noisy = improve(file, texts(), lambda request: rest.randint(1, 5), writer(IDLE, GOOD))
    assert not noisy.written
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.slow
@pytest.mark.parametrize("systems", [1, 3])
def test_judges_at_random_gain_in_at_most_5_percent(systems: int) -> None:
    r = random.Random(systems)
    gains = 0
    for seed in range(100):
        rows = [
            Sample(f"i{i}", f"s{s}", "", human={"x": float(r.randint(1, 5))})
            for i in range(20)
            for s in range(systems)
        ]
        columns = [
            RatedColumn(
                "",
                Signature(),
                {row.key: float(r.randint(1, 5)) for row in rows},
                "x",
                None,
                frozenset(),
            )
            for _ in range(5)
        ]
        level = "within-items" if systems > 1 else "all-texts"
        training, testing = rows[: 10 * systems], rows[10 * systems :]
        best = choose_wording(training, "x", columns, level).chosen
        gain = (
            measure_gain(testing, "x", (columns[0], columns[best]), level, seed) if best else None
        )
        difference = gain.difference if gain else None
        gains += bool(gain and gain.is_significant and difference and difference.value > 0)
    assert gains <= 5  # of 100; benchmarks/improving.py measures more


NO_REVISIONS: list[tuple[Any, str]] = [
    ("I cannot help with that.", "no JSON object"),
    ("", "writer, asked twice, wrote nothing"),
    ({"question": "Is {{ output }} good?"}, "template syntax"),
    ({"question": "Is it good?", "levels": {"5": "{% raw %}"}}, "template syntax"),
    ({"question": "Is it good?", "scale": [1, 10]}, "has the key 'scale'"),
    ({"question": "Is it good?", "levels": {"0": "None."}}, "0 is not on the scale"),
    ({"question": "Is it good? " * 200}, "longer than"),
    ({"question": "Is it good?", "levels": {"1": "a\nb"}}, "several lines"),
    ({"question": ["Is it good?"]}, "are texts"),
    ({"question": "Does the reply help?"}, "changes nothing"),
    ('{"question": "Is it good?"', "no JSON object"),
]


def test_an_invalid_revision_is_skipped_with_a_reason(file: Path) -> None:
    replies = [reply for reply, _ in NO_REVISIONS]
    result = improve(file, texts(), writes=writer(*replies, GOOD), revisions=12)
    for trial, (reply, reason) in zip(result.trials, NO_REVISIONS, strict=False):
        assert reason in trial.skipped, reply
    assert not result.trials[11].skipped
    second_run = improve(
        file, texts(), writes=writer(GOOD), revisions=2, output=file.with_name("b.yaml")
    )
    assert "repeats another revision" in second_run.trials[1].skipped


def test_the_report_states_that_no_revision_is_usable(file: Path) -> None:
    result = improve(file, texts(), writes=writer("I cannot help."), revisions=1)
    assert not result.usable
    assert "No usable revision" in result.report()


AGAIN = "You have answered this before"


def test_an_unusable_reply_is_requested_again_with_the_error(file: Path) -> None:
    def write(request: Request) -> Reply:
        prompt = request.messages[0]["content"]
        return json.dumps(GOOD) if AGAIN in prompt else "Sure, gladly!"

    writes = ScriptedProvider(write, model="writer")
    result = improve(file, texts(), writes=writes, revisions=1)
    assert [trial.skipped for trial in result.trials] == [""]
    first, second = (request.messages[0]["content"] for request in writes.seen)
    assert AGAIN not in first
    assert second.startswith(first)
    assert has_line(second.removeprefix(first), "no JSON object", "question, levels and reason")
    assert "Sure, gladly!" in second.removeprefix(first)


def test_a_second_unusable_reply_names_the_writer_and_is_not_final(
    file: Path, tmp_path: Path
) -> None:
    def attempt(*replies: Any) -> tuple[ScriptedProvider, Improvement]:
        writes = writer(*replies)
        writes.endpoint = "there"
        options = {"cache": tmp_path / "cache", "output": tmp_path / "better.yaml"}
        return writes, improve(file, texts(), writes=writes, revisions=1, **options)

    refusing, result = attempt("I would rather not.")
    assert len(refusing.seen) == 2
    assert has_line([result.trials[0].skipped], "writer", "twice", "'I would rather not.'")
    willing, result = attempt(GOOD)
    assert [AGAIN in request.messages[0]["content"] for request in willing.seen] == [True]
    assert not result.trials[0].skipped


def test_a_revision_drops_the_paraphrases_of_the_old_question() -> None:
    wording = read_wording("relevance", None, "en")
    text, criterion = revised(wording, Revision("Is it to the point?"), ())
    assert wording.criterion.paraphrases
    assert criterion.paraphrases == ()
    assert "Is it to the point?" in text


@pytest.mark.parametrize("language", ["ja", "ko", "zh"])
def test_the_writer_is_asked_in_the_language_of_the_criterion(language: str) -> None:
    wording = read_wording("relevance", None, language)
    case = Case(
        Sample("i", "s", "…", source="…"), "2", "4", high=False, reason="…", comments=("…",)
    )
    rejected = {number: Rejected("…", "…") for number in (1, 2, 3, 4)}
    prompts = writing_prompts(wording, [case], 4, rejected)
    assert len(set(prompts)) == 4
    for prompt in prompts:
        # A run of two English words. Marks and keys of JSON are single words.
        assert re.findall(r"[A-Za-z]{2,} [A-Za-z]{2,}", prompt) == []
        assert '"question": "Q"' in prompt


@pytest.mark.parametrize(
    ("criterion", "shown", "hidden"),
    [
        ("polite", ["Where is it?"], ["Ship fast."]),
        ("grounded", ["Where is it?", "Parcels take a day.", "Ship fast."], []),
        ("relevance", ["The source."], ["Where is it?"]),
        ("kind: Is it kind?", ["The source."], ["Ship fast."]),
        ("kind.yaml", ["Ship fast.", "A good answer."], ["The source."]),
    ],
)
def test_the_writer_sees_what_the_judge_saw_beside_the_text(
    criterion: str, shown: list[str], hidden: list[str], tmp_path: Path
) -> None:
    if criterion.endswith(".yaml"):
        criterion = str(tmp_path / criterion)
        header = "question: Is it kind?\nshow: [contexts, references]\n"
        Path(criterion).write_text(header, encoding="utf-8")
    columns = {"question": "Where is it?", "contexts": ["Parcels take a day.", "Ship fast."]}
    sample = Sample(
        "i", "s", "On Friday.", source="The source.", references=("A good answer.",), extra=columns
    )
    case = Case(sample, "2", "4", high=False, reason="", comments=())
    (prompt,) = writing_prompts(read_wording(criterion, None, "en"), [case], 1)
    assert [text in prompt for text in shown] == [True] * len(shown)
    assert [text in prompt for text in hidden] == [False] * len(hidden)


@pytest.mark.parametrize("layout", ["wording.jinja", "paraphrases.jinja"])
def test_the_prompts_of_all_languages_read_the_same_variables(layout: str) -> None:
    root = Path(__file__).parents[2] / "prompts"
    environment = Environment()
    environment.filters["fenced"] = str
    read = {}
    for folder in root.iterdir():
        text = (folder / "layouts" / layout).read_text("utf-8")
        tree = environment.parse(text)
        read[folder.name] = meta.find_undeclared_variables(tree)
    assert set(read) == {"en", "ja", "ko", "zh"}
    assert all(names == read["en"] for names in read.values())
    assert {"reply", "problem"} <= read["en"]


def test_a_revision_that_copies_a_rated_text_is_skipped(file: Path) -> None:
    rows = texts()

    def copying(request: Request) -> Reply:
        prompt = request.messages[0]["content"]
        case = next(
            row.output for row in rows if len(row.output.split()) > 12 and row.output in prompt
        )
        return json.dumps({"question": f"A good reply says: {case}"})

    result = improve(file, rows, writes=ScriptedProvider(copying), revisions=1)
    assert "copies a rated text" in result.trials[0].skipped


def test_the_levels_of_a_scale_of_words_can_be_described(tmp_path: Path) -> None:
    path = tmp_path / "helpful.yaml"
    path.write_text(
        "question: Does it help?\nscale: {labels: [fail, pass], values: [0, 1]}\n", encoding="utf-8"
    )

    def judge(request: Request) -> str:
        words = judged_output(request).split()
        good = (
            words.count("good") > 2
            if "It helps." in request.messages[-1]["content"]
            else len(words) > 15
        )
        return "pass" if good else "fail"

    proposal = {
        "levels": {"pass": "It helps.", "fail": "It does not."},
        "reason": "Say what they mean.",
    }
    result = improve(path, texts(40), judge, writer(proposal), revisions=1)
    assert result.improved
    new = load(result.written)
    assert (new.question, dict(new.levels)) == (
        "Does it help?",
        {"fail": "It does not.", "pass": "It helps."},
    )


JINJA = """---
title: Helpful
scale: [1, 5]
---
{% extends "layouts/pointwise.jinja" %}
{% block source %}{% endblock %}
{% block criterion %}
Does the reply help?
{% block levels %}
1: no
5: yes
{% endblock %}
{% endblock %}
"""


@pytest.mark.parametrize(
    ("entry", "content", "written"),
    [
        ("helpful: Does the reply help?", "", "helpful.improved.yaml"),
        ("helpful.md", "Does the reply help?\n", "helpful.improved.yaml"),
        (
            "helpful.txt",
            "---\nscale: [1, 5]\nweight: 3\n---\nDoes the reply help?\n",
            "helpful.improved.yaml",
        ),
        ("helpful.jinja", JINJA, "helpful.improved.jinja"),
        ("helpful.improved.yaml", "question: Does the reply help?\n", "helpful.improved-2.yaml"),
        ("relevance", "", "relevance.improved.jinja"),
    ],
)
def test_every_kind_of_criterion_gets_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, content: str, written: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if content:
        Path(entry).write_text(content, encoding="utf-8")
    rows = [
        Sample(
            s.item,
            s.system,
            s.output,
            "What?",
            human={entry.partition(".")[0].partition(":")[0]: s.human["helpful"]},
        )
        for s in texts()
    ]
    writing_model = writer(GOOD)
    result = improve(entry, rows, writes=writing_model, revisions=1)
    assert result.improved
    assert result.written == written
    (request,) = writing_model.seen
    asks_for_steps = "follows these steps" in request.messages[0]["content"]
    assert asks_for_steps is (entry == "relevance")
    before, new = load(entry), load(written)
    assert (new.name, new.title, new.scale, new.weight) == (
        before.name,
        before.title,
        before.scale,
        before.weight,
    )
    assert dict(new.levels) == GOOD["levels"]
    if written.endswith(".jinja"):
        assert f"{{% block criterion %}}\n{REMEDY}\n{{% endblock %}}" in new.template
        assert "1: no" not in new.template
    else:
        assert new.question == REMEDY
    if content:
        assert Path(entry).read_text(encoding="utf-8") == content


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("{% block criterion %}Is {{ output }} good?{% endblock %}", "cannot replace its wording"),
        ("{% block criterion %}{# no #}Is it good?{% endblock %}", "cannot replace its wording"),
        ("{% block levels %}5: yes{% endblock %}", "cannot replace its wording"),
    ],
)
def test_refuses_a_template_without_replaceable_wording(
    tmp_path: Path, block: str, message: str
) -> None:
    path = tmp_path / "helpful.jinja"
    path.write_text(
        f'---\nscale: [1, 5]\n---\n{{% extends "layouts/pointwise.jinja" %}}\n{block}\n',
        encoding="utf-8",
    )
    with pytest.raises(CriterionError, match=message):
        improve(path, texts())


def test_refuses_to_improve_before_any_request(file: Path, tmp_path: Path) -> None:
    requests: list[Request] = []
    silent = ScriptedProvider(lambda request: requests.append(request) or "1")
    with pytest.raises(DataError, match=r"19 items .*needs 20"):
        improve(file, texts(19), silent)
    same = [replace(sample, source="one", output="same") for sample in texts(30)]
    with pytest.raises(DataError, match=r"30 items .*only 0 of the \d+"):
        improve(file, same, silent)
    with pytest.raises(DataError, match="unknown rating 'helpfull'"):
        improve(file, texts(), silent, human="helpfull")
    with pytest.raises(CriterionError, match="is a checklist"):
        improve('{"name": "helpful", "questions": ["Is it?"]}', texts(), silent)
    with pytest.raises(ConfigError, match="--revisions"):
        improve(file, texts(), silent, revisions=0)
    there = tmp_path / "there.yaml"
    there.write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="already exists"):
        improve(file, texts(), silent, output=there)
    with pytest.raises(DataError, match="19 items"):  # errors in the ratings come first
        improve(file, texts(19), silent, output=there)
    assert there.read_text(encoding="utf-8") == "mine"
    with pytest.raises(ConfigError, match="cannot be written to"):
        improve(file, texts(), silent, output=tmp_path / "nowhere" / "there.yaml")
    with pytest.raises(ConfigError, match="decision endpoint"):
        improve(file, texts(), silent, ScriptedProvider(lambda request: "1", decides=True))
    assert not requests


@pytest.mark.slow
@settings(max_examples=5)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(0, 300), min_size=60, max_size=90),
)
def test_held_out_texts_never_reach_the_writer(
    tmp_path_factory: pytest.TempPathFactory, seed: int, numbers: Sequence[int]
) -> None:
    """This also holds if a text occurs in several items."""
    rows = [
        Sample(
            f"i{place // 2}",
            f"s{place % 2}",
            f"<{number}>",
            human={"helpful": float(1 + (number + place) % 5)},
        )
        for place, number in enumerate(numbers)
    ]
    provider = ScriptedProvider(lambda request: 1 + len(judged_output(request)) % 5)
    writing_model = writer(GOOD)
    output = tmp_path_factory.mktemp("new") / "helpful.yaml"
    config = load_config(options={"cache": False, "seed": seed})
    try:
        plan = plan_improvement(
            "helpful: Does it help?",
            config,
            rows,
            providers=[provider],
            writer=writing_model,
            output=output,
        )
    except DataError:
        return  # too few different texts
    testing = {row.output for row in plan.testing}
    assert not testing & {row.output for row in plan.training}
    asyncio.run(run_improvement(plan))
    assert len(writing_model.seen) == 4
    for request in writing_model.seen:
        assert not [text for text in testing if text in request.messages[0]["content"]]


def test_the_rated_texts_in_neither_part_are_counted_with_the_reason(file: Path) -> None:
    rows = texts()
    # Each item has the text of another one, and three have equal ratings.
    rows += [replace(row, system="copy", output="The same text.") for row in rows[::3]]
    equal = [
        Sample(f"e{n // 3}", f"s{n % 3}", f"Text {n}", human={"helpful": 3.0}) for n in range(9)
    ]
    improvement = improve(
        file, [*rows, *equal], lambda request: 1 + len(request.messages[-1]["content"]) % 5
    )
    n_used = improvement.training.texts + improvement.testing.texts
    n_unused = len(rows) + len(equal) - n_used
    assert n_unused > len(equal)
    assert has_line(
        improvement.notes,
        f"{n_unused} of {len(rows) + len(equal)} rated texts",
        f"{n_unused - 9} repeat",
        "9 are in items",
        "equal ratings",
    )


def test_no_note_counts_unused_texts_if_all_are_used(file: Path) -> None:
    assert not has_line(improve(file, texts()).notes, "unused")


def test_comments_and_reasons_of_the_largest_disagreements_are_shown(
    file: Path, tmp_path: Path
) -> None:
    rows = texts()
    sheet = tmp_path / "ratings.jsonl"
    with sheet.open("w", encoding="utf-8") as lines:
        for row in rows:
            rating = {
                "item": row.item,
                "system": row.system,
                "rater": "anna",
                "criterion": "helpful",
            }
            lines.write(
                json.dumps(
                    rating | {"value": row.human["helpful"], "comment": f"says {row.output[:6]}"}
                )
                + "\n"
            )
    writing_model = writer(GOOD)
    unrated = [Sample(row.item, row.system, row.output) for row in rows]
    result = improve(
        file, unrated, lambda request: f"{judge_of_length(request)}\nbecause it is so long", writing_model, ratings=sheet,
        reply="score_then_reason",
    )  # fmt: skip
    assert result.improved
    prompt = writing_model.seen[0].messages[0]["content"]
    assert (
        prompt.count("because it is so long")
        == prompt.count("Case ")
        == prompt.count("says n")
        == 12
    )
    assert 1 <= prompt.count(": too high") < 12


def test_no_case_has_equal_scores_by_judge_and_people(file: Path) -> None:
    """Within an item, another text's score can change the rank of a text with the right score."""

    def right_but_for_the_best(request: Request) -> int:
        n_good = judged_output(request).split().count("good")
        return 1 if n_good >= 4 else n_good

    writing_model = writer(GOOD)
    improve(file, texts(), right_but_for_the_best, writing_model)
    prompt = writing_model.seen[0].messages[0]["content"]
    cases = re.findall(r"judge's score is (.+), people's is (.+): too", prompt)
    assert cases
    assert not [case for case in cases if case[0] == case[1]]


@pytest.mark.slow
def test_improve_resumes_after_the_budget_stopped_it(file: Path, tmp_path: Path) -> None:
    def run(
        name: str, **options: Any
    ) -> tuple[ScriptedProvider, ScriptedProvider, Improvement | None]:
        judge = ScriptedProvider(judge_of_length, endpoint="here")
        writing_model = writer(IDLE, GOOD)
        writing_model.endpoint = "there"
        cache = tmp_path / name
        try:
            result = improve(
                file,
                texts(),
                judge,
                writing_model,
                cache=cache,
                output=tmp_path / f"{name}.yaml",
                **options,
            )
        except BudgetReached:
            return judge, writing_model, None
        return judge, writing_model, result

    judge, only_writer, whole = run("whole")
    first, first_writer, stopped = run("parts", budget="90000tokens")
    assert stopped is None
    assert 0 < len(first.seen) < len(judge.seen)
    second, second_writer, result = run("parts")
    assert result is not None
    assert whole is not None
    assert len(first.seen) + len(second.seen) == len(judge.seen)
    assert len(first_writer.seen) + len(second_writer.seen) == len(only_writer.seen) == 4
    assert result.agreement == whole.agreement


def test_failed_judgments_do_not_count_as_a_gain(file: Path) -> None:
    """A revision gains nothing if the judge refuses the texts that it scored wrongly before."""

    def judge(request: Request) -> Reply:
        prompt, words = request.messages[-1]["content"], judged_output(request).split()
        wrong = abs(words.count("good") - min(5, 1 + len(words) // 8)) > 1
        return "no idea" if "Ignore its length" in prompt and wrong else min(5, 1 + len(words) // 8)

    result = improve(file, texts(30), judge, writer(GOOD), revisions=1, repair="off")
    assert not result.improved
    assert result.judgments[0] > 0


# In Python


def judged_by_length(prompt: str) -> int:
    words = re.findall(r"<output \w+>\n(.*?)\n</output", prompt, re.DOTALL)[-1].split()
    return words.count("good") if "Ignore its length" in prompt else min(5, 1 + len(words) // 8)


def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the data and people's ratings."""
    rows = texts()
    data = [{"item": row.item, "system": row.system, "output": row.output} for row in rows]
    ratings = [
        {"item": row.item, "system": row.system, "rater": "anna", "criterion": "helpful", "value": row.human["helpful"]}
        for row in rows
    ]  # fmt: skip
    return pd.DataFrame(data), pd.DataFrame(ratings)


@pytest.mark.parametrize(
    "criterion",
    [
        "helpful: Does the reply help?",
        {"name": "helpful", "question": "Does the reply help?"},
        load("helpful: Does the reply help?"),
        Criterion("helpful", question="Does the reply help?", scale=Scale.integers(1, 5)),
    ],
    ids=["sentence", "keys", "loaded", "made"],
)
def test_python_returns_the_better_criterion_and_writes_no_file(
    criterion: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data, ratings = frames()
    result = judge.improve(
        criterion,
        data,
        ratings=ratings,
        model=judged_by_length,
        writer=lambda prompt: json.dumps(GOOD),
        revisions=1,
    )
    assert result.criterion is not None
    assert (result.criterion.name, result.criterion.question) == ("helpful", REMEDY)
    assert result.gain is not None
    assert result.gain.value > 0.5
    assert yaml.safe_load(result.text)["question"] == REMEDY
    assert has_line(repr(result), "helpful", "revision 1 is better")
    assert list(tmp_path.iterdir()) == []
    scored = judge.evaluate(data[:3], result.criterion, model=judged_by_length, metrics=[])
    assert len(scored.table.scores) == 3


def test_python_writes_the_file_named_by_out(file: Path) -> None:
    data, ratings = frames()
    better = file.with_name("better.yaml")
    result = judge.improve(
        file,
        data,
        ratings=ratings,
        model=judged_by_length,
        writer=lambda prompt: json.dumps(GOOD),
        revisions=1,
        output=better,
    )
    assert result.written == str(better)
    assert better.read_text(encoding="utf-8") == result.text
    assert load(better).question == REMEDY


def test_python_refuses_a_criterion_without_a_file() -> None:
    with pytest.raises(CriterionError, match="into a file"):
        judge.improve(Criterion("mine", "Rate {{ output }}."), frames()[0], model=judged_by_length)
