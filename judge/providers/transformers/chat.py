"""Messages to the tokens of a prompt, by a model's own chat template."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from judge.core import huggingface
from judge.core.errors import ConfigError, Refused
from judge.core.records import Message, whole

_PROBE = "Is this a probe?"


class Chat:
    """A model's tokenizer with its template. Raises ConfigError where that cannot be used.

    What the template puts between messages are tokens of their own, which no text in a message can fake: where one is
    spelt out in a message, a space is put behind its first character.
    """

    def __init__(self, tokenizer: Any, files: huggingface.Files) -> None:
        self.tokenizer, self._files = tokenizer, files
        if not tokenizer.chat_template:
            raise files.error(
                "it has no chat template, so it was not tuned to answer: name one that was (often -Instruct, -it or "
                "-chat in its name), save its template as chat_template.jinja beside it, or have a server run it and "
                "name that server with --base-url"
            )
        marks = {added.content for added in tokenizer.added_tokens_decoder.values() if added.special}
        marks = {mark for mark in marks if len(mark.strip()) > 1}
        longest_first = sorted(marks, key=lambda mark: (-len(mark), mark))
        self._marks = re.compile("|".join(map(re.escape, longest_first))) if marks else None
        try:
            shown = self._worded(({"role": "user", "content": _PROBE},))
        except Refused as error:
            raise ConfigError(str(error)) from error
        if _PROBE not in shown:
            raise files.error("its chat template leaves out what a user says: name another model")

    def tokens(self, asked: Sequence[Sequence[Message]]) -> list[list[int] | Refused]:
        """The prompt of each list of messages, up to where the reply begins; Refused for one that has none."""
        worded: list[str | Refused] = []
        for messages in asked:
            try:
                worded.append(self._worded(messages))
            except Refused as error:
                worded.append(error)
        texts = [text for text in worded if isinstance(text, str)]
        read = iter(self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if texts else ())
        return [next(read) if isinstance(text, str) else text for text in worded]

    def _worded(self, messages: Sequence[Message]) -> str:
        """The text that a template makes of messages. Raises Refused."""
        said = [{"role": one["role"], "content": self._harmless(one["content"])} for one in messages]
        try:
            text = self.tokenizer.apply_chat_template(
                said, tokenize=False, add_generation_prompt=True, enable_thinking=False
            )
        except Exception as error:  # a template may raise whatever it likes
            roles = ", ".join(dict.fromkeys(one["role"] for one in said))
            raise Refused(
                f"{self._files.label}: its chat template cannot word messages of {roles}: {huggingface.first_line(error)}"
            ) from error
        return str(text)

    def _harmless(self, text: str) -> str:
        """The text, in which no token of the template's is spelt out."""
        text = whole(text)
        return self._marks.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text) if self._marks else text
