"""The fields that chat completions and completions share, to what is made of them."""

from __future__ import annotations

from interlock.api.openai.wire import WireGeneration
from interlock.errors import InterlockError

MAX_ANSWERS = 64


def read_num_answers(wire: WireGeneration, most: int = MAX_ANSWERS) -> int:
    n = 1 if wire.n is None else wire.n
    if not 1 <= n <= most:
        raise InterlockError("invalid_value", f"n must be in [1, {most}], not {n}", param="n")
    return n


def read_include_usage(wire: WireGeneration) -> bool:
    options = wire.stream_options
    if options is not None and not wire.stream:
        raise InterlockError(
            "invalid_value", "stream_options is only allowed with stream: true", param="stream_options"
        )
    return bool(options and options.include_usage)
