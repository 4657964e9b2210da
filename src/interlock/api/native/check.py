"""``POST /v1/check``: would a request with these tools and formats be taken, and if not, why.

The constraint is the one that a request gets: in the family's own format, tried out by the compile pool. For each
schema in it there is the report of ``interlock check``, made by a compile helper. ``documents``: schemas that
references may name, for this check alone.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from interlock.api.context import ApiContext
from interlock.api.endpoint import ignored_headers, read_call
from interlock.api.errors import error_body, json_response
from interlock.api.fields import RefusedFields, ignored, ignored_header, refuse_unsupported
from interlock.api.json_body import EACH_KEPT, KEPT, Shape, decode_object
from interlock.api.openai.output_format import read_output_format
from interlock.api.openai.refused import COMMON, NO_PROMPT_LOGPROBS
from interlock.api.openai.tools import read_tool_choice, read_tools
from interlock.api.openai.wire import FORMATS_AS_TEXT, TOOLS_AS_TEXT, WireConstrained, WireTool
from interlock.api.reading import read_json_policy, validated
from interlock.api.schemas import schema_text
from interlock.api.wire import Schema
from interlock.constraints.walk import walk
from interlock.core.constraint import ConstraintSpec, JsonValue
from interlock.core.engine import Enforcement
from interlock.core.messages import Message
from interlock.core.output_format import JsonSchemaFormat, OutputFormat, TextFormat
from interlock.core.request import GenerateRequest
from interlock.errors import InterlockError

_SHAPE: Shape = {
    **FORMATS_AS_TEXT,
    "tools": TOOLS_AS_TEXT,
    "schema": KEPT,
    "instances": [KEPT],
    "documents": EACH_KEPT,
}
_MAX_REPORTS = 128
REFUSED: RefusedFields = {**COMMON, **NO_PROMPT_LOGPROBS}
_MESSAGE = Message(role="user", content="")


class WireCheck(WireConstrained):
    """schema: short for a ``response_format`` with it. instances: JSON values to look for in the answer's language."""

    model: str | None = None
    schema_: Schema | None = Field(default=None, alias="schema")
    instances: list[Schema] | None = None
    documents: dict[str, Schema] | None = None
    tools: list[WireTool] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None


def router(context: ApiContext) -> APIRouter:
    routes = APIRouter()

    @routes.post("/v1/check")
    async def check(request: Request) -> Response:
        wire, max_nesting = await read_call(request, context, _read)
        documents = {uri: str(text) for uri, text in (wire.documents or {}).items()}
        model = wire.model or context.service.model_names[0]
        spec: ConstraintSpec | None = None
        notes: tuple[str, ...] = ()
        enforcement: Enforcement | None = None
        error: InterlockError | None = None
        try:
            resolved = await context.service.resolve(_request(wire, model, max_nesting))
            spec, notes, enforcement = resolved.spec, resolved.notes, resolved.enforcement
            if spec is not None:
                notes += (await context.service.check(spec, model, documents)).notes
        except InterlockError as found:
            if found.entry.status != 400:
                raise
            error = found
        finding = _finding(spec, notes, error)
        finding["enforced_by"] = None if spec is None or enforcement is None else asdict(enforcement)
        finding["schemas"] = await _schemas(context, spec, tuple(map(str, wire.instances or ())), documents)
        return json_response(finding, headers=ignored_headers(ignored_header(ignored(wire, REFUSED))))

    return routes


def _read(body: bytes, max_nesting: int) -> tuple[WireCheck, int]:
    data = decode_object(body, _SHAPE, max_nesting=max_nesting)
    refuse_unsupported(data, REFUSED)
    return validated(WireCheck, data), max_nesting


def _request(wire: WireCheck, model: str, max_nesting: int) -> GenerateRequest:
    """Every call is held to its schema, so that every schema is checked."""
    return GenerateRequest(
        request_id="check",
        model=model,
        messages=(_MESSAGE,),
        tools=read_tools(wire.tools, "tools"),
        tool_choice=read_tool_choice(wire.tool_choice),
        parallel_tool_calls=wire.parallel_tool_calls,
        tool_constraints="all" if wire.tools else None,
        output_format=_output_format(wire, max_nesting),
        json_policy=read_json_policy(wire.interlock),
    )


def _output_format(wire: WireCheck, max_nesting: int) -> OutputFormat:
    found = read_output_format(wire, max_nesting=max_nesting)
    if wire.schema_ is None:
        return found
    if not isinstance(found, TextFormat):
        raise InterlockError(
            "conflicting_parameters", "schema and another format constrain the answer", param="schema"
        )
    return JsonSchemaFormat(schema=schema_text(wire.schema_, "schema"), param="schema")


async def _schemas(
    context: ApiContext, spec: ConstraintSpec | None, instances: tuple[str, ...], documents: dict[str, str]
) -> list[dict[str, Any]]:
    """A report for each schema of the constraint, instances looked at under the answer's."""
    nodes = dict.fromkeys(node for node in walk(spec.root) if isinstance(node, JsonValue)) if spec else {}
    out = []
    for node in list(nodes)[:_MAX_REPORTS]:
        entry: dict[str, Any] = {"param": node.origin, "tool": node.tool}
        try:
            entry |= await context.service.report(node, () if node.tool else instances, documents)
        except InterlockError as error:
            entry |= {"compiled": False, "report": [], "error": error_body(error)["error"]}
        out.append(entry)
    return out


def _finding(
    spec: ConstraintSpec | None, notes: tuple[str, ...], error: InterlockError | None
) -> dict[str, Any]:
    """ok: a request would be taken. problems: where it would not, what is wrong. notes: what it would be told."""
    details = {} if error is None else error_body(error)["error"]
    problems = details.pop("problems", None)
    if error is not None and not problems:
        problems = [{"keyword": "", "pointer": "", "reason": error.message}]
    return {
        "ok": error is None,
        "error": details or None,
        "problems": problems or [],
        "notes": list(notes),
        "constraint": spec
        and {"digest": spec.digest(), "tree": spec.tree(), "spec": msgspec.Raw(spec.to_json().encode())},
    }
