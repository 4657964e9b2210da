"""The OpenAPI document: request bodies are the wire types that are really read."""

from __future__ import annotations

import re
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import Response

from interlock import __version__
from interlock.api.catalog import ENDPOINTS, EndpointEntry
from interlock.api.context import ApiContext
from interlock.api.errors import ANTHROPIC_PATH, OLLAMA_PATH, json_response

_REF = "#/components/schemas/{model}"
_MESSAGE = {"type": "string"}
_ERRORS: dict[str, Any] = {
    "Error": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "type", "param", "code"],
                "properties": {
                    "message": _MESSAGE,
                    "type": _MESSAGE,
                    "param": {"type": ["string", "null"]},
                    "code": _MESSAGE,
                    "problems": {"type": "array", "items": {"type": "object"}},
                    "hint": _MESSAGE,
                },
            }
        },
    },
    "AnthropicError": {
        "type": "object",
        "required": ["type", "error"],
        "properties": {
            "type": {"const": "error"},
            "error": {
                "type": "object",
                "required": ["type", "message"],
                "properties": {"type": _MESSAGE, "message": _MESSAGE},
            },
        },
    },
    "OllamaError": {"type": "object", "required": ["error"], "properties": {"error": _MESSAGE}},
}


def router(_context: ApiContext) -> APIRouter:
    routes = APIRouter()
    cached: list[dict[str, Any]] = []

    @routes.get("/openapi.json")
    async def openapi() -> Response:
        if not cached:
            cached.append(document())
        return json_response(cached[0])

    return routes


def document() -> dict[str, Any]:
    """OpenAPI 3.1. Schemas inside a body (of tools and formats) are any JSON Schema."""
    models = list(dict.fromkeys(entry.body for entry in ENDPOINTS if entry.body is not None))
    refs, definitions = models_json_schema([(model, "validation") for model in models], ref_template=_REF)
    names = {model: refs[model, "validation"]["$ref"] for model in models}
    paths: dict[str, dict[str, Any]] = {}
    for entry in ENDPOINTS:
        paths.setdefault(entry.path, {})[entry.method] = _operation(entry, names)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Interlock", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {**definitions["$defs"], **_ERRORS},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
        "security": [{"bearer": []}, {"header": []}, {}],
    }


def _operation(entry: EndpointEntry, names: dict[type[BaseModel], str]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", f"{entry.method}{entry.path}").strip("_"),
        "summary": entry.summary,
        "tags": [entry.group],
        "responses": {
            "200": {"description": "The answer", "content": _content(entry)},
            "default": {
                "description": "An error",
                "content": {"application/json": {"schema": {"$ref": _error_of(entry.path)}}},
            },
        },
    }
    parameters = re.findall(r"\{(\w+)\}", entry.path)
    if parameters:
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in parameters
        ]
    if entry.body is not None:
        content = {"application/json": {"schema": {"$ref": names[entry.body]}}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _content(entry: EndpointEntry) -> dict[str, Any]:
    whole: dict[str, Any] = {"type": "string"} if entry.answers.startswith("text/") else {"type": "object"}
    content: dict[str, Any] = {entry.answers: {"schema": whole}}
    if entry.streams is not None:
        content[entry.streams] = {"schema": {"type": "string"}}
    return content


def _error_of(path: str) -> str:
    if path.startswith(ANTHROPIC_PATH):
        return "#/components/schemas/AnthropicError"
    if path.startswith(OLLAMA_PATH):
        return "#/components/schemas/OllamaError"
    return "#/components/schemas/Error"
