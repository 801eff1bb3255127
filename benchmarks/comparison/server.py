"""An OpenAI-compatible server with known probabilities, which counts what it is asked.

    python server.py --reply '{score}' [--rubbish] [--latency 0.2]

It prints its port. `--reply` is the form that the tool's prompt asks for. A request with a JSON schema or a tool gets
an object of that schema instead. GET /counts returns what was asked and answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
from collections import Counter
from typing import Any

import cases

_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
# A digit, a word with the space before it, or signs: `{"`, `score`, `":`, ` `, `4`, `}`.
_TOKEN = re.compile(r"\d|\s?[^\W\d]+|[^\w\s]+|\s")
REASON = "The reply is as the question asks."


def prompt_of(request: dict[str, Any]) -> str:
    """Return all texts of the messages."""
    parts = []
    for message in request["messages"]:
        content = message.get("content") or ""
        if isinstance(content, str):
            parts.append(content)
        else:
            parts += [part.get("text", "") for part in content]
    return "\n".join(parts)


def example(schema: dict[str, Any], score: int, definitions: dict[str, Any]) -> Any:
    """Return a value of a JSON schema: each number is the score, and each text a reason."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[-1]]
    for choice in schema.get("anyOf", ()):
        if choice.get("type") != "null":
            return example(choice, score, definitions)
    if "enum" in schema:
        matching = [value for value in schema["enum"] if value in (score, str(score))]
        return matching[0] if matching else schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties", {})
        return {
            name: example(each, score, definitions) for name, each in properties.items()
        }
    if kind == "array":
        return [example(schema.get("items", {}), score, definitions)]
    if kind in ("integer", "number"):
        return score
    if kind == "boolean":
        return score >= 3
    return REASON


def schema_of(request: dict[str, Any]) -> tuple[dict[str, Any], str] | None:
    """Return the schema that a reply must have, and the tool to call (empty without a tool)."""
    if request.get("tools"):
        function = request["tools"][0]["function"]
        return function["parameters"], function["name"]
    form = request.get("response_format") or {}
    if form.get("type") == "json_schema":
        return form["json_schema"]["schema"], ""
    return None


def token(text: str, shares: dict[int, float]) -> dict[str, Any]:
    """Return a token with its alternatives; of a digit, the five labels."""
    alternatives = {text: -0.01}
    if text.isdigit():
        alternatives = {str(label): math.log(share) for label, share in shares.items()}
    top = sorted(alternatives.items(), key=lambda pair: -pair[1])
    listed = [{"token": name, "logprob": value, "bytes": None} for name, value in top]
    return {**listed[0], "token": text, "top_logprobs": listed}


class Server:
    """Answers chat completions after a while, and counts them."""

    def __init__(self, reply: str, *, rubbish: bool, latency: float) -> None:
        self.reply = reply
        self.rubbish = rubbish
        self.latency = latency
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.others = 0
        self.with_logprobs = 0

    def counts(self) -> dict[str, Any]:
        return {
            "asked": self.asked,
            "answered": self.answered,
            "others": self.others,
            "with_logprobs": self.with_logprobs,
        }

    def content(
        self, pair: tuple[int, str] | None, request: dict[str, Any]
    ) -> tuple[str, str]:
        """Return what the model writes, and the tool that it calls (empty if none)."""
        score = cases.label(*pair) if pair else 3
        if pair and self.rubbish:
            wrong = cases.rubbish(*pair)
            key = f"{pair[0]} {pair[1]}"
            if wrong is not None and (wrong[1] or self.asked[key] == 1):
                return wrong[0], ""
        schema = schema_of(request)
        if schema is None:
            return self.reply.replace("{score}", str(score)), ""
        definitions = schema[0].get("$defs", {})
        return json.dumps(example(schema[0], score, definitions)), schema[1]

    def completion(
        self, pair: tuple[int, str] | None, request: dict[str, Any]
    ) -> dict[str, Any]:
        content, tool = self.content(pair, request)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": content,
            "refusal": None,
        }
        finish = "stop"
        if tool:
            call = {"name": tool, "arguments": content}
            message["content"] = None
            message["tool_calls"] = [
                {"id": "call_1", "type": "function", "function": call}
            ]
            finish = "tool_calls"
        choice: dict[str, Any] = {
            "finish_reason": finish,
            "message": message,
            "logprobs": None,
        }
        if request.get("logprobs"):
            shares = cases.probabilities(*pair) if pair else {3: 1.0}
            choice["logprobs"] = {
                "content": [token(text, shares) for text in _TOKEN.findall(content)]
            }
        choices = [{**choice, "index": index} for index in range(request.get("n") or 1)]
        usage = {"prompt_tokens": 300, "completion_tokens": 10, "total_tokens": 310}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": request["model"],
            "choices": choices,
            "usage": usage,
        }

    async def answer(self, body: bytes) -> tuple[int, Any]:
        try:
            request = json.loads(body)
            pair = cases.found_in(prompt_of(request))
        except (ValueError, KeyError) as error:
            return 400, {"error": {"message": f"not a chat completion: {error!r}"}}
        self.with_logprobs += bool(request.get("logprobs"))
        key = f"{pair[0]} {pair[1]}" if pair else ""
        if pair:
            self.asked[key] += 1
        else:
            self.others += 1
        reply = self.completion(pair, request)
        await asyncio.sleep(self.latency)
        if pair:
            self.answered[key] += 1
        return 200, reply

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length.group(1))) if length else b""
                if head.startswith(b"POST"):
                    status, reply = await self.answer(body)
                else:
                    status, reply = 200, self.counts()
                written = json.dumps(reply).encode()
                start = f"HTTP/1.1 {status} OK\r\ncontent-type: application/json\r\n"
                writer.write(
                    f"{start}content-length: {len(written)}\r\n\r\n".encode() + written
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()  # the client is gone


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reply", default="{score}")
    parser.add_argument("--rubbish", action="store_true")
    parser.add_argument("--latency", type=float, default=0.2)
    chosen = parser.parse_args()
    server = Server(chosen.reply, rubbish=chosen.rubbish, latency=chosen.latency)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=1024)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
