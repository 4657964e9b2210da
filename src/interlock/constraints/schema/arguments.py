"""A tool's arguments in the syntax of its model family, as Lark for llguidance, or an honest refusal."""

from __future__ import annotations

from interlock.constraints.schema import GUARDED, EngineTrial, SchemaGrammar, load_schema, schema_grammar
from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.compile import LoweringFactory
from interlock.constraints.schema.lower.argument_syntaxes import (
    BareKeySyntax,
    KeywordSyntax,
    MarkParts,
    PythonSyntax,
    RawStrings,
)
from interlock.constraints.schema.lower.arguments import NestedTagLowering, TaggedLowering
from interlock.constraints.schema.lower.keyword_arguments import KeywordLowering
from interlock.constraints.schema.lower.syntax import json_syntax
from interlock.constraints.schema.lower.values import ValueLowering
from interlock.constraints.schema.lower.writer import Writer
from interlock.constraints.schema.options import SchemaOptions
from interlock.constraints.schema.problems import Problems
from interlock.core.argument_syntax import (
    BareKeyArguments,
    NestedTagArguments,
    PythonArguments,
    TaggedArguments,
)
from interlock.core.constraint import JsonValue
from interlock.core.schema_types import SchemaTypes


def argument_grammar(
    value: JsonValue,
    prefix: str,
    marks: MarkParts,
    *,
    options: SchemaOptions = GUARDED,
    trial: EngineTrial | None = None,
) -> SchemaGrammar:
    """The grammar of arguments in ``value.syntax``, which is not JSON. marks: cuts a marker around the special
    tokens of the vocabulary. options, trial: see ``schema_grammar``. Raises ``InterlockError`` ``invalid_schema`` with
    every problem."""
    return schema_grammar(value, prefix, options=options, lowering=_factory(value, marks), trial=trial)


def _factory(value: JsonValue, marks: MarkParts) -> LoweringFactory:
    syntax = value.syntax
    schema = load_schema(value.schema)

    def make(algebra: Algebra, writer: Writer, options: SchemaOptions, problems: Problems) -> ValueLowering:
        match syntax:
            case TaggedArguments():
                json = json_syntax(", ", ": ", flexible=False)
                types = SchemaTypes(schema, schema)
                return TaggedLowering(algebra, writer, json, options, problems, syntax, marks, types)
            case NestedTagArguments():
                return NestedTagLowering(algebra, writer, options, problems, syntax, marks)
            case BareKeyArguments(quote=quote):
                strings = RawStrings(writer, marks, quote, quote)
                return ValueLowering(algebra, writer, BareKeySyntax(strings), options, problems)
            case PythonArguments(quote=quote):
                outer, inner = KeywordSyntax(quote), PythonSyntax(quote)
                return KeywordLowering(algebra, writer, inner, options, problems, outer)
            case "json":
                raise AssertionError("JSON needs no lowering of its own")

    return make
