"""The pytest plugin: `*.judge.yaml` suites are tests, and the fixture `judge` scores and compares texts in tests.

Offline by default: a server is asked only where `--judge-model` was typed on the command line. Importing this loads
nothing else of judge; the rest is imported by the first test that judges.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judge.commands.pytest_support import JudgeFixture, SuiteOutcome, SuiteSession
    from judge.suite.records import Verdict

_SUITE, _MODEL, _ADDRESS, _SCRIPTED = ".judge.yaml", "--judge-model", "--judge-base-url", "scripted/"
_SHARED = pytest.StashKey[str]()
_MARKER = (
    "judge(model=..., replay=..., weighting=..., ...): what the fixture `judge` asks, and how; keys of a run's plan. "
    "Tests that use the fixture and suites in *.judge.yaml carry it anyway: -m 'not judge' leaves all of them out."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The judge to ask, and recordings: on the command line, and in the ini file what costs nothing."""
    group = parser.getgroup("judge", "judging texts with a language model")
    group.addoption(
        _MODEL,
        action="append",
        metavar="NAME",
        help="the judge to ask, which may cost money: without this option no test asks a server (several: a panel)",
    )
    group.addoption(_ADDRESS, metavar="URL", help="where --judge-model is asked: an OpenAI-compatible server's address")
    group.addoption("--judge-replay", metavar="CALLS.jsonl", help="recorded replies that answer in the judge's place")
    group.addoption("--judge-record", metavar="CALLS.jsonl", help="where to add the replies to --judge-model")
    parser.addini("judge_model", "the judge of tests that name none; a server is asked by --judge-model alone")
    parser.addini("judge_replay", "recorded replies for tests that name none, from the folder of this file")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    if config.getoption("judge_base_url") and not _typed(config, _ADDRESS):
        raise pytest.UsageError(f"{_ADDRESS} has to be typed: no ini file or variable says who is asked")


def pytest_unconfigure(config: pytest.Config) -> None:
    if folder := config.stash.get(_SHARED, None):
        from shutil import rmtree

        rmtree(folder, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where all of them keep what one has found out."""
    from tempfile import mkdtemp

    stash = node.config.stash
    if _SHARED not in stash:
        stash[_SHARED] = mkdtemp(prefix="judge-")
    node.workerinput["judge_shared"] = stash[_SHARED]


def pytest_report_header(config: pytest.Config) -> str | None:
    return f"judge: {', '.join(typed)} may be asked" if (typed := _typed(config, _MODEL)) else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    return SuiteFile.from_parent(parent, path=file_path) if file_path.name.endswith(_SUITE) else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that use the fixture, and not those whose `judge` is another fixture or a parameter."""
    defined = [*getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}).get("judge", ())]
    while defined and "judge" in defined[-1].argnames:  # one that is made from the one it overrides
        defined.pop()
    if defined and getattr(defined[-1].func, "__module__", "") == __name__:
        item.add_marker("judge")


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """What a score was made of, behind the comparison that failed (all that a short summary shows) and below it."""
    if "judge.commands.pytest_support" not in sys.modules:
        return None
    from judge.commands.pytest_support import JudgedScore

    found = [one for one in (left, right) if isinstance(one, JudgedScore)]
    if not found:
        return None
    why = "; ".join(one.short for one in found)
    return [f"{left!r} {op} {right!r} ({why})", *(line for one in found for line in one.explained)]


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> JudgeFixture:
    """Scores a text, or compares two: `judge.score(criterion, output=...)`, `judge.prefers(a, over=b, criterion=...)`.

    Criteria and files that a test or its marker names start from the folder of the test's file.
    """
    from judge.commands.pytest_support import JudgeFixture
    from judge.core.errors import ConfigError

    own: dict[str, Any] = {}
    for mark in request.node.iter_markers("judge"):
        if mark.args:
            pytest.fail(f"@pytest.mark.judge takes keywords, such as model={mark.args[0]!r}", pytrace=False)
        own = {**mark.kwargs, **own}
    try:
        return JudgeFixture(_session(request.config), own, request.path.parent)
    except ConfigError as error:
        said = str(error)
    pytest.fail(said, pytrace=False)


def _typed(config: pytest.Config, option: str) -> list[str]:
    """What somebody typed for an option: what an ini file or the environment adds to a command is no leave to pay."""
    args = [str(arg) for arg in config.invocation_params.args]
    pairs = [(one.partition("="), following) for one, following in zip(args, [*args[1:], ""], strict=True)]
    return [value or ("" if mark else following) for (name, mark, value), following in pairs if name == option]


def _session(config: pytest.Config) -> SuiteSession:
    from judge.commands.pytest_support import SuiteSession

    typed = _typed(config, _MODEL)
    start, shared = config.invocation_params.dir, getattr(config, "workerinput", {}).get("judge_shared", "")
    given: dict[str, Any] = {
        "model": typed or config.getoption("judge_model"),
        "base_url": config.getoption("judge_base_url"),
    }
    given |= {name: start / path for name in ("replay", "record") if (path := config.getoption(f"judge_{name}"))}
    ini: dict[str, Any] = {"model": config.getini("judge_model")}
    folder = config.inipath.parent if config.inipath else config.rootpath
    if path := config.getini("judge_replay"):
        ini["replay"] = folder / path
    if ini["model"].startswith(_SCRIPTED):
        ini["model"] = f"{_SCRIPTED}{folder / ini['model'].removeprefix(_SCRIPTED)}"
    command, ini = ({name: value for name, value in one.items() if value} for one in (given, ini))
    return SuiteSession(command, ini, typed, Path(shared) if shared and Path(shared).is_dir() else None)


class SuiteFile(pytest.File):
    """A suite: a test for each of its cases, one for its limits and one for its baseline."""

    _found: SuiteOutcome | None = None
    told: SuiteItem | None = None
    """The test that said why the suite could not be run."""

    def collect(self) -> Iterator[SuiteItem]:
        """Reads the suite; asks nobody."""
        from judge.core.errors import JudgeError
        from judge.core.messages import one_line
        from judge.suite import load

        try:
            self.suite = load.load(self.path, given={"replay", *_session(self.config).command})
        except JudgeError as error:
            raise self.CollectError(str(error)) from None
        for case in self.suite.cases:
            yield SuiteItem.from_parent(self, name=one_line(case.name), what=case.name, line=case.line)
        for what, key in (("limit", "limits"), *([("baseline", "baseline")] if self.suite.baseline else [])):
            yield SuiteItem.from_parent(self, name=f"({key})", what=what, line=self.suite.lines.get(key, 1), whole=True)

    def found(self) -> SuiteOutcome:
        """What came of the cases that run here; the suite is run by the first test that asks."""
        if self._found is None:
            from judge.commands.pytest_support import run_suite_once

            here = [one for one in self.session.items if isinstance(one, SuiteItem) and one.parent is self]
            self._found = run_suite_once(
                self.suite, _session(self.config), frozenset(o.what for o in here if not o.whole)
            )
        return self._found


class Unmet(Exception):
    """What a suite expects and the numbers do not show; it says so itself, without a traceback."""


class SuiteItem(pytest.Item):
    """A case of a suite, or what is about the `whole` of it: the limits, the baseline."""

    parent: SuiteFile

    def __init__(self, *, what: str, line: int, whole: bool = False, **given: Any) -> None:
        super().__init__(**given)
        self.what, self.line, self.whole = what, line, whole
        self.add_marker("judge")

    def runtest(self) -> None:
        """Raises Unmet where a verdict on it is not met, or where the suite could not be run."""
        from judge.commands.pytest_support import unmet_failures

        found = self.parent.found()
        if found.trouble:
            first, self.parent.told = self.parent.told or self, self.parent.told or self
            why = found.trouble if first is self else f"the suite could not be run: see {first.name}"
            raise Unmet(f"{why}\n\n{self.path}:{self.line}")
        mine = [one for one in found.verdicts if self._is(one)]
        self.user_properties += [("judge", f"{one.found} {one.said}".strip()) for one in mine]
        if said := unmet_failures(mine):
            raise Unmet("\n".join([*said, "", f"{self.path}:{self.line}"]))
        if self.what == "baseline" and self.whole and not mine:
            pytest.skip("; ".join(found.warnings) or "nothing was compared with the baseline")
        if not (mine or self.whole):
            raise Unmet(f"no verdict on this case\n\n{self.path}:{self.line}")

    def _is(self, verdict: Verdict) -> bool:
        whole = verdict.kind in ("limit", "baseline")
        return whole == self.whole and self.what == (verdict.kind if whole else verdict.name)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, Unmet) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.line - 1, self.name
