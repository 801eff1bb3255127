"""The local server of `judge label`: it shows each rater a page, and records their ratings.

It listens on 127.0.0.1 only. The address of each rater begins with their own token, so that nobody
rates in another's name. A request for another host is refused: another web page could send it from
the rater's browser to read texts or write ratings (DNS rebinding).
"""

from __future__ import annotations

import hmac
import json
import os
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
# The browser keeps ratings that could not be sent, separately for each port. If the next start has
# the same port, its page sends them.
_PORT = 8765
_MAX_RATING_BYTES = 100_000
# The page holds texts and a rater's ratings. No browser may store it, guess its type or show it
# inside another page, and no server may learn its address, which has the token.
_SAFETY_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def page(labelling: Labelling, rater: str | None, *, served: bool) -> str:
    """Return the page as HTML.

    A served page is for one `rater` and has the ratings so far. A page that is a file is for all
    raters (None): it asks for the rater's name, keeps the ratings in the browser, and saves them as
    a file.
    """
    # By id, because the order of the data would show the systems.
    units = sorted(labelling.units.values(), key=lambda unit: unit.id)
    # Many units share a long source, so the page has each source once.
    sources = list(dict.fromkeys(unit.around for unit in units))
    source_numbers = {source: number for number, source in enumerate(sources)}
    unit_contents = {}
    own_columns = {}
    for unit in units:
        number_of_source = source_numbers[unit.around]
        unit_contents[unit.id] = [number_of_source, *unit.texts]
        columns_of_item = labelling.own_columns.get(unit.item)
        if columns_of_item:
            own_columns[unit.id] = columns_of_item
    raters = labelling.raters if rater is None else (rater,)
    orders = {
        rater_name: _order_content(labelling, rater_name) for rater_name in raters
    }
    content: dict[str, Any] = {
        "id": labelling.id,
        "served": served,
        "pairwise": labelling.pairwise,
        "raters": labelling.raters,
        "rater": rater,
        "criteria": _criteria_content(labelling),
        "sources": sources,
        "units": unit_contents,
        "orders": orders,
        "own": own_columns,
        "done": _done_content(labelling, rater) if served else [],
        "progress": labelling.progress() if served else {},
    }
    all_texts = "\n".join(text for unit in units for text in unit.texts)
    return label_page(content, language=html_language(labelling.language, all_texts))


def _criteria_content(labelling: Labelling) -> list[dict[str, Any]]:
    """Return each criterion with its instructions, its labels, and the lowest and highest label."""
    content = []
    instructed_criteria = zip(labelling.criteria, labelling.instructions, strict=True)
    for criterion, lines in instructed_criteria:
        scale = criterion.scale.asked
        lowest = scale.labels[scale.values.index(criterion.scale.low)]
        highest = scale.labels[scale.values.index(criterion.scale.high)]
        criterion_content = {
            "name": criterion.name,
            "title": criterion.title,
            "lines": lines,
            "labels": scale.labels,
            "ends": [lowest, highest],
        }
        content.append(criterion_content)
    return content


def _order_content(labelling: Labelling, rater: str) -> list[list[Any]]:
    """Return the tasks of a rater in order: unit, repetition, and whether the texts swap sides."""
    tasks = labelling.tasks(rater)
    return [[task.unit.id, task.repeat, task.flip] for task in tasks]


def _done_content(labelling: Labelling, rater: str | None) -> list[list[Any]]:
    """Return the ratings of a rater: unit, criterion, repetition, value and comment."""
    content: list[list[Any]] = []
    for (rater_name, *task), answer in labelling.done().items():
        if rater_name == rater:
            content.append([*task, *answer])
    return content


class LabelServer(ThreadingHTTPServer):
    """Serves the pages of a labelling and records ratings.

    `port` is 8765 by default, or any free one if that is in use. `token` is a secret from which the
    tokens of the raters are derived; by default it is random.
    """

    daemon_threads = True
    # On Windows, it would let two servers listen on the same port.
    allow_reuse_address = os.name == "posix"

    def __init__(
        self, labelling: Labelling, *, port: int | None = None, token: str = ""
    ) -> None:
        try:
            first_port = _PORT if port is None else port
            super().__init__((_HOST, first_port), _Handler)
        except OSError:
            if port is not None:
                raise
            super().__init__((_HOST, 0), _Handler)
        self.labelling = labelling
        self.token = token or secrets.token_urlsafe(16)
        self.raters = {self.token_of(rater): rater for rater in labelling.raters}
        self.hosts = {f"{_HOST}:{self.server_port}", f"localhost:{self.server_port}"}

    def token_of(self, rater: str) -> str:
        """Return the token with which the addresses of a rater begin."""
        # A name from the command line may hold bytes that are not UTF-8, as lone surrogates.
        encoded_name = rater.encode("utf-8", "surrogatepass")
        code = hmac.new(self.token.encode(), encoded_name, "sha256")
        return code.hexdigest()[:32]

    def url(self, rater: str) -> str:
        """Return the address of a rater's page."""
        token = self.token_of(rater)
        return f"http://{_HOST}:{self.server_port}/{token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print no traceback for a browser that closed its connection."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: LabelServer
    # Seconds for a request: browsers open connections that they do not use.
    timeout = 30

    def do_GET(self) -> None:
        """Answer with the page, or with the progress of all raters."""
        address = self._checked_address()
        if address is None:
            return
        rater, path = address
        if path not in ("", "progress"):
            self._answer(HTTPStatus.NOT_FOUND, "no such page")
            return
        labelling = self.server.labelling
        try:
            if path:
                progress = json.dumps(labelling.progress())
                self._answer(HTTPStatus.OK, progress, "application/json")
            else:
                html = page(labelling, rater, served=True)
                self._answer(HTTPStatus.OK, html, "text/html")
        except JudgeError as error:
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))

    def do_POST(self) -> None:
        """Record a rating."""
        address = self._checked_address()
        if address is None:
            return
        rater, path = address
        if path != "rate" or self.headers.get_content_type() != "application/json":
            self._answer(HTTPStatus.NOT_FOUND, "no such address")
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MAX_RATING_BYTES:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too long for a rating")
            return
        body = self.rfile.read(int(length))
        try:
            rating = json.loads(body)
            if isinstance(rating, dict) and rating.get("rater", rater) != rater:
                message = f"this is the address of {rater}; use your own"
                self._answer(HTTPStatus.FORBIDDEN, message)
                return
            self.server.labelling.record(rating)
        # Reading deeply nested JSON raises RecursionError, and so may a message that quotes it.
        except (ValueError, RecursionError):
            self._answer(HTTPStatus.BAD_REQUEST, "not JSON")
        except DataError as error:
            self._answer(HTTPStatus.BAD_REQUEST, str(error))
        except JudgeError as error:
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        else:
            self._answer(HTTPStatus.OK, "")

    def _checked_address(self) -> tuple[str, str] | None:
        """Return the rater of this address and the path after the token.

        Otherwise refuse the request and return None.
        """
        # "/TOKEN/rate?x=1" has the token TOKEN and the path "rate".
        whole_path = urlsplit(self.path).path.removeprefix("/")
        token, _, path = whole_path.partition("/")
        rater = self._rater_of(token)
        if rater is None or self.headers.get("Host") not in self.server.hosts:
            advice = "Open the address that judge label printed for you."
            self._answer(HTTPStatus.FORBIDDEN, advice)
            return None
        return rater, path.strip("/")

    def _rater_of(self, token: str) -> str | None:
        """Return the rater with this token; None if there is none."""
        sent_token = token.encode()
        # No early return: each request is compared with all tokens, so that its time tells nothing.
        matching_rater = None
        for rater_token, rater in self.server.raters.items():
            if secrets.compare_digest(sent_token, rater_token.encode()):
                matching_rater = rater
        return matching_rater

    def _answer(
        self,
        status: HTTPStatus,
        text: str,
        media_type: str = "text/plain",
    ) -> None:
        """Send a whole response, without the headers that name the server's software."""
        body = text.encode("utf-8", "replace")
        headers = {
            "Content-Type": f"{media_type}; charset=utf-8",
            "Content-Length": str(len(body)),
            **_SAFETY_HEADERS,
        }
        self.send_response_only(status)
        for header_name, value in headers.items():
            self.send_header(header_name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing for a request: its address has the token."""
