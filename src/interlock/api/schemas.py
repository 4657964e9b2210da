"""JSON Schemas of a body, as the text that the client sent."""

from __future__ import annotations

from interlock.api.json_body import JsonText
from interlock.errors import InterlockError


def schema_text(schema: JsonText, param: str) -> str:
    """A schema of any value. Raises ``invalid_schema``."""
    if schema.kind not in ("object", "boolean"):
        raise InterlockError(
            "invalid_schema",
            f"{param} must be a JSON Schema, an object, not of type {schema.kind}",
            param=param,
        )
    return str(schema)


def parameters_text(schema: JsonText, param: str) -> str:
    """A schema of a call's arguments. Raises ``invalid_schema``."""
    if schema.kind != "object":
        raise InterlockError(
            "invalid_schema",
            f"{param} must be a JSON Schema object, not of type {schema.kind}",
            param=param,
        )
    return str(schema)
