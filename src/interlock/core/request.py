"""``GenerateRequest``: what an endpoint asks of the service, free of any vendor's wire format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from interlock.config import CloseOnLength, PropertyOrder, SchemaMode, ToolConstraints, Whitespace
from interlock.core.messages import Message
from interlock.core.output_format import OutputFormat, TextFormat
from interlock.core.sampling import SamplingOptions
from interlock.core.tools import Tool, ToolChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPolicy:
    """How JSON is generated where the schema leaves it open; ``None`` means the server's default.

    open_objects: an object schema that declares properties also admits undeclared keys.
    property_order: ``declared`` or ``any``. whitespace: ``fixed`` spacing, or bounded ``flexible``.
    schema_mode: what of a schema cannot be held is refused (``exact``), or left out and reported (``relaxed``).
    close_on_length: what is brought to a legal end when the tokens run out: nothing, ``answers``, or also calls (``all``).
    """

    open_objects: bool | None = None
    property_order: PropertyOrder | None = None
    whitespace: Whitespace | None = None
    schema_mode: SchemaMode | None = None
    close_on_length: CloseOnLength | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What a request wants to know about how it was answered. timings: ``core.timings``. trace: ``core.trace``."""

    timings: bool = False
    trace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions:
    """What of the output is shown. include_stop: the stop string that ends the answer. special_tokens: control tokens
    that mean nothing to the model's family, by their spelling."""

    include_stop: bool = False
    special_tokens: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningOptions:
    """What a request says about thinking; ``None`` means the model's default.

    enabled: thinking on or off. effort: the vendor's word for how much (passed to the template).
    budget: most thinking tokens before the closing marker is forced.
    include: whether the client wants to see the reasoning. param: the request's field that said ``enabled``.
    """

    enabled: bool | None = None
    effort: str | None = None
    budget: int | None = None
    include: bool = True
    param: str = field(default="enable_thinking", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateRequest:
    """One request. Made by ``api/*/request.py`` only.

    prompt: text or token ids to go on from as they are, instead of ``messages``: no template, no tools, no
    reasoning, and a constraint holds from the first token.
    tools: ``None`` when the field was absent. tool_choice: ``None`` when absent.
    stop: stop strings, none of them empty. timeout_s: wall-clock limit, ``None`` for the server's.
    template_kwargs: extra variables for the chat template.
    """

    request_id: str
    model: str
    messages: tuple[Message, ...] = ()
    prompt: str | tuple[int, ...] | None = None
    tools: tuple[Tool, ...] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    tool_constraints: ToolConstraints | None = None
    output_format: OutputFormat = field(default_factory=TextFormat)
    json_policy: JsonPolicy = JsonPolicy()
    reports: ReportOptions = ReportOptions()
    sampling: SamplingOptions = SamplingOptions()
    text: TextOptions = TextOptions()
    reasoning: ReasoningOptions = ReasoningOptions()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    priority: int = 0
    timeout_s: float | None = None
    template_kwargs: tuple[tuple[str, Any], ...] = ()
