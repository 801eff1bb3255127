"""What a run is going to ask, said before it starts."""

from __future__ import annotations

from contextlib import suppress

from judge.api.prepare import Prepared, for_provider
from judge.config import RankPlan
from judge.criteria import bodies
from judge.errors import CriterionError
from judge.providers.prices import usd
from judge.records import Usage
from judge.render import Renderer

_LOOKED_AT = 20
_CHARACTERS_PER_TOKEN = 4


def forecast(prepared: Prepared) -> str:
    """One line for a ranking: its judgments, n·(k choose 2) pairs in each order, and about what they cost to read.

    Tokens are counted as characters / 4 on the first prompts; what the judges write and what the cache holds is not
    known yet and left out.
    """
    plan, pairs = prepared.plan, prepared.pairs
    if pairs is None or not isinstance(plan, RankPlan):
        return ""
    shown = f"{_pairs(pairs.chosen)} of texts"
    parts = [f"{shown} in {'both orders' if plan.orders == 2 else 'one order'}"]
    for many, what in ((prepared.criteria, "criteria"), (list(prepared.judges), "judges")):
        parts += [f"{len(many)} {what}"] if len(many) > 1 else []
    judgments = len(pairs.compared) * len(prepared.criteria) * len(prepared.judges)
    tokens, price = _reading(prepared)
    said = f"{' × '.join(parts)}: {judgments:,} judgments to make, about {tokens:,} tokens to read"
    cost = "" if price is None else f" (${price:,.4f})"
    equal = f"; no cost for {_pairs(len(pairs.equal) // plan.orders)} of equal texts" if pairs.equal else ""
    return f"{said}{cost}, less what the cache holds{equal}"


def _pairs(number: int) -> str:
    return f"{number:,} pair{'s' * (number != 1)}"


def _reading(prepared: Prepared) -> tuple[int, float | None]:
    """About the tokens of all prompts, and US dollars for them where prices are known."""
    total, price = 0, 0.0
    known = True
    compared = prepared.pairs.compared if prepared.pairs else ()
    some = compared[:: max(1, len(compared) // _LOOKED_AT)]
    for provider in prepared.judges.values():
        characters = 0
        for criterion in prepared.criteria:
            renderer = Renderer(for_provider(criterion, provider), bodies(criterion))
            for first, second in some:
                with suppress(CriterionError):  # the run itself says what is wrong with a pair
                    prompt = renderer.render(first, second)
                    characters += len(prompt.question) + sum(len(m["content"]) for m in prompt.messages)
        tokens = round(characters / _CHARACTERS_PER_TOKEN * len(compared) / max(1, len(some)))
        total += tokens
        found = usd(provider.model, provider.endpoint, Usage(prompt_tokens=tokens))
        known = known and found is not None and not provider.notice
        price += found or 0.0
    return total, price if known else None
