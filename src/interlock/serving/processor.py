"""What reads the answer to a resolved request."""

from __future__ import annotations

from interlock.core.tokenizer import Tokenizer
from interlock.families.base import ModelFamily
from interlock.families.wire.parse import StreamParser
from interlock.resolve.resolve import Resolved
from interlock.serving.output import OutputProcessor, OutputRules
from interlock.serving.plain_text import PlainText


class AnswerReader:
    """Makes the readers of one model's answers. Building it looks at every special token: once for a model."""

    def __init__(self, family: ModelFamily, tokenizer: Tokenizer) -> None:
        self._family = family
        self._vocabulary = tokenizer.vocabulary
        self._spellings = {token_id: text for text, token_id in tokenizer.special_tokens.items()}
        markers = "\n".join(family.markers())
        known = {token_id for token_id, text in self._spellings.items() if text in markers}
        self._silent_ids = (
            self._vocabulary.control_ids - known
        )  # control tokens that mean nothing to the family

    def processor(self, resolved: Resolved) -> OutputProcessor:
        """The reader of one answer."""
        if resolved.raw:
            return self._plain(resolved)
        parser = StreamParser(
            self._family,
            special_tokens=self._spellings,
            thinking=resolved.thinking,
            tools=resolved.parser_mode,
            declared=resolved.tools.effective_tools,
        )
        reasoning = self._family.reasoning
        rules = OutputRules(
            stop=resolved.stop,
            bound=resolved.bound,
            calls_only=resolved.bound and resolved.tools.call_required,
            max_calls=None if resolved.tools.parallel_tool_calls else 1,
            include_reasoning=resolved.include_reasoning,
            reasoning_is_text=reasoning is not None
            and not {reasoning.open, reasoning.close} <= set(self._spellings.values()),
            silent_ids=self._silent_ids,
        )
        return OutputProcessor(rules, self._vocabulary, parser)

    def _plain(self, resolved: Resolved) -> OutputProcessor:
        rules = OutputRules(stop=resolved.stop, bound=resolved.bound, silent_ids=self._vocabulary.control_ids)
        return OutputProcessor(rules, self._vocabulary, PlainText())
