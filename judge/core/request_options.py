"""A judge as a user names it, and what is added to its requests.

That is headers, keys of the body, and a command for the key. `hidden` decides what is a secret.
Secrets, and the values of all headers, are sent and never stored.
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
# "Authorization", "X-Api-Key", "session_token"; but not "max_tokens" or "tokenizer"
_SECRET_NAME = re.compile(
    r"auth|key|token(?!s|iz)|secret|cookie|passw|credential|bearer|jwt|signature",
    re.IGNORECASE,
)
# "Bearer abc", and the prefixes of keys of OpenAI, GitHub, Slack, Hugging Face, Groq, xAI, AWS and
# Google, and of JSON Web Tokens
_SECRET_VALUE = re.compile(
    r"(?:bearer|basic) \S"
    r"|(?:sk-|gh[pousr]_|xox[a-z]-|hf_|gsk_|xai-|AKIA|AIza|eyJ)[\w-]{12}",
    re.IGNORECASE,
)
_LONGEST_LABEL = 60
_DIGEST_LENGTH = 12
# "X-Team": the characters of a token in RFC 9110, section 5.6.2
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# "OPENAI_API_KEY"
_VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*")
_OWN_HEADERS = (
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
)
# Keys of a request that judge sets, and the option for each, "" if there is none. The last three
# are judge's own and never sent.
_OWN_KEYS = {
    "messages": "criteria",
    "model": "model",
    "n": "draws",
    "temperature": "temperature",
    "logprobs": "weighting",
    "top_logprobs": "weighting",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "response_format": "structured",
    "reasoning_effort": "reasoning_effort",
    "stream": "",
    "stream_options": "",
    "prompt_cache_key": "",
    "prompt_cache_options": "",
    "criterion": "",
    "questions": "",
    "headers": "",
}


def hidden(value_name: str, value: Any) -> bool:
    """Return whether a value may be a secret: by its name, or because it looks like a key."""
    if not isinstance(value, str):
        return False
    return bool(_SECRET_NAME.search(value_name) or _SECRET_VALUE.match(value))


def header_digest(header_name: str, value: str) -> str:
    """Return what is stored of a header's value: a digest, and nothing at all of a secret.

    No rule knows every secret by its name (`X-Pass`, `X-Sig`), so no value itself is stored.
    """
    if value.startswith(HIDDEN):
        # It was read from a stored run.
        return value
    if hidden(header_name, value):
        return HIDDEN
    digest = hashlib.sha256(value.encode()).hexdigest()
    return HIDDEN + digest[:_DIGEST_LENGTH]


def public_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the digests of the headers that are no secret, with names in lower case.

    Requests with other headers may have other replies. A secret is left out, so that a new key
    finds the replies of the old one.
    """
    digests = {}
    for header_name, value in headers.items():
        if not hidden(header_name, value):
            digests[header_name.lower()] = header_digest(header_name, value)
    return digests


def _parse_headers(value: Any) -> Any:
    """Accept `NAME=VALUE`, and a list of such texts and mappings."""
    headers: dict[str, Any] = {}
    for layer in value if isinstance(value, list | tuple) else [value]:
        if isinstance(layer, str):
            header_name, equals, text = layer.partition("=")
            if not (equals and header_name.strip()):
                raise ValueError("write NAME=VALUE, such as X-Team=evals")
            headers[header_name.strip()] = text.strip()
        elif not isinstance(layer, Mapping):
            return value
        else:
            headers |= layer
    for header_name, text in headers.items():
        if not isinstance(text, str):
            raise ValueError(f"{header_name}: write its value as a text, in quotes")
    return headers


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for header_name, value in headers.items():
        if not _HEADER_NAME.fullmatch(header_name):
            raise ValueError(f"{header_name!r} is not a valid name of an HTTP header")
        if header_name.lower() in _OWN_HEADERS:
            raise ValueError(f"{header_name}: judge sets this header itself")
        # A stored value has a digest in its place, which is not sent.
        is_line = value.isascii() and value.isprintable() and value.strip()
        if not is_line and not value.startswith(HIDDEN):
            raise ValueError(
                f"{header_name}: a header's value is a line of printable ASCII characters"
            )
    if len({header_name.lower() for header_name in headers}) < len(headers):
        raise ValueError("one header has two values; their names differ only in case")
    return headers


def _header_digests(headers: dict[str, str]) -> dict[str, str]:
    return {
        header_name: header_digest(header_name, value)
        for header_name, value in headers.items()
    }


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
    for body_key in body:
        if body_key in _OWN_KEYS:
            own_option = _OWN_KEYS[body_key]
            advice = f"; use {option(own_option)}" if own_option else ""
            raise ValueError(f"{body_key}: judge sends this itself{advice}")
    try:
        text = json.dumps(body, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ValueError("a value cannot be written as JSON") from None
    # Read again, so that it has only JSON's types.
    plain: dict[str, Any] = json.loads(text, parse_int=_integer)
    secret_name = _secret_in(plain)
    if secret_name:
        raise ValueError(
            f"{secret_name}: may be a secret, and the body of a request is stored with its reply; "
            f"send a secret as a header: {option('headers')}"
        )
    return plain


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of more than {MAX_DIGITS} digits")
    return int(digits)


def _secret_in(value: Any, value_name: str = "") -> str:
    """Return the name of the first value, at any depth, that may be a secret, else ""."""
    # The entries of a list have the name of the list.
    parts = [(value_name, part) for part in value]
    if isinstance(value, dict):
        parts = list(value.items())
    for key, part in parts:
        if isinstance(part, dict | list):
            inner_name = _secret_in(part, key)
            if inner_name:
                return inner_name
        elif hidden(key, part):
            return str(key)
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
    is_line = label.isprintable() and label == " ".join(label.split())
    # Signatures separate their parts by |.
    if not is_line or "|" in label or len(label) > _LONGEST_LABEL:
        raise ValueError(
            f"write one line of at most {_LONGEST_LABEL} characters, without |"
        )
    return label


def program(command: str) -> str:
    """Return a command without its arguments, which may hold a secret."""
    program_name, *rest = shlex.split(command)
    return f"{program_name} {HIDDEN}" if rest else program_name


def _check_variable(variable_name: str) -> str:
    """Refuse what cannot be a variable's name.

    It may be the key itself, which would then be written into run.json.
    """
    if not _VARIABLE_NAME.fullmatch(variable_name):
        raise ValueError(
            "names the environment variable that holds the key, such as OPENAI_API_KEY, "
            "and not the key"
        )
    return variable_name


Variable = Annotated[str, AfterValidator(_check_variable)]
Headers = Annotated[
    dict[str, str],
    BeforeValidator(_parse_headers, json_schema_input_type=dict[str, str]),
    AfterValidator(_check_headers),
    PlainSerializer(_header_digests),
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

    input: float = Field(
        ge=0, allow_inf_nan=False, description="Dollars per million tokens read."
    )
    output: float = Field(
        ge=0,
        allow_inf_nan=False,
        description="Dollars per million tokens written.",
    )


KeyCommand = Annotated[str, AfterValidator(_check_command), PlainSerializer(program)]


class ModelSettings(BaseModel):
    """The address and the sampling of a model; its values take precedence over the run's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str | None = Field(default=None, description="Address of its server.")
    key_env: Variable | None = Field(
        default=None, description="Environment variable with its key."
    )
    key_command: KeyCommand | None = Field(
        default=None,
        description="Command that prints its key.",
        repr=False,
    )
    headers: Headers = Field(
        default={}, description="HTTP headers of its requests.", repr=False
    )
    system_message: str | None = Field(
        default=None, description="System message, sent before the prompt."
    )
    reasoning_effort: str | None = Field(
        default=None,
        pattern=r"^[\w-]*$",
        description="How long it reasons first.",
    )
    extra_body: ExtraBody = Field(
        default={}, description="Further keys of its requests."
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="Sampling temperature."
    )
    rpm: int | None = Field(default=None, ge=1, description="Requests per minute.")
    tpm: int | None = Field(default=None, ge=1, description="Tokens per minute.")
    max_concurrency: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="Requests in flight.",
    )
    timeout: float | None = Field(
        default=None,
        gt=0,
        description="Longest wait for a reply, in seconds.",
    )
    price: TokenPrice | None = Field(
        default=None,
        description="Dollars per million tokens, for the budget and costs.",
    )


class Judge(ModelSettings):
    """One judge of a panel; its own settings take precedence over the run's."""

    name: str = Field(min_length=1, description="Name of the model.")
    label: Label = Field(
        default="", description="Name in a panel (default: the model's)."
    )

    @model_serializer(mode="wrap")
    def only_own(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is not set."""
        settings = handler(self).items()
        return {
            field_name: value
            for field_name, value in settings
            if value not in (None, {}, "")
        }


ALLOWED = "JUDGE_KEY_COMMANDS"
"""The environment variable with the commands that files may name, one per line."""


def forbidden_command(values: Mapping[str, Any]) -> tuple[str, str]:
    """Return the key of a file's values whose command is not allowed, and what to do.

    Two empty texts if there is none. A file may come from somebody else; a command line and Python
    code do not (docs/decisions/0074-a-files-key-command-has-to-be-allowed.md).
    """
    judges = values.get("model")
    if not isinstance(judges, list | tuple):
        judges = [judges]
    systems = values.get("systems")
    writers = systems.values() if isinstance(systems, Mapping) else ()
    settings = [("key_command", values)]
    settings += [("model", judge) for judge in judges if isinstance(judge, Mapping)]
    settings += [
        ("systems", writer) for writer in writers if isinstance(writer, Mapping)
    ]
    allowed_lines = os.environ.get(ALLOWED, "").splitlines()
    allowed = [line.strip() for line in allowed_lines]
    for key, setting in settings:
        command = setting.get("key_command")
        if isinstance(command, str) and command.strip() not in allowed:
            return key, (
                "a file may not run a command by itself. Read it; to allow it, set "
                f"${ALLOWED} to {command!r} (one command per line), or give it as "
                f"{option('key_command')}"
            )
    return "", ""
