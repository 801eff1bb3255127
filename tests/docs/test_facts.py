"""Attributes, paths and counts in the prose of pages are right, and decisions have their form."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import judge
from judge.cli import app
from judge.core import plugins
from judge.criteria.header import Header
from judge.providers.vendors import VENDORS
from judge.results.estimates import EstimateRow
from judge.text import LANGUAGES

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = sorted(ROOT.glob("docs/decisions/0*.md"))
PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob(".github/*.md")),
    *sorted(ROOT.glob("docs/*.md")),
    *DECISIONS,
    *sorted(ROOT.glob("benchmarks/**/*.md")),
    *sorted(ROOT.glob("examples/*/README.md")),
]
IDS = [str(page.relative_to(ROOT)) for page in PAGES]


# A path below one of these folders belongs to this repository.
FOLDERS = ("judge/", "tests/", "docs/", "prompts/", "examples/", "benchmarks/", ".github/", ".ci/")


def code_spans(page: Path) -> Iterator[str]:
    """Yield the code between backticks in the prose of a page."""
    for token in MarkdownIt().enable("table").parse(page.read_text("utf-8")):
        for child in token.children or ():
            if child.type == "code_inline":
                yield child.content


@cache
def classes() -> dict[str, tuple[set[str], list[str]]]:
    """Return the attributes and the base classes of every class of the package, by its name."""
    classes_by_name: dict[str, tuple[set[str], list[str]]] = {}
    for path in (ROOT / "judge").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base).split(".")[-1].split("[")[0] for base in node.bases]
                classes_by_name[node.name] = (_attributes(node), bases)
    return classes_by_name


def _attributes(node: ast.ClassDef) -> set[str]:
    names: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(part.name)
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            names.add(part.target.id)
        elif isinstance(part, ast.Assign):
            names |= {target.id for target in part.targets if isinstance(target, ast.Name)}
        elif isinstance(part, ast.Attribute) and ast.unparse(part.value) == "self":
            names.add(part.attr)
    return names


def has_attribute(class_name: str, attribute: str) -> bool:
    """Return whether a class of the package, or one of its bases there, has the attribute."""
    if class_name not in classes():
        return False
    attributes, bases = classes()[class_name]
    return attribute in attributes or any(has_attribute(base, attribute) for base in bases)


@pytest.mark.parametrize("page", PAGES, ids=IDS)
@pytest.mark.slow
def test_attributes_named_in_prose_exist(page: Path) -> None:
    missing = []
    for span in code_spans(page):
        if match := re.match(r"result\.(\w+)", span):
            known = hasattr(judge.Result, match[1]) or has_attribute("Result", match[1])
        elif match := re.match(r"judge(\.\w+)+(?=$|\()", span):
            known = is_importable(match[0]) or match[0] in LOOK_LIKE_NAMES
        elif match := re.match(r"([A-Z]+[a-z][A-Za-z]*)\.([a-z_]\w+)(?=$|\()", span):
            known = has_attribute(match[1], match[2])
        else:
            continue
        if not known:
            missing.append(span)
    assert missing == []


# Groups of entry points, an attribute of spans, and a file of the examples.
LOOK_LIKE_NAMES = {
    *(f"judge.{group}" for group in ("metrics", "providers", "engines", "formats")),
    "judge.signature",
    "judge.yaml",
}


def is_importable(name: str) -> bool:
    """Return whether a dotted name leads to a module or to an attribute of one."""
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


@pytest.mark.parametrize(
    ("class_name", "attribute", "known"),
    [
        ("Result", "estimates", True),
        ("Column", "seen", True),
        ("Column", "sean", False),
        ("Nothing", "seen", False),
    ],
)
@pytest.mark.slow
def test_only_attributes_of_a_class_of_the_package_are_known(
    class_name: str, attribute: str, known: bool
) -> None:
    assert has_attribute(class_name, attribute) is known


def names_a_file(name: str, page: Path) -> bool:
    """Return whether a path, or a pattern of paths, is in the repository."""
    if name.startswith(FOLDERS):
        return any(ROOT.glob(name.rstrip("/")))
    if "/" in name:
        return any((ROOT / "judge").glob(name)) or (page.parent / name).exists()
    return any(path.name == name for path in python_files())


@cache
def python_files() -> list[Path]:
    folders = ("judge", "tests", "benchmarks", "examples")
    return [path for folder in folders for path in (ROOT / folder).rglob("*.py")]


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_paths_named_in_prose_exist(page: Path) -> None:
    missing = []
    for span in code_spans(page):
        for word in span.split():
            in_repository = word.startswith(FOLDERS) or re.fullmatch(r"[a-z_/]+\.py", word)
            is_pattern = re.search(r"[<>{}…]|NAME|TASK", word)
            if in_repository and not is_pattern and not names_a_file(word, page):
                missing.append(span)
    assert missing == []


def test_pages_named_in_code_exist() -> None:
    missing = []
    for path in python_files():
        # Only paths from the repository's root: no web addresses, and no tests/docs.
        for name in re.findall(r"(?<![/\w])docs/[\w/.-]+\w", path.read_text("utf-8")):
            if not any(ROOT.glob(f"{name}*")):
                missing.append((path.name, name))  # noqa: PERF401
    assert missing == []


def test_names_that_benchmarks_import_from_judge_exist() -> None:
    missing = []
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("judge."):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                missing += [f"{path.name}: {name}" for name in names if not is_importable(name)]
    assert missing == []


NUMBERS = dict(
    zip(
        [
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ],
        range(2, 13),
        strict=True,
    )
)
COUNTS = {
    "commands": len(app.commands),
    "languages": len(LANGUAGES),
    "metrics": len(plugins.METRICS),
    "vendors": len(VENDORS),
    "engines": len(plugins.ENGINES),
    "formats": len(plugins.FORMATS),
}
# Counts of languages in papers, a model and mixed data, and of commands in an earlier version.
OTHER_COUNTS = {"25 languages", "eight languages", "27 languages", "two languages", "six commands"}


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_counts_in_prose_are_right(page: Path) -> None:
    text = " ".join(page.read_text("utf-8").split()).lower()
    pattern = rf"\b({'|'.join(NUMBERS)}|\d+) ({'|'.join(COUNTS)})\b"
    wrong = []
    for match in re.finditer(pattern, text):
        number = NUMBERS.get(match[1]) or int(match[1])
        if number != COUNTS[match[2]] and match[0] not in OTHER_COUNTS:
            wrong.append(match[0])
    assert wrong == []


def test_the_page_on_metrics_names_every_metric() -> None:
    named = set(code_spans(ROOT / "docs/metrics.md"))
    assert sorted(set(plugins.METRICS) - named) == []


def test_the_page_on_criteria_names_every_key_of_the_header() -> None:
    named = set(code_spans(ROOT / "docs/criteria.md"))
    assert sorted(set(Header.model_fields) - named) == []


def test_the_page_on_results_names_every_column() -> None:
    named = set(code_spans(ROOT / "docs/results.md"))
    columns = {
        field.name
        for record in (judge.Score, judge.Failure, judge.Provenance, EstimateRow)
        for field in fields(record)
    }
    assert sorted(columns - {"provenance"} - named) == []


def slug(title: str) -> str:
    """Return a title as a file name: "A row's `x`" is "a-rows-x"."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"['’`]", "", title.lower())).strip("-")


@pytest.mark.parametrize("page", DECISIONS, ids=[page.name for page in DECISIONS])
def test_the_file_name_of_a_decision_has_its_number_and_title(page: Path) -> None:
    heading = page.read_text("utf-8").partition("\n\n")[0]
    number, title = re.fullmatch(r"# (\d+)\. (.+)", heading).groups()  # type: ignore[union-attr]
    assert page.name == f"{int(number):04}-{slug(title)}.md"


@pytest.mark.parametrize("page", DECISIONS, ids=[page.name for page in DECISIONS])
def test_a_decision_has_a_status_with_a_date(page: Path) -> None:
    status = page.read_text("utf-8").split("\n\n")[1]
    assert re.fullmatch(
        r"\*\*Status\.\*\* Accepted, \d{1,2} [A-Z][a-z]+ 20\d\d"
        r"(; revised \d{1,2} [A-Z][a-z]+ 20\d\d)?\.",
        status,
    )


@pytest.mark.parametrize("page", DECISIONS, ids=[page.name for page in DECISIONS])
def test_a_decision_is_short(page: Path) -> None:
    lines = [line for line in page.read_text("utf-8").splitlines() if not line.startswith("|")]
    assert len(" ".join(lines).split()) <= 250


def test_decisions_cited_in_comments_exist() -> None:
    numbers = {int(page.name[:4]) for page in DECISIONS}
    missing = []
    for path in python_files():
        for number in re.findall(r"\(decision (\d+)\)", path.read_text("utf-8")):
            if int(number) not in numbers:
                missing.append((path.name, number))  # noqa: PERF401
    assert missing == []


def test_the_list_of_decisions_has_all_titles_in_order() -> None:
    index = (ROOT / "docs/decisions/README.md").read_text("utf-8")
    listed = re.findall(r"^- \[(\d+)\]\(([\w.-]+)\) (.+)$", index, re.MULTILINE)
    expected = []
    for page in DECISIONS:
        heading = page.read_text("utf-8").partition("\n")[0]
        number, _, title = heading.removeprefix("# ").partition(". ")
        expected.append((number, page.name, title))
    assert listed == expected
