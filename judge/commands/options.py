"""Keyword arguments of the public functions, for editors and type checkers.

Written from judge/config/run_config.py: JUDGE_GOLDEN=write pytest tests/test_config.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    import pandas as pd


class JudgeOptions(TypedDict, total=False):
    """Options of all functions that ask a judge."""

    map: Mapping[str, str | Sequence[str]] | None
    systems: str | Sequence[str] | Mapping[str, Any | str | Path] | None
    where: (
        Mapping[str, str | int | float | bool | Sequence[str | int | float | bool]]
        | None
    )
    limit: int | None
    sentence_marks: str | Sequence[str] | None
    base_url: str | None
    key_env: str | None
    key_command: str | None
    headers: Mapping[str, str] | None
    reasoning_effort: str | None
    extra_body: Mapping[str, Any] | None
    temperature: float | None
    max_tokens: int | None
    replay: str | Path | None
    language: Literal["en", "ja", "ko", "zh", "auto"] | None
    weighting: Literal["auto", "logprobs", "decisions", "samples", "single"] | None
    draws: int | None
    min_mass: float | None
    reply: Literal["score", "score_then_reason", "reason_then_score"] | None
    reasons: bool | None
    strict: bool | None
    repair: Literal["on", "off"] | None
    structured: bool | None
    budget: str | None
    deadline: float | None
    rpm: int | None
    tpm: int | None
    max_concurrency: int | None
    timeout: float | None
    retries: int | None
    cache: str | Path | Literal[False] | None
    record: str | Path | None
    retry_failed: bool | None
    seed: int | None


class RunOptions(JudgeOptions, total=False):
    """Options of `evaluate`."""

    against: str | None
    ratings: str | Path | pd.DataFrame | Iterable[Mapping[str, Any]] | None
    rating_criterion: str | None
    system_message: str | None
    panel: Literal["mean", "median", "majority"] | None
    pass_at: int | float | str | None
    calibrate: bool | None
    judge_columns: str | Sequence[str] | Mapping[str, str] | None
    scale: str | Sequence[float] | None
    metrics: str | Sequence[str] | None
    set: Mapping[str, Mapping[str, Any]] | None
    score_columns: str | Sequence[str] | Mapping[str, str] | None
    workers: int | None
    out: str | Path | None
    overwrite: bool | None
    title: str | None
    engine: str | None
    ray_workers: int | None


class RankOptions(RunOptions, total=False):
    """Options of `rank`."""

    reasons: bool | None
    orders: Literal[1, 2] | None
    pairs: int | None
