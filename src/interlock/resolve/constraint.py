"""The constraint of the whole turn, under the policies of the request and the server."""

from __future__ import annotations

from interlock.config import GenerationDefaults
from interlock.core.constraint import ConstraintSpec
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
from interlock.core.request import JsonPolicy
from interlock.core.tools import ToolContext
from interlock.families.base import ModelFamily, Thinking
from interlock.families.wire.constrain import ConstrainPolicy, constrain

_KINDS: dict[type[OutputFormat], str] = {
    TextFormat: "",
    JsonObjectFormat: "json_object",
    JsonSchemaFormat: "json_schema",
    RegexFormat: "regex",
    GrammarFormat: "grammar",
    ChoiceFormat: "choice",
    StructuralTagFormat: "structural_tag",
}


def resolve_constraint(
    family: ModelFamily,
    *,
    tools: ToolContext,
    output_format: OutputFormat,
    thinking: Thinking,
    policy: JsonPolicy,
    defaults: GenerationDefaults,
    resumed: bool = False,
) -> ConstraintSpec | None:
    """``None`` for a free answer. resumed: see ``constrain``."""
    return constrain(
        family,
        tools=tools,
        output_format=output_format,
        thinking=thinking,
        policy=resolve_policy(policy, defaults),
        resumed=resumed,
    )


def resolve_policy(policy: JsonPolicy, defaults: GenerationDefaults) -> ConstrainPolicy:
    """What the request says, else the server's default. A requested order goes for answer and tools."""
    return ConstrainPolicy(
        open_objects=defaults.open_objects if policy.open_objects is None else policy.open_objects,
        response_order=policy.property_order or defaults.response_order,
        tool_order=policy.property_order or defaults.tool_order,
        flexible_whitespace=(policy.whitespace or defaults.whitespace) == "flexible",
        relaxed=(policy.schema_mode or defaults.schema_mode) == "relaxed",
    )


def constraint_kind(tools: ToolContext, output_format: OutputFormat) -> str:
    """What is constrained, for metrics: ``tools``, a format's name, or both joined by ``+``."""
    parts = ("tools" if tools.constrained else "", _KINDS[type(output_format)])
    return "+".join(part for part in parts if part)
