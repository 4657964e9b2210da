"""Arguments as a family writes them."""

from __future__ import annotations

from typing import Any

from interlock.core.argument_syntax import (
    JSON_TYPES,
    ArgumentSyntax,
    BareKeyArguments,
    JsonType,
    NestedTagArguments,
    PythonArguments,
    TaggedArguments,
)
from interlock.core.schema_types import kinds_of
from interlock.errors import InterlockError
from interlock.families.wire import json_text


def spell_object(
    syntax: ArgumentSyntax, arguments: dict[str, Any], item_separator: str = ", ", key_separator: str = ": "
) -> str:
    """``arguments``, as ``json_text.loads`` gives them. Raises ``InterlockError`` (``invalid_messages``) for a
    text that the syntax cannot hold."""
    match syntax:
        case TaggedArguments():
            return syntax.separator.join(_parameter(syntax, key, value) for key, value in arguments.items())
        case BareKeyArguments(quote=quote):
            return _bare(arguments, quote)
        case NestedTagArguments():
            return "".join(_tag(syntax, key, value) for key, value in arguments.items())
        case PythonArguments(quote=quote):
            return ", ".join(f"{key}={_python(value, quote)}" for key, value in arguments.items())
        case "json":
            return json_text.dumps(arguments, item_separator=item_separator, key_separator=key_separator)


def json_type(value: Any) -> JsonType:
    """The type of a JSON value."""
    kinds = kinds_of(value)
    return next(name for name in JSON_TYPES if name in kinds)


def escape_key(syntax: TaggedArguments, key: str) -> str:
    return key.replace("&", "&amp;").replace('"', "&quot;") if syntax.escapes_keys else key


def _parameter(syntax: TaggedArguments, key: str, value: Any) -> str:
    word = dict(syntax.types).get(json_type(value), "")
    middle = syntax.type_open + word if syntax.types else ""
    text = _free_of(syntax.closer, value) if isinstance(value, str) else json_text.dumps(value)
    return f"{syntax.key_open}{escape_key(syntax, key)}{middle}{syntax.key_close}{text}{syntax.value_close}"


def _bare(value: Any, quote: str) -> str:
    match value:
        case str():
            return quote + _free_of(quote, value) + quote
        case dict():
            return "{" + ",".join(f"{key}:{_bare(item, quote)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ",".join(_bare(item, quote) for item in value) + "]"
        case _:
            return json_text.dumps(value)


def _tag(syntax: NestedTagArguments, key: str, value: Any) -> str:
    match value:
        case str():
            text = _free_of(syntax.mark, value)
        case dict():
            text = "".join(_tag(syntax, inner, item) for inner, item in value.items())
        case list():
            text = "".join(_tag(syntax, syntax.item, item) for item in value)
        case _:
            text = json_text.dumps(value)
    return f"{syntax.mark}<{key}>{text}{syntax.mark}</{key}>"


def _python(value: Any, quote: str) -> str:
    match value:
        case None:
            return "None"
        case bool():
            return "True" if value else "False"
        case str():
            return _python_string(value, quote)
        case dict():
            members = (f"{_python_string(key, quote)}: {_python(item, quote)}" for key, item in value.items())
            return "{" + ", ".join(members) + "}"
        case list():
            return "[" + ", ".join(_python(item, quote) for item in value) + "]"
        case _:
            return json_text.dumps(value)


def _python_string(text: str, quote: str) -> str:
    """A Python literal: JSON's escapes mean the same there."""
    body = json_text.escape(text)
    if quote == "'":
        body = body.replace('\\"', '"').replace("'", "\\'")
    return quote + body + quote


def _free_of(closer: str, text: str) -> str:
    if closer in text:
        raise InterlockError(
            "invalid_messages", f"the arguments of a call of this model cannot hold the text {closer!r}"
        )
    return text
