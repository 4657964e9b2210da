"""How many of the tokens that sequences were forced to take are computed in one pass."""

from __future__ import annotations

from interlock.engine.scheduler import Chunk
from interlock.engine.step_cost import StepCost
from interlock.runners.parts import runs


def within_room(chunks: list[Chunk], cost: StepCost) -> list[Chunk]:
    """``chunks`` without the forced tokens that would take longer together than in steps to come.

    A forced token can wait: the request has it already, and each later pass has a place for one token of each sequence
    anyway. A runner that cuts passes into parts pays for a part of its own where a sequence has more tokens than its
    neighbours, so more than one is computed where that gives more tokens for the time than a pass without them.
    """
    pending = {chunk.slot: chunk.num_tokens for chunk in chunks if chunk.sequence.is_decoding}
    if not cost.is_known or not cost.max_part_tokens or max(pending.values(), default=1) == 1:
        return chunks
    room = _room(pending, cost)
    return [
        Chunk(chunk.sequence, room[chunk.slot]) if chunk.sequence.is_decoding else chunk for chunk in chunks
    ]


def _room(pending: dict[int, int], cost: StepCost) -> dict[int, int]:
    base = min(pending.values())
    # Rows of logits are left out on both sides: what ends a run needs its own in any case, now or later.
    token_s = cost.seconds(dict.fromkeys(pending, 1), 0) / len(pending)
    room = dict.fromkeys(pending, base)
    extra = {slot: num - base for slot, num in pending.items() if num > base}
    waiting = list(runs(extra))
    while waiting:
        run = waiting.pop()
        level = min(extra[slot] for slot in run)
        if cost.seconds(dict.fromkeys(run, level), 0) <= token_s * level * len(run):
            for slot in run:
                room[slot] += level
                extra[slot] -= level
            waiting += runs({slot: extra[slot] for slot in run if extra[slot]})
        else:
            waiting += runs({slot: extra[slot] for slot in run if extra[slot] > level})
    return room
