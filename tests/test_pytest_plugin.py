"""The plugin in sessions of its own: what it loads, what the fixture finds, and that nobody is asked unasked."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from judge import ScriptedProvider
from judge.commands import test
from judge.commands.pytest_support import JudgeFixture, SuiteSession
from judge.core.errors import ConfigError
from judge.core.request_options import Judge
from judge.providers.openai import OpenAIProvider
from tests.factories import write_jsonl

pytest_plugins = ["pytester"]

REPLIES = """
- {when: [Clear.], reply: {4: 0.3, 5: 0.7}}
- {when: [Muddled.], reply: {1: 0.5, 2: 0.5}}
- {when: [Silent.], reply: I would rather not say.}
- {when: [Reasons.], reply: "4\\nIt has two."}
"""
SUITE = """\
model: scripted/replies.yaml
cache: false
cases:
  - name: clear
    criterion: coherence
    text: {source: A., output: Clear.}
    expect: {min: 4}
  - name: muddled
    criterion: coherence
    text: {source: A., output: Muddled.}
    expect: {min: 4}
"""
ASKING = "weighting: single\n" + SUITE.replace("scripted/replies.yaml", "gpt-5.4-mini")
SCORE = """
import pytest

@pytest.mark.judge(weighting="single")
def test_score(judge):
    assert judge.score("coherence", source="A.", output="Clear.") == 4
"""


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Load judge here and not in each inner session, because numpy can be loaded only once."""
    for module in ("openai", "aiohttp"):
        import_module(module)
    judge = JudgeFixture(
        SuiteSession(), {"model": ScriptedProvider(lambda _: "A"), "cache": False}, Path()
    )
    assert not judge.prefers("One.", over="Another.", criterion="overall", source="A.")


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    """A separate pytest session in a folder with scripted replies."""
    pytester.makefile(".yaml", replies=REPLIES)
    return pytester


@pytest.fixture
def server(chat_server: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server that answers 4 and records requests, at OpenAI's address."""
    monkeypatch.setenv("OPENAI_BASE_URL", chat_server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "no key")
    return chat_server


def run(folder: pytest.Pytester, *args: str, **outcomes: int) -> pytest.RunResult:
    """Run a session in this process. Check its outcomes, and that it has no warnings."""
    result = folder.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", *args)
    result.assert_outcomes(**outcomes)
    return result


def test_an_unused_plugin_imports_nothing_else(folder: pytest.Pytester) -> None:
    folder.makepyfile(
        """
        import sys

        def test_nothing(record_property):
            loaded = sorted(name for name in sys.modules if name.startswith("judge"))
            assert loaded == ["judge", "judge.core", "judge.core.version", "judge.pytest_plugin"]
        """
    )
    folder.runpytest_subprocess("-W", "error", "--strict-markers").assert_outcomes(passed=1)


def test_the_plugin_can_be_disabled(folder: pytest.Pytester) -> None:
    folder.makefile(".judge.yaml", suite=SUITE)
    folder.makepyfile(
        "def test_nothing(request):\n    assert not request.config.pluginmanager.hasplugin('judge')"
    )
    run(folder, "-p", "no:judge", passed=1)


def test_a_score_is_a_number_with_its_provenance(folder: pytest.Pytester) -> None:
    folder.makefile(
        ".jinja", clear="---\nscale: [1, 5]\npass_at: 4\n---\nIs it clear? {{ output }}"
    )
    folder.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.judge(model="scripted/replies.yaml", cache=False)

        def test_probabilities(judge):
            score = judge.score("coherence", source="A.", output="Clear.")
            assert score == pytest.approx(4.7)
            assert round(score, 1) - 0.7 == 4.0
            assert (score.low, score.high) == (score, score)
            assert score.distribution == {"4": pytest.approx(0.3), "5": pytest.approx(0.7)}
            assert (score.label, score.reason, f"{score:.3f}") == ("5", None, "4.700")
            assert f"{score}" == f"{float(score)}"
            assert score.passed is None

        def test_passing(judge):
            assert judge.score("clear.jinja", output="Clear.").passed
            assert judge.score("clear.jinja", output="Muddled.").passed is False

        @pytest.mark.judge(weighting="samples", draws=10)
        def test_draws(judge):
            from scipy.stats import sem, t

            score = judge.score("coherence", source="A.", output="Clear.")
            fives = round(10 * score.distribution["5"])
            draws = [5] * fives + [4] * (10 - fives)
            assert score == pytest.approx(sum(draws) / 10)
            assert (score.low, score.high) == pytest.approx(t.interval(0.95, 9, sum(draws) / 10, sem(draws)))

        @pytest.mark.judge(weighting="single", reply="score_then_reason")
        def test_one_reply(judge):
            score = judge.score("coherence", source="A.", output="Reasons.")
            assert (score, score.reason, score.low, score.high) == (4, "It has two.", None, None)
        """
    )
    run(folder, "--strict-markers", passed=4)


def test_the_texts_columns_reach_the_criterion(folder: pytest.Pytester) -> None:
    (folder.mkdir("deep") / "polite.jinja").write_text(
        '---\nscale: [1, 5]\n---\n{% extends "layouts/pointwise.jinja" %}\n'
        "{% block source %}{{ customer }} {{ references }}{% endblock %}{% block criterion %}Polite?{% endblock %}"
    )
    (folder.path / "deep" / "says.yaml").write_text(
        '- {when: ["Where is it?", Over there.], reply: 2}'
    )
    (folder.path / "deep" / "test_columns.py").write_text(
        "import pytest\n"
        '@pytest.mark.judge(model="scripted/says.yaml", cache=False)\n'
        "def test_columns(judge):\n"
        '    told = {"customer": "Where is it?", "references": ["Over there."]}\n'
        '    assert judge.score("polite.jinja", output="Look for it.", **told) == 2\n'
    )
    run(folder, passed=1)


KIND = """---
title: Kindness
scale: [1, 5]
---
{% extends "layouts/pointwise.jinja" %}
{% block criterion %}Is the text kind?{% endblock %}
"""


def test_a_criterion_file_with_two_endings_decides_a_preference(tmp_path: Path) -> None:
    (tmp_path / "kind.md.jinja").write_text(KIND, encoding="utf-8")
    model = ScriptedProvider(lambda request: "5" if "Thank you." in str(request) else "2")
    judge = JudgeFixture(SuiteSession(), {"model": model, "cache": False}, tmp_path)
    kinder = judge.prefers("Thank you.", over="Go away.", criterion="kind.md.jinja", source="A.")
    assert kinder
    ruder = judge.prefers("Go away.", over="Thank you.", criterion="kind.md.jinja", source="A.")
    assert not ruder
    assert "by kind.md:" in repr(ruder)


def test_a_criterion_file_with_two_endings_can_be_scored(folder: pytest.Pytester) -> None:
    (folder.path / "kind.md.jinja").write_text(KIND, encoding="utf-8")
    folder.makepyfile(SCORE.replace("coherence", "kind.md.jinja").replace("== 4", "> 4"))
    run(folder, "--judge-model", "scripted/replies.yaml", passed=1)


def test_a_failed_assertion_shows_the_provenance_of_the_score(folder: pytest.Pytester) -> None:
    folder.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.judge(model="scripted/replies.yaml", cache=False)
        def test_score(judge):
            assert judge.score("coherence", source="A.", output="Muddled.") >= 4

        @pytest.mark.judge(model="scripted/replies.yaml", cache=False, weighting="single", reply="score_then_reason")
        def test_reason(judge):
            assert judge.score("coherence", source="A.", output="Reasons.") > 4
        """
    )
    result = run(folder, failed=2)
    result.stdout.fnmatch_lines(
        [
            "E  *assert 1.50 >= 4 (coherence: 1 50.0%, 2 50.0%)",
            "E  *coherence, by logprobs: 1 50.0%, 2 50.0%",
            "FAILED *::test_score - assert 1.50 >= 4 (coherence: *",
            "FAILED *::test_reason - assert 4.00 > 4 (coherence: It has two.)",
        ]
    )


def test_a_failed_judgment_is_not_a_number(folder: pytest.Pytester) -> None:
    folder.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.judge(model="scripted/replies.yaml", cache=False)

        def test_score(judge):
            assert judge.score("coherence", source="A.", output="Silent.") != 4

        def test_preference(judge):
            assert not judge.prefers("Silent.", over="Clear.", criterion="coherence", source="A.")

        def test_no_reply(judge):
            assert judge.score("coherence", source="A.", output="Nobody wrote a reply to this.") != 4
        """
    )
    result = run(folder, failed=3)
    result.stdout.fnmatch_lines(
        ["E *JudgmentFailed: coherence: no score.*unreadable*", "E *reply: I would rather not say."]
    )
    result.stdout.no_fnmatch_line("*asserting.py*")


def test_a_stored_reply_without_a_score_fails_until_it_is_retried(folder: pytest.Pytester) -> None:
    folder.makepyfile(
        """
        import judge as package
        import pytest

        replies = iter(["no idea", "4"])
        pytestmark = pytest.mark.judge(
            model=package.ScriptedProvider(lambda _: next(replies), endpoint="x"),
            cache="replies", weighting="single", repair="off",
        )

        def test_first(judge):
            judge.score("coherence", source="A.", output="Clear.")

        def test_again(judge):
            judge.score("coherence", source="A.", output="Clear.")

        @pytest.mark.judge(retry_failed=True)
        def test_retried(judge):
            assert judge.score("coherence", source="A.", output="Clear.") == 4
        """
    )
    result = run(folder, failed=2, passed=1)
    result.stdout.fnmatch_lines(
        ["E *The reply is stored: @pytest.mark.judge(retry_failed=True) asks for a new one."]
    )


def test_mistakes_are_reported_at_the_line_of_the_test(folder: pytest.Pytester) -> None:
    folder.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.judge(model="scripted/replies.yaml", cache=False)

        def test_criterion(judge):
            judge.score("coherance", output="Clear.")

        def test_columns(judge):
            judge.score("coherence", source="A.", output="Clear.", system="bart")

        @pytest.mark.judge(wieghting="single")
        def test_option(judge):
            judge.score("coherence", source="A.", output="Clear.")

        @pytest.mark.judge(out="runs")
        def test_folder(judge):
            pass

        @pytest.mark.judge(system="Be kind.")
        def test_system_message(judge):
            pass

        @pytest.mark.judge("gpt-5.4-mini")
        def test_position(judge):
            pass

        def test_compared(judge):
            judge.score("overall", source="A.", output="Clear.")
        """
    )
    result = run(folder, failed=3, errors=4)
    result.stdout.fnmatch_lines_random(
        [
            "E *did you mean 'coherence'?*", "E *system: a single text has no such column*",
            "@pytest.mark.judge: unknown key 'wieghting'; did you mean 'weighting'?*",
            "*@pytest.mark.judge: system: *system_message='TEXT' sends*",
            "*unknown key 'out'*", "*takes keywords, such as model='gpt-5.4-mini'", "E *compares two texts*",
        ]
    )  # fmt: skip
    result.stdout.no_fnmatch_line("*asserting.py*")
    result.stdout.no_fnmatch_line("During handling*")


def test_a_preference_has_to_be_shown(folder: pytest.Pytester) -> None:
    folder.makepyfile(
        """
        import judge as package
        import pytest

        def said(scores):
            def script(request):
                prompt = request.messages[-1]["content"]
                return next(reply for text, reply in scores.items() if text in prompt)
            return package.ScriptedProvider(script)

        def first_longer(request):
            prompt = request.messages[-1]["content"]
            return "A" if prompt.index("Long and winding.") < prompt.index("Short.") else "B"

        @pytest.mark.judge(model=said({"Good.": {4: 0.2, 5: 0.8}, "Bad.": {1: 0.5, 2: 0.5}}), weighting="samples")
        def test_difference(judge):
            better = judge.prefers("Good.", over="Bad.", criterion="coherence", source="A.")
            assert better
            assert "preferred by coherence: +3" in repr(better)
            assert judge.prefers("Good.", over="Bad.", criterion="coherence", source="A.", margin=2)
            assert not judge.prefers("Good.", over="Bad.", criterion="coherence", source="A.", margin=4)
            worse = judge.prefers("Bad.", over="Good.", criterion="coherence", source="A.")
            assert not worse
            assert "not preferred by coherence: −3" in repr(worse)

        @pytest.mark.judge(model=said({"One.": {4: 0.5, 5: 0.5}, "Two.": {4: 0.6, 5: 0.4}}), weighting="samples")
        def test_a_difference_that_is_not_significant_is_not_preferred(judge):
            for one, other in (("One.", "Two."), ("Two.", "One.")):
                preference = judge.prefers(one, over=other, criterion="coherence", source="A.")
                assert not preference
                assert "no significant difference" in repr(preference)

        @pytest.mark.judge(model=package.ScriptedProvider(first_longer))
        def test_both_orders(judge):
            assert judge.prefers("Long and winding.", over="Short.", criterion="overall", source="A.")
            assert not judge.prefers("Short.", over="Long and winding.", criterion="overall", source="A.")

        @pytest.mark.judge(model=package.ScriptedProvider(lambda request: "A"))
        def test_the_first_one_shown_is_not_the_better_one(judge):
            assert not judge.prefers("Long and winding.", over="Short.", criterion="overall", source="A.")
            assert not judge.prefers("Short.", over="Long and winding.", criterion="overall", source="A.")

        @pytest.mark.judge(model=package.ScriptedProvider(first_longer))
        def test_explained(judge):
            assert judge.prefers("Short.", over="Long and winding.", criterion="overall", source="A.")
        """
    )
    result = run(folder, passed=4, failed=1)
    result.stdout.fnmatch_lines(["E *assert <not preferred by overall: 0%*"])


@pytest.mark.parametrize("weighting", ["logprobs", "samples", "single"])
def test_a_preference_is_decided_as_a_case_of_a_suite(
    folder: pytest.Pytester, weighting: str
) -> None:
    """For a certain score or a single reply, the difference decides: 0.00 is a tie."""
    folder.makefile(
        ".yaml", replies="- {when: [Good.], reply: {4: 0.4, 5: 0.6}}\n- reply: {4: 0.5, 5: 0.5}"
    )
    outputs = {"a": "Good.", "b": "As good.", "c": "Fair."}
    rows = [
        {"item": 1, "source": "A.", "system": name, "output": output}
        for name, output in outputs.items()
    ]
    write_jsonl(folder.path / "texts.jsonl", rows)
    margins = [(*pair, margin) for pair in ("ab", "ba", "bc") for margin in (0, 0.05, 2)]
    cases = [
        {"name": f"{case}", "better": case[0], "worse": case[1], "margin": case[2]}
        for case in margins
    ]
    options = {"model": "scripted/replies.yaml", "cache": False, "weighting": weighting}
    suite = {**options, "data": "texts.jsonl", "criteria": ["coherence"], "cases": cases}
    (folder.path / "suite.judge.yaml").write_text(json.dumps(suite))
    (outcome,) = test.test(folder.path / "suite.judge.yaml")
    asking = JudgeFixture(SuiteSession(), options, folder.path)
    for (one, other, margin), verdict in zip(
        margins, outcome.verdicts[: len(margins)], strict=True
    ):
        preference = asking.prefers(
            outputs[one], outputs[other], criterion="coherence", source="A.", margin=margin
        )
        decision = preference.verdict
        assert (bool(preference), decision.found, decision.reason) == (
            verdict.met,
            verdict.found,
            verdict.reason,
        )
        assert bool(preference) == decision.reason.startswith(("better", "ahead"))
        assert not (preference and decision.found.startswith(("0.00", "−")))


@pytest.mark.parametrize("margin", [-100, float("-inf"), float("nan"), "1", True])
def test_a_margin_that_would_prefer_anything_is_refused(tmp_path: Path, margin: Any) -> None:
    with pytest.raises(ConfigError, match="margin is a number"):
        JudgeFixture(SuiteSession(), {}, tmp_path).prefers(
            "A.", over="B.", criterion="coherence", margin=margin
        )


@pytest.mark.parametrize(
    "where",
    ["", "judge_model = gpt-5.4-mini", "addopts = --judge-model=gpt-5.4-mini", "environment"],
)
def test_sends_no_request_unless_a_model_is_given(
    folder: pytest.Pytester, server: Any, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked = 'import pytest\npytestmark = pytest.mark.judge(model="gpt-5.4-mini")\n'
    folder.makepyfile(test_plain=SCORE, test_marked=marked + SCORE)
    folder.makefile(".judge.yaml", suite=ASKING)
    folder.makeini(f"[pytest]\n{where if '=' in where else ''}")
    if where == "environment":
        monkeypatch.setenv("PYTEST_ADDOPTS", "--judge-model gpt-5.4-mini")
    result = run(folder, "-rs", skipped=5)
    result.stdout.fnmatch_lines_random(
        [
            "5 tests skipped without a judge. Type one of these:",
            "*--judge-replay CALLS.jsonl *",
            "SKIPPED *test_marked.py:*not judged: *this test needs gpt-5.4-mini",
            "SKIPPED *suite.judge.yaml:*not judged: *this test needs gpt-5.4-mini",
        ]
    )  # fmt: skip
    assert not server.bodies


def test_junit_xml_keeps_the_whole_name_of_a_case(folder: pytest.Pytester) -> None:
    name = """a::b's "last" [x] case"""
    folder.makefile(".judge.yaml", suite=SUITE.replace("name: clear", f"name: {json.dumps(name)}"))
    run(folder, "--junit-xml=junit.xml", "-k", "last", passed=1, deselected=2)
    (case,) = ElementTree.parse(folder.path / "junit.xml").iter("testcase")
    assert (case.get("classname"), case.get("name")) == ("suite.judge.yaml", name)


@pytest.mark.parametrize("name", ["a::b", 'a::b\'s [x]::"c"', "::d"])
def test_the_id_of_a_case_selects_it_whatever_its_name(folder: pytest.Pytester, name: str) -> None:
    folder.makefile(".judge.yaml", suite=SUITE.replace("name: clear", f"name: {json.dumps(name)}"))
    result = run(folder, "--collect-only", "-q", "-k", "not muddled and not limits", deselected=2)
    (test_id,) = [line for line in result.outlines if line.startswith("suite.judge.yaml::")]
    assert test_id == f"suite.judge.yaml::{name}"
    if not name.startswith("::"):
        run(folder, test_id, passed=1)


def test_a_model_that_is_typed_is_asked_once_for_a_suite(
    folder: pytest.Pytester, server: Any
) -> None:
    folder.makepyfile(SCORE)
    folder.makefile(".judge.yaml", suite=ASKING)
    folder.makeini("[pytest]\naddopts = --judge-model another\njudge_model = a-third")
    run(folder, "--judge-model=gpt-5.4-mini", passed=4).stdout.fnmatch_lines(
        ["judge: gpt-5.4-mini may receive requests"]
    )
    assert [body["model"] for body in server.bodies] == ["gpt-5.4-mini"] * (1 + 2)


def test_a_local_server_is_used_if_the_command_line_names_it(
    folder: pytest.Pytester, chat_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    folder.makepyfile(SCORE.replace('"single"', '"single", base_url="http://127.0.0.1:9/v1"'))
    folder.makefile(".judge.yaml", suite=ASKING, scripted=SUITE.replace("min: 4", "min: 1"))
    run(
        folder,
        "--judge-model",
        "own",
        "--judge-base-url",
        chat_server.url,
        "-k",
        "not scripted",
        passed=4,
        deselected=3,
    )
    assert {body["model"] for body in chat_server.bodies} == {"own"}
    run(folder, "--judge-base-url", chat_server.url, "scripted.judge.yaml", passed=3)


def test_an_address_has_to_be_typed(
    folder: pytest.Pytester, chat_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", f"--judge-base-url {chat_server.url}")
    folder.makepyfile(SCORE)
    result = folder.runpytest_inprocess("-p", "no:cacheprovider", "--judge-model", "gpt-5.4-mini")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--judge-base-url must be typed*"])
    assert not chat_server.bodies
    run(folder, "--judge-model", "gpt-5.4-mini", f"--judge-base-url={chat_server.url}", passed=1)


PROVIDER = OpenAIProvider("scripted/other.yaml", base_url="http://127.0.0.1:9/v1", needs_key=False)
"""A server's, whatever its model is called."""


@pytest.mark.parametrize(
    "suite_options",
    [
        {"model": "gpt-5.4-mini", "replay": None},
        {"model": ["scripted/replies.yaml", "gpt-5.4-mini"]},
        {"model": [Judge(name="gpt-5.4-mini")]},
        {"model": {"name": "gpt-5.4-mini"}},
        {"model": {"name": "gpt-5.4-mini", "base_url": "http://127.0.0.1:9/v1"}, "replay": None},
        {"model": PROVIDER},
        {"model": "openai/scripted/replies.yaml"},
    ],
)
@pytest.mark.parametrize("typed", [(), ("another",), ("scripted/replies.yaml",)])
def test_servers_in_files_are_not_used(
    suite_options: dict[str, Any], typed: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError, match="this test needs"):
        SuiteSession(typed=typed).options(suite_options)
    if suite_options.get("replay", "") is None:
        with pytest.raises(ConfigError, match="this test needs"):
            SuiteSession(ini={"replay": "calls.jsonl"}, typed=typed).options(suite_options)


@pytest.mark.parametrize(
    ("ini", "suite_options", "command", "expected"),
    [
        ({"replay": "a"}, {"model": "not-typed"}, {}, {"replay": "a", "model": "not-typed"}),
        ({"replay": "a"}, {"model": "scripted/x"}, {}, {"model": "scripted/x"}),
        ({"replay": "a"}, {"replay": "b"}, {}, {"replay": "b"}),
        ({"model": "scripted/x"}, {"replay": "b"}, {}, {"model": "scripted/x", "replay": "b"}),
        ({}, {"replay": "b"}, {"model": "gpt-5.4-mini"}, {"model": "gpt-5.4-mini"}),
        ({}, {"replay": "b"}, {"model": "not-typed"}, {"model": "not-typed", "replay": "b"}),
        ({}, {"model": "scripted/x"}, {"replay": "c"}, {"model": "scripted/x", "replay": "c"}),
    ],
)
def test_closer_settings_take_precedence(
    ini: Any, suite_options: Any, command: Any, expected: dict[str, str]
) -> None:
    assert SuiteSession(command, ini, ("gpt-5.4-mini",)).options(suite_options) == expected


def test_recorded_replies_are_replayed(folder: pytest.Pytester, server: Any) -> None:
    folder.makepyfile(SCORE)
    folder.makefile(".judge.yaml", suite=ASKING)
    run(folder, "--judge-model", "gpt-5.4-mini", "--judge-record", "kept/calls.jsonl", passed=4)
    n_requests = len(server.bodies)
    run(folder, "--judge-replay", "kept/calls.jsonl", passed=4)
    folder.makeini("[pytest]\njudge_replay = kept/calls.jsonl")
    run(folder, passed=4)
    folder.makepyfile(
        test_marked='import pytest\npytestmark = pytest.mark.judge(replay="kept/calls.jsonl")'
        + SCORE
    )
    folder.makeini("[pytest]")
    run(folder, "test_marked.py", passed=1)
    folder.makepyfile(test_other=SCORE.replace("Clear.", "Never recorded."))
    missed = run(folder, "--judge-replay", "kept/calls.jsonl", "test_other.py", failed=1)
    missed.stdout.fnmatch_lines(["E *- recorded, + asked*", "*Never recorded.*"])
    assert len(server.bodies) == n_requests


def test_a_model_that_is_typed_comes_before_recordings(
    folder: pytest.Pytester, server: Any
) -> None:
    folder.makepyfile(SCORE)
    typed = ("--judge-model", "gpt-5.4-mini", "--judge-record")
    run(folder, *typed, "calls.jsonl", passed=1)
    n_requests, recorded = len(server.bodies), (folder.path / "calls.jsonl").read_bytes()
    folder.makeini("[pytest]\njudge_replay = calls.jsonl\naddopts = --judge-model gpt-5.4-mini")
    folder.makefile(".judge.yaml", suite="replay: calls.jsonl\n" + ASKING)
    run(folder, "-k", "score or clear", passed=2, deselected=2)
    assert len(server.bodies) == n_requests
    run(folder, *typed, "again.jsonl", passed=4)
    assert len(server.bodies) > n_requests
    assert set(recorded.splitlines()) < set((folder.path / "again.jsonl").read_bytes().splitlines())


def test_an_ini_file_does_not_replace_an_offline_judge(
    folder: pytest.Pytester,
) -> None:
    folder.makeini("[pytest]\njudge_replay = not_there.jsonl")
    folder.makefile(".judge.yaml", suite=SUITE)
    run(folder, passed=2, failed=1)


def test_paths_in_an_ini_file_start_from_its_folder(
    folder: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.makeini("[pytest]\njudge_model = scripted/replies.yaml")
    folder.makefile(".judge.yaml", suite="cache: false\n" + SUITE.partition("cache: false\n")[2])
    monkeypatch.chdir(folder.mkdir("elsewhere"))
    run(folder, "..", passed=2, failed=1)


def test_a_suite_is_a_test_for_each_case(folder: pytest.Pytester) -> None:
    folder.makefile(".judge.yaml", suite=SUITE)
    result = run(folder, "-v", "--junit-xml", "junit.xml", passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "suite.judge.yaml::clear PASSED*",
            "suite.judge.yaml::muddled FAILED*",
            "suite.judge.yaml::(limits) PASSED*",
            "*below 4*",
            "*expected ≥ 4, found 1.50*",
            "*suite.judge.yaml:8",
            "FAILED suite.judge.yaml::muddled*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")
    assert 'value="4.70' in (folder.path / "junit.xml").read_text()


@pytest.mark.parametrize(
    ("args", "outcomes"),
    [
        (("-m", "judge"), {"passed": 3, "failed": 1, "skipped": 1, "deselected": 3}),
        (("-m", "not judge"), {"passed": 3, "deselected": 5}),
        (("suite.judge.yaml::clear",), {"passed": 1}),
        (("-k", "muddled"), {"failed": 1, "deselected": 7}),
        (("--collect-only",), {}),
    ],
)
def test_cases_are_chosen_as_tests_are(
    folder: pytest.Pytester, args: Any, outcomes: dict[str, int]
) -> None:
    folder.makefile(".judge.yaml", suite=SUITE)
    folder.makepyfile(
        """
        import pytest

        @pytest.fixture
        def answer(judge):
            return judge.score("coherence", output="Clear.")

        def test_fixture(answer):
            pass

        def test_nothing():
            pass

        @pytest.mark.parametrize("judge", ["Dredd"])
        def test_parameter(judge):
            pass

        class TestCourt:
            @pytest.fixture
            def judge(self):
                return "Dredd"

            def test_another_fixture(self, judge):
                pass

        class TestOverridden:
            @pytest.fixture
            def judge(self, judge):
                return judge

            def test_the_fixture_all_the_same(self, judge):
                pass
        """
    )
    run(folder, "--strict-markers", *args, **outcomes)


def test_running_one_case_judges_only_its_texts(folder: pytest.Pytester, server: Any) -> None:
    folder.makefile(".judge.yaml", suite=ASKING)
    run(folder, "--judge-model", "gpt-5.4-mini", "suite.judge.yaml::clear", passed=1)
    assert len(server.bodies) == 1


def test_a_wrong_suite_is_an_error_with_its_line(folder: pytest.Pytester) -> None:
    key = SUITE.replace("criterion", "criterium", 1)
    several = SUITE.replace("expect: {min: 4}", "expect: {min: 4}\n    better: a\n    worse: b", 1)
    script = SUITE.replace("replies.yaml", "nowhere.yaml")
    folder.makefile(".judge.yaml", key=key, several=several, script=script, empty="cases: []\n")
    run(folder, errors=4).stdout.fnmatch_lines_random(
        [
            "*key.judge.yaml:5: unknown key 'criterium'*", "*several.judge.yaml:4: *write 2 cases",
            "*script.judge.yaml:1: *no such file*", "*empty.judge.yaml:1: *",
        ]
    )  # fmt: skip


def test_cases_fail_if_the_suite_cannot_run(folder: pytest.Pytester) -> None:
    criterion, score = (
        SUITE.replace("coherence", "coherance", 1),
        SUITE.replace("min: 4", "min: 7", 1),
    )
    recording = SUITE.replace("model: scripted/replies.yaml", "replay: gone.jsonl")
    folder.makefile(
        ".judge.yaml",
        criterion=criterion,
        score=score,
        recording=recording,
        baseline="baseline: nowhere\n" + SUITE,
    )
    folder.makepyfile("def test_nothing(): pass")
    done = run(folder, passed=1, failed=13)
    done.stdout.fnmatch_lines_random(
        [
            "*criterion.judge.yaml:4: *did you mean 'coherence'*", "*score.judge.yaml:4: *7*",
            "*baseline.judge.yaml:1: *nowhere*", "*gone.jsonl: No such file*", "the suite could not be run: see *",
        ]
    )  # fmt: skip
    output, _, _ = str(done.stdout).partition(
        "short test summary info"
    )  # which has the whole message where CI is set
    assert output.count("gone.jsonl: No such file") == 1


def test_a_baseline_is_a_test(folder: pytest.Pytester) -> None:
    cases = "".join(
        f"  - {{name: {n}, criterion: coherence, text: {{source: No. {n}., output: Clear.}}, expect: {{min: 1}}}}\n"
        for n in range(8)
    )
    folder.makefile(
        ".judge.yaml",
        suite=f"model: scripted/replies.yaml\ncache: false\nbaseline: was\ncases:\n{cases}",
    )
    (outcome,) = test.test(folder.path / "suite.judge.yaml", update_baseline=True)
    assert outcome.passed
    run(folder, passed=10)
    folder.makefile(".yaml", replies="- reply: {3: 0.3, 4: 0.7}")
    run(folder, passed=9, failed=1).stdout.fnmatch_lines(
        ["_* (baseline) _*", "failed: worse (p*", "*coherence: *", "*suite.judge.yaml:3"]
    )


def test_a_baseline_that_nothing_is_compared_with_is_skipped(folder: pytest.Pytester) -> None:
    folder.makefile(
        ".jsonl", texts="\n".join(f'{{"source": "No. {n}.", "output": "Clear."}}' for n in range(8))
    )
    drift = (
        "data: texts.jsonl\nbaseline: was\ncases: [{criterion: coherence, drift: {max_drop: 4}}]\n"
    )
    folder.makefile(".judge.yaml", suite=f"model: scripted/replies.yaml\ncache: false\n{drift}")
    test.test(folder.path / "suite.judge.yaml", update_baseline=True)
    run(folder, passed=2, skipped=1)  # only the drift case counts, and the texts have no ratings


def test_a_case_without_a_score_fails_with_the_reply(folder: pytest.Pytester) -> None:
    folder.makefile(".judge.yaml", suite=SUITE.replace("output: Clear.", "output: Silent."))
    run(folder, failed=3).stdout.fnmatch_lines(
        ["error: *", "*reply: I would rather not say.", "*:4"]
    )


@pytest.mark.slow
def test_several_workers_pay_once_and_record_into_one_file(
    folder: pytest.Pytester, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suite of eight texts without a cache, and six tests of one text. Only the named model gets requests."""
    pytest.importorskip("xdist")
    monkeypatch.setenv("TMPDIR", str(folder.mkdir("temporary")))
    cases = "".join(
        SUITE.partition("cases:\n")[2].replace("name: ", f"name: {n} ").replace("A.", f"No. {n}.")
        for n in range(4)
    )
    folder.makefile(".judge.yaml", suite=f"weighting: single\ncache: false\ncases:\n{cases}")
    folder.makepyfile("\n".join(SCORE.replace("test_score", f"test_{n}") for n in range(6)))
    folder.makeini("[pytest]\naddopts = --judge-model another\njudge_model = a-third")
    typed = ("-n", "2", "--judge-model", "gpt-5.4-mini", "--judge-record", "calls.jsonl")
    folder.runpytest_subprocess("-W", "error", "-p", "no:cacheprovider", *typed).assert_outcomes(
        passed=15
    )
    assert [body["model"] for body in server.bodies] == ["gpt-5.4-mini"] * (8 + 1)
    folder.makeini("[pytest]")
    run(folder, "--judge-replay", "calls.jsonl", passed=15)
    assert len(server.bodies) == 8 + 1
    assert not list((folder.path / "temporary").glob("judge-*"))
