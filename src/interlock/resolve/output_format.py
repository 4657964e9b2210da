"""Output formats that can be seen to be senseless without compiling them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from interlock.constraints.walk import walk
from interlock.core.constraint import JsonValue, Marker
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
from interlock.errors import InterlockError
from interlock.families.wire.structural_tag import structural_tag
from interlock.resolve.text import require_unicode


def resolve_output_format(output_format: OutputFormat, stop_texts: Collection[str] = ()) -> OutputFormat:
    """The format, checked. stop_texts: spellings of the tokens that end a turn. Repeated choices are named once. Raises the 400 of the format's kind."""
    match output_format:
        case TextFormat() | JsonObjectFormat():
            return output_format
        case JsonSchemaFormat(schema=text, param=param):
            _require_text(text, "invalid_schema", "the schema is empty", param)
        case RegexFormat(pattern=text, param=param):
            _require_text(text, "invalid_regex", "the regular expression is empty", param)
        case GrammarFormat(source=text, param=param):
            _require_text(text.strip(), "invalid_grammar", "the grammar is empty", param)
        case StructuralTagFormat():
            _refuse_ends(output_format, stop_texts)
        case ChoiceFormat():
            return _resolve_choice(output_format)
    return output_format


def _resolve_choice(output_format: ChoiceFormat) -> ChoiceFormat:
    param = output_format.param
    if not output_format.choices:
        raise InterlockError("invalid_value", "at least one choice is needed", param=param)
    for index, choice in enumerate(output_format.choices):
        _require_text(choice, "invalid_value", "a choice must not be empty", f"{param}[{index}]")
    return replace(output_format, choices=tuple(dict.fromkeys(output_format.choices)))


def _refuse_ends(output_format: StructuralTagFormat, stop_texts: Collection[str]) -> None:
    """A token that ends the turn cannot stand in its middle."""
    param = output_format.param
    require_unicode(output_format.tag, code="invalid_value", param=param)
    node = structural_tag(output_format.tag, param, lambda schema, origin: JsonValue(schema, origin=origin))
    for marker in walk(node):
        found = [text for text in stop_texts if isinstance(marker, Marker) and text in marker.text]
        if found:
            raise InterlockError(
                "invalid_value", f"{found[0]!r} ends a turn and cannot be part of a structural tag", param=param
            )


def _require_text(text: str, code: str, message: str, param: str) -> None:
    if not text:
        raise InterlockError(code, message, param=param)
    require_unicode(text, code=code, param=param)
