"""Parts of reading a body that all endpoints have."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from interlock.api.fields import unsupported
from interlock.api.validation import invalid_body
from interlock.api.wire import WireInterlock
from interlock.core.request import JsonPolicy, ReportOptions
from interlock.errors import InterlockError

MAX_STOP_STRINGS = 16
# Objects in a list of the body, with those in their own lists (messages and content parts). Far more than a context
# holds: each costs time under the GIL before anyone can know that it does not fit.
MAX_OBJECTS = 16_384
_POLICIES = {field.name for field in fields(JsonPolicy)}

W = TypeVar("W", bound=BaseModel)


def validated(model: type[W], data: dict[str, Any]) -> W:
    """Raises ``InterlockError`` for the field that is wrong."""
    _refuse_crowds(data)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise invalid_body(error, data) from None


def _refuse_crowds(data: dict[str, Any]) -> None:
    for name, value in data.items():
        objects = _objects(value)
        inner = (_objects(item) for one in objects for item in one.values())
        if len(objects) + sum(map(len, inner)) > MAX_OBJECTS:
            raise InterlockError("invalid_value", f"{name} has more than {MAX_OBJECTS} items", param=name)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def read_json_policy(wire: WireInterlock | None) -> JsonPolicy:
    return JsonPolicy() if wire is None else JsonPolicy(**wire.model_dump(include=_POLICIES))


def read_reports(wire: WireInterlock | None, *, has_trace: bool) -> ReportOptions:
    """has_trace: the answers of this endpoint have room for one."""
    if wire is None:
        return ReportOptions()
    if wire.trace and not has_trace:
        raise unsupported("interlock.trace", "chat completions and completions have it")
    return ReportOptions(timings=bool(wire.timings), trace=bool(wire.trace))


def read_stop(wire: str | list[str] | None, param: str = "stop") -> tuple[str, ...]:
    stop = (wire,) if isinstance(wire, str) else tuple(wire or ())
    if len(stop) > MAX_STOP_STRINGS:
        raise InterlockError("invalid_value", f"{param} has more than {MAX_STOP_STRINGS} strings", param=param)
    if "" in stop:
        raise InterlockError("invalid_value", f"{param} must not have an empty string", param=param)
    return stop


def same(wire: BaseModel, name: str, alias: str) -> Any:
    """The value of a field that has two names; ``conflicting_parameters`` where they differ."""
    values = [value for value in (getattr(wire, name), getattr(wire, alias)) if value is not None]
    if len(set(values)) > 1:
        raise InterlockError(
            "conflicting_parameters", f"{name} and {alias} differ; send one of them", param=name
        )
    return values[0] if values else None
