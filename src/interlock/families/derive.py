"""A family read off a chat template: for models whose form of call is JSON, but in markers of their own."""

from __future__ import annotations

import re

from interlock.families.base import JsonEnvelope, Lit, Mark, ModelFamily, Piece, ReasoningFormat, ToolCallSyntax
from interlock.families.wire.probe import PROBE_CALL, ProbeTurn
from interlock.families.wire.spell import envelope_head, spell_arguments
from interlock.families.wire.template import ChatTemplate

_OPENER = re.compile(r"(<[^<>\s]{1,40}>|\[[A-Z_]{2,40}\])(\s*)\Z")
_CLOSER = re.compile(r"(\s*)(</[^<>\s]{1,40}>|\[[A-Z_/]{2,40}\])")
_ENVELOPES = (
    JsonEnvelope(),
    JsonEnvelope(arguments_key="parameters", argument_aliases=("arguments",)),
)
_THINK = ReasoningFormat(open="<think>", close="</think>")


def derived_family(turn: ProbeTurn, template: ChatTemplate) -> ModelFamily | None:
    """The family that writes the probe call as ``template`` does: a JSON envelope right after a marker."""
    for envelope in _ENVELOPES:
        syntax = ToolCallSyntax(call=(envelope,))
        name, arguments = PROBE_CALL
        spelling = envelope_head(envelope, syntax, name) + spell_arguments(syntax, dict(arguments)) + "}"
        before, found, after = turn.text.partition(spelling)
        opener = _OPENER.search(before)
        if not found or opener is None or opener[1] in before[: opener.start()] + after:
            continue
        thinks = _THINK.open in template.source and _THINK.close in template.source
        return ModelFamily(
            name="derived",
            title="read off the model's chat template",
            tool_calls=ToolCallSyntax(call=_pieces(opener, envelope, _CLOSER.match(after))),
            reasoning=_THINK if thinks else None,
        )
    return None


def _pieces(opener: re.Match[str], envelope: JsonEnvelope, closer: re.Match[str] | None) -> tuple[Piece, ...]:
    pieces: list[Piece] = [Mark(opener[1])]
    if opener[2]:
        pieces.append(Lit(opener[2]))
    pieces.append(envelope)
    if closer is not None:
        pieces += [Lit(closer[1])] if closer[1] else []
        pieces.append(Mark(closer[2]))
    return tuple(pieces)
