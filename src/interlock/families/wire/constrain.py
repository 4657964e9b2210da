"""What a turn may look like: declaration, tools, answer format and thinking, as one ``ConstraintSpec``.

A turn is an optional block of thinking and then one of: calls; an answer in the asked format; free text that may
end in calls. Thinking is free text that cannot open a call. White space after thinking is a prefix of what the
family writes there, so it is bounded, and the parser can tell it from the answer; before an answer whose own
text may begin with white space (regex, grammar, choice) it is exactly what the family writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from interlock.config import PropertyOrder
from interlock.core.constraint import (
    Alternative,
    Choice,
    ConstraintSpec,
    FreeText,
    Grammar,
    JsonValue,
    Marker,
    Node,
    Regex,
    Repeat,
    Sequence,
    Text,
)
from interlock.core.output_format import (
    ChoiceFormat,
    GrammarFormat,
    JsonObjectFormat,
    JsonSchemaFormat,
    OutputFormat,
    RegexFormat,
    TextFormat,
)
from interlock.core.tools import Tool, ToolContext
from interlock.errors import InterlockError, Problem
from interlock.families.base import (
    Arguments,
    JsonEnvelope,
    Lit,
    Mark,
    ModelFamily,
    Name,
    Piece,
    ReasoningFormat,
    Thinking,
    ToolCallSyntax,
)
from interlock.families.wire import json_text
from interlock.families.wire.spell import envelope_head

_ANY_OBJECT = '{"type":"object"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstrainPolicy:
    """How JSON is generated where the schema leaves it open; see ``JsonPolicy``."""

    open_objects: bool = False
    response_order: PropertyOrder = "declared"
    tool_order: PropertyOrder = "any"
    flexible_whitespace: bool = False


def constrain(
    family: ModelFamily,
    *,
    tools: ToolContext,
    output_format: OutputFormat,
    thinking: Thinking,
    policy: ConstrainPolicy = ConstrainPolicy(),
) -> ConstraintSpec | None:
    """The constraint of the turn; ``None`` where it is free.

    With an answer format, calls are part of the grammar even if the tools themselves are not constrained:
    then a call is any declared name with any object.
    Raises ``InterlockError`` (``invalid_tools``) where a tool's parameters cannot be an object.
    """
    callable_tools = tools.callable_tools if tools.tool_choice.mode != "none" else ()
    is_free = isinstance(output_format, TextFormat)
    if is_free and not (callable_tools and tools.constrained):
        return None
    calls = _calls(family.tool_calls, tools, callable_tools, policy) if callable_tools else None
    if calls is not None and tools.call_required:
        space, body = _loose(family.reasoning), [calls]
    elif is_free:
        text = FreeText(_answer_excludes(family, thinking))
        space, body = (), [text, _sequence(text, calls)]
    else:
        answer = _answer(output_format, policy)
        space = _space_before(output_format, family.reasoning)
        body = [answer] if calls is None else [calls, answer]
    options = [_sequence(*head, node) for head in _heads(family, thinking, space) for node in body]
    if calls is not None and thinking in ("open", "optional"):
        options += _calls_out_of_thinking(family, thinking, calls)
    return ConstraintSpec(root=_alternative(options))


# thinking


def _heads(family: ModelFamily, thinking: Thinking, space: tuple[Node, ...]) -> list[tuple[Node, ...]]:
    """What may stand before the body of the turn."""
    format_ = family.reasoning
    if format_ is None or thinking in ("none", "closed"):
        return [()]
    block = (_thoughts(family, format_), Marker(format_.close), *space)
    return [block] if thinking == "open" else [(Marker(format_.open), *block), ()]


def _calls_out_of_thinking(family: ModelFamily, thinking: Thinking, calls: Node) -> list[Node]:
    """For families where a call's opener ends thinking."""
    format_ = family.reasoning
    if format_ is None or not format_.closed_by_tool_call:
        return []
    opened: tuple[Node, ...] = (Marker(format_.open),) if thinking == "optional" else ()
    return [_sequence(*opened, _thoughts(family, format_), calls)]


def _thoughts(family: ModelFamily, format_: ReasoningFormat) -> FreeText:
    return FreeText((format_.open, format_.close, family.tool_calls.opener))


def _answer_excludes(family: ModelFamily, thinking: Thinking) -> tuple[str, ...]:
    format_ = family.reasoning
    marks = () if format_ is None or thinking == "none" else (format_.open, format_.close)
    return (family.tool_calls.opener, *marks)


def _space_before(output_format: OutputFormat, format_: ReasoningFormat | None) -> tuple[Node, ...]:
    if isinstance(output_format, RegexFormat | GrammarFormat | ChoiceFormat):
        return (Text(format_.after_close),) if format_ else ()
    return _loose(format_)


def _loose(format_: ReasoningFormat | None) -> tuple[Node, ...]:
    """Any prefix of the white space that the family writes after thinking."""
    text = format_.after_close if format_ else ""
    if not text:
        return ()
    prefixes = tuple(text[:end] for end in range(1, len(text) + 1))
    return (Repeat(Choice(prefixes), 0, 1),)


# calls


def _calls(
    syntax: ToolCallSyntax, context: ToolContext, tools: tuple[Tool, ...], policy: ConstrainPolicy
) -> Node:
    """All calls of a turn."""
    call = _alternative([_call(syntax, tool, context, policy) for tool in tools])
    most = None if context.parallel_tool_calls else 1
    return _sequence(
        *_fixed(syntax.section_open),
        Repeat(call, 1, most, Text(syntax.separator) if syntax.separator else None) if most != 1 else call,
        *_fixed(syntax.section_close),
    )


def _call(syntax: ToolCallSyntax, tool: Tool, context: ToolContext, policy: ConstrainPolicy) -> Node:
    arguments = JsonValue(
        schema=_object_schema(tool) if context.constrained else _ANY_OBJECT,
        open_objects=policy.open_objects,
        property_order=policy.tool_order,
        flexible_whitespace=policy.flexible_whitespace,
        item_separator=syntax.item_separator,
        key_separator=syntax.key_separator,
        origin=f"tools[{context.effective_tools.index(tool)}].function.parameters",
        tool=tool.name,
    )
    return _sequence(*(node for piece in syntax.call for node in _piece(piece, syntax, tool, arguments)))


def _piece(piece: Piece, syntax: ToolCallSyntax, tool: Tool, arguments: JsonValue) -> tuple[Node, ...]:
    match piece:
        case Mark(text=text):
            return (Marker(text),)
        case Lit(text=text):
            return (Text(text),)
        case Name():
            return (Text(tool.name),)
        case Arguments():
            return (arguments,)
        case JsonEnvelope():
            return (Text(envelope_head(piece, syntax, tool.name)), arguments, Text("}"))


def _fixed(pieces: tuple[Piece, ...]) -> tuple[Node, ...]:
    return tuple(
        Marker(piece.text) if isinstance(piece, Mark) else Text(piece.text)
        for piece in pieces
        if isinstance(piece, Mark | Lit)
    )


def _object_schema(tool: Tool) -> str:
    """The tool's schema, made to say that arguments are an object. The text is kept where it says so."""
    schema = json_text.loads(tool.parameters)
    if schema is True:
        return _ANY_OBJECT
    kinds = schema.get("type", "object") if isinstance(schema, dict) else ()
    if "object" not in ([kinds] if isinstance(kinds, str) else kinds):
        raise InterlockError(
            "invalid_tools",
            f"the parameters of tool {tool.name!r} do not describe an object",
            problems=(Problem(reason="arguments are always an object", keyword="type", tool=tool.name),),
        )
    if schema.get("type") == "object":
        return tool.parameters
    return json_text.dumps({**schema, "type": "object"})


# answers


def _answer(output_format: OutputFormat, policy: ConstrainPolicy) -> Node:
    match output_format:
        case JsonSchemaFormat(schema=schema, param=param):
            return _json(schema, param, policy)
        case JsonObjectFormat():
            return _json(_ANY_OBJECT, "response_format", policy)
        case RegexFormat(pattern=pattern, param=param):
            return Regex(pattern, origin=param)
        case GrammarFormat(source=source, dialect=dialect, param=param):
            return Grammar(source, dialect, origin=param)
        case ChoiceFormat(choices=choices, param=param):
            return Choice(choices, origin=param)
        case TextFormat():
            raise AssertionError("free text is no answer format")


def _json(schema: str, origin: str, policy: ConstrainPolicy) -> JsonValue:
    return JsonValue(
        schema=schema,
        open_objects=policy.open_objects,
        property_order=policy.response_order,
        flexible_whitespace=policy.flexible_whitespace,
        origin=origin,
    )


# trees without needless nodes


def _sequence(*items: Node | None) -> Node:
    """``items`` in order, nested sequences opened and neighbouring texts joined."""
    flat: list[Node] = []
    for item in items:
        for node in item.items if isinstance(item, Sequence) else (item,):
            if node is None or node == Text(""):
                continue
            if isinstance(node, Text) and flat and isinstance(flat[-1], Text):
                flat[-1] = Text(flat[-1].text + node.text)
            else:
                flat.append(node)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def _alternative(items: list[Node]) -> Node:
    return items[0] if len(items) == 1 else Alternative(tuple(items))
