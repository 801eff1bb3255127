"""Recorded replies, to be read again offline.

A recording has one line of JSON for each prompt, sorted, without keys. A line has `prompt` (the
digest of `messages`), `model`, `params`, `messages` and `replies`, one for each draw; if they came
from a server also `endpoint`, its address. A line may be `{"note": "..."}` instead, a sentence that
every report of these replies shows.

`Recorder` appends each reply to the file and sorts it at the end. `RecordingFile` reads replies on
demand and keeps only their positions in memory, and `ReplayProvider` answers from it, offline
(docs/decisions/0015-recordings-and-replay.md).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from io import FileIO
from itertools import zip_longest
from pathlib import Path
from sys import intern
from typing import IO, Any, NamedTuple, Self
from weakref import finalize

from rapidfuzz import fuzz
from rapidfuzz.distance import Prefix

from judge.core import files, merge_conflicts
from judge.core.errors import ConfigError, DataError, StorageError, Unrecorded
from judge.core.files import locked
from judge.core.merge_conflicts import conflict_line
from judge.core.messages import option, start_again
from judge.core.plugins import unknown_name_message
from judge.core.records import Choice, Message, Request, Response, Usage
from judge.providers import Provider, recorded_call
from judge.providers.recorded_call import Call, RecordedCall, call_of, digest, encoded

_MAX_DIFFERENCES = 5
# Characters of a line before its first difference, and of the whole line.
_CONTEXT = 60
_MAX_CHARACTERS = 160
# `<output 3f9ac2d1>`: the digest of a fence, which differs for each text.
_FENCE_DIGEST = re.compile(r" [0-9a-f]{8}(?=>)")
# `<output>The boat left.</output>`: a text between fences, after the digests were cut.
_FENCED_TEXT = re.compile(r"<(\w+)>(.*?)</\1>", re.DOTALL)
_LINE_STARTS = (b'{"prompt"', b'{"note"')


def _text(call: Call) -> str:
    """Return the messages as one text, without the digests of fences."""
    messages: list[Message] = json.loads(call.messages)
    turns = []
    for message in messages:
        role = message["role"]
        content = message["content"]
        turns.append(f"{role}: {content}")
    text = "\n".join(turns)
    return _FENCE_DIGEST.sub("", text)


class _Requested:
    """A prompt that was not recorded, as one text, to be compared with recorded ones."""

    def __init__(self, call: Call) -> None:
        self.text = _text(call)
        self._fenced = {match[0] for match in _FENCED_TEXT.finditer(self.text)}
        # Between the fenced texts. `split` also returns the groups of each match.
        self._instructions = _FENCED_TEXT.split(self.text)[:: _FENCED_TEXT.groups + 1]

    def nearest(self, recorded_texts: Iterable[str]) -> str:
        """Return the recorded text that has most in common with this one.

        Its instructions count first, then how many texts between fences are equal (the question of
        an item, for example), then the share of equal characters.
        """
        nearest = ""
        most_likely = (False, -1)
        highest_ratio = -1.0
        for recorded in recorded_texts:
            same_instructions = all(part in recorded for part in self._instructions)
            equal_texts = sum(fenced in recorded for fenced in self._fenced)
            likeness = (same_instructions, equal_texts)
            if likeness < most_likely:
                continue
            # It takes longest, so only prompts that are as likely as the best one are compared.
            ratio = fuzz.ratio(self.text, recorded)
            if likeness > most_likely or ratio > highest_ratio:
                nearest = recorded
                most_likely = likeness
                highest_ratio = ratio
        return nearest


def _differences(recorded: str, requested: str) -> str:
    """Return the lines in which two texts differ, each recorded one above the new one.

    Lines are whole, because half a sentence of each text would read as one that nobody wrote.
    """
    before = recorded.splitlines()
    after = requested.splitlines()
    pairs: list[tuple[str | None, str | None]] = []
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind != "equal":
            pairs += zip_longest(before[start:end], after[new_start:new_end])
    text = ""
    for old_line, new_line in pairs[:_MAX_DIFFERENCES]:
        text += _changed_line(old_line, new_line)
    n_more = len(pairs) - _MAX_DIFFERENCES
    if n_more > 0:
        text += f"\n… {n_more} more lines"
    return text


def _changed_line(recorded: str | None, requested: str | None) -> str:
    """Return a line of each text with its sign, None for one that the text does not have.

    Long lines are cut around the first difference, at the same position.
    """
    old = recorded or ""
    new = requested or ""
    is_long = max(len(old), len(new)) > _MAX_CHARACTERS
    n_equal = Prefix.similarity(old, new)
    start = max(0, n_equal - _CONTEXT) if is_long else 0
    end = start + _MAX_CHARACTERS
    lines = ""
    for sign, line in (("-", recorded), ("+", requested)):
        if line is None:
            continue
        cut_before = "…" if start else ""
        cut_after = "…" if len(line) > end else ""
        excerpt = "(empty line)"
        if line.strip():
            excerpt = cut_before + line[start:end] + cut_after
        lines += f"\n  {sign} {excerpt}"
    return lines


class _Span(NamedTuple):
    """The position of a line in the file, in bytes."""

    start: int
    length: int


class _Key(NamedTuple):
    """What identifies a line, in the order of lines."""

    model: str
    prompt: str
    params: str
    endpoint: str


class RecordingFile:
    """The replies in a file; of several replies to the same draw of a call, the last one counts.

    It reads the file's content at the time of opening, even if lines are added or the file is
    replaced meanwhile. `note` is the file's note about all replies, and `digest` the SHA-256 of its
    lines. `cut` is whether the last line is unfinished and was ignored. Each prompt takes about
    500 bytes of memory.

    Raises DataError, with the line, for a file that is no recording; if `strict` also for a reply
    that contradicts its tokens, as after an edit by hand.
    """

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        self.note = ""
        self.reasoning: set[str] = set()
        """The models that a reply shows to reason before they answer."""
        self.cut = False
        self._path = path
        # For each call, the line that has each of its draws.
        self._spans: dict[_Key, dict[int, _Span]] = {}
        self._servers = {""}
        self._file = _opened(path)
        self._close = finalize(self, self._file.close)
        try:
            self.digest = self._read_lines(strict)
        except DataError:
            self.close()
            raise

    def _read_lines(self, strict: bool) -> str:
        """Index all lines and return their digest."""
        hashed = hashlib.sha256()
        start = 0
        for number, raw_line in enumerate(self._file, 1):
            span = _Span(start, len(raw_line))
            start += len(raw_line)
            if not raw_line.strip():
                continue
            try:
                line = recorded_call.read(raw_line)
            except ValueError as error:
                # A killed process may have left a part of a line, which has no line end.
                begins_line = raw_line.startswith(_LINE_STARTS)
                self.cut = begins_line and not raw_line.endswith(b"\n")
                if self.cut:
                    break
                if conflict_line(raw_line) is not None:
                    advice = merge_conflicts.ADVICE_FOR_LINES
                    raise DataError(f"{self._path}:{number}: {advice}") from error
                problem = str(error)
                if isinstance(error, json.JSONDecodeError):
                    problem = "no JSON"
                raise DataError(
                    f"{self._path}:{number}: not a line of a recording: {problem}; name a file "
                    f"that {option('record', 'FILE')} wrote"
                ) from error
            hashed.update(raw_line)
            if isinstance(line, str):
                self._add_note(line)
                continue
            problem = recorded_call.contradiction(line) if strict else ""
            if problem:
                raise DataError(f"{self._path}:{number}: {problem}")
            self._index(line, span)
        return hashed.hexdigest()

    def _add_note(self, note: str) -> None:
        if note not in self.note:
            self.note = f"{self.note} {note}".strip()

    def _index(self, line: RecordedCall, span: _Span) -> None:
        # Most lines share their model, parameters and server: one text of each is enough.
        model = intern(line.call.model)
        params = intern(line.call.params)
        endpoint = intern(line.endpoint)
        call_key = _Key(
            model=model, prompt=digest(line.call), params=params, endpoint=endpoint
        )
        self._servers.add(call_key.endpoint)
        if any(response.reasoned for response in line.replies.values()):
            self.reasoning.add(call_key.model)
        span_by_draw = dict.fromkeys(line.replies, span)
        self._spans.setdefault(call_key, {}).update(span_by_draw)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Return the number of calls with replies."""
        return len(self._spans)

    def close(self) -> None:
        """Close the file."""
        self._close()

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were asked, sorted."""
        return tuple(sorted({key.model for key in self._spans}))

    def draws(self, model: str) -> int:
        """Return the most replies of this model that any prompt has."""
        spans_of_model = [
            spans for call_key, spans in self._spans.items() if call_key.model == model
        ]
        counts = [len(spans) for spans in spans_of_model]
        return max(counts, default=0)

    @property
    def ambiguous_servers(self) -> tuple[str, ...]:
        """The servers of the first call that has replies of several; empty if there is none."""
        servers = sorted(self._servers - {""})
        if len(servers) < 2:
            return ()
        for key in self._spans:
            servers_of_call = [
                server
                for server in servers
                if key._replace(endpoint=server) in self._spans
            ]
            if len(servers_of_call) > 1:
                return tuple(servers_of_call)
        return ()

    def servers_of(self, model: str) -> tuple[str, ...]:
        """Return the addresses at which a model was asked, as far as they were recorded."""
        servers = {key.endpoint for key in self._spans if key.model == model}
        return tuple(sorted(servers - {""}))

    def decides(self, model: str) -> bool:
        """Return whether a model was asked nothing but typed questions."""
        params = {key.params for key in self._spans if key.model == model}
        return bool(params) and all('"questions"' in text for text in params)

    def lines(self) -> Iterator[RecordedCall]:
        """Yield each call with the replies that count.

        Raises DataError if the file was changed meanwhile.
        """
        for call_key in self._spans:
            yield self._merged_line(call_key)

    def find(self, request: Request) -> list[Response]:
        """Return the replies to a request's draws, from the first one to the first missing one.

        Raises DataError if the file was changed meanwhile.
        """
        call = call_of(request)
        spans = self._spans.get(self._key(call), {})
        lines: dict[_Span, RecordedCall] = {}
        responses: list[Response] = []
        for draw in range(request.draw, _end_of_draws(request)):
            span = spans.get(draw)
            if span is None:
                break
            if span not in lines:
                lines[span] = self._read(span)
            # The key has a short digest of the messages, so two calls might share it.
            if lines[span].call != call:
                return []
            responses.append(lines[span].replies[draw])
        return responses

    def holds_any(self, model: str, prompts: Collection[str]) -> bool:
        """Return whether a model was asked one of the prompts with these digests."""
        recorded_prompts = {key.prompt for key in self._spans if key.model == model}
        return not recorded_prompts.isdisjoint(prompts)

    def explain(self, request: Request, others: Collection[str] = ()) -> str:
        """Return why there is no reply to a request: the difference from the most similar call.

        `others` are digests of the prompts of other texts: theirs is not the reply that is missing.
        """
        call = call_of(request)
        call_key = self._key(call)
        call_keys = [
            recorded for recorded in self._spans if recorded.model == request.model
        ]
        if not call_keys:
            models = ", ".join(self.models) or "no model"
            return f"it holds replies of {models}, none of {request.model}"
        if call_key in self._spans:
            draw = _end_of_draws(request)
            n_draws = len(self._spans[call_key])
            return (
                f"it holds {n_draws} draws of this prompt, and draw {draw} was asked for "
                f"({option('draws', n_draws)})"
            )
        for recorded in call_keys:
            if recorded.prompt == call_key.prompt:
                differences = _differences_of_params(recorded.params, call.params)
                settings = ("weighting", "temperature", "max_tokens")
                options = ", ".join(map(option, settings))
                return f"this prompt was recorded with {differences} ({options})"
        unused = [recorded for recorded in call_keys if recorded.prompt not in others]
        requested = _Requested(call)
        compared_keys = unused or call_keys
        recorded_texts = (_text(self._call(recorded)) for recorded in compared_keys)
        nearest_text = requested.nearest(recorded_texts)
        differences = _differences(nearest_text, requested.text)
        if not unused:
            return (
                "the text is new. The prompt of the most similar other text differs "
                f"(- that one, + asked):{differences}"
            )
        return f"the most similar recorded prompt differs (- recorded, + asked):{differences}"

    def write(self, path: Path) -> None:
        """Write all lines into a file, sorted, completely or not at all. Raises OSError."""
        with files.replacing(path) as file:
            if self.note:
                file.write(encoded({"note": self.note}))
            for call_key in sorted(self._spans):
                spans = set(self._spans[call_key].values())
                if len(spans) == 1:
                    # Nothing to merge: the line is copied without parsing it.
                    file.write(self._raw(*spans))
                else:
                    line = self._merged_line(call_key)
                    file.write(recorded_call.write(line))

    def _merged_line(self, call_key: _Key) -> RecordedCall:
        """Return one line with all replies to a call, which may be on several lines."""
        spans = self._spans[call_key]
        lines = {span: self._read(span) for span in set(spans.values())}
        replies = {}
        for draw, span in spans.items():
            replies[draw] = lines[span].replies[draw]
        first_line, *_ = lines.values()
        return RecordedCall(first_line.call, call_key.endpoint, replies)

    def _key(self, call: Call) -> _Key:
        """Return the key of the line of a call; without a server if there is no such line."""
        plain_key = _Key(call.model, digest(call), call.params, "")
        # "" comes last, because lines without a server are older.
        for server in sorted(self._servers, reverse=True):
            call_key = plain_key._replace(endpoint=server)
            if call_key in self._spans:
                return call_key
        return plain_key

    def _call(self, call_key: _Key) -> Call:
        first_span, *_ = self._spans[call_key].values()
        return self._read(first_span).call

    def _read(self, span: _Span) -> RecordedCall:
        try:
            line = recorded_call.read(self._raw(span))
        except ValueError:
            line = ""
        if isinstance(line, str):
            raise DataError(
                f"recording {self._path}: it was changed while it was read; start again"
            )
        return line

    def _raw(self, span: _Span) -> bytes:
        self._file.seek(span.start)
        raw_line = self._file.read(span.length)
        if raw_line.endswith(b"\n"):
            return raw_line
        return raw_line + b"\n"


def _end_of_draws(request: Request) -> int:
    """Return the number of the draw after the last one of a request."""
    return request.draw + int(request.params.get("n", 1))


def _differences_of_params(recorded_json: str, requested_json: str) -> str:
    recorded = json.loads(recorded_json)
    requested = json.loads(requested_json)
    differences = []
    for parameter in sorted({*recorded, *requested}):
        if recorded.get(parameter) != requested.get(parameter):
            old_value = f"{recorded.get(parameter, 'none')!s:.60}"
            new_value = f"{requested.get(parameter, 'none')!s:.60}"
            differences.append(f"{parameter} {old_value}, not {new_value}")
    return "; ".join(differences)


def _opened(path: Path) -> IO[bytes]:
    try:
        if path.exists() and not path.is_file():
            raise DataError(f"recording {path}: not a file")
        return path.open("rb")
    except OSError as error:
        raise DataError(f"recording {path}: {error.strerror}") from error


class Recorder:
    """Adds replies to a recording; a new reply replaces an earlier one to the same draw of a call.

    Each reply is in the file before `add` returns, so that a killed run loses none; `close` sorts
    the file. Several processes may record into one file at once. `note` is a sentence that every
    report of these replies shows.

    Raises DataError for a file that is no recording, and StorageError if it cannot be written.
    """

    def __init__(self, path: Path, note: str = "") -> None:
        self._path = path
        self._has_calls = False
        self._pending: list[bytes] = []
        if note:
            self._pending.append(encoded({"note": note}))
        if path.exists() and not path.is_file():
            raise DataError(f"recording {path}: not a file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Opening the file raises the error of a file that is no recording.
            with locked(path), RecordingFile(path):
                pass
        except OSError as error:
            reason = error.strerror or error
            raise StorageError(f"recording {path}: {reason}") from error

    def add(self, request: Request, response: Response) -> None:
        """Record the reply to a request for one draw. `flush` retries what cannot be written."""
        if not response.choices:
            return
        line = recorded_call.line_of(request, response)
        self._has_calls = True
        self._pending.append(recorded_call.write(line))
        # The judging goes on: `flush` tries again, and raises the error.
        with suppress(OSError):
            self._write()

    def flush(self) -> None:
        """Write the replies that are not in the file yet.

        Raises StorageError if that fails; the replies are kept for the next try.
        """
        try:
            if self._has_calls:
                self._write()
        except OSError as error:
            raise StorageError(
                f"recording {self._path}: {error.strerror or error}; make room on the disk, or "
                "record elsewhere, and start the same command again: what is in the cache is "
                "recorded without asking"
            ) from error

    def close(self) -> None:
        """Sort the recording.

        Raises StorageError and DataError; the file then has all replies in the order they came.
        """
        self.flush()
        try:
            if self._has_calls:
                with locked(self._path), RecordingFile(self._path) as recording:
                    recording.write(self._path)
        except OSError as error:
            raise StorageError(
                f"recording {self._path}: {error.strerror or error}; it has all replies, but is "
                f"not sorted: make room on the disk and {start_again()}"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self) -> None:
        """Append the pending lines, or nothing if not all can be written."""
        if not self._pending:
            return
        with locked(self._path) as file:
            text = self._line_end(file) + b"".join(self._pending)
            size = os.fstat(file.fileno()).st_size
            try:
                while text:
                    written = file.write(text) or 0
                    text = text[written:]
            except OSError:
                os.ftruncate(file.fileno(), size)
                raise
        self._pending.clear()

    def _line_end(self, file: FileIO) -> bytes:
        """Return the line end that the last line lacks; cut an unfinished line off.

        A killed process leaves a line unfinished, an editor may leave out the last line end.
        """
        with self._path.open("rb") as content:
            size = content.seek(0, os.SEEK_END)
            content.seek(max(size - 1, 0))
            if content.read(1) in (b"", b"\n"):
                return b""
            content.seek(0)
            last_line = deque(content, maxlen=1)[0]
        try:
            recorded_call.read(last_line)
        except ValueError:
            os.ftruncate(file.fileno(), size - len(last_line))
            return b""
        return b"\n"


# Misses that are explained. Finding the most similar prompt takes longer than everything else.
_MAX_EXPLAINED = 20


class ReplayProvider(Provider):
    """Answers with recorded replies, and refuses requests that were not recorded with a reason.

    `decides` if the model was asked nothing but typed questions, `reasons` if a reply shows that it
    does. `draws` are the most that a prompt has, `servers` the addresses at which the model was
    asked. Nothing costs anything: the usage is that of today, not of the recording.
    """

    name = "replay"

    def __init__(self, path: Path, model: str, recorded: RecordingFile) -> None:
        self.model = model
        self.endpoint = f"replay:{recorded.digest[:12]}"
        self.decides = recorded.decides(model)
        self.notice = recorded.note
        # Only replies that no model wrote have a note.
        self.asked_no_model = bool(recorded.note)
        if not self.notice:
            source = f"Recorded replies ({path.name})"
            self.notice = f"{source}: no model was asked in this run."
        self.draws = recorded.draws(model)
        self.servers = recorded.servers_of(model)
        self.reasons = model in recorded.reasoning
        self._path = path
        self._recorded = recorded
        self._explained = 0
        self._expected: Callable[[], Collection[str]] = tuple
        self._known: Collection[str] | None = None

    def expect(self, prompts: Callable[[], Collection[str]]) -> None:
        """Take the digests of all prompts to come, which tell a changed text from another one."""
        self._expected = prompts
        self._known = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes the provider in another process that has the same file."""
        return _rebuild, (self._path.absolute(), self.model)

    async def complete(self, request: Request) -> Response:
        """Return the recorded reply. Raises Unrecorded if there is none."""
        responses = self._recorded.find(request)
        if not responses:
            raise self._unrecorded(request)
        choices: list[Choice] = []
        unmet: list[str] = []
        for response in responses:
            choices += response.choices
            unmet += response.unmet
        served_by = responses[0].served_by
        each_unmet_once = dict.fromkeys(unmet)
        return Response(tuple(choices), Usage(), served_by, tuple(each_unmet_once))

    def _unrecorded(self, request: Request) -> Unrecorded:
        # This is a repair question: only it has a message of the assistant, the reply it is about.
        if any(message["role"] == "assistant" for message in request.messages):
            return Unrecorded(f"{self._path.name} does not hold the reply to it")
        if self._known is None:
            self._known = frozenset(self._expected())
        others = self._known
        self._explained += 1
        if self._explained <= _MAX_EXPLAINED:
            reason = self._recorded.explain(request, others)
        else:
            reason = (
                "another prompt was recorded, or none "
                f"(the first {_MAX_EXPLAINED} failures say what differs)"
            )
        record = option("record", str(self._path))
        prompt = digest(call_of(request))
        has_other_params = self._recorded.holds_any(self.model, [prompt])
        # If other prompts of the run are recorded, only some texts have changed.
        holds_others = self._recorded.holds_any(self.model, others)
        is_changed_text = holds_others and not has_other_params
        model_option = option("model")
        replay_option = option("replay")
        message = (
            f"{self._path.name} does not hold the reply: {reason}\n"
            f"To record it, run this again with {model_option} and {record} instead of "
            f"{replay_option}: new replies are added to the file"
        )
        return Unrecorded(message, stops="never" if is_changed_text else "if_first")


def _rebuild(path: Path, model: str) -> ReplayProvider:
    return replayed(path, [model])[0]


def replayed(path: Path, models: Sequence[str]) -> list[ReplayProvider]:
    """Return a provider for each of these models, by default for all that were recorded.

    Raises DataError and ConfigError.
    """
    recorded = RecordingFile(path, strict=True)
    if not recorded:
        record_option = option("record", str(path))
        raise DataError(
            f"recording {path}: it holds no replies, as the run that made it ended before the "
            f"first one: record again with {record_option}"
        )
    servers = recorded.ambiguous_servers
    if servers:
        raise DataError(
            f"recording {path}: it holds replies of two servers to one prompt, "
            f"{' and '.join(servers)}: "
            "judge doctor cache export --base-url URL writes those of one"
        )
    for model in models:
        if model not in recorded.models:
            message = unknown_name_message("model", model, list(recorded.models))
            replay_option = option("replay", str(path))
            raise ConfigError(f"{replay_option}: {message}")
    asked_models = models or recorded.models
    return [ReplayProvider(path, model, recorded) for model in asked_models]
