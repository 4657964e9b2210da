"""Messages and tools to prompt ids, by the model's own chat template.

The ids are those that Hugging Face's tokenizer gives for the template's text, except that nothing a client
wrote becomes a control token: see ``taint.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from interlock.core.messages import Message
from interlock.core.request import ReasoningOptions
from interlock.core.tools import Tool
from interlock.errors import InterlockError
from interlock.families.base import ModelFamily, Thinking
from interlock.families.wire import json_text
from interlock.families.wire.conversation import (
    client_texts,
    template_messages,
    template_tool,
    with_tool_prompt,
    with_written_calls,
    without_system,
)
from interlock.families.wire.history import check_reserved, native_ids, one_call_a_message
from interlock.families.wire.quirks import find_quirks
from interlock.families.wire.taint import SpecialText, choose_seam
from interlock.families.wire.template import DEFAULT_TEMPLATE, ChatTemplate
from interlock.tokenization.description import ModelDescription

_RESERVED = frozenset(
    ("tools", "messages", "add_generation_prompt", "bos_token", "eos_token", "raise_exception", "strftime_now")
)

_DEFAULT_REASONING = ReasoningOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPrompt:
    """ids: the prompt's tokens. text: the same as one string, for people. thinking: how the turn begins. notes: what the
    caller should know."""

    ids: tuple[int, ...]
    text: str
    thinking: Thinking
    notes: tuple[str, ...] = ()


class PromptRenderer:
    """Renders for one model. Immutable, safe to share between threads.

    Raises ``InterlockError`` (``invalid_value``) if the model's chat template is malformed.
    """

    def __init__(
        self, family: ModelFamily, description: ModelDescription, *, now: Callable[[], datetime] = datetime.now
    ) -> None:
        self._family = family
        self._tokenizer = description.tokenizer
        self._template = ChatTemplate(
            description.chat_template or family.template or DEFAULT_TEMPLATE,
            bos_token=description.bos_token,
            eos_token=description.eos_token,
            now=now,
        )
        self._quirks = find_quirks(self._template, family.reasoning)
        self._special = SpecialText(description.tokenizer)

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        reasoning: ReasoningOptions = _DEFAULT_REASONING,
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> RenderedPrompt:
        """The prompt for the assistant's next turn.

        Raises ``InterlockError``: ``invalid_messages`` with the template's own message where it refuses the
        conversation, ``invalid_value`` for reserved template variables, ``unsupported_parameter`` where the
        template cannot switch thinking as asked.
        """
        variables = self._variables(reasoning, template_kwargs or {})
        check_reserved(messages, self._family, tuple(self._tokenizer.special_tokens))
        messages = native_ids(
            messages, self._family.tool_calls, number_by_turn=self._quirks.numbers_calls_by_turn
        )
        if self._quirks.single_calls or self._family.tool_calls.single:
            messages = one_call_a_message(messages)
        if self._family.declares_in_messages:
            declared = {tool.name for message in messages for tool in message.tools}
            tools = [tool for tool in tools if tool.name not in declared]
        seam = choose_seam([self._template.source, *client_texts(messages, tools), _all_text(variables)])
        try:
            text = self._text(messages, tools, variables, seam)
        except RecursionError:
            raise InterlockError(
                "invalid_messages", "the conversation holds JSON that is nested too deeply", param="messages"
            ) from None
        thinking = self._thinking(text)
        if reasoning.enabled is False and thinking == "optional" and self._quirks.switches:
            thinking = "closed"  # the prompt says so, without the markers
        _check_thinking(reasoning, thinking)
        ids = self._special.encode(text, seam)
        text = text.replace(seam, "")
        bos = self._tokenizer.vocabulary.bos_id
        if bos is not None and ids[:1] != [bos]:
            ids, text = [bos, *ids], self._tokenizer.decode([bos]) + text
        return RenderedPrompt(ids=tuple(ids), text=text, thinking=thinking, notes=self._notes(reasoning))

    def _text(
        self, messages: Sequence[Message], tools: Sequence[Tool], variables: Mapping[str, Any], seam: str
    ) -> str:
        clean = partial(self._special.taint, seam=seam)
        quirks, prompt = self._quirks, self._family.tool_prompt
        turns = template_messages(messages, self._family, quirks, clean)
        shown = [template_tool(tool, clean, description_required=quirks.description_required) for tool in tools]
        if prompt is not None:
            turns = with_tool_prompt(turns, shown, self._family, prompt, self._template, seam)
            shown = []
        elif quirks.drops_calls:
            turns = [with_written_calls(turn, self._family) for turn in turns]
        if not quirks.knows_system:
            turns = without_system(turns)
        known_tools = shown if shown or quirks.tools_required else None
        return self._template.render(turns, known_tools, clean(variables), seam)

    def _variables(self, reasoning: ReasoningOptions, template_kwargs: Mapping[str, Any]) -> dict[str, Any]:
        reserved = sorted(_RESERVED & template_kwargs.keys())
        if reserved:
            name = reserved[0]
            hint = "tools must be supplied as a top-level request field" if name == "tools" else None
            raise InterlockError(
                "invalid_value",
                hint or f"{name} is set by the server and cannot be a template variable",
                param=f"chat_template_kwargs.{name}",
            )
        variables, format_ = dict(template_kwargs), self._family.reasoning
        if format_ is None:
            return variables
        if reasoning.effort is not None:
            variables.setdefault(format_.effort_kwarg, format_.word_for(reasoning.effort))
        if reasoning.budget is not None and format_.budget_kwarg:
            variables.setdefault(format_.budget_kwarg, reasoning.budget)
        if reasoning.enabled is not None:
            variables = {**format_.switch(reasoning.enabled), **variables}
        return variables

    def _notes(self, reasoning: ReasoningOptions) -> tuple[str, ...]:
        """What became of the effort that was asked."""
        effort, format_ = reasoning.effort, self._family.reasoning
        if effort is None or effort == "none" or format_ is None:
            return ()
        if format_.effort_kwarg not in self._template.source:
            return ("the model thinks, but it cannot be told how much: reasoning_effort says no more to it",)
        word = format_.word_for(effort)
        return () if word == effort else (f"reasoning_effort {effort} is told to the model as {word}",)

    def _thinking(self, text: str) -> Thinking:
        format_ = self._family.reasoning
        if format_ is None or not self._quirks.thinks:
            return "none"
        tail, answer = text.rstrip(), self._family.answer
        if tail.endswith(format_.open):
            return "open"
        opened = answer is not None and answer.opened_by_prompt and tail.endswith(answer.open)
        return "closed" if opened or tail.endswith(format_.close) else "optional"


def _check_thinking(reasoning: ReasoningOptions, thinking: Thinking) -> None:
    enabled = reasoning.enabled
    honoured: tuple[Thinking, ...] = ("open", "optional") if enabled else ("closed", "none")
    if enabled is None or thinking in honoured:
        return
    raise InterlockError(
        "unsupported_parameter",
        f"this model's chat template cannot switch thinking {'on' if enabled else 'off'}",
        param=reasoning.param,
    )


def _all_text(variables: Mapping[str, Any]) -> str:
    return json_text.dumps(variables) if variables else ""
