"""Replies written down, to be read again offline: one line of JSON for each prompt, sorted, without keys.

A line holds `prompt` (the digest of `messages`), `model`, `params`, `messages` and `replies`, one for each draw; where
they came from a server also `endpoint`, its address. The first line may be `{"note": "..."}` instead, a sentence
that every report of these replies shows.
"""

from judge.providers.recording.file import Entry, Recorder, Recording, RecordingFile, entries, journals, read
from judge.providers.recording.format import Call, request_of, server_of

__all__ = [
    "Call",
    "Entry",
    "Recorder",
    "Recording",
    "RecordingFile",
    "entries",
    "journals",
    "read",
    "request_of",
    "server_of",
]
