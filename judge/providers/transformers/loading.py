"""Find and check a local model before a run, load it on first use, and apply its chat template."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
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

    def __init__(self, tokenizer: Any, files: huggingface.ModelFiles) -> None:
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
            text = self._apply_template(({"role": "user", "content": _PROBE},))
        except Refused as error:
            raise ConfigError(str(error)) from error
        if _PROBE not in text:
            raise files.error("its chat template leaves out what a user says: name another model")

    def tokens(self, conversations: Sequence[Sequence[Message]]) -> list[list[int] | Refused]:
        """The prompt of each list of messages, up to where the reply begins; Refused for one that has none."""
        worded: list[str | Refused] = []
        for messages in conversations:
            try:
                worded.append(self._apply_template(messages))
            except Refused as error:
                worded.append(error)
        texts = [text for text in worded if isinstance(text, str)]
        read = iter(self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if texts else ())
        return [next(read) if isinstance(text, str) else text for text in worded]

    def _apply_template(self, messages: Sequence[Message]) -> str:
        """The text that a template makes of messages, in which no token of its own is spelt out. Raises Refused."""
        escaped = []
        for message in messages:
            content = whole(message["content"])
            if self._marks:
                content = self._marks.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", content)
            escaped.append({"role": message["role"], "content": content})
        try:
            text = self.tokenizer.apply_chat_template(
                escaped, tokenize=False, add_generation_prompt=True, enable_thinking=False
            )
        except Exception as error:  # a template may raise whatever it likes
            roles = ", ".join(dict.fromkeys(message["role"] for message in escaped))
            raise Refused(
                f"{self._files.label}: its chat template cannot word messages of {roles}: "
                f"{huggingface.first_line(error)}"
            ) from error
        return str(text)


_WHO, _WHAT = "local", "model"
_DIGEST_LENGTH = 12
_ADVICE = "name one that was tuned to follow instructions (often called -Instruct, -it or -chat)"
_LOADING = threading.Lock()  # what keeps transformers quiet meanwhile is the whole process's


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model that can be a judge, of which only the tokenizer is in memory.

    `where` is what it is found by again, also in another process: a folder's whole path, or a name on the hub. `model`
    is what it is called, the folder's own name and never a path; `endpoint` tells it from every other, by what is in
    its files (on the hub: by the commit) and the numbers that it computes with, `dtype`.
    """

    where: str
    model: str
    endpoint: str
    dtype: str
    files: huggingface.ModelFiles
    chat: Chat
    online: bool

    def load(self) -> Any:
        """The network on its device: the GPU where there is one. Raises ConfigError where it cannot be loaded."""
        with _LOADING:
            if self.online:
                _snapshot(self.where, revision=self.files.folder.name)
                self.files.check_complete()
            loaded = huggingface.load_on(self.files, "AutoModelForCausalLM", None, dtype=self.dtype)
            return loaded.network.requires_grad_(False)


def find(model: str, *, keep: Path | None = None, dtype: str | None = None) -> LocalModel:
    """The model of a folder, or of a name on the hub, of which all but the weights is downloaded where it is not here.

    `keep` is the folder where digests of weights are kept; `dtype` is what to compute with where that is not for this
    machine's device to say. Raises ConfigError for one that cannot be had, or cannot be a judge, MissingExtra for a
    package.
    """
    path = Path(model).expanduser()
    online = not path.is_dir()
    if online:
        # Refuses what can only be meant as a folder, and is none: the hub's names are NAME or OWNER/NAME.
        if path.exists():
            raise ConfigError(f"--model local/{model}: this is a file; name the folder that it lies in")
        if model.startswith((".", "/", "~")) or model.count("/") > 1:
            raise ConfigError(
                f"--model local/{model}: there is no such folder; name one made by save_pretrained, or a model on the "
                "Hugging Face hub, as in local/OWNER/NAME"
            )
    for package in ("torch", "transformers"):  # what is not installed is said before anything is downloaded
        huggingface.version(package, _WHO)
    if online:
        where, name, folder = model, model, _snapshot(model, weights=False)
        files, digest = huggingface.ModelFiles(_WHO, _WHAT, name, folder, ""), folder.name
        files.check_complete(weights=False)
    else:
        where, name = str(path.resolve()), path.resolve().name
        files = huggingface.from_folder(path.resolve(), name=name, who=_WHO, role=_WHAT, cache=keep)
        digest = files.digest
    # Whether it can write text, by what its configuration says.
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as KINDS

    config = files.config()
    kind, architectures = config.get("model_type"), [str(name) for name in config.get("architectures") or ()]
    writes = architectures[0] in set(KINDS.values()) if architectures else kind in KINDS
    if config.get("is_encoder_decoder") or not writes:
        raise files.error(
            f"it is a {architectures[0] if architectures else kind}, which does not go on with a text: {_ADVICE}"
        )
    with _LOADING:
        tokenizer = huggingface.load_tokenizer(files)
    tokenizer.name_or_path = files.label  # for messages
    chat = Chat(tokenizer, files)
    dtype = dtype or ("bfloat16" if huggingface.import_optional("torch", _WHO).cuda.is_available() else "float32")
    return LocalModel(
        where, name.replace("|", "_"), f"local://{digest[:_DIGEST_LENGTH]}:{dtype}", dtype, files, chat, online
    )


def _snapshot(name: str, **options: Any) -> Path:
    return huggingface.snapshot(name, f"--model local/{name}", who=_WHO, **options)
