"""Claims and their probabilities of support by a judge model, each in one request per text.

The prompts are in prompts/<language>/claims/; replies are JSON objects. Nothing is guessed: a reply
that leaves out, repeats or adds a claim, or gives something else than a probability, raises
ParseError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial

from judge.core.claims import Span
from judge.core.errors import ParseError
from judge.core.label_spellings import fold
from judge.metrics import prompts
from judge.metrics.base import ModelError
from judge.metrics.claims.verifier import Job
from judge.metrics.common import says
from judge.scoring import json_reply
from judge.scoring.quotes import locate

Part = tuple[str, Span | None]
"""A claim and the span of its text that it is made from, if that can be located."""
# 0.85, 1, 5e-2
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
# A comma and a line break between two entries; the brackets around them
_BETWEEN = re.compile(r"[\s\[\],，]*")


class Splitter(prompts.Stage):
    """Lists the claims of texts."""

    task = "claims"
    name = "split"
    most_tokens = 4_096

    def split(self, texts: Sequence[str]) -> list[list[Part] | ModelError]:
        """Return the claims of each text, each once, with the span that it is made from."""
        requests = [self.request(read_claims, whole) for whole in texts]
        replies = self.ask(requests)
        parts: list[list[Part] | ModelError] = []
        for reply, whole in zip(replies, texts, strict=True):
            if isinstance(reply, ModelError):
                parts.append(reply)
                continue
            claims: list[Part] = []
            for claim, quote in json.loads(reply):
                ends = locate(quote, whole, ignore_case=True)
                span = Span(*ends) if ends else None
                claims.append((claim, span))
            parts.append(claims)
        return parts


class ModelVerifier(prompts.Stage):
    """Asks the judge model for the probabilities of all claims of a text at once."""

    task = "claims"
    name = "verify"
    most_tokens = 2_048

    def verify(self, jobs: Sequence[Job]) -> list[list[float] | ModelError]:
        """Return the probability of support of each claim, see `Verifier`."""
        requests = []
        for job in jobs:
            read = partial(read_probabilities, count=len(job.claims))
            numbered = _numbered(job.claims)
            requests.append(self.request(read, job.text, claims=numbered))
        probabilities: list[list[float] | ModelError] = []
        for reply in self.ask(requests):
            if isinstance(reply, ModelError):
                probabilities.append(reply)
            else:
                probabilities.append(json.loads(reply))
        return probabilities


def _numbered(claims: Sequence[str]) -> str:
    """Return a list with a number and a claim on each line."""
    lines: list[str] = []
    for number, claim in enumerate(claims, 1):
        on_one_line = " ".join(claim.split())
        lines.append(f"{number}. {on_one_line}")
    return "\n".join(lines)


def read_claims(reply: str) -> str:
    """Return the claims of `{"claims": [{"claim": …, "quote": …}, …]}` as JSON.

    The claims may also be plain strings: `{"claims": ["He left.", …]}`. The result is
    `[[claim, quote], …]` with each claim once; a missing quote is "". Raises ParseError.
    """
    start, end = _span_of_list(reply)
    plain_claims = _strings(reply[start:end])
    if plain_claims:
        return json.dumps([(claim, "") for claim in dict.fromkeys(plain_claims)])
    quote_by_claim: dict[str, str] = {}
    position = start  # the end of what has been read
    for entry in json_reply.objects(reply[:end], start):
        text_members = [member for member in entry.members if member.kind == "words"]
        words = {member.key: member.words for member in text_members}
        claim = words.get("claim", "")
        # Words between two entries would be a claim that is lost.
        follows = _BETWEEN.fullmatch(reply, position, entry.start)
        if not says(claim) or not follows:
            break
        quote_by_claim.setdefault(claim, words.get("quote", ""))
        position = entry.end
    if not _BETWEEN.fullmatch(reply, position, end):
        rest = reply[position:end].strip(" ,[")
        raise ParseError(
            f"the reply's list has an entry that is no claim: {rest[:80]!r}",
            reply,
        )
    return json.dumps(list(quote_by_claim.items()))


def _span_of_list(reply: str) -> tuple[int, int]:
    """Return the start and the end of the list "claims" in a reply. Raises ParseError."""
    lists = [member for member in _object(reply) if member.key == "claims"]
    if len(lists) != 1 or lists[0].kind != "container" or reply[lists[0].start] != "[":
        raise ParseError(f'the reply has no list "claims": {reply[:80]!r}', reply)
    return lists[0].start, lists[0].end


def _strings(written: str) -> list[str]:
    """Return the entries of a JSON list, none if any of them is no string with words."""
    try:
        entries = json.loads(written)
    except (ValueError, RecursionError):
        return []
    for entry in entries:
        if not isinstance(entry, str) or not says(entry):
            return []
    return list(entries)


def read_probabilities(reply: str, count: int) -> str:
    """Return the probabilities of `{"1": …, "2": …}` as a JSON list in the order of the claims.

    Raises ParseError.
    """
    probabilities: dict[str, float] = {}
    expected = [str(number) for number in range(1, count + 1)]
    known_numbers = set(expected)
    for member in _object(reply):
        # Full-width digits are folded to ASCII.
        number = fold(member.key).strip()
        value = fold(member.words).strip()
        if number in probabilities:
            raise ParseError(f"the reply rates claim {number} twice", reply)
        if number not in known_numbers:
            problem = f"rates claim {number!r:.20}, which is not among {count}"
            raise ParseError(f"the reply {problem}", reply)
        if not _NUMBER.fullmatch(value) or float(value) > 1:
            raise ParseError(
                f"the reply gives claim {number} {value[:20]!r}, not a probability from 0 to 1",
                reply,
            )
        probabilities[number] = float(value)
    missing = [number for number in expected if number not in probabilities]
    if missing:
        problem = f"{len(probabilities)} of {count} claims, not claim {missing[0]}"
        raise ParseError(f"the reply rates {problem}", reply)
    return json.dumps([probabilities[number] for number in expected])


def _object(reply: str) -> tuple[json_reply.Member, ...]:
    """Return the members of the one object in a reply. Raises ParseError."""
    objects = json_reply.objects(reply, 0)
    problem = ""
    if not objects:
        problem = "has no JSON object"
    elif len(objects) > 1:
        problem = "has several JSON objects"
    elif objects[0].broken:
        problem = "is cut off or is not JSON"
    if problem:
        raise ParseError(f"the reply {problem}: {reply[:80]!r}", reply)
    return objects[0].members
