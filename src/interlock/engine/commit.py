"""One chosen token -> what changes in its sequence, and whether the sequence ends."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.core.engine import EngineFinishReason
from interlock.engine.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Committed:
    """token_ids: what the request gets. is_accepting: as in ``EngineOutput``."""

    token_ids: tuple[int, ...] = ()
    finish_reason: EngineFinishReason | None = None
    is_accepting: bool | None = None


def commit(sequence: Sequence, token_id: int, model_stop_ids: frozenset[int]) -> Committed:
    """Advance ``sequence`` by ``token_id``. Raises ``MatcherError``, and then nothing is committed.

    Precedence: a stop id where an end is allowed, then the end of the grammar, then the length.
    """
    if _ends(sequence, token_id, model_stop_ids):
        return Committed((), "stop", None if sequence.request.constraint is None else True)
    if sequence.constraint is not None:
        sequence.constraint.accept(token_id)
    sequence.append(token_id)
    finish_reason = _finish_reason(sequence)
    return Committed((token_id,), finish_reason, _is_accepting(sequence, finish_reason))


def _ends(sequence: Sequence, token_id: int, model_stop_ids: frozenset[int]) -> bool:
    """A stop id ends a free sequence at once, a constrained one where its grammar may end. A grammar lets
    the model's own stop ids through nowhere else, so there they count whether or not the request names them."""
    if sequence.request.constraint is None:
        return token_id in sequence.request.stop_ids
    if token_id not in sequence.request.stop_ids and token_id not in model_stop_ids:
        return False
    return sequence.constraint is not None and sequence.constraint.is_accepting


def _finish_reason(sequence: Sequence) -> EngineFinishReason | None:
    if sequence.constraint is not None and sequence.constraint.is_terminated:
        return "stop"
    return "length" if sequence.num_output_tokens >= sequence.max_output_tokens else None


def _is_accepting(sequence: Sequence, finish_reason: EngineFinishReason | None) -> bool | None:
    if sequence.request.constraint is None or sequence.constraint is None:
        return None
    if finish_reason is None and not sequence.request.report_accepting:
        return None
    return sequence.constraint.is_accepting
