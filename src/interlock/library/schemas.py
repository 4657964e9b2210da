"""Python's own types as JSON Schemas and tools."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from interlock.config import DEFAULT_SCHEMA_LIMITS, SchemaLimits
from interlock.constraints.providers.registry import create_provider
from interlock.constraints.schema import SchemaOptions
from interlock.constraints.schema_report import schema_report
from interlock.core.constraint import JsonValue
from interlock.core.tools import EMPTY_PARAMETERS, Tool
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer


def schema_of(source: Any) -> str:
    """JSON text of a schema. source: that text, a schema as data, or a type: a Pydantic model, a dataclass, a
    ``TypedDict``, an annotation such as ``list[int]``. Raises ``InterlockError`` where a type has no schema."""
    if isinstance(source, str):
        return source
    if isinstance(source, Mapping | bool):
        return json.dumps(source, ensure_ascii=False)
    return json.dumps(_described(source), ensure_ascii=False)


def tool_of(source: Any, *, name: str | None = None, strict: bool | None = None) -> Tool:
    """A tool. source: a function, whose annotated parameters and docstring describe it; a Pydantic model or a
    dataclass, whose fields are the parameters; a tool of a request (OpenAI's form); a ``Tool``."""
    if isinstance(source, Tool):
        return source
    if isinstance(source, Mapping):
        return _declared(source)
    described = _described(source)
    title = described.pop("title", None)
    documented = inspect.getdoc(source) if inspect.isroutine(source) else described.pop("description", None)
    return Tool(
        name=name or getattr(source, "__name__", None) or str(title),
        description=documented,
        parameters=json.dumps(described, ensure_ascii=False),
        strict=strict,
    )


def tools_of(sources: Sequence[Any]) -> list[dict[str, Any]]:
    """Tools as a request has them; see ``tool_of``."""
    return [dict(source) if isinstance(source, Mapping) else _wire(tool_of(source)) for source in sources]


def check_schema(
    schema: Any, instances: Sequence[Any] = (), *, schema_limits: SchemaLimits = DEFAULT_SCHEMA_LIMITS
) -> dict[str, Any]:
    """What becomes of each keyword of a schema (see ``schema_of``): the report of ``interlock check``. instances:
    JSON values to look for among what is generated. schema_limits: as of ``Model.load``."""
    bytes_ = byte_tokenizer()
    texts = [json.dumps(instance, ensure_ascii=False) for instance in instances]
    return schema_report(
        JsonValue(schema=schema_of(schema)),
        create_provider("llguidance", bytes_),
        bytes_,
        texts,
        options=SchemaOptions(guards=True, limits=schema_limits),
    )


def _described(source: Any) -> dict[str, Any]:
    try:
        described: dict[str, Any] = TypeAdapter(source).json_schema()
    except (PydanticUserError, NameError) as error:  # NameError: an annotation that nobody can resolve
        raise InterlockError(
            "invalid_schema", f"no JSON Schema for {source!r}: {str(error).splitlines()[0]}"
        ) from None
    if described.get("type") == "array" and inspect.isroutine(source):
        raise InterlockError("invalid_tools", f"{source!r} has parameters without a name")
    return described


def _declared(declaration: Mapping[str, Any]) -> Tool:
    function = declaration.get("function", declaration)
    try:
        return Tool(
            name=function["name"],
            description=function.get("description"),
            strict=function.get("strict"),
            parameters=schema_of(function["parameters"]) if "parameters" in function else EMPTY_PARAMETERS,
        )
    except KeyError as missing:
        raise InterlockError("invalid_tools", f"the tool has no {missing}") from None


def _wire(tool: Tool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema(),
        "strict": tool.strict,
    }
    return {
        "type": "function",
        "function": {key: value for key, value in function.items() if value is not None},
    }
