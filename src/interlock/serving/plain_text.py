"""The reader of an answer that is nothing but text: what a raw prompt gets."""

from __future__ import annotations

from interlock.core.events import ParserEvent, TextDelta


class PlainText:
    """Has the methods of ``families.wire.parse.StreamParser`` that serving uses."""

    in_reasoning = False
    in_call = False

    def push_text(self, text: str) -> list[ParserEvent]:
        return [TextDelta(text=text)] if text else []

    def push_token(self, token_id: int, spelling: str) -> list[ParserEvent]:  # noqa: ARG002  StreamParser's
        return self.push_text(spelling)

    def finish(self, truncated: bool) -> list[ParserEvent]:  # noqa: ARG002  StreamParser's
        return []
