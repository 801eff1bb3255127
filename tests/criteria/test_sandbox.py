"""Templates that would take all time or memory are refused; what a prompt needs stays within its steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import DictLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from judge.criteria.render import fenced
from judge.criteria.sandbox import Sandbox, step_limit

MUCH, LONG, WIDE = "would make more than", "takes more than 1,000,000 steps", "takes no number beyond"


def rendered(template: str, **known: object) -> str:
    with step_limit():
        return Sandbox(None, StrictUndefined, {}).from_string(template).render(known)


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{{ '%1000000000d' % 1 }}", MUCH), ("{{ '%1000000000d'|format(1) }}", MUCH),
        ("{{ '%*d' % (1000000000, 1) }}", MUCH), ("{{ '{:>1000000000}'.format(1) }}", MUCH),
        ("{{ '{:>{w}}'.format(1, w=1000000000) }}", WIDE),
        ("{{ '{a:>{w}}'.format_map({'a': 1, 'w': 1000000000}) }}", MUCH), ("{{ 'x'.center(1000000000) }}", WIDE),
        ("{{ [1]|batch(1000000000, 0)|list }}", WIDE),
        ("{{ 'ab'|replace('b', 'c' * 9000000)|replace('c', 'd' * 10000) }}", MUCH),
        ("{{ ('a' * 10000).replace('a', 'b' * 10000) }}", MUCH),
        ("{{ ('a' * 10000)|map('upper')|join('b' * 10000) }}", MUCH), ("{{ ('b' * 10000).join('a' * 10000) }}", MUCH),
        ("{{ ('\\t' * 10000).expandtabs(10000) }}", MUCH), ("{{ ('a' * 10000).translate({97: 'b' * 10000}) }}", MUCH),
        ("{{ [1] * 100000000 }}", MUCH),
        ("{% set ns = namespace(n=3) %}{% for _ in range(60) %}{% set ns.n = ns.n * ns.n %}{% endfor %}", "bits"),
        ("{% set ns = namespace(t='ab') %}{% for _ in range(60) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}", MUCH),
        ("{% set ns = namespace(t='ab') %}{% for _ in range(60) %}{% set ns.t = ns.t + ns.t %}{% endfor %}", MUCH),
        ("{% set ns = namespace(t=[1]) %}{% for _ in range(60) %}{% set ns.t = [ns.t, ns.t] %}{% endfor %}", LONG),
        ("{% set ns = namespace(t=1) %}{% for _ in range(60) %}{% set ns.t = {1: ns.t, 2: ns.t} %}{% endfor %}", LONG),
        ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", LONG),
        ("{% for a in range(90000) %}{{ 'a' * 10000 }}{% endfor %}", LONG),
        ("{% for a in range(90000) %}" + "a" * 10_000 + "{% endfor %}", LONG),
        ("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}", LONG),
        ("{{ 9 ** 9 }}", "not for templates"),
    ],
)  # fmt: skip
def test_what_would_never_end_or_fill_the_machine_is_refused(template: str, says: str) -> None:
    with pytest.raises(OverflowError, match=says):
        rendered(template)


def test_files_that_include_each_other_end() -> None:
    twice = "{% if n %}{% with n = n - 1 %}{% include 'a' %}{% include 'a' %}{% endwith %}{% endif %}"
    template = Sandbox(DictLoader({"a": twice}), StrictUndefined, {}).get_template("a")
    with step_limit(), pytest.raises(OverflowError, match=LONG):
        template.render(n=60)


def test_a_text_of_a_million_characters_is_a_prompt() -> None:
    text = "A line of a long document.\n" * 40_000
    assert rendered("{{ text|trim|replace('\\n', '\\n> ')|indent(2) }}\n{{ text|length }}", text=text).endswith(
        "1080000"
    )


def test_every_text_starts_with_all_its_steps() -> None:
    template = Sandbox(None, StrictUndefined, {}).from_string("{% for _ in range(60000) %}x{% endfor %}")
    for _ in range(30):
        with step_limit():
            assert len(template.render()) == 60_000


@given(rows=st.lists(st.tuples(st.text(), st.integers()), max_size=5), text=st.text())
def test_it_writes_what_jinja_writes(rows: list[tuple[str, int]], text: str) -> None:
    template = (
        "{% for name, n in rows if n != 3 %}{{ loop.index ~ '/' ~ loop.length }} {{ name|upper ~ n * 2 }}"
        "{{ ', ' if not loop.last }}{% else %}none{% endfor %}|{{ {'a': [text, (1, 2)]} }}"
        "|{{ rows|map('first')|join('-') }}"
        "|{{ '%s and %s' % (text, 1) }}|{{ '{:>3}'.format(7) }}|{{ [1] + [2] }}|{{ text[:3]|default('x', true) }}"
        "{% macro m(a, b=2) %}<{{ a }}{{ b }}>{% endmacro %}{{ m(1) }}{% set c %}{{ text }}!{% endset %}{{ c }}"
    )
    plain = ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    assert rendered(template, rows=rows, text=text) == plain.from_string(template).render(rows=rows, text=text)


ADDRESS = "place in memory"


@pytest.mark.parametrize(
    "template",
    [
        "{{ output.format }}", "{{ output.format|string }}", "{{ output.format|urlencode }}",
        "{{ output.format|upper }}", "{{ [output.format]|string }}", "{{ [output.format] }}",
        "{{ [output.format]|map('string')|join }}", "{{ '%s' % output.format }}", "{{ '%s' % [output.format] }}",
        "{{ '{}'.format(output.split) }}", "{{ '%s'|format(output.split) }}", "{{ output ~ output.split }}",
        "{{ [output]|map('upper') }}", "{{ cycler(1, 2) }}", "{{ joiner() }}", "{{ output.split|pprint }}",
        "{{ {'a': output.split} }}", "{% macro m() %}{{ output.split }}{% endmacro %}{{ m() }}",
        "{{ output.split|fenced('x') }}",
    ],
)  # fmt: skip
def test_no_prompt_has_a_place_in_memory(template: str) -> None:
    with pytest.raises(ValueError, match=ADDRESS), step_limit():
        Sandbox(None, StrictUndefined, {"fenced": fenced}).from_string(template).render(output="A text.")


@pytest.mark.parametrize(
    "template",
    [
        "{{ output }}", "{{ output|upper|title|string }}", "{{ [output, 1] }}",
        "{{ '%s' % output }}{{ '{}'.format(output) }}{{ output ~ 1 }}",
        "{{ [output, output]|join(', ') }}{{ [output]|map('upper')|join }}",
        "{% macro m() %}{{ output }}{% endmacro %}{{ m()|upper }}",
        "{{ {'a': output}|tojson }}{{ output|fenced('x') }}",
        "{{ missing|default(output) }}{% set comma = joiner(', ') %}{{ comma() }}{{ comma() }}",
    ],
)  # fmt: skip
def test_a_text_may_tell_of_one(template: str) -> None:
    output = "It printed <Order object at 0x7f3a5c0d1e50>."
    with step_limit():
        made = Sandbox(None, StrictUndefined, {"fenced": fenced}).from_string(template).render(output=output)
    assert "0x7f3a5c0d1e50" in made.lower()
