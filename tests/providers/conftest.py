"""Fixtures for the providers' tests."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def asked_paths(chat_server: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the requests to `chat_server`, in order."""
    paths: list[str] = []
    handler = chat_server._http.RequestHandlerClass
    answer = handler.do_POST

    def note(self: Any) -> None:
        paths.append(self.path)
        answer(self)

    monkeypatch.setattr(handler, "do_POST", note)
    return paths


def error(message: str = "it said so", **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "t", "param": None, "code": None} | fields}


@pytest.fixture
def make_error() -> Any:
    """A function that returns an error body in OpenAI's format."""
    return error
