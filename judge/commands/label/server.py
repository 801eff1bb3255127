"""The local server of `judge label`: one page for each rater, and one address that takes their
ratings.

It listens on 127.0.0.1 only. The address of each rater begins with a token of their own, so that
nobody rates in another's name. A request for another host is refused, so that no other web page can
read texts or write ratings (DNS rebinding).
"""

from __future__ import annotations

import hmac
import json
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from judge.commands.label.command import Labelling
from judge.commands.label.page import label_page
from judge.core.errors import DataError, JudgeError
from judge.text.languages import html_language

_HOST = "127.0.0.1"
_LONGEST_BODY = 100_000  # bytes


def page(labelling: Labelling, rater: str | None, *, served: bool) -> str:
    """Return the page. A served one is for a `rater` and has the ratings so far.

    A page that is not served is for all raters, asks who you are, keeps their ratings in the
    browser and saves them as a file.
    """
    # By id, because the order of the data would show the systems.
    units = sorted(labelling.units.values(), key=lambda unit: unit.id)
    sources = list(dict.fromkeys(unit.around for unit in units))
    source_numbers = {around: number for number, around in enumerate(sources)}
    content: dict[str, Any] = {
        "id": labelling.id,
        "served": served,
        "pairwise": labelling.pairwise,
        "raters": labelling.raters,
        "rater": rater,
        "criteria": _criteria_content(labelling),
        "sources": sources,
        "units": {unit.id: [source_numbers[unit.around], *unit.texts] for unit in units},
        "orders": {
            name: _order_content(labelling, name)
            for name in (labelling.raters if rater is None else (rater,))
        },
        "done": _done_content(labelling, rater) if served else [],
    }
    texts = "\n".join(text for unit in units for text in unit.texts)
    return label_page(content, language=html_language(labelling.language, texts))


def _criteria_content(labelling: Labelling) -> list[dict[str, Any]]:
    """Return each criterion with its lines, its labels and the labels at the ends of the scale."""
    content = []
    for criterion, lines in zip(labelling.criteria, labelling.instructions, strict=True):
        scale = criterion.scale
        lowest = scale.asked.labels[scale.asked.values.index(scale.low)]
        highest = scale.asked.labels[scale.asked.values.index(scale.high)]
        content.append(
            {
                "name": criterion.name,
                "title": criterion.title,
                "lines": lines,
                "labels": scale.asked.labels,
                "ends": [lowest, highest],
            }
        )
    return content


def _order_content(labelling: Labelling, rater: str) -> list[list[Any]]:
    return [[task.unit.id, task.repeat, task.flip] for task in labelling.tasks(rater)]


def _done_content(labelling: Labelling, rater: str | None) -> list[list[Any]]:
    """Return the ratings of a rater: unit, criterion, repetition, value and comment."""
    content: list[list[Any]] = []
    for (name, *unit_and_criterion), answer in labelling.done().items():
        if name == rater:
            content.append([*unit_and_criterion, *answer])
    return content


class LabelServer(ThreadingHTTPServer):
    """Serves the pages of a labelling and records ratings. `port` and `token` are random by
    default.

    The raters' own tokens are made of `token`, which is told to nobody.
    """

    daemon_threads = True

    def __init__(self, labelling: Labelling, *, port: int = 0, token: str = "") -> None:
        super().__init__((_HOST, port), _Handler)
        self.labelling = labelling
        self.token = token or secrets.token_urlsafe(16)
        self.raters = {self.token_of(rater): rater for rater in labelling.raters}
        self.hosts = {f"{_HOST}:{self.server_port}", f"localhost:{self.server_port}"}

    def token_of(self, rater: str) -> str:
        """Return the token with which the addresses of a rater begin."""
        # A name from the command line may hold bytes that are not UTF-8, as lone surrogates.
        name = rater.encode("utf-8", "surrogatepass")
        return hmac.new(self.token.encode(), name, "sha256").hexdigest()[:32]

    def url(self, rater: str) -> str:
        """Return the address of a rater's page."""
        return f"http://{_HOST}:{self.server_port}/{self.token_of(rater)}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print no traceback for a browser that closed its connection."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: LabelServer
    timeout = 30  # seconds for a request; browsers open connections that they do not use

    def do_GET(self) -> None:
        """Answer with the page."""
        address = self._asked()
        if address is None:
            return
        rater, path = address
        if path != "":
            self._answer(HTTPStatus.NOT_FOUND, "no such page")
            return
        try:
            text = page(self.server.labelling, rater, served=True)
        except JudgeError as error:
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        else:
            self._answer(HTTPStatus.OK, text, "text/html")

    def do_POST(self) -> None:
        """Record a rating."""
        address = self._asked()
        if address is None:
            return
        rater, path = address
        length = self.headers.get("Content-Length", "")
        if path != "rate" or self.headers.get_content_type() != "application/json":
            self._answer(HTTPStatus.NOT_FOUND, "no such address")
            return
        if not length.isdecimal() or int(length) > _LONGEST_BODY:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too long for a rating")
            return
        try:
            rating = json.loads(self.rfile.read(int(length)))
            if isinstance(rating, dict) and rating.get("rater", rater) != rater:
                message = f"this is the address of {rater}; use your own"
                self._answer(HTTPStatus.FORBIDDEN, message)
                return
            self.server.labelling.record(rating)
        except (ValueError, RecursionError):
            self._answer(HTTPStatus.BAD_REQUEST, "not JSON")
        except DataError as error:
            self._answer(HTTPStatus.BAD_REQUEST, str(error))
        except JudgeError as error:
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        else:
            self._answer(HTTPStatus.OK, "")

    def _asked(self) -> tuple[str, str] | None:
        """Return the rater of this address and the path after the token.

        None if the request was refused.
        """
        _, token, *path = f"{urlsplit(self.path).path}/".split("/", 2)
        sent_token = token.encode()
        # All tokens are compared, so that the time tells nothing.
        matching = [
            rater
            for rater_token, rater in self.server.raters.items()
            if secrets.compare_digest(sent_token, rater_token.encode())
        ]
        if not matching or self.headers.get("Host") not in self.server.hosts:
            self._answer(HTTPStatus.FORBIDDEN, "Open the address that judge label printed for you.")
            return None
        return matching[0], path[0].strip("/")

    def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
        body = text.encode("utf-8", "replace")
        self.send_response_only(status)
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing for a request: its address has the token."""
