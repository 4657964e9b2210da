"""Parts of a body that several of OpenAI's endpoints and our own have in common. Types only."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from interlock.api.json_body import KEPT, Shape
from interlock.api.wire import Int, Schema, Wire, WireInterlock, WireSampling, WireSchedule
from interlock.core.output_format import GrammarEngine


class WireJsonSchema(Wire):
    name: str | None = None
    schema_: Schema | None = Field(default=None, alias="schema")
    strict: bool | None = None


class WireResponseFormat(Wire):
    type: str
    json_schema: WireJsonSchema | None = None
    schema_: Schema | None = Field(default=None, alias="schema")  # of json_object, as other servers have it
    regex_schema: str | None = None  # as LMDeploy has it
    format_: Schema | None = Field(default=None, alias="format")  # of structural_tag
    structures: Schema | None = None
    triggers: Schema | None = None


class WireGrammar(Wire):
    syntax: Literal["lark", "gbnf", "ebnf"]
    definition: str


class WireStructuredOutputs(Wire):
    json_: Schema | None = Field(default=None, alias="json")
    json_object: bool | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | WireGrammar | None = None
    structural_tag: Schema | None = None
    backend: GrammarEngine | None = None  # of grammar and structural_tag
    disable_any_whitespace: bool | None = None
    disable_additional_properties: bool | None = None


class WireStreamOptions(Wire):
    include_usage: bool | None = None


class WireFunction(Wire):
    name: str
    description: str | None = None
    parameters: Schema | None = None
    strict: bool | None = None
    defer_loading: bool | None = None


class WireTool(Wire):
    type: str
    function: WireFunction | None = None
    # where other APIs put them; read for the error message only
    name: Any = None
    parameters: Any = None
    strict: Any = None
    defer_loading: bool | None = None


class WireConstrained(Wire):
    """What the answer is held to. grammar, json_schema: as llama.cpp's server has them."""

    response_format: WireResponseFormat | None = None
    structured_outputs: WireStructuredOutputs | None = None
    grammar: str | None = None
    json_schema: Schema | None = None
    interlock: WireInterlock | None = None


class WireGeneration(WireSampling, WireSchedule, WireConstrained):
    """What both endpoints take."""

    model: str
    n: Int | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: WireStreamOptions | None = None
    prompt_logprobs: Int | None = None


TOOLS_AS_TEXT: Shape = [{"function": {"parameters": KEPT}}]
FORMATS_AS_TEXT: dict[str, Shape] = {
    "response_format": {
        "schema": KEPT,
        "json_schema": {"schema": KEPT},
        "format": KEPT,
        "structures": KEPT,
        "triggers": KEPT,
    },
    "structured_outputs": {"json": KEPT, "structural_tag": KEPT},
    "json_schema": KEPT,
}
