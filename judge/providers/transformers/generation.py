"""Replies written by a causal language model, many at a time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from judge.core import huggingface
from judge.core.errors import Refused
from judge.core.records import Choice, Token
from judge.providers.transformers.label_scoring import out_of_memory

_ON_CPU, _LEAST, _MOST = 16_384, 4_096, 2**20
_SHARE = 0.5
"""Of the free memory of a GPU, for what is kept of the tokens of replies and their prompts; the rest is to compute."""
_ANCHOR = "a"
_TINY = 1e-30


@dataclass(frozen=True, slots=True)
class GenerationTask:
    """A prompt to be answered once for each of its `seeds`, with `most` tokens at most.

    At temperature 0 every token is the likeliest; else it is drawn, by the seed alone and not by what else is written
    meanwhile. The `top` likeliest tokens at each place are listed with their log probabilities (0: none are).
    """

    tokens: Sequence[int]
    seeds: tuple[int, ...]
    temperature: float
    most: int
    top: int

    @property
    def draws(self) -> int:
        """The replies that have to be written: at temperature 0 they are all the same."""
        return len(self.seeds) if self.temperature else 1


class GeneratedReply(NamedTuple):
    """A reply, and how many tokens it has, its end not counted."""

    choice: Choice
    tokens: int


class Generator:
    """Writes with a model of transformers, which is in eval mode and on its device. Not for two threads at once.

    `most_tokens` is how many tokens, of prompts and replies, are held at once, None what suits the device. `learned`
    says in words what turned out ("replies"), empty where all is as wished.
    """

    def __init__(self, model: Any, tokenizer: Any, *, most_tokens: int | None = None) -> None:
        self.learned: dict[str, str] = {}
        self._torch, self._model, self._tokenizer = huggingface.import_optional("torch", "local"), model, tokenizer
        self._settings: Any = huggingface.import_optional("transformers", "local").GenerationConfig
        self._ends = _ends(model, tokenizer)
        self._pad = next(token for token in (tokenizer.pad_token_id, *sorted(self._ends), 0) if token is not None)
        # Also in the place of the model's own: a penalty or a cut there would change what is as likely as it is.
        model.generation_config = self._settings(eos_token_id=sorted(self._ends) or None, pad_token_id=self._pad)
        self._most_tokens = most_tokens or _token_capacity(model)
        self.limit = positions(model, tokenizer)
        self._names: dict[int, str] = {}
        self._takes_positions = "position_ids" in inspect.signature(model.forward).parameters

    def check(self, task: GenerationTask) -> GenerationTask:
        """What can be written of it. Raises Refused for a prompt after which there is no room for a reply."""
        if self.limit is None:
            return task
        room = self.limit - len(task.tokens)
        if room < 1:
            raise Refused(
                f"the prompt has {len(task.tokens):,} tokens, and with its reply the model reads {self.limit:,} at "
                "most; shorten the text, or name a model that reads more"
            )
        return replace(task, most=min(task.most, room))

    def __call__(
        self, tasks: Sequence[GenerationTask], given_up: Callable[[int], bool] = lambda place: False
    ) -> Iterator[tuple[int, list[GeneratedReply] | Refused]]:
        """The place of each in `tasks` with its replies, in the order in which they are ready.

        Nothing more is written of those that `given_up` is true of. Refused in the place of replies to a prompt that
        is too much for the memory by itself.
        """
        kinds: dict[tuple[float, int, int, int], list[int]] = {}
        for place, task in enumerate(tasks):
            kinds.setdefault((task.temperature, task.most, task.top, task.draws), []).append(place)
        for (_, most, _, draws), places in kinds.items():
            lengths = [len(tasks[place].tokens) + most for place in places]
            for batch in huggingface.batches(lengths, max(1, self._most_tokens // draws)):
                here = [places[n] for n in batch if not given_up(places[n])]
                if here:
                    written = self._written([tasks[place] for place in here], lambda: all(map(given_up, here)))  # noqa: B023
                    yield from zip(here, written, strict=True)

    def _written(
        self, batch: Sequence[GenerationTask], given_up: Callable[[], bool]
    ) -> list[list[GeneratedReply] | Refused]:
        """The replies to a batch; where the memory is not enough for it, those to its halves."""
        try:
            drawn = self._drawn(batch, given_up)
        except Refused as error:
            return [error] * len(batch)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            drawn = None
        if drawn is not None:
            return [replies * (len(task.seeds) // task.draws) for task, replies in zip(batch, drawn, strict=True)]
        self._torch.cuda.empty_cache()
        rows = sum(task.draws for task in batch)
        self._most_tokens = max(1, self._most_tokens // 2)
        self.learned["replies"] = f"written with {self._most_tokens:,} tokens at a time, as there is no room for more"
        if rows == 1:
            size = len(batch[0].tokens)
            return [Refused(f"the memory is not enough for a prompt of {size:,} tokens; shorten it, or free memory")]
        if len(batch) > 1:
            half = len(batch) // 2
            return self._written(batch[:half], given_up) + self._written(batch[half:], given_up)
        halves = (batch[0].seeds[: rows // 2], batch[0].seeds[rows // 2 :])
        first, second = (self._written([replace(batch[0], seeds=seeds)], given_up)[0] for seeds in halves)
        if isinstance(first, Refused) or isinstance(second, Refused):
            return [first if isinstance(first, Refused) else second]
        return [first + second]

    def _drawn(self, batch: Sequence[GenerationTask], given_up: Callable[[], bool]) -> list[list[GeneratedReply]]:
        """What is written after each prompt of one kind. A prompt is read once, however many replies it has."""
        torch, device, first = self._torch, self._model.device, batch[0]
        rows, mask = (
            torch.from_numpy(padded[:, ::-1].copy())
            for padded in huggingface.padded([w.tokens[::-1] for w in batch], 0)
        )
        ids = torch.where(mask.bool(), rows, self._pad).to(device)
        mask = mask.to(device)
        many, width = first.draws, ids.shape[1]
        cache_arguments: dict[str, Any] = {}
        hand = _SamplingProcessor(
            torch, [seed for w in batch for seed in w.seeds[:many]], first.temperature, first.top, device
        )
        with torch.inference_mode():
            if many > 1 and width > 1:
                # All but the last token of the prompts, once for each reply.
                arguments = {"attention_mask": mask[:, :-1], "use_cache": True}
                if self._takes_positions:
                    arguments["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)[:, :-1]
                cache = self._model.base_model(ids[:, :-1], **arguments).past_key_values
                cache.batch_repeat_interleave(many)
                cache_arguments["past_key_values"] = cache
            generated = self._model.generate(
                ids.repeat_interleave(many, 0),
                attention_mask=mask.repeat_interleave(many, 0),
                generation_config=self._settings(max_new_tokens=first.most, do_sample=False, use_cache=True),
                logits_processor=[hand],
                stopping_criteria=[lambda ids, scores: torch.full((len(ids),), given_up(), device=ids.device)],
                **cache_arguments,
            )
            replies = generated[:, width:].tolist()
        if hand.broken:
            raise Refused("the model computed what is no number (NaN): get its files again, or name another model")
        likely = hand.likely() if first.top else [None] * len(replies)
        written = [self._reply(ids, tokens) for ids, tokens in zip(replies, likely, strict=True)]
        return [written[place : place + many] for place in range(0, len(written), many)]

    def _reply(
        self, ids: list[int], likely: Sequence[tuple[float, Sequence[tuple[int, float]]]] | None
    ) -> GeneratedReply:
        """A row of what was generated as a reply, which ends before the token that ends it."""
        size = next((place for place, token in enumerate(ids) if token in self._ends), len(ids))
        finish = "stop" if size < len(ids) else "length"
        text = self._tokenizer.decode(ids[:size], skip_special_tokens=True)
        tokens = None
        if likely is not None:
            texts = self._texts(ids[:size])
            tokens = tuple(
                Token(text, logprob, tuple((self._name(token), p) for token, p in top))
                for text, (logprob, top) in zip(texts, likely, strict=False)
            )
        return GeneratedReply(Choice(text, finish, tokens), size)

    def _texts(self, ids: Sequence[int]) -> list[str]:
        """What each token adds to the text: where several are one character, the last of them has all of it."""
        texts, pending = [""] * len(ids), []
        for place, token in enumerate(ids):
            pending.append(token)
            text = self._name(token) if len(pending) == 1 else self._decoded(pending)
            if not text.endswith("\ufffd") or place == len(ids) - 1 or len(pending) == 4:
                texts[place], pending = text, []
        return texts

    def _name(self, token: int) -> str:
        """A token's own text, with the space before it."""
        if token not in self._names:
            self._names[token] = self._decoded([token])
        return self._names[token]

    def _decoded(self, ids: Sequence[int]) -> str:
        """The text of tokens in the middle of a text: some tokenizers leave out the first one's space."""
        before = self._tokenizer.encode(_ANCHOR, add_special_tokens=False)
        arguments = {"clean_up_tokenization_spaces": False}
        start = self._tokenizer.decode(before, **arguments)
        return str(self._tokenizer.decode([*before, *ids], **arguments)).removeprefix(start)


class _SamplingProcessor:
    """Chooses each row's next token, as the likeliest after this, and takes down how likely it and others were.

    The drawing is Gumbel's: the largest of logit + noise, with a row's noise from a generator of its own.
    """

    def __init__(self, torch: Any, seeds: Sequence[int], temperature: float, top: int, device: Any) -> None:
        self._torch, self._temperature, self._top = torch, temperature, top
        self._generators = [torch.Generator(device=device).manual_seed(seed) for seed in seeds] if temperature else []
        self._recorded: list[tuple[Any, Any, Any]] = []
        self._broken: Any = False

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores by which the next tokens are chosen: of shape (rows, tokens), as those given."""
        weighed = scores
        self._broken = self._broken | scores.isnan().any()
        if self._temperature:
            noise = self._torch.empty_like(scores)
            for row, generator in enumerate(self._generators):
                noise[row].exponential_(generator=generator)
            weighed = scores / self._temperature - noise.clamp_(min=_TINY).log()
        if self._top:
            logs = scores.log_softmax(-1)
            chosen = logs.gather(-1, weighed.argmax(-1, keepdim=True))
            self._recorded.append((chosen, *logs.topk(min(self._top, logs.shape[-1]), -1)))
        return weighed

    @property
    def broken(self) -> bool:
        """Whether any score was no number."""
        return bool(self._broken)

    def likely(self) -> list[list[tuple[float, list[tuple[int, float]]]]]:
        """For each row and place, the log probability of what was chosen, and the likeliest tokens with theirs."""
        chosen, logs, ids = (self._torch.stack(part, 1).tolist() for part in zip(*self._recorded, strict=True))
        return [
            [
                (round(log, 6), [(token, round(p, 6)) for token, p in zip(*top, strict=True)])
                for (log,), *top in zip(row, tokens, probabilities, strict=True)
            ]
            for row, tokens, probabilities in zip(chosen, ids, logs, strict=True)
        ]


def positions(model: Any, tokenizer: Any) -> int | None:
    """How many tokens a model reads, by its configuration, else by its tokenizer; None where neither says."""
    length = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if isinstance(length, int) and length > 0:
        return length
    return tokenizer.model_max_length if 0 < tokenizer.model_max_length < _MOST * 1000 else None


def _ends(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end a reply."""
    configured = [
        model.generation_config.eos_token_id,
        model.config.get_text_config().eos_token_id,
        tokenizer.eos_token_id,
    ]
    listed = [end if isinstance(end, list | tuple) else [end] for end in configured]
    return frozenset(end for ends in listed for end in ends if end is not None)


def _token_capacity(model: Any) -> int:
    """How many tokens can be held at once: of a GPU's memory, what is kept of each takes its part."""
    if model.device.type != "cuda":
        return _ON_CPU
    config = model.config.get_text_config()
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    each = 2 * config.num_hidden_layers * heads * size * model.dtype.itemsize
    free, _ = huggingface.import_optional("torch", "local").cuda.mem_get_info(model.device)
    return int(min(max(free * _SHARE / each, _LEAST), _MOST))
