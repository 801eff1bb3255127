"""A judge as a user names it, and what is added to its requests: headers, keys of the body, a command for the key.

`hidden` decides what is a secret. Secrets, and the values of all headers, are sent and never stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from judge.core.format import MAX_DIGITS
from judge.core.messages import option

HIDDEN = "…"
"""Stored in place of a secret."""
_SECRET_NAME = re.compile(
    r"auth|key|token(?!s|iz)|secret|cookie|passw|credential|bearer|jwt|signature", re.I
)
_SECRET_VALUE = re.compile(
    r"(?:bearer|basic) \S|(?:sk-|gh[pousr]_|xox[a-z]-|hf_|gsk_|xai-|AKIA|AIza|eyJ)[\w-]{12}", re.I
)
_LONGEST_LABEL = 60
_DIGEST_LENGTH = 12
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_HEADERS = (
    "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding",
)  # fmt: skip
_OWN_KEYS = {
    "messages": "criteria", "model": "model", "n": "draws", "temperature": "temperature", "logprobs": "weighting",
    "top_logprobs": "weighting", "max_tokens": "max_tokens", "max_completion_tokens": "max_tokens",
    "response_format": "structured", "reasoning_effort": "reasoning_effort", "stream": "", "stream_options": "",
    "prompt_cache_key": "", "prompt_cache_options": "", "criterion": "", "questions": "", "headers": "",
}  # fmt: skip
"""Keys of a request that judge sets, and the option for each. The last three are judge's own and never sent."""


def hidden(name: str, value: Any) -> bool:
    """Return whether a value is, or may be, a secret: by its name, or because it looks like a key."""
    return isinstance(value, str) and bool(_SECRET_NAME.search(name) or _SECRET_VALUE.match(value))


def header_digest(name: str, value: str) -> str:
    """Return what is stored of a header's value: a digest, and nothing of what may be a secret.

    No rule knows every secret by its name (`X-Pass`, `X-Sig`), so that no value is stored.
    """
    if hidden(name, value) or value.startswith(HIDDEN):
        return value if value.startswith(HIDDEN) else HIDDEN
    return HIDDEN + hashlib.sha256(value.encode()).hexdigest()[:_DIGEST_LENGTH]


def public_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the digests of the headers that are known to be no secret, with names in lower case.

    They tell requests apart. A secret is left out, so that a new key finds the replies of the old one.
    """
    return {
        name.lower(): header_digest(name, value)
        for name, value in headers.items()
        if not hidden(name, value)
    }


def _parse_headers(value: Any) -> Any:
    """Accept `NAME=VALUE`, and a list of such texts and mappings."""
    headers: dict[str, Any] = {}
    for layer in value if isinstance(value, list | tuple) else [value]:
        if isinstance(layer, str):
            name, equals, text = layer.partition("=")
            if not (equals and name.strip()):
                raise ValueError("write NAME=VALUE, such as X-Team=evals")
            headers[name.strip()] = text.strip()
        elif not isinstance(layer, Mapping):
            return value
        else:
            headers |= layer
    for name, text in headers.items():
        if not isinstance(text, str):
            raise ValueError(f"{name}: write its value as a text, in quotes")
    return headers


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of an HTTP header")
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"{name}: judge sets this header itself")
        if not value.startswith(HIDDEN) and not (
            value.isascii() and value.isprintable() and value.strip()
        ):
            raise ValueError(f"{name}: a header's value is a line of printable ASCII characters")
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("one header has two values; their names differ only in case")
    return headers


def _parse_body(value: Any) -> Any:
    """Accept JSON, and a list of JSON texts and mappings."""
    body: dict[str, Any] = {}
    for layer in value if isinstance(value, list | tuple) else [value]:
        if isinstance(layer, str):
            try:
                layer = json.loads(layer)
            except (ValueError, RecursionError):
                layer = None
        if not isinstance(layer, Mapping):
            raise ValueError("""write a JSON object, such as '{"top_p": 0.9}'""")
        body |= layer
    return body


def _check_body(body: dict[str, Any]) -> dict[str, Any]:
    for name in body:
        if (own := _OWN_KEYS.get(name)) is not None:
            raise ValueError(
                f"{name}: judge sends this itself{f'; use {option(own)}' if own else ''}"
            )
    try:
        text = json.dumps(body, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ValueError("a value cannot be written as JSON") from None
    plain: dict[str, Any] = json.loads(text, parse_int=_integer)
    if name := _secret_in(plain):
        raise ValueError(
            f"{name}: may be a secret, and the body of a request is stored with its reply; send a secret as a header: "
            f"{option('headers')}"
        )
    return plain


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of more than {MAX_DIGITS} digits")
    return int(digits)


def _secret_in(value: Any, name: str = "") -> str:
    """Return the name of the first value that may be a secret, at any depth; "" if there is none."""
    parts = value.items() if isinstance(value, dict) else [(name, part) for part in value]
    for key, part in parts:
        inner = (
            _secret_in(part, key)
            if isinstance(part, dict | list)
            else key
            if hidden(key, part)
            else ""
        )
        if inner:
            return inner
    return ""


def _check_command(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"cannot be split into words: {error}") from None
    if not words:
        raise ValueError("write a command that prints the key")
    return command


def _check_label(label: str) -> str:
    if (
        label != " ".join(label.split())
        or not label.isprintable()
        or "|" in label
        or len(label) > _LONGEST_LABEL
    ):
        raise ValueError(f"write one line of at most {_LONGEST_LABEL} characters, without |")
    return label


def program(command: str) -> str:
    """Return a command without its arguments, which may hold a secret."""
    first, *rest = shlex.split(command)
    return f"{first} {HIDDEN}" if rest else first


def _check_variable(name: str) -> str:
    """Refuse what cannot be a variable's name: it may be the key itself, which would then be written into run.json."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(
            "names the environment variable that holds the key, such as OPENAI_API_KEY, and not the key"
        )
    return name


Variable = Annotated[str, AfterValidator(_check_variable)]
Headers = Annotated[
    dict[str, str],
    BeforeValidator(_parse_headers, json_schema_input_type=dict[str, str]),
    AfterValidator(_check_headers),
    PlainSerializer(lambda headers: {name: header_digest(name, v) for name, v in headers.items()}),
]
ExtraBody = Annotated[
    dict[str, Any],
    BeforeValidator(_parse_body, json_schema_input_type=dict[str, Any]),
    AfterValidator(_check_body),
]
Label = Annotated[str, AfterValidator(_check_label)]


class TokenPrice(BaseModel):
    """US dollars for a million tokens that a model reads (`input`) and writes (`output`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0, allow_inf_nan=False, description="Dollars per million tokens read.")
    output: float = Field(
        ge=0, allow_inf_nan=False, description="Dollars per million tokens written."
    )


KeyCommand = Annotated[str, AfterValidator(_check_command), PlainSerializer(program)]


class ModelSettings(BaseModel):
    """Where a model is and how it is asked; what is set takes precedence over the run's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str | None = Field(default=None, description="Address of its server.")
    key_env: Variable | None = Field(default=None, description="Environment variable with its key.")
    key_command: KeyCommand | None = Field(
        default=None, description="Command that prints its key.", repr=False
    )
    headers: Headers = Field(default={}, description="HTTP headers of its requests.", repr=False)
    system_message: str | None = Field(
        default=None, description="System message, sent before the prompt."
    )
    reasoning_effort: str | None = Field(
        default=None, pattern=r"^[\w-]*$", description="How long it reasons first."
    )
    extra_body: ExtraBody = Field(default={}, description="Further keys of its requests.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="Sampling temperature.")
    rpm: int | None = Field(default=None, ge=1, description="Requests per minute.")
    tpm: int | None = Field(default=None, ge=1, description="Tokens per minute.")
    max_concurrency: int | None = Field(
        default=None, ge=1, le=10_000, description="Requests in flight."
    )
    timeout: float | None = Field(
        default=None, gt=0, description="Longest wait for a reply, in seconds."
    )
    price: TokenPrice | None = Field(
        default=None, description="Dollars per million tokens, for --budget and costs."
    )


class Judge(ModelSettings):
    """One judge of a panel; its own settings take precedence over the run's."""

    name: str = Field(min_length=1, description="Name of the model.")
    label: Label = Field(default="", description="Name in a panel (default: the model's).")

    @model_serializer(mode="wrap")
    def only_own(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is not set."""
        return {name: value for name, value in handler(self).items() if value not in (None, {}, "")}


ALLOWED = "JUDGE_KEY_COMMANDS"
"""The environment variable with the commands that files may name, one per line."""


def forbidden_command(values: Mapping[str, Any]) -> tuple[str, str]:
    """Return the key of a file's values that names a command which the environment does not allow, and what to do.

    Two empty texts if there is none. A file may come from somebody else; a command line and Python code do not.
    """
    judges = values.get("model")
    judges = judges if isinstance(judges, list | tuple) else [judges]
    systems = values.get("systems")
    writers = systems.values() if isinstance(systems, Mapping) else ()
    named = [("key_command", values)] + [
        ("model", judge) for judge in judges if isinstance(judge, Mapping)
    ]
    named += [("systems", writer) for writer in writers if isinstance(writer, Mapping)]
    allowed = os.environ.get(ALLOWED, "").splitlines()
    for key, place in named:
        command = place.get("key_command")
        if isinstance(command, str) and command.strip() not in map(str.strip, allowed):
            return key, (
                f"a file may not run a command by itself. Read it; to allow it, set ${ALLOWED} to {command!r} (one "
                f"command per line), or give it as {option('key_command')}"
            )
    return "", ""
