"""Python's own types as schemas and tools."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from interlock import InterlockError, SchemaLimits, Tool, check_schema, schema_of, tool_of


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int = Field(ge=0)


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Row(TypedDict):
    id: int


def weather(city: str, days: Annotated[int, Field(ge=1)] = 1, unit: Literal["C", "F"] = "C") -> str:
    """The weather in a city."""
    return f"{city} {days} {unit}"


@pytest.mark.parametrize(
    ("source", "required", "type_"),
    [
        (Person, ["name", "age"], "object"),
        (Point, ["x"], "object"),
        (Row, ["id"], "object"),
        (list[int], None, "array"),
    ],
)
def test_a_type_becomes_its_schema(source: Any, required: list[str] | None, type_: str):
    schema = json.loads(schema_of(source))
    assert (schema.get("required"), schema["type"]) == (required, type_)


def test_text_and_data_are_schemas_already():
    assert schema_of('{"type": "null"}') == '{"type": "null"}'
    assert json.loads(schema_of({"b": 1, "a": 2})) == {"b": 1, "a": 2}
    assert schema_of(True) == "true"


def test_a_function_becomes_a_tool():
    tool = tool_of(weather)
    assert (tool.name, tool.description) == ("weather", "The weather in a city.")
    assert list(tool.schema()["properties"]) == ["city", "days", "unit"]
    assert tool.schema()["required"] == ["city"]
    assert tool.schema()["properties"]["days"]["minimum"] == 1


def test_a_model_becomes_a_tool_of_its_name():
    assert tool_of(Person).name == "Person"
    assert tool_of(Person).description == "Somebody."
    assert tool_of(Point, name="move", strict=True) == Tool(
        name="move", parameters=tool_of(Point).parameters, strict=True
    )


def test_a_declared_tool_stays_as_it_is():
    declared = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": True}}
    assert tool_of(declared) == Tool(name="f", parameters='{"type": "object"}', strict=True)
    assert tool_of(tool_of(declared)) == tool_of(declared)


def unnamed(value: int, /) -> None: ...


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (unnamed, "invalid_tools"),
        ({"function": {}}, "invalid_tools"),
        (object(), "invalid_schema"),
        (lambda *a: a, "invalid_tools"),
    ],
)
def test_what_has_no_schema_is_refused(source: Any, code: str):
    with pytest.raises(InterlockError) as refused:
        tool_of(source)
    assert refused.value.code == code


def test_a_schema_is_reported_on():
    report = check_schema(Person, [{"name": "a", "age": 1}, {"name": "a", "age": -1}])
    assert report["compiled"]
    assert [found["accepted"] for found in report["instances"]] == [True, False]


def test_a_schema_is_reported_on_within_limits():
    report = check_schema(Person, schema_limits=SchemaLimits(max_work=1))
    assert not report["compiled"]
