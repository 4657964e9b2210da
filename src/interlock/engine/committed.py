"""What a step tells a request."""

from __future__ import annotations

import msgspec

from interlock.core.engine import EngineFinishReason, TokenLogprob
from interlock.core.trace import TokenTrace


class Committed(msgspec.Struct, frozen=True):
    """token_ids: what the request gets. is_accepting: as in ``EngineOutput``."""

    token_ids: tuple[int, ...] = ()
    finish_reason: EngineFinishReason | None = None
    is_accepting: bool | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    trace: tuple[TokenTrace, ...] = ()
