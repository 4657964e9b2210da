"""What reads the answer to a resolved request."""

from __future__ import annotations

from dataclasses import replace

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
            return OutputProcessor(
                _rules(resolved, self._vocabulary.control_ids), self._vocabulary, PlainText()
            )
        parser = StreamParser(
            self._family,
            special_tokens=self._spellings,
            thinking=resolved.thinking,
            tools=resolved.parser_mode,
            declared=resolved.tools.effective_tools,
        )
        reasoning = self._family.reasoning
        rules = replace(
            _rules(resolved, self._silent_ids),
            calls_only=resolved.bound and resolved.tools.call_required,
            max_calls=None if resolved.tools.parallel_tool_calls else 1,
            include_reasoning=resolved.include_reasoning,
            reasoning_is_text=reasoning is not None
            and not {reasoning.open, reasoning.close} <= set(self._spellings.values()),
        )
        return OutputProcessor(rules, self._vocabulary, parser)


def _rules(resolved: Resolved, silent_ids: frozenset[int]) -> OutputRules:
    """What the answers to raw prompts and to conversations have in common."""
    return OutputRules(
        stop=resolved.stop,
        include_stop=resolved.text.include_stop,
        min_tokens=resolved.engine_request.limits.min_tokens,
        bound=resolved.bound,
        silent_ids=frozenset() if resolved.text.special_tokens else silent_ids,
    )
