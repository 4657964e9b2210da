"""Resolving a request: the one place where its options, the model's facts and the server's policies meet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from interlock.core.constraint import ConstraintSpec
from interlock.core.engine import Enforcement, EngineRequest, LengthClosing
from interlock.core.output_format import OutputFormat, TextFormat
from interlock.core.request import GenerateRequest, TextOptions
from interlock.core.tools import ToolContext
from interlock.families.base import Thinking
from interlock.families.wire.constrain import answer_only
from interlock.resolve.closing import resolve_closing
from interlock.resolve.constraint import constraint_kind, resolve_constraint, resolve_policy
from interlock.resolve.decoding import Decoding, resolve_decoding, turn_stop_texts
from interlock.resolve.loaded_tools import with_loaded_tools
from interlock.resolve.max_tokens import resolve_max_tokens
from interlock.resolve.messages import resolve_messages
from interlock.resolve.output_format import resolve_output_format
from interlock.resolve.profile import ModelProfile
from interlock.resolve.prompt import resolve_prompt
from interlock.resolve.prompt_size import check_prompt_size
from interlock.resolve.reasoning import resolve_reasoning, resolve_thinking_budget
from interlock.resolve.stop import resolve_stop
from interlock.resolve.tools import resolve_tools

ParserMode = Literal["parse", "hide", "ignore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Everything serving needs of a request.

    raw: the prompt was given as it is, and the answer is plain text.
    engine_request: complete but for its constraint, which is ``spec`` after lowering (``None``: a free
    answer). spec_after_thinking: where the engine needs ``ThinkingBudget.rest``, what that is lowered from.
    bound: the whole answer is held to ``spec``, none of it is free text. thinking: where the prompt leaves off.
    parser_mode: whether calls in the text are read, taken out unread, or left alone. notes: what the caller should know.
    enforcement: who holds the answer to ``spec``.
    """

    engine_request: EngineRequest
    spec: ConstraintSpec | None
    constraint_kind: str
    bound: bool
    tools: ToolContext
    thinking: Thinking
    parser_mode: ParserMode
    stop: tuple[str, ...]
    text: TextOptions
    include_reasoning: bool
    notes: tuple[str, ...]
    enforcement: Enforcement = Enforcement()
    raw: bool = False
    spec_after_thinking: ConstraintSpec | None = None


def resolve(request: GenerateRequest, model: ModelProfile) -> Resolved:
    """Raises ``InterlockError`` for whatever is wrong with the request, cheapest checks first."""
    if request.prompt is not None:
        return resolve_raw(request, request.prompt, model)
    family, tokenizer, defaults = model.family, model.tokenizer, model.defaults
    messages = resolve_messages(request.messages)
    tools = resolve_tools(request, defaults.tool_constraints)
    messages = with_loaded_tools(messages, tools)
    output_format = resolve_output_format(request.output_format, turn_stop_texts(family, tokenizer))
    decoding = resolve_decoding(request.sampling, family, tokenizer)
    stop = resolve_stop(request.stop)
    template_kwargs = dict(request.template_kwargs)
    reasoning = resolve_reasoning(request.reasoning, template_kwargs, family.reasoning)
    check_prompt_size(
        messages,
        tools.effective_tools,
        context_tokens=model.context_tokens,
        longest_token=model.longest_token,
    )
    prompt = model.renderer.render(messages, tools.effective_tools, reasoning, template_kwargs)
    engine_request = _engine_request(
        request, decoding, prompt.ids, model, _closing(request, tools, output_format, model)
    )
    constraint_of_turn = partial(
        resolve_constraint,
        family,
        tools=tools,
        output_format=output_format,
        thinking=prompt.thinking,
        policy=request.json_policy,
        defaults=defaults,
    )
    spec = constraint_of_turn()
    bound = spec is not None and (tools.call_required or not isinstance(output_format, TextFormat))
    budget, notes = resolve_thinking_budget(
        reasoning.budget,
        thinking=prompt.thinking,
        format_=family.reasoning,
        tokenizer=tokenizer,
        openers=family.tool_calls.openers,
        constrained=spec is not None,
        max_tokens=engine_request.max_tokens,
        cap=defaults.max_thinking_tokens,
    )
    needs_rest = budget is not None and not model.engine.continues_constraints
    return Resolved(
        engine_request=replace(engine_request, thinking=budget, report_accepting=bound and bool(stop)),
        spec=spec,
        spec_after_thinking=constraint_of_turn(resumed=True) if needs_rest else None,
        constraint_kind=constraint_kind(tools, output_format),
        bound=bound,
        tools=tools,
        thinking=prompt.thinking,
        parser_mode=_parser_mode(tools, output_format),
        stop=stop,
        text=request.text,
        include_reasoning=reasoning.include,
        notes=(*prompt.notes, *notes),
        enforcement=model.engine.enforcement,
    )


def resolve_raw(request: GenerateRequest, prompt: str | tuple[int, ...], model: ModelProfile) -> Resolved:
    """A request whose prompt is given as it is: no conversation, no family, the answer is the constraint's."""
    family, tokenizer = model.family, model.tokenizer
    output_format = resolve_output_format(request.output_format, turn_stop_texts(family, tokenizer))
    decoding = resolve_decoding(request.sampling, family, tokenizer)
    stop = resolve_stop(request.stop)
    closing = _closing(request, ToolContext(), output_format, model)
    engine_request = _engine_request(request, decoding, resolve_prompt(prompt, tokenizer), model, closing)
    spec = answer_only(output_format, resolve_policy(request.json_policy, model.defaults))
    return Resolved(
        engine_request=replace(engine_request, report_accepting=spec is not None and bool(stop)),
        spec=spec,
        constraint_kind=constraint_kind(ToolContext(), output_format),
        bound=spec is not None,
        tools=ToolContext(),
        thinking="none",
        parser_mode="ignore",
        stop=stop,
        text=request.text,
        include_reasoning=False,
        notes=(),
        enforcement=model.engine.enforcement,
        raw=True,
    )


def _engine_request(
    request: GenerateRequest,
    decoding: Decoding,
    prompt_ids: tuple[int, ...],
    model: ModelProfile,
    closing: LengthClosing | None,
) -> EngineRequest:
    return EngineRequest(
        request_id=request.request_id,
        prompt_ids=prompt_ids,
        sampling=decoding.sampling,
        limits=decoding.limits,
        stop_ids=decoding.stop_ids,
        max_tokens=resolve_max_tokens(
            request.max_tokens,
            len(prompt_ids),
            model.context_tokens,
            model.defaults.max_tokens,
            min_tokens=decoding.limits.min_tokens,
        ),
        closing=closing,
        priority=request.priority,
        trace=request.reports.trace,
    )


def _closing(
    request: GenerateRequest, tools: ToolContext, output_format: OutputFormat, model: ModelProfile
) -> LengthClosing | None:
    return resolve_closing(
        request.json_policy.close_on_length,
        model.defaults.close_on_length,
        tools=tools,
        output_format=output_format,
        openers=model.family.tool_calls.openers,
        tokenizer=model.tokenizer,
        is_possible=model.engine.closes_on_length,
    )


def _parser_mode(tools: ToolContext, output_format: OutputFormat) -> ParserMode:
    """Calls that the tool choice forbids are hidden; an answer held to a format cannot contain one, so what
    looks like one there is the answer's own text."""
    if tools.callable_tools:
        return "parse"
    if tools.effective_tools and isinstance(output_format, TextFormat):
        return "hide"
    return "ignore"
