"""Lists and mappings in the cells of a table of text: JSON, or as pandas writes Python's own.

`DataFrame.to_csv` writes a list as Python shows it, `['bye', "it's late"]`, a numpy array without
commas, `['bye' 'late']`, and its numbers as `[np.float64(4.0), nan]`.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

_OPENING = ("[", "(", "{")
_CLOSING = ("]", ")", "}")
_VALUE_TOKENS = (tokenize.STRING, tokenize.NUMBER, tokenize.NAME)
# Names that stand for a missing value: those of pandas, and `null` of JSON.
_EMPTY_NAMES = ("nan", "NaN", "NA", "NaT", "null")
# What Python's tokenizer and parser raise, the last two for a text that is nested too deeply.
_PARSE_ERRORS = (
    SyntaxError,
    ValueError,
    tokenize.TokenError,
    RecursionError,
    MemoryError,
)
# Functions around a value: `np.float64(4.0)`, `array(['a', 'b'], dtype=object)`, `Decimal('4.5')`.
_WRAPPER = re.compile(
    r"array|str_|bool_|float\d+|u?int\d+|longdouble|datetime64|Decimal|Timestamp|UUID"
)
# numpy's `np.True_` and `np.False_`, without a call.
_TRUTH_VALUES = {"True_": True, "False_": False}


class NoValue(ValueError):
    """A cell that is neither JSON nor Python's way to write a value."""


def packed_value(text: str) -> Any:
    """Return the list or the mapping that a cell holds. Raises NoValue for any other text."""
    if not text.lstrip().startswith(_OPENING):
        raise NoValue("it does not start with a bracket")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        not_json = str(error)
    try:
        with_commas = _with_commas(text.strip())
        tree = ast.parse(with_commas, mode="eval")
        value = _value(tree.body)
    except _PARSE_ERRORS as error:
        raise NoValue(f"not a list in JSON: {not_json}") from error
    if not isinstance(value, list | dict):  # such as ('a'), which is a text in brackets
        raise NoValue("it is neither a list nor a mapping")
    return value


def packed_texts(text: str) -> list[str] | None:
    """Return the texts of a cell that holds a list of texts; None for any other cell.

    Missing values in the list are left out.
    """
    try:
        value = packed_value(text)
    except NoValue:
        return None
    if not isinstance(value, list):
        return None
    texts = [entry for entry in value if entry is not None]
    if not all(isinstance(entry, str) for entry in texts):
        return None
    return texts


def _with_commas(text: str) -> str:
    """Return the text with a comma between values that stand side by side, as in numpy's arrays.

    Without it, Python would join `['a' 'b']` to one text.
    """
    lines = text.split("\n")
    gaps: list[tuple[int, int]] = []
    for previous, token in pairwise(_tokens(text)):
        if _ends_value(previous) and _starts_value(token, previous):
            gaps.append(previous.end)
    # From the end, because a comma shifts all positions after it.
    for row, column in reversed(gaps):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]},{line[column:]}"
    return "\n".join(lines)


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield the tokens except line breaks and indents."""
    layout_tokens = (
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in layout_tokens:
            yield token


def _ends_value(token: tokenize.TokenInfo) -> bool:
    """Return whether a value can end with this token."""
    return token.type in _VALUE_TOKENS or token.string in _CLOSING


def _starts_value(token: tokenize.TokenInfo, previous: tokenize.TokenInfo) -> bool:
    """Return whether a value begins with this token, which follows the end of another one."""
    if token.string in ("[", "{", "-"):
        return True
    if token.string == "(":
        # After a name, it is the bracket of a call: np.float64(4.0).
        return previous.type != tokenize.NAME
    return token.type in _VALUE_TOKENS


def _value(node: ast.expr) -> Any:
    """Return the value of an expression that computes nothing. Raises NoValue for any other."""
    match node:
        case ast.Constant(value=str() | int() | float() | None as value):
            return value
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_value(part) for part in parts]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {_key(key): _value(value) for key, value in pairs}
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return -number
        case ast.Name(id=name) if name in _EMPTY_NAMES:
            return None
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name), args=[wrapped]):
            if _WRAPPER.fullmatch(name):
                return _value(wrapped)
        case ast.Attribute(attr=name) if name in _TRUTH_VALUES:
            return _TRUTH_VALUES[name]
    raise NoValue("it computes something")


def _key(node: ast.expr | None) -> str:
    """Return a mapping's key as a text; None is the key of `**other`. Raises NoValue."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
        return str(node.value)
    raise NoValue("a key is not a name")
