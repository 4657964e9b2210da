"""What a turn may look like: declaration, tools, answer format and thinking, as one ``ConstraintSpec``.

A turn is an optional block of thinking and then one of: calls; an answer in the asked format; free text that may
end in calls. Thinking is free text that cannot open a call. White space after thinking is a prefix of what the
family writes there, so it is bounded, and the parser can tell it from the answer; before an answer whose own
text may begin with white space (regex, grammar, choice) it is exactly what the family writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    StructuralTagFormat,
    TextFormat,
)
from interlock.core.tools import Tool, ToolContext
from interlock.errors import InterlockError, Problem
from interlock.families.base import ModelFamily, Name, NumberedName, ReasoningFormat, Thinking
from interlock.families.wire import json_text
from interlock.families.wire.call_reader import is_bare_name
from interlock.families.wire.constrain_calls import all_calls
from interlock.families.wire.structural_tag import structural_tag
from interlock.families.wire.trees import alternative, sequence

_EXACT = (RegexFormat, GrammarFormat, ChoiceFormat, StructuralTagFormat)
_ANY_OBJECT = '{"type":"object"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstrainPolicy:
    """How JSON is generated where the schema leaves it open; see ``JsonPolicy``."""

    open_objects: bool = False
    response_order: PropertyOrder = "declared"
    tool_order: PropertyOrder = "any"
    flexible_whitespace: bool = False
    relaxed: bool = False


def constrain(
    family: ModelFamily,
    *,
    tools: ToolContext,
    output_format: OutputFormat,
    thinking: Thinking,
    policy: ConstrainPolicy = ConstrainPolicy(),
    resumed: bool = False,
) -> ConstraintSpec | None:
    """The constraint of the turn; ``None`` where it is free. resumed: of what follows the marker that closes its
    thinking.

    With an answer format, calls are part of the grammar even if the tools themselves are not constrained:
    then a call is any declared name with any object.
    Raises ``InterlockError`` (``invalid_tools``) where a tool's parameters cannot be an object, or have a name
    that the family cannot write.
    """
    callable_tools = tools.callable_tools if tools.tool_choice.mode != "none" else ()
    is_free = isinstance(output_format, TextFormat)
    if is_free and not (callable_tools and tools.constrained):
        return None
    other = by_other_engine(output_format)
    if other is not None:
        if callable_tools or thinking not in ("none", "closed") or family.answer is not None:
            raise InterlockError(
                "unsupported_parameter",
                f"{other.provider} holds answers that are nothing but the answer: without tools, thinking and markers",
                param="structured_outputs.backend",
                hint="leave it out, or switch thinking and tools off",
            )
        return other
    turn = _Turn(family, thinking, resumed)
    calls = _calls(family, tools, callable_tools, policy) if callable_tools else []
    if calls and tools.call_required:
        bodies = [turn.calls(node) for node in calls]
        after_thinking = turn.loose_space()
    elif is_free:
        bodies = [turn.text(), *(node for call in calls for node in turn.text_and_calls(call))]
        after_thinking = () if family.answer is None else turn.loose_space()
    else:
        answer = turn.framed(_answer(output_format, policy))
        bodies = [*(turn.calls(node) for node in calls), answer]
        exact = isinstance(output_format, _EXACT) and family.answer is None
        after_thinking = turn.exact_space() if exact else turn.loose_space()
    options = [sequence(*head, node) for head in turn.heads(after_thinking) for node in bodies]
    options += [option for node in calls for option in turn.calls_out_of_thinking(node)]
    return ConstraintSpec(root=alternative([turn.closed(option) for option in options]))


def answer_only(
    output_format: OutputFormat, policy: ConstrainPolicy = ConstrainPolicy()
) -> ConstraintSpec | None:
    """The constraint of a text that is nothing but the answer; ``None`` where it is free."""
    if isinstance(output_format, TextFormat):
        return None
    return by_other_engine(output_format) or ConstraintSpec(root=_answer(output_format, policy))


def by_other_engine(output_format: OutputFormat) -> ConstraintSpec | None:
    """The constraint of an answer that another engine than ours holds, ``None`` where ours does. Raises ``InterlockError``
    for what that engine does not read."""
    if (
        not isinstance(output_format, GrammarFormat | StructuralTagFormat)
        or output_format.engine == "llguidance"
    ):
        return None
    if isinstance(output_format, StructuralTagFormat):
        root = Grammar(output_format.tag, "ebnf", origin=output_format.param)
    elif output_format.dialect == "lark":
        raise InterlockError(
            "unsupported_parameter",
            "xgrammar reads EBNF and GBNF, this grammar is Lark",
            param=output_format.param,
            hint="leave structured_outputs.backend out",
        )
    else:
        root = Grammar(output_format.source, output_format.dialect, origin=output_format.param)
    return ConstraintSpec(root=root, provider=output_format.engine)


@dataclass(frozen=True, slots=True)
class _Turn:
    """The parts of a turn of one family."""

    family: ModelFamily
    thinking: Thinking
    resumed: bool

    # thinking

    def heads(self, space: tuple[Node, ...]) -> list[tuple[Node, ...]]:
        """What may stand before the body of the turn."""
        format_ = self.family.reasoning
        if format_ is None or self.thinking in ("none", "closed"):
            return [()]
        resume = (Marker(format_.resume),) if format_.resume else ()
        if self.resumed:
            return [(*resume, *space)]
        block = (self._thoughts(format_), Marker(format_.close), *resume, *space)
        return [block] if self.thinking == "open" else [(Marker(format_.open), *block), ()]

    def calls_out_of_thinking(self, calls: Node) -> list[Node]:
        """For families where a call's opener ends thinking."""
        format_ = self.family.reasoning
        if format_ is None or not format_.closed_by_tool_call or self.thinking in ("none", "closed"):
            return []
        if self.resumed:
            return []
        opened: tuple[Node, ...] = (Marker(format_.open),) if self.thinking == "optional" else ()
        return [sequence(*opened, self._thoughts(format_), calls)]

    def _thoughts(self, format_: ReasoningFormat) -> FreeText:
        return FreeText(tuple(dict.fromkeys((format_.open, format_.close, *self.family.tool_calls.openers))))

    # space after thinking

    def exact_space(self) -> tuple[Node, ...]:
        format_ = self.family.reasoning
        return (Text(format_.after_close),) if format_ and format_.after_close else ()

    def loose_space(self) -> tuple[Node, ...]:
        """Any prefix of the white space that the family writes after thinking."""
        return _prefixes(self.family.reasoning.after_close if self.family.reasoning else "")

    def _lead(self) -> str:
        return self.family.tool_calls.lead if self.family.tool_calls.always_leads else ""

    # bodies

    def text(self) -> Node:
        return self.framed(self._free_text())

    def framed(self, node: Node) -> Node:
        """``node`` between the family's answer markers."""
        answer = self.family.answer
        if answer is None:
            return node
        opened = self.thinking == "closed" and answer.opened_by_prompt
        return sequence(*_marks("" if opened else answer.open), node, *_marks(answer.close))

    def text_and_calls(self, calls: Node) -> list[Node]:
        """Calls, and text that ends in calls where the family can tell the two apart."""
        answer = self.family.answer
        if answer is not None and answer.leads_always:
            return [sequence(self.framed(self._free_text()), calls)]
        if answer is not None:
            lead = (Marker(answer.lead_open), self._free_text(), Marker(answer.lead_close))
            return [calls, sequence(*lead, calls)] if answer.lead_open else [calls]
        if self.family.tool_calls.bare and not _starts_marked(calls):
            return [calls]
        return [sequence(self._free_text(), calls)]

    def calls(self, calls: Node) -> Node:
        """Calls with no text in front of them."""
        answer = self.family.answer
        if answer is not None and answer.leads_always:
            return sequence(self.framed(Text("")), calls)
        return sequence(*_prefixes(self._lead()), calls)

    def closed(self, turn: Node) -> Node:
        return sequence(turn, *_marks(self.family.answer.turn_close if self.family.answer else ""))

    def _free_text(self) -> FreeText:
        format_, syntax = self.family.reasoning, self.family.tool_calls
        marks = () if format_ is None or self.thinking == "none" else (format_.open, format_.close)
        begins_not = syntax.bare if self.family.answer is None else ""
        return FreeText(tuple(dict.fromkeys((*syntax.openers, *marks))), begins_not=begins_not)


def _starts_marked(node: Node) -> bool:
    while isinstance(node, Sequence | Repeat | Alternative):
        node = node.item if isinstance(node, Repeat) else node.items[0]
    return isinstance(node, Marker)


def _marks(text: str) -> tuple[Node, ...]:
    return (Marker(text),) if text else ()


def _prefixes(text: str) -> tuple[Node, ...]:
    """Nothing, or any prefix of ``text``."""
    if not text:
        return ()
    prefixes = tuple(text[:end] for end in range(1, len(text) + 1))
    return (Repeat(Choice(prefixes), 0, 1),)


# calls


def _calls(
    family: ModelFamily, context: ToolContext, tools: tuple[Tool, ...], policy: ConstrainPolicy
) -> list[Node]:
    """All calls of a turn, in each form the family has for them."""
    syntax = family.tool_calls
    _check_names(family, tools)
    values: dict[str, Node] = {}
    for tool in tools:
        origin = f"{_path(context, tool)}.function.parameters"
        if tool.input_grammar is not None and context.constrained:
            values[tool.name] = _input(family, tool, tool.input_grammar, origin)
            continue
        values[tool.name] = JsonValue(
            schema=_object_schema(tool) if context.constrained else _ANY_OBJECT,
            syntax=syntax.arguments,
            open_objects=policy.open_objects,
            property_order=policy.tool_order,
            flexible_whitespace=policy.flexible_whitespace,
            relaxed=policy.relaxed,
            item_separator=syntax.item_separator,
            key_separator=syntax.key_separator,
            origin=origin,
            tool=tool.name,
        )
    return all_calls(syntax, values, parallel=context.parallel_tool_calls)


def _path(context: ToolContext, tool: Tool) -> str:
    """Where the request declares ``tool``."""
    index = context.effective_tools.index(tool)
    return context.paths[index] if context.paths else f"tools[{index}]"


def _input(family: ModelFamily, tool: Tool, grammar: str, origin: str) -> Node:
    """Arguments that are nothing but an ``input`` of ``grammar``."""
    syntax = family.tool_calls
    if syntax.arguments != "json":
        reason = (
            "this model's calls write strings without JSON's escapes: only a regular grammar can be held there"
        )
        raise InterlockError(
            "invalid_grammar", reason, param=origin, problems=(Problem(reason=reason, tool=tool.name),)
        )
    head = Text(f'{{"input"{syntax.key_separator}"')
    return Sequence((head, Grammar(grammar, "lark", origin, quoted=True), Text('"}')))


def _check_names(family: ModelFamily, tools: tuple[Tool, ...]) -> None:
    """Raise where a name cannot stand bare in the family's header."""
    if not any(isinstance(piece, Name | NumberedName) for piece in family.tool_calls.call):
        return
    for tool in tools:
        if not is_bare_name(tool.name):
            raise InterlockError(
                "invalid_tools",
                f"calls of a {family.name} model cannot hold the tool name {tool.name!r}",
                problems=(Problem(reason="the name is written without quotes", tool=tool.name),),
            )


def _object_schema(tool: Tool) -> str:
    """The tool's schema, made to say that arguments are an object. The text is kept where it says so."""
    schema = json_text.loads(tool.parameters)
    if schema is True:
        return _ANY_OBJECT
    kinds = schema.get("type", "object") if isinstance(schema, dict) else ()
    if "object" not in (kinds if isinstance(kinds, list | tuple) else [kinds]):
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
        case StructuralTagFormat(tag=tag, param=param):
            exact = replace(policy, relaxed=False)  # the whole answer is no JSON that could be validated
            return structural_tag(tag, param, lambda schema, origin: _json(schema, origin, exact))
        case TextFormat():
            raise AssertionError("free text is no answer format")


def _json(schema: str, origin: str, policy: ConstrainPolicy) -> JsonValue:
    return JsonValue(
        schema=schema,
        open_objects=policy.open_objects,
        property_order=policy.response_order,
        flexible_whitespace=policy.flexible_whitespace,
        relaxed=policy.relaxed,
        origin=origin,
    )
