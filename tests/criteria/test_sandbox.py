"""A template never prints an object's memory address, which differs in every run."""

from __future__ import annotations

import pytest

from judge.criteria.sandbox import RenderError, Templates, render


def rendered(template: str, output: str) -> str:
    return render(Templates("t", (("t", template, "t.jinja"),)), {"output": output})


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
def test_a_template_that_prints_a_memory_address_is_an_error(template: str) -> None:
    with pytest.raises(RenderError, match="memory address"):
        rendered(template, "A text.")


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
def test_a_text_may_contain_a_memory_address(template: str) -> None:
    output = "It printed <Order object at 0x7f3a5c0d1e50>."
    assert "0x7f3a5c0d1e50" in rendered(template, output).lower()
