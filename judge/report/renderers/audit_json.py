"""A card for a program."""

from __future__ import annotations

import json
from dataclasses import asdict

from judge.audit.card import Card
from judge.report.format import plain

SCHEMA = "judge.card/1"


def render(card: Card) -> str:
    """Everything, as strict JSON: a number that does not exist is null."""
    return json.dumps(plain({"schema": SCHEMA, **asdict(card)}), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
