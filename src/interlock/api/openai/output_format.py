"""``response_format``, ``structured_outputs`` and the like to ``core.output_format``: one kind at most."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec

from interlock.api.fields import unsupported
from interlock.api.json_body import JsonText, parse_text
from interlock.api.openai.refused import refuse_structured_options
from interlock.api.openai.wire import WireConstrained, WireGrammar, WireResponseFormat, WireStructuredOutputs
from interlock.api.reading import read_json_policy
from interlock.api.schemas import schema_text
from interlock.core.output_format import (
    ChoiceFormat,
    GrammarDialect,
    GrammarFormat,
    JsonObjectFormat,
    JsonSchemaFormat,
    OutputFormat,
    RegexFormat,
    StructuralTagFormat,
    TextFormat,
)
from interlock.core.request import JsonPolicy
from interlock.errors import InterlockError

_BNF_RULE = re.compile(r"^\s*<?[\w.-]+>?\s*::=", re.MULTILINE)


def read_output_format(wire: WireConstrained, *, max_nesting: int) -> OutputFormat:
    """Raises a 400 with the path in ``param``; two constraints at once are ``conflicting_parameters``."""
    found: dict[str, OutputFormat] = {}
    answer = TextFormat() if wire.response_format is None else _response_format(wire.response_format)
    if not isinstance(answer, TextFormat):
        found["response_format"] = answer
    if wire.structured_outputs is not None:
        found["structured_outputs"] = _structured_outputs(wire.structured_outputs, max_nesting)
    if wire.json_schema is not None:
        schema = schema_text(wire.json_schema, "json_schema")
        found["json_schema"] = JsonSchemaFormat(schema=schema, param="json_schema")
    if wire.grammar is not None:
        found["grammar"] = GrammarFormat(source=wire.grammar, dialect=dialect(wire.grammar), param="grammar")
    if len(found) > 1:
        raise InterlockError(
            "conflicting_parameters",
            f"{' and '.join(found)} both constrain the answer",
            param=list(found)[-1],
            hint="send one of them",
        )
    return next(iter(found.values()), answer)


def dialect(grammar: str) -> GrammarDialect:
    """Lark unless a line starts like a rule of GBNF."""
    return "gbnf" if _BNF_RULE.search(grammar) else "lark"


def _response_format(wire: WireResponseFormat) -> OutputFormat:
    _refuse_stray_schema(wire)
    match wire.type:
        case "text":
            return TextFormat(asked=True)
        case "json_object" if wire.schema_ is not None:
            param = "response_format.schema"
            return JsonSchemaFormat(schema=schema_text(wire.schema_, param), param=param)
        case "json_object":
            return JsonObjectFormat()
        case "json_schema":
            return _json_schema(wire)
        case "regex_schema":
            param = "response_format.regex_schema"
            if wire.regex_schema is None:
                raise InterlockError("missing_field", f"{param} is missing", param=param)
            return RegexFormat(pattern=wire.regex_schema, param=param)
        case "structural_tag":
            return StructuralTagFormat(tag=_tag_text(wire))
    raise InterlockError(
        "invalid_value",
        f"response_format.type `{wire.type[:100]}` is not text, json_object, json_schema, regex_schema or structural_tag",
        param="response_format.type",
    )


def _refuse_stray_schema(wire: WireResponseFormat) -> None:
    """A schema where the type does not read one: dropping it would be a promise broken in silence."""
    strays: dict[str, dict[str, object]] = {
        "text": {"json_schema": wire.json_schema, "schema": wire.schema_, "regex_schema": wire.regex_schema},
        "json_object": {"json_schema": wire.json_schema, "regex_schema": wire.regex_schema},
        "json_schema": {
            "schema": wire.schema_ if wire.json_schema is not None else None,
            "regex_schema": wire.regex_schema,
        },
        "regex_schema": {"json_schema": wire.json_schema, "schema": wire.schema_},
    }
    tags = {"format": wire.format_, "structures": wire.structures, "triggers": wire.triggers}
    strays = {kind: {**fields, **tags} for kind, fields in strays.items()}
    strays["structural_tag"] = {
        "json_schema": wire.json_schema,
        "schema": wire.schema_,
        "regex_schema": wire.regex_schema,
    }
    for name, value in strays.get(wire.type, {}).items():
        if value is not None:
            raise InterlockError(
                "conflicting_parameters",
                f"response_format.{name} does not belong to response_format.type `{wire.type}`",
                param=f"response_format.{name}",
                hint='write {"type": "json_schema", "json_schema": {"name": ..., "schema": ...}}',
            )


def _tag_text(wire: WireResponseFormat) -> str:
    """The tag as one object."""
    parts = {"format": wire.format_, "structures": wire.structures, "triggers": wire.triggers}
    given = {name: text for name, text in parts.items() if text is not None}
    if set(given) not in ({"format"}, {"structures", "triggers"}):
        raise InterlockError(
            "missing_field",
            "response_format of type `structural_tag` has either `format`, or `structures` and `triggers`",
            param="response_format",
        )
    return "{" + ", ".join(f'"{name}": {text}' for name, text in given.items()) + "}"


def _json_schema(wire: WireResponseFormat) -> OutputFormat:
    param = "response_format.json_schema"
    inner = wire.json_schema
    if inner is None:
        hint = "move response_format.schema into json_schema" if wire.schema_ is not None else None
        raise InterlockError(
            "missing_field", f"{param} is missing: an object with `name` and `schema`", param=param, hint=hint
        )
    param += ".schema"
    if inner.schema_ is None:
        raise InterlockError("missing_field", f"{param} is missing", param=param)
    return JsonSchemaFormat(schema=schema_text(inner.schema_, param), name=inner.name, strict=inner.strict)


def read_policy(wire: WireConstrained) -> JsonPolicy:
    """How JSON is spelt, by Interlock's own fields and by those of other servers that say the same. Raises
    ``conflicting_parameters``."""
    policy, options = read_json_policy(wire.interlock), wire.structured_outputs
    if options is None:
        return policy
    if options.disable_any_whitespace:
        if policy.whitespace == "flexible":
            raise _contradiction("structured_outputs.disable_any_whitespace", "interlock.whitespace")
        policy = replace(policy, whitespace="fixed")
    if options.disable_additional_properties:
        if policy.open_objects:
            raise _contradiction("structured_outputs.disable_additional_properties", "interlock.open_objects")
        policy = replace(policy, open_objects=False)
    return policy


def _contradiction(field: str, other: str) -> InterlockError:
    return InterlockError("conflicting_parameters", f"{field} and {other} contradict each other", param=field)


def _structured_outputs(wire: WireStructuredOutputs, max_nesting: int) -> OutputFormat:
    refuse_structured_options(wire.model_extra or {})
    found: dict[str, OutputFormat] = {}
    if wire.json_ is not None:
        param = "structured_outputs.json"
        found["json"] = JsonSchemaFormat(
            schema=schema_text(_unquoted(wire.json_, max_nesting, param), param), param=param
        )
    if wire.json_object:
        found["json_object"] = JsonObjectFormat()
    if wire.regex is not None:
        found["regex"] = RegexFormat(pattern=wire.regex)
    if wire.choice is not None:
        found["choice"] = ChoiceFormat(choices=tuple(wire.choice))
    if wire.grammar is not None:
        found["grammar"] = _grammar(wire.grammar)
    if wire.structural_tag is not None:
        param = "structured_outputs.structural_tag"
        found["structural_tag"] = StructuralTagFormat(
            tag=_unquoted(wire.structural_tag, max_nesting, param), param=param
        )
    if len(found) != 1:
        names = ", ".join(found) or "none"
        raise InterlockError(
            "conflicting_parameters" if found else "missing_field",
            f"structured_outputs needs exactly one of json, json_object, regex, choice, grammar, structural_tag; it has {names}",
            param="structured_outputs",
        )
    (asked,) = found.values()
    if wire.backend is None:
        return asked
    if not isinstance(asked, GrammarFormat | StructuralTagFormat):
        raise unsupported("structured_outputs.backend", "leave it out: it is for grammar and structural_tag")
    return replace(asked, engine=wire.backend)


def _unquoted(schema: JsonText, max_nesting: int, param: str) -> JsonText:
    """It may come as a string that holds its JSON text."""
    if schema.kind != "string":
        return schema
    try:
        return parse_text(msgspec.json.decode(schema.encode(), type=str), max_nesting=max_nesting)
    except ValueError as error:
        raise InterlockError("invalid_schema", f"the text of {param} is {error}", param=param) from None


def _grammar(wire: str | WireGrammar) -> GrammarFormat:
    if isinstance(wire, str):
        return GrammarFormat(source=wire, dialect=dialect(wire))
    return GrammarFormat(
        source=wire.definition, dialect=wire.syntax, param="structured_outputs.grammar.definition"
    )
