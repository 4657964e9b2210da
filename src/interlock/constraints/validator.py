"""Documents looked at by a validator that knows nothing of grammars: python-jsonschema, without network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

import jsonschema
from jsonschema import FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012, SchemaRegistry

from interlock.constraints.documents import NO_DOCUMENTS
from interlock.constraints.schema.text import formats
from interlock.constraints.schema.text.lang import Matcher


def validator(
    schema: Any, documents: Mapping[str, str] = NO_DOCUMENTS, *, assert_formats: bool = False
) -> Validator:
    """A validator of the dialect that ``schema`` names. documents: JSON text by URI. Formats are annotations to it, unless
    it is to assert those that are enforced; OpenAPI's ``nullable`` admits null, as everywhere here."""
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    lenient: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
        kind, {"type": _type_or_null(kind.VALIDATORS["type"])}
    )
    resources = (
        (uri.rstrip("#"), Resource.from_contents(json.loads(text), default_specification=DRAFT202012))
        for uri, text in documents.items()
    )
    registry: SchemaRegistry = Registry()
    made: Validator = lenient(
        schema,
        registry=registry.with_resources(resources),
        format_checker=_our_formats() if assert_formats else None,
    )
    return made


@cache
def _our_formats() -> FormatChecker:
    checker = FormatChecker(formats=())
    for name in formats.PATTERNS:
        checker.checks(name)(partial(_has_format, name))
    return checker


def _has_format(name: str, instance: object) -> bool:
    language = formats.language(name)
    return not isinstance(instance, str) or language is None or Matcher(language).accepts(instance)


def is_valid(schema: str, document: str, documents: Mapping[str, str] = NO_DOCUMENTS) -> bool | None:
    """Whether a JSON text is valid. ``None``: the validator cannot tell, as with a pattern that Python's ``re`` does
    not know."""
    try:
        data = json.loads(document)
    except (ValueError, RecursionError):
        return False
    try:
        return bool(validator(json.loads(schema), documents).is_valid(data))
    except Exception:  # noqa: BLE001 - a foreign library, on the schemas of strangers
        return None


def _type_or_null(inner: Any) -> Any:
    def check(
        validator: Validator, types: Any, instance: Any, schema: dict[str, Any]
    ) -> Iterator[ValidationError]:
        if instance is not None or schema.get("nullable") is not True:
            yield from inner(validator, types, instance, schema)

    return check
