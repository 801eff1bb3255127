"""Verify claims by a cross-encoder for natural language inference (NLI).

The model gives the probability that a text entails a claim. Any sequence classifier of transformers
will do: MNLI and XNLI models, fact checkers with two classes (MiniCheck, FactCC), AlignScore if
converted, and models with one logit (HHEM-1.0). All read the text first, then the claim.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.core import huggingface, normalization
from judge.metrics.base import ModelError, Tell, no_progress
from judge.metrics.common import text_option

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_EXTRA = "qags"  # the extra that installs the packages needed here
# As MNLI, FEVER (supports), FactCC (correct) and AlignScore (aligned) call the class
_ENTAILMENT = frozenset((
    "entailment", "entailed", "entails", "supported", "supports", "support", "consistent",
    "faithful", "aligned", "correct",
))  # fmt: skip
# "not-entailment" becomes "not_entailment", " LABEL 0" becomes "label_0".
_SEPARATORS = re.compile(r"[\W_]+")
WINDOW = 350
"""Tokens of the text in a window, as in AlignScore (Zha et al. 2023, section 3.3)."""
_BLOCK = 256  # pairs that are tokenized together


def entailment_label(
    labels: Mapping[int, str], label: str | int | None = None
) -> int | None:
    """Return the number of the class that means entailment, or None if that is unclear.

    It is the class that `label` names, otherwise the one with a usual name. If the classes are
    named 0 and 1, 1 means support, as in MiniCheck.
    """
    if label is not None:
        matches = _classes_called(str(label), labels)
    else:
        plain_names = {number: _plain_name(name) for number, name in labels.items()}
        if len(labels) == 1 or plain_names == {0: "0", 1: "1"}:
            return max(labels)
        matches = [number for number in labels if plain_names[number] in _ENTAILMENT]
    # A wrong guess would reverse every score unnoticed, so several matches are none (decision 88).
    return matches[0] if len(matches) == 1 else None


def _classes_called(label: str, labels: Mapping[int, str]) -> list[int]:
    """Return the numbers of the classes with a name, or else the class with this number."""
    lowered = label.lower()
    matches = [number for number in labels if labels[number].lower() == lowered]
    return matches or [number for number in labels if str(number) == label]


def _plain_name(class_name: str) -> str:
    """Return the name of a class in lower case, with `_` between its words."""
    return _SEPARATORS.sub("_", class_name).strip("_").lower()


@dataclass(eq=False)
class CrossEncoder:
    """A `Verifier` by a model, which reads long texts in windows.

    `label` is the name or number of the class that means entailment, if its name does not say so.
    `window` is the number of tokens of the text in a window; a third of them are shared with the
    next one. Raises ConfigError.
    """

    files: huggingface.ModelFiles
    label: str | int | None = None
    window: int = WINDOW
    device: str | None = None
    batch_tokens: int | None = None
    progress: Tell = no_progress

    def __post_init__(self) -> None:
        advice = "name a model trained for natural language inference (MNLI, XNLI) or fact checking"
        self.files.check_head(
            "SequenceClassification", f"which classifies no pairs of texts: {advice}"
        )
        labels = self._labels()
        index = entailment_label(labels, self.label)
        if index is None:
            in_order = sorted(labels.items())
            listed = ", ".join(f"{number} {name!r}" for number, name in in_order)
            raise self.files.error(
                f"its labels are {listed}: set {self.files.who}.label to the one that means that "
                "the text entails the claim"
            )
        self._index = index
        entailing = labels[index].replace("|", "_")
        signed = "sigmoid" if len(labels) == 1 else f"label={entailing}"
        packages = huggingface.runtime(self.files.who, _EXTRA)
        self.signature = f"{self.files.signed}|{signed}|window={self.window}|{packages}"

    def _labels(self) -> dict[int, str]:
        """Return the names of the model's classes by their numbers. Raises ConfigError."""
        config = self.files.config()
        try:
            # Without labels in the file, transformers numbers two.
            count = config.get("num_labels") or 2
            numbered = {number: f"LABEL_{number}" for number in range(count)}
            names = config.get("id2label") or numbered
            return {int(number): str(name) for number, name in names.items()}
        except (AttributeError, TypeError, ValueError) as error:
            raise self.files.error(
                "its id2label in config.json is no mapping of numbers to names"
            ) from error

    @cached_property
    def model(self) -> huggingface.LoadedModel:
        """The loaded model. Raises ConfigError."""
        model_class = "AutoModelForSequenceClassification"
        return huggingface.load_on(self.files, model_class, self.device)

    def verify(
        self, jobs: Sequence[tuple[str, tuple[str, ...]]]
    ) -> list[list[float] | ModelError]:
        """Return the probability, 0–1, that the text entails each claim, for each (text, claims).

        It is the softmax of the logits or, for a model with one logit, the sigmoid; the maximum
        over all windows of the text. ModelError `ClaimTooLong` for a claim of more than half a
        window, `UnknownText` if the model does not know the words, `NoTokens`, `NotFinite`.
        """
        pairs: list[tuple[str, str]] = []
        for text, claims in jobs:
            pairs += [(text, claim) for claim in claims]
        values = iter(self._probabilities(pairs))
        replies: list[list[float] | ModelError] = []
        for _, claims in jobs:
            probabilities: list[float] = []
            errors: list[ModelError] = []
            for value in islice(values, len(claims)):
                if isinstance(value, ModelError):
                    errors.append(value)
                else:
                    probabilities.append(value)
            # A text has no score if one of its claims has no probability.
            if errors:
                replies.append(errors[0])
            else:
                replies.append(probabilities)
        return replies

    def _probabilities(
        self, pairs: Sequence[tuple[str, str]]
    ) -> list[float | ModelError]:
        """Return the probability that the text entails the claim, for each (text, claim)."""
        values: list[float | ModelError] = []
        for start in range(0, len(pairs), _BLOCK):
            block = pairs[start : start + _BLOCK]
            windows_of_pairs = [self._windows(*pair) for pair in block]
            readable = [
                windows for windows in windows_of_pairs if isinstance(windows, list)
            ]
            outputs = self.model.window_outputs(readable, self.batch_tokens, "logits")
            logits = iter(outputs)
            for windows in windows_of_pairs:
                if isinstance(windows, ModelError):
                    values.append(windows)
                else:
                    values.append(self._probability(next(logits)))
            self.progress(len(values), len(pairs))
        return values

    def _windows(self, text: str, claim: str) -> list[Any] | ModelError:
        """Return the windows of a text with a claim, or why the model cannot read them."""
        model = self.model
        pair_tokenizer = model.pair_tokenizer()
        special = int(model.tokenizer.num_special_tokens_to_add(pair=True))
        limit = huggingface.limit(model.tokenizer, model.network.config)
        room = limit - special
        text = normalization.whole(text).strip()
        claim = normalization.whole(claim).strip()
        claim_size = len(pair_tokenizer.ids(claim))
        claim_limit = room // 2
        if claim_size > claim_limit:
            problem = f"a claim has {claim_size} tokens, the model takes {claim_limit}"
            return ModelError("ClaimTooLong", problem)
        text_size = min(self.window, room - claim_size)
        # A third overlaps, so that no sentence is only read in two halves (decision 88).
        overlap = text_size // 3
        size = text_size + claim_size + special
        both = (text, claim)
        windows = list(pair_tokenizer.windows(both, 0, size=size, overlap=overlap))
        for index, text_kind in enumerate(("text", "claim")):
            ids = _ids_of_sequence(windows, index)
            unreadable = self._why_unreadable(text_kind, ids)
            if unreadable:
                return unreadable
        return windows

    def _why_unreadable(self, text_kind: str, ids: Sequence[int]) -> ModelError | None:
        """Return why the model cannot read the tokens of a text or a claim, None if it can."""
        if not ids:
            problem = f"a {text_kind} has no words that the model's tokenizer knows"
            return ModelError("NoTokens", problem)
        unknown = huggingface.unknown_share(ids, self.model.tokenizer.unk_token_id)
        if unknown <= huggingface.MOST_UNKNOWN:
            return None
        problem = f"{self.files.name} does not know the words of a {text_kind}"
        return ModelError("UnknownText", f"{problem}: use a model of the language")

    def _probability(
        self,
        windows: Sequence[Sequence[npt.NDArray[np.float64]]],
    ) -> float | ModelError:
        """Return the highest probability of all windows from their logits."""
        import numpy as np

        logits = np.array([row for (row,) in windows])  # windows × classes
        index = self._index
        # The sigmoid of a single logit is its softmax beside a logit of 0.
        if logits.shape[1] == 1:
            logits = np.hstack([np.zeros_like(logits), logits])
            index = 1
        # Softmax; without the maximum, large logits would overflow.
        largest = logits.max(axis=1, keepdims=True)
        powers = np.exp(logits - largest)
        probabilities = powers[:, index] / powers.sum(axis=1)
        if not np.isfinite(probabilities).all():
            return ModelError(
                "NotFinite", "a probability is no number: use another model"
            )
        return float(probabilities.max())


def _ids_of_sequence(windows: Sequence[Any], index: int) -> list[int]:
    """Return the tokens of the text (0) or of the claim (1) in all windows."""
    ids: list[int] = []
    for window in windows:
        numbered = zip(window.ids, window.sequence_ids, strict=True)
        ids += [token_id for token_id, sequence in numbered if sequence == index]
    return ids


def locate(model: str, *, who: str, cache: Path | None) -> huggingface.ModelFiles:
    """Return the files of a folder or of a name on the hub. Raises ConfigError and MissingExtra."""
    # Called only for its error, which names the extra to install.
    huggingface.runtime(who, _EXTRA)
    return huggingface.resolve(model, who=who, role="model", cache=cache)


def label_option(option: str, value: Any) -> str | int:
    """Return the value of an option that names a class, a text or a number. Raises ConfigError."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return text_option(option, value)
