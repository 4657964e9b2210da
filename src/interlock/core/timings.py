"""Where the time of one request went, and what the engine did for it."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimings:
    """Times in seconds; after the death of a worker those of the last one.

    queue_s: from the worker's taking it to its first pass. prefill_s: from there to the first token of a pass.
    decode_s: from there to the end. compile_s: lowering and native compile, before the worker took it.
    cache_hit: the lowered constraint was there already; ``None`` without a constraint.
    mask_s: its share of the time that masks took; part of prefill and decode.
    num_forced: tokens without a choice that no pass was needed for. num_drafted, num_accepted: tokens guessed, and
    guessed right. num_vetoed: tokens that guards took out of its masks. num_preempted: times that it lost its slot. num_backtracked: times
    that guards took tokens back.
    """

    queue_s: float = 0.0
    compile_s: float = 0.0
    cache_hit: bool | None = None
    prefill_s: float = 0.0
    decode_s: float = 0.0
    mask_s: float = 0.0
    num_forced: int = 0
    num_drafted: int = 0
    num_accepted: int = 0
    num_vetoed: int = 0
    num_preempted: int = 0
    num_backtracked: int = 0


def describe(timings: RequestTimings) -> str:
    """One line for a log; what is zero or unknown is left out."""
    values = ((field.name, getattr(timings, field.name)) for field in fields(timings))
    return " ".join(
        f"{name}={value:.4f}" if isinstance(value, float) else f"{name}={value}"
        for name, value in values
        if value or value is False
    )
