"""Which answers are closed before their budget cuts them off."""

from __future__ import annotations

from interlock.config import CloseOnLength
from interlock.core.engine import LengthClosing
from interlock.core.output_format import OutputFormat, TextFormat
from interlock.core.tokenizer import Tokenizer
from interlock.core.tools import ToolContext
from interlock.errors import InterlockError


def resolve_closing(
    asked: CloseOnLength | None,
    default: CloseOnLength,
    *,
    tools: ToolContext,
    output_format: OutputFormat,
    openers: tuple[str, ...],
    tokenizer: Tokenizer,
    is_possible: bool,
) -> LengthClosing | None:
    """``None`` for what is cut off. openers: what begins calls. is_possible: the engine can do it.

    A call is acted upon, and one that was closed may hold half of what was meant: it is closed only where that was asked
    for. Where calls may come and cannot be told from an answer by a token, no answer is closed either.
    """
    wanted = asked or default
    if wanted != "off" and not is_possible:
        if asked is None:
            return None
        raise InterlockError(
            "unsupported_parameter",
            "this engine cannot close answers that run out of tokens",
            param="interlock.close_on_length",
        )
    is_answer = not isinstance(output_format, TextFormat)
    if wanted == "off" or not (is_answer or wanted == "all"):
        return None
    if not tools.callable_tools:
        return LengthClosing()
    ids = [opener_id(opener, tokenizer) for opener in openers]
    known = tuple(dict.fromkeys(one for one in ids if one is not None))
    if wanted == "all":
        return LengthClosing(openers=known, calls=True)
    return LengthClosing(openers=known) if known and None not in ids else None


def opener_id(opener: str, tokenizer: Tokenizer) -> int | None:
    """The first special token in the text of a marker."""
    special = tokenizer.vocabulary.special_ids
    return next((token for token in tokenizer.encode(opener) if token in special), None)
